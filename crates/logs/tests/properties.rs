//! Whatever a log holds: nothing panics, and each line is accounted for once.

mod common;

use common::{read, read_bytes};
use proptest::prelude::*;

/// Logs to be cut and mixed, written for these tests in the tools' formats.
const LOGS: &[&str] = &[
    include_str!("data/write_bw.log"),
    include_str!("data/read_lat.log"),
    include_str!("data/perftest.json"),
    include_str!("data/dma.dat"),
    include_str!("data/stress.yaml"),
    include_str!("data/stress.log"),
    include_str!("data/fio.json"),
    include_str!("data/bdevperf.json"),
    include_str!("data/sysbench.log"),
    include_str!("data/osu.log"),
    include_str!("data/nccl.log"),
    include_str!("data/counters.txt"),
    include_str!("data/measure.jsonl"),
];

#[test]
fn logs_are_read_whole() {
    for log in LOGS {
        let found = read(log);
        assert_eq!(found.account.unknown, 0, "{:?}", found.remarks);
        assert!(found.account.measured > 0, "{log}");
    }
}

fn line() -> impl Strategy<Value = String> {
    let lines: Vec<String> = LOGS.iter().flat_map(|log| log.lines()).map(str::to_string).collect();
    let own = prop::sample::select(lines);
    let cut = (own.clone(), any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(
        |(line, from, to)| {
            let letters: Vec<char> = line.chars().collect();
            if letters.is_empty() {
                return line;
            }
            let (from, to) = (from.index(letters.len()), to.index(letters.len()));
            letters[from.min(to)..=from.max(to)].iter().collect()
        },
    );
    prop_oneof![6 => own, 3 => cut, 1 => "[-0-9.e:,{}\\[\\]\" a-z#>_]{0,60}", 1 => any::<String>()]
}

proptest! {
    #[test]
    fn any_bytes_are_accounted_for(log in prop::collection::vec(any::<u8>(), 0..2_000)) {
        read_bytes(&log);
    }

    #[test]
    fn mixed_lines_are_accounted_for(
        lines in prop::collection::vec((prop::sample::select(vec!["", "> ", "# ", "  ", "[1,0]<stdout>:"]), line()), 0..80),
    ) {
        let log: String = lines.iter().map(|(quote, line)| format!("{quote}{}\n", line.replace('\n', " "))).collect();
        read(&log);
    }

    /// What is read of a log does not depend on what follows it, but for the document or table that it cuts.
    #[test]
    fn a_cut_log_is_accounted_for(
        log in prop::sample::select(LOGS.to_vec()),
        at in any::<prop::sample::Index>(),
        other in prop::sample::select(LOGS.to_vec()),
    ) {
        let bytes = log.as_bytes();
        let cut = &bytes[..at.index(bytes.len() + 1)];
        let found = read_bytes(cut);
        let whole = read(log);
        prop_assert!(found.figures.len() <= whole.figures.len());
        let spliced = [cut, b"\n", other.as_bytes()].concat();
        let spliced = read_bytes(&spliced);
        // What begins anew behind a cut is read whole.
        prop_assert!(spliced.figures.len() >= read(other).figures.len(), "{:?}", spliced.remarks);
    }

    /// The same log twice is the same figures twice.
    #[test]
    fn runs_do_not_change_one_another(first in 0..LOGS.len(), second in 0..LOGS.len()) {
        let both = read(&[LOGS[first], LOGS[second]].concat());
        let alone = [read(LOGS[first]).figures, read(LOGS[second]).figures].concat();
        prop_assert_eq!(both.figures.len(), alone.len());
        for (one, other) in both.figures.iter().zip(&alone) {
            prop_assert_eq!((one.metric, one.figure), (other.metric, other.figure));
            prop_assert_eq!(one.conditions.tx_depth, other.conditions.tx_depth);
            prop_assert_eq!(one.conditions.operation, other.conditions.operation);
            prop_assert_eq!(one.cautions, other.cautions);
        }
    }
}
