//! `offpath run replog`: writes to the replicated log, and where the host's time goes.

use super::kv::connection_help;
use super::{
    BackendOptions, BackendReport, Busy, On, busiest, ns, refused, run_failed, stations_page, unread, us,
};
use crate::commands::Context;
use crate::failure::Failure;
use crate::output::{Format, SCHEMA_VERSION, Screen, TableCell, round, short};
use clap::{Args, ValueEnum};
use offpath::apps::replog::{self, Driven, LogAlternative, LogCosts, LogError, WriteLoad};
use offpath::fabric::RoleName;
use offpath::quantity::{BitRate, Bytes, Time};
use offpath::run::{Busiest, Logged, Surroundings, TAIL, followers_of, play};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath run replog --on twin:bluefield2 --placement A2 --compress all
  offpath run replog --on twin:bluefield2 --placement A2+A3 --card-share 40 --sessions 16
  offpath run replog --on local --placement A3 --backups 2 --directory logs
  offpath run replog --on verbs:mlx5_0 --placement A3 --connect 10.0.0.2:7000

Times of the host: posting, waiting for the acknowledgement, the file system, compression. On the twin the last
two are charged at the given rates, which nothing published gives; elsewhere all are measured.";

/// Writes to the replicated log: throughput, latency, and where the host's time goes
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    #[command(flatten)]
    backend: BackendOptions,
    #[command(flatten)]
    log: LogOptions,
    /// Bytes of a write
    #[arg(long, value_name = "BYTES", default_value = "8MiB")]
    bytes: Bytes,
    /// Writes of each session
    #[arg(long, default_value_t = 16, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    writes: u64,
    /// Sessions, each with one write in flight
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u32>(0, 4096))]
    sessions: u32,
    /// How many of 100 bytes can be compressed away
    #[arg(long, value_name = "PERCENT", default_value_t = 50, value_parser = crate::options::whole::<u32>(0, 100))]
    compressible: u32,
}

/// Who compresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compress {
    /// Nobody
    Off,
    /// The card, where it carries a chunk
    Card,
    /// Whoever carries a chunk to the backup
    All,
}

/// The shape of a log, which its roles agree on.
#[derive(Args, Debug)]
#[command(next_help_heading = "Log")]
pub struct LogOptions {
    /// How chunks reach the first backup: A1, A2, A3 or A2+A3
    #[arg(long, default_value = "A3", value_parser = alternative_named)]
    placement: LogAlternative,
    /// Backups in the chain; the twin has room for 2
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u32>(0, 16))]
    backups: u32,
    /// Bytes of a chunk
    #[arg(long, value_name = "BYTES", default_value = "256KiB")]
    chunk: Bytes,
    /// Chunks in flight on each connection
    #[arg(long, default_value_t = 8)]
    slots: u32,
    /// Of A2 and A3 together, how many of 100 chunks go by the card [default: as many as it has slots for]
    #[arg(long, value_name = "PERCENT", value_parser = crate::options::whole::<u32>(0, 100))]
    card_share: Option<u32>,
    /// The DMA engine of A2 [default: dma]
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// Who compresses chunks
    #[arg(long, value_enum, default_value = "off")]
    compress: Compress,
    /// Where the files of each role lie, below a directory of its name [default: a temporary directory]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// What one core of the twin appends to files; 0 charges nothing [default: 32Gbit/s]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    file_rate: Option<u64>,
    /// What one core of the twin compresses [default: 8Gbit/s]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    compress_rate: Option<u64>,
}

/// Bits a second; 0 for what costs nothing.
fn rate(text: &str) -> Result<u64, String> {
    if text == "0" {
        return Ok(0);
    }
    let rate: BitRate = text.parse().map_err(|error: offpath::quantity::ParseError| error.to_string())?;
    Ok(rate.bits_per_second())
}

const ALTERNATIVES: [(&str, LogAlternative); 4] = [
    ("A1", LogAlternative::CardRead),
    ("A2", LogAlternative::CardEngine),
    ("A3", LogAlternative::HostWrite),
    ("A2+A3", LogAlternative::CardEngineAndHostWrite),
];

fn alternative_named(name: &str) -> Result<LogAlternative, String> {
    let found = ALTERNATIVES.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    found.map(|(_, alternative)| alternative).ok_or_else(|| {
        format!("the log has no placement `{name}`; it has {}", ALTERNATIVES.map(|(name, _)| name).join(", "))
    })
}

fn name_of(alternative: LogAlternative) -> &'static str {
    ALTERNATIVES.iter().find(|(_, own)| *own == alternative).map_or("", |(name, _)| *name)
}

impl LogOptions {
    /// The log's options in a backend.
    pub fn options(&self, backend: &BackendOptions) -> Result<replog::LogConfig, Failure> {
        if backend.is_twin() && self.backups > 2 {
            return Err(Failure::input(
                format!("the twin has no paths for a chain of {} backups", self.backups),
                "choose `--backups 2` or fewer, or another backend",
            ));
        }
        self.check(backend)?;
        let needs_engine = self.needs_engine();
        if needs_engine && self.backups > 0 && matches!(backend.on, On::Verbs(_)) {
            return Err(Failure::input(
                format!(
                    "verbs have no DMA engine `{}`, which {} needs",
                    self.engine(),
                    name_of(self.placement)
                ),
                "choose `--placement A1` or `A3`, or run on the twin",
            ));
        }
        let chain = (0..self.backups).map(|number| match number {
            1 if backend.is_twin() => RoleName::new(TAIL, 0),
            number => RoleName::new("backup", number),
        });
        let chunk_bytes = u32::try_from(self.chunk.get()).unwrap_or(u32::MAX);
        let mut options = replog::LogConfig {
            engine: self.engine(),
            chunk_bytes,
            slots: self.slots,
            compress: self.compress != Compress::Off,
            host_compresses: self.compress == Compress::All,
            card_share_percent: self.card_share,
            ..replog::LogConfig::new(self.placement, chain.collect())
        };
        if backend.is_twin() {
            options.costs = LogCosts {
                file_bytes_per_second: self.file_rate() / 8,
                compress_bytes_per_second: self.compress_rate() / 8,
                sync: Time::ZERO,
            };
        }
        if let Some(patience) = backend.patience {
            options.patience = patience;
        }
        Ok(options)
    }

    /// What surrounds a run of the log.
    pub fn around(&self, seed: u64) -> Surroundings {
        Surroundings { seed, directory: self.directory.clone(), engine: Some(self.engine()) }
    }

    fn needs_engine(&self) -> bool {
        matches!(self.placement, LogAlternative::CardEngine | LogAlternative::CardEngineAndHostWrite)
    }

    fn engine(&self) -> String {
        self.engine.clone().unwrap_or_else(|| "dma".into())
    }

    /// Bits a second.
    fn file_rate(&self) -> u64 {
        self.file_rate.unwrap_or(32_000_000_000)
    }

    fn compress_rate(&self) -> u64 {
        self.compress_rate.unwrap_or(8_000_000_000)
    }

    /// Refuses what this log or its backend does not read.
    fn check(&self, backend: &BackendOptions) -> Result<(), Failure> {
        let named = name_of(self.placement);
        if self.engine.is_some() && !self.needs_engine() {
            return Err(unread("--engine", &format!("names the DMA engine of A2, and {named} uses none")));
        }
        if self.card_share.is_some() && self.placement != LogAlternative::CardEngineAndHostWrite {
            return Err(unread(
                "--card-share",
                &format!("divides chunks between A2 and A3, and this is {named}"),
            ));
        }
        if self.compress == Compress::Card && self.placement == LogAlternative::HostWrite {
            return Err(Failure::input(
                "`--compress card` compresses what the card carries, and by A3 it carries nothing",
                "choose `--compress all`, or another `--placement`",
            ));
        }
        let charged = [(self.file_rate, "--file-rate"), (self.compress_rate, "--compress-rate")];
        match charged.iter().find(|(rate, _)| rate.is_some() && !backend.is_twin()) {
            Some((_, option)) => Err(unread(option, "is what the twin charges, and this backend measures")),
            None if self.directory.is_some() && backend.is_twin() => {
                Err(unread("--directory", "is where files lie, and the twin keeps them in memory"))
            }
            None => Ok(()),
        }
    }
}

/// A log's error, with the exit code that it leads to.
pub fn failed(error: LogError) -> Failure {
    let (is_input, help) = match &error {
        LogError::Shape { .. } => {
            (true, "change `--chunk`, `--slots`, `--bytes`, `--writes` or `--card-share`")
        }
        LogError::NoEngine { .. } | LogError::Unsupported(_) => {
            (true, "choose another `--placement` or backend")
        }
        LogError::Connect(_) => (false, connection_help()),
        LogError::Region(_) => (true, "choose a smaller `--chunk`, or fewer `--slots`"),
        LogError::TwoWriters { .. } => (false, "or choose another `--directory`"),
        _ => (false, ""),
    };
    refused(&error, is_input, help)
}

/// Runs the primary, and the others where they are not elsewhere.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let log = options.log.options(&options.backend)?;
    if options.bytes.get() == 0 {
        return Err(Failure::input(
            "a write of 0 B writes nothing",
            "give `--bytes` a size, as in `--bytes 8MiB`",
        ));
    }
    if let Some(directory) = &options.log.directory {
        std::fs::create_dir_all(directory).map_err(|error| {
            Failure::input(
                format!("`{}` cannot hold the logs: {error}", directory.display()),
                "name a directory that can be written with `--directory`",
            )
        })?;
    }
    let load = WriteLoad {
        sessions: options.sessions,
        writes: options.writes,
        bytes: options.bytes.get(),
        compressible_percent: options.compressible,
    };
    let (place, backend) = options.backend.open(context, &followers_of(&log), None)?;
    let parts = Logged { options: log, load, serves: !options.backend.connects() };
    let ended = play(place, &parts, &options.log.around(options.backend.seed)).map_err(run_failed)?;
    // The primary that waits for a backup which failed tells less than the backup.
    let (primary, others): (Vec<_>, Vec<_>) =
        ended.answers.into_iter().partition(|(name, _)| name.role == "host");
    let mut driven = Driven::default();
    for (_, answer) in others.into_iter().chain(primary) {
        driven = answer.map_err(failed)?.unwrap_or(driven);
    }
    let answer = Answer::of(options, &parts, &backend, &driven, ended.elapsed, &ended.busy);
    context.screen.emit(&match context.screen.format {
        Format::Json => context.screen.json(&answer)?,
        _ => answer.page(&backend, &context.screen),
    })?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Parts {
    post_us: f64,
    wait_us: f64,
    file_system_us: f64,
    compression_us: f64,
}

#[derive(Serialize)]
struct Answer {
    schema_version: u32,
    system: &'static str,
    #[serde(flatten)]
    backend: BackendReport,
    placement: &'static str,
    backups: u32,
    chunk_bytes: u32,
    write_bytes: u64,
    sessions: u32,
    seed: u64,
    file_gbit_per_s: Option<f64>,
    compress_gbit_per_s: Option<f64>,
    writes: u64,
    throughput_gbit_per_s: f64,
    latency_ns_mean: f64,
    latency_ns_p50: f64,
    latency_ns_p99: f64,
    latency_ns_max: f64,
    host_time_per_write: Parts,
    chunks_by_card: u64,
    chunks_by_host: u64,
    window_us: f64,
    elapsed_us: f64,
    binding_station: Option<String>,
    busiest_stations: Vec<Busy>,
}

impl Answer {
    fn of(
        options: &Options,
        parts: &Logged,
        backend: &BackendReport,
        driven: &Driven,
        elapsed: Time,
        busy: &[Busiest],
    ) -> Answer {
        let each = |time: Time| round(time.as_us() / driven.writes.max(1) as f64);
        let (busiest_stations, binding_station) = busiest(busy);
        let charged = |rate: u64| options.backend.is_twin().then(|| round(rate as f64 / 1e9));
        Answer {
            schema_version: SCHEMA_VERSION,
            system: "replog",
            backend: backend.clone(),
            placement: name_of(parts.options.alternative),
            backups: options.log.backups,
            chunk_bytes: parts.options.chunk_bytes,
            write_bytes: parts.load.bytes,
            sessions: parts.load.sessions,
            seed: options.backend.seed,
            file_gbit_per_s: charged(options.log.file_rate()),
            compress_gbit_per_s: charged(options.log.compress_rate()),
            writes: driven.writes,
            throughput_gbit_per_s: round(driven.bits_per_second / 1e9),
            latency_ns_mean: ns(driven.mean_latency),
            latency_ns_p50: ns(driven.median_latency),
            latency_ns_p99: ns(driven.p99_latency),
            latency_ns_max: ns(driven.worst_latency),
            host_time_per_write: Parts {
                post_us: each(driven.parts.post),
                wait_us: each(driven.parts.wait),
                file_system_us: each(driven.parts.file_system),
                compression_us: each(driven.parts.compression),
            },
            chunks_by_card: driven.by_card,
            chunks_by_host: driven.by_host,
            window_us: us(driven.elapsed),
            elapsed_us: us(elapsed),
            binding_station,
            busiest_stations,
        }
    }

    fn page(&self, backend: &BackendReport, screen: &Screen) -> String {
        let mut text = format!(
            "replog on {}: {}, {} in the chain, chunks of {}\n{} writes of {}, {} at once; seed {}\n",
            backend.line,
            self.placement,
            match self.backups {
                1 => "1 backup".to_string(),
                count => format!("{count} backups"),
            },
            Bytes::new(self.chunk_bytes.into()),
            self.writes,
            Bytes::new(self.write_bytes),
            self.sessions,
            self.seed
        );
        if let (Some(file), Some(compress)) = (self.file_gbit_per_s, self.compress_gbit_per_s) {
            text += &format!(
                "a core is charged {} Gbit/s of appends and {} Gbit/s of compression (assumed)\n",
                short(file),
                short(compress)
            );
        }
        let rate = short(self.throughput_gbit_per_s);
        text += &screen.heading(&format!("{rate} Gbit/s, over the middle half of the writes"));
        let row =
            |what: &str, value: f64| vec![TableCell::Name(what.to_string()), TableCell::Number(short(value))];
        text += &screen.table(
            &["latency of a write", "us"],
            vec![
                row("mean", self.latency_ns_mean / 1e3),
                row("p50", self.latency_ns_p50 / 1e3),
                row("p99", self.latency_ns_p99 / 1e3),
                row("max", self.latency_ns_max / 1e3),
            ],
        );
        text += &screen.heading(&format!("The host's time for a write of {}", Bytes::new(self.write_bytes)));
        let parts = &self.host_time_per_write;
        let rows = [
            ("post", parts.post_us),
            ("wait for acknowledgement", parts.wait_us),
            ("file system", parts.file_system_us),
            ("compression", parts.compression_us),
        ];
        text +=
            &screen.table(&["part", "us"], rows.into_iter().map(|(what, value)| row(what, value)).collect());
        text +=
            &format!("\n{} chunks by the card, {} by the host\n", self.chunks_by_card, self.chunks_by_host);
        text += &stations_page(&self.busiest_stations, self.binding_station.as_ref(), screen);
        text += &format!(
            "\nmeasured {} ms of {} ms{}\n",
            short(self.window_us / 1e3),
            short(self.elapsed_us / 1e3),
            if self.file_gbit_per_s.is_some() { " simulated" } else { "" }
        );
        text
    }
}
