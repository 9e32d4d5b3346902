//! Changes made to objects on the way between kcp and the service cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes made to objects on the way, in the order given.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mutation {
    /// Changes to the object on its way from kcp to the service cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spec: Vec<MutationStep>,

    /// Changes to the status on its way from the service cluster to kcp.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<MutationStep>,
}

/// One change. Exactly one of the fields is to be set; of several, the first in this order counts: delete,
/// regex, template, cel.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MutationStep {
    /// Removes a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<DeleteMutation>,

    /// Replaces parts of a value by a regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<RegexMutation>,

    /// Replaces a value by the result of a Go template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<TemplateMutation>,

    /// Replaces a value by the result of a CEL expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<CelMutation>,
}

/// Removes a value.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteMutation {
    /// Where it stands: names and indices joined by dots, for example `spec.ports.0.name`.
    pub path: String,
}

/// Replaces parts of a value by a regular expression.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegexMutation {
    /// Where it stands: names and indices joined by dots.
    pub path: String,

    /// A regular expression in RE2 syntax. Empty: the whole value is replaced.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pattern: String,

    /// What each match is replaced by. `$1` or `${1}` is what the first group matched.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub replacement: String,
}

/// Replaces a value by the result of a Go template.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMutation {
    /// Where it stands: names and indices joined by dots.
    pub path: String,

    /// The template. It sees `.Value` (what stands there), `.LocalObject` (the object being changed) and
    /// `.RemoteObject` (its counterpart).
    pub template: String,
}

/// Replaces a value by the result of a CEL expression.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CelMutation {
    /// Where it stands: names and indices joined by dots.
    pub path: String,

    /// The expression. It sees `value` (what stands there, or null), `self` (the object being changed) and
    /// `other` (its counterpart).
    pub expression: String,
}
