//! Every malformed design and profile in `tests/malformed` is refused: exit code 2, one message that
//! names the file and the place, and a next step.
//!
//! `INSTA_UPDATE=always cargo test -p offpath --test malformed` accepts reworded messages.

use assert_cmd::cargo::cargo_bin_cmd;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[test]
fn every_malformed_input_gives_one_clear_message() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.join("tests/malformed"))
        .expect("the folder is there")
        .map(|entry| entry.expect("the entry can be read").path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    assert!(files.len() >= 12, "only {} files were found", files.len());
    let mut messages = String::new();
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a UTF-8 name").to_string();
        let path = format!("tests/malformed/{name}");
        let job: &[&str] = if name.starts_with("device-") { &["device", "show"] } else { &["plan"] };
        let output = cargo_bin_cmd!("offpath")
            .current_dir(&root)
            .args(job)
            .arg(&path)
            .output()
            .expect("the program starts");
        let message = String::from_utf8(output.stderr).expect("text is UTF-8");
        assert_eq!(output.status.code(), Some(2), "{name}: {message}");
        assert!(output.stdout.is_empty(), "{name} has an answer");
        // What only the library knows is refused by its name.
        assert!(message.contains(&path) || message.contains("`bluefeild2`"), "{name}: {message}");
        assert_eq!(message.matches("help:").count(), 1, "{name}: {message}");
        assert!(!message.contains("panicked"), "{name}: {message}");
        writeln!(messages, "{name}\n{}\n", message.trim_end()).expect("text can be written");
    }
    insta::assert_snapshot!("messages", messages);
}
