//! A machine and its storage as one: what is answered is durable.
//!
//! One thread commits. While it waits for the disk, further changes gather behind it and go together in its next
//! commit, so that a hundred concurrent writers cost one sync and not a hundred.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mailboat_machinery::{Change, Machine, Stored};
use mailboat_object::Version;
use tokio::sync::{oneshot, watch};

use super::{Snapshot, Storage, StorageError};

/// How many changes go together in one commit at most. What one request changes stays together, however many.
const COMMIT_CHANGES_MAX: usize = 4096;
/// When nothing was stored for so long, the storage rests.
const QUIET: Duration = Duration::from_millis(400);

/// A machine whose every change is stored before anybody is told of it.
///
/// It must be dropped to end well; what was acknowledged is safe in any case.
#[derive(Debug)]
pub struct Ledger {
    machine: Arc<RwLock<Machine>>,
    // As many orders wait as requests do, and their number is limited where they come in. A bound here could block a
    // writer that holds the machine, which the committer needs.
    orders: Option<Sender<Order>>,
    shown: watch::Receiver<Version>,
    /// Why nothing is stored any more.
    stopped: Arc<OnceLock<Refused>>,
    committer: Option<JoinHandle<()>>,
}

/// Why a change was not made: it could not be stored.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refused(Arc<StorageError>);

/// Whether what was just read or written holds: it must be awaited before it is told to anybody.
#[derive(Debug)]
#[must_use = "an answer that is given before it is durable may not hold"]
pub struct Settled(Option<oneshot::Receiver<Result<(), Refused>>>);

enum Order {
    /// Store these; none: only say when everything before is stored.
    Store {
        changes: Vec<Arc<Change>>,
        settled: oneshot::Sender<Result<(), Refused>>,
    },
    Keep {
        name: String,
        value: Vec<u8>,
        settled: oneshot::Sender<Result<(), Refused>>,
    },
    Snapshot(oneshot::Sender<Result<Snapshot, StorageError>>),
}

impl Refused {
    /// Why.
    pub fn why(&self) -> &StorageError {
        &self.0
    }

    fn ended() -> Self {
        let source = std::io::Error::other("the hub is ending");
        Self(Arc::new(StorageError::file(Path::new("the storage"), "written", source)))
    }
}

impl Settled {
    /// Waits until it holds, or is refused.
    pub async fn wait(self) -> Result<(), Refused> {
        match self.0 {
            None => Ok(()),
            Some(settled) => settled.await.unwrap_or_else(|_| Err(Refused::ended())),
        }
    }

    /// The same for callers outside of an async runtime.
    pub fn wait_blocking(self) -> Result<(), Refused> {
        match self.0 {
            None => Ok(()),
            Some(settled) => settled.blocking_recv().unwrap_or_else(|_| Err(Refused::ended())),
        }
    }
}

impl Ledger {
    /// Joins a machine and the storage that it was loaded from.
    ///
    /// `heard` is told of every change once it is durable, in order, before whoever made it: indexes that it keeps are
    /// never behind an answer. It must not come back to the ledger.
    pub fn new(
        machine: Machine,
        storage: impl Storage,
        heard: impl FnMut(&[Arc<Change>]) + Send + 'static,
    ) -> std::io::Result<Self> {
        Self::taking_back(machine, storage, heard, |_| {})
    }

    /// The same. `taken_back` is told from which version on nothing could be stored, before anybody reads or writes again:
    /// whatever else was kept together with the machine goes back to what it was.
    pub fn taking_back(
        mut machine: Machine,
        storage: impl Storage,
        heard: impl FnMut(&[Arc<Change>]) + Send + 'static,
        taken_back: impl FnMut(Version) + Send + 'static,
    ) -> std::io::Result<Self> {
        machine.keep_changes();
        let (orders, received) = mpsc::channel();
        let (show, shown) = watch::channel(machine.version());
        let machine = Arc::new(RwLock::new(machine));
        let stopped = Arc::default();
        let mut committer = Committer {
            stopped: Arc::clone(&stopped),
            machine: Arc::clone(&machine),
            storage: Box::new(storage),
            heard: Box::new(heard),
            taken_back: Box::new(taken_back),
            received,
            show,
        };
        let committer = thread::Builder::new().name("commit".to_owned()).spawn(move || committer.run())?;
        Ok(Self { machine, orders: Some(orders), shown, stopped, committer: Some(committer) })
    }

    /// Why nothing is stored any more until the hub begins anew; none: what comes is stored, if there is room for it.
    pub fn stopped(&self) -> Option<&Refused> {
        let died = || self.committer.as_ref().is_some_and(JoinHandle::is_finished);
        self.stopped.get().or_else(|| died().then(|| self.stopped.get_or_init(Refused::ended)))
    }

    /// Changes the machine. What it answers may be told once it has settled.
    pub fn write<T>(&self, act: impl FnOnce(&mut Machine) -> T) -> (T, Settled) {
        let mut machine = locked(&self.machine);
        let answer = act(&mut machine);
        let changes = machine.take_changes();
        // Sent under the lock, so that orders come in the order of versions.
        let settled = self.settle(&machine, changes);
        (answer, settled)
    }

    /// Reads the machine. What it answers may be told once it has settled: it may have seen what is not stored yet.
    pub fn read<T>(&self, act: impl FnOnce(&Machine) -> T) -> (T, Settled) {
        let machine = shared(&self.machine);
        let answer = act(&machine);
        let settled = self.settle(&machine, Vec::new());
        (answer, settled)
    }

    /// Reads one object. If it is older than what is not stored yet, it is settled at once: had it changed since, a
    /// later one would have been found.
    pub fn read_object<E>(
        &self,
        act: impl FnOnce(&Machine) -> Result<Arc<Stored>, E>,
    ) -> (Result<Arc<Stored>, E>, Settled) {
        let machine = shared(&self.machine);
        let answer = act(&machine);
        let settled = match &answer {
            Ok(object) if object.version <= machine.shown() => Settled(None),
            _ => self.settle(&machine, Vec::new()),
        };
        (answer, settled)
    }

    /// Reads what is settled by itself: watches, which show nothing that is not stored, and what is not an object.
    pub fn peek<T>(&self, act: impl FnOnce(&Machine) -> T) -> T {
        act(&shared(&self.machine))
    }

    /// Wakes whenever watches may have something new to show.
    pub fn shown(&self) -> watch::Receiver<Version> {
        self.shown.clone()
    }

    /// Stores a small value of the server's own.
    pub fn keep(&self, name: &str, value: &[u8]) -> Settled {
        let (settled, wait) = oneshot::channel();
        self.order(Order::Keep { name: name.to_owned(), value: value.to_owned(), settled });
        Settled(Some(wait))
    }

    /// Everything that is stored now, to be written to a file beside further changes.
    pub async fn snapshot(&self) -> Result<Snapshot, StorageError> {
        let (reply, wait) = oneshot::channel();
        self.order(Order::Snapshot(reply));
        let ended = || {
            StorageError::file(Path::new("the storage"), "read", std::io::Error::other("the hub is ending"))
        };
        wait.await.unwrap_or_else(|_| Err(ended()))
    }

    fn settle(&self, machine: &Machine, changes: Vec<Arc<Change>>) -> Settled {
        if changes.is_empty() && machine.shown() == machine.version() {
            return Settled(None);
        }
        let (settled, wait) = oneshot::channel();
        self.order(Order::Store { changes, settled });
        Settled(Some(wait))
    }

    /// An order that finds nobody is dropped, and its sender's end tells whoever waits.
    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }
}

impl Drop for Ledger {
    /// Everything that was ordered is stored first.
    fn drop(&mut self) {
        self.orders = None;
        if let Some(committer) = self.committer.take() {
            let _ = committer.join();
        }
    }
}

/// Is told what became durable.
type Heard = dyn FnMut(&[Arc<Change>]) + Send;

struct Committer {
    stopped: Arc<OnceLock<Refused>>,
    machine: Arc<RwLock<Machine>>,
    storage: Box<dyn Storage>,
    heard: Box<Heard>,
    taken_back: Box<dyn FnMut(Version) + Send>,
    received: Receiver<Order>,
    show: watch::Sender<Version>,
}

/// What is stored together.
#[derive(Default)]
struct Group {
    changes: Vec<Arc<Change>>,
    waiting: Vec<oneshot::Sender<Result<(), Refused>>>,
}

impl Committer {
    fn run(&mut self) {
        let mut resting = false;
        loop {
            let order = if resting {
                self.received.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                self.received.recv_timeout(QUIET)
            };
            let mut next = match order {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => {
                    // Nobody waits for this. A disk that is full is told of by the next write.
                    if let Err(error) = self.storage.rest() {
                        self.note(&Refused(Arc::new(error)));
                    }
                    resting = true;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            resting = false;
            while let Some(order) = next.take() {
                next = self.carry_out(order);
            }
        }
    }

    /// Carries out an order and those that can go with it; answers with one that came after and cannot.
    fn carry_out(&mut self, order: Order) -> Option<Order> {
        let mut group = Group::default();
        let mut other = group.take(order);
        while other.is_none() && group.changes.len() < COMMIT_CHANGES_MAX {
            match self.received.try_recv() {
                Ok(order) => other = group.take(order),
                Err(_) => break,
            }
        }
        if !group.waiting.is_empty() {
            self.commit(group);
        }
        match other? {
            Order::Keep { name, value, settled } => {
                let kept = self.storage.keep(&[(&name, &value)]).map_err(|error| Refused(Arc::new(error)));
                if let Err(refused) = &kept {
                    self.note(refused);
                }
                let _ = settled.send(kept);
                None
            }
            Order::Snapshot(reply) => {
                let _ = reply.send(self.storage.snapshot());
                None
            }
            store @ Order::Store { .. } => Some(store),
        }
    }

    fn commit(&mut self, group: Group) {
        let Some(last) = group.changes.last().map(|change| change.version) else {
            return group.settle(&Ok(()));
        };
        match self.storage.commit(&group.changes) {
            Ok(()) => {
                locked(&self.machine).show(last);
                (self.heard)(&group.changes);
                self.show.send_replace(last);
                group.settle(&Ok(()));
            }
            Err(error) => self.refuse(group, error),
        }
    }

    /// Notes a failure, if it is one for good. A full disk is not: what is there is served, and some may be freed.
    fn note(&self, refused: &Refused) {
        if self.storage.is_stopped() {
            let _ = self.stopped.set(refused.clone());
        }
    }

    /// Takes back what could not be stored, and everything that was done on top of it since.
    fn refuse(&mut self, mut group: Group, error: StorageError) {
        let refused = Refused(Arc::new(error));
        self.note(&refused);
        let mut later = Vec::new();
        {
            // Changes are ordered under this lock, so that none is missed.
            let mut machine = locked(&self.machine);
            while let Ok(order) = self.received.try_recv() {
                later.extend(group.take(order));
            }
            machine.retract(&group.changes);
            if let Some(first) = group.changes.first() {
                (self.taken_back)(first.version);
            }
            self.show.send_replace(machine.shown());
        }
        group.settle(&Err(refused.clone()));
        for order in later {
            match order {
                Order::Store { settled, .. } | Order::Keep { settled, .. } => {
                    let _ = settled.send(Err(refused.clone()));
                }
                Order::Snapshot(reply) => {
                    let _ = reply.send(self.storage.snapshot());
                }
            }
        }
    }
}

impl Group {
    /// Takes an order in, or gives back one that is of another kind.
    fn take(&mut self, order: Order) -> Option<Order> {
        match order {
            Order::Store { changes, settled } => {
                self.changes.extend(changes);
                self.waiting.push(settled);
                None
            }
            other => Some(other),
        }
    }

    fn settle(self, how: &Result<(), Refused>) {
        for waiting in self.waiting {
            // Somebody who no longer waits need not be told.
            let _ = waiting.send(how.clone());
        }
    }
}

/// A writer that panicked half-way has not sent its changes; they come with the next one's, complete as far as they
/// went, as after a request that ended early.
fn locked(machine: &RwLock<Machine>) -> RwLockWriteGuard<'_, Machine> {
    machine.write().unwrap_or_else(PoisonError::into_inner)
}

fn shared(machine: &RwLock<Machine>) -> RwLockReadGuard<'_, Machine> {
    machine.read().unwrap_or_else(PoisonError::into_inner)
}
