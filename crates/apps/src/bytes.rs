//! Bytes that follow from a few numbers, so that wrong or mixed ones show.

/// Revisions are below this, so that the first word of another record's value gives none.
pub(crate) const REVISIONS: u64 = 1 << 48;

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014): every bit of the key moves every bit.
pub fn hash(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The value that revision `revision` of a record has: its bytes follow from both, so that a wrong or
/// mixed value shows.
pub fn value_of(record: u64, revision: u64, length: u32) -> Vec<u8> {
    let mut word = hash(record) ^ revision;
    let mut value = Vec::with_capacity(length.next_multiple_of(8) as usize);
    while value.len() < length as usize {
        value.extend_from_slice(&word.to_le_bytes());
        word = hash(word);
    }
    value.truncate(length as usize);
    value
}

/// Whether `value` is [`value_of`] the record in some revision. One below 8 B tells no revision and passes.
pub fn is_value_of(record: u64, value: &[u8]) -> bool {
    let Some(first) = value.first_chunk() else { return true };
    let mut word = u64::from_le_bytes(*first);
    (word ^ hash(record)) < REVISIONS
        && value.chunks(8).all(|chunk| {
            let same = word.to_le_bytes().starts_with(chunk);
            word = hash(word);
            same
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_record_or_of_two_revisions_shows() {
        let (one, other) = (value_of(7, 3, 60), value_of(7, 4, 60));
        assert!(is_value_of(7, &one) && is_value_of(7, &other) && is_value_of(7, &value_of(7, 0, 60)));
        assert!(!is_value_of(8, &one));
        for cut in 1..60 {
            let mixed = [&one[..cut], &other[cut..]].concat();
            assert!(mixed == one || mixed == other || !is_value_of(7, &mixed), "cut at {cut}");
        }
    }
}
