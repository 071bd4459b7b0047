//! The shipped rows on the shipped profiles: the score, what a wrong constant does to it, and that
//! the log tells the truth.

use offpath_evidence::experiment::{Compare, Experiment, Measure, Plain};
use offpath_evidence::fit::readable;
use offpath_evidence::judge::judge;
use offpath_evidence::reproduce::{Count, median};
use offpath_evidence::row::restated;
use offpath_evidence::{
    Bench, Beside, Change, Claim, Decided, Inside, Line, Measurement, Row, RowRole, Sort, ValueKind, Verdict,
    Wrong, falsified, figures, missed, reproduce, residual, residuals, shipped, shipped_log, summary,
    variants,
};
use offpath_plan::residual::Widened;
use offpath_profile::{Category, Library, SystemRequest};
use offpath_quantity::{Bytes, Dimension, Quantity};
use offpath_twin::{Seed, unit_of};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

fn lines() -> &'static [Line] {
    static LINES: OnceLock<Vec<Line>> = OnceLock::new();
    LINES.get_or_init(|| {
        let rows = shipped().expect("the rows are in order");
        reproduce(&Library::builtin(), &rows, &[], &[], 2).expect("every experiment runs")
    })
}

fn shipped_rows() -> Vec<Row> {
    shipped().expect("the rows are in order")
}

fn line(id: &str) -> &'static Line {
    lines().iter().find(|line| line.row.id == id).unwrap_or_else(|| panic!("{id} is a row"))
}

#[test]
fn the_score_is_what_is_published() {
    let summary = summary(lines());
    println!("{summary:#?}");
    // Goals are 90% of fitted rows, 75% of measured numbers and 95% of orders; docs/validation.md has
    // the rows that miss. No row leaves a part of the score, or begins to hold or to miss in it, unnoticed.
    let of = |count: Count| (count.within, count.of);
    assert_eq!(of(summary.measured), (2, 18), "{summary:?}");
    assert_eq!(of(summary.orders), (1, 9), "{summary:?}");
    assert_eq!(of(summary.restated), (69, 81), "{summary:?}");
    assert_eq!(of(summary.fitted), (33, 46), "{summary:?}");
    assert_eq!(of(summary.exact), (50, 50), "{summary:?}");
    assert_eq!(of(summary.configured), (149, 151), "{summary:?}");
    assert_eq!((summary.not_modelled, summary.of_scored_kinds), (93, 456), "{summary:?}");
    assert_eq!((of(summary.unfitted), of(summary.unfitted_restated)), ((4, 27), (85, 99)), "{summary:?}");
    // What knows no card stands beside them: no difference where two things are compared, else links alone.
    assert_eq!(of(summary.unfitted_simple), (6, 27), "{summary:?}");
    let by_none = lines().iter().filter(|line| line.sort == Some(Sort::Unfitted));
    let by_none = by_none.filter(|line| line.null_simple_within == Some(true));
    let by_none: Vec<&str> = by_none.map(|line| line.row.id.as_str()).collect();
    assert_eq!(by_none, ["D124", "D162", "D169", "D190", "I101", "I102"]);
    let guesses = [summary.unfitted_measured, summary.covered_unfitted, summary.covered_unfitted_wide];
    assert_eq!(guesses.map(of), [(0, 7), (5, 7), (6, 7)], "{summary:?}");
    assert!((summary.errors.model - 0.2369).abs() < 0.00005, "{summary:?}");
    // With the places, by how far off each lies.
    let measured = lines().iter().filter(|line| line.sort == Some(Sort::Measured));
    let errors: Vec<f64> = measured.filter_map(|line| Some(line.verdict.as_ref()?.error.abs())).collect();
    assert!(errors.len() == 18 && (median(errors.clone()) - 0.271).abs() < 0.0005, "{errors:?}");
    let within = |line: &&Line| line.sort == Some(Sort::Measured) && line.scored() == Some(true);
    let holds: Vec<&str> = lines().iter().filter(within).map(|line| line.row.id.as_str()).collect();
    assert_eq!(holds, ["W002", "W237"]);
}

/// Predictions that rest on the same measurement are no evidence about one another: who is named names the namer and
/// the others, and the page says how many predictions are left where each such group counts once.
#[test]
fn the_page_says_how_many_predictions_are_independent() {
    let measured: Vec<&Row> =
        lines().iter().filter(|line| line.sort == Some(Sort::Measured)).map(|line| &line.row).collect();
    let group = |own: &Row| -> BTreeSet<&str> {
        let with = measured.iter().filter(|other| residual::err_together(own, other));
        with.map(|other| other.id.as_str()).collect()
    };
    let groups: BTreeSet<BTreeSet<&str>> = measured.iter().map(|own| group(own)).collect();
    let members: usize = groups.iter().map(BTreeSet::len).sum();
    assert_eq!(members, measured.len(), "a row is of two groups: {groups:?}");
    let together: Vec<Vec<&str>> =
        groups.iter().filter(|group| group.len() > 1).map(|group| group.iter().copied().collect()).collect();
    assert_eq!(together, [vec!["W001", "W238", "W241"], vec!["W002", "W268", "W273"], vec!["W004", "W154"]]);
    // No error of them is among those that widen another of them.
    let (shipped, rows) = (residual::shipped(), shipped_rows());
    for own in &measured {
        let others: Vec<_> =
            shipped.iter().filter(|one| !group(own).contains(one.row.as_str())).cloned().collect();
        let own_spread = residual::spread(shipped, own, &rows);
        assert_eq!(own_spread, residual::spread(&others, own, &rows), "{}", own.id);
    }
    let page = include_str!("../../../docs/evidence.md").replace('\n', " ");
    let said = format!("{} of the {} are independent", groups.len(), measured.len());
    assert!(page.contains(&said), "docs/evidence.md should say: {said}");
}

/// The rows of log replication by the code of this repository, which `plan` follows, in place of LineFS's step lists.
#[test]
fn the_pages_say_how_many_intervals_hold_by_the_code() {
    let is_of_log = |plain: &Plain| plain.design.as_deref() == Some("replication");
    let mut rows = shipped_rows();
    rows.retain(|row| row.experiment.as_ref().is_some_and(|one| is_of_log(&one.plain)));
    for experiment in rows.iter_mut().filter_map(|row| row.experiment.as_mut()) {
        experiment.plains_mut().for_each(|plain| plain.steps = false);
    }
    let measured = || lines().iter().filter(|line| line.sort == Some(Sort::Measured));
    let mut by_code = reproduce(&Library::builtin(), &rows, &[], &[], 2).expect("every experiment runs");
    by_code.retain(|by| line(&by.row.id).sort == Some(Sort::Measured));
    assert!(by_code.iter().all(|by| by.sort == Some(Sort::Measured)));
    let holds = |line: &Line| line.covered().is_some_and(|(narrow, _)| narrow);
    let left: Vec<&str> = by_code
        .iter()
        .filter(|by| !holds(by) && holds(line(&by.row.id)))
        .map(|by| by.row.id.as_str())
        .collect();
    assert_eq!(left, ["W241"]);
    let elsewhere =
        measured().filter(|line| !rows.iter().any(|row| row.id == line.row.id) && holds(line)).count();
    let inside = elsewhere + by_code.iter().filter(|line| holds(line)).count();
    let all = measured().count();
    let of = by_code.iter().find(|line| line.row.id == "W241").expect("it is run");
    let verdict = of.verdict.as_ref().expect("it is judged");
    let log = format!(
        "W241 is {:.1}% to {:.0}%, and its 41% lies outside of its interval ({:.1} to {:.0}): {inside} of the {all}",
        verdict.from,
        verdict.to,
        of.low.expect("it has an interval"),
        of.high.expect("it has an interval")
    );
    let pages = [
        (include_str!("../../../docs/evidence.md"), format!("[{inside} of {all}](applications.md)")),
        (
            include_str!("../../../docs/applications.md"),
            format!("{inside} of the {all} measured predictions"),
        ),
        (include_str!("../../../evidence/log.toml"), log),
    ];
    for (page, said) in pages {
        assert!(page.replace('\n', " ").contains(&said), "a page should say: {said}");
    }
}

/// How many rows of sun2023 count in the kinds that are scored and are not loaded: 69 orders, 36 measurements, 20 ratios
/// and a threshold are published, of which 12, 0, 10 and 0 are.
#[test]
fn the_page_says_what_share_is_unscored() {
    let summary = summary(lines());
    // All that the papers print is loaded, whatever the program can say of it.
    let of_sun = shipped_rows().iter().filter(|row| row.id.starts_with('S') && !row.derived).count();
    assert_eq!(of_sun, 206);
    let page = include_str!("../../../docs/evidence.md").replace('\n', " ");
    let (of, all) = (summary.not_modelled, summary.of_scored_kinds);
    let said = format!(
        "{of} of {all} rows of the scored kinds are not modelled, {:.1}%",
        100.0 * of as f64 / all as f64
    );
    assert!(page.contains(&said), "docs/evidence.md should say: {said}");
}

/// The mean time of A1 and A5 is what was measured of A4, whatever else the model has of it.
#[test]
fn the_page_has_the_harmonic_mean_beside_the_store() {
    let bench = Bench::new(Library::builtin());
    let rate = |id: &str, alternative: &str| {
        let mut experiment = line(id).row.experiment.clone().expect("it has one");
        experiment.plain.alternative = vec![alternative.to_string()];
        bench.run(&experiment).expect("it runs").points[0].value
    };
    let (first, other) = (
        rate("W268", "A1"),
        rate("W267", &line("W267").row.experiment.as_ref().unwrap().plain.alternative[0]),
    );
    let mean = 2.0 / (1.0 / first + 1.0 / other);
    let page = include_str!("../../../docs/evidence.md").replace('\n', " ");
    let said = format!("own A1 ({first:.2}) and A5-read ({other:.1}) is {mean:.1} where");
    assert!(page.contains(&said), "docs/evidence.md should say: {said}");
    let printed = line("W268").verdict.as_ref().expect("it is run").predicted;
    let said = format!("58.3 was measured and the plan prints {printed:.1}");
    assert!(page.contains(&said), "docs/evidence.md should say: {said}");
}

/// A ratio may be within its tolerance of 1.08 by predicting 1.00: what it is more than 1 is then not seen.
#[test]
fn a_ratio_that_predicts_no_difference_does_not_pass() {
    let verdict = line("W103").verdict.as_ref().expect("it is run");
    assert!(verdict.error.abs() < 0.10 && verdict.from < 1.01, "{verdict:?}");
    assert!(!verdict.within, "{verdict:?}");
}

#[test]
fn intervals_cover_as_often_as_is_published() {
    let summary = summary(lines());
    // Places of a sweep have no interval and count as missed, by which both goals, 75 to 90 and 90 to 98, are missed: this many of
    // all are published. What was fitted is counted by the same rule.
    assert_eq!((summary.covered.of, summary.covered_wide.of, summary.with_interval), (18, 18, 15));
    assert_eq!(summary.covered.of, summary.measured.of);
    assert_eq!(summary.covered_fitted.of, summary.fitted.of);
    assert!(summary.fitted_with_interval < summary.fitted.of, "no number moves some: {summary:?}");
    assert_eq!((summary.covered.within, summary.covered_wide.within), (12, 13), "{summary:?}");
    assert_eq!((summary.covered_fitted.within, summary.fitted_with_interval), (24, 33), "{summary:?}");
    assert_eq!((summary.covered_by_numbers.within, summary.covered_by_numbers.of), (3, 10), "{summary:?}");
    assert_eq!((summary.nearest_within.within, summary.nearest_within.of), (1, 16), "{summary:?}");
    // Of those that have one the 80% intervals hold their goal, and the 95% intervals miss theirs by one row.
    let of_intervals = |count: Count| 100.0 * count.within as f64 / summary.with_interval as f64;
    assert!((75.0..=90.0).contains(&of_intervals(summary.covered)), "{summary:?}");
    assert!(of_intervals(summary.covered_wide) > 85.0, "{summary:?}");
}

/// What nothing moves has no interval; what is predicted of a card that was only guessed at has that of the errors of its
/// like, which is wider than that of the fitted cards' errors alone.
#[test]
fn an_interval_has_two_ends() {
    let (mut without, mut guessed) = (0, 0);
    for line in lines().iter().filter(|line| line.verdict.is_some()) {
        assert_eq!((line.low.is_some(), line.high.is_some()), (line.wide.is_some(), line.wide.is_some()));
        assert!(line.low.zip(line.high).is_none_or(|(low, high)| low < high), "{}", line.row.id);
        if line.sort == Some(Sort::UnfittedRestated) {
            assert_eq!((line.low, line.wide), (None, None), "{}", line.row.id);
        }
        if let (Some(Sort::Unfitted), Some((low, high))) = (line.sort, line.low.zip(line.high)) {
            assert!(line.widened && line.bare.is_none() && high / low > 1.6f64.powi(2), "{}", line.row.id);
            guessed += 1;
        }
        without += usize::from(line.low.is_none());
    }
    assert!(without > 100 && guessed == 7, "{without} {guessed}");
}

/// Few clients carry no more than links do, whatever past predictions were wrong by.
#[test]
fn no_interval_of_few_clients_exceeds_links() {
    // A1 moves a chunk and its compressed copy over the host's PCIe link: 256 Gbit/s over 1 + 1.
    let most = line("W237").wide.expect("it has an interval").1;
    assert!((100.0..=128.0).contains(&most), "{most}");
}

/// A median of thirteen errors says nothing beside one of twelve others.
#[test]
fn medians_stand_side_by_side_over_the_rows_that_both_answer() {
    let errors = summary(lines()).errors;
    let numeric = lines().iter().filter(|line| line.is_numeric());
    let numeric: Vec<&Line> = numeric.collect();
    let nearest = |line: &Line| line.null_nearest.as_ref().map(|(error, _)| *error);
    let simple = |line: &Line| line.null_no_change.or(line.null_links);
    type Null<'n> = &'n dyn Fn(&Line) -> Option<f64>;
    let same_or_nearest = |line: &Line| line.null_no_change.or_else(|| nearest(line));
    let pairs: [(Beside, Null); 5] = [
        (errors.nearest, &nearest),
        (errors.links, &|line| line.null_links),
        (errors.no_change, &|line| line.null_no_change),
        (errors.simple, &simple),
        (errors.no_change_or_nearest, &same_or_nearest),
    ];
    for (beside, other) in pairs {
        let both: Vec<&&Line> = numeric.iter().filter(|line| other(line).is_some()).collect();
        let own = both.iter().map(|line| line.verdict.as_ref().expect("it is judged").error.abs());
        assert_eq!((beside.rows, beside.model), (both.len(), median(own.collect())));
        assert_eq!(beside.other, median(both.iter().filter_map(|line| other(line)).map(f64::abs).collect()));
        assert_eq!(beside.rows, beside.nearer + beside.further + beside.alike);
        // Each model's intervals are made of what its predictions of other rows are wrong by.
        let off = |line: &Line| (1.0 + other(line).expect("it answers")).ln().abs();
        let kind = |line: &Line| residual::kind_of(&line.row);
        let reaches = both.iter().map(|line| {
            let left = both.iter().filter(|one| !residual::err_together(&one.row, &line.row));
            let own = left.clone().filter(|one| kind(one) == kind(line)).count() >= 8;
            let mut sizes: Vec<f64> =
                left.filter(|one| !own || kind(one) == kind(line)).map(|one| off(one)).collect();
            sizes.push(sizes.iter().copied().fold(0.0, f64::max));
            sizes.sort_by(f64::total_cmp);
            // Of a symmetric distribution a tenth lies above where four fifths of the sizes lie below.
            Widened::new(vec![(1.0, f64::INFINITY)], &sizes).quantile(0.9).ln()
        });
        let reaches: Vec<f64> = reaches.collect();
        let covered = both.iter().zip(&reaches).filter(|(line, reach)| off(line) <= **reach).count();
        assert_eq!(beside.covered_other, covered);
        assert!(covered < both.len(), "the one that is furthest off lies outside of what the others teach");
        let reach = median(reaches.iter().map(|reach| reach.exp() - 1.0).collect());
        assert!((beside.reach_other - reach).abs() < 1e-12, "{} and {reach}", beside.reach_other);
        let own = both.iter().filter(|line| {
            let published = line.verdict.as_ref().and_then(|verdict| verdict.published).expect("a number");
            line.low.is_some_and(|low| low <= published) && line.high.is_some_and(|high| published <= high)
        });
        assert_eq!(beside.covered, own.count());
    }
    assert_eq!(errors.rows, numeric.len());
    assert_eq!(errors.nearest.rows, errors.rows, "the nearest row answers all");
    assert_eq!(errors.nearest.rows, errors.nearest_where_links.rows + errors.nearest_elsewhere.rows);
}

/// A ratio at which two things break even compares none, and none was measured.
#[test]
fn a_threshold_has_no_reference_that_sees_no_difference_and_teaches_no_error() {
    let thresholds = lines().iter().filter(|line| residual::is_threshold(&line.row));
    let thresholds: BTreeSet<&str> = thresholds
        .map(|line| {
            assert_eq!(line.null_no_change, None, "{}", line.row.id);
            line.row.id.as_str()
        })
        .collect();
    assert!(thresholds.contains("W234") && thresholds.contains("W126"), "{thresholds:?}");
    assert!(line("W240").null_no_change.is_some(), "a change compares two");
    let rows = shipped_rows();
    for one in residuals(lines()) {
        assert!(!thresholds.contains(one.row.as_str()), "{} teaches an error", one.row);
        let row = &line(&one.row).row;
        assert!(residual::is_measured(row, &rows), "{} widens and is not widened", one.row);
    }
}

#[test]
fn of_no_rows_there_is_no_share() {
    assert_eq!(Count::default().percent(), None);
    assert_eq!(Count { within: 1, of: 4 }.percent(), Some(25.0));
}

/// What an experiment runs and what that is compared with, all its parts together.
fn own_of(experiment: &Experiment) -> impl Iterator<Item = &Plain> {
    experiment.parts().map(|part| &part.plain)
}

fn compared_of(experiment: &Experiment) -> impl Iterator<Item = &Plain> {
    experiment.parts().flat_map(|part| &part.against)
}

const PATHS: [&str; 6] =
    ["client-host", "client-soc", "soc-host", "host-soc", "soc-host-dma", "host-soc-dma"];
const PLAIN_NIC: &str = "the plain NIC";

/// The paths that words name, and the plain NIC where they name it.
fn paths_in(words: &str) -> BTreeSet<&str> {
    let is_path = |word: &&str| PATHS.contains(word);
    let named = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(is_path);
    named.chain(words.contains(PLAIN_NIC).then_some(PLAIN_NIC)).collect()
}

/// The paths that are run, by the card or by the plain NIC, which has one.
fn paths_of<'a>(plains: impl Iterator<Item = &'a Plain>) -> BTreeSet<&'a str> {
    let of = |plain: &'a Plain| {
        let paths = plain.path.iter().chain(plain.together.iter().map(|flow| &flow.path));
        paths.map(|path| if plain.device == "connectx6" { PLAIN_NIC } else { path.as_str() })
    };
    plains.flat_map(of).collect()
}

/// The verbs that are run. A SEND of wei2023 is an echo: its responder answers each with a SEND of its own (§3).
fn verbs_of<'a>(plains: impl Iterator<Item = &'a Plain>) -> BTreeSet<&'a str> {
    let of =
        |plain: &'a Plain| plain.verb.iter().chain(plain.together.iter().filter_map(|f| f.verb.as_ref()));
    let named = plains.flat_map(of).map(|verb| match verb.as_str() {
        "read" => "READ",
        "write" => "WRITE",
        "echo" => "SEND",
        _ => "one-way SEND",
    });
    named.collect()
}

/// How many clients a row states before `word`, as in `8 clients`.
fn count_before(words: &str, word: &str) -> Option<u64> {
    let (before, _) = words.split_once(word)?;
    before.trim_end().rsplit(' ').next()?.parse().ok()
}

/// Why an experiment does not run what its row states: cards, paths, verbs, alternatives and clients.
fn not_as_stated(row: &Row) -> Vec<String> {
    let Some(experiment) = &row.experiment else { return Vec::new() };
    let mut wrong = Vec::new();
    let mut held = |is: bool, what: String| {
        if !is {
            wrong.push(format!("{}: {what}", row.id));
        }
    };
    let (own, against) = row.states.split_once("; against ").unwrap_or((&row.states, ""));
    let (claim, _) = own.split_once(',').unwrap_or((own, ""));
    let (what, on) = claim.split_once(" on ").unwrap_or((claim, ""));
    let verbs = what.split_once(" of ").map_or("", |(_, verbs)| verbs);
    // Payloads of 1 MiB are more than the datagram that section 3 echoes.
    let is_one_way = row.id == "W125";
    let verbs: BTreeSet<&str> = verbs
        .split([' ', ','])
        .filter(|verb| ["READ", "WRITE", "SEND"].contains(verb))
        .map(|verb| if is_one_way && verb == "SEND" { "one-way SEND" } else { verb })
        .collect();
    let plain = &experiment.plain;
    if plain.design.is_none() && !plain.measure.is_number() {
        let (stated, run) = (paths_in(on), paths_of(own_of(experiment)));
        held(stated.is_empty() || stated == run, format!("states {stated:?} and runs {run:?}"));
        // What no verb is said of holds of both that need no processor at the other side.
        let any = BTreeSet::from(["READ", "WRITE"]);
        let run = verbs_of(own_of(experiment));
        // Nor does a row without a verb speak of messages that nobody answers.
        let none = run.is_superset(&any) && !run.contains("one-way SEND");
        let is = if verbs.is_empty() { none } else { run == verbs };
        held(is || stated.is_empty(), format!("states {verbs:?} and runs {run:?}"));
        if compared_of(experiment).next().is_some() {
            let (stated, run) =
                (paths_in(against), paths_of(own_of(experiment).chain(compared_of(experiment))));
            held(stated.is_subset(&run), format!("is against {stated:?} and runs {run:?}"));
        }
    }
    // `kvA2|A3` is each, `kvA4+A5` a mix of both.
    let system = on.strip_prefix("kv").or(on.strip_prefix("lfs"));
    if let Some(system) = system.filter(|_| plain.design.is_some()) {
        let mut run: BTreeSet<String> = BTreeSet::new();
        for plain in own_of(experiment) {
            let shares = plain.shares.iter().flat_map(|shares| shares.keys());
            let named = plain.alternative.iter().chain(shares).chain(&plain.mix);
            run.extend(named.flat_map(|name| name.split('+')).map(|name| name[..2].to_string()));
        }
        let stated: BTreeSet<String> = system.split(['|', '+']).map(str::to_string).collect();
        // The end of a mix's sweep is one of its parts alone.
        let is = if plain.shares.is_empty() { run == stated } else { run.is_subset(&stated) };
        held(is, format!("states {stated:?} and runs {run:?}"));
        held(!system.contains('+') || plain.alternative.is_empty(), "states a mix".to_string());
    }
    let count_of = |plain: &Plain| plain.set.get("client.count").and_then(|count| count.parse::<u64>().ok());
    for word in [" clients", " YCSB threads"] {
        let Some(count) = count_before(own, word) else { continue };
        let run = own_of(experiment).chain(compared_of(experiment)).all(|plain| plain.clients == [count]);
        held(run, format!("states {count}{word} and runs {:?}", plain.clients));
    }
    if ["different client counts", "all client counts"].iter().any(|words| own.contains(words)) {
        held(
            own_of(experiment).all(|plain| plain.clients.len() > 1),
            "states many client counts".to_string(),
        );
    }
    for word in [" requester machines on ", " requesters of "] {
        let Some(count) = count_before(own, word) else { continue };
        held(own_of(experiment).all(|plain| count_of(plain) == Some(count)), format!("states {count}{word}"));
    }
    if own.contains("up to 11 ") {
        held(
            own_of(experiment).all(|plain| count_of(plain).is_none()),
            "states up to 11 machines".to_string(),
        );
    }
    if let Some(count) = count_before(own, " requesters on one responder") {
        let run = compared_of(experiment).all(|plain| count_of(plain) == Some(count));
        held(run, format!("states {count} requesters of what it is against"));
    }
    if own.contains("half of the clients to each") {
        let flows = |plain: &Plain| plain.together.iter().map(|flow| flow.in_flight).collect::<Vec<_>>();
        let total = |plain: &Plain| flows(plain).into_iter().flatten().sum::<u32>();
        held(flows(plain).windows(2).all(|two| two[0] == two[1]), "states halves".to_string());
        held(
            compared_of(experiment).all(|other| total(other) == total(plain)),
            "states halves of all".to_string(),
        );
    }
    wrong
}

/// What words name, or what is run: processors, memories in which the DPA keeps what it handles, cards, verbs, and payloads.
#[derive(Debug, Default, PartialEq)]
struct Named {
    processors: BTreeSet<&'static str>,
    memories: BTreeSet<&'static str>,
    cards: BTreeSet<&'static str>,
    verbs: BTreeSet<&'static str>,
    payloads: BTreeSet<Bytes>,
}

const PROCESSORS: [(&str, &str); 3] = [("DPA", "dpa"), ("Arm", "soc"), ("host", "host")];
const CARDS: [(&str, &str); 4] = [
    ("CN2350", "liquidio-cn2350"),
    ("CN2360", "liquidio-cn2360"),
    ("Stingray", "stingray"),
    ("BlueField", "bluefield1"),
];
const TOUCHES: [(&str, &str); 13] = [
    ("load", "load"),
    ("store", "store"),
    ("READ", "read"),
    ("DMA read", "read"),
    ("reads", "read"),
    ("WRITE", "write"),
    ("DMA write", "write"),
    ("writes", "write"),
    ("round", "echo"),
    ("message", "send-ud"),
    ("sends", "send-ud"),
    ("receives", "send-ud"),
    ("forward", "forward"),
];

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// What a word stands for in a table, as one or several, or as whose something is.
fn stands_for(table: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    let word = bare(word);
    let one = word.strip_suffix("'s").or(word.strip_suffix('s')).unwrap_or(word);
    table.iter().find(|(name, _)| *name == word || *name == one).map(|(_, meant)| *meant)
}

/// What the words of a row of dpa2024 or liu2019 name.
fn named_in(words: &str) -> Named {
    let mut named = Named::default();
    let mut is_of_memory = false;
    let all = PROCESSORS.map(|(_, meant)| meant);
    let words: Vec<&str> = words.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| words[before]);
        match bare(word) {
            "in" | "into" | "from" => is_of_memory = true,
            "any" if is_of_memory => named.memories.extend(all),
            "own" if is_of_memory => drop(named.memories.insert("dpa")),
            "the" | "its" | "their" | "those" | "of" | "and" | "or" | "memory" | "memories" => {}
            "others" => named.processors.extend(all),
            _ => match stands_for(&PROCESSORS, word) {
                Some(name) if is_of_memory => drop(named.memories.insert(name)),
                Some(name) => drop(named.processors.insert(name)),
                None => is_of_memory = false,
            },
        }
        is_of_memory &= !word.ends_with([',', ';']);
        named.cards.extend(stands_for(&CARDS, word));
        // Of both it is the CN2350 whose DMA is published.
        named.cards.extend((bare(word) == "LiquidIO").then_some("liquidio-cn2350"));
        let two = format!("{before} {}", bare(word));
        named.verbs.extend(stands_for(&TOUCHES, word).or_else(|| stands_for(&TOUCHES, &two)));
        named.payloads.extend(two.parse::<Bytes>().ok().filter(|_| ["B", "KiB"].contains(&bare(word))));
    }
    named
}

/// A processor of a path's end and the memory that it works in; the far machine stands for none.
fn end_of(end: &str) -> Option<(&'static str, &'static str)> {
    let end = end.strip_prefix("client.").unwrap_or(end);
    let (processor, memory) = end.split_once(':').unwrap_or((end, end));
    let meant = |name: &str| match name {
        "client" => Some("host"),
        name => PROCESSORS.iter().map(|(_, meant)| *meant).find(|meant| *meant == name),
    };
    (processor != "client").then(|| Some((meant(processor)?, meant(memory)?)))?
}

/// What is run of it.
fn named_by<'a>(plains: impl Iterator<Item = &'a Plain>) -> Named {
    let mut named = Named::default();
    for plain in plains.filter(|plain| !plain.measure.is_number()) {
        for path in plain.path.iter().chain(plain.together.iter().map(|flow| &flow.path)) {
            let is_touch = plain.verb.iter().any(|verb| verb == "load" || verb == "store");
            for (at, end) in path.split('-').enumerate() {
                let Some((processor, memory)) = end_of(end) else { continue };
                named.processors.insert(processor);
                // A processor's own loads begin at the processor, and their other end is the memory.
                named.memories.extend((processor == "dpa" && (at == 1 || !is_touch)).then_some(memory));
            }
        }
        named.cards.extend(CARDS.iter().map(|(_, card)| *card).filter(|card| plain.device == *card));
        let verbs = plain.verb.iter().chain(plain.together.iter().filter_map(|flow| flow.verb.as_ref()));
        named.verbs.extend(
            verbs.filter_map(|verb| TOUCHES.iter().map(|(_, meant)| *meant).find(|meant| meant == verb)),
        );
        named.payloads.extend(plain.payload.iter().map(|size| size.parse::<Bytes>().expect("it is bytes")));
    }
    named
}

/// Which ways messages go between the network and each end of the card, where what is measured is how many go.
fn ways_of<'a>(plains: impl Iterator<Item = &'a Plain>) -> BTreeMap<&'a str, BTreeSet<&'static str>> {
    let mut ways: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for plain in plains {
        let carries = matches!(plain.measure, Measure::Bandwidth | Measure::Rate);
        if !carries || plain.verb.iter().any(|verb| verb != "send-ud") {
            continue;
        }
        for path in &plain.path {
            match path.split_once('-') {
                Some(("client", end)) => drop(ways.entry(end).or_default().insert("receives")),
                Some((end, "client")) => drop(ways.entry(end).or_default().insert("sends")),
                _ => {}
            }
        }
    }
    ways
}

/// Where alternatives of the aggregating design keep packets, and where the table.
fn placements<'a>(plains: impl Iterator<Item = &'a Plain>) -> [BTreeSet<&'a str>; 2] {
    let mut kept: [BTreeSet<&str>; 2] = Default::default();
    for alternative in plains.flat_map(|plain| &plain.alternative) {
        let far = alternative.split_once("[far=dpa:").map_or("", |(_, far)| far.trim_end_matches(']'));
        for (place, key) in kept.iter_mut().zip(["net-", "agg-"]) {
            let Some((_, place_of)) = alternative.split_once(key) else { continue };
            place.insert(if place_of.starts_with("far") { far } else { "dpa" });
        }
    }
    kept
}

/// Why an experiment on a card of dpa2024 or liu2019 does not run what its row names.
fn not_as_named(row: &Row) -> Vec<String> {
    let is_of_these = row.source.starts_with("dpa2024") || row.source.starts_with("liu2019");
    let Some(experiment) = row.experiment.as_ref().filter(|_| is_of_these) else { return Vec::new() };
    let mut wrong = Vec::new();
    let mut held = |is: bool, what: String| {
        if !is {
            wrong.push(format!("{}: {what}", row.id));
        }
    };
    let (own, against) = row.states.split_once("; against ").unwrap_or((&row.states, ""));
    if experiment.plain.design.is_some() {
        for (words, run) in
            [(own, placements(own_of(experiment))), (against, placements(compared_of(experiment)))]
        {
            let (packets, table) = words.split_once("table ").unwrap_or((words, ""));
            let packets = named_in(packets).memories;
            let mut stated = [packets.clone(), named_in(table).memories];
            if table.starts_with("in its ") {
                stated[1].extend(packets);
            }
            for (stated, run) in stated.iter().zip(&run).filter(|(stated, _)| !stated.is_empty()) {
                held(stated == run, format!("states packets or table in {stated:?} and runs {run:?}"));
            }
        }
        return wrong;
    }
    let every = || own_of(experiment).chain(compared_of(experiment));
    let (stated, run) = (named_in(&row.states), named_by(every()));
    // What words leave open is not compared, nor numbers of a profile, which run nothing.
    fn compared<T: std::fmt::Debug + PartialEq>(
        kind: &str,
        stated: &BTreeSet<T>,
        run: &BTreeSet<T>,
    ) -> Option<String> {
        (!stated.is_empty() && stated != run).then(|| format!("states {kind} {stated:?} and runs {run:?}"))
    }
    if !run.verbs.is_empty() {
        // The reason of D117 says why the lesser of host and Arm alone is run, and paths of the older cards have other names.
        let has_them = row.id != "D117" && row.source.starts_with("dpa2024");
        let unlike = [
            compared("processors", &stated.processors, &run.processors).filter(|_| has_them),
            compared("memories", &stated.memories, &run.memories),
            compared("cards", &stated.cards, &run.cards),
            compared("verbs", &stated.verbs, &run.verbs),
            compared("payloads", &stated.payloads, &run.payloads),
        ];
        unlike.into_iter().flatten().for_each(|what| held(false, what));
    }
    // What no direction is said of holds of both.
    let said: BTreeSet<&str> =
        row.states.split_whitespace().map(bare).filter(|word| ["sends", "receives"].contains(word)).collect();
    let said = if said.is_empty() { BTreeSet::from(["sends", "receives"]) } else { said };
    for (end, run) in ways_of(own_of(experiment)).into_iter().chain(ways_of(compared_of(experiment))) {
        held(run == said, format!("states {said:?} and runs {run:?} of {end}"));
    }
    wrong
}

/// A row runs the cards, paths, verbs, alternatives and clients of its words, each of them and no other; payloads are held
/// by `sweeps_span_the_payloads_that_rows_state`.
#[test]
fn predicted_rows_run_what_they_state() {
    let rows = shipped_rows();
    let predicted: Vec<&Row> = rows.iter().filter(|row| row.role == RowRole::Predict).collect();
    let wrong: Vec<String> =
        predicted.iter().flat_map(|row| [not_as_stated(row), not_as_named(row)]).flatten().collect();
    assert!(wrong.is_empty(), "{} are not as stated:\n{}", wrong.len(), wrong.join("\n"));
    assert!(predicted.len() > 120, "{}", predicted.len());
    // Nor are words of one paper alone compared.
    let names = |row: &&&Row| {
        let of_these = row.source.starts_with("dpa2024") || row.source.starts_with("liu2019");
        let runs = row.experiment.as_ref().is_some_and(|one| !one.plain.measure.is_number());
        of_these && runs && named_in(&row.states) != Named::default()
    };
    assert!(predicted.iter().filter(names).count() > 80);
    let outcome = line("W126").outcome.as_ref().expect("it is run");
    let places: Vec<f64> = outcome.points.iter().map(|point| point.value).collect();
    assert_eq!(places, [8192.0, 32768.0], "READ and WRITE fill the port from other sizes on");
}

/// Each of these was run otherwise than its words say, and passed a comparison of verbs alone.
#[test]
fn what_runs_another_card_path_or_load_than_it_states_is_found() {
    let rows = shipped_rows();
    let changed = |id: &str, change: fn(&mut Experiment)| {
        let mut row = rows.iter().find(|row| row.id == id).expect("it is a row").clone();
        assert_eq!(not_as_stated(&row), Vec::<String>::new());
        assert_eq!(not_as_named(&row), Vec::<String>::new());
        change(row.experiment.as_mut().expect("it has one"));
        assert!(!not_as_stated(&row).is_empty() || !not_as_named(&row).is_empty(), "{id}");
    };
    changed("W237", |one| one.plain.clients.clear());
    changed("W172", |one| one.also.clear());
    changed("W157", |one| one.also.clear());
    changed("W085", |one| one.plain.verb.truncate(1));
    changed("W203", |one| one.against[0].set.clear());
    changed("W229", |one| one.plain.alternative.truncate(1));
    changed("W211", |one| one.plain.set.clear());
    changed("W213", |one| one.plain.verb = vec!["send-ud".to_string()]);
    changed("W214", |one| one.also[0].plain.verb = vec!["send-ud".to_string()]);
    changed("W197", |one| one.plain.together[0].in_flight = Some(1));
    changed("W268", |one| one.plain.alternative = vec!["A1".to_string()]);
    changed("D169", |one| one.also.clear());
    changed("D194", |one| one.plain.path.truncate(2));
    changed("D188", |one| one.plains_mut().for_each(|plain| plain.path.truncate(1)));
    changed("D164", |one| one.plain.path.truncate(3));
    changed("D173", |one| one.plain.path = vec!["dpa-client".to_string()]);
    changed("D150", |one| one.against[0].path = vec!["client.dpa:client-dpa:host".to_string()]);
    changed("D125", |one| one.plain.verb = vec!["load".to_string()]);
    changed("D162", |one| one.plain.payload = vec!["4 KiB".to_string()]);
    changed("D205", |one| one.plain.alternative.truncate(1));
    changed("D207", |one| one.against.truncate(3));
    changed("I014", |one| one.plain.device = "liquidio-cn2360".to_string());
    changed("I101", |one| one.plain.verb = vec!["write".to_string()]);
}

#[test]
fn residuals_are_what_the_bench_computes() {
    let text = residual::written(&residuals(lines()), &missed(lines()));
    assert!(
        text == include_str!("../../../evidence/residuals.toml"),
        "run `offpath reproduce --residuals evidence/residuals.toml`; it would be\n{text}"
    );
    let shipped = residual::shipped();
    let rows = shipped_rows();
    for line in lines().iter().filter(|line| line.sort == Some(Sort::Measured)) {
        if line.is_place() {
            assert_eq!(line.covered(), None, "{} is a place", line.row.id);
            continue;
        }
        // An interval does not know the row's own error.
        let sizes = residual::spread(shipped, &line.row, &rows);
        let without: Vec<_> = shipped.iter().filter(|one| one.row != line.row.id).cloned().collect();
        assert_eq!(sizes, residual::spread(&without, &line.row, &rows), "{}", line.row.id);
        assert!(sizes.len() > residual::FEWEST, "{}", line.row.id);
        let (low, high) = line.wide.expect("it has an interval");
        assert!(low <= line.low.expect("and a narrow one") && line.high.expect("both ends") <= high);
        assert!(line.covered().is_some());
    }
}

/// A place of a sweep has no interval; what a bisection finds between two values has one, and may miss it.
#[test]
fn a_break_even_is_covered_or_not() {
    assert!(line("W234").covered().is_some());
    assert!(line("W085").is_place() && line("W085").covered().is_none());
    // None is printed either: an interval that holds the published value and counts as none would be no answer.
    for line in lines().iter().filter(|line| line.is_place()) {
        let printed = (line.low, line.high, line.wide, line.bare);
        assert_eq!(printed, (None, None, None, None), "{} is a place", line.row.id);
    }
    assert!(line("W184").is_place());
}

#[test]
fn sweeps_span_the_payloads_that_rows_state() {
    let bytes = |text: &String| text.parse::<Bytes>().expect("it is bytes").get() as f64;
    let mut compared = 0;
    for row in shipped_rows() {
        let (Some((from, to)), Some(experiment)) = (row.spans, &row.experiment) else { continue };
        let payloads: Vec<f64> = experiment.plain.payload.iter().map(bytes).collect();
        // Of a design a parameter stands for it, which the test below looks at.
        if payloads.is_empty() && experiment.plain.design.is_some() {
            continue;
        }
        let least = payloads.iter().copied().fold(f64::INFINITY, f64::min);
        let most = payloads.iter().copied().fold(0.0, f64::max);
        // A request of 0 B returns before PCIe and is published apart (W201): "below 512 B" begins at the
        // smallest payload that a figure shows.
        // What begins beyond a size without an end, as "payload > 9 MB" does, is seen before twice of it.
        let begins = least <= from.max(16.0) || to.is_infinite() && least < 2.0 * from;
        assert!(least >= from && begins, "{}: {least} for {from}", row.id);
        assert!(most <= to && (most >= to || to.is_infinite()), "{}: {most} for {to}", row.id);
        compared += 1;
    }
    assert!(compared > 25, "{compared} rows state payloads");
    let rows = shipped_rows();
    let small: Vec<&Row> = rows.iter().filter(|row| is_of_small_requests(row)).collect();
    for row in &small {
        assert!(runs_all_small_payloads(row), "{} states no payload and runs some of the small ones", row.id);
    }
    let ids: BTreeSet<&str> = small.iter().map(|row| row.id.as_str()).collect();
    assert!(
        ["W058", "W060", "W096", "W105", "W197", "W198", "W199", "W200"].iter().all(|id| ids.contains(id))
    );
    // As it was run before.
    let mut old = rows.iter().find(|row| row.id == "W200").expect("it is a row").clone();
    old.experiment.as_mut().expect("it has one").plain.payload.truncate(3);
    assert!(is_of_small_requests(&old) && !runs_all_small_payloads(&old));
    // A row whose words state payloads has to carry them as data.
    for row in shipped_rows().iter().filter(|row| row.spans.is_none()) {
        let Some(plain) = row.experiment.as_ref().map(|one| &one.plain) else { continue };
        let place = matches!(row.kind, ValueKind::Threshold | ValueKind::Config | ValueKind::Formula);
        assert!(
            place || plain.design.is_some() || stated(&row.states).is_none(),
            "{} states payloads",
            row.id
        );
    }
}

/// What section 3 of wei2023 calls small: below 512 B.
const SMALL: [&str; 5] = ["16 B", "64 B", "128 B", "256 B", "511 B"];

/// Whether a row of sections 3 and 4 is about the rate of small requests and states no payload: it sweeps more than one,
/// all of them small.
fn is_of_small_requests(row: &Row) -> bool {
    let Some(experiment) = &row.experiment else { return false };
    let plain = &experiment.plain;
    let is_small = |text: &String| text.parse::<Bytes>().is_ok_and(|bytes| bytes.get() < 512);
    let is_rate = matches!(plain.measure, Measure::Rate | Measure::LoopRate | Measure::LoopTotal);
    let section = ["§3", "§4", "Table 3"].iter().any(|section| row.source.contains(section));
    // W104 says where its sweep ends, before the network saturates; conflicts are not scored.
    is_rate
        && section
        && row.scored
        && row.spans.is_none()
        && stated(&row.states).is_none()
        && !row.states.contains("before the network bandwidth saturates")
        && plain.payload.len() > 1
        && plain.payload.iter().all(is_small)
}

/// Whether its sweep is the one that all such rows have.
fn runs_all_small_payloads(row: &Row) -> bool {
    row.experiment.as_ref().is_some_and(|experiment| experiment.plain.payload == SMALL)
}

/// The payloads that a row's words state: what stands between commas, as in `16-64 B`.
fn stated(words: &str) -> Option<(f64, f64)> {
    words.split(", ").find_map(|word| {
        let (from, to) =
            word.strip_suffix(" B").map(|sizes| sizes.split_once('-').unwrap_or((sizes, sizes)))?;
        Some((from.parse().ok()?, to.parse().ok()?))
    })
}

/// A design runs at the size that its row states: one of its parameters, as the experiment has them, is of that size.
#[test]
fn designs_run_at_the_payloads_that_rows_state() {
    let mut compared = 0;
    for row in shipped_rows() {
        let Some(plain) = row.experiment.as_ref().map(|one| &one.plain) else { continue };
        let (Some(name), Some((from, to))) = (&plain.design, row.spans.or(stated(&row.states))) else {
            continue;
        };
        let file = format!("{}/../../designs/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let design: toml::Table =
            std::fs::read_to_string(&file).expect("the design").parse().expect("it is TOML");
        let own = design["parameters"].as_table().expect("parameters are a table");
        let run = own.iter().filter_map(|(name, value)| {
            let text = plain.parameters.get(name).map(String::as_str).or(value.as_str())?;
            Some(text.parse::<Bytes>().ok()?.get() as f64)
        });
        let run: Vec<f64> = run.collect();
        assert!(
            run.iter().any(|bytes| (from..=to).contains(bytes)),
            "{} states {from} to {to} B, and its design runs at {run:?}",
            row.id
        );
        compared += 1;
    }
    assert!(compared > 10, "{compared} rows of designs state payloads");
}

/// Every system that rows run, with its testbed where that is not the device's own, and whether numbers of it are fitted.
const SYSTEMS: [(&str, Option<&str>, bool); 10] = [
    ("bluefield2", None, true),
    ("connectx6", None, true),
    ("bluefield2", Some("rack-cli"), true),
    ("bluefield2", Some("sun"), true),
    ("bluefield2", Some("sun-regex"), true),
    ("bluefield3", None, false),
    ("bluefield1", None, false),
    ("liquidio-cn2350", None, false),
    ("liquidio-cn2360", None, false),
    ("stingray", None, false),
];

#[test]
fn every_system_that_rows_run_is_looked_at() {
    for row in shipped_rows() {
        for plain in row.experiment.iter().flat_map(|one| own_of(one).chain(compared_of(one))) {
            let is = |(device, testbed, _): &(&str, Option<&str>, bool)| {
                *device == plain.device && plain.testbed.as_deref().is_none_or(|own| *testbed == Some(own))
            };
            assert!(SYSTEMS.iter().any(is), "{} runs {} in {:?}", row.id, plain.device, plain.testbed);
        }
    }
}

/// Every number that a row's experiment may read, with its interval, by its place.
fn intervals_of(row: &Row) -> BTreeMap<(String, String), [Quantity; 3]> {
    let library = Library::builtin();
    let mut intervals = BTreeMap::new();
    for plain in row.experiment.iter().flat_map(|one| own_of(one).chain(compared_of(one))) {
        for (device, testbed, _) in SYSTEMS.iter().filter(|(device, ..)| *device == plain.device) {
            let request = SystemRequest { device, testbed: *testbed, ..SystemRequest::default() };
            for number in library.load(&request).expect("it loads").numbers.into_values() {
                if let (Some(low), Some(high)) = (number.low, number.high) {
                    intervals.insert((number.file.clone(), number.key.clone()), [low, number.value, high]);
                }
            }
        }
    }
    intervals
}

/// Rows that fail where numbers are at ends that no card has together.
const FOREGONE_BUT_FOR: [(&str, &str); 2] = [
    ("D113", "an L3 of the DPA that answers as soon as its L2 would be none"),
    ("I073", "one line of a table is for both cards, whose numbers are drawn apart"),
];

/// Whether a row holds with each number that it may read at one of its ends or as it is, at random, draw by draw.
fn held_at_ends(row: &Row, draws: u64) -> impl Iterator<Item = bool> {
    let bench = Bench::new(Library::builtin());
    let intervals = intervals_of(row);
    (0..draws).filter_map(move |draw| {
        let seed = Seed::new(1).child(&row.id).index(draw);
        let change = |((file, key), at): (&(String, String), &[Quantity; 3])| {
            let which = (3.0 * unit_of(seed.child(file).child(key).value())) as usize;
            Change { file: file.clone(), key: key.clone(), value: at[which] }
        };
        let drawn = bench.with(intervals.iter().map(change).collect());
        let outcome = drawn.run(row.experiment.as_ref()?).ok()?;
        judge(row, &outcome).map(|verdict| verdict.within)
    })
}

/// Nobody calls foregone what a number within its interval makes fail: that would be a prediction.
#[test]
fn what_is_foregone_holds_at_the_ends_of_the_numbers() {
    let (mut moved, mut judged) = (BTreeSet::new(), 0);
    for line in lines().iter().filter(|line| line.row.foregone.is_some()) {
        let Some(verdict) = &line.verdict else { continue };
        for held in held_at_ends(&line.row, 8) {
            judged += 1;
            if held != verdict.within {
                moved.insert(line.row.id.clone());
            }
        }
    }
    assert!(judged > 300, "{judged}");
    let named = FOREGONE_BUT_FOR.map(|(row, _)| row.to_string());
    assert_eq!(moved, BTreeSet::from(named));
}

/// Nor does an order count as predicted that no end of a number makes fail.
#[test]
fn an_order_that_holds_could_have_failed() {
    for line in lines().iter().filter(|line| line.sort == Some(Sort::Order) && line.scored() == Some(true)) {
        let fails = held_at_ends(&line.row, 64).any(|held| !held);
        assert!(fails, "{} holds whatever its numbers are", line.row.id);
    }
}

/// What rows print in units of their own, as a profile writes it; the rows that more than one published number goes
/// into are named, with what makes their value of them.
const PUBLISHED_TOGETHER: [(&[&str], &str); 6] = [
    // 8 channels of 8 B, 4800 million times a second: 2457.6.
    (&["D039", "D040", "D123"], "2458 Gbit/s"),
    // Two ports of 200 Gbit/s.
    (&["D043", "D044"], "400 Gbit/s"),
    // 32 GT/s by 16 lanes, and 8 GT/s by 8, before their encoding; 7.87 GB/s are the latter behind it.
    (&["D045", "D046"], "512 Gbit/s"),
    (&["I084", "I085", "I086"], "64 Gbit/s"),
    // The middle of 20 to 28 B.
    (&["I087"], "24 B"),
    // Sweeps over cores end at all of them.
    (&["I047", "I048"], ""),
];

/// The value beside a row that a profile is held to is the one that the row publishes.
#[test]
fn rows_that_are_read_are_held_to_what_they_publish() {
    let mut compared = 0;
    for row in shipped_rows().iter().filter(|row| row.id.starts_with(['D', 'I'])) {
        let Some(number) = &row.number else { continue };
        compared += 1;
        let together = PUBLISHED_TOGETHER.iter().find(|(ids, _)| ids.contains(&row.id.as_str()));
        let published = row.published.expect("it publishes a number").ends().1;
        let expected = match (together, row.unit.as_str()) {
            (Some((_, value)), _) if !value.is_empty() => value.to_string(),
            // Sizes of memories and caches are binary.
            (_, unit @ ("KB" | "MB" | "GB")) => format!(
                "{} KiB",
                published
                    * 1024_f64.powi(match unit {
                        "KB" => 0,
                        "MB" => 1,
                        _ => 2,
                    })
            ),
            (_, "Gb/s") => format!("{published} Gbit/s"),
            (_, "GB/s") => format!("{:.6} Gbit/s", published * 8.0),
            (_, unit @ ("GHz" | "ns" | "us" | "B")) => format!("{published} {unit}"),
            (_, "cores" | "threads") => published.to_string(),
            (_, unit) => panic!("{} publishes in {unit}, which no profile writes", row.id),
        };
        let dimension = match row.unit.as_str() {
            "cores" | "threads" => Dimension::Count,
            "KB" | "MB" | "GB" | "B" => Dimension::Bytes,
            "GHz" => Dimension::Frequency,
            "ns" | "us" => Dimension::Time,
            _ => Dimension::BitRate,
        };
        let base =
            |text: &str| Quantity::parse(text, dimension).map(Quantity::base).map_err(|_| text.to_string());
        assert_eq!(base(&number.value), base(&expected), "{} is held to {}", row.id, number.value);
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn no_prediction_is_cited_by_a_number_or_given_its_own_answer() {
    let rows = shipped_rows();
    // Of what the fit reads through a derived row it reads what follows from it and the others alone.
    let through = readable(&rows).1;
    let library = Library::builtin();
    for (device, testbed, is_fitted) in SYSTEMS {
        let request = SystemRequest { device, testbed, ..SystemRequest::default() };
        let system = library.load(&request).expect("it loads");
        for (name, number) in &system.numbers {
            for id in &number.rows {
                // Properties of machines stand in tables whose rows are no evidence here.
                let Some(row) = rows.iter().find(|row| row.id == *id) else { continue };
                let own = Decided::Number { file: number.file.clone(), key: number.key.clone() };
                // Of a card that was only guessed at a row may have decided another number, or restate what did.
                let is_none = row.decides.as_ref() == Some(&own)
                    || !is_fitted && row.no_prediction(&restated(row, &rows)).is_some();
                assert!(
                    row.role != RowRole::Predict || is_none || through.iter().any(|(part, _)| part == id),
                    "{device}: {name} cites {id}, which counts as a prediction"
                );
            }
        }
    }
    for row in rows.iter().filter(|row| row.role == RowRole::Predict && row.scored) {
        let (Some(experiment), Some(claim)) = (&row.experiment, row.published) else { continue };
        let reads = experiment.plain.measure == Measure::Number && experiment.against.is_empty();
        assert!(!reads, "{} reads a number of the profile and predicts nothing", row.id);
        // Neither a parameter nor a setting holds what the row publishes, unless it is an end of a sweep.
        let given = experiment.plain.parameters.values().chain(experiment.plain.set.values());
        for text in given.filter(|_| row.kind == ValueKind::Threshold) {
            let (low, high) = claim.ends();
            let is = text.parse::<f64>().is_ok_and(|value| value == low || value == high);
            assert!(!is, "{} is given {text}, which it publishes", row.id);
        }
    }
}

/// Numbers that name a row which does not move with them, with the row and why it is named all the same.
const UNMOVED: [(&str, &str, &str, &str); 9] = [
    ("bluefield2", "soc.bandwidth", "W155", "the row is a lower bound of it, which the whole interval keeps"),
    ("bluefield2", "soc.bank_read_time", "W117", "one of two rates, of which the ratio is fitted"),
    ("bluefield2", "soc.bank_write_time", "W116", "one of two rates, of which the ratio is fitted"),
    ("bluefield2", "soc_verbs.write_slot_time", "W115", "one of two rates, of which the ratio is fitted"),
    (
        "bluefield2",
        "soc_wire.delay",
        "W052",
        "the row says that there is no PCIe link, and how long none takes",
    ),
    ("connectx4", "host_verbs.post_latency", "W081", "the same cycles at another clock"),
    ("connectx6", "nic.inflight_slots", "W273", "taken over from the other card, which the row is about"),
    ("connectx6", "nic.inflight_slots", "W275", "taken over from the other card, which the row is about"),
    (
        "stingray",
        "cores_packets.byte_rate",
        "I017",
        "a whole number of cores, which the whole interval keeps",
    ),
];

/// A number cites, and a row is said to have decided, what the row can speak of: with the number at an end of its interval
/// the row's experiment gives something else at one of its places. An estimate of a design stands
/// in its file.
#[test]
fn rows_move_with_the_numbers_that_name_them() {
    let (rows, library) = (shipped_rows(), Library::builtin());
    let bench = Bench::new(library.clone());
    let values = |bench: &Bench, experiment: &Experiment| -> Vec<f64> {
        let outcome = bench.run(experiment).unwrap_or_else(|error| panic!("{}: {error}", experiment.words()));
        outcome.points.iter().map(|point| point.value).collect()
    };
    let (mut numbers, mut fitted) = (BTreeMap::new(), BTreeSet::new());
    // Of cards of which nothing is fitted numbers cite what they are near: rows that decided one move with it.
    let systems = [
        ("bluefield2", None, true),
        ("connectx6", None, true),
        ("bluefield2", Some("rack-cli"), true),
        ("bluefield2", Some("sun"), true),
        ("bluefield2", Some("sun-regex"), true),
        ("bluefield3", None, false),
        ("liquidio-cn2350", None, false),
        ("stingray", None, false),
    ];
    for (device, testbed, is_fitted) in systems {
        let system = library.load(&SystemRequest { device, testbed, ..SystemRequest::default() });
        for number in system.expect("it loads").numbers.into_values() {
            let place = (number.file.clone(), number.key.clone());
            fitted.extend(is_fitted.then(|| place.clone()));
            numbers.insert(place, number);
        }
    }
    let (mut unmoved, mut compared) = (BTreeSet::new(), 0);
    for ((file, key), number) in &numbers {
        let decides = Some(Decided::Number { file: file.clone(), key: key.clone() });
        let cites = fitted.contains(&(file.clone(), key.clone()));
        let is_named = |row: &&Row| cites && number.rows.contains(&row.id) || row.decides == decides;
        let ends: Vec<_> = [number.low, number.high].into_iter().flatten().collect();
        for row in rows.iter().filter(is_named).filter(|_| !ends.is_empty()) {
            let Some(experiment) = &row.experiment else { continue };
            let own = values(&bench, experiment);
            let is_moved = ends.iter().any(|end| {
                let change = Change { file: file.clone(), key: key.clone(), value: *end };
                values(&bench.with(vec![change]), experiment) != own
            });
            compared += 1;
            if !is_moved {
                unmoved.insert(format!("{file} {key} {}", row.id));
            }
        }
    }
    for row in &rows {
        let Some(Decided::Number { file, key }) = &row.decides else { continue };
        if numbers.contains_key(&(file.clone(), key.clone())) {
            continue;
        }
        // An estimate of the design that the row runs, which no experiment changes.
        let design = row.experiment.as_ref().and_then(|one| one.plain.design.clone());
        let design = design.expect("a number of no profile is one of a design");
        assert_eq!(*file, format!("designs/{design}.toml"), "{}", row.id);
        let text = std::fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR")));
        assert!(text.expect("the design").contains(&format!("\n{key} = ")), "{file} has no {key}");
    }
    let named: Vec<String> = UNMOVED
        .iter()
        .map(|(device, key, row, _)| format!("profiles/devices/{device}.toml {key} {row}"))
        .collect();
    assert_eq!(unmoved.into_iter().collect::<Vec<_>>(), named, "rows that do not move with what names them");
    assert!(compared > 40, "{compared}");
    // What is said of a row that decided a mechanism names no number.
    let said = line("W211").row.no_prediction(&[]).expect("it is none");
    assert!(
        said.contains("weighed for the mechanism of ") && !said.contains("reserved_inflight_slots"),
        "{said}"
    );
}

#[test]
fn restatements_are_found_by_their_experiments() {
    let rows = shipped_rows();
    let restates = |id: &str| restated(rows.iter().find(|row| row.id == id).expect("it is a row"), &rows);
    assert!(restates("W075").contains(&"W078".to_string()), "the same difference of the same READs");
    assert_eq!(restates("W094"), ["W155"], "both directions at once are one of them twice");
    assert_eq!(restates("W251"), ["W001"], "one number, in the abstract and in its section");
    assert!(restates("W001").is_empty(), "it counts once");
    let mut predicted = rows.iter().find(|row| row.id == "W149").expect("it is a row").clone();
    predicted.role = RowRole::Predict;
    predicted.id = "X".to_string();
    assert_eq!(restated(&predicted, &rows), ["W149"], "a part of its sweep, by its experiment alone");
}

#[test]
fn every_row_has_its_place() {
    let rows: Vec<_> = lines().iter().map(|line| &line.row).collect();
    let of_wei = || rows.iter().filter(|row| !row.derived && row.id.starts_with('W'));
    assert_eq!(of_wei().count(), 282);
    for (index, row) in of_wei().enumerate() {
        assert_eq!(row.id, format!("W{:03}", index + 1));
    }
    // All rows of these papers are there as well, in order.
    for (letter, all) in [('D', 230), ('I', 107)] {
        let ids: Vec<&str> =
            rows.iter().map(|row| row.id.as_str()).filter(|id| id.starts_with(letter)).collect();
        let expected: Vec<String> = (1..=all).map(|index| format!("{letter}{index:03}")).collect();
        assert_eq!(ids, expected);
    }
    for line in lines() {
        let row = &line.row;
        let predicted = line.verdict.is_some() || line.configured.is_some();
        assert!(
            predicted || !matches!(row.role, RowRole::Fit | RowRole::Predict | RowRole::Read),
            "{} is neither predicted nor said not to be",
            row.id
        );
        assert!(!row.states.is_empty(), "{} says nothing", row.id);
    }
}

#[test]
fn an_injected_wrong_constant_moves_rows_out_of_tolerance() {
    let library = Library::builtin();
    let text = library.source(Category::Device, "bluefield2").expect("the card is built in").to_string();
    let injected = |key: &str, wrong: &str| {
        let at = text.find(&format!("\n{key} = ")).expect("the key is there");
        let value = at + text[at..].find("value = ").expect("it has a value") + "value = ".len();
        let end = value + text[value..].find(',').expect("more keys follow");
        // An interval around the right value would refuse the wrong one, and a guess has to have one.
        let line = text[end..].find('\n').expect("the line ends") + end;
        let rest: String = text[end..line]
            .split(", ")
            .filter(|part| !part.starts_with("low = ") && !part.starts_with("high = "))
            .collect::<Vec<_>>()
            .join(", ");
        let mut library = Library::builtin();
        let changed =
            format!("{}{wrong}, low = {wrong}, high = {wrong}{rest}{}", &text[..value], &text[line..]);
        library.insert(Category::Device, "bluefield2", &changed);
        let rows = shipped().expect("the rows are in order");
        reproduce(&library, &rows, &[], &[], 2).expect("every experiment runs")
    };
    let out = |wrong: &[Line]| -> BTreeSet<String> {
        lines()
            .iter()
            .zip(wrong)
            .filter(|(right, wrong)| {
                let within = |line: &Line| line.verdict.as_ref().is_some_and(|verdict| verdict.within);
                within(right) && !within(wrong)
            })
            .map(|(right, _)| right.row.id.clone())
            .collect()
    };
    let inflight_slots = out(&injected("inflight_slots", "100"));
    for id in ["W267", "W273/W275"] {
        assert!(inflight_slots.contains(id), "100 in-flight slots leave {id}: {inflight_slots:?}");
    }
    let passes = out(&injected("pass_time", "\"300 ns\""));
    for id in ["W072", "W181"] {
        assert_eq!(passes.contains(id), id == "W072", "a slower NIC: {passes:?}");
    }
}

#[test]
fn the_log_names_every_miss_and_no_more() {
    let log = shipped_log().expect("the log is in order");
    let named = |open: bool| -> BTreeSet<String> {
        log.iter().filter(|entry| entry.open == open).flat_map(|entry| entry.rows.clone()).collect()
    };
    let missed: BTreeSet<String> =
        lines().iter().filter(|l| l.scored() == Some(false)).map(|l| l.row.id.clone()).collect();
    assert_eq!(named(true), missed, "open entries of evidence/log.toml against the rows that miss");
    for id in named(false) {
        let verdict = line(&id).verdict.as_ref().expect("a closed entry's row is predicted");
        assert!(verdict.within, "{id} is missed again; its entry in evidence/log.toml is not closed");
    }
}

/// A fit that is wrong fails the rows that it was made of. What the predictions say of it is as much as the page says:
/// their median is no worse with every fitted number a third too small.
#[test]
fn a_wrong_fit_is_seen() {
    let shipped = summary(lines());
    let page = include_str!("../../../docs/evidence.md").replace('\n', " ");
    let counts = [
        (Wrong::Alike(1.5), 2, 14, 0.2417),
        (Wrong::Alike(1.0 / 1.5), 2, 11, 0.2369),
        (Wrong::Apart(1.5, 1), 2, 11, 0.2895),
    ];
    for (wrong, measured, fitted, median_error) in counts {
        let wrong = falsified(&Library::builtin(), lines(), wrong, 2).expect("every experiment runs");
        let wrong = wrong.expect("numbers are fitted");
        assert_eq!((wrong.fitted.of, wrong.measured.of), (shipped.fitted.of, shipped.measured.of));
        assert_eq!(wrong.moved.of, wrong.moved_before.of);
        assert!(
            0 < wrong.moved.of && wrong.moved.of < wrong.measured.of,
            "some rest on links alone: {wrong:?}"
        );
        assert!(2 * wrong.fitted.within < shipped.fitted.within, "{wrong:?}");
        assert_eq!((wrong.measured.within, wrong.fitted.within), (measured, fitted), "{wrong:?}");
        assert!((wrong.median_error - median_error).abs() < 0.00006, "{wrong:?}");
        let is_as_good = (wrong.median_error - shipped.errors.model).abs() < 5e-7;
        assert_eq!(is_as_good, wrong.wrong == Wrong::Alike(1.0 / 1.5), "{wrong:?}");
        assert!(is_as_good || wrong.median_error > shipped.errors.model, "{wrong:?}");
        if is_as_good {
            let said = format!(
                "with every fitted number a third too small the median error is {:.1}% too, where {} of {} fitted rows hold",
                100.0 * wrong.median_error,
                wrong.fitted.within,
                wrong.fitted.of
            );
            assert!(page.contains(&said), "docs/evidence.md should say: {said}");
        }
    }
}

/// The nearest row is judged as the prediction is: a single figure of a sweep at both ends of what was published.
#[test]
fn the_null_is_held_to_the_same_rules() {
    let of = |id: &str| (line(id).null_nearest.clone().expect("it has a null"), line(id).null_nearest_within);
    let ((error, other), within) = of("W238");
    let claim = line("W238").row.published.expect("a range").ends();
    let of_other = &line(&other).row;
    let ratio = |value: f64| if of_other.unit == "%" { 1.0 + value / 100.0 } else { value };
    let (low, high) = of_other.published.expect("a figure").ends();
    let value = (ratio(low), ratio(high));
    assert!(claim.0 < claim.1, "{claim:?}");
    let worst = [value.0 / claim.0 - 1.0, value.1 / claim.1 - 1.0]
        .into_iter()
        .fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
    assert!((error - worst).abs() < 1e-9, "{error} and {worst}, by {other}");
    assert_eq!(within, Some(false));
}

/// What a reader would take by hand for the nearest row, judged as the nearest row is.
#[test]
fn the_pages_say_what_the_hand_picked_rows_are_off_by() {
    let by_hand = |line: &Line| {
        let (nearest, _) = line.null_nearest.as_ref()?;
        let other = match line.row.id.as_str() {
            "W172" => "W176",
            "W154" => "W155",
            _ => return Some(nearest.abs()),
        };
        let (value, end) = shipped_rows().into_iter().find(|row| row.id == other)?.published?.ends();
        assert_eq!(value, end, "{other} is one figure");
        let (low, high) = line.row.published?.ends();
        let ratio = |value: f64| if line.row.unit == "%" { 1.0 + value / 100.0 } else { value };
        Some([low, high].map(|end| (ratio(value) / ratio(end) - 1.0).abs()).into_iter().fold(0.0, f64::max))
    };
    let measured = || lines().iter().filter(|line| line.is_numeric());
    let errors: Vec<f64> = measured().filter_map(by_hand).collect();
    let linked: Vec<f64> = measured().filter(|line| line.null_links.is_some()).filter_map(by_hand).collect();
    let (rows, all, linked) = (errors.len(), 100.0 * median(errors), 100.0 * median(linked));
    let page = include_str!("../../../docs/evidence.md").replace('\n', " ");
    let errors = summary(lines()).errors;
    let [rule, rule_linked] = [errors.nearest, errors.nearest_where_links].map(|beside| 100.0 * beside.other);
    let said = format!("the nearest row's median over {rows} rows is {all:.1}% and by the rule {rule:.1}%");
    assert!(page.contains(&said), "docs/evidence.md should say: {said}");
    let said = format!("where links speak it is {linked:.1}% and by the rule {rule_linked:.1}%");
    assert!(page.contains(&said), "docs/evidence.md should say: {said}");
    let said = format!("by hand](#null-models) {all:.1}%)");
    assert!(page.contains(&said), "docs/evidence.md should say: {said}");
}

/// How many ratios pass whose effect, what they are more or less than 1, is more than a fifth off.
#[test]
fn the_page_says_how_many_effects_pass_that_are_far_off() {
    let (mut passing, mut far, mut fitted) = (0, 0, 0);
    for line in lines().iter().filter(|line| line.row.kind == ValueKind::Ratio && line.scored() == Some(true))
    {
        let (Some(verdict), Some(claim)) = (&line.verdict, line.row.published) else { continue };
        // A formula is held to a thousandth.
        if claim.is_bound() || line.sort == Some(Sort::Exact) {
            continue;
        }
        let effect = |value: f64| if line.row.unit == "%" { value / 100.0 } else { value - 1.0 };
        let is_far =
            |predicted: f64, published: f64| (effect(predicted) / effect(published) - 1.0).abs() > 0.2;
        let published = verdict.published.expect("a number");
        let (low, high) = claim.ends();
        let is_filled = matches!(claim, Claim::Range(..)) && verdict.from < verdict.to;
        let off = is_far(verdict.predicted, published)
            || is_filled && (is_far(verdict.from, low) || is_far(verdict.to, high));
        passing += 1;
        far += usize::from(off);
        fitted += usize::from(off && line.sort == Some(Sort::Fitted));
    }
    let page = include_str!("../../../docs/evidence.md").replace('\n', " ");
    let said = format!(
        "Held to 20% of the effect, {far} of the {passing} ratio rows that pass would fail, {fitted} of them fitted."
    );
    assert!(page.contains(&said), "docs/evidence.md should say: {said}");
}

#[test]
fn variants_are_refuted_by_rows() {
    let found = variants(&Library::builtin(), lines(), 2).expect("every experiment runs");
    assert!(!found.is_empty());
    for variant in &found {
        assert!(!variant.refuted_by.is_empty(), "no row refutes {}", variant.overlay);
    }
    let refuted = |name: &str| -> Vec<&str> {
        let variant = found.iter().find(|variant| variant.overlay == name).expect("the card names it");
        variant.refuted_by.iter().map(|moved| moved.id.as_str()).collect()
    };
    assert!(refuted("one-pool").contains(&"W197"), "one pool gives two paths no more than one");
    let pool = found.iter().find(|variant| variant.overlay == "one-pool").expect("the card names it");
    let said = format!("by a median error of {:.1}%", 100.0 * pool.median_error);
    let page = include_str!("../../../docs/evidence.md").replace('\n', " ");
    assert!(page.contains(&said), "docs/evidence.md should say of one-pool: {said}");
}

#[test]
fn the_same_rows_give_the_same_bytes() {
    let rows = shipped().expect("the rows are in order");
    let again = reproduce(&Library::builtin(), &rows, &[], &[], 1).expect("every experiment runs");
    assert_eq!(format!("{:?}", lines()), format!("{again:?}"));
}

/// What `explain` says of a rate: the station that binds is busy all the time, and none for longer.
#[test]
fn stations_are_busy_by_what_a_rate_asks_of_them() {
    let bench = Bench::new(Library::builtin());
    let mut looked_at = 0;
    for line in lines() {
        let Some(experiment) = &line.row.experiment else { continue };
        let Inside::Stations(busy) = bench.inside(&experiment.plain).expect("it is run") else { continue };
        looked_at += 1;
        assert!((busy[0].1 - 1.0).abs() < 1e-9, "{}: {:?}", line.row.id, busy[0]);
        assert!(
            busy.iter().all(|(_, share)| (0.0..=1.0 + 1e-9).contains(share)),
            "{}: {busy:?}",
            line.row.id
        );
        assert!(busy.is_sorted_by(|a, b| a.1 >= b.1), "{}: {busy:?}", line.row.id);
    }
    assert!(looked_at > 20, "{looked_at}");
}

#[test]
fn figures_place_published_points_over_curves() {
    let figures = figures(&Library::builtin(), lines(), &[], 2).expect("every figure is drawn");
    for id in [
        "fig3-", "fig5-", "fig7-", "fig8-", "fig9-", "fig10-", "fig11-", "fig12-", "fig13-", "fig15-",
        "fig17-",
    ] {
        assert!(figures.iter().any(|figure| figure.id.starts_with(id)), "{id} is missing");
    }
    for figure in &figures {
        let names: BTreeSet<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names.len(), figure.series.len(), "{} has two series of one name", figure.id);
        // On an axis of sizes or numbers each place of a curve is one of its own.
        for series in figure.series.iter().filter(|series| series.places.iter().any(|place| place.x > 0.0)) {
            let places: BTreeSet<u64> = series.places.iter().map(|place| place.x.to_bits()).collect();
            assert_eq!(places.len(), series.places.len(), "{}: {}", figure.id, series.name);
        }
        // A published ratio is drawn as so many times the curve that it is over.
        for mark in &figure.marks {
            let Some(over) = &mark.over else { continue };
            let base = figure.series.iter().find(|series| series.name == *over).expect("it is a series");
            let base = base.places.iter().find(|place| place.x == mark.x).expect("it has the place").y;
            let row = &line(&mark.row).row;
            let (low, high) = row.published.expect("it is published").ends();
            let times = |value: f64| if row.unit == "%" { (100.0 + value) / 100.0 } else { value };
            let (low, high) = (times(low).min(times(high)), times(low).max(times(high)));
            assert!(
                (mark.low / base - low).abs() < 1e-9 && (mark.high / base - high).abs() < 1e-9,
                "{mark:?}"
            );
        }
        for series in &figure.series {
            assert!(!series.places.is_empty() && series.places.iter().all(|place| place.y.is_finite()));
            for place in &series.places {
                assert!(
                    place.low.is_none_or(|low| low <= place.y)
                        && place.high.is_none_or(|high| high >= place.y)
                );
            }
        }
    }
}

#[test]
fn theory_holds_on_links_without_headers_alone() {
    // The same experiment on the real profile stands off the formula: the headers are counted.
    let rows = shipped().expect("the rows are in order");
    let row = rows.iter().find(|row| row.id == "W219").expect("P-N is a row");
    assert_eq!(row.kind, ValueKind::Formula);
    let experiment = row.experiment.as_ref().expect("it has an experiment");
    let bench = Bench::new(Library::builtin());
    let ideal = bench.run(experiment).expect("it runs").points[0].value;
    let mut real = experiment.clone();
    real.plains_mut().for_each(|plain| plain.overlays.clear());
    let real = bench.run(&real).expect("it runs").points[0].value;
    assert!((ideal - 56.0).abs() < 0.06, "{ideal}");
    assert!((38.0..=47.0).contains(&real), "{real}");
}

#[test]
fn code_meets_the_rows_that_its_step_lists_meet_but_for_those_named() {
    let bench = Bench::new(Library::builtin());
    let (mut compared, mut differ) = (0, Vec::new());
    for row in shipped().expect("the rows are in order") {
        let Some(experiment) = row.experiment.clone().filter(|one| one.plain.design.is_some()) else {
            continue;
        };
        let within = |steps: bool| {
            let mut experiment = experiment.clone();
            experiment.plains_mut().for_each(|plain| plain.steps = steps);
            let outcome = bench.run(&experiment).unwrap_or_else(|error| panic!("{}: {error}", row.id));
            judge(&row, &outcome).map(|verdict| verdict.within)
        };
        compared += 1;
        let (code, steps) = (within(false), within(true));
        if code != steps {
            assert_eq!((code, steps), (Some(false), Some(true)), "{}", row.id);
            differ.push(row.id);
        }
    }
    assert!(compared > 30, "{compared} rows are of designs with code");
    // W228 and W229: headers are 0.1% of the smallest chunk, and LZ4 misses a tenth by 0.2%. W242: the
    // implemented host sends and takes one message a chunk in every alternative.
    assert_eq!(differ, ["W228", "W229", "W242"]);
}

/// A number in a cell of a page.
#[derive(Clone, Debug)]
struct Figure {
    value: f64,
    /// Half a unit of its last digit, and some for halves.
    room: f64,
    /// Whether it is written with its sign.
    is_signed: bool,
    /// Whether it is a number of bytes, which says where in a sweep.
    is_size: bool,
    /// The size at which it is, where the cell says so behind it.
    at: Option<f64>,
}

impl Figure {
    fn is(&self, value: f64) -> bool {
        let value = if self.is_signed { value } else { value.abs() };
        (value - self.value).abs() <= self.room
    }
}

/// The numbers of a cell, but those that are part of a name or stand in backquotes.
fn figures_in(cell: &str) -> Vec<Figure> {
    let plain: String = cell.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let chars: Vec<char> = plain.chars().collect();
    let is_part = |c: &char| c.is_ascii_digit() || *c == '.';
    let (mut found, mut at) = (Vec::new(), 0);
    while at < chars.len() {
        if !chars[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = at + chars[at..].iter().take_while(|c| is_part(c)).count();
        let text: String = chars[at..end].iter().collect();
        let text = text.trim_end_matches('.');
        let before = |by: usize| at.checked_sub(by).map_or(' ', |index| chars[index]);
        // A factor is written as `x2.69`; a sign that follows a number is a dash.
        let is_factor = before(1) == 'x' && !before(2).is_alphanumeric();
        let is_name = before(1).is_ascii_alphanumeric() && !is_factor;
        let is_signed = matches!(before(1), '+' | '-') && !before(2).is_ascii_alphanumeric();
        let is_times = is_signed && before(1) == '-';
        let rest: String = chars[end..].iter().collect();
        let size = rest.trim_start().split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let scale = match size {
            "B" => Some(1.0),
            "KiB" => Some(1024.0),
            "MiB" => Some(1024.0 * 1024.0),
            _ => None,
        };
        if !is_name && let Ok(value) = text.parse::<f64>() {
            let decimals = text.split_once('.').map_or(0, |(_, after)| after.len());
            let value = value * scale.unwrap_or(1.0) * if is_times { -1.0 } else { 1.0 };
            let room = 0.501 * 10f64.powi(-(decimals as i32));
            // As in `0.47 at 64 B, 0.63 at 2 KiB`.
            let own = rest.split([',', ';']).next().unwrap_or_default();
            let place = own.split_once(" at ").map(|(_, place)| figures_in(place));
            let at = place.and_then(|place| place.into_iter().find(|one| one.is_size)).map(|one| one.value);
            found.push(Figure { value, room, is_signed, is_size: scale.is_some(), at });
        }
        at = end;
    }
    found
}

#[test]
fn figures_of_a_cell_are_its_numbers_with_their_signs() {
    let values = |cell: &str| figures_in(cell).iter().map(|one| one.value).collect::<Vec<_>>();
    assert_eq!(values("-14 to 0%"), [-14.0, 0.0]);
    assert_eq!(values("1.00-1.42, missed"), [1.0, 1.42]);
    assert_eq!(values("x2.69 of A5 on `pcie1` at 2 KiB."), [2.69, 2048.0]);
    let at = |cell: &str| figures_in(cell).iter().map(|one| one.at).collect::<Vec<_>>();
    assert_eq!(at("1 / 2 = 0.5 at 64 B, 3 up to 4 KiB"), [[Some(64.0); 3].as_slice(), &[None; 3]].concat());
    assert!(figures_in("+4.2%")[0].is_signed && !figures_in("+4.2%")[0].is(-4.2));
}

/// The rows that a cell names, `W197 to W199` being three.
fn rows_in(cell: &str) -> Vec<&'static Line> {
    let known = |word: &str| lines().iter().position(|line| line.row.id == word);
    let words: Vec<&str> =
        cell.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let mut found = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let Some(own) = known(word) else { continue };
        let is_end = index >= 2 && words[index - 1] == "to";
        let from = known(words[index.saturating_sub(2)]).filter(|_| is_end).map_or(own, |first| first + 1);
        found.extend(lines()[from..=own].iter().filter(|line| !line.row.derived));
    }
    // What follows from two rows is named by both.
    let named: BTreeSet<&str> = found.iter().map(|line| line.row.id.as_str()).collect();
    let follows = |line: &&Line| line.row.derived && line.row.id.split('/').all(|id| named.contains(id));
    found.extend(lines().iter().filter(follows));
    found
}

/// What a column of a model page says: what a row's experiment gives on the profiles or under a variant. `None` of
/// columns with published values and with words.
fn column(header: &str) -> Option<(Bench, bool)> {
    let bench = Bench::new(Library::builtin());
    match header {
        "model" | "model (UD echo)" | "reserved" => Some((bench, false)),
        // Theoretical rows bring links without headers with them.
        "real profile" => Some((bench, true)),
        "`ideal-links`" => Some((bench.under(vec!["ideal-links".to_string()]), false)),
        "one pool" => Some((bench.under(vec!["one-pool".to_string()]), false)),
        _ => None,
    }
}

/// What a row gives in a column.
fn run_in((bench, real): &(Bench, bool), row: &Row) -> Option<(Measurement, Option<Verdict>)> {
    let mut experiment = row.experiment.clone()?;
    experiment.plains_mut().filter(|_| *real).for_each(|plain| plain.overlays.clear());
    let outcome = bench.run(&experiment).unwrap_or_else(|error| panic!("{}: {error}", row.id));
    let verdict = judge(row, &outcome);
    Some((outcome, verdict))
}

/// What is wrong in a cell beside the rows of its line: every figure is what one of them gives in this column, at a
/// place, in what is compared there, or as its error; a cell that is a range alone has a row's least and greatest; a
/// size is one of a sweep or of the profile.
fn wrong_in(cell: &str, cited: &[&Line], on: &(Bench, bool), sizes: &BTreeSet<u64>) -> Vec<String> {
    let runs: Vec<(&Row, Measurement, Option<Verdict>)> = cited
        .iter()
        .filter_map(|line| run_in(on, &line.row).map(|(outcome, verdict)| (&line.row, outcome, verdict)))
        .collect();
    let is_percent = cell.contains('%');
    let written = |row: &Row, value: f64| {
        let share = (is_percent && row.unit != "%").then_some(100.0 * (value - 1.0));
        [Some(value), share]
    };
    let figures = figures_in(cell);
    let (whole, _) = cell.split_once('(').unwrap_or((cell, ""));
    let words: Vec<&str> = whole.split_whitespace().collect();
    if let ([_, "to", _], [low, high]) = (&words[..], &figures[..]) {
        let is_range = runs.iter().any(|(row, _, verdict)| {
            let ends = verdict.as_ref().map(|verdict| [verdict.from, verdict.to]);
            ends.is_some_and(|[from, to]| {
                let is =
                    |figure: &Figure, value| written(row, value).into_iter().flatten().any(|v| figure.is(v));
                is(low, from) && is(high, to)
            })
        });
        return if is_range { Vec::new() } else { vec![whole.trim().to_string()] };
    }
    let is_given = |figure: &Figure| {
        runs.iter().any(|(row, outcome, verdict)| {
            let points = outcome.points.iter().chain(&outcome.own).chain(outcome.against.iter().flatten());
            let error = verdict.as_ref().filter(|_| is_percent).map(|verdict| 100.0 * verdict.error);
            // An order is written with what it is held to.
            let bound = row.published.filter(|claim| claim.is_bound()).map(|claim| claim.ends().0);
            let points = points.filter(|point| {
                figure.at.is_none_or(|size| point.variables.get("n").is_none_or(|n| *n == size))
            });
            points
                .flat_map(|point| written(row, point.value))
                .chain([error, bound])
                .flatten()
                .any(|v| figure.is(v))
        })
    };
    let is_place = |figure: &Figure| {
        let swept =
            cited.iter().filter_map(|line| line.row.experiment.as_ref()).flat_map(|one| &one.plain.payload);
        let mut swept = swept.filter_map(|text| text.parse::<Bytes>().ok()).map(Bytes::get);
        swept.any(|bytes| bytes as f64 == figure.value) || sizes.contains(&(figure.value as u64))
    };
    let wrong = figures.iter().filter(|one| if one.is_size { !is_place(one) } else { !is_given(one) });
    wrong.map(|one| format!("{}", one.value)).collect()
}

/// What a model page says of a row beside its published value is what the row's experiment gives, figure by figure and
/// column by column, and the squares of their errors are those of the rows.
#[test]
fn the_models_pages_say_what_is_computed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models");
    let mut pages: Vec<_> =
        std::fs::read_dir(folder).expect("the pages").map(|e| e.expect("a page").path()).collect();
    pages.sort();
    let system = Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() });
    let numbers = system.expect("it loads").numbers;
    let sizes: BTreeSet<u64> = numbers
        .values()
        .filter(|number| number.value.dimension() == Dimension::Bytes)
        .map(|number| number.value.base() as u64)
        .collect();
    let (mut held, mut squares, mut stale) = (0, 0, Vec::new());
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page is text");
        let mut header: Vec<&str> = Vec::new();
        for row in text.lines() {
            let Some(row) = row.strip_prefix('|').and_then(|row| row.strip_suffix('|')) else {
                header.clear();
                continue;
            };
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            if header.is_empty() {
                header = cells;
                continue;
            }
            let cited = rows_in(cells[0]);
            if cited.is_empty() {
                continue;
            }
            for (name, cell) in header.iter().zip(&cells).skip(1) {
                let Some(on) = column(name).filter(|_| !figures_in(cell).is_empty()) else { continue };
                let wrong = if cells[0].starts_with("squared log-errors") {
                    let errors = cited.iter().filter_map(|line| run_in(&on, &line.row)?.1);
                    let sum: f64 = errors.map(|verdict| (1.0 + verdict.error).ln().powi(2)).sum();
                    squares += 1;
                    let is_sum = figures_in(cell).iter().all(|figure| figure.is(sum));
                    if is_sum { Vec::new() } else { vec![format!("{sum}")] }
                } else {
                    wrong_in(cell, &cited, &on, &sizes)
                };
                match wrong.is_empty() {
                    true => held += 1,
                    false => stale.push(format!("{}: {row}: {name}: {wrong:?}", page.display())),
                }
            }
        }
    }
    assert!(stale.is_empty(), "{} cells:\n{}", stale.len(), stale.join("\n"));
    assert!(held >= 60 && squares == 4, "only {held} cells were compared, and {squares} sums");
}

/// How the rows of concurrent paths come out by the requests in flight at a thread, which no paper states, is what the page
/// says.
#[test]
fn the_page_says_what_requests_in_flight_at_a_thread_do() {
    let page = include_str!("../../../docs/models/inflight-slots.md");
    let base = Bench::new(Library::builtin());
    let pool = base.under(vec!["one-pool".to_string()]);
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let mut table = page.lines().skip_while(|line| !line.starts_with("| at each thread"));
    let header = cells(table.next().expect("the page has the table"));
    let (mut compared, mut wrong) = (0, Vec::new());
    for cells in table.skip(1).take_while(|line| line.starts_with('|')).map(cells) {
        let own: u32 = cells[0].parse().expect("a number of requests");
        for (id, cell) in header.iter().zip(&cells).skip(1) {
            let (id, bench) = id.strip_suffix(", one pool").map_or((*id, &base), |id| (id, &pool));
            let row = &line(id).row;
            // As many as the rows run with, by what they say.
            let run = if row.states.contains("half of the clients") || id == "W200" { 8 } else { 16 };
            assert!(row.reason.contains(&format!("{run} requests in flight at each")), "{id}");
            let mut experiment = row.experiment.clone().expect("it is run");
            let flows = experiment.plains_mut().flat_map(|plain| &mut plain.together);
            flows.for_each(|flow| flow.in_flight = flow.in_flight.map(|all| all / run * own));
            let outcome = bench.run(&experiment).unwrap_or_else(|error| panic!("{id}: {error}"));
            let verdict = judge(row, &outcome).expect("it is judged");
            let ends = [verdict.from, verdict.to];
            let is = figures_in(cell).iter().zip(ends).filter(|(figure, end)| figure.is(*end)).count();
            if is != 2 {
                wrong.push(format!("{id} with {own}: {cell} is {ends:?}"));
            }
            compared += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, 45);
}

/// Several operations stand beside one that is swept as they are, each place beside the place of its own size, though there
/// be as many sizes as operations.
#[test]
fn places_of_several_operations_stand_beside_those_of_one() {
    let bench = Bench::new(Library::builtin());
    for id in ["D155", "D169"] {
        let experiment = line(id).row.experiment.clone().expect("it is run");
        let own = &experiment.plain;
        assert_eq!(own.path.len(), own.payload.len(), "{id}");
        let outcome = bench.run(&experiment).expect("it runs");
        for (size, payload) in own.payload.iter().enumerate() {
            let mut alone = experiment.clone();
            alone.also.clear();
            alone.plain.path.truncate(1);
            for plain in alone.plains_mut() {
                plain.payload = vec![payload.clone()];
            }
            let of_this_size = bench.run(&alone).expect("it runs").compared.remove(0);
            for path in 0..own.path.len() {
                assert_eq!(outcome.compared[path * own.payload.len() + size], of_this_size, "{id} {payload}");
            }
        }
    }
}

/// On all cores of the DPA its memory receives no more packets than it is measured to, however many wait, so that packets in the
/// other memory are aggregated faster, as the design says.
#[test]
fn which_placement_aggregates_fastest_depends_on_what_the_memory_receives() {
    let bench = Bench::new(Library::builtin());
    let over_own_memory = |waiting: &str| {
        let mut one = line("D198").row.experiment.clone().expect("it is run");
        one.also.clear();
        one.against.retain(|plain| plain.alternative == ["net-dpa agg-dpa"]);
        one.plains_mut().for_each(|plain| drop(plain.parameters.insert("waiting".into(), waiting.into())));
        bench.run(&one).expect("it runs").points[0].value
    };
    for waiting in ["48", "192", "7000", "8000", "24576"] {
        let over = over_own_memory(waiting);
        assert!(over > 1.0, "{waiting}: {over}");
    }
    let design = include_str!("../../../designs/aggregate-bf3.toml");
    assert!(design.contains("waiting = { value = 192, low = 48, high = 24_576 }"));
    // Every load of a packet is of what arrived.
    let loads = design.lines().filter(|line| line.contains("load = ") && line.contains("bytes = \"packet\""));
    assert_eq!(loads.filter(|line| line.contains("arrived = \"packet * waiting\"")).count(), 4);
}

/// Reasons of rows, and pages beside the tables, have the figures that are run.
#[test]
fn what_is_said_in_prose_is_what_is_run() {
    let gains = line("S141").verdict.as_ref().expect("it is judged").predicted;
    assert!(line("S141").row.reason.contains(&format!("nothing else, {gains:.1}%;")), "{gains}");
    let bench = Bench::new(Library::builtin());
    let words = |page: &str| page.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = words(include_str!("../../../docs/evidence.md"));
    let run = |verb: &str, plain_nics: bool| {
        let mut one = line("D141").row.experiment.clone().expect("a latency over another");
        for plain in one.plains_mut() {
            (plain.device, plain.testbed) = ("bluefield2".to_string(), Some("sun".to_string()));
            (plain.path, plain.verb) = (vec!["host-soc".to_string()], vec![verb.to_string()]);
            plain.payload =
                ["64 B", "128 B", "256 B", "512 B", "1 KiB", "2 KiB", "4 KiB"].map(str::to_string).to_vec();
        }
        one.against[0].path = vec!["client-host".to_string()];
        if plain_nics {
            one.against[0].device = "connectx6".to_string();
        }
        let points = bench.run(&one).expect("it runs").points;
        let ends = [f64::min, f64::max].map(|end| points.iter().map(|point| point.value).reduce(end));
        ends.map(|end| format!("{:.2}", end.expect("it has places"))).join(" to ")
    };
    for (id, verb) in [("S105", "write"), ("S106", "send"), ("S107", "read")] {
        let row = shipped_rows().into_iter().find(|row| row.id == id).expect("it is a row");
        let (one, both) = (run(verb, false), run(verb, true));
        assert!(row.reason.contains(&format!("gives {one} times")), "{id}: {one}");
        assert!(row.reason.contains(&format!("both hosts {both}")), "{id}: {both}");
        assert!(page.contains(&one) && page.contains(&both), "docs/evidence.md lacks {one} or {both}");
    }
    let mut reads = line("D141").row.experiment.clone().expect("one path over another");
    for plain in reads.plains_mut() {
        (plain.measure, plain.device) = (Measure::Rate, "connectx6".to_string());
        (plain.path, plain.verb) = (vec!["client-host".to_string()], vec!["read".to_string()]);
        (plain.payload, plain.overlays) =
            (vec!["64 B".to_string()], vec!["no-inbound-read-limit".to_string()]);
    }
    reads.against[0].device = "bluefield2".to_string();
    let ratio = bench.run(&reads).expect("it runs").points[0].value;
    reads.against.clear();
    reads.compare = Compare::Value;
    let rate = bench.run(&reads).expect("it runs").points[0].value;
    let said = format!("{rate:.1} M READs/s, {ratio:.2} times path 1");
    let page = words(include_str!("../../../docs/models/inbound-reads.md"));
    assert!(page.contains(&said), "docs/models/inbound-reads.md should say: {said}");
    // Where the two rows that chose the reserved slots contradict the ends of their interval.
    let page = words(include_str!("../../../docs/models/inflight-slots.md"));
    let with = |id: &str, slots: &str| {
        let row = &line(id).row;
        let mut one = row.experiment.clone().expect("it is run");
        one.plains_mut().for_each(|plain| {
            plain.set.insert("nic.reserved_inflight_slots".to_string(), slots.to_string());
        });
        let verdict = judge(row, &bench.run(&one).expect("it runs")).expect("it is judged");
        (verdict.within, format!("{:.1}%", 100.0 * verdict.error.abs()))
    };
    assert!(with("W198", "35").0 && with("W197", "51").0);
    let (low, high) = (with("W198", "34"), with("W197", "52"));
    assert!(!low.0 && !high.0);
    let said =
        format!("at 34 W198 is {} too low, and from 52 on W197 is {} and more too high", low.1, high.1);
    assert!(page.contains(&said), "docs/models/inflight-slots.md should say: {said}");
}

/// What the fit reads of a row may be less than the row is judged by: a part that holds is no row that holds. A place is
/// none of the measured numbers whose errors are compared, and a formula that repeats a fitted row is no arithmetic.
#[test]
fn a_row_is_judged_by_all_that_it_says() {
    for (id, at) in [("W144", "READ and WRITE to 4 KiB"), ("W105", "payloads below 512 B")] {
        let line = line(id);
        assert!(line.row.read_by_fit.is_some() && line.sort == Some(Sort::Fitted), "{id}");
        assert!(!line.verdict.as_ref().expect("it is run").within, "{id} is judged by {at}");
        let (whole, part) =
            (line.row.experiment.as_ref().expect("it has one"), line.row.fitted().expect("a part"));
        assert!(part.plain.payload.len() < whole.plain.payload.len(), "{id}");
    }
    for id in ["W058", "W060"] {
        assert!(!line(id).verdict.as_ref().expect("it is run").within, "{id} is about all below 512 B");
    }
    assert_eq!(
        line("W184").sort,
        Some(Sort::Measured),
        "where a band ends does not follow from what is in it"
    );
    assert!(
        line("W184").is_place() && !line("W234").is_numeric(),
        "neither error is one of a measured number"
    );
    for id in ["W075", "W195"] {
        assert_eq!(line(id).sort, Some(Sort::Restated), "{id}");
    }
}
