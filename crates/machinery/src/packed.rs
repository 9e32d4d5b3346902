//! Objects at rest: their JSON in pieces, of which equal ones are kept once.
//!
//! As a tree of values an object takes ten to twenty times its JSON, and most of a server's objects are hardly ever
//! looked at. So they rest as text, cut where copies of one thing in many workspaces are alike: by members of the
//! object, and by manager. The spec, the status and the fields of ten thousand copies are then there once.

mod record;

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use mailboat_object::json::Raw;
use mailboat_object::timestamp::unix_seconds;
use mailboat_object::{Name, Operation, Uid, Version};
use serde::Deserialize as _;
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::field_set::FieldSet;
use crate::managed::{ManagedFields, Manager};
use crate::metadata::CLUSTER_ANNOTATION;
use crate::time::rfc3339;

pub(crate) use record::RECORD;

/// How many texts are remembered to be shared. What is forgotten is merely kept twice.
const REMEMBERED: usize = 2048;
/// Shorter ones are not worth looking for, longer ones not worth holding on to.
const SHARED_BYTES: std::ops::Range<usize> = 24..16 * 1024;

/// The texts that were seen last, so that equal ones are kept once.
#[derive(Clone, Default)]
pub struct Texts {
    seen: Vec<Option<Arc<str>>>,
    hasher: foldhash::fast::FixedState,
}

/// An object at rest.
#[derive(Clone)]
pub(crate) struct Packed {
    /// Its members in their order; `metadata` is without version and managers.
    members: Box<[(Name, Arc<str>)]>,
    managers: Box<[PackedManager]>,
    /// Its deletion was asked for.
    pub deleting: bool,
    /// It names owners.
    pub owned: bool,
}

#[derive(Clone)]
struct PackedManager {
    name: Name,
    operation: Operation,
    api_version: Name,
    subresource: Name,
    time_seconds: Option<u64>,
    fields: Arc<str>,
}

/// A part of an object, as a tree or at rest.
#[derive(Clone, Copy)]
pub(crate) enum Piece<'p> {
    Tree(&'p Value),
    Text(Raw<'p>),
}

impl Texts {
    /// The one copy of a text, if it was seen lately.
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        if !SHARED_BYTES.contains(&text.len()) {
            return Arc::from(text);
        }
        if self.seen.is_empty() {
            self.seen.resize(REMEMBERED, None);
        }
        let mut hasher = self.hasher.build_hasher();
        hasher.write(text.as_bytes());
        let at = usize::try_from(hasher.finish() % REMEMBERED as u64).unwrap_or(0);
        match &self.seen[at] {
            Some(seen) if **seen == *text => Arc::clone(seen),
            _ => {
                let text = Arc::from(text);
                self.seen[at] = Some(Arc::clone(&text));
                text
            }
        }
    }
}

impl Packed {
    /// An object that comes to rest; `share` finds the one copy of a text, or makes it.
    pub(crate) fn of(body: &Value, managed: &ManagedFields, share: &mut dyn FnMut(&str) -> Arc<str>) -> Self {
        let members = body.as_object().into_iter().flatten().map(|(name, member)| {
            let text = json(member);
            // Metadata is never the same.
            let text = if name == "metadata" { Arc::from(text) } else { share(&text) };
            (Name::new(name), text)
        });
        let members = members.collect();
        let managers = managed.entries().iter().map(|manager| PackedManager {
            name: manager.name.clone(),
            operation: manager.operation,
            api_version: manager.api_version.clone(),
            subresource: manager.subresource.clone(),
            time_seconds: manager.time_seconds,
            fields: share(&json(&*manager.fields)),
        });
        let has = |member: &str| body["metadata"].get(member).is_some_and(|value| !value.is_null());
        Self {
            managers: managers.collect(),
            members,
            deleting: has("deletionTimestamp"),
            owned: has("ownerReferences"),
        }
    }

    /// Reads an object from what a server wrote down of it, without looking into its members. That it is what was written,
    /// and so JSON, is checked by whoever kept it.
    pub(crate) fn read(
        written: &[u8],
        shows_cluster: bool,
        texts: &mut Texts,
    ) -> Result<(Self, Uid, Version), &'static str> {
        let object = Raw::trusted(std::str::from_utf8(written).map_err(|_| "it is not text")?);
        // Each member is passed once: what managers own is long, and stands in front of most others.
        let mut head = Head::default();
        let mut members = Vec::new();
        for (name, member) in object.members() {
            let text = if &*name == "metadata" {
                head = Head::read(member, shows_cluster, texts)?;
                Arc::from(std::mem::take(&mut head.rest))
            } else {
                texts.share(member.json())
            };
            members.push((Name::new(&name), text));
        }
        if !head.found {
            return Err("it has no metadata");
        }
        let version = head.version.ok_or("it has no resourceVersion")?;
        let uid = head.uid.ok_or("it has no uid")?;
        let Head { managers, deleting, owned, .. } = head;
        let packed = Self { members: members.into(), managers: managers.into(), deleting, owned };
        Ok((packed, uid, version))
    }

    /// About how many bytes it takes. Of a text that others have as well, it takes its share.
    pub(crate) fn bytes(&self) -> usize {
        let share = |text: &Arc<str>| text.len() / Arc::strong_count(text).max(1);
        let members = self.members.iter().map(|(_, text)| size_of::<(Name, Arc<str>)>() + share(text));
        let managers =
            self.managers.iter().map(|manager| size_of::<PackedManager>() + share(&manager.fields));
        size_of::<Self>() + members.chain(managers).sum::<usize>()
    }

    /// About how many bytes of JSON it is.
    pub(crate) fn json_bytes(&self) -> usize {
        let members = self.members.iter().map(|(name, text)| name.len() + 4 + text.len());
        let managers = self.managers.iter().map(|manager| manager.fields.len());
        members.chain(managers).sum()
    }

    /// The whole body.
    pub(crate) fn body(&self) -> Value {
        let members = self.members.iter().map(|(name, text)| (name.to_string(), tree(text)));
        Value::Object(members.collect::<Map<String, Value>>())
    }

    /// Its managers.
    pub(crate) fn managed(&self) -> ManagedFields {
        ManagedFields::of(self.managers.iter().map(PackedManager::unpacked))
    }

    /// Whether nobody is known to own anything.
    pub(crate) fn is_unmanaged(&self) -> bool {
        self.managers.is_empty()
    }

    /// Its members, in their order.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, Raw<'_>)> {
        self.members.iter().map(|(name, text)| (name.as_str(), Raw::trusted(text)))
    }

    /// A member.
    pub(crate) fn member(&self, name: &str) -> Option<Arc<str>> {
        self.members.iter().find(|(found, _)| **found == *name).map(|(_, text)| Arc::clone(text))
    }

    /// Its metadata.
    pub(crate) fn metadata(&self) -> Option<Raw<'_>> {
        self.members().find(|(name, _)| *name == "metadata").map(|(_, metadata)| metadata)
    }
}

/// What is read of an object's metadata.
#[derive(Default)]
struct Head {
    found: bool,
    uid: Option<Uid>,
    version: Option<Version>,
    managers: Vec<PackedManager>,
    deleting: bool,
    owned: bool,
    /// Metadata as it is kept: what stands beside an object, or is told of it anyway, is left out.
    rest: String,
}

impl Head {
    /// Each member is passed once: what managers own is long.
    fn read(metadata: Raw<'_>, shows_cluster: bool, texts: &mut Texts) -> Result<Self, &'static str> {
        let mut head = Self { found: metadata.is_map(), ..Self::default() };
        for (name, member) in metadata.members() {
            match &*name {
                "resourceVersion" => {
                    head.version = member.as_str().and_then(|text| Version::parse(&text));
                    continue;
                }
                "managedFields" => {
                    let read: Option<Vec<PackedManager>> =
                        member.elements().map(|entry| PackedManager::read(entry, texts)).collect();
                    head.managers = read.ok_or("its managedFields make no sense")?;
                    continue;
                }
                "annotations" if shows_cluster => {
                    let mut annotations = String::new();
                    for (key, value) in member.members().filter(|(key, _)| *key != CLUSTER_ANNOTATION) {
                        put(&mut annotations, &key, value.json());
                    }
                    if !annotations.is_empty() {
                        annotations.push('}');
                        put(&mut head.rest, &name, &annotations);
                    }
                    continue;
                }
                "uid" => head.uid = member.as_str().map(|uid| Uid::parse(&uid)),
                "deletionTimestamp" => head.deleting = !member.is_null(),
                "ownerReferences" => head.owned = true,
                _ => {}
            }
            put(&mut head.rest, &name, member.json());
        }
        if head.rest.is_empty() {
            head.rest.push('{');
        }
        head.rest.push('}');
        Ok(head)
    }
}

/// Adds a member to a map that is not closed yet.
fn put(out: &mut String, name: &str, member: &str) {
    out.push(if out.is_empty() { '{' } else { ',' });
    if name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')) {
        out.push('"');
        out.push_str(name);
        out.push('"');
    } else {
        out.push_str(&json(name));
    }
    out.push(':');
    out.push_str(member);
}

impl PackedManager {
    fn read(entry: Raw<'_>, texts: &mut Texts) -> Option<Self> {
        let (mut operation, mut fields, mut time_seconds) = (None, "{}", None);
        let (mut name, mut api_version, mut subresource) = (Name::EMPTY, Name::EMPTY, Name::EMPTY);
        for (member, value) in entry.members() {
            let text = || value.as_str().unwrap_or_default();
            match &*member {
                "apiVersion" => api_version = Name::new(&text()),
                "fieldsV1" => fields = value.json(),
                "manager" => name = Name::new(&text()),
                "operation" => {
                    operation = match &*text() {
                        "Apply" => Some(Operation::Apply),
                        "Update" => Some(Operation::Update),
                        _ => None,
                    }
                }
                "subresource" => subresource = Name::new(&text()),
                "time" => time_seconds = unix_seconds(&text()),
                _ => {}
            }
        }
        let fields = texts.share(fields);
        Some(Self { name, operation: operation?, api_version, subresource, time_seconds, fields })
    }

    fn unpacked(&self) -> Manager {
        let fields = FieldSet::from_json(&tree(&self.fields));
        Manager {
            name: self.name.clone(),
            operation: self.operation,
            api_version: self.api_version.clone(),
            subresource: self.subresource.clone(),
            time_seconds: self.time_seconds,
            // It was made of one.
            fields: Arc::new(fields.unwrap_or_default()),
        }
    }
}

/// A tree of what this server wrote, however deep it is: what a reader with a limit refused would be taken for nothing, and the
/// next write would make nothing of it. How deep it may be is asked before it is kept.
fn tree(text: &str) -> Value {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    // What is not JSON, and so was not written here, stays text: no object's member is taken for null.
    Value::deserialize(&mut reader).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn json<T: Serialize + ?Sized>(value: &T) -> String {
    // What is written here is made of JSON values alone, which can always be written.
    serde_json::to_string(value).unwrap_or_default()
}

impl<'p> Piece<'p> {
    /// The members of a map, in their order.
    pub(crate) fn members(self) -> Vec<(std::borrow::Cow<'p, str>, Self)> {
        match self {
            Self::Tree(value) => {
                let members = value.as_object().into_iter().flatten();
                members.map(|(name, member)| (name.as_str().into(), Self::Tree(member))).collect()
            }
            Self::Text(raw) => raw.members().map(|(name, member)| (name, Self::Text(member))).collect(),
        }
    }
}

impl Serialize for Piece<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tree(value) => value.serialize(serializer),
            Self::Text(raw) => written(raw.json()).map_err(S::Error::custom)?.serialize(serializer),
        }
    }
}

/// The managers of an object at rest, as servers write them.
pub(crate) struct PackedManagers<'p>(pub(crate) &'p Packed);

impl Serialize for PackedManagers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.managers.iter())
    }
}

impl Serialize for PackedManager {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("apiVersion", self.api_version.as_str())?;
        map.serialize_entry("fieldsType", "FieldsV1")?;
        map.serialize_entry("fieldsV1", written(&self.fields).map_err(S::Error::custom)?)?;
        if !self.name.is_empty() {
            map.serialize_entry("manager", self.name.as_str())?;
        }
        let apply = self.operation == Operation::Apply;
        map.serialize_entry("operation", if apply { "Apply" } else { "Update" })?;
        if !self.subresource.is_empty() {
            map.serialize_entry("subresource", self.subresource.as_str())?;
        }
        if let Some(seconds) = self.time_seconds {
            map.serialize_entry("time", &rfc3339(seconds))?;
        }
        map.end()
    }
}

fn written(json: &str) -> serde_json::Result<&RawValue> {
    serde_json::from_str(json)
}

impl fmt::Debug for Texts {
    /// How many they are; never the texts, which are tenants' data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "texts({})", self.seen.iter().flatten().count())
    }
}

impl fmt::Debug for Packed {
    /// What it has; never what it holds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.members.iter().map(|(name, _)| name.as_str()).collect();
        write!(f, "packed({})", names.join(", "))
    }
}
