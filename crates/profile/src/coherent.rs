//! What numbers of one machine have to be to each other, whoever says them: a file, an overlay, a setting or a choice.

use crate::error::{Place, ProfileError, list};
use crate::schema::Kind;
use crate::{Cache, Engine, EngineWork, MOST_ENDPOINTS, Machine, Memory, Nic, Problem, Reach, WorkSpeed};

/// A number that does not go with others of its machine.
pub(crate) struct Misfit {
    /// What it is about by dotted names, the one to change first; a key of words may be among them.
    pub names: Vec<String>,
    problem: Box<Problem>,
    help: String,
}

impl Misfit {
    fn out_of_range(names: [String; 2], value: String, bound: String, help: &str) -> Misfit {
        let name = names[0].clone();
        Misfit {
            names: names.into(),
            problem: Box::new(Problem::OutOfRange { name, value, bound }),
            help: help.to_string(),
        }
    }

    fn structure(names: Vec<String>, reason: String, help: impl Into<String>) -> Misfit {
        Misfit { names, problem: Box::new(Problem::Structure { reason }), help: help.into() }
    }

    pub(crate) fn refusal(self, place: Option<Place<'_>>) -> ProfileError {
        ProfileError::new(*self.problem, self.help, place)
    }
}

/// Refuses a machine whose numbers contradict each other.
pub(crate) fn check(machine: &Machine) -> Result<(), Misfit> {
    check_count(machine)?;
    check_slots(&machine.nic, machine.endpoints.len())?;
    machine.all_memories().try_for_each(check_completions)?;
    machine.engines.iter().try_for_each(check_engine)?;
    check_works(machine)?;
    machine.caches.iter().try_for_each(check_arrivals)?;
    machine.reaches.iter().try_for_each(|reach| check_reach(machine, reach))
}

/// No more machines than the cluster has.
pub(crate) fn check_count(machine: &Machine) -> Result<(), Misfit> {
    if machine.count <= machine.available {
        return Ok(());
    }
    let role = &machine.role;
    Err(Misfit::out_of_range(
        [format!("{role}.count"), format!("{role}.available")],
        machine.count.to_string(),
        format!("at most {role}.available, {}", machine.available),
        &format!("lower the count, or set {role}.available too"),
    ))
}

/// No endpoint keeps more slots than it may hold, nor do more endpoints keep some than are told apart.
fn check_slots(nic: &Nic, endpoints: usize) -> Result<(), Misfit> {
    let Nic { name, inflight_slots: slots, reserved_inflight_slots: reserved, .. } = nic;
    let own = format!("{name}.reserved_inflight_slots");
    if !nic.carries_verbs {
        return Ok(());
    }
    if reserved > slots {
        return Err(Misfit::out_of_range(
            [own, format!("{name}.inflight_slots")],
            reserved.to_string(),
            format!("at most {name}.inflight_slots, {slots}"),
            &format!(
                "each endpoint keeps so many of those that it may hold: keep fewer, or raise `{name}.inflight_slots`"
            ),
        ));
    }
    if *reserved > 0 && endpoints > MOST_ENDPOINTS {
        return Err(Misfit::structure(
            vec![own.clone()],
            format!(
                "`{own}` keeps in-flight slots for each of {endpoints} endpoints, and at most {MOST_ENDPOINTS} are modelled"
            ),
            "write 0, which lets any of them hold all",
        ));
    }
    Ok(())
}

/// How a memory's answers to reads are cut is said whole or not at all.
fn check_completions(memory: &Memory) -> Result<(), Misfit> {
    let keys = [
        ("read_completion_boundary", memory.read_completion_boundary.is_some()),
        ("cut_up_to", memory.cut_up_to.is_some()),
        ("combined_share", memory.combined_share.is_some()),
    ];
    let is_whole = keys.iter().all(|(_, is_said)| *is_said == keys[0].1);
    match keys.iter().find(|(_, is_said)| !is_said).filter(|_| !is_whole) {
        Some((lacking, _)) => Err(Misfit::structure(
            keys.iter().map(|(key, _)| format!("{}.{key}", memory.name)).collect(),
            format!("`[{}]` says how completions are cut, and lacks `{lacking}`", memory.name),
            "write `read_completion_boundary`, `cut_up_to` and `combined_share`, or none of them",
        )),
        None => Ok(()),
    }
}

/// An engine has the numbers of its work alone, and slows down by two numbers or not at all.
fn check_engine(engine: &Engine) -> Result<(), Misfit> {
    let Engine { name, work, .. } = engine;
    if engine.slow_above.is_some() != engine.slow_rate.is_some() {
        let lacking = if engine.slow_above.is_some() { "slow_rate" } else { "slow_above" };
        return Err(Misfit::structure(
            [lacking, "slow_above", "slow_rate"].map(|key| format!("{name}.{key}")).into(),
            format!("`[{name}]` has one of `slow_above` and `slow_rate`"),
            "write both, or none where the engine does not slow down",
        ));
    }
    let of_one_work = [
        ("output_share", engine.output_share.is_some(), EngineWork::Transform),
        ("store_latency", engine.store_latency.is_some(), EngineWork::Store),
    ];
    let word = |work: EngineWork| {
        EngineWork::NAMES.into_iter().find(|(_, one)| *one == work).expect("every work has a name").0
    };
    match of_one_work.into_iter().find(|(_, is_said, of)| *is_said && of != work) {
        Some((key, _, of)) => Err(Misfit::structure(
            vec![format!("{name}.{key}")],
            format!(
                "`{name}.{key}` is of engines that {}, and `[{name}]` has `work = \"{}\"`",
                word(of),
                word(*work)
            ),
            format!("leave it out, or write `work = \"{}\"`", word(of)),
        )),
        None => Ok(()),
    }
}

/// A kind of work is told by one number, and counted alike wherever it was measured.
fn check_works(machine: &Machine) -> Result<(), Misfit> {
    let numbers = |speed: &WorkSpeed| {
        let WorkSpeed { operations_per_s, operation_time, byte_rate, .. } = speed;
        [operations_per_s.is_some(), operation_time.is_some(), byte_rate.is_some()]
    };
    let keys = || Kind::Work.keys().map(|key| key.name);
    let mut seen: Vec<&WorkSpeed> = Vec::new();
    for speed in machine.endpoints.iter().flat_map(|one| &one.processor.works) {
        let (name, work) = (&speed.name, &speed.work);
        let count = numbers(speed).into_iter().filter(|is_said| *is_said).count();
        if count != 1 {
            return Err(Misfit::structure(
                keys().map(|key| format!("{name}.{key}")).collect(),
                format!("`[{name}]` has {count} of the numbers that say how fast a thread does `{work}`"),
                format!("write one of {}", list(keys())),
            ));
        }
        let is_other = |one: &&&WorkSpeed| one.work == *work && one.counts_bytes() != speed.counts_bytes();
        if let Some(other) = seen.iter().find(is_other) {
            return Err(Misfit::structure(
                vec![format!("{name}.work")],
                format!(
                    "`{work}` is counted in bytes in one of `[{}]` and `[{name}]`, and in operations in the other",
                    other.name
                ),
                "count it alike on every processor, or give one of them another name",
            ));
        }
        seen.push(speed);
    }
    Ok(())
}

/// What a NIC wrote last lies in a cache up to its capacity.
fn check_arrivals(cache: &Cache) -> Result<(), Misfit> {
    let Cache { name, capacity, .. } = cache;
    match cache.arrivals.filter(|arrivals| arrivals > capacity) {
        Some(arrivals) => Err(Misfit::out_of_range(
            [format!("{name}.arrivals"), format!("{name}.capacity")],
            arrivals.to_string(),
            format!("at most {name}.capacity, {capacity}"),
            "they are the newest bytes that lie in the cache: write at most what it holds",
        )),
        None => Ok(()),
    }
}

/// A way leads through caches each of which answers what nearer ones do not hold, and sooner than the memory does; and where a
/// processor's last cache stands before the memory, no other one is nearer to what lies behind it.
fn check_reach(machine: &Machine, reach: &Reach) -> Result<(), Misfit> {
    let latency = format!("{}.latency", reach.name);
    let mut nearer: Option<&Cache> = None;
    for name in &reach.through {
        let cache = machine.cache(name);
        if let Some(nearer) = nearer.filter(|nearer| nearer.capacity >= cache.capacity) {
            let capacity = |cache: &Cache| format!("{}.capacity", cache.name);
            return Err(Misfit::structure(
                vec![format!("{}.through", reach.name), capacity(cache), capacity(nearer)],
                format!(
                    "`{name}` of {} stands behind `{}` of {} in `through` of `[{}]`, and would answer nothing",
                    cache.capacity, nearer.name, nearer.capacity, reach.name
                ),
                "name each cache once, the nearest and smallest first",
            ));
        }
        if reach.latency < cache.latency {
            return Err(Misfit::out_of_range(
                [latency, format!("{name}.latency")],
                reach.latency.to_string(),
                format!("at least {name}.latency, {}", cache.latency),
                "it is the time of a load that no cache answers, the looks into them included",
            ));
        }
        nearer = Some(cache);
    }
    match machine.last_level(reach).filter(|(own, ..)| reach.latency < own.latency) {
        Some((own, last, _)) => Err(Misfit::out_of_range(
            [latency, format!("{}.latency", own.name)],
            reach.latency.to_string(),
            format!("at least {}.latency, {}", own.name, own.latency),
            &format!(
                "`{}` goes by `{}`, the last cache of `{}`, which takes so long to its own memory behind that cache: a memory \
                 that is slower for the one is slower for the other too",
                reach.processor, last.name, own.processor
            ),
        )),
        None => Ok(()),
    }
}
