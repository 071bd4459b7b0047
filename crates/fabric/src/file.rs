//! Files of a role's instance.

use crate::error::FileError;

/// What opening does about a file's existence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMode {
    /// It must exist.
    Open,
    /// It must not exist, and is created empty.
    Create,
    /// It is created empty where it does not exist.
    OpenOrCreate,
}

/// An open file. Bytes written are seen by every later read at once; they survive a crash after
/// [`File::sync`], and without it any part of them may.
pub trait File: 'static {
    /// Writes all of `bytes` at `offset`, growing the file with zeroes where `offset` is past its end.
    async fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError>;

    /// Reads from `offset` into `into`; gives how many bytes there were, fewer only at the end.
    async fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, FileError>;

    /// Writes all of `bytes` at the end; gives where they begin.
    async fn append(&self, bytes: &[u8]) -> Result<u64, FileError>;

    /// Makes the file's bytes and length survive a crash.
    async fn sync(&self) -> Result<(), FileError>;

    /// Cuts the file, or grows it with zeroes, to `length` bytes.
    async fn truncate(&self, length: u64) -> Result<(), FileError>;

    /// How many bytes it has.
    async fn length(&self) -> Result<u64, FileError>;

    /// Takes the file's only lock until this handle is dropped or its role ends; refused with
    /// [`FileError::Locked`] where another handle has it.
    async fn lock(&self) -> Result<(), FileError>;
}

/// What the files of a role's instance are in: what [`crate::Fabric`] says of files, each backend says here.
pub trait Files {
    /// An open file.
    type File: File;

    /// See [`crate::Fabric::file`].
    async fn open(&self, name: &str, mode: FileMode) -> Result<Self::File, FileError>;

    /// See [`crate::Fabric::rename`].
    async fn rename(&self, from: &str, to: &str) -> Result<(), FileError>;

    /// See [`crate::Fabric::remove`].
    async fn remove(&self, name: &str) -> Result<(), FileError>;

    /// See [`crate::Fabric::list`].
    async fn list(&self, prefix: &str) -> Result<Vec<String>, FileError>;

    /// See [`crate::Fabric::sync_directory`].
    async fn sync(&self) -> Result<(), FileError>;
}
