//! A system that is no more than a folder: a client asks, a server on host or card says the same.
#![allow(dead_code, reason = "each test uses a part")]

use offpath_apps::system::{
    About, AppSystem, Asked, Block, Cell, Choice, CommandUsage, Course, DeclaredAlternative,
    DeclaredCacheUse, Follow, FollowedCode, Gave, Given, Key, KeyKind, Of, OptionKind, PATIENCE, Parts,
    REQUESTS, Refusal, Roles, RunPage, RunSetting, RunTable, Said, Serve, SystemRun,
};
use offpath_apps::torture::{Menu, Schedule, Tally, Trial, checksum, machine, processors};
use offpath_apps::{Stop, hash, systems, value_of};
use offpath_fabric::{Access, Fabric, Listener, QueuePair, QueuePairOptions, Region, Role, RoleName, Work};
use offpath_quantity::figures::{short, us};
use offpath_quantity::{Bytes, Time};
use serde::Serialize;
use std::cell::{Cell as Kept, RefCell};
use std::rc::Rc;

systems! {
    /// What is shipped, and the echo.
    pub Ours: offpath_apps::kv::Kv, offpath_apps::replog::Replog, Echo
}

/// The echo.
#[derive(Clone, Copy, Debug)]
pub enum Echo {}

impl AppSystem for Echo {
    const ABOUT: &'static About = &ABOUT;
    type Code = Shape;
    type Run = Asker;
    type Serve = Answerers;
    type Trial = Draw;
}

/// What it declares.
pub const ABOUT: About = About {
    name: "echo",
    title: "echo",
    what: "echo of every question",
    group: "Echo",
    alternatives: &[
        DeclaredAlternative { label: "on-host", in_designs: true, cache: DeclaredCacheUse::Unused },
        DeclaredAlternative { label: "on-card", in_designs: true, cache: DeclaredCacheUse::Unused },
    ],
    keys: &[
        Key::new("question", KeyKind::Bytes, "a question").needed("\"64 B\""),
        Key::new("think", KeyKind::Time, "the server thinks").needed("\"1 us\""),
    ],
    options: &[
        Choice::new("placement", Of::Both, OptionKind::Alternative, "Who answers").or("on-host"),
        Choice::new("question", Of::Both, OptionKind::Bytes, "Bytes of a question").called("BYTES").or("64B"),
        Choice::new("questions", Of::Run, OptionKind::Whole(1, 100_000), "Questions, one after the other")
            .or("50"),
    ],
    run: CommandUsage { documentation: "Questions that come back", examples: "" },
    serve: CommandUsage { documentation: "Whoever answers", examples: "" },
    placed: &[],
    promise: "every answer equals its question",
    endpoints: &["client", "host", "soc"],
    machines: &[("client", 1), ("server", 1)],
    bugs: &["answer-of-zeros"],
    template: None,
};

/// What client and server agree on.
#[derive(Clone, Debug)]
pub struct Shape {
    role: &'static str,
    label: &'static str,
    bytes: u64,
    think: Time,
    patience: Time,
    zeros: bool,
}

const SERVICE: &str = "echo";

impl Shape {
    fn of(label: &str, bytes: Bytes, think: Time) -> Shape {
        let (role, label) = if label == "on-host" { ("host", "on-host") } else { ("soc", "on-card") };
        Shape { role, label, bytes: bytes.get(), think, patience: Time::from_us(200), zeros: false }
    }

    fn given(given: &Given) -> Result<Shape, Refusal> {
        let bytes: Bytes = given.of("question");
        if bytes == Bytes::ZERO {
            return Err(Refusal::input("a question of 0 B asks nothing", "make `--question` longer"));
        }
        Ok(Shape::of(given.text("placement").unwrap_or_default(), bytes, Time::ZERO))
    }

    fn ready<F: Fabric>(&self, fabric: &F) -> Result<(F::QueuePair, F::Region), String> {
        let memory = fabric.memories().into_iter().next().ok_or("there is no memory")?.name;
        let region = fabric.register(&memory, 2 * self.bytes, Access::ALL).map_err(words)?;
        Ok((fabric.create_queue_pair(QueuePairOptions::rc()).map_err(words)?, region))
    }

    /// Answers whoever connects, until it is told to stop.
    async fn serve<F: Fabric>(self, fabric: F, answered: Rc<Kept<u64>>) -> Result<(), String> {
        let listener = fabric.listen(SERVICE).map_err(words)?;
        loop {
            let (queue_pair, region) = self.ready(&fabric)?;
            let heard = queue_pair.receive(region.slice(0, self.bytes)).map_err(words)?;
            listener.accept(&queue_pair).await.map_err(words)?;
            let (own, fabric_of, answered) = (self.clone(), fabric.clone(), answered.clone());
            // A connection ends where its peer is gone.
            fabric.spawn(async move { own.answer(fabric_of, queue_pair, region, heard, answered).await });
        }
    }

    async fn answer<F: Fabric>(
        self,
        fabric: F,
        queue_pair: F::QueuePair,
        region: F::Region,
        mut heard: F::CompletionFuture,
        answered: Rc<Kept<u64>>,
    ) -> Result<(), String> {
        let mut question = vec![0; self.bytes as usize];
        loop {
            heard.await.success().map_err(words)?;
            fabric.compute(Work::Time(self.think)).await;
            region.read(0, &mut question).map_err(words)?;
            if self.zeros {
                question.fill(0);
            }
            region.write(self.bytes, &question).map_err(words)?;
            heard = queue_pair.receive(region.slice(0, self.bytes)).map_err(words)?;
            let sent = queue_pair.send(region.slice(self.bytes, self.bytes)).map_err(words)?;
            sent.await.success().map_err(words)?;
            answered.set(answered.get() + 1);
        }
    }

    /// A connection, once there is one.
    async fn connect<F: Fabric>(&self, fabric: &F) -> Result<(F::QueuePair, F::Region), String> {
        let (queue_pair, region) = self.ready(fabric)?;
        fabric.connect(&queue_pair, self.role, 0, SERVICE).await.map_err(words)?;
        Ok((queue_pair, region))
    }

    async fn ask<F: Fabric>(
        &self,
        fabric: &F,
        (queue_pair, region): &(F::QueuePair, F::Region),
        question: &[u8],
    ) -> Result<Vec<u8>, String> {
        region.write(self.bytes, question).map_err(words)?;
        let heard = queue_pair.receive(region.slice(0, self.bytes)).map_err(words)?;
        let sent = queue_pair.send(region.slice(self.bytes, self.bytes)).map_err(words)?;
        sent.await.success().map_err(words)?;
        let heard = fabric.timeout(self.patience, heard).await.ok_or("nobody answers")?;
        heard.success().map_err(words)?;
        let mut answer = vec![0; self.bytes as usize];
        region.read(0, &mut answer).map_err(words)?;
        Ok(answer)
    }

    fn question(&self, number: u64) -> Vec<u8> {
        value_of(number, 1, self.bytes as u32)
    }

    fn server<F: Fabric, T: 'static>(
        &self,
        answered: &Rc<Kept<u64>>,
        said: impl Fn(Result<(), String>) -> T + Clone + 'static,
    ) -> Role<F, T> {
        let (shape, answered) = (self.clone(), answered.clone());
        Role::new(self.role, 0, move |fabric: F| {
            let (shape, answered, said) = (shape.clone(), answered.clone(), said.clone());
            async move { said(shape.serve(fabric, answered).await) }
        })
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl FollowedCode for Shape {
    fn courses(asked: &Asked<'_>) -> Result<Course<Shape>, String> {
        if !matches!(asked.operation, "request" | "read") {
            return Err(format!("it has no `{}`", asked.operation));
        }
        let shape = Shape::of(asked.alternative, asked.given.of("question"), asked.given.of("think"));
        Ok(Course::Straight(Shape { patience: PATIENCE, ..shape }))
    }

    fn roles<F: Fabric>(&self, follow: &Follow) -> Vec<Role<F, Result<(), String>>> {
        let (shape, follow) = (self.clone(), follow.clone());
        let client = Role::new("client", 0, move |fabric: F| {
            let (shape, follow) = (shape.clone(), follow.clone());
            async move {
                let link = shape.connect(&fabric).await?;
                for _ in 0..REQUESTS {
                    follow.request(&fabric, shape.ask(&fabric, &link, &shape.question(7))).await?;
                    // What the server still does for a request is over before the next.
                    fabric.sleep(Time::from_ms(1)).await;
                }
                Ok(())
            }
        });
        vec![client, self.server(&Rc::default(), |ended| ended).in_background()]
    }
}

/// A client that asks, and the server where it runs here.
pub struct Asker {
    shape: Shape,
    questions: u64,
    serves: bool,
}

/// How many answers were right, and how many not.
pub type Counted = (u64, u64);

impl Parts for Asker {
    type Answer = Counted;
    type Error = String;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn roles<F: Fabric>(&self, _count_events: Option<fn(&F) -> u64>) -> Roles<F, Asker> {
        let (shape, questions) = (self.shape.clone(), self.questions);
        let client = Role::new("client", 0, move |fabric: F| {
            let shape = shape.clone();
            async move {
                let link = shape.connect(&fabric).await?;
                let mut counted = (0, 0);
                for number in 0..questions {
                    let question = shape.question(number);
                    match shape.ask(&fabric, &link, &question).await? == question {
                        true => counted.0 += 1,
                        false => counted.1 += 1,
                    }
                }
                Ok(counted)
            }
        });
        let server = self.shape.server(&Rc::default(), |ended| ended.map(|()| (0, 0))).in_background();
        let mut roles = vec![client];
        roles.extend(self.serves.then_some(server));
        roles
    }
}

/// What a run says.
#[derive(Debug, Serialize)]
pub struct Report {
    placement: &'static str,
    pub answers: u64,
    pub wrong: u64,
    elapsed_us: f64,
}

impl SystemRun for Asker {
    type Report = Report;

    fn of(given: &Given, setting: &RunSetting<'_>) -> Result<Asker, Refusal> {
        Ok(Asker { shape: Shape::given(given)?, questions: given.of("questions"), serves: !setting.connects })
    }

    fn servers(&self) -> Vec<RoleName> {
        vec![RoleName::new(self.shape.role, 0)]
    }

    fn said(&self, gave: Gave<Asker>, _setting: &RunSetting<'_>) -> Result<Said<Report>, Refusal> {
        let mut report =
            Report { placement: self.shape.label, answers: 0, wrong: 0, elapsed_us: us(gave.elapsed) };
        for (_, answer) in gave.answers {
            let (right, wrong) = answer.map_err(|error| Refusal::new(false, error, "ask again"))?;
            report.answers += right;
            report.wrong += wrong;
        }
        let row = vec![Cell::Strong("questions".into()), Cell::Number(report.answers.to_string())];
        let table = RunTable { header: vec!["what", "right"], rows: vec![row] };
        let text = format!("\n{} us\n", short(report.elapsed_us));
        let blocks = vec![Block::Table(table), Block::Stations, Block::Text(text)];
        let page = RunPage { title: format!("{} answers", report.placement), blocks };
        Ok(Said { page, holds: report.wrong == 0, report })
    }
}

/// The server, for clients in other processes.
pub struct Answerers {
    shape: Shape,
    answered: Rc<Kept<u64>>,
    stop: Stop,
}

impl Parts for Answerers {
    type Answer = ();
    type Error = String;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn roles<F: Fabric>(&self, _count_events: Option<fn(&F) -> u64>) -> Roles<F, Answerers> {
        let stop = self.stop.clone();
        let until = Role::new("stop", 0, move |fabric: F| {
            let stop = stop.clone();
            async move {
                stop.wait(&fabric, Time::from_ms(1)).await;
                Ok(())
            }
        });
        vec![self.shape.server(&self.answered, |ended| ended).in_background(), until]
    }
}

impl Serve for Answerers {
    fn of(given: &Given, _setting: &RunSetting<'_>, stop: Stop) -> Result<Answerers, Refusal> {
        Ok(Answerers { shape: Shape::given(given)?, answered: Rc::default(), stop })
    }

    fn names(&self) -> Vec<RoleName> {
        vec![RoleName::new(self.shape.role, 0)]
    }

    fn needs(&self) -> Vec<RoleName> {
        Vec::new()
    }

    fn said(&self, gave: Gave<Answerers>) -> Vec<Result<String, Refusal>> {
        let failed = gave.answers.into_iter().filter_map(|(_, answer)| answer.err());
        let failed = failed.map(|error| Err(Refusal::new(false, error, "")));
        failed.chain([Ok(format!("{} answers", self.answered.get()))]).collect()
    }
}

/// What a seed draws.
#[derive(Clone, Debug)]
pub struct Draw {
    shape: Shape,
    seed: u64,
}

/// A question and its answer; `None` where nobody answered.
type Exchange = (Vec<u8>, Option<Vec<u8>>);

/// What was asked, and answered.
#[derive(Default)]
pub struct Seen(Rc<RefCell<Vec<Exchange>>>);

/// Questions of a trial.
const QUESTIONS: u64 = 60;

impl Trial for Draw {
    type Seen = Seen;

    fn draw(seed: u64, bug: Option<usize>) -> Draw {
        let label = ABOUT.alternatives[(hash(seed) % 2) as usize].label;
        let shape = Shape::of(label, Bytes::new(8 + hash(seed ^ 1) % 500), Time::from_us(1));
        Draw { shape: Shape { zeros: bug.is_some(), ..shape }, seed }
    }

    fn schedule(&self) -> Schedule {
        let menu = Menu {
            horizon: Time::from_us(20).times(QUESTIONS),
            partitions: vec![[machine("client", 0), machine("server", 0)]],
            crashes: vec![machine(self.shape.role, 0)],
            stations: processors(),
            most: 4,
        };
        Schedule::draw(self.seed, &menu)
    }

    fn alternative(&self) -> &'static str {
        self.shape.label
    }

    fn roles<F: Fabric>(&self, seen: &Seen) -> Vec<Role<F, Result<(), String>>> {
        let (shape, seen) = (self.shape.clone(), seen.0.clone());
        let client = Role::new("client", 0, move |fabric: F| {
            let (shape, seen) = (shape.clone(), seen.clone());
            async move {
                let mut link = None;
                for number in 0..QUESTIONS {
                    fabric.sleep(Time::from_us(20)).await;
                    let question = shape.question(number);
                    if link.is_none() {
                        link = shape.connect(&fabric).await.ok();
                    }
                    let answer = match &link {
                        Some(link) => shape.ask(&fabric, link, &question).await.ok(),
                        None => None,
                    };
                    if answer.is_none() {
                        link = None;
                    }
                    seen.borrow_mut().push((question, answer));
                }
                Ok(())
            }
        });
        vec![client, self.shape.server(&Rc::default(), |ended| ended).in_background()]
    }

    fn check(&self, seen: &Seen) -> Result<Tally, String> {
        let seen = seen.0.borrow();
        let is_wrong =
            |(question, answer): &&Exchange| answer.as_ref().is_some_and(|answer| answer != question);
        match seen.iter().find(is_wrong) {
            Some((question, answer)) => Err(format!("{question:x?} was answered by {answer:x?}")),
            None => Ok(Tally {
                operations: seen.len() as u64,
                unacknowledged: seen.iter().filter(|(_, answer)| answer.is_none()).count() as u64,
                checksum: checksum(seen.iter().map(|pair| format!("{pair:?}"))),
            }),
        }
    }
}
