//! Every test of learning in one program, whose long ones then run beside each other.

mod calibrate;
mod describe;
mod diagnose;
mod dma;
mod expect;
mod forms;
mod watch;

/// Whether a page says something, wherever its lines break.
fn says(page: &str, what: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    words(page).contains(&words(what))
}
