//! What is no longer wanted goes, and nothing else does.

use mailboat_engine::breaker::ScopeId;
use mailboat_engine::look::{Definition, Serving};
use mailboat_engine::route::DestinationId;
use mailboat_engine::want::{Delivery, Policy};
use mailboat_engine::warrant::LOOK_AGAIN_AFTER;
use mailboat_object::key::{Uid, Version};

use crate::prelude::*;
use crate::roles::edition;

/// The first of November 2026, when the servers' clocks begin.
const BEGINNING: u64 = 1_793_491_200;

/// What defines ConfigMaps, last written at this version, and made at this second.
fn defined(version: u64, made: u64) -> Serving {
    let (version, made_seconds) = (Version(version), Some(BEGINNING + made));
    let uid = Uid::parse("d");
    Serving::By(Definition { uid, deleting: false, version, made_seconds, identity: None })
}

/// A source whose definition was made anew between the event of its deletion and the look at it, and its copy.
fn lost_with_its_kind() -> World {
    let mut world = world();
    world.now = 5_000_000;
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.kind = defined(1_000, 5_001);
    world.remove(&source());
    world.run_for(600_000);
    assert!(world.object(&copy()).is_some(), "it went with the definition before");
    world
}

#[test]
fn a_definition_that_was_made_anew_between_event_and_look_deletes_nothing() {
    let mut world = lost_with_its_kind();
    let why = explain(&world, &copy());
    assert!(why.contains("may have gone with its kind"), "{why}");
    // Changed since, but older than the source: the same definition.
    world.kind = defined(1_000, 4_000);
    world.run_for(600_000);
    assert!(world.object(&copy()).is_none(), "{}", explain(&world, &copy()));
}

#[test]
fn what_went_with_its_kind_and_may_be_anothers_is_told_from_what_a_scope_alone_answers_for() {
    let scope = ScopeId(Name::new("p1"));
    for other in [false, true] {
        let mut world = lost_with_its_kind();
        if other {
            configure(&mut world, translator("p2", &[FLORIN]));
        }
        world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
        world.run_for(600_000);
        assert_eq!(world.object(&copy()).is_some(), other, "{}", explain(&world, &copy()));
        assert_eq!(world.engine.may_be_anothers(&world.store, &copy()), other);
        assert_eq!(world.engine.placed_by(&scope).count(), usize::from(other));
        world.engine.disown(&scope);
        world.run_for(600_000);
        assert_eq!(world.object(&copy()).is_some(), other, "nobody lets go of it by that");
        assert_eq!(world.engine.placed_by(&scope).count(), 0);
        world.engine.configure(&world.store, &RouteId(Name::new("p2")), None);
        world.run_for(600_000);
        assert!(world.object(&copy()).is_none(), "{}", explain(&world, &copy()));
    }
}

#[test]
fn what_a_scope_alone_answers_for_is_not_anothers_though_others_read_its_source() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    for name in ["p1", "p2"] {
        configure(&mut world, translator(name, if name == "p1" { &[FLORIN] } else { &[GUILDER] }));
    }
    known(&mut world);
    world.run();
    world.servers.get_mut(&copy().cluster).unwrap().link = Link::Away;
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run_for(60_000);
    assert!(world.object(&copy()).is_some(), "its edge is away");
    assert!(!world.engine.may_be_anothers(&world.store, &copy()));
}

#[test]
fn a_look_that_could_not_be_acted_on_at_once_is_made_again() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.servers.get_mut(&copy().cluster).unwrap().link = Link::Away;
    world.remove(&source());
    world.run_for(60_000);
    assert!(world.object(&copy()).is_some());
    // Made again, which nobody hears of: the link to the source is lost, and what was seen last is that it went.
    world.put(&source(), config_map("1"));
    world.servers.get_mut(&source().cluster).unwrap().events.clear();
    world.servers.get_mut(&copy().cluster).unwrap().link = Link::Up;
    world.run_for(60_000);
    assert!(world.object(&copy()).is_some(), "deleted by what a look found a minute ago");
}

#[test]
fn what_a_list_lacks_is_looked_for_twice_and_what_was_seen_to_go_once() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.lose("workload", "configmaps");
    world.remove(&source());
    world.servers.get_mut(&source().cluster).unwrap().events.clear();
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    let began = world.now;
    world.run_for(LOOK_AGAIN_AFTER - 1);
    assert!(world.object(&copy()).is_some(), "one look was enough, after {} ms", world.now - began);
    world.run_for(LOOK_AGAIN_AFTER);
    assert!(world.object(&copy()).is_none(), "{}", explain(&world, &copy()));
}

#[test]
fn a_deleted_source_is_looked_at_afresh_and_then_withdrawn() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&source, config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.remove(&source);
    world.run();
    assert!(world.object(&copy).is_none());
    assert!(written(&mut world).last().unwrap().starts_with("delete("));
    assert_eq!(world.engine.slot_count(), 0, "nothing is left behind");
}

#[test]
fn a_source_that_goes_with_its_workspace_withdraws_nothing() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&source, config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.workspace_lives = false;
    world.remove(&source);
    world.run_for(300_000);
    assert!(world.object(&copy).is_some(), "deleted by a dying workspace");
}

#[test]
fn configuration_that_shrank_while_down_withdraws_what_it_must_and_asks_when_that_is_much() {
    let mut world = world();
    for n in 0..20 {
        world.put(&key("workload", "configmaps", "till", &format!("c{n:02}")), config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    world.run();
    let copy = key("guilder", "configmaps", "till", "c00");
    assert!(world.object(&copy).is_some(), "the configuration is not known as a whole yet");
    known(&mut world);
    world.run();
    let Some(Verdict::Held(change)) = world.engine.verdict(&copy).cloned() else {
        panic!("not held: {:?}", world.engine.verdict(&copy));
    };
    assert_eq!(written(&mut world), Vec::<String>::new());
    let scope = ScopeId(Name::new("unclaimed/guilder"));
    let another = mailboat_engine::plan::ChangeId(change.0 ^ 1);
    assert!(!world.engine.confirm(&scope, another), "another change was confirmed");
    world.run();
    assert!(world.object(&copy).is_some());
    assert!(world.engine.confirm(&scope, change));
    world.run();
    let left = world.servers[&copy.cluster].objects.keys().filter(|key| key.kind == copy.kind).count();
    assert_eq!(left, 0);
    let florin = world.object(&key("florin", "configmaps", "till", "c00"));
    assert!(florin.is_some(), "the other edge keeps its copies");
}

/// What went is no part any more of what a share is counted by: the same withdrawal is asked about each time.
#[test]
fn what_went_before_does_not_make_a_later_withdrawal_look_small() {
    let mut world = world();
    for n in 0..20 {
        world.put(&key("workload", "configmaps", "till", &format!("c{n:02}")), config_map("1"));
    }
    known(&mut world);
    for round in 0..3 {
        for (step, to) in [(1, &[FLORIN][..]), (2, &[])] {
            let mut route = translator("p1", to);
            route.head.configuration = edition(10 * round + step);
            configure(&mut world, route);
            world.run();
        }
        assert_eq!(left(&world), 20, "round {round}: nobody was asked");
        let held: Vec<_> =
            world.engine.held_by_scope().map(|(scope, change, n)| (scope.clone(), change, n)).collect();
        let [(scope, change, 20)] = held.as_slice() else { panic!("round {round}: {held:?}") };
        assert!(world.engine.confirm(scope, *change));
        world.run();
        assert_eq!(left(&world), 0);
    }
}

/// Thirty sources are deleted while we watch, and before any of them was looked at, the configuration drops their kind.
fn deleted_one_by_one_and_then_deselected(workspace_lives: bool, milliseconds: u64) -> (World, usize) {
    let mut world = world();
    let sources: Vec<Key> =
        (0..30).map(|n| key("workload", "configmaps", "till", &format!("c{n:02}"))).collect();
    for source in &sources {
        world.put(source, config_map("1"));
    }
    let mut first = translator("p1", &[FLORIN]);
    first.asks_for_sources_alone = true;
    configure(&mut world, first);
    known(&mut world);
    world.run();
    world.workspace_lives = workspace_lives;
    for source in &sources {
        world.remove(source);
    }
    world.run_until_look(|world| {
        let mut other = translator("p1", &[FLORIN]);
        other.head.configuration = edition(2);
        other.head.sources[0].kind = key("workload", "secrets", "", "").kind;
        other.asks_for_sources_alone = true;
        configure(world, other);
    });
    world.run_for(milliseconds);
    let left = left(&world);
    (world, left)
}

fn left(world: &World) -> usize {
    world.servers[&copy().cluster].objects.keys().filter(|key| key.kind == copy().kind).count()
}

#[test]
fn what_was_deleted_one_by_one_goes_unasked_though_the_configuration_drops_it_meanwhile() {
    let (world, left) = deleted_one_by_one_and_then_deselected(true, 300_000);
    assert_eq!(left, 0, "{}", explain(&world, &key("florin", "configmaps", "till", "c29")));
    assert_eq!(world.engine.slot_count(), 0, "nothing is left behind");
}

#[test]
fn what_goes_with_its_workspace_is_held_though_the_configuration_drops_it_meanwhile() {
    let (world, left) = deleted_one_by_one_and_then_deselected(false, 300_000);
    assert_eq!(left, 30);
    let verdict = world.engine.verdict(&key("florin", "configmaps", "till", "c29"));
    assert!(matches!(verdict, Some(Verdict::Held(_))), "{verdict:?}");
}

#[test]
fn a_confirmation_ends_the_rest_of_what_it_lets_go() {
    // Looks at a workspace that is being deleted found nothing certain, and each made the next one wait for longer.
    let (mut world, before) = deleted_one_by_one_and_then_deselected(false, 1);
    let held: Vec<_> =
        world.engine.held_by_scope().map(|(scope, change, count)| (scope.clone(), change, count)).collect();
    let [(scope, change, 30)] = held.as_slice() else { panic!("{held:?}") };
    assert!(world.engine.confirm(scope, *change));
    let confirmed = world.now;
    world.run();
    assert_eq!((before, left(&world), world.now - confirmed), (30, 0, 0));
}

#[test]
fn configuration_on_its_way_out_makes_nothing_and_changes_nothing_and_knows_its_copies_over_a_restart() {
    let mut world = world();
    let name = |n: usize| format!("c{n:02}");
    for n in 0..20 {
        world.put(&key("workload", "configmaps", "till", &name(n)), config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    // Restarted in the midst of being withdrawn: one copy is gone already, one source was changed meanwhile.
    world.remove(&key("florin", "configmaps", "till", "c00"));
    world.put(&key("workload", "configmaps", "till", "c01"), config_map("2"));
    world.restart(&KINDS);
    written(&mut world);
    let mut leaving = translator("p1", &[FLORIN]);
    leaving.policy = Arc::new(Policy { delivery: Delivery::Keep, ..(*leaving.policy).clone() });
    configure(&mut world, leaving);
    known(&mut world);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new());
    let scope = ScopeId(Name::new("p1"));
    assert_eq!(world.engine.placed_by(&scope).count(), 19);
    // It goes: nineteen copies are much, and belong to what somebody deleted.
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run();
    let held: Vec<_> =
        world.engine.held_by_scope().map(|(scope, change, n)| (scope.clone(), change, n)).collect();
    let [(held_in, change, 19)] = held.as_slice() else { panic!("{held:?}") };
    assert_eq!(*held_in, scope);
    assert!(world.engine.confirm(&scope, *change));
    world.run();
    assert_eq!(world.engine.placed_by(&scope).count(), 0);
    assert!(world.object(&key("florin", "configmaps", "till", "c19")).is_none());
}

#[test]
fn what_two_want_belongs_to_the_elder_and_then_to_the_other() {
    let mut world = world();
    let scope = |name: &str| ScopeId(Name::new(name));
    let belongs = |world: &World| ["p1", "p2"].map(|name| world.engine.placed_by(&scope(name)).count());
    world.put(&source(), config_map("1"));
    for (name, since) in [("p1", 1), ("p2", 2), ("p1", 1)] {
        let mut route = translator(name, &[FLORIN]);
        route.head = route.head.since(since);
        configure(&mut world, route);
    }
    known(&mut world);
    world.run();
    assert_eq!(belongs(&world), [1, 0]);
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run();
    assert_eq!(belongs(&world), [0, 1], "what one let go and the other keeps counts as the one's");
}

#[test]
fn a_small_withdrawal_goes_unasked() {
    let mut world = world();
    for n in 0..3 {
        world.put(&key("workload", "configmaps", "till", &format!("c{n}")), config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN, GUILDER]));
    known(&mut world);
    world.run();
    let mut smaller = translator("p1", &[FLORIN]);
    smaller.head.configuration = edition(2);
    configure(&mut world, smaller);
    world.run();
    assert!(world.object(&key("guilder", "configmaps", "till", "c0")).is_none());
    assert!(world.object(&key("florin", "configmaps", "till", "c0")).is_some());
}

#[test]
fn a_kind_that_is_asked_for_no_more_goes_though_nothing_is_known_of_its_sources() {
    for (asks_for_sources_alone, goes) in [(true, true), (false, false)] {
        let mut world = world();
        world.put(&source(), config_map("1"));
        configure(&mut world, translator("p1", &[FLORIN]));
        known(&mut world);
        world.run();
        // Nobody reads the kind any more when the routes are made anew, as it is with a changed configuration.
        world.unserve("workload", "configmaps");
        let mut other = translator("p1", &[FLORIN]);
        other.head.configuration = edition(2);
        other.head.sources[0].kind = key("workload", "secrets", "", "").kind;
        other.asks_for_sources_alone = asks_for_sources_alone;
        configure(&mut world, other);
        world.run();
        assert_eq!(world.object(&copy()).is_none(), goes, "{:?}", world.engine.verdict(&copy()));
    }
}

#[test]
fn what_is_still_asked_for_stays_when_its_kind_is_no_longer_served() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    let route = |version| {
        let mut route = translator("p1", &[FLORIN]);
        route.head.configuration = edition(version);
        route.asks_for_sources_alone = true;
        route
    };
    configure(&mut world, route(1));
    known(&mut world);
    world.run();
    world.unserve("workload", "configmaps");
    configure(&mut world, route(2));
    world.run_for(300_000);
    assert!(world.object(&copy()).is_some());
}

#[test]
fn every_delete_carries_uid_and_version() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    world.put(&source, config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    world.remove(&source);
    world.run();
    let deletes: Vec<_> =
        world.writes.iter().filter(|call| matches!(call.verb, Verb::Delete { .. })).collect();
    assert_eq!(deletes.len(), 1);
    assert!(matches!(deletes[0].verb, Verb::Delete { version: Some(_), .. }), "{deletes:?}");
}

#[test]
fn h03_a_lost_link_deletes_nothing_and_makes_no_copy_a_source() {
    let mut world = world();
    let source = key("workload", "configmaps", "till", "pos");
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&source, config_map("1"));
    // The copy bears the label that selects, as the source does.
    let mut route = translator("p1", &[FLORIN]);
    let plain = route.project;
    route.project = Box::new(move |source, to, view| {
        let mut wants = plain(source, to, view)?;
        wants[0].1["metadata"] = json!({ "labels": { "place": "yes" } });
        Ok(wants)
    });
    configure(&mut world, route);
    known(&mut world);
    world.run();
    written(&mut world);
    for cluster in ["florin", "workload"] {
        world.lose(cluster, "configmaps");
        world.run();
        assert_eq!(written(&mut world), Vec::<String>::new(), "a lost link to {cluster} wrote something");
        world.find_again(cluster, "configmaps");
        world.run();
        assert_eq!(
            written(&mut world),
            Vec::<String>::new(),
            "a link to {cluster} that came back wrote something"
        );
    }
    world.remove(&source);
    world.run();
    assert!(world.object(&copy).is_none(), "{:?}", world.engine.explain(world.now, &world.store, &copy));
}

#[test]
fn h02_a_route_configured_between_two_pages_of_a_first_list_deletes_nothing() {
    let mut world = world();
    for name in ["a", "b", "c"] {
        world.put(&key("workload", "configmaps", "till", name), config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    // Everything but the sources is listed when the process is back; of these only a first page has come.
    world.restart_following(|cluster| {
        KINDS.into_iter().filter(|kind| (cluster, *kind) != ("workload", "configmaps")).collect()
    });
    world.begin_to_follow("workload", "configmaps", Filter::All);
    world.first_page("workload", "configmaps", 2);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new(), "something was done from half a list");
    world.last_page("workload", "configmaps", 2);
    world.run();
    assert_eq!(written(&mut world), Vec::<String>::new(), "what the first page showed was forgotten");
    for name in ["a", "b", "c"] {
        let copy = key("florin", "configmaps", "till", name);
        assert_eq!(world.engine.verdict(&copy), Some(&Verdict::Settled), "{}", explain(&world, &copy));
    }
}

#[test]
fn h07_what_is_held_undecided_is_not_withdrawn_after_a_restart() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    let customizer = key("workload", "customizers", "", "c1");
    let mut object = config_map("1");
    object["metadata"]["annotations"] = json!({ "customizer": "c1" });
    world.put(&key("workload", "configmaps", "till", "pos"), object);
    world.put(&customizer, json!({ "apiVersion": "v1", "kind": "Thing", "value": "x" }));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert!(world.object(&copy).is_some());
    // Without its customizer the route cannot say what the source is, and nobody claims the slot after a restart.
    world.remove(&customizer);
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    assert!(world.object(&copy).is_some(), "withdrawn: {:?}", written(&mut world));
    let verdict = world.engine.verdict(&copy).cloned();
    assert!(matches!(verdict, Some(Verdict::Waiting(Wait::Undecided(_)))), "{verdict:?}");
}

#[test]
fn what_was_deselected_while_down_is_a_share_of_all_that_is_ours_there() {
    let mut world = world();
    for number in 0..40 {
        let name = format!("pos-{number}");
        world.put(&key("workload", "configmaps", "till", &name), config_map("1"));
    }
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    for number in 0..15 {
        world.remove(&key("workload", "configmaps", "till", &format!("pos-{number}")));
    }
    world.restart(&KINDS);
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    let gone = key("florin", "configmaps", "till", "pos-3");
    assert!(world.object(&gone).is_none(), "15 of 40 were held: {:?}", world.engine.verdict(&gone));
    assert!(world.object(&key("florin", "configmaps", "till", "pos-20")).is_some());
}

#[test]
fn nothing_is_deselected_while_the_link_to_its_source_is_lost() {
    let mut world = world();
    let copy = key("florin", "configmaps", "till", "pos");
    world.put(&key("workload", "configmaps", "till", "pos"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    // Its user may have changed the source as well, so that something else in the new configuration selects it.
    world.lose("workload", "configmaps");
    let mut moved = translator("p1", &[GUILDER]);
    moved.head.configuration = edition(2);
    configure(&mut world, moved);
    known(&mut world);
    world.run();
    let verdict = world.engine.verdict(&copy).cloned();
    assert!(matches!(verdict, Some(Verdict::Waiting(Wait::Undecided(_)))), "{verdict:?}");
    assert!(world.object(&copy).is_some(), "withdrawn: {:?}", written(&mut world));
    world.find_again("workload", "configmaps");
    world.run();
    assert!(world.object(&copy).is_none(), "{}", explain(&world, &copy));
}

/// A source that went with its kind is held, and its copy with it; unless nobody who reads it goes there any more.
#[test]
fn what_no_route_brings_there_goes_though_nobody_can_tell_what_became_of_its_source() {
    for still in [true, false] {
        let mut world = lost_with_its_kind();
        let mut elsewhere = translator("p1", &[GUILDER]);
        elsewhere.destinations =
            Some([Some(GUILDER), still.then_some(FLORIN)].into_iter().flatten().map(DestinationId).collect());
        configure(&mut world, elsewhere);
        known(&mut world);
        world.run_for(600_000);
        assert_eq!(world.object(&copy()).is_some(), still, "{}", explain(&world, &copy()));
    }
}

/// A machine that sleeps, or a process that is stopped, while the answer to a look is on its way. The events of that time come
/// after it.
#[test]
fn a_look_whose_answer_is_read_long_after_it_was_asked_for_is_taken_again() {
    for (slept, stays) in [(60_000, true), (1_000, false)] {
        let mut world = world();
        world.put(&source(), config_map("1"));
        configure(&mut world, translator("p1", &[FLORIN]));
        known(&mut world);
        world.run();
        let uid = world.object(&copy()).unwrap()["metadata"]["uid"].clone();
        world.remove(&source());
        world.run_until_found(|world| {
            world.now += slept;
            world.put(&source(), config_map("1"));
            world.servers.get_mut(&source().cluster).unwrap().silent = true;
        });
        world.run_for(5_000);
        // Within a moment nobody can tell; what was deleted then is made anew.
        assert_eq!(world.object(&copy()).is_some(), stays, "asked {slept} ms ago");
        world.servers.get_mut(&source().cluster).unwrap().silent = false;
        world.run();
        let now = world.object(&copy()).expect("its source is there")["metadata"]["uid"].clone();
        assert_eq!(now == uid, stays);
    }
}
