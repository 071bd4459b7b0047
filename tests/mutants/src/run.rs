//! Test programs, and which mutant each of them notices.

use crate::build::{Scratch, folder_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// What a program may take beside five times of what it takes unbroken: the machine may be busy.
const GRACE: Duration = Duration::from_secs(30);

/// How a mutant was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// A test failed.
    Failed,
    /// A test did not end.
    Hung,
}

impl fmt::Display for Caught {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Caught::Failed => "by a test of",
            Caught::Hung => "by hanging in",
        })
    }
}

/// A test program as it is without a mutant.
struct Program {
    path: PathBuf,
    /// How long it takes.
    takes: Duration,
    /// Tests that fail without a mutant, too, and say nothing.
    failing: Vec<String>,
    /// Mutants that it comes by.
    reaches: BTreeSet<usize>,
}

/// Runs test programs.
pub struct Runner<'a> {
    scratch: &'a Scratch,
    programs: BTreeMap<String, Vec<Program>>,
}

/// How a run ended.
struct Ended {
    passed: bool,
    hung: bool,
    failed: Vec<String>,
}

/// Ends a program and all that it started.
fn end(child: &mut Child) {
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    let _ = child.kill();
    let _ = child.wait();
}

impl Runner<'_> {
    /// None yet.
    pub fn new(scratch: &Scratch) -> Runner<'_> {
        Runner { scratch, programs: BTreeMap::new() }
    }

    /// Runs a program in its crate's folder. Where `first` is set, one failure is enough.
    fn run(
        &self,
        name: &str,
        path: &Path,
        arguments: &[String],
        variable: (&str, &str),
        most: Duration,
        first: bool,
    ) -> Result<Ended, String> {
        let folder = self.scratch.root.join(folder_of(&self.scratch.root, name));
        let mut command = Command::new(path);
        command.args(arguments).current_dir(&folder).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.env("CARGO_MANIFEST_DIR", &folder).env(variable.0, variable.1);
        command.envs(self.scratch.environment());
        // Nothing is written down for the next mutant.
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1").env("INSTA_UPDATE", "no");
        command.env("RUST_BACKTRACE", "0");
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", path.display()))?;
        let output = child.stdout.take().expect("it is piped");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let began = Instant::now();
        let mut failed = Vec::new();
        loop {
            match lines.recv_timeout(most.saturating_sub(began.elapsed())) {
                Ok(line) => {
                    let test = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
                    failed.extend(test.map(str::to_string));
                    if first && !failed.is_empty() {
                        end(&mut child);
                        return Ok(Ended { passed: false, hung: false, failed });
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    end(&mut child);
                    return Ok(Ended { passed: false, hung: true, failed });
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // It has closed its output, and may still not end.
        while began.elapsed() < most {
            if let Ok(Some(status)) = child.try_wait() {
                let passed = status.success();
                end(&mut child);
                return Ok(Ended { passed, hung: false, failed });
            }
            thread::sleep(Duration::from_millis(2));
        }
        end(&mut child);
        Ok(Ended { passed: false, hung: true, failed })
    }

    /// Builds the tests of a crate and runs them without a mutant, to learn what they take, where they
    /// come, and which fail anyway.
    pub fn prepare(&mut self, name: &str) -> Result<(), String> {
        if self.programs.contains_key(name) {
            return Ok(());
        }
        eprintln!("building the tests of {name}");
        let mut programs = Vec::new();
        for path in self.scratch.tests(name)? {
            let trace = self.scratch.target.join("mutants.trace");
            let _ = fs::remove_file(&trace);
            let began = Instant::now();
            let variable = ("OFFPATH_MUTANT_TRACE", &*trace.to_string_lossy());
            let most = Duration::from_secs(1800);
            let ended = self.run(name, &path, &[], variable, most, false)?;
            let takes = began.elapsed();
            if ended.hung || !ended.passed && ended.failed.is_empty() {
                eprintln!("{} ends badly without a mutant and is left out", path.display());
                continue;
            }
            for test in &ended.failed {
                eprintln!("{name}: `{test}` fails without a mutant and is left out");
            }
            let reaches = fs::read_to_string(&trace).unwrap_or_default();
            let reaches = reaches.lines().filter_map(|line| line.parse().ok()).collect();
            programs.push(Program { path, takes, failing: ended.failed, reaches });
        }
        programs.sort_by_key(|program| program.takes);
        self.programs.insert(name.to_string(), programs);
        Ok(())
    }

    /// Whether the tests of a crate notice a mutant; the quickest program is asked first, and only those
    /// that come by it.
    pub fn ask(&self, name: &str, mutant: usize) -> Result<Option<Caught>, String> {
        for program in self.programs.get(name).into_iter().flatten() {
            if !program.reaches.contains(&mutant) {
                continue;
            }
            let mut arguments = Vec::new();
            for test in &program.failing {
                arguments.extend(["--skip".to_string(), test.clone()]);
            }
            if !arguments.is_empty() {
                arguments.push("--exact".into());
            }
            let most = program.takes * 5 + GRACE;
            let number = mutant.to_string();
            let ended = self.run(name, &program.path, &arguments, ("OFFPATH_MUTANT", &number), most, true)?;
            if ended.hung {
                return Ok(Some(Caught::Hung));
            }
            if !ended.passed {
                return Ok(Some(Caught::Failed));
            }
        }
        Ok(None)
    }

    /// Whether any test that was run comes by a mutant.
    pub fn reached(&self, mutant: usize) -> bool {
        self.programs.values().flatten().any(|program| program.reaches.contains(&mutant))
    }
}
