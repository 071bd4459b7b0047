//! Where a machine stands among others, by the rates that stress-ng counted on each.

use super::{ImportRequest, import_each};
use crate::SCHEMA_VERSION;
use offpath_evidence::reproduce::median;
use offpath_logs::{LogDetail, LogItem, LogTool, MetricSubject};
use offpath_plan::sample::quantile;
use offpath_terminal::failure::{Failure, nearest};
use offpath_terminal::output::{Screen, TableCell, short};
use serde::Serialize;
use std::collections::BTreeMap;

/// Where a machine stands among those of the logs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RankAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The machine.
    pub machine: String,
    /// All machines, by name.
    pub machines: Vec<String>,
    /// Each kind of work that it ran and another one too, by name.
    pub works: Vec<RankedWorkAnswer>,
    /// It beside each of the others.
    pub others: Vec<BesideMachineAnswer>,
}

/// A kind of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RankedWorkAnswer {
    /// The stressor.
    pub work: String,
    /// 1 where no machine is faster; those that are as fast share a rank.
    pub rank: usize,
    /// Machines that ran it.
    pub of: usize,
    /// Bogo operations per second, by real time, of all that a run had.
    pub bogo_ops_per_s: f64,
    /// The fastest machine.
    pub fastest: String,
    /// The machine's rate over the fastest one's.
    pub share_of_fastest: f64,
    /// The machine's rate over the middle one of all that ran it.
    pub share_of_median: f64,
}

/// A machine beside another one, over the kinds of work that both ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BesideMachineAnswer {
    /// The other one.
    pub machine: String,
    /// Kinds of work that both ran.
    pub works: usize,
    /// Of how many of them the machine is faster.
    pub faster: usize,
    /// The middle one of its rates over the other's.
    pub median_share: f64,
    /// A tenth of them are below.
    pub tenth_share: f64,
    /// A tenth of them are above.
    pub nine_tenths_share: f64,
}

/// Says where a machine stands among those of the logs: for each stressor that it ran, and beside each of the others. A machine
/// is a platform of a summary that names several, or else a file. Of several runs the middle one counts.
///
/// # Errors
/// Where a log cannot be read, no machine has that name, or no other one ran what it ran.
pub fn rank(request: &ImportRequest, machine: &str) -> Result<RankAnswer, Failure> {
    let mut runs: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    import_each(request, |file, item| {
        let LogItem::Measurement(figure) = item else { return Ok(()) };
        let is_rate = figure.tool == LogTool::StressNg
            && figure.metric.subject == MetricSubject::BogoRate
            // In YAML an instance of several has figures of its own beside those of all.
            && !figure.conditions.more.contains_key("instance");
        if let Some(work) = figure.conditions.program.as_deref().filter(|_| is_rate) {
            let platform = figure.conditions.more.get("platform");
            let name = match platform {
                Some(LogDetail::Text(platform)) => platform.to_string(),
                _ => file.to_string(),
            };
            let own = runs.entry(name).or_default().entry(work.to_string()).or_default();
            own.push(figure.figure.value());
        }
        Ok(())
    })?;
    let rates: BTreeMap<String, BTreeMap<String, f64>> = runs
        .into_iter()
        .map(|(name, works)| (name, works.into_iter().map(|(work, all)| (work, median(all))).collect()))
        .collect();
    let machines: Vec<String> = rates.keys().cloned().collect();
    let Some(own) = rates.get(machine) else {
        let near = nearest(machine, &machines).map(|near| format!("did you mean `{near}`? "));
        return Err(Failure::input(
            format!("the logs have no rate of stress-ng of a machine `{machine}`"),
            match machines.is_empty() {
                true => "give its metrics (`--metrics`, `--yaml`), or a summary of platforms".to_string(),
                false => format!("{}they have {}", near.unwrap_or_default(), machines.join(", ")),
            },
        ));
    };
    let works: Vec<RankedWorkAnswer> = own
        .iter()
        .filter_map(|(work, rate)| {
            let all = rates.iter().filter_map(|(name, works)| Some((name, *works.get(work)?)));
            let all: Vec<(&String, f64)> = all.collect();
            let (fastest, most) = all.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
            (all.len() > 1).then(|| RankedWorkAnswer {
                work: work.clone(),
                rank: 1 + all.iter().filter(|(_, other)| other > rate).count(),
                of: all.len(),
                bogo_ops_per_s: *rate,
                fastest: fastest.to_string(),
                share_of_fastest: rate / most,
                share_of_median: rate / median(all.iter().map(|(_, rate)| *rate).collect()),
            })
        })
        .collect();
    if works.is_empty() {
        return Err(Failure::input(
            format!("no other machine of the logs ran what `{machine}` ran"),
            "name logs of two machines at least, with the same stressors",
        ));
    }
    let others = rates.iter().filter(|(name, _)| *name != machine).filter_map(|(name, other)| {
        let shares = own.iter().filter_map(|(work, rate)| Some(rate / other.get(work)?));
        let mut shares: Vec<f64> = shares.filter(|share| share.is_finite()).collect();
        shares.sort_by(f64::total_cmp);
        (!shares.is_empty()).then(|| BesideMachineAnswer {
            machine: name.clone(),
            works: shares.len(),
            faster: shares.iter().filter(|share| **share > 1.0).count(),
            median_share: quantile(&shares, 0.5),
            tenth_share: quantile(&shares, 0.1),
            nine_tenths_share: quantile(&shares, 0.9),
        })
    });
    let others = others.collect();
    Ok(RankAnswer { schema_version: SCHEMA_VERSION, machine: machine.to_string(), machines, works, others })
}

impl RankAnswer {
    /// The answer as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        let times = |share: f64| TableCell::Number(format!("{}x", short(share)));
        let count = |count: usize| TableCell::Number(count.to_string());
        let mut ranks: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        self.works.iter().for_each(|one| ranks.entry(one.rank).or_default().push(&one.work));
        let mut text = format!(
            "{}: {} kinds of work of stress-ng, among {} machines\nA rate is that of a whole run: of as many instances as it had, \
             on as many cores.\n",
            self.machine,
            self.works.len(),
            self.machines.len()
        );
        text += &screen.heading("How often it stands where");
        let rows = ranks
            .iter()
            .map(|(rank, works)| vec![count(*rank), count(works.len()), TableCell::Text(works.join(", "))]);
        text += &screen.table(&["rank", "kinds of work", "which"], rows.collect());
        text += &screen.heading("Beside each of the others");
        let rows = self.others.iter().map(|one| {
            vec![
                TableCell::Name(one.machine.clone()),
                count(one.works),
                count(one.faster),
                times(one.median_share),
                times(one.tenth_share),
                times(one.nine_tenths_share),
            ]
        });
        let header = ["machine", "both ran", "faster in", "median", "a tenth below", "a tenth above"];
        text += &screen.table(&header, rows.collect());
        text += &screen.heading("Each kind of work");
        let rows = self.works.iter().map(|one| {
            vec![
                TableCell::Name(one.work.clone()),
                TableCell::Number(format!("{} of {}", one.rank, one.of)),
                TableCell::Number(short(one.bogo_ops_per_s)),
                times(one.share_of_median),
                times(one.share_of_fastest),
                TableCell::Name(one.fastest.clone()),
            ]
        });
        let header = ["work", "rank", "bogo ops/s", "of the median", "of the fastest", "which is"];
        text + &screen.table(&header, rows.collect())
    }
}
