//! Where placements go: EdgePlacement × Location × SyncTarget, kept by increments.
//!
//! A placement goes to every SyncTarget that some matching Location leads to, each once. What changes is decided
//! anew for the pairs that it touches and for nothing else: a label on one Location among ten thousand costs
//! the placements that select by it, and one slice of each.
//!
//! What goes in is believed: whoever feeds the schedule takes an object away only on solid ground. Even so, a
//! SyncTarget that goes is not an order to clear its edge: its mailbox goes as a whole, and until then the
//! schedule remembers it as departed. So nothing leaves a SyncTarget that seems to be gone before that is known:
//! whoever retires an edge takes its Location away as well, and which of both is believed first is chance.

mod facts;
mod index;
mod memory;
mod pairs;
mod route;
mod slices;

use std::collections::{BTreeMap, BTreeSet};

use mailboat_api::edge::SinglePlacement;
use mailboat_object::key::{ClusterId, Key, KindId, Uid};

use index::{LabelIndex, SelectorIndex};
use slices::Slices;

pub use facts::{Instances, LocationFacts, PlacementFacts, TargetFacts};
pub(crate) use facts::{TARGET_GROUPS, location_kind, targets_of};
pub use route::Sliced;
pub use slices::{MOST_DESTINATIONS, Slice};

/// All placements, Locations and SyncTargets, and where that leads.
#[derive(Debug, Default)]
pub struct Schedule {
    placements: BTreeMap<Key, Placement>,
    locations: BTreeMap<Key, Location>,
    targets: BTreeMap<Key, Target>,
    placements_by_selector: SelectorIndex<Key>,
    locations_by_label: LabelIndex<Key>,
    inventories: BTreeMap<(ClusterId, KindId), Inventory>,
    evictions: BTreeSet<(u64, Key)>,
    /// SyncTargets that seem to be gone: what goes there stays as it is until that is known.
    missing: BTreeSet<Key>,
    /// The placements that go to each SyncTarget, by its uid.
    going_to: BTreeMap<Uid, BTreeSet<Key>>,
    /// Where the slices of each placement said that it went before we knew of it, as long as it is not known whether it still
    /// goes there.
    remembered: BTreeMap<Key, BTreeMap<Uid, SinglePlacement>>,
    /// Locations whose selector cannot be understood.
    unreadable: BTreeSet<Key>,
    changed: BTreeSet<Key>,
    now: u64,
    started: bool,
    work: Work,
}

/// How much was done, so that tests can say what a change costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Selectors or label sets that were looked at.
    pub tested: u64,
    /// Pairs of placement and SyncTarget that were decided.
    pub decided: u64,
    /// Slices that were written anew.
    pub slices: u64,
}

/// One edge that a placement goes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leads {
    /// The SyncTarget.
    pub target: Key,
    /// The Location whose labels and annotations are the parameters.
    pub location: Key,
}

#[derive(Debug)]
struct Placement {
    facts: PlacementFacts,
    locations: BTreeSet<Key>,
    destinations: BTreeMap<Uid, Leads>,
    /// SyncTargets that are gone, whose mailboxes may still be there.
    departed: BTreeMap<Uid, Leads>,
    slices: Slices,
}

#[derive(Debug)]
struct Location {
    facts: LocationFacts,
    placements: BTreeSet<Key>,
    targets: BTreeSet<Key>,
}

#[derive(Debug)]
struct Target {
    facts: TargetFacts,
    locations: BTreeSet<Key>,
}

/// The SyncTargets of one group in one workspace, and the Locations that select among them.
#[derive(Debug, Default)]
struct Inventory {
    targets: LabelIndex<Key>,
    locations: SelectorIndex<Key>,
}

impl Schedule {
    /// An empty schedule. It decides nothing before [`Schedule::start`].
    pub fn new() -> Self {
        Self::default()
    }

    /// All that was known at the beginning was told: from now on the schedule decides.
    pub fn start(&mut self, now: u64) {
        self.now = now;
        self.started = true;
        self.recall_unreadable();
        let placements: Vec<Key> = self.placements.keys().cloned().collect();
        for placement in placements {
            self.decide_all(&placement);
            self.changed.insert(placement);
        }
    }

    /// A placement is there, changed, or is gone.
    pub fn placement(&mut self, key: &Key, facts: Option<PlacementFacts>) {
        let Some(facts) = facts else {
            self.remove_placement(key);
            return;
        };
        let mut matched = BTreeSet::new();
        for selector in &facts.selectors {
            matched.extend(self.locations_by_label.matching(selector, &mut self.work.tested));
        }
        self.placements_by_selector.set(key, facts.selectors.clone());
        let state = self.placement_entry(key);
        if state.facts.uid != facts.uid {
            state.slices.forget_written();
        }
        state.facts = facts;
        let before = std::mem::replace(&mut state.locations, matched.clone());
        self.show_remembered(key);
        for left in before.difference(&matched) {
            if let Some(location) = self.locations.get_mut(left) {
                location.placements.remove(key);
            }
        }
        for joined in matched.difference(&before) {
            if let Some(location) = self.locations.get_mut(joined) {
                location.placements.insert(key.clone());
            }
        }
        self.changed.insert(key.clone());
        self.decide_all(key);
    }

    fn remove_placement(&mut self, key: &Key) {
        self.placements_by_selector.remove(key);
        self.remembered.remove(key);
        let Some(gone) = self.placements.remove(key) else { return };
        for uid in gone.destinations.keys() {
            self.goes_no_more(key, uid);
        }
        for location in gone.locations {
            if let Some(location) = self.locations.get_mut(&location) {
                location.placements.remove(key);
            }
        }
        self.changed.insert(key.clone());
    }

    /// A Location is there, changed, or is gone.
    pub fn location(&mut self, key: &Key, facts: Option<LocationFacts>) {
        let old = self.locations.remove(key);
        let (old_placements, old_targets) = old.map(|old| (old.placements, old.targets)).unwrap_or_default();
        self.unreadable.remove(key);
        let recalled = match &facts {
            Some(facts) if facts.instances == Instances::Unreadable => self.recalled_through(key),
            Some(_) | None => BTreeSet::new(),
        };
        let inventory =
            self.inventories.entry((key.cluster.clone(), facts::target_kind(&key.kind))).or_default();
        let (mut placements, mut targets) = (BTreeSet::new(), BTreeSet::new());
        match facts {
            None => {
                inventory.locations.remove(key);
                self.locations_by_label.remove(key);
            }
            Some(facts) => {
                placements = self.placements_by_selector.matching(&facts.labels, &mut self.work.tested);
                let selected = match &facts.instances {
                    Instances::None => Vec::new(),
                    Instances::Selected(selector) => {
                        targets = inventory.targets.matching(selector, &mut self.work.tested);
                        vec![selector.clone()]
                    }
                    Instances::Unreadable => {
                        self.unreadable.insert(key.clone());
                        targets = old_targets.union(&recalled).cloned().collect();
                        Vec::new()
                    }
                };
                inventory.locations.set(key, selected);
                self.locations_by_label.set(key, &facts.labels);
                let state = Location { facts, placements: placements.clone(), targets: targets.clone() };
                self.locations.insert(key.clone(), state);
            }
        }
        self.relink(key, (&old_placements, &placements), (&old_targets, &targets));
    }

    /// A Location matches other placements or leads to other SyncTargets than before.
    fn relink(
        &mut self,
        location: &Key,
        placements: (&BTreeSet<Key>, &BTreeSet<Key>),
        targets: (&BTreeSet<Key>, &BTreeSet<Key>),
    ) {
        for left in placements.0.difference(placements.1) {
            if let Some(state) = self.placements.get_mut(left) {
                state.locations.remove(location);
                self.changed.insert(left.clone());
            }
        }
        for joined in placements.1.difference(placements.0) {
            if let Some(state) = self.placements.get_mut(joined) {
                state.locations.insert(location.clone());
                self.changed.insert(joined.clone());
            }
        }
        for left in targets.0.difference(targets.1) {
            if let Some(state) = self.targets.get_mut(left) {
                state.locations.remove(location);
            }
        }
        for joined in targets.1.difference(targets.0) {
            if let Some(state) = self.targets.get_mut(joined) {
                state.locations.insert(location.clone());
            }
        }
        // Pairs that were joined by this Location before and are now, by the same one, need no decision.
        for placement in placements.0.union(placements.1) {
            let stays = placements.0.contains(placement) && placements.1.contains(placement);
            for target in targets.0.union(targets.1) {
                if !(stays && targets.0.contains(target) && targets.1.contains(target)) {
                    self.decide(placement, target);
                }
            }
        }
    }

    /// A SyncTarget seems to be gone.
    pub fn misses(&mut self, target: &Key) {
        self.missing.insert(target.clone());
    }

    /// Whether a SyncTarget seems to be gone.
    pub fn is_missing(&self, target: &Key) -> bool {
        self.missing.contains(target)
    }

    /// Whether a SyncTarget is there, and is to stay.
    pub fn holds(&self, target: &Key, uid: &Uid) -> bool {
        let held = self.targets.get(target).is_some_and(|state| state.facts.uid == *uid);
        held && !self.is_missing(target)
    }

    /// A SyncTarget is there, changed, or is gone.
    pub fn target(&mut self, key: &Key, facts: Option<TargetFacts>) {
        self.missing.remove(key);
        let inventory = self.inventories.entry((key.cluster.clone(), key.kind.clone())).or_default();
        let facts = facts.filter(|facts| !facts.deleting);
        let old = self.targets.remove(key);
        if let Some(at) = old.as_ref().and_then(|old| old.facts.evict_at) {
            self.evictions.remove(&(at, key.clone()));
        }
        let mut locations = match &facts {
            None => {
                inventory.targets.remove(key);
                BTreeSet::new()
            }
            Some(facts) => {
                inventory.targets.set(key, &facts.labels);
                let mut locations = inventory.locations.matching(&facts.labels, &mut self.work.tested);
                // A Location whose selector cannot be understood keeps what it led to.
                let kept = old.iter().flat_map(|old| &old.locations);
                let unreadable = |key: &&Key| {
                    let location = self.locations.get(*key);
                    location.is_some_and(|location| location.facts.instances == Instances::Unreadable)
                };
                locations.extend(kept.filter(unreadable).cloned());
                locations
            }
        };
        let uid = facts.as_ref().map(|facts| facts.uid.clone());
        locations.extend(uid.iter().flat_map(|uid| self.recalled_to(key, uid)));
        let old_uid = old.as_ref().map(|old| old.facts.uid.clone());
        let old_locations = old.map(|old| old.locations).unwrap_or_default();
        for left in old_locations.difference(&locations) {
            if let Some(location) = self.locations.get_mut(left) {
                location.targets.remove(key);
            }
        }
        for joined in locations.difference(&old_locations) {
            if let Some(location) = self.locations.get_mut(joined) {
                location.targets.insert(key.clone());
            }
        }
        let through: Vec<&Key> = old_locations.union(&locations).collect();
        // Also those that were to leave it while it seemed to be gone.
        let going = old_uid.iter().filter_map(|old| self.going_to.get(old)).flatten();
        let remembering = uid.iter().flat_map(|uid| self.remembering(uid));
        let placements: BTreeSet<Key> = through
            .into_iter()
            .filter_map(|location| self.locations.get(location))
            .flat_map(|location| &location.placements)
            .chain(going)
            .chain(remembering)
            .cloned()
            .collect();
        if let Some(facts) = facts {
            if let Some(at) = facts.evict_at.filter(|at| *at > self.now) {
                self.evictions.insert((at, key.clone()));
            }
            self.targets.insert(key.clone(), Target { facts, locations });
        }
        for placement in placements {
            if let Some(gone) = old_uid.as_ref().filter(|old| Some(*old) != uid.as_ref()) {
                self.depart(&placement, gone);
            }
            self.decide(&placement, key);
        }
    }

    /// Time goes on: what was to leave by now leaves.
    pub fn advance(&mut self, now: u64) {
        self.now = now;
        while let Some((at, target)) = self.evictions.first().cloned() {
            if at > now {
                return;
            }
            self.evictions.remove(&(at, target.clone()));
            let locations =
                self.targets.get(&target).map(|state| state.locations.clone()).unwrap_or_default();
            let placements: BTreeSet<Key> = locations
                .iter()
                .filter_map(|location| self.locations.get(location))
                .flat_map(|location| location.placements.iter().cloned())
                .collect();
            for placement in placements {
                self.decide(&placement, &target);
            }
        }
    }

    /// When something is to leave next, in Unix seconds.
    pub fn next_eviction(&self) -> Option<u64> {
        self.evictions.first().map(|(at, _)| *at)
    }

    /// A departed SyncTarget's mailbox is gone too: there is nothing left to remember.
    pub fn forget(&mut self, uid: &Uid) {
        for (key, placement) in &mut self.placements {
            if placement.departed.remove(uid).is_some() {
                self.changed.insert(key.clone());
            }
        }
    }

    /// The placements for which something changed since this was last asked; their slices are up to date.
    pub fn take_changed(&mut self) -> BTreeSet<Key> {
        if !self.started {
            return BTreeSet::new();
        }
        let changed = std::mem::take(&mut self.changed);
        for key in &changed {
            if let Some(placement) = self.placements.get_mut(key) {
                self.work.slices += placement.slices.write(key, &placement.facts.uid) as u64;
            }
        }
        changed
    }

    /// Where a placement goes, by the uid of each SyncTarget.
    pub fn destinations(&self, placement: &Key) -> impl Iterator<Item = (&Uid, &Leads)> {
        self.placements.get(placement).into_iter().flat_map(|placement| &placement.destinations)
    }

    /// By which Location a placement goes to a SyncTarget, if it does.
    pub fn leads(&self, placement: &Key, to: &Uid) -> Option<&Leads> {
        self.placements.get(placement)?.destinations.get(to)
    }

    /// Where a placement went until the SyncTarget was deleted. Nothing is withdrawn there: the mailbox goes as a
    /// whole.
    pub fn departed(&self, placement: &Key) -> impl Iterator<Item = (&Uid, &Leads)> {
        self.placements.get(placement).into_iter().flat_map(|placement| &placement.departed)
    }

    /// A placement's slices, as they should stand in its workspace.
    pub fn slices(&self, placement: &Key) -> impl Iterator<Item = &Slice> {
        self.placements.get(placement).into_iter().flat_map(|placement| placement.slices.all())
    }

    /// How many Locations a placement matches.
    pub fn matching_locations(&self, placement: &Key) -> usize {
        self.placements.get(placement).map_or(0, |placement| placement.locations.len())
    }

    /// How many SyncTargets a Location leads to, and how many of them take new work.
    pub fn instances(&self, location: &Key) -> Option<(usize, usize)> {
        let targets = &self.locations.get(location)?.targets;
        let available = |key: &&Key| {
            let facts = self.targets.get(*key).map(|target| &target.facts);
            facts.is_some_and(|facts| facts.ready && !facts.unschedulable && !self.evicted(facts))
        };
        Some((targets.len(), targets.iter().filter(available).count()))
    }

    /// The Locations that lead to a SyncTarget.
    pub fn locations_of(&self, target: &Key) -> impl Iterator<Item = &Key> {
        self.targets.get(target).into_iter().flat_map(|target| &target.locations)
    }

    /// The SyncTargets that a Location leads to.
    pub fn targets_of(&self, location: &Key) -> impl Iterator<Item = &Key> {
        self.locations.get(location).into_iter().flat_map(|location| &location.targets)
    }

    /// How much was done so far.
    pub fn work(&self) -> Work {
        self.work
    }

    fn placement_entry(&mut self, key: &Key) -> &mut Placement {
        self.placements.entry(key.clone()).or_insert_with(|| Placement {
            facts: PlacementFacts::default(),
            locations: BTreeSet::new(),
            destinations: BTreeMap::new(),
            departed: BTreeMap::new(),
            slices: Slices::new(),
        })
    }

    fn evicted(&self, facts: &TargetFacts) -> bool {
        facts.evict_at.is_some_and(|at| at <= self.now)
    }
}

#[cfg(test)]
mod tests;
