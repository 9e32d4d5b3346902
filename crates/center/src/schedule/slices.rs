//! SinglePlacementSlices: where a placement's objects go, as objects for users to read.

use std::collections::BTreeMap;

use mailboat_api::edge::SinglePlacement;
use mailboat_api::names::{group, label};
use mailboat_engine::want::Body;
use mailboat_object::digest::digest_of_value;
use mailboat_object::key::{Key, Name};
use serde_json::{Value, json};

use crate::body::body;
use crate::names::{label_value, numbered};
use crate::shards::{Shard, Shards};

/// The most destinations that one slice holds.
pub const MOST_DESTINATIONS: usize = 500;

/// A placement's slices: which destination stands in which is decided by its SyncTarget's uid, so that one that
/// comes or goes rewrites one slice.
#[derive(Clone, Debug)]
pub(super) struct Slices {
    shards: Shards<SinglePlacement, ()>,
    bodies: BTreeMap<Shard, Slice>,
}

/// A slice as it should stand in the placement's workspace.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Its name.
    pub name: Name,
    /// The object.
    pub body: Body,
}

impl Slices {
    pub(super) fn new() -> Self {
        Self { shards: Shards::new(MOST_DESTINATIONS), bodies: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, destination: SinglePlacement) {
        let hash = hash(&destination);
        self.shards.insert(destination, hash, 1, ());
    }

    pub(super) fn remove(&mut self, destination: &SinglePlacement) {
        self.shards.remove(destination, hash(destination));
    }

    /// Writes those slices anew that changed; how many were.
    pub(super) fn write(&mut self, placement: &Key, owner_uid: &str) -> usize {
        let changed = self.shards.take_changed();
        let mut written = 0;
        for shard in changed {
            match self.shards.part(shard) {
                None => drop(self.bodies.remove(&shard)),
                Some(entries) => {
                    let destinations: Vec<&SinglePlacement> = entries.map(|(one, ())| one).collect();
                    let name = name(placement, shard);
                    let json = object(placement, owner_uid, &name, &destinations);
                    self.bodies.insert(shard, Slice { name: Name::new(&name), body: body(&json) });
                    written += 1;
                }
            }
        }
        written
    }

    /// Makes all of them be written anew: the placement is another object.
    pub(super) fn forget_written(&mut self) {
        let all: Vec<SinglePlacement> = self
            .shards
            .parts()
            .into_iter()
            .filter_map(|shard| self.shards.part(shard))
            .flat_map(|entries| entries.map(|(one, ())| one.clone()).collect::<Vec<_>>())
            .collect();
        *self = Self::new();
        for destination in all {
            self.insert(destination);
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Slice> {
        self.bodies.values()
    }
}

/// The first slice has the placement's name; the others one that no placement is likely to have.
fn name(placement: &Key, shard: Shard) -> String {
    if shard.is_first() { placement.name.to_string() } else { numbered(&placement.name, &shard.to_string()) }
}

fn object(placement: &Key, owner_uid: &str, name: &str, destinations: &[&SinglePlacement]) -> Value {
    let api_version = format!("{}/{}", group::EDGE, group::EDGE_VERSION);
    json!({
        "apiVersion": api_version,
        "kind": "SinglePlacementSlice",
        "metadata": {
            "name": name,
            "labels": { label::SOURCE_PLACEMENT: label_value(&placement.name) },
            "ownerReferences": [{
                "apiVersion": api_version,
                "kind": "EdgePlacement",
                "name": placement.name.as_str(),
                "uid": owner_uid,
            }],
        },
        "destinations": destinations,
    })
}

fn hash(destination: &SinglePlacement) -> u64 {
    digest_of_value(&Value::from(destination.sync_target_uid.as_str())).bits()
}
