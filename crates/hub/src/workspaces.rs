//! A hub as kcp: many workspaces, each a small cluster without machines, with exports and bindings between them.
//!
//! What kcp's controllers do is done here with the write that asks for it: a workspace is ready, and a bound kind
//! served, when whoever asked reads again.

mod begin;
pub(crate) mod binding;
pub(crate) mod children;
mod claims;
pub(crate) mod convert;
pub(crate) mod export;
mod index;
mod kinds;
mod tree;
pub(crate) mod types;
mod view;
pub(crate) mod waiting;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use mailboat_machinery::{
    Kind, Kinds, ListRequest, Machine, Marks, Moment, Patch, Status, Stored, WriteOptions,
};
use mailboat_object::wire::Part;
use mailboat_object::{ClusterId, Key, KindId, Name, Version};
use serde_json::{Value, json};

use crate::catalog::BadCatalog;
use index::{Index, Reference};

pub(crate) use tree::{OWNER, kind as workspace_kind, logical_cluster, resolve, tenant_of};
pub use view::{Seen, View};

/// The workspace that all others stand in.
pub(crate) const ROOT: &str = "root";
const MANAGER: &str = "mailboat-hub";
/// How often what follows from a change is followed, before the rest waits for the next change.
const ROUNDS: usize = 8;

/// What all workspaces share, and what kcp's controllers do about them. It decides and stores nothing by itself: the
/// machine does, so that a simulation has the same workspaces as a server.
#[derive(Debug)]
pub struct Workspaces {
    /// The kinds that every workspace serves.
    universal: Arc<Kinds>,
    /// Bound kinds by the uid of their schema: a thousand workspaces share one.
    bound: Mutex<HashMap<String, Arc<Kind>>>,
    /// Who is bound to what.
    index: Arc<RwLock<Index>>,
    /// The marks that clusters have, each once.
    marks: Mutex<Vec<Weak<Marks>>>,
    /// How clients reach this server.
    url: String,
}

/// One round of what kcp's controllers do.
struct Round<'r, 'm> {
    workspaces: &'r Workspaces,
    machine: &'r mut Machine,
    moment: &'r mut Moment<'m>,
}

impl Workspaces {
    /// Workspaces that are reached at a URL. Nothing is known of any yet.
    pub fn new(url: String) -> Result<Self, BadCatalog> {
        Ok(Self {
            universal: kinds::universal()?,
            bound: Mutex::default(),
            index: Arc::default(),
            marks: Mutex::default(),
            url,
        })
    }

    /// Others with the same kinds, of which nothing is known yet.
    #[must_use]
    pub fn alike(&self) -> Self {
        Self {
            universal: Arc::clone(&self.universal),
            bound: Mutex::new(self.bound.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            index: Arc::default(),
            marks: Mutex::default(),
            url: self.url.clone(),
        }
    }

    fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bindings to an export, in all workspaces.
    fn bindings_of(&self, machine: &Machine, export: &Key) -> Vec<Key> {
        self.index().bindings_of(&references(machine, export))
    }

    /// Whether anybody is bound to an export.
    fn has_bindings(&self, machine: &Machine, export: &Key) -> bool {
        self.index().has_bindings(&references(machine, export))
    }

    /// The slices of an export, in all workspaces.
    fn slices_of(&self, machine: &Machine, export: &Key) -> Vec<Key> {
        self.index().slices_of(&references(machine, export))
    }

    fn url(&self) -> &str {
        &self.url
    }

    /// Lets every workspace that is stored serve its kinds again.
    pub fn serve(&self, machine: &mut Machine) {
        let clusters: Vec<ClusterId> = machine.clusters().cloned().collect();
        for cluster in &clusters {
            match machine.served_kinds(cluster) {
                Some(kinds) if !kinds.is_empty() => {
                    machine.serve(cluster, self.universal.values().cloned());
                }
                _ => machine.serve_exactly(cluster, &self.universal),
            }
        }
    }

    /// Follows what changed after a version, and what follows from that.
    pub fn follow(&self, machine: &mut Machine, since: Version, moment: &mut Moment<'_>) {
        self.follow_on(machine, since, moment);
        let first = Version(since.0 + 1);
        let first = (machine.version() >= first).then_some(first);
        self.index_mut().written(first, machine.shown());
    }

    /// Who has to be told from which version on nothing could be stored, and what was written never was.
    pub fn taken_back(&self) -> impl FnMut(Version) + Send + 'static {
        let index = Arc::clone(&self.index);
        move |from| index.write().unwrap_or_else(PoisonError::into_inner).take_back(from)
    }

    fn follow_on(&self, machine: &mut Machine, since: Version, moment: &mut Moment<'_>) {
        let mut since = since;
        for _ in 0..ROUNDS {
            let mut changed: BTreeMap<Key, Option<Arc<Stored>>> = BTreeMap::new();
            for change in machine.changed_since(since) {
                if kinds::is_followed(&change.key.kind) {
                    changed.insert(change.key.clone(), change.before());
                }
            }
            since = machine.version();
            if changed.is_empty() {
                return;
            }
            let mut round = Round { workspaces: self, machine, moment };
            for (key, before) in changed {
                round.follow(&key, before.as_deref());
            }
            if machine.version() == since {
                return;
            }
        }
    }

    /// Goes on with the workspaces and bindings of a cluster that are going away, and tells how much was done.
    pub fn tidy(&self, machine: &mut Machine, cluster: &ClusterId, moment: &mut Moment<'_>) -> usize {
        let before = machine.version();
        let mut round = Round { workspaces: self, machine, moment };
        for binding in round.all(cluster, &binding::kind()).into_iter().filter(|object| object.is_deleting())
        {
            round.follow_binding(&binding);
        }
        // A workspace that is being emptied waits in its parent.
        let emptying = self.index().emptying();
        for key in emptying {
            match round.machine.get(&key) {
                Ok(workspace) if workspace.is_deleting() => round.follow_workspace(&workspace),
                _ => {
                    self.index_mut().note_emptying(&key, false);
                }
            }
        }
        usize::try_from(machine.version().0 - before.0).unwrap_or(usize::MAX)
    }
}

impl Round<'_, '_> {
    fn follow(&mut self, key: &Key, before: Option<&Stored>) {
        let object = self.machine.get(key).ok();
        match (key.kind.resource(), object) {
            ("workspaces", Some(workspace)) => self.follow_workspace(&workspace),
            ("workspacetypes", Some(of)) => self.follow_type(&of),
            ("logicalclusters", Some(cluster)) => self.follow_initializing(&cluster),
            ("apibindings", Some(binding)) => {
                if before.is_none() {
                    self.workspaces.index_mut().note_binding(&binding, true);
                }
                self.follow_binding(&binding);
                if before.is_none_or(|before| differs(before, &binding)) {
                    self.follow_claims(&key.cluster);
                    self.follow_exports_of(&binding);
                }
            }
            ("apibindings", None) => {
                if let Some(binding) = before {
                    self.workspaces.index_mut().note_binding(binding, false);
                    self.follow_conflicts(&key.cluster);
                    self.follow_claims(&key.cluster);
                    self.follow_exports_of(binding);
                }
            }
            ("customresourcedefinitions", None) => self.follow_conflicts(&key.cluster),
            ("apiexports", Some(export)) => {
                self.follow_export(&export);
                self.follow_bindings_of(&export);
            }
            ("apiresourceschemas", _) => {
                let names =
                    |export: &Stored| export::schema_names(export.body()).contains(&key.name.to_string());
                for export in self.all(&key.cluster, &export::kind()) {
                    if names(&export) {
                        self.follow_bindings_of(&export);
                    }
                }
            }
            ("apiexportendpointslices", Some(slice)) => {
                self.workspaces.index_mut().note_slice(&slice, true);
                self.follow_slice(&slice);
            }
            ("apiexportendpointslices", None) => {
                if let Some(slice) = before {
                    self.workspaces.index_mut().note_slice(slice, false);
                }
            }
            _ => {}
        }
    }

    fn all(&self, cluster: &ClusterId, kind: &KindId) -> Vec<Arc<Stored>> {
        let request =
            ListRequest { cluster: Some(cluster.clone()), kind: kind.clone(), ..ListRequest::default() };
        self.machine.list(&request).map(|list| list.items).unwrap_or_default()
    }

    fn create(&mut self, key: &Key, body: Value) -> Result<(), Status> {
        if self.machine.get(key).is_ok() {
            return Ok(());
        }
        self.machine.create(key, body, &ours(Part::Whole), self.moment).map(drop)
    }

    /// Lays a patch over an object or its status. What changes nothing writes nothing, and costs little: what follows from a
    /// binding is looked at again after each write that followed from it.
    fn patch(&mut self, key: &Key, part: Part, patch: &Value) {
        if self.machine.get(key).is_ok_and(|object| says(object.body(), patch)) {
            return;
        }
        // Somebody may have been faster; then the next change is followed.
        let _ = self.machine.patch(key, Patch::Merge(patch), &ours(part), self.moment);
    }

    fn now(&self) -> String {
        mailboat_machinery::time::rfc3339(self.moment.now_seconds)
    }
}

/// Whether what a binding asks for, or whether it goes, differs: what is said of it in its status does not matter.
fn differs(before: &Stored, after: &Stored) -> bool {
    before.body()["spec"] != after.body()["spec"]
        || before.is_deleting() != after.is_deleting()
        || before.body()["status"]["phase"] != after.body()["status"]["phase"]
}

/// Whether an object says already what a merge patch would make it say.
fn says(present: &Value, patch: &Value) -> bool {
    match (present, patch) {
        (Value::Object(present), Value::Object(patch)) => patch.iter().all(|(name, wanted)| {
            present
                .get(name)
                .map_or_else(|| wanted.is_null(), |present| !wanted.is_null() && says(present, wanted))
        }),
        (present, wanted) => present == wanted,
    }
}

/// The names under which an export is referred to.
fn references(machine: &Machine, export: &Key) -> [Reference; 2] {
    let id = &export.cluster;
    let path = tree::path_of(machine, id).map_or_else(|| id.0.clone(), |path| Name::new(&path));
    let by_id = if *path == *id.0 { Name::EMPTY } else { id.0.clone() };
    [(path, export.name.clone()), (by_id, export.name.clone())]
}

fn ours(part: Part) -> WriteOptions {
    WriteOptions { manager: Name::new(MANAGER), part, ..WriteOptions::default() }
}

fn key(cluster: &ClusterId, kind: KindId, namespace: &str, name: &str) -> Key {
    Key { cluster: cluster.clone(), kind, namespace: Name::new(namespace), name: Name::new(name) }
}

/// Conditions that hold, each since it first did.
fn conditions(present: &Value, wanted: &[(&str, bool, &str, &str)], now: &str) -> Value {
    let former = present["status"]["conditions"].as_array();
    let mut out: Vec<Value> = wanted
        .iter()
        .map(|(what, holds, reason, message)| {
            let status = if *holds { "True" } else { "False" };
            let same = former
                .into_iter()
                .flatten()
                .find(|condition| condition["type"] == *what && condition["status"] == status);
            let since = same.map_or_else(|| json!(now), |condition| condition["lastTransitionTime"].clone());
            let mut condition = json!({ "type": what, "status": status, "lastTransitionTime": since });
            if !holds {
                condition["reason"] = (*reason).into();
                condition["message"] = (*message).into();
                condition["severity"] = "Error".into();
            }
            condition
        })
        .collect();
    // What sums up the others comes first, as in kcp.
    let place = |condition: &Value| {
        let what = condition["type"].as_str().unwrap_or_default();
        (what != "Ready", what.to_owned())
    };
    out.sort_by_key(place);
    out.into()
}

fn has_finalizer(object: &Stored, finalizer: &str) -> bool {
    object.finalizers().contains(&finalizer)
}

/// The finalizers of an object with one more, or without one.
fn finalizers(object: &Stored, add: Option<&str>, remove: Option<&str>) -> Value {
    let kept = object.finalizers().into_iter().filter(|name| Some(*name) != remove);
    let mut all: Vec<&str> = kept.collect();
    all.extend(add.filter(|name| !object.finalizers().contains(name)));
    if all.is_empty() { Value::Null } else { json!(all) }
}

impl Workspaces {
    fn cached(&self, uid: &str, make: impl FnOnce() -> Option<Kind>) -> Option<Arc<Kind>> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind) = bound.get(uid) {
            return Some(Arc::clone(kind));
        }
        let kind = Arc::new(make()?);
        bound.insert(uid.to_owned(), Arc::clone(&kind));
        Some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_that_changes_nothing_is_known() {
        let present = json!({ "spec": { "a": 1, "list": [1, { "b": 2 }] }, "status": { "phase": "Bound" } });
        for (patch, nothing) in [
            (json!({}), true),
            (json!({ "spec": { "a": 1 }, "status": { "phase": "Bound" } }), true),
            (json!({ "spec": { "list": [1, { "b": 2 }], "gone": null } }), true),
            (json!({ "spec": { "a": 2 } }), false),
            (json!({ "spec": { "a": null } }), false),
            (json!({ "spec": { "a": { "b": 1 } } }), false),
            (json!({ "spec": { "list": [1] } }), false),
            (json!({ "status": { "more": {} } }), false),
        ] {
            let mut patched = present.clone();
            mailboat_object::merge::merge(&mut patched, &patch);
            assert_eq!(patched == present, nothing, "{patch}");
            assert_eq!(says(&present, &patch), nothing, "{patch}");
        }
    }
}
