//! From an API server's OpenAPI schemas to structural schemas that CRDs and kcp accept.
//!
//! References are put in place, what Kubernetes' generator adds for Go's sake is dropped (defaults of zero
//! values, merge keys of strategic patches), and what a CRD cannot express is let through unchecked: the edge
//! validates again, so a value that a real cluster takes must not be refused here.

use serde_json::{Map, Value, json};

use super::GenerateError;
use super::kinds::BuiltinKind;
use super::openapi::{Document, reference_name};

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The structural schema of a whole kind.
pub(super) fn kind(document: &Document, kind: &BuiltinKind) -> Result<Value, GenerateError> {
    let mut schema = Conversion { document, within: Vec::new() }.convert(document.root(kind)?)?;
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert("apiVersion".to_owned(), json!({ "type": "string" }));
        properties.insert("kind".to_owned(), json!({ "type": "string" }));
        properties.insert("metadata".to_owned(), json!({ "type": "object" }));
    }
    Ok(schema)
}

/// A permissive schema for a kind that is only stored: every top-level field that is a map or a list belongs
/// as a whole to whoever writes it, and what is within is not looked at.
///
/// As a whole, because a map that is applied piece by piece cannot become empty again on a custom resource.
pub(super) fn permissive(document: &Document, kind: &BuiltinKind) -> Result<Value, GenerateError> {
    let root = document.root(kind)?;
    let mut properties = Map::new();
    for (name, property) in root["properties"].as_object().into_iter().flatten() {
        let schema = match (name.as_str(), property["type"].as_str().unwrap_or("object")) {
            ("apiVersion" | "kind", _) => json!({ "type": "string" }),
            ("metadata", _) => json!({ "type": "object" }),
            (_, "object") => json!({
                "type": "object",
                "description": description(property),
                "x-kubernetes-map-type": "atomic",
                "x-kubernetes-preserve-unknown-fields": true,
            }),
            (_, "array") => json!({
                "type": "array",
                "description": description(property),
                "items": { "x-kubernetes-preserve-unknown-fields": true },
                "x-kubernetes-list-type": "atomic",
            }),
            (_, scalar) => json!({ "type": scalar, "description": description(property) }),
        };
        properties.insert(name.clone(), schema);
    }
    let stored = "Stored here without taking effect; at the edge it gets back its real API group.";
    Ok(json!({
        "type": "object",
        "description": format!("{} {stored}", root["description"].as_str().unwrap_or(kind.kind)),
        "properties": properties,
        "x-kubernetes-preserve-unknown-fields": true,
    }))
}

fn description(property: &Value) -> &str {
    property["description"].as_str().unwrap_or_default()
}

struct Conversion<'document> {
    document: &'document Document,
    /// References that are being put in place, outermost first.
    within: Vec<String>,
}

impl Conversion<'_> {
    fn convert(&mut self, schema: &Value) -> Result<Value, GenerateError> {
        if let Some(reference) = reference_of(schema) {
            let mut target = self.reference(reference)?;
            if let (Some(description), Some(target)) = (schema.get("description"), target.as_object_mut()) {
                target.insert("description".to_owned(), description.clone());
            }
            return Ok(target);
        }
        let mut converted = Map::new();
        for key in ["type", "format", "description", "enum", "required", "x-kubernetes-map-type"] {
            if let Some(value) = schema.get(key) {
                converted.insert(key.to_owned(), value.clone());
            }
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let mut inner = Map::new();
            for (name, property) in properties {
                inner.insert(name.clone(), self.convert(property)?);
            }
            converted.insert("properties".to_owned(), Value::Object(inner));
        }
        if let Some(values) = schema.get("additionalProperties") {
            converted.insert("additionalProperties".to_owned(), self.convert(values)?);
        }
        if let Some(items) = schema.get("items") {
            self.convert_list(schema, items, &mut converted)?;
        }
        let is_open = converted.get("type").is_none_or(|type_| type_ == "object")
            && !converted.contains_key("properties")
            && !converted.contains_key("additionalProperties");
        if is_open {
            converted.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
        }
        Ok(Value::Object(converted))
    }

    fn reference(&mut self, name: &str) -> Result<Value, GenerateError> {
        match name {
            // A number with a fraction is a quantity as well, which no typed schema allows for.
            QUANTITY => return Ok(json!({ "x-kubernetes-preserve-unknown-fields": true })),
            INT_OR_STRING => return Ok(json!({ "x-kubernetes-int-or-string": true })),
            OBJECT_META => return Ok(template_metadata()),
            _ => {}
        }
        if self.within.iter().any(|outer| outer == name) {
            return Ok(json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }));
        }
        let target = self.document.schema(name)?;
        self.within.push(name.to_owned());
        let converted = self.convert(target);
        self.within.pop();
        converted
    }

    /// A list keeps its merge keys if every item is sure to have them.
    fn convert_list(
        &mut self,
        schema: &Value,
        items: &Value,
        converted: &mut Map<String, Value>,
    ) -> Result<(), GenerateError> {
        let mut item = self.convert(items)?;
        let list_type = schema["x-kubernetes-list-type"].as_str().unwrap_or("atomic");
        let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let list_type = match list_type {
            "map" if self.give_keys(items, &mut item, &keys)? => {
                converted.insert("x-kubernetes-list-map-keys".to_owned(), json!(keys));
                "map"
            }
            "set" if item["type"] != "object" => "set",
            _ => "atomic",
        };
        converted.insert("x-kubernetes-list-type".to_owned(), json!(list_type));
        converted.insert("items".to_owned(), item);
        Ok(())
    }

    /// Makes sure that each key is required or has a default, taking the default from the original.
    fn give_keys(&self, items: &Value, item: &mut Value, keys: &[&str]) -> Result<bool, GenerateError> {
        let original = match reference_of(items) {
            Some(name) => self.document.schema(name)?,
            None => items,
        };
        for key in keys {
            let is_required =
                item["required"].as_array().is_some_and(|required| required.contains(&json!(key)));
            if is_required {
                continue;
            }
            let default = &original["properties"][key]["default"];
            if default.is_null() || !item["properties"][key].is_object() {
                return Ok(false);
            }
            item["properties"][key]["default"] = default.clone();
        }
        Ok(!keys.is_empty())
    }
}

/// The name that a schema refers to, directly or by a single `allOf`.
fn reference_of(schema: &Value) -> Option<&str> {
    schema
        .get("$ref")
        .or_else(|| schema.get("allOf")?.get(0)?.get("$ref"))
        .and_then(Value::as_str)
        .map(reference_name)
}

/// The metadata of a template within an object, such as a Deployment's pods.
fn template_metadata() -> Value {
    let texts = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "annotations": texts,
            "labels": texts,
            "name": { "type": "string" },
            "namespace": { "type": "string" },
        },
        "x-kubernetes-preserve-unknown-fields": true,
    })
}
