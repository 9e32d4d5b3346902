//! Whether an object is as its schema asks, with the words of real servers.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value};

use super::at::At;
use super::{Form, Limits, ListRelation, ListShape, MapShape, Node, NodeId, ScalarType, Schema};
use crate::status::{FieldError, MOST_ERRORS, MOST_ERRORS_BYTES};
use crate::typed::list_element;

/// So many values are looked at, each as often as schemas that are joined ask for it. Twice as many as an object has room for.
/// What is long costs more: a text by its length, and by what its pattern compiles to.
const MOST_STEPS: u64 = 1_500_000;

impl Schema {
    /// Everything that is wrong with an object but its metadata, which has rules of its own; no more of it than anybody is
    /// told. Only what is below `status` is looked at if `status_only`.
    pub fn validate(&self, object: &Value, status_only: bool) -> Vec<FieldError> {
        let steps = Cell::new(MOST_STEPS);
        let mut walk = Walk { schema: self, errors: Vec::new(), bytes: 0, most: MOST_ERRORS, steps: &steps };
        let (Value::Object(members), Some(root)) = (object, self.node(self.root()).map.as_ref()) else {
            return Vec::new();
        };
        if status_only {
            if let (Some(status), Some(field)) = (members.get("status"), root.field("status")) {
                walk.value(status, field.node, At::ROOT.member("status"));
            }
            return walk.found();
        }
        let node = self.node(self.root());
        if let Some(limits) = &node.limits {
            walk.joined(object, limits, At::ROOT);
            walk.members(members, limits, At::ROOT);
        }
        for (name, member) in members.iter().filter(|(name, _)| *name != "metadata") {
            if let Some(field) = root.field(name) {
                walk.value(member, field.node, At::ROOT.member(name));
            }
        }
        walk.found()
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
    /// How long these are together.
    bytes: usize,
    /// With more errors than so many, no more are sought.
    most: usize,
    /// How many values may still be looked at, by this walk and by those of joined schemas.
    steps: &'a Cell<u64>,
}

impl Walk<'_> {
    /// What was found, and that there was too much to look at.
    fn found(mut self) -> Vec<FieldError> {
        if self.steps.get() == 0 {
            let why =
                "validation failed due to running out of cost budget, no further validation will be done";
            self.errors.push(FieldError::invalid("<nil>", &Value::Null, why));
        }
        self.errors
    }

    fn say(&mut self, error: FieldError) {
        self.bytes += error.field.len() + error.body.len();
        self.errors.push(error);
    }

    /// Whether nobody would be told of more.
    fn is_full(&self) -> bool {
        self.errors.len() > self.most || self.bytes > MOST_ERRORS_BYTES
    }

    /// Whether one more value is looked at.
    fn goes_on(&self) -> bool {
        self.spends(1) && !self.is_full()
    }

    /// Whether so much more may be done.
    fn spends(&self, steps: u64) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(steps));
        left > steps
    }

    fn value(&mut self, value: &Value, id: NodeId, at: At<'_>) {
        if !self.goes_on() {
            return;
        }
        let node = self.schema.node(id);
        if value.is_null() && (node.nullable || matches!(node.form, Form::Time | Form::List)) {
            return;
        }
        if let Some(expected) = mismatch(value, node) {
            let (found, path) = (found(value), at.to_string());
            let detail = format!("{path} in body must be of type {expected}: {found:?}");
            self.say(FieldError::wrong_type(&path, found, detail));
            if let Some(limits) = &node.limits {
                self.joined(value, limits, at);
            }
            return;
        }
        if node.form == Form::Bytes
            && let Some(byte) = value.as_str().and_then(not_base64)
        {
            let detail = format!("illegal base64 data at input byte {byte}");
            self.say(FieldError::wrong_type(&at.to_string(), "string", detail));
        }
        if let Some(limits) = &node.limits {
            self.joined(value, limits, at);
            self.limits(value, limits, at);
        }
        match value {
            Value::Object(members) => {
                if let Some(map) = &node.map {
                    self.map(members, map, at);
                }
            }
            Value::Array(elements) => {
                if let Some(list) = &node.list {
                    self.list(elements, list, at);
                }
            }
            _ => {}
        }
    }

    /// The other schemas that have to hold, or not to. Of alternatives that all fail, the errors of the first are told.
    fn joined(&mut self, value: &Value, limits: &Limits, at: At<'_>) {
        let tried = |id: NodeId, most: usize| {
            let mut walk =
                Walk { schema: self.schema, errors: Vec::new(), bytes: 0, most, steps: self.steps };
            walk.value(value, id, at);
            walk.errors
        };
        let holds = |id: &NodeId| tried(*id, 0).is_empty();
        let mut found = Vec::new();
        let failed = |what: &str| {
            let detail = format!("{:?} must {what}", at.to_string());
            FieldError::invalid("<nil>", &"".into(), detail)
        };
        if let [first, others @ ..] = limits.any_of.as_slice() {
            let errors = tried(*first, self.most);
            if !errors.is_empty() && !others.iter().any(holds) {
                found.push(failed("validate at least one schema (anyOf)"));
                found.extend(errors);
            }
        }
        if let [first, others @ ..] = limits.only_one_of.as_slice() {
            let errors = tried(*first, self.most);
            let valid = usize::from(errors.is_empty()) + others.iter().filter(|id| holds(id)).count();
            let why = match valid {
                0 => "Found none valid".to_owned(),
                count => format!("Found {count} valid alternatives"),
            };
            if valid != 1 {
                found.push(failed(&format!("validate one and only one schema (oneOf). {why}")));
            }
            if valid == 0 {
                found.extend(errors);
            }
        }
        let mut valid = 0;
        for id in &limits.all_of {
            let errors = tried(*id, self.most.saturating_sub(found.len()));
            valid += usize::from(errors.is_empty());
            found.extend(errors);
        }
        if valid != limits.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            found.push(failed(&format!("validate all the schemas (allOf){none}")));
        }
        if limits.not.as_ref().is_some_and(holds) {
            found.push(failed("not validate the schema (not)"));
        }
        for error in found {
            self.say(error);
        }
    }

    fn map(&mut self, members: &Map<String, Value>, map: &MapShape, at: At<'_>) {
        for (name, member) in members {
            let declared = map.field(name).map(|field| field.node);
            if let Some(node) = declared.or(map.elements.filter(|_| map.elements_declared)) {
                self.value(member, node, at.member(name));
            }
        }
    }

    fn list(&mut self, elements: &[Value], list: &ListShape, at: At<'_>) {
        for (index, element) in elements.iter().enumerate() {
            self.value(element, list.items, at.element(index));
        }
        if list.relation == ListRelation::Atomic {
            return;
        }
        let (mut seen, mut others) = (BTreeSet::new(), HashSet::new());
        for (index, element) in elements.iter().enumerate() {
            if self.is_full() {
                return;
            }
            let again = match (list_element(self.schema, list, element), &list.relation) {
                (Ok(key), _) => !seen.insert(key),
                // What cannot be an element of a set can still be there twice.
                (Err(_), ListRelation::Set) => !others.insert(element.to_string()),
                (Err(_), _) => false,
            };
            if again {
                self.say(FieldError::duplicate(&at.element(index).to_string(), &keys_of(element, list)));
            }
        }
    }

    fn members(&mut self, members: &Map<String, Value>, limits: &Limits, at: At<'_>) {
        for name in &limits.required {
            if self.is_full() {
                return;
            }
            if !members.contains_key(name.as_str()) {
                self.say(FieldError::required(&at.member(name).to_string(), ""));
            }
        }
    }

    fn limits(&mut self, value: &Value, limits: &Limits, at: At<'_>) {
        if !self.spends(cost(value, limits)) {
            return;
        }
        if !limits.one_of.is_empty() && !limits.one_of.contains(value) {
            self.say(FieldError::unsupported(&at.to_string(), value, &limits.one_of));
        }
        let mut refuse = |what: String| {
            let path = at.to_string();
            self.say(FieldError::invalid(&path, value, format!("{path} in body should {what}")));
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
                    self.say(FieldError::too_long(&at.to_string(), most));
                }
                if let Some(format) = limits.format.as_ref().filter(|format| !format.holds(text)) {
                    let path = at.to_string();
                    let detail = format!("{path} in body must be of type {}: {text:?}", format.name);
                    self.say(FieldError::wrong_type(&path, text, detail));
                }
            }
            Value::Array(elements) => {
                let count = elements.len() as u64;
                if let Some(least) = limits.min_items.filter(|least| count < *least) {
                    refuse(format!("have at least {least} items"));
                }
                if let Some(most) = limits.max_items.filter(|most| count > *most) {
                    self.say(FieldError::too_many(&at.to_string(), count, most));
                }
            }
            Value::Object(members) => {
                let count = members.len() as u64;
                if let Some(least) = limits.min_properties.filter(|least| count < *least) {
                    refuse(format!("have at least {least} properties"));
                }
                if let Some(most) = limits.max_properties.filter(|most| count > *most) {
                    self.say(FieldError::too_many(&at.to_string(), count, most));
                }
                self.members(members, limits, at);
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// What it costs to hold a value to limits, beyond looking at it.
fn cost(value: &Value, limits: &Limits) -> u64 {
    /// So much of a text is read, or so many names are compared, in one step.
    const STEP_BYTES: u64 = 4096;
    const STEP_NAMES: u64 = 64;
    let names = (limits.one_of.len() + limits.required.len()) as u64 / STEP_NAMES;
    let Value::String(text) = value else { return names };
    let pattern = limits.pattern.as_ref().map_or(0, |pattern| pattern.cost(text));
    names + pattern + text.len() as u64 / STEP_BYTES
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
