//! Files in which a machine says what it is: single ones, or an archive of them.

use offpath_learn::describe::DescribeError;
use offpath_logs::machine::MachineFacts;
use offpath_profile::open_file;
use offpath_terminal::failure::Failure;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

/// Bytes of all files of a collection: more is not what these tools print.
const LARGEST: u64 = 64 << 20;

/// What a file begins with that is compressed by gzip.
pub(crate) const GZIP: &[u8] = &[0x1f, 0x8b];

/// A file of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionFile {
    /// Its name, with that of its archive before it.
    pub name: String,
    /// What stands in it.
    pub text: String,
    /// Whether a collection of several has it, and nobody named it by itself.
    pub is_of_many: bool,
}

/// Reads files and archives; bytes that are no text are replaced, as no tool means them.
///
/// # Errors
/// Where one cannot be read, is no archive although it looks like one, or is too large.
pub fn read_collection(paths: &[PathBuf]) -> Result<Vec<CollectionFile>, Failure> {
    let mut files = Vec::new();
    let mut archives: Vec<String> = Vec::new();
    for path in paths {
        let shown = path.display().to_string();
        let bytes = bytes_of(path, &shown)?;
        // Sources of numbers name the file alone: where it lay says nothing to another reader.
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_archive(&bytes) {
            archives.push(shown.clone());
            unpack(&shown, &name, &bytes, &mut files)?;
        } else if bytes.starts_with(GZIP) {
            return Err(Failure::input(
                format!("`{shown}` is compressed by gzip, and is not unpacked here"),
                format!("`gunzip {shown}`, and name what it leaves"),
            ));
        } else {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            files.push(CollectionFile { name, text, is_of_many: false });
        }
    }
    if let [first, second, ..] = &archives[..] {
        return Err(Failure::input(
            format!("`{first}` and `{second}` are archives of two machines, and one is described at a time"),
            "name one of them; the other's numbers go into the file by hand, or by a second description",
        ));
    }
    Ok(files)
}

/// Whether bytes begin an archive: its mark stands at this place of its first header.
pub(crate) fn is_archive(bytes: &[u8]) -> bool {
    bytes.get(257..262) == Some(b"ustar")
}

fn bytes_of(path: &Path, shown: &str) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::input(
            format!("`{shown}` cannot be read: {error}"),
            "name files of `lspci -vvv`, `ibv_devinfo -v` and their like, or an archive of `offpath collect`",
        )
    };
    let mut bytes = Vec::new();
    let mut file = open_file(path).map_err(unreadable)?.take(LARGEST + 1);
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(too_large(shown));
    }
    Ok(bytes)
}

fn too_large(shown: &str) -> Failure {
    Failure::input(
        format!("`{shown}` has more than {} MiB, and these tools print less", LARGEST >> 20),
        "name files of `lspci -vvv`, `ibv_devinfo -v` and their like, or an archive of `offpath collect`",
    )
}

fn unpack(shown: &str, name: &str, bytes: &[u8], files: &mut Vec<CollectionFile>) -> Result<(), Failure> {
    let broken = |error: std::io::Error| {
        Failure::input(
            format!("`{shown}` looks like an archive, and cannot be read as one: {error}"),
            "write it again with `offpath collect -o FILE.tar`, or name its files one by one",
        )
    };
    let mut archive = tar::Archive::new(Cursor::new(bytes));
    let mut read = 0u64;
    for entry in archive.entries().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let entry_name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut content = Vec::new();
        // A sparse entry may say that it is far longer than its archive.
        entry.take(LARGEST + 1 - read).read_to_end(&mut content).map_err(broken)?;
        read += content.len() as u64;
        if read > LARGEST {
            return Err(too_large(shown));
        }
        let text = String::from_utf8_lossy(&content).into_owned();
        files.push(CollectionFile { name: format!("{name}/{entry_name}"), text, is_of_many: true });
    }
    Ok(())
}

/// The archive of a collection. It says nothing of who made it, or when.
pub fn pack(files: &[CollectionFile]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for file in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.text.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, &file.name, file.text.as_bytes())?;
    }
    archive.into_inner()
}

/// What files of one machine say.
pub struct ReadFacts {
    /// What they say.
    pub facts: MachineFacts,
    /// How many lines of each say something.
    pub taken: Vec<u64>,
    /// What is not read of the files of a collection, and that nothing of it is used; and which tools failed before they had printed
    /// everything.
    pub unread: Vec<String>,
}

/// Reads what files of one machine say. One of a collection whose tool printed what nobody knows is told; the others hold.
///
/// # Errors
/// Where a file that was named by itself says nothing that is known, so that it is another than was meant, or none does.
pub fn read_facts(files: &[CollectionFile]) -> Result<ReadFacts, Failure> {
    let mut facts = MachineFacts::default();
    let (mut taken, mut unread) = (Vec::new(), Vec::new());
    for file in files {
        let mut own = MachineFacts::default();
        own.read(&file.name, &file.text);
        if let Some(what) = facts.otherwise(&own) {
            return Err(Failure::input(
                format!("the files are of two machines: {what}"),
                "give those of one machine at a time",
            ));
        }
        let lines = facts.read(&file.name, &file.text);
        // The list of what was run is for readers.
        if lines == 0 && !file.name.ends_with(super::CONTENTS) && !file.text.trim().is_empty() {
            let what = format!("no line of `{}` says anything that is known of a machine", file.name);
            if !file.is_of_many {
                return Err(Failure::input(
                    what,
                    "files of `lspci -vvv`, `ibv_devinfo -v`, `lscpu`, `numactl -H`, `ethtool`, `mlxconfig -e query` and \
                     PATH:VALUE lines of /sys are read; docs/own-card.md has what of each",
                ));
            }
            unread.push(format!("{what}: nothing of it is used"));
        }
        if file.name.ends_with(super::CONTENTS) {
            let failed = file.text.lines().filter_map(|line| line.strip_prefix(super::FAILED));
            unread.extend(failed.map(|said| format!("{said}. What it printed is used, and may be a part")));
        }
        taken.push(lines);
    }
    // A tool of a collection may have printed nothing; of all of them that is another file than was meant.
    if let (Some(first), 0) = (files.first(), taken.iter().sum::<u64>()) {
        return Err(Failure::input(
            format!(
                "`{}` says nothing: no line of it, or of any file beside it, is known of a machine",
                first.name
            ),
            "give files that hold what `lspci -vvv`, `ibv_devinfo -v`, `lscpu` or `offpath collect` printed",
        ));
    }
    Ok(ReadFacts { facts, taken, unread })
}

/// A refusal to choose between cards.
pub(crate) fn refused(error: &DescribeError) -> Failure {
    let help = match error {
        DescribeError::SeveralCards(_) => "name one by `--card ADDRESS`, as in `--card 3b:00.0`",
        DescribeError::NoSuchCard { .. } => "name an address as `lspci` prints it, as in `--card 3b:00.0`",
    };
    Failure::input(error.to_string(), help)
}
