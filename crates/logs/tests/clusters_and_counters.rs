//! sysbench, OSU, nccl-tests and counters: what their figures mean. The logs are written for these tests in the tools'
//! formats; their numbers are invented.

mod common;

use common::read;
use offpath_logs::{
    LatencySpan, LogCaution, LogDetail, LogFigure, LogMeasurement, LogOperation, MetricSubject, RemarkKind,
    TrafficDirections,
};
use offpath_quantity::{BitRate, Bytes, Time};

const SYSBENCH: &str = include_str!("data/sysbench.log");
const OSU: &str = include_str!("data/osu.log");
const NCCL: &str = include_str!("data/nccl.log");
const COUNTERS: &str = include_str!("data/counters.txt");

#[test]
fn the_memory_test_of_sysbench_is_read() {
    let found = read(SYSBENCH).whole();
    let bandwidth = found.only("bandwidth_gbit_per_s_mean");
    // 5550.02 MiB of 2^20 bytes.
    assert_eq!(bandwidth.figure, LogFigure::BitRate(BitRate::from_bits_per_second(46_556_942_172)));
    assert_eq!(bandwidth.conditions.operation, Some(LogOperation::Write));
    assert_eq!(bandwidth.conditions.payload, Some(Bytes::new(1024)));
    assert_eq!(bandwidth.conditions.more["threads"], LogDetail::Number(4));
    assert_eq!(found.value("operations_per_s_mean"), 5_683_216.65);
    assert_eq!(found.value("run_time_ns"), 10_000_100_000.0);
    assert_eq!(found.value("latency_ns_max"), 510_000.0);
    assert_eq!(found.only("latency_ns_p95").step, LogFigure::Time(Time::from_us(10)));
    // `MB` of earlier versions is 2^20 bytes, too.
    let early = SYSBENCH.replace("MiB/sec", "MB/sec").replace("per second", "ops/sec").replace("1KiB", "1K");
    assert_eq!(read(&early).whole().value("bandwidth_gbit_per_s_mean"), bandwidth.figure.value());
    // Of another test the general lines are nobody's.
    let other = read(
        "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\nPrime numbers limit: 10000\n    events per second:   1234.56\n",
    );
    assert_eq!((other.figures.len(), other.remarked(RemarkKind::Unknown)), (0, vec![2, 3]));
}

#[test]
fn osu_halves_between_two_ranks_alone() {
    let found = read(OSU).whole();
    let spans: Vec<_> = found
        .figures
        .iter()
        .filter(|figure| figure.key() == "latency_ns_mean")
        .map(|figure| (figure.line, figure.metric.span))
        .collect();
    let half = Some(LatencySpan::HalfRoundTrip);
    let (whole, collective) = (Some(LatencySpan::WholeOperation), Some(LatencySpan::Collective));
    assert_eq!(spans, [(3, half), (4, half), (16, whole), (19, collective)]);
    assert_eq!(found.value("latency_ns_max"), 6000.0);
    let both = found.figures.iter().find(|figure| figure.line == 7).expect("a row");
    // A megabyte is 10^6 bytes here.
    assert_eq!(both.figure, LogFigure::BitRate(BitRate::from_bits_per_second(164_002_000_000)));
    assert_eq!(both.conditions.directions, Some(TrafficDirections::Both));
    assert_eq!(found.only("operations_per_s_mean").figure.value(), 12_500_000.25);
    let rate = found.only("operations_per_s_mean");
    assert_eq!((rate.conditions.tx_depth, &rate.conditions.more["pairs"]), (Some(64), &LogDetail::Number(2)));
    assert_eq!(rate.conditions.payload, Some(Bytes::new(1)));
    assert_eq!(found.figures.last().expect("a row").conditions.iterations, Some(1000));
    assert_eq!(read("# OSU MPI Latency Test v5\n# Size Latency (h)\n1 2\n").account.unknown, 2);
}

/// A validation adds a column: a row that failed it is a failure and no figure.
#[test]
fn rows_of_osu_that_failed_their_validation_are_failures() {
    let log = "\
# OSU MPI Latency Test v7.4
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)        Validation
1                       1.07              Pass
2                       1.12              Fail
DATA VALIDATION ERROR: osu_latency exited with 1 errors on message size 2.
";
    let found = read(log);
    assert_eq!(found.of("latency_ns_mean"), [(4, 1070.0)]);
    assert_eq!((found.remarked(RemarkKind::Failure), found.account.failed), (vec![5, 6], 2));
    assert_eq!((found.account.known, found.account.unknown), (3, 0));
    let full = log.replace("Validation\n", "Iterations  Validation\n").replace("Pass", "1000 Pass");
    assert_eq!(read(&full).figures[0].conditions.iterations, Some(1000));
    for wrong in ["1 Pass 1.07\n", "1 1.07 1.07\n", "1 1.07 Maybe\n", "1 Fail\n"] {
        let found = read(&log.replace("1                       1.07              Pass\n", wrong));
        assert_eq!((found.figures.len(), found.remarked(RemarkKind::Unknown)), (0, vec![4]), "{wrong}");
    }
}

/// Earlier versions say in the header that traffic goes both ways, whatever the title.
#[test]
fn bandwidth_of_both_directions_has_a_header_of_its_own() {
    for title in ["MPI Bi-Directional Bandwidth Test", "One Sided MPI_Put Bi-directional Bandwidth Test"] {
        let log = format!("# OSU {title} v3.1.1\n# Size         Bi-Bandwidth (MB/s)\n65536   20500.25\n");
        let found = read(&log).whole();
        let figure = found.only("bandwidth_gbit_per_s_mean");
        assert_eq!(figure.figure, LogFigure::BitRate(BitRate::from_bits_per_second(164_002_000_000)));
        assert_eq!(figure.conditions.directions, Some(TrafficDirections::Both), "{title}");
    }
}

/// mpirun can say of each line whose it is.
#[test]
fn lines_with_the_tag_of_a_rank_are_read() {
    let tags = ["[1,0]<stdout>:", "[1,12]<stderr>:", "[prterun-host-123@1,0]<stdout>: ", "> [1,0]<stdout>:"];
    let logs =
        [OSU, NCCL, SYSBENCH, COUNTERS, include_str!("data/write_bw.log"), include_str!("data/stress.log")];
    let tagged =
        |log: &str, tag: &str| -> String { log.lines().map(|line| format!("{tag}{line}\n")).collect() };
    for log in logs {
        let plain = read(log);
        for tag in tags {
            let found = read(&tagged(log, tag));
            assert_eq!(found.figures, plain.figures, "{tag}");
            assert_eq!(found.account, plain.account, "{tag}");
        }
    }
    let json = include_str!("data/perftest.json");
    for tag in &tags[..3] {
        assert_eq!(read(&tagged(json, tag)).figures, read(json).figures, "{tag}");
    }
    for stranger in ["[1,0]<stdlog>:", "[1]<stdout>:", "[1,]<stdout>:", "[one,0]<stdout>:", "[1,0]<stdout>"] {
        let found = read(&tagged(OSU, stranger));
        assert_eq!((found.figures.len(), found.account.measured), (0, 0), "{stranger}");
    }
    let remark = &read("[1,0]<stdout>:what is this?\n").remarks[0];
    assert_eq!(remark.text, "[1,0]<stdout>:what is this?");
}

#[test]
fn collectives_of_gpus_have_two_bandwidths_and_two_places() {
    let found = read(NCCL).whole();
    let of = |key: &str| -> Vec<&LogMeasurement> {
        found.figures.iter().filter(|figure| figure.key() == key).collect()
    };
    let times = of("latency_ns_mean");
    assert_eq!(times[0].figure, LogFigure::Time(Time::from_ns(35_980)));
    assert_eq!(times[1].conditions.more["buffers"], LogDetail::Text("in place".into()));
    assert_eq!(times[0].metric.span, Some(LatencySpan::Collective));
    assert_eq!(
        of("bandwidth_gbit_per_s_mean")[0].figure,
        LogFigure::BitRate(BitRate::from_bits_per_second(233_120_000_000))
    );
    let bus = of("bus_bandwidth_gbit_per_s_mean");
    assert_eq!(bus.len(), 3);
    assert_eq!(bus[2].conditions.more["mean_of"], LogDetail::Text("all sizes".into()));
    assert_eq!(of("errors_count").len(), 1, "what was not checked is absent");
    assert_eq!(times[0].conditions.payload, Some(Bytes::new(1 << 20)));
    assert_eq!(times[0].conditions.more["reduction"], LogDetail::Text("sum".into()));
}

/// What reduces nothing prints no `redop` in earlier versions, and where it has no root none of that either.
#[test]
fn blank_columns_of_an_all_to_all_are_left_out() {
    for (cells, root) in [("float              -1", Some("-1")), ("float                ", None)] {
        let log = NCCL.replace("float     sum      -1", cells);
        let found = read(&log).whole();
        let own: Vec<f64> = found.of("latency_ns_mean").into_iter().map(|(_, value)| value).collect();
        assert_eq!(own, [35_980.0, 35_260.0], "{root:?}");
        let conditions = &found.figures[0].conditions;
        assert!(!conditions.more.contains_key("reduction"), "{root:?}: {:?}", conditions.more);
        assert_eq!(conditions.payload, Some(Bytes::new(1 << 20)));
    }
    let short = NCCL.replace("float     sum      -1    35.98", "float");
    assert_eq!(read(&short).remarked(RemarkKind::Unknown), [9]);
}

#[test]
fn counters_are_readings_with_their_names() {
    let found = read(COUNTERS).whole();
    let named = |name: &str| {
        let is_it = |figure: &&LogMeasurement| {
            figure.conditions.more.get("counter") == Some(&LogDetail::Text(name.into()))
        };
        found.figures.iter().find(is_it).unwrap_or_else(|| panic!("`{name}` is read"))
    };
    assert_eq!(named("rx_packets").figure, LogFigure::Count(12_345_678_901));
    assert_eq!(named("rx_packets").key(), "counter_count");
    assert_eq!(named("rx_write_requests").conditions.device.as_deref(), Some("nic_0"));
    assert_eq!(named("out_of_sequence").figure, LogFigure::Count(3));
    assert_eq!(
        named("out_of_sequence").conditions.more["folder"],
        LogDetail::Text("ports/1/hw_counters".into())
    );
    // A card's own blocks print hexadecimal digits; what follows a time was read then.
    let tlps = named("OUT_C_PKT_CNT");
    assert_eq!(tlps.figure, LogFigure::Count(0x3df));
    let read_at = |figure: &LogMeasurement| figure.conditions.more.get("read_at_ns").cloned();
    assert_eq!(read_at(tlps), Some(LogDetail::Number(1_700_000_000_250_000_000)));
    assert_eq!(read_at(named("counter0")), None);
    assert_eq!(
        read_at(named("temperature_celsius")),
        Some(LogDetail::Number(1_700_000_000_000_000_000)),
        "a sample's own time comes first"
    );
    assert_eq!(named("counter0").conditions.device.as_deref(), Some("hwmon0"));
    let bytes = named("node_infiniband_port_data_received_bytes_total");
    assert_eq!(
        (bytes.figure, bytes.conditions.device.as_deref()),
        (LogFigure::Count(1_500_000_000), Some("nic_0"))
    );
    let gauge = named("temperature_celsius");
    assert_eq!((gauge.metric.subject, gauge.figure), (MetricSubject::Reading, LogFigure::Number(41.5)));
    assert_eq!(gauge.key(), "reading");
    for stranger in [
        "link up\n",
        "rx_packets: 5\n",
        "/sys/class/net/eth0/operstate:up\n",
        "metric 5\n",
        "time now\n",
        "time 99999999999\n",
        "/sys/class/hwmon/hwmon0/pcie0/counter0:0xg\n",
    ] {
        let found = read(stranger);
        assert_eq!((found.figures.len(), found.account.unknown), (0, 1), "{stranger}");
    }
}

/// One-sided operations of other libraries are no collectives.
#[test]
fn one_sided_operations_are_whole() {
    for (name, span) in [
        ("OpenSHMEM Put Test", LatencySpan::WholeOperation),
        ("OpenSHMEM Get Test", LatencySpan::WholeOperation),
        ("UPC++ Async Copy (Put) Latency Test", LatencySpan::WholeOperation),
        ("OpenSHMEM Broadcast Latency Test", LatencySpan::Collective),
    ] {
        let found = read(&format!("# OSU {name} v7.2\n# Size          Latency (us)\n8   1.70\n"));
        assert_eq!(found.figures[0].metric.span, Some(span), "{name}");
    }
}

/// What quotes a reading is no part of it.
#[test]
fn quoted_counters_are_read() {
    let text = "NIC statistics:\n     rx_packets_phy: 100\n     tx_packets_phy: 7\n";
    let plain = read(text).whole();
    for sign in ["> ", "# ", "> > "] {
        let quoted: String = text.lines().map(|line| format!("{sign}{line}\n")).collect();
        assert_eq!(read(&quoted).whole().figures, plain.figures, "{sign}");
    }
}

/// A collective whose results are wrong is no measurement: its row gives no figure, and the mean is of a run that failed.
#[test]
fn wrong_results_of_nccl_are_failures() {
    let right = read(NCCL).whole();
    let head = "# nThread 1 nGpus 8 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n\
                #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n";
    let row = |of: &str| {
        format!(
            "     1048576        262144     float     sum      -1    33.10   31.68   55.44  {of}    32.50   32.26   56.46  0\n"
        )
    };
    let tail = |said: &str| format!("# Out of bounds values : {said}\n# Avg bus bandwidth    : 55.95\n");
    let well = read(&(head.to_string() + &row("0") + &tail("0 OK"))).whole();
    assert!(
        well.figures.iter().chain(&right.figures).all(|figure| !figure.cautions.has(LogCaution::FailedJob))
    );
    let found = read(&(head.to_string() + &row("262144") + &row("0") + &tail("1 FAILED")));
    assert_eq!(found.remarked(RemarkKind::Failure), [3, 5]);
    assert_eq!((found.account.failed, found.account.unknown), (2, 0));
    assert!(found.figures.iter().all(|figure| figure.line != 3));
    let mean = found.figures.last().expect("the mean stands last");
    assert_eq!((mean.line, mean.cautions.has(LogCaution::FailedJob)), (6, true));
    // That it failed is said even where no count is printed.
    let found = read(&(head.to_string() + &row("N/A") + &tail("1 FAILED")));
    assert_eq!(found.remarked(RemarkKind::Failure), [4]);
}
