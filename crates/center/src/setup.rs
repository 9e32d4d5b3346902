//! What stands in the provider workspace: the APIs that other workspaces bind, who may bind them, and types of
//! workspaces that come with them.
//!
//! Everything is a [`Piece`], in the order in which it is needed, with what becomes of it where it is there already.
//! `mailboat center init` asks for each what is there, and does what [`Piece::missing_from`] says; a second run finds
//! nothing to do, and a newer version changes what it has to.

mod pieces;

use std::collections::{BTreeMap, BTreeSet};

use mailboat_api::generate::{self, GenerateError, ResourceSchema};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use serde_json::Value;

pub use pieces::{IDENTITIES, INVENTORY_TYPE, WORKLOAD_TYPE, identity_of, pieces};

/// The APIs that a provider workspace offers.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The APIExports, by name.
    pub exports: BTreeMap<&'static str, Value>,
    /// The schemas behind each of them.
    pub schemas: BTreeMap<&'static str, Vec<ResourceSchema>>,
}

/// One object that the provider workspace should have.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    /// Its kind.
    pub kind: KindId,
    /// Its namespace; empty for what is cluster-scoped.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The object as it should be.
    pub object: Value,
    /// What becomes of one that is there.
    pub once: bool,
}

/// What is missing of a piece.
#[derive(Clone, PartialEq, Debug)]
pub enum Missing {
    /// All of it: make it.
    All,
    /// It is there and says something else: write it so, as this.
    Written(Value),
}

impl Offer {
    /// All that we offer.
    pub fn all() -> Result<Self, GenerateError> {
        Ok(Self { exports: generate::exports()?, schemas: generate::export_schemas()? })
    }

    /// Of the kinds in these exports only those with these resources; other exports stay whole. A server takes some
    /// seconds for each kind that is new to it, which matters to those who need few of them.
    #[must_use]
    pub fn narrowed(mut self, exports: &[&str], resources: &BTreeSet<&str>) -> Self {
        for (name, schemas) in &mut self.schemas {
            if exports.contains(name) {
                schemas.retain(|schema| resources.contains(schema.plural.as_str()));
            }
        }
        for (name, export) in &mut self.exports {
            if exports.contains(name)
                && let Some(offered) = export.pointer_mut("/spec/resources").and_then(Value::as_array_mut)
            {
                offered.retain(|one| one["name"].as_str().is_some_and(|name| resources.contains(name)));
            }
        }
        self
    }
}

impl Piece {
    fn new(group: &str, resource: &str, object: Value) -> Self {
        let text = |member: &str| Name::new(object["metadata"][member].as_str().unwrap_or_default());
        let (namespace, name) = (text("namespace"), text("name"));
        Self { kind: KindId::new(group, resource), namespace, name, object, once: false }
    }

    /// Never changed once it is there.
    fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Where it stands in a cluster.
    pub fn key(&self, cluster: &ClusterId) -> Key {
        Key {
            cluster: cluster.clone(),
            kind: self.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// What is to be written, given what is there; `None` if nothing is.
    pub fn missing_from(&self, found: Option<&Value>) -> Option<Missing> {
        let Some(found) = found else { return Some(Missing::All) };
        if self.once {
            return None;
        }
        let mut wanted = self.object.clone();
        // An export's identity is what its objects are stored under: whichever it has, it keeps.
        if let Some(identity) = found.pointer("/spec/identity")
            && wanted.pointer("/spec/identity").is_some()
        {
            wanted["spec"]["identity"] = identity.clone();
        }
        (!covers(found, &wanted)).then_some(Missing::Written(wanted))
    }
}

/// Whether all that is wanted is found. Lists must be the same from end to end.
fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| match found.get(name) {
                Some(found) => covers(found, wanted),
                // Servers leave out what is empty.
                None => {
                    wanted.as_object().is_some_and(serde_json::Map::is_empty) || wanted.as_str() == Some("")
                }
            })
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| covers(found, wanted))
        }
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests;
