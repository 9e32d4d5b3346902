//! What seems to be gone is believed only after a fresh look: kcp shows complete and empty lists of a workspace that is
//! being deleted, and of a kind whose binding is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mailboat_engine::role::{CallId, Ground, Order};
use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_object::object::Object;
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
    /// What is missing, as it was last shown.
    keys: BTreeMap<Key, Option<Arc<Object>>>,
    asked: Option<CallId>,
    not_before: Option<Moment>,
    /// What they rest on, if that is solid and was looked at since.
    solid: Option<Ground>,
}

impl Belief {
    /// An object seems to be gone.
    pub(super) fn misses(&mut self, key: &Key, was: Option<Arc<Object>>) {
        let missing = self.missing.entry((key.cluster.clone(), key.kind.clone())).or_default();
        let known = missing.keys.entry(key.clone()).or_default();
        *known = was.or(known.take());
        missing.solid = None;
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
            if missing.asked.is_some() || missing.solid.is_some() {
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
            missing.solid = found.as_ref().ok().filter(|ground| ground.is_solid()).cloned();
            missing.not_before = Some(now + LOOK_AGAIN_AFTER);
            if missing.solid.is_none() {
                tracing::warn!(%cluster, %kind, "objects seem to be gone with their workspace or kind; they are held as they were");
            }
        }
    }

    /// What is believed to be gone now. It is forgotten here.
    pub(super) fn take_gone(&mut self, store: &Store) -> Vec<Key> {
        let mut gone = Vec::new();
        for missing in self.missing.values_mut() {
            let Some(ground) = missing.solid.take() else { continue };
            missing.keys.retain(|key, was| {
                let Seen::Absent(absence) = store.get(key) else { return false };
                let alone = ground.shows_gone(absence, was.as_deref());
                if alone {
                    gone.push(key.clone());
                } else {
                    tracing::warn!(%key, "it may have gone with its kind, which was defined or bound anew; it is held as it was");
                }
                !alone
            });
        }
        gone
    }
}
