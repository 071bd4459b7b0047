//! Slots: which one a key belongs to, and sets of them.

use std::fmt;

/// Slots of a cluster.
pub const SLOTS: u16 = 16_384;

/// The remainders of CRC16 (polynomial 0x1021, initial value 0) for each value of a byte.
const REMAINDERS: [u16; 256] = {
    let mut table = [0u16; 256];
    let mut value = 0;
    while value < 256 {
        let mut remainder = (value as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            remainder = if remainder & 0x8000 != 0 { (remainder << 1) ^ 0x1021 } else { remainder << 1 };
            bit += 1;
        }
        table[value] = remainder;
        value += 1;
    }
    table
};

/// CRC16 as clusters use it: XMODEM's.
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ REMAINDERS[usize::from((crc >> 8) as u8 ^ byte)])
}

/// The part of a key that decides its slot: what stands between the first `{` and the first `}` behind
/// it, where that is not empty, else the whole key.
pub fn hashed_part(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    match key[open + 1..].iter().position(|byte| *byte == b'}') {
        Some(length) if length > 0 => &key[open + 1..open + 1 + length],
        _ => key,
    }
}

/// The slot of a key.
pub fn slot(key: &[u8]) -> u16 {
    crc16(hashed_part(key)) % SLOTS
}

/// A set of slots, one bit each: 2048 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotSet(Box<[u8; 2048]>);

impl Default for SlotSet {
    fn default() -> SlotSet {
        SlotSet(Box::new([0; 2048]))
    }
}

impl SlotSet {
    /// No slot.
    pub fn new() -> SlotSet {
        SlotSet::default()
    }

    /// The set of these 2048 bytes; slot 0 is the lowest bit of the first.
    pub fn from_bytes(bytes: [u8; 2048]) -> SlotSet {
        SlotSet(Box::new(bytes))
    }

    /// The set as bytes.
    pub fn as_bytes(&self) -> &[u8; 2048] {
        &self.0
    }

    /// Adds a slot below 16384; others are not slots and change nothing.
    pub fn insert(&mut self, slot: u16) {
        if let Some(byte) = self.0.get_mut(usize::from(slot >> 3)) {
            *byte |= 1 << (slot & 7);
        }
    }

    /// Takes a slot out.
    pub fn remove(&mut self, slot: u16) {
        if let Some(byte) = self.0.get_mut(usize::from(slot >> 3)) {
            *byte &= !(1 << (slot & 7));
        }
    }

    /// Whether the slot is in the set.
    pub fn contains(&self, slot: u16) -> bool {
        self.0.get(usize::from(slot >> 3)).is_some_and(|byte| byte >> (slot & 7) & 1 == 1)
    }

    /// How many slots there are.
    pub fn len(&self) -> u16 {
        self.0.iter().map(|byte| byte.count_ones() as u16).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slots in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        (0..SLOTS).filter(|slot| self.contains(*slot))
    }

    /// The set as ranges, both ends within.
    pub fn ranges(&self) -> Vec<(u16, u16)> {
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for slot in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == slot => *last = slot,
                _ => ranges.push((slot, slot)),
            }
        }
        ranges
    }
}

impl FromIterator<u16> for SlotSet {
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> SlotSet {
        let mut set = SlotSet::new();
        for slot in slots {
            set.insert(slot);
        }
        set
    }
}

impl fmt::Display for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<String> = self
            .ranges()
            .into_iter()
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
            .collect();
        f.write_str(&ranges.join(" "))
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        // The check value of CRC16/XMODEM, and slots that `CLUSTER KEYSLOT` gives.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b""), 0);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(hashed_part(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(hashed_part(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(hashed_part(b"foo{bar}{zap}"), b"bar");
        assert_eq!(hashed_part(b"foo{bar"), b"foo{bar");
    }

    #[test]
    fn sets_are_written_as_ranges() {
        let mut set: SlotSet = (0..10).chain([12, 16_383]).collect();
        assert_eq!((set.len(), set.to_string().as_str()), (12, "0-9 12 16383"));
        set.remove(5);
        assert_eq!(set.to_string(), "0-4 6-9 12 16383");
        set.insert(SLOTS);
        assert_eq!(set.len(), 11);
        assert!(!set.contains(SLOTS));
    }

    proptest! {
        #[test]
        fn every_key_has_a_slot(key in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert!(slot(&key) < SLOTS);
        }
    }
}
