//! JSON patches (RFC 6902), as strict and as lenient as API servers are.

use mailboat_object::json::DEEPEST;
use serde_json::Value;

use crate::size::{is_deeper, json_bytes};

/// How many operations one patch may have.
pub const OPERATIONS_MAX: usize = 10_000;
/// How many bytes the copies that one patch makes may take together: a few dozen of them, each of the one before, would take
/// more than any machine has. Real servers have the same limit.
const COPIED_BYTES_MAX: usize = 3 << 20;
/// How many elements of lists may move up or down together: each that is put in or taken out moves all that come after it.
const SHIFTED_MAX: usize = 1 << 27;
/// How deep a document may get on the way: as deep as any that is read. Copies of something into itself would otherwise double
/// its depth with each operation, and end the process when somebody walks down.
const DEPTH_MAX: usize = DEEPEST as usize;

/// Why a JSON patch cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPatch {
    /// It is no list of operations.
    #[error("{0}")]
    Malformed(String),
    /// It does not fit the object.
    #[error("{0}")]
    Unfitting(String),
    /// It makes more of the object than a server takes.
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {0}, exceeding the limit {COPIED_BYTES_MAX}"
    )]
    TooMuchCopied(usize),
    /// It takes too long.
    #[error("a JSON patch may shift {SHIFTED_MAX} elements of lists at most")]
    TooMuchShifted,
    /// It nests the object deeper than anything is read.
    #[error("a JSON patch may nest an object {DEPTH_MAX} levels deep at most")]
    TooDeep,
    /// It has too many operations.
    #[error("the allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {0}")]
    TooLong(usize),
}

/// Carries out a JSON patch. On an error the document is left half changed: work on a copy.
pub fn apply(document: &mut Value, patch: &Value) -> Result<(), BadPatch> {
    let Value::Array(operations) = patch else {
        return Err(BadPatch::Malformed("a JSON patch must be a list".to_owned()));
    };
    if operations.len() > OPERATIONS_MAX {
        return Err(BadPatch::TooLong(operations.len()));
    }
    if let Some(other) = operations.iter().find(|operation| !operation.is_object()) {
        return Err(BadPatch::Malformed(format!("{other} is no operation")));
    }
    let mut spent = Spent::default();
    operations.iter().try_for_each(|operation| carry_out(document, operation, &mut spent))
}

/// What the operations of one patch have cost so far.
#[derive(Default)]
struct Spent {
    copied_bytes: usize,
    shifted: usize,
}

impl Spent {
    /// Adds what a value takes to what was copied.
    fn copy(&mut self, value: &Value) -> Result<(), BadPatch> {
        self.copied_bytes += json_bytes(value, COPIED_BYTES_MAX);
        if self.copied_bytes > COPIED_BYTES_MAX {
            Err(BadPatch::TooMuchCopied(self.copied_bytes))
        } else {
            Ok(())
        }
    }

    /// Adds the elements that come after one which is put in or taken out.
    fn shift(&mut self, elements: usize) -> Result<(), BadPatch> {
        self.shifted += elements;
        if self.shifted > SHIFTED_MAX { Err(BadPatch::TooMuchShifted) } else { Ok(()) }
    }
}

/// Whether any operation reads or writes at, above or below this pointer.
pub(crate) fn touches(patch: &Value, pointer: &str) -> bool {
    let under = |one: &str, other: &str| {
        one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    patch.as_array().into_iter().flatten().any(|operation| {
        let paths = [operation["path"].as_str(), operation["from"].as_str()];
        paths.into_iter().flatten().any(|path| under(path, pointer) || under(pointer, path))
    })
}

fn carry_out(document: &mut Value, operation: &Value, spent: &mut Spent) -> Result<(), BadPatch> {
    let text = |member: &str| {
        operation[member]
            .as_str()
            .ok_or_else(|| BadPatch::Unfitting(format!("an operation without a valid {member:?} field")))
    };
    let path = text("path")?;
    let value = || {
        let value = operation.get("value").unwrap_or(&Value::Null);
        check_depth(value, path).map(|()| value.clone())
    };
    match text("op")? {
        "add" => add(document, path, value()?, spent),
        "remove" => remove(document, path, spent).map(drop),
        "replace" => {
            if path.is_empty() {
                *document = value()?;
                return Ok(());
            }
            replace(document, path, value()?)
        }
        "move" => {
            let from = text("from")?;
            let moved = remove(document, from, spent)?;
            if levels(path) > levels(from) {
                // What is looked through counts as if it were copied: many moves of something large take as long.
                spent.copy(&moved)?;
                check_depth(&moved, path)?;
            }
            add(document, path, moved, spent)
        }
        "copy" => {
            let from = text("from")?;
            let missing =
                || BadPatch::Unfitting(format!("copy operation does not apply: doc is missing key: {from}"));
            let copied = find_mut(document, from).ok_or_else(missing)?;
            spent.copy(copied)?;
            check_depth(copied, path)?;
            let copied = copied.clone();
            add(document, path, copied, spent)
        }
        "test" => {
            let found = find_mut(document, path).map_or(&Value::Null, |value| &*value);
            if crate::typed::same(found, operation.get("value").unwrap_or(&Value::Null)) {
                return Ok(());
            }
            Err(BadPatch::Unfitting(format!("testing value {path} failed: test failed")))
        }
        other => Err(BadPatch::Unfitting(format!("unexpected kind: {other}"))),
    }
}

/// How many levels a path leads down.
fn levels(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

/// Refuses a value that would be too deep at a path.
fn check_depth(value: &Value, path: &str) -> Result<(), BadPatch> {
    let left = DEPTH_MAX.checked_sub(levels(path)).ok_or(BadPatch::TooDeep)?;
    if is_deeper(value, left) { Err(BadPatch::TooDeep) } else { Ok(()) }
}

fn add(document: &mut Value, path: &str, value: Value, spent: &mut Spent) -> Result<(), BadPatch> {
    let missing =
        || BadPatch::Unfitting(format!("add operation does not apply: doc is missing path: {path}"));
    let Some((parent, key)) = path.rsplit_once('/') else {
        *document = value;
        return Ok(());
    };
    match find_mut(document, parent).ok_or_else(missing)? {
        Value::Object(members) => {
            members.insert(unescape(key), value);
        }
        Value::Array(elements) => {
            let at = if key == "-" { Some(elements.len()) } else { index(key, elements.len() + 1) };
            let at =
                at.ok_or_else(|| BadPatch::Unfitting(format!("unable to access invalid index: {key}")))?;
            spent.shift(elements.len() - at)?;
            elements.insert(at, value);
        }
        _ => return Err(missing()),
    }
    Ok(())
}

/// A member of a map need not be there to be replaced: so lenient are API servers, whatever the standard says.
fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), BadPatch> {
    let missing =
        || BadPatch::Unfitting(format!("replace operation does not apply: doc is missing path: {path}"));
    let (parent, key) = path.rsplit_once('/').ok_or_else(missing)?;
    match find_mut(document, parent).ok_or_else(missing)? {
        Value::Object(members) => {
            members.insert(unescape(key), value);
        }
        Value::Array(elements) => {
            let at = index(key, elements.len()).ok_or_else(missing)?;
            elements[at] = value;
        }
        _ => return Err(missing()),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str, spent: &mut Spent) -> Result<Value, BadPatch> {
    let missing =
        || BadPatch::Unfitting(format!("remove operation does not apply: doc is missing path: {path}"));
    let (parent, key) = path.rsplit_once('/').ok_or_else(missing)?;
    match find_mut(document, parent).ok_or_else(missing)? {
        Value::Object(members) => members.remove(&unescape(key)).ok_or_else(missing),
        Value::Array(elements) => {
            let at = index(key, elements.len()).ok_or_else(missing)?;
            spent.shift(elements.len() - at)?;
            Ok(elements.remove(at))
        }
        _ => Err(missing()),
    }
}

fn find_mut<'d>(document: &'d mut Value, path: &str) -> Option<&'d mut Value> {
    if path.is_empty() {
        return Some(document);
    }
    path.strip_prefix('/')?.split('/').try_fold(document, |value, key| match value {
        Value::Object(members) => members.get_mut(&unescape(key)),
        Value::Array(elements) => {
            let at = index(key, elements.len())?;
            elements.get_mut(at)
        }
        _ => None,
    })
}

/// A place in a list; a negative one counts from its end.
fn index(key: &str, length: usize) -> Option<usize> {
    let number: i64 = key.parse().ok()?;
    let at = if number < 0 { i64::try_from(length).ok()?.checked_add(number)? } else { number };
    usize::try_from(at).ok().filter(|at| *at < length)
}

fn unescape(key: &str) -> String {
    if key.contains('~') { key.replace("~1", "/").replace("~0", "~") } else { key.to_owned() }
}

#[cfg(test)]
mod tests;
