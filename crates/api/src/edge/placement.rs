//! EdgePlacement: which objects of a workspace go to which edges.

use kube_core::Rule;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::{AwaitedConfirmation, ObjectReference, ValidationError};
use crate::LabelSelector;
use crate::condition::Condition;

/// What is to be placed, and where.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "edge.kubestellar.io",
    version = "v2alpha1",
    kind = "EdgePlacement",
    plural = "edgeplacements",
    shortname = "epl",
    category = "mailboat",
    status = "EdgePlacementStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Says which objects of this workspace go to which edge clusters, and what comes back from there.",
    printcolumn(
        name = "Locations",
        type_ = "integer",
        json_path = ".status.matchingLocationCount",
        description = "how many Locations match"
    ),
    printcolumn(
        name = "Objects",
        type_ = "integer",
        json_path = ".status.matchedObjectCount",
        description = "how many objects are selected"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "whether all that it selects is in its edges' mailboxes as it should be"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        priority = 1,
        description = "why it is not ready"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct EdgePlacementSpec {
    /// Which Locations the objects go to. A Location is matched if any of these selectors matches its labels,
    /// in whichever inventory workspace it stands. `{}` matches every Location; an empty list matches none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub location_selectors: Vec<LabelSelector>,

    /// Which objects of this workspace go there. An object is selected if any of these tests matches it. An
    /// empty list selects nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub downsync: Vec<DownsyncObjectTest>,

    /// Declares that each selected object goes to exactly one edge, and asks that the status reported there
    /// is written into the object in this workspace. The annotation `kubestellar.io/executing-count` shows
    /// to how many edges it really goes; status returns only while that is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub want_singleton_reported_state: Option<bool>,

    /// Which objects that come into being at the edges are brought to the center. An object that also matches
    /// `downsync` is only brought up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub upsync: Vec<UpsyncSet>,
}

/// A test of one object. Every criterion that is given must hold; a criterion left empty holds for anything.
/// At least one must be given.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    Rule::new(
        "has(self.apiGroup) || \
         (has(self.resources) && size(self.resources) > 0 && !('*' in self.resources)) || \
         (has(self.namespaces) && size(self.namespaces) > 0 && !('*' in self.namespaces)) || \
         (has(self.objectNames) && size(self.objectNames) > 0 && !('*' in self.objectNames)) || \
         (has(self.namespaceSelectors) && size(self.namespaceSelectors) > 0 && \
          self.namespaceSelectors.all(s, has(s.matchLabels) || has(s.matchExpressions))) || \
         (has(self.labelSelectors) && size(self.labelSelectors) > 0 && \
          self.labelSelectors.all(s, has(s.matchLabels) || has(s.matchExpressions)))"
    ).message("at least one criterion must narrow the selection: a test that matches every object is refused")
]))]
pub struct DownsyncObjectTest {
    /// The API group; `""` is the core group. Absent: any group. `*` is no wildcard here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub api_group: Option<String>,

    /// Lowercase plurals, for example `deployments`. Empty or `*`: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 253)))]
    pub resources: Vec<String>,

    /// Names of namespaces. Empty or `*`: any namespace, and cluster-scoped objects too. If names are given,
    /// cluster-scoped objects do not match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 253)))]
    pub namespaces: Vec<String>,

    /// The object's Namespace must match any of these by its labels. Empty: no matter. A cluster-scoped
    /// object is tested as if its namespace had no labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub namespace_selectors: Vec<LabelSelector>,

    /// Names of objects. Empty or `*`: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 512), inner(length(max = 253)))]
    pub object_names: Vec<String>,

    /// The object must match any of these by its own labels. Empty: no matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub label_selectors: Vec<LabelSelector>,
}

/// Objects at the edges that are brought to the center.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpsyncSet {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_group: String,

    /// Lowercase plurals, for example `policyreports`. `*`: all kinds of the group. Empty: none.
    pub resources: Vec<String>,

    /// Names of namespaces. `*`: all. Empty: none; for cluster-scoped kinds this does not matter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,

    /// Names of objects. `*`: all. Empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// What became of a placement.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EdgePlacementStatus {
    /// The `metadata.generation` that the rest of this status describes. 0 or absent: none yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub spec_generation: Option<i64>,

    /// How many Locations match `spec.locationSelectors`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub matching_location_count: Option<i32>,

    /// How many edges the objects go to. Two Locations may lead to the same edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub destination_count: Option<i32>,

    /// How many objects `spec.downsync` selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub matched_object_count: Option<i64>,

    /// What in the specification cannot work as written. The rest of it goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub validation_errors: Vec<ValidationError>,

    /// Objects that something else claims as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub conflicts: Vec<PlacementConflict>,

    /// Copies that are held back for one edge, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub held: Vec<HeldCopy>,

    /// Set while withdrawals are held until somebody confirms them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting_confirmation: Option<AwaitedConfirmation>,

    /// What is observed about this placement. `Ready` sums it up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// An object that this placement and something else both want in the same place.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementConflict {
    /// The object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectReference>,

    /// The name of the edge's SyncTarget; empty if it holds for all of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub edge: String,

    /// Who else wants it: `<workspace>:<placement>`, or what owns the object at the edge.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub with: String,

    /// Who wins and why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A copy that is not sent, or not changed, because it cannot be made right for its edge.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldCopy {
    /// The object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectReference>,

    /// The name of the edge's SyncTarget.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub edge: String,

    /// One word, in CamelCase, for example `MissingParameter`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,

    /// What is missing or wrong, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
