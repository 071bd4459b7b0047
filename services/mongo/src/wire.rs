//! OP_MSG, the one message that MongoDB-compatible servers of today speak, with one document in it.
//!
//! Source: the MongoDB wire protocol (OP_MSG, opcode 2013). Compression, checksums of ours and
//! document sequences are not used; a server may answer with any of its own kind 0 sections.

use bson::{Document, RawBsonRef, RawDocument};
use thiserror::Error;

/// Bytes of the longest message, header among them, as servers have it by default.
pub const MOST_BYTES: usize = 48_000_000;
/// Documents within documents, at most. Servers store 100 levels, and replies add a few.
const MOST_LEVELS: u32 = 200;

const HEADER: usize = 16;
const OP_MSG: i32 = 2013;
const CHECKSUM_PRESENT: u32 = 1;
const MORE_TO_COME: u32 = 2;

/// Why bytes are no message that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// A length that no message has.
    #[error("a message of {bytes} bytes; expected 16 to {MOST_BYTES}")]
    Length {
        /// The length that its header gives, or that it would have.
        bytes: i64,
    },
    /// Another kind of message.
    #[error("a message with the opcode {opcode}; only OP_MSG ({OP_MSG}) is understood")]
    Opcode {
        /// Its opcode.
        opcode: i32,
    },
    /// Flags whose meaning is required and unknown.
    #[error("a message with the flags {flags:#x}, of which some required ones are not supported")]
    Flags {
        /// The flag bits.
        flags: u32,
    },
    /// A message that is cut, or has no document where one belongs.
    #[error("a message that is malformed at byte {at}: {reason}")]
    Malformed {
        /// Where, counted from its first byte.
        at: usize,
        /// What is wrong there.
        reason: String,
    },
}

/// Writes `document` as a message; `request` is the number that its answer repeats.
pub fn encode(request: i32, document: &Document) -> Result<Vec<u8>, WireError> {
    let body = document
        .to_vec()
        .map_err(|error| WireError::Malformed { at: HEADER + 5, reason: error.to_string() })?;
    let length = HEADER + 5 + body.len();
    if length > MOST_BYTES {
        return Err(WireError::Length { bytes: length as i64 });
    }
    let mut message = Vec::with_capacity(length);
    for number in [length as i32, request, 0, OP_MSG, 0] {
        message.extend_from_slice(&number.to_le_bytes());
    }
    message.push(0);
    message.extend_from_slice(&body);
    Ok(message)
}

fn number(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    bytes.get(at..at + 4)?.try_into().ok()
}

/// The length of the message that `bytes` begin with, once its first four bytes are there.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, WireError> {
    let Some(first) = number(bytes, 0) else { return Ok(None) };
    let length = i32::from_le_bytes(first);
    match usize::try_from(length) {
        Ok(bytes) if (HEADER..=MOST_BYTES).contains(&bytes) => Ok(Some(bytes)),
        _ => Err(WireError::Length { bytes: length.into() }),
    }
}

/// Reads one whole message: the request that it answers, and its document.
pub fn decode(message: &[u8]) -> Result<(i32, Document), WireError> {
    let malformed = |at: usize, reason: &str| WireError::Malformed { at, reason: reason.to_string() };
    if length(message)? != Some(message.len()) {
        return Err(malformed(0, "its length is not the one that it gives"));
    }
    let field = |at: usize| {
        number(message, at).map(i32::from_le_bytes).ok_or_else(|| malformed(at, "its header is cut"))
    };
    let (answers, opcode) = (field(8)?, field(12)?);
    if opcode != OP_MSG {
        return Err(WireError::Opcode { opcode });
    }
    let flags = u32::from_le_bytes(number(message, HEADER).ok_or_else(|| malformed(HEADER, "no flags"))?);
    // The lower half has to be understood. An answer of which more parts follow was never asked for.
    if flags & 0xffff & !CHECKSUM_PRESENT != 0 || flags & MORE_TO_COME != 0 {
        return Err(WireError::Flags { flags });
    }
    let end = message.len() - if flags & CHECKSUM_PRESENT != 0 { 4 } else { 0 };
    let at = HEADER + 4;
    match message.get(at..end) {
        Some([0, body @ ..]) => Ok((answers, document(body, at + 1)?)),
        Some([kind, ..]) => Err(malformed(at, &format!("a section of kind {kind}; expected one document"))),
        _ => Err(malformed(at, "no section")),
    }
}

fn document(body: &[u8], at: usize) -> Result<Document, WireError> {
    let malformed = |reason: String| WireError::Malformed { at, reason };
    let raw = RawDocument::from_bytes(body).map_err(|error| malformed(error.to_string()))?;
    // Turning it into a `Document` recurses, so its depth is bounded first.
    check_levels(raw, 0).map_err(malformed)?;
    Document::try_from(raw).map_err(|error| malformed(error.to_string()))
}

fn check_levels(document: &RawDocument, level: u32) -> Result<(), String> {
    for element in document {
        check_value(element.map_err(|error| error.to_string())?.1, level)?;
    }
    Ok(())
}

fn check_value(value: RawBsonRef<'_>, level: u32) -> Result<(), String> {
    if level > MOST_LEVELS {
        return Err(format!("documents within documents, more than {MOST_LEVELS} levels deep"));
    }
    match value {
        RawBsonRef::Document(inner) => check_levels(inner, level + 1),
        RawBsonRef::JavaScriptCodeWithScope(code) => check_levels(code.scope, level + 1),
        RawBsonRef::Array(inner) => {
            for element in inner {
                check_value(element.map_err(|error| error.to_string())?, level + 1)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;
    use proptest::prelude::*;

    fn sample() -> Document {
        doc! { "ok": 1.0, "cursor": { "firstBatch": [{ "_id": "a", "n": 7_i64 }], "id": 0_i64 } }
    }

    #[test]
    fn messages_come_back() {
        let mut message = encode(7, &sample()).unwrap();
        message[8] = 9;
        assert_eq!(length(&message).unwrap(), Some(message.len()));
        assert_eq!(decode(&message).unwrap(), (9, sample()));
        assert_eq!(length(&message[..3]).unwrap(), None);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let whole = encode(7, &sample()).unwrap();
        let mut other = whole.clone();
        other[12..16].copy_from_slice(&1_i32.to_le_bytes());
        assert_eq!(decode(&other), Err(WireError::Opcode { opcode: 1 }));
        let mut flagged = whole.clone();
        flagged[16] = 2;
        assert_eq!(decode(&flagged), Err(WireError::Flags { flags: 2 }));
        let mut section = whole.clone();
        section[20] = 1;
        assert!(decode(&section).unwrap_err().to_string().contains("kind 1"));
        assert!(decode(&whole[..30]).unwrap_err().to_string().contains("length"));
        let long = (MOST_BYTES as i32 + 1).to_le_bytes();
        assert_eq!(length(&long), Err(WireError::Length { bytes: MOST_BYTES as i64 + 1 }));
        assert!(length(&[0xff; 4]).is_err());
        let large = doc! { "v": "x".repeat(MOST_BYTES) };
        assert!(matches!(encode(1, &large), Err(WireError::Length { .. })));
    }

    #[test]
    fn depth_is_bounded() {
        // Written by hand: the crate that reads it recurses when it writes too.
        let mut body = vec![5, 0, 0, 0, 0];
        for _ in 0..100_000 {
            let mut outer = ((body.len() + 8) as i32).to_le_bytes().to_vec();
            outer.extend_from_slice(&[3, b'd', 0]);
            if body.len() > 10_000 {
                break;
            }
            outer.extend_from_slice(&body);
            outer.push(0);
            body = outer;
        }
        let mut message = ((21 + body.len()) as i32).to_le_bytes().to_vec();
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(&OP_MSG.to_le_bytes());
        message.extend_from_slice(&[0; 5]);
        message.extend_from_slice(&body);
        assert!(decode(&message).unwrap_err().to_string().contains("levels"));
    }

    proptest! {
        #[test]
        fn mutated_messages_never_panic(at in 0usize..120, byte: u8, cut in 0usize..120) {
            let mut message = encode(7, &sample()).unwrap();
            let length = message.len();
            message[at % length] = byte;
            let _ = decode(&message);
            message.truncate(cut);
            let _ = decode(&message);
            if let Some(first) = message.get_mut(..4) {
                first.copy_from_slice(&(cut as i32).to_le_bytes());
                let _ = decode(&message);
            }
        }
    }
}
