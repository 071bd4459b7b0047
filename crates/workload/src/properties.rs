//! Java property files, read as `java.util.Properties.load` reads them.
//!
//! Comments start with `#` or `!`; a key ends at the first unescaped `=`, `:` or blank; a line that
//! ends in an odd number of backslashes continues on the next, whose leading blanks are dropped;
//! `\t`, `\n`, `\r`, `\f` and `\u` with four hexadecimal digits are escapes, and a backslash before any
//! other character is dropped. Blanks at the end of a value belong to it. Where a key occurs twice, the last wins; the
//! reader returns both so that the caller can say so.
//!
//! ```
//! use offpath_workload::properties::{parse, write_property};
//! let entries = parse("# a comment\nrecordcount : 10\\\n    00\n").unwrap();
//! assert_eq!((entries[0].key.as_str(), entries[0].value.as_str()), ("recordcount", "1000"));
//! assert_eq!(write_property("a key", " value"), "a\\ key=\\ value\n");
//! ```

use std::fmt::Write as _;
use std::ops::Range;

/// One `key = value` of a property file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The key, unescaped.
    pub key: String,
    /// The value, unescaped; empty where there is none.
    pub value: String,
    /// The line the key stands on, from 1.
    pub line: usize,
    /// Where the value stands in the text, in bytes; where the value is empty, where the key stands.
    pub span: Range<usize>,
}

/// A `\u` that four hexadecimal digits do not follow, which Java refuses too.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: \\u must be followed by four hexadecimal digits")]
pub struct MalformedEscape {
    /// The line the entry starts on, from 1.
    pub line: usize,
    /// Where the backslash stands in the text, in bytes.
    pub span: Range<usize>,
}

/// A character and its byte offset in the text.
type Placed = (usize, char);

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\x0c')
}

/// Reads the entries of `text` in the order they stand; [`MalformedEscape`] is the only error.
pub fn parse(text: &str) -> Result<Vec<Property>, MalformedEscape> {
    let mut entries = Vec::new();
    let mut characters = text.char_indices().peekable();
    let mut line = 1;
    while characters.peek().is_some() {
        let first_line = line;
        let logical = logical_line(&mut characters, &mut line);
        if let Some(entry) = entry(&logical, first_line)? {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// Takes one logical line, continuations joined; empty for a blank line or a comment.
fn logical_line(
    characters: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
    line: &mut usize,
) -> Vec<Placed> {
    let mut logical: Vec<Placed> = Vec::new();
    let (mut at_start, mut comment, mut escaped) = (true, false, false);
    while let Some((offset, character)) = characters.next() {
        if matches!(character, '\n' | '\r') {
            *line += 1;
            if character == '\r' {
                characters.next_if(|&(_, next)| next == '\n');
            }
            if !escaped {
                return logical;
            }
            // The backslash only joined the lines.
            logical.pop();
            (escaped, at_start) = (false, true);
            continue;
        }
        if comment || at_start && is_blank(character) {
            continue;
        }
        if at_start && logical.is_empty() && matches!(character, '#' | '!') {
            comment = true;
            continue;
        }
        at_start = false;
        escaped = character == '\\' && !escaped;
        logical.push((offset, character));
    }
    if escaped {
        logical.pop();
    }
    logical
}

fn entry(logical: &[Placed], line: usize) -> Result<Option<Property>, MalformedEscape> {
    if logical.is_empty() {
        return Ok(None);
    }
    let mut key_end = 0;
    while key_end < logical.len() {
        match logical[key_end].1 {
            '\\' => key_end += 2,
            '=' | ':' => break,
            character if is_blank(character) => break,
            _ => key_end += 1,
        }
    }
    let key_end = key_end.min(logical.len());
    let skip_blanks = |mut at: usize| {
        while logical.get(at).is_some_and(|&(_, character)| is_blank(character)) {
            at += 1;
        }
        at
    };
    let mut value_start = skip_blanks(key_end);
    if logical.get(value_start).is_some_and(|&(_, character)| matches!(character, '=' | ':')) {
        value_start = skip_blanks(value_start + 1);
    }
    let (raw_key, raw_value) = (&logical[..key_end], &logical[value_start..]);
    let placed = if raw_value.is_empty() { raw_key } else { raw_value };
    let span = match (placed.first(), placed.last()) {
        (Some(&(start, _)), Some(&(end, last))) => start..end + last.len_utf8(),
        _ => logical[0].0..logical[0].0 + logical[0].1.len_utf8(),
    };
    Ok(Some(Property { key: unescape(raw_key, line)?, value: unescape(raw_value, line)?, line, span }))
}

fn unescape(raw: &[Placed], line: usize) -> Result<String, MalformedEscape> {
    // Java characters are UTF-16 units: two \u escapes can make one character.
    let mut units: Vec<u16> = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let (offset, mut character) = raw[at];
        at += 1;
        if character == '\\' {
            let Some(&(_, escaped)) = raw.get(at) else { break };
            at += 1;
            character = match escaped {
                't' => '\t',
                'n' => '\n',
                'r' => '\r',
                'f' => '\x0c',
                'u' => {
                    let unit = raw.get(at..at + 4).and_then(hexadecimal);
                    units.push(unit.ok_or(MalformedEscape { line, span: offset..offset + 2 })?);
                    at += 4;
                    continue;
                }
                other => other,
            };
        }
        units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
    }
    Ok(String::from_utf16_lossy(&units))
}

fn hexadecimal(digits: &[Placed]) -> Option<u16> {
    let unit = digits.iter().try_fold(0, |unit, &(_, digit)| Some(unit * 16 + digit.to_digit(16)?))?;
    u16::try_from(unit).ok()
}

/// Writes one entry and its line end, escaped so that [`parse`] and Java read it back unchanged.
///
/// Everything outside printable ASCII becomes `\u` and four hexadecimal digits, since Java reads such
/// files as Latin-1.
pub fn write_property(key: &str, value: &str) -> String {
    let mut line = String::new();
    escape(key, true, &mut line);
    line.push('=');
    escape(value, false, &mut line);
    line.push('\n');
    line
}

fn escape(text: &str, every_blank: bool, line: &mut String) {
    for (index, character) in text.chars().enumerate() {
        match character {
            ' ' if every_blank || index == 0 => line.push_str("\\ "),
            '\t' => line.push_str("\\t"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\x0c' => line.push_str("\\f"),
            '\\' | '=' | ':' | '#' | '!' => line.extend(['\\', character]),
            ' '..='~' => line.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let _ = write!(line, "\\u{unit:04x}");
                }
            }
        }
    }
}
