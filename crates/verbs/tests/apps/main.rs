//! The store and the replicated log on real queue pairs: the same roles in one process, in a process
//! each, some of which are killed, and on machines of their own.
//!
//! Without an RDMA device it says that it was skipped; `lab/run apps` runs it in a machine that has one, and
//! asks with `OFFPATH_DEVICE_REQUIRED` that a skip be a failure. An argument chooses the cases whose names hold
//! it. With the arguments
//! `role SYSTEM ROLE:INSTANCE OWN-ADDRESS DIRECTORY ROLE:INSTANCE=ADDRESS...` it is one process of a system;
//! `lab/run card` starts machines like that.

#[path = "../device/mod.rs"]
mod device;
mod log;
mod roles;
mod store;

use offpath_verbs::Verbs;
use roles::{Address, System, Verdict};
use std::process::ExitCode;

/// Prints how a case ended; says whether well.
fn tell(name: &str, verdict: &Verdict) -> bool {
    match verdict {
        Ok(()) => println!("pass {name}"),
        Err(why) => println!("FAIL {name}: {why}"),
    }
    verdict.is_ok()
}

/// Everything that one machine can run, as far as its name holds `wanted`.
fn all(backend: &Verbs, wanted: &str) -> bool {
    type Case = Box<dyn Fn(&Verbs) -> Verdict>;
    let mut cases: Vec<(String, Case)> = vec![
        ("store: a DMA engine is refused".into(), Box::new(store::engine_is_refused)),
        ("log-A2 is refused".into(), Box::new(log::engine_is_refused)),
    ];
    let stores = store::PLACEMENTS.map(System::Store);
    for system in stores.into_iter().chain(log::ALTERNATIVES.map(System::Log)) {
        cases.push((format!("{system}, one process"), Box::new(move |w| roles::one_process(w, &system))));
        cases.push((format!("{system}, a process each"), Box::new(move |w| roles::processes(w, &system))));
    }
    cases.push(("store-A4, the card's process is killed".into(), Box::new(store::killed_card)));
    for alternative in log::ALTERNATIVES {
        let name = format!("{}, a backup's process is killed", System::Log(alternative));
        cases.push((name, Box::new(move |w| log::killed_backup(w, alternative))));
    }
    cases.retain(|(name, _)| name.contains(wanted));
    // Else a name that no case has would pass.
    let any = !cases.is_empty();
    any && cases.iter().map(|(name, case)| tell(name, &case(backend))).filter(|good| !good).count() == 0
}

/// One process of a system, as its arguments say.
fn role(backend: &Verbs, arguments: &[String]) -> Verdict {
    let [system, own, address, directory, peers @ ..] = arguments else {
        return Err("role wants SYSTEM ROLE:INSTANCE OWN-ADDRESS DIRECTORY ROLE:INSTANCE=ADDRESS...".into());
    };
    let peers = peers.iter().map(|peer| peer.parse()).collect::<Result<Vec<Address>, _>>()?;
    let own = Address { name: roles::name(own)?, address: address.parse()? };
    roles::process(backend, &system.parse()?, &own, directory.as_ref(), &peers)
}

fn main() -> ExitCode {
    let backend = match device::opened("lab/run apps") {
        Ok(backend) => backend,
        Err(code) => return code,
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let good = match &arguments[..] {
        [first, rest @ ..] if first == "role" => {
            let verdict = role(&backend, rest);
            let name = rest.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
            tell(&format!("{name} on {}", std::env::consts::ARCH), &verdict)
        }
        _ => {
            println!("== store and log: device {}", backend.device());
            let good = all(&backend, arguments.first().map_or("", String::as_str));
            println!("apps: {}", if good { "passed" } else { "FAILED" });
            good
        }
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
