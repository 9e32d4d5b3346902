//! What comes back: status, and why a slot stands as it stands.

use mailboat_engine::want::StatusReturn;
use mailboat_object::key::Version;
use mailboat_object::wire::Part;

use crate::prelude::*;
use crate::roles::returning;

#[test]
fn h23_a_status_comes_back_to_the_source_and_does_not_chase_itself() {
    let mut world = world();
    let (mailbox, edge) =
        (key("tenant", "configmaps", "till", "pos"), key("florin", "configmaps", "till", "pos"));
    world.put(&mailbox, config_map("1"));
    configure(&mut world, edge_syncer("s", "tenant", FLORIN));
    known(&mut world);
    world.run();
    let mut ready = world.object(&edge).unwrap().clone();
    ready["status"] = json!({ "ready": 3 });
    world.put(&edge, ready);
    world.run();
    assert_eq!(world.object(&mailbox).unwrap()["status"], json!({ "ready": 3 }));
    written(&mut world);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new(), "H23: a status does not chase itself");
}

#[test]
fn a_status_that_is_refused_is_tried_rarely_and_comes_back_when_it_is_not() {
    let mut world = world();
    let mailbox = key("tenant", "configmaps", "till", "pos");
    world.put(&mailbox, config_map("1"));
    configure(&mut world, edge_syncer("s", "tenant", FLORIN));
    known(&mut world);
    world.run();
    world.servers.get_mut(&mailbox.cluster).unwrap().refuses = Some("1");
    let mut ready = world.object(&copy()).unwrap().clone();
    ready["status"] = json!({ "ready": 3 });
    world.put(&copy(), ready);
    world.run_for(600_000);
    let tries = world.servers[&mailbox.cluster].refusals;
    assert!((2..30).contains(&tries), "{tries} tries in ten minutes");
    world.servers.get_mut(&mailbox.cluster).unwrap().refuses = None;
    world.run_for(120_000);
    assert_eq!(world.object(&mailbox).unwrap()["status"], json!({ "ready": 3 }));
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled));
}

#[test]
fn status_comes_back_into_the_object_itself_where_its_kind_has_no_subresource() {
    for (how, part) in [(StatusReturn::Inline, Part::Whole), (StatusReturn::Subresource, Part::Status)] {
        let mut world = world();
        let (mailbox, edge) = (key("tenant", "configmaps", "till", "pos"), copy());
        world.put(&mailbox, config_map("1"));
        configure(&mut world, returning("s", "tenant", FLORIN, how));
        known(&mut world);
        world.run();
        written(&mut world);
        let mut ready = world.object(&edge).unwrap().clone();
        ready["status"] = json!({ "ready": 3 });
        world.put(&edge, ready);
        world.run();
        let parts: Vec<Part> = world.writes.iter().map(|call| call.part).collect();
        assert_eq!(parts, [part], "{how:?}");
        let object = world.object(&mailbox).unwrap();
        assert_eq!(
            (&object["status"], &object["data"]),
            (&json!({ "ready": 3 }), &json!({ "a": "1" })),
            "{how:?}"
        );
        written(&mut world);
        world.run_for(60_000);
        assert_eq!(written(&mut world), Vec::<String>::new(), "{how:?}: a status does not chase itself");
    }
}

#[test]
fn status_that_was_taken_away_while_none_was_wanted_comes_back_when_it_is() {
    let mut world = world();
    let (mailbox, edge) =
        (key("tenant", "configmaps", "till", "pos"), key("florin", "configmaps", "till", "pos"));
    world.put(&mailbox, config_map("1"));
    let configured = |world: &mut World, status: StatusReturn| {
        configure(world, returning("s", "tenant", FLORIN, status));
        known(world);
        world.run();
    };
    configured(&mut world, StatusReturn::Subresource);
    let mut ready = world.object(&edge).unwrap().clone();
    ready["status"] = json!({ "ready": 3 });
    world.put(&edge, ready);
    world.run();
    configured(&mut world, StatusReturn::Off);
    let mut bare = world.object(&mailbox).unwrap().clone();
    bare.as_object_mut().unwrap().remove("status");
    world.put(&mailbox, bare);
    world.run();
    assert!(world.object(&mailbox).unwrap().get("status").is_none(), "nothing is to come back");
    configured(&mut world, StatusReturn::Subresource);
    assert_eq!(world.object(&mailbox).unwrap()["status"], json!({ "ready": 3 }));
}

#[test]
fn every_slot_can_be_explained() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("a value that must not be shown"));
    configure(&mut world, translator("p1", &[FLORIN]));
    configure(&mut world, translator("p2", &[FLORIN]));
    known(&mut world);
    let explain =
        |world: &World| world.engine.explain(world.now, &world.store, &copy).map(|told| told.to_string());
    assert_eq!(explain(&world), None);
    world.run();
    let told = explain(&world).unwrap();
    for part in [
        "wanted by p1",
        "also wanted by p2",
        "selected by spec.downsync[0]",
        "our copy stands there",
        "settled",
        "last written by us at",
    ] {
        assert!(told.contains(part), "{part:?} is not said:\n{told}");
    }
    assert!(!told.contains("must not be shown"), "{told}");
    world.servers.get_mut(&copy.cluster).unwrap().link = Link::Away;
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("2"));
    world.run_for(5_000);
    let told = explain(&world).unwrap();
    assert!(told.contains("its cluster cannot be reached") && told.contains("connection refused"), "{told}");
}

#[test]
fn who_else_wants_a_slot_is_told_though_it_stands_as_before() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.engine.notices();
    let wanting = |world: &World| -> Vec<String> {
        world.engine.claims(&copy).map(|(route, _)| route.0.to_string()).collect()
    };
    let told = |world: &mut World| world.engine.notices().iter().any(|notice| notice.slot == copy);
    assert_eq!(wanting(&world), ["p1"]);
    configure(&mut world, translator("p2", &[FLORIN]));
    world.run();
    assert!(told(&mut world), "another wants it");
    assert_eq!(wanting(&world), ["p1", "p2"]);
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run();
    assert!(told(&mut world), "one wants it no more");
    assert_eq!(wanting(&world), ["p2"]);
}

#[test]
fn a_call_says_which_change_it_carries_on_and_none_that_was_carried_on_before() {
    let mut world = world();
    let (mailbox, edge) = (key("tenant", "configmaps", "till", "pos"), copy());
    let version = |world: &World, of: &Key| -> Version {
        Version(world.object(of).unwrap()["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
    };
    world.put(&mailbox, config_map("1"));
    configure(&mut world, edge_syncer("s", "tenant", FLORIN));
    known(&mut world);
    world.run();
    let first = version(&world, &mailbox);
    assert_eq!(std::mem::take(&mut world.carried), [(mailbox.clone(), first)]);
    // Another hand rewrites the copy, and somebody deletes it: neither is a change of its source.
    let mut theirs = world.object(&edge).unwrap().clone();
    theirs["data"]["a"] = json!("theirs");
    world.put(&edge, theirs);
    world.run();
    world.remove(&edge);
    world.run();
    assert_eq!(world.object(&edge).unwrap()["data"]["a"], "1");
    assert_eq!(std::mem::take(&mut world.carried), []);
    // What is refused, and so rests, is the change that it was; the next one is itself.
    world.servers.get_mut(&edge.cluster).unwrap().refuses = Some("refused");
    world.put(&mailbox, config_map("refused"));
    world.run_for(100_000);
    let refused = version(&world, &mailbox);
    world.put(&mailbox, config_map("2"));
    world.run_for(10);
    assert_eq!(world.object(&edge).unwrap()["data"]["a"], "2");
    let last = version(&world, &mailbox);
    let carried = std::mem::take(&mut world.carried);
    let mut versions: Vec<Version> = carried.into_iter().map(|(_, version)| version).collect();
    versions.dedup();
    assert_eq!(versions, [refused, last]);
    // Status that comes back is a change of the copy.
    let mut ready = world.object(&edge).unwrap().clone();
    ready["status"] = json!({ "ready": 1 });
    world.put(&edge, ready);
    world.run();
    let told = version(&world, &edge);
    assert_eq!(std::mem::take(&mut world.carried), [(edge, told)]);
}

#[test]
fn why_something_is_refused_held_or_waits_is_told_as_data_and_in_words() {
    let told = |world: &World, slot: &Key| world.engine.explain(world.now, &world.store, slot).unwrap();
    // Its server refuses it: in that server's words, how often, and when it is tried again.
    let mut world = world();
    world.put(&source(), config_map("refused"));
    world.servers.get_mut(&copy().cluster).unwrap().refuses = Some("refused");
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run_for(5_000);
    // A moment before it is tried again.
    world.now -= 1;
    let refused = told(&world, &copy());
    assert_eq!(refused.verdict, Verdict::Refused(Refusal::Rejected));
    assert!(refused.fault.as_deref().is_some_and(|fault| fault.contains("immutable")), "{refused}");
    assert!(refused.attempts > 1 && refused.rests > 0 && refused.delivered_at.is_none(), "{refused}");
    let text = refused.to_string();
    for part in
        ["refused: its server looked at it", "in a row: data.a", "tried again in", "nothing stands there"]
    {
        assert!(text.contains(part), "{part:?} is not said:\n{text}");
    }
    // Delivered, and changed on the way: when, and where.
    world.servers.get_mut(&copy().cluster).unwrap().refuses = None;
    world.put(&key("workload", "customizers", "", "c"), json!({ "value": "custom" }));
    let mut customized = config_map("1");
    customized["metadata"]["annotations"] = json!({ "customizer": "c" });
    world.put(&source(), customized);
    world.run();
    let delivered = told(&world, &copy());
    assert_eq!(delivered.verdict, Verdict::Settled, "{delivered}");
    assert!(delivered.delivered_at.is_some() && delivered.fault.is_none(), "{delivered}");
    assert!(delivered.changed.contains(&"data.custom".to_owned()), "{delivered}");
    assert_eq!(delivered.claims[0].by.as_str(), "spec.downsync[0]");
    // It waits for what it is made from.
    world.remove(&key("workload", "customizers", "", "c"));
    world.run();
    let waiting = told(&world, &copy());
    assert!(waiting.to_string().contains("waiting: its customizer is missing"), "{waiting}");
    assert!(matches!(&waiting.verdict, Verdict::Waiting(Wait::Undecided(hold)) if hold.on.is_some()));
    // It would go with too much else.
    let mut world = self::world();
    for n in 0..20 {
        world.put(&key("workload", "configmaps", "till", &format!("c{n:02}")), config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    configure(&mut world, translator("p1", &[]));
    world.run();
    let held = told(&world, &key("florin", "configmaps", "till", "c07"));
    let Verdict::Held(change) = &held.verdict else { panic!("{held}") };
    assert!(held.to_string().contains(&format!("confirm change {change}")), "{held}");
    assert!(held.to_string().contains("wanted by nobody") && held.to_string().contains("no longer selected"));
}
