//! The words of a decision: what is known of a slot, how it stands, and what is done about it.

use std::fmt;

use mailboat_object::key::{Key, Name, Uid, Version};
use mailboat_object::object::Object;
use mailboat_store::seen::{Doubt, Seen};
use smallvec::SmallVec;

use crate::mark::{Marked, OwnerId};
use crate::record::Record;
use crate::want::{Delivery, Hold, StatusReturn, Want};
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
    /// This object waits: another hand keeps rewriting or deleting it.
    Contended,
}

/// Whether a slot's source can be told something: a status, or that we wait on it. Nothing else waits for that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Telling {
    /// It can.
    Now,
    /// It did not take what it was told a moment ago, and is told again later.
    Later,
    /// Its cluster is away: it is neither told anything nor looked at.
    Away,
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
    /// The cluster of its source to come back.
    SourceCluster,
    /// Its time, because another hand keeps rewriting what we own, or deleting it.
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

impl Action {
    /// Whether it changes anything anywhere.
    pub fn writes(&self) -> bool {
        match self {
            Self::Read | Self::Compare | Self::LookBefore { .. } | Self::ConfirmGone(_) => false,
            Self::EnsureNamespace
            | Self::Deliver { .. }
            | Self::Report(_)
            | Self::Finalizer { .. }
            | Self::Delete(_)
            | Self::Release { .. }
            | Self::LetGo { .. } => true,
        }
    }
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
