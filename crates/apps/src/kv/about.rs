//! What the store declares.

use super::VALUE_BYTES_MAX;
use super::drive::SESSIONS_MAX;
use crate::system::{
    About, Bounds, Choice, CommandUsage, DeclaredAlternative, DeclaredCacheUse, Key, KeyKind, Of, OptionKind,
    Template,
};
use offpath_quantity::Bytes;

const fn alternative(label: &'static str, cache: DeclaredCacheUse) -> DeclaredAlternative {
    DeclaredAlternative { label, in_designs: true, cache }
}

/// What is said of the store. Its alternatives are in the order of [`super::Placement::ALL`].
pub const ABOUT: About = About {
    name: "kv",
    title: "kv store",
    what: "key-value store",
    group: "Store",
    alternatives: &[
        alternative("A1", DeclaredCacheUse::Unused),
        alternative("A2", DeclaredCacheUse::Unused),
        alternative("A3", DeclaredCacheUse::Unused),
        alternative("A4", DeclaredCacheUse::Unused),
        alternative("A5-read", DeclaredCacheUse::Looked),
        alternative("A5-send", DeclaredCacheUse::Filled),
    ],
    keys: &[
        Key::new("engine", KeyKind::Engine, "the DMA engine by which the card fetches; RDMA without"),
        Key::new("value", KeyKind::Bytes, "a value").needed("\"record\"").within(Bounds {
            least: 0.0,
            most: VALUE_BYTES_MAX as f64,
            refusal: |given| {
                let most = Bytes::new(VALUE_BYTES_MAX as u64);
                format!("`value` is {given}; the store keeps values of up to {most}")
            },
            help: "lower `fieldlength` or `fieldcount` of the workload, or name the bytes of a value",
        }),
        Key::new("index", KeyKind::Object, "the object that stands for the index"),
        Key::new("values", KeyKind::Object, "the object that stands for the records"),
        Key::new("build", KeyKind::Time, "a client hashes a key and builds a request").needed("\"80 ns\""),
        Key::new("search", KeyKind::Time, "a client searches a bucket").needed("\"80 ns\""),
        Key::new("check", KeyKind::Time, "a client checks a record").needed("\"80 ns\""),
        Key::new("card_hash", KeyKind::Time, "the card hashes a key, before it fetches a bucket of the host's")
            .needed("\"80 ns\""),
        Key::new("card_search", KeyKind::Time, "the card searches a fetched bucket").needed("\"80 ns\""),
        Key::new(
            "card_lookup",
            KeyKind::Time,
            "the card looks a key up in its own index, and in its cache",
        )
        .needed("\"80 ns\""),
    ],
    options: &[
        Choice::new("workload", Of::Both, OptionKind::Path, "A YCSB property file").called("FILE").needed(),
        Choice::new(
            "property",
            Of::Both,
            OptionKind::Text,
            "Properties that count more than the file's, as KEY=VALUE; may be given several times",
        )
        .list(),
        Choice::new(
            "placement",
            Of::Both,
            OptionKind::Alternative,
            "Where the index lies, and how clients get: A1, A2, A3, A4, A5-read or A5-send [default: A4]",
        ),
        Choice::new(
            "fetch",
            Of::Both,
            OptionKind::Text,
            "How the card reaches the host's memory: `rdma`, or the name of a DMA engine [default: as the plan of \
             `--mix` has it on the twin, else rdma]",
        )
        .called("WAY"),
        Choice::new(
            "records",
            Of::Both,
            OptionKind::Whole(1, u64::MAX),
            "Records that the store has room for [default: the workload's and all its inserts]",
        ),
        Choice::new("key-bytes", Of::Both, OptionKind::Whole(0, 65_536), "Bytes of a key").called("BYTES").or("8"),
        Choice::new(
            "cache",
            Of::Both,
            OptionKind::Whole(0, u32::MAX as u64),
            "Slots of the card's cache [default: a quarter of the records]",
        )
        .called("SLOTS"),
        Choice::new(
            "warm",
            Of::Both,
            OptionKind::Whole(0, u64::MAX),
            "Of the workload's hottest records as many, which the card has in its cache from the start as far as they fit",
        )
        .called("RECORDS")
        .or("0"),
        Choice::new(
            "mix",
            Of::Run,
            OptionKind::Text,
            "How gets are spread: a file that `offpath plan --format json` wrote, for the shares of its best mix, or \
             `controller`, or `controller:FIRST,SECOND`",
        )
        .called("PLAN|controller")
        .against("placement"),
        Choice::new(
            "clients",
            Of::Run,
            OptionKind::Whole(1, 4096),
            "Clients; the twin spreads them over its client machines",
        )
        .or("1"),
        Choice::new(
            "sessions",
            Of::Run,
            OptionKind::Whole(1, SESSIONS_MAX as u64),
            "Sessions of each client, each with one operation at a time [default: the workload's threadcount]",
        ),
        Choice::new("warm-up", Of::Run, OptionKind::Time, "Time under load before anything is measured")
            .called("TIME")
            .or("0s"),
        Choice::new(
            "window",
            Of::Run,
            OptionKind::SomeTime,
            "Measure for this long, whatever the workload's operationcount",
        )
        .called("TIME"),
        Choice::new(
            "home",
            Of::Serve,
            OptionKind::OneOf(&[
                ("host", "The host, with the records"),
                ("soc", "The card, with index and cache"),
            ]),
            "The side that is served [default: those that the placement uses]",
        ),
        Choice::new(
            "clients",
            Of::Serve,
            OptionKind::Whole(1, 4096),
            "Clients that the store has room for the inserts of",
        )
        .or("1"),
    ],
    run: CommandUsage {
        documentation: "YCSB against the key-value store, workloads A to D and F",
        examples: include_str!("examples.txt"),
    },
    serve: CommandUsage {
        documentation: "The memory server of the key-value store, or one side of it",
        examples: "",
    },
    placed: &[],
    promise: "every history is linearizable, and every key can be read at the end",
    endpoints: &["client", "host", "soc"],
    machines: &[("client", 5), ("server", 1)],
    bugs: &[
        "no-version-check",
        "no-checksum",
        "early-acknowledgement",
        "wipe-before-write",
        "no-wipe",
        "stale-cache",
        "hasty-slots",
        "no-key-lock",
        "no-sequence-check",
        "blind-retry",
    ],
    template: Some(Template {
        kind: "kv",
        documentation: "A key-value store with a YCSB workload",
        text: include_str!("design.toml"),
        workload: Some(("workloadc", "the requests of YCSB's workload C")),
    }),
};
