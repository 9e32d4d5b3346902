//! `scheduling.kcp.io/v1alpha1` Location, the second source of inventory.
//!
//! Its sibling Placement is not served: it picks one target, where an EdgePlacement reaches all that match,
//! and nothing here would act on it.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LabelSelector;
pub use crate::edge::{AvailableSelectorLabel, LocationStatus};

/// A place that work can be sent to.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "scheduling.kcp.io",
    version = "v1alpha1",
    kind = "Location",
    plural = "locations",
    category = "kcp",
    status = "LocationStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A place that work can be sent to. EdgePlacements choose it by its labels; it selects the SyncTargets of `workload.kcp.io` in its own workspace that work really goes to.",
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
        json_path = ".metadata.annotations.scheduling\\.kcp\\.io/labels",
        description = "what EdgePlacements choose it by"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct LocationSpec {
    /// What this Location selects. Only SyncTargets of `workload.kcp.io/v1alpha1` can be.
    pub resource: GroupVersionResource,

    /// What this place is, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,

    /// Labels that users may choose among, with what they mean. For people only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    pub available_selector_labels: Vec<AvailableSelectorLabel>,

    /// Selects SyncTargets of this workspace by their labels. `{}`, the default: all of them.
    #[serde(default)]
    pub instance_selector: LabelSelector,
}

/// The one kind that a Location can select.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupVersionResource {
    /// The API group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["workload.kcp.io"]))]
    pub group: String,

    /// The version.
    #[schemars(extend("enum" = ["v1alpha1"]))]
    pub version: String,

    /// The lowercase plural.
    #[schemars(extend("enum" = ["synctargets"]))]
    pub resource: String,
}

impl Default for GroupVersionResource {
    fn default() -> Self {
        Self {
            group: "workload.kcp.io".to_owned(),
            version: "v1alpha1".to_owned(),
            resource: "synctargets".to_owned(),
        }
    }
}
