//! What every test begins with: four clusters, four kinds, and short words for what is done to them.

pub(crate) use std::sync::Arc;

pub(crate) use mailboat_engine::plan::{Refusal, Verdict, Wait};
pub(crate) use mailboat_engine::route::{Route, RouteId};
pub(crate) use mailboat_object::key::{Key, Name};
pub(crate) use mailboat_object::wire::Verb;
pub(crate) use mailboat_store::interest::Filter;
pub(crate) use mailboat_store::seen::Doubt;
pub(crate) use serde_json::{Value, json};

pub(crate) use crate::roles::{Skeleton, edge_syncer, publisher, translator, workload_syncer};
pub(crate) use crate::server::{Link, key};
pub(crate) use crate::world::World;

// Destinations are numbered as the clusters are named.
pub(crate) const CLUSTERS: [&str; 4] = ["florin", "guilder", "tenant", "workload"];
pub(crate) const KINDS: [&str; 4] = ["configmaps", "customizers", "namespaces", "secrets"];
pub(crate) const FLORIN: u32 = 0;
pub(crate) const GUILDER: u32 = 1;

pub(crate) fn world() -> World {
    let mut world = World::new(&CLUSTERS);
    for cluster in CLUSTERS {
        world
            .put(&key(cluster, "namespaces", "", "till"), json!({ "apiVersion": "v1", "kind": "Namespace" }));
        for kind in KINDS {
            world.follow(cluster, kind);
        }
    }
    world
}

pub(crate) fn configure(world: &mut World, route: Skeleton) {
    let id = route.head().id.clone();
    world.engine.configure(&world.store, &id, Some(Arc::new(route)));
}

pub(crate) fn known(world: &mut World) {
    world.engine.configuration_known(Some(1));
}

pub(crate) fn config_map(value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "labels": { "place": "yes" } }, "data": { "a": value } })
}

/// The calls that wrote something since this was last asked.
pub(crate) fn written(world: &mut World) -> Vec<String> {
    std::mem::take(&mut world.writes).iter().map(|call| format!("{:?} {}", call.verb, call.key)).collect()
}

/// The source that most tests have.
pub(crate) fn source() -> Key {
    key("workload", "configmaps", "till", "pos")
}

/// Its copy at the first edge.
pub(crate) fn copy() -> Key {
    key("florin", "configmaps", "till", "pos")
}

pub(crate) fn explain(world: &World, slot: &Key) -> String {
    world.engine.explain(world.now, &world.store, slot).map_or("nothing".to_owned(), |told| told.to_string())
}
