//! The fields that an object holds, and whether they may be there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::{Shape, Shapes, list_element};
use crate::field_set::{FieldSet, PathElement};
use crate::schema::{ListRelation, ListShape, MapShape, NodeId, ScalarType, Schema};
use crate::status::{MOST_ERRORS, MOST_ERRORS_BYTES};

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

/// Whether an object fits its schema, and what of it does not, as far as anybody is told: every member declared, every scalar of its type, and, unless they are
/// allowed, no element twice.
pub(crate) fn check(schema: &Schema, object: &Value, duplicates: bool) -> Result<(), String> {
    let mut check = Check { schema, duplicates, path: Vec::new(), wrong: Vec::new(), bytes: 0 };
    check.value(schema.root(), object);
    let wrong = check.wrong;
    match wrong.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        all => Err(format!("errors:\n  {}", all.join("\n  "))),
    }
}

/// A step into an object; paths are written out only where something is wrong.
enum Step<'a> {
    Member(&'a str),
    Element(PathElement),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(name) => write!(f, ".{name}"),
            Self::Element(element) => element.fmt(f),
        }
    }
}

struct Check<'a> {
    schema: &'a Schema,
    duplicates: bool,
    path: Vec<Step<'a>>,
    wrong: Vec<String>,
    /// How long these are together.
    bytes: usize,
}

impl<'a> Check<'a> {
    fn say(&mut self, what: &str) {
        let path: String = self.path.iter().map(ToString::to_string).collect();
        let said = if path.is_empty() { what.to_owned() } else { format!("{path}: {what}") };
        self.bytes += said.len();
        self.wrong.push(said);
    }

    /// Whether nobody would be told of more.
    fn is_full(&self) -> bool {
        self.wrong.len() > MOST_ERRORS || self.bytes > MOST_ERRORS_BYTES
    }

    fn below(&mut self, step: Step<'a>, look: impl FnOnce(&mut Self)) {
        if self.is_full() {
            return;
        }
        self.path.push(step);
        look(self);
        self.path.pop();
    }

    fn value(&mut self, id: NodeId, value: &'a Value) {
        if value.is_null() {
            return;
        }
        match Shapes::of(self.schema.node(id), Some(value)).shape() {
            Shape::Map(map) => self.map(map, value),
            Shape::List(list) => self.list(list, value),
            Shape::Scalar(scalar) => {
                let (fits, expected) = match scalar {
                    ScalarType::Untyped => (!value.is_array() && !value.is_object(), "any scalar"),
                    ScalarType::Number | ScalarType::Whole => (value.is_number(), "numeric (int or float)"),
                    ScalarType::Text => (value.is_string(), "string"),
                    ScalarType::Bool => (value.is_boolean(), "boolean"),
                };
                if !fits {
                    self.say(&format!("expected {expected}, got {value}"));
                }
            }
            Shape::None => {}
        }
    }

    fn map(&mut self, map: &MapShape, value: &'a Value) {
        let Value::Object(members) = value else {
            return self.say(&format!("expected map, got {value}"));
        };
        for (name, member) in members {
            self.below(Step::Member(name), |walk| match map.member(name) {
                Some(node) => walk.value(node, member),
                None => walk.say("field not declared in schema"),
            });
        }
    }

    fn list(&mut self, list: &ListShape, value: &'a Value) {
        let Value::Array(elements) = value else {
            return self.say(&format!("expected list, got {value}"));
        };
        let mut seen = BTreeSet::new();
        for (index, element) in elements.iter().enumerate() {
            let key = match list_element(self.schema, list, element) {
                _ if list.relation == ListRelation::Atomic => {
                    PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
                }
                Ok(key) => key,
                Err(what) => return self.say(&format!("element {index}: {what}")),
            };
            if !seen.insert(key.clone()) && !self.duplicates && !self.is_full() {
                self.say(&format!("duplicate entries for key {key}"));
            }
            self.below(Step::Element(key), |walk| walk.value(list.items, element));
        }
    }
}
