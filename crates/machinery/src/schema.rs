//! Schemas, compiled from OpenAPI v3 into an arena of nodes.
//!
//! One node serves two readers. Structure ([`Schema::admit`], [`Schema::validate`]) asks which members exist,
//! what their defaults and limits are. Merging (`typed`) asks of which shapes a value may be, and whether a map
//! or a list is one piece or many.

mod admit;
mod at;
mod empty;
mod format;
mod meta;
pub(crate) mod parse;
pub(crate) mod pattern;
pub(crate) mod rule;
mod validate;

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_object::Name;
use serde_json::Value;

pub use admit::Admission;
pub use at::At;
use format::Format;
pub use parse::{BadSchema, Origin};
pub use rule::left_out;

/// A compiled schema of a kind's objects; cheap to clone.
#[derive(Clone, Debug)]
pub struct Schema {
    nodes: Arc<[Node]>,
    root: NodeId,
}

/// A node of a [`Schema`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeId(u32);

/// A value of which nothing is declared, below which maps are still merged member by member.
pub(crate) const DEDUCED: NodeId = NodeId(0);
/// A value of which nothing is declared, taken as one piece.
pub(crate) const UNTYPED: NodeId = NodeId(1);

/// What is declared of one value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// It may be a scalar.
    pub scalar: Option<ScalarType>,
    /// It may be a list.
    pub list: Option<ListShape>,
    /// It may be a map.
    pub map: Option<MapShape>,
    /// It may be null.
    pub nullable: bool,
    /// It may be anything: no type is declared.
    pub any: bool,
    /// Its metadata is that of an object.
    pub embedded: bool,
    /// What its text stands for.
    pub form: Form,
    /// What else is asked of it.
    pub limits: Option<Box<Limits>>,
}

/// What a text stands for, in a kind that the server knows by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Form {
    /// Itself.
    #[default]
    Text,
    /// It is a list, of which the server itself may say that there is none.
    List,
    /// A quantity, such as `500m`, which has one form.
    Quantity,
    /// Bytes, as base64.
    Bytes,
    /// A time, which may be said to be none.
    Time,
}

/// The type of a scalar, as far as merging looks at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScalarType {
    /// Any scalar.
    Untyped,
    /// A number.
    Number,
    /// A whole number; any number will do to merging.
    Whole,
    /// A text.
    Text,
    /// True or false.
    Bool,
}

/// What is declared of a list.
#[derive(Clone, Debug)]
pub(crate) struct ListShape {
    pub items: NodeId,
    pub relation: ListRelation,
    pub patch: ListPatch,
}

/// What a strategic merge patch does to a list.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) enum ListPatch {
    /// It puts its own in its place.
    #[default]
    Replace,
    /// It is merged with it: maps by this member, scalars by themselves.
    Merge(Option<Name>),
}

/// How the elements of a list belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListRelation {
    /// The list is one piece.
    Atomic,
    /// Each value is there once.
    Set,
    /// Each combination of these members is there once.
    Map(Box<[Name]>),
}

/// What is declared of a map.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapShape {
    fields: BTreeMap<Name, Field>,
    /// Those that have a default.
    defaulted: Box<[Name]>,
    /// Of what type members are that have no declaration of their own, to merging; none: there may be none.
    pub elements: Option<NodeId>,
    /// Such members are declared (`additionalProperties`), not only put up with.
    pub elements_declared: bool,
    /// Members without a declaration are kept.
    pub keeps_unknown: bool,
    /// The map is one piece.
    pub atomic: bool,
}

/// A declared member of a map.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub node: NodeId,
    pub default: Option<Value>,
}

/// What is asked of a value beyond its type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub required: Vec<Name>,
    pub one_of: Vec<Value>,
    pub minimum: Option<(f64, bool)>,
    pub maximum: Option<(f64, bool)>,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub(crate) pattern: Option<pattern::Pattern>,
    pub format: Option<Format>,
    /// Schemas of which all, some, exactly one and none have to hold as well.
    pub all_of: Vec<NodeId>,
    pub any_of: Vec<NodeId>,
    pub only_one_of: Vec<NodeId>,
    pub not: Option<NodeId>,
    /// Rules in CEL.
    pub rules: Vec<Arc<rule::Rule>>,
}

impl Schema {
    /// The schema of which only `metadata` is declared: everything else is kept and merged as it looks.
    pub fn permissive() -> Self {
        let mut nodes = undeclared_nodes();
        let mut root = MapShape { elements: Some(DEDUCED), keeps_unknown: true, ..MapShape::default() };
        meta::declare_object(&mut nodes, &mut root);
        Self::with_root(nodes, Node { map: Some(root), ..Node::default() })
    }

    /// Reads a schema in OpenAPI v3 as JSON; `components` holds what `#/components/schemas/…` refers to, and may
    /// be null.
    pub fn from_openapi(schema: &Value, components: &Value, origin: Origin) -> Result<Self, BadSchema> {
        parse::parse(schema, components, origin)
    }

    fn with_root(mut nodes: Vec<Node>, root: Node) -> Self {
        let id = push(&mut nodes, root);
        Self { nodes: nodes.into(), root: id }
    }

    pub(crate) fn root(&self) -> NodeId {
        self.root
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        // Ids are made by `push` alone, and nodes are never removed.
        &self.nodes[id.0 as usize]
    }
}

impl MapShape {
    /// The declaration of a member.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }

    /// The node of a member, declared or not; none if it may not be there.
    pub(crate) fn member(&self, name: &str) -> Option<NodeId> {
        self.fields.get(name).map(|field| field.node).or(self.elements)
    }

    fn declare(&mut self, name: &str, node: NodeId) {
        self.fields.insert(Name::new(name), Field { node, default: None });
    }
}

fn push(nodes: &mut Vec<Node>, node: Node) -> NodeId {
    // An arena of four thousand million nodes does not fit into memory.
    let id = NodeId(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
    nodes.push(node);
    id
}

/// The two nodes that every arena begins with.
fn undeclared_nodes() -> Vec<Node> {
    let node = |elements, atomic| Node {
        scalar: Some(ScalarType::Untyped),
        list: Some(ListShape { items: UNTYPED, relation: ListRelation::Atomic, patch: ListPatch::Replace }),
        map: Some(MapShape { elements: Some(elements), keeps_unknown: true, atomic, ..MapShape::default() }),
        nullable: true,
        any: true,
        ..Node::default()
    };
    vec![node(DEDUCED, false), node(UNTYPED, true)]
}

#[cfg(test)]
mod tests;
