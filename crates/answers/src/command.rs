//! The commands that go on from an answer about a design, spelled with the options that it was asked with.

use offpath_plan::Changes;
use offpath_terminal::options::{SystemOptions, as_shell_words};

/// The seed of a command that is given none.
const SEED: u64 = 1;

/// What is changed in a design, as options of a command line.
fn changes_arguments(changes: &Changes) -> Vec<String> {
    let named = |name: &str, value: Option<String>| value.map(|value| [name.to_string(), value]);
    let parameters = changes.parameters.iter();
    let parameters = parameters.map(|(name, value)| ["--parameter".to_string(), format!("{name}={value}")]);
    let workload = changes.workload.as_ref().map(|file| file.display().to_string());
    let others = [
        named("--workload", workload),
        named("--device", changes.device.clone()),
        named("--goal", changes.objective.clone()),
        named("--load", changes.offered_load.clone()),
        named("--scenario", changes.scenario.clone()),
        named("--mix", changes.mix.clone()),
    ];
    let steps = changes.steps.then(|| "--steps".to_string());
    parameters.chain(others.into_iter().flatten()).flatten().chain(steps).collect()
}

/// What is asked for beside a design's file, as options of a command line.
pub(crate) fn options(changes: &Changes, system: &SystemOptions, seed: u64) -> Vec<String> {
    let seed = (seed != SEED).then(|| ["--seed".to_string(), seed.to_string()]);
    let all = [changes_arguments(changes), system.arguments(), system.profiles_arguments()];
    all.into_iter().flatten().chain(seed.into_iter().flatten()).collect()
}

/// Those options that make it another design, or another system, than the file's: what is found with them is no change of the
/// file, and `check --fix` is refused with them. Which scenario or mix is looked at is none of them.
pub fn not_of_the_file(changes: &Changes, system: &SystemOptions) -> Vec<String> {
    let changes = Changes { mix: None, scenario: None, ..changes.clone() };
    [changes_arguments(&changes), system.arguments()].concat()
}

/// A command about a design's file, as a shell takes it.
pub(crate) fn spelled(command: &str, file: &str, options: &[String]) -> String {
    format!("offpath {command}{}{}", as_shell_words(&[file.to_string()]), as_shell_words(options))
}
