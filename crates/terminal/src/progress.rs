//! Progress on a terminal, for commands that make their user wait.

use crate::output::tell;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a command may take before it shows how far it is.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it may take before it says in a pipe or a file that it is at work, once: whoever waits there has nothing
/// else to go by.
const PATIENCE_IN_A_PIPE: Duration = Duration::from_secs(30);
/// How often what is shown moves.
const TICK: Duration = Duration::from_millis(100);

/// Shows how far a command is, from its second second on, where stderr is a terminal. It goes away when it
/// is dropped. Elsewhere it says once, after half a minute, what is being done; of what goes in phases, each phase in a line of
/// its own as it begins.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    /// Dropping it ends the thread that waits to show the bar.
    ended: Option<Sender<()>>,
    waiting: Option<JoinHandle<()>>,
    /// Whether each phase is told in a line.
    tells_phases: bool,
}

impl Progress {
    /// Something that is done `count` times, as in `runs`.
    pub fn counted(count: u64, what: &str) -> Progress {
        let template = format!("{{bar:40}} {{pos}} of {{len}} {what}, {{eta}} left");
        let bar = ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::hidden());
        bar.set_message(format!("{what}, {count} in all"));
        Progress::over(bar, &template)
    }

    /// Something whose length nobody knows, as in `predicting the published rows`.
    pub fn endless(what: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_message(what.to_string());
        Progress::over(bar, "{spinner} {msg}, {elapsed}")
    }

    /// Something that is done in phases, of which each says its steps when it begins.
    pub fn phased(what: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        bar.set_message(what.to_string());
        if !stderr().is_terminal() {
            return Progress { bar, ended: None, waiting: None, tells_phases: true };
        }
        Progress::over(bar, "{bar:40} {pos} of {len} {msg}, {eta} of these left, {elapsed} in all")
    }

    /// A phase begins, of so many steps, as in `searches from elsewhere`.
    pub fn phase(&self, what: &str, steps: u64) {
        if self.tells_phases {
            let steps = if steps == 1 { "1 step".to_string() } else { format!("{steps} steps") };
            tell(&format!("note: at work: {what} ({steps})"));
        }
        self.bar.set_length(steps);
        self.bar.set_position(0);
        self.bar.reset_eta();
        self.bar.set_message(what.to_string());
    }

    fn over(bar: ProgressBar, template: &str) -> Progress {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        if stderr().is_terminal() {
            return Progress::after(PATIENCE, bar, |bar| {
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(TICK);
            });
        }
        Progress::after(PATIENCE_IN_A_PIPE, bar, |bar| {
            let seconds = PATIENCE_IN_A_PIPE.as_secs();
            tell(&format!("note: at work for {seconds} s, and not done: {}", bar.message()));
        })
    }

    /// Shows `bar` once a command has taken longer than `patience`.
    fn after(
        patience: Duration,
        bar: ProgressBar,
        show: impl FnOnce(&ProgressBar) + Send + 'static,
    ) -> Progress {
        let (ended, end) = channel::<()>();
        let own = bar.clone();
        let waiting = std::thread::spawn(move || {
            if end.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                show(&own);
            }
        });
        Progress { bar, ended: Some(ended), waiting: Some(waiting), tells_phases: false }
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
    use std::sync::{Arc, Mutex};

    /// What a command that took `taken` showed, if it showed anything.
    fn shown(patience: Duration, taken: Duration) -> Option<String> {
        let drawn = Arc::new(Mutex::new(None));
        let own = drawn.clone();
        let bar = ProgressBar::with_draw_target(Some(3), ProgressDrawTarget::hidden());
        bar.set_message("3 runs");
        let progress = Progress::after(patience, bar, move |bar| {
            *own.lock().expect("nobody panicked") = Some(bar.message());
        });
        std::thread::sleep(taken);
        progress.advance();
        drop(progress);
        drawn.lock().expect("nobody panicked").take()
    }

    #[test]
    fn a_phase_begins_anew() {
        let progress = Progress::phased("the first");
        progress.phase("runs", 2);
        progress.advance();
        progress.phase("searches", 5);
        assert_eq!((progress.bar.position(), progress.bar.length()), (0, Some(5)));
        assert_eq!(progress.bar.message(), "searches");
    }

    #[test]
    fn it_shows_late_what_is_done() {
        let (soon, late) = (Duration::from_millis(10), Duration::from_secs(600));
        assert_eq!(shown(soon, Duration::from_millis(500)).as_deref(), Some("3 runs"));
        assert_eq!(shown(late, Duration::ZERO), None, "a short command shows nothing, and waits for nothing");
    }
}
