//! RESP2 and RESP3: requests of clients, replies of servers, and how both are written.
//!
//! Both parsers take a buffer that may end anywhere. They answer `None` until a whole message is
//! there, never allocate by an announced length, and refuse what passes their limits as soon as the
//! announcement is read: a peer that announces 512 MB costs nothing.
//!
//! Source: the RESP specification (redis.io, "Redis serialization protocol specification").

use thiserror::Error;

/// What a request or a reply may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole message.
    pub bytes: usize,
    /// Arguments of a request, or elements of one collection of a reply.
    pub elements: usize,
    /// How deep collections of a reply may nest.
    pub depth: usize,
}

impl Limits {
    /// For clients that have shown no credentials.
    pub const STRANGER: Limits = Limits { bytes: 4 * 1024, elements: 16, depth: 1 };
    /// For replicas and operators.
    pub const CLIENT: Limits = Limits { bytes: 64 * 1024, elements: 128, depth: 1 };
    /// For INFO of a master with very many replicas.
    pub const INFO: Limits = Limits { bytes: 32 * 1024 * 1024, elements: 1, depth: 0 };
    /// For replies of servers that are asked about their cluster.
    pub const REPLY: Limits = Limits { bytes: 64 * 1024 * 1024, elements: 1 << 20, depth: 8 };
}

/// A message that no limit admits or that is not RESP.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RespError {
    /// The whole message is, or announces to be, larger than its limit.
    #[error("a message of {bytes} B or more is above the limit of {limit} B; send smaller requests")]
    TooLarge {
        /// Bytes that the message has at least.
        bytes: u64,
        /// Bytes that are allowed.
        limit: usize,
    },
    /// More arguments or elements than allowed.
    #[error("{count} elements are above the limit of {limit}; send fewer at a time")]
    TooMany {
        /// Elements that were announced.
        count: u64,
        /// Elements that are allowed.
        limit: usize,
    },
    /// Collections within collections, deeper than allowed.
    #[error("collections nest deeper than the limit of {limit}")]
    TooDeep {
        /// Levels that are allowed.
        limit: usize,
    },
    /// A byte that cannot stand where it stands.
    #[error("expected {expected} and found byte 0x{found:02x}; is the peer speaking RESP?")]
    Unexpected {
        /// What the protocol has there.
        expected: &'static str,
        /// What was read.
        found: u8,
    },
    /// A line that holds no number where there has to be one.
    #[error("expected {expected} and found `{text}`")]
    Number {
        /// What the protocol has there.
        expected: &'static str,
        /// What was read, cut short.
        text: String,
    },
}

/// A position in a buffer that may not be complete yet.
struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    limits: Limits,
}

impl<'a> Reader<'a> {
    /// The line up to CRLF, or `None` while it has no end.
    fn line(&mut self) -> Result<Option<&'a [u8]>, RespError> {
        let rest = &self.data[self.at..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            // A line that has no end within the limit never becomes a message.
            self.fits(rest.len() as u64 + 1)?;
            return Ok(None);
        };
        self.fits(end as u64 + 1)?;
        self.at += end + 1;
        let line = &rest[..end];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// Refuses a message that would be larger than the limit once `more` bytes are read.
    fn fits(&self, more: u64) -> Result<(), RespError> {
        let bytes = (self.at as u64).saturating_add(more);
        if bytes > self.limits.bytes as u64 {
            return Err(RespError::TooLarge { bytes, limit: self.limits.bytes });
        }
        Ok(())
    }

    /// The body of a bulk of `length` bytes with its CRLF.
    fn bulk(&mut self, length: u64) -> Result<Option<&'a [u8]>, RespError> {
        self.fits(length.saturating_add(2))?;
        let length = length as usize;
        let rest = &self.data[self.at..];
        if rest.len() < length + 2 {
            return Ok(None);
        }
        if &rest[length..length + 2] != b"\r\n" {
            return Err(RespError::Unexpected { expected: "CRLF after a bulk string", found: rest[length] });
        }
        self.at += length + 2;
        Ok(Some(&rest[..length]))
    }
}

/// A decimal number without blanks, as lengths and counts are written.
pub fn number(text: &[u8], expected: &'static str) -> Result<i64, RespError> {
    let wrong = || RespError::Number {
        expected,
        text: String::from_utf8_lossy(&text[..text.len().min(32)]).into_owned(),
    };
    // The standard parser takes a plus sign, which the protocol does not have.
    if text.first() == Some(&b'+') {
        return Err(wrong());
    }
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(wrong)
}

/// A request: its arguments, the first of which is the command.
pub type RespRequest = Vec<Vec<u8>>;

/// Takes one request from the front of `data`: an array of bulk strings, or an inline line.
///
/// The answer is the request and the bytes that it took, or `None` while it is not complete. An
/// empty line, which replicas send to show that they are alive, is a request without arguments.
pub fn request(data: &[u8], limits: Limits) -> Result<Option<(RespRequest, usize)>, RespError> {
    let Some(first) = data.first() else { return Ok(None) };
    let mut reader = Reader { data, at: 0, limits };
    let Some(line) = reader.line()? else { return Ok(None) };
    if *first != b'*' {
        let words: RespRequest = line
            .split(|byte| byte.is_ascii_whitespace())
            .filter(|word| !word.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        if words.len() > limits.elements {
            return Err(RespError::TooMany { count: words.len() as u64, limit: limits.elements });
        }
        return Ok(Some((words, reader.at)));
    }
    let count = number(&line[1..], "count of arguments")?.max(0) as u64;
    if count > limits.elements as u64 {
        return Err(RespError::TooMany { count, limit: limits.elements });
    }
    let mut arguments = RespRequest::new();
    for _ in 0..count {
        let Some(line) = reader.line()? else { return Ok(None) };
        let (Some(b'$'), Some(digits)) = (line.first(), line.get(1..)) else {
            let found = line.first().copied().unwrap_or(b'\r');
            return Err(RespError::Unexpected { expected: "`$` before an argument", found });
        };
        let length = number(digits, "length of an argument")?;
        let Ok(length) = u64::try_from(length) else {
            return Err(RespError::Number { expected: "length of an argument", text: length.to_string() });
        };
        let Some(argument) = reader.bulk(length)? else { return Ok(None) };
        arguments.push(argument.to_vec());
    }
    Ok(Some((arguments, reader.at)))
}

/// A reply, of RESP2 or RESP3.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+OK`
    Simple(String),
    /// `-ERR ...`, or RESP3's bulk error.
    Error(String),
    /// `:1`
    Integer(i64),
    /// `$5`, or RESP3's verbatim string without its mark of three letters.
    Bulk(Vec<u8>),
    /// `$-1`, `*-1` or RESP3's `_`.
    Null,
    /// `*2`, and RESP3's sets and pushes.
    Array(Vec<Value>),
    /// RESP3's map, and an attribute before a reply.
    Map(Vec<(Value, Value)>),
    /// RESP3's `#t` or `#f`.
    Boolean(bool),
    /// RESP3's `,1.5`.
    Double(f64),
    /// RESP3's big number, as it was written.
    Big(String),
}

impl Value {
    /// The text of a simple or bulk string or of a number.
    pub fn text(&self) -> Option<String> {
        match self {
            Value::Simple(text) | Value::Big(text) => Some(text.clone()),
            Value::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Value::Integer(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn elements(&self) -> Option<&[Value]> {
        match self {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }
}

/// Takes one reply from the front of `data`, with the bytes that it took; `None` while it is not
/// complete.
pub fn reply(data: &[u8], limits: Limits) -> Result<Option<(Value, usize)>, RespError> {
    let mut reader = Reader { data, at: 0, limits };
    Ok(value(&mut reader, 0)?.map(|value| (value, reader.at)))
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

fn value(reader: &mut Reader<'_>, depth: usize) -> Result<Option<Value>, RespError> {
    if depth > reader.limits.depth {
        return Err(RespError::TooDeep { limit: reader.limits.depth });
    }
    let Some(line) = reader.line()? else { return Ok(None) };
    let Some((kind, rest)) = line.split_first() else {
        return Err(RespError::Unexpected { expected: "a type of RESP", found: b'\r' });
    };
    let found = match kind {
        b'+' => Value::Simple(text(rest)),
        b'-' => Value::Error(text(rest)),
        b':' => Value::Integer(number(rest, "integer")?),
        b'_' => Value::Null,
        b'#' => match rest {
            b"t" => Value::Boolean(true),
            b"f" => Value::Boolean(false),
            _ => {
                return Err(RespError::Number {
                    expected: "boolean",
                    text: text(&rest[..rest.len().min(8)]),
                });
            }
        },
        b',' => {
            let wrong = || RespError::Number { expected: "double", text: text(&rest[..rest.len().min(32)]) };
            let number = std::str::from_utf8(rest).ok().and_then(|text| text.parse().ok());
            Value::Double(number.ok_or_else(wrong)?)
        }
        b'(' => Value::Big(text(rest)),
        b'$' | b'!' | b'=' => {
            let length = number(rest, "length of a bulk string")?;
            let Ok(length) = u64::try_from(length) else { return Ok(Some(Value::Null)) };
            let Some(body) = reader.bulk(length)? else { return Ok(None) };
            match kind {
                b'!' => Value::Error(text(body)),
                // A verbatim string has its format and a colon before the text.
                b'=' => Value::Bulk(body.get(4..).unwrap_or_default().to_vec()),
                _ => Value::Bulk(body.to_vec()),
            }
        }
        b'*' | b'~' | b'>' => {
            let count = number(rest, "count of elements")?;
            let Ok(count) = u64::try_from(count) else { return Ok(Some(Value::Null)) };
            match collection(reader, count, depth)? {
                None => return Ok(None),
                Some(elements) => Value::Array(elements),
            }
        }
        b'%' | b'|' => {
            let count = number(rest, "count of entries")?.max(0) as u64;
            match collection(reader, count.saturating_mul(2), depth)? {
                None => return Ok(None),
                Some(elements) => {
                    let mut entries = Vec::new();
                    let mut elements = elements.into_iter();
                    while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
                        entries.push((key, value));
                    }
                    Value::Map(entries)
                }
            }
        }
        other => return Err(RespError::Unexpected { expected: "a type of RESP", found: *other }),
    };
    Ok(Some(found))
}

fn collection(reader: &mut Reader<'_>, count: u64, depth: usize) -> Result<Option<Vec<Value>>, RespError> {
    if count > reader.limits.elements as u64 {
        return Err(RespError::TooMany { count, limit: reader.limits.elements });
    }
    let mut elements = Vec::new();
    for _ in 0..count {
        let Some(element) = value(reader, depth + 1)? else { return Ok(None) };
        elements.push(element);
    }
    Ok(Some(elements))
}

/// Writes a request as an array of bulk strings.
pub fn write_request(out: &mut Vec<u8>, arguments: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
    for argument in arguments {
        write_bulk(out, argument);
    }
}

/// Writes a bulk string.
pub fn write_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(format!("${}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Writes an error; what would end its line becomes a blank.
pub fn write_error(out: &mut Vec<u8>, message: &str) {
    out.push(b'-');
    out.extend(message.bytes().map(|byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(list: &[&str]) -> RespRequest {
        list.iter().map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn requests_are_arrays_or_lines() {
        let take = |data: &[u8]| request(data, Limits::CLIENT);
        assert_eq!(take(b"*2\r\n$4\r\nECHO\r\n$2\r\na\n\r\nx"), Ok(Some((words(&["ECHO", "a\n"]), 22))));
        assert_eq!(take(b"PING  hi\r\n"), Ok(Some((words(&["PING", "hi"]), 10))));
        assert_eq!(take(b"\nPING\r\n"), Ok(Some((vec![], 1))));
        assert_eq!(take(b"*0\r\n"), Ok(Some((vec![], 4))));
        for end in 0..21 {
            assert_eq!(take(&b"*2\r\n$4\r\nECHO\r\n$2\r\na\n\r\n"[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn announcements_alone_are_refused() {
        let take = |data: &[u8]| request(data, Limits::STRANGER).unwrap_err();
        assert!(matches!(take(b"*1\r\n$536870912\r\n"), RespError::TooLarge { bytes: 536_870_930, .. }));
        assert!(matches!(take(b"*1\r\n$9223372036854775807\r\n"), RespError::TooLarge { .. }));
        assert!(matches!(take(b"*2147483647\r\n"), RespError::TooMany { count: 2_147_483_647, .. }));
        assert!(matches!(take(&[b'x'; 5_000]), RespError::TooLarge { .. }));
        assert!(matches!(take(b"*1\r\n$-4\r\n"), RespError::Number { .. }));
        assert!(matches!(take(b"*1\r\n:4\r\n"), RespError::Unexpected { .. }));
        assert!(matches!(take(b"*1\r\n$1\r\nab\r\n"), RespError::Unexpected { .. }));
        assert!(matches!(take(b"*+1\r\n"), RespError::Number { .. }));
        let deep = b"*1\r\n".repeat(9);
        assert_eq!(reply(&deep, Limits::REPLY), Err(RespError::TooDeep { limit: 8 }));
        assert!(matches!(reply(b"*99999999\r\n", Limits::REPLY), Err(RespError::TooMany { .. })));
    }

    #[test]
    fn replies_of_both_versions() {
        let take = |data: &[u8]| reply(data, Limits::REPLY).unwrap().unwrap().0;
        assert_eq!(take(b"+OK\r\n"), Value::Simple("OK".into()));
        assert_eq!(take(b"$-1\r\n"), Value::Null);
        assert_eq!(take(b"_\r\n"), Value::Null);
        assert_eq!(take(b"#t\r\n"), Value::Boolean(true));
        assert_eq!(take(b",1.5\r\n"), Value::Double(1.5));
        assert_eq!(take(b"!5\r\nERR x\r\n"), Value::Error("ERR x".into()));
        assert_eq!(take(b"=6\r\ntxt:ab\r\n"), Value::Bulk(b"ab".to_vec()));
        assert_eq!(take(b"*2\r\n:1\r\n*0\r\n"), Value::Array(vec![Value::Integer(1), Value::Array(vec![])]));
        assert_eq!(
            take(b"%1\r\n+a\r\n:2\r\n"),
            Value::Map(vec![(Value::Simple("a".into()), Value::Integer(2))])
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..9)) {
            let mut out = Vec::new();
            write_request(&mut out, &arguments.iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert_eq!(request(&out, Limits::CLIENT), Ok(Some((arguments.clone(), out.len()))));
            for end in 0..out.len() {
                prop_assert_eq!(request(&out[..end], Limits::CLIENT), Ok(None));
            }
        }

        #[test]
        fn any_bytes_are_answered(data in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = request(&data, Limits::STRANGER);
            let _ = reply(&data, Limits::REPLY);
        }

        #[test]
        fn bytes_of_the_protocol_are_answered(data in "([*$:+_#,(!=~>%|-]?[0-9a-z]{0,9}\r?\n?){0,40}") {
            for limits in [Limits::STRANGER, Limits::CLIENT, Limits::REPLY] {
                if let Ok(Some((_, taken))) = request(data.as_bytes(), limits) {
                    prop_assert!(taken <= data.len() && taken > 0);
                }
                if let Ok(Some((_, taken))) = reply(data.as_bytes(), limits) {
                    prop_assert!(taken <= data.len() && taken > 0);
                }
            }
        }
    }
}
