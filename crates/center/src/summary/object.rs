//! StatusSummaries as objects: their names, what they should be, and how their statuses are written.

use std::sync::Arc;

use mailboat_api::edge::StatusSummaryStatus;
use mailboat_api::names::{group, label};
use mailboat_engine::want::Body;
use mailboat_object::key::{Key, KindId, Name};
use mailboat_object::wire::{Call, Part, Verb};
use serde_json::{Value, json};

use crate::body::body;
use crate::names::{label_value, numbered};

/// A status that should be written.
#[derive(Clone, Debug)]
pub struct StatusWrite {
    /// Whose.
    pub key: Key,
    /// The merge patch.
    pub patch: Value,
}

impl StatusWrite {
    /// The call that writes it.
    pub fn call(&self, manager: Name) -> Call {
        let verb = Verb::Merge { body: Arc::from(self.patch.to_string().into_bytes()), manager };
        Call { key: self.key.clone(), verb, part: Part::Status, dry_run: false }
    }
}

/// A status as it is compared: when it was computed does not matter.
pub(super) fn without_time(status: StatusSummaryStatus) -> Value {
    json!(StatusSummaryStatus { last_update_time: None, ..status })
}

pub(super) const SUMMARIZER_MEMBERS: [&str; 4] =
    ["observedGeneration", "placementCount", "validationErrors", "conditions"];
pub(super) const SUMMARY_MEMBERS: [&str; 11] = [
    "totals",
    "kinds",
    "kindsOmitted",
    "objects",
    "objectsOmitted",
    "labels",
    "labelsOmitted",
    "groupings",
    "broken",
    "brokenOmitted",
    "conditions",
];

/// A status as a merge patch, in which a member that is left out is one that goes.
pub(super) fn all_members(status: &Value, members: &[&str]) -> Value {
    let mut patch = status.clone();
    for member in members {
        if patch.get(*member).is_none() {
            patch[*member] = Value::Null;
        }
    }
    patch
}

/// The name of a placement's summary: its own, or with the Summarizer's behind it.
pub(super) fn summary_name(placement: &Key, summarizer: &str) -> String {
    if summarizer.is_empty() { placement.name.to_string() } else { numbered(&placement.name, summarizer) }
}

pub(super) fn summary_key(placement: &Key, summarizer: &str) -> Key {
    Key {
        cluster: placement.cluster.clone(),
        kind: KindId::new(group::EDGE, "statussummaries"),
        namespace: Name::EMPTY,
        name: Name::new(&summary_name(placement, summarizer)),
    }
}

pub(super) fn wanted(placement: &Key, placement_uid: &str, summarizer: &Name) -> (Key, Body) {
    let api_version = format!("{}/{}", group::EDGE, group::EDGE_VERSION);
    let key = summary_key(placement, summarizer);
    let mut object = json!({
        "apiVersion": api_version,
        "kind": "StatusSummary",
        "metadata": {
            "name": key.name.as_str(),
            "labels": { label::SOURCE_PLACEMENT: label_value(&placement.name) },
            "ownerReferences": [{
                "apiVersion": api_version,
                "kind": "EdgePlacement",
                "name": placement.name.as_str(),
                "uid": placement_uid,
            }],
        },
        "spec": { "placementName": placement.name.as_str() },
    });
    if !summarizer.is_empty() {
        object["spec"]["summarizerName"] = json!(summarizer.as_str());
    }
    (key, body(&object))
}
