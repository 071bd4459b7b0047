//! What requests move, as counters count it: the same bytes that the capacity is solved with, by the endpoint that they reach.

use offpath_plan::traffic::Traffic;
use offpath_plan::{Changes, Design, Setting, prepare, shipped};
use offpath_profile::Library;
use std::path::Path;

/// Counted in bytes, traffic is the same as the time that the capacity is solved with: two readings of one route.
#[test]
fn bytes_of_a_link_are_its_demand() {
    let mut compared = 0;
    for (name, text) in shipped::DESIGNS {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../designs"));
        let design = Design::parse(text, name, folder, &Changes::default()).expect("a shipped design");
        let setting = Setting::plain(Library::builtin());
        let Ok(ready) = prepare(&design, &setting) else { continue };
        for one in ready.iter().filter(|one| one.alternative.device.is_none()) {
            let traffic = Traffic::of(&ready, &[(one.alternative.name.clone(), 1.0)]);
            let fold = one.compiled.fold(&one.router);
            for station in one.router.stations() {
                let Some(wire) = station.wire else { continue };
                let links = traffic.links.iter().filter(|((name, _), _)| *name == station.name);
                let bytes: f64 = links.map(|(_, link)| link.framed_bytes).sum();
                let seconds = fold.seconds.get(&station.name).copied().unwrap_or(0.0);
                let rate = wire.bytes_per_s;
                // Each visit is rounded up to a picosecond.
                let off = (bytes / rate - seconds).abs();
                assert!(
                    off <= 1e-3 * seconds + 1e-12,
                    "{name}: {}: {}: {bytes} B at {rate} B/s is not {seconds} s",
                    one.alternative.name,
                    station.name
                );
                compared += usize::from(seconds > 0.0);
            }
        }
    }
    assert!(compared > 50, "{compared} directions of links are compared");
}

fn traffic(steps: &str) -> Traffic {
    let text = format!(
        "[design]\nname = \"t\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
         rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\nrequest = [ {steps} ]\n"
    );
    let design = Design::parse(&text, "t.toml", Path::new("."), &Changes::default()).expect("a design");
    let ready = prepare(&design, &Setting::plain(Library::builtin())).expect("it compiles");
    Traffic::of(&ready, &[(ready[0].alternative.name.clone(), 1.0)])
}

#[test]
fn requests_and_packets_are_counted_by_the_endpoint_that_they_reach() {
    let found = traffic(
        r#"{ read = "client-soc", bytes = "64 B" }, { write = "client-host", bytes = "8 KiB" },
           { probability = 0.25, then = [ { read = "client-soc", bytes = "64 B" } ], otherwise = [] }"#,
    );
    let at = |station: &str, endpoint: &str| found.links[&(station.to_string(), endpoint.to_string())];
    let soc = found.requests["soc"];
    assert_eq!((soc.reads, soc.writes, soc.inside), (1.25, 0.0, 0.0));
    assert_eq!(found.requests["host"].writes, 1.0);
    // A request without payload comes in, and one packet goes out.
    let (into, out) = (at("nic.receive", "soc"), at("nic.transmit", "soc"));
    assert_eq!((into.packets, into.payload_bytes, into.acknowledgements), (1.25, 0.0, 0.0));
    assert_eq!((out.packets, out.payload_bytes, out.acknowledgements), (1.25, 80.0, 0.0));
    // Eight packets of the testbed's 1 KiB come in, and their acknowledgement goes out.
    let (into, out) = (at("nic.receive", "host"), at("nic.transmit", "host"));
    assert_eq!((into.packets, into.payload_bytes), (8.0, 8192.0));
    assert_eq!((out.packets, out.acknowledgements), (0.0, 1.0));
    // A READ of the card's memory is a read request towards it and a completion from it.
    assert_eq!(at("pcie1.down", "soc").read_requests, 1.25);
    assert_eq!((at("pcie1.up", "soc").packets, at("pcie1.up", "soc").payload_bytes), (1.25, 80.0));
    assert_eq!(at("pcie1.down", "host").packets, 16.0);
}

#[test]
fn what_stays_inside_the_card_passes_no_port() {
    let found = traffic(r#"{ write = "soc-host", bytes = "4 KiB" }"#);
    assert!(!found.links.keys().any(|(station, _)| station.starts_with("nic.")));
    assert_eq!(found.requests["host"].inside, 1.0);
    assert_eq!(found.requests["soc"].inside, 1.0);
    assert_eq!(found.links[&("pcie1.down".to_string(), "host".to_string())].packets, 8.0);
    assert_eq!(found.links[&("pcie1.up".to_string(), "soc".to_string())].packets, 32.0);
}
