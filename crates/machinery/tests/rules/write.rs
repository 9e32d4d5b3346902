//! Create, update, patch.

use mailboat_machinery::{Patch, WriteOptions};
use mailboat_object::wire::Part;
use serde_json::json;

use crate::world::{World, assert_refused, boat, boats, by, config_map, config_maps, key};

#[test]
fn a_new_object_gets_what_the_server_gives() {
    let mut world = World::new();
    let written = world.create(&boats(), boat("guppy", json!({ "sail": 1 }))).unwrap();
    let metadata = written.object.metadata().clone();
    assert!(written.created && written.changed);
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["creationTimestamp"], "2023-11-14T22:13:21Z");
    assert_eq!(metadata["uid"].as_str().map(str::len), Some(36), "{metadata}");
    let status = assert_refused(world.create(&boats(), boat("guppy", json!({}))), 409, "AlreadyExists");
    assert_eq!(status.body().message, "boats.example.dev \"guppy\" already exists");
}

#[test]
fn names_are_generated_checked_and_required() {
    let mut world = World::new();
    let mut body = config_map("", json!({}));
    body["metadata"] = json!({ "generateName": "boat-" });
    let one = world.create(&config_maps(), body.clone()).unwrap().object;
    let two = world.create(&config_maps(), body).unwrap().object;
    assert!(one.key.name.starts_with("boat-") && one.key.name.len() == 10, "{}", one.key.name);
    assert_ne!(one.key.name, two.key.name);
    for (name, field) in [("Upper", "metadata.name"), ("", "metadata.name"), ("-dash", "metadata.name")] {
        let status =
            assert_refused(world.create(&config_maps(), config_map(name, json!({}))), 422, "Invalid");
        assert_eq!(status.body().details.causes[0].field, field, "{status}");
    }
}

#[test]
fn a_write_that_changes_nothing_leaves_the_version_alone() {
    let mut world = World::new();
    let key = key(&config_maps(), "a");
    let first = world.create(&config_maps(), config_map("a", json!({ "k": "v" }))).unwrap().object;
    let again = world.update(&key, first.to_value()).unwrap();
    assert!(!again.changed);
    assert_eq!(again.object.version, first.version);
    let merged = world.merge(&key, &json!({ "data": { "k": "v" } })).unwrap();
    assert_eq!(merged.object.version, first.version);
    let applied = world.apply(&key, "bob", false, &config_map("a", json!({ "k": "v" }))).unwrap();
    assert!(applied.changed, "bob owns something now");
    let applied_again = world.apply(&key, "bob", false, &config_map("a", json!({ "k": "v" }))).unwrap();
    assert!(!applied_again.changed, "time alone is no change");
}

#[test]
fn an_update_based_on_an_old_version_conflicts() {
    let mut world = World::new();
    let key = key(&boats(), "a");
    let first = world.create(&boats(), boat("a", json!({ "x": 1 }))).unwrap().object.to_value();
    world.merge(&key, &json!({ "spec": { "x": 2 } })).unwrap();
    let status = assert_refused(world.update(&key, first.clone()), 409, "Conflict");
    assert!(status.body().message.contains("the object has been modified"), "{status}");
    let mut without = first;
    without["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let status = assert_refused(world.update(&key, without), 422, "Invalid");
    assert_eq!(status.body().details.causes[0].field, "metadata.resourceVersion");
    // A config map may be updated whatever its version is.
    world.create(&config_maps(), config_map("a", json!({}))).unwrap();
    world.update(&crate::world::key(&config_maps(), "a"), config_map("a", json!({ "k": "v" }))).unwrap();
}

#[test]
fn a_wrong_uid_is_refused_and_names_cannot_change() {
    let mut world = World::new();
    let key = key(&config_maps(), "a");
    world.create(&config_maps(), config_map("a", json!({}))).unwrap();
    let mut other = config_map("a", json!({}));
    other["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    assert_refused(world.update(&key, other), 409, "Conflict");
    assert_refused(world.update(&key, config_map("b", json!({}))), 400, "BadRequest");
    let patch = json!({ "metadata": { "uid": "00000000-0000-4000-8000-000000000000" } });
    let status = assert_refused(world.merge(&key, &patch), 422, "Invalid");
    assert_eq!(status.body().details.causes[0].field, "metadata.uid");
}

#[test]
fn status_and_the_rest_are_written_apart() {
    let mut world = World::new();
    let key = key(&boats(), "a");
    let mut body = boat("a", json!({ "x": 1 }));
    body["status"] = json!({ "phase": "sneaked in" });
    let created = world.create(&boats(), body).unwrap().object;
    assert_eq!(created.body().get("status"), None);
    let status_options = WriteOptions { part: Part::Status, ..by("bob") };
    let patch = json!({ "spec": { "x": 2 }, "status": { "phase": "sailing" }, "metadata": { "labels": { "a": "b" } } });
    let written = world
        .act(|machine, moment| machine.patch(&key, Patch::Merge(&patch), &status_options, moment))
        .unwrap()
        .object;
    assert_eq!(written.body()["spec"]["x"], 1);
    assert_eq!(written.metadata().get("labels"), None);
    assert_eq!(written.body()["status"]["phase"], "sailing");
    assert_eq!(written.generation(), 1);
    let entries = written.managed().entries();
    assert_eq!((&*entries[1].name, &*entries[1].subresource), ("bob", "status"));
    let patched =
        world.merge(&key, &json!({ "spec": { "x": 3 }, "status": { "phase": "sunk" } })).unwrap().object;
    assert_eq!((patched.generation(), &patched.body()["status"]["phase"]), (2, &json!("sailing")));
}

#[test]
fn a_dry_run_answers_and_stores_nothing() {
    let mut world = World::new();
    let dry = WriteOptions { dry_run: true, ..by("alice") };
    let before = world.machine.version();
    let body = config_map("a", json!({}));
    let written =
        world.act(|machine, moment| machine.create(&key(&config_maps(), ""), body, &dry, moment)).unwrap();
    assert!(written.created && !written.changed);
    assert_refused(world.machine.get(&key(&config_maps(), "a")), 404, "NotFound");
    assert_eq!(world.machine.version(), before);
}

#[test]
fn a_kind_that_is_not_served_and_a_subresource_that_is_not_there_are_404() {
    let mut world = World::new();
    let none = mailboat_object::KindId::new("none.dev", "nothings");
    let status = assert_refused(world.create(&none, json!({})), 404, "NotFound");
    assert_eq!(status.body().details.name, "", "the object is not named: {status}");
    world.create(&config_maps(), config_map("a", json!({}))).unwrap();
    let options = WriteOptions { part: Part::Status, ..by("alice") };
    let key = key(&config_maps(), "a");
    let answer = world.act(|machine, moment| machine.patch(&key, Patch::Merge(&json!({})), &options, moment));
    assert_refused(answer, 404, "NotFound");
}

#[test]
fn managers_can_be_forgotten_by_an_empty_list() {
    let mut world = World::new();
    let key = key(&config_maps(), "a");
    world.create(&config_maps(), config_map("a", json!({ "k": "v" }))).unwrap();
    let reset = world.merge(&key, &json!({ "metadata": { "managedFields": [{}] } })).unwrap().object;
    assert!(reset.managed().is_empty(), "{reset:?}");
    assert_eq!(reset.to_value()["metadata"].get("managedFields"), None);
    let next = world.merge(&key, &json!({ "data": { "k": "w" } })).unwrap().object;
    assert!(next.managed().is_empty(), "nothing is tracked until the next apply");
}

#[test]
fn bad_requests_are_400() {
    let mut world = World::new();
    for body in [
        json!([]),
        json!({ "apiVersion": "v2", "kind": "ConfigMap", "metadata": { "name": "a" } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } }),
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": 1 } }),
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "other" } }),
    ] {
        assert_refused(world.create(&config_maps(), body), 400, "BadRequest");
    }
    let unversioned = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "resourceVersion": "x" } });
    // As on real servers, which take this for their own fault.
    assert_refused(world.create(&config_maps(), unversioned), 500, "");
}

#[test]
fn a_whole_number_has_no_fraction_however_it_is_sent() {
    let mut world = World::new();
    let sent: serde_json::Value =
        serde_json::from_str(r#"{ "crew": [2.0, -3.0, 2.5, 1e3], "tons": 1e300 }"#).unwrap();
    let made = world.create(&boats(), boat("a", sent)).unwrap().object;
    assert_eq!(made.body()["spec"].to_string(), r#"{"crew":[2,-3,2.5,1000],"tons":1e+300}"#);
}
