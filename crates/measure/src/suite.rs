//! Which runs characterise a card: latency and throughput by verb, path, payload, queue pairs, depth, doorbell batch,
//! inline, posting threads, directions, mix of verbs, and two paths at once (wei2023 §3-4, sun2023 §3.1.4).

use crate::point::{BesideFlow, MeasurePoint};
use offpath_learn::{RunKind, ToolRun};
use offpath_logs::TrafficDirections;
use offpath_quantity::Bytes;
use offpath_route::{Path, Verb};

/// What of the suite is run. An empty list is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuiteChoice {
    /// Verbs.
    pub verbs: Vec<Verb>,
    /// Payloads; others than the suite's take their place.
    pub payloads: Vec<Bytes>,
    /// Queue pairs; others than the suite's take their place. Latency has one.
    pub queue_pairs: Vec<u64>,
}

const VERBS: [Verb; 5] = [Verb::Read, Verb::Write, Verb::Send, Verb::FetchAndAdd, Verb::CompareAndSwap];
/// Payloads of latencies.
const LATENCY: [u64; 6] = [8, 64, 512, 4 << 10, 32 << 10, 256 << 10];
/// Payloads of bandwidths.
const BANDWIDTH: [u64; 8] = [8, 64, 512, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 1 << 20];
/// Queue pairs that every payload is run with: one alone tells what one carries, several what all of them do.
const EACH: [u64; 2] = [1, 8];
/// Payloads at which one thing after the other is varied: one that packets bind, one that bytes begin to.
const VARIED: [u64; 2] = [64, 4 << 10];
/// Above it fewer requests fill every queue.
const LARGE: Bytes = Bytes::new(64 << 10);
/// Requests of a queue pair of large payloads.
const LARGE_DEPTH: u64 = 16;

/// The run of a bandwidth test.
fn bandwidth(verb: Verb, payload: Bytes, queue_pairs: u64) -> ToolRun {
    let payload = verb.own_payload().unwrap_or(payload);
    let plain = ToolRun::plain(RunKind::Bandwidth, verb, payload);
    let tx_depth = if payload > LARGE { LARGE_DEPTH } else { plain.tx_depth };
    ToolRun { queue_pairs, ..of_depth(&plain, tx_depth) }
}

/// The run of a latency test.
fn latency(verb: Verb, payload: Bytes) -> ToolRun {
    ToolRun::plain(RunKind::Latency, verb, verb.own_payload().unwrap_or(payload))
}

/// With another depth.
fn of_depth(run: &ToolRun, tx_depth: u64) -> ToolRun {
    ToolRun { tx_depth, cq_moderation: run.cq_moderation.min(tx_depth), ..run.clone() }
}

/// The points of paths, the latencies of each path first. No point stands twice. Those that no backend measures are among
/// them, so that nobody looks for them in vain.
pub fn suite(paths: &[Path], choice: &SuiteChoice) -> Vec<MeasurePoint> {
    let bytes = |own: &[u64]| -> Vec<Bytes> {
        match choice.payloads.is_empty() {
            true => own.iter().map(|bytes| Bytes::new(*bytes)).collect(),
            false => choice.payloads.clone(),
        }
    };
    let pairs = |own: &[u64]| match choice.queue_pairs.is_empty() {
        true => own.to_vec(),
        false => choice.queue_pairs.clone(),
    };
    let is_meant = |verb: &Verb| choice.verbs.is_empty() || choice.verbs.contains(verb);
    let mut points: Vec<MeasurePoint> = Vec::new();
    let mut add = |point: MeasurePoint| {
        if !points.contains(&point) {
            points.push(point);
        }
    };
    for path in paths {
        let plain = |run| MeasurePoint { path: path.clone(), run, threads: 1, beside: None };
        let verbs: Vec<Verb> = VERBS.into_iter().filter(is_meant).collect();
        let moving = || verbs.iter().copied().filter(|verb| verb.own_payload().is_none());
        for verb in &verbs {
            bytes(&LATENCY).into_iter().for_each(|size| add(plain(latency(*verb, size))));
        }
        for verb in &verbs {
            for size in bytes(&BANDWIDTH) {
                pairs(&EACH).into_iter().for_each(|count| add(plain(bandwidth(*verb, size, count))));
            }
        }
        for verb in moving() {
            for size in bytes(&VARIED) {
                for count in pairs(&[1, 2, 4, 8, 16, 32]) {
                    add(plain(bandwidth(verb, size, count)));
                }
                let one = bandwidth(verb, size, pairs(&[1])[0]);
                [1, 4, 16].into_iter().for_each(|depth| add(plain(of_depth(&one, depth))));
                let several = bandwidth(verb, size, pairs(&[16])[0]);
                for list in [4, 16, 32].into_iter().filter(|list| *list <= several.tx_depth) {
                    add(plain(several.clone().listed(list)));
                }
                if verb != Verb::Read && size.get() <= 512 && size > Bytes::ZERO {
                    add(plain(ToolRun { inline: size, ..latency(verb, size) }));
                    pairs(&EACH).into_iter().for_each(|count| {
                        add(plain(ToolRun { inline: size, ..bandwidth(verb, size, count) }))
                    });
                }
                for threads in [2, 4, 8] {
                    let of_each = pairs(&[2])[0].saturating_mul(threads);
                    add(MeasurePoint { threads, ..plain(bandwidth(verb, size, of_each)) });
                }
                let several = bandwidth(verb, size, pairs(&[8])[0]);
                add(plain(ToolRun { directions: TrafficDirections::Both, ..several.clone() }));
                let beside = |verb: Verb, path: &Path| Some(BesideFlow { verb, path: path.clone() });
                for other in moving().filter(|other| *other > verb) {
                    add(MeasurePoint { beside: beside(other, path), ..plain(several.clone()) });
                }
                // Each two paths once.
                let own = paths.iter().position(|one| one == path).unwrap_or(0);
                for other in &paths[own + 1..] {
                    add(MeasurePoint { beside: beside(verb, other), ..plain(several.clone()) });
                }
            }
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn paths() -> Vec<Path> {
        ["client-host", "client-soc"].map(|name| name.parse().expect("a path")).to_vec()
    }

    /// A name says all in which two points differ, and every run can be followed: a list always finds room.
    #[test]
    fn names_tell_points_apart_and_no_queue_gets_stuck() {
        let points = suite(&paths(), &SuiteChoice::default());
        let names: BTreeSet<String> = points.iter().map(MeasurePoint::to_string).collect();
        assert_eq!(names.len(), points.len());
        // Fewer requests of a large payload are posted ahead than the longest list has.
        let large = SuiteChoice { payloads: vec![Bytes::new(1 << 20)], ..SuiteChoice::default() };
        for point in points.iter().chain(&suite(&paths(), &large)) {
            let run = &point.run;
            // What is posted and has no completion yet where a list ends.
            let open = match run.post_list.is_multiple_of(run.cq_moderation) {
                true => 0,
                false => run.cq_moderation - 1,
            };
            assert!(open + run.post_list <= run.tx_depth, "{point}");
            assert_eq!(run.queue_pairs % point.threads, 0, "{point}");
        }
        for wanted in
            ["both-directions", "threads=8", "beside=client-soc:read", "list=32", "inline=64B", "depth=4 "]
        {
            assert!(names.iter().any(|name| name.contains(wanted)), "{wanted}");
        }
    }

    /// Latencies of WRITEs that end in the middle of a word are in the suite, and refused with the reason; nothing else is.
    #[test]
    fn what_no_backend_measures_says_why() {
        let choice = SuiteChoice { payloads: [1, 12, 64].map(Bytes::new).to_vec(), ..SuiteChoice::default() };
        let mut refused = 0;
        for point in suite(&paths(), &choice) {
            let ToolRun { kind, verb, payload, .. } = point.run;
            let is_cut = kind == RunKind::Latency && verb == Verb::Write && payload < Bytes::new(64);
            let why = point.refused();
            assert_eq!(why.is_some(), is_cut, "{point}: {why:?}");
            assert!(why.is_none_or(|why| why.contains("multiple of 8 B")), "{point}");
            refused += usize::from(is_cut);
        }
        // Of each path two sizes, inline and not.
        assert_eq!(refused, 8);
    }

    /// What is chosen is run and nothing else.
    #[test]
    fn a_choice_leaves_nothing_else() {
        let choice =
            SuiteChoice { verbs: vec![Verb::Write], payloads: vec![Bytes::new(100)], queue_pairs: vec![3] };
        let points = suite(&paths()[..1], &choice);
        assert!(!points.is_empty());
        for point in &points {
            assert!(point.run.verb == Verb::Write && point.run.payload == Bytes::new(100), "{point}");
            match point.run.kind {
                RunKind::Bandwidth => assert_eq!(point.run.queue_pairs, 3 * point.threads, "{point}"),
                RunKind::Latency => assert_eq!(point.run.queue_pairs, 1, "{point}"),
            }
        }
    }
}
