//! The store and the replicated log on real queue pairs: the same roles in one process, in a process
//! each, some of which are killed, and on machines of their own.
//!
//! Without an RDMA device it says that it was skipped; `lab/run apps` runs it in a machine that has one, and
//! asks with `OFFPATH_DEVICE_REQUIRED` that a skip be a failure. With the arguments
//! `role SYSTEM ROLE:INSTANCE OWN-ADDRESS DIRECTORY ROLE:INSTANCE=ADDRESS...` it is one process of a system;
//! `lab/run card` starts machines like that.

mod log;
mod roles;
mod store;

use offpath_quantity::Time;
use offpath_verbs::{Verbs, VerbsError};
use roles::{Address, System, Verdict};
use std::process::ExitCode;

/// An emulated device answers within tens of milliseconds, not within one.
const PATIENT: Time = Time::from_ms(60);

/// Prints how a case ended; says whether well.
fn tell(name: &str, verdict: &Verdict) -> bool {
    match verdict {
        Ok(()) => println!("pass {name}"),
        Err(why) => println!("FAIL {name}: {why}"),
    }
    verdict.is_ok()
}

/// Everything that one machine can run.
fn all(world: &Verbs) -> bool {
    let mut good = tell("store: a copy engine is refused", &store::engine_is_refused(world));
    for placement in store::PLACEMENTS {
        let system = System::Store(placement);
        good &= tell(&format!("{system}, one process"), &roles::one_process(world, &system));
        good &= tell(&format!("{system}, a process each"), &roles::processes(world, &system));
    }
    good &= tell("store-A4, the card's process is killed", &store::killed_card(world));
    good &= tell("log-A2 is refused", &log::engine_is_refused(world));
    for alternative in log::ALTERNATIVES {
        let system = System::Log(alternative);
        good &= tell(&format!("{system}, one process"), &roles::one_process(world, &system));
        good &= tell(&format!("{system}, a process each"), &roles::processes(world, &system));
        let name = format!("{system}, a backup's process is killed");
        good &= tell(&name, &log::killed_backup(world, alternative));
    }
    good
}

/// One process of a system, as its arguments say.
fn role(world: &Verbs, arguments: &[String]) -> Verdict {
    let [system, own, address, directory, peers @ ..] = arguments else {
        return Err("role wants SYSTEM ROLE:INSTANCE OWN-ADDRESS DIRECTORY ROLE:INSTANCE=ADDRESS...".into());
    };
    let peers = peers.iter().map(|peer| peer.parse()).collect::<Result<Vec<Address>, _>>()?;
    let own = Address { name: roles::name(own)?, address: address.parse()? };
    roles::process(world, &system.parse()?, &own, directory.as_ref(), &peers)
}

fn main() -> ExitCode {
    let required = std::env::var_os("OFFPATH_DEVICE_REQUIRED").is_some();
    let device = std::env::var("OFFPATH_DEVICE").ok();
    let world = match Verbs::open(device.as_deref(), 0) {
        Ok(world) => world.acknowledgement_floor(PATIENT),
        Err(error @ (VerbsError::NoDevice | VerbsError::Library { .. })) if !required => {
            println!("skipped: no RDMA device (run lab/run apps): {error}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            println!("no device to test on: {error}");
            return ExitCode::FAILURE;
        }
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let good = match &arguments[..] {
        [first, rest @ ..] if first == "role" => {
            let verdict = role(&world, rest);
            let name = rest.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
            tell(&format!("{name} on {}", std::env::consts::ARCH), &verdict)
        }
        _ => {
            println!("== store and log: device {}", world.device());
            let good = all(&world);
            println!("apps: {}", if good { "passed" } else { "FAILED" });
            good
        }
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
