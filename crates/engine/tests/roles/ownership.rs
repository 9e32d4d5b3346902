//! What is ours, what is not, and what is done about either.

use crate::prelude::*;

#[test]
fn a_foreign_object_is_never_touched_and_is_reported() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    let foreign = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "theirs": "1" } });
    world.put(&copy, foreign);
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert_eq!(world.object(&copy).unwrap()["data"], json!({ "theirs": "1" }));
    assert_eq!(world.engine.verdict(&copy), Some(&Verdict::Refused(Refusal::Foreign)));
    assert_eq!(written(&mut world), Vec::<String>::new());
    world.remove(&copy);
    world.run();
    assert_eq!(world.object(&copy).unwrap()["data"], json!({ "a": "1" }), "the place is free now");
}

#[test]
fn what_a_first_delivery_meets_unseen_is_let_go_at_once() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    // It appears on the server, and its event has not arrived when the delivery is sent.
    world.put(&copy, json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "theirs": "1" } }));
    let late = std::mem::take(&mut world.servers.get_mut(&copy.cluster).unwrap().events);
    world.run_for(1);
    assert_eq!(world.object(&copy).unwrap()["data"], json!({ "theirs": "1" }), "our field was let go");
    assert!(world.object(&copy).unwrap()["metadata"]["annotations"]["mailboat.dev/mark"].is_null());
    let events = &mut world.servers.get_mut(&copy.cluster).unwrap().events;
    let ours = std::mem::replace(events, late);
    events.extend(ours);
    world.run();
    assert_eq!(world.engine.verdict(&copy), Some(&Verdict::Refused(Refusal::Foreign)));
}

#[test]
fn renamed_configuration_deletes_nothing() {
    let mut world = world();
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("old-name", &[FLORIN]));
    known(&mut world);
    world.run();
    written(&mut world);
    world.engine.configure(&world.store, &RouteId(Name::new("old-name")), None);
    configure(&mut world, translator("new-name", &[FLORIN]));
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new(), "H8");
}

#[test]
fn a_copy_of_ours_that_a_view_hides_is_never_let_go() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    // The view loses sight of the copy, though it still stands: kcp sends such events when a claim is rejected.
    let standing = world.object(&copy).unwrap().clone();
    let mut hidden = standing.clone();
    let later = standing["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() + 1;
    hidden["metadata"]["resourceVersion"] = json!(later.to_string());
    let server = world.servers.get_mut(&copy.cluster).unwrap();
    server.events.push((copy.clone(), "DELETED", hidden));
    written(&mut world);
    world.run_for(600_000);
    let calls = written(&mut world);
    assert!(calls.len() < 50, "{} calls in ten minutes", calls.len());
    assert_eq!(world.object(&copy).unwrap()["data"], standing["data"], "our own copy was emptied");
    assert!(!world.object(&copy).unwrap()["metadata"]["annotations"].is_null(), "our own copy lost its mark");
}
