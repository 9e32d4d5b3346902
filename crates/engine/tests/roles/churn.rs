//! H28: tenants come and go, and leave nothing behind.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_object::key::ClusterId;
use mailboat_object::wire::FaultKind;
use mailboat_store::seen::Seen;

use crate::prelude::*;
use crate::roles::edition;

/// What the engine holds, by table, where it holds something.
fn tables(world: &World) -> BTreeMap<&'static str, usize> {
    world.engine.tables().into_iter().filter(|(_, size)| *size > 0).collect()
}

/// Lets something come and go often, and expects that the tables are as they were after the first times.
fn leaves_nothing(world: &mut World, times: usize, mut comes_and_goes: impl FnMut(&mut World, usize)) {
    (0..10).for_each(|n| comes_and_goes(world, n));
    let before = tables(world);
    (10..times).for_each(|n| comes_and_goes(world, n));
    // Some tables are tidied when they have grown to a multiple of what they need, and never beyond.
    let slack = 2_100;
    for (table, size) in tables(world) {
        let first = before.get(table).copied().unwrap_or_default();
        let room = if ["reads", "awaited"].contains(&table) { slack } else { 0 };
        assert!(size <= first + room, "{table}: {first} became {size}");
    }
}

#[test]
fn h28_placements_that_come_and_go_leave_nothing_behind() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    known(&mut world);
    leaves_nothing(&mut world, 2_000, |world, n| {
        let route = translator(&format!("p{n}"), &[FLORIN]);
        let (id, scope) = (route.head().id.clone(), route.head().scope.clone());
        configure(world, route);
        world.run();
        assert!(world.object(&copy()).is_some());
        world.engine.configure(&world.store, &id, None);
        world.run();
        world.engine.disown(&scope);
        world.run();
        assert_eq!(world.object(&copy()), None, "{}", explain(world, &copy()));
        world.writes.clear();
    });
}

#[test]
fn h28_objects_and_namespaces_that_come_and_go_leave_nothing_behind() {
    let mut world = world();
    // What they are made from is named by them, and is mostly not there.
    let mut route = translator("p1", &[FLORIN]);
    route.select = Box::new(|source, view| {
        let asked = key("workload", "customizers", "", &format!("of-{}", source.key.name));
        Ok(if matches!(view.get(&asked), Seen::Present(_)) { vec![] } else { vec![FLORIN] })
    });
    configure(&mut world, route);
    known(&mut world);
    leaves_nothing(&mut world, 3_000, |world, n| {
        let at = |cluster| key(cluster, "configmaps", &format!("ns{n}"), &format!("c{n}"));
        // At its edge, its namespace is on its way out for a while.
        let mut ending = json!({ "apiVersion": "v1", "kind": "Namespace" });
        ending["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
        if n % 2 == 0 {
            world.put(&key("florin", "namespaces", "", &format!("ns{n}")), ending);
        }
        world.put(&at("workload"), config_map("1"));
        world.run();
        assert_eq!(world.object(&at("florin")).is_some(), n % 2 == 1);
        world.remove(&at("workload"));
        world.run();
        assert_eq!(world.object(&at("florin")), None);
        let namespace = key("florin", "namespaces", "", &format!("ns{n}"));
        world.remove(&namespace);
        world.run();
        world.writes.clear();
    });
    assert_eq!(world.engine.slot_count(), 0);
}

/// Something is delivered into each, and something else is on its way there when it goes. The answers come later.
#[test]
fn h28_mailboxes_that_come_and_go_leave_nothing_behind() {
    let mut world = world();
    world.put(&source(), config_map("1"));
    world.put(&key("workload", "configmaps", "till", "late"), config_map("1"));
    configure(&mut world, translator("p1", &[FLORIN]));
    known(&mut world);
    world.run();
    let placed = |mailbox: Option<u32>, n: usize| {
        let mut route = translator("p1", &mailbox.into_iter().chain([FLORIN]).collect::<Vec<_>>());
        route.head.configuration = edition(u64::try_from(2 * n).unwrap() + u64::from(mailbox.is_some()));
        route
    };
    leaves_nothing(&mut world, 500, |world, n| {
        let (name, id) = (format!("mailbox{n}"), 100 + u32::try_from(n).unwrap());
        let mailbox = ClusterId::new(&name);
        world.join(id, &name);
        let namespace = key(&name, "namespaces", "", "till");
        world.put(&namespace, json!({ "apiVersion": "v1", "kind": "Namespace" }));
        for kind in ["configmaps", "namespaces"] {
            world.follow(&name, kind);
        }
        configure(world, placed(Some(id), n));
        world.run();
        let copy = |name: &str| key(&mailbox.0, "configmaps", "till", name);
        assert!(world.object(&copy("pos")).is_some() && world.object(&copy("late")).is_some());
        // One of its copies is rewritten and being put right, the other gone and being made anew: nothing of that is answered.
        world.servers.get_mut(&mailbox).unwrap().link = Link::Hangs;
        let mut rewritten = world.object(&copy("pos")).unwrap().clone();
        rewritten["data"]["a"] = json!("theirs");
        world.put(&copy("pos"), rewritten);
        world.remove(&copy("late"));
        world.run_for(100);
        assert_eq!(world.unanswered.len(), 2, "round {n}");
        configure(world, placed(None, n));
        world.run_for(100);
        world.engine.forget_clusters(&BTreeSet::from([mailbox.clone()]));
        world.run_for(100);
        world.servers.remove(&mailbox);
        if n % 2 == 0 {
            world.give_up();
        } else {
            world.give_up_as(FaultKind::Away);
        }
        world.run_for(100);
        let left = world.engine.slot_count();
        assert_eq!(left, 2, "round {n}: {left} slots");
        world.writes.clear();
    });
    assert!(world.object(&copy()).is_some());
}
