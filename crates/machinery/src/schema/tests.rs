use serde_json::{Value, json};

use super::*;
use crate::schema::Admission;
use crate::status::{FieldError, MOST_ERRORS, Status};

fn schema() -> Schema {
    let schema = json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": { "type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$" },
                    "count": { "type": "integer", "minimum": 1, "maximum": 9, "default": 1 },
                    "size": { "type": "string", "enum": ["s", "l"] },
                    "port": { "x-kubernetes-int-or-string": true },
                    "maybe": { "type": "string", "nullable": true, "default": "d" },
                    "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                    "closed": { "type": "object", "properties": { "a": { "type": "string", "default": "x" } } },
                    "items": {
                        "type": "array", "maxItems": 2, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                        "items": { "type": "object", "properties": { "id": { "type": "string" } } }
                    },
                    "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "integer" } }
                }
            }
        }
    });
    Schema::from_openapi(&schema, &Value::Null, Origin::Custom).unwrap()
}

#[test]
fn what_is_not_declared_is_dropped_and_defaults_are_put_in() {
    let mut object = json!({
        "apiVersion": "v1", "kind": "K", "metadata": { "name": "x", "anything": 1 }, "other": 1,
        "spec": { "name": "ab", "unknown": 1, "open": { "x": 1 }, "closed": { "b": 1 }, "size": null, "count": null, "maybe": null }
    });
    let mut unknown = Vec::new();
    schema().admit(&mut object, Admission::Body, &mut unknown);
    let spec = json!({ "name": "ab", "open": { "x": 1 }, "closed": { "a": "x" }, "count": 1, "maybe": null });
    assert_eq!(object["spec"], spec);
    assert_eq!(
        object["metadata"],
        json!({ "name": "x", "anything": 1 }),
        "metadata is somebody else's business"
    );
    assert_eq!(unknown, ["other", "spec.closed.b", "spec.unknown"]);
}

#[test]
fn an_applied_null_stays_to_be_refused() {
    let mut object = json!({ "spec": { "name": null, "count": null } });
    schema().admit(&mut object, Admission::Applied, &mut Vec::new());
    assert_eq!(object["spec"], json!({ "name": null, "count": 1, "maybe": "d" }));
    let errors = schema().validate(&object, false);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!((errors[0].field.as_str(), errors[0].reason), ("spec.name", "FieldValueTypeInvalid"));
}

#[test]
fn each_limit_is_told_in_the_words_of_servers() {
    for (spec, field, body) in [
        (json!({}), "spec.name", "Required value"),
        (
            json!({ "name": "a" }),
            "spec.name",
            "Invalid value: \"a\": spec.name in body should be at least 2 chars long",
        ),
        (json!({ "name": "abcde" }), "spec.name", "Too long: may not be more than 4 bytes"),
        (
            json!({ "name": "A1" }),
            "spec.name",
            "Invalid value: \"A1\": spec.name in body should match '^[a-z]+$'",
        ),
        (
            json!({ "name": 1 }),
            "spec.name",
            "Invalid value: \"integer\": spec.name in body must be of type string: \"integer\"",
        ),
        (
            json!({ "name": "ab", "count": 0 }),
            "spec.count",
            "Invalid value: 0: spec.count in body should be greater than or equal to 1",
        ),
        (
            json!({ "name": "ab", "count": 10 }),
            "spec.count",
            "Invalid value: 10: spec.count in body should be less than or equal to 9",
        ),
        (
            json!({ "name": "ab", "count": 1.5 }),
            "spec.count",
            "Invalid value: \"number\": spec.count in body must be of type integer: \"number\"",
        ),
        (
            json!({ "name": "ab", "size": "m" }),
            "spec.size",
            "Unsupported value: \"m\": supported values: \"s\", \"l\"",
        ),
        (
            json!({ "name": "ab", "port": true }),
            "spec.port",
            "Invalid value: \"boolean\": spec.port in body must be of type integer,string: \"boolean\"",
        ),
        (json!({ "name": "ab", "set": [1, 1] }), "spec.set[1]", "Duplicate value: 1"),
        (
            json!({ "name": "ab", "items": [{ "id": "a" }, { "id": "a" }] }),
            "spec.items[1]",
            "Duplicate value: {\"id\":\"a\"}",
        ),
    ] {
        let errors = schema().validate(&json!({ "spec": spec }), false);
        assert_eq!(errors.len(), 1, "{spec}: {errors:?}");
        assert_eq!((errors[0].field.as_str(), errors[0].body.as_str()), (field, body), "{spec}");
    }
    assert_eq!(schema().validate(&json!({ "spec": { "name": "ab", "port": "http" } }), false), []);
}

#[test]
fn a_component_may_refer_to_itself() {
    let components = json!({ "tree": {
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "children": { "type": "array", "items": { "$ref": "#/components/schemas/tree" } },
            "one": { "allOf": [{ "$ref": "#/components/schemas/tree" }], "x-kubernetes-map-type": "atomic" }
        }
    }});
    let schema =
        Schema::from_openapi(&json!({ "$ref": "#/components/schemas/tree" }), &components, Origin::Custom)
            .unwrap();
    let object = json!({ "children": [{ "children": [{ "name": 1 }] }] });
    let errors = schema.validate(&object, false);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].field, "children[0].children[0].name");
    let root = schema.node(schema.root()).map.as_ref().unwrap();
    let atomic =
        |name: &str| schema.node(root.field(name).unwrap().node).map.as_ref().is_some_and(|map| map.atomic);
    assert!(atomic("one"));
}

#[test]
fn a_schema_that_makes_no_sense_is_refused_with_its_place() {
    for (schema, path) in [
        (json!({ "type": "object", "properties": { "a": { "type": "colour" } } }), ".a"),
        (json!({ "type": "object", "properties": { "a": { "$ref": "#/components/schemas/none" } } }), ".a"),
        (json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "(" } } }), ".a"),
        (json!(3), ""),
    ] {
        let error = Schema::from_openapi(&schema, &Value::Null, Origin::Custom).unwrap_err();
        assert_eq!(error.path, path, "{error}");
    }
}

#[test]
fn other_schemas_have_to_hold_as_they_are_joined() {
    let schema = json!({ "type": "object", "properties": { "spec": {
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" }, "when": { "type": "string", "format": "date-time" } },
        "oneOf": [{ "required": ["a"] }, { "required": ["b"] }],
        "anyOf": [{ "properties": { "a": { "enum": ["x"] } } }, { "properties": { "b": { "maxLength": 3 } } }],
        "not": { "required": ["a", "when"] },
    } } });
    let schema = Schema::from_openapi(&schema, &Value::Null, Origin::Custom).unwrap();
    let errors = |spec: Value| -> Vec<String> {
        let errors = schema.validate(&json!({ "spec": spec }), false);
        errors.iter().map(|error| format!("{}: {}", error.field, error.body)).collect()
    };
    assert!(errors(json!({ "a": "x" })).is_empty());
    assert!(errors(json!({ "b": "y", "when": "2026-11-18T20:00:00Z" })).is_empty());
    let one = "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). ";
    assert_eq!(errors(json!({ "a": "x", "b": "y" })), [format!("{one}Found 2 valid alternatives")]);
    assert_eq!(errors(json!({})), [format!("{one}Found none valid"), "spec.a: Required value".to_owned()]);
    assert_eq!(
        errors(json!({ "b": "later", "a": "y" })),
        [
            "<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)".to_owned(),
            "spec.a: Unsupported value: \"y\": supported values: \"x\"".to_owned(),
            format!("{one}Found 2 valid alternatives"),
        ]
    );
    assert_eq!(
        errors(json!({ "b": "y", "when": "later" })),
        ["spec.when: Invalid value: \"later\": spec.when in body must be of type date-time: \"later\""]
    );
    let both = errors(json!({ "a": "x", "when": "2026-11-18T20:00:00Z" }));
    assert_eq!(both, ["<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)"]);
}

/// What is wrong with an object by a schema of somebody's own.
fn wrong(schema: &Value, object: &Value) -> Vec<FieldError> {
    Schema::from_openapi(schema, &Value::Null, Origin::Custom).unwrap().validate(object, false)
}

#[test]
fn no_more_is_sought_than_anybody_is_told() {
    let words: Vec<String> = (0..1000).map(|number| format!("word-{number}")).collect();
    let item = json!({ "type": "string", "enum": words });
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "additionalProperties": { "type": "array", "items": item } },
    } });
    let name = "n".repeat(300_000);
    let object = json!({ "spec": { name: vec!["x"; 100_000] } });
    let found = wrong(&schema, &object);
    let bytes: usize = found.iter().map(|error| error.field.len() + error.body.len()).sum();
    assert!(!found.is_empty() && bytes < 1 << 20, "{} errors of {bytes} bytes", found.len());

    let few = json!({ "spec": { "n": vec!["x"; 100_000] } });
    let status = Status::invalid("g", "Kind", "name", &wrong(&schema, &few));
    assert!(status.to_json().to_string().len() < 2 << 20);
    assert!(status.body().message.ends_with("and more that is not told]"), "{}", status.body().message.len());
}

#[test]
fn schemas_that_are_joined_cost_no_more_than_an_object_has_room_for() {
    let alternatives: Vec<Value> = (0..3000).map(|number| json!({ "minimum": number + 10 })).collect();
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "array", "items": { "type": "integer", "anyOf": alternatives } },
    } });
    let found = wrong(&schema, &json!({ "spec": vec![4000; 1000] }));
    assert_eq!(found, [], "the first alternative holds");
    let found = wrong(&schema, &json!({ "spec": vec![1; 100_000] }));
    assert!(found.len() <= MOST_ERRORS + 4, "{}", found.len());

    let all: Vec<Value> = (0..3000).map(|number| json!({ "minimum": number })).collect();
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "array", "items": { "type": "integer", "allOf": all } },
    } });
    assert_eq!(wrong(&schema, &json!({ "spec": vec![4000; 100] })), []);
    let told = wrong(&schema, &json!({ "spec": vec![4000; 1000] }));
    assert!(told.iter().any(|error| error.body.contains("running out of cost budget")), "{told:?}");
}

#[test]
fn what_stands_twice_in_a_set_is_found_at_once() {
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "array", "items": { "type": "integer" } } },
    } });
    let mut elements: Vec<Value> = (0..60_000).map(|number| json!([number])).collect();
    assert_eq!(wrong(&schema, &json!({ "spec": elements })), []);
    elements.push(json!([7]));
    let [found] = &wrong(&schema, &json!({ "spec": elements }))[..] else { panic!("one stands twice") };
    assert_eq!(found.field, "spec[60000]");
}
