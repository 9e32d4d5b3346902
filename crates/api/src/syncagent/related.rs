//! Objects that belong to a published one and are synced with it.

use std::collections::BTreeMap;

use kube_core::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::mutation::Mutation;
use crate::{LabelSelector, LabelSelectorRequirement};

/// Objects that belong to a published one and are synced with it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    Rule::new("has(self.kind) != (has(self.version) || has(self.resource))")
        .message("kind must be given, or version and resource, but not both")
        .field_path(".kind"),
    Rule::new("has(self.resource) == has(self.version)")
        .message("resource and version must be given together")
        .field_path(".resource"),
    Rule::new("!has(self.group) || (has(self.resource) && has(self.version))")
        .message("group needs both resource and version")
        .field_path(".group"),
    Rule::new("!has(self.identityHash) || (has(self.group) && has(self.version) && has(self.resource))")
        .message("identityHash needs group, version and resource")
        .field_path(".identityHash"),
    Rule::new("!(self.origin == 'service' && has(self.syncStatus) && self.syncStatus) || has(self.watch)")
        .message("syncStatus with origin service needs watch")
        .field_path(".syncStatus")
]))]
pub struct RelatedResource {
    /// Names this entry within the PublishedResource, in letters and digits. It becomes part of an annotation.
    pub identifier: String,

    /// The side that holds the original; the copy is made on the other.
    pub origin: RelatedOrigin,

    /// `ConfigMap` or `Secret`. Deprecated: use `version` and `resource`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RelatedKind>,

    /// The API group on the side of the original; absent for the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub group: Option<String>,

    /// The version on the side of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub version: Option<String>,

    /// The lowercase plural on the side of the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub resource: Option<String>,

    /// The identity of the APIExport that the kind comes from in kcp, if it is another one. It stands in that
    /// APIExport's `status.identityHash`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub identity_hash: Option<String>,

    /// How the kind is called on the side of the copy, where that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<RelatedProjection>,

    /// How the originals are found and the copies are named.
    pub object: ObjectSource,

    /// Changes made to the objects on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutation: Option<Mutation>,

    /// Whether copies are deleted with the published object. Copies of originals in kcp always are; originals
    /// never are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<bool>,

    /// How changes of the originals are noticed. Absent: only when the published object changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<RelatedWatch>,

    /// Whether the status is copied as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_status: Option<bool>,
}

/// The side that holds an original.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RelatedOrigin {
    /// The service cluster.
    #[default]
    Service,
    /// The consumer's workspace in kcp.
    Kcp,
}

/// `ConfigMap` or `Secret`, of the core group. Deprecated: use `version` and `resource`.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum RelatedKind {
    /// `configmaps` of the core group.
    ConfigMap,
    /// `secrets` of the core group.
    Secret,
}

/// How a kind is called on the side of the copy.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelatedProjection {
    /// The API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,

    /// The version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// The lowercase plural.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

/// How originals are found and copies are named. One of reference, selector and template is to be set.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSource {
    /// Names stand in the published object itself, on both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceSource>,

    /// Originals are found by their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelectorWithRewrite>,

    /// Names are made by a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateExpression>,

    /// The same for namespaces. Absent: those of the published object on either side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<NamespaceSource>,
}

/// How the namespaces of originals and copies are found. One of the fields is to be set.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSource {
    /// Names stand in the published object itself, on both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceSource>,

    /// Namespaces are found by their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelectorWithRewrite>,

    /// Names are made by a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateExpression>,
}

/// Names that stand in the published object.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceSource {
    /// Where they stand: names and indices joined by dots; `#` for every element of a list.
    pub path: String,

    /// A change to each name found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<Regex>,
}

/// A change to a name by a regular expression.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Regex {
    /// A regular expression in RE2 syntax. Empty: the whole name is replaced.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pattern: String,

    /// What each match is replaced by. `$1` or `${1}` is what the first group matched.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replacement: String,
}

/// A Go template that makes a name. It sees `.Side` (`kcp` or `service`), `.Object` (the published object on
/// that side), `.ClusterName` and `.ClusterPath`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateExpression {
    /// The template.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
}

/// Finds originals by labels, and says how each copy is named. Keys and values of `matchLabels` may be Go
/// templates with `.LocalObject`, `.RemoteObject`, `.ClusterName` and `.ClusterPath`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LabelSelectorWithRewrite {
    /// Labels that the originals must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,

    /// Conditions on labels that the originals must meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,

    /// How the name of each original becomes the name of its copy.
    pub rewrite: Rewrite,
}

/// How one name becomes another. One of the fields is to be set.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rewrite {
    /// By a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<Regex>,

    /// By a template, which also sees `.Value` (the name found) and `.RelatedObject` (the original).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateExpression>,
}

/// How changes of originals are noticed. Exactly one of the fields must be set.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    Rule::new("has(self.byOwner) != has(self.bySelector)")
        .message("exactly one of byOwner and bySelector must be given")
]))]
pub struct RelatedWatch {
    /// The original has an owner reference to the published object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_owner: Option<OwnerWatch>,

    /// A change of any original wakes all published objects whose labels match. `{}`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_selector: Option<LabelSelector>,
}

/// Has no fields: write `byOwner: {}`.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub struct OwnerWatch {}
