//! Charts over a number or over categories: lines with bands, grouped bars, published values.
//!
//! Model and drawing are apart: [`Chart`] is what is shown, [`Chart::svg`] how.

mod axes;
mod drawing;

pub(super) use axes::step;

use super::number;
use super::page::Table;
use axes::ends;
use drawing::{DASHES, Drawing, MARKERS};
use offpath_quantity::Bytes;

/// How a value becomes a place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum AxisScale {
    /// Evenly, from 0 where no value is below.
    Linear,
    /// By powers of two. The value 0 has a place of its own before the others.
    Log2,
    /// By powers of ten. The value 0 has a place of its own before the others.
    Log10,
    /// One place a name; a value is the position in this list, from 0.
    Categories(Vec<String>),
}

/// How the values of an axis are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ticks {
    /// As numbers; the axis' label has the unit.
    #[default]
    Number,
    /// As payloads with their unit: 64 B, 4 KiB, 9 MiB.
    Bytes,
    /// As percent of 1.
    Percent,
}

impl Ticks {
    /// A value in the axis' own form.
    fn write(self, value: f64) -> String {
        match self {
            Ticks::Number => number(value),
            Ticks::Bytes if value >= 0.0 && value.fract() == 0.0 && value < 1e18 => {
                Bytes::new(value as u64).to_string()
            }
            Ticks::Bytes => format!("{} B", number(value)),
            Ticks::Percent => format!("{}%", number(value * 100.0)),
        }
    }
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with the unit where the ticks have none, as in `latency (us)`.
    pub label: String,
    /// How values become places.
    pub scale: AxisScale,
    /// How values are written.
    pub ticks: Ticks,
    /// Values to be labelled; empty leaves the choice to the drawing.
    pub at: Vec<f64>,
}

impl Axis {
    /// An even axis.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: AxisScale::Linear, ticks: Ticks::Number, at: Vec::new() }
    }

    /// An axis by powers of two.
    pub fn log2(label: impl Into<String>, ticks: Ticks) -> Axis {
        Axis { label: label.into(), scale: AxisScale::Log2, ticks, at: Vec::new() }
    }

    /// An axis by powers of ten.
    pub fn log10(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: AxisScale::Log10, ticks: Ticks::Number, at: Vec::new() }
    }

    /// An axis with a place for each name.
    pub fn categories<N: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = N>) -> Axis {
        let names = names.into_iter().map(Into::into).collect();
        Axis {
            label: label.into(),
            scale: AxisScale::Categories(names),
            ticks: Ticks::Number,
            at: Vec::new(),
        }
    }

    /// With values written in another form.
    pub fn written(mut self, ticks: Ticks) -> Axis {
        self.ticks = ticks;
        self
    }

    /// A value as text: a category's name, or the number in the axis' form.
    fn value(&self, value: f64) -> String {
        match &self.scale {
            AxisScale::Categories(names) => {
                let named =
                    names.get(value.max(0.0) as usize).filter(|_| value.fract() == 0.0 && value >= 0.0);
                named.cloned().unwrap_or_else(|| number(value))
            }
            _ => self.ticks.write(value),
        }
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeriesKind {
    /// A line with a marker at each point.
    #[default]
    Line,
    /// Bars, side by side with those of the other series.
    Bars,
}

/// Values of one kind, as a rule predicted ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name, as it stands beside its line.
    pub name: String,
    /// Points in the order of x. The drawing leaves out a point that is not finite, that is beyond
    /// 10^18, or that has no place on an axis; the table has it.
    pub points: Vec<(f64, f64)>,
    /// The interval of y at each x, as (x, low, high).
    pub band: Option<Vec<(f64, f64, f64)>>,
    /// How it is drawn.
    pub kind: SeriesKind,
}

impl Series {
    /// A line.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), points, band: None, kind: SeriesKind::Line }
    }

    /// Bars, one a category.
    pub fn bars(name: impl Into<String>, heights: impl IntoIterator<Item = f64>) -> Series {
        let points = heights.into_iter().enumerate().map(|(at, height)| (at as f64, height)).collect();
        Series { name: name.into(), points, band: None, kind: SeriesKind::Bars }
    }

    /// With an interval at each x, as (x, low, high).
    pub fn with_band(mut self, band: Vec<(f64, f64, f64)>) -> Series {
        self.band = Some(band);
        self
    }
}

/// A published value beside the predicted ones.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedMark {
    /// Where it was measured.
    pub x: f64,
    /// What was measured; absent where only a range is published.
    pub y: Option<f64>,
    /// The range that was published, or that reading it from a plot leaves.
    pub range: Option<(f64, f64)>,
    /// Its short name, such as a row of the evidence.
    pub label: String,
    /// The series that predicts it, by name.
    pub series: Option<String>,
    /// Whether the prediction is within the row's tolerance. A miss carries a cross.
    pub within: bool,
}

impl PublishedMark {
    /// A value.
    pub fn at(x: f64, y: f64) -> PublishedMark {
        PublishedMark { x, y: Some(y), range: None, label: String::new(), series: None, within: true }
    }

    /// A range without a value.
    pub fn between(x: f64, low: f64, high: f64) -> PublishedMark {
        PublishedMark { y: None, range: Some((low, high)), ..PublishedMark::at(x, low) }
    }

    /// With a range around the value.
    pub fn ranged(mut self, low: f64, high: f64) -> PublishedMark {
        self.range = Some((low, high));
        self
    }

    /// With a short name.
    pub fn labelled(mut self, label: impl Into<String>) -> PublishedMark {
        self.label = label.into();
        self
    }

    /// Of the series with this name.
    pub fn of(mut self, series: impl Into<String>) -> PublishedMark {
        self.series = Some(series.into());
        self
    }

    /// One that the prediction misses.
    pub fn missed(mut self) -> PublishedMark {
        self.within = false;
        self
    }
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows, in a few words.
    pub title: String,
    /// What a reader has to know beside the axes.
    pub caption: String,
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn, in this order; at most [`MOST_SERIES`], the others stand in the table alone.
    pub series: Vec<Series>,
    /// Published values.
    pub marks: Vec<PublishedMark>,
}

/// Series that can be told apart without colour: each has another pair of dash and marker.
pub const MOST_SERIES: usize = DASHES.len() * MARKERS.len();

impl Chart {
    fn drawn(&self) -> &[Series] {
        &self.series[..self.series.len().min(MOST_SERIES)]
    }

    fn xs(&self) -> impl Iterator<Item = f64> {
        let bands = self.drawn().iter().flat_map(|series| series.band.iter().flatten().map(|band| band.0));
        let points = self.drawn().iter().flat_map(|series| series.points.iter().map(|point| point.0));
        points.chain(bands).chain(self.marks.iter().map(|mark| mark.x)).chain(self.x.at.iter().copied())
    }

    fn ys(&self) -> impl Iterator<Item = f64> {
        let bands = self
            .drawn()
            .iter()
            .flat_map(|series| series.band.iter().flatten().flat_map(|band| [band.1, band.2]));
        let points = self.drawn().iter().flat_map(|series| series.points.iter().map(|point| point.1));
        let marks = self.marks.iter().flat_map(|mark| {
            mark.y.into_iter().chain(mark.range.into_iter().flat_map(|(low, high)| [low, high]))
        });
        points.chain(bands).chain(marks).chain(self.y.at.iter().copied())
    }

    /// What the series and marks say, in a sentence for those who cannot see the drawing.
    fn described(&self) -> String {
        let mut parts = vec![format!("{} over {}.", self.y.label, self.x.label)];
        for series in self.drawn() {
            let ys = || series.points.iter().map(|point| point.1);
            let Some((low, high)) = ends(ys(), false) else { continue };
            let (low, high) = (self.y.ticks.write(low), self.y.ticks.write(high));
            parts.push(format!("{}: {low} to {high}.", series.name));
        }
        if !self.marks.is_empty() {
            let missed = self.marks.iter().filter(|mark| !mark.within).count();
            parts.push(format!("{} published values, {missed} of them missed.", self.marks.len()));
        }
        parts.join(" ")
    }

    /// The chart as an SVG element. `id` begins every name inside, so it has to be unique on a page.
    ///
    /// The element needs the style of a page ([`super::Page::html`]).
    pub fn svg(&self, id: &str) -> String {
        Drawing::new(self, id).write()
    }

    /// Every number of the chart, x by x.
    pub fn table(&self) -> Table {
        let mut columns = vec![(self.x.label.clone(), true)];
        let banded: Vec<bool> = self
            .series
            .iter()
            .map(|series| series.band.as_ref().is_some_and(|band| !band.is_empty()))
            .collect();
        for (series, banded) in self.series.iter().zip(&banded) {
            columns.push((series.name.clone(), true));
            if *banded {
                columns.push((format!("{}, range", series.name), true));
            }
        }
        let mut xs: Vec<f64> =
            self.series.iter().flat_map(|series| series.points.iter().map(|point| point.0)).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let rows = xs
            .iter()
            .map(|x| {
                let mut row = vec![self.x.value(*x)];
                for (series, banded) in self.series.iter().zip(&banded) {
                    let own = series.points.iter().find(|point| point.0 == *x);
                    row.push(own.map_or_else(|| "-".to_string(), |point| self.y.ticks.write(point.1)));
                    if *banded {
                        let band = series.band.iter().flatten().find(|band| band.0 == *x);
                        row.push(band.map_or_else(|| "-".to_string(), |band| self.range(band.1, band.2)));
                    }
                }
                row
            })
            .collect();
        let mut table = Table::new(columns);
        table.caption = format!("{} over {}", self.y.label, self.x.label);
        table.rows = rows;
        table
    }

    /// The published values, if there are any.
    pub fn published_table(&self) -> Option<Table> {
        if self.marks.is_empty() {
            return None;
        }
        let mut table = Table::new(vec![
            ("row".to_string(), false),
            ("of".to_string(), false),
            (self.x.label.clone(), true),
            (format!("published {}", self.y.label), true),
            ("range".to_string(), true),
            ("prediction".to_string(), false),
        ]);
        table.caption = "Published values".to_string();
        table.rows = self
            .marks
            .iter()
            .map(|mark| {
                vec![
                    mark.label.clone(),
                    mark.series.clone().unwrap_or_else(|| "-".to_string()),
                    self.x.value(mark.x),
                    mark.y.map_or_else(|| "-".to_string(), |y| self.y.ticks.write(y)),
                    mark.range.map_or_else(|| "-".to_string(), |(low, high)| self.range(low, high)),
                    if mark.within { "within tolerance" } else { "missed" }.to_string(),
                ]
            })
            .collect();
        Some(table)
    }

    fn range(&self, low: f64, high: f64) -> String {
        format!("{} to {}", self.y.ticks.write(low), self.y.ticks.write(high))
    }
}
