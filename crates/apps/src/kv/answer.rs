//! What a run of the store says.

use super::{ClientReport, Clients, Fetch, Placement};
use crate::system::{Block, Cell, RunPage, RunTable};
use offpath_quantity::Time;
use offpath_quantity::figures::{ns, percent, round, short, us};
use serde::Serialize;

/// One kind of operation.
#[derive(Clone, Debug, Serialize)]
pub struct OperationReport {
    /// Its name, as YCSB has it.
    operation: &'static str,
    /// How many.
    operations: u64,
    /// How many a second.
    throughput_ops_per_s: f64,
    /// Mean latency under this load.
    latency_ns_mean: f64,
    /// The median.
    latency_ns_p50: f64,
    /// 99% took no longer.
    latency_ns_p99: f64,
    /// 99.9% took no longer.
    latency_ns_p999: f64,
    /// The longest.
    latency_ns_max: f64,
}

/// The gets by one placement.
#[derive(Clone, Debug, Serialize)]
pub struct Gets {
    /// Which.
    placement: &'static str,
    /// What a get travels by.
    transport: &'static str,
    /// How many.
    gets: u64,
    /// Their share of all gets, from 0 to 1.
    share: f64,
    /// The share of them that the card's cache served, from 0 to 1; null where the placement looks into none.
    cache_hit_ratio: Option<f64>,
}

/// A run of YCSB.
#[derive(Clone, Debug, Serialize)]
pub struct Ran {
    /// The YCSB property file.
    workload: String,
    /// Where the index lies, and how clients get where no mix is given.
    placement: &'static str,
    /// How the card reaches the host's memory: `rdma`, or a DMA engine.
    fetch: String,
    /// Records of the workload.
    records: u64,
    /// Bytes of a value.
    value_bytes: u32,
    /// Clients of this process.
    clients: u32,
    /// Sessions of each, each with one operation at a time.
    sessions_per_client: u32,
    /// What was drawn follows from it.
    seed: u64,
    /// Operations that were measured.
    operations: u64,
    /// Operations a second over the window.
    throughput_ops_per_s: f64,
    /// By kind of operation.
    kinds: Vec<OperationReport>,
    /// Gets by placement.
    gets: Vec<Gets>,
    /// Gets that read again, since what they read had changed or did not come.
    retries: u64,
    /// Operations that ended in an error, which a later one got over.
    failed: u64,
    /// The same by kind; where not one of a kind was carried out, the exit code is 1.
    failures: Vec<FailureReport>,
    /// Gets of records that are not there.
    absent: u64,
    /// Gets whose value no revision of the record has; any is a fault, and the exit code 1.
    wrong: u64,
    /// Sessions whose operation had no answer when the window ended and had taken much longer than others: more
    /// than twice the longest that ended, or, where latency_ns_mean is given, more than that. Null where there were
    /// none.
    unanswered: Option<UnansweredReport>,
    /// How long was measured.
    window_us: f64,
    /// How long the run took by the backend's clock; simulated on the twin.
    elapsed_us: f64,
    /// Events of the simulation for each operation; null elsewhere.
    events_per_operation: Option<f64>,
}

/// Operations of one kind that ended in an error.
#[derive(Clone, Debug, Serialize)]
pub struct FailureReport {
    /// The kind, as YCSB calls it.
    operation: &'static str,
    /// How many of it ended in an error.
    failed: u64,
}

/// Sessions that had no answer when the window ended.
#[derive(Clone, Debug, Serialize)]
pub struct UnansweredReport {
    /// How many.
    sessions: u64,
    /// How long the oldest had been in flight.
    oldest_us: f64,
    /// The mean latency by Little's law, where the measured mean lies more than 2% below it: then the latencies of
    /// kinds are a lower bound. Null elsewhere.
    latency_ns_mean: Option<f64>,
}

/// What a get travels by that asks the card.
const OVER_UD: &str = "SEND over UD";
/// What one travels by that reads memory.
const OVER_RC: &str = "READ over RC";

/// What a get travels by.
fn transport_of(placement: Placement) -> &'static str {
    if placement.asks_the_card() { OVER_UD } else { OVER_RC }
}

impl Ran {
    pub(super) fn of(parts: &Clients, report: &ClientReport, elapsed: Time, seed: u64) -> Ran {
        let seconds = report.window.as_seconds();
        let kinds = report.operations().filter_map(|(operation, operations)| {
            let latency = report.latency(operation)?;
            Some(OperationReport {
                operation: operation.name(),
                operations,
                throughput_ops_per_s: if seconds > 0.0 { round(operations as f64 / seconds) } else { 0.0 },
                latency_ns_mean: ns(latency.mean),
                latency_ns_p50: ns(latency.p50),
                latency_ns_p99: ns(latency.p99),
                latency_ns_p999: ns(latency.p999),
                latency_ns_max: ns(latency.max),
            })
        });
        let failures = report
            .failures()
            .map(|(operation, failed)| FailureReport { operation: operation.name(), failed });
        let gets = report.gets.iter().map(|(placement, gets)| Gets {
            placement: placement.label(),
            transport: transport_of(*placement),
            gets: *gets,
            share: round(report.share(*placement)),
            cache_hit_ratio: report.cache_hit_ratio(*placement).map(round),
        });
        Ran {
            workload: parts.load.workload.file.clone(),
            placement: parts.options.placement.label(),
            fetch: match &parts.options.fetch {
                Fetch::Rdma => "rdma".to_string(),
                Fetch::Engine(name) => name.clone(),
            },
            records: parts.load.workload.record_count,
            value_bytes: parts.options.layout.value_bytes,
            clients: parts.shared.clients,
            sessions_per_client: parts.load.sessions,
            seed,
            operations: report.total(),
            throughput_ops_per_s: round(report.per_second()),
            kinds: kinds.collect(),
            gets: gets.collect(),
            retries: report.retries,
            failed: report.failed(),
            failures: failures.collect(),
            absent: report.absent,
            wrong: report.wrong,
            unanswered: report.unanswered().map(|unanswered| UnansweredReport {
                sessions: unanswered.sessions,
                oldest_us: us(unanswered.oldest),
                latency_ns_mean: unanswered.mean.map(ns),
            }),
            window_us: us(report.window),
            elapsed_us: us(elapsed),
            events_per_operation: report.events_per_operation().map(round),
        }
    }

    /// The same for people.
    pub(super) fn page(&self) -> RunPage {
        let number = |value: f64| Cell::Number(short(value));
        let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let engine = match self.fetch.as_str() {
            "rdma" => String::new(),
            engine => format!("; the card reaches the host by {engine}"),
        };
        let title = format!("{}, {} records of {} B", self.workload, self.records, self.value_bytes);
        let mut blocks = vec![
            Block::Text(format!(
                "{}, {} each{engine}; seed {}\n",
                plural(self.clients.into(), "client"),
                plural(self.sessions_per_client.into(), "session"),
                self.seed
            )),
            Block::Heading(format!("{} operations/s", rate(self.throughput_ops_per_s))),
        ];
        let rows = self.kinds.iter().map(|kind| {
            vec![
                Cell::Strong(kind.operation.to_string()),
                Cell::Number(kind.operations.to_string()),
                Cell::Number(rate(kind.throughput_ops_per_s)),
                number(kind.latency_ns_mean / 1e3),
                number(kind.latency_ns_p50 / 1e3),
                number(kind.latency_ns_p99 / 1e3),
                number(kind.latency_ns_p999 / 1e3),
                number(kind.latency_ns_max / 1e3),
            ]
        });
        let header = vec!["operation", "count", "per s", "mean us", "p50 us", "p99 us", "p99.9 us", "max us"];
        blocks.push(Block::Table(RunTable { header, rows: rows.collect() }));
        if let Some(unanswered) = &self.unanswered {
            let UnansweredReport { sessions, oldest_us, latency_ns_mean } = unanswered;
            let mut text = format!(
                "\n{} had no answer when the window ended, the oldest for {} us.\n",
                plural(*sessions, "session"),
                short(*oldest_us)
            );
            if let Some(mean) = latency_ns_mean {
                text += &format!(
                    "The latencies are of operations that ended, and a lower bound: by Little's law the mean is {} us. \
                     Take fewer sessions, or a window of many times `--patience`.\n",
                    short(mean / 1e3)
                );
            }
            blocks.push(Block::Text(text));
        }
        if !self.gets.is_empty() {
            let is_cached = self.gets.iter().any(|gets| gets.cache_hit_ratio.is_some());
            let rows = self.gets.iter().map(|gets| {
                let mut row = vec![
                    Cell::Strong(gets.placement.to_string()),
                    Cell::Number(gets.gets.to_string()),
                    Cell::Number(percent(gets.share, 1)),
                    Cell::Name(gets.transport.to_string()),
                ];
                let hits = gets.cache_hit_ratio.map_or_else(String::new, |ratio| percent(ratio, 1));
                row.extend(is_cached.then_some(Cell::Number(hits)));
                row
            });
            let mut header = vec!["placement", "gets", "share", "by", "cache hits"];
            header.truncate(if is_cached { 5 } else { 4 });
            blocks.push(Block::Heading("Gets by placement".to_string()));
            blocks.push(Block::Table(RunTable { header, rows: rows.collect() }));
        }
        blocks.push(Block::Stations);
        let (window, elapsed) = (short(self.window_us / 1e3), short(self.elapsed_us / 1e3));
        let simulated = self.events_per_operation.map(short);
        let simulated = simulated.map(|events| format!(" simulated, {events} events an operation"));
        blocks.push(Block::Text(format!(
            "\n{} retries, {} failed, {} absent, {} wrong\nmeasured {window} ms of {elapsed} ms{}\n",
            self.retries,
            self.failed,
            self.absent,
            self.wrong,
            simulated.unwrap_or_default()
        )));
        RunPage { title, blocks }
    }
}

/// A rate for people.
fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate >= 1e6 => format!("{} M", short(rate / 1e6)),
        rate if rate >= 1e3 => format!("{} k", short(rate / 1e3)),
        rate => short(rate),
    }
}
