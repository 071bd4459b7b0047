//! The device that tests on real queue pairs run on.

use offpath_quantity::Time;
use offpath_verbs::{Verbs, VerbsError};
use std::process::ExitCode;

/// An emulated device answers within tens of milliseconds, not within one.
pub const PATIENT: Time = Time::from_ms(60);

/// The backend of the device that `OFFPATH_DEVICE` names, or of the first; where there is none, how the tests
/// end: skipped, with the `command` that runs them, or failed where `OFFPATH_DEVICE_REQUIRED` is set.
pub fn opened(command: &str) -> Result<Verbs, ExitCode> {
    let required = std::env::var_os("OFFPATH_DEVICE_REQUIRED").is_some();
    let device = std::env::var("OFFPATH_DEVICE").ok();
    match Verbs::open(device.as_deref(), 0) {
        Ok(backend) => Ok(backend.acknowledgement_floor(PATIENT)),
        Err(error @ (VerbsError::NoDevice | VerbsError::Library { .. })) if !required => {
            println!("skipped: no RDMA device (run {command}): {error}");
            Err(ExitCode::SUCCESS)
        }
        Err(error) => {
            println!("no device to test on: {error}");
            Err(ExitCode::FAILURE)
        }
    }
}
