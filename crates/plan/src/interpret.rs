//! Step lists as an application: the same small interpreter runs every design on every backend.
//!
//! A role stands for each machine's endpoint that a program visits. Requests start at tasks of their
//! initiator; a message carries the program, the position and the task that began it, so whichever
//! task receives it goes on where the sender stopped. The payloads are real bytes of real regions;
//! their content means nothing.
//!
//! A request keeps to one machine of each role: its initiator's is the one where it began, of the
//! others requests take turns. Work in the background starts where the answer leaves and goes its own
//! way; as many requests may have it in flight as may wait for answers, then an answer waits for one.

use crate::program::{Call, Channel, Compiled, Instruction, Program};
use offpath_fabric::{
    Access, Address, Completion, Fabric, Listener, LocalBoxFuture, MemoryAt, PostError, QueuePair,
    QueuePairOptions, Region, RemoteRegion, Role, Status, Unsupported, Work, WorkRequest,
};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Transport, Verb};
use offpath_twin::unit_of;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// What a backend that models hardware is told about a call and cannot see from its bytes: the
/// request that it belongs to, how its addresses are spread, and that it is posted in a batch.
///
/// A backend without a model has nothing to do with it.
pub trait Hint: Fabric {
    /// The queue pair to post `call` on for the request `label`, given the one to its responder.
    fn hinted(&self, queue_pair: &Self::QueuePair, call: &Call, label: u64) -> Self::QueuePair {
        let _ = (call, label);
        queue_pair.clone()
    }

    /// The context to compute and copy with for the request `label`.
    fn labelled_fabric(&self, label: u64) -> Self {
        let _ = label;
        self.clone()
    }

    /// Does what both ends of `call` are one processor's: its own loads and stores, and what engines do to its memories.
    fn perform(&self, call: &Call) -> Result<LocalBoxFuture<()>, Unsupported> {
        let _ = call;
        Ok(Box::pin(self.compute(Work::Time(Time::ZERO))))
    }
}

impl Hint for offpath_fabric::local::LocalFabric {}

/// A request to serve.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The alternative, by position.
    pub alternative: u16,
    /// The program of it, by position.
    pub program: u16,
    /// When it arrived.
    pub born: Time,
    /// What an observer knows it by.
    pub label: u64,
}

/// How branches are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chance {
    /// By seeded draws.
    Random,
    /// In exact proportion: every prefix of the requests takes each case as often as its
    /// probability says, within one. Averages converge with the number of requests, not its root.
    Proportional,
}

/// Requests that one run may have in flight at each initiator: messages carry a task's number as 16
/// bits, and the greatest stands for none.
pub const MOST_TASKS: u32 = u16::MAX as u32;
/// Alternatives of a run, and programs of an alternative: messages carry each as 8 bits.
const MOST_PROGRAMS: usize = 1 << u8::BITS;

/// More of something than a message can name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("a run has {count} {what}, and at most {bound} can be told apart")]
#[diagnostic(help("run fewer at once"))]
pub struct TooMany {
    /// Of what.
    pub what: &'static str,
    /// How many there are.
    pub count: usize,
    /// How many there may be.
    pub bound: usize,
}

fn at_most(what: &'static str, count: usize, bound: usize) -> Result<(), TooMany> {
    if count > bound { Err(TooMany { what, count, bound }) } else { Ok(()) }
}

/// What all tasks of a run share.
pub struct RunState {
    /// The alternatives.
    pub script: Vec<Compiled>,
    /// How branches are decided.
    pub chance: Chance,
    /// Requests that wait for a task, by initiator.
    queues: RefCell<BTreeMap<String, VecDeque<Job>>>,
    /// Tasks without a request, by initiator and machine.
    waiting: RefCell<BTreeMap<String, BTreeMap<u32, VecDeque<Waker>>>>,
    /// Called when a request is answered, or with the failure.
    ended: Box<Ended>,
    /// Called when nothing of a request is left to do.
    done: Box<dyn Fn(Job, Time)>,
    taken: RefCell<BTreeMap<(u16, u16, u16), f64>>,
    connected: Cell<usize>,
    /// The requests in flight by who began them, so that messages need not carry all of this.
    open: RefCell<BTreeMap<u64, Open>>,
    /// Requests that were begun, by alternative and program.
    turns: RefCell<BTreeMap<(u8, u8), u32>>,
    /// Where programs stand whose messages are too short to say it, by the word that goes with them.
    places: RefCell<BTreeMap<u32, Place>>,
    next_place: Cell<u32>,
    /// Numbers that work in the background may take, and who waits for one.
    free: RefCell<Vec<u16>>,
    waiting_for_free: RefCell<VecDeque<Waker>>,
    /// How many machines of each role take part, by the position of the role's machine.
    counts: RefCell<BTreeMap<usize, u32>>,
    /// The machine of each endpoint, by position.
    machines: BTreeMap<String, usize>,
    /// The memory of each endpoint on each of its machines.
    regions: RefCell<BTreeMap<Peer, RemoteRegion>>,
    /// The first failure away from a request's initiator, with its alternative.
    broken: RefCell<Option<(u16, RequestFailure)>>,
    /// Lines that were made.
    lines: Cell<u64>,
    largest: Bytes,
    largest_message: Bytes,
}

/// A request, or its work in the background, in flight.
struct Open {
    job: Job,
    /// The machine of its initiator.
    home: u32,
    /// How many of its kind began before it.
    turn: u32,
    /// Who waits for its end.
    waker: Option<Waker>,
    /// How much of the request is not over yet: what its initiator waits for, and the work in the background.
    left: Rc<Cell<u8>>,
}

/// What hears of a request's end: the request, when, and how.
type Ended = dyn Fn(Job, Time, Result<(), RequestFailure>);

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFailure {
    /// An operation completed with an error.
    Operation(Status),
    /// An operation could not be posted.
    Post(String),
}

impl From<PostError> for RequestFailure {
    fn from(error: PostError) -> RequestFailure {
        RequestFailure::Post(error.to_string())
    }
}

impl RunState {
    /// The shared part of a run over `script`; `ended` hears of every request's end.
    ///
    /// At most 256 alternatives of at most 256 programs each can be told apart.
    pub fn new(
        script: Vec<Compiled>,
        chance: Chance,
        ended: impl Fn(Job, Time, Result<(), RequestFailure>) + 'static,
    ) -> Result<Rc<RunState>, TooMany> {
        RunState::hearing(script, chance, ended, |_, _| {})
    }

    /// The same, with `done` told when a request's work in the background is over too.
    pub fn hearing(
        script: Vec<Compiled>,
        chance: Chance,
        ended: impl Fn(Job, Time, Result<(), RequestFailure>) + 'static,
        done: impl Fn(Job, Time) + 'static,
    ) -> Result<Rc<RunState>, TooMany> {
        at_most("alternatives", script.len(), MOST_PROGRAMS)?;
        for one in &script {
            at_most("programs of an alternative", one.programs.len(), MOST_PROGRAMS)?;
        }
        let largest = calls(&script).map(|call| call.operation.payload).max().unwrap_or(Bytes::ZERO);
        let messages = calls(&script).filter(|call| call.operation.verb.is_message());
        let largest_message = messages.map(|call| call.operation.payload).max().unwrap_or(Bytes::ZERO);
        let machines = programs(&script).flat_map(|program| program.machines.clone()).collect();
        Ok(Rc::new(RunState {
            script,
            chance,
            queues: RefCell::default(),
            waiting: RefCell::default(),
            ended: Box::new(ended),
            done: Box::new(done),
            taken: RefCell::default(),
            connected: Cell::new(0),
            open: RefCell::default(),
            turns: RefCell::default(),
            places: RefCell::default(),
            next_place: Cell::new(0),
            free: RefCell::default(),
            waiting_for_free: RefCell::default(),
            counts: RefCell::default(),
            machines,
            regions: RefCell::default(),
            broken: RefCell::default(),
            lines: Cell::new(0),
            largest: Bytes::new(largest.get().max(64)),
            largest_message: Bytes::new(largest_message.get().max(8)),
        }))
    }

    /// Hands a request to a free task of its initiator, on the machine that the random bits `draw` choose
    /// among those that have one: users come to every client alike.
    pub fn push(&self, job: Job, draw: u64) {
        let initiator = &self.program(job.alternative, job.program).initiator;
        self.queues.borrow_mut().entry(initiator.clone()).or_default().push_back(job);
        let mut waiting = self.waiting.borrow_mut();
        let Some(machines) = waiting.get_mut(initiator) else { return };
        let free: Vec<u32> =
            machines.iter().filter(|(_, tasks)| !tasks.is_empty()).map(|(machine, _)| *machine).collect();
        let chosen = (unit_of(draw) * free.len() as f64) as usize;
        if let Some(waker) = free.get(chosen).and_then(|machine| machines.get_mut(machine)?.pop_front()) {
            drop(waiting);
            waker.wake();
        }
    }

    /// The first failure away from a request's initiator, with its alternative.
    pub fn broken(&self) -> Option<(u16, RequestFailure)> {
        self.broken.borrow().clone()
    }

    /// Tasks that have set up their connections and posted their first receive.
    pub fn connected(&self) -> usize {
        self.connected.get()
    }

    /// Tasks that have to be set up before the first request: `tasks` of each initiator, and `inbox`
    /// of each endpoint that answers datagrams, on each of its machines.
    pub fn expected(&self, tasks: u32, inbox: u32) -> usize {
        let endpoints = self.endpoints();
        let answer = endpoints.iter().filter(|name| self.serves(name, true));
        let inboxes: usize = answer.map(|name| self.count(name) as usize).sum();
        tasks as usize * self.initiators().len() + inbox as usize * inboxes
    }

    /// How many machines have this endpoint.
    fn count(&self, endpoint: &str) -> u32 {
        let machine = self.machines.get(endpoint);
        machine.and_then(|machine| self.counts.borrow().get(machine).copied()).unwrap_or(1)
    }

    /// Says how many machines of each role take part: those of initiators as far as they have tasks, and
    /// as one message reaches at once; all of the others.
    fn count_machines(&self, instances: &BTreeMap<String, u32>, tasks: u32) {
        let initiators = self.initiators();
        let mut counts = self.counts.borrow_mut();
        for (endpoint, machine) in &self.machines {
            let all = instances.get(endpoint).copied().unwrap_or(1).max(1);
            let reached = calls(&self.script).filter(|call| call.responder() == *endpoint);
            let at_once = reached.map(|call| call.to).max().unwrap_or(1);
            let own = if initiators.contains(endpoint) { all.min(tasks.max(at_once).max(1)) } else { all };
            counts.entry(*machine).and_modify(|count| *count = (*count).min(own)).or_insert(own);
        }
    }

    /// The endpoints that start requests.
    pub fn initiators(&self) -> BTreeSet<String> {
        programs(&self.script).map(|program| program.initiator.clone()).collect()
    }

    /// Every endpoint that needs a role.
    pub fn endpoints(&self) -> BTreeSet<String> {
        let mut all = self.initiators();
        for call in calls(&self.script) {
            all.insert(call.requester().to_string());
            all.insert(call.responder().to_string());
        }
        all
    }

    fn program(&self, alternative: u16, program: u16) -> &Arc<Program> {
        &self.script[usize::from(alternative)].programs[usize::from(program)].1
    }

    async fn next(&self, initiator: &str, machine: u32) -> Job {
        poll_fn(|context| {
            let job = self.queues.borrow_mut().get_mut(initiator).and_then(VecDeque::pop_front);
            match job {
                Some(job) => Poll::Ready(job),
                None => {
                    let mut waiting = self.waiting.borrow_mut();
                    let machines = waiting.entry(initiator.to_string()).or_default();
                    machines.entry(machine).or_default().push_back(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn takes(&self, at: (u16, u16, u16), probability: f64, draw: impl Fn() -> u64) -> bool {
        match self.chance {
            Chance::Random => unit_of(draw()) < probability,
            Chance::Proportional => {
                let mut taken = self.taken.borrow_mut();
                let owed = taken.entry(at).or_insert(0.5);
                *owed += probability;
                let take = *owed >= 1.0;
                if take {
                    *owed -= 1.0;
                }
                take
            }
        }
    }

    /// Whether any program sends datagrams from or to `endpoint`.
    fn has_datagrams(&self, endpoint: &str) -> bool {
        let is_there = |call: &Call| call.requester() == endpoint || call.responder() == endpoint;
        calls(&self.script).any(|call| is_datagram(call) && is_there(call))
    }

    /// Whether requests go on at `endpoint` that began elsewhere, by datagrams or by connections.
    fn serves(&self, endpoint: &str, by_datagrams: bool) -> bool {
        programs(&self.script).filter(|program| program.initiator != endpoint).any(|program| {
            program.calls().any(|call| {
                call.responder() == endpoint
                    && call.hands_over()
                    && if by_datagrams { is_datagram(call) } else { call.takes(Channel::Call) }
            })
        })
    }

    /// Whether copies of messages reach `endpoint` that no request waits for.
    fn takes_copies(&self, endpoint: &str) -> bool {
        let meant = |call: &&Arc<Call>| call.responder() == endpoint;
        calls(&self.script).filter(meant).any(|call| call.has_copies())
    }

    /// The endpoints to which `requester` makes connections to go on there.
    fn called(&self, requester: &str) -> BTreeSet<String> {
        calls(&self.script)
            .filter(|call| call.takes(Channel::Call) && call.requester() == requester)
            .map(|call| call.responder().to_string())
            .collect()
    }

    /// Whether connections from `endpoint` lead back to it.
    fn is_round(&self, endpoint: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut next: Vec<String> = self.called(endpoint).into_iter().collect();
        while let Some(name) = next.pop() {
            if name == endpoint {
                return true;
            }
            if seen.insert(name.clone()) {
                next.extend(self.called(&name));
            }
        }
        false
    }

    /// The endpoints that end a request of `initiator` on a connection which it did not ask on.
    fn answered_by(&self, initiator: &str) -> BTreeSet<String> {
        calls(&self.script)
            .filter(|call| call.takes(Channel::Back) && call.responder() == initiator)
            .map(|call| call.requester().to_string())
            .collect()
    }

    /// Begins a request at a task.
    fn begin(&self, place: Place, job: Job) {
        let mut turns = self.turns.borrow_mut();
        let turn = turns.entry((place.alternative, place.program)).or_default();
        let has_background = self.program(job.alternative, job.program).background.is_some();
        let left = Rc::new(Cell::new(1 + u8::from(has_background)));
        let open = Open { job, home: place.instance.into(), turn: *turn, waker: None, left };
        *turn = turn.wrapping_add(1);
        self.open.borrow_mut().insert(place.request(), open);
    }

    /// The label and the initiator's machine of a request, and its turn.
    fn known(&self, place: Place) -> (u64, u32, u32) {
        let open = self.open.borrow();
        open.get(&place.request()).map_or((0, 0, 0), |open| (open.job.label, open.home, open.turn))
    }

    /// Takes a number for work in the background, when there is one.
    async fn detach(&self, place: Place) -> Place {
        let task = poll_fn(|context| match self.free.borrow_mut().pop() {
            Some(task) => Poll::Ready(task),
            None => {
                self.waiting_for_free.borrow_mut().push_back(context.waker().clone());
                Poll::Pending
            }
        })
        .await;
        let detached = Place { instance: DETACHED, task, ..place };
        let mut open = self.open.borrow_mut();
        if let Some(Open { job, home, turn, left, .. }) = open.get(&place.request()) {
            let own = Open { job: *job, home: *home, turn: *turn, waker: None, left: left.clone() };
            open.insert(detached.request(), own);
        }
        detached
    }

    /// Ends what the initiator of a request waits for.
    fn end_request(&self, place: Place, at: Time) {
        let open = self.open.borrow().get(&place.request()).map(|open| (open.job, open.left.clone()));
        if let Some((job, left)) = open {
            self.over(job, &left, at);
        }
    }

    /// Ends work in the background.
    fn end_detached(&self, place: Place, at: Time) {
        let Some(open) = self.open.borrow_mut().remove(&place.request()) else { return };
        if let Some(waker) = open.waker {
            waker.wake();
        }
        self.free.borrow_mut().push(place.task);
        if let Some(waker) = self.waiting_for_free.borrow_mut().pop_front() {
            waker.wake();
        }
        self.over(open.job, &open.left, at);
    }

    /// Says that a part of a request is over; with the last one the request is, whichever that is.
    fn over(&self, job: Job, left: &Cell<u8>, at: Time) {
        left.set(left.get() - 1);
        if left.get() == 0 {
            (self.done)(job, at);
        }
    }

    /// Keeps where a program stands until the word that is given comes with its message.
    fn leave(&self, place: Place) -> u32 {
        let word = self.next_place.get();
        self.next_place.set(word.wrapping_add(1));
        self.places.borrow_mut().insert(word, place);
        word
    }

    /// The endpoints whose memory `requester` reaches by one-sided verbs or an engine.
    fn reaches(&self, requester: &str) -> BTreeSet<String> {
        calls(&self.script)
            .filter(|call| !call.operation.verb.is_message() && !call.is_own())
            .filter(|call| call.requester() == requester)
            .map(|call| call.responder().to_string())
            .collect()
    }
}

fn is_datagram(call: &Call) -> bool {
    call.operation.verb.row().transport == Transport::Datagram
}

fn programs(script: &[Compiled]) -> impl Iterator<Item = &Arc<Program>> {
    script.iter().flat_map(|one| one.programs.iter().map(|(_, program)| program))
}

fn calls(script: &[Compiled]) -> impl Iterator<Item = &Arc<Call>> {
    programs(script).flat_map(|program| program.code.iter()).filter_map(|instruction| match instruction {
        Instruction::Verb(call) => Some(call),
        _ => None,
    })
}

/// Where a program stands, as a message carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    alternative: u8,
    program: u8,
    position: u16,
    /// The task that began the request: its instance and its number there. Work in the background has
    /// [`DETACHED`] and a number of its own.
    instance: u16,
    task: u16,
}

impl Place {
    /// What stands for no request.
    const NOWHERE: Place = Place { alternative: 0, program: 0, position: 0, instance: 0, task: 0 };

    fn to_bytes(self) -> [u8; 8] {
        let mut bytes = [self.alternative, self.program, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&self.position.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.instance.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.task.to_le_bytes());
        bytes
    }

    /// What tells the request from all others, wherever it stands. It is looked up for every verb, so it is one
    /// number.
    fn request(self) -> u64 {
        u64::from_le_bytes(Place { position: 0, ..self }.to_bytes())
    }

    fn from_bytes(bytes: [u8; 8]) -> Place {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Place {
            alternative: bytes[0],
            program: bytes[1],
            position: word(2),
            instance: word(4),
            task: word(6),
        }
    }
}

/// The instance of work in the background, which no task waits for.
const DETACHED: u16 = u16::MAX;

const MEMORY_SERVICE: &str = "memory";
const CALL_SERVICE: &str = "call";
const BACK_SERVICE: &str = "back";
const MESSAGE_SERVICE: &str = "messages";
const COPY_SERVICE: &str = "copies";
/// Messages that a task may have on their way out.
const OUTBOX: u64 = 16;
/// Copies of messages that may be in flight on a connection.
const COPIES: u32 = 1024;
/// Time that connection set-up may take before a run is given up.
const PATIENCE: Time = Time::from_ms(60_000);

/// The roles of a run: one for each endpoint and instance.
///
/// `tasks` is how many requests an initiator may have in flight over all its instances, `inbox` how
/// many messages an endpoint may handle at once; both are at most [`MOST_TASKS`]. `main` runs in the
/// first role and ends the run.
pub fn roles<F: Hint>(
    shared: &Rc<RunState>,
    instances: &BTreeMap<String, u32>,
    tasks: u32,
    inbox: u32,
    main: impl Fn(F) -> LocalBoxFuture<()> + Clone + 'static,
) -> Result<Vec<Role<F, ()>>, TooMany> {
    at_most("requests in flight", tasks as usize, MOST_TASKS as usize)?;
    at_most("messages handled at once", inbox as usize, MOST_TASKS as usize)?;
    shared.count_machines(instances, tasks);
    // The lowest number is taken first, so that few are used where few are needed.
    *shared.free.borrow_mut() = (0..tasks.clamp(1, MOST_TASKS) as u16).rev().collect();
    let mut roles = Vec::new();
    let initiators = shared.initiators();
    let first = initiators.iter().next().cloned().unwrap_or_default();
    for endpoint in shared.endpoints() {
        let count = shared.count(&endpoint);
        for instance in 0..count {
            let own = if initiators.contains(&endpoint) {
                tasks / count + u32::from(instance < tasks % count)
            } else {
                0
            };
            let (shared, main) = (shared.clone(), main.clone());
            let leads = endpoint == first && instance == 0;
            let role = Role::new(&endpoint, instance, move |fabric: F| {
                let (shared, main) = (shared.clone(), main.clone());
                async move {
                    Agent::start(fabric.clone(), shared, own, inbox).await;
                    if leads {
                        main(fabric).await;
                    } else {
                        std::future::pending::<()>().await;
                    }
                }
            });
            roles.push(if leads { role } else { role.in_background() });
        }
    }
    Ok(roles)
}

/// Of so many messages on a queue pair one is asked for its completion, which frees the slots of all:
/// asking for each would cost a poll each.
const SIGNALED: u64 = 64;

/// A queue pair that messages leave on, with how many have.
struct Line<F: Fabric> {
    pair: F::QueuePair,
    sent: Cell<u64>,
}

impl<F: Fabric> Line<F> {
    /// Lines begin at different counts: else all ask for a completion with their first message, and a
    /// window that is short for many of them counts more polls than go with its messages.
    fn new(pair: F::QueuePair, shared: &RunState) -> Rc<Line<F>> {
        let number = shared.lines.get();
        shared.lines.set(number.wrapping_add(1));
        Rc::new(Line { pair, sent: Cell::new(number % SIGNALED) })
    }
}

/// One end of a connection to an endpoint's memory.
type Memory<F> = (<F as Fabric>::QueuePair, RemoteRegion);
/// An endpoint on one of its machines.
type Peer = (String, u32);

/// A task that waits for an answer: its role, the number of its machine, and its number there.
type Asker = (String, u16, u16);

/// What one role holds.
struct Agent<F: Fabric> {
    fabric: F,
    name: String,
    instance: u32,
    shared: Rc<RunState>,
    region: F::Region,
    /// What handlers send datagrams on, and an inbox receives on.
    datagrams: Option<Rc<Line<F>>>,
    addresses: RefCell<BTreeMap<(String, u32, String), Address>>,
    /// Connections to the memories of endpoints on several machines that nobody uses now.
    memories: RefCell<BTreeMap<Peer, Vec<Memory<F>>>>,
    /// Connections that the tasks of initiators wait on for an answer from here.
    back: RefCell<BTreeMap<Asker, Rc<Line<F>>>>,
    /// Connections for copies of messages.
    copies: RefCell<BTreeMap<Peer, Rc<Line<F>>>>,
    /// Tasks for work in the background that have none.
    idle: RefCell<Vec<Rc<Task<F>>>>,
}

/// What one task holds: connections of its own, so that tasks never wait for each other.
struct Task<F: Fabric> {
    agent: Rc<Agent<F>>,
    local: F::Region,
    /// Messages on their way out, in slots of their own: what comes in must not change them. The last
    /// slot is that of copies, whose content nobody reads.
    outbox: F::Region,
    sent: Cell<u64>,
    /// Receives that are posted and not yet used: a branch that sends nothing leaves its receive to the
    /// next message.
    posted: RefCell<BTreeMap<Inlet, F::CompletionFuture>>,
    /// What comes in lies apart by where it does: neither a later message nor what a verb brings may change
    /// a message that is not looked at yet.
    inboxes: RefCell<BTreeMap<Inlet, F::Region>>,
    /// Memories of endpoints that are on one machine.
    remote: BTreeMap<String, Memory<F>>,
    calls: RefCell<BTreeMap<Peer, Rc<Line<F>>>>,
    /// Connections on which endpoints answer that were not asked on one.
    back: BTreeMap<Peer, Rc<Line<F>>>,
    /// Who made the connection that this task handles.
    caller: Option<(String, Rc<Line<F>>)>,
    datagrams: Option<Rc<Line<F>>>,
    /// Whether this task receives datagrams.
    has_inbox: bool,
    instance: u16,
    number: u16,
}

/// Where a message may come in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Inlet {
    Caller,
    Datagram,
    Call(Peer),
    Back(Peer),
}

/// What a task is there for.
enum Duty<F: Fabric> {
    /// It begins requests.
    Initiate,
    /// It handles the requests that come on a connection.
    Connection(String, F::QueuePair),
    /// It handles datagrams.
    Inbox,
    /// It does work in the background.
    Detached,
}

fn rc() -> QueuePairOptions {
    QueuePairOptions { connect_timeout: PATIENCE, ..QueuePairOptions::rc() }
}

impl<F: Hint> Agent<F> {
    async fn start(fabric: F, shared: Rc<RunState>, tasks: u32, inbox: u32) {
        let name = fabric.role().role;
        let memory = fabric.memories().first().expect("an endpoint has memory").name.clone();
        let region = fabric
            .register(&memory, shared.largest.get(), Access::ALL)
            .expect("the largest payload fits the memory");
        let own = (name.clone(), fabric.role().instance);
        shared.regions.borrow_mut().insert(own, region.remote());
        let datagrams = shared.has_datagrams(&name).then(|| {
            let depth = inbox.max(1);
            let options =
                QueuePairOptions { send_depth: 4096, receive_depth: depth, ..QueuePairOptions::ud() };
            Line::new(fabric.create_queue_pair(options).expect("the backend has datagrams"), &shared)
        });
        let agent = Rc::new(Agent {
            instance: fabric.role().instance,
            fabric: fabric.clone(),
            name: name.clone(),
            shared: shared.clone(),
            region,
            datagrams,
            addresses: RefCell::default(),
            memories: RefCell::default(),
            back: RefCell::default(),
            copies: RefCell::default(),
            idle: RefCell::default(),
        });
        fabric.spawn_task(Box::pin(serve_memory(agent.clone())));
        if shared.serves(&name, false) {
            fabric.spawn_task(Box::pin(serve_calls(agent.clone())));
        }
        if calls(&shared.script).any(|call| call.takes(Channel::Back) && call.requester() == name) {
            fabric.spawn_task(Box::pin(serve_back(agent.clone())));
        }
        if shared.takes_copies(&name) {
            fabric.spawn_task(Box::pin(serve_copies(agent.clone())));
            if agent.datagrams.is_some() {
                let options = QueuePairOptions { receive_depth: COPIES, ..QueuePairOptions::ud() };
                let pair = fabric.create_queue_pair(options).expect("the backend has datagrams");
                fabric.spawn_task(Box::pin(drop_messages(agent.clone(), pair.clone())));
                fabric.publish(COPY_SERVICE, &pair).expect("a service of its own");
            }
        }
        if let Some(line) = agent.datagrams.as_ref().filter(|_| shared.serves(&name, true)) {
            fabric.publish(MESSAGE_SERVICE, &line.pair).expect("a service of its own");
            for number in 0..inbox {
                fabric.spawn_task(Box::pin(serve_datagrams(agent.clone(), number)));
            }
        }
        for number in 0..tasks {
            fabric.spawn_task(Box::pin(initiate(agent.clone(), number as u16)));
        }
    }

    async fn task(self: &Rc<Self>, number: u16, duty: Duty<F>) -> Rc<Task<F>> {
        let (fabric, shared) = (&self.fabric, &self.shared);
        let memory = fabric.memories().first().expect("an endpoint has memory").name.clone();
        // What one-sided requests move is nobody's to read, so all tasks of an endpoint move the same.
        let local = self.region.clone();
        // What tasks tell each other while they connect is read, so each has room of its own for that.
        let hello_room = fabric.register(&memory, 64, Access::ALL).expect("64 bytes fit the memory");
        // Messages overlap but for the first 8 bytes of each, which are all that is read of them.
        let outbox = fabric
            .register(&memory, shared.largest_message.get() + 8 * (OUTBOX + 1), Access::ALL)
            .expect("a message fits the memory");
        let mut remote = BTreeMap::new();
        for responder in shared.reaches(&self.name) {
            if let [instance] = self.machines_of(&responder)[..] {
                let memory = self.connect_memory(&(responder.to_string(), instance)).await;
                remote.insert(responder, memory);
            }
        }
        let mut calls = BTreeMap::new();
        // Connections that lead round would make handlers without end; those are made when needed.
        if !shared.is_round(&self.name) {
            for responder in shared.called(&self.name) {
                for instance in self.machines_of(&responder) {
                    let line = self.connect(&responder, instance, CALL_SERVICE).await;
                    calls.insert((responder.to_string(), instance), line);
                }
            }
        }
        let initiates = matches!(duty, Duty::Initiate);
        let mut back = BTreeMap::new();
        for endpoint in shared.answered_by(&self.name).into_iter().filter(|_| initiates) {
            for instance in self.machines_of(&endpoint) {
                let line = self.connect(&endpoint, instance, BACK_SERVICE).await;
                let place = Place { instance: self.instance as u16, task: number, ..Place::NOWHERE };
                hello_room.write(0, &place.to_bytes()).expect("a message has 8 bytes");
                let hello = line.pair.post(WorkRequest::send(hello_room.slice(0, 8))).expect("a send fits");
                hello.await.success().expect("the peer waits for it");
                back.insert((endpoint.clone(), instance), line);
            }
        }
        let own = (initiates && shared.has_datagrams(&self.name)).then(|| {
            let pair = fabric.create_queue_pair(QueuePairOptions::ud()).expect("the backend has datagrams");
            fabric.publish(&service_of(number), &pair).expect("a service of its own");
            Line::new(pair, shared)
        });
        Rc::new(Task {
            agent: self.clone(),
            local,
            outbox,
            sent: Cell::new(0),
            posted: RefCell::default(),
            inboxes: RefCell::default(),
            remote,
            calls: RefCell::new(calls),
            back,
            has_inbox: own.is_some() || matches!(duty, Duty::Inbox),
            datagrams: own.or_else(|| self.datagrams.clone()),
            caller: match duty {
                Duty::Connection(name, pair) => Some((name, Line::new(pair, shared))),
                _ => None,
            },
            instance: self.instance as u16,
            number,
        })
    }

    /// The machines of an endpoint that this one may have to do with: its own where it is on it.
    fn machines_of(&self, endpoint: &str) -> Vec<u32> {
        let machines = &self.shared.machines;
        if machines.get(endpoint) == machines.get(&self.name) {
            return vec![self.instance];
        }
        (0..self.shared.count(endpoint)).collect()
    }

    async fn connect(&self, responder: &str, instance: u32, service: &str) -> Rc<Line<F>> {
        let options =
            if service == COPY_SERVICE { QueuePairOptions { send_depth: COPIES, ..rc() } } else { rc() };
        let pair = self.fabric.create_queue_pair(options).expect("the backend has connections");
        self.fabric.connect(&pair, responder, instance, service).await.expect("the responder listens");
        Line::new(pair, &self.shared)
    }

    async fn connect_memory(&self, peer: &Peer) -> Memory<F> {
        let pair = self.fabric.create_queue_pair(rc()).expect("the backend has connections");
        let connected = self.fabric.connect(&pair, &peer.0, peer.1, MEMORY_SERVICE).await;
        connected.expect("the responder listens");
        // It was named before the responder listened. A message that named it would take time of processors
        // while the first requests run.
        let region = self.shared.regions.borrow()[peer];
        (pair, region)
    }

    /// A connection to the memory of an endpoint on one of several machines.
    async fn lend(&self, peer: &Peer) -> Memory<F> {
        let free = self.memories.borrow_mut().get_mut(peer).and_then(Vec::pop);
        match free {
            Some(memory) => memory,
            None => self.connect_memory(peer).await,
        }
    }

    fn take_back(&self, peer: Peer, memory: Memory<F>) {
        self.memories.borrow_mut().entry(peer).or_default().push(memory);
    }

    async fn address(&self, endpoint: &str, instance: u32, service: String) -> Address {
        let key = (endpoint.to_string(), instance, service);
        if let Some(address) = self.addresses.borrow().get(&key) {
            return *address;
        }
        let address = self
            .fabric
            .resolve(endpoint, instance, &key.2, PATIENCE)
            .await
            .expect("the endpoint publishes its address");
        self.addresses.borrow_mut().insert(key, address);
        address
    }

    /// The connection that a task of an initiator waits on for an answer from here.
    async fn back_to(&self, initiator: &str, place: Place) -> Rc<Line<F>> {
        let key = (initiator.to_string(), place.instance, place.task);
        loop {
            if let Some(line) = self.back.borrow().get(&key) {
                return line.clone();
            }
            // It was made before the request, and is about to say whose it is.
            self.fabric.sleep(Time::from_ns(100)).await;
        }
    }

    async fn copies_to(&self, peer: Peer) -> Rc<Line<F>> {
        if let Some(line) = self.copies.borrow().get(&peer) {
            return line.clone();
        }
        let line = self.connect(&peer.0, peer.1, COPY_SERVICE).await;
        self.copies.borrow_mut().entry(peer).or_insert(line).clone()
    }

    /// Does a program's work in the background beside whatever this endpoint does next.
    fn detach(self: &Rc<Self>, program: Arc<Program>, place: Place) {
        let agent = self.clone();
        self.fabric.spawn_task(Box::pin(async move {
            let idle = agent.idle.borrow_mut().pop();
            let task = match idle {
                Some(task) => task,
                None => agent.task(0, Duty::Detached).await,
            };
            if let Err(failure) = task.detached(&program, place).await {
                let alternative = place.alternative.into();
                agent.shared.broken.borrow_mut().get_or_insert((alternative, failure));
            }
            agent.idle.borrow_mut().push(task);
        }));
    }
}

fn service_of(task: u16) -> String {
    format!("task-{task}")
}

/// Accepts connections that read and write this endpoint's memory.
async fn serve_memory<F: Hint>(agent: Rc<Agent<F>>) {
    let listener = agent.fabric.listen(MEMORY_SERVICE).expect("a service of its own");
    let mut kept = Vec::new();
    loop {
        let pair = agent.fabric.create_queue_pair(rc()).expect("the backend has connections");
        if listener.accept(&pair).await.is_ok() {
            kept.push(pair);
        }
    }
}

/// Accepts connections whose messages this endpoint handles.
async fn serve_calls<F: Hint>(agent: Rc<Agent<F>>) {
    let listener = agent.fabric.listen(CALL_SERVICE).expect("a service of its own");
    let mut number = 0u16;
    loop {
        let pair = agent.fabric.create_queue_pair(rc()).expect("the backend has connections");
        let Ok(peer) = listener.accept(&pair).await else { continue };
        let handler = agent.clone();
        agent.fabric.spawn_task(Box::pin(async move {
            let task = handler.task(number, Duty::Connection(peer.role, pair)).await;
            task.serve(&mut || {}).await;
        }));
        number = number.wrapping_add(1);
    }
}

/// Accepts connections on which tasks of initiators wait for answers; each says first whose it is.
async fn serve_back<F: Hint>(agent: Rc<Agent<F>>) {
    let listener = agent.fabric.listen(BACK_SERVICE).expect("a service of its own");
    loop {
        let pair = agent.fabric.create_queue_pair(rc()).expect("the backend has connections");
        let memory = agent.fabric.memories()[0].name.clone();
        let region = agent.fabric.register(&memory, 8, Access::ALL).expect("8 bytes fit the memory");
        let hello = pair.receive(region.all()).expect("a receive fits");
        let Ok(peer) = listener.accept(&pair).await else { continue };
        let own = agent.clone();
        agent.fabric.spawn_task(Box::pin(async move {
            if hello.await.status != Status::Success {
                return;
            }
            let mut bytes = [0; 8];
            region.read(0, &mut bytes).expect("8 bytes");
            let place = Place::from_bytes(bytes);
            own.back
                .borrow_mut()
                .insert((peer.role, place.instance, place.task), Line::new(pair, &own.shared));
        }));
    }
}

/// Accepts connections that bring copies of messages.
async fn serve_copies<F: Hint>(agent: Rc<Agent<F>>) {
    let listener = agent.fabric.listen(COPY_SERVICE).expect("a service of its own");
    loop {
        let options = QueuePairOptions { receive_depth: COPIES, ..rc() };
        let pair = agent.fabric.create_queue_pair(options).expect("the backend has connections");
        if listener.accept(&pair).await.is_ok() {
            agent.fabric.spawn_task(Box::pin(drop_messages(agent.clone(), pair)));
        }
    }
}

/// Receives messages that nobody waits for.
async fn drop_messages<F: Hint>(agent: Rc<Agent<F>>, pair: F::QueuePair) {
    let memory = agent.fabric.memories()[0].name.clone();
    let bytes = agent.shared.largest_message.get();
    let region = agent.fabric.register(&memory, bytes, Access::ALL).expect("a message fits the memory");
    let mut posted = VecDeque::new();
    loop {
        while posted.len() < COPIES as usize {
            let Ok(completion) = pair.receive(region.all()) else { return };
            posted.push_back(completion);
        }
        let Some(first) = posted.pop_front() else { return };
        if first.await.status != Status::Success {
            return;
        }
    }
}

/// Handles datagrams one at a time; as many run side by side as the inbox holds.
async fn serve_datagrams<F: Hint>(agent: Rc<Agent<F>>, number: u32) {
    let task = agent.task(number as u16, Duty::Inbox).await;
    let shared = agent.shared.clone();
    // A datagram that finds no receive is lost, so nothing may be sent before.
    task.serve(&mut || shared.connected.set(shared.connected.get() + 1)).await;
}

/// Serves requests of this initiator, one after another.
async fn initiate<F: Hint>(agent: Rc<Agent<F>>, number: u16) {
    let task = agent.task(number, Duty::Initiate).await;
    let shared = agent.shared.clone();
    shared.connected.set(shared.connected.get() + 1);
    loop {
        let job = shared.next(&agent.name, agent.instance).await;
        let place = Place {
            alternative: job.alternative as u8,
            program: job.program as u8,
            position: 0,
            instance: task.instance,
            task: task.number,
        };
        shared.begin(place, job);
        let result = task.request(place).await;
        if let Err(failure @ RequestFailure::Post(_)) = &result {
            // What cannot be posted once cannot be posted again, and takes no time: the run is told.
            shared.broken.borrow_mut().get_or_insert((job.alternative, failure.clone()));
            agent.fabric.sleep(Time::from_us(1)).await;
        }
        let program = shared.program(job.alternative, job.program).clone();
        if let (Some(at), true, true) = (program.background, program.begins_background, result.is_ok()) {
            let detached = shared.detach(place).await;
            agent.detach(program.clone(), Place { position: at, ..detached });
        }
        let is_answered = result.is_ok();
        (shared.ended)(job, agent.fabric.now(), result);
        if is_answered {
            shared.end_request(place, agent.fabric.now());
        }
    }
}

/// How far a program came at this endpoint.
enum Reached {
    End,
    /// A message left. Whether its answer comes back to this very task on every way.
    Left(bool),
}

impl<F: Hint> Task<F> {
    fn label(&self, place: Place) -> u64 {
        self.agent.shared.known(place).0
    }

    /// The machine of `endpoint` that a request has to do with.
    fn machine(&self, place: Place, program: &Program, endpoint: &str) -> u32 {
        let shared = &self.agent.shared;
        let machine = shared.machines.get(endpoint);
        if machine == shared.machines.get(&self.agent.name) {
            return self.agent.instance;
        }
        let (_, home, turn) = shared.known(place);
        if machine == shared.machines.get(&program.initiator) { home } else { turn % shared.count(endpoint) }
    }

    /// Where the program stands that a message brought.
    fn place(&self, inlet: &Inlet, message: &Completion) -> Place {
        if let Some(word) = message.immediate {
            let left = self.agent.shared.places.borrow_mut().remove(&word);
            return left.expect("a word is left before it is sent");
        }
        let mut bytes = [0; 8];
        self.inbox(inlet).read(0, &mut bytes).expect("a message has 8 bytes");
        Place::from_bytes(bytes)
    }

    fn inbox(&self, inlet: &Inlet) -> F::Region {
        if let Some(region) = self.inboxes.borrow().get(inlet) {
            return region.clone();
        }
        let agent = &self.agent;
        let memory = agent.fabric.memories().first().expect("an endpoint has memory").name.clone();
        let bytes = agent.shared.largest_message.get();
        let region = agent.fabric.register(&memory, bytes, Access::ALL).expect("a message fits the memory");
        self.inboxes.borrow_mut().insert(inlet.clone(), region.clone());
        region
    }

    /// Posts a receive wherever a message may come in and none is posted yet; datagrams only where they
    /// are wanted.
    fn listen(&self, datagrams: bool) -> Result<(), RequestFailure> {
        let mut posted = self.posted.borrow_mut();
        let mut post = |inlet: Inlet, line: &Line<F>| -> Result<(), RequestFailure> {
            if let std::collections::btree_map::Entry::Vacant(free) = posted.entry(inlet) {
                let inbox = self.inbox(free.key());
                free.insert(line.pair.receive(inbox.all())?);
            }
            Ok(())
        };
        if let Some((_, line)) = &self.caller {
            post(Inlet::Caller, line)?;
        }
        if let Some(line) = self.datagrams.as_ref().filter(|_| self.has_inbox && datagrams) {
            post(Inlet::Datagram, line)?;
        }
        for (peer, line) in &*self.calls.borrow() {
            post(Inlet::Call(peer.clone()), line)?;
        }
        self.back.iter().try_for_each(|(peer, line)| post(Inlet::Back(peer.clone()), line))
    }

    /// The next message that comes in anywhere, and where, or nothing once `over`.
    async fn message(&self, mut over: impl FnMut(&Waker) -> bool) -> Option<(Inlet, Completion)> {
        poll_fn(|context| {
            if over(context.waker()) {
                return Poll::Ready(None);
            }
            let mut posted = self.posted.borrow_mut();
            let mut came = None;
            for (inlet, completion) in &mut *posted {
                if let Poll::Ready(message) = std::pin::Pin::new(completion).poll(context) {
                    came = Some((inlet.clone(), message));
                    break;
                }
            }
            match came {
                Some((inlet, message)) => {
                    posted.remove(&inlet);
                    Poll::Ready(Some((inlet, message)))
                }
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Handles what comes in, one message after another. A failure's initiator would wait for ever, so
    /// the run is told.
    async fn serve(self: &Rc<Self>, ready: &mut dyn FnMut()) {
        let shared = self.agent.shared.clone();
        let (mut is_ready, mut awaits) = (false, false);
        loop {
            if self.listen(!awaits).is_err() {
                return;
            }
            if !std::mem::replace(&mut is_ready, true) {
                ready();
            }
            let Some((inlet, message)) = self.message(|_| false).await else { return };
            if message.status != Status::Success {
                return;
            }
            let place = self.place(&inlet, &message);
            let program = shared.program(place.alternative.into(), place.program.into()).clone();
            match self.run(&program, place).await {
                Ok(Reached::End) => {
                    awaits = false;
                    if place.instance == DETACHED {
                        shared.end_detached(place, self.agent.fabric.now());
                    }
                }
                Ok(Reached::Left(awaited)) => awaits = awaited,
                Err(failure) => {
                    awaits = false;
                    shared.broken.borrow_mut().get_or_insert((place.alternative.into(), failure));
                }
            }
        }
    }

    /// Runs a request from its start to its end, waiting for messages in between.
    async fn request(self: &Rc<Self>, mut place: Place) -> Result<(), RequestFailure> {
        let program = self.agent.shared.program(place.alternative.into(), place.program.into()).clone();
        loop {
            // Receives are posted before anything is sent, so no answer can come too early.
            self.listen(true)?;
            match self.run(&program, place).await? {
                Reached::End => return Ok(()),
                Reached::Left(_) => {
                    let (inlet, message) =
                        self.message(|_| false).await.expect("it waits for as long as it takes");
                    message.success().map_err(RequestFailure::Operation)?;
                    place = self.place(&inlet, &message);
                }
            }
        }
    }

    /// Does work in the background, which may end elsewhere.
    async fn detached(
        self: &Rc<Self>,
        program: &Arc<Program>,
        mut place: Place,
    ) -> Result<(), RequestFailure> {
        let shared = &self.agent.shared;
        loop {
            self.listen(false)?;
            if let Reached::End = self.run(program, place).await? {
                shared.end_detached(place, self.agent.fabric.now());
                return Ok(());
            }
            let over = |waker: &Waker| match shared.open.borrow_mut().get_mut(&place.request()) {
                Some(open) => {
                    open.waker = Some(waker.clone());
                    false
                }
                None => true,
            };
            let Some((inlet, message)) = self.message(over).await else { return Ok(()) };
            message.success().map_err(RequestFailure::Operation)?;
            place = self.place(&inlet, &message);
        }
    }

    async fn run(self: &Rc<Self>, program: &Arc<Program>, place: Place) -> Result<Reached, RequestFailure> {
        let mut at = place.position;
        loop {
            match &program.code[usize::from(at)] {
                Instruction::End => return Ok(Reached::End),
                Instruction::Jump(to) => {
                    at = *to;
                    continue;
                }
                Instruction::Verb(call) if call.hands_over() => {
                    let shared = &self.agent.shared;
                    let detached = match call.background {
                        Some(at) => Some(Place { position: at, ..shared.detach(place).await }),
                        None => None,
                    };
                    self.send(program, call, Place { position: at + 1, ..place }).await?;
                    if let Some(detached) = detached {
                        self.agent.detach(program.clone(), detached);
                    }
                    if !call.copies_only {
                        return Ok(Reached::Left(call.awaited));
                    }
                }
                Instruction::Parallel { starts, next } => {
                    let parts = starts.iter().map(|start| Box::pin(self.part(program, place, *start)));
                    join_all(parts.collect()).await?;
                    at = *next;
                    continue;
                }
                other => {
                    if let Some(to) = self.simple(program, other, place, at).await? {
                        at = to;
                        continue;
                    }
                }
            }
            at += 1;
        }
    }

    /// One branch of a parallel step: no messages, so it stays here.
    async fn part(&self, program: &Program, place: Place, start: u16) -> Result<(), RequestFailure> {
        let mut at = start;
        loop {
            match &program.code[usize::from(at)] {
                Instruction::End => return Ok(()),
                Instruction::Jump(to) => at = *to,
                Instruction::Parallel { starts, next } => {
                    let parts = starts.iter().map(|start| Box::pin(self.part(program, place, *start)));
                    join_all(parts.collect()).await?;
                    at = *next;
                }
                other => at = self.simple(program, other, place, at).await?.unwrap_or(at + 1),
            }
        }
    }

    /// An instruction that neither moves the request nor splits it; says where to go on if not next.
    async fn simple(
        &self,
        program: &Program,
        instruction: &Instruction,
        place: Place,
        at: u16,
    ) -> Result<Option<u16>, RequestFailure> {
        match instruction {
            Instruction::Compute { time, .. } => {
                self.agent.fabric.labelled_fabric(self.label(place)).compute(Work::Time(*time)).await;
            }
            Instruction::Wait(time) => self.agent.fabric.sleep(*time).await,
            Instruction::Verb(call) => {
                let responder = call.responder();
                let first = self.machine(place, program, responder);
                let label = self.label(place);
                if call.is_own() {
                    let done = self.agent.fabric.labelled_fabric(label).perform(call);
                    done.map_err(|error| RequestFailure::Post(error.to_string()))?.await;
                } else if call.to == 1 {
                    self.call(call, label, first).await?;
                } else {
                    let count = self.agent.shared.count(responder);
                    let each =
                        (0..call.to).map(|number| Box::pin(self.call(call, label, (first + number) % count)));
                    join_all(each.collect()).await?;
                }
            }
            Instruction::Branch { probability, otherwise } => {
                let key = (u16::from(place.alternative), u16::from(place.program), at);
                let fabric = &self.agent.fabric;
                if !self.agent.shared.takes(key, *probability, || fabric.random_u64()) {
                    return Ok(Some(*otherwise));
                }
            }
            Instruction::End | Instruction::Jump(_) | Instruction::Parallel { .. } => {
                unreachable!("handled by the caller")
            }
        }
        Ok(None)
    }

    async fn call(&self, call: &Call, label: u64, instance: u32) -> Result<(), RequestFailure> {
        let responder = call.responder();
        if let Some(memory) = self.remote.get(responder) {
            return self.call_on(call, label, memory).await;
        }
        let peer = (responder.to_string(), instance);
        let memory = self.agent.lend(&peer).await;
        let result = self.call_on(call, label, &memory).await;
        self.agent.take_back(peer, memory);
        result
    }

    async fn call_on(&self, call: &Call, label: u64, memory: &Memory<F>) -> Result<(), RequestFailure> {
        let operation = &call.operation;
        let length = operation.payload.get();
        let (pair, region) = memory;
        let (local, remote) = (self.local.slice(0, length), region.at(0));
        let completion = match &operation.path.engine {
            Some(engine) => {
                let here = MemoryAt::Local { region: self.local.clone(), offset: 0 };
                let there = MemoryAt::Remote(remote);
                let (from, to) = if operation.verb == Verb::Read { (there, here) } else { (here, there) };
                let completion = self.agent.fabric.labelled_fabric(label).dma_copy(engine, from, to, length);
                completion.map_err(|error| RequestFailure::Post(error.to_string()))?.await
            }
            None => {
                let request = match operation.verb {
                    Verb::Read => WorkRequest::read(local, remote),
                    Verb::Write => WorkRequest::write(local, remote),
                    Verb::CompareAndSwap => {
                        WorkRequest::compare_and_swap(self.local.slice(0, 8), remote, 0, 0)
                    }
                    Verb::FetchAndAdd => WorkRequest::fetch_and_add(self.local.slice(0, 8), remote, 1),
                    verb @ (Verb::Send
                    | Verb::SendDatagram
                    | Verb::Copy
                    | Verb::Transform
                    | Verb::Load
                    | Verb::Store) => {
                        unreachable!("`{verb}` is a message, or what no NIC carries out")
                    }
                };
                self.agent.fabric.hinted(pair, call, label).post(request)?.await
            }
        };
        completion.success().map(|_| ()).map_err(RequestFailure::Operation)
    }

    /// The connection to go on at `peer`, made where there is none yet.
    async fn line_to(&self, peer: Peer) -> Rc<Line<F>> {
        if let Some(line) = self.calls.borrow().get(&peer) {
            return line.clone();
        }
        let line = self.agent.connect(&peer.0, peer.1, CALL_SERVICE).await;
        self.calls.borrow_mut().entry(peer).or_insert(line).clone()
    }

    async fn send(&self, program: &Program, call: &Call, place: Place) -> Result<(), RequestFailure> {
        let operation = &call.operation;
        let responder = call.responder();
        let length = operation.payload.get();
        let first = self.machine(place, program, responder);
        let count = self.agent.shared.count(responder);
        // Copies leave first, so that the request goes on after the last.
        let own = u32::from(!call.copies_only);
        for number in own..call.to {
            self.copy(call, place, (first + number) % count).await?;
        }
        if call.copies_only {
            return Ok(());
        }
        let returns = *responder == program.initiator;
        let slot = (self.sent.get() % OUTBOX) * 8;
        self.sent.set(self.sent.get() + 1);
        let word = call.signals.immediate.then(|| self.agent.shared.leave(place));
        if word.is_none() {
            self.outbox.write(slot, &place.to_bytes()).expect("a message has 8 bytes");
        }
        let local = self.outbox.slice(slot, length);
        let (line, request) = if is_datagram(call) {
            let line = self.datagrams.clone().expect("a sender of datagrams has a queue pair");
            let service = if returns { service_of(place.task) } else { MESSAGE_SERVICE.to_string() };
            let to = self.agent.address(responder, first, service).await;
            (line, WorkRequest::send_to(local, to))
        } else {
            let line = match &self.caller {
                Some((peer, line)) if peer == responder => line.clone(),
                _ if returns => self.agent.back_to(responder, place).await,
                _ => self.line_to((responder.to_string(), first)).await,
            };
            let request = match operation.verb {
                Verb::Write => {
                    let local = self.local.slice(0, length);
                    let region = match self.remote.get(responder) {
                        Some((_, region)) => *region,
                        None => {
                            let peer = (responder.to_string(), first);
                            let memory = self.agent.lend(&peer).await;
                            let region = memory.1;
                            self.agent.take_back(peer, memory);
                            region
                        }
                    };
                    WorkRequest::write(local, region.at(0))
                }
                Verb::Send | Verb::SendDatagram => WorkRequest::send(local),
                verb @ (Verb::Read
                | Verb::CompareAndSwap
                | Verb::FetchAndAdd
                | Verb::Copy
                | Verb::Transform
                | Verb::Load
                | Verb::Store) => unreachable!("`{verb}` moves no request along"),
            };
            (line, request)
        };
        // The answer may come on a connection that was just made.
        let datagrams = self.posted.borrow().contains_key(&Inlet::Datagram);
        self.listen(datagrams)?;
        let request = match word {
            Some(word) => request.immediate(word),
            None => request,
        };
        self.post(call, &line, request, place).await
    }

    /// Sends a message that no request waits for to one machine.
    async fn copy(&self, call: &Call, place: Place, instance: u32) -> Result<(), RequestFailure> {
        let responder = call.responder();
        let slot = OUTBOX * 8;
        let local = self.outbox.slice(slot, call.operation.payload.get());
        let (line, request) = if is_datagram(call) {
            let line = self.datagrams.clone().expect("a sender of datagrams has a queue pair");
            let to = self.agent.address(responder, instance, COPY_SERVICE.to_string()).await;
            (line, WorkRequest::send_to(local, to))
        } else {
            let line = self.agent.copies_to((responder.to_string(), instance)).await;
            (line, WorkRequest::send(local))
        };
        self.post(call, &line, request, place).await
    }

    async fn post(
        &self,
        call: &Call,
        line: &Line<F>,
        request: WorkRequest<F::Region>,
        place: Place,
    ) -> Result<(), RequestFailure> {
        let before = line.sent.replace(line.sent.get() + 1);
        let is_write = call.operation.verb == Verb::Write;
        let signaled = call.signals.polled || is_write || before.is_multiple_of(SIGNALED);
        let request = if signaled { request } else { request.unsignaled() };
        let pair = self.agent.fabric.hinted(&line.pair, call, self.label(place));
        loop {
            match pair.post(request.clone()) {
                // The sender does not wait: the message's slot is the fabric's until it has left.
                Ok(completion) => {
                    drop(completion);
                    return Ok(());
                }
                Err(PostError::QueueFull { .. }) => self.agent.fabric.sleep(Time::from_ns(200)).await,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Waits for all; the first failure is returned after all have ended.
async fn join_all<T>(mut parts: Vec<std::pin::Pin<Box<T>>>) -> Result<(), RequestFailure>
where
    T: Future<Output = Result<(), RequestFailure>>,
{
    let mut done: Vec<Option<Result<(), RequestFailure>>> = parts.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (part, slot) in parts.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let Poll::Ready(result) = part.as_mut().poll(context)
            {
                *slot = Some(result);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use offpath_fabric::local::LocalFabric;

    #[test]
    fn more_than_a_message_can_name_is_refused() {
        let one = Compiled { name: "a".to_string(), programs: Vec::new() };
        let shared = |count| RunState::new(vec![one.clone(); count], Chance::Random, |_, _, _| {});
        let error = shared(257).err().expect("257 do not fit 8 bits");
        assert_eq!((error.count, error.bound), (257, 256));
        let shared = shared(256).expect("256 fit");
        let main = |_: LocalFabric| -> LocalBoxFuture<()> { Box::pin(async {}) };
        let none = BTreeMap::new();
        assert!(roles(&shared, &none, MOST_TASKS, 1, main).is_ok());
        let error = roles(&shared, &none, MOST_TASKS + 1, 1, main).err().expect("one too many");
        assert_eq!(error.count, 65_536);
        assert!(roles(&shared, &none, 1, MOST_TASKS + 1, main).is_err());
    }
}
