//! A process that stands still: as if its machine slept, nothing in it goes on, and all that came meanwhile is there when it
//! does.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// Lets something stand still, and go on.
#[derive(Clone, Default)]
pub(crate) struct Pause(Arc<Mutex<Standing>>);

#[derive(Default)]
struct Standing {
    still: bool,
    waker: Option<Waker>,
}

impl Pause {
    pub(crate) fn stand_still(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).still = true;
    }

    pub(crate) fn go_on(&self) {
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        standing.still = false;
        if let Some(waker) = standing.waker.take() {
            waker.wake();
        }
    }

    /// The same future, which stands still while it is told to.
    pub(crate) fn over<F: Future>(&self, future: F) -> Pausable<F> {
        Pausable { pause: self.clone(), future: Box::pin(future) }
    }

    /// Whether it stands still; if so, whoever asks is woken when it goes on.
    fn is_still(&self, context: &Context<'_>) -> bool {
        let mut standing = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if standing.still {
            standing.waker = Some(context.waker().clone());
        }
        standing.still
    }
}

/// A future that can stand still.
pub(crate) struct Pausable<F> {
    pause: Pause,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Pausable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.pause.is_still(context) { Poll::Pending } else { self.future.as_mut().poll(context) }
    }
}
