//! A device's file to start from: every table and number of a card with its documentation, unit and range, the values
//! blank or carried over from another card.

use crate::document::{Document, Header, carry};
use crate::schema::{Key, Kind, Word};
use crate::{Category, Library, Number, Problem, ProfileError, Provenance};
use offpath_quantity::{Dimension, Quantity};
use std::fmt::Write;

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
    ("dpa_to_soc", Kind::Reach, &["\"dpa\"", "\"soc\"", "[\"dpa_l1\"]"]),
    ("dpa_verbs", Kind::Verbs, &["\"dpa\""]),
    ("regex", Kind::Engine, &["\"soc\"", "\"transform\"", "[\"soc\"]"]),
    ("ssd", Kind::Engine, &["\"soc\"", "\"store\"", "[\"soc\"]"]),
    ("large_transfers", Kind::LargeTransferLimit, &["\"*\"", "\"soc\"", "[\"read\"]"]),
];

const BLANK: &str = "\
# Every number below is blank, and the file is refused until each says its value, its source and how it is known:
#   value       with its unit
#   low, high   the interval around it; an assumed or carried-over number needs both, others may leave them out
#   source      where it stands, in your own words
#   provenance  datasheet, measured, measured-here, fitted, assumed or carried-over
# Leave out tables of what this card has not, such as an engine, and give a second one of its kind another name.
";

const CARRIED: &str = "\
# Every number below is carried over from another device and says nothing of this one yet: it counts as a guess within
# `low` and `high`. Facts of standards, such as the framing of PCIe, stay what they are. Replace a line as a whole once
# you know better: value, low, high, where that stands as `source`, `provenance = \"measured\"`, and no `rows`.
";

impl Library {
    /// The text of a device file called `name`, to be written and filled in: complete, and commented from the
    /// declarations of the numbers.
    ///
    /// Without `base` every number is blank, so that loading the file names all of them. With `base`, a device's name
    /// or file, tables and numbers are those of that device, marked as carried over, their intervals wider by half
    /// where they were known of it. What its file does not hold, hosts and testbeds, is not copied.
    ///
    /// Refused: a name that a profile cannot have or that a known device or `base` has, and a `base` that does not load.
    pub fn draft(&self, name: &str, base: Option<&str>) -> Result<String, ProfileError> {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        let reason = if name.is_empty() || !name.chars().all(fits) {
            format!("`{}` is not a name for a device", name.escape_debug())
        } else if name == "card" {
            "`card` stands for the device that is asked for".to_string()
        } else if self.names(Category::Device).iter().any(|listed| listed.name == name) {
            format!("there is a device `{name}` already, and what is known of one says nothing of another")
        } else {
            String::new()
        };
        if !reason.is_empty() {
            let help = "choose another name, of letters, digits, `-` and `_`";
            return Err(ProfileError::new(Problem::Structure { reason }, help, None));
        }
        match base {
            None => Ok(blank(name)),
            Some(base) => {
                let document = self.open(Category::Device, base, None)?;
                let header = document.require(Category::Device)?;
                if header.word("name") == Some(name) {
                    return Err(ProfileError::new(
                        Problem::Structure { reason: format!("`{base}` is called `{name}` itself") },
                        "choose another name: what is measured of one device says nothing of another",
                        Some((&document.source, header.span_of("name"))),
                    ));
                }
                Ok(carried(name, &document, self.is_own(Category::Device, base)))
            }
        }
    }
}

fn blank(name: &str) -> String {
    let mut text = format!("# {name}, a device for offpath.\n{BLANK}\n[device]\n");
    for word in Category::Device.words() {
        let value = match word.name {
            "name" => quoted(name),
            "description" => quoted(&format!("{name}, of which nothing is known yet")),
            _ => word.example.to_string(),
        };
        text += &header_line(word, &value, word.name != "variants");
    }
    for (component, kind, words) in CARD {
        text += &blank_table(component, *kind, words);
    }
    text + &others()
}

/// The tables that other cards have, as a remark.
fn others() -> String {
    let mut text =
        "\n# What other cards have: uncomment what this one has, and give a second one of a kind another name.\n"
            .to_string();
    for (component, kind, words) in OTHERS {
        for line in blank_table(component, *kind, words).lines() {
            text += &format!("{}\n", if line.is_empty() { "#".to_string() } else { format!("# {line}") });
        }
    }
    text
}

/// A table of the blank file.
fn blank_table(component: &str, kind: Kind, words: &[&str]) -> String {
    let mut text = table_head(component, kind);
    for (index, word) in kind.words().iter().enumerate() {
        let value = words.get(index);
        text += &header_line(word, value.unwrap_or(&word.example), value.is_some());
    }
    for key in kind.keys() {
        let interval = if key.flag { "" } else { "low = \"\", high = \"\", " };
        let number = format!("{{ value = \"\", {interval}source = \"\", provenance = \"\" }}");
        text += &number_lines(key, &number, key.required);
    }
    text
}

fn carried(name: &str, base: &Document, is_own_file: bool) -> String {
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
            "description" => Some(format!("{name}, with what is known of {base_name}")),
            other => word(other).map(str::to_string),
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
        text += &table_head(&table.name, table.kind);
        for word in table.kind.words() {
            let values: Vec<String> =
                table.words(word.name).values.iter().map(|value| quoted(value)).collect();
            let value = match word.list {
                _ if values.is_empty() => word.example.to_string(),
                true => format!("[{}]", values.join(", ")),
                false => values.concat(),
            };
            text += &header_line(word, &value, !values.is_empty());
        }
        for key in table.kind.keys() {
            match table.numbers.get(key.name) {
                Some(number) => {
                    let number = taken_over(number.clone(), key, base_name, is_own_file);
                    text += &number_lines(key, &written(&number, key), true);
                }
                None => {
                    let number =
                        "{ value = \"\", low = \"\", high = \"\", source = \"\", provenance = \"\" }";
                    text += &number_lines(key, number, false);
                }
            }
        }
    }
    text + &others()
}

/// What is known of one device, as it stands in the file of another.
fn taken_over(mut number: Number, key: &Key, base: &str, is_own_file: bool) -> Number {
    let is_known = match number.provenance {
        // What a shipped data sheet says without a row is a standard's; a user's own may be of the card alone.
        Provenance::Datasheet if number.rows.is_empty() && !is_own_file => return number,
        Provenance::Datasheet
        | Provenance::Measured
        | Provenance::MeasuredHere
        | Provenance::Fitted
        | Provenance::Set => true,
        Provenance::Assumed | Provenance::CarriedOver => false,
    };
    if is_known {
        carry(&mut number, key);
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
