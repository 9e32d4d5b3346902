//! Answers without what no two servers share: uids, times, versions, generated names, addresses.
//!
//! What is equal stays equal: the second appearance of a version or a uid gets the name of the first, so that a write
//! that counted on one server and not on the other shows.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

#[expect(clippy::expect_used, reason = "the patterns are constants, and a test uses them")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z"));
static AGE: LazyLock<Regex> = LazyLock::new(|| pattern("^([0-9]+[smhd])+$"));
/// By which kcp knows the secret of an export, which is drawn.
static HASH: LazyLock<Regex> = LazyLock::new(|| pattern("^[0-9a-f]{64}$"));
/// An address of a Service, which is drawn by lot.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.[0-9]+\.[0-9]+\.[0-9]+\b"));
/// A port on all nodes, which is drawn, too, as a cell of a Service shows it.
static NODE_PORT: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b([0-9]+):3[0-9]{4}/(TCP|UDP|SCTP)\b"));
/// By which a content is known: `"9F…"` as an ETag, `hash=9F…` in an address.
static MARK: LazyLock<Regex> = LazyLock::new(|| pattern("(\"|hash=)[0-9A-F]{16,}\\b"));
static VERSIONS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(resource version: |ResourceVersion in precondition: |ResourceVersion in object meta: |ResourceVersion in record \(|current: )([0-9]+)( \(([0-9]+)\))?",
    )
});

/// What `/version` says of the program.
const BUILD: [&str; 7] =
    ["gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"];

/// What was seen of one server in one case.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// What stands for what, such as an address.
    words: Vec<(String, String)>,
    uids: HashMap<String, usize>,
    versions: HashMap<String, usize>,
    addresses: HashMap<String, usize>,
    /// What comes now is the object of a bookmark.
    bookmark: bool,
}

impl Plain {
    /// Everywhere, the first word of each pair is shown as the second.
    pub fn new(words: Vec<(String, String)>) -> Self {
        Self { words, ..Self::default() }
    }

    /// A text without what no two servers share.
    pub fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (word, shown) in &self.words {
            text = text.replace(word, shown);
        }
        let uids = &mut self.uids;
        text = UID
            .replace_all(&text, |found: &regex::Captures<'_>| {
                let next = uids.len() + 1;
                format!("<uid {}>", uids.entry(found[0].to_owned()).or_insert(next))
            })
            .into_owned();
        text = TIME.replace_all(&text, "<time>").into_owned();
        text = MARK.replace_all(&text, "$1<mark>").into_owned();
        text = HASH.replace_all(&text, "<hash>").into_owned();
        let addresses = &mut self.addresses;
        text = ADDRESS
            .replace_all(&text, |found: &regex::Captures<'_>| {
                let next = addresses.len() + 1;
                format!("<address {}>", addresses.entry(found[0].to_owned()).or_insert(next))
            })
            .into_owned();
        // The testbed's users are in a group without a name.
        text = text.replace("(groups=[\"\" ", "(groups=[");
        VERSIONS.replace_all(&text, "$1<version>").into_owned()
    }

    /// A value without what no two servers share.
    pub fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => self.object(members),
            other => other.clone(),
        }
    }

    fn object(&mut self, members: &Map<String, Value>) -> Value {
        let kind = members.get("kind").and_then(Value::as_str).unwrap_or_default();
        // Which version a list or a bookmark tells depends on what else happens at a server.
        let bookmark = members.get("type").is_some_and(|kind| kind == "BOOKMARK");
        let many = kind.ends_with("List") || kind == "Table" || self.bookmark;
        self.bookmark = bookmark;
        let is_build = members.contains_key("gitVersion");
        let mut shown = Map::new();
        for (name, value) in members {
            let value = match (name.as_str(), value) {
                ("metadata", Value::Object(metadata)) => self.metadata(metadata, many),
                // Cells show ages.
                ("cells", Value::Array(cells)) => cells.iter().map(|cell| self.cell(cell)).collect(),
                ("token", Value::String(token)) if token.len() > 100 => "<token>".into(),
                ("serverAddress", _) => "<address>".into(),
                // So is a port on all nodes.
                ("nodePort", Value::Number(_)) => "<port>".into(),
                ("groups", Value::Array(groups)) => {
                    groups.iter().filter(|group| **group != "").map(|group| self.value(group)).collect()
                }
                // Of what a program was built.
                (name, Value::String(_)) if is_build && BUILD.contains(&name) => "<build>".into(),
                // Which of several causes comes first is chance on real servers.
                ("causes", Value::Array(causes)) => {
                    let mut causes: Vec<Value> = causes.iter().map(|cause| self.value(cause)).collect();
                    causes.sort_by_key(|cause| ["field", "message"].map(|name| cause[name].to_string()));
                    Value::Array(causes)
                }
                (_, value) => self.value(value),
            };
            shown.insert(name.clone(), value);
        }
        Value::Object(shown)
    }

    fn metadata(&mut self, metadata: &Map<String, Value>, many: bool) -> Value {
        let mut shown = Map::new();
        for (name, value) in metadata {
            let value = match (name.as_str(), value) {
                ("resourceVersion", Value::String(_)) if many => "<version>".into(),
                ("resourceVersion", Value::String(version)) if version.len() > 1 => self.version(version),
                ("continue", Value::String(text)) if !text.is_empty() => "<continue>".into(),
                ("name", Value::String(text)) => self.name(text, metadata),
                ("managedFields", Value::Array(entries)) => self.managers(entries),
                // A time that is not set, as servers made of an older Kubernetes write it.
                ("creationTimestamp", Value::Null) => continue,
                (_, value) => self.value(value),
            };
            shown.insert(name.clone(), value);
        }
        Value::Object(shown)
    }

    fn version(&mut self, version: &str) -> Value {
        let next = self.versions.len() + 1;
        format!("<version {}>", self.versions.entry(version.to_owned()).or_insert(next)).into()
    }

    fn name(&mut self, name: &str, metadata: &Map<String, Value>) -> Value {
        let base = metadata.get("generateName").and_then(Value::as_str);
        match base.and_then(|base| name.strip_prefix(base)) {
            Some(more) => format!("<{} letters generated>", more.len()).into(),
            None => self.text(name).into(),
        }
    }

    /// Entries are in the order of their times, which differ by a second now and then.
    fn managers(&mut self, entries: &[Value]) -> Value {
        let mut entries: Vec<Value> = entries.iter().map(|entry| self.value(entry)).collect();
        entries.sort_by_key(|entry| {
            ["operation", "manager", "subresource", "apiVersion"].map(|name| entry[name].to_string())
        });
        Value::Array(entries)
    }

    fn cell(&mut self, cell: &Value) -> Value {
        match cell {
            Value::String(text) if AGE.is_match(text) => "<age>".into(),
            Value::String(text) if NODE_PORT.is_match(text) => {
                NODE_PORT.replace_all(text, "$1:<port>/$2").into_owned().into()
            }
            cell => self.value(cell),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_two_servers_do_not_share_is_named_by_its_order() {
        let mut plain = Plain::new(vec![("https://127.0.0.1:1".to_owned(), "<server>".to_owned())]);
        let object = |uid: &str, version: &str| {
            json!({ "kind": "Boat", "metadata": {
                "name": "a-x7k2p", "generateName": "a-", "uid": uid, "resourceVersion": version,
                "creationTimestamp": "2026-11-16T04:00:00Z",
            }, "url": "https://127.0.0.1:1/x" })
        };
        let first = object("11111111-2222-4333-8444-555555555555", "17");
        let shown = plain.value(&first);
        assert_eq!(
            shown,
            json!({ "kind": "Boat", "metadata": {
                "name": "<5 letters generated>", "generateName": "a-", "uid": "<uid 1>",
                "resourceVersion": "<version 1>", "creationTimestamp": "<time>",
            }, "url": "<server>/x" })
        );
        assert_eq!(plain.value(&first), shown, "the same is the same");
        let other = plain.value(&object("99999999-2222-4333-8444-555555555555", "18"));
        assert_eq!(
            (&other["metadata"]["uid"], &other["metadata"]["resourceVersion"]),
            (&json!("<uid 2>"), &json!("<version 2>"))
        );
    }

    #[test]
    fn versions_in_sentences_and_ages_in_tables_do_not_count() {
        let mut plain = Plain::default();
        assert_eq!(plain.text("too old resource version: 1 (1234)"), "too old resource version: <version>");
        assert_eq!(plain.text("\"9F86D081884C7D65\""), "\"<mark>\"");
        assert_eq!(plain.text("/openapi/v3/api/v1?hash=9F86D081884C7D65"), "/openapi/v3/api/v1?hash=<mark>");
        let table =
            json!({ "kind": "Table", "rows": [{ "cells": ["a", "2m3s", 4, "80:30257/TCP,53/UDP"] }] });
        let shown = json!(["a", "<age>", 4, "80:<port>/TCP,53/UDP"]);
        assert_eq!(plain.value(&table)["rows"][0]["cells"], shown);
    }
}
