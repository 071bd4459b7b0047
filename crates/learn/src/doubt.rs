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

impl Doubt<'_> {
    /// How the points fit with a fitted number at a place where it holds nothing back, if they do. Others are taken in its
    /// place one by one, each time the one that explains most.
    pub fn replacement(&self, index: usize, released: f64) -> Option<Replacement> {
        let Doubt { search, coarse, .. } = *self;
        let mut free: Vec<usize> = self.free.iter().copied().filter(|other| *other != index).collect();
        let mut at = self.best.at.clone();
        at[index] = released;
        let enough = coarse.found(self.best.at.clone())?.cost + self.margin;
        let alone = coarse.found(at)?;
        let mut found = coarse.descend(alone.clone(), &free);
        // Numbers that were fitted beside it may hide what would explain the points in its place, or may have to give way
        // first: each is looked for from where they are and from where they go without it.
        let mut places = vec![alone, found.clone()];
        let mut by = Vec::new();
        while found.cost > enough {
            if by.len() == MOST_TAKEN {
                return None;
            }
            let others: Vec<usize> = self
                .moving
                .iter()
                .copied()
                .filter(|other| *other != index && !free.contains(other))
                .collect();
            let tried = places.iter().filter_map(|from| {
                let leading = others.iter().filter(|other| leads_back(coarse, from, **other));
                let scanned = leading.filter_map(|other| Some((*other, coarse.scan(from, *other)?)));
                let (taken, scanned) =
                    scanned.min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost))?;
                let with = [&free[..], &[taken]].concat();
                Some((taken, coarse.descend(scanned, &with)))
            });
            let (taken, next) = tried.min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost))?;
            if found.cost - next.cost < self.margin {
                return None;
            }
            by.push(taken);
            free.push(taken);
            free.sort_unstable();
            places = vec![next.clone()];
            found = next;
        }
        // What the few points do not see, all of them may.
        let whole = search.descend(search.found(found.at)?, &free);
        (whole.cost <= self.best.cost + self.margin).then_some(Replacement { by, at: whole.at })
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
