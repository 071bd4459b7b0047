//! Profiles that nobody has seen: generated from a seed, written as TOML and loaded as a user's files are.
#![allow(dead_code, reason = "each test uses a part")]

use offpath_profile::{Library, System, SystemRequest};
use offpath_route::{Path, Router};
use offpath_twin::{Generator, Seed};
use rand_core::RngCore;
use std::fmt::Write;

/// Draws of one profile.
pub struct Draw(Generator);

impl Draw {
    pub fn of(seed: Seed) -> Draw {
        Draw(seed.generator())
    }

    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.within(1, 100) <= percent
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
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
    let delay = draw.within(0, 400);
    number(text, "delay", delay, "ns");
    if !wire {
        number(text, "rate", draw.within(30, 600), "Gbit/s");
        let encoding = draw.one_of(&["0.984615", "0.8", "1"]);
        let _ = writeln!(text, "encoding = {{ value = {encoding}, {ORIGIN} }}");
        number(text, "write_header", draw.one_of(&[0, 24, 28]), "B");
        number(text, "read_request", draw.one_of(&[0, 24, 28]), "B");
        number(text, "completion_header", draw.one_of(&[0, 20]), "B");
        let limit = draw.one_of(&[128, 256, 512, 4096]);
        number(text, "read_request_limit", limit, "B");
        // Of some links read requests in flight are bounded; no draw of its own, so that others stay as they are.
        if limit > 128 && delay.is_multiple_of(4) {
            count(text, "read_requests", 1 + delay / 4);
        }
    }
}

/// Kinds of work that are measured of every processor, in the unit that each is counted by.
pub const WORKS: [(&str, &str); 3] =
    [("words", "operations_per_s"), ("trees", "operation_time"), ("digests", "byte_rate")];

/// The kind that was measured of the host alone: what others take for it follows from the three.
pub const HOST_WORK: &str = "patterns";

/// What a processor does of each kind.
fn works(text: &mut String, draw: &mut Draw, processor: &str) {
    let of_host = (processor == "host").then_some((HOST_WORK, "byte_rate"));
    for (work, key) in WORKS.into_iter().chain(of_host) {
        let _ = writeln!(
            text,
            "[{processor}_{work}]\nkind = \"work\"\nprocessor = \"{processor}\"\nwork = \"{work}\""
        );
        match key {
            "operation_time" => number(text, key, draw.within(100, 2_000), "ns"),
            "byte_rate" => number(text, key, draw.within(1, 40), "Gbit/s"),
            _ => {
                let rate = draw.within(500, 10_000) * 1_000;
                let _ = writeln!(text, "{key} = {{ value = {rate}, {ORIGIN} }}");
            }
        }
    }
}

fn endpoint(text: &mut String, draw: &mut Draw, name: &str) {
    let _ = writeln!(text, "[{name}]\nkind = \"endpoint\"");
    count(text, "cores", draw.within(1, 32));
    number(text, "frequency", draw.within(1, 4), "GHz");
    memory(text, draw);
}

fn memory(text: &mut String, draw: &mut Draw) {
    number(text, "pcie_mtu", draw.one_of(&[128, 256, 512, 1024, 4096]), "B");
    let ddio = draw.chance(50);
    let _ = writeln!(text, "ddio = {{ value = {ddio}, {ORIGIN} }}");
    number(text, "capacity", draw.within(1, 64), "GiB");
    let read_latency = draw.within(20, 500);
    number(text, "read_latency", read_latency, "ns");
    number(text, "write_latency", draw.within(20, 500), "ns");
    if read_latency.is_multiple_of(2) {
        number(text, "miss_latency", read_latency / 2, "ns");
    }
    // Of some memories completions are cut; no draw of its own either.
    if read_latency.is_multiple_of(3) {
        number(text, "read_completion_boundary", 64, "B");
        number(text, "cut_up_to", 256 + read_latency, "B");
        let share = [0.1, 0.5, 1.0][(read_latency / 3 % 3) as usize];
        let _ = writeln!(text, "combined_share = {{ value = {share}, {ORIGIN} }}");
    }
    // Of some what the NIC reads or writes binds before the memory; no draw of its own either.
    for (key, by) in [("inbound_read_bandwidth", 5), ("inbound_write_bandwidth", 7)] {
        if read_latency.is_multiple_of(by) {
            number(text, key, 40 + read_latency, "Gbit/s");
        }
    }
    number(text, "bandwidth", draw.within(80, 1000), "Gbit/s");
    count(text, "banks", draw.one_of(&[1, 4, 16, 64]));
    number(text, "bank_stride", draw.one_of(&[128, 512, 4096]), "B");
    number(text, "bank_read_time", draw.within(1, 60), "ns");
    number(text, "bank_write_time", draw.within(1, 120), "ns");
    if draw.chance(40) {
        number(text, "inbound_read_rate", draw.within(20, 200), "M/s");
    }
}

fn verbs(text: &mut String, draw: &mut Draw, endpoint: &str) {
    let _ = writeln!(text, "[{endpoint}_verbs]\nkind = \"verbs\"\nendpoint = \"{endpoint}\"");
    for (key, most) in [
        ("post_latency", 400),
        ("post_time", 500),
        ("batch_fixed_time", 900),
        ("batch_per_wqe_time", 400),
        ("poll_latency", 400),
        ("poll_time", 300),
        ("receive_latency", 2500),
        ("receive_time", 300),
        ("write_slot_time", 1500),
        ("receive_slot_time", 1500),
    ] {
        let value = if draw.chance(15) { 0 } else { draw.within(1, most) };
        number(text, key, value, "ns");
    }
}

fn engine(text: &mut String, draw: &mut Draw, name: &str, owner: &str, work: &str) {
    let _ = writeln!(text, "[{name}]\nkind = \"engine\"\nendpoint = \"{owner}\"\nwork = \"{work}\"");
    number(text, "start_latency", draw.within(0, 600), "ns");
    number(text, "request_time", draw.within(1, 120), "ns");
    number(text, "read_rate", draw.within(20, 300), "Gbit/s");
    number(text, "write_rate", draw.within(20, 300), "Gbit/s");
    number(text, "total_rate", draw.within(20, 400), "Gbit/s");
    number(text, "post_time", draw.within(0, 300), "ns");
    number(text, "poll_latency", draw.within(0, 300), "ns");
}

/// What a card may have beside its endpoints: memories and processors at nodes of their own, engines that compute and
/// that store, caches, and how processors reach memories.
fn nodes(text: &mut String, draw: &mut Draw, at: &str, socs: &[String]) {
    if draw.chance(50) {
        let wire = draw.chance(30);
        link(text, draw, "gpu_lane", [at, "gpu"], wire);
        text.push_str("[gpu]\nkind = \"memory\"\n");
        memory(text, draw);
    }
    // More than four that reserve in-flight slots from each other are refused.
    if socs.len() < 3 && draw.chance(50) {
        for (name, node) in [("dpa", "dpa_lane"), ("dpa_memory", "dpa_memory_lane")] {
            let wire = draw.chance(60);
            link(text, draw, node, ["nic", name], wire);
        }
        text.push_str("[dpa_memory]\nkind = \"memory\"\n");
        memory(text, draw);
        text.push_str("[dpa]\nkind = \"processor\"\nmemory = \"dpa_memory\"\n");
        count(text, "cores", draw.within(1, 16));
        count(text, "threads_per_core", draw.within(1, 16));
        number(text, "frequency", draw.within(1, 4), "GHz");
        verbs(text, draw, "dpa");
        if draw.chance(60) {
            text.push_str("[dpa_packets]\nkind = \"packets\"\nprocessor = \"dpa\"\n");
            number(text, "packet_time", draw.within(50, 2000), "ns");
            if draw.chance(50) {
                number(text, "byte_rate", draw.within(1, 100), "Gbit/s");
            }
            if draw.chance(50) {
                number(text, "packet_rate", draw.within(1, 100), "M/s");
            }
        }
        // The farther cache is the larger one, and no way is sooner than what answers on it.
        let (mut nearer, mut slowest) = (0, 0);
        for cache in ["dpa_l1", "dpa_l2"] {
            let _ = writeln!(text, "[{cache}]\nkind = \"cache\"");
            nearer += draw.within(1, 4096);
            number(text, "capacity", nearer, "KiB");
            let latency = draw.within(1, 200);
            slowest = latency.max(slowest);
            number(text, "latency", latency, "ns");
            if draw.chance(50) {
                number(text, "bandwidth", draw.within(50, 2000), "Gbit/s");
            }
            if draw.chance(50) {
                number(text, "thread_bandwidth", draw.within(1, 100), "Gbit/s");
            }
        }
        for reached in std::iter::once("dpa_memory").chain(socs.iter().map(String::as_str)) {
            let through = draw.one_of(&["", "\"dpa_l1\"", "\"dpa_l1\", \"dpa_l2\""]);
            let _ = writeln!(
                text,
                "[dpa_to_{reached}]\nkind = \"reach\"\nprocessor = \"dpa\"\nmemory = \"{reached}\"\nthrough = [{through}]"
            );
            number(text, "latency", draw.within(50, 2000).max(slowest), "ns");
            number(text, "line", draw.one_of(&[64, 128]), "B");
            count(text, "outstanding", draw.within(1, 24));
            for way in ["load_bandwidth", "store_bandwidth"] {
                if draw.chance(50) {
                    number(text, way, draw.within(50, 800), "Gbit/s");
                }
            }
        }
    }
    let owner = &socs[draw.within(0, socs.len() as u64 - 1) as usize];
    if draw.chance(40) {
        engine(text, draw, "compress", owner, "transform");
        if draw.chance(70) {
            let _ = writeln!(
                text,
                "output_share = {{ value = {}, {ORIGIN} }}",
                draw.one_of(&["0", "0.3", "1", "4"])
            );
        }
        if draw.chance(50) {
            count(text, "queue_depth", draw.within(1, 64));
        }
    }
    if draw.chance(40) {
        engine(text, draw, "ssd", owner, "store");
        number(text, "store_latency", draw.within(0, 20), "us");
        count(text, "queue_depth", draw.within(1, 256));
    }
}

/// A device file that holds its testbed, and the host file beside it.
fn profile(draw: &mut Draw, reserve: &mut Draw, beside: &mut Draw, working: &mut Draw) -> (String, String) {
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
    let inflight_slots = draw.within(8, 300);
    count(&mut text, "inflight_slots", inflight_slots);
    let kept = if reserve.chance(50) { 0 } else { reserve.within(1, inflight_slots) };
    count(&mut text, "reserved_inflight_slots", kept);
    number(&mut text, "inline_limit", draw.one_of(&[0, 64, 220]), "B");
    number(&mut text, "work_request_bytes", draw.one_of(&[0, 64]), "B");
    number(&mut text, "completion_bytes", draw.one_of(&[0, 32, 64]), "B");
    // What queue pairs alone are bound by: no route reads it.
    count(&mut text, "outstanding_reads", 16);
    number(&mut text, "queue_pair_request_time", 100, "ns");
    number(&mut text, "queue_pair_rate", 400, "Gbit/s");
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
        works(&mut text, working, soc);
    }
    verbs(&mut text, draw, "host");
    if mode != "nic" && draw.chance(70) {
        let owner = &socs[draw.within(0, socs.len() as u64 - 1) as usize];
        engine(&mut text, draw, "copy", owner, "copy");
        let slow_above = draw.within(1, 2048);
        number(&mut text, "slow_above", slow_above, "KiB");
        // Some send TLPs one by one, and buffer what they carry.
        if slow_above.is_multiple_of(2) {
            number(&mut text, "packet_payload", 128, "B");
            number(&mut text, "packet_time", slow_above % 40, "ns");
            number(&mut text, "buffer_rate", 20 + slow_above % 200, "Gbit/s");
            count(&mut text, "queue_depth", 1 + slow_above % 64);
        }
        number(&mut text, "slow_rate", draw.within(10, 200), "Gbit/s");
    }
    if mode != "nic" && beside.chance(50) {
        nodes(&mut text, beside, &slot, &socs);
    }
    if draw.chance(30) {
        text += "[large_transfers]\nkind = \"large-transfer-limit\"\nrequester = \"*\"\nresponder = \"host\"\nverbs = [\"read\", \"write\"]\n";
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
    works(&mut host, working, "host");
    (text, host)
}

/// The system of a seed, loaded from files as a user's is, and draws that go on from there; `test` keeps
/// the files of tests apart that run at once.
pub fn system(test: &str, seed: u64) -> (System, Draw) {
    edited(test, seed, &str::to_string)
}

/// [`system`] from files that are edited before they are read.
pub fn edited(test: &str, seed: u64, edit: &dyn Fn(&str) -> String) -> (System, Draw) {
    let mut draw = Draw::of(Seed::new(seed).child("profile"));
    let mut reserve = Draw::of(Seed::new(seed).child("reserve"));
    let mut beside = Draw::of(Seed::new(seed).child("beside"));
    let mut working = Draw::of(Seed::new(seed).child("works"));
    let (device, host) = profile(&mut draw, &mut reserve, &mut beside, &mut working);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{test}-{seed}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let device = edit(&device);
    std::fs::write(folder.join("host.toml"), edit(&host)).unwrap();
    let file = folder.join("device.toml");
    std::fs::write(&file, &device).unwrap();
    let file = file.to_str().unwrap();
    let loaded = Library::builtin().load(&SystemRequest { device: file, ..SystemRequest::default() });
    let system = loaded.unwrap_or_else(|error| panic!("profile {seed}: {error:?}\n{device}"));
    std::fs::remove_dir_all(&folder).unwrap();
    (system, draw)
}

/// A path of the system: one that is listed, or where processors and memories are apart one between any of them, or a
/// processor with a memory that it reaches, or with its own where it handles packets.
pub fn path(router: &Router, draw: &mut Draw) -> Path {
    let paths = router.paths();
    let mut path = paths[draw.within(0, paths.len() as u64 - 1) as usize].clone();
    let machines = &router.system().machines;
    if machines.iter().all(|machine| machine.apart.is_empty()) || draw.chance(50) {
        return path;
    }
    let reaches: Vec<_> = machines.iter().flat_map(|machine| &machine.reaches).collect();
    let ends = machines.iter().flat_map(|machine| &machine.endpoints);
    let handles: Vec<_> = ends.filter(|end| end.processor.packets.is_some()).collect();
    if !handles.is_empty() && draw.chance(30) {
        let name = &handles[draw.within(0, handles.len() as u64 - 1) as usize].name;
        return Path { requester: name.clone(), responder: name.clone(), engine: None };
    }
    if !reaches.is_empty() && draw.chance(30) {
        let reach = reaches[draw.within(0, reaches.len() as u64 - 1) as usize];
        let ends = machines.iter().flat_map(|machine| machine.endpoints.iter().chain(&machine.apart));
        let mut ends = ends.filter(|end| end.processor.name == reach.processor);
        let end = ends.find(|end| end.memory.name == reach.memory).expect("a reach is between what there is");
        return Path { requester: reach.processor.clone(), responder: end.name.clone(), engine: None };
    }
    if path.engine.is_none() {
        for name in [&mut path.requester, &mut path.responder] {
            let apart: Vec<&str> = machines
                .iter()
                .flat_map(|machine| &machine.apart)
                .filter(|end| end.processor.name == *name)
                .map(|end| end.name.as_str())
                .collect();
            if !apart.is_empty() && draw.chance(60) {
                *name = draw.one_of(&apart).to_string();
            }
        }
    }
    path
}
