//! What was measured of a design's steps and is planned otherwise.

use crate::figures::Unit;
use offpath_plan::Design;
use offpath_plan::planner::Plan;
use offpath_plan::published::{MeasuredFigure, MeasuredRate, Missed, ToldAs, measured_rates, missed_of};
use offpath_profile::System;
use offpath_quantity::OpRate;
use offpath_terminal::output::{short, signed};
use offpath_twin::Interval;
use serde::Serialize;
use std::collections::BTreeSet;

/// A plan beside which rows are held.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    pub design: &'a Design,
    pub system: &'a System,
    /// Whether that is another one than rows measured.
    pub is_other_system: bool,
    pub plan: &'a Plan,
    /// By alternative or mix, what few clients get of it; empty where nobody looked.
    pub clients: &'a [(String, Vec<Interval>)],
    pub unit: Unit,
}

/// What was measured of a design's steps and is planned otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasuredOtherwise {
    /// Published rows about the steps of this design that this version does not meet, orders and measured numbers alike:
    /// the rows about a shipped design whose alternatives are among its own, on the device that was measured.
    pub missed_rows: Vec<MissedAnswer>,
    /// Pairs of alternatives of a shipped design that were measured in the other order than they are planned in.
    pub reversed_orders: Vec<ReversedOrderAnswer>,
}

/// A published row that this version does not meet.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MissedAnswer {
    /// Its name.
    pub row: &'static str,
    /// What was published, with its unit.
    pub published: String,
    /// The shipped design that it is about.
    pub design: &'static str,
    /// The alternatives of it that were measured; empty where a mix was.
    pub alternatives: Vec<&'static str>,
    /// The mix of it that was; null where alternatives were.
    pub mix: Option<&'static str>,
    /// Whether the planned design is the shipped one; else some of its alternatives have the same steps.
    pub as_shipped: bool,
    /// What it is of: the alternatives or the mix, what of them was measured, beside which, with how many clients or with what
    /// changed.
    pub subject: String,
    /// What this plan says of the alternative, where the design is the shipped one and the row is about one's rate.
    pub planned_mreq_per_s: Option<f64>,
    /// What this plan says of what the row is about, in the unit of what was published: the least, where it is about several.
    /// Null where the design is not the shipped one, or the plan has no such figure.
    pub planned_low: Option<f64>,
    /// The greatest.
    pub planned_high: Option<f64>,
    /// Whether `offpath explain` predicts it of step lists where this plan follows the application's code, so that it has other
    /// figures.
    pub explained_by_steps: bool,
}

/// Two alternatives or mixes that were measured in the other order than they are planned in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReversedOrderAnswer {
    /// What was measured to carry more.
    pub faster: &'static str,
    /// The row that says so.
    pub faster_row: &'static str,
    /// What was measured of it.
    pub faster_published_mreq_per_s: f64,
    /// What is planned of it.
    pub faster_planned_mreq_per_s: f64,
    /// What was measured to carry less, by a twentieth or more.
    pub slower: &'static str,
    /// The row that says so.
    pub slower_row: &'static str,
    /// What was measured of it.
    pub slower_published_mreq_per_s: f64,
    /// What is planned of it.
    pub slower_planned_mreq_per_s: f64,
}

impl MeasuredOtherwise {
    pub(crate) fn of(beside: &Beside<'_>) -> MeasuredOtherwise {
        let Beside { design, system, is_other_system, plan, .. } = *beside;
        let missed = missed_of(design, system).into_iter();
        MeasuredOtherwise {
            missed_rows: missed
                .map(|one| Missed { is_as_shipped: one.is_as_shipped && !is_other_system, ..one })
                .map(|one| MissedAnswer::of(one, beside))
                .collect(),
            reversed_orders: ReversedOrderAnswer::all(&measured_rates(design, &system.device), plan),
        }
    }

    /// It in lines, which stand at the answer: whoever reads on knows that the answer may be wrong.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        // What says most comes first: a rate beside the planned one, then what else is planned.
        let mut missed: Vec<&MissedAnswer> = self.missed_rows.iter().collect();
        missed.sort_by_key(|one| (one.planned_mreq_per_s.is_none(), one.planned_low.is_none()));
        if let Some(MissedAnswer { row: first, .. }) = missed.first() {
            let each: Vec<String> = missed.iter().map(|one| one.text()).collect();
            let designs: BTreeSet<String> =
                self.missed_rows.iter().map(|one| format!("`{}`", one.design)).collect();
            let about = match self.missed_rows.iter().all(|one| one.as_shipped) {
                true => "published about this design as it is shipped".to_string(),
                false => format!(
                    "published about the shipped {}, some of whose steps these are",
                    designs.into_iter().collect::<Vec<_>>().join(" and ")
                ),
            };
            lines.push(format!(
                "measured otherwise: {}, {about}; `offpath explain {first}` says by how much{}",
                each.join(", "),
                self.by_steps()
            ));
        }
        if !self.reversed_orders.is_empty() {
            let each: Vec<String> = self.reversed_orders.iter().map(ReversedOrderAnswer::text).collect();
            lines.push(format!("order: measured the other way round than planned here: {}", each.join("; ")));
        }
        lines
    }

    /// Of which rows `offpath explain` has other figures than the plan, in words.
    fn by_steps(&self) -> String {
        let rows: Vec<&str> =
            self.missed_rows.iter().filter(|one| one.explained_by_steps).map(|one| one.row).collect();
        match &rows[..] {
            [] => String::new(),
            rows => format!(
                ", of {} by step lists (`--steps`) in place of the code that is planned here",
                rows.join(", ")
            ),
        }
    }
}

/// What a plan says of an alternative or a mix that the design names.
fn planned_mreq_per_s(plan: &Plan, name: &str) -> Option<f64> {
    let alternatives = plan.alternatives.iter().map(|one| (&one.name, one.rate.value));
    let mut all = alternatives.chain(plan.mixes.iter().map(|one| (&one.name, one.rate.value)));
    all.find(|(own, _)| *own == name).map(|(_, rate)| rate / 1e6)
}

/// What a plan says of what a row measured, in the unit of what was published: the least and the greatest, where the row is about
/// several.
fn planned_of(one: &Missed, beside: &Beside<'_>) -> Option<(f64, f64)> {
    let Beside { plan, unit, .. } = *beside;
    let of = |name: &str| -> Option<Vec<f64>> {
        match one.figure {
            MeasuredFigure::Rate => Some(vec![planned_mreq_per_s(plan, name)? * 1e6]),
            MeasuredFigure::Latency => {
                let found = plan.alternatives.iter().find(|one| one.name == name)?;
                Some(vec![found.latency_s.value])
            }
            MeasuredFigure::Clients(counts) => {
                let (_, runs) = beside.clients.iter().find(|(own, _)| own == name)?;
                let at = |count: &u32| {
                    let index = beside.design.clients.iter().position(|own| own == count)?;
                    runs.get(index)?.result()
                };
                counts.iter().map(at).collect()
            }
            MeasuredFigure::Other => None,
        }
    };
    let subjects = one.mix.map_or_else(|| one.alternatives.clone(), |mix| vec![mix]);
    let told: Vec<f64> = match one.told_as {
        ToldAs::Itself => {
            let in_unit = |base: f64| match (one.figure, one.published.rsplit(' ').next()?) {
                (MeasuredFigure::Rate, "M/s") => Some(base / 1e6),
                (MeasuredFigure::Rate, "Gbit/s") => unit.payload_bytes.map(|_| unit.of_rate(base)),
                (MeasuredFigure::Latency, "us") => Some(base * 1e6),
                _ => None,
            };
            let all = subjects.iter().map(|name| of(name)).collect::<Option<Vec<_>>>()?;
            all.concat().into_iter().map(in_unit).collect::<Option<_>>()?
        }
        told_as => {
            let mut ratios = Vec::new();
            for (subject, over) in
                subjects.iter().flat_map(|own| one.over.iter().map(move |over| (own, over)))
            {
                ratios.extend(of(subject)?.into_iter().zip(of(over)?).map(|(own, over)| own / over));
            }
            let is_change = told_as == ToldAs::Change;
            ratios.into_iter().map(|ratio| if is_change { (ratio - 1.0) * 100.0 } else { ratio }).collect()
        }
    };
    let is_told = one.is_as_shipped && one.is_of_plan && !told.is_empty();
    let ends = || {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        told.iter().fold(ends, |(low, high), one| (one.min(low), one.max(high)))
    };
    is_told.then(ends)
}

impl MissedAnswer {
    fn of(one: Missed, beside: &Beside<'_>) -> MissedAnswer {
        let planned = planned_of(&one, beside);
        let explained_by_steps = one.is_of_steps && beside.design.application.is_some();
        let Missed { row, published, design, alternatives, mix, is_as_shipped, subject, .. } = one;
        let is_rate = published.parse::<OpRate>().is_ok();
        MissedAnswer {
            row,
            published,
            design,
            alternatives,
            mix,
            as_shipped: is_as_shipped,
            subject,
            planned_mreq_per_s: planned.filter(|_| is_rate).map(|(low, _)| low),
            planned_low: planned.map(|(low, _)| low),
            planned_high: planned.map(|(_, high)| high),
            explained_by_steps,
        }
    }

    /// The row with what it is of, what it says and what the plan does, as in `W268 (A4: 58.3 M/s, planned 78.1)`.
    fn text(&self) -> String {
        let shown = |value: f64| if self.published.ends_with('%') { signed(value, 1) } else { short(value) };
        let planned = self.planned_low.zip(self.planned_high).map(|(low, high)| (shown(low), shown(high)));
        let planned = match planned {
            Some((low, high)) if low == high => format!(", planned {low}"),
            Some((low, high)) => format!(", planned {low} to {high}"),
            None => String::new(),
        };
        let parts = [&self.subject, &self.published].into_iter().filter(|part| !part.is_empty());
        let said: Vec<&str> = parts.map(String::as_str).collect();
        match said.is_empty() {
            true => self.row.to_string(),
            false => format!("{} ({}{planned})", self.row, said.join(": ")),
        }
    }
}

impl ReversedOrderAnswer {
    /// A pair counts where the measured rates lie apart by more than single measurements of one paper are held to.
    fn all(measured: &[MeasuredRate], plan: &Plan) -> Vec<ReversedOrderAnswer> {
        const APART: f64 = 1.05;
        let planned = |one: &MeasuredRate| planned_mreq_per_s(plan, one.of);
        let known: Vec<(&MeasuredRate, f64)> =
            measured.iter().filter_map(|one| Some((one, planned(one)?))).collect();
        let pairs = known.iter().flat_map(|faster| known.iter().map(move |slower| (faster, slower)));
        pairs
            .filter(|((faster, of_faster), (slower, of_slower))| {
                faster.rate.as_million_per_s() > APART * slower.rate.as_million_per_s()
                    && of_faster < of_slower
            })
            .map(|((faster, of_faster), (slower, of_slower))| ReversedOrderAnswer {
                faster: faster.of,
                faster_row: faster.row,
                faster_published_mreq_per_s: faster.rate.as_million_per_s(),
                faster_planned_mreq_per_s: *of_faster,
                slower: slower.of,
                slower_row: slower.row,
                slower_published_mreq_per_s: slower.rate.as_million_per_s(),
                slower_planned_mreq_per_s: *of_slower,
            })
            .collect()
    }

    /// The pair, as in `A above B (W1, W2)`.
    fn text(&self) -> String {
        format!("{} above {} ({}, {})", self.faster, self.slower, self.faster_row, self.slower_row)
    }
}
