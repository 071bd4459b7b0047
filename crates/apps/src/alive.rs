//! Waiting for a peer that may be gone.

use offpath_fabric::{Completion, EndpointId, Fabric, PostError, QueuePair, Region, RemoteRegion, Status};
use offpath_quantity::Time;

/// Asks the peer of a queue pair whether it is there, by a READ of no bytes: it touches no memory, and
/// fails where nobody acknowledges it.
pub(crate) async fn probe<F: Fabric>(
    queue_pair: &F::QueuePair,
    region: &F::Region,
) -> Result<Status, PostError> {
    let nowhere = RemoteRegion { endpoint: EndpointId(0), key: 0, base: 0, length: 0 };
    Ok(queue_pair.read(region.slice(0, 0), nowhere.at(0))?.await.status)
}

/// Waits for a receive. Nothing tells a receiver that its peer is gone, so it asks each time that
/// `span` has passed.
pub(crate) async fn outlive<F: Fabric>(
    fabric: &F,
    queue_pair: &F::QueuePair,
    region: &F::Region,
    span: Time,
    receive: &mut F::CompletionFuture,
) -> Result<Result<Completion, Status>, PostError> {
    loop {
        if let Some(heard) = fabric.timeout(span, &mut *receive).await {
            return Ok(heard.success());
        }
        let status = probe::<F>(queue_pair, region).await?;
        if status != Status::Success {
            return Ok(Err(status));
        }
    }
}
