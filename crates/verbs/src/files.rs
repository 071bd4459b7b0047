//! Files: a real directory for each role's instance.

use crate::VerbsFabric;
use offpath_fabric::{Fabric, File, FileError, FileMode};
use std::cell::RefCell;
use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

/// Whether `name` names something in a directory and nothing else.
pub(crate) fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0'])
}

fn error(name: &str, error: &io::Error) -> FileError {
    let name = name.to_string();
    match error.kind() {
        ErrorKind::NotFound => FileError::NotFound { name },
        ErrorKind::AlreadyExists => FileError::Exists { name },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FileError::Full { name },
        _ => FileError::System { name, reason: error.to_string() },
    }
}

/// The role's directory, made where there is none yet.
fn directory(fabric: &VerbsFabric) -> Result<PathBuf, FileError> {
    let role = fabric.role();
    let path = fabric.core.directory.join(format!("{}-{}", role.role, role.instance));
    fs::create_dir_all(&path).map_err(|e| error(&role.to_string(), &e))?;
    Ok(path)
}

fn path(fabric: &VerbsFabric, name: &str) -> Result<PathBuf, FileError> {
    if !is_plain(name) {
        return Err(FileError::BadName { name: name.into() });
    }
    Ok(directory(fabric)?.join(name))
}

pub(crate) fn open(fabric: &VerbsFabric, name: &str, mode: FileMode) -> Result<VerbsFile, FileError> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true);
    match mode {
        FileMode::Open => &mut options,
        FileMode::Create => options.create_new(true),
        FileMode::OpenOrCreate => options.create(true).truncate(false),
    };
    let file = options.open(path(fabric, name)?).map_err(|e| error(name, &e))?;
    Ok(VerbsFile { name: name.into(), file: RefCell::new(file) })
}

pub(crate) fn rename(fabric: &VerbsFabric, from: &str, to: &str) -> Result<(), FileError> {
    fs::rename(path(fabric, from)?, path(fabric, to)?).map_err(|e| error(from, &e))
}

pub(crate) fn remove(fabric: &VerbsFabric, name: &str) -> Result<(), FileError> {
    fs::remove_file(path(fabric, name)?).map_err(|e| error(name, &e))
}

pub(crate) fn list(fabric: &VerbsFabric, prefix: &str) -> Result<Vec<String>, FileError> {
    let directory = directory(fabric)?;
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(|e| error(prefix, &e))? {
        let entry = entry.map_err(|e| error(prefix, &e))?;
        // A name that is not UTF-8 was not made through this contract.
        names.extend(entry.file_name().into_string().ok().filter(|name| name.starts_with(prefix)));
    }
    names.sort();
    Ok(names)
}

pub(crate) fn sync_directory(fabric: &VerbsFabric) -> Result<(), FileError> {
    let directory = directory(fabric)?;
    fs::File::open(directory)
        .and_then(|file| file.sync_all())
        .map_err(|e| error(&fabric.role().to_string(), &e))
}

/// An open file of the verbs world.
#[derive(Debug)]
pub struct VerbsFile {
    name: String,
    file: RefCell<fs::File>,
}

impl VerbsFile {
    fn with<T>(&self, work: impl FnOnce(&mut fs::File) -> io::Result<T>) -> Result<T, FileError> {
        work(&mut self.file.borrow_mut()).map_err(|e| error(&self.name, &e))
    }
}

impl File for VerbsFile {
    async fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.with(|file| {
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(bytes)
        })
    }

    async fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        self.with(|file| {
            file.seek(SeekFrom::Start(offset))?;
            let mut count = 0;
            while count < into.len() {
                match file.read(&mut into[count..]) {
                    Ok(0) => break,
                    Ok(more) => count += more,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(e),
                }
            }
            Ok(count)
        })
    }

    async fn append(&self, bytes: &[u8]) -> Result<u64, FileError> {
        self.with(|file| {
            let end = file.seek(SeekFrom::End(0))?;
            file.write_all(bytes)?;
            Ok(end)
        })
    }

    async fn sync(&self) -> Result<(), FileError> {
        self.with(|file| file.sync_data())
    }

    async fn truncate(&self, length: u64) -> Result<(), FileError> {
        self.with(|file| file.set_len(length))
    }

    async fn length(&self) -> Result<u64, FileError> {
        self.with(|file| file.metadata().map(|metadata| metadata.len()))
    }

    async fn lock(&self) -> Result<(), FileError> {
        let name = || self.name.clone();
        self.file.borrow_mut().try_lock().map_err(|e| match e {
            fs::TryLockError::WouldBlock => FileError::Locked { name: name() },
            fs::TryLockError::Error(e) => error(&self.name, &e),
        })
    }
}
