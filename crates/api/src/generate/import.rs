//! CustomResourceDefinitions as kcp wants them: an APIResourceSchema each, and an APIExport that offers them.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::yaml;
use crate::names::annotation;

/// Why a CustomResourceDefinition cannot be offered by kcp.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotImportable {
    /// It is something else.
    #[error("{0:?} is no CustomResourceDefinition of apiextensions.k8s.io/v1")]
    OtherKind(String),
    /// Something is missing in it.
    #[error("the CustomResourceDefinition {name:?} has no {member}")]
    Lacks {
        /// Its name.
        name: String,
        /// What is missing.
        member: &'static str,
    },
    /// Its versions are converted by a server that kcp cannot reach.
    #[error(
        "the versions of {0} are converted by a webhook of its own cluster, which kcp cannot call; leave one version served, \
         or set spec.conversion.strategy to None"
    )]
    Webhook(String),
}

/// The APIResourceSchema (`apis.kcp.io/v1alpha1`) of a CustomResourceDefinition.
///
/// Schemas cannot be changed, so that the name begins with a hash of the content: the same definition is the same schema,
/// and another one is another.
pub fn schema_of_crd(crd: &Value) -> Result<Value, NotImportable> {
    let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let version = crd["apiVersion"].as_str().unwrap_or_default();
    if crd["kind"] != "CustomResourceDefinition" || version != "apiextensions.k8s.io/v1" {
        let found = format!("{version} {}", crd["kind"].as_str().unwrap_or_default());
        return Err(NotImportable::OtherKind(found.trim().to_owned()));
    }
    let lacks = |member: &'static str| NotImportable::Lacks { name: name.clone(), member };
    let spec = &crd["spec"];
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let group = text("/group").ok_or_else(|| lacks("spec.group"))?;
    let plural = text("/names/plural").ok_or_else(|| lacks("spec.names.plural"))?;
    let kind = text("/names/kind").ok_or_else(|| lacks("spec.names.kind"))?;
    let scope = text("/scope").ok_or_else(|| lacks("spec.scope"))?;
    let versions = spec["versions"].as_array().filter(|all| !all.is_empty());
    let versions = versions.ok_or_else(|| lacks("spec.versions"))?;
    let mut names = spec["names"].clone();
    if names["singular"].is_null() {
        names["singular"] = json!(kind.to_lowercase());
    }
    if names["listKind"].is_null() {
        names["listKind"] = json!(format!("{kind}List"));
    }
    let versions: Option<Vec<Value>> = versions.iter().map(version_of).collect();
    let versions = versions.ok_or_else(|| lacks("spec.versions[].schema.openAPIV3Schema"))?;
    let many = versions.iter().filter(|version| version["served"] == true).count() > 1;
    let mut wanted = json!({ "group": group, "names": names, "scope": scope, "versions": versions });
    if text("/conversion/strategy") == Some("Webhook") && many {
        return Err(NotImportable::Webhook(format!("{plural}.{group}")));
    }
    if versions_of(&wanted) > 1 {
        wanted["conversion"] = json!({ "strategy": "None" });
    }
    let digest = Sha256::digest(yaml::canonical_json(&wanted));
    let hash = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    let mut metadata = json!({ "name": format!("h{hash:08x}.{plural}.{group}") });
    if let Some(approved) = crd["metadata"]["annotations"].get(annotation::API_APPROVED) {
        metadata["annotations"] = json!({ annotation::API_APPROVED: approved });
    }
    Ok(json!({
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": metadata,
        "spec": wanted,
    }))
}

/// An APIExport (`apis.kcp.io/v1alpha2`) with these schemas, each in the place of its kind's former one; all else that it
/// offers stays. `None` if it says so already.
pub fn export_with(existing: Option<&Value>, name: &str, schemas: &[Value]) -> Option<Value> {
    let mut export = existing.cloned().unwrap_or_else(|| {
        json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": name }, "spec": {} })
    });
    let mut resources = export["spec"]["resources"].as_array().cloned().unwrap_or_default();
    for schema in schemas {
        let (group, resource) = (&schema["spec"]["group"], &schema["spec"]["names"]["plural"]);
        let wanted = &schema["metadata"]["name"];
        match resources.iter_mut().find(|known| known["group"] == *group && known["name"] == *resource) {
            Some(known) => known["schema"] = wanted.clone(),
            None => resources.push(json!({
                "group": group, "name": resource, "schema": wanted, "storage": { "crd": {} },
            })),
        }
    }
    if existing.is_some() && export["spec"]["resources"].as_array() == Some(&resources) {
        return None;
    }
    export["spec"]["resources"] = Value::Array(resources);
    Some(export)
}

fn version_of(version: &Value) -> Option<Value> {
    let mut wanted = Map::new();
    for member in
        ["name", "served", "storage", "deprecated", "deprecationWarning", "additionalPrinterColumns"]
    {
        if let Some(value) = version.get(member).filter(|value| !value.is_null()) {
            wanted.insert(member.to_owned(), value.clone());
        }
    }
    wanted.insert("schema".to_owned(), version["schema"].get("openAPIV3Schema")?.clone());
    // kcp demands `subresources`, if only empty.
    let subresources = version.get("subresources").filter(|value| !value.is_null());
    wanted.insert("subresources".to_owned(), subresources.cloned().unwrap_or_else(|| json!({})));
    Some(Value::Object(wanted))
}

fn versions_of(spec: &Value) -> usize {
    spec["versions"].as_array().map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd(versions: &[&str]) -> Value {
        let versions: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(index, name)| {
                json!({ "name": name, "served": true, "storage": index == 0,
                    "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } })
            })
            .collect();
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "widgets.example.com", "resourceVersion": "7" },
            "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
                "versions": versions }, "status": { "acceptedNames": {} } })
    }

    #[test]
    fn the_same_definition_is_the_same_schema_and_another_is_another() {
        let one = schema_of_crd(&crd(&["v1"])).unwrap();
        let mut noisy = crd(&["v1"]);
        noisy["metadata"]["resourceVersion"] = json!("8");
        noisy["status"]["conditions"] = json!([]);
        assert_eq!(schema_of_crd(&noisy).unwrap(), one);
        let name = one["metadata"]["name"].as_str().unwrap();
        assert!(name.starts_with('h') && name.ends_with(".widgets.example.com"), "{name}");
        assert_ne!(schema_of_crd(&crd(&["v2"])).unwrap()["metadata"]["name"], one["metadata"]["name"]);
        let spec = &one["spec"];
        assert_eq!(
            (&spec["names"]["singular"], &spec["names"]["listKind"]),
            (&json!("widget"), &json!("WidgetList"))
        );
        assert!(spec["versions"][0]["subresources"].is_object() && spec["conversion"].is_null(), "{spec}");
    }

    #[test]
    fn several_versions_say_how_they_are_converted() {
        let two = schema_of_crd(&crd(&["v1", "v1beta1"])).unwrap();
        assert_eq!(two["spec"]["conversion"]["strategy"], "None");
        let mut by_webhook = crd(&["v1", "v1beta1"]);
        by_webhook["spec"]["conversion"] = json!({ "strategy": "Webhook" });
        assert_eq!(schema_of_crd(&by_webhook), Err(NotImportable::Webhook("widgets.example.com".to_owned())));
    }

    #[test]
    fn what_is_no_definition_is_refused_in_a_sentence() {
        let mut unnamed = crd(&["v1"]);
        unnamed["spec"]["names"]["kind"] = Value::Null;
        let mut schemaless = crd(&["v1"]);
        schemaless["spec"]["versions"][0]["schema"] = Value::Null;
        for (bad, word) in [
            (json!({ "apiVersion": "v1", "kind": "ConfigMap" }), "\"v1 ConfigMap\""),
            (json!({ "kind": "Boat" }), "\"Boat\""),
            (unnamed, "spec.names.kind"),
            (crd(&[]), "spec.versions"),
            (schemaless, "openAPIV3Schema"),
        ] {
            let told = schema_of_crd(&bad).unwrap_err().to_string();
            assert!(told.contains(word) && told.lines().count() == 1, "{told}");
        }
    }

    #[test]
    fn an_export_keeps_what_it_offers_besides_and_is_written_only_if_it_changes() {
        let schema = schema_of_crd(&crd(&["v1"])).unwrap();
        let made = export_with(None, "example.com", std::slice::from_ref(&schema)).unwrap();
        assert_eq!(made["spec"]["resources"][0]["schema"], schema["metadata"]["name"]);
        assert_eq!(export_with(Some(&made), "example.com", std::slice::from_ref(&schema)), None);
        let mut fuller = made.clone();
        let other = json!({ "group": "example.com", "name": "gears", "schema": "h1.gears.example.com", "storage": { "crd": {} } });
        fuller["spec"]["resources"].as_array_mut().unwrap().push(other.clone());
        let newer = schema_of_crd(&crd(&["v2"])).unwrap();
        let changed = export_with(Some(&fuller), "example.com", std::slice::from_ref(&newer)).unwrap();
        let resources = changed["spec"]["resources"].as_array().unwrap();
        assert_eq!(
            (resources.len(), &resources[0]["schema"], &resources[1]),
            (2, &newer["metadata"]["name"], &other)
        );
    }
}
