//! Server-side apply, seen from outside.

use mailboat_machinery::{Patch, Stored, WriteOptions};
use serde_json::{Value, json};

use crate::world::{World, assert_refused, boat, boats, by, config_map, config_maps, key};

fn owners(object: &Stored) -> Vec<String> {
    let entry = |entry: &mailboat_machinery::Manager| {
        format!("{} {:?} {:?}", entry.name, entry.operation, entry.fields)
    };
    object.managed().entries().iter().map(entry).collect()
}

#[test]
fn what_an_applier_no_longer_applies_goes_unless_another_owns_it() {
    let mut world = World::new();
    let key = key(&config_maps(), "a");
    let created = world.apply(&key, "alice", false, &config_map("a", json!({ "x": "1", "y": "1" }))).unwrap();
    assert!(created.created);
    world.apply(&key, "bob", false, &config_map("a", json!({ "y": "1" }))).unwrap();
    let left = world.apply(&key, "alice", false, &config_map("a", json!({ "z": "1" }))).unwrap().object;
    assert_eq!(left.body()["data"], json!({ "y": "1", "z": "1" }));
    assert_eq!(owners(&left), ["bob Apply {.data.y}", "alice Apply {.data.z}"]);
}

#[test]
fn an_apply_meets_other_owners_and_takes_over_by_force() {
    let mut world = World::new();
    let key = key(&boats(), "a");
    world.apply(&key, "alice", false, &boat("a", json!({ "x": 1 }))).unwrap();
    let status =
        assert_refused(world.apply(&key, "bob", false, &boat("a", json!({ "x": 2 }))), 409, "Conflict");
    assert_eq!(status.body().message, "Apply failed with 1 conflict: conflict with \"alice\": .spec.x");
    assert_eq!(status.body().details.causes[0].reason, "FieldManagerConflict");
    let forced = world.apply(&key, "bob", true, &boat("a", json!({ "x": 2 }))).unwrap().object;
    assert_eq!(owners(&forced), ["bob Apply {.spec.x}"]);
    let shared = world.apply(&key, "alice", false, &boat("a", json!({ "x": 2 }))).unwrap().object;
    assert_eq!(owners(&shared).len(), 2, "who agrees shares: {:?}", owners(&shared));
}

#[test]
fn an_update_takes_the_fields_that_it_changes() {
    let mut world = World::new();
    let key = key(&config_maps(), "a");
    world.apply(&key, "alice", false, &config_map("a", json!({ "x": "1", "y": "1" }))).unwrap();
    let patched = world
        .act(|machine, moment| {
            machine.patch(&key, Patch::Merge(&json!({ "data": { "x": "2" } })), &by("bob"), moment)
        })
        .unwrap()
        .object;
    assert_eq!(owners(&patched), ["alice Apply {.data.y}", "bob Update {.data.x}"]);
    assert_refused(world.apply(&key, "alice", false, &config_map("a", json!({ "x": "1" }))), 409, "Conflict");
}

#[test]
fn an_apply_with_a_version_or_uid_is_held_to_it() {
    let mut world = World::new();
    let key = key(&config_maps(), "a");
    let mut intent = config_map("a", json!({ "x": "1" }));
    intent["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    assert_refused(world.apply(&key, "alice", false, &intent), 409, "Conflict");
    let live = world.apply(&key, "alice", false, &config_map("a", json!({ "x": "1" }))).unwrap().object;
    assert_refused(world.apply(&key, "alice", true, &intent), 422, "Invalid");
    let mut versioned = config_map("a", json!({ "x": "2" }));
    versioned["metadata"]["resourceVersion"] = "1".into();
    assert_refused(world.apply(&key, "alice", true, &versioned), 409, "Conflict");
    versioned["metadata"]["resourceVersion"] = live.version.to_string().into();
    versioned["metadata"]["uid"] = live.uid.to_string().into();
    world.apply(&key, "alice", true, &versioned).unwrap();
}

#[test]
fn an_intent_must_be_of_the_kind_and_bring_no_managers() {
    let mut world = World::new();
    let key = key(&config_maps(), "a");
    let wrong = |change: Value| {
        let mut intent = config_map("a", json!({}));
        mailboat_object::merge::merge(&mut intent, &change);
        intent
    };
    for intent in [
        wrong(json!({ "apiVersion": "v2" })),
        wrong(json!({ "kind": null })),
        wrong(json!({ "metadata": { "managedFields": [] } })),
        wrong(json!({ "metadata": { "name": "b" } })),
        wrong(json!({ "metadata": { "name": null } })),
    ] {
        assert_refused(world.apply(&key, "alice", true, &intent), 400, "BadRequest");
    }
    assert_refused(world.apply(&key, "", true, &wrong(json!({}))), 422, "Invalid");
}

#[test]
fn through_a_view_of_kcp_an_apply_is_an_update() {
    let mut world = World::kcp();
    let key = key(&config_maps(), "a");
    let view = WriteOptions { through_view: true, ..by("alice") };
    let mut apply = |data: Value| {
        let intent = config_map("a", data);
        let patch = Patch::Apply { intent: &intent, force: true };
        world.act(|machine, moment| machine.patch(&key, patch, &view, moment)).unwrap().object
    };
    apply(json!({ "x": "1" }));
    let object = apply(json!({ "y": "1" }));
    assert_eq!(object.body()["data"], json!({ "x": "1", "y": "1" }), "what was left out stays");
    assert_eq!(owners(&object), ["alice Update {.data, .data.x, .data.y}"]);
}
