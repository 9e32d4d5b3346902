//! H28: workspaces, places and kinds come and go, and leave nothing behind.

use mailboat_object::key::{ClusterId, KindId};
use mailboat_store::{Doubt, EndpointId, FeedId, Filter, Follower, Nature, PlaceId, Settings, Store};

use crate::rig::{Known, Mode, Rig, definition};
use crate::server::key;

/// So many clusters that left are remembered in a view.
const REMEMBERED: usize = 256;

/// Reads all that there is to read, without a pause.
fn read_all(rig: &mut Rig) {
    while (0..rig.wires.len()).any(|wire| rig.step(wire)) {}
}

#[test]
fn h28_workspaces_that_come_and_go_in_a_view_are_remembered_for_a_while() {
    let mut rig = Rig::new(Mode::View);
    rig.servers[0].bind("stays", true);
    rig.servers[0].put("stays", "ale", 1, false);
    rig.quiet();
    let comes_and_goes = |rig: &mut Rig, n: usize| {
        let tenant = format!("tenant{n}");
        rig.servers[0].bind(&tenant, true);
        rig.servers[0].put(&tenant, "ale", 1, false);
        read_all(rig);
        rig.servers[0].delete(&tenant, "ale");
        rig.servers[0].bind(&tenant, false);
        read_all(rig);
        assert!(matches!(rig.seen(&key(&tenant, "ale")), Known::Unknown(_)), "{tenant}");
    };
    (0..REMEMBERED + 10).for_each(|n| comes_and_goes(&mut rig, n));
    let before = rig.store.tables();
    (REMEMBERED + 10..3 * REMEMBERED).for_each(|n| comes_and_goes(&mut rig, n));
    for ((table, first), (_, last)) in before.into_iter().zip(rig.store.tables()) {
        assert!(last <= first, "{table}: {first} became {last}");
    }
    assert_eq!(rig.seen(&key("tenant1", "ale")), Known::Unknown(Doubt::NotEngaged), "as if never seen");
    assert!(matches!(rig.seen(&key("stays", "ale")), Known::Present(_)));
    // One that was forgotten and is bound again is known again.
    rig.servers[0].bind("tenant1", true);
    rig.servers[0].put("tenant1", "ale", 1, false);
    rig.quiet();
    assert!(matches!(rig.seen(&key("tenant1", "ale")), Known::Present(_)));
}

#[test]
fn h28_a_workspace_that_is_known_to_be_gone_leaves_nothing_behind() {
    let mut rig = Rig::new(Mode::View);
    rig.quiet();
    let before = rig.store.tables();
    for n in 0..100 {
        let tenant = format!("tenant{n}");
        rig.servers[0].bind(&tenant, true);
        rig.servers[0].put(&tenant, "ale", 1, false);
        read_all(&mut rig);
        rig.servers[0].delete(&tenant, "ale");
        rig.servers[0].bind(&tenant, false);
        read_all(&mut rig);
        let mut out = Vec::new();
        rig.store.forget_cluster(&ClusterId::new(&tenant), &mut out);
        rig.hear(out);
    }
    for ((table, first), (_, last)) in before.into_iter().zip(rig.store.tables()) {
        // What bindings say alike is kept once, and until something else is said.
        let most = if table == "bindings" { first + 2 } else { first };
        assert!(last <= most, "{table}: {first} became {last}");
    }
}

#[test]
fn h28_places_and_kinds_that_come_and_go_leave_nothing_behind() {
    let (mut store, mut out) = (Store::new(), Vec::new());
    for n in 0..10_000 {
        let place = PlaceId::new(&format!("place{n}"));
        let endpoint = EndpointId::new("one");
        let cluster = ClusterId::new(&format!("cluster{n}"));
        let nature = if n % 2 == 0 { Nature::Whole(cluster) } else { Nature::View };
        store.open(&place, nature, [endpoint.clone()], &mut out);
        let kind = KindId::new("example.org", &format!("boats{n}"));
        let id = FeedId { place: place.clone(), endpoint, kind };
        let follower =
            Follower::new(id, definition(Filter::All), Settings::default(), 3, &mut store, &mut out);
        drop(follower.unwrap());
        store.close(&place, &mut out);
        out.clear();
    }
    for (table, size) in store.tables() {
        assert_eq!(size, 0, "{table}");
    }
}
