//! Causes of figures that are not what they should be: what each changes in a system, a run, or what is printed.

use super::points::{Series, SeriesPlace, UNITS};
use crate::run::{RunKind, RunLength, ToolRun};
use offpath_logs::TrafficDirections;
use offpath_profile::{Pcie, System};
use offpath_quantity::{BitRate, Bytes, Time};
use offpath_route::Router;
use std::collections::BTreeSet;

/// A cause that the model can put a number to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A PCIe link came up narrower or slower than it can, at the card or at a bridge above it.
    PcieLink,
    /// Every access over PCIe takes longer.
    PcieLatency,
    /// Every packet takes longer over the network.
    NetworkLatency,
    /// Read requests on PCIe are small.
    MaxReadRequest,
    /// TLPs are small.
    MaxPayload,
    /// Packets on the network are small.
    PathMtu,
    /// Few requests are posted ahead.
    TxDepth,
    /// Few READs and atomics are in flight.
    OutstandingReads,
    /// Short payloads are fetched instead of posted with the request.
    InlineOff,
    /// The processor that posts and polls is slow.
    ProcessorClock,
    /// What the NIC moves goes to memory instead of the last-level cache.
    DdioOff,
    /// The network carries less than the ports.
    PortRate,
    /// The other end is another endpoint of the card.
    OtherEndpoint,
    /// The run has few iterations, so that its beginning and its end count.
    FewIterations,
    /// Of traffic in both directions one was counted.
    OneDirectionCounted,
    /// Half of what went was counted, or it was timed by a clock at twice its rate.
    HalfCounted,
    /// The figure is in another unit.
    Unit,
    /// The latency is of another span: a whole round trip for a half, or the reverse.
    LatencySpan,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Cause; 18] = [
        Cause::PcieLink,
        Cause::PcieLatency,
        Cause::NetworkLatency,
        Cause::MaxReadRequest,
        Cause::MaxPayload,
        Cause::PathMtu,
        Cause::TxDepth,
        Cause::OutstandingReads,
        Cause::InlineOff,
        Cause::ProcessorClock,
        Cause::DdioOff,
        Cause::PortRate,
        Cause::OtherEndpoint,
        Cause::FewIterations,
        Cause::OneDirectionCounted,
        Cause::HalfCounted,
        Cause::Unit,
        Cause::LatencySpan,
    ];

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Cause::PcieLink => "pcie-link",
            Cause::PcieLatency => "pcie-latency",
            Cause::NetworkLatency => "network-latency",
            Cause::MaxReadRequest => "max-read-request",
            Cause::MaxPayload => "max-payload",
            Cause::PathMtu => "path-mtu",
            Cause::TxDepth => "tx-depth",
            Cause::OutstandingReads => "outstanding-reads",
            Cause::InlineOff => "inline-off",
            Cause::ProcessorClock => "processor-clock",
            Cause::DdioOff => "ddio-off",
            Cause::PortRate => "port-rate",
            Cause::OtherEndpoint => "other-endpoint",
            Cause::FewIterations => "few-iterations",
            Cause::OneDirectionCounted => "one-direction-counted",
            Cause::HalfCounted => "half-counted",
            Cause::Unit => "unit",
            Cause::LatencySpan => "latency-span",
        }
    }

    /// What it may be, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Cause::PcieLink => {
                "a PCIe link came up narrower or slower than it can, at the card or at a bridge above it, on either machine"
            }
            Cause::PcieLatency => {
                "every access over PCIe takes longer: memory of another node, an IOMMU that translates, ACS that redirects, a \
                 link that sleeps"
            }
            Cause::NetworkLatency => {
                "every packet takes longer between the ports: more switches or a longer cable than the profile has, a switch that stores \
                 and forwards, a firewall or a tunnel in between"
            }
            Cause::MaxReadRequest => "read requests on PCIe are small (MaxReadReq)",
            Cause::MaxPayload => "TLPs are small (MaxPayload)",
            Cause::PathMtu => "packets on the network are small (path MTU)",
            Cause::TxDepth => "few requests are posted ahead (`--tx-depth`)",
            Cause::OutstandingReads => "few READs are in flight of a queue pair (`max_rd_atomic`, `--outs`)",
            Cause::InlineOff => "short payloads are fetched by the NIC instead of posted inline",
            Cause::ProcessorClock => {
                "the core that posts and polls is slow: its clock is low, or it is shared"
            }
            Cause::DdioOff => "what the NIC moves goes to memory instead of the last-level cache (DDIO off)",
            Cause::PortRate => {
                "the network carries less than the ports: a port at a lower rate, another card at the other end, one port of a \
                 bond or one function of two, a slower switch, or pause frames"
            }
            Cause::OtherEndpoint => "the other end is another endpoint of the card than was meant",
            Cause::FewIterations => "the run has few iterations, so that warm-up and end count",
            Cause::OneDirectionCounted => "of traffic in both directions one is counted",
            Cause::HalfCounted => {
                "every size is at half: one of two ports or functions is counted, one of both directions, a latency is a whole round \
                 trip, or the tool's clock has twice the rate that it is taken for"
            }
            Cause::Unit => "the bandwidth is in another unit than its label says",
            Cause::LatencySpan => {
                "the latency is a whole round trip where half of one is meant, or the reverse"
            }
        }
    }

    /// The command, and what to look for in what it prints.
    pub fn command(self) -> &'static str {
        match self {
            Cause::PcieLink => {
                "`lspci -vvv`: LnkSta against LnkCap of the card and of every bridge above it, on both machines"
            }
            Cause::PcieLatency => {
                "`numactl --cpunodebind=N --membind=N` with the card's node, then the kernel with `iommu=pt`: what the latency loses"
            }
            Cause::NetworkLatency => {
                "`ibtracert` or `traceroute` for what lies between; the same run between two ports of one switch"
            }
            Cause::MaxReadRequest => "`lspci -vvv`: MaxReadReq in DevCtl of the card",
            Cause::MaxPayload => "`lspci -vvv`: MaxPayload in DevCtl against DevCap",
            Cause::PathMtu => "`ibv_devinfo`: active_mtu on both machines; the same run with `-m 4096`",
            Cause::TxDepth => "the same run with `--tx-depth 128`",
            Cause::OutstandingReads => "`ibv_devinfo -v`: max_qp_init_rd_atom; the same run with `--outs 16`",
            Cause::InlineOff => "the same run with `-I 220`",
            Cause::ProcessorClock => {
                "`lscpu` and `cpupower frequency-info` while it runs; the same run pinned by `taskset`"
            }
            Cause::DdioOff => "the same run over a small and a large buffer; the BIOS setting of DDIO",
            Cause::PortRate => {
                "`ethtool DEV` or `ibstat` for the rate of each port; `ethtool -S DEV` twice for pause frames in between"
            }
            Cause::OtherEndpoint => {
                "the device and address that the run connects to: `ibv_devices` and `show_gids` on both ends"
            }
            Cause::FewIterations => "the same run with `-D 10`",
            Cause::OneDirectionCounted => "the same run without `-b`",
            Cause::HalfCounted => {
                "`ethtool -S` of each port and function twice: the difference of bytes beside the log's; the same run by `-D 10`, and \
                 perftest's `Conflicting CPU frequency values`"
            }
            Cause::Unit => "size times message rate of the same row: it is the bandwidth in its true unit",
            Cause::LatencySpan => "the tool's own definition: perftest halves SEND and WRITE and not READ",
        }
    }
}

/// A cause to a degree.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseDegree {
    /// The cause.
    pub cause: Cause,
    /// The degree, in words.
    pub degree: String,
    /// What it changes.
    pub change: CauseChange,
}

/// What a cause changes.
#[derive(Clone, Debug, PartialEq)]
pub enum CauseChange {
    /// PCIe links carry such a share.
    LinkShare(f64),
    /// Each pass of the host's PCIe link takes so much longer.
    LinkDelay(Time),
    /// Each pass of the network takes so much longer.
    NetworkDelay(Time),
    /// Read requests ask for so much.
    ReadRequest(Bytes),
    /// TLPs carry so much.
    MaxPayload(Bytes),
    /// Packets carry so much.
    PathMtu(Bytes),
    /// Ports carry such a share.
    PortShare(f64),
    /// Posting and polling take so many times as long.
    ProcessorTimes(f64),
    /// Memories are not served by the cache.
    NoDdio,
    /// The run goes over another path.
    OtherPath(String),
    /// So many requests are posted ahead.
    TxDepth(u64),
    /// So many READs are in flight.
    OutstandingReads(u64),
    /// So much goes inline.
    Inline(Bytes),
    /// So many iterations of each queue pair.
    Iterations(u64),
    /// What is printed as a bandwidth is so many times what it is: a unit touches no count of messages.
    Unit(f64),
    /// Traffic goes both ways, and what is printed is of one. Messages are counted, so bandwidth and rate are halved alike.
    OneDirection,
    /// What is printed of these series is half of what went, and twice the latency.
    HalfCounted(BTreeSet<SeriesPlace>),
    /// What is printed of a latency is so many times what it is.
    Latency(f64),
}

impl CauseChange {
    /// Whether the system is another one.
    pub(super) fn is_of_system(&self) -> bool {
        matches!(
            self,
            CauseChange::LinkShare(_)
                | CauseChange::LinkDelay(_)
                | CauseChange::NetworkDelay(_)
                | CauseChange::ReadRequest(_)
                | CauseChange::MaxPayload(_)
                | CauseChange::PathMtu(_)
                | CauseChange::PortShare(_)
                | CauseChange::ProcessorTimes(_)
                | CauseChange::NoDdio
        )
    }

    pub(super) fn change_system(&self, system: &mut System) {
        let share = |rate: BitRate, share: f64| {
            BitRate::from_bits_per_second(((rate.bits_per_second() as f64 * share) as u64).max(1_000_000))
        };
        match self {
            CauseChange::PathMtu(mtu) => system.network.mtu = *mtu,
            CauseChange::NetworkDelay(more) => system.network.delay += *more,
            _ => {}
        }
        for machine in &mut system.machines {
            let hosts: Vec<String> = machine
                .endpoints
                .iter()
                .filter(|endpoint| endpoint.processor.is_host)
                .map(|endpoint| endpoint.name.clone())
                .collect();
            for link in &mut machine.links {
                let is_hosts = hosts.contains(&link.to) || hosts.contains(&link.from);
                let Some(pcie) = &mut link.pcie else { continue };
                match self {
                    CauseChange::LinkShare(of) if is_hosts => pcie.rate = share(pcie.rate, *of),
                    CauseChange::LinkDelay(more) if is_hosts => link.delay += *more,
                    CauseChange::ReadRequest(size) => pcie.read_request_limit = *size,
                    _ => {}
                }
            }
            match self {
                CauseChange::PortShare(of) => machine.nic.port_rate = share(machine.nic.port_rate, *of),
                CauseChange::MaxPayload(size) => {
                    for endpoint in machine.endpoints.iter_mut().filter(|own| own.processor.is_host) {
                        endpoint.memory.pcie_mtu = *size;
                    }
                }
                CauseChange::NoDdio => {
                    for endpoint in &mut machine.endpoints {
                        endpoint.memory.ddio = false;
                    }
                }
                CauseChange::ProcessorTimes(times) => {
                    for endpoint in &mut machine.endpoints {
                        let verbs = &mut endpoint.processor.verbs;
                        for time in [
                            &mut verbs.post_latency,
                            &mut verbs.post_time,
                            &mut verbs.batch_fixed_time,
                            &mut verbs.batch_per_wqe_time,
                            &mut verbs.poll_latency,
                            &mut verbs.poll_time,
                            &mut verbs.receive_latency,
                            &mut verbs.receive_time,
                        ] {
                            *time = time.scaled(*times);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    pub(super) fn change_run(&self, run: &mut ToolRun) {
        match self {
            // What a run asks for is at most what the port does.
            CauseChange::PathMtu(mtu) => run.mtu = Some(*mtu),
            CauseChange::TxDepth(depth) if run.kind == RunKind::Bandwidth => {
                run.tx_depth = *depth;
                run.cq_moderation = run.cq_moderation.min(*depth);
            }
            CauseChange::OutstandingReads(reads) => run.outstanding_reads = Some(*reads),
            CauseChange::Inline(size) => run.inline = *size,
            CauseChange::Iterations(count) => {
                run.length = Some(RunLength::Iterations(count.saturating_mul(run.queue_pairs.max(1))));
            }
            CauseChange::OneDirection if run.kind == RunKind::Bandwidth => {
                run.directions = TrafficDirections::Both;
            }
            _ => {}
        }
    }
}

/// PCIe links of hosts.
pub(super) fn links_of_hosts(system: &System) -> impl Iterator<Item = &Pcie> {
    system.machines.iter().flat_map(|machine| {
        let is_host =
            |name: &str| machine.endpoints.iter().any(|own| own.name == name && own.processor.is_host);
        let links = machine.links.iter().filter(move |link| is_host(&link.from) || is_host(&link.to));
        links.filter_map(|link| link.pcie.as_ref())
    })
}

/// A share of what the slowest port of a system carries: a share alone says nothing where nobody has seen the port at its whole rate.
pub(super) fn of_ports(system: &System, share: f64) -> String {
    of_rates(system.machines.iter().map(|machine| machine.nic.port_rate), share)
}

/// A share of what the slowest PCIe link of a host carries.
pub(super) fn of_links(system: &System, share: f64) -> String {
    of_rates(links_of_hosts(system).map(|pcie| pcie.rate), share)
}

fn of_rates(rates: impl Iterator<Item = BitRate>, share: f64) -> String {
    let share = (share * 1e3).round() / 1e3;
    let Some(rate) = rates.min().map(|rate| rate.bits_per_second() as f64 / 1e9) else {
        return format!("{share} of its rate");
    };
    format!("{share} of its rate, {:.0} of {rate:.0} Gbit/s", rate * share)
}

/// The degrees of every cause that a system leaves room for.
pub(super) fn variants(
    system: &System,
    router: &Router,
    path: &str,
    has_both_directions: bool,
) -> Vec<CauseDegree> {
    let mut all = Vec::new();
    let mut add =
        |cause: Cause, degree: String, change: CauseChange| all.push(CauseDegree { cause, degree, change });
    for share in [0.5, 0.25, 0.125, 0.0625] {
        add(Cause::PcieLink, of_links(system, share), CauseChange::LinkShare(share));
    }
    for ns in [100, 250, 500, 1000] {
        let more = Time::from_ns(ns);
        add(Cause::PcieLatency, format!("{more} more for each pass"), CauseChange::LinkDelay(more));
    }
    for ns in [250, 500, 1000, 2000, 5000, 20_000, 100_000] {
        let more = Time::from_ns(ns);
        add(Cause::NetworkLatency, format!("{more} more each way"), CauseChange::NetworkDelay(more));
    }
    let hosts =
        || system.machines.iter().flat_map(|machine| &machine.endpoints).filter(|own| own.processor.is_host);
    let requests =
        system.machines.iter().flat_map(|machine| &machine.links).filter_map(|link| link.pcie.as_ref());
    let request = requests.map(|pcie| pcie.read_request_limit).max().unwrap_or_default();
    for size in [128, 256, 512].map(Bytes::new).into_iter().filter(|size| *size < request) {
        add(Cause::MaxReadRequest, size.to_string(), CauseChange::ReadRequest(size));
    }
    let payload = hosts().map(|own| own.memory.pcie_mtu).max().unwrap_or_default();
    for size in [128, 256].map(Bytes::new).into_iter().filter(|size| *size < payload) {
        add(Cause::MaxPayload, size.to_string(), CauseChange::MaxPayload(size));
    }
    for size in [256, 512, 1024, 2048].map(Bytes::new).into_iter().filter(|size| *size < system.network.mtu) {
        add(Cause::PathMtu, size.to_string(), CauseChange::PathMtu(size));
    }
    for depth in [1, 2, 4, 8, 16, 32] {
        add(Cause::TxDepth, format!("{depth} posted ahead"), CauseChange::TxDepth(depth));
    }
    for reads in [1, 2, 4, 8] {
        add(Cause::OutstandingReads, format!("{reads} in flight"), CauseChange::OutstandingReads(reads));
    }
    add(Cause::InlineOff, "nothing inline".to_string(), CauseChange::Inline(Bytes::ZERO));
    for times in [1.5, 2.0, 3.0] {
        add(Cause::ProcessorClock, format!("{times} times as long"), CauseChange::ProcessorTimes(times));
    }
    if hosts().any(|own| own.memory.ddio && own.memory.miss_latency.is_some()) {
        add(Cause::DdioOff, "off".to_string(), CauseChange::NoDdio);
    }
    for share in [0.5, 0.4, 0.25, 0.1, 0.05] {
        add(Cause::PortRate, of_ports(system, share), CauseChange::PortShare(share));
    }
    let requester = path.split('-').next().unwrap_or_default();
    for other in router.paths_of(offpath_route::Verb::Read) {
        let name = other.to_string();
        if other.engine.is_none() && other.requester == requester && name != path && !name.contains(':') {
            add(Cause::OtherEndpoint, name.clone(), CauseChange::OtherPath(name));
        }
    }
    for count in [10, 50] {
        add(Cause::FewIterations, format!("{count} of each queue pair"), CauseChange::Iterations(count));
    }
    if has_both_directions {
        add(Cause::OneDirectionCounted, "half".to_string(), CauseChange::OneDirection);
    }
    for (degree, times) in UNITS {
        add(Cause::Unit, degree.to_string(), CauseChange::Unit(times));
    }
    add(Cause::LatencySpan, "a round trip".to_string(), CauseChange::Latency(2.0));
    add(Cause::LatencySpan, "half of the span".to_string(), CauseChange::Latency(0.5));
    all
}

/// That half is counted, where series are at half at every size.
pub(super) fn half<'s>(series: impl Iterator<Item = &'s Series>) -> Option<CauseDegree> {
    let places: BTreeSet<SeriesPlace> = series.map(Series::place).collect();
    (!places.is_empty()).then(|| CauseDegree {
        cause: Cause::HalfCounted,
        degree: "half".to_string(),
        change: CauseChange::HalfCounted(places),
    })
}
