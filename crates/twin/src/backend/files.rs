//! Files in memory, with what a crash leaves of them.
//!
//! No published number tells what a file costs on these cards, so files take no virtual time: that is
//! not modelled. Every call lets other tasks run once.

use super::{Core, TwinFabric};
use crate::seed::Generator;
use offpath_fabric::runtime::yield_now;
use offpath_fabric::{File, FileError, FileMode};
use rand_core::RngCore;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What a disk writes whole.
const SECTOR: u64 = 512;

enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Length(u64),
}

#[derive(Default)]
struct Content {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// Since the last sync, in order.
    changes: Vec<Change>,
    locked: bool,
}

fn put(bytes: &mut Vec<u8>, offset: u64, from: &[u8]) {
    let end = offset as usize + from.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset as usize..end].copy_from_slice(from);
}

impl Content {
    /// The sectors of unsynced writes that chance keeps, on what was synced.
    fn crash(&mut self, draws: &mut Generator) {
        let mut left = std::mem::take(&mut self.synced);
        for change in self.changes.drain(..) {
            match change {
                Change::Length(length) if draws.next_u64() & 1 == 0 => left.resize(length as usize, 0),
                Change::Length(_) => {}
                Change::Write { offset, bytes } => {
                    let mut done = 0;
                    while done < bytes.len() as u64 {
                        let at = offset + done;
                        let length = (SECTOR - at % SECTOR).min(bytes.len() as u64 - done);
                        if draws.next_u64() & 1 == 0 {
                            put(&mut left, at, &bytes[done as usize..(done + length) as usize]);
                        }
                        done += length;
                    }
                }
            }
        }
        self.synced = left.clone();
        self.bytes = left;
        self.locked = false;
    }
}

type Node = Rc<RefCell<Content>>;

#[derive(Clone)]
enum Entry {
    Put(String, Node),
    Removed(String),
    Renamed(String, String),
}

#[derive(Default)]
struct Store {
    names: BTreeMap<String, Node>,
    synced: BTreeMap<String, Node>,
    /// Since the last sync of the directory, in order.
    entries: Vec<Entry>,
}

fn enter(names: &mut BTreeMap<String, Node>, entry: Entry) {
    match entry {
        Entry::Put(name, node) => drop(names.insert(name, node)),
        Entry::Removed(name) => drop(names.remove(&name)),
        Entry::Renamed(from, to) => {
            if let Some(node) = names.remove(&from) {
                names.insert(to, node);
            }
        }
    }
}

impl Store {
    fn change(&mut self, entry: Entry) {
        enter(&mut self.names, entry.clone());
        self.entries.push(entry);
    }
}

/// The files of every role's instance.
#[derive(Default)]
pub(super) struct Files(BTreeMap<usize, Store>);

impl Files {
    fn of(&mut self, fabric: &TwinFabric) -> &mut Store {
        self.0.entry(fabric.role).or_default()
    }

    /// What a crash of the role leaves: what was synced, and by chance more. Entries of the directory
    /// survive in order, as in a journal.
    pub(super) fn crash(&mut self, role: usize, draws: &mut Generator) {
        let Some(store) = self.0.get_mut(&role) else { return };
        let mut names = std::mem::take(&mut store.synced);
        let kept = draws.next_u64() % (store.entries.len() as u64 + 1);
        for entry in store.entries.drain(..).take(kept as usize) {
            enter(&mut names, entry);
        }
        for node in names.values() {
            node.borrow_mut().crash(draws);
        }
        store.synced = names.clone();
        store.names = names;
    }
}

fn check(name: &str) -> Result<(), FileError> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\\', '\0']) {
        return Err(FileError::BadName { name: name.into() });
    }
    Ok(())
}

fn missing(name: &str) -> FileError {
    FileError::NotFound { name: name.into() }
}

/// The files of a role on the twin.
pub struct TwinFiles(pub(super) TwinFabric);

impl offpath_fabric::Files for TwinFiles {
    type File = TwinFile;

    async fn open(&self, name: &str, mode: FileMode) -> Result<TwinFile, FileError> {
        yield_now().await;
        check(name)?;
        let mut files = self.0.core.files.borrow_mut();
        let store = files.of(&self.0);
        let node = match (store.names.get(name), mode) {
            (Some(_), FileMode::Create) => return Err(FileError::Exists { name: name.into() }),
            (None, FileMode::Open) => return Err(missing(name)),
            (Some(node), _) => node.clone(),
            (None, _) => {
                let node = Node::default();
                store.change(Entry::Put(name.into(), node.clone()));
                node
            }
        };
        Ok(TwinFile {
            core: self.0.core.clone(),
            role: self.0.role,
            name: name.into(),
            node,
            locks: false.into(),
        })
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), FileError> {
        yield_now().await;
        check(from).and(check(to))?;
        let mut files = self.0.core.files.borrow_mut();
        let store = files.of(&self.0);
        if !store.names.contains_key(from) {
            return Err(missing(from));
        }
        store.change(Entry::Renamed(from.into(), to.into()));
        Ok(())
    }

    async fn remove(&self, name: &str) -> Result<(), FileError> {
        yield_now().await;
        check(name)?;
        let mut files = self.0.core.files.borrow_mut();
        let store = files.of(&self.0);
        if !store.names.contains_key(name) {
            return Err(missing(name));
        }
        store.change(Entry::Removed(name.into()));
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, FileError> {
        yield_now().await;
        let mut files = self.0.core.files.borrow_mut();
        Ok(files.of(&self.0).names.keys().filter(|name| name.starts_with(prefix)).cloned().collect())
    }

    async fn sync(&self) -> Result<(), FileError> {
        yield_now().await;
        let mut files = self.0.core.files.borrow_mut();
        let store = files.of(&self.0);
        store.entries.clear();
        store.synced = store.names.clone();
        Ok(())
    }
}

/// An open file on the twin. Files take no virtual time.
pub struct TwinFile {
    core: Rc<Core>,
    role: usize,
    name: String,
    node: Node,
    locks: RefCell<bool>,
}

impl TwinFile {
    /// Refused where the role that opened it ended or crashed since.
    async fn ready(&self) -> Result<(), FileError> {
        yield_now().await;
        if self.core.roles[self.role].ended.get() {
            let reason = "its role ended".to_string();
            return Err(FileError::System { name: self.name.clone(), reason });
        }
        Ok(())
    }

    /// How many of `length` bytes at `offset` there is room for.
    fn room(&self, offset: u64, length: usize) -> usize {
        // The store lives in this process: a file of 1 TiB is a mistake, not a wish.
        let mut most = 1 << 40;
        if let Some(capacity) = self.core.roles[self.role].file_capacity {
            let files = self.core.files.borrow();
            let nodes = files.0.get(&self.role).into_iter().flat_map(|store| store.names.values());
            let others: usize = nodes
                .filter(|node| !Rc::ptr_eq(node, &self.node))
                .map(|node| node.borrow().bytes.len())
                .sum();
            // What a file has it keeps.
            let own = self.node.borrow().bytes.len() as u64;
            most = most.min(capacity.get().saturating_sub(others as u64).max(own));
        }
        most.saturating_sub(offset).min(length as u64) as usize
    }

    /// Writes what there is room for; refused where that is not all.
    fn put(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let fits = &bytes[..self.room(offset, bytes.len())];
        let mut content = self.node.borrow_mut();
        if !fits.is_empty() {
            put(&mut content.bytes, offset, fits);
            content.changes.push(Change::Write { offset, bytes: fits.to_vec() });
        }
        if fits.len() < bytes.len() { Err(self.full()) } else { Ok(()) }
    }

    fn full(&self) -> FileError {
        FileError::Full { name: self.name.clone() }
    }
}

impl Drop for TwinFile {
    fn drop(&mut self) {
        if *self.locks.borrow() {
            self.node.borrow_mut().locked = false;
        }
    }
}

impl File for TwinFile {
    async fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.ready().await?;
        self.put(offset, bytes)
    }

    async fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        self.ready().await?;
        let content = self.node.borrow();
        let rest = usize::try_from(offset).ok().and_then(|offset| content.bytes.get(offset..));
        let rest = rest.unwrap_or_default();
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    async fn append(&self, bytes: &[u8]) -> Result<u64, FileError> {
        self.ready().await?;
        let offset = self.node.borrow().bytes.len() as u64;
        self.put(offset, bytes)?;
        Ok(offset)
    }

    async fn sync(&self) -> Result<(), FileError> {
        self.ready().await?;
        let content = &mut *self.node.borrow_mut();
        // Only what changed is copied, so that a long log costs what each append costs.
        for change in content.changes.drain(..) {
            match change {
                Change::Write { offset, bytes } => put(&mut content.synced, offset, &bytes),
                Change::Length(length) => content.synced.resize(length as usize, 0),
            }
        }
        Ok(())
    }

    async fn truncate(&self, length: u64) -> Result<(), FileError> {
        self.ready().await?;
        let grows = length.saturating_sub(self.node.borrow().bytes.len() as u64);
        if (self.room(length - grows, grows as usize) as u64) < grows {
            return Err(self.full());
        }
        let mut content = self.node.borrow_mut();
        content.bytes.resize(length as usize, 0);
        content.changes.push(Change::Length(length));
        Ok(())
    }

    async fn length(&self) -> Result<u64, FileError> {
        self.ready().await?;
        Ok(self.node.borrow().bytes.len() as u64)
    }

    async fn lock(&self) -> Result<(), FileError> {
        self.ready().await?;
        let mut content = self.node.borrow_mut();
        if content.locked && !*self.locks.borrow() {
            return Err(FileError::Locked { name: self.name.clone() });
        }
        content.locked = true;
        *self.locks.borrow_mut() = true;
        Ok(())
    }
}
