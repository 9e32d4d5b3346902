//! What stands on a copy, so that it is known again after any restart.

mod last;
mod standard;
mod text;

use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::key::{Key, Name, Uid};
use mailboat_object::object::Object;

use serde_json::Value;

use crate::mutation::{Mutation, broken};
use crate::want::{Origin, Want};

pub use last::{LAST_ANNOTATION, LastState, OnTheCopy};
pub use standard::{MARK_ANNOTATION, OWNER_LABEL, StandardMarks};

/// Whose an object is: role, installation, and SyncTarget or agent. Never the route, so that renamed
/// configuration deletes nothing (H8).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OwnerId(pub Name);

/// All that survives a restart, on the copy itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Who put it there.
    pub owner: OwnerId,
    /// What it is a copy of.
    pub origin: Origin,
    /// The content that was intended.
    pub intent: Digest,
    /// It is to stay when it is no longer wanted (create-only, orphaned on purpose). On the copy, because after
    /// a restart the configuration that said so may be gone (H16).
    pub leave: bool,
    /// Whoever put it there knew the object. A first delivery does not: it may meet something, and if its answer is
    /// then lost, our mark stands on what is not ours.
    pub confirmed: bool,
    /// The object is another's, and only some of its fields are ours: they go when they are no longer wanted, and the
    /// object stays.
    pub overlay: bool,
}

impl Mark {
    /// Whether what bears it stays where it is when nobody wants it any more: our mark comes off, and nothing else. So does
    /// every namespace, whatever its mark says: a server deletes with it all that stands in it, whoever put it there.
    pub fn stays(&self, at: &Key) -> bool {
        self.leave || self.overlay || (is_namespace(at) && !broken(Mutation::NamespacesGo))
    }
}

fn is_namespace(at: &Key) -> bool {
    at.kind.group().is_empty() && at.kind.resource() == "namespaces"
}

/// What the marks on an object say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Marked {
    /// It bears our owner's mark.
    Ours(Mark),
    /// It bears another owner's.
    Others(OwnerId),
    /// It bears none.
    Nobodys,
}

/// The wire names of one role's marks.
pub trait Marks: Send + Sync {
    /// Whose mark an object bears. A mark that was copied along by a controller (a ReplicaSet with its
    /// Deployment's annotations) is not a mark: the value names the object it belongs to.
    fn read(&self, target: &Object) -> Marked;
    /// The intent with our mark on it and, if it is for one object only, that object's uid: as it goes over the
    /// wire. Without a uid the mark says that it is [not confirmed](Mark::confirmed). An error is a sentence for
    /// people.
    fn write(&self, want: &Want, uid: Option<&Uid>) -> Result<Arc<[u8]>, String>;
    /// The merge patch that takes our mark off.
    fn remove(&self) -> Value;
    /// Where copies that are patched remember what was last delivered.
    fn last_state(&self) -> &dyn LastState {
        &OnTheCopy
    }
}
