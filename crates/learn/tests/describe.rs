//! Machines of several kinds become systems that load, with what their files say in place of what is carried over.

use offpath_learn::describe::{DescribeError, Description, OddityKind, costs, describe};
use offpath_logs::machine::MachineFacts;
use offpath_profile::{Category, Draft, DraftRequest, Library, Provenance, System, SystemRequest};
use std::fs;
use std::path::Path;

fn read(name: &str) -> MachineFacts {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../logs/tests/data/machines").join(name);
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let mut facts = MachineFacts::default();
    for file in files {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(facts.read(&name, &fs::read_to_string(&file).expect("text")) > 0, "{name}");
    }
    facts
}

/// A machine's system, as its files would load, and the library that has them.
fn system(base: Option<&str>, description: &Description) -> (Library, Draft, Option<System>) {
    let mut library = Library::builtin();
    let request = DraftRequest {
        name: "mine",
        base,
        mode: description.mode,
        host_file: "mine-host",
        numbers: &description.numbers,
        ..DraftRequest::default()
    };
    let draft = library.draft_system(&request).expect("a draft");
    library.insert(Category::Device, "mine", &draft.device);
    library.insert(Category::Host, "mine-host", &draft.host);
    let system = library.load(&SystemRequest { device: "mine", ..SystemRequest::default() });
    let system =
        base.map(|_| system.unwrap_or_else(|error| panic!("{error:?}\n{}\n{}", draft.device, draft.host)));
    (library, draft, system)
}

fn shown(system: &System, name: &str) -> String {
    system.numbers.get(name).unwrap_or_else(|| panic!("no {name}")).value.to_string()
}

fn kinds(description: &Description) -> Vec<OddityKind> {
    description.oddities.iter().map(|oddity| oddity.kind).collect()
}

#[test]
fn a_link_that_came_up_slow_is_told_with_what_it_costs() {
    let description = describe(&read("narrow"), None).expect("one card has RDMA");
    let card = description.card.as_ref().expect("a card");
    assert_eq!(card.address.to_string(), "0000:3b:00.0", "the other card has no RDMA device");
    assert_eq!(card.firmware.as_deref(), Some("20.35.1012"));
    assert!(!card.is_own_processor);
    let (library, draft, system) = system(Some("connectx6"), &description);
    let system = system.expect("it loads");
    for (name, value) in [
        ("pcie0.rate", "128 Gbit/s"),
        ("pcie0.read_request_limit", "512 B"),
        ("host.pcie_mtu", "256 B"),
        ("host.cores", "32"),
        ("host.threads_per_core", "2"),
        ("host.frequency", "3.9 GHz"),
        ("nic.port_rate", "200 Gbit/s"),
        ("network.mtu", "4 KiB"),
        ("nic.outstanding_reads", "16"),
    ] {
        assert_eq!(shown(&system, name), value, "{name}");
        assert!(!system.numbers[name].provenance.is_guess(), "{name}");
        assert!(system.numbers[name].source.contains(".txt:"), "{name}: {}", system.numbers[name].source);
    }
    assert_eq!(shown(&system, "client.pcie0.rate"), "128 Gbit/s", "both machines are alike");
    // What no file says is carried over and marked.
    for name in
        ["nic.pass_time", "host.read_latency", "host.ddio", "host.bandwidth", "host.banks", "network.delay"]
    {
        assert_eq!(system.numbers[name].provenance, Provenance::CarriedOver, "{name}");
    }
    // Framing is the standard's.
    assert_eq!(system.numbers["pcie0.write_header"].provenance, Provenance::Datasheet);
    assert_eq!(
        kinds(&description),
        [
            OddityKind::LinkBelowMaximum,
            OddityKind::MaxReadRequest,
            OddityKind::Governor,
            OddityKind::MemoryNode,
            OddityKind::RelaxedOrdering,
            OddityKind::Iommu
        ],
        "MaxPayload is what the root port can"
    );
    let slow = &description.oddities[0];
    assert!(slow.what.contains("8 GT/s x16") && slow.what.contains("16 GT/s x16"), "{}", slow.what);
    let found = costs(&library, "mine", &draft, slow).expect("both load");
    let large: Vec<_> = found.iter().filter(|cost| cost.payload.get() > 64).collect();
    assert_eq!(large.len(), 2, "{found:?}");
    for cost in large {
        // Half a link carries about half of what the port can, and less than half is lost to what binds then.
        assert!((0.3..0.55).contains(&cost.lost_share()), "{cost:?}");
    }
    // What has no number in the model has no cost.
    let governor = &description.oddities[2];
    assert!(governor.mends.is_empty());
    assert_eq!(costs(&library, "mine", &draft, governor).expect("it loads"), []);
}

#[test]
fn a_narrow_bridge_above_a_wide_card_is_found() {
    let description = describe(&read("behind-switch"), None).expect("one card");
    let (library, draft, system) = system(Some("connectx7"), &description);
    let system = system.expect("it loads");
    assert_eq!(shown(&system, "pcie0.rate"), "256 Gbit/s", "32 GT/s on 8 lanes, above the switch");
    assert_eq!(shown(&system, "pcie0.read_request_limit"), "4 KiB");
    assert_eq!(shown(&system, "network.mtu"), "1 KiB");
    assert_eq!(shown(&system, "network.packet_header"), "82 B");
    let slow = &description.oddities[0];
    assert_eq!(slow.kind, OddityKind::LinkBelowMaximum);
    assert!(slow.what.contains("`0000:16:00.0`") && slow.what.contains("`0000:15:01.0`"), "{}", slow.what);
    assert!(!costs(&library, "mine", &draft, slow).expect("both load").is_empty());
    assert_eq!(
        kinds(&description),
        [
            OddityKind::LinkBelowMaximum,
            OddityKind::PathMtu,
            OddityKind::MaxPayload,
            OddityKind::AccessControl
        ]
    );
}

#[test]
fn what_is_on_the_card_is_the_cards_and_what_is_above_is_the_hosts() {
    let description = describe(&read("card-in-host"), None).expect("one card");
    assert_eq!(description.mode, Some("embedded-cpu"));
    assert_eq!(description.card.as_ref().expect("a card").functions.len(), 2);
    let (_, draft, system) = system(Some("bluefield2"), &description);
    let system = system.expect("it loads");
    assert_eq!(system.mode, "embedded-cpu");
    assert_eq!(shown(&system, "pcie1.rate"), "256 Gbit/s");
    assert!(system.numbers["pcie1.rate"].source.contains("lspci.txt"));
    assert!(system.numbers["pcie0.rate"].source.contains("lspci.txt"));
    assert_eq!(shown(&system, "nic.port_rate"), "200 Gbit/s", "both ports");
    assert_eq!(system.numbers["soc.cores"].provenance, Provenance::CarriedOver);
    assert!(draft.device.contains("bluefield2:"), "carried over from it");
    // The same card from inside: its processor, and nothing of the host.
    let inside = describe(&read("card-itself"), None).expect("one card");
    assert!(inside.card.as_ref().expect("a card").is_own_processor);
    let (_, _, system) = self::system(Some("bluefield2"), &inside);
    let system = system.expect("it loads");
    assert_eq!(shown(&system, "soc.cores"), "8");
    assert_eq!(shown(&system, "soc.frequency"), "2.5 GHz");
    assert_eq!(shown(&system, "soc.pcie_mtu"), "128 B");
    assert!(
        !system.numbers["pcie0.rate"].source.contains("lspci"),
        "the host's slot is not seen from the card"
    );
}

#[test]
fn several_cards_are_named_and_one_is_chosen_by_its_address() {
    let mut facts = MachineFacts::default();
    facts.read(
        "lspci.txt",
        "01:00.0 Ethernet controller: A One\n02:00.0 Ethernet controller: B Two\n02:00.1 Ethernet controller: B Two\n",
    );
    let error = describe(&facts, None).expect_err("two cards");
    assert!(matches!(&error, DescribeError::SeveralCards(cards) if cards.len() == 2), "{error}");
    let named = describe(&facts, Some("02:00")).expect("it is there").card.expect("a card");
    assert_eq!((named.address.to_string().as_str(), named.functions.len()), ("0000:02:00.0", 2));
    let error = describe(&facts, Some("03:00.0")).expect_err("not there");
    assert!(error.to_string().contains("0000:01:00.0"), "{error}");
}

/// Ports of a machine with two cards, of which nothing says which stands in which, are no numbers of either.
#[test]
fn ports_of_another_card_are_not_added_up() {
    let cards = "01:00.0 Infiniband controller: A Card\n02:00.0 Infiniband controller: A Card\n";
    let port = |device: &str| {
        format!(
            "hca_id:\t{device}\n\tphys_port_cnt:\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tactive_width:\t\t4X \
             (2)\n\t\t\tactive_speed:\t\t25.0 Gbps (32)\n"
        )
    };
    let of = |ports: &str| {
        let mut facts = MachineFacts::default();
        facts.read("lspci.txt", cards);
        facts.read("ibv_devinfo.txt", ports);
        describe(&facts, Some("02:00.0")).expect("it is named")
    };
    let rate = |description: &Description| {
        let number = description.numbers.iter().find(|one| one.key == "port_rate")?;
        Some(number.value.to_string())
    };
    let both = of(&(port("mlx5_0") + &port("mlx5_1")));
    assert_eq!(rate(&both), None);
    assert!(both.unsaid.iter().any(|said| said.contains("/sys/class/infiniband")), "{:?}", both.unsaid);
    // Who lists one device alone has asked for it.
    assert_eq!(rate(&of(&port("mlx5_1"))).as_deref(), Some("100 Gbit/s"));
}

/// A port that is down says nothing of the packets on the network.
#[test]
fn the_link_layer_is_that_of_ports_that_are_up() {
    let port = |number: u64, state: &str, layer: &str| {
        format!("\t\tport:\t{number}\n\t\t\tstate:\t\t\t{state}\n\t\t\tlink_layer:\t\t{layer}\n")
    };
    let of = |ports: &[String]| {
        let mut facts = MachineFacts::default();
        facts.read("ibv_devinfo.txt", &format!("hca_id:\tmlx5_0\n\tphys_port_cnt:\t\t2\n{}", ports.concat()));
        let description = describe(&facts, None).expect("no card is no mistake");
        description.numbers.iter().any(|one| one.key == "packet_header")
    };
    let (up, down) = ("PORT_ACTIVE (4)", "PORT_DOWN (1)");
    assert!(of(&[port(1, up, "Ethernet"), port(2, down, "InfiniBand")]));
    assert!(!of(&[port(1, down, "Ethernet"), port(2, up, "InfiniBand")]));
    assert!(
        !of(&[port(1, up, "Ethernet"), port(2, up, "InfiniBand")]),
        "which of both the runs take is not said"
    );
}

/// Without a base what is known stands in a file that is blank elsewhere; nothing known is lost.
#[test]
fn a_blank_draft_holds_what_is_known() {
    let description = describe(&read("card-in-host"), None).expect("one card");
    let (_, draft, _) = system(None, &description);
    for number in &description.numbers {
        let name = draft.named.get(&(number.part, number.key));
        assert!(name.is_some(), "{number:?} has no place");
    }
    assert!(draft.host.contains("cores = { value = 24, source"), "{}", draft.host);
    assert!(draft.host.contains("read_latency = { value = \"\""));
}

#[test]
fn what_files_do_not_say_is_told_with_the_command_that_does() {
    let nothing = describe(&MachineFacts::default(), None).expect("no card is no mistake");
    assert_eq!(nothing.card, None);
    let all = nothing.unsaid.join("\n");
    for command in ["lspci -vvv", "ibv_devinfo -v", "lscpu", "numactl -H"] {
        assert!(all.contains(command), "{all}");
    }
    let whole = describe(&read("narrow"), None).expect("one card");
    assert_eq!(whole.unsaid, Vec::<String>::new());
}

/// What a lane carries is named otherwise on Ethernet, whose 40 Gbit/s are four lanes of QDR to the driver, and FDR10 has no 8b/10b.
#[test]
fn a_port_carries_what_its_network_does() {
    let of = |layer: &str, width: &str, speed: &str, interface: &str| {
        let mut facts = MachineFacts::default();
        facts.read(
            "ibv.txt",
            &format!(
                "hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tlink_layer:\t\t{layer}\n\t\t\tactive_width:\t\t{width}\n\t\t\tactive_speed:\t\t{speed}\n"
            ),
        );
        if !interface.is_empty() {
            facts.read("eth.txt", &format!("Settings for eth0:\n\tSpeed: {interface}\n"));
        }
        let found = describe(&facts, None).expect("no card has to be chosen");
        let rate = found.numbers.iter().find(|number| number.key == "port_rate").expect("it is said");
        let contradicts = found.oddities.iter().any(|one| one.kind == OddityKind::Contradiction);
        (rate.value.to_string(), contradicts)
    };
    let is = |rate: &str| (rate.to_string(), false);
    assert_eq!(of("Ethernet", "4X (2)", "10.0 Gbps (4)", "40000Mb/s"), is("40 Gbit/s"));
    assert_eq!(of("Ethernet", "1X (1)", "10.0 Gbps (4)", "10000Mb/s"), is("10 Gbit/s"));
    assert_eq!(of("InfiniBand", "4X (2)", "10.0 Gbps (4)", ""), is("32 Gbit/s"));
    assert_eq!(of("InfiniBand", "4X (2)", "10.0 Gbps (8)", ""), is("40 Gbit/s"));
    assert_eq!(of("Ethernet", "4X (2)", "25.0 Gbps (32)", "100000Mb/s"), is("100 Gbit/s"));
    assert_eq!(of("Ethernet", "4X (2)", "25.0 Gbps (32)", "25000Mb/s"), ("100 Gbit/s".to_string(), true));
}

/// Errors of PCIe are told by whoever noted them; a corrected one beside a request that nobody knows is what looking for devices leaves.
#[test]
fn errors_that_a_function_has_noted_are_odd() {
    let of = |status: &str| {
        let mut facts = MachineFacts::default();
        let text = format!(
            "00:01.0 PCI bridge: A Bridge\n\tBus: primary=00, secondary=3b, subordinate=3b, sec-latency=0\n\t\tDevSta:\t{status}\n\
             3b:00.0 Ethernet controller: A Card\n\t\tDevSta:\tCorrErr- NonFatalErr- FatalErr- UnsupReq- AuxPwr- TransPend-\n"
        );
        facts.read("lspci.txt", &text);
        let found = describe(&facts, None).expect("there is one card").oddities;
        found.into_iter().map(|one| (one.kind, one.at.line, one.what)).collect::<Vec<_>>()
    };
    assert_eq!(of("CorrErr- NonFatalErr- FatalErr- UnsupReq+ AuxPwr- TransPend-"), []);
    assert_eq!(of("CorrErr+ NonFatalErr- FatalErr- UnsupReq+ AuxPwr- TransPend-"), []);
    for (status, kind, said) in [
        ("CorrErr+ NonFatalErr- FatalErr- UnsupReq- AuxPwr- TransPend-", OddityKind::PcieErrors, "CorrErr+"),
        (
            "CorrErr+ NonFatalErr+ FatalErr- UnsupReq+ AuxPwr- TransPend-",
            OddityKind::PcieErrors,
            "NonFatalErr+",
        ),
        ("CorrErr- UncorrErr+ FatalErr- UnsuppReq- AuxPwr- TransPend-", OddityKind::PcieErrors, "non-fatal"),
        (
            "CorrErr+ NonFatalErr+ FatalErr+ UnsupReq+ AuxPwr- TransPend-",
            OddityKind::PcieFatalErrors,
            "`FatalErr+`",
        ),
    ] {
        let found = of(status);
        assert_eq!(found.iter().map(|one| (one.0, one.1)).collect::<Vec<_>>(), [(kind, 3)], "{status}");
        assert!(found[0].2.contains("0000:00:01.0") && found[0].2.contains(said), "{found:?}");
    }
}
