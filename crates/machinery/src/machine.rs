//! One server: logical clusters whose objects share one resource version.

mod admit;
mod assign;
mod collect;
mod definition;
mod delete;
mod durable;
mod list;
mod marks;
mod namespace;
mod provide;
mod rest;
mod scale;
mod status_write;
mod table;
mod watch;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_object::{ClusterId, Key, KindId, Version};

use crate::kind::Kind;
use crate::object::Stored;
use crate::status::Status;

pub use definition::kind_from_definition;
pub use delete::{DeleteOptions, Deleted, Emptied, Room};
pub use durable::BadObject;
pub use list::{List, ListRequest, ListVersion, Within};
pub use marks::{MARK_PREFIX, Mark, Marks};
pub use provide::ROOT_CA;
pub use table::Change;
pub use watch::{Watch, WatchEvent, WatchRequest, WatchStart};
pub use write::{Patch, WriteOptions, Written};

use table::{Held, Log, Spot, Table};

/// One server: several logical clusters that share one resource version, as those of a shard of kcp do. A plain
/// Kubernetes server has one cluster.
///
/// A clone is a backup: objects and untouched tables are shared, so it costs little.
#[derive(Clone, Debug)]
pub struct Machine {
    settings: Settings,
    version: Version,
    clusters: BTreeMap<ClusterId, Cluster>,
    logs: BTreeMap<KindId, Log>,
    /// Nothing up to this version is remembered, whatever the logs hold.
    compacted: Version,
    keeping: durable::Keeping,
    resting: rest::Resting,
}

/// How a server behaves where servers differ.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whose ways it has.
    pub flavor: Flavor,
    /// How many changes of each kind are remembered at most; older ones answer 410.
    pub log_limit: usize,
    /// How many bytes the changes of all kinds may take that are remembered and rest; older ones answer 410.
    pub log_bytes: usize,
    /// How many of the last changes are kept as trees; what has not changed since rests as text. None: everything
    /// stays a tree, which takes more memory and less time.
    pub awake: Option<usize>,
    /// How many bytes of JSON these may be; but the last one, however large.
    pub awake_bytes: usize,
    /// Services get addresses and ports of the cluster's own.
    pub addresses: bool,
    /// Pods get an account's token.
    pub tokens: bool,
}

/// Whose ways a server has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flavor {
    /// kube-apiserver: a watch from a version that lies in the future is refused.
    Kubernetes,
    /// kcp: objects name their cluster in an annotation, and a watch from a version that lies in the future is
    /// silent until it comes.
    Kcp,
}

/// The kinds that a cluster serves. Clusters that serve the same share one.
pub type Kinds = BTreeMap<KindId, Arc<Kind>>;

#[derive(Clone, Debug, Default)]
struct Cluster {
    kinds: Arc<Kinds>,
    tables: BTreeMap<KindId, Arc<Table>>,
    marks: Arc<marks::Marks>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            flavor: Flavor::Kubernetes,
            log_limit: 10_000,
            log_bytes: usize::MAX,
            awake: None,
            awake_bytes: usize::MAX,
            addresses: false,
            tokens: false,
        }
    }
}

impl Machine {
    /// A server without clusters.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            version: Version(1),
            clusters: BTreeMap::new(),
            logs: BTreeMap::new(),
            compacted: Version(0),
            keeping: durable::Keeping::default(),
            resting: rest::Resting::default(),
        }
    }

    /// The version of the last change.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its clusters, sorted.
    pub fn clusters(&self) -> impl Iterator<Item = &ClusterId> {
        self.clusters.keys()
    }

    /// Adds a cluster that serves these kinds, or lets one serve more. Kinds are shared between clusters by
    /// cloning the `Arc`.
    pub fn serve(&mut self, cluster: &ClusterId, kinds: impl IntoIterator<Item = Arc<Kind>>) {
        self.note_cluster(cluster);
        let cluster = self.clusters.entry(cluster.clone()).or_default();
        Arc::make_mut(&mut cluster.kinds).extend(kinds.into_iter().map(|kind| (kind.id.clone(), kind)));
        self.resting.share_kinds(&mut cluster.kinds);
    }

    /// Adds a cluster that serves exactly these kinds, or lets one serve them in place of others. Whoever has many
    /// clusters that are alike need not put their kinds together for each.
    pub fn serve_exactly(&mut self, cluster: &ClusterId, kinds: &Arc<Kinds>) {
        self.note_cluster(cluster);
        let mut kinds = Arc::clone(kinds);
        self.resting.share_kinds(&mut kinds);
        self.clusters.entry(cluster.clone()).or_default().kinds = kinds;
    }

    /// All kinds that a cluster serves, as one.
    pub fn served_kinds(&self, cluster: &ClusterId) -> Option<&Arc<Kinds>> {
        Some(&self.clusters.get(cluster)?.kinds)
    }

    /// Stops serving a kind in a cluster. Its objects stay, unseen, until it is served again.
    pub fn stop_serving(&mut self, cluster: &ClusterId, kind: &KindId) {
        self.note_cluster(cluster);
        if let Some(cluster) = self.clusters.get_mut(cluster) {
            Arc::make_mut(&mut cluster.kinds).remove(kind);
            self.resting.share_kinds(&mut cluster.kinds);
        }
    }

    /// Stops serving everything in a cluster: it is as if it had never been.
    pub fn stop_serving_all(&mut self, cluster: &ClusterId) {
        self.note_cluster(cluster);
        self.clusters.remove(cluster);
    }

    /// The kind as a cluster serves it.
    pub fn kind(&self, cluster: &ClusterId, kind: &KindId) -> Option<&Arc<Kind>> {
        self.clusters.get(cluster)?.kinds.get(kind)
    }

    /// The kinds that a cluster serves, sorted.
    pub fn kinds(&self, cluster: &ClusterId) -> impl Iterator<Item = &Arc<Kind>> {
        self.clusters.get(cluster).into_iter().flat_map(|cluster| cluster.kinds.values())
    }

    /// Reads an object.
    pub fn get(&self, key: &Key) -> Result<Arc<Stored>, Status> {
        self.served(key)?;
        self.find(key).ok_or_else(|| Status::not_found(&key.kind, &key.name))
    }

    fn served(&self, key: &Key) -> Result<Arc<Kind>, Status> {
        self.kind(&key.cluster, &key.kind).cloned().ok_or_else(Status::unserved)
    }

    fn find(&self, key: &Key) -> Option<Arc<Stored>> {
        Some(self.held(key)?.get())
    }

    fn held(&self, key: &Key) -> Option<&Held> {
        self.clusters.get(&key.cluster)?.tables.get(&key.kind)?.get(&Spot::of(key))
    }

    fn table(&self, cluster: &ClusterId, kind: &KindId) -> Option<&Table> {
        Some(&**self.clusters.get(cluster)?.tables.get(kind)?)
    }

    /// Stores an object as it is now, at the next version.
    fn put(&mut self, mut object: Stored) -> Arc<Stored> {
        self.version.0 += 1;
        object.version = self.version;
        let object = Arc::new(object);
        let cluster = self.clusters.entry(object.key.cluster.clone()).or_default();
        let table = Arc::make_mut(cluster.tables.entry(object.key.kind.clone()).or_default());
        let held = Held::new(Arc::clone(&object));
        let before = table.insert(Spot::of(&object.key), held.clone());
        self.note(&object.key, before, Some(held));
        object
    }

    /// Removes an object, at the next version.
    fn take(&mut self, key: &Key) -> Option<Arc<Stored>> {
        let table = Arc::make_mut(self.clusters.get_mut(&key.cluster)?.tables.get_mut(&key.kind)?);
        let before = table.remove(&Spot::of(key))?;
        self.version.0 += 1;
        let last = before.get().at(self.version);
        self.note(key, Some(before), None);
        Some(Arc::new(last))
    }

    /// What changed after a version, kind by kind, as far as it is remembered.
    pub fn changed_since(&self, version: Version) -> impl Iterator<Item = &Arc<Change>> {
        self.logs.values().flat_map(move |log| log.after(version))
    }

    /// Whether everything that happened after a version is remembered.
    pub fn remembers(&self, version: Version) -> bool {
        self.compacted <= version && self.logs.values().all(|log| log.floor() <= version)
    }

    /// Everything that happened to a kind after this version is remembered.
    fn floor(&self, kind: &KindId) -> Version {
        self.logs.get(kind).map_or(Version(0), Log::floor).max(self.compacted)
    }

    /// The same of what a watch asks for.
    fn floor_of(&self, kind: &KindId, cluster: Option<&ClusterId>) -> Version {
        let floor = |log: &Log| cluster.map_or_else(|| log.floor(), |cluster| log.floor_of(cluster));
        self.logs.get(kind).map_or(Version(0), floor).max(self.compacted)
    }

    fn note(&mut self, key: &Key, before: Option<Held>, after: Option<Held>) {
        let change = Arc::new(Change::new(self.version, key.clone(), before, after));
        self.keeping.note(&change);
        let json_bytes = change.json_bytes;
        self.logs.entry(key.kind.clone()).or_default().push(change, self.settings.log_limit);
        self.rest_after(key, json_bytes);
    }
}
