//! Namespaces, custom resource definitions, owners.

use std::sync::Arc;

use mailboat_machinery::builtin::kind_without_schema;
use mailboat_machinery::{DeleteOptions, Settings, WatchEvent, WatchRequest, WatchStart};
use mailboat_object::wire::Propagation;
use mailboat_object::{Key, KindId, Name};
use serde_json::{Value, json};

use crate::world::{World, assert_refused, boat, cluster, config_map, config_maps, key};

fn namespaces() -> KindId {
    KindId::new("", "namespaces")
}

fn definitions() -> KindId {
    KindId::new("apiextensions.k8s.io", "customresourcedefinitions")
}

fn cluster_scoped(kind: &KindId, name: &str) -> Key {
    Key { namespace: Name::EMPTY, ..key(kind, name) }
}

fn world() -> World {
    let mut world = World::new();
    let kinds = [
        kind_without_schema(namespaces(), "v1", "Namespace", false),
        kind_without_schema(definitions(), "v1", "CustomResourceDefinition", false),
    ];
    world.machine.serve(&cluster(), kinds.map(Arc::new));
    create_at(
        &mut world,
        &cluster_scoped(&namespaces(), ""),
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } }),
    );
    world
}

fn create_at(world: &mut World, key: &Key, body: Value) {
    world.act(|machine, moment| machine.create(key, body, &crate::world::by("alice"), moment)).unwrap();
}

#[test]
fn a_namespace_goes_when_it_is_empty_and_takes_in_nothing_meanwhile() {
    let mut world = world();
    let mut elsewhere = key(&config_maps(), "");
    elsewhere.namespace = Name::new("none");
    let body = config_map("x", json!({}));
    let answer =
        world.act(|machine, moment| machine.create(&elsewhere, body, &crate::world::by("a"), moment));
    assert_eq!(assert_refused(answer, 404, "NotFound").body().details.kind, "namespaces");
    let mut held = config_map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["mailboat.dev/f"]);
    world.create(&config_maps(), held).unwrap();
    world.create(&config_maps(), config_map("free", json!({}))).unwrap();
    let namespace = cluster_scoped(&namespaces(), "default");
    let marked = world.delete(&namespace, &DeleteOptions::default()).unwrap();
    assert_eq!((marked.gone, &marked.object.body()["status"]["phase"]), (false, &json!("Terminating")));
    let status = assert_refused(world.create(&config_maps(), config_map("new", json!({}))), 403, "Forbidden");
    assert_eq!(status.body().details.causes[0].reason, "NamespaceTerminating");
    assert!(world.act(|machine, moment| machine.empty_namespaces(&cluster(), moment)) > 0);
    assert_eq!(world.list(&config_maps()).len(), 1, "the held one is left");
    assert_eq!(world.act(|machine, moment| machine.empty_namespaces(&cluster(), moment)), 0);
    world.merge(&key(&config_maps(), "held"), &json!({ "metadata": { "finalizers": null } })).unwrap();
    world.act(|machine, moment| machine.empty_namespaces(&cluster(), moment));
    assert_refused(world.machine.get(&namespace), 404, "NotFound");
}

#[test]
fn what_is_much_goes_in_many_rounds_and_what_is_held_keeps_nothing_else() {
    let mut world = world();
    for number in 0..1_300 {
        let mut map = config_map(&format!("map-{number:04}"), json!({}));
        if number < 600 {
            map["metadata"]["finalizers"] = json!(["mailboat.dev/f"]);
        }
        world.create(&config_maps(), map).unwrap();
    }
    let namespace = cluster_scoped(&namespaces(), "default");
    world.delete(&namespace, &DeleteOptions::default()).unwrap();
    let mut rounds = Vec::new();
    loop {
        match world.act(|machine, moment| machine.empty_namespaces(&cluster(), moment)) {
            0 => break,
            done => rounds.push(done),
        }
    }
    assert_eq!(rounds, [500, 500, 300]);
    assert_eq!(world.list(&config_maps()).len(), 600, "those are held");
    assert!(world.machine.get(&namespace).is_ok());
    for number in 0..600 {
        let map = key(&config_maps(), &format!("map-{number:04}"));
        world.merge(&map, &json!({ "metadata": { "finalizers": null } })).unwrap();
    }
    while world.act(|machine, moment| machine.empty_namespaces(&cluster(), moment)) > 0 {}
    assert_refused(world.machine.get(&namespace), 404, "NotFound");
}

#[test]
fn what_is_large_goes_in_as_many_rounds_as_it_takes() {
    let mut world = world();
    for number in 0..10 {
        let map = config_map(&format!("map-{number}"), json!({ "text": "x".repeat(1 << 20) }));
        world.create(&config_maps(), map).unwrap();
    }
    world.delete(&cluster_scoped(&namespaces(), "default"), &DeleteOptions::default()).unwrap();
    assert_eq!(world.act(|machine, moment| machine.empty_namespaces(&cluster(), moment)), 4);
    assert_eq!(world.list(&config_maps()).len(), 6);
}

#[test]
fn a_definition_makes_a_kind_and_takes_its_objects_with_it() {
    let mut world = world();
    let boats = KindId::new("example.dev", "boats");
    world.machine.stop_serving(&cluster(), &boats);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "boats.example.dev" },
        "spec": {
            "group": "example.dev", "scope": "Namespaced", "names": { "plural": "boats", "kind": "Boat" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "scale": { "specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count" } },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object", "properties": { "count": { "type": "integer" } } } } } }
            }]
        }
    });
    let mut definition = definition;
    definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
    create_at(&mut world, &cluster_scoped(&definitions(), ""), definition);
    assert_refused(world.create(&boats, boat("a", json!({}))), 404, "NotFound");
    world.act(|machine, moment| machine.follow_definitions(&cluster(), moment));
    let established = world.machine.get(&cluster_scoped(&definitions(), "boats.example.dev")).unwrap();
    assert_eq!(established.body()["status"]["conditions"][1]["type"], "Established");
    let refused = assert_refused(world.create(&boats, boat("a", json!({ "count": "x" }))), 422, "Invalid");
    assert_eq!(refused.body().details.causes[0].field, "spec.count");
    world.create(&boats, boat("a", json!({ "count": 2, "unknown": 1 }))).unwrap();
    assert_eq!(world.machine.scale(&key(&boats, "a")).unwrap()["spec"]["replicas"], 2);
    let request = WatchRequest {
        cluster: Some(cluster()),
        kind: boats.clone(),
        start: WatchStart::After(world.machine.version()),
        ..WatchRequest::default()
    };
    let mut watch = world.machine.watch(request).unwrap();
    world.delete(&cluster_scoped(&definitions(), "boats.example.dev"), &DeleteOptions::default()).unwrap();
    world.act(|machine, moment| machine.follow_definitions(&cluster(), moment));
    let events = world.machine.poll(&mut watch, 9);
    assert!(matches!(events.as_slice(), [WatchEvent::Deleted(_)]), "{events:?}");
    assert_refused(world.machine.get(&cluster_scoped(&definitions(), "boats.example.dev")), 404, "NotFound");
    assert_refused(world.machine.get(&key(&boats, "a")), 404, "NotFound");
}

#[test]
fn dependents_go_after_before_or_not_at_all() {
    let all = [(Propagation::Background, 0), (Propagation::Foreground, 0), (Propagation::Orphan, 1)];
    // As trees, and at rest.
    for ((propagation, left), awake) in all.into_iter().flat_map(|one| [(one, None), (one, Some(0))]) {
        let mut world = World::with(Settings { awake, ..Settings::default() });
        let owner = world.create(&config_maps(), config_map("owner", json!({}))).unwrap().object;
        let mut dependent = config_map("dependent", json!({}));
        dependent["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid.to_string(), "blockOwnerDeletion": true
        }]);
        world.create(&config_maps(), dependent).unwrap();
        let mut kept = config_map("kept", json!({}));
        let lone = world.create(&config_maps(), config_map("lone", json!({}))).unwrap().object;
        kept["metadata"]["ownerReferences"] = json!([
            { "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid.to_string() },
            { "apiVersion": "v1", "kind": "ConfigMap", "name": "lone", "uid": lone.uid.to_string() }
        ]);
        world.create(&config_maps(), kept).unwrap();
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        world.delete(&key(&config_maps(), "owner"), &options).unwrap();
        for round in 0.. {
            assert!(round < 10, "garbage collection does not settle");
            if world.act(|machine, moment| machine.collect_garbage(&cluster(), moment)) == 0 {
                break;
            }
        }
        let names: Vec<_> =
            world.list(&config_maps()).iter().map(|object| object.key.name.to_string()).collect();
        assert_eq!(
            names.iter().filter(|name| *name == "dependent").count(),
            left,
            "{propagation:?}: {names:?}"
        );
        assert!(!names.contains(&"owner".to_owned()), "{propagation:?}: {names:?}");
        assert!(names.contains(&"kept".to_owned()), "one owner is enough: {propagation:?}: {names:?}");
    }
}

/// However many dependents there are: no round takes long, and in the end those go that have to, and no other.
#[test]
fn many_dependents_are_followed_in_rounds_none_of_which_is_long() {
    const MANY: usize = 1_200;
    for (propagation, left) in
        [(Propagation::Background, 0), (Propagation::Foreground, 0), (Propagation::Orphan, MANY)]
    {
        let mut world = World::new();
        let owner = world.create(&config_maps(), config_map("owner", json!({}))).unwrap().object;
        let other = world.create(&config_maps(), config_map("other", json!({}))).unwrap().object;
        let owned_by = |name: &str, uid: &mailboat_object::Uid| {
            let mut body = config_map(name, json!({}));
            body["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": uid.to_string(), "blockOwnerDeletion": true
            }]);
            body
        };
        for number in 0..MANY {
            world.create(&config_maps(), owned_by(&format!("gone-{number}"), &owner.uid)).unwrap();
        }
        for number in 0..10 {
            world.create(&config_maps(), owned_by(&format!("kept-{number}"), &other.uid)).unwrap();
        }
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        world.delete(&key(&config_maps(), "owner"), &options).unwrap();
        let mut rounds = Vec::new();
        loop {
            let done = world.act(|machine, moment| machine.collect_garbage(&cluster(), moment));
            if done == 0 {
                break;
            }
            rounds.push(done);
        }
        assert!(rounds.iter().all(|done| *done <= 500), "{propagation:?}: {rounds:?}");
        let names: Vec<_> =
            world.list(&config_maps()).iter().map(|object| object.key.name.to_string()).collect();
        let count = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
        assert_eq!((count("gone-"), count("kept-")), (left, 10), "{propagation:?}: {rounds:?}");
        assert_eq!((count("owner"), count("other")), (0, 1), "{propagation:?}: {rounds:?}");
    }
}

#[test]
fn an_object_is_kept_by_owners_that_stand_where_it_says() {
    let mut world = World::new();
    let owner = world.create(&config_maps(), config_map("owner", json!({}))).unwrap().object;
    let mut held = config_map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.dev/hold"]);
    let held = world.create(&config_maps(), held).unwrap().object;
    world.delete(&held.key, &DeleteOptions::default()).unwrap();
    let reference = |kind: &str, name: &str, uid: &str| json!({ "apiVersion": "v1", "kind": kind, "name": name, "uid": uid });
    let (right, going) = (owner.uid.to_string(), held.uid.to_string());
    let stands = reference("ConfigMap", "owner", &right);
    for (number, (owners, kept)) in [
        (json!([]), true),
        (json!([stands]), true),
        (json!([reference("ConfigMap", "owner", "another")]), false),
        (json!([reference("ConfigMap", "gone", &right)]), false),
        (json!([reference("Secret", "owner", &right)]), false),
        (json!([reference("ConfigMap", "held", &going)]), false),
        (json!([stands, reference("ConfigMap", "gone", "gone")]), false),
    ]
    .into_iter()
    .enumerate()
    {
        let mut dependent = config_map(&format!("dependent-{number}"), json!({}));
        dependent["metadata"]["ownerReferences"] = owners.clone();
        let dependent = world.create(&config_maps(), dependent).unwrap().object;
        assert_eq!(world.machine.is_kept_by_owners(&dependent), kept, "{owners}");
    }
    let before = world.machine.version();
    world.act(|machine, moment| machine.collect_garbage(&cluster(), moment));
    let left: Vec<_> = world.list(&config_maps()).iter().map(|object| object.key.name.to_string()).collect();
    assert!(
        ["dependent-0", "dependent-1"].iter().all(|kept| left.iter().any(|name| name == kept)),
        "{left:?}"
    );
    assert!(world.machine.version() > before, "the others were garbage, or had something to let go of");
}
