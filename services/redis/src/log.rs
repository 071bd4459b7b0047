//! One line on stderr for each event that an operator asks about later; systemd adds time and unit.
//!
//! A log stops nothing: what a full disk or a pipe without a reader refuses is lost, and so is what a pipe that nobody
//! reads has no room for. Lines that were lost are counted, and the count stands before the next.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a pipe takes at once where it takes any (`PIPE_BUF`).
const AT_ONCE: usize = 4_096;

static LOST: AtomicU64 = AtomicU64::new(0);

/// Writes a line, where that can be done at once.
pub fn line(text: &str) {
    let lost = LOST.swap(0, Ordering::Relaxed);
    let said =
        if lost > 0 { format!("offpath relay: {lost} lines could not be written\n") } else { String::new() };
    let mut text = format!("{said}offpath relay: {text}\n").into_bytes();
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
