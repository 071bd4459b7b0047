//! Step lists as programs: checked against the system, flattened, and folded to what they demand.

use crate::design::{Alternative, ComputeCost, Design, DesignError, LONGEST, ObjectAccess, Signals, Step};
use crate::estimate::Share;
use miette::NamedSource;
use offpath_profile::EngineWork;
use offpath_quantity::{Bytes, Time};
use offpath_route::{
    AddressSpread, Advance, Carrier, Cursor, LEAST_BURST, MOST_BURSTS, Mark, Path, PathOperation, Posting,
    Route, RouteError, Router, StationKind, Stations, Transport, Verb, processor_of,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// One instruction of a program.
#[derive(Clone, Debug)]
pub enum Instruction {
    /// A verb; a message moves the program to the responder.
    Verb(Arc<Call>),
    /// Processor time at the endpoint where the program is.
    Compute {
        /// How long.
        time: Time,
        /// The estimates of the design that it is made of.
        rests_on: Arc<[Share]>,
    },
    /// Time that passes without a core.
    Wait(Time),
    /// Goes on at an instruction.
    Jump(u16),
    /// Goes on with the next instruction by chance, else at another.
    Branch {
        /// The probability of the next instruction.
        probability: f64,
        /// Where the other case begins.
        otherwise: u16,
    },
    /// Programs side by side, each from its start to its `End`; goes on at `next` after all.
    Parallel {
        /// Where each begins.
        starts: Vec<u16>,
        /// Where all lead.
        next: u16,
    },
    /// The end of the program, or of a part that runs beside others.
    End,
}

/// A verb as a program calls it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The operation.
    pub operation: PathOperation,
    /// Its route.
    pub route: Arc<Route>,
    /// How its two sides hear of it.
    pub signals: Signals,
    /// How many machines it goes to, each its own where there are as many.
    pub to: u32,
    /// What a message travels on; several where that depends on how the request came here.
    pub channels: BTreeSet<Channel>,
    /// Whether every way of the request answers this message on its own connection.
    pub answered: bool,
    /// Whether nobody waits for what arrives, so that the request stays.
    pub copies_only: bool,
    /// Where the work in the background begins, if this message answers the request.
    pub background: Option<u16>,
}

/// What a message that moves a request travels on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// The connection on which the sender was asked.
    Caller,
    /// A connection that the sender makes.
    Call,
    /// A connection that the request's initiator waits on, made to an endpoint that it did not ask.
    Back,
    /// No connection.
    Datagram,
}

impl Call {
    /// Whether it may travel on `channel`.
    pub fn takes(&self, channel: Channel) -> bool {
        self.channels.contains(&channel)
    }

    /// Whether it brings messages that no request waits for.
    pub fn has_copies(&self) -> bool {
        self.hands_over() && (self.copies_only || self.to > 1)
    }

    /// The processor that issues it, by the name of its endpoint with its own memory.
    pub fn requester(&self) -> &str {
        processor_of(&self.operation.path.requester)
    }

    /// The processor that answers it, or whose machine's memory it reaches.
    pub fn responder(&self) -> &str {
        processor_of(&self.operation.path.responder)
    }

    /// Whether a payload lies in another memory than its processor's own.
    pub fn is_apart(&self) -> bool {
        let Path { requester, responder, .. } = &self.operation.path;
        self.requester() != requester || self.responder() != responder
    }

    /// Whether no other role takes part: a processor's own loads and stores, and what an engine does to one memory or
    /// to memories apart from their processors, or but copying.
    pub fn is_own(&self) -> bool {
        let copies = self.operation.verb.row().carriers.contains(&Carrier::Engine(EngineWork::Copy));
        let is_of_engine = self.operation.path.engine.is_some();
        self.requester() == self.responder() || is_of_engine && (self.is_apart() || !copies)
    }

    /// Whether the request goes on at the responder.
    pub fn hands_over(&self) -> bool {
        self.operation.verb.is_message() || self.signals.immediate
    }
}

/// A step list for one operation of the workload.
#[derive(Clone, Debug)]
pub struct Program {
    /// The endpoint that starts and ends it.
    pub initiator: String,
    /// Its instructions, from 0 on.
    pub code: Vec<Instruction>,
    /// Where the work in the background begins, which follows the answer.
    pub background: Option<u16>,
    /// Whether that begins at the initiator when the request ends, since no message answers it.
    pub begins_background: bool,
    /// The machine of each endpoint that it visits, by position.
    pub machines: BTreeMap<String, usize>,
}

impl Program {
    /// Its verbs.
    pub fn calls(&self) -> impl Iterator<Item = &Arc<Call>> {
        self.code.iter().filter_map(|instruction| match instruction {
            Instruction::Verb(call) => Some(call),
            _ => None,
        })
    }

    /// The endpoint where the work in the background begins.
    fn answered_at(&self) -> &str {
        let answer = self.calls().find(|call| call.background.is_some());
        answer.map_or(&self.initiator, |call| call.requester())
    }
}

/// An alternative as programs with their shares.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Its name.
    pub name: String,
    /// Programs by operation with the operation's share.
    pub programs: Vec<(f64, Arc<Program>)>,
}

/// What a request asks on average.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fold {
    /// Seconds of server time by station.
    pub seconds: BTreeMap<String, f64>,
    /// The same of in-flight slots when nothing else is mixed in, where that was seen apart.
    pub slots_alone: BTreeMap<String, f64>,
    /// Requests by pool and class.
    pub requests: BTreeMap<(String, String), f64>,
    /// Unloaded latency in seconds.
    pub latency: f64,
    /// Unloaded seconds of what nobody waits for, work in the background and verbs in flight, which is not part of the latency.
    pub background: f64,
    /// Payload bytes over the network.
    pub network_bytes: f64,
    /// What of each station's seconds is computing whose time the design gives, by estimate. Where a
    /// time is a product of several, each is named with all of it.
    pub estimated: BTreeMap<String, BTreeMap<Arc<str>, f64>>,
}

impl Fold {
    /// What one operation on `route` asks.
    pub fn of(route: &Route, router: &Router) -> Fold {
        fold_route(route, router)
    }

    /// The demand when nothing else is mixed in.
    pub fn alone(&self) -> Fold {
        let mut alone = self.clone();
        alone.seconds.extend(std::mem::take(&mut alone.slots_alone));
        alone
    }

    /// Whether another asks the same of every station and of the network, to a millionth.
    pub(crate) fn asks_as(&self, other: &Fold) -> bool {
        let is_near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * one.abs().max(other.abs());
        let is_alike = self
            .seconds
            .iter()
            .all(|(station, seconds)| is_near(*seconds, other.seconds.get(station).copied().unwrap_or(0.0)));
        is_alike
            && self.seconds.len() == other.seconds.len()
            && self.requests == other.requests
            && is_near(self.network_bytes, other.network_bytes)
            && is_near(self.latency, other.latency)
    }

    /// Adds `weight` times another's.
    pub fn add(&mut self, other: &Fold, weight: f64) {
        for (station, seconds) in &other.seconds {
            *self.seconds.entry(station.clone()).or_default() += seconds * weight;
        }
        for (pool, count) in &other.requests {
            *self.requests.entry(pool.clone()).or_default() += count * weight;
        }
        for (station, estimates) in &other.estimated {
            let own = self.estimated.entry(station.clone()).or_default();
            for (id, seconds) in estimates {
                *own.entry(id.clone()).or_default() += seconds * weight;
            }
        }
        self.latency += other.latency * weight;
        self.background += other.background * weight;
        self.network_bytes += other.network_bytes * weight;
    }
}

/// Compiles an alternative for a system.
pub fn compile(
    design: &Design,
    alternative: &Alternative,
    router: &Router,
) -> Result<Compiled, miette::Report> {
    let mut programs = Vec::new();
    for (operation, share, steps) in &alternative.operations {
        let mut compiler = Compiler {
            design,
            router,
            code: Vec::new(),
            at: None,
            initiator: None,
            frames: BTreeSet::new(),
            answered: BTreeSet::new(),
            unanswered: BTreeSet::new(),
            answers: BTreeSet::new(),
            superseded: BTreeSet::new(),
            in_background: false,
            is_over: None,
            busy: Time::ZERO,
            within: Vec::new(),
            routes: RefCell::default(),
        };
        // Counted before anything is unrolled, so that no number in the file costs time or memory.
        let count = instructions(steps);
        if count > MOST_INSTRUCTIONS {
            let longest = steps.iter().max_by_key(|step| length(step)).map_or(0..0, step_span);
            return Err(compiler.error(
                format!(
                    "`{operation}` of alternative `{}` unrolls to {count} steps, and a request has at most {MOST_INSTRUCTIONS}",
                    alternative.name
                ),
                "plan a part of it: what binds a part of a long list binds all of it, at as much more a second as it is \
                 shorter",
                longest,
            ));
        }
        let (steps, background) = match steps.split_last() {
            Some((Step::Background { steps: background, span }, steps)) => (steps, Some((background, span))),
            _ => (&steps[..], None),
        };
        compiler.list(steps)?;
        compiler.code.push(Instruction::End);
        let Some(initiator) = compiler.initiator.clone() else {
            let (does, help) = match background {
                None => ("does nothing", "give it a verb or some compute"),
                Some(_) => (
                    "has work in the background of nothing",
                    "write before `background` what a request does that somebody waits for",
                ),
            };
            return Err(compiler.error(
                format!("`{operation}` of alternative `{}` {does}", alternative.name),
                help,
                alternative.span.clone(),
            ));
        };
        if compiler.at.as_ref() != Some(&initiator) {
            return Err(compiler.error(
                format!(
                    "`{operation}` of alternative `{}` starts at `{initiator}` and ends at `{}`",
                    alternative.name,
                    compiler.at.clone().unwrap_or_default()
                ),
                format!("send an answer back to `{initiator}`, so that a request ends where it began"),
                alternative.span.clone(),
            ));
        }
        let (mut start, mut begins) = (None, false);
        if let Some((steps, span)) = background {
            start = Some(compiler.position());
            begins = compiler.background(steps, span)?;
            compiler.code.push(Instruction::End);
        }
        let program = compiler.program(initiator, start, begins)?;
        let moved = program.walk(router, &mut 1.0).most_moves;
        if moved > MOST_MOVED {
            let longest = steps.iter().max_by_key(|step| length(step)).map_or(0..0, step_span);
            return Err(refused(
                design,
                format!(
                    "a request of `{operation}` of alternative `{}` moves {moved:.0} verbs and bursts of a payload, and \
                     the twin follows {MOST_MOVED} at most",
                    alternative.name
                ),
                "plan a part of it: what binds a part of a long list binds all of it, at as much more a second as it is \
                 shorter",
                longest,
            ));
        }
        programs.push((*share, Arc::new(program)));
    }
    Ok(Compiled { name: alternative.name.clone(), programs })
}

struct Compiler<'d> {
    design: &'d Design,
    router: &'d Router,
    code: Vec<Instruction>,
    at: Option<String>,
    initiator: Option<String>,
    /// How the request may have come to where it is.
    frames: BTreeSet<Arc<Frame>>,
    /// Messages that are answered on their connection on some way, and on some way are not.
    answered: BTreeSet<u16>,
    unanswered: BTreeSet<u16>,
    /// From where, and by which message, the request may have been answered last.
    answers: BTreeSet<(String, Option<u16>)>,
    /// Messages that answer it on some way before another one does.
    superseded: BTreeSet<Option<u16>>,
    in_background: bool,
    /// Where the last step of the background has sent copies, after which nothing can follow.
    is_over: Option<String>,
    /// Time of computing and waiting, over all ways.
    busy: Time,
    /// The estimates that say how often the steps at hand run.
    within: Vec<Arc<str>>,
    /// The routes of what was compiled.
    routes: RefCell<Vec<(PathOperation, Arc<Route>)>>,
}

/// How a request came to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    at: String,
    /// The message that brought it on a connection, and where that was sent.
    from: Option<(u16, Arc<Frame>)>,
}

impl Frame {
    /// How many connections lead here from where the request began, or a datagram arrived.
    fn depth(&self) -> usize {
        self.from.as_ref().map_or(0, |(_, frame)| 1 + frame.depth())
    }
}

/// Connections that a request may pass on through without an answer: each is kept for it.
const MOST_CONNECTIONS: usize = 16;

impl Compiler<'_> {
    /// Compiles the work in the background; says whether it begins at the initiator.
    fn background(&mut self, steps: &[Step], span: &Range<usize>) -> Result<bool, miette::Report> {
        let mut at: BTreeSet<&String> = self.answers.iter().map(|(at, _)| at).collect();
        let Some(first) = at.pop_first().cloned() else {
            unreachable!("a request that ends was answered somewhere")
        };
        if let Some(other) = at.pop_first() {
            return Err(self.error(
                format!(
                    "the request is answered at `{first}` or at `{other}`, and its background begins at one"
                ),
                "answer from one endpoint on every way, or make two alternatives of it",
                span.clone(),
            ));
        }
        // Who sends a message cannot know which way its receiver will take.
        if self.answers.iter().any(|(_, message)| self.superseded.contains(message)) {
            return Err(self.error(
                format!(
                    "the request is answered last by one message or by another after it, and its background begins \
                     where `{first}` sends the last"
                ),
                "let every way of the branch end with a message of its own, or make two alternatives of it",
                span.clone(),
            ));
        }
        let start = self.position();
        let answers = std::mem::take(&mut self.answers);
        let mut begins = false;
        for (_, position) in answers {
            let Some(position) = position else {
                begins = true;
                continue;
            };
            if let Instruction::Verb(call) = &mut self.code[usize::from(position)] {
                let mut own = Call::clone(call);
                own.background = Some(start);
                *call = Arc::new(own);
            }
        }
        self.frames = [Arc::new(Frame { at: first.clone(), from: None })].into();
        self.at = Some(first);
        self.in_background = true;
        self.list(steps)?;
        Ok(begins)
    }

    fn program(
        mut self,
        initiator: String,
        background: Option<u16>,
        begins_background: bool,
    ) -> Result<Program, miette::Report> {
        for position in self.answered.difference(&self.unanswered) {
            if let Some(Instruction::Verb(call)) = self.code.get_mut(usize::from(*position)) {
                let mut own = Call::clone(call);
                own.answered = true;
                *call = Arc::new(own);
            }
        }
        let mut machines = BTreeMap::new();
        let mut visit = |endpoint: &str| {
            if let Some(machine) = self.router.machine_of(endpoint) {
                machines.insert(endpoint.to_string(), machine);
            }
        };
        visit(&initiator);
        for instruction in &self.code {
            if let Instruction::Verb(call) = instruction {
                visit(call.requester());
                visit(call.responder());
            }
        }
        Ok(Program { initiator, code: self.code, background, begins_background, machines })
    }

    /// Adds time to what all ways of a request take.
    fn takes(&mut self, time: Time, span: &Range<usize>) -> Result<(), miette::Report> {
        self.busy = self.busy.checked_add(time).unwrap_or(Time::MAX);
        if self.busy <= LONGEST {
            return Ok(());
        }
        Err(self.error(
            format!(
                "the steps compute and wait for {} up to here, and a request may for {LONGEST}",
                self.busy
            ),
            "write what one request waits for; work of minutes is not part of a request",
            span.clone(),
        ))
    }

    /// Moves the request along with a message, which will be the next instruction.
    fn hand_over(&mut self, call: &mut Call, span: &Range<usize>) -> Result<(), miette::Report> {
        let (requester, responder) = (call.requester().to_string(), call.responder().to_string());
        let is_initiator = self.initiator.as_ref() == Some(&responder);
        if is_initiator && self.in_background {
            call.copies_only = true;
            call.channels = BTreeSet::new();
            self.is_over = Some(responder);
            return Ok(());
        }
        let position = self.position();
        let mut next = BTreeSet::new();
        for frame in std::mem::take(&mut self.frames) {
            let asked_by = frame.from.as_ref().filter(|(_, from)| from.at == responder);
            let channel = match asked_by {
                _ if call.operation.verb.row().transport == Transport::Datagram => Channel::Datagram,
                Some(_) => Channel::Caller,
                None if is_initiator => Channel::Back,
                None => Channel::Call,
            };
            let arrived = Frame { at: responder.clone(), from: None };
            match (channel, asked_by) {
                (Channel::Caller, Some((asked, from))) => {
                    self.answered.insert(*asked);
                    next.insert(from.clone());
                }
                (Channel::Call, _) => {
                    if frame.depth() >= MOST_CONNECTIONS {
                        return Err(self.error(
                            format!(
                                "the request passes on through more than {MOST_CONNECTIONS} connections without an answer"
                            ),
                            "answer on the way, or use `send-ud`, which needs no connection",
                            span.clone(),
                        ));
                    }
                    next.insert(Arc::new(Frame { from: Some((position, frame.clone())), ..arrived }));
                }
                _ => {
                    // Whoever asked on the way here hears nothing on that connection.
                    let mut left = &frame;
                    while let Some((asked, from)) = &left.from {
                        self.unanswered.insert(*asked);
                        left = from;
                    }
                    next.insert(Arc::new(arrived));
                }
            }
            call.channels.insert(channel);
        }
        self.frames = next;
        if is_initiator {
            let last = [(requester, Some(position))].into();
            let before = std::mem::replace(&mut self.answers, last);
            self.superseded.extend(before.into_iter().map(|(_, message)| message));
        }
        self.at = Some(responder);
        Ok(())
    }

    fn error(&self, message: String, help: impl Into<String>, at: Range<usize>) -> miette::Report {
        refused(self.design, message, help, at)
    }

    fn here(&mut self, endpoint: &str, span: &Range<usize>) -> Result<(), miette::Report> {
        if let Some(at) = &self.is_over {
            return Err(self.error(
                format!(
                    "nothing follows a message to `{at}` in the background: no request waits for it there"
                ),
                "let it be the last step, or use WRITE, after which the work goes on where it was",
                span.clone(),
            ));
        }
        match &self.at {
            None => {
                // The other case of a branch that comes first has begun already.
                if let Some(other) = self.initiator.as_ref().filter(|other| *other != endpoint) {
                    return Err(self.error(
                        format!("this case begins at `{endpoint}`, and another one at `{other}`"),
                        "let a request begin at one endpoint, or write an alternative or an operation for each",
                        span.clone(),
                    ));
                }
                self.at = Some(endpoint.to_string());
                self.initiator = Some(endpoint.to_string());
                self.frames = [Arc::new(Frame { at: endpoint.to_string(), from: None })].into();
                self.answers = [(endpoint.to_string(), None)].into();
                Ok(())
            }
            Some(at) if at == endpoint => Ok(()),
            Some(at) => Err(self.error(
                format!("this step runs at `{endpoint}`, and the request is at `{at}` here"),
                match self.initiator.as_ref() == Some(at) && self.answers.iter().any(|(_, by)| by.is_some()) {
                    // The answer has come: nothing at the responder is part of the request any more.
                    true => "put what follows the answer into `background = [...]`".to_string(),
                    false => format!("send a message from `{at}` to `{endpoint}` before it"),
                },
                span.clone(),
            )),
        }
    }

    fn list(&mut self, steps: &[Step]) -> Result<(), miette::Report> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn position(&self) -> u16 {
        self.code.len() as u16
    }

    fn step(&mut self, step: &Step) -> Result<(), miette::Report> {
        match step {
            Step::Compute { at, cost, rests_on, span } => {
                if self.router.machine_of(at).is_none() {
                    let known: Vec<String> =
                        self.router.system().endpoints().map(|(_, e)| e.name.clone()).collect();
                    return Err(self.error(
                        format!("there is no processor `{at}`"),
                        format!("use one of {}", known.join(", ")),
                        span.clone(),
                    ));
                }
                self.here(at, span)?;
                let time = self.cost(at, cost, span)?;
                self.takes(time, span)?;
                let outer = self.within.iter().map(|id| Share { id: id.clone(), share: 1.0 });
                let rests_on = rests_on.iter().cloned().chain(outer).collect();
                self.code.push(Instruction::Compute { time, rests_on });
            }
            Step::Wait { time, span, .. } => {
                let Some(at) = self.at.clone() else {
                    return Err(self.error(
                        "a wait does not say where the request begins".to_string(),
                        "write a verb or a `compute` before it",
                        span.clone(),
                    ));
                };
                self.here(&at, span)?;
                self.takes(*time, span)?;
                self.code.push(Instruction::Wait(*time));
            }
            Step::Verb { verb, path, bytes, object, arrived, batch, to, signals, span, .. } => {
                let among = (object.as_deref(), *arrived);
                let mut call = self.call(*verb, path, *bytes, among, *batch, *signals, span)?;
                call.to = *to;
                let (requester, responder) = (call.requester().to_string(), call.responder().to_string());
                if *to > 1 && self.router.machine_of(&requester) == self.router.machine_of(&responder) {
                    return Err(self.error(
                        format!("`to` on `{path}`: both ends are in one machine"),
                        "name a path to another machine, or use `repeat` or `parallel`",
                        span.clone(),
                    ));
                }
                self.here(&requester, span)?;
                if call.hands_over() {
                    self.hand_over(&mut call, span)?;
                }
                self.code.push(Instruction::Verb(Arc::new(call)));
            }
            Step::Background { span, .. } => {
                return Err(self.error(
                    "`background` stands at the end of an operation's steps, once".to_string(),
                    "move it behind the last step of `request`, or of the operation's own list",
                    span.clone(),
                ));
            }
            Step::Repeat { times, steps, rests_on, .. } => {
                let outer = self.within.len();
                self.within.extend(rests_on.iter().cloned());
                for _ in 0..*times {
                    self.list(steps)?;
                }
                self.within.truncate(outer);
            }
            Step::Branch { probability, then, otherwise, rests_on } => {
                let outer = self.within.len();
                self.within.extend(rests_on.iter().cloned());
                let from = (self.at.clone(), self.frames.clone(), self.answers.clone());
                let branch = self.code.len();
                self.code.push(Instruction::End);
                self.list(then)?;
                let jump = self.code.len();
                self.code.push(Instruction::End);
                let other_case = self.position();
                let after_first = std::mem::replace(&mut self.at, from.0);
                let frames = std::mem::replace(&mut self.frames, from.1);
                let answers = std::mem::replace(&mut self.answers, from.2);
                self.list(otherwise)?;
                self.frames.extend(frames);
                self.answers.extend(answers);
                // A case that does nothing is where the request begins.
                let ends = [after_first, self.at.take()].map(|end| end.or_else(|| self.initiator.clone()));
                let [first, second] = &ends;
                if first != second {
                    let [first, second] = ends.map(Option::unwrap_or_default);
                    return Err(self.error(
                        format!("one case of a branch ends at `{first}`, the other at `{second}`"),
                        "let both cases end at the same endpoint",
                        step_span(step),
                    ));
                }
                [_, self.at] = ends;
                self.code[branch] = Instruction::Branch { probability: *probability, otherwise: other_case };
                self.code[jump] = Instruction::Jump(self.position());
                self.within.truncate(outer);
            }
            Step::Parallel(lists) => {
                let fork = self.code.len();
                self.code.push(Instruction::End);
                let mut starts = Vec::new();
                let from = self.at.clone();
                for list in lists {
                    if list.iter().any(sends) {
                        return Err(self.error(
                            "a message inside `parallel` would move one part of the request".to_string(),
                            "keep messages outside, or use READ and WRITE inside",
                            list.first().map(step_span).unwrap_or(0..0),
                        ));
                    }
                    starts.push(self.position());
                    self.list(list)?;
                    self.code.push(Instruction::End);
                    if from.is_some() {
                        self.at.clone_from(&from);
                    }
                }
                self.code[fork] = Instruction::Parallel { starts, next: self.position() };
            }
        }
        Ok(())
    }

    /// What computing takes on the processor that does it, by its profile where the design does not say it.
    fn cost(&self, at: &str, cost: &ComputeCost, span: &Range<usize>) -> Result<Time, miette::Report> {
        let processor = processor_of(at);
        let machine = || self.router.system().endpoint(at).map(|(machine, _)| machine);
        let ps = match cost {
            ComputeCost::Time(time) => return Ok(*time),
            ComputeCost::On { processor: on, time } => {
                let found = machine().and_then(|machine| {
                    self.router.system().endpoint(on)?;
                    Ok(machine)
                });
                if let Ok(machine) = &found
                    && !machine.endpoints.iter().any(|one| one.processor.name == *on)
                {
                    let own: Vec<&str> = machine.endpoints.iter().map(|one| one.name.as_str()).collect();
                    return Err(self.error(
                        format!("`on` names `{on}`, which is not a processor of the machine of `{at}`"),
                        format!("name one of {}, or write what the step takes on `{at}`", own.join(", ")),
                        span.clone(),
                    ));
                }
                found.and_then(|machine| Ok(time.ps() as f64 / machine.times_as_fast(processor, on)?))
            }
            ComputeCost::Work { work, amount, in_bytes } => {
                let found = machine().and_then(|machine| machine.work_cost(processor, work));
                if let Ok(cost) = &found
                    && cost.counts_bytes != *in_bytes
                {
                    let (counted, key) = match cost.counts_bytes {
                        true => ("bytes", "bytes = \"4 KiB\""),
                        false => ("operations", "operations = 3"),
                    };
                    return Err(self.error(
                        format!("the work `{work}` is counted in {counted}"),
                        format!("say how much of it by `{key}`"),
                        span.clone(),
                    ));
                }
                found.map(|cost| cost.unit_ps * amount)
            }
        };
        match ps {
            Ok(ps) => Ok(Time::from_ps(ps.ceil() as u64)),
            Err(error) => {
                let help = miette::Diagnostic::help(&error).map(|help| help.to_string()).unwrap_or_default();
                Err(self.error(error.to_string(), help, span.clone()))
            }
        }
    }

    /// Refuses what would not fit the memories that it moves between. Every connection that a message may come
    /// in on keeps a buffer for it.
    fn room(&self, call: &Call, span: &Range<usize>) -> Result<(), miette::Report> {
        let PathOperation { verb, path, payload, .. } = &call.operation;
        let part = if verb.is_message() { 1024 } else { 4 };
        for endpoint in [&path.requester, &path.responder] {
            let Ok((_, at)) = self.router.system().endpoint(endpoint) else { continue };
            let most = Bytes::new(at.memory.capacity.get() / part);
            if *payload > most {
                let help = match verb.is_message() {
                    true => "WRITE the payload and send a short message, or `repeat` smaller ones",
                    false => "`repeat` a step that moves less",
                };
                let why = format!(
                    "a payload of {payload} is above {most}, which is as much as `{endpoint}` with its {} can \
                     keep for each",
                    at.memory.capacity
                );
                return Err(self.error(why, help, span.clone()));
            }
        }
        Ok(())
    }

    /// The route of an operation, found once for all steps that do the same, as those of a repeat.
    fn route(&self, operation: &PathOperation) -> Result<Arc<Route>, RouteError> {
        let mut routes = self.routes.borrow_mut();
        if let Some((_, route)) = routes.iter().find(|(known, _)| known == operation) {
            return Ok(route.clone());
        }
        let route = Arc::new(self.router.route(operation)?);
        routes.push((operation.clone(), route.clone()));
        Ok(route)
    }

    #[allow(clippy::too_many_arguments, reason = "they are the parts of a step")]
    fn call(
        &self,
        verb: Verb,
        path: &str,
        bytes: Bytes,
        (object, arrived): (Option<&str>, Option<Bytes>),
        batch: u32,
        signals: Signals,
        span: &Range<usize>,
    ) -> Result<Call, miette::Report> {
        let build = || {
            let path = self.router.path(path)?;
            let access = match object {
                None => AddressSpread { range: arrived, arrived: arrived.is_some(), hottest: 0.0 },
                Some(object) => {
                    let object = &self.design.objects[object];
                    // A processor's own loads look through caches, which hold bytes wherever they are.
                    let is_own = verb.row().is_touch();
                    let range = if is_own { object.size } else { reached(object, &path, self.router) };
                    AddressSpread { range: Some(range), arrived: false, hottest: object.hottest }
                }
            };
            let posting = if batch > 1 { Posting::Batch(batch) } else { Posting::Single };
            let operation = PathOperation::new(verb, path, bytes).posted(posting).accessing(access);
            let route = self.route(&operation)?;
            let (channels, to) = (BTreeSet::new(), 1);
            let (answered, copies_only, background) = (false, false, None);
            Ok(Call { operation, route, signals, to, channels, answered, copies_only, background })
        };
        if verb.is_message() && bytes < Bytes::new(8) && !signals.immediate {
            return Err(self.error(
                format!("a message of {bytes} is too short"),
                "a message has at least 8 B, which say what it answers",
                span.clone(),
            ));
        }
        let call: Call = build().map_err(|error: RouteError| {
            let help = match &error {
                RouteError::PayloadTooLarge { bound, .. } => {
                    format!("`repeat` a step of at most {bound} as often as it takes to move all")
                }
                RouteError::NoSuchVerb { takes, .. } => format!("use {takes}, or another path"),
                RouteError::EmptyBatch => "use `batch = 1` or more".to_string(),
                _ => {
                    let paths: Vec<String> = self.router.paths().iter().map(ToString::to_string).collect();
                    let lacks = match &error {
                        RouteError::UnknownEndpoint { .. } | RouteError::UnknownEngine { .. } => {
                            "; a device file may describe another processor, memory, accelerator or SSD: `offpath new device \
                             my-card --base DEVICE` ends with their tables"
                        }
                        _ => "",
                    };
                    format!("the paths here are {}{lacks}", paths.join(", "))
                }
            };
            self.error(error.to_string(), help, span.clone())
        })?;
        if let (true, Some(engine)) = (batch > 1, &call.operation.path.engine) {
            return Err(self.error(
                format!("`batch` on `{path}`: the engine `{engine}` has no doorbell batches"),
                "leave `batch` out, or use a path without an engine",
                span.clone(),
            ));
        }
        self.room(&call, span)?;
        Ok(call)
    }
}

/// The bytes that an object's entries reach banks in. Room beyond a bank's stride reaches no more
/// banks: entries that start every k-th bank find at most every k-th of them.
fn reached(object: &ObjectAccess, path: &Path, router: &Router) -> Bytes {
    let Ok((_, endpoint)) = router.system().endpoint(&path.responder) else { return object.size };
    let (stride, banks) = (endpoint.memory.bank_stride.get(), endpoint.memory.banks);
    let spacing = object.spacing.get();
    if spacing <= stride || stride == 0 {
        return object.size;
    }
    let starts = if spacing.is_multiple_of(stride) {
        let (mut divisor, mut rest) = (banks, (spacing / stride) % banks);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        banks / divisor
    } else {
        banks
    };
    // An entry longer than a stride reaches the banks that it covers itself.
    let covered = object.entry.get().div_ceil(stride);
    Bytes::new(object.entries.saturating_mul(covered).min(starts.saturating_mul(covered)).min(banks) * stride)
}

/// A message carries its position as 16 bits. No list that a person writes comes near this, and a run of one that
/// is as long takes a minute.
const MOST_INSTRUCTIONS: u64 = 4_096;

/// Verbs of a request, each as many as its payload has bursts: 32 of the largest payloads. A run of more takes minutes.
const MOST_MOVED: f64 = 33_000.0;

fn instructions(steps: &[Step]) -> u64 {
    steps.iter().map(length).fold(0, u64::saturating_add)
}

/// Instructions that a step is compiled to; as many as 64 bits count where there are more.
fn length(step: &Step) -> u64 {
    match step {
        Step::Verb { .. } | Step::Compute { .. } | Step::Wait { .. } => 1,
        Step::Background { steps, .. } => instructions(steps).saturating_add(1),
        Step::Repeat { times, steps, .. } => times.saturating_mul(instructions(steps)),
        Step::Parallel(lists) => {
            lists.iter().fold(1, |sum: u64, list| sum.saturating_add(instructions(list)).saturating_add(1))
        }
        Step::Branch { then, otherwise, .. } => {
            instructions(then).saturating_add(instructions(otherwise)).saturating_add(2)
        }
    }
}

fn sends(step: &Step) -> bool {
    match step {
        Step::Verb { verb, signals, .. } => verb.is_message() || signals.immediate,
        Step::Compute { .. } | Step::Wait { .. } => false,
        Step::Repeat { steps, .. } | Step::Background { steps, .. } => steps.iter().any(sends),
        Step::Parallel(lists) => lists.iter().flatten().any(sends),
        Step::Branch { then, otherwise, .. } => then.iter().chain(otherwise).any(sends),
    }
}

fn step_span(step: &Step) -> Range<usize> {
    match step {
        Step::Verb { span, .. }
        | Step::Compute { span, .. }
        | Step::Wait { span, .. }
        | Step::Background { span, .. }
        | Step::Repeat { span, .. } => span.clone(),
        Step::Parallel(lists) => lists.iter().flatten().next().map_or(0..0, step_span),
        Step::Branch { then, otherwise, .. } => then.iter().chain(otherwise).next().map_or(0..0, step_span),
    }
}

impl Compiled {
    /// The payload of every verb.
    pub fn payloads(&self) -> impl Iterator<Item = Bytes> {
        self.programs.iter().flat_map(|(_, program)| program.code.iter()).filter_map(|one| match one {
            Instruction::Verb(call) => Some(call.operation.payload),
            _ => None,
        })
    }

    /// The route of every verb, over all operations of the workload.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        self.programs.iter().flat_map(|(_, program)| program.code.iter()).filter_map(|one| match one {
            Instruction::Verb(call) => Some(&*call.route),
            _ => None,
        })
    }

    /// Whether something published speaks of every verb that it calls.
    pub fn has_evidence(&self) -> bool {
        self.routes().all(|route| route.is_published)
    }

    /// The demand of a request by adding up its steps, without running it.
    ///
    /// It says the same as observing the program on the idle twin, but for what parts of one request wait for each other
    /// (`parallel`, `to`), and is quick enough to be repeated for every uncertain number of a profile.
    pub fn fold(&self, router: &Router) -> Fold {
        let mut fold = Fold::default();
        self.programs.iter().for_each(|(share, program)| fold.add(&program.fold(router), *share));
        fold
    }
}

impl Program {
    /// The demand of a request by adding up its steps.
    pub(crate) fn fold(&self, router: &Router) -> Fold {
        self.walk(router, &mut 1.0).fold
    }

    /// The same program of a request that takes these cases, by the places of their branches.
    pub(crate) fn decided(&self, cases: &[(u16, bool)]) -> Program {
        let mut own = self.clone();
        for (at, is_first) in cases {
            if let Instruction::Branch { probability, .. } = &mut own.code[usize::from(*at)] {
                *probability = f64::from(u8::from(*is_first));
            }
        }
        own
    }

    /// Its steps from first to last; `rarest` becomes the share of requests that take its rarest case, if that
    /// is less.
    fn walk(&self, router: &Router, rarest: &mut f64) -> Walked {
        let (mut place, share) = (self.initiator.as_str(), *rarest);
        let mut walked = walk(self, 0..u16::MAX, &mut place, router, share, rarest);
        if let Some(start) = self.background {
            let mut place = self.answered_at();
            let mut after = walk(self, start..u16::MAX, &mut place, router, share, rarest);
            after.fold.background += std::mem::take(&mut after.fold.latency);
            walked.fold.add(&after.fold, 1.0);
            walked.longest_s += after.longest_s;
            walked.moves += after.moves;
            walked.most_moves += after.most_moves;
        }
        walked
    }
}

/// What a run has to be long enough for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extremes {
    /// The least share of requests that take one of its cases.
    pub rarest: f64,
    /// The longest that a request takes unloaded, in seconds, whichever cases it takes.
    pub longest_s: f64,
    /// Moves of a request on the twin in the mean: its verbs, each as many as its payload has bursts.
    pub moves: f64,
    /// The most that one makes, whichever cases it takes.
    pub most_moves: f64,
}

impl Compiled {
    /// Its rarest case and its longest request.
    pub fn extremes(&self, router: &Router) -> Extremes {
        let mut extremes = Extremes { rarest: 1.0, longest_s: 0.0, moves: 0.0, most_moves: 0.0 };
        let all: f64 = self.programs.iter().map(|(share, _)| share).sum();
        for (share, program) in &self.programs {
            let mut rarest = *share;
            let walked = program.walk(router, &mut rarest);
            extremes.longest_s = extremes.longest_s.max(walked.longest_s);
            extremes.moves += share / all * walked.moves;
            extremes.most_moves = extremes.most_moves.max(walked.most_moves);
            extremes.rarest = extremes.rarest.min(rarest);
        }
        extremes
    }
}

/// What instructions ask of a request in the mean, and how long they take at most.
#[derive(Default)]
struct Walked {
    fold: Fold,
    longest_s: f64,
    moves: f64,
    most_moves: f64,
}

fn refused(design: &Design, message: String, help: impl Into<String>, at: Range<usize>) -> miette::Report {
    let (name, text) = &design.source;
    let source_code = NamedSource::new(name, text.clone());
    DesignError { message, help: Some(help.into()), source_code, at: Some(at.into()) }.into()
}

/// Events of the twin that a payload is: a verb, and its bursts.
pub(crate) fn bursts(payload: Bytes) -> f64 {
    1.0 + (payload.get() as f64 / LEAST_BURST.get() as f64).min(f64::from(MOST_BURSTS))
}

/// Adds up the instructions of a range, or until an `End`, `place` being where the request is, and moves `place`
/// along. `reach` is the share of requests that come there, and `rarest` the least of any case. Each
/// instruction is visited once.
fn walk<'p>(
    program: &'p Program,
    range: Range<u16>,
    place: &mut &'p str,
    router: &Router,
    reach: f64,
    rarest: &mut f64,
) -> Walked {
    let (mut at, stop) = (range.start, range.end);
    let Walked { mut fold, mut longest_s, mut moves, mut most_moves } = Walked::default();
    let mut folded: Option<(&Arc<Call>, Fold)> = None;
    while at < stop {
        let before = fold.latency;
        match &program.code[usize::from(at)] {
            Instruction::End => break,
            Instruction::Jump(to) => {
                at = *to;
                continue;
            }
            Instruction::Compute { time, rests_on } => {
                let station = format!("{place}.cpu");
                if !rests_on.is_empty() {
                    let estimated = fold.estimated.entry(station.clone()).or_default();
                    for one in rests_on.iter() {
                        *estimated.entry(one.id.clone()).or_default() += time.as_seconds() * one.share.abs();
                    }
                }
                *fold.seconds.entry(station).or_default() += time.as_seconds();
                fold.latency += time.as_seconds();
            }
            Instruction::Wait(time) => fold.latency += time.as_seconds(),
            Instruction::Verb(call) => {
                // Steps of a repeat follow each other, and are folded once.
                let is_last = |(last, _): &(&Arc<Call>, Fold)| {
                    Arc::ptr_eq(&last.route, &call.route) && last.signals == call.signals
                };
                if !folded.as_ref().is_some_and(is_last) {
                    folded = Some((call, fold_call(call, router)));
                }
                let one = folded.as_ref().map(|(_, one)| one).expect("it was folded just now");
                fold.add(one, f64::from(call.to));
                let own = f64::from(call.to) * bursts(call.operation.payload);
                (moves, most_moves) = (moves + own, most_moves + own);
                // They leave one after another, and the last counts, or none.
                let (post, posted) = (call.route.post_time().as_seconds(), f64::from(call.to));
                let awaited = if call.signals.unawaited { post } else { one.latency };
                fold.latency = before + (posted - 1.0) * post + awaited;
                let beside = posted * (one.latency - post);
                if call.signals.unawaited {
                    fold.background += beside;
                    longest_s += beside;
                }
                if call.hands_over() && !call.copies_only {
                    *place = call.responder();
                }
            }
            Instruction::Branch { probability, otherwise } => {
                // The first case ends with the jump to where both join, just before the second.
                let Instruction::Jump(join) = program.code[usize::from(*otherwise) - 1] else {
                    unreachable!("a branch is compiled with its jump")
                };
                let mut first = *place;
                let (mut most, mut most_moved) = (0.0f64, 0.0f64);
                let mut case = |range: Range<u16>, place: &mut &'p str, probability: f64| {
                    let share = reach * probability;
                    if !range.is_empty() && share > 0.0 {
                        *rarest = rarest.min(share);
                    }
                    let case = walk(program, range, place, router, share, rarest);
                    fold.add(&case.fold, probability);
                    moves += probability * case.moves;
                    if probability > 0.0 {
                        most = most.max(case.longest_s);
                        most_moved = most_moved.max(case.most_moves);
                    }
                };
                case(at + 1..*otherwise - 1, &mut first, *probability);
                // Both cases end at the same endpoint, so the second may leave its place.
                case(*otherwise..join, place, 1.0 - probability);
                longest_s += most;
                most_moves += most_moved;
                at = join;
                continue;
            }
            Instruction::Parallel { starts, next } => {
                let (mut latency, mut most) = (0.0f64, 0.0f64);
                for start in starts {
                    let mut here = *place;
                    let mut part = walk(program, *start..*next, &mut here, router, reach, rarest);
                    latency = latency.max(std::mem::take(&mut part.fold.latency));
                    most = most.max(part.longest_s);
                    (moves, most_moves) = (moves + part.moves, most_moves + part.most_moves);
                    fold.add(&part.fold, 1.0);
                }
                let mut own = program.code[usize::from(at)..usize::from(*next)].iter();
                let is_varied = own.any(|one| matches!(one, Instruction::Branch { .. }));
                fold.latency += match is_varied {
                    true => Spread::last_of(program, starts, *next, place, router).mean(),
                    false => latency,
                };
                longest_s += most;
                at = *next;
                continue;
            }
        }
        longest_s += fold.latency - before;
        at += 1;
    }
    Walked { fold, longest_s, moves, most_moves }
}

/// How long some instructions take, by the cases of their branches: the last of several parts is waited for, which the mean
/// of each does not tell.
struct Spread(Vec<(f64, f64)>);

impl Spread {
    /// More cases than this are joined, neighbours first, so that the mean stays.
    const MOST: usize = 256;

    /// Cases by how often each comes and how many seconds it takes.
    fn of_cases(mut cases: Vec<(f64, f64)>) -> Spread {
        cases.retain(|(share, _)| *share > 0.0);
        cases.sort_by(|a, b| a.1.total_cmp(&b.1));
        let apart = |cases: &[(f64, f64)]| cases.last().map_or(0.0, |last| last.1) / Self::MOST as f64;
        // What differs by rounding alone is one case, and where there are too many, what lies nearest.
        let near = if cases.len() > Self::MOST { apart(&cases) } else { 1e-15 };
        let mut joined: Vec<(f64, f64)> = Vec::new();
        for (share, seconds) in cases {
            match joined.last_mut() {
                Some((own, at)) if seconds - *at <= near => {
                    *at = (*own * *at + share * seconds) / (*own + share);
                    *own += share;
                }
                _ => joined.push((share, seconds)),
            }
        }
        Spread(joined)
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|(share, seconds)| share * seconds).sum()
    }

    /// Both, by what `both` makes of a case of each; they do not depend on one another.
    fn with(&self, other: &Spread, both: fn(f64, f64) -> f64) -> Spread {
        let pairs = self.0.iter().flat_map(|(share, seconds)| {
            other.0.iter().map(move |(own, more)| (share * own, both(*seconds, *more)))
        });
        Spread::of_cases(pairs.collect())
    }

    /// What the parts of a `parallel` take until the last is over.
    fn last_of(program: &Program, starts: &[u16], next: u16, place: &str, router: &Router) -> Spread {
        let parts = starts.iter().map(|start| Spread::of(program, *start..next, place, router));
        parts.fold(Spread(vec![(1.0, 0.0)]), |all, part| all.with(&part, f64::max))
    }

    /// What the instructions of a range take, or until an `End`, for a request at `place`, which no message leaves within a
    /// `parallel`.
    fn of(program: &Program, range: Range<u16>, place: &str, router: &Router) -> Spread {
        let (mut at, stop) = (range.start, range.end);
        let mut all = Spread(vec![(1.0, 0.0)]);
        while at < stop {
            let (one, next) = match &program.code[usize::from(at)] {
                Instruction::End => break,
                Instruction::Jump(to) => {
                    at = *to;
                    continue;
                }
                Instruction::Branch { probability, otherwise } => {
                    let Instruction::Jump(join) = program.code[usize::from(*otherwise) - 1] else {
                        unreachable!("a branch is compiled with its jump")
                    };
                    let case = |range: Range<u16>, share: f64| {
                        let spread = Spread::of(program, range, place, router).0;
                        spread.into_iter().map(move |(own, seconds)| (share * own, seconds))
                    };
                    let first = case(at + 1..*otherwise - 1, *probability);
                    let second = case(*otherwise..join, 1.0 - probability);
                    (Spread::of_cases(first.chain(second).collect()), join)
                }
                Instruction::Parallel { starts, next } => {
                    (Spread::last_of(program, starts, *next, place, router), *next)
                }
                _ => {
                    // Steps between two branches take what they take together.
                    let is_step = |at: &u16| {
                        !matches!(
                            program.code[usize::from(*at)],
                            Instruction::End
                                | Instruction::Jump(_)
                                | Instruction::Branch { .. }
                                | Instruction::Parallel { .. }
                        )
                    };
                    let next = (at..stop).take_while(is_step).last().map_or(at, |last| last + 1);
                    let taken = walk(program, at..next, &mut { place }, router, 1.0, &mut 1.0);
                    (Spread(vec![(1.0, taken.fold.latency)]), next)
                }
            };
            all = all.with(&one, |before, more| before + more);
            at = next;
        }
        all
    }
}

/// What a call asks: its route, and what its two sides do to hear of it.
fn fold_call(call: &Call, router: &Router) -> Fold {
    let mut fold = fold_route(&call.route, router);
    let (requester, responder) = (call.requester(), call.responder());
    let verbs =
        |endpoint: &str| router.system().endpoint(endpoint).map(|(_, endpoint)| &endpoint.processor.verbs);
    let mut busy = |endpoint: &str, time: Time| {
        *fold.seconds.entry(format!("{endpoint}.cpu")).or_default() += time.as_seconds();
    };
    if call.signals.polled
        && let Ok(verbs) = verbs(requester)
    {
        busy(requester, verbs.poll_time);
    }
    if call.signals.immediate
        && !call.operation.verb.is_message()
        && let Ok(verbs) = verbs(responder)
    {
        busy(responder, verbs.receive_time);
        // The request goes on when the responder has heard of it, whatever its requester still waits for.
        let there = reached_at(&call.route, router) + verbs.receive_latency;
        fold.latency = there.as_seconds();
    }
    fold
}

/// When the last byte of an operation lies at its target, on idle stations.
fn reached_at(route: &Route, router: &Router) -> Time {
    let mut stations = Stations::new(router.stations(), false);
    let mut cursor = Cursor::new(Time::ZERO);
    let mut reached = None;
    loop {
        let mut mark = |marked: offpath_route::Marked| {
            if marked.mark == Mark::TargetEnd {
                reached = Some(marked.at);
            }
        };
        match cursor.advance(route, &mut stations, &[], &mut || 0, &mut mark) {
            Advance::At(at) => stations.set_now(at),
            Advance::Cross { .. } => {}
            Advance::Wait(_) => unreachable!("an operation alone finds a free in-flight slot"),
            // Without payload nothing is written, and its end is all there is.
            Advance::Done(at) => return reached.unwrap_or(at),
        }
    }
}

fn fold_route(route: &Route, router: &Router) -> Fold {
    let mut fold = Fold { latency: route.latency(router).as_seconds(), ..Fold::default() };
    let demand = route.demand(router);
    for (station, time) in &demand.time {
        let station_info = &router.stations()[station.index()];
        // The hottest bank decides what banks carry, so a skewed access counts as that much more.
        let factor = match station_info.kind {
            StationKind::Banks(banks) => {
                demand.banks.get(station).map_or(1.0, |hottest| hottest * banks as f64)
            }
            _ => 1.0,
        };
        *fold.seconds.entry(station_info.name.clone()).or_default() += time.as_seconds() * factor;
    }
    for ((station, class), count) in &demand.requests {
        let pool = router.stations()[station.index()].name.clone();
        let class = router.class_name(*station, *class).to_string();
        *fold.requests.entry((pool, class)).or_default() += *count as f64;
    }
    let (from, to) = (router.machine_of(&route.path.requester), router.machine_of(&route.path.responder));
    if from != to {
        fold.network_bytes += route.payload.get() as f64;
    }
    fold
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::of_steps;

    fn compiled(steps: &str) -> Result<(Compiled, Arc<Router>), miette::Report> {
        let ready = of_steps(steps)?.1.remove(0);
        Ok((ready.compiled, ready.router))
    }

    #[test]
    fn branches_are_added_up_once_each() {
        let branch = r#"{ probability = 0.25, then = [ { compute = "host", time = "100 ns" },
            { probability = 0.5, then = [ { compute = "host", time = "40 ns" } ], otherwise = [] } ],
            otherwise = [ { compute = "host", time = "20 ns" } ] }"#;
        let (compiled, router) = compiled(&vec![branch; 200].join(", ")).expect("a design");
        let fold = compiled.fold(&router);
        let expected = 200.0 * (0.25 * (100.0 + 20.0) + 0.75 * 20.0) * 1e-9;
        assert!((fold.latency / expected - 1.0).abs() < 1e-9, "{} is not {expected}", fold.latency);
        assert!((fold.seconds["host.cpu"] / expected - 1.0).abs() < 1e-9);
    }

    /// What a run of many requests costs is the mean, and what one may cost is its longest way.
    #[test]
    fn moves_are_of_the_cases_that_a_request_takes() {
        let read = |bytes: &str| format!("{{ read = \"client-soc\", bytes = \"{bytes}\" }}");
        let branch = format!(
            "{}, {{ probability = 0.25, then = [ {{ repeat = 8, steps = [ {} ] }} ], otherwise = [ {} ] }},
             {{ parallel = [ [ {} ], [ {} ] ] }}",
            read("0 B"),
            read("64 KiB"),
            read("1 GiB"),
            read("0 B"),
            read("16 KiB"),
        );
        let (compiled, router) = compiled(&branch).expect("a design");
        let found = compiled.extremes(&router);
        // Four bursts and the verb; 1024 bursts are the most.
        assert_eq!(found.moves, 1.0 + 0.25 * 8.0 * 5.0 + 0.75 * 1025.0 + 1.0 + 2.0);
        assert_eq!(found.most_moves, 1.0 + 1025.0 + 1.0 + 2.0);
    }

    /// One request in ten does more than the others, from its first step on.
    #[test]
    fn a_case_that_does_nothing_is_where_the_request_begins() {
        let read = r#"{ read = "client-soc", bytes = "64 B" }"#;
        for (then, otherwise) in [(read, ""), ("", read)] {
            let branch = format!("{{ probability = 0.5, then = [{then}], otherwise = [{otherwise}] }}");
            let (half, router) = compiled(&branch).expect("a design");
            let (whole, _) = compiled(read).expect("a design");
            let (half, whole) = (half.fold(&router).latency, whole.fold(&router).latency);
            assert!((half / whole - 0.5).abs() < 1e-6, "{half} and {whole}");
        }
        let elsewhere = r#"{ probability = 0.5, then = [{ send = "client-soc", bytes = "64 B" }], otherwise = [] },
            { send = "soc-client", bytes = "64 B" }"#;
        let refused = compiled(elsewhere).expect_err("it ends at two endpoints").to_string();
        assert!(refused.contains("ends at `soc`, the other at `client`"), "{refused}");
    }

    /// What no request does makes none longer.
    #[test]
    fn a_case_that_never_comes_is_no_longest_way() {
        let never = r#"{ probability = 0, then = [ { compute = "host", time = "1 s" } ], otherwise = [
            { compute = "host", time = "20 ns" } ] }"#;
        let (compiled, router) = compiled(never).expect("a design");
        let found = compiled.extremes(&router);
        assert!(found.longest_s < 1e-6 && found.rarest == 1.0, "{} {}", found.longest_s, found.rarest);
    }

    #[test]
    fn what_moves_more_than_a_run_follows_is_refused() {
        let list = |times: u32| {
            compiled(&format!(
                "{{ repeat = {times}, steps = [ {{ write = \"host-backup\", bytes = \"16 MiB\" }} ] }}"
            ))
        };
        list(32).expect("it is followed");
        let refused = list(33).expect_err("it is too much").to_string();
        assert!(refused.contains("moves 33825 verbs and bursts of a payload"), "{refused}");
    }

    #[test]
    fn what_follows_a_branch_runs_where_both_cases_end() {
        let steps = r#"{ compute = "client", time = "10 ns" }, { probability = 0.5,
            then = [ { send = "client-soc", bytes = "64 B" } ],
            otherwise = [ { send = "client-soc", bytes = "128 B" } ] },
            { parallel = [ [ { compute = "soc", time = "30 ns" } ], [ { compute = "soc", time = "50 ns" } ] ] },
            { send = "soc-client", bytes = "64 B" }"#;
        let (compiled, router) = compiled(steps).expect("a design");
        let plain = compiled.fold(&router);
        let (without, router) = {
            let start = steps.find("{ parallel").expect("there is one");
            let end = steps.find("{ send = \"soc-client\"").expect("there is one");
            super::tests::compiled(&format!("{}{}", &steps[..start], &steps[end..])).expect("a design")
        };
        let bare = without.fold(&router);
        assert!((plain.latency - bare.latency - 50e-9).abs() < 1e-15);
        assert!((plain.seconds["soc.cpu"] - bare.seconds["soc.cpu"] - 80e-9).abs() < 1e-15);
    }

    #[test]
    fn repetitions_are_counted_before_they_are_unrolled() {
        let write = r#"{ write = "host-backup", bytes = "64 B" }"#;
        let nested = format!(
            "{{ repeat = 3000000000, steps = [ {{ repeat = 3000000000, steps = [ {{ repeat = 30, steps = [ {write} ] }} ] }} ] }}"
        );
        let error = compiled(&nested).expect_err("far too many").to_string();
        assert!(error.contains("a request has at most 4096"), "{error}");
        compiled(&format!("{{ repeat = 1000, steps = [ {write} ] }}")).expect("a thousand are few");
    }
}
