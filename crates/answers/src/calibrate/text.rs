//! What logs say of a card, as a page of text.

use super::{
    BaseErrorsAnswer, CalibrateAnswer, CalibratedPointAnswer, CardErrorsAnswer, CoveredAnswer,
    DirectionsAnswer, ErrorAnswer, MovedLatencyAnswer,
};
use crate::file_names::file_names;
use crate::import::ImportRemarkAnswer;
use offpath_profile::Provenance;
use offpath_terminal::output::{Screen, TableCell, counted, signed};

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_string(), |value| format!("{:.1}%", 100.0 * value))
}

/// A loss that a diagnosis does not see is worth a word from here on.
const UNSEEN: f64 = 0.15;

/// How many of the worst points are shown.
const WORST: usize = 8;

impl CalibrateAnswer {
    /// The answer as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        let points: usize = self.logs.iter().map(|log| log.points).sum();
        let mut text = format!(
            "{} of {}, {}, begun from {}\nheld out: {}\n",
            counted(points as u64, "point"),
            counted(self.logs.len() as u64, "log"),
            self.path,
            self.system.line(),
            self.held_out.join("; "),
        );
        text.extend(self.unlike_ends.iter().map(|said| format!("{said}\n")));
        for one in &self.left_aside {
            let rows = counted(one.rows, "row");
            text += &format!("left aside: {}:{}, {rows}: {}\n", one.file, one.line, one.why);
        }
        // One kind of remark about many lines of a file is said of the first of them.
        let mut incomplete: Vec<(&ImportRemarkAnswer, u64)> = Vec::new();
        for one in &self.incomplete {
            let is_same = |(first, _): &&mut (&ImportRemarkAnswer, u64)| {
                (&first.file, first.kind) == (&one.file, one.kind)
            };
            match incomplete.iter_mut().find(is_same) {
                Some((_, lines)) => *lines += one.lines,
                None => incomplete.push((one, one.lines)),
            }
        }
        for (first, lines) in incomplete {
            let ImportRemarkAnswer { file, line, why, .. } = first;
            text += &match lines {
                1 => format!("incomplete: {}\n", first.sentence()),
                _ => format!("incomplete: {file}:{line}: {why} ({})\n", counted(lines, "line")),
            };
        }
        text.extend(self.log_doubts.iter().map(|said| format!("DOUBTED: {said}.\n")));
        let has_latency = self.points.iter().any(|one| one.metric == "latency_ns" && !one.held_out);
        let telling = if has_latency { "a run below tells" } else { "a latency log tells" };
        text += &screen.heading("Numbers that the points tell");
        let rows = self.numbers.iter().map(|one| {
            vec![
                TableCell::Strong(one.name.clone()),
                TableCell::Number(one.base.clone()),
                TableCell::Number(one.value.clone()),
                TableCell::Text(format!("{} to {}", one.low_90, one.high_90)),
                TableCell::Text(match (one.assumed_because, one.told) {
                    (Some("untold"), _) => {
                        "fits, and is not told: the points leave it as much room as the base does".to_string()
                    }
                    (Some("rough"), _) if one.stands_for.is_empty() => "not told to 5%".to_string(),
                    (Some("rough"), _) => {
                        format!("not told to 5%; stands for {}, too", one.stands_for.join(", "))
                    }
                    (Some("doubted-logs"), _) => "fits, and the logs are in doubt".to_string(),
                    (Some("not-described"), _) => {
                        "fits best, and the model does not describe this card".to_string()
                    }
                    (Some("at-bound"), _) => "the search ends there, and the points ask for more".to_string(),
                    (Some("replaceable"), _) => {
                        let by = match one.replaceable_by.is_empty() {
                            true => "the points fit as well with it elsewhere".to_string(),
                            false => {
                                format!(
                                    "the points fit as well by {}",
                                    crate::calibrate::in_words(&one.replaceable_by)
                                )
                            }
                        };
                        let run = match &one.run {
                            Some(run) => format!("`{run}` tells"),
                            None => "no run that was tried tells".to_string(),
                        };
                        let machine = match one.machine_tells {
                            true => "; the machine says what its links and ports run at",
                            false => "",
                        };
                        format!("fits, and is not told: {by}; {run}{machine}")
                    }
                    (Some(_), _) => format!(
                        "fits, and is not told: beyond what the base allows; {telling}; stands for {}, too",
                        one.stands_for.join(", ")
                    ),
                    (None, _) => String::new(),
                }),
            ]
        });
        text += &screen.table(&["number", "base", "fitted", "90% interval", ""], rows.collect());
        if !self.numbers.is_empty() {
            text += "An interval is of what the fitted logs scatter by and of what other numbers leave open: what another log says may lie \
                     outside, and a row less may move it, and with it whether the number is told.\n";
        }
        let ended: Vec<&str> = self
            .numbers
            .iter()
            .filter(|one| one.assumed_because == Some("at-bound"))
            .map(|one| one.name.as_str())
            .collect();
        if !ended.is_empty() {
            text += &format!(
                "NOT DESCRIBED: the points ask {} for more than the search allows, so that the card is none of its base's kind there. Look \
                 at the errors below, take another base, or give the number by `--set`.\n",
                ended.join(" and ")
            );
        }
        if !self.kept.is_empty() {
            text += &screen.heading("Numbers that were not fitted");
            let rows = self.kept.iter().map(|one| {
                let reason = match one.reason {
                    "not-told-apart" => format!("not told apart from {}", one.alike.join(", ")),
                    "pinned" => "pinned".to_string(),
                    "not-needed" => "felt, and the fit did not need it".to_string(),
                    "confirmed" => "measured of the machine, and the points hold it there".to_string(),
                    _ => "no fitted point feels it".to_string(),
                };
                let machine = one.machine_tells.then(|| "the machine".to_string());
                let tells: Vec<String> = one.run.clone().into_iter().chain(machine).collect();
                let tells = if tells.is_empty() { "-".to_string() } else { tells.join("; ") };
                let reason = match one.low.as_ref().zip(one.high.as_ref()) {
                    Some((low, high)) => {
                        let taken = match one.card_value == one.value {
                            true => String::new(),
                            false => format!("; the card has {}", one.card_value),
                        };
                        format!("{reason}: {low} to {high}{taken}")
                    }
                    None => reason,
                };
                vec![
                    TableCell::Text(one.name.clone()),
                    TableCell::Number(one.value.clone()),
                    TableCell::Text(reason),
                    TableCell::Text(tells),
                ]
            });
            text += &screen.table(&["number", "base", "why", "what tells it"], rows.collect());
        }
        let of_machine = self.numbers.iter().filter(|one| one.machine_tells);
        let pairs = of_machine.filter_map(|one| {
            let other = one.replaceable_by.first()?.join(" with ");
            Some(format!("{} or {other}", one.name))
        });
        let pairs: Vec<String> = pairs.collect();
        text += &format!(
            "\nA run tells where its predictions differ by more than {}, twice what eight of ten fitted points err by and 2% at least.",
            percent(Some(self.telling_difference))
        );
        if pairs.is_empty() {
            text += "\n";
        } else {
            text += &format!(
                " What links and ports run at the machine says: `offpath collect -o machine.tar`, `offpath new device NAME --base DEVICE --from \
                 machine.tar`, and that file as the base. Until then it is the one or the other ({}), and each interval has both in it.\n",
                pairs.join("; ")
            );
        }
        text += &screen.heading("Errors, without their signs");
        let row = |what: &str, error: &ErrorAnswer| {
            vec![
                TableCell::Text(what.to_string()),
                TableCell::Number(error.points.to_string()),
                TableCell::Number(percent(error.median)),
                TableCell::Number(percent(error.p90)),
                TableCell::Number(percent(error.greatest)),
            ]
        };
        let rows = vec![
            row("fitted points", &self.fitted_error),
            row("each without its own run", &self.left_out_error),
            row("each without its own log, of DMA its own series", &self.left_out_cluster_error),
            row("held-out points", &self.held_out_error),
            row("- by a roofline of two numbers", &self.held_out_error_of_roofline),
            row("- by a straight line of time over size", &self.held_out_error_of_line),
            row("between repeated runs", &self.repeated_difference),
        ];
        text += &screen.table(&["", "points", "median", "nine of ten within", "greatest"], rows);
        if self.worse_than_roofline {
            text += &format!(
                "WORSE THAN TWO NUMBERS: held-out points are off by {} in the median, and by {} with a roofline. The model does not describe \
                 this card; plan nothing with it. Its file says so, and none of its numbers is taken to be measured.\n",
                percent(self.held_out_error.median),
                percent(self.held_out_error_of_roofline.median)
            );
        }
        if self.roofline_is_nearer && !self.worse_than_roofline {
            let (own, roofline) = (&self.held_out_error, &self.held_out_error_of_roofline);
            let nearer = |what: &str, own: Option<f64>, roofline: Option<f64>| {
                let is_nearer = own.zip(roofline).is_some_and(|(own, roofline)| roofline < own);
                is_nearer.then(|| format!("{what} within {} instead of {}", percent(roofline), percent(own)))
            };
            let parts = [
                nearer("the middle one of the held-out points", own.median, roofline.median),
                nearer("nine of ten held-out points", own.p90, roofline.p90),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            text += &format!("A roofline of two numbers is nearer to {}.\n", parts.join(", and to "));
        }
        if self.held_out_error.points > 0 && !self.worse_than_roofline {
            text += &format!(
                "{} of {} held-out points are within their 80% intervals, which are of what such points err by on these machines; those of \
                 `path --as` are of runs to come and wider, by what all numbers of the card leave open.\n",
                self.held_out_within_80, self.held_out_error.points
            );
            let CoveredAnswer { points, within_80 } = self.held_out_of_unfitted_series;
            if points > 0 {
                text += &format!(
                    "Of those, {} of {} are of runs that are fitted at other sizes, and {within_80} of {points} of runs that are fitted at \
                     none.\n",
                    self.held_out_within_80 - within_80,
                    self.held_out_error.points - points,
                );
            }
        }
        if let Some(DirectionsAnswer { apart, alike }) = self.warm_against_cold {
            text += &format!(
                "Warm against cold: of {} that differ by over 2%, {} do in the predicted direction, and {} do as a rule without a model \
                 says (what reads is faster warm, what writes as fast). Of {} that do not, {} are predicted not to, by that rule {}.\n",
                counted(apart.pairs as u64, "pair"),
                apart.right,
                apart.right_by_rule,
                counted(alike.pairs as u64, "pair"),
                alike.right,
                alike.right_by_rule,
            );
        }
        let few = |one: &CardErrorsAnswer| match one.widened_times > 1.0 {
            true => format!(
                ", of {} {} alone, too few to say what another one errs by, so that what they err by is taken {:.1} times as far",
                one.clusters,
                if one.traffic.iter().any(|traffic| traffic == "dma") { "series" } else { "logs" },
                one.widened_times
            ),
            false => String::new(),
        };
        for one in &self.card_errors {
            let within = |log: f64| percent(Some(log.exp() - 1.0));
            let bound_by = match one.bound_by.is_empty() {
                true => String::new(),
                false => format!(" that {} bound", one.bound_by.join(" and ")),
            };
            text += &format!(
                "A prediction of {} of {}{bound_by} in another log is taken to be off by {} in half of all, {} in eight of ten, {} in nine of ten and \
                 {} at most, by {} points without their own run and log{}: the card has it, and `path --as` \
                 widens by it what rests for half or more on numbers that say `measured-here` or `held-here`. A log that repeats another is another log here, so that runs of other settings may be farther off. Of other \
                 verbs, directions and few requests in flight it says nothing.\n",
                one.figure,
                one.traffic.join(" and "),
                within(one.half_within),
                within(one.eight_of_ten_within),
                within(one.nine_of_ten_within),
                within(one.all_within),
                one.points,
                few(one),
            );
        }
        let throughput = self.card_errors.iter().filter(|one| one.figure == "throughput");
        let widest = throughput.max_by(|a, b| a.nine_of_ten_within.total_cmp(&b.nine_of_ten_within));
        if let Some(own) = widest.filter(|own| own.nine_of_ten_within.exp_m1() > UNSEEN) {
            text += &format!(
                "Beside this card `offpath diagnose` sees a loss of {} and less as what it cannot decide; more logs of such runs narrow \
                 it.\n",
                percent(Some(-(-own.nine_of_ten_within).exp_m1()))
            );
        }
        if let Some(MovedLatencyAnswer { base_ns, card_ns }) = self.untold_read_latency {
            text += &format!(
                "NO LATENCY IS MEASURED: no log has one. A READ of 8 B takes {:.2} us by the base, and {:.2} us by what fits the bandwidths: \
                 take no latency from this card, and no rate of few requests in flight, before a log of `ib_read_lat` is among its logs.\n",
                base_ns / 1e3,
                card_ns / 1e3
            );
        }
        let error = |one: &CalibratedPointAnswer, value: f64| value / one.measured - 1.0;
        let mut worst: Vec<&CalibratedPointAnswer> = self.points.iter().collect();
        worst.sort_by(|a, b| error(b, b.predicted).abs().total_cmp(&error(a, a.predicted).abs()));
        text += &screen.heading("The points that are predicted worst");
        let names = file_names(self.points.iter().map(|one| &*one.file));
        let rows = worst.into_iter().take(WORST).map(|one| {
            vec![
                TableCell::Text(format!("{}:{}", names[&*one.file], one.line)),
                TableCell::Text(one.run.clone()),
                TableCell::Text(if one.held_out { "held out".into() } else { "fitted".into() }),
                TableCell::Number(signed(100.0 * error(one, one.predicted), 1)),
                TableCell::Number(signed(100.0 * error(one, one.roofline), 1)),
            ]
        });
        text += &screen.table(&["log", "run", "", "error", "roofline"], rows.collect());
        let mtu = self.mtu_bytes.map(|mtu| format!(" Its network has the logs' MTU, {mtu} B."));
        let header = self.packet_header_bytes.map(|header| {
            format!(
                " The logs state Ethernet: its packets have {header} B beside the payload, as RoCEv2 has it."
            )
        });
        let mtu = mtu.unwrap_or_default() + &header.unwrap_or_default();
        let names: Vec<&str> = self.card.iter().map(|file| file.name.as_str()).collect();
        let of = |guess: Provenance| -> Option<String> {
            let fitted = self.numbers.iter().filter(|one| one.provenance == guess.name());
            let of_kept = if self.worse_than_roofline { Provenance::Assumed } else { Provenance::HeldHere };
            let kept = self.kept.iter().filter(|one| guess == of_kept && one.low.is_some());
            let names: Vec<&str> =
                fitted.map(|one| one.name.as_str()).chain(kept.map(|one| one.name.as_str())).collect();
            (!names.is_empty()).then(|| format!("{} `{guess}`", names.join(", ")))
        };
        let guesses: Vec<String> =
            [Provenance::HeldHere, Provenance::Assumed].into_iter().filter_map(of).collect();
        let is_any_measured = self.kept.iter().any(|one| one.reason == "confirmed")
            || self.numbers.iter().any(|one| one.provenance == Provenance::MeasuredHere.name());
        let numbers = match (is_any_measured, guesses.is_empty()) {
            (true, true) => "Its numbers say `measured-here`".to_string(),
            (true, false) => format!("Its numbers say `measured-here`, but {}", guesses.join(" and ")),
            (false, true) => "No number was fitted".to_string(),
            (false, false) => format!("None of its numbers is measured: {}", guesses.join(" and ")),
        };
        let rest = match self.facts_stay {
            true => {
                "all others are as the base has them, which is taken to be of these machines: of another machine with \
                     such a card begin with the base that it was made from"
            }
            false => "all others are the base's, carried over",
        };
        text +=
            &format!("\nThe card, which `-o FILE` writes: {}.{mtu} {numbers}; {rest}.\n", names.join(", "));
        if !self.measured_before.is_empty() {
            text += &format!(
                "Measured or held here before, and not fitted anew by these logs: {}. They stay.\n",
                self.measured_before.join(", ")
            );
        }
        for BaseErrorsAnswer { figure, traffic, why, .. } in &self.base_errors {
            let becomes =
                why.as_ref().map_or_else(|| "stay".to_string(), |why| format!("do not stay: {why}"));
            text += &format!("The base's own errors of {figure} of {} {becomes}.\n", traffic.join(" and "));
        }
        text
    }
}
