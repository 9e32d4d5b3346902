//! What seems to be gone is believed only after a fresh look: kcp shows complete and empty lists of a workspace that is
//! being deleted, and of a kind whose binding is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mailboat_engine::role::{CallId, Ground, Order};
use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_object::wire::Fault;
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;
use mailboat_store::time::Moment;

/// A look that found no solid ground is taken again after this.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Objects that seem to be gone.
#[derive(Default)]
pub(super) struct Belief {
    missing: BTreeMap<(ClusterId, KindId), Missing>,
}

#[derive(Default)]
struct Missing {
    keys: BTreeSet<Key>,
    asked: Option<CallId>,
    not_before: Option<Moment>,
    solid: bool,
}

impl Belief {
    /// An object seems to be gone.
    pub(super) fn misses(&mut self, key: &Key) {
        let missing = self.missing.entry((key.cluster.clone(), key.kind.clone())).or_default();
        missing.keys.insert(key.clone());
        missing.solid = false;
    }

    /// It is there.
    pub(super) fn sees(&mut self, key: &Key) {
        if let Some(missing) = self.missing.get_mut(&(key.cluster.clone(), key.kind.clone())) {
            missing.keys.remove(key);
        }
    }

    /// Asks for looks, and says when to ask again.
    pub(super) fn next(
        &mut self,
        now: Moment,
        mut id: impl FnMut() -> CallId,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        self.missing.retain(|_, missing| !missing.keys.is_empty() || missing.asked.is_some());
        let mut wake = None;
        for ((cluster, kind), missing) in &mut self.missing {
            if missing.asked.is_some() || missing.solid {
                continue;
            }
            if let Some(at) = missing.not_before.filter(|at| *at > now) {
                wake = wake.into_iter().chain([at]).min();
                continue;
            }
            let id = id();
            missing.asked = Some(id);
            orders.push(Order::Reach(cluster.clone()));
            orders.push(Order::Look(id, cluster.clone(), kind.clone()));
        }
        wake
    }

    /// What a look found.
    pub(super) fn looked(&mut self, now: Moment, id: CallId, found: &Result<Ground, Fault>) {
        for ((cluster, kind), missing) in &mut self.missing {
            if missing.asked != Some(id) {
                continue;
            }
            missing.asked = None;
            missing.solid = found.as_ref().is_ok_and(|ground| ground.is_solid());
            if !missing.solid {
                missing.not_before = Some(now + LOOK_AGAIN_AFTER);
                tracing::warn!(%cluster, %kind, "objects seem to be gone with their workspace or kind; they are held as they were");
            }
        }
    }

    /// What is believed to be gone now. It is forgotten here.
    pub(super) fn take_gone(&mut self, store: &Store) -> Vec<Key> {
        let mut gone = Vec::new();
        for missing in self.missing.values_mut().filter(|missing| missing.solid) {
            missing.solid = false;
            let keys = std::mem::take(&mut missing.keys);
            gone.extend(keys.into_iter().filter(|key| matches!(store.get(key), Seen::Absent(_))));
        }
        gone
    }
}
