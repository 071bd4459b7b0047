//! What machines say of themselves, read from files in the form of each tool.

use offpath_logs::machine::{MachineFacts, Mask, PciAddress, PciLinkState, PciPort};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/machines").join(name)
}

fn files(name: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = fs::read_dir(folder(name))
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .map(|file| {
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(&file).expect("text"))
        })
        .collect();
    all.sort();
    all
}

fn read(name: &str) -> MachineFacts {
    let mut facts = MachineFacts::default();
    for (file, text) in files(name) {
        assert!(facts.read(&file, &text) > 0, "{file} says nothing");
    }
    facts
}

fn address(text: &str) -> PciAddress {
    PciAddress::read(text).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn a_card_and_the_port_above_it_say_speed_width_and_sizes() {
    let facts = read("narrow");
    let card = &facts.pci[&address("3b:00.0")];
    assert!(card.is_network());
    assert_eq!(card.vendor(), "Mellanox");
    let link =
        |link: &Option<offpath_logs::machine::Stated<PciLinkState>>| link.as_ref().expect("a link").value;
    assert_eq!(link(&card.link_now), PciLinkState { mega_transfers_per_s: 8_000, lanes: 16 });
    assert_eq!(link(&card.link_at_most), PciLinkState { mega_transfers_per_s: 16_000, lanes: 16 });
    assert_eq!(card.max_payload.as_ref().expect("set").value.get(), 256);
    assert_eq!(card.max_payload_at_most.as_ref().expect("known").value.get(), 512);
    assert_eq!(card.max_read_request.as_ref().expect("set").value.get(), 512);
    assert!(!card.relaxed_ordering.as_ref().expect("set").value);
    assert_eq!(card.numa_node.as_ref().expect("known").value, 0);
    assert_eq!(card.iommu_type.as_ref().expect("known").value, "DMA");
    let above = facts.bridges_above(address("3b:00.0"));
    assert_eq!(above.len(), 1);
    assert_eq!(above[0].1.port, Some(PciPort::Root));
    assert_eq!(above[0].1.max_payload_at_most.as_ref().expect("known").value.get(), 256);
    assert_eq!(above[0].1.redirects_requests.as_ref().map(|one| one.value), Some(false));
    // Each fact keeps its line.
    let (_, text) = files("narrow").into_iter().find(|(file, _)| file == "lspci.txt").expect("a list");
    let at = &card.link_now.as_ref().expect("a link").at;
    let line = text.lines().nth(at.line as usize - 1).expect("the line");
    assert_eq!(
        (at.file.as_ref(), line.trim()),
        ("lspci.txt", "LnkSta:\tSpeed 8GT/s (downgraded), Width x16")
    );
    // What is bound, governed and translated.
    assert_eq!(facts.bound_nodes.as_ref().expect("bound").value, [1]);
    assert_eq!(facts.processor.governor.as_ref().expect("governed").value, "powersave");
    assert_eq!(facts.iommu_options.as_ref().expect("given").value, "intel_iommu=on");
    assert_eq!(facts.nodes[&1].memory_bytes.as_ref().expect("a size").value, 96721 << 20);
    assert_eq!(facts.nodes[&0].threads.as_ref().expect("threads").value, 32);
    let processor = &facts.processor;
    assert_eq!(processor.cores().expect("cores").0, 32);
    assert_eq!(processor.frequency_at_most.as_ref().expect("a clock").value.hz(), 3_900_000_000);
    assert_eq!(processor.frequency_of_name().expect("a clock").value.hz(), 2_900_000_000);
    let port = &facts.rdma[0];
    assert_eq!(port.rate().expect("a rate").value.as_gbit_per_s(), 200.0);
    assert_eq!(port.outstanding_reads.as_ref().expect("known").value, 16);
    assert_eq!(port.address.as_ref().expect("asked").value, address("0000:3b:00.0"));
}

#[test]
fn every_bridge_above_a_card_is_found_in_order() {
    let facts = read("behind-switch");
    let above: Vec<String> =
        facts.bridges_above(address("18:00.0")).iter().map(|(own, _)| own.to_string()).collect();
    assert_eq!(above, ["0000:17:01.0", "0000:16:00.0", "0000:15:01.0"]);
    let narrow = &facts.pci[&address("16:00.0")];
    assert_eq!(narrow.link_now.as_ref().expect("a link").value.lanes, 8);
    assert_eq!(facts.pci[&address("17:01.0")].redirects_requests.as_ref().map(|one| one.value), Some(true));
    let interface = &facts.interfaces["ens2f0np0"];
    assert_eq!(interface.rate.as_ref().expect("a rate").value.as_gbit_per_s(), 400.0);
    assert_eq!(interface.rate_at_most.as_ref().expect("modes").value.as_gbit_per_s(), 400.0);
    assert_eq!(interface.receives_pause.as_ref().map(|one| one.value), Some(true));
    assert_eq!(facts.rdma[0].mtu.as_ref().expect("an MTU").value.get(), 1024);
    // A list that names bridges above one another ends.
    let mut loops = MachineFacts::default();
    loops.read("l", "01:00.0 PCI bridge: A B\n\tBus: primary=02, secondary=02\n02:00.0 PCI bridge: A B\n\tBus: primary=01, secondary=01\n");
    assert!(loops.bridges_above(address("01:00.0")).len() <= 2);
}

#[test]
fn a_card_with_a_processor_of_its_own_is_read_from_both_sides() {
    let host = read("card-in-host");
    assert_eq!(host.bridges_above(address("c3:00.0")).len(), 3);
    assert_eq!(host.firmware_settings["INTERNAL_CPU_MODEL"].value, "EMBEDDED_CPU(1)");
    assert_eq!(host.memory_bytes.as_ref().expect("a size").value, 131_072_000 << 10);
    assert_eq!(host.rdma.len(), 2);
    let soc = read("card-itself");
    assert_eq!(soc.processor.cores().expect("cores").0, 8);
    assert_eq!(soc.processor.architecture.as_ref().expect("named").value, "aarch64");
}

#[test]
fn current_values_of_firmware_settings_are_taken_where_the_next_ones_differ() {
    let text = "Configurations:                              Default             Current         Next Boot\n\
                *        INTERNAL_CPU_OFFLOAD_ENGINE         ENABLED(0)          DISABLED(1)     ENABLED(0)\n";
    let mut facts = MachineFacts::default();
    facts.read("mlxconfig.txt", text);
    assert_eq!(facts.firmware_settings["INTERNAL_CPU_OFFLOAD_ENGINE"].value, "DISABLED(1)");
}

#[test]
fn files_of_the_kernel_say_what_a_list_could_not() {
    let text = "3b:00.0 Ethernet controller: Vendor Card\n\tCapabilities: <access denied>\n\
                /sys/bus/pci/devices/0000:3b:00.0/current_link_speed:16.0 GT/s PCIe\n\
                /sys/bus/pci/devices/0000:3b:00.0/current_link_width:8\n\
                /sys/bus/pci/devices/0000:3b:00.0/max_link_speed:16.0 GT/s PCIe\n\
                /sys/bus/pci/devices/0000:3b:00.0/numa_node:-1\n\
                /sys/class/net/ens1/mtu:9000\n";
    let mut facts = MachineFacts::default();
    assert_eq!(facts.read("all.txt", text), 6, "a node of -1 is none");
    let card = &facts.pci[&address("3b:00.0")];
    let now = card.link_now.as_ref().expect("both files").value;
    assert_eq!(now, PciLinkState { mega_transfers_per_s: 16_000, lanes: 8 });
    assert!(card.link_at_most.is_none(), "a speed without a width says nothing");
    assert!(card.denied.is_some() && card.numa_node.is_none());
    assert_eq!(facts.interfaces["ens1"].mtu_bytes.as_ref().expect("an MTU").value, 9000);
}

/// What identifies a machine is gone, and everything that is read from its files stays.
#[test]
fn masked_files_say_the_same_and_identify_nothing() {
    let secrets = [
        "b8ce:f603:00aa:0417",
        "fe80:0000:0000:0000:bace:f6ff:feaa:0417",
        "192.168.7.21",
        "EX2113X00417",
        "5c1e0f5a7b8aeb118000b8cef6aa0417",
        "b8-ce-f6-ff-ff-aa-04-17",
        "aa:04:17:0e:3f:9b",
        "node17.cluster.example",
        "node17",
        "2001:db8::17",
        "0xb8cef60300aa0417",
        "6f1e2ab0-77aa-4e02-9be1-0c42a103b54b",
        "NODE17",
        "b8cef6aa0418",
        "001122334455",
        "2001:db8:12:34:268a:7ff:feb3:d112",
        "2001:db8:1:2:3:4:5:6",
        "248a.07b3.d112",
    ];
    let more = "host node17.cluster.example and node17, not node170\nNODE17-p0: node17_mlx5 at Node17.Cluster.Example\n\
                up: enxb8cef6aa0418:\nGID[  3]: 2001:db8:12:34:268a:7ff:feb3:d112, RoCE v2\n\
                at 2001:db8:1:2:3:4:5:6 port 248a.07b3.d112 of mlx5-node17, ib_node17\nnamed rocexb8cef60300aa0417\nenx001122334455 tx 123456789012\nPermanent address: aa:04:17:0e:3f:9b\n\
                eth0:aa:04:17:0e:3f:9b at 192.168.7.21:4791\n\
                inet6 2001:db8::17/64 guid 0xb8cef60300aa0417\nroot=UUID=6f1e2ab0-77aa-4e02-9be1-0c42a103b54b\n";
    for name in ["narrow", "behind-switch", "card-in-host", "card-itself"] {
        let mut mask = Mask::new(&["node17.cluster.example".to_string()]);
        let (mut plain, mut masked) = (MachineFacts::default(), MachineFacts::default());
        for (file, text) in files(name) {
            let hidden = mask.apply(&(text.clone() + more));
            for secret in secrets {
                assert!(
                    !hidden.split("node170").any(|part| part.contains(secret)),
                    "{file} keeps {secret}:\n{hidden}"
                );
            }
            assert!(hidden.contains("node170"), "another name is no secret");
            assert!(hidden.contains("tx 123456789012"), "a number is none either");
            let (guid, name) = (hidden.find(" guid 0x["), hidden.find("named rocex["));
            let mark = |at: Option<usize>| {
                hidden[at.expect("it is there")..].split_once('[').map(|(_, mark)| &mark[..8])
            };
            assert_eq!(mark(guid), mark(name), "{file}: a device's name and its GUID belong together");
            assert_eq!(hidden.lines().count(), text.lines().count() + more.lines().count(), "{file}");
            plain.read(&file, &text);
            masked.read(&file, &hidden);
        }
        assert_eq!(plain, masked, "{name}");
    }
    // What was equal is still equal.
    let mut mask = Mask::default();
    let text = mask.apply(
        "a b8ce:f603:00aa:0417\nb b8ce:f603:00aa:0417\nc b8ce:f603:00aa:0418\nfw 20.35.1012 3b:00.0\n",
    );
    assert_eq!(text, "a [masked-1]\nb [masked-1]\nc [masked-2]\nfw 20.35.1012 3b:00.0\n");
}

/// A name that tools print of any machine stays where something else would be read without it, and is told; versions are no
/// addresses.
#[test]
fn a_machine_that_is_called_as_what_is_read_keeps_its_name() {
    for name in ["cpu", "core.lab", "port", "node", "speed", "link", "socket", "node17"] {
        let mut mask = Mask::new(&[name.to_string()]);
        for (file, text) in files("card-in-host") {
            let (mut plain, mut masked) = (MachineFacts::default(), MachineFacts::default());
            plain.read(&file, &text);
            masked.read(&file, &mask.apply(&text));
            assert_eq!(plain, masked, "{name}: {file}");
        }
        let short = name.split('.').next().expect("a name");
        assert_eq!(mask.left().contains(short), name != "node17", "{name}: {:?}", mask.left());
    }
    let versions =
        "firmware-version: 226.0.145.0/pkg 226.1.107.1\n\tfw_ver:\t\t\t20.35.1012\nversion: 1.2.3.4\n";
    assert_eq!(Mask::default().apply(versions), versions);
    assert_eq!(Mask::default().apply("address: 226.0.145.0\n"), "address: [masked-1]\n");
}

proptest! {
    /// Whatever stands in a file, it is read without a panic, and so is its masked form.
    #[test]
    fn any_text_is_read(pieces in prop::collection::vec((0usize..40, "\\PC{0,24}"), 0..60), cut in 0usize..4000) {
        let all: Vec<String> = ["narrow", "behind-switch", "card-in-host", "card-itself"]
            .iter()
            .flat_map(|name| files(name))
            .flat_map(|(_, text)| text.lines().map(str::to_string).collect::<Vec<_>>())
            .collect();
        let mut text = String::new();
        for (index, (skip, noise)) in pieces.iter().enumerate() {
            let line = &all[(index * 37 + skip * 11 + cut) % all.len()];
            let keep = line.char_indices().nth(skip * 3).map_or(line.len(), |(at, _)| at);
            text += &format!("{}{noise}\n", &line[..keep]);
        }
        let mut facts = MachineFacts::default();
        facts.read("noise", &text);
        let masked = Mask::new(&["a".to_string()]).apply(&text);
        MachineFacts::default().read("masked", &masked);
        for address in facts.pci.keys() {
            prop_assert!(facts.bridges_above(*address).len() <= facts.pci.len());
        }
    }
}
