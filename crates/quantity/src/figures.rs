//! Figures for answers: rounded, and as people read them.

use crate::Time;

/// Rounds to 6 decimals, or to 7 significant digits where those are more, so that every form of an answer prints
/// the same digits. What is smaller than 10^-12 is what adding up leaves, and 0.
pub fn round(value: f64) -> f64 {
    if value.abs() >= 1.0 || value.abs() < 1e-12 || !value.is_finite() {
        // Adding 0 makes a negative 0 a plain one.
        return (value * 1e6).round() / 1e6 + 0.0;
    }
    let scale = 10f64.powi(6 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// A number with so many decimals. What rounds to 0 has no sign.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(zero) if zero.bytes().all(|digit| matches!(digit, b'0' | b'.')) => zero.to_string(),
        _ => text,
    }
}

/// A share in percent.
pub fn percent(share: f64, decimals: usize) -> String {
    format!("{}%", fixed(share * 100.0, decimals))
}

/// A number for people: 3 or more significant digits.
pub fn short(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        0.0 => return "0".to_string(),
        v if v >= 0.1 => 3,
        v if v >= 0.01 => 4,
        v if v >= 0.001 => 5,
        v if v >= 1e-9 => (2.0 - v.log10().floor()) as usize,
        // Less is what adding up leaves.
        _ => 5,
    };
    fixed(value, decimals)
}

/// Microseconds, rounded as [`round`] does.
pub fn us(time: Time) -> f64 {
    round(time.as_us())
}

/// Nanoseconds, rounded as [`round`] does.
pub fn ns(time: Time) -> f64 {
    round(time.ps() as f64 / 1e3)
}
