//! A mark as text, as it stands in an annotation.
//!
//! ```text
//! configmaps/till/pos,2sxa8riw5xha32po,0f7f…,4711,9f1c0a55e2d4b380,in=edge,made=1700000000,unconfirmed
//! ```
//!
//! First what every mark says, each by its place: the object that it was put on, the cluster of the origin, the origin's
//! uid and version, and the digest of what was intended. Then the rest by its name, if there is something to say. Quotes
//! would be escaped in JSON, and servers read an apply as YAML, where each escape and each byte takes them time; and a
//! center holds hundreds of thousands of marks. What is the same on the copy and at the origin is said once.
//!
//! Marks of earlier releases are JSON, and are read as they are. Nothing is written only to change that: a copy gets the
//! mark of now with its next delivery.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

use mailboat_object::digest::Digest;
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid, Version};

use crate::want::{Delivery, Origin, Want};

/// What a mark says.
pub(super) struct Said {
    pub(super) origin: Origin,
    pub(super) intent: Digest,
    pub(super) leave: bool,
    pub(super) confirmed: bool,
    pub(super) overlay: bool,
    /// Whose an overlay is.
    pub(super) owner: Option<Name>,
}

/// The mark of a want. It names the object that it was put on, because controllers copy annotations along to what they make:
/// what they made is not ours. And it names the cluster, because people copy objects from one to another with all that stands
/// on them: what they made is theirs.
pub(super) fn write(want: &Want, owner: &Name, confirmed: bool) -> String {
    let (origin, slot) = (&want.origin, &want.slot);
    let overlays = want.policy.delivery == Delivery::Overlay;
    let mut mark = Writer(String::with_capacity(192));
    mark.first(&slot.kind).then('/', &slot.namespace).then('/', &slot.name);
    mark.then(',', &origin.key.cluster).then(',', &origin.uid).then(',', origin.version);
    mark.then(',', want.body.digest);
    mark.named("in", Some(&slot.cluster));
    mark.named("generation", (origin.generation > 0).then_some(origin.generation));
    mark.named("made", origin.made_seconds);
    mark.named("identity", origin.identity.as_ref());
    mark.named("kind", (origin.key.kind != slot.kind).then_some(&origin.key.kind));
    mark.named("namespace", (origin.key.namespace != slot.namespace).then_some(&origin.key.namespace));
    mark.named("name", (origin.key.name != slot.name).then_some(&origin.key.name));
    mark.named("owner", overlays.then_some(owner));
    mark.word("overlay", overlays);
    mark.word("leave", want.leaves());
    mark.word("unconfirmed", !confirmed);
    mark.0
}

/// What a mark says, if it can be read and was put on the object at this key.
pub(super) fn read(text: &str, on: &Key) -> Option<Said> {
    let members = if text.starts_with('{') { members_of_json(text)? } else { members(text)? };
    if !is_on(&members.on, on) || members.put_in.is_some_and(|cluster| *cluster != *on.cluster.0) {
        return None;
    }
    let kind = members.kind.as_deref().map_or_else(
        || on.kind.clone(),
        |kind| {
            let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
            KindId::new(group, resource)
        },
    );
    let named = |said: Option<&str>, here: &Name| said.map_or_else(|| here.clone(), Name::new);
    Some(Said {
        origin: Origin {
            key: Key {
                cluster: ClusterId::new(&members.cluster),
                kind,
                namespace: named(members.namespace.as_deref(), &on.namespace),
                name: named(members.name.as_deref(), &on.name),
            },
            uid: Uid::parse(&members.uid),
            version: Version(members.version),
            generation: members.generation.unwrap_or_default(),
            made_seconds: members.made,
            identity: members.identity.as_deref().map(Name::new),
        },
        intent: members.intent.parse().ok()?,
        leave: members.leave,
        confirmed: !members.unconfirmed,
        overlay: members.overlay,
        owner: members.owner.as_deref().map(Name::new),
    })
}

/// A mark while it is written: with each write of a copy, so without a tree.
struct Writer(String);

impl Writer {
    fn first(&mut self, value: impl Display) -> &mut Self {
        // Writing to a String cannot fail.
        _ = write!(Escaping(&mut self.0), "{value}");
        self
    }

    fn then(&mut self, separator: char, value: impl Display) -> &mut Self {
        self.0.push(separator);
        self.first(value)
    }

    /// Adds what has a name, if there is one.
    fn named(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.word(name, true);
            self.then('=', value);
        }
    }

    /// Says something, if it is so.
    fn word(&mut self, word: &str, is_so: bool) {
        if is_so {
            self.0.push(',');
            self.0.push_str(word);
        }
    }
}

/// Escapes what would be taken for something else, as URLs do. Names of clusters and of some kinds may have anything in them.
struct Escaping<'s>(&'s mut String);

impl std::fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let is_plain =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'=' | b'%' | b'"' | b'\\');
        if text.bytes().all(is_plain) {
            self.0.push_str(text);
            return Ok(());
        }
        for byte in text.bytes() {
            if is_plain(byte) {
                self.0.push(char::from(byte));
            } else {
                write!(self.0, "%{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// A text as it was before it was escaped; nothing if nobody escapes so.
fn plain(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        bytes.push(u8::from_str_radix(after.get(..2)?, 16).ok()?);
        rest = after.get(2..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The members of a mark, where they stand.
struct Members<'t> {
    on: Cow<'t, str>,
    cluster: Cow<'t, str>,
    uid: Cow<'t, str>,
    version: u64,
    intent: Cow<'t, str>,
    /// The cluster in which it was put on its object. Earlier releases did not say it, and of a head that is in that very
    /// cluster it is not kept.
    put_in: Option<Cow<'t, str>>,
    generation: Option<u64>,
    made: Option<u64>,
    identity: Option<Cow<'t, str>>,
    kind: Option<Cow<'t, str>>,
    namespace: Option<Cow<'t, str>>,
    name: Option<Cow<'t, str>>,
    owner: Option<Cow<'t, str>>,
    leave: bool,
    unconfirmed: bool,
    overlay: bool,
}

/// What is not known by its name was said by a later release, and is passed over. What is known and cannot be read makes the
/// mark none: half of what it says may be the half that spares the object.
fn members(text: &str) -> Option<Members<'_>> {
    let mut parts = text.split(',');
    let mut found = Members {
        on: plain(parts.next()?)?,
        cluster: plain(parts.next()?)?,
        uid: plain(parts.next()?)?,
        version: parts.next()?.parse().ok()?,
        intent: plain(parts.next()?)?,
        put_in: None,
        generation: None,
        made: None,
        identity: None,
        kind: None,
        namespace: None,
        name: None,
        owner: None,
        leave: false,
        unconfirmed: false,
        overlay: false,
    };
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name {
            "in" => found.put_in = Some(plain(value)?),
            "generation" => found.generation = Some(value.parse().ok()?),
            "made" => found.made = Some(value.parse().ok()?),
            "identity" => found.identity = Some(plain(value)?),
            "kind" => found.kind = Some(plain(value)?),
            "namespace" => found.namespace = Some(plain(value)?),
            "name" => found.name = Some(plain(value)?),
            "owner" => found.owner = Some(plain(value)?),
            "leave" => found.leave = true,
            "unconfirmed" => found.unconfirmed = true,
            "overlay" => found.overlay = true,
            _ => {}
        }
    }
    Some(found)
}

/// The same of a mark of an earlier release.
fn members_of_json(text: &str) -> Option<Members<'_>> {
    let mark = Raw::parse(text.as_bytes()).ok()?;
    let text = |name: &str| mark.member(name).and_then(Raw::as_str);
    let number = |name: &str| mark.member(name).and_then(Raw::as_u64);
    let says = |name: &str| mark.member(name).and_then(Raw::as_bool) == Some(true);
    Some(Members {
        on: text("on")?,
        cluster: text("cluster")?,
        uid: text("uid")?,
        version: number("version")?,
        intent: text("intent")?,
        put_in: None,
        generation: number("generation"),
        made: number("made"),
        identity: text("identity"),
        kind: text("kind"),
        namespace: text("namespace"),
        name: text("name"),
        owner: text("owner"),
        leave: says("leave"),
        unconfirmed: says("unconfirmed"),
        overlay: says("overlay"),
    })
}

/// Whether a mark was put on the object at this key.
fn is_on(text: &str, key: &Key) -> bool {
    let group = key.kind.group();
    let after_kind = || {
        let rest = text.strip_prefix(key.kind.resource())?;
        if group.is_empty() { Some(rest) } else { rest.strip_prefix('.')?.strip_prefix(group) }
    };
    let name = || after_kind()?.strip_prefix('/')?.strip_prefix(key.namespace.as_str())?.strip_prefix('/');
    name() == Some(key.name.as_str())
}
