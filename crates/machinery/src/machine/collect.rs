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

/// How many changes are made in one round: others wait as long as it takes, and the next round goes on.
const CHANGES_AT_ONCE: usize = 500;

/// An object that names owners: their uids, and whether each must wait for it.
struct Dependent {
    object: Arc<Stored>,
    owners: Vec<(Uid, bool)>,
}

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
        let dependents: Vec<Arc<Stored>> = held().filter(|object| object.is_owned()).map(Held::get).collect();
        let going: Vec<Arc<Stored>> = held().filter(|object| object.is_deleting()).map(Held::get).collect();
        let dependents: Vec<Dependent> =
            dependents.into_iter().map(|object| Dependent { owners: owners(&object), object }).collect();
        let mut owned: BTreeMap<&Uid, Vec<&Dependent>> = BTreeMap::new();
        for dependent in &dependents {
            for (uid, _) in &dependent.owners {
                owned.entry(uid).or_default().push(dependent);
            }
        }
        let owner = |object: &&Held| owned.contains_key(object.uid());
        let by_uid: BTreeMap<Uid, Arc<Stored>> =
            held().filter(owner).map(|object| (object.uid().clone(), object.get())).collect();
        let before = self.version();
        let changes = |machine: &Self| usize::try_from(machine.version().0 - before.0).unwrap_or(usize::MAX);
        for object in &going {
            self.let_go(object, owned.get(&object.uid).map_or(&[][..], Vec::as_slice));
            if changes(self) >= CHANGES_AT_ONCE {
                return changes(self);
            }
        }
        for dependent in dependents.iter().filter(|dependent| !dependent.owners.is_empty()) {
            self.follow_owners(dependent, &by_uid, owned.contains_key(&dependent.object.uid), moment);
            if changes(self) >= CHANGES_AT_ONCE {
                break;
            }
        }
        changes(self)
    }

    /// Whether each owner of an object stands where the object says, and is not going: then the garbage collector has
    /// nothing to do because of it. Whoever asks this of what was just written need not look through all that has owners.
    pub fn is_kept_by_owners(&self, object: &Stored) -> bool {
        let owners = object.owner_references();
        owners.as_array().into_iter().flatten().all(|owner| self.stands(object, owner).unwrap_or(false))
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
    fn let_go(&mut self, owner: &Arc<Stored>, owned: &[&Dependent]) {
        let finalizers = owner.finalizers();
        if finalizers.contains(&ORPHAN) {
            for dependent in owned.iter().take(CHANGES_AT_ONCE) {
                self.drop_owners(&dependent.object, &|uid| *uid == owner.uid);
            }
            if owned.len() <= CHANGES_AT_ONCE {
                self.drop_finalizer(owner, ORPHAN);
            }
        } else if finalizers.contains(&FOREGROUND) {
            let blocking = owned.iter().any(|object| object.owners.contains(&(owner.uid.clone(), true)));
            if !blocking {
                self.drop_finalizer(owner, FOREGROUND);
            }
        }
    }

    /// A dependent: it stays as long as one owner is solid, and lets go of the others.
    fn follow_owners(
        &mut self,
        Dependent { object, owners }: &Dependent,
        by_uid: &BTreeMap<Uid, Arc<Stored>>,
        has_dependents: bool,
        moment: &mut Moment<'_>,
    ) {
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

/// The uids of an object's owners, and whether each must wait for it.
fn owners(object: &Stored) -> Vec<(Uid, bool)> {
    let owners = object.owner_references();
    let owners = owners.as_array().into_iter().flatten();
    owners
        .filter_map(|owner| Some((Uid::parse(owner["uid"].as_str()?), owner["blockOwnerDeletion"] == true)))
        .collect()
}
