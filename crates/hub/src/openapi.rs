//! OpenAPI: what `kubectl explain` reads, and how clients find out which parameters a server knows.

pub(crate) mod gnostic;
pub(crate) mod v2;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use mailboat_machinery::{Kind, KindVersion, Origin};
use serde_json::{Map, Value, json};

use crate::catalog;

/// `/openapi/v3`: which documents there are. `prefix` is the path of the place that they are asked of.
pub(crate) fn index<'k>(kinds: impl IntoIterator<Item = &'k Arc<Kind>>, prefix: &str) -> Value {
    let shown = |(path, mark): (String, String)| {
        let address = address(prefix, &path, &mark);
        (path, json!({ "serverRelativeURL": address }))
    };
    let paths: Map<String, Value> = marks(kinds).into_iter().map(shown).collect();
    json!({ "paths": paths })
}

/// Where a document is found. Its address changes with its content, so that clients can keep what they have.
pub(crate) fn address(prefix: &str, path: &str, mark: &str) -> String {
    format!("{prefix}/openapi/v3/{path}?hash={mark}")
}

/// The document of a group and version, as the index names it.
pub(crate) fn path(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

/// The documents that there are, each with a mark that changes with its content.
pub(crate) fn marks<'k>(kinds: impl IntoIterator<Item = &'k Arc<Kind>>) -> BTreeMap<String, String> {
    let mut hashes: BTreeMap<String, DefaultHasher> = BTreeMap::new();
    for kind in kinds {
        for version in &kind.versions {
            let hash = hashes.entry(path(kind.id.group(), &version.name)).or_default();
            env!("CARGO_PKG_VERSION").hash(hash);
            (kind.id.resource(), &version.openapi).hash(hash);
        }
    }
    hashes.into_iter().map(|(path, hash)| (path, format!("{:016X}", hash.finish()))).collect()
}

/// The name of a kind's schema.
fn component(kind: &Kind, version: &str) -> String {
    let native = match kind.origin {
        Origin::Native => catalog::component(&kind.id, version),
        Origin::Custom => None,
    };
    native.unwrap_or_else(|| custom_name(kind.id.group(), version, &kind.name))
}

/// The document of one group and version; none if there is no such.
pub(crate) fn document(kinds: &[Arc<Kind>], group: &str, version: &str) -> Option<Value> {
    let mut paths = Map::new();
    let mut schemas: Map<String, Value> = Map::new();
    let mut native = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.id.group() == group) {
        let Some(served) = kind.version(version) else { continue };
        let component = match kind.origin {
            Origin::Native => catalog::component(&kind.id, version),
            Origin::Custom => None,
        };
        let component = if let Some(name) = component {
            native.push(name.clone());
            name
        } else {
            let name = custom_name(group, version, &kind.name);
            schemas.insert(name.clone(), custom_schema(kind, served));
            native.push(format!("{META}ObjectMeta"));
            name
        };
        describe(&mut paths, kind, version, &component);
    }
    if paths.is_empty() {
        return None;
    }
    for (name, schema) in catalog::components(native) {
        schemas.insert(name.to_owned(), serde_json::from_str(schema.get()).unwrap_or_default());
    }
    Some(json!({
        "openapi": "3.0.0", "info": { "title": "Mailboat", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths, "components": { "schemas": schemas },
    }))
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// The name of a custom resource's schema: its group backwards, its version, its kind.
fn custom_name(group: &str, version: &str, kind: &str) -> String {
    let backwards: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{kind}", backwards.join("."))
}

fn custom_schema(kind: &Kind, version: &KindVersion) -> Value {
    let given = version.openapi.as_ref().and_then(|text| serde_json::from_str(text).ok());
    let mut schema: Value =
        given.unwrap_or_else(|| json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }));
    schema["properties"]["apiVersion"] =
        json!({ "type": "string", "description": "The version of this kind." });
    schema["properties"]["kind"] = json!({ "type": "string", "description": "The kind." });
    schema["properties"]["metadata"] = json!({
        "description": "Standard object metadata.",
        "allOf": [{ "$ref": format!("#/components/schemas/{META}ObjectMeta") }],
    });
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(kind, &version.name)]);
    schema
}

fn group_version_kind(kind: &Kind, version: &str) -> Value {
    json!({ "group": kind.id.group(), "version": version, "kind": *kind.name })
}

/// The paths of a kind, as far as clients look at them: which there are, and which parameters a write takes.
fn describe(paths: &mut Map<String, Value>, kind: &Kind, version: &str, component: &str) {
    let base = match kind.id.group() {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    let scope = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
    let many = format!("{base}{scope}/{}", kind.id.resource());
    let one = format!("{many}/{{name}}");
    let operation = |action: &str, parameters: &[&str]| {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string", "uniqueItems": true } }))
            .collect();
        let content = json!({ "schema": { "$ref": format!("#/components/schemas/{component}") } });
        json!({
            "parameters": parameters,
            "responses": { "200": { "description": "OK", "content": { "application/json": content } } },
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": group_version_kind(kind, version),
        })
    };
    let write = ["dryRun", "fieldManager", "fieldValidation"];
    let patch = ["dryRun", "fieldManager", "fieldValidation", "force"];
    let select = ["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "watch"];
    let delete = ["dryRun", "gracePeriodSeconds", "propagationPolicy"];
    paths.insert(many, json!({ "get": operation("list", &select), "post": operation("post", &write) }));
    let whole = json!({
        "get": operation("get", &[]), "put": operation("put", &write),
        "patch": operation("patch", &patch), "delete": operation("delete", &delete),
    });
    let part = json!({
        "get": operation("get", &[]), "put": operation("put", &write), "patch": operation("patch", &patch),
    });
    if kind.rules.status.is_some() {
        paths.insert(format!("{one}/status"), part);
    }
    paths.insert(one, whole);
}
