//! One engine for four roles: a translator, an edge syncer, a workload syncer and a publisher with related
//! objects, as skeleton routes over a small server, without a special case for any of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod roles;
mod server;
mod world;

use std::sync::Arc;

use mailboat_engine::plan::{Refusal, Verdict, Wait};
use mailboat_engine::route::{Route, RouteId};
use mailboat_object::key::Name;
use mailboat_object::wire::Verb;
use serde_json::{Value, json};

use crate::roles::{Skeleton, edge_syncer, publisher, translator, workload_syncer};
use crate::server::key;
use crate::world::World;

// Destinations are numbered as the clusters are named.
const CLUSTERS: [&str; 4] = ["florin", "guilder", "tenant", "workload"];
const KINDS: [&str; 4] = ["configmaps", "customizers", "namespaces", "secrets"];
const FLORIN: u32 = 0;
const GUILDER: u32 = 1;

fn world() -> World {
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

fn configure(world: &mut World, route: Skeleton) {
    let id = route.id().clone();
    world.engine.configure(&world.store, &id, Some(Arc::new(route)));
}

fn known(world: &mut World) {
    world.engine.configuration_known(Some(1));
}

fn config_map(value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "labels": { "place": "yes" } }, "data": { "a": value } })
}

fn written(world: &mut World) -> Vec<String> {
    std::mem::take(&mut world.writes).iter().map(|call| format!("{:?} {}", call.verb, call.key)).collect()
}

#[test]
fn a_source_reaches_all_its_destinations_and_then_nothing_is_written() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    world.put(&source, config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    for edge in ["florin", "guilder"] {
        let copy = world.object(&key(edge, "configmaps", "till", "pos")).expect("the copy");
        assert_eq!(copy["data"], json!({ "a": "1" }), "{copy}");
    }
    assert_eq!(written(&mut world).len(), 2);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new());
    world.put(&source, config_map("2"));
    world.run();
    assert_eq!(written(&mut world).len(), 2);
    assert_eq!(world.object(&key("florin", "configmaps", "till", "pos")).unwrap()["data"]["a"], "2");
}

#[test]
fn a_restart_with_nothing_changed_writes_nothing() {
    let mut world = world();
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new());
}

#[test]
fn a_field_taken_out_of_the_source_goes_from_the_copy_and_a_foreign_one_stays() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    let copy = key("florin", "configmaps", "till", "pos");
    let mut object = config_map("1");
    object["data"]["b"] = json!("x");
    world.put(&source, object);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    let mut theirs = world.object(&copy).unwrap().clone();
    theirs["data"]["local"] = json!("edge");
    world.put(&copy, theirs);
    world.put(&source, config_map("1"));
    world.run();
    assert_eq!(world.object(&copy).unwrap()["data"], json!({ "a": "1", "local": "edge" }));
}

#[test]
fn handing_over_between_placements_writes_nothing() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    configure(&mut world, translator("p2", &[FLORIN]));
    known(&mut world);
    world.run();
    assert_eq!(written(&mut world).len(), 1);
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new());
    assert!(world.object(&copy).is_some());
    world.engine.configure(&world.store, &RouteId(Name::new("p2")), None);
    world.run();
    assert!(world.object(&copy).is_none(), "nobody wants it any more");
}

#[test]
fn a_customizers_change_reaches_its_readers_only() {
    let mut world = world();
    let customizer = key("workload", "customizers", "", "colors");
    world.put(&customizer, json!({ "apiVersion": "v1", "kind": "Customizer", "value": "red" }));
    let mut custom = config_map("1");
    custom["metadata"]["annotations"] = json!({ "customizer": "colors" });
    world.put(&key("workload", "configmaps", "till", "custom"), custom);
    world.put(&key("workload", "configmaps", "till", "plain"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    assert_eq!(
        world.object(&key("florin", "configmaps", "till", "custom")).unwrap()["data"]["custom"],
        "red"
    );
    written(&mut world);
    world.put(&customizer, json!({ "apiVersion": "v1", "kind": "Customizer", "value": "blue" }));
    world.run();
    let writes = written(&mut world);
    assert_eq!(writes.len(), 2, "{writes:?}");
    assert!(writes.iter().all(|write| write.contains("till/custom")), "{writes:?}");
    assert_eq!(
        world.object(&key("guilder", "configmaps", "till", "custom")).unwrap()["data"]["custom"],
        "blue"
    );
}

#[test]
fn what_cannot_be_customized_is_held_and_never_sent_by_half() {
    let mut world = world();
    let mut custom = config_map("1");
    custom["metadata"]["annotations"] = json!({ "customizer": "missing" });
    world.put(&key("workload", "configmaps", "till", "custom"), custom);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert!(world.object(&key("florin", "configmaps", "till", "custom")).is_none());
    let customizer = key("workload", "customizers", "", "missing");
    world.put(&customizer, json!({ "apiVersion": "v1", "kind": "Customizer", "value": "red" }));
    world.run();
    let copy = key("florin", "configmaps", "till", "custom");
    assert_eq!(world.object(&copy).unwrap()["data"]["custom"], "red");
    // H14: its customizer goes first; the copy stays as it is until that is decided.
    world.remove(&customizer);
    written(&mut world);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new());
    assert!(matches!(world.engine.verdict(&copy), Some(Verdict::Waiting(Wait::Undecided(_)))));
}

#[test]
fn a_deleted_source_is_looked_at_afresh_and_then_withdrawn() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&source, config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.remove(&source);
    world.run();
    assert!(world.object(&copy).is_none());
    assert!(written(&mut world).last().unwrap().starts_with("delete("));
    assert_eq!(world.engine.slot_count(), 0, "nothing is left behind");
}

#[test]
fn a_source_that_goes_with_its_workspace_withdraws_nothing() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&source, config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.workspace_lives = false;
    world.remove(&source);
    world.run_for(300_000);
    assert!(world.object(&copy).is_some(), "deleted by a dying workspace");
}

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
fn another_hand_on_our_fields_is_put_right() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    let mut theirs = world.object(&copy).unwrap().clone();
    theirs["data"]["a"] = json!("edited");
    world.put(&copy, theirs);
    world.run();
    assert_eq!(world.object(&copy).unwrap()["data"]["a"], "1");
    world.remove(&copy);
    world.run();
    assert_eq!(world.object(&copy).unwrap()["data"]["a"], "1", "a deleted copy is made anew");
}

#[test]
fn status_comes_back_to_the_source() {
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
fn a_finalizer_holds_the_source_until_its_copy_is_gone() {
    let mut world = world();
    let source = key("tenant", "configmaps", "till", "pos");
    let copy = key("florin", "configmaps", "mapped-till", "pos");
    world.put(
        &key("florin", "namespaces", "", "mapped-till"),
        json!({ "apiVersion": "v1", "kind": "Namespace" }),
    );
    world.put(&source, config_map("1"));
    configure(&mut world, workload_syncer("w", "tenant", FLORIN));
    known(&mut world);
    world.run();
    assert!(world.object(&copy).is_some());
    assert_eq!(world.object(&source).unwrap()["metadata"]["finalizers"], json!(["mailboat.dev/test"]));
    world.remove(&source);
    assert!(world.object(&source).is_some(), "it waits for us");
    world.run();
    assert!(world.object(&copy).is_none());
    assert!(world.object(&source).is_none(), "and is gone when its copy is");
}

#[test]
fn a_missing_namespace_is_made_first() {
    let mut world = world();
    world.put(&key("tenant", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, workload_syncer("w", "tenant", FLORIN));
    known(&mut world);
    world.run();
    assert!(world.object(&key("florin", "namespaces", "", "mapped-till")).is_some());
    assert!(world.object(&key("florin", "configmaps", "mapped-till", "pos")).is_some());
}

#[test]
fn two_tenants_with_equal_names_do_not_meet_and_related_objects_come_along() {
    let mut world = world();
    for tenant in ["tenant", "workload"] {
        world.put(&key(tenant, "configmaps", "till", "db"), config_map(tenant));
    }
    world.put(
        &key("tenant", "secrets", "till", "db"),
        json!({ "apiVersion": "v1", "kind": "Secret", "data": { "k": "v" } }),
    );
    configure(&mut world, publisher("t1", "tenant", GUILDER));
    configure(&mut world, publisher("t2", "workload", GUILDER));
    known(&mut world);
    world.run();
    for tenant in ["tenant", "workload"] {
        let copy = key("guilder", "configmaps", "till", &format!("{tenant}-db"));
        assert_eq!(world.object(&copy).unwrap()["data"]["a"], tenant);
    }
    let related = key("guilder", "secrets", "till", "tenant-related");
    assert_eq!(world.object(&related).unwrap()["data"], json!({ "k": "v" }));
    assert!(world.object(&key("guilder", "secrets", "till", "workload-related")).is_none());
    // The related object goes: so does its copy, and the primary stays.
    world.remove(&key("tenant", "secrets", "till", "db"));
    world.run();
    assert!(world.object(&related).is_none());
    assert!(world.object(&key("guilder", "configmaps", "till", "tenant-db")).is_some());
}

#[test]
fn configuration_that_shrank_while_down_withdraws_what_it_must_and_asks_when_that_is_much() {
    let mut world = world();
    for n in 0..20 {
        world.put(&key("workload", "configmaps", "till", &format!("c{n:02}")), config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    world.run();
    let copy = key("guilder", "configmaps", "till", "c00");
    assert!(world.object(&copy).is_some(), "the configuration is not known as a whole yet");
    known(&mut world);
    world.run();
    let Some(Verdict::Held(change)) = world.engine.verdict(&copy).cloned() else {
        panic!("not held: {:?}", world.engine.verdict(&copy));
    };
    assert_eq!(written(&mut world), Vec::<String>::new());
    let scope = mailboat_engine::breaker::ScopeId(Name::new("unclaimed/guilder"));
    let another = mailboat_engine::plan::ChangeId(change.0 ^ 1);
    assert!(!world.engine.confirm(&scope, another), "another change was confirmed");
    world.run();
    assert!(world.object(&copy).is_some());
    assert!(world.engine.confirm(&scope, change));
    world.run();
    let left = world.servers[&copy.cluster].objects.keys().filter(|key| key.kind == copy.kind).count();
    assert_eq!(left, 0);
    let florin = world.object(&key("florin", "configmaps", "till", "c00"));
    assert!(florin.is_some(), "the other edge keeps its copies");
}

#[test]
fn a_small_withdrawal_goes_unasked() {
    let mut world = world();
    for n in 0..3 {
        world.put(&key("workload", "configmaps", "till", &format!("c{n}")), config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    let mut smaller = translator("p1", &[FLORIN]);
    smaller.version = 2;
    configure(&mut world, smaller);
    world.run();
    assert!(world.object(&key("guilder", "configmaps", "till", "c0")).is_none());
    assert!(world.object(&key("florin", "configmaps", "till", "c0")).is_some());
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
fn a_cluster_that_is_away_delays_itself_only_and_catches_up() {
    let mut world = world();
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    let florin = key("florin", "configmaps", "till", "pos");
    world.servers.get_mut(&florin.cluster).unwrap().away = true;
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run_for(10_000);
    assert!(world.object(&key("guilder", "configmaps", "till", "pos")).is_some());
    assert!(world.object(&florin).is_none());
    world.servers.get_mut(&florin.cluster).unwrap().away = false;
    world.run_for(120_000);
    assert!(world.object(&florin).is_some());
}

#[test]
fn every_delete_carries_uid_and_version() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    world.put(&source, config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.remove(&source);
    world.run();
    let deletes: Vec<_> =
        world.writes.iter().filter(|call| matches!(call.verb, Verb::Delete { .. })).collect();
    assert_eq!(deletes.len(), 1);
    assert!(matches!(deletes[0].verb, Verb::Delete { version: Some(_), .. }), "{deletes:?}");
}

#[test]
fn h43_what_the_server_refuses_is_said_once_and_a_better_intent_goes_at_once() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&source, config_map("refused"));
    world.servers.get_mut(&copy.cluster).unwrap().refuses = Some("refused");
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run_for(600_000);
    assert_eq!(world.engine.verdict(&copy), Some(&Verdict::Refused(Refusal::Rejected)));
    let tries = world.servers[&copy.cluster].refusals;
    assert!((2..30).contains(&tries), "{tries} tries in ten minutes");
    let said = world.engine.notices().iter().filter(|n| matches!(n.verdict, Verdict::Refused(_))).count();
    assert_eq!(said, 1, "said {said} times");
    let before = world.now;
    world.put(&source, config_map("fine"));
    world.run_for(1);
    assert_eq!(world.object(&copy).unwrap()["data"]["a"], "fine");
    assert!(world.now - before < 10, "it waited {} ms", world.now - before);
}

#[test]
fn h24_a_fight_slows_down_and_says_with_whom() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    let (start, mut rounds) = (world.now, 0);
    while world.now < start + 300_000 {
        let mut theirs = world.object(&copy).unwrap().clone();
        if theirs["data"]["a"] == "1" {
            rounds += 1;
        }
        theirs["data"]["a"] = json!("operator");
        theirs["metadata"]["managedFields"] = json!([{ "manager": "operator", "operation": "Update", "time": "2026-11-15T00:00:00Z", "fieldsV1": {} }]);
        world.put(&copy, theirs);
        world.run_for(1_000);
        world.now += 1_000;
    }
    assert!((5..20).contains(&rounds), "{rounds} rounds in five minutes");
    let notices = world.engine.notices();
    let named = notices.iter().any(|n| {
        n.verdict == Verdict::Waiting(Wait::Contention)
            && n.fault.as_deref().is_some_and(|f| f.contains("operator"))
    });
    assert!(named, "{notices:?}");
}

#[test]
fn a_cluster_that_is_away_is_tried_by_one_slot_at_a_time() {
    let mut world = world();
    for n in 0..50 {
        world.put(&key("workload", "configmaps", "till", &format!("c{n:02}")), config_map("1"));
    }
    let florin = key("florin", "configmaps", "till", "c00").cluster;
    world.servers.get_mut(&florin).unwrap().away = true;
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run_for(300_000);
    let tries = world.servers[&florin].refusals;
    assert!(tries < 100, "{tries} tries while it was away");
    world.servers.get_mut(&florin).unwrap().away = false;
    world.run_for(120_000);
    let copies = world.servers[&florin].objects.keys().filter(|key| key.name.starts_with('c')).count();
    assert_eq!(copies, 50);
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
    ] {
        assert!(told.contains(part), "{part:?} is not said:\n{told}");
    }
    assert!(!told.contains("must not be shown"), "{told}");
    world.servers.get_mut(&copy.cluster).unwrap().away = true;
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("2"));
    world.run_for(5_000);
    let told = explain(&world).unwrap();
    assert!(told.contains("its cluster cannot be reached") && told.contains("connection refused"), "{told}");
}

#[test]
fn h3_a_lost_link_deletes_nothing_and_makes_no_copy_a_source() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&source, config_map("1"));
    // The copy bears the label that selects, as the source does.
    let mut route = translator("p1", &[FLORIN]);
    let plain = route.project;
    route.project = Box::new(move |source, to, view| {
        let mut wants = plain(source, to, view)?;
        wants[0].1["metadata"] = json!({ "labels": { "place": "yes" } });
        Ok(wants)
    });
    configure(&mut world, route);
    known(&mut world);
    world.run();
    written(&mut world);
    for cluster in ["florin", "workload"] {
        world.lose(cluster, "configmaps");
        world.run();
        assert_eq!(written(&mut world), Vec::<String>::new(), "a lost link to {cluster} wrote something");
        world.find_again(cluster, "configmaps");
        world.run();
        assert_eq!(
            written(&mut world),
            Vec::<String>::new(),
            "a link to {cluster} that came back wrote something"
        );
    }
    world.remove(&source);
    world.run();
    assert!(world.object(&copy).is_none(), "{:?}", world.engine.explain(world.now, &world.store, &copy));
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

#[test]
fn what_another_hand_rewrites_while_the_source_is_in_doubt_is_put_right_afterwards() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.unserve("workload", "configmaps");
    let mut theirs = world.object(&copy).unwrap().clone();
    theirs["data"]["a"] = json!("theirs");
    world.put(&copy, theirs);
    world.run();
    world.find_again("workload", "configmaps");
    world.run();
    assert_eq!(world.object(&copy).unwrap()["data"]["a"], "1", "{:?}", world.engine.verdict(&copy));
}
