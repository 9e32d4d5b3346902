//! What reads and writes the objects: one cluster at one moment.

use std::sync::Arc;

use mailboat_machinery::{DeleteOptions, ListRequest, Machine, Moment, Patch, Random, Stored, WriteOptions};
use mailboat_object::wire::Part;
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

/// The manager of everything that is written here, as a cluster's own controllers appear.
const MANAGER: &str = "kube-controller-manager";

/// Reads and writes the objects of one cluster at one moment. What a server refuses is tried again when its object
/// changes, as controllers do; it tells nobody.
pub(super) struct Hand<'m> {
    machine: &'m mut Machine,
    cluster: ClusterId,
    pub now_ms: u64,
    pub random: &'m mut dyn Random,
}

impl<'m> Hand<'m> {
    pub(super) fn new(
        machine: &'m mut Machine,
        cluster: ClusterId,
        now_ms: u64,
        random: &'m mut dyn Random,
    ) -> Self {
        Self { machine, cluster, now_ms, random }
    }

    /// The time as objects tell it.
    pub(super) fn now(&self) -> String {
        mailboat_machinery::time::rfc3339(self.now_ms / 1_000)
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<Stored>> {
        self.machine.get(key).ok()
    }

    /// The objects of a kind in a namespace; empty: in all of them.
    pub(super) fn list(&self, group: &str, resource: &str, namespace: &str) -> Vec<Arc<Stored>> {
        let request = ListRequest {
            cluster: Some(self.cluster.clone()),
            kind: KindId::new(group, resource),
            namespace: Name::new(namespace),
            ..ListRequest::default()
        };
        self.machine.list(&request).map(|list| list.items).unwrap_or_default()
    }

    /// The objects of a kind that an object controls.
    pub(super) fn owned(&self, group: &str, resource: &str, owner: &Stored) -> Vec<Arc<Stored>> {
        let mut owned = self.list(group, resource, &owner.key.namespace);
        owned.retain(|object| controls(owner, object));
        owned
    }

    pub(super) fn create(&mut self, group: &str, resource: &str, namespace: &str, body: Value) {
        let key = Key {
            cluster: self.cluster.clone(),
            kind: KindId::new(group, resource),
            namespace: Name::new(namespace),
            name: Name::EMPTY,
        };
        let (machine, mut moment) = self.parts();
        // Somebody was faster, or the server refuses: the next change is the next try.
        let _ = machine.create(&key, body, &written(Part::Whole), &mut moment);
    }

    /// Merges into an object.
    pub(super) fn merge(&mut self, key: &Key, patch: &Value) {
        let (machine, mut moment) = self.parts();
        let _ = machine.patch(key, Patch::Merge(patch), &written(Part::Whole), &mut moment);
    }

    /// Replaces an object's status; where it is the same, nothing is written.
    pub(super) fn set_status(&mut self, object: &Stored, status: Value) {
        self.set_status_with(object, status, &[]);
    }

    /// The same with annotations, which some kinds take along with their status: so their generation stays.
    pub(super) fn set_status_with(&mut self, object: &Stored, status: Value, annotations: &[(&str, String)]) {
        let present = &object.metadata()["annotations"];
        if object.body()["status"] == status
            && annotations.iter().all(|(name, value)| present[*name] == **value)
        {
            return;
        }
        let mut body = object.to_value();
        body["status"] = status;
        for (name, value) in annotations {
            body["metadata"]["annotations"][*name] = value.as_str().into();
        }
        // It carries the version that was read: whoever wrote in between is not overwritten.
        let (machine, mut moment) = self.parts();
        let _ = machine.update(&object.key, body, &written(Part::Status), &mut moment);
    }

    pub(super) fn delete(&mut self, key: &Key, grace_seconds: Option<u64>) {
        let options = DeleteOptions { grace_seconds, ..DeleteOptions::default() };
        let (machine, mut moment) = self.parts();
        let _ = machine.delete(key, &options, &mut moment);
    }

    fn parts(&mut self) -> (&mut Machine, Moment<'_>) {
        (self.machine, Moment { now_seconds: self.now_ms / 1_000, random: self.random })
    }
}

fn written(part: Part) -> WriteOptions {
    WriteOptions { manager: Name::new(MANAGER), part, ..WriteOptions::default() }
}

/// The reference by which an object is controlled by another.
pub(super) fn reference(owner: &Stored) -> Value {
    json!([{
        "apiVersion": owner.body()["apiVersion"], "kind": owner.body()["kind"], "name": owner.key.name.as_str(),
        "uid": owner.uid.to_string(), "controller": true, "blockOwnerDeletion": true,
    }])
}

fn controller(object: &Stored) -> Option<&Value> {
    object.metadata()["ownerReferences"].as_array()?.iter().find(|owner| owner["controller"] == true)
}

fn controls(owner: &Stored, object: &Stored) -> bool {
    controller(object).is_some_and(|reference| reference["uid"] == owner.uid.to_string())
}

/// The key of the object that controls another, if it is of a kind that is looked at here.
pub(super) fn controller_of(object: &Stored) -> Option<Key> {
    let reference = controller(object)?;
    let (group, resource) = match reference["kind"].as_str()? {
        "ReplicaSet" => ("apps", "replicasets"),
        "Deployment" => ("apps", "deployments"),
        "StatefulSet" => ("apps", "statefulsets"),
        "DaemonSet" => ("apps", "daemonsets"),
        "Job" => ("batch", "jobs"),
        _ => return None,
    };
    Some(Key {
        kind: KindId::new(group, resource),
        name: Name::new(reference["name"].as_str()?),
        ..object.key.clone()
    })
}
