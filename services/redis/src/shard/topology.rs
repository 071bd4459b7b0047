//! What a server says of its cluster, from `CLUSTER NODES`.

use crate::client::RedisClient;
use crate::shard::ShardError;
use crate::shard::slots::{SLOTS, SlotSet};

/// Nodes that a description may have; real clusters stay far below.
const NODES: usize = 4_096;

/// A slot that is on its way from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// The slot.
    pub slot: u16,
    /// The other node's id.
    pub other: String,
    /// Whether it leaves this node; else it comes.
    pub leaves: bool,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    /// Its id of 40 hexadecimal digits.
    pub id: String,
    /// `HOST:PORT` for clients.
    pub address: String,
    /// Whether it is the one that was asked.
    pub myself: bool,
    /// Whether it is a master.
    pub master: bool,
    /// Whether others take it for failed or cannot reach it yet.
    pub failed: bool,
    /// Its slots.
    pub slots: SlotSet,
    /// Its slots that are on their way; only a node that was asked tells its own.
    pub open: Vec<Open>,
}

/// Parses the answer to `CLUSTER NODES` of the server at `address`.
pub fn parse(address: &str, text: &str) -> Result<Vec<ClusterNode>, ShardError> {
    let mut nodes = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let node = node(line).filter(|_| nodes.len() < NODES);
        nodes.push(node.ok_or_else(|| ShardError::Topology {
            address: address.to_string(),
            line: line.chars().take(200).collect(),
        })?);
    }
    Ok(nodes)
}

fn hexadecimal(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn node(line: &str) -> Option<ClusterNode> {
    let mut words = line.split(' ');
    let id = words.next().filter(|id| hexadecimal(id))?.to_string();
    // `host:port@busport`, and a host name behind a comma.
    let address = words.next()?.split('@').next()?.split(',').next()?.to_string();
    let flags: Vec<&str> = words.next()?.split(',').collect();
    // Master, ping sent, pong received, epoch, link state.
    let link = words.nth(4)?;
    let mut slots = SlotSet::new();
    let mut open = Vec::new();
    for word in words {
        if let Some(inner) = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
            let (slot, other, leaves) = match inner.split_once("->-") {
                Some((slot, other)) => (slot, other, true),
                None => {
                    let (slot, other) = inner.split_once("-<-")?;
                    (slot, other, false)
                }
            };
            let slot = slot.parse().ok().filter(|slot| *slot < SLOTS)?;
            open.push(Open { slot, other: Some(other).filter(|id| hexadecimal(id))?.to_string(), leaves });
            continue;
        }
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= SLOTS {
            return None;
        }
        for slot in first..=last {
            slots.insert(slot);
        }
    }
    let has = |flag: &str| flags.contains(&flag);
    let myself = has("myself");
    Some(ClusterNode {
        id,
        address,
        myself,
        master: has("master"),
        failed: has("fail")
            || has("fail?")
            || has("handshake")
            || has("noaddr")
            || (link != "connected" && !myself),
        slots,
        open,
    })
}

/// Asks a server for its nodes. A node without a host, which is how a server that has met nobody shows
/// itself, gets the address that was asked.
pub fn nodes(client: &mut RedisClient) -> Result<Vec<ClusterNode>, ShardError> {
    let text = client.text(&["CLUSTER", "NODES"])?;
    let mut nodes = parse(client.address(), &text)?;
    for node in &mut nodes {
        if node.myself && node.address.starts_with(':') {
            node.address = client.address().to_string();
        }
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: &str = "07c37dfeb235213a872192d90877d0cd55635b91";
    const B: &str = "67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1";

    #[test]
    fn nodes_have_slots_and_open_ones() {
        let text = format!(
            "{A} 127.0.0.1:30004@31004,hostname4 slave {B} 0 1426238317239 4 connected\n\
             {B} 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5460 7000 [77->-{A}] [93-<-{A}]\n"
        );
        let nodes = parse("here", &text).unwrap();
        assert_eq!(
            (nodes[0].address.as_str(), nodes[0].master, nodes[0].failed),
            ("127.0.0.1:30004", false, false)
        );
        assert_eq!((nodes[1].slots.len(), nodes[1].myself, nodes[1].open.len()), (5_462, true, 2));
        assert_eq!(nodes[1].open[0], Open { slot: 77, other: A.into(), leaves: true });
        assert!(!nodes[1].open[1].leaves);
        for wrong in [
            "x",
            &format!("{A} a:1@2 master - 0 0 1 connected 5-4"),
            &format!("{A} a:1@2 master - 0 0 1 connected 0-16384"),
        ] {
            assert!(parse("here", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_cannot_be_reached_has_failed_but_for_oneself() {
        for (flags, link, failed) in [
            ("master", "connected", false),
            ("master", "disconnected", true),
            ("slave", "disconnected", true),
            // A node has no link to itself.
            ("myself,master", "disconnected", false),
            ("myself,master", "connected", false),
            ("master,fail", "connected", true),
            ("master,fail?", "connected", true),
            ("handshake", "connected", true),
            ("master,noaddr", "connected", true),
            ("myself,master,fail", "connected", true),
        ] {
            let text = format!("{A} 127.0.0.1:1@2 {flags} - 0 0 1 {link} 5\n");
            let nodes = parse("here", &text).unwrap();
            assert_eq!(nodes[0].failed, failed, "{flags} {link}");
            assert_eq!(nodes[0].master, flags.contains("master"), "{flags}");
            assert_eq!(nodes[0].myself, flags.contains("myself"), "{flags}");
            assert_eq!(nodes[0].slots.iter().collect::<Vec<_>>(), [5]);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "([0-9a-f]{40} [a-z0-9.:@]{0,20} [a-z,?]{0,20} (-|[0-9a-f]{40}) 0 0 1 [a-z]{0,9}( [\\[\\]0-9<>-]{0,20}){0,4}\n?){0,4}") {
            let _ = parse("here", &text);
        }
    }
}
