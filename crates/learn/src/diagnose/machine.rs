//! What the files of the machine say beside the rows: what speaks for a cause, and what the rows prove wrong.

use super::GAP;
use super::cause::{Cause, CauseChange, links_of_hosts};
use super::points::PrintedUnit;
use super::rows::Row;
use crate::describe::{Description, Oddity, OddityKind};
use crate::run::RunKind;
use offpath_logs::TrafficDirections;
use offpath_profile::{DraftPart, System};
use offpath_quantity::Quantity;

/// How far a figure may lie above what a link carries and still be rounding.
pub(super) const ABOVE_LINK: f64 = 1.02;

/// What the files of a machine say and its logs prove wrong.
pub(super) fn contradictions(
    rows: &[Row],
    system: &System,
    path: &str,
    machine: &Description,
) -> Vec<String> {
    let mut found = of_links(rows, system, path, machine);
    found.extend(of_ports(rows, path, machine));
    found.extend(of_mtu(rows, machine));
    found
}

/// The row with the most bits per second in one direction, and how many these are.
fn fastest<'r, 's>(rows: &'r [Row<'s>]) -> Option<(&'r Row<'s>, f64)> {
    let of_one_way = |row: &Row| {
        let ways = if row.runs.stated.directions == TrafficDirections::Both { 2.0 } else { 1.0 };
        let bits = row.rate_per_s()? * row.runs.stated.payload.get() as f64 * 8.0;
        (row.series.kind == RunKind::Bandwidth && row.series.unit == PrintedUnit::Right)
            .then_some(bits / ways)
    };
    rows.iter().filter_map(|row| Some((row, of_one_way(row)?))).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// A row with more than the active ports of the files carry together.
fn of_ports(rows: &[Row], path: &str, machine: &Description) -> Option<String> {
    let number = machine.numbers.iter().find(|one| (one.part, one.key) == (DraftPart::Nic, "port_rate"))?;
    let Quantity::BitRate(rate) = number.value else { return None };
    // What stays within a machine passes no port.
    let path = path.parse::<offpath_route::Path>().ok()?;
    let is_over_network = path.requester == "client" || path.responder == "client";
    let (row, bits) = fastest(rows).filter(|_| is_over_network)?;
    (bits > ABOVE_LINK * rate.bits_per_second() as f64).then(|| {
        format!(
            "the ports carry {rate} ({}), and {}:{} has {:.0} Gbit/s: the files and the log are not of the same machine, or not of the \
             same day, and nothing in the files is taken as evidence",
            number.source,
            row.series.file,
            row.point.line,
            bits / 1e9
        )
    })
}

/// A log that states longer packets than the port of the files sends.
fn of_mtu(rows: &[Row], machine: &Description) -> Option<String> {
    let number = machine.numbers.iter().find(|one| (one.part, one.key) == (DraftPart::Network, "mtu"))?;
    let Quantity::Bytes(active) = number.value else { return None };
    let stated = |row: &&Row| row.point.conditions.mtu.is_some_and(|mtu| mtu > active);
    let row = rows.iter().find(stated)?;
    Some(format!(
        "the port sends packets of {active} ({}), and {}:{} states an MTU of {}: the files and the log are not of the same machine, or \
         not of the same day, and nothing in the files is taken as evidence",
        number.source,
        row.series.file,
        row.point.line,
        row.point.conditions.mtu.unwrap_or_default()
    ))
}

/// What a machine's files say of the links that the rows went over, and no row that was as fast could be so.
fn of_links(rows: &[Row], system: &System, path: &str, machine: &Description) -> Vec<String> {
    let is_host = |name: &str| {
        system.endpoint(name).is_ok_and(|(machine, own)| machine.prefix.is_empty() && own.processor.is_host)
    };
    let ends = path.parse::<offpath_route::Path>();
    let ends_at_host = ends.is_ok_and(|path| is_host(&path.requester) || is_host(&path.responder));
    let Some((row, bits)) = fastest(rows).filter(|_| ends_at_host) else { return Vec::new() };
    let links = machine.links.iter().filter(|link| !link.is_on_card);
    let states = links.filter_map(|link| Some((link, link.now.as_ref()?)));
    states
        .filter(|(_, now)| bits > ABOVE_LINK * now.value.data_rate())
        .map(|(link, now)| {
            format!(
                "the link of `{}` runs at {} ({}), which carries {:.0} Gbit/s, and {}:{} has {:.0} Gbit/s: the files and the log \
                 are not of the same machine, or not of the same day, and nothing in the files is taken as evidence",
                link.lower,
                now.value,
                now.at,
                now.value.data_rate() / 1e9,
                row.series.file,
                row.point.line,
                bits / 1e9
            )
        })
        .collect()
}

/// What no machine has that is to be accepted, as its files say it: a port that is down, unless the logs name devices and not its own; a link
/// below what both ends can; a fatal error; and files that contradict one another.
pub(super) fn faults(rows: &[Row], machine: &Description) -> Vec<String> {
    let is_of_run = |device: &String| {
        rows.iter().any(|row| row.point.conditions.device.as_deref().is_none_or(|own| own == device))
    };
    let is_fault = |oddity: &&Oddity| match oddity.kind {
        OddityKind::PortDown => oddity.down_device.as_ref().is_some_and(is_of_run),
        OddityKind::LinkBelowMaximum | OddityKind::PcieFatalErrors | OddityKind::Contradiction => true,
        _ => false,
    };
    let faults = machine.oddities.iter().filter(is_fault);
    faults.map(|oddity| format!("{} ({})", oddity.what, oddity.at)).collect()
}

/// A number as the files of a machine state it, where a cause has another value of it.
struct StatedNumber<'m> {
    /// Whether it is within a gap of what the cause has, so that it is the cause.
    is_so: bool,
    what: String,
    source: &'m str,
}

/// What the files state of the number that a cause changes.
fn stated<'m>(
    change: &CauseChange,
    system: &System,
    machine: Option<&'m Description>,
) -> Option<StatedNumber<'m>> {
    let of_hosts = || links_of_hosts(system).map(|pcie| pcie.rate.bits_per_second() as f64);
    let ports = || system.machines.iter().map(|machine| machine.nic.port_rate.bits_per_second() as f64);
    let size = |size: &offpath_quantity::Bytes| vec![size.get() as f64];
    let (part, key, caused): (DraftPart, &str, Vec<f64>) = match change {
        CauseChange::LinkShare(share) => {
            (DraftPart::HostLink, "rate", of_hosts().map(|rate| rate * share).collect())
        }
        CauseChange::PortShare(share) => {
            (DraftPart::Nic, "port_rate", ports().map(|rate| rate * share).collect())
        }
        CauseChange::ReadRequest(bytes) => (DraftPart::HostLink, "read_request_limit", size(bytes)),
        CauseChange::MaxPayload(bytes) => (DraftPart::Host, "pcie_mtu", size(bytes)),
        CauseChange::PathMtu(bytes) => (DraftPart::Network, "mtu", size(bytes)),
        _ => return None,
    };
    let number = machine?.numbers.iter().find(|one| (one.part, one.key) == (part, key))?;
    let own = number.value.base();
    let is_so = caused.iter().any(|caused| (own / caused).ln().abs() <= -GAP.ln());
    Some(StatedNumber { is_so, what: format!("{key} {}", number.value), source: &number.source })
}

/// Whether the files state the number that a cause changes, as the cause has it.
pub(super) fn is_stated(change: &CauseChange, system: &System, machine: Option<&Description>) -> bool {
    stated(change, system, machine).is_some_and(|stated| stated.is_so)
}

/// What the machine says that speaks for a cause to a degree. Where its files state the very number that the cause changes, they
/// speak for the cause only by the value that it has there: a link below its maximum is not below itself.
pub(super) fn spoken_for(
    cause: Cause,
    change: &CauseChange,
    system: &System,
    machine: Option<&Description>,
) -> Vec<String> {
    let stated = stated(change, system, machine);
    if stated.as_ref().is_some_and(|stated| !stated.is_so) {
        return Vec::new();
    }
    let kinds: &[OddityKind] = match cause {
        Cause::PcieLink => &[OddityKind::LinkBelowMaximum, OddityKind::SlotBelowCard],
        Cause::PcieLatency => &[OddityKind::MemoryNode, OddityKind::Iommu, OddityKind::AccessControl],
        Cause::MaxReadRequest => &[OddityKind::MaxReadRequest],
        Cause::MaxPayload => &[OddityKind::MaxPayload],
        Cause::PathMtu => &[OddityKind::PathMtu],
        Cause::PortRate => &[OddityKind::PortDown, OddityKind::PortBelowMaximum],
        Cause::ProcessorClock => &[OddityKind::Governor],
        _ => &[],
    };
    let oddities = machine.into_iter().flat_map(|machine| &machine.oddities);
    let of_kind = oddities.filter(|oddity| kinds.contains(&oddity.kind));
    let said: Vec<String> = of_kind.map(|oddity| format!("{} ({})", oddity.what, oddity.at)).collect();
    match stated {
        Some(stated) if said.is_empty() => {
            vec![format!("the machine has {} ({})", stated.what, stated.source)]
        }
        _ => said,
    }
}
