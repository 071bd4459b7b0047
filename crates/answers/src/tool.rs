//! What `offpath path --as` answers: what a benchmark would print, and what bounds it.

use crate::SCHEMA_VERSION;
use crate::system::{SystemAnswer, unlike_ends};
use offpath_learn::{
    CeilingKind, ExpectError, Expected, KnownLoops, MANY_QUEUE_PAIRS, PROGRAMS, RunKind, RunLength,
    ToolBench, ToolProgram, ToolRun,
};
use offpath_logs::{LatencySpan, TrafficDirections};
use offpath_plan::known::{BoundedFigure, FigureOf, KnownFigure, PayloadBound, known_figures};
use offpath_plan::residual::{FigureKind, PastErrors};
use offpath_plan::sample::DRAWS;
use offpath_profile::System;
use offpath_quantity::{Bytes, Time};
use offpath_route::{Path, PathOperation, Router};
use offpath_terminal::failure::Failure;
use offpath_terminal::options::SystemOptions;
use offpath_terminal::output::{Screen, TableCell, short};
use offpath_twin::Seed;
use serde::Serialize;
use std::sync::Arc;

/// What decides the draws behind intervals.
const SEED: u64 = 1;

/// A run of a benchmark, by the options of its own. What is absent is what the program does by itself.
#[derive(Clone, Debug, Default)]
pub struct ToolRequest {
    /// A device's name, or a .toml file that describes one.
    pub device: String,
    /// From the client's endpoint to the server's.
    pub path: String,
    /// The program, as `ib_read_bw`.
    pub program: String,
    /// Payloads, a row each; the powers of two from 2 B to 8 MiB where there is none, as `-a` has them.
    pub sizes: Vec<Bytes>,
    /// Queue pairs.
    pub qps: Option<u64>,
    /// Requests of each queue pair that are posted ahead.
    pub tx_depth: Option<u64>,
    /// Requests behind one completion.
    pub cq_moderation: Option<u64>,
    /// Requests behind one doorbell.
    pub post_list: Option<u64>,
    /// The largest payload that goes inline.
    pub inline: Option<Bytes>,
    /// READs in flight of each queue pair.
    pub outstanding_reads: Option<u64>,
    /// Payload of a packet.
    pub mtu: Option<Bytes>,
    /// Iterations of each queue pair.
    pub iterations: Option<u64>,
    /// How long it runs, in place of iterations.
    pub duration: Option<Time>,
    /// Whether both sides send.
    pub is_bidirectional: bool,
    /// Whether bandwidth is printed in 10^9 bits.
    pub in_gbits: bool,
    /// Which system is meant.
    pub system: SystemOptions,
}

/// What a benchmark would print on a system.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The system.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// The program.
    pub program: &'static str,
    /// From the client's endpoint to the server's.
    pub path: String,
    /// What a request does.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::verbs())))]
    pub verb: &'static str,
    /// Queue pairs, for all of which one thread posts.
    pub queue_pairs: u64,
    /// What the rates leave out that so many queue pairs may meet; null where there are few. No row is better known than by
    /// order then.
    pub not_modelled: Option<&'static str>,
    /// Requests of each queue pair that are posted ahead.
    pub tx_depth: u64,
    /// Requests behind one doorbell.
    pub post_list: u64,
    /// The largest payload that goes inline.
    pub inline_bytes: u64,
    /// READs and atomics in flight of each queue pair; null for other verbs.
    pub outstanding_reads: Option<u64>,
    /// Payload of a packet.
    pub mtu_bytes: u64,
    /// `one`, or `both`, of which rates are the sum.
    pub directions: &'static str,
    /// From where to where a latency reaches; null where bandwidth is measured.
    pub span: Option<&'static str>,
    /// Whether the text has bandwidth in 10^9 bits.
    #[serde(skip)]
    pub in_gbits: bool,
    /// That the ends of the path have ports of different rates, of which the slower one bounds both; null where they have not.
    pub unlike_ends: Option<String>,
    /// What such runs do, as `write` or `read both ways`, where predictions for this card were held to logs of other traffic alone, or of bandwidths alone where these are latencies; null
    /// elsewhere. No row is better known than weakly then.
    pub untold_traffic: Option<String>,
    /// Why the errors that this card's own logs tell of such runs do not widen rows, a sentence each; empty where it has none, or
    /// they widen all.
    pub own_errors_passed_over: Vec<String>,
    /// How many of 256 joint draws are a system that carries the runs: the intervals are of these alone.
    pub interval_draws: usize,
    /// A row for each payload.
    pub rows: Vec<ToolRowAnswer>,
}

/// A row that a benchmark would print.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolRowAnswer {
    /// Payload; 8 for atomics.
    pub payload_bytes: u64,
    /// Requests, of all queue pairs together.
    pub iterations: u64,
    /// Requests of a queue pair behind one completion.
    pub cq_moderation: u64,
    /// Bandwidth of payload in 10^9 bits; null where latency is measured.
    pub bandwidth_gbit_per_s_mean: Option<f64>,
    /// An end of its 80% interval, from one joint sample of every number that is known as a range, widened by what past
    /// predictions were wrong by.
    pub bandwidth_low_80_gbit_per_s: Option<f64>,
    /// Its upper end.
    pub bandwidth_high_80_gbit_per_s: Option<f64>,
    /// The same in 2^20 bytes, which the program calls MB or MiB.
    pub bandwidth_mib_per_s_mean: Option<f64>,
    /// Messages.
    pub operations_per_s_mean: Option<f64>,
    /// An end of its 80% interval, as that of the bandwidth.
    pub operations_low_80_per_s: Option<f64>,
    /// Its upper end.
    pub operations_high_80_per_s: Option<f64>,
    /// The latency on idle stations, as the program defines it; null where bandwidth is measured.
    pub latency_ns_median: Option<f64>,
    /// An end of its 80% interval, as that of the bandwidth.
    pub latency_low_80_ns: Option<f64>,
    /// Its upper end.
    pub latency_high_80_ns: Option<f64>,
    /// How well it is known; docs/confidence.md says what each means.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::BASES)))]
    pub basis: &'static str,
    /// The ranged number that moves it most; null where none does.
    pub most_moved_by: Option<String>,
    /// The cards whose past predictions the interval is widened by: this one alone where half or more of what the row rests on
    /// was measured on it, and its calibration left errors of such figures.
    pub errors_learnt_on: Vec<String>,
    /// Of how many points the card's own errors are, where these are meant.
    #[serde(skip)]
    pub own_errors: Option<u64>,
    /// What bounds the rate alone, the lowest first; empty where latency is measured.
    pub ceilings: Vec<ToolCeilingAnswer>,
}

/// What a rate cannot exceed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolCeilingAnswer {
    /// A station, or one of `posting thread`, `receiving thread`, `queue pairs`, `requests posted ahead` and `READs in
    /// flight`.
    pub what: String,
    /// Requests that it lets through.
    pub operations_per_s: f64,
}

/// The names of the programs whose output is predicted.
pub fn tool_programs() -> Vec<&'static str> {
    PROGRAMS.iter().map(|program| program.name).collect()
}

/// Sizes that `-a` runs through.
fn all_sizes() -> Vec<Bytes> {
    (1..=23).map(|power| Bytes::new(1 << power)).collect()
}

pub(crate) fn refused(error: ExpectError) -> Failure {
    match error {
        ExpectError::Run(why) => {
            Failure::input(why.to_string(), "see docs/calibrate.md for what is predicted")
        }
        ExpectError::Route(error) => Failure::from(error),
        ExpectError::Profile(error) => Failure::from(*error),
        other => Failure::input(other.to_string(), "`offpath path DEVICE` lists the paths"),
    }
}

/// What a benchmark would print.
///
/// ```
/// use offpath_answers::tool::{ToolRequest, tool};
/// let request = ToolRequest {
///     device: "connectx7".into(),
///     path: "client-host".into(),
///     program: "ib_read_bw".into(),
///     ..ToolRequest::default()
/// };
/// for row in tool(&request)?.rows {
///     println!("{} {:?}", row.payload_bytes, row.bandwidth_gbit_per_s_mean);
/// }
/// # Ok::<(), offpath_answers::Failure>(())
/// ```
///
/// # Errors
/// Where the device, the path, the program or an option is refused.
pub fn tool(request: &ToolRequest) -> Result<ToolAnswer, Failure> {
    let program = ToolProgram::named(&request.program).ok_or_else(|| {
        let known = tool_programs().join(", ");
        Failure::input(
            format!("`{}` is not a program whose output is predicted", request.program),
            format!("use one of {known}"),
        )
    })?;
    let library = request.system.library()?;
    let system =
        request.system.between_two(&library, &request.device)?.load(&library, &request.device, &[])?;
    let bench = ToolBench::new(&system, &request.path).map_err(refused)?;
    let is_latency = program.kind == RunKind::Latency;
    let only_bandwidth = [
        (request.qps.is_some(), "--qps"),
        (request.tx_depth.is_some(), "--tx-depth"),
        (request.cq_moderation.is_some(), "--cq-mod"),
        (request.post_list.is_some(), "--post-list"),
        (request.is_bidirectional, "--bidirectional"),
        (request.in_gbits, "--report-gbits"),
    ];
    if let Some((_, option)) = only_bandwidth.iter().find(|(given, _)| *given && is_latency) {
        return Err(Failure::input(
            format!("{option} has no effect on `{}`, which has one request in flight", program.name),
            "leave it out, or ask for a program that measures bandwidth",
        ));
    }
    if request.duration.is_some() && is_latency {
        return Err(Failure::input(
            format!("with --duration `{}` prints the mean alone, and the median is predicted", program.name),
            "leave it out, and compare with the median of a run of `-n` iterations",
        ));
    }
    let is_read = program.run(Bytes::new(8)).is_read();
    for (is_given, option, what) in [
        (request.inline.is_some() && is_read, "--inline-size", "whose requests carry no payload"),
        (request.outstanding_reads.is_some() && !is_read, "--outs", "which neither reads nor is atomic"),
    ] {
        if is_given {
            return Err(Failure::input(
                format!("{option} has no effect on `{}`, {what}", program.name),
                "leave it out",
            ));
        }
    }
    let own_size = program.verb.own_payload();
    if let (Some(own), Some(given)) = (own_size, request.sizes.iter().find(|size| Some(**size) != own_size)) {
        return Err(Failure::input(
            format!("`--size {given}`: an atomic always moves {own}"),
            "leave `--size` out",
        ));
    }
    let sizes = match (&request.sizes[..], own_size) {
        (_, Some(own)) => vec![own],
        ([], None) => all_sizes(),
        (sizes, None) => sizes.to_vec(),
    };
    let goes_through_all = request.sizes.is_empty() && own_size.is_none();
    let run = |size: Bytes| {
        // With `-a` moderation is that of the smallest size.
        let of = if goes_through_all { sizes[0] } else { size };
        let plain = ToolRun { payload: size, ..program.run(of) };
        let each = match plain.length {
            Some(RunLength::Iterations(each)) => request.iterations.unwrap_or(each),
            _ => request.iterations.unwrap_or(1),
        };
        let queue_pairs = request.qps.unwrap_or(plain.queue_pairs);
        let tx_depth = request.tx_depth.unwrap_or(plain.tx_depth);
        // Nothing is posted ahead that is never run.
        let tx_depth = if request.duration.is_some() { tx_depth } else { tx_depth.min(each).max(1) };
        let listed = plain.clone().listed(request.post_list.unwrap_or(plain.post_list));
        ToolRun {
            queue_pairs,
            tx_depth,
            cq_moderation: request.cq_moderation.unwrap_or(listed.cq_moderation).min(tx_depth),
            inline: request.inline.unwrap_or(plain.inline),
            outstanding_reads: request.outstanding_reads,
            mtu: request.mtu,
            directions: if request.is_bidirectional {
                TrafficDirections::Both
            } else {
                TrafficDirections::One
            },
            length: Some(match request.duration {
                Some(duration) => RunLength::Duration(duration),
                None => RunLength::Iterations(each.saturating_mul(queue_pairs)),
            }),
            ..listed
        }
    };
    let runs: Vec<ToolRun> = sizes.iter().map(|size| run(*size)).collect();
    refuse_lists(program, &runs[0])?;
    let reads_of = |end: &str| system.endpoint(end).map(|(machine, _)| machine.nic.outstanding_reads);
    let reads = reads_of(&bench.path().requester)?.min(reads_of(&bench.path().responder)?);
    if let Some(asked) = request.outstanding_reads.filter(|asked| *asked > reads) {
        return Err(Failure::input(
            format!(
                "`--outs {asked}` is above the {reads} READs and atomics that a queue pair of `{}` has in flight",
                system.device
            ),
            "perftest takes what the device has (`ibv_devinfo -v`: max_qp_rd_atom) and no more; where yours has more, give it by \
             `--set nic.outstanding_reads=N --set client.nic.outstanding_reads=N`",
        ));
    }
    let expected: Vec<Expected> =
        runs.iter().map(|run| bench.expect(run)).collect::<Result<_, _>>().map_err(refused)?;
    let router = Router::new(bench.system())?;
    let known = known(&bench, &router, &request.path, &runs)?;
    let span = is_latency.then_some(expected[0].span);
    let rows = runs.iter().zip(&expected).zip(&known);
    let rows = rows.map(|((run, expected), known)| ToolRowAnswer::of(run, expected, known, &system.device));
    let rows = rows.collect();
    let first = &runs[0];
    let own_errors_passed_over = passed_over(&system, bench.path(), &runs, (&expected, &known));
    Ok(ToolAnswer {
        schema_version: SCHEMA_VERSION,
        system: SystemAnswer::of(&system),
        program: program.name,
        path: bench.path().to_string(),
        verb: program.verb.name(),
        queue_pairs: first.queue_pairs,
        not_modelled: (first.queue_pairs >= MANY_QUEUE_PAIRS).then_some(
            "the state of so many queue pairs may not fit into the NIC's cache, and rates fall then",
        ),
        tx_depth: first.tx_depth,
        post_list: first.post_list,
        inline_bytes: first.inline.get(),
        outstanding_reads: first.is_read().then(|| first.outstanding_reads.unwrap_or(reads)),
        mtu_bytes: first.mtu.unwrap_or(system.network.mtu).get(),
        directions: first.directions.name(),
        span: span.map(LatencySpan::name),
        in_gbits: request.in_gbits,
        unlike_ends: unlike_ends(&system, &bench.path().to_string()),
        untold_traffic: Some(first.traffic()).filter(|traffic| {
            system.is_untold(figure_kind(first).name(), traffic, &bench.path().to_string())
        }),
        own_errors_passed_over,
        interval_draws: known[0].draws,
        rows,
    })
}

/// Why what the card's own logs tell of such runs widens rows no more than what other cards tell does, a sentence each.
fn passed_over(
    system: &System,
    path: &Path,
    runs: &[ToolRun],
    (expected, known): (&[Expected], &[KnownFigure<'_>]),
) -> Vec<String> {
    let path = path.to_string();
    let (mut on_guesses, mut bound): (u64, Vec<&str>) = (0, Vec::new());
    let rows = runs.iter().zip(expected).zip(known);
    for ((run, expected), _) in rows.filter(|(_, known)| matches!(known.errors, PastErrors::Of(_))) {
        let (figure, traffic) = (figure_kind(run).name(), run.traffic());
        let binding = expected.binding().name();
        if system.learnt_errors(figure, (&traffic, &path), binding).is_some() {
            on_guesses += 1;
        } else if system.learnt_errors.iter().any(|own| own.figure == figure && own.is_of(&traffic, &path))
            && !bound.contains(&binding)
        {
            bound.push(binding);
        }
    }
    let guesses = (on_guesses > 0).then(|| {
        format!(
            "of {on_guesses} of {} rows what this card's own logs were off by does not speak: they rest for more than half on numbers that \
             were not measured here",
            runs.len()
        )
    });
    let bound = (!bound.is_empty()).then(|| {
        format!(
            "of rows that {} bound this card's own logs do not say what predictions are wrong by: too few of them were, or one log alone \
             tells of it",
            bound.join(" and ")
        )
    });
    guesses.into_iter().chain(bound).collect()
}

/// Refuses lists that perftest refuses, and those that it never posts.
fn refuse_lists(program: &ToolProgram, run: &ToolRun) -> Result<(), Failure> {
    let ToolRun { post_list, tx_depth, cq_moderation, queue_pairs, .. } = *run;
    let said = format!("`{}` with --post-list {post_list}", program.name);
    if post_list > tx_depth {
        return Err(Failure::input(
            format!("{said} posts nothing: {tx_depth} requests are posted ahead at most"),
            format!("take lists of {tx_depth} at most, or a greater `--tx-depth` and as many `--iters`"),
        ));
    }
    if !post_list.is_multiple_of(cq_moderation) && post_list > 1 {
        return Err(Failure::input(
            format!(
                "{said} and --cq-mod {cq_moderation} does not run: a list has to be a multiple of the moderation"
            ),
            "leave `--cq-mod` out: then each list has one completion",
        ));
    }
    match run.length {
        Some(RunLength::Iterations(all)) if !(all / queue_pairs).is_multiple_of(post_list) => {
            let each = all / queue_pairs;
            Err(Failure::input(
                format!("{said} does not run {each} iterations, which are no multiple of a list"),
                format!("add `--iters {}`, or `--duration`", each.next_multiple_of(post_list)),
            ))
        }
        _ => Ok(()),
    }
}

/// How well what runs print is known: rates of messages, or seconds.
///
/// # Errors
/// Where a run's route is refused.
pub(crate) fn known<'r>(
    bench: &ToolBench,
    router: &'r Router,
    path: &str,
    runs: &[ToolRun],
) -> Result<Vec<KnownFigure<'r>>, Failure> {
    let back = Path {
        requester: bench.path().responder.clone(),
        responder: bench.path().requester.clone(),
        engine: None,
    };
    let mut bounds = Vec::with_capacity(runs.len());
    let mut of = Vec::with_capacity(runs.len());
    for run in runs {
        let mut operations = vec![PathOperation::new(run.verb, bench.path().clone(), run.payload)];
        if run.directions == TrafficDirections::Both {
            operations.push(PathOperation::new(run.verb, back.clone(), run.payload));
        }
        of.push(FigureOf {
            kind: figure_kind(run),
            traffic: run.traffic(),
            path: bench.path().to_string(),
            bound_by: bench.expect(run).map_err(refused)?.binding().name().to_string(),
            has_evidence: router.route(&operations[0])?.is_published && run.queue_pairs < MANY_QUEUE_PAIRS,
        });
        bounds.push((PayloadBound::new(router, &operations)?, operations.len() as f64));
    }
    let loops = Arc::<KnownLoops>::default();
    let figures = |system: &System| -> Option<Vec<BoundedFigure>> {
        let bench = ToolBench::new(system, path).ok()?.sharing(&loops);
        let router = Router::new(bench.system()).ok()?;
        let figure = |(run, (bound, sides)): (&ToolRun, &(PayloadBound, f64))| {
            let expected = bench.expect(run).ok()?;
            Some(match run.kind {
                RunKind::Bandwidth => {
                    let most = bound.rounds_per_s(&router).ok()? * sides;
                    BoundedFigure { value: expected.rate_per_s, most }
                }
                RunKind::Latency => {
                    BoundedFigure { value: expected.latency.as_seconds(), most: f64::INFINITY }
                }
            })
        };
        runs.iter().zip(&bounds).map(figure).collect()
    };
    let known = known_figures(router, &of, Seed::new(SEED), figures);
    Ok(known.expect("the same runs were expected of the system before"))
}

/// The part of a run for a time whose iterations perftest counts: at each end it leaves out a quarter, in whole seconds.
fn counted(duration: Time) -> Time {
    let second = Time::from_ms(1_000);
    let margin = Time::from_ps(duration.ps() / second.ps() / 4 * second.ps());
    duration.saturating_sub(margin + margin)
}

/// What a run measures.
fn figure_kind(run: &ToolRun) -> FigureKind {
    match run.kind {
        RunKind::Bandwidth => FigureKind::Throughput,
        RunKind::Latency => FigureKind::Latency,
    }
}

impl ToolRowAnswer {
    fn of(run: &ToolRun, expected: &Expected, known: &KnownFigure<'_>, device: &str) -> ToolRowAnswer {
        let is_bandwidth = expected.kind == RunKind::Bandwidth;
        let iterations = match run.length {
            Some(RunLength::Iterations(all)) => all,
            Some(RunLength::Duration(duration)) => {
                (expected.rate_per_s * counted(duration).as_seconds()).round() as u64
            }
            None => 0,
        };
        let ceiling = |one: &offpath_learn::Ceiling| ToolCeilingAnswer {
            what: CeilingKind::name(&one.kind).to_string(),
            operations_per_s: one.rate_per_s,
        };
        let (low, high) = known.ranged.range_80;
        let of_rate = |end: f64| is_bandwidth.then_some(end);
        let of_bits = |end: f64| of_rate(end * expected.payload.get() as f64 * 8.0 / 1e9);
        let of_time = |end: f64| (!is_bandwidth).then_some(end * 1e9);
        ToolRowAnswer {
            payload_bytes: expected.payload.get(),
            iterations,
            cq_moderation: run.cq_moderation,
            bandwidth_gbit_per_s_mean: is_bandwidth.then(|| expected.gbit_per_s()),
            bandwidth_low_80_gbit_per_s: of_bits(low),
            bandwidth_high_80_gbit_per_s: of_bits(high),
            bandwidth_mib_per_s_mean: is_bandwidth.then(|| expected.mib_per_s()),
            operations_per_s_mean: is_bandwidth.then_some(expected.rate_per_s),
            operations_low_80_per_s: of_rate(low),
            operations_high_80_per_s: of_rate(high),
            latency_ns_median: (!is_bandwidth).then(|| expected.latency.as_ns()),
            latency_low_80_ns: of_time(low),
            latency_high_80_ns: of_time(high),
            basis: known.basis.name(),
            most_moved_by: known.most_moved_by.clone(),
            errors_learnt_on: known.errors.cards(device),
            own_errors: match known.errors {
                PastErrors::OfThisCard(own) => Some(own.points),
                PastErrors::Of(_) => None,
            },
            ceilings: if is_bandwidth { expected.ceilings.iter().map(ceiling).collect() } else { Vec::new() },
        }
    }
}

impl ToolAnswer {
    /// The rows as the program prints them, and what bounds each.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = format!("{} from {} on {}\n\n", self.program, self.path, self.system.line());
        let is_bandwidth = self.span.is_none();
        let mut head = format!(" Number of qps   : {}\t\tConnection type : RC\n", self.queue_pairs);
        if is_bandwidth {
            head += &format!(" TX depth        : {}\n", self.tx_depth);
            if self.post_list > 1 {
                head += &format!(" Post List       : {}\n", self.post_list);
            }
            head += &format!(" CQ Moderation   : {}\n", self.rows[0].cq_moderation);
        }
        head += &format!(" Mtu             : {}[B]\n", self.mtu_bytes);
        head += &match self.outstanding_reads {
            Some(reads) => format!(" Outstand reads  : {reads}\n"),
            None => format!(" Max inline data : {}[B]\n", self.inline_bytes),
        };
        let mut table = head;
        if is_bandwidth {
            let unit = if self.in_gbits { "Gb" } else { "MiB" };
            table += &format!(
                " #bytes     #iterations    BW peak[{unit}/sec]    BW average[{unit}/sec]   MsgRate[Mpps]\n"
            );
            for row in &self.rows {
                let value =
                    if self.in_gbits { row.bandwidth_gbit_per_s_mean } else { row.bandwidth_mib_per_s_mean };
                let value = value.unwrap_or(0.0);
                let value =
                    if self.in_gbits && value < 0.1 { format!("{value:.6}") } else { format!("{value:.2}") };
                let rate = row.operations_per_s_mean.unwrap_or(0.0) / 1e6;
                table += &format!(
                    " {:<10} {:<14} {:<18} {value:<20} {rate:.6}\n",
                    row.payload_bytes, row.iterations, "-"
                );
            }
        } else {
            table += " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n";
            for row in &self.rows {
                let typical = row.latency_ns_median.unwrap_or(0.0) / 1e3;
                table += &format!(
                    " {:<6} {:<14} {:<14} {:<12} {typical:.2}\n",
                    row.payload_bytes, row.iterations, "-", "-"
                );
            }
        }
        text += &screen.verbatim(&table);
        text.extend(self.unlike_ends.iter().map(|said| format!("\n{said}\n")));
        if let Some(span) = self.span {
            let words = if span == LatencySpan::HalfRoundTrip.name() {
                "half a round trip"
            } else {
                "the whole operation"
            };
            text +=
                &format!("\nLatencies are {words}, on idle stations. Peaks and tails are not predicted.\n");
            return text + &self.known_text(screen);
        }
        text += &screen.heading("What bounds each row, in M messages/s");
        let rows = self.rows.iter().map(|row| {
            let mut cells = vec![TableCell::Number(Bytes::new(row.payload_bytes).to_string())];
            for place in 0..3 {
                let words =
                    |one: &ToolCeilingAnswer| format!("{} {}", one.what, short(one.operations_per_s / 1e6));
                cells.push(TableCell::Text(row.ceilings.get(place).map_or_else(|| "-".to_string(), words)));
            }
            cells
        });
        text += &screen.table(&["payload", "binds", "then", "then"], rows.collect());
        text += "Peaks are not predicted. Where two ceilings are close a run stays below both.\n";
        text.extend(
            self.not_modelled.map(|what| format!("Not modelled: {what}: a run may stay far below.\n")),
        );
        text + &self.known_text(screen)
    }

    /// How well each row is known, in the unit that the program prints.
    fn known_text(&self, screen: &Screen) -> String {
        let mut text = screen.heading("How well each row is known");
        const MIB_PER_GBIT: f64 = 1e9 / 8.0 / (1 << 20) as f64;
        let unit = match (self.span.is_some(), self.in_gbits) {
            (true, _) => "usec",
            (false, true) => "Gb/sec",
            (false, false) => "MiB/sec",
        };
        let rows = self.rows.iter().map(|row| {
            let (figure, times) = match (self.span.is_some(), self.in_gbits) {
                (true, _) => ([row.latency_ns_median, row.latency_low_80_ns, row.latency_high_80_ns], 1e-3),
                (false, in_gbits) => (
                    [
                        row.bandwidth_gbit_per_s_mean,
                        row.bandwidth_low_80_gbit_per_s,
                        row.bandwidth_high_80_gbit_per_s,
                    ],
                    if in_gbits { 1.0 } else { MIB_PER_GBIT },
                ),
            };
            let [value, low, high] = figure.map(|end| short(end.unwrap_or(f64::NAN) * times));
            vec![
                TableCell::Number(Bytes::new(row.payload_bytes).to_string()),
                TableCell::Number(value),
                TableCell::Name(format!("{low} to {high}")),
                TableCell::Text(row.basis.to_string()),
                TableCell::Name(row.most_moved_by.clone().unwrap_or_else(|| "-".to_string())),
            ]
        });
        text += &screen.table(&["payload", unit, "80% interval", "basis", "most moved by"], rows.collect());
        let own: Vec<u64> = self.rows.iter().filter_map(|row| row.own_errors).collect();
        let (count, all) = (own.len(), self.rows.len());
        if let Some(points) = own.first() {
            let rows = if count == all {
                "all rows rest".to_string()
            } else {
                format!("{count} of {all} rows rest")
            };
            text += &format!(
                "Intervals: {rows} for half or more on what was measured here or is held to it, and are widened by what predictions of {points} points \
                 that are fitted to this card's own logs were wrong by without their own run or log.\n",
            );
        }
        if let Some(said) = self.system.widened_by_others().filter(|_| count < all) {
            let others = if count > 0 { "The other rows: " } else { "Intervals: " };
            text += &format!("{others}{said}.\n");
        }
        for said in &self.own_errors_passed_over {
            text += &format!("The card's own errors: {said}.\n");
        }
        if let Some(said) = self.system.latency_untold().filter(|_| self.span.is_some()) {
            text += &format!("Latencies: {said}.\n");
        } else if let Some(traffic) = &self.untold_traffic {
            text += &format!(
                "No log of {traffic} on {} is behind this card: what predictions of it are wrong by is not known from the card's own \
                 logs. `offpath calibrate` with a log of {} tells.\n",
                self.path, self.program
            );
        }
        if self.interval_draws < DRAWS {
            text += &format!(
                "Intervals: of the {} of {DRAWS} joint draws that are a system which carries these runs.\n",
                self.interval_draws,
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(post_list: u64, change: impl Fn(&mut ToolRequest)) -> Result<ToolAnswer, String> {
        let mut request = ToolRequest {
            device: "connectx7".into(),
            path: "client-host".into(),
            program: "ib_write_bw".into(),
            sizes: vec![Bytes::new(65_536)],
            post_list: Some(post_list),
            ..ToolRequest::default()
        };
        change(&mut request);
        tool(&request).map_err(|failure| format!("{failure:?}"))
    }

    /// What nothing models is said, and nothing beyond it is predicted.
    #[test]
    fn many_queue_pairs_are_known_by_order_alone() {
        let of = |qps| listed(1, |request| request.qps = Some(qps)).expect("it is carried");
        let many = of(MANY_QUEUE_PAIRS);
        assert!(many.rows.iter().all(|row| row.basis == "order only"), "{many:?}");
        assert!(many.not_modelled.is_some_and(|what| what.contains("the state of so many queue pairs")));
        assert_eq!(of(MANY_QUEUE_PAIRS - 1).not_modelled, None);
    }

    /// A list has one completion, of large payloads, too, and what perftest refuses is refused: its source is what this follows.
    #[test]
    fn lists_are_those_of_perftest() {
        let moderation = |found: Result<ToolAnswer, String>| found.map(|found| found.rows[0].cq_moderation);
        assert_eq!(moderation(listed(25, |_| {})), Ok(25));
        let of_eight = |request: &mut ToolRequest| {
            (request.cq_moderation, request.iterations) = (Some(8), Some(3200));
        };
        assert_eq!(moderation(listed(32, of_eight)), Ok(8));
        let by_time = |request: &mut ToolRequest| request.duration = Some(Time::from_ms(5_000));
        assert_eq!(moderation(listed(32, by_time)), Ok(32));
        for (refused, said) in [
            (listed(32, |_| {}), "5000 iterations, which are no multiple of a list"),
            (listed(32, |_| {}), "--iters 5024"),
            (
                listed(25, |request| request.cq_moderation = Some(10)),
                "a list has to be a multiple of the moderation",
            ),
            (listed(200, |_| {}), "posts nothing: 128 requests are posted ahead"),
        ] {
            assert!(refused.is_err_and(|words| words.contains(said)), "{said}");
        }
    }
}
