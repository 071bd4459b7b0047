//! `offpath collect`: what a machine says of itself, shown or put into an archive without what identifies it.

use super::{Context, answer};
use crate::failure::Failure;
use crate::output::{OutputFile, unwritable};
use clap::Args;
use offpath::answers::machine::{
    CONTENTS, CollectAnswer, CollectionFile, FAILED, MissingToolAnswer, collect, pack, read_collection,
};
use offpath::logs::machine::Mask;
use offpath_terminal::output::{counted, tell};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  offpath collect                                     this machine: its card, links, ports, and what is odd
  sudo offpath collect -o machine.tar                 the same as an archive that can be sent to a colleague
  offpath collect --from machine.tar --format json    what a collection says, described by docs/schemas/collect.json

Serial numbers, addresses of Ethernet, InfiniBand and IP, identifiers and host names are masked before anything is written
or shown. Nothing is changed on the machine, and nothing is sent.";

/// Say what this machine is: its card, every PCIe link above it, ports, processor, and what is odd about them
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Also write the files to an archive, which `offpath new device NAME --from FILE` reads
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
    /// Read files or archives of another machine instead of asking this one
    #[arg(long, value_name = "FILES", value_delimiter = ',', conflicts_with = "out")]
    from: Vec<PathBuf>,
    /// The card's address, where the machine has several, as in `3b:00.0`
    #[arg(long, value_name = "ADDRESS")]
    card: Option<String>,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let card = options.card.as_deref();
    if !options.from.is_empty() {
        let files = read_collection(&options.from)?;
        let found = collect(&files, card, None, Vec::new())?;
        context.screen.emit(&answer(&found, context, CollectAnswer::text)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    // A file that cannot be written is told before the machine is asked.
    let out = options.out.as_deref();
    let out = out.map(|file| Ok::<_, Failure>((file, OutputFile::create_new(file)?))).transpose()?;
    // Tools run in groups of their own, which an interrupt does not reach.
    ctrlc::set_handler(|| {
        end_group(RUNNING.load(Ordering::SeqCst));
        std::process::exit(INTERRUPTED);
    })
    .map_err(|error| Failure::input(format!("signals cannot be handled: {error}"), ""))?;
    let (files, missing, left) = gather(Path::new("/"));
    for name in left {
        tell(&format!(
            "warning: `{name}`, a name of this machine, stays where it stands: something else would be read without it"
        ));
    }
    let shown = out.as_ref().map(|(file, _)| file.display().to_string());
    let found = collect(&files, card, shown, missing);
    // Which card is meant is asked again by who reads the archive: it is written whatever is shown.
    if let Some((file, out)) = out {
        let packed = pack(&files).map_err(|error| unwritable(file, &error))?;
        out.write(&packed)?;
    }
    context.screen.emit(&answer(&found?, context, CollectAnswer::text)?)?;
    Ok(ExitCode::SUCCESS)
}

/// What is asked of a machine, and what would be missing without it.
struct Tool {
    file: &'static str,
    command: Vec<String>,
    tells: &'static str,
}

fn tool(file: &'static str, command: &str, tells: &'static str) -> Tool {
    Tool { file, command: command.split(' ').map(str::to_string).collect(), tells }
}

/// How long a tool may take; one that waits for a device that does not answer is given up.
const LONGEST: Duration = Duration::from_secs(20);

/// Bytes that a tool may print: what says most prints some hundred KiB.
const MOST_PRINTED: u64 = 32 << 20;

/// Asks the machine whose files lie below `root`; what its tools print is masked.
/// Names of the machine that could not be are told.
fn gather(root: &Path) -> (Vec<CollectionFile>, Vec<MissingToolAnswer>, BTreeSet<String>) {
    let mut tools = vec![
        tool("lspci.txt", "lspci -D -vvv", "the card, its link and every bridge above it"),
        tool("ibv_devinfo.txt", "ibv_devinfo -v", "ports, path MTU, READs in flight and firmware"),
        tool("lscpu.txt", "lscpu", "cores, clock and caches"),
        tool("numactl.txt", "numactl -H", "nodes of the memory"),
        tool("numactl.txt", "numactl --show", "the nodes that programs are bound to"),
    ];
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    };
    let function = |path: &str| -> Option<String> {
        let target = std::fs::read_link(root.join(path)).ok()?;
        Some(target.file_name()?.to_str()?.to_string())
    };
    for interface in names("sys/class/net") {
        if function(&format!("sys/class/net/{interface}/device")).is_some() {
            for option in ["", " -a", " -i"] {
                let command = format!("ethtool{option} {interface}");
                tools.push(tool("ethtool.txt", &command, "speed, modes and pause frames of the interface"));
            }
        }
    }
    let rdma = names("sys/class/infiniband");
    let mut functions: Vec<String> =
        rdma.iter().filter_map(|device| function(&format!("sys/class/infiniband/{device}/device"))).collect();
    functions.sort();
    functions.dedup();
    for address in &functions {
        let command = format!("mlxconfig -d {address} -e query");
        tools.push(tool("mlxconfig.txt", &command, "the mode of a card with a processor of its own"));
    }
    let own_names = ["proc/sys/kernel/hostname", "proc/sys/kernel/domainname"];
    let own_names: Vec<String> = own_names
        .iter()
        .filter_map(|file| std::fs::read_to_string(root.join(file)).ok())
        .map(|name| name.trim().to_string())
        .filter(|name| name != "(none)")
        .collect();
    let mut mask = Mask::new(&own_names);
    let (mut files, mut missing): (Vec<CollectionFile>, Vec<MissingToolAnswer>) = Default::default();
    let mut contents = String::new();
    for Tool { file, command, tells } in tools {
        let shown = mask.apply(&command.join(" ")).trim_end().to_string();
        match output(&command, LONGEST) {
            Ok(Printed { text, failed }) => {
                let text = mask.apply(&text);
                let lines = counted(text.lines().count() as u64, "line");
                match files.iter_mut().find(|known| known.name == file) {
                    Some(known) => known.text += &text,
                    None => files.push(CollectionFile { name: file.to_string(), text, is_of_many: true }),
                }
                contents += &mask.apply(&format!("{file}: {shown}"));
                // What it printed until then is kept, and who reads it has to know that it may be a part.
                if let Some(failed) = failed {
                    let what = format!("{FAILED}{shown}: {failed} after {lines}; it tells {tells}");
                    contents += &mask.apply(&what);
                }
            }
            Err(why) => {
                let why = mask.apply(&why).trim_end().to_string();
                contents += &format!("missing: {shown}: {why}\n");
                missing.push(MissingToolAnswer { command: shown, why: format!("{why}; it tells {tells}") });
            }
        }
    }
    let text = mask.apply(&sys(root, &functions));
    if !text.is_empty() {
        files.push(CollectionFile { name: "sys.txt".to_string(), text, is_of_many: true });
        contents += "sys.txt: files of /sys and /proc\n";
    }
    files.push(CollectionFile { name: CONTENTS.to_string(), text: contents, is_of_many: true });
    (files, missing, mask.left().clone())
}

/// Files of the kernel that say what the tools may not have said.
fn sys(root: &Path, functions: &[String]) -> String {
    let mut paths = vec![
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor".to_string(),
        "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq".to_string(),
    ];
    for address in functions {
        for name in [
            "current_link_speed",
            "current_link_width",
            "max_link_speed",
            "max_link_width",
            "numa_node",
            "iommu_group/type",
        ] {
            paths.push(format!("sys/bus/pci/devices/{address}/{name}"));
        }
    }
    let mut text = String::new();
    for path in paths {
        if let Ok(value) = std::fs::read_to_string(root.join(&path)) {
            text += &format!("/{path}:{}\n", value.trim());
        }
    }
    for folder in ["sys/class/infiniband", "sys/class/net"] {
        let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        names.sort();
        for path in names {
            let (name, target) = (path.file_name(), std::fs::read_link(path.join("device")));
            if let (Some(name), Ok(target)) = (name.and_then(|name| name.to_str()), target)
                && let Some(target) = target.file_name().and_then(|target| target.to_str())
            {
                text += &format!("/{folder}/{name}/device:{target}\n");
                if let Ok(mtu) = std::fs::read_to_string(path.join("mtu")) {
                    text += &format!("/{folder}/{name}/mtu:{}\n", mtu.trim());
                }
            }
        }
    }
    // Of the kernel's options those alone that concern the IOMMU: others name disks and hosts.
    let options = std::fs::read_to_string(root.join("proc/cmdline")).unwrap_or_default();
    let of_iommu: Vec<&str> = options.split_whitespace().filter(|word| word.contains("iommu")).collect();
    if !of_iommu.is_empty() {
        text += &format!("/proc/cmdline:{}\n", of_iommu.join(" "));
    }
    let memory = std::fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let total = memory.lines().find(|line| line.starts_with("MemTotal:"));
    text + &total.map(|line| format!("{line}\n")).unwrap_or_default()
}

/// The exit code of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// The group of the tool that is run; 0 where none is.
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// Ends a tool with everything that it started.
fn end_group(group: i32) {
    if let Some(group) = Pid::from_raw(group) {
        // It may have ended meanwhile.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// What a tool printed.
#[derive(Debug, PartialEq)]
struct Printed {
    text: String,
    /// How it failed, where it did so after it had printed something.
    failed: Option<String>,
}

/// How long a tool may take to end once it was told to: one that waits within the kernel for a device does not end at all.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// How a tool ended; nothing where it has not by a moment.
fn ended(child: &mut Child, until: Instant) -> std::io::Result<Option<ExitStatus>> {
    const LOOK: Duration = Duration::from_millis(5);
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= until {
            return Ok(status);
        }
        std::thread::sleep(LOOK);
    }
}

/// What a tool prints, in its own language; why not where it prints nothing or does not end.
fn output(command: &[String], longest: Duration) -> Result<Printed, String> {
    let until = Instant::now() + longest;
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "it is not installed".to_string(),
            _ => format!("it cannot be run: {error}"),
        })?;
    let group = child.id() as i32;
    RUNNING.store(group, Ordering::SeqCst);
    let mut printed = child.stdout.take().expect("it is piped");
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = printed.by_ref().take(MOST_PRINTED + 1).read_to_end(&mut bytes).map(|_| bytes);
        // Who no longer listens has given the tool up.
        let _ = send.send(read);
    });
    let read = receive.recv_timeout(longest);
    let is_too_long = matches!(&read, Ok(Ok(bytes)) if bytes.len() as u64 > MOST_PRINTED);
    // The limit is of all that it does: it may have closed what it prints into and go on.
    let status = match read.is_err() || is_too_long {
        true => Ok(None),
        false => ended(&mut child, until),
    };
    if matches!(status, Ok(None)) {
        end_group(group);
        let _ = ended(&mut child, Instant::now() + LAST_MOMENT);
    }
    RUNNING.store(0, Ordering::SeqCst);
    if is_too_long {
        return Err(format!("it prints more than {} MiB, and no such tool does", MOST_PRINTED >> 20));
    }
    let status = status.map_err(|error| format!("it cannot be waited for: {error}"))?;
    let (Some(status), Ok(read)) = (status, read) else {
        return Err(format!("it did not end within {} s", longest.as_secs()));
    };
    let bytes = read.map_err(|error| format!("what it prints cannot be read: {error}"))?;
    let failed = (!status.success()).then(|| format!("it failed ({status})"));
    match failed {
        Some(failed) if bytes.is_empty() => Err(failed),
        failed => Ok(Printed { text: String::from_utf8_lossy(&bytes).into_owned(), failed }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A machine whose files hold what identifies it: nothing of it reaches the collection.
    #[test]
    fn a_collection_holds_what_is_read_and_nothing_that_identifies() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("proc/sys/kernel/hostname", "node17.cluster.example\n");
        write(
            "proc/cmdline",
            "root=UUID=6f1e2ab0-77aa-4e02-9be1-0c42a103b54b intel_iommu=on ip=192.168.7.21 quiet\n",
        );
        write("proc/meminfo", "MemTotal:       131072000 kB\nMemFree: 1 kB\n");
        write("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
        write("sys/bus/pci/devices/0000:3b:00.0/current_link_speed", "8.0 GT/s PCIe\n");
        write("sys/bus/pci/devices/0000:3b:00.0/current_link_width", "16\n");
        write("sys/class/infiniband/mlx5_0/node_guid", "b8ce:f603:00aa:0417\n");
        symlink("../../../0000:3b:00.0", root.path().join("sys/class/infiniband/mlx5_0/device"))
            .expect("a link");
        let (files, missing, left) = gather(root.path());
        assert!(left.is_empty(), "{left:?}");
        let all: String = files.iter().map(|file| file.text.as_str()).collect();
        for secret in ["node17", "192.168", "6f1e2ab0", "b8ce"] {
            assert!(!all.contains(secret), "{secret} is in\n{all}");
        }
        let system = &files.iter().find(|file| file.name == "sys.txt").expect("files of the kernel").text;
        for line in [
            "/sys/bus/pci/devices/0000:3b:00.0/numa_node:1",
            "/sys/class/infiniband/mlx5_0/device:0000:3b:00.0",
            "/proc/cmdline:intel_iommu=on",
            "MemTotal:       131072000 kB",
        ] {
            assert!(system.contains(line), "{line} is not in\n{system}");
        }
        // What was run and what was not stands in the list.
        let contents = &files.last().expect("it is the last").text;
        assert_eq!(contents.matches("missing: ").count(), missing.len(), "{contents}");
        // The archive gives back what was put in.
        let packed = pack(&files).expect("in memory");
        let file = root.path().join("machine.tar");
        std::fs::write(&file, &packed).expect("a file");
        let read = read_collection(std::slice::from_ref(&file)).expect("it is one");
        assert_eq!(read.len(), files.len());
        for (read, written) in read.iter().zip(&files) {
            assert!(read.name.ends_with(&written.name) && read.text == written.text);
        }
        let found = collect(&read, None, None, Vec::new()).expect("it says something");
        assert_eq!(found.machine.processor.memory_bytes, Some(131_072_000 << 10));
        assert_eq!(packed, pack(&files).expect("in memory"), "the same files are the same bytes");
    }

    #[test]
    fn a_tool_that_is_not_there_or_fails_is_told() {
        let run = |words: &[&str]| {
            output(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>(), Duration::from_secs(1))
        };
        assert_eq!(run(&["offpath-no-such-tool"]), Err("it is not installed".to_string()));
        assert!(run(&["false"]).expect_err("it fails").starts_with("it failed"));
        let whole = Printed { text: "a\n".to_string(), failed: None };
        assert_eq!(run(&["echo", "a"]), Ok(whole));
        // What one printed that crashed is kept, and is none of one that ended.
        let half = run(&["sh", "-c", "echo a; kill -SEGV $$"]).expect("it printed something");
        assert_eq!(half.text, "a\n");
        assert!(half.failed.is_some_and(|how| how.contains("signal: 11")));
        let half = run(&["sh", "-c", "echo a; exit 3"]).expect("it printed something");
        assert!(half.failed.is_some_and(|how| how.contains("exit status: 3")));
        // The limit is of a tool that says no more and goes on, too.
        let quiet = run(&["sh", "-c", "echo a; exec sleep 600 >&-"]);
        assert!(quiet.expect_err("it goes on").contains("did not end within 1 s"));
        // One that prints without an end is given up, and what it printed is not kept.
        assert!(
            output(&["yes".to_string()], Duration::from_secs(60))
                .expect_err("it has no end")
                .contains("more than 32 MiB")
        );
        // One that hangs is ended with what it started.
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("child");
        let hangs = format!("sleep 600 & echo $! > {}; wait", file.display());
        assert!(run(&["sh", "-c", &hangs]).expect_err("it hangs").contains("did not end within 1 s"));
        let child = std::fs::read_to_string(&file).expect("it was started");
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        // A signal takes a moment, and what nobody has waited for yet is a zombie.
        let is_gone = |state: &str| {
            state.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('Z'))
        };
        let gone = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            is_gone(&state())
        });
        assert!(gone, "{}", state());
    }

    /// A tool whose output nobody knows takes nothing from what the others say.
    #[test]
    fn a_tool_that_prints_what_nobody_knows_is_named() {
        let file = |name: &str, text: &str| CollectionFile {
            name: name.to_string(),
            text: text.to_string(),
            is_of_many: true,
        };
        let files = [
            file(
                "lscpu.txt",
                "Architecture: x86_64\nModel name: A Processor\nCore(s) per socket: 8\nSocket(s): 1\n",
            ),
            file("numactl.txt", "node 0 cpus: 0 1 2 3\n"),
        ];
        let found = collect(&files, None, None, Vec::new()).expect("the others say something");
        assert_eq!(found.machine.processor.cores, Some(8));
        assert_eq!(found.machine.unread.len(), 1);
        assert!(found.machine.unread[0].contains("`numactl.txt`"), "{:?}", found.machine.unread);
        let folder = tempfile::tempdir().expect("a folder");
        let archive = folder.path().join("m.tar");
        std::fs::write(&archive, pack(&files).expect("in memory")).expect("a file");
        let read = read_collection(&[archive]).expect("it is one");
        let found = collect(&read, None, None, Vec::new()).expect("a colleague reads it");
        assert!(found.machine.unread[0].contains("`m.tar/numactl.txt`"), "{:?}", found.machine.unread);
    }
}
