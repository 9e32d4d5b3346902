//! The hazards that bit systems of this kind, as far as they begin with what is known.

use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{Doubt, Fetch, Gone, Input};

use crate::rig::{Known, Mode, Rig, lost};
use crate::server::{key, line};

const ALE: &str = "ale";

fn stocked() -> Rig {
    let mut rig = Rig::new(Mode::Whole);
    for name in [ALE, "beer", "cider", "gin", "rum"] {
        rig.servers[0].put("one", name, 1, false);
    }
    rig
}

#[test]
fn h02_before_the_first_list_is_complete_nothing_is_absent() {
    let mut rig = stocked();
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::NotListed));
    rig.step(0);
    rig.step(0);
    assert_eq!(rig.seen(&key("one", ALE)), Known::Present(11));
    assert_eq!(rig.seen(&key("one", "rum")), Known::Unknown(Doubt::NotListed), "rum is on the last page");
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::NotListed));
    rig.step(0);
    assert_eq!(rig.seen(&key("one", "rum")), Known::Present(15));
    assert_eq!(rig.seen(&key("one", "tea")), Known::Absent(Gone::NotInList));
    assert!(rig.changes_since(0).iter().all(|(.., live)| !live), "{:?}", rig.changes_since(0));
    rig.servers[0].put("one", "tea", 1, false);
    rig.quiet();
    assert_eq!(rig.changes_since(0).last(), Some(&("tea".to_owned(), None, Known::Present(16), true)));
}

#[test]
fn h03_a_lost_link_deletes_nothing() {
    let mut rig = stocked();
    rig.quiet();
    let heard = rig.news.len();
    rig.cut(0);
    assert_eq!(rig.seen(&key("one", ALE)), Known::Present(11));
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::Lost));
    assert_eq!(rig.scopes_since(heard), [(None, Err(Doubt::Lost))]);
    assert_eq!(rig.changes_since(heard), [], "one line for all, none for each");
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "tea")), Known::Absent(Gone::NotInList));
    assert_eq!(rig.scopes_since(heard), [(None, Err(Doubt::Lost)), (None, Ok(()))]);
    assert_eq!(rig.changes_since(heard), []);
}

#[test]
fn h05_a_failed_list_is_not_an_empty_list() {
    let failures: [(&str, &[u8]); 6] = [
        ("nothing", b""),
        ("a page of a proxy", b"<html>502 Bad Gateway</html>"),
        (
            "a Status with 200",
            br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":500}"#,
        ),
        ("no items", br#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"99"}}"#),
        ("no version", br#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]}"#),
        (
            "half a page",
            br#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"99"},"items":["#,
        ),
    ];
    for (what, body) in failures {
        let mut rig = stocked();
        rig.quiet();
        let before = rig.present();
        // Expired: it is listed anew.
        rig.feed(0, Input::Fault(&Fault::new(FaultKind::Expired, "too old")));
        assert!(matches!(rig.wires[0].follower.next(rig.now), Fetch::List { .. }), "{what}");
        rig.feed(0, Input::Page(body));
        assert_eq!(rig.present(), before, "{what}");
        assert!(
            matches!(rig.seen(&key("one", "tea")), Known::Unknown(_)),
            "{what}: {:?}",
            rig.seen(&key("one", "tea"))
        );
        rig.quiet();
        assert_eq!(rig.seen(&key("one", "tea")), Known::Absent(Gone::NotInList), "{what}");
    }
    for kind in
        [FaultKind::Retry(None), FaultKind::Away, FaultKind::Unauthorized, FaultKind::Invalid, FaultKind::Bug]
    {
        let mut rig = stocked();
        rig.feed(0, Input::Fault(&Fault::new(kind, "no")));
        assert!(matches!(rig.seen(&key("one", ALE)), Known::Unknown(_)), "{kind:?}");
        rig.quiet();
        assert_eq!(rig.seen(&key("one", ALE)), Known::Present(11), "{kind:?}");
    }
}

#[test]
fn h05_a_list_that_breaks_off_concludes_nothing() {
    let mut rig = stocked();
    rig.quiet();
    for name in [ALE, "beer", "cider", "gin", "rum"] {
        rig.servers[0].delete("one", name);
    }
    rig.servers[0].put("one", "tea", 1, false);
    rig.servers[0].put("one", "milk", 1, false);
    rig.servers[0].put("one", "water", 1, false);
    rig.servers[0].compact();
    rig.feed(0, Input::Fault(&Fault::new(FaultKind::Expired, "too old")));
    rig.step(0); // the first page of two
    rig.cut(0);
    assert_eq!(rig.seen(&key("one", ALE)), Known::Present(11), "still as last seen");
    rig.quiet();
    assert_eq!(rig.seen(&key("one", ALE)), Known::Absent(Gone::NotInList));
}

#[test]
fn h36_the_late_end_of_an_old_watch_is_not_the_end_of_the_present_one() {
    let mut rig = stocked();
    rig.quiet();
    let old = rig.wires[0].follower.turn();
    rig.cut(0);
    rig.quiet();
    let (mut out, turn) = (Vec::new(), rig.wires[0].follower.turn());
    assert_ne!(old, turn);
    rig.wires[0].follower.feed(rig.now, old, Input::Fault(&lost()), &mut rig.store, &mut out);
    rig.wires[0].follower.feed(rig.now, old, Input::Ended, &mut rig.store, &mut out);
    assert_eq!(rig.wires[0].follower.turn(), turn);
    assert!(out.is_empty(), "{out:?}");
}

#[test]
fn h37_what_was_deleted_while_the_link_was_down_is_seen_afterwards() {
    for compacted in [false, true] {
        let mut rig = stocked();
        rig.quiet();
        rig.cut(0);
        rig.servers[0].delete("one", ALE);
        rig.servers[0].put("one", "beer", 2, false);
        if compacted {
            rig.servers[0].compact();
            rig.servers[0].other_writes(1);
        }
        let heard = rig.news.len();
        rig.quiet();
        let how = if compacted { Gone::NotInList } else { Gone::Deleted };
        let mut changes = rig.changes_since(heard);
        changes.sort_by(|one, other| one.0.cmp(&other.0));
        let expected = [
            (ALE.to_owned(), Some(11), Known::Absent(how), true),
            ("beer".to_owned(), Some(12), Known::Present(17), true),
        ];
        assert_eq!(changes, expected, "compacted: {compacted}; only the difference is told");
    }
}

#[test]
fn h09_an_object_made_again_under_its_name_is_another_object() {
    let mut rig = stocked();
    rig.quiet();
    rig.cut(0);
    rig.servers[0].delete("one", ALE);
    rig.servers[0].put("one", ALE, 1, false);
    rig.servers[0].compact();
    rig.servers[0].other_writes(1);
    let heard = rig.news.len();
    rig.quiet();
    assert_eq!(rig.changes_since(heard), [(ALE.to_owned(), Some(11), Known::Present(17), true)]);
}

#[test]
fn one_object_that_cannot_be_read_harms_only_itself() {
    let mut rig = stocked();
    rig.quiet();
    let garbled = |version: &str| {
        serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": 7,
            "metadata": { "name": ALE, "namespace": "till", "uid": "u", "resourceVersion": version, "labels": [] },
        })
    };
    let turn = rig.wires[0].follower.turn();
    rig.feed(0, Input::Line(&line("MODIFIED", &garbled("x"))));
    assert_eq!(rig.seen(&key("one", ALE)), Known::Unknown(Doubt::Malformed));
    assert_eq!(rig.seen(&key("one", "beer")), Known::Present(12));
    assert_eq!(rig.seen(&key("one", "tea")), Known::Absent(Gone::NotInList));
    assert_eq!(rig.wires[0].follower.turn(), turn, "the watch goes on");
    rig.servers[0].put("one", ALE, 3, false);
    let heard = rig.news.len();
    rig.quiet();
    assert_eq!(rig.changes_since(heard), [(ALE.to_owned(), Some(11), Known::Present(16), true)]);

    // Its deletion cannot be read: only a list can tell.
    rig.servers[0].delete("one", ALE);
    rig.servers[0].compact();
    rig.feed(0, Input::Line(&line("DELETED", &garbled("x"))));
    assert_eq!(rig.seen(&key("one", ALE)), Known::Unknown(Doubt::Malformed));
    rig.quiet();
    assert_eq!(rig.seen(&key("one", ALE)), Known::Absent(Gone::NotInList));
}

#[test]
fn something_that_cannot_even_be_named_leaves_absence_open() {
    let mut rig = stocked();
    rig.quiet();
    rig.feed(0, Input::Line(b"not JSON"));
    assert_eq!(rig.seen(&key("one", ALE)), Known::Present(11));
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::Unreadable));
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "tea")), Known::Absent(Gone::NotInList));

    rig.feed(0, Input::Fault(&Fault::new(FaultKind::Expired, "too old")));
    let page = br#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"15"},"items":[{"metadata":7}]}"#;
    rig.wires[0].follower.next(rig.now);
    rig.feed(0, Input::Page(page));
    assert_eq!(
        rig.seen(&key("one", ALE)),
        Known::Unknown(Doubt::Unreadable),
        "it may be the one without a name"
    );
    assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::Unreadable));
}
