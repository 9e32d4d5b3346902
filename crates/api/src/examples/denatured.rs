//! A minimal valid object of each denatured kind.

use serde_json::{Value, json};

use crate::generate::{BuiltinKind, DENATURED};
use crate::names;

pub(super) fn valid() -> Vec<Value> {
    DENATURED.iter().map(example).collect()
}

fn example(kind: &BuiltinKind) -> Value {
    let mut object = json!({
        "apiVersion": format!("{}/{}", names::denatured_group(kind.group), kind.version),
        "kind": kind.kind,
        // A name that the real kinds of this group allow, and custom resources otherwise do not.
        "metadata": { "name": if kind.group.starts_with("rbac.") { "example:admin" } else { "example" } },
    });
    if matches!(kind.kind, "LimitRange" | "ResourceQuota" | "ServiceAccount" | "Role" | "RoleBinding") {
        object["metadata"]["namespace"] = json!("default");
    }
    if let (Some(object), Value::Object(content)) = (object.as_object_mut(), content(kind.kind)) {
        object.extend(content);
    }
    object
}

fn content(kind: &str) -> Value {
    match kind {
        "ClusterRole" | "Role" => {
            json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }] })
        }
        "ClusterRoleBinding" | "RoleBinding" => json!({
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "example:admin" },
            "subjects": [{ "kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "someone" }],
        }),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => json!({
            "webhooks": [{ "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                           "clientConfig": { "url": "https://127.0.0.1:1" } }],
        }),
        "ServiceAccount" => json!({ "secrets": [{ "name": "token" }] }),
        // Not looked at: whatever an edge's version of Kubernetes allows, and more.
        _ => json!({ "spec": { "anything": { "goes": [1, "two", null] } } }),
    }
}
