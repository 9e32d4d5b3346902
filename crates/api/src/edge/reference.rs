//! Small pieces that several statuses are made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Time;

/// Names one object.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// The object's API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,

    /// The lowercase plural of its kind, for example `deployments`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resource: String,

    /// The object's namespace; empty if it is cluster-scoped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,

    /// The object's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// Something in a specification that cannot work as written.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidationError {
    /// Where it stands, for example `spec.downsync[2].labelSelectors[0]`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,

    /// What is wrong with it, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Withdrawals that are held because they are many at once. Nothing is deleted before somebody confirms.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwaitedConfirmation {
    /// Names exactly this change. Setting the annotation `mailboat.dev/confirm-withdrawal` to this value lets
    /// it go; a different change has a different id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub change_id: String,

    /// How many objects would be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub withdrawals: Option<i64>,

    /// Since when it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,

    /// What would be deleted and why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
