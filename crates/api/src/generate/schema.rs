//! The schema of one kind, on its way from wherever it came to an APIResourceSchema.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{GenerateError, to_value, yaml};
use crate::names::annotation;

/// Says to kcp and Kubernetes that a schema in a protected group is meant to be there. The value must be a
/// URL; for kinds of Kubernetes itself, it leads to where those are defined.
const APPROVED_BY: &str = "https://github.com/kubernetes/kubernetes";

/// The schema of one kind in one version.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSchema {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, which is both served and stored.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The lowercase plural.
    pub plural: String,
    /// The lowercase singular.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories.
    pub categories: Vec<String>,
    /// Whether objects are in namespaces.
    pub scope: Scope,
    /// The structural OpenAPI schema.
    pub schema: Value,
    /// Subresources, as a CRD declares them; null if there are none.
    pub subresources: Value,
    /// Printed columns, as a CRD declares them.
    pub columns: Vec<Value>,
    /// Whether names may hold anything that fits into a path segment, such as `kyverno:admin`.
    pub any_path_segment_as_name: bool,
}

/// Whether objects of a kind are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// They are not.
    Cluster,
    /// They are.
    Namespaced,
}

impl Scope {
    /// As CRDs and APIResourceSchemas write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Namespaced => "Namespaced",
        }
    }
}

impl ResourceSchema {
    /// Takes over what a CRD with one version says.
    pub(super) fn from_crd(crd: &CustomResourceDefinition) -> Result<Self, GenerateError> {
        let names = &crd.spec.names;
        let version = crd.spec.versions.first().ok_or_else(|| GenerateError::Missing {
            group_version: crd.spec.group.clone(),
            what: format!("a version of {}", names.kind),
        })?;
        let json = to_value("a CRD's version", version)?;
        Ok(Self {
            group: crd.spec.group.clone(),
            version: version.name.clone(),
            kind: names.kind.clone(),
            plural: names.plural.clone(),
            singular: names.singular.clone().unwrap_or_else(|| names.kind.to_lowercase()),
            short_names: names.short_names.clone().unwrap_or_default(),
            categories: names.categories.clone().unwrap_or_default(),
            scope: if crd.spec.scope == "Namespaced" { Scope::Namespaced } else { Scope::Cluster },
            schema: json["schema"]["openAPIV3Schema"].clone(),
            subresources: json["subresources"].clone(),
            columns: json["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
            any_path_segment_as_name: false,
        })
    }

    /// `<plural>.<group>`, with `core` for the core group.
    pub fn full_resource(&self) -> String {
        let group = if self.group.is_empty() { "core" } else { &self.group };
        format!("{}.{group}", self.plural)
    }

    /// The name of the APIResourceSchema: `h<hash of its spec>.<plural>.<group>`.
    ///
    /// APIResourceSchemas cannot be changed; a hash keeps the name of one that did not change and gives a new
    /// name to one that did.
    pub fn name(&self) -> String {
        let digest = Sha256::digest(yaml::canonical_json(&self.spec()));
        let hash = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
        format!("h{hash:08x}.{}", self.full_resource())
    }

    /// The APIResourceSchema (`apis.kcp.io/v1alpha1`).
    pub fn to_api_resource_schema(&self) -> Value {
        let mut metadata = json!({ "name": self.name() });
        if self.needs_approval() {
            metadata["annotations"] = json!({ annotation::API_APPROVED: APPROVED_BY });
        }
        json!({
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIResourceSchema",
            "metadata": metadata,
            "spec": self.spec(),
        })
    }

    /// Groups under `k8s.io` and `kubernetes.io` belong to Kubernetes and are refused without an approval.
    fn needs_approval(&self) -> bool {
        ["k8s.io", "kubernetes.io"]
            .iter()
            .any(|owner| self.group == *owner || self.group.ends_with(&format!(".{owner}")))
    }

    fn spec(&self) -> Value {
        let mut names = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": self.singular,
        });
        if !self.short_names.is_empty() {
            names["shortNames"] = json!(self.short_names);
        }
        if !self.categories.is_empty() {
            names["categories"] = json!(self.categories);
        }
        // kcp demands `subresources`, if only empty.
        let subresources =
            if self.subresources.is_null() { Value::Object(Map::new()) } else { self.subresources.clone() };
        let mut version = json!({
            "name": self.version,
            "served": true,
            "storage": true,
            "schema": self.schema,
            "subresources": subresources,
        });
        if !self.columns.is_empty() {
            version["additionalPrinterColumns"] = json!(self.columns);
        }
        let mut spec = json!({
            "group": self.group,
            "names": names,
            "scope": self.scope.as_str(),
            "versions": [version],
        });
        if self.any_path_segment_as_name {
            spec["nameValidation"] = json!("PathSegmentName");
        }
        spec
    }
}
