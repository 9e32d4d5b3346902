//! Bodies in protobuf, which kubectl sends for kinds that it has types for. They are read; nothing is answered in it.
//!
//! `data/kubernetes.protobuf` lists the messages of Kubernetes 1.36: for each field its number, its name in JSON and its type.
//! `inline` fields stand among the members of their parent in JSON, and zeros of `omitzero` fields are left out.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mailboat_machinery::time::rfc3339;
use serde_json::{Map, Value, json};

/// The media type.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const MAGIC: &[u8] = b"k8s\0";
/// How deep messages may stand in each other.
const DEPTH_LIMIT: usize = 64;

/// Why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadProtobuf {
    /// It does not begin as such bodies do.
    #[error("provided data does not appear to be a protobuf message, expected prefix 6b 38 73 00")]
    NoMagic,
    /// It ends too early, or a field is of another type than it should be.
    #[error("the protobuf message is damaged")]
    Damaged,
    /// The kind is not known in this form.
    #[error("the kind is not known in protobuf")]
    UnknownKind,
    /// It is nested too deeply.
    #[error("the protobuf message is nested too deeply")]
    TooDeep,
}

/// Reads a body as the value that it is in JSON. The kind is the one that the body names.
pub(crate) fn read(body: &[u8]) -> Result<Value, BadProtobuf> {
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
    let message = message_of(&api_version, &kind).ok_or(BadProtobuf::UnknownKind)?;
    let mut members = decode(message, raw, 0)?;
    members.insert("apiVersion".to_owned(), api_version.into());
    members.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(members))
}

#[derive(Clone, Copy)]
struct Field {
    name: &'static str,
    shape: Shape,
    of: &'static str,
    inline: bool,
    omit_zero: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    List,
    Map,
}

type Message = HashMap<u64, Field>;

static MESSAGES: LazyLock<HashMap<&'static str, Message>> = LazyLock::new(|| {
    let mut messages: HashMap<&'static str, Message> = HashMap::new();
    let mut current = "";
    for line in include_str!("../data/kubernetes.protobuf").lines() {
        let Some(field) = line.strip_prefix(' ') else {
            current = line;
            messages.entry(current).or_default();
            continue;
        };
        let mut words = field.split(' ');
        let (Some(number), Some(name), Some(of)) =
            (words.next().and_then(|number| number.parse().ok()), words.next(), words.next())
        else {
            continue;
        };
        let option = words.next();
        let (shape, of) = match (of.strip_prefix("list:"), of.strip_prefix("map:")) {
            (Some(of), _) => (Shape::List, of),
            (_, Some(of)) => (Shape::Map, of),
            _ => (Shape::One, of),
        };
        let (inline, omit_zero) = (option == Some("inline"), option == Some("omitzero"));
        messages.entry(current).or_default().insert(number, Field { name, shape, of, inline, omit_zero });
    }
    messages
});

/// The message of a kind: groups are named by their first word.
fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
    let package = match group {
        // The one group whose directory is not the first word of its name.
        "flowcontrol.apiserver.k8s.io" => "flowcontrol",
        group => group.split('.').next()?,
    };
    let options = format!("~apis.meta.v1.{kind}");
    MESSAGES
        .get(format!("{package}.{version}.{kind}").as_str())
        .or_else(|| MESSAGES.get(options.as_str()).filter(|_| kind == "DeleteOptions"))
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
        (message, Wire::Bytes(bytes)) => special(message, bytes).unwrap_or_else(|| {
            let message = MESSAGES.get(message).ok_or(BadProtobuf::UnknownKind)?;
            let mut members = decode(message, bytes, depth + 1)?;
            match members.remove("items") {
                // A list that had to become a message, because lists of lists cannot be said.
                Some(items) if members.is_empty() && message.len() == 1 => Ok(items),
                Some(items) => {
                    members.insert("items".to_owned(), items);
                    Ok(members.into())
                }
                None => Ok(members.into()),
            }
        }),
        _ => Err(BadProtobuf::Damaged),
    }
}

/// Messages whose JSON is not a map of their fields.
fn special(message: &str, bytes: &[u8]) -> Option<Result<Value, BadProtobuf>> {
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
        let text = rfc3339(seconds);
        if fraction {
            return Ok(format!("{}.{:06}Z", text.trim_end_matches('Z'), nanos / 1_000).into());
        }
        Ok(text.into())
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
        "~runtime.RawExtension" | "~apis.meta.v1.FieldsV1" => raw(),
        _ => return None,
    })
}

/// A field's content, by how it is written.
#[derive(Clone, Copy)]
enum Wire<'b> {
    Number(u64),
    Fixed(u64),
    Bytes(&'b [u8]),
}

/// The fields of a message, in order.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = Result<(u64, Wire<'_>), BadProtobuf>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let field = next_field(&mut rest).ok_or(BadProtobuf::Damaged);
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn next_field<'b>(rest: &mut &'b [u8]) -> Option<(u64, Wire<'b>)> {
    let tag = varint(rest)?;
    let wire = match tag & 7 {
        0 => Wire::Number(varint(rest)?),
        1 => Wire::Fixed(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?)),
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Wire::Bytes(take(rest, length)?)
        }
        5 => Wire::Fixed(u64::from(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))),
        _ => return None,
    };
    Some((tag >> 3, wire))
}

fn take<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn utf8(bytes: &[u8]) -> Result<String, BadProtobuf> {
    String::from_utf8(bytes.to_vec()).map_err(|_| BadProtobuf::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        out.extend_from_slice(content);
        out
    }

    fn body(kind: &str, api_version: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &type_meta), field(2, raw)].concat()
    }

    #[test]
    fn a_config_map_reads_as_in_json() {
        let metadata = [field(1, b"tide"), field(3, b""), field(8, b"")].concat();
        let entry = [field(1, b"k"), field(2, b"v")].concat();
        let raw = [field(1, &metadata), field(2, &entry)].concat();
        let value = read(&body("ConfigMap", "v1", &raw)).unwrap();
        let expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "tide" }, "data": { "k": "v" },
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn numbers_texts_and_inlined_members_are_told_apart() {
        // spec { selector {} template { spec { containers [{ name: "c", env [{ valueFrom { secretKeyRef { name, key }}}] }] } } }
        let key_reference = [field(1, &field(1, b"secret")), field(2, b"key")].concat();
        let env = [field(1, b"E"), field(3, &field(4, &key_reference))].concat();
        let container = [field(1, b"c"), field(7, &env)].concat();
        let pod = field(2, &container);
        let raw = [field(1, &field(1, b"p")), field(2, &pod)].concat();
        let value = read(&body("Pod", "v1", &raw)).unwrap();
        let reference = &value["spec"]["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"];
        assert_eq!(*reference, json!({ "name": "secret", "key": "key" }), "{value}");
    }

    #[test]
    fn damaged_bodies_are_refused() {
        assert_eq!(read(b"{}"), Err(BadProtobuf::NoMagic));
        assert_eq!(read(&body("Boat", "sea.example/v1", &[])), Err(BadProtobuf::UnknownKind));
        let whole = body("ConfigMap", "v1", &field(1, &field(1, b"tide")));
        // Cut between its two fields it is whole, and empty.
        let between = whole.len() - 2 - field(1, &field(1, b"tide")).len();
        for cut in (5..whole.len()).filter(|cut| *cut != between) {
            assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
        }
        assert_eq!(read(&body("ConfigMap", "v1", &[0x0f])), Err(BadProtobuf::Damaged));
    }

    #[test]
    fn every_kind_that_the_list_names_is_complete() {
        for (name, message) in MESSAGES.iter() {
            for field in message.values().filter(|field| field.of.contains('.')) {
                let known = MESSAGES.contains_key(field.of) || special(field.of, &[]).is_some();
                assert!(known, "{name}.{} is a {}", field.name, field.of);
            }
        }
    }
}
