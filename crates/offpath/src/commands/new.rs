//! `offpath new`: a commented design to start from.

use super::Context;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use offpath::plan::{Changes, Design, Setting, prepare};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath new store                                   a key-value store, in store.toml
  offpath new log --kind replication
  offpath new store --device my-card.toml --out designs/store.toml";

const KEY_VALUE: &str = include_str!("../templates/kv.toml");
const REPLICATION: &str = include_str!("../templates/replication.toml");
/// What every design's alternatives are made of.
const STEPS: &str = include_str!("../templates/steps.txt");
const WORKLOAD: &str = include_str!("../../../../workloads/workloadc");

/// Write a commented design that plans as it stands, to be changed into your own
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The design's name: letters, digits, `-` and `_`
    name: String,
    /// What to start from
    #[arg(long, value_enum, default_value_t = Kind::Kv)]
    kind: Kind,
    /// The device to plan for, by name or from a .toml file
    #[arg(long, value_name = "NAME|FILE", default_value = "bluefield2")]
    device: String,
    /// Where to write it; nothing is overwritten [default: NAME.toml]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What a design starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A key-value store with a YCSB workload
    Kv,
    /// Replication of a log to a backup
    Replication,
}

/// Writes the design, and its workload where it has one.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if options.name.is_empty() || !options.name.chars().all(fits) {
        return Err(Failure::input(
            format!("`{}` is no name for a design", options.name),
            "use letters, digits, `-` and `_`; `--out` says where the file goes",
        ));
    }
    let file = options.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.toml", options.name)));
    let workload = (options.kind == Kind::Kv).then(|| file.with_extension("workload"));
    let files = Files::write(options, &file, workload.as_deref())?;
    let setting = Setting {
        library: context.system.library()?,
        overlays: context.system.overlay.clone(),
        settings: context.system.set.clone(),
        testbed: context.system.testbed.clone(),
        mode: context.system.mode.clone(),
        mechanism: None,
    };
    let planned = Design::load(&file, &Changes::default()).and_then(|design| prepare(&design, &setting));
    // Most devices lack some path of the template; a file that does not plan would be no start.
    planned.map_err(|error| {
        Failure::from(error.wrap_err(format!(
            "the template does not fit the device `{}`, and nothing is written",
            options.device
        )))
    })?;
    files.keep();
    let shown = file.display();
    let mut text = format!("wrote {shown}\n");
    if let Some(workload) = &workload {
        text += &format!("wrote {}, the requests of YCSB's workload C\n", workload.display());
    }
    text += &format!(
        "next:\n  offpath plan {shown}\n    plans it as it stands\n  offpath path {}\n    lists the paths that its steps \
         may use\nThen change the file from top to bottom: its comments explain every key.\n",
        options.device
    );
    context.screen.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Files that are taken away again unless they are kept.
struct Files {
    written: Vec<PathBuf>,
}

impl Files {
    fn write(options: &Options, file: &Path, workload: Option<&Path>) -> Result<Files, Failure> {
        let template = match options.kind {
            Kind::Kv => KEY_VALUE,
            Kind::Replication => REPLICATION,
        };
        let beside = workload.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let text = template
            .replace("@STEPS@\n", STEPS)
            .replace("@NAME@", &quoted(&options.name))
            .replace("@DEVICE@", &quoted(&options.device))
            .replace("@WORKLOAD@", &quoted(&beside))
            .replace("@FILE@", &file.display().to_string().replace(char::is_control, " "));
        let mut files = Files { written: Vec::new() };
        files.create(file, &text)?;
        if let Some(workload) = workload {
            files.create(workload, WORKLOAD)?;
        }
        Ok(files)
    }

    fn create(&mut self, file: &Path, text: &str) -> Result<(), Failure> {
        let written = OpenOptions::new().write(true).create_new(true).open(file).and_then(|mut open| {
            self.written.push(file.to_path_buf());
            open.write_all(text.as_bytes())
        });
        written.map_err(|error| {
            if error.kind() == std::io::ErrorKind::AlreadyExists {
                Failure::input(
                    format!("`{}` exists already, and nothing is overwritten", file.display()),
                    "choose another name, or say where to write with `--out FILE`",
                )
            } else {
                Failure::input(
                    format!("`{}` cannot be written: {error}", file.display()),
                    "choose a folder that exists with `--out FILE`",
                )
            }
        })
    }

    fn keep(mut self) {
        self.written.clear();
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for file in &self.written {
            // The reason for giving up is reported; a file that stays behind is the lesser news.
            let _ = std::fs::remove_file(file);
        }
    }
}

/// A string as TOML writes it.
fn quoted(text: &str) -> String {
    // JSON's escapes are a part of TOML's.
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use offpath::profile::Library;

    #[test]
    fn every_kind_compiles_as_written_and_overwrites_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        for kind in [Kind::Kv, Kind::Replication] {
            let options =
                Options { name: "own".to_string(), kind, device: "bluefield2".to_string(), out: None };
            let file = folder.path().join(format!("{kind:?}.toml"));
            let workload = file.with_extension("workload");
            let beside = (kind == Kind::Kv).then_some(workload.as_path());
            Files::write(&options, &file, beside).expect("a new file").keep();
            let setting = Setting {
                library: Library::builtin(),
                overlays: vec![],
                settings: vec![],
                testbed: None,
                mode: None,
                mechanism: None,
            };
            let design = Design::load(&file, &Changes::default()).expect("a design");
            assert_eq!(prepare(&design, &setting).expect("it compiles").len(), design.alternatives.len());
            assert!(Files::write(&options, &file, beside).is_err(), "nothing is overwritten");
            assert!(file.exists() && workload.exists() == beside.is_some());
        }
    }
}
