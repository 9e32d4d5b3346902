//! `syncagent.kcp.io/v1alpha1` PublishedResource: a kind of a service cluster, offered in kcp.
//!
//! Fields and validation are those of kcp's api-syncagent, so that a cluster can be handed from one to the
//! other; what is added here stands in the status alone.

mod mutation;
mod related;

pub use mutation::{CelMutation, DeleteMutation, Mutation, MutationStep, RegexMutation, TemplateMutation};
pub use related::{
    LabelSelectorWithRewrite, NamespaceSource, ObjectSource, OwnerWatch, ReferenceSource, Regex, RelatedKind,
    RelatedOrigin, RelatedProjection, RelatedResource, RelatedWatch, Rewrite, TemplateExpression,
};

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LabelSelector;
use crate::condition::Condition;

/// What is published, and how it is synced.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "syncagent.kcp.io",
    version = "v1alpha1",
    kind = "PublishedResource",
    plural = "publishedresources",
    category = "mailboat",
    status = "PublishedResourceStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Offers a kind of this cluster in kcp: its schema becomes part of an APIExport, objects that consumers make in their workspaces are synced to this cluster, and their status is synced back.",
    printcolumn(
        name = "Kind",
        type_ = "string",
        json_path = ".spec.resource.kind",
        description = "the kind that is published"
    ),
    printcolumn(
        name = "Group",
        type_ = "string",
        json_path = ".spec.resource.apiGroup",
        description = "its API group in this cluster"
    ),
    printcolumn(
        name = "Schema",
        type_ = "string",
        json_path = ".status.resourceSchemaName",
        description = "the APIResourceSchema made from it"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "whether it is served in kcp"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct PublishedResourceSpec {
    /// The kind of this cluster that is published.
    pub resource: SourceResource,

    /// Which objects are synced. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<ResourceFilter>,

    /// How objects are called in this cluster. It is asked only when one is made: changing it moves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<ResourceNaming>,

    /// Whether templates may use the path of a consumer's workspace, and copies are annotated with it. This
    /// needs one more permission claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_workspace_paths: Option<bool>,

    /// How the kind is called in kcp. What is not set stays as it is in this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<ResourceProjection>,

    /// Changes made to objects on the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutation: Option<Mutation>,

    /// Other objects that belong to a published one and are synced with it, such as a Secret with credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub related: Vec<RelatedResource>,

    /// Whether objects are synced at all. Absent: they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synchronization: Option<Synchronization>,
}

/// A kind of the service cluster.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceResource {
    /// The API group; `""` is the core group.
    pub api_group: String,

    /// The kind, for example `Database`.
    pub kind: String,

    /// Publishes this version alone. Deprecated: use `versions`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,

    /// The versions that are published. Empty: all. Not to be combined with `version`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
}

/// Which objects are synced. Others are left alone without a word.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceFilter {
    /// The Namespace in kcp that an object is in must match by its labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<LabelSelector>,

    /// The object in kcp must match by its labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<LabelSelector>,
}

/// How objects are called in the service cluster. Both texts may be Go templates with `.Object` (the object in
/// kcp), `.ClusterName` and `.ClusterPath`; without `{{` the older placeholders `$remoteClusterName`,
/// `$remoteNamespace`, `$remoteNamespaceHash`, `$remoteName` and `$remoteNameHash` work.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceNaming {
    /// The name. Empty: `{{ .Object.metadata.namespace | sha3short }}-{{ .Object.metadata.name | sha3short }}`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,

    /// The namespace; not used for cluster-scoped kinds. Empty: `{{ .ClusterName }}`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// How a kind is called in kcp.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceProjection {
    /// The API group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,

    /// Renames the only published version. Deprecated: use `versions`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,

    /// New names for versions, by old name. Versions not named keep theirs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,

    /// Whether objects are cluster-scoped or in namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ResourceScope>,

    /// The kind. It also sets singular and plural, unless `plural` is given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,

    /// The lowercase plural.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plural: String,

    /// Short names. An empty list removes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_names: Option<Vec<String>>,

    /// Categories. An empty list removes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub categories: Option<Vec<String>>,
}

/// Whether objects are cluster-scoped or in namespaces: `Cluster` or `Namespaced`.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum ResourceScope {
    /// They are not.
    Cluster,
    /// They are.
    Namespaced,
}

/// Whether objects are synced.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Synchronization {
    /// `false`: the schema is published, but objects are not synced. Needed for a kind that travels as a
    /// related object of another PublishedResource, since two would fight over it.
    pub enabled: bool,
}

/// What became of a PublishedResource.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishedResourceStatus {
    /// The name of the APIResourceSchema in kcp that was made from it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource_schema_name: String,

    /// The `metadata.generation` that the rest of this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is observed about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
