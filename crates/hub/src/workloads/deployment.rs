//! Deployments: replica sets, and the way from one to the next.

use std::sync::Arc;

use mailboat_machinery::Stored;
use mailboat_object::Key;
use mailboat_object::timestamp::unix_seconds;
use serde_json::{Value, json};

use super::condition::{self, Said};
use super::hand::{Hand, reference};
use super::{number, template};

const REVISION: &str = "deployment.kubernetes.io/revision";
const HASH: &str = "pod-template-hash";
const LATE: &str = "ProgressDeadlineExceeded";

/// Looks at one deployment; answers when to look again.
pub(super) fn look(hand: &mut Hand<'_>, key: &Key) -> Option<u64> {
    let deployment = hand.get(key)?;
    if !deployment.is_deleting() {
        let sets = hand.owned("apps", "replicasets", &deployment);
        let hash = template::hash(&deployment.body()["spec"]["template"]);
        let paused = deployment.body()["spec"]["paused"] == true;
        let (newest, old): (Vec<_>, Vec<_>) =
            sets.into_iter().partition(|set| set.metadata()["labels"][HASH] == hash.as_str());
        match newest.first() {
            Some(newest) => {
                follow_revision(hand, newest, &old);
                scale(hand, &deployment, newest, &old, paused);
                forget_oldest(hand, &deployment, &old);
            }
            None if !paused => make_set(hand, &deployment, &hash, &old),
            None => {}
        }
    }
    report(hand, key)
}

/// What a rollout may have too much and too little of.
struct Slack {
    surge: i64,
    unavailable: i64,
}

impl Slack {
    fn of(deployment: &Stored) -> Self {
        let spec = &deployment.body()["spec"];
        if spec["strategy"]["type"] == "Recreate" {
            return Self { surge: 0, unavailable: wanted(deployment) };
        }
        let rolling = &spec["strategy"]["rollingUpdate"];
        let surge = share(&rolling["maxSurge"], wanted(deployment), true);
        let unavailable = share(&rolling["maxUnavailable"], wanted(deployment), false);
        // With neither it could not move.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Self { surge, unavailable: unavailable.min(wanted(deployment)) }
    }
}

/// A number, or a share of a whole in percent; by default a quarter.
pub(super) fn share(value: &Value, of: i64, up: bool) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse().ok());
    let hundredths: i64 = percent.unwrap_or(25) * of;
    if up { (hundredths + 99) / 100 } else { hundredths / 100 }
}

fn wanted(deployment: &Stored) -> i64 {
    number(&deployment.body()["spec"]["replicas"], 1)
}

fn replicas(set: &Stored) -> i64 {
    number(&set.body()["spec"]["replicas"], 1)
}

fn available(set: &Stored) -> i64 {
    number(&set.body()["status"]["availableReplicas"], 0)
}

fn revision(object: &Stored) -> i64 {
    object.metadata()["annotations"][REVISION].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn make_set(hand: &mut Hand<'_>, deployment: &Stored, hash: &str, old: &[Arc<Stored>]) {
    let spec = &deployment.body()["spec"];
    let revision = old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1;
    let slack = Slack::of(deployment);
    let total: i64 = old.iter().map(|set| replicas(set)).sum();
    let room = (wanted(deployment) + slack.surge - total).clamp(0, wanted(deployment));
    let mut template = spec["template"].clone();
    template["metadata"]["labels"][HASH] = hash.into();
    let mut selector = spec["selector"].clone();
    selector["matchLabels"][HASH] = hash.into();
    let mut annotations = deployment.metadata()["annotations"].clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    annotations[REVISION] = revision.to_string().into();
    annotations["deployment.kubernetes.io/desired-replicas"] = wanted(deployment).to_string().into();
    annotations["deployment.kubernetes.io/max-replicas"] =
        (wanted(deployment) + slack.surge).to_string().into();
    let mut body = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", deployment.key.name), "labels": template["metadata"]["labels"],
            "annotations": annotations, "ownerReferences": reference(deployment),
        },
        "spec": { "replicas": room, "selector": selector, "template": template },
    });
    if let Some(seconds) = spec.get("minReadySeconds") {
        body["spec"]["minReadySeconds"] = seconds.clone();
    }
    hand.create("apps", "replicasets", &deployment.key.namespace, body);
}

/// The newest set bears the highest revision, also when an older template came back.
fn follow_revision(hand: &mut Hand<'_>, newest: &Stored, old: &[Arc<Stored>]) {
    let highest = old.iter().map(|set| revision(set)).max().unwrap_or(0);
    if revision(newest) <= highest {
        let patch = json!({ "metadata": { "annotations": { REVISION: (highest + 1).to_string() } } });
        hand.merge(&newest.key, &patch);
    }
}

fn set_replicas(hand: &mut Hand<'_>, set: &Stored, count: i64) {
    if replicas(set) != count {
        hand.merge(&set.key, &json!({ "spec": { "replicas": count } }));
    }
}

fn scale(hand: &mut Hand<'_>, deployment: &Stored, newest: &Stored, old: &[Arc<Stored>], paused: bool) {
    let (wanted, slack) = (wanted(deployment), Slack::of(deployment));
    let of_old: i64 = old.iter().map(|set| replicas(set)).sum();
    if paused && of_old > 0 {
        return;
    }
    if deployment.body()["spec"]["strategy"]["type"] == "Recreate" {
        for set in old {
            set_replicas(hand, set, 0);
        }
        // The old pods go first, to the last.
        if old.iter().all(|set| hand.owned("", "pods", set).is_empty()) {
            set_replicas(hand, newest, wanted);
        }
        return;
    }
    if of_old == 0 {
        return set_replicas(hand, newest, wanted);
    }
    let of_new = replicas(newest);
    let room = wanted + slack.surge - of_new - of_old;
    if of_new > wanted {
        return set_replicas(hand, newest, wanted);
    }
    if of_new < wanted && room > 0 {
        return set_replicas(hand, newest, of_new + room.min(wanted - of_new));
    }
    let at_least = wanted - slack.unavailable;
    let mut surplus = of_new + of_old - at_least - (of_new - available(newest));
    // What does not work is not missed, so it goes first.
    let mut by_age: Vec<&Arc<Stored>> = old.iter().collect();
    by_age.sort_by_key(|set| revision(set));
    let mut left: Vec<i64> = by_age.iter().map(|set| replicas(set)).collect();
    for (set, left) in by_age.iter().zip(&mut left) {
        let broken = (*left - available(set)).clamp(0, surplus.max(0));
        *left -= broken;
        surplus -= broken;
    }
    let of_all: i64 = old.iter().map(|set| available(set)).sum::<i64>() + available(newest);
    let mut surplus = surplus.min(of_all - at_least);
    for left in &mut left {
        let taken = (*left).clamp(0, surplus.max(0));
        *left -= taken;
        surplus -= taken;
    }
    for (set, left) in by_age.iter().zip(left) {
        set_replicas(hand, set, left);
    }
}

fn forget_oldest(hand: &mut Hand<'_>, deployment: &Stored, old: &[Arc<Stored>]) {
    let limit = usize::try_from(number(&deployment.body()["spec"]["revisionHistoryLimit"], 10)).unwrap_or(0);
    let mut done: Vec<&Arc<Stored>> = old
        .iter()
        .filter(|set| replicas(set) == 0 && number(&set.body()["status"]["replicas"], 0) == 0)
        .collect();
    done.sort_by_key(|set| revision(set));
    for set in done.iter().take(done.len().saturating_sub(limit)) {
        hand.delete(&set.key, None);
    }
}

fn report(hand: &mut Hand<'_>, key: &Key) -> Option<u64> {
    let deployment = hand.get(key)?;
    let wanted = wanted(&deployment);
    let sets = hand.owned("apps", "replicasets", &deployment);
    let hash = template::hash(&deployment.body()["spec"]["template"]);
    let newest = sets.iter().find(|set| set.metadata()["labels"][HASH] == hash.as_str());
    let sum = |member: &str| sets.iter().map(|set| number(&set.body()["status"][member], 0)).sum::<i64>();
    let total = sum("replicas");
    let (ready, available) = (sum("readyReplicas"), sum("availableReplicas"));
    let updated = newest.map_or(0, |set| number(&set.body()["status"]["replicas"], 0));
    let mut status = json!({
        "observedGeneration": deployment.generation(), "terminatingReplicas": sum("terminatingReplicas"),
    });
    for (member, count) in [
        ("replicas", total),
        ("updatedReplicas", updated),
        ("readyReplicas", ready),
        ("availableReplicas", available),
        ("unavailableReplicas", (wanted.max(total) - available).max(0)),
    ] {
        if count > 0 {
            status[member] = count.into();
        }
    }
    let now = hand.now();
    let mut conditions = condition::of(deployment.body());
    let enough = available >= wanted - Slack::of(&deployment).unavailable;
    let said = if enough {
        Said {
            kind: "Available",
            status: true,
            reason: "MinimumReplicasAvailable",
            message: "Deployment has minimum availability.",
        }
    } else {
        Said {
            kind: "Available",
            status: false,
            reason: "MinimumReplicasUnavailable",
            message: "Deployment does not have minimum availability.",
        }
    };
    condition::set(&mut conditions, &said, &now);
    let former = &deployment.body()["status"];
    let moved = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
        .iter()
        .any(|member| number(&former[*member], 0) != number(&status[*member], 0));
    let complete = newest.is_some() && updated == wanted && total == wanted && available == wanted;
    let name = newest.map_or("", |set| set.key.name.as_str());
    let mut again = None;
    let deadline_seconds = number(&deployment.body()["spec"]["progressDeadlineSeconds"], 600);
    let progressing = condition::find(deployment.body(), "Progressing").cloned();
    let since =
        progressing.as_ref().and_then(|condition| unix_seconds(condition["lastUpdateTime"].as_str()?));
    let deadline = since.map(|since| (since + u64::try_from(deadline_seconds).unwrap_or(0)) * 1_000);
    let was_late = progressing.as_ref().is_some_and(|before| before["reason"] == LATE);
    let late = !complete && !moved && (was_late || deadline.is_some_and(|deadline| deadline <= hand.now_ms));
    let (status_is, reason, message) = if complete {
        (true, "NewReplicaSetAvailable", format!("ReplicaSet {name:?} has successfully progressed."))
    } else if late {
        (false, LATE, format!("ReplicaSet {name:?} has timed out progressing."))
    } else if progressing.is_none() {
        (true, "NewReplicaSetCreated", format!("Created new replica set {name:?}"))
    } else {
        again = deadline;
        (true, "ReplicaSetUpdated", format!("ReplicaSet {name:?} is progressing."))
    };
    let said = Said { kind: "Progressing", status: status_is, reason, message: &message };
    condition::set(&mut conditions, &said, &now);
    for condition in &mut conditions {
        let is_progress = condition["type"] == "Progressing";
        let changed = progressing.as_ref().is_none_or(|before| before["reason"] != condition["reason"]);
        if condition.get("lastUpdateTime").is_none() || (is_progress && (moved || changed)) {
            condition["lastUpdateTime"] = now.as_str().into();
        }
    }
    status["conditions"] = conditions.into();
    // The deployment says which revision is the newest.
    let revision = newest.map(|set| (REVISION, revision(set).to_string()));
    hand.set_status_with(&deployment, status, revision.as_slice());
    again.filter(|at| *at > hand.now_ms)
}
