//! Tables of objects, and the log of what happened to them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mailboat_object::{Key, Name, Version};

use crate::object::Stored;

/// The objects of one kind in one cluster.
pub(super) type Table = BTreeMap<Spot, Arc<Stored>>;

/// Where an object stands in its table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    pub namespace: Name,
    pub name: Name,
}

impl Spot {
    pub(super) fn of(key: &Key) -> Self {
        Self { namespace: key.namespace.clone(), name: key.name.clone() }
    }
}

impl Ord for Spot {
    /// Lists come in the order of `namespace/name`, byte by byte; that is not the order of namespaces, since a
    /// dash comes before the slash.
    fn cmp(&self, other: &Self) -> Ordering {
        let namespaces = if self.namespace == other.namespace {
            Ordering::Equal
        } else {
            let bytes = |name: &Name| name.as_str().to_owned().into_bytes().into_iter().chain([b'/']);
            bytes(&self.namespace).cmp(bytes(&other.namespace))
        };
        namespaces.then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Spot {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What happened to the objects of one kind, in all clusters, as far back as is remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    changes: VecDeque<Arc<Change>>,
    /// Everything after this version is remembered.
    floor: Version,
}

/// One change of one object.
#[derive(Debug)]
pub struct Change {
    /// The version at which it happened.
    pub version: Version,
    /// To which object.
    pub key: Key,
    /// The object before; none: there was none.
    pub before: Option<Arc<Stored>>,
    /// The object after; none: it is gone.
    pub after: Option<Arc<Stored>>,
}

impl Log {
    pub(super) fn push(&mut self, change: Arc<Change>, limit: usize) {
        self.changes.push_back(change);
        while self.changes.len() > limit.max(1) {
            self.forget_first();
        }
    }

    /// Forgets everything up to and including a version.
    pub(super) fn compact(&mut self, version: Version) {
        while self.changes.front().is_some_and(|change| change.version <= version) {
            self.forget_first();
        }
        self.floor = self.floor.max(version);
    }

    /// Forgets the last change, if it happened at this version.
    pub(super) fn forget_last(&mut self, version: Version) {
        if self.changes.back().is_some_and(|change| change.version == version) {
            self.changes.pop_back();
        }
    }

    fn forget_first(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.floor = self.floor.max(change.version);
        }
    }

    /// Everything after this version is remembered.
    pub(super) fn floor(&self) -> Version {
        self.floor
    }

    /// What happened after a version, in order.
    pub(super) fn after(&self, version: Version) -> impl DoubleEndedIterator<Item = &Arc<Change>> {
        let from = self.changes.partition_point(|change| change.version <= version);
        self.changes.range(from..)
    }
}
