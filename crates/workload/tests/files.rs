//! What is read from workload files, and what is refused.

use std::collections::BTreeMap;
use std::path::PathBuf;

use miette::Diagnostic;
use offpath_workload::properties::{parse, write_property};
use offpath_workload::*;
use proptest::prelude::*;

fn shipped(name: &str) -> Workload {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name);
    Workload::load(path).unwrap()
}

fn pairs(text: &str) -> Vec<(String, String)> {
    parse(text).unwrap().into_iter().map(|entry| (entry.key, entry.value)).collect()
}

fn pair(key: &str, value: &str) -> Vec<(String, String)> {
    vec![(key.to_owned(), value.to_owned())]
}

#[test]
fn properties_are_read_as_java_reads_them() {
    for (text, key, value) in [
        ("a=b", "a", "b"),
        ("a : b", "a", "b"),
        ("a b", "a", "b"),
        ("  a\t=\x0cb ", "a", "b "),
        ("a", "a", ""),
        ("a==b", "a", "=b"),
        ("=b", "", "b"),
        ("a\\ \\=\\:c=b", "a =:c", "b"),
        ("# no\\\na=b", "a", "b"),
        ("! no\r\n\r\na=b\r\n", "a", "b"),
        ("a=b\\\n   c\\\r\n\td", "a", "bcd"),
        ("a=b\\\n# c", "a", "b# c"),
        ("a=b\\\\\n", "a", "b\\"),
        ("a=b\\\n\n", "a", "b"),
        ("a=\\t\\n\\r\\f\\q\\u0041\\ud83d\\ude00", "a", "\t\n\r\x0cqA😀"),
        ("a=b\\", "a", "b"),
        ("\\\n# x=y\na=b", "a", "b"),
        ("  \\\n  a=b", "a", "b"),
    ] {
        assert_eq!(pairs(text), pair(key, value), "{text:?}");
    }
    assert_eq!(pairs("\n  \n# a=b\n   ! c"), []);
    assert_eq!(parse("x=1\ny=\\u12g4").unwrap_err().line, 2);
    let entry = &parse("# one\n\nkey = the \\\n value").unwrap()[0];
    assert_eq!((entry.line, &entry.value, entry.span.clone()), (3, &"the value".to_owned(), 13..25));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = Workload::parse(&text, "any");
    }

    #[test]
    fn any_text_of_special_characters_has_spans_inside(text in "[\\\\#!=: \t\r\nau0é]{0,40}") {
        for entry in parse(&text).unwrap_or_default() {
            prop_assert!(text.get(entry.span).is_some());
        }
    }

    #[test]
    fn any_value_of_any_key_is_read_or_refused(key in 0..KEYS.len(), value in any::<String>(), number in any::<f64>()) {
        for value in [value, number.to_string(), (number as i64).to_string()] {
            let text = format!("{}{}", write_property("recordcount", "10"), write_property(KEYS[key].name, &value));
            let _ = Workload::parse(&text, "any").map(|workload| {
                KeyChooser::new(&workload);
                workload.mean_record_bytes()
            });
        }
    }

    #[test]
    fn what_is_written_is_read_back(written in prop::collection::vec(any::<(String, String)>(), 0..8)) {
        let text: String = written.iter().map(|(key, value)| write_property(key, value)).collect();
        prop_assert!(text.is_ascii());
        prop_assert_eq!(pairs(&text), written);
    }
}

#[test]
fn defaults_are_those_of_the_table() {
    let bare = Workload::parse("recordcount=1000", "bare").unwrap();
    let mut all = String::from("recordcount=1000\n");
    for key in KEYS {
        all.extend(key.default.map(|default| write_property(key.name, default)));
    }
    let written = Workload::parse(&all, "bare").unwrap();
    let seen = |workload: &Workload| {
        let text = format!("{workload:?}");
        text.split(", warnings").next().unwrap().to_owned()
    };
    assert_eq!(seen(&bare), seen(&written));
    assert!(written.warnings().is_empty());
    assert_eq!(bare.request_distribution, RequestDistribution::Uniform);
    assert_eq!((bare.max_scan_length, bare.insert_count, bare.field_length_bytes), (1000, 1000, 100));
}

#[test]
fn shipped_workloads_have_the_mixes_of_ycsb() {
    use ClientOperation::*;
    let expected = [
        ("workloada", vec![(Read, 0.5), (Update, 0.5)], RequestDistribution::Zipfian),
        ("workloadb", vec![(Read, 0.95), (Update, 0.05)], RequestDistribution::Zipfian),
        ("workloadc", vec![(Read, 1.0)], RequestDistribution::Zipfian),
        ("workloadd", vec![(Read, 0.95), (Insert, 0.05)], RequestDistribution::Latest),
        ("workloade", vec![(Insert, 0.05), (Scan, 0.95)], RequestDistribution::Zipfian),
        ("workloadf", vec![(Read, 0.5), (ReadModifyWrite, 0.5)], RequestDistribution::Zipfian),
    ];
    for (name, mix, distribution) in expected {
        let workload = shipped(name);
        assert_eq!(workload.warnings(), [], "{name}");
        assert_eq!((workload.record_count, workload.operation_count), (1000, 1000), "{name}");
        assert_eq!(workload.request_distribution, distribution, "{name}");
        assert_eq!(workload.mean_record_bytes(), 1000.0, "{name}");
        for operation in ClientOperation::ALL {
            let share = mix.iter().find(|(given, _)| *given == operation).map_or(0.0, |&(_, share)| share);
            assert!((workload.mix.share(operation) - share).abs() < 1e-15, "{name} {operation}");
        }
    }
    assert_eq!(shipped("workloade").max_scan_length, 100);
}

#[test]
fn proportions_are_normalised() {
    let text = "recordcount=9\nreadproportion=3\nupdateproportion=1";
    let mix = Workload::parse(text, "mine").unwrap().mix;
    assert_eq!((mix.share(ClientOperation::Read), mix.share(ClientOperation::Update)), (0.75, 0.25));
    assert_eq!(mix.proportion(ClientOperation::Read), 3.0);
}

#[test]
fn unknown_and_repeated_keys_warn() {
    let text = "recordcount=10\nrequestdistributon=latest\nmeasurement.raw.output_file=x\nzorkmid=1\nrecordcount=20\n";
    let workload = Workload::parse(text, "mine").unwrap();
    let messages: Vec<String> = workload.warnings().iter().map(Warning::to_string).collect();
    assert_eq!(
        messages,
        [
            "mine:2: unknown key `requestdistributon` is ignored; did you mean `requestdistribution`?",
            "mine:4: unknown key `zorkmid` is ignored",
            "mine:5: `recordcount` replaces its value of line 1",
        ]
    );
    assert_eq!(workload.warnings()[0].nearest_key(), Some("requestdistribution"));
    assert_eq!(workload.record_count, 20);
}

/// Who writes `readproportion=1` alone has 4.8% updates, by YCSB's defaults.
#[test]
fn a_proportion_by_default_beside_written_ones_warns() {
    let messages = |text: &str| -> Vec<String> {
        let workload = Workload::parse(&format!("recordcount=10\n{text}"), "mine").unwrap();
        workload.warnings().iter().map(Warning::to_string).collect()
    };
    let by_default = |key: &str, default: &str, share: &str| {
        format!(
            "mine: `{key}` is not written, and YCSB's default is {default}, which makes it {share} of the operations; \
             write {key}=0 for none"
        )
    };
    assert_eq!(messages("readproportion=1"), [by_default("updateproportion", "0.05", "4.8%")]);
    assert_eq!(messages("updateproportion=1"), [by_default("readproportion", "0.95", "48.7%")]);
    assert_eq!(messages("readproportion=1\nupdateproportion=0"), [""; 0]);
    // Whoever writes no mix asks for YCSB's.
    assert_eq!(messages(""), [""; 0]);
    let alone = Workload::parse("recordcount=10\nreadproportion=1", "mine").unwrap();
    let written = BTreeMap::from([("updateproportion".to_owned(), "0".to_owned())]);
    assert_eq!(alone.with_overrides(written).unwrap().warnings(), []);
    let other = BTreeMap::from([("recordcount".to_owned(), "20".to_owned())]);
    assert_eq!(alone.with_overrides(other).unwrap().warnings(), alone.warnings());
}

#[test]
fn bad_values_name_file_line_key_value_bound_and_next_step() {
    for (text, message, help) in [
        ("recordcount=0", "mine:1: recordcount=0: must be a whole number from 1", "write recordcount=1000"),
        ("x=1", "mine: `recordcount` is missing", "write recordcount=1000"),
        ("recordcount=10 ", "mine:1: recordcount=10 : must be a whole", "remove the blank at the end"),
        ("recordcount=9\nreadproportion=-1", "mine:2: readproportion=-1: must be a number from 0", "=0.95"),
        ("recordcount=9\nreadproportion=NaN", "mine:2: readproportion=NaN: must be a number", "=0.95"),
        (
            "recordcount=9\nreadproportion=0\nupdateproportion=0",
            "mine:2: readproportion=0: all five proportions are 0",
            "above 0",
        ),
        ("recordcount=9\nrequestdistribution=zipf", "must be one of uniform, zipfian", "=zipfian"),
        ("recordcount=9\nreadallfields=yes", "mine:2: readallfields=yes: must be true or false", "=true"),
        ("recordcount=9\nworkload=my.Own", "mine:2: workload=my.Own: only the core workload", "CoreWorkload"),
        ("recordcount=9\ninsertstart=9", "mine:2: insertstart=9: must be a whole number from 0 to 8", "=0"),
        ("recordcount=9\ninsertstart=4\ninsertcount=6", "from 1 to 5", "insertcount=5"),
        ("recordcount=9\nminscanlength=2000", "at most maxscanlength, which is 1000", "raise maxscanlength"),
        (
            "recordcount=3\nrequestdistribution=hotspot",
            "mine (by default): hotspotdatafraction=0.2: no record of 3",
            "raise",
        ),
        (
            "recordcount=3\nrequestdistribution=zipfian\ninsertproportion=1",
            "mine: `operationcount` is missing",
            "write operationcount",
        ),
        ("recordcount=3\ndataintegrity=true\nfieldlengthdistribution=uniform", "one length", "constant"),
        ("recordcount=3\nx=\\u00", "mine is not a Java property file", "four hexadecimal"),
    ] {
        let error = Workload::parse(text, "mine").map(|_| ()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(message), "{text:?} gave {said:?}");
        let advised = error.help().unwrap().to_string();
        assert!(advised.contains(help), "{text:?} gave help {advised:?}");
    }
    let error = Workload::load("no/such/file").unwrap_err();
    assert!(error.to_string().contains("no/such/file"));
}

#[test]
fn the_label_stands_under_the_value() {
    let text = "# head\nrecordcount = many\n";
    let error = Workload::parse(text, "mine").unwrap_err();
    let label = error.labels().unwrap().next().unwrap();
    assert_eq!(&text[label.offset()..label.offset() + label.len()], "many");
}

#[test]
fn overrides_replace_and_are_checked() {
    let workload = shipped("workloada");
    let with = |key: &str, value: &str| {
        workload.with_overrides(BTreeMap::from([(key.to_owned(), value.to_owned())]))
    };
    let larger = with("recordcount", "5000").unwrap();
    assert_eq!((larger.record_count, larger.insert_count), (5000, 5000));
    assert!(larger.warnings().is_empty());
    assert_eq!(larger.request_distribution, RequestDistribution::Zipfian);
    let error = with("recordcount", "-5").unwrap_err();
    assert!(error.to_string().starts_with("overrides:1: recordcount=-5: "), "{error}");
    let warning = with("recordcuont", "5").unwrap().warnings()[0].clone();
    assert_eq!((warning.file.as_str(), warning.nearest_key()), ("overrides", Some("recordcount")));
}
