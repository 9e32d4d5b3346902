//! Which schemas a definition may have: structural ones, of which it is plain what is kept of an object.

use serde_json::{Value, json};

use super::{list, text};
use crate::schema::parse::{PATHS_TOO_LONG, paths_fit};
use crate::schema::pattern::Patterns;
use crate::status::FieldError;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// What OpenAPI has, and no server takes.
const UNSUPPORTED: [&str; 6] =
    ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
/// What joins schemas that only check, each with its errors.
const JOINED: [&str; 3] = ["allOf", "oneOf", "anyOf"];
/// What a schema that only checks says nothing of.
const STRUCTURE: [&str; 5] = [
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// By so many members elements of a list may be told apart: each of an object's is looked at for each of them.
const KEYS_MAX: u64 = 64;

/// Where in a schema something stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Everything that is wrong with a schema, or nothing of what it says is looked at.
pub(super) fn errors(schema: &Value, at: &str) -> Vec<FieldError> {
    if !paths_fit(schema) {
        return vec![FieldError::forbidden(at, PATHS_TOO_LONG)];
    }
    let mut structure = Vec::new();
    structural(schema, Level::Root, at, &mut structure);
    // As real servers order them, which go through maps.
    structure.sort_by(|one, other| (&one.field, &one.body).cmp(&(&other.field, &other.body)));
    said(schema, at, true, &mut structure);
    structure
}

fn child(at: &str, name: &str) -> String {
    format!("{at}.properties[{name}]")
}

/// That it is said of every field what it is.
fn structural(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let kind = text(&schema["type"]);
    let is = |member: &str| schema[member] == true;
    if kind == "array" && !schema["items"].is_object() {
        errors.push(FieldError::required(&format!("{at}.items"), "must be specified"));
    }
    if schema["items"].is_object() {
        structural(&schema["items"], Level::Item, &format!("{at}.items"), errors);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        structural(field, Level::Field, &child(at, name), errors);
    }
    let more = &schema["additionalProperties"];
    if !more.is_null() {
        let place = format!("{at}.additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&place, "must not be used at the root"));
        }
        if is("x-kubernetes-embedded-resource") {
            let what = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(&place, what));
        }
        if more.is_object() {
            structural(more, Level::Field, &place, errors);
        }
    }
    if is("x-kubernetes-int-or-string") {
        for other in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if is(other) {
                let what = "must be false if x-kubernetes-int-or-string is true";
                errors.push(FieldError::invalid(&format!("{at}.{other}"), &Value::Bool(true), what));
            }
        }
    }
    checked(schema, is("x-kubernetes-int-or-string"), at, errors);
    typed(schema, level, at, errors);
}

/// That its type is said, and fits what it is for.
fn typed(schema: &Value, level: Level, at: &str, errors: &mut Vec<FieldError>) {
    let (place, kind) = (format!("{at}.type"), text(&schema["type"]));
    let is = |member: &str| schema[member] == true;
    let refuse = |place: &str, kind: &str, what: &str| match kind {
        "" => FieldError::required(place, what),
        kind => FieldError::invalid(place, &kind.into(), what),
    };
    if is("x-kubernetes-embedded-resource") && kind != "object" {
        errors.push(refuse(&place, kind, "must be object if x-kubernetes-embedded-resource is true"));
    } else if kind.is_empty()
        && !is("x-kubernetes-int-or-string")
        && !is("x-kubernetes-preserve-unknown-fields")
    {
        let what = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&place, what));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&place, &kind.into(), "must be object at the root"));
    }
    if level != Level::Root && !is("x-kubernetes-embedded-resource") {
        return;
    }
    for name in ["kind", "apiVersion"] {
        if let Some(field) = schema["properties"].get(name).filter(|field| field["type"] != "string") {
            let place = format!("{}.type", child(at, name));
            errors.push(FieldError::invalid(&place, &text(&field["type"]).into(), "must be string"));
        }
    }
    if let Some(metadata) = schema["properties"].get("metadata") {
        let place = child(at, "metadata");
        if metadata["type"] != "object" {
            errors.push(FieldError::invalid(
                &format!("{place}.type"),
                &text(&metadata["type"]).into(),
                "must be object",
            ));
        }
        let named = |name: &String| matches!(name.as_str(), "name" | "generateName");
        let plain = metadata["properties"].as_object().is_none_or(|fields| fields.keys().all(named));
        if level == Level::Root && (!plain || metadata.get("additionalProperties").is_some()) {
            let what = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(FieldError::forbidden(&place, what));
        }
    }
    let no_fields = schema["properties"].as_object().is_none_or(serde_json::Map::is_empty);
    if is("x-kubernetes-embedded-resource") && !is("x-kubernetes-preserve-unknown-fields") && no_fields {
        let what = "must not be empty if x-kubernetes-embedded-resource is true without \
                    x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&format!("{at}.properties"), what));
    }
}

/// What a schema asks beside its structure.
fn checked(schema: &Value, int_or_string: bool, at: &str, errors: &mut Vec<FieldError>) {
    for joined in JOINED {
        // The one way in which older clients learn of a field that takes numbers and texts.
        let either =
            joined == "anyOf" && schema[joined] == json!([{ "type": "integer" }, { "type": "string" }]);
        if int_or_string && either {
            continue;
        }
        for (index, inner) in list(&schema[joined]).iter().enumerate() {
            let first = inner["anyOf"] == json!([{ "type": "integer" }, { "type": "string" }]);
            nested(
                inner,
                int_or_string && joined == "allOf" && index == 0 && first,
                &format!("{at}.{joined}[{index}]"),
                errors,
            );
        }
    }
    if schema["not"].is_object() {
        nested(&schema["not"], false, &format!("{at}.not"), errors);
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && let Err(error) = Patterns::default().compile(pattern)
    {
        let what = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(&format!("{at}.pattern"), &pattern.into(), what));
    }
}

/// A schema that only checks says nothing of what there is.
fn nested(schema: &Value, int_or_string: bool, at: &str, errors: &mut Vec<FieldError>) {
    checked(schema, int_or_string, at, errors);
    if schema["items"].is_object() {
        nested(&schema["items"], false, &format!("{at}.items"), errors);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        nested(field, false, &child(at, name), errors);
    }
    let mut forbid = |member: &str, what: &str| {
        errors.push(FieldError::forbidden(&format!("{at}.{member}"), what));
    };
    if !text(&schema["type"]).is_empty() {
        forbid("type", "must be empty to be structural");
    }
    if !schema["additionalProperties"].is_null() {
        forbid("additionalProperties", "must be undefined to be structural");
    }
    for member in ["title", "description"] {
        if !text(&schema[member]).is_empty() {
            forbid(member, "must be empty to be structural");
        }
    }
    if !schema["default"].is_null() {
        forbid("default", "must be undefined to be structural");
    }
    if schema["nullable"] == true {
        forbid("nullable", "must be false to be structural");
    }
    for member in STRUCTURE {
        if !schema[member].is_null() && schema[member] != false {
            let what = if schema[member] == true {
                "must be false to be structural"
            } else {
                "must be undefined to be structural"
            };
            forbid(member, what);
        }
    }
}

/// That what it says is known, and makes sense together.
fn said(schema: &Value, at: &str, is_root: bool, errors: &mut Vec<FieldError>) {
    let kind = text(&schema["type"]);
    if kind == "null" {
        let what = "type cannot be set to null, use nullable as an alternative";
        unknown_type(kind, at, errors);
        errors.push(FieldError::forbidden(&format!("{at}.type"), what));
    } else if !kind.is_empty() && !TYPES.contains(&kind) {
        unknown_type(kind, at, errors);
    }
    for member in UNSUPPORTED {
        if !schema[member].is_null() {
            errors.push(FieldError::forbidden(
                &format!("{at}.{member}"),
                &format!("{member} is not supported"),
            ));
        }
    }
    if schema["uniqueItems"] == true {
        let what = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(&format!("{at}.uniqueItems"), what));
    }
    let fields = schema["properties"].as_object();
    let more = &schema["additionalProperties"];
    if fields.is_some_and(|fields| !fields.is_empty()) && !more.is_null() && *more != true {
        let what = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(&format!("{at}.additionalProperties"), what));
    }
    if more.is_object() {
        said(more, &format!("{at}.additionalProperties"), false, errors);
    }
    for (name, field) in fields.into_iter().flatten() {
        if is_root
            && matches!(name.as_str(), "metadata" | "kind" | "apiVersion")
            && !field["default"].is_null()
        {
            let what = format!("must not be set in top-level {name}");
            errors.push(FieldError::forbidden(&format!("{}.default", child(at, name)), &what));
        }
        said(field, &child(at, name), false, errors);
    }
    for joined in JOINED {
        for (index, inner) in list(&schema[joined]).iter().enumerate() {
            said(inner, &format!("{at}.{joined}[{index}]"), false, errors);
        }
    }
    if schema["not"].is_object() {
        said(&schema["not"], &format!("{at}.not"), false, errors);
    }
    if schema["items"].is_object() {
        said(&schema["items"], &format!("{at}.items"), false, errors);
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == false {
        let place = format!("{at}.x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&place, &Value::Bool(false), "must be true or undefined"));
    }
    relations(schema, kind, at, errors);
    rules(schema, at, errors);
}

fn unknown_type(kind: &str, at: &str, errors: &mut Vec<FieldError>) {
    let known: Vec<Value> = TYPES.iter().map(|known| json!(known)).collect();
    errors.push(FieldError::unsupported(&format!("{at}.type"), &kind.into(), &known));
}

/// How elements and members are told apart.
fn relations(schema: &Value, kind: &str, at: &str, errors: &mut Vec<FieldError>) {
    const LIST: &str = "x-kubernetes-list-type";
    const MAP: &str = "x-kubernetes-map-type";
    const KEYS: &str = "x-kubernetes-list-map-keys";
    for (word, wanted, known) in
        [(MAP, "object", &["atomic", "granular"][..]), (LIST, "array", &["atomic", "set", "map"][..])]
    {
        let Some(said) = schema[word].as_str() else { continue };
        let what = format!("must be {wanted} if {word} is specified");
        match kind {
            "" => errors.push(FieldError::required(&format!("{at}.type"), &what)),
            kind if kind == wanted => {}
            kind => errors.push(FieldError::invalid(&format!("{at}.type"), &kind.into(), what)),
        }
        if !known.contains(&said) {
            let known: Vec<Value> = known.iter().map(|word| json!(word)).collect();
            errors.push(FieldError::unsupported(&format!("{at}.{word}"), &said.into(), &known));
        }
    }
    let (relation, items, keys) = (text(&schema[LIST]), &schema["items"], list(&schema[KEYS]));
    if relation == "set" && items["type"] == "object" && items[MAP] != "atomic" {
        let what = "must be atomic as item of a list with x-kubernetes-list-type=set";
        errors.push(FieldError::invalid(&format!("{at}.items.{MAP}"), &items[LIST], what));
    }
    if !keys.is_empty() && relation != "map" {
        let what = format!("must be map if {KEYS} is non-empty");
        errors.push(match relation {
            "" => FieldError::required(&format!("{at}.{LIST}"), &what),
            other => FieldError::invalid(&format!("{at}.{LIST}"), &other.into(), what),
        });
    }
    if matches!(relation, "set" | "map") && items["nullable"] == true {
        let what = format!("cannot be nullable when {LIST} is {relation}");
        errors.push(FieldError::forbidden(&format!("{at}.items.nullable"), &what));
    }
    if relation != "map" {
        return;
    }
    if keys.len() as u64 > KEYS_MAX {
        return errors.push(FieldError::too_many(&format!("{at}.{KEYS}"), keys.len() as u64, KEYS_MAX));
    }
    if keys.is_empty() {
        let what = format!("must not be empty if {LIST} is map");
        errors.push(FieldError::required(&format!("{at}.{KEYS}"), &what));
    }
    if !items.is_object() {
        let what = format!("must have a schema if {LIST} is map");
        errors.push(FieldError::required(&format!("{at}.items"), &what));
        return;
    }
    if items["type"] != "object" {
        let what = format!("must be object if parent array's {LIST} is map");
        errors.push(FieldError::invalid(&format!("{at}.items.type"), &text(&items["type"]).into(), what));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let field = items["properties"].get(text(key));
        let place = child(&format!("{at}.items"), text(key));
        match field {
            None => {
                let what = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&format!("{at}.{KEYS}"), &schema[KEYS], what));
            }
            Some(field) if matches!(text(&field["type"]), "array" | "object") => {
                let what = format!("must be a scalar type if parent array's {LIST} is map");
                errors.push(FieldError::invalid(&format!("{place}.type"), &items["type"], what));
            }
            Some(_) => {}
        }
        if keys[..index].contains(key) {
            let what = "must not contain duplicate entries";
            errors.push(FieldError::invalid(&format!("{at}.{KEYS}"), &schema[KEYS], what));
        }
        let required = list(&items["required"]).contains(key);
        if field.is_some_and(|field| field["default"].is_null()) && !required {
            let what = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&format!("{place}.default"), what));
        }
        if field.is_some_and(|field| field["nullable"] == true) {
            let what = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&format!("{place}.nullable"), what));
        }
    }
}

/// What rules say beside their expression.
fn rules(schema: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    for (index, rule) in list(&schema["x-kubernetes-validations"]).iter().enumerate() {
        let at = format!("{at}.x-kubernetes-validations[{index}]");
        let (expression, message) = (text(&rule["rule"]).trim(), text(&rule["message"]).trim());
        let (named, given) = (format!("{at}.message"), &rule["message"]);
        if expression.is_empty() {
            errors.push(FieldError::required(&format!("{at}.rule"), "rule is not specified"));
        } else if given.as_str().is_some_and(|given| !given.is_empty()) && message.is_empty() {
            errors.push(FieldError::invalid(&named, given, "must be non-empty if specified"));
        } else if has_lines(message) {
            errors.push(FieldError::invalid(&named, given, "must not contain line breaks"));
        } else if has_lines(expression) && message.is_empty() {
            errors
                .push(FieldError::required(&named, "message must be specified if rule contains line breaks"));
        }
        if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
            let known: Vec<Value> = REASONS.iter().map(|known| json!(known)).collect();
            errors.push(FieldError::unsupported(&format!("{at}.reason"), &reason.into(), &known));
        }
    }
}
