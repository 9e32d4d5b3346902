//! The one pass that turns a body into an [`Object`].

use std::borrow::Cow;

use super::{ClusterOf, Hands, Object, Outline, Place, hands, keep};
use crate::digest::{self, Digest, MapDigest};
use crate::json::{Limited, Member, Raw, Scanner, Span};
use crate::key::{ClusterId, Key, Name, Uid, Version};
use crate::malformed::{Flaw, Malformed, What};
use crate::timestamp::unix_seconds;
use crate::travel::{annotation_travels, label_travels, metadata_member_travels};

/// The annotation in which kcp says which logical cluster an object is in.
pub(super) const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";

pub(super) fn decode(json: &[u8], place: &Place<'_>) -> Result<Object, Malformed> {
    read(json, place, |body, scanner| keep::keep(body, scanner, place))
}

pub(super) fn outline(json: &[u8], place: &Place<'_>) -> Result<Outline, Malformed> {
    read(json, place, |body, _| Outline {
        uid: Uid::parse(&body.head.uid),
        version: body.head.version,
        content: Digest::of(body.content.finish()),
        hands: body.head.hands.clone(),
    })
}

fn read<T>(
    json: &[u8],
    place: &Place<'_>,
    made: impl FnOnce(&Body<'_>, &Scanner<'_>) -> T,
) -> Result<T, Malformed> {
    let mut body = Body::default();
    let limits = Limited { bytes: place.limits.bytes.min(u32::MAX as usize), depth: place.limits.depth };
    let read = Scanner::limited(json, limits).and_then(|mut scanner| {
        body.read(&mut scanner, place)?;
        scanner.end()?;
        Ok(scanner)
    });
    read.map(|scanner| made(&body, &scanner)).map_err(|flaw| explained(flaw, &body, json, place))
}

/// The full account of a flaw, naming the object if its metadata could still be read.
#[cold]
fn explained(flaw: Flaw, body: &Body<'_>, json: &[u8], place: &Place<'_>) -> Malformed {
    let mut malformed = flaw.within(json);
    malformed.key = match malformed.what {
        // Nothing was read yet; whose body it is may be found all the same.
        What::TooLarge { .. } => named_in(json, place),
        What::NotUtf8 => named_in(json.get(..malformed.at).unwrap_or_default(), place),
        _ => body.head.named(place),
    };
    malformed
}

fn named_in(json: &[u8], place: &Place<'_>) -> Option<Box<Key>> {
    let mut body = Body::default();
    let _ = Scanner::over(json).and_then(|mut scanner| body.read_members(&mut scanner, ""));
    body.head.named(place)
}

/// The digest of a body's content, as [`Object::decode`] would find it.
pub(crate) fn content_of(json: &[u8]) -> Result<Digest, Malformed> {
    let mut body = Body::default();
    let read = Scanner::over(json).and_then(|mut scanner| {
        body.read_members(&mut scanner, "")?;
        scanner.end()
    });
    read.map_err(|flaw| flaw.within(json)).map(|()| Digest::of(body.content.finish()))
}

/// Whether a head has a field for a member of `metadata`, or nothing of it stays.
pub(super) fn is_in_the_head_itself(member: &str) -> bool {
    matches!(
        member,
        "name"
            | "namespace"
            | "uid"
            | "resourceVersion"
            | "generation"
            | "creationTimestamp"
            | "managedFields"
    )
}

/// What one pass finds in a body, in the body's own text.
#[derive(Default)]
pub(super) struct Body<'a> {
    /// All of it, from brace to brace.
    pub(super) map: Span,
    pub(super) api_version: Option<Span>,
    pub(super) kind: Option<Span>,
    pub(super) metadata: Option<Span>,
    pub(super) status: Option<Span>,
    pub(super) status_digest: Digest,
    pub(super) content: MapDigest,
    pub(super) head: Head<'a>,
}

/// What one pass finds in `metadata`.
#[derive(Default)]
pub(super) struct Head<'a> {
    name: Cow<'a, str>,
    namespace: Cow<'a, str>,
    cluster: Cow<'a, str>,
    pub(super) uid: Cow<'a, str>,
    pub(super) version: Version,
    pub(super) generation: u64,
    pub(super) deleting: bool,
    /// When it was made, in Unix seconds; 0 if it does not say.
    pub(super) created: u32,
    pub(super) labels: Option<Span>,
    pub(super) annotations: Option<Span>,
    /// The members of which a head has no field, keys as they are written.
    pub(super) rest: Vec<(Span, Span)>,
    pub(super) hands: Hands,
    /// `managedFields` with the comma that goes with it.
    pub(super) cut: Option<Span>,
    /// Of those members that travel.
    pub(super) content: MapDigest,
    /// Read to the end: then the object can be named whatever else is wrong with it.
    complete: bool,
    /// The first value of a wrong type. Told only at the end, so that the object can be named by then.
    wrong: Option<Flaw>,
}

impl<'a> Body<'a> {
    fn read(&mut self, scanner: &mut Scanner<'a>, place: &Place<'_>) -> Result<(), Flaw> {
        self.read_members(scanner, place.manager)?;
        if let Some(wrong) = self.head.wrong.take() {
            return Err(wrong);
        }
        let head_at = self.metadata.map_or(self.map.start, |metadata| metadata.start);
        if self.head.name.is_empty() {
            return Err(Flaw::new(head_at, What::NoName));
        }
        if matches!(place.cluster, ClusterOf::Annotated) && self.head.cluster.is_empty() {
            return Err(Flaw::new(head_at, What::NoCluster));
        }
        for (found, name, text) in
            [(self.api_version, "apiVersion", place.api_version), (self.kind, "kind", place.kind_name)]
        {
            if found.is_none() && !text.is_empty() {
                self.content.add(digest::key_hash(name), digest::string(text));
            }
        }
        Ok(())
    }

    fn read_members(&mut self, scanner: &mut Scanner<'a>, manager: &str) -> Result<(), Flaw> {
        if scanner.peek() != Some(b'{') {
            return Err(Flaw::new(scanner.at(), What::Expected("an object")));
        }
        self.map = scanner.map::<true>(|scanner, member| {
            match &*scanner.unescaped(member.key) {
                "metadata" => return self.read_metadata(scanner, member, manager),
                "status" => {
                    if scanner.peek() == Some(b'n') {
                        return scanner.skip().map(|_| ());
                    }
                    let start = scanner.at();
                    self.status_digest = Digest::of(scanner.digest()?);
                    self.status = Some(Span::new(start, scanner.at()));
                    return Ok(());
                }
                "apiVersion" => {
                    self.head.expect(scanner, b'"', "a string");
                    self.content.add(member.key_hash, scanner.digest()?);
                    self.api_version = Some(Span::new(member.start(), scanner.at()));
                }
                "kind" => {
                    self.head.expect(scanner, b'"', "a string");
                    self.content.add(member.key_hash, scanner.digest()?);
                    self.kind = Some(Span::new(member.start(), scanner.at()));
                }
                _ => self.content.add(member.key_hash, scanner.digest()?),
            }
            Ok(())
        })?;
        Ok(())
    }

    fn read_metadata(
        &mut self,
        scanner: &mut Scanner<'a>,
        member: Member,
        manager: &str,
    ) -> Result<(), Flaw> {
        if scanner.peek() != Some(b'{') {
            return Err(Flaw::new(scanner.at(), What::Expected("an object")));
        }
        let head = &mut self.head;
        let mut previous_end = None;
        let mut cut_is_first = false;
        let metadata = scanner.map::<true>(|scanner, member| {
            if std::mem::take(&mut cut_is_first)
                && let Some(cut) = &mut head.cut
            {
                // The first member takes the comma after it along, every other one the comma before it.
                cut.end = member.start();
            }
            let name = scanner.unescaped(member.key);
            if name == "managedFields" {
                head.hands = hands::read(scanner, manager)?;
                head.cut = Some(Span::new(previous_end.unwrap_or(member.start()), scanner.at()));
                cut_is_first = previous_end.is_none();
            } else {
                scanner.peek();
                let start = scanner.at();
                head.read_member(scanner, member, &name)?;
                if !is_in_the_head_itself(&name) && !matches!(&*name, "labels" | "annotations") {
                    head.rest.push((member.key.inner, Span::new(start, scanner.at())));
                }
            }
            previous_end = Some(scanner.at());
            Ok(())
        })?;
        head.complete = true;
        self.metadata = Some(metadata);
        if !head.content.is_empty() {
            self.content.add(member.key_hash, head.content.finish());
        }
        Ok(())
    }
}

impl<'a> Head<'a> {
    fn read_member(&mut self, scanner: &mut Scanner<'a>, member: Member, name: &str) -> Result<(), Flaw> {
        match name {
            "name" => {
                self.name = self.counted_text(scanner, member)?;
            }
            "namespace" => {
                self.namespace = self.counted_text(scanner, member)?;
            }
            "uid" => {
                self.uid = self.text(scanner)?;
            }
            "resourceVersion" => {
                let at = scanner.at();
                let text = self.text(scanner)?;
                match Version::parse(&text) {
                    Some(version) => self.version = version,
                    // None at all: a body that was never stored.
                    None if text.is_empty() => {}
                    None => self.note(Flaw::new(at, What::ResourceVersion)),
                }
            }
            "generation" => {
                scanner.peek();
                let at = scanner.at();
                let value = scanner.skip()?;
                match Raw::trusted(scanner.slice(value)) {
                    null if null.is_null() => {}
                    number => match number.as_u64() {
                        Some(generation) => self.generation = generation,
                        None => self.note(Flaw::new(at, What::Expected("a whole number"))),
                    },
                }
            }
            "creationTimestamp" => {
                let value = scanner.skip()?;
                let created =
                    Raw::trusted(scanner.slice(value)).as_str().and_then(|text| unix_seconds(&text));
                self.created = created.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or_default();
            }
            "deletionTimestamp" => {
                self.deleting = scanner.peek() != Some(b'n');
                scanner.skip()?;
            }
            "labels" => {
                let (span, content) = self.texts(scanner, label_travels)?;
                self.labels = span;
                self.add_map(member, content);
            }
            "annotations" => {
                let (span, content) = self.texts(scanner, annotation_travels)?;
                self.annotations = span;
                self.add_map(member, content);
            }
            name if metadata_member_travels(name) => self.content.add(member.key_hash, scanner.digest()?),
            _ => {
                scanner.skip()?;
            }
        }
        Ok(())
    }

    /// An empty map says the same as none.
    fn add_map(&mut self, member: Member, content: MapDigest) {
        if !content.is_empty() {
            self.content.add(member.key_hash, content.finish());
        }
    }

    /// A string, or nothing for null.
    fn text(&mut self, scanner: &mut Scanner<'a>) -> Result<Cow<'a, str>, Flaw> {
        match scanner.peek() {
            Some(b'"') => scanner.string().map(|text| scanner.unescaped(text)),
            Some(b'n') => scanner.skip().map(|_| Cow::default()),
            _ => {
                self.expect(scanner, b'"', "a string");
                scanner.skip().map(|_| Cow::default())
            }
        }
    }

    /// A string that counts as content.
    fn counted_text(&mut self, scanner: &mut Scanner<'a>, member: Member) -> Result<Cow<'a, str>, Flaw> {
        let text = self.text(scanner)?;
        if !text.is_empty() {
            self.content.add(member.key_hash, digest::string(&text));
        }
        Ok(text)
    }

    /// A map of strings: labels or annotations.
    fn texts(
        &mut self,
        scanner: &mut Scanner<'a>,
        travels: fn(&str) -> bool,
    ) -> Result<(Option<Span>, MapDigest), Flaw> {
        let mut content = MapDigest::default();
        match scanner.peek() {
            Some(b'{') => {}
            Some(b'n') => return scanner.skip().map(|_| (None, content)),
            _ => {
                self.expect(scanner, b'{', "a map of strings");
                return scanner.skip().map(|_| (None, content));
            }
        }
        let span = scanner.map::<true>(|scanner, member| {
            if scanner.peek() != Some(b'"') {
                self.expect(scanner, b'"', "a string");
                return scanner.skip().map(|_| ());
            }
            let value = scanner.string()?;
            let key = scanner.unescaped(member.key);
            if travels(&key) {
                content.add(member.key_hash, scanner.string_digest(value));
            } else if key == CLUSTER_ANNOTATION {
                self.cluster = scanner.unescaped(value);
            }
            Ok(())
        })?;
        Ok((Some(span), content))
    }

    fn expect(&mut self, scanner: &mut Scanner<'_>, first: u8, what: &'static str) {
        if scanner.peek() != Some(first) {
            self.note(Flaw::new(scanner.at(), What::Expected(what)));
        }
    }

    fn note(&mut self, wrong: Flaw) {
        self.wrong.get_or_insert(wrong);
    }

    /// Whose body it is, if all that says so was read.
    fn named(&self, place: &Place<'_>) -> Option<Box<Key>> {
        let cluster_known = matches!(place.cluster, ClusterOf::One(_)) || !self.cluster.is_empty();
        (self.complete && cluster_known && !self.name.is_empty()).then(|| Box::new(self.key(place)))
    }

    /// The cluster that it is in.
    pub(super) fn cluster<'h>(&'h self, place: &Place<'h>) -> &'h str {
        match place.cluster {
            ClusterOf::One(cluster) => &cluster.0,
            ClusterOf::Annotated => &self.cluster,
        }
    }

    pub(super) fn key(&self, place: &Place<'_>) -> Key {
        Key {
            cluster: match place.cluster {
                ClusterOf::One(cluster) => cluster.clone(),
                ClusterOf::Annotated => ClusterId::new(&self.cluster),
            },
            kind: place.kind.clone(),
            namespace: Name::new(&self.namespace),
            name: Name::new(&self.name),
        }
    }
}
