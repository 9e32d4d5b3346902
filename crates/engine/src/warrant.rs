//! What a deletion needs.
//!
//! A delivered object is deleted only if it is present with our owner's mark and the uid that was seen, and
//! either configuration still selects it and its source is proven absent by a fresh look, or the whole
//! configuration is known and no longer selects it, or the source is being deleted alone and waits for us. Each of
//! these is a value that only evidence makes; without one there is no [`Warrant`], and without a warrant there
//! is no delete.

use mailboat_object::key::{Key, Name, Uid, Version};
use mailboat_object::object::Object;
use mailboat_store::seen::{Absence, Gone};

use crate::look::{LastSight, Look, Otherwise};
use crate::mark::{Mark, OwnerId};
use crate::mutation::{Mutation, broken};
use crate::want::Origin;

/// A second look is at least so many milliseconds after the first. kcp was seen to show an empty kind 0.6 s before the
/// bindings that say why.
pub const LOOK_AGAIN_AFTER: u64 = 10_000;

/// What a look found is acted on within so many milliseconds, or not at all.
pub const LOOK_HOLDS_FOR: u64 = 10_000;

/// Why nobody wants a slot any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Evidence {
    /// Configuration still selects it, and its source is gone.
    SourceGone(SourceGone),
    /// Its source is being deleted and bears our finalizer.
    SourceDeleting(SourceDeleting),
    /// The whole configuration is known and no longer selects it.
    Deselected(Deselected),
}

impl Evidence {
    /// Whether it is enough to act on: a fresh look confirmed what it takes an event to begin with, or the whole configuration
    /// says so.
    pub fn is_confirmed(&self) -> bool {
        match self {
            Self::SourceGone(gone) => gone.is_confirmed(),
            Self::SourceDeleting(deleting) => deleting.is_confirmed(),
            Self::Deselected(_) => true,
        }
    }
}

/// The source is gone: by a proof from the store, and, before anything is deleted, by a fresh look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceGone {
    source: Key,
    absence: Absence,
    /// What is known of it from when it was there.
    sight: LastSight,
    /// When a look found that it alone is gone, in milliseconds.
    looked_at: Option<u64>,
    confirmed: Option<Confirmed>,
    /// The last look did not find that it alone is gone, or could not be taken.
    disputed: bool,
}

/// Fresh looks at the source's side, after the event, found that the object alone is gone; see [`Look`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Confirmed {
    /// When that was asked, in milliseconds.
    at: u64,
}

impl SourceGone {
    /// The source's absence as the store proved it; not yet confirmed.
    pub fn new(source: Key, absence: Absence) -> Self {
        let sight = LastSight::of(absence, None);
        Self { source, absence, sight, looked_at: None, confirmed: None, disputed: false }
    }

    /// The same, with what a copy remembers of the source.
    #[must_use]
    pub fn remembered_by(self, origin: &Origin) -> Self {
        let origin = Some(origin).filter(|origin| origin.key == self.source);
        Self { sight: LastSight::of(self.absence, origin), ..self }
    }

    /// The same, after a fresh look that was `asked` for then and answered now. It is as fresh as its question: a process that
    /// was stopped meanwhile reads an answer of long ago. What was seen to be deleted is confirmed by one. What is missing from a list may be
    /// missing because its kind is being bound to another identity, which the binding says a moment later; so that takes
    /// a second look after [`LOOK_AGAIN_AFTER`].
    pub fn looked(self, asked: u64, now: u64, look: &Look) -> Result<Self, Otherwise> {
        look.judge(&self.sight)?;
        let first = self.looked_at.unwrap_or(now);
        let enough = self.seen_live() || asked >= first + LOOK_AGAIN_AFTER;
        let confirmed = enough.then_some(Confirmed { at: asked });
        Ok(Self { looked_at: Some(first), confirmed, disputed: false, ..self })
    }

    /// Whether it is of the same going of the same source, whatever was found out about it: one that came back goes anew.
    pub fn is_that(&self, other: &Self) -> bool {
        self.source == other.source && self.absence == other.absence
    }

    /// When the next look is due, if one found that it alone is gone and that is not enough.
    pub fn look_again_at(&self) -> Option<u64> {
        self.looked_at.filter(|_| !self.is_confirmed()).map(|first| first + LOOK_AGAIN_AFTER)
    }

    /// A look found something else, or was not possible.
    pub fn dispute(&mut self) {
        self.disputed = true;
    }

    /// Whether it was seen to be deleted while we watched, and no look has said anything else since.
    pub fn stands(&self) -> bool {
        self.seen_live() && !self.disputed
    }

    /// Whether the last look found that it may have gone with something larger.
    pub fn is_disputed(&self) -> bool {
        self.disputed
    }

    /// Whether it was confirmed, and so long ago that the source may well have been made anew since: whoever could not
    /// act on it at once looks again.
    pub fn is_stale(&self, now: u64) -> bool {
        self.confirmed.is_some_and(|confirmed| now > confirmed.at + LOOK_HOLDS_FOR)
    }

    /// The same, to be confirmed anew.
    pub fn unconfirmed(&mut self) {
        self.confirmed = None;
    }

    /// The source that is gone.
    pub fn source(&self) -> &Key {
        &self.source
    }

    /// The version as of which it is gone.
    pub fn version(&self) -> Version {
        self.absence.version()
    }

    /// Whether a fresh look confirmed it.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed.is_some()
    }

    /// Whether it was seen to be deleted while we watched, as opposed to missing from a list.
    pub fn seen_live(&self) -> bool {
        self.absence.how() == Gone::Deleted
    }
}

/// The source bears a deletionTimestamp and our finalizer. Made from the source as it was seen; and, before anything is
/// deleted, confirmed by a fresh look: what goes with its definition or its workspace bears the same timestamp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceDeleting {
    source: Key,
    uid: Uid,
    finalizer: Name,
    confirmed: bool,
    seen_live: bool,
}

impl SourceDeleting {
    /// Evidence, if this source is being deleted and waits for this finalizer.
    pub fn of(source: &Object, finalizer: &Name) -> Option<Self> {
        let waits = source.deleting && source.finalizers().any(|f| f == finalizer.as_str());
        waits.then(|| Self {
            source: source.key.clone(),
            uid: source.uid.clone(),
            finalizer: finalizer.clone(),
            confirmed: false,
            seen_live: false,
        })
    }

    /// The same, seen to begin while we watched, or only found so.
    #[must_use]
    pub fn watched(self, seen_live: bool) -> Self {
        Self { seen_live, ..self }
    }

    /// Whether its deletion was seen to begin while we watched, as opposed to shown by a list.
    pub fn seen_live(&self) -> bool {
        self.seen_live
    }

    /// The same, with what an earlier look at this very object found. It holds for good: what its user deletes does not come
    /// back.
    #[must_use]
    pub fn remembering(self, before: Option<&Self>) -> Self {
        let confirmed = before.filter(|before| self.is_that(before)).is_some_and(|before| before.confirmed);
        Self { confirmed, ..self }
    }

    /// Whether it is of the same object.
    pub fn is_that(&self, other: &Self) -> bool {
        self.source == other.source && self.uid == other.uid
    }

    /// The same, after a fresh look.
    pub fn looked(self, look: &Look) -> Result<Self, Otherwise> {
        look.judge_ending(&self.uid)?;
        Ok(Self { confirmed: true, ..self })
    }

    /// Whether a fresh look confirmed that it goes alone.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// The finalizer by which it waits for us.
    pub fn finalizer(&self) -> &Name {
        &self.finalizer
    }

    /// The source.
    pub fn source(&self) -> &Key {
        &self.source
    }
}

/// No route selects it, as of a configuration that is known as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deselected {
    configuration: u64,
}

/// The configuration of a role, known as a whole: every list that it is made of was completed. Handed out by
/// the engine alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WholeConfiguration {
    version: u64,
}

impl WholeConfiguration {
    /// The `version`th state of a configuration all of whose lists are complete.
    pub(crate) fn known(version: u64) -> Self {
        Self { version }
    }

    /// Evidence that this configuration does not select a slot; asked for by whoever just evaluated that.
    pub fn does_not_select(self) -> Deselected {
        Deselected { configuration: self.version }
    }
}

impl Deselected {
    /// Which state of the configuration it was.
    pub fn configuration(&self) -> u64 {
        self.configuration
    }
}

/// The right to delete one object as it was seen. Its uid and version go to the server as preconditions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warrant {
    uid: Uid,
    version: Version,
    why: Evidence,
}

impl Warrant {
    /// A warrant, if the evidence carries one: confirmed where it must be, for an object that bears our owner's
    /// mark, is not to be left, and is not being deleted already.
    pub fn new(why: &Evidence, target: &Object, mark: &Mark, owner: &OwnerId) -> Option<Self> {
        let carries = why.is_confirmed() || broken(Mutation::ActOnTheEvent);
        let goes = !mark.stays(&target.key) && !target.deleting;
        (carries && mark.owner == *owner && goes).then(|| Self {
            uid: target.uid.clone(),
            version: target.version,
            why: why.clone(),
        })
    }

    /// The uid that the object must have.
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// The version that the object must be at.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Why it may go.
    pub fn why(&self) -> &Evidence {
        &self.why
    }
}
