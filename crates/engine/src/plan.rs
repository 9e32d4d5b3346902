//! What to do about one slot: one pure function, every arm with the sentence that justifies it.

#[cfg(test)]
mod tests;

use std::fmt;

use mailboat_object::key::{Key, Name, Uid, Version};
use mailboat_object::object::Object;
use mailboat_store::seen::{Doubt, Seen};
use smallvec::{SmallVec, smallvec};

use crate::mark::{Mark, Marked, OwnerId};
use crate::record::Record;
use crate::want::{Adopt, Delivery, Hold, StatusReturn, Want};
use crate::warrant::{Evidence, Warrant};

/// Everything that is known about one place where an object may stand.
pub struct Slot<'a> {
    /// Where it is.
    pub key: &'a Key,
    /// Who we are.
    pub owner: &'a OwnerId,
    /// Who wants it: the best claim, nobody (and why), or undecided.
    pub wanted: Wanted<'a>,
    /// The object that the best claim's content comes from, if it is present.
    pub source: Option<&'a Object>,
    /// What stands there.
    pub target: Seen<&'a Object>,
    /// It was read afresh for this decision, and its server said, naming it, that it is not there.
    pub missing: bool,
    /// Whose mark it bears; [`Marked::Nobodys`] if nothing stands there.
    pub marked: &'a Marked,
    /// Whether that mark is known to stand on an object that we made.
    pub proof: Proof,
    /// Whether what stands there is what is wanted.
    pub likeness: Likeness,
    /// What is remembered.
    pub record: &'a Record,
    /// Whether the place can be written now.
    pub ready: Ready,
    /// Whether the source can be written now.
    pub telling: Telling,
    /// Whether the place does true server-side apply; a view does not.
    pub apply: bool,
    /// The breaker's word on withdrawals in this scope.
    pub permit: Permit,
    /// No other copy of the same source stands, or may stand, anywhere.
    pub last: bool,
    /// The finalizer of ours on sources, if there is one.
    pub finalizer: Option<&'a Name>,
    /// The same, if what stands there bears it, and nothing that is wanted of it asks for that.
    pub stray: Option<&'a Name>,
}

/// Who wants a slot.
pub enum Wanted<'a> {
    /// This want, the best claim on it.
    By(&'a Want),
    /// Nobody, and this shows it.
    No(&'a Evidence),
    /// It cannot be said yet.
    Undecided(&'a Hold),
}

/// Whether an object with our mark is ours. A first delivery that met something, and whose answer was lost, leaves our
/// mark on an object that is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// It is, or it bears no mark of ours.
    Ours,
    /// It is not: it stood there before our mark did.
    NotOurs,
    /// It cannot be told from the object itself.
    Open,
}

/// Whether what stands in a slot is what is wanted there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Likeness {
    /// The same intent, and the copy is as our last write left it, or every field of the intent is in it or
    /// still ours.
    Same,
    /// The intent changed.
    Outdated,
    /// The intent is the same, but another hand changed what we own.
    Rewritten,
    /// Not compared yet: only the head is kept, and this process has not seen the whole.
    Unread,
}

/// Whether a place can be written now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ready {
    /// It can.
    Yes,
    /// The cluster is away.
    ClusterAway,
    /// The kind is not served there yet.
    KindUnserved,
    /// The namespace is not there yet.
    NamespaceMissing,
    /// The namespace is being deleted.
    NamespaceEnding,
    /// This object waits: its last write failed.
    Resting,
    /// This object waits: the server looked at it and refused it.
    Rejected,
    /// This object waits: another hand keeps rewriting it.
    Contended,
}

/// Whether a slot's source can be told something: a status, or that we wait on it. Nothing else waits for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Telling {
    /// It can.
    Now,
    /// It did not take what it was told a moment ago, and is told again later.
    Later,
}

/// The breaker's word on withdrawals in a scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permit {
    /// They may go.
    Open,
    /// The scope is still being evaluated as a whole.
    Pending,
    /// Too many at once: held until this change is confirmed.
    Held(ChangeId),
}

/// Names a held change: a hash of the configuration and of what would be withdrawn. Whoever confirms it
/// confirms exactly that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChangeId(pub u64);

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What is to be said and done about a slot.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// How it stands.
    pub verdict: Verdict,
    /// What to do now, in this order.
    pub actions: SmallVec<[Action; 2]>,
}

/// How a slot stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// As wanted; nothing to do.
    Settled,
    /// Something is being done about it.
    Acting,
    /// It waits for something that will wake it.
    Waiting(Wait),
    /// It is refused, and somebody has to change something.
    Refused(Refusal),
    /// Its withdrawal is held by the breaker.
    Held(ChangeId),
}

/// What a slot waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wait {
    /// To be decided.
    Undecided(Box<Hold>),
    /// To be known.
    Target(Doubt),
    /// The cluster to come back.
    Cluster,
    /// The kind to be served.
    Kind,
    /// The namespace to be shown.
    Namespace,
    /// The namespace, which is being deleted, to be gone.
    NamespaceEnding,
    /// The object that stands there, which is being deleted, to be gone.
    TargetEnding,
    /// The source, which is being deleted, to be gone.
    SourceEnding,
    /// An object to put fields on.
    Overlaid,
    /// Its time, after a failure.
    Rest,
    /// Its time, because its source could not be told something.
    Unheard,
    /// Its time, because another hand keeps rewriting what we own.
    Contention,
    /// The whole scope to be evaluated.
    Scope,
}

/// Why a slot is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// An object stands there that is nobody's of ours, and nobody asked for its adoption.
    Foreign,
    /// An object stands there that another owner put there.
    OthersOwn(OwnerId),
    /// We put it there, and somebody took our mark off: it is theirs now.
    MarkRemoved,
    /// Our mark stands on the object there, but it cannot be told any more whether we made it.
    Unclear,
    /// The server looked at it and refuses it.
    Rejected,
}

/// One thing to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Make the slot's namespace, if it is still missing.
    EnsureNamespace,
    /// Read what stands there, fresh from its server.
    Read,
    /// Let the server compare: a dry run of the delivery, which writes nothing.
    Compare,
    /// Read what stands there as it was right before this version of it.
    LookBefore {
        /// The version that was seen.
        version: Version,
    },
    /// Look afresh at a source that seems to be gone, or is being deleted, and at what it depends on.
    ConfirmGone(Key),
    /// Write the want.
    Deliver {
        /// What must stand there.
        expect: Expect,
        /// How it is written.
        how: How,
    },
    /// Bring the target's status back to its origin.
    Report(StatusReturn),
    /// Put our finalizer on the source, or take it off.
    Finalizer {
        /// The finalizer.
        name: Name,
        /// Put on, or taken off.
        add: bool,
    },
    /// Delete what stands there.
    Delete(Warrant),
    /// Take our mark off, and leave the object as it is.
    Release {
        /// Only from this object.
        uid: Uid,
        /// Only at this version.
        version: Version,
    },
    /// Take off all that we put on an object that is not ours, our mark among it.
    LetGo {
        /// Only from this object.
        uid: Uid,
        /// Only at this version.
        version: Version,
    },
}

/// What a delivery expects to find.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expect {
    /// Nothing. The write is not forced and must create; where it met something after all, our fields are
    /// released at once.
    New,
    /// This object. The write carries its uid and takes our fields back by force.
    Uid(Uid),
}

/// How a delivery is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// Server-side apply.
    Apply,
    /// A patch from the last state.
    Patch,
    /// Our mark alone: the rest is its place's own.
    Mark,
}

impl How {
    /// How a want is written in a place that can apply or cannot.
    pub fn of(delivery: Delivery, apply: bool) -> Self {
        if apply && delivery != Delivery::ThreeWay { Self::Apply } else { Self::Patch }
    }
}

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
        actions.push(Action::Report(want.policy.status));
    }
    let untold = slot.telling == Telling::Later && !actions.is_empty();
    if untold {
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
        None if untold => Verdict::Waiting(Wait::Unheard),
        None => Verdict::Settled,
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
        // Our copy stood there, and the view that we follow cannot tell whether it still does.
        (Seen::Unknown(doubt), _)
            if told_by_reading(*doubt)
                && !slot.missing
                && slot.record.uid.is_some()
                && slot.ready == Ready::Yes =>
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
    // The object is another's: our fields go, and it stays.
    if mark.overlay && slot.apply {
        return acting([Action::LetGo { uid: target.uid.clone(), version: target.version }]);
    }
    // The copy was to stay, whatever becomes of its source or of the configuration.
    if mark.leave || mark.overlay {
        return acting([Action::Release { uid: target.uid.clone(), version: target.version }]);
    }
    match slot.permit {
        Permit::Pending => return waiting(Wait::Scope),
        Permit::Held(change) => return Plan { verdict: Verdict::Held(change), actions: smallvec![] },
        Permit::Open => {}
    }
    match Warrant::new(evidence, target, mark, slot.owner) {
        Some(warrant) => acting([Action::Delete(warrant)]),
        // What the evidence lacks is a fresh look.
        None => match evidence {
            Evidence::SourceGone(gone) => acting([Action::ConfirmGone(gone.source().clone())]),
            Evidence::SourceDeleting(deleting) => acting([Action::ConfirmGone(deleting.source().clone())]),
            Evidence::Deselected(_) => waiting(Wait::Scope),
        },
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
    match slot.telling {
        Telling::Now => acting([action]),
        Telling::Later => waiting(Wait::Unheard),
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
