//! Strategic merge patches: merge patches that know which lists are sets of things with names.
//!
//! `kubectl apply`, `edit` and `set` send them for kinds that a server knows by itself. How a list is merged stands in
//! the kind's OpenAPI; what a merge cannot say is told by directives, members whose names begin with `$`.

use serde_json::{Map, Value};

use crate::schema::{ListPatch, NodeId, Schema, UNTYPED};
use crate::status::Status;

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Why a patch cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadStrategicPatch {
    /// It is not a map.
    #[error("a strategic merge patch must be a map")]
    NoMap,
    /// A directive says what is unknown.
    #[error("unknown patch type {0:?}")]
    UnknownDirective(String),
    /// A directive is of the wrong type.
    #[error("{0} must be a list")]
    NoList(String),
    /// An element of a list has no name to find its like by.
    #[error("map does not contain declared merge key: {0}")]
    NoMergeKey(String),
}

impl BadStrategicPatch {
    /// As a server answers it.
    pub(crate) fn status(&self) -> Status {
        match self {
            // Real servers fail to blame the client here.
            Self::NoMergeKey(_) => Status::internal(self.to_string()),
            other => Status::bad_request(other.to_string()),
        }
    }
}

/// Lays a strategic merge patch over an object.
pub(crate) fn merge(schema: &Schema, object: &mut Value, patch: &Value) -> Result<(), BadStrategicPatch> {
    let (Value::Object(members), Value::Object(patch)) = (object, patch) else {
        return Err(BadStrategicPatch::NoMap);
    };
    Merge { schema }.map(members, patch, schema.root())
}

struct Merge<'s> {
    schema: &'s Schema,
}

impl Merge<'_> {
    fn map(
        &self,
        target: &mut Map<String, Value>,
        patch: &Map<String, Value>,
        node: NodeId,
    ) -> Result<(), BadStrategicPatch> {
        match patch.get(DIRECTIVE).map(|directive| directive.as_str().unwrap_or_default()) {
            None | Some("merge") => {}
            Some("replace") => {
                *target = patch.iter().filter(|(name, _)| *name != DIRECTIVE).map(owned).collect();
                return Ok(());
            }
            Some("delete") => {
                target.clear();
                return Ok(());
            }
            Some(other) => return Err(BadStrategicPatch::UnknownDirective(other.to_owned())),
        }
        if let Some(retained) = patch.get(RETAIN) {
            let retained = list(RETAIN, retained)?;
            target.retain(|name, _| retained.iter().any(|retained| retained == name));
        }
        for (name, value) in patch {
            if name == DIRECTIVE || name == RETAIN || name.starts_with(ORDER) {
                continue;
            }
            if let Some(field) = name.strip_prefix(DELETE_FROM) {
                let gone = list(name, value)?;
                if let Some(Value::Array(elements)) = target.get_mut(field) {
                    elements.retain(|element| !gone.contains(element));
                }
                continue;
            }
            if value.is_null() {
                target.remove(name);
                continue;
            }
            let order = patch.get(&format!("{ORDER}{name}"));
            self.member(target, name, value, order, self.child(node, name))?;
        }
        // An order may come for a list of which nothing changes but the order.
        for (field, order) in
            patch.iter().filter_map(|(name, order)| Some((name.strip_prefix(ORDER)?, order)))
        {
            if !patch.contains_key(field)
                && let Some(Value::Array(elements)) = target.get_mut(field)
                && let Some((key, _)) = self.merged_list(self.child(node, field))
            {
                let server = elements.clone();
                *elements = ordered(std::mem::take(elements), list(ORDER, order)?, &server, key);
            }
        }
        Ok(())
    }

    fn member(
        &self,
        target: &mut Map<String, Value>,
        name: &str,
        value: &Value,
        order: Option<&Value>,
        node: NodeId,
    ) -> Result<(), BadStrategicPatch> {
        match value {
            // What says how to change something that is not there says nothing.
            Value::Object(patch) if patch.contains_key(DIRECTIVE) && !target.contains_key(name) => {}
            Value::Object(patch) => {
                let present = target.entry(name).or_insert_with(|| Value::Object(Map::new()));
                if !present.is_object() {
                    *present = Value::Object(Map::new());
                }
                if let Value::Object(present) = present {
                    self.map(present, patch, node)?;
                }
            }
            Value::Array(patch) => {
                let merged = match self.merged_list(node) {
                    Some((key, items)) => {
                        let present = match target.get(name) {
                            Some(Value::Array(elements)) => elements.clone(),
                            _ => Vec::new(),
                        };
                        let order = order.map(|order| list(ORDER, order)).transpose()?;
                        self.list(present, patch, key, items, order)?
                    }
                    None => patch.clone(),
                };
                target.insert(name.to_owned(), Value::Array(merged));
            }
            scalar => {
                target.insert(name.to_owned(), scalar.clone());
            }
        }
        Ok(())
    }

    fn list(
        &self,
        present: Vec<Value>,
        patch: &[Value],
        key: Option<&str>,
        items: NodeId,
        order: Option<&[Value]>,
    ) -> Result<Vec<Value>, BadStrategicPatch> {
        let server = present.clone();
        let mut merged = present;
        let Some(key) = key else {
            for element in patch {
                if !merged.contains(element) {
                    merged.push(element.clone());
                }
            }
            return Ok(ordered(merged, order.unwrap_or(patch), &server, None));
        };
        if patch.iter().any(|element| element[DIRECTIVE] == "replace") {
            return Ok(patch.iter().filter(|element| element[DIRECTIVE] != "replace").cloned().collect());
        }
        for element in patch {
            let Some(members) = element.as_object() else { continue };
            let Some(name) = members.get(key) else {
                return Err(BadStrategicPatch::NoMergeKey(key.to_owned()));
            };
            let at = merged.iter().position(|present| present.get(key) == Some(name));
            match (element[DIRECTIVE].as_str(), at) {
                (Some("delete"), _) => merged.retain(|present| present.get(key) != Some(name)),
                (_, Some(at)) => {
                    if let Value::Object(present) = &mut merged[at] {
                        self.map(present, members, items)?;
                    }
                }
                (_, None) => {
                    let mut new = Map::new();
                    self.map(&mut new, members, items)?;
                    merged.push(Value::Object(new));
                }
            }
        }
        // Where no order is wanted, that of the patch is.
        Ok(ordered(merged, order.unwrap_or(patch), &server, Some(key)))
    }

    /// The node of a member.
    fn child(&self, node: NodeId, name: &str) -> NodeId {
        let map = self.schema.node(node).map.as_ref();
        map.and_then(|map| map.member(name)).unwrap_or(UNTYPED)
    }

    /// How a list is merged: by which member its elements are told apart, if they are maps. None: it is replaced.
    fn merged_list(&self, node: NodeId) -> Option<(Option<&str>, NodeId)> {
        let shape = self.schema.node(node).list.as_ref()?;
        match &shape.patch {
            ListPatch::Replace => None,
            ListPatch::Merge(key) => Some((key.as_ref().map(mailboat_object::Name::as_str), shape.items)),
        }
    }
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn list<'v>(what: &str, value: &'v Value) -> Result<&'v [Value], BadStrategicPatch> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| BadStrategicPatch::NoList(what.to_owned()))
}

/// The elements in the order that the patch wants; those that it does not name keep their places among the others as
/// far as the former order tells them.
fn ordered(merged: Vec<Value>, wanted: &[Value], server: &[Value], key: Option<&str>) -> Vec<Value> {
    let name =
        |value: &Value| key.map_or_else(|| value.clone(), |key| value.get(key).cloned().unwrap_or_default());
    let place = |order: &[Value], value: &Value| order.iter().position(|other| name(other) == name(value));
    let (mut patched, mut others): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|element| place(wanted, element).is_some());
    patched.sort_by_key(|element| place(wanted, element));
    others.sort_by_key(|element| place(server, element));
    let mut out = Vec::with_capacity(patched.len() + others.len());
    let (mut patched, mut others) = (patched.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let before = match (others.peek(), patched.peek()) {
            (None, None) => return out,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(patched)) => {
                matches!((place(server, other), place(server, patched)), (Some(left), Some(right)) if left < right)
            }
        };
        out.extend(if before { others.next() } else { patched.next() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Origin;
    use serde_json::json;

    fn schema() -> Schema {
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
            "containers": {
                "type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
                "items": { "type": "object", "properties": {
                    "name": { "type": "string" }, "image": { "type": "string" },
                    "args": { "type": "array", "items": { "type": "string" } },
                } },
            },
            "finalizers": {
                "type": "array", "x-kubernetes-patch-strategy": "merge", "items": { "type": "string" },
            },
            "strategy": { "type": "object", "properties": {
                "type": { "type": "string" }, "rollingUpdate": { "type": "object" },
            } },
        } } } });
        Schema::from_openapi(&schema, &Value::Null, Origin::Native).unwrap()
    }

    fn spec(before: &Value, patch: &Value) -> Value {
        let mut object = json!({ "spec": before });
        merge(&schema(), &mut object, &json!({ "spec": patch })).unwrap();
        object["spec"].take()
    }

    #[test]
    fn a_list_of_named_things_is_merged_by_name() {
        let before =
            json!({ "containers": [{ "name": "a", "image": "1", "args": ["x", "y"] }, { "name": "b" }] });
        let patch = json!({ "containers": [{ "name": "a", "image": "2", "args": ["z"] }, { "name": "c", "image": null }] });
        let after = spec(&before, &patch);
        let expected =
            json!([{ "name": "a", "image": "2", "args": ["z"] }, { "name": "c" }, { "name": "b" }]);
        assert_eq!(after["containers"], expected);
    }

    #[test]
    fn directives_delete_replace_and_retain() {
        let before = json!({ "containers": [{ "name": "a" }, { "name": "b" }], "finalizers": ["x", "y"],
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } });
        let deleted = spec(&before, &json!({ "containers": [{ "name": "a", "$patch": "delete" }] }));
        assert_eq!(deleted["containers"], json!([{ "name": "b" }]));
        let replaced = spec(&before, &json!({ "containers": [{ "name": "c" }, { "$patch": "replace" }] }));
        assert_eq!(replaced["containers"], json!([{ "name": "c" }]));
        let retained = spec(&before, &json!({ "strategy": { "$retainKeys": ["type"], "type": "Recreate" } }));
        assert_eq!(retained["strategy"], json!({ "type": "Recreate" }));
        let removed =
            spec(&before, &json!({ "$deleteFromPrimitiveList/finalizers": ["x"], "finalizers": ["z"] }));
        assert_eq!(removed["finalizers"], json!(["z", "y"]));
        let emptied = spec(&before, &json!({ "strategy": { "$patch": "delete" } }));
        assert_eq!(emptied["strategy"], json!({}));
    }

    #[test]
    fn the_order_that_is_wanted_is_kept_and_others_stay_between() {
        let before = json!({ "containers": [{ "name": "a" }, { "name": "ours" }, { "name": "b" }] });
        let patch = json!({
            "$setElementOrder/containers": [{ "name": "b" }, { "name": "new" }, { "name": "a" }],
            "containers": [{ "name": "new" }],
        });
        let after = spec(&before, &patch);
        let names: Vec<&str> =
            after["containers"].as_array().unwrap().iter().filter_map(|item| item["name"].as_str()).collect();
        assert_eq!(names, ["ours", "b", "new", "a"]);
    }

    #[test]
    fn bad_patches_are_refused() {
        let mut object = json!({ "spec": {} });
        for patch in [
            json!([]),
            json!({ "spec": { "$patch": "other" } }),
            json!({ "spec": { "$retainKeys": "a" } }),
            json!({ "spec": { "containers": [{ "image": "nameless" }] } }),
        ] {
            assert!(merge(&schema(), &mut object, &patch).is_err(), "{patch}");
        }
    }
}
