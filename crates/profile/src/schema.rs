//! The schema: which tables a profile has and which keys each holds. A number is declared once, with the field of
//! the model that it fills (`model.rs`, by [`declared`]); key, dimension, range and documentation follow from there.

use crate::{
    Cache, Engine, EngineWork, LargeTransferLimit, LearntErrors, Link, Machine, Memory, Network, Nic,
    OtherWork, PacketCosts, Pcie, Processor, Provenance, Reach, Switch, VerbCosts, WorkSpeed,
};
use offpath_quantity::{BitRate, Bytes, Dimension, Frequency, OpRate, Quantity, Time};

/// What a component table describes: the value of its key `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Nic,
    Port,
    Switch,
    Link,
    Wire,
    Endpoint,
    Processor,
    Memory,
    Cache,
    Reach,
    Verbs,
    Packets,
    Work,
    /// Made from what tables of the kind `work` say of two processors: no file holds it.
    OtherWork,
    Engine,
    LargeTransferLimit,
    Machine,
    Network,
    Errors,
}

/// The values between which a number makes sense, in base units.
///
/// The upper ends keep integer time in range for every payload that the model accepts.
pub(crate) struct Range {
    pub least: f64,
    pub most: f64,
    /// Whether the standard behind the number knows powers of two alone.
    pub power_of_two: bool,
    pub words: &'static str,
}

impl Range {
    /// The value that a probe between two ends of an interval stands for: itself, or the nearest power of
    /// two where there are no others.
    pub(crate) fn nearest(&self, value: f64) -> f64 {
        if self.power_of_two && value > 0.0 { value.log2().round().exp2() } else { value }
    }

    /// Whether a value in base units makes sense.
    pub(crate) fn holds(&self, value: f64) -> bool {
        let in_range = (self.least..=self.most).contains(&value);
        in_range && (!self.power_of_two || (value.fract() == 0.0 && (value as u64).is_power_of_two()))
    }
}

const fn range(least: f64, most: f64, words: &'static str) -> Range {
    Range { least, most, power_of_two: false, words }
}

/// One number of a table, as its declaration in the model says.
pub(crate) struct Key {
    pub name: &'static str,
    pub dimension: Dimension,
    /// Written as `true` or `false`; kept as a ratio of 1 or 0.
    pub flag: bool,
    pub required: bool,
    pub range: &'static Range,
    /// Whether a standard fixes it, for whatever card: one card's holds of every other.
    pub of_standard: bool,
    /// What the number is, and under what load it holds; one line an element.
    pub lines: &'static [&'static str],
}

impl Key {
    /// What the number is, as one sentence.
    pub(crate) fn documentation(&self) -> String {
        sentence(self.lines)
    }

    /// Dimension, range, and whether it may be left out.
    pub(crate) fn bounds(&self) -> String {
        let bounds = match self.flag {
            true => self.range.words.to_string(),
            false => format!("{}, {}", self.dimension, self.range.words),
        };
        if self.required { bounds } else { format!("{bounds}; may be left out") }
    }
}

/// The first paragraph of a comment as one line.
fn sentence(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
    lines.join(" ")
}

pub(crate) const DELAY: Range = range(0.0, 1e12, "from 0 ns to 1 s");
/// Work that is no part of a request, as a benchmark's operation may be, takes longer than any delay.
pub(crate) const LONG: Range = range(1.0, 1e15, "from 1 ps to 1000 s");
pub(crate) const OPERATIONS_PER_SECOND: Range = range(1e-3, 1e12, "from 0.001 to 1e12");
pub(crate) const TIMES: Range = range(1e-3, 1e3, "from 0.001 to 1000");
pub(crate) const RATE: Range = range(1e6, 1e15, "from 1 Mbit/s to 1000 Tbit/s");
pub(crate) const OPERATIONS: Range = range(1.0, 1e12, "from 1 /s to 1000 G/s");
pub(crate) const OPERATIONS_OR_NONE: Range = range(0.0, 1e12, "from 0 /s to 1000 G/s");
pub(crate) const CLOCK: Range = range(1e6, 1e12, "from 1 MHz to 1000 GHz");
/// What InfiniBand and RoCE know as path MTU.
pub(crate) const PATH_MTU: Range =
    Range { least: 256.0, most: 4096.0, power_of_two: true, words: "a power of two from 256 B to 4096 B" };
/// What PCI Express can encode as largest payload of a packet, and as largest read request.
pub(crate) const PCIE_SIZE: Range =
    Range { least: 128.0, most: 4096.0, power_of_two: true, words: "a power of two from 128 B to 4096 B" };
/// The read completion boundaries of PCI Express.
pub(crate) const COMPLETION: Range =
    Range { least: 64.0, most: 128.0, power_of_two: true, words: "64 B or 128 B" };
/// Lines of caches are aligned, and hold a word at least.
pub(crate) const LINE: Range =
    Range { least: 8.0, most: 4096.0, power_of_two: true, words: "a power of two from 8 B to 4096 B" };
pub(crate) const HEADER: Range = range(0.0, 1048576.0, "from 0 B to 1 MiB");
pub(crate) const SIZE: Range = range(1.0, 1125899906842624.0, "from 1 B to 1024 TiB");
pub(crate) const MANY: Range = range(1.0, 1e6, "from 1 to 1000000");
pub(crate) const MANY_OR_NONE: Range = range(0.0, 1e6, "from 0 to 1000000");
pub(crate) const SHARE: Range = range(0.01, 1.0, "from 0.01 to 1");
pub(crate) const ERROR: Range = range(0.0, 10.0, "from 0 to 10");
pub(crate) const OUTPUT: Range = range(0.0, 1e6, "from 0 to 1000000");
pub(crate) const EITHER: Range = range(0.0, 1.0, "`true` or `false`");

impl Kind {
    /// Every kind that a file may hold.
    pub(crate) const ALL: &[Kind] = &[
        Kind::Nic,
        Kind::Port,
        Kind::Switch,
        Kind::Link,
        Kind::Wire,
        Kind::Endpoint,
        Kind::Processor,
        Kind::Memory,
        Kind::Cache,
        Kind::Reach,
        Kind::Verbs,
        Kind::Packets,
        Kind::Work,
        Kind::Engine,
        Kind::LargeTransferLimit,
        Kind::Machine,
        Kind::Network,
        Kind::Errors,
    ];

    /// What a table of this kind is, as in `an endpoint`.
    pub(crate) fn called(self) -> String {
        match self {
            Kind::Errors => "a table of errors".to_string(),
            Kind::Endpoint | Kind::Engine => format!("an {}", self.name()),
            _ => format!("a {}", self.name()),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Nic => "nic",
            Kind::Port => "port",
            Kind::Switch => "switch",
            Kind::Link => "link",
            Kind::Wire => "wire",
            Kind::Endpoint => "endpoint",
            Kind::Processor => "processor",
            Kind::Memory => "memory",
            Kind::Cache => "cache",
            Kind::Reach => "reach",
            Kind::Verbs => "verbs",
            Kind::Packets => "packets",
            Kind::Work => "work",
            Kind::OtherWork => "other-work",
            Kind::Engine => "engine",
            Kind::LargeTransferLimit => "large-transfer-limit",
            Kind::Machine => "machine",
            Kind::Network => "network",
            Kind::Errors => "errors",
        }
    }

    /// The numbers of a table of this kind.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'static Key> + Clone {
        // A port fills a NIC, and has of its numbers the one that is not of verbs.
        let is_of_port = |key: &&Key| key.name == "port_rate";
        self.parts()
            .iter()
            .flat_map(|(_, keys)| keys.iter())
            .filter(move |key| self != Kind::Port || is_of_port(key))
    }

    /// What a table of this kind describes.
    pub(crate) fn documentation(self) -> String {
        match self {
            // It fills the component of a link, and is another thing to who writes it.
            Kind::Wire => {
                "A link between two nodes of a machine that is known to bind nothing: a delay alone.".into()
            }
            Kind::Port => {
                "A network port that hands packets to processors and carries no verbs. It is a node of the topology named `nic`.".into()
            }
            Kind::Endpoint => {
                "A processor with its own memory at one node of the machine: the host, or a SoC of the card."
                    .into()
            }
            _ => sentence(self.parts()[0].0),
        }
    }

    /// The components that a table of this kind fills, the outer one first: what each is, and its numbers.
    fn parts(self) -> &'static [(&'static [&'static str], &'static [Key])] {
        const fn of<C: Declared>() -> (&'static [&'static str], &'static [Key]) {
            (C::LINES, C::KEYS)
        }
        match self {
            Kind::Nic | Kind::Port => &const { [of::<Nic>()] },
            Kind::Switch => &const { [of::<Switch>()] },
            Kind::Link => &const { [of::<Link>(), of::<Pcie>()] },
            Kind::Wire => &const { [of::<Link>()] },
            Kind::Endpoint => &const { [of::<Processor>(), of::<Memory>()] },
            Kind::Processor => &const { [of::<Processor>()] },
            Kind::Memory => &const { [of::<Memory>()] },
            Kind::Cache => &const { [of::<Cache>()] },
            Kind::Reach => &const { [of::<Reach>()] },
            Kind::Verbs => &const { [of::<VerbCosts>()] },
            Kind::Packets => &const { [of::<PacketCosts>()] },
            Kind::Work => &const { [of::<WorkSpeed>()] },
            Kind::OtherWork => &const { [of::<OtherWork>()] },
            Kind::Engine => &const { [of::<Engine>()] },
            Kind::LargeTransferLimit => &const { [of::<LargeTransferLimit>()] },
            Kind::Machine => &const { [of::<Machine>()] },
            Kind::Network => &const { [of::<Network>()] },
            Kind::Errors => &const { [of::<LearntErrors>()] },
        }
    }

    /// The keys that hold names.
    pub(crate) fn words(self) -> &'static [Word] {
        const BETWEEN: Word = Word {
            name: "between",
            example: "[\"nic\", \"soc\"]",
            list: true,
            required: true,
            doc: "The two nodes that it joins: `nic`, switches, endpoints, processors, memories; a host writes `card` for where it is plugged in.",
        };
        const fn several(name: &'static str, example: &'static str, doc: &'static str) -> Word {
            Word { name, example, list: true, required: false, doc }
        }
        match self {
            Kind::Link | Kind::Wire => const { &[BETWEEN] },
            Kind::Verbs => {
                const {
                    &[Word::one(
                        "endpoint",
                        "\"soc\"",
                        "The processor that pays these costs; in a device `host` is the host's, whatever its file calls it.",
                    )]
                }
            }
            Kind::Packets => {
                const {
                    &[Word::one(
                        "processor",
                        "\"soc\"",
                        "The processor that forwards them; in a device `host` is the host's.",
                    )]
                }
            }
            Kind::Work => {
                const {
                    &[
                        Word::one(
                            "processor",
                            "\"soc\"",
                            "The processor that was measured; in a device `host` is the host's.",
                        ),
                        Word::one(
                            "work",
                            "\"md5\"",
                            "The kind of work, as designs name it in `{ compute = \"soc\", work = \"md5\", bytes = \"4 KiB\" }`.",
                        ),
                    ]
                }
            }
            Kind::Processor => {
                const {
                    &[Word::one(
                        "memory",
                        "\"dpa_memory\"",
                        "Its own memory, in which its requests and completions lie.",
                    )]
                }
            }
            Kind::Reach => {
                const {
                    &[
                        Word::one("processor", "\"dpa\"", "The processor whose loads and stores these are."),
                        Word::one("memory", "\"soc\"", "The memory that they reach."),
                        several(
                            "through",
                            "[\"dpa_l1\"]",
                            "The caches that it looks through, the nearest and smallest first; none where left out.",
                        ),
                        Word::optional(
                            "last_level_of",
                            "\"soc\"",
                            "The processor whose last-level cache stands before the memory, so that loads look there too; none where left out.",
                        ),
                    ]
                }
            }
            Kind::Engine => {
                const {
                    &[
                        Word::one(
                            "endpoint",
                            "\"soc\"",
                            "The endpoint that it belongs to: its processor posts, its memory is near.",
                        ),
                        Word::optional(
                            "work",
                            "\"copy\"",
                            "`copy` between memories where left out, `transform` of the bytes of one memory, `store` of bytes that it keeps.",
                        ),
                        several(
                            "reaches",
                            "[\"soc\", \"host\"]",
                            "The memories that it reaches, one at least; all of the machine where left out.",
                        ),
                        several(
                            "does",
                            "[\"regular-expressions\"]",
                            "Of one that transforms, the kinds of work that it does, as processors' kinds are called; none where left out.",
                        ),
                        Word::optional(
                            "device",
                            "\"my-card\"",
                            "In a testbed, the device whose part it is: no other has it. Every card has it beside itself where left out, as a drive.",
                        ),
                    ]
                }
            }
            Kind::LargeTransferLimit => {
                const {
                    &[
                        Word::one(
                            "requester",
                            "\"*\"",
                            "The requester's endpoint, or `*` for one on another machine.",
                        ),
                        Word::one(
                            "responder",
                            "\"soc\"",
                            "The responder's processor: the limit is that of its own memory.",
                        ),
                        Word {
                            name: "verbs",
                            example: "[\"read\", \"write\"]",
                            list: true,
                            required: true,
                            doc: "`read`, `write`, or both.",
                        },
                    ]
                }
            }
            Kind::Machine => {
                const {
                    &[
                        Word::one(
                            "device",
                            "\"card\"",
                            "The device in it; `card` is the one that is asked for.",
                        ),
                        Word::one("host", "\"NAME\"", "The host profile that it is built from."),
                    ]
                }
            }
            Kind::Errors => {
                const {
                    &[
                        Word::one(
                            "figure",
                            "\"throughput\"",
                            "What was predicted: `throughput` or `latency`.",
                        ),
                        Word::several(
                            "traffic",
                            "[\"read\"]",
                            "What the requests did: verbs, each with ` both ways` behind it where both sides sent. Of others these errors say nothing.",
                        ),
                        Word::optional(
                            "path",
                            "\"client-host\"",
                            "Between which endpoints; of other paths these errors say nothing. Of any where it is left out.",
                        ),
                        Word::several(
                            "bound_by",
                            "[\"posting thread\"]",
                            "What bound the runs, as `offpath path --as` names it; of runs that something else binds these errors say nothing. Of all where it is left out.",
                        ),
                    ]
                }
            }
            Kind::Nic
            | Kind::Port
            | Kind::Switch
            | Kind::Endpoint
            | Kind::Memory
            | Kind::Cache
            | Kind::OtherWork
            | Kind::Network => &[],
        }
    }
}

/// A key that holds a name or a list of names.
pub(crate) struct Word {
    pub name: &'static str,
    pub example: &'static str,
    pub list: bool,
    pub required: bool,
    pub doc: &'static str,
}

impl Word {
    pub(crate) const fn one(name: &'static str, example: &'static str, doc: &'static str) -> Word {
        Word { name, example, list: false, required: true, doc }
    }
    pub(crate) const fn optional(name: &'static str, example: &'static str, doc: &'static str) -> Word {
        Word { name, example, list: false, required: false, doc }
    }
    /// Any number of names, none where the key is left out.
    pub(crate) const fn several(name: &'static str, example: &'static str, doc: &'static str) -> Word {
        Word { name, example, list: true, required: false, doc }
    }
}

/// A field of the model, blank until its file fills it; a file that leaves a required number out is refused.
pub(crate) trait Blank {
    fn blank() -> Self;
}

/// A field of the model that a number fills.
pub(crate) trait Field: Blank {
    const DIMENSION: Dimension;
    const FLAG: bool = false;
    const REQUIRED: bool = true;
    /// Stores the quantity; `false` where it is of another dimension.
    fn put(&mut self, value: Quantity) -> bool;
}

macro_rules! blanks {
    ($($type:ty: $blank:expr),* $(,)?) => {$(
        impl Blank for $type {
            fn blank() -> Self {
                $blank
            }
        }
    )*};
}
blanks! {
    String: String::new(), bool: false, EngineWork: EngineWork::Copy, u64: 1, f64: 1.0, Time: Time::ZERO, Bytes: Bytes::new(1),
    BitRate: BitRate::from_bits_per_second(1), OpRate: OpRate::per_second(1), Frequency: Frequency::from_hz(1),
}
impl<T> Blank for Vec<T> {
    fn blank() -> Self {
        Vec::new()
    }
}
impl<T> Blank for Option<T> {
    fn blank() -> Self {
        None
    }
}

macro_rules! fields {
    ($($type:ty, $dimension:ident);* $(;)?) => {$(
        impl Field for $type {
            const DIMENSION: Dimension = Dimension::$dimension;
            fn put(&mut self, value: Quantity) -> bool {
                let Quantity::$dimension(value) = value else { return false };
                *self = value;
                true
            }
        }
    )*};
}
fields! { Time, Time; Bytes, Bytes; BitRate, BitRate; OpRate, OpRate; Frequency, Frequency; u64, Count; f64, Ratio }

impl<F: Field> Field for Option<F> {
    const DIMENSION: Dimension = F::DIMENSION;
    const REQUIRED: bool = false;
    fn put(&mut self, value: Quantity) -> bool {
        let mut field = F::blank();
        let is_known = field.put(value);
        if is_known {
            *self = Some(field);
        }
        is_known
    }
}
impl Field for bool {
    const DIMENSION: Dimension = Dimension::Ratio;
    const FLAG: bool = true;
    fn put(&mut self, value: Quantity) -> bool {
        let Quantity::Ratio(value) = value else { return false };
        *self = value != 0.0;
        true
    }
}

/// A component of the model whose fields are filled by key.
pub(crate) trait Component {
    /// Fills the field of `key`; `false` where there is none of that name and dimension.
    fn put(&mut self, key: &str, value: Quantity) -> bool;
}

impl<C: Component> Component for Option<C> {
    fn put(&mut self, key: &str, value: Quantity) -> bool {
        self.as_mut().is_some_and(|component| component.put(key, value))
    }
}

/// What the declaration of a component says.
pub(crate) trait Declared {
    /// What it is; one line an element.
    const LINES: &'static [&'static str];
    const KEYS: &'static [Key];
}

/// Declares a component of the model, each of its numbers once: the comment is its documentation everywhere, the field's
/// name its key in files unless `as` gives another, the type its dimension and whether it may be left out, the brackets its
/// range, and `of_standard` that a standard fixes it. Keys that it lacks are those of the component behind `with`.
macro_rules! declared {
    (
        $(#[doc = $what:literal])+
        pub struct $type:ident $(with $part:ident)? {
            $($(#[doc = $word_doc:literal])+ $word:ident: $word_type:ty,)*
        }
        numbers {
            $($(#[doc = $doc:literal])+ $field:ident $(as $key:literal)?: $field_type:ty [$range:ident] $($standard:ident)?,)+
        }
    ) => {
        $(#[doc = $what])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $type {
            $($(#[doc = $word_doc])+ pub $word: $word_type,)*
            $($(#[doc = $doc])+ pub $field: $field_type,)+
        }

        impl $crate::schema::Declared for $type {
            const LINES: &'static [&'static str] = &[$($what),+];
            const KEYS: &'static [$crate::schema::Key] = &[$($crate::schema::Key {
                name: $crate::schema::key_name!($field $($key)?),
                dimension: <$field_type as $crate::schema::Field>::DIMENSION,
                flag: <$field_type as $crate::schema::Field>::FLAG,
                required: <$field_type as $crate::schema::Field>::REQUIRED,
                range: &$crate::schema::$range,
                of_standard: $crate::schema::is_of_standard!($($standard)?),
                lines: &[$($doc),+],
            }),+];
        }

        impl $crate::schema::Blank for $type {
            fn blank() -> $type {
                $type {
                    $($word: $crate::schema::Blank::blank(),)*
                    $($field: $crate::schema::Blank::blank(),)+
                }
            }
        }

        impl $crate::schema::Component for $type {
            fn put(&mut self, key: &str, value: Quantity) -> bool {
                match key {
                    $($crate::schema::key_name!($field $($key)?) => $crate::schema::Field::put(&mut self.$field, value),)+
                    _ => false $(|| $crate::schema::Component::put(&mut self.$part, key, value))?,
                }
            }
        }
    };
}
pub(crate) use declared;

/// Whether a number is marked as a standard's.
macro_rules! is_of_standard {
    () => {
        false
    };
    (of_standard) => {
        true
    };
}
pub(crate) use is_of_standard;

/// The name of a number in files.
macro_rules! key_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}
pub(crate) use key_name;

impl Provenance {
    /// Every provenance, the best known first.
    pub const ALL: [Provenance; 8] = [
        Provenance::Datasheet,
        Provenance::Measured,
        Provenance::MeasuredHere,
        Provenance::Fitted,
        Provenance::HeldHere,
        Provenance::Assumed,
        Provenance::CarriedOver,
        Provenance::Set,
    ];

    /// Whether a number so known is a guess: nothing was measured or described of this very device.
    pub fn is_guess(self) -> bool {
        matches!(self, Provenance::HeldHere | Provenance::Assumed | Provenance::CarriedOver)
    }

    /// The word that files use.
    pub fn name(self) -> &'static str {
        match self {
            Provenance::Datasheet => "datasheet",
            Provenance::Measured => "measured",
            Provenance::MeasuredHere => "measured-here",
            Provenance::Fitted => "fitted",
            Provenance::HeldHere => "held-here",
            Provenance::Assumed => "assumed",
            Provenance::CarriedOver => "carried-over",
            Provenance::Set => "set",
        }
    }
}

impl std::fmt::Display for Provenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is not a provenance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a provenance; use one of `datasheet`, `measured`, `measured-here`, `fitted`, `held-here`, `assumed`, `carried-over`, `set`"
)]
pub struct UnknownProvenance(pub String);

impl std::str::FromStr for Provenance {
    type Err = UnknownProvenance;
    fn from_str(text: &str) -> Result<Provenance, UnknownProvenance> {
        Provenance::ALL
            .into_iter()
            .find(|provenance| provenance.name() == text)
            .ok_or_else(|| UnknownProvenance(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Category;
    use std::collections::BTreeSet;

    /// Where the tables begin that follow from the declarations; what stands above is written by hand.
    const FOLLOWS: &str = "## Headers\n";

    fn tables() -> String {
        let mut page = FOLLOWS.to_string();
        let required = |required: bool| if required { "yes" } else { "no" };
        let cell = |text: &str| text.replace('|', "\\|");
        for category in Category::ALL {
            page += &format!(
                "\n### `[{}]`\n\n| key | example | required | what it is |\n|---|---|---|---|\n",
                category.table()
            );
            for word in category.words() {
                let Word { name, example, doc, .. } = word;
                page +=
                    &format!("| `{name}` | `{example}` | {} | {} |\n", required(word.required), cell(doc));
            }
        }
        page += "\n## Tables\n";
        for kind in Kind::ALL {
            let holds = |category: &Category| category.holds(*kind);
            let files: Vec<&str> = Category::ALL.into_iter().filter(holds).map(Category::directory).collect();
            page += &format!(
                "\n### `kind = \"{}\"`\n\n{} In files of {}.\n\n",
                kind.name(),
                kind.documentation(),
                files.join(", ")
            );
            if !kind.words().is_empty() {
                page += "| names | example | what it is |\n|---|---|---|\n";
                for word in kind.words() {
                    page += &format!("| `{}` | `{}` | {} |\n", word.name, word.example, cell(word.doc));
                }
                page += "\n";
            }
            page += "| number | dimension and range | what it is |\n|---|---|---|\n";
            for key in kind.keys() {
                page += &format!("| `{}` | {} | {} |\n", key.name, key.bounds(), cell(&key.documentation()));
            }
        }
        page
    }

    /// `INSTA_UPDATE=always cargo test --release -p offpath-profile` rewrites the tables of the page.
    #[test]
    fn the_page_of_the_schema_follows_from_the_declarations() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/profiles.md");
        let page = std::fs::read_to_string(&file).expect("the page is there");
        let at = page.find(FOLLOWS).expect("the page has its tables");
        let follows = page[..at].to_string() + &tables();
        if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
            std::fs::write(&file, &follows).expect("the page can be written");
        } else {
            assert!(
                page == follows,
                "docs/profiles.md is not what the declarations say; rewrite it with INSTA_UPDATE=always"
            );
        }
    }

    /// What is not in the file stays as blank as it was, and what is there fills one field of its own.
    #[test]
    fn every_number_is_declared_with_one_sentence_and_fills_a_field_of_its_own() {
        for kind in Kind::ALL.iter().chain(&[Kind::OtherWork]) {
            let mut names = BTreeSet::new();
            for key in kind.keys() {
                assert!(names.insert(key.name), "{} is twice in {}", key.name, kind.name());
                let documentation = key.documentation();
                assert!(documentation.ends_with('.') && documentation.len() > 10, "{documentation:?}");
                assert!(!documentation.contains("  ") && !documentation.contains('"'), "{documentation:?}");
                let value = Quantity::from_base(key.range.most, key.dimension).expect("a range can be held");
                let is_changed = match kind {
                    Kind::Nic | Kind::Port => changes(Nic::blank(), key, value),
                    Kind::Switch => changes(Switch::blank(), key, value),
                    Kind::Link => changes(Link { pcie: Some(Pcie::blank()), ..Link::blank() }, key, value),
                    Kind::Wire => changes(Link::blank(), key, value),
                    Kind::Endpoint => {
                        changes(Processor::blank(), key, value) != changes(Memory::blank(), key, value)
                    }
                    Kind::Processor => changes(Processor::blank(), key, value),
                    Kind::Memory => changes(Memory::blank(), key, value),
                    Kind::Cache => changes(Cache::blank(), key, value),
                    Kind::Reach => changes(Reach::blank(), key, value),
                    Kind::Verbs => changes(VerbCosts::blank(), key, value),
                    Kind::Packets => changes(PacketCosts::blank(), key, value),
                    Kind::Work => changes(WorkSpeed::blank(), key, value),
                    Kind::OtherWork => changes(OtherWork::blank(), key, value),
                    Kind::Engine => changes(Engine::blank(), key, value),
                    Kind::LargeTransferLimit => changes(LargeTransferLimit::blank(), key, value),
                    Kind::Machine => changes(Machine::blank(), key, value),
                    Kind::Network => changes(Network::blank(), key, value),
                    Kind::Errors => changes(LearntErrors::blank(), key, value),
                };
                assert!(is_changed, "{}.{} fills no field", kind.name(), key.name);
            }
        }
    }

    /// Whether a number changes a component, and a number of another dimension or name does not.
    fn changes<C: Component + Clone + PartialEq>(blank: C, key: &Key, value: Quantity) -> bool {
        let mut filled = blank.clone();
        let other = match value {
            Quantity::Time(_) => Quantity::Count(7),
            _ => Quantity::Time(Time::from_ns(7)),
        };
        assert!(!filled.put(key.name, other) && !filled.put("no such number", value) && filled == blank);
        // One is what some ratios are blank with.
        let value = if key.dimension == Dimension::Ratio && !key.flag { Quantity::Ratio(0.5) } else { value };
        filled.put(key.name, value) && filled != blank
    }
}
