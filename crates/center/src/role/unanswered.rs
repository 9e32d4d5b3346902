//! Questions that a center asked before this one started, and that nobody has answered.
//!
//! What a placement would withdraw at once is held until somebody confirms it on that placement. A center that starts does
//! not know any more whose those copies were: they count with all that nobody claims, of which they may be few, and would go
//! unasked. So as long as a placement says what it waits for, what came from its workspace and nobody claims stays, and
//! the word that it asked for lets it go.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_api::edge::AwaitedConfirmation;
use mailboat_engine::breaker::ScopeId;
use mailboat_engine::engine::Engine;
use mailboat_engine::plan::ChangeId;
use mailboat_object::key::{ClusterId, Key};
use mailboat_object::object::Object;
use mailboat_store::store::Store;

use super::CenterRole;
use super::endings::confirms;
use super::guard::{came_from, strays};
use super::withheld::{Because, Withheld};

/// What placements wait for since before this center knew of them.
#[derive(Default)]
pub(super) struct Unanswered {
    asked: BTreeMap<Key, Withheld>,
    /// Workspaces of those of them that were answered, as long as something from there is to go.
    answered: BTreeSet<ClusterId>,
}

impl Unanswered {
    /// A placement that is new to this center says what it waits for.
    pub(super) fn reads(&mut self, placement: &Object) {
        let awaited = placement.get(&["status", "awaitingConfirmation"]);
        let awaited: Option<AwaitedConfirmation> =
            awaited.and_then(|awaited| serde_json::from_str(awaited.json()).ok());
        let Some(awaited) = awaited.filter(|_| !placement.deleting) else { return };
        let Ok(change) = u64::from_str_radix(&awaited.change_id, 16) else { return };
        let count = awaited.withdrawals.and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
        let withheld = Withheld { change: ChangeId(change), count, because: Because::Less };
        self.asked.insert(placement.key.clone(), withheld);
    }

    /// What is still asked.
    pub(super) fn asked(&self) -> impl Iterator<Item = (&Key, &Withheld)> {
        self.asked.iter()
    }

    /// Whether something is asked about what came from a workspace.
    pub(super) fn concerns(&self, cluster: &ClusterId) -> bool {
        self.asked.keys().any(|placement| placement.cluster == *cluster)
    }

    /// A placement is gone, or on its way out: that is asked about otherwise.
    pub(super) fn gone(&mut self, placement: &Key) {
        self.asked.remove(placement);
    }
}

impl CenterRole {
    /// Notes what was answered, and what is not to be asked any more since nothing of it is left.
    pub(super) fn hear_answers(&mut self, store: &Store, engine: &Engine) {
        let Unanswered { asked, answered } = &self.unanswered;
        let settled = self.known.is_some() && self.stale.is_empty() && !engine.is_busy();
        if !settled || (asked.is_empty() && answered.is_empty()) {
            return;
        }
        let nothing_left = |cluster: &ClusterId| strays(cluster, store, engine, &*self.marks).is_empty();
        let said = |key: &Key, change: ChangeId| {
            store.get(key).present().is_some_and(|placement| confirms(placement, change))
        };
        let over: Vec<Key> = asked.keys().filter(|key| nothing_left(&key.cluster)).cloned().collect();
        let let_go: Vec<Key> =
            asked.iter().filter(|(key, asks)| said(key, asks.change)).map(|(key, _)| key.clone()).collect();
        let done: Vec<ClusterId> = answered.iter().filter(|cluster| nothing_left(cluster)).cloned().collect();
        for cluster in &done {
            self.unanswered.answered.remove(cluster);
        }
        for key in over {
            self.unanswered.gone(&key);
        }
        for key in let_go {
            if self.unanswered.asked.remove(&key).is_some() {
                tracing::info!(%key, "what was asked about before this center started is confirmed");
                self.unanswered.answered.insert(key.cluster.clone());
            }
        }
    }

    /// Whether all that would go from a scope, or may, came from workspaces where that was asked about before, and answered.
    pub(super) fn was_answered(&self, scope: &ScopeId, store: &Store, engine: &Engine) -> bool {
        let answered = |cluster: &ClusterId| {
            self.unanswered.answered.contains(cluster) && !self.unanswered.concerns(cluster)
        };
        let from_there = |slot: &Key| {
            let origin = store.get(slot).present().and_then(|copy| came_from(copy, &*self.marks));
            origin.is_some_and(|origin| answered(&origin))
        };
        !self.unanswered.answered.is_empty() && engine.losers(scope).all(|(slot, _)| from_there(slot))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::object;

    #[test]
    fn a_placement_that_waits_for_a_word_is_asked_about_as_before() {
        let mut unanswered = Unanswered::default();
        let placement = |name: &str, status: serde_json::Value| {
            let json = json!({ "metadata": { "name": name }, "status": status });
            object("shop", "edgeplacements.edge.kubestellar.io", &json)
        };
        let awaited = json!({ "awaitingConfirmation": { "changeId": "00c0ffee", "withdrawals": 12 } });
        unanswered.reads(&placement("waits", awaited));
        unanswered.reads(&placement("rests", json!({})));
        unanswered.reads(&placement("odd", json!({ "awaitingConfirmation": { "changeId": "what" } })));
        let asked: Vec<_> = unanswered.asked().map(|(key, asks)| (key.name.as_str(), *asks)).collect();
        let asks = Withheld { change: ChangeId(0x00c0_ffee), count: 12, because: Because::Less };
        assert_eq!(asked, [("waits", asks)]);
        assert!(unanswered.concerns(&ClusterId::new("shop")));
        unanswered.gone(&placement("waits", json!({})).key);
        assert!(!unanswered.concerns(&ClusterId::new("shop")));
    }
}
