//! Copies that are patched from what was last delivered: others write them as well.

use mailboat_engine::mark::LAST_ANNOTATION;
use mailboat_engine::want::{Adopt, Delivery, Policy, Withdrawal};
use mailboat_object::object::Keep;
use mailboat_object::wire::Abilities;

use crate::prelude::*;
use crate::roles::policy;

fn patching() -> Skeleton {
    let mut route = translator("p1", &[FLORIN]);
    route.policy = Arc::new(Policy { delivery: Delivery::ThreeWay, ..policy() });
    route
}

fn with_data(data: Value) -> Value {
    let mut object = config_map("");
    object["data"] = data;
    object
}

/// Somebody else writes the copy.
fn meddle(world: &mut World, change: impl FnOnce(&mut Value)) {
    let mut object = world.object(&copy()).unwrap().clone();
    change(&mut object);
    world.put(&copy(), object);
    world.run();
}

fn begin(world: &mut World, route: Skeleton) {
    configure(world, route);
    known(world);
    world.run();
}

fn data_of_copy(world: &World) -> &Value {
    &world.object(&copy()).unwrap()["data"]
}

/// The story that all of these tell, whatever is kept of the copies and whatever their place can do.
fn others_keep_what_is_theirs(world: &mut World) {
    world.put(&source(), with_data(json!({ "a": "1", "b": "1" })));
    begin(world, patching());
    assert_eq!(*data_of_copy(world), json!({ "a": "1", "b": "1" }));
    written(world);
    meddle(world, |copy| copy["data"] = json!({ "a": "theirs", "b": "1", "own": "theirs" }));
    assert_eq!(written(world), Vec::<String>::new(), "what others write is left to them");
    // One value changes, one is no longer wanted; what is theirs is not touched.
    world.put(&source(), with_data(json!({ "a": "1", "c": "2" })));
    world.run();
    assert_eq!(*data_of_copy(world), json!({ "a": "theirs", "c": "2", "own": "theirs" }));
    assert_eq!(written(world).len(), 1);
    world.put(&source(), with_data(json!({ "a": "2", "c": "2" })));
    world.run();
    assert_eq!(
        *data_of_copy(world),
        json!({ "a": "2", "c": "2", "own": "theirs" }),
        "what the source changes wins"
    );
    written(world);
}

#[test]
fn what_others_write_stays_until_its_source_changes_it() {
    let mut world = world();
    others_keep_what_is_theirs(&mut world);
}

#[test]
fn it_is_the_same_where_only_heads_of_copies_are_kept() {
    let mut world = world();
    world.keep = Keep::Head;
    world.follow("florin", "configmaps");
    others_keep_what_is_theirs(&mut world);
}

#[test]
fn it_is_the_same_where_a_place_cannot_apply() {
    let mut world = world();
    world.engine.cluster(copy().cluster, Abilities { apply: false, whole: true });
    others_keep_what_is_theirs(&mut world);
}

#[test]
fn what_was_delivered_is_known_again_after_a_restart() {
    let mut world = world();
    world.put(&source(), with_data(json!({ "a": "1", "b": "1" })));
    begin(&mut world, patching());
    meddle(&mut world, |copy| copy["data"]["own"] = json!("theirs"));
    world.restart(&KINDS);
    begin(&mut world, patching());
    assert_eq!(written(&mut world), Vec::<String>::new(), "a restart wrote something");
    // The source changes while nobody runs.
    world.put(&source(), with_data(json!({ "a": "1" })));
    world.restart(&KINDS);
    begin(&mut world, patching());
    assert_eq!(*data_of_copy(&world), json!({ "a": "1", "own": "theirs" }));
    world.remove(&source());
    world.run();
    assert!(world.object(&copy()).is_none(), "it is ours, and goes with its source");
}

#[test]
fn a_copy_that_is_let_go_keeps_no_memory_of_us() {
    let mut world = world();
    world.put(&source(), with_data(json!({ "a": "1" })));
    let leaving = || {
        let mut route = patching();
        route.policy = Arc::new(Policy { withdrawal: Withdrawal::Leave, ..(*route.policy).clone() });
        route
    };
    begin(&mut world, leaving());
    assert!(world.object(&copy()).unwrap()["metadata"]["annotations"][LAST_ANNOTATION].is_string());
    world.remove(&source());
    world.run();
    let left = world.object(&copy()).expect("it was to stay");
    assert_eq!(left["data"], json!({ "a": "1" }));
    assert!(left["metadata"]["annotations"][LAST_ANNOTATION].is_null(), "{left}");
    assert!(left["metadata"]["annotations"]["mailboat.dev/mark"].is_null(), "{left}");
}

#[test]
fn what_is_adopted_keeps_what_was_there_and_gets_what_is_wanted() {
    let mut world = world();
    world.put(
        &copy(),
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "old", "own": "theirs" } }),
    );
    world.put(&source(), with_data(json!({ "a": "1" })));
    let mut route = patching();
    route.policy = Arc::new(Policy { adopt: Adopt::Unmarked, ..(*route.policy).clone() });
    begin(&mut world, route);
    assert_eq!(*data_of_copy(&world), json!({ "a": "1", "own": "theirs" }));
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled));
}
