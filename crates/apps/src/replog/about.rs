//! What the log declares.

use crate::system::{
    About, Bounds, Choice, CommandUsage, DeclaredAlternative, DeclaredCacheUse, Key, KeyKind, Of, OptionKind,
    Template,
};
use offpath_quantity::Bytes;

/// The role of a second backup on the twin: no path runs between two machines of one kind, so it is on a
/// client's.
pub const TAIL: &str = "tail";

/// The longest chunk of a design: the log names the length in 29 bits, and following its code needs one in memory.
const LONGEST_CHUNK: u64 = 1 << 29;

const fn alternative(label: &'static str, in_designs: bool) -> DeclaredAlternative {
    DeclaredAlternative { label, in_designs, cache: DeclaredCacheUse::Unused }
}

/// What is said of the log. Its alternatives are in the order of [`super::LogAlternative::ALL`].
pub const ABOUT: About = About {
    name: "replog",
    title: "replicated log",
    what: "replicated log",
    group: "Log",
    alternatives: &[
        alternative("A1", true),
        alternative("A2", true),
        alternative("A3", true),
        alternative("A2+A3", false),
    ],
    keys: &[
        Key::new("engine", KeyKind::Engine, "the DMA engine by which the card pulls"),
        Key::new("chunk", KeyKind::Bytes, "what goes at once").needed("\"chunk\"").within(Bounds {
            least: 1.0,
            most: LONGEST_CHUNK as f64,
            refusal: |given| {
                format!("`chunk` is {given}; it has to be from 1 B to {}", Bytes::new(LONGEST_CHUNK))
            },
            help: "name the bytes of the log that go at once",
        }),
        Key::new("ratio", KeyKind::Ratio, "compressed size over size of what is written; 1 is not compressible")
            .needed("\"ratio\"")
            .within(Bounds {
                least: 0.0,
                most: 1.0,
                refusal: |given| format!("the implemented log is asked for a compression ratio of {given}"),
                help: "use 0 to 1: what compression would make longer is sent as it is",
            }),
        Key::new("chain", KeyKind::Endpoints, "the endpoints of the backups, in order")
            .needed("[\"backup\"]"),
        Key::new("compress", KeyKind::Rate, "what one core compresses; free without"),
        Key::new("append", KeyKind::Rate, "what one core appends to its log; free without"),
    ],
    options: &[
        Choice::new(
            "placement",
            Of::Both,
            OptionKind::Alternative,
            "How chunks reach the first backup: A1, A2, A3 or A2+A3",
        )
        .or("A3"),
        Choice::new(
            "backups",
            Of::Both,
            OptionKind::Whole(0, 16),
            "Backups in the chain; the twin has room for 2",
        )
        .or("1"),
        Choice::new("chunk", Of::Both, OptionKind::Bytes, "Bytes of a chunk").called("BYTES").or("256KiB"),
        Choice::new(
            "slots",
            Of::Both,
            OptionKind::Whole(0, u32::MAX as u64),
            "Chunks in flight on each connection",
        )
        .or("8"),
        Choice::new(
            "card-share",
            Of::Both,
            OptionKind::Whole(0, 100),
            "Of A2 and A3 together, how many of 100 chunks go by the card [default: as many as it has slots for]",
        )
        .called("PERCENT"),
        Choice::new("engine", Of::Both, OptionKind::Text, "The DMA engine of A2 [default: dma]").called("NAME"),
        Choice::new(
            "compress",
            Of::Both,
            OptionKind::OneOf(&[
                ("off", "Nobody"),
                ("card", "The card, where it carries a chunk"),
                ("all", "Whoever carries a chunk to the backup"),
            ]),
            "Who compresses chunks",
        )
        .or("off"),
        Choice::new(
            "directory",
            Of::Both,
            OptionKind::Path,
            "Where the files of each role lie, below a directory of its name [default: a temporary directory]",
        )
        .called("DIR"),
        Choice::new(
            "file-rate",
            Of::Both,
            OptionKind::Rate,
            "What one core of the twin appends to files; 0 charges nothing [default: 32Gbit/s]",
        )
        .called("RATE"),
        Choice::new(
            "compress-rate",
            Of::Both,
            OptionKind::Rate,
            "What one core of the twin compresses [default: 8Gbit/s]",
        )
        .called("RATE"),
        Choice::new("bytes", Of::Run, OptionKind::Bytes, "Bytes of a write").or("8MiB"),
        Choice::new("writes", Of::Run, OptionKind::Whole(0, u64::MAX), "Writes of each session").or("16"),
        Choice::new(
            "sessions",
            Of::Run,
            OptionKind::Whole(0, 4096),
            "Sessions, each with one write in flight",
        )
        .or("1"),
        Choice::new(
            "compressible",
            Of::Run,
            OptionKind::Whole(0, 100),
            "How many of 100 bytes can be compressed away",
        )
        .called("PERCENT")
        .or("50"),
        Choice::new(
            "role",
            Of::Serve,
            OptionKind::Role,
            "The roles that are served: `backup`, `backup:1`, ..., `soc`; may be given several times",
        )
        .or("backup")
        .list(),
    ],
    run: CommandUsage {
        documentation: "Writes to the replicated log: throughput, latency, and where the host's time goes",
        examples: include_str!("examples.txt"),
    },
    serve: CommandUsage { documentation: "Backups of the replicated log, or its card", examples: "" },
    placed: &[(TAIL, "client")],
    promise: "nothing acknowledged is lost or reordered, and replicas are equal byte for byte",
    endpoints: &["client", "host", "soc", "backup"],
    machines: &[("client", 1), ("server", 1), ("backup", 1)],
    bugs: &[
        "early-acknowledgement",
        "missing-sync",
        "acknowledged-before-forwarded",
        "no-frame-checksum",
        "no-cut",
        "no-duplicate-check",
        "no-order",
        "hasty-slots",
        "no-resend",
        "local-acknowledgement",
        "digested-before-sync",
        "digested-out-of-order",
        "truncated-before-digested",
    ],
    template: Some(Template {
        kind: "replication",
        documentation: "Replication of a log to a backup",
        text: include_str!("design.toml"),
        workload: None,
    }),
};
