//! `offpath-relay` as its users see it, without a server.

#[path = "../../../crates/offpath/tests/common/mod.rs"]
mod common;

use std::fs;

fn offpath(arguments: &[&str]) -> (i32, String, String) {
    let common::Answer { code, stdout, stderr } = common::offpath(arguments);
    (code, stdout, stderr)
}

#[test]
fn a_relays_configuration_is_checked_with_its_files() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("relay.toml");
    let password = folder.path().join("password");
    let text = format!(
        "[master]\naddress = 'h:1'\n[listen]\naddress = '127.0.0.1:2'\n[[user]]\nname = 'default'\npassword_file = '{}'\n",
        password.display()
    );
    fs::write(&file, &text).expect("the file is written");
    let check = |file: &std::path::Path| offpath(&["--check", "--config", &file.display().to_string()]);
    let (code, _, message) = check(&file);
    assert!(code == 2 && message.contains("password"), "{message}");
    fs::write(&password, "secret\n").expect("the file is written");
    assert_eq!(check(&file).0, 0);
    fs::write(&file, text.replace("[listen]", "[lissen]")).expect("the file is written");
    let (code, _, message) = check(&file);
    assert!(code == 2 && message.contains("lissen"), "{message}");
    let (code, _, message) = offpath(&["--check", "--master", "h:1", "--listen", "h:2", "--backlog", "1B"]);
    assert!(code == 2 && message.contains("limits.backlog = 1B"), "{message}");
    for (given, missing) in [(&[][..], "--master"), (&["--master", "h:1"], "--listen")] {
        let (code, _, message) = offpath(given);
        assert!(code == 2 && message.contains(&format!("`{missing} ")), "{message}");
        assert!(message.contains("--config FILE"), "{message}");
    }
    // A file may leave out what the command line gives.
    fs::write(&file, "[limits]\ngather = '1ms'\n").expect("the file is written");
    let (code, _, message) = check(&file);
    assert!(code == 2 && message.contains("`master.address` is not set"), "{message}");
    let file = file.display().to_string();
    let given = ["--check", "--config", &file, "--master", "h:1", "--listen", "127.0.0.1:2"];
    assert_eq!(offpath(&given).0, 0);
}

/// The help says what was measured, and neither more nor what was measured before.
#[test]
fn the_help_has_the_measured_cost() {
    let page = include_str!("../../../docs/performance.md");
    let section = page.split("\n## Redis\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let rows: Vec<Vec<&str>> = section
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|cells| cells.get(2) == Some(&"relayed"))
        .collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    let (_, help, _) = offpath(&["--help"]);
    let words: Vec<&str> = help.split_whitespace().map(|word| word.trim_end_matches([',', '.'])).collect();
    // With 8 clients, and with 50.
    for column in [4, 7] {
        let ratios = || rows.iter().map(|cells| cells[column]);
        let range = [ratios().min().unwrap(), "to", ratios().max().unwrap()];
        assert!(words.windows(3).any(|words| words == range), "{range:?}: {help}");
    }
}
