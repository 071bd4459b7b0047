//! A connection with what is on its way in and out of it.

use crate::tls::Stream;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of answers that may wait for who asked, who asks for nothing more meanwhile; what a connection keeps to read and
/// write with when nothing waits.
pub const ANSWERS: usize = 64 << 10;

/// A connection with what was read and not used, and what is to be written.
pub struct Connection {
    stream: Stream,
    /// Bytes that were read and not used.
    pub input: Vec<u8>,
    /// Bytes to write, `sent` of which are.
    pub out: Vec<u8>,
    sent: usize,
}

impl Connection {
    /// One of which nothing was read.
    pub fn new(stream: Stream) -> Connection {
        Connection { stream, input: Vec::new(), out: Vec::new(), sent: 0 }
    }

    /// Its socket a second time, for writing past this; there is none where what is written has to be encrypted, or where the
    /// system has no descriptor left.
    pub fn socket(&self) -> Option<std::net::TcpStream> {
        self.stream.socket()?.as_fd().try_clone_to_owned().ok().map(Into::into)
    }

    /// Bytes that are left to write.
    pub fn waiting(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Whether something is left to write.
    pub fn has_output(&self) -> bool {
        self.sent < self.out.len()
    }

    /// Reads more input; 0 means that the peer has closed.
    pub fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut piece = [0; 4 << 10];
        let mut buffer = ReadBuf::new(&mut piece);
        match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
            Poll::Ready(Ok(())) => {
                self.input.extend_from_slice(buffer.filled());
                Poll::Ready(Ok(buffer.filled().len()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Writes `out`; ready when all of it has left.
    pub fn poll_output(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.out.len() {
            match Pin::new(&mut self.stream).poll_write(context, &self.out[self.sent..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => self.sent += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.out.clear();
        self.out.shrink_to(ANSWERS);
        self.sent = 0;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Writes slices that somebody else keeps; the answer is how many bytes were taken.
    pub fn poll_slices(
        &mut self,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    /// Pushes on what the transport keeps.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Reads more input.
    pub async fn read(&mut self) -> io::Result<usize> {
        poll_fn(|context| self.poll_input(context)).await
    }

    /// Writes everything in `out`.
    pub async fn write(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_output(context)).await
    }
}
