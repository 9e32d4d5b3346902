//! An object as it is stored.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use mailboat_object::json::Raw;
use mailboat_object::select::Labels;
use mailboat_object::{FieldSelector, Key, Uid, Version};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::managed::ManagedFields;
use crate::metadata::CLUSTER_ANNOTATION;
use crate::packed::{Packed, PackedManagers, Piece, Texts};

/// An object as it is stored at one version: immutable, and cheap to copy.
///
/// Its version and its managers stand beside the body, so that a delete event, which differs in nothing but the
/// version, shares the body, and nobody reads managers back from JSON. Most objects rest as text; whoever looks into one
/// makes a tree of it, which stays as long as this copy does.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Where it stands.
    pub key: Key,
    /// Its uid.
    pub uid: Uid,
    /// Its resource version.
    pub version: Version,
    /// Whether it shows the cluster that it stands in, as kcp's objects do.
    shows_cluster: bool,
    /// Both are there unless it rests.
    body: OnceLock<Arc<Value>>,
    managed: OnceLock<Arc<ManagedFields>>,
    packed: Option<Arc<Packed>>,
}

impl Stored {
    /// An object that was just made.
    pub(crate) fn new(
        key: Key,
        uid: Uid,
        shows_cluster: bool,
        body: Value,
        managed: Arc<ManagedFields>,
    ) -> Self {
        let (body, managed) = (OnceLock::from(Arc::new(body)), OnceLock::from(managed));
        Self { key, uid, version: Version(0), shows_cluster, body, managed, packed: None }
    }

    /// An object that rests.
    pub(crate) fn resting(
        key: Key,
        uid: Uid,
        version: Version,
        shows_cluster: bool,
        packed: Arc<Packed>,
    ) -> Self {
        let (body, managed) = (OnceLock::new(), OnceLock::new());
        Self { key, uid, version, shows_cluster, body, managed, packed: Some(packed) }
    }

    /// Everything but `resourceVersion` and `managedFields`.
    pub fn body(&self) -> &Value {
        self.body
            .get_or_init(|| Arc::new(self.packed.as_ref().map(|packed| packed.body()).unwrap_or_default()))
    }

    /// Its managers.
    pub fn managed(&self) -> &Arc<ManagedFields> {
        let unpack = || Arc::new(self.packed.as_ref().map(|packed| packed.managed()).unwrap_or_default());
        self.managed.get_or_init(unpack)
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Value {
        &self.body()["metadata"]
    }

    /// Its generation; 0 if its kind has none.
    pub fn generation(&self) -> u64 {
        self.metadata()["generation"].as_u64().unwrap_or(0)
    }

    /// Whether its deletion was asked for.
    pub fn is_deleting(&self) -> bool {
        match self.at_rest() {
            Some(packed) => packed.deleting,
            None => !self.metadata()["deletionTimestamp"].is_null(),
        }
    }

    /// Whether it names owners.
    pub fn is_owned(&self) -> bool {
        match self.at_rest() {
            Some(packed) => packed.owned,
            None => self.metadata().get("ownerReferences").is_some(),
        }
    }

    /// The uids of its owners, and whether each must wait for it. What rests goes on resting.
    pub(crate) fn owners(&self) -> Vec<(Uid, bool)> {
        if let Some(packed) = self.at_rest() {
            let named = packed.metadata().and_then(|metadata| metadata.member("ownerReferences"));
            let owner = |owner: Raw<'_>| {
                let waits = owner.member("blockOwnerDeletion").and_then(Raw::as_bool).unwrap_or_default();
                Some((Uid::parse(&owner.member("uid")?.as_str()?), waits))
            };
            return named.into_iter().flat_map(Raw::elements).filter_map(owner).collect();
        }
        let named = self.metadata()["ownerReferences"].as_array().into_iter().flatten();
        let owner =
            |owner: &Value| Some((Uid::parse(owner["uid"].as_str()?), owner["blockOwnerDeletion"] == true));
        named.filter_map(owner).collect()
    }

    /// Its finalizers.
    pub fn finalizers(&self) -> Vec<&str> {
        crate::metadata::texts(self.body(), "finalizers")
    }

    /// The whole object, as a client sees it.
    pub fn to_value(&self) -> Value {
        // What is written here is made of JSON values alone.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The whole object as JSON, as a client sees it.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The whole object as it is written down; [`Stored::from_record`] reads it back.
    pub fn to_record(&self) -> Vec<u8> {
        let (uid, version) = (&self.uid, self.version);
        let made =
            || Packed::of(self.body(), self.managed(), &mut |text| Arc::from(text)).to_record(uid, version);
        self.packed.as_ref().map_or_else(made, |packed| packed.to_record(uid, version))
    }

    /// The same object at another version.
    pub(crate) fn at(&self, version: Version) -> Self {
        Self { version, ..self.clone() }
    }

    /// The same object with another body.
    #[must_use]
    pub fn with_body(&self, body: Value) -> Self {
        self.with(body, Arc::clone(self.managed()))
    }

    /// The same object with another body and other managers.
    pub(crate) fn with(&self, body: Value, managed: Arc<ManagedFields>) -> Self {
        let made = Self::new(self.key.clone(), self.uid.clone(), self.shows_cluster, body, managed);
        made.at(self.version)
    }

    /// What it rests as, if nobody has looked into it.
    fn at_rest(&self) -> Option<&Packed> {
        self.packed.as_deref().filter(|_| self.body.get().is_none())
    }

    /// A member of it as text, if nobody has looked into it.
    pub fn resting_member(&self, name: &str) -> Option<Arc<str>> {
        self.at_rest()?.member(name)
    }

    /// The text that stands under a path of members. What rests goes on resting.
    pub fn text_at(&self, path: &[&str]) -> Option<Cow<'_, str>> {
        let (first, inner) = path.split_first()?;
        if let Some(packed) = self.at_rest() {
            let (_, member) = packed.members().find(|(name, _)| name == first)?;
            return member.get(inner)?.as_str();
        }
        let value = path.iter().try_fold(self.body(), |value, member| value.get(member))?;
        value.as_str().map(Cow::Borrowed)
    }

    /// Whether it has a member, be it empty. What rests goes on resting.
    pub fn has_member(&self, name: &str) -> bool {
        match self.at_rest() {
            Some(packed) => packed.members().any(|(found, _)| found == name),
            None => self.body().get(name).is_some(),
        }
    }

    /// Whether it is text alone.
    pub(crate) fn is_resting(&self) -> bool {
        self.packed.is_some() && self.body.get().is_none() && self.managed.get().is_none()
    }

    /// About how many bytes it takes at rest; as a tree, which nobody has counted, none.
    pub(crate) fn resting_bytes(&self) -> usize {
        self.packed.as_ref().map_or(0, |packed| size_of::<Self>() + packed.bytes())
    }

    /// The same object at rest.
    pub(crate) fn rested(&self, texts: &mut Texts) -> Self {
        let packed = match &self.packed {
            Some(packed) => Arc::clone(packed),
            None => Arc::new(Packed::of(self.body(), self.managed(), &mut |text| texts.share(text))),
        };
        Self::resting(self.key.clone(), self.uid.clone(), self.version, self.shows_cluster, packed)
    }

    fn members(&self) -> Vec<(Cow<'_, str>, Piece<'_>)> {
        match self.at_rest() {
            Some(packed) => {
                packed.members().map(|(name, member)| (name.into(), Piece::Text(member))).collect()
            }
            None => Piece::Tree(self.body()).members(),
        }
    }

    /// Whether a field selector takes it.
    pub(crate) fn has_fields(&self, selector: &FieldSelector) -> bool {
        selector.terms().iter().all(|term| {
            let value = match term.path.as_str() {
                "metadata.name" => Cow::Borrowed(self.key.name.as_str()),
                "metadata.namespace" => Cow::Borrowed(self.key.namespace.as_str()),
                path => field(self.body(), path),
            };
            (value == term.value) == term.equal
        })
    }
}

fn field<'v>(body: &'v Value, path: &str) -> Cow<'v, str> {
    match path.split('.').try_fold(body, |value, member| value.get(member)) {
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => Cow::Owned(value.to_string()),
        // Who an event comes from is said in one of two ways, and asked for in one.
        Some(Value::Object(source)) if path == "source" => {
            let told = [source.get("component"), body.get("reportingComponent")];
            let mut told = told.into_iter().flatten().filter_map(Value::as_str);
            told.find(|text| !text.is_empty()).map(Cow::Borrowed).unwrap_or_default()
        }
        _ => Cow::default(),
    }
}

impl Labels for Stored {
    fn label_value(&self, key: &str) -> Option<Cow<'_, str>> {
        match self.at_rest() {
            Some(packed) => packed.metadata()?.get(&["labels", key])?.as_str(),
            None => self.metadata()["labels"].get(key)?.as_str().map(Cow::Borrowed),
        }
    }
}

/// An object as one client is shown it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'s> {
    /// The object.
    pub stored: &'s Stored,
    /// What is said of its type.
    pub type_meta: TypeMeta<'s>,
}

/// What an object says of its own type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeMeta<'s> {
    /// What was stored.
    AsStored,
    /// Its kind, in this version.
    Version(&'s str),
    /// Nothing: the list that it stands in says it.
    Nothing,
    /// That it is metadata alone.
    MetadataOnly,
}

impl Stored {
    /// The object as one client is shown it.
    pub fn shown<'s>(&'s self, type_meta: TypeMeta<'s>) -> Shown<'s> {
        Shown { stored: self, type_meta }
    }
}

impl Serialize for Stored {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown(TypeMeta::AsStored).serialize(serializer)
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, member) in self.stored.members() {
            match (&*name, self.type_meta) {
                ("metadata", _) => {
                    map.serialize_entry(&name, &Metadata { of: self.stored, metadata: member })?;
                }
                ("apiVersion", TypeMeta::Version(version)) => map.serialize_entry(&name, version)?,
                ("apiVersion", TypeMeta::MetadataOnly) => map.serialize_entry(&name, "meta.k8s.io/v1")?,
                ("kind", TypeMeta::MetadataOnly) => map.serialize_entry(&name, "PartialObjectMetadata")?,
                ("apiVersion" | "kind", TypeMeta::Nothing) | (_, TypeMeta::MetadataOnly) => {}
                _ => map.serialize_entry(&name, &member)?,
            }
        }
        map.end()
    }
}

/// Metadata with what stands beside the body, its members sorted.
struct Metadata<'s> {
    of: &'s Stored,
    metadata: Piece<'s>,
}

impl Metadata<'_> {
    fn put_managers<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match (self.of.managed.get(), &self.of.packed) {
            (None, Some(packed)) if packed.is_unmanaged() => Ok(()),
            (None, Some(packed)) => map.serialize_entry("managedFields", &PackedManagers(packed)),
            _ if self.of.managed().is_empty() => Ok(()),
            _ => map.serialize_entry("managedFields", &**self.of.managed()),
        }
    }

    fn put_version<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        // What was only tried has no version.
        match self.of.version {
            Version(0) => Ok(()),
            version => map.serialize_entry("resourceVersion", &version.to_string()),
        }
    }
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = self.metadata.members();
        let annotations = members.iter().find(|(name, _)| name == "annotations").map(|(_, member)| *member);
        let mut map = serializer.serialize_map(None)?;
        if self.of.shows_cluster {
            map.serialize_entry("annotations", &Annotations { stored: self.of, annotations })?;
        } else if let Some(annotations) = annotations {
            map.serialize_entry("annotations", &annotations)?;
        }
        let (mut managers_due, mut version_due) = (true, true);
        for (name, member) in members.iter().filter(|(name, _)| name != "annotations") {
            if **name > *"managedFields" && std::mem::take(&mut managers_due) {
                self.put_managers(&mut map)?;
            }
            if **name > *"resourceVersion" && std::mem::take(&mut version_due) {
                self.put_version(&mut map)?;
            }
            map.serialize_entry(name, member)?;
        }
        if managers_due {
            self.put_managers(&mut map)?;
        }
        if version_due {
            self.put_version(&mut map)?;
        }
        map.end()
    }
}

struct Annotations<'s> {
    stored: &'s Stored,
    annotations: Option<Piece<'s>>,
}

impl Serialize for Annotations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(CLUSTER_ANNOTATION, self.stored.key.cluster.0.as_str())?;
        for (name, value) in self.annotations.into_iter().flat_map(Piece::members) {
            map.serialize_entry(&name, &value)?;
        }
        map.end()
    }
}
