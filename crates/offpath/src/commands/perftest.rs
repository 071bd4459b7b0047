//! Options of perftest that `offpath path --as` has no prediction for, each refused by its name, and those that say where and
//! how programs connect: a command line may be pasted with them, since nothing that is predicted depends on them.

use crate::failure::Failure;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// Why an option is refused, and what to do.
struct Refused {
    why: &'static str,
    help: &'static str,
}

static PRINT: Refused = Refused {
    why: "prints figures that are not predicted, or the same ones in another form",
    help: "leave it out; `--format json` has every figure with its unit",
};
static MEMORY: Refused = Refused {
    why: "takes the payload from a memory, or in a way, that the run of a path has no number for",
    help: "name the path that ends at that memory by `--path`, as `offpath path DEVICE` lists them, or leave it out",
};
static CONNECTION: Refused = Refused {
    why: "asks for another transport or receiver than RC with a queue for each queue pair, which alone is predicted",
    help: "leave it out, and measure over RC",
};
static RUN: Refused = Refused {
    why: "changes the run in a way that no number of a profile describes",
    help: "leave it out, and measure without it to compare",
};

/// Options by their long names, their letters, whether a value follows, and why they are refused, where they are.
static OTHERS: &[(&str, Option<char>, bool, Option<&Refused>)] = &[
    ("ib-dev", Some('d'), true, None),
    ("ib-port", Some('i'), true, None),
    ("port", Some('p'), true, None),
    ("gid-index", Some('x'), true, None),
    ("sl", Some('S'), true, None),
    ("tos", Some('T'), true, None),
    ("hop_limit", Some('L'), true, None),
    ("tclass", None, true, None),
    ("pkey_index", None, true, None),
    ("dlid", None, true, None),
    ("flow_label", None, true, None),
    ("qp-timeout", Some('u'), true, None),
    ("retry_count", None, true, None),
    ("rdma_cm", Some('R'), false, None),
    ("comm_rdma_cm", Some('z'), false, None),
    ("bind_source_ip", None, true, None),
    ("force-link", None, true, None),
    ("ipv6", None, false, None),
    ("ipv6-addr", None, false, None),
    ("dont_xchg_versions", None, false, None),
    ("wait_destroy", None, true, None),
    ("CPU-freq", Some('F'), false, None),
    ("noPeak", Some('N'), false, Some(&PRINT)),
    ("report-cycles", Some('C'), false, Some(&PRINT)),
    ("report-histogrm", Some('H'), false, Some(&PRINT)),
    ("report-unsorted", Some('U'), false, Some(&PRINT)),
    ("report-counters", Some('W'), true, Some(&PRINT)),
    ("report-both", None, false, Some(&PRINT)),
    ("report-per-port", None, false, Some(&PRINT)),
    ("cpu_util", None, false, Some(&PRINT)),
    ("output", None, true, Some(&PRINT)),
    ("out_json", None, false, Some(&PRINT)),
    ("out_json_file", None, true, Some(&PRINT)),
    ("limit_bw", Some('w'), true, Some(&PRINT)),
    ("limit_msgrate", Some('y'), true, Some(&PRINT)),
    ("use_cuda", None, true, Some(&MEMORY)),
    ("use_cuda_bus_id", None, true, Some(&MEMORY)),
    ("use_cuda_dmabuf", None, false, Some(&MEMORY)),
    ("use_rocm", None, true, Some(&MEMORY)),
    ("use_rocm_dmabuf", None, false, Some(&MEMORY)),
    ("use_neuron", None, true, Some(&MEMORY)),
    ("use_hl", None, true, Some(&MEMORY)),
    ("use_hugepages", None, false, Some(&MEMORY)),
    ("mmap", None, true, Some(&MEMORY)),
    ("mmap-offset", None, true, Some(&MEMORY)),
    ("odp", None, false, Some(&MEMORY)),
    ("mr_per_qp", None, false, Some(&MEMORY)),
    ("connection", Some('c'), true, Some(&CONNECTION)),
    ("mcg", Some('g'), false, Some(&CONNECTION)),
    ("MGID", Some('M'), true, Some(&CONNECTION)),
    ("use-srq", None, false, Some(&CONNECTION)),
    ("use_xrc", None, false, Some(&CONNECTION)),
    ("rx-depth", Some('r'), true, Some(&RUN)),
    ("recv_post_list", None, true, Some(&RUN)),
    ("inline_recv", None, true, Some(&RUN)),
    ("events", Some('e'), false, Some(&RUN)),
    ("vector", Some('X'), true, Some(&RUN)),
    ("atomic_type", Some('A'), true, Some(&RUN)),
    ("dualport", Some('O'), false, Some(&RUN)),
    ("margin", Some('f'), true, Some(&RUN)),
    ("run_infinitely", None, false, Some(&RUN)),
    ("perform_warm_up", None, false, Some(&RUN)),
    ("reversed", None, false, Some(&RUN)),
    ("latency_gap", None, true, Some(&RUN)),
    ("rate_limit", None, true, Some(&RUN)),
    ("rate_limit_type", None, true, Some(&RUN)),
    ("rate_units", None, true, Some(&RUN)),
    ("burst_size", None, true, Some(&RUN)),
    ("disable_pcie_relaxed", None, false, Some(&RUN)),
    ("use_ooo", None, false, Some(&RUN)),
    ("use_old_post_send", None, false, Some(&RUN)),
    ("no_lock", None, false, Some(&RUN)),
    ("cqe_poll", None, true, Some(&RUN)),
];

/// The first of them that was given and is refused. They are read so that each is refused by its name, and no help lists them.
#[derive(Clone, Debug, Default)]
pub struct OtherToolOptions {
    given: Option<usize>,
}

/// Under which name clap has one: none of another option of the command.
fn id(name: &str) -> String {
    format!("perftest-{name}")
}

impl Args for OtherToolOptions {
    fn augment_args(command: Command) -> Command {
        OTHERS.iter().fold(command, |command, (name, letter, has_value, _)| {
            let arg = Arg::new(id(name)).long(*name).requires("tool").hide(true);
            let arg = match letter {
                Some(letter) => arg.short(*letter),
                None => arg,
            };
            let action = if *has_value { ArgAction::Append } else { ArgAction::Count };
            command.arg(arg.action(action))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OtherToolOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<OtherToolOptions, clap::Error> {
        let is_given =
            |name: &str| matches.value_source(&id(name)) == Some(clap::parser::ValueSource::CommandLine);
        // What is predicted may be asked for by its name.
        let mut connections = matches.get_many::<String>(&id("connection")).into_iter().flatten();
        let is_over_rc = connections.all(|value| value == "RC");
        Ok(OtherToolOptions {
            given: OTHERS.iter().position(|(name, .., refused)| {
                refused.is_some() && is_given(name) && !(is_over_rc && *name == "connection")
            }),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = OtherToolOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

impl OtherToolOptions {
    /// Refuses the first that was given, by its name.
    ///
    /// # Errors
    /// Where one was given.
    pub fn check(&self, program: &str) -> Result<(), Failure> {
        let Some((name, letter, _, Some(refused))) = self.given.map(|place| &OTHERS[place]) else {
            return Ok(());
        };
        let letter = letter.map(|letter| format!(" (`-{letter}`)")).unwrap_or_default();
        Err(Failure::input(format!("`--{name}`{letter} of `{program}` {}", refused.why), refused.help))
    }
}
