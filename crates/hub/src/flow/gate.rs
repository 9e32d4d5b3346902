//! The turns, for callers that wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Asker, Entry, Limits, Shares, Turn, Turns, Work};

/// Lets callers in as their turn comes.
#[derive(Clone, Debug)]
pub struct Gate {
    requests: Line,
    watches: Line,
    /// Watches once more, by tenants.
    tenants: Line,
    lists: Line,
    bodies: Line,
    turn_within: Duration,
}

/// Those who want the same.
#[derive(Clone, Debug)]
struct Line(Arc<Mutex<State>>);

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
    line: Line,
    asker: Asker,
    width: usize,
    /// What it takes of its tenant's share.
    tenant: Option<Box<Self>>,
}

/// A turn that is given back if nobody waits for it any more.
struct Waiting<'g> {
    line: &'g Line,
    asker: &'g Asker,
    width: usize,
    turn: Option<Turn>,
}

impl Gate {
    /// A gate with these limits.
    pub fn new(limits: &Limits) -> Self {
        Self {
            requests: Line::new(limits.requests, limits.waiting_per_user),
            // They are long: whoever waited for one would wait for ever.
            watches: Line::new(limits.watches, 0),
            tenants: Line::new(
                Shares {
                    all: usize::MAX,
                    per_workspace: limits.watches_per_tenant,
                    per_user: limits.watches_per_tenant,
                },
                0,
            ),
            lists: Line::new(limits.list_bytes, limits.waiting_per_user),
            bodies: Line::new(limits.bodies, limits.waiting_per_user),
            turn_within: limits.turn_within,
        }
    }

    /// Lets a watch in, of a tenant if he belongs to one. Whoever has a workspace can make others below it, and accounts in each:
    /// shares of these alone would let him have everything.
    pub async fn watch(&self, asker: &Asker, tenant: Option<&str>) -> Result<Pass, TooMany> {
        let tenant = tenant.map(|tenant| Asker::account(tenant, tenant));
        let tenant = tenant.map(|tenant| self.tenants.pass_at_once(&tenant)).transpose()?;
        let mut pass = self.enter(asker, Work::Watch).await?;
        pass.tenant = tenant.map(Box::new);
        Ok(pass)
    }

    /// Waits until it is this user's turn, but not for long. Whoever stops waiting gives the turn back.
    pub async fn enter(&self, asker: &Asker, work: Work) -> Result<Pass, TooMany> {
        let line = match work {
            Work::Request => &self.requests,
            Work::Watch => &self.watches,
            Work::List(_) => &self.lists,
            Work::Body(_) => &self.bodies,
        };
        let width = work.width();
        let (mut waiting, called) = {
            let mut state = line.state();
            match state.turns.ask(asker, width) {
                Entry::Refuse => return Err(TooMany),
                Entry::Go => return Ok(line.pass(asker, width)),
                Entry::Wait(turn) => {
                    let (call, called) = oneshot::channel();
                    state.waiting.insert(turn, call);
                    (Waiting { line, asker, width, turn: Some(turn) }, called)
                }
            }
        };
        timeout(self.turn_within, called).await.map_err(|_| TooMany)?.map_err(|_| TooMany)?;
        waiting.turn = None;
        Ok(line.pass(asker, width))
    }
}

impl Line {
    fn new(shares: Shares, waiting_per_user: usize) -> Self {
        let turns = Turns::new(shares, waiting_per_user);
        Self(Arc::new(Mutex::new(State { turns, waiting: HashMap::new() })))
    }

    fn pass(&self, asker: &Asker, width: usize) -> Pass {
        Pass { line: self.clone(), asker: asker.clone(), width, tenant: None }
    }

    /// A pass for one, if there is room.
    fn pass_at_once(&self, asker: &Asker) -> Result<Pass, TooMany> {
        match self.state().turns.ask(asker, 1) {
            Entry::Go => {}
            Entry::Refuse | Entry::Wait(_) => return Err(TooMany),
        }
        Ok(self.pass(asker, 1))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self, asker: &Asker, width: usize) {
        let mut state = self.state();
        let called = state.turns.done(asker, width);
        state.call(called);
    }
}

impl State {
    fn call(&mut self, turns: Vec<Turn>) {
        for turn in turns {
            // Whoever left in this very moment finds his turn called, and gives it back himself.
            if let Some(call) = self.waiting.remove(&turn) {
                let _ = call.send(());
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.line.done(&self.asker, self.width);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(turn) = self.turn else { return };
        let mut state = self.line.state();
        state.waiting.remove(&turn);
        let (still_waited, called) = state.turns.leave(self.asker, turn);
        state.call(called);
        drop(state);
        if !still_waited {
            self.line.done(self.asker, self.width);
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

    /// A gate that lets one in at once.
    fn narrow(turn_within: Duration) -> Gate {
        let one = Shares { all: 1, per_workspace: 1, per_user: 1 };
        Gate::new(&Limits { requests: one, turn_within, ..Limits::default() })
    }

    #[tokio::test]
    async fn who_waits_is_called_and_who_left_is_passed_over() {
        let gate = narrow(Duration::from_mins(1));
        let (a, b, c) = (Asker::user("a"), Asker::user("b"), Asker::user("c"));
        let Poll::Ready(Ok(first)) = poll(pin!(gate.enter(&a, Work::Request))) else { panic!() };
        let mut second = Box::pin(gate.enter(&b, Work::Request));
        let mut third = pin!(gate.enter(&c, Work::Request));
        assert!(poll(second.as_mut()).is_pending());
        assert!(poll(third.as_mut()).is_pending());
        drop(second);
        drop(first);
        let Poll::Ready(Ok(third)) = poll(third) else { panic!("the room was not passed on") };
        drop(third);
    }

    #[tokio::test]
    async fn who_leaves_after_the_call_gives_the_room_back() {
        let gate = narrow(Duration::from_mins(1));
        let (a, b, c) = (Asker::user("a"), Asker::user("b"), Asker::user("c"));
        let Poll::Ready(Ok(first)) = poll(pin!(gate.enter(&a, Work::Request))) else { panic!() };
        let mut second = Box::pin(gate.enter(&b, Work::Request));
        assert!(poll(second.as_mut()).is_pending());
        drop(first);
        drop(second);
        let Poll::Ready(Ok(_)) = poll(pin!(gate.enter(&c, Work::Request))) else { panic!("room was lost") };
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let gate = narrow(Duration::from_millis(10));
        let (a, b) = (Asker::user("a"), Asker::user("b"));
        let first = gate.enter(&a, Work::Request).await.unwrap();
        assert_eq!(gate.enter(&b, Work::Request).await.err(), Some(TooMany));
        drop(first);
        assert!(gate.enter(&b, Work::Request).await.is_ok(), "his place in the line is given up");
    }
}
