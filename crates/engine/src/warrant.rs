//! What a deletion needs.
//!
//! A delivered object is deleted only if it is present with our owner's mark and the uid that was seen, and
//! either configuration still selects it and its source is proven absent by a fresh look, or the whole
//! configuration is known and no longer selects it, or the source is being deleted and waits for us. Each of
//! these is a value that only evidence makes; without one there is no [`Warrant`], and without a warrant there
//! is no delete.

use mailboat_object::key::{Key, Name, Uid, Version};
use mailboat_object::object::Object;
use mailboat_store::seen::{Absence, Gone};

use crate::mark::{Mark, OwnerId};
use crate::mutation::{Mutation, broken};

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

/// The source is gone: by a proof from the store, and, before anything is deleted, by a fresh look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceGone {
    source: Key,
    absence: Absence,
    confirmed: Option<Confirmed>,
}

/// A fresh look at the source's side, after the event: the object is not there (a 404 that names it), its
/// workspace is not being deleted, and what serves its kind is not either and is still the same.
///
/// kcp deletes every object of a kind with its APIBinding or CRD, and every object of a workspace with the
/// workspace, and sends ordinary delete events for them: an event is a ground to look, not to act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Confirmed(());

/// What a fresh look at the source's side found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// The server answered 404 with a Status that names the object.
    pub object_missing: bool,
    /// The workspace is there and not being deleted; true for a plain cluster that answered.
    pub workspace_lives: bool,
    /// The APIBinding or CRD that serves the kind is there, not being deleted, and of the same identity; true
    /// for kinds that are built in.
    pub kind_served_as_before: bool,
}

impl Confirmed {
    /// A confirmation, if the look allows one.
    pub fn by(look: Look) -> Option<Self> {
        (look.object_missing && look.workspace_lives && look.kind_served_as_before).then_some(Self(()))
    }
}

impl SourceGone {
    /// The source's absence as the store proved it; not yet confirmed.
    pub fn new(source: Key, absence: Absence) -> Self {
        Self { source, absence, confirmed: None }
    }

    /// The same, confirmed by a fresh look.
    #[must_use]
    pub fn confirmed(self, by: Confirmed) -> Self {
        Self { confirmed: Some(by), ..self }
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

/// The source bears a deletionTimestamp and our finalizer. Made from the source as it was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceDeleting {
    source: Key,
    version: Version,
    finalizer: Name,
}

impl SourceDeleting {
    /// Evidence, if this source is being deleted and waits for this finalizer.
    pub fn of(source: &Object, finalizer: &Name) -> Option<Self> {
        let waits = source.deleting && source.finalizers().any(|f| f == finalizer.as_str());
        waits.then(|| Self {
            source: source.key.clone(),
            version: source.version,
            finalizer: finalizer.clone(),
        })
    }

    /// The finalizer by which it waits for us.
    pub fn finalizer(&self) -> &Name {
        &self.finalizer
    }

    /// The source.
    pub fn source(&self) -> &Key {
        &self.source
    }

    /// The version at which it was seen to be deleting.
    pub fn version(&self) -> Version {
        self.version
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
        let carries = match why {
            Evidence::SourceGone(gone) => gone.is_confirmed() || broken(Mutation::ActOnTheEvent),
            Evidence::SourceDeleting(_) | Evidence::Deselected(_) => true,
        };
        let goes = !mark.leave && !mark.overlay && !target.deleting;
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
