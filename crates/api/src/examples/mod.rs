//! One valid object of each kind, and invalid ones with the field that a server must name when it refuses them.
//!
//! Values, so that any crate's tests can send them to any server, and documentation can show them.

mod compute;
mod denatured;
mod edge;
mod inventory;
mod publisher;

use serde_json::Value;

/// An object that a server must refuse.
#[derive(Clone, Debug, PartialEq)]
pub struct InvalidExample {
    /// The object.
    pub object: Value,
    /// The field that the refusal must name, for example `spec.downsync[0]`.
    pub field: &'static str,
}

/// Valid objects of the kinds that have a CRD; of every kind at least one.
pub fn valid() -> Vec<Value> {
    [edge::valid(), inventory::valid(), publisher::valid()].concat()
}

/// Invalid objects of the kinds that have a CRD; of every kind at least one.
pub fn invalid() -> Vec<InvalidExample> {
    [edge::invalid(), inventory::invalid(), publisher::invalid()].concat()
}

/// A minimal valid object of each compute kind.
pub fn valid_compute() -> Vec<Value> {
    compute::valid()
}

/// A minimal valid object of each denatured kind.
pub fn valid_denatured() -> Vec<Value> {
    denatured::valid()
}

/// For each compute and denatured kind, its valid object with one field of a wrong type.
pub fn invalid_builtin() -> Vec<InvalidExample> {
    compute::valid().into_iter().chain(denatured::valid()).filter_map(spoil).collect()
}

/// Puts a text, or a number in place of a text, into the first field that is not metadata.
fn spoil(mut object: Value) -> Option<InvalidExample> {
    let fields =
        ["spec", "template", "subsets", "rules", "roleRef", "webhooks", "secrets", "value", "handler"];
    let more = ["provisioner", "storageClassName", "addressType"];
    let field = fields.into_iter().chain(more).find(|field| object.get(field).is_some())?;
    object[field] = if object[field].is_string() { 7.into() } else { "of a wrong type".into() };
    Some(InvalidExample { object, field })
}
