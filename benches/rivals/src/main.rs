//! The tandem queue of offpath's benches on nexosim: `cargo run --release` here.
//!
//! Poisson arrivals 1 us apart in the mean, two exponential servers of 0.8 us in the mean, one
//! thread. An event is an arrival or the end of a service, three for each customer, as in the
//! other benches. nexosim counts time in nanoseconds.

use nexosim::model::{Context, Model, schedulable};
use nexosim::ports::Output;
use nexosim::simulation::{Mailbox, SimInit, SimulationError};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CUSTOMERS: u64 = 1_000_000;
const ARRIVAL_US: f64 = 1.0;
const SERVICE_US: f64 = 0.8;

/// Nanoseconds that all customers together spent in the system.
static SPENT_NS: AtomicU64 = AtomicU64::new(0);

/// splitmix64.
#[derive(Serialize, Deserialize)]
struct Draws(u64);

impl Draws {
    fn exponential(&mut self, mean_us: f64) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        // An event at the present moment is refused.
        Duration::from_nanos(((-(1.0 - unit).ln() * mean_us * 1e3) as u64).max(1))
    }
}

#[derive(Serialize, Deserialize)]
struct Source {
    out: Output<u64>,
    draws: Draws,
    left: u64,
}

#[Model]
impl Source {
    #[nexosim(init)]
    async fn init(&mut self, context: &Context<Self>) {
        self.next(context);
    }

    fn next(&mut self, context: &Context<Self>) {
        let gap = self.draws.exponential(ARRIVAL_US);
        context.schedule_event(gap, schedulable!(Self::arrives), ()).expect("a later moment");
    }

    #[nexosim(schedulable)]
    async fn arrives(&mut self, _: (), context: &Context<Self>) {
        self.out.send(nanoseconds(context.time())).await;
        self.left -= 1;
        if self.left > 0 {
            self.next(context);
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Server {
    out: Output<u64>,
    last: bool,
    draws: Draws,
    waiting: VecDeque<u64>,
}

#[Model]
impl Server {
    pub async fn enters(&mut self, came: u64, context: &Context<Self>) {
        self.waiting.push_back(came);
        if self.waiting.len() == 1 {
            self.serve(context);
        }
    }

    fn serve(&mut self, context: &Context<Self>) {
        let service = self.draws.exponential(SERVICE_US);
        context.schedule_event(service, schedulable!(Self::leaves), ()).expect("a later moment");
    }

    #[nexosim(schedulable)]
    async fn leaves(&mut self, _: (), context: &Context<Self>) {
        let came = self.waiting.pop_front().expect("a customer leaves");
        if self.last {
            SPENT_NS.fetch_add(nanoseconds(context.time()) - came, Ordering::Relaxed);
        } else {
            self.out.send(came).await;
        }
        if !self.waiting.is_empty() {
            self.serve(context);
        }
    }
}

fn nanoseconds(time: MonotonicTime) -> u64 {
    time.duration_since(MonotonicTime::EPOCH).as_nanos() as u64
}

fn run(seed: u64) -> Result<f64, SimulationError> {
    let server =
        |seed, last| Server { out: Output::default(), last, draws: Draws(seed), waiting: VecDeque::new() };
    let mut source = Source { out: Output::default(), draws: Draws(seed), left: CUSTOMERS };
    let (mut first, second) = (server(seed ^ 0x5555, false), server(seed ^ 0xaaaa, true));
    let (source_box, first_box, second_box) = (Mailbox::new(), Mailbox::new(), Mailbox::new());
    source.out.connect(Server::enters, &first_box);
    first.out.connect(Server::enters, &second_box);
    let mut simulation = SimInit::with_num_threads(1)
        .add_model(source, source_box, "source")
        .add_model(first, first_box, "first")
        .add_model(second, second_box, "second")
        .init(MonotonicTime::EPOCH)?;
    let began = Instant::now();
    simulation.run()?;
    Ok(3.0 * CUSTOMERS as f64 / began.elapsed().as_secs_f64())
}

fn main() -> Result<(), SimulationError> {
    let mut rates = (0..5).map(|seed| run(seed << 32)).collect::<Result<Vec<f64>, _>>()?;
    rates.sort_by(f64::total_cmp);
    let mean_us = SPENT_NS.load(Ordering::Relaxed) as f64 / 1e3 / (5 * CUSTOMERS) as f64;
    println!("nexosim: {:.2} M events/s, {mean_us:.2} us in the system", rates[2] / 1e6);
    Ok(())
}
