//! The turns, for callers that wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::{Entry, Limits, Turn, Turns, Work};

/// Lets callers in as their turn comes.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    turns: Turns,
    waiting: HashMap<Turn, oneshot::Sender<()>>,
}

/// There is too much under way: 429, to be tried again in a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("too many requests, please try again later")]
pub struct TooMany;

/// What was let in; it ends when this is dropped.
#[derive(Debug)]
pub struct Pass {
    gate: Gate,
    user: String,
    work: Work,
}

/// A turn that is given back if nobody waits for it any more.
struct Waiting<'g> {
    gate: &'g Gate,
    user: &'g str,
    turn: Option<Turn>,
}

impl Gate {
    /// A gate with these limits.
    pub fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(State { turns: Turns::new(limits), waiting: HashMap::new() })))
    }

    /// Waits until it is this user's turn. Whoever stops waiting gives the turn back.
    pub async fn enter(&self, user: &str, work: Work) -> Result<Pass, TooMany> {
        let (mut waiting, called) = {
            let mut state = self.state();
            match state.turns.ask(user, work) {
                Entry::Refuse => return Err(TooMany),
                Entry::Go => return Ok(self.pass(user, work)),
                Entry::Wait(turn) => {
                    let (call, called) = oneshot::channel();
                    state.waiting.insert(turn, call);
                    (Waiting { gate: self, user, turn: Some(turn) }, called)
                }
            }
        };
        called.await.map_err(|_| TooMany)?;
        waiting.turn = None;
        Ok(self.pass(user, work))
    }

    fn pass(&self, user: &str, work: Work) -> Pass {
        Pass { gate: self.clone(), user: user.to_owned(), work }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self, user: &str, work: Work) {
        let mut state = self.state();
        for (_, turn) in state.turns.done(user, work) {
            // Whoever left in this very moment finds his turn called, and gives it back himself.
            if let Some(call) = state.waiting.remove(&turn) {
                let _ = call.send(());
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.gate.done(&self.user, self.work);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(turn) = self.turn else { return };
        let mut state = self.gate.state();
        state.waiting.remove(&turn);
        let still_waited = state.turns.leave(self.user, turn);
        drop(state);
        if !still_waited {
            self.gate.done(self.user, Work::Request);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn who_waits_is_called_and_who_left_is_passed_over() {
        let gate = Gate::new(Limits { requests: 1, requests_per_user: 1, ..Limits::default() });
        let Poll::Ready(Ok(first)) = poll(pin!(gate.enter("a", Work::Request))) else { panic!() };
        let mut second = Box::pin(gate.enter("b", Work::Request));
        let mut third = pin!(gate.enter("c", Work::Request));
        assert!(poll(second.as_mut()).is_pending());
        assert!(poll(third.as_mut()).is_pending());
        drop(second);
        drop(first);
        let Poll::Ready(Ok(third)) = poll(third) else { panic!("the room was not passed on") };
        drop(third);
    }

    #[test]
    fn who_leaves_after_the_call_gives_the_room_back() {
        let gate = Gate::new(Limits { requests: 1, requests_per_user: 1, ..Limits::default() });
        let Poll::Ready(Ok(first)) = poll(pin!(gate.enter("a", Work::Request))) else { panic!() };
        let mut second = Box::pin(gate.enter("b", Work::Request));
        assert!(poll(second.as_mut()).is_pending());
        drop(first);
        drop(second);
        let Poll::Ready(Ok(_)) = poll(pin!(gate.enter("c", Work::Request))) else { panic!("room was lost") };
    }
}
