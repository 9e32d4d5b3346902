//! From messages to JSON.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use super::table::{MESSAGES, Message, Shape, is_list, items_of, message_of};
use super::wire::{Wire, fields};
use super::{BadProtobuf, MAGIC, time};

/// How deep messages may stand in each other: as deep as objects may be nested.
const DEPTH_LIMIT: usize = 100;

/// Reads a body as the value that it is in JSON. The kind is the one that the body names.
pub fn read(body: &[u8]) -> Result<Value, BadProtobuf> {
    let envelope = body.strip_prefix(MAGIC).ok_or(BadProtobuf::NoMagic)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in fields(envelope) {
        match field? {
            (1, Wire::Bytes(type_meta)) => {
                for field in fields(type_meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = utf8(text)?,
                        (2, Wire::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(content)) => raw = content,
            _ => {}
        }
    }
    let mut members = match message_of(&api_version, &kind) {
        Some(message) => decode(message, raw, 0)?,
        None => list(items_of(&api_version, &kind).ok_or(BadProtobuf::UnknownKind)?, raw)?,
    };
    members.insert("apiVersion".to_owned(), api_version.into());
    members.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(members))
}

/// Reads an event of a watch, if all of it is there: how many bytes it takes, what happened, and to which object.
pub fn event(stream: &[u8]) -> Result<Option<(usize, Value)>, BadProtobuf> {
    let Some((length, rest)) = stream.split_first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| BadProtobuf::Damaged)?;
    let Some(frame) = rest.get(..length) else { return Ok(None) };
    let mut event = json!({});
    for field in fields(frame) {
        match field? {
            (1, Wire::Bytes(what)) => event["type"] = utf8(what)?.into(),
            (2, Wire::Bytes(raw)) => {
                for field in fields(raw) {
                    if let (1, Wire::Bytes(object)) = field? {
                        event["object"] = read(object)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(Some((4 + length, event)))
}

/// A list of such messages.
fn list(message: &Message, bytes: &[u8]) -> Result<Map<String, Value>, BadProtobuf> {
    let (mut metadata, mut items) = (json!({}), Vec::new());
    for entry in fields(bytes) {
        match entry? {
            (1, wire) => metadata = value("~apis.meta.v1.ListMeta", wire, 0)?,
            (2, Wire::Bytes(item)) => items.push(decode(message, item, 1)?.into()),
            _ => {}
        }
    }
    Ok([("metadata".to_owned(), metadata), ("items".to_owned(), Value::Array(items))].into_iter().collect())
}

fn decode(message: &Message, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, BadProtobuf> {
    if depth > DEPTH_LIMIT {
        return Err(BadProtobuf::TooDeep);
    }
    let mut members = Map::new();
    for entry in fields(bytes) {
        let (number, wire) = entry?;
        let Some(field) = message.get(&number) else { continue };
        match field.shape {
            Shape::Map => {
                let (key, value) = map_entry(field.of, wire, depth)?;
                if let Value::Object(map) = members.entry(field.name).or_insert_with(|| json!({})) {
                    map.insert(key, value);
                }
            }
            Shape::List => {
                let value = value(field.of, wire, depth)?;
                if let Value::Array(list) = members.entry(field.name).or_insert_with(|| json!([])) {
                    list.push(value);
                }
            }
            Shape::One => match value(field.of, wire, depth)? {
                Value::Object(inner) if field.inline => members.extend(inner),
                value if value.is_null() || (field.omit_zero && is_zero(&value)) => {}
                value => {
                    members.insert(field.name.to_owned(), value);
                }
            },
        }
    }
    Ok(members)
}

fn map_entry(of: &str, wire: Wire<'_>, depth: usize) -> Result<(String, Value), BadProtobuf> {
    let Wire::Bytes(bytes) = wire else { return Err(BadProtobuf::Damaged) };
    let (mut key, mut found) = (String::new(), None);
    for entry in fields(bytes) {
        match entry? {
            (1, Wire::Bytes(text)) => key = utf8(text)?,
            (2, wire) => found = Some(value(of, wire, depth)?),
            _ => {}
        }
    }
    let empty = || if matches!(of, "string" | "bytes") { json!("") } else { json!({}) };
    Ok((key, found.unwrap_or_else(empty)))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn value(of: &str, wire: Wire<'_>, depth: usize) -> Result<Value, BadProtobuf> {
    match (of, wire) {
        ("bool", Wire::Number(number)) => Ok((number != 0).into()),
        // Negative numbers of 32 bits come as 64 bits as well.
        ("int32" | "int64", Wire::Number(number)) => Ok(number.cast_signed().into()),
        ("uint32" | "uint64", Wire::Number(number)) => Ok(number.into()),
        ("double", Wire::Fixed(bits)) => Ok(f64::from_bits(bits).into()),
        ("string", Wire::Bytes(text)) => Ok(utf8(text)?.into()),
        ("bytes", Wire::Bytes(bytes)) => Ok(BASE64_STANDARD.encode(bytes).into()),
        (_, Wire::Bytes(_)) if depth > DEPTH_LIMIT => Err(BadProtobuf::TooDeep),
        (name, Wire::Bytes(bytes)) => special(name, bytes, depth + 1).unwrap_or_else(|| {
            let message = MESSAGES.get(name).ok_or(BadProtobuf::UnknownKind)?;
            let mut members = decode(message, bytes, depth + 1)?;
            // A list that had to become a message, because lists of lists cannot be said.
            if is_list(name) {
                return Ok(members.remove("items").unwrap_or_else(|| json!([])));
            }
            Ok(members.into())
        }),
        _ => Err(BadProtobuf::Damaged),
    }
}

/// The message of a schema.
const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

/// Messages whose JSON is not a map of their fields.
pub(super) fn special(message: &str, bytes: &[u8], depth: usize) -> Option<Result<Value, BadProtobuf>> {
    let read = |wanted: u64| -> Result<Option<Wire<'_>>, BadProtobuf> {
        let mut found = None;
        for entry in fields(bytes) {
            let (number, wire) = entry?;
            if number == wanted {
                found = Some(wire);
            }
        }
        Ok(found)
    };
    let number = |wanted: u64| -> Result<u64, BadProtobuf> {
        Ok(match read(wanted)? {
            Some(Wire::Number(number)) => number,
            _ => 0,
        })
    };
    let text = |wanted: u64| match read(wanted)? {
        Some(Wire::Bytes(bytes)) => utf8(bytes).map(Value::from),
        _ => Ok(Value::Null),
    };
    let raw = || match read(1)? {
        Some(Wire::Bytes(bytes)) => serde_json::from_slice(bytes).map_err(|_| BadProtobuf::Damaged),
        _ => Ok(Value::Null),
    };
    let time = |fraction: bool| -> Result<Value, BadProtobuf> {
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        let (seconds, nanos) = (number(1)?, number(2)?);
        let text = time::text(seconds.cast_signed());
        if fraction {
            return Ok(format!("{}.{:06}Z", text.trim_end_matches('Z'), nanos / 1_000).into());
        }
        Ok(text.into())
    };
    // A schema, or a list.
    let either = |of: &str| -> Result<Value, BadProtobuf> {
        let mut list = Vec::new();
        for entry in fields(bytes) {
            if let (2, wire) = entry? {
                list.push(value(of, wire, depth)?);
            }
        }
        match read(1)? {
            _ if !list.is_empty() => Ok(list.into()),
            Some(wire) => value(SCHEMA, wire, depth),
            None => Ok(Value::Null),
        }
    };
    Some(match message {
        "~apis.meta.v1.Time" => time(false),
        "~apis.meta.v1.MicroTime" => time(true),
        "~api.resource.Quantity" => text(1),
        "~util.intstr.IntOrString" => match number(1) {
            Ok(0) => number(2).map(|number| number.cast_signed().into()),
            Ok(_) => text(3),
            Err(error) => Err(error),
        },
        "~runtime.RawExtension" | "~apis.meta.v1.FieldsV1" | "apiextensions.v1.JSON" => raw(),
        "apiextensions.v1.JSONSchemaPropsOrBool" => match read(2) {
            Ok(Some(wire)) => value(SCHEMA, wire, depth),
            Ok(None) => number(1).map(|allows| (allows != 0).into()),
            Err(error) => Err(error),
        },
        "apiextensions.v1.JSONSchemaPropsOrArray" => either(SCHEMA),
        "apiextensions.v1.JSONSchemaPropsOrStringArray" => either("string"),
        _ => return None,
    })
}

fn utf8(bytes: &[u8]) -> Result<String, BadProtobuf> {
    String::from_utf8(bytes.to_vec()).map_err(|_| BadProtobuf::Damaged)
}
