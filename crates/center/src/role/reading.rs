//! How far was read what the center speaks from. Before that is complete, everything would be said to be less than it is,
//! and a center that starts would take back what the last one said, only to say it again.

use std::collections::BTreeSet;

use mailboat_engine::engine::Engine;
use mailboat_engine::role::Order;
use mailboat_object::key::ClusterId;
use mailboat_store::store::Store;

use super::CenterRole;

/// What was read as a whole, and evaluated, since the center started.
#[derive(Default)]
pub(super) struct Reading {
    /// Workspaces of which it is known what their placements select.
    workspaces: BTreeSet<ClusterId>,
    /// All of them were, and it is known what nobody selects any more.
    all: bool,
}

impl Reading {
    /// Whether it is known what the placements of a workspace select.
    pub(super) fn knows(&self, cluster: &ClusterId) -> bool {
        self.workspaces.contains(cluster)
    }

    /// Whether everything is known that was there when the center started.
    pub(super) fn knows_all(&self) -> bool {
        self.all
    }
}

impl CenterRole {
    /// Notes what was read and evaluated since this was last asked: there is more to say of it.
    pub(super) fn note_read(&mut self, store: &Store, engine: &Engine, orders: &[Order]) {
        // What was just ordered, and what the engine still looks at, may count otherwise a moment later.
        if !self.started || !self.stale.is_empty() || !orders.is_empty() || engine.is_busy() {
            return;
        }
        let unread: Vec<ClusterId> =
            self.workspaces.with_placements().filter(|one| !self.reading.knows(one)).cloned().collect();
        let (read, unread): (BTreeSet<ClusterId>, BTreeSet<ClusterId>) =
            unread.into_iter().partition(|cluster| self.workspaces.is_read(cluster, store));
        for placement in self.placements.keys().filter(|key| read.contains(&key.cluster)) {
            self.statuses.touch(placement);
        }
        self.reading.workspaces.extend(read);
        let comes = |cluster: &ClusterId| !self.workspaces.is_out_of_reach(cluster);
        if !self.reading.all && !unread.iter().any(comes) && self.known.is_some() {
            self.reading.all = true;
            self.placements.keys().for_each(|placement| self.statuses.touch(placement));
            self.statuses.touch_targets();
        }
    }
}
