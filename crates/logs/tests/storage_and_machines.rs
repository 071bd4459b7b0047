//! pcie-bench, stress-ng, fio and SPDK: what their figures mean. The logs are written for these tests in the tools' formats;
//! their numbers are invented.

mod common;

use common::read;
use offpath_logs::{
    LatencySpan, LogCaution, LogDetail, LogFigure, LogOperation, LogTool, RemarkKind, WorkRate,
};
use offpath_quantity::{BitRate, Bytes, Time};

const DMA: &str = "\
#      Test  PAT   Cache HO DO WinSZ   SZ     Time(cyc)      Time    Bytes     Trans   BW (GB/s)    Trans/s
 BW_DMA_RD Rand   HWarm  0  0  8192   64     120000000 100000000.0 400000000   6250000      32.000 62500000.0


 BW_DMA_RW  Seq    Cold  0  8 1572864.0   64     120000000 100000000.0 400000000   6250000      32.000 62500000.0
";

/// What the header calls GB/s are Gbit/s: the bytes and the time of the same row say so.
#[test]
fn bandwidth_of_pcie_bench_is_in_bits() {
    let found = read(DMA).whole();
    let first = &found.figures[0];
    assert_eq!((first.tool, first.line), (LogTool::PcieBench, 2));
    assert_eq!(first.figure, LogFigure::BitRate(BitRate::from_bits_per_second(32_000_000_000)));
    assert_eq!(found.of("operations_per_s_mean")[0], (2, 62_500_000.0));
    assert_eq!(found.of("run_time_ns")[0], (2, 1e8));
    let conditions = &first.conditions;
    assert_eq!(conditions.operation, Some(LogOperation::Read));
    assert_eq!(conditions.payload, Some(Bytes::new(64)));
    assert_eq!(conditions.iterations, Some(6_250_000));
    assert_eq!(conditions.more["access_pattern"], LogDetail::Text("random".into()));
    assert_eq!(conditions.more["cache"], LogDetail::Text("HWarm".into()));
    assert_eq!(conditions.more["window_bytes"], LogDetail::Number(8192));
    let both = &found.figures.last().expect("there is one").conditions;
    assert_eq!(both.more["window_bytes"], LogDetail::Number(1_572_864));
    assert_eq!(both.more["device_offset_bytes"], LogDetail::Number(8));
    assert_eq!(both.more["figures_are_of"], LogDetail::Text("each direction".into()));
    let wrong = read(&DMA.replace("32.000", "4.000")).whole();
    assert!(wrong.figures.iter().all(|figure| figure.cautions.has(LogCaution::RateDiffers)));
    let headless = read(DMA.split_once('\n').expect("it has lines").1).whole();
    assert!(headless.figures[0].cautions.has(LogCaution::NoHeader));
}

#[test]
fn latency_of_pcie_bench_is_with_and_without_overhead() {
    let log = "\
#        Test  PAT   Cache HO DO WinSZ   SZ     TAvg    Avg   Med   Min   Max   95% 99.9%   TAvg(ns) Avg(ns) Med(ns) Min(ns) Max(ns) 95%(ns) 99.9%(ns)    #outliers   #samples
  LAT_DMA_RD  Seq   HWarm  0  0  8192    4    879.0  649.1   640   608 15120   656   736      732.5   540.9     533     506   12600     546       613            1    2097152
LAT_CMD_WRRD  Seq   HWarm  0  0  4096    8    914.0  658.6   656   640  1040   672   704      761.7   548.8     546     533     866     560       586            0    2097152
";
    let found = read(log).whole();
    let means: Vec<_> = found
        .figures
        .iter()
        .filter(|figure| figure.line == 2 && figure.key() == "latency_ns_mean")
        .map(|figure| (figure.metric.span, figure.figure))
        .collect();
    assert_eq!(
        means,
        [
            (Some(LatencySpan::TransactionWithOverhead), LogFigure::Time(Time::from_ps(732_500))),
            (Some(LatencySpan::Transaction), LogFigure::Time(Time::from_ps(540_900)))
        ]
    );
    assert_eq!(found.of("latency_ns_median"), [(2, 533.0), (3, 546.0)]);
    assert_eq!(found.of("latency_ns_p99.9"), [(2, 613.0), (3, 586.0)]);
    assert_eq!(found.of("latency_ns_max")[0], (2, 12_600.0));
    assert_eq!(found.figures[0].conditions.more["samples_above_three_times_p95"], LogDetail::Number(1));
    let last = &found.figures.last().expect("there is one").conditions;
    assert_eq!(last.operation, Some(LogOperation::WriteThenRead));
    let short = read("LAT_DMA_RD Seq HWarm 0 0 8192 4 879.0\n");
    assert_eq!(short.remarked(RemarkKind::Unknown), [1]);
}

const PRINTED: &str = "\
stress-ng: info:  [7] setting to a 60 second run per stressor
stress-ng: info:  [7] dispatching hogs: 4 cpu
stress-ng: metrc: [7] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s CPU used per       RSS Max
stress-ng: metrc: [7]                           (secs)    (secs)    (secs)   (real time) (usr+sys time) instance (%)          (KB)
stress-ng: metrc: [7] cpu                3404     10.00     39.97      0.03       340.40          85.10        99.90          6528
stress-ng: metrc: [7] miscellaneous metrics:
stress-ng: metrc: [7] memcpy            12345.60 MB per sec memcpy rate (geometric mean of 4 instances)
stress-ng: info:  [7] skipped: 0
stress-ng: info:  [7] successful run completed in 10.00 secs
";

#[test]
fn printed_metrics_of_stress_ng_are_read() {
    let found = read(PRINTED);
    assert_eq!(found.account.unknown, 0);
    assert_eq!(found.value("bogo_ops_count"), 3404.0);
    assert_eq!(
        found.only("bogo_ops_per_s_mean").figure,
        LogFigure::Rate(WorkRate::from_micro_per_s(340_400_000))
    );
    assert_eq!(found.value("bogo_ops_per_processor_time_per_s_mean"), 85.1);
    assert_eq!(found.value("run_time_ns"), 1e10);
    assert_eq!(found.value("processor_use_percent_mean"), 99.9);
    assert_eq!(found.figures[0].conditions.program.as_deref(), Some("cpu"));
    assert_eq!(found.remarked(RemarkKind::Withheld), [7], "a unit in words is not guessed");
    let failed = read("stress-ng: error: [7] cpu: cannot start\nstress-ng: fail:  [7] memory is wrong\n");
    assert_eq!((failed.account.failed, failed.figures.len()), (2, 0));
}

#[test]
fn yaml_of_stress_ng_is_read() {
    let yaml = "\
---
system-info:
      stress-ng-version: '0.17.03'
      hostname: 'somewhere'
      machine: 'aarch64'
      cpus-online: 8

metrics:
    - stressor: cpu
      bogo-ops: 1088
      bogo-ops-per-second-usr-sys-time: 27.218000
      bogo-ops-per-second-real-time: 1.087190e+02
      wall-clock-time: 10.007440
      user-time: 39.970000
      system-time: 0.010000
      cpu-usage-per-instance: 99.93
      max-rss: 6528
      instances:
          - instance: 1
            bogo-ops: 272
            cpu-usage: 99.91
      float-rate: 12.500000

    - stressor: memcpy
      bogo-ops: 5
times:
      run-time: 10.0
...
";
    let found = read(yaml);
    assert_eq!(found.account.unknown, 0, "{:?}", found.remarks);
    let rate = found.only("bogo_ops_per_s_mean");
    assert_eq!((rate.figure.value(), rate.line), (108.719, 12));
    assert_eq!(rate.conditions.program.as_deref(), Some("cpu"));
    assert_eq!(rate.conditions.more["processors_online"], LogDetail::Number(8));
    assert_eq!(rate.conditions.more["machine"], LogDetail::Text("aarch64".into()));
    assert!(!rate.conditions.more.contains_key("instance"));
    let operations: Vec<_> = found.figures.iter().filter(|figure| figure.key() == "bogo_ops_count").collect();
    assert_eq!(operations[1].conditions.more["instance"], LogDetail::Number(1));
    assert_eq!(operations[2].conditions.program.as_deref(), Some("memcpy"));
    assert!(!operations[2].conditions.more.contains_key("instance"));
    assert_eq!(found.remarked(RemarkKind::Withheld), [22]);
    assert_eq!(found.only("run_time_ns").line, 13, "that of other sections is none of a stressor");
}

/// In a summary over platforms the mean is a figure; what compares it with others follows from it.
#[test]
fn platforms_of_a_summary_are_read() {
    let log = "\
# The value of each stressor is in the format of  B/Z/R, where  B is
# Reference platform : small/board

PLATFORM\taccess\taio\tdir

big/server\t42536.326261/0.452872/4.85522\tnan/nan/nan\t0.012832/-0.6665/nan
small/board\t8760.947519/-1.46105/1\tnan/nan/nan
";
    let found = read(log);
    assert_eq!(found.of("bogo_ops_per_s_mean"), [(6, 42_536.326_261), (6, 0.012_832)]);
    assert_eq!(found.figures[1].conditions.program.as_deref(), Some("dir"));
    assert_eq!(found.figures[1].conditions.more["platform"], LogDetail::Text("big/server".into()));
    assert_eq!(found.remarked(RemarkKind::Unknown), [7], "a cell is missing");
}

const FIO: &str = r#"fio: this platform does not support process shared mutexes
{
  "fio version" : "fio-3.28",
  "global options" : { "ioengine" : "libaio", "direct" : "1" },
  "jobs" : [
    {
      "jobname" : "randread",
      "error" : 0,
      "job options" : { "rw" : "randread", "bs" : "4k", "iodepth" : "32", "numjobs" : "4" },
      "read" : {
        "io_bytes" : 4096000000,
        "io_kbytes" : 4000000,
        "bw_bytes" : 409600000,
        "bw" : 400000,
        "iops" : 100000.500000,
        "runtime" : 10000,
        "total_ios" : 1000000,
        "slat_ns" : { "min" : 1000, "max" : 90000, "mean" : 2100.250000, "stddev" : 300.1, "N" : 1000000 },
        "clat_ns" : { "min" : 60000, "max" : 990000, "mean" : 317000.5, "stddev" : 20000.0, "N" : 1000000,
          "percentile" : { "50.000000" : 310000, "99.000000" : 510000, "99.900000" : 790000 } },
        "lat_ns" : { "min" : 61000, "max" : 995000, "mean" : 319200.75, "stddev" : 20010.0, "N" : 1000000 }
      },
      "write" : { "io_bytes" : 0, "io_kbytes" : 0, "bw_bytes" : 0, "bw" : 0, "iops" : 0.0, "total_ios" : 0 }
    }
  ]
}
"#;

#[test]
fn json_of_fio_is_read() {
    let found = read(FIO);
    assert_eq!(found.remarked(RemarkKind::Unknown), [1], "a line of another kind stands before it");
    assert_eq!(
        found.only("bandwidth_gbit_per_s_mean").figure,
        LogFigure::BitRate(BitRate::from_bits_per_second(3_276_800_000))
    );
    assert_eq!(found.value("operations_per_s_mean"), 100_000.5);
    assert_eq!(found.value("run_time_ns"), 1e10);
    assert_eq!(found.value("transferred_bytes"), 4_096_000_000.0);
    let spans: Vec<_> = found
        .figures
        .iter()
        .filter(|figure| figure.key() == "latency_ns_mean")
        .map(|figure| (figure.metric.span, figure.figure.value()))
        .collect();
    assert_eq!(
        spans,
        [
            (Some(LatencySpan::Submission), 2_100.25),
            (Some(LatencySpan::Completion), 317_000.5),
            (Some(LatencySpan::WholeOperation), 319_200.75)
        ]
    );
    assert_eq!(found.value("latency_ns_median"), 310_000.0);
    let p999 = found.only("latency_ns_p99.9");
    assert_eq!((p999.figure, p999.line), (LogFigure::Time(Time::from_us(790)), 20));
    let conditions = &p999.conditions;
    assert_eq!(conditions.operation, Some(LogOperation::Read));
    assert_eq!((conditions.payload, conditions.tx_depth), (Some(Bytes::new(4096)), Some(32)));
    assert_eq!(conditions.iterations, Some(1_000_000));
    assert_eq!(conditions.more["jobs"], LogDetail::Number(4));
    assert_eq!(conditions.more["engine"], LogDetail::Text("libaio".into()));
    assert!(found.figures.iter().all(|figure| figure.conditions.operation == Some(LogOperation::Read)));
    // A base of 1000 makes `4k` another number, and blocks of many sizes are none.
    for other in
        [FIO.replace("\"direct\" : \"1\"", "\"kb_base\" : \"1000\""), FIO.replace("\"4k\"", "\"4k-64k\"")]
    {
        let found = read(&other);
        assert_eq!(found.figures[0].conditions.payload, None);
    }
}

/// A job that failed has figures of what it did until then: each says so, and those of other jobs do not.
#[test]
fn figures_of_a_job_that_failed_say_so() {
    let is_cautioned = |found: &common::Found| -> Vec<bool> {
        found.figures.iter().map(|figure| figure.cautions.has(LogCaution::FailedJob)).collect()
    };
    let good = read(FIO);
    assert_eq!((good.account.failed, is_cautioned(&good).contains(&true)), (0, false));
    let log = FIO.replace("\"error\" : 0", "\"error\" : 5");
    let failed = read(&log);
    assert_eq!((failed.remarked(RemarkKind::Failure), failed.account.failed), (vec![8], 1));
    assert_eq!(failed.account.measured, good.account.measured);
    assert_eq!(is_cautioned(&failed), vec![true; good.figures.len()]);
    let (_, job) = FIO.split_once("\"jobs\" : [").expect("it has jobs");
    let both = read(&log.replace("  ]\n}", &format!(", {}", job.trim_start())));
    assert_eq!(both.account.failed, 1);
    let (first, second) = (vec![true; good.figures.len()], vec![false; good.figures.len()]);
    assert_eq!(is_cautioned(&both), [first, second].concat());
    // A line that has figures counts as one that has.
    let (_, document) = log.split_once('\n').expect("it has lines");
    let one_line = read(&document.replace('\n', " "));
    assert_eq!((one_line.account.measured, one_line.account.failed), (1, 0));
    assert_eq!(one_line.remarked(RemarkKind::Failure), [1]);
    assert!(!is_cautioned(&one_line).contains(&false));
}

/// Before its third version fio counts KiB and microseconds under shorter names.
#[test]
fn json_of_early_fio_is_read_in_its_units() {
    let log = "{ \"fio version\" : \"fio-2.2.10\", \"jobs\" : [ { \"jobname\" : \"j\", \"write\" : {\n\"io_bytes\" : 4000,\n\"bw\" : 400,\n\"iops\" : 100.00,\n\"clat\" : { \"min\" : 60, \"max\" : 990, \"mean\" : 317.50, \"stddev\" : 20.00 }\n} } ] }\n";
    let found = read(log).whole();
    assert_eq!(found.value("bandwidth_gbit_per_s_mean"), 400.0 * 1024.0 * 8.0 / 1e9);
    assert_eq!(found.value("latency_ns_mean"), 317_500.0);
    assert_eq!(found.of("transferred_bytes"), [], "KiB or bytes is not told");
    assert_eq!(found.figures[0].conditions.operation, Some(LogOperation::Write));
}

#[test]
fn json_of_bdevperf_is_read() {
    let log = include_str!("data/bdevperf.json");
    let found = read(log).whole();
    assert_eq!(found.value("operations_per_s_mean"), 250_000.25);
    assert_eq!(found.value("bandwidth_gbit_per_s_mean"), 8.192_008_192);
    assert_eq!(found.value("latency_ns_max"), 4_100_750.0);
    assert_eq!(found.value("errors_count"), 2.0);
    let conditions = &found.figures[0].conditions;
    assert_eq!(conditions.operation, Some(LogOperation::ReadWrite));
    assert_eq!((conditions.tx_depth, conditions.payload), (Some(128), Some(Bytes::new(4096))));
    assert_eq!(conditions.more["reads_percent"], LogDetail::Number(70));
    let stopped = read(&log.replace("finished", "terminated"));
    assert_eq!(stopped.remarked(RemarkKind::Failure), [8]);
    let whole = read(&log.replace("\"io_failed\": 2", "\"io_failed\": 0"));
    for (found, failed) in [(&stopped, true), (&found, true), (&whole, false)] {
        assert!(found.figures.iter().all(|one| one.cautions.has(LogCaution::FailedJob) == failed));
    }
    let stranger = read("{\n\"results\": [ { \"speed\": 3 } ]\n}\n");
    assert_eq!((stranger.figures.len(), stranger.account.unknown), (0, 3));
}

/// A job that goes on past errors ends without one, sizes of a range are none, and one report of all directions is of all.
#[test]
fn errors_ranges_and_unified_reports_of_fio_are_read() {
    let found =
        read(&FIO.replace("\"error\" : 0,", "\"error\" : 0, \"total_err\" : 943211, \"first_error\" : 5,"));
    assert_eq!(found.remarked(RemarkKind::Failure), [8]);
    let failure =
        found.remarks.iter().find(|remark| remark.kind == RemarkKind::Failure).expect("there is one");
    assert!(
        failure.why.contains("943211 operations of the job failed, the first with error 5"),
        "{failure:?}"
    );
    assert!(found.figures.iter().all(|figure| figure.cautions.has(LogCaution::FailedJob)));
    assert_eq!(
        read(&FIO.replace("\"error\" : 0,", "\"error\" : 0, \"total_err\" : 0,"))
            .remarked(RemarkKind::Failure),
        []
    );
    let payload = |log: &str| read(log).figures[0].conditions.payload;
    let of_job = FIO.replace("\"bs\" : \"4k\"", "\"bsrange\" : \"4k-64k\"");
    let global = of_job.replace("\"direct\" : \"1\"", "\"bs\" : \"4k\"");
    assert_eq!((payload(&of_job), payload(&global)), (None, None));
    let range = LogDetail::Text("4k-64k".into());
    assert_eq!(read(&global).figures[0].conditions.more["block_size"], range);
    let split = FIO.replace("\"bs\" : \"4k\"", "\"bssplit\" : \"4k/50:64k/50\"");
    assert_eq!(payload(&split), None);
    // Of a range of all jobs a job's own size is none.
    let own = FIO.replace("\"direct\" : \"1\"", "\"bsrange\" : \"4k-64k\"");
    assert_eq!(payload(&own), Some(Bytes::new(4096)));
    let mixed =
        FIO.replace("\"read\" : {", "\"mixed\" : {").replace("\"randread\", \"bs\"", "\"randrw\", \"bs\"");
    let found = read(&mixed);
    let conditions = &found.only("operations_per_s_mean").conditions;
    assert_eq!(conditions.operation, Some(LogOperation::ReadWrite));
    assert_eq!(conditions.payload, Some(Bytes::new(4096)));
    assert_eq!(payload(&mixed.replace("\"4k\"", "\"4k,8k\"")), None);
}
