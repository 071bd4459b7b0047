//! The header of a table.

/// The unit of a bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BandwidthUnit {
    /// 2^20 bytes per second, whichever of `MB/sec` and `MiB/sec` the header says.
    Mebibytes,
    /// 10^9 bits per second.
    Gigabits,
    /// Nothing says which.
    Unstated,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Size,
    ServiceLevel,
    Iterations,
    Peak(BandwidthUnit),
    Average(BandwidthUnit),
    MessageRate,
    PortAverage(u8, BandwidthUnit),
    PortRate(u8),
    Min,
    Max,
    Typical,
    Mean,
    Deviation,
    P99,
    P999,
    Transactions,
    ProcessorUse,
}

/// The columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
}

/// Titles of columns without their units; of two that begin alike the longer stands first.
const TITLES: &[&str] = &[
    "#bytes",
    "#sl",
    "#iterations",
    "BW peak",
    "BW average",
    "BW Port1",
    "BW Port2",
    "MsgRate Port1",
    "MsgRate Port2",
    "MsgRate",
    "t_min",
    "t_max",
    "t_typical",
    "t_avg",
    "t_stdev",
    "99.9% percentile",
    "99% percentile",
    "tps average",
    "CPU_Util",
];

impl Table {
    /// Reads a header, its fields glued together or not; nothing where the line is none.
    pub(super) fn read(text: &str) -> Option<Result<Table, String>> {
        let text = text.trim_start_matches('#');
        if !text.starts_with("bytes") || !text.contains("#iterations") && !text.contains("# iterations") {
            return None;
        }
        let text = format!("#{}", text.split_whitespace().collect::<Vec<_>>().join(" "));
        let text = text.replace("# iterations", "#iterations");
        let mut rest = text.as_str();
        let mut columns = Vec::new();
        while !rest.is_empty() {
            let Some(title) = TITLES.iter().find(|title| rest.starts_with(**title)) else {
                let column: String = rest.chars().take(20).collect();
                return Some(Err(format!("the header has a column that is not perftest's: `{column}`")));
            };
            rest = &rest[title.len()..];
            let mut unit = "";
            if let Some(inside) = rest.strip_prefix('[') {
                let Some((own, after)) = inside.split_once(']') else {
                    return Some(Err(format!("the unit of `{title}` does not end")));
                };
                (unit, rest) = (own, after);
            }
            rest = rest.trim_start();
            match column(title, unit) {
                Some(column) => columns.push(column),
                None => return Some(Err(format!("`{unit}` is not a unit of `{title}`"))),
            }
        }
        Some(Ok(Table { columns }))
    }
}

/// A column by its title and unit.
fn column(title: &str, unit: &str) -> Option<Column> {
    let bandwidth = || match unit {
        "MB/sec" | "MiB/sec" => Some(BandwidthUnit::Mebibytes),
        "Gb/sec" => Some(BandwidthUnit::Gigabits),
        _ => None,
    };
    let with = |wanted: &str, column| (unit == wanted).then_some(column);
    match title {
        "#bytes" => with("", Column::Size),
        "#sl" => with("", Column::ServiceLevel),
        "#iterations" => with("", Column::Iterations),
        "BW peak" => bandwidth().map(Column::Peak),
        "BW average" => bandwidth().map(Column::Average),
        "BW Port1" => bandwidth().map(|unit| Column::PortAverage(1, unit)),
        "BW Port2" => bandwidth().map(|unit| Column::PortAverage(2, unit)),
        "MsgRate" => with("Mpps", Column::MessageRate),
        "MsgRate Port1" => with("Mpps", Column::PortRate(1)),
        "MsgRate Port2" => with("Mpps", Column::PortRate(2)),
        "t_min" => with("usec", Column::Min),
        "t_max" => with("usec", Column::Max),
        "t_typical" => with("usec", Column::Typical),
        "t_avg" => with("usec", Column::Mean),
        "t_stdev" => with("usec", Column::Deviation),
        "99% percentile" => with("usec", Column::P99),
        "99.9% percentile" => with("usec", Column::P999),
        "tps average" => with("", Column::Transactions),
        "CPU_Util" => (unit == "%" || unit == "%%").then_some(Column::ProcessorUse),
        _ => None,
    }
}
