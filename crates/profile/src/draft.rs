//! A device's file to start from: every table and number of a card with its documentation, unit and range, the values
//! blank or carried over from another card.

use crate::document::{Document, Header, Table, carry};
use crate::library::shipped;
use crate::schema::{Key, Kind, Word};
use crate::{Category, Library, Number, Problem, ProfileError, Provenance};
use offpath_quantity::{Dimension, Quantity};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a number of a new system belongs to, whatever its files call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DraftPart {
    /// The card's NIC.
    Nic,
    /// The PCIe link on the card, between its NIC and its switch.
    CardLink,
    /// The card's own processor.
    CardProcessor,
    /// The PCIe link that the card is plugged into.
    HostLink,
    /// The host's processor and memory.
    Host,
    /// The network.
    Network,
}

impl DraftPart {
    const ALL: [DraftPart; 6] = [
        DraftPart::Nic,
        DraftPart::CardLink,
        DraftPart::CardProcessor,
        DraftPart::HostLink,
        DraftPart::Host,
        DraftPart::Network,
    ];

    /// The category of file that it stands in, and its kind there.
    fn stands_in(self) -> (Category, Kind) {
        match self {
            DraftPart::Nic => (Category::Device, Kind::Nic),
            DraftPart::CardLink => (Category::Device, Kind::Link),
            DraftPart::CardProcessor => (Category::Device, Kind::Endpoint),
            DraftPart::HostLink => (Category::Host, Kind::Link),
            DraftPart::Host => (Category::Host, Kind::Endpoint),
            DraftPart::Network => (Category::Testbed, Kind::Network),
        }
    }
}

/// A number that is known of a new system.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftNumber {
    /// What it belongs to.
    pub part: DraftPart,
    /// Its key there, as in `port_rate`.
    pub key: &'static str,
    /// Its value.
    pub value: Quantity,
    /// The least value that is possible.
    pub low: Option<Quantity>,
    /// The greatest value that is possible.
    pub high: Option<Quantity>,
    /// Where it stands.
    pub source: String,
    /// How it is known.
    pub provenance: Provenance,
}

/// A system to be written: a card, its host, and a pair of such machines.
#[derive(Clone, Debug, Default)]
pub struct DraftRequest<'a> {
    /// The device's name.
    pub name: &'a str,
    /// The device whose tables and numbers it starts with, by name or from a file; blank where absent.
    pub base: Option<&'a str>,
    /// What the card calls itself.
    pub description: Option<&'a str>,
    /// The card's mode, where it is known.
    pub mode: Option<&'a str>,
    /// The name of the host's file, as the device's file refers to it.
    pub host_file: &'a str,
    /// What is known.
    pub numbers: &'a [DraftNumber],
}

/// Files of a new system.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// The device, and the testbed that it stands in.
    pub device: String,
    /// Its host.
    pub host: String,
    /// The dotted name of each number that was known and has a place.
    pub named: BTreeMap<(DraftPart, &'static str), String>,
}

/// The components of a card whose processor stands behind a switch, which is what the blank file describes: name, kind,
/// and the names that it holds.
const CARD: &[(&str, Kind, &[&str])] = &[
    ("nic", Kind::Nic, &[]),
    ("switch", Kind::Switch, &[]),
    ("pcie1", Kind::Link, &["[\"nic\", \"switch\"]"]),
    ("soc_wire", Kind::Wire, &["[\"switch\", \"soc\"]"]),
    ("soc", Kind::Endpoint, &[]),
    ("host_verbs", Kind::Verbs, &["\"host\""]),
    ("soc_verbs", Kind::Verbs, &["\"soc\""]),
    ("dma", Kind::Engine, &["\"soc\""]),
];

/// What other cards have besides, which stands in the blank file as a remark: one of each kind that the card above lacks,
/// and engines that do something else than copy.
const OTHERS: &[(&str, Kind, &[&str])] = &[
    ("dpa_memory", Kind::Memory, &[]),
    ("dpa", Kind::Processor, &["\"dpa_memory\""]),
    ("dpa_wire", Kind::Wire, &["[\"nic\", \"dpa\"]"]),
    ("dpa_memory_wire", Kind::Wire, &["[\"nic\", \"dpa_memory\"]"]),
    ("dpa_l1", Kind::Cache, &[]),
    ("dpa_to_soc", Kind::Reach, &["\"dpa\"", "\"soc\"", "[\"dpa_l1\"]", "\"soc\""]),
    ("dpa_verbs", Kind::Verbs, &["\"dpa\""]),
    ("dpa_packets", Kind::Packets, &["\"dpa\""]),
    ("soc_md5", Kind::Work, &["\"soc\"", "\"md5\""]),
    ("regex", Kind::Engine, &["\"soc\"", "\"transform\"", "[\"soc\"]"]),
    ("ssd", Kind::Engine, &["\"soc\"", "\"store\"", "[\"soc\"]"]),
    ("large_transfers", Kind::LargeTransferLimit, &["\"*\"", "\"soc\"", "[\"read\"]"]),
];

const BLANK: &str = "\
# The file is refused until each number that is blank below says its value, its source and how it is known:
#   value       with its unit
#   low, high   the interval around it; an assumed or carried-over number needs both, others may leave them out
#   source      where it stands, in your own words
#   provenance  datasheet, measured, measured-here, fitted, held-here, assumed or carried-over
# Leave out tables of what this card has not, such as an engine, and give a second one of its kind another name.
";

const CARRIED: &str = "\
# Every number below that says `carried-over` is another device's and says nothing of this one yet: it counts as a guess
# within `low` and `high`. Facts of standards, such as the framing of PCIe, stay what they are. Replace a line as a whole
# once you know better: value, low, high, where that stands as `source`, `provenance = \"measured\"`, and no `rows`.
";

/// The host of a blank system.
const HOST: &[(&str, Kind, &[&str])] =
    &[("pcie0", Kind::Link, &["[\"card\", \"host\"]"]), ("host", Kind::Endpoint, &[])];

const PAIR: &str = "\
# The card stands in two machines that are alike, and one loads the other. Where they are not, give `client` a device and
# a host of its own; `count` says how many load the server.
";

/// What is known, and which of it a file has taken.
#[derive(Default)]
struct Knowledge<'a> {
    numbers: &'a [DraftNumber],
    category: Option<Category>,
    named: BTreeMap<(DraftPart, &'static str), String>,
}

impl Knowledge<'_> {
    /// The line of a number that is known, where its table is the first of its kind in its file.
    fn line(&mut self, table: &str, kind: Kind, key: &Key) -> Option<String> {
        let here =
            |part: &DraftPart| self.category.is_some_and(|category| part.stands_in() == (category, kind));
        let part = DraftPart::ALL.into_iter().find(|part| here(part))?;
        let known = self.numbers.iter().find(|number| number.part == part && number.key == key.name)?;
        if self.named.contains_key(&(part, known.key)) {
            return None;
        }
        self.named.insert((part, known.key), format!("{table}.{}", key.name));
        let number = Number {
            value: known.value,
            low: known.low,
            high: known.high,
            replaced: None,
            source: known.source.clone(),
            provenance: known.provenance,
            rows: Vec::new(),
            note: String::new(),
            file: String::new(),
            key: String::new(),
            multiple_of: None,
        };
        Some(number_lines(key, &written(&number, key), true))
    }
}

/// Whose numbers a new device begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Another device's.
    Another,
    /// Those of a profile that ships, of whose make the card is.
    Shipped,
    /// Its own: the file describes the very card.
    Same,
}

impl Library {
    /// The files of a system called `name`, with what is known of it in place of what is blank or carried over: the
    /// device with a testbed of two such machines, and their host.
    ///
    /// Refused as [`draft`](Library::draft) is, and where the base names a host that does not load.
    pub fn draft_system(&self, request: &DraftRequest<'_>) -> Result<Draft, ProfileError> {
        self.check_new_name(request.name)?;
        let mut knowledge =
            Knowledge { numbers: request.numbers, category: Some(Category::Device), named: BTreeMap::new() };
        let base = request.base.map(|base| self.base(request.name, base)).transpose()?;
        let words =
            DraftWords { mode: request.mode, description: request.description, testbed: Some(request.name) };
        let mut device = match &base {
            None => blank(request.name, &words, &mut knowledge),
            Some(base) => carried(request.name, base, Origin::Another, &words, &mut knowledge),
        };
        let testbed = match &base {
            Some(base) => self.testbed_of(base)?,
            None => None,
        };
        knowledge.category = Some(Category::Testbed);
        write!(device, "\n{PAIR}[testbed]\n").expect("text can be written");
        for word in Category::Testbed.words() {
            let value = match word.name {
                "name" => request.name.to_string(),
                "description" => format!("two machines with {}", request.name),
                // They are the pair themselves.
                "pair" => continue,
                other => unreachable!("a testbed's `{other}` is not drafted"),
            };
            device += &header_line(word, &quoted(&value), true);
        }
        let one = "{ value = 1, low = 1, high = 1, source = \"two machines, taken to be alike\", provenance = \"assumed\" }";
        for role in ["server", "client"] {
            device += &table_head(role, Kind::Machine);
            for word in Kind::Machine.words() {
                let value = if word.name == "device" { "card" } else { request.host_file };
                device += &header_line(word, &quoted(value), true);
            }
            for key in Kind::Machine.keys() {
                device += &number_lines(key, one, true);
            }
        }
        let network = testbed
            .as_ref()
            .and_then(|document| document.tables.iter().find(|table| table.kind == Kind::Network));
        device += &match network {
            Some(table) => carried_table(table, &base_name(&testbed), Origin::Another, &mut knowledge),
            None => blank_table("network", Kind::Network, &[], &mut knowledge),
        };
        knowledge.category = Some(Category::Host);
        let host_base = match &testbed {
            Some(testbed) => self.server_host(testbed)?,
            None => None,
        };
        let host_name = format!("{}-host", request.name);
        let mut host = format!(
            "# The host of {}, for offpath.\n{}\n[host_profile]\n",
            request.name,
            if host_base.is_some() { CARRIED } else { BLANK }
        );
        for word in Category::Host.words() {
            let value = match word.name {
                "name" => host_name.clone(),
                _ => format!("the host of {}", request.name),
            };
            host += &header_line(word, &quoted(&value), true);
        }
        match &host_base {
            Some(base) => {
                let name =
                    base.header(Category::Host).and_then(|header| header.word("name")).unwrap_or_default();
                for table in base.tables.iter().filter(|table| Category::Host.holds(table.kind)) {
                    host += &carried_table(table, name, Origin::Another, &mut knowledge);
                }
            }
            None => {
                for (component, kind, words) in HOST {
                    host += &blank_table(component, *kind, words, &mut knowledge);
                }
            }
        }
        Ok(Draft { device, host, named: knowledge.named })
    }

    /// The testbed that a device names or holds.
    pub(crate) fn testbed_of(&self, device: &Document) -> Result<Option<Document>, ProfileError> {
        if device.header(Category::Testbed).is_some() {
            return Ok(Some(device.clone()));
        }
        let header = device.require(Category::Device)?;
        let asked = Some((&device.source, header.span_of("testbed")));
        header.word("testbed").map(|name| self.open(Category::Testbed, name, asked)).transpose()
    }

    /// The host of a testbed's server.
    fn server_host(&self, testbed: &Document) -> Result<Option<Document>, ProfileError> {
        let server =
            testbed.tables.iter().find(|table| table.kind == Kind::Machine && table.name == "server");
        let named = server.map(|table| (table.words("host"), table.words_place("host")));
        named.map(|(words, place)| self.open(Category::Host, words.first(), Some(place))).transpose()
    }

    /// The text of a device file called `name`, to be written and filled in: complete, and commented from the
    /// declarations of the numbers.
    ///
    /// Without `base` every number is blank, so that loading the file names all of them. With `base`, a device's name
    /// or file, tables and numbers are those of that device, marked as carried over, their intervals wider by half
    /// where they were known of it; what a standard fixes stays a fact. What its file does not hold, hosts and testbeds, is not
    /// copied.
    ///
    /// Refused: a name that a profile cannot have or that a known device or `base` has, and a `base` that does not load.
    pub fn draft(&self, name: &str, base: Option<&str>) -> Result<String, ProfileError> {
        self.check_new_name(name)?;
        let (words, mut nothing) = (DraftWords::default(), Knowledge::default());
        match base {
            None => Ok(blank(name, &words, &mut nothing)),
            Some(asked) => {
                let base = self.base(name, asked)?;
                Ok(carried(name, &base, Origin::Another, &words, &mut nothing))
            }
        }
    }

    /// [`draft`](Library::draft) of the very card that `base` describes: what a file of the user's own has stays as it is, but for
    /// what was published of another card. What a calibration found is of this card, whichever logs another one has.
    ///
    /// # Errors
    /// As those of [`draft`](Library::draft).
    pub fn draft_of_same(&self, name: &str, base: &str) -> Result<String, ProfileError> {
        self.check_new_name(name)?;
        let origin = if self.is_own(Category::Device, base) { Origin::Same } else { Origin::Shipped };
        let document = self.base(name, base)?;
        Ok(carried(name, &document, origin, &DraftWords::default(), &mut Knowledge::default()))
    }

    /// Whether a device that is new may have this name.
    ///
    /// # Errors
    /// Where a profile cannot have it, or a known device has it.
    pub fn check_new_name(&self, name: &str) -> Result<(), ProfileError> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        let reason = if name.is_empty() || !name.chars().all(fits) {
            format!("`{}` is not a name for a device", name.escape_debug())
        } else if name == "card" {
            "`card` is a reserved word of profiles: it stands for the device that is asked for".to_string()
        } else if self.names(Category::Device).iter().any(|listed| listed.name == name) {
            format!("there is a device `{name}` already, and what is known of one says nothing of another")
        } else {
            String::new()
        };
        if !reason.is_empty() {
            let help = match name {
                "card" => "choose another name, as in `mycard.toml`: a device is called as its file is",
                _ => "choose another name, of letters, digits, `-` and `_`",
            };
            return Err(ProfileError::new(Problem::Structure { reason }, help, None));
        }
        Ok(())
    }

    /// The device that another begins with.
    fn base(&self, name: &str, base: &str) -> Result<Document, ProfileError> {
        let document = self.open(Category::Device, base, None)?;
        let header = document.require(Category::Device)?;
        if header.word("name") == Some(name) {
            return Err(ProfileError::new(
                Problem::Structure { reason: format!("`{base}` is called `{name}` itself") },
                "choose another name: what is measured of one device says nothing of another",
                Some((&document.source, header.span_of("name"))),
            ));
        }
        Ok(document)
    }
}

/// Words of a new device's header that are known.
#[derive(Default)]
struct DraftWords<'a> {
    mode: Option<&'a str>,
    description: Option<&'a str>,
    testbed: Option<&'a str>,
}

impl DraftWords<'_> {
    fn known(&self, word: &str) -> Option<String> {
        let known = match word {
            "mode" => self.mode,
            "description" => self.description,
            "testbed" => self.testbed,
            _ => None,
        };
        known.map(str::to_string)
    }
}

fn base_name(testbed: &Option<Document>) -> String {
    let header = testbed.as_ref().and_then(|document| document.header(Category::Testbed));
    header.and_then(|header| header.word("name")).unwrap_or_default().to_string()
}

fn blank(name: &str, words: &DraftWords, knowledge: &mut Knowledge) -> String {
    let mut text = format!("# {name}, a device for offpath.\n{BLANK}\n[device]\n");
    for word in Category::Device.words() {
        let value = match (word.name, words.known(word.name)) {
            ("name", _) => quoted(name),
            (_, Some(known)) => quoted(&known),
            ("description", None) => quoted(&format!("{name}, of which nothing is known yet")),
            _ => word.example.to_string(),
        };
        text += &header_line(word, &value, word.name != "variants");
    }
    for (component, kind, words) in CARD {
        text += &blank_table(component, *kind, words, knowledge);
    }
    text + &others()
}

/// The tables that other cards have, as a remark.
fn others() -> String {
    let mut text =
        "\n# What other cards have: uncomment what this one has, and give a second one of a kind another name.\n"
            .to_string();
    text += "# # A card that carries no verbs, whose processors handle packets, has `kind = \"port\"` and `port_rate` alone in [nic].\n#\n";
    for (component, kind, words) in OTHERS {
        for line in blank_table(component, *kind, words, &mut Knowledge::default()).lines() {
            text += &format!("{}\n", if line.is_empty() { "#".to_string() } else { format!("# {line}") });
        }
    }
    text
}

/// A table of the blank file.
fn blank_table(component: &str, kind: Kind, words: &[&str], knowledge: &mut Knowledge) -> String {
    let mut text = table_head(component, kind);
    for (index, word) in kind.words().iter().enumerate() {
        let value = words.get(index);
        text += &header_line(word, value.unwrap_or(&word.example), value.is_some());
    }
    for key in kind.keys() {
        if let Some(line) = knowledge.line(component, kind, key) {
            text += &line;
            continue;
        }
        let interval = if key.flag { "" } else { "low = \"\", high = \"\", " };
        let number = format!("{{ value = \"\", {interval}source = \"\", provenance = \"\" }}");
        text += &number_lines(key, &number, key.required);
    }
    text
}

fn carried(
    name: &str,
    base: &Document,
    origin: Origin,
    words: &DraftWords,
    knowledge: &mut Knowledge,
) -> String {
    let header = base.header(Category::Device);
    let word = |key: &str| header.and_then(|header: &Header| header.word(key));
    let base_name = word("name").unwrap_or_default();
    let mut text = format!(
        "# {name}, a device for offpath, begun from {}.\n{CARRIED}\n[device]\n",
        base_name.replace(char::is_control, " ")
    );
    for entry in Category::Device.words() {
        let value = match entry.name {
            "name" => Some(name.to_string()),
            other => match (words.known(other), other) {
                (Some(known), _) => Some(known),
                (None, "description") => Some(format!("{name}, with what is known of {base_name}")),
                (None, other) => word(other).map(str::to_string),
            },
        };
        let names = header.map_or(&[][..], |header| header.names(entry.name));
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let is_given = value.is_some();
        let value = match value {
            Some(_) if entry.list => format!("[{}]", names.join(", ")),
            Some(value) => quoted(&value),
            None => entry.example.to_string(),
        };
        text += &header_line(entry, &value, is_given);
    }
    for table in base.tables.iter().filter(|table| Category::Device.holds(table.kind)) {
        text += &carried_table(table, base_name, origin, knowledge);
    }
    text + &others()
}

/// A table of another profile, with what is known in place of what it says.
fn carried_table(table: &Table, base_name: &str, origin: Origin, knowledge: &mut Knowledge) -> String {
    let mut text = table_head(&table.name, table.kind);
    for word in table.kind.words() {
        let values: Vec<String> = table.words(word.name).values.iter().map(|value| quoted(value)).collect();
        let value = match word.list {
            _ if values.is_empty() => word.example.to_string(),
            true => format!("[{}]", values.join(", ")),
            false => values.concat(),
        };
        text += &header_line(word, &value, !values.is_empty());
    }
    for key in table.kind.keys() {
        if let Some(line) = knowledge.line(&table.name, table.kind, key) {
            text += &line;
            continue;
        }
        match table.numbers.get(key.name) {
            Some(number) => {
                let number = taken_over(number.clone(), table.kind, key, base_name, origin);
                text += &number_lines(key, &written(&number, key), true);
            }
            None => {
                let number = "{ value = \"\", low = \"\", high = \"\", source = \"\", provenance = \"\" }";
                text += &number_lines(key, number, false);
            }
        }
    }
    text
}

/// What is known of one device, as it stands in the file of another.
fn taken_over(mut number: Number, kind: Kind, key: &Key, base: &str, origin: Origin) -> Number {
    let is_known = match number.provenance {
        Provenance::Datasheet if key.of_standard => {
            number.rows.clear();
            return number;
        }
        _ if number.rows.is_empty() && origin == Origin::Same => return number,
        // What a data sheet says without a row is of every card of that make.
        Provenance::Datasheet if number.rows.is_empty() && origin == Origin::Shipped => {
            number.source = format!("{base}: {}", number.source);
            return number;
        }
        Provenance::Datasheet
        | Provenance::Measured
        | Provenance::MeasuredHere
        | Provenance::HeldHere
        | Provenance::Fitted
        | Provenance::Set => true,
        Provenance::Assumed | Provenance::CarriedOver => false,
    };
    if is_known {
        carry(&mut number, kind, key, shipped());
    }
    number.provenance = Provenance::CarriedOver;
    number.source = format!("{base}: {}", number.source);
    number.note = String::new();
    number
}

fn table_head(name: &str, kind: Kind) -> String {
    format!("\n# {}\n[{name}]\nkind = \"{}\"\n", kind.documentation(), kind.name())
}

fn header_line(word: &Word, value: &str, is_given: bool) -> String {
    format!("{}{} = {value}   # {}\n", if is_given { "" } else { "# " }, word.name, word.doc)
}

/// A number below what is to be known about it; a comment where it may be left out.
fn number_lines(key: &Key, number: &str, is_given: bool) -> String {
    format!("# {}\n{}{} = {number}\n", remark(key), if is_given { "" } else { "# " }, key.name)
}

fn remark(key: &Key) -> String {
    let unit = match key.dimension {
        Dimension::Ratio | Dimension::Count => String::new(),
        dimension => format!("; as in \"{}\"", dimension.example()),
    };
    format!("{} ({}{unit})", key.documentation().trim_end_matches('.'), key.bounds())
}

/// A number as files write it, exactly.
fn written(number: &Number, key: &Key) -> String {
    let mut text = format!("{{ value = {}", exact(number.value, key));
    for (part, end) in [("low", number.low), ("high", number.high)] {
        if let Some(end) = end {
            write!(text, ", {part} = {}", exact(end, key)).expect("text can be written");
        }
    }
    write!(text, ", source = {}, provenance = \"{}\"", quoted(&number.source), number.provenance)
        .expect("text can be written");
    if !number.rows.is_empty() {
        let rows: Vec<String> = number.rows.iter().map(|row| quoted(row)).collect();
        write!(text, ", rows = [{}]", rows.join(", ")).expect("text can be written");
    }
    text + " }"
}

/// A value that is read back as the same: rounded where nothing is lost, else in the unit that is counted.
fn exact(value: Quantity, key: &Key) -> String {
    if key.flag {
        return (value.base() != 0.0).to_string();
    }
    let shown = value.to_string();
    let base = match value {
        Quantity::Ratio(_) | Quantity::Count(_) => return shown,
        Quantity::Time(time) => format!("{} ps", time.ps()),
        Quantity::Bytes(bytes) => format!("{} B", bytes.get()),
        Quantity::BitRate(rate) => format!("{} bit/s", rate.bits_per_second()),
        Quantity::OpRate(rate) => format!("{} /s", rate.get()),
        Quantity::Frequency(frequency) => format!("{} Hz", frequency.hz()),
    };
    let is_same = Quantity::parse(&shown, value.dimension()) == Ok(value);
    quoted(if is_same { &shown } else { &base })
}

/// A string as TOML writes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            other => quoted.push(other),
        }
    }
    quoted + "\""
}
