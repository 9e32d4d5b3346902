//! Pairs of a placement and a SyncTarget: whether the one goes to the other, and by which Location.

use std::collections::BTreeSet;

use mailboat_api::edge::SinglePlacement;
use mailboat_object::key::{Key, Uid};

use super::memory::recalled;
use super::{Leads, Schedule};

impl Schedule {
    /// Decides all pairs of a placement: those that it has, and those that its Locations lead to.
    pub(super) fn decide_all(&mut self, placement: &Key) {
        let Some(state) = self.placements.get(placement) else { return };
        let mut targets: BTreeSet<Key> =
            state.destinations.values().map(|leads| leads.target.clone()).collect();
        for location in &state.locations {
            targets.extend(
                self.locations.get(location).into_iter().flat_map(|location| location.targets.clone()),
            );
        }
        targets.extend(self.remembered_targets(placement));
        for target in targets {
            self.decide(placement, &target);
        }
    }

    /// Whether a placement goes to a SyncTarget, and by which Location.
    pub(super) fn decide(&mut self, placement: &Key, target: &Key) {
        if !self.started {
            return;
        }
        self.work.decided += 1;
        let evicted = self.targets.get(target).is_some_and(|state| self.evicted(&state.facts));
        let (Some(state), Some(to)) = (self.placements.get_mut(placement), self.targets.get(target)) else {
            return;
        };
        if self.missing.contains(target) {
            return;
        }
        let uid = &to.facts.uid;
        let before = state.destinations.get(uid).cloned();
        let remembered = self.remembered.get(placement).and_then(|all| all.get(uid));
        let stands = before.clone().or_else(|| remembered.map(|remembered| recalled(target, remembered)));
        // Several Locations may lead there; the first by name supplies the parameters.
        let location =
            to.locations.intersection(&state.locations).min_by(|a, b| a.name.cmp(&b.name)).cloned();
        let frozen = !state.facts.errors.is_empty();
        let now = match location {
            _ if evicted => None,
            Some(_) if to.facts.unschedulable && stands.is_none() => None,
            Some(location) => Some(Leads { target: target.clone(), location }),
            None if frozen => stands,
            None => None,
        };
        if now == before {
            return;
        }
        if let Some(before) = &before {
            state.slices.remove(&entry(before, uid));
            state.destinations.remove(uid);
        }
        let uid = uid.clone();
        if let Some(now) = now {
            if let Some(remembered) = self.remembered.get_mut(placement).and_then(|all| all.remove(&uid)) {
                state.slices.remove(&remembered);
            }
            state.slices.insert(entry(&now, &uid));
            state.departed.remove(&uid);
            state.destinations.insert(uid.clone(), now);
            self.going_to.entry(uid).or_default().insert(placement.clone());
        } else {
            self.goes_no_more(placement, &uid);
        }
        self.changed.insert(placement.clone());
    }

    pub(super) fn goes_no_more(&mut self, placement: &Key, uid: &Uid) {
        if let Some(going) = self.going_to.get_mut(uid) {
            going.remove(placement);
            if going.is_empty() {
                self.going_to.remove(uid);
            }
        }
    }

    /// A SyncTarget is gone, or another one has its name.
    pub(super) fn depart(&mut self, placement: &Key, uid: &Uid) {
        let Some(state) = self.placements.get_mut(placement) else { return };
        if let Some(leads) = state.destinations.remove(uid) {
            state.slices.remove(&entry(&leads, uid));
            state.departed.insert(uid.clone(), leads);
            self.changed.insert(placement.clone());
            self.goes_no_more(placement, uid);
        }
    }
}

fn entry(leads: &Leads, uid: &Uid) -> SinglePlacement {
    SinglePlacement {
        cluster: leads.target.cluster.to_string(),
        location_name: leads.location.name.to_string(),
        sync_target_name: leads.target.name.to_string(),
        sync_target_uid: uid.to_string(),
    }
}
