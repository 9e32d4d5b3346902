//! What defines a kind goes after the objects of that kind.

use mailboat_engine::route::Sources;
use mailboat_object::key::ClusterId;
use mailboat_store::interest::{EndpointId, PlaceId};
use mailboat_store::store::Nature;

use crate::prelude::*;
use crate::roles::edition;
use crate::server::Server;

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
const BOATS: &str = "boats.example.dev";

fn definition(cluster: &str) -> Key {
    key(cluster, DEFINITIONS, "", BOATS)
}

fn boat(cluster: &str) -> Key {
    key(cluster, BOATS, "till", "tern")
}

/// A world in which the edge's boats are followed through a view that its workspace is not bound to, so that nothing is known
/// of them for ever.
fn unengaged() -> World {
    let mut world = world();
    for (cluster, kind) in [("workload", DEFINITIONS), ("workload", BOATS), ("florin", DEFINITIONS)] {
        world.follow(cluster, kind);
    }
    let (view, endpoint) = (PlaceId::new("view"), EndpointId::new("one"));
    world.servers.insert(ClusterId::new("view"), Server::default());
    world.store.open(&view, Nature::View, [endpoint], &mut Vec::new());
    for kind in ["apibindings.apis.kcp.io", BOATS] {
        world.follow("view", kind);
    }
    assert_eq!(world.store.get(&boat("florin")).doubt(), Some(Doubt::NotEngaged));
    world.put(&definition("workload"), config_map("1"));
    world
}

/// Places what stands at the center of these kinds, and nothing else.
fn place(world: &mut World, kinds: &'static [&str]) {
    let mut route = translator("p1", &[FLORIN]);
    route.head.configuration = edition(kinds.len() as u64);
    route.head.sources = [DEFINITIONS, BOATS]
        .into_iter()
        .map(|kind| key("workload", kind, "", ""))
        .map(|of| Sources { place: PlaceId::new("workload"), cluster: Some(of.cluster), kind: of.kind })
        .collect();
    route.select = Box::new(|source, _| {
        let asked = kinds.iter().any(|kind| key("", kind, "", "").kind == source.key.kind);
        Ok(if asked { vec![FLORIN] } else { vec![] })
    });
    configure(world, route);
    known(world);
    world.run_for(600_000);
}

fn there(world: &World) -> [bool; 2] {
    [definition("florin"), boat("florin")].map(|key| world.object(&key).is_some())
}

#[test]
fn where_nothing_is_known_of_its_kind_it_stays_until_what_we_put_there_has_gone() {
    let mut world = unengaged();
    world.put(&boat("workload"), config_map("1"));
    place(&mut world, &[DEFINITIONS, BOATS]);
    assert_eq!(there(&world), [true, true]);
    place(&mut world, &[BOATS]);
    assert_eq!(there(&world), [true, true], "the boat would have gone with its definition");
    place(&mut world, &[]);
    assert_eq!(there(&world), [false, false], "{}", explain(&world, &definition("florin")));
}

#[test]
fn where_nothing_is_known_of_its_kind_and_we_put_nothing_it_goes() {
    let mut world = unengaged();
    place(&mut world, &[DEFINITIONS]);
    assert_eq!(there(&world), [true, false]);
    place(&mut world, &[]);
    assert_eq!(there(&world), [false, false], "{}", explain(&world, &definition("florin")));
}
