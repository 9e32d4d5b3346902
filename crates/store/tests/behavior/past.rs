//! A server that goes back in time, and several places that are read from it.

use mailboat_object::key::{ClusterId, Name, Version};
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{
    Doubt, FeedId, Fetch, Filter, Follower, Input, Moment, Nature, Now, PlaceId, Settings, Store,
};

use crate::rig::{definition, endpoint, feed_id, lost};
use crate::server::{Asked, key};

/// Two places of one server, each with one object, both read.
fn neighbours() -> (Store, [Follower; 2]) {
    let (mut store, mut out) = (Store::new(), Vec::new());
    let followers = ["one", "two"].map(|cluster| {
        let place = PlaceId::new(cluster);
        store.open(&place, Nature::Whole(ClusterId::new(cluster)), [endpoint(0)], &mut out);
        store.served_by(&place, &Name::new("kcp"));
        let id = FeedId { place, ..feed_id(Asked::Maps, 0) };
        let mut follower =
            Follower::new(id, definition(Filter::All), Settings::default(), 1, &mut store, &mut out).unwrap();
        list(&mut follower, &mut store, 50, Some(cluster));
        follower
    });
    (store, followers)
}

/// Answers a list at a version, with the one object of a cluster or with nothing.
fn list(follower: &mut Follower, store: &mut Store, version: u64, object: Option<&str>) {
    let now = Now { mono: Moment(1_000_000), wall_seconds: 1_000 };
    assert!(matches!(follower.next(now), Fetch::List { .. }), "no list is asked for");
    let item = object.map(|uid| {
        format!(r#"{{"metadata":{{"name":"ale","namespace":"till","uid":"{uid}","resourceVersion":"40"}}}}"#)
    });
    let items = item.unwrap_or_default();
    let page = format!(r#"{{"kind":"List","metadata":{{"resourceVersion":"{version}"}},"items":[{items}]}}"#);
    follower.feed(now, follower.turn(), Input::Page(page.as_bytes()), store, &mut Vec::new());
}

#[test]
fn a_server_that_went_back_and_came_as_far_again_is_told_by_its_other_kinds_and_places() {
    let (mut store, [mut one, mut two]) = neighbours();
    // The first to look sees an older state.
    let now = Now { mono: Moment(1_000_000), wall_seconds: 1_000 };
    one.feed(now, one.turn(), Input::Fault(&lost()), &mut store, &mut Vec::new());
    let later = Now { mono: Moment(2_000_000), wall_seconds: 2_000 };
    assert!(matches!(one.next(later), Fetch::Probe { .. }));
    let probe = br#"{"kind":"List","metadata":{"resourceVersion":"30"},"items":[]}"#;
    one.feed(later, one.turn(), Input::Page(probe), &mut store, &mut Vec::new());
    assert_eq!(store.get(&key("two", "gin")).doubt(), Some(Doubt::WentBack), "the other is in doubt as well");
    // The second looks when the server has come further than it ever was.
    let relists = store.take_relists();
    assert!(relists.contains(two.id()), "{relists:?}");
    two.feed(later, two.turn(), Input::Tick, &mut store, &mut Vec::new());
    list(&mut two, &mut store, 90, None);
    assert_eq!(store.get(&key("two", "ale")).doubt(), Some(Doubt::OlderThanKnown), "lost, and not deleted");
    assert!(store.get(&key("two", "gin")).absent().is_some(), "what was never there is not in doubt");
    // That is told once, and not back and forth.
    list(&mut one, &mut store, 91, Some("one"));
    assert!(store.take_relists().is_empty());
}

#[test]
fn a_view_without_an_address_hears_when_its_server_went_back() {
    let (mut store, [mut one, _]) = neighbours();
    let mut out = Vec::new();
    let two = PlaceId::new("two");
    store.open(&two, Nature::Whole(ClusterId::new("two")), [], &mut out);
    let now = Now { mono: Moment(1_000_000), wall_seconds: 1_000 };
    let expired = Fault::new(FaultKind::Expired, "410");
    one.feed(now, one.turn(), Input::Fault(&expired), &mut store, &mut out);
    list(&mut one, &mut store, 30, Some("one"));
    store.open(&two, Nature::Whole(ClusterId::new("two")), [endpoint(0)], &mut out);
    let id = FeedId { place: two, ..feed_id(Asked::Maps, 0) };
    let mut follower =
        Follower::new(id, definition(Filter::All), Settings::default(), 1, &mut store, &mut out).unwrap();
    list(&mut follower, &mut store, 90, None);
    assert_eq!(store.get(&key("two", "ale")).doubt(), Some(Doubt::OlderThanKnown), "lost, and not deleted");
}

#[test]
fn what_a_mark_remembers_while_a_place_has_no_endpoint_is_missed_by_the_next_list() {
    let (mut store, _) = neighbours();
    let mut out = Vec::new();
    let two = PlaceId::new("two");
    store.open(&two, Nature::Whole(ClusterId::new("two")), [], &mut out);
    store.remember(&key("two", "gin"), Version(10), &mut out);
    store.open(&two, Nature::Whole(ClusterId::new("two")), [endpoint(0)], &mut out);
    let id = FeedId { place: two, ..feed_id(Asked::Maps, 0) };
    let mut follower =
        Follower::new(id, definition(Filter::All), Settings::default(), 1, &mut store, &mut out).unwrap();
    list(&mut follower, &mut store, 90, None);
    assert!(store.get(&key("two", "gin")).absent().is_some(), "{:?}", store.get(&key("two", "gin")));
}
