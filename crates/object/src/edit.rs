//! A changed copy of an object's JSON, made by copying spans.
//!
//! Whatever an edit does not touch is copied as the bytes that it is. A tree is built only of a member into
//! which a path reaches. The same edit of the same bytes gives the same bytes.

mod named;
mod write;

use std::cell::RefCell;
use std::sync::Arc;

use serde_json::Value;

use self::named::Named;
use crate::digest::Digest;
use crate::json::Raw;
use crate::malformed::Malformed;
use crate::object::decode::content_of;

/// Changes to one object's JSON, made when [`Edit::finish`] is called. Later ones win over earlier ones, and
/// what is set stays even if it would not travel.
#[derive(Clone)]
pub struct Edit<'a> {
    root: Raw<'a>,
    metadata: Option<Raw<'a>>,
    strips: bool,
    members: Changes<'a>,
    metadata_members: Changes<'a>,
    labels: TextChanges,
    annotations: TextChanges,
}

/// The changed JSON.
#[derive(Clone, PartialEq, Eq)]
pub struct Edited {
    /// The object as JSON, ready to be sent.
    pub json: Arc<[u8]>,
    /// The digest of its content, as [`crate::Object::content`] would be.
    pub content: Digest,
}

/// A path into an object that cannot be followed, in one sentence without any of its values.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{path}: {what}")]
pub struct BadPath {
    /// The path up to where it failed, such as `spec.template`.
    pub path: String,
    /// What is wrong there.
    pub what: &'static str,
}

/// Room that is kept from one edit to the next.
const SCRATCH_BYTES: usize = 64 << 10;

thread_local! {
    /// Where JSON is written before its size is known, so that only what is kept is allocated.
    static SCRATCH: RefCell<String> = const { RefCell::new(String::new()) };
}

type Changes<'a> = Named<Change<'a>>;

/// What a member becomes: a tree if there is one, else JSON copied from elsewhere, else nothing.
#[derive(Clone, Default)]
struct Change<'a> {
    tree: Option<Value>,
    json: Option<Raw<'a>>,
}

/// Changes to a map of strings; `None` removes.
#[derive(Clone, Default)]
struct TextChanges {
    cleared: bool,
    texts: Named<Option<String>>,
}

impl<'a> Edit<'a> {
    /// Edits a JSON object.
    pub fn of(root: Raw<'a>) -> Self {
        Self::knowing(root, root.member("metadata"))
    }

    /// Edits a JSON object whose `metadata` was found before.
    pub(crate) fn knowing(root: Raw<'a>, metadata: Option<Raw<'a>>) -> Self {
        Self {
            root,
            metadata,
            strips: false,
            members: Changes::default(),
            metadata_members: Changes::default(),
            labels: TextChanges::default(),
            annotations: TextChanges::default(),
        }
    }

    /// Leaves behind what does not travel ([`crate::travel`]).
    pub fn strip(&mut self) -> &mut Self {
        self.strips = true;
        self
    }

    /// Leaves `status` behind.
    pub fn remove_status(&mut self) -> &mut Self {
        self.change("status", Change::remove())
    }

    /// Gives it another `apiVersion`.
    pub fn set_api_version(&mut self, api_version: &str) -> &mut Self {
        self.change("apiVersion", Change::to(api_version))
    }

    /// Gives it another `kind`.
    pub fn set_kind(&mut self, kind: &str) -> &mut Self {
        self.change("kind", Change::to(kind))
    }

    /// Gives it another name.
    pub fn set_name(&mut self, name: &str) -> &mut Self {
        self.metadata_members.insert("name", Change::to(name));
        self
    }

    /// Gives it another namespace; an empty one takes it out.
    pub fn set_namespace(&mut self, namespace: &str) -> &mut Self {
        let change = if namespace.is_empty() { Change::remove() } else { Change::to(namespace) };
        self.metadata_members.insert("namespace", change);
        self
    }

    /// Sets a label.
    pub fn set_label(&mut self, key: &str, value: &str) -> &mut Self {
        self.labels.texts.insert(key, Some(value.to_owned()));
        self
    }

    /// Removes a label.
    pub fn remove_label(&mut self, key: &str) -> &mut Self {
        self.labels.texts.insert(key, None);
        self
    }

    /// Sets an annotation.
    pub fn set_annotation(&mut self, key: &str, value: &str) -> &mut Self {
        self.annotations.texts.insert(key, Some(value.to_owned()));
        self
    }

    /// Removes an annotation.
    pub fn remove_annotation(&mut self, key: &str) -> &mut Self {
        self.annotations.texts.insert(key, None);
        self
    }

    /// Replaces a top-level member other than `metadata` by JSON that is there already, or adds it.
    pub fn replace(&mut self, member: &str, json: Raw<'a>) -> Result<&mut Self, BadPath> {
        if member == "metadata" {
            return Err(BadPath { path: member.to_owned(), what: "metadata is changed member by member" });
        }
        Ok(self.change(member, Change::copy(json)))
    }

    /// Sets what stands under a path of member keys and, where an array is, indices. Maps that are missing on
    /// the way are made; an index must be there.
    pub fn set(&mut self, path: &[&str], value: Value) -> Result<&mut Self, BadPath> {
        match path {
            [] | ["metadata"] => return Err(BadPath::at(path, "an object is changed member by member")),
            ["metadata", map @ ("labels" | "annotations")] => {
                let Value::Object(texts) = value else {
                    return Err(BadPath::at(path, "it must be a map of strings"));
                };
                let mut changes = TextChanges { cleared: true, texts: Named::default() };
                for (key, value) in texts {
                    let Value::String(text) = value else {
                        return Err(BadPath::at(path, "it must be a map of strings"));
                    };
                    changes.texts.insert(&key, Some(text));
                }
                *self.texts(map) = changes;
            }
            ["metadata", map @ ("labels" | "annotations"), key] => {
                let Value::String(text) = value else { return Err(BadPath::at(path, "it must be a string")) };
                self.texts(map).texts.insert(key, Some(text));
            }
            [member] | ["metadata", member] => {
                self.siblings(path).insert(member, Change::to(value));
            }
            _ => *make(self.tree(path), path, levels_above_tree(path))? = value,
        }
        Ok(self)
    }

    /// Removes what stands under a path. What is not there need not be removed.
    pub fn remove(&mut self, path: &[&str]) -> Result<&mut Self, BadPath> {
        match path {
            [] | ["metadata"] => return Err(BadPath::at(path, "an object is changed member by member")),
            ["metadata", map @ ("labels" | "annotations")] => {
                *self.texts(map) = TextChanges { cleared: true, texts: Named::default() };
            }
            ["metadata", map @ ("labels" | "annotations"), key] => {
                self.texts(map).texts.insert(key, None);
            }
            [member] | ["metadata", member] => {
                self.siblings(path).insert(member, Change::remove());
            }
            [above @ .., last] => {
                let parent = find(self.tree(path), above, levels_above_tree(path));
                match parent {
                    Some(Value::Object(members)) => drop(members.remove(*last)),
                    Some(Value::Array(elements)) => match last.parse::<usize>() {
                        Ok(index) if index < elements.len() => drop(elements.remove(index)),
                        _ => {}
                    },
                    _ => {}
                }
            }
        }
        Ok(self)
    }

    /// Makes the changed JSON. It fails only if what was set nests too deep.
    pub fn finish(&self) -> Result<Edited, Malformed> {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            self.write(scratch);
            let content = content_of(scratch.as_bytes())?;
            let json = Arc::from(scratch.as_bytes());
            scratch.shrink_to(SCRATCH_BYTES);
            Ok(Edited { json, content })
        })
    }

    /// Makes the changed JSON alone, for whoever sends it and compares it with nothing. What was set is not checked.
    pub fn to_json(&self) -> Arc<[u8]> {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.clear();
            self.write(scratch);
            let json = Arc::from(scratch.as_bytes());
            scratch.shrink_to(SCRATCH_BYTES);
            json
        })
    }

    fn change(&mut self, member: &str, change: Change<'a>) -> &mut Self {
        self.members.insert(member, change);
        self
    }

    fn texts(&mut self, map: &str) -> &mut TextChanges {
        if map == "labels" { &mut self.labels } else { &mut self.annotations }
    }

    fn siblings(&mut self, path: &[&str]) -> &mut Changes<'a> {
        if path.first() == Some(&"metadata") { &mut self.metadata_members } else { &mut self.members }
    }

    /// The tree of the member that a longer path reaches into, built if this is the first one to do so.
    fn tree(&mut self, path: &[&str]) -> &mut Value {
        let member = path.get(levels_above_tree(path) - 1).copied().unwrap_or_default();
        let base = if path.first() == Some(&"metadata") { self.metadata } else { Some(self.root) };
        let change = self.siblings(path).get_or_insert_with(member, || Change {
            tree: None,
            json: base.and_then(|base| base.member(member)),
        });
        let json = change.json;
        change.tree.get_or_insert_with(|| json.map(Raw::to_value).unwrap_or_default())
    }
}

impl<'a> Change<'a> {
    fn removes(&self) -> bool {
        self.tree.is_none() && self.json.is_none()
    }

    fn remove() -> Self {
        Self::default()
    }

    fn to(value: impl Into<Value>) -> Self {
        Self { tree: Some(value.into()), json: None }
    }

    fn copy(json: Raw<'a>) -> Self {
        Self { tree: None, json: Some(json) }
    }
}

/// How many of a path's segments lead to the tree: the top-level member, or a member of `metadata`.
fn levels_above_tree(path: &[&str]) -> usize {
    if path.first() == Some(&"metadata") { 2 } else { 1 }
}

/// The place that a path names, with maps made where they are missing.
fn make<'v>(tree: &'v mut Value, path: &[&str], from: usize) -> Result<&'v mut Value, BadPath> {
    let mut value = tree;
    for (level, segment) in path.iter().enumerate().skip(from) {
        if value.is_null() {
            *value = Value::Object(serde_json::Map::new());
        }
        value = match value {
            Value::Object(members) => members.entry(*segment).or_insert(Value::Null),
            Value::Array(elements) => {
                let element = segment.parse::<usize>().ok().and_then(|index| elements.get_mut(index));
                element.ok_or_else(|| BadPath::at(&path[..=level], "the array has no such element"))?
            }
            _ => return Err(BadPath::at(&path[..level], "it is neither a map nor an array")),
        };
    }
    Ok(value)
}

/// The place that a path names, if it is there.
fn find<'v>(tree: &'v mut Value, path: &[&str], from: usize) -> Option<&'v mut Value> {
    path.iter().skip(from).try_fold(tree, |value, segment| match value {
        Value::Object(members) => members.get_mut(*segment),
        Value::Array(elements) => elements.get_mut(segment.parse::<usize>().ok()?),
        _ => None,
    })
}

impl BadPath {
    fn at(path: &[&str], what: &'static str) -> Self {
        Self { path: path.join("."), what }
    }
}

impl std::fmt::Debug for Edit<'_> {
    /// What it changes; never to what, which is a tenant's data.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Edit")
            .field("strips", &self.strips)
            .field("members", &self.members.names())
            .field("metadata", &self.metadata_members.names())
            .field("labels", &self.labels.texts.names())
            .field("annotations", &self.annotations.texts.names())
            .finish()
    }
}

impl std::fmt::Debug for Edited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "edited({} bytes, content {})", self.json.len(), self.content)
    }
}

#[cfg(test)]
mod tests;
