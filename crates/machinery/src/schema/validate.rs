//! Whether an object is as its schema asks, with the words of real servers.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Form, Limits, ListRelation, ListShape, MapShape, Node, NodeId, ScalarType, Schema};
use crate::status::FieldError;
use crate::typed::list_element;

impl Schema {
    /// Everything that is wrong with an object but its metadata, which has rules of its own. Only what is below
    /// `status` is looked at if `status_only`.
    pub fn validate(&self, object: &Value, status_only: bool) -> Vec<FieldError> {
        let mut walk = Walk { schema: self, errors: Vec::new() };
        let (Value::Object(members), Some(root)) = (object, self.node(self.root()).map.as_ref()) else {
            return Vec::new();
        };
        if status_only {
            if let (Some(status), Some(field)) = (members.get("status"), root.field("status")) {
                walk.value(status, field.node, "status");
            }
            return walk.errors;
        }
        let node = self.node(self.root());
        if let Some(limits) = &node.limits {
            walk.joined(object, limits, "");
            walk.members(members, limits, "");
        }
        for (name, member) in members.iter().filter(|(name, _)| *name != "metadata") {
            if let Some(field) = root.field(name) {
                walk.value(member, field.node, name);
            }
        }
        walk.errors
    }
}

/// Where a text stops being base64.
pub(super) fn not_base64(text: &str) -> Option<usize> {
    use base64::Engine as _;
    match base64::prelude::BASE64_STANDARD.decode(text) {
        Ok(_) => None,
        Err(base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _)) => {
            Some(at)
        }
        Err(_) => Some(text.len()),
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    errors: Vec<FieldError>,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value, id: NodeId, path: &str) {
        let node = self.schema.node(id);
        if value.is_null() && (node.nullable || matches!(node.form, Form::Time | Form::List)) {
            return;
        }
        if let Some(expected) = mismatch(value, node) {
            let found = found(value);
            let detail = format!("{path} in body must be of type {expected}: {found:?}");
            self.errors.push(FieldError::wrong_type(path, found, detail));
            if let Some(limits) = &node.limits {
                self.joined(value, limits, path);
            }
            return;
        }
        if node.form == Form::Bytes
            && let Some(at) = value.as_str().and_then(not_base64)
        {
            let detail = format!("illegal base64 data at input byte {at}");
            self.errors.push(FieldError::wrong_type(path, "string", detail));
        }
        if let Some(limits) = &node.limits {
            self.joined(value, limits, path);
            self.limits(value, limits, path);
        }
        match value {
            Value::Object(members) => {
                if let Some(map) = &node.map {
                    self.map(members, map, path);
                }
            }
            Value::Array(elements) => {
                if let Some(list) = &node.list {
                    self.list(elements, list, path);
                }
            }
            _ => {}
        }
    }

    /// The other schemas that have to hold, or not to. Of alternatives that all fail, the errors of the first are told.
    fn joined(&mut self, value: &Value, limits: &Limits, path: &str) {
        let tried = |id: NodeId| {
            let mut walk = Walk { schema: self.schema, errors: Vec::new() };
            walk.value(value, id, path);
            walk.errors
        };
        let mut found = Vec::new();
        let failed = |what: String| FieldError::invalid("<nil>", &"".into(), format!("{path:?} must {what}"));
        if !limits.any_of.is_empty() {
            let mut results = limits.any_of.iter().map(|id| tried(*id));
            let first = results.next().unwrap_or_default();
            if !first.is_empty() && !results.any(|errors| errors.is_empty()) {
                found.push(failed("validate at least one schema (anyOf)".to_owned()));
                found.extend(first);
            }
        }
        if !limits.only_one_of.is_empty() {
            let mut results: Vec<_> = limits.only_one_of.iter().map(|id| tried(*id)).collect();
            let valid = results.iter().filter(|errors| errors.is_empty()).count();
            let why = match valid {
                0 => "Found none valid".to_owned(),
                count => format!("Found {count} valid alternatives"),
            };
            if valid != 1 {
                found.push(failed(format!("validate one and only one schema (oneOf). {why}")));
            }
            if valid == 0 {
                found.append(&mut results[0]);
            }
        }
        let results: Vec<_> = limits.all_of.iter().map(|id| tried(*id)).collect();
        let valid = results.iter().filter(|errors| errors.is_empty()).count();
        found.extend(results.iter().flatten().cloned());
        if valid != results.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            found.push(failed(format!("validate all the schemas (allOf){none}")));
        }
        if limits.not.is_some_and(|id| tried(id).is_empty()) {
            found.push(failed("not validate the schema (not)".to_owned()));
        }
        self.errors.append(&mut found);
    }

    fn map(&mut self, members: &Map<String, Value>, map: &MapShape, path: &str) {
        for (name, member) in members {
            let declared = map.field(name).map(|field| field.node);
            if let Some(node) = declared.or(map.elements.filter(|_| map.elements_declared)) {
                self.value(member, node, &format!("{path}.{name}"));
            }
        }
    }

    fn list(&mut self, elements: &[Value], list: &ListShape, path: &str) {
        for (index, element) in elements.iter().enumerate() {
            self.value(element, list.items, &format!("{path}[{index}]"));
        }
        if list.relation == ListRelation::Atomic {
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, element) in elements.iter().enumerate() {
            let again = match (list_element(self.schema, list, element), &list.relation) {
                (Ok(key), _) => !seen.insert(key),
                // What cannot be an element of a set can still be there twice.
                (Err(_), ListRelation::Set) => elements[..index].contains(element),
                (Err(_), _) => false,
            };
            if again {
                self.errors.push(FieldError::duplicate(&format!("{path}[{index}]"), &keys_of(element, list)));
            }
        }
    }

    fn members(&mut self, members: &Map<String, Value>, limits: &Limits, path: &str) {
        for name in &limits.required {
            if !members.contains_key(name.as_str()) {
                let dot = if path.is_empty() { "" } else { "." };
                self.errors.push(FieldError::required(&format!("{path}{dot}{name}"), ""));
            }
        }
    }

    fn limits(&mut self, value: &Value, limits: &Limits, path: &str) {
        if !limits.one_of.is_empty() && !limits.one_of.contains(value) {
            self.errors.push(FieldError::unsupported(path, value, &limits.one_of));
        }
        let mut refuse = |what: String| {
            self.errors.push(FieldError::invalid(path, value, format!("{path} in body should {what}")));
        };
        match value {
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or_default();
                match limits.minimum {
                    Some((least, true)) if number <= least => refuse(format!("be greater than {least}")),
                    Some((least, false)) if number < least => {
                        refuse(format!("be greater than or equal to {least}"));
                    }
                    _ => {}
                }
                match limits.maximum {
                    Some((most, true)) if number >= most => refuse(format!("be less than {most}")),
                    Some((most, false)) if number > most => {
                        refuse(format!("be less than or equal to {most}"));
                    }
                    _ => {}
                }
                if let Some(of) = limits.multiple_of.filter(|of| (number / of).fract() != 0.0) {
                    refuse(format!("be a multiple of {of}"));
                }
            }
            Value::String(text) => {
                let length = text.chars().count() as u64;
                if let Some(least) = limits.min_length.filter(|least| length < *least) {
                    refuse(format!("be at least {least} chars long"));
                }
                if let Some(pattern) = limits.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
                    refuse(format!("match '{pattern}'"));
                }
                if let Some(most) = limits.max_length.filter(|most| length > *most) {
                    self.errors.push(FieldError::too_long(path, most));
                }
                if let Some(format) = limits.format.as_ref().filter(|format| !format.holds(text)) {
                    let detail = format!("{path} in body must be of type {}: {text:?}", format.name);
                    self.errors.push(FieldError::wrong_type(path, text, detail));
                }
            }
            Value::Array(elements) => {
                let count = elements.len() as u64;
                if let Some(least) = limits.min_items.filter(|least| count < *least) {
                    refuse(format!("have at least {least} items"));
                }
                if let Some(most) = limits.max_items.filter(|most| count > *most) {
                    self.errors.push(FieldError::too_many(path, count, most));
                }
            }
            Value::Object(members) => {
                let count = members.len() as u64;
                if let Some(least) = limits.min_properties.filter(|least| count < *least) {
                    refuse(format!("have at least {least} properties"));
                }
                if let Some(most) = limits.max_properties.filter(|most| count > *most) {
                    self.errors.push(FieldError::too_many(path, count, most));
                }
                self.members(members, limits, path);
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// The type that was asked for, if the value is of another.
fn mismatch(value: &Value, node: &Node) -> Option<&'static str> {
    if node.any {
        return None;
    }
    let (fits, expected) = match (&node.map, &node.list, node.scalar) {
        (Some(_), ..) => (value.is_object(), "object"),
        (None, Some(_), _) => (value.is_array(), "array"),
        (None, None, Some(ScalarType::Text)) => (value.is_string(), "string"),
        (None, None, Some(ScalarType::Bool)) => (value.is_boolean(), "boolean"),
        (None, None, Some(ScalarType::Whole)) => (is_whole(value), "integer"),
        (None, None, Some(ScalarType::Number)) => (value.is_number(), "number"),
        (None, None, Some(ScalarType::Untyped)) => (value.is_string() || is_whole(value), "integer,string"),
        (None, None, None) => (true, ""),
    };
    if fits { None } else { Some(expected) }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn found(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_whole(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What of an element is a duplicate: its keys, or the element itself where there are none.
fn keys_of(element: &Value, list: &ListShape) -> Value {
    match &list.relation {
        ListRelation::Map(keys) => {
            let member =
                |key: &mailboat_object::Name| Some((key.to_string(), element.get(key.as_str())?.clone()));
            Value::Object(keys.iter().filter_map(member).collect())
        }
        ListRelation::Set | ListRelation::Atomic => element.clone(),
    }
}
