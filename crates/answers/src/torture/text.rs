//! What a system kept under faults, as a page of text.

use super::TortureAnswer;
use offpath_terminal::output::Screen;

impl TortureAnswer {
    /// The answer as text, with the command that plays a seed again that failed.
    pub fn text(&self, screen: &Screen) -> String {
        let last = self.first_seed + self.seeds_played - 1;
        let mut text = format!(
            "torture {} on {}: seeds {} to {last}\n",
            self.subject,
            self.system.line(),
            self.first_seed
        );
        if let Some(name) = &self.injected_bug {
            text += &format!("injected bug: {name}\n");
        }
        text += &format!(
            "{} operations, {} of them ended without an answer; checksum {}\n",
            self.operations, self.operations_without_answer, self.checksum_crc32
        );
        let faults: Vec<String> =
            self.faults.iter().map(|(kind, count)| format!("{count} {}", plural(kind))).collect();
        if !faults.is_empty() {
            text += &format!("{}\n", faults.join(", "));
        }
        match &self.failed {
            None => text += &format!("held: {}\n", self.promise),
            Some(failed) => {
                text +=
                    &format!("BROKEN at seed {} ({}): {}\n", failed.seed, failed.alternative, failed.reason);
                text += &match failed.shrunk_faults.len() {
                    0 => "it fails without any fault\n".to_string(),
                    count => format!("shrunk from {} faults to {count}:\n", failed.faults.len()),
                };
                if !failed.shrunk_faults.is_empty() {
                    text += &screen.verbatim(&failed.shrunk_faults.join("\n"));
                }
                text += &format!("again: {}\n", failed.again);
            }
        }
        text
    }
}

/// Faults of a kind, in words.
fn plural(kind: &str) -> &'static str {
    match kind {
        "network" => "spells of loss, delay, duplication or corruption",
        "partition" => "partitions",
        "crash" => "crashes",
        _ => "slow stations",
    }
}
