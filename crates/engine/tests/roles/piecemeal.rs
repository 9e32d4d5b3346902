//! A large withdrawal of which little is known at a time is still one, and somebody is asked about all of it.

use mailboat_engine::breaker::ScopeId;
use mailboat_engine::plan::ChangeId;
use mailboat_object::key::KindId;

use crate::prelude::*;
use crate::roles::{Skeleton, edition};

/// What sources are of in these tests; namespaces are there anyway.
const PLACED: [&str; 3] = ["configmaps", "customizers", "secrets"];

/// So many sources of each kind.
fn put_sources(world: &mut World, kinds: &[&str], count: usize) {
    for kind in kinds {
        for n in 0..count {
            world.put(&key("workload", kind, "till", &format!("c{n:02}")), config_map("1"));
        }
    }
}

/// One scope places these kinds at these edges, or nowhere: one route for each kind.
fn place(world: &mut World, kinds: &[&str], to: &[u32], number: u64) {
    for kind in kinds {
        let mut route = translator(&format!("p1-{kind}"), to);
        route.head.scope = ScopeId(Name::new("p1"));
        route.head.configuration = edition(number);
        route.head.sources[0].kind = kind_of(kind);
        configure(world, route);
    }
}

/// The same for any scope, where nothing else changes and the routes say so, as a placement's do when its edges change.
fn go(world: &mut World, scope: &str, kinds: &[&str], to: &[u32]) {
    for kind in kinds {
        configure(world, going(scope, kind, to));
    }
}

fn going(scope: &str, kind: &str, to: &[u32]) -> Skeleton {
    let mut route = translator(&format!("{scope}-{kind}"), to);
    route.head.scope = ScopeId(Name::new(scope));
    route.head.configuration = edition(to.iter().map(|to| 1_u64 << to).sum());
    route.head.selection = Some(edition(0));
    route.head.sources[0].kind = kind_of(kind);
    route.goes_to = Some(to.to_vec());
    route
}

fn kind_of(kind: &str) -> KindId {
    key("workload", kind, "", "").kind
}

/// How many copies stand in a cluster.
fn left_in(world: &World, cluster: &str) -> usize {
    let copies = world.servers[&key(cluster, "namespaces", "", "").cluster].objects.keys();
    copies.filter(|key| PLACED.iter().any(|kind| kind_of(kind) == key.kind)).count()
}

fn held(world: &World) -> Vec<(String, ChangeId, usize)> {
    world.engine.held_by_scope().map(|(scope, change, n)| (scope.0.to_string(), change, n)).collect()
}

fn confirm(world: &mut World, scope: &str, change: ChangeId) {
    assert!(world.engine.confirm(&ScopeId(Name::new(scope)), change), "{scope}: another change");
    world.run_for(60_000);
}

/// Nine ConfigMaps and nine Secrets, deselected while no process ran. Now one does that has listed the edge's ConfigMaps, and
/// not its Secrets.
fn half_listed() -> World {
    let mut world = world();
    let kinds = ["configmaps", "secrets"];
    put_sources(&mut world, &kinds, 9);
    place(&mut world, &kinds, &[FLORIN], 1);
    known(&mut world);
    world.run();
    assert_eq!(left_in(&world, "florin"), 18);
    world.restart_following(|cluster| {
        KINDS.into_iter().filter(|kind| (cluster, *kind) != ("florin", "secrets")).collect()
    });
    place(&mut world, &kinds, &[], 2);
    world.begin_to_follow("florin", "secrets", Filter::All);
    known(&mut world);
    world.run_for(60_000);
    world
}

#[test]
fn what_nobody_claims_waits_until_every_kind_in_its_cluster_is_listed() {
    let mut world = half_listed();
    assert_eq!(left_in(&world, "florin"), 18, "nine went while nine were not listed yet");
    assert_eq!(held(&world), [], "nobody is asked about what is being read");
    world.last_page("florin", "secrets", 0);
    world.run_for(60_000);
    assert_eq!(left_in(&world, "florin"), 18, "they went kind by kind");
    let asked = held(&world);
    assert!(asked.iter().any(|(scope, _, n)| scope == "unclaimed/florin" && *n == 18), "{asked:?}");
    let (scope, change, _) = asked[0].clone();
    confirm(&mut world, &scope, change);
    assert_eq!(left_in(&world, "florin"), 0);
}

#[test]
fn a_kind_that_cannot_be_listed_lets_somebody_be_asked_and_not_wait_for_ever() {
    let mut world = half_listed();
    world.lose("florin", "secrets");
    world.run_for(60_000);
    assert_eq!(left_in(&world, "florin"), 18, "how much else would go is not known");
    let asked = held(&world);
    let [(scope, change, 9)] = asked.as_slice() else { panic!("{asked:?}") };
    confirm(&mut world, scope, *change);
    assert_eq!(left_in(&world, "florin"), 9);
}

#[test]
fn a_kind_that_is_not_served_holds_nothing_up() {
    let mut world = half_listed();
    world.unserve("florin", "secrets");
    world.run_for(60_000);
    assert_eq!((left_in(&world, "florin"), held(&world)), (9, vec![]));
}

/// Ten copies of each of three kinds. Their sources come to be in doubt, and then their placement goes nowhere any more.
fn deselected_in_doubt(doubt: impl Fn(&mut World, &str)) -> World {
    let mut world = world();
    put_sources(&mut world, &PLACED, 10);
    place(&mut world, &PLACED, &[FLORIN], 1);
    known(&mut world);
    world.run();
    assert_eq!(left_in(&world, "florin"), 30);
    for kind in PLACED {
        doubt(&mut world, kind);
    }
    place(&mut world, &PLACED, &[], 2);
    known(&mut world);
    world.run_for(60_000);
    assert_eq!((left_in(&world, "florin"), held(&world)), (30, vec![]));
    world
}

/// The same, where the links to the sources are lost.
fn lost_and_deselected() -> World {
    deselected_in_doubt(|world, kind| world.lose("workload", kind))
}

/// The link to the sources of a kind is back, and all that happened meanwhile is read.
fn catch_up(world: &mut World, kind: &str) {
    world.find_again("workload", kind);
    let stranger = json!({ "apiVersion": "v1", "kind": "ConfigMap" });
    world.put(&key("workload", kind, "till", "stranger"), stranger);
    world.run_for(60_000);
}

#[test]
fn what_is_undecided_counts_with_what_is_to_go() {
    let mut world = lost_and_deselected();
    let mut change = None;
    for kind in PLACED {
        catch_up(&mut world, kind);
        assert_eq!(left_in(&world, "florin"), 30, "{kind} went by themselves");
        let asked = held(&world);
        let [(_, asked, 30)] = asked.as_slice() else { panic!("{kind}: {asked:?}") };
        assert_eq!(*change.get_or_insert(*asked), *asked, "it is one question all the time");
    }
    confirm(&mut world, "p1", change.unwrap());
    assert_eq!(left_in(&world, "florin"), 0);
}

/// The same, where the kinds of the sources are not served any more.
fn unserved_and_deselected() -> World {
    deselected_in_doubt(|world, kind| world.unserve("workload", kind))
}

#[test]
fn what_is_claimed_and_in_doubt_counts_once_its_placement_selects_otherwise() {
    let mut world = unserved_and_deselected();
    let mut change = None;
    for kind in PLACED {
        world.find_again("workload", kind);
        world.run_for(60_000);
        assert_eq!(left_in(&world, "florin"), 30, "{kind} went by themselves");
        let asked = held(&world);
        let [(_, asked, 30)] = asked.as_slice() else { panic!("{kind}: {asked:?}") };
        assert_eq!(*change.get_or_insert(*asked), *asked, "it is one question all the time");
    }
    confirm(&mut world, "p1", change.unwrap());
    assert_eq!(left_in(&world, "florin"), 0);
}

#[test]
fn what_is_claimed_and_in_doubt_counts_once_its_placement_goes_elsewhere() {
    counts_once_its_placement_goes_elsewhere(go);
}

#[test]
fn what_is_claimed_and_in_doubt_counts_once_its_placement_may_go_elsewhere_and_does_not_say_where() {
    counts_once_its_placement_goes_elsewhere(|world, scope, kinds, to| {
        for kind in kinds {
            configure(world, Skeleton { goes_to: None, ..going(scope, kind, to) });
        }
    });
}

fn counts_once_its_placement_goes_elsewhere(go: fn(&mut World, &str, &[&str], &[u32])) {
    let mut world = world();
    put_sources(&mut world, &PLACED, 10);
    go(&mut world, "p1", &PLACED, &[FLORIN]);
    known(&mut world);
    world.run();
    for kind in PLACED {
        world.unserve("workload", kind);
    }
    go(&mut world, "p1", &PLACED, &[]);
    known(&mut world);
    world.run_for(60_000);
    for kind in PLACED {
        world.find_again("workload", kind);
        world.run_for(60_000);
        assert_eq!(left_in(&world, "florin"), 30, "{kind} went by themselves");
        assert!(matches!(held(&world).as_slice(), [(_, _, 30)]), "{kind}: {:?}", held(&world));
    }
    let (scope, change, _) = held(&world)[0].clone();
    confirm(&mut world, &scope, change);
    assert_eq!(left_in(&world, "florin"), 0);
}

#[test]
fn what_is_in_doubt_where_its_placement_still_goes_does_not_count_with_what_leaves_elsewhere() {
    let mut world = world();
    let kinds = ["configmaps", "secrets"];
    put_sources(&mut world, &kinds, 10);
    go(&mut world, "p1", &kinds, &[FLORIN, GUILDER, 2]);
    known(&mut world);
    world.run();
    world.unserve("workload", "secrets");
    go(&mut world, "p1", &kinds, &[FLORIN, GUILDER]);
    known(&mut world);
    world.run_for(60_000);
    let thaler = world.engine.placed_by(&ScopeId(Name::new("p1"))).count();
    assert_eq!((thaler, held(&world)), (50, vec![]), "20 of 60 may go, and nobody is asked");
}

/// Two placements want ten copies of each of two kinds at one edge. While the sources are in doubt, the second goes elsewhere, and
/// then the first is deleted.
fn left_by_both() -> World {
    let mut world = world();
    let kinds = ["configmaps", "secrets"];
    put_sources(&mut world, &kinds, 10);
    go(&mut world, "p1", &kinds, &[FLORIN]);
    go(&mut world, "p2", &kinds, &[FLORIN, GUILDER]);
    known(&mut world);
    world.run();
    for kind in kinds {
        world.unserve("workload", kind);
    }
    go(&mut world, "p2", &kinds, &[GUILDER]);
    for kind in kinds {
        world.engine.configure(&world.store, &RouteId(Name::new(&format!("p1-{kind}"))), None);
    }
    known(&mut world);
    world.run_for(60_000);
    assert_eq!((left_in(&world, "florin"), held(&world)), (20, vec![]));
    world
}

#[test]
fn what_two_let_go_one_of_them_in_doubt_counts_with_the_one_that_it_was() {
    let mut world = left_by_both();
    for kind in ["configmaps", "secrets"] {
        world.find_again("workload", kind);
        world.run_for(60_000);
        assert_eq!(left_in(&world, "florin"), 20, "{kind} went by themselves");
        let asked = held(&world);
        let [(scope, _, 20)] = asked.as_slice() else { panic!("{kind}: {asked:?}") };
        assert_eq!(scope, "p1");
    }
    let (scope, change, _) = held(&world)[0].clone();
    confirm(&mut world, &scope, change);
    assert_eq!((left_in(&world, "florin"), left_in(&world, "guilder")), (0, 20));
}

#[test]
fn what_two_let_go_one_of_them_in_doubt_is_the_others_if_it_turns_out_to_want_it() {
    let mut world = left_by_both();
    world.find_again("workload", "configmaps");
    world.run_for(60_000);
    assert!(matches!(held(&world).as_slice(), [(_, _, 20)]), "{:?}", held(&world));
    go(&mut world, "p2", &["configmaps", "secrets"], &[FLORIN, GUILDER]);
    known(&mut world);
    world.find_again("workload", "secrets");
    world.run_for(60_000);
    assert_eq!((left_in(&world, "florin"), held(&world)), (20, vec![]));
    let placed = |name: &str| world.engine.placed_by(&ScopeId(Name::new(name))).count();
    assert_eq!((placed("p1"), placed("p2")), (0, 40));
}

#[test]
fn what_two_let_go_one_of_them_in_doubt_is_asked_about_though_the_one_is_no_more() {
    let mut world = left_by_both();
    world.engine.disown(&ScopeId(Name::new("p1")));
    world.run_for(60_000);
    for kind in ["configmaps", "secrets"] {
        world.find_again("workload", kind);
        world.run_for(60_000);
        assert_eq!(left_in(&world, "florin"), 20, "{kind} went by themselves");
        assert!(held(&world).iter().any(|(scope, _, n)| scope == "unclaimed/florin" && *n == 20));
    }
}

#[test]
fn what_turns_out_to_be_selected_after_a_doubt_is_asked_about_no_more() {
    let mut world = unserved_and_deselected();
    place(&mut world, &["customizers", "secrets"], &[FLORIN], 3);
    world.find_again("workload", "configmaps");
    world.run_for(60_000);
    assert!(matches!(held(&world).as_slice(), [(_, _, 30)]), "{:?}", held(&world));
    world.find_again("workload", "secrets");
    world.find_again("workload", "customizers");
    world.run_for(60_000);
    assert_eq!((left_in(&world, "florin"), held(&world)), (20, vec![]));
}

#[test]
fn a_word_on_what_was_undecided_holds_when_it_is_decided() {
    let mut world = lost_and_deselected();
    catch_up(&mut world, "configmaps");
    let change = held(&world)[0].1;
    confirm(&mut world, "p1", change);
    assert_eq!(left_in(&world, "florin"), 20, "what is known to be unwanted goes");
    catch_up(&mut world, "secrets");
    assert_eq!((left_in(&world, "florin"), held(&world)), (10, vec![]));
    // Of the last kind, one is wanted after all: the word on it is not good for the next time.
    place(&mut world, &["customizers"], &[FLORIN], 3);
    catch_up(&mut world, "customizers");
    assert_eq!(left_in(&world, "florin"), 10);
    place(&mut world, &["customizers"], &[], 4);
    world.run_for(60_000);
    assert_eq!(left_in(&world, "florin"), 10, "nobody was asked about this");
    assert_eq!(held(&world).len(), 1);
}

#[test]
fn what_is_undecided_holds_up_neither_single_deletions_nor_small_withdrawals() {
    let mut world = world();
    put_sources(&mut world, &PLACED, 10);
    place(&mut world, &PLACED, &[FLORIN], 1);
    known(&mut world);
    world.run();
    world.lose("workload", "secrets");
    place(&mut world, &["secrets"], &[], 2);
    known(&mut world);
    world.run_for(60_000);
    // Seen to be deleted.
    world.remove(&key("workload", "configmaps", "till", "c00"));
    world.run_for(60_000);
    assert_eq!(left_in(&world, "florin"), 29);
    // Deselected: with the ten that are undecided not more than half of all.
    let mut other = config_map("1");
    other["metadata"]["labels"] = json!({});
    world.put(&key("workload", "configmaps", "till", "c01"), other);
    world.run_for(60_000);
    assert_eq!((left_in(&world, "florin"), held(&world)), (28, vec![]));
}

/// Five copies at each of two edges. All of one edge is out of sight, as when a claim is rejected, and then the placement
/// goes nowhere any more.
fn half_out_of_sight() -> World {
    let mut world = world();
    put_sources(&mut world, &["configmaps"], 5);
    place(&mut world, &["configmaps"], &[FLORIN, GUILDER], 1);
    known(&mut world);
    world.run();
    world.unserve("guilder", "configmaps");
    world.run_for(60_000);
    place(&mut world, &["configmaps"], &[], 2);
    known(&mut world);
    world.run_for(60_000);
    world
}

#[test]
fn what_is_out_of_sight_counts_with_what_is_to_go() {
    let mut world = half_out_of_sight();
    let left = |world: &World| (left_in(world, "florin"), left_in(world, "guilder"));
    assert_eq!(left(&world), (5, 5), "five of ten went, and the others would when they are shown again");
    let asked = held(&world);
    let [(_, change, 10)] = asked.as_slice() else { panic!("{asked:?}") };
    confirm(&mut world, "p1", *change);
    assert_eq!(left(&world), (0, 5), "what is not shown stays as long as it is not");
    world.find_again("guilder", "configmaps");
    world.run_for(60_000);
    assert_eq!((left(&world), held(&world)), ((0, 0), vec![]), "the word was on these as well");
}

/// The link to an edge may be dead for minutes before anybody notices: what is written there is answered, and not shown.
#[test]
fn what_was_written_and_is_not_shown_yet_counts_with_what_is_to_go() {
    let mut world = world();
    world.servers.get_mut(&key("guilder", "configmaps", "", "").cluster).unwrap().silent = true;
    put_sources(&mut world, &["configmaps"], 5);
    place(&mut world, &["configmaps"], &[FLORIN, GUILDER], 1);
    known(&mut world);
    world.run_for(60_000);
    let left = |world: &World| (left_in(world, "florin"), left_in(world, "guilder"));
    assert_eq!(left(&world), (5, 5));
    place(&mut world, &["configmaps"], &[], 2);
    world.run_for(60_000);
    assert_eq!(left(&world), (5, 5), "five of ten went, and the others would when they are shown");
    let asked = held(&world);
    let [(_, change, 10)] = asked.as_slice() else { panic!("{asked:?}") };
    world.servers.get_mut(&key("guilder", "configmaps", "", "").cluster).unwrap().silent = false;
    world.run_for(60_000);
    assert_eq!(held(&world), asked, "it is the same question when they are shown");
    confirm(&mut world, "p1", *change);
    assert_eq!(left(&world), (0, 0));
}

#[test]
fn what_went_while_it_was_out_of_sight_is_asked_about_no_more() {
    let mut world = half_out_of_sight();
    for n in 0..5 {
        world.remove(&key("guilder", "configmaps", "till", &format!("c{n:02}")));
    }
    world.find_again("guilder", "configmaps");
    world.run_for(60_000);
    assert_eq!((left_in(&world, "florin"), held(&world)), (0, vec![]), "five of five are few");
}

#[test]
fn what_a_scope_asks_about_is_asked_anew_as_a_whole_when_its_configuration_changes() {
    let mut world = world();
    put_sources(&mut world, &PLACED, 10);
    place(&mut world, &PLACED, &[FLORIN], 1);
    known(&mut world);
    world.run();
    place(&mut world, &PLACED, &[], 2);
    world.run_for(60_000);
    assert_eq!(held(&world).len(), 1);
    // Changed again, and one of those that wait is looked at for a reason of its own.
    place(&mut world, &PLACED, &[], 3);
    let one = key("florin", "configmaps", "till", "c05");
    let mut object = world.object(&one).unwrap().clone();
    object["metadata"]["labels"]["touched"] = json!("yes");
    world.put(&one, object);
    world.run_for(60_000);
    assert_eq!(left_in(&world, "florin"), 30, "it was the only one");
    assert!(matches!(held(&world).as_slice(), [(_, _, 30)]), "{:?}", held(&world));
}

/// Nine copies at each of three edges, deselected while no process ran.
fn a_few_everywhere() -> World {
    let mut world = world();
    put_sources(&mut world, &["configmaps"], 9);
    place(&mut world, &["configmaps"], &[FLORIN, GUILDER, 2], 1);
    known(&mut world);
    world.run();
    world.restart(&KINDS);
    place(&mut world, &["configmaps"], &[], 2);
    known(&mut world);
    world.run_for(60_000);
    world
}

fn left_in_each(world: &World) -> [usize; 3] {
    ["florin", "guilder", "tenant"].map(|cluster| left_in(world, cluster))
}

#[test]
fn a_few_in_each_of_many_clusters_are_many() {
    let mut world = a_few_everywhere();
    assert_eq!(left_in_each(&world), [9, 9, 9], "nine of nine went, cluster by cluster");
    // One cluster after the other: the last one is asked about although it is less than ten by itself.
    for (n, cluster) in ["florin", "guilder", "tenant"].into_iter().enumerate() {
        let scope = format!("unclaimed/{cluster}");
        let asked = held(&world);
        let (_, change, count) = asked.iter().find(|(one, ..)| *one == scope).unwrap().clone();
        assert_eq!((asked.len(), count), (4 - n, 9), "{asked:?}");
        confirm(&mut world, &scope, change);
        assert_eq!(left_in(&world, cluster), 0);
    }
    assert_eq!((left_in_each(&world), held(&world)), ([0, 0, 0], vec![]));
}

#[test]
fn what_nobody_claims_anywhere_goes_by_one_word() {
    let mut world = a_few_everywhere();
    let asked = held(&world);
    let (scope, change, 27) = asked.last().unwrap().clone() else { panic!("{asked:?}") };
    confirm(&mut world, &scope, change);
    assert_eq!((left_in_each(&world), held(&world)), ([0, 0, 0], vec![]));
}

#[test]
fn what_is_claimed_again_elsewhere_lets_few_go() {
    let mut world = a_few_everywhere();
    place(&mut world, &["configmaps"], &[FLORIN, GUILDER], 3);
    world.run_for(60_000);
    assert_eq!((left_in_each(&world), held(&world)), ([9, 9, 0], vec![]));
}

#[test]
fn what_another_takes_over_is_asked_about_no_more() {
    let mut world = world();
    put_sources(&mut world, &PLACED, 10);
    place(&mut world, &PLACED, &[FLORIN], 1);
    known(&mut world);
    world.run();
    place(&mut world, &PLACED, &[], 2);
    world.run_for(60_000);
    assert_eq!(held(&world).len(), 1);
    for kind in PLACED {
        let mut other = translator(&format!("p2-{kind}"), &[FLORIN]);
        other.head.scope = ScopeId(Name::new("p2"));
        other.head.sources[0].kind = kind_of(kind);
        configure(&mut world, other);
    }
    world.run_for(60_000);
    assert_eq!((left_in(&world, "florin"), held(&world)), (30, vec![]));
}

#[test]
fn a_word_on_what_nobody_claimed_is_not_good_after_somebody_did() {
    let mut world = world();
    put_sources(&mut world, &["configmaps"], 20);
    place(&mut world, &["configmaps"], &[FLORIN], 1);
    known(&mut world);
    world.run();
    world.restart(&KINDS);
    place(&mut world, &["configmaps"], &[], 2);
    known(&mut world);
    world.run_for(60_000);
    // Confirmed while the edge is away, and then claimed again.
    let florin = key("florin", "namespaces", "", "").cluster;
    world.servers.get_mut(&florin).unwrap().link = Link::Away;
    let (scope, change, _) = held(&world)[0].clone();
    confirm(&mut world, &scope, change);
    place(&mut world, &["configmaps"], &[FLORIN], 3);
    world.run_for(60_000);
    world.servers.get_mut(&florin).unwrap().link = Link::Up;
    world.run_for(600_000);
    assert_eq!(left_in(&world, "florin"), 20);
    world.engine.configure(&world.store, &RouteId(Name::new("p1-configmaps")), None);
    world.engine.disown(&ScopeId(Name::new("p1")));
    world.run_for(60_000);
    world.engine.disown(&ScopeId(Name::new("p1")));
    world.run_for(60_000);
    assert_eq!(left_in(&world, "florin"), 20, "nobody was asked this time");
    assert!(held(&world).iter().any(|(scope, ..)| scope == "unclaimed/florin"), "{:?}", held(&world));
}

/// Nine copies at each of two edges are what is asked about, of 27. The other nine are moved by their placement, and the link to
/// the edge that they leave is dead: it is answered there that they are gone, and not shown.
#[test]
fn what_another_placement_moves_does_not_make_what_nobody_claims_look_small() {
    let mut world = world();
    put_sources(&mut world, &["configmaps", "secrets"], 9);
    let move_to = |world: &mut World, to: u32| {
        let mut route = translator("p2", &[to]);
        (route.head.configuration, route.head.sources[0].kind) = (edition(to.into()), kind_of("secrets"));
        configure(world, route);
    };
    place(&mut world, &["configmaps"], &[FLORIN, 2], 1);
    move_to(&mut world, GUILDER);
    known(&mut world);
    world.run();
    world.restart(&KINDS);
    place(&mut world, &["configmaps"], &[], 2);
    move_to(&mut world, GUILDER);
    known(&mut world);
    world.run_for(60_000);
    assert_eq!((left_in_each(&world), held(&world).len()), ([9, 9, 9], 3));
    world.servers.get_mut(&key("guilder", "secrets", "", "").cluster).unwrap().silent = true;
    move_to(&mut world, 2);
    world.run_for(1_000);
    assert_eq!(left_in_each(&world), [9, 0, 18], "18 of 36 went, nine of which were gone");
    assert_eq!(held(&world).len(), 3);
}

/// Nine copies at each of two edges, deselected while no process ran. Now one does that has listed the first of them.
fn one_listed() -> World {
    let mut world = world();
    put_sources(&mut world, &["configmaps"], 9);
    place(&mut world, &["configmaps"], &[FLORIN, GUILDER], 1);
    known(&mut world);
    world.run();
    let late = ("guilder", "configmaps");
    world.restart_following(|cluster| KINDS.into_iter().filter(|kind| (cluster, *kind) != late).collect());
    place(&mut world, &["configmaps"], &[], 2);
    world.begin_to_follow("guilder", "configmaps", Filter::All);
    known(&mut world);
    world.run_for(60_000);
    assert_eq!((left_in_each(&world), held(&world)), ([9, 9, 0], vec![]));
    world
}

#[test]
fn what_nobody_claims_waits_until_every_cluster_is_listed() {
    let mut world = one_listed();
    world.last_page("guilder", "configmaps", 0);
    world.run_for(60_000);
    assert_eq!(left_in_each(&world), [9, 9, 0], "they went cluster by cluster");
    let asked = held(&world);
    assert!(matches!(asked.last(), Some((scope, _, 18)) if scope == "unclaimed"), "{asked:?}");
}

#[test]
fn a_cluster_that_cannot_be_listed_holds_up_no_other() {
    let mut world = one_listed();
    world.lose("guilder", "configmaps");
    world.run_for(60_000);
    assert_eq!((left_in_each(&world), held(&world)), ([0, 9, 0], vec![]));
}
