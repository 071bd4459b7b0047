//! `offpath new`: a commented design, or a device, to start from.

use super::{Context, answer};
use crate::failure::Failure;
use crate::output::unwritable;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand};
use offpath::answers::machine::{MachineRequest, NewDeviceAnswer, NewDeviceDraft};
use offpath::apps::Shipped;
use offpath::apps::system::{Registry, Template};
use offpath::plan::{Changes, Design, Setting, prepare, shipped};
use offpath::profile::{Library, Number, Provenance, SystemRequest};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  offpath new store                                   a key-value store, in store.toml
  offpath new log --kind replication
  offpath new store --device my-card.toml --out designs/store.toml
  offpath new device my-card --base bluefield2        a card, in my-card.toml

A design that is to be called `device` is written by `offpath new -- device`.";

const DEVICE_EXAMPLES: &str = "\
Examples:
  offpath new device my-card                          every number blank, with what it is
  offpath new device my-card --base bluefield2        numbers of another card, marked as carried over
  offpath new device my-card --base connectx7 --from lspci.txt,ibv_devinfo.txt,lscpu.txt
                                                      what the machine itself says in their place; my-card-host.toml too
  offpath plan designs/kv-ycsb-c.toml --device my-card.toml";

/// What every design's alternatives are made of.
const STEPS: &str = include_str!("../templates/steps.txt");

/// Write a commented design that plans as it stands, to be changed into your own; or describe a device
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true)]
pub struct Options {
    #[command(subcommand)]
    other: Option<Other>,
    /// The design's name: letters, digits, `-` and `_`
    #[arg(required = true)]
    name: Option<String>,
    /// What to start from
    #[arg(long, value_parser = PossibleValuesParser::new(kinds()), default_value = templates()[0].kind)]
    kind: String,
    /// The device to plan for, by name or from a .toml file
    #[arg(long, value_name = "NAME|FILE", default_value = "bluefield2")]
    device: String,
    /// Where to write it; nothing is overwritten [default: NAME.toml]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What else than a design can be begun.
#[derive(Subcommand, Debug)]
enum Other {
    Device(DeviceOptions),
}

/// Write a device's file: complete, each number with what it is, its unit and range
///
/// Without --base every number is blank, and the file is refused until all are filled in. With it, the numbers are those
/// of another device, marked as carried over: guesses with an interval.
#[derive(Args, Debug)]
#[command(after_help = DEVICE_EXAMPLES)]
struct DeviceOptions {
    /// The device's name: letters, digits, `-` and `_`
    #[arg(id = "new_device", value_name = "NAME")]
    name: String,
    /// The device whose tables and numbers it starts with, by name or from a .toml file
    #[arg(long, value_name = "NAME|FILE")]
    base: Option<String>,
    /// What the card's machine says of itself: files of `lspci -vvv`, `ibv_devinfo -v`, `lscpu` and others, or an archive
    /// of `offpath collect`. Its host and a pair of such machines are written too
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    from: Vec<PathBuf>,
    /// The card's address, where the files list several, as in `3b:00.0`
    #[arg(long, value_name = "ADDRESS", requires = "from")]
    card: Option<String>,
    /// Where to write it; nothing is overwritten [default: NAME.toml]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What a design may start from.
fn templates() -> Vec<Template> {
    Shipped::all().into_iter().filter_map(|about| about.template).collect()
}

fn kinds() -> Vec<PossibleValue> {
    templates().iter().map(|one| PossibleValue::new(one.kind).help(one.documentation)).collect()
}

fn template(kind: &str) -> Template {
    templates().into_iter().find(|one| one.kind == kind).expect("clap accepts these names alone")
}

/// Writes the device; or the design, and its workload where it has one.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    if let Some(Other::Device(options)) = &options.other {
        return device(options, context);
    }
    let name = options.name.as_deref().unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(fits) {
        return Err(Failure::input(
            format!("`{name}` is not a name for a design"),
            "use letters, digits, `-` and `_`; `--out` says where the file goes",
        ));
    }
    context.system.refuse("new", true)?;
    let file = options.out.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.toml")));
    let template = template(&options.kind);
    let workload = template.workload.map(|(_, what)| (file.with_extension("workload"), what));
    let beside = workload.as_ref().map(|(file, _)| file.as_path());
    let library = context.system.library()?;
    // What the template calls the card's processor is what the device calls it; what is wrong with a device is said
    // where the design is planned.
    let system = context.system.load(&library, &options.device, &[]);
    let card = system.ok().and_then(|system| Some(system.role_endpoint("soc").ok()?.1.name.clone()));
    let card = card.as_deref().unwrap_or("soc");
    let files = Files::write(options, &template, name, card, &file, beside)?;
    let setting = Setting::plain(library);
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
    if let Some((workload, what)) = &workload {
        text += &format!("wrote {}, {what}\n", workload.display());
    }
    text += &format!(
        "next:\n  offpath plan {shown}\n    plans it as it stands\n  offpath path {}\n    lists the paths that its steps \
         may use\nThen change the file from top to bottom: its comments explain every key.\n",
        options.device
    );
    context.screen.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the file of a device; what is carried over has to load from where it is written.
fn device(options: &DeviceOptions, context: &Context) -> Result<ExitCode, Failure> {
    context.system.refuse("new device", true)?;
    let library = context.system.library()?;
    let file = options.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.toml", options.name)));
    let shown = file.display();
    let asked = shown.to_string();
    if !asked.ends_with(".toml") {
        return Err(Failure::input(
            format!("`{asked}` does not end in `.toml`"),
            "devices are named by the path of a .toml file; give one to `--out`",
        ));
    }
    if !options.from.is_empty() {
        return described(options, context, &library, &file, &asked);
    }
    let text = library.draft(&options.name, options.base.as_deref())?;
    let mut files = Files::default();
    files.create(&file, &text)?;
    let next = match &options.base {
        None => {
            format!(
                "  offpath device show {shown}\n    names what is still blank, and refuses the file until nothing is\n"
            )
        }
        Some(base) => {
            let system = library.load(&SystemRequest { device: &asked, ..SystemRequest::default() })?;
            let own = || system.numbers.values().filter(|number| number.file == asked);
            let origins: BTreeSet<&str> = own().map(|number| number.key.as_str()).collect();
            let is_carried = |number: &&Arc<Number>| number.provenance == Provenance::CarriedOver;
            let carried: BTreeSet<&str> =
                own().filter(is_carried).map(|number| number.key.as_str()).collect();
            format!(
                "  {} of its {} numbers are carried over from {base}: guesses, until you replace them\n  offpath device \
                 show {shown}\n    shows each with its interval and source\n  offpath plan DESIGN --device {shown}\n    \
                 plans with them, and says which to measure first\n",
                carried.len(),
                origins.len()
            )
        }
    };
    files.keep();
    context.screen.emit(&format!("wrote {shown}\nnext:\n{next}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the device and the host that its machine describes.
fn described(
    options: &DeviceOptions,
    context: &Context,
    library: &Library,
    file: &Path,
    asked: &str,
) -> Result<ExitCode, Failure> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let host = format!("{stem}-host.toml");
    let request = MachineRequest { from: options.from.clone(), card: options.card.clone() };
    let draft = NewDeviceDraft::of(&request, library, &options.name, options.base.as_deref(), &host)?;
    let beside = file.with_file_name(&host);
    let mut files = Files::default();
    files.create(file, &draft.draft.device)?;
    files.create(&beside, &draft.draft.host)?;
    let found = draft.answer(library, [asked.to_string(), beside.display().to_string()])?;
    let text = answer(&found, context, NewDeviceAnswer::text)?;
    files.keep();
    context.screen.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Files that are taken away again unless they are kept.
#[derive(Default)]
struct Files {
    written: Vec<PathBuf>,
}

impl Files {
    /// Writes the design's file, which calls the card's processor `card`, and its workload's.
    fn write(
        options: &Options,
        template: &Template,
        name: &str,
        card: &str,
        file: &Path,
        workload: Option<&Path>,
    ) -> Result<Files, Failure> {
        let beside = workload.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let text = template
            .text
            .replace("@STEPS@\n", STEPS)
            .replace("@SOC@", card)
            .replace("@NAME@", &quoted(name))
            .replace("@DEVICE@", &quoted(&options.device))
            .replace("@WORKLOAD@", &quoted(&beside))
            .replace("@FILE@", &file.display().to_string().replace(char::is_control, " "));
        let mut files = Files::default();
        files.create(file, &text)?;
        if let Some((workload, (shipped, _))) = workload.zip(template.workload) {
            files.create(workload, shipped::workload(shipped).expect("a template names what is shipped"))?;
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
                unwritable(file, &error)
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

    #[test]
    fn every_kind_compiles_as_written_and_overwrites_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(templates().len() > 1);
        for template in templates() {
            let kind = template.kind.to_string();
            let device = "bluefield2".to_string();
            let options = Options { other: None, name: Some("own".to_string()), kind, device, out: None };
            let file = folder.path().join(format!("{}.toml", template.kind));
            let workload = file.with_extension("workload");
            let beside = template.workload.map(|_| workload.as_path());
            Files::write(&options, &template, "own", "soc", &file, beside).expect("a new file").keep();
            let setting = Setting::plain(Library::builtin());
            let design = Design::load(&file, &Changes::default()).expect("a design");
            assert_eq!(prepare(&design, &setting).expect("it compiles").len(), design.alternatives.len());
            assert!(
                Files::write(&options, &template, "own", "soc", &file, beside).is_err(),
                "nothing is overwritten"
            );
            assert!(file.exists() && workload.exists() == beside.is_some());
        }
    }
}
