//! Stateful sets: pods with numbers, one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_machinery::Stored;
use mailboat_object::Key;
use serde_json::json;

use super::hand::Hand;
use super::{number, template};

const REVISION: &str = "controller-revision-hash";

/// Looks at one stateful set; answers when to look again.
pub(super) fn look(hand: &mut Hand<'_>, key: &Key) -> Option<u64> {
    let set = hand.get(key)?;
    let spec = &set.body()["spec"];
    let revision = format!("{}-{}", set.key.name, template::hash(&spec["template"]));
    let former = set.body()["status"]["currentRevision"].as_str().unwrap_or(&revision).to_owned();
    if !set.is_deleting() {
        act(hand, &set, &revision, &former);
    }
    let pods = numbered(hand, &set);
    let (wanted, min_ready) = (number(&spec["replicas"], 1), number(&spec["minReadySeconds"], 0));
    let active: Vec<&Arc<Stored>> = pods.values().filter(|pod| template::is_active(pod)).collect();
    let counted = template::count(active.iter().map(|pod| &***pod), min_ready, hand.now_ms);
    let of = |revision: &str| active.iter().filter(|pod| revision_of(pod) == revision).count();
    let (updated, current) = (of(&revision), of(&former));
    let is_new = |pod: &&Arc<Stored>| revision_of(pod) == revision && template::is_ready(pod);
    let complete = i64::try_from(active.iter().copied().filter(is_new).count()).unwrap_or(0) == wanted
        && i64::try_from(active.len()).unwrap_or(0) == wanted;
    let (former, current) = if complete { (revision.clone(), updated) } else { (former, current) };
    let mut status = json!({
        "observedGeneration": set.generation(), "replicas": active.len(), "collisionCount": 0,
        "availableReplicas": counted.available, "currentRevision": former, "updateRevision": revision,
    });
    for (member, count) in [
        ("readyReplicas", usize::try_from(counted.ready).unwrap_or(0)),
        ("currentReplicas", current),
        ("updatedReplicas", updated),
    ] {
        if count > 0 {
            status[member] = count.into();
        }
    }
    let set = hand.get(key)?;
    hand.set_status(&set, status);
    counted.again
}

/// One step: makes what is missing from below, takes what is too much from above, then replaces from above.
fn act(hand: &mut Hand<'_>, set: &Stored, revision: &str, former: &str) {
    let spec = &set.body()["spec"];
    let wanted = number(&spec["replicas"], 1);
    let parallel = spec["podManagementPolicy"] == "Parallel";
    let strategy = &spec["updateStrategy"];
    let partition = number(&strategy["rollingUpdate"]["partition"], 0);
    let first = number(&spec["ordinals"]["start"], 0);
    let pods = numbered(hand, set);
    for ordinal in first..first + wanted {
        match pods.get(&ordinal) {
            None => {
                let of = if ordinal - first < partition { former } else { revision };
                let name = format!("{}-{ordinal}", set.key.name);
                let index = ordinal.to_string();
                let labels = [
                    ("statefulset.kubernetes.io/pod-name", name.as_str()),
                    ("apps.kubernetes.io/pod-index", &index),
                    (REVISION, of),
                ];
                template::make_pod(hand, set, Some(&name), &labels);
                if !parallel {
                    return;
                }
            }
            Some(pod) if template::has_ended(pod) && !pod.is_deleting() => hand.delete(&pod.key, None),
            // The next one waits until this one is ready.
            Some(pod) if !parallel && (pod.is_deleting() || !template::is_ready(pod)) => return,
            Some(_) => {}
        }
    }
    for (_, pod) in pods.iter().rev().filter(|(ordinal, _)| !(first..first + wanted).contains(*ordinal)) {
        if !pod.is_deleting() {
            hand.delete(&pod.key, None);
        }
        if !parallel {
            return;
        }
    }
    if strategy["type"] == "OnDelete" {
        return;
    }
    for (ordinal, pod) in pods.iter().rev() {
        if ordinal - first < partition {
            return;
        }
        if revision_of(pod) != revision {
            if !pod.is_deleting() {
                hand.delete(&pod.key, None);
            }
            return;
        }
        if !template::is_ready(pod) {
            return;
        }
    }
}

fn revision_of(pod: &Stored) -> &str {
    pod.metadata()["labels"][REVISION].as_str().unwrap_or_default()
}

fn numbered(hand: &Hand<'_>, set: &Stored) -> BTreeMap<i64, Arc<Stored>> {
    let pods = hand.owned("", "pods", set).into_iter();
    let ordinal = |pod: &Stored| pod.key.name.rsplit_once('-')?.1.parse().ok();
    pods.filter_map(|pod| Some((ordinal(&pod)?, pod))).collect()
}
