//! Files of `offpath measure`: which of them are whole.

mod common;

use common::read;
use offpath_logs::RemarkKind;

/// A file whose stamp states three points, of which one is skipped.
fn file(points: &str) -> String {
    let point = |name: &str| {
        format!(
            "{{\"point\":\"{name}\",\"path\":\"client-host\",\"verb\":\"read\",\"kind\":\"bandwidth\",\"payload_bytes\":64,\
             \"queue_pairs\":1,\"windows\":[],\"operations_per_s_median\":2967359.1}}\n"
        )
    };
    format!(
        "{{\"offpath_measure\":1,\"command\":\"offpath measure verbs -o a.jsonl\",\"device\":\"nic_0\"{points}}}\n{}{}{}",
        point("one"),
        "{\"skipped\":\"two\",\"why\":\"a process on verbs posts from one thread\"}\n",
        point("three")
    )
}

/// Every prefix of a file that states its points is told from the whole one, wherever it was cut.
#[test]
fn a_file_that_lacks_points_is_unended() {
    let whole = file(",\"suite_points\":3");
    assert_eq!(read(&whole).remarked(RemarkKind::Unended), [0; 0]);
    let ends: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    for (rows, end) in ends[..3].iter().enumerate() {
        for cut in [*end, end + 1, end + 20] {
            let found = read(&whole[..cut]);
            assert_eq!(found.remarked(RemarkKind::Unended), [rows as u64 + 1], "{}", &whole[..cut]);
            let why =
                &found.remarks.iter().find(|one| one.kind == RemarkKind::Unended).expect("it is there").why;
            assert!(
                why.contains(&format!("{} of the 3 points", 3 - rows))
                    && why.contains("`offpath measure verbs -o a.jsonl`"),
                "{why}"
            );
        }
    }
    // A line without its end is whole where its brackets are.
    assert_eq!(read(whole.trim_end()).remarked(RemarkKind::Unended), [0; 0]);
    // A point that failed is told as that alone, also where it is tried again.
    let failed = whole.replacen("{\"skipped\":\"two\",", "{\"failed\":\"two\",", 1);
    let again = format!("{failed}{}", "{\"skipped\":\"two\",\"why\":\"it is beyond the device\"}\n");
    for text in [&failed, &again] {
        let found = read(text);
        assert_eq!(found.remarked(RemarkKind::Unended), [0; 0]);
        assert_eq!((found.remarked(RemarkKind::Failure), found.account.failed), (vec![3], 1));
    }
    // Of two files behind each other each is held to its own stamp.
    let both = format!("{}{whole}", &whole[..ends[1]]);
    assert_eq!(read(&both).remarked(RemarkKind::Unended), [2]);
}

/// A file that does not state its points is told where it ends within a line.
#[test]
fn a_line_that_is_cut_is_told_without_a_number_of_points() {
    let whole = file("");
    assert_eq!(read(&whole).remarked(RemarkKind::Unended), [0; 0]);
    let cut = &whole[..whole.len() - 10];
    assert_eq!(read(cut).remarked(RemarkKind::Unended), [3], "{cut}");
}
