//! What offpath itself writes: a prediction in the words of perftest, and no measurement of anything; figures that were read out of
//! logs, whose rows no longer say which belong to one run and what printed them.

use crate::document::Node;
use crate::reader::{LogLine, RemarkKind, Sink, Taken};
use crate::tools::LineTool;

/// Why nothing of it is read.
const NO_MEASUREMENT: &str =
    "what follows is what `offpath path --as` predicts, and no measurement: no figure of it is read";

/// Why nothing of figures is read that were read before.
const IMPORTED: &str = "this is what `offpath import` wrote of a log, and no log: no figure of it is read. Give the log itself, of \
                        which it says the file, or ask for it where it was taken";

/// How a table of such figures begins.
const IMPORTED_HEAD: &str = "file,line,row,tool,metric,value,step,";

/// Passes over predictions and tables of imported figures, of which no line is to be taken for a row of perftest.
#[derive(Default)]
pub(crate) struct Prediction {
    is_begun: bool,
}

impl LineTool for Prediction {
    fn take(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        if is_head(line.text) {
            self.is_begun = true;
            sink.remark(RemarkKind::Withheld, line.number, line.text, NO_MEASUREMENT);
        } else if line.text.starts_with(IMPORTED_HEAD) {
            self.is_begun = true;
            sink.remark(RemarkKind::Withheld, line.number, IMPORTED_HEAD, IMPORTED);
        } else if line.text.starts_with(['$', '*']) {
            // A command, or a server that waits: a log follows.
            self.is_begun = false;
        }
        if self.is_begun { Taken::Known } else { Taken::No }
    }

    fn ruler(&mut self, text: &str, _sink: &mut Sink) {
        // perftest draws such a line above its title; a prediction has none.
        self.is_begun &= text.len() < 40;
    }
}

/// `PROGRAM from PATH on DEVICE in testbed TESTBED, mode MODE`
fn is_head(text: &str) -> bool {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [program, "from", _, "on", _, "in", "testbed", _, "mode", ..] = words[..] else { return false };
    (program.starts_with("ib_") || program.starts_with("raw_")) && text.contains(", mode ")
}

/// Passes over an answer of `offpath` in JSON; whether it is one.
pub(crate) fn read_document(node: &Node, sink: &mut Sink) -> bool {
    let is_answer = ["schema_version", "device", "testbed", "mode"].iter().all(|key| node.get(key).is_some());
    if is_answer {
        let program = node.get("program").and_then(Node::text).unwrap_or_default();
        let why =
            "an answer of `offpath` about a described card, and no measurement: no figure of it is read";
        sink.remark(RemarkKind::Withheld, node.line, program, why);
    }
    let is_imported =
        ["schema_version", "measurements", "remarks", "files"].iter().all(|key| node.get(key).is_some());
    if is_imported {
        sink.remark(RemarkKind::Withheld, node.line, "", IMPORTED);
    }
    is_answer || is_imported
}
