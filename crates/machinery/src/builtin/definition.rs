//! Definitions of kinds.

use serde_json::{Value, json};

use super::default;
use crate::schema::{Origin, Schema, rule};
use crate::status::FieldError;

const APPROVED: &str = "api-approved.kubernetes.io";

pub(super) fn default_definition(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    default(spec, "conversion", json!({ "strategy": "None" }));
    default(spec, "names", json!({}));
    let names = &mut spec["names"];
    if let Some(kind) = names["kind"].as_str().map(str::to_owned) {
        default(names, "singular", kind.to_lowercase());
        default(names, "listKind", format!("{kind}List"));
    }
}

/// What a new definition says of itself before anybody looked at it.
pub(super) fn prepare_definition(definition: &mut Value, old: Option<&Value>) {
    if old.is_some() {
        return;
    }
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let stored: Value = versions
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    definition["status"]["storedVersions"] = stored;
}

pub(super) fn check_definition(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let (name, spec) = (&new["metadata"]["name"], &new["spec"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = text(&spec["group"]);
    let mut errors = Vec::new();
    if text(name) != format!("{}.{group}", text(&spec["names"]["plural"])) {
        let what = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, what));
    }
    if !matches!(spec["scope"].as_str(), Some("Cluster" | "Namespaced")) {
        let known = [json!("Cluster"), json!("Namespaced")];
        errors.push(FieldError::unsupported("spec.scope", &spec["scope"], &known));
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, version) in versions.iter().enumerate() {
        let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
        match version["schema"].get("openAPIV3Schema") {
            None => errors.push(FieldError::required(&at, "")),
            Some(schema) => {
                if let Err(bad) = Schema::from_openapi(schema, &Value::Null, Origin::Custom) {
                    let field = format!("{at}{}", bad.path);
                    errors.push(FieldError::invalid(&field, &Value::Null, bad.what));
                }
                for (path, why) in rule::no_expressions(schema) {
                    let field = format!("{at}{path}");
                    errors.push(FieldError::invalid(
                        &field,
                        &Value::Null,
                        format!("compilation failed: {why}"),
                    ));
                }
            }
        }
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let what = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", &Value::Null, what));
    }
    let protected = group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io");
    if protected && new["metadata"]["annotations"].get(APPROVED).is_none() {
        let what = format!(
            "protected groups must have approval annotation {APPROVED:?}, see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        errors.push(FieldError::required(&format!("metadata.annotations[{APPROVED}]"), &what));
    }
    errors
}
