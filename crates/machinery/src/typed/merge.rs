//! The live object with an intent laid over it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{Shape, Shapes, as_list, as_map, list_element};
use crate::field_set::PathElement;
use crate::schema::{ListRelation, ListShape, MapShape, NodeId, Schema};

/// Lays `intent` over `live`: what the intent holds wins, the rest stays. Fails where elements of a list cannot
/// be told apart.
pub(crate) fn merge(schema: &Schema, live: &Value, intent: &Value) -> Result<Value, String> {
    let merged = Walk { schema }.value(schema.root(), Some(live), Some(intent))?;
    Ok(merged.unwrap_or_else(|| Value::Object(Map::new())))
}

struct Walk<'a> {
    schema: &'a Schema,
}

impl Walk<'_> {
    fn value(
        &self,
        id: NodeId,
        live: Option<&Value>,
        intent: Option<&Value>,
    ) -> Result<Option<Value>, String> {
        let node = self.schema.node(id);
        // Where both are of different types, the intent's decides.
        let decides = if intent.is_none() { live } else { intent };
        match Shapes::of(node, decides).shape() {
            Shape::Map(map) => {
                let (old, new) = (as_map(live), as_map(intent));
                let empty = old.is_none_or(Map::is_empty) && new.is_none_or(Map::is_empty);
                if map.atomic || empty { Ok(latest(live, intent)) } else { self.map(map, old, new) }
            }
            Shape::List(list) => {
                let (old, new) = (as_list(live), as_list(intent));
                let empty = old.is_none_or(Vec::is_empty) && new.is_none_or(Vec::is_empty);
                if list.relation == ListRelation::Atomic || empty {
                    return Ok(latest(live, intent));
                }
                self.list(list, old.map_or(&[], Vec::as_slice), new.map_or(&[], Vec::as_slice))
            }
            Shape::Scalar(_) | Shape::None => Ok(latest(live, intent)),
        }
    }

    fn map(
        &self,
        map: &MapShape,
        live: Option<&Map<String, Value>>,
        intent: Option<&Map<String, Value>>,
    ) -> Result<Option<Value>, String> {
        let mut merged = Map::new();
        let mut visit = |name: &str, old: Option<&Value>, new: Option<&Value>| {
            let value = match map.member(name) {
                // What only the live object has stays as it is, whatever it is.
                _ if new.is_none() => old.cloned(),
                Some(node) => self.value(node, old, new).map_err(|what| format!(".{name}{what}"))?,
                None => latest(old, new),
            };
            merged.extend(value.map(|value| (name.to_owned(), value)));
            Ok::<_, String>(())
        };
        for (name, old) in live.into_iter().flatten() {
            visit(name, Some(old), intent.and_then(|intent| intent.get(name)))?;
        }
        for (name, new) in intent.into_iter().flatten() {
            if live.is_none_or(|live| !live.contains_key(name)) {
                visit(name, None, Some(new))?;
            }
        }
        Ok(if merged.is_empty() { None } else { Some(Value::Object(merged)) })
    }

    /// Elements that both have come in the intent's order; those that only the live object has keep their place
    /// between them.
    fn list(&self, list: &ListShape, live: &[Value], intent: &[Value]) -> Result<Option<Value>, String> {
        let (old, old_keys) = self.indexed(list, live, true)?;
        let (new, new_keys) = self.indexed(list, intent, false)?;
        let mut shared = new_keys.iter().filter(|key| old.contains_key(*key));
        let mut next_shared = shared.next();
        let mut merged = Vec::with_capacity(live.len().max(intent.len()));
        let mut done = BTreeSet::new();
        let (mut at_old, mut at_new) = (0, 0);
        while at_old < old_keys.len() || at_new < new_keys.len() {
            if let (Some(old_key), Some(new_key)) = (old_keys.get(at_old), new_keys.get(at_new)) {
                if old_key == new_key {
                    done.insert(old_key);
                    merged.extend(self.element(
                        list,
                        old_key,
                        old[old_key],
                        new.get(old_key).copied().flatten(),
                    )?);
                    (at_old, at_new) = (at_old + 1, at_new + 1);
                    next_shared = shared.next();
                    continue;
                }
                if new.contains_key(old_key) && next_shared.is_some_and(|shared| shared != old_key) {
                    at_old += 1;
                    continue;
                }
            }
            if let Some(key) = old_keys.get(at_old) {
                if !new.contains_key(key) {
                    merged.extend(self.element(list, key, Some(&live[at_old]), None)?);
                    at_old += 1;
                    continue;
                }
                if done.contains(key) {
                    at_old += 1;
                }
            }
            if let Some(key) = new_keys.get(at_new) {
                done.insert(key);
                let old = old.get(key).copied().flatten();
                merged.extend(self.element(list, key, old, new.get(key).copied().flatten())?);
                at_new += 1;
                if next_shared == Some(key) {
                    next_shared = shared.next();
                }
            }
        }
        Ok(if merged.is_empty() { None } else { Some(Value::Array(merged)) })
    }

    fn element(
        &self,
        list: &ListShape,
        key: &PathElement,
        live: Option<&Value>,
        intent: Option<&Value>,
    ) -> Result<Option<Value>, String> {
        if intent.is_none() {
            return Ok(live.cloned());
        }
        self.value(list.items, live, intent).map_err(|what| format!("{key}{what}"))
    }

    /// Elements by key, and the keys in order. An element that is there more than once has no value: it is not
    /// merged with anything.
    #[allow(clippy::type_complexity, reason = "the two halves are taken apart at once")]
    fn indexed<'v>(
        &self,
        list: &ListShape,
        elements: &'v [Value],
        duplicates: bool,
    ) -> Result<(BTreeMap<PathElement, Option<&'v Value>>, Vec<PathElement>), String> {
        let mut by_key = BTreeMap::new();
        let mut keys = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            let key = list_element(self.schema, list, element)
                .map_err(|what| format!(": element {index}: {what}"))?;
            let twice = by_key.insert(key.clone(), Some(element)).is_some();
            if twice && !duplicates {
                return Err(format!(": duplicate entries for key {key}"));
            }
            if twice {
                by_key.insert(key.clone(), None);
            }
            keys.push(key);
        }
        Ok((by_key, keys))
    }
}

fn latest(live: Option<&Value>, intent: Option<&Value>) -> Option<Value> {
    intent.or(live).cloned()
}
