//! What waits on disk: the file of a full synchronisation, and the part of the stream that replicas
//! which are still loading have not taken while memory moved on.
//!
//! Files are unlinked as soon as they are open, so that no crash leaves one behind. Reads and writes
//! run on other threads; a slow disk delays those who wait for it and nobody else.

use crate::backlog::StreamBlock;
use crate::history::ReplicationId;
use crate::payload::{Form, RdbFormat};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

/// Opens a file without a name in `directory`.
pub fn nameless(directory: &Path) -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name =
        format!("offpath-relay-{}-{}.spool", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = directory.join(name);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

async fn on_disk<T: Send + 'static>(job: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(job).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// How far a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Bytes are still coming.
    Receiving,
    /// All of it is there.
    Complete,
    /// It will never be complete.
    Failed,
}

/// The file of a full synchronisation.
#[derive(Debug)]
pub struct Spool {
    /// The history that it belongs to.
    pub id: ReplicationId,
    /// The offset that it stands for; the stream continues with the next byte.
    pub offset: u64,
    form: Cell<Option<Form>>,
    format: RefCell<Option<RdbFormat>>,
    file: Arc<File>,
    written: Cell<u64>,
    stage: watch::Sender<(Stage, u64)>,
}

impl Spool {
    /// An empty file in `directory`.
    pub fn create(directory: &Path, id: ReplicationId, offset: u64) -> io::Result<Spool> {
        let file = Arc::new(nameless(directory)?);
        let (stage, _) = watch::channel((Stage::Receiving, 0));
        let form = Cell::new(None);
        Ok(Spool { id, offset, form, format: RefCell::new(None), file, written: Cell::new(0), stage })
    }

    /// Appends `piece`; one call at a time.
    pub async fn append(&self, piece: Vec<u8>) -> io::Result<()> {
        let (file, at, length) = (self.file.clone(), self.written.get(), piece.len() as u64);
        on_disk(move || file.write_all_at(&piece, at)).await?;
        self.written.set(at + length);
        self.stage.send_modify(|(_, written)| *written = at + length);
        Ok(())
    }

    /// Notes how the master tells its end, once it has announced it.
    pub fn set_form(&self, form: Form) {
        self.form.set(Some(form));
        self.stage.send_modify(|_| {});
    }

    /// How the master tells its end, once it has announced it.
    pub fn form(&self) -> Option<Form> {
        self.form.get()
    }

    /// Notes which server wrote the file.
    pub fn set_format(&self, format: RdbFormat) {
        *self.format.borrow_mut() = Some(format);
    }

    /// Which server wrote the file, once its first bytes are there.
    pub fn format(&self) -> Option<RdbFormat> {
        self.format.borrow().clone()
    }

    /// Ends the file, whole or not.
    pub fn end(&self, stage: Stage) {
        self.stage.send_modify(|(current, _)| *current = stage);
    }

    /// How far it is, and its bytes so far.
    pub fn stage(&self) -> (Stage, u64) {
        *self.stage.borrow()
    }

    /// Tells of every change of [`Spool::stage`].
    pub fn watch(&self) -> watch::Receiver<(Stage, u64)> {
        self.stage.subscribe()
    }

    /// Reads `length` bytes at `at`, which are there.
    pub async fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        read_at(self.file.clone(), at, length).await
    }
}

async fn read_at(file: Arc<File>, at: u64, length: usize) -> io::Result<Vec<u8>> {
    on_disk(move || {
        let mut piece = vec![0; length];
        file.read_exact_at(&mut piece, at)?;
        Ok(piece)
    })
    .await
}

/// Blocks that may wait in memory for the disk, in bytes.
const PENDING: u64 = 32 << 20;

/// The part of the stream between replicas that are loading and the window in memory.
#[derive(Debug)]
pub struct Spill {
    file: Arc<File>,
    start: u64,
    written: Cell<u64>,
    end: Cell<u64>,
    pending: RefCell<VecDeque<Arc<StreamBlock>>>,
    writing: Cell<bool>,
    failed: Cell<bool>,
    limit: u64,
}

impl Spill {
    /// An empty part before byte `start`, of `limit` bytes at most.
    pub fn create(directory: &Path, start: u64, limit: u64) -> io::Result<Rc<Spill>> {
        Ok(Rc::new(Spill {
            file: Arc::new(nameless(directory)?),
            start,
            written: Cell::new(start),
            end: Cell::new(start),
            pending: RefCell::default(),
            writing: Cell::new(false),
            failed: Cell::new(false),
            limit,
        }))
    }

    /// The offset of its first byte.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Bytes that it holds, on disk or on the way there.
    pub fn length(&self) -> u64 {
        self.end.get() - self.start
    }

    /// Takes the block that follows. The answer is whether there was room for it: neither the disk
    /// nor the limit may hold up the stream.
    pub fn push(self: &Rc<Spill>, block: StreamBlock) -> bool {
        let waiting = block.end() - self.written.get();
        if self.failed.get() || waiting > PENDING || block.end() - self.start > self.limit {
            return false;
        }
        self.end.set(block.end());
        self.pending.borrow_mut().push_back(Arc::new(block));
        if !self.writing.replace(true) {
            let spill = self.clone();
            tokio::task::spawn_local(async move { spill.write().await });
        }
        true
    }

    async fn write(&self) {
        loop {
            let Some(block) = self.pending.borrow().front().cloned() else { break };
            let (file, at) = (self.file.clone(), block.start - self.start);
            let end = block.end();
            if let Err(error) = on_disk(move || file.write_all_at(&block.data, at)).await {
                crate::log::line(&format!("the stream cannot be kept on disk: {error}"));
                self.failed.set(true);
                break;
            }
            self.written.set(end);
            self.pending.borrow_mut().pop_front();
        }
        self.writing.set(false);
    }

    /// Up to 256 KiB from offset `from`, which it holds.
    pub async fn read(&self, from: u64) -> io::Result<Vec<u8>> {
        let written = self.written.get();
        if from < written {
            let length = (written - from).min(256 << 10) as usize;
            return read_at(self.file.clone(), from - self.start, length).await;
        }
        let pending = self.pending.borrow();
        let block = pending.iter().find(|block| block.start <= from && from < block.end());
        block
            .map(|block| block.data[(from - block.start) as usize..].to_vec())
            .ok_or_else(|| io::Error::other("this part of the stream was not kept"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;
    use tokio::task::LocalSet;

    fn run(job: impl Future<Output = ()>) {
        LocalSet::new().block_on(&Builder::new_current_thread().build().unwrap(), job);
    }

    #[test]
    fn a_spill_is_read_as_it_was_pushed() {
        run(async {
            let directory = tempfile::tempdir().unwrap();
            let spill = Spill::create(directory.path(), 101, 1 << 20).unwrap();
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
            let mut all = Vec::new();
            for index in 0..20u8 {
                let data = vec![index; 1_000];
                all.extend_from_slice(&data);
                assert!(spill.push(StreamBlock { start: 101 + u64::from(index) * 1_000, data }));
                if index % 3 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            let mut found = Vec::new();
            while (found.len() as u64) < spill.length() {
                found.extend(spill.read(101 + found.len() as u64).await.unwrap());
            }
            assert_eq!(found, all);
            assert!(!spill.push(StreamBlock { start: 20_101, data: vec![0; 1 << 20] }), "the limit holds");
        });
    }
}
