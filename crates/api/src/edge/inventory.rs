//! The inventory: SyncTarget, an edge cluster, and Location, the name and labels that users choose it by.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::{LabelSelector, Time, eviction};

/// An edge cluster, as the inventory knows it.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[kube(
    group = "edge.kubestellar.io",
    version = "v2alpha1",
    kind = "SyncTarget",
    plural = "synctargets",
    category = "mailboat",
    status = "SyncTargetStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Stands for one edge cluster. The center makes a mailbox workspace for it, and the cluster's syncer carries between that mailbox and the cluster. Its UID, not its name, is its identity.",
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
        name = "Unschedulable",
        type_ = "boolean",
        json_path = ".spec.unschedulable",
        description = "whether new work stays away"
    ),
    printcolumn(
        name = "Synced API resources",
        type_ = "string",
        json_path = ".status.syncedResources[*].resource",
        priority = 3,
        description = "the kinds that are synced"
    ),
    printcolumn(
        name = "Heartbeat",
        type_ = "date",
        json_path = ".status.lastSyncerHeartbeatTime",
        description = "how long ago its syncer was last heard of, to within minutes"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct SyncTargetSpec {
    /// Keeps new work away: nothing new is placed here, while what is here stays and follows its changes.
    #[serde(default)]
    pub unschedulable: bool,

    /// When work leaves: a time such as `2030-01-31T18:00:00Z`, or a duration such as `30m`, which counts from
    /// the moment the target became unschedulable. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = eviction::PATTERN))]
    pub evict_after: Option<String>,

    /// Which APIExports this cluster can run the objects of.
    #[serde(default = "SupportedApiExport::defaults", rename = "supportedAPIExports")]
    pub supported_api_exports: Vec<SupportedApiExport>,

    /// Labels that say which SyncTargets behave as one cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cells: BTreeMap<String, String>,
}

/// An APIExport whose objects a cluster can run.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupportedApiExport {
    /// The workspace that holds the APIExport, as a path such as `root:compute`. Empty: this workspace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub path: String,

    /// The APIExport's name.
    pub export: String,
}

impl SupportedApiExport {
    fn defaults() -> Vec<Self> {
        vec![Self { path: String::new(), export: "kubernetes".to_owned() }]
    }
}

/// What is known about an edge cluster.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncTargetStatus {
    /// What the cluster can still give to new work.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, Quantity>,

    /// What the cluster has in all.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,

    /// What is observed about the cluster and its syncer. `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// The kinds that are synced, and whether the cluster can run them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub synced_resources: Vec<SyncedResourceKind>,

    /// When the syncer was last heard of. Written when a condition changes, and otherwise every few minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_syncer_heartbeat_time: Option<Time>,

    /// Where a syncer of classic kcp finds its objects, one entry for each shard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub virtual_workspaces: Vec<VirtualWorkspace>,
}

/// A kind that is synced with a cluster.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncedResourceKind {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,

    /// The lowercase plural.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource: String,

    /// The versions that are synced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,

    /// The identity of the APIExport that the kind comes from.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub identity_hash: String,

    /// Whether the cluster can run it: `Pending` while unknown, `Accepted` or `Incompatible`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<ResourceState>,
}

/// Whether the cluster can run it: `Pending` while unknown, `Accepted` or `Incompatible`.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum ResourceState {
    /// Not known yet.
    #[default]
    Pending,
    /// It can.
    Accepted,
    /// It cannot.
    Incompatible,
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
}

/// A place that work can be sent to.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "edge.kubestellar.io",
    version = "v2alpha1",
    kind = "Location",
    plural = "locations",
    category = "mailboat",
    status = "LocationStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A place that work can be sent to. EdgePlacements choose it by its labels; its labels and annotations are the parameters for customization; and it selects the SyncTargets of its own workspace that work really goes to.",
    printcolumn(
        name = "Resource",
        type_ = "string",
        json_path = ".spec.resource.resource",
        priority = 1,
        description = "what it selects"
    ),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableInstances",
        description = "how many of them are ready and schedulable"
    ),
    printcolumn(
        name = "Instances",
        type_ = "integer",
        json_path = ".status.instances",
        description = "how many it selects"
    ),
    printcolumn(
        name = "Labels",
        type_ = "string",
        json_path = ".metadata.labels",
        priority = 1,
        description = "what EdgePlacements choose it by"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct LocationSpec {
    /// What this Location selects. Only SyncTargets of `edge.kubestellar.io/v2alpha1` can be.
    pub resource: GroupVersionResource,

    /// What this place is, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,

    /// Labels that users may choose among, with what they mean. For people only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    pub available_selector_labels: Vec<AvailableSelectorLabel>,

    /// Selects SyncTargets of this workspace by their labels. `{}`: all of them. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_selector: Option<LabelSelector>,
}

/// The one kind that a Location can select.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupVersionResource {
    /// The API group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["edge.kubestellar.io"]))]
    pub group: String,

    /// The version.
    #[schemars(extend("enum" = ["v2alpha1"]))]
    pub version: String,

    /// The lowercase plural.
    #[schemars(extend("enum" = ["synctargets"]))]
    pub resource: String,
}

impl Default for GroupVersionResource {
    fn default() -> Self {
        Self {
            group: "edge.kubestellar.io".to_owned(),
            version: "v2alpha1".to_owned(),
            resource: "synctargets".to_owned(),
        }
    }
}

/// A label that users may choose a Location by.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailableSelectorLabel {
    /// The label's key.
    #[schemars(length(min = 1, max = 255))]
    pub key: String,

    /// Its values.
    #[schemars(length(min = 1), inner(length(max = 63)), extend("x-kubernetes-list-type" = "set"))]
    pub values: Vec<String>,

    /// What choosing one means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// What is behind a Location.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocationStatus {
    /// How many SyncTargets it selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub instances: Option<i32>,

    /// How many of them are ready and schedulable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub available_instances: Option<i32>,
}
