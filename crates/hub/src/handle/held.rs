//! Large answers keep their turn until they are read, so that nobody can have more of them under way than his share; and
//! whoever does not read is not waited for.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, SizeHint};
use tokio::task::JoinHandle;

use crate::answer::{Answer, TooSlow};
use crate::flow::Pass;

/// What is sent at once; the rest waits until this is on its way.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// Lets an answer keep its turn until it is read, if it is large. What is not read in time is given up.
pub(super) async fn until_read(mut answer: Answer, turn: Pass, within: Duration) -> Answer {
    let room = answer.extensions_mut().remove::<Arc<Pass>>();
    let size = answer.body().size_hint().exact().and_then(|size| usize::try_from(size).ok());
    if size.is_none_or(|size| size <= PIECE_BYTES) {
        return answer;
    }
    let (head, body) = answer.into_parts();
    let Ok(collected) = body.collect().await else {
        return Response::from_parts(head, gone().boxed_unsync());
    };
    let mut content = collected.to_bytes();
    let size = content.len();
    let mut pieces = VecDeque::new();
    while !content.is_empty() {
        pieces.push_back(content.split_to(content.len().min(PIECE_BYTES)));
    }
    let left = Arc::new(Mutex::new(Some(Left { pieces, _turn: turn, _room: room })));
    // A client that does not read asks for nothing either: nobody but a clock would notice.
    let forgotten = Arc::clone(&left);
    let clock = tokio::spawn(async move {
        tokio::time::sleep(within).await;
        forgotten.lock().unwrap_or_else(PoisonError::into_inner).take();
    });
    Response::from_parts(head, Held { left, size, clock: Some(clock) }.boxed_unsync())
}

fn gone() -> Held {
    Held { left: Arc::default(), size: 1, clock: None }
}

/// An answer on its way out.
struct Held {
    /// None: it took too long.
    left: Arc<Mutex<Option<Left>>>,
    size: usize,
    clock: Option<JoinHandle<()>>,
}

/// What is left to send of it.
struct Left {
    pieces: VecDeque<Bytes>,
    _turn: Pass,
    /// The memory that it takes, if it is a long list.
    _room: Option<Arc<Pass>>,
}

impl Body for Held {
    type Data = Bytes;
    type Error = TooSlow;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TooSlow>>> {
        let next = match &mut *self.left.lock().unwrap_or_else(PoisonError::into_inner) {
            None => return Poll::Ready((self.size > 0).then_some(Err(TooSlow))),
            Some(left) => left.pieces.pop_front(),
        };
        self.size -= next.as_ref().map_or(0, Bytes::len);
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.size == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.size as u64)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(clock) = &self.clock {
            clock.abort();
        }
    }
}
