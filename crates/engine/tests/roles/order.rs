//! What goes first: what a user just changed, what others wait for, and nobody for ever.

use mailboat_engine::route::Sources;
use mailboat_store::interest::PlaceId;

use crate::prelude::*;
use crate::world::Order;

fn numbered(cluster: &str, number: usize) -> Key {
    key(cluster, "configmaps", "till", &format!("c{number:02}"))
}

/// Which of so many copies stand at the first edge.
fn arrived(world: &World, many: usize) -> Vec<usize> {
    (0..many).filter(|number| world.object(&numbered("florin", *number)).is_some()).collect()
}

/// Many sources that a process finds when it starts, the first few of them delivered.
fn in_the_midst_of_a_first_listing(many: usize) -> World {
    let mut world = world();
    for number in 0..many {
        world.put(&numbered("workload", number), config_map("1"));
    }
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    for _ in 0..5 {
        world.run_until_call(|_| {});
    }
    assert_eq!(arrived(&world, many).len(), 5);
    world
}

#[test]
fn what_a_user_changes_goes_before_the_rest_of_a_first_listing() {
    let mut world = in_the_midst_of_a_first_listing(60);
    world.put(&numbered("workload", 59), config_map("2"));
    world.run_until_call(|_| {});
    let there = arrived(&world, 60);
    assert!(there.contains(&59) && there.len() == 6, "{there:?}");
    assert_eq!(world.object(&numbered("florin", 59)).unwrap()["data"]["a"], "2");
    world.run();
    assert_eq!(arrived(&world, 60).len(), 60, "nothing is forgotten");
}

#[test]
fn a_small_route_does_not_wait_for_a_large_one() {
    let mut world = in_the_midst_of_a_first_listing(60);
    for name in ["one", "two"] {
        world.put(&key("tenant", "configmaps", "till", name), config_map("1"));
    }
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    configure(&mut world, edge_syncer("small", "tenant", GUILDER));
    known(&mut world);
    for _ in 0..6 {
        world.run_until_call(|_| {});
    }
    for name in ["one", "two"] {
        assert!(world.object(&key("guilder", "configmaps", "till", name)).is_some(), "{name} waits");
    }
}

#[test]
fn namespaces_and_definitions_go_before_what_stands_in_them() {
    let mut world = world();
    for number in 0..20 {
        world.put(&numbered("workload", number), config_map("1"));
    }
    // By name it would come last.
    let namespace = |cluster: &str| key(cluster, "namespaces", "", "zoo");
    world.put(&namespace("workload"), config_map("1"));
    world.restart(&KINDS);
    let mut route = translator("p1", &[FLORIN]);
    let of = namespace("workload");
    let (place, cluster) = (PlaceId::new("workload"), Some(of.cluster));
    route.head.sources.push(Sources { place, cluster, kind: of.kind });
    configure(&mut world, route);
    known(&mut world);
    world.run_until_call(|_| {});
    assert!(world.object(&namespace("florin")).is_some(), "{:?}", arrived(&world, 20));
}

#[test]
fn a_kind_that_is_added_while_it_runs_is_carried_and_one_that_is_taken_out_goes() {
    let mut world = world();
    let secret = |cluster: &str| key(cluster, "secrets", "till", "pos");
    world.put(&source(), config_map("1"));
    world.put(&secret("workload"), config_map("2"));
    let route = |kinds: &[&str], edition: u64| {
        let mut route = translator("p1", &[FLORIN]);
        route.head.configuration = crate::roles::edition(edition);
        route.asks_for_sources_alone = true;
        let asked: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        route.select = Box::new(move |source, _| {
            let selects = asked.iter().any(|kind| source.key.kind.resource() == kind);
            Ok(if selects { vec![FLORIN] } else { vec![] })
        });
        route.head.sources = kinds
            .iter()
            .map(|kind| {
                let of = key("workload", kind, "", "");
                Sources { place: PlaceId::new("workload"), cluster: Some(of.cluster), kind: of.kind }
            })
            .collect();
        route
    };
    let there = |world: &World| [world.object(&copy()).is_some(), world.object(&secret("florin")).is_some()];
    known(&mut world);
    for (edition, (kinds, wanted)) in (1..).zip([
        (&["configmaps"][..], [true, false]),
        (&["configmaps", "secrets"], [true, true]),
        (&["secrets"], [false, true]),
    ]) {
        configure(&mut world, route(kinds, edition));
        world.run();
        assert_eq!(there(&world), wanted, "{kinds:?}");
    }
}

/// At an edge where namespaces are shown, and at one where they are not, so that a refusal tells that one is missing.
#[test]
fn a_namespace_that_many_wait_for_is_made_once() {
    for shown in [true, false] {
        let mut world = World::new(&CLUSTERS);
        for kind in KINDS {
            world.follow("workload", kind);
        }
        world.follow("florin", "configmaps");
        if shown {
            world.follow("florin", "namespaces");
        }
        world.servers.get_mut(&copy().cluster).unwrap().strict = true;
        for n in 0..100 {
            world.put(&key("workload", "configmaps", "quay", &format!("c{n:02}")), config_map("1"));
        }
        configure(&mut world, translator("p1", &[FLORIN]));
        known(&mut world);
        world.run_in(&mut Order(1));
        let server = &world.servers[&copy().cluster];
        assert_eq!(server.namespaces_asked, 1, "shown: {shown}");
        let copies = server.objects.keys().filter(|key| *key.namespace == *"quay").count();
        assert_eq!(copies, 100, "shown: {shown}");
        assert!(world.now < 2_000, "it took {} ms, shown: {shown}", world.now - 1_000);
    }
}
