//! Tables of objects, and the log of what happened to them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mailboat_object::{ClusterId, Key, Name, Uid, Version};

use crate::object::Stored;
use crate::packed::Texts;

/// The objects of one kind in one cluster.
pub(super) type Table = BTreeMap<Spot, Held>;

/// An object as tables and logs hold it. What rests is looked into only in copies, so that it goes on resting here.
#[derive(Clone, Debug)]
pub(super) struct Held(Arc<Stored>);

impl Held {
    pub(super) fn new(object: Arc<Stored>) -> Self {
        Self(object)
    }

    /// The object, to be looked into.
    pub(super) fn get(&self) -> Arc<Stored> {
        if self.0.is_resting() { Arc::new((*self.0).clone()) } else { Arc::clone(&self.0) }
    }

    pub(super) fn version(&self) -> Version {
        self.0.version
    }

    /// Whether it is the object of this key.
    pub(super) fn is(&self, key: &Key) -> bool {
        self.0.key == *key
    }

    pub(super) fn key(&self) -> &Key {
        &self.0.key
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.0.is_deleting()
    }

    pub(super) fn is_owned(&self) -> bool {
        self.0.is_owned()
    }

    pub(super) fn uid(&self) -> &Uid {
        &self.0.uid
    }

    /// About how many bytes it takes at rest.
    fn bytes(&self) -> usize {
        self.0.resting_bytes()
    }

    /// About how many bytes of JSON it is.
    pub(super) fn json_bytes(&self) -> usize {
        self.0.json_bytes()
    }

    pub(super) fn rested(&self, texts: &mut Texts) -> Self {
        if self.0.is_resting() { self.clone() } else { Self(Arc::new(self.0.rested(texts))) }
    }
}

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
            let mine = self.namespace.as_str().bytes().chain([b'/']);
            mine.cmp(other.namespace.as_str().bytes().chain([b'/']))
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
    /// About what the resting ones take that nobody else has.
    bytes: usize,
    /// Everything after this version is remembered.
    floor: Version,
    /// The last change of each cluster that is forgotten. Of all others nothing is that happened after `forgotten_before`.
    forgotten: BTreeMap<ClusterId, Version>,
    forgotten_before: Version,
}

/// Of so many clusters it is known at most up to where they are forgotten.
const FORGOTTEN_MAX: usize = 16 * 1024;

/// One change of one object.
#[derive(Debug)]
pub struct Change {
    /// The version at which it happened.
    pub version: Version,
    /// To which object.
    pub key: Key,
    pub(super) before: Option<Held>,
    pub(super) after: Option<Held>,
    /// About what it takes, once it rests.
    pub(super) bytes: usize,
    /// About how many bytes of JSON are before and after it.
    pub(super) json_bytes: usize,
}

/// What a change takes besides the object that it took the place of.
const CHANGE_BYTES: usize = 192;

impl Change {
    pub(super) fn new(version: Version, key: Key, before: Option<Held>, after: Option<Held>) -> Self {
        let json_bytes = [&before, &after].into_iter().flatten().map(Held::json_bytes).sum();
        Self { version, key, before, after, bytes: 0, json_bytes }
    }

    /// The object before; none: there was none.
    pub fn before(&self) -> Option<Arc<Stored>> {
        self.before.as_ref().map(Held::get)
    }

    /// The object after; none: it is gone.
    pub fn after(&self) -> Option<Arc<Stored>> {
        self.after.as_ref().map(Held::get)
    }

    /// Whether the object came into being.
    pub fn made(&self) -> bool {
        self.before.is_none()
    }

    /// Whether the object went away.
    pub fn unmade(&self) -> bool {
        self.after.is_none()
    }

    /// Whether what stands there now is going, or names owners.
    pub fn is_going_or_owned(&self) -> bool {
        self.after.as_ref().is_some_and(|after| after.is_deleting() || after.is_owned())
    }

    /// The same at rest. The object before is most often the one after another change, which may rest already.
    fn rested(&self, before: Option<Held>, texts: &mut Texts) -> Self {
        let before = before.or_else(|| self.before.as_ref().map(|before| before.rested(texts)));
        Self {
            version: self.version,
            key: self.key.clone(),
            bytes: CHANGE_BYTES + before.as_ref().map_or(0, Held::bytes),
            before,
            after: self.after.as_ref().map(|after| after.rested(texts)),
            json_bytes: self.json_bytes,
        }
    }
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
        self.forgotten_before = self.forgotten_before.max(version);
        self.forgotten.retain(|_, last| *last > version);
    }

    /// Forgets the last change, if it happened at this version.
    pub(super) fn forget_last(&mut self, version: Version) {
        if self.changes.back().is_some_and(|change| change.version == version)
            && let Some(change) = self.changes.pop_back()
        {
            self.bytes -= change.bytes;
        }
    }

    /// Puts to rest what happened at a version, if it is remembered, and tells what came of it.
    pub(super) fn rest(&mut self, version: Version, texts: &mut Texts) -> Option<Held> {
        let at = self.at(version)?;
        let change = &self.changes[at];
        let before =
            change.before.as_ref().and_then(|before| self.changes[self.at(before.version())?].after.clone());
        let rested = Arc::new(change.rested(before, texts));
        self.bytes = self.bytes - change.bytes + rested.bytes;
        self.changes[at] = Arc::clone(&rested);
        rested.after.clone()
    }

    /// Where the change at a version stands.
    fn at(&self, version: Version) -> Option<usize> {
        self.changes.binary_search_by_key(&version, |change| change.version).ok()
    }

    /// Forgets the oldest change.
    pub(super) fn forget_first(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.bytes -= change.bytes;
            self.floor = self.floor.max(change.version);
            self.forgotten.insert(change.key.cluster.clone(), change.version);
            if self.forgotten.len() > FORGOTTEN_MAX {
                self.forget_where_forgotten();
            }
        }
    }

    /// Of the clusters that changed the longest ago, it is no longer known up to where they are forgotten.
    fn forget_where_forgotten(&mut self) {
        let mut versions: Vec<Version> = self.forgotten.values().copied().collect();
        let (_, middle, _) = versions.select_nth_unstable(FORGOTTEN_MAX / 2);
        self.forgotten_before = self.forgotten_before.max(*middle);
        let before = self.forgotten_before;
        self.forgotten.retain(|_, last| *last > before);
    }

    /// About what the changes that rest take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The version of the oldest change, if it rests.
    pub(super) fn oldest_at_rest(&self) -> Option<Version> {
        self.changes.front().filter(|change| change.bytes > 0).map(|change| change.version)
    }

    /// Everything after this version is remembered.
    pub(super) fn floor(&self) -> Version {
        self.floor
    }

    /// Everything that happened in a cluster after this version is remembered. What others do there is no reason for it to
    /// forget: one that changes every millisecond would otherwise end the watches of all that are quiet.
    pub(super) fn floor_of(&self, cluster: &ClusterId) -> Version {
        self.forgotten.get(cluster).copied().unwrap_or_default().max(self.forgotten_before)
    }

    /// What happened after a version, in order.
    pub(super) fn after(&self, version: Version) -> impl DoubleEndedIterator<Item = &Arc<Change>> {
        let from = self.changes.partition_point(|change| change.version <= version);
        self.changes.range(from..)
    }
}
