//! An object: its JSON and its head.

pub(crate) mod decode;
mod hands;
mod keep;
mod text;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub use self::keep::MARK_ANNOTATION;
use self::text::Text;
use crate::digest::Digest;
use crate::edit::Edit;
use crate::json::{Raw, Span};
use crate::key::{ClusterId, Key, KindId, Name, Uid, Version};
use crate::malformed::Malformed;
use crate::timestamp::unix_seconds;

/// An object as one server had it at one version: immutable, and shared as `Arc<Object>`.
///
/// What decisions need is in its fields; the rest is JSON, in an allocation of its own and without
/// `managedFields`, of which only [`Hands`] stays.
pub struct Object {
    /// Where it stands.
    pub key: Key,
    /// Its uid; empty if the body has none.
    pub uid: Uid,
    /// Its resource version; 0 if the body has none.
    pub version: Version,
    /// Its generation; 0 if its kind has none.
    pub generation: u64,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// The digest of its content: everything but `status` and what does not travel ([`crate::travel`]).
    pub content: Digest,
    /// The digest of its `status`; [`Digest::NONE`] if there is none.
    pub status: Digest,
    /// Who wrote it.
    pub hands: Hands,
    /// When it was made, in Unix seconds; 0 if it does not say.
    created: u32,
    /// Shared by all heads that have the same.
    text: Arc<Text>,
    /// The status, where it is kept beside a head.
    status_apart: Option<Box<str>>,
    keep: Keep,
}

/// What stays of an object's `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Hands {
    /// The digest of the set of fields that our own manager applied; [`Digest::NONE`] if it owns nothing.
    pub ours: Digest,
    /// When our own manager last wrote anything but a subresource, in Unix seconds; 0 if it never did.
    pub ours_at_seconds: u64,
    /// The last other writer of anything but `status`.
    pub other: Option<Writer>,
}

/// What an answer tells of the object that was written, where no more of it is needed than to know it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// As that of an [`Object`], here and below.
    pub uid: Uid,
    /// Its resource version.
    pub version: Version,
    /// The digest of its content.
    pub content: Digest,
    /// Who wrote it.
    pub hands: Hands,
}

impl Outline {
    /// Reads as much of a body as [`Object::decode`] does, and refuses the same, but keeps no text of it.
    pub fn decode(json: &[u8], place: &Place<'_>) -> Result<Self, Malformed> {
        decode::outline(json, place)
    }
}

/// Somebody who wrote an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The field manager's name.
    pub manager: Name,
    /// When, in Unix seconds; 0 if the server did not say.
    pub at_seconds: u64,
    /// How.
    pub operation: Operation,
    /// Through which subresource; empty for the object itself.
    pub subresource: Name,
}

/// How a field manager wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By anything else.
    Update,
}

/// What a body does not say about itself.
#[derive(Clone, Debug)]
pub struct Place<'a> {
    /// The cluster that it comes from.
    pub cluster: ClusterOf<'a>,
    /// Its kind.
    pub kind: &'a KindId,
    /// The `apiVersion` to put in where the body has none, as items of lists of built-in kinds do; may be empty.
    pub api_version: &'a str,
    /// The `kind` to put in where the body has none; may be empty.
    pub kind_name: &'a str,
    /// Our own field manager; empty if there is none.
    pub manager: &'a str,
    /// How much to keep.
    pub keep: Keep,
    /// What is refused.
    pub limits: Limits,
}

impl<'a> Place<'a> {
    /// Where an answer about one object comes from: it says itself of which type it is.
    pub fn of(key: &'a Key, manager: &'a str, keep: Keep) -> Self {
        Self::in_cluster(&key.cluster, &key.kind, manager, keep)
    }

    /// The same of an object whose name its body tells.
    pub fn in_cluster(cluster: &'a ClusterId, kind: &'a KindId, manager: &'a str, keep: Keep) -> Self {
        let cluster = ClusterOf::One(cluster);
        Self { cluster, kind, api_version: "", kind_name: "", manager, keep, limits: Limits::default() }
    }
}

/// Which cluster a body comes from.
#[derive(Clone, Copy, Debug)]
pub enum ClusterOf<'a> {
    /// This one.
    One(&'a ClusterId),
    /// The one that its annotation `kcp.io/cluster` names: bodies from a view over many workspaces.
    Annotated,
}

/// How much of a body is kept. Digests are of the whole body in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Keep {
    /// All of it, but for `managedFields`.
    #[default]
    Whole,
    /// `apiVersion`, `kind`, and of `metadata` what is not among the fields of an [`Object`]; of a [mark](MARK_ANNOTATION) not
    /// the cluster that it was put in, where that is the object's own.
    Head,
    /// The head and `status`.
    HeadAndStatus,
}

/// The largest body that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// In bytes. Never more than 4 GiB.
    pub bytes: usize,
    /// In levels of nesting. Never more than [`crate::json::DEEPEST`].
    pub depth: u32,
}

impl Default for Limits {
    /// Twice what etcd takes by default, and more levels than any schema allows.
    fn default() -> Self {
        Self { bytes: 3 << 20, depth: 100 }
    }
}

/// Only the head of this object is kept; to edit it, read it from its server first.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("only the head of {0} is kept")]
pub struct HeadOnly(pub Key);

/// An entry of an object's owner references.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnerReference<'a> {
    /// The owner's group and version.
    pub api_version: Cow<'a, str>,
    /// The owner's kind.
    pub kind: Cow<'a, str>,
    /// The owner's name.
    pub name: Cow<'a, str>,
    /// The owner's uid.
    pub uid: Uid,
}

/// Where in the JSON the parts stand that are looked at most; an empty span means that there is none.
#[derive(Clone, Copy, Default)]
struct Spans {
    metadata: Part,
    labels: Part,
    annotations: Part,
    status: Part,
}

/// A [`Span`] in half the room. Bodies are shorter than 4 GiB.
#[derive(Clone, Copy, Default)]
struct Part {
    start: u32,
    end: u32,
}

impl Object {
    /// Reads a body as a server sent it, in one pass.
    pub fn decode(json: &[u8], place: &Place<'_>) -> Result<Self, Malformed> {
        decode::decode(json, place)
    }

    /// What is kept of it as JSON: all but `managedFields`, or the head without what its fields say.
    pub fn json(&self) -> &[u8] {
        self.text.json.as_bytes()
    }

    /// Roughly how many bytes it takes: its share of a text that others have as well.
    pub fn footprint_bytes(&self) -> usize {
        let status = self.status_apart.as_ref().map_or(0, |status| status.len());
        let text = size_of::<Text>() + self.text.json.len();
        size_of::<Self>() + status + text / Arc::strong_count(&self.text).max(1)
    }

    /// The same object with less of its body kept. What was let go of before does not come back.
    #[must_use]
    pub fn kept(&self, keep: Keep) -> Self {
        keep::less(self, keep)
    }

    /// Whether all of it is kept.
    pub fn is_whole(&self) -> bool {
        self.keep == Keep::Whole
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<Cow<'_, str>> {
        self.part(self.text.spans.labels).and_then(|labels| labels.member(key)?.as_str())
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<Cow<'_, str>> {
        self.part(self.text.spans.annotations).and_then(|annotations| annotations.member(key)?.as_str())
    }

    /// All labels, in the order of the JSON.
    pub fn labels(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> + Clone {
        self.texts(self.text.spans.labels)
    }

    /// All annotations, in the order of the JSON.
    pub fn annotations(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> + Clone {
        self.texts(self.text.spans.annotations)
    }

    /// What stands under a path of member keys, if it is kept.
    pub fn get(&self, path: &[&str]) -> Option<Raw<'_>> {
        match path {
            ["metadata", rest @ ..] => self.part(self.text.spans.metadata)?.get(rest),
            ["status", rest @ ..] => self.status_raw()?.get(rest),
            _ => self.root().get(path),
        }
    }

    /// All that is kept of its JSON but the status beside a head, to look into.
    pub fn root(&self) -> Raw<'_> {
        Raw::trusted(&self.text.json)
    }

    /// Its `apiVersion`; empty if neither the body nor the place named one.
    pub fn api_version(&self) -> Cow<'_, str> {
        self.root().member("apiVersion").and_then(Raw::as_str).unwrap_or_default()
    }

    /// Its `kind`; empty if neither the body nor the place named one.
    pub fn kind_name(&self) -> Cow<'_, str> {
        self.root().member("kind").and_then(Raw::as_str).unwrap_or_default()
    }

    /// Its `status` as JSON, if it has one and it is kept.
    pub fn status_json(&self) -> Option<&[u8]> {
        self.status_raw().map(|status| status.json().as_bytes())
    }

    /// Its owner references. What is no reference (a name is missing) is left out.
    pub fn owner_references(&self) -> impl Iterator<Item = OwnerReference<'_>> {
        let references = self.get(&["metadata", "ownerReferences"]);
        references.into_iter().flat_map(Raw::elements).filter_map(|reference| {
            Some(OwnerReference {
                api_version: reference.member("apiVersion")?.as_str()?,
                kind: reference.member("kind")?.as_str()?,
                name: reference.member("name")?.as_str()?,
                uid: Uid::parse(&reference.member("uid")?.as_str()?),
            })
        })
    }

    /// Its finalizers.
    pub fn finalizers(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let finalizers = self.get(&["metadata", "finalizers"]);
        finalizers.into_iter().flat_map(Raw::elements).filter_map(Raw::as_str)
    }

    /// When it was created, in Unix seconds.
    pub fn created_seconds(&self) -> Option<u64> {
        (self.created > 0).then_some(u64::from(self.created))
    }

    /// When its deletion was asked for, in Unix seconds.
    pub fn deleted_seconds(&self) -> Option<u64> {
        unix_seconds(&self.get(&["metadata", "deletionTimestamp"])?.as_str()?)
    }

    /// Begins a changed copy of its JSON.
    pub fn edit(&self) -> Result<Edit<'_>, HeadOnly> {
        if !self.is_whole() {
            return Err(HeadOnly(self.key.clone()));
        }
        Ok(Edit::knowing(self.root(), self.part(self.text.spans.metadata)))
    }

    fn status_raw(&self) -> Option<Raw<'_>> {
        self.status_apart.as_deref().map(Raw::trusted).or_else(|| self.part(self.text.spans.status))
    }

    fn part(&self, part: Part) -> Option<Raw<'_>> {
        let text = self.text.json.get(part.start as usize..part.end as usize)?;
        if text.is_empty() { None } else { Some(Raw::trusted(text)) }
    }

    fn texts(&self, part: Part) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> + Clone {
        self.part(part)
            .into_iter()
            .flat_map(Raw::members)
            .filter_map(|(key, value)| value.as_str().map(|value| (key, value)))
    }
}

impl fmt::Debug for Object {
    /// Its head; never its body, which is a tenant's data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("key", &format_args!("{}", self.key))
            .field("uid", &self.uid)
            .field("version", &self.version)
            .field("generation", &self.generation)
            .field("deleting", &self.deleting)
            .field("content", &self.content)
            .field("status", &self.status)
            .field("hands", &self.hands)
            .field("bytes", &self.text.json.len())
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

impl Part {
    /// A span of a body that was found to be shorter than 4 GiB.
    fn of(span: Span) -> Self {
        let narrow = |at: usize| u32::try_from(at).unwrap_or_default();
        Self { start: narrow(span.start), end: narrow(span.end) }
    }
}

#[cfg(test)]
mod tests;
