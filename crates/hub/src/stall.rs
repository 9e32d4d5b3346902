//! Connections whose other end takes nothing: they end, and with them what waits to be sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream that fails once nothing of what is written is taken for a while.
pub(crate) struct Stalling<S> {
    stream: S,
    within: Duration,
    /// There while something waits to be taken.
    clock: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalling<S> {
    pub(crate) fn new(stream: S, within: Duration) -> Self {
        Self { stream, within, clock: None }
    }

    /// Passes on what came of a write; one that is not taken in time failed.
    fn timed<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.clock = None;
            return written;
        }
        let clock = self.clock.get_or_insert_with(|| Box::pin(sleep(self.within)));
        ready!(clock.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.timed(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn whoever_takes_nothing_is_not_waited_for_and_whoever_takes_little_is() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut near = Stalling::new(near, Duration::from_millis(50));
        let reader = tokio::spawn(async move {
            let mut taken = [0; 8];
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(10)).await;
                far.read_exact(&mut taken).await.unwrap();
            }
            far
        });
        near.write_all(&[7; 80]).await.expect("it took longer, and something was taken all the time");
        let _far = reader.await.unwrap();
        let said = near.write_all(&[7; 80]).await.unwrap_err();
        assert_eq!(said.kind(), io::ErrorKind::TimedOut);
    }
}
