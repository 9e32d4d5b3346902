//! How an intent differs from the source that it was made from, for those who ask.

use mailboat_object::json::Raw;
use mailboat_object::travel::{annotation_travels, label_travels, metadata_member_travels};

/// More places than this tell nobody anything.
const MOST: usize = 32;

/// The places at which two objects differ, as paths of member names: at most some dozens, and never a value. What does not
/// travel is not compared. An array is one place.
pub fn difference(source: Raw<'_>, intent: Raw<'_>) -> Vec<String> {
    let mut found = Vec::new();
    compare(source, intent, &mut Vec::new(), &mut found);
    found.truncate(MOST);
    found
}

fn compare(source: Raw<'_>, intent: Raw<'_>, at: &mut Vec<String>, found: &mut Vec<String>) {
    if found.len() > MOST {
        return;
    }
    if !(source.is_map() && intent.is_map()) {
        if source.to_value() != intent.to_value() {
            found.push(at.join("."));
        }
        return;
    }
    let gone = source.members().filter(|(name, _)| intent.member(name).is_none());
    for (name, _) in gone.filter(|(name, _)| counts(at, name)) {
        found.push(path(at, &name));
    }
    for (name, wanted) in intent.members() {
        if !counts(at, &name) {
            continue;
        }
        match source.member(&name) {
            Some(before) => {
                at.push(name.into_owned());
                compare(before, wanted, at, found);
                at.pop();
            }
            None => found.push(path(at, &name)),
        }
    }
}

fn path(at: &[String], name: &str) -> String {
    at.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".")
}

fn counts(at: &[String], name: &str) -> bool {
    let at: Vec<&str> = at.iter().map(String::as_str).collect();
    match *at {
        [] => name != "status",
        ["metadata"] => metadata_member_travels(name),
        ["metadata", "labels"] => label_travels(name),
        ["metadata", "annotations"] => annotation_travels(name),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn between(source: &Value, intent: &Value) -> Vec<String> {
        let (source, intent) = (source.to_string(), intent.to_string());
        difference(Raw::parse(source.as_bytes()).unwrap(), Raw::parse(intent.as_bytes()).unwrap())
    }

    #[test]
    fn places_are_told_and_values_are_not() {
        let source = json!({
            "metadata": { "name": "pos", "uid": "1", "labels": { "a": "x", "kcp.io/cluster": "y" } },
            "spec": { "replicas": 1, "containers": [{ "image": "secret-value" }], "paused": false },
            "status": { "ready": 1 },
        });
        let intent = json!({
            "metadata": { "name": "pos", "labels": { "a": "x", "b": "z" } },
            "spec": { "replicas": 2, "containers": [{ "image": "other" }] },
        });
        let told = between(&source, &intent);
        assert_eq!(told, ["metadata.labels.b", "spec.paused", "spec.containers", "spec.replicas"]);
        assert_eq!(between(&source, &source), [""; 0]);
    }

    #[test]
    fn there_is_an_end_to_it() {
        let many: serde_json::Map<String, Value> = (0..100).map(|n| (format!("k{n}"), json!(n))).collect();
        assert_eq!(between(&json!({ "data": {} }), &json!({ "data": many })).len(), MOST);
    }
}
