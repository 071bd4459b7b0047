//! Shares of slots by capacity, and the fewest slots that have to move.

use crate::shard::ShardError;
use crate::shard::slots::{SLOTS, SlotSet};
use serde::{Deserialize, Serialize};

/// A server that holds a share of the slots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisEndpoint {
    /// What people call it, such as `host` or `card`.
    pub name: String,
    /// `HOST:PORT`.
    pub address: String,
    /// Requests per second that it carries alone; only their ratios count.
    pub requests_per_second: f64,
    /// Slots of its share.
    pub slots: u16,
}

/// Endpoints with their shares, as a TOML file keeps them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotPlan {
    /// The endpoints; slots of a cluster that is made anew are given in this order.
    pub endpoint: Vec<RedisEndpoint>,
}

fn refuse(key: impl Into<String>, value: impl ToString, reason: impl Into<String>) -> ShardError {
    ShardError::Plan { key: key.into(), value: value.to_string(), reason: reason.into() }
}

/// Shares of all slots in proportion to `capacities`, by largest remainder; equal remainders go to the
/// earlier one. The shares sum to 16384.
pub fn shares(capacities: &[f64]) -> Result<Vec<u16>, ShardError> {
    if capacities.is_empty() || capacities.len() > 1_000 {
        return Err(refuse("endpoints", capacities.len(), "give 1 to 1000 endpoints"));
    }
    if let Some(wrong) = capacities.iter().find(|capacity| !capacity.is_finite() || **capacity < 0.0) {
        return Err(refuse("capacity", wrong, "give requests per second, 0 or more"));
    }
    let total: f64 = capacities.iter().sum();
    if total <= 0.0 || !total.is_finite() {
        return Err(refuse("capacity", total, "at least one endpoint needs a capacity above 0"));
    }
    let exact: Vec<f64> = capacities.iter().map(|capacity| capacity / total * f64::from(SLOTS)).collect();
    let mut shares: Vec<u16> = exact.iter().map(|share| (share.floor() as u16).min(SLOTS)).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|a, b| (exact[*b] - exact[*b].floor()).total_cmp(&(exact[*a] - exact[*a].floor())));
    let given: u32 = shares.iter().map(|share| u32::from(*share)).sum();
    let mut left = u32::from(SLOTS).saturating_sub(given);
    while left > 0 {
        for index in &order {
            if left > 0 {
                shares[*index] += 1;
                left -= 1;
            }
        }
    }
    Ok(shares)
}

impl SlotPlan {
    /// A plan for endpoints (name, address, requests per second).
    pub fn new(endpoints: &[(String, String, f64)]) -> Result<SlotPlan, ShardError> {
        let capacities: Vec<f64> = endpoints.iter().map(|(_, _, capacity)| *capacity).collect();
        let shares = shares(&capacities)?;
        let endpoint = endpoints
            .iter()
            .zip(shares)
            .map(|((name, address, capacity), slots)| RedisEndpoint {
                name: name.clone(),
                address: address.clone(),
                requests_per_second: *capacity,
                slots,
            })
            .collect();
        let plan = SlotPlan { endpoint };
        plan.check()?;
        Ok(plan)
    }

    /// Parses a plan file and checks it.
    pub fn parse(text: &str) -> Result<SlotPlan, ShardError> {
        let plan: SlotPlan =
            toml::from_str(text).map_err(|error| refuse("plan", "file", error.to_string().trim_end()))?;
        plan.check()?;
        Ok(plan)
    }

    /// The plan as the text of a file.
    pub fn text(&self) -> String {
        let mut text = String::from(
            "# Written by `offpath shard plan`; `offpath shard apply` makes a cluster of it. Slots may be\n\
             # changed by hand as long as they sum to 16384.\n",
        );
        for endpoint in &self.endpoint {
            // Strings of TOML are escaped as those of Rust are, for what names and addresses hold.
            text.push_str(&format!(
                "\n[[endpoint]]\nname = {:?}\naddress = {:?}\nrequests_per_second = {:?}\nslots = {}\n",
                endpoint.name, endpoint.address, endpoint.requests_per_second, endpoint.slots
            ));
        }
        text
    }

    fn check(&self) -> Result<(), ShardError> {
        let total: u32 = self.endpoint.iter().map(|endpoint| u32::from(endpoint.slots)).sum();
        if total != u32::from(SLOTS) {
            return Err(refuse("slots", total, format!("the slots of all endpoints have to sum to {SLOTS}")));
        }
        for (index, endpoint) in self.endpoint.iter().enumerate() {
            let port = endpoint.address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(_))) {
                return Err(refuse("address", &endpoint.address, "write HOST:PORT, as in `127.0.0.1:7000`"));
            }
            let plain =
                |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte));
            if !plain(&endpoint.address) || !plain(&endpoint.name) || endpoint.name.is_empty() {
                return Err(refuse(
                    "name",
                    &endpoint.name,
                    "use letters, digits and signs without blanks or quotes",
                ));
            }
            if self.endpoint[..index].iter().any(|other| other.address == endpoint.address) {
                return Err(refuse("address", &endpoint.address, "each server may be named once"));
            }
        }
        Ok(())
    }
}

/// One slot that changes its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The slot.
    pub slot: u16,
    /// The index of the owner that gives it.
    pub from: usize,
    /// The index of the owner that takes it.
    pub to: usize,
}

/// The fewest moves after which owner `i` has `wanted[i]` of its slots: owners with too many give their
/// highest slots to those with too few, in order.
pub fn moves(owned: &[SlotSet], wanted: &[u16]) -> Vec<Move> {
    let surplus = |index: usize| owned[index].len().saturating_sub(wanted[index]);
    let mut givers = (0..owned.len()).flat_map(|from| {
        let slots: Vec<u16> = owned[from].iter().collect();
        let kept = slots.len() - usize::from(surplus(from));
        slots.into_iter().skip(kept).map(move |slot| (slot, from)).collect::<Vec<_>>()
    });
    let mut found = Vec::new();
    for to in 0..owned.len() {
        for _ in owned[to].len()..wanted[to].max(owned[to].len()) {
            if let Some((slot, from)) = givers.next() {
                found.push(Move { slot, from, to });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_follow_capacities() {
        assert_eq!(shares(&[3.0, 1.0]).unwrap(), [12_288, 4_096]);
        assert_eq!(shares(&[1.0, 1.0, 1.0]).unwrap(), [5_462, 5_461, 5_461]);
        assert_eq!(shares(&[5.0, 0.0]).unwrap(), [16_384, 0]);
        assert!(shares(&[]).is_err());
        assert!(shares(&[0.0, 0.0]).unwrap_err().to_string().contains("above 0"));
        assert!(shares(&[-1.0, 2.0]).is_err());
        assert!(shares(&[f64::NAN]).is_err());
    }

    #[test]
    fn plans_survive_their_file_and_refuse_nonsense() {
        let endpoints = [("host", "h:1", 2e5), ("card", "c:2", 1e5)];
        let endpoints = endpoints.map(|(name, address, rate)| (name.to_string(), address.to_string(), rate));
        let plan = SlotPlan::new(&endpoints).unwrap();
        assert_eq!(SlotPlan::parse(&plan.text()).unwrap(), plan);
        for (from, to, reason) in [
            ("slots = 5461", "slots = 5460", "sum to 16384"),
            ("c:2", "h:1", "named once"),
            ("c:2", "c", "HOST:PORT"),
            ("name = \"card\"", "name = \"\"", "letters"),
            ("name = \"card\"", "names = \"card\"", "names"),
        ] {
            let text = plan.text().replace(from, to);
            assert_ne!(text, plan.text());
            let error = SlotPlan::parse(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    proptest! {
        #[test]
        fn moves_are_the_fewest_that_lead_to_the_shares(
            before in prop::collection::vec(0.0f64..10.0, 2..6),
            seed in prop::collection::vec(0.1f64..10.0, 6),
        ) {
            prop_assume!(before.iter().sum::<f64>() > 0.0);
            let had = shares(&before).unwrap();
            let wanted = shares(&seed[..before.len()]).unwrap();
            let mut next = 0;
            let mut owned: Vec<SlotSet> = Vec::new();
            for count in &had {
                owned.push((next..next + count).collect());
                next += count;
            }
            let found = moves(&owned, &wanted);
            let least: u32 = had.iter().zip(&wanted).map(|(a, b)| u32::from(b.saturating_sub(*a))).sum();
            prop_assert_eq!(found.len() as u32, least);
            for step in found {
                prop_assert!(owned[step.from].contains(step.slot));
                owned[step.from].remove(step.slot);
                owned[step.to].insert(step.slot);
            }
            let reached: Vec<u16> = owned.iter().map(SlotSet::len).collect();
            prop_assert_eq!(reached, wanted);
        }
    }
}
