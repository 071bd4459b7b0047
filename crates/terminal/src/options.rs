//! Options that several commands share, and how their values are read.

use crate::failure::Failure;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use offpath_profile::{Library, System, SystemRequest};
use offpath_quantity::{Bytes, Time, whole_within};
use offpath_route::{Posting, VERBS, Verb};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Which system is meant: what is changed in it, and where profiles are found.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "System")]
pub struct SystemOptions {
    /// Change a number of the system, as in `soc.pcie_mtu=512B`; may be given several times
    #[arg(long, global = true, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Apply an overlay by name or from a .toml file, before `--set`; may be given several times
    #[arg(long, global = true, value_name = "NAME|FILE")]
    pub overlay: Vec<String>,
    /// The testbed the device stands in, by name or from a .toml file [default: the device's own]
    #[arg(long, global = true, value_name = "NAME|FILE")]
    pub testbed: Option<String>,
    /// The card's mode: separated-host, embedded-cpu or nic [default: the device's own]
    #[arg(long, global = true)]
    pub mode: Option<String>,
    /// A directory whose devices/, hosts/, testbeds/ and overlays/ extend the built-in profiles
    #[arg(long, global = true, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
}

/// Refuses an option that says the same thing twice: only one of two values could hold.
///
/// # Errors
/// Where a name is given twice.
pub fn check_once<'n>(option: &str, names: impl Iterator<Item = &'n str>) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    match { names }.find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(twice) => Err(Failure::input(format!("`{option}` gives `{twice}` twice"), "keep one of them")),
    }
}

impl SystemOptions {
    /// The profiles to choose from.
    ///
    /// # Errors
    /// Where a profile cannot be read, and where one number is set twice.
    pub fn library(&self) -> Result<Library, Failure> {
        check_once("--set", self.set.iter().map(|set| set.split('=').next().unwrap_or_default().trim()))?;
        check_once("--overlay", self.overlay.iter().map(String::as_str))?;
        Ok(match &self.profiles {
            Some(directory) => Library::with_directory(directory)?,
            None => Library::builtin(),
        })
    }

    /// What is changed in the system, as it is written on a command line; `profiles` is no change.
    pub fn arguments(&self) -> Vec<String> {
        let several = |name: &'static str, values: &[String]| -> Vec<String> {
            values.iter().flat_map(|value| [name.to_string(), value.clone()]).collect()
        };
        let one = |name: &'static str, value: &Option<String>| several(name, value.as_slice());
        [
            several("--set", &self.set),
            several("--overlay", &self.overlay),
            one("--testbed", &self.testbed),
            one("--mode", &self.mode),
        ]
        .concat()
    }

    /// The folder that profiles are read from besides the built-in ones, as it is written on a command line.
    pub fn profiles_arguments(&self) -> Vec<String> {
        let folders = self.profiles.iter();
        folders.flat_map(|folder| ["--profiles".to_string(), folder.display().to_string()]).collect()
    }

    /// Refuses what would change a system, for a command that asks about none. `profiles` says whether it
    /// reads profiles.
    pub fn refuse(&self, command: &str, profiles: bool) -> Result<(), Failure> {
        let given = [
            (!self.set.is_empty(), "--set"),
            (!self.overlay.is_empty(), "--overlay"),
            (self.testbed.is_some(), "--testbed"),
            (self.mode.is_some(), "--mode"),
            (self.profiles.is_some() && !profiles, "--profiles"),
        ];
        match given.iter().find(|(given, _)| *given) {
            None => Ok(()),
            Some((_, option)) => Err(Failure::input(
                format!("{option} has no effect on `offpath {command}`"),
                "leave it out; it says which system a command about a device or a design is about, such as `plan`, `path` or `calibrate`",
            )),
        }
    }

    /// Loads a device with everything that the options change. `more` are settings applied last.
    pub fn load(&self, library: &Library, device: &str, more: &[String]) -> Result<System, Failure> {
        Ok(library.load(&SystemRequest {
            device,
            testbed: self.testbed.as_deref(),
            mode: self.mode.as_deref(),
            overlays: self.overlay.iter().map(String::as_str).collect(),
            settings: self.set.iter().chain(more).cloned().collect(),
            ..SystemRequest::default()
        })?)
    }

    /// The same for a command about runs of a benchmark, which are taken to be between two machines with the device where no
    /// testbed is named.
    pub fn between_two(&self, library: &Library, device: &str) -> Result<SystemOptions, Failure> {
        let testbed = match &self.testbed {
            Some(named) => Some(named.clone()),
            None => library.pair_of(device)?,
        };
        Ok(SystemOptions { testbed, ..self.clone() })
    }
}

/// Words of a command as a shell takes them, each after a blank.
pub fn as_shell_words(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@".contains(c);
    let quoted = |one: &String| match one.chars().all(is_plain) && !one.is_empty() {
        true => format!(" {one}"),
        false => format!(" '{}'", one.replace('\'', "'\\''")),
    };
    words.iter().map(quoted).collect()
}

/// The largest payload that the command line takes.
pub const LARGEST_PAYLOAD: Bytes = Bytes::new(1 << 30);

/// Reads a whole number within bounds.
pub fn whole<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = whole_within(text, least, most)?;
        T::try_from(number)
            .map_err(|_| format!("it has to be a whole number, and {number} is too large here"))
    }
}

/// Reads a time that is longer than none.
pub fn some_time(text: &str) -> Result<Time, String> {
    let time: Time = text.parse().map_err(|error: offpath_quantity::ParseError| error.to_string())?;
    if time == Time::ZERO { Err("it has to be longer than 0, as in `1 ms`".to_string()) } else { Ok(time) }
}

/// Reads the address of this machine that others connect to.
pub fn own_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write IP:PORT, as in `10.0.0.1:7000`; names are not looked up, and `0.0.0.0` stands for every address"
            .to_string()
    })
}

/// Reads a payload: a number with its unit, at most 1 GiB.
pub fn payload(text: &str) -> Result<Bytes, String> {
    if text.trim_start().starts_with('-') {
        return Err(format!("a payload is from 0 B to {LARGEST_PAYLOAD}"));
    }
    let size: Bytes = text.parse().map_err(|error: offpath_quantity::ParseError| error.to_string())?;
    if size > LARGEST_PAYLOAD {
        return Err(format!("a payload is at most {LARGEST_PAYLOAD}; split larger transfers into several"));
    }
    Ok(size)
}

/// Reads `single` or `batch:16`.
pub fn posting(text: &str) -> Result<Posting, String> {
    if text == "single" {
        return Ok(Posting::Single);
    }
    match text.strip_prefix("batch:").map(str::parse::<u32>) {
        Some(Ok(count)) if (1..=65_536).contains(&count) => Ok(Posting::Batch(count)),
        Some(_) => Err("a batch has 1 to 65536 requests, as in `batch:16`".to_string()),
        None => Err("write `single`, or `batch:16` for 16 requests behind one doorbell".to_string()),
    }
}

/// The text that [`posting`] reads.
pub fn posting_name(posting: Posting) -> String {
    match posting {
        Posting::Single => "single".to_string(),
        Posting::Batch(count) => format!("batch:{count}"),
    }
}

/// What a [`posting_name`] says of doorbells, as a reader is told it.
pub fn doorbells(posting: &str) -> String {
    match posting.strip_prefix("batch:") {
        Some(count) => format!("one doorbell for {count} WQEs"),
        None => "one doorbell per WQE".to_string(),
    }
}

/// Reads a verb; clap lists them and suggests the nearest.
pub fn verb() -> impl TypedValueParser<Value = Verb> {
    PossibleValuesParser::new(VERBS.map(|row| row.name))
        .map(|name| name.parse().expect("clap accepts these names alone"))
}
