//! Daemon sets: one pod on every node.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_machinery::Stored;
use mailboat_object::{Key, Name};
use serde_json::json;

use super::hand::{Hand, reference};
use super::{deployment, node, number, template};

const REVISION: &str = "controller-revision-hash";

/// Looks at one daemon set; answers when to look again.
pub(super) fn look(hand: &mut Hand<'_>, key: &Key) -> Option<u64> {
    let set = hand.get(key)?;
    let revision = template::hash(&set.body()["spec"]["template"]);
    let nodes = nodes_for(hand, &set);
    if !set.is_deleting() {
        act(hand, &set, &revision, &nodes);
    }
    let pods = by_node(hand, &set);
    let mine: Vec<&Arc<Stored>> =
        nodes.iter().filter_map(|node| pods.get(node)).filter(|pod| template::is_active(pod)).collect();
    let min_ready = number(&set.body()["spec"]["minReadySeconds"], 0);
    let counted = template::count(mine.iter().map(|pod| &***pod), min_ready, hand.now_ms);
    let updated = mine.iter().filter(|pod| revision_of(pod) == revision).count();
    let mut status = json!({
        "observedGeneration": set.generation(), "desiredNumberScheduled": nodes.len(),
        "currentNumberScheduled": mine.len(), "numberMisscheduled": 0, "numberReady": counted.ready,
    });
    let unavailable = i64::try_from(nodes.len()).unwrap_or(i64::MAX) - counted.available;
    for (member, count) in [
        ("updatedNumberScheduled", i64::try_from(updated).unwrap_or(i64::MAX)),
        ("numberAvailable", counted.available),
        ("numberUnavailable", unavailable),
    ] {
        if count > 0 {
            status[member] = count.into();
        }
    }
    let set = hand.get(key)?;
    hand.set_status(&set, status);
    counted.again
}

fn act(hand: &mut Hand<'_>, set: &Stored, revision: &str, nodes: &[Name]) {
    let pods = by_node(hand, set);
    for (node, pod) in &pods {
        let ended = template::has_ended(pod);
        if !pod.is_deleting() && (ended || !nodes.contains(node)) {
            hand.delete(&pod.key, None);
        }
    }
    for node in nodes.iter().filter(|node| !pods.contains_key(*node)) {
        make_pod(hand, set, revision, node);
    }
    let strategy = &set.body()["spec"]["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return;
    }
    let most = &strategy["rollingUpdate"]["maxUnavailable"];
    let count = i64::try_from(nodes.len()).unwrap_or(i64::MAX);
    let most = if most.is_null() { 1 } else { deployment::share(most, count, true).max(1) };
    let working =
        |node: &&Name| pods.get(*node).is_some_and(|pod| template::is_active(pod) && template::is_ready(pod));
    let mut room = most - (count - i64::try_from(nodes.iter().filter(working).count()).unwrap_or(0));
    for pod in nodes.iter().filter_map(|node| pods.get(node)) {
        if pod.is_deleting() || revision_of(pod) == revision {
            continue;
        }
        // One that does not work may be replaced at once.
        if template::is_ready(pod) {
            if room <= 0 {
                continue;
            }
            room -= 1;
        }
        hand.delete(&pod.key, None);
    }
}

fn make_pod(hand: &mut Hand<'_>, set: &Stored, revision: &str, node: &Name) {
    let template = &set.body()["spec"]["template"];
    let mut metadata = json!({
        "generateName": format!("{}-", set.key.name), "ownerReferences": reference(set),
        "labels": template["metadata"]["labels"],
    });
    if template["metadata"]["annotations"].is_object() {
        metadata["annotations"] = template["metadata"]["annotations"].clone();
    }
    metadata["labels"][REVISION] = revision.into();
    let mut spec = template["spec"].clone();
    // The real controller leaves the placing to the scheduler, and lets it choose this one only.
    spec["nodeName"] = node.as_str().into();
    let body = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec });
    hand.create("", "pods", &set.key.namespace, body);
}

fn revision_of(pod: &Stored) -> &str {
    pod.metadata()["labels"][REVISION].as_str().unwrap_or_default()
}

fn nodes_for(hand: &Hand<'_>, set: &Stored) -> Vec<Name> {
    let wanted = &set.body()["spec"]["template"]["spec"]["nodeSelector"];
    let nodes = hand.list("", "nodes", "").into_iter().filter(|node| {
        let labels = &node.metadata()["labels"];
        !node::is_kept_elsewhere(node)
            && wanted.as_object().into_iter().flatten().all(|(label, value)| labels.get(label) == Some(value))
    });
    nodes.map(|node| node.key.name.clone()).collect()
}

/// The pod of each node. Where an old one goes while a new one comes, the new one counts.
fn by_node(hand: &Hand<'_>, set: &Stored) -> BTreeMap<Name, Arc<Stored>> {
    let mut pods: BTreeMap<Name, Arc<Stored>> = BTreeMap::new();
    for pod in hand.owned("", "pods", set) {
        let node = Name::new(pod.body()["spec"]["nodeName"].as_str().unwrap_or_default());
        if pods.get(&node).is_none_or(|other| other.is_deleting()) {
            pods.insert(node, pod);
        }
    }
    pods
}
