//! Takes out of a machine's files what tells one machine from another: serial numbers, addresses, names.

use std::collections::BTreeMap;

/// Replaces secrets by marks; equal secrets of one collection have equal marks, so that what belongs together is still
/// seen to.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    names: Vec<String>,
    known: BTreeMap<String, usize>,
}

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
        Mask { names: all, known: BTreeMap::new() }
    }

    /// The text without secrets; lines and their order stay.
    pub fn apply(&mut self, text: &str) -> String {
        let mut masked = String::with_capacity(text.len());
        for line in text.lines() {
            masked += &self.line(line);
            masked.push('\n');
        }
        masked
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
        let mut text = line.to_string();
        for name in self.names.clone() {
            text = self.without_word(&text, &name);
        }
        self.without_addresses(&text)
    }

    fn mark(&mut self, secret: &str) -> String {
        let next = self.known.len() + 1;
        let number = *self.known.entry(secret.to_ascii_lowercase()).or_insert(next);
        format!("[masked-{number}]")
    }

    fn without_word(&mut self, text: &str, word: &str) -> String {
        let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        let mut found = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(word) {
            let (before, after) = (&rest[..at], &rest[at + word.len()..]);
            let stands_alone = !before.ends_with(is_part) && !after.starts_with(is_part);
            found += before;
            found += &if stands_alone { self.mark(word) } else { word.to_string() };
            rest = after;
        }
        found + rest
    }

    /// Replaces every run of hexadecimal digits and separators that is an address or an identifier.
    fn without_addresses(&mut self, text: &str) -> String {
        let is_part = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.' | '-' | 'x' | 'X');
        let mut found = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let start = rest.find(is_part).unwrap_or(rest.len());
            found += &rest[..start];
            rest = &rest[start..];
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let run = &rest[..end];
            let core = run.trim_matches(['.', '-']);
            if is_secret(core) {
                let at = run.find(core).unwrap_or(0);
                found += &run[..at];
                found += &self.mark(core);
                found += &run[at + core.len()..];
            } else {
                found += run;
            }
            rest = &rest[end..];
        }
        found
    }
}

/// Whether a run holds an address of Ethernet, InfiniBand or IP, a serial number in hexadecimal digits, or an identifier.
fn is_secret(run: &str) -> bool {
    let bare = run.strip_prefix("0x").or(run.strip_prefix("0X")).unwrap_or(run);
    let is_hex = |part: &str| !part.is_empty() && part.bytes().all(|one| one.is_ascii_hexdigit());
    // Whether so many groups of so many digits follow one another.
    let holds = |separator: char, groups: usize, digits: usize| {
        let mut row = 0;
        bare.split(separator).any(|part| {
            row = if part.len() == digits && is_hex(part) { row + 1 } else { 0 };
            row >= groups
        })
    };
    // Ethernet, InfiniBand's long form of it, PCIe's serial number; GUIDs and GIDs.
    if holds(':', 6, 2) || holds('-', 6, 2) || holds(':', 4, 4) {
        return true;
    }
    // IPv6 with a gap.
    if bare.contains("::") && bare.bytes().any(|one| one.is_ascii_hexdigit()) {
        return true;
    }
    // IPv4, with a port or within a longer form too.
    let is_octet = |part: &&str| part.len() <= 3 && part.parse::<u16>().is_ok_and(|number| number <= 255);
    let is_ipv4 = |part: &str| {
        let octets: Vec<&str> = part.split('.').collect();
        octets.len() == 4 && octets.iter().all(is_octet)
    };
    if run.split([':', '-']).any(is_ipv4) {
        return true;
    }
    // An identifier in the form of a UUID.
    let uuid: Vec<&str> = bare.split('-').collect();
    if uuid.iter().all(|part| is_hex(part)) && uuid.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]) {
        return true;
    }
    // A GUID or identifier without separators.
    is_hex(bare)
        && bare.len() >= 12
        && (bare.len() < run.len() || bare.bytes().any(|one| one.is_ascii_alphabetic()))
}
