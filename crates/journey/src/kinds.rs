//! The kinds of this world.

use mailboat_api::names::group;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

/// What is carried: a kind that users define, with a status.
pub(crate) fn boats() -> KindId {
    KindId::new("example.dev", "boats")
}

/// What is carried and is built in.
pub(crate) fn configmaps() -> KindId {
    KindId::new("", "configmaps")
}

pub(crate) fn namespaces() -> KindId {
    KindId::new("", "namespaces")
}

pub(crate) fn definitions() -> KindId {
    KindId::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Definitions that are kept for edges alone.
pub(crate) fn definitions_kept() -> KindId {
    KindId::new(&format!("apiextensions.k8s.io{}", group::DENATURED_SUFFIX), "customresourcedefinitions")
}

pub(crate) fn bindings() -> KindId {
    KindId::new("apis.kcp.io", "apibindings")
}

pub(crate) fn workspaces() -> KindId {
    KindId::new("tenancy.kcp.io", "workspaces")
}

/// A kind of the edge's own group.
pub(crate) fn edge(resource: &str) -> KindId {
    KindId::new(group::EDGE, resource)
}

/// Whether objects of a kind say what goes where.
pub(crate) fn configures(kind: &KindId) -> bool {
    kind.group() == group::EDGE
        && matches!(
            kind.resource(),
            "syncerconfigs" | "edgesyncconfigs" | "edgeplacements" | "locations" | "synctargets"
        )
}

/// A kind as it is called at edges.
pub(crate) fn natured(kind: &KindId) -> KindId {
    match kind.group() {
        group::CORE_DENATURED => KindId::new("", kind.resource()),
        other => match other.strip_suffix(group::DENATURED_SUFFIX) {
            Some(natured) => KindId::new(natured, kind.resource()),
            None => kind.clone(),
        },
    }
}

/// Whether objects of a kind are what users want carried.
pub(crate) fn is_cargo(kind: &KindId) -> bool {
    *kind == boats() || *kind == configmaps()
}

/// Whether an object is called like those that are brought up from edges, and nothing else.
pub(crate) fn comes_up(key: &Key) -> bool {
    is_cargo(&key.kind) && key.name.starts_with(UP_PREFIX)
}

/// What is brought up is called so, before its number.
pub(crate) const UP_PREFIX: &str = "u";

/// What namespaces are called, by their number.
pub(crate) const NAMESPACES: [&str; 2] = ["even", "odd"];

/// The namespace of cargo, which goes by the number that its name ends with.
pub(crate) fn namespace_of(name: &str) -> &'static str {
    NAMESPACES[usize::from(name.ends_with(['1', '3', '5', '7', '9']))]
}

/// The key of an object of this world.
pub(crate) fn key(cluster: &ClusterId, kind: KindId, name: &str) -> Key {
    let namespace = if is_cargo(&kind) { Name::new(namespace_of(name)) } else { Name::EMPTY };
    Key { cluster: cluster.clone(), kind, namespace, name: Name::new(name) }
}

/// Cargo as a user writes it.
pub(crate) fn cargo(key: &Key, label: &str, value: u64) -> Value {
    let metadata = json!({ "namespace": *key.namespace, "name": *key.name, "labels": { "place": label } });
    if key.kind == boats() {
        json!({ "apiVersion": "example.dev/v1", "kind": "Boat", "metadata": metadata, "spec": { "v": value } })
    } else {
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": content(key, value)["data"] })
    }
}

/// The content alone.
pub(crate) fn content(key: &Key, value: u64) -> Value {
    if key.kind == boats() {
        json!({ "spec": { "v": value } })
    } else {
        json!({ "data": { "v": value.to_string() } })
    }
}

/// The content of an object, whatever else it has.
pub(crate) fn content_of(body: &Value) -> (&Value, &Value) {
    (&body["spec"], &body["data"])
}

/// The definition of the boats.
pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "boats.example.dev" },
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

/// The schema of the boats, and the export of it, as somebody else offers them.
pub(crate) fn offer() -> [(KindId, Value); 2] {
    let mut spec = definition()["spec"].take();
    spec["versions"][0]["schema"] = spec["versions"][0]["schema"]["openAPIV3Schema"].take();
    let schema = json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema",
        "metadata": { "name": "v1.boats.example.dev" }, "spec": spec,
    });
    let resource = json!({
        "group": "example.dev", "name": "boats", "schema": "v1.boats.example.dev", "storage": { "crd": {} },
    });
    let export = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": "boats" },
        "spec": { "resources": [resource] },
    });
    let kind = |resource: &str| KindId::new("apis.kcp.io", resource);
    [(kind("apiresourceschemas"), schema), (kind("apiexports"), export)]
}
