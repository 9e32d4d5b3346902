//! What is asked about, and what an answer lets go.

use mailboat_engine::breaker::ScopeId;
use mailboat_engine::plan::ChangeId;
use mailboat_object::object::Object;

use crate::prelude::*;
use crate::roles::edition;

const MANY: usize = 20;

fn numbered(cluster: &str, number: usize) -> Key {
    key(cluster, "configmaps", "till", &format!("c{number:02}"))
}

fn left(world: &World) -> usize {
    (0..MANY).filter(|number| world.object(&numbered("florin", *number)).is_some()).count()
}

/// One and the same configuration each time that it selects this.
fn place(world: &mut World, to: &[u32]) {
    let mut route = translator("p1", to);
    route.head.configuration = edition(to.len() as u64);
    configure(world, route);
    known(world);
    world.run();
}

/// A world in which all copies of a placement would go.
fn asked() -> (World, ScopeId, ChangeId) {
    let mut world = world();
    for number in 0..MANY {
        world.put(&numbered("workload", number), config_map("1"));
    }
    place(&mut world, &[FLORIN]);
    place(&mut world, &[]);
    let (scope, change) = question(&world, MANY);
    (world, scope, change)
}

/// What is asked, which is one question about so many; all of them know it. What nobody claims is asked about in all clusters
/// together as well.
fn question(world: &World, many: usize) -> (ScopeId, ChangeId) {
    let anywhere = ScopeId::unclaimed_anywhere();
    let held = world.engine.held_by_scope().filter(|(scope, ..)| **scope != anywhere);
    let held: Vec<_> = held.map(|(scope, change, n)| (scope.clone(), change, n)).collect();
    let [(scope, change, count)] = held.as_slice() else { panic!("{held:?}") };
    let told: Vec<_> = world.engine.held().collect();
    assert_eq!((*count, told), (many, vec![(*change, many)]));
    assert_eq!(world.engine.losers(scope).count(), many);
    (scope.clone(), *change)
}

#[test]
fn the_same_withdrawal_of_copies_that_were_made_anew_is_another_change() {
    let (mut world, scope, change) = asked();
    assert!(world.engine.confirm(&scope, change));
    world.run();
    assert_eq!(left(&world), 0);
    place(&mut world, &[FLORIN]);
    assert_eq!(left(&world), MANY);
    place(&mut world, &[]);
    let (scope, again) = question(&world, MANY);
    assert_ne!(change, again, "who left the word where it was would not be asked");
    assert!(!world.engine.confirm(&scope, change));
    world.run();
    assert_eq!(left(&world), MANY);
}

#[test]
fn a_question_is_the_same_after_a_restart() {
    let (mut world, ..) = asked();
    let mut ask = || {
        world.restart(&KINDS);
        place(&mut world, &[]);
        question(&world, MANY)
    };
    assert_eq!(ask(), ask());
}

#[test]
fn a_copy_that_somebody_makes_anew_while_it_is_asked_about_makes_it_another_question() {
    let (mut world, scope, change) = asked();
    let copy = numbered("florin", 3);
    let again = world.object(&copy).unwrap().clone();
    world.remove(&copy);
    world.put(&copy, again);
    world.run();
    let (_, another) = question(&world, MANY);
    world.remove(&copy);
    world.run();
    let (_, fewer) = question(&world, MANY - 1);
    assert!(change != fewer && change != another && fewer != another);
    assert!(!world.engine.confirm(&scope, change) && !world.engine.confirm(&scope, another));
    assert!(world.engine.confirm(&scope, fewer));
    world.run();
    assert_eq!(left(&world), 0);
}

#[test]
fn a_word_lets_nothing_go_that_came_after_it() {
    let (mut world, scope, change) = asked();
    world.servers.get_mut(&copy().cluster).unwrap().link = Link::Away;
    assert!(world.engine.confirm(&scope, change));
    world.run_for(1_000);
    // All of them are made anew by another hand, marks and all, before the edge can be reached.
    let copies: Vec<Key> = (0..MANY).map(|number| numbered("florin", number)).collect();
    for copy in &copies {
        let again = world.object(copy).unwrap().clone();
        world.remove(copy);
        world.put(copy, again);
    }
    world.servers.get_mut(&copy().cluster).unwrap().link = Link::Up;
    world.run_for(600_000);
    assert_eq!(left(&world), MANY);
    assert_ne!(question(&world, MANY).1, change);
}

#[test]
fn what_is_no_longer_much_goes() {
    let (mut world, ..) = asked();
    let mut route = translator("p2", &[FLORIN]);
    route.select = Box::new(|source, _| Ok(if *source.key.name < *"c12" { vec![FLORIN] } else { vec![] }));
    configure(&mut world, route);
    known(&mut world);
    world.run();
    assert_eq!(world.engine.held_by_scope().count(), 0);
    assert_eq!(left(&world), 12, "{}", explain(&world, &numbered("florin", 15)));
}

#[test]
fn what_somebody_wants_again_is_not_asked_about_any_more() {
    let (mut world, ..) = asked();
    world.restart(&KINDS);
    place(&mut world, &[]);
    let (scope, _) = question(&world, MANY);
    assert_eq!(scope, ScopeId(Name::new("unclaimed/florin")));
    place(&mut world, &[FLORIN]);
    assert_eq!(world.engine.held_by_scope().count(), 0);
}

/// A withdrawal is as large as it is, whatever is on its way to some of the copies.
#[test]
fn what_is_being_written_when_it_is_to_go_counts_with_the_rest() {
    let mut world = world();
    for number in 0..MANY {
        world.put(&numbered("workload", number), config_map("1"));
    }
    place(&mut world, &[FLORIN]);
    world.servers.get_mut(&copy().cluster).unwrap().link = Link::Hangs;
    for number in 0..MANY - 8 {
        world.put(&numbered("workload", number), config_map("2"));
    }
    world.run();
    place(&mut world, &[]);
    let held: Vec<_> = world.engine.held_by_scope().map(|(_, _, count)| count).collect();
    assert_eq!(held, [MANY], "the others went by themselves");
    world.servers.get_mut(&copy().cluster).unwrap().link = Link::Up;
    world.give_up();
    world.run();
    assert_eq!(left(&world), MANY);
    question(&world, MANY);
}

/// A copy that another hand took away is no part of what a share is counted by.
#[test]
fn what_others_took_away_does_not_make_a_withdrawal_look_small() {
    let mut world = world();
    for number in 0..MANY {
        world.put(&numbered("workload", number), config_map("1"));
    }
    place(&mut world, &[FLORIN]);
    // None of these can be made anew. Those before them are looked at first.
    world.servers.get_mut(&copy().cluster).unwrap().refuses = Some("1");
    for number in MANY / 2..MANY {
        world.remove(&numbered("florin", number));
    }
    world.run_for(1_000);
    assert_eq!(left(&world), MANY / 2);
    place(&mut world, &[]);
    assert_eq!(left(&world), MANY / 2, "all that is left went, and nobody was asked");
    question(&world, MANY / 2);
}

/// Whoever happens to be evaluated last has no more to do with it than the other.
#[test]
fn what_two_placements_let_go_of_together_counts_with_the_one_that_it_was() {
    for order in [["p1", "p2"], ["p2", "p1"]] {
        let mut world = world();
        for number in 0..11 {
            world.put(&numbered("workload", number), config_map("1"));
        }
        for name in order {
            let mut route = translator(name, &[FLORIN]);
            let first = if name == "p1" { "c00" } else { "c10" };
            let selects = move |source: &Object| *source.key.name >= *first;
            route.select = Box::new(move |source, _| Ok(if selects(source) { vec![FLORIN] } else { vec![] }));
            configure(&mut world, route);
        }
        known(&mut world);
        world.run();
        assert_eq!(left(&world), 11);
        for name in order {
            let mut route = translator(name, &[]);
            route.head.configuration = edition(2);
            configure(&mut world, route);
        }
        known(&mut world);
        world.run();
        assert_eq!(left(&world), 11, "one of eleven went by itself");
        assert_eq!(question(&world, 11).0, ScopeId(Name::new("p1")));
    }
}

/// What somebody deletes is no loss to be asked about, and nothing that the rest is a share of.
#[test]
fn what_is_left_beside_what_somebody_deletes_is_all_there_is() {
    let mut world = world();
    for number in 0..MANY {
        world.put(&numbered("workload", number), config_map("1"));
    }
    place(&mut world, &[FLORIN]);
    for number in 0..10 {
        world.remove(&numbered("workload", number));
    }
    place(&mut world, &[]);
    assert_eq!(left(&world), 10, "all of it went unasked, since half of it was on its way");
    assert_eq!(question(&world, 10).0, ScopeId(Name::new("p1")));
}

/// The first that is shown of a place after something was written there may be older than that.
#[test]
fn what_was_written_while_its_place_was_in_doubt_counts_with_its_placement() {
    let mut world = world();
    for number in 0..10 {
        world.put(&numbered("workload", number), config_map("1"));
    }
    place(&mut world, &[FLORIN]);
    let late = numbered("florin", 10);
    world.put(&numbered("workload", 10), config_map("1"));
    world.run_until_call(|world| {
        world.expire("florin", "configmaps");
        world.servers.get_mut(&late.cluster).unwrap().events.clear();
    });
    place(&mut world, &[]);
    // A list from before the write.
    let server = world.servers.get_mut(&late.cluster).unwrap();
    let made = server.objects.remove(&late).unwrap();
    server.version -= 1;
    world.find_again("florin", "configmaps");
    world.run();
    let server = world.servers.get_mut(&late.cluster).unwrap();
    server.objects.insert(late.clone(), made.clone());
    server.version += 1;
    server.events.push((late, "ADDED", made));
    world.run();
    assert_eq!(left(&world), 11, "it went by itself");
    assert_eq!(question(&world, 11).0, ScopeId(Name::new("p1")));
}
