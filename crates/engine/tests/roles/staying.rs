//! What stays when nobody wants it any more: let go of for good, and so no sooner than what goes.

use mailboat_engine::look::Serving;
use mailboat_engine::want::{Policy, Withdrawal};

use crate::prelude::*;
use crate::roles::edition;

/// A route whose copies stay when nobody wants them any more.
fn leaving(destinations: &[u32]) -> Skeleton {
    let mut route = translator("p1", destinations);
    route.policy = Arc::new(Policy { withdrawal: Withdrawal::Leave, ..(*route.policy).clone() });
    route
}

fn at(cluster: &str, n: usize) -> Key {
    key(cluster, "configmaps", "till", &format!("c{n:02}"))
}

#[test]
fn what_is_to_stay_is_nobodys_when_it_is_no_longer_wanted_whatever_the_reason() {
    for reason in ["its source is deleted", "its configuration is", "its configuration was while nobody ran"]
    {
        let mut world = world();
        world.put(&source(), config_map("1"));
        configure(&mut world, leaving(&[FLORIN]));
        known(&mut world);
        world.run();
        match reason {
            "its source is deleted" => world.remove(&source()),
            "its configuration is" => world.engine.configure(&world.store, &RouteId(Name::new("p1")), None),
            _ => {
                world.restart(&KINDS);
                known(&mut world);
            }
        }
        world.run_for(60_000);
        let left = world.object(&copy()).unwrap_or_else(|| panic!("deleted because {reason}"));
        assert_eq!(left["data"], json!({ "a": "1" }), "{reason}");
        assert!(left["metadata"]["labels"].get("mailboat.dev/owner").is_none(), "{reason}: {left}");
    }
}

/// kcp deletes all objects of a kind with its binding, and all of a workspace with that, by ordinary events. Let go of, a copy
/// would be a foreign object when its source is back, and followed never again.
#[test]
fn h16_what_stays_is_followed_again_when_its_source_comes_back_with_its_binding() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, leaving(&[FLORIN]));
    known(&mut world);
    world.run();
    world.kind = Serving::Nothing;
    world.remove(&source());
    world.run_for(600_000);
    let label = &world.object(&copy()).unwrap()["metadata"]["labels"]["mailboat.dev/owner"];
    assert_eq!(*label, json!("test"), "let go of by an event alone");
    world.kind = Serving::Itself;
    world.put(&source(), config_map("2"));
    world.run_for(600_000);
    assert_eq!(world.object(&copy()).unwrap()["data"], json!({ "a": "2" }), "{}", explain(&world, &copy()));
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Settled));
}

/// As a list of the past hides it from a process that starts. What was let go of bears no mark and is another's by now, but all
/// that stands in it is still by our hand: to take back what only we had put there would leave it empty.
#[test]
fn what_was_let_go_of_and_is_met_unseen_keeps_what_is_in_it() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    configure(&mut world, leaving(&[FLORIN]));
    known(&mut world);
    world.run();
    world.engine.configure(&world.store, &RouteId(Name::new("p1")), None);
    world.run();
    let left = world.object(&copy()).unwrap().clone();
    assert!(left["metadata"]["labels"].get("mailboat.dev/owner").is_none(), "{left}");
    world.now += 60_000;
    world.restart_following(|at| if at == "florin" { vec!["namespaces"] } else { KINDS.to_vec() });
    world.begin_to_follow("florin", "configmaps", Filter::All);
    world.last_page("florin", "configmaps", 1);
    configure(&mut world, leaving(&[FLORIN]));
    known(&mut world);
    world.run_for(60_000);
    let now = world.object(&copy()).unwrap().clone();
    assert_eq!(now["data"], left["data"], "{:?}", written(&mut world));
    assert!(now["metadata"]["labels"].get("mailboat.dev/owner").is_none(), "{now}");
    assert_eq!(world.engine.verdict(&copy()), Some(&Verdict::Refused(Refusal::Foreign)));
}

/// Its mark says that it goes: so do those that older processes wrote. A server deletes with a namespace all that stands in it,
/// also what others put there.
#[test]
fn a_namespace_is_let_go_of_and_never_deleted_whatever_the_reason() {
    let at = |cluster| key(cluster, "namespaces", "", "quay");
    let carrying = || {
        let mut route = translator("p1", &[FLORIN]);
        route.head.sources[0].kind = at("workload").kind;
        route
    };
    for reason in ["its source is deleted", "its configuration is", "its configuration was while nobody ran"]
    {
        let mut world = world();
        world.put(&at("workload"), config_map("1"));
        configure(&mut world, carrying());
        known(&mut world);
        world.run();
        let ours = |world: &World| {
            let there = world.object(&at("florin")).unwrap_or_else(|| panic!("deleted because {reason}"));
            there["metadata"]["labels"]["mailboat.dev/owner"] == "test"
        };
        assert!(ours(&world), "{reason}");
        match reason {
            "its source is deleted" => world.remove(&at("workload")),
            "its configuration is" => world.engine.configure(&world.store, &RouteId(Name::new("p1")), None),
            _ => {
                world.restart(&KINDS);
                known(&mut world);
            }
        }
        world.run_for(60_000);
        assert!(!ours(&world), "{reason}: {}", explain(&world, &at("florin")));
        assert_eq!(world.engine.slot_count(), 0, "{reason}");
    }
}

#[test]
fn h16_a_configuration_that_lets_go_of_much_that_stays_is_asked_about_first() {
    let mut world = world();
    for n in 0..20 {
        world.put(&at("workload", n), config_map("1"));
    }
    configure(&mut world, leaving(&[FLORIN]));
    known(&mut world);
    world.run();
    let ours = |world: &World| {
        let label = |n| &world.object(&at("florin", n)).unwrap()["metadata"]["labels"]["mailboat.dev/owner"];
        (0..20).filter(|n| *label(*n) == json!("test")).count()
    };
    let mut nowhere = leaving(&[]);
    nowhere.head.configuration = edition(2);
    configure(&mut world, nowhere);
    world.run_for(600_000);
    assert_eq!(ours(&world), 20, "{}", explain(&world, &at("florin", 0)));
    let held: Vec<_> =
        world.engine.held_by_scope().map(|(scope, change, n)| (scope.clone(), change, n)).collect();
    let [(scope, change, 20)] = held.as_slice() else { panic!("{held:?}") };
    assert!(world.engine.confirm(scope, *change));
    world.run_for(600_000);
    assert_eq!(ours(&world), 0, "{}", explain(&world, &at("florin", 0)));
}
