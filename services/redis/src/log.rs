//! One line on stderr for each event that an operator asks about later, with its time where systemd's journal, which
//! keeps one itself, is not what reads it.
//!
//! A log stops nothing: what a full disk or a pipe without a reader refuses is lost, and so is what a pipe that nobody
//! reads has no room for. Lines that were lost are counted, and the count stands before the next.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;
use std::cell::Cell;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::macros::format_description;

/// Bytes that a pipe takes at once where it takes any (`PIPE_BUF`).
const AT_ONCE: usize = 4_096;

static LOST: AtomicU64 = AtomicU64::new(0);

/// Whether stderr leads to the journal: its device and inode are what systemd says of it.
static IS_JOURNAL: LazyLock<bool> = LazyLock::new(|| {
    let found = fstat(io::stderr()).map(|found| format!("{}:{}", found.st_dev, found.st_ino));
    found.is_ok_and(|found| std::env::var("JOURNAL_STREAM").is_ok_and(|named| named == found))
});

/// What a line begins with.
fn head(now: OffsetDateTime, is_journal: bool) -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z ");
    let time = if is_journal { String::new() } else { now.format(form).expect("every time has these parts") };
    format!("{time}offpath relay: ")
}

/// Writes a line, where that can be done at once.
pub fn line(text: &str) {
    let lost = LOST.swap(0, Ordering::Relaxed);
    let head = head(OffsetDateTime::now_utc(), *IS_JOURNAL);
    let said = if lost > 0 { format!("{head}{lost} lines could not be written\n") } else { String::new() };
    let mut text = format!("{said}{head}{text}\n").into_bytes();
    if text.len() > AT_ONCE {
        text.truncate(AT_ONCE - 4);
        text.extend(b"...\n");
    }
    let stderr = io::stderr();
    let mut asked = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    let has_room = poll(&mut asked, PollTimeout::ZERO).is_ok_and(|ready| ready > 0);
    if !has_room || stderr.lock().write_all(&text).is_err() {
        LOST.fetch_add(lost + 1, Ordering::Relaxed);
    }
}

/// Lines on what anybody can bring about, of which one stands for all of ten seconds.
#[derive(Debug, Default)]
pub struct Seldom {
    last: Cell<Option<Instant>>,
    unsaid: Cell<u64>,
}

impl Seldom {
    /// Writes a line, unless there was one just now; those that were left out are counted in the next.
    pub fn line(&self, text: &str) {
        if let Some(text) = self.due(text, Instant::now()) {
            line(&text);
        }
    }

    fn due(&self, text: &str, now: Instant) -> Option<String> {
        if self.last.get().is_some_and(|last| now - last < Duration::from_secs(10)) {
            self.unsaid.set(self.unsaid.get() + 1);
            return None;
        }
        self.last.set(Some(now));
        Some(match self.unsaid.replace(0) {
            0 => text.to_string(),
            unsaid => format!("{text} (and {unsaid} of the kind before that were not said)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_stands_for_ten_seconds() {
        let (seldom, began) = (Seldom::default(), Instant::now());
        let at = |seconds| seldom.due("it came", began + Duration::from_secs(seconds));
        assert_eq!(at(0).as_deref(), Some("it came"));
        assert_eq!((at(0), at(9)), (None, None));
        assert_eq!(at(10).as_deref(), Some("it came (and 2 of the kind before that were not said)"));
        assert_eq!(at(20).as_deref(), Some("it came"));
    }

    #[test]
    fn a_line_has_its_time_where_nobody_else_adds_one() {
        let now = OffsetDateTime::from_unix_timestamp_nanos(1_795_753_867_012_345_678).unwrap();
        assert_eq!(head(now, false), "2026-11-27T04:31:07.012Z offpath relay: ");
        assert_eq!(head(now, true), "offpath relay: ");
    }
}
