//! What to do about one slot: one pure function, every arm with the sentence that justifies it.

mod terms;
#[cfg(test)]
mod tests;

use mailboat_object::key::Name;
use mailboat_object::object::Object;
use mailboat_store::seen::{Doubt, Seen};
use smallvec::{SmallVec, smallvec};

pub use self::terms::{
    Action, ChangeId, Expect, How, Likeness, Permit, Plan, Proof, Ready, Refusal, Slot, Telling, Verdict,
    Wait, Wanted,
};
use crate::mark::{Mark, Marked};
use crate::mutation::{Mutation, broken};
use crate::record::Record;
use crate::want::{Adopt, Delivery, StatusReturn, Want};
use crate::warrant::{Evidence, Warrant};

/// Decides about one slot.
pub fn plan(slot: &Slot<'_>) -> Plan {
    match (&slot.target, slot.proof) {
        (Seen::Present(target), Proof::NotOurs) => return let_go(slot, target),
        (Seen::Present(target), Proof::Open) => return look_before(slot, target),
        _ => {}
    }
    match &slot.wanted {
        // Nothing new is sent and nothing is withdrawn on what is only half known.
        Wanted::Undecided(hold) => waiting(Wait::Undecided(Box::new((*hold).clone()))),
        Wanted::By(want) => deliver(slot, want),
        Wanted::No(evidence) => withdraw(slot, evidence),
    }
}

fn deliver(slot: &Slot<'_>, want: &Want) -> Plan {
    match slot.ready {
        Ready::ClusterAway => return waiting(Wait::Cluster),
        Ready::KindUnserved => return waiting(Wait::Kind),
        Ready::NamespaceEnding => return waiting(Wait::NamespaceEnding),
        Ready::Yes | Ready::NamespaceMissing | Ready::Resting | Ready::Rejected | Ready::Contended => {}
    }
    let how = How::of(want.policy.delivery, slot.apply);
    let absent_finalizer = missing_finalizer(slot, want);
    let overlays = want.policy.delivery == Delivery::Overlay;
    match &slot.target {
        // Where there is no namespace, nothing stands in it.
        Seen::Unknown(doubt) if told_by_reading(*doubt) && slot.ready == Ready::NamespaceMissing => {
            make(slot, want, absent_finalizer, how)
        }
        // What the bindings of a place do not vouch for, or what its server lost, was not there a moment ago: a first
        // delivery, which is not forced and lets go of what it meets, may make it.
        Seen::Unknown(
            Doubt::Claimed
            | Doubt::NotEngaged
            | Doubt::CatchingUp
            | Doubt::BindingsBehind
            | Doubt::OlderThanKnown,
        ) if slot.missing => make(slot, want, absent_finalizer, how),
        // A create cannot go over anything, so what a moment ago was not there may be made that way.
        Seen::Unknown(doubt) if told_by_reading(*doubt) && slot.missing => {
            make(slot, want, absent_finalizer, How::Patch)
        }
        Seen::Unknown(doubt) if told_by_reading(*doubt) && not_now(slot).is_none() => acting([Action::Read]),
        Seen::Unknown(doubt) => waiting(Wait::Target(*doubt)),
        Seen::Absent(_) => make(slot, want, absent_finalizer, how),
        Seen::Present(target) => match slot.marked {
            Marked::Ours(mark) if mark.owner == *slot.owner && (!mark.overlay || overlays) => {
                follow(slot, want, target, absent_finalizer, how)
            }
            Marked::Ours(mark) if mark.owner != *slot.owner => {
                refused(Refusal::OthersOwn(mark.owner.clone()))
            }
            Marked::Others(owner) => refused(Refusal::OthersOwn(owner.clone())),
            // Some fields go on an object that is another's and stays so.
            Marked::Nobodys if overlays => follow(slot, want, target, absent_finalizer, how),
            // The user asked on the source for this object to be taken over. Fields of ours that stand on it already do
            // not make it ours. What is on its way out takes nothing over: it would go along.
            Marked::Nobodys | Marked::Ours(_)
                if want.policy.adopt == Adopt::Unmarked
                    && want.policy.delivery != Delivery::Keep
                    && !target.deleting =>
            {
                if let Some(finalizer) = absent_finalizer {
                    return tell_source(slot, finalizer);
                }
                match not_now(slot) {
                    Some(verdict) => Plan { verdict, actions: smallvec![] },
                    None => acting([write(target, how)]),
                }
            }
            Marked::Nobodys if slot.record.uid.as_ref() == Some(&target.uid) => refused(Refusal::MarkRemoved),
            Marked::Nobodys | Marked::Ours(_) => refused(Refusal::Foreign),
        },
    }
}

/// Whether an object about which this is known can be told from reading it. Where the followed view shows only what
/// bears a label, that something is not shown will never mean that it is not there; nor does it where the view shows
/// what is claimed; and a workspace that is not bound to the view yet is bound by what is written there first. After that
/// a view, or the bindings that vouch for it, may catch up only with the next bookmark, a minute later. And where a server
/// seems to have gone back in time, no list will ever tell whether a copy that it does not show was deleted or lost; what
/// stands there now is all that matters of a copy.
pub(crate) fn told_by_reading(doubt: Doubt) -> bool {
    matches!(
        doubt,
        Doubt::Filtered
            | Doubt::Claimed
            | Doubt::NotEngaged
            | Doubt::CatchingUp
            | Doubt::BindingsBehind
            | Doubt::OlderThanKnown
    )
}

/// Nothing stands there: it is made.
fn make(slot: &Slot<'_>, want: &Want, finalizer: Option<Action>, how: How) -> Plan {
    // A source on its way out is not copied anew; what is there already follows it.
    if slot.source.is_some_and(|source| source.deleting) {
        return waiting(Wait::SourceEnding);
    }
    if want.policy.delivery == Delivery::Overlay {
        return waiting(Wait::Overlaid);
    }
    if want.policy.delivery == Delivery::Keep {
        return waiting(Wait::SourceEnding);
    }
    // The finalizer first: a copy whose source could vanish unseen would be left behind (H17).
    if let Some(finalizer) = finalizer {
        return tell_source(slot, finalizer);
    }
    if slot.ready == Ready::NamespaceMissing {
        return acting([Action::EnsureNamespace]);
    }
    if let Some(verdict) = not_now(slot) {
        return Plan { verdict, actions: smallvec![] };
    }
    let expect = slot.record.odd.hidden.clone().map_or(Expect::New, Expect::Uid);
    acting([Action::Deliver { expect, how }])
}

/// Our mark stands on an object that is not ours: whatever is wanted there, we take back what we put on it.
fn let_go(slot: &Slot<'_>, target: &Object) -> Plan {
    let (uid, version) = (target.uid.clone(), target.version);
    match slot.ready {
        Ready::ClusterAway => waiting(Wait::Cluster),
        Ready::KindUnserved => waiting(Wait::Kind),
        Ready::Resting | Ready::Rejected | Ready::Contended => refused(Refusal::Foreign),
        Ready::Yes | Ready::NamespaceMissing | Ready::NamespaceEnding => {
            let action =
                if slot.apply { Action::LetGo { uid, version } } else { Action::Release { uid, version } };
            Plan { verdict: Verdict::Refused(Refusal::Foreign), actions: smallvec![action] }
        }
    }
}

/// Our mark stands on an object that may not be ours: how it was before its last write may tell.
fn look_before(slot: &Slot<'_>, target: &Object) -> Plan {
    match slot.ready {
        Ready::ClusterAway => waiting(Wait::Cluster),
        Ready::KindUnserved => waiting(Wait::Kind),
        Ready::Resting | Ready::Rejected | Ready::Contended => waiting(Wait::Rest),
        Ready::Yes | Ready::NamespaceMissing | Ready::NamespaceEnding => {
            if slot.record.odd.unclear_at == Some(target.version) {
                return refused(Refusal::Unclear);
            }
            acting([Action::LookBefore { version: target.version }])
        }
    }
}

/// The copy is there and ours: keep it as wanted, and bring back what it reports.
fn follow(slot: &Slot<'_>, want: &Want, target: &Object, finalizer: Option<Action>, how: How) -> Plan {
    let mut actions: SmallVec<[Action; 2]> = finalizer.into_iter().collect();
    if want.policy.status != StatusReturn::Off && reports_something_new(slot, target) {
        // Of a copy of which only the head is kept, nobody knows what it reports.
        actions.push(if target.is_whole() { Action::Report(want.policy.status) } else { Action::Read });
    }
    let untold = if actions.is_empty() { None } else { cannot_tell(slot) };
    if untold.is_some() {
        actions.clear();
    }
    let stopped = if target.deleting {
        // It cannot be changed any more; when it is gone it is made anew.
        Some(Verdict::Waiting(Wait::TargetEnding))
    } else {
        match (slot.likeness, want.policy.delivery) {
            // Delivered to be overwritten, and from now on its place's own: its mark is to say so, and no more.
            (_, Delivery::CreateOnly) if !stays(slot.marked) => {
                let stopped = not_now(slot);
                if stopped.is_none() {
                    actions.push(write(target, How::Mark));
                }
                stopped
            }
            // Created once, then its place's own; or about to go.
            (_, Delivery::CreateOnly | Delivery::Keep) | (Likeness::Same, _) => None,
            (likeness, _) => {
                let stopped = not_now(slot);
                if stopped.is_none() {
                    let unread = likeness == Likeness::Unread;
                    actions.push(if unread { Action::Compare } else { write(target, how) });
                }
                stopped
            }
        }
    };
    let verdict = match stopped {
        Some(verdict) => verdict,
        None if !actions.is_empty() => Verdict::Acting,
        None => untold.map_or(Verdict::Settled, Verdict::Waiting),
    };
    Plan { verdict, actions }
}

/// Writes what stands there. A patch is made from all of it.
fn write(target: &Object, how: How) -> Action {
    match how {
        How::Patch if !target.is_whole() => Action::Read,
        How::Apply | How::Patch | How::Mark => {
            Action::Deliver { expect: Expect::Uid(target.uid.clone()), how }
        }
    }
}

/// Whether an object's mark says that it stays when it is no longer wanted.
fn stays(marked: &Marked) -> bool {
    matches!(marked, Marked::Ours(mark) if mark.leave)
}

fn withdraw(slot: &Slot<'_>, evidence: &Evidence) -> Plan {
    match (&slot.target, slot.marked) {
        // Our copy stood there, or somebody waits until none does, and the view that we follow cannot tell.
        (Seen::Unknown(doubt), _)
            if told_by_reading(*doubt)
                && !slot.missing
                && (slot.record.uid.is_some() || our_finalizer(slot).is_some())
                && matches!(slot.ready, Ready::Yes | Ready::NamespaceMissing | Ready::NamespaceEnding) =>
        {
            acting([Action::Read])
        }
        (Seen::Unknown(doubt), _) if !(told_by_reading(*doubt) && slot.missing) => {
            waiting(Wait::Target(*doubt))
        }
        (Seen::Present(target), Marked::Ours(mark)) if mark.owner == *slot.owner => {
            withdraw_ours(slot, evidence, target, mark)
        }
        // Nothing of ours is there: whoever deleted it, or never was it ours. A source that waits for us need
        // not wait any longer (H20), unless it has copies elsewhere: the last of them lets it go.
        _ => match (evidence, our_finalizer(slot)) {
            (Evidence::SourceDeleting(_), Some(_)) if !slot.last => waiting(Wait::SourceEnding),
            (Evidence::SourceDeleting(_), Some(name)) => {
                tell_source(slot, Action::Finalizer { name, add: false })
            }
            _ => match slot.stray {
                Some(finalizer) => take_finalizer_off(slot, finalizer),
                None => Plan { verdict: Verdict::Settled, actions: smallvec![] },
            },
        },
    }
}

/// Our finalizer stands on an object that is another's, and nobody is to wait for us there: it would wait for ever.
fn take_finalizer_off(slot: &Slot<'_>, name: &Name) -> Plan {
    match slot.ready {
        Ready::ClusterAway => waiting(Wait::Cluster),
        Ready::KindUnserved => waiting(Wait::Kind),
        Ready::Resting | Ready::Rejected | Ready::Contended => waiting(Wait::Rest),
        Ready::Yes | Ready::NamespaceMissing | Ready::NamespaceEnding => {
            tell_source(slot, Action::Finalizer { name: name.clone(), add: false })
        }
    }
}

fn withdraw_ours(slot: &Slot<'_>, evidence: &Evidence, target: &Object, mark: &Mark) -> Plan {
    if slot.ready == Ready::ClusterAway {
        return waiting(Wait::Cluster);
    }
    if target.deleting {
        return waiting(Wait::TargetEnding);
    }
    if matches!(slot.ready, Ready::Resting | Ready::Rejected) {
        return waiting(Wait::Rest);
    }
    // Fields on an object of another can be put on it again. What was a copy and is nobody's from then on is never ours again,
    // no more than what is deleted: so the breaker is asked about both.
    if !mark.overlay {
        match slot.permit {
            Permit::Pending => return waiting(Wait::Scope),
            Permit::Held(change) => return Plan { verdict: Verdict::Held(change), actions: smallvec![] },
            Permit::Open => {}
        }
    }
    let goes = if mark.stays(slot.key) {
        // It was to stay, whatever becomes of its source or of the configuration: what we put on it goes.
        let looked = evidence.is_confirmed() || broken(Mutation::ReleaseOnTheEvent);
        looked.then(|| take_off(slot, target, mark))
    } else {
        Warrant::new(evidence, target, mark, slot.owner).map(Action::Delete)
    };
    goes.map_or_else(|| look_first(slot, evidence), |action| acting([action]))
}

/// Takes off what we put on what stays.
fn take_off(slot: &Slot<'_>, target: &Object, mark: &Mark) -> Action {
    let (uid, version) = (target.uid.clone(), target.version);
    if mark.overlay && slot.apply {
        // The object is another's: our fields go, and it stays.
        Action::LetGo { uid, version }
    } else {
        Action::Release { uid, version }
    }
}

/// What the evidence lacks is a fresh look: an event is no more than a reason to take one (H3).
fn look_first(slot: &Slot<'_>, evidence: &Evidence) -> Plan {
    match evidence {
        Evidence::SourceGone(_) | Evidence::SourceDeleting(_) if slot.telling == Telling::Away => {
            waiting(Wait::SourceCluster)
        }
        Evidence::SourceGone(gone) => acting([Action::ConfirmGone(gone.source().clone())]),
        Evidence::SourceDeleting(deleting) => acting([Action::ConfirmGone(deleting.source().clone())]),
        Evidence::Deselected(_) => waiting(Wait::Scope),
    }
}

/// Why the slot is not written now, though something would be to write.
fn not_now(slot: &Slot<'_>) -> Option<Verdict> {
    match slot.ready {
        Ready::Resting => Some(Verdict::Waiting(Wait::Rest)),
        Ready::Rejected => Some(Verdict::Refused(Refusal::Rejected)),
        Ready::Contended => Some(Verdict::Waiting(Wait::Contention)),
        // The object is shown and its namespace is not: one of the two views is about to change.
        Ready::NamespaceMissing => Some(Verdict::Waiting(Wait::Namespace)),
        Ready::Yes | Ready::ClusterAway | Ready::KindUnserved | Ready::NamespaceEnding => None,
    }
}

/// The finalizer that this want needs on its source and that is not there.
fn missing_finalizer(slot: &Slot<'_>, want: &Want) -> Option<Action> {
    let name = slot.finalizer.filter(|_| want.policy.finalizer)?.clone();
    let source = slot.source.filter(|source| !source.deleting)?;
    let missing = !source.finalizers().any(|finalizer| finalizer == name.as_str());
    missing.then_some(Action::Finalizer { name, add: true })
}

/// The finalizer by which the deleting source waits for this slot.
fn our_finalizer(slot: &Slot<'_>) -> Option<Name> {
    match &slot.wanted {
        Wanted::No(Evidence::SourceDeleting(deleting)) => Some(deleting.finalizer().clone()),
        _ => None,
    }
}

fn reports_something_new(slot: &Slot<'_>, target: &Object) -> bool {
    slot.source.is_some_and(|source| {
        let report = Record::report(source, target);
        !report.is_none() && slot.record.reported != report
    })
}

/// Writes to the source, unless it would not hear.
fn tell_source(slot: &Slot<'_>, action: Action) -> Plan {
    cannot_tell(slot).map_or_else(|| acting([action]), waiting)
}

/// What a slot's source waits for before it is told something.
fn cannot_tell(slot: &Slot<'_>) -> Option<Wait> {
    match slot.telling {
        Telling::Now => None,
        Telling::Later => Some(Wait::Unheard),
        Telling::Away => Some(Wait::SourceCluster),
    }
}

fn waiting(wait: Wait) -> Plan {
    Plan { verdict: Verdict::Waiting(wait), actions: smallvec![] }
}

fn refused(refusal: Refusal) -> Plan {
    Plan { verdict: Verdict::Refused(refusal), actions: smallvec![] }
}

fn acting<const N: usize>(actions: [Action; N]) -> Plan {
    Plan { verdict: Verdict::Acting, actions: actions.into_iter().collect() }
}
