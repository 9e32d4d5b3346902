//! The Lease of a role, kept in a task of its own, and the gate that every write passes.
//!
//! A standby is warm: it reads, evaluates and plans like a leader, and remembers which slots it would write. When the gate opens
//! they are planned again, since another process wrote meanwhile. What was on its way when it shut, and the few calls of a role
//! itself, wait at the gate; when it opens they are not sent, but answered as "try again".

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt as _;
use mailboat_cluster::Transport;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Reply, Verb};
use mailboat_store::{Moment, Now};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock::clock;
use crate::election::{Candidate, Step, Times};

/// A request for the Lease that takes longer than this is of no use any more.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// Which Lease, and who wants it.
#[derive(Clone, Debug)]
pub struct Election {
    /// Its namespace.
    pub namespace: String,
    /// Its name: one for each role of an installation.
    pub name: String,
    /// Who we are; no other process may have this name. [`identity`] makes one.
    pub identity: String,
    /// How long everything takes.
    pub times: Times,
}

/// A name that no other process has: the host (in a cluster, the Pod), and numbers of this process.
pub fn identity() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{host}_{}_{:x}", std::process::id(), since_1970.as_micros())
}

/// Whether writes may pass now. Shared by the one who keeps the lease and all who write.
pub struct Gate {
    /// Open until this moment of [`clock`]: a leader that was suspended must not believe that no time has passed.
    until: AtomicU64,
    state: watch::Sender<State>,
    word: Mutex<Word>,
}

/// What is known of the lease, for whoever asks how the process is.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Word {
    /// Who holds it, as last seen.
    pub holder: Option<String>,
    /// Why it can neither be read nor written, since the last time that it could.
    pub trouble: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Standby,
    Leading,
    /// No more writes, for good.
    Closed,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { until: AtomicU64::new(0), state: watch::Sender::new(State::Standby), word: Mutex::default() }
    }

    /// Whether a write may leave at this very moment.
    pub fn is_open(&self) -> bool {
        clock().0 < self.until.load(Ordering::Acquire)
    }

    /// Whether it will never open again.
    pub(crate) fn is_closed(&self) -> bool {
        *self.state.borrow() == State::Closed
    }

    /// Lets writes pass for so long.
    #[cfg(test)]
    pub(crate) fn open_for(&self, time: Duration) {
        self.until.store((clock() + time).0, Ordering::Release);
        self.state.send_replace(State::Leading);
    }

    /// What is known of the lease.
    pub fn word(&self) -> Word {
        self.word.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what is known now, and says it aloud if it is new that the lease cannot be had.
    fn note(&self, holder: Option<&str>, fault: Option<&Fault>) {
        let mut word = self.word.lock().unwrap_or_else(PoisonError::into_inner);
        word.holder = holder.map(ToOwned::to_owned);
        match fault {
            None => word.trouble = None,
            // That there is none yet, or that somebody else was faster, is how an election goes.
            Some(fault)
                if matches!(fault.kind, FaultKind::Conflict | FaultKind::Exists | FaultKind::NotFound) => {}
            Some(fault) => {
                let before = word.trouble.replace(fault.text.clone());
                if before != word.trouble {
                    tracing::warn!(%fault, "the lease can neither be read nor written; it is tried again");
                }
            }
        }
    }

    /// Waits until writes may pass again, or never will.
    pub(crate) async fn opens(&self) {
        let mut state = self.state.subscribe();
        // The sender lives as long as we do.
        let _ = state.wait_for(|state| *state == State::Closed || self.is_open()).await;
    }

    /// Waits until writes may pass no more.
    async fn shuts(&self) {
        loop {
            let until = Moment(self.until.load(Ordering::Acquire));
            match until - clock() {
                Duration::ZERO => return,
                left => tokio::time::sleep(left).await,
            }
        }
    }

    fn show(&self, candidate: &Candidate) {
        let until = candidate.leads_until().unwrap_or_default();
        self.until.store(until.0, Ordering::Release);
        let state = if clock() < until { State::Leading } else { State::Standby };
        let before = *self.state.borrow();
        if before == State::Closed {
            return;
        }
        // Also when nothing changed: whoever came while it was shut for a moment is let through.
        self.state.send_replace(state);
        match (before, state) {
            (State::Standby, State::Leading) => tracing::info!("this process holds the lease and writes"),
            (State::Leading, State::Standby) => {
                tracing::warn!(holder = candidate.holder(), "this process lost the lease and writes no more");
            }
            _ => {}
        }
    }

    /// Lets those go who wait, without a write; nothing passes any more.
    pub(crate) fn close(&self) {
        self.until.store(0, Ordering::Release);
        self.state.send_replace(State::Closed);
    }
}

/// Sends a call if the gate is open, as one that only reads always may. Without a gate everything passes.
///
/// A write that has not been answered when the gate shuts is given up: it may wait for its turn, for a connection or to be
/// repeated, and nothing may leave from then on.
pub(crate) async fn pass(
    gate: Option<Arc<Gate>>,
    transport: Arc<dyn Transport>,
    call: Call,
) -> Result<Reply, Fault> {
    let Some(gate) = gate.filter(|_| writes(&call)) else { return transport.call(call).await };
    if !gate.is_open() {
        gate.opens().await;
        // At once if it can be: what is wanted by now may be something else.
        let after = gate.is_open().then_some(Duration::ZERO);
        let text = "this process did not hold the lease when this was to be written";
        return Err(Fault::new(FaultKind::Retry(after), text));
    }
    let mut sent = transport.call(call);
    // Asked before every step of it, and not by a timer alone, which a suspended machine holds up.
    let sent = poll_fn(|context| if gate.is_open() { sent.poll_unpin(context) } else { Poll::Pending });
    tokio::select! {
        answer = sent => answer,
        () = gate.shuts() => {
            let text = "the lease was lost before this was answered; whether it was written is not known";
            Err(Fault::new(FaultKind::Retry(None), text))
        }
    }
}

/// Whether a call changes anything.
pub(crate) fn writes(call: &Call) -> bool {
    !matches!(call.verb, Verb::Get | Verb::GetAt(_)) && !call.dry_run
}

/// A Lease that is sought and, once held, kept, as long as this value lives.
pub struct Lease {
    gate: Arc<Gate>,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Lease {
    /// Seeks the lease from now on, over a connection to where it is kept.
    pub fn seek(transport: Arc<dyn Transport>, election: Election) -> Self {
        let gate = Arc::new(Gate::new());
        let (end, ended) = oneshot::channel();
        tracing::info!(lease = election.name, identity = election.identity, "seeking the lease");
        let task = tokio::spawn(keep(transport, election, Arc::clone(&gate), ended));
        Self { gate, end: Some(end), task }
    }

    /// The gate that opens and closes with it.
    pub fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Gives the lease up, so that a standby need not wait until it ends by itself.
    pub async fn release(mut self) {
        if let Some(end) = self.end.take() {
            let _ = end.send(());
        }
        if tokio::time::timeout(REQUEST_LIMIT * 2, &mut self.task).await.is_err() {
            tracing::warn!("the lease could not be given up in time; it ends by itself");
        }
    }

    /// Lets all who wait at the gate go, without a write.
    pub(crate) fn stand_back(&self) {
        if !self.gate.is_open() {
            self.gate.close();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.gate.close();
        self.task.abort();
    }
}

async fn keep(
    transport: Arc<dyn Transport>,
    election: Election,
    gate: Arc<Gate>,
    mut ended: oneshot::Receiver<()>,
) {
    let seed = election.identity.bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
    let mut candidate = Candidate::new(election.identity.as_str(), election.times, seed);
    loop {
        let step = candidate.next(now());
        if let Step::WaitUntil(moment) = step {
            // Not later than the lease ends: then the gate has to be seen to be shut.
            let ends = candidate.leads_until().filter(|until| clock() < *until);
            let until = ends.map_or(moment, |ends| ends.min(moment));
            tokio::select! {
                () = tokio::time::sleep(until - clock()) => {}
                _ = &mut ended => break,
            }
        } else {
            let answer = ask(&*transport, &election, &step).await;
            candidate.answered(clock(), &step, answer.as_ref().map(|reply| &*reply.body));
            gate.note(candidate.holder(), answer.as_ref().err());
        }
        gate.show(&candidate);
    }
    gate.close();
    if let Some(lease) = candidate.release(now()) {
        match ask(&*transport, &election, &Step::Replace(lease)).await {
            Ok(_) => tracing::info!(lease = election.name, "the lease was given up"),
            Err(fault) => tracing::warn!(%fault, "the lease could not be given up; it ends by itself"),
        }
    }
}

async fn ask(transport: &dyn Transport, election: &Election, step: &Step) -> Result<Reply, Fault> {
    let key = Key {
        cluster: ClusterId::default(),
        kind: KindId::new("coordination.k8s.io", "leases"),
        namespace: Name::new(&election.namespace),
        name: Name::new(&election.name),
    };
    let body = |lease: &Value| {
        let mut lease = lease.clone();
        lease["apiVersion"] = json!("coordination.k8s.io/v1");
        lease["kind"] = json!("Lease");
        lease["metadata"]["name"] = json!(election.name);
        lease["metadata"]["namespace"] = json!(election.namespace);
        Arc::from(lease.to_string().into_bytes())
    };
    let manager = Name::new("mailboat-election");
    let verb = match step {
        Step::Create(lease) => Verb::Create { body: body(lease), manager },
        Step::Replace(lease) => Verb::Replace { body: body(lease), manager },
        Step::Get | Step::WaitUntil(_) => Verb::Get,
    };
    let call = transport.call(Call { key, verb, part: Part::Whole, dry_run: false });
    match tokio::time::timeout(REQUEST_LIMIT, call).await {
        Ok(answer) => answer,
        Err(_) => Err(Fault::new(FaultKind::Retry(None), "the server did not answer in time")),
    }
}

fn now() -> Now {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { mono: clock(), wall_seconds: wall.as_secs() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures::future::BoxFuture;
    use mailboat_cluster::{Catalog, Lines, Read};
    use mailboat_object::wire::Abilities;

    use super::*;

    /// Counts how often a call is worked on, and never answers one that writes.
    #[derive(Default)]
    struct Counting(Arc<AtomicUsize>);

    impl Transport for Counting {
        fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
            let count = Arc::clone(&self.0);
            let answers = matches!(call.verb, Verb::Get);
            poll_fn(move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                let reply = Reply { body: Box::default(), created: false, warnings: Vec::new() };
                if answers { Poll::Ready(Ok(reply)) } else { Poll::Pending }
            })
            .boxed()
        }

        fn fetch(&self, _: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
            std::future::pending().boxed()
        }

        fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>> {
            std::future::pending().boxed()
        }

        fn stale(&self) {}

        fn abilities(&self) -> Abilities {
            Abilities { apply: true, whole: true }
        }
    }

    fn call(verb: Verb) -> Call {
        let key = Key {
            cluster: ClusterId::default(),
            kind: KindId::new("", "configmaps"),
            namespace: Name::EMPTY,
            name: Name::new("x"),
        };
        Call { key, verb, part: Part::Whole, dry_run: false }
    }

    fn merge() -> Verb {
        Verb::Merge { body: Arc::from(&b"{}"[..]), manager: Name::new("m") }
    }

    #[tokio::test]
    async fn a_shut_gate_sends_nothing_and_when_it_opens_what_waited_is_to_be_decided_anew() {
        let (gate, way) = (Arc::new(Gate::new()), Arc::new(Counting::default()));
        let count = Arc::clone(&way.0);
        let passes = |verb: Verb| pass(Some(Arc::clone(&gate)), way.clone(), call(verb));
        assert!(passes(Verb::Get).await.is_ok(), "whoever only reads is let through");
        assert!(pass(None, way.clone(), call(Verb::Get)).await.is_ok());
        let read = count.swap(0, Ordering::SeqCst);
        assert_eq!(read, 2);
        let waiting = tokio::spawn(passes(merge()));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        gate.open_for(Duration::from_mins(1));
        let fault = waiting.await.ok().and_then(Result::err).map(|fault| fault.kind);
        assert_eq!(fault, Some(FaultKind::Retry(Some(Duration::ZERO))));
        assert_eq!(count.load(Ordering::SeqCst), 0, "what was wanted before is not sent");

        let closed = Arc::new(Gate::new());
        closed.close();
        let refused = pass(Some(closed), way.clone(), call(merge())).await.err().map(|fault| fault.kind);
        assert_eq!(refused, Some(FaultKind::Retry(None)), "after the end nobody waits, and nothing is sent");
        assert_eq!(count.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn a_write_that_is_not_answered_when_the_lease_ends_is_given_up() {
        let (gate, way) = (Arc::new(Gate::new()), Arc::new(Counting::default()));
        let count = Arc::clone(&way.0);
        gate.open_for(Duration::from_millis(300));
        let given_up = pass(Some(Arc::clone(&gate)), way, call(merge())).await;
        assert_eq!(given_up.err().map(|fault| fault.kind), Some(FaultKind::Retry(None)));
        assert!(!gate.is_open(), "not before the gate is shut");
        assert!(count.load(Ordering::SeqCst) > 0, "it was begun");
    }
}
