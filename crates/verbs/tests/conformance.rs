//! The verbs world against the fabric's contract, on the first device of this machine.
//!
//! Without one it says that it was skipped; `lab/run conformance` runs it in a machine that has one, and
//! asks with `OFFPATH_DEVICE_REQUIRED` that a skip be a failure.

use offpath_conformance::{Make, run_each};
use offpath_quantity::Time;
use offpath_verbs::{Verbs, VerbsError, Waiting};
use std::process::ExitCode;

/// An emulated device answers within tens of milliseconds, not within one.
const PATIENT: Time = Time::from_ms(60);

/// Runs every case, printing each as it ends; says whether all that had to run did, and passed.
fn passes(name: &str, make: Make<'_, Verbs>) -> bool {
    println!("== conformance: {name}");
    let report = run_each(make, |case, result| println!("{}", result.line(case)));
    let capabilities = &report.capabilities;
    let mut missing = vec!["standstill_is_reported", "dma_copies"];
    if !capabilities.ud {
        missing.extend(["ud_drops_without_receive", "ud_loss"]);
    }
    let skipped = report.skipped();
    let unexpected: Vec<_> = skipped.iter().filter(|case| !missing.contains(*case)).collect();
    println!("{report}");
    if !unexpected.is_empty() {
        println!("skipped although the device supports them: {unexpected:?}");
    }
    report.failed().is_empty() && unexpected.is_empty()
}

fn main() -> ExitCode {
    let required = std::env::var_os("OFFPATH_DEVICE_REQUIRED").is_some();
    let device = std::env::var("OFFPATH_DEVICE").ok();
    let world = match Verbs::open(device.as_deref(), 0) {
        Ok(world) => world.acknowledgement_floor(PATIENT),
        Err(error @ (VerbsError::NoDevice | VerbsError::Library { .. })) if !required => {
            println!("skipped: no RDMA device (run lab/run conformance): {error}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            println!("no device to test on: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("device {}", world.device());
    let polling = passes("polling", &|seed| world.clone().seed(seed));
    let events = passes("events", &|seed| world.clone().seed(seed).waiting(Waiting::Events));
    println!("conformance on verbs: {}", if polling && events { "passed" } else { "FAILED" });
    if polling && events { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
