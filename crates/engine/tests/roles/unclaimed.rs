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
