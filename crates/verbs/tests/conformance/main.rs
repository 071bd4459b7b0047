//! The verbs backend against the fabric's contract, and what is its own: receives that connections share,
//! roles in several processes, a process that is killed.
//!
//! Without an RDMA device it says that it was skipped; `lab/run conformance` runs it in a machine that has
//! one, and asks with `OFFPATH_DEVICE_REQUIRED` that a skip be a failure. With the arguments
//! `server|client OWN-ADDRESS PEER-ADDRESS` it is one process of two, on one machine or on two. With
//! `managed` before them, connections are made by the connection manager; alone, it runs only what tests that.

#[path = "../device/mod.rs"]
mod device;
mod managed;
mod own;

use offpath_conformance::{Make, run_each};
use offpath_verbs::{ConnectBy, Verbs, Waiting};
use std::process::ExitCode;

/// Runs every case, printing each as it ends; says whether all that had to run did, and passed.
fn passes(name: &str, make: Make<'_, Verbs>) -> bool {
    println!("== conformance: {name}");
    let report = run_each(make, |case, result| println!("{}", result.line(case)));
    let can = &report.capabilities;
    let missing = |case: &str| match case {
        "deadlock_is_reported" | "dma_copies" => true,
        "ud_drops_without_receive" | "ud_loss" => !can.ud,
        _ => case.contains("atomic") && can.atomics == offpath_fabric::Atomics::None,
    };
    let unexpected: Vec<_> = report.skipped().into_iter().filter(|case| !missing(case)).collect();
    let cases = report.results.iter().map(|(name, result)| result.line(name)).collect::<Vec<_>>();
    // The cases have been printed; the header and the count have not.
    report
        .to_string()
        .lines()
        .filter(|line| !cases.iter().any(|case| case == line))
        .for_each(|line| println!("{line}"));
    if !unexpected.is_empty() {
        println!("skipped although the device supports them: {unexpected:?}");
    }
    report.failed().is_empty() && unexpected.is_empty()
}

fn main() -> ExitCode {
    let backend = match device::opened("lab/run conformance") {
        Ok(backend) => backend,
        Err(code) => return code,
    };
    let by_manager = match backend.clone().connect_by(ConnectBy::ConnectionManager) {
        Ok(backend) => backend,
        Err(error) => {
            println!("no connection manager to test: {error}");
            return ExitCode::FAILURE;
        }
    };
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut arguments = &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..];
    let only_managed = arguments.first() == Some(&"managed");
    if only_managed {
        arguments = &arguments[1..];
    }
    let good = match arguments {
        [role @ ("server" | "client"), own, peer] => match (own.parse(), peer.parse()) {
            (Ok(own), Ok(peer)) => {
                let backend = if only_managed { &by_manager } else { &backend };
                own::tell(role, &own::one_process(backend, role, own, peer))
            }
            _ => own::tell(role, &Err("an address is not IP:PORT".into())),
        },
        _ => {
            println!("device {}", backend.device());
            let mut all = vec![];
            for (backend, managed) in [(&backend, false), (&by_manager, true)] {
                if only_managed && !managed {
                    continue;
                }
                let by = if managed { "connections by rdma_cm, " } else { "" };
                println!("== {by}cases of verbs alone");
                all.extend([
                    own::tell("shared_receive_queue", &own::shared_receive_queue(backend)),
                    own::tell("requests_by_hand", &own::requests_by_hand(backend)),
                    own::tell("two_processes", &own::two_processes(backend, managed)),
                    own::tell("a_killed_process", &own::a_killed_process(backend, managed)),
                ]);
                if managed {
                    all.extend([
                        own::tell("nobody_listens", &managed::nobody_listens(backend)),
                        own::tell("nobody_waits", &managed::nobody_waits(backend)),
                        own::tell("no_such_address", &managed::no_such_address(backend)),
                        own::tell("a_dialler_that_leaves", &managed::a_dialler_that_leaves(backend)),
                        own::tell("diallers_that_give_up", &managed::diallers_that_give_up(backend)),
                        own::tell("unequal_ways", &managed::unequal_ways(backend)),
                    ]);
                }
                all.push(passes(&format!("{by}polling"), &|seed| backend.clone().seed(seed)));
                all.push(passes(&format!("{by}events"), &|seed| {
                    backend.clone().seed(seed).waiting(Waiting::Events)
                }));
            }
            all.into_iter().all(|good| good)
        }
    };
    println!("verbs: {}", if good { "passed" } else { "FAILED" });
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
