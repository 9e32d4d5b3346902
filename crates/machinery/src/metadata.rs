//! The rules of `metadata`, which are the same for every kind.

use std::collections::{BTreeSet, HashSet};

use mailboat_object::Version;
use serde_json::{Map, Value};

use crate::kind::NameRule;
use crate::status::{FieldError, MOST_ERRORS};

const FINALIZER_ORPHAN: &str = "orphan";
const FINALIZER_FOREGROUND: &str = "foregroundDeletion";
/// The annotation by which kcp says where an object stands; it is the server's own.
pub(crate) const CLUSTER_ANNOTATION: &str = "kcp.io/cluster";
const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// A body taken apart: what is stored, and what only the request says.
#[derive(Clone, Debug)]
pub(crate) struct Incoming {
    /// The object without `resourceVersion` and `managedFields`.
    pub body: Value,
    /// The version that it is based on; none if it does not say.
    pub version: Option<Version>,
    /// Its `managedFields`, if it has any.
    pub managed: Option<Value>,
}

impl Incoming {
    /// Decodes metadata as servers do: unknown members are dropped, null and empty ones too, and a member of the
    /// wrong type is an error.
    pub(crate) fn decode(mut body: Value) -> Result<Self, String> {
        let Value::Object(members) = &mut body else {
            return Err("the body must be a JSON object".to_owned());
        };
        let metadata = match members.remove("metadata") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(metadata)) => metadata,
            Some(other) => return Err(format!("json: cannot unmarshal {} into metadata", kind_of(&other))),
        };
        let mut decoded = Map::new();
        let (mut version, mut managed) = (None, None);
        for (name, value) in metadata {
            match name.as_str() {
                _ if value.is_null() => {}
                "managedFields" => managed = Some(value),
                "resourceVersion" => version = base_version(&value)?,
                _ => {
                    let value = decode_member(&name, value)?;
                    decoded.extend(value.map(|value| (name, value)));
                }
            }
        }
        members.values_mut().for_each(make_whole);
        members.insert("metadata".to_owned(), Value::Object(decoded));
        Ok(Self { body, version, managed })
    }

    /// Drops an annotation, and the annotations with the last of them.
    pub(crate) fn drop_annotation(&mut self, name: &str) {
        let Value::Object(metadata) = &mut self.body["metadata"] else { return };
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove(name);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
}

/// Real servers write a whole number without a fraction, however it was sent, and clients with types of their own read it no
/// other way: 444.0 is 444.
fn make_whole(value: &mut Value) {
    /// Beyond this, not every whole number is one of these.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let found = number.as_f64().filter(|found| found.fract() == 0.0 && found.abs() < EXACT);
            #[allow(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
            if let Some(found) = found {
                *value = (found as i64).into();
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(make_whole),
        Value::Object(members) => members.values_mut().for_each(make_whole),
        _ => {}
    }
}

fn base_version(value: &Value) -> Result<Option<Version>, String> {
    let Value::String(text) = value else {
        return Err(format!("resourceVersion: expected string, got {}", kind_of(value)));
    };
    if text.is_empty() || text == "0" {
        return Ok(None);
    }
    Version::parse(text)
        .map(Some)
        .ok_or_else(|| format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))
}

/// A member of metadata, normalized; none if it is not written.
fn decode_member(name: &str, value: Value) -> Result<Option<Value>, String> {
    let wrong = |expected: &str, value: &Value| {
        Err(format!("metadata.{name}: expected {expected}, got {}", kind_of(value)))
    };
    Ok(match (name, value) {
        ("name" | "namespace" | "generateName" | "uid" | "selfLink", Value::String(text)) => {
            Some(Value::String(text)).filter(|text| text != "")
        }
        ("creationTimestamp" | "deletionTimestamp", Value::String(text)) => Some(Value::String(text)),
        ("generation", number @ Value::Number(_)) => Some(number).filter(|number| *number != 0),
        ("deletionGracePeriodSeconds", number @ Value::Number(_)) => Some(number),
        ("labels" | "annotations", Value::Object(members)) => {
            let mut texts = Map::new();
            for (key, value) in members {
                match value {
                    Value::Null => texts.insert(key, Value::String(String::new())),
                    Value::String(text) => texts.insert(key, Value::String(text)),
                    other => return wrong("string", &other),
                };
            }
            Some(Value::Object(texts))
                .filter(|texts| texts.as_object().is_some_and(|texts| !texts.is_empty()))
        }
        ("finalizers", Value::Array(elements)) => {
            if let Some(other) = elements.iter().find(|element| !element.is_string()) {
                return wrong("string", other);
            }
            if elements.is_empty() { None } else { Some(Value::Array(elements)) }
        }
        ("ownerReferences", Value::Array(owners)) => {
            let mut decoded: Vec<Value> = Vec::with_capacity(owners.len());
            let mut known = HashSet::new();
            for owner in owners {
                let Value::Object(owner) = owner else { return wrong("object", &owner) };
                let owner = owner_reference(owner);
                // Servers drop owners that are named twice.
                if known.insert(owner.clone()) {
                    decoded.push(owner);
                }
            }
            if decoded.is_empty() { None } else { Some(Value::Array(decoded)) }
        }
        (
            "name"
            | "namespace"
            | "generateName"
            | "uid"
            | "selfLink"
            | "creationTimestamp"
            | "deletionTimestamp"
            | "generation"
            | "deletionGracePeriodSeconds"
            | "labels"
            | "annotations"
            | "finalizers"
            | "ownerReferences",
            other,
        ) => return wrong("another type", &other),
        _ => None,
    })
}

fn owner_reference(owner: Map<String, Value>) -> Value {
    const TEXTS: [&str; 4] = ["apiVersion", "kind", "name", "uid"];
    let mut decoded = Map::new();
    for name in TEXTS {
        decoded.insert(name.to_owned(), Value::String(String::new()));
    }
    let known = |name: &str| TEXTS.contains(&name) || name == "controller" || name == "blockOwnerDeletion";
    decoded.extend(owner.into_iter().filter(|(name, value)| known(name) && !value.is_null()));
    Value::Object(decoded)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The texts of a list in metadata, such as `finalizers`.
pub(crate) fn texts<'v>(body: &'v Value, member: &str) -> Vec<&'v str> {
    body["metadata"][member].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Everything that is wrong with an object's metadata, whether it is new or changed.
pub(crate) fn validate(metadata: &Value, namespaced: bool, names: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |member: &str| metadata[member].as_str().unwrap_or_default();
    if !text("generateName").is_empty() {
        // A generated name may end in what comes before the generated part.
        let stem = format!("{}x", text("generateName"));
        for what in name_errors(&stem, names) {
            errors.push(FieldError::invalid("metadata.generateName", &metadata["generateName"], what));
        }
    }
    if text("name").is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    }
    for what in if text("name").is_empty() { Vec::new() } else { name_errors(text("name"), names) } {
        errors.push(FieldError::invalid("metadata.name", &metadata["name"], what));
    }
    match (namespaced, text("namespace")) {
        (true, "") => errors.push(FieldError::required("metadata.namespace", "")),
        (true, namespace) => {
            for what in name_errors(namespace, NameRule::Label) {
                errors.push(FieldError::invalid("metadata.namespace", &metadata["namespace"], what));
            }
        }
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden("metadata.namespace", "not allowed on this type")),
    }
    validate_maps(metadata, &mut errors);
    validate_owners(metadata, &mut errors);
    validate_finalizers(metadata, &mut errors);
    errors
}

/// What may not change, and what may not be added once deletion has begun.
pub(crate) fn validate_change(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !old["deletionTimestamp"].is_null() {
        let of = |metadata: &Value| -> BTreeSet<String> {
            let finalizers = metadata["finalizers"].as_array().into_iter().flatten();
            finalizers.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let added: Vec<_> = of(new).difference(&of(old)).map(|name| format!("{name:?}")).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &detail));
        }
    }
    let fixed =
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for member in fixed {
        if new[member] != old[member] {
            errors.push(FieldError::invalid(
                &format!("metadata.{member}"),
                &new[member],
                "field is immutable",
            ));
        }
    }
    errors
}

fn validate_maps(metadata: &Value, errors: &mut Vec<FieldError>) {
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        if errors.len() > MOST_ERRORS {
            return;
        }
        for what in key_errors(key) {
            errors.push(FieldError::invalid("metadata.labels", &Value::from(key.as_str()), what));
        }
        if !is_label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid("metadata.labels", value, LABEL_VALUE));
        }
    }
    let mut bytes = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        if errors.len() > MOST_ERRORS {
            continue;
        }
        for what in key_errors(&key.to_lowercase()) {
            errors.push(FieldError::invalid("metadata.annotations", &Value::from(key.as_str()), what));
        }
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX as u64));
    }
}

fn validate_owners(metadata: &Value, errors: &mut Vec<FieldError>) {
    let path = "metadata.ownerReferences";
    let mut controllers = Vec::new();
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        if errors.len() > MOST_ERRORS {
            return;
        }
        for (member, what) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[member] == "" {
                errors.push(FieldError::invalid(&format!("{path}.{member}"), &owner[member], what));
            }
        }
        if owner["controller"] == true {
            let text = |member: &str| owner[member].as_str().unwrap_or_default();
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owners: Vec<String> = owners.map(shown_owner).collect();
        errors.push(FieldError {
            field: path.to_owned(),
            reason: "FieldValueInvalid",
            body: format!(
                "Invalid value: [{}]: Only one reference can have Controller set to true. Found \"true\" in \
                 references for {first} and {second}",
                owners.join(",")
            ),
        });
    }
}

/// An owner reference with its members in the order in which servers write them.
fn shown_owner(owner: &Value) -> String {
    let members = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let shown = members.iter().filter_map(|name| Some(format!("{name:?}:{}", owner.get(name)?)));
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

/// Finalizers of kinds that the server knows by itself must say whose they are.
pub(crate) fn validate_native_finalizers(metadata: &Value) -> Vec<FieldError> {
    native_names(&metadata["finalizers"], "metadata.finalizers").take(MOST_ERRORS + 1).collect()
}

/// Finalizers that stand elsewhere than in metadata, with all that is asked of their names.
pub(crate) fn validate_finalizer_names(finalizers: &Value, path: &str) -> Vec<FieldError> {
    let names = finalizers.as_array().into_iter().flatten().filter_map(Value::as_str).enumerate();
    let keys = names.flat_map(|(index, name)| {
        let field = format!("{path}[{index}]");
        key_errors(name).into_iter().map(move |what| FieldError::invalid(&field, &Value::from(name), what))
    });
    keys.chain(native_names(finalizers, path)).take(MOST_ERRORS + 1).collect()
}

fn native_names<'v>(finalizers: &'v Value, path: &'v str) -> impl Iterator<Item = FieldError> + 'v {
    const STANDARD: [&str; 3] = [FINALIZER_ORPHAN, FINALIZER_FOREGROUND, "kubernetes"];
    let names = finalizers.as_array().into_iter().flatten().filter_map(Value::as_str).enumerate();
    let bad = names.filter(|(_, name)| !name.contains('/') && !STANDARD.contains(name));
    bad.map(move |(index, name)| {
        let what = "name is neither a standard finalizer name nor is it fully qualified";
        FieldError::invalid(&format!("{path}[{index}]"), &Value::from(name), what)
    })
}

fn validate_finalizers(metadata: &Value, errors: &mut Vec<FieldError>) {
    let path = "metadata.finalizers";
    let finalizers: Vec<_> =
        metadata["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for finalizer in &finalizers {
        if errors.len() > MOST_ERRORS {
            return;
        }
        for what in key_errors(finalizer) {
            errors.push(FieldError::invalid(path, &Value::from(*finalizer), what));
        }
    }
    if finalizers.contains(&FINALIZER_ORPHAN) && finalizers.contains(&FINALIZER_FOREGROUND) {
        let what = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, &metadata["finalizers"], what));
    }
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LETTER_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const WHOLE_KEY: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
    with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. \
    'example.com/MyName')";
const KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
    for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with a name.
pub(crate) fn name_errors(name: &str, rule: NameRule) -> Vec<String> {
    let mut errors = Vec::new();
    let (longest, fits, what) = match rule {
        NameRule::Subdomain => (253, name.split('.').all(is_label), SUBDOMAIN),
        NameRule::Label => (63, is_label(name), LABEL),
        NameRule::LetterLabel => {
            (63, is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase()), LETTER_LABEL)
        }
        NameRule::PathSegment => {
            if name == "." || name == ".." {
                errors.push(format!("may not be '{name}'"));
            }
            for part in ['/', '%'].iter().filter(|part| name.contains(**part)) {
                errors.push(format!("may not contain '{part}'"));
            }
            return errors;
        }
    };
    if name.len() > longest {
        errors.push(format!("must be no more than {longest} bytes"));
    }
    match rule {
        _ if fits => {}
        NameRule::Label if name.contains('.') => errors.push("must not contain dots".to_owned()),
        _ => errors.push(what.to_owned()),
    }
    errors
}

/// Refuses what is not a name with an optional prefix, such as `example.org/Name`.
pub(crate) fn check_qualified(name: &str, field: &str) -> Vec<FieldError> {
    key_errors(name).into_iter().map(|what| FieldError::invalid(field, &name.into(), what)).collect()
}

fn key_errors(key: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => return vec![WHOLE_KEY.to_owned()],
        Some((prefix, name)) => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(
                    name_errors(prefix, NameRule::Subdomain)
                        .into_iter()
                        .map(|what| format!("prefix part {what}")),
                );
            }
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if name.is_empty() || !is_wordlike(name) {
        errors.push(KEY.to_owned());
    }
    errors
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_label_value(text: &str) -> bool {
    text.is_empty() || (text.len() <= 63 && is_wordlike(text))
}

fn is_wordlike(text: &str) -> bool {
    let outer = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    outer(text.bytes().next())
        && outer(text.bytes().last())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}
