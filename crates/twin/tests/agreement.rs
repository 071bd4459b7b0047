//! The three readings of a route agree, on profiles that nobody has seen: generated from a seed,
//! written as TOML and loaded as a user's files are.

use offpath_profile::{Library, Request, System};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Access, Kind, Operation, Posting, Reader, Route, Router, Verb};
use offpath_twin::{Arrivals, Engine, Generator, Load, Observed, Occurrence, Seed, Tag, run};
use rand_core::RngCore;
use std::fmt::Write;
use std::rc::Rc;

const PROFILES: u64 = 200;

/// Draws of one profile.
struct Draw(Generator);

impl Draw {
    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.within(1, 100) <= percent
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.within(0, choices.len() as u64 - 1) as usize]
    }
}

const ORIGIN: &str = r#"source = "generated", provenance = "datasheet""#;

fn number(text: &mut String, key: &str, value: u64, unit: &str) {
    let _ = writeln!(text, "{key} = {{ value = \"{value} {unit}\", {ORIGIN} }}");
}

fn count(text: &mut String, key: &str, value: u64) {
    let _ = writeln!(text, "{key} = {{ value = {value}, {ORIGIN} }}");
}

fn link(text: &mut String, draw: &mut Draw, name: &str, between: [&str; 2], wire: bool) {
    let kind = if wire { "wire" } else { "link" };
    let _ = writeln!(text, "[{name}]\nkind = \"{kind}\"\nbetween = [\"{}\", \"{}\"]", between[0], between[1]);
    number(text, "delay", draw.within(0, 400), "ns");
    if !wire {
        number(text, "rate", draw.within(30, 600), "Gbit/s");
        let encoding = draw.one_of(&["0.984615", "0.8", "1"]);
        let _ = writeln!(text, "encoding = {{ value = {encoding}, {ORIGIN} }}");
        number(text, "write_header", draw.one_of(&[0, 24, 28]), "B");
        number(text, "read_request", draw.one_of(&[0, 24, 28]), "B");
        number(text, "completion_header", draw.one_of(&[0, 20]), "B");
        number(text, "read_request_limit", draw.one_of(&[128, 256, 512, 4096]), "B");
    }
}

fn endpoint(text: &mut String, draw: &mut Draw, name: &str) {
    let _ = writeln!(text, "[{name}]\nkind = \"endpoint\"");
    count(text, "cores", draw.within(1, 32));
    number(text, "frequency", draw.within(1, 4), "GHz");
    number(text, "pcie_mtu", draw.one_of(&[128, 256, 512, 1024, 4096]), "B");
    let ddio = draw.chance(50);
    let _ = writeln!(text, "ddio = {{ value = {ddio}, {ORIGIN} }}");
    number(text, "memory", draw.within(1, 64), "GiB");
    number(text, "read_latency", draw.within(20, 500), "ns");
    number(text, "write_latency", draw.within(20, 500), "ns");
    number(text, "bandwidth", draw.within(80, 1000), "Gbit/s");
    count(text, "banks", draw.one_of(&[1, 4, 16, 64]));
    number(text, "bank_stride", draw.one_of(&[128, 512, 4096]), "B");
    number(text, "bank_read_time", draw.within(1, 60), "ns");
    number(text, "bank_write_time", draw.within(1, 120), "ns");
    if draw.chance(40) {
        number(text, "read_path_rate", draw.within(20, 200), "M/s");
    }
}

fn verbs(text: &mut String, draw: &mut Draw, endpoint: &str) {
    let _ = writeln!(text, "[{endpoint}_verbs]\nkind = \"verbs\"\nendpoint = \"{endpoint}\"");
    for (key, most) in [
        ("post_latency", 400),
        ("post_time", 500),
        ("list_time", 900),
        ("listed_time", 400),
        ("poll_latency", 400),
        ("poll_time", 300),
        ("receive_latency", 2500),
        ("receive_time", 300),
        ("write_context_time", 1500),
        ("receive_context_time", 1500),
    ] {
        let value = if draw.chance(15) { 0 } else { draw.within(1, most) };
        number(text, key, value, "ns");
    }
}

/// A device file that holds its testbed, and the host file beside it.
fn profile(draw: &mut Draw) -> (String, String) {
    let socs: Vec<String> = (0..draw.within(0, 3)).map(|i| format!("soc{i}")).collect();
    let switches: Vec<String> = (0..draw.within(1, 2)).map(|i| format!("switch{i}")).collect();
    let nearby = |draw: &mut Draw, switches: &[String]| {
        let index = draw.within(0, switches.len() as u64 - 1) as usize;
        if draw.chance(20) { "nic".to_string() } else { switches[index].clone() }
    };
    let slot = nearby(draw, &switches);
    let modes = ["separated-host", "separated-host", "nic"];
    let mode = if socs.is_empty() { "nic" } else { draw.one_of(&modes) };
    let mut text = format!(
        "[device]\nname = \"generated\"\ndescription = \"generated\"\nmode = \"{mode}\"\ntestbed = \"generated\"\nhost_at = \"{slot}\"\n"
    );
    text += "[nic]\nkind = \"nic\"\n";
    number(&mut text, "port_rate", draw.within(25, 400), "Gbit/s");
    number(&mut text, "pass_time", draw.within(0, 300), "ns");
    number(&mut text, "shared_packet_rate", draw.within(10, 300), "M/s");
    let reserved = if draw.chance(40) { 0 } else { draw.within(1, 60) };
    number(&mut text, "reserved_packet_rate", reserved, "M/s");
    count(&mut text, "contexts", draw.within(8, 300));
    count(&mut text, "reserved_contexts", 0);
    number(&mut text, "inline_limit", draw.one_of(&[0, 64, 220]), "B");
    number(&mut text, "work_request_bytes", draw.one_of(&[0, 64]), "B");
    number(&mut text, "completion_bytes", draw.one_of(&[0, 32, 64]), "B");
    let mut near = "nic";
    for (index, switch) in switches.iter().enumerate() {
        let _ = writeln!(text, "[{switch}]\nkind = \"switch\"");
        number(&mut text, "pass_time", draw.within(0, 300), "ns");
        let wire = draw.chance(20);
        link(&mut text, draw, &format!("trunk{index}"), [near, switch], wire);
        near = switch;
    }
    for soc in &socs {
        let at = nearby(draw, &switches);
        let wire = draw.chance(40);
        link(&mut text, draw, &format!("{soc}_lane"), [&at, soc], wire);
        endpoint(&mut text, draw, soc);
        verbs(&mut text, draw, soc);
    }
    verbs(&mut text, draw, "host");
    if mode != "nic" && draw.chance(70) {
        let owner = &socs[draw.within(0, socs.len() as u64 - 1) as usize];
        let _ = writeln!(text, "[copy]\nkind = \"engine\"\nendpoint = \"{owner}\"");
        number(&mut text, "start_latency", draw.within(0, 600), "ns");
        number(&mut text, "request_time", draw.within(1, 120), "ns");
        number(&mut text, "read_rate", draw.within(20, 300), "Gbit/s");
        number(&mut text, "write_rate", draw.within(20, 300), "Gbit/s");
        number(&mut text, "total_rate", draw.within(20, 400), "Gbit/s");
        number(&mut text, "post_time", draw.within(0, 300), "ns");
        number(&mut text, "poll_latency", draw.within(0, 300), "ns");
        number(&mut text, "slow_above", draw.within(1, 2048), "KiB");
        number(&mut text, "slow_rate", draw.within(10, 200), "Gbit/s");
    }
    if draw.chance(30) {
        text += "[stall]\nkind = \"stall\"\nrequester = \"*\"\nresponder = \"host\"\nverbs = [\"read\", \"write\"]\n";
        number(&mut text, "above", draw.within(1, 512), "KiB");
        number(&mut text, "rate", draw.within(10, 100), "Gbit/s");
    }
    text += "[testbed]\nname = \"generated\"\ndescription = \"generated\"\n";
    for (role, device, most) in [("server", "card", 2), ("client", draw.one_of(&["card", "connectx4"]), 8)] {
        let _ = writeln!(text, "[{role}]\nkind = \"machine\"\ndevice = \"{device}\"\nhost = \"host.toml\"");
        count(&mut text, "count", draw.within(1, most));
        count(&mut text, "available", most);
    }
    text += "[network]\nkind = \"network\"\n";
    number(&mut text, "delay", draw.within(0, 2000), "ns");
    number(&mut text, "mtu", draw.one_of(&[256, 1024, 4096]), "B");
    number(&mut text, "packet_header", draw.one_of(&[0, 30, 58]), "B");
    let mut host = "[host_profile]\nname = \"host\"\ndescription = \"generated\"\n".to_string();
    link(&mut host, draw, "slot", ["card", "host"], false);
    endpoint(&mut host, draw, "host");
    (text, host)
}

fn system(seed: u64) -> (System, Draw) {
    let mut draw = Draw(Seed::new(seed).child("profile").generator());
    let (device, host) = profile(&mut draw);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("generated-{seed}"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("host.toml"), host).unwrap();
    let file = folder.join("device.toml");
    std::fs::write(&file, &device).unwrap();
    let file = file.to_str().unwrap();
    let loaded = Library::builtin().load(&Request { device: file, ..Request::default() });
    let system = loaded.unwrap_or_else(|error| panic!("profile {seed}: {error:?}\n{device}"));
    std::fs::remove_dir_all(&folder).unwrap();
    (system, draw)
}

fn operation(router: &Router, draw: &mut Draw) -> Operation {
    let paths = router.paths();
    let path = paths[draw.within(0, paths.len() as u64 - 1) as usize].clone();
    let verb = if path.engine.is_some() {
        draw.one_of(&[Verb::Read, Verb::Write])
    } else {
        Verb::NAMES[draw.within(0, 5) as usize].1
    };
    let datagram = router.system().network.mtu.get();
    let most = if verb == Verb::SendDatagram { datagram } else { 1 << draw.within(0, 19) };
    let payload = draw.one_of(&[0, 1, 64, 64, 512, 4096, most]).min(most);
    let posting = if draw.chance(30) { Posting::Batch(draw.within(1, 64) as u32) } else { Posting::Single };
    let mut operation = Operation::new(verb, path, Bytes::new(payload)).posted(posting);
    if draw.chance(20) {
        let range = Some(Bytes::new(1 << draw.within(9, 20)));
        operation = operation.accessing(Access { range, hottest: draw.one_of(&[0.0, 0.1, 0.5]) });
    }
    operation
}

/// Latencies of `count` operations one after another, each on stations that are idle again.
fn idle_twin(router: &Rc<Router>, route: &Rc<Route>, count: u64) -> Vec<Time> {
    let instances: Rc<[u32]> = vec![0; router.system().machines.len()].into();
    let mut engine = Engine::new(router.clone(), Seed::new(1));
    let mut latencies = Vec::new();
    for number in 0..count {
        let start = engine.now();
        engine.start(Tag(number), route.clone(), instances.clone(), number % 2 == 1);
        while let Some(occurrence) = engine.next() {
            if let Occurrence::Done { tag } = occurrence {
                assert_eq!(tag, Tag(number));
                latencies.push(engine.now() - start);
            }
        }
        // Posted writes may still be on their way when their operation is over.
        engine.timer(Tag(u64::MAX), engine.now() + Time::from_ms(1));
        assert_eq!(engine.next(), Some(Occurrence::Timer { tag: Tag(u64::MAX) }));
    }
    latencies
}

/// Requests under way that saturate, and the load that shows it.
fn saturating(router: &Router, route: &Route, capacity: f64, latency: Time) -> (u32, Load) {
    let mut in_flight = 3.0 * capacity * latency.as_seconds() + 64.0;
    for (station, time) in &route.demand(router).time {
        // Chance must not leave a bank idle where banks are what binds.
        let servers = router.stations()[station.index()].servers() as f64;
        if matches!(router.kind(*station), Kind::Banks(_)) && capacity * time.as_seconds() > 0.5 * servers {
            in_flight += 50.0 * servers;
        }
    }
    let in_flight = in_flight.ceil() as u32;
    let operations = (10.0 * f64::from(in_flight)).clamp(2000.0, 40_000.0);
    let window = Time::from_ps((operations / capacity * 1e12) as u64);
    let warm_up = Time::from_ps((5.0 * f64::from(in_flight) / capacity * 1e12) as u64) + latency.times(2);
    let load = Load {
        mix: vec![(Rc::new(route.clone()), 1.0)],
        arrivals: Arrivals::Closed { in_flight },
        warm_up,
        window,
        seed: Seed::new(7),
        faults: None,
    };
    (in_flight, load)
}

/// How busy the busiest station beside the contexts is.
fn busiest_inside(router: &Router, observed: &Observed) -> f64 {
    let counted = |id| !matches!(router.kind(id), Kind::Contexts(_) | Kind::Pool { .. });
    let inside = observed.utilization.iter().filter(|(id, _)| counted(*id));
    inside.map(|(_, busy)| *busy).fold(0.0, f64::max)
}

/// Runs a saturating load and says what is wrong with it.
fn check_saturated(
    router: &Rc<Router>,
    load: &Load,
    (capacity, kind): (f64, &Kind),
    name: &str,
    twice: bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let Arrivals::Closed { in_flight } = load.arrivals else { unreachable!("the load is a closed loop") };
    let observed = run(router, load).unwrap();
    let expected = capacity * load.window.as_seconds();
    let ratio = observed.completed as f64 / expected;
    if observed.completed as f64 > expected + f64::from(in_flight) + 1.0 {
        wrong.push(format!("{name}: {} ended where the capacity is {expected:.0}", observed.completed));
    }
    let held = matches!(kind, Kind::Contexts(_));
    let inside = busiest_inside(router, &observed);
    if ratio < if held { 0.95 } else { 0.98 } {
        let rate = capacity / 1e6;
        let what = format!("{name}: the twin reaches {ratio:.4} of {rate:.3} M/s, inside {inside:.2}");
        if held && inside > 0.5 {
            println!("{what}: inner queues lengthen the hold");
        } else {
            wrong.push(what);
        }
    }
    let [started, done, failed, under_way] = observed.balance;
    assert_eq!((started, failed, under_way), (done + failed + under_way, 0, u64::from(in_flight)), "{name}");
    // Little: requests under way = throughput x mean latency.
    let mean = observed.latencies.mean().unwrap_or_default().as_seconds();
    let little = observed.throughput_per_s * mean / observed.mean_in_flight;
    if (little - 1.0).abs() > 0.02 {
        wrong.push(format!("{name}: Little's law gives {little:.4}"));
    }
    if twice {
        let again = run(router, load).unwrap();
        assert_eq!(format!("{observed:?}"), format!("{again:?}"), "{name}: two runs differ");
    }
    wrong
}

#[test]
fn the_readings_agree_on_generated_profiles() {
    let mut failures = Vec::new();
    let mut binding = std::collections::BTreeMap::<&str, u32>::new();
    for seed in 0..PROFILES {
        let (system, mut draw) = system(seed);
        let router = Rc::new(Router::new(&system).unwrap());
        let mut reader = Reader::new(&router);
        for _ in 0..3 {
            let operation = operation(&router, &mut draw);
            let route = Rc::new(router.route(&operation).unwrap());
            let unloaded = route.unloaded(&router);
            let name = format!("profile {seed}, {} {} {}", operation.path, operation.verb, operation.payload);
            let latency = route.latency(&router);
            if unloaded.terms.iter().map(|term| term.time).sum::<Time>() != latency
                || unloaded.latency != latency
            {
                failures.push(format!("{name}: terms do not sum to {latency}: {unloaded:?}"));
            }
            let reading = reader.read(&route);
            assert_eq!((reading.latency, &reading.demand), (latency, &route.demand(&router)), "{name}");
            let idle = idle_twin(&router, &route, 3);
            if idle != vec![latency; 3] {
                failures.push(format!("{name}: the idle twin takes {idle:?}, the sum is {latency}"));
            }
        }
        let operation = operation(&router, &mut draw);
        let route = router.route(&operation).unwrap();
        let Some((capacity, station)) = route.demand(&router).capacity(&router) else { continue };
        let (in_flight, mut load) = saturating(&router, &route, capacity, route.latency(&router));
        let at = &router.stations()[station.index()];
        *binding.entry(at.meaning).or_default() += 1;
        let name = format!(
            "profile {seed}, {} {} {} x{in_flight}, bound by {}",
            operation.path, operation.verb, operation.payload, at.name
        );
        let mut wrong = check_saturated(&router, &load, (capacity, &at.kind), &name, seed % 10 == 0);
        if !wrong.is_empty() {
            // What the window's edges and a slow drift between machines explain passes with time.
            load.warm_up = load.warm_up.times(3);
            load.window = load.window.times(8);
            wrong = check_saturated(&router, &load, (capacity, &at.kind), &name, false);
        }
        failures.append(&mut wrong);
    }
    println!("what bound: {binding:?}");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
