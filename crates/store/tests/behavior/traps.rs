//! The traps of real servers (kcp above all), each as it was seen.

use std::time::Duration;

use mailboat_object::key::ClusterId;
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{Doubt, EndpointId, Fetch, Filter, Gone, Input, Nature};

use crate::rig::{Known, Mode, Rig, definition, endpoint, place};
use crate::server::{Binding, bindings, configmaps, key};

/// Workspaces `one` and `two` on the first shard, `three` on the second, with an object `ale` in each; all
/// bound, and seen to be.
fn harbor() -> Rig {
    stocked(Mode::View)
}

fn stocked(mode: Mode) -> Rig {
    let mut rig = Rig::new(mode);
    for (cluster, shard) in [("one", 0), ("two", 0), ("three", 1)] {
        rig.servers[shard].bind(cluster, true);
        rig.servers[shard].put(cluster, "ale", 1, false);
    }
    rig.quiet();
    rig
}

fn version_of(rig: &Rig, cluster: &str) -> u64 {
    let server = usize::from(cluster == "three");
    rig.servers[server].now()[&(cluster.to_owned(), "ale".to_owned())].version
}

fn refuse(rig: &mut Rig, kind: FaultKind) {
    rig.wires[0].follower.next(rig.now);
    rig.feed(0, Input::Fault(&Fault::new(kind, "no")));
}

#[test]
fn equal_names_in_two_workspaces_are_two_objects() {
    let rig = harbor();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(12));
    assert_eq!(rig.seen(&key("two", "ale")), Known::Present(14));
    assert_eq!(rig.seen(&key("three", "ale")), Known::Present(12));
    assert_eq!(rig.seen(&key("one", "beer")), Known::Absent(Gone::NotInList));
}

#[test]
fn delete_events_of_a_view_that_is_not_seen_to_be_bound_prove_nothing() {
    let mut rig = Rig::new(Mode::View);
    rig.servers[0].bind("one", true);
    rig.servers[0].put("one", "ale", 1, false);
    rig.read(0);
    rig.read(1);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(12));
    rig.servers[0].delete("one", "ale");
    let heard = rig.news.len();
    rig.read(0);
    let unknown = Known::Unknown(Doubt::BindingsBehind);
    assert_eq!(rig.changes_since(heard), [("ale".to_owned(), Some(12), unknown, true)]);
    assert_eq!(rig.seen(&key("one", "ale")), unknown);
}

#[test]
fn a_view_whose_bindings_nobody_follows_proves_nothing() {
    let mut rig = harbor();
    let mut out = Vec::new();
    rig.store.unfollow(&place(), &bindings(), &mut out);
    rig.hear(out);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(12), "as last seen");
    assert_eq!(rig.seen(&key("one", "beer")), Known::Unknown(Doubt::NotEngaged));
    rig.servers[0].delete("one", "ale");
    rig.read(0);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::NotEngaged));
}

#[test]
fn a_workspace_counts_from_the_version_of_its_binding_on() {
    let mut rig = Rig::new(Mode::View);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::NotEngaged));
    rig.servers[0].bind("one", true);
    rig.servers[0].put("one", "ale", 1, false);
    rig.read_bindings(0);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::CatchingUp));
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(12));
    assert_eq!(rig.seen(&key("one", "beer")), Known::Absent(Gone::NotInList));
}

#[test]
fn a_rejected_claim_deletes_nothing_and_an_accepted_one_brings_all_back() {
    let mut rig = stocked(Mode::Claims);
    let heard = rig.news.len();
    rig.servers[0].bind("one", false);
    // The objects' watch is often heard before that of the bindings.
    rig.read(0);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Claimed), "DELETED was sent for it");
    rig.read_bindings(0);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Withdrawn));
    assert_eq!(rig.seen(&key("one", "beer")), Known::Unknown(Doubt::Withdrawn));
    let two = version_of(&rig, "two");
    assert_eq!(rig.seen(&key("two", "ale")), Known::Present(two), "other workspaces are as they were");
    assert_eq!(rig.scopes_since(heard), [(Some("one".to_owned()), Err(Doubt::Withdrawn))]);
    rig.servers[0].compact();
    rig.servers[0].other_writes(1);
    rig.cut(0);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Withdrawn), "lists lack it as well");

    let heard = rig.news.len();
    rig.servers[0].bind("one", true);
    rig.read_bindings(0);
    let unread = Known::Unknown(Doubt::CatchingUp);
    assert_eq!(rig.seen(&key("one", "ale")), unread, "the view has not shown it yet");
    rig.quiet();
    let version = version_of(&rig, "one");
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(version));
    assert_eq!(rig.seen(&key("one", "beer")), Known::Unknown(Doubt::Claimed));
    let changes = rig.changes_since(heard);
    assert_eq!(changes.last(), Some(&("ale".to_owned(), None, Known::Present(version), true)), "{changes:?}");
}

#[test]
fn what_is_not_shown_through_a_claim_is_never_absent_neither_by_event_nor_by_list() {
    let mut rig = stocked(Mode::Claims);
    rig.servers[0].delete("one", "ale");
    rig.quiet();
    let claimed = Known::Unknown(Doubt::Claimed);
    assert_eq!(rig.seen(&key("one", "ale")), claimed, "by event");
    rig.servers[0].compact();
    rig.servers[0].other_writes(1);
    rig.cut(0);
    rig.quiet();
    assert_eq!((rig.seen(&key("one", "ale")), rig.seen(&key("one", "beer"))), (claimed, claimed), "by list");
    let range = rig.store.range(&ClusterId::new("one"), &configmaps(), None).unwrap();
    assert_eq!(range.missing(), Err(Doubt::Claimed), "what is shown is given all the same");
}

#[test]
fn delete_events_of_an_earlier_engagement_prove_nothing_in_the_present_one() {
    let mut rig = harbor();
    // Unbound and bound again, both heard of, before the watch brings what that did to the objects.
    rig.servers[0].bind("one", false);
    rig.servers[0].bind("one", true);
    rig.read_bindings(0);
    rig.step(0);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::CatchingUp), "DELETED was sent for it");
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Absent(Gone::NotInList));
}

#[test]
fn an_empty_list_under_another_identity_is_no_absence_though_the_bindings_are_heard_later() {
    let mut rig = harbor();
    for server in 0..2 {
        rig.servers[server].replace_identity();
    }
    // Not served, for a while; then, with the first binding that names it, empty.
    for wire in 0..4 {
        rig.cut(wire);
    }
    rig.wait(Duration::from_mins(1));
    rig.step(0);
    rig.step(1);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Unserved));
    rig.servers[0].follow_identity("one");
    rig.servers[1].follow_identity("three");
    rig.wait(Duration::from_mins(1));
    rig.read(0);
    rig.read(1);
    for cluster in ["one", "two", "three"] {
        let seen = rig.seen(&key(cluster, "ale"));
        assert_eq!(seen, Known::Unknown(Doubt::BindingsBehind), "{cluster}: listed, and empty");
    }
    rig.read_bindings(0);
    rig.read_bindings(1);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::IdentityChanged));
    // The binding of `two` was not brought up to the export yet: it names an identity that is no longer shown.
    assert_eq!(rig.seen(&key("two", "ale")), Known::Unknown(Doubt::BindingsBehind));
    rig.servers[0].follow_identity("two");
    rig.quiet();
    assert_eq!(rig.seen(&key("two", "ale")), Known::Unknown(Doubt::IdentityChanged));
}

#[test]
fn a_binding_that_is_newer_than_what_was_read_does_not_tell_its_identity() {
    let mut rig = Rig::new(Mode::View);
    rig.servers[0].bind("one", true);
    rig.servers[0].put("one", "ale", 1, false);
    rig.read(0);
    let identity = |rig: &Rig| rig.store.identity(&ClusterId::new("one"), &configmaps()).cloned();
    let is_unbound = |rig: &Rig| rig.store.is_unbound(&ClusterId::new("one"), &configmaps());
    assert!(identity(&rig).is_none() && is_unbound(&rig), "no binding was read");
    // Under the identity that the binding names now, there is no ale.
    rig.servers[0].replace_identity();
    rig.servers[0].follow_identity("one");
    rig.cut(0);
    rig.read_bindings(0);
    assert!(matches!(rig.seen(&key("one", "ale")), Known::Present(_)), "as it was read");
    assert!(identity(&rig).is_none() && is_unbound(&rig), "it was not read under this identity");
    rig.quiet();
    assert!(identity(&rig).is_some() && !is_unbound(&rig));
}

#[test]
fn the_binding_that_named_another_identity_may_go_again_and_the_old_one_is_still_not_what_is_shown() {
    let mut rig = harbor();
    for server in 0..2 {
        rig.servers[server].replace_identity();
    }
    for wire in 0..4 {
        rig.cut(wire);
    }
    rig.wait(Duration::from_mins(1));
    rig.step(0);
    rig.step(1);
    rig.servers[0].follow_identity("two");
    rig.servers[1].follow_identity("three");
    rig.wait(Duration::from_mins(1));
    for wire in 0..4 {
        rig.read(wire);
    }
    rig.servers[0].bind("two", false);
    rig.servers[1].bind("three", false);
    rig.wait(Duration::from_mins(1));
    for wire in 0..4 {
        rig.read(wire);
    }
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::BindingsBehind));
}

#[test]
fn bindings_that_are_not_known_take_nothing_away_and_prove_nothing() {
    let mut rig = harbor();
    let (wire, heard) = (rig.bindings_wire(0), rig.news.len());
    rig.cut(wire);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(12));
    assert_eq!(rig.seen(&key("one", "beer")), Known::Unknown(Doubt::BindingsBehind));
    assert_eq!(rig.scopes_since(heard), [(None, Err(Doubt::BindingsBehind))], "one line for all workspaces");
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "beer")), Known::Absent(Gone::NotInList));
}

#[test]
fn a_list_has_the_bindings_read_again_that_are_older_than_it() {
    let mut rig = harbor();
    rig.servers[0].put("one", "cider", 1, false);
    rig.servers[0].compact();
    rig.servers[0].other_writes(1);
    rig.feed(0, Input::Line(&crate::server::expired_line()));
    while matches!(rig.wires[0].follower.next(rig.now), Fetch::List { .. }) {
        rig.step(0);
    }
    assert_eq!(rig.seen(&key("one", "beer")), Known::Unknown(Doubt::BindingsBehind));
    let relists = rig.store.take_relists();
    assert_eq!(relists, [rig.wires[rig.bindings_wire(0)].follower.id().clone()]);
    assert_eq!(rig.store.take_relists(), [], "told once");
    let wire = rig.bindings_wire(0);
    rig.feed(wire, Input::Tick);
    rig.read_bindings(0);
    assert_eq!(rig.seen(&key("one", "beer")), Known::Absent(Gone::NotInList));
}

#[test]
fn what_goes_with_its_binding_is_never_a_single_live_deletion() {
    let mut rig = Rig::new(Mode::Workspace);
    rig.servers[0].write_binding("one", Some(Binding::Bound(0)));
    rig.servers[0].put("one", "ale", 1, false);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "beer")), Known::Absent(Gone::NotInList));
    rig.servers[0].bind("one", false); // kcp deletes all objects of a kind with its binding
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Withdrawn));
    rig.servers[0].write_binding("one", Some(Binding::Bound(0)));
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Absent(Gone::NotInList));
}

#[test]
fn a_claim_says_nothing_of_what_the_workspace_itself_shows() {
    let mut rig = Rig::new(Mode::Workspace);
    rig.servers[0].view = None; // the kind is kcp's own, and there without any binding
    rig.servers[0].put("one", "ale", 1, false);
    for claim in [Some(Binding::Claimed { accepted: true }), Some(Binding::Claimed { accepted: false }), None]
    {
        rig.servers[0].write_binding("one", claim);
        rig.quiet();
        let ale = rig.seen(&key("one", "ale"));
        assert!(matches!(ale, Known::Present(_)), "{claim:?}: {ale:?}");
        assert_eq!(rig.seen(&key("one", "beer")), Known::Absent(Gone::NotInList), "{claim:?}");
    }
}

#[test]
fn a_kind_that_a_crd_serves_after_its_binding_went_is_known_again() {
    let mut rig = Rig::new(Mode::Workspace);
    rig.servers[0].write_binding("one", Some(Binding::Bound(0)));
    rig.quiet();
    rig.servers[0].write_binding("one", None);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Withdrawn));
    let mut out = Vec::new();
    rig.store.unserved(&place(), &configmaps(), &mut out);
    rig.store.served(&place(), &configmaps(), &mut out);
    rig.hear(out);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Absent(Gone::NotInList));
}

#[test]
fn a_deletion_in_a_bound_workspace_is_one() {
    let mut rig = harbor();
    rig.servers[1].delete("three", "ale");
    rig.quiet();
    assert_eq!(rig.seen(&key("three", "ale")), Known::Absent(Gone::Deleted));
    // It concerns one shard; that another is away does not make it less true.
    rig.cut(0);
    assert_eq!(rig.seen(&key("three", "ale")), Known::Absent(Gone::Deleted));
    assert_eq!(rig.seen(&key("three", "beer")), Known::Unknown(Doubt::Lost), "not seen at every endpoint");
    rig.cut(1);
    assert_eq!(rig.seen(&key("three", "ale")), Known::Unknown(Doubt::Lost));
}

#[test]
fn a_deleted_mailbox_answers_empty_lists_and_nothing_is_absent() {
    let mut rig = harbor();
    rig.servers[0].bind("one", false); // its LogicalCluster is being deleted, its bindings with it
    rig.servers[0].compact();
    rig.servers[0].other_writes(1);
    rig.cut(0);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Withdrawn));
    let mut out = Vec::new();
    rig.store.forget(&place(), &ClusterId::new("one"), &mut out);
    rig.hear(out);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::NotEngaged));
    assert_eq!(rig.store.range(&ClusterId::new("one"), &configmaps(), None).unwrap().count(), 0);
}

#[test]
fn a_replaced_identity_makes_all_of_the_kind_unknown_until_it_is_accepted() {
    let mut rig = harbor();
    for server in 0..2 {
        rig.servers[server].replace_identity();
    }
    for (cluster, server) in [("one", 0), ("two", 0), ("three", 1)] {
        rig.servers[server].follow_identity(cluster);
    }
    rig.servers[0].put("one", "cider", 1, false);
    for wire in 0..4 {
        rig.cut(wire);
    }
    rig.servers[0].compact();
    rig.servers[0].other_writes(1);
    rig.quiet();
    for name in ["ale", "beer", "cider"] {
        assert_eq!(rig.seen(&key("one", name)), Known::Unknown(Doubt::IdentityChanged), "{name}");
    }
    let mut out = Vec::new();
    assert!(rig.store.accept_identity(&place(), &ClusterId::new("one"), &configmaps(), &mut out));
    rig.hear(out);
    assert_eq!(rig.seen(&key("one", "beer")), Known::Unknown(Doubt::NotListed), "listed anew first");
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Absent(Gone::NotInList));
    assert!(matches!(rig.seen(&key("one", "cider")), Known::Present(_)));
    assert_eq!(rig.seen(&key("two", "ale")), Known::Unknown(Doubt::IdentityChanged), "accepted for one only");
}

#[test]
fn after_a_schema_swap_the_watch_is_closed_and_all_is_listed_anew_and_once_more() {
    let mut rig = Rig::new(Mode::Whole);
    rig.servers[0].put("one", "ale", 1, false);
    rig.quiet();
    for _ in 0..2 {
        let turn = rig.wires[0].follower.turn();
        let mut out = Vec::new();
        rig.wires[0].follower.redefine(definition(Filter::All), &mut rig.store, &mut out).unwrap();
        rig.hear(out);
        rig.wires[0].open = None;
        assert_ne!(rig.wires[0].follower.turn(), turn, "the open watch is to be dropped");
        assert!(matches!(rig.wires[0].follower.next(rig.now), Fetch::List { continue_token: None, .. }));
        assert_eq!(rig.seen(&key("one", "ale")), Known::Present(11));
        assert_eq!(rig.seen(&key("one", "beer")), Known::Unknown(Doubt::Relisting));
        let heard = rig.news.len();
        rig.quiet();
        assert_eq!(rig.changes_since(heard), [], "equal versions with equal content are no news");
    }
    // The stored object is the same, but the new schema prunes less of it.
    let mut out = Vec::new();
    rig.wires[0].follower.redefine(definition(Filter::All), &mut rig.store, &mut out).unwrap();
    rig.hear(out);
    rig.wires[0].follower.next(rig.now);
    let heard = rig.news.len();
    rig.feed(
        0,
        Input::Page(
            br#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"11"},"items":[
                {"metadata":{"name":"ale","namespace":"till","uid":"00000000000000000000000000000002",
                 "resourceVersion":"11"},"data":{"value":"1","strength":"7"}}]}"#,
        ),
    );
    assert_eq!(rig.changes_since(heard), [("ale".to_owned(), Some(11), Known::Present(11), true)]);
}

#[test]
fn leaving_a_label_selector_is_not_a_deletion() {
    let mut rig = Rig::new(Mode::Labels);
    rig.servers[0].put("one", "ale", 1, true);
    rig.quiet();
    let Fetch::Watch { selection, .. } = rig.wires[0].follower.next(rig.now) else { panic!("no watch") };
    assert_eq!(selection.labels.as_deref(), Some("tier=edge"));
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(11));
    rig.servers[0].put("one", "ale", 1, false);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Filtered));
    rig.servers[0].delete("one", "ale");
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Filtered), "not even when it is deleted");
}

#[test]
fn a_slice_without_endpoints_shows_nothing_and_proves_nothing() {
    let mut rig = harbor();
    let (mut out, heard) = (Vec::new(), rig.news.len());
    rig.store.open(&place(), Nature::View, [], &mut out);
    rig.hear(out);
    for cluster in ["one", "two", "three"] {
        assert_eq!(rig.seen(&key(cluster, "ale")), Known::Unknown(Doubt::EndpointRemoved));
    }
    let scopes = rig.scopes_since(heard);
    assert_eq!(scopes.len(), 4, "one line for the view, one for each workspace: {scopes:?}");
    assert_eq!(rig.seen(&key("four", "ale")), Known::Unknown(Doubt::NoEndpoint));
    rig.feed(0, Input::Tick);
    assert_eq!(rig.wires[0].follower.next(rig.now), Fetch::Stopped);
}

#[test]
fn an_endpoint_taken_out_of_its_slice_takes_its_workspaces_with_it_and_brings_them_back() {
    let mut rig = harbor();
    let mut out = Vec::new();
    rig.store.open(&place(), Nature::View, [endpoint(0)], &mut out);
    rig.hear(out);
    assert_eq!(rig.seen(&key("three", "ale")), Known::Unknown(Doubt::EndpointRemoved));
    assert_eq!(rig.seen(&key("three", "beer")), Known::Unknown(Doubt::EndpointRemoved));
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(12));
    assert_eq!(rig.seen(&key("one", "beer")), Known::Absent(Gone::NotInList));

    let mut out = Vec::new();
    rig.store.open(&place(), Nature::View, [endpoint(0), endpoint(1), EndpointId::new("third")], &mut out);
    rig.hear(out);
    assert_eq!(rig.seen(&key("three", "ale")), Known::Present(12), "as last seen");
    assert_eq!(rig.seen(&key("three", "beer")), Known::Unknown(Doubt::NotListed));
    assert_eq!(
        rig.seen(&key("one", "beer")),
        Known::Unknown(Doubt::NotListed),
        "the new shard was not listed"
    );
}

#[test]
fn an_empty_workspace_of_the_endpoint_that_went_is_not_known_to_be_empty() {
    let mut rig = harbor();
    rig.servers[1].bind("four", true);
    rig.quiet();
    assert_eq!(rig.seen(&key("four", "ale")), Known::Absent(Gone::NotInList));
    let mut out = Vec::new();
    rig.store.open(&place(), Nature::View, [endpoint(0)], &mut out);
    rig.hear(out);
    assert_eq!(rig.seen(&key("four", "ale")), Known::Unknown(Doubt::EndpointRemoved));
}

#[test]
fn h07_an_unserved_kind_is_unknown_and_stays_so_until_it_is_listed_again() {
    for by_discovery in [false, true] {
        let mut rig = Rig::new(Mode::Whole);
        for name in ["ale", "beer", "cider"] {
            rig.servers[0].put("one", name, 1, false);
        }
        rig.quiet();
        let (mut out, heard) = (Vec::new(), rig.news.len());
        if by_discovery {
            rig.store.unserved(&place(), &configmaps(), &mut out);
        } else {
            refuse(&mut rig, FaultKind::Unserved);
        }
        rig.hear(out);
        assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Unserved));
        assert_eq!(rig.seen(&key("one", "tea")), Known::Unknown(Doubt::Unserved));
        assert_eq!(rig.scopes_since(heard), [(None, Err(Doubt::Unserved))]);
        assert_eq!(rig.changes_since(heard), [], "one line, not one for each");
        // The CRD went and came back; its objects did not.
        rig.servers[0].delete("one", "ale");
        rig.servers[0].put("one", "beer", 2, false);
        rig.servers[0].compact();
        let (mut out, heard) = (Vec::new(), rig.news.len());
        rig.store.served(&place(), &configmaps(), &mut out);
        rig.hear(out);
        rig.feed(0, Input::Tick);
        assert_eq!(rig.seen(&key("one", "cider")), Known::Unknown(Doubt::Unserved), "not listed yet");
        rig.quiet();
        assert_eq!(rig.scopes_since(heard), [(None, Ok(()))], "nothing flashes up in between");
        let expected = [
            ("ale".to_owned(), Some(11), Known::Absent(Gone::NotInList), true),
            ("beer".to_owned(), Some(12), Known::Present(15), true),
        ];
        assert_eq!(rig.changes_since(heard), expected, "by discovery: {by_discovery}");
        assert_eq!(rig.seen(&key("one", "cider")), Known::Present(13));
    }
}

#[test]
fn a_vanished_workspace_answers_403_and_nothing_in_it_is_absent() {
    let mut rig = Rig::new(Mode::Whole);
    rig.servers[0].put("one", "ale", 1, false);
    rig.quiet();
    refuse(&mut rig, FaultKind::Forbidden);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Forbidden));
    rig.cut(0);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Forbidden), "a lost link allows nothing");
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(11));
}

#[test]
fn only_a_complete_list_ends_a_total_doubt() {
    let mut rig = Rig::new(Mode::Whole);
    for name in ["ale", "beer", "cider"] {
        rig.servers[0].put("one", name, 1, false);
    }
    rig.quiet();
    refuse(&mut rig, FaultKind::Unserved);
    for kind in [FaultKind::Unauthorized, FaultKind::Invalid, FaultKind::Expired, FaultKind::Away] {
        rig.wait(Duration::from_mins(1));
        refuse(&mut rig, kind);
        assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Unserved), "{kind:?}");
    }
    rig.wait(Duration::from_mins(1));
    rig.step(0);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Unserved), "one page of two");
    rig.step(0);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(11));
}

#[test]
fn one_shard_that_forbids_a_kind_does_not_take_it_from_the_others() {
    let mut rig = harbor();
    refuse(&mut rig, FaultKind::Forbidden);
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Forbidden));
    assert_eq!(rig.seen(&key("three", "ale")), Known::Present(12));
    assert_eq!(rig.seen(&key("three", "beer")), Known::Unknown(Doubt::Lost));
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Present(12));
    assert_eq!(rig.seen(&key("three", "beer")), Known::Absent(Gone::NotInList));
}

#[test]
fn a_binding_from_before_its_own_withdrawal_proves_nothing_until_the_view_is_read_again() {
    let mut rig = harbor();
    let before = rig.servers[0].version;
    rig.servers[0].bind("one", false);
    rig.quiet();
    assert_eq!(rig.seen(&key("one", "ale")), Known::Unknown(Doubt::Withdrawn));
    // The server is restored from a backup in which the binding stands. The bindings' watch notices first; the
    // objects' watch has only ended, and what it read last are versions of the lost future, without the object.
    rig.servers[0].restore(before);
    rig.feed(0, Input::Ended);
    let wire = rig.bindings_wire(0);
    rig.cut(wire);
    rig.wait(Duration::from_mins(1));
    rig.read_bindings(0);
    for name in ["ale", "beer"] {
        let seen = rig.seen(&key("one", name));
        assert!(matches!(seen, Known::Unknown(_)), "{name}: {seen:?}");
    }
}

#[test]
fn a_binding_that_returns_after_a_known_end_is_believed_at_once() {
    let mut rig = harbor();
    rig.servers[0].bind("one", false);
    rig.quiet();
    rig.servers[0].bind("one", true);
    rig.servers[0].other_writes(3);
    rig.read(0);
    rig.bookmark(0);
    rig.read_bindings(0);
    assert_eq!(rig.seen(&key("one", "beer")), Known::Absent(Gone::NotInList));
}
