//! Learns a card from its own logs: what a benchmark would print on a described system, by the tool's own definitions.
//!
//! [`ToolRun`] is what a run was asked to do, in full; [`ToolBench`] says what it prints on a system. What stations carry
//! and how long a request takes are the readings of its route. Around them stands what a tool adds: one thread that posts
//! for all queue pairs, completions by turns, requests posted ahead, READs in flight of a queue pair.
//!
//! [`calibrate`] goes the other way: from measured points to the numbers that they tell, each with its interval, and to what
//! they do not tell apart, with the run that would.
//!
//! ```
//! use offpath_learn::{ToolBench, ToolProgram};
//! use offpath_profile::{Category, Library, SystemRequest};
//! use offpath_quantity::Bytes;
//!
//! let library = Library::builtin();
//! let device = &library.names(Category::Device)[0].name;
//! let system = library.load(&SystemRequest { device, ..SystemRequest::default() })?;
//! let program = ToolProgram::named("ib_read_bw").expect("it is one of perftest's");
//! let run = program.run(Bytes::new(65536));
//! let expected = ToolBench::new(&system, "client-host")?.expect(&run)?;
//! println!("{:.2} Gb/sec, bound by {}", expected.gbit_per_s(), expected.binding().name());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calibrate;
mod descent;
pub mod describe;
pub mod diagnose;
mod dma;
mod doubt;
mod expect;
mod link_layer;
mod points;
mod posting;
mod printed;
mod run;
pub mod watch;

pub use calibrate::{
    Calibration, CalibrationError, CalibrationRequest, CoveredPoints, Directions, ErrorSummary, KeptNumber,
    KeptReason, LearntDoubt, LearntNumber, PhaseProgress, PredictedPoint, RunPairs, WidenedErrors, calibrate,
    program_of,
};

pub use dma::{DmaBench, DmaOperation, DmaRun};
pub use expect::{Ceiling, CeilingKind, ExpectError, Expected, ToolBench};
pub use link_layer::PacketHeader;
pub use points::{HoldOut, LeftAside, LogDoubt, MeasuredPoint, PointCollector, UnknownHoldOut};
pub use posting::KnownLoops;
pub use run::{
    MANY_QUEUE_PAIRS, MOST_DEPTH, MOST_QUEUE_PAIRS, MeasuredRun, NotARun, PROGRAMS, RunKind, RunLength,
    TOOL_CQ_MODERATION, TOOL_MODERATED, TOOL_POLL_BATCH, TOOL_TX_DEPTH, ToolProgram, ToolRun,
};
