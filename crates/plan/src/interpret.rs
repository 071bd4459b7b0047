//! Step lists as an application: the same small interpreter runs every design on every world.
//!
//! A role stands for each endpoint that a program visits. Requests start at tasks of their
//! initiator; a message carries the program, the position and the task that began it, so the
//! receiving endpoint goes on where the sender stopped. The payloads are real bytes of real
//! regions; their content means nothing.

use crate::program::{Call, Compiled, Instruction, Program};
use offpath_fabric::{
    Access, Address, Completion, Fabric, Listener, LocalBoxFuture, MemoryAt, PostError, QueuePair,
    QueuePairOptions, Region, RemoteRegion, Role, Status, Work, WorkRequest,
};
use offpath_quantity::{Bytes, Time};
use offpath_route::Verb;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// What a world that models hardware is told about a call and cannot see from its bytes: the
/// request that it belongs to, how its addresses are spread, and that it is posted in a batch.
///
/// A world without a model has nothing to do with it.
pub trait Hint: Fabric {
    /// The queue pair to post `call` on for the request `label`, given the one to its responder.
    fn hinted(&self, queue_pair: &Self::QueuePair, call: &Call, label: u64) -> Self::QueuePair {
        let _ = (call, label);
        queue_pair.clone()
    }

    /// The context to compute and copy with for the request `label`.
    fn labelled_context(&self, label: u64) -> Self {
        let _ = label;
        self.clone()
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

/// Requests that one run may have under way at each initiator: messages carry a task's number as 16
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
pub struct Shared {
    /// The alternatives.
    pub script: Vec<Compiled>,
    /// How branches are decided.
    pub chance: Chance,
    /// Requests that wait for a task, by initiator.
    queues: RefCell<BTreeMap<String, VecDeque<Job>>>,
    waiting: RefCell<BTreeMap<String, VecDeque<Waker>>>,
    /// Called at the end of each request, or with the failure.
    ended: Box<Ended>,
    taken: RefCell<BTreeMap<(u16, u16, u16), f64>>,
    connected: Cell<usize>,
    /// The request that each initiator's task works on, so that messages need not carry it.
    labels: RefCell<BTreeMap<Place, u64>>,
    /// Where programs stand whose messages are too short to say it, by the word that goes with them.
    places: RefCell<BTreeMap<u32, Place>>,
    next_place: Cell<u32>,
    /// The first failure away from a request's initiator, with its alternative.
    broken: RefCell<Option<(u16, Failure)>>,
    largest: Bytes,
    largest_message: Bytes,
}

/// What hears of a request's end: the request, when, and how.
type Ended = dyn Fn(Job, Time, Result<(), Failure>);

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An operation completed with an error.
    Operation(Status),
    /// An operation could not be posted.
    Post(String),
}

impl From<PostError> for Failure {
    fn from(error: PostError) -> Failure {
        Failure::Post(error.to_string())
    }
}

impl Shared {
    /// The shared part of a run over `script`; `ended` hears of every request's end.
    ///
    /// At most 256 alternatives of at most 256 programs each can be told apart.
    pub fn new(
        script: Vec<Compiled>,
        chance: Chance,
        ended: impl Fn(Job, Time, Result<(), Failure>) + 'static,
    ) -> Result<Rc<Shared>, TooMany> {
        at_most("alternatives", script.len(), MOST_PROGRAMS)?;
        for one in &script {
            at_most("programs of an alternative", one.programs.len(), MOST_PROGRAMS)?;
        }
        let largest = calls(&script).map(|call| call.operation.payload).max().unwrap_or(Bytes::ZERO);
        let messages = calls(&script).filter(|call| call.operation.verb.is_message());
        let largest_message = messages.map(|call| call.operation.payload).max().unwrap_or(Bytes::ZERO);
        Ok(Rc::new(Shared {
            script,
            chance,
            queues: RefCell::default(),
            waiting: RefCell::default(),
            ended: Box::new(ended),
            taken: RefCell::default(),
            connected: Cell::new(0),
            labels: RefCell::default(),
            places: RefCell::default(),
            next_place: Cell::new(0),
            broken: RefCell::default(),
            largest: Bytes::new(largest.get().max(64)),
            largest_message: Bytes::new(largest_message.get().max(8)),
        }))
    }

    /// Hands a request to the next free task of its initiator.
    pub fn push(&self, job: Job) {
        let initiator = &self.program(job.alternative, job.program).initiator;
        self.queues.borrow_mut().entry(initiator.clone()).or_default().push_back(job);
        let waker = self.waiting.borrow_mut().get_mut(initiator).and_then(VecDeque::pop_front);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The first failure away from a request's initiator, with its alternative.
    pub fn broken(&self) -> Option<(u16, Failure)> {
        self.broken.borrow().clone()
    }

    /// Tasks that have set up their connections and posted their first receive.
    pub fn connected(&self) -> usize {
        self.connected.get()
    }

    /// Tasks that have to be set up before the first request: `tasks` of each initiator, and `inbox`
    /// of each endpoint that answers datagrams.
    pub fn expected(&self, tasks: u32, inbox: u32) -> usize {
        let initiators = self.initiators();
        let answers = |name: &&String| !initiators.contains(*name) && self.takes_datagrams(name);
        let inboxes = self.endpoints().iter().filter(answers).count();
        tasks as usize * initiators.len() + inbox as usize * inboxes
    }

    /// The endpoints that start requests.
    pub fn initiators(&self) -> BTreeSet<String> {
        programs(&self.script).map(|program| program.initiator.clone()).collect()
    }

    /// Every endpoint that needs a role.
    pub fn endpoints(&self) -> BTreeSet<String> {
        let mut all = self.initiators();
        for call in calls(&self.script) {
            all.insert(call.operation.path.requester.clone());
            all.insert(call.operation.path.responder.clone());
        }
        all
    }

    fn program(&self, alternative: u16, program: u16) -> &Rc<Program> {
        &self.script[usize::from(alternative)].programs[usize::from(program)].1
    }

    async fn next(&self, initiator: &str) -> Job {
        poll_fn(|context| {
            let job = self.queues.borrow_mut().get_mut(initiator).and_then(VecDeque::pop_front);
            match job {
                Some(job) => Poll::Ready(job),
                None => {
                    let mut waiting = self.waiting.borrow_mut();
                    waiting.entry(initiator.to_string()).or_default().push_back(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn takes(&self, at: (u16, u16, u16), probability: f64, draw: impl Fn() -> u64) -> bool {
        match self.chance {
            Chance::Random => ((draw() >> 11) as f64 / (1u64 << 53) as f64) < probability,
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

    /// Whether any program sends datagrams from `requester`.
    fn sends_datagrams(&self, requester: &str) -> bool {
        self.goes(|call| call.operation.path.requester == requester && is_datagram(call))
    }

    /// Whether any program sends datagrams to `responder`.
    fn takes_datagrams(&self, responder: &str) -> bool {
        self.goes(|call| call.operation.path.responder == responder && is_datagram(call))
    }

    /// Whether any program calls `responder` by a connection.
    fn takes_calls(&self, responder: &str) -> bool {
        self.goes(|call| {
            call.operation.path.responder == responder && call.is_on_connection() && !call.answers
        })
    }

    fn goes(&self, is_meant: impl Fn(&Call) -> bool) -> bool {
        calls(&self.script).any(|call| is_meant(call))
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
            .filter(|call| !call.operation.verb.is_message())
            .filter(|call| call.operation.path.requester == requester)
            .map(|call| call.operation.path.responder.clone())
            .collect()
    }
}

fn is_datagram(call: &Call) -> bool {
    call.operation.verb == Verb::SendDatagram
}

fn programs(script: &[Compiled]) -> impl Iterator<Item = &Rc<Program>> {
    script.iter().flat_map(|one| one.programs.iter().map(|(_, program)| program))
}

fn calls(script: &[Compiled]) -> impl Iterator<Item = &Rc<Call>> {
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
    /// The task that began the request: its instance and its number there.
    instance: u16,
    task: u16,
}

impl Place {
    fn to_bytes(self) -> [u8; 8] {
        let mut bytes = [self.alternative, self.program, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&self.position.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.instance.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.task.to_le_bytes());
        bytes
    }

    /// The request, wherever it stands.
    fn start(self) -> Place {
        Place { position: 0, ..self }
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

const MEMORY_SERVICE: &str = "memory";
const CALL_SERVICE: &str = "call";
const MESSAGE_SERVICE: &str = "messages";
/// Messages that a task may have on their way out.
const OUTBOX: u64 = 16;
/// Time that connection set-up may take before a run is given up.
const PATIENCE: Time = Time::from_ms(60_000);

/// The roles of a run: one for each endpoint and instance.
///
/// `tasks` is how many requests an initiator may have under way over all its instances, `inbox` how
/// many messages an endpoint may handle at once; both are at most [`MOST_TASKS`]. `main` runs in the
/// first role and ends the run.
pub fn roles<F: Hint>(
    shared: &Rc<Shared>,
    instances: &BTreeMap<String, u32>,
    tasks: u32,
    inbox: u32,
    main: impl Fn(F) -> LocalBoxFuture<()> + Clone + 'static,
) -> Result<Vec<Role<F, ()>>, TooMany> {
    at_most("requests under way", tasks as usize, MOST_TASKS as usize)?;
    at_most("messages handled at once", inbox as usize, MOST_TASKS as usize)?;
    let mut roles = Vec::new();
    let initiators = shared.initiators();
    let first = initiators.iter().next().cloned().unwrap_or_default();
    for endpoint in shared.endpoints() {
        let count = if initiators.contains(&endpoint) {
            instances.get(&endpoint).copied().unwrap_or(1).min(tasks.max(1))
        } else {
            1
        };
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

/// What one role holds.
struct Agent<F: Fabric> {
    fabric: F,
    name: String,
    shared: Rc<Shared>,
    region: F::Region,
    datagrams: Option<F::QueuePair>,
    /// Datagrams sent on the queue pair that all handlers share.
    answered: Cell<u64>,
    addresses: RefCell<BTreeMap<(String, u32, u16), Address>>,
}

/// What one task holds: connections of its own, so that tasks never wait for each other.
struct Task<F: Fabric> {
    agent: Rc<Agent<F>>,
    local: F::Region,
    /// Messages on their way out, in slots of their own: what comes in must not change them.
    outbox: F::Region,
    sent: Cell<u64>,
    /// Messages sent by channel, each a queue pair whose slots one completion in 64 frees.
    sent_on: RefCell<BTreeMap<String, u64>>,
    /// Receives that are posted and not yet used, by the responder whose answers they wait for
    /// (empty for datagrams): a branch that sends nothing leaves its receive to the next message.
    posted: RefCell<BTreeMap<String, F::Ticket>>,
    remote: BTreeMap<String, (F::QueuePair, RemoteRegion)>,
    calls: BTreeMap<String, F::QueuePair>,
    datagrams: Option<F::QueuePair>,
    /// Whether requests begin here.
    initiates: bool,
    instance: u16,
    number: u16,
}

fn rc() -> QueuePairOptions {
    QueuePairOptions { connect_timeout: PATIENCE, ..QueuePairOptions::rc() }
}

impl<F: Hint> Agent<F> {
    async fn start(fabric: F, shared: Rc<Shared>, tasks: u32, inbox: u32) {
        let name = fabric.role().role;
        let memory = fabric.memories().first().expect("an endpoint has memory").name.clone();
        let region = fabric
            .register(&memory, shared.largest.get(), Access::ALL)
            .expect("the largest payload fits the memory");
        let wants_datagrams = shared.takes_datagrams(&name);
        let options =
            QueuePairOptions { send_depth: 4096, receive_depth: inbox.max(1), ..QueuePairOptions::ud() };
        let datagrams =
            wants_datagrams.then(|| fabric.create_queue_pair(options).expect("the world has datagrams"));
        let agent = Rc::new(Agent {
            fabric: fabric.clone(),
            name: name.clone(),
            shared: shared.clone(),
            region,
            datagrams,
            answered: Cell::new(0),
            addresses: RefCell::default(),
        });
        fabric.spawn_task(Box::pin(serve_memory(agent.clone())));
        let initiates = tasks > 0;
        if shared.takes_calls(&name) && !initiates {
            fabric.spawn_task(Box::pin(serve_calls(agent.clone())));
        }
        if let (Some(pair), false) = (&agent.datagrams, initiates) {
            fabric.publish(MESSAGE_SERVICE, pair).expect("a service of its own");
            for number in 0..inbox {
                fabric.spawn_task(Box::pin(serve_datagrams(agent.clone(), pair.clone(), number)));
            }
        }
        for number in 0..tasks {
            fabric.spawn_task(Box::pin(initiate(agent.clone(), number as u16)));
        }
    }

    async fn task(self: &Rc<Self>, number: u16, initiates: bool) -> Task<F> {
        let fabric = &self.fabric;
        let memory = fabric.memories().first().expect("an endpoint has memory").name.clone();
        let local = fabric
            .register(&memory, self.shared.largest.get(), Access::ALL)
            .expect("the largest payload fits the memory");
        let outbox = fabric
            .register(&memory, self.shared.largest_message.get() * OUTBOX, Access::ALL)
            .expect("the messages fit the memory");
        let mut remote = BTreeMap::new();
        for responder in self.shared.reaches(&self.name) {
            let pair = fabric.create_queue_pair(rc()).expect("the world has connections");
            let hello = pair.receive(local.slice(0, RemoteRegion::BYTES as u64)).expect("a receive fits");
            fabric.connect(&pair, &responder, 0, MEMORY_SERVICE).await.expect("the responder listens");
            hello.await.success().expect("the responder names its region");
            let mut bytes = [0; RemoteRegion::BYTES];
            local.read(0, &mut bytes).expect("within the region");
            remote.insert(responder, (pair, RemoteRegion::from_bytes(&bytes).expect("24 bytes")));
        }
        let mut calls = BTreeMap::new();
        for responder in self.called() {
            let pair = fabric.create_queue_pair(rc()).expect("the world has connections");
            fabric.connect(&pair, &responder, 0, CALL_SERVICE).await.expect("the responder listens");
            calls.insert(responder, pair);
        }
        let datagrams = (initiates && self.shared.sends_datagrams(&self.name)).then(|| {
            let pair = fabric.create_queue_pair(QueuePairOptions::ud()).expect("the world has datagrams");
            fabric.publish(&service_of(number), &pair).expect("a service of its own");
            pair
        });
        Task {
            agent: self.clone(),
            local,
            outbox,
            sent: Cell::new(0),
            sent_on: RefCell::default(),
            posted: RefCell::default(),
            remote,
            calls,
            datagrams: datagrams.or_else(|| self.datagrams.clone()),
            initiates,
            instance: fabric.role().instance as u16,
            number,
        }
    }

    /// The endpoints that this one calls by connections.
    fn called(&self) -> BTreeSet<String> {
        calls(&self.shared.script)
            .filter(|call| call.is_on_connection() && !call.answers)
            .filter(|call| call.operation.path.requester == self.name)
            .map(|call| call.operation.path.responder.clone())
            .collect()
    }

    /// Where a datagram to `endpoint` goes: to the task that began the request, or to the inbox.
    async fn address(&self, endpoint: &str, place: Place, returns: bool) -> Address {
        let (instance, task) = if returns { (u32::from(place.instance), place.task) } else { (0, u16::MAX) };
        let key = (endpoint.to_string(), instance, task);
        if let Some(address) = self.addresses.borrow().get(&key) {
            return *address;
        }
        let service = if returns { service_of(task) } else { MESSAGE_SERVICE.to_string() };
        let address = self
            .fabric
            .resolve(endpoint, instance, &service, PATIENCE)
            .await
            .expect("the endpoint publishes its address");
        self.addresses.borrow_mut().insert(key, address);
        address
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
        let pair = agent.fabric.create_queue_pair(rc()).expect("the world has connections");
        if listener.accept(&pair).await.is_err() {
            continue;
        }
        let own = agent.fabric.clone();
        let region = own
            .register(&own.memories()[0].name, RemoteRegion::BYTES as u64, Access::ALL)
            .expect("24 bytes fit the memory");
        region.write(0, &agent.region.remote().to_bytes()).expect("24 bytes");
        let hello = pair.send(region.all());
        kept.push((pair, region, hello));
    }
}

/// Accepts connections whose messages this endpoint answers.
async fn serve_calls<F: Hint>(agent: Rc<Agent<F>>) {
    let listener = agent.fabric.listen(CALL_SERVICE).expect("a service of its own");
    let mut number = 0;
    loop {
        let pair = agent.fabric.create_queue_pair(rc()).expect("the world has connections");
        if listener.accept(&pair).await.is_err() {
            continue;
        }
        let handler = agent.clone();
        agent.fabric.spawn_task(Box::pin(async move {
            let task = handler.task(number, false).await;
            loop {
                let Ok(ticket) = pair.receive(task.local.all()) else { return };
                let message = ticket.await;
                if message.status != Status::Success {
                    return;
                }
                task.answer(&message, Some(&pair)).await;
            }
        }));
        number = number.wrapping_add(1);
    }
}

/// Handles datagrams one at a time; as many run side by side as the inbox holds.
async fn serve_datagrams<F: Hint>(agent: Rc<Agent<F>>, pair: F::QueuePair, number: u32) {
    let task = agent.task(number as u16, false).await;
    let mut ready = false;
    loop {
        let Ok(ticket) = pair.receive(task.local.all()) else { return };
        if !std::mem::replace(&mut ready, true) {
            // A datagram that finds no receive is lost, so nothing may be sent before.
            agent.shared.connected.set(agent.shared.connected.get() + 1);
        }
        let message = ticket.await;
        if message.status != Status::Success {
            return;
        }
        task.answer(&message, None).await;
    }
}

/// Serves requests of this initiator, one after another.
async fn initiate<F: Hint>(agent: Rc<Agent<F>>, number: u16) {
    let task = agent.task(number, true).await;
    let shared = agent.shared.clone();
    shared.connected.set(shared.connected.get() + 1);
    loop {
        let job = shared.next(&agent.name).await;
        let place = Place {
            alternative: job.alternative as u8,
            program: job.program as u8,
            position: 0,
            instance: task.instance,
            task: task.number,
        };
        shared.labels.borrow_mut().insert(place, job.label);
        let result = task.request(place, None).await;
        if let Err(failure @ Failure::Post(_)) = &result {
            // What cannot be posted once cannot be posted again, and takes no time: the run is told.
            shared.broken.borrow_mut().get_or_insert((job.alternative, failure.clone()));
            agent.fabric.sleep(Time::from_us(1)).await;
        }
        (shared.ended)(job, agent.fabric.now(), result);
    }
}

/// How far a program came at this endpoint.
enum Reached {
    End,
    /// A message left; the answer comes on this channel.
    Sent(String),
    /// A message left that this task waits for no answer to.
    Left,
}

/// The name of the channel that a message and its answer take.
fn channel(call: &Call) -> String {
    match call.operation.verb {
        Verb::SendDatagram => String::new(),
        _ => call.operation.path.responder.clone(),
    }
}

impl<F: Hint> Task<F> {
    fn label(&self, place: Place) -> u64 {
        self.agent.shared.labels.borrow().get(&place.start()).copied().unwrap_or(0)
    }

    /// Where the program stands that a message brought.
    fn place(&self, message: &Completion) -> Place {
        if let Some(word) = message.immediate {
            let left = self.agent.shared.places.borrow_mut().remove(&word);
            return left.expect("a word is left before it is sent");
        }
        let mut bytes = [0; 8];
        self.local.read(0, &mut bytes).expect("a message has 8 bytes");
        Place::from_bytes(bytes)
    }

    /// Runs a request from a place to its end, or to a message that another task goes on with, waiting
    /// for answers in between.
    async fn request(&self, mut place: Place, caller: Option<&F::QueuePair>) -> Result<(), Failure> {
        loop {
            // The receive is posted before anything is sent, so no answer can come too early.
            let program = self.agent.shared.program(place.alternative.into(), place.program.into()).clone();
            if let Some((name, pair)) = self.answers_on(&program, place.position)
                && !self.posted.borrow().contains_key(&name)
            {
                let ticket = pair.receive(self.local.all())?;
                self.posted.borrow_mut().insert(name, ticket);
            }
            match self.run(&program, place, caller).await? {
                Reached::End | Reached::Left => return Ok(()),
                Reached::Sent(channel) => {
                    let ticket = self.posted.borrow_mut().remove(&channel);
                    let answer: Completion = ticket.expect("a receive waits on each channel").await;
                    answer.success().map_err(Failure::Operation)?;
                    place = self.place(&answer);
                }
            }
        }
    }

    /// The queue pair on which the answer to the next message from `position` on comes.
    fn answers_on(&self, program: &Program, position: u16) -> Option<(String, F::QueuePair)> {
        program.code[usize::from(position)..].iter().find_map(|instruction| match instruction {
            Instruction::Verb(call) if call.operation.path.requester == self.agent.name => {
                let name = channel(call);
                let pair = match call.operation.verb {
                    Verb::SendDatagram if self.initiates => self.datagrams.as_ref(),
                    _ if call.is_on_connection() && !call.answers => self.calls.get(&name),
                    _ => None,
                };
                pair.map(|pair| (name, pair.clone()))
            }
            _ => None,
        })
    }

    /// Goes on with a request that a message brought here. Its initiator would wait for ever after
    /// a failure, so the run is told.
    async fn answer(&self, message: &Completion, caller: Option<&F::QueuePair>) {
        let place = self.place(message);
        if let Err(failure) = self.request(place, caller).await {
            self.agent.shared.broken.borrow_mut().get_or_insert((place.alternative.into(), failure));
        }
    }

    async fn run(
        &self,
        program: &Program,
        place: Place,
        caller: Option<&F::QueuePair>,
    ) -> Result<Reached, Failure> {
        let mut at = place.position;
        loop {
            match &program.code[usize::from(at)] {
                Instruction::End => return Ok(Reached::End),
                Instruction::Jump(to) => {
                    at = *to;
                    continue;
                }
                Instruction::Verb(call) if call.hands_over() => {
                    self.send(program, call, Place { position: at + 1, ..place }, caller).await?;
                    let waits = if is_datagram(call) { self.initiates } else { !call.answers };
                    return Ok(if waits { Reached::Sent(channel(call)) } else { Reached::Left });
                }
                Instruction::Parallel { starts, next } => {
                    let parts = starts.iter().map(|start| Box::pin(self.part(program, place, *start)));
                    join_all(parts.collect()).await?;
                    at = *next;
                    continue;
                }
                other => {
                    if let Some(to) = self.simple(other, place, at).await? {
                        at = to;
                        continue;
                    }
                }
            }
            at += 1;
        }
    }

    /// One branch of a parallel step: no messages, so it stays here.
    async fn part(&self, program: &Program, place: Place, start: u16) -> Result<(), Failure> {
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
                other => at = self.simple(other, place, at).await?.unwrap_or(at + 1),
            }
        }
    }

    /// An instruction that neither moves the request nor splits it; says where to go on if not next.
    async fn simple(&self, instruction: &Instruction, place: Place, at: u16) -> Result<Option<u16>, Failure> {
        match instruction {
            Instruction::Compute { time, .. } => {
                self.agent.fabric.labelled_context(self.label(place)).compute(Work::Time(*time)).await;
            }
            Instruction::Verb(call) => self.call(call, self.label(place)).await?,
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

    async fn call(&self, call: &Call, label: u64) -> Result<(), Failure> {
        let operation = &call.operation;
        let length = operation.payload.get();
        let (pair, region) = &self.remote[&operation.path.responder];
        let (local, remote) = (self.local.slice(0, length), region.at(0));
        let completion = match &operation.path.engine {
            Some(engine) => {
                let here = MemoryAt::Local { region: self.local.clone(), offset: 0 };
                let there = MemoryAt::Remote(remote);
                let (from, to) = if operation.verb == Verb::Read { (there, here) } else { (here, there) };
                let ticket = self.agent.fabric.labelled_context(label).dma_copy(engine, from, to, length);
                ticket.map_err(|error| Failure::Post(error.to_string()))?.await
            }
            None => {
                let request = match operation.verb {
                    Verb::Read => WorkRequest::read(local, remote),
                    Verb::Write => WorkRequest::write(local, remote),
                    Verb::CompareAndSwap => {
                        WorkRequest::compare_and_swap(self.local.slice(0, 8), remote, 0, 0)
                    }
                    Verb::FetchAndAdd => WorkRequest::fetch_and_add(self.local.slice(0, 8), remote, 1),
                    Verb::Send | Verb::SendDatagram => unreachable!("messages are sent elsewhere"),
                };
                self.agent.fabric.hinted(pair, call, label).post(request)?.await
            }
        };
        completion.success().map(|_| ()).map_err(Failure::Operation)
    }

    async fn send(
        &self,
        program: &Program,
        call: &Call,
        place: Place,
        caller: Option<&F::QueuePair>,
    ) -> Result<(), Failure> {
        let operation = &call.operation;
        let length = operation.payload.get();
        let returns = operation.path.responder == program.initiator;
        let slot = (self.sent.get() % OUTBOX) * self.agent.shared.largest_message.get();
        self.sent.set(self.sent.get() + 1);
        let word = call.signals.immediate.then(|| self.agent.shared.leave(place));
        if word.is_none() {
            self.outbox.write(slot, &place.to_bytes()).expect("a message has 8 bytes");
        }
        let local = self.outbox.slice(slot, length);
        let (pair, request) = if operation.verb == Verb::SendDatagram {
            let pair = self.datagrams.as_ref().expect("a sender of datagrams has a queue pair");
            let to = self.agent.address(&operation.path.responder, place, returns).await;
            (pair, WorkRequest::send_to(local, to))
        } else {
            let pair = match caller {
                Some(pair) if call.answers => pair,
                _ => &self.calls[&operation.path.responder],
            };
            match operation.verb {
                Verb::Write => {
                    let (_, region) = &self.remote[&operation.path.responder];
                    (pair, WorkRequest::write(self.local.slice(0, length), region.at(0)))
                }
                _ => (pair, WorkRequest::send(local)),
            }
        };
        let request = match word {
            Some(word) => request.immediate(word),
            None => request,
        };
        // One completion in 64 frees the slots of all: asking for each would cost a poll each.
        let shares = operation.verb == Verb::SendDatagram && self.agent.name != program.initiator;
        let before = if shares {
            self.agent.answered.replace(self.agent.answered.get() + 1)
        } else {
            let mut sent_on = self.sent_on.borrow_mut();
            let count = sent_on.entry(channel(call)).or_default();
            std::mem::replace(count, *count + 1)
        };
        let signaled = call.signals.polled || operation.verb == Verb::Write || before.is_multiple_of(64);
        let request = if signaled { request } else { request.unsignaled() };
        let ticket = self.agent.fabric.hinted(pair, call, self.label(place)).post(request)?;
        // The sender does not wait: the message's slot is the fabric's until it has left.
        drop(ticket);
        Ok(())
    }
}

/// Waits for all; the first failure is returned after all have ended.
async fn join_all<T>(mut parts: Vec<std::pin::Pin<Box<T>>>) -> Result<(), Failure>
where
    T: Future<Output = Result<(), Failure>>,
{
    let mut done: Vec<Option<Result<(), Failure>>> = parts.iter().map(|_| None).collect();
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
        let shared = |count| Shared::new(vec![one.clone(); count], Chance::Random, |_, _, _| {});
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
