//! One line on stderr for each event that an operator asks about later; systemd adds time and unit.
//!
//! A thread of its own writes them: a full disk, a pipe that nobody reads or one without a reader delays and ends
//! nothing else. Lines that it has no room for are counted, and the count is the next line.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Lines that wait to be written.
const WAITING: usize = 1_024;

enum Message {
    Line(String),
    /// All before it is written.
    Flush(SyncSender<()>),
}

static WRITER: OnceLock<SyncSender<Message>> = OnceLock::new();
static LOST: AtomicU64 = AtomicU64::new(0);

fn writer() -> &'static SyncSender<Message> {
    WRITER.get_or_init(|| {
        let (sender, receiver) = sync_channel(WAITING);
        // Where there is no thread to be had, lines are lost and nothing else.
        let _ = thread::Builder::new().name("log".into()).spawn(move || write(&receiver));
        sender
    })
}

fn write(receiver: &Receiver<Message>) {
    while let Ok(message) = receiver.recv() {
        let lost = LOST.swap(0, Ordering::Relaxed);
        let written = match message {
            Message::Line(text) => {
                let said = (lost > 0).then(|| format!("offpath relay: {lost} lines could not be written\n"));
                let text = format!("{}offpath relay: {text}\n", said.unwrap_or_default());
                io::stderr().lock().write_all(text.as_bytes()).map_err(|_| lost + 1)
            }
            // Whoever waited may have gone.
            Message::Flush(done) => {
                let _ = done.try_send(());
                Err(lost)
            }
        };
        if let Err(lost) = written {
            LOST.fetch_add(lost, Ordering::Relaxed);
        }
    }
}

/// Has a line written.
pub fn line(text: &str) {
    if writer().try_send(Message::Line(text.to_string())).is_err() {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until what was said is written, for a second at most: to be called before the process ends.
pub fn flush() {
    let (done, all) = sync_channel(1);
    if writer().try_send(Message::Flush(done)).is_ok() {
        let _ = all.recv_timeout(Duration::from_secs(1));
    }
}
