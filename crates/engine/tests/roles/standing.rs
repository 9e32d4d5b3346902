//! What the engine tells of all slots at once.

use mailboat_engine::engine::NotCurrent;
use mailboat_engine::standing::{Counts, Part};
use mailboat_object::key::{ClusterId, Version};

use crate::prelude::*;

fn at(cluster: &str) -> Part {
    Part::Cluster(ClusterId::new(cluster))
}

fn of(scope: &str) -> Part {
    Part::Scope(mailboat_engine::breaker::ScopeId(Name::new(scope)))
}

fn counts(delivered: usize, waiting: usize, refused: usize, held: usize) -> Counts {
    Counts { delivered, waiting, refused, held }
}

fn listed(world: &World, part: &Part) -> Vec<NotCurrent> {
    world.engine.not_current(&world.store, part, 100)
}

#[test]
fn what_is_delivered_waits_and_is_refused_is_counted_as_it_changes() {
    let mut world = world();
    for name in ["one", "two", "three"] {
        world.put(&key("workload", "configmaps", "till", name), config_map("1"));
    }
    let taken = key("florin", "configmaps", "till", "two");
    world.put(&taken, json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "theirs": "1" } }));
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    assert_eq!(world.engine.counts(&at("florin")), counts(2, 0, 1, 0));
    assert_eq!(world.engine.counts(&at("guilder")), counts(3, 0, 0, 0));
    assert_eq!(world.engine.counts(&of("p1")), counts(5, 0, 1, 0));
    let refused = listed(&world, &of("p1"));
    let [only] = refused.as_slice() else { panic!("{refused:?}") };
    assert_eq!(
        (only.slot.as_ref(), only.source.as_ref()),
        (Some(&taken), Some(&key("workload", "configmaps", "till", "two")))
    );
    assert_eq!(only.verdict, Verdict::Refused(Refusal::Foreign));
    // The name becomes free, and a cluster goes away before it hears of a change.
    world.remove(&taken);
    world.run();
    assert_eq!(world.engine.counts(&of("p1")), counts(6, 0, 0, 0));
    world.servers.get_mut(&ClusterId::new("guilder")).unwrap().link = Link::Away;
    world.put(&key("workload", "configmaps", "till", "one"), config_map("2"));
    world.run_for(2_000);
    assert_eq!(world.engine.counts(&at("guilder")), counts(2, 1, 0, 0));
    assert_eq!(listed(&world, &at("guilder"))[0].verdict, Verdict::Waiting(Wait::Cluster));
    // What is withdrawn is counted no more.
    world.servers.get_mut(&ClusterId::new("guilder")).unwrap().link = Link::Up;
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run();
    assert_eq!(world.engine.counts(&at("florin")), Counts::default());
    assert_eq!(world.engine.counts(&of("p1")), Counts::default());
}

#[test]
fn a_slot_that_another_placement_takes_over_is_counted_with_that_one() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    configure(&mut world, translator("p2", &[FLORIN]));
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run();
    assert_eq!(world.engine.counts(&of("p1")), Counts::default());
    assert_eq!(world.engine.counts(&of("p2")), counts(1, 0, 0, 0));
    assert_eq!(world.engine.counts(&at("florin")), counts(1, 0, 0, 0));
}

#[test]
fn a_held_change_is_told_with_its_size_until_it_is_confirmed() {
    let mut world = world();
    for number in 0..12 {
        world.put(&key("workload", "configmaps", "till", &format!("c{number}")), config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    configure(&mut world, translator("p1", &[]));
    world.run();
    assert_eq!(world.engine.counts(&of("p1")), counts(0, 0, 0, 12));
    let held: Vec<_> = world.engine.held().collect();
    let [(change, 12)] = held.as_slice() else { panic!("{held:?}") };
    assert_eq!(world.engine.not_current(&world.store, &of("p1"), 5).len(), 5, "a list has its limit");
    assert!(world.engine.confirm(&mailboat_engine::breaker::ScopeId(Name::new("p1")), *change));
    world.run();
    assert_eq!((world.engine.held().count(), world.engine.counts(&at("florin"))), (0, Counts::default()));
}

#[test]
fn h18_what_has_no_slot_yet_because_it_is_undecided_is_told_all_the_same() {
    let mut world = world();
    let mut custom = config_map("1");
    custom["metadata"]["annotations"] = json!({ "customizer": "missing" });
    world.put(&source(), custom);
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    let route = RouteId(Name::new("p1"));
    assert_eq!(world.engine.counts(&of("p1")), Counts::default(), "there is no slot");
    assert_eq!(world.engine.undecided_count(&route), 1);
    let told = world.engine.undecided(&world.store, &route, 10);
    assert_eq!((told.len(), told[0].source.as_ref()), (1, Some(&source())));
    assert!(told[0].verdict.to_string().contains("its customizer is missing"), "{}", told[0].verdict);
    let customizer = key("workload", "customizers", "", "missing");
    world.put(&customizer, json!({ "apiVersion": "v1", "kind": "Customizer", "value": "red" }));
    world.run();
    assert_eq!((world.engine.undecided_count(&route), world.engine.counts(&of("p1")).delivered), (0, 2));
}

#[test]
fn how_far_everything_is_delivered_never_says_more_than_is_so() {
    let mut world = world();
    let mailbox = ClusterId::new("workload");
    let read = Version(1_000_000);
    world.put(&source(), config_map("1"));
    world.run();
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    assert_eq!(world.engine.delivered_up_to(&mailbox, read), None, "it is being evaluated");
    world.run();
    assert_eq!(world.engine.delivered_up_to(&mailbox, read), Some(read));
    // While a delivery is under way, what it delivers does not count.
    world.put(&source(), config_map("2"));
    let version = |world: &World| {
        let object = world.object(&source()).unwrap();
        Version(object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
    };
    let changed = version(&world);
    world.run_until_call(|world| {
        assert_eq!(world.engine.delivered_up_to(&mailbox, read), Some(Version(changed.0 - 1)));
    });
    world.run();
    assert_eq!(world.engine.delivered_up_to(&mailbox, read), Some(read));
    // What cannot be delivered is listed, and no longer in the way.
    world.servers.get_mut(&copy().cluster).unwrap().refuses = Some("3");
    world.put(&source(), config_map("3"));
    world.run_for(2_000);
    assert_eq!(world.engine.delivered_up_to(&mailbox, read), Some(read));
    assert_eq!(listed(&world, &of("p1"))[0].verdict, Verdict::Refused(Refusal::Rejected));
}

#[test]
fn what_is_not_current_tells_which_generation_stands_there() {
    let mut world = world();
    let generation = |number: u64| {
        let mut map = config_map(&number.to_string());
        map["metadata"]["generation"] = json!(number);
        map
    };
    world.put(&source(), generation(4));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.servers.get_mut(&ClusterId::new("florin")).unwrap().link = Link::Away;
    world.put(&source(), generation(5));
    world.run_for(2_000);
    let told = listed(&world, &at("florin"));
    let [only] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((only.generation, only.delivered_generation), (Some(5), Some(4)));
}
