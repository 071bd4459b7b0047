//! Two connections between a client and the server: one under test, one to agree over.

use crate::{Failure, Verdict, same};
use offpath_fabric::*;
use offpath_quantity::Time;

/// One end of a link.
pub struct LinkEnd<F: Fabric> {
    fabric: F,
    control: F::QueuePair,
    /// Notes go out of the first half and come into the second.
    notes: F::Region,
    /// The connection under test.
    pub data: F::QueuePair,
    /// This end's region.
    pub region: F::Region,
    /// The other end's region.
    pub peer: RemoteRegion,
}

const HALF: u64 = 32;

/// The nearest memory.
pub fn memory<F: Fabric>(fabric: &F) -> Result<String, Failure> {
    Ok(fabric.memories().into_iter().next().ok_or("the role has no memory")?.name)
}

/// A region of the nearest memory with every right.
pub fn region<F: Fabric>(fabric: &F, length: u64) -> Result<F::Region, Failure> {
    Ok(fabric.register(&memory(fabric)?, length, Access::ALL)?)
}

/// Meets the other end: the server meets client 0.
pub async fn meet<F: Fabric>(
    fabric: &F,
    options: QueuePairOptions,
    length: u64,
) -> Result<LinkEnd<F>, Failure> {
    meet_client(fabric, 0, options, region(fabric, length)?).await
}

/// Meets the other end with `region` as this end's; the server names the client, a client itself.
pub async fn meet_client<F: Fabric>(
    fabric: &F,
    client: u32,
    options: QueuePairOptions,
    region: F::Region,
) -> Result<LinkEnd<F>, Failure> {
    let control = fabric.create_queue_pair(QueuePairOptions::rc())?;
    let data = fabric.create_queue_pair(options)?;
    let notes = self::region(fabric, 2 * HALF)?;
    let services = [format!("control-{client}"), format!("data-{client}")];
    if fabric.role().role == "server" {
        let listeners = [fabric.listen(&services[0])?, fabric.listen(&services[1])?];
        for (listener, queue_pair) in listeners.iter().zip([&control, &data]) {
            same("the accepted peer", listener.accept(queue_pair).await?, RoleName::new("client", client))?;
        }
    } else {
        fabric.connect(&control, "server", 0, &services[0]).await?;
        fabric.connect(&data, "server", 0, &services[1]).await?;
    }
    let mut link = LinkEnd { fabric: fabric.clone(), control, notes, data, peer: region.remote(), region };
    let name = link.tell(&link.region.remote().to_bytes()).await?;
    link.peer = RemoteRegion::from_bytes(&name)?;
    Ok(link)
}

impl<F: Fabric> LinkEnd<F> {
    /// Sends a note and waits for the other end's, of the same length.
    pub async fn tell(&self, note: &[u8]) -> Result<Vec<u8>, Failure> {
        let length = note.len() as u64;
        self.notes.write(0, note)?;
        let heard = self.control.receive(self.notes.slice(HALF, length))?;
        let told = self.control.send(self.notes.slice(0, length))?;
        heard.await.success()?;
        told.await.success()?;
        let mut note = vec![0; note.len()];
        self.notes.read(HALF, &mut note)?;
        Ok(note)
    }

    /// Waits until the other end is here too.
    pub async fn sync(&self) -> Verdict {
        self.tell(&[0]).await.map(|_| ())
    }

    /// Ends the link. The server lingers, so that the client's last acknowledgement is not lost.
    pub async fn finish(&self) -> Verdict {
        if self.fabric.role().role == "server" {
            self.control.receive(self.notes.slice(HALF, 1))?.await.success()?;
            self.fabric.sleep(Time::from_ms(5)).await;
        } else {
            self.control.send(self.notes.slice(0, 1))?.await.success()?;
        }
        Ok(())
    }

    /// Checks that a completion has this status.
    pub async fn ends(&self, completion: F::CompletionFuture, status: Status) -> Verdict {
        same("the completion's status", completion.await.status, status)
    }

    /// The same where a real device may say `device` instead. The backends of this project say what the
    /// specification does.
    pub async fn ends_or(&self, completion: F::CompletionFuture, status: Status, device: Status) -> Verdict {
        let is = completion.await.status;
        let real = self.fabric.capabilities().backend == "verbs";
        if real && is == device { Ok(()) } else { same("the completion's status", is, status) }
    }

    /// Checks that the connection under test is in error and flushes what is posted.
    pub async fn is_in_error(&self) -> Verdict {
        same("the queue pair's state", self.data.state(), QueuePairState::Error)?;
        let (send, receive) =
            (self.data.send(self.region.slice(0, 1))?, self.data.receive(self.region.slice(0, 1))?);
        self.ends(send, Status::Flushed).await?;
        self.ends(receive, Status::Flushed).await
    }
}

/// All bytes of a region.
pub fn bytes<R: Region>(region: &R, offset: u64, length: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![0; length as usize];
    region.read(offset, &mut bytes)?;
    Ok(bytes)
}
