//! Strategic merge patches: merge patches that know which lists are sets of things with names.
//!
//! `kubectl apply`, `edit` and `set` send them for kinds that a server knows by itself. How a list is merged stands in
//! the kind's OpenAPI; what a merge cannot say is told by directives, members whose names begin with `$`.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::schema::{ListPatch, NodeId, Schema, UNTYPED};
use crate::size::json_bytes;
use crate::status::Status;

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// How many bytes the lists that are merged may have together. Lists stand in each other a few levels deep, so that no patch
/// needs more that merges each of them once; one that names the same element again and again merges what is in it each time.
const MERGED_BYTES_MAX: usize = 32 << 20;

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
    /// It takes too long.
    #[error("the lists that a strategic merge patch merges may have {MERGED_BYTES_MAX} bytes together")]
    TooMuch,
}

impl BadStrategicPatch {
    /// As a server answers it.
    pub(crate) fn status(&self) -> Status {
        match self {
            // Real servers fail to blame the client here.
            Self::NoMergeKey(_) => Status::internal(self.to_string()),
            Self::TooMuch => Status::too_large(self.to_string()),
            other => Status::bad_request(other.to_string()),
        }
    }
}

/// Lays a strategic merge patch over an object.
pub(crate) fn merge(schema: &Schema, object: &mut Value, patch: &Value) -> Result<(), BadStrategicPatch> {
    let (Value::Object(members), Value::Object(patch)) = (object, patch) else {
        return Err(BadStrategicPatch::NoMap);
    };
    Merge { schema, merged_bytes: Cell::default() }.map(members, patch, schema.root())
}

struct Merge<'s> {
    schema: &'s Schema,
    merged_bytes: Cell<usize>,
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
            let retained: HashSet<_> = list(RETAIN, retained)?.iter().filter_map(Value::as_str).collect();
            target.retain(|name, _| retained.contains(name.as_str()));
        }
        for (name, value) in patch {
            if name == DIRECTIVE || name == RETAIN || name.starts_with(ORDER) {
                continue;
            }
            if let Some(field) = name.strip_prefix(DELETE_FROM) {
                let gone: HashSet<_> = list(name, value)?.iter().collect();
                if let Some(Value::Array(elements)) = target.get_mut(field) {
                    self.charge(elements)?;
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
                self.charge(elements)?;
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
                            Some(Value::Array(elements)) => &elements[..],
                            _ => &[],
                        };
                        self.charge(present)?;
                        self.charge(patch)?;
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
        present: &[Value],
        patch: &[Value],
        key: Option<&str>,
        items: NodeId,
        order: Option<&[Value]>,
    ) -> Result<Vec<Value>, BadStrategicPatch> {
        // Where no order is wanted, that of the patch is.
        let order = order.unwrap_or(patch);
        let Some(key) = key else {
            let mut known: HashSet<&Value> = present.iter().collect();
            let new = patch.iter().filter(|element| known.insert(element)).cloned();
            return Ok(ordered(present.iter().cloned().chain(new).collect(), order, present, None));
        };
        if patch.iter().any(|element| element[DIRECTIVE] == "replace") {
            return Ok(patch.iter().filter(|element| element[DIRECTIVE] != "replace").cloned().collect());
        }
        // What is deleted leaves its place empty, so that the others stay where they are known to be.
        let mut merged: Vec<Option<Value>> = present.iter().cloned().map(Some).collect();
        let mut places: HashMap<&Value, Vec<usize>> = HashMap::new();
        for (place, element) in present.iter().enumerate() {
            if let Some(name) = element.get(key) {
                places.entry(name).or_default().push(place);
            }
        }
        for element in patch {
            let Some(members) = element.as_object() else { continue };
            let Some(name) = members.get(key) else {
                return Err(BadStrategicPatch::NoMergeKey(key.to_owned()));
            };
            if element[DIRECTIVE] == "delete" {
                places.remove(name).into_iter().flatten().for_each(|place| merged[place] = None);
                continue;
            }
            let place = places.get(name).and_then(|places| places.first()).copied();
            let place = place.unwrap_or_else(|| {
                merged.push(Some(Value::Object(Map::new())));
                merged.len() - 1
            });
            let Some(Value::Object(target)) = &mut merged[place] else { continue };
            self.map(target, members, items)?;
            // A name that is null is none, and nothing is found by it.
            if target.get(key) == Some(name) {
                let known = places.entry(name).or_default();
                if known.is_empty() {
                    known.push(place);
                }
            } else {
                places.remove(name);
            }
        }
        Ok(ordered(merged.into_iter().flatten().collect(), order, present, Some(key)))
    }

    /// Adds a list to what is merged.
    fn charge(&self, elements: &[Value]) -> Result<(), BadStrategicPatch> {
        /// To look one up costs as much as to copy so much.
        const EACH_BYTES: usize = 16;
        let bytes = |element| EACH_BYTES + json_bytes(element, MERGED_BYTES_MAX);
        let bytes: usize = elements.iter().map(bytes).sum();
        self.merged_bytes.set(self.merged_bytes.get() + bytes);
        if self.merged_bytes.get() > MERGED_BYTES_MAX { Err(BadStrategicPatch::TooMuch) } else { Ok(()) }
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
    let (wanted, server) = (places(wanted, key), places(server, key));
    let placed = merged.into_iter().map(|element| {
        let name = name(&element, key);
        let (wanted, server) = (wanted.get(name).copied(), server.get(name).copied());
        Placed { element, wanted, server }
    });
    let (mut patched, mut others): (Vec<Placed>, Vec<Placed>) = placed.partition(|one| one.wanted.is_some());
    patched.sort_by_key(|one| one.wanted);
    others.sort_by_key(|one| one.server);
    let mut out = Vec::with_capacity(patched.len() + others.len());
    let (mut patched, mut others) = (patched.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let before = match (others.peek(), patched.peek()) {
            (None, None) => return out,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(patched)) => {
                matches!((other.server, patched.server), (Some(left), Some(right)) if left < right)
            }
        };
        let next = if before { others.next() } else { patched.next() };
        out.extend(next.map(|one| one.element));
    }
}

/// An element, and where the wanted order and the former one have the first of its name.
struct Placed {
    element: Value,
    wanted: Option<usize>,
    server: Option<usize>,
}

/// What an element of a list is told apart by.
fn name<'v>(element: &'v Value, key: Option<&str>) -> &'v Value {
    key.map_or(element, |key| &element[key])
}

/// Where the first element of each name stands.
fn places<'v>(elements: &'v [Value], key: Option<&str>) -> HashMap<&'v Value, usize> {
    let mut places = HashMap::with_capacity(elements.len());
    for (place, element) in elements.iter().enumerate() {
        places.entry(name(element, key)).or_insert(place);
    }
    places
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
    fn what_is_deleted_twice_or_named_again_is_found_where_it_stands() {
        let before =
            json!({ "containers": [{ "name": "a" }, { "name": "b" }, { "name": "a", "image": "2" }] });
        let patch = json!({ "containers": [
            { "name": "a", "$patch": "delete" }, { "name": "a", "$patch": "delete" },
            { "name": "b", "image": "3" }, { "name": "a", "image": "4" }, { "name": "a", "args": ["x"] },
            { "name": null, "image": "5" }, { "name": null, "image": "6" },
        ] });
        let expected = json!([
            { "name": "a", "image": "4", "args": ["x"] }, { "name": "b", "image": "3" }, { "image": "5" }, { "image": "6" },
        ]);
        assert_eq!(spec(&before, &patch)["containers"], expected);
    }

    #[test]
    fn an_element_that_is_named_again_and_again_is_not_merged_for_ever() {
        let args = vec!["x"; 100_000];
        let before = json!({ "containers": [{ "name": "a" }], "finalizers": args });
        let once = json!({ "spec": { "finalizers": ["y"], "$deleteFromPrimitiveList/finalizers": ["x"] } });
        let mut object = json!({ "spec": before });
        assert_eq!(merge(&schema(), &mut object, &once), Ok(()));
        let schema = Schema::from_openapi(
            &json!({ "type": "object", "properties": { "list": {
                "type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
                "items": { "type": "object", "properties": { "args": {
                    "type": "array", "x-kubernetes-patch-strategy": "merge", "items": { "type": "string" },
                } } },
            } } }),
            &Value::Null,
            Origin::Native,
        );
        let (schema, mut object) = (schema.unwrap(), json!({ "list": [{ "name": "a", "args": args }] }));
        for again in [
            json!({ "name": "a", "args": ["y"] }),
            json!({ "name": "a", "$deleteFromPrimitiveList/args": ["y"] }),
            json!({ "name": "a", "$setElementOrder/args": ["y"] }),
        ] {
            let many = json!({ "list": vec![again; 10_000] });
            assert_eq!(merge(&schema, &mut object, &many), Err(BadStrategicPatch::TooMuch));
        }
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
