//! Nodes that are nothing but their objects, and nodes that somebody else keeps.

use std::sync::Arc;

use mailboat_machinery::Stored;
use mailboat_object::{Key, KindId, Name};
use serde_json::{Value, json};

use super::hand::Hand;

/// Says of a node that somebody else runs pods on it, and those of which images: `["example.org/app"]`. No pod on it is
/// played here.
const RUNS_IMAGES: &str = "mailboat.dev/runs-images";

/// Whether somebody else runs what is on a node.
pub(super) fn is_kept_elsewhere(node: &Stored) -> bool {
    node.metadata()["annotations"].get(RUNS_IMAGES).is_some()
}

/// Whether a node that somebody else keeps is meant for a pod.
pub(super) fn runs(node: &Stored, pod: &Stored) -> bool {
    let said = node.metadata()["annotations"][RUNS_IMAGES].as_str().unwrap_or_default();
    let images: Vec<String> = serde_json::from_str(said).unwrap_or_default();
    let image = pod.body()["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    images.iter().any(|known| {
        let rest = image.strip_prefix(known.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '@']))
    })
}

/// The node that a pod was given.
pub(super) fn of(hand: &Hand<'_>, pod: &Stored) -> Option<Arc<Stored>> {
    hand.get(&Key {
        cluster: pod.key.cluster.clone(),
        kind: KindId::new("", "nodes"),
        namespace: Name::EMPTY,
        name: Name::new(pod.body()["spec"]["nodeName"].as_str()?),
    })
}

/// The address of the node that a pod was given; empty if it has none.
pub(super) fn address(hand: &Hand<'_>, pod: &Stored) -> String {
    let node = of(hand, pod);
    let addresses = node.as_ref().and_then(|node| node.body()["status"]["addresses"].as_array());
    let mut inside = addresses.into_iter().flatten().filter(|address| address["type"] == "InternalIP");
    inside.find_map(|address| address["address"].as_str()).unwrap_or_default().to_owned()
}

/// Makes the nodes that are missing.
pub(super) fn make(hand: &mut Hand<'_>, count: usize) {
    let present = hand.list("", "nodes", "");
    for number in 0..count {
        let name = format!("node-{number}");
        if !present.iter().any(|node| node.key.name.as_str() == name) {
            let body = node(&name, number, &hand.now());
            hand.create("", "nodes", "", body);
        }
    }
    for node in hand.list("", "nodes", "") {
        if node.body()["status"]["conditions"].is_null() {
            let number = node.key.name.rsplit('-').next().and_then(|number| number.parse().ok());
            let status = status(node.key.name.as_str(), number.unwrap_or(0), &hand.now());
            hand.set_status(&node, status);
        }
    }
}

fn node(name: &str, number: usize, now: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "mailboat.dev/simulated": "true",
        } },
        "spec": { "podCIDR": format!("10.244.{number}.0/24") },
        "status": status(name, number, now),
    })
}

fn status(name: &str, number: usize, now: &str) -> Value {
    let room = json!({ "cpu": "32", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti" });
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    json!({
        "addresses": [
            { "type": "InternalIP", "address": format!("10.0.{}.{}", number / 250, number % 250 + 2) },
            { "type": "Hostname", "address": name },
        ],
        "allocatable": room, "capacity": room,
        "conditions": [
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ],
        "nodeInfo": {
            "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "v1.36.0-simulated",
            "bootID": "", "containerRuntimeVersion": "simulated", "kernelVersion": "", "kubeProxyVersion": "",
            "machineID": "", "osImage": "", "systemUUID": "",
        },
    })
}
