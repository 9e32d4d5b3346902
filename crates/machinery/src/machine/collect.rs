//! Garbage collection along owner references.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_object::wire::Propagation;
use mailboat_object::{ClusterId, Uid};
use serde_json::Value;

use super::delete::{DeleteOptions, FOREGROUND, ORPHAN, set_finalizers};
use super::write::drop_metadata;
use super::{Held, Machine};
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
        let named: BTreeSet<Uid> =
            dependents.iter().flat_map(|object| owners(object)).map(|(uid, _)| uid).collect();
        let owner = |object: &&Held| named.contains(object.uid());
        let by_uid: BTreeMap<Uid, Arc<Stored>> =
            held().filter(owner).map(|object| (object.uid().clone(), object.get())).collect();
        let before = self.version();
        for object in &going {
            self.let_go(object, &dependents);
        }
        for object in dependents.iter().filter(|object| !owners(object).is_empty()) {
            self.follow_owners(object, &by_uid, &dependents, moment);
        }
        usize::try_from(self.version().0 - before.0).unwrap_or(usize::MAX)
    }

    /// An owner that is being deleted: its dependents are freed, or have to be gone before it.
    fn let_go(&mut self, owner: &Arc<Stored>, owned: &[Arc<Stored>]) {
        let finalizers = owner.finalizers();
        let dependents =
            || owned.iter().filter(|object| owners(object).iter().any(|(uid, _)| *uid == owner.uid));
        if finalizers.contains(&ORPHAN) {
            for dependent in dependents() {
                self.drop_owners(dependent, &|uid| *uid == owner.uid);
            }
            self.drop_finalizer(owner, ORPHAN);
        } else if finalizers.contains(&FOREGROUND) {
            let blocking = dependents().any(|object| owners(object).contains(&(owner.uid.clone(), true)));
            if !blocking {
                self.drop_finalizer(owner, FOREGROUND);
            }
        }
    }

    /// A dependent: it stays as long as one owner is solid, and lets go of the others.
    fn follow_owners(
        &mut self,
        object: &Arc<Stored>,
        by_uid: &BTreeMap<Uid, Arc<Stored>>,
        dependents: &[Arc<Stored>],
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
        let owners = owners(object);
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
        let has_dependents =
            dependents.iter().any(|other| self::owners(other).iter().any(|(uid, _)| *uid == object.uid));
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
    let owners = object.metadata()["ownerReferences"].as_array().into_iter().flatten();
    owners
        .filter_map(|owner| Some((Uid::parse(owner["uid"].as_str()?), owner["blockOwnerDeletion"] == true)))
        .collect()
}
