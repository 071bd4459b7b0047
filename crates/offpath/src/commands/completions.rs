//! `offpath completions`: what a shell needs to complete the command line.

use super::Cli;
use crate::failure::Failure;
use crate::output::emit;
use clap::{Arg, Args, Command, CommandFactory, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use offpath::apps::Shipped;
use offpath::apps::system::{About, OptionKind, Registry};
use offpath::evidence::shipped;
use offpath::profile::{Category, Library, Number, System, SystemRequest};
use offpath::route::Router;
use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const EXAMPLES: &str = "\
Examples:
  offpath completions bash > ~/.local/share/bash-completion/completions/offpath
  offpath completions zsh > \"${fpath[1]}/_offpath\"
  offpath completions fish > ~/.config/fish/completions/offpath.fish

The script asks `offpath` itself, so devices, paths, numbers and rows are those of the program that is
installed, and of the profiles that `--profiles` names.";

/// Print the completions of a shell
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

/// The variable by which a shell's script asks for candidates.
const ASKED_BY: &str = "COMPLETE";

/// Prints the completions.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let shell: &dyn EnvCompleter = match options.shell {
        Shell::Bash => &Bash,
        Shell::Elvish => &Elvish,
        Shell::Fish => &Fish,
        Shell::Powershell => &Powershell,
        Shell::Zsh => &Zsh,
    };
    let mut script = Vec::new();
    shell
        .write_registration(ASKED_BY, "offpath", "offpath", "offpath", &mut script)
        .map_err(|error| Failure::input(format!("the script cannot be written: {error}"), ""))?;
    emit(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// The command line with what completes each of its values.
pub fn command() -> Command {
    completed(Cli::command())
}

fn completed(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|own| own.get_name().to_string()).collect();
    let parent = command.get_name().to_string();
    let command = command.mut_args(|argument| match candidates(&parent, &argument) {
        Some(completer) => argument.add(completer),
        None => argument,
    });
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, completed))
}

/// What completes an argument, by its name; options of one name mean the same in every command.
fn candidates(command: &str, argument: &Arg) -> Option<ArgValueCompleter> {
    let names = |find: fn(&Line) -> Vec<Candidate>| Some(ArgValueCompleter::new(Known { find, files: "" }));
    let or_file =
        |find: fn(&Line) -> Vec<Candidate>| Some(ArgValueCompleter::new(Known { find, files: ".toml" }));
    match argument.get_id().as_str() {
        "device" | "base" => or_file(|line| line.listed(Category::Device)),
        "testbed" => or_file(|line| line.listed(Category::Testbed)),
        "overlay" => or_file(|line| line.listed(Category::Overlay)),
        "design" => Some(ArgValueCompleter::new(Known { find: |_| Vec::new(), files: ".toml" })),
        "name" if command == "source" => {
            names(|line| Category::ALL.into_iter().flat_map(|category| line.listed(category)).collect())
        }
        "mode" => names(|line| line.modes()),
        "path" => names(Line::paths),
        "set" => names(Line::numbers),
        "goal" => names(|_| plain(["most-throughput", "least-host-cpu", "lowest-p99"])),
        "row" | "rows" => names(|_| evidence_rows()),
        "on" => names(|line| {
            let twins = line.listed(Category::Device).into_iter();
            let twins = twins.map(|(name, help)| (format!("twin:{name}"), help));
            plain(["local", "verbs"]).into_iter().chain(twins).collect()
        }),
        "inject_bug" => names(|line| plain(line.system().into_iter().flat_map(|about| about.bugs).copied())),
        option if names_alternatives(command, option) => {
            names(|line| plain(line.system().into_iter().flat_map(About::labels)))
        }
        _ => None,
    }
}

/// Whether an option of a system's command names an alternative of the system.
fn names_alternatives(command: &str, option: &str) -> bool {
    let all = Shipped::all().into_iter().filter(|about| about.name == command);
    let mut options = all.flat_map(|about| about.options);
    options.any(|own| own.name == option && own.kind == OptionKind::Alternative)
}

/// A candidate and what it stands for.
type Candidate = (String, String);

fn plain(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<Candidate> {
    names.into_iter().map(|name| (name.into(), String::new())).collect()
}

fn evidence_rows() -> Vec<Candidate> {
    let rows = shipped().unwrap_or_default();
    rows.into_iter().map(|row| (row.id, row.states)).collect()
}

/// What is known by name, and files of an ending beside it.
struct Known {
    find: fn(&Line) -> Vec<Candidate>,
    files: &'static str,
}

impl ValueCompleter for Known {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let begun = current.to_string_lossy();
        let found = (self.find)(&Line::asked()).into_iter().filter(|(name, _)| name.starts_with(&*begun));
        let mut all: Vec<CompletionCandidate> = found
            .map(|(name, help)| CompletionCandidate::new(name).help((!help.is_empty()).then(|| help.into())))
            .collect();
        if !self.files.is_empty() {
            let ending = self.files;
            let fits = move |path: &Path| path.to_string_lossy().ends_with(ending);
            all.extend(PathCompleter::file().filter(fits).complete(current));
        }
        all
    }
}

/// The line that is completed, as far as it matters for what fits.
struct Line {
    words: Vec<String>,
    library: Library,
}

impl Line {
    /// The words behind `--`, where a shell's script puts the line.
    fn asked() -> Line {
        let all = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let words: Vec<String> = all.skip_while(|word| word != "--").skip(1).collect();
        let own = value_of(&words, "--profiles");
        // A directory that cannot be read completes nothing of its own.
        let library = own.and_then(|directory| Library::with_directory(Path::new(&directory)).ok());
        Line { words, library: library.unwrap_or_else(Library::builtin) }
    }

    fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| word == name)
    }

    /// The system that the line names.
    fn system(&self) -> Option<&'static About> {
        Shipped::all().into_iter().find(|about| self.has(about.name))
    }

    fn listed(&self, category: Category) -> Vec<Candidate> {
        self.library.names(category).into_iter().map(|one| (one.name, one.description)).collect()
    }

    fn load(&self, device: &str) -> Option<System> {
        let testbed = value_of(&self.words, "--testbed");
        let mode = value_of(&self.words, "--mode");
        let request = SystemRequest {
            device,
            testbed: testbed.as_deref(),
            mode: mode.as_deref(),
            ..SystemRequest::default()
        };
        self.library.load(&request).ok()
    }

    /// The systems of the devices that the line names, or of all where it names none.
    fn systems(&self) -> Vec<System> {
        let known = self.library.names(Category::Device);
        let named = self.words.iter().filter_map(|word| {
            let word = word.strip_prefix("twin:").unwrap_or(word);
            let is_file = word.ends_with(".toml")
                && !["plan", "check", "compare"].iter().any(|command| self.has(command));
            (is_file || known.iter().any(|one| one.name == word)).then(|| word.to_string())
        });
        let mut names: Vec<String> = named.collect();
        if names.is_empty() {
            names = known.into_iter().map(|one| one.name).collect();
        }
        names.iter().filter_map(|name| self.load(name)).collect()
    }

    fn modes(&self) -> Vec<Candidate> {
        plain(["separated-host", "embedded-cpu", "nic"])
    }

    fn paths(&self) -> Vec<Candidate> {
        let systems = self.systems();
        let paths =
            systems.iter().filter_map(|system| Router::new(system).ok()).flat_map(|router| router.paths());
        let mut names: Vec<String> = paths.map(|path| path.to_string()).collect();
        names.sort();
        names.dedup();
        plain(names)
    }

    /// Settings as far as their `=`, with the value that the system has and what the number is.
    fn numbers(&self) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = self
            .systems()
            .iter()
            .flat_map(|system| {
                let shown = |(name, number): (&String, &Arc<Number>)| {
                    let what = system.documentation(name).unwrap_or_default();
                    (format!("{name}="), format!("now {}: {what}", number.value))
                };
                system.numbers.iter().map(shown).collect::<Vec<_>>()
            })
            .collect();
        all.sort();
        all.dedup_by(|one, other| one.0 == other.0);
        all
    }
}

/// The value of an option on the line, given behind it or behind a `=`.
fn value_of(words: &[String], option: &str) -> Option<String> {
    let at = words.iter().position(|word| word == option || word.starts_with(&format!("{option}=")))?;
    match words[at].split_once('=') {
        Some((_, value)) => Some(value.to_string()),
        None => words.get(at + 1).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_with_its_completers() {
        command().debug_assert();
    }

    #[test]
    fn options_are_found_on_a_line() {
        let words: Vec<String> = "path --profiles=own --mode nic".split(' ').map(str::to_string).collect();
        assert_eq!(value_of(&words, "--profiles").as_deref(), Some("own"));
        assert_eq!(value_of(&words, "--mode").as_deref(), Some("nic"));
        assert_eq!(value_of(&words, "--testbed"), None);
    }
}
