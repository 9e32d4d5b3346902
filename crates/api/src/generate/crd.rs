//! The CRDs of the kinds that are served, from their Rust types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt as _;
use serde_json::{Map, Value, json};

use super::{GenerateError, to_value};
use crate::{edge, scheduling, syncagent, workload};

/// All CRDs, finished, by name.
pub(super) fn all() -> Result<Vec<CustomResourceDefinition>, GenerateError> {
    let mut crds = vec![
        edge::EdgePlacement::crd(),
        edge::SinglePlacementSlice::crd(),
        edge::Customizer::crd(),
        edge::SyncerConfig::crd(),
        edge::EdgeSyncConfig::crd(),
        edge::SyncTarget::crd(),
        edge::Location::crd(),
        edge::Summarizer::crd(),
        edge::StatusSummary::crd(),
        workload::SyncTarget::crd(),
        scheduling::Location::crd(),
        syncagent::PublishedResource::crd(),
    ];
    crds.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    crds.iter().map(finish).collect()
}

/// What the derive cannot say, or says otherwise than Kubernetes' own generators do.
fn finish(crd: &CustomResourceDefinition) -> Result<CustomResourceDefinition, GenerateError> {
    let name = crd.metadata.name.clone().unwrap_or_default();
    let mut json = to_value(&name, crd)?;
    let root = &mut json["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    tidy(root);
    if spec_is_optional(root) {
        allow_absent_spec(root);
    }
    limit_name(&name, root);
    serde_json::from_value(json).map_err(|source| GenerateError::Json { what: name, source })
}

/// Goes over a schema and all schemas within it.
fn tidy(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    // Without it the server drops nulls, so that `spec:` left empty in YAML is the same as absent, and CEL's
    // `has()` never sees one.
    members.remove("nullable");
    members.remove("title");
    if let Some(Value::String(description)) = members.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if is_label_selector(members) {
        members.insert("x-kubernetes-map-type".to_owned(), json!("atomic"));
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        properties.values_mut().for_each(tidy);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(key) {
            tidy(inner);
        }
    }
}

/// Two writers must not merge their selectors into one that neither meant.
fn is_label_selector(schema: &Map<String, Value>) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| {
        properties.len() == 2
            && properties.contains_key("matchLabels")
            && properties.contains_key("matchExpressions")
    })
}

/// Whether a `spec` may be empty, and so may as well be left out.
fn spec_is_optional(root: &Value) -> bool {
    let spec = &root["properties"]["spec"];
    spec.is_object() && spec["required"].as_array().is_none_or(Vec::is_empty)
}

/// An absent `spec` is read back as an empty one: users leave it out, and readers need not care.
fn allow_absent_spec(root: &mut Value) {
    if let Some(Value::Array(required)) = root.get_mut("required") {
        required.retain(|name| name != "spec");
        if required.is_empty()
            && let Some(root) = root.as_object_mut()
        {
            root.remove("required");
        }
    }
    root["properties"]["spec"]["default"] = json!({});
}

/// Names that other names are made from must leave room.
fn limit_name(crd: &str, root: &mut Value) {
    let limit = match crd {
        "synctargets.edge.kubestellar.io" | "synctargets.workload.kcp.io" => {
            json!({ "type": "string", "minLength": 1, "maxLength": 234 })
        }
        "locations.scheduling.kcp.io" => {
            json!({ "type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" })
        }
        _ => return,
    };
    root["properties"]["metadata"] = json!({ "type": "object", "properties": { "name": limit } });
}
