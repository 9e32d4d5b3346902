//! Values seen through their schema: compared, merged, and cut up along sets of fields.
//!
//! These are the four operations that server-side apply is made of. A map or a list is either one piece (atomic)
//! or is taken member by member; what a value is decides which of the shapes that its schema allows holds.

mod compare;
mod merge;
mod remove;
mod set;

use mailboat_object::Name;
use serde_json::Value;

use crate::field_set::{PathElement, Scalar};
use crate::schema::{ListRelation, ListShape, MapShape, Node, ScalarType, Schema};

pub(crate) use compare::{Comparison, compare, same};
pub(crate) use merge::merge;
pub(crate) use remove::remove;
pub(crate) use set::{check, field_set};

/// Which shapes of a node hold for a value.
#[derive(Clone, Copy)]
pub(crate) struct Shapes<'s> {
    map: Option<&'s MapShape>,
    scalar: Option<ScalarType>,
    list: Option<&'s ListShape>,
}

/// The one shape by which a value is treated.
#[derive(Clone, Copy)]
pub(crate) enum Shape<'s> {
    Map(&'s MapShape),
    Scalar(ScalarType),
    List(&'s ListShape),
    /// The schema declares nothing; the value is taken as it is.
    None,
}

impl<'s> Shapes<'s> {
    /// A value of an allowed type narrows the shapes down to that type; null, nothing and what is not allowed
    /// leave all of them.
    pub(crate) fn of(node: &'s Node, value: Option<&Value>) -> Self {
        let all = Self { map: node.map.as_ref(), scalar: node.scalar, list: node.list.as_ref() };
        let none = Self { map: None, scalar: None, list: None };
        match value {
            Some(Value::Object(_)) if all.map.is_some() => Self { map: all.map, ..none },
            Some(Value::Array(_)) if all.list.is_some() => Self { list: all.list, ..none },
            Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) if all.scalar.is_some() => {
                Self { scalar: all.scalar, ..none }
            }
            _ => all,
        }
    }

    pub(crate) fn shape(self) -> Shape<'s> {
        match (self.map, self.scalar, self.list) {
            (Some(map), ..) => Shape::Map(map),
            (None, Some(scalar), _) => Shape::Scalar(scalar),
            (None, None, Some(list)) => Shape::List(list),
            (None, None, None) => Shape::None,
        }
    }

    /// Whether two values of one node are treated alike.
    pub(crate) fn alike(self, other: Self) -> bool {
        (self.map.is_some(), self.scalar.is_some(), self.list.is_some())
            == (other.map.is_some(), other.scalar.is_some(), other.list.is_some())
    }
}

/// The path element of an element of a list that is not one piece.
pub(crate) fn list_element(
    schema: &Schema,
    list: &ListShape,
    element: &Value,
) -> Result<PathElement, String> {
    match &list.relation {
        ListRelation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListRelation::Set => match element {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            scalar => Ok(PathElement::Value(Scalar::of(scalar))),
        },
        ListRelation::Map(keys) => {
            let Value::Object(members) = element else {
                let what = if element.is_null() { "a null element" } else { "non-map elements" };
                return Err(format!("associative list with keys may not have {what}"));
            };
            let declared = schema.node(list.items).map.as_ref();
            let value = |key: &Name| {
                let default = || declared?.field(key)?.default.as_ref();
                Some((key.clone(), Scalar::of(members.get(key.as_str()).or_else(default)?)))
            };
            let mut found: Vec<_> = keys.iter().filter_map(value).collect();
            if found.is_empty() && !keys.is_empty() {
                let keys: Vec<_> = keys.iter().map(|key| format!("{:?}", key.as_str())).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] \
                     (and doesn't have default values for any key fields)",
                    keys.join(" ")
                ));
            }
            found.sort_by(|(a, _), (b, _)| a.cmp(b));
            Ok(PathElement::Key(found.into()))
        }
    }
}

fn as_map(value: Option<&Value>) -> Option<&serde_json::Map<String, Value>> {
    value?.as_object()
}

fn as_list(value: Option<&Value>) -> Option<&Vec<Value>> {
    value?.as_array()
}

#[cfg(test)]
mod tests;
