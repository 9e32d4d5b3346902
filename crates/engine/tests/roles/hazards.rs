//! What went wrong for users of comparable systems, one by one; docs/hazards.md lists them all.

use mailboat_engine::mark::MARK_ANNOTATION;

use crate::prelude::*;

/// Some sources, delivered to both edges.
fn delivered(sources: usize) -> World {
    let mut world = world();
    for number in 0..sources {
        world.put(&numbered("workload", number), config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    assert_eq!(written(&mut world).len(), 2 * sources);
    world
}

fn numbered(cluster: &str, number: usize) -> Key {
    key(cluster, "configmaps", "till", &format!("c{number:02}"))
}

fn uid(world: &World, slot: &Key) -> Value {
    world.object(slot).map_or(Value::Null, |object| object["metadata"]["uid"].clone())
}

#[test]
fn h01_h39_a_glitch_of_every_connection_removes_rewrites_and_remakes_nothing() {
    let mut world = delivered(20);
    for cluster in ["workload", "florin", "guilder"] {
        world.lose(cluster, "configmaps");
    }
    world.run_for(600_000);
    for cluster in ["florin", "workload", "guilder"] {
        world.find_again(cluster, "configmaps");
    }
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new());
}

#[test]
fn h04_a_source_made_again_while_nobody_ran_keeps_its_copy() {
    let mut world = delivered(1);
    let (source, copy) = (numbered("workload", 0), numbered("florin", 0));
    let before = uid(&world, &copy);
    world.remove(&source);
    world.put(&source, config_map("2"));
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    assert_eq!((uid(&world, &copy), &world.object(&copy).unwrap()["data"]["a"]), (before, &json!("2")));
    assert!(!written(&mut world).iter().any(|write| write.starts_with("delete")));
}

#[test]
fn h06_whatever_becomes_unreachable_no_source_is_ever_deleted() {
    let mut world = delivered(12);
    for edge in ["florin", "guilder"] {
        world.servers.get_mut(&numbered(edge, 0).cluster).unwrap().link = Link::Away;
        world.unserve(edge, "configmaps");
    }
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run_for(600_000);
    assert_eq!(written(&mut world), Vec::<String>::new());
    assert!((0..12).all(|number| world.object(&numbered("workload", number)).is_some()));
}

#[test]
fn h09_a_center_that_comes_back_with_other_uids_remakes_nothing() {
    let mut world = delivered(12);
    let before: Vec<Value> = (0..12).map(|number| uid(&world, &numbered("florin", number))).collect();
    // Another server takes over, with the same objects under other uids and lower versions.
    let server = world.servers.get_mut(&source().cluster).unwrap();
    let objects = std::mem::take(&mut server.objects);
    for (key, mut object) in objects {
        object["metadata"]["uid"] = Value::Null;
        server.put(&key, object);
    }
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    let after: Vec<Value> = (0..12).map(|number| uid(&world, &numbered("florin", number))).collect();
    assert_eq!(before, after);
    assert!(!written(&mut world).iter().any(|write| write.starts_with("delete")));
}

/// The mark on a copy as earlier releases wrote it, with all that the first of them said.
fn mark_as_json(world: &mut World, copy: &Key) {
    let mut object = world.object(copy).unwrap().clone();
    let annotation = &mut object["metadata"]["annotations"][MARK_ANNOTATION];
    let mark = annotation.as_str().unwrap().to_owned();
    let [on, cluster, uid, version, intent, rest @ ..] = &*mark.split(',').collect::<Vec<_>>() else {
        panic!("{mark}")
    };
    let version: u64 = version.parse().unwrap();
    let mut earlier = json!({ "on": on, "cluster": cluster, "uid": uid, "version": version, "intent": intent,
        "kind": "configmaps", "namespace": "till", "name": copy.name.as_str(), "leave": false });
    if rest.contains(&"unconfirmed") {
        earlier["unconfirmed"] = json!(true);
    }
    *annotation = json!(earlier.to_string());
    world.servers.get_mut(&copy.cluster).unwrap().objects.insert(copy.clone(), object);
}

/// Every copy bears such a mark, and the process starts again.
fn restarted_with_earlier_marks(sources: usize) -> World {
    let mut world = delivered(sources);
    for number in 0..sources {
        for edge in ["florin", "guilder"] {
            mark_as_json(&mut world, &numbered(edge, number));
        }
    }
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    world
}

fn mark(world: &World, copy: &Key) -> String {
    world.object(copy).unwrap()["metadata"]["annotations"][MARK_ANNOTATION].as_str().unwrap().to_owned()
}

#[test]
fn h11_marks_of_an_earlier_release_are_known_again_and_not_rewritten() {
    let mut world = restarted_with_earlier_marks(3);
    assert_eq!(written(&mut world), Vec::<String>::new());
    assert_eq!(world.engine.verdict(&numbered("florin", 0)), Some(&Verdict::Settled));
    // The next delivery brings the mark of now, to that copy alone.
    world.put(&numbered("workload", 0), config_map("2"));
    world.run();
    assert!(!mark(&world, &numbered("florin", 0)).contains('"'));
    assert!(mark(&world, &numbered("florin", 1)).contains('"'));
    assert_eq!(written(&mut world).len(), 2);
}

#[test]
fn h11_what_bears_a_mark_of_an_earlier_release_goes_with_its_source_and_not_before() {
    let mut world = restarted_with_earlier_marks(12);
    world.remove(&numbered("workload", 0));
    world.run();
    assert!(world.object(&numbered("florin", 0)).is_none(), "{}", explain(&world, &numbered("florin", 0)));
    assert!((1..12).all(|number| world.object(&numbered("florin", number)).is_some()));
    // All at once, and nobody asked for it: it is held like that of any other copy.
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run_for(600_000);
    assert!((1..12).all(|number| world.object(&numbered("florin", number)).is_some()));
    assert!(matches!(world.engine.verdict(&numbered("florin", 1)), Some(Verdict::Held(_))));
}

#[test]
fn h10_what_a_server_wrote_in_its_own_way_is_not_written_by_a_restart_whatever_its_mark_looks_like() {
    for earlier in [false, true] {
        let mut world = world();
        let copy = numbered("florin", 0);
        world.servers.get_mut(&copy.cluster).unwrap().defaults = Some(("a", "1"));
        world.put(&numbered("workload", 0), config_map("1000m"));
        configure(&mut world, translator("p1", &[FLORIN]));
        known(&mut world);
        world.run();
        assert_eq!(world.object(&copy).unwrap()["data"]["a"], "1");
        if earlier {
            mark_as_json(&mut world, &copy);
        }
        written(&mut world);
        world.restart(&KINDS);
        configure(&mut world, translator("p1", &[FLORIN]));
        known(&mut world);
        world.run();
        assert_eq!(written(&mut world), Vec::<String>::new(), "a mark of an earlier release: {earlier}");
        assert_eq!(world.engine.verdict(&copy), Some(&Verdict::Settled), "{}", explain(&world, &copy));
    }
}

#[test]
fn h13_a_definition_that_goes_takes_no_copies_along() {
    let mut world = delivered(12);
    for number in 0..12 {
        world.servers.get_mut(&source().cluster).unwrap().objects.remove(&numbered("workload", number));
    }
    world.unserve("workload", "configmaps");
    world.run_for(600_000);
    assert_eq!(written(&mut world), Vec::<String>::new());
}

#[test]
fn h19_h22_what_is_withdrawn_goes_where_it_can_and_elsewhere_as_soon_as_it_can() {
    let mut world = delivered(1);
    let (florin, guilder) = (numbered("florin", 0), numbered("guilder", 0));
    world.servers.get_mut(&florin.cluster).unwrap().link = Link::Away;
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run_for(60_000);
    assert!(world.object(&guilder).is_none(), "it waits for an edge that has nothing to do with it");
    assert!(world.object(&florin).is_some());
    let server = world.servers.get_mut(&florin.cluster).unwrap();
    server.link = Link::Up;
    server.loses_replies = 1;
    world.run_for(600_000);
    assert!(world.object(&florin).is_none());
    assert_eq!(world.engine.slot_count(), 0, "and nothing is left to wait for");
}

#[test]
fn h21_a_label_that_is_taken_off_takes_the_copies_off() {
    let mut world = delivered(2);
    let mut unlabelled = config_map("1");
    unlabelled["metadata"]["labels"] = json!({});
    world.put(&numbered("workload", 0), unlabelled);
    world.run();
    assert!(
        world.object(&numbered("florin", 0)).is_none() && world.object(&numbered("guilder", 0)).is_none()
    );
    assert!(world.object(&numbered("florin", 1)).is_some());
}

#[test]
fn h26_a_kind_that_is_not_served_is_not_asked_for_again_and_again() {
    let mut world = delivered(3);
    world.unserve("florin", "configmaps");
    world.put(&numbered("workload", 0), config_map("2"));
    let calls = world.engine.calls();
    world.run_for(600_000);
    assert_eq!(world.engine.calls() - calls, 1, "only the other edge has something to do");
    world.find_again("florin", "configmaps");
    world.run_for(1);
    assert_eq!(
        world.object(&numbered("florin", 0)).unwrap()["data"]["a"],
        "2",
        "the moment that it is served"
    );
}

#[test]
fn h28_what_came_and_went_leaves_nothing_behind() {
    let mut world = delivered(0);
    for number in 0..30 {
        world.put(&numbered("workload", number), config_map("1"));
        world.run();
        world.remove(&numbered("workload", number));
        world.run();
    }
    assert_eq!(world.engine.slot_count(), 0);
}

#[test]
fn h33_what_is_held_is_not_made_again_when_somebody_deletes_it() {
    let mut world = world();
    let customizer = key("workload", "customizers", "", "colors");
    world.put(&customizer, json!({ "apiVersion": "v1", "kind": "Customizer", "value": "red" }));
    let mut custom = config_map("1");
    custom["metadata"]["annotations"] = json!({ "customizer": "colors" });
    world.put(&source(), custom);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.remove(&customizer);
    world.run();
    written(&mut world);
    world.remove(&copy());
    world.run_for(600_000);
    assert_eq!(written(&mut world), Vec::<String>::new());
}

#[test]
fn h34_every_route_carries_after_a_restart_and_not_only_the_first() {
    let mut world = world();
    let tenants = ["tenant", "workload"];
    world.restart(&KINDS);
    for tenant in tenants {
        configure(&mut world, publisher(tenant, tenant, GUILDER));
    }
    known(&mut world);
    for tenant in tenants {
        world.put(&key(tenant, "configmaps", "till", "db"), config_map(tenant));
    }
    world.run();
    for tenant in tenants {
        let copy = key("guilder", "configmaps", "till", &format!("{tenant}-db"));
        assert_eq!(world.object(&copy).unwrap()["data"]["a"], tenant);
    }
}

#[test]
fn h41_one_bad_source_holds_up_itself_alone() {
    let mut world = world();
    let mut uncustomizable = config_map("1");
    uncustomizable["metadata"]["annotations"] = json!({ "customizer": "missing" });
    world.put(&numbered("workload", 0), uncustomizable);
    world.put(&numbered("workload", 1), config_map("refused"));
    world.put(&numbered("workload", 2), config_map("1"));
    world.servers.get_mut(&copy().cluster).unwrap().refuses = Some("refused");
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run_for(60_000);
    let arrived: Vec<bool> =
        (0..3).map(|number| world.object(&numbered("florin", number)).is_some()).collect();
    assert_eq!(arrived, [false, false, true]);
}

/// Overlapping placements share nearly all that they select: to say what of it is in conflict, none of that is looked through.
#[test]
fn what_two_routes_want_alike_is_not_among_what_is_wanted_in_vain() {
    let mut world = world();
    for number in 0..20 {
        world.put(&numbered("tenant", number), config_map("tenant"));
    }
    world.put(&numbered("workload", 7), config_map("workload"));
    for (name, cluster, since) in [("a", "tenant", 1), ("b", "tenant", 2), ("c", "workload", 3)] {
        let mut route = edge_syncer(name, cluster, FLORIN);
        route.head = route.head.since(since);
        configure(&mut world, route);
    }
    known(&mut world);
    world.run();
    let in_vain = |world: &World| {
        let tables = world.engine.tables();
        tables.into_iter().find(|(name, _)| *name == "slots wanted in vain").map(|(_, size)| size)
    };
    let lost = |world: &World, name: &str| world.engine.contested(&RouteId(Name::new(name)), 9).len();
    assert_eq!((in_vain(&world), lost(&world, "b"), lost(&world, "c")), (Some(1), 0, 1));
    world.engine.configure(&world.store, &RouteId(Name::new("a")), None);
    world.run();
    assert_eq!((in_vain(&world), lost(&world, "b"), lost(&world, "c")), (Some(1), 0, 1), "b has it now");
    world.remove(&numbered("workload", 7));
    world.run();
    assert_eq!((in_vain(&world), lost(&world, "c")), (Some(0), 0));
}

#[test]
fn h42_of_two_sources_for_one_object_the_older_configuration_wins_whoever_comes_first() {
    for first in ["older", "younger"] {
        let mut world = world();
        for tenant in ["tenant", "workload"] {
            world.put(&key(tenant, "configmaps", "till", "pos"), config_map(tenant));
        }
        let route = |name: &str| {
            let (cluster, since) = if name == "older" { ("tenant", 1) } else { ("workload", 2) };
            let mut route = edge_syncer(name, cluster, FLORIN);
            route.head = route.head.since(since);
            route
        };
        configure(&mut world, route(first));
        known(&mut world);
        world.run();
        configure(&mut world, route(if first == "older" { "younger" } else { "older" }));
        world.run();
        assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "tenant", "{first} came first");
        let told = explain(&world, &copy());
        assert!(told.contains("wanted by older") && told.contains("also wanted by younger"), "{told}");
        written(&mut world);
        world.run();
        assert_eq!(written(&mut world), Vec::<String>::new(), "they fight over it");
        let lost = |world: &World, name: &str| {
            let lost = world.engine.contested(&RouteId(Name::new(name)), 9);
            lost.into_iter()
                .map(|one| (one.slot, one.source.cluster.to_string(), one.by.0))
                .collect::<Vec<_>>()
        };
        let by_the_older = (copy(), "workload".to_owned(), Name::new("older"));
        assert_eq!((lost(&world, "older"), lost(&world, "younger")), (vec![], vec![by_the_older]));
        let selects = |world: &World, name: &str| world.engine.selected_count(&RouteId(Name::new(name)));
        assert_eq!((selects(&world, "older"), selects(&world, "younger")), (1, 1));
        world.remove(&key("tenant", "configmaps", "till", "pos"));
        world.run();
        assert_eq!(lost(&world, "younger"), [], "nobody else wants it any more");
        assert_eq!((selects(&world, "older"), selects(&world, "younger")), (0, 1));
    }
}
