//! Points on the twin.

use offpath_fabric::Backend;
use offpath_measure::{FlowFigures, MeasurePoint, MeasuringEffort, MeasuringProgram, figures_of};
use offpath_profile::System;
use offpath_twin::TwinBackend;

/// Measures a point on the idle twin of a system, whose queue pairs carry what its NICs let one carry.
///
/// # Errors
/// Where the run stops, in words.
pub fn measure_on_twin(
    system: &System,
    seed: u64,
    point: &MeasurePoint,
    effort: MeasuringEffort,
) -> Result<Vec<FlowFigures>, String> {
    let mut system = system.clone();
    for machine in &mut system.machines {
        machine.nic.inline_limit = point.run.inline;
    }
    let backend = TwinBackend::new(&system, seed).map_err(|error| error.to_string())?;
    let roles = MeasuringProgram::new(point, effort).roles(|_| true);
    let run = backend.with_queue_pair_limits().run(roles).map_err(|error| error.to_string())?;
    figures_of(run)
}
