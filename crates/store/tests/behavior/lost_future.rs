//! A server that went back in time, told by what is remembered of it.

use std::time::Duration;

use mailboat_object::key::{ClusterId, Version};
use mailboat_store::{Doubt, Fetch, Filter, Follower, Gone, Input, Moment, Nature, Now, Settings, Store};

use crate::rig::{Known, Mode, Rig, definition, endpoint, feed_id, place};
use crate::server::{Asked, key};

#[test]
fn a_deletion_of_a_lost_future_proves_nothing() {
    let mut rig = Rig::new(Mode::Whole);
    rig.servers[0].put("one", "ale", 1, false);
    rig.quiet();
    rig.servers[0].delete("one", "ale");
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Absent(Gone::Deleted));
    rig.servers[0].restore(11);
    rig.cut(0);
    rig.wait(Duration::from_mins(1));
    rig.step(0); // the probe shows 11
    rig.servers[0].other_writes(2);
    rig.servers[0].delete("one", "ale"); // at 14, and not at 12 as in the time that was lost
    rig.quiet();
    let absence = rig.store.get(&key("one", "ale")).absent().unwrap();
    assert_eq!((absence.how(), absence.version()), (Gone::NotInList, Version(14)));
}

#[test]
fn a_watch_from_the_future_is_never_opened() {
    let mut rig = Rig::new(Mode::Whole);
    rig.servers[0].put("one", "ale", 1, false);
    rig.servers[0].put("one", "beer", 1, false);
    rig.servers[0].put("one", "ale", 2, false);
    rig.servers[0].put("one", "cider", 1, false);
    rig.servers[0].put("one", "tea", 1, false);
    rig.servers[0].delete("one", "tea");
    rig.quiet();
    rig.servers[0].restore(12); // ale at 11, beer at 12
    rig.cut(0);
    rig.wait(Duration::from_mins(1));
    assert!(matches!(rig.wires[0].follower.next(rig.now), Fetch::Probe { .. }));
    rig.step(0);
    assert!(
        matches!(rig.wires[0].follower.next(rig.now), Fetch::List { .. }),
        "the probe showed an older version"
    );
    let heard = rig.news.len();
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "beer")), Known::Present(12), "as it was known");
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::OlderThanKnown), "shown, but older");
    assert_eq!(rig.seen(&key("one", "cider")), Known::Unknown(Doubt::OlderThanKnown), "known, but missing");
    assert_eq!(rig.seen(&key("one", "gin")), Known::Unknown(Doubt::WentBack), "never known");
    let told: Vec<String> = rig.changes_since(heard).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(told, ["ale", "cider"]);

    // Seen again at a version not below the known one; and what was never known, once the server has come as far.
    rig.servers[0].other_writes(10);
    rig.servers[0].put("one", "ale", 3, false);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(23));
    assert_eq!(rig.seen(&key("one", "gin")), Known::Absent(Gone::NotInList));
    assert_eq!(rig.seen(&key("one", "cider")), Known::Unknown(Doubt::OlderThanKnown));
    rig.servers[0].compact();
    rig.servers[0].other_writes(1);
    rig.cut(0);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "cider")), Known::Unknown(Doubt::OlderThanKnown), "no list ends this");

    let (mut out, heard) = (Vec::new(), rig.news.len());
    assert!(rig.store.confirm(&key("one", "cider"), &mut out));
    assert!(!rig.store.confirm(&key("one", "cider"), &mut out), "once is enough");
    rig.hear(out);
    assert_eq!(rig.seen(&key("one", "cider")), Known::Absent(Gone::NotInList));
    let absent = Known::Absent(Gone::NotInList);
    assert_eq!(rig.changes_since(heard), [("cider".to_owned(), Some(14), absent, true)]);
}

#[test]
fn one_object_of_a_lost_future_can_be_confirmed_before_the_server_has_come_as_far() {
    let mut rig = Rig::new(Mode::Whole);
    rig.servers[0].put("one", "ale", 1, false);
    rig.servers[0].put("one", "ale", 2, false);
    rig.servers[0].put("one", "beer", 1, false);
    rig.quiet();
    rig.servers[0].restore(11);
    rig.cut(0);
    rig.quiet();
    let mut out = Vec::new();
    assert!(rig.store.confirm(&key("one", "ale"), &mut out));
    assert!(rig.store.confirm(&key("one", "beer"), &mut out));
    rig.hear(out);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(11), "what the server shows is believed");
    assert_eq!(rig.seen(&key("one", "beer")), Known::Absent(Gone::NotInList));
    assert_eq!(rig.seen(&key("one", "gin")), Known::Unknown(Doubt::WentBack), "nobody confirmed this one");
    rig.servers[0].put("one", "beer", 5, false);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "beer")), Known::Present(12));
}

#[test]
fn what_a_mark_remembers_is_not_believed_at_an_older_version() {
    let mut rig = Rig::new(Mode::Whole);
    rig.servers[0].put("one", "ale", 1, false);
    rig.servers[0].put("one", "beer", 1, false);
    let mut out = Vec::new();
    rig.store.remember(&key("one", "ale"), Version(90), &mut out);
    rig.store.remember(&key("one", "beer"), Version(12), &mut out);
    rig.store.remember(&key("one", "cider"), Version(90), &mut out);
    rig.store.remember(&key("one", "gin"), Version(5), &mut out);
    rig.hear(out);
    assert_eq!(rig.seen(&key("one", "gin")), Known::Unknown(Doubt::NotListed));
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::OlderThanKnown));
    assert_eq!(rig.seen(&key("one", "beer")), Known::Present(12));
    assert_eq!(rig.seen(&key("one", "cider")), Known::Unknown(Doubt::OlderThanKnown));
    assert_eq!(rig.seen(&key("one", "gin")), Known::Absent(Gone::NotInList), "deleted while we were away");
}

#[test]
fn what_a_mark_remembers_is_missed_at_that_very_version_by_a_server_that_went_back() {
    let mut rig = Rig::new(Mode::Whole);
    rig.servers[0].put("one", "ale", 1, false);
    rig.quiet();
    let version = rig.servers[0].version;
    let mut out = Vec::new();
    rig.store.remember(&key("one", "cider"), Version(version), &mut out);
    rig.hear(out);
    // It was there at this version, so a state of this version without it is another past.
    assert_eq!(rig.seen(&key("one", "cider")), Known::Unknown(Doubt::OlderThanKnown));
}

#[test]
fn what_a_mark_remembers_while_its_list_is_being_read_is_missed_by_that_list() {
    let mut rig = Rig::new(Mode::Whole);
    for name in ["ale", "beer", "cider"] {
        rig.servers[0].put("one", name, 1, false);
    }
    rig.servers[0].other_writes(5);
    assert!(rig.step(0), "the first of two pages");
    let mut out = Vec::new();
    rig.store.remember(&key("one", "gin"), Version(5), &mut out);
    rig.hear(out);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "gin")), Known::Absent(Gone::NotInList), "deleted while we were away");
}

#[test]
fn what_a_mark_remembers_before_its_kind_is_followed_counts_when_it_is() {
    let (mut store, mut out) = (Store::new(), Vec::new());
    store.remember(&key("one", "gin"), Version(90), &mut out);
    store.open(&place(), Nature::Whole(ClusterId::new("one")), [endpoint(0)], &mut out);
    let (id, settings) = (feed_id(Asked::Maps, 0), Settings::default());
    let mut follower = Follower::new(id, definition(Filter::All), settings, 1, &mut store, &mut out).unwrap();
    let now = Now { mono: Moment(1), wall_seconds: 1 };
    assert!(matches!(follower.next(now), Fetch::List { .. }));
    let empty = br#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"50"},"items":[]}"#;
    follower.feed(now, follower.turn(), Input::Page(empty), &mut store, &mut out);
    assert_eq!(store.get(&key("one", "gin")).doubt(), Some(Doubt::OlderThanKnown));
    assert!(store.get(&key("one", "ale")).absent().is_some());
}
