//! Following one write of the log.

use super::{LogAlternative, LogConfig, LogCosts, Primary, backup, card};
use crate::bytes::hash;
use crate::system::{Asked, Course, Follow, FollowedCode, Given, PATIENCE, REQUESTS};
use offpath_fabric::{Fabric, Role, RoleName};
use offpath_quantity::{BitRate, Bytes, Time};
use std::rc::Rc;

/// Writes of one chunk each to a log.
#[derive(Clone, Debug)]
pub struct Writes {
    options: LogConfig,
    bytes: Rc<Vec<u8>>,
}

impl FollowedCode for Writes {
    fn courses(asked: &Asked<'_>) -> Result<Course<Writes>, String> {
        let alternative =
            LogAlternative::labelled(asked.alternative).expect("designs name declared alternatives alone");
        Ok(Course::Straight(Writes::of(alternative, asked.given)))
    }

    fn roles<F: Fabric>(&self, follow: &Follow) -> Vec<Role<F, Result<(), String>>> {
        let (writes, follow) = (self.clone(), follow.clone());
        let mut roles = vec![Role::new("host", 0, move |fabric: F| {
            let (writes, follow) = (writes.clone(), follow.clone());
            async move { writes.run(&fabric, &follow).await }
        })];
        for name in &self.options.chain {
            let options = self.options.clone();
            let serve = move |fabric: F| {
                let options = options.clone();
                async move { backup(fabric, options).await.map_err(words) }
            };
            roles.push(Role::new(&name.role, name.instance, serve).in_background());
        }
        if self.options.alternative != LogAlternative::HostWrites {
            let options = self.options.clone();
            let serve = move |fabric: F| {
                let options = options.clone();
                async move { card(fabric, options).await.map_err(words) }
            };
            roles.push(Role::new("soc", 0, serve).in_background());
        }
        roles
    }
}

impl Writes {
    fn of(alternative: LogAlternative, given: &Given) -> Writes {
        let chain = given.all::<String>("chain").iter().map(|name| RoleName::new(name, 0)).collect();
        let chunk = given.of::<Bytes>("chunk").get();
        let per_second = |key| given.get::<BitRate>(key).map_or(0, |rate| rate.bits_per_second() / 8);
        let mut options = LogConfig::new(alternative, chain);
        options.chunk_bytes = u32::try_from(chunk).expect("a design's chunks are bounded");
        options.segment_bytes = u64::MAX / 2;
        options.slots = 1;
        options.costs = LogCosts {
            compress_bytes_per_second: per_second("compress"),
            file_bytes_per_second: per_second("append"),
            // Waiting for a disk takes no station's time, and plans assume memory that survives.
            sync: Time::ZERO,
        };
        options.patience = PATIENCE;
        options.engine = given.get("engine").unwrap_or_default();
        Writes { options, bytes: Rc::new(chunk_of(chunk, given.of("ratio"))) }
    }

    async fn run<F: Fabric>(&self, fabric: &F, follow: &Follow) -> Result<(), String> {
        let primary = Primary::open(fabric, &self.options).await.map_err(words)?;
        for _ in 0..REQUESTS {
            follow.request(fabric, primary.write(&self.bytes)).await.map_err(words)?;
            // What the NICs still do for a request is over before the next.
            fabric.sleep(Time::from_ms(1)).await;
        }
        Ok(())
    }
}

/// A chunk that LZ4 makes `ratio` times as long: random bytes, then zeros. Of random bytes it notes
/// every 255th by one more, of zeros it keeps one in 255.
fn chunk_of(length: u64, ratio: f64) -> Vec<u8> {
    /// Any other number draws other bytes.
    const SEED: u64 = 0xb087_83c5_1262_dc22;
    let noise = length as f64 * (ratio - 1.0 / 255.0);
    let noise = if ratio >= 1.0 { length } else { (noise.max(0.0) as u64).min(length) };
    let mut bytes: Vec<u8> =
        (0..noise.div_ceil(8)).flat_map(|word| hash(SEED ^ hash(word + 1)).to_le_bytes()).collect();
    bytes.truncate(noise as usize);
    bytes.resize(length as usize, 0);
    bytes
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
