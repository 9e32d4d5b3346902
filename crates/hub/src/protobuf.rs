//! Objects in protobuf, the form in which Kubernetes' own clients prefer kinds that they have types for: kubectl, its
//! controllers, and whatever else is made of client-go.
//!
//! `data/kubernetes.protobuf` lists the messages of Kubernetes 1.36: for each field its number, its name in JSON and its type.
//! `inline` fields stand among the members of their parent in JSON, and zeros of `omitzero` fields are left out. Lists have
//! no messages there: all are metadata and items.

mod read;
mod table;
#[cfg(test)]
mod tests;
mod time;
pub(crate) mod wire;
mod write;

pub use crate::openapi::gnostic::read as read_schemas;
pub use read::{event as read_event, read};
pub use write::write;
pub(crate) use write::{event, is_known, list};

/// The media type.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The media type of a watch, whose events each say first how long they are.
pub(crate) const PROTOBUF_STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

const MAGIC: &[u8] = b"k8s\0";

/// Why a body cannot be read, or an object cannot be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadProtobuf {
    /// It does not begin as such bodies do.
    #[error("provided data does not appear to be a protobuf message, expected prefix 6b 38 73 00")]
    NoMagic,
    /// It ends too early, or a field is of another type than it should be.
    #[error("the protobuf message is damaged")]
    Damaged,
    /// The kind is not known in this form.
    #[error("the kind is not known in protobuf")]
    UnknownKind,
    /// It is nested too deeply.
    #[error("the protobuf message is nested too deeply")]
    TooDeep,
}
