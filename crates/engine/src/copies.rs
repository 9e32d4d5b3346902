//! Copies by what they are copies of, wherever they stand.
//!
//! Most routes say where a copy stands. One that does not (a publisher whose naming rules may change, and whose copies may
//! have been made by another program) finds it by its mark. Only for kinds that some route seeks is this kept: it would
//! double what a center holds.

use std::collections::BTreeMap;

use mailboat_object::key::{ClusterId, Key, KindId};
use smallvec::SmallVec;

use crate::whereabouts::Whereabouts;

/// The copies of the kinds that are sought.
#[derive(Default)]
pub(crate) struct Copies {
    /// How many routes seek a kind; in no cluster in particular.
    sought: Whereabouts,
    /// By the cluster and the kind of the copy, and by what it is a copy of.
    found: BTreeMap<(ClusterId, KindId), ByOrigin>,
}

type ByOrigin = BTreeMap<Key, SmallVec<[Key; 1]>>;

impl Copies {
    /// One more route seeks a kind. True if it is the first.
    pub(crate) fn seek(&mut self, kind: &KindId) -> bool {
        let first = !self.is_sought(kind);
        self.sought.add(&ClusterId::default(), kind);
        first
    }

    /// One route fewer seeks a kind.
    pub(crate) fn seek_no_more(&mut self, kind: &KindId) {
        self.sought.remove(&ClusterId::default(), kind);
        if !self.is_sought(kind) {
            self.found.retain(|(_, of), _| of != kind);
        }
    }

    pub(crate) fn is_sought(&self, kind: &KindId) -> bool {
        !self.sought.of(kind, None).is_empty()
    }

    /// This is a copy of that from now on.
    pub(crate) fn add(&mut self, copy: &Key, origin: &Key) {
        let copies = self.found.entry((copy.cluster.clone(), copy.kind.clone())).or_default();
        let copies = copies.entry(origin.clone()).or_default();
        if let Err(at) = copies.binary_search(copy) {
            copies.insert(at, copy.clone());
        }
    }

    /// It is not any more.
    pub(crate) fn remove(&mut self, copy: &Key, origin: &Key) {
        let of = (copy.cluster.clone(), copy.kind.clone());
        let Some(found) = self.found.get_mut(&of) else { return };
        if let Some(copies) = found.get_mut(origin) {
            copies.retain(|known| known != copy);
            if copies.is_empty() {
                found.remove(origin);
            }
        }
        if found.is_empty() {
            self.found.remove(&of);
        }
    }

    /// The copies of an object of a kind in a cluster, in their order.
    pub(crate) fn of(&self, cluster: &ClusterId, kind: &KindId, origin: &Key) -> &[Key] {
        let found = self.found.get(&(cluster.clone(), kind.clone()));
        found.and_then(|found| found.get(origin)).map_or(&[], |copies| copies)
    }
}
