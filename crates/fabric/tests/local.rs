//! What is the local world's own, beside the contract that the conformance suite checks.

use offpath_fabric::local::{Clock, Local, LocalFabric};
use offpath_fabric::*;
use offpath_quantity::{Bytes, Time};

fn alone<T: 'static, A: Future<Output = T> + 'static>(
    world: Local,
    client: impl Fn(LocalFabric) -> A + 'static,
) -> (T, Time) {
    let mut run = world.run(vec![Role::new("client", 0, client)]).unwrap();
    (run.outcomes.remove(0).end.finished().unwrap(), run.elapsed)
}

#[test]
fn names_refuse_too_few_bytes() {
    let error = RemoteRegion::from_bytes(&[0; 23]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "23 B are too few for a remote region: 24 B are needed; check what the peer sent"
    );
    assert!(Address::from_bytes(&[0; 31]).is_err());
    for length in 0..24 {
        assert!(RemoteRegion::from_bytes(&vec![1; length]).is_err());
    }
}

#[test]
fn a_memory_gets_back_what_regions_leave() {
    let world = Local::new(1).memory("client", "soc", Bytes::new(64));
    let (errors, _) = alone(world, |f| async move {
        assert_eq!(f.memories(), [Memory { name: "soc".into(), capacity: Bytes::new(64) }]);
        let first = f.register("soc", 40, Access::ALL).unwrap();
        let full = f.register("soc", 40, Access::ALL).unwrap_err();
        drop(first);
        let second = f.register("soc", 64, Access::ALL).unwrap();
        second.deregister().unwrap();
        f.register("soc", 64, Access::ALL).unwrap();
        [full, f.register("host", 1, Access::ALL).unwrap_err()]
    });
    assert_eq!(
        errors.map(|error| error.to_string()),
        [
            "memory `soc` has 24 B left, 40 B were asked for; deregister or ask for less",
            "client[0] has no memory `host`; it has `soc`",
        ]
    );
}

#[test]
fn a_named_directory_keeps_files_between_runs() {
    let directory = std::env::temp_dir().join(format!("offpath-fabric-test-{}", std::process::id()));
    let world = || Local::new(1).directory(&directory);
    alone(world(), |f| async move {
        f.file("log", FileMode::Create).await.unwrap().append(b"kept").await.unwrap();
    });
    let (length, _) =
        alone(
            world(),
            |f| async move { f.file("log", FileMode::Open).await.unwrap().length().await.unwrap() },
        );
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(length, 4);
}

#[test]
fn a_run_by_the_manual_clock_is_the_same_every_time() {
    let run = || {
        alone(Local::new(3).clock(Clock::Manual), |f| async move {
            let mut seen = Vec::new();
            for _ in 0..20 {
                f.sleep(Time::from_ps(f.random_u64() % 1_000_000)).await;
                seen.push((f.now(), f.random_u64()));
            }
            seen
        })
    };
    assert_eq!(run(), run());
}

#[test]
fn a_polling_loop_does_not_stop_the_manual_clock() {
    let (now, _) = alone(Local::new(3).clock(Clock::Manual), |f| async move {
        while f.now() < Time::from_us(1) {
            f.compute(Work::Cycles(1)).await;
        }
        f.now()
    });
    assert_eq!(now, Time::from_us(1));
}

#[test]
fn a_missing_engine_is_refused_by_name() {
    let (error, _) = alone(Local::new(1), |f| async move {
        let region = f.register("host", 8, Access::ALL).unwrap();
        let at = || MemoryAt::Local { region: region.clone(), offset: 0 };
        f.dma_copy("soc-dma", at(), at(), 8).err().unwrap().to_string()
    });
    assert!(error.starts_with("the local world does not support a DMA engine `soc-dma`"), "{error}");
}

#[test]
fn handles_that_outlive_their_role_are_refused_not_trusted() {
    let ((queue_pair, region, fabric), _) = alone(Local::new(1), |f| async move {
        let queue_pair = f.create_queue_pair(QueuePairOptions::ud()).unwrap();
        (queue_pair, f.register("host", 8, Access::ALL).unwrap(), f)
    });
    assert_eq!(queue_pair.state(), QueuePairState::Closed);
    assert!(queue_pair.receive(region.all()).is_err());
    assert!(region.load(0).is_err());
    drop(fabric.spawn(async {}));
}
