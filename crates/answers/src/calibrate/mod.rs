//! What `offpath calibrate` answers: numbers of a card from its own logs, how well held-out points are predicted, and the
//! card as a profile.

mod card;
mod text;

use crate::SCHEMA_VERSION;
use crate::import::{ImportRemarkAnswer, ImportRequest, import_each};
use crate::system::{SystemAnswer, unlike_ends};
use crate::tool::refused;
use offpath_learn::{
    Calibration, CalibrationError, CalibrationRequest, Directions, ErrorSummary, HoldOut, KeptNumber,
    KeptReason, LearntDoubt, LearntNumber, LeftAside, MeasuredPoint, MeasuredRun, PacketHeader,
    PhaseProgress, PointCollector, RunKind, RunPairs, ToolBench, ToolRun, WidenedErrors, calibrate as learn,
    program_of,
};
use offpath_logs::{LogItem, RemarkKind, TrafficDirections};
use offpath_plan::residual::{FigureKind, Lesson};
use offpath_profile::{LEARNT_FIGURES, LearntErrors, Library, System};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Path, Router, Verb};
use offpath_terminal::failure::{Failure, unknown_path};
use offpath_terminal::options::SystemOptions;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

pub use card::CardFile;

/// Logs to learn a card from.
#[derive(Clone, Debug, Default)]
pub struct CalibrateRequest {
    /// Their files; `-` is standard input.
    pub logs: Vec<PathBuf>,
    /// The card that is begun from: a device's name, or a .toml file that describes one.
    pub base: String,
    /// What the card is called; its file's name without `.toml`.
    pub name: String,
    /// From the client's endpoint to the server's.
    pub path: String,
    /// What is kept for prediction; every second size where nothing is said.
    pub hold_out: Vec<HoldOut>,
    /// Numbers that have to be fitted; those that the points tell where none is named.
    pub fit: Vec<String>,
    /// Numbers that stay as they are.
    pub pin: Vec<String>,
    /// Which system is meant.
    pub system: SystemOptions,
}

/// What logs say of a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibrateAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The system that was begun from.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// From the client's endpoint to the server's.
    pub path: String,
    /// That the ends of the path have ports of different rates, of which the slower one bounds both; null where they have not.
    pub unlike_ends: Option<String>,
    /// What was kept for prediction.
    pub held_out: Vec<String>,
    /// The logs that gave points, with a checksum of each.
    pub logs: Vec<CalibratedLogAnswer>,
    /// Rows of logs that gave none, and why.
    pub left_aside: Vec<LeftAsideAnswer>,
    /// Where logs say that a run failed, or end before their runs did: what is missing there is in no number.
    pub incomplete: Vec<ImportRemarkAnswer>,
    /// What the fitted logs say that leaves what is learnt of them in doubt (a device in software, a clock that varied, devices that differ),
    /// and what they state differently from one another (link layers, MTUs), a sentence each.
    pub log_doubts: Vec<String>,
    /// The numbers that were fitted.
    pub numbers: Vec<CalibratedNumberAnswer>,
    /// Numbers that such runs feel, and that stay as they were.
    pub kept: Vec<KeptNumberAnswer>,
    /// By what share two predictions of a run have to differ for the run to be named as one that tells: twice what eight of ten fitted
    /// points err by, and 2% at least.
    pub telling_difference: f64,
    /// Whether the base's file holds the testbed of the logs, so that it describes the very machines: what was measured of them and what
    /// their tools state stays in the card as it is, and so does what an earlier calibration found and this one does not find anew.
    pub facts_stay: bool,
    /// Numbers that an earlier calibration of the base measured here or held, and that none of these logs fits anew: the card has them so.
    pub measured_before: Vec<String>,
    /// What becomes of the errors that an earlier calibration of the base found.
    pub base_errors: Vec<BaseErrorsAnswer>,
    /// Errors of fitted points, of the model.
    pub fitted_error: ErrorAnswer,
    /// Errors of fitted points, each predicted without its own run.
    pub left_out_error: ErrorAnswer,
    /// Errors of fitted points, each predicted without the log that it stands in; of a device's DMA without the runs there
    /// that differ from its own in payload alone.
    pub left_out_cluster_error: ErrorAnswer,
    /// Errors of held-out points, of the model.
    pub held_out_error: ErrorAnswer,
    /// The same of a roofline of two numbers, fitted to the same points.
    pub held_out_error_of_roofline: ErrorAnswer,
    /// Whether the median error is above 5% and more than twice that of the roofline: the model does not describe this card, none of
    /// its numbers is taken to be measured, and the command ends with exit code 1.
    pub worse_than_roofline: bool,
    /// Whether the roofline is nearer: its median error, or what nine of ten are within, is less than two thirds of the model's, which
    /// is above 2%.
    pub roofline_is_nearer: bool,
    /// What an 8 B READ takes by the base and by the card, where these differ by more than a tenth and no log has a latency; null
    /// elsewhere.
    pub untold_read_latency: Option<MovedLatencyAnswer>,
    /// The same of a straight line of time over size, fitted to the same points.
    pub held_out_error_of_line: ErrorAnswer,
    /// What runs that were repeated differ by.
    pub repeated_difference: ErrorAnswer,
    /// Held-out points within their 80% intervals.
    pub held_out_within_80: usize,
    /// The same of those whose series, runs that differ in their payload alone, is fitted at no size.
    pub held_out_of_unfitted_series: CoveredAnswer,
    /// Runs of a device's DMA of what caches hold against the same of what they do not; null where no log has both.
    pub warm_against_cold: Option<DirectionsAnswer>,
    /// What the card has of its own errors, by which `path --as` widens what rests on its measured numbers: one for each kind
    /// of figure of which the fitted points tell.
    pub card_errors: Vec<CardErrorsAnswer>,
    /// Every point with its prediction.
    pub points: Vec<CalibratedPointAnswer>,
    /// The path MTU that all logs state, which the card's network gets; null where they state none or several.
    pub mtu_bytes: Option<u64>,
    /// Bytes beside the payload of a packet, by the link layer that all logs state, which the card's network gets in place of
    /// the base's guess; null where they state none, or where the base knows it.
    pub packet_header_bytes: Option<u64>,
    /// The card as a profile, with what stands beside it.
    #[serde(skip)]
    pub card: Vec<CardFile>,
}

/// A log that gave points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibratedLogAnswer {
    /// The file, as it was named.
    pub file: String,
    /// Points that it gave.
    pub points: usize,
    /// CRC-32 of what it says: of its points, in their order.
    pub crc32: String,
}

/// Rows that gave no point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftAsideAnswer {
    /// The file, as it was named.
    pub file: String,
    /// The first of the rows.
    pub line: u64,
    /// How many.
    pub rows: u64,
    /// Why.
    pub why: String,
}

/// A number that was fitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibratedNumberAnswer {
    /// Its name, as `--set` takes it.
    pub name: String,
    /// Its names on other machines that have the same number.
    pub same_number: Vec<String>,
    /// What the base says, with its unit.
    pub base: String,
    /// What the points say.
    pub value: String,
    /// The lower end of its 90% interval; of one that is assumed, of all that fits and the base allows.
    pub low_90: String,
    /// The upper end.
    pub high_90: String,
    /// Whether it ended where the search does: the points ask for more than the base allows.
    pub at_bound: bool,
    /// Whether the points tell it by itself: its interval reaches no farther than 5% on each side.
    pub told: bool,
    /// Where it is not told: numbers that stayed and that the points move with as with this one, so that it stands for them, too.
    pub stands_for: Vec<String>,
    /// What the card says of it: `measured-here`; `held-here`, a guess that the points hold to what they show; or `assumed`.
    #[cfg_attr(test, schemars(extend("enum" = ["measured-here", "held-here", "assumed"])))]
    pub provenance: &'static str,
    /// Where the points do not tell it, so that the card has it as a guess: `at-bound`, it ended where the search does and the
    /// points ask for more; `untold`, they do not tell it to 5%, and leave it as much room as the base does; `beyond-base`, it makes the points fit, stands for others and lies where the base's interval does not reach; `replaceable`, the points fit as well with it
    /// elsewhere within that interval; `rough`, they tell it, and not to 5%; `not-described`, the model does not describe this card; `doubted-logs`, the points tell it, and `log_doubts` has why they are none of one card. Null where it is measured.
    #[cfg_attr(test, schemars(extend("enum" = [null, "at-bound", "untold", "beyond-base", "replaceable", "rough", "not-described", "doubted-logs"])))]
    pub assumed_because: Option<&'static str>,
    /// Numbers that stayed and that together make the points fit in its place, a list for each way; empty where nothing has
    /// to, or where it is not replaceable.
    pub replaceable_by: Vec<Vec<String>>,
    /// A run that would tell it from the first way; null where it is not replaceable, or none of those that were tried does.
    pub run: Option<String>,
    /// Whether it is replaceable, and the machine says of itself what tells it from the first way, as `offpath new device --from` reads it.
    pub machine_tells: bool,
}

/// A number that stays.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptNumberAnswer {
    /// Its name, as `--set` takes it.
    pub name: String,
    /// What the base says, with its unit.
    pub value: String,
    /// What the card has: the base's value, or where it may hold beside a fitted number that it could replace, what it is then.
    pub card_value: String,
    /// `not-seen`: no fitted point feels it; `not-needed`: points feel it, too little to tell it, and the fit did not need it;
    /// `not-told-apart`: the points move with it as with others; `confirmed`: it was measured of the machine, and the points hold it there,
    /// so that the card has it as `measured-here`; `pinned`.
    #[cfg_attr(test, schemars(extend("enum" = ["not-seen", "not-needed", "not-told-apart", "confirmed", "pinned"])))]
    pub reason: &'static str,
    /// The fitted numbers that it is not told apart from.
    pub alike: Vec<String>,
    /// Where it makes the points fit in place of a fitted number, the lower end of what it may be then and of what the base
    /// allows; where the points would be missed at an end of what the base allows, what they leave of that. Between the ends the card has
    /// it as `held-here`. Null elsewhere.
    pub low: Option<String>,
    /// The upper end.
    pub high: Option<String>,
    /// A run that would tell it; null where none of those that were tried does.
    pub run: Option<String>,
    /// Whether the machine says it of itself, as `offpath new device --from` reads it, and the base does not have it from there.
    pub machine_tells: bool,
}

/// Errors of some points without their signs, as shares of what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErrorAnswer {
    /// How many points.
    pub points: usize,
    /// The middle one; null without points.
    pub median: Option<f64>,
    /// What nine of ten are at most.
    pub p90: Option<f64>,
    /// The greatest.
    pub greatest: Option<f64>,
}

/// Errors of points that are predicted without their own run and their own cluster, as natural logarithms of predicted over
/// measured, without their signs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CardErrorsAnswer {
    /// What was predicted.
    #[cfg_attr(test, schemars(extend("enum" = ["throughput", "latency"])))]
    pub figure: String,
    /// What the requests of these points did, as `read` and `write both ways`: of other traffic the errors say nothing.
    pub traffic: Vec<String>,
    /// What bound these runs by the card, as `posting thread`; empty where they are of all.
    pub bound_by: Vec<String>,
    /// How many points.
    pub points: u64,
    /// What the error of one point more is at most with a chance of one in two.
    pub half_within: f64,
    /// With a chance of eight in ten.
    pub eight_of_ten_within: f64,
    /// With a chance of nine in ten.
    pub nine_of_ten_within: f64,
    /// What no error is taken to exceed: the greatest of these points, more where they stand in few logs.
    pub all_within: f64,
    /// How many logs these points stand in, or of a device's DMA how many series of sizes.
    pub clusters: usize,
    /// How many times as far as the points without their own log (or series) err the four reach, since those are few; 1 where they are not.
    /// They reach no farther for that than what predictions for other cards err by.
    pub widened_times: f64,
}

impl CardErrorsAnswer {
    fn of(one: &WidenedErrors) -> CardErrorsAnswer {
        let LearntErrors {
            figure,
            traffic,
            path: _,
            bound_by,
            points,
            half_within,
            eight_of_ten_within,
            nine_of_ten_within,
            all_within,
        } = one.errors.clone();
        CardErrorsAnswer {
            figure,
            traffic,
            bound_by,
            points,
            half_within,
            eight_of_ten_within,
            nine_of_ten_within,
            all_within,
            clusters: one.clusters,
            widened_times: one.widened,
        }
    }
}

/// Errors of predictions that the base has of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BaseErrorsAnswer {
    /// What was predicted: `throughput` or `latency`.
    pub figure: String,
    /// What the requests of these points did.
    pub traffic: Vec<String>,
    /// Whether the card has them, too.
    pub stays: bool,
    /// Why it has not; null where it has.
    pub why: Option<String>,
}

impl BaseErrorsAnswer {
    fn of(one: card::BaseErrors) -> BaseErrorsAnswer {
        let card::BaseErrors { figure, traffic, gone, .. } = one;
        BaseErrorsAnswer { figure, traffic, stays: gone.is_none(), why: gone }
    }
}

/// A latency that no log tells, and that moved with numbers that fit bandwidths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MovedLatencyAnswer {
    /// By the base, in nanoseconds.
    pub base_ns: f64,
    /// By the card, in nanoseconds.
    pub card_ns: f64,
}

/// Points, and how many of them lie within their 80% intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoveredAnswer {
    /// How many points.
    pub points: usize,
    /// How many of them lie within.
    pub within_80: usize,
}

/// Pairs of a warm and a cold run, by whether they are measured to differ by more than 2%.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DirectionsAnswer {
    /// Those that differ.
    pub apart: RunPairsAnswer,
    /// Those that do not, which a prediction misses that has one of both faster by more.
    pub alike: RunPairsAnswer,
}

/// Pairs of runs, and of how many it is said which is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunPairsAnswer {
    /// How many pairs.
    pub pairs: usize,
    /// Of how many the prediction has the same one faster, or neither where neither is.
    pub right: usize,
    /// Of how many a rule without a model does: what reads is faster warm, what writes is as fast.
    pub right_by_rule: usize,
}

/// A point with its prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalibratedPointAnswer {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The program that prints such a figure; null where none of those known does.
    pub program: Option<&'static str>,
    /// What was run, in words.
    pub run: String,
    /// Whether it was kept for prediction.
    pub held_out: bool,
    /// What all of the point's figures mean: `operations_per_s` or `latency_ns`.
    #[cfg_attr(test, schemars(extend("enum" = ["operations_per_s", "latency_ns"])))]
    pub metric: &'static str,
    /// What was measured.
    pub measured: f64,
    /// What the model says.
    pub predicted: f64,
    /// The lower end of its 80% interval, by what such points err by on these machines. That of `path --as` is of a run to come on the card
    /// and wider: it has in it what every number of the card leaves open.
    pub low_80: f64,
    /// The upper end.
    pub high_80: f64,
    /// What the model says without this point and those of the same run; null for held-out points.
    pub left_out: Option<f64>,
    /// What the roofline says.
    pub roofline: f64,
    /// What the straight line says.
    pub line_of_size: f64,
}

/// Learns a card from its logs.
///
/// ```no_run
/// use offpath_answers::calibrate::{CalibrateRequest, calibrate};
/// let request = CalibrateRequest {
///     logs: vec!["ib_read_bw.log".into()],
///     base: "connectx7".into(),
///     name: "mycard".into(),
///     path: "client-host".into(),
///     ..CalibrateRequest::default()
/// };
/// let answer = calibrate(&request)?;
/// for one in &answer.numbers {
///     println!("{} = {} ({} to {})", one.name, one.value, one.low_90, one.high_90);
/// }
/// # Ok::<(), offpath_answers::Failure>(())
/// ```
///
/// # Errors
/// Where a log cannot be read, a system or a run is refused, or a number is asked for that the logs do not tell.
pub fn calibrate(request: &CalibrateRequest) -> Result<CalibrateAnswer, Failure> {
    calibrate_telling(request, &())
}

/// The library, and the system that is begun from with the options that tell which it is.
fn begun_from(request: &CalibrateRequest) -> Result<(Library, SystemOptions, System), Failure> {
    let library = request.system.library()?;
    // What the fit takes minutes for has to have a name.
    library.check_new_name(&request.name)?;
    let options = request.system.between_two(&library, &request.base)?;
    let system = options.load(&library, &request.base, &[])?;
    Ok((library, options, system))
}

/// The names of the files that [`calibrate`] may have to write: the card, and beside it each other file of the base in which a
/// number may be fitted.
///
/// # Errors
/// Where the base or the name is refused.
pub fn card_files(request: &CalibrateRequest) -> Result<Vec<String>, Failure> {
    let (library, _, system) = begun_from(request)?;
    card::names(&library, request, &system)
}

/// [`calibrate`], which says how far it is.
///
/// # Errors
/// As [`calibrate`].
pub fn calibrate_telling(
    request: &CalibrateRequest,
    progress: &dyn PhaseProgress,
) -> Result<CalibrateAnswer, Failure> {
    let (library, options, system) = begun_from(request)?;
    let without_choices = SystemOptions { set: Vec::new(), overlay: Vec::new(), ..options };
    let plain = without_choices.load(&library, &request.base, &[])?;
    card::check_chosen(&system, &plain)?;
    // Whether queue pairs or an engine have to carry it, the logs decide.
    let router = Router::new(&system)?;
    let path = router.path(&request.path).map_err(|error| unknown_path(&router, &request.path, error))?;
    let mut collector = PointCollector::on(&path.to_string());
    let mut incomplete = Vec::new();
    let mut withheld = None;
    import_each(&ImportRequest { logs: request.logs.clone() }, |file, item| {
        match item {
            LogItem::Measurement(figure) => collector.take(file, &figure),
            LogItem::Remark(remark) => match remark.kind {
                RemarkKind::Failure | RemarkKind::Unended => {
                    incomplete.push(ImportRemarkAnswer::of(file, remark))
                }
                RemarkKind::Withheld => {
                    withheld.get_or_insert_with(|| ImportRemarkAnswer::of(file, remark));
                }
                RemarkKind::Unknown => {}
            },
        }
        Ok(())
    })?;
    let (points, aside) = collector.finish();
    check_ports(&points, &system, &path)?;
    if points.is_empty() {
        let why = match (aside.first(), withheld) {
            (Some(one), _) => format!("{}:{}: {}", one.file, one.line, one.why),
            (None, Some(one)) => format!("{}:{}: {}", one.file, one.line, one.why),
            (None, None) => "no row of perftest or of pcie-bench is in it".to_string(),
        };
        return Err(Failure::input(
            format!("the logs give no point to fit to: {why}"),
            "`offpath import LOG...` shows what they say",
        ));
    }
    // One rule says it of logs and of a machine's own tools.
    let layers = points.iter().map(|point| point.link_layer.as_deref());
    let header =
        PacketHeader::of_link_layers(layers).and_then(|header| Some((header, header.put_into(&system)?)));
    let (header, system) = match header {
        Some((header, changed)) => (Some(header), changed),
        None => (None, system),
    };
    let default = [HoldOut::Sizes];
    let hold_out: &[HoldOut] = if request.hold_out.is_empty() { &default } else { &request.hold_out };
    let path = path.to_string();
    let mut learnt = learn(&CalibrationRequest {
        system: &system,
        path: &path,
        points: &points,
        hold_out,
        fit: &request.fit,
        pin: &request.pin,
        progress,
    })
    .map_err(failed)?;
    // Who has few logs of a card knows no less of it than who has none.
    for one in &mut learnt.learnt_errors {
        let kind = match one.errors.figure == LEARNT_FIGURES[0] {
            true => FigureKind::Throughput,
            false => FigureKind::Latency,
        };
        let lessons = [Lesson::OfFittedCards, Lesson::OfGuessedCards];
        one.reach(|chance| {
            lessons.map(|of| of.within(kind, chance)).into_iter().fold(f64::INFINITY, f64::min)
        });
    }
    let logs = logs(&points);
    let mtu = stated_mtu(&points);
    // What was kept for prediction is no source of a number.
    let fitted = learnt.points.iter().filter(|one| !one.held_out).map(|one| &points[one.point].file);
    let fitted: BTreeSet<&String> = fitted.collect();
    let sources: Vec<&CalibratedLogAnswer> = logs.iter().filter(|log| fitted.contains(&log.file)).collect();
    let facts_stay = card::is_of_same_machines(&library, request, &system)?;
    let changes = card::changes(&learnt, (&system, &plain), facts_stay);
    let of_card = (&changes[..], &learnt);
    let (card, of_base) = card::card(&library, request, (&system, &plain), of_card, (&sources, mtu, header))?;
    Ok(CalibrateAnswer {
        schema_version: SCHEMA_VERSION,
        system: SystemAnswer::of(&system),
        unlike_ends: unlike_ends(&system, &request.path),
        path: request.path.clone(),
        held_out: hold_out.iter().map(HoldOut::to_string).collect(),
        logs,
        left_aside: aside.into_iter().map(LeftAsideAnswer::of).collect(),
        incomplete,
        log_doubts: learnt.log_doubts.iter().map(|one| one.said.clone()).collect(),
        numbers: learnt.numbers.iter().map(CalibratedNumberAnswer::of).collect(),
        kept: learnt.kept.iter().map(KeptNumberAnswer::of).collect(),
        telling_difference: learnt.telling_difference,
        facts_stay,
        measured_before: match facts_stay {
            true => card::staying(&system, &plain, &changes),
            false => Vec::new(),
        },
        base_errors: of_base.into_iter().map(BaseErrorsAnswer::of).collect(),
        fitted_error: learnt.fitted.into(),
        left_out_error: learnt.left_out.into(),
        left_out_cluster_error: learnt.left_out_clusters.into(),
        held_out_error: learnt.predicted.into(),
        held_out_error_of_roofline: learnt.roofline.into(),
        worse_than_roofline: !learnt.is_described,
        roofline_is_nearer: is_nearer(learnt.predicted, learnt.roofline),
        untold_read_latency: moved_latency(&points, &changes, (&system, &plain), &request.path)?,
        held_out_error_of_line: learnt.line.into(),
        repeated_difference: learnt.repeated.into(),
        held_out_within_80: learnt.covered,
        held_out_of_unfitted_series: CoveredAnswer {
            points: learnt.covered_elsewhere.points,
            within_80: learnt.covered_elsewhere.within,
        },
        warm_against_cold: (learnt.warm_against_cold != Directions::default()).then_some(DirectionsAnswer {
            apart: learnt.warm_against_cold.apart.into(),
            alike: learnt.warm_against_cold.alike.into(),
        }),
        card_errors: learnt.learnt_errors.iter().map(CardErrorsAnswer::of).collect(),
        points: of_points(&points, &learnt),
        mtu_bytes: mtu.map(Bytes::get),
        packet_header_bytes: header.map(|header| header.size.get()),
        card,
    })
}

/// How far above the port a rate may be printed: by rounding, and by what a run posts before its clock starts.
const ABOVE_PORT: f64 = 1.02;

/// Refuses rates of payload that no port of the path carries: the base is then another card, and whatever is fitted of it is
/// wrong by as much.
fn check_ports(points: &[MeasuredPoint], system: &System, path: &Path) -> Result<(), Failure> {
    let end = |name| system.endpoint(name).map(|(machine, _)| machine.role.as_str());
    let (Ok(from), Ok(to)) = (end(&path.requester), end(&path.responder)) else {
        return Ok(());
    };
    let ends = [from, to].map(|role| system.port_at_most(Some(role)));
    let (true, Some(port)) = (from != to, ends.into_iter().flatten().min()) else {
        return Ok(());
    };
    let above = points.iter().filter_map(|point| {
        let MeasuredRun::QueuePairs(run) = &point.run else { return None };
        let ways = if run.directions == TrafficDirections::Both { 2.0 } else { 1.0 };
        // A latency has the payload cross once.
        let payloads = match run.kind {
            RunKind::Bandwidth => point.measured,
            RunKind::Latency => 1.0 / point.measured,
        };
        let measured = payloads * run.payload.get() as f64 * 8.0;
        let is_above = measured > port.bits_per_second() as f64 * ways * ABOVE_PORT;
        is_above.then_some((point, measured))
    });
    let above: Vec<(&MeasuredPoint, f64)> = above.collect();
    let Some((point, measured)) = above.iter().max_by(|one, other| one.1.total_cmp(&other.1)) else {
        return Ok(());
    };
    Err(Failure::input(
        format!(
            "{}:{} has {:.1} Gbit/s, and the ports of `{path}` carry {port} each way: {} of {} rows are above that",
            point.file,
            point.line,
            measured / 1e9,
            above.len(),
            points.len(),
        ),
        format!(
            "name the card that was measured by `--base` (`offpath device list`) and its machines by `--testbed`, give its port, as by \
             `{}`, or leave a log out whose figure is wrong",
            system
                .machines
                .iter()
                .map(|machine| format!("--set {}.port_rate=400Gbit/s", machine.nic.name))
                .collect::<Vec<_>>()
                .join(" ")
        ),
    ))
}

/// Below this no error is worth a word.
const SMALL: f64 = 0.02;

/// Whether a roofline lies clearly nearer to the middle one of the held-out points, or to nine of ten of them.
fn is_nearer(own: ErrorSummary, roofline: ErrorSummary) -> bool {
    let nearer = |own: f64, roofline: f64| own > SMALL && own > 1.5 * roofline;
    own.points > 0 && (nearer(own.median, roofline.median) || nearer(own.p90, roofline.p90))
}

/// The payload of which the latencies of card and base are laid beside each other.
const SHORT: Bytes = Bytes::new(8);
/// How far they may lie apart without a word.
const APART: f64 = 0.1;

/// What a READ of few bytes takes by the base, and by the card, where no log has a latency and they differ.
fn moved_latency(
    points: &[MeasuredPoint],
    changes: &[card::ChangedNumber],
    (system, plain): (&System, &System),
    path: &str,
) -> Result<Option<MovedLatencyAnswer>, Failure> {
    let has_latency = points.iter().any(|point| point.run.kind() == RunKind::Latency);
    let is_of_queue_pairs = points.iter().all(|point| point.run.queue_pairs().is_some());
    if has_latency || !is_of_queue_pairs {
        return Ok(None);
    }
    let changed = card::changed(system, plain, changes)?;
    let run = ToolRun::plain(RunKind::Latency, Verb::Read, SHORT);
    let latency = |system: &System| -> Result<Time, Failure> {
        Ok(ToolBench::new(system, path).and_then(|bench| bench.expect(&run)).map_err(refused)?.latency)
    };
    let (base, card) = (latency(system)?, latency(&changed)?);
    let is_moved = (card.as_ns() / base.as_ns().max(1e-3) - 1.0).abs() > APART;
    Ok(is_moved.then(|| MovedLatencyAnswer { base_ns: base.as_ns(), card_ns: card.as_ns() }))
}

/// What makes points fit in place of a number.
fn in_words(ways: &[Vec<String>]) -> String {
    ways.iter().map(|way| way.join(" with ")).collect::<Vec<_>>().join(" or by ")
}

fn failed(error: CalibrationError) -> Failure {
    let words = error.to_string();
    let help = match error {
        CalibrationError::Expect(error) => return refused(error),
        CalibrationError::TooFew { .. } => "docs/calibrate.md says which runs tell what",
        CalibrationError::HoldsNothing { .. } => {
            "name what they have by `--hold-out`, or leave it out for every second size"
        }
        CalibrationError::NoSuchNumber { .. } => "name one of a rate, a time or a count of slots",
        CalibrationError::NotToldApart { .. } | CalibrationError::NotSeen { .. } => {
            "take that run, or leave the number out of `--fit`"
        }
    };
    Failure::input(words, help)
}

/// The path MTU, where every run states the same.
fn stated_mtu(points: &[MeasuredPoint]) -> Option<Bytes> {
    let of = |point: &MeasuredPoint| point.run.queue_pairs().and_then(|run| run.mtu);
    let first = of(points.first()?)?;
    points.iter().all(|point| of(point) == Some(first)).then_some(first)
}

fn logs(points: &[MeasuredPoint]) -> Vec<CalibratedLogAnswer> {
    let mut found: BTreeMap<&str, (usize, crc32fast::Hasher)> = BTreeMap::new();
    for point in points {
        let (count, hasher) = found.entry(&point.file).or_default();
        *count += 1;
        hasher.update(format!("{} {} {}\n", point.line, point.run, point.measured).as_bytes());
    }
    let of = |(file, (points, hasher)): (&str, (usize, crc32fast::Hasher))| CalibratedLogAnswer {
        file: file.to_string(),
        points,
        crc32: format!("{:08x}", hasher.finalize()),
    };
    found.into_iter().map(of).collect()
}

fn of_points(points: &[MeasuredPoint], learnt: &Calibration) -> Vec<CalibratedPointAnswer> {
    let of = |one: &offpath_learn::PredictedPoint| {
        let point = &points[one.point];
        // Rates as they are, latencies in nanoseconds.
        let (metric, times) = match point.run.kind() {
            RunKind::Bandwidth => ("operations_per_s", 1.0),
            RunKind::Latency => ("latency_ns", 1e9),
        };
        CalibratedPointAnswer {
            file: point.file.clone(),
            line: point.line,
            program: program_of(&point.run),
            run: point.run.to_string(),
            held_out: one.held_out,
            metric,
            measured: times * point.measured,
            predicted: times * one.predicted,
            low_80: times * one.low_80,
            high_80: times * one.high_80,
            left_out: one.left_out.map(|value| times * value),
            roofline: times * one.roofline,
            line_of_size: times * one.line,
        }
    };
    learnt.points.iter().map(of).collect()
}

impl From<ErrorSummary> for ErrorAnswer {
    fn from(summary: ErrorSummary) -> ErrorAnswer {
        let of = |value: f64| (summary.points > 0 && value.is_finite()).then_some(value);
        ErrorAnswer {
            points: summary.points,
            median: of(summary.median),
            p90: of(summary.p90),
            greatest: of(summary.greatest),
        }
    }
}

impl From<RunPairs> for RunPairsAnswer {
    fn from(counted: RunPairs) -> RunPairsAnswer {
        let RunPairs { pairs, right, right_by_rule } = counted;
        RunPairsAnswer { pairs, right, right_by_rule }
    }
}

impl LeftAsideAnswer {
    fn of(one: LeftAside) -> LeftAsideAnswer {
        let LeftAside { file, line, rows, why } = one;
        LeftAsideAnswer { file, line, rows, why }
    }
}

impl CalibratedNumberAnswer {
    fn of(one: &LearntNumber) -> CalibratedNumberAnswer {
        let (provenance, assumed_because) = card::known(one);
        let (replaceable_by, run, machine_tells) = match &one.doubt {
            Some(LearntDoubt::Replaceable { by, run, machine_tells }) => {
                (by.clone(), run.clone(), *machine_tells)
            }
            _ => (Vec::new(), None, false),
        };
        CalibratedNumberAnswer {
            name: one.name.clone(),
            same_number: one.also.clone(),
            base: one.base.to_string(),
            value: one.value.to_string(),
            low_90: one.low.to_string(),
            high_90: one.high.to_string(),
            at_bound: one.at_bound,
            told: one.is_told,
            stands_for: one.alike.clone(),
            provenance: provenance.name(),
            assumed_because,
            replaceable_by,
            run,
            machine_tells,
        }
    }
}

impl KeptNumberAnswer {
    fn of(one: &KeptNumber) -> KeptNumberAnswer {
        let (reason, alike) = match &one.reason {
            KeptReason::NotSeen => ("not-seen", Vec::new()),
            KeptReason::NotNeeded => ("not-needed", Vec::new()),
            KeptReason::Confirmed => ("confirmed", Vec::new()),
            KeptReason::NotToldApart(alike) => ("not-told-apart", alike.clone()),
            KeptReason::Pinned => ("pinned", Vec::new()),
        };
        KeptNumberAnswer {
            name: one.name.clone(),
            value: one.value.to_string(),
            card_value: one.taken.to_string(),
            reason,
            alike,
            low: one.replacing.or(one.held).map(|(low, _)| low.to_string()),
            high: one.replacing.or(one.held).map(|(_, high)| high.to_string()),
            run: one.run.clone(),
            machine_tells: one.machine_tells,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roofline_is_nearer_by_either_figure() {
        let of = |median: f64, p90: f64| ErrorSummary { points: 10, median, p90, greatest: 0.2 };
        for (own, roofline, nearer) in [
            (of(0.007, 0.079), of(0.010, 0.032), true),
            (of(0.050, 0.060), of(0.020, 0.059), true),
            (of(0.006, 0.050), of(0.014, 0.051), false),
            (of(0.015, 0.019), of(0.001, 0.002), false),
        ] {
            assert_eq!(is_nearer(own, roofline), nearer, "{own:?} {roofline:?}");
        }
        assert!(!is_nearer(ErrorSummary::default(), of(0.0, 0.0)));
    }
}
