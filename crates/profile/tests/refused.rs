//! What is wrong with a profile is said with file and line, name, and next step.
//!
//! The rendered messages are kept in `snapshots/`; `INSTA_UPDATE=always cargo test --release` rewrites them.

use miette::{GraphicalReportHandler, GraphicalTheme};
use offpath_profile::{Category, Library, Problem, ProfileError, SystemRequest};

const INVENTED: &str = include_str!("data/invented.toml");

fn render(error: &ProfileError) -> String {
    let mut text = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(110)
        .render_report(&mut text, error)
        .unwrap();
    text
}

/// One slip: in the text of a profile, what to replace by what; then where the message must point and
/// which words it must hold.
struct Case {
    category: Category,
    name: &'static str,
    from: &'static str,
    to: &'static str,
    at: &'static str,
    says: &'static [&'static str],
}

const fn device(
    from: &'static str,
    to: &'static str,
    at: &'static str,
    says: &'static [&'static str],
) -> Case {
    Case { category: Category::Device, name: "invented", from, to, at, says }
}
const fn testbed(
    from: &'static str,
    to: &'static str,
    at: &'static str,
    says: &'static [&'static str],
) -> Case {
    Case { category: Category::Testbed, name: "rack", from, to, at, says }
}
const fn host(from: &'static str, to: &'static str, at: &'static str, says: &'static [&'static str]) -> Case {
    Case { category: Category::Host, name: "srv", from, to, at, says }
}

const EVERYTHING: &str = include_str!("data/everything.toml");

const fn everything(
    from: &'static str,
    to: &'static str,
    at: &'static str,
    says: &'static [&'static str],
) -> Case {
    Case { category: Category::Device, name: "everything", from, to, at, says }
}

const PASS: &str = "pass_time = { value = \"80 ns\", source = \"invented\", provenance = \"datasheet\" }";
const INFLIGHT_SLOTS: &str =
    "inflight_slots = { value = 256, source = \"invented\", provenance = \"datasheet\" }";

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Syntax and shape.
    testbed("[network]\n", "[own]\nkind = \"errors\"\nfigure = \"latency\"\npoints = { value = 9, source = \"own\", provenance = \"measured-here\" }\n\
        half_within = { value = 0.1, source = \"own\", provenance = \"measured-here\" }\n\
        eight_of_ten_within = { value = 0.1, source = \"own\", provenance = \"measured-here\" }\n\
        nine_of_ten_within = { value = 0.1, source = \"own\", provenance = \"measured-here\" }\n\
        all_within = { value = 0.1, source = \"own\", provenance = \"measured-here\" }\n[network]\n", "[own]", &["`[own]` is of no device", "leave it out"]),
    device("[hub]", "[hub", "[hub", &["not valid TOML"]),
    device("[hub]\n", "[nic]\n", "[nic]\nkind = \"switch\"", &["not valid TOML", "every key once"]),
    device("[device]\n", "loose = 1\n[device]\n", "loose", &["`loose`", "below a table"]),
    device("name = \"invented\"\n", "", "[device]", &["`[device]` lacks `name`", "add `name"]),
    device("host_at = \"hub\"\n", "", "[device]", &["`[device]` lacks `host_at`", "add `host_at"]),
    device("name = \"invented\"\n", "name = \"other\"\n", "name = \"other\"", &["calls itself `other`", "rename"]),
    device("name = \"invented\"\n", "name = \"card\"\n", "name = \"card\"", &["`card` cannot name a device"]),
    device("[device]\n", "[devize]\n", "devize", &["`kind`", "did you mean `[device]`"]),
    device("kind = \"switch\"", "kind = \"swich\"", "swich", &["no kind `swich`", "did you mean `switch`"]),
    device("[hub]\nkind = \"switch\"\n", "[hub]\n", "[hub]", &["lacks `kind`", "`switch`"]),
    device("mode = \"separated-host\"", "mode = 3", "mode = 3", &["device.mode", "a text is needed"]),
    device("[hub]\n", "[room]\nkind = \"machine\"\ndevice = \"card\"\nhost = \"srv\"\ncount = { value = 1, source = \"s\", provenance = \"datasheet\" }\navailable = { value = 1, source = \"s\", provenance = \"datasheet\" }\n[hub]\n", "[room]", &["`[room]` is a machine", "testbeds hold machines"]),
    device("[hub]\n", "[host_profile]\nname = \"h\"\ndescription = \"h\"\n[hub]\n", "[host_profile]", &["a device and a host", "a file of their own"]),
    // Keys and numbers.
    device("inflight_slots =", "inflihgt_slots =", "inflihgt_slots", &["no key `inflihgt_slots` in `[nic]`", "did you mean `inflight_slots`"]),
    device(PASS, "", "[nic]", &["`[nic]` lacks `pass_time`", "value = \"300 ns\"", "it is of dimension time"]),
    device("\"80 ns\"", "80", "80, source", &["nic.pass_time", "`80` has no unit", "300 ns"]),
    device("\"80 ns\"", "\"80 B\"", "\"80 B\"", &["nic.pass_time", "not a unit of time", "300 ns"]),
    device("\"80 ns\"", "\"soon\"", "\"soon\"", &["does not start with a number"]),
    device("\"80 ns\"", "\"-80 ns\"", "\"-80 ns\"", &["`-80 ns` is negative"]),
    device("\"80 ns\"", "\"80 s\"", "\"80 s\"", &["`nic.pass_time` is 80 s", "from 0 ns to 1 s"]),
    device("\"80 ns\"", "[80]", "[80]", &["nic.pass_time", "cannot be a list"]),
    device(PASS, "pass_time = \"80 ns\"", "\"80 ns\"", &["nic.pass_time", "says nothing of where it comes from", "source = "]),
    device(PASS, "pass_time = { value = \"80 ns\", provenance = \"datasheet\" }", "{ value = \"80 ns\"", &["`nic.pass_time` lacks `source`", "add `source"]),
    device(PASS, "pass_time = { value = \"80 ns\", source = \" \", provenance = \"datasheet\" }", "\" \"", &["nic.pass_time.source", "a text is needed"]),
    device(PASS, "pass_time = { value = \"80 ns\", source = \"s\" }", "{ value = \"80 ns\"", &["`nic.pass_time` lacks `provenance`", "`datasheet`"]),
    device(PASS, "pass_time = { source = \"s\", provenance = \"datasheet\" }", "{ source = \"s\"", &["`nic.pass_time` lacks `value`", "300 ns"]),
    device(PASS, "pass_time = { value = \"80 ns\", source = \"s\", provenance = \"guessed\" }", "\"guessed\"", &["no provenance `guessed`", "`assumed`"]),
    device(PASS, "pass_time = { value = \"80 ns\", source = \"s\", provenance = \"fitted\" }", "{ value = \"80 ns\"", &["`nic.pass_time` lacks `rows`", "rows = [\"W001\"]"]),
    device(PASS, "pass_time = { value = \"80 ns\", low = \"90 ns\", source = \"s\", provenance = \"datasheet\" }", "\"80 ns\", low", &["`nic.pass_time` is 80 ns", "at least its low of 90 ns"]),
    device(PASS, "pass_time = { value = \"80 ns\", low = \"60 ns\", high = \"70 ns\", source = \"s\", provenance = \"datasheet\" }", "\"80 ns\", low", &["from its low of 60 ns to its high of 70 ns"]),
    device(PASS, "pass_time = { value = \"80 ns\", source = \"s\", provenance = \"datasheet\", unit = \"ns\" }", "unit =", &["no key `unit` in `[nic.pass_time]`", "`value`"]),
    // Impossible values.
    device("\"400 Gbit/s\"", "\"0 Gbit/s\"", "\"0 Gbit/s\"", &["`nic.port_rate` is 0 bit/s", "from 1 Mbit/s"]),
    device(INFLIGHT_SLOTS, "inflight_slots = { value = 0, source = \"s\", provenance = \"datasheet\" }", "0, source = \"s\"", &["`nic.inflight_slots` is 0", "from 1 to"]),
    device("pcie_mtu = { value = \"128 B\"", "pcie_mtu = { value = \"0 B\"", "\"0 B\"", &["`arm.pcie_mtu` is 0 B", "a power of two from 128 B to 4096 B"]),
    device("cores = { value = 16", "cores = { value = 0", "cores = { value = 0", &["`arm.cores` is 0"]),
    device("cores = { value = 16", "cores = { value = 1.5", "1.5, source", &["arm.cores", "not a whole number"]),
    device("banks = { value = 32", "banks = { value = 0", "banks = { value = 0", &["`arm.banks` is 0"]),
    device("encoding = { value = 0.984615", "encoding = { value = 1.2", "1.2", &["`lane_a.encoding` is 1.2", "from 0.01 to 1"]),
    device("encoding = { value = 0.984615", "encoding = { value = 0", "encoding = { value = 0", &["`lane_a.encoding` is 0"]),
    device("ddio = { value = false", "ddio = { value = \"no\"", "\"no\"", &["arm.ddio", "neither `true` nor `false`"]),
    // Topology and names.
    device("[\"hub\", \"arm\"]", "[\"hubb\", \"arm\"]", "[\"hubb\"", &["no node `hubb`", "did you mean `hub`"]),
    device("[\"hub\", \"arm\"]", "[\"arm\", \"arm\"]", "[\"arm\", \"arm\"]", &["joins `arm` to itself"]),
    device("[\"hub\", \"arm\"]", "[\"hub\"]", "[\"hub\"]", &["names 1 nodes", "a link joins two"]),
    device("[copy]", "[again]\nkind = \"wire\"\nbetween = [\"arm\", \"hub\"]\ndelay = { value = \"1 ns\", source = \"i\", provenance = \"datasheet\" }\n[copy]", "[\"arm\", \"hub\"]", &["`[again]` joins `arm` and `hub`, as `["]),
    device("[\"hub\", \"arm\"]", "[\"dpa\", \"arm\"]", "[arm]", &["no links lead from `nic` to the endpoint `arm`", "between = "]),
    device("host_at = \"hub\"", "host_at = \"hbu\"", "\"hbu\"", &["no node `hbu` for `host_at`", "did you mean `hub`"]),
    device("kind = \"engine\"\nendpoint = \"arm\"", "kind = \"engine\"\nendpoint = \"amr\"", "\"amr\"", &["no endpoint `amr` for `endpoint` of `[copy]`", "did you mean `arm`"]),
    device("kind = \"verbs\"\nendpoint = \"dpa\"", "kind = \"verbs\"\nendpoint = \"gpu\"", "\"gpu\"", &["no endpoint `gpu`", "`dpa`"]),
    device("kind = \"verbs\"\nendpoint = \"dpa\"", "kind = \"verbs\"\nendpoint = \"arm\"", "\"arm\"\npost_latency = { value = \"200 ns\"", &["the verbs table of `arm` is there twice", "`[arm_verbs]`"]),
    device("requester = \"*\"", "requester = \"nobody\"", "\"nobody\"", &["no endpoint `nobody` for `requester`"]),
    device("verbs = [\"read\"]", "verbs = [\"send\"]", "[\"send\"]", &["no verb `send`", "verbs = [\"read\"]"]),
    device("[copy]", "[dma-engine]", "dma-engine", &["`dma-engine` cannot name an engine", "`-` separates"]),
    device("[dpa]", "[d-pa]", "d-pa", &["`d-pa` cannot name an endpoint"]),
    device("[nic]\nkind = \"nic\"", "[ethernet]\nkind = \"nic\"", "[ethernet]", &["`ethernet` cannot name a nic", "called `nic`"]),
    device("[copy]", "[client]", "[client]", &["`client` is there twice", "rename"]),
    device("mode = \"separated-host\"", "mode = \"seperated-host\"", "\"seperated-host\"", &["no mode `seperated-host`", "did you mean `separated-host`"]),
    device("testbed = \"rack\"", "testbed = \"rak\"", "\"rak\"", &["no testbed `rak`", "did you mean `rack`"]),
    device("testbed = \"rack\"\n", "", "[device]", &["lacks `testbed`"]),
    // Hosts and testbeds.
    host("[host]\n", "[host]\nkind = \"endpoint\"\n[pcie1]\n", "[host]", &["`[host]` lacks `cores`"]),
    host("[pcie0]", "[lane_b]", "[lane_b]", &["the component `lane_b` is there twice", "rename"]),
    host("[\"card\", \"host\"]", "[\"crad\", \"host\"]", "[\"crad\"", &["no node `crad`", "did you mean `card`"]),
    testbed("device = \"card\"", "device = \"connectx4\"", "\"connectx4\"", &["the server does not carry", "device = \"card\""]),
    testbed("host = \"srv\"", "host = \"serv\"", "\"serv\"", &["no host `serv`", "did you mean `srv`"]),
    testbed("device = \"connectx4\"", "device = \"connectx44\"", "\"connectx44\"", &["no device `connectx44`", "did you mean `connectx4`", "`invented`"]),
    testbed("device = \"connectx4\"", "device = \"missing.toml\"", "\"missing.toml\"", &["cannot read", "missing.toml", "check the path"]),
    testbed("[server]", "[servr]", "[testbed]", &["lacks `[server]`", "kind = \"machine\""]),
    testbed("count = { value = 11,", "count = { value = 21,", "count = { value = 21,", &["`client.count` is 21", "at most client.available, 20"]),
    testbed("[network]", "[net]", "[net]", &["`net` cannot name a network", "called `network`"]),
    // Nodes, engines, and how processors reach memories.
    device("capacity = { value = \"1 GiB\"", "memory = { value = \"1 GiB\"", "memory = { value = \"1 GiB\"", &["no key `memory` in `[dpa]`", "it is called `capacity` now"]),
    device("kind = \"engine\"\nendpoint = \"arm\"", "kind = \"engine\"\nwork = \"dig\"\nendpoint = \"arm\"", "\"dig\"", &["no work `dig` for the engine `[copy]`", "`transform`"]),
    device("kind = \"engine\"\nendpoint = \"arm\"", "kind = \"engine\"\nreaches = [\"moon\"]\nendpoint = \"arm\"", "[\"moon\"]", &["no memory `moon` for `reaches` of `[copy]`"]),
    device("[arm]\nkind = \"endpoint\"", "[arm]\ncut_up_to = { value = \"256 B\", source = \"i\", provenance = \"datasheet\" }\nkind = \"endpoint\"", "[arm]", &["`[arm]` says how completions are cut, and lacks `read_completion_boundary`", "or none of them"]),
    device("slow_rate = ", "# slow_rate = ", "[copy]", &["`[copy]` has one of `slow_above` and `slow_rate`", "write both"]),
    device("[copy]", "[far]\nkind = \"reach\"\nprocessor = \"arm\"\nmemory = \"moon\"\nlatency = { value = \"1 us\", source = \"i\", provenance = \"datasheet\" }\nline = { value = \"64 B\", source = \"i\", provenance = \"datasheet\" }\noutstanding = { value = 1, source = \"i\", provenance = \"datasheet\" }\n[copy]", "\"moon\"", &["no memory `moon` for `memory` of `[far]`"]),
    device("[copy]", "[far]\nkind = \"reach\"\nprocessor = \"arm\"\nmemory = \"host\"\nthrough = [\"l9\"]\nlatency = { value = \"1 us\", source = \"i\", provenance = \"datasheet\" }\nline = { value = \"64 B\", source = \"i\", provenance = \"datasheet\" }\noutstanding = { value = 1, source = \"i\", provenance = \"datasheet\" }\n[copy]", "[\"l9\"]", &["no cache `l9` for `through` of `[far]`"]),
    device("[copy]", "[far]\nkind = \"reach\"\nprocessor = \"arm\"\nmemory = \"host\"\nlast_level_of = \"l9\"\nlatency = { value = \"1 us\", source = \"i\", provenance = \"datasheet\" }\nline = { value = \"64 B\", source = \"i\", provenance = \"datasheet\" }\noutstanding = { value = 1, source = \"i\", provenance = \"datasheet\" }\n[copy]", "\"l9\"", &["no endpoint `l9` for `last_level_of` of `[far]`"]),
    device("[copy]", "[tiny]\nkind = \"processor\"\nmemory = \"arm\"\ncores = { value = 1, source = \"i\", provenance = \"datasheet\" }\nfrequency = { value = \"1 GHz\", source = \"i\", provenance = \"datasheet\" }\n[copy]", "\"arm\"\ncores", &["no memory `arm` for `memory` of `[tiny]`"]),
    everything("reserved_inflight_slots = { value = 0", "reserved_inflight_slots = { value = 6400", "6400", &["`nic.reserved_inflight_slots` is 6400", "at most nic.inflight_slots, 256", "keep fewer"]),
    everything("[dpa_to_arm]", "[again]\nkind = \"reach\"\nprocessor = \"dpa\"\nmemory = \"arm\"\nlatency = { value = \"9 us\", source = \"i\", provenance = \"datasheet\" }\nline = { value = \"64 B\", source = \"i\", provenance = \"datasheet\" }\noutstanding = { value = 2, source = \"i\", provenance = \"datasheet\" }\n[dpa_to_arm]",
        "\"dpa\"\nmemory = \"arm\"\nthrough", &["`[dpa_to_arm]` says how `dpa` reaches `arm`, as `[again]` does already", "leave one of them out"]),
    everything("arrivals = { value = \"128 KiB\"", "arrivals = { value = \"256 MiB\"", "\"256 MiB\"", &["`dpa_l2.arrivals` is 256 MiB", "at most dpa_l2.capacity, 1.5 MiB", "the newest bytes that lie in the cache"]),
    everything("[\"dpa_l1\", \"dpa_l2\", \"dpa_l3\"]", "[\"dpa_l2\", \"dpa_l1\"]", "[\"dpa_l2\", \"dpa_l1\"]", &["`dpa_l1` of 1 KiB stands behind `dpa_l2` of 1.5 MiB", "the nearest and smallest first"]),
    everything("[\"dpa_l1\", \"dpa_l2\", \"dpa_l3\"]", "[\"dpa_l1\", \"dpa_l1\"]", "[\"dpa_l1\", \"dpa_l1\"]", &["`dpa_l1` of 1 KiB stands behind `dpa_l1` of 1 KiB", "name each cache once"]),
    everything("latency = { value = \"300 ns\"", "latency = { value = \"119 ns\"", "\"119 ns\"", &["`dpa_to_dpa_memory.latency` is 119 ns", "at least dpa_l3.latency, 120 ns", "no cache answers"]),
    everything("line = { value = \"64 B\"", "line = { value = \"7 B\"", "\"7 B\"", &["`dpa_to_dpa_memory.line` is 7 B", "a power of two from 8 B to 4096 B"]),
    everything("line = { value = \"64 B\"", "line = { value = \"1 TiB\"", "\"1 TiB\"", &["`dpa_to_dpa_memory.line` is 1024 GiB", "a power of two from 8 B to 4096 B"]),
    everything("reaches = [\"arm\", \"store\"]", "reaches = []", "[]", &["`reaches` of `[regex]` names no memory", "leave `reaches` out"]),
    everything("work = \"store\"", "work = \"store\"\ndoes = [\"md5\"]", "[\"md5\"]", &["`does` of `[ssd]` names kinds of work", "leave it out"]),
    everything("store_latency = ", "output_share = { value = 0.5, source = \"i\", provenance = \"datasheet\" }\nstore_latency = ", "0.5, source = \"i\"", &["`ssd.output_share` is of engines that transform", "`work = \"store\"`", "leave it out"]),
    everything("output_share = ", "store_latency = { value = \"1 us\", source = \"i\", provenance = \"datasheet\" }\noutput_share = ", "\"1 us\", source = \"i\"", &["`regex.store_latency` is of engines that store", "`work = \"transform\"`"]),
];

fn refusal(case: &Case) -> (ProfileError, String) {
    let mut library = Library::builtin();
    library.insert(Category::Device, "invented", INVENTED);
    library.insert(Category::Device, "everything", EVERYTHING);
    let text = library.source(case.category, case.name).unwrap();
    assert!(text.contains(case.from), "the profile no longer holds {:?}", case.from);
    let text = text.replacen(case.from, case.to, 1);
    library.insert(case.category, case.name, &text);
    let device = if case.category == Category::Device { case.name } else { "invented" };
    let request = SystemRequest { device, ..SystemRequest::default() };
    let error = library.load(&request).map(|_| ()).expect_err(case.to);
    (error, text)
}

#[test]
fn each_slip_is_refused_with_file_line_name_and_next_step() {
    assert!(CASES.len() >= 25);
    let mut all = String::new();
    for case in CASES {
        let (error, text) = refusal(case);
        let message = render(&error);
        let found =
            text.find(case.at).unwrap_or_else(|| panic!("{:?} is not in the text\n{message}", case.at));
        let line = text[..found].matches('\n').count() + 1;
        let file = format!("{}/{}.toml", case.category.directory(), case.name);
        let (at_file, at_line, column) = error.place().unwrap();
        assert_eq!((at_file, at_line), (file.as_str(), line), "{message}");
        assert!(message.contains(&format!("{file}:{line}:{column}")), "{message}");
        let joined = message.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        for words in case.says {
            assert!(joined.contains(words), "{words:?} is not in\n{message}");
        }
        assert!(!error.next_step().is_empty());
        // Shipped files grow and their numbers change; what is said of the invented card alone does not.
        if case.category == Category::Device && !error.next_step().contains("names a file") {
            all += &format!("{:?} -> {:?}\n{message}\n", case.from, case.to);
        }
    }
    insta::assert_snapshot!("refusals", all);
}

/// Settings and requests have no file; the setting itself is shown.
#[test]
fn requests_and_settings_are_refused_with_the_nearest_names() {
    let mut library = Library::builtin();
    library.insert(Category::Device, "invented", INVENTED);
    let crowd = "[overlay]\nname = \"crowd\"\ndescription = \"too many\"\n\n[set]\n\"client.cou*\" = 21\n";
    library.insert(Category::Overlay, "crowd", crowd);
    let slip = "[overlay]\nname = \"slip\"\ndescription = \"a slip\"\n\n[set]\n\"*.encodng\" = 1\n";
    library.insert(Category::Overlay, "slip", slip);
    let table = "[overlay]\nname = \"table\"\ndescription = \"a table\"\n\n[nic]\ninflight_slots = 100\n";
    library.insert(Category::Overlay, "table", table);
    let base = SystemRequest { device: "invented", ..SystemRequest::default() };
    let set = |setting: &str| SystemRequest { settings: vec![setting.to_string()], ..base.clone() };
    let cases = [
        (
            set("arm.pcie_mut=512B"),
            &["set:1:1", "no number `arm.pcie_mut`", "did you mean `arm.pcie_mtu`", "`arm.cores`"][..],
        ),
        (set("gpu.cores=8"), &["no number `gpu.cores`", "components:", "`arm`"]),
        (set("write_header=1B"), &["did you mean one of", "`lane_a.write_header`"]),
        (set("arm.pcie_mtu=512"), &["set:1:14", "`512` has no unit", "512 B"]),
        (set("arm.pcie_mtu=512 ns"), &["`ns` is not a unit of bytes"]),
        (set("arm.pcie_mtu=0B"), &["`arm.pcie_mtu` is 0 B", "a power of two from 128 B to 4096 B"]),
        (set("arm.pcie_mtu=100kB"), &["`arm.pcie_mtu` is 100000 B", "a power of two from 128 B to 4096 B"]),
        (set("arm.pcie_mtu=500B"), &["`arm.pcie_mtu` is 500 B", "a power of two"]),
        (set("pcie0.read_request_limit=8KiB"), &["`pcie0.read_request_limit` is 8 KiB", "4096 B"]),
        (set("ARM.PCIE_MTU=512B"), &["did you mean `arm.pcie_mtu`?"]),
        (set("arm.pcie=512B"), &["did you mean `arm.pcie_mtu`?"]),
        (set("=512B"), &["no name before the `=`"]),
        (
            SystemRequest { overlays: vec!["slip"], ..base.clone() },
            &["number that matches `*.encodng`", "did you mean `*.encoding`?"],
        ),
        (
            SystemRequest { device: "rack", ..base.clone() },
            &["`rack` is a testbed", "known: `bluefield1`, `bluefield2`"],
        ),
        (
            SystemRequest { device: "bluefield4", ..base.clone() },
            &[
                "did you mean one of `bluefield1`, `bluefield2`, `bluefield3`?",
                "`offpath new device my-card --base DEVICE`",
            ],
        ),
        (set("arm.pcie_mtu"), &["no `=`", "soc.pcie_mtu=512B"]),
        (set("host.ddio=maybe"), &["neither `true` nor `false`"]),
        (
            set("client.count=1000"),
            &["set:1:1", "`client.count` is 1000", "at most client.available", "lower the count"],
        ),
        (
            SystemRequest { overlays: vec!["table"], ..base.clone() },
            &[
                "overlays/table.toml:5:2",
                "an overlay has none",
                "`\"nic.inflight_slots\" = ...` below `[set]`",
            ],
        ),
        (
            SystemRequest { overlays: vec!["crowd"], ..base.clone() },
            &["overlays/crowd.toml:6:1", "`client.count` is 21", "at most client.available, 20"],
        ),
        (
            SystemRequest { device: "inventde", ..base.clone() },
            &["no device `inventde`", "did you mean `invented`"],
        ),
        (SystemRequest { device: "nowhere/card.toml", ..base.clone() }, &["cannot read `nowhere/card.toml`"]),
        (
            SystemRequest { testbed: Some("rck"), ..base.clone() },
            &["no testbed `rck`", "did you mean `rack`"],
        ),
        (
            SystemRequest { mode: Some("dpu"), ..base.clone() },
            &["--mode:1:1", "no mode `dpu`", "`embedded-cpu`"],
        ),
        (
            SystemRequest { device: "connectx6", mode: Some("embedded-cpu"), ..base.clone() },
            &["needs a processor on the card"],
        ),
        (
            SystemRequest { overlays: vec!["ideal-link"], ..base.clone() },
            &["no overlay `ideal-link`", "did you mean `ideal-links`"],
        ),
        (SystemRequest { mode: Some("nic"), ..set("arm.cores=4") }, &["`arm` does not exist in mode `nic`"]),
    ];
    for (request, says) in cases {
        let message = render(&library.load(&request).map(|_| ()).expect_err(says[0]));
        let joined = message.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        for words in says {
            assert!(joined.contains(words), "{words:?} is not in\n{message}");
        }
        assert!(message.contains("help:"), "{message}");
    }
}

#[test]
fn nesting_without_end_is_refused() {
    let mut library = Library::builtin();
    library.insert(Category::Device, "deep", &format!("[device]\nname = {}", "[".repeat(100_000)));
    assert!(library.load(&SystemRequest { device: "deep", ..SystemRequest::default() }).is_err());
}

/// Who writes a card finds out in one go what it lacks and what nobody knows.
#[test]
fn all_mistakes_of_a_file_are_reported_at_once() {
    let mut library = Library::builtin();
    let without = |text: &str, line: &str| {
        assert!(text.contains(line), "{line:?} is not in the profile");
        text.replacen(line, "", 1)
    };
    let mut text = without(INVENTED, &format!("{PASS}\n"));
    text = without(&text, &format!("{INFLIGHT_SLOTS}\n"));
    text = without(&text, "host_at = \"hub\"\n");
    text = text.replacen("cores = { value = 16", "coers = { value = 16", 1);
    text = text.replacen("[hub]\n", "[hub]\ncolour = \"green\"\n", 1);
    text =
        text.replacen("pcie_mtu = { value = \"128 B\", source", "pcie_mtu = { vale = \"128 B\", source", 1);
    library.insert(Category::Device, "invented", &text);
    let error = library
        .load(&SystemRequest { device: "invented", ..SystemRequest::default() })
        .expect_err("mistakes");
    let message = render(&error);
    let Problem::Several { count, .. } = error.problem() else { panic!("{message}") };
    // The misspelt key is one mistake, and not a missing one as well.
    assert_eq!(*count, 5, "{message}");
    for words in [
        "`[device]` lacks `host_at`",
        "`[nic]` lacks `pass_time`, `inflight_slots`",
        "pass_time = { value = \"300 ns\"",
        "no key `coers`",
        "did you mean `cores`?",
        "no key `colour` in `[hub]`",
        "no key `vale`",
    ] {
        assert!(message.contains(words), "{words:?} is not in\n{message}");
    }
    insta::assert_snapshot!("several", message);
}
