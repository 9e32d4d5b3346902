//! SyncerConfig: what one edge's syncer carries, and what it says about having done so.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edge_sync_config::Conversion;
use super::options::{DeliveryOptions, UpsyncOptions};
use super::placement::UpsyncSet;
use super::reference::{AwaitedConfirmation, ObjectReference};
use crate::Time;
use crate::condition::Condition;

/// What is carried between a mailbox and its edge.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "edge.kubestellar.io",
    version = "v2alpha1",
    kind = "SyncerConfig",
    plural = "syncerconfigs",
    shortname = "escfg",
    category = "mailboat",
    status = "SyncerConfigStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Tells the syncer of one edge cluster which objects of its mailbox to carry there and which to bring back. The center writes the one named `the-one`; a syncer follows all that stand in its mailbox, joined together.",
    printcolumn(
        name = "Delivered",
        type_ = "integer",
        json_path = ".status.counts.delivered",
        description = "how many objects are at the edge as wanted"
    ),
    printcolumn(
        name = "Waiting",
        type_ = "integer",
        json_path = ".status.counts.waiting",
        description = "how many are still on their way"
    ),
    printcolumn(
        name = "Refused",
        type_ = "integer",
        json_path = ".status.counts.refused",
        description = "how many the edge refused"
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
pub struct SyncerConfigSpec {
    /// Whole kinds in whole namespaces: every object of the listed kinds in the listed namespaces goes to the
    /// edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_scope: Option<NamespaceScope>,

    /// Namespaced objects, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaced_objects: Vec<NamespacedObjectsEntry>,

    /// Cluster-scoped objects, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_scope: Vec<ClusterScopeEntry>,

    /// Objects at the edge that are brought to the mailbox. An object that is also named above is only
    /// brought up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upsync: Vec<UpsyncEntry>,

    /// Objects that have another kind or name at the edge than in the mailbox.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversions: Vec<Conversion>,
}

/// Namespaces, and the kinds that are carried from all of them.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceScope {
    /// Names of namespaces. They come to exist at the edge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,

    /// Kinds; all their objects in these namespaces are carried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<NamespaceScopeResource>,
}

/// One kind of a [`NamespaceScope`].
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceScopeResource {
    /// The API group; `""` is the core group.
    pub group: String,

    /// The lowercase plural, for example `deployments`.
    #[schemars(length(min = 1))]
    pub resource: String,

    /// The version without the group, for example `v1`.
    #[schemars(length(min = 1))]
    pub api_version: String,

    /// How they are carried.
    #[serde(flatten)]
    pub options: DeliveryOptions,
}

/// Objects of one namespaced kind.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedObjectsEntry {
    /// The API group; `""` is the core group.
    pub group: String,

    /// The lowercase plural, for example `deployments`.
    #[schemars(length(min = 1))]
    pub resource: String,

    /// The version without the group, for example `v1`.
    #[schemars(length(min = 1))]
    pub api_version: String,

    /// Which objects, by namespace. Empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects_by_namespace: Vec<ObjectsInNamespace>,

    /// How they are carried.
    #[serde(flatten)]
    pub options: DeliveryOptions,
}

/// Objects of one kind in one namespace.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectsInNamespace {
    /// The namespace's name.
    #[schemars(length(min = 1))]
    pub namespace: String,

    /// The objects' names. `*`: all in this namespace. Empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// Objects of one cluster-scoped kind.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterScopeEntry {
    /// The API group; `""` is the core group.
    pub group: String,

    /// The lowercase plural, for example `namespaces`.
    #[schemars(length(min = 1))]
    pub resource: String,

    /// The version without the group, for example `v1`.
    #[schemars(length(min = 1))]
    pub api_version: String,

    /// The objects' names. `*`: all of the kind. Empty or absent: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<String>,

    /// How they are carried.
    #[serde(flatten)]
    pub options: DeliveryOptions,
}

/// Objects that are brought from the edge to the mailbox.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpsyncEntry {
    /// Which objects.
    #[serde(flatten)]
    pub set: UpsyncSet,

    /// How they are carried.
    #[serde(flatten)]
    pub options: UpsyncOptions,
}

/// What the syncer did. It is written on change and with each heartbeat, never once per object.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncerConfigStatus {
    /// When the syncer last said that it is alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_syncer_heartbeat_time: Option<Time>,

    /// The `metadata.generation` that the rest of this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The resource version of the mailbox up to which everything is delivered, apart from what `notCurrent`
    /// lists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub delivered_resource_version: String,

    /// The same for each kind by itself, by `resource.group`. A kind's own version is known as soon as its objects are
    /// delivered; that of the whole mailbox only when the server says of all the others that nothing happened to them,
    /// once a minute. It holds for what the generation in `observedGeneration` selects.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub delivered_kinds: BTreeMap<String, String>,

    /// How many objects are where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<DeliveryCounts>,

    /// Objects whose copy at the edge is not what it should be, with the reason; at most 200 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub not_current: Vec<NotCurrentObject>,

    /// How many more there are than `notCurrent` has room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub not_current_omitted: Option<i64>,

    /// Set while withdrawals are held until somebody confirms them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting_confirmation: Option<AwaitedConfirmation>,

    /// What is observed about this configuration. An entry that cannot work is named by its path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// How many objects are where.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryCounts {
    /// At the edge, as wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub delivered: Option<i64>,

    /// On their way, or waiting for something such as a CRD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub waiting: Option<i64>,

    /// Refused by the edge, or in conflict with something there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub refused: Option<i64>,
}

/// An object whose copy at the edge is not what it should be.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotCurrentObject {
    /// Which object of the mailbox.
    #[serde(flatten)]
    pub object: ObjectReference,

    /// The generation that should be at the edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,

    /// The generation that was last delivered there; absent if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_generation: Option<i64>,

    /// Whether it waits, was refused, or is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<NotCurrentState>,

    /// One word, in CamelCase, that a program can tell the cause by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,

    /// The cause in a sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// Why the copy is not current: `Waiting` if it is on its way or waits for something that will come, `Refused` if
/// the edge does not accept it, `Held` until somebody decides.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum NotCurrentState {
    /// On its way, or waiting for something that will come.
    Waiting,
    /// The edge does not accept it.
    Refused,
    /// Held until somebody decides.
    Held,
}
