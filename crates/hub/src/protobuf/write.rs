//! From JSON to messages. What a message cannot say does not exist for its kind: servers that keep objects in types of their
//! own drop it as well.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use super::table::{Field, MESSAGES, Message, Shape, is_list, items_of, message_of};
use super::wire::{put_bytes, put_double, put_number, within};
use super::{BadProtobuf, MAGIC, time};

/// Whether objects of a kind can be said so.
pub(crate) fn is_known(api_version: &str, kind: &str) -> bool {
    message_of(api_version, kind).is_some()
}

/// Writes an object, or a list of objects, which says what it is.
pub fn write(object: &Value) -> Result<Vec<u8>, BadProtobuf> {
    let said = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (said("apiVersion"), said("kind"));
    let members = object.as_object().ok_or(BadProtobuf::Damaged)?;
    if let Some(message) = message_of(api_version, kind) {
        return envelope(api_version, kind, |raw| encode(message, members, raw));
    }
    let items = members.get("items").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let metadata = members.get("metadata").unwrap_or(&Value::Null);
    list(api_version, kind, metadata, items.iter().cloned().map(Ok))
}

/// Writes a list, item by item.
pub(crate) fn list(
    api_version: &str,
    kind: &str,
    metadata: &Value,
    items: impl Iterator<Item = Result<Value, BadProtobuf>>,
) -> Result<Vec<u8>, BadProtobuf> {
    let message = items_of(api_version, kind).ok_or(BadProtobuf::UnknownKind)?;
    envelope(api_version, kind, |raw| {
        if !metadata.is_null() {
            put(1, "~apis.meta.v1.ListMeta", metadata, raw)?;
        }
        for item in items {
            let item = item?;
            let members = item.as_object().ok_or(BadProtobuf::Damaged)?;
            within(2, raw, |raw| encode(message, members, raw))?;
        }
        Ok(())
    })
}

/// One event of a watch: how long it is, and what happened to which object. The object is written as it is alone.
pub(crate) fn event(what: &str, object: &[u8], out: &mut Vec<u8>) {
    let from = out.len();
    put_bytes(1, what.as_bytes(), out);
    // It cannot fail: nothing is looked up.
    let _ = within(2, out, |out| {
        put_bytes(1, object, out);
        Ok(())
    });
    let length = u32::try_from(out.len() - from).unwrap_or(u32::MAX);
    out.splice(from..from, length.to_be_bytes());
}

fn envelope(
    api_version: &str,
    kind: &str,
    raw: impl FnOnce(&mut Vec<u8>) -> Result<(), BadProtobuf>,
) -> Result<Vec<u8>, BadProtobuf> {
    let mut out = MAGIC.to_vec();
    within(1, &mut out, |out| {
        put_bytes(1, api_version.as_bytes(), out);
        put_bytes(2, kind.as_bytes(), out);
        Ok(())
    })?;
    within(2, &mut out, raw)?;
    Ok(out)
}

fn encode(message: &Message, members: &Map<String, Value>, out: &mut Vec<u8>) -> Result<(), BadProtobuf> {
    for (number, field) in message {
        if field.inline {
            let inner = MESSAGES.get(field.of).ok_or(BadProtobuf::UnknownKind)?;
            within(*number, out, |out| encode(inner, members, out))?;
            continue;
        }
        match members.get(field.name) {
            None | Some(Value::Null) => {}
            Some(value) => encode_field(*number, field, value, out)?,
        }
    }
    Ok(())
}

fn encode_field(number: u64, field: &Field, value: &Value, out: &mut Vec<u8>) -> Result<(), BadProtobuf> {
    match (field.shape, value) {
        (Shape::One, value) => put(number, field.of, value, out),
        (Shape::List, Value::Array(values)) => {
            values.iter().try_for_each(|value| put(number, field.of, value, out))
        }
        (Shape::Map, Value::Object(members)) => members.iter().try_for_each(|(key, value)| {
            within(number, out, |out| {
                put_bytes(1, key.as_bytes(), out);
                put(2, field.of, value, out)
            })
        }),
        _ => Err(BadProtobuf::Damaged),
    }
}

/// Writes a field with one value.
fn put(number: u64, of: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), BadProtobuf> {
    match (of, value) {
        ("bool", Value::Bool(value)) => put_number(number, u64::from(*value), out),
        ("int32" | "int64", value) => put_number(number, integer(value)?.cast_unsigned(), out),
        ("uint32" | "uint64", value) => put_number(number, value.as_u64().ok_or(BadProtobuf::Damaged)?, out),
        ("double", value) => put_double(number, value.as_f64().ok_or(BadProtobuf::Damaged)?, out),
        ("string" | "bytes", Value::Null) => put_bytes(number, b"", out),
        ("string", Value::String(text)) => put_bytes(number, text.as_bytes(), out),
        ("bytes", Value::String(text)) => {
            put_bytes(number, &BASE64_STANDARD.decode(text).map_err(|_| BadProtobuf::Damaged)?, out);
        }
        ("bool" | "string" | "bytes", _) => return Err(BadProtobuf::Damaged),
        (of, value) => return within(number, out, |out| put_message(of, value, out)),
    }
    Ok(())
}

/// Writes what is in a message, some of which are no maps of their fields in JSON.
fn put_message(of: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), BadProtobuf> {
    match (of, value) {
        ("~runtime.RawExtension" | "~apis.meta.v1.FieldsV1" | "apiextensions.v1.JSON", value) => {
            put_bytes(1, &serde_json::to_vec(value).map_err(|_| BadProtobuf::Damaged)?, out);
            Ok(())
        }
        (_, Value::Null) => Ok(()),
        ("~apis.meta.v1.Time" | "~apis.meta.v1.MicroTime", Value::String(text)) => {
            let (seconds, nanos) = time::parse(text).ok_or(BadProtobuf::Damaged)?;
            put_number(1, seconds.cast_unsigned(), out);
            put_number(2, if of.ends_with("MicroTime") { nanos.into() } else { 0 }, out);
            Ok(())
        }
        ("~api.resource.Quantity", Value::String(text)) => {
            put_bytes(1, text.as_bytes(), out);
            Ok(())
        }
        ("~api.resource.Quantity", Value::Number(number)) => {
            put_bytes(1, number.to_string().as_bytes(), out);
            Ok(())
        }
        ("~util.intstr.IntOrString", Value::String(text)) => {
            put_number(1, 1, out);
            put_bytes(3, text.as_bytes(), out);
            Ok(())
        }
        ("~util.intstr.IntOrString", number) => {
            put_number(1, 0, out);
            put_number(2, integer(number)?.cast_unsigned(), out);
            Ok(())
        }
        ("apiextensions.v1.JSONSchemaPropsOrBool", Value::Bool(allows)) => {
            put_number(1, u64::from(*allows), out);
            Ok(())
        }
        ("apiextensions.v1.JSONSchemaPropsOrBool", schema) => {
            put_number(1, 1, out);
            put(2, SCHEMA, schema, out)
        }
        ("apiextensions.v1.JSONSchemaPropsOrArray", Value::Array(schemas)) => {
            schemas.iter().try_for_each(|schema| put(2, SCHEMA, schema, out))
        }
        ("apiextensions.v1.JSONSchemaPropsOrStringArray", Value::Array(names)) => {
            names.iter().try_for_each(|name| put(2, "string", name, out))
        }
        (
            "apiextensions.v1.JSONSchemaPropsOrArray" | "apiextensions.v1.JSONSchemaPropsOrStringArray",
            schema,
        ) => put(1, SCHEMA, schema, out),
        (of, value) => {
            let message = MESSAGES.get(of).ok_or(BadProtobuf::UnknownKind)?;
            match value {
                Value::Object(members) => encode(message, members, out),
                list @ Value::Array(_) if is_list(of) => {
                    message.iter().try_for_each(|(number, field)| encode_field(*number, field, list, out))
                }
                _ => Err(BadProtobuf::Damaged),
            }
        }
    }
}

/// The message of a schema.
const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

/// A whole number, which JSON may write as a fraction of nothing.
fn integer(value: &Value) -> Result<i64, BadProtobuf> {
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and far from the ends")]
    let whole = |number: &f64| (number.fract() == 0.0 && number.abs() < 1e15).then_some(*number as i64);
    value.as_i64().or_else(|| whole(&value.as_f64()?)).ok_or(BadProtobuf::Damaged)
}
