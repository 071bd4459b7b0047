//! What the files of the machine say beside the rows: what speaks for a cause, and what the rows prove wrong.

use super::cause::Cause;
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
    found.extend(of_mtu(rows, machine));
    found
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
    let of_one_way = |row: &Row| {
        let ways = if row.runs.stated.directions == TrafficDirections::Both { 2.0 } else { 1.0 };
        let bits = row.rate_per_s()? * row.runs.stated.payload.get() as f64 * 8.0;
        (row.series.kind == RunKind::Bandwidth && row.series.unit == PrintedUnit::Right)
            .then_some(bits / ways)
    };
    let fastest =
        rows.iter().filter_map(|row| Some((row, of_one_way(row)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((row, bits)) = fastest.filter(|_| ends_at_host) else { return Vec::new() };
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

/// What the machine says that speaks for a cause.
pub(super) fn spoken_for(cause: Cause, machine: Option<&Description>) -> Vec<String> {
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
    of_kind.map(|oddity| format!("{} ({})", oddity.what, oddity.at)).collect()
}
