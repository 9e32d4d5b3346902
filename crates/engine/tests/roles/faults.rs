//! Clusters that are away, servers that refuse, hands that fight.

use std::collections::BTreeSet;
use std::time::Duration;

use mailboat_engine::want::Hold;
use mailboat_object::wire::FaultKind;
use mailboat_store::seen::Seen;

use crate::prelude::*;

#[test]
fn a_cluster_that_is_away_delays_itself_only_and_catches_up() {
    let mut world = world();
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    let florin = key("florin", "configmaps", "till", "pos");
    world.servers.get_mut(&florin.cluster).unwrap().link = Link::Away;
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run_for(10_000);
    assert!(world.object(&key("guilder", "configmaps", "till", "pos")).is_some());
    assert!(world.object(&florin).is_none());
    world.servers.get_mut(&florin.cluster).unwrap().link = Link::Up;
    world.run_for(120_000);
    assert!(world.object(&florin).is_some());
}

#[test]
fn h43_what_the_server_refuses_is_said_once_and_a_better_intent_goes_at_once() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&source, config_map("refused"));
    world.servers.get_mut(&copy.cluster).unwrap().refuses = Some("refused");
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run_for(600_000);
    assert_eq!(world.engine.verdict(&copy), Some(&Verdict::Refused(Refusal::Rejected)));
    let tries = world.servers[&copy.cluster].refusals;
    assert!((2..30).contains(&tries), "{tries} tries in ten minutes");
    let said = world.engine.notices().iter().filter(|n| matches!(n.verdict, Verdict::Refused(_))).count();
    assert_eq!(said, 1, "said {said} times");
    let before = world.now;
    world.put(&source, config_map("fine"));
    world.run_for(1);
    assert_eq!(world.object(&copy).unwrap()["data"]["a"], "fine");
    assert!(world.now - before < 10, "it waited {} ms", world.now - before);
}

#[test]
fn h25_a_cluster_that_is_away_is_tried_by_one_slot_at_a_time() {
    let mut world = world();
    for n in 0..50 {
        world.put(&key("workload", "configmaps", "till", &format!("c{n:02}")), config_map("1"));
    }
    let florin = key("florin", "configmaps", "till", "c00").cluster;
    world.servers.get_mut(&florin).unwrap().link = Link::Away;
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run_for(300_000);
    let tries = world.servers[&florin].refusals;
    assert!(tries < 100, "{tries} tries while it was away");
    world.servers.get_mut(&florin).unwrap().link = Link::Up;
    world.run_for(120_000);
    let copies = world.servers[&florin].objects.keys().filter(|key| key.name.starts_with('c')).count();
    assert_eq!(copies, 50);
}

#[test]
fn a_cluster_that_answers_nothing_holds_up_itself_alone() {
    let mut world = world();
    let copies_at = |world: &World, cluster: &str| {
        let objects = world.servers[&key(cluster, "configmaps", "till", "").cluster].objects.keys();
        objects.filter(|key| key.name.starts_with('c')).count()
    };
    for n in 0..200 {
        world.put(&key("workload", "configmaps", "till", &format!("c{n:03}")), config_map("1"));
    }
    let florin = copy().cluster;
    world.servers.get_mut(&florin).unwrap().link = Link::Hangs;
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run_for(20_000);
    assert_eq!(copies_at(&world, "guilder"), 200, "the other edge waits along");
    let most = 64 * 4;
    assert!((1..=most).contains(&world.unanswered.len()), "{} calls hang", world.unanswered.len());
    world.servers.get_mut(&florin).unwrap().link = Link::Up;
    world.give_up();
    world.run_for(120_000);
    assert_eq!(copies_at(&world, "florin"), 200);
}

#[test]
fn a_source_that_cannot_be_told_anything_is_not_the_fault_of_its_copies_cluster() {
    let mut world = world();
    let (mailbox, edge) = (key("tenant", "configmaps", "till", "pos"), copy());
    let other = key("florin", "configmaps", "till", "second");
    world.put(&mailbox, config_map("1"));
    world.put(&key("tenant", "configmaps", "till", "second"), config_map("1"));
    configure(&mut world, edge_syncer("s", "tenant", FLORIN));
    known(&mut world);
    world.run();
    world.servers.get_mut(&mailbox.cluster).unwrap().link = Link::Away;
    let mut ready = world.object(&edge).unwrap().clone();
    ready["status"] = json!({ "ready": 3 });
    world.put(&edge, ready);
    world.run_for(1_000);
    let tried = world.servers[&mailbox.cluster].refusals;
    assert!((1..10).contains(&tried), "it was told {tried} times in a second");
    assert_eq!(
        world.engine.verdict(&edge),
        Some(&Verdict::Waiting(Wait::SourceCluster)),
        "{}",
        explain(&world, &edge)
    );
    let mut rewritten = world.object(&edge).unwrap().clone();
    rewritten["data"]["a"] = json!("another hand");
    world.put(&edge, rewritten);
    world.remove(&other);
    world.run_for(1);
    assert!(world.object(&other).is_some(), "{}", explain(&world, &other));
    assert_eq!(world.object(&edge).unwrap()["data"]["a"], "1", "{}", explain(&world, &edge));
    world.servers.get_mut(&mailbox.cluster).unwrap().link = Link::Up;
    world.run_for(120_000);
    assert_eq!(world.object(&mailbox).unwrap()["status"], json!({ "ready": 3 }));
}

fn at(cluster: &str, n: usize) -> Key {
    key(cluster, "configmaps", "till", &format!("c{n:02}"))
}

/// Fifty copies, delivered from a cluster that is away since.
fn fifty_of_a_source_that_is_away() -> World {
    let mut world = world();
    for n in 0..50 {
        world.put(&at("tenant", n), config_map("1"));
    }
    configure(&mut world, edge_syncer("s", "tenant", FLORIN));
    known(&mut world);
    world.run();
    world.servers.get_mut(&at("tenant", 0).cluster).unwrap().link = Link::Away;
    world
}

#[test]
fn h25_a_source_cluster_that_is_away_is_told_by_one_slot_at_a_time() {
    let mut world = fifty_of_a_source_that_is_away();
    let tenant = at("tenant", 0).cluster;
    for n in 0..50 {
        let mut ready = world.object(&at("florin", n)).unwrap().clone();
        ready["status"] = json!({ "ready": n });
        world.put(&at("florin", n), ready);
    }
    world.run_for(300_000);
    let tries = world.servers[&tenant].refusals;
    assert!((2..60).contains(&tries), "{tries} tries while it was away");
    let waits = Verdict::Waiting(Wait::SourceCluster);
    assert_eq!(world.engine.verdict(&at("florin", 7)), Some(&waits), "{}", explain(&world, &at("florin", 7)));
    world.servers.get_mut(&tenant).unwrap().link = Link::Up;
    world.run_for(120_000);
    for n in 0..50 {
        assert_eq!(world.object(&at("tenant", n)).unwrap()["status"], json!({ "ready": n }), "{n}");
    }
}

#[test]
fn h25_sources_in_a_cluster_that_is_away_are_looked_for_by_one_slot_at_a_time() {
    let mut world = fifty_of_a_source_that_is_away();
    let tenant = at("tenant", 0).cluster;
    // What they were is shown by a view; the workspace itself does not answer.
    for n in 0..50 {
        world.remove(&at("tenant", n));
    }
    world.run_for(300_000);
    let tries = world.servers[&tenant].refusals;
    assert!((2..60).contains(&tries), "{tries} looks while it was away");
    assert!((0..50).all(|n| world.object(&at("florin", n)).is_some()), "withdrawn without a look");
    world.servers.get_mut(&tenant).unwrap().link = Link::Up;
    world.run_for(120_000);
    assert!(
        (0..50).all(|n| world.object(&at("florin", n)).is_none()),
        "{}",
        explain(&world, &at("florin", 0))
    );
}

#[test]
fn a_short_absence_with_much_under_way_is_a_short_pause() {
    let mut world = world();
    for n in 0..50 {
        world.put(&at("workload", n), config_map("1"));
    }
    let florin = at("florin", 0).cluster;
    world.servers.get_mut(&florin).unwrap().link = Link::Hangs;
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run_for(1_000);
    assert_eq!(world.unanswered.len(), 50);
    world.give_up_as(FaultKind::Away);
    world.servers.get_mut(&florin).unwrap().link = Link::Up;
    world.run_for(1_000);
    assert!(
        (0..50).all(|n| world.object(&at("florin", n)).is_some()),
        "{}",
        explain(&world, &at("florin", 0))
    );
}

#[test]
fn a_cluster_that_shows_something_again_is_tried_at_once() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    let florin = copy().cluster;
    world.lose("florin", "configmaps");
    world.servers.get_mut(&florin).unwrap().link = Link::Away;
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.lose("florin", "secrets");
    world.run_for(1_800_000);
    world.find_again("florin", "configmaps");
    world.run_for(600_000);
    assert_eq!(world.object(&copy()), None);
    world.servers.get_mut(&florin).unwrap().link = Link::Up;
    world.find_again("florin", "secrets");
    let before = world.now;
    world.run_for(10);
    assert!(world.object(&copy()).is_some(), "{}", explain(&world, &copy()));
    assert!(world.now - before < 100, "it waited {} ms", world.now - before);
}

#[test]
fn what_waits_to_know_of_something_goes_on_when_that_turns_out_not_to_be_there() {
    let mut world = world();
    let (source, copy) =
        (key("tenant", "configmaps", "till", "pos"), key("florin", "configmaps", "till", "pos"));
    let twin = key("tenant", "secrets", "till", "pos");
    let mut route = edge_syncer("s", "tenant", FLORIN);
    let asked = twin.clone();
    route.select = Box::new(move |_, view| match view.get(&asked) {
        Seen::Unknown(doubt) => Err(Hold { reason: doubt.to_string(), on: Some(asked.clone()) }),
        Seen::Present(_) => Ok(Vec::new()),
        Seen::Absent(_) => Ok(vec![FLORIN]),
    });
    world.lose("tenant", "secrets");
    world.put(&source, config_map("1"));
    configure(&mut world, route);
    known(&mut world);
    world.run();
    assert_eq!(world.object(&copy), None, "it is not known whether the other is there");
    // Nothing is shown, so nobody hears of an object: only that all of the kind is known now.
    world.find_again("tenant", "secrets");
    world.run();
    assert!(world.object(&copy).is_some(), "it waits for ever");
}

/// A server that asks everybody to come back at once, or after a second, whatever it is that it cannot do.
#[test]
fn a_server_that_names_a_time_to_come_back_is_asked_ever_more_rarely_and_not_by_all_at_once() {
    for after in [Duration::from_millis(1), Duration::from_secs(1)] {
        let mut world = world();
        for n in 0..10 {
            world.put(&at("workload", n), config_map("1"));
        }
        let florin = at("florin", 0).cluster;
        world.servers.get_mut(&florin).unwrap().link = Link::Hangs;
        configure(&mut world, translator("p1", &[FLORIN]));
        known(&mut world);
        let (begin, mut times, mut asked) = (world.now, BTreeSet::new(), 0);
        while world.now < begin + 600_000 {
            world.run_for(50);
            asked += world.unanswered.len();
            times.extend((!world.unanswered.is_empty()).then_some(world.now));
            world.give_up_as(FaultKind::Retry(Some(after)));
        }
        assert!((50..10 * 30).contains(&asked), "{asked} calls in ten minutes, asked back after {after:?}");
        assert!(times.len() > 20, "all at once: {times:?}");
        world.servers.get_mut(&florin).unwrap().link = Link::Up;
        world.run_for(120_000);
        assert!((0..10).all(|n| world.object(&at("florin", n)).is_some()));
    }
}

/// What the gate of a process says that did not hold its lease a moment ago.
#[test]
fn what_nothing_but_our_own_gate_held_up_goes_at_once() {
    let mut world = world();
    world.put(&at("workload", 0), config_map("1"));
    let florin = at("florin", 0).cluster;
    world.servers.get_mut(&florin).unwrap().link = Link::Hangs;
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run_for(1_000);
    world.servers.get_mut(&florin).unwrap().link = Link::Up;
    world.give_up_as(FaultKind::Retry(Some(Duration::ZERO)));
    let before = world.now;
    world.run_for(10);
    assert!(world.object(&at("florin", 0)).is_some());
    assert!(world.now - before < 10, "it waited {} ms", world.now - before);
}

#[test]
fn what_may_not_be_written_yet_is_no_call_under_way_and_goes_at_once_when_it_may() {
    let mut world = world();
    let name = |n: usize| format!("c{n:03}");
    let there =
        |world: &World, n: usize| world.object(&key("florin", "configmaps", "till", &name(n))).is_some();
    world.engine.writes_may_leave(false);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    for n in 0..1_000 {
        world.put(&key("workload", "configmaps", "till", &name(n)), config_map("1"));
        world.run_for(100);
    }
    world.run_for(600_000);
    assert_eq!((world.engine.depth().in_flight, world.engine.calls()), (0, 0));
    world.engine.writes_may_leave(true);
    let before = world.now;
    world.run();
    assert!((0..1_000).all(|n| there(&world, n)), "{} were written", world.writes.len());
    assert!(world.now - before < 100, "it took {} ms", world.now - before);
}
