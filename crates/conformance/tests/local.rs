//! The local backend against the contract, on both clocks, with and without a DMA engine.

use offpath_conformance::run_all;
use offpath_fabric::local::{Local, LocalClock};

#[test]
fn local_with_everything_it_supports() {
    let report = run_all(&|seed| Local::new(seed).clock(LocalClock::Manual).dma_engine("local-dma"));
    println!("{report}");
    assert!(report.failed().is_empty(), "{report}");
    assert!(report.skipped().is_empty(), "{report}");
}

#[test]
fn local_on_the_wall_clock_without_dma() {
    let report = run_all(&Local::new);
    println!("{report}");
    assert!(report.failed().is_empty(), "{report}");
    assert_eq!(report.skipped(), ["dma_copies"], "{report}");
}
