//! A change costs work for what it concerns, and for nothing else.

use std::sync::atomic::Ordering;

use mailboat_object::key::ClusterId;

use crate::prelude::*;
use crate::roles::edition;

const EDGES: usize = 20;
const SOURCES: usize = 10;

/// A translator from one workspace to many edges, after everything was delivered.
fn delivered(varies: bool) -> (World, Arc<std::sync::atomic::AtomicUsize>) {
    let mut clusters: Vec<String> = (0..EDGES).map(|edge| format!("edge-{edge:02}")).collect();
    clusters.push("workload".to_owned());
    let names: Vec<&str> = clusters.iter().map(String::as_str).collect();
    let mut world = World::new(&names);
    for cluster in &names {
        let namespace = key(cluster, "namespaces", "", "till");
        world.put(&namespace, json!({ "apiVersion": "v1", "kind": "Namespace" }));
        for kind in ["configmaps", "customizers", "namespaces"] {
            world.follow(cluster, kind);
        }
    }
    for number in 0..SOURCES {
        let mut object = config_map("1");
        if number == 0 {
            object["metadata"]["annotations"] = json!({ "customizer": "colors" });
        }
        world.put(&named(number), object);
    }
    let customizer = key("workload", "customizers", "", "colors");
    world.put(&customizer, json!({ "apiVersion": "v1", "kind": "Customizer", "value": "red" }));
    world.run();
    let all: Vec<u32> = (0..u32::try_from(EDGES).unwrap()).collect();
    let mut route = translator("p1", &all);
    route.varies = varies;
    let projections = Arc::clone(&route.projections);
    configure(&mut world, route);
    known(&mut world);
    world.run();
    assert_eq!(written(&mut world).len(), EDGES * SOURCES);
    (world, projections)
}

/// The translator to these edges, by which nothing else changes.
fn going(to: impl IntoIterator<Item = u32>, varies: bool) -> crate::roles::Skeleton {
    let to: Vec<u32> = to.into_iter().collect();
    let mut route = translator("p1", &to);
    route.varies = varies;
    route.head.selection = Some(edition(7));
    route.goes_to = Some(to);
    route
}

/// How much is projected for a change of the configuration.
fn projected(world: &mut World, route: crate::roles::Skeleton) -> usize {
    let projections = Arc::clone(&route.projections);
    configure(world, route);
    world.run();
    projections.load(Ordering::Relaxed)
}

#[test]
fn a_destination_that_comes_or_goes_costs_work_for_that_one() {
    for varies in [true, false] {
        let (mut world, _) = delivered(varies);
        let edges = u32::try_from(EDGES).unwrap();
        configure(&mut world, going(0..edges, varies));
        world.run();
        assert_eq!(written(&mut world), Vec::<String>::new());
        // All that is left is deleted, and all that is new is made, at that edge alone. A plan projects what it is about once more.
        let projections = projected(&mut world, going((0..edges).filter(|to| *to != 7), varies));
        assert!(projections <= SOURCES, "varies: {varies}: {projections} for one that goes");
        let deleted = written(&mut world);
        assert_eq!(deleted.len(), SOURCES, "{deleted:?}");
        assert!(deleted.iter().all(|one| one.contains("edge-07")), "{deleted:?}");
        let projections = projected(&mut world, going(0..edges, varies));
        assert!(projections <= 3 * SOURCES, "varies: {varies}: {projections} for one that comes");
        let made = written(&mut world);
        assert_eq!(made.len(), SOURCES, "{made:?}");
        assert!(made.iter().all(|one| one.contains("edge-07")), "{made:?}");
        // What was read for the others is read still.
        let customizer = key("workload", "customizers", "", "colors");
        world.put(&customizer, json!({ "apiVersion": "v1", "kind": "Customizer", "value": "blue" }));
        world.run();
        assert_eq!(written(&mut world).len(), EDGES);
    }
}

#[test]
fn what_changes_together_with_where_it_goes_is_not_missed() {
    for varies in [true, false] {
        let (mut world, _) = delivered(varies);
        let edges = u32::try_from(EDGES).unwrap();
        configure(&mut world, going(0..edges, varies));
        world.run();
        written(&mut world);
        // Two changes of where it goes, and one of a source, before any of them is evaluated.
        configure(&mut world, going(1..edges, varies));
        world.put(&named(3), config_map("2"));
        configure(&mut world, going((1..edges).filter(|to| *to != 7), varies));
        configure(&mut world, going((0..edges).filter(|to| *to != 7), varies));
        world.run();
        let writes = written(&mut world);
        let at = |edge: &str| writes.iter().filter(|one| one.contains(edge)).count();
        assert_eq!((at("edge-07"), at("edge-00"), at("edge-05")), (SOURCES, 1, 1), "{writes:?}");
        assert_eq!(writes.len(), SOURCES + EDGES - 1, "{writes:?}");
    }
}

fn named(number: usize) -> Key {
    key("workload", "configmaps", "till", &format!("config-{number}"))
}

#[test]
fn what_does_not_vary_is_projected_once_for_all_destinations() {
    let (mut world, projections) = delivered(false);
    assert_eq!(projections.swap(0, Ordering::Relaxed), SOURCES, "once for each source");
    world.put(&named(3), config_map("2"));
    world.run();
    assert_eq!(written(&mut world).len(), EDGES);
    assert_eq!(projections.swap(0, Ordering::Relaxed), 1);
    // What was read for all of them wakes all of them, once.
    let customizer = key("workload", "customizers", "", "colors");
    world.put(&customizer, json!({ "apiVersion": "v1", "kind": "Customizer", "value": "blue" }));
    world.run();
    assert_eq!(written(&mut world).len(), EDGES);
    assert_eq!(projections.swap(0, Ordering::Relaxed), 1);
    for edge in 0..EDGES {
        let copy = key(&format!("edge-{edge:02}"), "configmaps", "till", "config-0");
        assert_eq!(world.object(&copy).unwrap()["data"], json!({ "a": "1", "custom": "blue" }));
    }
}

#[test]
fn a_changed_object_costs_work_for_what_it_concerns_only() {
    let (mut world, projections) = delivered(true);
    projections.store(0, Ordering::Relaxed);
    world.put(&named(3), config_map("2"));
    world.run();
    assert_eq!(written(&mut world).len(), EDGES);
    // To find its slots, to deliver, and to see what was delivered.
    assert!(projections.swap(0, Ordering::Relaxed) <= 3 * EDGES);
    // A copy that another hand touched concerns itself alone.
    let copy = key("edge-07", "configmaps", "till", "config-3");
    let mut theirs = world.object(&copy).unwrap().clone();
    theirs["data"]["a"] = json!("theirs");
    world.put(&copy, theirs);
    world.run();
    assert_eq!(written(&mut world).len(), 1);
    let spent = projections.swap(0, Ordering::Relaxed);
    assert!(spent <= 4, "{spent} projections for one slot");
    // An object that no route selects concerns nobody.
    world.put(
        &key("workload", "configmaps", "till", "other"),
        json!({ "apiVersion": "v1", "kind": "ConfigMap" }),
    );
    world.run();
    assert_eq!(projections.swap(0, Ordering::Relaxed), 0);
}

#[test]
fn what_goes_to_one_place_is_not_projected_again_when_it_is_shown_there() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    let route = translator("p1", &[1]);
    let projections = Arc::clone(&route.projections);
    configure(&mut world, route);
    known(&mut world);
    world.run();
    assert_eq!(written(&mut world).len(), 1);
    assert_eq!(projections.swap(0, Ordering::Relaxed), 2, "to find its slot, and to deliver");
    // What it is made from changes, and what is remembered of it does not count any more.
    for value in ["2", "3"] {
        world.put(&source(), config_map(value));
        world.run();
        assert_eq!(written(&mut world).len(), 1);
        assert_eq!(projections.swap(0, Ordering::Relaxed), 2);
    }
}

#[test]
fn a_cluster_that_is_named_late_gets_what_waited_for_it() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    world.engine.destination(mailboat_engine::route::Destination {
        id: mailboat_engine::route::DestinationId(9),
        cluster: mailboat_object::key::ClusterId::new("late"),
    });
    configure(&mut world, translator("p1", &[9]));
    known(&mut world);
    world.run();
    let late = key("late", "configmaps", "till", "pos");
    assert_eq!(world.engine.verdict(&late), Some(&Verdict::Waiting(Wait::Cluster)));
    world.engine.cluster(late.cluster.clone(), mailboat_object::wire::Abilities { apply: true, whole: true });
    world.run();
    assert_ne!(world.engine.verdict(&late), Some(&Verdict::Waiting(Wait::Cluster)));
}

#[test]
fn what_is_shown_again_just_as_it_was_costs_no_projection() {
    let (mut world, projections) = delivered(true);
    projections.store(0, Ordering::Relaxed);
    for cluster in ["workload", "edge-07"] {
        world.lose(cluster, "configmaps");
        world.find_again(cluster, "configmaps");
    }
    world.run();
    assert_eq!((projections.swap(0, Ordering::Relaxed), written(&mut world).len()), (0, 0));
    // Something else happens to a copy: only that one is looked at.
    let copy = key("edge-07", "configmaps", "till", "config-3");
    let mut other = world.object(&copy).unwrap().clone();
    other["status"] = json!({ "ready": true });
    world.put(&copy, other);
    world.run();
    assert_eq!((projections.swap(0, Ordering::Relaxed), written(&mut world).len()), (1, 0));
}

#[test]
fn a_route_that_goes_elsewhere_is_not_asked_again_about_what_it_does_not_select() {
    let (mut world, _) = delivered(false);
    let mut unselected = config_map("1");
    unselected["metadata"]["labels"] = json!({});
    for number in SOURCES..4 * SOURCES {
        world.put(&named(number), unselected.clone());
    }
    world.run();
    let goes_to = |world: &mut World, edges: usize| {
        let all: Vec<u32> = (0..u32::try_from(edges).unwrap()).collect();
        let mut route = translator("p1", &all);
        route.varies = false;
        route.head = route.head.selecting_by(edition(1));
        let selections = Arc::clone(&route.selections);
        configure(world, route);
        known(world);
        world.run();
        selections
    };
    let asked = |selections: &std::sync::atomic::AtomicUsize| selections.swap(0, Ordering::Relaxed);
    assert_eq!(asked(&goes_to(&mut world, EDGES)), 4 * SOURCES, "what it selects by was not known before");
    let selections = goes_to(&mut world, EDGES - 1);
    assert_eq!(asked(&selections), SOURCES);
    let left = |world: &World, edge: &str| {
        (0..4 * SOURCES)
            .filter(|n| world.object(&Key { cluster: ClusterId::new(edge), ..named(*n) }).is_some())
            .count()
    };
    assert_eq!((left(&world, "edge-19"), left(&world, "edge-18")), (0, SOURCES));
    // What changes is asked about all the same.
    world.put(&named(SOURCES), config_map("2"));
    world.run();
    assert_eq!((asked(&selections), left(&world, "edge-18")), (1, SOURCES + 1));
}
