//! How selected objects are carried: the same options on every entry of both syncer configurations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LabelSelector;

/// What may be said about how the objects of one entry are carried. All of it is optional. Where several
/// entries select the same object and disagree, the cautious choice wins, and all of them say so.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryOptions {
    /// Of the objects that this entry names, take only those whose labels match. Absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,

    /// Of the objects that this entry names, take only those whose annotations match. Absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation_selector: Option<LabelSelector>,

    /// Whether conversions apply, and whether objects stored under a `.denatured` group get back their real
    /// group on the way to the edge. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renature: Option<bool>,

    /// Whether the status that the edge reports is brought back into the mailbox. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_status: Option<bool>,

    /// What becomes of the copy when its original is deleted or no longer selected: `Delete` removes it,
    /// `Orphan` leaves it. Default: Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_propagation: Option<DeletePropagation>,
}

impl DeliveryOptions {
    /// Whether objects get their real form at the edge.
    pub fn renatures(&self) -> bool {
        self.renature.unwrap_or(true)
    }

    /// Whether the edge's status comes back.
    pub fn returns_status(&self) -> bool {
        self.return_status.unwrap_or(true)
    }

    /// What becomes of a copy whose original is gone.
    pub fn propagation(&self) -> DeletePropagation {
        self.delete_propagation.unwrap_or_default()
    }
}

/// [`DeliveryOptions`] for objects that travel from the edge to the mailbox.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpsyncOptions {
    /// What is said for either direction.
    #[serde(flatten)]
    pub delivery: DeliveryOptions,

    /// Of the objects that this entry names, take only those that have an owner reference like this one.
    /// Absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_selector: Option<OwnerSelector>,
}

/// Describes an owner reference. Fields left empty match anything.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerSelector {
    /// The owner's group and version, for example `apps/v1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,

    /// The owner's kind, for example `Deployment`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,

    /// The owner's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// What becomes of the copy when its original is deleted or no longer selected: `Delete` removes it, `Orphan`
/// leaves it. Default: Delete.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
pub enum DeletePropagation {
    /// The copy is deleted as well.
    #[default]
    Delete,
    /// The copy stays and is no longer looked after.
    Orphan,
}
