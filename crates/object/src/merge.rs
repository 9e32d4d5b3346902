//! Merge patches (RFC 7386).

use serde_json::{Map, Value};

use crate::json::Raw;
use crate::malformed::Malformed;

/// Applies a merge patch: members of a map are merged one by one, `null` removes a member, and anything else
/// replaces what was there.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(members) = target else { return };
    for (key, change) in changes {
        if change.is_null() {
            members.remove(key);
        } else {
            merge(members.entry(key.as_str()).or_insert(Value::Null), change);
        }
    }
}

/// Applies a merge patch to JSON bytes. An error is about the patch if the target could be read.
pub fn merge_json(target: &[u8], patch: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut value = Raw::parse(target)?.to_value();
    merge(&mut value, &Raw::parse(patch)?.to_value());
    Ok(value.to_string().into_bytes())
}

/// The merge patch that makes `from` into `to`; none if they are equal.
///
/// A merge patch cannot put a `null` into a map, so a member that is `null` in `to` counts as missing there,
/// as it does for API servers. Arrays are replaced as a whole.
pub fn diff(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return if from == to { None } else { Some(without_nulls(to)) };
    };
    let mut patch = Map::new();
    for key in old.keys() {
        if new.get(key).is_none_or(Value::is_null) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    for (key, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        let change = match old.get(key) {
            Some(before) => diff(before, value),
            None => Some(without_nulls(value)),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    if patch.is_empty() { None } else { Some(Value::Object(patch)) }
}

/// The merge patch that brings what was last delivered up to what is wanted, in an object that others write as well;
/// none if there is nothing to do.
///
/// Only what differs between `last` and `wanted` is ours to change: what others put into `live` stays, and so does what
/// they made of a value that we have not changed since. What we delivered and no longer want goes; a map goes with its
/// last member, and stays while others have members in it. Without a last state (`null`) everything wanted is ours to
/// set, and nothing is known to remove. Arrays are values.
pub fn three_way(last: &Value, wanted: &Value, live: &Value) -> Option<Value> {
    let none = Map::new();
    let Some(new) = wanted.as_object() else {
        return if wanted == last || wanted == live { None } else { Some(wanted.clone()) };
    };
    let old = last.as_object().unwrap_or(&none);
    let Some(shown) = live.as_object() else { return Some(without_nulls(wanted)) };
    let mut patch = Map::new();
    for (key, delivered) in old.iter().filter(|(key, _)| new.get(*key).is_none_or(Value::is_null)) {
        if let Some(removal) = shown.get(key).and_then(|found| removal(delivered, found)) {
            patch.insert(key.clone(), removal);
        }
    }
    for (key, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        let before = old.get(key).unwrap_or(&Value::Null);
        let change = match shown.get(key).filter(|found| !found.is_null()) {
            _ if before == value => None,
            Some(found) => three_way(before, value, found),
            None => Some(without_nulls(value)),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    if patch.is_empty() { None } else { Some(Value::Object(patch)) }
}

/// The patch that takes what was delivered out of what is found: all of it, unless others have something in there.
fn removal(delivered: &Value, found: &Value) -> Option<Value> {
    let (Value::Object(ours), Value::Object(all)) = (delivered, found) else {
        return (!found.is_null()).then_some(Value::Null);
    };
    let mut patch = Map::new();
    let mut others = false;
    for (key, member) in all {
        match ours.get(key).map(|delivered| removal(delivered, member)) {
            Some(Some(part)) => {
                others |= !part.is_null();
                patch.insert(key.clone(), part);
            }
            Some(None) | None => others = true,
        }
    }
    match (others, patch.is_empty()) {
        (false, _) => Some(Value::Null),
        (true, true) => None,
        (true, false) => Some(Value::Object(patch)),
    }
}

/// Maps without members that are `null`; arrays are left alone, as a patch leaves them.
fn without_nulls(value: &Value) -> Value {
    let Value::Object(members) = value else { return value.clone() };
    let kept = members.iter().filter(|(_, member)| !member.is_null());
    Value::Object(kept.map(|(key, member)| (key.clone(), without_nulls(member))).collect())
}

#[cfg(test)]
mod tests;
