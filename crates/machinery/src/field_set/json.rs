//! Field sets as `fieldsV1`.

use mailboat_object::Name;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::{Entry, FieldSet, PathElement, Scalar};

/// Why a `fieldsV1` cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFieldSet(String);

impl FieldSet {
    /// Reads a `fieldsV1`. Path elements of a kind yet unknown are left out, as servers do.
    pub fn from_json(json: &Value) -> Result<Self, BadFieldSet> {
        let Value::Object(members) = json else {
            return Err(BadFieldSet("fieldsV1 must be a map".to_owned()));
        };
        Ok(read(members)?.1)
    }
}

/// Whether the map is a member itself, and what is below it. The keys stand in the order of their texts, which is not that of
/// what they mean.
fn read(members: &Map<String, Value>) -> Result<(bool, FieldSet), BadFieldSet> {
    let mut dotted = false;
    let mut entries = Vec::with_capacity(members.len());
    for (key, below) in members {
        if key == "." {
            dotted = true;
            continue;
        }
        let Some(element) = element(key)? else { continue };
        let Value::Object(below) = below else {
            return Err(BadFieldSet(format!("below {key:?} must be a map")));
        };
        let (member, children) = read(below)?;
        entries.push(Entry { element, member, children });
    }
    Ok((dotted || entries.is_empty(), FieldSet::from_entries(entries)))
}

fn element(key: &str) -> Result<Option<PathElement>, BadFieldSet> {
    let Some((kind, content)) = key.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
        return Err(BadFieldSet(format!("{key:?} is no path element")));
    };
    let json = || -> Result<Value, BadFieldSet> {
        serde_json::from_str(content).map_err(|error| BadFieldSet(format!("{key:?}: {error}")))
    };
    Ok(match kind {
        "f" => Some(PathElement::field(content)),
        "v" => Some(PathElement::Value(Scalar::of(&json()?))),
        "i" => {
            let index = content.parse().map_err(|_| BadFieldSet(format!("{key:?} has no number")))?;
            Some(PathElement::Index(index))
        }
        "k" => {
            let Value::Object(keys) = json()? else {
                return Err(BadFieldSet(format!("{key:?} holds no map")));
            };
            // The map is sorted by name already.
            Some(PathElement::Key(
                keys.iter().map(|(name, value)| (Name::new(name), Scalar::of(value))).collect(),
            ))
        }
        _ => None,
    })
}

impl Serialize for FieldSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(false, serializer)
    }
}

impl FieldSet {
    fn write<S: Serializer>(&self, member: bool, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if member && !self.entries.is_empty() {
            map.serialize_entry(".", &Map::new())?;
        }
        for entry in &self.entries {
            map.serialize_entry(
                &key(&entry.element),
                &Below { member: entry.member, children: &entry.children },
            )?;
        }
        map.end()
    }
}

struct Below<'s> {
    member: bool,
    children: &'s FieldSet,
}

impl Serialize for Below<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.children.write(self.member, serializer)
    }
}

fn key(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => format!("f:{name}"),
        PathElement::Key(keys) => {
            let mut text = "k:{".to_owned();
            for (index, (name, value)) in keys.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&quoted(name));
                text.push(':');
                text.push_str(&scalar(value));
            }
            text.push('}');
            text
        }
        PathElement::Value(value) => format!("v:{}", scalar(value)),
        PathElement::Index(index) => format!("i:{index}"),
    }
}

fn scalar(value: &Scalar) -> String {
    match value {
        Scalar::Text(text) => quoted(text),
        Scalar::Float(float) => Value::from(*float).to_string(),
        other => other.to_string(),
    }
}

/// A text as Go writes it, which takes care that it can stand in a web page.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    if json.contains(['<', '>', '&']) {
        json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    } else {
        json
    }
}
