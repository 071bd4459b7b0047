//! A copy of the workspace with mutants in it, and its build.

use crate::sites::{Site, sites};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What every crate with mutants gets: whether a mutant is on, or, to learn which tests come where, a
/// line in a file for each one that is asked about.
const SWITCH: &str = r#"
#[doc(hidden)]
#[allow(missing_docs, dead_code, clippy::all)]
pub mod offpath_mutant {
    use std::io::Write;
    use std::sync::{Mutex, OnceLock};
    enum Chosen { One(u32), Traced(String) }
    static CHOSEN: OnceLock<Chosen> = OnceLock::new();
    static SEEN: Mutex<std::collections::BTreeSet<u32>> = Mutex::new(std::collections::BTreeSet::new());
    #[inline]
    pub fn on(number: u32) -> bool {
        let chosen = CHOSEN.get_or_init(|| match std::env::var("OFFPATH_MUTANT_TRACE") {
            Ok(path) => Chosen::Traced(path),
            Err(_) => {
                let text = std::env::var("OFFPATH_MUTANT").unwrap_or_default();
                Chosen::One(text.parse().unwrap_or(0))
            }
        });
        match chosen {
            Chosen::One(one) => *one == number,
            Chosen::Traced(path) => {
                trace(path, number);
                false
            }
        }
    }
    #[cold]
    fn trace(path: &str, number: u32) {
        let mut seen = SEEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if seen.insert(number) {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let _ = file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
        }
    }
}
"#;

/// Which sites become mutants.
pub enum Draw {
    /// So many of all, by a seed.
    Sample {
        /// The seed.
        seed: u64,
        /// How many.
        count: usize,
    },
    /// All between these lines of these files.
    At(Vec<(PathBuf, usize, usize)>),
}

/// A mutant that is in the build.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What switches it on.
    pub number: usize,
    file: PathBuf,
    line: usize,
    what: String,
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// A crate and the sites of it that are mutants.
pub struct Crate {
    /// Its folder in `crates/`.
    pub name: String,
    files: Vec<(PathBuf, String)>,
    /// File and site, in the order in which they are drawn.
    drawn: Vec<(usize, Site)>,
    wanted: usize,
    /// Of `drawn`, those that do not compile.
    refused: BTreeSet<usize>,
    /// Of `drawn`, those that are in the build, with their numbers.
    chosen: BTreeMap<usize, usize>,
}

impl Crate {
    /// Those in the build, in the order of files and lines.
    pub fn mutants(&self) -> Vec<Mutant> {
        let mut all: Vec<(usize, usize, Mutant)> = self
            .chosen
            .iter()
            .map(|(&index, &number)| {
                let (file, site) = &self.drawn[index];
                let (line, what) = (site.line, site.what.clone());
                (*file, site.start, Mutant { number, file: self.files[*file].0.clone(), line, what })
            })
            .collect();
        all.sort_by_key(|(file, start, mutant)| (*file, *start, mutant.number));
        all.into_iter().map(|(_, _, mutant)| mutant).collect()
    }

    /// Takes the first sites that compile, as far as is known, and do not lie in one another.
    fn choose(&mut self, next: &mut usize) {
        let mut taken: Vec<usize> = Vec::new();
        for (index, (file, site)) in self.drawn.iter().enumerate() {
            if taken.len() == self.wanted {
                break;
            }
            let meets = taken.iter().any(|&other| {
                let (other_file, other) = &self.drawn[other];
                let same_begin = other.start == site.start && other.end == site.end;
                other_file == file && (same_begin || other.start < site.end && site.start < other.end)
            });
            if !self.refused.contains(&index) && !meets {
                taken.push(index);
            }
        }
        self.chosen.clear();
        for index in taken {
            self.chosen.insert(index, *next);
            *next += 1;
        }
    }

    /// A file with its mutants, and the bytes where each of them stands.
    fn text(&self, file: usize) -> (String, Vec<(usize, usize, usize)>) {
        let original = &self.files[file].1;
        let mut here: Vec<(usize, usize)> =
            self.chosen.iter().map(|(&index, &number)| (index, number)).collect();
        here.retain(|(index, _)| self.drawn[*index].0 == file);
        here.sort_by_key(|(index, _)| self.drawn[*index].1.start);
        let (mut text, mut at, mut places) = (String::new(), 0, Vec::new());
        for (index, number) in here {
            let site = &self.drawn[index].1;
            text.push_str(&original[at..site.start]);
            let begin = text.len();
            text.push_str(&site.text(&original[site.start..site.end], number));
            places.push((begin, text.len(), index));
            at = site.end;
        }
        text.push_str(&original[at..]);
        (text, places)
    }
}

/// Numbers from a seed (SplitMix64).
fn shuffle<T>(all: &mut [T], mut state: u64) {
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    };
    for index in (1..all.len()).rev() {
        all.swap(index, (next() % (index as u64 + 1)) as usize);
    }
}

/// The copy and where it is built.
pub struct Scratch {
    /// The copy's root.
    pub root: PathBuf,
    /// Cargo's folder for it.
    pub target: PathBuf,
    repository: PathBuf,
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

fn files_below(folder: &Path, leave_out: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(io(folder))? {
        entries.push(entry.map_err(io(folder))?.path());
    }
    entries.sort();
    for path in entries {
        if leave_out(&path) {
            continue;
        }
        if path.is_dir() {
            found.extend(files_below(&path, leave_out)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

fn write_if_other(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().expect("a file has a folder");
    fs::create_dir_all(folder).map_err(io(folder))?;
    fs::write(path, bytes).map_err(io(path))
}

impl Scratch {
    /// Copies the workspace that this tool stands in, and leaves what has not changed as it is, so that
    /// the next build is short.
    pub fn new(target: Option<PathBuf>) -> Result<Scratch, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let repository = here.join("../..").canonicalize().map_err(io(here))?;
        let below = repository.join("target/mutants");
        let scratch = Scratch {
            root: below.join("work"),
            target: match target {
                Some(target) => std::path::absolute(&target).map_err(io(&target))?,
                None => below.join("target"),
            },
            repository,
        };
        // Cargo tells crates of one folder structure apart by nothing else: either build would take what the
        // other one made for its own.
        if scratch.target == scratch.repository.join("target") {
            return Err("--target is where the workspace itself is built; name another directory".into());
        }
        let leave_out = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            name == "target" || name == ".git" || path.ends_with("tests/mutants")
        };
        let mut kept = BTreeSet::new();
        for path in files_below(&scratch.repository, &leave_out)? {
            let inside = path.strip_prefix(&scratch.repository).expect("it was found below").to_path_buf();
            let of_crates = ROOMS.iter().any(|room| inside.starts_with(room))
                && inside.extension().is_some_and(|kind| kind == "rs");
            // Sources come with their mutants; until then what an earlier run left stands.
            if !(of_crates && scratch.root.join(&inside).exists()) {
                write_if_other(&scratch.root.join(&inside), &fs::read(&path).map_err(io(&path))?)?;
            }
            kept.insert(inside);
        }
        for path in files_below(&scratch.root, &|_| false)? {
            if !kept.contains(path.strip_prefix(&scratch.root).expect("it was found below")) {
                fs::remove_file(&path).map_err(io(&path))?;
            }
        }
        Ok(scratch)
    }

    /// Reads a crate's sources and draws from their sites.
    pub fn read(&self, name: &str, draw: Draw) -> Result<Crate, String> {
        let folder = self.repository.join(folder_of(&self.repository, name)).join("src");
        if !folder.join("lib.rs").is_file() {
            return Err(format!(
                "`{name}` has no src/lib.rs in {}; name a folder there that is a library",
                ROOMS.join("/ or ") + "/"
            ));
        }
        // Programs are other crates than the library, with roots of their own.
        let programs = |path: &Path| path == folder.join("main.rs") || path == folder.join("bin");
        let mut files = Vec::new();
        let mut all: Vec<(usize, Site)> = Vec::new();
        for path in files_below(&folder, &programs)? {
            if path.extension().is_none_or(|kind| kind != "rs") {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(io(&path))?;
            let inside = path.strip_prefix(&self.repository).expect("it was found below").to_path_buf();
            let found = sites(&text).map_err(|error| format!("{}: {error}", inside.display()))?;
            all.extend(found.into_iter().map(|site| (files.len(), site)));
            files.push((inside, text));
        }
        let wanted = match draw {
            Draw::Sample { seed, count } => {
                shuffle(&mut all, seed);
                count
            }
            Draw::At(places) => {
                all.retain(|(file, site)| {
                    places.iter().any(|(path, first, last)| {
                        *path == files[*file].0 && (*first..=*last).contains(&site.line)
                    })
                });
                // Those in others stand first, so that most find room.
                all.sort_by_key(|(file, site)| (site.end - site.start, *file, site.start));
                all.len()
            }
        };
        let (refused, chosen) = (BTreeSet::new(), BTreeMap::new());
        Ok(Crate { name: name.to_string(), files, drawn: all, wanted, refused, chosen })
    }

    /// Writes all sources with their mutants, and leaves out what does not compile until the rest does.
    pub fn build(&self, crates: &mut [Crate]) -> Result<(), String> {
        for round in 0.. {
            let mut next = 1;
            for one in crates.iter_mut() {
                one.choose(&mut next);
            }
            self.write(crates)?;
            let errors = self.check(crates)?;
            if errors.is_empty() {
                eprintln!("{} mutants compile", next - 1);
                return Ok(());
            }
            let mut dropped = 0;
            for one in crates.iter_mut() {
                dropped += drop_refused(one, &errors);
            }
            eprintln!("round {round}: {} errors, {dropped} mutants left out", errors.len());
            if dropped == 0 {
                let text: Vec<String> = errors.into_iter().map(|error| error.text).collect();
                return Err(format!("the copy does not compile, mutants or not:\n{}", text.join("\n")));
            }
        }
        unreachable!("every round leaves a mutant out")
    }

    fn write(&self, crates: &[Crate]) -> Result<(), String> {
        let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
        for one in crates {
            for (index, (path, _)) in one.files.iter().enumerate() {
                let mut text = one.text(index).0;
                if path.ends_with("src/lib.rs") {
                    text.push_str(SWITCH);
                }
                texts.insert(path.clone(), text);
            }
        }
        for room in ROOMS {
            for path in files_below(&self.repository.join(room), &|path| path.ends_with("target"))? {
                let inside = path.strip_prefix(&self.repository).expect("it was found below").to_path_buf();
                match texts.get(&inside) {
                    Some(text) => write_if_other(&self.root.join(&inside), text.as_bytes())?,
                    None => write_if_other(&self.root.join(&inside), &fs::read(&path).map_err(io(&path))?)?,
                }
            }
        }
        Ok(())
    }

    /// What cargo would set for programs that it runs: the table `env` of its configuration.
    pub fn environment(&self) -> Vec<(String, String)> {
        let text = fs::read_to_string(self.root.join(".cargo/config.toml")).unwrap_or_default();
        let own = text.lines().skip_while(|line| line.trim() != "[env]").skip(1);
        own.take_while(|line| !line.starts_with('['))
            .filter_map(|line| {
                let (key, value) = line.split_once('=')?;
                Some((key.trim().to_string(), value.trim().trim_matches('"').to_string()))
            })
            .collect()
    }

    /// Cargo in the copy.
    pub fn cargo(&self, words: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        // A mutant that overflows or divides by zero is a fault for the tests to find, not for the compiler, which
        // refuses it only after `cargo check` let it pass.
        let flags =
            std::env::var("RUSTFLAGS").unwrap_or_default() + " -Aarithmetic_overflow -Aunconditional_panic";
        command.args(words).current_dir(&self.root);
        command.env("CARGO_TARGET_DIR", &self.target).env("RUSTFLAGS", flags);
        command
    }

    /// The messages of a build, of which errors of the compiler are some.
    fn messages(&self, words: &[&str]) -> Result<(bool, Vec<Value>, String), String> {
        let output = self.cargo(words).output().map_err(|error| format!("cargo does not run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let messages = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok((output.status.success(), messages, String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    fn check(&self, crates: &[Crate]) -> Result<Vec<Refusal>, String> {
        let packages: Vec<String> = crates.iter().map(|one| package(&one.name)).collect();
        let mut words = vec!["check", "--release", "--lib", "--keep-going", "--message-format=json"];
        words.extend(packages.iter().map(String::as_str));
        let (built, messages, told) = self.messages(&words)?;
        let mut refusals: Vec<Refusal> = messages
            .iter()
            .filter(|message| {
                message["reason"] == "compiler-message" && message["message"]["level"] == "error"
            })
            .map(|message| Refusal::of(&message["message"]))
            .collect();
        refusals.retain(|refusal| !refusal.spans.is_empty());
        if !built && refusals.is_empty() {
            return Err(format!("cargo check failed:\n{told}"));
        }
        Ok(refusals)
    }

    /// The test programs of a crate, built.
    pub fn tests(&self, name: &str) -> Result<Vec<PathBuf>, String> {
        let words = ["test", "--release", "--no-run", "--tests", "--message-format=json", &package(name)];
        let (built, messages, told) = self.messages(&words)?;
        if !built {
            return Err(format!("the tests of {name} do not build:\n{told}"));
        }
        let is_test = |message: &&Value| message["profile"]["test"] == true;
        let programs = messages.iter().filter(is_test).filter_map(|message| message["executable"].as_str());
        Ok(programs.map(PathBuf::from).collect())
    }

    /// The crates that use `name`, directly or not, the nearest first.
    pub fn above(&self, name: &str) -> Result<Vec<String>, String> {
        let output = self
            .cargo(&["metadata", "--no-deps", "--format-version=1"])
            .output()
            .map_err(|error| format!("cargo does not run: {error}"))?;
        let metadata: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
        let folder = |package: &Value| -> String {
            let manifest = package["manifest_path"].as_str().unwrap_or_default();
            let folder = Path::new(manifest).parent().and_then(Path::file_name).unwrap_or_default();
            folder.to_string_lossy().into_owned()
        };
        let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            for dependency in package["dependencies"].as_array().into_iter().flatten() {
                if let Some(path) = dependency["path"].as_str() {
                    let used = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
                    users.entry(used).or_default().insert(folder(package));
                }
            }
        }
        let (mut found, mut at) = (vec![name.to_string()], 0);
        while at < found.len() {
            for user in users.get(&found[at]).into_iter().flatten() {
                if !found.contains(user) {
                    found.push(user.clone());
                }
            }
            at += 1;
        }
        Ok(found.split_off(1))
    }
}

/// The folders that have our crates in them.
const ROOMS: [&str; 2] = ["crates", "services"];

/// Where a crate is, from the repository's root.
pub fn folder_of(repository: &Path, name: &str) -> PathBuf {
    let rooms = ROOMS.map(|room| Path::new(room).join(name));
    let found = rooms.iter().find(|folder| repository.join(folder).is_dir());
    found.unwrap_or(&rooms[0]).clone()
}

/// How cargo is told of the crate in folder `name`.
fn package(name: &str) -> String {
    if name == "offpath" { "-poffpath".into() } else { format!("-poffpath-{name}") }
}

/// An error of the compiler: file and bytes, those that it is about before those that it also names.
struct Refusal {
    spans: Vec<(PathBuf, usize, usize)>,
    text: String,
}

impl Refusal {
    fn of(message: &Value) -> Refusal {
        let mut spans = Vec::new();
        for primary in [true, false] {
            for span in message["spans"].as_array().into_iter().flatten() {
                if span["is_primary"] == primary {
                    let at = |key: &str| span[key].as_u64().unwrap_or(0) as usize;
                    let file = PathBuf::from(span["file_name"].as_str().unwrap_or_default());
                    spans.push((file, at("byte_start"), at("byte_end")));
                }
            }
        }
        Refusal { spans, text: message["rendered"].as_str().unwrap_or_default().to_string() }
    }
}

/// Marks what errors point at as refused: the mutant around the place, else those in it, else the last
/// one before it, which is where a type was first taken to be another.
fn drop_refused(one: &mut Crate, errors: &[Refusal]) -> usize {
    let mut refused = BTreeSet::new();
    for error in errors {
        for (file, start, end) in &error.spans {
            let Some(index) = one.files.iter().position(|(path, _)| path == file) else { continue };
            let places = one.text(index).1;
            let around: Vec<usize> = places
                .iter()
                .filter(|(begin, until, _)| begin <= start && end <= until)
                .map(|(_, _, index)| *index)
                .collect();
            let inside: Vec<usize> = places
                .iter()
                .filter(|(begin, until, _)| start <= begin && until <= end)
                .map(|(_, _, index)| *index)
                .collect();
            let before = places.iter().rfind(|(begin, _, _)| begin <= start).map(|(_, _, index)| *index);
            let found = if !around.is_empty() {
                around
            } else if !inside.is_empty() {
                inside
            } else {
                before.into_iter().collect()
            };
            if !found.is_empty() {
                refused.extend(found);
                break;
            }
        }
    }
    let before = one.refused.len();
    one.refused.extend(refused);
    one.refused.len() - before
}
