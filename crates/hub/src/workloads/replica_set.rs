//! Replica sets: so many pods of one template.

use std::sync::Arc;

use mailboat_machinery::Stored;
use mailboat_object::Key;
use serde_json::json;

use super::hand::Hand;
use super::{number, template};

/// Looks at one replica set; answers when to look again.
pub(super) fn look(hand: &mut Hand<'_>, key: &Key) -> Option<u64> {
    let set = hand.get(key)?;
    let spec = &set.body()["spec"];
    let wanted = number(&spec["replicas"], 1);
    let mut pods = hand.owned("", "pods", &set);
    pods.retain(|pod| template::is_active(pod));
    let present = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    if !set.is_deleting() {
        for _ in present..wanted {
            template::make_pod(hand, &set, None, &[]);
        }
        let surplus = usize::try_from(present - wanted).unwrap_or(0);
        for pod in last_first(&mut pods).take(surplus) {
            hand.delete(&pod.key, None);
        }
    }
    let mut pods = hand.owned("", "pods", &set);
    let going = pods.iter().filter(|pod| pod.is_deleting() && !template::has_ended(pod)).count();
    pods.retain(|pod| template::is_active(pod));
    let counted =
        template::count(pods.iter().map(|pod| &**pod), number(&spec["minReadySeconds"], 0), hand.now_ms);
    let mut status = json!({
        "replicas": pods.len(), "terminatingReplicas": going, "observedGeneration": set.generation(),
    });
    for (member, count) in [
        ("fullyLabeledReplicas", i64::try_from(pods.len()).unwrap_or(i64::MAX)),
        ("readyReplicas", counted.ready),
        ("availableReplicas", counted.available),
    ] {
        if count > 0 {
            status[member] = count.into();
        }
    }
    let set = hand.get(key)?;
    hand.set_status(&set, status);
    counted.again
}

/// Those that are missed least come first: without a node, not ready, young.
fn last_first(pods: &mut [Arc<Stored>]) -> impl Iterator<Item = &Arc<Stored>> {
    pods.sort_by_key(|pod| {
        let placed = !pod.body()["spec"]["nodeName"].is_null();
        (placed, template::is_ready(pod), std::cmp::Reverse(pod.version))
    });
    pods.iter()
}
