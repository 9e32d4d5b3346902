//! Summarizer: groupings and aggregates of one's own over the copies of placed objects.

use kube_core::Rule;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reference::ValidationError;
use crate::LabelSelector;
use crate::condition::Condition;

/// What is summarized, and how.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[kube(
    group = "edge.kubestellar.io",
    version = "v2alpha1",
    kind = "Summarizer",
    plural = "summarizers",
    category = "mailboat",
    status = "SummarizerStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Adds groupings and aggregates of your own to what is reported about the copies of placed objects. The results stand in a StatusSummary for each EdgePlacement that is selected. Expressions are in CEL and see one copy at a time: `object` (the copy at the edge), `status` (its status, empty if it has none), `edge` (`name`, `labels` and `annotations` of its Location), `syncerStatus` (`exists`, `current`, `stale`) and `age` (how long ago its edge was last heard of, in seconds).",
    printcolumn(
        name = "Placements",
        type_ = "integer",
        json_path = ".status.placementCount",
        description = "how many EdgePlacements it summarizes"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "whether all its expressions work"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct SummarizerSpec {
    /// Which EdgePlacements of this workspace to summarize, by their labels. `{}`: all. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_selector: Option<LabelSelector>,

    /// Which of the placed objects to look at. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub subjects: Vec<SummarySubject>,

    /// Ways to sort copies into groups and to compute something for each group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub groupers: Vec<Grouper>,

    /// After how many seconds without word from its edge a copy counts as stale. Default: 90.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub staleness_threshold_secs: Option<i32>,

    /// Which copies count as broken: those for which any of these rules holds. Empty: what the health rules
    /// for common kinds say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub broken: Vec<BrokenRule>,

    /// How many broken copies are listed by name. Default: 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub broken_limit: Option<i32>,
}

/// Kinds of objects to look at.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SummarySubject {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_group: String,

    /// Lowercase plurals. `*`: all kinds of the group.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 253)))]
    pub resources: Vec<String>,
}

/// Sorts copies into groups and computes aggregates for each.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grouper {
    /// What this grouping is called in the StatusSummary.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// What copies are grouped by: those for which all of these give the same values are one group. Empty:
    /// all copies are one group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 8),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub group_by: Vec<GroupByPart>,

    /// What is computed for each group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 16),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub aggregators: Vec<Aggregator>,
}

/// One value that copies are grouped by.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupByPart {
    /// What the value is called in the StatusSummary.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// A CEL expression that gives the value, for example `edge.labels['env']`. If it fails for a copy, the
    /// value is null.
    #[schemars(length(min = 1, max = 4096))]
    pub def: String,
}

/// Something computed over the copies of a group.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    Rule::new("self.type == 'COUNT' ? !has(self.subject) : has(self.subject)")
        .message("subject must be given, except for COUNT, which has none")
        .field_path(".subject")
]))]
pub struct Aggregator {
    /// What the result is called in the StatusSummary.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// How it is computed: `COUNT`, `SUM`, `AVG`, `MIN` or `MAX`.
    #[serde(rename = "type")]
    pub type_: AggregatorType,

    /// A CEL expression that gives a number for each copy, for example `status.readyReplicas`. Text that holds
    /// a number counts as that number; if the expression fails or gives nothing, the copy is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub subject: Option<String>,
}

/// How an aggregate is computed.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum AggregatorType {
    /// How many copies.
    #[default]
    Count,
    /// The sum.
    Sum,
    /// The mean.
    Avg,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

/// Holds for a copy if all its tests do.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrokenRule {
    /// The tests, all of which must hold.
    #[schemars(length(min = 1, max = 16))]
    pub all: Vec<BrokenTest>,
}

/// Compares an expression with a value.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrokenTest {
    /// A CEL expression, for example `status.readyReplicas`.
    #[schemars(length(min = 1, max = 4096))]
    pub part: String,

    /// The value that it must have, of any type. Absent: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub value: Option<Value>,

    /// Turns the test round: it must not have the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negate: Option<bool>,
}

fn any_value(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// What is observed about a Summarizer.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SummarizerStatus {
    /// The `metadata.generation` that the rest of this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// How many EdgePlacements it summarizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub placement_count: Option<i32>,

    /// Expressions that cannot be compiled, or that fail. The others go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub validation_errors: Vec<ValidationError>,

    /// What is observed about this Summarizer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
