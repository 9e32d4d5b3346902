//! What a process withdraws at once, counted beside its breaker: from what it was shown, and from what it was told to place.
//!
//! It is counted generously: only what nobody can doubt to be a withdrawal by configuration or by a list counts as one, and
//! whatever may stand as standing. What is much even so, and was not confirmed, went unasked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_engine::mark::{Mark, Marked, Marks as _};
use mailboat_object::key::{ClusterId, Key, Name, Uid};
use mailboat_object::object::Object;
use mailboat_object::wire::{Call, Verb};
use mailboat_store::seen::{Change, Gone, Seen};
use mailboat_store::store::Store;

use crate::roles::{SimRoute, boats, edge, key, marks, skiffs};
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
    /// Every source that was shown.
    seen: BTreeSet<Key>,
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
}

/// What is asked about together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Group {
    Of(Name),
    Unclaimed(ClusterId),
}

impl Tally {
    /// Something was shown.
    pub(crate) fn shown(&mut self, change: &Change) {
        if Servers::of(&change.key.cluster) == 0 {
            self.learned();
            let is_source = change.key.kind == boats() || change.key.kind == skiffs();
            if is_source && matches!(change.now, Seen::Present(_)) {
                self.seen.insert(change.key.clone());
            }
        } else if change.key.kind == boats() {
            match &change.now {
                Seen::Present(copy) => self.stands(copy),
                // What turns up there later belongs to whoever asks for it then, if anybody does.
                Seen::Absent(_) => {
                    self.standing.remove(&change.key);
                    self.asked_for.remove(&change.key);
                    self.moved = true;
                }
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

    /// The configuration changed, or something of a source, or a whole kind became known or doubtful.
    pub(crate) fn learned(&mut self) {
        self.moved = true;
        self.going.clear();
    }

    /// Finds out who asks for what, before anything is decided from it.
    pub(crate) fn assign(&mut self, store: &Store, edges: u8, placements: &BTreeMap<Name, Arc<SimRoute>>) {
        if !std::mem::take(&mut self.moved) {
            return;
        }
        for source in self.seen.iter().filter_map(|key| store.get(key).present()) {
            let workspace = workspace_of(&source.key.cluster);
            let name = format!("{}{}", prefix_of(workspace), source.key.name);
            for number in 0..edges {
                // The other two routes send all that they read to the first edge.
                let asker = match workspace {
                    Workspace::Workload => {
                        let places = |(_, route): &(&Name, &Arc<SimRoute>)| route.places(source, number);
                        placements.iter().find(places).map(|(name, _)| name.clone())
                    }
                    Workspace::Mailbox => (number == 0).then(|| Name::new("syncer")),
                    Workspace::Bound(_) => (number == 0).then(|| Name::new("publisher")),
                };
                let Some(now) = asker else { continue };
                let slot = key(edge(number), boats(), &name);
                let known =
                    self.asked_for.entry(slot).or_insert_with(|| Asker { now: now.clone(), before: None });
                if known.now != now {
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
        }
    }

    /// Whether what a process calls for now, and what it called for since it learned anything, is less than it has to ask about, apart from what was confirmed.
    pub(crate) fn check<'c>(
        &mut self,
        store: &Store,
        calls: impl Iterator<Item = &'c Call>,
        confirmed: &Confirmed,
    ) -> Result<(), String> {
        for call in calls {
            let Verb::Delete { uid, .. } = &call.verb else { continue };
            let Some(it) = self.standing.get(&call.key).filter(|it| it.object == *uid) else { continue };
            if self.counts(store, it) && !confirmed.contains(&(call.key.clone(), uid.clone())) {
                let group = self.group_of(&call.key);
                let all = self.standing.keys().filter(|slot| self.counts_with(slot, &group)).count();
                let going = self.going.entry(group).or_default();
                going.slots.insert(call.key.clone());
                going.of = going.of.max(all);
            }
        }
        let much = |going: &Going| going.slots.len() >= MANY && going.slots.len() * 100 > going.of * SHARE;
        let unasked = self.going.iter().find(|(_, going)| much(going));
        unasked.map_or(Ok(()), |(group, Going { slots, of })| {
            Err(format!("a mass withdrawal went unasked: {} of {of} of {group:?}", slots.len()))
        })
    }

    /// Whether a copy that goes can only go by the configuration, since the object that it was made from is still there, or by
    /// a list, since that was never shown.
    fn counts(&self, store: &Store, it: &Standing) -> bool {
        let origin = &it.mark.origin;
        match store.get(&origin.key) {
            Seen::Present(source) => source.uid == origin.uid && !source.deleting,
            // What is in doubt from the first on may be seen to be deleted all the same.
            Seen::Absent(absence) => absence.how() != Gone::Deleted && !self.seen.contains(&origin.key),
            Seen::Unknown(_) => false,
        }
    }
}
