//! A fresh look at a source that seems to be gone: what is asked of its server, and what the answers say.
//!
//! kcp and Kubernetes delete every object of a kind with the CRD or APIBinding that defines it, and kcp every object of a
//! workspace with the workspace, by ordinary delete events. So it is asked whether the object alone is gone. A definition
//! that is there may have been made anew since, and then its objects went with the one before it. That is told by
//! versions, which order all writes of one server: a definition that was last written before a moment at which the object
//! was there, or was deleted, is the one that it had. One that was written since is the same if it was made before the
//! object was.

use std::fmt;

use mailboat_object::key::{Name, Uid, Version};
use mailboat_object::object::Object;
use mailboat_store::seen::{Absence, Gone};

use crate::mutation::{Mutation, broken};
use crate::want::Origin;

/// What a fresh look at the source's side found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// The object itself.
    pub object: Sighted,
    /// The workspace is there and not being deleted; true for a plain cluster that answered.
    pub workspace_lives: bool,
    /// What serves the object's kind.
    pub kind: Serving,
}

/// What a look finds of the object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sighted {
    /// The server answered 404 with a Status that names it.
    Missing,
    /// It is there.
    There,
    /// It is there and being deleted.
    Ending(Uid),
}

/// What serves a kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Serving {
    /// Nothing, now.
    Nothing,
    /// The server itself, or another one behind it: no CRD or binding that could be deleted with its objects.
    Itself,
    /// A CRD or an APIBinding.
    By(Definition),
}

/// A CRD or an APIBinding, as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// Which it is: made anew it is another.
    pub uid: Uid,
    /// It is being deleted.
    pub deleting: bool,
    /// When it was last written.
    pub version: Version,
    /// When it was made, by its server's clock.
    pub made_seconds: Option<u64>,
    /// The identity of the kind, if a binding names one.
    pub identity: Option<Name>,
}

/// Why a look does not show that the object alone is gone. Its text is a sentence for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Otherwise {
    /// The object is there.
    There,
    /// Its workspace goes.
    WorkspaceEnds,
    /// Its kind goes.
    KindEnds,
    /// Its kind came back.
    Redefined,
    /// The object, which was being deleted, is gone by now.
    Missing,
}

impl fmt::Display for Otherwise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::There => "its source is there after all",
            Self::WorkspaceEnds => "its source is not shown to be deleted: its workspace is being deleted",
            Self::KindEnds => {
                "its source is not shown to be deleted: its kind is not served, or what defines it is being deleted"
            }
            Self::Redefined => {
                "its source may have gone with its kind, whose definition was made anew or changed since it was last \
                 seen; delete the copy if it is not wanted"
            }
            Self::Missing => "its source, which was being deleted, is gone",
        })
    }
}

/// What is known of a source from when it was there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastSight {
    /// The latest version at which it is known to have been there, or at which it was seen to be deleted.
    version: Version,
    /// The latest version at which it is known to have been there.
    there_at: Version,
    /// When it was made, by its server's clock.
    made_seconds: Option<u64>,
    /// The identity that its kind had, if it had one; empty if it was not known then.
    identity: Option<Name>,
}

impl LastSight {
    /// An object as it is shown.
    pub fn present(object: &Object) -> Self {
        let (version, made_seconds) = (object.version, object.created_seconds());
        Self { version, there_at: version, made_seconds, identity: None }
    }

    /// How a source came to be known to be gone, and what a copy of it remembers, if it is a copy of just that.
    pub fn of(absence: Absence, origin: Option<&Origin>) -> Self {
        let deleted_at = (absence.how() == Gone::Deleted).then(|| absence.version());
        let there_at = origin.map(|origin| origin.version);
        Self {
            version: deleted_at.max(there_at).unwrap_or_default(),
            there_at: there_at.unwrap_or_default(),
            made_seconds: origin.and_then(|origin| origin.made_seconds),
            identity: origin.and_then(|origin| origin.identity.clone()),
        }
    }
}

/// An identity as it is remembered: the beginning of a kcp `identityHash`, which tells them apart as well as all of it.
pub fn identity(hash: &str) -> Name {
    Name::new(hash.get(..IDENTITY_LENGTH).unwrap_or(hash))
}

const IDENTITY_LENGTH: usize = 12;

impl Look {
    /// Whether it is this object, and it alone, that is being deleted. It is there still, and so what defines its kind is what
    /// defined it then.
    pub fn judge_ending(&self, uid: &Uid) -> Result<(), Otherwise> {
        let definition_ends = match &self.kind {
            Serving::Nothing => true,
            Serving::Itself => false,
            Serving::By(definition) => definition.deleting,
        };
        match &self.object {
            Sighted::Missing => Err(Otherwise::Missing),
            // A server that was restored from a backup may have it back as it was.
            Sighted::There => Err(Otherwise::There),
            Sighted::Ending(ending) if ending != uid => Err(Otherwise::There),
            Sighted::Ending(_) if !self.workspace_lives => Err(Otherwise::WorkspaceEnds),
            Sighted::Ending(_) if definition_ends => Err(Otherwise::KindEnds),
            Sighted::Ending(_) => Ok(()),
        }
    }

    /// Whether it is the object alone that is gone.
    pub fn judge(&self, sight: &LastSight) -> Result<(), Otherwise> {
        if self.object != Sighted::Missing {
            return Err(Otherwise::There);
        }
        if !self.workspace_lives {
            return Err(Otherwise::WorkspaceEnds);
        }
        match &self.kind {
            Serving::Nothing => Err(Otherwise::KindEnds),
            Serving::By(definition) if definition.deleting => Err(Otherwise::KindEnds),
            Serving::By(definition) if !definition.is_that_of(sight) && !broken(Mutation::AnyDefinition) => {
                Err(Otherwise::Redefined)
            }
            Serving::Itself | Serving::By(_) => Ok(()),
        }
    }
}

impl Definition {
    /// Whether it is the one that an object had when it was last seen.
    pub(crate) fn is_that_of(&self, sight: &LastSight) -> bool {
        let same_identity = match (&self.identity, &sight.identity) {
            // Nobody had read the binding when the copy was made. What was written after the binding last was, is of the
            // identity that it names.
            (Some(_), Some(then)) if then.is_empty() => self.version < sight.there_at,
            (Some(now), Some(then)) => now == then,
            _ => true,
        };
        let untouched = self.version < sight.version;
        // Within one second the two cannot be told apart.
        let older = match (self.made_seconds, sight.made_seconds) {
            (Some(definition), Some(object)) => definition < object,
            _ => false,
        };
        same_identity && (untouched || older)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sight(version: u64, made: Option<u64>) -> LastSight {
        let version = Version(version);
        LastSight { version, there_at: version, made_seconds: made, identity: Some(Name::new("i")) }
    }

    fn defined(version: u64, made: u64) -> Definition {
        let (version, made_seconds) = (Version(version), Some(made));
        let (uid, identity) = (Uid::parse("d"), Some(Name::new("i")));
        Definition { uid, deleting: false, version, made_seconds, identity }
    }

    fn look(kind: Serving) -> Look {
        Look { object: Sighted::Missing, workspace_lives: true, kind }
    }

    #[test]
    fn the_object_alone_is_gone_where_nothing_else_is() {
        let sight = sight(50, Some(1_000));
        assert_eq!(look(Serving::Itself).judge(&sight), Ok(()));
        assert_eq!(look(Serving::By(defined(40, 500))).judge(&sight), Ok(()));
        assert_eq!(look(Serving::Nothing).judge(&sight), Err(Otherwise::KindEnds));
        let there = Look { object: Sighted::There, ..look(Serving::Itself) };
        assert_eq!(there.judge(&sight), Err(Otherwise::There));
        let ends = Look { workspace_lives: false, ..look(Serving::Itself) };
        assert_eq!(ends.judge(&sight), Err(Otherwise::WorkspaceEnds));
        let deleting = Definition { deleting: true, ..defined(40, 500) };
        assert_eq!(look(Serving::By(deleting)).judge(&sight), Err(Otherwise::KindEnds));
    }

    #[test]
    fn what_is_deleted_with_its_workspace_or_its_definition_does_not_go_alone() {
        let uid = Uid::parse("o");
        let there = |kind| Look { object: Sighted::Ending(uid.clone()), ..look(kind) };
        assert_eq!(there(Serving::Itself).judge_ending(&uid), Ok(()));
        assert_eq!(there(Serving::By(defined(90, 2_000))).judge_ending(&uid), Ok(()));
        assert_eq!(there(Serving::Nothing).judge_ending(&uid), Err(Otherwise::KindEnds));
        let deleting = Definition { deleting: true, ..defined(40, 500) };
        assert_eq!(there(Serving::By(deleting)).judge_ending(&uid), Err(Otherwise::KindEnds));
        let ends = Look { workspace_lives: false, ..there(Serving::Itself) };
        assert_eq!(ends.judge_ending(&uid), Err(Otherwise::WorkspaceEnds));
        assert_eq!(look(Serving::Itself).judge_ending(&uid), Err(Otherwise::Missing));
        for object in [Sighted::There, Sighted::Ending(Uid::parse("another"))] {
            let look = Look { object, ..look(Serving::Itself) };
            assert_eq!(look.judge_ending(&uid), Err(Otherwise::There));
        }
    }

    #[test]
    fn a_definition_that_was_made_anew_took_its_objects_along() {
        let table = [
            // Last written before the object was seen: the same, whatever the clocks say.
            (defined(40, 2_000), Some(1_000), Ok(())),
            (defined(40, 2_000), None, Ok(())),
            // Changed since, but made before the object was.
            (defined(60, 999), Some(1_000), Ok(())),
            // Made since, or within the same second.
            (defined(60, 1_000), Some(1_000), Err(Otherwise::Redefined)),
            (defined(60, 2_000), Some(1_000), Err(Otherwise::Redefined)),
            // Changed since, and nobody knows when the object was made.
            (defined(60, 999), None, Err(Otherwise::Redefined)),
        ];
        for (definition, made, judged) in table {
            assert_eq!(
                look(Serving::By(definition.clone())).judge(&sight(50, made)),
                judged,
                "{definition:?}"
            );
        }
    }

    #[test]
    fn behind_another_identity_are_other_objects() {
        let other = Definition { identity: Some(Name::new("other")), ..defined(40, 500) };
        assert_eq!(look(Serving::By(other)).judge(&sight(50, Some(1_000))), Err(Otherwise::Redefined));
        let unnamed = Definition { identity: None, ..defined(40, 500) };
        assert_eq!(look(Serving::By(unnamed)).judge(&sight(50, Some(1_000))), Ok(()));
    }

    #[test]
    fn an_identity_that_nobody_had_read_is_that_of_a_binding_older_than_the_object() {
        let unread = |there_at| LastSight {
            version: Version(50),
            there_at: Version(there_at),
            made_seconds: Some(1_000),
            identity: Some(Name::EMPTY),
        };
        let bound = || look(Serving::By(defined(40, 500)));
        assert_eq!(bound().judge(&unread(41)), Ok(()));
        // The binding was written since: it may have named another identity when the object was there, whenever it was
        // made, and whenever the object was seen to go.
        assert_eq!(bound().judge(&unread(40)), Err(Otherwise::Redefined));
        assert_eq!(bound().judge(&unread(0)), Err(Otherwise::Redefined));
    }
}
