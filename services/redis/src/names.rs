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
    let address = address.to_string();
    ask_apart(move || address.to_socket_addrs().map(Iterator::collect)).await
}

/// Asks on a thread that none but these questions get.
async fn ask_apart<T: Send + 'static>(ask: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    let free = FREE.acquire().await.map_err(io::Error::other)?;
    let job = move || {
        // Held until the system has answered, also where nobody waits for that any more.
        let _free = free;
        ask()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;
    use tokio::runtime::Builder;
    use tokio::time::timeout;

    #[test]
    fn a_name_server_that_does_not_answer_keeps_nobody_from_the_disk() {
        let runtime =
            Builder::new_current_thread().enable_time().max_blocking_threads(LOOK_UPS + 1).build().unwrap();
        let mut hung = Vec::new();
        runtime.block_on(async {
            for _ in 0..8 {
                let (answer, never) = mpsc::channel::<()>();
                hung.push(answer);
                let asked = ask_apart(move || Ok(never.recv()));
                assert!(timeout(Duration::from_millis(20), asked).await.is_err(), "it hangs");
            }
            let of_disk = spawn_blocking(|| 7);
            assert_eq!(
                timeout(Duration::from_secs(10), of_disk).await.expect("a thread is free").unwrap(),
                7
            );
            hung.clear();
            // Those that hung gave their threads back.
            assert_eq!(ask_apart(|| Ok(8)).await.unwrap(), 8);
        });
    }
}
