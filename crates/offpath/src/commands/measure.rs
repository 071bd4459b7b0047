//! `offpath measure`: the characterisation of a card, on the twin or on real queue pairs.

use super::backend::{On, Peer, device_refused, refuse_profile_changes, run_failed, with_a_card};
use super::{Context, Shown, answer};
use crate::failure::{Failure, NEGATIVE};
use crate::options;
use crate::output::{emit, tell, tell_mode};
use crate::progress::Progress;
use clap::Args;
use offpath::answers::measure::{
    MeasureAnswer, MeasureEnvironment, MeasureFile, MeasureListAnswer, MeasurePlace, MeasurePlan,
    MeasureRequest, MeasureSuggestAnswer, SuggestRequest, VerbsDevice, measure_on_twin, suggest,
};
use offpath::apps::Stop;
use offpath::apps::system::role_text;
use offpath::fabric::{Backend, Role, RoleName};
use offpath::measure::{
    FlowFigures, MeasurePoint, MeasuringEffort, MeasuringProgram, SuiteChoice, figures_of, responder,
};
use offpath::quantity::{Bytes, Time};
use offpath::route::Verb;
use offpath::verbs::{Verbs, devices};
use offpath_terminal::options::as_shell_words;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Which points are run, and how long that takes:
    offpath measure twin:bluefield2 --list
  A card that is described, on its twin, and learnt again from what was measured:
    offpath measure twin:connectx7 --path client-host -o twin.jsonl
    offpath calibrate twin.jsonl --base connectx7 -o mycard.toml
  A real card: the server answers, the client measures (run the same command again to go on after an interrupt):
    offpath measure verbs:mlx5_0 --listen host=10.0.0.1:7000
    offpath measure verbs:mlx5_0 --connect host=10.0.0.1:7000 -o mycard.jsonl
  With the card's processor, too:
    offpath measure verbs:mlx5_2 --listen soc=10.0.0.2:7000
    offpath measure verbs:mlx5_0 --connect host=10.0.0.1:7000 --connect soc=10.0.0.2:7000 -o mycard.jsonl
  Which few runs would narrow a plan most:
    offpath measure twin:bluefield2 --suggest designs/kv-ycsb-c.toml

Nobody is authenticated: listen on networks whose every user may read and write what is served. See docs/measure.md.";

/// Measure a card: latency and throughput by verb, path, payload, queue pairs, depth and more
///
/// Each point is on the disk before the next begins, so that an interrupt loses the running point at most and the same
/// command goes on. `import` and `calibrate` read the file.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Where: twin:DEVICE, verbs, or verbs:DEVICE
    #[arg(value_name = "BACKEND", value_parser = with_a_card)]
    on: On,
    /// Paths, as in `client-soc,client-host` [default: every one that the backend has]
    #[arg(long, value_delimiter = ',')]
    path: Vec<String>,
    /// What requests do [default: all that queue pairs carry]
    #[arg(long, value_delimiter = ',', value_parser = options::verb())]
    verb: Vec<Verb>,
    /// Payloads, in place of the suite's
    #[arg(long, value_delimiter = ',', value_parser = options::payload)]
    size: Vec<Bytes>,
    /// Queue pairs, in place of the suite's
    #[arg(long, value_delimiter = ',', value_parser = options::whole::<u64>(1, 1_024))]
    qps: Vec<u64>,
    /// Windows that a point is measured in, one after the other
    #[arg(long, default_value_t = 3, value_parser = options::whole::<u64>(1, 1_000))]
    windows: u64,
    /// The seed of every draw
    #[arg(long, default_value_t = 1, value_parser = options::whole::<u64>(0, u64::MAX))]
    seed: u64,
    /// Keep the figures in this file, a line each; one that is there already is gone on with
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["list", "suggest", "listen"])]
    output: Option<PathBuf>,
    /// Say which points would run, which are skipped, and how long all take, and run none
    #[arg(long, conflicts_with_all = ["suggest", "listen"])]
    list: bool,
    /// Say which few runs would narrow the plan of this design most, and run none
    #[arg(long, value_name = "DESIGN", conflicts_with = "listen")]
    suggest: Option<PathBuf>,
    /// On verbs: where the process is that answers for an endpoint, as `host=10.0.0.1:7000`; without it both ends are in
    /// this process
    #[arg(long, value_name = "ADDRESS", conflicts_with = "listen")]
    connect: Vec<Peer>,
    /// On verbs: answer for an endpoint, as `soc=10.0.0.2:7000`, until interrupted
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Peer>,
}

/// The endpoint that an address is of where none is named.
const HOST: &str = "host";

impl Options {
    fn choice(&self) -> SuiteChoice {
        SuiteChoice { verbs: self.verb.clone(), payloads: self.size.clone(), queue_pairs: self.qps.clone() }
    }

    fn peers(&self) -> Vec<RoleName> {
        let name = |peer: &Peer| peer.role.clone().unwrap_or_else(|| RoleName::new(HOST, 0));
        self.connect.iter().map(name).collect()
    }

    fn refuse_on_another_backend(&self) -> Result<(), Failure> {
        if matches!(self.on, On::Verbs(_)) {
            return Ok(());
        }
        let given = [(!self.connect.is_empty(), "--connect"), (self.listen.is_some(), "--listen")];
        match given.into_iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(Failure::input(
                format!("{option} is about another process, and this backend has all roles in one"),
                "leave it out, or measure on `verbs:DEVICE`",
            )),
            None => Ok(()),
        }
    }
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    options.refuse_on_another_backend()?;
    if let Some(design) = &options.suggest {
        return suggested(design, options, context);
    }
    match &options.on {
        On::Local => Err(Failure::input(
            "the local backend has no card to measure",
            "measure `twin:DEVICE`, or `verbs:DEVICE`",
        )),
        On::Twin(device) => {
            let request = request(options, context, MeasurePlace::Twin(device.clone()));
            let plan = request.plan()?;
            plan.system.iter().for_each(tell_mode);
            measure(options, context, &plan, |point, effort| match &plan.system {
                Some(system) => measure_on_twin(system, options.seed, point, effort),
                None => Err("there is no system".to_string()),
            })
        }
        On::Verbs(device) => on_verbs(device.as_deref(), options, context),
    }
}

fn request(options: &Options, context: &Context, place: MeasurePlace) -> MeasureRequest {
    let words: Vec<String> = std::env::args().skip(1).collect();
    MeasureRequest {
        place,
        paths: options.path.clone(),
        choice: options.choice(),
        windows: options.windows,
        seed: options.seed,
        command: format!("offpath{}", as_shell_words(&words)),
        environment: environment(Path::new("/")),
        system: context.system.clone(),
    }
}

fn suggested(design: &Path, options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let On::Twin(device) = &options.on else {
        return Err(Failure::input(
            "`--suggest` plans on a card's profile, and this backend names none",
            "name the twin of the card, as in `offpath measure twin:mycard.toml --suggest DESIGN`; the runs that it names are \
             then made on the card",
        ));
    };
    let request = SuggestRequest {
        design: design.to_path_buf(),
        device: Some(device.clone()),
        paths: options.path.clone(),
        choice: options.choice(),
        seed: options.seed,
        system: context.system.clone(),
    };
    let shown = Shown(Progress::phased("planning, and trying runs"));
    let found = suggest(&request, &shown);
    drop(shown);
    context.screen.emit(&answer(&found?, context, MeasureSuggestAnswer::text)?)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(
    options: &Options,
    context: &Context,
    plan: &MeasurePlan,
    run: impl FnMut(&MeasurePoint, MeasuringEffort) -> Result<Vec<FlowFigures>, String>,
) -> Result<ExitCode, Failure> {
    if options.list {
        context.screen.emit(&answer(&plan.list(), context, MeasureListAnswer::text)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut file = options.output.as_deref().map(|path| MeasureFile::open(path, &plan.stamp)).transpose()?;
    let progress = Progress::counted(plan.left(file.as_ref()), "points");
    let found = plan.run(file.as_mut(), run, || progress.advance());
    drop(progress);
    let found = found?;
    if let Some(path) = &options.output {
        let (points, kept) = (found.points.len(), found.kept);
        tell(&format!("{}: {points} points, {kept} of them kept from before", path.display()));
    }
    context.screen.emit(&answer(&found, context, MeasureAnswer::text)?)?;
    Ok(if found.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
}

fn on_verbs(device: Option<&str>, options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    refuse_profile_changes(&context.system, "leave it out, or measure `twin:DEVICE`")?;
    let opened = Verbs::open(device, options.seed).map_err(device_refused)?;
    if let Some(peer) = &options.listen {
        return listen(opened, peer);
    }
    let described = devices().map_err(device_refused)?;
    let described = described.into_iter().find(|one| one.name == opened.device()).ok_or_else(|| {
        let message = format!("`{}` is open and no longer listed among the devices", opened.device());
        Failure::input(message, "look whether its driver was taken away, and try again")
    })?;
    let place = VerbsDevice {
        name: opened.device().to_string(),
        firmware: described.firmware,
        mtu: Bytes::new(described.mtu),
        inline_max: Bytes::new(u64::from(opened.capabilities().inline_max)),
        peers: options.peers().into_iter().map(|name| name.role).collect(),
    };
    let plan = request(options, context, MeasurePlace::Verbs(place)).plan()?;
    measure(options, context, &plan, |point, effort| {
        let program = MeasuringProgram::new(point, effort);
        let peers = options.peers();
        let mut backend = opened.clone();
        for (name, peer) in peers.iter().zip(&options.connect) {
            backend = backend.peer(&name.role, name.instance, peer.address);
        }
        let is_here = |name: &str| peers.iter().all(|peer| peer.role != name);
        let run = backend.run(program.roles(is_here)).map_err(|error| error.to_string())?;
        figures_of(run)
    })
}

/// Answers until it is interrupted.
fn listen(opened: Verbs, peer: &Peer) -> Result<ExitCode, Failure> {
    let name = peer.role.clone().unwrap_or_else(|| RoleName::new(HOST, 0));
    if peer.address.port() == 0 {
        let help = "name a port that clients can be told, as in `--listen 10.0.0.1:7000`";
        return Err(Failure::input(format!("nobody finds {}", peer.address), help));
    }
    let stop = Stop::default();
    let asked = stop.clone();
    ctrlc::set_handler(move || asked.ask())
        .map_err(|error| Failure::input(format!("signals cannot be handled: {error}"), ""))?;
    emit(&format!("answering for {} at {}\n", role_text(&name), peer.address))?;
    let until = Role::new("stop", 0, move |fabric: offpath::verbs::VerbsFabric| {
        let stop = stop.clone();
        async move {
            stop.wait(&fabric, Time::from_ms(1)).await;
            Ok(())
        }
    });
    let run = opened.listen_at(peer.address).run(vec![responder(&name.role), until]).map_err(run_failed)?;
    let failed = run.outcomes.into_iter().find_map(|outcome| outcome.end.finished()?.err());
    match failed {
        Some(why) => Err(Failure::negative(why, "check the device and the address")),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// What the machine says of itself in files below `root`, without its name.
fn environment(root: &Path) -> MeasureEnvironment {
    let file = |path: &str| std::fs::read_to_string(root.join(path)).ok().map(|text| text.trim().to_string());
    let processor = file("proc/cpuinfo").and_then(|text| {
        let named = |line: &str| {
            let (key, value) = line.split_once(':')?;
            matches!(key.trim(), "model name" | "Processor").then(|| value.trim().to_string())
        };
        text.lines().find_map(named)
    });
    let kernel =
        file("proc/sys/kernel/osrelease").map(|release| format!("{} {release}", std::env::consts::OS));
    MeasureEnvironment {
        kernel,
        architecture: std::env::consts::ARCH.to_string(),
        processor,
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        governor: file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    }
}
