//! Which endpoint holds which keys.

use crate::MongoError;
use crate::key::{SLOTS, ShardKey};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Endpoints and chunks, at most.
const MOST: usize = 20_000;

/// How keys are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// By [`ShardKey::slot`]: even whatever the keys are, and a scan asks every endpoint.
    Hashed,
    /// By the keys' order: a short scan asks one endpoint, and split points decide how even it is.
    Range,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Method::Hashed => "hashed",
            Method::Range => "range",
        })
    }
}

/// A server that holds a part of the documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MongoEndpoint {
    /// What people call it, such as `host` or `card`.
    pub name: String,
    /// `HOST:PORT`.
    pub address: String,
    /// Its share is this weight over the sum of all. Requests per second that it carries alone, or
    /// any other measure of strength.
    pub weight: f64,
}

/// A piece of the keys: from its lower end to the next chunk's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chunk {
    /// Its lower end, itself part of it: a slot where keys are hashed, else a key. The first has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<ShardKey>,
    /// The name of the endpoint that holds it.
    pub endpoint: String,
}

/// The chunks of one collection and who holds them, as a TOML file keeps them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    /// `DATABASE.COLLECTION`.
    pub collection: String,
    /// How keys are spread.
    pub method: Method,
    /// The endpoints.
    pub endpoint: Vec<MongoEndpoint>,
    /// The chunks, in ascending order of their lower ends.
    pub chunk: Vec<Chunk>,
    /// For each chunk the index of its endpoint.
    #[serde(skip)]
    owners: Vec<usize>,
}

fn refuse(key: impl Into<String>, value: impl ToString, reason: impl Into<String>) -> MongoError {
    MongoError::Value { key: key.into(), value: value.to_string(), reason: reason.into() }
}

/// The shares of a whole that weights give, from 0 to 1.
pub fn shares(weights: &[f64]) -> Result<Vec<f64>, MongoError> {
    if let Some(wrong) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
        return Err(refuse("weight", wrong, "give a number, 0 or more"));
    }
    let total: f64 = weights.iter().sum();
    if total <= 0.0 || !total.is_finite() {
        return Err(refuse("weight", total, "at least one endpoint needs a weight above 0"));
    }
    Ok(weights.iter().map(|weight| weight / total).collect())
}

/// Whole numbers that sum to `whole`, in proportion to `weights` within 1 of each.
pub fn parts(weights: &[f64], whole: u64) -> Result<Vec<u64>, MongoError> {
    let (mut sum, mut before) = (0.0, 0);
    let shares = shares(weights)?;
    let last = shares.iter().rposition(|share| *share > 0.0);
    let part = shares.iter().enumerate().map(|(index, share)| {
        sum += share;
        // Rounding must not leave the end of the whole to an endpoint of no weight.
        let end = if Some(index) >= last { whole } else { ((sum * whole as f64).round() as u64).min(whole) };
        let part = end - before;
        before = end;
        part
    });
    Ok(part.collect())
}

impl Map {
    /// A map for an empty collection, with keys hashed: each endpoint holds its share of the slots.
    pub fn hashed(collection: &str, endpoint: Vec<MongoEndpoint>) -> Result<Map, MongoError> {
        let weights: Vec<f64> = endpoint.iter().map(|endpoint| endpoint.weight).collect();
        let parts = parts(&weights, SLOTS.into())?;
        let owners =
            parts.iter().enumerate().flat_map(|(index, part)| (0..*part).map(move |_| index)).collect();
        Map::of_slots(collection, endpoint, owners)
    }

    /// A map with keys hashed, from the index of each slot's endpoint.
    fn of_slots(
        collection: &str,
        endpoint: Vec<MongoEndpoint>,
        owners: Vec<usize>,
    ) -> Result<Map, MongoError> {
        let mut chunk: Vec<Chunk> = Vec::new();
        for (slot, owner) in owners.iter().enumerate() {
            if slot == 0 || owners[slot - 1] != *owner {
                let from = (slot > 0).then_some(ShardKey::Integer(slot as i64));
                chunk.push(Chunk { from, endpoint: endpoint[*owner].name.clone() });
            }
        }
        Map {
            collection: collection.to_string(),
            method: Method::Hashed,
            endpoint,
            chunk,
            owners: Vec::new(),
        }
        .checked()
    }

    /// A map of ranges: endpoint `i` holds the keys from `splits[i - 1]` on, up to `splits[i]`. Equal
    /// splits leave an endpoint without keys, and so do missing ones, for the last of no weight alone.
    pub fn ranges(
        collection: &str,
        endpoint: Vec<MongoEndpoint>,
        splits: &[ShardKey],
    ) -> Result<Map, MongoError> {
        let needed = endpoint.iter().rposition(|endpoint| endpoint.weight > 0.0).unwrap_or(0);
        if !(needed..endpoint.len().max(1)).contains(&splits.len()) {
            let reason = format!("{} endpoints have {needed} split points between them", needed + 1);
            return Err(refuse("split points", splits.len(), reason));
        }
        let mut chunk = Vec::new();
        for (index, endpoint) in endpoint.iter().take(splits.len() + 1).enumerate() {
            let from = index.checked_sub(1).map(|before| splits[before].clone());
            if splits.get(index) != from.as_ref() || index == splits.len() {
                chunk.push(Chunk { from, endpoint: endpoint.name.clone() });
            }
        }
        Map { collection: collection.to_string(), method: Method::Range, endpoint, chunk, owners: Vec::new() }
            .checked()
    }

    /// Parses a map file and checks it.
    pub fn parse(text: &str) -> Result<Map, MongoError> {
        let map: Map =
            toml::from_str(text).map_err(|error| refuse("map", "file", error.to_string().trim_end()))?;
        map.checked()
    }

    /// Reads a map file and checks it.
    pub fn load(path: &Path) -> Result<Map, MongoError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            refuse(
                "map",
                path.display(),
                format!("{error}; `offpath shard mongo plan --out FILE` writes one"),
            )
        })?;
        Map::parse(&text)
    }

    /// The map as the text of a file.
    pub fn text(&self) -> Result<String, MongoError> {
        let text = toml::to_string(self).map_err(|error| refuse("map", "text", error.to_string()))?;
        Ok(format!(
            "# Written by `offpath shard mongo`. Once documents are loaded, `offpath shard mongo rebalance`\n\
             # changes it: a chunk that is given away by hand leaves its documents behind.\n{text}"
        ))
    }

    /// Writes the file as a whole or not at all.
    pub fn save(&self, path: &Path) -> Result<(), MongoError> {
        let wrong = |error: std::io::Error| refuse("map", path.display(), error.to_string());
        let mut beside = path.as_os_str().to_owned();
        beside.push(".part");
        let mut file = std::fs::File::create(&beside).map_err(wrong)?;
        std::io::Write::write_all(&mut file, self.text()?.as_bytes()).map_err(wrong)?;
        file.sync_all().map_err(wrong)?;
        std::fs::rename(&beside, path).map_err(wrong)
    }

    fn checked(mut self) -> Result<Map, MongoError> {
        let plain = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\=".contains(&byte))
        };
        match self.collection.split_once('.') {
            Some((database, collection)) if plain(database) && plain(collection) => {}
            _ => {
                return Err(refuse(
                    "collection",
                    &self.collection,
                    "write DATABASE.COLLECTION, as in `ycsb.usertable`",
                ));
            }
        }
        for (key, count) in [("endpoints", self.endpoint.len()), ("chunks", self.chunk.len())] {
            if !(1..=MOST).contains(&count) {
                return Err(refuse(key, count, format!("give 1 to {MOST}")));
            }
        }
        for (index, endpoint) in self.endpoint.iter().enumerate() {
            let port = endpoint.address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
            if !plain(&endpoint.address) || !matches!(port, Some(Ok(_))) {
                return Err(refuse("address", &endpoint.address, "write HOST:PORT, as in `127.0.0.1:27017`"));
            }
            if !plain(&endpoint.name) {
                return Err(refuse(
                    "name",
                    &endpoint.name,
                    "use letters, digits and signs without blanks, quotes or `=`",
                ));
            }
            let before = &self.endpoint[..index];
            if before.iter().any(|other| other.address == endpoint.address || other.name == endpoint.name) {
                return Err(refuse(
                    "endpoint",
                    &endpoint.name,
                    "each name and each address may be given once",
                ));
            }
        }
        shares(&self.endpoint.iter().map(|endpoint| endpoint.weight).collect::<Vec<_>>())?;
        let mut last: Option<&ShardKey> = None;
        self.owners.clear();
        for (index, chunk) in self.chunk.iter().enumerate() {
            let shown = chunk.from.as_ref().map_or_else(|| "nothing".to_string(), ToString::to_string);
            if chunk.from.is_none() != (index == 0) {
                return Err(refuse("from", shown, "every chunk but the first needs its lower end"));
            }
            if let Some(from) = &chunk.from {
                from.check()?;
                let slot = matches!(from, ShardKey::Integer(slot) if (1..i64::from(SLOTS)).contains(slot));
                if self.method == Method::Hashed && !slot {
                    return Err(refuse(
                        "from",
                        shown,
                        format!("where keys are hashed, write a slot from 1 to {}", SLOTS - 1),
                    ));
                }
                if last.is_some_and(|last| last >= from) {
                    return Err(refuse("from", shown, "chunks have to be in ascending order"));
                }
                last = Some(from);
            }
            let Some(owner) = self.endpoint.iter().position(|endpoint| endpoint.name == chunk.endpoint)
            else {
                return Err(refuse("endpoint", &chunk.endpoint, "name one of the endpoints"));
            };
            self.owners.push(owner);
        }
        Ok(self)
    }

    /// The database's name.
    pub fn database(&self) -> &str {
        self.collection.split_once('.').map_or("", |(database, _)| database)
    }

    /// The collection's name within its database.
    pub fn table(&self) -> &str {
        self.collection.split_once('.').map_or("", |(_, table)| table)
    }

    /// The addresses of the endpoints, in order.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        self.endpoint.iter().map(|endpoint| endpoint.address.as_str())
    }

    /// The index of the chunk of `key`.
    pub fn chunk_of(&self, key: &ShardKey) -> usize {
        let slot;
        let at = match self.method {
            Method::Hashed => {
                slot = ShardKey::Integer(key.slot().into());
                &slot
            }
            Method::Range => key,
        };
        self.chunk.partition_point(|chunk| chunk.from.as_ref().is_none_or(|from| from <= at)).max(1) - 1
    }

    /// The index of the endpoint of `key`.
    pub fn owner(&self, key: &ShardKey) -> usize {
        self.owners[self.chunk_of(key)]
    }

    /// The index of the endpoint of each chunk.
    pub fn owners(&self) -> &[usize] {
        &self.owners
    }

    /// Slots of each endpoint, where keys are hashed.
    pub fn slots(&self) -> Vec<u16> {
        let mut slots = vec![0; self.endpoint.len()];
        self.slot_owners().iter().for_each(|owner| slots[*owner] += 1);
        slots
    }

    fn slot_owners(&self) -> Vec<usize> {
        if self.method == Method::Range {
            return Vec::new();
        }
        let mut owners = Vec::with_capacity(SLOTS.into());
        for (index, owner) in self.owners.iter().enumerate() {
            let end = match self.chunk.get(index + 1).and_then(|next| next.from.as_ref()) {
                Some(ShardKey::Integer(slot)) => *slot as usize,
                _ => usize::from(SLOTS),
            };
            owners.resize(end, *owner);
        }
        owners
    }

    fn with_weights(&self, weights: &[f64]) -> Result<Vec<MongoEndpoint>, MongoError> {
        if weights.len() != self.endpoint.len() {
            return Err(refuse(
                "weights",
                weights.len(),
                format!("give one for each of {} endpoints", self.endpoint.len()),
            ));
        }
        let pairs = self.endpoint.iter().zip(weights);
        Ok(pairs.map(|(endpoint, weight)| MongoEndpoint { weight: *weight, ..endpoint.clone() }).collect())
    }

    /// The map for other weights with the fewest slots moved: who has too many gives its highest.
    pub fn rehashed(&self, weights: &[f64]) -> Result<Map, MongoError> {
        let endpoints = self.with_weights(weights)?;
        let wanted = parts(weights, SLOTS.into())?;
        let mut owners = self.slot_owners();
        let had = self.slots();
        let mut short: Vec<u64> =
            wanted.iter().zip(&had).map(|(want, have)| want.saturating_sub(u64::from(*have))).collect();
        let mut over: Vec<u64> =
            wanted.iter().zip(&had).map(|(want, have)| u64::from(*have).saturating_sub(*want)).collect();
        for owner in owners.iter_mut().rev() {
            if over[*owner] > 0
                && let Some(taker) = short.iter().rposition(|count| *count > 0)
            {
                over[*owner] -= 1;
                short[taker] -= 1;
                *owner = taker;
            }
        }
        Map::of_slots(&self.collection, endpoints, owners)
    }

    /// The map of ranges for other weights, between other split points.
    pub fn resplit(&self, weights: &[f64], splits: &[ShardKey]) -> Result<Map, MongoError> {
        Map::ranges(&self.collection, self.with_weights(weights)?, splits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn endpoints(weights: &[f64]) -> Vec<MongoEndpoint> {
        let one = |(index, weight): (usize, &f64)| MongoEndpoint {
            name: format!("n{index}"),
            address: format!("127.0.0.1:{}", 100 + index),
            weight: *weight,
        };
        weights.iter().enumerate().map(one).collect()
    }

    #[test]
    fn shares_follow_weights() {
        assert_eq!(Map::hashed("a.b", endpoints(&[3.0, 1.0])).unwrap().slots(), [12_288, 4_096]);
        assert_eq!(Map::hashed("a.b", endpoints(&[1.0, 0.0])).unwrap().slots(), [16_384, 0]);
        assert_eq!(parts(&[0.1, 0.2, 0.0], 10).unwrap(), [3, 7, 0]);
        for wrong in [&[0.0, 0.0][..], &[-1.0, 2.0], &[f64::NAN], &[]] {
            assert!(Map::hashed("a.b", endpoints(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn ranges_are_found() {
        let map = Map::ranges("a.b", endpoints(&[1.0, 1.0, 1.0]), &["g".into(), "p".into()]).unwrap();
        for (key, owner) in [("", 0), ("fzz", 0), ("g", 1), ("oz", 1), ("p", 2), ("z", 2)] {
            assert_eq!(map.owner(&key.into()), owner, "{key}");
        }
        assert_eq!(map.owner(&ShardKey::Integer(5)), 0, "numbers stand before strings");
        let empty = Map::ranges("a.b", endpoints(&[1.0, 0.0, 1.0]), &["g".into(), "g".into()]).unwrap();
        assert_eq!((empty.owner(&"f".into()), empty.owner(&"g".into())), (0, 2));
        assert_eq!(empty.chunk.len(), 2);
        assert!(Map::ranges("a.b", endpoints(&[1.0, 1.0]), &[]).is_err());
        let none = Map::ranges("a.b", endpoints(&[1.0, 0.0]), &[]).unwrap();
        assert_eq!((none.chunk.len(), none.owner(&"z".into())), (1, 0));
        assert!(Map::ranges("a.b", endpoints(&[1.0]), &["g".into()]).is_err());
        assert!(Map::ranges("a.b", endpoints(&[1.0, 1.0, 1.0]), &["p".into(), "g".into()]).is_err());
    }

    #[test]
    fn maps_survive_their_file_and_refuse_nonsense() {
        let keys = [ShardKey::Integer(7), ShardKey::Object { object_id: "0123456789abcdef01234567".into() }];
        let ranges = Map::ranges("a.b", endpoints(&[1.0, 2.5, 1.0]), &keys).unwrap();
        let map = Map::hashed("ycsb.users", endpoints(&[2.0, 1.0])).unwrap();
        for map in [&map, &ranges] {
            assert_eq!(&Map::parse(&map.text().unwrap()).unwrap(), map);
        }
        for (from, to, reason) in [
            ("from = 10923", "from = 16384", "from 1 to 16383"),
            ("from = 10923", "from = \"x\"", "from 1 to 16383"),
            ("from = 10923", "", "lower end"),
            ("endpoint = \"n1\"", "endpoint = \"n2\"", "one of the endpoints"),
            ("127.0.0.1:101", "127.0.0.1:100", "given once"),
            ("127.0.0.1:101", "127.0.0.1", "HOST:PORT"),
            ("ycsb.users", "ycsb", "DATABASE.COLLECTION"),
            ("weight = 1.0", "weight = -1.0", "0 or more"),
            ("hashed", "heshed", "hashed"),
            ("weight = 1.0", "weigth = 1.0", "weigth"),
        ] {
            let text = map.text().unwrap().replacen(from, to, 1);
            assert_ne!(text, map.text().unwrap(), "{from}");
            let error = Map::parse(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn files_are_written_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.toml");
        let map = Map::hashed("a.b", endpoints(&[2.0, 1.0])).unwrap();
        map.save(&path).unwrap();
        assert_eq!(Map::load(&path).unwrap(), map);
        // Who has the earlier file open goes on reading that one, and never a part of the next.
        let opened = folder.path().join("opened.toml");
        std::fs::hard_link(&path, &opened).unwrap();
        let next = Map::hashed("a.b", endpoints(&[1.0, 2.0])).unwrap();
        next.save(&path).unwrap();
        assert_eq!((Map::load(&opened).unwrap(), Map::load(&path).unwrap()), (map.clone(), next));
        assert!(map.save(&folder.path().join("no/map.toml")).is_err());
        assert!(Map::load(&folder.path().join("none")).unwrap_err().to_string().contains("plan --out"));
    }

    proptest! {
        #[test]
        fn rehashing_moves_the_fewest_slots(
            before in prop::collection::vec(0.0f64..10.0, 2..6),
            middle in prop::collection::vec(0.1f64..10.0, 6),
            after in prop::collection::vec(0.1f64..10.0, 6),
        ) {
            prop_assume!(before.iter().sum::<f64>() > 0.0);
            let mut map = Map::hashed("a.b", endpoints(&before)).unwrap();
            for weights in [&middle, &after] {
                let weights = &weights[..before.len()];
                let next = map.rehashed(weights).unwrap();
                let wanted: Vec<u16> = parts(weights, 16_384).unwrap().iter().map(|part| *part as u16).collect();
                prop_assert_eq!(next.slots(), wanted.clone());
                let moved = map.slot_owners().iter().zip(next.slot_owners()).filter(|(a, b)| *a != b).count();
                let least: u32 = map.slots().iter().zip(&wanted).map(|(a, b)| u32::from(b.saturating_sub(*a))).sum();
                prop_assert_eq!(moved as u32, least);
                prop_assert_eq!(Map::parse(&next.text().unwrap()).unwrap(), next.clone());
                map = next;
            }
        }
    }
}
