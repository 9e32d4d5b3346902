//! `managedFields` as JSON.

use std::sync::Arc;

use mailboat_object::timestamp::unix_seconds;
use mailboat_object::{Name, Operation};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::{ManagedFields, Manager};
use crate::field_set::FieldSet;
use crate::size::{OBJECT_DEPTH_MAX, is_deeper};
use crate::time::rfc3339;

/// Why `managedFields` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("managedFields[{index}]: {what}")]
pub struct BadManagedFields {
    index: usize,
    what: String,
}

/// Whether somebody asks to forget all managers: by an empty list, or by one with a single empty entry.
pub(crate) fn is_reset(managed: &Value) -> bool {
    match managed {
        Value::Array(entries) => match entries.as_slice() {
            [] => true,
            [only] => only.as_object().is_some_and(serde_json::Map::is_empty),
            _ => false,
        },
        _ => false,
    }
}

/// So many managers are read. Each is compared with all others, and with what changes.
const MANAGERS_MAX: usize = 1000;

impl ManagedFields {
    /// Reads `metadata.managedFields`.
    pub fn from_json(managed: &Value) -> Result<Self, BadManagedFields> {
        let mut read = Self::default();
        if managed.as_array().is_some_and(|entries| entries.len() > MANAGERS_MAX) {
            let what = format!("there may be {MANAGERS_MAX} managers at most");
            return Err(BadManagedFields { index: MANAGERS_MAX, what });
        }
        for (index, entry) in managed.as_array().into_iter().flatten().enumerate() {
            let entry = manager(entry).map_err(|what| BadManagedFields { index, what })?;
            // The last of two entries of one manager holds, as in a server's own map.
            read.entries.retain(|other| !other.is_same_manager(&entry));
            read.entries.push(entry);
        }
        read.sort();
        Ok(read)
    }
}

fn manager(entry: &Value) -> Result<Manager, String> {
    let text = |member: &str| entry[member].as_str().unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    if text("apiVersion").is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    if text("fieldsType") != "FieldsV1" {
        return Err(format!("invalid fieldsType {:?}", text("fieldsType")));
    }
    let fields = match &entry["fieldsV1"] {
        Value::Null => FieldSet::default(),
        fields if is_deeper(fields, OBJECT_DEPTH_MAX + 1) => {
            return Err("fieldsV1 is nested too deep".to_owned());
        }
        fields => FieldSet::from_json(fields).map_err(|error| error.to_string())?,
    };
    Ok(Manager {
        name: Name::new(text("manager")),
        operation,
        api_version: Name::new(text("apiVersion")),
        subresource: Name::new(text("subresource")),
        time_seconds: entry["time"].as_str().and_then(unix_seconds),
        fields: Arc::new(fields),
    })
}

impl Serialize for ManagedFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.entries)
    }
}

impl Serialize for Manager {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("apiVersion", self.api_version.as_str())?;
        map.serialize_entry("fieldsType", "FieldsV1")?;
        map.serialize_entry("fieldsV1", &*self.fields)?;
        if !self.name.is_empty() {
            map.serialize_entry("manager", self.name.as_str())?;
        }
        map.serialize_entry(
            "operation",
            match self.operation {
                Operation::Apply => "Apply",
                Operation::Update => "Update",
            },
        )?;
        if !self.subresource.is_empty() {
            map.serialize_entry("subresource", self.subresource.as_str())?;
        }
        if let Some(seconds) = self.time_seconds {
            map.serialize_entry("time", &rfc3339(seconds))?;
        }
        map.end()
    }
}
