//! Maps that become empty, on servers of custom resources, which make null of them and refuse that.

use mailboat_engine::route::Sources;
use mailboat_object::key::ClusterId;
use mailboat_store::interest::PlaceId;

use crate::prelude::*;

const BOATS: &str = "boats.example.org";

fn boat(spec: &Value) -> Value {
    json!({ "apiVersion": "example.org/v1", "kind": "Boat", "spec": spec })
}

fn harbor() -> (World, Key, Key) {
    let mut world = world();
    for cluster in CLUSTERS {
        world.follow(cluster, BOATS);
    }
    let mut route = edge_syncer("s", "tenant", FLORIN);
    route.head = route.head.reading([Sources {
        place: PlaceId::new("tenant"),
        cluster: Some(ClusterId::new("tenant")),
        kind: key("tenant", BOATS, "", "").kind,
    }]);
    route.project = Box::new(|source, to, _| {
        let mut body = json!({ "apiVersion": "example.org/v1", "kind": "Boat" });
        if let Some(spec) = source.get(&["spec"]) {
            body["spec"] = spec.to_value();
        }
        Ok(vec![(Key { cluster: to.cluster.clone(), ..source.key.clone() }, body)])
    });
    configure(&mut world, route);
    known(&mut world);
    (world, key("tenant", BOATS, "till", "pos"), key("florin", BOATS, "till", "pos"))
}

#[test]
fn what_is_left_empty_goes_in_the_copy_as_well() {
    let full = json!({ "name": "pos", "data": { "a": "1", "b": { "c": "2" } } });
    for (why, less) in [
        ("the map is empty", json!({ "name": "pos", "data": {} })),
        ("the map is left out", json!({ "name": "pos" })),
        ("a map in it is left out", json!({ "name": "pos", "data": { "a": "1" } })),
        ("a map in it is empty", json!({ "name": "pos", "data": { "a": "1", "b": {} } })),
        ("all of it is empty", json!({})),
    ] {
        let (mut world, source, copy) = harbor();
        world.put(&source, boat(&full));
        world.run();
        assert_eq!(world.object(&copy).unwrap()["spec"], full, "{why}");
        written(&mut world);
        world.put(&source, boat(&less));
        let before = world.now;
        world.run_for(10);
        assert!(world.now - before < 100, "{why}: it paused for {} ms", world.now - before);
        let found = &world.object(&copy).unwrap()["spec"];
        let nothing = |value: &Value| value.is_null() || *value == json!({});
        let alike = |one: &Value, other: &Value| one == other || (nothing(one) && nothing(other));
        for member in ["name", "data"] {
            assert!(alike(&found[member], &less[member]), "{why}: {found}");
        }
        assert!(nothing(&found["data"]["b"]), "{why}: {found}");
        assert_eq!(world.engine.verdict(&copy), Some(&Verdict::Settled), "{why}: {}", explain(&world, &copy));
        assert_eq!(written(&mut world).len(), 2, "{why}: taken out, applied");
        world.run_for(120_000);
        assert_eq!(written(&mut world), [""; 0], "{why}: it goes on");
        // What comes back comes back.
        world.put(&source, boat(&full));
        world.run();
        assert_eq!(world.object(&copy).unwrap()["spec"], full, "{why}");
        assert_eq!(written(&mut world).len(), 1, "{why}");
    }
}

#[test]
fn what_another_put_there_stays() {
    let (mut world, source, copy) = harbor();
    world.put(&source, boat(&json!({ "data": { "a": "1" } })));
    world.run();
    let mut theirs = world.object(&copy).unwrap().clone();
    theirs["spec"]["data"]["theirs"] = json!("2");
    world.put(&copy, theirs);
    world.put(&source, boat(&json!({ "name": "pos" })));
    world.run();
    assert_eq!(world.object(&copy).unwrap()["spec"], json!({ "name": "pos", "data": { "theirs": "2" } }));
}

#[test]
fn what_is_refused_for_another_reason_is_looked_into_and_left_as_it_is() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    written(&mut world);
    world.servers.get_mut(&copy().cluster).unwrap().refuses = Some("refused");
    world.put(&source(), config_map("refused"));
    world.run_for(600_000);
    let server = &world.servers[&copy().cluster];
    assert!((2..30).contains(&server.refusals), "{} tries in ten minutes", server.refusals);
    assert!(server.gets <= server.refusals, "read {} times", server.gets);
    assert_eq!(written(&mut world), [""; 0]);
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Refused(Refusal::Rejected)));
    let told = world.engine.explain(world.now, &world.store, &copy()).unwrap();
    assert!(told.fault.unwrap().contains("immutable"), "in the server's words");
}
