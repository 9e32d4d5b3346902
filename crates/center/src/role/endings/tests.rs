use mailboat_engine::look::{Definition, Serving};
use mailboat_object::key::Uid;
use serde_json::Value;

use super::*;
use crate::fixtures::object;

const NOW: Moment = Moment(1_000);

fn placement(change: impl FnOnce(&mut Value)) -> Arc<Object> {
    let mut json = json!({
        "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement",
        "metadata": { "name": "shops", "uid": "u1", "resourceVersion": "7", "finalizers": ["others/own"] },
    });
    change(&mut json);
    object("shop", "edgeplacements.edge.kubestellar.io", &json)
}

fn ours() -> Value {
    json!(["others/own", finalizer::CONFIGURATION])
}

fn deleted(json: &mut Value) {
    json["metadata"]["finalizers"] = ours();
    json["metadata"]["deletionTimestamp"] = json!("2026-11-01T00:00:00Z");
}

fn ground(workspace_lives: bool, deleting: bool) -> Ground {
    let (uid, version) = (Uid::parse("b"), Version(3));
    let binding = Definition { uid, deleting, version, made_seconds: None, identity: None };
    Ground { workspace_lives, kind: Serving::By(binding) }
}

/// What is asked for in one turn: the look, and the finalizers that are written to the version seen.
fn turn(endings: &mut Endings, now: Moment, nothing_left: bool) -> (Option<CallId>, Option<(CallId, Value)>) {
    let (mut orders, mut calls) = (Vec::new(), 100 + now.0);
    endings.next(
        now,
        |_| nothing_left,
        || {
            calls += 1;
            CallId(calls)
        },
        &mut orders,
    );
    let look = orders.iter().find_map(|order| match order {
        Order::Look(id, ..) => Some(*id),
        _ => None,
    });
    let written = orders.iter().find_map(|order| match order {
        Order::Call(id, Call { verb: Verb::Merge { body, .. }, .. }) => {
            let patch: Value = serde_json::from_slice(body).unwrap();
            let version = &patch["metadata"]["resourceVersion"];
            assert!(version == "7" || version == "8", "another's finalizer may be lost: {version}");
            Some((*id, patch["metadata"]["finalizers"].clone()))
        }
        _ => None,
    });
    (look, written)
}

fn endings() -> Endings {
    Endings::new(Name::new("mailboat-center"))
}

#[test]
fn a_placement_gets_our_finalizer_once_and_keeps_the_others() {
    let mut endings = endings();
    assert_eq!(endings.sees(&placement(|_| ())), Course::Stays);
    let (look, written) = turn(&mut endings, NOW, false);
    let (id, finalizers) = written.unwrap();
    assert_eq!((look, finalizers), (None, ours()));
    assert_eq!(turn(&mut endings, NOW, false).1, None, "it is under way");
    assert!(endings.answered(NOW, id, &Ok(well())));
    assert_eq!(turn(&mut endings, NOW, false).1, None);
    endings.sees(&placement(|json| json["metadata"]["finalizers"] = ours()));
    assert_eq!(turn(&mut endings, Moment(100_000), false).1, None);
}

#[test]
fn a_placement_that_changed_meanwhile_gets_our_finalizer_as_soon_as_that_is_seen() {
    let conflict = || Err(Fault::new(FaultKind::Conflict, "it changed"));
    let changed = || placement(|json| json["metadata"]["resourceVersion"] = json!("8"));
    for seen_before_the_answer in [true, false] {
        let mut endings = endings();
        endings.sees(&placement(|_| ()));
        let (_, written) = turn(&mut endings, NOW, false);
        if seen_before_the_answer {
            endings.sees(&changed());
            endings.answered(NOW, written.unwrap().0, &conflict());
        } else {
            endings.answered(NOW, written.unwrap().0, &conflict());
            assert_eq!(turn(&mut endings, NOW, false).1, None, "the same again would be refused again");
            endings.sees(&changed());
        }
        assert!(
            turn(&mut endings, NOW, false).1.is_some(),
            "seen before the answer: {seen_before_the_answer}"
        );
    }
}

#[test]
fn a_placement_deleted_by_itself_withdraws_what_it_placed_and_then_goes() {
    let mut endings = endings();
    let deleted = placement(deleted);
    assert_eq!(endings.sees(&deleted), Course::Keeps);
    assert!(endings.take_withdrawn(|_| true).is_empty(), "nobody looked yet");
    let (look, written) = turn(&mut endings, NOW, true);
    assert_eq!(written, None, "what it placed may still be there");
    assert!(endings.looked(NOW, look.unwrap(), &Ok(ground(true, false))));
    assert!(endings.take_withdrawn(|_| false).is_empty(), "what it selects was not read yet");
    assert_eq!(endings.take_withdrawn(|_| true), std::slice::from_ref(&deleted.key));
    assert_eq!(endings.sees(&deleted), Course::Withdrawn);
    assert_eq!(turn(&mut endings, NOW, false).1, None, "something stands still");
    let (id, finalizers) = turn(&mut endings, NOW, true).1.unwrap();
    assert_eq!(finalizers, json!(["others/own"]));
    assert!(endings.answered(NOW, id, &Ok(well())));
}

#[test]
fn a_placement_deleted_with_its_workspace_or_kind_withdraws_nothing_until_that_is_confirmed() {
    for gone in [ground(false, false), ground(true, true)] {
        let mut endings = endings();
        let shown = placement(deleted);
        endings.sees(&shown);
        let (look, _) = turn(&mut endings, NOW, false);
        endings.looked(NOW, look.unwrap(), &Ok(gone));
        assert!(endings.take_withdrawn(|_| true).is_empty());
        assert_eq!(turn(&mut endings, Moment(1_000_000), true).1, None);
        let (key, change) = endings.awaiting().next().map(|(key, change)| (key.clone(), change)).unwrap();
        assert!(endings.given_up().is_empty());
        let confirmed = |change: ChangeId| {
            placement(|json| {
                deleted(json);
                json["metadata"]["annotations"] =
                    json!({ annotation::CONFIRM_WITHDRAWAL: change.to_string() });
            })
        };
        endings.sees(&confirmed(ChangeId(change.0 ^ 1)));
        assert!(endings.take_withdrawn(|_| true).is_empty(), "another change was confirmed");
        endings.sees(&confirmed(change));
        assert_eq!(endings.take_withdrawn(|_| true), std::slice::from_ref(&key));
        assert!(endings.given_up().contains(&key.cluster));
        assert_eq!(endings.awaiting().count(), 0);
    }
}

#[test]
fn a_look_that_failed_says_nothing() {
    let mut endings = endings();
    endings.sees(&placement(deleted));
    let (look, _) = turn(&mut endings, NOW, false);
    endings.looked(NOW, look.unwrap(), &Err(Fault::new(FaultKind::Away, "connection reset")));
    assert!(endings.take_withdrawn(|_| true).is_empty());
    assert_eq!(turn(&mut endings, NOW, false).0, None, "it rests");
    assert!(turn(&mut endings, NOW + AGAIN_AFTER, false).0.is_some(), "and is looked at again");
}

#[test]
fn a_namesake_made_since_is_another_placement() {
    let mut endings = endings();
    endings.sees(&placement(deleted));
    let (look, _) = turn(&mut endings, NOW, false);
    endings.looked(NOW, look.unwrap(), &Ok(ground(true, false)));
    endings.take_withdrawn(|_| true);
    let namesake = placement(|json| json["metadata"]["uid"] = json!("u2"));
    assert_eq!(endings.sees(&namesake), Course::Stays);
    assert!(!endings.is_withdrawn(&namesake.key));
}

#[test]
fn a_placement_out_of_sight_is_read_in_its_workspace_until_it_is_gone() {
    let mut endings = endings();
    let shown = placement(|json| json["metadata"]["finalizers"] = ours());
    endings.sees(&shown);
    endings.in_sight([&shown.key].into_iter(), &shown.key.cluster, false);
    let read = |endings: &mut Endings, now: Moment| {
        let (mut orders, mut calls) = (Vec::new(), 1_000 + now.0);
        let wake = endings.next(
            now,
            |_| false,
            || {
                calls += 1;
                CallId(calls)
            },
            &mut orders,
        );
        let asked = orders.iter().find_map(|order| match order {
            Order::Call(id, Call { verb: Verb::Get, .. }) => Some(*id),
            _ => None,
        });
        (asked, wake)
    };
    let (asked, wake) = read(&mut endings, NOW);
    assert_eq!(wake, Some(NOW + AGAIN_AFTER));
    let mut body = json!({ "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement",
                           "metadata": { "name": "shops", "uid": "u1", "resourceVersion": "9" } });
    deleted(&mut body);
    let reply = Reply { body: body.to_string().into_bytes().into(), ..well() };
    assert!(endings.answered(NOW, asked.unwrap(), &Ok(reply)));
    let [found] = endings.take_found().try_into().unwrap();
    assert_eq!(endings.sees(&found), Course::Keeps);
    assert_eq!(endings.last_seen(&shown.key).map(|seen| seen.version), Some(Version(9)));
    let (asked, _) = read(&mut endings, NOW + AGAIN_AFTER + AGAIN_AFTER);
    assert_eq!(asked, None, "it is being looked at");
    let (look, _) = turn(&mut endings, NOW, false);
    assert_eq!(look, None);
}

fn well() -> Reply {
    Reply { body: Box::default(), created: false, warnings: Vec::new() }
}

#[test]
fn a_placement_is_seen_out_when_it_is_gone_after_what_it_placed() {
    let mut endings = endings();
    let shown = placement(deleted);
    endings.sees(&shown);
    endings.gone(&shown.key);
    assert!(endings.take_seen_out().is_empty(), "what it placed may stand");
    endings.sees(&shown);
    let (look, _) = turn(&mut endings, NOW, false);
    endings.looked(NOW, look.unwrap(), &Ok(ground(true, false)));
    assert_eq!(endings.take_withdrawn(|_| true).len(), 1);
    endings.gone(&shown.key);
    assert_eq!(endings.take_seen_out().into_iter().collect::<Vec<_>>(), std::slice::from_ref(&shown.key));
    assert!(endings.take_seen_out().is_empty() && !endings.are_in(&shown.key.cluster), "it is said once");
}
