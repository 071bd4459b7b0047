//! The stream's position on disk, so that a relay that was stopped or killed resumes partially.

use crate::handshake::ReplicationId;
use crate::log;
use offpath_terminal::output::replace;
use std::path::{Path, PathBuf};
use tokio::task::spawn_blocking;

/// A position, and the names of its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
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

/// Reads a position; a file that is missing or damaged is not a position.
pub fn load(path: &Path) -> Option<Saved> {
    let text = std::fs::read_to_string(path).ok()?;
    let saved = parse(&text);
    if saved.is_none() {
        log::line(&format!("{} holds no position and is not used", path.display()));
    }
    saved
}

fn parse(text: &str) -> Option<Saved> {
    let mut words = text.split_ascii_whitespace();
    let saved = Saved {
        id: words.next()?.parse().ok()?,
        second_id: words.next()?.parse().ok()?,
        second_offset: words.next()?.parse().ok()?,
        next: words.next()?.parse().ok()?,
        end: words.next()?.parse().ok()?,
    };
    let sound = 1 <= saved.next && saved.next <= saved.end && saved.end <= i64::MAX as u64 / 2;
    (words.next().is_none() && sound).then_some(saved)
}

/// Replaces the file as a whole, so that a crash, also of the machine, leaves the old position or the new one.
pub async fn save(path: &Path, saved: Saved) {
    let path: PathBuf = path.into();
    let job = move || {
        let Saved { id, second_id, second_offset, next, end } = saved;
        replace(&path, format!("{id} {second_id} {second_offset} {next} {end}\n").as_bytes())
    };
    if let Ok(Err(error)) = spawn_blocking(job).await {
        log::line(&format!("the position cannot be kept: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_no_position() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let none = ReplicationId::NONE;
        let saved = parse(&format!("{id} {none} 0 5 7\n")).unwrap();
        assert_eq!((saved.id, saved.next), (id.parse().unwrap(), 5));
        let wrong = ["0", "0 5", "0 0 5", "0 6 5", "0 5 6 7", "x 5 7"];
        for wrong in wrong.map(|rest| format!("{id} {none} {rest}")).iter().chain([&String::new()]) {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    /// What is kept when the machine stops is the old position or the new one, whoever reads meanwhile.
    #[tokio::test]
    async fn a_position_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (path, opened) = (folder.path().join("state"), folder.path().join("opened"));
        let at = |next| {
            let id = "0123456789abcdef0123456789abcdef01234567".parse().unwrap();
            Saved { id, second_id: ReplicationId::NONE, second_offset: 0, next, end: 9 }
        };
        save(&path, at(5)).await;
        std::fs::hard_link(&path, &opened).unwrap();
        save(&path, at(7)).await;
        assert_eq!((load(&opened), load(&path)), (Some(at(5)), Some(at(7))));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left beside it");
    }
}
