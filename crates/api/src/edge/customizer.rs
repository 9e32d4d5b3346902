//! Customizer: changes made to an object on its way to each edge.

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::ValidationError;
use crate::condition::Condition;

/// The top-level fields of a Customizer, which has no `spec`.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[kube(
    group = "edge.kubestellar.io",
    version = "v2alpha1",
    kind = "Customizer",
    plural = "customizers",
    category = "mailboat",
    namespaced,
    no_spec,
    status = "CustomizerStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Changes parts of objects on their way to each edge. An object asks for it by the annotation `edge.kubestellar.io/customizer: <name>` or `<namespace>/<name>`. With the annotation `edge.kubestellar.io/expand-parameters: \"true\"` on the Customizer, `%(name)` in paths and values is replaced by the destination Location's label or annotation of that name.",
    printcolumn(
        name = "Paths",
        type_ = "string",
        json_path = ".replacements[*].path",
        description = "what is replaced"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct CustomizerFields {
    /// The changes, made in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"])
    )]
    pub replacements: Vec<Replacement>,
}

/// One change: what stands at a path is replaced by a value.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replacement {
    /// Where, in JSONPath: `$` followed by names (`.spec`, `['a b']`), indices (`[0]`, `.0`), wildcards (`.*`,
    /// `[*]`), ranges (`[1:3]`) and `..` for any depth. A path of names alone may add a missing last member.
    #[schemars(length(min = 1, max = 4096), regex(pattern = r"^(\$|%)"))]
    pub path: String,

    /// The new value, as JSON text. A string therefore needs quotes inside: `value: '"edge"'`.
    #[schemars(length(min = 1))]
    pub value: String,
}

/// What is observed about a Customizer.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomizerStatus {
    /// The `metadata.generation` that the rest of this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Replacements whose path or value cannot be read. Objects that use this Customizer are held until they
    /// are mended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub validation_errors: Vec<ValidationError>,

    /// What is observed about this Customizer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
