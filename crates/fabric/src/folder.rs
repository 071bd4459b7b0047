//! Files: a real directory for each role's instance, for backends that run on a real machine.

use crate::file::{File, FileMode, Files};
use crate::{FileError, RoleName};
use std::cell::RefCell;
use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

fn error(name: &str, error: &io::Error) -> FileError {
    let name = name.to_string();
    match error.kind() {
        ErrorKind::NotFound => FileError::NotFound { name },
        ErrorKind::AlreadyExists => FileError::Exists { name },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FileError::Full { name },
        _ => FileError::System { name, reason: error.to_string() },
    }
}

/// Where the directories of a run's roles are: a place that stays, or a temporary one that goes with the
/// run, whether it ends well or by a panic.
#[derive(Debug)]
pub struct Base {
    path: PathBuf,
    goes: bool,
}

impl Base {
    /// That place, or a temporary directory.
    pub fn of(place: Option<&Path>) -> Base {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let temporary = || {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            std::env::temp_dir().join(format!("offpath-{}-{count}", std::process::id()))
        };
        Base { path: place.map_or_else(temporary, Path::to_path_buf), goes: place.is_none() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        if self.goes {
            // Nothing is lost where it cannot be removed, and a drop cannot report it.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// The directory of one role's instance. It is made when it is first used.
#[derive(Clone, Debug)]
pub struct Folder {
    role: RoleName,
    path: PathBuf,
}

impl Folder {
    /// The directory of `role` below `base`.
    ///
    /// ```
    /// use offpath_fabric::{FileMode, Folder, RoleName};
    ///
    /// let base = std::env::temp_dir().join(format!("offpath-folder-{}", std::process::id()));
    /// let folder = Folder::of(&base, RoleName::new("backup", 0));
    /// folder.open("segment-0", FileMode::Create)?;
    /// assert_eq!(folder.list("segment-")?, ["segment-0"]);
    /// assert!(folder.open("../elsewhere", FileMode::Open).is_err());
    /// # std::fs::remove_dir_all(&base)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(base: &Path, role: RoleName) -> Folder {
        let path = base.join(format!("{}-{}", role.role, role.instance));
        Folder { role, path }
    }

    /// Whether `name` names something in a directory and nothing else.
    pub fn is_plain(name: &str) -> bool {
        !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0'])
    }

    fn made(&self) -> Result<&Path, FileError> {
        fs::create_dir_all(&self.path).map_err(|e| error(&self.role.to_string(), &e))?;
        Ok(&self.path)
    }

    fn path(&self, name: &str) -> Result<PathBuf, FileError> {
        if !Folder::is_plain(name) {
            return Err(FileError::BadName { name: name.into() });
        }
        Ok(self.made()?.join(name))
    }

    /// Opens a file.
    pub fn open(&self, name: &str, mode: FileMode) -> Result<FolderFile, FileError> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true);
        match mode {
            FileMode::Open => &mut options,
            FileMode::Create => options.create_new(true),
            FileMode::OpenOrCreate => options.create(true).truncate(false),
        };
        let file = options.open(self.path(name)?).map_err(|e| error(name, &e))?;
        Ok(FolderFile { name: name.into(), file: RefCell::new(file) })
    }

    /// Gives a file another name, in place of the file that has it.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), FileError> {
        fs::rename(self.path(from)?, self.path(to)?).map_err(|e| error(from, &e))
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> Result<(), FileError> {
        fs::remove_file(self.path(name)?).map_err(|e| error(name, &e))
    }

    /// The names that begin with `prefix`, in order.
    pub fn list(&self, prefix: &str) -> Result<Vec<String>, FileError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.made()?).map_err(|e| error(prefix, &e))? {
            let entry = entry.map_err(|e| error(prefix, &e))?;
            // A name that is not UTF-8 was not made through this contract.
            names.extend(entry.file_name().into_string().ok().filter(|name| name.starts_with(prefix)));
        }
        names.sort();
        Ok(names)
    }

    /// Makes the names survive a crash of the machine.
    pub fn sync(&self) -> Result<(), FileError> {
        fs::File::open(self.made()?)
            .and_then(|file| file.sync_all())
            .map_err(|e| error(&self.role.to_string(), &e))
    }
}

impl Files for Folder {
    type File = FolderFile;

    async fn open(&self, name: &str, mode: FileMode) -> Result<FolderFile, FileError> {
        Folder::open(self, name, mode)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), FileError> {
        Folder::rename(self, from, to)
    }

    async fn remove(&self, name: &str) -> Result<(), FileError> {
        Folder::remove(self, name)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<String>, FileError> {
        Folder::list(self, prefix)
    }

    async fn sync(&self) -> Result<(), FileError> {
        Folder::sync(self)
    }
}

/// An open file of a [`Folder`].
#[derive(Debug)]
pub struct FolderFile {
    name: String,
    file: RefCell<fs::File>,
}

impl FolderFile {
    fn with<T>(&self, work: impl FnOnce(&mut fs::File) -> io::Result<T>) -> Result<T, FileError> {
        work(&mut self.file.borrow_mut()).map_err(|e| error(&self.name, &e))
    }
}

impl File for FolderFile {
    async fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.with(|file| {
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(bytes)
        })
    }

    async fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        self.with(|file| {
            file.seek(SeekFrom::Start(offset))?;
            let bound = into.len() as u64;
            let mut rest = into;
            Ok(io::copy(&mut file.take(bound), &mut rest)? as usize)
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
