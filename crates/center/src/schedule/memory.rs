//! Where placements went before this center knew of them, as their slices say.
//!
//! A center that ran all along knows where each placement goes, and leaves it there when nobody can tell any more whether it
//! should go there: its edge is cordoned, its selectors or those of a Location cannot be understood, its inventory is not
//! shown. One that starts knows that by the slices alone. They are remembered, and stand as they were, until the pair is decided
//! one way or the other.

use std::collections::BTreeSet;

use mailboat_api::edge::SinglePlacement;
use mailboat_object::key::{ClusterId, Key, Name, Uid};

use super::{Leads, Schedule, facts};

impl Schedule {
    /// Where slices that stand already say that a placement goes, which is new to us.
    pub fn remember(&mut self, placement: &Key, destinations: Vec<SinglePlacement>) {
        let known = self.placements.get(placement);
        for destination in destinations {
            let uid = Uid::parse(&destination.sync_target_uid);
            if !known.is_some_and(|known| known.destinations.contains_key(&uid)) {
                self.remembered.entry(placement.clone()).or_default().insert(uid, destination);
            }
        }
        self.show_remembered(placement);
        if self.started {
            self.recall_unreadable();
            self.decide_all(placement);
        }
    }

    /// All that is remembered: which placement went where.
    pub fn remembered(&self) -> impl Iterator<Item = (&Key, &Uid, &SinglePlacement)> {
        let all = self.remembered.iter();
        all.flat_map(|(placement, went)| went.iter().map(move |(uid, to)| (placement, uid, to)))
    }

    /// All is known by which it is decided whether placements go there: what does not, does not any more.
    pub fn forget_remembered(&mut self, pairs: &[(Key, Uid)]) {
        for (placement, uid) in pairs {
            let went = self.remembered.get_mut(placement).and_then(|went| went.remove(uid));
            if let (Some(went), Some(state)) = (went, self.placements.get_mut(placement)) {
                state.slices.remove(&went);
                self.changed.insert(placement.clone());
            }
        }
        self.remembered.retain(|_, went| !went.is_empty());
    }

    /// What is remembered stands in a placement's slices as it did.
    pub(super) fn show_remembered(&mut self, placement: &Key) {
        let remembered = self.remembered.get(placement).filter(|went| !went.is_empty());
        if let (Some(went), Some(state)) = (remembered, self.placements.get_mut(placement)) {
            for to in went.values() {
                state.slices.insert(to.clone());
            }
            self.changed.insert(placement.clone());
        }
    }

    /// The SyncTargets that a placement went to, as far as they are there.
    pub(super) fn remembered_targets(&self, placement: &Key) -> BTreeSet<Key> {
        let went = self.remembered.get(placement).into_iter().flatten();
        went.filter_map(|(uid, to)| self.target_there(uid, to)).collect()
    }

    /// The placements that went to a SyncTarget.
    pub(super) fn remembering(&self, uid: &Uid) -> impl Iterator<Item = &Key> {
        let all = self.remembered.iter();
        all.filter(|(_, went)| went.contains_key(uid)).map(|(placement, _)| placement)
    }

    /// The SyncTargets that a Location led to, as far as they are there.
    pub(super) fn recalled_through(&self, location: &Key) -> BTreeSet<Key> {
        let went = self.remembered.values().flatten();
        let through = went.filter(|(_, to)| {
            to.location_name == location.name.as_str() && to.cluster == location.cluster.0.as_str()
        });
        let kind = facts::target_kind(&location.kind);
        through.filter_map(|(uid, to)| self.target_there(uid, to)).filter(|key| key.kind == kind).collect()
    }

    /// The Locations that led to a SyncTarget, and whose selectors cannot be understood.
    pub(super) fn recalled_to(&self, target: &Key, uid: &Uid) -> BTreeSet<Key> {
        let leads = |location: &&Key| {
            let mut went = self.remembered.values().filter_map(|went| went.get(uid));
            location.cluster == target.cluster
                && facts::target_kind(&location.kind) == target.kind
                && went.any(|to| to.location_name == location.name.as_str())
        };
        self.unreadable.iter().filter(leads).cloned().collect()
    }

    /// Locations whose selectors cannot be understood lead where they led.
    pub(super) fn recall_unreadable(&mut self) {
        for key in self.unreadable.clone() {
            for target in self.recalled_through(&key) {
                if let (Some(location), Some(state)) =
                    (self.locations.get_mut(&key), self.targets.get_mut(&target))
                {
                    location.targets.insert(target);
                    state.locations.insert(key.clone());
                }
            }
        }
    }

    /// The SyncTarget that a slice means: slices do not say of which group it is.
    fn target_there(&self, uid: &Uid, to: &SinglePlacement) -> Option<Key> {
        let named = facts::TARGET_GROUPS.map(|group| Key {
            cluster: ClusterId::new(&to.cluster),
            kind: facts::targets_of(group),
            namespace: Name::EMPTY,
            name: Name::new(&to.sync_target_name),
        });
        named.into_iter().find(|key| self.targets.get(key).is_some_and(|state| state.facts.uid == *uid))
    }
}

/// A destination as a slice remembers it.
pub(super) fn recalled(target: &Key, to: &SinglePlacement) -> Leads {
    let location = Key {
        cluster: target.cluster.clone(),
        kind: facts::location_kind(&target.kind),
        namespace: Name::EMPTY,
        name: Name::new(&to.location_name),
    };
    Leads { target: target.clone(), location }
}
