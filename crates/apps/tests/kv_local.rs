//! The store in one process: against a model, and what it refuses.

use offpath_apps::kv::{
    self, Fetch, KvError, Placement, SPARE_SLOTS, StoreClient, StoreConfig, StoreKey, value_of,
};
use offpath_fabric::local::{Local, LocalClock, LocalFabric};
use offpath_fabric::{Backend, Fabric, Role};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

/// Runs one client against a store.
fn with_client<Fut>(options: StoreConfig, client: impl Fn(LocalFabric, StoreConfig) -> Fut + 'static)
where
    Fut: Future<Output = Result<(), KvError>> + 'static,
{
    let (of_host, of_soc) = (options.clone(), options.clone());
    let roles = vec![
        Role::new("host", 0, move |fabric| kv::host(fabric, of_host.clone())).in_background(),
        Role::new("soc", 0, move |fabric| kv::soc(fabric, of_soc.clone())).in_background(),
        Role::new("client", 0, move |fabric| client(fabric, options.clone())),
    ];
    let backend = Local::new(1).clock(LocalClock::Manual).dma_engine("dma");
    let run = backend.run(roles).expect("the run ends");
    for outcome in run.outcomes {
        if let Some(Err(error)) = outcome.end.finished() {
            panic!("{}: {error}", outcome.name);
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Get(u64),
    Put(u64, u8, usize),
    Delete(u64),
    Replicate(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0u64..24;
    prop_oneof![
        4 => key.clone().prop_map(Step::Get),
        4 => (key.clone(), any::<u8>(), 0usize..=40).prop_map(|(key, byte, length)| Step::Put(key, byte, length)),
        2 => key.clone().prop_map(Step::Delete),
        1 => key.prop_map(Step::Replicate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Whatever a client does, by whatever placement, the store is a map.
    #[test]
    fn it_is_a_map(
        steps in proptest::collection::vec(step(), 1..120),
        placement in proptest::sample::select(Placement::ALL.to_vec()),
        by_engine in any::<bool>(),
        root_buckets in 1u64..8,
    ) {
        let mut options = StoreConfig::sized(16, 40).placed(placement);
        options.layout.root_buckets = root_buckets;
        options.layout.slots = 20 + SPARE_SLOTS;
        options.preload = 4;
        options.warm = (0..2).collect();
        options.admit_after = 1;
        if by_engine {
            options.fetch = Fetch::Engine("dma".into());
        }
        let steps = Rc::new(steps);
        with_client(options, move |fabric, options| {
            let steps = steps.clone();
            async move {
                let mut model: BTreeMap<u64, Vec<u8>> =
                    (0..4).map(|key| (key, value_of(key, 0, 40))).collect();
                let mut client = StoreClient::connect(&fabric, &options).await?;
                for step in steps.iter() {
                    match *step {
                        Step::Get(key) => {
                            let got = client.get(StoreKey::from_number(key)).await?;
                            assert_eq!(got.as_ref(), model.get(&key), "{step:?}");
                        }
                        Step::Put(key, byte, length) => {
                            let value = vec![byte; length];
                            match client.put(StoreKey::from_number(key), &value).await {
                                Ok(()) => drop(model.insert(key, value)),
                                Err(KvError::Full { slots: 28 }) => {
                                    assert!(!model.contains_key(&key), "an update was refused");
                                    assert!(model.len() >= 20 , "refused at {} of 20", model.len());
                                }
                                Err(error) => return Err(error),
                            }
                        }
                        Step::Delete(key) => {
                            let was = client.delete(StoreKey::from_number(key)).await?;
                            assert_eq!(was, model.remove(&key).is_some(), "{step:?}");
                        }
                        Step::Replicate(key) => {
                            let was = client.replicate(StoreKey::from_number(key)).await?;
                            assert_eq!(was, model.contains_key(&key), "{step:?}");
                        }
                    }
                    // The card brings records into its cache meanwhile.
                    fabric.sleep(offpath_quantity::Time::from_us(1)).await;
                }
                for key in 0..24 {
                    assert_eq!(client.get(StoreKey::from_number(key)).await?.as_ref(), model.get(&key));
                }
                Ok(())
            }
        });
    }
}

#[test]
fn placements_of_one_home_serve_one_store() {
    let mut options = StoreConfig::sized(100, 64).placed(Placement::SocCacheSend);
    options.preload = 100;
    with_client(options, |fabric, options| async move {
        let mut client = StoreClient::connect(&fabric, &options).await?;
        for placement in Placement::ALL {
            for key in 0..100 {
                let got = client.get_by(placement, StoreKey::from_number(key)).await;
                if placement.index_home() == kv::Home::Soc {
                    assert_eq!(got, Ok(Some(value_of(key, 0, 64))), "{placement:?}");
                } else {
                    let needed = kv::Home::Host;
                    assert_eq!(got, Err(KvError::WrongHome { asked: placement, needed }));
                }
            }
            assert_eq!(client.get(StoreKey::from_number(100)).await, Ok(None));
        }
        Ok(())
    });
}

#[test]
fn a_full_store_refuses_and_keeps_what_it_has() {
    for placement in [Placement::HostOneSided, Placement::SplitOneSided] {
        let mut options = StoreConfig::sized(10, 16).placed(placement);
        options.layout.slots = 10 + SPARE_SLOTS;
        with_client(options, |fabric, options| async move {
            let mut client = StoreClient::connect(&fabric, &options).await?;
            for key in 0..10 {
                client.put(StoreKey::from_number(key), &[key as u8; 16]).await?;
            }
            let slots = options.layout.slots;
            assert_eq!(client.put(StoreKey::from_number(10), &[0; 16]).await, Err(KvError::Full { slots }));
            // Updates go on, as often as one likes.
            for round in 0..50 {
                client.put(StoreKey::from_number(3), &[round; 16]).await?;
            }
            for key in 0..10u8 {
                let expected = if key == 3 { vec![49; 16] } else { vec![key; 16] };
                assert_eq!(client.get(StoreKey::from_number(key.into())).await?, Some(expected));
            }
            assert_eq!(client.get(StoreKey::from_number(10)).await?, None);
            client.delete(StoreKey::from_number(0)).await?;
            client.put(StoreKey::from_number(10), &[9; 16]).await?;
            let error = client.put(StoreKey::from_number(1), &[0; 17]).await.expect_err("it is too long");
            assert_eq!(error, KvError::ValueTooLarge { length: 17, bound: 16 });
            assert_eq!(client.get(StoreKey::from_number(1)).await?, Some(vec![1; 16]));
            Ok(())
        });
    }
}

#[test]
fn a_store_of_few_buckets_is_full_when_its_chains_are() {
    let mut options = StoreConfig::sized(100, 8);
    (options.layout.root_buckets, options.layout.overflow_buckets) = (1, 2);
    with_client(options, |fabric, options| async move {
        let mut client = StoreClient::connect(&fabric, &options).await?;
        for key in 0..9 {
            client.put(StoreKey::from_number(key), &[1]).await?;
        }
        let slots = options.layout.slots;
        // The slot of a refused key is free again, so refusals use nothing up.
        for key in 9..500 {
            assert_eq!(client.put(StoreKey::from_number(key), &[1]).await, Err(KvError::Full { slots }));
        }
        for key in 0..9 {
            assert_eq!(client.get(StoreKey::from_number(key)).await?, Some(vec![1]));
        }
        Ok(())
    });
}

#[test]
fn another_shape_is_refused_by_name() {
    let options = StoreConfig::sized(10, 16);
    with_client(options, |fabric, options| async move {
        let with = |change: fn(&mut StoreConfig)| {
            let mut other = options.clone();
            change(&mut other);
            other
        };
        let cases: [(&str, StoreConfig); 3] = [
            ("key size in bytes", with(|o| o.layout.key_bytes = 4)),
            ("slot size in bytes", with(|o| o.layout.value_bytes = 24)),
            ("number of buckets", with(|o| o.layout.root_buckets = 11)),
        ];
        for (expected, other) in cases {
            match StoreClient::connect(&fabric, &other).await.err() {
                Some(KvError::Mismatch { what, .. }) => assert_eq!(what, expected),
                error => panic!("{expected}: {error:?}"),
            }
        }
        let zero = with(|o| o.layout.key_bytes = 0);
        assert!(matches!(StoreClient::connect(&fabric, &zero).await.err(), Some(KvError::Shape { .. })));
        StoreClient::connect(&fabric, &options).await.map(|_| ())
    });
}

#[test]
fn a_server_of_another_layout_is_refused() {
    let mut options = StoreConfig::sized(10, 16);
    options.layout.version = 9;
    let server = options.clone();
    let host = Role::new("host", 0, move |fabric| kv::host(fabric, server.clone())).in_background();
    let client = Role::new("client", 0, move |fabric: LocalFabric| async move {
        StoreClient::connect(&fabric, &StoreConfig::sized(10, 16).placed(Placement::HostOneSided))
            .await
            .map(|_| ())
    });
    let run = Local::new(1).clock(LocalClock::Manual).run(vec![host, client]).expect("the run ends");
    let end = run.outcomes.into_iter().nth(1).and_then(|outcome| outcome.end.finished());
    assert_eq!(end, Some(Err(KvError::LayoutVersion { server: 9, client: kv::LAYOUT_VERSION })));
}

#[test]
fn a_missing_engine_is_refused_and_not_emulated() {
    let mut options = StoreConfig::sized(10, 16).placed(Placement::SocIndex);
    options.fetch = Fetch::Engine("dma".into());
    let (of_host, of_soc) = (options.clone(), options);
    let host = Role::new("host", 0, move |fabric| kv::host(fabric, of_host.clone())).in_background();
    let soc = Role::new("soc", 0, move |fabric: LocalFabric| kv::soc(fabric, of_soc.clone()));
    let run = Local::new(1).clock(LocalClock::Manual).run(vec![host, soc]).expect("the run ends");
    let end = run.outcomes.into_iter().nth(1).and_then(|outcome| outcome.end.finished());
    assert!(matches!(end, Some(Err(KvError::Unsupported(_)))), "{end:?}");
}
