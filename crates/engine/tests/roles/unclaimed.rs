//! What nobody claims after a restart, and whose configuration is not known as a whole.

use crate::prelude::*;

/// A copy whose source was deleted while no process ran. Now one does that follows everything but this, and does not know its
/// configuration as a whole: some of it cannot be read.
fn left_behind(but: (&str, &str)) -> World {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, edge_syncer("s", "workload", FLORIN));
    known(&mut world);
    world.run();
    world.remove(&source());
    world.restart_following(|cluster| KINDS.into_iter().filter(|kind| (cluster, *kind) != but).collect());
    configure(&mut world, edge_syncer("s", "workload", FLORIN));
    world.begin_to_follow(but.0, but.1, Filter::All);
    world
}

#[test]
fn it_goes_when_its_source_turns_out_to_be_gone() {
    let mut world = left_behind(("workload", "configmaps"));
    world.run();
    assert!(world.object(&copy()).is_some(), "nothing is known of its source");
    world.last_page("workload", "configmaps", 0);
    world.run();
    assert!(world.object(&copy()).is_none(), "{}", explain(&world, &copy()));
}

#[test]
fn it_goes_when_all_that_stands_beside_it_is_known() {
    let mut world = left_behind(("florin", "configmaps"));
    world.put(&key("florin", "configmaps", "till", "theirs"), config_map("2"));
    world.first_page("florin", "configmaps", 1);
    world.run();
    assert!(world.object(&copy()).is_some(), "half of what would go with it is not known");
    world.last_page("florin", "configmaps", 1);
    world.run();
    assert!(world.object(&copy()).is_none(), "{}", explain(&world, &copy()));
}

/// A related object's copy is the related object's own. Its claim comes with another object, and nothing is known of that.
#[test]
fn a_related_copy_stays_as_long_as_what_brings_it_along_is_not_known() {
    let related = key("florin", "secrets", "till", "tenant-related");
    let mut world = world();
    let publish = |world: &mut World| {
        let mut route = publisher("pub", "tenant", FLORIN);
        route.relates = vec![related.kind.clone()];
        configure(world, route);
        known(world);
    };
    let primary = key("tenant", "configmaps", "till", "pos");
    world.put(&primary, config_map("1"));
    world.put(&key("tenant", "secrets", "till", "pos"), config_map("s"));
    publish(&mut world);
    world.run();
    assert!(world.object(&related).is_some());
    let but = ("tenant", "configmaps");
    world.restart_following(|cluster| KINDS.into_iter().filter(|kind| (cluster, *kind) != but).collect());
    publish(&mut world);
    world.begin_to_follow("tenant", "configmaps", Filter::All);
    world.run_for(60_000);
    assert!(world.object(&related).is_some(), "nobody has claimed it yet, and it was taken for unwanted");
    world.unserve("tenant", "configmaps");
    world.run_for(60_000);
    assert!(world.object(&related).is_some(), "{}", explain(&world, &related));
    // What brings it along is known, and does not any more.
    world.remove(&primary);
    world.find_again("tenant", "configmaps");
    world.run_for(60_000);
    assert!(world.object(&related).is_none(), "{}", explain(&world, &related));
}

#[test]
fn a_copy_of_something_that_its_route_does_not_name_is_not_made() {
    let mut world = world();
    let mut route = publisher("pub", "tenant", FLORIN);
    route.relates = vec![key("", "secrets", "", "").kind];
    route.hides_relations = true;
    world.put(&key("tenant", "configmaps", "till", "pos"), config_map("1"));
    world.put(&key("tenant", "secrets", "till", "pos"), config_map("s"));
    configure(&mut world, route);
    known(&mut world);
    world.run_for(60_000);
    assert!(world.object(&key("florin", "secrets", "till", "tenant-related")).is_none());
}

/// Ten copies, deselected while no process ran, and the sources of two were deleted as well. Of the rest, a process that starts
/// can say nothing before it knows its configuration as a whole.
#[test]
fn what_lost_its_source_does_not_go_before_the_rest_of_a_mass_withdrawal_is_known() {
    let sources: Vec<Key> =
        (0..10).map(|n| key("workload", "configmaps", "till", &format!("c{n}"))).collect();
    let left = |world: &World| {
        let copies = sources.iter().map(|source| key("florin", "configmaps", "till", &source.name));
        copies.filter(|copy| world.object(copy).is_some()).count()
    };
    let mut world = world();
    for source in &sources {
        world.put(source, config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert_eq!(left(&world), 10);
    for source in &sources[..2] {
        world.remove(source);
    }
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[]));
    world.run_for(60_000);
    assert_eq!(left(&world), 10, "two of ten went, and the other eight would be few after them");
    assert_eq!(world.engine.held_by_scope().count(), 0, "nobody is asked about what is being read");
    known(&mut world);
    world.run_for(60_000);
    assert_eq!(left(&world), 10, "they went in two parts");
    let asked: Vec<_> = world.engine.held_by_scope().map(|(scope, _, n)| (scope.0.to_string(), n)).collect();
    assert!(asked.contains(&("unclaimed/florin".to_owned(), 10)), "{asked:?}");
}
