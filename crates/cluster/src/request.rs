//! Requests as plain values: what a call or a read is in HTTP, without sending anything.

use std::fmt::Write as _;

use bytes::Bytes;
use http::Method;
use mailboat_object::key::{KindId, Name, Version};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Propagation, Verb};

use crate::catalog::Served;

/// A read of many objects of one kind: one page of a list, or a watch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Read {
    /// The kind.
    pub kind: KindId,
    /// Only this namespace; empty: all of them.
    pub namespace: Name,
    /// Only what matches this label selector, in its query form; empty: everything.
    pub labels: String,
    /// Only what matches this field selector, in its query form; empty: everything.
    pub fields: String,
    /// Page or watch.
    pub mode: ReadMode,
}

/// How many objects are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadMode {
    /// One page of a consistent list, fresh from the server's store: no version is ever asked for, because a
    /// list at version 0 may come from a cache that is far behind.
    Page {
        /// At most so many objects.
        limit: u32,
        /// Where the page before ended.
        continue_token: Option<String>,
    },
    /// Every change since a version, with bookmarks.
    Watch {
        /// The version that is known already.
        from: Version,
        /// When the server is to end the watch by itself.
        timeout_seconds: u32,
    },
}

impl Read {
    /// A read of everything of a kind.
    pub fn all(kind: KindId, mode: ReadMode) -> Self {
        Self { kind, namespace: Name::EMPTY, labels: String::new(), fields: String::new(), mode }
    }

    /// Whether this is a watch.
    pub fn is_watch(&self) -> bool {
        matches!(self.mode, ReadMode::Watch { .. })
    }
}

/// A request without a server: what follows the cluster's path prefix, and the body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plain {
    pub(crate) method: Method,
    /// Path and query below the cluster's prefix, percent-encoded, beginning with a slash.
    pub(crate) target: String,
    pub(crate) content_type: Option<&'static str>,
    pub(crate) accept: &'static str,
    pub(crate) body: Bytes,
}

pub(crate) const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

impl Plain {
    pub(crate) fn get(target: impl Into<String>, accept: &'static str) -> Self {
        Self { method: Method::GET, target: target.into(), content_type: None, accept, body: Bytes::new() }
    }

    /// Whether repeating it does nothing that doing it once does not.
    pub(crate) fn is_read(&self) -> bool {
        self.method == Method::GET
    }
}

/// The request that carries out a call on a kind served like this.
pub(crate) fn of_call(call: &Call, served: &Served) -> Result<Plain, Fault> {
    check(call, served)?;
    let mut target = collection(served, &call.key.namespace);
    let of_collection = matches!(call.verb, Verb::Create { .. } | Verb::GetAt(_)) && call.part == Part::Whole;
    if !of_collection {
        target.push('/');
        escape(&mut target, &call.key.name);
        target.push_str(match call.part {
            Part::Whole => "",
            Part::Status => "/status",
            Part::Scale => "/scale",
            Part::Token => "/token",
        });
    }
    let mut query = Query::new(&mut target);
    let (method, content_type, body) = match &call.verb {
        Verb::Get => (Method::GET, None, Bytes::new()),
        Verb::GetAt(version) => {
            query.add("fieldSelector", &format!("metadata.name={}", call.key.name));
            query.add("resourceVersion", &version.to_string());
            query.add("resourceVersionMatch", "Exact");
            (Method::GET, None, Bytes::new())
        }
        Verb::Create { body, manager } => {
            query.add("fieldManager", manager);
            (Method::POST, Some(JSON), bytes_of(body))
        }
        Verb::Replace { body, manager } => {
            query.add("fieldManager", manager);
            (Method::PUT, Some(JSON), bytes_of(body))
        }
        Verb::Apply { body, manager, force } => {
            query.add("fieldManager", manager);
            query.add("force", if *force { "true" } else { "false" });
            // A server takes an apply's body for YAML, and reads it a second time only to warn of members that it has twice.
            // That a field is not in the schema is an error all the same.
            query.add("fieldValidation", "Ignore");
            (Method::PATCH, Some(APPLY), bytes_of(body))
        }
        Verb::Merge { body, manager } => {
            query.add("fieldManager", manager);
            (Method::PATCH, Some(MERGE), bytes_of(body))
        }
        Verb::Json { body, manager } => {
            query.add("fieldManager", manager);
            (Method::PATCH, Some(JSON_PATCH), bytes_of(body))
        }
        Verb::Delete { uid, version, propagation } => {
            let mut preconditions = serde_json::json!({ "uid": uid.to_string() });
            if let Some(version) = version {
                preconditions["resourceVersion"] = version.to_string().into();
            }
            let mut options = serde_json::json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": preconditions,
                "propagationPolicy": match propagation {
                    Propagation::Background => "Background",
                    Propagation::Foreground => "Foreground",
                    Propagation::Orphan => "Orphan",
                },
            });
            if call.dry_run {
                options["dryRun"] = serde_json::json!(["All"]);
            }
            (Method::DELETE, Some(JSON), Bytes::from(options.to_string()))
        }
    };
    // A delete that has a body takes all its options from there.
    if call.dry_run && !matches!(call.verb, Verb::Get | Verb::GetAt(_) | Verb::Delete { .. }) {
        query.add("dryRun", "All");
    }
    Ok(Plain { method, target, content_type, accept: JSON, body })
}

/// The request for one page or one watch.
pub(crate) fn of_read(read: &Read, served: &Served) -> Result<Plain, Fault> {
    if !served.namespaced && !read.namespace.is_empty() {
        return Err(bug(format!("{} has no namespaces", served.kind)));
    }
    let mut target = collection(served, &read.namespace);
    let mut query = Query::new(&mut target);
    match &read.mode {
        ReadMode::Page { limit, continue_token } => {
            query.add("limit", &limit.to_string());
            query.add("continue", continue_token.as_deref().unwrap_or_default());
        }
        ReadMode::Watch { from, timeout_seconds } => {
            query.add("watch", "true");
            query.add("allowWatchBookmarks", "true");
            query.add("resourceVersion", &from.to_string());
            query.add("timeoutSeconds", &timeout_seconds.to_string());
        }
    }
    query.add("labelSelector", &read.labels);
    query.add("fieldSelector", &read.fields);
    Ok(Plain::get(target, JSON))
}

/// What must never be sent, because a server would take it for something else.
fn check(call: &Call, served: &Served) -> Result<(), Fault> {
    let key = &call.key;
    if key.kind != served.kind {
        return Err(bug(format!("{key} was looked up as {}", served.kind)));
    }
    if key.name.is_empty() {
        return Err(bug(format!("a call on {} names no object", key.kind)));
    }
    if served.namespaced == key.namespace.is_empty() {
        let scope = if served.namespaced { "lives in a namespace" } else { "has no namespace" };
        return Err(bug(format!("{key}: its kind {scope}")));
    }
    let by_itself = matches!(call.verb, Verb::Create { .. } | Verb::Delete { .. } | Verb::GetAt(_));
    let of_token = matches!(call.verb, Verb::Create { .. }) && call.part == Part::Token;
    if by_itself && call.part != Part::Whole && !of_token {
        return Err(bug(format!("{key}: a subresource is not created, deleted or remembered by itself")));
    }
    if call.part == Part::Token && !(of_token && key.kind == KindId::new("", "serviceaccounts")) {
        return Err(bug(format!("{key}: a token is created, and for a ServiceAccount only")));
    }
    if matches!(&call.verb, Verb::Apply { manager, .. } if manager.is_empty()) {
        return Err(bug(format!("{key}: an apply needs a field manager")));
    }
    let missing = match call.part {
        Part::Status if !served.status => "status",
        Part::Scale if !served.scale => "scale",
        _ => return Ok(()),
    };
    Err(Fault::new(FaultKind::Invalid, format!("{} has no {missing} subresource here", key.kind)))
}

fn bug(text: String) -> Fault {
    Fault::new(FaultKind::Bug, text)
}

/// Shares the caller's bytes instead of copying them.
fn bytes_of(body: &std::sync::Arc<[u8]>) -> Bytes {
    Bytes::from_owner(body.clone())
}

fn collection(served: &Served, namespace: &str) -> String {
    let mut path = String::with_capacity(96);
    match served.group() {
        "" => path.push_str("/api/"),
        group => {
            path.push_str("/apis/");
            escape(&mut path, group);
            path.push('/');
        }
    }
    escape(&mut path, &served.version);
    if !namespace.is_empty() {
        path.push_str("/namespaces/");
        escape(&mut path, namespace);
    }
    path.push('/');
    escape(&mut path, served.resource());
    path
}

struct Query<'a> {
    target: &'a mut String,
    separator: char,
}

impl<'a> Query<'a> {
    fn new(target: &'a mut String) -> Self {
        Self { target, separator: '?' }
    }

    /// Adds a parameter; one without a value is left out.
    fn add(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        self.target.push(self.separator);
        self.separator = '&';
        self.target.push_str(name);
        self.target.push('=');
        escape(self.target, value);
    }
}

/// Percent-encodes everything but RFC 3986's unreserved characters and the colon, which names of RBAC objects
/// (`system:node`) and of workspaces (`root:org`) are full of and which is safe in both path and query.
fn escape(into: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                into.push(byte.into());
            }
            // Writing to a String cannot fail.
            _ => _ = write!(into, "%{byte:02X}"),
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
