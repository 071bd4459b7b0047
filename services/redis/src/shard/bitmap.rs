//! Finding a key's side in 2048 bytes: a set bit is a slot of the host, a clear one of the card.
//!
//! Source: sun2023 §4.3. A lookup is one CRC16 and one bit, whatever the number of keys.

use crate::client::RedisClient;
use crate::shard::ShardError;
use crate::shard::slots::{SlotSet, slot};
use crate::shard::topology;

/// One of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The bit of the slot is set.
    Host,
    /// The bit of the slot is clear.
    Card,
}

/// Two endpoints and the slots of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    /// Where the host listens.
    pub host: String,
    /// Where the card listens.
    pub card: String,
    slots: SlotSet,
}

impl Bitmap {
    /// A map of two endpoints with the slots of the host.
    pub fn new(host: &str, card: &str, slots: SlotSet) -> Bitmap {
        Bitmap { host: host.to_string(), card: card.to_string(), slots }
    }

    /// Asks a cluster of two masters. `host` says which of them is the host.
    pub fn read(client: &mut RedisClient, host: &str) -> Result<Bitmap, ShardError> {
        let nodes = topology::nodes(client)?;
        let masters: Vec<_> = nodes.iter().filter(|node| node.master && !node.slots.is_empty()).collect();
        let refused = |reason: String| ShardError::Refused { address: client.address().to_string(), reason };
        let [one, two] = masters[..] else {
            return Err(refused(format!(
                "the cluster has {} masters with slots and a bitmap tells two apart; use redirections instead",
                masters.len()
            )));
        };
        let (host_node, card) = match (one.address == host, two.address == host) {
            (true, _) => (one, two),
            (_, true) => (two, one),
            _ => return Err(refused(format!("none of {} and {} is `{host}`", one.address, two.address))),
        };
        Ok(Bitmap::new(&host_node.address, &card.address, host_node.slots.clone()))
    }

    /// The side of a key.
    pub fn side(&self, key: &[u8]) -> Side {
        if self.slots.contains(slot(key)) { Side::Host } else { Side::Card }
    }

    /// Where a key is.
    pub fn address(&self, key: &[u8]) -> &str {
        match self.side(key) {
            Side::Host => &self.host,
            Side::Card => &self.card,
        }
    }

    /// The 2048 bytes.
    pub fn bytes(&self) -> &[u8; 2048] {
        self.slots.as_bytes()
    }

    /// Follows a redirection: the slot is on the other side from here on. The answer is whether the
    /// address is one of the two.
    pub fn moved(&mut self, slot: u16, address: &str) -> bool {
        if address == self.host {
            self.slots.insert(slot);
        } else if address == self.card {
            self.slots.remove(slot);
        } else {
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_is_a_side() {
        let mut map = Bitmap::new("h:1", "c:2", (0..8_192).collect());
        assert_eq!(map.bytes().iter().map(|byte| byte.count_ones()).sum::<u32>(), 8_192);
        assert_eq!((map.side(b"foo"), map.address(b"foo")), (Side::Card, "c:2"));
        assert!(map.moved(slot(b"foo"), "h:1"));
        assert_eq!(map.address(b"foo"), "h:1");
        assert!(!map.moved(1, "x:3"));
    }
}
