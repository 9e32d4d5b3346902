//! ConfigMaps and Secrets.

use serde_json::{Value, json};

use crate::status::FieldError;

/// So many bytes may stand in one ConfigMap or Secret.
const DATA_LIMIT_BYTES: usize = 1024 * 1024;
const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
                   (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

pub(super) fn check_config_map(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = check_keys(new, &["binaryData", "data"]);
    let bytes: usize = ["data", "binaryData"].iter().map(|member| size(&new[member])).sum();
    if bytes > DATA_LIMIT_BYTES {
        errors.push(FieldError::too_long("", DATA_LIMIT_BYTES as u64));
    }
    errors.extend(check_immutable(new, old, &["binaryData", "data"]));
    errors
}

pub(super) fn check_secret(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = check_keys(new, &["data"]);
    if size(&new["data"]) > DATA_LIMIT_BYTES / 3 * 4 {
        errors.push(FieldError::too_long("data", DATA_LIMIT_BYTES as u64));
    }
    if let Some(old) = old
        && old["type"] != new["type"]
    {
        errors.push(FieldError::invalid("type", &new["type"], "field is immutable"));
    }
    errors.extend(check_immutable(new, old, &["data"]));
    errors
}

fn size(map: &Value) -> usize {
    let members = map.as_object().into_iter().flatten();
    members.map(|(_, value)| value.as_str().map_or(0, str::len)).sum()
}

fn check_keys(new: &Value, members: &[&str]) -> Vec<FieldError> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let keys = members.iter().flat_map(|member| {
        let keys = new[member].as_object().into_iter().flatten().map(|(key, _)| key);
        keys.map(move |key| (member, key))
    });
    keys.filter(|(_, key)| key.is_empty() || !key.chars().all(allowed))
        .map(|(member, key)| FieldError::invalid(&format!("{member}[{key}]"), &json!(key), KEY))
        .collect()
}

/// What was made immutable stays so, and stays as it is.
fn check_immutable(new: &Value, old: Option<&Value>, members: &[&str]) -> Vec<FieldError> {
    const SENTENCE: &str = "field is immutable when `immutable` is set";
    let Some(old) = old.filter(|old| old["immutable"] == true) else { return Vec::new() };
    let mut errors = Vec::new();
    if new["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", SENTENCE));
    }
    let changed = members.iter().rev().filter(|member| old[*member] != new[*member]);
    errors.extend(changed.map(|member| FieldError::forbidden(member, SENTENCE)));
    errors
}
