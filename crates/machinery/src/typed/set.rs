//! The fields that an object holds, and whether they may be there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Shape, Shapes, list_element};
use crate::field_set::{FieldSet, PathElement};
use crate::schema::{ListRelation, ListShape, MapShape, NodeId, ScalarType, Schema};

/// The fields that an object holds.
pub(crate) fn field_set(schema: &Schema, object: &Value) -> FieldSet {
    let mut walk = Walk { schema, path: Vec::new(), fields: FieldSet::default() };
    walk.value(schema.root(), object);
    walk.fields
}

struct Walk<'a> {
    schema: &'a Schema,
    path: Vec<PathElement>,
    fields: FieldSet,
}

impl Walk<'_> {
    fn value(&mut self, id: NodeId, value: &Value) {
        match Shapes::of(self.schema.node(id), Some(value)).shape() {
            Shape::Map(map) if !map.atomic => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    let Some(node) = map.member(name) else { continue };
                    self.path.push(PathElement::field(name));
                    self.value(node, member);
                    let empty = member.is_null() || member.as_object().is_some_and(serde_json::Map::is_empty);
                    if empty || map.field(name).is_none() {
                        self.fields.insert(&self.path);
                    }
                    self.path.pop();
                }
            }
            Shape::List(list) if list.relation != ListRelation::Atomic => self.list(list, value),
            Shape::Map(_) | Shape::List(_) | Shape::Scalar(_) | Shape::None => self.fields.insert(&self.path),
        }
    }

    fn list(&mut self, list: &ListShape, value: &Value) {
        let elements = value.as_array().map_or(&[][..], Vec::as_slice);
        // None: it is there more than once, and only the key is known.
        let mut by_key: BTreeMap<PathElement, Option<&Value>> = BTreeMap::new();
        for element in elements {
            let Ok(key) = list_element(self.schema, list, element) else { continue };
            by_key.entry(key).and_modify(|known| *known = None).or_insert(Some(element));
        }
        for (key, element) in by_key {
            self.path.push(key);
            if let Some(element) = element {
                self.value(list.items, element);
            }
            self.fields.insert(&self.path);
            self.path.pop();
        }
    }
}

/// Whether an object fits its schema: every member declared, every scalar of its type, and, unless they are
/// allowed, no element twice.
pub(crate) fn check(schema: &Schema, object: &Value, duplicates: bool) -> Result<(), String> {
    let mut wrong = Vec::new();
    Check { schema, duplicates, wrong: &mut wrong }.value(schema.root(), object, "");
    match wrong.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        all => Err(format!("errors:\n  {}", all.join("\n  "))),
    }
}

struct Check<'a> {
    schema: &'a Schema,
    duplicates: bool,
    wrong: &'a mut Vec<String>,
}

impl Check<'_> {
    fn say(&mut self, path: &str, what: &str) {
        self.wrong.push(if path.is_empty() { what.to_owned() } else { format!("{path}: {what}") });
    }

    fn value(&mut self, id: NodeId, value: &Value, path: &str) {
        if value.is_null() {
            return;
        }
        match Shapes::of(self.schema.node(id), Some(value)).shape() {
            Shape::Map(map) => self.map(map, value, path),
            Shape::List(list) => self.list(list, value, path),
            Shape::Scalar(scalar) => {
                let (fits, expected) = match scalar {
                    ScalarType::Untyped => (!value.is_array() && !value.is_object(), "any scalar"),
                    ScalarType::Number | ScalarType::Whole => (value.is_number(), "numeric (int or float)"),
                    ScalarType::Text => (value.is_string(), "string"),
                    ScalarType::Bool => (value.is_boolean(), "boolean"),
                };
                if !fits {
                    self.say(path, &format!("expected {expected}, got {value}"));
                }
            }
            Shape::None => {}
        }
    }

    fn map(&mut self, map: &MapShape, value: &Value, path: &str) {
        let Value::Object(members) = value else {
            return self.say(path, &format!("expected map, got {value}"));
        };
        for (name, member) in members {
            match map.member(name) {
                Some(node) => self.value(node, member, &format!("{path}.{name}")),
                None => self.say(&format!("{path}.{name}"), "field not declared in schema"),
            }
        }
    }

    fn list(&mut self, list: &ListShape, value: &Value, path: &str) {
        let Value::Array(elements) = value else {
            return self.say(path, &format!("expected list, got {value}"));
        };
        let mut seen = BTreeSet::new();
        for (index, element) in elements.iter().enumerate() {
            let key = match list_element(self.schema, list, element) {
                _ if list.relation == ListRelation::Atomic => {
                    PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
                }
                Ok(key) => key,
                Err(what) => return self.say(path, &format!("element {index}: {what}")),
            };
            let below = format!("{path}{key}");
            if !seen.insert(key.clone()) && !self.duplicates {
                self.say(path, &format!("duplicate entries for key {key}"));
            }
            self.value(list.items, element, &below);
        }
    }
}
