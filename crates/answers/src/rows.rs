//! What the answers about published rows share: which rows there are, on which profiles they are predicted, and how their
//! figures are written.

use offpath_evidence::{ExperimentError, Row, shipped};
use offpath_profile::{Library, did_you_mean};
use offpath_terminal::failure::Failure;
use offpath_terminal::options::SystemOptions;
use offpath_terminal::output::{short, signed};

/// The evidence rows; refused files are a bug, since they are built in.
pub(crate) fn rows() -> Vec<Row> {
    shipped().unwrap_or_else(|error| panic!("the built-in evidence is refused: {error}"))
}

/// Refuses names that are no rows, with the nearest that are.
pub(crate) fn known(names: &[String], rows: &[Row]) -> Result<(), Failure> {
    for name in names {
        if rows.iter().all(|row| row.id != *name) {
            // Papers number their rows alike, so that a slip in the letter is as near to several.
            let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
            let near = did_you_mean(name, &ids);
            return Err(Failure::input(
                format!("`{name}` is not an evidence row"),
                format!("{near}`offpath reproduce --all` lists them"),
            ));
        }
    }
    Ok(())
}

/// The profiles that rows are predicted on.
pub(crate) fn library(system: &SystemOptions) -> Result<Library, Failure> {
    if !system.set.is_empty() || system.testbed.is_some() || system.mode.is_some() {
        return Err(Failure::input(
            "every row says which testbed, mode and settings it was measured in, so `--set`, `--testbed` and `--mode` do not apply",
            "change a copy of the profile and name its directory by `--profiles`, or give a mechanism by `--overlay`",
        ));
    }
    system.library()
}

/// What an error leads to.
pub(crate) fn refused(error: ExperimentError) -> Failure {
    Failure::input(
        error.to_string(),
        "the rows run on the devices, hosts and testbeds that ship, by the names of their components: a profile of your own in \
         the place of one has to keep these; `offpath explain ROW` shows what a row runs on",
    )
}

/// How many threads work: as many as were asked for, else one for each core.
pub(crate) fn threads(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// A value with enough digits to be told from its neighbours.
pub(crate) fn figure(value: f64) -> String {
    match value {
        // A sweep that never gets there has no place.
        v if is_nowhere(v) => "nowhere".to_string(),
        v if v.abs() >= 10_000.0 => format!("{v:.0}"),
        v => short(v),
    }
}

/// Whether a place of a sweep stands for none.
pub(crate) fn is_nowhere(value: f64) -> bool {
    value >= 1e300
}

/// An error, given as a share; of a row that misses without one, that it is on the bound that it has to be beyond.
pub(crate) fn error_percent(error: f64, misses: bool) -> String {
    match 100.0 * error {
        p if misses && p.abs() < 0.05 => "on it".to_string(),
        p if p.abs() >= 1000.0 => "far off".to_string(),
        p => signed(p, 1),
    }
}
