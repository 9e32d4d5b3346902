//! What a role asks for: objects wanted in places, and how they are to be delivered.

use std::fmt;
use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::key::{Key, Name, Uid, Version};
use mailboat_object::object::Object;

use crate::mark::Marks;

/// One object wanted in one place.
#[derive(Clone)]
pub struct Want {
    /// Where it should stand.
    pub slot: Key,
    /// Whose content it is. It goes into the mark, and status returns there.
    pub origin: Origin,
    /// What should stand there.
    pub body: Body,
    /// How it is delivered and withdrawn.
    pub policy: Arc<Policy>,
}

impl Want {
    /// Whether the copy is to stay when it is no longer wanted.
    pub fn leaves(&self) -> bool {
        self.policy.withdrawal == Withdrawal::Leave || self.policy.delivery == Delivery::CreateOnly
    }
}

/// The object that a copy was made from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Its key.
    pub key: Key,
    /// Its uid when the copy was made.
    pub uid: Uid,
    /// Its version when the copy was made. A source that later shows a lower one was restored from a backup.
    pub version: Version,
    /// Its generation when the copy was made; 0 where its kind counts none.
    pub generation: u64,
    /// When it was made, by its server's clock, if that is known. What defines its kind is older, or is another
    /// definition than it had.
    pub made_seconds: Option<u64>,
    /// The identity under which its kind is bound, if it is. The engine knows it, or knows that it does not yet: then
    /// it is empty.
    pub identity: Option<Name>,
}

impl Origin {
    /// The origin of what is made from this object.
    pub fn of(source: &Object) -> Self {
        Self {
            key: source.key.clone(),
            uid: source.uid.clone(),
            version: source.version,
            generation: source.generation,
            made_seconds: source.created_seconds(),
            identity: None,
        }
    }

    /// Whether the identity of its kind is known.
    pub fn is_identified(&self) -> bool {
        self.identity.as_ref().is_some_and(|identity| !identity.is_empty())
    }
}

/// An intent: the JSON to deliver, shared by every destination that gets the same.
#[derive(Clone)]
pub struct Body {
    /// The object as JSON, without what does not travel.
    pub json: Arc<[u8]>,
    /// Its content, whatever the order of members.
    pub digest: Digest,
}

impl fmt::Debug for Body {
    /// Size and digest; never the content, which is a tenant's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "body({} bytes, {})", self.json.len(), self.digest)
    }
}

/// How a want is delivered, reported and withdrawn. Made once per route and shared.
#[derive(Clone)]
pub struct Policy {
    /// How the copy is written.
    pub delivery: Delivery,
    /// Whether and how the copy's status comes back.
    pub status: StatusReturn,
    /// What becomes of the copy when it is no longer wanted.
    pub withdrawal: Withdrawal,
    /// Whether the source bears our finalizer ([`Options::finalizer`](crate::engine::Options::finalizer)): its
    /// deletionTimestamp withdraws its copies, and it goes after the last of them.
    pub finalizer: bool,
    /// What to do about an object that stands there already and is not ours.
    pub adopt: Adopt,
    /// The wire names of the marks on copies.
    pub marks: Arc<dyn Marks>,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}, {:?}, {:?}", self.delivery, self.status, self.withdrawal, self.adopt)
    }
}

impl Policy {
    /// The policy of most routes: applied, deleted when no longer wanted, without status or finalizer, and never over
    /// what stands there already.
    pub fn plain(marks: Arc<dyn Marks>) -> Self {
        Self {
            delivery: Delivery::Apply,
            status: StatusReturn::Off,
            withdrawal: Withdrawal::Delete,
            finalizer: false,
            adopt: Adopt::Never,
            marks,
        }
    }

    /// Whether another policy asks for the same. The marks of a role are the same in all its policies.
    pub fn is_like(&self, other: &Self) -> bool {
        self.delivery == other.delivery
            && self.status == other.status
            && self.withdrawal == other.withdrawal
            && self.finalizer == other.finalizer
            && self.adopt == other.adopt
    }
}

/// How a copy is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// Server-side apply with our field manager; a patch from the last state where a place cannot truly apply.
    Apply,
    /// Created when missing, then left to its place: neither overwritten nor deleted.
    CreateOnly,
    /// A merge patch from the last state that was delivered to the present one: others may write the same object, and
    /// keep what they make of it until its source changes.
    ThreeWay,
    /// Some fields on an object that is not ours; the object is neither created nor deleted.
    Overlay,
    /// Neither made nor changed: what stands there is only known to be this want's. For configuration that is on its way
    /// out, whose copies must still be told from those that nobody knows anything of.
    Keep,
}

/// Whether and how a copy's status comes back to its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StatusReturn {
    /// It stays where it is.
    Off,
    /// Through the origin's status subresource.
    Subresource,
    /// Into the origin itself, where its kind has no status subresource.
    Inline,
}

/// What becomes of a copy that is no longer wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Withdrawal {
    /// It is deleted.
    Delete,
    /// It stays; our mark is taken off.
    Leave,
}

/// What to do about an object that stands in the slot and bears no mark of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adopt {
    /// Leave it and report a conflict.
    Never,
    /// Take it over if it bears nobody's mark: the user asked for it on the source.
    Unmarked,
}

/// Undecided: nothing new is sent and nothing is withdrawn until it is known better.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    /// One sentence for people.
    pub reason: String,
    /// What it waits for, if that is one object.
    pub on: Option<Key>,
}
