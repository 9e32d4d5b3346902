//! Rules in CEL that a schema asks values to obey (`x-kubernetes-validations`).
//!
//! Rules are users' text that runs in the server. The library that evaluates them has no bounds of its own, so a rule is
//! measured before it is parsed, and a value that is too large for a rule's loops is refused, as real servers do it. A rule
//! that is no CEL is refused; one that is too large, or uses what is not offered here, is left out, which is told to whoever
//! writes it ([`left_out`]).

mod functions;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use kube_cel::cel::common::ast::{EntryExpr, Expr};
use kube_cel::cel::objects::{Key, Map, OptionalValue, Value as CelValue};
use kube_cel::cel::{IdedExpr, Program};
use mailboat_object::expression::{TooLarge, check_size};
use serde_json::Value;

use functions::{FUNCTIONS, QUALIFIED, READING, with_functions};

use super::at::At;
use super::parse::paths_fit;
use super::{ListRelation, Node, NodeId, ScalarType, Schema, pattern};
use crate::status::{FieldError, MOST_ERRORS, MOST_ERRORS_BYTES};
use crate::typed::list_element;

/// What one rule may cost for one value, in steps.
const MOST_STEPS: u64 = 1_000_000;
/// What all rules together may cost for one object.
const MOST_STEPS_OF_OBJECT: u64 = 10 * MOST_STEPS;
/// How long a message may be that is made of a value, as with real servers, and how much text may be put together for one.
const MESSAGE_BYTES: usize = 5 * 1024;
const MOST_JOINED_BYTES: u64 = 1 << 20;
/// So much of a text is read in one step.
const TEXT_STEP_BYTES: u64 = 4096;
/// What is said of rules that nobody looked at, because the value is wrong as it is.
const UNCHECKED: &str = "Invalid value: null: some validation rules were not checked because the object was invalid; \
                         correct the existing errors to complete validation";

/// An expression that was measured.
struct Measured {
    program: Program,
    nodes: u64,
    loops: u32,
    reads_text: bool,
    /// It looks at the former value.
    old: bool,
}

/// One rule.
pub(crate) struct Rule {
    condition: Measured,
    /// The former value may be missing: it is one that says whether it is there.
    optional_old: bool,
    text: String,
    message: Option<String>,
    /// What makes a better message of the value, if it can.
    explains: Option<Measured>,
    /// Where below the value the fault is, such as `.replicas`.
    field: String,
    reason: &'static str,
}

/// What rules an object breaks.
struct Broken {
    found: Vec<FieldError>,
    /// How long these are together.
    bytes: usize,
    /// What looking for more may still cost.
    steps: u64,
}

impl Broken {
    /// Whether nobody would be told of more, or it would cost too much.
    fn is_full(&self) -> bool {
        self.found.len() > MOST_ERRORS || self.bytes > MOST_ERRORS_BYTES || self.steps == 0
    }
}

/// Why a rule is not looked at.
#[derive(Debug)]
enum LeftOut {
    /// It is no CEL: no server takes it.
    NoExpression(String),
    /// It is CEL, and too much for this server.
    TooMuch(String),
}

/// The largest of what a rule looks at.
#[derive(Default)]
struct Largest {
    /// Elements of a list or members of a map,
    members: u64,
    /// and bytes of a text.
    text: u64,
}

impl fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rule").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Rule {
    /// Reads the rules of a schema; those that cannot be used here are left out.
    pub(super) fn all(schema: &Value) -> Vec<Arc<Self>> {
        let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        rules.filter_map(|rule| Self::read(rule).ok()).map(Arc::new).collect()
    }

    fn read(rule: &Value) -> Result<Self, LeftOut> {
        let text = rule["rule"].as_str().unwrap_or_default().trim();
        let condition = Measured::read(text)?;
        // Where it cannot be used here, there still is the message.
        let explains = rule["messageExpression"].as_str().and_then(|text| Measured::read(text.trim()).ok());
        let reason = match rule["reason"].as_str() {
            Some("FieldValueRequired") => "FieldValueRequired",
            Some("FieldValueForbidden") => "FieldValueForbidden",
            Some("FieldValueDuplicate") => "FieldValueDuplicate",
            _ => "FieldValueInvalid",
        };
        Ok(Self {
            condition,
            optional_old: rule["optionalOldSelf"] == true,
            text: text.to_owned(),
            message: rule["message"].as_str().map(|message| message.trim().to_owned()),
            explains,
            field: rule["fieldPath"].as_str().unwrap_or_default().to_owned(),
            reason,
        })
    }

    /// What is said of a value that breaks it.
    fn said(&self, old: Option<&CelValue>, new: &CelValue, largest: &Largest) -> String {
        let cheap = |explains: &&Measured| {
            explains.steps(largest) <= MOST_STEPS
                && explains.nodes.saturating_mul(largest.text) <= MOST_JOINED_BYTES
        };
        let fit = |text: &str| (1..=MESSAGE_BYTES).contains(&text.len()) && !text.contains(['\n', '\r']);
        match self.explains.as_ref().filter(cheap).and_then(|explains| explains.run(old, new)) {
            Some(CelValue::String(text)) if fit(text.trim()) => text.trim().to_owned(),
            _ => self.message.clone().unwrap_or_else(|| format!("failed rule: {}", self.text)),
        }
    }

    /// What a value does wrong by this rule, if anything.
    fn broken(
        &self,
        value: &Value,
        old: Option<&CelValue>,
        new: &CelValue,
        largest: &Largest,
        steps: &mut u64,
        at: At<'_>,
    ) -> Option<FieldError> {
        let refused = |body: String| {
            Some(FieldError { field: format!("{at}{}", self.field), reason: self.reason, body })
        };
        let cost = self.condition.steps(largest);
        let left = steps.checked_sub(cost).filter(|_| cost <= MOST_STEPS);
        *steps = left.unwrap_or_default();
        if left.is_none() {
            let why = "validation failed due to running out of cost budget, no further validation rules will be run";
            return refused(format!("Invalid value: {why}"));
        }
        let former = self.optional_old.then(|| {
            let former = old.map_or_else(OptionalValue::none, |old| OptionalValue::of(old.clone()));
            CelValue::Opaque(Arc::new(former))
        });
        let old = former.as_ref().or(old);
        let message = || self.said(old, new, largest);
        let word = match self.reason {
            "FieldValueRequired" => "Required value",
            "FieldValueForbidden" => "Forbidden",
            "FieldValueDuplicate" => "Duplicate value",
            _ => "Invalid value",
        };
        match self.condition.run(old, new) {
            Some(CelValue::Bool(true)) => None,
            Some(CelValue::Bool(false)) => match value {
                Value::Object(_) | Value::Array(_) => refused(format!("{word}: {}", message())),
                _ if self.reason == "FieldValueRequired" || self.reason == "FieldValueForbidden" => {
                    refused(format!("{word}: {}", message()))
                }
                scalar => refused(format!("{word}: {scalar}: {}", message())),
            },
            // What it selects is not there, or is of another type than it takes it for.
            _ => refused(format!("Invalid value: rule evaluation error: {}", self.text)),
        }
    }
}

impl Measured {
    fn read(text: &str) -> Result<Self, LeftOut> {
        match check_size(text) {
            Ok(()) => {}
            Err(why @ TooLarge::Unclear) => return Err(LeftOut::NoExpression(why.to_string())),
            Err(why) => return Err(LeftOut::TooMuch(why.to_string())),
        }
        let program = Program::compile(text).map_err(|_| LeftOut::NoExpression("syntax error".to_owned()))?;
        let mut shape = Shape::default();
        if !shape.look(program.expression(), &mut Vec::new()) {
            let what = shape.unknown.unwrap_or_default();
            return Err(LeftOut::TooMuch(format!("{what} is not known")));
        }
        let Shape { nodes, loops, old, reads_text, .. } = shape;
        Ok(Self { program, nodes, loops, reads_text, old })
    }

    /// What it may take at most, in steps.
    fn steps(&self, largest: &Largest) -> u64 {
        let each = if self.reads_text { 1 + largest.text / TEXT_STEP_BYTES } else { 1 };
        let times = largest.members.max(1).checked_pow(self.loops).unwrap_or(u64::MAX);
        times.saturating_mul(self.nodes).saturating_mul(each)
    }

    /// What it makes of a value. None: what it looks for is not there, or is of another type than it takes it for.
    fn run(&self, old: Option<&CelValue>, new: &CelValue) -> Option<CelValue> {
        with_functions(|functions| {
            let mut context = functions.new_inner_scope();
            context.add_variable_from_value("self", new.clone());
            if let Some(old) = old {
                context.add_variable_from_value("oldSelf", old.clone());
            }
            self.program.execute(&context).ok()
        })
    }
}

/// The rules in a schema that are no CEL, each by its path and with what is wrong.
pub(crate) fn no_expressions(schema: &Value) -> Vec<(String, String)> {
    let wrong = |why| match why {
        LeftOut::NoExpression(why) => Some(why),
        LeftOut::TooMuch(_) => None,
    };
    let mut found = Vec::new();
    walk(schema, "", &wrong, &mut found);
    found
}

/// The rules in a schema that are not enforced here, each by its path and with the reason.
pub fn left_out(schema: &Value) -> Vec<(String, String)> {
    let left = |why| match why {
        LeftOut::NoExpression(why) | LeftOut::TooMuch(why) => Some(why),
    };
    let mut found = Vec::new();
    if paths_fit(schema) {
        walk(schema, "", &left, &mut found);
    }
    found
}

fn walk(
    schema: &Value,
    path: &str,
    told: &impl Fn(LeftOut) -> Option<String>,
    found: &mut Vec<(String, String)>,
) {
    for (index, rule) in schema["x-kubernetes-validations"].as_array().into_iter().flatten().enumerate() {
        if let Some(why) = Rule::read(rule).err().and_then(told) {
            found.push((format!("{path}.x-kubernetes-validations[{index}].rule"), why));
        }
    }
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        walk(member, &format!("{path}.properties[{name}]"), told, found);
    }
    for inner in ["items", "additionalProperties"] {
        if schema[inner].is_object() {
            walk(&schema[inner], &format!("{path}.{inner}"), told, found);
        }
    }
}

impl Schema {
    /// Whether anything in it has rules.
    pub(crate) fn has_rules(&self) -> bool {
        self.nodes.iter().any(|node| !node.rules().is_empty())
    }

    /// Everything that breaks a rule. `errors` are what is wrong with the object otherwise: some of it makes looking
    /// pointless, which is said.
    pub(crate) fn obey(&self, new: &Value, old: Option<&Value>, errors: &[FieldError]) -> Vec<FieldError> {
        const BLOCKING: [&str; 5] = [
            "FieldValueRequired",
            FieldError::WRONG_TYPE,
            "FieldValueTooLong",
            "FieldValueTooMany",
            "FieldValueNotSupported",
        ];
        if !self.has_rules() {
            return Vec::new();
        }
        if errors.iter().any(|error| BLOCKING.contains(&error.reason)) {
            return vec![FieldError {
                field: "<nil>".to_owned(),
                reason: "FieldValueInvalid",
                body: UNCHECKED.to_owned(),
            }];
        }
        pattern::begin();
        let mut broken = Broken { found: Vec::new(), bytes: 0, steps: MOST_STEPS_OF_OBJECT };
        self.obey_at(self.root(), new, old, At::ROOT, &mut broken);
        broken.found
    }

    fn obey_at(&self, id: NodeId, new: &Value, old: Option<&Value>, at: At<'_>, broken: &mut Broken) {
        let node = self.node(id);
        if broken.is_full() {
            return;
        }
        if !node.rules().is_empty() {
            let mut largest = Largest::default();
            let value = self.cel(id, new, &mut largest);
            let former = old.map(|old| self.cel(id, old, &mut largest));
            let applies = |rule: &&Arc<Rule>| !rule.condition.old || rule.optional_old || former.is_some();
            let rules = node.rules().iter().filter(applies);
            for rule in rules {
                if broken.is_full() {
                    return;
                }
                if let Some(error) =
                    rule.broken(new, former.as_ref(), &value, &largest, &mut broken.steps, at)
                {
                    broken.bytes += error.field.len() + error.body.len();
                    broken.found.push(error);
                }
            }
        }
        match new {
            Value::Object(members) => {
                for (name, member) in members {
                    let Some(child) = node.map.as_ref().and_then(|map| map.member(name)) else { continue };
                    self.obey_at(child, member, old.and_then(|old| old.get(name)), at.member(name), broken);
                }
            }
            Value::Array(elements) => {
                let Some(list) = &node.list else { return };
                // Elements are the same ones as before where keys tell them apart.
                let keyed = matches!(list.relation, ListRelation::Map(_));
                let former = old.and_then(Value::as_array).filter(|_| keyed).into_iter().flatten().rev();
                // Of two with one key, the first is meant.
                let former: BTreeMap<_, _> =
                    former.filter_map(|old| Some((list_element(self, list, old).ok()?, old))).collect();
                for (index, element) in elements.iter().enumerate() {
                    let old =
                        list_element(self, list, element).ok().and_then(|key| former.get(&key).copied());
                    self.obey_at(list.items, element, old, at.element(index), broken);
                }
            }
            _ => {}
        }
    }

    /// A value as rules see it: a number is whole or not by its schema.
    fn cel(&self, id: NodeId, value: &Value, largest: &mut Largest) -> CelValue {
        let node = self.node(id);
        match value {
            Value::Null => CelValue::Null,
            Value::Bool(truth) => CelValue::Bool(*truth),
            Value::Number(number) => match number.as_i64() {
                Some(whole) if node.scalar != Some(ScalarType::Number) => CelValue::Int(whole),
                _ => number.as_f64().map_or(CelValue::Null, CelValue::Float),
            },
            Value::String(text) => {
                largest.text = largest.text.max(text.len() as u64);
                CelValue::String(Arc::new(text.clone()))
            }
            Value::Array(elements) => {
                largest.members = largest.members.max(elements.len() as u64);
                let items = node.list.as_ref().map_or(super::UNTYPED, |list| list.items);
                CelValue::List(Arc::new(
                    elements.iter().map(|element| self.cel(items, element, largest)).collect(),
                ))
            }
            Value::Object(members) => {
                largest.members = largest.members.max(members.len() as u64);
                let map = node.map.as_ref();
                let member = |(name, value): (&String, &Value)| {
                    let child = map.and_then(|map| map.member(name)).unwrap_or(super::UNTYPED);
                    (Key::String(Arc::new(name.clone())), self.cel(child, value, largest))
                };
                let members: HashMap<Key, CelValue> = members.iter().map(member).collect();
                CelValue::Map(Map { map: Arc::new(members) })
            }
        }
    }
}

impl Node {
    fn rules(&self) -> &[Arc<Rule>] {
        self.limits.as_ref().map_or(&[], |limits| limits.rules.as_slice())
    }
}

/// What a rule is made of.
#[derive(Default)]
struct Shape {
    nodes: u64,
    loops: u32,
    old: bool,
    reads_text: bool,
    /// What it uses that is not offered.
    unknown: Option<String>,
}

impl Shape {
    fn known(&mut self, known: bool, name: &str) -> bool {
        if !known {
            self.unknown.get_or_insert_with(|| name.to_owned());
        }
        known
    }

    /// Looks through an expression; false if it uses what is not offered.
    fn look<'e>(&mut self, expression: &'e IdedExpr, bound: &mut Vec<&'e str>) -> bool {
        self.nodes += 1;
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => true,
            Expr::Ident(name) => {
                self.old |= name == "oldSelf";
                let known = bound.contains(&name.as_str()) || matches!(name.as_str(), "self" | "oldSelf");
                self.known(known, name)
            }
            Expr::Select(select) => self.look(&select.operand, bound),
            Expr::List(list) => list.elements.iter().all(|element| self.look(element, bound)),
            Expr::Map(map) => map.entries.iter().all(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => self.look(&entry.key, bound) && self.look(&entry.value, bound),
                EntryExpr::StructField(field) => self.look(&field.value, bound),
            }),
            Expr::Struct(made) => self.known(false, &made.type_name),
            Expr::Call(call) => {
                let operator = !call.func_name.starts_with(|first: char| first.is_ascii_alphabetic());
                if let Some(space) = call.target.as_deref().and_then(|target| qualifier(target, bound)) {
                    self.reads_text = true;
                    let functions = QUALIFIED.iter().find(|(known, _)| *known == space);
                    let known = functions.is_some_and(|(_, all)| all.contains(&call.func_name.as_str()));
                    return self.known(known, &format!("{space}.{}", call.func_name))
                        && call.args.iter().all(|argument| self.look(argument, bound));
                }
                let reads = READING.contains(&call.func_name.as_str());
                self.reads_text |= reads;
                let known = operator || reads || FUNCTIONS.contains(&call.func_name.as_str());
                self.known(known, &call.func_name)
                    && call.target.as_deref().is_none_or(|target| self.look(target, bound))
                    && call.args.iter().all(|argument| self.look(argument, bound))
            }
            Expr::Comprehension(looped) => {
                self.loops += 1;
                let outside = self.look(&looped.iter_range, bound) && self.look(&looped.accu_init, bound);
                let known = bound.len();
                bound.push(&looped.accu_var);
                bound.push(&looped.iter_var);
                bound.extend(looped.iter_var2.as_deref());
                let inside = self.look(&looped.result, bound)
                    && self.look(&looped.loop_cond, bound)
                    && self.look(&looped.loop_step, bound);
                bound.truncate(known);
                outside && inside
            }
        }
    }
}

/// What stands before the dot of a function's name.
fn qualifier<'e>(target: &'e IdedExpr, bound: &[&str]) -> Option<&'e str> {
    let Expr::Ident(name) = &target.expr else { return None };
    let is_known = QUALIFIED.iter().any(|(space, _)| space == name);
    (is_known && !bound.contains(&name.as_str())).then_some(name)
}

#[cfg(test)]
mod tests;
