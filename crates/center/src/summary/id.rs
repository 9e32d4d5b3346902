//! What summaries are about: edges, objects and copies, by name.

use mailboat_api::edge::ObjectReference;
use mailboat_object::key::{KindId, Name, Uid};

/// An edge: its SyncTarget's uid.
pub type EdgeId = Uid;

/// A workload object, by the kind that it has at its edges.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ObjectId {
    /// Group and resource.
    pub kind: KindId,
    /// The namespace; empty for what is cluster-scoped.
    pub namespace: Name,
    /// The name.
    pub name: Name,
}

impl ObjectId {
    /// The object that a reference names.
    pub fn of(reference: &ObjectReference) -> Self {
        Self {
            kind: KindId::new(&reference.group, &reference.resource),
            namespace: Name::new(&reference.namespace),
            name: Name::new(&reference.name),
        }
    }

    /// A reference to it.
    pub(super) fn reference(&self) -> ObjectReference {
        ObjectReference {
            group: self.kind.group().to_owned(),
            resource: self.kind.resource().to_owned(),
            namespace: self.namespace.to_string(),
            name: self.name.to_string(),
        }
    }
}

/// A copy of a placement's object: at which edge, and of which object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CopyId {
    /// The edge.
    pub edge: EdgeId,
    /// The object.
    pub object: ObjectId,
}
