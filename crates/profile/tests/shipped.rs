//! Every shipped profile loads, says where its numbers come from, and can be varied.

use offpath_profile::{Category, Library, System, SystemRequest};
use offpath_quantity::{Bytes, Quantity};

fn load(device: &str) -> System {
    Library::builtin().load(&SystemRequest { device, ..SystemRequest::default() }).unwrap()
}

#[test]
fn every_device_loads_in_every_testbed_and_every_number_has_a_source() {
    let library = Library::builtin();
    for device in library.names(Category::Device) {
        for testbed in library.names(Category::Testbed) {
            let request = SystemRequest {
                device: &device.name,
                testbed: Some(&testbed.name),
                ..SystemRequest::default()
            };
            let system = library.load(&request).unwrap();
            assert_eq!(system, library.load(&request).unwrap(), "loading twice gives the same");
            assert!(system.numbers.len() > 50);
            for (name, number) in &system.numbers {
                assert!(!number.source.is_empty() && !number.file.is_empty(), "{name}");
            }
        }
    }
}

#[test]
fn names_and_prefixes() {
    let system = load("bluefield2");
    let endpoints: Vec<&str> = system.endpoints().map(|(_, endpoint)| endpoint.name.as_str()).collect();
    assert_eq!(endpoints, ["soc", "host", "client", "backup.soc", "backup"]);
    for name in [
        "nic.inflight_slots",
        "soc.pcie_mtu",
        "pcie0.rate",
        "host_verbs.post_time",
        "network.mtu",
        "server.count",
        "client.count",
        "client.nic.pass_time",
        "client.cores",
        "client.host_verbs.post_time",
        "backup.soc.read_latency",
        "backup.dma.read_rate",
    ] {
        assert!(system.numbers.contains_key(name), "{name}");
    }
    let (machine, soc) = system.endpoint("soc").unwrap();
    assert_eq!(Quantity::Bytes(soc.memory.pcie_mtu), system.numbers["soc.pcie_mtu"].value);
    assert_eq!(
        Quantity::Time(soc.processor.verbs.post_latency),
        system.numbers["soc_verbs.post_latency"].value
    );
    let hops: Vec<&str> =
        machine.hops("soc", "host").unwrap().iter().map(|hop| hop.link.name.as_str()).collect();
    assert_eq!(hops, ["soc_wire", "pcie0"]);
}

#[test]
fn one_number_changes_everywhere_it_is_kept() {
    let system = load("bluefield2");
    let changed = system.with("soc.pcie_mtu", Quantity::Bytes(Bytes::new(1024))).unwrap();
    assert_eq!(changed.endpoint("soc").unwrap().1.memory.pcie_mtu, Bytes::new(1024));
    assert_ne!(changed, system);
    assert_eq!(changed.with("soc.pcie_mtu", system.numbers["soc.pcie_mtu"].value).unwrap(), system);
}
