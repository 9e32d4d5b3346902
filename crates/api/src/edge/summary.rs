//! StatusSummary: how the copies of an EdgePlacement's objects are, all edges together.
//!
//! Every list is bounded and says what it left out, so that a summary stays far below the size limit of an
//! object whatever the number of edges.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::ObjectReference;
use crate::Time;
use crate::condition::Condition;

/// What a summary is about.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[kube(
    group = "edge.kubestellar.io",
    version = "v2alpha1",
    kind = "StatusSummary",
    plural = "statussummaries",
    category = "mailboat",
    status = "StatusSummaryStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Sums up how the copies of an EdgePlacement's objects are at all edges. Written by the center: one for each EdgePlacement, and one more for each Summarizer that selects it.",
    printcolumn(
        name = "Placement",
        type_ = "string",
        json_path = ".spec.placementName",
        description = "the EdgePlacement summarized"
    ),
    printcolumn(
        name = "Summarizer",
        type_ = "string",
        json_path = ".spec.summarizerName",
        priority = 1,
        description = "the Summarizer that asked for it"
    ),
    printcolumn(
        name = "Wanted",
        type_ = "integer",
        json_path = ".status.totals.wanted",
        description = "how many copies there should be"
    ),
    printcolumn(
        name = "Delivered",
        type_ = "integer",
        json_path = ".status.totals.delivered",
        description = "how many are at their edges"
    ),
    printcolumn(
        name = "Current",
        type_ = "integer",
        json_path = ".status.totals.current",
        description = "how many have the present content"
    ),
    printcolumn(
        name = "Healthy",
        type_ = "integer",
        json_path = ".status.totals.healthy",
        description = "how many do what they should"
    ),
    printcolumn(
        name = "Broken",
        type_ = "integer",
        json_path = ".status.totals.broken",
        description = "how many do not"
    ),
    printcolumn(
        name = "Stale",
        type_ = "integer",
        json_path = ".status.totals.stale",
        description = "how many are at edges not heard of lately"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct StatusSummarySpec {
    /// The name of the EdgePlacement.
    #[schemars(length(min = 1, max = 253))]
    pub placement_name: String,

    /// The name of the Summarizer that asked for this summary. Empty: it is the one that every EdgePlacement
    /// has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub summarizer_name: String,
}

/// The summary.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusSummaryStatus {
    /// When this was last computed anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Time>,

    /// All copies of all objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub totals: Option<CopyCounts>,

    /// The same for each kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub kinds: Vec<KindSummary>,

    /// How many kinds are left out above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub kinds_omitted: Option<i64>,

    /// The same for each workload object; those with broken or missing copies come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub objects: Vec<ObjectSummary>,

    /// How many objects are left out above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub objects_omitted: Option<i64>,

    /// The same for each value of each label that the Locations bear.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub labels: Vec<LabelSummary>,

    /// How many label values are left out above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub labels_omitted: Option<i64>,

    /// What the Summarizer's groupers gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub groupings: Vec<Grouping>,

    /// Broken copies, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub broken: Vec<BrokenCopy>,

    /// How many broken copies are left out above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub broken_omitted: Option<i64>,

    /// What is observed about this summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// How copies are.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CopyCounts {
    /// How many there should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub wanted: Option<i64>,

    /// How many are at their edges, in whatever generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub delivered: Option<i64>,

    /// How many are there in the present generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub current: Option<i64>,

    /// How many are at edges that were not heard of within the staleness threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub stale: Option<i64>,

    /// How many do what they should, by what they report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub healthy: Option<i64>,

    /// How many do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub broken: Option<i64>,
}

/// The copies of all objects of one kind.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KindSummary {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,

    /// The lowercase plural.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource: String,

    /// How they are.
    #[serde(flatten)]
    pub counts: CopyCounts,
}

/// The copies of one object.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSummary {
    /// Which object.
    #[serde(flatten)]
    pub object: ObjectReference,

    /// How its copies are.
    #[serde(flatten)]
    pub counts: CopyCounts,
}

/// The copies at all Locations that bear one label value.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSummary {
    /// The label's key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,

    /// The label's value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,

    /// How they are.
    #[serde(flatten)]
    pub counts: CopyCounts,
}

/// What one grouper gave.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grouping {
    /// The grouper's name.
    pub name: String,

    /// The groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub groups: Vec<Group>,

    /// How many groups are left out above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub groups_omitted: Option<i64>,
}

/// One group of copies.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// What its copies have in common.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub grouped_by: Vec<GroupedBy>,

    /// What was computed over them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub aggregates: Vec<Aggregate>,
}

/// A value that the copies of a group have in common.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupedBy {
    /// What it is called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,

    /// The value, as text; `null` if the expression gave none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub value: String,
}

/// A result over the copies of a group.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Aggregate {
    /// What it is called.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,

    /// The number, in decimal; empty if no copy had one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub value: String,
}

/// A copy that does not do what it should.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrokenCopy {
    /// Which object.
    #[serde(flatten)]
    pub object: ObjectReference,

    /// The name of the Location of its edge.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub edge: String,

    /// One word, in CamelCase, that a program can tell the cause by.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,

    /// The cause in a sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub message: String,

    /// Since when it is known to be broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}
