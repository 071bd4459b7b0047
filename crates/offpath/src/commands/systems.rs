//! Systems on the command line: their options, as they declare them.

use super::backend::BackendOptions;
use crate::failure::{BAD_INPUT, Failure, NEGATIVE};
use crate::options::own_address;
use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueHint, value_parser};
use offpath::apps::Shipped;
use offpath::apps::system::{About, Choice, Given, GivenValue, Of, OptionKind, Refusal, Registry};
use std::ffi::OsString;
use std::net::SocketAddr;

/// The system that a command line names, with its arguments; `serve`'s where `SERVES`, else `run`'s.
#[derive(Clone, Debug)]
pub struct Named<const SERVES: bool> {
    /// Its name, which may be of no system.
    pub name: String,
    /// What is said of it.
    pub arguments: ArgMatches,
}

impl<const SERVES: bool> FromArgMatches for Named<SERVES> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Named::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        let (name, arguments) =
            matches.remove_subcommand().ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        Ok(Named { name, arguments })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Named::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const SERVES: bool> Subcommand for Named<SERVES> {
    fn augment_subcommands(command: Command) -> Command {
        with_systems::<Shipped>(command, if SERVES { Of::Serve } else { Of::Run })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Named::<SERVES>::augment_subcommands(command)
    }

    fn has_subcommand(_name: &str) -> bool {
        true
    }
}

/// A command with the systems of a registry below it. A name of none is taken, too, and refused by [`unknown`].
pub fn with_systems<R: Registry>(command: Command, of: Of) -> Command {
    command
        .subcommands(R::all().into_iter().map(|about| subcommand(about, of)))
        .allow_external_subcommands(true)
        .external_subcommand_value_parser(value_parser!(OsString))
}

/// The option that says where other processes find what is served.
const LISTEN: &str = "listen";

/// The command of a system.
fn subcommand(about: &'static About, of: Of) -> Command {
    let usage = if of == Of::Serve { about.serve } else { about.run };
    let (shared, own): (Vec<&Choice>, Vec<&Choice>) =
        about.options_of(of).partition(|option| option.of == Of::Both);
    let listen = Arg::new(LISTEN)
        .long(LISTEN)
        .value_name("IP:PORT")
        .help("Where other processes find this one")
        .required(true)
        .value_parser(own_address);
    let command = BackendOptions::augment_args(Command::new(about.name))
        .about(usage.documentation)
        .next_help_heading(about.group)
        .args(shared.into_iter().map(|option| argument(about, option)))
        .args((of == Of::Serve).then_some(listen))
        .args(own.into_iter().map(|option| argument(about, option)));
    if usage.examples.is_empty() { command } else { command.after_help(usage.examples.trim_end()) }
}

fn argument(about: &'static About, option: &'static Choice) -> Arg {
    let argument = Arg::new(option.name)
        .long(option.name)
        .help(option.documentation)
        .required(option.is_needed)
        .action(if option.is_list { ArgAction::Append } else { ArgAction::Set })
        .value_name(match option.value {
            "" => option.name.to_uppercase().replace('-', "_"),
            value => value.to_string(),
        });
    let argument = match option.kind {
        OptionKind::OneOf(names) => {
            let names = names.iter().map(|(name, what)| PossibleValue::new(*name).help(*what));
            argument.value_parser(PossibleValuesParser::new(names).map(GivenValue::Text))
        }
        OptionKind::Path => argument
            .value_parser(PathBufValueParser::new().map(GivenValue::Path))
            .value_hint(ValueHint::AnyPath),
        _ => argument.value_parser(move |text: &str| about.read(option, text)),
    };
    let argument = match option.default {
        Some(default) => argument.default_value(default),
        None => argument,
    };
    match option.against {
        Some(other) => argument.conflicts_with(other),
        None => argument,
    }
}

/// What a command line gives a system.
pub fn given(about: &'static About, of: Of, arguments: &ArgMatches) -> Given {
    let mut given = Given::default();
    for option in about.options_of(of) {
        let values = arguments.get_many::<GivenValue>(option.name).into_iter().flatten();
        given.set(option.name, values.cloned().collect());
    }
    given
}

/// The address that others connect to.
pub fn listens_at(arguments: &ArgMatches) -> SocketAddr {
    *arguments.get_one(LISTEN).expect("clap asks for it")
}

/// A system that is not implemented.
pub fn unknown<R: Registry>(name: &str) -> Failure {
    let all: Vec<String> =
        R::all().iter().map(|about| format!("`{}`, the {}", about.name, about.what)).collect();
    let help = format!("the applications are {}", all.join(", and "));
    Failure::input(format!("there is no application `{name}`"), help)
}

/// What a refusal of a system leads to.
pub fn refused(refusal: Refusal) -> Failure {
    Failure::report_of(if refusal.is_input { BAD_INPUT } else { NEGATIVE }, refusal.report)
}

/// What arguments lead to that clap itself does not refuse.
pub fn unparsed(error: clap::Error) -> Failure {
    Failure::input(error.to_string(), "`--help` lists the options")
}

#[cfg(test)]
#[path = "../../tests/echo/mod.rs"]
mod echo;

#[cfg(test)]
mod tests {
    use super::echo::{ABOUT as ECHO, Ours};
    use super::*;
    use crate::commands::{Cli, Context, run};
    use crate::output::Screen;
    use clap::Parser;

    fn parsed(line: &str) -> Result<Named<false>, String> {
        let command = with_systems::<Ours>(Command::new("run"), Of::Run);
        let matches = command.try_get_matches_from(line.split(' ')).map_err(|error| error.to_string())?;
        Named::from_arg_matches(&matches).map_err(|error| error.to_string())
    }

    /// A system that is in a list is on the command line, with its options, help and refusals.
    #[test]
    fn the_command_line_of_a_system_follows_from_what_it_declares() {
        for of in [Of::Run, Of::Serve] {
            with_systems::<Ours>(Command::new("offpath"), of).debug_assert();
        }
        let cli = Cli::try_parse_from(["offpath", "device", "list"]).expect("a command line");
        let context = Context { system: cli.system, screen: Screen::new(cli.output) };
        let named = parsed("run echo --on local --placement ON-CARD --question 32B").expect("it is in order");
        let given = given(&ECHO, Of::Run, &named.arguments);
        assert_eq!((given.text("placement"), given.whole("questions")), (Some("on-card"), 50_u32));
        assert!(run::of::<Ours>(&named, &context).is_ok());
        let nothing = parsed("run echo --on local --question 0B").expect("it can be read");
        assert!(run::of::<Ours>(&nothing, &context).is_err(), "it asks nothing");
        for (line, words) in [
            ("run echo --on local --placement A1", "the echo has no placement `A1`; it has on-host, on-card"),
            ("run echo --on local --questions 0", "whole number from 1 to 100000"),
            ("run echo --on local --question 64", "unit"),
            ("run echo", "--on <BACKEND>"),
            ("run echo --help", "Questions, one after the other"),
        ] {
            let refused = parsed(line).map(|named| named.name).expect_err(line);
            assert!(refused.contains(words), "{line}: {refused}");
        }
        let strange = parsed("run eco --on local").expect("any name is read");
        let refused = format!("{:?}", run::of::<Ours>(&strange, &context).expect_err("there is none"));
        assert!(refused.contains("there is no application `eco`"), "{refused}");
        assert!(refused.contains("and `echo`, the echo of every question"), "{refused}");
    }
}
