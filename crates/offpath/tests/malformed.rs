//! Every case of `tests/malformed/cases.toml` is one mistake in a design or a device that is otherwise in order. Each is
//! refused: exit code 2, one message that names the file and the place, and a next step.
//!
//! `INSTA_UPDATE=always cargo test --release -p offpath --test all malformed::` accepts reworded messages.

use assert_cmd::cargo::cargo_bin_cmd;
use serde::Deserialize;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Output;

#[derive(Deserialize)]
struct Cases {
    case: Vec<Case>,
}

/// One mistake: changes to the base file that the name begins with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    why: String,
    from: Option<String>,
    to: Option<String>,
    #[serde(default)]
    changes: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    from: String,
    to: String,
}

impl Case {
    fn base(&self) -> &str {
        self.name.split('-').next().expect("a word")
    }

    /// The base file with the mistake in it.
    fn of(self, base: &str) -> String {
        let Case { name, why, from, to, mut changes } = self;
        changes.extend(from.zip(to).map(|(from, to)| Change { from, to }));
        assert!(!changes.is_empty() && why.ends_with('.'), "{name} changes nothing, or says not why");
        changes.into_iter().fold(base.to_string(), |text, Change { from, to }| {
            assert_eq!(text.matches(&from).count(), 1, "{name}: {from:?} is not there once");
            text.replacen(&from, &to, 1)
        })
    }
}

fn told(folder: &Path, file: &str) -> Output {
    let job: &[&str] = if file.starts_with("device") { &["device", "show"] } else { &["plan"] };
    let mut program = cargo_bin_cmd!("offpath");
    program.current_dir(folder).args(job).arg(file).output().expect("the program starts")
}

#[test]
fn every_malformed_input_gives_one_clear_message() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read =
        |file: &str| fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |file: &str, text: &str| fs::write(folder.path().join(file), text).expect("it can be written");
    for workload in ["workloada", "workloadc"] {
        write(workload, &read(&format!("workloads/{workload}")));
    }
    // What the cases change is in order by itself, so that each is refused for its own mistake.
    for base in ["design.toml", "device.toml"] {
        write(base, &read(&format!("tests/malformed/{base}")));
        let output = told(folder.path(), base);
        assert!(output.status.success(), "{base}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let cases: Cases = toml::from_str(&read("tests/malformed/cases.toml")).expect("a list of cases");
    assert!(cases.case.len() >= 12, "only {} cases were found", cases.case.len());
    assert!(
        cases.case.is_sorted_by(|one, next| one.name < next.name),
        "cases stand in the order of their names"
    );
    let mut messages = String::new();
    for case in cases.case {
        let name = format!("{}.toml", case.name);
        let base = read(&format!("tests/malformed/{}.toml", case.base()));
        write(&name, &case.of(&base));
        let output = told(folder.path(), &name);
        let message = String::from_utf8(output.stderr).expect("text is UTF-8");
        assert_eq!(output.status.code(), Some(2), "{name}: {message}");
        assert!(output.stdout.is_empty(), "{name} has an answer");
        // What only the library knows is refused by its name.
        assert!(message.contains(&name) || message.contains("`bluefeild2`"), "{name}: {message}");
        assert_eq!(message.matches("help:").count(), 1, "{name}: {message}");
        assert!(!message.contains("panicked"), "{name}: {message}");
        writeln!(messages, "{name}\n{}\n", message.trim_end()).expect("text can be written");
    }
    insta::assert_snapshot!("messages", messages);
}
