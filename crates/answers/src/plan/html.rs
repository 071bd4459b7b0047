//! A plan as a page with charts.

use super::answer::{
    AlternativeAnswer, CurveAnswer, MixAnswer, ParameterRow, PlanAnswer, SolvedAnswer, shares_text,
};
use super::confidence::rests_text;
use super::text::{percent, range, shown, time};
use crate::choices::ChoicesAnswer;
use crate::figures::{Goal, Throughput};
use crate::report::{
    Axis, Chart, Fact, Page as Html, PageBlock, Section, Series, Span, Spans, StationLoad, Table, Ticks,
    Topology,
};
use offpath_terminal::output::{fixed, short, signed};

/// The plan as a page with charts, latency over load among them.
pub(super) fn page(page: &PlanAnswer) -> Html {
    let mut sections = vec![answer(page), alternatives(page), mixes(page)];
    sections.extend(load_curve(page, &page.curve));
    sections.push(stations(page));
    sections.push(confidence(page));
    sections.extend(advice(page));
    sections.extend(what_if(page));
    sections.extend(by_parameter(page));
    sections.extend(few_clients(page));
    Html {
        title: format!("{} on {}", page.design, page.system.device),
        subtitle: match page.workload.as_str() {
            "" => page.system.line(),
            workload => format!("{workload}; {}", page.system.line()),
        },
        sections,
    }
}

fn answer(page: &PlanAnswer) -> Section {
    let (optimal, unit) = (&page.optimal, page.unit);
    let rate = |mix: &MixAnswer| format!("{} {unit}", short(mix.throughput.rate()));
    let range = range(&optimal.throughput);
    let note = if range.is_empty() {
        shares_text(&optimal.shares)
    } else {
        let median = short(optimal.throughput.rate() * page.recommendation.median_of_draws_share);
        format!("80% interval {range}, median {median} {unit}; {}", shares_text(&optimal.shares))
    };
    let mut facts = vec![Fact::new("best mix", rate(optimal), note)];
    facts.extend(page.lowest_p99().map(|p99| {
        Fact::new("lowest p99 found", format!("{p99} us"), "on the twin; no interval is known of a tail")
    }));
    let sure = &page.recommendation;
    let carried = format!("{:.0}% of draws", sure.load_carried_by_shares_in_share_of_draws * 100.0);
    match page.shares_carry() {
        Some(said) => facts.push(Fact::new("these shares carry the load in", carried, said)),
        // A rate without an interval is the same in all of them.
        None if range.is_empty() || page.twin.difference.is_some() => {}
        None => {
            facts.push(Fact::new("this or more in", carried, format!("of {}", page.shares_draws())));
        }
    }
    for over in &sure.over_other_devices {
        let change = |ratio: f64| signed((ratio - 1.0) * 100.0, 1);
        let said = format!(
            "80% interval {} to {}; {} on {} reaches {} {unit}; faster in {:.0}% of {} draws widened by past errors",
            change(over.ratio_low_80),
            change(over.ratio_high_80),
            over.alternative,
            over.device,
            short(optimal.throughput.rate() / over.ratio),
            over.faster_in_share_of_draws * 100.0,
            sure.draws
        );
        let title =
            if over.plain_nic { "over the plain NIC".to_string() } else { format!("over {}", over.device) };
        facts.push(Fact::new(title, change(over.ratio), said));
    }
    match page.goal {
        Goal::MostThroughput => {
            let gain = percent(optimal.throughput.rate(), page.greedy.throughput.rate());
            facts.push(Fact::new(
                "gain over greedy",
                signed(gain, 1),
                format!("greedy: {}, {}", rate(&page.greedy), shares_text(&page.greedy.shares)),
            ));
            if let Some(single) = page.best_single() {
                facts.push(Fact::new(
                    format!("gain over {} alone", single.name),
                    signed(percent(optimal.throughput.rate(), single.throughput.rate()), 1),
                    format!("{} {unit}{}", short(single.throughput.rate()), page.over_alone(&single.name)),
                ));
            }
        }
        Goal::LeastHostCpu => {
            let note = format!("greedy: {}", time(page.greedy.host_cpu_us_per_request));
            let own = time(optimal.host_cpu_us_per_request);
            facts.push(Fact::new("host processor time a request", own, note));
        }
        Goal::LowestP99 => {}
    }
    let carried = &page.twin.rates;
    let interval = format!("95% {}-{}", shown(carried.low_95()), shown(carried.high_95()));
    let gap = page.twin.difference.as_ref();
    let blind = gap.and_then(|gap| gap.blind_because.as_ref());
    facts.push(match (carried.throughput(), blind) {
        (_, Some(why)) => Fact::new("on the loaded twin", "no figure", format!("it confirms nothing: {why}")),
        (Some(carried), _) => Fact::new(
            "on the loaded twin",
            format!("{} {unit}", short(carried)),
            format!("{interval}; validates the queueing model only"),
        ),
        (None, _) => Fact::new(
            "on the loaded twin",
            "no figure",
            format!("{interval}, which is wider than its mean: it confirms nothing"),
        ),
    });
    if let Some(gap) = gap.filter(|gap| gap.blind_because.is_none()) {
        facts.push(Fact::new(
            if gap.unclear { "the twin does not tell" } else { "twin and plan differ" },
            gap.share.map_or_else(|| "no figure".to_string(), |share| signed(share * 100.0, 1)),
            gap.sentence(unit),
        ));
    }
    facts.push(Fact::new(
        "basis",
        sure.basis,
        format!("{}; rests on {}", sure.guesses_text(), rests_text(&sure.rests_on)),
    ));
    facts.push(Fact::new(
        "best in",
        format!(
            "{:.0}% of draws{}{}",
            sure.best_in_share_of_draws * 100.0,
            page.best_by(),
            page.variant_set()
        ),
        match sure.load_carried_in_share_of_draws < 1.0 {
            true => format!(
                "of those that carry it, {:.0}% of {} joint draws",
                sure.load_carried_in_share_of_draws * 100.0,
                sure.draws
            ),
            false => format!("{} joint draws of every uncertain number", sure.draws),
        } + &page.undrawn(),
    ));
    let bounds: Vec<&str> = page.bounds().map(|bound| bound.station.as_str()).collect();
    if !bounds.is_empty() {
        facts.push(Fact::new("binds", bounds.join(", "), ""));
    }
    let answer = Section::new("answer", "The answer")
        .saying(format!("Goal: {}{}.", page.objective, page.constraints()))
        .with(PageBlock::Facts(facts));
    let mut notes: Vec<String> =
        page.cache_text().map(|cache| format!("cache: {cache}")).into_iter().collect();
    notes.extend(page.measured_otherwise.lines());
    notes.extend(page.choices.as_ref().map_or_else(Vec::new, ChoicesAnswer::lines));
    notes.extend(page.refused_draws());
    notes.extend(page.unsettled());
    notes.extend(page.lacks_filling());
    notes.extend(page.notes.iter().cloned());
    match notes.is_empty() {
        true => answer,
        false => answer.with(PageBlock::Notes(notes)),
    }
}

/// What overlays and settings changed.
fn what_if(page: &PlanAnswer) -> Option<Section> {
    let lines = page.changes(page.changed.as_ref()?);
    Some(
        Section::new("what-if", "What-if")
            .with(PageBlock::Notes(lines.lines().map(str::to_string).collect())),
    )
}

/// The advice that gains on the twin; nothing where none does.
fn advice(page: &PlanAnswer) -> Option<Section> {
    let found = &page.advice;
    if let Some(why) = &page.advice_not_measured_because {
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
        let gain = one.headline(page.rate_unit());
        table.row(vec![one.rule.to_string(), gain, one.why.clone(), one.remedy.clone()]);
    }
    let said =
        "Changes to the design whose gain the twin measures; `offpath check DESIGN --fix` writes them.";
    Some(Section::new("advice", "Advice").saying(said).with(PageBlock::Table(table)))
}

fn alternatives(page: &PlanAnswer) -> Section {
    let throughput = format!("throughput ({})", page.unit);
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
    for one in &page.alternatives {
        table.row(vec![
            one.title(),
            one.description.clone(),
            short(one.throughput.rate()),
            range(&one.throughput),
            short(one.unloaded_latency_us),
            one.binding_station.clone(),
            one.reason.clone(),
            one.basis.unwrap_or("-").to_string(),
        ]);
    }
    let rates: Vec<&Throughput> =
        page.alternatives.iter().map(|one| &one.throughput).chain([&page.optimal.throughput]).collect();
    let band = |(at, rate): (usize, &&Throughput)| {
        let (low, high) = rate.range_80();
        (at as f64, low, high)
    };
    let bars = Series::bars("throughput", rates.iter().map(|rate| rate.rate()))
        .with_band(rates.iter().enumerate().map(band).collect());
    let names = page.alternatives.iter().map(AlternativeAnswer::title).chain(["best mix".to_string()]);
    let chart = Chart {
        title: "Alternatives, each alone, and the best mix".into(),
        caption: "The interval holds 80% of the joint draws of every uncertain number, widened by past errors but where the alternative is fitted.".into(),
        x: Axis::categories("alternative", names),
        y: Axis::linear(throughput),
        series: vec![bars],
        marks: Vec::new(),
    };
    let section = Section::new("alternatives", "Alternatives, each alone")
        .with(PageBlock::Chart(chart))
        .with(PageBlock::Table(table));
    match page.host_time() {
        Some(said) => section.with(PageBlock::Notes(vec![said])),
        None => section,
    }
}

fn mixes(page: &PlanAnswer) -> Section {
    let all: Vec<&MixAnswer> = [&page.optimal, &page.greedy].into_iter().chain(&page.mixes).collect();
    let mut table = Table::of(&["mix", "#throughput", "#80% interval", "#latency (us)", "shares"]);
    table.columns[1].0 = format!("throughput ({})", page.unit);
    for mix in &all {
        table.row(vec![
            mix.name.clone(),
            short(mix.throughput.rate()),
            range(&mix.throughput),
            short(mix.unloaded_latency_us),
            shares_text(&mix.shares),
        ]);
    }
    table.marked.insert(0);
    let names: Vec<&str> =
        page.alternatives.iter().filter(|one| one.mixed).map(|one| one.name.as_str()).collect();
    let series = all
        .iter()
        .map(|mix| {
            let share = |name: &&str| mix.shares.get(name).copied().unwrap_or(0.0);
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
    let mut notes: Vec<String> = page.taken().lines().map(str::to_string).collect();
    notes.extend(page.mix_remarks());
    if page.goal == Goal::MostThroughput {
        let gain = percent(page.optimal.throughput.rate(), page.greedy.throughput.rate());
        notes.push(format!("The best mix is {} over greedy{}.", signed(gain, 1), page.why_better(gain)));
    }
    if let Some(saved) = page.optimal.network_saved_percent {
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

fn load_curve(page: &PlanAnswer, curve: &[CurveAnswer]) -> Option<Section> {
    let line = |name: &str, latency: fn(&CurveAnswer) -> Option<f64>| {
        let at = |point: &CurveAnswer| {
            let latency = latency(point)?;
            Some((point.rates.throughput()?, latency))
        };
        Series::line(name, curve.iter().filter_map(at).collect())
    };
    let chart = Chart {
        title: "Latency over throughput of the best mix".into(),
        caption:
            "On the twin, arrivals at random. No evidence backs tails: this validates the queueing model only."
                .into(),
        x: Axis::linear(format!("throughput ({})", page.unit)),
        y: Axis::linear("latency (us)"),
        series: vec![line("p99", |point| point.latency_us_p99), line("p50", |point| point.latency_us_p50)],
        marks: Vec::new(),
    };
    (!curve.is_empty()).then(|| Section::new("load", "Latency over load").with(PageBlock::Chart(chart)))
}

fn stations(page: &PlanAnswer) -> Section {
    let load = StationLoad {
        shares: page.twin.utilization.clone(),
        binding: page.bounds().map(|bound| bound.station.clone()).collect(),
    };
    let notes = page
        .bounds()
        .map(|bound| match bound.gain_percent_for_10_percent_more {
            Some(gain) => {
                let brings = page.brings(gain);
                format!("{} binds: {}. 10% more of it brings {brings}.", bound.station, bound.meaning)
            }
            None => format!("{} binds: {}.", bound.station, bound.meaning),
        })
        .collect();
    let mut section = Section::new("stations", "What binds, and why")
        .saying(match page.busiest().is_some() {
            true => "How busy the loaded twin keeps each station under the best mix.",
            false => "The twin confirms nothing here, so how busy stations are is not shown.",
        })
        .with(PageBlock::Topology(Topology::new(&page.system, &page.topology, Some(&load))))
        .with(PageBlock::Notes(notes));
    if page.optimal.slots_bind {
        let held = "What more brings is told with slots held for as long as now.";
        section = section.with(PageBlock::Paragraph(held.into()));
    }
    if page.optimal.binds_together() {
        section = section.with(PageBlock::Paragraph("Only more of all of them together helps.".into()));
    }
    section
}

fn confidence(page: &PlanAnswer) -> Section {
    let axis = match page.goal {
        Goal::MostThroughput => format!("throughput of the best mix ({})", page.unit),
        Goal::LeastHostCpu => "host processor time of the best mix (us a request)".to_string(),
        Goal::LowestP99 => "mean unloaded latency of the best mix (us)".to_string(),
    };
    let rows: Vec<Span> = page
        .influences
        .iter()
        .take(12)
        .filter_map(|one| {
            Some(Span {
                name: one.number.clone(),
                from: one.optimal.at_low()?,
                to: one.optimal.at_high()?,
                point: page.recommendation.worth.value(),
                text: format!("{} to {}", one.low, one.high),
                strong: one.changes_recommendation.is_some(),
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

fn by_parameter(page: &PlanAnswer) -> Option<Section> {
    let sweep = page.sweep.as_ref()?;
    let first = sweep.rows.iter().find_map(|row| row.solved.as_ref())?;
    let unit = sweep.rows.first()?.value_unit;
    let labelled = |unit: &str| Axis::linear(format!("{} ({unit})", sweep.parameter));
    let (x, scale) = match unit {
        None => (Axis::linear(sweep.parameter.clone()), 1.0),
        Some("B") => (Axis::linear(sweep.parameter.clone()).written(Ticks::Bytes), 1.0),
        Some("ps") => (labelled("us"), 1e-6),
        Some(unit) => (labelled(unit), 1.0),
    };
    let line = |name: &str, value: &dyn Fn(&SolvedAnswer) -> Option<f64>| {
        let at = |row: &ParameterRow| Some((row.value * scale, value(row.solved.as_ref()?)?));
        let points = sweep.rows.iter().filter_map(at);
        Series::line(name, points.collect())
    };
    let mut series =
        vec![line("best mix", &|row| row.rates.optimal()), line("greedy", &|row| row.rates.greedy())];
    series.extend(first.mixes.iter().map(|(name, _)| line(name, &|row| row.mixes.get(name))));
    series.extend(first.alternatives.iter().map(|(name, _)| line(name, &|row| row.alternatives.get(name))));
    let chart = Chart {
        title: format!("Throughput by {}", sweep.parameter),
        caption: String::new(),
        x,
        y: Axis::linear(format!("throughput ({})", page.unit)),
        series,
        marks: Vec::new(),
    };
    let mut table = Table::of(&["#value", "best mix"]);
    for row in &sweep.rows {
        let mix = page.solution(row.solved.as_ref(), row.refused.as_ref());
        table.row(vec![row.text.clone(), mix.unwrap_or_default()]);
    }
    let section = Section::new("parameter", format!("By {}", sweep.parameter));
    Some(section.with(PageBlock::Chart(chart)).with(PageBlock::Table(table)))
}

fn few_clients(page: &PlanAnswer) -> Option<Section> {
    if page.clients.is_empty() {
        return None;
    }
    let series = page
        .clients
        .iter()
        .map(|one| {
            let counts = page.client_counts.iter();
            let points =
                counts.filter_map(|count| Some((f64::from(*count), one.throughput.get(&count.to_string())?)));
            Series::line(one.name.clone(), points.collect())
        })
        .collect();
    let chart = Chart {
        title: "Throughput of few clients, one request each".into(),
        caption: "On the twin.".into(),
        x: Axis::linear("clients"),
        y: Axis::linear(format!("throughput ({})", page.unit)),
        series,
        marks: Vec::new(),
    };
    let mut section = Section::new("clients", "Few clients").with(PageBlock::Chart(chart));
    let ratios = &page.client_ratios;
    if !ratios.is_empty() {
        let mut table =
            Table::of(&["ratio of throughputs", "#on the twin", "#published", "source", "#saturated"]);
        for one in ratios {
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
