//! Following one request of the store.
//!
//! A store of a few records stands for a design's: its keys share no bucket, so that no chain is followed,
//! and the design's objects say how the accesses of all records are spread.

use super::{Fetch, Home, Placement, StoreClient, StoreConfig, StoreCosts, StoreKey, host, soc};
use crate::system::{Asked, Course, Follow, FollowedCode, Given, PATIENCE, REQUESTS};
use offpath_fabric::{Fabric, Role};
use offpath_quantity::{Bytes, Time};
use std::collections::BTreeMap;

/// One kind of request of a store that holds the keys of those that are followed.
#[derive(Clone, Debug)]
pub struct Request {
    options: StoreConfig,
    operation: String,
    objects: BTreeMap<u64, String>,
}

impl FollowedCode for Request {
    fn courses(asked: &Asked<'_>) -> Result<Course<Request>, String> {
        let placement =
            Placement::labelled(asked.alternative).expect("designs name declared alternatives alone");
        let request = Request::of(placement, asked.given, asked.operation)?;
        let warm = |records: u64| {
            let options = StoreConfig { warm: (0..records).collect(), ..request.options.clone() };
            Course::Straight(Request { options, ..request.clone() })
        };
        let hit_ratio = if placement.looks_into_the_cache() { asked.hit_ratio } else { 0.0 };
        Ok(if hit_ratio == 0.0 {
            warm(0)
        } else if hit_ratio == 1.0 {
            warm(REQUESTS)
        } else {
            let (then, otherwise) = (Box::new(warm(REQUESTS)), Box::new(warm(0)));
            Course::Branch { probability: hit_ratio, then, otherwise }
        })
    }

    fn objects(&self) -> BTreeMap<u64, String> {
        self.objects.clone()
    }

    fn roles<F: Fabric>(&self, follow: &Follow) -> Vec<Role<F, Result<(), String>>> {
        let of_host = self.options.clone();
        let host = Role::new("host", 0, move |fabric: F| {
            let options = of_host.clone();
            async move { host(fabric, options).await.map_err(words) }
        });
        let (request, follow) = (self.clone(), follow.clone());
        let client = Role::new("client", 0, move |fabric: F| {
            let (request, follow) = (request.clone(), follow.clone());
            async move { request.run(&fabric, &follow).await }
        });
        let mut roles = vec![host.in_background(), client];
        if self.options.placement.homes().contains(&Home::Soc) {
            let of_soc = self.options.clone();
            let soc = Role::new("soc", 0, move |fabric: F| {
                let options = of_soc.clone();
                async move { soc(fabric, options).await.map_err(words) }
            });
            roles.push(soc.in_background());
        }
        roles
    }
}

impl Request {
    fn of(placement: Placement, given: &Given, operation: &str) -> Result<Request, String> {
        if !matches!(operation, "request" | "read" | "update" | "insert" | "readmodifywrite") {
            return Err(format!("it has no `{operation}`"));
        }
        let value_bytes =
            u32::try_from(given.of::<Bytes>("value").get()).expect("a design's values are bounded");
        let time = |key| given.of::<Time>(key);
        let mut options = StoreConfig::sized(REQUESTS, value_bytes).placed(placement);
        options.layout.root_buckets = 1 << 12;
        options.layout.cache_slots = 1 << 12;
        options.preload = REQUESTS;
        options.hot_share = 0;
        options.costs = StoreCosts {
            build: time("build"),
            search: time("search"),
            check: time("check"),
            card_hash: time("card_hash"),
            card_search: time("card_search"),
            card_lookup: time("card_lookup"),
        };
        options.answer_timeout = PATIENCE;
        options.attempts = 1;
        options.admit_after = u32::MAX;
        if let Some(engine) = given.get("engine") {
            options.fetch = Fetch::Engine(engine);
        }
        // A region is known by its length.
        let layout = options.layout;
        let regions = [
            (layout.index_bytes(), "index"),
            (layout.values_bytes(), "values"),
            (layout.cache_bytes(), "values"),
        ];
        let objects = regions.into_iter().filter_map(|(length, key)| Some((length, given.get(key)?)));
        Ok(Request { objects: objects.collect(), options, operation: operation.to_string() })
    }

    async fn run<F: Fabric>(&self, fabric: &F, follow: &Follow) -> Result<(), String> {
        let mut client = StoreClient::connect(fabric, &self.options).await.map_err(words)?;
        let value = vec![7; self.options.layout.value_bytes as usize];
        for number in 0..REQUESTS {
            follow.request(fabric, self.once(&mut client, number, &value)).await?;
        }
        Ok(())
    }

    async fn once<F: Fabric>(
        &self,
        client: &mut StoreClient<F>,
        number: u64,
        value: &[u8],
    ) -> Result<(), String> {
        let held = StoreKey::from_number(number);
        match self.operation.as_str() {
            "update" => client.put(held, value).await.map_err(words),
            "insert" => {
                let fresh = StoreKey::from_number(self.options.preload + number);
                client.put(fresh, value).await.map_err(words)
            }
            other => {
                let got = client.get(held).await.map_err(words)?;
                got.ok_or("a record that it holds was not found")?;
                if other == "readmodifywrite" {
                    client.put(held, value).await.map_err(words)?;
                }
                Ok(())
            }
        }
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
