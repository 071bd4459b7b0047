//! Whether points that a number makes fit say what it is: they do not where it may be elsewhere and another explains them
//! as well, as one ceiling may stand for another.

use crate::descent::{Found, Search, weight};

/// Another way in which the points fit.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    /// What makes them fit in the place of a number; nothing where nothing has to.
    pub by: Vec<usize>,
    /// Where everything is then.
    pub at: Vec<f64>,
    /// Whether the points cannot rule it out, however much better the number fits: the card has both then.
    pub is_held: bool,
}

/// What the search for other ways is given.
pub(crate) struct Doubt<'a> {
    /// All fitted points.
    pub search: &'a Search<'a>,
    /// Few of them that say where to look.
    pub coarse: &'a Search<'a>,
    /// What was found, and which numbers are fitted.
    pub best: &'a Found,
    pub free: &'a [usize],
    /// Everything that moves a point between its bounds.
    pub moving: &'a [usize],
    /// By how much a fit may cost more and be as good.
    pub margin: f64,
}

/// Numbers at most that are taken in the place of one.
const MOST_TAKEN: usize = 3;
/// Ways at most that are told.
const MOST_WAYS: usize = 3;
/// Of the numbers that do not do alone, how many others are looked for beside.
const MOST_BEGUN: usize = 3;

/// Numbers that were taken in the place of one, and where the search for another beside them begins.
struct Begun {
    by: Vec<usize>,
    places: Vec<Found>,
}

impl Doubt<'_> {
    /// The ways in which the points fit with a fitted number at a place where it holds nothing back: each other number fitted in
    /// its place, and where none does, several together. No way has more numbers than it takes.
    pub fn replacements(&self, index: usize, released: f64) -> Vec<Replacement> {
        let Doubt { coarse, best, free, moving, .. } = *self;
        let own: Vec<usize> = free.iter().copied().filter(|other| *other != index).collect();
        let mut at = best.at.clone();
        at[index] = released;
        let Some((alone, fitted)) = coarse.found(at).zip(coarse.found(best.at.clone())) else {
            return Vec::new();
        };
        let enough = fitted.cost + self.margin;
        let rest = coarse.descend(alone.clone(), &own);
        if rest.cost <= enough
            && let Some(way) = self.whole(Vec::new(), &rest, &own)
        {
            // Where nothing has to explain them, anything may.
            return vec![way];
        }
        // Numbers that were fitted beside it may hide what would explain the points in its place, or may have to give way
        // first: each is looked for from where they are and from where they go without it.
        let mut begun = vec![Begun { by: Vec::new(), places: vec![alone, rest] }];
        let mut ways: Vec<Replacement> = Vec::new();
        for _ in 0..MOST_TAKEN {
            let mut tried: Vec<(Vec<usize>, Found)> = Vec::new();
            for Begun { by, places } in &begun {
                let before = places.iter().map(|place| place.cost).fold(f64::INFINITY, f64::min);
                for other in moving.iter().filter(|other| **other != index && !own.contains(other)) {
                    let mut with = [&by[..], &[*other]].concat();
                    with.sort_unstable();
                    let is_more = |way: &Replacement| way.by.iter().all(|one| with.contains(one));
                    let is_again = tried.iter().any(|(tried, _)| *tried == with);
                    if by.contains(other) || is_again || ways.iter().any(is_more) {
                        continue;
                    }
                    let all = [&own[..], &with].concat();
                    let leading = places.iter().filter(|from| leads_back(coarse, from, *other));
                    let found =
                        leading.filter_map(|from| Some(coarse.descend(coarse.scan(from, *other)?, &all)));
                    let found = found.min_by(|one, other| one.cost.total_cmp(&other.cost));
                    tried.extend(
                        found.filter(|found| before - found.cost >= self.margin).map(|found| (with, found)),
                    );
                }
            }
            tried.sort_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost));
            begun.clear();
            for (by, found) in tried {
                let way = (found.cost <= enough && ways.len() < MOST_WAYS)
                    .then(|| self.whole(by.clone(), &found, &[&own[..], &by].concat()));
                match way.flatten() {
                    Some(way) => ways.push(way),
                    None if begun.len() < MOST_BEGUN => begun.push(Begun { by, places: vec![found] }),
                    None => {}
                }
            }
            if ways.len() == MOST_WAYS {
                break;
            }
        }
        ways
    }

    /// A way, where all points fit by it: what the few do not see, all of them may.
    fn whole(&self, by: Vec<usize>, found: &Found, free: &[usize]) -> Option<Replacement> {
        let whole = self.search.descend(self.search.found(found.at.clone())?, free);
        (whole.cost <= self.best.cost + self.margin).then_some(Replacement {
            by,
            at: whole.at,
            is_held: false,
        })
    }
}

/// Whether a number at either of its bounds moves the points towards what was measured rather than away from it.
fn leads_back(search: &Search<'_>, from: &Found, index: usize) -> bool {
    [search.low[index], search.high[index]].into_iter().any(|end| {
        let mut to = from.at.clone();
        to[index] = end;
        let Some(there) = search.model.predict(&to) else { return false };
        let pull = |(place, measured): &(usize, f64)| {
            let error = from.predicted[*place] - measured;
            let moved = there[*place] - from.predicted[*place];
            // Beyond what is missing counts no more, since the number may stop on the way.
            weight(error) * error * moved.clamp(-error.abs(), error.abs())
        };
        search.points.iter().map(pull).sum::<f64>() < 0.0
    })
}
