//! Whoever writes a name of before is told the one of now.

use offpath_profile::{Category, Library, ProfileError, SystemRequest, first_name};
use std::collections::BTreeSet;

const DEVICE: &str = "bluefield2";

fn load(
    change: impl FnOnce(&mut Library),
    overlays: Vec<&str>,
    settings: &[&str],
) -> Result<(), ProfileError> {
    let mut library = Library::builtin();
    change(&mut library);
    let settings = settings.iter().map(ToString::to_string).collect();
    let request = SystemRequest { device: DEVICE, overlays, settings, ..SystemRequest::default() };
    library.load(&request).map(|_| ())
}

/// Numbers as docs/vocabulary.md lists them: what the key was called, and is now.
fn keys() -> Vec<(String, String)> {
    let page = include_str!("../../../docs/vocabulary.md");
    let section =
        page.split("\n## ").find(|section| section.starts_with("Keys")).expect("it has the section");
    let rows = section.lines().filter(|row| row.contains("| numbers of "));
    let cell = |row: &str, at: usize| {
        row.split('|').nth(at).unwrap_or_default().trim().trim_matches('`').to_string()
    };
    rows.map(|row| (cell(row, 1), cell(row, 2))).collect()
}

fn refused(done: Result<(), ProfileError>, old: &str, now: &str) {
    let error = done.expect_err(old);
    assert!(error.to_string().contains(old), "{error:?}");
    assert!(error.next_step().contains(&format!("it is called `{now}` now")), "{error:?}");
}

#[test]
fn old_keys_are_refused_with_the_new_name() {
    let shipped = Library::builtin();
    let system =
        shipped.load(&SystemRequest { device: DEVICE, ..SystemRequest::default() }).expect("it loads");
    let keys = keys();
    assert_eq!(keys.len(), 7);
    for (old, now) in &keys {
        let number = system.numbers.keys().find(|number| number.rsplit('.').next() == Some(now)).expect(now);
        let (component, _) = number.rsplit_once('.').expect("it has a component");
        let before = format!("{component}.{old}");
        refused(load(|_| {}, vec![], &[&format!("{before}=1")]), &before, number);
        let overlay =
            |name: &str| format!("[overlay]\nname = \"o\"\ndescription = \"d\"\n[set]\n\"{name}\" = 1\n");
        let of = |name: String| {
            load(|library| library.insert(Category::Overlay, "o", &overlay(&name)), vec!["o"], &[])
        };
        refused(of(before.clone()), &before, number);
        refused(of(format!("*.{old}")), old, &format!("*.{now}"));
        for (category, name) in [(Category::Device, DEVICE), (Category::Host, "srv")] {
            let text = shipped.source(category, name).expect("it is shipped");
            let former = text.replace(&format!("\n{now} = "), &format!("\n{old} = "));
            if former != text {
                refused(load(|library| library.insert(category, name, &former), vec![], &[]), old, now);
            }
        }
    }
}

#[test]
fn old_words_kinds_tables_and_overlays_are_refused_with_the_new_name() {
    let text = Library::builtin().source(Category::Device, DEVICE).expect("it is shipped").to_string();
    let device = |from: &str, to: &str| {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        load(|library| library.insert(Category::Device, DEVICE, &changed), vec![], &[])
    };
    refused(device("variants = [", "rivals = ["), "rivals", "variants");
    refused(device("\"large-transfer-limit\"", "\"stall\""), "stall", "large-transfer-limit");
    refused(load(|_| {}, vec!["no-read-path"], &[]), "no-read-path", "no-inbound-read-limit");
    let now = "large_transfers_client_soc.rate";
    refused(load(|_| {}, vec![], &["stall_client_soc.rate=1Gbit/s"]), "stall_client_soc.rate", now);
    let error = device("variants = [\"one-pool\"]", "variants = \"one-pool\"").expect_err("it is a text");
    assert!(error.to_string().contains("a list of texts is needed"), "{error:?}");
}

/// Draws are named by what a number was called first: no two numbers may share that.
#[test]
fn every_number_has_a_first_name_of_its_own() {
    let system = Library::builtin().load(&SystemRequest { device: DEVICE, ..SystemRequest::default() });
    let system = system.expect("it loads");
    let first: BTreeSet<String> = system.numbers.keys().map(|name| first_name(name)).collect();
    assert_eq!(first.len(), system.numbers.len());
    assert_eq!(first_name("backup.nic.reserved_inflight_slots"), "backup.nic.reserved_contexts");
    assert_eq!(first_name("bluefield2 large_transfers_soc_host.rate"), "bluefield2 stall_soc_host.rate");
    assert_eq!(first_name("soc.read_latency"), "soc.read_latency");
}
