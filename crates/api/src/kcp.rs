//! What is read from kcp: plain types that take the fields needed and ignore all others.
//!
//! kcp owns these kinds; nothing here is served or generated. APIBindings and APIExports are read in
//! v1alpha1 and v1alpha2 alike, since the fields used are the same in both.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;

/// `tenancy.kcp.io/v1alpha1`: a workspace, as its parent shows it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Workspace {
    /// Name, UID and so on.
    pub metadata: ObjectMeta,
    /// What was asked for, and what kcp assigned.
    pub spec: WorkspaceSpec,
    /// How far it is.
    pub status: WorkspaceStatus,
}

/// What was asked for, and what kcp assigned.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkspaceSpec {
    /// The id of the logical cluster behind it; empty until it is scheduled.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// The URL that it is reached at.
    #[serde(rename = "URL", skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// How far a workspace or logical cluster is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkspaceStatus {
    /// `Scheduling`, `Initializing`, `Ready`, `Unavailable`, `Terminating` or `Deleting`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// For whom it waits while it is `Initializing`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub initializers: Vec<String>,
    /// What is observed about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// `core.kcp.io/v1alpha1`: a workspace, as seen from within; always named `cluster`.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct LogicalCluster {
    /// Name, UID, and the annotations with the cluster's id and path.
    pub metadata: ObjectMeta,
    /// How far it is.
    pub status: WorkspaceStatus,
}

/// `apis.kcp.io`: makes an export's kinds served in a workspace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiBinding {
    /// Name, UID and so on.
    pub metadata: ObjectMeta,
    /// What was asked for.
    pub spec: ApiBindingSpec,
    /// What is served.
    pub status: ApiBindingStatus,
}

/// What an APIBinding asks for.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiBindingSpec {
    /// Which export; immutable.
    pub reference: BindingReference,
    /// Which of the export's claims are accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permission_claims: Vec<PermissionClaim>,
}

/// Where an export is.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct BindingReference {
    /// The export.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<ExportReference>,
}

/// An export in a workspace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct ExportReference {
    /// The workspace's path or id; empty for the same workspace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The export's name.
    pub name: String,
}

/// A right over another kind: asked for by an export, accepted or rejected by a binding.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PermissionClaim {
    /// The API group; empty for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The lowercase plural.
    pub resource: String,
    /// The identity of the export that the kind comes from; empty for kinds that kcp serves itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub identity_hash: String,
    /// What may be done. Absent in v1alpha1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<String>,
    /// `Accepted` or `Rejected`; on bindings only.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Which objects; on bindings of v1alpha2 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<ClaimSelector>,
    /// Whether all objects are meant; v1alpha1 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
}

/// Which objects a claim is about.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimSelector {
    /// All of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_all: Option<bool>,
    /// Those with these labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<Value>,
    /// Those whose labels meet these conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_expressions: Option<Value>,
}

/// What an APIBinding really serves.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiBindingStatus {
    /// `Binding` or `Bound`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,
    /// The kinds that are served.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bound_resources: Vec<BoundResource>,
    /// The claims that the export makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub export_permission_claims: Vec<PermissionClaim>,
    /// The claims that are in force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied_permission_claims: Vec<PermissionClaim>,
    /// What is observed about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A kind that a binding serves.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct BoundResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The lowercase plural.
    pub resource: String,
    /// The schema in force.
    pub schema: BoundSchema,
    /// Versions that objects are or were stored in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage_versions: Vec<String>,
}

/// The schema of a bound kind.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct BoundSchema {
    /// The APIResourceSchema's name.
    pub name: String,
    /// Its UID. When it changes, watches opened before must be opened anew.
    #[serde(rename = "UID")]
    pub uid: String,
    /// The export's identity. When it changes, the objects are others.
    pub identity_hash: String,
}

/// `apis.kcp.io`: offers kinds to other workspaces.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiExport {
    /// Name, UID and so on.
    pub metadata: ObjectMeta,
    /// What is offered.
    pub spec: ApiExportSpec,
    /// What became of it.
    pub status: ApiExportStatus,
}

/// What an APIExport offers.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiExportSpec {
    /// The kinds, as v1alpha2 lists them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ExportedResource>,
    /// Names of APIResourceSchemas, as v1alpha1 lists them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latest_resource_schemas: Vec<String>,
    /// Rights over other kinds that the export asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permission_claims: Vec<PermissionClaim>,
    /// Where the identity stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<ExportIdentity>,
}

/// A kind that an APIExport offers.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct ExportedResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The lowercase plural.
    pub name: String,
    /// The APIResourceSchema's name.
    pub schema: String,
}

/// Where an export's identity stands.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct ExportIdentity {
    /// The Secret that holds it. Its content is never read here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretReference>,
}

/// Names a Secret.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct SecretReference {
    /// The Secret's namespace.
    pub namespace: String,
    /// The Secret's name.
    pub name: String,
}

/// What became of an APIExport.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiExportStatus {
    /// The hash of its identity, by which objects of its kinds are told from namesakes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub identity_hash: String,
    /// What is observed about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// `apis.kcp.io/v1alpha1`: where an export's view is reached.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiExportEndpointSlice {
    /// Name, UID and so on.
    pub metadata: ObjectMeta,
    /// Which export.
    pub spec: ApiExportEndpointSliceSpec,
    /// Where its view is reached.
    pub status: ApiExportEndpointSliceStatus,
}

/// Which export an endpoint slice is about.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiExportEndpointSliceSpec {
    /// The export.
    pub export: ExportReference,
}

/// Where an export's view is reached.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiExportEndpointSliceStatus {
    /// One for each shard on which the export is bound.
    #[serde(skip_serializing_if = "Vec::is_empty", alias = "apiExportEndpoints")]
    pub endpoints: Vec<Endpoint>,
    /// What is observed about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// One endpoint of a view.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(default, rename_all = "camelCase")]
pub struct Endpoint {
    /// The URL; `/clusters/*` and `/clusters/<id>` follow.
    pub url: String,
}

/// `apis.kcp.io/v1alpha1`: the schema of one kind; immutable.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiResourceSchema {
    /// Name (`<prefix>.<plural>.<group or core>`), UID and so on.
    pub metadata: ObjectMeta,
    /// The kind.
    pub spec: ApiResourceSchemaSpec,
}

/// The kind that an APIResourceSchema describes.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiResourceSchemaSpec {
    /// The API group; empty for the core group.
    pub group: String,
    /// What it is called.
    pub names: ResourceNames,
    /// `Cluster` or `Namespaced`.
    pub scope: String,
    /// Its versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ApiResourceVersion>,
}

/// What a kind is called.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceNames {
    /// The kind.
    pub kind: String,
    /// The kind of its list.
    pub list_kind: String,
    /// The lowercase plural.
    pub plural: String,
    /// The lowercase singular.
    pub singular: String,
    /// Short names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<String>,
    /// Categories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

/// One version of a kind.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ApiResourceVersion {
    /// The version's name.
    pub name: String,
    /// Whether it is served.
    pub served: bool,
    /// Whether objects are stored in it.
    pub storage: bool,
    /// The OpenAPI schema, not interpreted here.
    pub schema: Value,
    /// Subresources, not interpreted here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresources: Option<Value>,
}
