//! The schemas of Kubernetes' own kinds, put together from the tables of kinds and the OpenAPI documents.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::kinds::{BuiltinKind, COMPUTE, DENATURED, RBAC};
use super::openapi::Document;
use super::schema::ResourceSchema;
use super::{GenerateError, structural};
use crate::names;

/// The schemas of all compute kinds.
pub(super) fn compute() -> Result<Vec<ResourceSchema>, GenerateError> {
    schemas(COMPUTE, compute_schema)
}

/// The schemas of all denatured kinds.
pub(super) fn denatured() -> Result<Vec<ResourceSchema>, GenerateError> {
    schemas(DENATURED, denatured_schema)
}

/// Makes a schema for each kind, reading each document once.
fn schemas(
    kinds: &[BuiltinKind],
    schema: impl Fn(&BuiltinKind, &Document) -> Result<ResourceSchema, GenerateError>,
) -> Result<Vec<ResourceSchema>, GenerateError> {
    let mut documents = BTreeMap::new();
    for kind in kinds {
        let prefix = kind.api_prefix();
        if !documents.contains_key(&prefix) {
            let text = document_text(&format!("/openapi/v3{prefix}")).ok_or_else(|| {
                GenerateError::Missing { group_version: prefix.clone(), what: "everything".to_owned() }
            })?;
            documents.insert(prefix.clone(), Document::parse(&prefix, text)?);
        }
    }
    kinds.iter().map(|kind| schema(kind, &documents[&kind.api_prefix()])).collect()
}

fn compute_schema(kind: &BuiltinKind, document: &Document) -> Result<ResourceSchema, GenerateError> {
    let schema = structural::kind(document, kind)?;
    let mut subresources = Value::Null;
    if document.has_subresource(kind, "status") {
        subresources["status"] = json!({});
    }
    if document.has_subresource(kind, "scale") {
        // No selector path: it would have to lead to a text, and these kinds hold an object there.
        subresources["scale"] =
            json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" });
    }
    Ok(ResourceSchema { schema, subresources, columns: columns(kind), ..outline(kind, document)? })
}

fn denatured_schema(kind: &BuiltinKind, document: &Document) -> Result<ResourceSchema, GenerateError> {
    let subresources =
        if document.has_subresource(kind, "status") { json!({ "status": {} }) } else { Value::Null };
    Ok(ResourceSchema {
        group: names::denatured_group(kind.group),
        schema: structural::permissive(document, kind)?,
        subresources,
        // Kubernetes lets roles be called `kyverno:admin`; nothing else here is.
        any_path_segment_as_name: kind.group == RBAC.group,
        ..outline(kind, document)?
    })
}

fn outline(kind: &BuiltinKind, document: &Document) -> Result<ResourceSchema, GenerateError> {
    Ok(ResourceSchema {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        kind: kind.kind.to_owned(),
        plural: kind.plural.to_owned(),
        singular: kind.kind.to_lowercase(),
        short_names: kind.short_names.iter().map(|&name| name.to_owned()).collect(),
        categories: if kind.in_all { vec!["all".to_owned()] } else { Vec::new() },
        scope: document.scope(kind)?,
        schema: Value::Null,
        subresources: Value::Null,
        columns: Vec::new(),
        any_path_segment_as_name: false,
    })
}

/// Never empty: for a kind without columns kcp looks for a printer of Kubernetes' own, and fails if there is
/// none.
fn columns(kind: &BuiltinKind) -> Vec<Value> {
    let age = ("Age", "date", ".metadata.creationTimestamp", 0);
    kind.columns
        .iter()
        .chain([&age])
        .map(|(name, type_, path, priority)| match priority {
            0 => json!({ "name": name, "type": type_, "jsonPath": path }),
            _ => json!({ "name": name, "type": type_, "jsonPath": path, "priority": priority }),
        })
        .collect()
}

macro_rules! documents {
    ($($path:literal => $file:literal),+ $(,)?) => {
        /// The kept document that an API server serves at a path.
        pub(super) fn document_text(server_path: &str) -> Option<&'static str> {
            match server_path {
                $($path => Some(include_str!(concat!("../../openapi/", $file))),)+
                _ => None,
            }
        }
    };
}

documents! {
    "/openapi/v3/api/v1" => "api__v1.json",
    "/openapi/v3/apis/admissionregistration.k8s.io/v1" => "apis__admissionregistration.k8s.io__v1.json",
    "/openapi/v3/apis/apiextensions.k8s.io/v1" => "apis__apiextensions.k8s.io__v1.json",
    "/openapi/v3/apis/apiregistration.k8s.io/v1" => "apis__apiregistration.k8s.io__v1.json",
    "/openapi/v3/apis/apps/v1" => "apis__apps__v1.json",
    "/openapi/v3/apis/autoscaling/v2" => "apis__autoscaling__v2.json",
    "/openapi/v3/apis/batch/v1" => "apis__batch__v1.json",
    "/openapi/v3/apis/discovery.k8s.io/v1" => "apis__discovery.k8s.io__v1.json",
    "/openapi/v3/apis/flowcontrol.apiserver.k8s.io/v1" => "apis__flowcontrol.apiserver.k8s.io__v1.json",
    "/openapi/v3/apis/networking.k8s.io/v1" => "apis__networking.k8s.io__v1.json",
    "/openapi/v3/apis/node.k8s.io/v1" => "apis__node.k8s.io__v1.json",
    "/openapi/v3/apis/policy/v1" => "apis__policy__v1.json",
    "/openapi/v3/apis/rbac.authorization.k8s.io/v1" => "apis__rbac.authorization.k8s.io__v1.json",
    "/openapi/v3/apis/scheduling.k8s.io/v1" => "apis__scheduling.k8s.io__v1.json",
    "/openapi/v3/apis/storage.k8s.io/v1" => "apis__storage.k8s.io__v1.json",
}
