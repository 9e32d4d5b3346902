//! Claims of volumes, and volumes.

use serde_json::{Value, json};

use super::default;

/// Who keeps a claim that a pod uses.
const IN_USE: &str = "kubernetes.io/pvc-protection";

pub(super) fn default_claim(claim: &mut Value) {
    default(claim, "spec", json!({}));
    default(claim, "status", json!({}));
    default(&mut claim["spec"], "volumeMode", "Filesystem");
}

/// A new claim waits for a volume, and stays as long as somebody uses it.
pub(super) fn prepare_claim(claim: &mut Value, old: Option<&Value>) {
    if old.is_some() {
        return;
    }
    claim["status"] = json!({ "phase": "Pending" });
    let metadata = &mut claim["metadata"];
    default(metadata, "finalizers", json!([]));
    if let Some(finalizers) = metadata["finalizers"].as_array_mut()
        && !finalizers.contains(&json!(IN_USE))
    {
        finalizers.push(IN_USE.into());
    }
}

pub(super) fn default_volume(volume: &mut Value) {
    default(volume, "spec", json!({}));
    default(&mut volume["spec"], "persistentVolumeReclaimPolicy", "Retain");
    default(&mut volume["spec"], "volumeMode", "Filesystem");
}

/// A new volume waits to be made.
pub(super) fn prepare_volume(volume: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        volume["status"] = json!({ "phase": "Pending" });
    }
}
