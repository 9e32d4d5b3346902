//! Answers, made comparable: names, uids, times and versions differ between any two servers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

/// What a server answered to a step, and what it stores afterwards.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub code: u16,
    pub reason: String,
    /// Reason and field of each cause.
    pub causes: BTreeSet<(String, String)>,
    /// The body of a success, normalized.
    pub body: Value,
    /// The stored object afterwards, normalized; null if there is none.
    pub stored: Value,
    /// Whether the stored object's version is another one than before.
    pub bumped: bool,
    /// The server's sentence, to be shown, not compared.
    pub message: String,
}

impl Answer {
    /// What the second does not answer as the first, if anything.
    pub(crate) fn difference(real: &Self, ours: &Self) -> Option<String> {
        let mut text = String::new();
        let mut note = |what: &str, real: &dyn std::fmt::Debug, ours: &dyn std::fmt::Debug| {
            let (real, ours) = (format!("{real:?}"), format!("{ours:?}"));
            if real != ours {
                let _ = writeln!(text, "  {what}:\n    real {real}\n    ours {ours}");
            }
        };
        note("code", &real.code, &ours.code);
        note("reason", &real.reason, &ours.reason);
        note("causes", &real.causes, &ours.causes);
        note("bumped", &real.bumped, &ours.bumped);
        for (what, real, ours) in [("body", &real.body, &ours.body), ("stored", &real.stored, &ours.stored)] {
            for (path, real, ours) in differing(real, ours) {
                note(&format!("{what}{path}"), &real, &ours);
            }
        }
        if text.is_empty() {
            return None;
        }
        let _ = writeln!(text, "  real says: {}\n  ours says: {}", real.message, ours.message);
        Some(text)
    }
}

/// The paths at which two values differ, and what is there.
fn differing(one: &Value, other: &Value) -> Vec<(String, String, String)> {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<_> = a.keys().chain(b.keys()).collect();
            let missing = Value::String("(missing)".to_owned());
            names
                .into_iter()
                .flat_map(|name| {
                    let below = differing(a.get(name).unwrap_or(&missing), b.get(name).unwrap_or(&missing));
                    below.into_iter().map(move |(path, one, other)| (format!(".{name}{path}"), one, other))
                })
                .collect()
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .flat_map(|(index, (one, other))| {
                differing(one, other).into_iter().map(move |(path, a, b)| (format!("[{index}]{path}"), a, b))
            })
            .collect(),
        (one, other) if one == other => Vec::new(),
        (one, other) => vec![(String::new(), one.to_string(), other.to_string())],
    }
}

/// An object without what differs between any two servers.
pub(crate) fn normalized(mut object: Value, name: &str) -> Value {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    metadata.remove("resourceVersion");
    for member in ["uid", "creationTimestamp", "deletionTimestamp"] {
        if metadata.contains_key(member) {
            metadata.insert(member.to_owned(), "(set)".into());
        }
    }
    if metadata.get("name").is_some_and(|found| *found == name) {
        metadata.insert("name".to_owned(), "(name)".into());
    }
    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
        for entry in entries.iter_mut() {
            if entry.get("time").is_some() {
                entry["time"] = "(set)".into();
            }
        }
        // Their order is that of times, which two servers do not share to the second.
        entries.sort_by_key(|entry| {
            ["operation", "manager", "subresource", "apiVersion"].map(|member| entry[member].to_string())
        });
    }
    object
}

/// The reason and the causes of a Status.
pub(crate) fn refusal(status: &Value) -> (String, BTreeSet<(String, String)>, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let causes = causes.map(|cause| (text(&cause["reason"]), text(&cause["field"]))).collect();
    (text(&status["reason"]), causes, text(&status["message"]))
}
