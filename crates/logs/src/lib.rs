//! Reads what benchmarks and counters wrote, and says what each figure means: its unit, from where to where a latency
//! reaches, under which conditions it was taken, and on which line it stands.
//!
//! Who wrote a line is told from the line; one log may hold several runs of several tools. What a log does not say is
//! absent, and a line that no tool prints is reported with its number. docs/import.md has what is read, and what each
//! figure means.
//!
//! ```
//! use offpath_logs::{LogItem, LogReader, TrafficDirections};
//! let log = "\
//!                     RDMA_Write Bidirectional BW Test
//!  Number of qps   : 2    Transport type : IB
//!  #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
//!  65536      10000            22000.10            21990.00             0.351840
//! what is this?
//! ";
//! let mut reader = LogReader::new(log.as_bytes());
//! for item in reader.by_ref() {
//!     match item? {
//!         LogItem::Measurement(figure) => {
//!             assert_eq!(figure.line, 4);
//!             assert_eq!(figure.conditions.directions, Some(TrafficDirections::Both));
//!             assert_eq!(figure.conditions.queue_pairs, Some(2));
//!         }
//!         LogItem::Remark(remark) => assert_eq!(remark.line, 5),
//!     }
//! }
//! assert_eq!((reader.account().measured, reader.account().unknown), (1, 1));
//! # Ok::<(), std::io::Error>(())
//! ```

mod decimal;
mod document;
mod failure;
pub mod machine;
mod measurement;
mod reader;
mod tools;

pub use measurement::{
    LatencySpan, LogCaution, LogCautions, LogConditions, LogDetail, LogFigure, LogMeasurement, LogMetric,
    LogOperation, LogSide, LogTool, MetricStatistic, MetricSubject, QueuePairNames, TrafficDirections,
    WorkRate,
};
pub use reader::{LineAccount, LogItem, LogReader, LogRemark, RemarkKind};
pub use tools::sysfs_counter;
