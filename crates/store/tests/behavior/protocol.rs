//! Lists, pages, watches, bookmarks, expiry: the follower's side of the protocol.

use std::sync::Arc;
use std::time::Duration;

use mailboat_object::json::Raw;
use mailboat_object::key::Name;
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{
    Change, Definition, Doubt, Fetch, Filter, Gone, Input, Keep, News, ProbeWhen, Seen, Settings,
};

use crate::rig::{Known, Mode, Rig, definition, lost};
use crate::server::{bookmark, error_line, expired_line, key};

fn stocked() -> Rig {
    let mut rig = Rig::new(Mode::Whole);
    for name in ["ale", "beer", "cider"] {
        rig.servers[0].put("one", name, 1, false);
    }
    rig
}

fn next(rig: &mut Rig) -> Fetch {
    rig.wires[0].follower.next(rig.now)
}

#[test]
fn a_list_is_read_page_by_page_and_then_watched() {
    let mut rig = stocked();
    let Fetch::List { limit: 2, continue_token: None, .. } = next(&mut rig) else { panic!("no first page") };
    rig.step(0);
    let Fetch::List { continue_token: Some(token), .. } = next(&mut rig) else { panic!("no second page") };
    assert_eq!(token, "13:2");
    rig.step(0);
    let Fetch::Watch { from, timeout_seconds, .. } = next(&mut rig) else { panic!("no watch") };
    assert_eq!(from.0, 13);
    assert!((240..=300).contains(&timeout_seconds), "{timeout_seconds}");
    assert_eq!(next(&mut rig), next(&mut rig), "the same until something happens");
    assert_eq!(Settings::default().page_limit, (500, 2500));
}

#[test]
fn an_expired_continue_token_restarts_the_list() {
    let mut rig = stocked();
    rig.step(0);
    rig.servers[0].delete("one", "ale");
    rig.servers[0].compact();
    rig.step(0);
    assert!(matches!(next(&mut rig), Fetch::List { continue_token: None, .. }));
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::NotListed));
    rig.quiet();
    assert_eq!(
        rig.seen(&key("one", "ale")),
        Known::Absent(Gone::NotInList),
        "it was on a page of the first try"
    );
    assert_eq!(rig.seen(&key("one", "cider")), Known::Present(13));
}

#[test]
fn pages_of_two_versions_are_no_list() {
    let mut rig = stocked();
    rig.step(0);
    next(&mut rig);
    rig.feed(0, Input::Page(br#"{"kind":"L","metadata":{"resourceVersion":"14"},"items":[]}"#));
    assert!(matches!(next(&mut rig), Fetch::List { continue_token: None, .. }));
    assert_eq!(rig.seen(&key("one", "cider")), Known::Unknown(Doubt::NotListed));
}

#[test]
fn a_page_that_failed_is_asked_for_again() {
    let mut rig = stocked();
    rig.step(0);
    rig.cut(0);
    assert!(matches!(next(&mut rig), Fetch::WaitUntil(_)));
    rig.wait(Duration::from_mins(1));
    assert!(matches!(next(&mut rig), Fetch::List { continue_token: Some(_), .. }));
}

#[test]
fn pages_that_are_too_large_are_asked_for_in_smaller_ones() {
    let mut rig = stocked();
    rig.feed(0, Input::Fault(&Fault::new(FaultKind::TooLarge, "more than 64 MiB")));
    assert!(matches!(next(&mut rig), Fetch::List { limit: 1, .. }));
    rig.feed(0, Input::Fault(&Fault::new(FaultKind::TooLarge, "more than 64 MiB")));
    assert!(matches!(next(&mut rig), Fetch::WaitUntil(_)), "not for ever");
    rig.quiet();
    assert_eq!(rig.present().len(), 3);
}

#[test]
fn pages_grow_until_they_are_large_enough_and_the_page_ahead_is_the_one_asked_for() {
    let page = |bytes: usize| {
        let head = r#"{"metadata":{"resourceVersion":"13","continue":"on"},"items":[]"#;
        format!("{head:<width$}}}", width = bytes - 1).into_bytes()
    };
    let settings = Settings { page_limit: (2, 12), page_bytes: 1000, ..Settings::default() };
    let mut rig = Rig::with(Mode::Whole, &settings);
    for (bytes, expected) in [(500, 4), (500, 8), (500, 12), (4000, 3), (40_000, 1)] {
        let page = page(bytes);
        let ahead = rig.wires[0].follower.after(&page);
        rig.feed(0, Input::Page(&page));
        let next = next(&mut rig);
        assert!(matches!(next, Fetch::List { limit, .. } if limit == expected), "{bytes}: {next:?}");
        assert_eq!(ahead, Some(next), "{bytes}");
    }
    rig.feed(0, Input::Page(&page(100)));
    rig.feed(0, Input::Fault(&Fault::new(FaultKind::TooLarge, "more than 64 MiB")));
    rig.feed(0, Input::Page(&page(100)));
    let next = next(&mut rig);
    assert!(matches!(next, Fetch::List { limit: 5, .. }), "what was too large is not tried again: {next:?}");
}

#[test]
fn a_bookmark_moves_the_version_that_a_watch_resumes_from() {
    let mut rig = stocked();
    rig.quiet();
    rig.servers[0].other_writes(20);
    rig.feed(0, Input::Line(&bookmark(33)));
    rig.wait(Duration::from_secs(250));
    rig.feed(0, Input::Ended);
    assert!(matches!(next(&mut rig), Fetch::Probe { .. }));
    rig.step(0);
    let Fetch::Watch { from, .. } = next(&mut rig) else { panic!("no watch") };
    assert_eq!(from.0, 33);
    assert_eq!(rig.seen(&key("one", "tea")), Known::Absent(Gone::NotInList), "a regular end is no loss");
}

#[test]
fn an_expired_version_relists_and_only_the_difference_is_told() {
    for case in
        ["in the stream", "as a status", "from the future, in the stream", "from the future, as a status"]
    {
        let mut rig = stocked();
        rig.quiet();
        let too_large = "Too large resource version: 99, current: 13";
        match case {
            "in the stream" => rig.feed(0, Input::Line(&expired_line())),
            "as a status" => rig.feed(0, Input::Fault(&Fault::new(FaultKind::Expired, "too old"))),
            "from the future, in the stream" => {
                rig.feed(0, Input::Line(&error_line(504, "Timeout", too_large)));
            }
            _ => rig.feed(0, Input::Fault(&Fault::new(FaultKind::Retry(None), too_large))),
        }
        assert!(matches!(next(&mut rig), Fetch::List { continue_token: None, .. }), "{case}");
        assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::Relisting), "{case}");
        assert_eq!(rig.seen(&key("one", "ale")), Known::Present(11), "{case}");
        rig.servers[0].put("one", "beer", 2, false);
        let heard = rig.news.len();
        rig.quiet();
        assert_eq!(
            rig.changes_since(heard),
            [("beer".to_owned(), Some(12), Known::Present(14), true)],
            "{case}"
        );
    }
}

#[test]
fn a_server_that_expires_everything_is_not_listed_in_a_tight_loop() {
    let mut rig = stocked();
    rig.quiet();
    rig.feed(0, Input::Line(&expired_line()));
    assert!(matches!(next(&mut rig), Fetch::List { .. }), "at once");
    rig.step(0);
    rig.step(0);
    rig.step(0);
    rig.feed(0, Input::Line(&expired_line()));
    assert!(matches!(next(&mut rig), Fetch::WaitUntil(_)), "but not at once again");
}

#[test]
fn any_other_error_in_the_stream_resumes_the_watch_after_a_wait() {
    let mut rig = stocked();
    rig.quiet();
    rig.feed(0, Input::Line(&error_line(500, "InternalError", "etcd is not well")));
    assert!(matches!(next(&mut rig), Fetch::WaitUntil(_)));
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::Lost));
    rig.wait(Duration::from_mins(1));
    assert!(matches!(next(&mut rig), Fetch::Probe { .. }));
    rig.step(0);
    assert!(matches!(next(&mut rig), Fetch::Watch { .. }), "not listed anew");
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::Lost), "not open yet");
    rig.step(0);
    assert_eq!(rig.seen(&key("one", "tea")), Known::Absent(Gone::NotInList));
}

#[test]
fn duplicate_and_late_events_are_ignored() {
    let mut rig = stocked();
    rig.quiet();
    let line = |rig: &mut Rig| {
        rig.step(0);
        rig.wires[0].last_line.clone().unwrap()
    };
    rig.servers[0].put("one", "ale", 2, false);
    let modified = line(&mut rig);
    rig.servers[0].delete("one", "ale");
    let deleted = line(&mut rig);
    rig.servers[0].put("one", "ale", 3, false);
    let added = line(&mut rig);
    let heard = rig.news.len();
    for late in [&modified, &deleted, &added, &modified] {
        rig.feed(0, Input::Line(late));
        assert_eq!(rig.seen(&key("one", "ale")), Known::Present(16));
    }
    rig.servers[0].delete("one", "ale");
    rig.quiet();
    for late in [&modified, &deleted, &added] {
        rig.feed(0, Input::Line(late));
    }
    let absent = Known::Absent(Gone::Deleted);
    assert_eq!(rig.changes_since(heard), [("ale".to_owned(), Some(16), absent, true)]);
    assert_eq!(rig.seen(&key("one", "ale")), absent);
}

#[test]
fn a_watch_that_outlives_its_time_in_silence_is_ended() {
    let mut rig = stocked();
    rig.quiet();
    let deadline = rig.wires[0].follower.deadline().unwrap();
    let Fetch::Watch { timeout_seconds, .. } = next(&mut rig) else { panic!("no watch") };
    let margin = Settings::default().watch_margin;
    assert_eq!(deadline - rig.now.mono, Duration::from_secs(u64::from(timeout_seconds)) + margin);
    rig.feed(0, Input::Tick);
    assert!(matches!(next(&mut rig), Fetch::Watch { .. }), "not before its time");
    rig.now.mono = deadline;
    rig.feed(0, Input::Tick);
    assert!(matches!(next(&mut rig), Fetch::WaitUntil(_)));
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::Lost));
}

#[test]
fn a_list_that_never_answers_is_given_up_and_tried_again() {
    let mut rig = stocked();
    next(&mut rig);
    rig.now.mono = rig.wires[0].follower.deadline().unwrap();
    rig.feed(0, Input::Tick);
    assert!(matches!(next(&mut rig), Fetch::WaitUntil(_)));
    rig.quiet();
    assert_eq!(rig.present().len(), 3);
}

#[test]
fn a_watch_that_always_ends_at_once_is_not_opened_in_a_tight_loop() {
    let mut rig = stocked();
    rig.quiet();
    rig.servers[0].other_writes(0);
    rig.wait(Duration::from_millis(200));
    rig.feed(0, Input::Ended);
    assert!(matches!(next(&mut rig), Fetch::Probe { .. }), "it had said something");
    rig.step(0);
    rig.step(0);
    rig.wait(Duration::from_millis(200));
    rig.feed(0, Input::Ended);
    assert!(matches!(next(&mut rig), Fetch::WaitUntil(_)), "it had said nothing");
    assert_eq!(rig.seen(&key("one", "tea")), Known::Absent(Gone::NotInList), "it ended politely");
}

#[test]
fn a_watch_on_a_new_connection_waits_for_a_probe() {
    let settings = Settings { probe: ProbeWhen::NewConnection, ..Settings::default() };
    let mut rig = Rig::with(Mode::Whole, &settings);
    rig.quiet();
    rig.wait(Duration::from_secs(250));
    rig.feed(0, Input::Ended);
    assert!(matches!(next(&mut rig), Fetch::Watch { .. }), "on the same connection: no probe");
    rig.feed(0, Input::Opened { new_connection: true });
    assert!(matches!(next(&mut rig), Fetch::Probe { .. }));
    rig.step(0);
    assert!(matches!(next(&mut rig), Fetch::Watch { .. }));
    rig.feed(0, Input::Fault(&lost()));
    rig.wait(Duration::from_mins(1));
    assert!(matches!(next(&mut rig), Fetch::Probe { .. }), "after a fault always");
}

#[test]
fn a_credential_that_is_no_longer_accepted_hides_nothing_that_was_seen() {
    let mut rig = stocked();
    rig.quiet();
    rig.feed(0, Input::Fault(&Fault::new(FaultKind::Unauthorized, "401")));
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(11));
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::Unauthorized));
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "tea")), Known::Absent(Gone::NotInList));
}

#[test]
fn a_stopped_follower_asks_for_nothing() {
    let mut rig = stocked();
    rig.wires[0].follower.stop();
    assert_eq!(next(&mut rig), Fetch::Stopped);
    assert_eq!(rig.wires[0].follower.deadline(), None);
    rig.feed(0, Input::Page(b"{}"));
    assert_eq!(next(&mut rig), Fetch::Stopped);
}

#[test]
fn an_event_hands_out_the_whole_object_and_the_store_keeps_what_was_asked_for() {
    for keep in [Keep::Head, Keep::HeadAndStatus, Keep::Whole] {
        let mut rig = Rig::new(Mode::Whole);
        let mut out = Vec::new();
        let kept = Definition { keep, ..definition(Filter::All) };
        rig.wires[0].follower.redefine(kept, &mut rig.store, &mut out).unwrap();
        rig.hear(out);
        rig.servers[0].put("one", "ale", 1, false);
        rig.quiet();
        rig.servers[0].put("one", "ale", 2, false);
        rig.quiet();
        let changes: Vec<&Change> = rig
            .news
            .iter()
            .filter_map(|news| match news {
                News::Object(change) => Some(change),
                News::Scope { .. } | News::CaughtUp { .. } | News::Stalled { .. } => None,
            })
            .collect();
        assert_eq!(changes.len(), 2, "listed, then changed: {changes:?}");
        for (change, value) in changes.iter().zip(["1", "2"]) {
            let Seen::Present(now) = &change.now else { panic!("{change:?}") };
            assert!(now.is_whole(), "{keep:?}: {now:?}");
            assert_eq!(now.get(&["data", "value"]).and_then(Raw::as_str).as_deref(), Some(value), "{keep:?}");
        }
        let before = changes[1].before.as_ref().unwrap();
        let held = rig.store.get(&key("one", "ale")).present().unwrap();
        for object in [before, held] {
            assert_eq!(object.is_whole(), keep == Keep::Whole, "{keep:?}: {object:?}");
            assert_eq!(object.get(&["data"]).is_some(), keep == Keep::Whole, "{keep:?}");
        }
        let Seen::Present(now) = &changes[1].now else { panic!() };
        assert_eq!((held.content, &held.hands), (now.content, &now.hands), "the same object, less of it");
        assert_eq!(Arc::ptr_eq(held, now), keep == Keep::Whole, "nothing is copied to be kept whole");
    }
}

#[test]
fn a_passing_429_is_waited_for_as_long_as_the_server_asks() {
    let mut rig = Rig::new(Mode::Whole);
    rig.wires[0].follower.next(rig.now);
    rig.feed(0, Input::Fault(&Fault::new(FaultKind::Retry(Some(Duration::from_secs(11))), "no")));
    let Fetch::WaitUntil(until) = rig.wires[0].follower.next(rig.now) else { panic!("no wait") };
    assert_eq!(until - rig.now.mono, Duration::from_secs(11));
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::NotListed));
    assert_eq!(rig.wires[0].follower.deadline(), Some(until));
    let turn = rig.wires[0].follower.turn();
    rig.feed(0, Input::Tick);
    assert_eq!(rig.wires[0].follower.turn(), turn, "not before its time");
    rig.wait(Duration::from_secs(11));
    rig.feed(0, Input::Tick);
    assert_ne!(rig.wires[0].follower.turn(), turn, "a tick ends the wait");
    assert!(matches!(rig.wires[0].follower.next(rig.now), Fetch::List { .. }));
}

#[test]
fn a_namespace_is_asked_for_by_path_and_never_by_field_selector() {
    let mut rig = Rig::new(Mode::Whole);
    let mut out = Vec::new();
    let filter = Filter::Namespace(Name::new("till"));
    rig.wires[0].follower.redefine(definition(filter), &mut rig.store, &mut out).unwrap();
    rig.hear(out);
    let Fetch::List { selection, .. } = rig.wires[0].follower.next(rig.now) else { panic!("no list") };
    assert_eq!((selection.namespace, selection.labels), (Some(Name::new("till")), None));
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Absent(Gone::NotInList));
    let elsewhere = mailboat_object::key::Key { namespace: Name::new("cellar"), ..key("one", "ale") };
    assert_eq!(rig.seen(&elsewhere), Known::Unknown(Doubt::Filtered));
}
