//! The program that measures a point: requesters that post, responders that answer, on any backend.
//!
//! A connection begins with a greeting of the requester, which says what the responder has to do, and the responder's
//! answer, which names its memory. It ends with an empty message.

use crate::point::{MARK, MeasurePoint, MeasuringEffort};
use offpath_fabric::{
    Access, Completion, ConnectError, Fabric, Listener, QueuePair, QueuePairOptions, Region, RemoteRegion,
    Role, RoleEnd, RoleName, Run, WorkKind, WorkRequest,
};
use offpath_learn::{RunKind, ToolRun};
use offpath_logs::TrafficDirections;
use offpath_quantity::{Bytes, Time};
use offpath_route::{Path, Verb};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

/// What responders listen for.
const SERVICE: &str = "measure";
/// Receives that a responder of messages has posted: more than any run has in flight of one queue pair.
const RECEIVES: u32 = 512;
/// How long a responder keeps a connection of which it hears nothing more: longer than any point takes.
const FORGOTTEN: Time = Time::from_ms(600_000);
/// After which time without an answer a responder is asked whether it is there.
const SILENCE: Time = Time::from_ms(1_000);
/// How many times as long as windows are begun in a point may take until its peer counts as gone: a receive never learns it.
const PATIENCE: u64 = 10;
/// What a flow says that ended because another failed, which says why.
const STOPPED: &str = "another flow of the point failed";
/// How often a program that looks at its memory looks where time is virtual; elsewhere it does nothing else.
const LOOK_EVERY: Time = Time::from_ns(20);
/// The word of the message that ends a connection.
const GOODBYE: u32 = 0x0ff_b7e5;
/// Bytes of a greeting: what to do, the payload, what goes inline, and the requester's memory.
const GREETING: u64 = 24 + RemoteRegion::BYTES as u64;

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What a responder does until the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answering {
    /// Its NIC answers.
    Nothing,
    /// It takes messages.
    Receives,
    /// It sends each message back.
    Sends,
    /// It looks for each WRITE in its memory, and writes it back.
    Writes,
}

const ANSWERS: [Answering; 4] =
    [Answering::Nothing, Answering::Receives, Answering::Sends, Answering::Writes];

impl Answering {
    fn of(run: &ToolRun) -> Answering {
        match (run.verb, run.kind) {
            (Verb::Send, RunKind::Bandwidth) => Answering::Receives,
            (Verb::Send, RunKind::Latency) => Answering::Sends,
            (Verb::Write, RunKind::Latency) => Answering::Writes,
            _ => Answering::Nothing,
        }
    }
}

/// Requests of a flow within a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredWindow {
    /// How many were carried. Of a stream those in flight where it begins and ends count by how much of their time is in it.
    pub requests: u64,
    /// The time that these took.
    pub time: Time,
}

/// What a flow of a point gave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFigures {
    /// The windows, one after the other.
    pub windows: Vec<MeasuredWindow>,
    /// Of a latency test what each request took, window by window.
    pub latencies: Vec<Vec<Time>>,
}

/// One stream of requests.
#[derive(Clone, Debug)]
struct Flow {
    path: Path,
    run: ToolRun,
    threads: u64,
}

/// What flows tell each other in one process: all go on until each has its windows, so that they are measured together.
#[derive(Debug, Default)]
struct Together {
    measuring: Cell<usize>,
    open: Cell<usize>,
    failed: Cell<bool>,
}

/// The program that measures one point.
#[derive(Clone, Debug)]
pub struct MeasuringProgram {
    flows: Vec<Flow>,
    effort: MeasuringEffort,
}

/// What a role gave: the figures of its flows by their number.
type Given = Result<Vec<(usize, FlowFigures)>, String>;

impl MeasuringProgram {
    /// The program of a point.
    pub fn new(point: &MeasurePoint, effort: MeasuringEffort) -> MeasuringProgram {
        let run = ToolRun { directions: TrafficDirections::One, ..point.run.clone() };
        let mut flows = vec![Flow { path: point.path.clone(), run: run.clone(), threads: point.threads }];
        if point.run.directions == TrafficDirections::Both {
            let path = Path {
                requester: point.path.responder.clone(),
                responder: point.path.requester.clone(),
                engine: None,
            };
            flows.push(Flow { path, run: run.clone(), threads: point.threads });
        }
        if let Some(beside) = &point.beside {
            let run = ToolRun { verb: beside.verb, ..run };
            flows.push(Flow { path: beside.path.clone(), run, threads: point.threads });
        }
        MeasuringProgram { flows, effort }
    }

    /// How many streams of requests run at the same time.
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// The endpoints that post, which all have to be in one process: they stop together.
    pub fn requesters(&self) -> BTreeSet<&str> {
        self.flows.iter().map(|flow| flow.path.requester.as_str()).collect()
    }

    /// The endpoints that are addressed.
    pub fn responders(&self) -> BTreeSet<&str> {
        self.flows.iter().map(|flow| flow.path.responder.as_str()).collect()
    }

    /// The roles of the program that are in this process, named as their endpoints.
    pub fn roles<F: Fabric>(&self, is_here: impl Fn(&str) -> bool) -> Vec<Role<F, Given>> {
        let together = Rc::new(Together::default());
        together.measuring.set(self.flows.len());
        together.open.set(self.flows.len());
        let (requesters, responders) = (self.requesters(), self.responders());
        let all: BTreeSet<&str> =
            requesters.union(&responders).copied().filter(|name| is_here(name)).collect();
        let role = |name: &str| {
            let (program, together, own) = (self.clone(), together.clone(), name.to_string());
            let answers = responders.contains(name);
            let role = Role::new(name, 0, move |fabric: F| {
                let (program, together, own) = (program.clone(), together.clone(), own.clone());
                async move {
                    let given = program.play(&fabric, &own, answers, &together).await;
                    if given.is_err() {
                        together.failed.set(true);
                    }
                    given
                }
            });
            if requesters.contains(name) { role } else { role.in_background() }
        };
        all.into_iter().map(role).collect()
    }

    async fn play<F: Fabric>(&self, fabric: &F, own: &str, answers: bool, together: &Rc<Together>) -> Given {
        let serving = answers.then(|| {
            let fabric = fabric.clone();
            async move { serve(fabric).await }
        });
        let mut flows = Vec::new();
        for (number, flow) in self.flows.iter().enumerate().filter(|(_, flow)| flow.path.requester == own) {
            let (own_fabric, flow, effort, together) =
                (fabric.clone(), flow.clone(), self.effort, together.clone());
            flows.push((
                number,
                fabric.spawn(async move { flow.measure(own_fabric, effort, &together).await }),
            ));
        }
        if flows.is_empty() {
            return match serving {
                Some(serving) => serving.await.map(|()| Vec::new()),
                None => Ok(Vec::new()),
            };
        }
        if let Some(serving) = serving {
            // A listener that fails is told by who connects to it.
            fabric.spawn(serving);
        }
        let mut given = Vec::new();
        let mut stopped = Ok(());
        for (number, flow) in flows {
            match flow.await.map_err(|_| "the flow was stopped".to_string())? {
                Ok(figures) => given.push((number, figures)),
                Err(why) if why == STOPPED => stopped = Err(why),
                Err(why) => return Err(why),
            }
        }
        stopped?;
        // Others may still speak to what is served here.
        while together.open.get() > 0 && !together.failed.get() {
            fabric.sleep(Time::from_us(10)).await;
        }
        Ok(given)
    }
}

/// A responder for requesters in other processes, which serves until its role is stopped.
pub fn responder<F: Fabric>(name: &str) -> Role<F, Result<(), String>> {
    Role::new(name, 0, |fabric: F| serve(fabric)).in_background()
}

/// The figures of the flows of a run, in the order of the point: its own, what comes back, what is beside it.
///
/// # Errors
/// What a role says that it failed by.
pub fn figures_of(run: Run<Given>) -> Result<Vec<FlowFigures>, String> {
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for outcome in run.outcomes {
        match outcome.end {
            RoleEnd::Finished(Ok(given)) => all.extend(given),
            RoleEnd::Finished(Err(why)) => failed.push((why == STOPPED, format!("{}: {why}", outcome.name))),
            RoleEnd::Stopped => {}
            RoleEnd::Crashed => failed.push((false, format!("{} crashed", outcome.name))),
        }
    }
    // Of those that stopped for one another, who was first says why.
    if let Some((_, why)) = failed.into_iter().min_by_key(|(is_stopped, _)| *is_stopped) {
        return Err(why);
    }
    all.sort_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, figures)| figures).collect())
}

/// Memory of a role, the nearest.
fn register<F: Fabric>(fabric: &F, length: u64) -> Result<F::Region, String> {
    let memory = fabric.memories().into_iter().next().ok_or("there is no memory to register")?;
    fabric.register(&memory.name, length.max(8), Access::ALL).map_err(words)
}

fn success(completion: Completion) -> Result<Completion, String> {
    completion.success().map_err(words)
}

/// How long a program that looks at its memory waits between two looks.
fn between_looks<F: Fabric>(fabric: &F) -> Time {
    if fabric.capabilities().virtual_time { LOOK_EVERY } else { Time::ZERO }
}

/// Answers whoever connects.
async fn serve<F: Fabric>(fabric: F) -> Result<(), String> {
    let listener = fabric.listen(SERVICE).map_err(words)?;
    let supports = fabric.capabilities();
    loop {
        let options = QueuePairOptions {
            receive_depth: RECEIVES.min(supports.depth_max),
            inline_max: supports.inline_max.min(1024),
            ..QueuePairOptions::rc()
        };
        let queue_pair = fabric.create_queue_pair(options).map_err(words)?;
        let control = register(&fabric, GREETING)?;
        let greeting = queue_pair.receive(control.slice(0, GREETING)).map_err(words)?;
        if !is_connected(listener.accept(&queue_pair).await)? {
            queue_pair.close();
            continue;
        }
        let own = fabric.clone();
        // A connection ends where its peer is gone, and others go on.
        fabric.spawn(async move {
            let answering = answer(&own, &queue_pair, control, greeting);
            let _ = own.timeout(FORGOTTEN, answering).await;
            queue_pair.close();
        });
    }
}

/// Whether a peer was connected. One that cannot be does not end the service for others; what is wrong with the service does.
fn is_connected(accepted: Result<RoleName, ConnectError>) -> Result<bool, String> {
    match accepted {
        Ok(_) => Ok(true),
        Err(ConnectError::Failed { .. } | ConnectError::Timeout { .. }) => Ok(false),
        Err(error) => Err(words(error)),
    }
}

async fn answer<F: Fabric>(
    fabric: &F,
    queue_pair: &F::QueuePair,
    control: F::Region,
    greeting: F::CompletionFuture,
) -> Result<(), String> {
    success(greeting.await)?;
    let mut bytes = [0; GREETING as usize];
    control.read(0, &mut bytes).map_err(words)?;
    let word =
        |at: usize| bytes[at..at + 8].iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
    let (what, length, inline) = (word(0), word(8), word(16));
    let there = RemoteRegion::from_bytes(&bytes[24..]).map_err(words)?;
    let what =
        usize::try_from(what).ok().and_then(|what| ANSWERS.get(what)).ok_or("a greeting of no kind")?;
    let own = register(fabric, length)?;
    let out = register(fabric, length)?;
    let is_inline = length <= inline;
    let receive = || queue_pair.receive(own.slice(0, length)).map_err(words);
    let mut receives = VecDeque::new();
    let most = queue_pair.options().receive_depth;
    let count = if matches!(what, Answering::Nothing | Answering::Writes) { 1 } else { most };
    for _ in 0..count {
        receives.push_back(receive()?);
    }
    control.write(0, &own.remote().to_bytes()).map_err(words)?;
    let welcome = queue_pair.send(control.slice(0, RemoteRegion::BYTES as u64)).map_err(words)?;
    success(welcome.await)?;
    let is_goodbye = |completion: &Completion| completion.immediate == Some(GOODBYE);
    if *what == Answering::Writes {
        let mark = own_mark(length);
        let mut goodbye = receives.pop_front().ok_or("no receive is posted")?;
        let every = between_looks(fabric);
        let mut round = 0;
        let mut last = None;
        loop {
            round += 1;
            while own.load(mark).map_err(words)? != round {
                if let Some(ended) = look(&mut goodbye).await {
                    return success(ended).map(|_| ());
                }
                fabric.sleep(every).await;
            }
            // The next WRITE may be here before the completion of what answered the last.
            if let Some(last) = last.take() {
                success(last.await)?;
            }
            out.store(mark, round).map_err(words)?;
            let request = WorkRequest::write(out.slice(0, length), there.at(0));
            let request = if is_inline { request.inline() } else { request };
            last = Some(queue_pair.post(request).map_err(words)?);
        }
    }
    let mut last = None;
    while let Some(next) = receives.pop_front() {
        let message = success(next.await)?;
        if is_goodbye(&message) {
            return Ok(());
        }
        receives.push_back(receive()?);
        if *what == Answering::Sends {
            if let Some(last) = last.take() {
                success(last.await)?;
            }
            let request = WorkRequest::send(out.slice(0, length));
            let request = if is_inline { request.inline() } else { request };
            last = Some(queue_pair.post(request).map_err(words)?);
        }
    }
    Ok(())
}

/// Where the last word of a payload is.
fn own_mark(length: u64) -> u64 {
    length.max(MARK.get()) - MARK.get()
}

/// What a completion gives where it is there by now.
async fn look<T: Future<Output = Completion> + Unpin>(completion: &mut T) -> Option<Completion> {
    poll_fn(|context| match Pin::new(&mut *completion).poll(context) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// A queue pair of a flow.
struct Lane<F: Fabric> {
    queue_pair: F::QueuePair,
    /// Where requests take their bytes from and bring them to.
    out: F::Region,
    /// Where the responder's requests bring theirs.
    own: F::Region,
    there: RemoteRegion,
    /// Signaled requests in their order, each with those that end with it.
    waiting: VecDeque<(F::CompletionFuture, Group)>,
    taken: u64,
    /// What was posted and has no completion yet.
    unsignaled: Option<Group>,
}

/// Requests that end with one completion.
#[derive(Clone, Copy, Debug)]
struct Group {
    requests: u64,
    /// When the first was posted.
    posted: Time,
    /// How many marks there were by then.
    marks: usize,
}

impl<F: Fabric> Lane<F> {
    async fn open(fabric: &F, flow: &Flow) -> Result<Lane<F>, String> {
        let run = &flow.run;
        // One more than the run has in flight is for the end.
        let depth = u32::try_from(run.tx_depth + 1).map_err(words)?;
        let options = QueuePairOptions {
            send_depth: depth,
            receive_depth: 4,
            inline_max: u32::try_from(run.inline.get()).map_err(words)?,
            ..QueuePairOptions::rc()
        };
        let queue_pair = fabric.create_queue_pair(options).map_err(words)?;
        let own = register(fabric, run.payload.get())?;
        let out = register(fabric, run.payload.get())?;
        let control = register(fabric, GREETING)?;
        let what =
            ANSWERS.iter().position(|one| *one == Answering::of(run)).expect("each has its number") as u64;
        let inline = run.inline.get();
        let mut greeting = Vec::with_capacity(GREETING as usize);
        for word in [what, run.payload.get(), inline] {
            greeting.extend(word.to_le_bytes());
        }
        greeting.extend(own.remote().to_bytes());
        let answer = queue_pair.receive(control.slice(0, GREETING)).map_err(words)?;
        fabric.connect(&queue_pair, &flow.path.responder, 0, SERVICE).await.map_err(words)?;
        let hello = register(fabric, GREETING)?;
        hello.write(0, &greeting).map_err(words)?;
        let sent = queue_pair.send(hello.slice(0, GREETING)).map_err(words)?;
        success(sent.await)?;
        success(answer.await)?;
        let mut bytes = [0; RemoteRegion::BYTES];
        control.read(0, &mut bytes).map_err(words)?;
        let there = RemoteRegion::from_bytes(&bytes).map_err(words)?;
        Ok(Lane { queue_pair, out, own, there, waiting: VecDeque::new(), taken: 0, unsignaled: None })
    }

    fn request(&self, run: &ToolRun) -> Result<WorkRequest<F::Region>, String> {
        let (own, there) = (self.out.slice(0, run.payload.get()), self.there.at(0));
        let kind = match run.verb {
            Verb::Read => WorkKind::Read { local: own, remote: there },
            Verb::Write => WorkKind::Write { local: own, remote: there, immediate: None },
            Verb::Send => WorkKind::Send { local: own, to: None, immediate: None },
            Verb::FetchAndAdd => WorkKind::FetchAndAdd { local: own, remote: there, add: 1 },
            Verb::CompareAndSwap => {
                WorkKind::CompareAndSwap { local: own, remote: there, compare: 0, swap: 0 }
            }
            other => return Err(format!("queue pairs carry no `{other}`")),
        };
        let carries = matches!(run.verb, Verb::Write | Verb::Send);
        let request = WorkRequest::new(kind);
        let is_inline = carries && run.inline > Bytes::ZERO && run.payload <= run.inline;
        Ok(if is_inline { request.inline() } else { request })
    }

    /// The next request, and what ends with its completion where it has one: each `cq_moderation`-th has, within a list, too.
    fn next(
        &mut self,
        run: &ToolRun,
        now: Time,
        windows: &RefCell<Windows>,
    ) -> Result<(WorkRequest<F::Region>, Option<Group>), String> {
        let request = self.request(run)?;
        let mut group = self.unsignaled.take().unwrap_or_else(|| windows.borrow_mut().posted(now));
        group.requests += 1;
        Ok(match group.requests >= run.cq_moderation {
            true => (request, Some(group)),
            false => {
                self.unsignaled = Some(group);
                (request.unsignaled(), None)
            }
        })
    }

    /// Posts as long as there is room.
    fn fill(&mut self, fabric: &F, run: &ToolRun, windows: &RefCell<Windows>) -> Result<(), String> {
        let list = run.post_list.max(1);
        if self.taken + list > run.tx_depth {
            return Ok(());
        }
        // One look at the clock for all that is posted now, since a look takes as long as some posts.
        let now = fabric.now();
        while self.taken + list <= run.tx_depth {
            self.taken += list;
            if list == 1 {
                let (request, ends) = self.next(run, now, windows)?;
                let completion = self.queue_pair.post(request).map_err(words)?;
                self.waiting.extend(ends.map(|group| (completion, group)));
                continue;
            }
            let posted = (0..list).map(|_| self.next(run, now, windows)).collect::<Result<Vec<_>, _>>()?;
            let (requests, ends): (Vec<_>, Vec<_>) = posted.into_iter().unzip();
            let completions = self.queue_pair.batch(requests).map_err(words)?;
            let signaled = completions.into_iter().zip(ends);
            self.waiting.extend(signaled.filter_map(|(completion, ends)| Some((completion, ends?))));
        }
        Ok(())
    }

    /// Asks the responder's NIC for nothing, which fails where it is gone.
    async fn ask(&self) -> Result<(), String> {
        let nothing = WorkRequest::read(self.out.slice(0, 0), self.there.at(0));
        success(self.queue_pair.post(nothing).map_err(words)?.await).map(|_| ())
    }

    /// Ends the connection: what was posted before ends with the message.
    async fn close(self) -> Result<(), String> {
        let request = WorkRequest::send(self.own.slice(0, 0)).immediate(GOODBYE);
        success(self.queue_pair.post(request).map_err(words)?.await)?;
        self.queue_pair.close();
        Ok(())
    }
}

/// Waits until requests end, and gives those that did.
async fn ended<F: Fabric>(lanes: &mut [Lane<F>]) -> Result<Vec<Group>, String> {
    poll_fn(|context| {
        let mut groups = Vec::new();
        for lane in &mut *lanes {
            while let Some((next, group)) = lane.waiting.front_mut() {
                let Poll::Ready(completion) = Pin::new(next).poll(context) else { break };
                if let Err(status) = completion.success() {
                    return Poll::Ready(Err(words(status)));
                }
                lane.taken -= group.requests;
                groups.push(*group);
                lane.waiting.pop_front();
            }
        }
        if groups.is_empty() { Poll::Pending } else { Poll::Ready(Ok(groups)) }
    })
    .await
}

/// Where a window ends and the next begins.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Time,
    /// Requests that had ended.
    ended: u64,
    /// Of those in flight what was carried, each by the share of its time that had passed: known when they have ended.
    carried: f64,
    /// Completions that are awaited until it is known.
    open: u64,
}

/// The windows of a flow while it is measured.
///
/// Requests of large payloads go on at once and end in clumps, of which a window would have one more or less by chance. So
/// a request in flight at a mark counts on both sides of it, by its time there.
struct Windows {
    effort: MeasuringEffort,
    begun: Time,
    /// The first ends the warm-up.
    marks: Vec<Mark>,
    ended: u64,
    /// Groups in flight.
    open: u64,
}

impl Windows {
    fn new(effort: MeasuringEffort, begun: Time) -> Windows {
        Windows { effort, begun, marks: Vec::new(), ended: 0, open: 0 }
    }

    fn is_marked(&self) -> bool {
        self.marks.len() as u64 > self.effort.windows
    }

    fn is_whole(&self) -> bool {
        self.is_marked() && self.marks.iter().all(|mark| mark.open == 0)
    }

    /// A group of requests begins.
    fn posted(&mut self, now: Time) -> Group {
        self.open += 1;
        Group { requests: 0, posted: now, marks: self.marks.len() }
    }

    /// Requests ended; whether nothing is missing any more that was not before.
    fn saw(&mut self, groups: &[Group], now: Time) -> bool {
        if self.is_whole() {
            return false;
        }
        for group in groups {
            self.ended += group.requests;
            self.open -= 1;
            let whole = now.saturating_sub(group.posted).as_seconds();
            for mark in &mut self.marks[group.marks..] {
                let passed = mark.at.saturating_sub(group.posted).as_seconds();
                mark.carried += group.requests as f64 * if whole > 0.0 { passed / whole } else { 1.0 };
                mark.open -= 1;
            }
        }
        let due = match self.marks.last() {
            None => self.ended >= self.effort.warm_up,
            Some(last) => {
                self.ended >= last.ended + self.effort.requests
                    && now >= last.at + self.effort.time.max(Time::from_ps(1))
            }
        };
        if due && !self.is_marked() {
            self.marks.push(Mark { at: now, ended: self.ended, carried: 0.0, open: self.open });
            // Nobody waits for ever for a slow device.
            let is_late = now.saturating_sub(self.begun) >= self.effort.longest;
            if is_late && self.marks.len() > 1 {
                self.effort.windows = self.marks.len() as u64 - 1;
            }
        }
        self.is_whole()
    }

    /// Whole requests, each window with the time that so many took.
    fn figures(&self) -> Vec<MeasuredWindow> {
        let window = |pair: &[Mark]| {
            let carried = (pair[1].ended - pair[0].ended) as f64 + pair[1].carried - pair[0].carried;
            let requests = carried.round().max(1.0);
            let time = pair[1].at.saturating_sub(pair[0].at).ps() as f64 * requests / carried;
            MeasuredWindow { requests: requests as u64, time: Time::from_ps(time.round() as u64) }
        };
        self.marks.windows(2).map(window).collect()
    }
}

impl Flow {
    async fn measure<F: Fabric>(
        self,
        fabric: F,
        effort: MeasuringEffort,
        together: &Rc<Together>,
    ) -> Result<FlowFigures, String> {
        let measured = async {
            match self.run.kind {
                RunKind::Latency => self.round_trips(&fabric, effort).await,
                RunKind::Bandwidth => self.stream(&fabric, effort, together).await,
            }
        };
        // Where time is virtual, whoever waits for nothing is told so at once.
        let result = if fabric.capabilities().virtual_time {
            measured.await
        } else {
            let limit = effort.longest.times(PATIENCE);
            fabric.timeout(limit, measured).await.unwrap_or_else(|| {
                Err(format!(
                    "it has not ended after {limit}: look whether `{}` still answers, or measure smaller payloads",
                    self.path.responder
                ))
            })
        };
        if result.is_err() {
            together.failed.set(true);
        }
        together.open.set(together.open.get() - 1);
        result
    }

    async fn stream<F: Fabric>(
        &self,
        fabric: &F,
        effort: MeasuringEffort,
        together: &Rc<Together>,
    ) -> Result<FlowFigures, String> {
        let begun = fabric.now();
        let windows = Rc::new(RefCell::new(Windows::new(effort, begun)));
        let threads = self.threads.max(1);
        let mut posting = Vec::new();
        for _ in 0..threads {
            let mut lanes = Vec::new();
            for _ in 0..(self.run.queue_pairs / threads).max(1) {
                lanes.push(Lane::<F>::open(fabric, self).await?);
            }
            posting.push(lanes);
        }
        let post = |mut lanes: Vec<Lane<F>>| {
            let (fabric, run, windows, together) =
                (fabric.clone(), self.run.clone(), windows.clone(), together.clone());
            fabric.clone().spawn(async move {
                let posted = async {
                    while together.measuring.get() > 0 && !together.failed.get() {
                        for lane in &mut lanes {
                            lane.fill(&fabric, &run, &windows)?;
                        }
                        let groups = ended(&mut lanes).await?;
                        if windows.borrow_mut().saw(&groups, fabric.now()) {
                            together.measuring.set(together.measuring.get() - 1);
                        }
                    }
                    for lane in lanes {
                        lane.close().await?;
                    }
                    Ok::<(), String>(())
                };
                let posted = posted.await;
                if posted.is_err() {
                    together.failed.set(true);
                }
                posted
            })
        };
        let posting: Vec<_> = posting.into_iter().map(post).collect();
        for thread in posting {
            thread.await.map_err(|_| "a posting thread was stopped".to_string())??;
        }
        let windows = windows.borrow().figures();
        match windows.is_empty() {
            true => Err(STOPPED.to_string()),
            false => Ok(FlowFigures { windows, latencies: Vec::new() }),
        }
    }

    async fn round_trips<F: Fabric>(
        &self,
        fabric: &F,
        effort: MeasuringEffort,
    ) -> Result<FlowFigures, String> {
        let lane = Lane::<F>::open(fabric, self).await?;
        let rounds = Cell::new(0);
        let figures = {
            let mut measured = pin!(self.windows_of_rounds(fabric, effort, &lane, &rounds));
            // A queue pair learns from a request alone that its peer is gone, and whoever waits for an answer posts none. Where time
            // is virtual, that ends the run at once.
            loop {
                if fabric.capabilities().virtual_time {
                    break measured.as_mut().await?;
                }
                let before = rounds.get();
                match fabric.timeout(SILENCE, measured.as_mut()).await {
                    Some(figures) => break figures?,
                    None if rounds.get() == before => lane.ask().await?,
                    None => {}
                }
            }
        };
        lane.close().await?;
        Ok(figures)
    }

    async fn windows_of_rounds<F: Fabric>(
        &self,
        fabric: &F,
        effort: MeasuringEffort,
        lane: &Lane<F>,
        rounds: &Cell<u64>,
    ) -> Result<FlowFigures, String> {
        let mut figures = FlowFigures::default();
        let begun = fabric.now();
        for window in 0..=effort.windows {
            let since = fabric.now();
            let mut samples = Vec::new();
            let requests = if window == 0 { effort.warm_up } else { effort.requests.max(1) };
            let time = if window == 0 { Time::ZERO } else { effort.time };
            while (samples.len() as u64) < requests || fabric.now().saturating_sub(since) < time {
                rounds.set(rounds.get() + 1);
                samples.push(self.round_trip(fabric, lane, rounds.get()).await?);
            }
            let now = fabric.now();
            if window > 0 {
                let requests = samples.len() as u64;
                figures.windows.push(MeasuredWindow { requests, time: now.saturating_sub(since) });
                figures.latencies.push(samples);
                if now.saturating_sub(begun) >= effort.longest {
                    break;
                }
            }
        }
        Ok(figures)
    }

    /// One request as its tool counts it: half of the way there and back for WRITE and SEND.
    async fn round_trip<F: Fabric>(&self, fabric: &F, lane: &Lane<F>, round: u64) -> Result<Time, String> {
        let half = |since: Time| Time::from_ps(fabric.now().saturating_sub(since).ps() / 2);
        match Answering::of(&self.run) {
            Answering::Writes => {
                let mark = own_mark(self.run.payload.get());
                // What comes back ends with the word that went there.
                lane.out.store(mark, round).map_err(words)?;
                let every = between_looks(fabric);
                let since = fabric.now();
                let posted = lane.queue_pair.post(lane.request(&self.run)?).map_err(words)?;
                while lane.own.load(mark).map_err(words)? != round {
                    fabric.sleep(every).await;
                }
                let taken = half(since);
                // The answer may be here before the completion, until which the request has its slot and its bytes.
                success(posted.await)?;
                Ok(taken)
            }
            Answering::Sends => {
                let back =
                    lane.queue_pair.receive(lane.own.slice(0, self.run.payload.get())).map_err(words)?;
                let since = fabric.now();
                let posted = lane.queue_pair.post(lane.request(&self.run)?).map_err(words)?;
                success(back.await)?;
                let taken = half(since);
                success(posted.await)?;
                Ok(taken)
            }
            _ => {
                let since = fabric.now();
                success(lane.queue_pair.post(lane.request(&self.run)?).map_err(words)?.await)?;
                Ok(fabric.now().saturating_sub(since))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::BesideFlow;
    use offpath_fabric::Backend;
    use offpath_fabric::local::Local;
    use offpath_fabric::local::LocalFabric;

    fn flow(verb: Verb, kind: RunKind) -> Flow {
        let run = ToolRun { tx_depth: 1, cq_moderation: 1, ..ToolRun::plain(kind, verb, Bytes::new(64)) };
        Flow { path: "client-host".parse().expect("a path"), run, threads: 1 }
    }

    /// How a flow fails whose responder is there until the first request and then, `gone` or not, does nothing more.
    fn failing(verb: Verb, gone: bool) -> String {
        let client = Role::new("client", 0, move |fabric| async move {
            let time = Time::ZERO;
            let longest = if gone { Time::from_ms(1_000) } else { Time::from_ms(20) };
            let effort = MeasuringEffort { warm_up: 1, requests: 5, windows: 1, time, longest };
            let together = Rc::new(Together { open: Cell::new(1), ..Together::default() });
            flow(verb, RunKind::Latency).measure(fabric, effort, &together).await.map(|_| ())
        });
        let host = Role::new("host", 0, move |fabric: LocalFabric| async move {
            let listener = fabric.listen(SERVICE).map_err(words)?;
            let queue_pair = fabric.create_queue_pair(QueuePairOptions::rc()).map_err(words)?;
            let control = register(&fabric, GREETING)?;
            let greeting = queue_pair.receive(control.slice(0, GREETING)).map_err(words)?;
            listener.accept(&queue_pair).await.map_err(words)?;
            success(greeting.await)?;
            let own = register(&fabric, 64)?;
            let taken = queue_pair.receive(own.slice(0, 64)).map_err(words)?;
            control.write(0, &own.remote().to_bytes()).map_err(words)?;
            success(queue_pair.send(control.slice(0, RemoteRegion::BYTES as u64)).map_err(words)?.await)?;
            // What it is asked has come, and it is there or not; it answers nothing.
            match verb {
                Verb::Send => drop(success(taken.await)?),
                _ => {
                    while own.load(own_mark(64)).map_err(words)? == 0 {
                        fabric.sleep(Time::from_us(10)).await;
                    }
                }
            }
            match gone {
                true => queue_pair.close(),
                false => fabric.sleep(FORGOTTEN).await,
            }
            Ok(())
        })
        .in_background();
        let run = Local::new(1).run(vec![client, host]).expect("it ends");
        let client = run.outcomes.into_iter().find(|outcome| outcome.name.role == "client");
        match client.map(|outcome| outcome.end) {
            Some(RoleEnd::Finished(Err(why))) => why,
            other => panic!("{other:?}"),
        }
    }

    /// A responder that is gone, or there and silent, ends a latency with a reason: nothing hangs.
    #[test]
    fn a_silent_responder_is_not_waited_for_for_ever() {
        for verb in [Verb::Write, Verb::Send] {
            let why = failing(verb, false);
            assert!(why.contains("not ended after 200 ms") && why.contains("`host`"), "{verb}: {why}");
            let why = failing(verb, true);
            assert!(!why.contains("not ended"), "{verb}: {why}");
        }
    }

    /// Of flows that stop for one another the reason of the first is told, whoever it is.
    #[test]
    fn the_first_reason_is_told() {
        let Flow { path, run, threads } = flow(Verb::Read, RunKind::Bandwidth);
        for beside in ["client-host", "host-client"] {
            let beside = BesideFlow { verb: Verb::Copy, path: beside.parse().expect("a path") };
            let point = MeasurePoint { path: path.clone(), run: run.clone(), threads, beside: Some(beside) };
            // More requests than it gets to.
            let effort = MeasuringEffort { requests: u64::MAX / 2, ..MeasuringEffort::of(&point, 1) };
            let program = MeasuringProgram::new(&point, effort);
            let run = Local::new(1).run(program.roles(|_| true)).expect("it ends");
            let why = figures_of(run).expect_err("no queue pair copies");
            assert!(why.contains("queue pairs carry no"), "{why}");
        }
    }

    /// A peer that cannot be connected leaves the service to others.
    #[test]
    fn one_peer_ends_no_service() {
        let peer = RoleName::new("client", 0);
        let failed = |reason: &str| ConnectError::Failed {
            peer: peer.clone(),
            service: SERVICE.to_string(),
            reason: reason.to_string(),
        };
        assert_eq!(is_connected(Ok(peer.clone())), Ok(true));
        assert_eq!(is_connected(Err(failed("no route"))), Ok(false));
        let taken = ConnectError::ServiceTaken { role: peer.clone(), service: SERVICE.to_string() };
        assert!(is_connected(Err(taken)).is_err());
    }
}
