//! Writes that come too late: what stands there is read afresh, and decided about at once when it is shown.

use mailboat_engine::want::{Delivery, Policy};

use crate::prelude::*;
use crate::roles::policy;

/// A source and its copy, delivered by this route.
fn delivered(world: &mut World, source: &Key, route: Skeleton) {
    world.put(source, config_map("1"));
    configure(world, route);
    known(world);
    world.run();
    written(world);
}

/// Somebody changes an object, and nobody is shown it yet.
fn change_unseen(world: &mut World, object: &Key) {
    world.servers.get_mut(&object.cluster).unwrap().silent = true;
    let mut changed = world.object(object).unwrap().clone();
    changed["metadata"]["labels"]["changed"] = json!("by another");
    world.put(object, changed);
}

/// Time passes while a server shows nothing: one write came too late, what stands there was read once, and nothing else was sent.
fn is_asked_once(world: &mut World, of: &Key) {
    let before = (world.servers[&of.cluster].conflicts, world.servers[&of.cluster].gets);
    let calls = world.servers[&of.cluster].calls;
    world.run_for(30_000);
    let server = &world.servers[&of.cluster];
    assert_eq!((server.conflicts - before.0, server.gets - before.1), (1, 1), "too late, read");
    assert_eq!(server.calls - calls, 2, "it was asked again and again");
}

/// Its watches go on.
fn show(world: &mut World, of: &Key) {
    world.servers.get_mut(&of.cluster).unwrap().silent = false;
    let before = world.now;
    world.run_for(5);
    assert!(world.now - before < 100, "it paused for {} ms", world.now - before);
}

#[test]
fn a_delete_that_comes_too_late_is_decided_anew_when_the_change_is_shown() {
    let mut world = world();
    delivered(&mut world, &source(), translator("p1", &[FLORIN]));
    change_unseen(&mut world, &copy());
    world.remove(&source());
    is_asked_once(&mut world, &copy());
    assert!(world.object(&copy()).is_some());
    show(&mut world, &copy());
    assert_eq!(world.object(&copy()), None, "{}", explain(&world, &copy()));
}

#[test]
fn a_delete_that_comes_too_late_does_not_go_where_the_mark_was_taken_off() {
    let mut world = world();
    delivered(&mut world, &source(), translator("p1", &[FLORIN]));
    world.servers.get_mut(&copy().cluster).unwrap().silent = true;
    let mut theirs = world.object(&copy()).unwrap().clone();
    theirs["metadata"]["annotations"] = json!({});
    theirs["metadata"]["labels"] = json!({});
    world.put(&copy(), theirs);
    world.remove(&source());
    is_asked_once(&mut world, &copy());
    show(&mut world, &copy());
    assert!(world.object(&copy()).is_some(), "it is theirs now");
}

#[test]
fn a_patch_that_comes_too_late_is_made_anew_when_the_change_is_shown() {
    let mut world = world();
    let mut route = translator("p1", &[FLORIN]);
    route.policy = Arc::new(Policy { delivery: Delivery::ThreeWay, ..policy() });
    delivered(&mut world, &source(), route);
    change_unseen(&mut world, &copy());
    world.put(&source(), config_map("2"));
    is_asked_once(&mut world, &copy());
    show(&mut world, &copy());
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "2", "{}", explain(&world, &copy()));
    assert_eq!(world.object(&copy()).unwrap()["metadata"]["labels"]["changed"], "by another");
}

#[test]
fn a_status_that_comes_too_late_is_told_when_the_change_of_its_source_is_shown() {
    let mut world = world();
    let (mailbox, edge) = (key("tenant", "configmaps", "till", "pos"), copy());
    delivered(&mut world, &mailbox, edge_syncer("s", "tenant", FLORIN));
    change_unseen(&mut world, &mailbox);
    let mut ready = world.object(&edge).unwrap().clone();
    ready["status"] = json!({ "ready": 3 });
    world.put(&edge, ready);
    is_asked_once(&mut world, &mailbox);
    show(&mut world, &mailbox);
    assert_eq!(world.object(&mailbox).unwrap()["status"]["ready"], 3, "{}", explain(&world, &edge));
}

#[test]
fn a_finalizer_that_comes_too_late_is_put_on_when_the_change_of_its_source_is_shown() {
    let mut world = world();
    let mut route = translator("p1", &[FLORIN]);
    world.put(&source(), config_map("1"));
    world.run();
    route.policy = Arc::new(Policy { finalizer: true, ..policy() });
    configure(&mut world, route);
    known(&mut world);
    change_unseen(&mut world, &source());
    is_asked_once(&mut world, &source());
    assert_eq!(world.object(&copy()), None, "its source could vanish unseen");
    show(&mut world, &source());
    let held = &world.object(&source()).unwrap()["metadata"];
    assert_eq!(held["finalizers"], json!(["mailboat.dev/test"]), "{}", explain(&world, &copy()));
    assert!(world.object(&copy()).is_some());
}

#[test]
fn a_copy_that_went_unseen_is_not_deleted_again_and_again() {
    let mut world = world();
    delivered(&mut world, &source(), translator("p1", &[FLORIN]));
    world.servers.get_mut(&copy().cluster).unwrap().silent = true;
    world.remove(&copy());
    world.remove(&source());
    let calls = world.servers[&copy().cluster].calls;
    world.run_for(30_000);
    let calls = world.servers[&copy().cluster].calls - calls;
    assert!((1..12).contains(&calls), "{calls} calls in half a minute");
    show(&mut world, &copy());
    assert_eq!(world.engine.verdict(&copy()), None, "{}", explain(&world, &copy()));
}

#[test]
fn conflicts_that_go_on_are_tried_ever_more_slowly() {
    let mut world = world();
    let mut route = translator("p1", &[FLORIN]);
    route.policy = Arc::new(Policy { delivery: Delivery::ThreeWay, ..policy() });
    delivered(&mut world, &source(), route);
    world.put(&source(), config_map("2"));
    // Somebody is faster each time.
    world.servers.get_mut(&copy().cluster).unwrap().outruns = true;
    let before = world.now;
    while world.now < before + 60_000 {
        world.run_for(1_000);
        world.now += 100;
    }
    let conflicts = world.servers[&copy().cluster].conflicts;
    assert!((3..20).contains(&conflicts), "{conflicts} conflicts in a minute");
    world.servers.get_mut(&copy().cluster).unwrap().outruns = false;
    world.run_for(60_000);
    assert_eq!(world.object(&copy()).unwrap()["data"]["a"], "2");
}
