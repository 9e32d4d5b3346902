//! What a center that just saw a placement or an edge does not know of it yet, and one that ran all along does: where that
//! placement went, and which placements went to that edge.
//!
//! Placements are taken up together with their slices, which say where they went; until then nothing that came from their
//! workspace is withdrawn. What slices say of an edge stands until its SyncTarget and the Locations of its inventory are shown.
//! And mailboxes of which that is not known are orphans: whatever stands in them stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_api::edge::SinglePlacement;
use mailboat_api::names::group;
use mailboat_engine::mark::Marked;
use mailboat_engine::mutation::{Mutation, broken};
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid};
use mailboat_object::object::Object;
use mailboat_store::store::Store;

use super::CenterRole;
use super::guard::is_in_view;
use super::taking::Kind;
use crate::schedule::{TARGET_GROUPS, location_kind, targets_of};

/// Placements that were seen, and of which it is not known where they went.
#[derive(Default)]
pub(super) struct Newcomers {
    /// Those that are not taken up yet, and whether what they placed stays because they are on their way out.
    waiting: BTreeMap<Key, (Arc<Object>, bool)>,
    /// Those that were taken up from where no view shows their slices.
    unrecalled: BTreeSet<Key>,
    /// Something was learned of inventories.
    learned: bool,
}

impl Newcomers {
    /// Something was learned of a kind.
    pub(super) fn learns(&mut self, kind: &KindId) {
        self.learned |= matches!(Kind::of(kind), Some(Kind::Target | Kind::Location));
    }

    /// A placement is gone.
    pub(super) fn gone(&mut self, placement: &Key) {
        self.waiting.remove(placement);
        self.unrecalled.remove(placement);
    }

    /// Whether placements of a workspace are not taken up yet.
    pub(super) fn are_in(&self, cluster: &ClusterId) -> bool {
        self.waiting_in(cluster).next().is_some()
    }

    fn waiting_in(&self, cluster: &ClusterId) -> impl Iterator<Item = &Key> {
        let all = self.waiting.range(placement(cluster, &Name::EMPTY)..).map(|(key, _)| key);
        all.take_while(move |key| key.cluster == *cluster)
    }

    /// Whether none is waiting.
    pub(super) fn are_none(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether it was not seen yet where a placement went that was taken up.
    pub(super) fn is_unrecalled(&self, placement: &Key) -> bool {
        self.unrecalled.contains(placement)
    }
}

impl CenterRole {
    /// A placement was seen. One that is new is taken up when that is known of it which there is to know.
    pub(super) fn meets_placement(&mut self, object: &Arc<Object>, keeps: bool) {
        if self.placements.contains_key(&object.key) {
            self.sees_placement(object, keeps);
        } else {
            self.newcomers.waiting.insert(object.key.clone(), (Arc::clone(object), keeps));
        }
    }

    /// Takes up new placements whose slices are shown. Where placements are read because no view shows them, they are taken up
    /// without: nothing that came from there goes before it is in view, and what slices say is read then.
    pub(super) fn take_up(&mut self, store: &Store) {
        let Newcomers { waiting, unrecalled, .. } = &self.newcomers;
        let clusters: BTreeSet<ClusterId> =
            waiting.keys().chain(unrecalled).map(|key| key.cluster.clone()).collect();
        for cluster in clusters {
            let shown = is_in_view(store, &cluster);
            if !shown && !self.guard.read_there().contains(&cluster) {
                continue;
            }
            if shown {
                self.remember(&cluster, store);
            }
            let here: Vec<Key> = self.newcomers.waiting_in(&cluster).cloned().collect();
            for key in here {
                let Some((object, keeps)) = self.newcomers.waiting.remove(&key) else { continue };
                self.unanswered.reads(&object);
                self.sees_placement(&object, keeps);
                if !shown {
                    self.newcomers.unrecalled.insert(key);
                }
            }
            if shown {
                let there = |key: &&Key| key.cluster == cluster;
                let recalled: Vec<Key> = self.newcomers.unrecalled.iter().filter(there).cloned().collect();
                for key in recalled {
                    self.newcomers.unrecalled.remove(&key);
                    self.touch_placement(&key);
                }
            }
            self.newcomers.learned = true;
        }
    }

    /// Remembers where the slices of a workspace say that its new placements went.
    fn remember(&mut self, cluster: &ClusterId, store: &Store) {
        let slices = KindId::new(group::EDGE, "singleplacementslices");
        for slice in store.range(cluster, &slices, None).into_iter().flatten() {
            // Whoever may write there could say anything in one of their own.
            let Marked::Ours(mark) = self.marks.read(slice) else { continue };
            let placement = mark.origin.key;
            let Newcomers { waiting, unrecalled, .. } = &self.newcomers;
            if waiting.contains_key(&placement) || unrecalled.contains(&placement) {
                let listed = slice.get(&["destinations"]);
                let went: Option<Vec<SinglePlacement>> =
                    listed.and_then(|listed| serde_json::from_str(listed.json()).ok());
                self.schedule.remember(&placement, went.unwrap_or_default());
            }
        }
    }

    /// Decides what was remembered, or held because nobody knew what was there, as far as that is known by now.
    pub(super) fn decide_remembered(&mut self, store: &Store) {
        if !self.started || !std::mem::take(&mut self.newcomers.learned) {
            return;
        }
        let released: Vec<Uid> =
            self.orphans.iter().filter(|uid| !self.is_orphan(uid, store)).cloned().collect();
        for uid in &released {
            self.orphans.remove(uid);
        }
        if !released.is_empty() {
            self.stale.extend(self.placements.keys().cloned());
        }
        let known = |(_, uid, to): &(&Key, &Uid, &SinglePlacement)| {
            if let Some(target) = self.statuses.target_of(uid) {
                return shows_locations(store, target) && !self.schedule.is_missing(target);
            }
            // It is not there, if anything is shown.
            let inventory = ClusterId::new(&to.cluster);
            TARGET_GROUPS.iter().any(|group| shows(store, &inventory, &targets_of(group)))
        };
        let known = self.schedule.remembered().filter(known);
        let known: Vec<(Key, Uid)> = known.map(|(key, uid, _)| (key.clone(), uid.clone())).collect();
        self.schedule.forget_remembered(&known);
    }

    /// What nobody asks for by now is brought up no more, once all are shown who may ask.
    pub(super) fn forget_brought(&mut self) {
        if self.known.is_some() && self.newcomers.are_none() && self.guard.sees_all() {
            let orphans = &self.orphans;
            self.mailboxes.forget_brought(|uid| !orphans.contains(uid));
        }
    }

    /// Notes of which mailboxes it is not known which placements go there, once all that was there at the beginning is known.
    /// Its SyncTarget may have been lost with its inventory while no center ran, and with it where placements go. If somebody
    /// deleted it, its mailbox goes as a whole; in either case nothing is withdrawn from it by this.
    pub(super) fn find_orphans(&mut self, store: &Store) {
        self.newcomers.learned = true;
        if !broken(Mutation::ForgetWhatWasThere) {
            let orphans = self.mailboxes.uids().filter(|uid| self.is_orphan(uid, store));
            self.orphans = orphans.cloned().collect();
        }
    }

    /// The same of a mailbox that was found later. One that comes back, and not its SyncTarget, is no other than those.
    pub(super) fn note_orphan(&mut self, mailbox: &ClusterId, store: &Store) {
        let found = self.mailboxes.of(mailbox).filter(|uid| self.is_orphan(uid, store)).cloned();
        if let Some(uid) = found {
            self.orphans.insert(uid);
            self.stale.extend(self.placements.keys().cloned());
        }
    }

    /// Whether it is not known which placements go to a SyncTarget, or none does because it goes itself: it is not seen, it
    /// is on its way out, or the Locations that may lead there are not shown.
    fn is_orphan(&self, uid: &Uid, store: &Store) -> bool {
        let known = |target: &Key| self.schedule.holds(target, uid) && shows_locations(store, target);
        !self.statuses.target_of(uid).is_some_and(known)
    }
}

fn placement(cluster: &ClusterId, name: &Name) -> Key {
    let kind = KindId::new(group::EDGE, "edgeplacements");
    Key { cluster: cluster.clone(), kind, namespace: Name::EMPTY, name: name.clone() }
}

/// Whether all Locations are shown that may lead to a SyncTarget.
fn shows_locations(store: &Store, target: &Key) -> bool {
    shows(store, &target.cluster, &location_kind(&target.kind))
}

fn shows(store: &Store, cluster: &ClusterId, kind: &KindId) -> bool {
    store.range(cluster, kind, None).is_ok_and(|range| range.missing().is_ok())
}
