//! Maps and lists that an apply would empty, on servers that make null of them.
//!
//! Whoever applies less than before gives up the rest, and a server takes out what nobody else owns. Where that leaves nothing of
//! a map or a list, servers of custom resources write null in its place, and mostly refuse that themselves (422): what was
//! intended is never written. So what we own there is taken out by a merge patch first, which says what is to be left.

use mailboat_object::json::Raw;
use mailboat_object::key::KindId;
use serde_json::{Map, Value};

/// The patch that takes out of an object what the named manager applied and an intent does not have any more, where nothing else
/// would be left of the map or list around it. `None` if there is no such place. What stands in elements of lists no merge patch
/// reaches.
pub(crate) fn removal(object: Raw<'_>, manager: &str, intent: Raw<'_>) -> Option<Value> {
    let fields = object.get(&["metadata", "managedFields"]);
    let applied = fields.into_iter().flat_map(Raw::elements).filter(|entry| {
        let text = |member| entry.member(member).and_then(Raw::as_str);
        text("manager").as_deref() == Some(manager)
            && text("operation").as_deref() == Some("Apply")
            && entry.member("subresource").is_none()
    });
    let mut owned = Map::new();
    for entry in applied {
        if let Some(Value::Object(fields)) = entry.member("fieldsV1").map(Raw::to_value) {
            unite(&mut owned, fields);
        }
    }
    // What servers say of every object they hold in types of their own, and so may be empty.
    for own in ["f:metadata", "f:apiVersion", "f:kind"] {
        owned.remove(own);
    }
    let (Value::Object(live), Value::Object(intent)) = (object.to_value(), intent.to_value()) else {
        return None;
    };
    let taken = Taken::out_of(&owned, &live, Some(&intent));
    (!taken.patch.is_empty()).then_some(Value::Object(taken.patch))
}

/// The patch that takes out of an object the nulls that an apply left in it: those that nobody owns. Servers of custom resources
/// keep them where a schema says nothing of what may stand there. `None` if there are none.
pub(crate) fn leftovers(kind: &KindId, body: &[u8]) -> Option<Value> {
    // What a server holds in types of its own is written with nulls that mean nothing.
    let custom = kind.group().contains('.') && !kind.group().ends_with(".k8s.io");
    if !custom || !body.windows(NULL.len()).any(|window| window == NULL) {
        return None;
    }
    let object = Raw::parse(body).ok()?;
    let mut owned = Map::new();
    for entry in object.get(&["metadata", "managedFields"]).into_iter().flat_map(Raw::elements) {
        if let Some(Value::Object(fields)) = entry.member("fieldsV1").map(Raw::to_value) {
            unite(&mut owned, fields);
        }
    }
    let Value::Object(mut live) = object.to_value() else { return None };
    for own in ["apiVersion", "kind", "metadata", "status"] {
        live.remove(own);
    }
    let patch = left_in(&owned, &live);
    (!patch.is_empty()).then_some(Value::Object(patch))
}

const NULL: &[u8] = b":null";

/// The nulls in a map that nobody owns.
fn left_in(owned: &Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (name, value) in live {
        let field = owned.get(&format!("f:{name}")).and_then(Value::as_object);
        match value {
            Value::Null if field.is_none() => drop(patch.insert(name.clone(), Value::Null)),
            // What is owned as a whole is as its owner wants it.
            Value::Object(members) if field.is_none_or(|field| !field.is_empty()) => {
                let below = left_in(field.unwrap_or(&Map::new()), members);
                if !below.is_empty() {
                    patch.insert(name.clone(), Value::Object(below));
                }
            }
            _ => {}
        }
    }
    patch
}

/// Adds fields to others: what we applied in another version of the API is ours as well.
fn unite(owned: &mut Map<String, Value>, more: Map<String, Value>) {
    for (field, below) in more {
        match (owned.get_mut(&field), below) {
            (Some(Value::Object(known)), Value::Object(below)) => unite(known, below),
            (_, below) => drop(owned.insert(field, below)),
        }
    }
}

/// What is taken out of one map.
struct Taken {
    patch: Map<String, Value>,
    /// Nothing is left in it, and nothing is to be.
    empties: bool,
}

impl Taken {
    fn out_of(
        owned: &Map<String, Value>,
        live: &Map<String, Value>,
        intent: Option<&Map<String, Value>>,
    ) -> Self {
        let (mut patch, mut gone) = (Map::new(), Vec::new());
        for (field, below) in owned {
            let Some(name) = field.strip_prefix("f:") else { continue };
            let (Some(found), Some(below)) = (live.get(name), below.as_object()) else { continue };
            let wanted = intent.and_then(|intent| intent.get(name));
            match found {
                Value::Object(members) if !below.is_empty() => {
                    let taken = Self::out_of(below, members, wanted.and_then(Value::as_object));
                    match wanted {
                        None if taken.empties => {
                            patch.insert(name.to_owned(), Value::Null);
                            gone.push(name);
                        }
                        _ if !taken.patch.is_empty() => {
                            patch.insert(name.to_owned(), Value::Object(taken.patch));
                        }
                        _ => {}
                    }
                }
                Value::Array(elements) if !below.is_empty() => {
                    let ours = below.keys().filter(|key| *key != ".").count() >= elements.len();
                    let unwanted = wanted.is_none_or(|wanted| wanted.as_array().is_some_and(Vec::is_empty));
                    if ours && unwanted && !elements.is_empty() {
                        patch.insert(name.to_owned(), wanted.cloned().unwrap_or(Value::Null));
                        gone.extend(wanted.is_none().then_some(name));
                    }
                }
                _ if wanted.is_none() => gone.push(name),
                _ => {}
            }
        }
        let wants_nothing = intent.is_none_or(Map::is_empty);
        let empties =
            wants_nothing && !gone.is_empty() && live.keys().all(|name| gone.contains(&name.as_str()));
        if empties {
            patch.extend(gone.into_iter().map(|name| (name.to_owned(), Value::Null)));
        }
        Self { patch, empties }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is taken out of an object that bears these fields of ours.
    fn taken(live: &Value, ours: &Value, intent: &Value) -> Option<Value> {
        let mut live = live.clone();
        live["metadata"] = json!({ "name": "pos", "labels": { "a": "1" }, "managedFields": [
            { "manager": "us", "operation": "Apply", "fieldsV1": ours },
            { "manager": "us", "operation": "Update", "fieldsV1": { "f:spec": { "f:theirs": {} } } },
            { "manager": "us", "operation": "Apply", "subresource": "status", "fieldsV1": { "f:status": { "f:a": {} } } },
            { "manager": "them", "operation": "Apply", "fieldsV1": { "f:spec": { "f:theirs": {} } } },
        ]});
        let (live, intent) = (live.to_string(), intent.to_string());
        removal(Raw::parse(live.as_bytes()).unwrap(), "us", Raw::parse(intent.as_bytes()).unwrap())
    }

    #[test]
    fn what_would_be_left_empty_is_taken_out_and_nothing_else() {
        let ours = json!({ "f:metadata": { "f:labels": { "f:a": {} } },
            "f:spec": { "f:data": { "f:a": {}, "f:b": {} }, "f:size": {} } });
        let live = json!({ "spec": { "data": { "a": 1, "b": 2 }, "size": 3 } });
        for (why, live, intent, patch) in [
            ("nothing changed", live.clone(), live.clone(), None),
            ("something is left", live.clone(), json!({ "spec": { "data": { "a": 1 }, "size": 3 } }), None),
            (
                "it is wanted, and empty",
                live.clone(),
                json!({ "spec": { "data": {}, "size": 3 } }),
                Some(json!({ "spec": { "data": { "a": null, "b": null } } })),
            ),
            (
                "it is not wanted",
                live.clone(),
                json!({ "spec": { "size": 3 } }),
                Some(json!({ "spec": { "data": null } })),
            ),
            ("nothing around it is, either", live.clone(), json!({}), Some(json!({ "spec": null }))),
            (
                "what is around it is, and empty",
                live.clone(),
                json!({ "spec": {} }),
                Some(json!({ "spec": { "data": null, "size": null } })),
            ),
            ("another comes in its place", live.clone(), json!({ "spec": { "data": { "c": 1 } } }), None),
            (
                "somebody else has something there",
                json!({ "spec": { "data": { "a": 1, "b": 2, "theirs": 3 }, "size": 3 } }),
                json!({ "spec": { "size": 3 } }),
                None,
            ),
            ("it is gone already", json!({ "spec": { "size": 3 } }), json!({ "spec": { "size": 3 } }), None),
        ] {
            assert_eq!(taken(&live, &ours, &intent), patch, "{why}");
        }
    }

    #[test]
    fn nulls_that_nobody_owns_are_taken_out_and_those_that_somebody_wants_stay() {
        let object = json!({
            "metadata": { "creationTimestamp": null, "managedFields": [
                { "manager": "us", "fieldsV1": { "f:spec": { "f:wanted": {}, "f:whole": {}, "f:loose": { "f:b": {} } } } },
            ]},
            "spec": { "wanted": null, "left": null, "whole": { "inner": null }, "loose": { "a": null, "b": 1 } },
            "status": { "ready": null },
        });
        let boats = KindId::new("example.org", "boats");
        let body = object.to_string();
        assert_eq!(
            leftovers(&boats, body.as_bytes()),
            Some(json!({ "spec": { "left": null, "loose": { "a": null } } }))
        );
        for other in [KindId::new("apps", "deployments"), KindId::new("rbac.authorization.k8s.io", "roles")] {
            assert_eq!(leftovers(&other, body.as_bytes()), None, "{other}");
        }
        assert_eq!(leftovers(&boats, br#"{"spec":{"text":":null, it says"}}"#), None);
    }

    #[test]
    fn lists_of_which_each_element_was_applied_are_taken_out_as_well() {
        let ours = json!({ "f:spec": { "f:set": { "v:\"x\"": {}, ".": {} }, "f:whole": {},
            "f:keyed": { "k:{\"id\":\"a\"}": { ".": {}, "f:id": {} } } } });
        let live = json!({ "spec": { "set": ["x"], "keyed": [{ "id": "a" }], "whole": [1] } });
        let without = json!({ "spec": { "keyed": [], "whole": [1] } });
        assert_eq!(taken(&live, &ours, &without), Some(json!({ "spec": { "set": null, "keyed": [] } })));
        let shared = json!({ "spec": { "set": ["x", "theirs"], "keyed": [{ "id": "a" }], "whole": [1] } });
        let fewer = json!({ "spec": { "keyed": [{ "id": "a" }], "whole": [1] } });
        assert_eq!(taken(&shared, &ours, &fewer), None);
        // An atomic list goes whole; if it was all that there was, so does what is around it.
        assert_eq!(taken(&live, &ours, &json!({})), Some(json!({ "spec": null })));
    }
}
