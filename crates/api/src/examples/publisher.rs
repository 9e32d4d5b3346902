//! PublishedResources, with the api-syncagent's own cases of what a related resource may say.

use serde_json::{Value, json};

use super::InvalidExample;

pub(super) fn valid() -> Vec<Value> {
    let full = json!({
        "resource": { "apiGroup": "example.com", "kind": "Database", "versions": ["v1"] },
        "filter": { "namespace": { "matchLabels": { "sync": "yes" } }, "resource": { "matchLabels": { "a": "b" } } },
        "naming": { "name": "{{ .Object.metadata.name }}", "namespace": "{{ .ClusterName }}" },
        "enableWorkspacePaths": true,
        "projection": { "group": "db.example.org", "kind": "Store", "plural": "stores", "scope": "Namespaced",
                        "versions": { "v1": "v2" }, "shortNames": [], "categories": ["all"] },
        "mutation": {
            "spec": [{ "delete": { "path": "spec.internal" } },
                     { "regex": { "path": "spec.size", "pattern": "^(.)", "replacement": "x-$1" } },
                     { "template": { "path": "spec.owner", "template": "{{ .Value.String }}" } }],
            "status": [{ "cel": { "path": "status.phase", "expression": "value" } }],
        },
        "synchronization": { "enabled": true },
        "related": [{
            "identifier": "credentials", "origin": "service", "kind": "Secret", "cleanup": true,
            "object": {
                "selector": { "matchLabels": { "db": "{{ .LocalObject.metadata.name }}" },
                              "rewrite": { "template": { "template": "{{ .Value }}" } } },
                "namespace": { "reference": { "path": "metadata.namespace",
                                              "regex": { "pattern": "a", "replacement": "b" } } },
            },
            "watch": { "bySelector": { "matchLabels": { "a": "b" } } },
        }],
    });
    vec![
        published("databases", full),
        related("kind-alone", json!({ "kind": "Secret" })),
        related("resource", json!({ "version": "v1", "resource": "secrets" })),
        related("group", json!({ "group": "example.com", "version": "v1", "resource": "users" })),
        related(
            "identity",
            json!({ "group": "example.com", "version": "v1", "resource": "users", "identityHash": "abc" }),
        ),
        related("status", json!({ "kind": "Secret", "syncStatus": true, "watch": { "byOwner": {} } })),
        related("status-of-kcp", json!({ "kind": "Secret", "syncStatus": true, "origin": "kcp" })),
    ]
}

pub(super) fn invalid() -> Vec<InvalidExample> {
    let bad = |entry: Value, field: &'static str| InvalidExample { object: related("bad", entry), field };
    vec![
        InvalidExample { object: published("bad", json!({})), field: "spec.resource" },
        InvalidExample {
            object: published("bad", json!({ "resource": { "kind": "A" } })),
            field: "spec.resource.apiGroup",
        },
        InvalidExample {
            object: published(
                "bad",
                json!({ "resource": { "apiGroup": "", "kind": "A" },
                                             "projection": { "scope": "Galaxy" } }),
            ),
            field: "spec.projection.scope",
        },
        InvalidExample {
            object: published(
                "bad",
                json!({ "resource": { "apiGroup": "", "kind": "A" }, "synchronization": {} }),
            ),
            field: "spec.synchronization.enabled",
        },
        bad(json!({ "kind": "Pod" }), "spec.related[0].kind"),
        bad(json!({}), "spec.related[0].kind"),
        bad(json!({ "kind": "Secret", "group": "g" }), "spec.related[0].group"),
        bad(json!({ "kind": "Secret", "resource": "r" }), "spec.related[0].kind"),
        bad(json!({ "kind": "Secret", "version": "v1" }), "spec.related[0].kind"),
        bad(json!({ "kind": "Secret", "identityHash": "abc" }), "spec.related[0].identityHash"),
        bad(json!({ "resource": "r" }), "spec.related[0].resource"),
        bad(json!({ "group": "g", "version": "v1" }), "spec.related[0].group"),
        bad(json!({ "group": "g", "resource": "r" }), "spec.related[0].group"),
        bad(
            json!({ "version": "v1", "resource": "r", "identityHash": "abc" }),
            "spec.related[0].identityHash",
        ),
        bad(json!({ "group": "g", "version": "v1", "identityHash": "abc" }), "spec.related[0].identityHash"),
        bad(json!({ "group": "g", "resource": "r", "identityHash": "abc" }), "spec.related[0].identityHash"),
        bad(json!({ "kind": "Secret", "syncStatus": true }), "spec.related[0].syncStatus"),
        bad(
            json!({ "kind": "Secret", "watch": { "byOwner": {}, "bySelector": {} } }),
            "spec.related[0].watch",
        ),
        bad(json!({ "kind": "Secret", "origin": "moon" }), "spec.related[0].origin"),
    ]
}

fn published(name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "syncagent.kcp.io/v1alpha1", "kind": "PublishedResource", "metadata": { "name": name },
    });
    object["spec"] = spec;
    object
}

/// A PublishedResource with one related resource, which says no more than it must besides `entry`.
fn related(name: &str, entry: Value) -> Value {
    let mut item = json!({ "identifier": "credentials", "origin": "service", "object": {} });
    if let (Some(item), Value::Object(entry)) = (item.as_object_mut(), entry) {
        item.extend(entry);
    }
    published(name, json!({ "resource": { "apiGroup": "", "kind": "A" }, "related": [item] }))
}
