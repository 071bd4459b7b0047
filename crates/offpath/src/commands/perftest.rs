//! Options of perftest that `offpath path --as` has no prediction for, each refused by its name.

use crate::failure::Failure;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

/// Why an option is refused, and what to do.
struct Refused {
    why: &'static str,
    help: &'static str,
}

const PLACE: Refused = Refused {
    why: "says where or how programs connect, which changes nothing that is predicted",
    help: "leave it out; `--path` says from whom to whom",
};
const PRINT: Refused = Refused {
    why: "prints figures that are not predicted, or the same ones in another form",
    help: "leave it out; `--format json` has every figure with its unit",
};
const MEMORY: Refused = Refused {
    why: "takes the payload from a memory, or in a way, that the run of a path has no number for",
    help: "name the path that ends at that memory by `--path`, as `offpath path DEVICE` lists them, or leave it out",
};
const CONNECTION: Refused = Refused {
    why: "asks for another transport or receiver than RC with a queue for each queue pair, which alone is predicted",
    help: "leave it out, and measure over RC",
};
const RUN: Refused = Refused {
    why: "changes the run in a way that no number of a profile describes",
    help: "leave it out, and measure without it to compare",
};

/// Options by their long names, their letters, and whether a value follows.
const OTHERS: &[(&str, Option<char>, bool, Refused)] = &[
    ("ib-dev", Some('d'), true, PLACE),
    ("ib-port", Some('i'), true, PLACE),
    ("port", Some('p'), true, PLACE),
    ("gid-index", Some('x'), true, PLACE),
    ("sl", Some('S'), true, PLACE),
    ("tos", Some('T'), true, PLACE),
    ("hop_limit", Some('L'), true, PLACE),
    ("tclass", None, true, PLACE),
    ("pkey_index", None, true, PLACE),
    ("dlid", None, true, PLACE),
    ("flow_label", None, true, PLACE),
    ("qp-timeout", Some('u'), true, PLACE),
    ("retry_count", None, true, PLACE),
    ("rdma_cm", Some('R'), false, PLACE),
    ("comm_rdma_cm", Some('z'), false, PLACE),
    ("bind_source_ip", None, true, PLACE),
    ("force-link", None, true, PLACE),
    ("ipv6", None, false, PLACE),
    ("ipv6-addr", None, false, PLACE),
    ("dont_xchg_versions", None, false, PLACE),
    ("wait_destroy", None, true, PLACE),
    ("CPU-freq", Some('F'), false, PLACE),
    ("noPeak", Some('N'), false, PRINT),
    ("report-cycles", Some('C'), false, PRINT),
    ("report-histogrm", Some('H'), false, PRINT),
    ("report-unsorted", Some('U'), false, PRINT),
    ("report-counters", Some('W'), true, PRINT),
    ("report-both", None, false, PRINT),
    ("report-per-port", None, false, PRINT),
    ("cpu_util", None, false, PRINT),
    ("output", None, true, PRINT),
    ("out_json", None, false, PRINT),
    ("out_json_file", None, true, PRINT),
    ("limit_bw", Some('w'), true, PRINT),
    ("limit_msgrate", Some('y'), true, PRINT),
    ("use_cuda", None, true, MEMORY),
    ("use_cuda_bus_id", None, true, MEMORY),
    ("use_cuda_dmabuf", None, false, MEMORY),
    ("use_rocm", None, true, MEMORY),
    ("use_rocm_dmabuf", None, false, MEMORY),
    ("use_neuron", None, true, MEMORY),
    ("use_hl", None, true, MEMORY),
    ("use_hugepages", None, false, MEMORY),
    ("mmap", None, true, MEMORY),
    ("mmap-offset", None, true, MEMORY),
    ("odp", None, false, MEMORY),
    ("mr_per_qp", None, false, MEMORY),
    ("connection", Some('c'), true, CONNECTION),
    ("mcg", Some('g'), false, CONNECTION),
    ("MGID", Some('M'), true, CONNECTION),
    ("use-srq", None, false, CONNECTION),
    ("use_xrc", None, false, CONNECTION),
    ("rx-depth", Some('r'), true, RUN),
    ("recv_post_list", None, true, RUN),
    ("inline_recv", None, true, RUN),
    ("events", Some('e'), false, RUN),
    ("vector", Some('X'), true, RUN),
    ("atomic_type", Some('A'), true, RUN),
    ("dualport", Some('O'), false, RUN),
    ("margin", Some('f'), true, RUN),
    ("run_infinitely", None, false, RUN),
    ("perform_warm_up", None, false, RUN),
    ("reversed", None, false, RUN),
    ("latency_gap", None, true, RUN),
    ("rate_limit", None, true, RUN),
    ("rate_limit_type", None, true, RUN),
    ("rate_units", None, true, RUN),
    ("burst_size", None, true, RUN),
    ("disable_pcie_relaxed", None, false, RUN),
    ("use_ooo", None, false, RUN),
    ("use_old_post_send", None, false, RUN),
    ("no_lock", None, false, RUN),
    ("cqe_poll", None, true, RUN),
];

/// The first of them that was given. They are read so that each is refused by its name, and no help lists them.
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
        Ok(OtherToolOptions { given: OTHERS.iter().position(|(name, ..)| is_given(name)) })
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
        let Some((name, letter, _, refused)) = self.given.map(|place| &OTHERS[place]) else { return Ok(()) };
        let letter = letter.map(|letter| format!(" (`-{letter}`)")).unwrap_or_default();
        Err(Failure::input(format!("`--{name}`{letter} of `{program}` {}", refused.why), refused.help))
    }
}
