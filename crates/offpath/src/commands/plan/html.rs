//! The page of `offpath plan --html`.

use super::super::check::{gap_text, headline};
use super::confidence::{guesses_text, rests_text};
use super::page::{Page, brings, network_saved, percent, shares_text};
use crate::output::{fixed, short, signed, system_line};
use offpath::plan::Mix;
use offpath::plan::Objective;
use offpath::plan::check::LoadPoint;
use offpath::plan::study::Solved;
use offpath::quantity::Time;
use offpath::report::{
    Axis, Chart, Fact, Page as Html, PageBlock, Section, Series, Span, Spans, StationLoad, Table, Ticks,
    Topology,
};

/// The plan as a page with charts, latency over load among them.
pub fn page(page: &Page<'_>) -> Html {
    let mut sections = vec![answer(page), alternatives(page), mixes(page)];
    sections.extend(load_curve(page, &page.study.curve));
    sections.push(stations(page));
    sections.push(confidence(page));
    sections.extend(advice(page));
    sections.extend(by_parameter(page));
    sections.extend(few_clients(page));
    Html {
        title: format!("{} on {}", page.study.design.name, page.study.system.device),
        subtitle: match page.study.design.workload.as_str() {
            "" => system_line(&page.study.system),
            workload => format!("{workload}; {}", system_line(&page.study.system)),
        },
        sections,
    }
}

fn answer(page: &Page<'_>) -> Section {
    let (plan, unit) = (page.plan(), page.unit());
    let optimal = &plan.optimal;
    let rate = |mix: &Mix| format!("{} {}", short(unit.of_rate(mix.rate.value)), unit.name());
    let range = page.range(&optimal.rate);
    let note = if range.is_empty() {
        shares_text(&optimal.shares)
    } else {
        format!("80% interval {range}; {}", shares_text(&optimal.shares))
    };
    let mut facts = vec![Fact::new("best mix", rate(optimal), note)];
    facts.extend(page.lowest_p99().map(|p99| {
        Fact::new("lowest p99 found", format!("{p99} us"), "on the twin; no interval is known of a tail")
    }));
    let sure = &plan.recommendation;
    for over in &sure.over {
        let change = |ratio: f64| signed((ratio - 1.0) * 100.0, 1);
        let (low, high) = over.ratio.range_80;
        let said = format!(
            "80% interval {} to {}; {} on {} reaches {} {}; faster in {:.0}% of {} draws widened by past errors",
            change(low),
            change(high),
            over.name,
            over.device,
            short(unit.of_rate(optimal.rate.value / over.ratio.value)),
            unit.name(),
            over.faster_in * 100.0,
            sure.draws
        );
        let title =
            if over.is_plain { "over the plain NIC".to_string() } else { format!("over {}", over.device) };
        facts.push(Fact::new(title, change(over.ratio.value), said));
    }
    match page.study.design.objective {
        Objective::MostThroughput => {
            let gain = percent(optimal.rate.value, plan.greedy.rate.value);
            facts.push(Fact::new(
                "gain over greedy",
                signed(gain, 1),
                format!("greedy: {}, {}", rate(&plan.greedy), shares_text(&plan.greedy.shares)),
            ));
            if let Some(single) = page.best_single() {
                facts.push(Fact::new(
                    format!("gain over {} alone", single.name),
                    signed(percent(optimal.rate.value, single.rate.value), 1),
                    format!("{} {}", short(unit.of_rate(single.rate.value)), unit.name()),
                ));
            }
        }
        Objective::LeastHostCpu { .. } => {
            let time = |mix: &Mix| Time::from_seconds(mix.host_cpu_s).to_string();
            let note = format!("greedy: {}", time(&plan.greedy));
            facts.push(Fact::new("host processor time a request", time(optimal), note));
        }
        Objective::LowestP99 { .. } => {}
    }
    let loaded = &page.study.checked.settled.loaded;
    let interval = format!(
        "95% {}-{}",
        short(unit.of_rate(loaded.throughput.low)),
        short(unit.of_rate(loaded.throughput.high))
    );
    let gap = page.study.checked.settled.gap.as_ref();
    let blind = gap.and_then(|gap| gap.blind.as_ref());
    facts.push(match loaded.throughput.result() {
        // A figure would be read as a confirmation.
        Some(_) if blind.is_some() => {
            let why = blind.map_or("", String::as_str);
            Fact::new("on the loaded twin", "no figure", format!("it confirms nothing: {why}"))
        }
        Some(carried) => Fact::new(
            "on the loaded twin",
            format!("{} {}", short(unit.of_rate(carried)), unit.name()),
            format!("{interval}; validates the queueing model only"),
        ),
        None => Fact::new(
            "on the loaded twin",
            "no figure",
            format!("{interval}, which is wider than its mean: it confirms nothing"),
        ),
    });
    if let Some(gap) = gap.filter(|gap| gap.blind.is_none()) {
        let said = gap_text(gap, &|rate| short(unit.of_rate(rate)), unit.name());
        facts.push(Fact::new(
            if gap.is_unclear() { "the twin does not tell" } else { "twin and plan differ" },
            signed((gap.carried_per_s / gap.planned_per_s - 1.0) * 100.0, 1),
            said,
        ));
    }
    facts.push(Fact::new(
        "basis",
        sure.basis.name(),
        format!("{}; rests on {}", guesses_text(&sure.rests_on), rests_text(&sure.rests_on)),
    ));
    facts.push(Fact::new(
        "best in",
        format!("{:.0}% of draws{}{}", sure.best_in * 100.0, page.best_by(), page.variant_set()),
        match sure.carried_in < 1.0 {
            true => format!(
                "of those that carry it, {:.0}% of {} joint draws",
                sure.carried_in * 100.0,
                sure.draws
            ),
            false => format!("{} joint draws of every uncertain number", sure.draws),
        } + &page.undrawn(),
    ));
    let bounds: Vec<&str> = page.bounds().map(|bound| bound.name.as_str()).collect();
    if !bounds.is_empty() {
        facts.push(Fact::new("binds", bounds.join(", "), ""));
    }
    let answer = Section::new("answer", "The answer")
        .saying(format!("Goal: {}{}.", page.goal(), page.constraints()))
        .with(PageBlock::Facts(facts));
    match page.notes() {
        notes if notes.is_empty() => answer,
        notes => answer.with(PageBlock::Notes(notes)),
    }
}

/// The advice that gains on the twin; nothing where none does.
fn advice(page: &Page<'_>) -> Option<Section> {
    let found = &page.study.advised.advice;
    if let Some(why) = page.unmeasured() {
        return Some(Section::new("advice", "Advice").saying(format!("Not measured, since {why}.")));
    }
    if found.is_empty() {
        return None;
    }
    let mut table = Table::new(vec![
        ("rule".into(), false),
        ("gain".into(), false),
        ("why".into(), false),
        ("remedy".into(), false),
    ]);
    for one in found {
        let gain = headline(one, page.study.advised.objective, page.unit());
        table.row(vec![one.rule.to_string(), gain, one.why.clone(), one.remedy.clone()]);
    }
    let said =
        "Changes to the design whose gain the twin measures; `offpath check DESIGN --fix` writes them.";
    Some(Section::new("advice", "Advice").saying(said).with(PageBlock::Table(table)))
}

fn alternatives(page: &Page<'_>) -> Section {
    let (plan, unit) = (page.plan(), page.unit());
    let throughput = format!("throughput ({})", unit.name());
    let mut table = Table::new(vec![
        ("name".into(), false),
        ("what it does".into(), false),
        (throughput.clone(), true),
        ("80% interval".into(), true),
        ("latency (us)".into(), true),
        ("binds".into(), false),
        ("why".into(), false),
        ("basis".into(), false),
    ]);
    let mut rows = Vec::new();
    for one in &plan.alternatives {
        let name = match &one.device {
            Some(device) => format!("{} ({device})", one.name),
            None => one.name.clone(),
        };
        table.row(vec![
            name.clone(),
            one.description.clone(),
            short(unit.of_rate(one.rate.value)),
            page.range(&one.rate),
            short(one.latency_s.value * 1e6),
            one.binding.clone(),
            one.reason.clone(),
            one.basis.name().to_string(),
        ]);
        rows.push((name, one.rate));
    }
    let bars = Series::bars("alone", rows.iter().map(|(_, rate)| unit.of_rate(rate.value))).with_band(
        rows.iter()
            .enumerate()
            .map(|(at, (_, rate))| (at as f64, unit.of_rate(rate.range_80.0), unit.of_rate(rate.range_80.1)))
            .collect(),
    );
    let optimal = unit.of_rate(plan.optimal.rate.value);
    let line = Series::line("best mix", (0..rows.len()).map(|at| (at as f64, optimal)).collect());
    let chart = Chart {
        title: "Alternatives, each alone, and the best mix".into(),
        caption: "The interval holds 80% of the joint draws of every uncertain number, widened by past errors but where the alternative is fitted.".into(),
        x: Axis::categories("alternative", rows.into_iter().map(|(name, _)| name)),
        y: Axis::linear(throughput),
        series: vec![bars, line],
        marks: Vec::new(),
    };
    Section::new("alternatives", "Alternatives, each alone")
        .with(PageBlock::Chart(chart))
        .with(PageBlock::Table(table))
}

fn mixes(page: &Page<'_>) -> Section {
    let (plan, unit) = (page.plan(), page.unit());
    let all: Vec<&Mix> = [&plan.optimal, &plan.greedy].into_iter().chain(&plan.mixes).collect();
    let mut table = Table::of(&["mix", "#throughput", "#80% interval", "#latency (us)", "shares"]);
    table.columns[1].0 = format!("throughput ({})", unit.name());
    for mix in &all {
        table.row(vec![
            mix.name.clone(),
            short(unit.of_rate(mix.rate.value)),
            page.range(&mix.rate),
            short(mix.latency_s * 1e6),
            shares_text(&mix.shares),
        ]);
    }
    table.marked.insert(0);
    let names: Vec<&str> =
        plan.alternatives.iter().filter(|one| one.mixed).map(|one| one.name.as_str()).collect();
    let series = all
        .iter()
        .map(|mix| {
            let share =
                |name: &&str| mix.shares.iter().find(|(own, _)| own == name).map_or(0.0, |(_, share)| *share);
            Series::bars(mix.name.clone(), names.iter().map(share))
        })
        .collect();
    let chart = Chart {
        title: "Shares of the requests".into(),
        caption: String::new(),
        x: Axis::categories("alternative", names.iter().copied()),
        y: Axis::linear("share of requests").written(Ticks::Percent),
        series,
        marks: Vec::new(),
    };
    let mut notes = Vec::new();
    if page.study.design.objective == Objective::MostThroughput {
        let gain = percent(plan.optimal.rate.value, plan.greedy.rate.value);
        notes.push(format!("The best mix is {} over greedy{}.", signed(gain, 1), page.why_better(gain)));
    }
    if let Some(saved) = network_saved(&page.study.design, plan.optimal.network_bytes) {
        notes.push(format!(
            "The mix sends {}% fewer payload bytes over the network than plain copies would.",
            fixed(saved, 0)
        ));
    }
    Section::new("mix", "Mix")
        .with(PageBlock::Chart(chart))
        .with(PageBlock::Table(table))
        .with(PageBlock::Notes(notes))
}

fn load_curve(page: &Page<'_>, curve: &[LoadPoint]) -> Option<Section> {
    let unit = page.unit();
    let line = |name: &str, share: f64| {
        let at = |point: &LoadPoint| {
            let latency = point.loaded.latencies.quantile(share)?.as_us();
            Some((unit.of_rate(point.loaded.throughput.result()?), latency))
        };
        Series::line(name, curve.iter().filter_map(at).collect())
    };
    let chart = Chart {
        title: "Latency over throughput of the best mix".into(),
        caption:
            "On the twin, arrivals at random. No evidence backs tails: this validates the queueing model only."
                .into(),
        x: Axis::linear(format!("throughput ({})", unit.name())),
        y: Axis::linear("latency (us)"),
        series: vec![line("p99", 0.99), line("p50", 0.5)],
        marks: Vec::new(),
    };
    (!curve.is_empty()).then(|| Section::new("load", "Latency over load").with(PageBlock::Chart(chart)))
}

fn stations(page: &Page<'_>) -> Section {
    let plan = page.plan();
    // A run that confirms nothing carried another load than the mix's.
    let shown = page.busiest().is_some();
    let fullest = page.study.checked.settled.loaded.fullest.iter().filter(|_| shown);
    let load = StationLoad {
        shares: fullest.map(|(n, (_, s))| (n.clone(), *s)).collect(),
        binding: page.bounds().map(|bound| bound.name.clone()).collect(),
    };
    let notes = page
        .bounds()
        .map(|bound| match bound.gain_percent {
            Some(gain) => {
                let brings = brings(gain, &page.study.design.objective);
                format!("{} binds: {}. 10% more of it brings {brings}.", bound.name, bound.meaning)
            }
            None => format!("{} binds: {}.", bound.name, bound.meaning),
        })
        .collect();
    let together = plan.optimal.bounds.len() > 1
        && plan.optimal.bounds.iter().all(|bound| bound.gain_percent.is_some_and(|gain| gain < 0.05));
    let mut section = Section::new("stations", "What binds, and why")
        .saying(match shown {
            true => "How busy the loaded twin keeps each station under the best mix.",
            false => "The twin confirms nothing here, so how busy stations are is not shown.",
        })
        .with(PageBlock::Topology(Topology::new(&page.study.system, Some(&load))))
        .with(PageBlock::Notes(notes));
    if together {
        section = section.with(PageBlock::Paragraph("Only more of all of them together helps.".into()));
    }
    section
}

fn confidence(page: &Page<'_>) -> Section {
    let (plan, unit) = (page.plan(), page.unit());
    // Times are drawn in microseconds.
    let (shown, axis): (&dyn Fn(f64) -> f64, _) = match page.study.design.objective {
        Objective::MostThroughput => {
            (&|worth| unit.of_rate(worth), format!("throughput of the best mix ({})", unit.name()))
        }
        Objective::LeastHostCpu { .. } => {
            (&|worth| worth * 1e6, "host processor time of the best mix (us a request)".to_string())
        }
        Objective::LowestP99 { .. } => {
            (&|worth| worth * 1e6, "mean unloaded latency of the best mix (us)".to_string())
        }
    };
    let value = shown(plan.worth.value);
    let rows: Vec<Span> = plan
        .influences
        .iter()
        .take(12)
        .filter_map(|one| {
            Some(Span {
                name: one.number.clone(),
                from: shown(one.at_low?),
                to: shown(one.at_high?),
                point: Some(value),
                text: format!("{} to {}", one.low, one.high),
                strong: one.changes.is_some(),
            })
        })
        .collect();
    let mut section = Section::new("confidence", "Confidence");
    if !rows.is_empty() {
        section = section.with(PageBlock::Spans(Spans {
            title: "Numbers that move the best mix".into(),
            caption: "One number at a time, at either end of its range; the stroke is the plan. A dark span \
                      changes which alternatives to mix. The heaviest are planned again there; of the others what \
                      was observed is scaled."
                .into(),
            axis,
            text: "range of the number".into(),
            rows,
        }));
    }
    // The lines of the terminal, a remark each.
    let remarks = page.confidence();
    section.with(PageBlock::Notes(remarks.lines().map(str::to_string).collect()))
}

fn by_parameter(page: &Page<'_>) -> Option<Section> {
    let sweep = page.study.sweep.as_ref()?;
    let first = sweep.rows.iter().find_map(|(_, row)| row.as_ref().ok())?;
    let unit = page.unit();
    let line = |name: &str, value: &dyn Fn(&Solved) -> Option<f64>| {
        let at =
            |(at, row): &(f64, Result<Solved, String>)| Some((*at, unit.of_rate(value(row.as_ref().ok()?)?)));
        Series::line(name, sweep.rows.iter().filter_map(at).collect())
    };
    let mut series = vec![line("best mix", &|row| Some(row.rate)), line("greedy", &|row| Some(row.greedy))];
    for (at, (name, _)) in first.mixes.iter().enumerate() {
        series.push(line(name, &|row| row.mixes.get(at).map(|(_, rate)| *rate)));
    }
    for (at, (name, ..)) in first.alternatives.iter().enumerate() {
        series.push(line(name, &|row| row.alternatives.get(at).map(|(_, rate, _)| *rate)));
    }
    let chart = Chart {
        title: format!("Throughput by {}", sweep.parameter),
        caption: String::new(),
        x: Axis::linear(sweep.parameter.clone()),
        y: Axis::linear(format!("throughput ({})", page.unit().name())),
        series,
        marks: Vec::new(),
    };
    let mut table = Table::of(&["#value", "best mix"]);
    for (value, row) in &sweep.rows {
        let value = page.study.design.parameter_text(&sweep.parameter, *value);
        let mix = row.as_ref().map_or_else(Clone::clone, |row| page.solved_text(row));
        table.row(vec![value, mix]);
    }
    let section = Section::new("parameter", format!("By {}", sweep.parameter));
    Some(section.with(PageBlock::Chart(chart)).with(PageBlock::Table(table)))
}

fn few_clients(page: &Page<'_>) -> Option<Section> {
    if page.study.clients.is_empty() {
        return None;
    }
    let unit = page.unit();
    let series = page
        .study
        .clients
        .iter()
        .map(|(name, runs)| {
            let points = page.study.design.clients.iter().zip(runs);
            let points = points
                .filter_map(|(count, carried)| Some((f64::from(*count), unit.of_rate(carried.result()?))));
            Series::line(name.clone(), points.collect())
        })
        .collect();
    let chart = Chart {
        title: "Throughput of few clients, one request each".into(),
        caption: "On the twin.".into(),
        x: Axis::linear("clients"),
        y: Axis::linear(format!("throughput ({})", unit.name())),
        series,
        marks: Vec::new(),
    };
    let mut section = Section::new("clients", "Few clients").with(PageBlock::Chart(chart));
    let ratios = page.client_ratios();
    if !ratios.is_empty() {
        let mut table =
            Table::of(&["ratio of throughputs", "#on the twin", "#published", "source", "#saturated"]);
        for one in &ratios {
            table.row(vec![
                format!("{} over {}", one.of, one.over),
                format!("{:.2} to {:.2}", one.low, one.high),
                format!("{} to {}", one.published_low, one.published_high),
                one.source.clone(),
                format!("{:.2}", one.saturated),
            ]);
        }
        section = section.with(PageBlock::Table(table));
    }
    Some(section)
}
