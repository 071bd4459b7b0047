//! The workload file: its keys, defaults, checks and errors.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};

use crate::generator::{FieldLengthChooser, fnv_hash_64};
use crate::properties;

/// One operation of a YCSB client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientOperation {
    /// Reads one record.
    Read,
    /// Overwrites one or all fields of one record.
    Update,
    /// Adds a new record.
    Insert,
    /// Reads consecutive records from one key on.
    Scan,
    /// Reads one record and writes it back changed.
    ReadModifyWrite,
}

impl ClientOperation {
    /// All operations, in the order in which YCSB gives them their slices of a draw.
    pub const ALL: [ClientOperation; 5] = [
        ClientOperation::Read,
        ClientOperation::Update,
        ClientOperation::Insert,
        ClientOperation::Scan,
        ClientOperation::ReadModifyWrite,
    ];

    /// The name as in YCSB's property keys: `read`, `update`, `insert`, `scan`, `readmodifywrite`.
    pub const fn name(self) -> &'static str {
        match self {
            ClientOperation::Read => "read",
            ClientOperation::Update => "update",
            ClientOperation::Insert => "insert",
            ClientOperation::Scan => "scan",
            ClientOperation::ReadModifyWrite => "readmodifywrite",
        }
    }
}

impl std::fmt::Display for ClientOperation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.name())
    }
}

/// The proportions of the operations, as written and as shares of one.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationMix {
    proportions: [f64; 5],
}

impl OperationMix {
    /// The proportion as the file states it; the proportions need not add up to one.
    pub fn proportion(&self, operation: ClientOperation) -> f64 {
        self.proportions[operation as usize]
    }

    /// The share of all operations, from 0 to 1: the proportion over the sum of all, as YCSB's
    /// `DiscreteGenerator` divides them.
    pub fn share(&self, operation: ClientOperation) -> f64 {
        self.proportion(operation) / self.proportions.iter().sum::<f64>()
    }
}

/// How the records that requests go to are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestDistribution {
    /// All alike.
    Uniform,
    /// Zipfian, the popular records scattered by a hash.
    Zipfian,
    /// Zipfian in age: the newest record is the most popular.
    Latest,
    /// A hot set and a cold set, each uniform.
    Hotspot {
        /// The share of the records that are hot, from 0 to 1 (`hotspotdatafraction`).
        data_fraction: f64,
        /// The share of the requests that go to hot records, from 0 to 1 (`hotspotopnfraction`).
        operation_fraction: f64,
    },
    /// One after the other, round and round.
    Sequential,
    /// Exponential in age.
    Exponential {
        /// The per cent of requests that go to the newest `fraction` of the records
        /// (`exponential.percentile`).
        percentile: f64,
        /// A share of the records, from 0 to 1 (`exponential.frac`).
        fraction: f64,
    },
}

/// How the number of records of a scan is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanLengthDistribution {
    /// All lengths alike.
    Uniform,
    /// Zipfian, the shortest most often.
    Zipfian,
}

/// How the length of a field is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldLengthDistribution {
    /// Always `fieldlength`.
    Constant,
    /// All lengths from `minfieldlength` to `fieldlength` alike.
    Uniform,
    /// Zipfian from `minfieldlength`, the shortest most often.
    Zipfian,
}

/// Whether record numbers become keys as they are or hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOrder {
    /// By hash.
    Hashed,
    /// As they are.
    Ordered,
}

/// A key that a workload file may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PropertyKey {
    /// The name.
    pub name: &'static str,
    /// What YCSB takes where the key is absent; `None` where the key must be there or stands for
    /// another's value.
    pub default: Option<&'static str>,
    /// What it means.
    pub meaning: &'static str,
}

const fn key(name: &'static str, default: &'static str, meaning: &'static str) -> PropertyKey {
    PropertyKey { name, default: Some(default), meaning }
}

/// Every key this crate reads, with YCSB's default (`CoreWorkload`, `Workload`, `Client`).
///
/// | key | default |
/// |---|---|
/// | `recordcount` | none: it must be there |
/// | `operationcount` | 0 (no limit) |
/// | `readproportion`, `updateproportion` | 0.95, 0.05 |
/// | `insertproportion`, `scanproportion`, `readmodifywriteproportion` | 0 |
/// | `requestdistribution` | uniform |
/// | `hotspotdatafraction`, `hotspotopnfraction` | 0.2, 0.8 |
/// | `exponential.percentile`, `exponential.frac` | 95, 0.8571428571 |
/// | `fieldcount`, `fieldlength`, `minfieldlength` | 10, 100 bytes, 1 byte |
/// | `fieldlengthdistribution` | constant |
/// | `readallfields`, `writeallfields`, `dataintegrity` | true, false, false |
/// | `minscanlength`, `maxscanlength`, `scanlengthdistribution` | 1, 1000, uniform |
/// | `insertorder`, `zeropadding` | hashed, 1 |
/// | `insertstart`, `insertcount` | 0, `recordcount` - `insertstart` |
/// | `table`, `workload` | usertable, site.ycsb.workloads.CoreWorkload |
/// | `threadcount`, `target` | 1, 0 (no limit) |
///
/// The default request distribution is uniform: YCSB's `workload_template` writes `zipfian` beside
/// the word default, but the program takes `uniform`. YCSB's client refuses a file without
/// `workload`; here its only accepted class stands in.
pub const KEYS: &[PropertyKey] = &[
    PropertyKey { name: "recordcount", default: None, meaning: "records loaded before the run" },
    key("operationcount", "0", "operations of the run; 0: no limit"),
    key("readproportion", "0.95", "reads"),
    key("updateproportion", "0.05", "updates"),
    key("insertproportion", "0.0", "inserts"),
    key("scanproportion", "0.0", "scans"),
    key("readmodifywriteproportion", "0.0", "read-modify-writes"),
    key("requestdistribution", "uniform", "which records requests go to"),
    key("hotspotdatafraction", "0.2", "share of the records that are hot"),
    key("hotspotopnfraction", "0.8", "share of the requests that go to hot records"),
    key("exponential.percentile", "95", "per cent of requests to the newest exponential.frac of records"),
    key("exponential.frac", "0.8571428571", "share of the records"),
    key("fieldcount", "10", "fields of a record"),
    key("fieldlength", "100", "length of a field in bytes, the longest where lengths vary"),
    key("minfieldlength", "1", "shortest field in bytes where lengths vary"),
    key("fieldlengthdistribution", "constant", "how the length of a field is chosen"),
    key("readallfields", "true", "whether reads take all fields or one"),
    key("writeallfields", "false", "whether updates write all fields or one"),
    key("dataintegrity", "false", "whether values are checked when read"),
    key("minscanlength", "1", "fewest records of a scan"),
    key("maxscanlength", "1000", "most records of a scan"),
    key("scanlengthdistribution", "uniform", "how the number of records of a scan is chosen"),
    key("insertorder", "hashed", "whether keys are hashed record numbers"),
    key("zeropadding", "1", "digits to which record numbers in keys are padded"),
    key("insertstart", "0", "first record of this client"),
    PropertyKey { name: "insertcount", default: None, meaning: "records of this client" },
    key("table", "usertable", "table name"),
    key("workload", CORE_WORKLOADS[0], "workload class"),
    key("threadcount", "1", "client threads"),
    key("target", "0", "operations per second offered; 0: no limit"),
];

const CORE_WORKLOADS: [&str; 2] =
    ["site.ycsb.workloads.CoreWorkload", "com.yahoo.ycsb.workloads.CoreWorkload"];

/// Keys that mean something to YCSB's client or bindings and nothing to what a workload draws.
const CLIENT_KEYS: &[&str] = &[
    "columnfamily",
    "core_workload_insertion_keep_going_on_error",
    "core_workload_insertion_retry_interval",
    "core_workload_insertion_retry_limit",
    "db",
    "discardscannedrecord",
    "dotransactions",
    "exporter",
    "exportfile",
    "fieldlengthhistogram",
    "fieldnameprefix",
    "histogram.buckets",
    "label",
    "latencytrackederrors",
    "maxexecutiontime",
    "maxscanrate",
    "measurementtype",
    "readallfieldsbyname",
    "reportlatencyforeacherror",
    "scanoptimelimit",
    "status",
    "status.interval",
    "timeseries.granularity",
];

/// Families of such keys.
const CLIENT_KEY_PREFIXES: &[&str] = &["measurement.", "hdrhistogram.", "htrace."];

/// Record and operation counts stay exact as 64-bit floating-point numbers up to here.
const MOST_RECORDS: u64 = 1_000_000_000_000_000;
const MOST_32_BIT: u64 = i32::MAX as u64;

/// Why a line of a workload file draws a warning.
#[derive(Clone, Debug, PartialEq)]
pub enum WarningKind {
    /// YCSB knows no such key and would ignore it in silence.
    UnknownKey {
        /// The known key nearest in spelling, where one is near.
        nearest: Option<&'static str>,
    },
    /// The key stood on an earlier line too, and this line wins.
    Repeated {
        /// The line it stood on before, from 1.
        first_line: usize,
    },
    /// The key is not written, while other proportions are, and its default is not 0.
    DefaultProportion {
        /// The share of all operations that it comes to, from 0 to 1.
        share: f64,
    },
}

/// Something in a workload file that is probably a mistake but has a meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 where the key is not written.
    pub line: usize,
    /// The key.
    pub key: String,
    /// What is wrong.
    pub kind: WarningKind,
}

impl Warning {
    /// The known key nearest to an unknown one.
    pub fn nearest_key(&self) -> Option<&'static str> {
        match self.kind {
            WarningKind::UnknownKey { nearest } => nearest,
            WarningKind::Repeated { .. } | WarningKind::DefaultProportion { .. } => None,
        }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Warning { file, line, key, kind } = self;
        match kind {
            WarningKind::UnknownKey { nearest: Some(nearest) } => {
                write!(formatter, "{file}:{line}: unknown key `{key}` is ignored; did you mean `{nearest}`?")
            }
            WarningKind::UnknownKey { nearest: None } => {
                write!(formatter, "{file}:{line}: unknown key `{key}` is ignored")
            }
            WarningKind::Repeated { first_line } => {
                write!(formatter, "{file}:{line}: `{key}` replaces its value of line {first_line}")
            }
            WarningKind::DefaultProportion { share } => write!(
                formatter,
                "{file}: `{key}` is not written, and YCSB's default is {}, which makes it {:.1}% of the operations; write \
                 {key}=0 for none",
                default_of(key),
                share * 100.0
            ),
        }
    }
}

/// The key of an operation's proportion.
fn proportion_key(operation: ClientOperation) -> String {
    format!("{}proportion", operation.name())
}

/// What YCSB takes where a key is absent; empty where it has no default.
fn default_of(key: &str) -> &'static str {
    KEYS.iter().find(|known| known.name == key).and_then(|known| known.default).unwrap_or_default()
}

/// Why a workload file cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum WorkloadError {
    /// The file cannot be read.
    #[error("cannot read workload file {file}")]
    #[diagnostic(help("name a YCSB property file that exists and may be read"))]
    Unreadable {
        /// The file.
        file: Box<str>,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not a property file.
    #[error("{file} is not a Java property file")]
    #[diagnostic(help("write \\\\ for a backslash, or \\u and four hexadecimal digits for a character"))]
    Malformed {
        /// The file.
        file: Box<str>,
        /// Where and why.
        #[source]
        cause: properties::MalformedEscape,
        /// The text.
        #[source_code]
        text: Arc<NamedSource<String>>,
        /// Where the escape stands.
        #[label("here")]
        span: SourceSpan,
    },
    /// A key that has no default is absent.
    #[error("{file}: `{key}` is missing: {bound}")]
    #[diagnostic(help("{next_step}"))]
    Missing {
        /// The file.
        file: Box<str>,
        /// The key.
        key: &'static str,
        /// Why it is needed.
        bound: Box<str>,
        /// What to write.
        next_step: Box<str>,
    },
    /// A value that its key cannot have.
    #[error("{}: {key}={value}: {bound}", place(.file, *.line))]
    #[diagnostic(help("{next_step}"))]
    BadValue {
        /// The file.
        file: Box<str>,
        /// The line, from 1; 0 where the value is a default.
        line: usize,
        /// The key.
        key: &'static str,
        /// The value as written.
        value: Box<str>,
        /// What the value must be.
        bound: Box<str>,
        /// What to do.
        next_step: Box<str>,
        /// The text.
        #[source_code]
        text: Arc<NamedSource<String>>,
        /// Where the value stands.
        #[label("this value")]
        span: Option<SourceSpan>,
    },
}

/// Where a value stands, for a message.
fn place(file: &str, line: usize) -> String {
    if line == 0 { format!("{file} (by default)") } else { format!("{file}:{line}") }
}

/// A property and where it came from.
#[derive(Clone, Debug)]
struct Property {
    value: String,
    line: usize,
    span: SourceSpan,
    text: Arc<NamedSource<String>>,
}

/// A YCSB core workload: what a client does, how often, and to which records.
///
/// ```
/// use offpath_workload::{ClientOperation, RequestDistribution, Workload};
/// let workload = Workload::parse("recordcount=1000\nrequestdistribution=latest\n", "mine").unwrap();
/// assert_eq!(workload.request_distribution, RequestDistribution::Latest);
/// assert_eq!(workload.mix.share(ClientOperation::Read), 0.95);
/// assert_eq!(workload.mean_record_bytes(), 1000.0);
///
/// let error = Workload::parse("recordcount=many\n", "mine").unwrap_err();
/// assert!(error.to_string().starts_with("mine:1: recordcount=many: "));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Workload {
    /// The file, as messages name it.
    pub file: String,
    /// Records loaded before the run, at least 1.
    pub record_count: u64,
    /// Operations of the run; 0 for no limit.
    pub operation_count: u64,
    /// Proportions of the operations.
    pub mix: OperationMix,
    /// Which records requests go to.
    pub request_distribution: RequestDistribution,
    /// Fields of a record.
    pub field_count: u64,
    /// Length of a field in bytes, or of the longest where lengths vary.
    pub field_length_bytes: u64,
    /// Length of the shortest field in bytes where lengths vary.
    pub min_field_length_bytes: u64,
    /// How the length of a field is chosen.
    pub field_length_distribution: FieldLengthDistribution,
    /// Whether reads take all fields, or one.
    pub read_all_fields: bool,
    /// Whether updates write all fields, or one.
    pub write_all_fields: bool,
    /// Whether values are checked when read.
    pub data_integrity: bool,
    /// Fewest records of a scan.
    pub min_scan_length: u64,
    /// Most records of a scan.
    pub max_scan_length: u64,
    /// How the number of records of a scan is chosen.
    pub scan_length_distribution: ScanLengthDistribution,
    /// Whether keys are hashed record numbers.
    pub insert_order: InsertOrder,
    /// Digits to which record numbers in keys are padded.
    pub zero_padding: u64,
    /// First record of this client.
    pub insert_start: u64,
    /// Records of this client from `insert_start` on.
    pub insert_count: u64,
    /// Table name.
    pub table: String,
    /// Client threads.
    pub thread_count: u64,
    /// Operations per second offered by all threads together; 0 for no limit.
    pub target_operations_per_second: u64,
    warnings: Vec<Warning>,
    properties: BTreeMap<String, Property>,
    text: Arc<NamedSource<String>>,
}

/// The longest workload file: a device file or a named pipe need not end.
const MOST_BYTES: u64 = 1 << 20;

fn read_at_most(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            "it is longer than 1 MiB, which no workload is",
        )),
        false => Ok(bytes),
    }
}

impl Workload {
    /// Reads a workload file, of at most 1 MiB. Bytes are Latin-1, as Java takes them.
    ///
    /// Errors: [`WorkloadError::Unreadable`], and those of [`Workload::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Workload, WorkloadError> {
        let file = path.as_ref().display().to_string();
        let bytes = read_at_most(path.as_ref())
            .map_err(|source| WorkloadError::Unreadable { file: file.as_str().into(), source })?;
        let text: String = bytes.into_iter().map(char::from).collect();
        Workload::parse(&text, &file)
    }

    /// Reads a workload from the text of a property file; `file_name` is what messages call it.
    ///
    /// Errors: a malformed `\u` escape, a missing key, a value outside its bound, or values that
    /// exclude each other.
    pub fn parse(text: &str, file_name: &str) -> Result<Workload, WorkloadError> {
        let text = Arc::new(NamedSource::new(file_name, text.to_owned()));
        let mut properties = BTreeMap::new();
        let warnings = read_properties(&text, &mut properties)?;
        Reader { properties: &properties, text: &text }.workload(warnings)
    }

    /// The workload with some properties replaced or added, as `-p key=value` does in YCSB.
    ///
    /// Errors and warnings about them name the file `overrides`.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// let workload = offpath_workload::Workload::parse("recordcount=1000", "mine").unwrap();
    /// let overrides = BTreeMap::from([("recordcount".to_owned(), "100000000".to_owned())]);
    /// assert_eq!(workload.with_overrides(overrides).unwrap().record_count, 100_000_000);
    /// ```
    pub fn with_overrides(&self, overrides: BTreeMap<String, String>) -> Result<Workload, WorkloadError> {
        let written = overrides.iter().map(|(key, value)| properties::write_property(key, value)).collect();
        let mut properties = self.properties.clone();
        let mut warnings = self.warnings.clone();
        warnings.extend(read_properties(&Arc::new(NamedSource::new("overrides", written)), &mut properties)?);
        Reader { properties: &properties, text: &self.text }.workload(warnings)
    }

    /// The workload of these properties; `file_name` is what messages call it.
    ///
    /// Errors: those of [`Workload::parse`].
    ///
    /// ```
    /// use offpath_workload::Workload;
    /// let file = Workload::parse("recordcount=1000\nfieldlength=8", "mine").unwrap();
    /// let again = Workload::of_properties(file.properties(), "again").unwrap();
    /// assert_eq!(file.differences(&again), Vec::<String>::new());
    /// ```
    pub fn of_properties<'p>(
        properties: impl IntoIterator<Item = (&'p str, &'p str)>,
        file_name: &str,
    ) -> Result<Workload, WorkloadError> {
        let lines = properties.into_iter().map(|(key, value)| properties::write_property(key, value));
        Workload::parse(&lines.collect::<String>(), file_name)
    }

    /// The workload in a line: its operations, which records they go to, and how large those are.
    ///
    /// ```
    /// let workload = offpath_workload::Workload::parse("recordcount=9", "mine").unwrap();
    /// assert_eq!(workload.description(), "95% read, 5% update, uniform over 9 records of 1000 B");
    /// ```
    pub fn description(&self) -> String {
        let shares = ClientOperation::ALL.into_iter().filter(|operation| self.mix.share(*operation) > 0.0);
        let shares = shares
            .map(|operation| format!("{:.0}% {}", self.mix.share(operation) * 100.0, operation.name()))
            .collect::<Vec<_>>();
        format!(
            "{}, {} over {} records of {} B",
            shares.join(", "),
            self.properties.get("requestdistribution").map_or("uniform", |property| &property.value),
            self.record_count,
            self.mean_record_bytes()
        )
    }

    /// In which properties the requests of two workloads differ, as `key VALUE, other VALUE`: operations,
    /// records, their sizes, and which of them requests go to. How many operations run, in how many threads
    /// and at what rate is a load and no property of a request.
    pub fn differences(&self, other: &Workload) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |key: &str, own: String, others: String| {
            if own != others {
                found.push(format!("{key} {own}, other {others}"));
            }
        };
        let scans = |workload: &Workload| {
            let is_scanned = workload.mix.share(ClientOperation::Scan) > 0.0;
            let (least, most) = (workload.min_scan_length, workload.max_scan_length);
            format!("{:?}", is_scanned.then_some((least, most, workload.scan_length_distribution)))
        };
        let fields = |workload: &Workload| match workload.field_length_distribution {
            FieldLengthDistribution::Constant => format!("{} B", workload.field_length_bytes),
            varied => {
                format!("{} to {} B {varied:?}", workload.min_field_length_bytes, workload.field_length_bytes)
            }
        };
        for operation in ClientOperation::ALL {
            let share = |of: &Workload| format!("{:.4}%", of.mix.share(operation) * 100.0);
            compare(operation.name(), share(self), share(other));
        }
        let distribution = |of: &Workload| format!("{:?}", of.request_distribution);
        compare("requestdistribution", distribution(self), distribution(other));
        compare("recordcount", self.record_count.to_string(), other.record_count.to_string());
        compare("fieldcount", self.field_count.to_string(), other.field_count.to_string());
        compare("fieldlength", fields(self), fields(other));
        compare("readallfields", self.read_all_fields.to_string(), other.read_all_fields.to_string());
        compare("writeallfields", self.write_all_fields.to_string(), other.write_all_fields.to_string());
        compare("scanlength", scans(self), scans(other));
        found
    }

    /// What in the file is probably a mistake.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The properties as written, without defaults, by key.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        self.properties.iter().map(|(key, property)| (key.as_str(), property.value.as_str()))
    }

    /// The key of a record: `user` and the record number, or its hash where `insertorder` is hashed,
    /// padded with zeros.
    ///
    /// ```
    /// let workload = offpath_workload::Workload::parse("recordcount=9", "mine").unwrap();
    /// assert_eq!(workload.key_name(0), "user6284781860667377211");
    /// ```
    pub fn key_name(&self, record: u64) -> String {
        let number = match self.insert_order {
            InsertOrder::Hashed => fnv_hash_64(record),
            InsertOrder::Ordered => record,
        };
        format!("user{number:0width$}", width = self.zero_padding as usize)
    }

    /// The mean length of a record's fields together, in bytes; the key is not counted.
    pub fn mean_record_bytes(&self) -> f64 {
        self.field_count as f64 * FieldLengthChooser::new(self).mean_bytes()
    }

    /// The keys that a scrambled Zipfian request is hashed onto, the first being `insert_start`.
    pub(crate) fn key_space(&self) -> u64 {
        let inserted = self.operation_count as f64 * self.mix.proportion(ClientOperation::Insert) * 2.0;
        // Java's narrowing to int stops at the largest.
        self.insert_count + 1 + (inserted as u64).min(MOST_32_BIT)
    }

    /// The records that a hotspot distribution calls hot; 0 for other distributions.
    pub(crate) fn hot_records(&self) -> u64 {
        match self.request_distribution {
            RequestDistribution::Hotspot { data_fraction, .. } => {
                (self.insert_count as f64 * data_fraction) as u64
            }
            _ => 0,
        }
    }

    /// The rate at which an exponential distribution falls from a record to the next older one; 0 for
    /// other distributions.
    pub(crate) fn exponential_rate_per_record(&self) -> f64 {
        match self.request_distribution {
            RequestDistribution::Exponential { percentile, fraction } => {
                -(-percentile / 100.0).ln_1p() / (self.record_count as f64 * fraction)
            }
            _ => 0.0,
        }
    }
}

fn read_properties(
    text: &Arc<NamedSource<String>>,
    properties: &mut BTreeMap<String, Property>,
) -> Result<Vec<Warning>, WorkloadError> {
    let file = text.name();
    let entries = properties::parse(text.inner()).map_err(|cause| WorkloadError::Malformed {
        file: file.into(),
        span: cause.span.clone().into(),
        cause,
        text: text.clone(),
    })?;
    let mut warnings = Vec::new();
    for entry in entries {
        let mut warn = |kind| {
            warnings.push(Warning { file: file.to_owned(), line: entry.line, key: entry.key.clone(), kind });
        };
        if !is_known(&entry.key) {
            warn(WarningKind::UnknownKey { nearest: nearest_key(&entry.key) });
        }
        let property =
            Property { value: entry.value, line: entry.line, span: entry.span.into(), text: text.clone() };
        // Replacing a value of another file is what an override is for.
        if let Some(earlier) = properties.insert(entry.key.clone(), property)
            && Arc::ptr_eq(&earlier.text, text)
        {
            warn(WarningKind::Repeated { first_line: earlier.line });
        }
    }
    Ok(warnings)
}

fn known_keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name).chain(CLIENT_KEYS.iter().copied())
}

fn is_known(key: &str) -> bool {
    known_keys().any(|known| known == key) || CLIENT_KEY_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

fn nearest_key(key: &str) -> Option<&'static str> {
    let lower = key.to_lowercase();
    let distance = |known: &&str| strsim::damerau_levenshtein(&lower, known);
    known_keys().min_by_key(distance).filter(|known| distance(known) <= 2.max(known.len() / 4))
}

/// Turns properties into a checked workload.
struct Reader<'a> {
    properties: &'a BTreeMap<String, Property>,
    text: &'a Arc<NamedSource<String>>,
}

impl Reader<'_> {
    fn workload(&self, mut warnings: Vec<Warning>) -> Result<Workload, WorkloadError> {
        if !CORE_WORKLOADS.contains(&self.value("workload")) {
            return Err(self.bad(
                "workload",
                "only the core workload is known",
                &format!("write workload={}", CORE_WORKLOADS[0]),
            ));
        }
        if !self.properties.contains_key("recordcount") {
            return Err(WorkloadError::Missing {
                file: self.text.name().into(),
                key: "recordcount",
                bound: "every distribution depends on the number of records".into(),
                next_step: "write recordcount=1000, or as many records as the store holds".into(),
            });
        }
        let record_count = self.integer("recordcount", 1, MOST_RECORDS)?;
        let insert_start = self.integer("insertstart", 0, record_count - 1)?;
        let insert_count = if self.properties.contains_key("insertcount") {
            self.integer("insertcount", 1, record_count - insert_start)?
        } else {
            record_count - insert_start
        };
        let mix = self.mix()?;
        // Overrides may have written what the file leaves out.
        warnings.retain(|warning| !matches!(warning.kind, WarningKind::DefaultProportion { .. }));
        warnings.extend(self.default_proportions(&mix));
        let workload = Workload {
            file: self.text.name().to_owned(),
            record_count,
            operation_count: self.integer("operationcount", 0, MOST_RECORDS)?,
            mix,
            request_distribution: self.request_distribution(insert_count)?,
            field_count: self.integer("fieldcount", 1, MOST_32_BIT)?,
            field_length_bytes: self.integer("fieldlength", 0, MOST_32_BIT)?,
            min_field_length_bytes: self.integer("minfieldlength", 0, MOST_32_BIT)?,
            field_length_distribution: self.choice(
                "fieldlengthdistribution",
                &[
                    ("constant", FieldLengthDistribution::Constant),
                    ("uniform", FieldLengthDistribution::Uniform),
                    ("zipfian", FieldLengthDistribution::Zipfian),
                ],
            )?,
            read_all_fields: self.boolean("readallfields")?,
            write_all_fields: self.boolean("writeallfields")?,
            data_integrity: self.boolean("dataintegrity")?,
            min_scan_length: self.integer("minscanlength", 0, MOST_32_BIT)?,
            max_scan_length: self.integer("maxscanlength", 1, MOST_32_BIT)?,
            scan_length_distribution: self.choice(
                "scanlengthdistribution",
                &[("uniform", ScanLengthDistribution::Uniform), ("zipfian", ScanLengthDistribution::Zipfian)],
            )?,
            insert_order: self.choice(
                "insertorder",
                &[("hashed", InsertOrder::Hashed), ("ordered", InsertOrder::Ordered)],
            )?,
            // Padding is memory for every key: a longer one is a slip.
            zero_padding: self.integer("zeropadding", 0, 1024)?,
            insert_start,
            insert_count,
            table: self.value("table").to_owned(),
            thread_count: self.integer("threadcount", 1, MOST_32_BIT)?,
            target_operations_per_second: self.integer("target", 0, MOST_RECORDS)?,
            warnings,
            properties: self.properties.clone(),
            text: self.text.clone(),
        };
        self.check(&workload)?;
        Ok(workload)
    }

    /// Checks values against each other.
    fn check(&self, workload: &Workload) -> Result<(), WorkloadError> {
        let constant = workload.field_length_distribution == FieldLengthDistribution::Constant;
        if workload.data_integrity && !constant {
            return Err(self.bad(
                "dataintegrity",
                "values can be checked only where all fields are of one length",
                "write fieldlengthdistribution=constant or dataintegrity=false",
            ));
        }
        if !constant && workload.min_field_length_bytes > workload.field_length_bytes {
            return Err(self.above("minfieldlength", "fieldlength", workload.field_length_bytes));
        }
        if workload.min_scan_length > workload.max_scan_length {
            return Err(self.above("minscanlength", "maxscanlength", workload.max_scan_length));
        }
        let zipfian = workload.request_distribution == RequestDistribution::Zipfian;
        let inserts = workload.mix.share(ClientOperation::Insert) > 0.0;
        if zipfian && inserts && !self.properties.contains_key("operationcount") {
            return Err(WorkloadError::Missing {
                file: self.text.name().into(),
                key: "operationcount",
                bound: "the zipfian key space holds room for the records that the run inserts".into(),
                next_step: "write operationcount=1000, or as many operations as the run has".into(),
            });
        }
        Ok(())
    }

    fn mix(&self) -> Result<OperationMix, WorkloadError> {
        let proportion = |key| self.number(key, 0.0..=1e9, "from 0 to 1000000000");
        let mix = OperationMix {
            proportions: [
                proportion("readproportion")?,
                proportion("updateproportion")?,
                proportion("insertproportion")?,
                proportion("scanproportion")?,
                proportion("readmodifywriteproportion")?,
            ],
        };
        if mix.proportions.iter().sum::<f64>() < f64::MIN_POSITIVE {
            return Err(self.bad(
                "readproportion",
                "all five proportions are 0, so there is no operation to do",
                "write a proportion above 0, as readproportion=1",
            ));
        }
        Ok(mix)
    }

    /// Operations that nobody wrote, beside others that somebody did.
    fn default_proportions(&self, mix: &OperationMix) -> Vec<Warning> {
        let is_written =
            |operation: &ClientOperation| self.properties.contains_key(&proportion_key(*operation));
        if !ClientOperation::ALL.iter().any(is_written) {
            return Vec::new();
        }
        let absent = ClientOperation::ALL.into_iter().filter(|operation| !is_written(operation));
        absent
            .filter(|operation| mix.share(*operation) > 0.0)
            .map(|operation| Warning {
                file: self.text.name().to_owned(),
                line: 0,
                key: proportion_key(operation),
                kind: WarningKind::DefaultProportion { share: mix.share(operation) },
            })
            .collect()
    }

    fn request_distribution(&self, insert_count: u64) -> Result<RequestDistribution, WorkloadError> {
        let (data, operations) = ("hotspotdatafraction", "hotspotopnfraction");
        let data_fraction = self.number(data, 0.0..=1.0, "from 0 to 1")?;
        let operation_fraction = self.number(operations, 0.0..=1.0, "from 0 to 1")?;
        let percentile =
            self.number("exponential.percentile", 1e-9..=99.999_999, "from 0.000000001 to 99.999999")?;
        let fraction = self.number("exponential.frac", 1e-9..=1.0, "from 0.000000001 to 1")?;
        let distribution = self.choice(
            "requestdistribution",
            &[
                ("uniform", RequestDistribution::Uniform),
                ("zipfian", RequestDistribution::Zipfian),
                ("latest", RequestDistribution::Latest),
                ("hotspot", RequestDistribution::Hotspot { data_fraction, operation_fraction }),
                ("sequential", RequestDistribution::Sequential),
                ("exponential", RequestDistribution::Exponential { percentile, fraction }),
            ],
        )?;
        if matches!(distribution, RequestDistribution::Hotspot { .. }) {
            let hot_records = (insert_count as f64 * data_fraction) as u64;
            if hot_records == 0 && operation_fraction > 0.0 {
                let bound =
                    format!("no record of {insert_count} is hot, yet {operations} sends requests there");
                return Err(self.bad(data, &bound, "raise it, or write hotspotopnfraction=0"));
            }
            if hot_records == insert_count && operation_fraction < 1.0 {
                let bound =
                    format!("all {insert_count} records are hot, yet {operations} leaves requests over");
                return Err(self.bad(data, &bound, "lower it, or write hotspotopnfraction=1"));
            }
        }
        Ok(distribution)
    }

    fn value(&self, key: &str) -> &str {
        self.properties.get(key).map_or_else(|| default_of(key), |property| &property.value)
    }

    fn bad(&self, key: &'static str, bound: &str, next_step: &str) -> WorkloadError {
        let property = self.properties.get(key);
        let text = property.map_or(self.text, |property| &property.text);
        WorkloadError::BadValue {
            file: text.name().into(),
            line: property.map_or(0, |property| property.line),
            key,
            value: self.value(key).into(),
            bound: bound.into(),
            next_step: next_step.into(),
            text: text.clone(),
            span: property.map(|property| property.span),
        }
    }

    fn above(&self, key: &'static str, limit: &'static str, most: u64) -> WorkloadError {
        let bound = format!("must be at most {limit}, which is {most}");
        self.bad(key, &bound, &format!("lower {key} or raise {limit}"))
    }

    /// The next step for a value that is none of what its key can be.
    fn remedy(&self, key: &'static str, example: &str) -> String {
        if self.value(key).ends_with([' ', '\t']) {
            return "remove the blank at the end of the line: Java keeps it as part of the value".to_owned();
        }
        format!("write {key}={example}")
    }

    fn integer(&self, key: &'static str, low: u64, high: u64) -> Result<u64, WorkloadError> {
        let parsed = self.value(key).parse().ok().filter(|value| (low..=high).contains(value));
        parsed.ok_or_else(|| {
            let bound = format!("must be a whole number from {low} to {high}");
            let default = KEYS.iter().find(|known| known.name == key).and_then(|known| known.default);
            let example = default.and_then(|default| default.parse().ok()).unwrap_or(1000).clamp(low, high);
            self.bad(key, &bound, &self.remedy(key, &example.to_string()))
        })
    }

    fn number(
        &self,
        key: &'static str,
        range: std::ops::RangeInclusive<f64>,
        range_in_words: &str,
    ) -> Result<f64, WorkloadError> {
        // Java's Double.parseDouble takes blanks around the number.
        let parsed: Option<f64> = self.value(key).trim().parse().ok();
        parsed.filter(|value| range.contains(value)).ok_or_else(|| {
            let default = KEYS.iter().find(|known| known.name == key).and_then(|known| known.default);
            self.bad(
                key,
                &format!("must be a number {range_in_words}"),
                &self.remedy(key, default.unwrap_or("1")),
            )
        })
    }

    fn choice<T: Copy>(&self, key: &'static str, choices: &[(&str, T)]) -> Result<T, WorkloadError> {
        let value = self.value(key);
        choices.iter().find(|(name, _)| *name == value).map(|&(_, choice)| choice).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
            let nearest = names.iter().min_by_key(|name| strsim::damerau_levenshtein(value, name));
            let bound = format!("must be one of {}", names.join(", "));
            self.bad(key, &bound, &self.remedy(key, nearest.unwrap_or(&"")))
        })
    }

    fn boolean(&self, key: &'static str) -> Result<bool, WorkloadError> {
        match self.value(key).to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            // Java would take anything else for false.
            _ => Err(self.bad(key, "must be true or false", &self.remedy(key, "true"))),
        }
    }
}
