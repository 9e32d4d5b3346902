//! Pods from templates.

use mailboat_machinery::Stored;
use mailboat_object::timestamp::unix_seconds;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::condition;
use super::hand::{Hand, reference};

/// Makes a pod from an object's template, with further labels. Without a name it gets one from the owner's.
pub(super) fn make_pod(hand: &mut Hand<'_>, owner: &Stored, name: Option<&str>, labels: &[(&str, &str)]) {
    let template = &owner.body()["spec"]["template"];
    let mut metadata = json!({ "ownerReferences": reference(owner) });
    match name {
        Some(name) => metadata["name"] = name.into(),
        None => metadata["generateName"] = format!("{}-", owner.key.name).into(),
    }
    for member in ["labels", "annotations"] {
        if template["metadata"][member].is_object() {
            metadata[member] = template["metadata"][member].clone();
        }
    }
    for (label, value) in labels {
        metadata["labels"][*label] = (*value).into();
    }
    let body = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"] });
    hand.create("", "pods", &owner.key.namespace, body);
}

/// What tells one template from another, in letters that make no words.
pub(super) fn hash(template: &Value) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut number = xxh3_64(template.to_string().as_bytes());
    let mut text = String::new();
    for _ in 0..10 {
        // The remainder is below 27.
        text.push(char::from(LETTERS[usize::try_from(number % 27).unwrap_or(0)]));
        number /= 27;
    }
    text
}

/// Whether a pod still does something.
pub(super) fn is_active(pod: &Stored) -> bool {
    !pod.is_deleting() && !has_ended(pod)
}

/// Whether a pod has come to its end.
pub(super) fn has_ended(pod: &Stored) -> bool {
    let phase = &pod.body()["status"]["phase"];
    phase == "Succeeded" || phase == "Failed"
}

/// Whether a pod is ready.
pub(super) fn is_ready(pod: &Stored) -> bool {
    condition::holds(pod.body(), "Ready")
}

/// Since when a pod has been ready long enough, or from when on it will have been, in milliseconds.
pub(super) fn available_at(pod: &Stored, min_ready_seconds: i64) -> Option<u64> {
    let ready = condition::find(pod.body(), "Ready").filter(|ready| ready["status"] == "True")?;
    let since = ready["lastTransitionTime"].as_str().and_then(unix_seconds)?;
    Some((since + u64::try_from(min_ready_seconds).unwrap_or(0)) * 1_000)
}

/// How many of some pods are ready and how many available, and when there will be more of those.
pub(super) struct Count {
    pub ready: i64,
    pub available: i64,
    pub again: Option<u64>,
}

/// Counts pods.
pub(super) fn count<'p>(
    pods: impl IntoIterator<Item = &'p Stored>,
    min_ready_seconds: i64,
    now_ms: u64,
) -> Count {
    let mut count = Count { ready: 0, available: 0, again: None };
    for pod in pods {
        let Some(at) = available_at(pod, min_ready_seconds) else { continue };
        count.ready += 1;
        if at <= now_ms {
            count.available += 1;
        } else {
            count.again = Some(count.again.map_or(at, |other: u64| other.min(at)));
        }
    }
    count
}
