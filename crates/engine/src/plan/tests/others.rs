//! What is another's, may be, or is not shown.

use super::*;

#[test]
fn fields_on_an_object_of_another_follow_what_is_wanted_and_go_alone() {
    let target = object(false, &[]);
    let row = |form: &Form, marked: &Marked, likeness| {
        answer(form, Seen::Present(&target), marked, |slot| {
            slot.likeness = likeness;
            slot.permit = Permit::Held(ChangeId(1));
        })
    };
    let overlay = plain(Delivery::Overlay);
    let put = Action::Deliver { expect: Expect::Uid(target.uid.clone()), how: How::Apply };
    assert_eq!(
        row(&overlay, &Marked::Nobodys, Likeness::Outdated).actions.as_slice(),
        std::slice::from_ref(&put)
    );
    assert_eq!(row(&overlay, &overlaid(), Likeness::Outdated).actions.as_slice(), [put]);
    assert_eq!(row(&overlay, &overlaid(), Likeness::Same).verdict, Verdict::Settled);
    let let_go = Action::LetGo { uid: target.uid.clone(), version: target.version };
    for evidence in [gone(true), deleting(true), deselected()] {
        let plan = row(&Form::No(evidence), &overlaid(), Likeness::Same);
        assert_eq!(plan.actions.as_slice(), std::slice::from_ref(&let_go), "not even the breaker minds");
    }
    let look = Action::ConfirmGone(origin().key);
    assert_eq!(row(&Form::No(gone(false)), &overlaid(), Likeness::Same).actions.as_slice(), [look]);
    let copied = row(&plain(Delivery::Apply), &overlaid(), Likeness::Outdated);
    assert_eq!(copied.verdict, Verdict::Refused(Refusal::Foreign), "the object is still another's");
}

#[test]
fn a_mark_on_what_we_did_not_make_is_taken_back_whatever_is_wanted() {
    let target = object(false, &[]);
    let let_go = Action::LetGo { uid: target.uid.clone(), version: target.version };
    for form in [plain(Delivery::Apply), Form::No(deselected()), Form::No(gone(true))] {
        let plan =
            answer(&form, Seen::Present(&target), &mark("us", false), |slot| slot.proof = Proof::NotOurs);
        assert_eq!(plan.verdict, Verdict::Refused(Refusal::Foreign));
        assert_eq!(plan.actions.as_slice(), std::slice::from_ref(&let_go));
    }
}

#[test]
fn a_mark_that_proves_nothing_is_looked_into_and_never_acted_on() {
    let target = object(false, &[]);
    for form in [plain(Delivery::Apply), Form::No(deselected()), Form::No(gone(true))] {
        let plan = answer(&form, Seen::Present(&target), &mark("us", false), |slot| slot.proof = Proof::Open);
        assert_eq!(plan.actions.as_slice(), [Action::LookBefore { version: target.version }]);
        let unclear = Record {
            odd: Oddity { unclear_at: Some(target.version), ..Oddity::default() }.into(),
            ..Record::default()
        };
        let seen = Seen::Present(&target);
        let plan = answer_from(&target, &unclear, &form, seen, &mark("us", false), |slot| {
            slot.proof = Proof::Open;
        });
        assert_eq!((plan.verdict, plan.actions.len()), (Verdict::Refused(Refusal::Unclear), 0));
    }
}

#[test]
fn what_a_filtered_view_does_not_show_is_read_and_made_only_if_it_is_missing() {
    let form = plain(Delivery::Apply);
    let row = |doubt, missing| {
        answer(&form, Seen::Unknown(doubt), &Marked::Nobodys, |slot| slot.missing = missing).actions.to_vec()
    };
    assert_eq!(row(Doubt::Filtered, false), [Action::Read]);
    let create = Action::Deliver { expect: Expect::New, how: How::Patch };
    assert_eq!(row(Doubt::Filtered, true), [create], "a create, which goes over nothing");
    let homeless = answer(&form, Seen::Unknown(Doubt::Claimed), &Marked::Nobodys, |slot| {
        slot.ready = Ready::NamespaceMissing;
    });
    assert_eq!(homeless.actions.as_slice(), [Action::EnsureNamespace]);
    for doubt in [Doubt::Claimed, Doubt::NotEngaged, Doubt::CatchingUp, Doubt::BindingsBehind] {
        assert_eq!(row(doubt, false), [Action::Read], "{doubt}");
        let first = Action::Deliver { expect: Expect::New, how: How::Apply };
        assert_eq!(row(doubt, true), [first], "{doubt}: a first delivery lets go of what it meets");
    }
    for doubt in [Doubt::Lost, Doubt::NotListed, Doubt::WentBack, Doubt::Withdrawn] {
        assert_eq!(row(doubt, false), [], "{doubt}");
        assert_eq!(row(doubt, true), [], "{doubt}");
    }
    let unwanted = answer(&Form::No(deselected()), Seen::Unknown(Doubt::Filtered), &Marked::Nobodys, |_| {});
    assert_eq!(unwanted.actions.len(), 0, "what is not wanted is not worth a question");
    let target = object(false, &[]);
    let delivered = Record { uid: Some(target.uid.clone()), ..Record::default() };
    let after = |missing: bool| {
        let seen = Seen::Unknown(Doubt::Claimed);
        answer_from(&target, &delivered, &Form::No(deselected()), seen, &Marked::Nobodys, |slot| {
            slot.missing = missing;
        })
    };
    assert_eq!(after(false).actions.as_slice(), [Action::Read], "what was delivered is");
    assert_eq!(
        (after(true).verdict, after(true).actions.len()),
        (Verdict::Settled, 0),
        "and then it is gone"
    );
}
