//! An object without some of its fields.

use serde_json::{Map, Value};

use super::{Shape, Shapes, list_element};
use crate::field_set::{FieldSet, PathElement};
use crate::schema::{ListRelation, NodeId, Schema};

/// The object without the fields of the set. A map or list of which only parts were removed, and that has
/// nothing left, becomes null, as on real servers.
pub(crate) fn remove(schema: &Schema, object: &Value, fields: &FieldSet) -> Value {
    if fields.is_empty() {
        return object.clone();
    }
    Walk { schema }.value(schema.root(), object, fields)
}

struct Walk<'a> {
    schema: &'a Schema,
}

impl Walk<'_> {
    fn value(&self, id: NodeId, value: &Value, fields: &FieldSet) -> Value {
        match Shapes::of(self.schema.node(id), Some(value)).shape() {
            Shape::Map(map) => match value {
                Value::Object(members) if !members.is_empty() && !map.atomic => {
                    let mut kept = Map::new();
                    for (name, member) in members {
                        let element = PathElement::field(name);
                        if fields.contains(&element) {
                            continue;
                        }
                        let member = match (fields.below(&element), map.member(name)) {
                            (Some(below), Some(node)) => self.value(node, member, below),
                            _ => member.clone(),
                        };
                        kept.insert(name.clone(), member);
                    }
                    if kept.is_empty() { Value::Null } else { Value::Object(kept) }
                }
                _ => Value::Null,
            },
            Shape::List(list) => match value {
                Value::Array(elements) if !elements.is_empty() && list.relation != ListRelation::Atomic => {
                    let mut kept = Vec::with_capacity(elements.len());
                    for element in elements {
                        let Ok(key) = list_element(self.schema, list, element) else {
                            kept.push(element.clone());
                            continue;
                        };
                        if fields.contains(&key) {
                            continue;
                        }
                        kept.push(match fields.below(&key) {
                            Some(below) => self.value(list.items, element, below),
                            None => element.clone(),
                        });
                    }
                    if kept.is_empty() { Value::Null } else { Value::Array(kept) }
                }
                _ => Value::Null,
            },
            Shape::Scalar(_) | Shape::None => value.clone(),
        }
    }
}
