//! The SyncerConfig `the-one` of a mailbox: everything that its edge's syncer is to carry, named one by one.
//!
//! It is sorted and says nothing twice, so that the same content is the same object. Where it would outgrow an
//! object it is spread over further SyncerConfigs, which a syncer joins; a change then rewrites one of them.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_api::edge::{
    ClusterScopeEntry, NamespaceScope, NamespacedObjectsEntry, ObjectsInNamespace, SyncerConfigSpec,
    UpsyncEntry, UpsyncSet,
};
use mailboat_api::names::{group, object as fixed};
use mailboat_engine::want::Body;
use mailboat_object::digest::digest_of_value;
use mailboat_object::key::{KindId, Name};
use serde_json::{Value, json};

use crate::body::body;
use crate::names::numbered;
use crate::shards::{Shard, Shards};

/// The most bytes of entries in one SyncerConfig: a third of what a server takes, since its status, which lists
/// what is not delivered, stands in the same object.
pub const LIMIT_BYTES: usize = 512 << 10;

/// The SyncerConfigs of one mailbox.
#[derive(Clone, Debug)]
pub struct TheOne {
    entries: Shards<Entry, ()>,
    upsync: BTreeSet<UpsyncSet>,
    configs: BTreeMap<Shard, Config>,
}

/// One SyncerConfig as it should stand in the mailbox.
#[derive(Clone, Debug)]
pub struct Config {
    /// `the-one`, or the name of a further one.
    pub name: Name,
    /// The object.
    pub body: Body,
}

/// An object that goes to the edge, by the kind that it has there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Carried {
    /// Group and resource, natured.
    pub kind: KindId,
    /// The version without the group.
    pub version: Name,
    /// The namespace; empty for what is cluster-scoped.
    pub namespace: Name,
    /// The object's name.
    pub name: Name,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Entry {
    Object(Carried),
    /// Boxed, because nearly all entries are objects: there is one for each copy in each mailbox.
    Upsync(Box<UpsyncSet>),
}

impl Default for TheOne {
    fn default() -> Self {
        Self::new(LIMIT_BYTES)
    }
}

impl TheOne {
    /// An empty one whose parts hold at most so many bytes of entries.
    pub fn new(limit_bytes: usize) -> Self {
        Self { entries: Shards::new(limit_bytes), upsync: BTreeSet::new(), configs: BTreeMap::new() }
    }

    /// An object is to be carried.
    pub fn carry(&mut self, object: Carried) {
        self.insert(Entry::Object(object));
    }

    /// An object is no longer to be carried.
    pub fn drop(&mut self, object: &Carried) {
        self.remove(&Entry::Object(object.clone()));
    }

    /// What is brought up, by all placements that come here.
    pub fn set_upsync<'s>(&mut self, sets: impl IntoIterator<Item = &'s UpsyncSet>) {
        let merged = merge_upsync(sets);
        let before = std::mem::replace(&mut self.upsync, merged.clone());
        for gone in before.difference(&merged) {
            self.remove(&Entry::Upsync(Box::new(gone.clone())));
        }
        for new in merged.difference(&before) {
            self.insert(Entry::Upsync(Box::new(new.clone())));
        }
    }

    /// The SyncerConfigs as they should stand in the mailbox. There is always `the-one`: the syncer's heartbeat
    /// stands in its status.
    pub fn configs(&mut self) -> impl Iterator<Item = &Config> {
        for shard in self.entries.take_changed() {
            match self.entries.part(shard) {
                None => drop(self.configs.remove(&shard)),
                Some(entries) => {
                    let spec = spec(entries.map(|(entry, ())| entry));
                    let name = name(shard);
                    let body = config(&name, &spec);
                    self.configs.insert(shard, Config { name: Name::new(&name), body });
                }
            }
        }
        self.configs.values()
    }

    /// The one SyncerConfig that names everything, if there is but one and it was made since the last change.
    pub fn only(&self) -> Option<&Config> {
        let all = !self.entries.has_changed() && self.configs.len() == 1;
        self.configs.values().next().filter(|_| all)
    }

    /// Whether what it names was spread over several when it was last made.
    pub fn is_several(&self) -> bool {
        self.configs.len() > 1
    }

    fn insert(&mut self, entry: Entry) {
        let (hash, weight) = (entry.hash(), entry.weight_bytes());
        self.entries.insert(entry, hash, weight, ());
    }

    fn remove(&mut self, entry: &Entry) {
        self.entries.remove(entry, entry.hash());
    }
}

impl Entry {
    fn hash(&self) -> u64 {
        let identity = match self {
            Self::Object(object) => json!([
                object.kind.to_string(),
                object.version.as_str(),
                object.namespace.as_str(),
                object.name.as_str()
            ]),
            Self::Upsync(set) => json!(set),
        };
        digest_of_value(&identity).bits()
    }

    /// The most bytes that it can take, as if it shared its kind and namespace with no other.
    fn weight_bytes(&self) -> usize {
        /// What stands around the names: braces, quotes and the names of fields.
        const AROUND: usize = 160;
        match self {
            Self::Object(object) => {
                let kind = object.kind.group().len() + object.kind.resource().len() + object.version.len();
                AROUND + kind + object.namespace.len() + object.name.len()
            }
            Self::Upsync(set) => json!(set).to_string().len() + 1,
        }
    }
}

/// Upsync sets without those that others say already. Lists are sorted, and a `*` stands alone.
pub fn merge_upsync<'s>(sets: impl IntoIterator<Item = &'s UpsyncSet>) -> BTreeSet<UpsyncSet> {
    let tidy = |names: &[String]| -> Vec<String> {
        if names.iter().any(|name| name == "*") {
            return vec!["*".to_owned()];
        }
        names.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
    };
    let all: BTreeSet<UpsyncSet> = sets
        .into_iter()
        .filter(|set| !(set.resources.is_empty() || set.names.is_empty()))
        .map(|set| UpsyncSet {
            api_group: set.api_group.clone(),
            resources: tidy(&set.resources),
            namespaces: tidy(&set.namespaces),
            names: tidy(&set.names),
        })
        .collect();
    let said_by_another = |set: &UpsyncSet| all.iter().any(|other| other != set && includes(other, set));
    all.iter().filter(|set| !said_by_another(set)).cloned().collect()
}

fn includes(wide: &UpsyncSet, narrow: &UpsyncSet) -> bool {
    let all_of = |wide: &[String], narrow: &[String]| {
        wide.iter().any(|name| name == "*") || narrow.iter().all(|name| wide.contains(name))
    };
    wide.api_group == narrow.api_group
        && all_of(&wide.resources, &narrow.resources)
        && all_of(&wide.namespaces, &narrow.namespaces)
        && all_of(&wide.names, &narrow.names)
}

fn name(shard: Shard) -> String {
    if shard.is_first() { fixed::THE_ONE.to_owned() } else { numbered(fixed::THE_ONE, &shard.to_string()) }
}

/// Entries come sorted, so that those of one kind and namespace follow each other.
fn spec<'e>(entries: impl Iterator<Item = &'e Entry>) -> SyncerConfigSpec {
    let mut spec =
        SyncerConfigSpec { namespace_scope: Some(NamespaceScope::default()), ..SyncerConfigSpec::default() };
    for entry in entries {
        match entry {
            Entry::Upsync(set) => {
                spec.upsync.push(UpsyncEntry { set: (**set).clone(), ..UpsyncEntry::default() });
            }
            Entry::Object(object) if object.namespace.is_empty() => add_cluster_scoped(&mut spec, object),
            Entry::Object(object) => add_namespaced(&mut spec, object),
        }
    }
    spec
}

fn add_cluster_scoped(spec: &mut SyncerConfigSpec, object: &Carried) {
    let (group, resource, version) = (object.kind.group(), object.kind.resource(), object.version.as_str());
    let same = |entry: &&mut ClusterScopeEntry| {
        (entry.group.as_str(), entry.resource.as_str(), entry.api_version.as_str())
            == (group, resource, version)
    };
    if let Some(entry) = spec.cluster_scope.last_mut().filter(same) {
        entry.objects.push(object.name.to_string());
        return;
    }
    spec.cluster_scope.push(ClusterScopeEntry {
        group: group.to_owned(),
        resource: resource.to_owned(),
        api_version: version.to_owned(),
        objects: vec![object.name.to_string()],
        ..ClusterScopeEntry::default()
    });
}

fn add_namespaced(spec: &mut SyncerConfigSpec, object: &Carried) {
    let (group, resource, version) = (object.kind.group(), object.kind.resource(), object.version.as_str());
    let same = |entry: &&mut NamespacedObjectsEntry| {
        (entry.group.as_str(), entry.resource.as_str(), entry.api_version.as_str())
            == (group, resource, version)
    };
    let in_namespace = || ObjectsInNamespace {
        namespace: object.namespace.to_string(),
        names: vec![object.name.to_string()],
    };
    let Some(entry) = spec.namespaced_objects.last_mut().filter(same) else {
        spec.namespaced_objects.push(NamespacedObjectsEntry {
            group: group.to_owned(),
            resource: resource.to_owned(),
            api_version: version.to_owned(),
            objects_by_namespace: vec![in_namespace()],
            ..NamespacedObjectsEntry::default()
        });
        return;
    };
    match entry.objects_by_namespace.last_mut().filter(|last| last.namespace == object.namespace.as_str()) {
        Some(last) => last.names.push(object.name.to_string()),
        None => entry.objects_by_namespace.push(in_namespace()),
    }
}

fn config(name: &str, spec: &SyncerConfigSpec) -> Body {
    let object: Value = json!({
        "apiVersion": format!("{}/{}", group::EDGE, group::EDGE_VERSION),
        "kind": "SyncerConfig",
        "metadata": { "name": name },
        "spec": spec,
    });
    body(&object)
}

#[cfg(test)]
mod tests;
