//! CEL expressions over one copy, with bounds on what they may cost.
//!
//! Expressions are tenants' text that runs in the center for every copy. So nothing is offered that can grow without
//! bound (regular expressions, replacing and joining of text), what nests deeply is refused before it is parsed, and a
//! copy that is too large for an expression's loops is left out of it. Errors name what is wrong and never a value.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{EntryExpr, Expr};
use kube_cel::cel::objects::{Key as MapKey, Map, Value};
use kube_cel::cel::{Context, ExecutionError, IdedExpr, Program};
use mailboat_object::expression::check_size;
use mailboat_object::json::Raw;
use mailboat_object::object::Object;

use super::aggregate::Number;

/// What evaluating one expression for one copy may cost, in steps.
const MOST_STEPS: u64 = 50_000;
/// What text may grow to within loops.
const MOST_BYTES: u64 = 16 << 20;

/// What an expression may call: functions whose cost does not outgrow their arguments.
const FUNCTIONS: [&str; 33] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "string",
    "double",
    "int",
    "uint",
    "min",
    "max",
    "duration",
    "timestamp",
    "getFullYear",
    "getMonth",
    "getDayOfMonth",
    "getDate",
    "getDayOfWeek",
    "getHours",
    "getMinutes",
    "getSeconds",
    "quantity",
    "isQuantity",
    "isInteger",
    "asInteger",
    "asApproximateFloat",
    "sign",
    "add",
    "sub",
    "greatest",
    "least",
    "ceil",
    "floor",
    "round",
];
/// What an expression sees.
const VARIABLES: [&str; 5] = ["object", "status", "edge", "syncerStatus", "age"];

/// An expression that can be evaluated.
pub struct Expression {
    program: Program,
    shape: Shape,
    variables: Variables,
}

/// Why an expression cannot be used, in a sentence.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadExpression(String);

/// Why an expression gives nothing for a copy.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
pub enum Failure {
    /// Something that it selects is not there, as with a status that was not reported yet. No mistake.
    #[error("something that it asks for is not there")]
    Missing,
    /// A mistake in the expression, in a sentence.
    #[error("{0}")]
    Mistake(String),
}

/// What an expression gave.
#[derive(Clone, Debug)]
pub struct Given(Value);

/// Which variables are looked at, so that no others are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Variables(u8);

/// The copy that expressions are evaluated for.
pub struct Sight<'s> {
    /// The copy; `None` if it is not in its mailbox yet: expressions then see an empty one.
    pub copy: Option<&'s Object>,
    /// What it should be, for what is not kept of the copy.
    pub form: Option<&'s Object>,
    /// The name of the Location.
    pub edge_name: &'s str,
    /// Its labels.
    pub labels: &'s BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: &'s BTreeMap<String, String>,
    /// Whether the copy is at its edge.
    pub exists: bool,
    /// Whether it is there as it should be.
    pub current: bool,
    /// Whether its edge was not heard of for too long.
    pub stale: bool,
    /// How many seconds ago its edge was heard of.
    pub age: Option<u64>,
}

/// A copy made ready for many expressions.
pub struct Scene<'c> {
    context: Context<'c>,
    largest: u64,
    longest: u64,
}

/// The functions that expressions may call.
pub struct Functions(Context<'static>);

/// Does something with the functions, which are made once in each thread.
pub fn with_functions<T>(work: impl FnOnce(&Functions) -> T) -> T {
    thread_local! {
        static FUNCTIONS: Functions = Functions::default();
    }
    FUNCTIONS.with(work)
}

impl Default for Functions {
    fn default() -> Self {
        Self(Context::default().with_all())
    }
}

/// How much an expression can do.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    nodes: u64,
    loops: u32,
    /// Additions, by which lists and texts may grow.
    additions: u64,
    /// The largest list or map that is written out.
    largest: u64,
}

impl Expression {
    /// Understands an expression, or says what is wrong with it.
    pub fn compile(text: &str) -> Result<Self, BadExpression> {
        check_size(text).map_err(|large| BadExpression(large.to_string()))?;
        let program = Program::compile(text).map_err(|errors| {
            let first = errors.errors.first();
            let told = first.map(|error| error.msg.lines().next().unwrap_or_default()).unwrap_or_default();
            BadExpression(format!("it is no CEL: {told}"))
        })?;
        let mut walk = Walk::default();
        walk.expression(program.expression(), &mut Vec::new())?;
        Ok(Self { program, shape: walk.shape, variables: walk.variables })
    }

    /// Which variables it looks at.
    pub fn variables(&self) -> Variables {
        self.variables
    }

    /// Evaluates it.
    pub fn evaluate(&self, scene: &Scene<'_>) -> Result<Given, Failure> {
        if self.shape.steps(scene.largest) > MOST_STEPS || self.shape.bytes(scene.longest) > MOST_BYTES {
            return Err(Failure::Mistake("it takes too many steps for a copy of this size".to_owned()));
        }
        self.program.execute(&scene.context).map(Given).map_err(|error| failure(&error))
    }
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expression").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Given {
    /// Whether it is nothing.
    pub fn is_null(&self) -> bool {
        matches!(self.0, Value::Null)
    }

    /// As a number; text that holds one counts.
    pub fn number(&self) -> Option<Number> {
        match &self.0 {
            Value::Int(whole) => Some(Number::Whole(*whole)),
            Value::UInt(whole) => i64::try_from(*whole).ok().map(Number::Whole),
            Value::Float(broken) => Number::of(*broken),
            Value::String(text) => Number::parse(text),
            _ => None,
        }
    }

    /// As a text to group by; `None` for what is no single value.
    pub fn text(&self) -> Option<String> {
        Some(match &self.0 {
            Value::Null => "null".to_owned(),
            Value::Bool(truth) => truth.to_string(),
            Value::Int(whole) => whole.to_string(),
            Value::UInt(whole) => whole.to_string(),
            Value::Float(broken) => broken.to_string(),
            Value::String(text) => text.to_string(),
            _ => return None,
        })
    }

    /// Whether it is the same as a JSON value.
    pub fn is(&self, json: &serde_json::Value) -> bool {
        self.0 == of_json(json)
    }
}

impl Variables {
    /// Those of either.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether this one is among them.
    pub fn has(self, name: &str) -> bool {
        VARIABLES.iter().position(|known| *known == name).is_some_and(|bit| self.0 & (1 << bit) != 0)
    }

    fn insert(&mut self, name: &str) -> bool {
        let bit = VARIABLES.iter().position(|known| *known == name);
        if let Some(bit) = bit {
            self.0 |= 1 << bit;
        }
        bit.is_some()
    }
}

impl Functions {
    /// Makes those variables of a copy that are looked at.
    pub fn scene<'c>(&'c self, sight: &Sight<'_>, variables: Variables) -> Scene<'c> {
        let mut made = Made::default();
        let mut context = self.0.new_inner_scope();
        if variables.has("object") {
            let object = match (sight.copy, sight.form) {
                (None, _) => map([]),
                (Some(copy), None) => made.of_raw(copy.root()),
                (Some(copy), Some(form)) => made.of_parts(copy, form),
            };
            context.add_variable_from_value("object", object);
        }
        if variables.has("status") {
            let status = sight.copy.and_then(|copy| copy.get(&["status"])).filter(|status| status.is_map());
            let status = status.map_or_else(|| map([]), |status| made.of_raw(status));
            context.add_variable_from_value("status", status);
        }
        if variables.has("edge") {
            let edge = map([
                ("name", text(sight.edge_name)),
                ("labels", made.of_texts(sight.labels)),
                ("annotations", made.of_texts(sight.annotations)),
            ]);
            context.add_variable_from_value("edge", edge);
        }
        if variables.has("syncerStatus") {
            let status = map([
                ("exists", Value::Bool(sight.exists)),
                ("current", Value::Bool(sight.current)),
                ("stale", Value::Bool(sight.stale)),
            ]);
            context.add_variable_from_value("syncerStatus", status);
        }
        if variables.has("age") {
            let age = sight.age.and_then(|age| i64::try_from(age).ok());
            context.add_variable_from_value("age", age.map_or(Value::Null, Value::Int));
        }
        Scene { context, largest: made.largest, longest: made.longest }
    }
}

impl Shape {
    /// A bound on the steps with collections of this size: each loop may run over what the one before it made.
    fn steps(self, largest: u64) -> u64 {
        let each = largest.max(self.largest).max(1).saturating_mul(self.additions + 1);
        each.checked_pow(self.loops).map_or(u64::MAX, |steps| steps.saturating_mul(self.nodes))
    }

    fn bytes(self, longest: u64) -> u64 {
        let growth = (self.additions + 1).checked_pow(self.loops + 1).unwrap_or(u64::MAX);
        if self.loops == 0 { 0 } else { longest.saturating_mul(growth) }
    }
}

/// Looks through an expression for what it uses.
#[derive(Default)]
struct Walk {
    shape: Shape,
    variables: Variables,
}

impl Walk {
    fn expression<'e>(
        &mut self,
        expression: &'e IdedExpr,
        bound: &mut Vec<&'e str>,
    ) -> Result<(), BadExpression> {
        self.shape.nodes += 1;
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.variable(name, bound),
            Expr::Select(select) => self.expression(&select.operand, bound),
            Expr::List(list) => {
                self.shape.largest = self.shape.largest.max(list.elements.len() as u64);
                list.elements.iter().try_for_each(|element| self.expression(element, bound))
            }
            Expr::Map(map) => {
                self.shape.largest = self.shape.largest.max(map.entries.len() as u64);
                map.entries.iter().try_for_each(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        self.expression(&entry.key, bound)?;
                        self.expression(&entry.value, bound)
                    }
                    EntryExpr::StructField(field) => self.expression(&field.value, bound),
                })
            }
            Expr::Struct(_) => Err(BadExpression("it makes a message, which is not offered here".to_owned())),
            Expr::Call(call) => {
                function(&call.func_name)?;
                // `map` and `filter` themselves add each element to what they have so far.
                let gathers =
                    |first: &IdedExpr| matches!(&first.expr, Expr::Ident(name) if name.starts_with('@'));
                let grows = call.func_name == "_+_" && !call.args.first().is_some_and(gathers);
                self.shape.additions += u64::from(grows);
                // `math.greatest` is written like a method of something called `math`.
                let space = |target: &IdedExpr| matches!(&target.expr, Expr::Ident(name) if name == "math");
                if let Some(target) = call.target.as_deref().filter(|target| !space(target)) {
                    self.expression(target, bound)?;
                }
                call.args.iter().try_for_each(|argument| self.expression(argument, bound))
            }
            Expr::Comprehension(looped) => {
                self.shape.loops += 1;
                self.expression(&looped.iter_range, bound)?;
                self.expression(&looped.accu_init, bound)?;
                let known = bound.len();
                bound.push(&looped.accu_var);
                self.expression(&looped.result, bound)?;
                bound.push(&looped.iter_var);
                bound.extend(looped.iter_var2.as_deref());
                self.expression(&looped.loop_cond, bound)?;
                self.expression(&looped.loop_step, bound)?;
                bound.truncate(known);
                Ok(())
            }
        }
    }

    fn variable(&mut self, name: &str, bound: &[&str]) -> Result<(), BadExpression> {
        if bound.contains(&name) || self.variables.insert(name) {
            return Ok(());
        }
        Err(BadExpression(format!("nothing is called `{name}`; there are {}", VARIABLES.join(", "))))
    }
}

/// Whether something may be called: an operator, or one of the functions that are offered.
fn function(name: &str) -> Result<(), BadExpression> {
    let operator = !name.starts_with(|first: char| first.is_ascii_alphabetic());
    if operator
        || FUNCTIONS.contains(&name)
        || name.strip_prefix("math.").is_some_and(|name| FUNCTIONS.contains(&name))
    {
        return Ok(());
    }
    Err(BadExpression(format!("there is no function `{name}` here")))
}

/// Values made from JSON, and how large the largest of them are.
#[derive(Default)]
struct Made {
    largest: u64,
    longest: u64,
}

impl Made {
    fn of_raw(&mut self, raw: Raw<'_>) -> Value {
        if raw.is_map() {
            let members: std::collections::HashMap<MapKey, Value> = raw
                .members()
                .map(|(key, value)| (MapKey::String(Arc::new(key.into_owned())), self.of_raw(value)))
                .collect();
            self.largest = self.largest.max(members.len() as u64);
            return Value::Map(Map { map: Arc::new(members) });
        }
        if raw.is_array() {
            let elements: Vec<Value> = raw.elements().map(|element| self.of_raw(element)).collect();
            self.largest = self.largest.max(elements.len() as u64);
            return Value::List(Arc::new(elements));
        }
        if let Some(found) = raw.as_str() {
            self.longest = self.longest.max(found.len() as u64);
            return text(&found);
        }
        if let Some(truth) = raw.as_bool() {
            return Value::Bool(truth);
        }
        match raw.as_i64() {
            Some(whole) => Value::Int(whole),
            None => raw.json().parse().map_or(Value::Null, Value::Float),
        }
    }

    /// A copy of which only the head and the status are kept, with all else from what it should be.
    fn of_parts(&mut self, copy: &Object, form: &Object) -> Value {
        let own = copy.root().members();
        let others = form.root().members();
        let others =
            others.filter(|(key, _)| !matches!(&**key, "apiVersion" | "kind" | "metadata" | "status"));
        let members: std::collections::HashMap<MapKey, Value> = own
            .chain(others)
            .map(|(key, value)| (MapKey::String(Arc::new(key.into_owned())), self.of_raw(value)))
            .collect();
        self.largest = self.largest.max(members.len() as u64);
        Value::Map(Map { map: Arc::new(members) })
    }

    fn of_texts(&mut self, texts: &BTreeMap<String, String>) -> Value {
        self.largest = self.largest.max(texts.len() as u64);
        map(texts.iter().map(|(key, value)| (key.as_str(), text(value))))
    }
}

fn of_json(json: &serde_json::Value) -> Value {
    let text = json.to_string();
    Raw::parse(text.as_bytes()).map_or(Value::Null, |raw| Made::default().of_raw(raw))
}

fn map<'k>(members: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    let members = members.into_iter().map(|(key, value)| (MapKey::String(Arc::new(key.to_owned())), value));
    Value::Map(Map { map: Arc::new(members.collect()) })
}

fn text(text: &str) -> Value {
    Value::String(Arc::new(text.to_owned()))
}

/// What went wrong, without the values that the library's own words quote.
fn failure(error: &ExecutionError) -> Failure {
    let mistake = |told: &str| Failure::Mistake(told.to_owned());
    match error {
        ExecutionError::NoSuchKey(_) | ExecutionError::IndexOutOfBounds(_) => Failure::Missing,
        ExecutionError::UndeclaredReference(name) => Failure::Mistake(format!("nothing is called `{name}`")),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            mistake("it divides by zero")
        }
        ExecutionError::Overflow(..) => mistake("a number in it grows too large"),
        ExecutionError::FunctionError { function, .. } => {
            Failure::Mistake(format!("the function `{function}` does not take what it is given"))
        }
        ExecutionError::InvalidArgumentCount { .. } | ExecutionError::MissingArgumentOrTarget => {
            mistake("a function has too few or too many arguments")
        }
        _ => mistake("the types of its parts do not go together"),
    }
}

#[cfg(test)]
mod tests;
