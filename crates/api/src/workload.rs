//! `workload.kcp.io/v1alpha1` SyncTarget, in one schema for both of its histories.
//!
//! Classic kcp and its successor gave one group, version and kind two meanings. Objects of either must be
//! stored without losing a field, so the schema is the union, and no status field is required.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::edge::SyncedResourceKind;
use crate::{LabelSelector, Time, eviction};

/// A cluster that workloads of a workspace run in.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "workload.kcp.io",
    version = "v1alpha1",
    kind = "SyncTarget",
    plural = "synctargets",
    shortname = "st",
    category = "kcp",
    status = "SyncTargetStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Stands for one cluster that workloads are synced to.",
    printcolumn(
        name = "Location",
        type_ = "string",
        json_path = ".metadata.name",
        priority = 1,
        description = "the SyncTarget's name"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "whether its syncer is heard of"
    ),
    printcolumn(
        name = "Synced API resources",
        type_ = "string",
        json_path = ".status.syncedResources[*].resource",
        priority = 3,
        description = "the kinds that are synced"
    ),
    printcolumn(
        name = "Key",
        type_ = "string",
        json_path = ".metadata.labels.internal\\.workload\\.kcp\\.io/key",
        priority = 4,
        description = "what the target is called in labels of synced objects"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct SyncTargetSpec {
    /// Keeps new work away: nothing new is placed here, while what is here stays and follows its changes.
    #[serde(default)]
    pub unschedulable: bool,

    /// When work leaves: a time such as `2030-01-31T18:00:00Z`, or a duration such as `5m`, which counts from
    /// the moment the target became unschedulable. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = eviction::PATTERN))]
    pub evict_after: Option<String>,

    /// Which APIExports this cluster can run the objects of, or single resources of them.
    #[serde(default = "SupportedApiExport::defaults", rename = "supportedAPIExports")]
    pub supported_api_exports: Vec<SupportedApiExport>,

    /// Labels that say which SyncTargets behave as one cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cells: BTreeMap<String, String>,

    /// The cluster itself. For people and tools; the syncer brings its own credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_cluster: Option<WorkloadCluster>,

    /// What the cluster offers. For people and tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Capability>,

    /// Workspaces whose objects the cluster takes. For people and tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<WorkspaceReference>,
}

/// An APIExport, or one resource of it, that a cluster can run the objects of.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupportedApiExport {
    /// The workspace that holds the APIExport, as a path such as `root:compute`. Empty: this workspace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub path: String,

    /// Another word for `path`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub workspace: String,

    /// The APIExport's name.
    pub export: String,

    /// One resource of it, as `group/version/resource`, for example `apps/v1/deployments`; for the core group
    /// `v1/services`. Empty: all of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource: String,
}

impl SupportedApiExport {
    fn defaults() -> Vec<Self> {
        vec![Self { export: "kubernetes".to_owned(), ..Self::default() }]
    }
}

/// The cluster behind a SyncTarget.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadCluster {
    /// What the cluster is called.
    pub name: String,

    /// The URL of its API server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub endpoint: String,

    /// Where credentials for it can be found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

/// Where credentials for a cluster can be found.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// A Secret that holds a kubeconfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<NamespacedName>,

    /// A ServiceAccount of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_ref: Option<NamespacedName>,
}

/// Names an object in a namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedName {
    /// The object's name.
    pub name: String,

    /// Its namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Something that a cluster offers.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// What sort of capability, for example `compute`.
    #[serde(rename = "type")]
    pub type_: String,

    /// What is offered, for example `memory`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource: String,

    /// How much of it, for example `4000Gi`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub capacity: String,

    /// Whether it can be used now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<bool>,

    /// More about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// A workspace whose objects a cluster takes.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceReference {
    /// The workspace's name.
    pub name: String,

    /// The workspace's path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,

    /// Of the workspace's objects, only those whose labels match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// What is known about a cluster and its syncer.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncTargetStatus {
    /// What the cluster can still give to new work.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, Quantity>,

    /// What the cluster has in all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,

    /// Another word for `allocatable`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable_capacity: BTreeMap<String, Quantity>,

    /// What is observed about the cluster and its syncer. `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// The kinds that are synced, and whether the cluster can run them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub synced_resources: Vec<SyncedResourceKind>,

    /// The APIExports that are synced.
    #[serde(default, rename = "syncedAPIExports", skip_serializing_if = "Vec::is_empty")]
    pub synced_api_exports: Vec<SyncedApiExport>,

    /// When the syncer was last heard of, as classic kcp calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_syncer_heartbeat_time: Option<Time>,

    /// When the syncer was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_time: Option<Time>,

    /// When the syncer was last heard of, by its oldest name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_time: Option<Time>,

    /// The syncer's heartbeats, counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Heartbeat>,

    /// Tells one run of the syncer from another.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub syncer_identifier: String,

    /// How far the syncer has come with each kind, by resource version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_versions: BTreeMap<String, String>,

    /// How many objects are synced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_sync_status: Option<ResourceSyncStatus>,

    /// What the cluster says about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_info: Option<ClusterInfo>,

    /// Where the syncer finds its objects, one entry for each shard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub virtual_workspaces: Vec<VirtualWorkspace>,

    /// Where tunnels to the cluster begin, one entry for each shard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnel_workspaces: Vec<TunnelWorkspace>,
}

/// An APIExport that is synced.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncedApiExport {
    /// The APIExport's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub export: String,

    /// Whether all its kinds are synced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced: Option<bool>,

    /// When they last were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync_time: Option<Time>,

    /// What went wrong last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// A syncer's heartbeats, counted.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    /// How many there were since the syncer started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub count: Option<i64>,

    /// When the last one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat: Option<Time>,

    /// How many could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub errors: Option<i64>,
}

/// How many objects are synced.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSyncStatus {
    /// How many should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub total_resources: Option<i64>,

    /// How many are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub synced_resources: Option<i64>,

    /// How many could not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failed_resources: Option<i64>,

    /// When one last was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync_time: Option<Time>,
}

/// What a cluster says about itself.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterInfo {
    /// The version of Kubernetes that it runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,

    /// How many nodes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub nodes: Option<i64>,

    /// What they have in all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
}

/// Where a syncer finds its objects on one shard.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualWorkspace {
    /// The URL for objects that go to the cluster.
    #[serde(default, rename = "syncerURL", skip_serializing_if = "String::is_empty")]
    pub syncer_url: String,

    /// The URL for objects that come from the cluster.
    #[serde(default, rename = "upsyncerURL", skip_serializing_if = "String::is_empty")]
    pub upsyncer_url: String,

    /// The URL for both directions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,

    /// The logical cluster that it shows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub logical_cluster: String,
}

/// Where a tunnel to the cluster begins.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TunnelWorkspace {
    /// The URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
}
