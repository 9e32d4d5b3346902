//! Times that real servers always say, and be it that there is none.
//!
//! In their types these are values, not pointers: what nobody gave is written as null, and is owned like anything else.

use mailboat_object::KindId;
use serde_json::Value;

const CHANGED: &str = "lastTransitionTime";
const PROBED: &str = "lastProbeTime";
const UPDATED: &str = "lastUpdateTime";
const HEARD_OF: &str = "lastHeartbeatTime";
/// What a container's state says of its times.
const STATES: [(&str, &[&str]); 2] =
    [("running", &["startedAt"]), ("terminated", &["startedAt", "finishedAt"])];

/// Says of the times in an object of a kind that there are none, where nobody gave any.
pub(crate) fn say(kind: &KindId, object: &mut Value) {
    let times: &[&str] = match (kind.group(), kind.resource()) {
        ("", "pods" | "persistentvolumeclaims") | ("batch", "jobs") => &[PROBED, CHANGED],
        ("", "nodes") => &[HEARD_OF, CHANGED],
        ("apps", "deployments") | ("certificates.k8s.io", _) => &[UPDATED, CHANGED],
        ("", "namespaces" | "replicationcontrollers")
        | ("autoscaling" | "apps" | "apiregistration.k8s.io" | "apiextensions.k8s.io", _) => &[CHANGED],
        _ => return,
    };
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    let mut each = |list: &str, act: &mut dyn FnMut(&mut Value)| {
        status.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().for_each(act);
    };
    each("conditions", &mut |condition| none(condition, times));
    if kind.resource() == "pods" {
        for list in ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] {
            each(list, &mut |container| {
                for at in ["state", "lastState"] {
                    let Some(state) = container.get_mut(at) else { continue };
                    for (word, times) in STATES {
                        state.get_mut(word).into_iter().for_each(|state| none(state, times));
                    }
                }
            });
        }
    }
}

fn none(object: &mut Value, times: &[&str]) {
    let Some(members) = object.as_object_mut() else { return };
    for time in times {
        members.entry(*time).or_insert(Value::Null);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_gave_is_null_and_what_is_there_stays() {
        let mut pod = json!({ "status": {
            "conditions": [{ "type": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
            "containerStatuses": [{ "name": "a", "state": { "running": {} }, "lastState": { "terminated": { "exitCode": 1 } } }],
        } });
        say(&KindId::new("", "pods"), &mut pod);
        assert_eq!(
            pod["status"],
            json!({
                "conditions": [{ "type": "Ready", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:00Z" }],
                "containerStatuses": [{ "name": "a", "state": { "running": { "startedAt": null } },
                    "lastState": { "terminated": { "exitCode": 1, "startedAt": null, "finishedAt": null } } }],
            })
        );
        for (kind, mut object) in
            [(KindId::new("", "pods"), json!({})), (KindId::new("", "configmaps"), json!({ "status": {} }))]
        {
            let before = object.clone();
            say(&kind, &mut object);
            assert_eq!(object, before);
        }
    }
}
