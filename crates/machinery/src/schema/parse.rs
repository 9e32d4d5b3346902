//! From OpenAPI v3 to nodes.

use std::collections::BTreeMap;

use mailboat_object::Name;
use serde_json::{Map, Value};

use super::format::Format;
use super::pattern::Patterns;
use super::rule::Rule;
use super::{
    DEDUCED, Field, Form, Limits, ListPatch, ListRelation, ListShape, MapShape, Node, NodeId, ScalarType,
    Schema, UNTYPED, meta, push, undeclared_nodes,
};

/// Where a schema comes from. The same words mean different things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A kind that a server knows by itself: its OpenAPI only describes it, so a map without declared members is
    /// free, and defaults are noise (the server's own are [`crate::kind::Rules::defaults`]).
    Native,
    /// A custom resource definition: its schema is the law.
    Custom,
}

/// Why a schema cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct BadSchema {
    /// Where in the schema.
    pub path: String,
    /// What is wrong there.
    pub what: String,
}

pub(super) fn parse(schema: &Value, components: &Value, origin: Origin) -> Result<Schema, BadSchema> {
    let mut parser = Parser {
        components,
        origin,
        nodes: undeclared_nodes(),
        named: BTreeMap::new(),
        atomic: Vec::new(),
        patterns: Patterns::default(),
    };
    if origin == Origin::Custom && !paths_fit(schema) {
        return Err(BadSchema { path: String::new(), what: PATHS_TOO_LONG.to_owned() });
    }
    let root = parser.reference(schema, "", false)?;
    for (copy, of) in std::mem::take(&mut parser.atomic) {
        let mut node = parser.nodes[of.0 as usize].clone();
        if let Some(map) = &mut node.map {
            map.atomic = true;
        }
        parser.nodes[copy.0 as usize] = node;
    }
    let mut root = parser.nodes[root.0 as usize].clone();
    let mut nodes = parser.nodes;
    let map = root.map.get_or_insert_with(MapShape::default);
    meta::declare_object(&mut nodes, map);
    (root.scalar, root.list) = (None, None);
    Ok(Schema::with_root(nodes, root))
}

/// How long the paths of all that a schema declares may be together. A name may be as long as a definition has room for, and
/// stands in the path of everything below it.
const PATHS_BYTES_MAX: usize = 16 << 20;
pub(crate) const PATHS_TOO_LONG: &str = "the paths of what a schema declares are too long together";

/// Whether a schema's paths may be written out, each for itself.
pub(crate) fn paths_fit(schema: &Value) -> bool {
    let mut open = vec![(schema, 0)];
    let mut left = PATHS_BYTES_MAX;
    while let Some((schema, length)) = open.pop() {
        /// About what a word such as `additionalProperties` takes.
        const WORD_BYTES: usize = 16;
        let below: usize = length + WORD_BYTES;
        let Some(rest) = left.checked_sub(below) else { return false };
        left = rest;
        let words = ["items", "additionalProperties", "not"];
        open.extend(words.into_iter().filter_map(|word| Some((schema.get(word)?, below))));
        for word in ["allOf", "anyOf", "oneOf"] {
            let joined = schema[word].as_array().into_iter().flatten();
            open.extend(joined.map(|joined| (joined, below)));
        }
        let members = schema["properties"].as_object().into_iter().flatten();
        open.extend(members.map(|(name, member)| (member, below + name.len())));
    }
    true
}

struct Parser<'a> {
    components: &'a Value,
    origin: Origin,
    nodes: Vec<Node>,
    /// Components that were met already, by name; kinds refer to themselves (a schema's own schema does).
    named: BTreeMap<&'a str, NodeId>,
    /// Nodes to fill at the end: the first is the second, taken as one piece.
    atomic: Vec<(NodeId, NodeId)>,
    patterns: Patterns,
}

impl<'a> Parser<'a> {
    /// The node of a schema that may be a reference. `open`: a schema above keeps unknown fields, which merging
    /// takes to hold for everything below it.
    fn reference(&mut self, schema: &'a Value, path: &str, open: bool) -> Result<NodeId, BadSchema> {
        let Some(name) = referred(schema) else {
            let node = self.node(schema, path, open)?;
            return Ok(push(&mut self.nodes, node));
        };
        let named = self.component(name, path)?;
        if schema["x-kubernetes-map-type"] == "atomic" {
            let copy = push(&mut self.nodes, Node::default());
            self.atomic.push((copy, named));
            return Ok(copy);
        }
        Ok(named)
    }

    fn component(&mut self, name: &'a str, path: &str) -> Result<NodeId, BadSchema> {
        if let Some(known) = self.named.get(name) {
            return Ok(*known);
        }
        let Some(schema) = self.components.get(name) else {
            return Err(BadSchema { path: path.to_owned(), what: format!("there is no component {name:?}") });
        };
        let id = push(&mut self.nodes, Node::default());
        self.named.insert(name, id);
        let form = if name.ends_with(".resource.Quantity") { Form::Quantity } else { Form::Text };
        let node = if form == Form::Quantity || name.ends_with(".intstr.IntOrString") {
            Node { scalar: Some(ScalarType::Untyped), any: true, form, ..Node::default() }
        } else if name.ends_with(".runtime.RawExtension") {
            self.nodes[UNTYPED.0 as usize].clone()
        } else if let Some(other) = referred(schema) {
            let other = self.component(other, path)?;
            self.nodes[other.0 as usize].clone()
        } else {
            self.node(schema, path, false)?
        };
        self.nodes[id.0 as usize] = node;
        Ok(id)
    }

    fn node(&mut self, schema: &'a Value, path: &str, open: bool) -> Result<Node, BadSchema> {
        let bad = |what: String| BadSchema { path: path.to_owned(), what };
        if !schema.is_object() {
            return Err(bad("a schema must be a map".to_owned()));
        }
        let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true;
        let open = open || keeps_unknown;
        let mut node = Node {
            nullable: schema["nullable"] == true,
            embedded: schema["x-kubernetes-embedded-resource"] == true,
            form: match schema["format"].as_str() {
                Some("byte") if self.origin == Origin::Native => Form::Bytes,
                Some("date-time") if self.origin == Origin::Native => Form::Time,
                None if self.origin == Origin::Native && schema["type"] == "array" => Form::List,
                _ => Form::Text,
            },
            limits: limits(schema, &mut self.patterns).map_err(bad)?,
            ..Node::default()
        };
        let int_or_string =
            schema["x-kubernetes-int-or-string"] == true || schema["format"] == "int-or-string";
        match schema["type"].as_str().unwrap_or_default() {
            _ if int_or_string => {
                node.scalar = Some(ScalarType::Untyped);
                node.any = schema["x-kubernetes-int-or-string"] != true;
                if !node.any {
                    node.limits.get_or_insert_default();
                }
            }
            "" => {
                node.any = true;
                node.scalar = Some(ScalarType::Untyped);
                node.list = Some(self.list(schema, path, open)?);
                node.map = Some(self.map(schema, path, open, true)?);
            }
            "object" => node.map = Some(self.map(schema, path, open, keeps_unknown)?),
            "array" => node.list = Some(self.list(schema, path, open)?),
            "integer" => node.scalar = Some(ScalarType::Whole),
            "number" => node.scalar = Some(ScalarType::Number),
            "boolean" => node.scalar = Some(ScalarType::Bool),
            "string" => {
                let plain = matches!(schema["format"].as_str(), None | Some("" | "byte"));
                node.scalar = Some(if plain || self.origin == Origin::Custom {
                    ScalarType::Text
                } else {
                    ScalarType::Untyped
                });
            }
            other => return Err(bad(format!("there is no type {other:?}"))),
        }
        if self.origin == Origin::Custom {
            self.checks(schema, path, &mut node)?;
        }
        Ok(node)
    }

    /// What a schema of somebody's own asks beside its structure: formats, and other schemas that have to hold or not.
    fn checks(&mut self, schema: &'a Value, path: &str, node: &mut Node) -> Result<(), BadSchema> {
        let format =
            schema["format"].as_str().filter(|_| matches!(schema["type"].as_str(), None | Some("string")));
        if let Some(format) = format.and_then(Format::of) {
            node.limits.get_or_insert_default().format = Some(format);
        }
        for word in ["allOf", "anyOf", "oneOf"] {
            let inner = schema[word].as_array().map_or(&[][..], Vec::as_slice);
            if inner.is_empty() {
                continue;
            }
            let mut nodes = Vec::new();
            for inner in inner {
                nodes.push(self.reference(inner, path, true)?);
            }
            let limits = node.limits.get_or_insert_default();
            match word {
                "allOf" => limits.all_of = nodes,
                "anyOf" => limits.any_of = nodes,
                _ => limits.only_one_of = nodes,
            }
        }
        if schema["not"].is_object() {
            let inner = self.reference(&schema["not"], path, true)?;
            node.limits.get_or_insert_default().not = Some(inner);
        }
        Ok(())
    }

    fn list(&mut self, schema: &'a Value, path: &str, open: bool) -> Result<ListShape, BadSchema> {
        let items = match schema.get("items") {
            Some(items) => self.reference(items, &format!("{path}[]"), open)?,
            None => UNTYPED,
        };
        Ok(ListShape { items, relation: relation(schema), patch: list_patch(schema) })
    }

    fn map(
        &mut self,
        schema: &'a Value,
        path: &str,
        open: bool,
        keeps_unknown: bool,
    ) -> Result<MapShape, BadSchema> {
        let mut fields: BTreeMap<Name, Field> = BTreeMap::new();
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let node = self.reference(member, &format!("{path}.{name}"), open)?;
            fields.insert(Name::new(name), Field { node, default: member.get("default").cloned() });
        }
        let (elements, elements_declared) = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => (None, false),
            Some(Value::Bool(true)) => (Some(DEDUCED), true),
            Some(elements) => (Some(self.reference(elements, &format!("{path}.*"), open)?), true),
            None => (Some(DEDUCED).filter(|_| open || fields.is_empty()), false),
        };
        let keeps_unknown =
            keeps_unknown || (self.origin == Origin::Native && fields.is_empty() && !elements_declared);
        let atomic = schema["x-kubernetes-map-type"] == "atomic";
        let defaulted = fields.iter().filter(|(_, field)| field.default.is_some());
        let defaulted = defaulted.map(|(name, _)| name.clone()).collect();
        Ok(MapShape { fields, defaulted, elements, elements_declared, keeps_unknown, atomic })
    }
}

/// The component that a schema refers to, by itself or as the only one of `allOf`.
fn referred(schema: &Value) -> Option<&str> {
    let reference = schema.get("$ref").or_else(|| match schema["allOf"].as_array()?.as_slice() {
        [only] => only.get("$ref"),
        _ => None,
    });
    reference?.as_str()?.rsplit('/').next()
}

fn list_patch(schema: &Value) -> ListPatch {
    let strategy = schema["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
    if strategy.split(',').any(|word| word == "merge") {
        ListPatch::Merge(schema["x-kubernetes-patch-merge-key"].as_str().map(Name::new))
    } else {
        ListPatch::Replace
    }
}

fn relation(schema: &Value) -> ListRelation {
    let names = |keys: &Value| -> Box<[Name]> {
        keys.as_array().into_iter().flatten().filter_map(Value::as_str).map(Name::new).collect()
    };
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListRelation::Set,
        Some("map") => ListRelation::Map(names(&schema["x-kubernetes-list-map-keys"])),
        Some(_) => ListRelation::Atomic,
        // What was declared for strategic merge patches holds where nothing newer is said.
        None => match (
            schema["x-kubernetes-patch-strategy"].as_str(),
            schema["x-kubernetes-patch-merge-key"].as_str(),
        ) {
            (Some("merge" | "merge,retainKeys"), Some(key)) => ListRelation::Map([Name::new(key)].into()),
            (Some("merge" | "merge,retainKeys"), None) => ListRelation::Set,
            _ => ListRelation::Atomic,
        },
    }
}

fn limits(schema: &Value, patterns: &mut Patterns) -> Result<Option<Box<Limits>>, String> {
    const WORDS: [&str; 13] = [
        "required",
        "enum",
        "minimum",
        "maximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "pattern",
        "x-kubernetes-validations",
    ];
    let Some(members) =
        schema.as_object().filter(|members| WORDS.iter().any(|word| members.contains_key(*word)))
    else {
        return Ok(None);
    };
    let count = |word: &str| members.get(word).and_then(Value::as_u64);
    let bound = |word: &str, exclusive: &str| {
        let excluded = members.get(exclusive).is_some_and(|excluded| *excluded == true);
        members.get(word).and_then(Value::as_f64).map(|bound| (bound, excluded))
    };
    Ok(Some(Box::new(Limits {
        required: texts(members, "required").map(Name::new).collect(),
        one_of: members.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
        minimum: bound("minimum", "exclusiveMinimum"),
        maximum: bound("maximum", "exclusiveMaximum"),
        multiple_of: members.get("multipleOf").and_then(Value::as_f64),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        pattern: match members.get("pattern").and_then(Value::as_str) {
            Some(pattern) => Some(patterns.compile(pattern).map_err(|error| format!("pattern: {error}"))?),
            None => None,
        },
        rules: Rule::all(schema),
        ..Limits::default()
    })))
}

fn texts<'v>(members: &'v Map<String, Value>, word: &str) -> impl Iterator<Item = &'v str> {
    members.get(word).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
