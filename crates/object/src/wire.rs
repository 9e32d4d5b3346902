//! Requests to an API server, its replies and its faults, as plain values.
//!
//! The engine asks for a [`Call`] and is told a [`Reply`] or a [`Fault`]; how that becomes bytes on a
//! connection is the business of the `cluster` crate alone, and a simulated server answers the same values.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::key::{Key, Name, Uid, Version};

/// One request about one object.
#[derive(Clone, Debug)]
pub struct Call {
    /// The object. Its kind is looked up in what the cluster serves; the served version is used.
    pub key: Key,
    /// What to do with it.
    pub verb: Verb,
    /// On which part of it.
    pub part: Part,
    /// Let the server check and answer without storing anything.
    pub dry_run: bool,
}

/// Which part of an object a call reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Part {
    /// The object itself.
    #[default]
    Whole,
    /// Its `status` subresource.
    Status,
    /// Its `scale` subresource.
    Scale,
    /// The `token` subresource of a ServiceAccount, which is only ever created: each time a new token.
    Token,
}

/// What a call does.
#[derive(Clone)]
pub enum Verb {
    /// Read it, fresh from the server's store and never from its watch cache.
    Get,
    /// Read it as it was at a version of the server, as a list of one object or none. Servers remember for some
    /// minutes; what they have forgotten is [`FaultKind::Expired`].
    GetAt(Version),
    /// Create it; a fault if it exists.
    Create {
        /// The object as JSON.
        body: Arc<[u8]>,
        /// The field manager to write down.
        manager: Name,
    },
    /// Server-side apply. Refused as a bug where a place cannot do it truly (see `Abilities`).
    Apply {
        /// The intent as JSON: the fields that we own, nothing else.
        body: Arc<[u8]>,
        /// The field manager.
        manager: Name,
        /// Take over fields that others own.
        force: bool,
    },
    /// Replace it as a whole; conflicts unless it is still at the version in the body.
    Replace {
        /// The object as JSON, with `metadata.resourceVersion`.
        body: Arc<[u8]>,
        /// The field manager to write down.
        manager: Name,
    },
    /// A merge patch (RFC 7386). Preconditions go into its `metadata` (uid, resourceVersion).
    Merge {
        /// The patch as JSON.
        body: Arc<[u8]>,
        /// The field manager to write down.
        manager: Name,
    },
    /// A JSON patch (RFC 6902).
    Json {
        /// The patch as JSON.
        body: Arc<[u8]>,
        /// The field manager to write down.
        manager: Name,
    },
    /// Delete it if it still is what was seen.
    Delete {
        /// Only the object with this uid.
        uid: Uid,
        /// Only at this version, if given.
        version: Option<Version>,
        /// What becomes of its dependents.
        propagation: Propagation,
    },
}

/// What becomes of an object's dependents when it is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Propagation {
    /// They go after it.
    #[default]
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl fmt::Debug for Verb {
    /// The verb and the size of its body; never the body, which is a tenant's data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get => f.write_str("get"),
            Self::GetAt(version) => write!(f, "get at {version:?}"),
            Self::Create { body, .. } => write!(f, "create({} bytes)", body.len()),
            Self::Apply { body, force, .. } => write!(f, "apply({} bytes, force: {force})", body.len()),
            Self::Replace { body, .. } => write!(f, "replace({} bytes)", body.len()),
            Self::Merge { body, .. } => write!(f, "merge patch({} bytes)", body.len()),
            Self::Json { body, .. } => write!(f, "JSON patch({} bytes)", body.len()),
            Self::Delete { uid, version, .. } => write!(f, "delete({uid} at {version:?})"),
        }
    }
}

/// What a server answered to a call that succeeded.
#[derive(Clone)]
pub struct Reply {
    /// The body: the object after the call, or a Status after a delete that was carried out at once.
    pub body: Box<[u8]>,
    /// 201: the call made the object. After an apply this tells "ours from the start" from "was there".
    pub created: bool,
    /// `Warning` headers, without their code and agent, in the order sent.
    pub warnings: Vec<String>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "reply({} bytes, created: {}, {} warnings)",
            self.body.len(),
            self.created,
            self.warnings.len()
        )
    }
}

/// Why a call, a list or a watch did not succeed, classified once, where the answer was read.
///
/// The text is for people (conditions, logs): the server's own message where it gave one, without bodies,
/// tokens or values.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Fault {
    /// What to do about it.
    pub kind: FaultKind,
    /// One sentence for people.
    pub text: String,
}

/// What a fault means for whoever made the request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FaultKind {
    /// Passing: a lost connection, a time-out, 429, 5xx, and those 403s of kcp that pass in a moment. Try
    /// again, not before the given time if the server named one.
    Retry(Option<Duration>),
    /// The server cannot be reached or spoken to at all (refused, no route, TLS): its cluster is away.
    Away,
    /// Somebody else was faster: 409 with reason Conflict, or a precondition (uid, version) that no longer
    /// holds. Read again and decide anew.
    Conflict,
    /// A create or a first apply met something that was there: 409 with reason AlreadyExists.
    Exists,
    /// This object is not there: 404 with a Status that names it.
    NotFound,
    /// What was to be made cannot be, because its namespace is not there (yet).
    NoNamespace,
    /// The version or the continue token is too old: 410.
    Expired,
    /// The kind is not served here: 404 without a Status that names the object, or discovery lacks it.
    Unserved,
    /// 403 that does not pass by itself.
    Forbidden,
    /// 401: the credential is unknown or no longer valid.
    Unauthorized,
    /// The server looked at the object and refuses it: 400, 422, an admission's 403.
    Invalid,
    /// Too large for the server or for our own limit.
    TooLarge,
    /// Our own mistake: a request that must never be made.
    Bug,
}

impl Fault {
    /// A fault of this kind with a sentence for people.
    pub fn new(kind: FaultKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// Whether the same request may succeed later without anybody changing it.
    pub fn passes(&self) -> bool {
        matches!(
            self.kind,
            FaultKind::Retry(_)
                | FaultKind::Away
                | FaultKind::NoNamespace
                | FaultKind::Unauthorized
                | FaultKind::Unserved
        )
    }
}

/// What a place can do beyond reading; asked by whoever plans writes, enforced where they are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Abilities {
    /// Server-side apply is truly that. Through a view of kcp it is recorded as an update and fields left out
    /// of the next one stay, so there only merge and JSON patches are right.
    pub apply: bool,
    /// One whole cluster or workspace, as opposed to a view of many.
    pub whole: bool,
}
