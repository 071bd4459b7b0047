//! What is seen of a run from outside: demands by label, the stations' busy time, a trace.

use super::{Core, Planned};
use crate::window::Snapshot;
use offpath_quantity::{Bytes, Time};
use offpath_route::{Demand, PathOperation, StationId};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// One request of an application, under which operations and computing are counted.
///
/// It is given by [`Observer::begin`] and ended by [`Observer::end`]. It is a plain value, so a message
/// may carry it (see [`Label::value`]) to another role, which counts its part of the request under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(u64);

impl Label {
    /// The label as a number, to put into a message.
    pub fn value(self) -> u64 {
        self.0
    }

    /// The label that a message brought. A number that no request has counts nothing.
    pub fn from_value(value: u64) -> Label {
        Label(value)
    }
}

/// One thing that a followed request did.
#[derive(Clone, Debug, PartialEq)]
pub enum ObservedStep {
    /// An operation was handed to its NIC, or to an engine.
    Operation {
        /// The operation.
        operation: PathOperation,
        /// Whether its requester polls for its completion.
        signaled: bool,
        /// Whether 32 bits go with it, which hand a WRITE to the responder's program.
        immediate: bool,
        /// The length of the remote region that it names; `None` where it names none.
        region: Option<Bytes>,
    },
    /// A processor computed.
    Compute {
        /// Whose.
        endpoint: String,
        /// How long.
        time: Time,
    },
}

/// A sum over requests, with the sum of squares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// The sum.
    pub sum: f64,
    /// The sum of squares.
    pub squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.squares += value * value;
    }

    fn join(&mut self, other: &Moments) {
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The mean over `count` requests; 0 for none.
    pub fn mean(&self, count: u64) -> f64 {
        self.sum / count.max(1) as f64
    }

    /// Half the width of the 95% interval of the mean over `count` independent requests; infinite for
    /// fewer than two.
    pub fn half_width(&self, count: u64) -> f64 {
        if count < 2 {
            return f64::INFINITY;
        }
        let n = count as f64;
        let mean = self.sum / n;
        let variance = ((self.squares - n * mean * mean) / (n - 1.0)).max(0.0);
        crate::statistics::student_t_975(count as usize - 1) * (variance / n).sqrt()
    }
}

/// The demand that the requests of one kind were seen to have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Requests that ended.
    pub requests: u64,
    /// Operations that they posted.
    pub operations: u64,
    /// Server time by station, in picoseconds a request.
    pub time: BTreeMap<StationId, Moments>,
    /// Requests to packet cores by pool and class.
    pub pool: BTreeMap<(StationId, u8), Moments>,
    /// The largest share of a station's server time that one bank must give.
    pub banks: BTreeMap<StationId, f64>,
}

impl Recorded {
    /// The mean demand of a request, rounded to picoseconds. Pool requests are counted per 1 request
    /// only where the mean is whole; read [`Recorded::pool`] otherwise.
    pub fn demand(&self) -> Demand {
        let mean = |moments: &Moments| moments.mean(self.requests).round() as u64;
        Demand {
            time: self.time.iter().map(|(s, m)| (*s, Time::from_ps(mean(m)))).collect(),
            requests: self.pool.iter().map(|(s, m)| (*s, mean(m))).collect(),
            banks: self.banks.clone(),
        }
    }

    /// Counts what another kind was seen to have too.
    pub fn add(&mut self, other: &Recorded) {
        self.requests += other.requests;
        self.operations += other.operations;
        for (station, moments) in &other.time {
            self.time.entry(*station).or_default().join(moments);
        }
        for (pool, moments) in &other.pool {
            self.pool.entry(*pool).or_default().join(moments);
        }
        for (station, hottest) in &other.banks {
            let worst = self.banks.entry(*station).or_default();
            *worst = worst.max(*hottest);
        }
    }

    /// The widest 95% interval of any station's mean: half its width over the mean. It is what a caller
    /// compares with 1% before it stops sampling.
    pub fn relative_half_width(&self) -> f64 {
        let all = self.time.values().chain(self.pool.values());
        all.filter(|m| m.sum > 0.0)
            .map(|m| m.half_width(self.requests) / m.mean(self.requests))
            .fold(0.0, f64::max)
    }
}

/// Values by station. Every operation of a loaded run adds to some twenty, which maps would search for each.
struct ByStation<T>(Vec<Option<(StationId, T)>>);

impl<T> Default for ByStation<T> {
    fn default() -> ByStation<T> {
        ByStation(Vec::new())
    }
}

impl<T: Default> ByStation<T> {
    fn of(&mut self, station: StationId) -> &mut T {
        let at = station.index();
        if at >= self.0.len() {
            self.0.resize_with(at + 1, || None);
        }
        &mut self.0[at].get_or_insert_with(|| (station, T::default())).1
    }

    fn take(&mut self) -> impl Iterator<Item = (StationId, T)> + '_ {
        self.0.iter_mut().filter_map(Option::take)
    }

    fn map(&self) -> BTreeMap<StationId, T>
    where
        T: Clone,
    {
        self.0.iter().flatten().cloned().collect()
    }
}

/// What one request, or all of a kind, asked of the stations: server time, requests to packet cores by class, the
/// largest share of one bank.
#[derive(Default)]
struct Asked<T> {
    operations: u64,
    time: ByStation<T>,
    /// By pool and class, of which a system has a few.
    pool: Vec<(StationId, u8, T)>,
    banks: ByStation<f64>,
}

impl<T: Default> Asked<T> {
    fn pool(&mut self, station: StationId, class: u8) -> &mut T {
        let known = self.pool.iter().position(|(own, of, _)| (*own, *of) == (station, class));
        let at = known.unwrap_or_else(|| {
            self.pool.push((station, class, T::default()));
            self.pool.len() - 1
        });
        &mut self.pool[at].2
    }
}

/// What one operation asks of the stations, as it is added to a request: every operation of a loaded run is.
pub(crate) struct Asks {
    time: Vec<(StationId, u64)>,
    pool: Vec<(StationId, u8, u64)>,
    banks: Vec<(StationId, f64)>,
}

impl Asks {
    pub(super) fn of(demand: &Demand) -> Asks {
        Asks {
            time: demand.time.iter().map(|(station, time)| (*station, time.ps())).collect(),
            pool: demand.requests.iter().map(|((station, class), n)| (*station, *class, *n)).collect(),
            banks: demand.banks.iter().map(|(station, hottest)| (*station, *hottest)).collect(),
        }
    }
}

#[derive(Default)]
struct Open {
    kind: u32,
    asked: Asked<u64>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    /// By how much less than `next` their labels are, the oldest last; those of ended ones are none.
    open: VecDeque<Option<Box<Open>>>,
    /// Requests that ended, whose memory the next ones take.
    #[expect(clippy::vec_box, reason = "a box goes from the open ones to these and back")]
    spare: Vec<Box<Open>>,
    recorded: BTreeMap<u32, (u64, Asked<Moments>)>,
    last: Snapshot,
    deadlock: Vec<String>,
    trace: String,
    observed_steps: Vec<ObservedStep>,
}

impl Inner {
    /// Where a label's request is, or was.
    fn open(&mut self, label: Label) -> Option<&mut Option<Box<Open>>> {
        let younger = self.next.checked_sub(label.0).filter(|_| label.0 > 0)?;
        self.open.get_mut(usize::try_from(younger).ok()?)
    }
}

/// Looks at a run from outside: a handle that is given to [`super::TwinBackend::with_observer`] and read
/// during the run, by roles, or after it. Clones are handles to the same observations.
///
/// An operation is counted when it is handed to its NIC, with the route's demand, and a compute when
/// it starts; both count whole under the [`Label`] of the handle that they were started through.
#[derive(Clone, Default)]
pub struct Observer {
    inner: Rc<RefCell<Inner>>,
    traced: Rc<Cell<bool>>,
    followed: Rc<Cell<Option<Label>>>,
}

impl Observer {
    /// One that has seen nothing yet.
    pub fn new() -> Observer {
        Observer::default()
    }

    /// The same, writing a line for every end of an operation and of a role.
    pub fn traced(self) -> Observer {
        self.traced.set(true);
        self
    }

    /// Begins a request of a kind, which the caller numbers.
    pub fn begin(&self, kind: u32) -> Label {
        let mut inner = self.inner.borrow_mut();
        inner.next += 1;
        let label = inner.next;
        let mut open = inner.spare.pop().unwrap_or_default();
        open.kind = kind;
        inner.open.push_front(Some(open));
        Label(label)
    }

    /// Ends a request and adds what it asked for to its kind. Ending it twice, or what came after,
    /// counts nothing.
    pub fn end(&self, label: Label) {
        let inner = &mut *self.inner.borrow_mut();
        let Some(mut open) = inner.open(label).and_then(Option::take) else { return };
        while inner.open.back().is_some_and(Option::is_none) {
            inner.open.pop_back();
        }
        let (requests, recorded) = inner.recorded.entry(open.kind).or_default();
        let asked = &mut open.asked;
        *requests += 1;
        recorded.operations += std::mem::take(&mut asked.operations);
        for (station, time) in asked.time.take() {
            recorded.time.of(station).add(time as f64);
        }
        for (station, class, count) in asked.pool.drain(..) {
            recorded.pool(station, class).add(count as f64);
        }
        for (station, hottest) in asked.banks.take() {
            let worst = recorded.banks.of(station);
            *worst = worst.max(hottest);
        }
        inner.spare.push(open);
    }

    /// What the ended requests of each kind asked for.
    pub fn recorded(&self) -> BTreeMap<u32, Recorded> {
        let of = |(kind, (requests, asked)): (&u32, &(u64, Asked<Moments>))| {
            let recorded = Recorded {
                requests: *requests,
                operations: asked.operations,
                time: asked.time.map(),
                pool: asked.pool.iter().map(|(station, class, of)| ((*station, *class), *of)).collect(),
                banks: asked.banks.map(),
            };
            (*kind, recorded)
        };
        self.inner.borrow().recorded.iter().map(of).collect()
    }

    /// Forgets what ended requests asked for, as after a warm-up.
    pub fn reset(&self) {
        self.inner.borrow_mut().recorded.clear();
    }

    /// Notes what `label` does from here on, one thing after another; one label is followed at a time.
    pub fn follow(&self, label: Label) {
        self.inner.borrow_mut().observed_steps.clear();
        self.followed.set(Some(label));
    }

    /// What the followed label did, in the order in which it was begun. It is followed no more.
    pub fn observed_steps(&self) -> Vec<ObservedStep> {
        self.followed.set(None);
        std::mem::take(&mut self.inner.borrow_mut().observed_steps)
    }

    pub(super) fn did(&self, label: Option<Label>, observed_step: impl FnOnce() -> ObservedStep) {
        if label.is_some() && label == self.followed.get() {
            let observed_step = observed_step();
            self.inner.borrow_mut().observed_steps.push(observed_step);
        }
    }

    /// The stations at the end of the run.
    pub fn last(&self) -> Snapshot {
        self.inner.borrow().last.clone()
    }

    /// What each waiting role waited for where the run stood still, in words.
    pub fn deadlock(&self) -> Vec<String> {
        self.inner.borrow().deadlock.clone()
    }

    /// The lines written so far: picoseconds, role, event. Empty unless [`Observer::traced`].
    pub fn trace(&self) -> String {
        self.inner.borrow().trace.clone()
    }

    pub(super) fn add_time(&self, label: Option<Label>, station: StationId, time: Time) {
        let Some(label) = label else { return };
        if let Some(Some(open)) = self.inner.borrow_mut().open(label) {
            *open.asked.time.of(station) += time.ps();
        }
    }

    pub(super) fn add_route(&self, label: Option<Label>, planned: &Planned, core: &Core) {
        let Some(label) = label else { return };
        if let Some(Some(open)) = self.inner.borrow_mut().open(label) {
            let asked = &mut open.asked;
            let asks = planned.asks.get_or_init(|| Asks::of(&planned.route.demand(&core.router)));
            asked.operations += 1;
            for (station, time) in &asks.time {
                *asked.time.of(*station) += time;
            }
            for (station, class, count) in &asks.pool {
                *asked.pool(*station, *class) += count;
            }
            for (station, hottest) in &asks.banks {
                let worst = asked.banks.of(*station);
                *worst = worst.max(*hottest);
            }
        }
    }

    pub(super) fn note(&self, line: impl FnOnce() -> String) {
        if self.traced.get() {
            let mut inner = self.inner.borrow_mut();
            inner.trace.push_str(&line());
            inner.trace.push('\n');
        }
    }

    pub(super) fn ended(&self, last: Snapshot, deadlock: Vec<String>) {
        let mut inner = self.inner.borrow_mut();
        (inner.last, inner.deadlock) = (last, deadlock);
    }
}
