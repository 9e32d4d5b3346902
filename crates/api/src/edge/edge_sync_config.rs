//! EdgeSyncConfig: the older way to tell a syncer what to carry, object by object.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::{DeliveryOptions, UpsyncOptions};
use crate::Time;
use crate::condition::Condition;

/// What is carried between a mailbox and its edge, by kind.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "edge.kubestellar.io",
    version = "v2alpha1",
    kind = "EdgeSyncConfig",
    plural = "edgesyncconfigs",
    shortname = "esc",
    category = "mailboat",
    status = "EdgeSyncConfigStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Tells the syncer of one edge cluster which objects to carry, one entry for each, and how they are converted. It is joined with all SyncerConfigs of the mailbox.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "whether every entry works"
    ),
    printcolumn(
        name = "Heartbeat",
        type_ = "date",
        json_path = ".status.lastSyncerHeartbeatTime",
        description = "how long ago the syncer was last heard of"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct EdgeSyncConfigSpec {
    /// Objects of the mailbox that go to the edge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub down_synced_resources: Vec<SyncedResource>,

    /// Objects at the edge that are brought to the mailbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub up_synced_resources: Vec<UpSyncedResource>,

    /// Objects that have another kind or name at the edge than in the mailbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversions: Vec<Conversion>,
}

/// A kind and, in it, one object or (by `*`) many.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KindAndName {
    /// The kind in CamelCase, for example `ConfigMap`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,

    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,

    /// The version without the group, for example `v1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,

    /// The object's name. `*`: all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,

    /// The object's namespace; empty for cluster-scoped kinds. `*`: all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Objects that go to the edge.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncedResource {
    /// Which objects.
    #[serde(flatten)]
    pub object: KindAndName,

    /// How they are carried.
    #[serde(flatten)]
    pub options: DeliveryOptions,
}

/// Objects that come from the edge.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpSyncedResource {
    /// Which objects.
    #[serde(flatten)]
    pub object: KindAndName,

    /// How they are carried.
    #[serde(flatten)]
    pub options: UpsyncOptions,
}

/// How one object is called on either side.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Conversion {
    /// Kind and name in the mailbox.
    pub upstream: KindAndName,

    /// Kind and name at the edge.
    pub downstream: KindAndName,
}

/// What the syncer says about an EdgeSyncConfig.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EdgeSyncConfigStatus {
    /// When the syncer last said that it is alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_syncer_heartbeat_time: Option<Time>,

    /// The `metadata.generation` that the rest of this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is observed about this configuration. An entry that cannot work is named by its path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
