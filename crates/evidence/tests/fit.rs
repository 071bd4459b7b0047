//! The fit of the shipped rows gives the shipped profiles, and reads nothing else.

use offpath_evidence::fit::{Effort, LeftOut, fit, readable, under_variants};
use offpath_evidence::{Claim, RowRole, free_parameters, shipped, write};
use offpath_profile::{Category, Library};
use std::collections::BTreeSet;

const PROFILES: [(Category, &str); 3] =
    [(Category::Device, "devices"), (Category::Host, "hosts"), (Category::Testbed, "testbeds")];

fn source<'l>(library: &'l Library, file: &str) -> &'l str {
    let (directory, name) =
        file.trim_start_matches("profiles/").split_once('/').expect("a file in a directory");
    let (category, _) = PROFILES.iter().find(|(_, own)| *own == directory).expect("a directory of profiles");
    library.source(*category, name.trim_end_matches(".toml")).expect("the profile ships")
}

#[test]
fn only_rows_of_role_fit_can_be_reached_and_of_the_case_studies_only_four_numbers() {
    let rows = shipped().expect("the rows are accepted");
    let (read, through) = readable(&rows);
    assert!(read.len() > 35, "only {} rows", read.len());
    assert!(read.iter().all(|row| row.role == RowRole::Fit));
    let studies: BTreeSet<&str> =
        read.iter().filter(|row| row.source.contains("§5")).map(|row| row.id.as_str()).collect();
    assert_eq!(studies, BTreeSet::from(["W239", "W254", "W265", "W273/W275"]));
    let parts: Vec<&str> = through.iter().map(|(part, _)| part.as_str()).collect();
    assert_eq!(parts, ["W273", "W275"]);
}

#[test]
fn the_free_parameters_are_the_numbers_that_profiles_call_fitted() {
    let library = Library::builtin();
    let mut fitted = BTreeSet::new();
    for (category, directory) in PROFILES {
        for listed in library.names(category) {
            let text = library.source(category, &listed.name).expect("it ships");
            let document: toml::Table = text.parse().expect("a profile is TOML");
            for (table, keys) in document.iter().filter_map(|(name, value)| Some((name, value.as_table()?))) {
                for (key, number) in keys {
                    if number.get("provenance").and_then(|provenance| provenance.as_str()) == Some("fitted") {
                        fitted.insert(format!("profiles/{directory}/{}.toml {table}.{key}", listed.name));
                    }
                }
            }
        }
    }
    let specification = free_parameters().expect("the specification is accepted");
    let free: BTreeSet<String> = specification
        .parameters
        .iter()
        .flat_map(|one| std::iter::once(&one.place).chain(&one.also))
        .map(|place| format!("{} {}", place.file, place.key))
        .collect();
    // Rows leave these two anywhere between their bounds, so that the fit's values of them are assumed.
    let unidentified: BTreeSet<String> = free.difference(&fitted).cloned().collect();
    let expected = [
        "profiles/devices/bluefield2.toml host_verbs.batch_fixed_time",
        "profiles/testbeds/rack-cli.toml network.packet_header",
        "profiles/testbeds/rack.toml network.packet_header",
    ];
    assert_eq!(unidentified, expected.map(str::to_string).into());
    assert!(fitted.is_subset(&free), "{fitted:?}");
}

/// A bound of one side leaves the other end to whoever wrote the number down: that is an assumption.
#[test]
fn no_number_is_called_fitted_that_rows_hold_at_one_side_alone() {
    let published = shipped().expect("the rows are accepted");
    let library = Library::builtin();
    let mut looked_at = 0;
    for (category, directory) in PROFILES {
        for listed in library.names(category) {
            let text = library.source(category, &listed.name).expect("it ships");
            let document: toml::Table = text.parse().expect("a profile is TOML");
            for (table, keys) in document.iter().filter_map(|(name, value)| Some((name, value.as_table()?))) {
                for (key, number) in keys {
                    if number.get("provenance").and_then(toml::Value::as_str) != Some("fitted") {
                        continue;
                    }
                    let rows = number.get("rows").and_then(toml::Value::as_array);
                    let rows: Vec<&str> =
                        rows.into_iter().flatten().filter_map(toml::Value::as_str).collect();
                    let sides = rows.iter().flat_map(|id| {
                        let row = published
                            .iter()
                            .find(|row| row.id == *id || row.id.split('/').any(|one| one == *id));
                        match row.unwrap_or_else(|| panic!("{id} of {table}.{key} is not a row")).published {
                            Some(Claim::AtMost(_) | Claim::Below(_)) => vec!["upper"],
                            Some(Claim::AtLeast(_) | Claim::Above(_)) => vec!["lower"],
                            _ => vec!["upper", "lower"],
                        }
                    });
                    let sides: BTreeSet<&str> = sides.collect();
                    assert!(sides.len() == 2, "{directory} {table}.{key} by {rows:?} has {sides:?} alone");
                    looked_at += 1;
                }
            }
        }
    }
    assert!(looked_at >= 30, "only {looked_at} numbers are fitted");
}

#[test]
fn the_fit_gives_the_shipped_profiles_byte_for_byte() {
    let library = Library::builtin();
    let rows = shipped().expect("the rows are accepted");
    let specification = free_parameters().expect("the specification is accepted");
    let effort = Effort { threads: 2, starts: 1, leave_one_out: false };
    let fitted = fit(&library, &rows, &specification, &effort).expect("there is a fit");
    for file in write::files(&fitted) {
        let text = source(&library, &file);
        let again = write::write(text, &fitted, &file).expect("the profile takes the numbers");
        assert!(again == text, "run `offpath fit --write profiles`; {file} would be\n{again}");
    }
    // What stood in the profile before does not matter.
    let file = "profiles/devices/bluefield2.toml";
    let text = source(&library, file);
    let other = text.replace("value = \"157 M/s\", low", "value = \"150 M/s\", low");
    assert_ne!(other, text, "the number is there to be changed");
    assert_eq!(write::write(&other, &fitted, file).expect("it takes the numbers"), text);

    for one in &fitted.parameters {
        let (alone, free, name) = (&one.alone, &one.free, one.parameter.name());
        assert!(alone.low <= one.value && one.value <= alone.high, "{name}: {alone:?}");
        assert!(free.low <= one.value && one.value <= free.high, "{name}: {free:?}");
        assert!(!alone.rows.is_empty(), "{name} rests on no row");
    }
    let missed: Vec<&str> =
        fitted.rows.iter().filter(|row| !row.within).map(|row| row.row.id.as_str()).collect();
    // The network binds W082 to W084 and W103 from 256 B on, inline sends W068; in-flight slots bind W174.
    assert_eq!(
        missed,
        ["W068", "W082", "W083", "W084", "W103", "W174"],
        "the rows that no parameter reaches"
    );
    assert!(fitted.rows.iter().all(|row| row.left_out == LeftOut::NotAsked));

    // A variant is compared with the base at the numbers that the rows leave it: the same, or its overlay multiplies them.
    let refitted =
        under_variants(&library, &rows, &specification, (&fitted, &effort)).expect("there is a fit");
    let overlays: Vec<&str> = refitted.iter().map(|one| one.overlay.as_str()).collect();
    assert_eq!(overlays, ["one-pool"], "the mechanisms that the card leaves open");
    for one in &refitted {
        assert!(one.differs.is_empty(), "{} lets the fit find {:?}", one.overlay, one.differs);
    }
}

/// A variant that touches a number of the fit is told to differ, by as much as its overlay leaves undone.
#[test]
fn a_variant_that_was_not_fitted_again_is_found() {
    let mut library = Library::builtin();
    let half = "[overlay]\nname = \"one-pool\"\ndescription = \"half of the rate\"\n[set]\n\"dma.total_rate\" = { times = 0.5 }\n";
    library.insert(Category::Overlay, "one-pool", half);
    let rows = shipped().expect("the rows are accepted");
    let mut specification = free_parameters().expect("the specification is accepted");
    specification.parameters.retain(|one| one.place.key == "dma.total_rate");
    specification.weights.clear();
    let effort = Effort { threads: 2, starts: 1, leave_one_out: false };
    let fitted = fit(&library, &rows, &specification, &effort).expect("there is a fit");
    let refitted =
        under_variants(&library, &rows, &specification, (&fitted, &effort)).expect("there is a fit");
    let [one] = &refitted[..] else { panic!("the card leaves one mechanism open: {refitted:?}") };
    let [(parameter, value)] = &one.differs[..] else { panic!("its rate is half of what it was: {one:?}") };
    assert!(*value > 1.5 * parameter.value, "{value} in place of {}", parameter.value);
}

#[test]
fn a_row_that_alone_speaks_of_a_number_is_said_to_identify_it() {
    let rows = shipped().expect("the rows are accepted");
    let mut specification = free_parameters().expect("the specification is accepted");
    specification.parameters.retain(|one| one.place.key == "dma.total_rate");
    specification.weights.clear();
    let effort = Effort { threads: 2, starts: 1, leave_one_out: true };
    let fitted = fit(&Library::builtin(), &rows, &specification, &effort).expect("there is a fit");
    let alone: Vec<&str> = fitted
        .rows
        .iter()
        .filter(|row| matches!(row.left_out, LeftOut::Alone(_)))
        .map(|row| row.row.id.as_str())
        .collect();
    assert_eq!(alone, ["W191"]);
    let error = write::write("[dma]\n", &fitted, "profiles/devices/bluefield2.toml")
        .expect_err("it lacks the number");
    assert!(error.to_string().contains("`dma.total_rate`"), "{error}");
}
