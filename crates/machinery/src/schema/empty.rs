//! The object of a kind that holds nothing, as a server decodes it.

use serde_json::{Map, Value};

use super::{Field, NodeId, Schema};

/// So deep go the parts that an empty object has; those of real kinds end after four.
const DEPTH_LIMIT: usize = 8;

impl Field {
    /// Whether a server holds it as a value of its own: its description says that it is empty by default.
    pub(crate) fn is_struct(&self) -> bool {
        self.default.as_ref().and_then(Value::as_object).is_some_and(Map::is_empty)
    }
}

impl Schema {
    /// The object that holds nothing. Its parts are there, though empty, and what must be said is null.
    pub(crate) fn empty(&self) -> Value {
        self.empty_of(self.root(), DEPTH_LIMIT, false)
    }

    /// A part that nobody spoke of: all that a server holds there itself is zero.
    pub(crate) fn zero(&self, id: NodeId) -> Value {
        self.zero_of(id, DEPTH_LIMIT)
    }

    fn zero_of(&self, id: NodeId, depth: usize) -> Value {
        let fields = self.node(id).map.iter().flat_map(|map| &map.fields).filter(|_| depth > 0);
        let zero = |(name, field): (&mailboat_object::Name, &Field)| {
            let value = match &field.default {
                _ if field.is_struct() => self.zero_of(field.node, depth - 1),
                Some(zero @ (Value::Number(_) | Value::Bool(_) | Value::String(_))) => zero.clone(),
                _ => return None,
            };
            Some((name.to_string(), value))
        };
        Value::Object(fields.filter_map(zero).collect())
    }

    /// `counted`: what is always said is zero. A wish must be said; a report begins somewhere.
    fn empty_of(&self, id: NodeId, depth: usize, counted: bool) -> Value {
        let node = self.node(id);
        let mut empty = Map::new();
        let Some(map) = node.map.as_ref().filter(|_| depth > 0) else { return Value::Object(empty) };
        let required = node.limits.iter().flat_map(|limits| &limits.required);
        for name in required {
            if map.field(name).is_some_and(|field| field.default.is_none()) {
                empty.insert(name.to_string(), Value::Null);
            }
        }
        for (name, field) in &map.fields {
            let value = match &field.default {
                _ if field.is_struct() && name.as_str() == "metadata" => Value::Object(Map::new()),
                _ if field.is_struct() => {
                    self.empty_of(field.node, depth - 1, counted || name.as_str() == "status")
                }
                Some(zero @ (Value::Number(_) | Value::String(_) | Value::Bool(_))) if counted => {
                    zero.clone()
                }
                Some(Value::String(text)) if text.is_empty() && !is_required(node, name) => "".into(),
                _ => continue,
            };
            empty.insert(name.to_string(), value);
        }
        Value::Object(empty)
    }
}

fn is_required(node: &super::Node, name: &str) -> bool {
    node.limits.as_ref().is_some_and(|limits| limits.required.iter().any(|required| **required == *name))
}
