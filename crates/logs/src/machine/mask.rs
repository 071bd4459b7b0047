//! Takes out of a machine's files what tells one machine from another: serial numbers, addresses, names.

use super::MachineFacts;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Replaces secrets by marks; equal secrets of one collection have equal marks, so that what belongs together is still
/// seen to.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    names: Vec<String>,
    known: BTreeMap<String, usize>,
    left: BTreeSet<String>,
}

/// Words of labels whose values are versions, which may have four numbers as an address of IPv4 has.
const VERSIONS: &[&str] = &["firmware", "fw", "version"];

/// Labels whose values identify a part: the whole value goes.
const LABELS: &[&str] =
    &["serial number", "vendor serial", "vendor specific", "asset tag", "uuid", "hostname"];

impl Mask {
    /// A mask that also takes out the names of the machine and its domain, as words.
    pub fn new(names: &[String]) -> Mask {
        let mut all: Vec<String> = Vec::new();
        for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
            let short = name.split('.').next().unwrap_or(name);
            all.extend([name.to_string(), short.to_string()]);
        }
        // The longest first, so that no rest of a long name stays.
        all.sort_by_key(|name| std::cmp::Reverse(name.len()));
        all.retain(|name| name != "localhost" && !name.is_empty());
        all.dedup();
        Mask { names: all, ..Mask::default() }
    }

    /// The text without secrets; lines and their order stay.
    ///
    /// A machine may be called as what tools print of any machine, as `cpu` or `core`. Where another would be read of the text
    /// without its name, the name stays, and [`Mask::left`] tells it.
    pub fn apply(&mut self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        for line in text.lines() {
            masked += &self.line(line);
            masked.push('\n');
        }
        for name in self.names.clone() {
            let without = self.without_word(&masked, &name);
            if without == masked {
                continue;
            }
            let [as_it_is, read] = [&masked, &without].map(|text| {
                let mut facts = MachineFacts::default();
                facts.read("", text);
                format!("{facts:?}")
            });
            if self.without_word(&as_it_is, &name) == read {
                masked = without;
            } else {
                self.left.insert(name);
            }
        }
        masked
    }

    /// Names of the machine that stand in texts as they are, since something else would be read without them.
    pub fn left(&self) -> &BTreeSet<String> {
        &self.left
    }

    fn line(&mut self, line: &str) -> String {
        let lower = line.to_ascii_lowercase();
        for label in LABELS {
            if let Some(found) = lower.find(label) {
                let end = found + label.len();
                // The value of a label: after a colon where there is one.
                let value = line[end..].find(':').map_or(end, |colon| end + colon + 1);
                // A capability that is only named so has no value.
                let (head, rest) = line.split_at(value);
                if rest.trim().is_empty() || rest.contains("VirtIO") {
                    continue;
                }
                let mark = self.mark(rest.trim());
                return format!("{} {mark}", head.trim_end());
            }
        }
        let label = lower.split_once(':').map_or("", |(label, _)| label);
        let is_version = label.split(|c: char| !c.is_alphanumeric()).any(|word| VERSIONS.contains(&word));
        self.without_addresses(line, is_version)
    }

    fn mark(&mut self, secret: &str) -> String {
        let next = self.known.len() + 1;
        let number = *self.known.entry(secret.to_ascii_lowercase()).or_insert(next);
        format!("[masked-{number}]")
    }

    /// Replaces a word in any case, also where a name goes on before or behind it, as a device's that is called by its machine.
    fn without_word(&mut self, text: &str, word: &str) -> String {
        // The same bytes, but for the case of letters.
        let (small, word) = (text.to_ascii_lowercase(), word.to_ascii_lowercase());
        let (mut found, mut done) = (String::new(), 0);
        for (at, _) in small.match_indices(&word) {
            let end = at + word.len();
            let stands_alone = !text[..at].ends_with(char::is_alphanumeric)
                && !text[end..].starts_with(char::is_alphanumeric);
            if stands_alone {
                found += &text[done..at];
                found += &self.mark(&word);
                done = end;
            }
        }
        found + &text[done..]
    }

    /// Replaces every run of hexadecimal digits and separators that is an address or an identifier.
    fn without_addresses(&mut self, text: &str, is_version: bool) -> String {
        let is_part = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.' | '-');
        let mut found = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let start = rest.find(is_part).unwrap_or(rest.len());
            found += &rest[..start];
            rest = &rest[start..];
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let run = &rest[..end];
            let core = run.trim_matches(['.', '-']);
            if is_secret(core, is_version) {
                let at = run.find(core).unwrap_or(0);
                found += &run[..at];
                found += &self.mark(core);
                found += &run[at + core.len()..];
            } else {
                for piece in run.split_inclusive([':', '.', '-']) {
                    let digits = piece.trim_end_matches([':', '.', '-']);
                    // Behind an `x`, as of `0x` and of the names that systems make of addresses (`enx`, `rocex`), numbers are
                    // hexadecimal ones.
                    let is_hexadecimal = found.ends_with(['x', 'X']);
                    match is_identifier(digits, is_hexadecimal) {
                        true => found += &(self.mark(digits) + &piece[digits.len()..]),
                        false => found += piece,
                    }
                }
            }
            rest = &rest[end..];
        }
        found
    }
}

/// Whether digits are a GUID, an address or an identifier without separators; decimal ones alone may count something.
fn is_identifier(digits: &str, is_hexadecimal: bool) -> bool {
    digits.len() >= 12 && (is_hexadecimal || digits.bytes().any(|one| one.is_ascii_alphabetic()))
}

/// Whether a run holds an address of Ethernet, InfiniBand or IP, or an identifier with separators; a version holds none of IPv4.
fn is_secret(bare: &str, is_version: bool) -> bool {
    let is_hex = |part: &str| !part.is_empty() && part.bytes().all(|one| one.is_ascii_hexdigit());
    // Whether so many groups of so many digits follow one another.
    let holds = |separator: char, groups: usize, digits: RangeInclusive<usize>| {
        let mut row = 0;
        bare.split(separator).any(|part| {
            row = if digits.contains(&part.len()) && is_hex(part) { row + 1 } else { 0 };
            row >= groups
        })
    };
    // Ethernet, also in the form of three groups, InfiniBand's long form of it, PCIe's serial number; GUIDs and GIDs.
    if holds(':', 6, 2..=2) || holds('-', 6, 2..=2) || holds('.', 3, 4..=4) || holds(':', 4, 4..=4) {
        return true;
    }
    // IPv6, whose leading zeros are not printed, and with a gap.
    if holds(':', 8, 1..=4) {
        return true;
    }
    if bare.contains("::") && bare.bytes().any(|one| one.is_ascii_hexdigit()) {
        return true;
    }
    // IPv4, with a port or within a longer form too.
    let is_octet = |part: &&str| part.len() <= 3 && part.parse::<u16>().is_ok_and(|number| number <= 255);
    let is_ipv4 = |part: &str| {
        let octets: Vec<&str> = part.split('.').collect();
        octets.len() == 4 && octets.iter().all(is_octet)
    };
    if !is_version && bare.split([':', '-']).any(is_ipv4) {
        return true;
    }
    // An identifier in the form of a UUID.
    let uuid: Vec<&str> = bare.split('-').collect();
    uuid.iter().all(|part| is_hex(part)) && uuid.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
}
