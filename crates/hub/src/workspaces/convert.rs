//! Exports and bindings in their two versions, turned into each other as kcp does.
//!
//! They are kept in `v1alpha2`. What one version cannot say is kept in annotations on the other, under kcp's own names, so
//! that nothing is lost on the way there and back.

use mailboat_machinery::{Conversion, Kind};
use mailboat_object::KindId;
use serde_json::{Map, Value, json};

use super::{binding, export};

/// The version in which they are not kept.
const FORMER: &str = "v1alpha1";
/// Schemas that are not stored as custom resources are.
const RESOURCE_SCHEMAS: &str = "apis.v1alpha2.kcp.io/resource-schemas";

/// Why something cannot be turned into the other version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Unconvertible {
    /// A schema's name does not say what it is the schema of.
    #[error("invalid schema {0:?}: must have at least 3 dot-separated segments")]
    SchemaName(String),
}

/// A list of claims.
struct Claims {
    /// The part of the object, and the member of it.
    at: [&'static str; 2],
    /// They say which objects they are about.
    scoped: bool,
    /// Where it is kept what `v1alpha1` cannot say: verbs and selectors,
    newer: &'static str,
    /// and what `v1alpha2` cannot: names of single objects.
    older: &'static str,
    /// All of them are kept there, not only those that name objects.
    keeps_all: bool,
}

const OF_EXPORTS: [Claims; 1] = [Claims {
    at: ["spec", "permissionClaims"],
    scoped: false,
    newer: "apis.v1alpha2.kcp.io/permission-claims",
    older: "apis.v1alpha2.kcp.io/v1alpha1-permission-claims",
    keeps_all: true,
}];
const OF_BINDINGS: [Claims; 3] = [
    Claims {
        at: ["spec", "permissionClaims"],
        scoped: true,
        newer: "apis.v1alpha2.kcp.io/acceptable-permission-claims",
        older: "apis.v1alpha2.kcp.io/v1alpha1-permission-claims",
        keeps_all: false,
    },
    Claims {
        at: ["status", "exportPermissionClaims"],
        scoped: false,
        newer: "apis.v1alpha2.kcp.io/status-export-permission-claims",
        older: "apis.v1alpha2.kcp.io/v1alpha1-status-export-permission-claims",
        keeps_all: true,
    },
    Claims {
        at: ["status", "appliedPermissionClaims"],
        scoped: true,
        newer: "apis.v1alpha2.kcp.io/status-applied-permission-claims",
        older: "apis.v1alpha2.kcp.io/v1alpha1-status-applied-permission-claims",
        keeps_all: false,
    },
];

/// Lets the kinds that have two versions be kept in one.
pub(super) fn join(kind: &mut Kind) {
    let conversion = if kind.id == export::kind() {
        Conversion {
            show: |export| to_former(&export::kind(), export),
            keep: |export| to_kept(&export::kind(), export).map_err(|error| error.to_string()),
            fields: &[],
            check: None,
        }
    } else if kind.id == binding::kind() {
        Conversion {
            show: |binding| to_former(&binding::kind(), binding),
            keep: |binding| to_kept(&binding::kind(), binding).map_err(|error| error.to_string()),
            fields: &[],
            check: None,
        }
    } else {
        return;
    };
    for version in kind.versions.iter_mut().filter(|version| *version.name == *FORMER) {
        version.conversion = Some(conversion);
    }
}

/// Turns an object, or what is said of one, into the version in which it is kept.
fn to_kept(kind: &KindId, body: &mut Value) -> Result<(), Unconvertible> {
    if *kind == export::kind() {
        schemas_to_kept(body)?;
    }
    for claims in claims_of(kind) {
        claims.to_kept(body);
    }
    Ok(())
}

/// Turns an object into `v1alpha1`.
fn to_former(kind: &KindId, body: &mut Value) {
    if *kind == export::kind() {
        schemas_to_former(body);
    }
    for claims in claims_of(kind) {
        claims.to_former(body);
    }
}

fn claims_of(kind: &KindId) -> &'static [Claims] {
    if *kind == export::kind() { &OF_EXPORTS } else { &OF_BINDINGS }
}

fn schemas_to_kept(body: &mut Value) -> Result<(), Unconvertible> {
    let Some(Value::Array(names)) = remove(body, ["spec", "latestResourceSchemas"]) else { return Ok(()) };
    let mut resources = Vec::new();
    for name in names.iter().filter_map(Value::as_str) {
        let parts: Vec<&str> = name.splitn(3, '.').collect();
        let [_, resource, group] = parts[..] else {
            return Err(Unconvertible::SchemaName(name.to_owned()));
        };
        let group = if group == "core" { "" } else { group };
        let storage = json!({ "crd": {} });
        resources.push(json!({ "group": group, "name": resource, "schema": name, "storage": storage }));
    }
    if let Some(Value::Array(others)) = take_note(body, RESOURCE_SCHEMAS) {
        resources.extend(others);
    }
    if !resources.is_empty() {
        body["spec"]["resources"] = resources.into();
    }
    Ok(())
}

fn schemas_to_former(body: &mut Value) {
    let Some(Value::Array(resources)) = remove(body, ["spec", "resources"]) else { return };
    let (stored, others): (Vec<Value>, Vec<Value>) =
        resources.into_iter().partition(|resource| resource["storage"].get("crd").is_some());
    note(body, RESOURCE_SCHEMAS, &others, &["name", "group", "schema", "storage"], true);
    if !stored.is_empty() {
        body["spec"]["latestResourceSchemas"] =
            stored.iter().map(|resource| resource["schema"].clone()).collect();
    }
}

impl Claims {
    /// The members of a claim, in the order in which kcp writes them down.
    const NEWER: [&'static str; 6] = ["group", "resource", "verbs", "identityHash", "selector", "state"];
    const OLDER: [&'static str; 6] =
        ["group", "resource", "all", "resourceSelector", "identityHash", "state"];

    fn to_kept(&self, body: &mut Value) {
        let Some(Value::Array(claims)) = remove(body, self.at) else { return };
        let named: Vec<Value> = claims
            .iter()
            .filter(|claim| {
                self.keeps_all || claim["resourceSelector"].as_array().is_some_and(|some| !some.is_empty())
            })
            .cloned()
            .collect();
        note(body, self.older, &named, &Self::OLDER, false);
        let more = take_note(body, self.newer).unwrap_or_default();
        let turned = claims.into_iter().map(|mut claim| {
            let all = claim["all"].as_bool().unwrap_or(false);
            drop_members(&mut claim, &["all", "resourceSelector"]);
            let known = more.as_array().into_iter().flatten().find(|known| is_same(known, &claim));
            // Whoever already speaks as `v1alpha2` does is taken by his word.
            if claim.get("verbs").is_none() {
                claim["verbs"] = known.map_or_else(|| json!(["*"]), |known| known["verbs"].clone());
            }
            if self.scoped && claim.get("selector").is_none() {
                let selector = known.map(|known| known["selector"].clone()).filter(|_| !all);
                claim["selector"] = selector.unwrap_or_else(|| json!({ "matchAll": true }));
            }
            claim
        });
        let [part, member] = self.at;
        body[part][member] = turned.collect();
    }

    fn to_former(&self, body: &mut Value) {
        let Some(Value::Array(claims)) = remove(body, self.at) else { return };
        let everything = |claim: &Value| {
            claim["verbs"] == json!(["*"]) && (!self.scoped || claim["selector"]["matchAll"] == true)
        };
        let more: Vec<Value> = claims.iter().filter(|claim| !everything(claim)).cloned().collect();
        note(body, self.newer, &more, &Self::NEWER, false);
        let former = take_note(body, self.older).unwrap_or_default();
        let turned = claims.into_iter().map(|mut claim| {
            if self.scoped && claim["selector"]["matchAll"] == true {
                claim["all"] = true.into();
            }
            drop_members(&mut claim, &["verbs", "selector"]);
            if let Value::Object(members) = &mut claim {
                members.retain(|_, value| *value != "");
            }
            if let Some(known) = former.as_array().into_iter().flatten().find(|known| is_same(known, &claim))
            {
                drop_members(&mut claim, &["all"]);
                for member in ["all", "resourceSelector"] {
                    if let Some(value) = known.get(member).filter(|value| **value != Value::Bool(false)) {
                        claim[member] = value.clone();
                    }
                }
            }
            claim
        });
        let [part, member] = self.at;
        body[part][member] = turned.collect();
    }
}

/// Whether two claims are about the same kind of the same owner.
fn is_same(one: &Value, other: &Value) -> bool {
    let text = |claim: &Value, member: &str| claim[member].as_str().unwrap_or_default().to_owned();
    ["group", "resource", "identityHash"].iter().all(|member| text(one, member) == text(other, member))
}

fn drop_members(of: &mut Value, names: &[&str]) {
    if let Value::Object(members) = of {
        members.retain(|name, _| !names.contains(&name.as_str()));
    }
}

fn remove(body: &mut Value, [part, member]: [&str; 2]) -> Option<Value> {
    body.get_mut(part)?.as_object_mut()?.remove(member)
}

/// Keeps values in an annotation, their members in this order, those that are empty if these are kept, too; without any
/// values nothing is kept.
fn note(body: &mut Value, annotation: &str, values: &[Value], members: &[&str], empty: bool) {
    if values.is_empty() {
        return;
    }
    let text = |value: &Value| {
        let parts = members.iter().filter_map(|member| Some((member, value.get(member)?)));
        let says = |part: &Value| match part {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => empty || !text.is_empty(),
            _ => true,
        };
        let said = parts.filter(|(_, part)| says(part));
        let said: Vec<String> = said.map(|(member, part)| format!("{member:?}:{part}")).collect();
        format!("{{{}}}", said.join(","))
    };
    let texts: Vec<String> = values.iter().map(text).collect();
    if !body["metadata"]["annotations"].is_object() {
        body["metadata"]["annotations"] = Value::Object(Map::new());
    }
    body["metadata"]["annotations"][annotation] = format!("[{}]", texts.join(",")).into();
}

/// Takes back what was kept in an annotation.
fn take_note(body: &mut Value, annotation: &str) -> Option<Value> {
    let annotations = body.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()?;
    let text = annotations.remove(annotation)?;
    if annotations.is_empty() {
        drop_members(&mut body["metadata"], &["annotations"]);
    }
    serde_json::from_str(text.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_reads_in_both_versions_and_comes_back_whole() {
        let kept = json!({
            "kind": "APIExport", "metadata": { "name": "boats" },
            "spec": {
                "resources": [
                    { "group": "sea.example", "name": "boats", "schema": "v1.boats.sea.example", "storage": { "crd": {} } },
                    { "group": "", "name": "pods", "schema": "v1.pods.core", "storage": { "virtual": { "reference": {} } } },
                ],
                "permissionClaims": [
                    { "resource": "secrets", "verbs": ["get", "list"] },
                    { "resource": "configmaps", "verbs": ["*"] },
                ],
            },
        });
        let mut body = kept.clone();
        to_former(&export::kind(), &mut body);
        assert_eq!(body["spec"]["latestResourceSchemas"], json!(["v1.boats.sea.example"]));
        assert_eq!(
            body["spec"]["permissionClaims"],
            json!([{ "resource": "secrets" }, { "resource": "configmaps" }])
        );
        assert!(body["spec"].get("resources").is_none());
        to_kept(&export::kind(), &mut body).unwrap();
        let annotations = body["metadata"].as_object_mut().unwrap().remove("annotations").unwrap();
        assert_eq!(
            annotations.as_object().unwrap().len(),
            1,
            "kcp keeps the claims in the older form: {annotations}"
        );
        assert_eq!(body, kept);
    }

    #[test]
    fn a_binding_of_the_former_version_names_objects_and_keeps_them() {
        let former = json!({
            "kind": "APIBinding", "metadata": { "name": "boats" },
            "spec": {
                "reference": { "export": { "name": "boats" } },
                "permissionClaims": [
                    { "resource": "secrets", "resourceSelector": [{ "name": "one" }], "state": "Accepted" },
                    { "resource": "configmaps", "all": true, "state": "Rejected" },
                ],
            },
        });
        let mut body = former.clone();
        to_kept(&binding::kind(), &mut body).unwrap();
        assert_eq!(
            body["spec"]["permissionClaims"],
            json!([
                { "resource": "secrets", "verbs": ["*"], "selector": { "matchAll": true }, "state": "Accepted" },
                { "resource": "configmaps", "verbs": ["*"], "selector": { "matchAll": true }, "state": "Rejected" },
            ])
        );
        to_former(&binding::kind(), &mut body);
        assert_eq!(body, former);
    }

    #[test]
    fn a_schema_that_does_not_say_its_kind_is_refused() {
        let mut body = json!({ "spec": { "latestResourceSchemas": ["boats"] } });
        let refused = to_kept(&export::kind(), &mut body).unwrap_err().to_string();
        assert_eq!(refused, "invalid schema \"boats\": must have at least 3 dot-separated segments");
    }
}
