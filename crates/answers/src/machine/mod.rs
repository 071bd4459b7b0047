//! What `offpath collect` and `offpath new device --from` answer: what a machine says of itself, what is odd about it and
//! what that costs, and the files that a card of one's own begins with.

mod collection;
mod text;

pub(crate) use collection::refused;
pub use collection::{CollectionFile, ReadFacts, pack, read_collection, read_facts};
pub(crate) use collection::{GZIP, is_archive};

use crate::SCHEMA_VERSION;
use offpath_learn::describe::{CardLinkFacts, Description, Oddity, OddityCost, costs, describe};
use offpath_logs::machine::{MachineFacts, PciLinkState, RdmaPortFacts};
use offpath_profile::{Draft, DraftPart, DraftRequest, Library, Provenance};
use offpath_terminal::failure::Failure;
use serde::Serialize;
use std::path::PathBuf;

/// The file of a collection that lists what was run for it.
pub const CONTENTS: &str = "contents.txt";

/// What begins a line of that file, of a tool that failed after it had printed something.
pub const FAILED: &str = "failed: ";

/// Files of a machine.
#[derive(Clone, Debug, Default)]
pub struct MachineRequest {
    /// Files of tools, and archives of them.
    pub from: Vec<PathBuf>,
    /// The card's address, where the files list several.
    pub card: Option<String>,
}

/// A collection: what its files say, and what is missing in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CollectAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The archive that was written; null where none was asked for.
    pub archive: Option<String>,
    /// Its files.
    pub files: Vec<CollectedFileAnswer>,
    /// What could not be run.
    pub missing: Vec<MissingToolAnswer>,
    /// What the files say.
    pub machine: DescribedMachineAnswer,
}

/// A file of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CollectedFileAnswer {
    /// Its name.
    pub file: String,
    /// Its lines.
    pub lines: u64,
    /// Lines that say something that is kept.
    pub read_lines: u64,
}

/// A tool that could not be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MissingToolAnswer {
    /// The command.
    pub command: String,
    /// Why, and what would be known.
    pub why: String,
}

/// What a machine says of itself. What it does not say is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DescribedMachineAnswer {
    /// Its processor.
    pub processor: ProcessorAnswer,
    /// Nodes of its memory.
    pub nodes: Vec<NumaNodeAnswer>,
    /// The card; null where none is listed.
    pub card: Option<CardAnswer>,
    /// The links between the card and the root, the nearest first.
    pub links: Vec<CardLinkAnswer>,
    /// The card's ports.
    pub ports: Vec<RdmaPortAnswer>,
    /// What is odd.
    pub oddities: Vec<OddityAnswer>,
    /// What the files do not say, each with the command that tells it.
    pub unsaid: Vec<String>,
    /// Files of the collection of which nothing is read, and tools that failed before they had printed everything.
    pub unread: Vec<String>,
}

/// A processor.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProcessorAnswer {
    /// What it calls itself.
    pub model: Option<String>,
    /// Its instruction set.
    pub architecture: Option<String>,
    /// Cores of all sockets.
    pub cores: Option<u64>,
    /// Threads of a core.
    pub threads_per_core: Option<u64>,
    /// The greatest clock.
    pub frequency_at_most_ghz: Option<f64>,
    /// What decides the clock.
    pub governor: Option<String>,
    /// Last-level cache, in the words of the tool.
    pub last_level_cache: Option<String>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Who runs it, where it is a virtual machine.
    pub hypervisor: Option<String>,
}

/// A node of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NumaNodeAnswer {
    /// Its number.
    pub node: u64,
    /// Hardware threads.
    pub threads: Option<u64>,
    /// Memory.
    pub memory_bytes: Option<u64>,
}

/// A card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CardAnswer {
    /// The address of its first function.
    pub address: String,
    /// What it calls itself.
    pub name: String,
    /// Addresses of its functions.
    pub functions: Vec<String>,
    /// Version of its firmware.
    pub firmware: Option<String>,
    /// The mode that its firmware is set to.
    pub mode: Option<&'static str>,
    /// Whether the files are of the card's own processor.
    pub is_own_processor: bool,
    /// The node of memory that it is nearest to.
    pub numa_node: Option<u64>,
    /// Largest TLP payload that is set.
    pub max_payload_bytes: Option<u64>,
    /// Largest read request that is set.
    pub max_read_request_bytes: Option<u64>,
    /// Whether it may mark requests as relaxed in order.
    pub relaxed_ordering: Option<bool>,
}

/// A link between a card and the root.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CardLinkAnswer {
    /// The function below.
    pub lower: String,
    /// The bridge above.
    pub upper: Option<String>,
    /// Whether both ends are the card's.
    pub is_on_card: bool,
    /// Transfers per second of a lane now, in billions.
    pub now_gt_per_s: Option<f64>,
    /// Lanes now.
    pub now_lanes: Option<u64>,
    /// Transfers per second of a lane that both ends can, in billions.
    pub at_most_gt_per_s: Option<f64>,
    /// Lanes that both ends can.
    pub at_most_lanes: Option<u64>,
}

/// A port of an RDMA device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RdmaPortAnswer {
    /// The device, as its driver names it.
    pub device: String,
    /// The port, from 1.
    pub port: u64,
    /// Whether it is up.
    pub is_active: Option<bool>,
    /// Bits per second.
    pub rate_gbit_per_s: Option<f64>,
    /// Path MTU in force.
    pub mtu_bytes: Option<u64>,
    /// Path MTU that it can.
    pub mtu_at_most_bytes: Option<u64>,
    /// Ethernet or InfiniBand.
    pub link_layer: Option<String>,
    /// READs and atomics of a queue pair in flight between two such ports: the lesser of what one asks and the other answers.
    pub outstanding_reads: Option<u64>,
}

/// Something odd.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OddityAnswer {
    /// Of which sort.
    pub kind: &'static str,
    /// What is odd.
    pub what: String,
    /// What to do or to look at.
    pub next_step: String,
    /// File and line.
    pub at: String,
    /// Whether the model has a number of it, so that it can say what it costs.
    pub is_in_model: bool,
    /// What it costs by the model, where a profile was written and an operation loses at least 1%.
    pub costs: Vec<OddityCostAnswer>,
}

/// What an oddity costs an operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OddityCostAnswer {
    /// What the operation does.
    pub verb: String,
    /// The path.
    pub path: String,
    /// Bytes of an operation.
    pub payload_bytes: u64,
    /// Capacity as the machine is.
    pub now_mreq_per_s: f64,
    /// Capacity without the oddity.
    pub mended_mreq_per_s: f64,
    /// The same as payload.
    pub now_gbit_per_s: f64,
    /// The same as payload.
    pub mended_gbit_per_s: f64,
    /// What is lost, in percent of the capacity without it.
    pub lost_percent: f64,
}

/// A card of one's own, as its machine describes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NewDeviceAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The device's name.
    pub device: String,
    /// The device whose numbers it begins with; null where the rest is blank.
    pub base: Option<String>,
    /// The files that were written, the device's first.
    pub files: Vec<String>,
    /// Numbers that the machine says itself.
    pub numbers: Vec<KnownNumberAnswer>,
    /// Numbers of both files that are carried over from another card or host; null where the rest is blank.
    pub carried_over: Option<u64>,
    /// What the files say.
    pub machine: DescribedMachineAnswer,
}

/// A number that a machine says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KnownNumberAnswer {
    /// Its dotted name; null where the base has nothing that it could be of.
    pub name: Option<String>,
    /// Its value with its unit.
    pub value: String,
    /// Where it stands.
    pub source: String,
    /// How it is known.
    pub provenance: String,
}

/// A card of one's own that is drafted and not yet written.
pub struct NewDeviceDraft {
    description: Description,
    facts: MachineFacts,
    unread: Vec<String>,
    /// The files' texts.
    pub draft: Draft,
    base: Option<String>,
    name: String,
}

impl NewDeviceDraft {
    /// Drafts a card called `name`, whose host goes into a file called `host_file`.
    ///
    /// # Errors
    /// Where files cannot be read, no card or several are meant, or the base does not load.
    pub fn of(
        request: &MachineRequest,
        library: &Library,
        name: &str,
        base: Option<&str>,
        host_file: &str,
    ) -> Result<NewDeviceDraft, Failure> {
        let files = read_collection(&request.from)?;
        let ReadFacts { facts, unread, .. } = read_facts(&files)?;
        let description =
            describe(&facts, request.card.as_deref()).map_err(|error| collection::refused(&error))?;
        let shown = description.card.as_ref().map(|card| card.name.clone());
        let draft = library.draft_system(&DraftRequest {
            name,
            base,
            description: shown.as_deref(),
            mode: description.mode,
            host_file,
            numbers: &description.numbers,
        })?;
        let (base, name) = (base.map(str::to_string), name.to_string());
        Ok(NewDeviceDraft { description, facts, unread, draft, base, name })
    }

    /// What was written, with what is odd and what that costs by the model; `files` are the device's and the host's.
    ///
    /// # Errors
    /// Where the files do not load.
    pub fn answer(&self, library: &Library, files: [String; 2]) -> Result<NewDeviceAnswer, Failure> {
        let of = |part: DraftPart, key| self.draft.named.get(&(part, key)).cloned();
        let numbers = &self.description.numbers;
        // A read request's limit is of the host's link, and of the card's where it has one.
        let has_other = |number: &offpath_profile::DraftNumber| {
            numbers.iter().any(|other| other.key == number.key && of(other.part, other.key).is_some())
        };
        let told = numbers.iter().filter(|one| of(one.part, one.key).is_some() || !has_other(one));
        let numbers = told.map(|number| KnownNumberAnswer {
            name: of(number.part, number.key),
            value: number.value.to_string(),
            source: number.source.clone(),
            provenance: number.provenance.to_string(),
        });
        let mut machine = DescribedMachineAnswer::of(&self.facts, &self.description, &self.unread);
        let mut carried_over = None;
        if self.base.is_some() {
            let system = library.load(&offpath_profile::SystemRequest {
                device: &files[0],
                ..offpath_profile::SystemRequest::default()
            })?;
            let own = system.numbers.iter().filter(|(name, number)| {
                !name.starts_with("client") && number.provenance == Provenance::CarriedOver
            });
            carried_over = Some(own.count() as u64);
            let mut oddities = Vec::new();
            for oddity in &self.description.oddities {
                let costs = costs(library, &files[0], &self.draft, oddity)?;
                if !(oddity.only_if_costly && costs.is_empty()) {
                    oddities.push(OddityAnswer::of(oddity, &costs));
                }
            }
            machine.oddities = oddities;
        }
        Ok(NewDeviceAnswer {
            schema_version: SCHEMA_VERSION,
            device: self.name.clone(),
            base: self.base.clone(),
            files: files.to_vec(),
            numbers: numbers.collect(),
            carried_over,
            machine,
        })
    }
}

/// What a collection says; `archive` is where it was written, `missing` what could not be run.
///
/// # Errors
/// Where no file says anything that is known, or the files list several cards and none is named.
pub fn collect(
    files: &[CollectionFile],
    card: Option<&str>,
    archive: Option<String>,
    missing: Vec<MissingToolAnswer>,
) -> Result<CollectAnswer, Failure> {
    let ReadFacts { facts, taken, unread } = read_facts(files)?;
    let description = describe(&facts, card).map_err(|error| collection::refused(&error))?;
    let answer = |(file, read_lines): (&CollectionFile, u64)| CollectedFileAnswer {
        file: file.name.clone(),
        lines: file.text.lines().count() as u64,
        read_lines,
    };
    Ok(CollectAnswer {
        schema_version: SCHEMA_VERSION,
        archive,
        files: files.iter().zip(taken).map(answer).collect(),
        missing,
        machine: DescribedMachineAnswer::of(&facts, &description, &unread),
    })
}

impl DescribedMachineAnswer {
    fn of(facts: &MachineFacts, description: &Description, unread: &[String]) -> DescribedMachineAnswer {
        fn value<T: Clone>(stated: &Option<offpath_logs::machine::Stated<T>>) -> Option<T> {
            stated.as_ref().map(|stated| stated.value.clone())
        }
        let processor = &facts.processor;
        let of_name = processor.frequency_of_name();
        let card = description.card.as_ref();
        let function = card.map(|card| &facts.pci[&card.address]);
        let bytes = |size: &Option<offpath_logs::machine::Stated<offpath_quantity::Bytes>>| {
            size.as_ref().map(|size| size.value.get())
        };
        DescribedMachineAnswer {
            processor: ProcessorAnswer {
                model: value(&processor.model),
                architecture: value(&processor.architecture),
                cores: processor.cores().map(|(cores, _)| cores),
                threads_per_core: value(&processor.threads_per_core),
                frequency_at_most_ghz: value(&processor.frequency_at_most)
                    .or(value(&of_name))
                    .map(|clock| clock.hz() as f64 / 1e9),
                governor: value(&processor.governor),
                last_level_cache: value(&processor.last_level_cache),
                memory_bytes: value(&facts.memory_bytes),
                hypervisor: value(&processor.hypervisor),
            },
            nodes: facts
                .nodes
                .iter()
                .map(|(node, own)| NumaNodeAnswer {
                    node: *node,
                    threads: value(&own.threads),
                    memory_bytes: value(&own.memory_bytes),
                })
                .collect(),
            card: card.zip(function).map(|(card, function)| CardAnswer {
                address: card.address.to_string(),
                name: card.name.clone(),
                functions: card.functions.iter().map(ToString::to_string).collect(),
                firmware: card.firmware.clone(),
                mode: description.mode,
                is_own_processor: card.is_own_processor,
                numa_node: value(&function.numa_node),
                max_payload_bytes: bytes(&function.max_payload),
                max_read_request_bytes: bytes(&function.max_read_request),
                relaxed_ordering: value(&function.relaxed_ordering),
            }),
            links: description.links.iter().map(CardLinkAnswer::of).collect(),
            ports: facts.rdma.iter().filter(|port| port.port > 0).map(RdmaPortAnswer::of).collect(),
            oddities: description.oddities.iter().map(|oddity| OddityAnswer::of(oddity, &[])).collect(),
            unsaid: description.unsaid.clone(),
            unread: unread.to_vec(),
        }
    }
}

impl CardLinkAnswer {
    fn of(link: &CardLinkFacts) -> CardLinkAnswer {
        let speed = |link: PciLinkState| link.mega_transfers_per_s as f64 / 1000.0;
        let now = link.now.as_ref().map(|now| now.value);
        CardLinkAnswer {
            lower: link.lower.to_string(),
            upper: link.upper.map(|upper| upper.to_string()),
            is_on_card: link.is_on_card,
            now_gt_per_s: now.map(speed),
            now_lanes: now.map(|now| now.lanes),
            at_most_gt_per_s: link.at_most.map(speed),
            at_most_lanes: link.at_most.map(|most| most.lanes),
        }
    }
}

impl RdmaPortAnswer {
    fn of(port: &RdmaPortFacts) -> RdmaPortAnswer {
        RdmaPortAnswer {
            device: port.device.clone(),
            port: port.port,
            is_active: port.is_active.as_ref().map(|own| own.value),
            rate_gbit_per_s: port.rate().map(|rate| rate.value.as_gbit_per_s()),
            mtu_bytes: port.mtu.as_ref().map(|own| own.value.get()),
            mtu_at_most_bytes: port.mtu_at_most.as_ref().map(|own| own.value.get()),
            link_layer: port.link_layer.as_ref().map(|own| own.value.clone()),
            outstanding_reads: port.reads_in_flight().map(|own| own.value),
        }
    }
}

impl OddityAnswer {
    fn of(oddity: &Oddity, costs: &[OddityCost]) -> OddityAnswer {
        let cost = |cost: &OddityCost| {
            let gbit = |per_s: f64| per_s * cost.payload.get() as f64 * 8.0 / 1e9;
            OddityCostAnswer {
                verb: cost.verb.to_string(),
                path: cost.path.clone(),
                payload_bytes: cost.payload.get(),
                now_mreq_per_s: cost.now_per_s / 1e6,
                mended_mreq_per_s: cost.mended_per_s / 1e6,
                now_gbit_per_s: gbit(cost.now_per_s),
                mended_gbit_per_s: gbit(cost.mended_per_s),
                lost_percent: cost.lost_share() * 100.0,
            }
        };
        OddityAnswer {
            kind: oddity.kind.name(),
            what: oddity.what.clone(),
            next_step: oddity.next_step.clone(),
            at: oddity.at.to_string(),
            is_in_model: !oddity.mends.is_empty(),
            costs: costs.iter().map(cost).collect(),
        }
    }
}
