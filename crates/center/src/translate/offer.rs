//! Kinds that users define by CRDs, offered to mailboxes.
//!
//! A mailbox cannot be given a CRD: it would be seen nowhere but in that mailbox. So the center makes an APIExport of each
//! such kind in the provider workspace, one for each group and resource, and mailboxes are bound to it. Its schema takes
//! anything: workspace and edge validate. So it changes only with names, scope, versions and subresources; a changed
//! schema is another APIResourceSchema inside the same export, by which no object is lost.

use mailboat_api::names::{annotation, label};
use mailboat_engine::want::{Body, Hold};
use mailboat_object::digest::digest_of_value;
use mailboat_object::json::Raw;
use mailboat_object::key::{KindId, Name};
use mailboat_object::object::Object;
use serde_json::{Map, Value, json};

use super::PROVIDERS_OWN;
use super::definition::{export_for, is_claim};
use crate::body::body;
use crate::denature;

/// What the provider workspace holds for one kind.
pub(super) struct Offered {
    pub(super) schema: (Name, Body),
    pub(super) export: (Name, Body),
}

/// The kind of APIResourceSchemas.
pub(crate) fn api_resource_schemas() -> KindId {
    KindId::new("apis.kcp.io", "apiresourceschemas")
}

/// The kind of APIExports.
pub(crate) fn api_exports() -> KindId {
    KindId::new("apis.kcp.io", "apiexports")
}

/// Whether an object is a CRD, natured or not.
pub(super) fn is_definition(source: &Object) -> bool {
    let kind = denature::at_edge(&source.key.kind);
    kind.group() == "apiextensions.k8s.io" && kind.resource() == "customresourcedefinitions"
}

/// What offers the kind that a CRD defines.
pub(super) fn offered(definition: &Object) -> Result<Offered, Hold> {
    let unusable =
        |what: &str| Hold { reason: format!("no export can be made from it: it has no {what}"), on: None };
    let spec = definition.get(&["spec"]).map_or(Value::Null, Raw::to_value);
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let group = text(&spec["group"]).ok_or_else(|| unusable("group"))?;
    let plural = text(&spec["names"]["plural"]).ok_or_else(|| unusable("plural"))?;
    let schema_spec = schema_spec(&spec, &group, &plural).ok_or_else(|| unusable("kind or version"))?;
    let kind = KindId::new(&group, &plural);
    // kcp wants a prefix; this one follows from the content, since a schema cannot be changed.
    let schema_name = format!("h{:016x}.{plural}.{group}", digest_of_value(&schema_spec).bits());
    let mut metadata = json!({ "name": schema_name, "labels": { label::PROJECTED: label::PROJECTED_YES } });
    if let Some(approved) = definition.annotation(annotation::API_APPROVED) {
        metadata["annotations"] = json!({ annotation::API_APPROVED: approved });
    }
    let schema = json!({
        "apiVersion": "apis.kcp.io/v1alpha1",
        "kind": "APIResourceSchema",
        "metadata": metadata,
        "spec": schema_spec,
    });
    let export_name = export_for(&kind);
    // Whoever defines kinds chooses these names. In such an export he would say what every mailbox is bound to.
    if PROVIDERS_OWN.contains(&&*export_name) || is_claim(&export_name) {
        let reason =
            format!("no export can be made from it: {export_name} is a name of the provider's own exports");
        return Err(Hold { reason, on: None });
    }
    let export = json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIExport",
        "metadata": { "name": export_name, "labels": { label::PROJECTED: label::PROJECTED_YES } },
        "spec": {
            "resources": [{ "group": group, "name": plural, "schema": schema_name, "storage": { "crd": {} } }],
        },
    });
    Ok(Offered {
        schema: (Name::new(&schema_name), body(&schema)),
        export: (Name::new(&export_name), body(&export)),
    })
}

/// The schema: names, scope, the versions in use and their subresources. Short names and categories are left out, by
/// which kinds of different workspaces could be in each other's way.
fn schema_spec(spec: &Value, group: &str, plural: &str) -> Option<Value> {
    let kind = spec["names"]["kind"].as_str()?;
    let named =
        |member: &str, otherwise: String| spec["names"][member].as_str().map_or(otherwise, str::to_owned);
    let versions: Vec<Value> =
        spec["versions"].as_array()?.iter().filter(|one| is_used(one)).map(version).collect();
    // One version is stored, by CRDs' own rules; without it the rest is of no use.
    versions.iter().find(|version| version["storage"] == true)?;
    let mut schema = json!({
        "group": group,
        "names": {
            "kind": kind,
            "listKind": named("listKind", format!("{kind}List")),
            "plural": plural,
            "singular": named("singular", kind.to_lowercase()),
        },
        "scope": spec["scope"].as_str()?,
        "versions": versions,
    });
    if schema["versions"].as_array().is_some_and(|versions| versions.len() > 1) {
        schema["conversion"] = json!({ "strategy": "None" });
    }
    Some(schema)
}

fn is_used(version: &Value) -> bool {
    version["served"] == true || version["storage"] == true
}

fn version(version: &Value) -> Value {
    // kcp demands `subresources`, if only empty.
    let subresources =
        if version["subresources"].is_object() { version["subresources"].clone() } else { json!({}) };
    json!({
        "name": version["name"],
        "served": version["served"],
        "storage": version["storage"],
        "schema": anything(&version["schema"]["openAPIV3Schema"]),
        "subresources": subresources,
    })
}

/// A schema that takes anything, each member as a whole: what is taken out of a map at the source goes from the copy.
fn anything(schema: &Value) -> Value {
    let mut properties = Map::new();
    properties.insert("apiVersion".to_owned(), json!({ "type": "string" }));
    properties.insert("kind".to_owned(), json!({ "type": "string" }));
    properties.insert("metadata".to_owned(), json!({ "type": "object" }));
    let whole = json!({
        "type": "object", "x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": true,
    });
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if property["type"] == "object" && !properties.contains_key(name) {
            properties.insert(name.clone(), whole.clone());
        }
    }
    json!({ "type": "object", "properties": properties, "x-kubernetes-preserve-unknown-fields": true })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fixtures::object;

    fn crd(change: impl FnOnce(&mut Value)) -> Arc<Object> {
        let mut crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": "crontabs.stable.example.com" },
            "spec": {
                "group": "stable.example.com",
                "scope": "Namespaced",
                "names": { "plural": "crontabs", "singular": "crontab", "kind": "CronTab", "shortNames": ["ct"] },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                        "spec": { "type": "object", "properties": { "image": { "type": "string", "maxLength": 9 } } },
                        "note": { "type": "string" },
                    } } },
                }],
            },
        });
        change(&mut crd);
        object("wmw", "customresourcedefinitions.apiextensions.k8s.io", &crd)
    }

    fn read(part: &(Name, Body)) -> Value {
        let value: Value = serde_json::from_slice(&part.1.json).expect("JSON");
        assert_eq!(value["metadata"]["name"], part.0.as_str());
        value
    }

    #[test]
    fn a_definition_is_offered_with_a_schema_that_takes_anything() {
        let offered = offered(&crd(|_| {})).unwrap();
        let (schema, export) = (read(&offered.schema), read(&offered.export));
        assert_eq!(export["metadata"]["name"], "crontabs.stable.example.com");
        assert_eq!(export["spec"]["resources"][0]["schema"], schema["metadata"]["name"]);
        let version = &schema["spec"]["versions"][0];
        let properties = &version["schema"]["properties"];
        assert_eq!(properties["spec"]["x-kubernetes-preserve-unknown-fields"], true, "{schema:#}");
        assert!(
            properties["spec"].get("properties").is_none() && properties.get("note").is_none(),
            "{schema:#}"
        );
        assert_eq!(version["subresources"], json!({}));
        assert!(schema["spec"]["names"].get("shortNames").is_none(), "{schema:#}");
        assert!(schema["spec"].get("conversion").is_none(), "{schema:#}");
    }

    #[test]
    fn only_what_the_mailbox_must_know_makes_another_schema() {
        let name = |change: fn(&mut Value)| offered(&crd(change)).unwrap().schema.0;
        let first = name(|_| {});
        let stricter = |crd: &mut Value| {
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] =
                json!(["image"]);
            crd["spec"]["names"]["shortNames"] = json!([]);
            crd["metadata"]["labels"] = json!({ "a": "b" });
        };
        assert_eq!(name(stricter), first);
        let with_status =
            |crd: &mut Value| crd["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
        assert_ne!(name(with_status), first);
        assert_ne!(name(|crd| crd["spec"]["scope"] = json!("Cluster")), first);
    }

    #[test]
    fn versions_that_nobody_uses_are_left_out_and_several_need_no_conversion() {
        let several = |crd: &mut Value| {
            let versions = crd["spec"]["versions"].as_array_mut().unwrap();
            let mut old = versions[0].clone();
            (old["name"], old["storage"]) = (json!("v1beta1"), json!(false));
            let mut unused = old.clone();
            (unused["name"], unused["served"]) = (json!("v1alpha1"), json!(false));
            versions.extend([old, unused]);
        };
        let schema = read(&offered(&crd(several)).unwrap().schema);
        let names: Vec<&Value> =
            schema["spec"]["versions"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
        assert_eq!(names, ["v1", "v1beta1"]);
        assert_eq!(schema["spec"]["conversion"]["strategy"], "None");
    }

    #[test]
    fn a_definition_called_like_an_export_of_the_providers_own_is_held() {
        for (plural, group) in [
            ("edge", "kubestellar.io"),
            ("workload", "kcp.io"),
            ("scheduling", "kcp.io"),
            ("mailbox", "mailboat.dev"),
            ("denatured", "mailboat.dev"),
            ("claim-secrets", "example.com"),
        ] {
            let hostile = crd(|crd| {
                crd["spec"]["group"] = json!(group);
                crd["spec"]["names"]["plural"] = json!(plural);
            });
            let hold = offered(&hostile).err().expect(plural);
            assert!(hold.reason.contains("of the provider's own"), "{}", hold.reason);
        }
    }

    #[test]
    fn a_definition_without_a_stored_version_is_held_with_the_reason() {
        let none = crd(|crd| crd["spec"]["versions"] = json!([]));
        let hold = offered(&none).err().expect("held");
        assert!(hold.reason.contains("no kind or version"), "{}", hold.reason);
    }
}
