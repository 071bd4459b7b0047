//! An explanation as a page of text.

use super::{ExplainAnswer, NANOSECONDS};
use crate::rows::{error_percent, figure};
use offpath_terminal::output::{Screen, TableCell, fixed, signed};

impl ExplainAnswer {
    /// The answer as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = format!("{} ({}, {}): {}\n", self.id, self.source, self.kind, self.states);
        text += &self.outcome();
        text += &format!("Role: {}", self.role.replace('_', " "));
        text += &if self.reason.is_empty() { ".\n".to_string() } else { format!("; {}.\n", self.reason) };
        if let Some(what) = &self.measured_here {
            text += &format!("Its prediction rests on what was measured here: {what}.\n");
        }
        if let Some(why) = &self.no_prediction {
            text += &format!("It counts as no prediction: {why}.\n");
        }
        if !self.fitted_numbers.is_empty() {
            text += &format!("Numbers that name it as their evidence: {}.\n", self.fitted_numbers.join(", "));
        }
        if let Some(experiment) = &self.experiment {
            text += &screen.heading("Experiment");
            text += &format!("{experiment}\n");
        }
        if let Some(design) = &self.design_by_steps {
            text += &format!(
                "It predicts the step lists of designs/{design}.toml, as `offpath plan designs/{design}.toml --steps` plans \
                 them; without `--steps` the code that the design names is planned, whose figures are others.\n"
            );
        }
        text += &self.places_text(screen);
        text += &self.parts_text(screen);
        if !self.moved_by.is_empty() {
            text += &screen.heading("Numbers whose interval moves it most");
            let rows = self.moved_by.iter().take(6).map(|one| {
                vec![TableCell::Text(one.number.clone()), TableCell::Number(signed(one.change_percent, 1))]
            });
            text += &screen.table(&["number", "change"], rows.collect());
        }
        if !self.turned_by.is_empty() {
            let turned = if self.within == Some(true) { "miss" } else { "be within" };
            text += &format!(
                "\nWith any one of these at an end of its interval it would {turned}: {}.\n",
                self.turned_by.join(", ")
            );
        }
        let links = self.null_error_links.map(|error| format!("links alone {}", signed(100.0 * error, 1)));
        let nearest = self.null_error_nearest_row.zip(self.nearest_row.as_ref());
        let nearest =
            nearest.map(|(error, id)| format!("taking {id}, the nearest row, {}", signed(100.0 * error, 1)));
        let null: Vec<String> = [links, nearest].into_iter().flatten().collect();
        if !null.is_empty() {
            text += &format!("\nErrors of the null models: {}.\n", null.join(", "));
        }
        if !self.alike.is_empty() {
            text += &format!("Rows that state nearly the same: {}.\n", self.alike.join(", "));
        }
        text
    }

    /// What was published, and how far off the prediction is.
    fn outcome(&self) -> String {
        let mut text = String::new();
        if let Some(claim) = &self.published {
            text += &format!("Published: {claim} {}\n", self.unit);
        }
        if let Some(number) = &self.number {
            let times = number.times.as_ref().map_or_else(String::new, |times| format!(" times {times}"));
            text += &format!("Published: {}{times} of {} is {}\n", number.name, number.device, number.value);
        }
        let agrees = self.within == Some(true);
        if let Some(held) = &self.held {
            text +=
                &format!("The profile holds {held}: {}.\n", if agrees { "the same" } else { "it differs" });
        }
        let (Some(predicted), Some(error)) = (self.predicted, self.error) else { return text };
        text += format!("Predicted: {} {}", figure(predicted), self.unit).trim_end();
        if let (Some(low), Some(high)) = (self.low, self.high)
            && high - low > 1e-9 * high.abs()
        {
            let made_of = match (self.has_past_errors, self.is_drawn) {
                (true, true) => "open mechanisms and past errors in it",
                (true, false) => "of past errors alone: nothing of it is drawn",
                (false, _) => "of the profiles' numbers and open mechanisms alone",
            };
            text += &format!(", 80% interval {} to {} ({made_of})", figure(low), figure(high));
        }
        if let Some((from, to)) = self.over_the_sweep.filter(|(from, to)| from != to) {
            text += &format!("; over the sweep {} to {}", figure(from), figure(to));
        }
        text + &format!(
            ".\nError: {}, with a tolerance of {}%: {}.\n",
            error_percent(error, !agrees),
            figure(self.tolerance_percent),
            match (agrees, error.abs() < 0.0005) {
                (true, _) => "within",
                (false, false) => "it misses",
                (false, true) => "one place at least equals the bound that it has to be beyond, so it misses",
            }
        )
    }

    fn places_text(&self, screen: &Screen) -> String {
        if self.places.is_empty() {
            return String::new();
        }
        let compared = self.places.iter().any(|place| place.own.is_some());
        let expected = self.places.iter().any(|place| place.expected.is_some());
        let mut header = vec!["place", "value"];
        if compared {
            header.extend(["measured", "against"]);
        }
        if expected {
            header.push("expected");
        }
        header.push("binds");
        let dash = || "-".to_string();
        let rows = self.places.iter().map(|place| {
            let mut cells =
                vec![TableCell::Text(place.place.clone()), TableCell::Number(figure(place.value))];
            if compared {
                let against: Vec<String> = place.against.iter().map(|value| figure(*value)).collect();
                cells.push(TableCell::Number(place.own.map_or_else(dash, figure)));
                cells.push(TableCell::Number(against.join(", ")));
            }
            if expected {
                cells.push(TableCell::Number(place.expected.map_or_else(dash, figure)));
            }
            cells.push(TableCell::Name(place.binding_station.clone().unwrap_or_else(dash)));
            cells
        });
        screen.heading("Place by place") + &screen.table(&header, rows.collect())
    }

    fn parts_text(&self, screen: &Screen) -> String {
        let Some(first) = self.parts.first() else { return String::new() };
        let heading = screen.heading(match first.unit {
            NANOSECONDS => "The latency at the first place, term by term",
            _ => "The stations at the first place, at its greatest rate",
        });
        let rows = self.parts.iter().map(|part| {
            vec![
                TableCell::Text(part.name.clone()),
                TableCell::Number(format!("{} {}", fixed(part.value, 1), part.unit)),
            ]
        });
        heading + &screen.table(&["part", ""], rows.collect())
    }
}
