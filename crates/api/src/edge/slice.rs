//! SinglePlacementSlice: where the objects of an EdgePlacement go, worked out.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

/// The top-level fields of a SinglePlacementSlice, which has no `spec`.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[kube(
    group = "edge.kubestellar.io",
    version = "v2alpha1",
    kind = "SinglePlacementSlice",
    plural = "singleplacementslices",
    shortname = "sps",
    category = "mailboat",
    no_spec,
    status = "SinglePlacementSliceStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Lists edges that an EdgePlacement's objects go to. Written by the center, which repairs edits. The first slice of a placement has its name; further ones bear the same label `edge.kubestellar.io/source-placement`.",
    printcolumn(
        name = "Placement",
        type_ = "string",
        json_path = ".metadata.labels.edge\\.kubestellar\\.io/source-placement",
        description = "the EdgePlacement that this belongs to"
    ),
    printcolumn(
        name = "Targets",
        type_ = "string",
        json_path = ".destinations[*].syncTargetName",
        priority = 1,
        description = "the SyncTargets listed"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct SinglePlacementSliceFields {
    /// The edges, one entry each.
    #[schemars(length(max = 5000))]
    pub destinations: Vec<SinglePlacement>,
}

/// One edge: a SyncTarget, and the Location that led to it.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SinglePlacement {
    /// The id of the logical cluster (workspace) that holds both the Location and the SyncTarget.
    pub cluster: String,

    /// The name of the Location. Its labels and annotations are the parameters for customization.
    pub location_name: String,

    /// The name of the SyncTarget.
    pub sync_target_name: String,

    /// The UID of the SyncTarget, which tells it from an earlier one of the same name.
    #[serde(rename = "syncTargetUID")]
    pub sync_target_uid: String,
}

/// What is observed about a slice.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SinglePlacementSliceStatus {
    /// What is observed about this slice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
