//! A pod's life: placed, started, ready, and gone; as a scheduler and a kubelet would write it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mailboat_machinery::Stored;
use mailboat_object::Key;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::condition::{self, Said};
use super::hand::Hand;
use super::{Settings, node, number, template};

/// How long a failing container waits at most before it starts again.
const LONGEST_BACK_OFF: Duration = Duration::from_mins(5);

/// What a pod waits for, and until when, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stage {
    step: Step,
    until_ms: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Starting,
    BecomingReady,
    Running,
    BackingOff,
    Going,
}

/// What the lives of pods need to know.
pub(super) struct Life<'w> {
    pub settings: &'w Settings,
    pub stages: &'w mut BTreeMap<Key, Stage>,
    pub addresses: &'w mut u32,
}

impl Life<'_> {
    /// Takes one pod as far as it goes now; answers when to look again.
    pub(super) fn look(&mut self, hand: &mut Hand<'_>, key: &Key) -> Option<u64> {
        let Some(pod) = hand.get(key) else {
            self.stages.remove(key);
            return None;
        };
        if is_elsewhere(hand, &pod) {
            self.stages.remove(key);
            return None;
        }
        if pod.is_deleting() {
            if let Some(at) = self.wait(key, Step::Going, self.settings.stop, hand.now_ms) {
                return Some(at);
            }
            self.stages.remove(key);
            hand.delete(key, Some(0));
            return None;
        }
        if template::has_ended(&pod) {
            self.stages.remove(key);
            return None;
        }
        if pod.body()["spec"]["nodeName"].is_null() {
            place(hand, &pod);
            return None;
        }
        let (step, lasts) = self.next(&pod);
        if step == Step::Running && restarts(&pod) {
            return None;
        }
        if let Some(at) = self.wait(key, step, lasts, hand.now_ms) {
            return Some(at);
        }
        self.stages.remove(key);
        let fails = hand.random.next() % 1_000 < u64::from(self.settings.failures_per_mille);
        let status = match step {
            Step::Starting | Step::BackingOff => self.started(hand, &pod),
            Step::BecomingReady if fails && restarts(&pod) => failed(hand, &pod),
            Step::BecomingReady => ready(hand, &pod),
            Step::Running => ended(hand, &pod, !fails),
            Step::Going => return None,
        };
        hand.set_status(&pod, status);
        None
    }

    /// What a placed pod waits for, and for how long.
    fn next(&self, pod: &Stored) -> (Step, Duration) {
        let status = &pod.body()["status"];
        let waits = &status["containerStatuses"][0]["state"]["waiting"];
        if waits.is_object() {
            let restarts = number(&status["containerStatuses"][0]["restartCount"], 0);
            let doubled = self.settings.start.saturating_mul(1 << restarts.clamp(0, 12));
            return (Step::BackingOff, doubled.min(LONGEST_BACK_OFF));
        }
        if status["phase"] != "Running" {
            return (Step::Starting, self.settings.start);
        }
        if condition::holds(pod.body(), "Ready") {
            return (Step::Running, self.settings.run);
        }
        (Step::BecomingReady, self.settings.ready)
    }

    /// Waits in a step; answers until when, or none when the wait is over.
    fn wait(&mut self, key: &Key, step: Step, lasts: Duration, now_ms: u64) -> Option<u64> {
        let lasts_ms = u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX);
        let stage = match self.stages.get(key) {
            Some(stage) if stage.step == step => *stage,
            _ => {
                let stage = Stage { step, until_ms: now_ms.saturating_add(lasts_ms) };
                self.stages.insert(key.clone(), stage);
                stage
            }
        };
        (stage.until_ms > now_ms).then_some(stage.until_ms)
    }

    fn started(&mut self, hand: &Hand<'_>, pod: &Stored) -> Value {
        let now = hand.now();
        let mut status = pod.body()["status"].clone();
        if status["podIP"].is_null() {
            *self.addresses += 1;
            let [_, high, middle, low] = (*self.addresses).to_be_bytes();
            let address = format!("10.{}.{middle}.{low}", 244_u8.wrapping_add(high));
            status["podIP"] = address.as_str().into();
            status["podIPs"] = json!([{ "ip": address }]);
            let host = node::address(hand, pod);
            status["hostIP"] = host.as_str().into();
            status["hostIPs"] = json!([{ "ip": host }]);
            status["startTime"] = now.as_str().into();
        }
        status["phase"] = "Running".into();
        let running = json!({ "running": { "startedAt": now } });
        status["containerStatuses"] = containers(pod, &running, false, true);
        set_conditions(&mut status, &now, &["PodReadyToStartContainers", "Initialized"]);
        set_unready(&mut status, pod, &now);
        status
    }
}

/// Whether a pod is on a node that somebody else keeps.
fn is_elsewhere(hand: &Hand<'_>, pod: &Stored) -> bool {
    node::of(hand, pod).is_some_and(|found| node::is_kept_elsewhere(&found))
}

/// Gives a pod a node, or says that there is none.
fn place(hand: &mut Hand<'_>, pod: &Arc<Stored>) {
    let nodes = hand.list("", "nodes", "");
    let wanted = &pod.body()["spec"]["nodeSelector"];
    let fits = |node: &&Arc<Stored>| {
        let labels = &node.metadata()["labels"];
        let wanted = wanted.as_object().into_iter().flatten();
        node.body()["spec"]["unschedulable"] != true
            && wanted.into_iter().all(|(label, value)| labels.get(label) == Some(value))
    };
    let mut fitting: Vec<&Arc<Stored>> = nodes.iter().filter(|other| node::runs(other, pod)).collect();
    if fitting.is_empty() {
        fitting = nodes.iter().filter(|other| !node::is_kept_elsewhere(other)).filter(fits).collect();
    }
    let now = hand.now();
    let mut status = pod.body()["status"].clone();
    let mut conditions = condition::of(pod.body());
    if fitting.is_empty() {
        let message = format!("0/{} nodes are available.", nodes.len());
        let said = Said { kind: "PodScheduled", status: false, reason: "Unschedulable", message: &message };
        condition::set(&mut conditions, &said, &now);
        status["phase"] = "Pending".into();
        status["conditions"] = conditions.into();
        hand.set_status(pod, status);
        return;
    }
    let digest = xxh3_64(pod.key.name.as_bytes());
    let node = fitting[usize::try_from(digest).unwrap_or(usize::MAX) % fitting.len()].key.name.clone();
    hand.merge(&pod.key, &json!({ "spec": { "nodeName": node.as_str() } }));
    let Some(pod) = hand.get(&pod.key) else { return };
    let said = Said { kind: "PodScheduled", status: true, reason: "", message: "" };
    condition::set(&mut conditions, &said, &now);
    status["phase"] = "Pending".into();
    status["conditions"] = conditions.into();
    hand.set_status(&pod, status);
}

fn ready(hand: &Hand<'_>, pod: &Stored) -> Value {
    let mut status = pod.body()["status"].clone();
    let running = status["containerStatuses"][0]["state"].clone();
    status["containerStatuses"] = containers(pod, &running, true, true);
    set_conditions(&mut status, &hand.now(), &["Ready", "ContainersReady"]);
    status
}

/// The containers came to an end that was not asked for, and will be started again.
fn failed(hand: &Hand<'_>, pod: &Stored) -> Value {
    let now = hand.now();
    let mut status = pod.body()["status"].clone();
    let waiting = json!({ "waiting": {
        "reason": "CrashLoopBackOff", "message": "back-off restarting failed container",
    } });
    let mut statuses = containers(pod, &waiting, false, false);
    for container in statuses.as_array_mut().into_iter().flatten() {
        let before = number(&container["restartCount"], 0);
        container["restartCount"] = (before + 1).into();
        container["lastState"] =
            json!({ "terminated": { "exitCode": 1, "reason": "Error", "finishedAt": now } });
    }
    status["containerStatuses"] = statuses;
    set_unready(&mut status, pod, &now);
    status
}

/// The containers came to their end.
fn ended(hand: &Hand<'_>, pod: &Stored, well: bool) -> Value {
    let now = hand.now();
    let mut status = pod.body()["status"].clone();
    let (phase, reason, code) = if well { ("Succeeded", "Completed", 0) } else { ("Failed", "Error", 1) };
    status["phase"] = phase.into();
    let started = status["containerStatuses"][0]["state"]["running"]["startedAt"].clone();
    let state = json!({ "terminated": {
        "exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now,
    } });
    status["containerStatuses"] = containers(pod, &state, false, false);
    let reason = if well { "PodCompleted" } else { "PodFailed" };
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    for kind in ["Ready", "ContainersReady"] {
        let said = Said { kind, status: false, reason, message: "" };
        condition::set(&mut conditions, &said, &now);
    }
    status["conditions"] = conditions.into();
    status
}

fn set_unready(status: &mut Value, pod: &Stored, now: &str) {
    let names: Vec<&str> = pod.body()["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|container| container["name"].as_str())
        .collect();
    let message = format!("containers with unready status: [{}]", names.join(" "));
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    for kind in ["Ready", "ContainersReady"] {
        let said = Said { kind, status: false, reason: "ContainersNotReady", message: &message };
        condition::set(&mut conditions, &said, now);
    }
    status["conditions"] = conditions.into();
}

fn set_conditions(status: &mut Value, now: &str, kinds: &[&str]) {
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    for kind in kinds {
        condition::set(&mut conditions, &Said { kind, status: true, reason: "", message: "" }, now);
    }
    status["conditions"] = conditions.into();
}

fn containers(pod: &Stored, state: &Value, ready: bool, started: bool) -> Value {
    let former = pod.body()["status"]["containerStatuses"].as_array();
    let containers = pod.body()["spec"]["containers"].as_array().into_iter().flatten();
    containers
        .map(|container| {
            let name = &container["name"];
            let before = former.into_iter().flatten().find(|status| status["name"] == *name);
            json!({
                "name": name, "image": container["image"], "imageID": "", "state": state,
                "lastState": before.map_or_else(|| json!({}), |before| before["lastState"].clone()),
                "ready": ready, "started": started,
                "restartCount": before.map_or(0, |before| number(&before["restartCount"], 0)),
            })
        })
        .collect()
}

/// Whether the containers are started again whenever they end.
fn restarts(pod: &Stored) -> bool {
    !matches!(pod.body()["spec"]["restartPolicy"].as_str(), Some("Never" | "OnFailure"))
}
