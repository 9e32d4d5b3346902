//! Deletion.

use std::sync::Arc;

use mailboat_machinery::DeleteOptions;
use mailboat_machinery::builtin::kind_without_schema;
use mailboat_object::wire::Propagation;
use mailboat_object::{KindId, Uid, Version};
use serde_json::json;

use crate::world::{World, assert_refused, boat, boats, cluster, config_map, config_maps, key};

#[test]
fn a_delete_is_held_to_its_preconditions() {
    let mut world = World::new();
    let key = key(&config_maps(), "a");
    let object = world.create(&config_maps(), config_map("a", json!({}))).unwrap().object;
    let wrong_uid = DeleteOptions { uid: Some(Uid::parse("x")), ..DeleteOptions::default() };
    let status = assert_refused(world.delete(&key, &wrong_uid), 409, "Conflict");
    assert!(status.body().message.contains("does not match the UID in record"), "{status}");
    let wrong_version = DeleteOptions { version: Some(Version(1)), ..DeleteOptions::default() };
    assert_refused(world.delete(&key, &wrong_version), 409, "Conflict");
    let right = DeleteOptions {
        uid: Some(object.uid.clone()),
        version: Some(object.version),
        ..DeleteOptions::default()
    };
    let deleted = world.delete(&key, &right).unwrap();
    assert!(deleted.gone && deleted.object.version > object.version);
    assert_refused(world.delete(&key, &DeleteOptions::default()), 404, "NotFound");
}

#[test]
fn finalizers_hold_an_object_and_the_last_one_lets_it_go() {
    let mut world = World::new();
    let key = key(&boats(), "a");
    let mut body = boat("a", json!({}));
    body["metadata"]["finalizers"] = json!(["mailboat.dev/a", "mailboat.dev/b"]);
    world.create(&boats(), body).unwrap();
    let marked = world.delete(&key, &DeleteOptions::default()).unwrap();
    assert!(!marked.gone && marked.object.is_deleting());
    assert_eq!(marked.object.generation(), 2);
    assert_eq!(marked.object.metadata()["deletionGracePeriodSeconds"], 0);
    let again = world.delete(&key, &DeleteOptions::default()).unwrap();
    assert_eq!(again.object.version, marked.object.version, "a second delete changes nothing");
    let added = json!({ "metadata": { "finalizers": ["mailboat.dev/c"] } });
    let status = assert_refused(world.merge(&key, &added), 422, "Invalid");
    assert_eq!(status.body().details.causes[0].field, "metadata.finalizers");
    world.merge(&key, &json!({ "metadata": { "finalizers": ["mailboat.dev/b"] } })).unwrap();
    assert!(world.machine.get(&key).is_ok());
    world.merge(&key, &json!({ "metadata": { "finalizers": null } })).unwrap();
    assert_refused(world.machine.get(&key), 404, "NotFound");
}

#[test]
fn propagation_is_written_down_as_a_finalizer() {
    for (propagation, finalizer) in
        [(Propagation::Orphan, "orphan"), (Propagation::Foreground, "foregroundDeletion")]
    {
        let mut world = World::new();
        let key = key(&config_maps(), "a");
        world.create(&config_maps(), config_map("a", json!({}))).unwrap();
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        let marked = world.delete(&key, &options).unwrap();
        assert_eq!((marked.gone, marked.object.finalizers()), (false, vec![finalizer]));
    }
}

#[test]
fn a_placed_pod_is_given_time_and_may_be_hurried() {
    let mut world = World::new();
    let pods = KindId::new("", "pods");
    world.machine.serve(&cluster(), [Arc::new(kind_without_schema(pods.clone(), "v1", "Pod", true))]);
    let pod = |name: &str, spec: serde_json::Value| json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec });
    world.create(&pods, pod("placed", json!({ "nodeName": "n" }))).unwrap();
    world.create(&pods, pod("waiting", json!({}))).unwrap();
    let marked = world.delete(&key(&pods, "placed"), &DeleteOptions::default()).unwrap();
    assert_eq!((marked.gone, &marked.object.metadata()["deletionGracePeriodSeconds"]), (false, &json!(30)));
    assert!(!world.delete(&key(&pods, "placed"), &DeleteOptions::default()).unwrap().gone);
    let now = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
    assert!(world.delete(&key(&pods, "placed"), &now).unwrap().gone);
    assert!(
        world.delete(&key(&pods, "waiting"), &DeleteOptions::default()).unwrap().gone,
        "no node knows it"
    );
}

#[test]
fn a_dry_delete_deletes_nothing() {
    let mut world = World::new();
    world.create(&config_maps(), config_map("a", json!({}))).unwrap();
    let dry = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    assert!(world.delete(&key(&config_maps(), "a"), &dry).unwrap().gone);
    assert!(world.machine.get(&key(&config_maps(), "a")).is_ok());
}
