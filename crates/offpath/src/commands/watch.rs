//! `offpath watch`: counters of a machine beside what a plan expects of them.

use super::{Context, answer};
use crate::failure::{Failure, NEGATIVE};
use crate::output::{Format, tell};
use clap::Args;
use offpath::answers::watch::{WatchAnswer, WatchRequest, Watcher, watch};
use offpath::quantity::{OpRate, Time};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const EXAMPLES: &str = "\
Examples:
  offpath plan designs/kv-ycsb-c.toml --format json > plan.json
  offpath watch --expect plan.json                          this machine's counters, each second until interrupted
  offpath watch --expect plan.json --interval 10s --count 1 an acceptance test: exit code 1 where plan and card differ
  offpath watch --expect plan.json --at soc a.txt b.txt     readings that were saved on the card's own processor

A saved reading is what `ethtool -S`, `rdma statistic`, `grep . FILES` of sysfs or Prometheus print, behind a line that
`date '+time %s.%N'` prints; docs/watch.md has commands that save them.

Exit code 1 says that plan and card differ in an interval, or that nothing could be compared.";

/// Compare a machine's counters with what a plan expects of them, as utilisation of ports and PCIe links and as rates of TLPs
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The plan, as `offpath plan DESIGN --format json` prints it
    #[arg(long, value_name = "FILE")]
    expect: PathBuf,
    /// Saved readings, two or more with their times; without any this machine's counters are read; `-` is standard input
    #[arg(value_name = "READING")]
    readings: Vec<PathBuf>,
    /// The endpoint that the counters are read at, as `soc` or `client` [default: the card's host]
    #[arg(long, value_name = "ENDPOINT")]
    at: Option<String>,
    /// The rate of requests that is asked for, as in 20M/s [default: what counters of requests show, else the plan's]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<OpRate>,
    /// RDMA devices whose counters count, and none whose device is not told [default: all, added up]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    nic: Vec<String>,
    /// Time between two readings of this machine [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = interval, conflicts_with = "readings")]
    interval: Option<Time>,
    /// End after so many intervals [default: when interrupted]
    #[arg(long, conflicts_with = "readings", value_parser = crate::options::whole::<u64>(1, u64::MAX))]
    count: Option<u64>,
}

fn rate(text: &str) -> Result<OpRate, String> {
    let rate: OpRate = text.parse().map_err(|error: offpath::quantity::ParseError| error.to_string())?;
    if rate.get() == 0 { Err("a rate of requests is above 0".to_string()) } else { Ok(rate) }
}

/// Counters of NICs are fetched from their firmware: more often than this they may not have moved.
const LEAST_INTERVAL: Time = Time::from_ps(10_000_000_000);

fn interval(text: &str) -> Result<Time, String> {
    let time: Time = text.parse().map_err(|error: offpath::quantity::ParseError| error.to_string())?;
    match time >= LEAST_INTERVAL && time <= Time::from_seconds(86_400.0) {
        true => Ok(time),
        false => Err(format!("an interval is from {LEAST_INTERVAL} to a day")),
    }
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let request = WatchRequest {
        expect: options.expect.clone(),
        at: options.at.clone(),
        rate_per_s: options.rate.map(|rate| rate.get() as f64),
        devices: options.nic.clone(),
    };
    let is_met = match options.readings.is_empty() {
        true => {
            // The time of day may be set meanwhile: it is asked once, and what has passed since is counted.
            let clock = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), Instant::now());
            let now = || clock.0 + clock.1.elapsed();
            let show = |text: &str| context.screen.emit_part(text);
            live(options, &request, context, Path::new("/"), now, std::thread::sleep, show)?
        }
        false => {
            let found = watch(&request, &options.readings)?;
            context.screen.emit(&answer(&found, context, WatchAnswer::text)?)?;
            found.is_met()
        }
    };
    Ok(if is_met { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
}

/// Where this machine's counters are, below `/`; `*` stands for any name.
const PATHS: [&str; 5] = [
    "sys/class/infiniband/*/ports/*/counters/*",
    "sys/class/infiniband/*/ports/*/hw_counters/*",
    "sys/class/net/*/statistics/*",
    "sys/class/hwmon/*/pcie*/*_PKT_CNT",
    "sys/class/hwmon/*/pcie*/*_BYTE_CNT",
];

/// Of these alone something of a plan can be said.
const OF_A_CARD: [&str; 2] = ["/sys/class/infiniband/", "/sys/class/hwmon/"];

/// Stands in the place of a file's value where the kernel gives none.
const UNREADABLE: &str = ":cannot be read: ";

fn has_card(text: &str) -> bool {
    let is_read = |line: &str| !line.contains(UNREADABLE);
    text.lines().any(|line| is_read(line) && OF_A_CARD.iter().any(|folder| line.starts_with(folder)))
}

/// Watches the machine whose files lie below `root` until nobody reads what `show` shows; whether plan and card agree in every
/// interval.
fn live(
    options: &Options,
    request: &WatchRequest,
    context: &Context,
    root: &Path,
    now: impl Fn() -> Duration,
    mut pause: impl FnMut(Duration),
    mut show: impl FnMut(&str) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let is_json = context.screen.format == Format::Json;
    if is_json && options.count.is_none() {
        return Err(Failure::input(
            "JSON is one document, and without `--count` watching has no end",
            "say after how many intervals it ends, as in `--count 10`",
        ));
    }
    let mut watcher = Watcher::new(request)?;
    let first = reading(root, now());
    if !has_card(&first) {
        let looked = PATHS.map(|path| format!("/{path}"));
        return Err(Failure::negative(
            format!("this machine has no counters of an RDMA device: looked for {}", looked.join(", ")),
            "watch on the machine with the card, or name readings that were saved there",
        ));
    }
    watcher.read_text(&first);
    watcher.check_devices()?;
    if !is_json && !show(&watcher.clone().answer(Vec::new()).head(&context.screen))? {
        return Ok(true);
    }
    let length = options.interval.unwrap_or(Time::from_seconds(1.0));
    let length = Duration::from_nanos(length.ps() / 1000);
    let (mut done, mut begun, mut is_met, mut kept) = (0, None, true, Vec::new());
    while options.count.is_none_or(|count| done < count) {
        pause(length);
        let text = reading(root, now());
        watcher.read_text(&text);
        if !has_card(&text) {
            is_met = false;
            tell(
                "no counters of an RDMA device at this reading: it is gone, or its files cannot be read, and nothing is known of the time since the last one that has them",
            );
        }
        for one in watcher.next_intervals() {
            let begun = *begun.get_or_insert(one.from_ns);
            is_met &= one.is_met();
            match is_json {
                true => kept.push(one),
                false if show(&one.text(begun, &context.screen))? => {}
                false => return Ok(is_met),
            }
        }
        done += 1;
    }
    let found = watcher.answer(kept);
    match is_json {
        true => show(&answer(&found, context, WatchAnswer::text)?)?,
        false => show(&found.tail(&context.screen))?,
    };
    Ok(is_met)
}

/// The counters below `root` as `grep . FILES` prints them, behind the time since 1970. A file that cannot be read, as some cannot by
/// everybody, has no number.
fn reading(root: &Path, now: Duration) -> String {
    let mut text = format!("time {}.{:09}\n", now.as_secs(), now.subsec_nanos());
    for pattern in PATHS {
        let mut files = vec![PathBuf::new()];
        for part in pattern.split('/') {
            files = files.iter().flat_map(|folder| below(root, folder, part)).collect();
        }
        for file in files {
            text += &match std::fs::read_to_string(root.join(&file)) {
                Ok(value) => format!("/{}:{}\n", file.display(), value.trim()),
                Err(error) => format!("/{}{UNREADABLE}{error}\n", file.display()),
            };
        }
    }
    text
}

/// Names in a folder that a part of a pattern stands for, in their order.
fn below(root: &Path, folder: &Path, part: &str) -> Vec<PathBuf> {
    let Some((before, after)) = part.split_once('*') else { return vec![folder.join(part)] };
    let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let is_meant = |name: &String| name.strip_prefix(before).is_some_and(|rest| rest.ends_with(after));
    let mut names: Vec<String> = names.filter(is_meant).collect();
    names.sort();
    names.into_iter().map(|name| folder.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{Cli, Command};
    use crate::output::Screen;
    use clap::Parser;
    use offpath::logs::{LogItem, LogReader};

    /// A machine's files are read as if `grep` had printed them, each with its time.
    #[test]
    fn counters_of_a_machine_are_read() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |file: &str, value: &str| {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, value).expect("a file");
        };
        put("sys/class/infiniband/nic_0/ports/1/counters/port_xmit_data", "12\n");
        put("sys/class/infiniband/nic_0/ports/1/hw_counters/rx_read_requests", "7\n");
        put("sys/class/net/eth0/statistics/rx_bytes", "5\n");
        put("sys/class/hwmon/hwmon0/pcie0/IN_P_PKT_CNT", "0x1f\n");
        put("sys/class/hwmon/hwmon0/pcie0/event_list", "0x0: IN_P_PKT_CNT\n");
        put("sys/class/hwmon/hwmon1/temp1_input", "41000\n");
        let text = reading(root.path(), Duration::from_secs(1));
        let found: Vec<f64> = LogReader::new(text.as_bytes())
            .map(|item| match item.expect("it is in memory") {
                LogItem::Measurement(figure) => {
                    assert!(figure.conditions.more.contains_key("read_at_ns"), "{text}");
                    figure.figure.value()
                }
                LogItem::Remark(remark) => panic!("{}: {}", remark.text, remark.why),
            })
            .collect();
        assert_eq!(found, [12.0, 7.0, 5.0, 31.0], "{text}");
    }

    /// A card that goes away while it is watched is no card that agrees, also where it comes back.
    #[test]
    fn a_card_that_is_gone_agrees_with_nothing() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("sys/class/infiniband/nic_0/ports/1/hw_counters");
        let put = |count: u64| {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join("rx_read_requests"), format!("{count}\n")).expect("a file");
        };
        let plan = root.path().join("plan.json");
        let design = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/store.toml");
        let mut request = offpath::answers::plan::PlanRequest { design: design.into(), ..Default::default() };
        request.seed = 1;
        let answers = offpath::answers::plan::plan(&request).unwrap_or_else(|why| panic!("{why:?}"));
        let offpath::answers::plan::PlanAnswers::One(answer) = answers else { panic!("it is one design") };
        std::fs::write(&plan, serde_json::to_string(&answer).expect("JSON")).expect("a file");
        let per_request = answer.traffic.endpoints.iter().find(|one| one.endpoint == "host").expect("a host");
        let step = (answer.traffic.req_per_s * per_request.reads_per_request) as u64;
        // What is shown is read as often as this.
        let told = |gone: std::ops::Range<u64>, read: usize| {
            let plan = plan.display().to_string();
            let cli = Cli::parse_from(["offpath", "watch", "--expect", &plan, "--count", "4"]);
            let Command::Watch(options) = &cli.command else { panic!("it is asked for") };
            let context = Context { system: cli.system.clone(), screen: Screen::new(cli.output) };
            let request = WatchRequest { expect: plan.into(), ..WatchRequest::default() };
            let turn = std::cell::Cell::new(0u64);
            put(1 << 33);
            let now = || Duration::from_secs(1_700_000_000 + turn.get());
            let mut shown = 0;
            let show = |_: &str| {
                shown += 1;
                Ok(shown <= read)
            };
            let pause = |_| {
                turn.set(turn.get() + 1);
                let _ = std::fs::remove_dir_all(root.path().join("sys"));
                if !gone.contains(&turn.get()) {
                    put((1 << 33) + turn.get() * step);
                }
            };
            let met = live(options, &request, &context, root.path(), now, pause, show);
            (met.unwrap_or_else(|why| panic!("{why:?}")), turn.get())
        };
        assert_eq!(told(9..9, 9), (true, 4), "it stays");
        assert!(!told(3..9, 9).0, "it goes");
        assert!(!told(2..3, 9).0, "it comes back");
        // Whoever reads the head alone, as `head -1` does, is gone when the first interval comes.
        assert_eq!(told(9..9, 1), (true, 1));
        assert_eq!(told(9..9, 0), (true, 0));
    }
}
