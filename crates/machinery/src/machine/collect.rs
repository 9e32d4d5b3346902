//! Garbage collection along owner references.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_object::wire::Propagation;
use mailboat_object::{ClusterId, Key, Name, Uid};
use serde_json::Value;

use super::delete::{DeleteOptions, FOREGROUND, ORPHAN, set_finalizers};
use super::write::drop_metadata;
use super::{Held, Machine};
use crate::kind::Kind;
use crate::object::Stored;
use crate::random::Moment;

/// How an owner looks to its dependents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// It is there.
    Solid,
    /// It waits for its dependents to go first.
    Waiting,
    /// There is no such object.
    Absent,
}

/// What has owners in a cluster.
struct Dependents {
    all: Vec<Dependent>,
    /// Which of them name an owner.
    by_owner: BTreeMap<Uid, Vec<usize>>,
}

/// An object, the uids of its owners, and whether each must wait for it.
struct Dependent {
    object: Arc<Stored>,
    owners: Vec<(Uid, bool)>,
}

impl Dependents {
    fn of<'o>(owned: impl Iterator<Item = &'o Held>) -> Self {
        let all: Vec<Dependent> = owned
            .map(|held| {
                let object = held.get();
                Dependent { owners: object.owners(), object }
            })
            .collect();
        let mut by_owner: BTreeMap<Uid, Vec<usize>> = BTreeMap::new();
        for (at, dependent) in all.iter().enumerate() {
            for (uid, _) in &dependent.owners {
                by_owner.entry(uid.clone()).or_default().push(at);
            }
        }
        Self { all, by_owner }
    }

    /// Those that name an owner.
    fn on(&self, owner: &Uid) -> impl Iterator<Item = &Dependent> {
        self.by_owner.get(owner).into_iter().flatten().filter_map(|at| self.all.get(*at))
    }
}

impl Machine {
    /// Does once what the garbage collector does in a cluster: deletes what has lost its owners, lets owners go
    /// that waited for their dependents, and frees dependents that are to be orphaned. Tells how many changes that
    /// made; 0 means that nothing is left to do.
    pub fn collect_garbage(&mut self, cluster: &ClusterId, moment: &mut Moment<'_>) -> usize {
        let Some(found) = self.clusters.get(cluster) else { return 0 };
        let held = || {
            let served = found.tables.iter().filter(|(kind, _)| found.kinds.contains_key(*kind));
            served.flat_map(|(_, table)| table.values())
        };
        let dependents = Dependents::of(held().filter(|object| object.is_owned()));
        let going: Vec<Arc<Stored>> = held().filter(|object| object.is_deleting()).map(Held::get).collect();
        let owner = |object: &&Held| dependents.by_owner.contains_key(object.uid());
        let by_uid: BTreeMap<Uid, Arc<Stored>> =
            held().filter(owner).map(|object| (object.uid().clone(), object.get())).collect();
        let before = self.version();
        for object in &going {
            self.let_go(object, &dependents);
        }
        for dependent in dependents.all.iter().filter(|dependent| !dependent.owners.is_empty()) {
            self.follow_owners(dependent, &by_uid, &dependents, moment);
        }
        usize::try_from(self.version().0 - before.0).unwrap_or(usize::MAX)
    }

    /// Whether each owner of an object stands where the object says, and is not going: then the garbage collector has
    /// nothing to do because of it. Whoever asks this of what was just written need not look through all that has owners.
    pub fn is_kept_by_owners(&self, object: &Stored) -> bool {
        let named = object.metadata()["ownerReferences"].as_array().into_iter().flatten();
        named.into_iter().all(|owner| self.stands(object, owner).unwrap_or(false))
    }

    fn stands(&self, object: &Stored, owner: &Value) -> Option<bool> {
        let cluster = &object.key.cluster;
        let (group, _) = owner["apiVersion"].as_str()?.rsplit_once('/').unwrap_or_default();
        let (kind_name, name) = (owner["kind"].as_str()?, owner["name"].as_str()?);
        let named = |kind: &&Arc<Kind>| *kind.name == *kind_name && kind.id.group() == group;
        let kind = self.kinds(cluster).filter(|kind| kind.kept_as.is_none()).find(named)?;
        let namespace = if kind.namespaced { object.key.namespace.clone() } else { Name::EMPTY };
        let key = Key { cluster: cluster.clone(), kind: kind.id.clone(), namespace, name: Name::new(name) };
        let found = self.held(&key)?;
        Some(*found.uid() == Uid::parse(owner["uid"].as_str()?) && !found.is_deleting())
    }

    /// An owner that is being deleted: its dependents are freed, or have to be gone before it.
    fn let_go(&mut self, owner: &Arc<Stored>, dependents: &Dependents) {
        let finalizers = owner.finalizers();
        if finalizers.contains(&ORPHAN) {
            for dependent in dependents.on(&owner.uid) {
                self.drop_owners(&dependent.object, &|uid| *uid == owner.uid);
            }
            self.drop_finalizer(owner, ORPHAN);
        } else if finalizers.contains(&FOREGROUND) {
            let blocks = |dependent: &Dependent| dependent.owners.contains(&(owner.uid.clone(), true));
            if !dependents.on(&owner.uid).any(blocks) {
                self.drop_finalizer(owner, FOREGROUND);
            }
        }
    }

    /// A dependent: it stays as long as one owner is solid, and lets go of the others.
    fn follow_owners(
        &mut self,
        dependent: &Dependent,
        by_uid: &BTreeMap<Uid, Arc<Stored>>,
        dependents: &Dependents,
        moment: &mut Moment<'_>,
    ) {
        let Dependent { object, owners } = dependent;
        let state = |uid: &Uid| match by_uid.get(uid) {
            // An owner in another namespace is none.
            Some(owner) if !owner.key.namespace.is_empty() && owner.key.namespace != object.key.namespace => {
                Owner::Absent
            }
            Some(owner) if owner.is_deleting() && owner.finalizers().contains(&FOREGROUND) => Owner::Waiting,
            Some(_) => Owner::Solid,
            None => Owner::Absent,
        };
        if owners.iter().any(|(uid, _)| state(uid) == Owner::Solid) {
            if owners.iter().any(|(uid, _)| state(uid) != Owner::Solid) {
                self.drop_owners(object, &|uid| state(uid) != Owner::Solid);
            }
            return;
        }
        if object.is_deleting() {
            return;
        }
        let waiting = owners.iter().any(|(uid, _)| state(uid) == Owner::Waiting);
        let has_dependents = dependents.on(&object.uid).next().is_some();
        let propagation = if waiting && has_dependents { Some(Propagation::Foreground) } else { None };
        let options =
            DeleteOptions { uid: Some(object.uid.clone()), propagation, ..DeleteOptions::default() };
        // It may have gone meanwhile, with something else that was deleted in this round.
        let _ = self.delete(&object.key, &options, moment);
    }

    fn drop_owners(&mut self, object: &Arc<Stored>, lost: &dyn Fn(&Uid) -> bool) {
        let Some(live) = self.find(&object.key).filter(|live| live.uid == object.uid) else {
            return;
        };
        let mut body = live.body().clone();
        let kept: Vec<Value> = body["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|owner| !lost(&Uid::parse(owner["uid"].as_str().unwrap_or_default())))
            .cloned()
            .collect();
        if kept.is_empty() {
            drop_metadata(&mut body, "ownerReferences");
        } else {
            body["metadata"]["ownerReferences"] = Value::Array(kept);
        }
        if body != *live.body() {
            self.put(live.with_body(body));
        }
    }

    /// Takes one finalizer off an object that is being deleted; the last one takes the object with it.
    fn drop_finalizer(&mut self, object: &Arc<Stored>, finalizer: &str) {
        let Some(live) = self.find(&object.key).filter(|live| live.uid == object.uid) else {
            return;
        };
        let kept: Vec<String> =
            live.finalizers().into_iter().filter(|name| *name != finalizer).map(str::to_owned).collect();
        if kept.is_empty() {
            self.take(&live.key);
            return;
        }
        let mut body = live.body().clone();
        set_finalizers(&mut body, &kept);
        self.put(live.with_body(body));
    }
}
