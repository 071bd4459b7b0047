//! What a relay has to remember on disk: its position in the stream, so that one that was stopped or killed resumes
//! partially, the master that REPLICAOF pointed it at, and the histories that it left, so that it does not go back to one
//! of these.

use crate::history::ReplicationId;
use offpath_terminal::output::replace;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

/// A position, and the names of its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The history.
    pub id: ReplicationId,
    /// Its name before the last promotion.
    pub second_id: ReplicationId,
    /// The first offset that `second_id` does not cover.
    pub second_offset: u64,
    /// The next byte that the slowest replica needs.
    pub next: u64,
    /// The next byte that the relay itself needs; not before `next`.
    pub end: u64,
}

/// All that is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Where the relay is, once it is anywhere.
    pub position: Option<Position>,
    /// The master that REPLICAOF named, where the configuration names another.
    pub master: Option<String>,
    /// Whether REPLICAOF was given and no master has been followed since, so that its history is meant.
    pub is_meant: bool,
    /// The histories that were left for others, the oldest first.
    pub left: Vec<LeftHistory>,
}

/// A history that was left for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftHistory {
    /// Its name.
    pub id: ReplicationId,
    /// The first offset that was not taken of it.
    pub end: u64,
}

/// So many histories are remembered.
pub const LEFT: usize = 16;

/// Bytes of a file that may be a state.
const MOST: u64 = 64 << 10;

/// Reads what was remembered. A file that is not there remembers nothing, and one that cannot be read or holds
/// anything else is an error: it may have named a master that must not be forgotten.
pub fn load(path: &Path) -> io::Result<State> {
    let read = || {
        // What is no file may have no end, or never begin.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is no file; name one, or one that is not there yet"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    match read() {
        Ok(text) => parse(&text).ok_or_else(|| {
            io::Error::other(
                "it is damaged. It may have named a master that was promoted, and histories that were left: set \
                 `master.address` to the master of now, then remove it; a relay without it takes its replicas to whatever \
                 that is",
            )
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::default()),
        Err(error) => Err(error),
    }
}

/// The last line, without which a part of the file is missing.
const END: &str = "end\n";

fn parse(text: &str) -> Option<State> {
    let text = text.strip_suffix(END).filter(|text| text.is_empty() || text.ends_with('\n'))?;
    let mut state = State::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["master", address] if state.master.is_none() => state.master = Some(address.to_string()),
            ["meant"] if !state.is_meant => state.is_meant = true,
            ["left", id, end] if state.left.len() < LEFT => {
                state.left.push(LeftHistory { id: id.parse().ok()?, end: end.parse().ok()? });
            }
            [id, second_id, second_offset, next, end] if state.position.is_none() => {
                let position = Position {
                    id: id.parse().ok()?,
                    second_id: second_id.parse().ok()?,
                    second_offset: second_offset.parse().ok()?,
                    next: next.parse().ok()?,
                    end: end.parse().ok()?,
                };
                let in_order = 1 <= position.next && position.next <= position.end;
                if !in_order || position.end > i64::MAX as u64 / 2 {
                    return None;
                }
                state.position = Some(position);
            }
            _ => return None,
        }
    }
    Some(state)
}

fn text(state: &State) -> String {
    let mut text = String::new();
    if let Some(Position { id, second_id, second_offset, next, end }) = state.position {
        text += &format!("{id} {second_id} {second_offset} {next} {end}\n");
    }
    if let Some(address) = &state.master {
        text += &format!("master {address}\n");
    }
    if state.is_meant {
        text += "meant\n";
    }
    for LeftHistory { id, end } in &state.left {
        text += &format!("left {id} {end}\n");
    }
    text + END
}

/// Replaces the file as a whole, so that a crash, also of the machine, leaves the old state or the new one; once this
/// has returned, the new one.
pub async fn save(path: &Path, state: &State) -> io::Result<()> {
    let (path, text) = (PathBuf::from(path), text(state));
    let job = move || {
        replace(&path, text.as_bytes())?;
        // The name has to survive too.
        File::open(folder(&path))?.sync_all()
    };
    spawn_blocking(job).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// The folder that a file is in.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn position(next: u64) -> Option<Position> {
        let id = ID.parse().unwrap();
        Some(Position { id, second_id: ReplicationId::NONE, second_offset: 0, next, end: 9 })
    }

    #[test]
    fn what_is_written_is_read() {
        for master in [None, Some("[::1]:6379".to_string())] {
            for position in [None, position(5)] {
                for is_meant in [false, true] {
                    let left = vec![LeftHistory { id: ID.parse().unwrap(), end: 7 }; LEFT];
                    let state = State { position, master: master.clone(), is_meant, left };
                    assert_eq!(parse(&text(&state)), Some(state));
                }
            }
        }
    }

    #[test]
    fn a_damaged_file_is_no_state() {
        let none = ReplicationId::NONE;
        let wrong = ["0", "0 5", "0 0 5", "0 6 5", "0 5 6 7", "x 5 7"];
        for wrong in wrong.map(|rest| format!("{ID} {none} {rest}")).iter().chain(
            &["master", "master a b", "master a:1\nmaster b:2", "x", "meant\nmeant", "left 1 2"]
                .map(ToString::to_string),
        ) {
            assert_eq!(parse(&format!("{wrong}\n{END}")), None, "{wrong}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load(&folder.path().join("none")).unwrap(), State::default());
        let file = folder.path().join("state");
        for bytes in [&b"x"[..], b"\xff\xfe\x00"] {
            std::fs::write(&file, bytes).unwrap();
            assert!(load(&file).unwrap_err().to_string().contains("remove it"));
        }
        for endless in [Path::new("/dev/zero"), folder.path()] {
            assert!(load(endless).unwrap_err().to_string().contains("it is no file"));
        }
        std::fs::write(&file, "x".repeat(1 << 20)).unwrap();
        assert!(load(&file).unwrap_err().to_string().contains("remove it"));
    }

    /// A part of a state has forgotten which master it named, or which histories were left.
    #[test]
    fn a_file_that_was_cut_anywhere_is_no_state() {
        let left = vec![LeftHistory { id: ID.parse().unwrap(), end: 7 }];
        let whole = text(&State { position: position(5), master: Some("a:1".into()), is_meant: true, left });
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        for length in 0..whole.len() {
            std::fs::write(&file, &whole[..length]).unwrap();
            let error = load(&file).expect_err(&whole[..length]).to_string();
            assert!(error.contains("remove it"), "{error}");
        }
        std::fs::write(&file, &whole).unwrap();
        assert_eq!(load(&file).unwrap().left.len(), 1);
        assert_eq!(parse(&whole.replace("meant\n", "meant\nend\n")), None);
        assert_eq!(parse(&format!("x{END}")), None);
    }

    /// What is kept when the machine stops is the old position or the new one, whoever reads meanwhile.
    #[tokio::test]
    async fn a_state_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (path, opened) = (folder.path().join("state"), folder.path().join("opened"));
        let at = |next| State { position: position(next), ..State::default() };
        save(&path, &at(5)).await.unwrap();
        std::fs::hard_link(&path, &opened).unwrap();
        save(&path, &at(7)).await.unwrap();
        assert_eq!((load(&opened).unwrap(), load(&path).unwrap()), (at(5), at(7)));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
    }
}
