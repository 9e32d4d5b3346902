//! The seam to whoever stores what is changed.

use std::sync::Arc;

use mailboat_machinery::machine::{Mark, Marks};
use mailboat_machinery::{
    Change, DeleteOptions, Flavor, Kind, ListRequest, ListVersion, Machine, Rules, Settings, StatusRules,
    Stored, Texts, WatchRequest, WatchStart, builtin,
};
use mailboat_object::{Key, KindId, LabelSelector, Name, Version};
use serde_json::json;

use crate::list_watch::told;
use crate::world::{World, boats, by, cluster, config_map, config_maps, key, of};

fn watch(start: WatchStart) -> WatchRequest {
    WatchRequest { cluster: Some(cluster()), kind: config_maps(), start, ..WatchRequest::default() }
}

fn kept() -> World {
    let mut world = World::new();
    world.machine.keep_changes();
    world
}

#[test]
fn changes_come_out_once_and_in_order() {
    let mut world = kept();
    world.create(&config_maps(), config_map("a", json!({}))).unwrap();
    world.merge(&key(&config_maps(), "a"), &json!({ "data": { "k": "v" } })).unwrap();
    world.delete(&key(&config_maps(), "a"), &mailboat_machinery::DeleteOptions::default()).unwrap();
    let changes = world.machine.take_changes();
    let shape = |change: &Arc<Change>| (change.version.0, !change.made(), !change.unmade());
    let shapes: Vec<_> = changes.iter().map(shape).collect();
    assert_eq!(shapes, [(2, false, true), (3, true, true), (4, true, false)]);
    assert!(world.machine.take_changes().is_empty());
}

#[test]
fn without_a_keeper_nothing_is_collected() {
    let mut world = World::new();
    world.create(&config_maps(), config_map("a", json!({}))).unwrap();
    assert!(world.machine.take_changes().is_empty());
    assert_eq!(world.machine.shown(), world.machine.version());
}

#[test]
fn watches_wait_for_what_is_not_yet_stored() {
    let mut world = kept();
    let mut open = world.machine.watch(watch(WatchStart::InitialEvents)).unwrap();
    assert_eq!(told(&world.machine.poll(&mut open, 99)), ["bookmark v1 true"]);
    world.create(&config_maps(), config_map("a", json!({}))).unwrap();
    world.create(&config_maps(), config_map("b", json!({}))).unwrap();
    let mut late = world.machine.watch(watch(WatchStart::Now)).unwrap();
    assert!(world.machine.poll(&mut open, 99).is_empty() && world.machine.poll(&mut late, 99).is_empty());
    world.machine.show(Version(2));
    assert_eq!(told(&world.machine.poll(&mut open, 99)), ["added a v2"]);
    assert!(world.machine.poll(&mut late, 99).is_empty(), "its list was taken at version 3");
    world.machine.show(Version(3));
    assert_eq!(told(&world.machine.poll(&mut open, 99)), ["added b v3"]);
    assert_eq!(told(&world.machine.poll(&mut late, 99)), ["added a v2", "added b v3"]);
}

#[test]
fn a_watch_does_not_wait_for_what_is_none_of_its_concern() {
    let mut world = kept();
    world.create(&config_maps(), config_map("a", json!({}))).unwrap();
    world.machine.show(Version(2));
    let boat = json!({ "apiVersion": "example.dev/v1", "kind": "Boat", "metadata": { "name": "other" } });
    world.create(&boats(), boat).unwrap();
    let mut open = world.machine.watch(watch(WatchStart::InitialEvents)).unwrap();
    assert_eq!(told(&world.machine.poll(&mut open, 99)), ["added a v2", "bookmark v2 true"]);
}

#[test]
fn what_could_not_be_stored_never_was() {
    let mut world = kept();
    world.create(&config_maps(), config_map("a", json!({ "k": "v" }))).unwrap();
    let stored = world.machine.take_changes();
    world.machine.show(stored.last().unwrap().version);
    let mut open = world.machine.watch(watch(WatchStart::Now)).unwrap();
    assert_eq!(told(&world.machine.poll(&mut open, 99)), ["added a v2"]);

    world.merge(&key(&config_maps(), "a"), &json!({ "data": { "k": "w" } })).unwrap();
    world.create(&config_maps(), config_map("b", json!({}))).unwrap();
    let mut doubtful = world.machine.watch(watch(WatchStart::Now)).unwrap();
    let refused = world.machine.take_changes();
    world.machine.retract(&refused);

    assert_eq!(world.machine.get(&key(&config_maps(), "a")).unwrap().body()["data"]["k"], "v");
    assert!(world.machine.get(&key(&config_maps(), "b")).is_err());
    assert!(world.machine.poll(&mut open, 99).is_empty());
    assert_eq!(told(&world.machine.poll(&mut doubtful, 99)), ["error 410 Expired"]);

    world.create(&config_maps(), config_map("c", json!({}))).unwrap();
    world.machine.show(world.machine.version());
    assert_eq!(told(&world.machine.poll(&mut open, 99)), ["added c v5"], "versions are not used again");
}

#[test]
fn a_server_comes_back_with_its_objects_and_without_its_history() {
    for flavor in [Flavor::Kubernetes, Flavor::Kcp] {
        let mut world = World::with(Settings { flavor, ..Settings::default() });
        let at = key(&config_maps(), "a");
        world.create(&config_maps(), config_map("a", json!({ "k": "v" }))).unwrap();
        let intent = config_map("a", json!({ "other": "w" }));
        world.apply(&at, "bob", false, &intent).unwrap();
        let object = world.machine.get(&at).unwrap();
        let read =
            |written: &[u8]| Stored::from_record(at.clone(), written, flavor, &mut Texts::default()).unwrap();
        let back = read(&object.to_record());
        assert_eq!(read(&object.to_json()).to_record(), object.to_record(), "as it was written before");
        assert_eq!(back.to_record(), object.to_record());
        let version = world.machine.version();
        let settings = Settings { flavor, ..Settings::default() };
        let mut restored = Machine::restored(settings, version, [back]);
        restored.serve(&cluster(), world.machine.kinds(&cluster()).cloned().collect::<Vec<_>>());
        world.machine = restored;

        assert_eq!(world.machine.get(&at).unwrap().to_json(), object.to_json());
        assert_eq!(world.machine.version(), version);
        assert!(!world.apply(&at, "bob", false, &intent).unwrap().changed, "owners came back too");
        let mut old = world.machine.watch(watch(WatchStart::After(Version(2)))).unwrap();
        assert_eq!(told(&world.machine.poll(&mut old, 99)), ["error 410 Expired"]);
        let mut fresh = world.machine.watch(watch(WatchStart::After(version))).unwrap();
        let body = config_map("b", json!({}));
        let created = world.act(|machine, moment| machine.create(&at, body, &by("alice"), moment)).unwrap();
        let told = told(&world.machine.poll(&mut fresh, 99));
        assert_eq!(told, [format!("added b v{}", created.object.version)]);
    }
}

#[test]
fn what_is_no_object_is_not_read() {
    for (json, why) in [
        ("{", "it has no metadata"),
        ("[]", "it has no metadata"),
        (r#"{"metadata":{"uid":"u"}}"#, "it has no resourceVersion"),
        (r#"{"metadata":{"resourceVersion":"1"}}"#, "it has no uid"),
        (r#"{"metadata":{"resourceVersion":"1","uid":"u","managedFields":[{}]}}"#, "its managedFields make"),
        ("\u{1}\u{7}", "its record makes no sense"),
    ] {
        let read = Stored::from_record(
            key(&config_maps(), "a"),
            json.as_bytes(),
            Flavor::Kubernetes,
            &mut Texts::default(),
        );
        let said = read.unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn what_rests_reads_lists_watches_and_changes_as_what_does_not() {
    let seen = |awake: Option<usize>| {
        let settings = Settings { awake, flavor: Flavor::Kcp, ..Settings::default() };
        let mut world = World::with(settings);
        for number in 0..20 {
            let mut map = config_map(&format!("map-{number:02}"), json!({ "k": "v" }));
            map["metadata"]["labels"] = json!({ "odd": (number % 2 == 1).to_string() });
            map["metadata"]["annotations"] = json!({ "note": "a \"quoted\" word" });
            map["metadata"]["finalizers"] =
                if number == 7 { json!(["example.com/hold"]) } else { json!(null) };
            world.create(&config_maps(), map).unwrap();
        }
        let from = world.machine.version();
        for name in ["map-03", "map-07", "map-12"] {
            let patch = json!({ "data": { "k": "changed" } });
            let at = key(&config_maps(), name);
            world.merge(&at, &patch).unwrap();
        }
        for name in ["map-07", "map-08"] {
            world.delete(&key(&config_maps(), name), &DeleteOptions::default()).unwrap();
        }
        let all = of(&config_maps());
        let odd = ListRequest { labels: "odd=true".parse().unwrap(), ..all.clone() };
        let past = ListRequest { version: ListVersion::Exact(from), ..all.clone() };
        let listed = [all, odd, past].map(|request| {
            let list = world.machine.list(&request).unwrap();
            list.items.iter().map(|object| object.to_value()).collect::<Vec<_>>()
        });
        let request = WatchRequest {
            cluster: Some(cluster()),
            kind: config_maps(),
            start: WatchStart::After(from),
            ..WatchRequest::default()
        };
        let mut watch = world.machine.watch(request).unwrap();
        let kind = world.machine.kind(&cluster(), &config_maps()).unwrap().clone();
        let events = world.machine.poll(&mut watch, 100);
        let events: Vec<String> = events.iter().map(|event| event.to_json(&kind)).collect();
        (listed, events)
    };
    let awake = seen(None);
    assert_eq!(awake.0[0].len(), 19);
    assert_eq!(awake.0[2].len(), 20);
    for limit in [0, 1, 5] {
        assert_eq!(seen(Some(limit)), awake, "{limit}");
    }
}

#[test]
fn a_kind_is_served_as_if_what_could_not_be_stored_had_never_been() {
    let mut world = World::kcp();
    world.machine.keep_changes();
    let definitions = KindId::new("apiextensions.k8s.io", "customresourcedefinitions");
    let ships = KindId::new("example.org", "ships");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "ships.example.org" },
        "spec": {
            "group": "example.org", "scope": "Namespaced", "names": { "plural": "ships", "kind": "Ship" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    });
    let kind = builtin::kind_without_schema(definitions.clone(), "v1", "CustomResourceDefinition", false);
    let kind = Kind { rules: Rules { status: Some(StatusRules::custom()), ..kind.rules.clone() }, ..kind };
    world.machine.serve(&cluster(), [Arc::new(kind)]);
    assert!(world.machine.take_changes().is_empty(), "what no change goes with is none");
    let at = Key { namespace: Name::EMPTY, ..key(&definitions, "ships.example.org") };
    let defined = |world: &mut World| {
        world.act(|machine, moment| machine.create(&at, definition.clone(), &by("test"), moment)).unwrap();
        world.act(|machine, moment| machine.follow_definitions(&cluster(), moment));
        world.machine.take_changes()
    };
    let refused = defined(&mut world);
    assert!(world.machine.kind(&cluster(), &ships).is_some());
    world.machine.retract(&refused);
    assert!(world.machine.kind(&cluster(), &ships).is_none(), "its definition never was");
    let stored = defined(&mut world);
    world.machine.show(stored.last().unwrap().version);
    world
        .create(
            &ships,
            json!({ "apiVersion": "example.org/v1", "kind": "Ship", "metadata": { "name": "a" } }),
        )
        .unwrap();
    let mark = Mark {
        label: Name::new("claimed.internal.apis.kcp.io/x"),
        value: Name::new("y"),
        objects: LabelSelector::everything(),
    };
    let marks = Arc::new(Marks::from([(ships.clone(), vec![mark])]));
    let made = world.machine.take_changes();
    world.machine.show(made.last().unwrap().version);
    // Its deletion cannot be stored, neither at first nor when it ends.
    world.act(|machine, moment| machine.delete(&at, &DeleteOptions::default(), moment)).unwrap();
    let first = world.machine.take_changes();
    world.machine.mark(&cluster(), &marks);
    for _ in 0..3 {
        world.act(|machine, moment| machine.follow_definitions(&cluster(), moment));
    }
    assert!(world.machine.kind(&cluster(), &ships).is_none(), "it is gone");
    let rest = world.machine.take_changes();
    let all: Vec<_> = first.into_iter().chain(rest).collect();
    world.machine.retract(&all);
    assert_eq!(world.list(&ships).len(), 1, "it is there again, and served");
    assert!(world.machine.marks(&cluster()).unwrap().is_empty());
}
