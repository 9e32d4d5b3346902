//! Conditions as controllers write them.

use serde_json::{Value, json};

/// What a condition says.
pub(super) struct Said<'s> {
    pub kind: &'s str,
    pub status: bool,
    pub reason: &'s str,
    pub message: &'s str,
}

/// Sets a condition; its transition time changes with its status alone.
pub(super) fn set(conditions: &mut Vec<Value>, said: &Said<'_>, now: &str) {
    let status = if said.status { "True" } else { "False" };
    let mut condition = json!({ "type": said.kind, "status": status, "lastTransitionTime": now });
    if !said.reason.is_empty() {
        condition["reason"] = said.reason.into();
    }
    if !said.message.is_empty() {
        condition["message"] = said.message.into();
    }
    match conditions.iter_mut().find(|present| present["type"] == said.kind) {
        Some(present) => {
            if present["status"] == status {
                condition["lastTransitionTime"] = present["lastTransitionTime"].clone();
            }
            for kept in ["lastUpdateTime", "lastProbeTime"] {
                if let Some(value) = present.get(kept) {
                    condition[kept] = value.clone();
                }
            }
            *present = condition;
        }
        None => conditions.push(condition),
    }
}

/// The conditions of an object's status.
pub(super) fn of(object: &Value) -> Vec<Value> {
    object["status"]["conditions"].as_array().cloned().unwrap_or_default()
}

/// Whether a condition holds.
pub(super) fn holds(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|condition| condition["status"] == "True")
}

/// A condition of an object's status.
pub(super) fn find<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}
