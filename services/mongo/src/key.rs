//! Keys of documents: their order, and the slot that each is hashed to.

use crate::MongoError;
use bson::Bson;
use bson::oid::ObjectId;
use serde::{Deserialize, Serialize};
use std::fmt;
use xxhash_rust::xxh64::xxh64;

/// Slots that hashed keys fall into: the upper 14 bits of their hash, as many as a Redis cluster has.
pub const SLOTS: u16 = 16_384;

/// An `_id`. The order is that of servers: numbers, then strings by their bytes, then object ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ShardKey {
    /// A whole number.
    Integer(i64),
    /// A string.
    Text(String),
    /// An object id.
    Object {
        /// Its 24 hexadecimal digits, in lower case.
        object_id: String,
    },
}

impl ShardKey {
    /// The key that a document's `_id` is. Numbers count by their value, whatever their type.
    pub fn of(id: Option<&Bson>) -> Result<ShardKey, MongoError> {
        let refuse = |value: String, reason: &str| {
            Err(MongoError::Value { key: "_id".to_string(), value, reason: reason.to_string() })
        };
        match id {
            Some(Bson::Int32(number)) => Ok(ShardKey::Integer((*number).into())),
            Some(Bson::Int64(number)) => Ok(ShardKey::Integer(*number)),
            // Beyond 2^53 a double stands for several whole numbers.
            Some(Bson::Double(number)) if number.fract() == 0.0 && number.abs() <= 9e15 => {
                Ok(ShardKey::Integer(*number as i64))
            }
            Some(Bson::String(text)) => Ok(ShardKey::Text(text.clone())),
            Some(Bson::ObjectId(id)) => Ok(ShardKey::Object { object_id: id.to_hex() }),
            Some(other) => refuse(
                other.to_string().chars().take(80).collect(),
                "keys are whole numbers, strings or object ids",
            ),
            None => refuse("nothing".to_string(), "a document needs an _id to have a shard"),
        }
    }

    /// The key as a value of a query.
    pub fn bson(&self) -> Bson {
        match self {
            ShardKey::Integer(number) => Bson::Int64(*number),
            ShardKey::Text(text) => Bson::String(text.clone()),
            // `check` has seen the digits; a key that skipped it matches nothing.
            ShardKey::Object { object_id } => ObjectId::parse_str(object_id)
                .map_or_else(|_| Bson::String(object_id.clone()), Bson::ObjectId),
        }
    }

    /// Refuses an object id that has no 24 digits.
    pub fn check(&self) -> Result<(), MongoError> {
        match self {
            ShardKey::Object { object_id }
                if object_id.len() != 24
                    || !object_id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) =>
            {
                Err(MongoError::Value {
                    key: "object_id".to_string(),
                    value: object_id.clone(),
                    reason: "write 24 hexadecimal digits in lower case".to_string(),
                })
            }
            _ => Ok(()),
        }
    }

    /// The slot of the key: the upper 14 bits of XXH64, seed 0, of a letter for its type (`i`, `s`,
    /// `o`) and its bytes (8 bytes little endian, UTF-8, or 12 bytes). Any driver can compute it.
    pub fn slot(&self) -> u16 {
        let mut bytes;
        match self {
            ShardKey::Integer(number) => {
                bytes = vec![b'i'];
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            ShardKey::Text(text) => {
                bytes = vec![b's'];
                bytes.extend_from_slice(text.as_bytes());
            }
            ShardKey::Object { object_id } => {
                bytes = vec![b'o'];
                bytes.extend(ObjectId::parse_str(object_id).map(|id| id.bytes()).unwrap_or_default());
            }
        }
        (xxh64(&bytes, 0) >> 50) as u16
    }

    /// Whether a server's comparison of the two can be true: it compares within a type alone.
    pub fn is_comparable(&self, other: &ShardKey) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for ShardKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShardKey::Integer(number) => write!(f, "{number}"),
            ShardKey::Text(text) => write!(f, "{text}"),
            ShardKey::Object { object_id } => write!(f, "ObjectId({object_id})"),
        }
    }
}

impl From<&str> for ShardKey {
    fn from(text: &str) -> ShardKey {
        ShardKey::Text(text.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_servers() {
        let object = |digit: &str| ShardKey::Object { object_id: digit.repeat(24) };
        let sorted = [
            ShardKey::Integer(-3),
            ShardKey::Integer(20),
            "".into(),
            "B".into(),
            "a".into(),
            object("0"),
            object("f"),
        ];
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(!sorted[1].is_comparable(&sorted[2]));
    }

    #[test]
    fn numbers_are_one_key_whatever_their_type() {
        for same in [Bson::Int32(5), Bson::Int64(5), Bson::Double(5.0)] {
            assert_eq!(ShardKey::of(Some(&same)).unwrap(), ShardKey::Integer(5));
        }
        assert!(ShardKey::of(Some(&Bson::Double(5.5))).is_err());
        assert!(ShardKey::of(Some(&Bson::Null)).unwrap_err().to_string().contains("_id"));
        assert!(ShardKey::of(None).unwrap_err().to_string().contains("needs an _id"));
    }

    #[test]
    fn slots_are_stable_and_even() {
        // Clients in other languages rely on these.
        assert_eq!(ShardKey::from("user1").slot(), (xxh64(b"suser1", 0) >> 50) as u16);
        // The test vector of XXH64: the empty input with seed 0.
        assert_eq!(xxh64(b"", 0), 0xef46_db37_51d8_e999);
        let mut quarters = [0; 4];
        for number in 0..40_000 {
            quarters[usize::from(ShardKey::from(format!("user{number}").as_str()).slot() / 4096)] += 1;
        }
        assert!(quarters.iter().all(|count| (9_700..10_300).contains(count)), "{quarters:?}");
        assert!(ShardKey::Object { object_id: "xyz".into() }.check().is_err());
    }
}
