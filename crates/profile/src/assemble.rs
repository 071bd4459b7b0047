//! From checked files to a system: who stands where, under which names, and whether it fits.

use crate::coherent;
use crate::document::{Document, Table, Words};
use crate::error::{MODE, Place, ProfileError, Source, list, suggestion};
use crate::schema::{Blank, Component, Kind};
use crate::{
    Cache, Category, Endpoint, Engine, EngineWork, LEARNT_FIGURES, LargeTransferLimit, LearntErrors, Library,
    Link, Machine, Memory, Network, Nic, Number, PacketCosts, Pcie, Problem, Processor, Provenance, Reach,
    Switch, System, VerbCosts, WorkSpeed, work,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The modes that a card can be in.
const MODES: [&str; 3] = ["separated-host", "embedded-cpu", "nic"];

/// What may issue and answer operations.
const PROCESSORS: &[Kind] = &[Kind::Endpoint, Kind::Processor];
/// What payloads may lie in.
const MEMORIES: &[Kind] = &[Kind::Endpoint, Kind::Memory];
/// What links end at.
const ENDS: &[Kind] = &[Kind::Endpoint, Kind::Processor, Kind::Memory];

/// What a testbed writes for the device that is asked for, and a host for the node its slot joins.
const CARD: &str = "card";

/// Builds the system of a device in a testbed.
pub(crate) fn assemble(
    library: &Library,
    device: &Document,
    testbed: &Document,
    mode: Option<&str>,
) -> Result<System, ProfileError> {
    let header = device.require(Category::Device)?;
    let testbed_header = testbed.require(Category::Testbed)?;
    let asked = mode.map(|mode| Arc::new(Source { name: MODE.into(), text: mode.to_string() }));
    let machines: Vec<&Table> = testbed.tables.iter().filter(|table| table.kind == Kind::Machine).collect();
    let refuse_testbed = |what: &str, help: &str| {
        Err(ProfileError::new(
            Problem::Missing { what: what.into(), place: "the testbed".into() },
            help,
            Some((&testbed.source, testbed_header.span.clone())),
        ))
    };
    let Some(network_table) = testbed.tables.iter().find(|table| table.kind == Kind::Network) else {
        return refuse_testbed(
            "`[network]`",
            "add `[network]` with `kind = \"network\"`, `delay`, `mtu`, `packet_header`",
        );
    };
    let Some(server) = machines.iter().find(|table| table.name == "server") else {
        return refuse_testbed(
            "`[server]`",
            "add `[server]` with `kind = \"machine\"`, `device = \"card\"`, `host`, `count`, `available`",
        );
    };
    if server.words("device").first() != CARD {
        return Err(ProfileError::new(
            Problem::Structure { reason: "the server does not carry the device that is asked for".into() },
            "write `device = \"card\"` for the server; other machines may carry a device by name",
            Some(server.words_place("device")),
        ));
    }
    let mut system = System {
        device: header.word("name").unwrap_or_default().to_string(),
        testbed: testbed_header.word("name").unwrap_or_default().to_string(),
        mode: mode.or(header.word("mode")).unwrap_or_default().to_string(),
        machines: Vec::new(),
        network: Network::blank(),
        numbers: BTreeMap::new(),
        variants: Vec::new(),
        overlays: Vec::new(),
        scales: Vec::new(),
        learnt_errors: Vec::new(),
        is_latency_untold: is_latency_untold(device),
        host_share: None,
    };
    // They were measured of this device where its own file has it stand.
    if Arc::ptr_eq(&device.source, &testbed.source) {
        for table in testbed.tables.iter().filter(|table| table.kind == Kind::Errors) {
            let mut errors = LearntErrors::of_words(table);
            // They are no numbers of the system: nothing that is predicted moves with them.
            fill(&mut errors, &table.name, table, &mut BTreeMap::new());
            system.learnt_errors.push(errors);
        }
    }
    let roles: Vec<&str> = machines.iter().map(|table| table.name.as_str()).collect();
    fill(&mut system.network, "network", network_table, &mut system.numbers);
    for table in machines {
        let named = table.words("device");
        let other = (named.first() != CARD)
            .then(|| library.open(Category::Device, named.first(), Some(table.words_place("device"))))
            .transpose()?;
        let host =
            library.open(Category::Host, table.words("host").first(), Some(table.words_place("host")))?;
        let card = other.as_ref().unwrap_or(device);
        let card_header = card.require(Category::Device)?;
        let asked = asked.as_ref().filter(|_| other.is_none());
        let (mode, mode_place) = match asked {
            Some(asked) => (asked.text.as_str(), (asked, 0..asked.text.len())),
            None => {
                (card_header.word("mode").unwrap_or_default(), (&card.source, card_header.span_of("mode")))
            }
        };
        // What a testbed fits into its server; a file that describes a device beside its testbed has it as the card's.
        let is_own = !Arc::ptr_eq(&testbed.source, &card.source);
        let mut plan = Plan {
            role: table,
            card,
            host: &host,
            fitted: Vec::new(),
            elsewhere: Vec::new(),
            mode,
            mode_place,
            roles: &roles,
        };
        let engines = testbed.tables.iter().filter(|one| one.kind == Kind::Engine);
        for engine in engines.filter(|_| is_own && table.name == "server") {
            plan.fit(library, engine)?;
        }
        let machine = plan.build(&mut system.numbers)?;
        system.machines.push(machine);
    }
    Ok(system)
}

impl LearntErrors {
    /// What a table's words say, its numbers still blank.
    pub(crate) fn of_words(table: &Table) -> LearntErrors {
        LearntErrors {
            figure: table.words("figure").values.concat(),
            traffic: table.words("traffic").values,
            path: table.words("path").values.concat(),
            bound_by: table.words("bound_by").values,
            ..Blank::blank()
        }
    }
}

/// Whether a device's file has numbers that its own logs told, and no error of its latencies, wherever it stands.
fn is_latency_untold(device: &Document) -> bool {
    let is_learnt =
        |number: &Number| matches!(number.provenance, Provenance::MeasuredHere | Provenance::HeldHere);
    let [_, latency] = LEARNT_FIGURES;
    let is_of_latency =
        |table: &Table| table.kind == Kind::Errors && table.words("figure").first() == latency;
    device.tables.iter().any(|table| table.numbers.values().any(is_learnt))
        && !device.tables.iter().any(is_of_latency)
}

/// Puts a table's numbers into a component and into the list of numbers.
fn fill(
    component: &mut dyn Component,
    name: &str,
    table: &Table,
    numbers: &mut BTreeMap<String, Arc<Number>>,
) {
    for (key, number) in &table.numbers {
        let is_known = component.put(key, number.value);
        assert!(is_known, "{name}.{key} is in the schema and no component takes it");
        numbers.insert(format!("{name}.{key}"), Arc::new(number.clone()));
    }
}

fn structure(reason: String, help: impl Into<String>, place: Place<'_>) -> ProfileError {
    ProfileError::new(Problem::Structure { reason }, help, Some(place))
}

/// One machine to be built.
struct Plan<'a> {
    role: &'a Table,
    card: &'a Document,
    host: &'a Document,
    fitted: Vec<&'a Table>,
    /// Engines of the testbed that are part of another device, with its name.
    elsewhere: Vec<(String, String)>,
    mode: &'a str,
    mode_place: Place<'a>,
    roles: &'a [&'a str],
}

impl<'a> Plan<'a> {
    /// Takes an engine of the testbed where it is there with this card: one that is part of another device is not, nor one of a
    /// processor that the card lacks, and the machine's own engine of that name stands in its place.
    fn fit(&mut self, library: &Library, engine: &'a Table) -> Result<(), ProfileError> {
        if let Some(device) = engine.words("device").values.into_iter().next()
            && device != self.name_of(self.card, Category::Device)
        {
            library.open(Category::Device, &device, Some(engine.words_place("device")))?;
            self.elsewhere.push((engine.name.clone(), device));
            return Ok(());
        }
        let endpoint = engine.words("endpoint");
        let has_endpoint =
            endpoint.first() == "host" || self.named(PROCESSORS).contains(self.meant(endpoint.first()));
        let is_taken = self.of_kind(Kind::Engine).any(|own| own.name == engine.name);
        if has_endpoint && !is_taken {
            self.fitted.push(engine);
        }
        Ok(())
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.card
            .tables
            .iter()
            .chain(&self.host.tables)
            .chain(self.fitted.iter().copied())
            .filter(|t| !matches!(t.kind, Kind::Machine | Kind::Network | Kind::Errors))
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Table> {
        self.tables().filter(move |table| table.kind == kind)
    }

    fn named(&self, kinds: &'static [Kind]) -> BTreeSet<&str> {
        let tables = self.tables().filter(|table| kinds.contains(&table.kind));
        tables.map(|table| table.name.as_str()).collect()
    }

    /// The card's own processors and memories, which mode `nic` hides.
    fn card_ends(&self) -> Vec<&str> {
        let tables = self.card.tables.iter().filter(|table| ENDS.contains(&table.kind));
        tables.map(|table| table.name.as_str()).collect()
    }

    /// The machine's host, whatever its profile calls it; absent where the profile has none or several.
    fn host_endpoint(&self) -> Option<&str> {
        let mut own = self.host.tables.iter().filter(|table| table.kind == Kind::Endpoint);
        own.next().filter(|_| own.next().is_none()).map(|table| table.name.as_str())
    }

    /// The component that a name in a file means: `host` is the machine's host where nothing else is called so.
    fn meant<'n>(&'n self, name: &'n str) -> &'n str {
        let is_taken = || self.tables().any(|table| table.name == name);
        match self.host_endpoint() {
            Some(host) if name == "host" && !is_taken() => host,
            _ => name,
        }
    }

    fn prefix(&self) -> String {
        if self.role.name == "server" { String::new() } else { format!("{}.", self.role.name) }
    }

    /// The dotted name of a component of this machine.
    fn full(&self, name: &str) -> String {
        if self.host_endpoint() == Some(name) && self.role.name != "server" {
            self.role.name.clone()
        } else {
            format!("{}{name}", self.prefix())
        }
    }

    fn build(&self, numbers: &mut BTreeMap<String, Arc<Number>>) -> Result<Machine, ProfileError> {
        self.check_names()?;
        self.check_mode()?;
        self.check_attached()?;
        let links = self.links()?;
        let absent: Vec<&str> = if self.mode == "nic" { self.card_ends() } else { Vec::new() };
        let hidden = |name: &str| absent.contains(&self.meant(name));
        let mut nics = self.tables().filter(|table| matches!(table.kind, Kind::Nic | Kind::Port));
        let nic_table = nics.next().ok_or_else(|| self.no_nic())?;

        let carries_verbs = nic_table.kind == Kind::Nic;
        let mut nic = Nic { name: self.full("nic"), carries_verbs, ..Nic::blank() };
        fill(&mut nic, &self.full("nic"), nic_table, numbers);
        let mut machine = Machine {
            role: self.role.name.clone(),
            prefix: self.prefix(),
            device: self.name_of(self.card, Category::Device),
            host: self.name_of(self.host, Category::Host),
            nic,
            absent: absent.iter().map(|name| self.full(name)).collect(),
            engines_elsewhere: self.elsewhere.clone(),
            ..Machine::blank()
        };
        fill(&mut machine, &self.role.name, self.role, numbers);
        for table in self.of_kind(Kind::Switch) {
            let mut switch = Switch { name: self.full(&table.name), ..Switch::blank() };
            fill(&mut switch, &self.full(&table.name), table, numbers);
            machine.switches.push(switch);
        }
        for (table, from, to) in links.iter().filter(|(_, from, to)| !hidden(from) && !hidden(to)) {
            let name = self.full(&table.name);
            let pcie = (table.kind == Kind::Link).then(Pcie::blank);
            let (from, to) = (self.full(from), self.full(to));
            let mut link = Link { name: name.clone(), from, to, pcie, ..Link::blank() };
            fill(&mut link, &name, table, numbers);
            machine.links.push(link);
        }
        for table in self.of_kind(Kind::Memory).filter(|table| !hidden(&table.name)) {
            let mut memory = Memory { name: self.full(&table.name), ..Memory::blank() };
            fill(&mut memory, &self.full(&table.name), table, numbers);
            machine.memories.push(memory);
        }
        let processors = self.tables().filter(|table| PROCESSORS.contains(&table.kind));
        for table in processors.filter(|table| !hidden(&table.name)) {
            machine.endpoints.push(self.endpoint(table, &machine.memories, numbers)?);
        }
        let all: Vec<Memory> = machine.all_memories().cloned().collect();
        for Endpoint { processor, memory: own, .. } in &machine.endpoints {
            for memory in all.iter().filter(|memory| memory.name != own.name) {
                // Within its machine a memory is told by its own word: `host:gpu`, `backup.soc:gpu`.
                let short = memory.name.strip_prefix(&machine.prefix).unwrap_or(&memory.name);
                let name = format!("{}:{short}", processor.name);
                let (processor, memory) = (processor.clone(), memory.clone());
                machine.apart.push(Endpoint { name, processor, memory });
            }
        }
        for table in self.of_kind(Kind::Cache) {
            let mut cache = Cache { name: self.full(&table.name), ..Cache::blank() };
            fill(&mut cache, &self.full(&table.name), table, numbers);
            machine.caches.push(cache);
        }
        for table in self.of_kind(Kind::Reach) {
            let (processor, memory) = (table.words("processor"), table.words("memory"));
            if !hidden(processor.first()) && !hidden(memory.first()) {
                let through = table.words("through").values;
                let last_level_of = table.words("last_level_of").values;
                let last_level_of = last_level_of.first().filter(|processor| !hidden(processor));
                let mut reach = Reach {
                    name: self.full(&table.name),
                    processor: self.full(self.meant(processor.first())),
                    memory: self.full(self.meant(memory.first())),
                    through: through.iter().map(|cache| self.full(cache)).collect(),
                    last_level_of: last_level_of.map(|name| self.full(self.meant(name))),
                    ..Reach::blank()
                };
                fill(&mut reach, &self.full(&table.name), table, numbers);
                machine.reaches.push(reach);
            }
        }
        for table in self.of_kind(Kind::Engine) {
            let endpoint = table.words("endpoint");
            if !hidden(endpoint.first()) {
                let name = self.full(&table.name);
                let endpoint = self.full(self.meant(endpoint.first()));
                let work = self.work_of(table)?;
                let named = table.words("reaches").values;
                let reaches = named.iter().filter(|memory| !hidden(memory));
                let reaches: Vec<_> = reaches.map(|memory| self.full(self.meant(memory))).collect();
                // None named means all of the machine: an engine whose memories are all hidden has nothing to do.
                if reaches.is_empty() && !named.is_empty() {
                    continue;
                }
                let does = table.words("does").values;
                let mut engine =
                    Engine { name: name.clone(), endpoint, work, reaches, does, ..Engine::blank() };
                fill(&mut engine, &name, table, numbers);
                machine.engines.push(engine);
            }
        }
        for table in self.of_kind(Kind::LargeTransferLimit) {
            let (requester, responder) = (table.words("requester"), table.words("responder"));
            if !hidden(requester.first()) && !hidden(responder.first()) {
                let from = match requester.first() {
                    "*" => "*".into(),
                    requester => self.full(self.meant(requester)),
                };
                let to = self.full(self.meant(responder.first()));
                let name = self.full(&table.name);
                let verbs = table.words("verbs").values;
                let mut limit = LargeTransferLimit {
                    name: name.clone(),
                    requester: from,
                    responder: to,
                    verbs,
                    ..LargeTransferLimit::blank()
                };
                fill(&mut limit, &name, table, numbers);
                machine.large_transfer_limits.push(limit);
            }
        }
        coherent::check(&machine).map_err(|misfit| {
            let place = self.said_at(&misfit.names);
            misfit.refusal(Some(place))
        })?;
        let short = |name: &str| match name.strip_prefix(&machine.prefix) {
            Some(short) if name != machine.role => short.to_string(),
            _ => self.host_endpoint().unwrap_or(name).to_string(),
        };
        let files = format!("{} with {}", self.card.source.name, self.host.source.name);
        let made = work::other_work(&machine.endpoints, &machine.prefix, short, &files);
        for (other_work, number) in made {
            numbers.insert(format!("{}.{}", other_work.name, work::OTHER_WORK), Arc::new(number));
            machine.other_work.push(other_work);
        }
        Ok(machine)
    }

    /// Where this machine's files say the first of these numbers, or else the table that would.
    fn said_at(&self, names: &[String]) -> Place<'_> {
        let place = |name: &String| {
            let (component, key) = name.rsplit_once('.')?;
            // A machine and its host share a name; their keys differ.
            let has = |table: &&Table| {
                table.words.contains_key(key) || table.kind.keys().any(|entry| entry.name == key)
            };
            let table = self.tables().find(|table| self.full(&table.name) == component && has(table));
            let table = table.or((self.role.name == component).then_some(self.role))?;
            Some(match table.words.contains_key(key) {
                true => table.words_place(key),
                false => table.number_place(key),
            })
        };
        names.iter().find_map(place).unwrap_or_else(|| self.role.place())
    }

    /// A processor with its own memory: that of its table, or the one that its table names.
    fn endpoint(
        &self,
        table: &Table,
        memories: &[Memory],
        numbers: &mut BTreeMap<String, Arc<Number>>,
    ) -> Result<Endpoint, ProfileError> {
        let name = self.full(&table.name);
        let mut verbs = VerbCosts::blank();
        // A port carries no verbs, so that they cost nobody anything.
        if self.of_kind(Kind::Port).next().is_none() {
            let verbs_table = self.verbs_of(table)?;
            verbs.name = self.full(&verbs_table.name);
            fill(&mut verbs, &self.full(&verbs_table.name), verbs_table, numbers);
        }
        let is_meant = |one: &&Table| self.meant(one.words("processor").first()) == table.name;
        let packets = self.of_kind(Kind::Packets).find(is_meant).map(|own| {
            let mut costs = PacketCosts { name: self.full(&own.name), ..PacketCosts::blank() };
            fill(&mut costs, &self.full(&own.name), own, numbers);
            costs
        });
        let works = self.of_kind(Kind::Work).filter(is_meant).map(|own| {
            let (name, kind) = (self.full(&own.name), own.words("work").values.concat());
            let mut speed = WorkSpeed { name: name.clone(), work: kind, ..WorkSpeed::blank() };
            fill(&mut speed, &name, own, numbers);
            speed
        });
        let works = works.collect();
        let is_host = Arc::ptr_eq(&table.source, &self.host.source);
        let mut processor =
            Processor { name: name.clone(), is_host, verbs, packets, works, ..Processor::blank() };
        let mut memory = Memory { name: name.clone(), ..Memory::blank() };
        if table.kind == Kind::Processor {
            let own = self.full(&table.words("memory").values.concat());
            let found = memories.iter().find(|memory| memory.name == own);
            memory = found.expect("its memory was checked, and is the card's as it is").clone();
        }
        for (key, number) in &table.numbers {
            let is_known = processor.put(key, number.value) | memory.put(key, number.value);
            assert!(is_known, "{name}.{key} is in the schema and no component takes it");
            numbers.insert(format!("{name}.{key}"), Arc::new(number.clone()));
        }
        Ok(Endpoint { name, processor, memory })
    }

    fn work_of(&self, table: &Table) -> Result<EngineWork, ProfileError> {
        let word = table.words("work");
        if word.values.is_empty() {
            return Ok(EngineWork::Copy);
        }
        let found = EngineWork::NAMES.iter().find(|(name, _)| *name == word.first());
        found.map(|(_, work)| *work).ok_or_else(|| {
            ProfileError::new(
                Problem::Unknown {
                    what: "work".into(),
                    name: word.first().into(),
                    place: format!("for the engine `[{}]`", table.name),
                },
                suggestion(word.first(), EngineWork::NAMES.map(|(name, _)| name)),
                Some(table.words_place("work")),
            )
        })
    }

    fn name_of(&self, document: &Document, category: Category) -> String {
        document.header(category).and_then(|header| header.word("name")).unwrap_or_default().to_string()
    }

    fn no_nic(&self) -> ProfileError {
        let span = self.card.header(Category::Device).map_or(0..0, |header| header.span.clone());
        ProfileError::new(
            Problem::Missing { what: "`[nic]`".into(), place: "the device".into() },
            "add `[nic]` with `kind = \"nic\"`, `port_rate`, `pass_time` and the other numbers of a NIC",
            Some((&self.card.source, span)),
        )
    }

    fn check_names(&self) -> Result<(), ProfileError> {
        let mut seen = BTreeSet::new();
        for table in self.tables() {
            // The server's components have no prefix, so a role of the same name would be ambiguous.
            let role = self.role.name == "server" && self.roles.contains(&table.name.as_str());
            if role || !seen.insert(table.name.as_str()) {
                let what = if role { "a machine's role and a component called" } else { "the component" };
                return Err(ProfileError::new(
                    Problem::Duplicate { what: what.into(), name: table.name.clone() },
                    format!("the other stands in the machine `{}`; rename one of them", self.role.name),
                    Some(table.place()),
                ));
            }
        }
        Ok(())
    }

    fn check_mode(&self) -> Result<(), ProfileError> {
        if !MODES.contains(&self.mode) {
            return Err(ProfileError::new(
                Problem::Unknown { what: "mode".into(), name: self.mode.into(), place: "of a card".into() },
                suggestion(self.mode, MODES),
                Some(self.mode_place.clone()),
            ));
        }
        if self.mode != "nic" && !self.card.tables.iter().any(|table| PROCESSORS.contains(&table.kind)) {
            return Err(structure(
                format!("mode `{}` needs a processor on the card, and this device has none", self.mode),
                "use mode `nic`, or describe an `endpoint` in the device",
                self.mode_place.clone(),
            ));
        }
        Ok(())
    }

    /// Verbs, engines, large-transfer limits, processors and reaches must name components that the machine has.
    fn check_attached(&self) -> Result<(), ProfileError> {
        let named = |kinds: &'static [Kind], what: &str, name: &str, table: &Table, key: &str| {
            let endpoints = self.named(kinds);
            if endpoints.contains(self.meant(name)) {
                return Ok(());
            }
            Err(ProfileError::new(
                Problem::Unknown {
                    what: what.into(),
                    name: name.into(),
                    place: format!("for `{key}` of `[{}]`", table.name),
                },
                suggestion(name, endpoints.iter().copied()),
                Some(table.words_place(key)),
            ))
        };
        let known = |name: &str, table: &Table, key: &str| named(PROCESSORS, "endpoint", name, table, key);
        let memory = |name: &str, table: &Table, key: &str| named(MEMORIES, "memory", name, table, key);
        let mut served: BTreeMap<String, &str> = BTreeMap::new();
        for table in self.tables() {
            match table.kind {
                Kind::Verbs if self.of_kind(Kind::Port).next().is_some() => {
                    return Err(structure(
                        format!(
                            "`[{}]` says what verbs cost, and `[nic]` is a port, which carries none",
                            table.name
                        ),
                        "leave the table out, or describe a NIC with `kind = \"nic\"`",
                        table.place(),
                    ));
                }
                Kind::Verbs => {
                    let endpoint = table.words("endpoint");
                    known(endpoint.first(), table, "endpoint")?;
                    if let Some(first) = served.insert(self.meant(endpoint.first()).into(), &table.name) {
                        return Err(ProfileError::new(
                            Problem::Duplicate {
                                what: "the verbs table of".into(),
                                name: endpoint.first().to_string(),
                            },
                            format!("`[{first}]` is the other; keep one of them"),
                            Some(table.words_place("endpoint")),
                        ));
                    }
                }
                Kind::Engine => {
                    known(table.words("endpoint").first(), table, "endpoint")?;
                    for name in &table.words("reaches").values {
                        memory(name, table, "reaches")?;
                    }
                    self.check_engine(table)?;
                }
                Kind::Processor => {
                    let own = table.words("memory");
                    named(&[Kind::Memory], "memory", own.first(), table, "memory")?;
                }
                Kind::Packets => {
                    known(table.words("processor").first(), table, "processor")?;
                    let words = table.words("processor");
                    let own = self.meant(words.first());
                    let is_other = |one: &&Table| one.name != table.name;
                    let mut others = self.of_kind(Kind::Packets).filter(is_other);
                    if let Some(other) = others.find(|one| self.meant(one.words("processor").first()) == own)
                    {
                        return Err(ProfileError::new(
                            Problem::Duplicate { what: "the packets table of".into(), name: own.to_string() },
                            format!("`[{}]` is the other; keep one of them", other.name),
                            Some(table.words_place("processor")),
                        ));
                    }
                }
                Kind::Work => {
                    known(table.words("processor").first(), table, "processor")?;
                    self.check_work(table)?;
                }
                Kind::Reach => {
                    known(table.words("processor").first(), table, "processor")?;
                    memory(table.words("memory").first(), table, "memory")?;
                    for name in &table.words("through").values {
                        named(&[Kind::Cache], "cache", name, table, "through")?;
                    }
                    for name in &table.words("last_level_of").values {
                        known(name, table, "last_level_of")?;
                    }
                    self.check_reach(table)?;
                }
                Kind::LargeTransferLimit => {
                    if table.words("requester").first() != "*" {
                        known(table.words("requester").first(), table, "requester")?;
                    }
                    known(table.words("responder").first(), table, "responder")?;
                    let verbs = table.words("verbs");
                    let wrong = verbs.values.iter().find(|verb| !["read", "write"].contains(&verb.as_str()));
                    if wrong.is_some() || verbs.values.is_empty() {
                        let name = wrong.cloned().unwrap_or_default();
                        return Err(ProfileError::new(
                            Problem::Unknown {
                                what: "verb".into(),
                                name,
                                place: format!("for `[{}]`", table.name),
                            },
                            "write `verbs = [\"read\"]`, `[\"write\"]`, or both",
                            Some(table.words_place("verbs")),
                        ));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// An engine reaches something, its work is one that there is, and it is its file's own but in a testbed.
    fn check_engine(&self, table: &Table) -> Result<(), ProfileError> {
        if table.words.get("reaches").is_some_and(|reaches| reaches.values.is_empty()) {
            return Err(structure(
                format!("`reaches` of `[{}]` names no memory", table.name),
                "name the memories that the engine reaches, or leave `reaches` out where it reaches all of the machine",
                table.words_place("reaches"),
            ));
        }
        let is_testbeds = self.fitted.iter().any(|fitted| std::ptr::eq(*fitted, table));
        if !is_testbeds && !table.words("device").values.is_empty() {
            return Err(structure(
                format!("`device` of `[{}]` says of which device an engine of a testbed is part", table.name),
                "leave it out: what a device's or a host's file describes is its own",
                table.words_place("device"),
            ));
        }
        let work = self.work_of(table)?;
        if work != EngineWork::Transform && !table.words("does").values.is_empty() {
            return Err(structure(
                format!(
                    "`does` of `[{}]` names kinds of work, and the engine transforms nothing",
                    table.name
                ),
                "leave it out, or say `work = \"transform\"`",
                table.words_place("does"),
            ));
        }
        Ok(())
    }

    /// A way from a processor to a memory is told once.
    fn check_reach(&self, table: &Table) -> Result<(), ProfileError> {
        let ends = |table: &Table| {
            let (processor, memory) = (table.words("processor"), table.words("memory"));
            [processor, memory].map(|words| self.meant(words.first()).to_string())
        };
        let mut others = self.of_kind(Kind::Reach).take_while(|one| one.name != table.name);
        if let Some(first) = others.find(|one| ends(one) == ends(table)) {
            let [processor, memory] = ends(table);
            return Err(structure(
                format!(
                    "`[{}]` says how `{processor}` reaches `{memory}`, as `[{}]` does already",
                    table.name, first.name
                ),
                "leave one of them out: every load and store between the two takes one of them",
                table.words_place("processor"),
            ));
        }
        Ok(())
    }

    /// A kind of work is told once of a processor.
    fn check_work(&self, table: &Table) -> Result<(), ProfileError> {
        let (work, processor) = (table.words("work"), table.words("processor"));
        let others = self.of_kind(Kind::Work).filter(|one| one.name != table.name);
        for other in others.filter(|one| one.words("work").first() == work.first()) {
            if self.meant(other.words("processor").first()) == self.meant(processor.first()) {
                return Err(ProfileError::new(
                    Problem::Duplicate {
                        what: format!("the work `{}` of", work.first()),
                        name: processor.first().to_string(),
                    },
                    format!("`[{}]` is the other; keep one of them", other.name),
                    Some(table.words_place("work")),
                ));
            }
        }
        Ok(())
    }

    fn verbs_of(&self, endpoint: &Table) -> Result<&Table, ProfileError> {
        let verbs = self
            .of_kind(Kind::Verbs)
            .find(|table| self.meant(table.words("endpoint").first()) == endpoint.name);
        verbs.ok_or_else(|| {
            let device = self.name_of(self.card, Category::Device);
            ProfileError::new(
                Problem::Missing {
                    what: format!("a verbs table for the endpoint `{}`", endpoint.name),
                    place: format!("the device `{device}`"),
                },
                format!(
                    "add `[{0}_verbs]` with `kind = \"verbs\"` and `endpoint = \"{0}\"` to `{1}`",
                    endpoint.name, self.card.source.name
                ),
                Some(endpoint.place()),
            )
        })
    }

    /// The links with their ends, the one nearer to the NIC first.
    fn links(&self) -> Result<Vec<(&Table, String, String)>, ProfileError> {
        let endpoints = self.named(ENDS);
        let switches: BTreeSet<&str> = self.of_kind(Kind::Switch).map(|table| table.name.as_str()).collect();
        let nodes: Vec<&str> =
            std::iter::once("nic").chain(switches.iter().copied()).chain(endpoints.iter().copied()).collect();
        let header = self.card.require(Category::Device)?;
        let slot = header.word("host_at").unwrap_or_default();
        if slot != "nic" && !switches.contains(slot) {
            let known = std::iter::once("nic").chain(switches.iter().copied());
            return Err(ProfileError::new(
                Problem::Unknown { what: "node".into(), name: slot.into(), place: "for `host_at`".into() },
                suggestion(slot, known),
                Some((&self.card.source, header.span_of("host_at"))),
            ));
        }
        let mut links = Vec::new();
        for table in self.tables().filter(|table| matches!(table.kind, Kind::Link | Kind::Wire)) {
            let Words { values, span } = table.words("between");
            let in_host = Arc::ptr_eq(&table.source, &self.host.source);
            let place = (&table.source, span);
            let [a, b] = &values[..] else {
                return Err(structure(
                    format!("`[{}]` names {} nodes", table.name, values.len()),
                    "a link joins two: write `between = [\"nic\", \"host\"]`",
                    place,
                ));
            };
            let at = |name: &str| match name {
                CARD if in_host => slot.to_string(),
                other => self.meant(other).to_string(),
            };
            let (a, b) = (at(a), at(b));
            for node in [&a, &b] {
                if !nodes.contains(&node.as_str()) {
                    return Err(ProfileError::new(
                        Problem::Unknown {
                            what: "node".into(),
                            name: node.clone(),
                            place: format!("for `[{}]` to join", table.name),
                        },
                        suggestion(node, nodes.iter().copied().chain(in_host.then_some(CARD))),
                        Some(place),
                    ));
                }
            }
            if a == b {
                return Err(structure(
                    format!("`[{}]` joins `{a}` to itself", table.name),
                    format!("name two of {}", list(nodes.iter().copied())),
                    place,
                ));
            }
            // Which of two would carry anything, a route could not say.
            let is_same = |(_, one, other): &(&Table, String, String)| {
                (one == &a && other == &b) || (one == &b && other == &a)
            };
            if let Some((first, ..)) = links.iter().find(|link| is_same(link)) {
                return Err(structure(
                    format!("`[{}]` joins `{a}` and `{b}`, as `[{}]` does already", table.name, first.name),
                    "leave one of them out: every route between the two takes one link",
                    place,
                ));
            }
            links.push((table, a, b));
        }
        let mut distance: BTreeMap<&str, usize> = BTreeMap::from([("nic", 0)]);
        let mut waiting = VecDeque::from(["nic"]);
        while let Some(node) = waiting.pop_front() {
            if endpoints.contains(node) {
                continue;
            }
            for (_, a, b) in &links {
                let next = if a == node { b } else { a };
                if (a == node || b == node) && !distance.contains_key(next.as_str()) {
                    distance.insert(next, distance[node] + 1);
                    waiting.push_back(next);
                }
            }
        }
        let mut ends = self.tables().filter(|table| ENDS.contains(&table.kind));
        if let Some(lost) = ends.find(|table| !distance.contains_key(table.name.as_str())) {
            return Err(structure(
                format!("no links lead from `nic` to the {} `{}`", lost.kind.name(), lost.name),
                format!(
                    "add a `link` or `wire` with `between = [\"{slot}\", \"{}\"]`; endpoints forward nothing, so a route \
                     cannot lead through another one",
                    lost.name
                ),
                lost.place(),
            ));
        }
        let far = |node: &str| distance.get(node).copied().unwrap_or(usize::MAX);
        let turned =
            links.iter().map(|(table, a, b)| if far(a) <= far(b) { (*table, a, b) } else { (*table, b, a) });
        Ok(turned.map(|(table, a, b)| (table, a.clone(), b.clone())).collect())
    }
}
