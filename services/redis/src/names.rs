//! Addresses of a name. The system's call for them waits for as long as a name server does not answer, and cannot be
//! broken off: it gets threads of its own number, so that none of these waits keeps one from the disk.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Names that are looked up at once; the runtime has more threads than these.
pub const LOOK_UPS: usize = 2;

static FREE: Semaphore = Semaphore::const_new(LOOK_UPS);

/// The addresses of `HOST:PORT`.
pub async fn look_up(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = address.parse() {
        return Ok(vec![address]);
    }
    let free = FREE.acquire().await.map_err(io::Error::other)?;
    let address = address.to_string();
    let job = move || {
        // Held until the system has answered, also where nobody waits for that any more.
        let _free = free;
        address.to_socket_addrs().map(Iterator::collect)
    };
    spawn_blocking(job).await.map_err(io::Error::other)?
}

/// Connects to the first address of `HOST:PORT` that answers.
pub async fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("the name of {address} has no address"));
    for address in look_up(address).await? {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
