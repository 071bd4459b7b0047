//! The figures of the papers as data: predicted curves with their bands, and the published points.

use crate::bench::{Bench, ExperimentError};
use crate::experiment::Experiment;
use crate::reproduce::{Line, is_run_on_twin, open_mechanisms, uncertain};
use crate::row::RowRole;
use crate::sample::drawn;
use offpath_plan::sample::quantile;
use offpath_profile::Library;
use serde::Deserialize;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How an axis is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureScale {
    /// Evenly.
    Linear,
    /// By powers of two, as payloads are.
    Log2,
    /// One place for each series.
    Category,
}

/// An axis with its unit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureAxis {
    /// What it shows.
    pub label: String,
    /// The unit; empty where the values have none.
    #[serde(default)]
    pub unit: String,
    /// How it is laid out.
    pub scale: FigureScale,
}

/// A place of a predicted curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Where on the x axis; 0 on an axis of categories.
    pub x: f64,
    /// The prediction.
    pub y: f64,
    /// The lower end of its interval, where numbers with intervals move it.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// A predicted curve, or a bar where the x axis has categories.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureSeries {
    /// Its name.
    pub name: String,
    /// Its places.
    pub places: Vec<CurvePoint>,
}

/// A published value over a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedPoint {
    /// The evidence row.
    pub row: String,
    /// The series that it belongs to.
    pub series: String,
    /// Where on the x axis; 0 on an axis of categories.
    pub x: f64,
    /// The published value, the lower end of a range.
    pub low: f64,
    /// The upper end of a range; the same where there is one value.
    pub high: f64,
    /// Whether the row's prediction is within its tolerance.
    pub within: bool,
    /// What the row is used for.
    pub role: RowRole,
    /// The predicted series that a published ratio was multiplied with.
    pub over: Option<String>,
}

/// A figure, evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name, as in `fig3-latency-read`.
    pub id: String,
    /// The part of the report that it stands in.
    pub group: String,
    /// Its title.
    pub title: String,
    /// The figure that it answers to, as in `wei2023 Fig 3`.
    pub source: String,
    /// What it shows, under what load.
    pub caption: String,
    /// The x axis.
    pub x: FigureAxis,
    /// The y axis.
    pub y: FigureAxis,
    /// The predicted curves.
    pub series: Vec<FigureSeries>,
    /// The published points.
    pub marks: Vec<PublishedPoint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    figure: Vec<RawFigure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFigure {
    id: String,
    group: String,
    title: String,
    source: String,
    caption: String,
    x: FigureAxis,
    y: FigureAxis,
    series: Vec<RawSeries>,
    marks: Vec<RawMark>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSeries {
    name: String,
    experiment: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMark {
    row: String,
    series: String,
    #[serde(default)]
    x: f64,
    over: Option<String>,
}

/// Runs the experiments of every figure, and places the rows of `lines` over them.
///
/// # Errors
/// [`ExperimentError`] with the figure's name where an experiment or a mark is refused.
pub fn figures(
    library: &Library,
    lines: &[Line],
    overlays: &[String],
    threads: usize,
) -> Result<Vec<Figure>, ExperimentError> {
    let raw: RawFile = toml::from_str(include_str!("../../../evidence/figures.toml"))
        .map_err(|error| ExperimentError::Incomplete(format!("of evidence/figures.toml: {error}")))?;
    let (uncertain, open) = (uncertain(library)?, open_mechanisms(library, overlays)?);
    let next = AtomicUsize::new(0);
    let done: Vec<Result<Vec<(usize, Figure)>, ExperimentError>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                let (next, uncertain, open, raw) = (&next, &uncertain, &open, &raw);
                scope.spawn(move || {
                    let own = Bench::new(library.clone()).under(overlays.to_vec());
                    let moved = drawn(&own, uncertain, open);
                    let mut done = Vec::new();
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(figure) = raw.figure.get(index) else { return Ok(done) };
                        let drawn = draw(figure, &own, &moved, lines).map_err(|error| {
                            ExperimentError::Refused(format!("figure {}: {error}", figure.id))
                        })?;
                        done.push((index, drawn));
                    }
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    let mut figures = Vec::new();
    for part in done {
        figures.extend(part?);
    }
    figures.sort_by_key(|(index, _)| *index);
    Ok(figures.into_iter().map(|(_, figure)| figure).collect())
}

fn draw(raw: &RawFigure, own: &Bench, moved: &[Bench], lines: &[Line]) -> Result<Figure, ExperimentError> {
    let series = raw
        .series
        .iter()
        .map(|one| {
            let experiment =
                Experiment::parse(one.experiment.clone()).map_err(ExperimentError::Incomplete)?;
            curve(&one.name, &experiment, own, moved)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let marks = raw.marks.iter().map(|one| mark(one, &series, lines)).collect::<Result<Vec<_>, _>>()?;
    Ok(Figure {
        id: raw.id.clone(),
        group: raw.group.clone(),
        title: raw.title.clone(),
        source: raw.source.clone(),
        caption: raw.caption.clone(),
        x: raw.x.clone(),
        y: raw.y.clone(),
        series,
        marks,
    })
}

/// A curve with its band: 80% of the joint draws lie inside.
fn curve(
    name: &str,
    experiment: &Experiment,
    own: &Bench,
    drawn: &[Bench],
) -> Result<FigureSeries, ExperimentError> {
    let points = own.run(experiment)?.points;
    let mut spread: Vec<Vec<f64>> = vec![Vec::new(); points.len()];
    // Whole runs on the twin would be repeated too often.
    if !is_run_on_twin(experiment) {
        for bench in drawn {
            for (values, point) in spread.iter_mut().zip(bench.run(experiment)?.points) {
                values.push(point.value);
            }
        }
    }
    let places = points
        .iter()
        .zip(spread)
        .map(|(point, mut values)| {
            let x = ["range", "batch", "clients", "n"].iter().find_map(|name| point.variables.get(*name));
            values.sort_by(f64::total_cmp);
            let known = values.first() != values.last();
            CurvePoint {
                x: x.copied().unwrap_or(0.0),
                y: point.value,
                low: known.then(|| quantile(&values, 0.1).min(point.value)),
                high: known.then(|| quantile(&values, 0.9).max(point.value)),
            }
        })
        .collect();
    Ok(FigureSeries { name: name.to_string(), places })
}

fn mark(raw: &RawMark, series: &[FigureSeries], lines: &[Line]) -> Result<PublishedPoint, ExperimentError> {
    let refuse = |what: String| ExperimentError::Incomplete(format!("'s mark {} {what}", raw.row));
    let line = lines
        .iter()
        .find(|line| line.row.id == raw.row)
        .ok_or_else(|| refuse("is not an evidence row".to_string()))?;
    let claim = line.row.published.ok_or_else(|| refuse("has no published value".to_string()))?;
    if series.iter().all(|one| one.name != raw.series) {
        return Err(refuse(format!("belongs to `{}`, which is not a series", raw.series)));
    }
    let as_ratio = |value: f64| if line.row.unit == "%" { 1.0 + value / 100.0 } else { value };
    let (mut low, mut high) = claim.ends();
    match &raw.over {
        Some(over) => {
            let base = series
                .iter()
                .find(|one| one.name == *over)
                .and_then(|one| one.places.iter().find(|place| place.x == raw.x))
                .ok_or_else(|| refuse(format!("stands over `{over}`, which has no place at {}", raw.x)))?;
            (low, high) = (base.y * as_ratio(low), base.y * as_ratio(high));
        }
        // A change that is drawn where the axis shows ratios.
        None if raw.x > 0.0 && line.row.unit == "%" => (low, high) = (as_ratio(low), as_ratio(high)),
        None => {}
    }
    Ok(PublishedPoint {
        row: raw.row.clone(),
        series: raw.series.clone(),
        x: raw.x,
        low: low.min(high),
        high: low.max(high),
        within: line.verdict.as_ref().is_none_or(|verdict| verdict.within),
        role: line.row.role,
        over: raw.over.clone(),
    })
}
