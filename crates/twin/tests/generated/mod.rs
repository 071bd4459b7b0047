//! Profiles that nobody has seen: generated from a seed, written as TOML and loaded as a user's files are.
#![allow(dead_code, reason = "each test uses a part")]

use offpath_profile::{Library, Request, System};
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
fn profile(draw: &mut Draw, reserve: &mut Draw) -> (String, String) {
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
    let contexts = draw.within(8, 300);
    count(&mut text, "contexts", contexts);
    let kept = if reserve.chance(50) { 0 } else { reserve.within(1, contexts) };
    count(&mut text, "reserved_contexts", kept);
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

/// The system of a seed, loaded from files as a user's is, and draws that go on from there; `test` keeps
/// the files of tests apart that run at once.
pub fn system(test: &str, seed: u64) -> (System, Draw) {
    let mut draw = Draw::of(Seed::new(seed).child("profile"));
    let mut reserve = Draw::of(Seed::new(seed).child("reserve"));
    let (device, host) = profile(&mut draw, &mut reserve);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{test}-{seed}-{}", std::process::id()));
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
