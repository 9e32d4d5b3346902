//! Placements on their way out: each bears our finalizer, and goes when what it placed has gone.
//!
//! A deleted EdgePlacement is a user's word on one object, and confirms that everything that it placed goes, however much
//! that is. It is not their word if the workspace or the binding of EdgePlacements is being deleted, since kcp then deletes
//! every placement with it: then what it placed stays, and the placement waits for somebody to confirm that on it. The
//! finalizer keeps a placement there for just so long, also while no center runs.
//!
//! A view shows nothing that can be relied on of a workspace whose binding goes. So a placement that went out of sight is
//! read in its workspace itself, now and then, until it is in sight again or gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::names::{annotation, finalizer};
use mailboat_engine::plan::ChangeId;
use mailboat_engine::role::{CallId, Ground, Order};
use mailboat_object::digest::digest_of_value;
use mailboat_object::key::{ClusterId, Key, Name, Version};
use mailboat_object::object::{Keep, Object, Place};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Reply, Verb};
use mailboat_store::time::Moment;
use serde_json::json;

/// What could not be written or looked at is tried again after this.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// The same where the center lacks the right to it.
const FORBIDDEN_AGAIN_AFTER: Duration = Duration::from_mins(5);
/// Whether all that was placed has gone is looked at this often.
const GLANCE_EVERY: Duration = Duration::from_secs(1);
/// Finalizers that are written at once; more wait for an answer.
const MOST_UNDER_WAY: usize = 16;

/// Placements that lack our finalizer, and those on their way out.
pub(super) struct Endings {
    manager: Name,
    /// Those that are to get our finalizer, as last seen.
    bare: BTreeMap<Key, Arc<Object>>,
    ending: BTreeMap<Key, Ending>,
    /// Those that are out of sight.
    unseen: BTreeSet<Key>,
    /// Those of them that were read.
    found: Vec<Arc<Object>>,
    /// What is written, and the version that it is written to.
    writes: BTreeMap<CallId, (Key, Version)>,
    reads: BTreeMap<CallId, Key>,
    looks: BTreeMap<CallId, Key>,
    /// Those that the center may not patch, and so cannot keep until what they placed has gone.
    unpatchable: BTreeSet<Key>,
    /// Those of them of which that became otherwise.
    retell: Vec<Key>,
    /// Those that are gone after what they placed.
    seen_out: BTreeSet<Key>,
    /// Not to be written or looked at before.
    not_before: BTreeMap<Key, Moment>,
    /// Not to be read before.
    read_at: BTreeMap<Key, Moment>,
}

struct Ending {
    object: Arc<Object>,
    /// It places nothing any more.
    withdrawn: bool,
    /// What is being deleted, as far as that was looked at.
    deleted: Option<Deleted>,
}

/// What a deleted placement is deleted with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deleted {
    /// Nothing else.
    Alone,
    /// Its workspace, or what serves its kind there.
    WithMore,
}

/// What a placement that was seen is to be taken for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Course {
    /// It places what it selects.
    Stays,
    /// It is on its way out: what it placed stays, and it places nothing new.
    Keeps,
    /// It places nothing any more.
    Withdrawn,
}

impl Endings {
    pub(super) fn new(manager: Name) -> Self {
        Self {
            manager,
            bare: BTreeMap::new(),
            ending: BTreeMap::new(),
            unseen: BTreeSet::new(),
            found: Vec::new(),
            writes: BTreeMap::new(),
            reads: BTreeMap::new(),
            looks: BTreeMap::new(),
            unpatchable: BTreeSet::new(),
            retell: Vec::new(),
            seen_out: BTreeSet::new(),
            not_before: BTreeMap::new(),
            read_at: BTreeMap::new(),
        }
    }

    /// A placement was seen.
    pub(super) fn sees(&mut self, object: &Arc<Object>) -> Course {
        let key = &object.key;
        self.bare.remove(key);
        let known = self.ending.remove(key).filter(|ending| ending.object.uid == object.uid);
        if !object.deleting {
            if !bears_ours(object) {
                self.bare.insert(key.clone(), Arc::clone(object));
            }
            return Course::Stays;
        }
        // Without our finalizer it waits for somebody else, and what it placed goes when it has gone.
        if known.is_none() && !bears_ours(object) {
            return Course::Stays;
        }
        let (withdrawn, deleted) = known.map_or((false, None), |known| (known.withdrawn, known.deleted));
        self.ending.insert(key.clone(), Ending { object: Arc::clone(object), withdrawn, deleted });
        if withdrawn { Course::Withdrawn } else { Course::Keeps }
    }

    /// The placements of a workspace are shown by the view, or it cannot be said whether these are there.
    pub(super) fn in_sight<'k>(
        &mut self,
        known: impl Iterator<Item = &'k Key>,
        cluster: &ClusterId,
        shown: bool,
    ) {
        if shown {
            self.unseen.retain(|key| key.cluster != *cluster);
        } else {
            let of_it = |key: &&Key| key.cluster == *cluster;
            self.unseen.extend(known.filter(of_it).cloned());
            self.unseen.extend(self.ending.keys().filter(of_it).cloned());
        }
    }

    /// Placements that were read in their workspaces because they are out of sight, to be told like others.
    pub(super) fn take_found(&mut self) -> Vec<Arc<Object>> {
        std::mem::take(&mut self.found)
    }

    /// A placement on its way out as it was last seen.
    pub(super) fn last_seen(&self, key: &Key) -> Option<&Arc<Object>> {
        self.ending.get(key).map(|ending| &ending.object)
    }

    /// A placement is gone.
    pub(super) fn gone(&mut self, key: &Key) {
        self.bare.remove(key);
        self.unseen.remove(key);
        if self.ending.remove(key).is_some_and(|ending| ending.withdrawn) {
            self.seen_out.insert(key.clone());
        }
        self.not_before.remove(key);
        self.read_at.remove(key);
    }

    /// Placements that are gone after what they placed.
    pub(super) fn take_seen_out(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.seen_out)
    }

    /// Whether a placement of a workspace is on its way out.
    pub(super) fn are_in(&self, cluster: &ClusterId) -> bool {
        self.ending.keys().any(|key| key.cluster == *cluster)
    }

    /// Whether somebody said that all that a placement placed goes.
    pub(super) fn is_withdrawn(&self, key: &Key) -> bool {
        self.ending.get(key).is_some_and(|ending| ending.withdrawn)
    }

    /// The workspaces of placements that are deleted with something larger, and whose end somebody confirmed. That is a
    /// word on those placements alone. Which others there are no view shows, so it is read in the workspaces themselves.
    pub(super) fn given_up(&self) -> BTreeSet<&ClusterId> {
        let withdrawn = |ending: &Ending| ending.withdrawn && ending.deleted == Some(Deleted::WithMore);
        self.ending.iter().filter(|(_, ending)| withdrawn(ending)).map(|(key, _)| &key.cluster).collect()
    }

    /// Those that are deleted with their workspace and wait for a word, with the change that is to be confirmed.
    pub(super) fn awaiting(&self) -> impl Iterator<Item = (&Key, ChangeId)> {
        let awaits = |ending: &Ending| !ending.withdrawn && ending.deleted == Some(Deleted::WithMore);
        let awaiting = self.ending.iter().filter(move |(_, ending)| awaits(ending));
        awaiting.map(|(key, ending)| (key, change(&ending.object)))
    }

    /// Those that may place nothing any more from now on: the configuration is known as a whole, and what each of them
    /// placed is known to be its own, since all that it may select in its workspace was read.
    pub(super) fn take_withdrawn(&mut self, is_read: impl Fn(&ClusterId) -> bool) -> Vec<Key> {
        let mut taken = Vec::new();
        let there = self.ending.iter_mut().filter(|(key, _)| is_read(&key.cluster));
        for (key, ending) in there.filter(|(_, ending)| !ending.withdrawn) {
            let confirmed = match ending.deleted {
                Some(Deleted::Alone) => true,
                Some(Deleted::WithMore) => confirms(&ending.object, change(&ending.object)),
                None => false,
            };
            if confirmed {
                tracing::info!(%key, "the placement is deleted; what it placed is withdrawn");
                ending.withdrawn = true;
                taken.push(key.clone());
            }
        }
        taken
    }

    /// Puts finalizers on, looks at what is being deleted, and takes finalizers off from placements of which nothing
    /// stands any more. Says when to ask again.
    pub(super) fn next(
        &mut self,
        now: Moment,
        nothing_left: impl Fn(&Key) -> bool,
        mut id: impl FnMut() -> CallId,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        let mut wake: Option<Moment> = None;
        let mut at_last = |at: Moment| wake = Some(wake.map_or(at, |wake| wake.min(at)));
        let asked = [&self.reads, &self.looks];
        let free = |key: &Key| {
            let mut busy = asked.iter().flat_map(|calls| calls.values());
            !busy.any(|busy| busy == key) && !self.writes.values().any(|(busy, _)| busy == key)
        };
        let (mut writes, mut reads, mut looks) = (Vec::new(), Vec::new(), Vec::new());
        for (key, object) in self.bare.iter().filter(|(key, _)| free(key)) {
            match self.not_before.get(key).filter(|at| **at > now) {
                Some(at) => at_last(*at),
                None => writes.push((Arc::clone(object), true)),
            }
        }
        for (key, ending) in self.ending.iter().filter(|(key, _)| free(key)) {
            match self.not_before.get(key).filter(|at| **at > now) {
                Some(at) => at_last(*at),
                None if ending.deleted != Some(Deleted::Alone) && !ending.withdrawn => {
                    looks.push(key.clone());
                }
                None if ending.withdrawn && bears_ours(&ending.object) => {
                    if nothing_left(key) {
                        writes.push((Arc::clone(&ending.object), false));
                    } else {
                        at_last(now + GLANCE_EVERY);
                    }
                }
                None => {}
            }
        }
        for key in self.unseen.iter().filter(|key| free(key)) {
            let acts = writes.iter().any(|(object, _)| object.key == *key) || looks.contains(key);
            match self.read_at.get(key).filter(|at| **at > now) {
                Some(at) => at_last(*at),
                None if acts => at_last(now + GLANCE_EVERY),
                None => reads.push(key.clone()),
            }
        }
        for key in reads {
            self.read_at.insert(key.clone(), now + AGAIN_AFTER);
            at_last(now + AGAIN_AFTER);
            let id = id();
            orders.push(Order::Reach(key.cluster.clone()));
            let call = Call { key: key.clone(), verb: Verb::Get, part: Part::Whole, dry_run: false };
            orders.push(Order::Call(id, call));
            self.reads.insert(id, key);
        }
        for key in looks {
            let id = id();
            orders.push(Order::Reach(key.cluster.clone()));
            orders.push(Order::Look(id, key.cluster.clone(), key.kind.clone()));
            self.looks.insert(id, key);
        }
        for (object, add) in writes.into_iter().take(MOST_UNDER_WAY.saturating_sub(self.writes.len())) {
            let (id, key) = (id(), object.key.clone());
            orders.push(Order::Reach(key.cluster.clone()));
            let verb = finalizers(&object, add, &self.manager);
            orders.push(Order::Call(id, Call { key: key.clone(), verb, part: Part::Whole, dry_run: false }));
            self.writes.insert(id, (key, object.version));
        }
        wake
    }

    /// What a look found. False if it was none of these.
    pub(super) fn looked(&mut self, now: Moment, id: CallId, found: &Result<Ground, Fault>) -> bool {
        let Some(key) = self.looks.remove(&id) else { return false };
        self.not_before.insert(key.clone(), now + AGAIN_AFTER);
        let Some(ending) = self.ending.get_mut(&key) else { return true };
        let before = ending.deleted;
        match found {
            Ok(ground) if ground.is_solid() => {
                ending.deleted = Some(Deleted::Alone);
                self.not_before.remove(&key);
            }
            Ok(_) => ending.deleted = Some(Deleted::WithMore),
            Err(fault) => {
                tracing::debug!(%key, %fault, "what a placement is deleted with could not be looked at");
            }
        }
        if ending.deleted != before && ending.deleted == Some(Deleted::WithMore) {
            tracing::warn!(%key, "the placement is deleted with its workspace or its kind; what it placed stays until somebody confirms");
        }
        true
    }

    /// What came of a call. False if it was none of these.
    pub(super) fn answered(&mut self, now: Moment, id: CallId, reply: &Result<Reply, Fault>) -> bool {
        if let Some(key) = self.reads.remove(&id) {
            match reply {
                Ok(reply) => {
                    let place = Place::of(&key, &self.manager, Keep::Whole);
                    self.found.extend(Object::decode(&reply.body, &place).ok().map(Arc::new));
                }
                Err(fault) if fault.kind == FaultKind::NotFound => self.gone(&key),
                Err(fault) => {
                    tracing::debug!(%key, %fault, "a placement that is out of sight cannot be read");
                }
            }
            return true;
        }
        let Some((key, version)) = self.writes.remove(&id) else { return false };
        match reply {
            Ok(_) => {
                if self.unpatchable.remove(&key) {
                    self.retell.push(key.clone());
                }
                // What was written is seen soon; until then there is nothing to write.
                self.bare.remove(&key);
                self.not_before.insert(key, now + AGAIN_AFTER);
            }
            // It changed meanwhile: what it is now may be seen already, or is written when it is seen.
            Err(fault) if fault.kind == FaultKind::Conflict && self.bare.contains_key(&key) => {
                if self.bare.get(&key).is_some_and(|bare| bare.version == version) {
                    self.bare.remove(&key);
                }
            }
            Err(fault) => {
                let forbidden = fault.kind == FaultKind::Forbidden;
                if forbidden && self.unpatchable.insert(key.clone()) {
                    self.retell.push(key.clone());
                    tracing::warn!(%key, "the center may not patch this EdgePlacement, so that its deletion cannot wait for what it placed");
                }
                let rest = if forbidden { FORBIDDEN_AGAIN_AFTER } else { GLANCE_EVERY };
                self.not_before.insert(key, now + rest);
            }
        }
        true
    }
}

impl Endings {
    /// Whether the center may not patch a placement.
    pub(super) fn is_unpatchable(&self, key: &Key) -> bool {
        self.unpatchable.contains(key)
    }

    /// Placements of which something else is to be told.
    pub(super) fn take_retell(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.retell)
    }
}

/// Whether somebody confirmed a change on a placement.
pub(super) fn confirms(placement: &Object, change: ChangeId) -> bool {
    let said = placement.annotation(annotation::CONFIRM_WITHDRAWAL);
    said.is_some_and(|said| u64::from_str_radix(said.trim(), 16) == Ok(change.0))
}

/// Names the deletion of one placement with its workspace.
fn change(placement: &Object) -> ChangeId {
    let named = json!(["deleted", placement.key.to_string(), placement.uid.to_string()]);
    ChangeId(digest_of_value(&named).bits())
}

/// Whether a placement bears our finalizer.
pub(super) fn bears_ours(placement: &Object) -> bool {
    placement.finalizers().any(|one| one == finalizer::CONFIGURATION)
}

/// Puts our finalizer on a placement as it was seen, or takes it off.
fn finalizers(placement: &Object, add: bool, manager: &Name) -> Verb {
    let others = placement.finalizers().filter(|one| one != finalizer::CONFIGURATION);
    let mut all: Vec<String> = others.map(std::borrow::Cow::into_owned).collect();
    all.extend(add.then(|| finalizer::CONFIGURATION.to_owned()));
    let patch = json!({ "metadata": {
        "uid": placement.uid.to_string(), "resourceVersion": placement.version.to_string(), "finalizers": all,
    }});
    Verb::Merge { body: Arc::from(patch.to_string().into_bytes()), manager: manager.clone() }
}

#[cfg(test)]
mod tests;
