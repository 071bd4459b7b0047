//! Making a cluster of a plan, and moving slots while clients work.
//!
//! A slot moves as the cluster specification has it: the taker imports, the giver migrates, keys go
//! over by MIGRATE, then the taker, the giver and all others are told the owner, in this order. A
//! client is redirected meanwhile and loses nothing. What was interrupted is finished by the next run.

use crate::client::{ClientError, RedisClient};
use crate::resp::Value;
use crate::shard::ShardError;
use crate::shard::client::RedisAccess;
use crate::shard::plan::{Move, SlotPlan, moves};
use crate::shard::slots::{SLOTS, SlotSet};
use crate::shard::topology::{self, ClusterNode};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Keys that one MIGRATE moves.
const KEYS: usize = 64;
/// Slots that are on their way at a time. More save round trips, and redirect more requests.
const SLOTS_AT_A_TIME: usize = 16;
/// How long nodes may take to agree.
const AGREEMENT: Duration = Duration::from_secs(60);
/// How long one MIGRATE may take, in milliseconds.
const MIGRATE: &str = "10000";
/// How long is waited before what was interrupted is tried again.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(200);
/// Times that a MIGRATE is tried.
const TRIES: u32 = 5;

/// What applying a plan did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Whether the cluster was made anew.
    pub created: bool,
    /// Endpoints that joined.
    pub joined: Vec<String>,
    /// Slots that moved.
    pub moved_slots: usize,
    /// Keys that moved with them.
    pub moved_keys: u64,
    /// Moves that an earlier run had left open.
    pub finished: usize,
}

struct Cluster {
    access: RedisAccess,
    clients: Vec<RedisClient>,
    ids: Vec<String>,
}

/// How a run goes on: slots that are done, and slots in all.
pub type OnProgress<'a> = &'a mut dyn FnMut(usize, usize);

fn refused(address: &str, reason: impl Into<String>) -> ShardError {
    ShardError::Refused { address: address.to_string(), reason: reason.into() }
}

/// Makes the servers of `plan` a cluster with its shares, or changes the cluster that they are.
///
/// With `dry_run` nothing changes. Slots of masters that the plan does not name move to those it names.
pub fn apply(
    plan: &SlotPlan,
    access: &RedisAccess,
    dry_run: bool,
    report: OnProgress<'_>,
) -> Result<Done, ShardError> {
    let mut done = Done::default();
    attempt(plan, access, dry_run, report, &mut done).map(|()| done)
}

/// The same through stalls: an endpoint that does not answer is waited for, and what was interrupted goes on, until
/// nothing has moved for `longest`. `waiting` is told why, once for each time that nothing answers.
pub fn apply_through_stalls(
    plan: &SlotPlan,
    access: &RedisAccess,
    dry_run: bool,
    longest: Duration,
    report: OnProgress<'_>,
    waiting: &mut dyn FnMut(&ShardError),
) -> Result<Done, ShardError> {
    let mut done = Done::default();
    let mut stalled: Option<Instant> = None;
    loop {
        let before = done.clone();
        let Err(error) = attempt(plan, access, dry_run, report, &mut done) else { return Ok(done) };
        // Before anything was done, an address where nobody listens is more likely a wrong one.
        let nobody = matches!(&error, ShardError::Client(error) if error.is_nobody_there());
        if !error.may_pass() || nobody && stalled.is_none() && done == Done::default() {
            return Err(error);
        }
        if before != done {
            stalled = None;
        }
        let since = *stalled.get_or_insert_with(|| {
            waiting(&error);
            Instant::now()
        });
        if since.elapsed() >= longest {
            return Err(ShardError::Stalled { cause: Box::new(error), seconds: longest.as_secs_f64() });
        }
        sleep(BETWEEN_ATTEMPTS);
    }
}

fn attempt(
    plan: &SlotPlan,
    access: &RedisAccess,
    dry_run: bool,
    report: OnProgress<'_>,
    done: &mut Done,
) -> Result<(), ShardError> {
    let mut clients = Vec::new();
    for endpoint in &plan.endpoint {
        let mut client = access.connect(&endpoint.address)?;
        if client.info("cluster", "cluster_enabled")?.as_deref() != Some("1") {
            return Err(refused(
                &endpoint.address,
                "it runs without clusters; start it with `cluster-enabled yes`",
            ));
        }
        clients.push(client);
    }
    let views: Vec<Vec<ClusterNode>> = clients.iter_mut().map(topology::nodes).collect::<Result<_, _>>()?;
    let fresh: Vec<bool> = views.iter().map(|nodes| nodes.len() == 1 && nodes[0].slots.is_empty()).collect();
    let myself = |nodes: &[ClusterNode]| {
        nodes.iter().find(|node| node.myself).map(|node| (node.id.clone(), node.master))
    };
    let mut ids = Vec::new();
    for (endpoint, nodes) in plan.endpoint.iter().zip(&views) {
        match myself(nodes) {
            Some((id, true)) => ids.push(id),
            // A master that gives its last slot becomes a replica of the one that takes it.
            Some((id, false)) if endpoint.slots == 0 => ids.push(id),
            _ => {
                return Err(refused(
                    &endpoint.address,
                    "it is a replica; give it no slots, or make it an empty master first: CLUSTER RESET SOFT",
                ));
            }
        }
    }
    let seed = fresh.iter().position(|fresh| !fresh);
    for (index, endpoint) in plan.endpoint.iter().enumerate() {
        if fresh[index] && clients[index].number(&["DBSIZE"])? > 0 {
            return Err(refused(&endpoint.address, "it holds keys and no slots; empty it before it joins"));
        }
        if let Some(seed) = seed
            && !fresh[index]
            && !done.created
            && !done.joined.contains(&endpoint.address)
            && !views[seed].iter().any(|node| node.id == ids[index])
        {
            let other = &plan.endpoint[seed].address;
            return Err(refused(&endpoint.address, format!("it belongs to another cluster than {other}")));
        }
    }
    done.created |= seed.is_none();
    if !done.created {
        for (endpoint, fresh) in plan.endpoint.iter().zip(&fresh) {
            if *fresh && !done.joined.contains(&endpoint.address) {
                done.joined.push(endpoint.address.clone());
            }
        }
    }
    // CLUSTER MEET of nodes that know each other does no harm.
    let joining: Vec<bool> =
        plan.endpoint.iter().map(|endpoint| done.joined.contains(&endpoint.address)).collect();
    let mut cluster = Cluster { access: access.clone(), clients, ids };
    let wanted: Vec<u16> = plan.endpoint.iter().map(|endpoint| endpoint.slots).collect();
    if done.created {
        if !dry_run {
            cluster.create(&wanted, &fresh)?;
            cluster.agree()?;
        }
        return Ok(());
    }
    let seed = seed.unwrap_or(0);
    if !dry_run {
        cluster.join(seed, &joining)?;
        // A node that has just joined takes no keys before it knows of every slot.
        cluster.agree()?;
    }
    cluster.add_others(&views[seed])?;
    if !dry_run {
        cluster.finish_open(&mut done.finished, &mut done.moved_keys)?;
    }
    let nodes = topology::nodes(&mut cluster.clients[seed])?;
    let owned: Vec<SlotSet> = cluster
        .ids
        .iter()
        .map(|id| nodes.iter().find(|node| node.id == *id).map(|node| node.slots.clone()).unwrap_or_default())
        .collect();
    let total: u32 = owned.iter().map(|set| u32::from(set.len())).sum();
    if total != u32::from(SLOTS) {
        let address = cluster.clients[seed].address().to_string();
        let reason = format!("{total} of {SLOTS} slots have an owner that answers; repair the cluster first");
        return Err(ShardError::NotReady { address, reason });
    }
    let mut wanted = wanted;
    wanted.resize(owned.len(), 0);
    let steps = moves(&owned, &wanted);
    if dry_run {
        done.moved_slots = steps.len();
    } else {
        let mut at = 0;
        for same_ends in steps.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)) {
            for batch in same_ends.chunks(SLOTS_AT_A_TIME) {
                cluster.migrate(batch, &mut done.moved_keys)?;
                at += batch.len();
                done.moved_slots += batch.len();
                report(at, steps.len());
            }
        }
        cluster.agree()?;
    }
    Ok(())
}

impl Cluster {
    /// Gives servers their slots and makes them meet. Those that are not `fresh` have theirs of an attempt before.
    fn create(&mut self, wanted: &[u16], fresh: &[bool]) -> Result<(), ShardError> {
        let mut first = 0;
        for (index, (client, count)) in self.clients.iter_mut().zip(wanted).enumerate() {
            let last = first + count.saturating_sub(1);
            if fresh[index] {
                // Epochs that differ from the start spare the nodes a conflict to resolve. It may have its own already.
                let epoch = (index + 1).to_string();
                match client.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]) {
                    Err(ClientError::Refused { reply, .. }) if reply.contains("already non-zero") => {}
                    other => drop(other?),
                }
                if *count > 0 {
                    client.ask(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()])?;
                }
            }
            first += count;
        }
        let all: Vec<bool> = (0..self.clients.len()).map(|index| index > 0).collect();
        self.join(0, &all)
    }

    /// Makes the chosen nodes meet that of index `seed`, and waits until all know all.
    fn join(&mut self, seed: usize, chosen: &[bool]) -> Result<(), ShardError> {
        // Everybody is introduced to everybody: hearsay alone takes seconds to go round.
        let addresses: Vec<String> = self.clients.iter().map(|client| client.address().to_string()).collect();
        for (index, client) in self.clients.iter_mut().enumerate().filter(|(index, _)| chosen[*index]) {
            for (other, address) in addresses.iter().enumerate() {
                if other != index && (other == seed || !chosen[other] || other < index) {
                    let (host, port) = address.rsplit_once(':').unwrap_or((address, "0"));
                    client.ask(&["CLUSTER", "MEET", host.trim_matches(['[', ']']), port])?;
                }
            }
        }
        let ids = self.ids.clone();
        self.wait("the joining of all nodes", |nodes| {
            ids.iter().all(|id| nodes.iter().any(|node| node.id == *id && !node.failed))
                && chosen
                    .iter()
                    .zip(&ids)
                    .all(|(chosen, id)| !chosen || nodes.iter().any(|node| node.id == *id && node.master))
        })
    }

    /// Waits until `agreed` holds for what every node says.
    fn wait(&mut self, what: &str, agreed: impl Fn(&[ClusterNode]) -> bool) -> Result<(), ShardError> {
        let began = Instant::now();
        loop {
            let mut all = true;
            for client in &mut self.clients {
                all &= agreed(&topology::nodes(client)?);
            }
            if all {
                return Ok(());
            }
            if began.elapsed() > AGREEMENT {
                return Err(ShardError::Late { what: what.to_string(), seconds: AGREEMENT.as_secs() });
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// Waits until every node gives the same slots to the same nodes and serves them.
    fn agree(&mut self) -> Result<(), ShardError> {
        let mut expected: Vec<(String, SlotSet)> = Vec::new();
        for (client, id) in self.clients.iter_mut().zip(&self.ids) {
            let nodes = topology::nodes(client)?;
            let slots =
                nodes.iter().find(|node| node.myself).map(|node| node.slots.clone()).unwrap_or_default();
            expected.push((id.clone(), slots));
        }
        self.wait("the agreement of all nodes on the slots", |nodes| {
            expected.iter().all(|(id, slots)| nodes.iter().any(|node| node.id == *id && node.slots == *slots))
        })?;
        let began = Instant::now();
        for client in &mut self.clients {
            while !client.text(&["CLUSTER", "INFO"])?.contains("cluster_state:ok") {
                if began.elapsed() > AGREEMENT {
                    let what = format!("the state `ok` of {}", client.address());
                    return Err(ShardError::Late { what, seconds: AGREEMENT.as_secs() });
                }
                sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }

    /// Connects to masters that the plan does not name: they give slots, and have to be told owners.
    fn add_others(&mut self, nodes: &[ClusterNode]) -> Result<(), ShardError> {
        for node in nodes.iter().filter(|node| node.master && !node.failed) {
            if !self.ids.contains(&node.id) {
                self.clients.push(self.access.connect(&node.address)?);
                self.ids.push(node.id.clone());
            }
        }
        Ok(())
    }

    /// Finishes moves that an earlier run began.
    fn finish_open(&mut self, finished: &mut usize, keys: &mut u64) -> Result<(), ShardError> {
        let mut open: Vec<Move> = Vec::new();
        for index in 0..self.clients.len() {
            let nodes = topology::nodes(&mut self.clients[index])?;
            for slot in nodes.into_iter().filter(|node| node.myself).flat_map(|node| node.open) {
                let Some(other) = self.ids.iter().position(|id| *id == slot.other) else {
                    let reason =
                        format!("slot {} is on its way to or from a node that does not answer", slot.slot);
                    let address = self.clients[index].address().to_string();
                    return Err(ShardError::NotReady { address, reason });
                };
                let (from, to) = if slot.leaves { (index, other) } else { (other, index) };
                let step = Move { slot: slot.slot, from, to };
                if !open.contains(&step) {
                    open.push(step);
                }
            }
        }
        for step in &open {
            self.migrate(&[*step], keys)?;
            *finished += 1;
        }
        Ok(())
    }

    /// Moves slots of one giver to one taker with their keys, which are counted.
    fn migrate(&mut self, steps: &[Move], moved_keys: &mut u64) -> Result<(), ShardError> {
        let Some(Move { from, to, .. }) = steps.first().copied() else { return Ok(()) };
        let (giver, taker) = (self.ids[from].clone(), self.ids[to].clone());
        // Where an interrupted run had told one side already, its word stands.
        let begun =
            |refusal: &str| refusal.contains("already the owner") || refusal.contains("not the owner");
        self.set_slots(to, steps, "IMPORTING", &giver, begun)?;
        self.set_slots(from, steps, "MIGRATING", &taker, begun)?;
        for step in steps {
            self.migrate_keys(*step, moved_keys)?;
        }
        // The taker first: a slot that nobody owns for a moment would refuse its clients.
        self.set_slots(to, steps, "NODE", &taker, |_| false)?;
        // A giver that hears first that it has no slot left is a replica by now.
        self.set_slots(from, steps, "NODE", &taker, |refusal| refusal.contains("only with masters"))?;
        for index in 0..self.clients.len() {
            if index != to && index != from {
                // Others hear of it from the taker too, so a replica that refuses does no harm.
                self.set_slots(index, steps, "NODE", &taker, |_| true)?;
            }
        }
        Ok(())
    }

    /// Tells node `index` the same of several slots at once; refusals that are `harmless` are passed
    /// over.
    fn set_slots(
        &mut self,
        index: usize,
        steps: &[Move],
        word: &str,
        node: &str,
        harmless: impl Fn(&str) -> bool,
    ) -> Result<(), ShardError> {
        let client = &mut self.clients[index];
        let slots: Vec<String> = steps.iter().map(|step| step.slot.to_string()).collect();
        let requests: Vec<Vec<&[u8]>> = slots
            .iter()
            .map(|slot| [b"CLUSTER", b"SETSLOT", slot.as_bytes(), word.as_bytes(), node.as_bytes()].to_vec())
            .collect();
        client.send(&requests)?;
        let mut refusal = None;
        for slot in &slots {
            match client.receive()? {
                Value::Error(reply) if !harmless(&reply) => refusal = Some((slot, reply)),
                _ => {}
            }
        }
        match refusal {
            None => Ok(()),
            Some((slot, reply)) => {
                let (address, command) =
                    (client.address().to_string(), format!("CLUSTER SETSLOT {slot} {word}"));
                Err(ClientError::Refused { address, command, reply }.into())
            }
        }
    }

    fn migrate_keys(&mut self, step: Move, moved_keys: &mut u64) -> Result<(), ShardError> {
        let slot = step.slot.to_string();
        let target = self.clients[step.to].address().to_string();
        let (host, port) = target.rsplit_once(':').unwrap_or((&target, "0"));
        let host = host.trim_matches(['[', ']']).to_string();
        let mut failures = 0;
        loop {
            let giver = &mut self.clients[step.from];
            let words = ["CLUSTER", "GETKEYSINSLOT", &slot, &KEYS.to_string()];
            let reply = giver.ask(&words)?;
            let keys: Vec<&[u8]> = match &reply {
                Value::Array(keys) => keys
                    .iter()
                    .filter_map(|key| match key {
                        Value::Bulk(key) => Some(key.as_slice()),
                        _ => None,
                    })
                    .collect(),
                other => return Err(giver.unexpected(&words, other).into()),
            };
            if keys.is_empty() {
                return Ok(());
            }
            // A key that is still at the giver is the current one: the taker can only have a copy of a
            // MIGRATE whose answer was lost.
            let mut words: Vec<&[u8]> =
                vec![b"MIGRATE", host.as_bytes(), port.as_bytes(), b"", b"0", MIGRATE.as_bytes(), b"REPLACE"];
            match (&self.access.user, &self.access.password) {
                (Some(user), Some(password)) => {
                    words.extend([b"AUTH2".as_slice(), user.as_bytes(), password.as_bytes()]);
                }
                (None, Some(password)) => words.extend([b"AUTH".as_slice(), password.as_bytes()]),
                _ => {}
            }
            words.push(b"KEYS");
            words.extend(&keys);
            match giver.ask_bytes(&words) {
                Ok(_) => {
                    *moved_keys += keys.len() as u64;
                    failures = 0;
                }
                Err(error) => {
                    failures += 1;
                    if failures >= TRIES {
                        return Err(error.into());
                    }
                    // A giver stands still while it waits for a taker that does not answer, so it is not asked to again.
                    self.clients[step.to].ask(&["PING"])?;
                    sleep(Duration::from_millis(100));
                }
            }
        }
    }
}
