//! Overlays, settings, modes, invented cards, and profiles from the user's own files.

use miette::Diagnostic;
use offpath_profile::{Category, Direction, Library, ProfileError, Provenance, System, SystemRequest};
use offpath_quantity::{Bytes, Quantity, Time};

const INVENTED: &str = include_str!("data/invented.toml");

fn library() -> Library {
    let mut library = Library::builtin();
    library.insert(Category::Device, "invented", INVENTED);
    library
}
fn load(request: SystemRequest<'_>) -> System {
    library().load(&SystemRequest { device: "invented", ..request }).unwrap()
}
fn hops(system: &System, role: &str, from: &str, to: &str) -> Vec<(String, Direction, Option<String>)> {
    let hops = system.machine(role).unwrap().hops(from, to).unwrap();
    hops.iter()
        .map(|hop| (hop.link.name.clone(), hop.direction, hop.switch.map(|switch| switch.name.clone())))
        .collect()
}

/// What predictions for a card were wrong by is known of it where its own file has it stand, and of nothing else.
#[test]
fn learnt_errors_are_of_a_device_in_its_testbed() {
    let mut library = library();
    let rack = library.source(Category::Testbed, "bluefield3-pair").expect("it ships").to_string();
    let number =
        |value: &str| format!("{{ value = {value}, source = \"own logs\", provenance = \"measured-here\" }}");
    let mut errors = format!(
        "\n[own]\nkind = \"errors\"\nfigure = \"latency\"\ntraffic = [\"read\"]\npoints = {}\n",
        number("9")
    );
    for key in ["half_within", "eight_of_ten_within", "nine_of_ten_within", "all_within"] {
        errors += &format!("{key} = {}\n", number("0.25"));
    }
    let header = INVENTED.replacen("testbed = \"rack\"\n", "", 1);
    library.insert(Category::Device, "invented", &format!("{header}\n{rack}{errors}"));
    let load = |device, testbed| {
        library.load(&SystemRequest { device, testbed, ..SystemRequest::default() }).expect("it loads")
    };
    let system = load("invented", None);
    let runs = ("read", "client-host");
    let own = system.learnt_errors("latency", runs, "anything").expect("the file has them");
    assert_eq!((own.points, own.half_within, own.all_within), (9, 0.25, 0.25));
    assert!(system.learnt_errors("throughput", runs, "anything").is_none());
    assert!(system.numbers.keys().all(|name| !name.contains("within")), "they are no numbers to move");
    assert!(
        load("invented", Some("bluefield3-pair")).learnt_errors.is_empty(),
        "elsewhere nothing was measured"
    );
    // Where no log of latencies is behind it the card says so, wherever it stands.
    assert!(!system.is_latency_untold && !load("invented", Some("bluefield3-pair")).is_latency_untold);
    let of_rates =
        format!("{header}\n{rack}{errors}").replace("figure = \"latency\"", "figure = \"throughput\"");
    let mut other = self::library();
    other.insert(Category::Device, "invented", &of_rates);
    for testbed in [None, Some("bluefield3-pair")] {
        let request = SystemRequest { device: "invented", testbed, ..SystemRequest::default() };
        let system = other.load(&request).expect("it loads");
        assert!(
            system.is_latency_untold && system.is_untold("latency", "read", "client-host"),
            "{testbed:?}"
        );
    }
    // A card that begins with this one's numbers has none of its errors.
    let draft = library.draft("another", Some("invented")).expect("a file");
    assert!(!draft.contains("own logs"), "{draft}");
}

#[test]
fn an_invented_card_is_data_alone() {
    let system = load(SystemRequest::default());
    let names: Vec<&str> = system.endpoints().map(|(_, endpoint)| endpoint.name.as_str()).collect();
    assert_eq!(names, ["arm", "dpa", "host", "client", "backup.arm", "backup.dpa", "backup"]);
    assert_eq!(system.endpoint("backup.dpa").unwrap().1.memory.pcie_mtu, Bytes::new(128));
    let some = |name: &str| Some(name.to_string());
    use Direction::{Backward, Forward};
    assert_eq!(
        hops(&system, "server", "nic", "host"),
        [("lane_a".into(), Forward, some("hub")), ("pcie0".into(), Forward, None)]
    );
    assert_eq!(
        hops(&system, "server", "host", "arm"),
        [("pcie0".into(), Backward, some("hub")), ("lane_b".into(), Forward, None)]
    );
    // The file writes this link from its far end.
    assert_eq!(hops(&system, "server", "dpa", "nic"), [("lane_c".into(), Backward, None)]);
    assert_eq!(
        hops(&system, "backup", "backup.dpa", "backup.arm"),
        [
            ("backup.lane_c".into(), Backward, None),
            ("backup.lane_a".into(), Forward, some("backup.hub")),
            ("backup.lane_b".into(), Forward, None)
        ]
    );
    assert_eq!(hops(&system, "server", "arm", "arm"), []);
    assert!(
        system.machine("server").unwrap().hops("arm", "moon").unwrap_err().to_string().contains("`moon`")
    );
    let backup = system.machine("backup").unwrap();
    assert_eq!(backup.engine("copy").unwrap(), backup.engine("backup.copy").unwrap());
    assert_eq!(backup.engine("copy").unwrap().endpoint, "backup.arm");
    assert_eq!(backup.large_transfer_limits[0].responder, "backup.dpa");
    assert_eq!(system.mode_note(), None);
}

#[test]
fn mode_nic_hides_the_card() {
    let system = load(SystemRequest { mode: Some("nic"), ..SystemRequest::default() });
    let names: Vec<&str> = system.endpoints().map(|(_, endpoint)| endpoint.name.as_str()).collect();
    assert_eq!(names, ["host", "client", "backup"]);
    let server = system.machine("server").unwrap();
    assert!(server.engines.is_empty() && server.large_transfer_limits.is_empty());
    assert_eq!(server.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>(), ["lane_a", "pcie0"]);
    assert!(
        !system
            .numbers
            .keys()
            .any(|name| name.contains("arm") || name.contains("lane_b") || name.contains("copy"))
    );
    for name in ["arm", "backup.dpa"] {
        let refused = format!("endpoint `{name}` does not exist in mode `nic`");
        assert_eq!(system.endpoint(name).unwrap_err().to_string(), refused);
    }
    assert!(system.mode_note().unwrap().contains("nic"));
}

#[test]
fn mode_embedded_cpu_keeps_both_endpoints_and_says_what_is_not_modelled() {
    let system = load(SystemRequest { mode: Some("embedded-cpu"), ..SystemRequest::default() });
    assert_eq!(system.mode, "embedded-cpu");
    assert!(system.endpoint("arm").is_ok() && system.endpoint("host").is_ok());
    assert!(system.mode_note().unwrap().contains("not part of the profile"));
}

#[test]
fn overlays_match_in_every_machine_and_are_recorded() {
    let system = load(SystemRequest {
        overlays: vec!["ideal-links"],
        settings: vec![
            "arm.pcie_mtu = 512B".into(),
            "host.ddio=false".into(),
            "arm.inbound_read_rate=90 M/s".into(),
        ],
        ..SystemRequest::default()
    });
    for machine in &system.machines {
        for pcie in machine.links.iter().filter_map(|link| link.pcie.as_ref()) {
            assert_eq!((pcie.encoding, pcie.write_header), (1.0, Bytes::ZERO));
        }
        assert_eq!(machine.nic.work_request_bytes, Bytes::ZERO);
    }
    assert_eq!(system.network.packet_header, Bytes::ZERO);
    let number = &system.numbers["client.pcie0.encoding"];
    assert_eq!((number.provenance, number.source.as_str()), (Provenance::Set, "overlay ideal-links"));
    let arm = system.endpoint("arm").unwrap().1;
    assert_eq!(arm.memory.pcie_mtu, Bytes::new(512));
    assert!(arm.memory.inbound_read_rate.is_some() && system.numbers.contains_key("arm.inbound_read_rate"));
    assert!(!system.endpoint("host").unwrap().1.memory.ddio);
    assert_eq!(
        system.overlays,
        ["ideal-links", "arm.pcie_mtu = 512B", "host.ddio=false", "arm.inbound_read_rate=90 M/s"]
    );
}

#[test]
fn an_overlay_may_multiply_what_was_there() {
    let load = |lines: &str, header: &str, settings: &[&str]| {
        let mut library = library();
        let text = format!("[overlay]\nname = \"mine\"\ndescription = \"d\"\n[set]\n{lines}");
        library.insert(Category::Overlay, "mine", &text);
        library.insert(
            Category::Device,
            "invented",
            &INVENTED.replace("host_at = \"hub\"\n", &format!("host_at = \"hub\"\n{header}")),
        );
        let settings = settings.iter().map(ToString::to_string).collect();
        library.load(&SystemRequest {
            device: "invented",
            overlays: vec!["mine"],
            settings,
            ..SystemRequest::default()
        })
    };
    let of = |lines: &str| load(lines, "variants = [\"mine\"]\n", &["nic.inflight_slots=100"]);
    // Each line multiplies the number, whichever line comes first and whatever is set after it. As a mechanism of the
    // card it leaves the number the profile's or the user's.
    let lines = [
        "\"nic.inflight_slots\" = { times = 1.5 }\n",
        "\"nic.reserved_inflight_slots\" = { times = 0.331, of = \"nic.inflight_slots\" }\n",
    ];
    for lines in [lines.concat(), [lines[1], lines[0]].concat()] {
        let system = of(&lines).expect("it loads");
        let nic = &system.machine("server").unwrap().nic;
        assert_eq!((nic.inflight_slots, nic.reserved_inflight_slots), (150, 33), "of 100");
        assert_eq!(system.numbers["nic.inflight_slots"].value, Quantity::Count(100), "the setting");
        assert_eq!(system.numbers["nic.inflight_slots"].provenance, Provenance::Set);
        assert_eq!(system.numbers["nic.reserved_inflight_slots"].provenance, Provenance::Datasheet);
        let moved = system.with("nic.inflight_slots", Quantity::Count(200)).unwrap();
        let nic = &moved.machine("server").unwrap().nic;
        assert_eq!(
            (nic.inflight_slots, nic.reserved_inflight_slots),
            (300, 66),
            "what is moved is multiplied"
        );
        let moved = system.with("nic.reserved_inflight_slots", Quantity::Count(7)).unwrap();
        assert_eq!(
            moved.machine("server").unwrap().nic.reserved_inflight_slots,
            33,
            "it is a multiple of another"
        );
        let error = system.with("nic.inflight_slots", Quantity::Count(900_000)).unwrap_err();
        assert!(error.to_string().contains("1350000"), "{error}");
    }
    // Whoever writes an overlay of their own says what nobody measured: the product is theirs.
    for lines in [lines.concat(), [lines[1], lines[0]].concat()] {
        let system = load(&lines, "", &["nic.inflight_slots=100"]).expect("it loads");
        let nic = &system.machine("server").unwrap().nic;
        assert_eq!((nic.inflight_slots, nic.reserved_inflight_slots), (150, 33), "of 100");
        assert!(system.scales.is_empty());
        for (name, value) in [("nic.inflight_slots", 150), ("nic.reserved_inflight_slots", 33)] {
            let number = &system.numbers[name];
            assert_eq!((number.value, number.provenance), (Quantity::Count(value), Provenance::Set));
            assert!(number.source.contains("times nic.inflight_slots"), "{}", number.source);
        }
    }
    let before = load("\"nic.inflight_slots\" = 100", "", &[]).expect("it loads");
    let ranged = before.numbers.iter().find(|(_, one)| one.low.is_some_and(|low| low.base() > 100.0));
    let (name, shipped) = ranged.expect("some number has an interval");
    let system = load(&format!("\"{name}\" = {{ times = 2.0 }}"), "", &[]).expect("it loads");
    let own = &system.numbers[name];
    let twice = |of: Option<Quantity>| of.map(|of| 2.0 * of.base());
    assert_eq!(
        (own.low.map(Quantity::base), own.high.map(Quantity::base)),
        (twice(shipped.low), twice(shipped.high))
    );
    let system = load(&format!("\"{name}\" = {{ times = 1.0 }}"), "", &[]).expect("it loads");
    assert_eq!(&system.numbers[name], shipped, "once a number is that number, and no claim of the user's");
    for (line, says) in [
        ("\"nic.inflight_slots\" = { times = 1.5, of = \"nic.slots\" }", "no number `nic.slots`"),
        ("\"nic.inflight_slots\" = { times = 1.5, of = \"nic.pass_time\" }", "`nic.pass_time` is a time"),
        ("\"arm.inbound_read_rate\" = { times = 1.0 }", "no number `arm.inbound_read_rate` to multiply"),
        ("\"nic.inflight_slots\" = { times = -1 }", "`times` is not a number of at least 0"),
        ("\"nic.inflight_slots\" = { of = \"nic.inflight_slots\" }", "`times` is not a number"),
        ("\"nic.inflight_slots\" = { times = 1.5, off = 1 }", "no `off`"),
        ("\"nic.inflight_slots\" = { times = 1e9 }", "from 1 to 1000000"),
        ("\"nic.inflight_slots\" = { times = 0.0 }", "from 1 to 1000000"),
        ("\"nic.inflight_slots\" = { times = 1e300 }", "too large"),
        ("\"nic.inflight_slots\" = [1]", "found a list"),
    ] {
        let error = of(line).unwrap_err();
        assert!(error.to_string().contains(says), "{line}: {error}");
        assert_eq!(error.place().expect("it has a place").0, "overlays/mine.toml");
    }
}

/// What an overlay says may be known within an interval: of a value its own, of a multiple that of the number with that of
/// the factor.
#[test]
fn an_overlay_may_say_how_well_it_knows() {
    let mut library = Library::builtin();
    let mut load = |line: &str| {
        let text = format!("[overlay]\nname = \"mine\"\ndescription = \"tried\"\n[set]\n{line}\n");
        library.insert(Category::Overlay, "mine", &text);
        library.load(&SystemRequest {
            device: "bluefield2",
            overlays: vec!["mine"],
            ..SystemRequest::default()
        })
    };
    let mut interval = |line: &str, name: &str| {
        let number = load(line).unwrap_or_else(|error| panic!("{line}: {error}")).numbers[name].clone();
        let base = |end: Option<Quantity>| end.expect("it has an interval").base();
        (base(number.low), number.value.base(), base(number.high), number.multiple_of.clone())
    };
    let ns = |time: f64| time * 1e3;
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    let (low, value, high, of) = interval(
        "\"soc.read_latency\" = { value = \"100 ns\", low = \"50 ns\", high = \"150 ns\" }",
        "soc.read_latency",
    );
    assert!(near(low, ns(50.0)) && near(value, ns(100.0)) && near(high, ns(150.0)), "{low} {value} {high}");
    assert_eq!(of, None);
    let plain = Library::builtin();
    let plain =
        plain.load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).expect("shipped");
    let shipped = &plain.numbers["soc.read_latency"];
    let end = |end: Option<Quantity>| end.expect("it is known within an interval").base();
    let (low, value, high, of) =
        interval("\"soc.read_latency\" = { times = 2, low = 1, high = 4 }", "soc.read_latency");
    let picosecond = 1.0;
    assert!(
        (low - end(shipped.low)).abs() <= picosecond && (high - 4.0 * end(shipped.high)).abs() <= picosecond
    );
    assert!((value - 2.0 * shipped.value.base()).abs() <= picosecond);
    assert_eq!(of.as_deref(), Some("soc.read_latency"));
    // A number without an interval is known as well as the factor is.
    let line = "\"dma.read_rate\" = { times = 1, low = 0.5, high = 1, of = \"pcie0.rate\" }";
    let (low, value, high, of) = interval(line, "dma.read_rate");
    let rate = plain.numbers["pcie0.rate"].value.base();
    assert!(near(low, rate / 2.0) && near(value, rate) && near(high, rate));
    assert_eq!(of.as_deref(), Some("pcie0.rate"));
    for (line, says) in [
        ("\"soc.read_latency\" = { value = \"100 ns\", low = \"50 ns\" }", "both `low` and `high`"),
        (
            "\"soc.read_latency\" = { value = \"9 ns\", low = \"50 ns\", high = \"60 ns\" }",
            "from its low of 50 ns",
        ),
        (
            "\"soc.read_latency\" = { value = \"100 ns\", low = \"5 B\", high = \"200 ns\" }",
            "not a unit of time",
        ),
        ("\"soc.read_latency\" = { value = \"100 ns\", times = 2 }", "no `times`"),
        ("\"soc.read_latency\" = { value = [1] }", "`value` cannot be a list"),
        ("\"soc.read_latency\" = { times = 2, low = 3, high = 4 }", "from its low of 3"),
        ("\"soc.read_latency\" = { times = 2, low = -1, high = 4 }", "`low` is not a number of at least 0"),
        ("\"soc.read_latency\" = { low = 1, high = 4 }", "`times` is not a number"),
    ] {
        let error = load(line).unwrap_err();
        assert!(error.to_string().contains(says), "{line}: {error}");
        assert_eq!(error.place().expect("it has a place").0, "overlays/mine.toml");
    }
    // A mechanism leaves the number its interval, so that one of the factor would say nothing.
    let pool = "[overlay]\nname = \"one-pool\"\ndescription = \"a pool\"\n[set]\n\
                \"nic.reserved_inflight_slots\" = { times = 0.5, low = 0, high = 1 }\n";
    let mut library = Library::builtin();
    library.insert(Category::Overlay, "one-pool", pool);
    let request =
        SystemRequest { device: "bluefield2", overlays: vec!["one-pool"], ..SystemRequest::default() };
    let error = library.load(&request).unwrap_err().to_string();
    assert!(error.contains("keeps its own interval"), "{error}");
}

/// A mechanism that the evidence leaves open is the card's: every machine that carries it has it, one that does not
/// name it has not, and its numbers keep origin and interval.
#[test]
fn a_mechanism_is_that_of_its_card() {
    let library = Library::builtin();
    let of = |device: &'static str, overlays: Vec<&'static str>| {
        library.load(&SystemRequest { device, overlays, ..SystemRequest::default() }).expect("it loads")
    };
    let (plain, open) = (of("bluefield2", vec![]), of("bluefield2", vec!["one-pool"]));
    assert_eq!(plain.numbers, open.numbers);
    let pools = |system: &System| -> Vec<(String, u64, u64)> {
        let of = |machine: &offpath_profile::Machine| {
            (machine.device.clone(), machine.nic.inflight_slots, machine.nic.reserved_inflight_slots)
        };
        system.machines.iter().map(of).collect()
    };
    for ((device, inflight_slots, kept), (_, own, reserved)) in pools(&plain).into_iter().zip(pools(&open)) {
        assert_eq!(kept > 0, device == "bluefield2", "{device}");
        assert_eq!((own, reserved), (inflight_slots, 0), "{device}");
    }
    assert!(
        pools(&open).iter().filter(|(device, ..)| device == "bluefield2").count() == 2,
        "server and backup"
    );
    let concerns = |device| library.concerns("one-pool", "bluefield2", device).expect("it is there");
    assert!(concerns("bluefield2") && !concerns("connectx6"));
    assert!(library.concerns("ideal-links", "bluefield2", "connectx6").expect("it is there"));
}

/// Overlays and settings speak of a card. What another device beside it has from the same place follows, its own numbers
/// stay, and what it lacks is passed over; without a card beside it, it refuses the same lines.
#[test]
fn what_is_said_of_a_card_changes_its_own_numbers_and_shared_ones() {
    let mut library = Library::builtin();
    let lines = "\"soc.read_latency\" = \"300 ns\"\n\"nic.inflight_slots\" = { times = 2.0 }\n\"client.nic.inflight_slots\" = 77\n\
                 \"soc_verbs.*\" = \"50 ns\"\n";
    let text = |lines: &str| format!("[overlay]\nname = \"mine\"\ndescription = \"d\"\n[set]\n{lines}");
    library.insert(Category::Overlay, "mine", &text(lines));
    let of = |settings: Vec<String>, beside| {
        let overlays = if settings.is_empty() { vec!["mine"] } else { vec![] };
        let request =
            SystemRequest { device: "connectx6", overlays, settings, beside, ..SystemRequest::default() };
        library.load(&request)
    };
    let plain =
        library.load(&SystemRequest { device: "connectx6", ..SystemRequest::default() }).expect("it loads");
    let settings = || {
        ["soc.read_latency=300ns", "nic.inflight_slots=284", "client.nic.inflight_slots=77"]
            .map(String::from)
            .to_vec()
    };
    for settings in [Vec::new(), settings()] {
        let changed = of(settings.clone(), Some("bluefield2")).expect("what it lacks is passed over");
        let differs: Vec<&String> = changed
            .numbers
            .iter()
            .filter(|(name, number)| number.value != plain.numbers[*name].value)
            .map(|(name, _)| name)
            .collect();
        assert_eq!(differs, ["client.nic.inflight_slots"]);
        assert_eq!(changed.machine("client").expect("it is there").nic.inflight_slots, 77);
        let refused = of(settings, None).expect_err("it has no SoC").to_string();
        assert!(refused.contains("soc.read_latency"), "{refused}");
    }
}

#[test]
fn a_later_setting_wins_and_counts_are_checked_at_the_end() {
    let settings = vec!["client.count=50".into(), "client.available=60".into(), "client.count=40".into()];
    assert_eq!(
        load(SystemRequest { settings, ..SystemRequest::default() }).machine("client").unwrap().count,
        40
    );
}

/// The text of a profile with another value of a number, which has no interval then.
fn written(text: &str, number: &str, value: &str) -> String {
    let (table, key) = number.rsplit_once('.').unwrap();
    let line = format!("{key} = {{ value = \"{value}\", source = \"t\", provenance = \"datasheet\" }}\n");
    let (before, own) = text.split_once(&format!("[{table}]\n")).unwrap();
    let (own, after) = own.split_once("\n[").unwrap_or((own, ""));
    let is_other = |one: &&str| !one.starts_with(&format!("{key} = "));
    let kept: String = own.lines().filter(is_other).map(|one| format!("{one}\n")).collect();
    format!("{before}[{table}]\n{kept}{line}\n[{after}")
}

#[test]
fn what_a_file_may_not_say_no_setting_and_no_overlay_may() {
    let shipped = include_str!("../../../profiles/devices/bluefield3.toml");
    for (number, value) in [
        ("dpa_l2.arrivals", "64 MiB"),
        ("dpa_l2.capacity", "512 B"),
        ("dpa_l1.latency", "9 us"),
        ("dpa_to_dpa_memory.latency", "100 ns"),
        ("soc_to_soc.latency", "5 us"),
        ("nic.reserved_inflight_slots", "500"),
        ("dma.output_share", "0.5"),
        ("dma.slow_above", "1 MiB"),
        ("dpa_memory.cut_up_to", "256 B"),
        ("soc_work_atomic.operation_time", "1 us"),
        ("soc_work_atomic.byte_rate", "1 Gbit/s"),
    ] {
        let mut library = Library::builtin();
        library.insert(
            Category::Overlay,
            "mine",
            &format!("[overlay]\nname = \"mine\"\ndescription = \"d\"\n[set]\n\"{number}\" = \"{value}\"\n"),
        );
        let refused = |library: &Library, request: SystemRequest<'_>| {
            let request = SystemRequest { device: "bluefield3", ..request };
            library.load(&request).map(|_| ()).expect_err(number)
        };
        let settings = vec![format!("{number}={value}")];
        let set = refused(&library, SystemRequest { settings, ..SystemRequest::default() });
        let overlays = vec!["mine"];
        let overlaid = refused(&library, SystemRequest { overlays, ..SystemRequest::default() });
        library.insert(Category::Device, "bluefield3", &written(shipped, number, value));
        let file = refused(&library, SystemRequest::default());
        let says =
            |refused: &ProfileError| (refused.to_string(), refused.help().map(|help| help.to_string()));
        assert_eq!((says(&set), says(&overlaid)), (says(&file), says(&file)), "{number}");
        let places = [set, overlaid, file].map(|one| one.place().expect(number).0.to_string());
        assert_eq!(places, ["set", "overlays/mine.toml", "devices/bluefield3.toml"], "{number}");
    }
}

/// Two numbers that go together may be changed one after the other.
#[test]
fn numbers_are_held_to_each_other_when_all_are_said() {
    for settings in [
        ["soc_to_soc.latency=5us", "dpa_to_soc.latency=6us", "dpa_to_dpa_memory.latency=6us"],
        ["dpa_l2.arrivals=2MiB", "dpa_l2.capacity=2560KiB", "dpa_l3.arrivals=3MiB"],
    ] {
        let settings = settings.map(str::to_string).to_vec();
        let request = SystemRequest { device: "bluefield3", settings, ..SystemRequest::default() };
        Library::builtin().load(&request).expect("they agree in the end");
    }
}

#[test]
fn overlays_that_do_nothing_are_refused() {
    for (text, says) in [
        ("[set]\n\"*.nothing\" = 1\n", "`*.nothing`"),
        ("[set]\n\"arm.corse\" = 1\n", "`arm.corse`"),
        ("[set]\n\"*.encoding\" = \"1 ns\"\n", "encoding"),
        ("[set]\narm.cores = 4\n", "no `cores`"),
        ("[set]\n\"*.cores\" = 0\n", "cores` is 0"),
        ("", "lacks `[set]`"),
    ] {
        let mut library = library();
        library.insert(
            Category::Overlay,
            "mine",
            &format!("[overlay]\nname = \"mine\"\ndescription = \"d\"\n{text}"),
        );
        let request =
            SystemRequest { device: "invented", overlays: vec!["mine"], ..SystemRequest::default() };
        let error = library.load(&request).unwrap_err();
        assert!(error.to_string().contains(says), "{error:?}");
        assert_eq!(error.place().unwrap().0, "overlays/mine.toml");
    }
}

#[test]
fn with_changes_one_number_and_keeps_its_origin() {
    let system = load(SystemRequest::default());
    let slower = system.with("client.nic.pass_time", Quantity::Time(Time::from_ns(500))).unwrap();
    assert_eq!(slower.machine("client").unwrap().nic.pass_time, Time::from_ns(500));
    let (before, after) = (&system.numbers["client.nic.pass_time"], &slower.numbers["client.nic.pass_time"]);
    assert_eq!((&before.source, before.provenance), (&after.source, after.provenance));
    for (name, value, says) in [
        ("client.nic.pass_tim", Quantity::Time(Time::ZERO), "no number"),
        ("client.nic.pass_time", Quantity::Count(1), "has dimension count, but time is needed"),
        ("network.mtu", Quantity::Bytes(Bytes::ZERO), "`network.mtu` is 0 B"),
        ("arm.ddio", Quantity::Ratio(0.5), "`true` or `false`"),
    ] {
        let error = system.with(name, value).unwrap_err();
        assert!(error.to_string().contains(says), "{error:?}");
    }
}

/// A probe between the ends of an interval is a size that PCIe can encode.
#[test]
fn probes_of_powers_of_two_are_powers_of_two() {
    let system = load(SystemRequest::default());
    for (probe, taken) in [(128, 128), (150, 128), (190, 256), (3000, 4096)] {
        let changed = system.with("arm.pcie_mtu", Quantity::Bytes(Bytes::new(probe))).unwrap();
        assert_eq!(changed.endpoint("arm").unwrap().1.memory.pcie_mtu, Bytes::new(taken));
        assert_eq!(changed.numbers["arm.pcie_mtu"].value, Quantity::Bytes(Bytes::new(taken)));
    }
    assert!(system.with("arm.pcie_mtu", Quantity::Bytes(Bytes::new(80))).is_err());
}

/// Every number of a system is the value of a field: setting it anew changes nothing, and a changed
/// one changes more than the list of numbers.
#[test]
fn every_number_reaches_the_model() {
    let system = load(SystemRequest::default());
    for (name, number) in &system.numbers {
        assert!(system.with(name, number.value).unwrap() == system, "{name}");
        // Half or twice a power of two is one again.
        let base = number.value.base();
        let other = [base / 2.0, base * 2.0, base + 1.0].iter().find_map(|base| {
            let value = Quantity::from_base(*base, number.value.dimension())
                .filter(|value| *value != number.value)?;
            system.with(name, value).ok()
        });
        let other = other.or_else(|| {
            let flipped = Quantity::Ratio(1.0 - number.value.base());
            name.ends_with(".ddio").then(|| system.with(name, flipped).unwrap())
        });
        if let Some(mut other) = other {
            other.numbers = system.numbers.clone();
            assert!(other != system, "{name}");
        } else {
            assert!(name.ends_with(".count") || name.ends_with(".available"), "{name}");
        }
    }
}

#[test]
fn users_own_directory_shadows_and_adds() {
    let directory = tempfile::tempdir().unwrap();
    for (folder, file, text) in [
        ("devices", "invented.toml", INVENTED.to_string()),
        ("devices", "notes.txt", "not a profile".to_string()),
        ("devices", "broken.toml", "[device".to_string()),
        (
            "testbeds",
            "rack.toml",
            Library::builtin().source(Category::Testbed, "rack").unwrap().replace("\"1 KiB\"", "\"2 KiB\""),
        ),
    ] {
        std::fs::create_dir_all(directory.path().join(folder)).unwrap();
        std::fs::write(directory.path().join(folder).join(file), text).unwrap();
    }
    let library = Library::with_directory(directory.path()).unwrap();
    let devices = library.names(Category::Device);
    let described =
        |name: &str| devices.iter().find(|listed| listed.name == name).unwrap().description.clone();
    assert_eq!(described("invented"), "an invented card with two processors");
    assert!(described("broken").starts_with("cannot be loaded"));
    assert!(devices.len() > 2 && !devices.iter().any(|listed| listed.name == "notes"));
    let system = library.load(&SystemRequest { device: "invented", ..SystemRequest::default() }).unwrap();
    assert_eq!(system.network.mtu, Bytes::new(2048));
    assert!(Library::with_directory(&directory.path().join("absent")).is_err());
    let pipe = directory.path().join("devices/pipe.toml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo").success());
    let refused = Library::with_directory(directory.path()).unwrap_err().to_string();
    assert!(refused.contains("pipe.toml") && refused.contains("not a regular file"), "{refused}");
    // A directory that has profiles of none of the kinds is another than was meant.
    assert!(Library::with_directory(&directory.path().join("devices")).is_err());
}

#[test]
fn a_path_names_a_file_and_one_file_may_hold_device_and_testbed() {
    let directory = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let path = directory.path().join(file);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let library = Library::builtin();
    let rack = library.source(Category::Testbed, "rack").unwrap();
    let alone = write("alone.toml", INVENTED);
    let system = library.load(&SystemRequest { device: &alone, ..SystemRequest::default() }).unwrap();
    assert_eq!((system.device.as_str(), system.testbed.as_str()), ("invented", "rack"));

    // A path in a file is relative to that file.
    write("own-host.toml", &library.source(Category::Host, "srv").unwrap().replace("\"srv\"", "\"own\""));
    let own = rack
        .replace("host = \"srv\"", "host = \"own-host.toml\"")
        .replace("name = \"rack\"", "name = \"own\"");
    let both = write("both.toml", &format!("{INVENTED}\n{own}"));
    let system = library.load(&SystemRequest { device: &both, ..SystemRequest::default() }).unwrap();
    assert_eq!((system.testbed.as_str(), system.machines[0].host.as_str()), ("own", "own"));

    let testbed = write("testbed.toml", &own);
    let request = SystemRequest { device: "connectx6", testbed: Some(&testbed), ..SystemRequest::default() };
    assert_eq!(library.load(&request).unwrap().machines[0].host, "own");
}

/// A guess without an interval would be taken for a fact, so it is refused, and all are named at once.
#[test]
fn guesses_without_an_interval_are_named_together() {
    let library = Library::builtin();
    let text = library.source(Category::Device, "bluefield2").unwrap();
    let bare =
        text.replace("value = \"100 ns\", low = \"80 ns\", high = \"120 ns\"", "value = \"100 ns\"").replace(
            "value = \"200 ns\", low = \"100 ns\", high = \"400 ns\"",
            "value = \"200 ns\", low = \"100 ns\"",
        );
    let mut changed = Library::builtin();
    changed.insert(Category::Device, "bluefield2", &bare);
    let error =
        changed.load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap_err();
    let words = error.to_string();
    assert!(words.contains("`nic.pass_time`") && words.contains("`dma.post_time`"), "{words}");
    assert!(!words.contains("switch.pass_time"), "a measured number needs none: {words}");
    assert!(error.next_step().contains("high"), "{}", error.next_step());
}

/// A copy of a shipped profile under another name cites rows that are about the original.
#[test]
fn a_copied_profile_carries_its_numbers_over() {
    let mut library = Library::builtin();
    let text = library.source(Category::Device, "bluefield2").unwrap();
    let copy = text.replace("name = \"bluefield2\"", "name = \"mycard\"");
    library.insert(Category::Device, "mycard", &copy);
    let load = |device| library.load(&SystemRequest { device, ..SystemRequest::default() }).unwrap();
    let (own, copied) = (load("bluefield2"), load("mycard"));
    let (was, is) = (&own.numbers["nic.inflight_slots"], &copied.numbers["nic.inflight_slots"]);
    assert_eq!((was.provenance, is.provenance), (Provenance::Fitted, Provenance::CarriedOver));
    assert_eq!(was.value, is.value);
    assert!(
        is.low.unwrap().base() < was.low.unwrap().base()
            && is.high.unwrap().base() > was.high.unwrap().base()
    );
    // Measured without rows, and of the same source: the original's too, and without an interval of its own.
    let delay = &copied.numbers["switch.pass_time"];
    assert_eq!(delay.provenance, Provenance::CarriedOver);
    assert!(delay.low.is_some() && delay.high.is_some());
    // The host and a data sheet's numbers are what they were.
    assert_eq!(copied.numbers["pcie0.delay"].provenance, Provenance::Fitted);
    assert_eq!(copied.numbers["pcie1.write_header"].provenance, Provenance::Datasheet, "a standard's");
    assert_eq!(copied.numbers["soc.cores"].provenance, Provenance::CarriedOver, "row W021 is the original's");
    // A row that is not a published one is the author's own evidence; one that was published is not, whether
    // a shipped number cites it or none does.
    for (row, expected) in [("mine-1", Provenance::Fitted), ("W001", Provenance::CarriedOver)] {
        let cites = copy.replace("rows = [\"W206\"]", &format!("rows = [\"{row}\"]"));
        assert_ne!(cites, copy);
        library.insert(Category::Device, "mycard", &cites);
        let system = library.load(&SystemRequest { device: "mycard", ..SystemRequest::default() }).unwrap();
        assert_eq!(system.numbers["nic.shared_packet_rate"].provenance, expected, "{row}");
    }
}

/// What a user changes in a copy that keeps its name is no longer what its rows say.
#[test]
fn an_edited_number_keeps_no_evidence_under_the_shipped_name() {
    let library = Library::builtin();
    let text = library.source(Category::Device, "bluefield2").unwrap();
    let shipped = library.load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
    let inflight_slots = shipped.numbers["nic.inflight_slots"].value.to_string();
    let edited = text.replace(
        &format!("inflight_slots = {{ value = {inflight_slots},"),
        "inflight_slots = { value = 145,",
    );
    assert_ne!(edited, text);
    let file = std::env::temp_dir().join(format!("offpath-edited-{}.toml", std::process::id()));
    std::fs::write(&file, &edited).unwrap();
    let system = library.load(&SystemRequest { device: file.to_str().unwrap(), ..SystemRequest::default() });
    std::fs::remove_file(&file).unwrap();
    let system = system.unwrap();
    assert_eq!(system.numbers["nic.inflight_slots"].provenance, Provenance::CarriedOver);
    assert_eq!(system.numbers["switch.pass_time"].provenance, shipped.numbers["switch.pass_time"].provenance);
    // Nor does another published row, which no shipped number cites, with words of its own.
    let line = edited.lines().find(|line| line.starts_with("inflight_slots = ")).expect("it was edited");
    for (row, expected) in [("W001", Provenance::CarriedOver), ("mine-1", Provenance::Fitted)] {
        let cites = format!(
            "inflight_slots = {{ value = 145, low = 140, high = 150, source = \"my fit\", provenance = \"fitted\", \
             rows = [\"{row}\"] }}"
        );
        let mut library = Library::builtin();
        library.insert(Category::Device, "bluefield2", &edited.replace(line, &cites));
        let system =
            library.load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
        assert_eq!(system.numbers["nic.inflight_slots"].provenance, expected, "{row}");
    }
    let (is, was) = (&system.numbers["nic.pass_time"], &shipped.numbers["nic.pass_time"]);
    assert_eq!((is.value, is.low, is.high, is.provenance), (was.value, was.low, was.high, was.provenance));
}

/// The same in a directory of one's own, for an interval that was narrowed, and for a component that is new.
#[test]
fn what_was_changed_keeps_no_evidence_wherever_it_lies() {
    let shipped = include_str!("../../../profiles/devices/bluefield2.toml");
    let line = shipped.lines().find(|line| line.starts_with("read_latency = ")).expect("the SoC has one");
    let narrowed =
        line.replacen(r#"low = "163 ns", high = "199 ns""#, r#"low = "196 ns", high = "196 ns""#, 1);
    assert_ne!(narrowed, line);
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("devices")).unwrap();
    let file = directory.path().join("devices/bluefield2.toml");
    let read_latency = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let library = Library::with_directory(directory.path()).unwrap();
        let system =
            library.load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
        system.numbers["soc.read_latency"].provenance
    };
    assert_eq!(read_latency(shipped), Provenance::Fitted);
    assert_eq!(read_latency(&shipped.replacen(line, &narrowed, 1)), Provenance::CarriedOver);
}

/// What is set after an overlay holds, also where it is the profile's own value; what an overlay takes no part of cannot be
/// set beside it.
#[test]
fn a_setting_holds_beside_an_overlay() {
    let load = |overlay, setting: &str| {
        let settings = vec![setting.to_string()];
        let request = SystemRequest {
            device: "bluefield2",
            overlays: vec![overlay],
            settings,
            ..SystemRequest::default()
        };
        Library::builtin().load(&request)
    };
    for value in ["128 B", "256 B"] {
        let system = load("soc-pcie-mtu", &format!("soc.pcie_mtu={value}")).expect("it loads");
        let found = system.numbers["soc.pcie_mtu"].value;
        assert_eq!(found.to_string(), value);
        assert!(system.scales.iter().all(|scale| scale.name != "soc.pcie_mtu"), "{:?}", system.scales);
    }
    assert!(load("one-pool", "nic.reserved_inflight_slots=0").is_ok(), "0 is what it is");
    // The profile's own 47 among them.
    for slots in [30, 47] {
        let refused = load("one-pool", &format!("nic.reserved_inflight_slots={slots}"));
        let refused = refused.expect_err("it is multiplied by 0");
        let said = format!("{refused} {}", miette::Diagnostic::help(&refused).expect("a remedy"));
        assert!(
            said.contains("`one-pool` takes 0 times") && said.contains("leave this setting out"),
            "{said}"
        );
    }
}

/// A setting to the value that is there claims nothing: the number keeps its origin and its interval.
#[test]
fn a_setting_that_changes_nothing_leaves_the_number() {
    let library = Library::builtin();
    let load = |setting: &str| {
        let settings = vec![setting.to_string()];
        library.load(&SystemRequest { device: "bluefield2", settings, ..SystemRequest::default() }).unwrap()
    };
    let plain = library.load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
    let same = load(&format!("nic.inflight_slots={}", plain.numbers["nic.inflight_slots"].value));
    assert_eq!(same.numbers, plain.numbers);
    assert_eq!(load("nic.inflight_slots=99").numbers["nic.inflight_slots"].provenance, Provenance::Set);
}

const EVERYTHING: &str = include_str!("data/everything.toml");

#[test]
fn a_card_may_have_every_kind_of_component() {
    let mut library = library();
    library.insert(Category::Device, "everything", EVERYTHING);
    let system = library.load(&SystemRequest { device: "everything", ..SystemRequest::default() }).unwrap();
    let server = system.machine("server").unwrap();
    let (_, dpa) = system.endpoint("dpa").unwrap();
    assert_eq!((dpa.processor.threads(), dpa.memory.name.as_str()), (256, "dpa_memory"));
    let reach = server.reach("dpa", "arm").unwrap();
    assert_eq!((reach.through.as_slice(), reach.latency), (&["dpa_l1".to_string()][..], Time::from_ns(500)));
    let (_, apart) = system.endpoint("host:arm").unwrap();
    assert!(apart.processor.is_host);
    assert_eq!(apart.memory, system.endpoint("arm").unwrap().1.memory);
    let (backup, far) = system.endpoint("backup:dpa_memory").unwrap();
    assert_eq!((backup.role.as_str(), far.memory.name.as_str()), ("backup", "backup.dpa_memory"));
    assert_eq!(
        server.all_memories().map(|memory| memory.name.as_str()).collect::<Vec<_>>(),
        ["arm", "store", "host", "dpa_memory"]
    );
    // A number of a memory is one number, whichever processors name it.
    let settings = vec!["dpa_memory.bandwidth = 100 Gbit/s".into(), "dpa_l2.latency = 50 ns".into()];
    let changed =
        library.load(&SystemRequest { device: "everything", settings, ..SystemRequest::default() }).unwrap();
    for name in ["dpa", "host:dpa_memory", "arm:dpa_memory"] {
        let bandwidth = changed.endpoint(name).unwrap().1.memory.bandwidth;
        assert_eq!(bandwidth.bits_per_second(), 100_000_000_000, "{name}");
    }
    assert_eq!(changed.machine("server").unwrap().caches[1].latency, Time::from_ns(50));
    assert!(changed.machine("server").unwrap().memories[0].bandwidth.bits_per_second() == 100_000_000_000);
    // Mode `nic` hides the card's processors and memories, and what belongs to them.
    let hidden = library
        .load(&SystemRequest { device: "everything", mode: Some("nic"), ..SystemRequest::default() })
        .unwrap();
    let server = hidden.machine("server").unwrap();
    assert!(server.memories.is_empty() && server.reaches.is_empty() && server.engines.is_empty());
    assert!(server.apart.is_empty());
}

/// `host` in a device's file is the host of its machine, and other machines' hosts go by their role, whatever their files
/// call them.
#[test]
fn a_host_is_a_role_and_not_a_name() {
    let mut library = Library::builtin();
    for name in ["srv", "cli"] {
        let shipped = match name {
            "srv" => include_str!("../../../profiles/hosts/srv.toml"),
            _ => include_str!("../../../profiles/hosts/cli.toml"),
        };
        let renamed = shipped.replace("[host]", "[xeon]").replace("\"host\"", "\"xeon\"");
        assert_ne!(renamed, shipped);
        library.insert(Category::Host, name, &renamed);
    }
    let system = library.load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
    let names: Vec<&str> = system.endpoints().map(|(_, endpoint)| endpoint.name.as_str()).collect();
    assert_eq!(names, ["soc", "xeon", "client", "backup.soc", "backup"]);
    for role in ["host", "client", "backup"] {
        assert!(system.role_endpoint(role).unwrap().1.processor.is_host, "{role}");
    }
    let limit = &system.machine("server").unwrap().large_transfer_limits[1];
    assert_eq!((limit.requester.as_str(), limit.responder.as_str()), ("soc", "xeon"));
    let plain =
        Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
    assert_eq!(system.host().unwrap().processor.verbs, plain.host().unwrap().processor.verbs);
}
