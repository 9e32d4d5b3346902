//! Fields on objects of others, and objects of others that become ours because somebody asked.

use mailboat_engine::want::{Adopt, Delivery, Policy, Withdrawal};

use crate::prelude::*;
use crate::roles::policy;

/// A route that keeps an annotation on every object with a label, in its own workspace.
fn annotator(destinations: &[u32]) -> Skeleton {
    let mut route = translator("counts", destinations);
    route.policy =
        Arc::new(Policy { delivery: Delivery::Overlay, withdrawal: Withdrawal::Leave, ..policy() });
    route.project = Box::new(|source, _, _| {
        let count = source.get(&["data", "count"]).map_or(json!("1"), mailboat_object::Raw::to_value);
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "annotations": { "count": count } } });
        Ok(vec![(source.key.clone(), body)])
    });
    route
}

const WORKLOAD: u32 = 3;

#[test]
fn fields_on_a_users_object_follow_and_go_and_the_object_stays() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, annotator(&[WORKLOAD]));
    known(&mut world);
    world.run();
    let object = world.object(&source()).unwrap();
    assert_eq!(
        (&object["metadata"]["annotations"]["count"], &object["data"]),
        (&json!("1"), &json!({ "a": "1" }))
    );
    assert!(
        object["metadata"]["labels"]["mailboat.dev/owner"].is_null(),
        "it is not a copy of ours: {object}"
    );
    assert_eq!(written(&mut world).len(), 1, "its own write wakes it and is found to be as wanted");
    world.restart(&KINDS);
    configure(&mut world, annotator(&[WORKLOAD]));
    known(&mut world);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new(), "a restart wrote something");
    let mut changed = world.object(&source()).unwrap().clone();
    changed["data"]["count"] = json!("2");
    world.put(&source(), changed);
    world.run();
    assert_eq!(world.object(&source()).unwrap()["metadata"]["annotations"]["count"], "2");
    // Nobody asks for the annotation any more, also after a restart: it goes, and nothing else.
    world.restart(&KINDS);
    configure(&mut world, annotator(&[]));
    known(&mut world);
    world.run();
    let object = world.object(&source()).expect("the user's object was deleted");
    assert_eq!(object["data"], json!({ "a": "1", "count": "2" }));
    assert!(object["metadata"]["annotations"]["count"].is_null(), "{object}");
    assert!(object["metadata"]["annotations"]["mailboat.dev/mark"].is_null(), "{object}");
}

#[test]
fn h25_a_field_that_somebody_else_owns_is_not_taken_from_them() {
    let mut world = world();
    let mut theirs = config_map("1");
    theirs["metadata"]["annotations"] = json!({ "count": "theirs" });
    world.put(&source(), theirs);
    configure(&mut world, annotator(&[WORKLOAD]));
    known(&mut world);
    world.run_for(60_000);
    assert_eq!(world.object(&source()).unwrap()["metadata"]["annotations"]["count"], "theirs");
    assert_eq!(world.engine.verdict(&source()), Some(&Verdict::Waiting(Wait::Rest)));
    assert!(explain(&world, &source()).contains("conflict with another field manager"));
    assert!(world.servers[&source().cluster].refusals < 20, "it is asked again and again");
}

fn adopting() -> Skeleton {
    let mut route = translator("p1", &[FLORIN]);
    route.policy = Arc::new(Policy { adopt: Adopt::Unmarked, ..policy() });
    route
}

#[test]
fn an_object_that_is_nobodys_becomes_ours_if_its_source_asks_for_that() {
    let mut world = world();
    world.put(
        &copy(),
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "old", "local": "stays" } }),
    );
    world.put(&source(), config_map("1"));
    let uid = world.object(&copy()).unwrap()["metadata"]["uid"].clone();
    configure(&mut world, adopting());
    known(&mut world);
    world.run();
    let object = world.object(&copy()).unwrap();
    assert_eq!(object["data"], json!({ "a": "1", "local": "stays" }));
    assert_eq!(object["metadata"]["uid"], uid, "it was not made anew");
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled));
    world.restart(&KINDS);
    configure(&mut world, adopting());
    known(&mut world);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new(), "a restart wrote something");
    world.remove(&source());
    world.run();
    assert!(world.object(&copy()).is_none(), "it is ours now, and goes with its source");
}

/// As a namespace that was made for what is in it while the namespace itself was being delivered.
#[test]
fn what_a_first_delivery_meets_is_adopted_if_its_source_asks_for_that() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, adopting());
    known(&mut world);
    // It appears on the server, and its event has not arrived when the delivery is sent.
    world.put(&copy(), json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "local": "stays" } }));
    let late = std::mem::take(&mut world.servers.get_mut(&copy().cluster).unwrap().events);
    world.run_for(1);
    let events = &mut world.servers.get_mut(&copy().cluster).unwrap().events;
    let ours = std::mem::replace(events, late);
    events.extend(ours);
    world.run();
    assert_eq!(world.object(&copy()).unwrap()["data"], json!({ "a": "1", "local": "stays" }));
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled));
    written(&mut world);
    world.run_for(60_000);
    assert_eq!(written(&mut world), Vec::<String>::new(), "it is let go of and taken again and again");
}

#[test]
fn h12_an_object_of_another_owner_is_not_adopted_whoever_asks() {
    let mut world = world();
    let theirs = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "theirs" },
        "metadata": { "labels": { "mailboat.dev/owner": "another" } } });
    world.put(&copy(), theirs);
    world.put(&source(), config_map("1"));
    configure(&mut world, adopting());
    known(&mut world);
    world.run();
    assert_eq!(world.object(&copy()).unwrap()["data"], json!({ "a": "theirs" }));
    let verdict = world.engine.verdict(&copy());
    assert!(matches!(verdict, Some(Verdict::Refused(Refusal::OthersOwn(_)))), "{verdict:?}");
}

#[test]
fn what_is_on_its_way_out_takes_nothing_over_and_nothing_along() {
    let mut world = world();
    let theirs = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "theirs" } });
    world.put(&copy(), theirs);
    world.put(&source(), config_map("1"));
    let mut leaving = adopting();
    leaving.policy = Arc::new(Policy { delivery: Delivery::Keep, ..(*leaving.policy).clone() });
    configure(&mut world, leaving);
    known(&mut world);
    world.run();
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run_for(600_000);
    assert_eq!(world.object(&copy()).expect("somebody else's object was deleted")["data"]["a"], "theirs");
    assert_eq!(written(&mut world), Vec::<String>::new());
}

/// As a user makes it who restores an object from one of its copies: with our label, and with a mark that names an object of
/// this name and kind.
#[test]
fn a_source_that_was_restored_from_its_copy_is_not_taken_for_a_copy() {
    let cases = [false, true].into_iter().flat_map(|restarted| [(restarted, false), (restarted, true)]);
    for (restarted, selected) in cases {
        let mut world = world();
        world.put(&source(), config_map("1"));
        configure(&mut world, translator("p1", &[FLORIN]));
        known(&mut world);
        world.run();
        let mut restored = world.object(&copy()).unwrap().clone();
        if selected {
            restored["metadata"]["labels"]["place"] = json!("yes");
        }
        restored["metadata"]["annotations"]["count"] = json!("theirs");
        world.put(&source(), restored);
        if restarted {
            world.restart(&KINDS);
            configure(&mut world, translator("p1", &[FLORIN]));
            known(&mut world);
        }
        world.run();
        let theirs =
            world.object(&source()).expect("a user's object was deleted as a copy of itself").clone();
        assert_eq!(world.object(&copy()).is_some(), selected, "its copy goes as it is selected");
        // Nor are its fields ours to take, as those of a copy are.
        configure(&mut world, annotator(&[WORKLOAD]));
        world.run_for(60_000);
        assert_eq!(world.object(&source()), Some(&theirs), "{}", explain(&world, &source()));
        world.engine.configure(&world.store, &RouteId(Name::new("counts")), None);
        world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
        world.run();
        assert_eq!(world.object(&source()), Some(&theirs), "nobody wants it, and it is the user's");
        assert!(world.object(&copy()).is_none());
    }
}
