//! What is true, beside the servers: what users left as they wanted it, and so what should be where, at every moment.
//!
//! What goes with a definition, a binding or a workspace nobody meant to go: it stays true. A process knows the world as
//! of some moment in the past, and may rightly act on that. So each state of what is wanted is kept with its time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_machinery::{Machine, Stored};
use mailboat_object::key::{ClusterId, Key, KindId, Name, Version};
use serde_json::Value;

use crate::kinds;

/// What whoever changed a server meant to be gone.
pub(crate) enum Meant<'a> {
    /// Nothing of what went.
    Nothing,
    /// This object, and nothing that went along.
    This(&'a Key),
    /// All that went.
    All,
}

/// An edge, its mailbox and what stands for it in an inventory.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) cluster: ClusterId,
    pub(crate) mailbox: Option<ClusterId>,
    pub(crate) target: Option<Key>,
}

/// A source, and the cluster in which a copy of it should stand.
pub(crate) type Want = (Key, ClusterId);

/// What is wanted from some time on.
#[derive(Clone)]
struct State {
    since: u64,
    wanted: Arc<BTreeSet<Want>>,
    /// What nobody asks for any more, and nobody wants to have taken away: it stands where an edge was retired.
    stays: Arc<BTreeSet<Want>>,
}

/// All that is true.
#[derive(Clone, Default)]
pub(crate) struct Truth {
    pub(crate) edges: Vec<Edge>,
    /// The workload and inventory workspaces, and that of the provider, if there is a center.
    pub(crate) workload: Option<ClusterId>,
    pub(crate) inventory: Option<ClusterId>,
    pub(crate) provider: Option<ClusterId>,
    /// Cargo, configuration and definitions, as their users left them.
    objects: BTreeMap<Key, Arc<Stored>>,
    /// Those that are gone and that nobody meant to go, and since when.
    lost: BTreeMap<Key, u64>,
    /// Configuration that some process was shown. What was lost before that nobody can know of.
    shown: BTreeSet<Key>,
    /// Those of them that a restored backup lost.
    unrestored: BTreeSet<Key>,
    dying: BTreeSet<ClusterId>,
    /// Where placements went until the SyncTarget there was deleted: what they select stays there.
    departed: BTreeMap<Key, BTreeSet<ClusterId>>,
    /// Every state of what is wanted, and since when.
    history: Vec<State>,
    /// What users made at edges, by key: its uid, and the value that they gave it.
    pub(crate) foreign: BTreeMap<Key, (String, u64)>,
}

impl Truth {
    /// What changed on a server since a version becomes true.
    pub(crate) fn learn(&mut self, now: u64, machine: &Machine, since: Version, meant: &Meant<'_>) {
        let mut changed: Vec<_> = machine.changed_since(since).collect();
        changed.sort_by_key(|change| change.version);
        let mut matters = false;
        for change in changed {
            let key = &change.key;
            if key.kind == kinds::workspaces() {
                self.follow_workspace(change.after().as_deref());
                matters = true;
            }
            if !(kinds::is_cargo(&kinds::natured(&key.kind))
                || kinds::configures(&key.kind)
                || kinds::natured(&key.kind) == kinds::definitions())
            {
                continue;
            }
            matters = true;
            let deliberate = match meant {
                Meant::All => true,
                Meant::Nothing => false,
                Meant::This(this) => *this == key,
            };
            let deliberate = deliberate && !self.is_dying(&key.cluster) && !self.is_lost(key);
            if deliberate && change.after().is_none_or(|after| after.is_deleting()) {
                let of = |edge: &Edge| edge.target.as_ref() == Some(key);
                let retired = self.edges.iter().position(of).and_then(|edge| u8::try_from(edge).ok());
                if let Some(edge) = retired {
                    self.retires(edge);
                }
            }
            match change.after() {
                Some(object) if !object.is_deleting() => {
                    self.lost.remove(key);
                    if self.objects.get(key).is_none_or(|known| known.uid != object.uid) {
                        self.shown.remove(key);
                    }
                    self.objects.insert(key.clone(), object);
                }
                Some(object) if deliberate => drop(self.objects.insert(key.clone(), object)),
                None if deliberate => drop(self.objects.remove(key)),
                Some(_) | None => {
                    if self.objects.get(key).is_some_and(|known| !known.is_deleting()) {
                        self.lost.entry(key.clone()).or_insert(now);
                    } else {
                        self.objects.remove(key);
                    }
                }
            }
            if change.after().is_none() {
                self.foreign.remove(key);
            }
        }
        if matters {
            self.recount(now);
        }
    }

    /// The center's server is as a backup says. What was made there since is lost, what was changed or deleted is back.
    pub(crate) fn restored(&mut self, now: u64, backup: &Self) {
        let edges: BTreeSet<&ClusterId> = self.edges.iter().map(|edge| &edge.cluster).collect();
        let at_edge = |key: &Key| edges.contains(&key.cluster);
        let mut objects = backup.objects.clone();
        let mut lost = backup.lost.clone();
        objects.retain(|key, _| !at_edge(key));
        for (key, object) in std::mem::take(&mut self.objects) {
            if at_edge(&key) {
                objects.insert(key, object);
            } else if !objects.contains_key(&key) && !object.is_deleting() {
                lost.entry(key.clone()).or_insert(now);
                self.unrestored.insert(key.clone());
                objects.insert(key, object);
            }
        }
        lost.extend(std::mem::take(&mut self.lost).into_iter().filter(|(key, _)| at_edge(key)));
        (self.objects, self.lost) = (objects, lost);
        self.dying.clone_from(&backup.dying);
        self.departed.clone_from(&backup.departed);
        self.recount(now);
    }

    /// Whether something may be missing because a restored backup lost it, or what asked for it.
    pub(crate) fn is_unrestored(&self, source: &Key) -> bool {
        let asks = |key: &Key| kinds::configures(&key.kind);
        self.unrestored.contains(source) || self.unrestored.iter().any(asks)
    }

    /// A workspace that is being deleted takes along whatever is in it, and nobody means that.
    fn follow_workspace(&mut self, after: Option<&Stored>) {
        if let Some(workspace) = after.filter(|workspace| workspace.is_deleting())
            && let Some(cluster) = workspace.body()["spec"]["cluster"].as_str()
        {
            self.dying.insert(ClusterId::new(cluster));
        }
        // The first mailbox of an edge is the one that its syncer was given.
        if let Some(workspace) = after
            && let Some(cluster) = workspace.body()["spec"]["cluster"].as_str()
            && let Some((_, uid)) = workspace.key.name.split_once("-mb-")
        {
            let edge = self.edges.iter_mut().find(|edge| edge.cluster.0.strip_prefix("edge-") == Some(uid));
            if let Some(edge) = edge {
                edge.mailbox.get_or_insert(ClusterId::new(cluster));
            }
        }
    }

    pub(crate) fn is_dying(&self, cluster: &ClusterId) -> bool {
        self.dying.contains(cluster)
    }

    /// Whether nobody meant an object to go, and it is gone.
    pub(crate) fn is_lost(&self, key: &Key) -> bool {
        self.lost.contains_key(key)
    }

    /// The workspaces in which users keep configuration, or the center does.
    pub(crate) fn configured(&self) -> BTreeSet<ClusterId> {
        let mailboxes = self.edges.iter().filter_map(|edge| edge.mailbox.as_ref());
        mailboxes.chain(&self.workload).chain(&self.inventory).cloned().collect()
    }

    /// A process was shown the configuration of a kind in these clusters.
    pub(crate) fn shows(&mut self, kind: &KindId, clusters: &BTreeSet<ClusterId>) {
        let here = |key: &&Key| key.kind == *kind && clusters.contains(&key.cluster);
        self.shown
            .extend(self.objects.keys().filter(here).filter(|key| !self.lost.contains_key(key)).cloned());
    }

    /// A process was shown one object, which is there.
    pub(crate) fn shows_one(&mut self, key: &Key) {
        self.shown.insert(key.clone());
    }

    /// The cargo in a workspace that nobody meant to go, and that is gone.
    pub(crate) fn lost_cargo(&self, cluster: &ClusterId) -> Vec<Key> {
        let here = |key: &&Key| key.cluster == *cluster && kinds::is_cargo(&key.kind);
        self.lost.keys().filter(here).cloned().collect()
    }

    /// Somebody says that what is lost is not wanted any more.
    pub(crate) fn give_up(&mut self, now: u64, key: &Key) {
        if self.lost.remove(key).is_some() {
            self.objects.remove(key);
            self.recount(now);
        }
    }

    /// Since when configuration is lost in a cluster, or anywhere.
    pub(crate) fn configuration_lost(&self, cluster: Option<&ClusterId>) -> Option<u64> {
        let here = |key: &Key| cluster.is_none_or(|cluster| key.cluster == *cluster);
        let lost = self.lost.iter().filter(|(key, _)| kinds::configures(&key.kind) && here(key));
        lost.map(|(_, since)| *since).min()
    }

    /// An edge is about to lose its SyncTarget, and not what was placed there.
    pub(crate) fn retires(&mut self, edge: u8) {
        let mailbox = self.edges.get(usize::from(edge)).and_then(|edge| edge.mailbox.clone());
        let Some(mailbox) = mailbox else { return };
        let placements = self.objects.values().filter(|one| one.key.kind == kinds::edge("edgeplacements"));
        let went: Vec<Key> = placements
            .filter(|placement| self.destinations(&placement.body()["spec"]).any(|one| *one == mailbox))
            .map(|placement| placement.key.clone())
            .collect();
        for placement in went {
            self.departed.entry(placement).or_default().insert(mailbox.clone());
        }
    }

    /// What edges there are has changed.
    pub(crate) fn recount(&mut self, now: u64) {
        let (wanted, stays) = self.count();
        let same = |last: &State| *last.wanted == wanted && *last.stays == stays;
        if !self.history.last().is_some_and(same) {
            self.history.push(State { since: now, wanted: Arc::new(wanted), stays: Arc::new(stays) });
        }
    }

    /// What is wanted now.
    pub(crate) fn wanted(&self) -> Arc<BTreeSet<Want>> {
        self.history.last().map(|state| Arc::clone(&state.wanted)).unwrap_or_default()
    }

    /// Whether something was to go at some moment since this time.
    pub(crate) fn was_unwanted_since(&self, since: u64, want: &Want) -> bool {
        let first = self.history.partition_point(|state| state.since <= since).saturating_sub(1);
        self.history.is_empty()
            || since < self.history.first().map_or(0, |state| state.since)
            || self
                .history
                .iter()
                .skip(first)
                .any(|state| !state.wanted.contains(want) && !state.stays.contains(want))
    }

    fn count(&self) -> (BTreeSet<Want>, BTreeSet<Want>) {
        let (mut wanted, mut stays) = (BTreeSet::new(), BTreeSet::new());
        for edge in &self.edges {
            if let Some(mailbox) = &edge.mailbox {
                self.carried(mailbox, &edge.cluster, &mut wanted);
                self.brought_up(mailbox, &edge.cluster, &mut wanted);
            }
        }
        self.placed(&mut wanted, |placement| self.destinations(&placement.body()["spec"]).collect());
        self.placed(&mut stays, |placement| {
            self.departed.get(&placement.key).into_iter().flatten().collect()
        });
        // A mailbox is there as long as its SyncTarget is.
        let targets = self.edges.iter().filter_map(|edge| self.objects.get(edge.target.as_ref()?));
        for target in targets.filter(|target| !target.is_deleting()) {
            wanted.extend(self.provider.iter().map(|provider| (target.key.clone(), provider.clone())));
        }
        (wanted, stays)
    }

    fn of<'a>(&'a self, cluster: &'a ClusterId, kind: &'a KindId) -> impl Iterator<Item = &'a Arc<Stored>> {
        let from =
            Key { cluster: cluster.clone(), kind: kind.clone(), namespace: Name::EMPTY, name: Name::EMPTY };
        let range = self.objects.range(from..);
        range
            .take_while(move |(key, _)| key.cluster == *cluster && key.kind == *kind)
            .filter(|(key, _)| self.is_knowable(key))
            .map(|(_, object)| object)
    }

    /// Whether configuration is there, or was shown to somebody before it was lost.
    fn is_knowable(&self, key: &Key) -> bool {
        !self.lost.contains_key(key) || self.shown.contains(key)
    }

    /// What the configuration in a mailbox wants at the edge.
    fn carried(&self, mailbox: &ClusterId, edge: &ClusterId, wanted: &mut BTreeSet<Want>) {
        let entries: Vec<Entry> = self
            .of(mailbox, &kinds::edge("syncerconfigs"))
            .flat_map(|config| of_syncer_config(&config.body()["spec"]))
            .chain(
                self.of(mailbox, &kinds::edge("edgesyncconfigs"))
                    .flat_map(|config| of_edge_sync_config(&config.body()["spec"])),
            )
            .collect();
        for key in self.objects.keys().filter(|key| key.cluster == *mailbox && !kinds::comes_up(key)) {
            let kind = kinds::natured(&key.kind);
            if entries.iter().any(|entry| entry.means(&kind, key)) {
                wanted.insert((key.clone(), edge.clone()));
            }
        }
    }

    /// What the configuration in a mailbox wants to have from the edge.
    fn brought_up(&self, mailbox: &ClusterId, edge: &ClusterId, wanted: &mut BTreeSet<Want>) {
        for config in self.of(mailbox, &kinds::edge("syncerconfigs")) {
            for set in config.body()["spec"]["upsync"].as_array().into_iter().flatten() {
                let means = |key: &&Key| {
                    set["apiGroup"] == *key.kind.group()
                        && texts(&set["resources"]).any(|resource| resource == key.kind.resource())
                        && texts(&set["names"]).any(|name| *name == *key.name)
                };
                let named = self.objects.keys().filter(|key| key.cluster == *edge).filter(means);
                wanted.extend(named.map(|key| (key.clone(), mailbox.clone())));
            }
        }
    }

    /// What placements want in the mailboxes that each goes to.
    fn placed<'t>(
        &'t self,
        wanted: &mut BTreeSet<Want>,
        goes_to: impl Fn(&'t Stored) -> BTreeSet<&'t ClusterId>,
    ) {
        let placements: Vec<&Arc<Stored>> = self
            .objects
            .values()
            .filter(|object| object.key.kind == kinds::edge("edgeplacements"))
            .filter(|object| self.is_knowable(&object.key))
            .collect();
        for placement in placements.into_iter().filter(|placement| !placement.is_deleting()) {
            let spec = &placement.body()["spec"];
            let mailboxes = goes_to(placement);
            let home = &placement.key.cluster;
            for object in self.objects.values().filter(|object| object.key.cluster == *home) {
                let tests = spec["downsync"].as_array().into_iter().flatten();
                let cargo = kinds::is_cargo(&object.key.kind);
                if !cargo || !tests.into_iter().any(|test| tests_true(test, object)) {
                    continue;
                }
                for mailbox in &mailboxes {
                    wanted.insert((object.key.clone(), (*mailbox).clone()));
                    // What defines a kind goes along.
                    let defined = object.key.kind.to_string();
                    for definition in [kinds::definitions(), kinds::definitions_kept()] {
                        let definition = kinds::key(home, definition, &defined);
                        if self.objects.contains_key(&definition) {
                            wanted.insert((definition, (*mailbox).clone()));
                        }
                    }
                }
            }
        }
    }

    fn destinations<'a>(&'a self, spec: &'a Value) -> impl Iterator<Item = &'a ClusterId> {
        let chosen = move |location: &&Arc<Stored>| {
            let mut selectors = spec["locationSelectors"].as_array().into_iter().flatten();
            selectors.any(|selector| matches(&selector["matchLabels"], location))
        };
        let locations =
            self.objects.values().filter(|object| object.key.kind == kinds::edge("locations")).filter(chosen);
        locations.flat_map(move |location| {
            let selector = &location.body()["spec"]["instanceSelector"]["matchLabels"];
            self.edges.iter().filter_map(move |edge| {
                let target = self.objects.get(edge.target.as_ref()?)?;
                // In scripts, a time to leave is past.
                if target.body()["spec"]["evictAfter"].is_string() {
                    return None;
                }
                let here = target.key.cluster == location.key.cluster && matches(selector, target);
                edge.mailbox.as_ref().filter(|_| here)
            })
        })
    }
}

/// What one entry of a syncer's configuration means.
struct Entry {
    kind: KindId,
    /// None: whatever is not in a namespace.
    namespace: Option<String>,
    name: String,
}

impl Entry {
    fn means(&self, kind: &KindId, key: &Key) -> bool {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        self.kind == *kind && *key.namespace == *namespace && (self.name == "*" || *key.name == *self.name)
    }
}

fn texts(value: &Value) -> impl Iterator<Item = String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn of_syncer_config(spec: &Value) -> Vec<Entry> {
    let kind = |entry: &Value| KindId::new(&text(&entry["group"]), &text(&entry["resource"]));
    let mut entries = Vec::new();
    for entry in spec["namespacedObjects"].as_array().into_iter().flatten() {
        for inside in entry["objectsByNamespace"].as_array().into_iter().flatten() {
            entries.extend(texts(&inside["names"]).map(|name| Entry {
                kind: kind(entry),
                namespace: Some(text(&inside["namespace"])),
                name,
            }));
        }
    }
    for entry in spec["clusterScope"].as_array().into_iter().flatten() {
        entries.extend(texts(&entry["objects"]).map(|name| Entry {
            kind: kind(entry),
            namespace: None,
            name,
        }));
    }
    let scope = &spec["namespaceScope"];
    for namespace in texts(&scope["namespaces"]) {
        entries.extend(scope["resources"].as_array().into_iter().flatten().map(|entry| Entry {
            kind: kind(entry),
            namespace: Some(namespace.clone()),
            name: "*".to_owned(),
        }));
    }
    entries
}

fn of_edge_sync_config(spec: &Value) -> Vec<Entry> {
    let kind = |entry: &Value| match entry["kind"].as_str() {
        Some("Boat") => kinds::boats(),
        _ => kinds::configmaps(),
    };
    let entries = spec["downSyncedResources"].as_array().into_iter().flatten();
    let entry = |entry: &Value| Entry {
        kind: kind(entry),
        namespace: Some(text(&entry["namespace"])),
        name: text(&entry["name"]),
    };
    entries.map(entry).collect()
}

/// Whether an object has all these labels.
fn matches(labels: &Value, object: &Stored) -> bool {
    let own = &object.metadata()["labels"];
    labels.as_object().is_none_or(|labels| labels.iter().all(|(name, value)| own[name] == *value))
}

fn tests_true(test: &Value, object: &Stored) -> bool {
    let key = &object.key;
    test["apiGroup"] == *key.kind.group()
        && texts(&test["resources"]).any(|resource| resource == key.kind.resource())
        && texts(&test["namespaces"]).any(|namespace| *namespace == *key.namespace)
        && test["labelSelectors"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|selector| matches(&selector["matchLabels"], object))
}
