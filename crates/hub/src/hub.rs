//! The server's state, and the one way to it.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use mailboat_machinery::{Machine, Moment, Random, Seeded, Stored};
use mailboat_object::{ClusterId, KindId, Version};
use tokio::sync::{Notify, watch};

use crate::bell::Bells;

/// One server: its objects, and who waits for changes of them.
///
/// The lock is held while one request is worked on, never while something is waited for.
#[derive(Debug)]
pub struct Hub {
    state: RwLock<State>,
    cluster: ClusterId,
    address: OnceLock<SocketAddr>,
    pub(crate) bells: Bells,
    /// The clusters in which something may be left to tidy up.
    untidy: Mutex<BTreeSet<ClusterId>>,
    pub(crate) tidy_up: Notify,
    /// Turns true when the server stops: streams end.
    pub(crate) stopping: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    machine: Machine,
    random: Seeded,
}

impl Hub {
    /// A server of these objects.
    pub(crate) fn new(machine: Machine, cluster: ClusterId) -> Self {
        // Keys of a hasher are drawn from the operating system's randomness.
        let seed = RandomState::new().hash_one(now_seconds());
        Self {
            state: RwLock::new(State { machine, random: Seeded(seed) }),
            cluster,
            address: OnceLock::new(),
            bells: Bells::default(),
            untidy: Mutex::default(),
            tidy_up: Notify::new(),
            stopping: watch::Sender::new(false),
        }
    }

    /// The one cluster of a server that has one.
    pub(crate) fn cluster(&self) -> ClusterId {
        self.cluster.clone()
    }

    /// Where it is reached, as `ADDRESS:PORT`.
    pub(crate) fn address(&self) -> String {
        self.address.get().map(ToString::to_string).unwrap_or_default()
    }

    pub(crate) fn set_address(&self, address: SocketAddr) {
        // It is bound once.
        let _ = self.address.set(address);
    }

    /// Looks at the objects.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Machine) -> T) -> T {
        look(&self.state.read().unwrap_or_else(PoisonError::into_inner).machine)
    }

    /// Changes objects, and wakes those who watch what changed.
    ///
    /// A kind is served from the moment on in which its definition is written: whoever reads his own write back can
    /// use it.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&mut Machine, &mut Moment<'_>) -> T) -> T {
        let mut guard = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let State { machine, random } = &mut *guard;
        let before = machine.version();
        let mut moment = Moment { now_seconds: now_seconds(), random: random as &mut dyn Random };
        let outcome = change(machine, &mut moment);
        let mut changed = Changed::since(machine, before);
        for cluster in std::mem::take(&mut changed.definitions) {
            machine.follow_definitions(&cluster, &mut moment);
            changed = Changed::since(machine, before);
        }
        drop(guard);
        for (cluster, kind) in &changed.kinds {
            self.bells.ring(cluster, kind);
        }
        if !changed.untidy.is_empty() {
            self.untidy.lock().unwrap_or_else(PoisonError::into_inner).extend(changed.untidy);
            self.tidy_up.notify_one();
        }
        outcome
    }

    /// The clusters in which something may be left to tidy up; from now on none.
    pub(crate) fn take_untidy(&self) -> BTreeSet<ClusterId> {
        std::mem::take(&mut *self.untidy.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a write changed.
#[derive(Default)]
struct Changed {
    kinds: BTreeSet<(ClusterId, KindId)>,
    /// Clusters whose custom resource definitions changed.
    definitions: BTreeSet<ClusterId>,
    /// Clusters in which something else may have to follow: dependents, or what stands in a namespace.
    untidy: BTreeSet<ClusterId>,
}

impl Changed {
    fn since(machine: &Machine, version: Version) -> Self {
        let definitions = KindId::new("apiextensions.k8s.io", "customresourcedefinitions");
        let mut changed = Self::default();
        for (key, now) in machine.changed_since(version) {
            changed.kinds.insert((key.cluster.clone(), key.kind.clone()));
            if key.kind == definitions {
                changed.definitions.insert(key.cluster.clone());
            }
            let owned = |object: &Stored| object.metadata().get("ownerReferences").is_some();
            if now.is_none_or(|object| object.is_deleting() || owned(object)) {
                changed.untidy.insert(key.cluster.clone());
            }
        }
        changed
    }
}

pub(crate) fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
