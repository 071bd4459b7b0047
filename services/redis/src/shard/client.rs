//! A client that finds the node of a key and follows redirections.

use crate::client::{ClientError, RedisClient};
use crate::resp::Value;
use crate::shard::ShardError;
use crate::shard::slots::{SLOTS, slot};
use crate::shard::topology;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::Duration;

/// Redirections and retries of one command before it is an error.
const STEPS: u32 = 32;

/// How to reach and enter every node.
#[derive(Clone, Debug, Default)]
pub struct RedisAccess {
    /// The ACL user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
}

/// How long a node may take to answer.
pub const SILENCE: Duration = Duration::from_secs(10);

impl RedisAccess {
    /// Connects to a node and shows the password.
    pub fn connect(&self, address: &str) -> Result<RedisClient, ClientError> {
        let mut client = RedisClient::connect(address, SILENCE)?;
        if let Some(password) = &self.password {
            client.login(self.user.as_deref(), password)?;
        }
        Ok(client)
    }
}

/// A client of a whole cluster.
#[derive(Debug)]
pub struct ClusterClient {
    access: RedisAccess,
    seed: String,
    addresses: Vec<String>,
    /// For each slot the index of its address.
    owners: Vec<u16>,
    open: BTreeMap<String, RedisClient>,
    /// Redirections that were followed.
    pub redirected: u64,
}

impl ClusterClient {
    /// Learns the cluster of the node at `seed`.
    pub fn connect(seed: &str, access: RedisAccess) -> Result<ClusterClient, ShardError> {
        let mut client = ClusterClient {
            access,
            seed: seed.to_string(),
            addresses: vec![seed.to_string()],
            owners: vec![0; usize::from(SLOTS)],
            open: BTreeMap::new(),
            redirected: 0,
        };
        client.learn()?;
        Ok(client)
    }

    fn learn(&mut self) -> Result<(), ShardError> {
        let seed = self.seed.clone();
        self.learn_from(&seed)
    }

    fn learn_from(&mut self, address: &str) -> Result<(), ShardError> {
        let nodes = topology::nodes(self.node(address)?)?;
        for node in nodes.iter().filter(|node| node.master) {
            let index = self.index(&node.address);
            for slot in node.slots.iter() {
                self.owners[usize::from(slot)] = index;
            }
        }
        Ok(())
    }

    fn index(&mut self, address: &str) -> u16 {
        match self.addresses.iter().position(|known| known == address) {
            Some(index) => index as u16,
            None => {
                self.addresses.push(address.to_string());
                (self.addresses.len() - 1) as u16
            }
        }
    }

    fn node(&mut self, address: &str) -> Result<&mut RedisClient, ClientError> {
        if !self.open.contains_key(address) {
            let client = self.access.connect(address)?;
            self.open.insert(address.to_string(), client);
        }
        Ok(self.open.get_mut(address).expect("it was inserted"))
    }

    /// Where a key is, as far as this client knows.
    pub fn address(&self, key: &[u8]) -> &str {
        &self.addresses[usize::from(self.owners[usize::from(slot(key))])]
    }

    /// Sends a command about `key` to its node, and follows it where it has moved.
    pub fn ask(&mut self, key: &[u8], words: &[&[u8]]) -> Result<Value, ShardError> {
        let mut address = self.address(key).to_string();
        let mut asking = false;
        for step in 0..STEPS {
            let node = self.node(&address)?;
            let mut requests = vec![words.to_vec()];
            if asking {
                requests.insert(0, vec![b"ASKING"]);
            }
            let sent = node.send(&requests).and_then(|()| {
                if asking {
                    node.receive()?;
                }
                node.receive()
            });
            let reply = match sent {
                Ok(reply) => reply,
                Err(error) => {
                    self.open.remove(&address);
                    return Err(error.into());
                }
            };
            let Value::Error(text) = reply else { return Ok(reply) };
            let mut parts = text.split(' ');
            match (parts.next(), parts.next(), parts.next()) {
                (Some("MOVED"), Some(_), Some(to)) => {
                    let index = self.index(to);
                    self.owners[usize::from(slot(key))] = index;
                    address = to.to_string();
                    asking = false;
                }
                (Some("ASK"), Some(_), Some(to)) => {
                    address = to.to_string();
                    asking = true;
                }
                (Some("TRYAGAIN" | "LOADING"), ..) => sleep(Duration::from_millis(10 * u64::from(step))),
                (Some("CLUSTERDOWN"), ..) => {
                    // The node may have left the cluster, which the others know.
                    sleep(Duration::from_millis(10 * u64::from(step)));
                    let others: Vec<String> =
                        self.addresses.iter().filter(|other| **other != address).cloned().collect();
                    if others.iter().any(|other| self.learn_from(other).is_ok()) {
                        address = self.address(key).to_string();
                        asking = false;
                    }
                }
                _ => {
                    let command =
                        String::from_utf8_lossy(words.first().copied().unwrap_or_default()).into_owned();
                    return Err(ClientError::Refused { address, command, reply: text }.into());
                }
            }
            self.redirected += 1;
        }
        Err(ShardError::Refused {
            address,
            reason: format!("a key was redirected {STEPS} times without an answer"),
        })
    }
}
