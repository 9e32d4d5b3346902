//! What a process withdraws at once, counted beside its breaker: from what it was shown, and from what it was told to place.
//!
//! It is counted generously: only what nobody can doubt to be a withdrawal by configuration or by a list counts as one, and
//! whatever may stand as standing. With what goes counts what its placement asks for no more and is not decided yet. What is
//! much even so, and was not confirmed, went unasked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_engine::mark::{Mark, Marked, Marks as _, OWNER_LABEL};
use mailboat_object::key::{ClusterId, Key, Name, Uid};
use mailboat_object::object::Object;
use mailboat_object::wire::{Call, Verb};
use mailboat_store::seen::{Change, Gone, Seen};
use mailboat_store::store::Store;
use serde_json::Value;

use crate::roles::{SimRoute, boats, configured_by, edge, key, marks, skiffs};
use crate::script::Workspace;
use crate::servers::{Servers, prefix_of, workspace_of};

/// Fewer than this many at once always go.
const MANY: usize = 10;
/// More than this share is asked about, in percent.
const SHARE: usize = 50;

/// What somebody confirmed: which object, and where.
pub(crate) type Confirmed = BTreeSet<(Key, Uid)>;

/// What is counted while one process lives.
#[derive(Default)]
pub(crate) struct Tally {
    standing: BTreeMap<Key, Standing>,
    /// Who asks for a slot, or did last, whether or not something is shown there.
    asked_for: BTreeMap<Key, Asker>,
    /// Every source that was shown, as it last was.
    seen: BTreeMap<Key, Arc<Object>>,
    /// Those that were shown to be gone since.
    ended: BTreeSet<Key>,
    /// Something happened by which a copy may belong elsewhere.
    moved: bool,
    /// What went since anything was learned by which more might go: that is one withdrawal, however long it takes.
    going: BTreeMap<Group, Going>,
}

#[derive(Default)]
struct Going {
    slots: BTreeSet<Key>,
    /// How many stood when most did.
    of: usize,
}

struct Standing {
    object: Uid,
    mark: Mark,
}

/// The placement, or the route, that asks for something.
struct Asker {
    now: Name,
    /// The one before: for a moment it may be counted there.
    before: Option<Name>,
    /// It does so no more, nor does anybody else.
    let_go: bool,
}

/// What is asked about together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Group {
    Of(Name),
    Unclaimed(ClusterId),
    /// What nobody asked for since the process began, in all clusters.
    Anywhere,
}

/// Who asks for a source at an edge, of the placements and routes that there are. The other two routes send all that they read
/// to the first edge.
pub(crate) fn asker(placements: &BTreeMap<Name, Arc<SimRoute>>, source: &Object, edge: u8) -> Option<Name> {
    let workspace = workspace_of(&source.key.cluster);
    match workspace {
        Workspace::Workload => {
            let places = |(_, route): &(&Name, &Arc<SimRoute>)| route.places(source, edge);
            placements.iter().find(places).map(|(name, _)| name.clone())
        }
        Workspace::Mailbox | Workspace::Bound(_) => {
            let route = configured_by(workspace).map(Name::new);
            route.filter(|route| edge == 0 && placements.contains_key(route))
        }
    }
}

impl Tally {
    /// Something was shown.
    pub(crate) fn shown(&mut self, change: &Change) {
        if Servers::of(&change.key.cluster) == 0 {
            self.learned();
            let is_source = change.key.kind == boats() || change.key.kind == skiffs();
            match &change.now {
                Seen::Present(source) if is_source => {
                    self.seen.insert(change.key.clone(), Arc::clone(source));
                    self.ended.remove(&change.key);
                }
                Seen::Absent(_) if is_source => {
                    self.ended.insert(change.key.clone());
                }
                _ => {}
            }
        } else if change.key.kind == boats() {
            match &change.now {
                Seen::Present(copy) => self.stands(copy),
                // What turns up there later belongs to whoever asks for it then, if anybody does.
                Seen::Absent(_) => self.is_gone(&change.key),
                // It may be there still.
                Seen::Unknown(_) => {}
            }
        }
    }

    /// Something stands at an edge: as it was shown, or as the answer to a call says.
    pub(crate) fn stands(&mut self, copy: &Object) {
        let Marked::Ours(mark) = marks().read(copy) else {
            self.standing.remove(&copy.key);
            return;
        };
        let standing = Standing { object: copy.uid.clone(), mark };
        if self.standing.insert(copy.key.clone(), standing).is_none() {
            self.going.clear();
        }
    }

    /// Nothing stands in a slot: as it was shown, or as the answer to a call says.
    pub(crate) fn is_gone(&mut self, slot: &Key) {
        self.standing.remove(slot);
        self.asked_for.remove(slot);
        self.moved = true;
    }

    /// The configuration changed, or something of a source, or a whole kind became known or doubtful.
    pub(crate) fn learned(&mut self) {
        self.moved = true;
        self.going.clear();
    }

    /// A whole kind became known somewhere, or doubtful. What a first list leaves out is gone like what is shown to be, though
    /// nothing says so of each: what turns up there later belongs to whoever asks for it then.
    pub(crate) fn listed(&mut self, store: &Store) {
        self.learned();
        let Self { standing, asked_for, .. } = self;
        asked_for.retain(|slot, _| standing.contains_key(slot) || store.get(slot).absent().is_none());
    }

    /// Finds out who asks for what, before anything is decided from it.
    pub(crate) fn assign(&mut self, store: &Store, edges: u8, placements: &BTreeMap<Name, Arc<SimRoute>>) {
        if !std::mem::take(&mut self.moved) {
            return;
        }
        for (source, last) in &self.seen {
            let shown = store.get(source).present();
            let workspace = workspace_of(&source.cluster);
            let name = format!("{}{}", prefix_of(workspace), source.name);
            for number in 0..edges {
                let asker = |source: &Object| asker(placements, source, number);
                let slot = key(edge(number), boats(), &name);
                let now = shown.and_then(|source| asker(source));
                let Some(known) = self.asked_for.get_mut(&slot) else {
                    if let Some(now) = now {
                        self.asked_for.insert(slot, Asker { now, before: None, let_go: false });
                    }
                    continue;
                };
                // Of a source in doubt it is as it was, as long as there is a placement that may have asked.
                known.let_go = now.is_none() && (shown.is_some() || asker(last).is_none());
                if let Some(now) = now.filter(|now| known.now != *now) {
                    known.before = Some(std::mem::replace(&mut known.now, now));
                }
            }
        }
    }

    /// What a slot is counted with: a placement, or a cluster, if no placement asked for it since the process began.
    fn group_of(&self, slot: &Key) -> Group {
        let asker = self.asked_for.get(slot);
        asker.map_or_else(|| Group::Unclaimed(slot.cluster.clone()), |asker| Group::Of(asker.now.clone()))
    }

    fn counts_with(&self, slot: &Key, group: &Group) -> bool {
        match group {
            Group::Of(name) => {
                let asker = self.asked_for.get(slot);
                asker.is_some_and(|asker| asker.now == *name || asker.before.as_ref() == Some(name))
            }
            Group::Unclaimed(cluster) => slot.cluster == *cluster,
            Group::Anywhere => true,
        }
    }

    /// What goes from a group or may, apart from what was confirmed: of each that stands there and nobody asks for, it is
    /// decided that it goes, or undecided.
    fn losers(&self, store: &Store, group: &Group, confirmed: &Confirmed) -> BTreeSet<&Key> {
        let may_go = |(slot, it): &(&Key, &Standing)| {
            let let_go = match (group, self.asked_for.get(*slot)) {
                (Group::Of(name), Some(asker)) => asker.let_go && asker.now == *name,
                (Group::Unclaimed(cluster), None) => slot.cluster == *cluster,
                (Group::Anywhere, None) => true,
                _ => false,
            };
            let origin = &it.mark.origin;
            let_go
                && !confirmed.contains(&((*slot).clone(), it.object.clone()))
                && match store.get(&origin.key) {
                    Seen::Present(source) => source.uid == origin.uid && !source.deleting,
                    // One that was seen to be deleted, and is in doubt now, counts no more.
                    Seen::Unknown(_) => {
                        let known = self.seen.get(&origin.key).filter(|_| !self.ended.contains(&origin.key));
                        known.is_some_and(|source| source.uid == origin.uid && !source.deleting)
                    }
                    Seen::Absent(_) => false,
                }
        };
        self.standing.iter().filter(may_go).map(|(slot, _)| slot).collect()
    }

    /// Whether what a process calls for now, what it called for since it learned anything, and what is undecided besides is less
    /// than it has to ask about, apart from what was confirmed. `known`: it has known its whole configuration.
    pub(crate) fn check<'c>(
        &mut self,
        store: &Store,
        calls: impl Iterator<Item = &'c Call>,
        known: bool,
        confirmed: &Confirmed,
    ) -> Result<(), String> {
        let mut began = BTreeSet::new();
        for call in calls {
            let Some(uid) = withdraws(call) else { continue };
            let Some(it) = self.standing.get(&call.key).filter(|it| it.object == uid) else { continue };
            if self.counts(store, it) && !confirmed.contains(&(call.key.clone(), uid)) {
                let group = self.group_of(&call.key);
                let anywhere = matches!(group, Group::Unclaimed(_)).then_some(Group::Anywhere);
                for group in std::iter::once(group).chain(anywhere) {
                    let all = self.standing.keys().filter(|slot| self.counts_with(slot, &group)).count();
                    let going = self.going.entry(group.clone()).or_default();
                    going.slots.insert(call.key.clone());
                    going.of = going.of.max(all);
                    began.insert(group);
                }
            }
        }
        for group in &began {
            let Some(Going { slots, of }) = self.going.get(group) else { continue };
            let mut losers = if known { self.losers(store, group, confirmed) } else { BTreeSet::new() };
            losers.extend(slots);
            if losers.len() >= MANY && losers.len() * 100 > of * SHARE {
                let (gone, all) = (slots.len(), losers.len());
                return Err(format!(
                    "a mass withdrawal went unasked: {gone} of the {all} that go or may, of {of} of {group:?}"
                ));
            }
        }
        Ok(())
    }

    /// Whether a copy that goes can only go by the configuration, since the object that it was made from is still there, or by
    /// a list, since that was never shown.
    fn counts(&self, store: &Store, it: &Standing) -> bool {
        let origin = &it.mark.origin;
        match store.get(&origin.key) {
            Seen::Present(source) => source.uid == origin.uid && !source.deleting,
            // What is in doubt from the first on may be seen to be deleted all the same.
            Seen::Absent(absence) => absence.how() != Gone::Deleted && !self.seen.contains_key(&origin.key),
            Seen::Unknown(_) => false,
        }
    }
}

/// Which object a call deletes, or lets go of.
pub(crate) fn withdraws(call: &Call) -> Option<Uid> {
    match &call.verb {
        Verb::Delete { uid, .. } => Some(uid.clone()),
        Verb::Merge { body, .. } => {
            let patch: Value = serde_json::from_slice(body).ok()?;
            let metadata = &patch["metadata"];
            let takes_off = metadata["labels"].get(OWNER_LABEL).is_some_and(Value::is_null);
            takes_off.then(|| metadata["uid"].as_str().map(Uid::parse)).flatten()
        }
        _ => None,
    }
}
