//! A document of OpenAPI v2 in messages of gnostic, the only form in which client-go reads it. Their numbers are those of
//! `openapiv2/OpenAPIv2.proto`.

use serde_json::{Map, Value, json};

use crate::protobuf::BadProtobuf;
use crate::protobuf::wire::{Wire, fields, put_bytes, put_double, put_number, within};

/// Writes a document.
pub(crate) fn write(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    texts(1, &document["swagger"], &mut out);
    nest(2, &mut out, |out| {
        texts(1, &document["info"]["title"], out);
        texts(2, &document["info"]["version"], out);
    });
    nest(8, &mut out, |out| {
        for (path, item) in members(&document["paths"]) {
            named(2, path, out, |out| path_item(item, out));
        }
    });
    nest(9, &mut out, |out| {
        for (name, definition) in members(&document["definitions"]) {
            named(1, name, out, |out| schema(definition, out));
        }
    });
    out
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

fn nest(number: u64, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    // It cannot fail: nothing is looked up.
    let _ = within(number, out, |out| {
        content(out);
        Ok(())
    });
}

/// Something with a name, which stands beside it.
fn named(number: u64, name: &str, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    nest(number, out, |out| {
        put_bytes(1, name.as_bytes(), out);
        nest(2, out, content);
    });
}

/// A text, or several.
fn texts(number: u64, value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => put_bytes(number, text.as_bytes(), out),
        Value::Array(all) => all.iter().for_each(|one| texts(number, one, out)),
        _ => {}
    }
}

/// Anything, as YAML, which JSON is.
fn any(number: u64, value: &Value, out: &mut Vec<u8>) {
    nest(number, out, |out| put_bytes(2, value.to_string().as_bytes(), out));
}

/// What only Kubernetes knows.
fn extensions(number: u64, value: &Value, out: &mut Vec<u8>) {
    for (name, value) in members(value).filter(|(name, _)| name.starts_with("x-")) {
        nest(number, out, |out| {
            put_bytes(1, name.as_bytes(), out);
            any(2, value, out);
        });
    }
}

fn path_item(item: &Value, out: &mut Vec<u8>) {
    const METHODS: [(u64, &str); 5] = [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (8, "patch")];
    for (number, method) in METHODS {
        if let Some(said) = item.get(method) {
            nest(number, out, |out| operation(said, out));
        }
    }
}

fn operation(operation: &Value, out: &mut Vec<u8>) {
    texts(6, &operation["produces"], out);
    texts(7, &operation["consumes"], out);
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        nest(8, out, |out| nest(1, out, |out| self::parameter(parameter, out)));
    }
    nest(9, out, |out| {
        for (code, response) in members(&operation["responses"]) {
            named(1, code, out, |out| {
                nest(1, out, |out| {
                    texts(1, &response["description"], out);
                    nest(2, out, |out| nest(1, out, |out| schema(&response["schema"], out)));
                });
            });
        }
    });
    extensions(13, operation, out);
}

fn parameter(parameter: &Value, out: &mut Vec<u8>) {
    if parameter["in"] == "body" {
        return nest(1, out, |out| {
            texts(2, &parameter["name"], out);
            texts(3, &parameter["in"], out);
            put_number(4, u64::from(parameter["required"] == true), out);
            nest(5, out, |out| schema(&parameter["schema"], out));
        });
    }
    nest(2, out, |out| {
        nest(3, out, |out| {
            texts(2, &parameter["in"], out);
            texts(4, &parameter["name"], out);
            texts(6, &parameter["type"], out);
            put_number(20, u64::from(parameter["uniqueItems"] == true), out);
        });
    });
}

fn schema(schema: &Value, out: &mut Vec<u8>) {
    let Value::Object(said) = schema else { return };
    for (number, name) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")] {
        if let Some(text) = said.get(name) {
            texts(number, text, out);
        }
    }
    bounds(said, out);
    if let Some(required) = said.get("required") {
        texts(19, required, out);
    }
    for value in said.get("enum").and_then(Value::as_array).into_iter().flatten() {
        any(20, value, out);
    }
    match said.get("additionalProperties") {
        Some(Value::Bool(any)) => nest(21, out, |out| put_number(2, u64::from(*any), out)),
        Some(inner @ Value::Object(_)) => nest(21, out, |out| nest(1, out, |out| self::schema(inner, out))),
        _ => {}
    }
    if let Some(kind) = said.get("type") {
        nest(22, out, |out| texts(1, kind, out));
    }
    if let Some(items) = said.get("items") {
        nest(23, out, |out| nest(1, out, |out| self::schema(items, out)));
    }
    if let Some(properties) = said.get("properties") {
        nest(25, out, |out| {
            for (name, property) in members(properties) {
                named(1, name, out, |out| self::schema(property, out));
            }
        });
    }
    extensions(31, schema, out);
}

/// How much, how long and how many.
fn bounds(said: &Map<String, Value>, out: &mut Vec<u8>) {
    for (number, name) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        if let Some(bound) = said.get(name).and_then(Value::as_f64) {
            put_double(number, bound, out);
        }
    }
    for (number, name) in [(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems")] {
        if said.get(name).is_some_and(|is| *is == true) {
            put_number(number, 1, out);
        }
    }
    for (number, name) in [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ] {
        if let Some(bound) = said.get(name).and_then(Value::as_i64) {
            put_number(number, bound.cast_unsigned(), out);
        }
    }
}

/// Reads what a document describes: its schemas by their names, as far as they say what a value is.
pub fn read(document: &[u8]) -> Result<Value, BadProtobuf> {
    let mut definitions = Map::new();
    for content in nested(document, 9)? {
        read_named(content, 1, &mut definitions)?;
    }
    Ok(json!({ "definitions": definitions }))
}

/// All messages that stand in a field.
fn nested(message: &[u8], wanted: u64) -> Result<Vec<&[u8]>, BadProtobuf> {
    let mut found = Vec::new();
    for field in fields(message) {
        match field? {
            (number, Wire::Bytes(content)) if number == wanted => found.push(content),
            _ => {}
        }
    }
    Ok(found)
}

fn text(content: &[u8]) -> Result<&str, BadProtobuf> {
    std::str::from_utf8(content).map_err(|_| BadProtobuf::Damaged)
}

/// Schemas with names.
fn read_named(message: &[u8], number: u64, into: &mut Map<String, Value>) -> Result<(), BadProtobuf> {
    for named in nested(message, number)? {
        for name in nested(named, 1)? {
            let schema = nested(named, 2)?.first().map_or(Ok(json!({})), |schema| read_schema(schema));
            into.insert(text(name)?.to_owned(), schema?);
        }
    }
    Ok(())
}

fn read_schema(message: &[u8]) -> Result<Value, BadProtobuf> {
    let mut schema = json!({});
    for field in fields(message) {
        let (number, Wire::Bytes(content)) = field? else { continue };
        match number {
            1 => schema["$ref"] = text(content)?.into(),
            2 => schema["format"] = text(content)?.into(),
            19 => {
                let name = text(content)?.into();
                match &mut schema["required"] {
                    Value::Array(required) => required.push(name),
                    none => *none = json!([name]),
                }
            }
            21 => {
                let inner = nested(content, 1)?;
                let inner = inner.first().map_or(Ok(true.into()), |inner| read_schema(inner));
                schema["additionalProperties"] = inner?;
            }
            22 => {
                for kind in nested(content, 1)? {
                    schema["type"] = text(kind)?.into();
                }
            }
            23 => {
                for items in nested(content, 1)? {
                    schema["items"] = read_schema(items)?;
                }
            }
            25 => {
                let mut properties = Map::new();
                read_named(content, 1, &mut properties)?;
                schema["properties"] = properties.into();
            }
            31 => {
                for name in nested(content, 1)? {
                    for any in nested(content, 2)? {
                        for said in nested(any, 2)? {
                            let said =
                                serde_saphyr::from_str(text(said)?).map_err(|_| BadProtobuf::Damaged)?;
                            schema[text(name)?] = said;
                        }
                    }
                }
            }
            _ => {}
        }
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_read_as_they_are_written() {
        let definitions = json!({ "io.example.Boat": {
            "type": "object", "required": ["name", "crew"],
            "properties": {
                "name": { "type": "string", "format": "byte" },
                "crew": { "type": "array", "items": { "$ref": "#/definitions/io.example.Sailor" } },
                "cargo": { "type": "object", "additionalProperties": { "type": "integer" } },
                "any": { "type": "object", "additionalProperties": true },
            },
            "x-kubernetes-group-version-kind": [{ "group": "example.io", "kind": "Boat", "version": "v1" }],
        } });
        let document = json!({ "swagger": "2.0", "definitions": definitions, "paths": {} });
        assert_eq!(read(&write(&document)).unwrap(), json!({ "definitions": definitions }));
    }

    #[test]
    fn all_that_is_served_is_described() {
        let kinds = crate::catalog::kinds(mailboat_machinery::Flavor::Kubernetes).unwrap();
        let document = crate::openapi::v2::whole(&kinds);
        let definitions = document["definitions"].as_object().unwrap();
        let text = document["definitions"].to_string();
        for named in text.split("\"$ref\":\"#/definitions/").skip(1) {
            let name = named.split('"').next().unwrap();
            assert!(definitions.contains_key(name), "{name} is not described");
        }
        for kind in &kinds {
            let described = definitions.values().any(|schema| {
                let known = schema["x-kubernetes-group-version-kind"].as_array();
                known
                    .into_iter()
                    .flatten()
                    .any(|known| known["kind"] == kind.name.as_str() && known["group"] == kind.id.group())
            });
            assert!(described, "{} is not described", kind.id);
        }
        let read = read(&write(&document)).unwrap();
        assert_eq!(read["definitions"].as_object().unwrap().len(), definitions.len());
        assert_eq!(
            document["paths"]["/api/v1/namespaces/{namespace}/configmaps"]["post"]["parameters"][0]["in"],
            "body"
        );
    }
}
