//! Every combination of what is wanted and what is seen, against the laws ([`laws`]); and the rows that name each answer.

use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid, Version};
use mailboat_object::object::{ClusterOf, Keep, Limits, Object, Place};
use mailboat_store::interest::{EndpointId, FeedId, Filter, PlaceId};
use mailboat_store::seen::{Absence, Doubt, Seen};
use mailboat_store::store::{Nature, Store};
use mailboat_store::time::Now;
use mailboat_store::{Definition, Follower, Input, Settings};
use serde_json::{Value, json};

use super::*;
use crate::look::{Look, Serving, Sighted};
use crate::mark::{Marks, OwnerId};
use crate::record::Oddity;
use crate::want::{Body, Hold, Origin, Policy};
use crate::warrant::{LOOK_AGAIN_AFTER, SourceDeleting, SourceGone, WholeConfiguration};

mod laws;
mod others;

const FINALIZER: &str = "mailboat.dev/test";

struct NoMarks;

impl Marks for NoMarks {
    fn read(&self, _: &Object) -> Marked {
        Marked::Nobodys
    }
    fn write(&self, want: &Want, _: Option<&Uid>) -> Result<Arc<[u8]>, String> {
        Ok(Arc::clone(&want.body.json))
    }
    fn remove(&self) -> Value {
        json!({})
    }
}

fn key() -> Key {
    Key {
        cluster: ClusterId::new("edge"),
        kind: KindId::new("", "configmaps"),
        namespace: Name::new("till"),
        name: Name::new("pos"),
    }
}

fn object(deleting: bool, finalizers: &[&str]) -> Object {
    let mut body = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {}, "status": { "ready": 1 },
        "metadata": { "name": "pos", "namespace": "till", "resourceVersion": "7", "finalizers": finalizers,
                      "uid": "f99e773f-3db2-439e-8054-827c4ac55368" },
    });
    if deleting {
        body["metadata"]["deletionTimestamp"] = json!("2026-11-15T00:00:00Z");
    }
    let place = Place {
        cluster: ClusterOf::One(&ClusterId::new("edge")),
        kind: &KindId::new("", "configmaps"),
        api_version: "v1",
        kind_name: "ConfigMap",
        manager: "",
        keep: Keep::Whole,
        limits: Limits::default(),
    };
    Object::decode(body.to_string().as_bytes(), &place).unwrap()
}

/// A proof of absence, as only a store makes it: from a complete list without the object.
fn absence() -> Absence {
    let mut store = Store::new();
    let (place, endpoint) = (PlaceId::new("edge"), EndpointId::new("one"));
    let mut news = Vec::new();
    store.open(&place, Nature::Whole(ClusterId::new("edge")), [endpoint.clone()], &mut news);
    let definition = Definition {
        api_version: Name::new("v1"),
        kind_name: Name::new("ConfigMap"),
        manager: Name::EMPTY,
        filter: Filter::All,
        keep: Keep::Whole,
        limits: Limits::default(),
    };
    let feed = FeedId { place, endpoint, kind: key().kind };
    let mut follower =
        Follower::new(feed, definition, Settings::default(), 1, &mut store, &mut news).unwrap();
    follower.next(Now::default());
    let page = br#"{"metadata":{"resourceVersion":"9"},"items":[]}"#;
    follower.feed(Now::default(), follower.turn(), Input::Page(page), &mut store, &mut news);
    follower.next(Now::default());
    follower.feed(
        Now::default(),
        follower.turn(),
        Input::Opened { new_connection: false },
        &mut store,
        &mut news,
    );
    store.get(&key()).absent().expect("a list without it proves its absence")
}

fn owner() -> OwnerId {
    OwnerId(Name::new("us"))
}

fn origin() -> Origin {
    let key = Key { cluster: ClusterId::new("center"), ..key() };
    let (uid, version, made_seconds) = (Uid::parse("1"), Version(3), Some(1_000));
    Origin { key, uid, version, generation: 1, made_seconds, identity: None }
}

fn mark(owner: &str, leave: bool) -> Marked {
    Marked::Ours(Mark {
        owner: OwnerId(Name::new(owner)),
        origin: origin(),
        intent: Digest::NONE,
        leave,
        confirmed: true,
        overlay: false,
    })
}

/// Fields of ours on an object of another.
fn overlaid() -> Marked {
    let Marked::Ours(mark) = mark("us", true) else { panic!("a mark of ours") };
    Marked::Ours(Mark { overlay: true, ..mark })
}

fn want(delivery: Delivery, adopt: Adopt, status: StatusReturn, finalizer: bool) -> Want {
    let policy = Policy { delivery, status, finalizer, adopt, ..Policy::plain(Arc::new(NoMarks)) };
    let body = Body { json: Arc::from(&b"{}"[..]), digest: Digest::NONE };
    Want { slot: key(), origin: origin(), body, policy: Arc::new(policy) }
}

fn gone(confirmed: bool) -> Evidence {
    let gone = SourceGone::new(origin().key, absence());
    let look = Look { object: Sighted::Missing, workspace_lives: true, kind: Serving::Itself };
    let looked = |gone: SourceGone, at| gone.looked(at, at, &look).unwrap();
    Evidence::SourceGone(if confirmed { looked(looked(gone, 0), LOOK_AGAIN_AFTER) } else { gone })
}

fn deleting(confirmed: bool) -> Evidence {
    let source = object(true, &[FINALIZER]);
    let deleting = SourceDeleting::of(&source, &Name::new(FINALIZER)).unwrap();
    let ending = Sighted::Ending(source.uid.clone());
    let look = Look { object: ending, workspace_lives: true, kind: Serving::Itself };
    Evidence::SourceDeleting(if confirmed { deleting.looked(&look).unwrap() } else { deleting })
}

fn deselected() -> Evidence {
    Evidence::Deselected(WholeConfiguration::known(1).does_not_select())
}

/// What may be wanted, in every form.
enum Form {
    By(Want),
    No(Evidence),
    Undecided(Hold),
}

impl Form {
    fn wanted(&self) -> Wanted<'_> {
        match self {
            Self::By(want) => Wanted::By(want),
            Self::No(evidence) => Wanted::No(evidence),
            Self::Undecided(hold) => Wanted::Undecided(hold),
        }
    }
}

/// One row: what is wanted and seen, and what is to be done.
fn answer(form: &Form, target: Seen<&Object>, marked: &Marked, change: impl FnOnce(&mut Slot<'_>)) -> Plan {
    answer_from(&object(false, &[FINALIZER]), &Record::default(), form, target, marked, change)
}

fn answer_from(
    source: &Object,
    record: &Record,
    form: &Form,
    target: Seen<&Object>,
    marked: &Marked,
    change: impl FnOnce(&mut Slot<'_>),
) -> Plan {
    let (key, owner, finalizer) = (key(), owner(), Name::new(FINALIZER));
    let mut slot = Slot {
        key: &key,
        owner: &owner,
        wanted: form.wanted(),
        source: Some(source),
        target,
        missing: false,
        marked,
        proof: Proof::Ours,
        likeness: Likeness::Same,
        record,
        ready: Ready::Yes,
        telling: Telling::Now,
        apply: true,
        permit: Permit::Open,
        last: true,
        finalizer: Some(&finalizer),
        stray: None,
    };
    change(&mut slot);
    plan(&slot)
}

fn plain(delivery: Delivery) -> Form {
    Form::By(want(delivery, Adopt::Never, StatusReturn::Off, false))
}

#[test]
fn what_is_missing_is_made_and_never_by_force() {
    let plan = answer(&plain(Delivery::Apply), Seen::Absent(absence()), &Marked::Nobodys, |_| {});
    assert_eq!(plan.actions.as_slice(), [Action::Deliver { expect: Expect::New, how: How::Apply }]);
    let plan =
        answer(&plain(Delivery::Apply), Seen::Absent(absence()), &Marked::Nobodys, |slot| slot.apply = false);
    assert_eq!(plan.actions.as_slice(), [Action::Deliver { expect: Expect::New, how: How::Patch }]);
    let plan = answer(&plain(Delivery::Overlay), Seen::Absent(absence()), &Marked::Nobodys, |_| {});
    assert_eq!(plan.verdict, Verdict::Waiting(Wait::Overlaid));
}

#[test]
fn a_copy_that_is_as_wanted_is_left_alone_and_one_that_is_not_is_put_right() {
    let target = object(false, &[]);
    let ours = mark("us", false);
    let uid = Expect::Uid(target.uid.clone());
    let table = [
        (Likeness::Same, Verdict::Settled, vec![]),
        (Likeness::Outdated, Verdict::Acting, vec![Action::Deliver { expect: uid.clone(), how: How::Apply }]),
        (Likeness::Rewritten, Verdict::Acting, vec![Action::Deliver { expect: uid, how: How::Apply }]),
        (Likeness::Unread, Verdict::Acting, vec![Action::Compare]),
    ];
    for (likeness, verdict, actions) in table {
        let plan =
            answer(&plain(Delivery::Apply), Seen::Present(&target), &ours, |slot| slot.likeness = likeness);
        assert_eq!((plan.verdict, plan.actions.to_vec()), (verdict, actions), "{likeness:?}");
        let create_only = |mark: &Marked| {
            let asked = |slot: &mut Slot<'_>| slot.likeness = likeness;
            answer(&plain(Delivery::CreateOnly), Seen::Present(&target), mark, asked)
        };
        assert_eq!(create_only(&mark("us", true)).verdict, Verdict::Settled, "create-only, {likeness:?}");
        let mark_alone = Action::Deliver { expect: Expect::Uid(target.uid.clone()), how: How::Mark };
        assert_eq!(
            create_only(&ours).actions.to_vec(),
            [mark_alone],
            "create-only from now on, {likeness:?}"
        );
    }
}

#[test]
fn what_is_not_ours_is_refused_unless_adoption_was_asked_for() {
    let target = object(false, &[]);
    let seen = Seen::Present(&target);
    let them = OwnerId(Name::new("them"));
    let row = |marked: &Marked| answer(&plain(Delivery::Apply), seen, marked, |_| {}).verdict;
    assert_eq!(row(&Marked::Nobodys), Verdict::Refused(Refusal::Foreign));
    assert_eq!(row(&Marked::Others(them.clone())), Verdict::Refused(Refusal::OthersOwn(them.clone())));
    assert_eq!(row(&mark("them", false)), Verdict::Refused(Refusal::OthersOwn(them.clone())));
    let adopting = Form::By(want(Delivery::Apply, Adopt::Unmarked, StatusReturn::Off, false));
    let plan = answer(&adopting, seen, &Marked::Nobodys, |_| {});
    assert_eq!(
        plan.actions.as_slice(),
        [Action::Deliver { expect: Expect::Uid(target.uid.clone()), how: How::Apply }]
    );
    let plan = answer(&adopting, seen, &Marked::Others(them.clone()), |_| {});
    assert_eq!(plan.verdict, Verdict::Refused(Refusal::OthersOwn(them)), "another owner's is never adopted");
}

#[test]
fn h17_the_finalizer_comes_before_the_first_copy() {
    let bare = object(false, &[]);
    let form = Form::By(want(Delivery::Apply, Adopt::Never, StatusReturn::Off, true));
    let plan =
        answer_from(&bare, &Record::default(), &form, Seen::Absent(absence()), &Marked::Nobodys, |_| {});
    assert_eq!(plan.actions.as_slice(), [Action::Finalizer { name: Name::new(FINALIZER), add: true }]);
}

#[test]
fn h20_a_source_does_not_wait_for_a_copy_that_is_gone() {
    let plan = answer(&Form::No(deleting(false)), Seen::Absent(absence()), &Marked::Nobodys, |_| {});
    assert_eq!(plan.actions.as_slice(), [Action::Finalizer { name: Name::new(FINALIZER), add: false }]);
    let elsewhere = |slot: &mut Slot<'_>| slot.last = false;
    let plan = answer(&Form::No(deleting(false)), Seen::Absent(absence()), &Marked::Nobodys, elsewhere);
    assert_eq!(plan.verdict, Verdict::Waiting(Wait::SourceEnding), "it has copies elsewhere");
}

#[test]
fn what_failed_is_not_tried_again_before_its_time() {
    let waits = |plan: Plan, wait, what: &str| {
        assert_eq!((plan.verdict, plan.actions.len()), (Verdict::Waiting(wait), 0), "{what}");
    };
    let unheard = |slot: &mut Slot<'_>| slot.telling = Telling::Later;
    let plan = answer(&Form::No(deleting(false)), Seen::Absent(absence()), &Marked::Nobodys, unheard);
    waits(plan, Wait::Unheard, "a finalizer to take off");
    let form = Form::By(want(Delivery::Apply, Adopt::Never, StatusReturn::Off, true));
    let (bare, none) = (object(false, &[]), Record::default());
    let plan = answer_from(&bare, &none, &form, Seen::Absent(absence()), &Marked::Nobodys, unheard);
    waits(plan, Wait::Unheard, "a finalizer to put on");
    let target = object(false, &[]);
    let plan = answer(&plain(Delivery::Apply), Seen::Present(&target), &mark("us", false), |slot| {
        (slot.likeness, slot.ready) = (Likeness::Unread, Ready::Resting);
    });
    waits(plan, Wait::Rest, "a comparison");
}

#[test]
fn a_copy_that_its_server_seems_to_have_lost_is_read_and_made_again() {
    let lost = || Seen::Unknown(Doubt::OlderThanKnown);
    let plan = answer(&plain(Delivery::Apply), lost(), &Marked::Nobodys, |_| {});
    assert_eq!(plan.actions.as_slice(), [Action::Read]);
    let plan = answer(&plain(Delivery::Apply), lost(), &Marked::Nobodys, |slot| slot.missing = true);
    assert_eq!(plan.actions.as_slice(), [Action::Deliver { expect: Expect::New, how: How::Apply }]);
    // One that nobody wants is read as well, and nothing is left to do where it is gone.
    let ours = Record { uid: Some(object(false, &[]).uid), ..Record::default() };
    let (source, form) = (object(false, &[]), Form::No(deselected()));
    let plan = answer_from(&source, &ours, &form, lost(), &Marked::Nobodys, |_| {});
    assert_eq!(plan.actions.as_slice(), [Action::Read]);
    let plan = answer_from(&source, &ours, &form, lost(), &Marked::Nobodys, |slot| slot.missing = true);
    assert_eq!(plan.verdict, Verdict::Settled);
}

#[test]
fn h16_what_was_to_stay_stays_whatever_the_configuration_says_by_then() {
    let target = object(false, &[]);
    for evidence in [gone(true), deleting(true), deselected()] {
        let plan = answer(&Form::No(evidence), Seen::Present(&target), &mark("us", true), |_| {});
        assert!(matches!(plan.actions.as_slice(), [Action::Release { .. }]), "{plan:?}");
    }
}

#[test]
fn what_stays_is_let_go_of_no_sooner_than_what_goes() {
    let target = object(false, &[]);
    let row = |evidence, permit| {
        answer(&Form::No(evidence), Seen::Present(&target), &mark("us", true), |slot| slot.permit = permit)
    };
    for evidence in [gone(false), deleting(false)] {
        let plan = row(evidence, Permit::Open);
        assert!(matches!(plan.actions.as_slice(), [Action::ConfirmGone(_)]), "on the event alone: {plan:?}");
    }
    for evidence in [gone(true), deleting(true), deselected()] {
        assert_eq!(row(evidence.clone(), Permit::Held(ChangeId(7))).verdict, Verdict::Held(ChangeId(7)));
        assert_eq!(row(evidence, Permit::Pending).verdict, Verdict::Waiting(Wait::Scope));
    }
}

#[test]
fn a_source_that_seems_gone_is_looked_at_before_its_copy_goes() {
    let target = object(false, &[]);
    let plan = answer(&Form::No(gone(false)), Seen::Present(&target), &mark("us", false), |_| {});
    assert_eq!(plan.actions.as_slice(), [Action::ConfirmGone(origin().key)]);
    let plan = answer(&Form::No(gone(true)), Seen::Present(&target), &mark("us", false), |_| {});
    assert!(matches!(plan.actions.as_slice(), [Action::Delete(_)]), "{plan:?}");
    let plan = answer(&Form::No(deleting(false)), Seen::Present(&target), &mark("us", false), |_| {});
    assert_eq!(
        plan.actions.as_slice(),
        [Action::ConfirmGone(object(true, &[]).key)],
        "it may go with its kind"
    );
    let plan = answer(&Form::No(deleting(true)), Seen::Present(&target), &mark("us", false), |_| {});
    assert!(matches!(plan.actions.as_slice(), [Action::Delete(_)]), "{plan:?}");
}

#[test]
fn a_finalizer_that_nobody_asks_for_any_more_is_taken_off() {
    let target = object(false, &[FINALIZER]);
    let off = Action::Finalizer { name: Name::new(FINALIZER), add: false };
    for (stray, actions) in [(true, vec![off]), (false, vec![])] {
        let asked = |slot: &mut Slot<'_>| slot.stray = slot.finalizer.filter(|_| stray);
        let plan = answer(&Form::No(deselected()), Seen::Present(&target), &Marked::Nobodys, asked);
        assert_eq!(plan.actions.to_vec(), actions);
    }
}

#[test]
fn the_breaker_holds_what_it_holds() {
    let target = object(false, &[]);
    let row = |permit| {
        answer(&Form::No(deselected()), Seen::Present(&target), &mark("us", false), |slot| {
            slot.permit = permit;
        })
    };
    assert_eq!(row(Permit::Held(ChangeId(7))).verdict, Verdict::Held(ChangeId(7)));
    assert_eq!(row(Permit::Pending).verdict, Verdict::Waiting(Wait::Scope));
    assert!(matches!(row(Permit::Open).actions.as_slice(), [Action::Delete(_)]));
}
