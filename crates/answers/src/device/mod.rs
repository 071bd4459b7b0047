//! What `offpath device` answers: which profiles there are, and what one of them says.

mod drawing;

use crate::SCHEMA_VERSION;
use crate::report::Topology;
use crate::system::{SystemAnswer, TopologyAnswer};
use offpath_profile::{Category, Listed, Number, System};
use offpath_quantity::{Dimension, Quantity};
use offpath_terminal::failure::{Failure, nearest};
use offpath_terminal::options::SystemOptions;
use offpath_terminal::output::{Screen, TableCell};
use serde::Serialize;
use std::collections::BTreeSet;

/// Every profile that there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// Cards and NICs.
    pub devices: Vec<ListedAnswer>,
    /// Machines that a card is plugged into.
    pub hosts: Vec<ListedAnswer>,
    /// Machines and the network between them.
    pub testbeds: Vec<ListedAnswer>,
    /// Changes to numbers of other profiles.
    pub overlays: Vec<ListedAnswer>,
}

/// A profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListedAnswer {
    /// The name to ask for it by.
    pub name: String,
    /// One line.
    pub description: String,
    /// Where it comes from.
    pub file: String,
}

/// What a device's profile says, in its testbed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeviceAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The system.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// What the mode means for routes, where it is not the common one.
    pub mode_note: Option<&'static str>,
    /// What overlays multiply: the numbers below stay those of the profiles, and the model computes with the
    /// products.
    pub multiplied: Vec<MultipliedAnswer>,
    /// What the system is made of.
    #[serde(flatten)]
    pub topology: TopologyAnswer,
    /// Every number of the system.
    pub numbers: Vec<NumberAnswer>,
}

/// What the model takes so many times another number, by an overlay.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MultipliedAnswer {
    /// What the model computes with.
    pub name: String,
    /// How many times.
    pub times: f64,
    /// The number that is multiplied.
    pub of: String,
    /// The product with its unit.
    pub text: String,
    /// The overlay that says so.
    pub overlay: String,
}

/// A number of a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NumberAnswer {
    /// Dotted name, as `--set` takes it.
    pub name: String,
    /// The part before the key.
    pub component: String,
    /// Value in `unit`.
    pub value: f64,
    /// Least value that the evidence leaves.
    pub low: Option<f64>,
    /// Greatest value that the evidence leaves.
    pub high: Option<f64>,
    /// Unit of value, low and high.
    #[cfg_attr(test, schemars(extend("enum" = ["ps", "B", "bit/s", "1/s", "Hz", "ratio", "count"])))]
    pub unit: &'static str,
    /// The value as people write it.
    pub text: String,
    /// The least value as people write it; null where there is none.
    pub low_text: Option<String>,
    /// The greatest value as people write it; null where there is none.
    pub high_text: Option<String>,
    /// How it is known.
    #[cfg_attr(
        test,
        schemars(extend("enum" = ["datasheet", "measured", "measured-here", "fitted", "held-here", "assumed", "carried-over", "set"]))
    )]
    pub provenance: &'static str,
    /// Where it stands.
    pub source: String,
    /// Evidence rows that it follows from.
    pub rows: Vec<String>,
    /// What a reader should know; empty where nothing.
    pub note: String,
    /// The file that it was read from.
    pub file: String,
}

/// Lists devices, hosts, testbeds and overlays.
///
/// # Errors
/// Where the directory of profiles is refused.
pub fn list(system: &SystemOptions) -> Result<ListAnswer, Failure> {
    let library = system.library()?;
    let names = |category| {
        let answer = |Listed { name, description, file }: Listed| ListedAnswer { name, description, file };
        library.names(category).into_iter().map(answer).collect()
    };
    Ok(ListAnswer {
        schema_version: SCHEMA_VERSION,
        devices: names(Category::Device),
        hosts: names(Category::Host),
        testbeds: names(Category::Testbed),
        overlays: names(Category::Overlay),
    })
}

/// The text of the profile of a name, whatever it describes.
///
/// # Errors
/// Where there is none; the nearest name is named.
pub fn source(system: &SystemOptions, name: &str) -> Result<String, Failure> {
    let library = system.library()?;
    let found = Category::ALL.into_iter().find_map(|category| library.source(category, name).ok());
    found.map(str::to_string).ok_or_else(|| {
        let names = Category::ALL.into_iter().flat_map(|category| library.names(category));
        let names: Vec<String> = names.map(|listed| listed.name).collect();
        let near = nearest(name, &names).map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        Failure::input(
            format!("there is no profile `{name}`"),
            format!("{near}known: {}; `offpath device list` says what they are", names.join(", ")),
        )
    })
}

/// What a device's profile says: its topology, and every number with its source.
///
/// # Errors
/// Where a profile is refused.
pub fn device(system: &SystemOptions, device: &str) -> Result<DeviceAnswer, Failure> {
    Ok(DeviceAnswer::of(&system.load(&system.library()?, device, &[])?))
}

impl ListAnswer {
    /// The profiles as tables.
    pub fn text(&self, screen: &Screen) -> String {
        let all = [&self.devices, &self.hosts, &self.testbeds, &self.overlays];
        let mut text = String::new();
        for (category, listed) in Category::ALL.into_iter().zip(all) {
            text += &screen.heading(category.directory());
            let row = |one: &ListedAnswer| {
                vec![TableCell::Strong(one.name.clone()), TableCell::Text(one.description.clone())]
            };
            text += &screen.table(&["name", "description"], listed.iter().map(row).collect());
        }
        text.trim_start_matches('\n').to_string()
    }
}

/// The part of a dotted name before its key.
fn component(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(component, _)| component)
}

/// The unit of the numbers in JSON: integers of it are exact.
fn base_unit(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Time => "ps",
        Dimension::Bytes => "B",
        Dimension::BitRate => "bit/s",
        Dimension::OpRate => "1/s",
        Dimension::Frequency => "Hz",
        Dimension::Ratio => "ratio",
        Dimension::Count => "count",
    }
}

impl DeviceAnswer {
    fn of(system: &System) -> DeviceAnswer {
        let number = |(name, number): (&String, &std::sync::Arc<Number>)| NumberAnswer {
            name: name.clone(),
            component: component(name).to_string(),
            value: number.value.base(),
            low: number.low.map(Quantity::base),
            high: number.high.map(Quantity::base),
            unit: base_unit(number.value.dimension()),
            text: number.value.to_string(),
            low_text: number.low.map(|end| end.to_string()),
            high_text: number.high.map(|end| end.to_string()),
            provenance: number.provenance.name(),
            source: number.source.clone(),
            rows: number.rows.clone(),
            note: number.note.clone(),
            file: number.file.clone(),
        };
        let scales = system.scales.iter().map(|scale| MultipliedAnswer {
            name: scale.name.clone(),
            times: scale.times,
            of: scale.of.clone(),
            text: scale.value.to_string(),
            overlay: scale.overlay.clone(),
        });
        DeviceAnswer {
            schema_version: SCHEMA_VERSION,
            system: SystemAnswer::of(system),
            mode_note: system.mode_note(),
            multiplied: scales.collect(),
            topology: TopologyAnswer::of(system),
            numbers: system.numbers.iter().map(number).collect(),
        }
    }

    /// The topology as an SVG picture.
    pub fn svg(&self) -> String {
        Topology::file(&self.system, &self.topology)
    }

    /// Prefixes of the machines that are as the first one, number by number but for how many there are: shown once.
    fn as_first(&self) -> BTreeSet<&str> {
        let prefixes =
            || self.topology.machines.iter().map(|one| one.prefix.as_str()).filter(|one| !one.is_empty());
        let firsts: Vec<&NumberAnswer> = self
            .numbers
            .iter()
            .filter(|one| !prefixes().any(|prefix| one.name.starts_with(prefix)))
            .collect();
        let is_first = |rest: &str, one: &NumberAnswer| {
            // The host of another role is named as the role.
            let is_name =
                |name: &str| name == rest || name.rsplit_once('.').is_some_and(|(_, key)| key == rest);
            firsts.iter().any(|first| is_name(&first.name) && one.says() == first.says())
        };
        let is_same = |prefix: &&str| {
            let own = self.numbers.iter().filter_map(|one| Some((one.name.strip_prefix(prefix)?, one)));
            own.filter(|(rest, _)| !["count", "available"].contains(rest))
                .all(|(rest, one)| is_first(rest, one))
        };
        prefixes().filter(is_same).collect()
    }

    /// The topology in characters, and every number with its source.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = format!("{}\n", self.system.line());
        if let Some(note) = self.mode_note {
            text += &format!("Note: {note}.\n");
        }
        for one in &self.multiplied {
            let MultipliedAnswer { name, times, of, text: value, overlay } = one;
            text += &format!("Overlay {overlay}: the model takes {value} for {name}, {times} times {of}.\n");
        }
        text += &screen.heading("Topology");
        let same = self.as_first();
        let drawn = self.topology.machines.iter().filter(|one| !same.contains(one.prefix.as_str()));
        let drawings: Vec<String> = drawn.map(drawing::draw).collect();
        let again = self.topology.machines.iter().filter(|one| same.contains(one.prefix.as_str()));
        let first = self.topology.machines.first().map_or("", |one| one.role.as_str());
        let again: Vec<String> = again
            .map(|one| {
                format!(
                    "{}: as {first}, {} in host {}, {} of {} take part; its numbers begin with `{}`\n",
                    one.role, one.device, one.host, one.count, one.available, one.prefix
                )
            })
            .collect();
        text += &screen.verbatim(&format!("{}\n", drawings.join("\n")));
        text += &again.concat();
        text += &screen.verbatim(&self.topology.network());
        // The device's own components come first, in the order of names within each.
        let mut components: Vec<&str> = self.numbers.iter().map(|one| one.component.as_str()).collect();
        // Names sort `backup.soc.ddio` between two numbers of `backup` itself.
        components.sort_unstable();
        components.dedup();
        let prefixes: Vec<&str> = self
            .topology
            .machines
            .iter()
            .map(|one| one.prefix.as_str())
            .filter(|own| !own.is_empty())
            .collect();
        let is_other = |component: &str| {
            let name = format!("{component}.");
            prefixes.iter().any(|prefix| name.starts_with(prefix))
        };
        components.sort_by_key(|component| is_other(component));
        let is_repeated = |component: &str| {
            let name = format!("{component}.");
            same.iter().any(|prefix| name.starts_with(prefix))
        };
        for component in components.into_iter().filter(|component| !is_repeated(component)) {
            text += &screen.heading(component);
            let rows = self.numbers.iter().filter(|one| one.component == component).map(NumberAnswer::row);
            let header = ["number", "value", "interval", "provenance", "source", "rows", "note"];
            text += &screen.table(&header, rows.collect());
        }
        text
    }
}

impl NumberAnswer {
    /// What it says but for its name.
    fn says(&self) -> [&str; 5] {
        let (low, high) = (self.low_text.as_deref(), self.high_text.as_deref());
        [&self.text, low.unwrap_or_default(), high.unwrap_or_default(), self.provenance, &self.source]
    }

    fn row(&self) -> Vec<TableCell> {
        let end = |end: &Option<String>| end.as_ref().unwrap_or(&self.text).clone();
        let interval = match (&self.low_text, &self.high_text) {
            (None, None) => "-".to_string(),
            (low, high) => format!("{} to {}", end(low), end(high)),
        };
        let or_dash = |text: String| if text.is_empty() { "-".to_string() } else { text };
        vec![
            TableCell::Strong(self.name.clone()),
            TableCell::Number(self.text.clone()),
            TableCell::Text(interval),
            TableCell::Text(self.provenance.to_string()),
            TableCell::Text(self.source.clone()),
            TableCell::Text(or_dash(self.rows.join(" "))),
            TableCell::Text(or_dash(self.note.clone())),
        ]
    }
}
