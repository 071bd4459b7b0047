//! A chart as SVG.

use super::super::style::SERIES_COLOURS;
use super::super::{cut, escape, px, text_width};
use super::axes::{Placed, minor, shown, x_axis, x_ticks, y_axis, y_ticks};
use super::{AxisScale, Chart, PublishedMark, Series, SeriesKind, Ticks};
use std::fmt::Write;

/// Dashes of the lines, in the order of the series.
pub(super) const DASHES: [&str; 8] = ["", "9 4", "2 3", "10 3 2 3", "16 5", "7 3 1 3 1 3", "5 2", "1 5"];

/// Markers: letters of [`marker`].
pub(super) const MARKERS: [Shape; 8] = [
    Shape { corners: 0, filled: true },
    Shape { corners: 4, filled: true },
    Shape { corners: 3, filled: true },
    Shape { corners: -3, filled: true },
    Shape { corners: 0, filled: false },
    Shape { corners: 4, filled: false },
    Shape { corners: 3, filled: false },
    Shape { corners: 5, filled: true },
];

/// A marker: a circle (0), a square (4), a triangle that stands (3) or hangs (-3), a star (5).
/// A diamond is kept for what is published.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) corners: i8,
    pub(super) filled: bool,
}

/// What sets a series apart.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) colour: usize,
    pub(super) dash: usize,
    pub(super) shape: Shape,
}

impl Look {
    pub(super) fn of(index: usize) -> Look {
        let shape = MARKERS[(index + index / DASHES.len()) % MARKERS.len()];
        Look { colour: index % SERIES_COLOURS, dash: index % DASHES.len(), shape }
    }

    pub(super) fn dashes(self) -> String {
        match DASHES[self.dash] {
            "" => String::new(),
            dashes => format!(r#" stroke-dasharray="{dashes}""#),
        }
    }
}

pub(super) const WIDTH: f64 = 800.0;

pub(super) const HEIGHT: f64 = 300.0;

pub(super) const TOP: f64 = 14.0;

/// Between the lines of labels.
pub(super) const LINE: f64 = 16.0;

/// A stroke of a legend: a dash pattern shows in it, with a marker at its middle.
pub(super) const SAMPLE: f64 = 54.0;

/// Room between the plot and the labels of its lines.
pub(super) const GAP: f64 = 18.0;

/// Room that a point keeps from the plot's sides.
pub(super) const INSET: f64 = 12.0;

/// Width of the place that 0 has on an axis of powers.
pub(super) const ZERO: f64 = 56.0;

/// Letters of a series' name that are drawn.
pub(super) const NAME: usize = 32;

/// A rectangle that a label may not cover.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn meets(&self, other: &Area) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }
}

/// A chart on its way to a picture.
pub(super) struct Drawing<'c> {
    pub(super) chart: &'c Chart,
    pub(super) id: &'c str,
    pub(super) x: Placed,
    pub(super) y: Placed,
    pub(super) width: f64,
    /// Where the plot ends; axis labels stand below.
    pub(super) right: f64,
    pub(super) bottom: f64,
    /// Width of one place on the x axis.
    pub(super) slot: f64,
    /// What is taken, for the labels of published values.
    pub(super) taken: Vec<Area>,
    pub(super) out: String,
}

impl<'c> Drawing<'c> {
    pub(super) fn new(chart: &'c Chart, id: &'c str) -> Drawing<'c> {
        let lines: Vec<&Series> =
            chart.drawn().iter().filter(|series| series.kind == SeriesKind::Line).collect();
        let bars = chart.drawn().iter().any(|series| series.kind == SeriesKind::Bars);
        let named = lines.iter().map(|series| text_width(&cut(&series.name, NAME))).fold(0.0, f64::max);
        let right_room = if lines.is_empty() { 16.0 } else { GAP + SAMPLE + 6.0 + named + 4.0 };
        let legend = if bars {
            bar_legend(chart).last().map_or(0.0, |(row, _, _)| (*row as f64 + 1.0) * LINE + 14.0)
        } else {
            0.0
        };
        let top = TOP + legend;
        let height = HEIGHT.max(lines.len() as f64 * LINE + 8.0);
        let bottom = top + height;

        let y = y_axis(chart, bottom, top);
        let labels = y_ticks(chart, &y);
        let ticks_width = labels.iter().map(|(_, label)| text_width(label)).fold(0.0, f64::max);
        let left = 30.0 + ticks_width + 8.0;
        let width = WIDTH.max(left + 420.0 + right_room);
        let right = width - right_room;
        let left = match &chart.x.scale {
            AxisScale::Categories(names) => {
                let slot = (right - left - INSET) / names.len().max(1) as f64;
                // The first of the turned names reaches out to the left.
                let turned = widest_name(names) * TURN.to_radians().cos() - slot / 2.0 - INSET;
                if wrapped_all(names, slot).is_none() { left.max(turned.min(right - 300.0)) } else { left }
            }
            _ => left,
        };
        let x = x_axis(chart, left, right);
        let mut drawing = Drawing {
            chart,
            id,
            x,
            y,
            width,
            right,
            bottom,
            slot: 0.0,
            taken: Vec::new(),
            out: String::new(),
        };
        drawing.slot = drawing.slot();
        drawing
    }

    /// The room for bars around an x: a category's, or the distance between two values.
    pub(super) fn slot(&self) -> f64 {
        if let AxisScale::Categories(names) = &self.x.scale {
            return (self.x.to - self.x.from) / names.len().max(1) as f64;
        }
        let mut places: Vec<f64> = self.chart.xs().filter_map(|x| self.x.place(x)).collect();
        places.sort_by(f64::total_cmp);
        let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.5);
        gaps.fold(80.0, f64::min)
    }

    /// Whether a point has a place.
    pub(super) fn shows(&self, x: f64, y: f64) -> bool {
        self.x.place(x).is_some() && self.y.place(y).is_some()
    }

    pub(super) fn text(&mut self, x: f64, y: f64, class: &str, anchor: &str, words: &str) {
        let class = if class.is_empty() { String::new() } else { format!(r#" class="{class}""#) };
        let anchor = if anchor == "start" { String::new() } else { format!(r#" text-anchor="{anchor}""#) };
        let _ = writeln!(
            self.out,
            r#"<text{class}{anchor} x="{}" y="{}">{}</text>"#,
            px(x),
            px(y),
            escape(words)
        );
    }

    pub(super) fn write(mut self) -> String {
        let chart = self.chart;
        let below = self.x_labels();
        self.y_labels();
        let bars: Vec<(usize, &Series)> =
            chart.drawn().iter().enumerate().filter(|(_, series)| series.kind == SeriesKind::Bars).collect();
        let lines: Vec<(usize, &Series)> =
            chart.drawn().iter().enumerate().filter(|(_, series)| series.kind == SeriesKind::Line).collect();
        self.bars(&bars);
        for (index, series) in &lines {
            self.band(*index, series);
        }
        // The first series matters most, so it lies on top where lines meet.
        for (index, series) in lines.iter().rev() {
            self.line(*index, series);
        }
        self.line_labels(&lines);
        self.marks(&bars);
        if !chart.marks.iter().any(|mark| self.x.place(mark.x).is_some())
            && !chart.drawn().iter().flat_map(|series| &series.points).any(|(x, y)| self.shows(*x, *y))
        {
            let (x, y) = ((self.x.from + self.right) / 2.0, self.bottom - HEIGHT / 2.0);
            self.text(x, y, "small", "middle", "no values");
        }
        let height = self.key(below) + 6.0;
        let (width, id) = (self.width, escape(self.id));
        let patterns = if bars.is_empty() { String::new() } else { patterns(&id, &bars) };
        format!(
            "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-labelledby=\"{id}-title {id}-words\">\n\
             <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-words\">{}</desc>\n{patterns}{}</svg>\n",
            escape(&chart.title),
            escape(&chart.described()),
            self.out
        )
    }

    /// The x axis; returns where the next line of text may stand.
    pub(super) fn x_labels(&mut self) -> f64 {
        let (from, right, bottom) = (self.x.from, self.right, self.bottom);
        let _ = writeln!(
            self.out,
            r#"<path class="frame" d="M{} {}H{}"/>"#,
            px(from - INSET.min(from)),
            px(bottom),
            px(right)
        );
        let ticks = x_ticks(self.chart, &self.x);
        let mut low = bottom + 18.0;
        if let AxisScale::Categories(names) = &self.x.scale {
            if let Some(lines) = wrapped_all(names, self.slot) {
                for ((place, _), lines) in ticks.iter().zip(&lines) {
                    for (nth, line) in lines.iter().enumerate() {
                        self.text(*place, bottom + 18.0 + 14.0 * nth as f64, "", "middle", line);
                    }
                }
                low += 14.0 * (lines.iter().map(Vec::len).max().unwrap_or(1) as f64 - 1.0);
            } else {
                for (place, label) in &ticks {
                    let (label, y) = (cut(label, NAME), bottom + 14.0);
                    let _ = writeln!(
                        self.out,
                        r#"<text text-anchor="end" x="{x}" y="{y}" transform="rotate({TURN} {x} {y})">{}</text>"#,
                        escape(&label),
                        x = px(*place + 4.0),
                        y = px(y)
                    );
                }
                low += widest_name(names) * -TURN.to_radians().sin();
            }
        } else {
            for place in minor(&self.x) {
                let _ = writeln!(self.out, r#"<path class="frame" d="M{} {}v4"/>"#, px(place), px(bottom));
            }
            for (place, label) in &ticks {
                let _ = writeln!(
                    self.out,
                    r#"<path class="grid" d="M{} {}V{}"/>"#,
                    px(*place),
                    px(bottom),
                    px(self.y.to)
                );
                let _ = writeln!(self.out, r#"<path class="frame" d="M{} {}v6"/>"#, px(*place), px(bottom));
                self.text(*place, bottom + 20.0, "", "middle", label);
            }
            if self.x.zero && self.x.logarithmic() {
                // Two strokes across the axis: 0 has no place on a scale of powers.
                let at = from + (ZERO + INSET) / 2.0 - 1.0;
                let _ = writeln!(
                    self.out,
                    r#"<path class="frame" d="M{} {}l4 -10M{} {}l4 -10"/>"#,
                    px(at - 2.0),
                    px(bottom + 5.0),
                    px(at + 3.0),
                    px(bottom + 5.0)
                );
            }
            low += 2.0;
        }
        let label = self.chart.x.label.clone();
        self.text((from + right) / 2.0, low + 18.0, "strong", "middle", &label);
        low + 22.0
    }

    pub(super) fn y_labels(&mut self) {
        let (from, right) = (self.x.from - INSET.min(self.x.from), self.right);
        let (top, bottom) = (self.y.to, self.bottom);
        for (place, label) in y_ticks(self.chart, &self.y) {
            if (place - bottom).abs() > 0.5 {
                let _ = writeln!(
                    self.out,
                    r#"<path class="grid" d="M{} {}H{}"/>"#,
                    px(from),
                    px(place),
                    px(right)
                );
            }
            self.text(from - 8.0, place + 4.0, "", "end", &label);
        }
        for place in minor(&self.y) {
            let _ = writeln!(self.out, r#"<path class="frame" d="M{} {}h-4"/>"#, px(from), px(place));
        }
        let _ = writeln!(self.out, r#"<path class="frame" d="M{} {}V{}"/>"#, px(from), px(bottom), px(top));
        let (x, y) = (14.0, (top + bottom) / 2.0);
        let _ = writeln!(
            self.out,
            r#"<text class="strong" text-anchor="middle" x="{x}" y="{y}" transform="rotate(-90 {x} {y})">{}</text>"#,
            escape(&self.chart.y.label),
            x = px(x),
            y = px(y)
        );
    }

    /// Points with a place, cut where the axis of x is.
    pub(super) fn runs(&self, points: impl Iterator<Item = (f64, f64)>) -> Vec<Vec<(f64, f64)>> {
        let mut runs: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
        let mut after_zero = false;
        for (x, y) in points {
            let place = self.x.place(x).zip(self.y.place(y));
            let apart = after_zero && x != 0.0;
            after_zero = self.x.logarithmic() && x == 0.0;
            if (place.is_none() || apart) && runs.last().is_some_and(|run| !run.is_empty()) {
                runs.push(Vec::new());
            }
            if let (Some(place), Some(run)) = (place, runs.last_mut()) {
                run.push(place);
            }
        }
        runs.retain(|run| !run.is_empty());
        runs
    }

    pub(super) fn band(&mut self, index: usize, series: &Series) {
        let look = Look::of(index);
        let Some(band) = &series.band else { return };
        let low = self.runs(band.iter().map(|(x, low, _)| (*x, *low)));
        let high = self.runs(band.iter().map(|(x, _, high)| (*x, *high)));
        for (low, high) in low.iter().zip(&high) {
            if low.len() != high.len() {
                continue;
            }
            if let ([(x, y1)], [(_, y2)]) = (low.as_slice(), high.as_slice()) {
                let whisker = whisker(*x, *y1, *y2);
                let _ = writeln!(self.out, r#"<path class="edge s{}" d="{whisker}"/>"#, look.colour);
                continue;
            }
            let back: Vec<(f64, f64)> = low.iter().rev().copied().collect();
            let _ = writeln!(
                self.out,
                r#"<path class="band f{}" d="{}{}Z"/>"#,
                look.colour,
                path(high),
                path(&back).replacen('M', "L", 1)
            );
            let _ = writeln!(
                self.out,
                r#"<path class="edge s{}"{} d="{}{}"/>"#,
                look.colour,
                look.dashes(),
                path(high),
                path(low)
            );
        }
    }

    pub(super) fn line(&mut self, index: usize, series: &Series) {
        let look = Look::of(index);
        let runs = self.runs(series.points.iter().copied());
        for run in &runs {
            if run.len() > 1 {
                let _ = writeln!(
                    self.out,
                    r#"<path class="line s{}"{} d="{}"/>"#,
                    look.colour,
                    look.dashes(),
                    path(run)
                );
            }
        }
        // Markers on many points would hide the dashes, so that some stand for all.
        let points: Vec<(f64, f64)> = runs.concat();
        let every = points.len().div_ceil(14).max(1);
        for (at, point) in points.iter().enumerate() {
            if at % every == 0 || at + 1 == points.len() {
                self.out += &marker(look, *point, 4.0);
            }
            self.taken.push(Area { x: point.0 - 4.0, y: point.1 - 4.0, width: 8.0, height: 8.0 });
        }
        // Labels keep off the lines too.
        for pair in runs.iter().flat_map(|run| run.windows(2)) {
            let steps = ((pair[1].0 - pair[0].0).abs() / 8.0).ceil().clamp(1.0, 100.0) as usize;
            for part in 0..steps {
                let share = (part as f64 + 0.5) / steps as f64;
                let x = pair[0].0 + (pair[1].0 - pair[0].0) * share;
                let y = pair[0].1 + (pair[1].1 - pair[0].1) * share;
                self.taken.push(Area { x: x - 4.0, y: y - 2.0, width: 8.0, height: 4.0 });
            }
        }
    }

    /// Each line's name at its end, with its dash and marker; names make room for each other.
    pub(super) fn line_labels(&mut self, lines: &[(usize, &Series)]) {
        let mut labels: Vec<(f64, f64, usize, &str)> = lines
            .iter()
            .map(|(index, series)| {
                let last =
                    self.runs(series.points.iter().copied()).last().and_then(|run| run.last().copied());
                let (x, y) = last.unwrap_or((0.0, self.bottom));
                (y, x, *index, series.name.as_str())
            })
            .collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
        let mut places: Vec<f64> = labels.iter().map(|label| label.0).collect();
        let mut least = self.y.to + 4.0;
        for place in &mut places {
            *place = place.max(least);
            least = *place + LINE;
        }
        let mut most = self.bottom;
        for place in places.iter_mut().rev() {
            *place = place.min(most);
            most = *place - LINE;
        }
        let x = self.right + GAP;
        for ((end, last, index, name), y) in labels.into_iter().zip(places) {
            let look = Look::of(index);
            // A line that ends early is known by its dash and marker: a leader would cross the others.
            if self.right - last < 40.0 && last > 0.0 {
                let _ = writeln!(
                    self.out,
                    r#"<path class="leader" d="M{} {}L{} {}L{} {}"/>"#,
                    px(last + 6.0),
                    px(end),
                    px(self.right.max(last + 6.0)),
                    px(end),
                    px(x - 3.0),
                    px(y)
                );
            }
            self.sample(look, x, y);
            self.text(x + SAMPLE + 6.0, y + 4.0, "", "start", &cut(name, NAME));
        }
    }

    pub(super) fn sample(&mut self, look: Look, x: f64, y: f64) {
        let _ = writeln!(
            self.out,
            r#"<path class="line s{}"{} d="M{} {}h{}"/>"#,
            look.colour,
            look.dashes(),
            px(x),
            px(y),
            px(SAMPLE)
        );
        self.out += &marker(look, (x + SAMPLE / 2.0, y), 4.0);
    }

    /// The middle of a series' bar at x, and its width.
    pub(super) fn bar_at(&self, place: f64, nth: usize, count: usize) -> (f64, f64) {
        let group = (self.slot * 0.82).min(90.0 * count as f64);
        let width = group / count.max(1) as f64;
        (place - group / 2.0 + (nth as f64 + 0.5) * width, width)
    }

    pub(super) fn bars(&mut self, bars: &[(usize, &Series)]) {
        let Some(base) = self.y.place(if self.y.logarithmic() { self.y.low } else { 0.0 }) else { return };
        let id = escape(self.id);
        for (nth, (index, series)) in bars.iter().enumerate() {
            let look = Look::of(*index);
            for (x, y) in &series.points {
                let Some((place, top)) = self.x.place(*x).zip(self.y.place(*y)) else { continue };
                let (middle, width) = self.bar_at(place, nth, bars.len());
                let (upper, lower) = (top.min(base), top.max(base));
                let _ = writeln!(
                    self.out,
                    r#"<rect class="bar s{c}" fill="url(#{id}-fill-{index})" x="{}" y="{}" width="{}" height="{}"/>"#,
                    px(middle - width * 0.44),
                    px(upper),
                    px(width * 0.88),
                    px(lower - upper),
                    c = look.colour
                );
                self.taken.push(Area { x: middle - width / 2.0, y: upper, width, height: lower - upper });
                let band = series.band.iter().flatten().find(|band| band.0 == *x);
                let ends = band.and_then(|band| self.y.place(band.1).zip(self.y.place(band.2)));
                let mut above = upper;
                if let Some((low, high)) = ends.filter(|(low, high)| (low - high).abs() > 0.5) {
                    let _ =
                        writeln!(self.out, r#"<path class="whisker" d="{}"/>"#, whisker(middle, low, high));
                    self.taken.push(Area { x: middle - 4.0, y: high, width: 8.0, height: low - high });
                    above = above.min(high);
                }
                let digits = if self.chart.y.ticks == Ticks::Percent && *y >= 0.1 { 2 } else { 3 };
                let label = self.chart.y.ticks.write(shown(*y, digits));
                let crossed =
                    self.chart.marks.iter().any(|mark| {
                        mark.x == *x && mark.series.as_ref().is_none_or(|own| *own == series.name)
                    }) || self.chart.drawn().iter().any(|other| other.kind == SeriesKind::Line);
                if text_width(&label) <= width + 4.0 && !crossed {
                    self.text(middle, above - 5.0, "small", "middle", &label);
                }
            }
        }
        for (row, x, index) in bar_legend(self.chart) {
            let look = Look::of(index);
            let (x, y) = (self.x.from - INSET + x, TOP - 8.0 + row as f64 * LINE);
            let _ = writeln!(
                self.out,
                r#"<rect class="bar s{}" fill="url(#{id}-fill-{index})" x="{}" y="{}" width="26" height="12"/>"#,
                look.colour,
                px(x),
                px(y)
            );
            let name = cut(&self.chart.series[index].name, NAME);
            self.text(x + 32.0, y + 10.0, "", "start", &name);
        }
    }

    /// Published values: hollow diamonds with the marker of their series inside, ranges as whiskers, a
    /// cross behind the ones that are missed.
    pub(super) fn marks(&mut self, bars: &[(usize, &Series)]) {
        const RADIUS: f64 = 7.5;
        let chart = self.chart;
        let mut labels = Vec::new();
        for mark in &chart.marks {
            let (low, high) =
                mark.range.map_or((None, None), |(low, high)| (self.y.place(low), self.y.place(high)));
            let Some(mut x) = self.x.place(mark.x) else { continue };
            let named = |series: &Series| mark.series.as_ref() == Some(&series.name);
            if let Some(nth) = bars.iter().position(|(_, series)| named(series)) {
                x = self.bar_at(x, nth, bars.len()).0;
            }
            let _ = writeln!(self.out, "<g><title>{}</title>", escape(&self.said(mark)));
            if let Some((low, high)) = low.zip(high) {
                let range = whisker(x, low, high);
                let _ = writeln!(
                    self.out,
                    r#"<path class="halo" d="{range}"/><path class="whisker" d="{range}"/>"#
                );
                self.taken.push(Area {
                    x: x - 4.0,
                    y: high.min(low),
                    width: 8.0,
                    height: (high - low).abs(),
                });
            }
            let place = mark.y.and_then(|y| self.y.place(y));
            let (middle, half) = match (place, low, high) {
                (Some(y), _, _) => (y, RADIUS),
                (None, Some(low), Some(high)) => ((low + high) / 2.0, 4.0),
                _ => {
                    self.out += "</g>\n";
                    continue;
                }
            };
            if !mark.within {
                let r = RADIUS + 1.5;
                let cross = format!(
                    "M{} {}l{r2} {r2}M{} {}l{r2} -{r2}",
                    px(x - r),
                    px(middle - r),
                    px(x - r),
                    px(middle + r),
                    r2 = px(2.0 * r)
                );
                let _ =
                    writeln!(self.out, r#"<path class="halo" d="{cross}"/><path class="miss" d="{cross}"/>"#);
            }
            if place.is_some() {
                let _ = writeln!(self.out, r#"<path class="published" d="{}"/>"#, diamond(x, middle, RADIUS));
                // On a bar the place says which series is meant.
                if let Some(index) = chart.drawn().iter().position(named)
                    && chart.series[index].kind == SeriesKind::Line
                {
                    self.out += &marker(Look::of(index), (x, middle), 2.4);
                }
            }
            self.out += "</g>\n";
            let edge = half + if mark.within { 0.0 } else { 2.0 };
            self.taken.push(Area { x: x - edge, y: middle - edge, width: 2.0 * edge, height: 2.0 * edge });
            labels.push((x, middle, edge, mark.label.as_str()));
        }
        let diamonds: Vec<Area> = labels
            .iter()
            .map(|(x, y, edge, _)| Area { x: x - edge, y: y - edge, width: 2.0 * edge, height: 2.0 * edge })
            .collect();
        for (x, y, edge, label) in labels {
            self.mark_label((x, y, edge), label, &diamonds);
        }
    }

    /// The label of a published value where it covers nothing; else the table alone has it.
    pub(super) fn mark_label(&mut self, (x, y, edge): (f64, f64, f64), label: &str, diamonds: &[Area]) {
        if label.is_empty() {
            return;
        }
        let (width, height) = (text_width(label), 12.0);
        let around = |reach: f64| {
            [
                (x + reach, y - height / 2.0),
                (x - reach - width, y - height / 2.0),
                (x - width / 2.0, y - reach - height),
                (x - width / 2.0, y + reach),
                (x + reach * 0.7, y - reach * 0.7 - height),
                (x - reach * 0.7 - width, y - reach * 0.7 - height),
                (x + reach * 0.7, y + reach * 0.7),
                (x - reach * 0.7 - width, y + reach * 0.7),
            ]
        };
        let (left, right, top, bottom) =
            (self.x.from - INSET + 2.0, self.right + GAP - 4.0, self.y.to - 8.0, self.bottom - 2.0);
        let reaches = [2.0, 12.0, 24.0, 38.0, 54.0].map(|reach| edge + reach);
        for (nth, (at, upper)) in reaches.into_iter().flat_map(around).enumerate() {
            let area = Area { x: at, y: upper, width, height };
            let inside = at >= left && at + width <= right && upper >= top && upper + height <= bottom;
            if inside && !self.taken.iter().any(|taken| taken.meets(&area)) {
                if nth >= 8 {
                    let (cx, cy) = (at + width / 2.0, upper + height / 2.0);
                    let (tx, ty) = (cx.clamp(x - edge, x + edge), cy.clamp(y - edge, y + edge));
                    let (ex, ey) = (x.clamp(at, at + width), y.clamp(upper, upper + height));
                    // A leader across another diamond would seem to belong to that one.
                    let along = |part: i32| {
                        let share = f64::from(part) / 12.0;
                        Area { x: tx + (ex - tx) * share, y: ty + (ey - ty) * share, width: 0.1, height: 0.1 }
                    };
                    let own = |area: &Area| area.meets(&Area { x, y, width: 0.1, height: 0.1 });
                    let crosses =
                        |other: &&Area| !own(other) && (0..=12).any(|part| along(part).meets(other));
                    if diamonds.iter().any(|other| crosses(&other)) {
                        continue;
                    }
                    let _ = writeln!(
                        self.out,
                        r#"<path class="leader" d="M{} {}L{} {}"/>"#,
                        px(tx),
                        px(ty),
                        px(ex),
                        px(ey)
                    );
                }
                self.text(at, upper + 10.0, "small", "start", label);
                self.taken.push(area);
                return;
            }
        }
    }

    /// What hovering over a published value says.
    pub(super) fn said(&self, mark: &PublishedMark) -> String {
        let chart = self.chart;
        let mut parts = Vec::new();
        if !mark.label.is_empty() {
            parts.push(mark.label.clone());
        }
        parts.extend(mark.series.clone());
        parts.push(format!("at {}", chart.x.value(mark.x)));
        parts.extend(mark.y.map(|y| format!("published {}", chart.y.ticks.write(y))));
        parts.extend(mark.range.map(|(low, high)| format!("range {}", chart.range(low, high))));
        parts.push(if mark.within { "within tolerance" } else { "missed" }.to_string());
        parts.join(", ")
    }

    /// What the signs mean, below the axis; returns where the drawing ends.
    pub(super) fn key(&mut self, below: f64) -> f64 {
        let chart = self.chart;
        let banded = |kind| chart.drawn().iter().any(|series| series.kind == kind && series.band.is_some());
        let any = |test: &dyn Fn(&PublishedMark) -> bool| chart.marks.iter().any(test);
        let mut items: Vec<(&str, &str)> = Vec::new();
        if any(&|mark| mark.y.is_some()) {
            items.push(("point", "published"));
        }
        if any(&|mark| mark.range.is_some()) || banded(SeriesKind::Bars) {
            items.push(("whisker", "range"));
        }
        if any(&|mark| !mark.within) {
            items.push(("miss", "published, missed by the prediction"));
        }
        if banded(SeriesKind::Line) {
            items.push(("band", "80% band"));
        }
        if items.is_empty() {
            return below;
        }
        let (mut x, mut y) = (self.x.from, below + 16.0);
        for (sign, words) in items {
            let width = 30.0 + text_width(words) + 18.0;
            if x + width > self.width && x > self.x.from {
                (x, y) = (self.x.from, y + LINE + 2.0);
            }
            let drawn = match sign {
                "point" => format!(r#"<path class="published" d="{}"/>"#, diamond(x + 12.0, y, 6.5)),
                "whisker" => {
                    format!(r#"<path class="whisker" d="{}"/>"#, whisker(x + 12.0, y + 7.0, y - 7.0))
                }
                "miss" => format!(
                    r#"<path class="miss" d="M{x0} {y0}l16 16M{x0} {y1}l16 -16"/><path class="published" d="{}"/>"#,
                    diamond(x + 12.0, y, 6.5),
                    x0 = px(x + 4.0),
                    y0 = px(y - 8.0),
                    y1 = px(y + 8.0)
                ),
                _ => format!(
                    r#"<path class="band f7" d="M{x0} {y0}h24v12h-24Z"/><path class="edge s7" d="M{x0} {y0}h24m0 12h-24"/>"#,
                    x0 = px(x),
                    y0 = px(y - 6.0)
                ),
            };
            self.out += &drawn;
            self.out.push('\n');
            self.text(x + 30.0, y + 4.0, "small", "start", words);
            x += width;
        }
        y + 8.0
    }
}

/// Names of categories that do not fit side by side are turned by so many degrees.
pub(super) const TURN: f64 = -32.0;

pub(super) fn widest_name(names: &[String]) -> f64 {
    names.iter().map(|name| text_width(&cut(name, NAME))).fold(0.0, f64::max)
}

/// Every name in lines that fit into `width`, at most three; none if a name does not.
pub(super) fn wrapped_all(names: &[String], width: f64) -> Option<Vec<Vec<String>>> {
    let wrapped = |name: &String| {
        let mut lines: Vec<String> = vec![String::new()];
        for word in cut(name, 2 * NAME).split(' ') {
            let line = lines.last_mut()?;
            if line.is_empty() {
                line.push_str(word);
            } else if text_width(line) + text_width(word) + 5.0 < width - 6.0 {
                line.push(' ');
                line.push_str(word);
            } else {
                lines.push(word.to_string());
            }
        }
        let fits = lines.len() <= 3 && lines.iter().all(|line| text_width(line) < width - 6.0);
        fits.then_some(lines)
    };
    names.iter().map(wrapped).collect()
}

pub(super) fn path(points: &[(f64, f64)]) -> String {
    let parts: Vec<String> = points.iter().map(|(x, y)| format!("{} {}", px(*x), px(*y))).collect();
    format!("M{}", parts.join("L"))
}

pub(super) fn whisker(x: f64, low: f64, high: f64) -> String {
    format!(
        "M{} {}h8M{} {}V{}M{} {}h8",
        px(x - 4.0),
        px(low),
        px(x),
        px(low),
        px(high),
        px(x - 4.0),
        px(high)
    )
}

pub(super) fn diamond(x: f64, y: f64, radius: f64) -> String {
    let r = px(radius);
    format!("M{} {}l{r} {r}l-{r} {r}l-{r} -{r}Z", px(x), px(y - radius))
}

/// A marker of the look's shape. Thin ones inside a diamond are always filled.
pub(super) fn marker(look: Look, (x, y): (f64, f64), radius: f64) -> String {
    let fill = if look.shape.filled { format!("f{}", look.colour) } else { "hollow".to_string() };
    let class = format!("{fill} s{}", look.colour);
    let shape = match look.shape.corners {
        0 => format!(r#"<circle class="{class}" cx="{}" cy="{}" r="{}"/>"#, px(x), px(y), px(radius)),
        4 => format!(
            r#"<rect class="{class}" x="{}" y="{}" width="{w}" height="{w}"/>"#,
            px(x - radius * 0.9),
            px(y - radius * 0.9),
            w = px(radius * 1.8)
        ),
        5 => {
            let points = (0..10).map(|at| {
                let reach = if at % 2 == 0 { radius * 1.4 } else { radius * 0.6 };
                let angle = std::f64::consts::PI * (f64::from(at) / 5.0 - 0.5);
                (x + reach * angle.cos(), y + reach * angle.sin())
            });
            format!(r#"<path class="{class}" d="{}Z"/>"#, path(&points.collect::<Vec<_>>()))
        }
        corners => {
            let up = f64::from(corners.signum());
            let points = [
                (x, y - up * radius * 1.2),
                (x + radius * 1.15, y + up * radius * 0.8),
                (x - radius * 1.15, y + up * radius * 0.8),
            ];
            format!(r#"<path class="{class}" d="{}Z"/>"#, path(&points))
        }
    };
    shape + "\n"
}

/// Fills that differ by their strokes, one a series.
pub(super) fn patterns(id: &str, bars: &[(usize, &Series)]) -> String {
    let mut out = String::from("<defs>\n");
    for (index, _) in bars {
        let look = Look::of(*index);
        let (colour, grown) = (look.colour, 1 + index / DASHES.len());
        let size = 8 * grown;
        let half = size / 2;
        let strokes = match index % DASHES.len() {
            0 => format!(r#"<rect class="f{colour}" opacity=".45" width="{size}" height="{size}"/>"#),
            1 => format!(
                r#"<path class="s{colour}" stroke-width="2" d="M-1 {a}L{b} -1M{half} {c}L{c} {half}M0 {size}L{size} 0"/>"#,
                a = 1,
                b = 1,
                c = size + 1
            ),
            2 => format!(r#"<circle class="f{colour}" cx="{half}" cy="{half}" r="1.8"/>"#),
            3 => format!(r#"<path class="s{colour}" stroke-width="2" d="M0 {half}H{size}"/>"#),
            4 => format!(
                r#"<path class="s{colour}" stroke-width="1.2" d="M0 {half}H{size}M{half} 0V{size}"/>"#
            ),
            5 => format!(
                r#"<path class="s{colour}" stroke-width="2" d="M0 0L{size} {size}M-1 {a}L1 {b}M{a} -1L{b} 1" />"#,
                a = size - 1,
                b = size + 1
            ),
            6 => format!(r#"<path class="s{colour}" stroke-width="2" d="M{half} 0V{size}"/>"#),
            _ => String::new(),
        };
        let _ = writeln!(
            out,
            "<pattern id=\"{id}-fill-{index}\" width=\"{size}\" height=\"{size}\" patternUnits=\"userSpaceOnUse\">{strokes}</pattern>"
        );
    }
    out + "</defs>\n"
}

/// The legend of the bars: row, place along it, series.
pub(super) fn bar_legend(chart: &Chart) -> Vec<(usize, f64, usize)> {
    let (mut row, mut x) = (0, 0.0);
    let mut items = Vec::new();
    for (index, series) in
        chart.drawn().iter().enumerate().filter(|(_, series)| series.kind == SeriesKind::Bars)
    {
        let width = 32.0 + text_width(&cut(&series.name, NAME)) + 18.0;
        if x + width > WIDTH - 90.0 && x > 0.0 {
            (row, x) = (row + 1, 0.0);
        }
        items.push((row, x, index));
        x += width;
    }
    items
}
