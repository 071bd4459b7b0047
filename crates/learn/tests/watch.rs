//! Counters beside a plan: rates are differences, and what is no rate is said.

use offpath_learn::watch::{
    COUNTERS, Counted, CounterPlace, CounterReadings, NoReading, PlannedEndpoint, PlannedLink,
    PlannedTraffic, RateBasis, Watch, WatchedInterval,
};
use offpath_logs::{LogItem, LogReader};
use offpath_route::WireWay;
use proptest::prelude::*;

/// Readings as a log has them.
fn read(log: &str) -> (CounterReadings, Vec<NoReading>) {
    let (mut readings, mut refused) = (CounterReadings::default(), Vec::new());
    for item in LogReader::new(log.as_bytes()) {
        if let LogItem::Measurement(figure) = item.expect("it is in memory") {
            refused.extend(readings.add(&figure));
        }
    }
    (readings, refused)
}

fn link(station: &str, way: WireWay, endpoint: &str, machine: &str) -> PlannedLink {
    PlannedLink {
        station: station.into(),
        way,
        endpoint: endpoint.into(),
        machine: machine.into(),
        capacity_bytes_per_s: 25e9,
        packets: 0.0,
        acknowledgements: 0.0,
        read_requests: 0.0,
        control: 0.0,
        payload_bytes: 0.0,
    }
}

fn endpoint(name: &str, machine: &str) -> PlannedEndpoint {
    PlannedEndpoint {
        endpoint: name.into(),
        machine: machine.into(),
        machines: 1.0,
        of_card: name == "soc",
        reads: 0.0,
        writes: 0.0,
        atomics: 0.0,
        inside: 0.0,
    }
}

/// A request is a READ of 64 B of the host and half a WRITE of 4 KiB to it, and a READ of 256 B of the card's memory; of
/// four clients.
fn planned() -> PlannedTraffic {
    let host = |station, way| link(station, way, "host", "server");
    let soc = |station, way| link(station, way, "soc", "server");
    PlannedTraffic {
        req_per_s: 2e6,
        req_per_s_80: (1.8e6, 2.2e6),
        links: vec![
            PlannedLink { packets: 1.5, payload_bytes: 2048.0, ..host("nic.receive", WireWay::Receive) },
            PlannedLink {
                packets: 1.0,
                acknowledgements: 0.5,
                payload_bytes: 64.0,
                ..host("nic.transmit", WireWay::Transmit)
            },
            PlannedLink { packets: 1.0, ..soc("nic.receive", WireWay::Receive) },
            PlannedLink { packets: 1.0, payload_bytes: 256.0, ..soc("nic.transmit", WireWay::Transmit) },
            PlannedLink { read_requests: 1.0, ..soc("pcie1.down", WireWay::AwayFromNic) },
            PlannedLink { packets: 2.0, payload_bytes: 256.0, ..soc("pcie1.up", WireWay::TowardsNic) },
            PlannedLink {
                packets: 2.0,
                acknowledgements: 0.5,
                payload_bytes: 320.0,
                ..link("client.nic.receive", WireWay::Receive, "client", "client")
            },
        ],
        endpoints: vec![
            PlannedEndpoint { reads: 1.0, writes: 0.5, ..endpoint("host", "server") },
            PlannedEndpoint { reads: 1.0, ..endpoint("soc", "server") },
            PlannedEndpoint { machines: 4.0, ..endpoint("client", "client") },
        ],
    }
}

/// What two readings say, one second apart: names of files with the two values.
fn watched(at: usize, rate: Option<f64>, counters: &[(&str, u64, u64)]) -> WatchedInterval {
    let reading = |time: &str, value: fn(&(&str, u64, u64)) -> u64| {
        let lines = counters.iter().map(|one| format!("/sys/class/{}:{}\n", one.0, value(one)));
        format!("time {time}\n{}", lines.collect::<String>())
    };
    let log = reading("100.5", |one| one.1) + &reading("101.5", |one| one.2);
    let (readings, refused) = read(&log);
    assert!(refused.is_empty(), "{refused:?}");
    let planned = planned();
    let watch = Watch { planned: &planned, at: &planned.endpoints[at], rate, devices: &[] };
    let found: Vec<WatchedInterval> = readings
        .intervals()
        .into_iter()
        .map(|(from, to, counted)| watch.interval(from, to, &counted))
        .collect();
    assert_eq!((found.len(), found[0].from_ns, found[0].to_ns), (1, 100_500_000_000, 101_500_000_000));
    found.into_iter().next().expect("there is one")
}

/// Two tools that read one after the other have their readings between each other's: each is compared with its own last one.
#[test]
fn readings_of_several_files_are_compared_each_with_its_own() {
    let at = |time: &str, file: &str, value: u64| format!("time {time}\n/sys/class/{file}:{value}\n");
    let (reads, errors) = (hardware("rx_read_requests"), port("port_rcv_errors"));
    let log = at("100.5", &reads, 5)
        + &at("100.6", &errors, 0)
        + &at("110.5", &reads, 1005)
        + &at("110.6", &errors, 70);
    let (readings, refused) = read(&log);
    assert!(refused.is_empty(), "{refused:?}");
    let all = readings.intervals();
    let spans: Vec<(u64, u64)> =
        all.iter().map(|(from, to, _)| (from / 100_000_000, to / 100_000_000)).collect();
    assert_eq!(spans, [(1005, 1105), (1006, 1106)]);
    let grew: Vec<u64> = all
        .iter()
        .flat_map(|(.., counted)| counted.values())
        .map(|counted| match counted {
            Counted::Grew { by, .. } => *by,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(grew, [1000, 70]);
}

const PORT: &str = "infiniband/nic_0/ports/1/counters";
const HARDWARE: &str = "infiniband/nic_0/ports/1/hw_counters";

fn port(name: &str) -> String {
    format!("{PORT}/{name}")
}

fn hardware(name: &str) -> String {
    format!("{HARDWARE}/{name}")
}

#[test]
fn a_run_as_planned_differs_nowhere() {
    let (reads, writes) = (hardware("rx_read_requests"), hardware("rx_write_requests"));
    let (out, into, packets) = (port("port_xmit_data"), port("port_rcv_data"), port("port_xmit_packets"));
    // Two million requests; counters of bytes are words, and what they stood at before says nothing.
    let found = watched(
        0,
        None,
        &[
            (&reads, 7_000_000, 9_000_000),
            (&writes, 1_000, 1_001_000),
            (&out, 1 << 40, (1 << 40) + 2_000_000 * (64 + 62) / 4),
            (&into, 5, 5 + 2_000_000 * (2048 + 100) / 4),
            (&packets, 0, 2_600_000),
        ],
    );
    assert_eq!(found.basis, RateBasis::Observed(2e6));
    assert!(found.is_compared() && found.differences().is_empty(), "{:?}", found.differences());
    let bytes = found.counters.iter().find(|one| one.name == "port_rcv_data").expect("it is known");
    assert_eq!((bytes.per_s, bytes.station.as_deref()), (2e6 * 2148.0, Some("nic.receive")));
    assert_eq!(bytes.utilization, Some(2e6 * 2148.0 / 25e9));
}

#[test]
fn differences_stand_the_largest_first_with_a_next_step() {
    let (reads, writes) = (hardware("rx_read_requests"), hardware("rx_write_requests"));
    let (into, packets) = (port("port_rcv_data"), port("port_xmit_packets"));
    let lost = hardware("out_of_sequence");
    let found = watched(
        0,
        None,
        &[
            (&reads, 0, 1_000_000),
            (&writes, 0, 500_000),
            // Four times the payload, and a fifth more packets than with an acknowledgement for each WRITE.
            (&into, 0, 1_000_000 * 4 * 2148 / 4),
            (&packets, 0, 2_000_000),
            (&lost, 3, 5),
        ],
    );
    let differences = found.differences();
    let names: Vec<&str> = differences.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(names, ["port_rcv_data", "requests", "port_xmit_packets"], "{differences:?}");
    assert!(differences[0].share > 3.0 && differences[0].next.contains("larger payloads"), "{differences:?}");
    assert!((differences[1].share - 1.0 / 1.8).abs() < 1e-9, "of the least that is planned");
    let troubles: Vec<f64> = found.troubles().map(|(counter, _)| counter.per_s).collect();
    assert_eq!(troubles, [2.0]);
    // At half of the load on purpose the rate is no difference.
    let given = watched(0, Some(1e6), &[(&reads, 0, 1_000_000), (&writes, 0, 500_000)]);
    assert_eq!(given.basis, RateBasis::Given(1e6));
    assert!(given.is_compared() && given.differences().is_empty(), "{:?}", given.differences());
    // Reads alone in the place of both.
    let other = watched(0, None, &[(&reads, 0, 3_000_000), (&writes, 0, 0)]);
    let names: Vec<String> = other.differences().into_iter().map(|one| one.what).collect();
    assert_eq!(names, ["rx_write_requests", "rx_read_requests"], "they are mixed otherwise");
}

#[test]
fn without_a_rate_of_requests_the_plans_interval_decides() {
    let packets = port("port_xmit_packets");
    for (count, share) in
        [(1_700_000, Some(1.7 / 1.8)), (1_800_000, None), (3_300_000, None), (3_400_000, Some(3.4 / 3.3))]
    {
        let found = watched(0, None, &[(&packets, 0, count)]);
        assert_eq!(found.basis, RateBasis::Planned);
        let differences = found.differences();
        assert_eq!(differences.len(), usize::from(share.is_some()), "{count}");
        if let Some(share) = share {
            assert!((differences[0].share - share).abs() < 1e-9);
        }
    }
}

/// A load that was asked for has no interval.
#[test]
fn a_load_is_met_to_a_tenth() {
    let mut planned = planned();
    planned.req_per_s_80 = (2e6, 2e6);
    for (count, differences) in [(1_900_000, 0), (1_700_000, 1)] {
        let packets = format!("/sys/class/{}", port("port_xmit_packets"));
        let (readings, _) = read(&format!("time 1\n{packets}:0\ntime 2\n{packets}:{count}\n"));
        let watch = Watch { planned: &planned, at: &planned.endpoints[0], rate: None, devices: &[] };
        let (from, to, counted) = readings.intervals().into_iter().next().expect("there are two");
        assert_eq!(watch.interval(from, to, &counted).differences().len(), differences, "{count}");
    }
}

#[test]
fn what_gives_no_rate_is_said_and_not_guessed() {
    let (reads, packets) = (hardware("rx_read_requests"), port("port_xmit_packets"));
    let stuck = port("port_rcv_packets");
    let most = u64::from(u32::MAX);
    let found =
        watched(0, None, &[(&reads, 9, 4), (&packets, 100_000_000, 102_000_000), (&stuck, most, most)]);
    let said: Vec<Counted> = found.without_rate.iter().map(|one| one.counted).collect();
    assert!(
        said.contains(&Counted::Fell { from: 9, to: 4 }) && said.contains(&Counted::Stuck { bits: 32 }),
        "{said:?}"
    );
    assert_eq!(found.basis, RateBasis::Planned, "what fell is no rate of requests");
    assert_eq!(found.counters.len(), 1);
    // Without a time, and of two devices that one name stands for, nothing is counted.
    let (readings, refused) = read("NIC statistics:\n     rx_bytes_phy: 5\n");
    assert_eq!((readings.len(), refused), (0, vec![NoReading::Untimed]));
    let (readings, _) =
        read("time 1\nNIC statistics:\n     rx_bytes_phy: 5\nNIC statistics:\n     rx_bytes_phy: 6\n");
    assert_eq!(readings.ambiguous().count(), 1);
}

/// A reading that was cut off lacks counters: what they would have told is not taken for nothing.
#[test]
fn a_counter_that_the_next_reading_lacks_is_said() {
    let planned = planned();
    let [reads, order] =
        ["rx_read_requests", "out_of_sequence"].map(|name| format!("/sys/class/{}", hardware(name)));
    let packets = format!("/sys/class/{}", port("port_xmit_packets"));
    let of = |second: &str| {
        let (readings, _) = read(&format!("time 1\n{reads}:5\n{order}:7\n{packets}:5\ntime 2\n{second}"));
        let watch = Watch { planned: &planned, at: &planned.endpoints[0], rate: None, devices: &[] };
        let (from, to, counted) = readings.intervals().into_iter().next().expect("there are two");
        let found = watch.interval(from, to, &counted).without_rate;
        found.into_iter().map(|one| one.counted).collect::<Vec<_>>()
    };
    assert_eq!(of(&format!("{reads}:9\n{packets}:9\n")), [Counted::Vanished { from: 7 }]);
    // A driver that lost all counters of a kind has lost them, while others of the device are there.
    let both = [Counted::Vanished { from: 7 }, Counted::Vanished { from: 5 }];
    assert_eq!(of(&format!("{packets}:9\n")), both);
    // Another tool's reading has nothing of it.
    assert_eq!(of("NIC statistics:\n     rx_bytes_phy: 5\n"), []);
    // A device that is gone is lost with all of its counters, where another goes on.
    let other = packets.replace("nic_0", "nic_9");
    let (readings, _) = read(&format!("time 1\n{order}:7\n{other}:5\ntime 2\n{other}:9\n"));
    let (.., counted) = readings.intervals().into_iter().next().expect("there are two");
    let lost = counted.iter().filter(|(_, one)| matches!(one, Counted::Vanished { from: 7 }));
    assert_eq!(lost.count(), 1, "{counted:?}");
}

/// Errors of requests are errors, and a counter that is not known and counts some by its name is named.
#[test]
fn a_counter_of_errors_is_none_of_a_healthy_run() {
    let packets = port("port_xmit_packets");
    let grown = |name: &str| watched(0, None, &[(&packets, 0, 2_000_000), (&hardware(name), 5, 55)]);
    for name in
        ["req_cqe_error", "req_remote_access_errors", "resp_local_length_error", "rx_icrc_encapsulated"]
    {
        let found = grown(name);
        assert!(found.troubles().any(|(counter, trouble)| counter.name == name && trouble.loses()), "{name}");
    }
    let unknown = grown("req_new_kind_err");
    assert_eq!(unknown.without_rate[0].counted, Counted::Unknown { by: 50 });
    assert!(unknown.without_rate[0].loses());
    assert_eq!(grown("rx_new_kind").without_rate, []);
    assert_eq!(grown("resp_cqe_flush_error").troubles().count(), 0, "a program that ends has some");
    let still = watched(0, None, &[(&packets, 0, 2_000_000), (&hardware("req_new_kind_err"), 5, 5)]);
    assert_eq!(still.without_rate, []);
}

/// What node_exporter exports of a counter: its two values, one second apart, beside packets as planned.
fn exported(name: &str, before: u64, after: u64) -> WatchedInterval {
    let packets = format!("/sys/class/{}", port("port_xmit_packets"));
    let family = format!("# TYPE {name} counter\n{name}{{device=\"nic_0\",port=\"1\"}}");
    let (readings, refused) = read(&format!(
        "time 1\n{packets}:0\n{family} {before}\ntime 2\n{packets}:2000000\n{family} {after}\n"
    ));
    assert!(refused.is_empty(), "{refused:?}");
    let planned = planned();
    let watch = Watch { planned: &planned, at: &planned.endpoints[0], rate: None, devices: &[] };
    let (from, to, counted) = readings.intervals().into_iter().next().expect("there are two");
    watch.interval(from, to, &counted)
}

/// Prometheus text says of a counter what the file says that node_exporter reads it from.
#[test]
fn what_is_exported_says_what_its_file_says() {
    let packets = port("port_xmit_packets");
    for row in COUNTERS {
        let Some(own) = row.exported else { continue };
        let file = if row.places.contains(&CounterPlace::PortCounters) {
            port(row.name)
        } else {
            hardware(row.name)
        };
        let name = format!("node_infiniband_{own}_total");
        // What was counted in words is exported in bytes.
        let unit = row.worth;
        let text = exported(&name, 7 * unit, 107 * unit);
        let told = text.counters.iter().find(|one| one.name == name).expect("it is known");
        assert_eq!(told.per_s, 100.0 * unit as f64, "{name}");
        if row.name == "port_xmit_packets" {
            continue;
        }
        let sysfs = watched(0, None, &[(&packets, 0, 2_000_000), (&file, 7, 107)]);
        let of = |found: &WatchedInterval| {
            let troubles: Vec<bool> = found.troubles().map(|(_, trouble)| trouble.loses()).collect();
            (found.basis, found.without_rate.len(), troubles)
        };
        assert_eq!(of(&text), of(&sysfs), "{name}");
        // Where the port's own counter stops, what is exported of it stops.
        let most = ((1 << row.bits) - 1) * unit;
        let is_port = row.places.contains(&CounterPlace::PortCounters);
        let stuck = exported(&name, most, most)
            .without_rate
            .iter()
            .any(|one| one.counted == Counted::Stuck { bits: row.bits });
        assert_eq!(stuck, is_port, "{name}");
    }
}

/// Each counter of errors that the collector `infiniband` of node_exporter has (a7dcc3a) is known or named, and no acceptance
/// test is passed by what moved.
#[test]
fn no_error_that_is_exported_is_passed_over() {
    const COLLECTED: &str = "\
         excessive_buffer_overrun_errors_total link_downed_total link_error_recovery_total \
         local_link_integrity_errors_total port_constraint_errors_received_total \
         port_constraint_errors_transmitted_total port_discards_received_total \
         port_discards_transmitted_total port_errors_received_total port_receive_remote_physical_errors_total \
         port_receive_switch_relay_errors_total symbol_error_total vl15_dropped_total \
         duplicate_requests_packets_total implied_nak_seq_errors_total local_ack_timeout_errors_total \
         out_of_buffer_drops_total out_of_sequence_packets_received_total packet_sequence_errors_total \
         req_cqes_errors_total  req_remote_access_errors_total \
         req_remote_invalid_request_errors_total resp_cqes_errors_total  \
         resp_local_length_errors_total resp_remote_access_errors_total rnr_nak_retry_packets_received_total \
         roce_adp_retransmits_total roce_adp_retransmits_timeout_total rx_icrc_encapsulated_errors_total";
    for own in COLLECTED.split_ascii_whitespace() {
        let name = format!("node_infiniband_{own}");
        let found = exported(&name, 7, 107);
        let is_lost = found.troubles().any(|(_, trouble)| trouble.loses())
            || found.without_rate.iter().any(|one| one.loses());
        assert!(is_lost, "{name}");
    }
    let unknown = exported("node_infiniband_new_kind_errors_total", 7, 107);
    assert_eq!(unknown.without_rate[0].counted, Counted::Unknown { by: 100 });
    assert!(unknown.without_rate[0].loses());
    // The kernel drops packets of its own.
    let kernel = exported("node_network_receive_drop_total", 7, 107);
    assert!(!kernel.without_rate[0].loses());
}

/// Drops of a priority, on which lossless traffic is, and those of a port that pauses without an end are the port's; what
/// else ethtool calls errors is named.
#[test]
fn drops_of_a_priority_are_the_ports() {
    let of = |name: &str| {
        let packets = format!("/sys/class/{}", port("port_xmit_packets"));
        let (readings, _) = read(&format!(
            "time 1\n{packets}:0\nNIC statistics:\n     {name}: 7\ntime 2\n{packets}:2000000\nNIC statistics:\n     {name}: 57\n"
        ));
        let planned = planned();
        let watch = Watch { planned: &planned, at: &planned.endpoints[0], rate: None, devices: &[] };
        let (from, to, counted) = readings.intervals().into_iter().next().expect("there are two");
        let found = watch.interval(from, to, &counted);
        let named = found.troubles().count() + found.without_rate.len();
        let loses = found.troubles().any(|(_, trouble)| trouble.loses())
            || found.without_rate.iter().any(|one| one.loses());
        (named, loses)
    };
    for name in [
        "rx_prio3_discards",
        "rx_prio3_buf_discard",
        "rx_prio0_cong_discard",
        "tx_pause_storm_error_events",
        "tx_prio1_new_drops",
    ] {
        assert_eq!(of(name), (1, true), "{name}");
    }
    for name in [
        "tx_pause_storm_warning_events",
        "rx_wqe_err",
        "rx_vport_error_packets",
        "rx_out_of_buffer",
        "dev_out_of_buffer",
        "rx_oversize_pkts_buffer",
    ] {
        assert_eq!(of(name), (1, false), "{name}");
    }
    assert_eq!(of("rx_prio3_pause_duration"), (0, false));
}

/// A counter whose file holds no number, as the kernel's `N/A (no PMA)`, is there, and nobody knows what it counted.
#[test]
fn a_counter_that_is_read_nowhere_is_said() {
    let planned = planned();
    let [packets, errors, wait] = ["port_xmit_packets", "symbol_error", "port_xmit_wait"]
        .map(|name| format!("/sys/class/{}", port(name)));
    let mut readings = CounterReadings::default();
    let log = format!("time 1\n{packets}:0\n{errors}:N/A (no PMA)\n{wait}:\ntime 2\n{packets}:2000000\n");
    for item in LogReader::new(log.as_bytes()) {
        match item.expect("it is in memory") {
            LogItem::Measurement(figure) => assert_eq!(readings.add(&figure), None),
            LogItem::Remark(remark) => readings.add_remark(&remark),
        }
    }
    let of = |devices: &[String]| {
        let watch = Watch { planned: &planned, at: &planned.endpoints[0], rate: None, devices };
        let (from, to, counted) = readings.intervals().into_iter().next().expect("there are two");
        let found = watch.interval(from, to, &counted).without_rate;
        let told = found.into_iter().map(|one| (one.key.name.clone(), one.counted, one.loses()));
        told.collect::<Vec<_>>()
    };
    let unread = |name: &str, loses| (name.to_string(), Counted::Unread, loses);
    assert_eq!(of(&[]), [unread("port_xmit_wait", false), unread("symbol_error", true)]);
    assert_eq!(of(&["nic_9".to_string()]), [], "another device's counters are left out");
}

/// A driver that was loaded anew clears all counters: those that count faster stand higher again than before.
#[test]
fn what_grew_while_others_were_cleared_is_doubted() {
    let (reads, out, packets) =
        (hardware("rx_read_requests"), port("port_xmit_data"), port("port_xmit_packets"));
    let cleared =
        watched(0, None, &[(&reads, 500_000, 1_000_000), (&out, 40_000_000, 9), (&packets, 7, 1_000_000)]);
    assert!(!cleared.is_compared(), "{:?}", cleared.counters);
    let doubted = Counted::Doubted { by: 500_000 };
    assert!(cleared.without_rate.iter().any(|one| one.counted == doubted), "{:?}", cleared.without_rate);
    // One that wrapped around fell alone: the others went on from where they stood.
    let wrapped = watched(
        0,
        None,
        &[(&reads, 90_000_000, 91_000_000), (&out, 4_294_000_000, 9), (&packets, 900_000_000, 901_000_000)],
    );
    assert_eq!((wrapped.without_rate.len(), wrapped.counters.len()), (1, 2));
    // Counters of one place were cleared, as `perfquery -R` does.
    let one_place = watched(
        0,
        None,
        &[(&reads, 90_000_000, 91_000_000), (&out, 40_000_000, 9), (&packets, 7, 1_000_000)],
    );
    assert_eq!((one_place.without_rate.len(), one_place.counters.len()), (2, 1));
}

/// Counters of requests have 32 bits: where so many may have come, what they grew by may be that and a turn more.
#[test]
fn a_counter_that_may_have_wrapped_past_where_it_stood_gives_no_rate() {
    let planned = planned();
    let reads = format!("/sys/class/{}", hardware("rx_read_requests"));
    let into = format!("/sys/class/{}", port("port_rcv_packets"));
    let of = |seconds: u64, packets: u64, to: u64| {
        let text =
            format!("time 1\n{reads}:5\n{into}:5\ntime {}\n{reads}:{to}\n{into}:{packets}\n", 1 + seconds);
        let (readings, _) = read(&text);
        let watch = Watch { planned: &planned, at: &planned.endpoints[0], rate: None, devices: &[] };
        let (from, to, counted) = readings.intervals().into_iter().next().expect("there are two");
        watch.interval(from, to, &counted).without_rate
    };
    let may = |by| Counted::MayHaveWrapped { by };
    // At the plan's 2.2 M/s for 1000 s, and by packets that came.
    assert_eq!(of(1000, 9, 90_000_005)[0].counted, may(90_000_000));
    assert_eq!(of(100, 5_000_000_000, 90_000_005)[0].counted, may(90_000_000));
    assert_eq!(of(100, 300_000_000, 90_000_005), []);
    assert_eq!(of(1000, 9, 5_000_000_000), [], "it has more bits");
}

#[test]
fn a_counter_that_reached_its_end_gives_no_rate() {
    let out = port("port_xmit_data");
    let found = watched(0, None, &[(&out, 4_294_000_000, u64::from(u32::MAX))]);
    assert_eq!((found.without_rate[0].counted, found.counters.len()), (Counted::Stuck { bits: 32 }, 0));
    // Counters of errors have fewer bits (the kernel reads them of the port's management so), and a link that is bad enough to fill them is
    // none that is well.
    for (name, bits) in [
        ("symbol_error", 16),
        ("link_error_recovery", 8),
        ("link_downed", 8),
        ("port_rcv_errors", 16),
        ("port_rcv_remote_physical_errors", 16),
        ("port_xmit_discards", 16),
        ("port_xmit_constraint_errors", 8),
        ("port_rcv_constraint_errors", 8),
        ("local_link_integrity_errors", 4),
        ("excessive_buffer_overrun_errors", 4),
        ("VL15_dropped", 16),
        ("port_xmit_wait", 32),
    ] {
        let (counter, most) = (port(name), (1u64 << bits) - 1);
        let found = watched(0, None, &[(&counter, most, most)]);
        let stuck = &found.without_rate[0];
        assert_eq!(
            (stuck.counted, stuck.loses()),
            (Counted::Stuck { bits }, name != "port_xmit_wait"),
            "{name}"
        );
        let found = watched(0, None, &[(&counter, most - 1, most - 1)]);
        assert!(found.without_rate.is_empty(), "{name}");
    }
}

/// Of devices that are chosen, nothing counts whose device is not told.
#[test]
fn what_has_no_device_is_of_no_chosen_one() {
    let planned = planned();
    let log = "time 1\n/sys/class/infiniband/nic_0/ports/1/counters/port_xmit_packets:5\nNIC statistics:\n     rx_packets_phy: 5\n\
               time 2\n/sys/class/infiniband/nic_0/ports/1/counters/port_xmit_packets:9\nNIC statistics:\n     rx_packets_phy: 9\n";
    let (readings, _) = read(log);
    assert_eq!(readings.devices().into_iter().collect::<Vec<_>>(), ["nic_0"]);
    let (from, to, counted) = readings.intervals().into_iter().next().expect("there are two");
    for (devices, known, untold) in [(vec![], 2, 0), (vec!["nic_0".to_string()], 1, 1)] {
        let watch = Watch { planned: &planned, at: &planned.endpoints[0], rate: None, devices: &devices };
        let found = watch.interval(from, to, &counted);
        assert_eq!((found.counters.len(), found.untold), (known, untold));
    }
}

#[test]
fn tlps_speak_of_the_cards_memory_alone() {
    let tlp = |name: &str| format!("hwmon/hwmon0/pcie0/{name}");
    let (completions, bytes, asked) = (tlp("OUT_C_PKT_CNT"), tlp("OUT_C_BYTE_CNT"), tlp("IN_NP_PKT_CNT"));
    let counters = [(&*completions, 0, 4_000_000), (&*bytes, 0, 2_000_000 * 260), (&*asked, 0, 2_000_000)];
    let found = watched(1, None, &counters);
    assert!(found.is_compared() && found.differences().is_empty(), "{:?}", found.differences());
    let bytes = found.counters.iter().find(|one| one.name == "OUT_C_BYTE_CNT").expect("it is known");
    assert_eq!((bytes.station.as_deref(), bytes.utilization), (Some("pcie1.up"), Some(2e6 * 260.0 / 25e9)));
    let elsewhere = watched(0, None, &counters);
    assert!(!elsewhere.is_compared(), "they are not the host's");
    // Smaller TLPs are more of them.
    let small = watched(1, Some(2e6), &[(&*completions, 0, 8_000_000)]);
    assert!(small.differences()[0].next.contains("smaller ones"), "{:?}", small.differences());
}

#[test]
fn a_machine_of_many_sees_its_part() {
    let packets = port("port_rcv_packets");
    let found = watched(2, None, &[(&packets, 0, 1_000_000)]);
    let expected = found.counters[0].expected.expect("it is a client's");
    assert!((expected.0 - 1.8e6 * 2.0 / 4.0).abs() < 1.0 && (expected.1 - 2.2e6 * 2.5 / 4.0).abs() < 1.0);
    // What crosses the card passes no port, and the function's counters count it.
    let mut planned = planned();
    planned.endpoints[0].inside = 1.0;
    let (readings, _) = read(&format!("time 1\n/sys/class/{packets}:1\ntime 2\n/sys/class/{packets}:9\n"));
    let watch = Watch { planned: &planned, at: &planned.endpoints[0], rate: None, devices: &[] };
    let (from, to, counted) = readings.intervals().into_iter().next().expect("there are two");
    assert!(!watch.interval(from, to, &counted).is_compared());
}

/// docs/watch.md has each counter of the table, and what it counts.
#[test]
fn the_page_has_every_counter() {
    let page = include_str!("../../../docs/watch.md");
    for row in COUNTERS {
        let exported = row.exported.map(|own| format!("node_infiniband_{own}_total"));
        for name in exported.iter().map(String::as_str).chain([row.name]) {
            assert!(page.contains(&format!("`{name}`")), "{name} is not in docs/watch.md");
        }
    }
}

fn line() -> impl Strategy<Value = String> {
    let name =
        prop::sample::select(COUNTERS.iter().map(|row| row.name.replace('*', "3")).collect::<Vec<_>>());
    let value = prop_oneof![0..5u64, any::<u64>(), Just(u64::from(u32::MAX))];
    let place = prop::sample::select(vec![
        "/sys/class/infiniband/a/ports/1/counters/",
        "/sys/class/infiniband/b/ports/1/hw_counters/",
        "/sys/class/net/c/statistics/",
        "/sys/class/hwmon/hwmon0/pcie1/",
    ]);
    let time = (any::<u32>(), prop::option::of(any::<u32>())).prop_map(|(whole, part)| match part {
        Some(part) => format!("time {whole}.{part}"),
        None => format!("time {}", whole % 3),
    });
    prop_oneof![
        4 => (place, name.clone(), value.clone()).prop_map(|(place, name, value)| format!("{place}{name}:{value:#x}")),
        4 => (name, value).prop_map(|(name, value)| format!("     {name}: {value}")),
        1 => Just("NIC statistics:".to_string()),
        3 => time,
        1 => any::<String>().prop_map(|text| text.replace('\n', " ")),
    ]
}

proptest! {
    /// Whatever readings hold, nothing panics and no rate is below 0 or without bounds.
    #[test]
    fn any_readings_are_told(lines in prop::collection::vec(line(), 0..60), at in 0..3usize, rate in prop::option::of(1.0..1e9)) {
        let (readings, _) = read(&lines.join("\n"));
        let planned = planned();
        let watch = Watch { planned: &planned, at: &planned.endpoints[at], rate, devices: &[] };
        for (from, to, counted) in readings.intervals() {
            prop_assert!(from < to);
            let found = watch.interval(from, to, &counted);
            for counter in &found.counters {
                prop_assert!(counter.per_s >= 0.0 && counter.per_s.is_finite(), "{counter:?}");
            }
            for one in found.differences() {
                prop_assert!(one.share >= 0.0 && one.share != 1.0);
            }
        }
    }
}
