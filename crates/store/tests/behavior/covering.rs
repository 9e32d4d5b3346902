//! Which place answers for an object, and what a range and a checksum say.

use mailboat_object::key::{ClusterId, Name};
use mailboat_store::{Doubt, EndpointId, FeedId, Filter, Follower, Gone, Input, Nature, PlaceId, Settings};

use crate::rig::{Known, Mode, Rig, definition, place};
use crate::server::{Answer, Asked, configmaps, key, line};

/// What the first server would answer at the workspace itself.
fn page(rig: &Rig) -> Vec<u8> {
    match rig.servers[0].list(Asked::Maps, 100, None) {
        Answer::Page(page) => page,
        Answer::Expired | Answer::Unserved => panic!("no page"),
    }
}

#[test]
fn a_clusters_own_place_answers_before_a_view_and_hands_back_to_it() {
    let mut rig = Rig::new(Mode::View);
    rig.servers[0].bind("one", true);
    rig.servers[0].put("one", "ale", 1, false);
    rig.servers[0].put("one", "beer", 1, false);
    rig.quiet();

    let mut out = Vec::new();
    let own = PlaceId::new("workspace-one");
    let endpoint = EndpointId::new("workspace-one");
    rig.store.open(&own, Nature::Whole(ClusterId::new("one")), [endpoint.clone()], &mut out);
    let id = FeedId { place: own.clone(), endpoint, kind: configmaps() };
    let mut follower =
        Follower::new(id, definition(Filter::All), Settings::default(), 3, &mut rig.store, &mut out).unwrap();
    rig.hear(std::mem::take(&mut out));
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(12), "as last seen");
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::NotListed), "the view no longer answers");
    // What the view says does not count any more.
    rig.servers[0].delete("one", "ale");
    while rig.step(0) {}
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(12));

    follower.next(rig.now);
    let body = page(&rig);
    let turn = follower.turn();
    follower.feed(rig.now, turn, Input::Page(&body), &mut rig.store, &mut out);
    rig.hear(std::mem::take(&mut out));
    assert_eq!(rig.seen(&key("one", "ale")), Known::Absent(Gone::NotInList));
    assert_eq!(rig.seen(&key("one", "beer")), Known::Present(13));
    assert_eq!(rig.store.across(&own, &configmaps()).count(), 1);
    assert_eq!(rig.store.across(&place(), &configmaps()).count(), 0);

    rig.store.unfollow(&own, &configmaps(), &mut out);
    rig.hear(out);
    assert_eq!(rig.seen(&key("one", "beer")), Known::Present(13), "as last seen");
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::NotListed), "the view is listed anew");
    rig.servers[0].delete("one", "beer");
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "beer")), Known::Absent(Gone::NotInList));
}

#[test]
fn what_nobody_follows_is_unknown() {
    let mut rig = Rig::new(Mode::Whole);
    rig.servers[0].put("one", "ale", 1, false);
    rig.quiet();
    assert_eq!(rig.seen(&key("other", "ale")), Known::Unknown(Doubt::NotFollowed));
    let mut out = Vec::new();
    rig.store.unfollow(&place(), &configmaps(), &mut out);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::NotFollowed));
    assert!(rig.store.is_empty());
    rig.store.close(&place(), &mut out);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::NotFollowed));
    rig.hear(out);
}

#[test]
fn a_follower_of_an_endpoint_that_is_not_open_is_refused() {
    let mut rig = Rig::new(Mode::Whole);
    let id = FeedId { place: place(), endpoint: EndpointId::new("elsewhere"), kind: configmaps() };
    let mut out = Vec::new();
    let refused =
        Follower::new(id, definition(Filter::All), Settings::default(), 0, &mut rig.store, &mut out);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "endpoint elsewhere of place harbor is not open in the store"
    );
}

#[test]
fn a_range_is_sorted_and_says_what_is_missing_and_what_is_in_doubt() {
    let mut rig = Rig::new(Mode::Whole);
    let (one, kind, till) = (ClusterId::new("one"), configmaps(), Name::new("till"));
    assert_eq!(rig.store.range(&one, &kind, None).err(), Some(Doubt::NotListed));
    for name in ["rum", "ale", "gin"] {
        rig.servers[0].put("one", name, 1, false);
    }
    rig.quiet();
    let names = |rig: &Rig, namespace: Option<&Name>| {
        let range = rig.store.range(&one, &kind, namespace).unwrap();
        range.map(|object| object.key.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&rig, None), ["ale", "gin", "rum"]);
    assert_eq!(names(&rig, Some(&till)), ["ale", "gin", "rum"]);
    assert_eq!(names(&rig, Some(&Name::new("a"))), [""; 0]);
    assert_eq!(names(&rig, Some(&Name::new("z"))), [""; 0]);
    assert_eq!(rig.store.range(&one, &kind, None).unwrap().missing().map(|version| version.0), Ok(13));
    let garbled = serde_json::json!({
        "metadata": { "name": "gin", "namespace": "till", "resourceVersion": "x" }
    });
    rig.feed(0, Input::Line(&line("MODIFIED", &garbled)));
    assert_eq!(names(&rig, None), ["ale", "rum"]);
    let range = rig.store.range(&one, &kind, Some(&till)).unwrap();
    let doubtful: Vec<_> = range.doubtful().map(|(_, name, doubt)| (name.to_string(), doubt)).collect();
    assert_eq!(doubtful, [("gin".to_owned(), Doubt::Malformed)]);
    rig.cut(0);
    assert_eq!(names(&rig, None), ["ale", "rum"], "as last seen");
    assert_eq!(rig.store.range(&one, &kind, None).unwrap().missing(), Err(Doubt::Lost));
}

#[test]
fn equal_stores_have_equal_checksums() {
    let stocked = || {
        let mut rig = Rig::new(Mode::Whole);
        rig.servers[0].put("one", "ale", 1, false);
        rig.servers[0].put("one", "beer", 1, false);
        rig
    };
    let (mut listed, mut watched) = (stocked(), Rig::new(Mode::Whole));
    let empty = watched.store.checksum(&place(), &configmaps());
    assert!(empty.is_none());
    listed.quiet();
    watched.quiet();
    watched.servers[0] = listed.servers[0].clone();
    watched.quiet();
    let checksum = |rig: &Rig| rig.store.checksum(&place(), &configmaps());
    assert_eq!(checksum(&listed), checksum(&watched), "one listed, the other watched");
    listed.servers[0].put("one", "beer", 2, false);
    listed.quiet();
    assert_ne!(checksum(&listed), checksum(&watched));
}
