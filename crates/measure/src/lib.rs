//! The characterisation of a card: [`suite`] lists the runs, a [`MeasuringProgram`] measures one on any backend of the
//! fabric.
//!
//! A run is what [`offpath_learn::ToolRun`] says, by the definitions of perftest: one thread posts for its queue pairs,
//! fills one before it looks at the next, and learns of completions by turns; a READ's latency is the whole operation, a
//! WRITE's or SEND's half of a round trip. Unlike perftest it measures windows after a warm-up, so that neither the
//! beginning nor the end counts.
//!
//! ```
//! use offpath_fabric::Backend;
//! use offpath_fabric::local::Local;
//! use offpath_measure::{MeasuringEffort, MeasuringProgram, SuiteChoice, figures_of, suite};
//! use offpath_quantity::Bytes;
//! use offpath_route::Verb;
//!
//! let choice = SuiteChoice {
//!     verbs: vec![Verb::Read],
//!     payloads: vec![Bytes::new(64)],
//!     queue_pairs: vec![1],
//!     ..SuiteChoice::default()
//! };
//! let path = "client-host".parse()?;
//! let points = suite(&[path], &choice);
//! let program = MeasuringProgram::new(&points[0], MeasuringEffort { requests: 50, ..MeasuringEffort::of(&points[0], 3) });
//! let run = Local::new(1).run(program.roles(|_| true))?;
//! let flows = figures_of(run)?;
//! assert_eq!(flows[0].windows.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod point;
mod program;
mod suite;

pub use point::{BesideFlow, MeasurePoint, MeasuringEffort};
pub use program::{FlowFigures, MeasuredWindow, MeasuringProgram, figures_of, responder};
pub use suite::{SuiteChoice, suite};
