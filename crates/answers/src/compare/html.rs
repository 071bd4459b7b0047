//! A comparison as a page with charts.

use super::text::interval;
use super::{CompareAnswer, ComparedDevice, DeviceFigures};
use crate::report::{Axis, Chart, Fact, Page, PageBlock, Section, Series, Table};
use offpath_terminal::output::short;

/// A figure of a device with the ends of its interval.
type Figure<'f> = &'f dyn Fn(&DeviceFigures) -> (f64, (f64, f64));

pub(super) fn page(answer: &CompareAnswer) -> Page {
    let planned: Vec<(&ComparedDevice, &DeviceFigures)> =
        answer.devices.iter().filter_map(|one| Some((one, one.plan.as_ref()?))).collect();
    let mut facts = vec![Fact::new("answer", answer.answer(), "")];
    for (one, own) in &planned {
        facts.push(Fact::new(
            &*one.name,
            answer.worth(own),
            format!(
                "best in {:.0}% of {:.0} joint draws widened by past errors, {:.0}% without them; {}",
                own.best_in_share_of_draws * 100.0,
                answer.counted_share_of_draws * answer.draws as f64,
                own.best_in_share_of_draws_without_past_errors * 100.0,
                own.mix.basis
            ),
        ));
    }
    let mut notes = answer.measured_otherwise();
    notes.extend([format!("energy: not compared: {}", answer.energy_not_compared_because)]);
    notes.extend(answer.notes.iter().cloned());
    let head =
        Section::new("answer", "The answer").with(PageBlock::Facts(facts)).with(PageBlock::Notes(notes));

    let cores = format!("#host cores at {}", answer.host_load());
    let rate = format!("#throughput ({})", answer.unit);
    let mut table = Table::of(&[
        "device",
        &rate,
        "#80% interval",
        "#latency (us)",
        "#80% interval",
        &cores,
        "#80% interval",
        "#best in",
        "#as good in",
        "basis",
    ]);
    for (one, own) in &planned {
        table.row(vec![
            one.name.clone(),
            short(own.mix.throughput.rate()),
            interval(own.mix.throughput.range_80()),
            short(own.mix.unloaded_latency_us),
            interval(own.latency_80()),
            short(own.host_cores),
            interval(own.host_cores_80()),
            format!("{:.0}%", own.best_in_share_of_draws * 100.0),
            format!("{:.0}%", own.as_good_in_share_of_draws * 100.0),
            own.mix.basis.to_string(),
        ]);
    }
    let chart = |title: &str, axis: String, of: Figure<'_>| {
        let band = |(at, (_, own)): (usize, &(&ComparedDevice, &DeviceFigures))| {
            let (low, high) = of(own).1;
            (at as f64, low, high)
        };
        let bars = Series::bars(title, planned.iter().map(|(_, own)| of(own).0));
        PageBlock::Chart(Chart {
            title: title.to_string(),
            caption: "Each device at its own best mix, with its 80% interval.".into(),
            x: Axis::categories("device", planned.iter().map(|(one, _)| one.name.clone())),
            y: Axis::linear(axis),
            series: vec![bars.with_band(planned.iter().enumerate().map(band).collect())],
            marks: Vec::new(),
        })
    };
    let figures = Section::new("devices", "Each device at its own best mix")
        .with(chart("Throughput", format!("throughput ({})", answer.unit), &|own| {
            (own.mix.throughput.rate(), own.mix.throughput.range_80())
        }))
        .with(chart("Unloaded latency", "latency (us)".into(), &|own| {
            (own.mix.unloaded_latency_us, own.latency_80())
        }))
        .with(chart("Host cores", format!("cores at {}", answer.host_load()), &|own| {
            (own.host_cores, own.host_cores_80())
        }))
        .with(PageBlock::Table(table))
        .with(PageBlock::Notes(
            answer
                .host_load_carried()
                .into_iter()
                .chain(answer.without_errors())
                .chain(answer.devices_text())
                .collect(),
        ));
    let mut sections = vec![head, figures];
    let decides = answer.decides();
    if !decides.is_empty() {
        sections
            .push(Section::new("decides", "What would change the answer").with(PageBlock::Notes(decides)));
    }
    let left_out = answer.left_out();
    if !left_out.is_empty() {
        sections
            .push(Section::new("left-out", "What a device does not run").with(PageBlock::Notes(left_out)));
    }
    let names: Vec<&str> = answer.devices.iter().map(|one| one.name.as_str()).collect();
    Page {
        title: format!("{} on {}", answer.design, names.join(", ")),
        subtitle: answer.workload.clone(),
        sections,
    }
}
