//! What is wanted arrives, once, and stays as it is wanted.

use mailboat_engine::want::{Delivery, Policy};

use crate::prelude::*;

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
fn h10_a_restart_with_nothing_changed_writes_nothing() {
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
fn h15_handing_over_between_placements_writes_nothing() {
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
fn h40_a_customizers_change_reaches_its_readers_only() {
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
fn h14_what_cannot_be_customized_is_held_and_never_sent_by_half() {
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
fn what_went_with_its_namespace_comes_back_when_the_namespace_is_gone() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    let namespace = key("florin", "namespaces", "", "till");
    let mut ending = world.object(&namespace).unwrap().clone();
    ending["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:00:00Z");
    world.put(&namespace, ending);
    world.remove(&copy());
    world.run_for(600_000);
    assert!(world.object(&copy()).is_none());
    let why = explain(&world, &copy());
    assert!(why.contains("its namespace is being deleted"), "{why}");
    world.remove(&namespace);
    world.run();
    assert!(
        world.object(&namespace).is_some() && world.object(&copy()).is_some(),
        "{}",
        explain(&world, &copy())
    );
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
fn h22_two_tenants_with_equal_names_do_not_meet_and_related_objects_come_along() {
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

#[test]
fn a_status_that_changes_while_the_one_before_is_reported_is_reported_as_well() {
    let mut world = world();
    let (mailbox, copy) =
        (key("workload", "configmaps", "till", "pos"), key("florin", "configmaps", "till", "pos"));
    world.put(&mailbox, config_map("1"));
    configure(&mut world, edge_syncer("s", "workload", FLORIN));
    known(&mut world);
    world.run();
    let with_status = |world: &World, ready: u32| {
        let mut object = world.object(&copy).unwrap().clone();
        object["status"] = json!({ "ready": ready });
        object
    };
    let first = with_status(&world, 0);
    world.put(&copy, first);
    world.run_until_call(|world| {
        let second = with_status(world, 3);
        world.put(&copy, second);
    });
    world.run();
    assert_eq!(world.object(&mailbox).unwrap()["status"], json!({ "ready": 3 }));
}

#[test]
fn a_source_that_is_made_anew_hears_how_its_copy_fares() {
    let mut world = world();
    let (mailbox, copy) =
        (key("workload", "configmaps", "till", "pos"), key("florin", "configmaps", "till", "pos"));
    world.put(&mailbox, config_map("1"));
    configure(&mut world, edge_syncer("s", "workload", FLORIN));
    known(&mut world);
    world.run();
    let mut object = world.object(&copy).unwrap().clone();
    object["status"] = json!({ "ready": 3 });
    world.put(&copy, object);
    world.run();
    assert_eq!(world.object(&mailbox).unwrap()["status"], json!({ "ready": 3 }));
    // Deleted and made again before anybody looks: the copy stays as it is, and the new source knows nothing of it.
    world.remove(&mailbox);
    world.put(&mailbox, config_map("1"));
    assert!(world.object(&mailbox).unwrap()["status"].is_null());
    world.run();
    assert_eq!(world.object(&mailbox).unwrap()["status"], json!({ "ready": 3 }));
}

#[test]
fn a_route_of_one_object_reads_that_object_and_no_other() {
    let mut world = world();
    let other = key("workload", "configmaps", "till", "other");
    world.put(&source(), config_map("1"));
    world.put(&other, config_map("1"));
    let mut route = translator("one", &[FLORIN]);
    route.head.sources.clear();
    route.head.source = Some(source());
    configure(&mut world, route);
    known(&mut world);
    world.run();
    assert!(world.object(&copy()).is_some());
    assert!(world.object(&key("florin", "configmaps", "till", "other")).is_none(), "another object was read");
    assert_eq!(world.engine.claimant(&copy()), Some(&source()));
    world.put(&source(), config_map("2"));
    world.run();
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "2");
    let id = RouteId(Name::new("one"));
    world.engine.configure(&world.store, &id, None);
    known(&mut world);
    world.run();
    assert!(world.object(&copy()).is_none() && world.engine.claimant(&copy()).is_none());
}

#[test]
fn what_waits_for_a_kind_to_be_listed_goes_on_when_it_is_though_nothing_is_in_it() {
    let mut world = World::new(&CLUSTERS);
    for cluster in CLUSTERS {
        world
            .put(&key(cluster, "namespaces", "", "till"), json!({ "apiVersion": "v1", "kind": "Namespace" }));
        for kind in ["configmaps", "namespaces"] {
            world.follow(cluster, kind);
        }
    }
    world.put(&source(), config_map("1"));
    let mut route = translator("p1", &[FLORIN]);
    route.select = Box::new(|_, view| {
        let customizers = key("workload", "customizers", "", "");
        match view.range(&customizers.cluster, &customizers.kind, None) {
            Ok(_) => Ok(vec![FLORIN]),
            Err(doubt) => Err(mailboat_engine::want::Hold { reason: doubt.to_string(), on: None }),
        }
    });
    configure(&mut world, route);
    known(&mut world);
    world.run();
    assert!(world.object(&copy()).is_none());
    world.follow("workload", "customizers");
    world.run();
    assert!(world.object(&copy()).is_some(), "nobody was told that there is nothing");
}

#[test]
fn what_is_created_once_from_now_on_gets_another_mark_and_nothing_else() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    let mut edited = world.object(&copy()).unwrap().clone();
    edited["data"]["local"] = json!("added at the edge");
    world.put(&copy(), edited.clone());
    world.put(&source(), config_map("2"));
    let mut created_once = translator("p1", &[FLORIN]);
    created_once.policy =
        Arc::new(Policy { delivery: Delivery::CreateOnly, ..(*created_once.policy).clone() });
    configure(&mut world, created_once);
    world.run();
    let left = world.object(&copy()).unwrap().clone();
    assert_eq!(left["data"], edited["data"], "{left:#}");
    assert!(left["metadata"]["annotations"]["mailboat.dev/mark"].to_string().contains("leave"), "{left:#}");
    written(&mut world);
    world.run_for(120_000);
    assert_eq!(written(&mut world), Vec::<String>::new());
    // Its source goes, and it stays.
    world.remove(&source());
    world.run_for(120_000);
    assert_eq!(world.object(&copy()).unwrap()["data"], edited["data"]);
    // Nobody owns it any more.
    assert!(world.object(&copy()).unwrap()["metadata"]["labels"].get("mailboat.dev/owner").is_none());
}

#[test]
fn what_a_copy_reports_of_which_only_the_head_is_kept_is_read_and_comes_back() {
    let mut world = World::new(&CLUSTERS);
    for cluster in ["tenant", "florin"] {
        let namespace = key(cluster, "namespaces", "", "till");
        world.put(&namespace, json!({ "apiVersion": "v1", "kind": "Namespace" }));
        for kind in KINDS {
            world.follow(cluster, kind);
        }
        world.keep = mailboat_object::object::Keep::Head;
    }
    let mailbox = key("tenant", "configmaps", "till", "pos");
    world.put(&mailbox, config_map("1"));
    configure(&mut world, edge_syncer("s", "tenant", FLORIN));
    known(&mut world);
    world.run();
    let mut ready = world.object(&copy()).unwrap().clone();
    ready["status"] = json!({ "ready": 3 });
    world.put(&copy(), ready);
    world.run();
    assert_eq!(
        world.object(&mailbox).unwrap()["status"],
        json!({ "ready": 3 }),
        "{}",
        explain(&world, &copy())
    );
    let gets = world.servers[&copy().cluster].gets;
    world.run_for(600_000);
    assert_eq!(world.servers[&copy().cluster].gets, gets, "it is read over and over");
}
