//! Where values lie on an axis, and which of them are written there.

use super::super::text_width;
use super::drawing::{INSET, ZERO};
use super::{Axis, AxisScale, Chart, Ticks};

/// An axis with its values' places.
pub(super) struct Placed {
    pub(super) scale: AxisScale,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) zero: bool,
    /// Between the values to be labelled, where the ends were chosen by it.
    pub(super) step: Option<f64>,
}

impl Placed {
    /// Where a value stands, in px; none where it has no place.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        if !drawable(value, false) {
            return None;
        }
        let along = |low: f64, high: f64, value: f64, from: f64| {
            let span = if high > low { high - low } else { return (from + self.to) / 2.0 };
            from + (value - low) / span * (self.to - from)
        };
        match &self.scale {
            AxisScale::Linear => Some(along(self.low, self.high, value, self.from)),
            AxisScale::Log2 | AxisScale::Log10 => {
                let toward = (self.to - self.from).signum();
                if value == 0.0 && self.zero {
                    return Some(self.from + toward * INSET);
                }
                let from = if self.zero { self.from + toward * ZERO } else { self.from };
                drawable(value, true).then(|| along(self.low.ln(), self.high.ln(), value.ln(), from))
            }
            AxisScale::Categories(names) => {
                let slot = (self.to - self.from) / names.len().max(1) as f64;
                let named = value > -0.5 && value < names.len() as f64 - 0.5;
                named.then_some(self.from + (value + 0.5) * slot)
            }
        }
    }

    pub(super) fn logarithmic(&self) -> bool {
        matches!(self.scale, AxisScale::Log2 | AxisScale::Log10)
    }
}

/// Whether a value can have a place: units are chosen so that no more than 10^18 of them are shown.
pub(super) fn drawable(value: f64, positive: bool) -> bool {
    value.is_finite() && value.abs() <= 1e18 && (!positive || value >= 1e-18)
}

/// The lowest and the highest of the values that an axis can show.
pub(super) fn ends(values: impl Iterator<Item = f64>, positive: bool) -> Option<(f64, f64)> {
    values.filter(|value| drawable(*value, positive)).fold(None, |ends, value| {
        Some(ends.map_or((value, value), |(a, b): (f64, f64)| (a.min(value), b.max(value))))
    })
}

/// A value with so many significant digits: what stands on a bar.
pub(super) fn shown(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let power = 10f64.powi(digits - 1 - value.abs().log10().floor() as i32);
    let rounded = (value * power).round() / power;
    if rounded.is_finite() { rounded } else { value }
}

pub(super) fn x_axis(chart: &Chart, left: f64, right: f64) -> Placed {
    let scale = chart.x.scale.clone();
    let logarithmic = matches!(scale, AxisScale::Log2 | AxisScale::Log10);
    let zero = logarithmic && chart.xs().any(|x| x == 0.0);
    let (low, high) = ends(chart.xs(), logarithmic).unwrap_or((1.0, 1.0));
    let (low, high) = match scale {
        // An axis that starts near 0 starts at 0.
        AxisScale::Linear if low >= 0.0 && low < 0.5 * high => (0.0, high),
        _ => (low, high),
    };
    let inset = if matches!(scale, AxisScale::Categories(_)) { 0.0 } else { INSET };
    Placed { scale, low, high, from: left + INSET, to: right - inset, zero, step: None }
}

pub(super) fn y_axis(chart: &Chart, bottom: f64, top: f64) -> Placed {
    let scale = match &chart.y.scale {
        // Heights are numbers.
        AxisScale::Categories(_) => AxisScale::Linear,
        other => other.clone(),
    };
    let logarithmic = matches!(scale, AxisScale::Log2 | AxisScale::Log10);
    let zero = logarithmic && chart.ys().any(|y| y == 0.0);
    let (low, high) = ends(chart.ys(), logarithmic).unwrap_or((1.0, 10.0));
    let mut even = None;
    let (low, high) = match scale {
        AxisScale::Linear => {
            let (low, high) = (low.min(0.0), high.max(0.0));
            let high = if high > low { high } else { low + 1.0 };
            let step = step(high - low, 5.0);
            even = Some(step);
            // Room above the highest value, so that it does not touch the frame; all of a whole is its end.
            let room = if chart.y.ticks == Ticks::Percent { -1e-9 } else { 0.02 * (high - low) };
            ((low / step).floor() * step, ((high + room) / step).ceil() * step)
        }
        AxisScale::Log2 => (2f64.powf(low.log2().floor()), 2f64.powf((high * 1.01).log2().ceil())),
        _ => {
            let nice = |value: f64, up: bool| {
                let power = 10f64.powf(value.log10().floor());
                let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
                if up {
                    steps.into_iter().find(|step| *step >= value * 0.999).unwrap_or(value)
                } else {
                    steps.into_iter().rev().find(|step| *step <= value * 1.001).unwrap_or(value)
                }
            };
            (nice(low * 0.97, false), nice(high * 1.03, true))
        }
    };
    Placed { scale, low, high, from: bottom, to: top, zero, step: even }
}

/// Places and labels along the x axis, few enough that none covers another.
pub(super) fn x_ticks(chart: &Chart, axis: &Placed) -> Vec<(f64, String)> {
    let label = |value: f64| Some((axis.place(value)?, chart.x.value(value)));
    if let AxisScale::Categories(names) = &axis.scale {
        return (0..names.len()).filter_map(|at| label(at as f64)).collect();
    }
    if !chart.x.at.is_empty() {
        let mut at = chart.x.at.clone();
        at.sort_by(f64::total_cmp);
        return at.into_iter().filter_map(label).collect();
    }
    let apart = |a: &(f64, String), b: &(f64, String)| {
        (b.0 - a.0).abs() > (text_width(&a.1) + text_width(&b.1)) / 2.0 + 10.0
    };
    sparse(&chart.x, axis, 9.0, apart)
}

/// Places and labels up the y axis.
pub(super) fn y_ticks(chart: &Chart, axis: &Placed) -> Vec<(f64, String)> {
    let label = |value: f64| Some((axis.place(value)?, chart.y.ticks.write(value)));
    if !chart.y.at.is_empty() {
        return chart.y.at.iter().copied().filter_map(label).collect();
    }
    sparse(&chart.y, axis, 5.0, |a, b| (b.0 - a.0).abs() > 18.0)
}

/// The most ticks whose labels stand apart.
pub(super) fn sparse(
    of: &Axis,
    axis: &Placed,
    most: f64,
    apart: impl Fn(&(f64, String), &(f64, String)) -> bool,
) -> Vec<(f64, String)> {
    let label = |value: f64| Some((axis.place(value)?, of.value(value)));
    let zero = if axis.zero && axis.logarithmic() { label(0.0) } else { None };
    let mut ticks = Vec::new();
    for coarse in 0..=COARSEST {
        ticks = tick_values(axis, of, most, coarse).into_iter().filter_map(label).collect();
        // 0 stands near the first of the others, which gives way.
        if let (Some(zero), Some(first)) = (&zero, ticks.first())
            && !apart(zero, first)
        {
            ticks.remove(0);
        }
        if ticks.windows(2).all(|pair| apart(&pair[0], &pair[1])) {
            break;
        }
    }
    zero.into_iter().chain(ticks).collect()
}

/// The choice of ticks that has the two ends alone.
pub(super) const COARSEST: usize = 8;

/// Values to label on an axis of numbers, fewer the coarser.
pub(super) fn tick_values(axis: &Placed, of: &Axis, most: f64, coarse: usize) -> Vec<f64> {
    let (low, high) = (axis.low, axis.high);
    let within = |value: &f64| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9);
    if low >= high || coarse >= COARSEST {
        return if low == high { vec![low] } else { vec![low, high] };
    }
    match axis.scale {
        AxisScale::Log2 => {
            let every = [1, 2, 3, 4, 6, 8, 10, 20][coarse];
            let (first, last) = (low.log2().ceil() as i32, high.log2().floor() as i32);
            // Multiples, so that equal axes have equal ticks.
            (first..=last).filter(|power| power % every == 0).map(|power| 2f64.powi(power)).collect()
        }
        AxisScale::Log10 => {
            let steps: &[f64] = match coarse {
                0 if high / low < 30.0 => &[1.0, 2.0, 5.0],
                _ => &[1.0],
            };
            let every = [1, 1, 2, 3, 4, 6, 8, 10][coarse];
            let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
            powers
                .filter(|power| power % every == 0)
                .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
                .filter(within)
                .collect()
        }
        _ => {
            let step = match (axis.step, of.ticks) {
                (Some(step), _) => step * 2f64.powi(coarse as i32),
                // Even steps between payloads are powers of two.
                (None, Ticks::Bytes) => {
                    2f64.powf(((high - low) / most).log2().ceil()) * 2f64.powi(coarse as i32)
                }
                (None, _) => step(high - low, most / (1.0 + 0.5 * coarse as f64)),
            };
            let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
            (first..=last.min(first + 100)).map(|at| at as f64 * step).collect()
        }
    }
}

/// Places of the ticks without labels.
pub(super) fn minor(axis: &Placed) -> Vec<f64> {
    let values: Vec<f64> = match axis.scale {
        AxisScale::Log2 if axis.low < axis.high => {
            let (first, last) = (axis.low.log2().ceil() as i32, axis.high.log2().floor() as i32);
            (first..=last).map(|power| 2f64.powi(power)).collect()
        }
        AxisScale::Log10 if axis.low < axis.high => {
            let powers = axis.low.log10().floor() as i32..=axis.high.log10().ceil() as i32;
            powers.flat_map(|power| (1..10).map(move |step| f64::from(step) * 10f64.powi(power))).collect()
        }
        _ => Vec::new(),
    };
    if values.len() > 120 {
        return Vec::new();
    }
    let within = |value: &f64| *value >= axis.low * (1.0 - 1e-9) && *value <= axis.high * (1.0 + 1e-9);
    values.into_iter().filter(within).filter_map(|value| axis.place(value)).collect()
}

/// A step of 1, 2, 2.5 or 5 times a power of ten that gives about so many ticks.
pub(in super::super) fn step(span: f64, ticks: f64) -> f64 {
    let rough = (span / ticks).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let share = rough / power;
    let nice = [1.0, 2.0, 2.5, 5.0].into_iter().find(|nice| share <= nice * 1.0001).unwrap_or(10.0);
    nice * power
}
