//! What a server does to an object's structure before it looks at it: defaults, and what is not declared.

use serde_json::{Map, Value};

use super::at::At;
use super::{Form, MapShape, NodeId, Schema};
use crate::quantity::canonical;
use crate::size::{OBJECT_LIMIT_BYTES, json_bytes};
use crate::status::{MOST_ERRORS, MOST_ERRORS_BYTES};

/// How an object comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// As a body, or out of a patch: defaults are put in, undeclared members and nulls that may not be are
    /// dropped.
    Body,
    /// Out of an apply: defaults are put in, and nothing is dropped. An undeclared member was refused before; a
    /// null that may not be is refused later.
    Applied,
    /// For a kind that the server knows by itself: undeclared members, nulls, and lists and maps of members that
    /// are empty are dropped, as by a decoder into types of its own. Defaults are not the schema's business.
    Native,
}

impl Schema {
    /// Puts in defaults and drops what is not declared, in one walk. The paths of dropped members go to
    /// `unknown`, for warnings or strict refusal; no more of them than anybody is told.
    ///
    /// What has more defaults put in than an object may have bytes is left as it is then: it is refused for its size.
    pub fn admit(&self, object: &mut Value, how: Admission, unknown: &mut Vec<String>) {
        let Value::Object(members) = object else { return };
        let unknown_bytes = unknown.iter().map(String::len).sum();
        let mut walk = Walk { schema: self, how, unknown, unknown_bytes, defaults_bytes: 0 };
        let root = self.node(self.root()).map.as_ref();
        if let Some(root) = root {
            // Metadata is decoded by itself, strictly, whatever the schema says.
            let metadata = members.remove("metadata");
            walk.map(members, root, At::ROOT);
            if let Some(metadata) = metadata {
                members.insert("metadata".to_owned(), metadata);
            }
        }
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    how: Admission,
    unknown: &'a mut Vec<String>,
    unknown_bytes: usize,
    /// What was put in that was not sent.
    defaults_bytes: usize,
}

impl Walk<'_> {
    fn value(&mut self, value: &mut Value, id: NodeId, at: At<'_>) {
        let node = self.schema.node(id);
        if node.form == Form::Quantity && self.how == Admission::Native {
            let text = match value {
                Value::String(text) => canonical(text),
                Value::Number(number) => canonical(&number.to_string()),
                _ => None,
            };
            if let Some(text) = text {
                *value = text.into();
            }
            return;
        }
        match value {
            Value::Object(members) => {
                if let Some(map) = &node.map {
                    // The metadata of an embedded object is free to hold what metadata holds.
                    let metadata = if node.embedded { members.remove("metadata") } else { None };
                    self.map(members, map, at);
                    members.extend(metadata.map(|metadata| ("metadata".to_owned(), metadata)));
                }
            }
            Value::Array(elements) => {
                if let Some(list) = &node.list {
                    for (index, element) in elements.iter_mut().enumerate() {
                        self.value(element, list.items, at.element(index));
                    }
                }
            }
            _ => {}
        }
    }

    fn map(&mut self, members: &mut Map<String, Value>, map: &MapShape, at: At<'_>) {
        if self.how == Admission::Native {
            self.structs(members, map);
        } else {
            self.defaults(members, map);
        }
        members.retain(|name, member| {
            let Some(node) =
                map.field(name).map(|field| field.node).or(map.elements.filter(|_| map.elements_declared))
            else {
                if !map.keeps_unknown && self.how != Admission::Applied {
                    self.say_unknown(at.member(name));
                    return false;
                }
                return true;
            };
            if member.is_null() && self.how != Admission::Applied && !self.schema.node(node).nullable {
                return false;
            }
            self.value(member, node, at.member(name));
            self.how != Admission::Native || !self.is_dropped_when_native(member, node)
        });
    }

    /// Empty lists, and empty maps of free keys, are not written by servers that hold them in types of their
    /// own. A map with declared members is: it was asked for.
    fn is_dropped_when_native(&self, member: &Value, node: NodeId) -> bool {
        match member {
            Value::Array(elements) => elements.is_empty(),
            Value::Object(members) if members.is_empty() => self
                .schema
                .node(node)
                .map
                .as_ref()
                .is_some_and(|map| map.elements_declared && map.fields.is_empty()),
            _ => false,
        }
    }

    /// A server that holds a part of an object as a value of its own, and not as a pointer to one, always has it.
    fn structs(&self, members: &mut Map<String, Value>, map: &MapShape) {
        for (name, field) in &map.fields {
            if field.is_struct() && members.get(name.as_str()).is_none_or(Value::is_null) {
                members.insert(name.to_string(), self.schema.zero(field.node));
            }
        }
    }

    fn say_unknown(&mut self, at: At<'_>) {
        if self.unknown.len() <= MOST_ERRORS && self.unknown_bytes <= MOST_ERRORS_BYTES {
            let path = at.to_string();
            self.unknown_bytes += path.len();
            self.unknown.push(path);
        }
    }

    fn defaults(&mut self, members: &mut Map<String, Value>, map: &MapShape) {
        for name in &map.defaulted {
            if self.defaults_bytes > OBJECT_LIMIT_BYTES {
                return;
            }
            let Some(field) = map.field(name) else { continue };
            let Some(default) = &field.default else { continue };
            let missing = match members.get(name.as_str()) {
                None => true,
                Some(Value::Null) => !self.schema.node(field.node).nullable,
                Some(_) => false,
            };
            if missing {
                self.defaults_bytes += name.len() + json_bytes(default, OBJECT_LIMIT_BYTES);
                members.insert(name.to_string(), default.clone());
            }
        }
    }
}
