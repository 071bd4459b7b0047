//! The driver's side of a sharded collection: every operation goes to the endpoint of its key.
//!
//! A move of documents is live within one router: writes go on at the giver, what they touched is
//! copied again, and the switch itself keeps writers out for a few round trips. Other processes cannot
//! know of it, so a router that was opened from a file shares a lock beside it, and a move needs that
//! lock alone. Routers on other machines have to be stopped while documents move.

use crate::MongoError;
use crate::client::{MongoAccess, MongoClient, batch, integer};
use crate::key::ShardKey;
use crate::map::{Map, Method, parts};
use bson::{Bson, Document, doc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// Documents that one command carries, at most.
const BATCH: usize = 200;
/// Keys that are left for the switch, at most, where writers leave a chance of it.
const LAST: usize = 100;
/// Times that touched keys are copied before the switch is made anyway.
const ROUNDS: u32 = 20;

/// A map on file, and the lock that says who uses it.
#[derive(Debug)]
struct Home {
    path: PathBuf,
    lock: File,
}

#[derive(Debug)]
struct State {
    map: Map,
    /// Where documents are going, while they are.
    next: Option<Map>,
}

/// A client of all endpoints of a map; threads share one.
#[derive(Debug)]
pub struct DocumentRouter {
    access: MongoAccess,
    home: Option<Home>,
    state: RwLock<State>,
    /// Keys that were written while they moved.
    touched: Mutex<BTreeSet<ShardKey>>,
    pools: Vec<Mutex<Vec<MongoClient>>>,
    requests: Vec<AtomicU64>,
    moves: Mutex<()>,
}

/// What a move did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MovedDocuments {
    /// Documents that were copied.
    pub documents: u64,
    /// Of their keys, those that were copied again, since they were written meanwhile.
    pub again: u64,
    /// Documents that an interrupted move had left where they do not belong.
    pub strays: u64,
    /// How long writers were kept out.
    pub pause: Duration,
}

/// What an endpoint holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointHoldings {
    /// Documents that belong to it.
    pub documents: u64,
    /// Documents that do not, which an interrupted move has left; nobody reads them.
    pub strays: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_lost(error: &MongoError) -> bool {
    !matches!(error, MongoError::Refused { .. } | MongoError::Value { .. })
}

fn ids<'a>(keys: impl IntoIterator<Item = &'a ShardKey>) -> Document {
    doc! { "_id": { "$in": keys.into_iter().map(ShardKey::bson).collect::<Vec<Bson>>() } }
}

fn projection(fields: &[&str]) -> Document {
    fields.iter().map(|field| (field.to_string(), Bson::Int32(1))).collect()
}

impl DocumentRouter {
    /// A router for `map`, whose moves are kept nowhere: the program has to keep [`DocumentRouter::map`].
    pub fn new(map: Map, access: MongoAccess) -> DocumentRouter {
        let count = map.endpoint.len();
        DocumentRouter {
            access,
            home: None,
            state: RwLock::new(State { map, next: None }),
            touched: Mutex::default(),
            pools: (0..count).map(|_| Mutex::default()).collect(),
            requests: (0..count).map(|_| AtomicU64::new(0)).collect(),
            moves: Mutex::new(()),
        }
    }

    /// A router for the map in the file at `path`, which a move writes again. While it lives, no other
    /// process of this machine can move documents of this map.
    pub fn open(path: &Path, access: MongoAccess) -> Result<DocumentRouter, MongoError> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".lock");
        let wrong = |reason: String| MongoError::Value {
            key: "map".to_string(),
            value: path.display().to_string(),
            reason,
        };
        Map::load(path)?;
        let lock =
            File::options().create(true).append(true).open(beside).map_err(|e| wrong(e.to_string()))?;
        lock.try_lock_shared()
            .map_err(|_| wrong("its documents are being moved; try again when that is done".to_string()))?;
        // It may have changed before the lock was there.
        let mut router = DocumentRouter::new(Map::load(path)?, access);
        router.home = Some(Home { path: path.into(), lock });
        Ok(router)
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map in force.
    pub fn map(&self) -> Map {
        self.state().map.clone()
    }

    /// Requests that went to each endpoint so far.
    pub fn requests(&self) -> Vec<u64> {
        self.requests.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    fn take(&self, map: &Map, endpoint: usize) -> Result<MongoClient, MongoError> {
        let pooled = lock(&self.pools[endpoint]).pop();
        match pooled {
            Some(client) => Ok(client),
            None => MongoClient::connect(&map.endpoint[endpoint].address, &self.access),
        }
    }

    fn give_back(&self, endpoint: usize, client: MongoClient, error: Option<&MongoError>) {
        if error.is_some_and(is_lost) {
            // What broke one connection has most likely broken the idle ones too.
            lock(&self.pools[endpoint]).clear();
        } else if client.is_idle() {
            lock(&self.pools[endpoint]).push(client);
        }
    }

    /// Does `work` on a connection to an endpoint.
    fn with<T>(
        &self,
        map: &Map,
        endpoint: usize,
        work: impl FnOnce(&mut MongoClient) -> Result<T, MongoError>,
    ) -> Result<T, MongoError> {
        let mut client = self.take(map, endpoint)?;
        self.requests[endpoint].fetch_add(1, Ordering::Relaxed);
        let result = work(&mut client);
        self.give_back(endpoint, client, result.as_ref().err());
        result
    }

    /// A command about `key` to its endpoint, noted where the key is on its way.
    fn write(&self, key: &ShardKey, command: impl FnOnce(&Map) -> Document) -> Result<Document, MongoError> {
        let state = self.state();
        let owner = state.map.owner(key);
        let command = command(&state.map);
        let result = self.with(&state.map, owner, |client| client.ask(state.map.database(), command));
        // After the write, whatever became of it: noted before, the old document could be copied.
        if state.next.as_ref().is_some_and(|next| next.owner(key) != owner) {
            lock(&self.touched).insert(key.clone());
        }
        result
    }

    /// The document of `key`; with `fields`, only these and its `_id`.
    pub fn find(&self, key: &ShardKey, fields: &[&str]) -> Result<Option<Document>, MongoError> {
        let state = self.state();
        let map = &state.map;
        let command = doc! { "find": map.table(), "filter": { "_id": key.bson() }, "limit": 1,
        "singleBatch": true, "projection": projection(fields) };
        self.with(map, map.owner(key), |client| {
            let answer = client.ask(map.database(), command)?;
            Ok(documents(client, answer)?.1.pop())
        })
    }

    /// Adds a document. A key that is there already is [`MongoError::Refused`] with the code 11000.
    pub fn insert(&self, document: Document) -> Result<(), MongoError> {
        let key = ShardKey::of(document.get("_id"))?;
        self.write(&key, |map| doc! { "insert": map.table(), "documents": [document] }).map(|_| ())
    }

    /// Adds documents, each at its endpoint, in no certain order. After an error some may be there.
    pub fn insert_many(&self, documents: Vec<Document>) -> Result<(), MongoError> {
        let state = self.state();
        let map = &state.map;
        let mut by_owner: BTreeMap<usize, Vec<Document>> = BTreeMap::new();
        let mut keys = Vec::new();
        for document in documents {
            let key = ShardKey::of(document.get("_id"))?;
            by_owner.entry(map.owner(&key)).or_default().push(document);
            keys.push(key);
        }
        let mut result = Ok(());
        for (owner, mut documents) in by_owner {
            while !documents.is_empty() && result.is_ok() {
                let rest = documents.split_off(documents.len().min(BATCH));
                let batch = std::mem::replace(&mut documents, rest);
                let command = doc! { "insert": map.table(), "documents": batch };
                result = self.with(map, owner, |client| client.ask(map.database(), command)).map(|_| ());
            }
        }
        if let Some(next) = &state.next {
            let moving = keys.into_iter().filter(|key| next.owner(key) != map.owner(key));
            lock(&self.touched).extend(moving);
        }
        result
    }

    /// Applies `change`, such as `{"$set": {...}}`, to the document of `key`; whether there was one.
    pub fn update(&self, key: &ShardKey, change: Document) -> Result<bool, MongoError> {
        let answer = self.write(key, |map| {
            doc! { "update": map.table(), "updates": [{ "q": { "_id": key.bson() }, "u": change }] }
        })?;
        Ok(integer(answer.get("n")) == Some(1))
    }

    /// Deletes the document of `key`; whether there was one.
    pub fn delete(&self, key: &ShardKey) -> Result<bool, MongoError> {
        let answer = self.write(key, |map| {
            doc! { "delete": map.table(), "deletes": [{ "q": { "_id": key.bson() }, "limit": 1 }] }
        })?;
        Ok(integer(answer.get("n")) == Some(1))
    }

    /// The first `count` documents from `from` on, itself included, in the order of keys of its type.
    pub fn scan(&self, from: &ShardKey, count: usize, fields: &[&str]) -> Result<Vec<Document>, MongoError> {
        let state = self.state();
        match state.map.method {
            Method::Hashed => self.scan_all(&state.map, from, count, fields),
            Method::Range => self.scan_chunks(&state.map, from, count, fields),
        }
    }

    /// Keys are anywhere: every endpoint gives its next ones, and the lowest of all are taken.
    fn scan_all(
        &self,
        map: &Map,
        from: &ShardKey,
        count: usize,
        fields: &[&str],
    ) -> Result<Vec<Document>, MongoError> {
        let slots = map.slots();
        let mut sources: Vec<Source> = Vec::new();
        for (endpoint, slots) in slots.iter().enumerate().filter(|(_, slots)| **slots > 0) {
            let share = count as f64 * f64::from(*slots) / f64::from(crate::key::SLOTS);
            // What an endpoint has to give is binomial; three deviations more seldom leave it short.
            let page = ((share + 3.0 * share.sqrt()).ceil() as usize + 1).min(count);
            let mut client = self.take(map, endpoint)?;
            self.requests[endpoint].fetch_add(1, Ordering::Relaxed);
            client.send(map.database(), page_of(map, &doc! { "$gte": from.bson() }, page, fields))?;
            sources.push(Source {
                endpoint,
                client,
                page,
                ready: VecDeque::new(),
                last: from.clone(),
                ended: false,
            });
        }
        // All were asked before the first is waited for.
        for source in &mut sources {
            source.receive(map)?;
        }
        let mut found = Vec::with_capacity(count);
        while found.len() < count {
            for source in &mut sources {
                while source.ready.is_empty() && !source.ended {
                    source.page = source.page.min(count - found.len()).max(1);
                    self.requests[source.endpoint].fetch_add(1, Ordering::Relaxed);
                    let after = doc! { "$gt": source.last.bson() };
                    source.client.send(map.database(), page_of(map, &after, source.page, fields))?;
                    source.receive(map)?;
                }
            }
            let next = sources
                .iter_mut()
                .filter(|source| !source.ready.is_empty())
                .min_by(|a, b| a.ready[0].0.cmp(&b.ready[0].0))
                .and_then(|source| source.ready.pop_front());
            match next {
                Some((_, document)) => found.push(document),
                None => break,
            }
        }
        for source in sources {
            self.give_back(source.endpoint, source.client, None);
        }
        Ok(found)
    }

    /// Keys are in order: chunk after chunk gives what it has.
    fn scan_chunks(
        &self,
        map: &Map,
        from: &ShardKey,
        count: usize,
        fields: &[&str],
    ) -> Result<Vec<Document>, MongoError> {
        let mut found = Vec::with_capacity(count);
        let first = map.chunk_of(from);
        for index in first..map.chunk.len() {
            let end = map.chunk.get(index + 1).and_then(|next| next.from.as_ref());
            let start = if index == first { Some(from) } else { map.chunk[index].from.as_ref() };
            let Some(start) = start.filter(|start| start.is_comparable(from)) else { break };
            let mut bounds = doc! { "$gte": start.bson() };
            if let Some(end) = end.filter(|end| end.is_comparable(from)) {
                bounds.insert("$lt", end.bson());
            }
            loop {
                let page = count - found.len();
                if page == 0 {
                    return Ok(found);
                }
                let command = page_of(map, &bounds, page, fields);
                let (id, documents) = self.with(map, map.owners()[index], |client| {
                    let answer = client.ask(map.database(), command)?;
                    let (id, documents) = documents(client, answer)?;
                    end_cursor(client, map, id)?;
                    Ok((id, documents))
                })?;
                let (length, last) =
                    (documents.len(), documents.last().and_then(|last| last.get("_id")).cloned());
                found.extend(documents);
                match last {
                    // Servers cut answers at 16 MB: more may be there.
                    Some(last) if id != 0 && length < page => {
                        bounds.remove("$gte");
                        bounds.insert("$gt", last);
                    }
                    _ => break,
                }
            }
        }
        Ok(found)
    }

    /// Goes through the keys that an endpoint holds, a batch at a time.
    fn each_keys(
        &self,
        map: &Map,
        endpoint: usize,
        mut take: impl FnMut(Vec<ShardKey>) -> Result<(), MongoError>,
    ) -> Result<(), MongoError> {
        let find = doc! { "find": map.table(), "filter": {}, "projection": { "_id": 1 }, "batchSize": 1000 };
        self.with(map, endpoint, |client| {
            client.each_batch(map.database(), find, |documents| {
                take(
                    documents
                        .iter()
                        .map(|document| ShardKey::of(document.get("_id")))
                        .collect::<Result<_, _>>()?,
                )
            })
        })
    }

    /// What each endpoint holds; it reads every key.
    pub fn held(&self) -> Result<Vec<EndpointHoldings>, MongoError> {
        let map = self.map();
        let mut all = Vec::new();
        for endpoint in 0..map.endpoint.len() {
            let mut held = EndpointHoldings::default();
            self.each_keys(&map, endpoint, |keys| {
                for key in keys {
                    *(if map.owner(&key) == endpoint { &mut held.documents } else { &mut held.strays }) += 1;
                }
                Ok(())
            })?;
            all.push(held);
        }
        Ok(all)
    }

    /// Deletes what belongs elsewhere, and counts what stays: strays, and documents for each chunk.
    fn sweep(&self, map: &Map) -> Result<(u64, Vec<u64>), MongoError> {
        let (mut strays, mut counts) = (0, vec![0; map.chunk.len()]);
        for endpoint in 0..map.endpoint.len() {
            self.each_keys(map, endpoint, |keys| {
                let (own, others): (Vec<ShardKey>, Vec<ShardKey>) =
                    keys.into_iter().partition(|key| map.owner(key) == endpoint);
                own.iter().for_each(|key| counts[map.chunk_of(key)] += 1);
                strays += others.len() as u64;
                self.remove(map, endpoint, &others)
            })?;
        }
        Ok((strays, counts))
    }

    fn remove(&self, map: &Map, endpoint: usize, keys: &[ShardKey]) -> Result<(), MongoError> {
        for some in keys.chunks(BATCH) {
            let command = doc! { "delete": map.table(), "deletes": [{ "q": ids(some), "limit": 0 }] };
            self.with(map, endpoint, |client| client.ask(map.database(), command))?;
        }
        Ok(())
    }

    /// Gives endpoints other weights: copies the documents of keys that change their endpoint, switches,
    /// and deletes them where they were. Operations of this router go on meanwhile.
    ///
    /// After an error before the switch the map is as it was. Copies that were made by then are nobody's:
    /// they are not read, and the next move deletes them.
    pub fn rebalance(
        &self,
        weights: &[f64],
        report: &mut dyn FnMut(u64),
    ) -> Result<MovedDocuments, MongoError> {
        let _one_at_a_time = lock(&self.moves);
        if let Some(home) = &self.home {
            self.write_state(|state| home.claim(&mut state.map))?;
        }
        let result = self.carry_out(&self.map(), weights, report);
        if let Some(home) = &self.home {
            home.share();
        }
        result
    }

    fn carry_out(
        &self,
        map: &Map,
        weights: &[f64],
        report: &mut dyn FnMut(u64),
    ) -> Result<MovedDocuments, MongoError> {
        let mut moved = MovedDocuments::default();
        // A copy that an earlier run left would come back to life where its original was deleted since.
        let (strays, counts) = self.sweep(map)?;
        moved.strays = strays;
        let next = match map.method {
            Method::Hashed => map.rehashed(weights)?,
            Method::Range => map.resplit(weights, &self.splits(map, &counts, weights)?)?,
        };
        self.write_state(|state| state.next = Some(next.clone()));
        let copied =
            self.copy(map, &next, &mut moved, report).and_then(|()| self.switch(map, next, &mut moved));
        self.write_state(|state| state.next = None);
        lock(&self.touched).clear();
        copied?;
        self.sweep(&self.map())?;
        Ok(moved)
    }

    fn write_state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// The keys at which ranges of the wanted shares of all documents begin.
    fn splits(&self, map: &Map, counts: &[u64], weights: &[f64]) -> Result<Vec<ShardKey>, MongoError> {
        let total: u64 = counts.iter().sum();
        let parts = parts(weights, total)?;
        let wrong = |reason: &str| MongoError::Value {
            key: "collection".to_string(),
            value: map.collection.clone(),
            reason: reason.to_string(),
        };
        if total == 0 {
            return Err(wrong("it holds no documents that ranges could be taken from; plan it again"));
        }
        let mut rank = 0;
        let mut splits = Vec::new();
        for part in &parts[..parts.len() - 1] {
            rank += part;
            let (mut index, mut skip) = (0, rank);
            while index < counts.len() && skip >= counts[index] {
                skip -= counts[index];
                index += 1;
            }
            // The rank behind the last document: the endpoints from here on have no weight.
            if index == counts.len() {
                break;
            }
            let filter = match &map.chunk[index].from {
                Some(from) => doc! { "_id": { "$gte": from.bson() } },
                None => doc! {},
            };
            let find = doc! { "find": map.table(), "filter": filter, "projection": { "_id": 1 },
            "sort": { "_id": 1 }, "skip": skip as i64, "limit": 1, "singleBatch": true };
            let found = self.with(map, map.owners()[index], |client| {
                let answer = client.ask(map.database(), find)?;
                Ok(documents(client, answer)?.1.pop())
            })?;
            let found =
                found.ok_or_else(|| wrong("its keys are of several types or went away; try again"))?;
            splits.push(ShardKey::of(found.get("_id"))?);
        }
        // Writers may have moved ranks between the questions.
        splits.sort();
        Ok(splits)
    }

    /// Copies all documents that change their endpoint, then those that were touched, round by round.
    fn copy(
        &self,
        map: &Map,
        next: &Map,
        moved: &mut MovedDocuments,
        report: &mut dyn FnMut(u64),
    ) -> Result<(), MongoError> {
        for giver in 0..map.endpoint.len() {
            let mut leaving: BTreeMap<usize, Vec<ShardKey>> = BTreeMap::new();
            self.each_keys(map, giver, |keys| {
                for key in keys {
                    let taker = next.owner(&key);
                    if map.owner(&key) == giver && taker != giver {
                        leaving.entry(taker).or_default().push(key);
                    }
                }
                for (taker, keys) in &mut leaving {
                    while keys.len() >= BATCH {
                        let some = keys.split_off(keys.len() - BATCH);
                        moved.documents += self.carry(map, giver, *taker, &some)?;
                    }
                }
                report(moved.documents);
                Ok(())
            })?;
            for (taker, keys) in &leaving {
                moved.documents += self.carry(map, giver, *taker, keys)?;
            }
            report(moved.documents);
        }
        for _ in 0..ROUNDS {
            if lock(&self.touched).len() <= LAST {
                break;
            }
            moved.again += self.carry_touched(map, next)?;
        }
        Ok(())
    }

    fn carry_touched(&self, map: &Map, next: &Map) -> Result<u64, MongoError> {
        let keys = std::mem::take(&mut *lock(&self.touched));
        let count = keys.len() as u64;
        let mut by_ends: BTreeMap<(usize, usize), Vec<ShardKey>> = BTreeMap::new();
        for key in keys {
            by_ends.entry((map.owner(&key), next.owner(&key))).or_default().push(key);
        }
        for ((giver, taker), keys) in by_ends {
            self.carry(map, giver, taker, &keys)?;
        }
        Ok(count)
    }

    /// Makes the documents of `keys` at the taker what they are at the giver; how many there are.
    fn carry(&self, map: &Map, giver: usize, taker: usize, keys: &[ShardKey]) -> Result<u64, MongoError> {
        let mut count = 0;
        for some in keys.chunks(BATCH) {
            let find = doc! { "find": map.table(), "filter": ids(some), "batchSize": BATCH as i32 };
            let mut gone: BTreeSet<&ShardKey> = some.iter().collect();
            self.with(map, giver, |client| {
                client.each_batch(map.database(), find, |documents| {
                    let mut updates = Vec::new();
                    for document in documents {
                        let id = document.get("_id").cloned();
                        gone.remove(&ShardKey::of(id.as_ref())?);
                        updates.push(doc! { "q": { "_id": id }, "u": document, "upsert": true });
                    }
                    let (length, address) = (updates.len(), &map.endpoint[taker].address);
                    // The giver's documents are deleted later, so these have to be on disk by then.
                    let command = doc! { "update": map.table(), "updates": updates, "ordered": false,
                    "writeConcern": { "w": 1, "j": true } };
                    let answer = self.with(map, taker, |client| client.ask(map.database(), command))?;
                    if integer(answer.get("n")) != Some(length as i64) {
                        let reason = format!("it took {:?} of {length} documents", answer.get("n"));
                        return Err(MongoError::Unexpected { address: address.clone(), reason });
                    }
                    count += length as u64;
                    Ok(())
                })
            })?;
            let gone: Vec<ShardKey> = gone.into_iter().cloned().collect();
            self.remove(map, taker, &gone)?;
        }
        Ok(count)
    }

    /// Keeps everybody out, copies what was touched last, and puts the map in force.
    fn switch(&self, map: &Map, next: Map, moved: &mut MovedDocuments) -> Result<(), MongoError> {
        self.write_state(|state| {
            let began = Instant::now();
            moved.again += self.carry_touched(map, &next)?;
            if let Some(home) = &self.home {
                next.save(&home.path)?;
            }
            state.map = next;
            moved.pause = began.elapsed();
            Ok(())
        })
    }
}

impl Home {
    fn wrong(&self, reason: &str) -> MongoError {
        MongoError::Value {
            key: "map".to_string(),
            value: self.path.display().to_string(),
            reason: reason.to_string(),
        }
    }

    /// Takes the lock alone. The lock is let go for a moment, so nothing may use the map meanwhile.
    fn claim(&self, map: &mut Map) -> Result<(), MongoError> {
        let _ = self.lock.unlock();
        let alone = self.lock.try_lock().is_ok();
        if !alone {
            // Another process may move documents by this map: it is waited for, and read again.
            self.share();
        }
        let found = Map::load(&self.path);
        let result = match found {
            Ok(found) if found == *map && alone => return Ok(()),
            Ok(found) if found.addresses().eq(map.addresses()) => {
                let same = found == *map;
                *map = found;
                Err(self.wrong(if same {
                    "another process uses it; stop it before documents move"
                } else {
                    "it has changed meanwhile and was read again; try again"
                }))
            }
            Ok(_) => Err(self.wrong("it has other endpoints than before; start again")),
            Err(error) => Err(error),
        };
        if alone {
            self.share();
        }
        result
    }

    fn share(&self) {
        let _ = self.lock.unlock();
        let _ = self.lock.lock_shared();
    }
}

/// One endpoint's part of a merged scan.
struct Source {
    endpoint: usize,
    client: MongoClient,
    page: usize,
    ready: VecDeque<(ShardKey, Document)>,
    last: ShardKey,
    ended: bool,
}

impl Source {
    fn receive(&mut self, map: &Map) -> Result<(), MongoError> {
        let answer = self.client.receive()?;
        let (id, documents) = documents(&self.client, answer)?;
        end_cursor(&mut self.client, map, id)?;
        self.ended = id == 0 && documents.len() < self.page;
        for document in documents {
            let key = ShardKey::of(document.get("_id"))?;
            self.last = key.clone();
            // Copies that a move has not yet made good, or not yet deleted, are nobody's.
            if map.owner(&key) == self.endpoint {
                self.ready.push_back((key, document));
            }
        }
        Ok(())
    }
}

fn page_of(map: &Map, bounds: &Document, page: usize, fields: &[&str]) -> Document {
    let page = i32::try_from(page).unwrap_or(i32::MAX);
    doc! { "find": map.table(), "filter": { "_id": bounds.clone() }, "sort": { "_id": 1 }, "limit": page,
    "batchSize": page, "projection": projection(fields) }
}

fn documents(client: &MongoClient, answer: Document) -> Result<(i64, Vec<Document>), MongoError> {
    batch(answer).ok_or_else(|| MongoError::Unexpected {
        address: client.address().to_string(),
        reason: "its answer to `find` has no cursor".to_string(),
    })
}

fn end_cursor(client: &mut MongoClient, map: &Map, id: i64) -> Result<(), MongoError> {
    if id != 0 {
        client.ask(map.database(), doc! { "killCursors": map.table(), "cursors": [id] })?;
    }
    Ok(())
}
