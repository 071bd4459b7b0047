//! Asking roles to end.

use offpath_fabric::Fabric;
use offpath_quantity::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to end, which a signal handler or another task makes and roles look at. Clones are one.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks for the end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until somebody asked, looking every `span`: a flag that a signal handler may set wakes
    /// nobody.
    pub async fn wait<F: Fabric>(&self, fabric: &F, span: Time) {
        while !self.is_asked() {
            fabric.sleep(span).await;
        }
    }
}
