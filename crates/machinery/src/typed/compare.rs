//! What changed between two states of an object, field by field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Shape, Shapes, as_list, as_map, list_element};
use crate::field_set::{FieldSet, PathElement};
use crate::schema::{ListRelation, ListShape, MapShape, NodeId, Schema};

/// The fields that differ between two states.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    pub removed: FieldSet,
    pub modified: FieldSet,
    pub added: FieldSet,
}

/// Compares two states of an object.
pub(crate) fn compare(schema: &Schema, before: &Value, after: &Value) -> Comparison {
    let mut walk = Walk { schema, path: Vec::new(), found: Comparison::default() };
    walk.value(schema.root(), Some(before), Some(after));
    walk.found
}

struct Walk<'a> {
    schema: &'a Schema,
    path: Vec<PathElement>,
    found: Comparison,
}

impl Walk<'_> {
    fn value(&mut self, id: NodeId, before: Option<&Value>, after: Option<&Value>) {
        let node = self.schema.node(id);
        let (old, new) = (Shapes::of(node, before), Shapes::of(node, after));
        let leaf = if after.is_none() {
            self.shaped(old.shape(), before, after)
        } else if before.is_none() || old.alike(new) {
            self.shaped(new.shape(), before, after)
        } else {
            self.shaped(old.shape(), before, after);
            self.shaped(new.shape(), before, after)
        };
        if !leaf {
            match (before, after) {
                (None, _) => self.found.added.insert(&self.path),
                (_, None) => self.found.removed.insert(&self.path),
                (Some(_), Some(_)) => {}
            }
        }
    }

    /// Whether it was compared as one piece.
    fn shaped(&mut self, shape: Shape<'_>, before: Option<&Value>, after: Option<&Value>) -> bool {
        match shape {
            Shape::Map(map) => {
                let (old, new) = (as_map(before), as_map(after));
                let empty =
                    old.is_none_or(serde_json::Map::is_empty) && new.is_none_or(serde_json::Map::is_empty);
                if map.atomic || empty {
                    return self.leaf(before, after);
                }
                self.map(map, old, new);
                false
            }
            Shape::List(list) => {
                let (old, new) = (as_list(before), as_list(after));
                let empty = old.is_none_or(Vec::is_empty) && new.is_none_or(Vec::is_empty);
                if list.relation == ListRelation::Atomic || empty {
                    return self.leaf(before, after);
                }
                self.list(list, old.map_or(&[], Vec::as_slice), new.map_or(&[], Vec::as_slice));
                false
            }
            Shape::Scalar(_) | Shape::None => self.leaf(before, after),
        }
    }

    fn leaf(&mut self, before: Option<&Value>, after: Option<&Value>) -> bool {
        match (before, after) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(before), Some(after)) if !same(before, after) => self.found.modified.insert(&self.path),
            (Some(_), Some(_)) => {}
        }
        true
    }

    fn map(
        &mut self,
        map: &MapShape,
        old: Option<&serde_json::Map<String, Value>>,
        new: Option<&serde_json::Map<String, Value>>,
    ) {
        // In their order, in which sets of fields are quickly filled.
        let both = old.into_iter().chain(new);
        let names: BTreeSet<&String> = both.flat_map(serde_json::Map::keys).collect();
        for name in names {
            let (before, after) = (old.and_then(|old| old.get(name)), new.and_then(|new| new.get(name)));
            let Some(node) = map.member(name).filter(|_| before != after) else { continue };
            self.path.push(PathElement::field(name));
            self.value(node, before, after);
            self.path.pop();
        }
    }

    fn list(&mut self, list: &ListShape, old: &[Value], new: &[Value]) {
        type Both<'v> = (Vec<&'v Value>, Vec<&'v Value>);
        let mut elements: BTreeMap<PathElement, Both<'_>> = BTreeMap::new();
        for element in old {
            if let Ok(key) = list_element(self.schema, list, element) {
                elements.entry(key).or_default().0.push(element);
            }
        }
        for element in new {
            if let Ok(key) = list_element(self.schema, list, element) {
                elements.entry(key).or_default().1.push(element);
            }
        }
        for (key, (old, new)) in elements {
            self.path.push(key);
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => self.value(list.items, old.first().copied(), new.first().copied()),
                // Elements that are there more than once are one piece, known by their key alone.
                ([_, _, ..], [_, _, ..]) => {
                    if old.len() != new.len() || old.iter().zip(&new).any(|(old, new)| !same(old, new)) {
                        self.found.modified.insert(&self.path);
                    }
                }
                ([_, _, ..], _) => {
                    if let Some(new) = new.first() {
                        self.value(list.items, None, Some(new));
                    }
                    self.found.removed.insert(&self.path);
                }
                (_, _) => {
                    if let Some(old) = old.first() {
                        self.value(list.items, Some(old), None);
                    }
                    self.found.added.insert(&self.path);
                }
            }
            self.path.pop();
        }
    }
}

/// Whether two values are equal to a server: `1` and `1.0` are one number.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((i, a), (j, b))| i == j && same(a, b))
        }
        (a, b) => a == b,
    }
}
