use serde_json::{Value, json};

use super::*;
use crate::schema::Origin;

fn schema() -> Schema {
    let schema = json!({
        "type": "object",
        "properties": {
            "map": { "type": "object", "additionalProperties": { "type": "string" } },
            "whole": { "type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": { "type": "string" } },
            "list": { "type": "array", "items": { "type": "string" } },
            "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
            "keyed": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id", "port"],
                "items": { "type": "object", "properties": {
                    "id": { "type": "string" }, "port": { "type": "integer", "default": 80 }, "value": { "type": "string" }
                } }
            },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true }
        }
    });
    Schema::from_openapi(&schema, &Value::Null, Origin::Custom).unwrap()
}

fn texts(set: &crate::field_set::FieldSet) -> Vec<String> {
    let mut paths = Vec::new();
    set.for_each(&mut |path| paths.push(crate::field_set::path_text(path)));
    paths.sort();
    paths
}

#[test]
fn the_fields_of_an_object_follow_its_schema() {
    let object = json!({
        "map": { "a": "1" }, "whole": { "a": "1" }, "list": ["x"], "set": ["x"], "keyed": [{ "id": "a", "value": "v" }],
        "free": { "deep": { "x": [1] }, "empty": {} }
    });
    assert_eq!(
        texts(&field_set(&schema(), &object)),
        [
            ".free.deep",
            ".free.deep.x",
            ".free.empty",
            ".keyed[id=\"a\",port=80]",
            ".keyed[id=\"a\",port=80].id",
            ".keyed[id=\"a\",port=80].value",
            ".list",
            ".map.a",
            ".set[=\"x\"]",
            ".whole",
        ]
    );
}

#[test]
fn a_comparison_tells_what_came_went_and_changed() {
    let before =
        json!({ "map": { "a": "1", "b": "1" }, "whole": { "a": "1" }, "set": ["x", "y"], "list": ["p"] });
    let after =
        json!({ "map": { "a": "2", "c": "1" }, "whole": { "b": "1" }, "set": ["y", "z"], "list": ["p"] });
    let found = compare(&schema(), &before, &after);
    assert_eq!(texts(&found.modified), [".map.a", ".whole"]);
    assert_eq!(texts(&found.added), [".map.c", ".set[=\"z\"]"]);
    assert_eq!(texts(&found.removed), [".map.b", ".set[=\"x\"]"]);
}

#[test]
fn what_is_new_as_a_whole_is_added_with_its_parents() {
    let found = compare(&schema(), &json!({}), &json!({ "map": { "a": "1" }, "keyed": [{ "id": "a" }] }));
    let keyed = ".keyed[id=\"a\",port=80]";
    assert_eq!(texts(&found.added), [".keyed", keyed, &format!("{keyed}.id"), ".map", ".map.a"]);
}

#[test]
fn an_intent_is_laid_over_what_is_there() {
    let live = json!({ "map": { "a": "1", "b": "1" }, "whole": { "a": "1" }, "set": ["x", "y"], "keyed": [{ "id": "a", "value": "v" }, { "id": "b" }] });
    let intent = json!({ "map": { "b": "2" }, "whole": { "b": "1" }, "set": ["z", "y"], "keyed": [{ "id": "b", "value": "w" }] });
    let merged = merge(&schema(), &live, &intent).unwrap();
    assert_eq!(
        merged,
        json!({
            "map": { "a": "1", "b": "2" }, "whole": { "b": "1" }, "set": ["x", "z", "y"],
            "keyed": [{ "id": "a", "value": "v" }, { "id": "b", "value": "w" }]
        })
    );
    let twice = merge(&schema(), &live, &json!({ "set": ["x", "x"] }));
    assert!(twice.is_err_and(|what| what.contains("duplicate entries")));
}

#[test]
fn an_emptied_map_becomes_null_as_on_real_servers() {
    let object = json!({ "map": { "a": "1" }, "set": ["x"], "keyed": [{ "id": "a", "value": "v" }] });
    let mut fields = crate::field_set::FieldSet::default();
    fields.insert(&[PathElement::field("map"), PathElement::field("a")]);
    fields.insert(&[PathElement::field("set"), PathElement::Value(Scalar::of(&json!("x")))]);
    assert_eq!(
        remove(&schema(), &object, &fields),
        json!({ "map": null, "set": null, "keyed": [{ "id": "a", "value": "v" }] })
    );
}

#[test]
fn an_intent_that_does_not_fit_is_told() {
    for (intent, what) in [
        (json!({ "none": 1 }), ".none: field not declared in schema"),
        (json!({ "map": { "a": 1 } }), ".map.a: expected string, got 1"),
        (json!({ "set": ["x", "x"] }), ".set: duplicate entries for key [=\"x\"]"),
        (
            json!({ "keyed": [1] }),
            ".keyed: element 0: associative list with keys may not have non-map elements",
        ),
        (json!({ "map": [] }), ".map: expected map, got []"),
    ] {
        assert_eq!(check(&schema(), &intent, false), Err(what.to_owned()), "{intent}");
    }
    assert_eq!(check(&schema(), &json!({ "set": ["x", "x"] }), true), Ok(()));
    assert_eq!(
        check(&schema(), &json!({ "free": { "any": [1, { "x": null }] }, "map": null }), false),
        Ok(())
    );
}
