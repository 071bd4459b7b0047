//! Step lists as an application: the same small interpreter runs every design on every backend.
//!
//! A role stands for each machine's endpoint that a program visits. Requests start at tasks of their
//! initiator; a message carries the program, the position and the task that began it, so whichever
//! task receives it goes on where the sender stopped. The payloads are real bytes of real regions;
//! their content means nothing.
//!
//! A request keeps to one machine of each role: its initiator's is the one where it began, of the
//! others requests take turns. Work in the background starts where the answer leaves and goes its own
//! way, and so do verbs that nobody waits for once they are posted; as many requests may have any of it in flight as may
//! wait for answers, then what would add to it waits for one to have none.

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
    /// The endpoints, in the order of their names.
    endpoints: Vec<Endpoint>,
    /// What programs mean, by alternative and program.
    scripted: Vec<Vec<Scripted>>,
    /// Requests that wait for a task, by initiator.
    queues: RefCell<Vec<VecDeque<Job>>>,
    /// Tasks without a request, by initiator and machine.
    waiting: RefCell<Vec<Vec<VecDeque<Waker>>>>,
    /// Called when a request is answered, or with the failure.
    ended: Box<Ended>,
    /// Called when nothing of a request is left to do.
    done: Box<dyn Fn(Job, Time)>,
    taken: RefCell<BTreeMap<(u16, u16, u16), f64>>,
    decided: RefCell<Vec<(u16, bool)>>,
    connected: Cell<usize>,
    /// The requests in flight by who began them, so that messages need not carry all of this.
    open: RefCell<BTreeMap<u64, Open>>,
    /// Where programs stand whose messages are too short to say it, by the word that goes with them.
    places: RefCell<BTreeMap<u32, Place>>,
    next_place: Cell<u32>,
    /// Numbers that what nobody waits for may take, and the requests that wait for one, which is there while none is free.
    free: RefCell<Vec<u16>>,
    waiting_for_free: RefCell<VecDeque<Rc<Left>>>,
    /// The memory of each endpoint on each of its machines.
    regions: RefCell<BTreeMap<Peer, RemoteRegion>>,
    /// The first failure away from a request's initiator, with its alternative.
    broken: RefCell<Option<(u16, RequestFailure)>>,
    /// Lines that were made.
    lines: Cell<u64>,
    largest: Bytes,
    largest_message: Bytes,
}

/// An endpoint that programs visit. It is meant by its position: each verb of a request asks for it.
struct Endpoint {
    name: String,
    /// The position of its machine.
    machine: Option<usize>,
    /// How many of its machines take part.
    count: Cell<u32>,
}

/// A program's names as positions.
struct Scripted {
    initiator: usize,
    /// Of each instruction that is a verb whom it reaches.
    reached: Vec<Option<Reaches>>,
    /// How many requests were begun.
    turn: Cell<u32>,
}

/// Whom a verb reaches.
#[derive(Clone, Copy)]
struct Reaches {
    responder: usize,
    /// Whether no other role takes part.
    is_own: bool,
}

/// What every verb of a request asks about it.
#[derive(Clone, Copy, Default)]
struct Known {
    label: u64,
    /// The machine of its initiator.
    home: u32,
    /// How many of its kind began before it.
    turn: u32,
}

/// A request, or its work in the background, in flight.
struct Open {
    job: Job,
    known: Known,
    /// Who waits for its end.
    waker: Option<Waker>,
    left: Rc<Left>,
}

/// How much of a request is not over yet.
#[derive(Default)]
struct Left {
    /// What its initiator waits for, and what nobody does.
    parts: Cell<u32>,
    /// What nobody waits for: work in the background, and verbs in flight.
    beside: Cell<u32>,
    /// The number that all of that has, once there was one.
    number: Cell<Option<u16>>,
    /// Who waits for it.
    waker: RefCell<Option<Waker>>,
}

impl Left {
    /// Says that a part is over; with the last one the request is, whichever that is.
    fn is_last(&self) -> bool {
        self.parts.set(self.parts.get() - 1);
        self.parts.get() == 0
    }
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

    /// The same, with `done` told when what nobody waits for of a request is over too.
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
        let machines: BTreeMap<String, usize> =
            programs(&script).flat_map(|program| program.machines.clone()).collect();
        let mut names: BTreeSet<String> = machines.keys().cloned().collect();
        names.extend(programs(&script).map(|program| program.initiator.clone()));
        names.extend(calls(&script).flat_map(|call| [call.requester().into(), call.responder().into()]));
        let endpoint =
            |name: String| Endpoint { machine: machines.get(&name).copied(), count: Cell::new(1), name };
        let endpoints: Vec<Endpoint> = names.into_iter().map(endpoint).collect();
        let scripted = |(_, program): &(f64, Arc<Program>)| Scripted {
            initiator: position(&endpoints, &program.initiator),
            reached: program.code.iter().map(|instruction| reached(&endpoints, instruction)).collect(),
            turn: Cell::new(0),
        };
        let scripted = script.iter().map(|one| one.programs.iter().map(scripted).collect()).collect();
        let mut queues = Vec::new();
        queues.resize_with(endpoints.len(), VecDeque::new);
        let mut waiting = Vec::new();
        waiting.resize_with(endpoints.len(), Vec::new);
        Ok(Rc::new(RunState {
            script,
            chance,
            endpoints,
            scripted,
            queues: RefCell::new(queues),
            waiting: RefCell::new(waiting),
            ended: Box::new(ended),
            done: Box::new(done),
            taken: RefCell::default(),
            decided: RefCell::default(),
            connected: Cell::new(0),
            open: RefCell::default(),
            places: RefCell::default(),
            next_place: Cell::new(0),
            free: RefCell::default(),
            waiting_for_free: RefCell::default(),
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
        let initiator = self.scripted(job.alternative.into(), job.program.into()).initiator;
        self.queues.borrow_mut()[initiator].push_back(job);
        let mut waiting = self.waiting.borrow_mut();
        let free = waiting[initiator].iter().filter(|tasks| !tasks.is_empty()).count();
        let chosen = (unit_of(draw) * free as f64) as usize;
        let mut free = waiting[initiator].iter_mut().filter(|tasks| !tasks.is_empty());
        if let Some(waker) = free.nth(chosen).and_then(VecDeque::pop_front) {
            drop(waiting);
            waker.wake();
        }
    }

    /// Which case each branch took since this was asked last, by its place in the program, where cases come in proportion.
    pub fn decided(&self) -> Vec<(u16, bool)> {
        self.decided.take()
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

    /// The position of an endpoint.
    fn at(&self, endpoint: &str) -> usize {
        position(&self.endpoints, endpoint)
    }

    fn scripted(&self, alternative: usize, program: usize) -> &Scripted {
        &self.scripted[alternative][program]
    }

    /// How many machines have this endpoint.
    fn count(&self, endpoint: &str) -> u32 {
        self.endpoints[self.at(endpoint)].count.get()
    }

    /// Says how many machines of each role take part: those of initiators as far as they have tasks, and
    /// as one message reaches at once; all of the others.
    fn count_machines(&self, instances: &BTreeMap<String, u32>, tasks: u32) {
        let initiators = self.initiators();
        let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
        for Endpoint { name, machine, .. } in &self.endpoints {
            let Some(machine) = machine else { continue };
            let all = instances.get(name).copied().unwrap_or(1).max(1);
            let reached = calls(&self.script).filter(|call| call.responder() == *name);
            let at_once = reached.map(|call| call.to).max().unwrap_or(1);
            let own = if initiators.contains(name) { all.min(tasks.max(at_once).max(1)) } else { all };
            counts.entry(*machine).and_modify(|count| *count = (*count).min(own)).or_insert(own);
        }
        for endpoint in &self.endpoints {
            endpoint.count.set(endpoint.machine.map_or(1, |machine| counts[&machine]));
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

    async fn next(&self, initiator: usize, machine: u32) -> Job {
        poll_fn(|context| match self.queues.borrow_mut()[initiator].pop_front() {
            Some(job) => Poll::Ready(job),
            None => {
                let machines = &mut self.waiting.borrow_mut()[initiator];
                if machines.len() <= machine as usize {
                    machines.resize_with(machine as usize + 1, VecDeque::new);
                }
                machines[machine as usize].push_back(context.waker().clone());
                Poll::Pending
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
                self.decided.borrow_mut().push((at.2, take));
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
        let turn = &self.scripted(place.alternative.into(), place.program.into()).turn;
        let known = Known { label: job.label, home: place.instance.into(), turn: turn.get() };
        turn.set(turn.get().wrapping_add(1));
        let mut all = self.open.borrow_mut();
        let left = match all.get_mut(&place.request()) {
            // The task's request before is over, and so in most cases is what nobody waits for.
            Some(open) if Rc::strong_count(&open.left) == 1 => {
                open.left.parts.set(1);
                (open.job, open.known, open.waker) = (job, known, None);
                return;
            }
            _ => Rc::new(Left { parts: Cell::new(1), ..Left::default() }),
        };
        all.insert(place.request(), Open { job, known, waker: None, left });
    }

    /// What every verb of a request asks about it.
    fn known(&self, place: Place) -> Known {
        self.open.borrow().get(&place.request()).map_or(Known::default(), |open| open.known)
    }

    /// Begins something of a request that nobody waits for, when the request has a number or there is one.
    async fn begin_beside(&self, place: Place) -> (Job, Rc<Left>) {
        let open = self.open.borrow().get(&place.request()).map(|open| (open.job, open.left.clone()));
        let (job, left) = open.expect("a request is open until it is over");
        left.parts.set(left.parts.get() + 1);
        left.beside.set(left.beside.get() + 1);
        poll_fn(|context| {
            if left.number.get().is_none() {
                left.number.set(self.free.borrow_mut().pop());
            }
            if left.number.get().is_some() {
                return Poll::Ready(());
            }
            if left.waker.replace(Some(context.waker().clone())).is_none() {
                self.waiting_for_free.borrow_mut().push_back(left.clone());
            }
            Poll::Pending
        })
        .await;
        (job, left)
    }

    /// Ends something that nobody waited for. With the last of a request, the next one that waits has its number.
    fn end_beside(&self, left: &Left, job: Job, at: Time) {
        left.beside.set(left.beside.get() - 1);
        if left.beside.get() == 0
            && let Some(number) = left.number.take()
        {
            match self.waiting_for_free.borrow_mut().pop_front() {
                None => self.free.borrow_mut().push(number),
                Some(next) => {
                    next.number.set(Some(number));
                    next.waker.take().expect("who waits can be woken").wake();
                }
            }
        }
        if left.is_last() {
            (self.done)(job, at);
        }
    }

    /// Begins work in the background, under the number that it takes.
    async fn detach(&self, place: Place) -> Place {
        let (job, left) = self.begin_beside(place).await;
        let task = left.number.get().expect("what has begun has a number");
        let detached = Place { instance: DETACHED, task, ..place };
        let own = Open { job, known: self.known(place), waker: None, left };
        self.open.borrow_mut().insert(detached.request(), own);
        detached
    }

    /// Ends what the initiator of a request waits for.
    fn end_request(&self, place: Place, at: Time) {
        let open = self.open.borrow();
        let Some(Open { job, left, .. }) = open.get(&place.request()) else { return };
        let (job, is_over) = (*job, left.is_last());
        drop(open);
        if is_over {
            (self.done)(job, at);
        }
    }

    /// Ends work in the background.
    fn end_detached(&self, place: Place, at: Time) {
        let Some(open) = self.open.borrow_mut().remove(&place.request()) else { return };
        if let Some(waker) = open.waker {
            waker.wake();
        }
        self.end_beside(&open.left, open.job, at);
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

/// The position of a name among the endpoints.
fn position(endpoints: &[Endpoint], name: &str) -> usize {
    endpoints
        .binary_search_by(|endpoint| endpoint.name.as_str().cmp(name))
        .expect("every endpoint that takes part is one that a program visits")
}

/// Whom an instruction reaches.
fn reached(endpoints: &[Endpoint], instruction: &Instruction) -> Option<Reaches> {
    let Instruction::Verb(call) = instruction else { return None };
    Some(Reaches { responder: position(endpoints, call.responder()), is_own: call.is_own() })
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
type Peer = (usize, u32);
/// A verb that is posted, with the connection that was lent for it.
type Posted<F> = (<F as Fabric>::CompletionFuture, Option<(Peer, Memory<F>)>);

/// A task that waits for an answer: its endpoint, the number of its machine, and its number there.
type Asker = (usize, u16, u16);

/// What one role holds.
struct Agent<F: Fabric> {
    fabric: F,
    name: String,
    /// Its position among the endpoints.
    at: usize,
    instance: u32,
    shared: Rc<RunState>,
    region: F::Region,
    /// What handlers send datagrams on, and an inbox receives on.
    datagrams: Option<Rc<Line<F>>>,
    addresses: RefCell<BTreeMap<(Peer, Inbox), Address>>,
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
    /// Where messages may come in, in the order in which they are looked at.
    inlets: RefCell<Vec<Inlet<F>>>,
    /// Memories of endpoints that are on one machine.
    remote: BTreeMap<usize, Memory<F>>,
    calls: RefCell<BTreeMap<Peer, Rc<Line<F>>>>,
    /// Who made the connection that this task handles.
    caller: Option<(usize, Rc<Line<F>>)>,
    datagrams: Option<Rc<Line<F>>>,
    instance: u16,
    number: u16,
}

/// Where a message may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Caller,
    Datagram,
    Call(Peer),
    /// A connection on which an endpoint answers that was not asked on one.
    Back(Peer),
}

/// A place where messages come in.
struct Inlet<F: Fabric> {
    source: Source,
    line: Rc<Line<F>>,
    /// What comes in lies apart by where it does: neither a later message nor what a verb brings may change
    /// a message that is not looked at yet.
    inbox: Option<F::Region>,
    /// A receive that is posted and not yet used: a branch that sends nothing leaves its receive to the
    /// next message.
    posted: Option<F::CompletionFuture>,
}

impl<F: Fabric> Inlet<F> {
    fn new(source: Source, line: Rc<Line<F>>) -> Inlet<F> {
        Inlet { source, line, inbox: None, posted: None }
    }
}

/// Who takes the datagrams that come to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Inbox {
    /// One of its tasks.
    Task(u16),
    /// Whichever of its handlers is free.
    Any,
    /// Nobody.
    Copies,
}

impl Inbox {
    /// The name that its address is published by.
    fn service(self) -> String {
        match self {
            Inbox::Task(number) => format!("task-{number}"),
            Inbox::Any => MESSAGE_SERVICE.to_string(),
            Inbox::Copies => COPY_SERVICE.to_string(),
        }
    }
}

/// What a task is there for.
enum Duty<F: Fabric> {
    /// It begins requests.
    Initiate,
    /// It handles the requests that come on a connection.
    Connection(usize, F::QueuePair),
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
        let at = shared.at(&name);
        shared.regions.borrow_mut().insert((at, fabric.role().instance), region.remote());
        let datagrams = shared.has_datagrams(&name).then(|| {
            let depth = inbox.max(1);
            let options =
                QueuePairOptions { send_depth: 4096, receive_depth: depth, ..QueuePairOptions::ud() };
            Line::new(fabric.create_queue_pair(options).expect("the backend has datagrams"), &shared)
        });
        let agent = Rc::new(Agent {
            at,
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
                let at = shared.at(&responder);
                let memory = self.connect_memory((at, instance)).await;
                remote.insert(at, memory);
            }
        }
        let mut calls = BTreeMap::new();
        // Connections that lead round would make handlers without end; those are made when needed.
        if !shared.is_round(&self.name) {
            for responder in shared.called(&self.name) {
                for instance in self.machines_of(&responder) {
                    let peer = (shared.at(&responder), instance);
                    calls.insert(peer, self.connect(peer, CALL_SERVICE).await);
                }
            }
        }
        let initiates = matches!(duty, Duty::Initiate);
        let mut back = Vec::new();
        for endpoint in shared.answered_by(&self.name).into_iter().filter(|_| initiates) {
            for instance in self.machines_of(&endpoint) {
                let peer = (shared.at(&endpoint), instance);
                let line = self.connect(peer, BACK_SERVICE).await;
                let place = Place { instance: self.instance as u16, task: number, ..Place::NOWHERE };
                hello_room.write(0, &place.to_bytes()).expect("a message has 8 bytes");
                let hello = line.pair.post(WorkRequest::send(hello_room.slice(0, 8))).expect("a send fits");
                hello.await.success().expect("the peer waits for it");
                back.push(Inlet::new(Source::Back(peer), line));
            }
        }
        let own = (initiates && shared.has_datagrams(&self.name)).then(|| {
            let pair = fabric.create_queue_pair(QueuePairOptions::ud()).expect("the backend has datagrams");
            fabric.publish(&Inbox::Task(number).service(), &pair).expect("a service of its own");
            Line::new(pair, shared)
        });
        let has_inbox = own.is_some() || matches!(duty, Duty::Inbox);
        let datagrams = own.or_else(|| self.datagrams.clone());
        let caller = match duty {
            Duty::Connection(peer, pair) => Some((peer, Line::new(pair, shared))),
            _ => None,
        };
        let asked = caller.iter().map(|(_, line)| Inlet::new(Source::Caller, line.clone()));
        let sent = datagrams.iter().filter(|_| has_inbox);
        let sent = sent.map(|line| Inlet::new(Source::Datagram, line.clone()));
        let called = calls.iter().map(|(peer, line)| Inlet::new(Source::Call(*peer), line.clone()));
        let inlets = asked.chain(sent).chain(called).chain(back).collect();
        Rc::new(Task {
            agent: self.clone(),
            local,
            outbox,
            sent: Cell::new(0),
            inlets: RefCell::new(inlets),
            remote,
            calls: RefCell::new(calls),
            datagrams,
            caller,
            instance: self.instance as u16,
            number,
        })
    }

    /// The machines of an endpoint that this one may have to do with: its own where it is on it.
    fn machines_of(&self, endpoint: &str) -> Vec<u32> {
        let all = &self.shared.endpoints;
        let endpoint = &all[self.shared.at(endpoint)];
        if endpoint.machine == all[self.at].machine {
            return vec![self.instance];
        }
        (0..endpoint.count.get()).collect()
    }

    async fn connect(&self, (responder, instance): Peer, service: &str) -> Rc<Line<F>> {
        let responder = &self.shared.endpoints[responder].name;
        let options =
            if service == COPY_SERVICE { QueuePairOptions { send_depth: COPIES, ..rc() } } else { rc() };
        let pair = self.fabric.create_queue_pair(options).expect("the backend has connections");
        self.fabric.connect(&pair, responder, instance, service).await.expect("the responder listens");
        Line::new(pair, &self.shared)
    }

    async fn connect_memory(&self, peer: Peer) -> Memory<F> {
        let pair = self.fabric.create_queue_pair(rc()).expect("the backend has connections");
        let responder = &self.shared.endpoints[peer.0].name;
        let connected = self.fabric.connect(&pair, responder, peer.1, MEMORY_SERVICE).await;
        connected.expect("the responder listens");
        // It was named before the responder listened. A message that named it would take time of processors
        // while the first requests run.
        let region = self.shared.regions.borrow()[&peer];
        (pair, region)
    }

    /// A connection to the memory of an endpoint on one of several machines.
    async fn lend(&self, peer: Peer) -> Memory<F> {
        let free = self.memories.borrow_mut().get_mut(&peer).and_then(Vec::pop);
        match free {
            Some(memory) => memory,
            None => self.connect_memory(peer).await,
        }
    }

    fn take_back(&self, peer: Peer, memory: Memory<F>) {
        self.memories.borrow_mut().entry(peer).or_default().push(memory);
    }

    async fn address(&self, peer: Peer, inbox: Inbox) -> Address {
        if let Some(address) = self.addresses.borrow().get(&(peer, inbox)) {
            return *address;
        }
        let endpoint = &self.shared.endpoints[peer.0].name;
        let address = self
            .fabric
            .resolve(endpoint, peer.1, &inbox.service(), PATIENCE)
            .await
            .expect("the endpoint publishes its address");
        self.addresses.borrow_mut().insert((peer, inbox), address);
        address
    }

    /// The connection that a task of an initiator waits on for an answer from here.
    async fn back_to(&self, initiator: usize, place: Place) -> Rc<Line<F>> {
        let key = (initiator, place.instance, place.task);
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
        let line = self.connect(peer, COPY_SERVICE).await;
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
            let task = handler.task(number, Duty::Connection(handler.shared.at(&peer.role), pair)).await;
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
            let asker = (own.shared.at(&peer.role), place.instance, place.task);
            own.back.borrow_mut().insert(asker, Line::new(pair, &own.shared));
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
        let job = shared.next(agent.at, agent.instance).await;
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
    /// The machine of `endpoint` that a request has to do with.
    fn machine(&self, place: Place, known: Known, endpoint: usize) -> u32 {
        let shared = &self.agent.shared;
        let machine = shared.endpoints[endpoint].machine;
        if machine == shared.endpoints[self.agent.at].machine {
            return self.agent.instance;
        }
        let initiator = shared.scripted(place.alternative.into(), place.program.into()).initiator;
        if machine == shared.endpoints[initiator].machine {
            known.home
        } else {
            known.turn % shared.endpoints[endpoint].count.get()
        }
    }

    /// Whom the verb at `at` of the program of `place` reaches.
    fn reached(&self, place: Place, at: u16) -> Reaches {
        let scripted = self.agent.shared.scripted(place.alternative.into(), place.program.into());
        scripted.reached[usize::from(at)].expect("it is asked of verbs alone")
    }

    /// Posts a receive wherever a message may come in and none is posted yet; datagrams only where they
    /// are wanted.
    fn listen(&self, datagrams: bool) -> Result<(), RequestFailure> {
        for inlet in &mut *self.inlets.borrow_mut() {
            if inlet.posted.is_none() && (datagrams || inlet.source != Source::Datagram) {
                let inbox = inlet.inbox.get_or_insert_with(|| {
                    let Agent { fabric, shared, .. } = &*self.agent;
                    let memory = fabric.memories().first().expect("an endpoint has memory").name.clone();
                    let bytes = shared.largest_message.get();
                    fabric.register(&memory, bytes, Access::ALL).expect("a message fits the memory")
                });
                inlet.posted = Some(inlet.line.pair.receive(inbox.all())?);
            }
        }
        Ok(())
    }

    /// Where the program stands that the next message brings, whichever way it comes, and how that ended; nothing
    /// once `over`.
    async fn message(&self, mut over: impl FnMut(&Waker) -> bool) -> Option<Result<Place, Status>> {
        poll_fn(|context| {
            if over(context.waker()) {
                return Poll::Ready(None);
            }
            for inlet in &mut *self.inlets.borrow_mut() {
                let Some(posted) = &mut inlet.posted else { continue };
                if let Poll::Ready(message) = std::pin::Pin::new(posted).poll(context) {
                    inlet.posted = None;
                    return Poll::Ready(Some(message.success().map(|message| self.place(inlet, &message))));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Where the program stands that a message brought.
    fn place(&self, inlet: &Inlet<F>, message: &Completion) -> Place {
        if let Some(word) = message.immediate {
            let left = self.agent.shared.places.borrow_mut().remove(&word);
            return left.expect("a word is left before it is sent");
        }
        let mut bytes = [0; 8];
        let inbox = inlet.inbox.as_ref().expect("a message comes into the inbox of its receive");
        inbox.read(0, &mut bytes).expect("a message has 8 bytes");
        Place::from_bytes(bytes)
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
            let Some(Ok(place)) = self.message(|_| false).await else { return };
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
                    let message = self.message(|_| false).await.expect("it waits for as long as it takes");
                    place = message.map_err(RequestFailure::Operation)?;
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
            let Some(message) = self.message(over).await else { return Ok(()) };
            place = message.map_err(RequestFailure::Operation)?;
        }
    }

    async fn run(self: &Rc<Self>, program: &Arc<Program>, place: Place) -> Result<Reached, RequestFailure> {
        let mut at = place.position;
        let known = self.agent.shared.known(place);
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
                    self.send(call, self.reached(place, at), known, Place { position: at + 1, ..place })
                        .await?;
                    if let Some(detached) = detached {
                        self.agent.detach(program.clone(), detached);
                    }
                    if !call.copies_only {
                        return Ok(Reached::Left(call.answered));
                    }
                }
                Instruction::Parallel { starts, next } => {
                    let parts = starts.iter().map(|start| Box::pin(self.part(program, place, known, *start)));
                    join_all(parts.collect()).await?;
                    at = *next;
                    continue;
                }
                other => {
                    if let Some(to) = self.simple(other, place, known, at).await? {
                        at = to;
                        continue;
                    }
                }
            }
            at += 1;
        }
    }

    /// One branch of a parallel step: no messages, so it stays here.
    async fn part(
        self: &Rc<Self>,
        program: &Program,
        place: Place,
        known: Known,
        start: u16,
    ) -> Result<(), RequestFailure> {
        let mut at = start;
        loop {
            match &program.code[usize::from(at)] {
                Instruction::End => return Ok(()),
                Instruction::Jump(to) => at = *to,
                Instruction::Parallel { starts, next } => {
                    let parts = starts.iter().map(|start| Box::pin(self.part(program, place, known, *start)));
                    join_all(parts.collect()).await?;
                    at = *next;
                }
                other => at = self.simple(other, place, known, at).await?.unwrap_or(at + 1),
            }
        }
    }

    /// An instruction that neither moves the request nor splits it; says where to go on if not next.
    async fn simple(
        self: &Rc<Self>,
        instruction: &Instruction,
        place: Place,
        known: Known,
        at: u16,
    ) -> Result<Option<u16>, RequestFailure> {
        match instruction {
            Instruction::Compute { time, .. } => {
                self.agent.fabric.labelled_fabric(known.label).compute(Work::Time(*time)).await;
            }
            Instruction::Wait(time) => self.agent.fabric.sleep(*time).await,
            Instruction::Verb(call) => {
                let Reaches { responder, is_own } = self.reached(place, at);
                let (first, label) = (self.machine(place, known, responder), known.label);
                let count = self.agent.shared.endpoints[responder].count.get();
                let peer = |number| (responder, (first + number) % count);
                if call.signals.unawaited {
                    self.post_alone(call, place, label, (0..call.to).map(peer), is_own).await?;
                } else if is_own {
                    self.perform(call, label)?.await;
                } else if call.to == 1 {
                    self.call(call, label, (responder, first)).await?;
                } else {
                    let each = (0..call.to).map(|number| Box::pin(self.call(call, label, peer(number))));
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

    /// Posts a verb at each of `peers`, or one that no other role takes part in, and goes on; the request is over when it
    /// is too.
    async fn post_alone(
        &self,
        call: &Call,
        place: Place,
        label: u64,
        peers: impl Iterator<Item = Peer>,
        is_own: bool,
    ) -> Result<(), RequestFailure> {
        let (job, left) = self.agent.shared.begin_beside(place).await;
        let mut flights: Vec<LocalBoxFuture<Result<(), RequestFailure>>> = Vec::new();
        if is_own {
            let mut flight = self.perform(call, label)?;
            // It is posted when it is first asked for.
            let asked = poll_fn(|context| Poll::Ready(flight.as_mut().poll(context))).await;
            if asked.is_pending() {
                flights.push(Box::pin(async move {
                    flight.await;
                    Ok(())
                }));
            }
        } else {
            for peer in peers {
                let posted = self.post_at(call, label, peer).await?;
                flights.push(Box::pin(landed(self.agent.clone(), posted)));
            }
        }
        let agent = self.agent.clone();
        self.agent.fabric.spawn_task(Box::pin(async move {
            match join_all(flights).await {
                Ok(()) => agent.shared.end_beside(&left, job, agent.fabric.now()),
                Err(failure) => {
                    agent.shared.broken.borrow_mut().get_or_insert((job.alternative, failure));
                }
            }
        }));
        // Its processor goes on when it has posted.
        self.agent.fabric.labelled_fabric(label).compute(Work::Time(Time::ZERO)).await;
        Ok(())
    }

    /// Does what no other role takes part in.
    fn perform(&self, call: &Call, label: u64) -> Result<LocalBoxFuture<()>, RequestFailure> {
        let done = self.agent.fabric.labelled_fabric(label).perform(call);
        done.map_err(|error| RequestFailure::Post(error.to_string()))
    }

    async fn call(&self, call: &Call, label: u64, peer: Peer) -> Result<(), RequestFailure> {
        let posted = self.post_at(call, label, peer).await?;
        landed(self.agent.clone(), posted).await
    }

    /// Posts a one-sided verb to one machine.
    async fn post_at(&self, call: &Call, label: u64, peer: Peer) -> Result<Posted<F>, RequestFailure> {
        if let Some(memory) = self.remote.get(&peer.0) {
            return Ok((self.post_on(call, label, memory).await?, None));
        }
        let memory = self.agent.lend(peer).await;
        match self.post_on(call, label, &memory).await {
            Ok(completion) => Ok((completion, Some((peer, memory)))),
            Err(failure) => {
                self.agent.take_back(peer, memory);
                Err(failure)
            }
        }
    }

    async fn post_on(
        &self,
        call: &Call,
        label: u64,
        memory: &Memory<F>,
    ) -> Result<F::CompletionFuture, RequestFailure> {
        let operation = &call.operation;
        let length = operation.payload.get();
        let (pair, region) = memory;
        let (local, remote) = (self.local.slice(0, length), region.at(0));
        if let Some(engine) = &operation.path.engine {
            let here = MemoryAt::Local { region: self.local.clone(), offset: 0 };
            let there = MemoryAt::Remote(remote);
            let (from, to) = if operation.verb == Verb::Read { (there, here) } else { (here, there) };
            let completion = self.agent.fabric.labelled_fabric(label).dma_copy(engine, from, to, length);
            return completion.map_err(|error| RequestFailure::Post(error.to_string()));
        }
        let request = match operation.verb {
            Verb::Read => WorkRequest::read(local, remote),
            Verb::Write => WorkRequest::write(local, remote),
            Verb::CompareAndSwap => WorkRequest::compare_and_swap(self.local.slice(0, 8), remote, 0, 0),
            Verb::FetchAndAdd => WorkRequest::fetch_and_add(self.local.slice(0, 8), remote, 1),
            verb @ (Verb::Send
            | Verb::SendDatagram
            | Verb::Copy
            | Verb::Transform
            | Verb::Load
            | Verb::Store
            | Verb::Forward) => {
                unreachable!("`{verb}` is a message, or what no NIC carries out")
            }
        };
        post_when_free(&self.agent.fabric, &self.agent.fabric.hinted(pair, call, label), request).await
    }

    /// The connection to go on at `peer`, made where there is none yet.
    async fn line_to(&self, peer: Peer) -> Rc<Line<F>> {
        if let Some(line) = self.calls.borrow().get(&peer) {
            return line.clone();
        }
        let line = self.agent.connect(peer, CALL_SERVICE).await;
        let mut calls = self.calls.borrow_mut();
        let line = calls.entry(peer).or_insert(line);
        let mut inlets = self.inlets.borrow_mut();
        if let Err(at) = inlets.binary_search_by_key(&Source::Call(peer), |inlet| inlet.source) {
            inlets.insert(at, Inlet::new(Source::Call(peer), line.clone()));
        }
        line.clone()
    }

    async fn send(
        &self,
        call: &Call,
        Reaches { responder, .. }: Reaches,
        known: Known,
        place: Place,
    ) -> Result<(), RequestFailure> {
        let shared = &self.agent.shared;
        let operation = &call.operation;
        let length = operation.payload.get();
        let first = self.machine(place, known, responder);
        let count = shared.endpoints[responder].count.get();
        // Copies leave first, so that the request goes on after the last.
        let own = u32::from(!call.copies_only);
        for number in own..call.to {
            self.copy(call, known, (responder, (first + number) % count)).await?;
        }
        if call.copies_only {
            return Ok(());
        }
        let returns = responder == shared.scripted(place.alternative.into(), place.program.into()).initiator;
        let slot = (self.sent.get() % OUTBOX) * 8;
        self.sent.set(self.sent.get() + 1);
        let word = call.signals.immediate.then(|| shared.leave(place));
        if word.is_none() {
            self.outbox.write(slot, &place.to_bytes()).expect("a message has 8 bytes");
        }
        let local = self.outbox.slice(slot, length);
        let (line, request) = if is_datagram(call) {
            let line = self.datagrams.clone().expect("a sender of datagrams has a queue pair");
            let inbox = if returns { Inbox::Task(place.task) } else { Inbox::Any };
            let to = self.agent.address((responder, first), inbox).await;
            (line, WorkRequest::send_to(local, to))
        } else {
            let line = match &self.caller {
                Some((peer, line)) if *peer == responder => line.clone(),
                _ if returns => self.agent.back_to(responder, place).await,
                _ => self.line_to((responder, first)).await,
            };
            let request = match operation.verb {
                Verb::Write => {
                    let local = self.local.slice(0, length);
                    let region = match self.remote.get(&responder) {
                        Some((_, region)) => *region,
                        None => {
                            let peer = (responder, first);
                            let memory = self.agent.lend(peer).await;
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
                | Verb::Store
                | Verb::Forward) => unreachable!("`{verb}` moves no request along"),
            };
            (line, request)
        };
        // The answer may come on a connection that was just made.
        let is_posted = |inlet: &Inlet<F>| inlet.source == Source::Datagram && inlet.posted.is_some();
        let datagrams = self.inlets.borrow().iter().any(is_posted);
        self.listen(datagrams)?;
        let request = match word {
            Some(word) => request.immediate(word),
            None => request,
        };
        self.post(call, &line, request, known).await
    }

    /// Sends a message that no request waits for to one machine.
    async fn copy(&self, call: &Call, known: Known, peer: Peer) -> Result<(), RequestFailure> {
        let slot = OUTBOX * 8;
        let local = self.outbox.slice(slot, call.operation.payload.get());
        let (line, request) = if is_datagram(call) {
            let line = self.datagrams.clone().expect("a sender of datagrams has a queue pair");
            let to = self.agent.address(peer, Inbox::Copies).await;
            (line, WorkRequest::send_to(local, to))
        } else {
            let line = self.agent.copies_to(peer).await;
            (line, WorkRequest::send(local))
        };
        self.post(call, &line, request, known).await
    }

    async fn post(
        &self,
        call: &Call,
        line: &Line<F>,
        request: WorkRequest<F::Region>,
        known: Known,
    ) -> Result<(), RequestFailure> {
        let before = line.sent.replace(line.sent.get() + 1);
        let is_write = call.operation.verb == Verb::Write;
        let signaled = call.signals.polled || is_write || before.is_multiple_of(SIGNALED);
        let request = if signaled { request } else { request.unsignaled() };
        let pair = self.agent.fabric.hinted(&line.pair, call, known.label);
        // The sender does not wait: the message's slot is the fabric's until it has left.
        post_when_free(&self.agent.fabric, &pair, request).await.map(drop)
    }
}

/// Posts when the queue pair has room: what nobody waits for may fill it.
async fn post_when_free<F: Fabric>(
    fabric: &F,
    pair: &F::QueuePair,
    request: WorkRequest<F::Region>,
) -> Result<F::CompletionFuture, RequestFailure> {
    loop {
        match pair.post(request.clone()) {
            Err(PostError::QueueFull { .. }) => fabric.sleep(Time::from_ns(200)).await,
            posted => return posted.map_err(RequestFailure::from),
        }
    }
}

/// Waits until a verb has landed, and gives back the connection that was lent for it.
async fn landed<F: Hint>(agent: Rc<Agent<F>>, (completion, lent): Posted<F>) -> Result<(), RequestFailure> {
    let completion = completion.await;
    if let Some((peer, memory)) = lent {
        agent.take_back(peer, memory);
    }
    completion.success().map(|_| ()).map_err(RequestFailure::Operation)
}

/// Waits for all; the first failure is returned after all have ended.
async fn join_all<T>(mut parts: Vec<std::pin::Pin<Box<T>>>) -> Result<(), RequestFailure>
where
    T: Future<Output = Result<(), RequestFailure>> + ?Sized,
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
