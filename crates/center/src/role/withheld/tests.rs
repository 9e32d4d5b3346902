use std::sync::Arc;

use mailboat_api::names::finalizer;
use mailboat_engine::mark::OwnerId;
use mailboat_engine::plan::ChangeId;

use super::super::Identity;
use super::*;
use crate::fixtures::object;

fn placement(conditions: &Value, finalizers: &Value) -> std::sync::Arc<Object> {
    let json = json!({
        "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement",
        "metadata": { "name": "shops", "uid": "u1", "resourceVersion": "7", "generation": 3, "finalizers": finalizers },
        "status": { "conditions": conditions },
    });
    object("shop", "edgeplacements.edge.kubestellar.io", &json)
}

/// Type, status and reason of each condition.
fn told(conditions: &Value) -> Vec<(String, String, String)> {
    let text = |condition: &Value, member: &str| condition[member].as_str().unwrap().to_owned();
    let all = conditions.as_array().into_iter().flatten();
    all.map(|one| (text(one, "type"), text(one, "status"), text(one, "reason"))).collect()
}

fn is(type_: &str, status: &str, reason: &str) -> (String, String, String) {
    (type_.to_owned(), status.to_owned(), reason.to_owned())
}

fn conditions(
    placement: &Object,
    withheld: Option<&Withheld>,
    unpatchable: bool,
    known: bool,
    now_seconds: u64,
) -> Value {
    let mut conditions = Conditions::of(placement, now_seconds);
    conditions.tell_held(withheld, unpatchable, known);
    conditions.listed()
}

#[test]
fn a_placement_that_may_not_be_patched_says_that_its_deletion_does_not_wait() {
    let (none, ours) = (json!([]), json!([finalizer::CONFIGURATION]));
    let fresh = placement(&none, &none);
    assert_eq!(
        conditions(&fresh, None, false, true, 60),
        Value::Null,
        "all is well, and nothing was ever said"
    );
    let said = conditions(&fresh, None, true, true, 60);
    assert_eq!(told(&said), [is(types::DELETION_WAITS, "False", "Forbidden")]);
    assert!(said[0]["message"].as_str().unwrap().contains("mailboat ensure wmw"), "{said}");
    // A center that starts has not tried yet, and takes nothing back.
    let before = placement(&said, &none);
    assert_eq!(conditions(&before, None, false, true, 120), said);
    // It bears our finalizer by now.
    let mended = conditions(&placement(&said, &ours), None, false, true, 180);
    assert_eq!(told(&mended), [is(types::DELETION_WAITS, "True", "Finalized")]);
}

#[test]
fn that_nothing_is_held_any_more_is_said_when_it_is_known() {
    let (none, change) = (json!([]), ChangeId(7));
    let withheld = Withheld { change, count: 12, because: Because::Less };
    let said = conditions(&placement(&none, &none), Some(&withheld), false, false, 60);
    assert_eq!(told(&said), [is(types::WITHDRAWAL_HELD, "True", "ConfirmationAwaited")]);
    let before = placement(&said, &none);
    assert_eq!(conditions(&before, None, false, false, 120), said, "a center that starts does not know yet");
    let over = conditions(&before, None, false, true, 120);
    assert_eq!(told(&over), [is(types::WITHDRAWAL_HELD, "False", "NothingHeld")]);
}

#[test]
fn mailboxes_whose_targets_are_gone_are_confirmed_on_the_providers_export() {
    let role = CenterRole::new(Identity {
        owner: OwnerId(Name::new("center")),
        manager: Name::new("mailboat-center"),
        provider: ClusterId::new("espw"),
        provider_path: Arc::from("root:espw"),
        silence: mailbox::Limits::default(),
        installs: None,
    });
    let subject = |scope: &str| role.subject_of(&ScopeId(Name::new(scope)));
    let Some((key, because)) = subject("mailboxes") else { panic!("nowhere") };
    assert_eq!(key.to_string(), "espw|apiexports.apis.kcp.io edge.kubestellar.io");
    assert_eq!((subject("unclaimed/espw"), subject("unclaimed/other")), (Some((key, because)), None));
    let anywhere = subject(ScopeId::unclaimed_anywhere().0.as_str());
    assert_eq!(anywhere, Some((role.export(), Because::Anywhere)), "all that no placement selects, at once");
    let held = Withheld { change: ChangeId(0x00c0_ffee), count: 12, because };
    assert_eq!(
        held.message(),
        "the SyncTargets of 12 mailboxes are gone, and all in these would go; the annotation \
         mailboat.dev/confirm-withdrawal=0000000000c0ffee on this APIExport lets them go"
    );
}
