//! Progress on a terminal, for commands that make their user wait.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a command may take before it shows how far it is.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often what is shown moves.
const TICK: Duration = Duration::from_millis(100);

/// Shows how far a command is, from its second second on, where stderr is a terminal. It goes away when it
/// is dropped.
pub struct Progress {
    bar: ProgressBar,
    /// Dropping it ends the thread that waits to show the bar.
    ended: Option<Sender<()>>,
    waiting: Option<JoinHandle<()>>,
}

impl Progress {
    /// Something that is done `count` times, as in `runs`.
    pub fn counted(count: u64, what: &str) -> Progress {
        let template = format!("{{bar:40}} {{pos}} of {{len}} {what}, {{eta}} left");
        Progress::over(ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::hidden()), &template)
    }

    /// Something whose length nobody knows, as in `predicting the published rows`.
    pub fn endless(what: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_message(what.to_string());
        Progress::over(bar, "{spinner} {msg}, {elapsed}")
    }

    fn over(bar: ProgressBar, template: &str) -> Progress {
        Progress::after(PATIENCE, bar, template, stderr().is_terminal(), ProgressDrawTarget::stderr)
    }

    fn after(
        patience: Duration,
        bar: ProgressBar,
        template: &str,
        shown: bool,
        target: impl FnOnce() -> ProgressDrawTarget + Send + 'static,
    ) -> Progress {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if !shown {
            return Progress { bar, ended: None, waiting: None };
        }
        let (ended, end) = channel::<()>();
        let own = bar.clone();
        let waiting = std::thread::spawn(move || {
            if end.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                own.set_draw_target(target());
                own.enable_steady_tick(TICK);
            }
        });
        Progress { bar, ended: Some(ended), waiting: Some(waiting) }
    }

    /// One more is done.
    pub fn advance(&self) {
        self.bar.inc(1);
    }

    /// What is being done now.
    pub fn doing(&self, what: &str) {
        self.bar.set_message(what.to_string());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.ended = None;
        if let Some(waiting) = self.waiting.take() {
            // A thread that panicked has shown nothing, and there is nothing else to do about it.
            let _ = waiting.join();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether the bar was shown by a command that took `taken`.
    fn shown(terminal: bool, patience: Duration, taken: Duration) -> bool {
        let drawn = Arc::new(AtomicBool::new(false));
        let own = drawn.clone();
        let bar = ProgressBar::with_draw_target(Some(3), ProgressDrawTarget::hidden());
        let progress = Progress::after(patience, bar, "{pos}", terminal, move || {
            own.store(true, Ordering::SeqCst);
            ProgressDrawTarget::hidden()
        });
        std::thread::sleep(taken);
        progress.advance();
        drop(progress);
        drawn.load(Ordering::SeqCst)
    }

    #[test]
    fn it_shows_on_a_terminal_and_late() {
        let (soon, late) = (Duration::from_millis(10), Duration::from_secs(600));
        assert!(shown(true, soon, Duration::from_millis(500)));
        assert!(!shown(true, late, Duration::ZERO), "a short command shows nothing, and waits for nothing");
        assert!(!shown(false, soon, Duration::from_millis(200)), "nothing in a pipe");
    }
}
