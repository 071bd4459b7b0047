//! Which published rows measured an alternative, so that no other row is taken for evidence of it.

use crate::design::Alternative;
use crate::planner::make_ready;
use crate::program::Fold;
use crate::{Design, residual, shipped};
use offpath_profile::System;
use offpath_quantity::OpRate;
use offpath_route::Router;
use offpath_workload::Workload;
use serde::Deserialize;
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    row: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    published: Option<toml::Table>,
    #[serde(default)]
    unit: String,
    experiment: Option<Experiment>,
}

#[derive(Deserialize)]
struct Experiment {
    measure: String,
    design: Option<String>,
    alternative: Option<toml::Value>,
    mix: Option<String>,
    shares: Option<toml::Value>,
    against: Option<toml::Value>,
    which: Option<String>,
    #[serde(default)]
    clients: Vec<u32>,
    #[serde(rename = "as")]
    told_as: Option<toml::Value>,
    break_even: Option<BreakEven>,
    parameters: Option<toml::Table>,
    set: Option<toml::Table>,
    overlays: Option<toml::Value>,
    #[serde(default)]
    steps: bool,
    vary: Option<toml::Value>,
    device: Option<String>,
}

#[derive(Deserialize)]
struct BreakEven {
    parameter: String,
    with: String,
}

/// What of an alternative or a mix a row measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredFigure {
    /// Its throughput.
    Rate,
    /// The same with so many clients of one request each.
    Clients(&'static [u32]),
    /// Its unloaded latency.
    Latency,
    /// Something else, which no plan gives.
    Other,
}

/// How a row tells what it measured beside something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldAs {
    /// As it is: beside nothing.
    Itself,
    /// As a ratio.
    Ratio,
    /// As a change in percent.
    Change,
}

impl Experiment {
    fn figure(&'static self) -> MeasuredFigure {
        match self.measure.as_str() {
            "design-rate" | "design-bandwidth" => MeasuredFigure::Rate,
            "design-clients" => MeasuredFigure::Clients(&self.clients),
            "design-latency" => MeasuredFigure::Latency,
            _ => MeasuredFigure::Other,
        }
    }

    /// Each of the alternatives that it was measured beside; none where it was beside nothing or something else.
    fn over(&self) -> Vec<&str> {
        fn name(one: &toml::Value) -> Option<&str> {
            one.get("alternative")?.as_str()
        }
        match &self.against {
            Some(toml::Value::Array(all)) => all.iter().filter_map(name).collect(),
            Some(one) => name(one).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Whether it is of the design with nothing changed, each alternative beside each, so that a plan of that may say the same.
    fn is_of_plan(&self) -> bool {
        let changed = [&self.overlays, &self.vary, &self.shares].into_iter().any(Option::is_some)
            || self.parameters.is_some()
            || self.set.is_some()
            || self.device.is_some();
        !changed
            && self.which.is_none()
            && self.against.is_some() != self.over().is_empty()
            && self.against.is_some() == (self.told_as() != ToldAs::Itself)
    }

    fn told_as(&self) -> ToldAs {
        match self.told_as.as_ref().and_then(toml::Value::as_str) {
            Some("ratio") => ToldAs::Ratio,
            Some("change") => ToldAs::Change,
            _ => ToldAs::Itself,
        }
    }

    /// What it is of, in words.
    fn subject(&self) -> String {
        let what = match self.measure.as_str() {
            "design-latency" => "latency of ",
            "design-host-cpu" => "host processor time of ",
            "design-network-bytes" | "design-link-bytes" => "bytes of ",
            "design-verbs" => "verbs of ",
            _ => "",
        };
        let own = self.mix.clone().unwrap_or_else(|| self.alternatives().join(", "));
        let own = match &self.shares {
            Some(_) => "mixes beside others of the same alternatives".to_string(),
            None => own,
        };
        let over = match (&self.against, &self.over()[..]) {
            (Some(_), []) if self.shares.is_none() => " over the same without the engine".to_string(),
            (None, _) | (Some(_), []) => String::new(),
            (Some(_), over) => format!(" over {}", over.join(", ")),
        };
        let clients = match (self.clients.first(), self.clients.last()) {
            (Some(1), Some(1)) => " with 1 client".to_string(),
            (Some(few), Some(many)) if few == many => format!(" with {few} clients"),
            (Some(few), Some(many)) => format!(" with {few} to {many} clients"),
            _ => String::new(),
        };
        let even = self.break_even.as_ref().map_or_else(String::new, |BreakEven { parameter, with }| {
            format!(", the `{parameter}` at which it carries as much as {with}")
        });
        let changed = self.parameters.iter().chain(&self.set).flatten();
        let changed: Vec<String> =
            changed.map(|(name, value)| format!("{name} {}", value.as_str().unwrap_or("changed"))).collect();
        let at = if changed.is_empty() { String::new() } else { format!(" at {}", changed.join(", ")) };
        format!("{what}{own}{over}{clients}{even}{at}")
    }

    /// The alternatives that it measured; none where it measured a mix.
    fn alternatives(&self) -> Vec<&str> {
        match &self.alternative {
            Some(toml::Value::String(name)) => vec![name],
            Some(toml::Value::Array(names)) => names.iter().filter_map(toml::Value::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

/// A published row that this version of offpath does not meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Missed {
    /// Its name.
    pub row: &'static str,
    /// What was published, as in `58.3 M/s`.
    pub published: String,
    /// The shipped design that it is about.
    pub design: &'static str,
    /// The alternatives of it that were measured; none where a mix was.
    pub alternatives: Vec<&'static str>,
    /// The mix of it that was.
    pub mix: Option<&'static str>,
    /// What that is of, in words, as in `latency of A3 over A2 at chunk 8 MiB`.
    pub subject: String,
    /// What of them was measured.
    pub figure: MeasuredFigure,
    /// The alternatives that it was measured beside, each.
    pub over: Vec<&'static str>,
    /// As what it is told.
    pub told_as: ToldAs,
    /// Whether it was measured with nothing of the shipped design changed, so that a plan of that may say the same.
    pub is_of_plan: bool,
    /// Whether step lists are predicted of it, also where the design names code that does the same.
    pub is_of_steps: bool,
    /// Whether the design that is planned is the shipped one in what its requests do and on what; else some of its
    /// alternatives are.
    pub is_as_shipped: bool,
}

/// What was measured of an alternative of a shipped design by itself, or of a mix.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredRate {
    /// The row.
    pub row: &'static str,
    /// The alternative or mix.
    pub of: &'static str,
    /// Requests per second.
    pub rate: OpRate,
}

/// The rates that were measured of the alternatives and mixes of a design as it is shipped, on the card of that name: what is
/// predicted of each within its tolerance may still turn their order round.
pub fn measured_rates(design: &Design, card: &str) -> Vec<MeasuredRate> {
    let Some(text) = shipped::design(&design.name) else { return Vec::new() };
    let read = |text: &str| text.parse::<toml::Table>().expect("a design that was read is TOML");
    let (own, shipped) = (read(&design.source.1), read(text));
    if shipped["design"].get("device").and_then(toml::Value::as_str) != Some(card) {
        return Vec::new();
    }
    let measured = rows().values().filter_map(|row| {
        let experiment = row.experiment.as_ref()?;
        let is_rate = experiment.measure == "design-rate" && experiment.against.is_none();
        let is_own = experiment.design.as_deref() == Some(&design.name);
        let (of, taken) = match (&experiment.alternatives()[..], experiment.mix.as_deref()) {
            ([alternative], None) => (*alternative, vec![*alternative]),
            ([], Some(mix)) => (mix, filled_by(&shipped, mix)?),
            _ => return None,
        };
        let is_shipped = || taken.iter().all(|alternative| is_as_shipped(&own, &shipped, alternative));
        let is_planned = is_rate && is_own && is_shipped();
        let published = row.published.as_ref().filter(|_| is_planned)?;
        let rate = published.get("is").or_else(|| published.get("about"))?;
        Some(MeasuredRate { row: &row.id, of, rate: format!("{rate} {}", row.unit).parse().ok()? })
    });
    measured.collect()
}

/// Whether a workload is the shipped one of the file's name with these changes: no row measured another.
pub(crate) fn is_shipped_workload(file: &str, set: BTreeMap<String, String>, workload: &Workload) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let shipped =
        shipped::workload(name).and_then(|text| Workload::parse(text, name).ok()?.with_overrides(set).ok());
    shipped.is_some_and(|shipped| shipped.properties().eq(workload.properties()))
}

/// The published rows by their names.
fn rows() -> &'static BTreeMap<String, Row> {
    static ROWS: OnceLock<BTreeMap<String, Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let rows = shipped::ROWS.into_iter().flat_map(|(_, text)| {
            toml::from_str::<File>(text).expect("the shipped rows are in order; a test reads them").row
        });
        rows.map(|row| (row.id.clone(), row)).collect()
    })
}

/// The published rows about a shipped design that this version of offpath does not meet, orders and measured numbers
/// alike. Whoever reads a plan of it should know in what it is already known to err, and so should who plans the same steps
/// under another name, with other numbers or on other records: that a design was changed makes no prediction better.
/// Steps are the same where they are written so, or ask the same of every station of `system`.
pub fn missed_of(design: &Design, system: &System) -> Vec<Missed> {
    let read = |text: &str| text.parse::<toml::Table>().expect("a design that was read is TOML");
    let own = read(&design.source.1);
    let router = Router::new(system).ok().map(Arc::new);
    let demands = |design: &Design| -> BTreeMap<String, Fold> {
        let own = design.alternatives.iter().filter(|one| one.device.is_none());
        let of = |one: &Alternative| {
            let ready = make_ready(design, one, router.clone()?).ok()?;
            Some((one.name.clone(), ready.compiled.fold(&ready.router)))
        };
        own.filter_map(of).collect()
    };
    let asked = LazyCell::new(|| demands(design));
    let mut of_shipped: BTreeMap<&str, BTreeMap<String, Fold>> = BTreeMap::new();
    let missed = residual::missed().iter().filter_map(|row| {
        let row = rows().get(row)?;
        let experiment = row.experiment.as_ref()?;
        let name = experiment.design.as_deref()?;
        let shipped = read(shipped::design(name)?);
        let alternatives = experiment.alternatives();
        let device = shipped["design"].get("device").and_then(toml::Value::as_str);
        if device != Some(&system.device) {
            return None;
        }
        let mut is_same = |alternative: &str| {
            let same = steps(&shipped, alternative);
            if !same.is_empty() && names(&own).iter().any(|own_name| same == steps(&own, own_name)) {
                return true;
            }
            let measured = of_shipped.entry(name).or_insert_with(|| {
                let parsed = shipped::parsed(name, design.application.is_none());
                parsed.map_or_else(BTreeMap::new, |design| demands(&design))
            });
            measured.get(alternative).is_some_and(|one| asked.values().any(|own| one.asks_as(own)))
        };
        let is_about = match alternatives.is_empty() {
            true => {
                let filled = experiment.mix.as_deref().and_then(|mix| filled_by(&shipped, mix));
                filled.unwrap_or_else(|| names(&shipped)).into_iter().all(&mut is_same)
            }
            false => alternatives.iter().copied().any(&mut is_same),
        };
        // A comparison is about whoever has both sides of it.
        let over = experiment.over();
        let is_about = is_about && (over.is_empty() || over.iter().copied().any(&mut is_same));
        // What parameters changed besides, no row measured.
        let mut rows = design.alternatives.iter().flat_map(|one| &one.rows);
        let is_as_shipped = design.name == name
            && rows.all(|(_, objection)| objection.is_none())
            && design.alternatives.iter().all(|one| is_as_shipped(&own, &shipped, &one.name));
        is_about.then(|| Missed {
            row: &row.id,
            published: row.published.as_ref().map_or_else(String::new, |claim| said(claim, &row.unit)),
            design: name,
            alternatives,
            mix: experiment.mix.as_deref(),
            subject: experiment.subject(),
            figure: experiment.figure(),
            over: experiment.over(),
            told_as: experiment.told_as(),
            is_of_plan: experiment.is_of_plan(),
            is_of_steps: experiment.steps,
            is_as_shipped,
        })
    });
    missed.collect()
}

/// What a row publishes, in words.
fn said(claim: &toml::Table, unit: &str) -> String {
    let ends = ["from", "to"].map(|end| claim.get(end));
    let figures = match ends {
        [Some(from), Some(to)] => format!("{from} to {to}"),
        _ => {
            let words = claim.iter().map(|(word, figure)| match word.as_str() {
                "is" => figure.to_string(),
                word => format!("{} {figure}", word.replace('_', " ")),
            });
            words.collect::<Vec<_>>().join(" ")
        }
    };
    format!("{figures} {unit}").trim_end().to_string()
}

/// The alternatives of a design.
fn names(file: &toml::Table) -> Vec<&str> {
    let all = file.get("alternative").and_then(toml::Value::as_array).into_iter().flatten();
    all.filter_map(|one| one.get("name")?.as_str()).collect()
}

/// The alternatives that a mix of a design fills.
fn filled_by<'f>(file: &'f toml::Table, mix: &str) -> Option<Vec<&'f str>> {
    let mixes = file.get("mix")?.as_array()?;
    let own = mixes.iter().find(|one| one.get("name").and_then(toml::Value::as_str) == Some(mix))?;
    Some(own.get("fill")?.as_array()?.iter().filter_map(toml::Value::as_str).collect())
}

/// The design on the system that the shipped text of its name has it on; none where that goes by a choice which this design
/// does not leave open, so that no value of it is the shipped one.
pub(crate) fn on_its_system(design: &Design, shipped: &str) -> Option<Design> {
    let file: toml::Table = shipped.parse().expect("a shipped design is TOML");
    let of_design = |key: &str| file["design"].get(key);
    let word = |key: &str| of_design(key).and_then(toml::Value::as_str).map(str::to_string);
    let set = of_design("set").and_then(toml::Value::as_array);
    let mut design = design.clone();
    design.device = word("device").expect("a shipped design names its device");
    (design.testbed, design.mode) = (word("testbed"), word("mode"));
    let as_chosen = |set: &str| {
        design.choices.iter().filter(|choice| choice.of.is_none()).fold(set.to_string(), |set, choice| {
            set.replace(&format!("{{{}}}", choice.name), &choice.values[0])
        })
    };
    let set = set.into_iter().flatten().filter_map(|one| Some(as_chosen(one.as_str()?)));
    let set: Vec<String> = set.collect();
    if set.iter().any(|one| one.contains('{')) {
        return None;
    }
    design.set = set;
    design.set_at = Vec::new();
    Some(design)
}

/// An alternative as a design file has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given<'w> {
    /// The design's name.
    pub design: &'w str,
    /// The file's text; `None` where parameters are changed besides.
    pub text: Option<&'w str>,
    /// The alternative's name.
    pub alternative: &'w str,
}

impl Given<'_> {
    /// Why a row is not evidence of it; `None` where it is.
    ///
    /// A row is where it measured the alternative of that name of the design of that name, and both stand in the file
    /// as they are shipped: a design that was copied and changed is another.
    pub fn objection(self, row: &str) -> Option<&'static str> {
        let Some(measured) = rows().get(row) else { return Some("is published nowhere") };
        let is_own = measured.experiment.as_ref().is_some_and(|one| {
            one.design.as_deref() == Some(self.design) && one.alternatives().contains(&self.alternative)
        });
        if !is_own {
            return Some(
                "measured no alternative of this name of a shipped design, and rows count for those alone",
            );
        }
        let is_shipped = self.text.zip(shipped::design(self.design)).is_some_and(|(own, shipped)| {
            let read = |text: &str| text.parse::<toml::Table>().unwrap_or_default();
            is_as_shipped(&read(own), &read(shipped), self.alternative)
        });
        (!is_shipped).then_some("measured the shipped design, from which this one differs")
    }
}

/// What of a design says what its requests do and on what.
const TABLES: [&str; 5] = ["workload", "parameters", "object", "cache", "application"];
const OF_DESIGN: [&str; 4] = ["testbed", "mode", "set", "unit"];

fn is_as_shipped(own: &toml::Table, shipped: &toml::Table, alternative: &str) -> bool {
    let of_design = |file: &toml::Table, key: &str| file.get("design")?.get(key).cloned();
    TABLES.iter().all(|key| own.get(*key) == shipped.get(*key))
        && OF_DESIGN.iter().all(|key| of_design(own, key) == of_design(shipped, key))
        && steps(own, alternative) == steps(shipped, alternative)
}

/// The tables of an alternative and of those that it is like, without what is said about them.
fn steps(file: &toml::Table, alternative: &str) -> Vec<toml::Table> {
    let all = file.get("alternative").and_then(toml::Value::as_array);
    let find = |name: &str| {
        let named = |one: &&toml::Value| one.get("name").and_then(toml::Value::as_str) == Some(name);
        all?.iter().find(named)?.as_table().cloned()
    };
    let mut found = Vec::new();
    let mut next = Some(alternative.to_string());
    while let Some(mut table) = next.take().and_then(|name| find(&name)) {
        next = table.get("like").and_then(toml::Value::as_str).map(str::to_string);
        // What a reader calls it is no part of what it does.
        ["name", "like", "description", "rows"].iter().for_each(|key| drop(table.remove(*key)));
        // An alternative that is like itself is refused before.
        if found.contains(&table) {
            break;
        }
        found.push(table);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objection(text: Option<&str>, design: &str, alternative: &str, row: &str) -> Option<&'static str> {
        Given { design, text, alternative }.objection(row)
    }

    #[test]
    fn a_row_is_about_the_alternative_that_it_measured() {
        let text = shipped::design("kv-ycsb-c").expect("it is shipped");
        let of = |alternative, row| objection(Some(text), "kv-ycsb-c", alternative, row);
        assert_eq!(of("A1", "W273/W275"), None);
        for (alternative, row) in [("A4", "W273/W275"), ("A1", "W273"), ("A1", "W149")] {
            assert_eq!(
                of(alternative, row),
                Some(
                    "measured no alternative of this name of a shipped design, and rows count for those alone"
                ),
                "{alternative} {row}"
            );
        }
        assert_eq!(of("A1", "W999"), Some("is published nowhere"));
        let redis = shipped::design("redis-replication");
        assert_eq!(objection(redis, "redis-replication", "relayed-3", "S134"), None);
    }

    fn on(device: &str) -> System {
        let request = offpath_profile::SystemRequest { device, ..Default::default() };
        offpath_profile::Library::builtin().load(&request).expect("it is shipped")
    }

    /// Times by other names, or as they come out, are the same steps.
    #[test]
    fn what_is_missed_is_said_however_the_steps_are_written() {
        let designs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../designs");
        let with = |text: &str, parameters: &[(&str, &str)]| -> Vec<_> {
            let parameters = parameters.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            let changes =
                crate::Changes { steps: true, parameters: parameters.collect(), ..Default::default() };
            let design = Design::parse(text, "d.toml", &designs, &changes);
            let missed = missed_of(&design.expect("it is in order"), &on("bluefield2"));
            missed.iter().map(|one| (one.row, one.is_as_shipped)).collect()
        };
        let missed = |text: &str| with(text, &[]);
        let text = shipped::design("kv-ycsb-c").expect("it is shipped");
        let step = |time: &str| format!("{{ compute = \"client\", time = \"{time}\" }}");
        let rewritten = [("build", "100 ns"), ("search", "150 ns"), ("check", "50 ns")].into_iter().fold(
            text.replacen("name = \"kv-ycsb-c\"", "name = \"mine\"", 1),
            |text, (name, time)| {
                let changed = text.replace(&step(name), &step(time));
                assert_ne!(changed, text, "{name}");
                changed
            },
        );
        assert!(missed(text).contains(&("W268", true)), "{:?}", missed(text));
        let larger = with(text, &[("bucket", "128 B")]);
        assert!(!larger.is_empty() && larger.iter().all(|(_, is_as_shipped)| !is_as_shipped), "{larger:?}");
        let renamed = text.replace("\"rnic\"", "\"plain\"");
        let of_plain = |text: &str| missed(text).iter().any(|(row, _)| *row == "W273/W274");
        assert!(renamed != text && of_plain(text) && of_plain(&renamed), "{:?}", missed(&renamed));
        assert!(missed(&rewritten).contains(&("W268", false)), "{:?}", missed(&rewritten));
        // Without an alternative that a measured mix does not take.
        let at = text.find("[[alternative]]\nname = \"A2\"").expect("it has A2");
        let after = at + 1 + text[at + 1..].find("[[alternative]]").expect("others follow");
        let fewer = format!("{}{}", &text[..at], &text[after..]);
        assert!(missed(&fewer).iter().any(|(row, _)| *row == "W273"), "{:?}", missed(&fewer));
        let slower = rewritten.replace(&step("150 ns"), &step("151 ns"));
        assert!(!missed(&slower).iter().any(|(row, _)| *row == "W268"), "{:?}", missed(&slower));
    }

    #[test]
    fn what_is_missed_is_said_of_whoever_plans_the_same_steps() {
        let missed = |text: &str| {
            let design = Design::parse(text, "d.toml", std::path::Path::new("."), &crate::Changes::default());
            missed_of(&design.expect("it is in order"), &on("bluefield2"))
        };
        let rows = |text: &str| missed(text).iter().map(|one| one.row).collect::<Vec<_>>();
        let text = shipped::design("replication").expect("it is shipped");
        assert!(rows(text).contains(&"W245") && !rows(text).contains(&"W268"), "{:?}", rows(text));
        assert!(missed(text).iter().all(|one| one.is_as_shipped));
        // What each is of is said, and whether a plan of the design may say the same.
        let of = |row: &str| {
            let found = missed(text).into_iter().find(|one| one.row == row).expect("it is missed");
            (found.subject, found.over, found.told_as, found.is_of_plan)
        };
        assert_eq!(
            of("W001"),
            ("A2+A3 over A1 with 1 to 8 clients".into(), vec!["A1"], ToldAs::Change, true)
        );
        assert_eq!(
            of("W240"),
            ("latency of A3 over A2 at chunk 8 MiB".into(), vec!["A2"], ToldAs::Change, false)
        );
        assert_eq!(
            of("W234"),
            ("A1, the `ratio` at which it carries as much as A3".into(), vec![], ToldAs::Itself, true)
        );
        assert_eq!(of("W245").0, "mixes beside others of the same alternatives at ratio 0.5");
        for (old, new) in
            [("name = \"replication\"", "name = \"mine\""), ("chunk = \"256 KiB\"", "chunk = \"64 KiB\"")]
        {
            let changed = text.replace(old, new);
            assert_ne!(changed, text);
            assert_eq!(rows(&changed), rows(text), "{new}");
            assert!(missed(&changed).iter().all(|one| !one.is_as_shipped), "{new}");
        }
        // A comparison is about whoever has both sides of it as they were measured.
        let of_clients = |text: &str| rows(text).contains(&"W001");
        let at = text.find("[[alternative]]\nname = \"A1\"").expect("it has A1") + 1;
        let end = at + text[at..].find("[[alternative]]").expect("others follow");
        let own = &text[at..end];
        let read = "    { read = \"soc-host\", bytes = \"chunk\" },\n";
        let slower = own.replace("code = \"A1\"\n", "").replacen(read, &read.repeat(2), 1);
        assert!(slower.matches(read).count() == 2 && !slower.contains("code = "), "{slower}");
        let changed = format!("{}{slower}{}", &text[..at], &text[end..]);
        assert!(of_clients(text) && !of_clients(&changed), "{:?}", rows(&changed));
        let other = "[design]\nname = \"replication\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                     rank_by = \"throughput\"\n[[alternative]]\nname = \"A1\"\n\
                     request = [{ read = \"client-host\", bytes = \"64 B\" }]\n";
        assert_eq!(missed(other), []);
        let on_another = Design::parse(text, "d.toml", std::path::Path::new("."), &crate::Changes::default());
        assert_eq!(missed_of(&on_another.expect("it is in order"), &on("bluefield3")), []);
        let published: toml::Table = "up_to = 79".parse().expect("it is TOML");
        assert_eq!(said(&published, "%"), "up to 79 %");
        assert_eq!(said(&"is = 58.3".parse().expect("it is TOML"), "M/s"), "58.3 M/s");
        assert_eq!(said(&"from = -15\nto = -7".parse().expect("it is TOML"), "%"), "-15 to -7 %");
    }

    #[test]
    fn rates_are_measured_of_shipped_alternatives_on_their_card() {
        let text = shipped::design("kv-ycsb-c").expect("it is shipped");
        let designs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../designs");
        let rates = |text: &str, card: &str| {
            let design = Design::parse(text, "d.toml", &designs, &crate::Changes::default());
            let rates = measured_rates(&design.expect("it is in order"), card);
            rates.iter().map(|one| (one.row, one.of, one.rate.as_million_per_s())).collect::<Vec<_>>()
        };
        let own = rates(text, "bluefield2");
        for one in [
            ("W267", "A5-read (100% hits)", 70.0),
            ("W268", "A4", 58.3),
            ("W273", "A4+A5", 68.0),
            ("W273/W274", "rnic", 54.4),
        ] {
            assert!(own.contains(&one), "{own:?}");
        }
        assert_eq!(rates(text, "bluefield3"), []);
        let other = text.replacen(
            "{ read = \"client-host\", bytes = \"bucket\"",
            "{ read = \"client-soc\", bytes = \"bucket\"",
            1,
        );
        assert!(!rates(&other, "bluefield2").iter().any(|(_, alternative, _)| *alternative == "A1"));
        assert_eq!(rates(&text.replace("name = \"kv-ycsb-c\"", "name = \"mine\""), "bluefield2"), []);
    }

    #[test]
    fn a_design_that_was_changed_was_not_measured() {
        let text = shipped::design("kv-ycsb-c").expect("it is shipped");
        let of = |text: &str| objection(Some(text), "kv-ycsb-c", "A1", "W273/W275");
        assert_eq!(
            of(&text.replace("a disaggregated", "another")),
            None,
            "what is said about it is not a change"
        );
        for (old, new) in [
            ("bucket = \"64 B\"", "bucket = \"256 B\""),
            ("read = \"client-host\", bytes = \"bucket\"", "read = \"client-soc\", bytes = \"bucket\""),
            ("budget = \"4 GiB\"", "budget = \"8 GiB\""),
            ("fieldlength = 64", "fieldlength = 640"),
        ] {
            assert!(text.contains(old), "{old}");
            assert!(of(&text.replacen(old, new, 1)).is_some(), "{new}");
        }
        assert!(objection(None, "kv-ycsb-c", "A1", "W273/W275").is_some(), "parameters are changed");
    }
}
