//! The file that a new device begins with: blank or carried over, complete, and refused or loaded as it says.

use offpath_profile::{Category, Library, Problem, ProfileError, Provenance, System, SystemRequest};
use std::collections::BTreeMap;

fn load(name: &str, text: &str) -> Result<System, ProfileError> {
    let mut library = Library::builtin();
    library.insert(Category::Device, name, text);
    library.load(&SystemRequest { device: name, ..SystemRequest::default() })
}

/// The lines of a file that give numbers, by the dotted name.
fn numbers(text: &str) -> BTreeMap<String, &str> {
    let (mut table, mut found) = (String::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']').to_string();
        } else if let Some((key, _)) = line.split_once(" = { value = ")
            && !line.starts_with('#')
        {
            found.insert(format!("{table}.{key}"), line);
        }
    }
    found
}

/// A kind of table that a device may hold and the file does not show is one that nobody finds.
#[test]
fn a_blank_file_shows_every_kind_of_table() {
    let blank = Library::builtin().draft("mine", None).expect("a file");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/profiles.md"))
        .expect("the page");
    let kinds =
        page.split("\n### `kind = \"").skip(1).filter(|section| section.contains("In files of devices"));
    let kinds: Vec<&str> = kinds.filter_map(|section| section.split('"').next()).collect();
    assert!(kinds.len() > 8, "{kinds:?}");
    for kind in kinds {
        assert!(blank.contains(&format!("kind = \"{kind}\"")), "{kind} is not shown");
    }
}

#[test]
fn a_blank_file_is_refused_with_every_number_at_once_and_loads_when_they_are_filled_in() {
    let library = Library::builtin();
    let blank = library.draft("mine", None).expect("a file");
    let all = numbers(&blank);
    assert!(all.len() > 50, "{blank}");
    let error = load("mine", &blank).expect_err("nothing has a default");
    let Problem::Several { count, .. } = error.problem() else { panic!("{error:?}") };
    let tables: std::collections::BTreeSet<&str> =
        all.keys().filter_map(|name| name.split('.').next()).collect();
    // One for each table, and what each says names its numbers.
    assert_eq!(*count, tables.len(), "{error:?}");
    let mut shown = String::new();
    miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor())
        .with_width(4000)
        .render_report(&mut shown, &error)
        .expect("a report");
    for table in &tables {
        let names = all.keys().filter_map(|name| name.strip_prefix(&format!("{table}.")));
        // Those of a table stand in the order of their declaration.
        let line = shown.lines().find(|line| line.contains(&format!("`[{table}]` lacks values for")));
        let line = line.unwrap_or_else(|| panic!("{table} is not in\n{shown}"));
        for name in names {
            assert!(line.contains(&format!("`{name}`")), "{table}.{name} is not in {line}");
        }
    }
    // What is to be done is the same for all, and said once.
    assert_eq!(error.next_step().matches("write what is known").count(), 1, "{}", error.next_step());
    // With the numbers of a card of the same tables it is a card.
    let filled = library.draft("mine", Some("bluefield2")).expect("a file");
    let known = numbers(&filled);
    let mut text = String::new();
    let mut table = "";
    for line in blank.lines() {
        table = line.strip_prefix('[').map_or(table, |name| name.trim_end_matches(']'));
        let name = line.split_once(" = ").map(|(key, _)| format!("{table}.{key}"));
        let value = name.filter(|name| all.contains_key(name)).map(|name| known[&name]);
        text += &format!("{}\n", value.unwrap_or(line));
    }
    let system = load("mine", &text).expect("a card");
    assert_eq!(system.device, "mine");
    // What other cards have is a card too, once it is no remark: one of each kind of table, with examples as values.
    let (_, others) = blank.split_once("# What other cards have").expect("they stand at the end");
    let mut richer = text.clone();
    for line in others
        .lines()
        .skip(1)
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| !line.starts_with('#'))
    {
        let example = match line.split_once(" = { value = ") {
            None => line.to_string(),
            Some((key, _)) => {
                let value = match key {
                    "ddio" => "false",
                    "pcie_mtu" | "bank_stride" | "line" => "\"128 B\"",
                    _ if key.contains("bandwidth") || key.ends_with("_rate") || key == "rate" => {
                        "\"200 Gbit/s\""
                    }
                    _ if key.ends_with("_time") || key.ends_with("latency") || key == "delay" => "\"300 ns\"",
                    _ if key == "frequency" => "\"2 GHz\"",
                    _ if key.starts_with("capacity") || key == "above" => "\"1 GiB\"",
                    _ => "8",
                };
                format!("{key} = {{ value = {value}, source = \"s\", provenance = \"datasheet\" }}")
            }
        };
        richer += &format!("{example}\n");
        // Which number a kind of work has depends on what is counted, so that the file shows all as remarks.
        if example.starts_with("work = \"md5\"") {
            richer += "byte_rate = { value = \"8 Gbit/s\", source = \"s\", provenance = \"datasheet\" }\n";
        }
    }
    let system = load("mine", &richer).unwrap_or_else(|error| panic!("{error:?}\n{richer}"));
    let server = system.machine("server").expect("the card's machine");
    assert_eq!(server.caches.len(), 1);
    assert!(server.endpoints.iter().any(|endpoint| endpoint.name == "dpa"));
    assert_eq!(server.engines.len(), 3, "dma, regex and ssd");
    // One that is left blank is still refused, by its name.
    let one = text.replacen(known["soc.cores"], all["soc.cores"], 1);
    let error = load("mine", &one).expect_err("a blank");
    assert_eq!(error.to_string(), "`[soc]` lacks values for `cores`");
    // A blank end of an interval is none, and a guess without its interval is refused as ever.
    let no_ends = "cores = { value = 8, low = \"\", high = \"\", source = \"s\", provenance = \"measured\" }";
    let system = load("mine", &text.replacen(known["soc.cores"], no_ends, 1)).expect("a card");
    assert_eq!(system.numbers["soc.cores"].low, None);
    let guess = no_ends.replace("measured", "assumed");
    let error = load("mine", &text.replacen(known["soc.cores"], &guess, 1)).expect_err("a guess");
    assert_eq!(error.to_string(), "`soc.cores` lacks `low` and `high`");
}

#[test]
fn every_number_of_a_draft_has_its_documentation_above_it() {
    let library = Library::builtin();
    let shipped: Vec<String> = library.names(Category::Device).into_iter().map(|one| one.name).collect();
    for base in std::iter::once(None).chain(shipped.iter().map(|name| Some(name.as_str()))) {
        let text = library.draft("mine", base).expect("a file");
        let lines: Vec<&str> = text.lines().collect();
        let found = numbers(&text);
        assert!(found.len() > 15);
        for line in found.values() {
            let at = lines.iter().position(|own| own == line).expect("a line of the file");
            let above = lines[at - 1];
            assert!(above.starts_with("# ") && above.ends_with(')') && above.len() > 20, "{above}\n{line}");
        }
    }
}

/// What is carried over says the same as a copy under another name: the same values, each a guess with an interval.
#[test]
fn a_draft_from_a_card_claims_what_a_copy_claims_and_marks_it() {
    let library = Library::builtin();
    for listed in library.names(Category::Device) {
        let base = &listed.name;
        let draft = load("mine", &library.draft("mine", Some(base)).expect("a file")).expect(base);
        let text = library.source(Category::Device, base).expect("it ships");
        let copy = text.replacen(&format!("name = \"{base}\""), "name = \"mine\"", 1);
        let copy = load("mine", &copy).expect(base);
        assert_eq!(
            (&draft.mode, &draft.testbed, &draft.variants),
            (&copy.mode, &copy.testbed, &copy.variants)
        );
        assert_eq!(draft.numbers.len(), copy.numbers.len());
        for (name, number) in &draft.numbers {
            let other = &copy.numbers[name];
            assert_eq!(
                (number.value, number.low, number.high),
                (other.value, other.low, other.high),
                "{name}"
            );
            if number.file != "devices/mine.toml" {
                continue;
            }
            match number.provenance {
                Provenance::CarriedOver => assert!(number.source.starts_with(&format!("{base}: ")), "{name}"),
                // The framing of PCIe is a standard's, which holds for every card; what a vendor says of another is not.
                Provenance::Datasheet => {
                    assert!(number.rows.is_empty(), "{name}");
                    let key = name.rsplit_once('.').expect("a dotted name").1;
                    assert!(
                        ["encoding", "write_header", "read_request", "completion_header"].contains(&key),
                        "{name}"
                    );
                }
                other => panic!("{name} is {other} of a card of which nothing is known"),
            }
            assert!(other.provenance.is_guess() == number.provenance.is_guess(), "{name}");
            // A zero of another card is drawn as a guess too.
            let was_known = !base_of(&library, base).numbers[name].provenance.is_guess();
            if was_known && number.provenance == Provenance::CarriedOver && number.low.is_some() {
                let end = |end: Option<offpath_quantity::Quantity>| end.map(|end| end.base());
                assert!(end(number.low) < end(number.high), "{name}: {:?} to {:?}", number.low, number.high);
            }
        }
    }
}

fn base_of(library: &Library, base: &str) -> System {
    library.load(&SystemRequest { device: base, ..SystemRequest::default() }).expect(base)
}

/// A card of a shipped make has what the vendor says of that make, as a fact that still says whose it is.
#[test]
fn a_draft_of_a_shipped_make_keeps_what_its_vendor_says() {
    let draft = Library::builtin().draft_of_same("mine", "connectx7").expect("a file");
    let draft = load("mine", &draft).expect("a card");
    let number = &draft.numbers["nic.outstanding_reads"];
    assert_eq!(number.provenance, Provenance::Datasheet);
    assert_eq!(number.source, "connectx7: max_qp_rd_atom of mlx5 devices");
}

/// What a user knows of one card is not knowledge about the next, whatever it rests on.
#[test]
fn a_draft_from_a_file_carries_everything_over() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/invented.toml");
    let library = Library::builtin();
    let draft = load("mine", &library.draft("mine", Some(file)).expect("a file")).expect("a card");
    let base = library.load(&SystemRequest { device: file, ..SystemRequest::default() }).expect("a card");
    let mut own = 0;
    for (name, number) in draft.numbers.iter().filter(|(_, number)| number.file == "devices/mine.toml") {
        own += 1;
        assert_eq!(number.value, base.numbers[name].value, "{name}");
        let key = name.rsplit_once('.').expect("a dotted name").1;
        let is_standard = ["encoding", "write_header", "read_request", "completion_header"].contains(&key)
            && base.numbers[name].provenance == Provenance::Datasheet;
        let expected = if is_standard { Provenance::Datasheet } else { Provenance::CarriedOver };
        assert_eq!(number.provenance, expected, "{name}");
    }
    assert!(own > 60, "{own}");
}

/// Of the very card that a file describes everything stays what it is, but for what was published of another one.
#[test]
fn a_draft_of_the_same_card_keeps_its_facts() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/invented.toml");
    let library = Library::builtin();
    let draft = load("mine", &library.draft_of_same("mine", file).expect("a file")).expect("a card");
    let base = library.load(&SystemRequest { device: file, ..SystemRequest::default() }).expect("a card");
    let mut facts = 0;
    for (name, number) in draft.numbers.iter().filter(|(_, number)| number.file == "devices/mine.toml") {
        let own = &base.numbers[name];
        if own.rows.is_empty() {
            facts += u32::from(!own.provenance.is_guess());
            let all =
                |of: &offpath_profile::Number| (of.value, of.low, of.high, of.provenance, of.source.clone());
            assert_eq!(all(number), all(own), "{name}");
        } else {
            assert_eq!((number.value, number.provenance), (own.value, Provenance::CarriedOver), "{name}");
        }
    }
    assert!(facts > 5, "{facts}");
    assert!(library.draft_of_same("bluefield2", file).is_err(), "it ships");
}

#[test]
fn names_that_would_mislead_and_bases_that_do_not_load_are_refused() {
    let library = Library::builtin();
    let error = library.draft("bluefield2", None).expect_err("it ships");
    assert!(error.to_string().contains("there is a device `bluefield2` already"), "{error:?}");
    assert!(library.draft("card", None).expect_err("reserved").to_string().contains("stands for"));
    for odd in ["", "a\nb", "my card", "ü"] {
        assert!(library.draft(odd, None).expect_err(odd).to_string().contains("is not a name"), "{odd:?}");
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/invented.toml");
    let error = library.draft("invented", Some(file)).expect_err("its own name");
    assert!(error.to_string().ends_with("is called `invented` itself"), "{error:?}");
    let error = library.draft("mine", Some("bluefeild2")).expect_err("a slip");
    assert!(error.next_step().contains("did you mean `bluefield2`"), "{error:?}");
}

/// A copy of a card claims as little whatever it calls the card's processor.
#[test]
fn another_name_of_a_component_makes_nothing_better_known() {
    let source = Library::builtin();
    let source = source.source(Category::Device, "bluefield2").expect("it ships");
    let copy = source.replace("name = \"bluefield2\"", "name = \"own\"");
    let provenances = |text: &str| -> BTreeMap<String, Provenance> {
        let system = load("own", text).expect("it loads");
        system.numbers.iter().map(|(name, number)| (name.replace("soc", "arm"), number.provenance)).collect()
    };
    assert_eq!(provenances(&copy.replace("soc", "arm")), provenances(&copy));
}
