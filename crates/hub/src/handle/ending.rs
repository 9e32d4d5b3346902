//! Streams end in time. A stream is driven by whoever reads it, so that one whom nobody reads would never come to look at a
//! clock: it would keep its turn, and what it holds, for ever.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use futures::stream::{BoxStream, StreamExt as _};
use futures::task::AtomicWaker;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::answer::TooSlow;

/// A stream that is read ends by itself, so much earlier than it is ended.
const GRACE: Duration = Duration::from_secs(2);

/// How long a stream may take.
pub(super) struct Times {
    /// How long for its beginning, and who tells that this is sent.
    pub beginning: Option<(oneshot::Receiver<()>, Duration)>,
    /// When it ends.
    pub ends_at: Instant,
}

/// Ends a stream that is not read in time.
pub(super) fn in_time(stream: impl Stream<Item = Bytes> + Send + 'static, times: Times) -> Ending {
    let open = Arc::new(Open { stream: Mutex::new(Some(stream.boxed())), reader: AtomicWaker::new() });
    let closing = Arc::clone(&open);
    let clock = tokio::spawn(async move {
        if let Some((sent, within)) = times.beginning
            && timeout(within, sent).await.is_err()
        {
            return closing.close();
        }
        sleep_until(times.ends_at + GRACE).await;
        closing.close();
    });
    Ending { open, clock, ended: false }
}

/// A stream that ends in time.
pub(super) struct Ending {
    open: Arc<Open>,
    clock: JoinHandle<()>,
    ended: bool,
}

struct Open {
    /// None: it took too long.
    stream: Mutex<Option<BoxStream<'static, Bytes>>>,
    reader: AtomicWaker,
}

impl Open {
    fn close(&self) {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.reader.wake();
    }
}

impl Stream for Ending {
    type Item = Result<Bytes, TooSlow>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.open.reader.register(context.waker());
        let next = match &mut *self.open.stream.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Poll::Ready(Some(Err(TooSlow))),
            Some(stream) => stream.poll_next_unpin(context).map(|next| next.map(Ok)),
        };
        self.ended = matches!(next, Poll::Ready(None | Some(Err(_))));
        next
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.clock.abort();
    }
}
