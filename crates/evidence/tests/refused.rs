//! Evidence files that are refused, with the row and what is wrong with it.

use offpath_evidence::parse;
use proptest::prelude::*;

const ROW: &str = r#"[[row]]
id = "X001"
kind = "measurement"
source = "wei2023 §2"
states = "READ latency"
published = { is = 2.6 }
unit = "us"
role = "fit"
experiment = { measure = "latency", path = "client-host", verb = "read", payload = "64 B" }
"#;

fn refused(from: &str, to: &str) -> String {
    assert!(ROW.contains(from), "{from} is not in the row");
    parse(&ROW.replace(from, to), "x.toml").expect_err("it is refused").to_string()
}

#[test]
fn a_row_in_order_is_read() {
    assert_eq!(parse(ROW, "x.toml").expect("it is in order").len(), 1);
}

#[test]
fn what_is_wrong_is_named() {
    let cases = [
        ("§2", "§5.2", "kept for prediction"),
        ("wei2023 §2", "sun2023 §4.2", "kept for prediction"),
        ("wei2023 §2", "sun2023 Fig 10", "kept for prediction"),
        ("wei2023 §2", "dpa2024 §5.1, Fig 13", "kept for prediction"),
        ("{ is = 2.6 }", "{ is = 2.6, about = 2 }", "exactly one form"),
        ("{ is = 2.6 }", "{ from = 2.6 }", "come together"),
        ("\"fit\"", "\"conflict\"", "lacks `reason`"),
        ("\"fit\"", "\"guess\"", "unknown variant"),
        ("states", "stats", "unknown field"),
        ("\"64 B\"", "\"64\"", "unit"),
        ("payload = \"64 B\" }", "payload = \"64 B\", as = \"ratio\" }", "lacks `against`"),
        ("payload = \"64 B\" }", "payload = \"64 B\", against = { verb = \"write\" } }", "lacks `as`"),
        ("measure = \"latency\"", "measure = \"speed\"", "unknown variant"),
        ("role = \"fit\"", "role = \"fit\"\nalike = [\"X009\"]", "X009"),
        ("role = \"fit\"", "role = \"predict\"\ndecides = \"a number\"", "names a number"),
        ("role = \"fit\"", "role = \"predict\"\ndecides = \"mechanism \"", "or a mechanism"),
        ("role = \"fit\"", "role = \"fit\"\ndecides = \"mechanism of slots\"", "speak of predictions"),
        ("role = \"fit\"", "role = \"fit\"\nerrs_with = [\"X009\"]", "X009"),
    ];
    for (from, to, expected) in cases {
        let message = refused(from, to);
        assert!(message.contains(expected) && message.contains("x.toml"), "{to}: {message}");
    }
    let twice = parse(&format!("{ROW}{ROW}"), "x.toml").expect_err("it is refused").to_string();
    assert!(twice.contains("X001") && twice.contains("twice"), "{twice}");
    let none = refused(
        "experiment = { measure = \"latency\", path = \"client-host\", verb = \"read\", payload = \"64 B\" }\n",
        "",
    );
    assert!(none.contains("lacks `experiment`"), "{none}");
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = parse(&text, "x.toml");
    }

    #[test]
    fn no_change_of_a_row_panics(at in 0usize..300, with in "[\\[\\]{}=\",.a-z0-9 -]{0,12}") {
        let at = (0..=at.min(ROW.len())).rev().find(|at| ROW.is_char_boundary(*at)).unwrap_or(0);
        let text = format!("{}{with}{}", &ROW[..at], &ROW[at..]);
        if let Ok(rows) = parse(&text, "x.toml") {
            let bench = offpath_evidence::Bench::new(offpath_profile::Library::builtin());
            for experiment in rows.iter().filter_map(|row| row.experiment.as_ref()) {
                let _ = bench.run(experiment);
            }
        }
    }
}
