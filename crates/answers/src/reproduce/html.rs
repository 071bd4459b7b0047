//! Published rows beside their predictions, as a page with the papers' figures.

use super::text::{HEADER, log_parts};
use super::{CountAnswer, ReproduceAnswer, RowAnswer, SummaryAnswer};
use crate::report::{
    Axis, Chart, Fact, Page, PageBlock, PublishedChart, PublishedMark, Section, Series, Table, Ticks,
};
use crate::rows::figure as shown;
use offpath_evidence::figure::FigureScale as EvidenceScale;
use offpath_evidence::{Figure as EvidenceFigure, RowRole};
use offpath_terminal::output::TableCell;

/// The whole report: the score, the figures by part, variants, what mispredictions taught, every row.
pub fn page(answer: &ReproduceAnswer) -> Page {
    let mut sections = vec![score(&answer.score)];
    let mut groups: Vec<&str> = Vec::new();
    for one in &answer.figures {
        if !groups.contains(&one.group.as_str()) {
            groups.push(&one.group);
        }
    }
    for group in groups {
        let mut section = Section::new(group, group);
        for one in answer.figures.iter().filter(|one| one.group == group) {
            section = section.with(PageBlock::Figure(drawn(one)));
        }
        sections.push(section);
    }
    if !answer.variants.is_empty() {
        sections.push(
            Section::new("variants", "Variants of open mechanisms")
                .saying("Rows that hold under one of two mechanisms alone.")
                .with(PageBlock::Notes(answer.variant_lines().collect())),
        );
    }
    let notes = answer.log.iter().map(|entry| {
        let (rows, rest) = log_parts(entry);
        format!("{rows} {rest}")
    });
    sections.push(Section::new("log", "What mispredictions taught").with(PageBlock::Notes(notes.collect())));
    sections.push(Section::new("rows", "Every row").with(PageBlock::Table(rows(&answer.rows))));
    let overlays = &answer.overlays;
    let with = if overlays.is_empty() { String::new() } else { format!(", with {}", overlays.join(", ")) };
    Page {
        title: "Published measurements and predictions".to_string(),
        subtitle: format!("wei2023 and wei2022 on the shipped profiles of BlueField-2 and ConnectX-6{with}"),
        sections,
    }
}

fn score(score: &SummaryAnswer) -> Section {
    let fact = |name: &str, count: CountAnswer, note: &str| {
        Fact::new(
            name,
            count.percent.map_or_else(|| "-".to_string(), |share| format!("{share:.1}%")),
            format!("{} of {} rows {note}", count.within, count.of),
        )
    };
    let median = |value: Option<f64>| format!("{:.1}%", 100.0 * value.unwrap_or(0.0));
    let errors = &score.median_errors;
    let (nearest, links) = (&errors.nearest_row, &errors.links_alone);
    Section::new("score", "How far off")
        .saying(
            "A hollow diamond is a published value, a whisker its range, a cross a prediction outside its tolerance. \
             Bands hold 80% of the joint draws of the profile's numbers. A ratio stands over the predicted series \
             that it is a ratio to.",
        )
        .with(PageBlock::Facts(vec![
            fact("predicted numbers within tolerance", score.measured, "that were measured"),
            fact("inside their 80% interval", score.covered_80, "of the same"),
            fact("predicted orders and bounds", score.orders, "that hold"),
            fact("fitted rows within tolerance", score.fitted, "that the fit reads"),
            fact("formulas, limits and counts", score.exact, "on links without headers"),
            Fact::new(
                "median error of predictions",
                median(errors.model),
                format!(
                    "of {} rows; of the {} that the nearest published row answers too {}, nearest row {}; of the {} \
                     that links alone answer too {}, links alone {}",
                    errors.rows,
                    nearest.rows,
                    median(nearest.model),
                    median(nearest.other),
                    links.rows,
                    median(links.model),
                    median(links.other)
                ),
            ),
        ]))
}

/// The label of an axis with its unit.
fn labelled(axis: &offpath_evidence::figure::FigureAxis) -> String {
    if axis.unit.is_empty() { axis.label.clone() } else { format!("{} ({})", axis.label, axis.unit) }
}

fn drawn(one: &EvidenceFigure) -> PublishedChart {
    let categories = one.x.scale == EvidenceScale::Category;
    let x = match one.x.scale {
        EvidenceScale::Category => {
            Axis::categories(labelled(&one.x), one.series.iter().map(|series| series.name.clone()))
        }
        EvidenceScale::Log2 if one.x.unit == "B" => Axis::log2(one.x.label.clone(), Ticks::Bytes),
        EvidenceScale::Log2 => Axis::log2(labelled(&one.x), Ticks::Number),
        EvidenceScale::Linear => Axis::linear(labelled(&one.x)),
    };
    let y = Axis::linear(labelled(&one.y));
    let series: Vec<Series> = if categories {
        let places = one.series.iter().filter_map(|series| series.places.first());
        let band: Vec<(f64, f64, f64)> = places
            .clone()
            .enumerate()
            .filter_map(|(at, place)| Some((at as f64, place.low?, place.high?)))
            .collect();
        let bars = Series::bars("predicted", places.map(|place| place.y));
        vec![if band.is_empty() { bars } else { bars.with_band(band) }]
    } else {
        one.series
            .iter()
            .map(|series| {
                let line = Series::line(
                    series.name.clone(),
                    series.places.iter().map(|place| (place.x, place.y)).collect(),
                );
                let band: Vec<(f64, f64, f64)> = series
                    .places
                    .iter()
                    .map(|place| (place.x, place.low.unwrap_or(place.y), place.high.unwrap_or(place.y)))
                    .collect();
                if band.iter().any(|(_, low, high)| high > low) { line.with_band(band) } else { line }
            })
            .collect()
    };
    let marks = one
        .marks
        .iter()
        .map(|mark| {
            let at = one.series.iter().position(|series| series.name == mark.series).unwrap_or(0);
            let x = if categories { at as f64 } else { mark.x };
            let point = if mark.low == mark.high {
                PublishedMark::at(x, mark.low)
            } else {
                PublishedMark::between(x, mark.low, mark.high)
            };
            let conflict = if mark.role == RowRole::Conflict { ", conflict" } else { "" };
            let point = point.labelled(format!("{}{conflict}", mark.row)).of(if categories {
                "predicted"
            } else {
                &mark.series
            });
            if mark.within { point } else { point.missed() }
        })
        .collect();
    let over: Vec<String> = one
        .marks
        .iter()
        .filter_map(|mark| mark.over.as_ref().map(|over| format!("{} is published over {over}", mark.row)))
        .collect();
    let mut caption = one.caption.clone();
    if !over.is_empty() {
        caption += &format!(" {}.", over.join(", "));
    }
    if one.series.iter().flat_map(|series| &series.places).any(|place| place.low != place.high) {
        caption += " Bands and ranges hold 80% of the draws of the numbers, without past errors.";
    }
    PublishedChart::new(
        one.id.clone(),
        one.source.clone(),
        Chart { title: one.title.clone(), caption, x, y, series, marks },
    )
}

fn rows(all: &[RowAnswer]) -> Table {
    let numeric = ["error", "null error"];
    let columns = HEADER
        .iter()
        .map(|head| (head.to_string(), numeric.contains(head)))
        .chain([("states".to_string(), false), ("note".to_string(), false)])
        .collect();
    let mut table = Table::new(columns);
    for (index, row) in all.iter().enumerate() {
        let cells = row.entries().into_iter().map(|entry| match entry {
            TableCell::Text(text)
            | TableCell::Name(text)
            | TableCell::Strong(text)
            | TableCell::Number(text) => text,
        });
        let mut cells: Vec<String> = cells.collect();
        let decides = match (row.predicted, &row.place) {
            (Some(value), Some(place)) if row.predicted_from != row.predicted_to => {
                format!(" (decides: {} at {place})", shown(value))
            }
            _ => String::new(),
        };
        cells.push(format!("{}{decides}", row.states));
        cells.push(row.reason.clone());
        if row.misses {
            table.marked.insert(index);
        }
        table.rows.push(cells);
    }
    table
}
