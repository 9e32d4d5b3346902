//! The shape of a request: how something is asked for, without what it is about. Nothing of it is anybody's data.
//!
//! Requests of one shape take the same way through a server. So the shapes that real clients were seen to send say which
//! requests have to be compared with real servers.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;

use crate::path::{Asked, ObjectPath};
use crate::query::Query;
use crate::workspaces::waiting;

/// Options of a query whose values are words of the API, and no names.
const WORDS: [&str; 8] = [
    "allowWatchBookmarks",
    "dryRun",
    "fieldValidation",
    "force",
    "propagationPolicy",
    "resourceVersionMatch",
    "sendInitialEvents",
    "watch",
];
/// Groups of Kubernetes without a dot in their names.
const PLAIN_GROUPS: [&str; 5] = ["", "apps", "autoscaling", "batch", "policy"];

/// The shapes of a request, one line each: how it is asked, and of which kind of object, as far as that is one that every
/// server has.
pub fn of_request(method: &str, path: &str, query: Option<&str>, headers: &HeaderMap) -> Vec<String> {
    let (place, rest) = place(path);
    let query = Query::read(query).unwrap_or_default();
    let options = options(&query);
    let accept = accepted(headers);
    let acting = if headers.contains_key("impersonate-user") { " as another" } else { "" };
    let asked = match Asked::read(rest) {
        None => return Vec::new(),
        Some(Asked::Objects(path)) => path,
        Some(about) => {
            let what = match about {
                Asked::Objects(_) | Asked::Paths => "paths",
                Asked::Health { .. } => "health",
                Asked::Version => "version",
                Asked::CoreVersions => "/api",
                Asked::Groups => "/apis",
                Asked::Group(_) => "/apis/GROUP",
                Asked::Kinds { .. } => "/apis/GROUP/VERSION",
                Asked::OpenApiV2 => "/openapi/v2",
                Asked::OpenApiIndex => "/openapi/v3",
                Asked::OpenApi { .. } => "/openapi/v3/GROUP/VERSION",
            };
            return vec![format!("how: {method} {what} in a {place}, taking {accept}{options}{acting}")];
        }
    };
    let verb = verb(method, &asked, &query);
    // A request without a body says nothing by its content type, which some clients give all the same.
    let content = if method == "GET" { String::new() } else { header(headers, CONTENT_TYPE.as_str()) };
    let sending = if content.is_empty() { String::new() } else { format!(", sending {content}") };
    let part = if asked.subresource.is_empty() { String::new() } else { format!("/{}", asked.subresource) };
    let within = if asked.namespace.is_empty() { "" } else { " of a namespace" };
    let mut lines =
        vec![format!("how: {verb}{part}{within} in a {place}, taking {accept}{sending}{options}{acting}")];
    if is_everywhere(&asked.group) {
        let dot = if asked.group.is_empty() { "" } else { "." };
        lines.push(format!("what: {verb} {}{dot}{}{part}", asked.resource, asked.group));
    }
    lines
}

/// The shape of the options that a deletion brings in its body.
pub fn of_deletion(options: &Value) -> String {
    let mut said: Vec<String> = Vec::new();
    for (name, value) in options.as_object().into_iter().flatten() {
        match name.as_str() {
            "kind" | "apiVersion" => {}
            "propagationPolicy" => {
                said.push(format!("propagationPolicy {}", value.as_str().unwrap_or_default()));
            }
            "preconditions" => {
                let members = value.as_object().into_iter().flatten();
                said.extend(members.map(|(member, _)| format!("preconditions.{member}")));
            }
            name => said.push(name.to_owned()),
        }
    }
    said.sort();
    let said = if said.is_empty() { "nothing".to_owned() } else { said.join(" and ") };
    format!("how: delete, with {said} in the body")
}

/// Whether every server, or every server of workspaces, has the kinds of a group.
fn is_everywhere(group: &str) -> bool {
    PLAIN_GROUPS.contains(&group) || group.ends_with(".k8s.io") || group.ends_with(".kcp.io")
}

/// What kind of place a path leads to, and the rest of it.
pub(crate) fn place(path: &str) -> (&'static str, &str) {
    let after = |rest: &'_ str, words: usize| -> usize {
        rest.match_indices('/').nth(words).map_or(rest.len(), |(at, _)| at)
    };
    if let Some(rest) = path.strip_prefix("/services/apiexport/") {
        let rest = &rest[after(rest, 1)..];
        return match rest.strip_prefix("/clusters/") {
            Some(rest) if rest.starts_with('*') || rest.starts_with("%2A") => {
                ("view of all workspaces", &rest[after(rest, 0)..])
            }
            Some(rest) => ("view of a workspace", &rest[after(rest, 0)..]),
            None => ("view of all workspaces", rest),
        };
    }
    if let Some(rest) = path.strip_prefix(waiting::PREFIX) {
        let rest = &rest[after(rest, 0)..];
        return match rest.strip_prefix("/clusters/") {
            Some(rest) if rest.starts_with('*') || rest.starts_with("%2A") => {
                ("view of all that wait", &rest[after(rest, 0)..])
            }
            Some(rest) => ("workspace that waits", &rest[after(rest, 0)..]),
            None => ("view of all that wait", rest),
        };
    }
    match path.strip_prefix("/clusters/") {
        Some(rest) if rest.starts_with('*') => ("server of all workspaces", &rest[after(rest, 0)..]),
        Some(rest) => ("workspace", &rest[after(rest, 0)..]),
        None => ("server", path),
    }
}

fn verb(method: &str, path: &ObjectPath, query: &Query) -> &'static str {
    let named = !path.name.is_empty();
    match (method, named) {
        ("GET", _) if path.watched || query.is("watch") => "watch",
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        ("DELETE", false) => "deletecollection",
        _ => "something else",
    }
}

fn header(headers: &HeaderMap, name: &str) -> String {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",").replace(' ', "")
}

/// What is taken for an answer. Whoever takes anything is answered in JSON, as if he had said so.
fn accepted(headers: &HeaderMap) -> String {
    let text = header(headers, ACCEPT.as_str());
    match text.as_str() {
        "" | "*/*" | "application/json" | "application/json,*/*" => "JSON".to_owned(),
        _ => text,
    }
}

fn options(query: &Query) -> String {
    let mut said: Vec<String> = query.pairs().map(|(name, value)| option(name, value)).collect();
    said.sort();
    said.dedup();
    if said.is_empty() { String::new() } else { format!(", with {}", said.join(" and ")) }
}

fn option(name: &str, value: &str) -> String {
    match (name, value) {
        ("resourceVersion", "0") => "resourceVersion 0".to_owned(),
        ("fieldSelector", terms) => {
            let field = |term: &str| term.split(['=', '!']).next().unwrap_or_default().to_owned();
            // Clients that are written in Go say them in any order.
            let mut fields: Vec<String> = terms.split(',').map(field).collect();
            fields.sort();
            format!("fieldSelector by {}", fields.join(","))
        }
        (_, "") => format!("an empty {name}"),
        (name, value) if WORDS.contains(&name) => format!("{name} {value}"),
        (name, _) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shapes(method: &str, uri: &str, headers: &[(&'static str, &str)]) -> Vec<String> {
        let (path, query) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
        let headers = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), value.parse::<http::HeaderValue>().unwrap())
        });
        of_request(method, path, query, &headers.collect())
    }

    #[test]
    fn a_shape_says_how_and_never_what_about() {
        let apply = [("accept", "application/json"), ("content-type", "application/apply-patch+yaml")];
        let seen = shapes(
            "PATCH",
            "/clusters/root:secret/api/v1/namespaces/till/configmaps/prices/status?force=true&fieldManager=me",
            &apply,
        );
        assert_eq!(
            seen,
            [
                "how: patch/status of a namespace in a workspace, taking JSON, sending \
                 application/apply-patch+yaml, with fieldManager and force true",
                "what: patch configmaps/status",
            ]
        );
        let watch = shapes(
            "GET",
            "/services/apiexport/root:espw/edge/clusters/%2A/apis/shop.example/v1/prices?watch=true&resourceVersion=77\
             &fieldSelector=metadata.name%3Dsecret",
            &[],
        );
        assert_eq!(
            watch,
            ["how: watch in a view of all workspaces, taking JSON, with fieldSelector by metadata.name and \
              resourceVersion and watch true"]
        );
        let prepared = shapes(
            "GET",
            "/services/initializingworkspaces/espw:secret/clusters/*/apis/core.kcp.io/v1alpha1/logicalclusters",
            &[],
        );
        assert_eq!(
            prepared,
            ["how: list in a view of all that wait, taking JSON", "what: list logicalclusters.core.kcp.io"]
        );
        let entered = shapes(
            "GET",
            "/services/initializingworkspaces/espw:secret/clusters/root/api/v1/namespaces/till/pods",
            &[],
        );
        assert_eq!(
            entered,
            ["how: list of a namespace in a workspace that waits, taking JSON", "what: list pods"]
        );
        for line in seen.iter().chain(&watch).chain(&prepared).chain(&entered) {
            for word in ["secret", "till", "prices", "root", "espw", "77"] {
                assert!(!line.contains(word), "{line}");
            }
        }
    }

    #[test]
    fn what_is_no_object_has_a_shape_too() {
        let accept = [("accept", "application/json, */*")];
        assert_eq!(
            shapes("GET", "/apis/apps/v1?timeout=32s", &accept),
            ["how: GET /apis/GROUP/VERSION in a server, taking JSON, with timeout"]
        );
        assert!(shapes("GET", "/nowhere", &accept).is_empty());
    }

    #[test]
    fn options_of_a_deletion_are_told_without_their_values() {
        let options = json!({ "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": { "uid": "u-1" } });
        assert_eq!(
            of_deletion(&options),
            "how: delete, with preconditions.uid and propagationPolicy Background in the body"
        );
        assert_eq!(of_deletion(&Value::Null), "how: delete, with nothing in the body");
    }
}
