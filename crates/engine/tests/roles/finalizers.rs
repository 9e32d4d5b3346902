//! Sources that wait for their copies.

use mailboat_engine::look::{Definition, Serving};
use mailboat_engine::want::Policy;
use mailboat_object::key::{Uid, Version};

use crate::prelude::*;
use crate::roles::edition;

/// A route that holds its sources until their copies are gone.
fn holding(name: &str, to: &[u32]) -> Skeleton {
    let mut route = translator(name, to);
    route.policy = Arc::new(Policy { finalizer: true, ..(*route.policy).clone() });
    route
}

/// A source, its finalizer and its copy.
fn held() -> World {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, holding("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert!(waits(&world) && world.object(&copy()).is_some());
    written(&mut world);
    world
}

fn waits(world: &World) -> bool {
    world
        .object(&source())
        .is_some_and(|source| source["metadata"]["finalizers"] == json!(["mailboat.dev/test"]))
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
fn a_source_with_several_copies_waits_for_the_last_of_them() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    let mut route = translator("p1", &[FLORIN, GUILDER]);
    route.policy = Arc::new(Policy { finalizer: true, ..(*route.policy).clone() });
    configure(&mut world, route);
    known(&mut world);
    world.run();
    let other = key("guilder", "configmaps", "till", "pos");
    assert!(world.object(&copy()).is_some() && world.object(&other).is_some());
    world.servers.get_mut(&other.cluster).unwrap().link = Link::Away;
    world.remove(&source());
    world.run_for(60_000);
    assert!(world.object(&copy()).is_none() && world.object(&other).is_some());
    assert!(world.object(&source()).is_some(), "it has a copy at an edge that is away");
    world.servers.get_mut(&other.cluster).unwrap().link = Link::Up;
    world.run_for(600_000);
    assert!(world.object(&other).is_none() && world.object(&source()).is_none());
}

/// The workspace and the definition of a kind take their objects along, and each bears the same timestamp as one that its user
/// deletes.
#[test]
fn what_is_deleted_with_its_workspace_or_its_kind_takes_no_copy_along() {
    let going = Definition {
        uid: Uid::parse("d"),
        deleting: true,
        version: Version(1),
        made_seconds: None,
        identity: None,
    };
    for (lives, kind) in [(false, Serving::Itself), (true, Serving::By(going)), (true, Serving::Nothing)] {
        let mut world = held();
        (world.workspace_lives, world.kind) = (lives, kind.clone());
        world.remove(&source());
        world.run_for(600_000);
        assert!(world.object(&copy()).is_some(), "deleted with {kind:?}, workspace {lives}");
        assert!(waits(&world), "nobody knows of the copy any more");
        let why = explain(&world, &copy());
        assert!(why.contains("its source is not shown to be deleted"), "{why}");
        // A process that knows nothing of it does the same.
        world.restart(&KINDS);
        configure(&mut world, holding("p1", &[FLORIN]));
        known(&mut world);
        world.run_for(600_000);
        assert!(world.object(&copy()).is_some() && waits(&world));
        // Whoever does not want it deletes it, and nothing waits any more.
        world.remove(&copy());
        world.run_for(120_000);
        assert!(world.object(&source()).is_none() && world.object(&copy()).is_none());
    }
}

#[test]
fn a_source_that_is_no_longer_selected_waits_for_nobody() {
    for restarted in [false, true] {
        let mut world = held();
        let mut other = world.object(&source()).unwrap().clone();
        other["metadata"]["labels"] = json!({});
        if restarted {
            world.put(&source(), other);
            world.restart(&KINDS);
            configure(&mut world, holding("p1", &[FLORIN]));
            world.run();
            assert!(waits(&world), "half a configuration does not tell that nobody selects it");
            known(&mut world);
        } else {
            world.put(&source(), other);
        }
        world.run();
        assert!(world.object(&copy()).is_none());
        assert_eq!(world.object(&source()).unwrap()["metadata"]["finalizers"], json!([]), "{restarted}");
        assert_eq!(world.engine.slot_count(), 0, "nothing is left behind");
        written(&mut world);
        world.run_for(600_000);
        assert_eq!(written(&mut world), Vec::<String>::new());
    }
}

#[test]
fn a_source_whose_route_goes_nowhere_any_more_waits_for_nobody_though_nothing_else_changed() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    for to in [&[FLORIN, GUILDER][..], &[GUILDER], &[]] {
        let mut route = holding("p1", to);
        route.head.selection = Some(edition(0));
        route.goes_to = Some(to.to_vec());
        configure(&mut world, route);
        known(&mut world);
        world.run();
        assert_eq!(waits(&world), !to.is_empty(), "{to:?}");
    }
}

#[test]
fn a_finalizer_goes_with_the_route_that_asked_for_it_and_stays_while_another_asks() {
    let mut world = held();
    configure(&mut world, holding("p2", &[GUILDER]));
    world.run();
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run();
    assert!(waits(&world), "another route holds it");
    let mut plain = translator("p2", &[GUILDER]);
    plain.head.configuration = crate::roles::edition(2);
    configure(&mut world, plain);
    world.run();
    assert_eq!(world.object(&source()).unwrap()["metadata"]["finalizers"], json!([]), "nobody holds it");
    world.remove(&source());
    world.run();
    assert!(world.object(&key("guilder", "configmaps", "till", "pos")).is_none());
}

#[test]
fn what_is_not_decided_keeps_its_finalizer() {
    let mut world = held();
    world.unserve("workload", "configmaps");
    world.run_for(60_000);
    let mut undecided = holding("p1", &[FLORIN]);
    undecided.head.configuration = crate::roles::edition(2);
    undecided.select =
        Box::new(|_, _| Err(mailboat_engine::want::Hold { reason: "not known".to_owned(), on: None }));
    configure(&mut world, undecided);
    world.find_again("workload", "configmaps");
    world.run_for(600_000);
    assert!(waits(&world) && world.object(&copy()).is_some());
    assert_eq!(written(&mut world), Vec::<String>::new());
}

/// Its own write is not shown to it for a while, and it does not write it again and again meanwhile.
#[test]
fn a_finalizer_is_put_on_once_however_late_that_is_shown() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, holding("p1", &[FLORIN]));
    known(&mut world);
    let calls = world.engine.calls();
    world.run_until_call(|world| {
        // The event of our write stays under way.
        world.servers.get_mut(&source().cluster).unwrap().events.clear();
    });
    world.run_for(60_000);
    assert_eq!(world.engine.calls() - calls, 1);
    assert!(waits(&world) && world.object(&copy()).is_none());
    let mut shown = world.object(&source()).unwrap().clone();
    shown["data"]["a"] = json!("2");
    world.put(&source(), shown);
    world.run();
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "2");
}

/// The source goes the moment that its finalizer is taken off, which is told before the answer comes. What then turns up where
/// nothing seemed to stand is not waited for by the versions of another server.
#[test]
fn a_copy_that_turns_up_after_its_source_was_let_go_is_withdrawn() {
    let mut world = held();
    let standing = world.object(&copy()).unwrap().clone();
    // Its edge shows nothing there for a while, as a list of the past does.
    let mut gone = standing.clone();
    let later = gone["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() + 1;
    gone["metadata"]["resourceVersion"] = json!(later.to_string());
    world.servers.get_mut(&copy().cluster).unwrap().events.push((copy(), "DELETED", gone));
    // The versions of the source's server are far ahead.
    for value in 0..50 {
        world.put(&key("workload", "configmaps", "till", "other"), json!({ "data": { "v": value } }));
    }
    world.remove(&source());
    world.run_until_call(World::run);
    assert!(world.object(&source()).is_none(), "nothing seems to stand anywhere");
    world.run_for(60_000);
    let mut shown = world.object(&copy()).unwrap().clone();
    shown["metadata"]["annotations"]["seen"] = json!("again");
    world.put(&copy(), shown);
    world.put(&copy(), world.object(&copy()).unwrap().clone());
    world.run_for(600_000);
    assert!(world.object(&copy()).is_none(), "{}", explain(&world, &copy()));
}

/// A server that is restored from a backup has a source back that was being deleted.
#[test]
fn a_source_that_is_back_when_it_is_looked_at_keeps_its_copy() {
    let mut world = held();
    let before = world.object(&source()).unwrap().clone();
    world.remove(&source());
    world.run_until_look(|world| {
        world.servers.get_mut(&source().cluster).unwrap().objects.insert(source(), before);
    });
    world.run_for(60_000);
    assert!(world.object(&copy()).is_some());
    assert!(!written(&mut world).iter().any(|write| write.starts_with("delete")));
}

#[test]
fn a_finalizer_goes_with_its_route_though_its_source_cannot_be_seen_just_then() {
    let mut world = held();
    world.unserve("workload", "configmaps");
    world.run_for(60_000);
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run_for(60_000);
    assert!(waits(&world));
    world.find_again("workload", "configmaps");
    world.run_for(60_000);
    assert_eq!(world.object(&source()).unwrap()["metadata"]["finalizers"], json!([]));
    assert!(world.object(&copy()).is_none(), "{}", explain(&world, &copy()));
    assert_eq!(world.engine.slot_count(), 0, "nothing is left behind");
}

#[test]
fn a_finalizer_whose_route_went_while_nobody_ran_is_taken_off() {
    let mut world = held();
    world.restart(&KINDS);
    world.run();
    assert!(waits(&world), "the configuration is not known as a whole yet");
    known(&mut world);
    world.run();
    assert_eq!(world.object(&source()).unwrap()["metadata"]["finalizers"], json!([]));
    assert!(world.object(&copy()).is_none());
    assert_eq!(world.engine.slot_count(), 0, "nothing is left behind");
}

/// Sources that wait for their copies, all but the first two of which begin to be deleted.
fn ending(world: &mut World, count: usize) {
    for n in 2..count {
        world.remove(&key("workload", "configmaps", "till", &format!("c{n:02}")));
    }
}

fn twenty_with_finalizers() -> World {
    let mut world = world();
    world.put(
        &key("florin", "namespaces", "", "mapped-till"),
        json!({ "apiVersion": "v1", "kind": "Namespace" }),
    );
    for n in 0..20 {
        world.put(&key("workload", "configmaps", "till", &format!("c{n:02}")), config_map("1"));
    }
    configure(&mut world, workload_syncer("w", "workload", FLORIN));
    known(&mut world);
    world.run();
    assert_eq!(mapped(&world), 20);
    world
}

fn mapped(world: &World) -> usize {
    let objects = world.servers[&key("florin", "", "", "").cluster].objects.keys();
    objects.filter(|key| key.namespace.as_str() == "mapped-till").count()
}

#[test]
fn sources_that_are_seen_to_be_deleted_one_by_one_take_their_copies_along_unasked() {
    let mut world = twenty_with_finalizers();
    ending(&mut world, 20);
    world.run_for(60_000);
    assert_eq!((mapped(&world), world.engine.held().count()), (2, 0));
}

#[test]
fn sources_that_a_list_shows_to_be_deleted_are_asked_about_when_they_are_many() {
    let mut world = twenty_with_finalizers();
    ending(&mut world, 20);
    // Begun while no process ran.
    world.restart(&KINDS);
    configure(&mut world, workload_syncer("w", "workload", FLORIN));
    known(&mut world);
    world.run_for(60_000);
    assert_eq!(mapped(&world), 20, "nobody was asked");
    let held: Vec<_> =
        world.engine.held_by_scope().map(|(scope, change, n)| (scope.clone(), change, n)).collect();
    let [(scope, change, 18)] = held.as_slice() else { panic!("{held:?}") };
    assert!(world.engine.confirm(scope, *change));
    world.run_for(60_000);
    assert_eq!((mapped(&world), world.engine.held().count()), (2, 0));
    let left = world.servers[&key("workload", "", "", "").cluster].objects.keys();
    assert_eq!(left.filter(|key| key.kind.resource() == "configmaps").count(), 2, "none waits any more");
}

#[test]
fn few_sources_that_a_list_shows_to_be_deleted_go_unasked() {
    let mut world = twenty_with_finalizers();
    ending(&mut world, 11);
    world.restart(&KINDS);
    configure(&mut world, workload_syncer("w", "workload", FLORIN));
    known(&mut world);
    world.run_for(60_000);
    assert_eq!((mapped(&world), world.engine.held().count()), (11, 0));
}

/// A process that follows what bears our label at the first edge, where nothing that is not shown is known to be gone.
fn by_label(world: &mut World, to: &[u32]) {
    let labelled = ("florin", "configmaps");
    world
        .restart_following(|cluster| KINDS.into_iter().filter(|kind| (cluster, *kind) != labelled).collect());
    world.follow_labelled("florin", "configmaps");
    configure(world, holding("p1", to));
    known(world);
    world.run();
}

#[test]
fn a_source_does_not_wait_for_a_copy_that_no_view_shows_to_be_gone() {
    // The other copy goes later, or sooner.
    for away in ["guilder", "florin"] {
        let mut world = world();
        world.put(&source(), config_map("1"));
        by_label(&mut world, &[FLORIN, GUILDER]);
        let other = key("guilder", "configmaps", "till", "pos");
        assert!(world.object(&copy()).is_some() && world.object(&other).is_some() && waits(&world));
        let away = key(away, "", "", "").cluster;
        world.servers.get_mut(&away).unwrap().link = Link::Away;
        world.remove(&source());
        world.run_for(60_000);
        assert!(waits(&world));
        world.servers.get_mut(&away).unwrap().link = Link::Up;
        world.run_for(600_000);
        assert!(world.object(&copy()).is_none() && world.object(&other).is_none());
        assert!(world.object(&source()).is_none(), "{}", explain(&world, &copy()));
    }
}

#[test]
fn a_source_does_not_wait_for_a_copy_that_went_while_nobody_ran() {
    let mut world = held();
    world.remove(&copy());
    world.remove(&source());
    by_label(&mut world, &[FLORIN]);
    world.run_for(600_000);
    assert!(world.object(&source()).is_none(), "{}", explain(&world, &copy()));
}
