//! One line on stderr for each event that an operator asks about later; systemd adds time and unit.

/// Writes a line.
pub fn line(text: &str) {
    eprintln!("offpath relay: {text}");
}
