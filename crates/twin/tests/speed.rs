//! How fast the world runs: `cargo test --release -p offpath-twin --test speed -- --ignored --nocapture`.

use offpath_fabric::*;
use offpath_profile::Library;
use offpath_quantity::Time;
use offpath_twin::{TwinFabric, TwinWorld};
use std::cell::Cell;
use std::rc::Rc;

/// READs of a closed loop of 512 tasks, each with a queue pair shared by 64.
fn reads(total: u64) -> (f64, f64) {
    let request = offpath_profile::Request { device: "bluefield2", ..Default::default() };
    let system = Library::builtin().load(&request).expect("a shipped profile loads");
    let lent = Rc::new(Cell::new(None));
    let lend = lent.clone();
    let soc = Role::new("soc", 0, move |f: TwinFabric| {
        let lend = lend.clone();
        async move {
            let region = f.register("soc", 1 << 20, Access::ALL).expect("the memory is large");
            lend.set(Some(region.remote()));
            let listener = f.listen("reads").expect("nobody listens yet");
            let mut all = Vec::new();
            loop {
                let queue_pair = f.create_queue_pair(QueuePairOptions::rc()).expect("RC is there");
                if listener.accept(&queue_pair).await.is_err() {
                    return;
                }
                all.push(queue_pair);
            }
        }
    });
    let count = Rc::new(Cell::new(0u64));
    let clients = (0..8u32).map(|instance| {
        let (lent, count) = (lent.clone(), count.clone());
        Role::new("client", instance, move |f: TwinFabric| {
            let (lent, count) = (lent.clone(), count.clone());
            async move {
                let options = QueuePairOptions::rc();
                let queue_pair = f.create_queue_pair(options).expect("RC is there");
                f.connect(&queue_pair, "soc", 0, "reads").await.expect("the peer listens");
                let remote = lent.get().expect("the region was lent first");
                let region = f.register("client", 64 * 64, Access::ALL).expect("the memory is large");
                let tasks: Vec<_> = (0..64u64)
                    .map(|task| {
                        let (queue_pair, region, count) = (queue_pair.clone(), region.clone(), count.clone());
                        f.spawn(async move {
                            let mut at = task;
                            while count.get() < total {
                                count.set(count.get() + 1);
                                at = at.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                                let remote = remote.at((at >> 40) % 16384 * 64);
                                let ticket = queue_pair.read(region.slice(task * 64, 64), remote);
                                ticket.expect("64 fit").await.success().expect("the peer is there");
                            }
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await.expect("the role lives on");
                }
            }
        })
    });
    let mut roles: Vec<_> = clients.collect();
    roles.insert(0, soc.in_background());
    let world = TwinWorld::new(&system, 1).expect("a shipped profile has routes");
    let began = std::time::Instant::now();
    let run = world.run(roles).expect("the run ends");
    let took = began.elapsed().as_secs_f64();
    (total as f64 / took / 1e6, total as f64 / (run.elapsed - Time::ZERO).as_seconds() / 1e6)
}

#[test]
#[ignore = "a measurement of this machine"]
fn reads_per_second_of_wall_clock() {
    for _ in 0..3 {
        let (wall, virtual_time) = reads(1_000_000);
        println!("{wall:.3} M READs/s of wall clock, {virtual_time:.1} M READs/s of virtual time");
    }
}
