//! The stream's position on disk, so that a relay that was stopped or killed resumes partially.

use crate::handshake::ReplicationId;
use crate::log;
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

/// Reads a position; a file that is missing or damaged is no position.
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

/// Replaces the file as a whole, so that a crash leaves the old position or the new one.
pub async fn save(path: &Path, saved: Saved) {
    let path: PathBuf = path.into();
    let job = move || {
        let next = path.with_extension("next");
        let Saved { id, second_id, second_offset, next: low, end } = saved;
        let text = format!("{id} {second_id} {second_offset} {low} {end}\n");
        std::fs::write(&next, text).and_then(|()| std::fs::rename(&next, &path))
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
}
