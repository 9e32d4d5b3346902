//! An object as it is stored.

use std::borrow::Cow;
use std::sync::Arc;

use mailboat_object::select::Labels;
use mailboat_object::{FieldSelector, Key, Uid, Version};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::managed::ManagedFields;
use crate::metadata::CLUSTER_ANNOTATION;

/// An object as it is stored at one version: immutable, and cheap to copy.
///
/// Its version and its managers stand beside the body, so that a delete event, which differs in nothing but the
/// version, shares the body, and nobody reads managers back from JSON.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Where it stands.
    pub key: Key,
    /// Its uid.
    pub uid: Uid,
    /// Its resource version.
    pub version: Version,
    /// Whether it shows the cluster that it stands in, as kcp's objects do.
    pub(crate) shows_cluster: bool,
    pub(crate) body: Arc<Value>,
    pub(crate) managed: Arc<ManagedFields>,
}

impl Stored {
    /// Everything but `resourceVersion` and `managedFields`.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Its managers.
    pub fn managed(&self) -> &ManagedFields {
        &self.managed
    }

    /// Its metadata.
    pub fn metadata(&self) -> &Value {
        &self.body["metadata"]
    }

    /// Its generation; 0 if its kind has none.
    pub fn generation(&self) -> u64 {
        self.metadata()["generation"].as_u64().unwrap_or(0)
    }

    /// Whether its deletion was asked for.
    pub fn is_deleting(&self) -> bool {
        !self.metadata()["deletionTimestamp"].is_null()
    }

    /// Its finalizers.
    pub fn finalizers(&self) -> Vec<&str> {
        crate::metadata::texts(&self.body, "finalizers")
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

    /// The same object at another version.
    pub(crate) fn at(&self, version: Version) -> Self {
        Self { version, ..self.clone() }
    }

    /// Whether a field selector takes it.
    pub(crate) fn has_fields(&self, selector: &FieldSelector) -> bool {
        selector.terms().iter().all(|term| {
            let value = match term.path.as_str() {
                "metadata.name" => Cow::Borrowed(self.key.name.as_str()),
                "metadata.namespace" => Cow::Borrowed(self.key.namespace.as_str()),
                path => field(&self.body, path),
            };
            (value == term.value) == term.equal
        })
    }
}

fn field<'v>(body: &'v Value, path: &str) -> Cow<'v, str> {
    match path.split('.').try_fold(body, |value, member| value.get(member)) {
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => Cow::Owned(value.to_string()),
        _ => Cow::default(),
    }
}

impl Labels for Stored {
    fn label_value(&self, key: &str) -> Option<Cow<'_, str>> {
        self.metadata()["labels"].get(key)?.as_str().map(Cow::Borrowed)
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
        for (name, member) in self.stored.body.as_object().into_iter().flatten() {
            match (name.as_str(), self.type_meta) {
                ("metadata", _) => {
                    map.serialize_entry(name, &Metadata { of: self.stored, members: member.as_object() })?;
                }
                ("apiVersion", TypeMeta::Version(version)) => map.serialize_entry(name, version)?,
                ("apiVersion", TypeMeta::MetadataOnly) => map.serialize_entry(name, "meta.k8s.io/v1")?,
                ("kind", TypeMeta::MetadataOnly) => map.serialize_entry(name, "PartialObjectMetadata")?,
                ("apiVersion" | "kind", TypeMeta::Nothing) | (_, TypeMeta::MetadataOnly) => {}
                _ => map.serialize_entry(name, member)?,
            }
        }
        map.end()
    }
}

/// Metadata with what stands beside the body, its members sorted.
struct Metadata<'s> {
    of: &'s Stored,
    members: Option<&'s Map<String, Value>>,
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = self.of;
        let annotations = self.members.and_then(|members| members.get("annotations"));
        let mut map = serializer.serialize_map(None)?;
        if stored.shows_cluster {
            map.serialize_entry("annotations", &Annotations { stored, annotations })?;
        } else if let Some(annotations) = annotations {
            map.serialize_entry("annotations", annotations)?;
        }
        let mut managed = Some(&*stored.managed).filter(|managed| !managed.is_empty());
        // What was only tried has no version.
        let mut version = Some(stored.version).filter(|version| version.0 > 0);
        for (name, member) in self.members.into_iter().flatten().filter(|(name, _)| *name != "annotations") {
            if name.as_str() > "managedFields"
                && let Some(managed) = managed.take()
            {
                map.serialize_entry("managedFields", managed)?;
            }
            if name.as_str() > "resourceVersion"
                && let Some(version) = version.take()
            {
                map.serialize_entry("resourceVersion", &version.to_string())?;
            }
            map.serialize_entry(name, member)?;
        }
        if let Some(managed) = managed {
            map.serialize_entry("managedFields", managed)?;
        }
        if let Some(version) = version {
            map.serialize_entry("resourceVersion", &version.to_string())?;
        }
        map.end()
    }
}

struct Annotations<'s> {
    stored: &'s Stored,
    annotations: Option<&'s Value>,
}

impl Serialize for Annotations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(CLUSTER_ANNOTATION, self.stored.key.cluster.0.as_str())?;
        for (name, value) in self.annotations.and_then(Value::as_object).into_iter().flatten() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
