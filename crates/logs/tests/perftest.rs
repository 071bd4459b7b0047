//! perftest as it prints and writes: what each of its figures means. The logs are written for these tests in its
//! format; their numbers are invented.

mod common;

use common::read;
use offpath_logs::{
    LatencySpan, LogCaution, LogConditions, LogDetail, LogFigure, LogOperation, LogSide, RemarkKind,
    TrafficDirections,
};
use offpath_quantity::{BitRate, Bytes, Time};

/// A head as a requester prints it.
fn head(title: &str, more: &str) -> String {
    format!(
        "---------------------------------------------------------------------------------------
                    {title}
 Dual-port       : OFF\t\tDevice         : nic_0
 Number of qps   : 1\t\tTransport type : IB
 Connection type : RC\t\tUsing SRQ      : OFF
 PCIe relax order: ON\t\tLock-free      : OFF
 ibv_wr* API     : ON\t\tUsing Enhanced Reorder      : OFF
{more} Mtu             : 4096[B]
 Link type       : Ethernet
 GID index       : 3
 Max inline data : 220[B]
 rdma_cm QPs\t : OFF
 Data ex. method : Ethernet
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x0170 PSN 0x6eb987 RKey 0x002440 VAddr 0x007f2e5f64b000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:01
 remote address: LID 0000 QPN 0x0171 PSN 0x7c29bf RKey 0x002440 VAddr 0x007f2e5f64b000
 GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:02
"
    )
}

const RULER: &str =
    "---------------------------------------------------------------------------------------\n";
const MIB: &str = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n";
const MB: &str = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n";
const GBIT: &str = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n";
const LATENCY: &str = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    \
                       t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n";
const DURATION: &str = " #bytes        #iterations       t_avg[usec]    tps average\n";
const LATENCY_ROW: &str = " 64      1000          1.62           9.51         1.70     \t       1.74     \t0.21   \t\t2.05    \t\t9.51   \n";

#[test]
fn every_condition_of_the_head_is_kept() {
    let log =
        head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n CQE Poll Batch  : 16\n")
            + RULER
            + GBIT
            + " 4096       5000             92.10              92.00                2.807617\n"
            + RULER;
    let found = read(&log).whole();
    let figure = found.only("bandwidth_gbit_per_s_mean");
    assert_eq!(figure.figure, LogFigure::BitRate(BitRate::from_bits_per_second(92_000_000_000)));
    assert_eq!(figure.step, LogFigure::BitRate(BitRate::from_bits_per_second(10_000_000)));
    assert_eq!(figure.line as usize, log.lines().count() - 1);
    assert_eq!(found.value("bandwidth_gbit_per_s_peak"), 92.1);
    assert_eq!(found.value("operations_per_s_mean"), 2_807_617.0);
    let conditions = &figure.conditions;
    assert_eq!(conditions.operation, Some(LogOperation::Write));
    assert_eq!(conditions.payload, Some(Bytes::new(4096)));
    assert_eq!(conditions.queue_pairs, Some(1));
    assert_eq!(conditions.tx_depth, Some(128));
    assert_eq!(conditions.rx_depth, None, "the log does not say it");
    assert_eq!(conditions.cq_moderation, Some(100));
    assert_eq!(conditions.inline, Some(Bytes::new(220)));
    assert_eq!(conditions.mtu, Some(Bytes::new(4096)));
    assert_eq!(conditions.directions, Some(TrafficDirections::One));
    assert_eq!(conditions.connection.as_deref(), Some("RC"));
    assert_eq!(conditions.iterations, Some(5000));
    assert_eq!(conditions.duration, None);
    assert_eq!(conditions.device.as_deref(), Some("nic_0"));
    assert_eq!(conditions.link_layer.as_deref(), Some("Ethernet"));
    assert_eq!(conditions.gid_index, Some(3));
    assert_eq!(conditions.side, Some(LogSide::Requester));
    assert_eq!(conditions.more["relaxed_ordering"], LogDetail::Switch(true));
    assert_eq!(conditions.more["poll_batch"], LogDetail::Text("16".into()));
    assert_eq!(
        conditions.more["gid"],
        LogDetail::Text("00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:01".into())
    );
    assert_eq!(figure.cautions.iter().count(), 0);
}

/// The label changed, the unit did not: 2^20 bytes either way.
#[test]
fn megabytes_are_mebibytes_whichever_the_label() {
    let row = " 65536      5000             11000.10           11000.00             0.176000\n";
    for header in [MB, MIB] {
        let found = read(&(header.to_string() + row)).whole();
        let bits = 11_000 * (1 << 20) * 8;
        assert_eq!(
            found.only("bandwidth_gbit_per_s_mean").figure,
            LogFigure::BitRate(BitRate::from_bits_per_second(bits))
        );
        assert_eq!(found.only("bandwidth_gbit_per_s_mean").cautions.iter().count(), 0);
    }
}

/// `--report_gbits` prints six decimals where the mean is under 0.1, and two elsewhere: what is known follows.
#[test]
fn decimals_say_how_well_a_small_bandwidth_is_known() {
    let rows = " 2          2000           0.057692            0.057507            3.594215\n \
                4          2000             0.12               0.11   \t\t     3.520879\n";
    let found = read(&(GBIT.to_string() + rows)).whole();
    let means: Vec<_> =
        found.figures.iter().filter(|figure| figure.key() == "bandwidth_gbit_per_s_mean").collect();
    assert_eq!(means[0].figure, LogFigure::BitRate(BitRate::from_bits_per_second(57_507_000)));
    assert_eq!(means[0].step, LogFigure::BitRate(BitRate::from_bits_per_second(1_000)));
    assert_eq!(means[1].step, LogFigure::BitRate(BitRate::from_bits_per_second(10_000_000)));
    assert_eq!(found.of("operations_per_s_mean"), [(2, 3_594_215.0), (3, 3_520_879.0)]);
    assert!(found.figures.iter().all(|figure| !figure.cautions.has(LogCaution::RateDiffers)));
}

/// With `-D` no peak is looked for, and 0 is printed.
#[test]
fn a_peak_that_was_not_looked_for_is_absent() {
    let log = "ib_write_bw -d nic_0 -D 10 -q 4 --report_gbits server\n WARNING: BW peak won't be measured in this run.\n"
        .to_string()
        + &head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 1\n")
        + GBIT
        + " 65536      1760000          0.00               92.30              0.176048\n";
    let found = read(&log).whole();
    assert_eq!(found.keys(), ["bandwidth_gbit_per_s_mean", "operations_per_s_mean"]);
    let conditions = &found.figures[0].conditions;
    assert_eq!(conditions.duration, Some(Time::from_ms(10_000)));
    assert_eq!(conditions.program.as_deref(), Some("ib_write_bw"));
    assert_eq!(conditions.queue_pairs, Some(1), "the head says what ran, the command what was asked for");
    assert_eq!(conditions.side, Some(LogSide::Requester));
}

/// With `-D` a latency has its mean and the rate alone, and is halved as it is without.
#[test]
fn latency_by_duration_has_four_columns() {
    let log = head("Send Latency Test", " TX depth        : 1\n")
        + DURATION
        + " 2             2631578            1.90        263157.89\n";
    let found = read(&log).whole();
    assert_eq!(found.keys(), ["latency_ns_mean", "operations_per_s_mean"]);
    let mean = found.only("latency_ns_mean");
    assert_eq!(mean.figure, LogFigure::Time(Time::from_ns(1_900)));
    assert_eq!(mean.metric.span, Some(LatencySpan::HalfRoundTrip));
    assert_eq!(found.value("operations_per_s_mean"), 263_157.89);
    assert_eq!(mean.conditions.iterations, Some(2_631_578));
}

#[test]
fn both_directions_are_a_sum_and_said_to_be() {
    let log = head("RDMA_Read Bidirectional BW Test", " TX depth        : 128\n CQ Moderation   : 100\n")
        + MIB
        + " 65536      1000             22000.20           22000.00             0.352000\n";
    let found = read(&log).whole();
    let mean = found.only("bandwidth_gbit_per_s_mean");
    assert_eq!(mean.conditions.directions, Some(TrafficDirections::Both));
    // Both sides state a depth, so it tells nothing.
    assert_eq!(mean.conditions.side, None);
}

/// `--report-both` adds what each side carried: one direction each.
#[test]
fn results_of_each_side_are_one_direction() {
    let row =
        |of: &str| format!(" 65536      1000             {of}.20           {of}.00             0.176000\n");
    let log = head("RDMA_Write Bidirectional BW Test", " TX depth        : 128\n CQ Moderation   : 100\n")
        + RULER
        + MIB
        + " 65536      1000             22000.20           22000.00             0.352000\n"
        + RULER
        + "\n Local results: \n"
        + RULER
        + MIB
        + &row("11000")
        + RULER
        + "\n Remote results: \n"
        + RULER
        + MIB
        + &row("11000")
        + RULER;
    let found = read(&log).whole();
    let means: Vec<_> =
        found.figures.iter().filter(|figure| figure.key() == "bandwidth_gbit_per_s_mean").collect();
    assert_eq!(means.len(), 3);
    let directions: Vec<_> = means.iter().map(|figure| figure.conditions.directions).collect();
    let one = Some(TrafficDirections::One);
    assert_eq!(directions, [Some(TrafficDirections::Both), one, one]);
    assert_eq!(means[2].conditions.more["results_of"], LogDetail::Text("remote".into()));
    assert_eq!(means[2].conditions.mtu, Some(Bytes::new(4096)));
}

/// Iterations are of all queue pairs together, and each pair has its two lines of addresses.
#[test]
fn several_queue_pairs_multiply_iterations_and_addresses() {
    let addresses = " local address: LID 0000 QPN 0x0171 PSN 0x86259c\n GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:01\n";
    let log = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n")
        .replace("Number of qps   : 1", "Number of qps   : 4")
        + &addresses.repeat(3)
        + &addresses.replace("local", "remote").repeat(3)
        + GBIT
        + " 4096       20000            92.10              92.00                2.807617\n";
    let found = read(&log).whole();
    let conditions = &found.only("bandwidth_gbit_per_s_mean").conditions;
    assert_eq!((conditions.queue_pairs, conditions.iterations), (Some(4), Some(20_000)));
}

#[test]
fn latency_is_half_a_round_trip_but_of_reads_and_atomics() {
    for (title, span) in [
        ("RDMA_Write Latency Test", LatencySpan::HalfRoundTrip),
        ("RDMA_Write_imm Latency Test", LatencySpan::HalfRoundTrip),
        ("Send Latency Test", LatencySpan::HalfRoundTrip),
        ("RDMA_Read Latency Test", LatencySpan::WholeOperation),
        ("Atomic FETCH_AND_ADD Latency Test", LatencySpan::WholeOperation),
        ("Atomic CMP_AND_SWAP Latency Test", LatencySpan::WholeOperation),
    ] {
        let found = read(&(head(title, " TX depth        : 1\n") + LATENCY + LATENCY_ROW)).whole();
        assert_eq!(
            found.keys(),
            [
                "latency_ns_min",
                "latency_ns_max",
                "latency_ns_median",
                "latency_ns_mean",
                "latency_ns_stdev",
                "latency_ns_p99",
                "latency_ns_p99.9"
            ]
        );
        for figure in &found.figures {
            assert_eq!(figure.metric.span, Some(span), "{title}");
        }
        // `t_typical` is the median.
        assert_eq!(found.value("latency_ns_median"), 1700.0, "{title}");
        assert_eq!(found.value("latency_ns_mean"), 1740.0, "{title}");
    }
}

/// A latency whose verb nobody states is of no known span.
#[test]
fn a_span_is_not_guessed() {
    let found = read(&(LATENCY.to_string() + LATENCY_ROW)).whole();
    assert!(found.figures.iter().all(|figure| figure.metric.span.is_none()));
    assert!(found.figures.iter().all(|figure| figure.conditions.operation.is_none()));
}

#[test]
fn deviations_are_known_to_be_cut() {
    let found = read(&(LATENCY.to_string() + LATENCY_ROW)).whole();
    assert_eq!(found.value("latency_ns_stdev"), 210.0);
    for figure in &found.figures {
        let is_deviation = figure.key() == "latency_ns_stdev";
        assert_eq!(figure.cautions.has(LogCaution::CutDeviations), is_deviation, "{}", figure.key());
    }
}

/// With 1000 iterations the 99.9th percentile is the greatest sample; with more it need not be.
#[test]
fn a_percentile_of_few_samples_is_the_maximum() {
    let of = |row: &str| read(&(LATENCY.to_string() + row)).whole();
    let few = of(LATENCY_ROW);
    assert!(few.only("latency_ns_p99.9").cautions.has(LogCaution::IsTheMaximum));
    assert!(!few.only("latency_ns_p99").cautions.has(LogCaution::IsTheMaximum));
    let many = of(&LATENCY_ROW.replace("1000", "5000"));
    assert!(!many.only("latency_ns_p99.9").cautions.has(LogCaution::IsTheMaximum));
    let very_few = of(&LATENCY_ROW.replace("1000", "100").replace("2.05", "9.51"));
    assert!(very_few.only("latency_ns_p99").cautions.has(LogCaution::IsTheMaximum));
}

/// `-C` prints cycles under `[usec]`: whole ones, or halves where a round trip is divided.
#[test]
fn cycles_are_not_taken_for_microseconds() {
    let row = " 64      1000          4212.00        24726.00     4420.50   \t       4524.31   \t546.10 \t\t5330.00 \t\t24726.00\n";
    let unsaid = read(&(head("RDMA_Write Latency Test", " TX depth        : 1\n") + LATENCY + row));
    assert_eq!(unsaid.figures, [], "nothing says which it is");
    assert_eq!(unsaid.remarked(RemarkKind::Withheld).len(), 1);
    assert!(unsaid.remarks[0].why.contains("-C"), "{:?}", unsaid.remarks);
    // The command line says it, or what is printed of single operations.
    let command = "$ ib_write_lat -d nic_0 -C server\n".to_string();
    let said =
        read(&(command + &head("RDMA_Write Latency Test", " TX depth        : 1\n") + LATENCY + row)).whole();
    assert_eq!(said.value("latency_cycles_median"), 4420.5);
    assert_eq!(said.only("latency_cycles_mean").figure, LogFigure::CentiCycles(452_431));
    let samples = read(&("#, cycles\n1, 4212\n2, 4420.5\n".to_string() + LATENCY + row)).whole();
    assert_eq!(samples.of("latency_cycles_sample"), [(2, 4212.0), (3, 4420.5)]);
    assert_eq!(samples.value("latency_cycles_max"), 24726.0);
    // By duration it prints microseconds even then.
    let by_duration = read(
        &("$ ib_write_lat -C -D 5 server\n".to_string()
            + DURATION
            + " 2             2500000            2.00        250000.00\n"),
    )
    .whole();
    assert_eq!(by_duration.value("latency_ns_mean"), 2000.0);
}

/// Microseconds of one row may be whole by chance, all five of them not.
#[test]
fn whole_microseconds_are_microseconds() {
    let row = " 64      1000          2.00           9.00         2.50     \t       2.61     \t0.21   \t\t3.00    \t\t8.97   \n";
    let found = read(&(LATENCY.to_string() + row)).whole();
    assert_eq!(found.value("latency_ns_min"), 2000.0);
}

#[test]
fn a_server_states_no_depth_and_prints_the_last_size() {
    let log = "\n************************************\n* Waiting for client to connect... *\n************************************\n".to_string()
        + &head("RDMA_Write BW Test", " CQ Moderation   : 100\n")
        + GBIT
        + " 8388608    5000             226.25             226.24 \t\t     0.003371\n"
        + RULER;
    let found = read(&log).whole();
    let conditions = &found.only("bandwidth_gbit_per_s_mean").conditions;
    assert_eq!(conditions.side, Some(LogSide::Responder));
    assert_eq!((conditions.tx_depth, conditions.payload), (None, Some(Bytes::new(8 << 20))));
    // Without the banner the missing depth tells it; a head that is cut off tells nothing.
    let head = head("RDMA_Write BW Test", " CQ Moderation   : 100\n");
    let row = GBIT.to_string() + " 8388608    5000             226.25             226.24 \t\t     0.003371\n";
    let whole = read(&(head.clone() + &row)).whole();
    assert_eq!(whole.figures[0].conditions.side, Some(LogSide::Responder));
    let cut: String =
        head.lines().filter(|line| !line.contains("Connection")).map(|line| format!("{line}\n")).collect();
    assert_eq!(read(&(cut + &row)).whole().figures[0].conditions.side, None);
}

/// Quoted in a thread, with glued fields, the same is read.
#[test]
fn quoted_and_glued_logs_are_read() {
    let log = head("RDMA_Read BW Test", " TX depth        : 64\n CQ Moderation   : 100\n")
        .replace("Max inline data : 220[B]", "Outstand reads  : 16")
        + GBIT
        + " 4096       1000             92.10              92.00                2.807617\n"
        + RULER;
    let plain = read(&log).whole();
    let quoted = |sign: &str| log.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
    let glued = log.replace("\t\t", "").replace("   : ", ": ").replace(
        "#bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate",
        "#bytes#iterationsBW peak[Gb/sec]BW average[Gb/sec]MsgRate",
    );
    assert!(glued.contains("OFFDevice") && glued.contains("#bytes#iterationsBW"));
    for other in
        [quoted("> "), quoted("# "), quoted("> > "), quoted(">  # "), glued, log.replace('\n', "\r\n")]
    {
        let found = read(&other).whole();
        assert_eq!(found.figures, plain.figures, "{other}");
    }
    assert_eq!(plain.figures[0].conditions.outstanding_reads, Some(16));
}

#[test]
fn lines_of_gpus_are_known() {
    let log = "initializing CUDA\nListing all CUDA devices in system:\nCUDA device 0: PCIe address is 07:00\n\nPicking device No. 0\n[pid = 4321, dev = 0] device name = [GPU]\ncreating CUDA Ctx\nmaking it the current CUDA Ctx\ncuMemAlloc() of a 131072 bytes GPU buffer\nallocated GPU buffer address at 00007f2d00000000 pointer=0x7f2d00000000\n".to_string()
        + &head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n")
        + GBIT
        + " 4096       5000             92.10              92.00                2.807617\n"
        + RULER
        + "deallocating GPU buffer 00007f2d00000000\ndestroying current CUDA Ctx\n";
    let found = read(&log).whole();
    let conditions = &found.figures[0].conditions;
    assert_eq!(conditions.more["payload_memory"], LogDetail::Text("cuda".into()));
    assert_eq!(conditions.queue_pairs, Some(1));
}

/// Two programs on one terminal: what they agree in holds for both, and nothing else is known.
#[test]
fn interleaved_programs_keep_what_they_agree_in() {
    let client = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n");
    let server = head("RDMA_Write BW Test", "").replace("nic_0", "nic_1");
    let mut log = String::from(
        "************************************\n* Waiting for client to connect... *\n************************************\n",
    );
    let (mut one, mut other) = (client.lines(), server.lines());
    loop {
        match (one.next(), other.next()) {
            (None, None) => break,
            both => log.extend([both.0, both.1].into_iter().flatten().map(|line| format!("{line}\n"))),
        }
    }
    log += GBIT;
    log += GBIT;
    let row = " 4096       5000             92.10              92.00                2.807617\n";
    log = log + row + RULER + row + RULER;
    let found = read(&log).whole();
    assert_eq!(found.of("bandwidth_gbit_per_s_mean").len(), 2);
    for figure in &found.figures {
        let conditions = &figure.conditions;
        assert!(figure.cautions.has(LogCaution::Interleaved));
        assert_eq!(conditions.operation, Some(LogOperation::Write));
        assert_eq!(conditions.mtu, Some(Bytes::new(4096)));
        assert_eq!(conditions.tx_depth, Some(128), "the server has none");
        assert_eq!(conditions.device, None, "they differ");
        assert_eq!(conditions.side, None);
        assert_eq!(conditions.cq_moderation, None, "one of them alone prints it");
    }
}

/// Of two headers the one holds whose columns the row has, and whose unit fits.
#[test]
fn rows_of_interleaved_tables_find_their_header() {
    let log = MB.to_string()
        + GBIT
        + LATENCY
        + " 65536      5000             11000.10           11000.00             0.176000\n"
        + LATENCY_ROW
        + " 65536      5000             92.40              92.30                0.176048\n";
    let found = read(&log).whole();
    let mib = 11_000.0 * 1048576.0 * 8.0 / 1e9;
    assert_eq!(found.of("bandwidth_gbit_per_s_mean"), [(4, mib), (6, 92.3)]);
    assert_eq!(found.value("latency_ns_min"), 1620.0);
}

/// A row without its header is read where its numbers prove each other, and nowhere else.
#[test]
fn rows_without_a_header_prove_themselves() {
    let found = read(
        " 65536      5000             92.40              92.30                0.176048\n \
         65536      5000             11000.10           11000.00             0.176000\n \
         2             2631578            1.90        263157.89\n \
         2             2631578            1.90        526315.79\n",
    )
    .whole();
    let mib = 11_000.0 * 1048576.0 * 8.0 / 1e9;
    assert_eq!(found.of("bandwidth_gbit_per_s_mean"), [(1, 92.3), (2, mib)]);
    let means: Vec<_> = found.figures.iter().filter(|figure| figure.key() == "latency_ns_mean").collect();
    assert_eq!(means[0].metric.span, Some(LatencySpan::HalfRoundTrip));
    assert_eq!(means[1].metric.span, Some(LatencySpan::WholeOperation));
    assert!(found.figures.iter().all(|figure| figure.cautions.has(LogCaution::NoHeader)));
    assert!(found.figures[0].cautions.has(LogCaution::UnitFromRate));
    let latency = read(LATENCY_ROW).whole();
    assert!(latency.figures.iter().all(|figure| figure.cautions.has(LogCaution::UnitOfTool)));
    let strangers = "\
        65536      5000             50.00              49.00                0.176048
        1 2 3 4 5
        64      1000          9.62           9.51         1.70 1.74 0.21 2.05 9.51
        2             2631578            1.90        111111.11
        8   1.07
        00000000 00000000 00000000 00000000
        64 1000 0.00 0.00 0.000000
        ";
    let found = read(strangers);
    assert_eq!(found.figures, []);
    assert_eq!(found.account.unknown, 7);
    assert_eq!(found.remarked(RemarkKind::Unknown), [1, 2, 3, 4, 5, 6, 7]);
}

/// A head without a table, and a table without a head: conditions that are there hold.
#[test]
fn a_head_whose_header_is_lost_still_holds() {
    let log = head("RDMA_Read BW Test", " TX depth        : 128\n CQ Moderation   : 100\n")
        + " 65536      1000             92.40              92.30                0.176048\n";
    let found = read(&log).whole();
    assert_eq!(found.figures[0].conditions.operation, Some(LogOperation::Read));
    assert_eq!(found.figures[0].conditions.payload, Some(Bytes::new(65536)));
}

#[test]
fn other_transports_are_named() {
    for connection in ["UD", "UC", "DC", "XRC", "SRD"] {
        let log = head("Send BW Test", " TX depth        : 128\n CQ Moderation   : 100\n")
            .replace("Connection type : RC", &format!("Connection type : {connection}"))
            + " Max msg size in UD is MTU 4096\n Changing to this MTU\n"
            + GBIT
            + " 4096       1000             92.10              92.00                2.807617\n";
        let found = read(&log).whole();
        assert_eq!(found.figures[0].conditions.connection.as_deref(), Some(connection));
        assert_eq!(found.figures[0].conditions.operation, Some(LogOperation::Send));
    }
    let raw = "$ raw_ethernet_bw --client -d nic_0 -B 02:00:00:00:00:01 -E 02:00:00:00:00:02 -s 1024\n"
        .to_string()
        + &head("Send BW Test", " TX depth        : 128\n CQ Moderation   : 100\n")
            .replace("Connection type : RC", "Connection type : RawEth")
            .replace("Mtu             : 4096[B]", "Mtu             : 1518[B]")
        + " MAC attached  : 02:00:00:00:00:01\n\
           **raw ethernet header****************************************\n\
           | Dest MAC         | Src MAC          | Packet Type          |\n\
           | 02:00:00:00:00:02| 02:00:00:00:00:01| DEFAULT              |\n"
        + MIB
        + " 1024       1000             2343.80            2343.75              2.400000\n";
    let found = read(&raw).whole();
    assert_eq!(found.figures[0].conditions.connection.as_deref(), Some("RawEth"));
    assert_eq!(found.figures[0].conditions.mtu, Some(Bytes::new(1518)));
}

/// Where a run fails no row is made up, and the next run has nothing of it.
#[test]
fn failures_stand_in_place_of_rows() {
    let log = head("RDMA_Write BW Test", " TX depth        : 999\n CQ Moderation   : 100\n")
        + GBIT
        + " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n \
            Failed to complete run_iter_bw function successfully\n"
        + &head("RDMA_Read BW Test", " TX depth        : 128\n CQ Moderation   : 100\n")
            .replace("nic_0", "nic_1")
        + GBIT
        + " 4096       1000             92.10              92.00                2.807617\n";
    let found = read(&log);
    assert_eq!(found.account.failed, 4);
    assert_eq!(found.remarked(RemarkKind::Failure).len(), 4);
    assert_eq!(found.account.unknown, 0);
    let figure = found.only("bandwidth_gbit_per_s_mean");
    assert_eq!(figure.conditions.operation, Some(LogOperation::Read));
    assert_eq!(figure.conditions.tx_depth, Some(128));
    assert!(!figure.cautions.has(LogCaution::Interleaved));
}

/// What somebody writes above or below a table is no failure of the run, though failures begin with the same words.
#[test]
fn captions_are_no_failures() {
    let row = "4096       1000             92.10              92.00                2.807617\n";
    let log = head("RDMA_Read BW Test", " TX depth        : 128\n CQ Moderation   : 100\n") + GBIT + row;
    for line in [
        "Server side:",
        "server side of the same run",
        "Error free run.",
        "received by the same card",
        "Function of the second port",
        "Errors of the other port:",
    ] {
        let found = read(&format!("{log}{line}\n"));
        assert_eq!((found.account.failed, found.account.unknown), (0, 1), "{line}");
    }
    for line in [
        "Received 3 times ADDR_ERROR - aborting",
        "Error: BW result is below bw limit",
        " Error occurred in run_iter function",
        "Function ibv_post_send failed",
        "received UMAD with an error: 0x5",
        "Invalid MTU - 9000",
    ] {
        let found = read(&format!("{log}{line}\n"));
        assert_eq!((found.account.failed, found.account.unknown), (1, 0), "{line}");
    }
}

#[test]
fn a_varying_frequency_is_a_caution() {
    let log = head("RDMA_Read Latency Test", " TX depth        : 1\n")
        + LATENCY
        + "Conflicting CPU frequency values detected: 1200.000000 != 3500.000000. CPU Frequency is not max.\n"
        + LATENCY_ROW;
    let found = read(&log).whole();
    assert!(found.figures.iter().all(|figure| figure.cautions.has(LogCaution::FrequencyVaried)));
}

/// Two ports, a service level and the processor's use have columns of their own.
#[test]
fn rarer_columns_are_read() {
    let ports = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]\n \
         65536    1000     0.00            92.30\t\t   0.176048        46.15            0.088024              46.15            0.088024\n";
    let found = read(ports).whole();
    let by_port: Vec<_> =
        found.figures.iter().map(|figure| figure.conditions.more.get("port").cloned()).collect();
    assert_eq!(by_port.iter().filter(|port| **port == Some(LogDetail::Number(2))).count(), 2);
    assert_eq!(found.of("bandwidth_gbit_per_s_mean"), [(2, 92.3), (2, 46.15), (2, 46.15)]);
    let level = " #bytes    #sl      #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n \
         65536    3           1000           11000.10            11000.00                  0.176000\n";
    let found = read(level).whole();
    assert_eq!(found.figures[0].conditions.more["service_level"], LogDetail::Number(3));
    let usage = GBIT.trim_end().to_string()
        + "    CPU_Util[%]\n 65536      1000             0.00              92.30                0.176048\t    12.50\n";
    assert_eq!(read(&usage).whole().value("processor_use_percent_mean"), 12.5);
    let old = " #bytes #iterations    BW peak[MB/sec]    BW average[MB/sec]  \n  65536        1000           3000.00               2999.50\n";
    assert_eq!(read(old).whole().figures.len(), 2);
    let unknown = read(" #bytes     #iterations    BW peak[furlong/sec]\n 65536 1000 1.00\n");
    assert_eq!(unknown.figures, []);
    assert!(unknown.remarks[0].why.contains("furlong"), "{:?}", unknown.remarks);
}

/// A row that is not what its header says is reported, and what is no number is withheld.
#[test]
fn rows_that_break_their_header_are_reported() {
    let found = read(
        &(GBIT.to_string()
            + " 65536 1000 92.30 0.176048\n 65536 1000 inf 92.30 0.176048\n 65536 1000 10.00 10.00 0.176048\n"),
    );
    assert_eq!(found.remarked(RemarkKind::Withheld), [2, 3]);
    assert_eq!(found.of("bandwidth_gbit_per_s_mean"), [(3, 92.3), (4, 10.0)]);
    let wrong: Vec<_> = found.figures.iter().filter(|figure| figure.line == 4).collect();
    assert!(wrong.iter().all(|figure| figure.cautions.has(LogCaution::RateDiffers)));
    let field = read(" Mtu             : big\n");
    assert_eq!(field.remarked(RemarkKind::Unknown), [1]);
}

/// Sentences that name a program are no command lines.
#[test]
fn commands_are_told_from_prose() {
    let side = |line: &str| {
        let log = format!("{line}\n{LATENCY}{LATENCY_ROW}");
        read(&log).figures[0].conditions.side
    };
    assert_eq!(side("[root@node3 bin]# ib_send_lat -a -d nic_0 node1"), Some(LogSide::Requester));
    assert_eq!(side("$ sudo taskset -c 28 /usr/bin/ib_send_lat -d nic_0 &"), Some(LogSide::Responder));
    assert_eq!(side("$ ib_send_lat --use_gadget 3"), None, "an option that nobody knows may have a value");
    for prose in
        ["I run ib_send_lat and get this:", "ib_send_lat is slow", "see ib_send_lat -a host for this one"]
    {
        let found = read(&format!("{prose}\n"));
        assert_eq!(found.account.unknown, 1, "{prose}");
    }
}

/// A list has one completion where neither head nor command line says otherwise, whatever its payload.
#[test]
fn a_list_of_a_command_line_has_one_completion() {
    let moderation = |command: &str, head: &str| {
        let row = " 65536      1000             92.10              92.00                0.175476\n";
        let found = read(&format!("$ ib_write_bw {command} server\n{head}{GBIT}{row}"));
        let conditions = &found.only("bandwidth_gbit_per_s_mean").conditions;
        (conditions.post_list, conditions.cq_moderation)
    };
    assert_eq!(moderation("-s 65536 -l 20", ""), (Some(20), Some(20)));
    assert_eq!(moderation("-s 65536 -l 20 -Q 5", ""), (Some(20), Some(5)));
    assert_eq!(moderation("-s 65536 -l 1", ""), (Some(1), None));
    let stated = head("RDMA_Write Post List BW Test", " TX depth        : 128\n CQ Moderation   : 10\n");
    assert_eq!(moderation("-l 20", &stated), (Some(20), Some(10)));
}

/// The conditions of a bandwidth run whose command has these options, and whose head is `above`.
fn conditions_of(options: &str, above: &str) -> LogConditions {
    let row = " 65536      1000             92.10              92.00                0.175476\n";
    let found = read(&format!("$ ib_write_bw {options}\n{above}{GBIT}{row}")).whole();
    (*found.only("bandwidth_gbit_per_s_mean").conditions).clone()
}

/// perftest takes the start of a long option for it, where no other begins so.
#[test]
fn long_options_are_read_by_their_starts() {
    let own = conditions_of("--iter 5000 --dur 10 --bidirect --tx=64 server", "");
    assert_eq!(own.duration, Some(Time::from_ms(10_000)));
    assert_eq!(own.directions, Some(TrafficDirections::Both));
    assert_eq!((own.tx_depth, own.side), (Some(64), Some(LogSide::Requester)));
    // Two spellings of one option are not two options, and a whole name is none of a longer one.
    for options in ["--report-hist -q 4 server", "--flow_label 3 -q 4 server", "--flows 2 -q 4 server"] {
        let own = conditions_of(options, "");
        assert_eq!((own.queue_pairs, own.side), (Some(4), Some(LogSide::Requester)), "{options}");
    }
    assert_eq!(conditions_of("--use_cuda 0 -q 4", "").side, Some(LogSide::Responder));
    assert_eq!(conditions_of("-q 4 --use_cuda server", "").side, Some(LogSide::Requester));
}

/// What is behind an option that nobody knows may be its value or a host; the rest of the line is read.
#[test]
fn an_unknown_option_does_not_hide_the_others() {
    for options in [
        "--report 10 -q 4 server",
        "--use_gadget 3 -q 4 server",
        "-q 4 server --use_gadget 3",
        "-Y 5 -q 4 server",
        "-q 4 server -D",
        "-q 4 server --size",
    ] {
        let own = conditions_of(options, "");
        assert_eq!(own.program.as_deref(), Some("ib_write_bw"), "{options}");
        assert_eq!((own.queue_pairs, own.side), (Some(4), None), "{options}");
    }
    for prose in ["--use_gadget is what I use", "-- is slow here", "--- it is slow", "-5 is slow"] {
        assert_eq!(read(&format!("ib_write_bw {prose}\n")).account.unknown, 1, "{prose}");
    }
}

/// Who writes for others has a word in place of the host, a remark behind the command, or options of another system's program.
#[test]
fn a_command_that_is_written_for_others_is_read() {
    let text = |text: &str| LogDetail::Text(text.into());
    let own = conditions_of("-d nic_0 <server-ip> -q 8 -b --use_cuda=0", "");
    assert_eq!((own.queue_pairs, own.directions), (Some(8), Some(TrafficDirections::Both)));
    assert_eq!((own.side, own.more.get("payload_memory")), (Some(LogSide::Requester), Some(&text("cuda"))));
    for options in
        ["-q 8 server > run.log", "-q 8 server 2>&1", "-q 8 server # eight of them", "-6 -q 8 server"]
    {
        assert_eq!(conditions_of(options, "").queue_pairs, Some(8), "{options}");
    }
    assert_eq!(conditions_of("-o 4 server", "").outstanding_reads, Some(4));
}

/// A command that is not understood is none of the run before it: nothing of that is taken for what it prints.
#[test]
fn a_command_that_is_not_understood_ends_the_one_before() {
    let row = " 65536      5000           50.00              49.97              0.095310\n";
    let log = format!(
        "$ ib_write_bw -q 4 --use_cuda=0 server\n{GBIT}{row}$ ib_read_bw first second third\n{GBIT}{row}"
    );
    let found = read(&log);
    let of =
        |line: u64| found.figures.iter().find(|one| one.line == line).expect("a figure").conditions.clone();
    let (first, second) = (of(3), of(6));
    assert_eq!((first.queue_pairs, first.more.contains_key("payload_memory")), (Some(4), true));
    assert_eq!(second.program.as_deref(), Some("ib_read_bw"));
    assert_eq!(
        (second.queue_pairs, second.more.contains_key("payload_memory"), second.side),
        (None, false, None)
    );
}

/// What changes a run and stands in no head is taken from the command.
#[test]
fn options_that_change_a_run_are_conditions() {
    let on = LogDetail::Switch(true);
    let text = |text: &str| LogDetail::Text(text.into());
    for (options, key, detail) in [
        ("-e", "completion_events", on.clone()),
        ("--events", "completion_events", on.clone()),
        ("-aO", "dual_port", on.clone()),
        ("--dualport", "dual_port", on.clone()),
        ("--odp", "on_demand_paging", on),
        ("--rate_limit=50 --rate_units=g", "rate_limit", text("50 g")),
        ("--rate_units M --rate_limit 1.5", "rate_limit", text("1.5 M")),
        ("--rate_limit=50", "rate_limit", text("50")),
        ("--use_cuda=0", "payload_memory", text("cuda")),
        ("--use_cuda 1", "payload_memory", text("cuda")),
        ("--use_cuda_bus_id=07:00.0 --use_cuda_dmabuf", "payload_memory", text("cuda")),
        ("--use_musa=0", "payload_memory", text("musa")),
        ("--use_rocm=0", "payload_memory", text("rocm")),
        ("--use_neuron=0", "payload_memory", text("neuron")),
        ("--use_hl=0", "payload_memory", text("hl")),
        ("--use_mlu=0", "payload_memory", text("mlu")),
        ("--use_opencl=0", "payload_memory", text("opencl")),
        ("--use_ib_dm_dmabuf=nic_0", "payload_memory", text("ib_dm")),
        ("--use-null-mr", "payload_memory", text("null_mr")),
        ("--use_null_mr", "payload_memory", text("null_mr")),
        ("--mmap=/dev/dax0.0", "payload_memory", text("mmap")),
    ] {
        let own = conditions_of(&format!("{options} server"), "");
        assert_eq!(own.more.get(key), Some(&detail), "{options}");
        assert_eq!((own.more.len(), own.side), (1, Some(LogSide::Requester)), "{options}");
    }
    assert!(conditions_of("--rate_units=g --use_hugepages --mmap-offset=64 server", "").more.is_empty());
    // What is printed comes first, and is absent where two heads differ.
    let stated = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n");
    let own = conditions_of("-O --use_rocm=0 --odp server", &format!("initializing CUDA\n{stated}"));
    assert_eq!(own.more["dual_port"], LogDetail::Switch(false));
    assert_eq!(own.more["payload_memory"], text("cuda"));
    assert_eq!(own.more["on_demand_paging"], LogDetail::Switch(true));
    let both = stated.clone() + &stated.replace("Dual-port       : OFF", "Dual-port       : ON");
    assert_eq!(conditions_of("-O server", &both).more.get("dual_port"), None);
}

const JSON: &str = r#"{
"test_info": {
"test": "RDMA_Write_Bidirectional_BW_Test",
"Dual_port": "OFF",
"Device": "nic_0",
"Number_of_qps": 2,
"Transport_type": "IB",
"Connection_type": "RC",
"Using_SRQ": "OFF",
"PCIe_relax_order": "ON",
"ibv_wr_API": "ON",
"TX_depth": 128,
"CQ_Moderation": 1,
"Mtu": 4096,
"Link_type": "Ethernet",
"GID_index": 3,
"Max_inline_data": 0,
"rdma_cm_QPs": "OFF",
"Use_ROCm_memory": "OFF",
"Data_ex_method": "Ethernet"
},
"results": {
"MsgSize": 65536,
"n_iterations": 20000,
"BW_peak": 0.00,
"BW_average": 184.60,
"MsgRate": 0.352097
}
}
"#;

/// JSON states no unit: size times rate does.
#[test]
fn json_tells_its_unit_by_its_rate() {
    let found = read(JSON).whole();
    let mean = found.only("bandwidth_gbit_per_s_mean");
    assert_eq!(mean.figure, LogFigure::BitRate(BitRate::from_bits_per_second(184_600_000_000)));
    assert!(mean.cautions.has(LogCaution::UnitFromRate));
    assert_eq!(mean.line, 26);
    assert_eq!(mean.conditions.directions, Some(TrafficDirections::Both));
    assert_eq!((mean.conditions.tx_depth, mean.conditions.queue_pairs), (Some(128), Some(2)));
    assert_eq!(mean.conditions.payload, Some(Bytes::new(65536)));
    let mib = read(&JSON.replace("184.60", "22006.06")).whole();
    assert_eq!(mib.value("bandwidth_gbit_per_s_mean").round(), 185.0);
    // Neither unit fits, or the rate is missing.
    for other in [JSON.replace("184.60", "1.00"), JSON.replace("\"MsgRate\": 0.352097", "\"CPU_util\": 3.50")]
    {
        let found = read(&other);
        assert_eq!(found.of("bandwidth_gbit_per_s_mean"), []);
        assert_eq!(found.remarked(RemarkKind::Withheld).len(), 1);
    }
}

/// Earlier versions write keys and text without quotes, and a comma after the last entry.
#[test]
fn loose_json_is_read_as_strict() {
    let strict = read(JSON).whole();
    let loose: String = JSON.replace('"', "").replace("\n}", ",\n}").replace("TX_depth:", "TX_depth :");
    let found = read(&loose).whole();
    assert!(loose.contains("},\n}") && loose.contains("test: RDMA_Write"), "{loose}");
    let values =
        |found: &common::Found| found.figures.iter().map(|one| (one.key(), one.figure)).collect::<Vec<_>>();
    assert_eq!(values(&found), values(&strict));
    assert_eq!(found.figures[0].conditions, strict.figures[0].conditions);
    // On one line, as another program may lay it out.
    let one_line = JSON.replace('\n', " ") + "\n";
    assert_eq!(values(&read(&one_line).whole()), values(&strict));
}

#[test]
fn json_of_latency_has_the_unit_of_the_tool() {
    let json = "{\n\"test_info\": {\n\"test\": \"RDMA_Read_Latency_Test\",\n\"TX_depth\": 1\n},\n\"results\": {\n\"MsgSize\": 2,\n\"n_iterations\": 1000,\n\"t_min\": 1.62,\n\"t_max\": 9.51,\n\"t_typical\": 1.70,\n\"t_avg\": 1.74,\n\"t_stdev\": 0.21,\n\"percentile_99\": 2.05,\n\"percentile_99.9\": 9.51\n}\n}\n";
    let found = read(json).whole();
    let p999 = found.only("latency_ns_p99.9");
    assert_eq!(p999.figure, LogFigure::Time(Time::from_ns(9510)));
    assert_eq!(p999.metric.span, Some(LatencySpan::WholeOperation));
    assert!(p999.cautions.has(LogCaution::UnitOfTool) && p999.cautions.has(LogCaution::IsTheMaximum));
    assert_eq!(p999.line, 15);
    // Cycles in place of microseconds are withheld.
    let cycles = json
        .replace("1.62", "4212.00")
        .replace("9.51", "24726.00")
        .replace("1.70", "4420.00")
        .replace("2.05", "5330.00");
    let found = read(&cycles);
    assert_eq!(found.figures, []);
    assert_eq!(found.remarked(RemarkKind::Withheld).len(), 1);
}

/// A document that was cut off is reported, and the run behind it read.
#[test]
fn a_cut_document_hides_nothing_behind_it() {
    let cut: String = JSON.lines().take(12).map(|line| format!("{line}\n")).collect();
    let found = read(&(cut.clone() + JSON));
    assert_eq!(found.value("bandwidth_gbit_per_s_mean"), 184.6);
    assert_eq!(found.account.unknown, 12);
    assert_eq!(found.remarks.len(), 1);
    assert_eq!((found.remarks[0].line, found.remarks[0].lines), (1, 12));
    let first_line = read(&format!("{{\n{JSON}"));
    assert_eq!((first_line.value("bandwidth_gbit_per_s_mean"), first_line.account.unknown), (184.6, 1));
    let found = read(&(cut + GBIT + " 4096 1000 92.10 92.00 2.807617\n"));
    assert_eq!(found.of("bandwidth_gbit_per_s_mean"), [(14, 92.0)]);
}

/// Several runs in one file keep apart.
#[test]
fn a_new_run_has_nothing_of_the_one_before() {
    let first =
        head("RDMA_Write BW Test", " TX depth        : 128\n Post List       : 16\n CQ Moderation   : 16\n");
    let second = head("RDMA_Read BW Test", " TX depth        : 64\n CQ Moderation   : 100\n");
    let row = " 4096       1000             92.10              92.00                2.807617\n";
    let found = read(&(first + GBIT + row + RULER + &second + GBIT + row + RULER)).whole();
    let conditions: Vec<_> = found
        .figures
        .iter()
        .map(|figure| (figure.conditions.post_list, figure.conditions.tx_depth))
        .collect();
    assert_eq!(conditions, [[(Some(16), Some(128)); 3], [(None, Some(64)); 3]].concat());
    assert!(found.figures.iter().all(|figure| !figure.cautions.has(LogCaution::Interleaved)));
}

/// What quotes a document quotes each of its lines.
#[test]
fn a_quoted_document_is_read() {
    let quoted: String = JSON.lines().map(|line| format!("> {line}\n")).collect();
    assert_eq!(read(&quoted).whole().figures, read(JSON).whole().figures);
}

/// Documents that were gathered into a list are read one by one.
#[test]
fn a_list_of_documents_is_read() {
    let list = format!("[\n{},\n{{ \"speed\": 3 }},\n{}]\n", JSON.trim_end(), JSON.trim_end());
    let found = read(&list);
    assert_eq!(found.of("bandwidth_gbit_per_s_mean"), [(27, 184.6), (57, 184.6)]);
    assert_eq!(found.remarked(RemarkKind::Unknown), [31]);
}

/// A run that was given up before its rows has no part in the next one.
#[test]
fn a_server_that_waits_anew_begins_a_run() {
    let banner = "************************************\n* Waiting for client to connect... *\n************************************\n";
    let first = head("RDMA_Write BW Test", " CQ Moderation   : 1\n");
    let second = head("RDMA_Read BW Test", " CQ Moderation   : 100\n");
    let row = " 4096       1000             92.10              92.00                2.807617\n";
    let gpu = "initializing CUDA\n";
    let log =
        format!("$ ib_read_bw -D 7\n{banner}{first}{banner}{second}{GBIT}{row}{gpu}{second}{GBIT}{row}");
    let found = read(&log).whole();
    let conditions = &found.figures[0].conditions;
    assert_eq!((conditions.operation, conditions.cq_moderation), (Some(LogOperation::Read), Some(100)));
    assert!(found.figures.iter().all(|figure| !figure.cautions.has(LogCaution::Interleaved)));
    assert!(!conditions.more.contains_key("payload_memory"), "the GPU is of the next run");
    let last = &found.figures.last().expect("there is one").conditions;
    assert_eq!(last.more["payload_memory"], LogDetail::Text("cuda".into()));
    let told = read(&format!("$ ib_read_bw -D 7\n{banner}{second}{GBIT}{row}")).whole();
    assert_eq!(told.figures[0].conditions.duration, Some(Time::from_ms(7_000)));
}

/// Where tabs were lost, numbers of two decimals still have their ends.
#[test]
fn glued_numbers_are_told_apart() {
    let row = " 2       1000          453.06         37330.73     692.41            928.05           2465.901216.65                 37330.73\n";
    let found = read(&(LATENCY.to_string() + row)).whole();
    assert_eq!(found.value("latency_ns_stdev"), 2_465_900.0);
    assert_eq!(found.value("latency_ns_p99"), 1_216_650.0);
    let broken = read(&(LATENCY.to_string() + &row.replace("2465.901216.65", "2465.9.1216.65")));
    assert_eq!((broken.figures.len(), broken.remarked(RemarkKind::Withheld)), (0, vec![2]));
}

/// Rows of a run whose program was still printing when another one's head came: sizes that fall, and iterations that change,
/// show that the rows are of both, and none of them is taken for what the head says.
#[test]
fn rows_that_cannot_be_the_heads_have_none_of_its_conditions() {
    let row = |size: u64, iterations: u64| {
        let rate = 90.0 / 8e3 / size as f64 * 1e6;
        let rate = format!("{rate:.6}");
        let gbit = size as f64 * 8.0 * rate.parse::<f64>().expect("it is a number") / 1e3;
        format!(" {size:<10} {iterations:<10}       {gbit:.2}              {gbit:.2}                {rate}\n")
    };
    let read_head = head("RDMA_Read BW Test", " TX depth        : 128\n CQ Moderation   : 100\n");
    let write_head = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n");
    let first = read_head + GBIT + &row(256, 1000) + &row(512, 1000);
    let mixed = [
        // The first program goes on, and the other one begins beside it.
        row(1024, 1000) + &row(2, 5000) + &row(2048, 1000) + &row(4, 5000),
        // It goes on and ends before the other one has a row.
        row(1024, 1000) + &row(2048, 1000),
        // Its rows look like a part of the other's sweep, but for their iterations.
        row(4, 1000) + &row(8, 5000) + &row(16, 1000),
        // Both are at the same sizes.
        row(64, 5000) + &row(64, 5000) + &row(128, 5000) + &row(128, 5000),
    ];
    for rows in mixed {
        let log = first.clone() + RULER + &write_head + GBIT + &rows + RULER + &row(4096, 5000);
        let found = read(&log);
        let at = log.lines().position(|line| line.contains("RDMA_Write")).expect("it is there") as u64;
        let (above, below): (Vec<_>, Vec<_>) = found.figures.iter().partition(|figure| figure.line < at);
        assert!(above.iter().all(|figure| figure.cautions.iter().next().is_none()), "{rows}");
        assert!(above.iter().all(|figure| figure.conditions.operation == Some(LogOperation::Read)));
        assert!(!below.is_empty());
        for figure in below {
            assert!(figure.cautions.has(LogCaution::MixedRows), "{rows}{figure:?}");
            let conditions = &figure.conditions;
            assert_eq!((conditions.operation, conditions.queue_pairs, conditions.mtu), (None, None, None));
            assert!(conditions.payload.is_some() && conditions.iterations.is_some());
        }
        assert_eq!(found.remarked(RemarkKind::Withheld).len(), 1, "{rows}");
        assert_eq!(found.account.unknown, 0);
    }
    // Rows of the first program among the lines of the second's head.
    let (title, rest) = write_head.split_once(" Connection").expect("it is there");
    let log = first + title + &row(1024, 1000) + " Connection" + rest + GBIT + &row(2, 5000) + &row(4, 5000);
    let found = read(&log).whole();
    let cautioned: Vec<u64> = found
        .figures
        .iter()
        .filter(|figure| figure.cautions.has(LogCaution::MixedRows))
        .filter_map(|figure| Some(figure.conditions.payload?.get()))
        .collect();
    assert_eq!(cautioned, [1024; 3]);
    let last = found.figures.last().expect("there is one");
    assert_eq!(last.conditions.operation, Some(LogOperation::Write));
    assert_eq!(last.conditions.queue_pairs, Some(1));
}

/// What one run may print is no contradiction: one size again and again, iterations that are counted, and runs that follow.
#[test]
fn rows_of_one_run_keep_its_conditions() {
    let bandwidth = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n") + GBIT;
    let again = " 4096       5000             92.10              92.00                2.807617\n".repeat(3);
    let counted = " 2          51400            0.00               0.05                 3.125000\n \
                    4          49000            0.00               0.10                 3.125000\n";
    let one = " 1024       5000             82.10              82.00                10.009766\n".to_string();
    let next = " 2048       5000             92.10              92.00                5.615234\n".to_string();
    let runs = bandwidth.clone() + &one + RULER + &bandwidth + &next + RULER;
    for log in [bandwidth.clone() + &again, bandwidth.clone() + counted, runs] {
        let found = read(&log).whole();
        for figure in &found.figures {
            assert_eq!(figure.cautions.iter().next(), None, "{log}");
            assert_eq!(figure.conditions.operation, Some(LogOperation::Write));
        }
    }
}

/// A file that ends within a row's last number has no such row, and other tools' last lines say so.
#[test]
fn a_row_that_is_cut_off_gives_no_figure() {
    let head = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n") + GBIT;
    let row = " 8388608    5000             92.10              92.00                0.001371";
    let whole = read(&(head.clone() + row)).whole();
    assert_eq!(whole.value("operations_per_s_mean"), 1371.0);
    assert_eq!(whole.figures[0].cautions.iter().next(), None);
    for cut in 1..6 {
        let found = read(&(head.clone() + &row[..row.len() - cut]));
        assert_eq!(found.figures, [], "{cut}");
        assert_eq!(found.remarked(RemarkKind::Withheld), [found.account.lines()]);
    }
    let latency = read(&(LATENCY.to_string() + LATENCY_ROW.trim_end().trim_end_matches('1')));
    assert_eq!((latency.figures.len(), latency.remarked(RemarkKind::Withheld)), (0, vec![2]));
    let counters = read("NIC statistics:\nrx_packets: 12\nrx_bytes: 345");
    let cautions: Vec<bool> =
        counters.figures.iter().map(|figure| figure.cautions.has(LogCaution::UnendedLine)).collect();
    assert_eq!(cautions, [false, true]);
}

/// perftest draws a line of dashes above a table and one below it, so that a sweep that was killed shows: by the end of the
/// log, a command, a title, or the one line of the run that follows it.
#[test]
fn a_table_without_its_last_line_is_told() {
    let rows = " 2 5000 9.50 9.40 4.928307\n 4 5000 19.00 18.80 4.928307\n";
    let sweep =
        head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n") + RULER + MIB + rows;
    let of = |log: &str| {
        let found = read(log);
        (found.remarked(RemarkKind::Unended), found.open_tables)
    };
    let last = sweep.lines().count() as u64;
    assert_eq!(of(&sweep), (vec![last], 0));
    assert_eq!(of(&format!("{sweep} 8 5000 38.00 37.60 4.9")), (vec![last], 0), "the last row is cut, too");
    assert_eq!(of(&format!("{sweep}{RULER}")), (vec![], 0));
    let failed = read(&format!("{sweep} Completion with error at client\n"));
    assert_eq!((failed.remarked(RemarkKind::Unended), failed.account.failed), (vec![last], 1));
    // The line of dashes is the one above the next run's title.
    assert_eq!(of(&format!("{sweep}{sweep}{RULER}")), (vec![last], 0));
    assert_eq!(of(&format!("{sweep}{RULER}{sweep}{RULER}")), (vec![], 0));
    assert_eq!(of(&format!("{sweep}$ ib_write_bw -q 1 host\n{sweep}{RULER}")), (vec![last], 0));
    // One size again and again is interrupted by whoever has seen enough.
    let endless = sweep.replace(" 4 5000", " 2 5000").replace("19.00 18.80", "9.50 9.40");
    assert_eq!(of(&endless), (vec![], 0));
}

/// Of a part that somebody took of a log nothing says whether the run ended.
#[test]
fn a_part_of_a_log_may_be_whole_or_not() {
    let rows = " 2 5000 9.50 9.40 4.928307\n 65536 5000 9500.00 9400.00 0.150400\n";
    for part in [rows.to_string(), MIB.to_string() + rows] {
        let found = read(&part);
        assert_eq!((found.remarked(RemarkKind::Unended), found.open_tables), (vec![], 1), "{part}");
    }
    let closed = read(&(MIB.to_string() + rows + RULER));
    assert_eq!((closed.remarked(RemarkKind::Unended), closed.open_tables), (vec![], 0));
}

/// A row of numbers that no quantity can be has no figure, and is not counted as one that has.
#[test]
fn a_row_whose_figures_are_all_withheld_has_none() {
    let huge = "99999999999999.99";
    let found = read(&format!("{MIB} 65536 5000 {huge} {huge} 99999999999999.999999\n"));
    assert_eq!((found.figures.len(), found.account.measured, found.account.known), (0, 0, 2));
    assert_eq!(found.remarked(RemarkKind::Withheld), [2]);
}

/// The lines of which a log says that something is missing, or that they are within a table and not read, and how many failed.
fn missing(log: &str) -> (Vec<u64>, Vec<u64>, u64) {
    let found = read(log);
    (found.remarked(RemarkKind::Unended), found.remarked(RemarkKind::Withheld), found.account.failed)
}

/// A whole run of two rows.
fn whole_run() -> String {
    let head = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n");
    head + RULER + MIB + " 2 5000 9.50 9.40 4.928307\n 4 5000 19.00 18.80 4.928307\n" + RULER
}

/// A program that hangs or dies before its first row prints its head and nothing else, and no word of a failure has to follow.
#[test]
fn a_run_without_a_row_is_told() {
    let healthy = whole_run();
    let next = healthy.lines().count() as u64 + 1;
    let begun = head("RDMA_Read BW Test", " TX depth        : 128\n Outstand reads  : 16\n");
    let title = next + 1;
    for (more, first) in [
        (begun.clone(), title),
        (begun.clone() + RULER + GBIT, title),
        (begun.clone() + RULER + GBIT + RULER, title),
        (begun.clone() + "user@node:~$ \n", title),
        ("$ ib_read_bw -a 10.0.0.1\n".to_string(), next),
        (format!("{0}\n* Waiting for client to connect... *\n{0}\n", "*".repeat(36)), next + 1),
        (begun.clone() + "^C\n" + &healthy, title),
    ] {
        assert_eq!(missing(&(healthy.clone() + &more)), (vec![first], vec![], 0), "{more}");
    }
    // The server of a READ's latency prints the header alone, and one that is only started prints when it is called.
    let server = head("RDMA_Read Latency Test", "") + RULER + LATENCY + RULER;
    assert_eq!(missing(&(healthy.clone() + &server)), (vec![], vec![], 0));
    assert_eq!(missing(&(healthy.clone() + &server + &healthy)), (vec![], vec![], 0));
    assert_eq!(missing(&format!("$ ib_write_bw &\n$ ib_write_bw 10.0.0.1\n{healthy}")), (vec![], vec![], 0));
}

/// What was interrupted has no part in the run behind it.
#[test]
fn an_interrupted_head_is_none_of_the_next_run() {
    let head = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n");
    let found = read(&(head + "^C\n" + &whole_run()));
    assert!(!found.figures.is_empty());
    assert!(found.figures.iter().all(|figure| !figure.cautions.has(LogCaution::Interleaved)));
}

/// Libraries, launchers and shells say in words of their own that a run failed, behind a table or in place of one.
#[test]
fn failures_in_other_words_are_failures() {
    let healthy = whole_run();
    for line in [
        "Killed",
        "Segmentation fault (core dumped)",
        "srun: error: node1: task 0: Exited with exit code 1",
        "mlx5: node1: got completion with error:",
        "ibv_create_qp: Cannot allocate memory",
        "No IB devices found",
        "bash: ib_read_bw: command not found",
    ] {
        assert_eq!(missing(&format!("{healthy}{line}\n")), (vec![], vec![], 1), "{line}");
        assert_eq!(read(&format!("{line}\n")).account.failed, 0, "no tool is there: {line}");
    }
}

/// A row that cannot be read is none that is not there.
#[test]
fn a_line_of_a_table_that_is_not_read_is_withheld() {
    let healthy = whole_run();
    let at = healthy.lines().position(|line| line.starts_with(" 4 ")).expect("it is there") as u64 + 1;
    for line in [
        " 4 5000 19,00 18,80 4,928307",
        " 4 5000 19.00 18.80 4.928307 <-- slow",
        "client1:  4 5000 19.00 18.80 4.928307",
        "[12:00:01]  4 5000 19.00 18.80 4.928307",
        " 4 5000 19.00",
        " 4 Completion of it is late",
    ] {
        let log = healthy.replace(" 4 5000 19.00 18.80 4.928307", line);
        assert_eq!(missing(&log), (vec![], vec![at], 0), "{line}");
    }
    let word = healthy.replace(" 4 5000", "the next one is fine\n 4 5000");
    assert_eq!(missing(&word), (vec![], vec![], 0));
}

/// The sizes of a sweep double.
#[test]
fn a_gap_of_a_sweep_is_told() {
    let gap = whole_run().replace(" 4 5000 19.00 18.80", " 8 5000 38.00 37.60");
    let at = gap.lines().position(|line| line.starts_with(" 8 ")).expect("it is there") as u64 + 1;
    assert_eq!(missing(&gap), (vec![at], vec![], 0));
    assert_eq!(missing(&whole_run()), (vec![], vec![], 0));
}

/// A column of a header that nobody knows gives the rows below it no meaning that they have without one.
#[test]
fn rows_below_a_header_that_is_refused_are_not_guessed() {
    let header = GBIT.trim_end().to_string() + "   BW min[Gb/sec]\n";
    let row = " 65536      1000             92.40              92.30                0.176048    3.11\n";
    let found = read(&(whole_run() + RULER + &header + row + RULER));
    assert!(!found.keys().contains(&"processor_use_percent_mean".to_string()), "{:?}", found.keys());
    assert_eq!(found.remarked(RemarkKind::Withheld).len(), 1);
    assert_eq!(read(row).whole().value("processor_use_percent_mean"), 3.11);
}

/// A condition that is stated and cannot be read is named, and is no default.
#[test]
fn a_condition_that_cannot_be_read_is_named() {
    let unread = |log: &str| {
        let conditions = read(log).figures.last().expect("a figure").conditions.clone();
        (conditions.queue_pairs, conditions.more.get("unread_conditions").cloned())
    };
    let named = || Some(LogDetail::Text("number of qps".into()));
    let huge = whole_run().replace("Number of qps   : 1", "Number of qps   : 99999999999999999999");
    assert_eq!(unread(&huge), (None, named()));
    let row = " 65536      1000             92.10              92.00                0.175476\n";
    assert_eq!(unread(&format!("$ ib_write_bw -q $PAIRS server\n{GBIT}{row}")), (None, named()));
    assert_eq!(unread(&format!("$ ib_write_bw -q $PAIRS server\n{}", whole_run())), (Some(1), None));
}

/// A line that names a program and is not understood ends the run above it, and a command over several lines is one.
#[test]
fn commands_of_others_and_over_several_lines() {
    let row = " 65536      5000           50.00              49.97              0.095310\n";
    for between in [
        "$ ssh node2 ib_read_bw -d nic_1 10.0.0.1",
        "$ kubectl exec pod1 -- ib_send_bw 10.0.0.1",
        "$ for i in 1; do ib_read_bw 10.0.0.1; done",
    ] {
        let found = read(&format!("$ ib_write_bw -q 8 -t 1 server\n{GBIT}{row}{between}\n{GBIT}{row}"));
        let own = &found.figures.last().expect("a figure").conditions;
        assert_eq!((own.program.as_deref(), own.queue_pairs, own.tx_depth), (None, None, None), "{between}");
    }
    let found =
        read(&format!("$ ib_write_bw --report_gbits \\\n    -q 8 -b \\\n  -t 64 10.0.0.1\n{GBIT}{row}"));
    assert_eq!(found.account.unknown, 0);
    let own = &found.figures[0].conditions;
    assert_eq!((own.queue_pairs, own.tx_depth), (Some(8), Some(64)));
    assert_eq!((own.directions, own.side), (Some(TrafficDirections::Both), Some(LogSide::Requester)));
}

/// Whatever a run stands in, a line of text, an entry a line or several runs on one line, each has a number of its own.
#[test]
fn a_run_has_one_row_in_every_form() {
    let rows =
        |log: &str| -> Vec<u64> { read(log).whole().figures.iter().map(|figure| figure.row).collect() };
    let text = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n")
        + GBIT
        + " 4096       5000             92.10              92.00                2.807617\n"
        + " 8192       5000             92.10              92.00                1.403809\n";
    assert_eq!(rows(&text), [1, 1, 1, 2, 2, 2]);
    let pretty = JSON.replace("\"BW_peak\": 0.00", "\"BW_peak\": 184.70");
    let line = pretty.split_whitespace().collect::<Vec<_>>().join(" ");
    for two in [
        pretty.repeat(2),
        format!("{line}\n{line}\n"),
        format!("[{line}, {line}]\n"),
        format!("[\n{pretty},\n{pretty}]\n"),
    ] {
        assert_eq!(rows(&two), [1, 1, 1, 2, 2, 2], "{two}");
    }
}

/// The ends of a run call their queue pairs alike in the logs of both, and otherwise in every run.
#[test]
fn both_ends_of_a_run_call_their_queue_pairs_alike() {
    let names = |local: &[&str], remote: &[&str]| {
        let address = |whose: &str, own: &&str| format!(" {whose} address: LID 0000 {own} RKey 0x002440\n");
        let log = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n");
        let log: String =
            log.lines().filter(|line| !line.contains("address")).map(|line| format!("{line}\n")).collect();
        let log = log
            + &local.iter().map(|own| address("local", own)).collect::<String>()
            + &remote.iter().map(|own| address("remote", own)).collect::<String>()
            + GBIT
            + " 4096       5000             92.10              92.00                2.807617\n";
        read(&log).only("bandwidth_gbit_per_s_mean").conditions.queue_pair_names
    };
    let (one, two, three) = ("QPN 0x0170 PSN 0x6eb987", "QPN 0x0171 PSN 0x7c29bf", "QPN 0x0171 PSN 0x7c29be");
    let own = names(&[one], &[two]).expect("both are said");
    assert_eq!(names(&[two], &[one]), Some(own.crosswise()));
    assert_ne!(names(&[one], &[three]), Some(own));
    let several = names(&[one, two], &[three, one]).expect("both are said");
    assert_eq!(names(&[three, one], &[one, two]), Some(several.crosswise()));
    assert_ne!(names(&[two, one], &[three, one]), Some(several));
    assert_eq!(names(&[one], &[]), None);
}

/// What `offpath import` wrote is named as that, in either form, and no figure is taken twice.
#[test]
fn an_import_is_no_log() {
    let json = "{\n  \"schema_version\": 2,\n  \"measurements\": [\n    {\"file\": \"a.log\", \"line\": 3, \"value\": 1.5}\n  ],\n  \
        \"remarks\": [],\n  \"files\": []\n}\n";
    let csv =
        "file,line,row,tool,metric,value,step,span\na.log,3,1,perftest,bandwidth_gbit_per_s_mean,1.5,0.1,\n";
    for imported in [json, csv] {
        let found = read(imported);
        assert!(found.figures.is_empty(), "{:?}", found.figures);
        let [one] = &found.remarks[..] else { panic!("{:?}", found.remarks) };
        assert!(one.kind == RemarkKind::Withheld && one.why.contains("Give the log itself"), "{one:?}");
    }
}

/// What `offpath path --as` prints looks like a log, and is none; a log behind it is.
#[test]
fn a_prediction_is_no_log() {
    let prediction = "ib_read_bw from client-host on connectx7 in testbed bluefield3-pair, mode nic\n\n \
                      Number of qps   : 1\t\tConnection type : RC\n TX depth        : 128\n CQ Moderation   : 100\n \
                      Mtu             : 1024[B]\n Outstand reads  : 16\n \
                      #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n \
                      2          1000           -                  10.31                5.406963\n \
                      4          1000           0.00               20.63                5.406959\n\n\
                      What bounds each row, in M messages/s\n payload  binds              then\n     \
                      2 B  posting thread 5.46  READs in flight 8.61\n";
    let found = read(prediction);
    assert_eq!(found.figures, []);
    assert_eq!(found.remarked(RemarkKind::Withheld), [1]);
    assert_eq!(found.remarks.len(), 1, "{:?}", found.remarks);
    assert!(found.remarks[0].why.contains("no measurement"), "{:?}", found.remarks);
    let log = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n")
        + GBIT
        + " 4096       5000             92.10              92.00                2.807617\n"
        + RULER;
    assert_eq!(read(&(prediction.to_string() + &log)).figures.len(), 3);
    assert_eq!(read(&(log + prediction)).figures.len(), 3);
}

/// What goes to itself may never leave the card: the addresses of both ends say it, and so does the server that a command names.
#[test]
fn a_run_to_itself_is_told() {
    let told = |log: &str| {
        let found = read(log);
        assert!(!found.figures.is_empty(), "{log}");
        let told = found.figures.iter().filter(|figure| figure.cautions.has(LogCaution::ToItself)).count();
        assert!(told == 0 || told == found.figures.len(), "{log}");
        told > 0
    };
    let healthy = whole_run();
    assert!(!told(&healthy));
    assert!(told(&healthy.replace("255:10:00:00:02", "255:10:00:00:01")));
    // Addresses that somebody took out are no two equal ones.
    let hidden = healthy
        .replace("255:255:10:00:00:01", "00:00:00:00:00:00")
        .replace("255:255:10:00:00:02", "00:00:00:00:00:00");
    assert!(!told(&hidden));
    assert!(!told(&healthy.replace("10:00:00:01", "x:x:x:x").replace("10:00:00:02", "x:x:x:x")));
    // On InfiniBand a port has an identifier.
    let by_lid = |one: &str, other: &str| {
        let lines = healthy.lines().filter(|line| !line.starts_with(" GID:")).map(|line| {
            let lid = if line.contains("local address") { one } else { other };
            line.replace("LID 0000", &format!("LID {lid}")) + "\n"
        });
        lines.collect::<String>()
    };
    assert!(
        told(&by_lid("0x11", "0x11")) && !told(&by_lid("0x11", "0x12")) && !told(&by_lid("0000", "0000"))
    );
    for (command, is_own) in [
        ("$ ib_write_bw localhost", true),
        ("$ ib_write_bw -q 1 127.0.0.1", true),
        ("$ ib_write_bw ::1", true),
        ("root@node1:~# ib_write_bw node1", true),
        ("[root@node1 ~]$ ib_write_bw node1.cluster.example", true),
        ("root@node1:~# ib_write_bw node2", false),
        ("[root@node1 ~]$ ib_write_bw node1-ib", false),
        ("$ ib_write_bw 10.0.0.2", false),
        ("$ ib_write_bw", false),
    ] {
        assert_eq!(told(&format!("{command}\n{healthy}")), is_own, "{command}");
    }
}

/// What a command states is held against the head, the rows and the sizes that are there.
#[test]
fn a_command_is_held_to_what_is_printed_below_it() {
    let healthy = whole_run();
    let of = |command: &str| {
        let found = read(&format!("$ {command}\n{healthy}"));
        let told = found.figures.iter().map(|figure| figure.cautions.has(LogCaution::OtherCommand));
        (
            told.collect::<Vec<_>>(),
            found.remarked(RemarkKind::Unended),
            found.figures[0].conditions.program.is_some(),
        )
    };
    // Each row has three figures.
    let (none, all) = (vec![false; 6], vec![true; 6]);
    for command in ["ib_write_bw 10.0.0.2", "ib_write_bw -d nic_0 10.0.0.2"] {
        assert_eq!(of(command), (none.clone(), vec![], true), "{command}");
    }
    for command in [
        "ib_read_bw 10.0.0.2",
        "ib_write_lat 10.0.0.2",
        "ib_write_bw -b 10.0.0.2",
        "ib_write_bw -d nic_7 10.0.0.2",
    ] {
        assert_eq!(of(command), (all.clone(), vec![], false), "{command}");
    }
    let (told, ..) = of("ib_write_bw -s 4 10.0.0.2");
    assert_eq!(told, [true, true, true, false, false, false]);
    let last = healthy.lines().count() as u64;
    assert_eq!(of("ib_write_bw -a 10.0.0.2"), (none.clone(), vec![last], true));
    let sizes = |powers: std::ops::RangeInclusive<u32>| {
        let rows: String = powers
            .map(|power| {
                format!(" {} 5000 9.50 9.40 {:.6}\n", 1u64 << power, 9.4 * 1.048576 / 2f64.powi(power as i32))
            })
            .collect();
        let head = head("RDMA_Write BW Test", " TX depth        : 128\n CQ Moderation   : 100\n");
        missing(&format!("$ ib_write_bw -a 10.0.0.2\n{head}{RULER}{MIB}{rows}{RULER}"))
    };
    assert_eq!(sizes(1..=23), (vec![], vec![], 0));
    for (powers, why) in [(1..=12, "its end"), (12..=23, "its beginning"), (6..=6, "all but one")] {
        assert_eq!(sizes(powers).0.len(), 1, "without {why}");
    }
}

/// What somebody writes around runs is told from what a program says at their end.
#[test]
fn a_note_is_told_from_what_nobody_reads() {
    let healthy = whole_run();
    for (line, is_note) in [
        ("# node 2", true),
        ("=== node 2 ===", true),
        ("second run:", true),
        ("+ sleep 1", true),
        ("[root@node1 ~]# uptime", true),
        ("$ uptime", true),
        ("done in 12 s", false),
        ("mlx5_core 0000:3b:00.0: poll health", false),
        ("Connection to node2 closed.", false),
    ] {
        let found = read(&format!("{healthy}{line}\n"));
        let remark = found.remarks.iter().find(|remark| remark.kind == RemarkKind::Unknown);
        assert_eq!(remark.map(|remark| remark.is_note()), Some(is_note), "{line}: {:?}", found.remarks);
    }
}
