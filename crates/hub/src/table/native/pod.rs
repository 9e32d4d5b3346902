//! The cells of Pods: what their containers say together.

use serde_json::Value;

use super::Cell;
use super::text::{holds, list, number, or_none, since};

pub(super) fn cell(heading: &str) -> Option<Cell> {
    Some(match heading {
        "Ready" => |pod, _| {
            let told = told(pod);
            format!("{}/{}", told.ready, told.containers).into()
        },
        "Status" => |pod, _| told(pod).reason.into(),
        "Restarts" => |pod, now| {
            let told = told(pod);
            match told.last_restart.filter(|_| told.restarts != 0) {
                Some(last) => {
                    let ago = since(&last.into(), now);
                    format!("{} ({} ago)", told.restarts, ago.as_str().unwrap_or_default()).into()
                }
                None => told.restarts.to_string().into(),
            }
        },
        "IP" => |pod, _| or_none(&pod["status"]["podIPs"][0]["ip"]),
        "Node" => |pod, _| or_none(&pod["spec"]["nodeName"]),
        "Nominated Node" => |pod, _| or_none(&pod["status"]["nominatedNodeName"]),
        "Readiness Gates" => |pod, _| {
            let gates = list(&pod["spec"]["readinessGates"]);
            let open =
                gates.iter().filter(|gate| holds(pod, gate["conditionType"].as_str().unwrap_or_default()));
            if gates.is_empty() {
                "<none>".into()
            } else {
                format!("{}/{}", open.count(), gates.len()).into()
            }
        },
        _ => return None,
    })
}

/// What a row says of a Pod.
struct Told<'p> {
    containers: usize,
    ready: usize,
    reason: String,
    restarts: i64,
    last_restart: Option<&'p str>,
}

/// Restarts of containers, and when the last one was.
#[derive(Default)]
struct Restarts<'p> {
    count: i64,
    last: Option<&'p str>,
}

impl<'p> Restarts<'p> {
    fn add(&mut self, container: &'p Value) {
        self.count += number(&container["restartCount"]);
        let ended = container["lastState"]["terminated"]["finishedAt"].as_str();
        self.last = self.last.max(ended);
    }
}

/// As kube-apiserver counts and names it.
fn told(pod: &Value) -> Told<'_> {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let phase = status["phase"].as_str().unwrap_or_default();
    let mut reason =
        status["reason"].as_str().filter(|reason| !reason.is_empty()).unwrap_or(phase).to_owned();
    let gated =
        |condition: &Value| condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated";
    if list(&status["conditions"]).iter().any(gated) {
        "SchedulingGated".clone_into(&mut reason);
    }
    let first = list(&spec["initContainers"]);
    // One that is started again whenever it ends goes along with the others.
    let stays = |name: &Value| {
        first.iter().any(|container| container["name"] == *name && container["restartPolicy"] == "Always")
    };
    let mut containers = list(&spec["containers"]).len();
    containers += first.iter().filter(|container| stays(&container["name"])).count();

    let (mut all, mut staying) = (Restarts::default(), Restarts::default());
    let (mut ready, mut initializing) = (0, false);
    for (index, container) in list(&status["initContainerStatuses"]).iter().enumerate() {
        all.add(container);
        let stays = stays(&container["name"]);
        if stays {
            staying.add(container);
        }
        let (ended, waits) = (&container["state"]["terminated"], &container["state"]["waiting"]["reason"]);
        if ended.is_object() && number(&ended["exitCode"]) == 0 {
            continue;
        }
        if stays && container["started"] == true {
            ready += usize::from(container["ready"] == true);
            continue;
        }
        initializing = true;
        reason = if ended.is_object() {
            format!("Init:{}", how_it_ended(ended))
        } else {
            match waits.as_str() {
                Some(waits) if !waits.is_empty() && waits != "PodInitializing" => format!("Init:{waits}"),
                _ => format!("Init:{index}/{}", first.len()),
            }
        };
        break;
    }
    if !initializing || holds(pod, "Initialized") {
        all = staying;
        reason = of_containers(status, reason, &mut all, &mut ready);
    }
    let goes = !pod["metadata"]["deletionTimestamp"].is_null();
    if goes && status["reason"] == "NodeLost" {
        "Unknown".clone_into(&mut reason);
    } else if goes && !matches!(phase, "Succeeded" | "Failed") {
        "Terminating".clone_into(&mut reason);
    }
    Told { containers, ready, reason, restarts: all.count, last_restart: all.last }
}

fn of_containers<'p>(
    status: &'p Value,
    mut reason: String,
    restarts: &mut Restarts<'p>,
    ready: &mut usize,
) -> String {
    let (mut runs, mut failure) = (false, None);
    for container in list(&status["containerStatuses"]).iter().rev() {
        restarts.add(container);
        let state = &container["state"];
        let waits = state["waiting"]["reason"].as_str().filter(|waits| !waits.is_empty());
        if let Some(waits) = waits {
            waits.clone_into(&mut reason);
        } else if state["terminated"].is_object() {
            reason = how_it_ended(&state["terminated"]);
            if number(&state["terminated"]["exitCode"]) != 0 {
                failure = Some(reason.clone());
            }
        } else if container["ready"] == true && state["running"].is_object() {
            runs = true;
            *ready += 1;
        }
    }
    if reason != "Completed" {
        return reason;
    }
    let is_ready = list(&status["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    match (runs, failure) {
        (true, _) if is_ready => "Running".to_owned(),
        (_, Some(failure)) => failure,
        (true, None) => "NotReady".to_owned(),
        (false, None) => reason,
    }
}

fn how_it_ended(ended: &Value) -> String {
    let signal = number(&ended["signal"]);
    match ended["reason"].as_str().filter(|reason| !reason.is_empty()) {
        Some(reason) => reason.to_owned(),
        None if signal != 0 => format!("Signal:{signal}"),
        None => format!("ExitCode:{}", number(&ended["exitCode"])),
    }
}

/// What tells in a row that a Pod has come to its end.
pub(in crate::table) fn conditions(pod: &Value) -> Option<Value> {
    let (reason, message) = match pod["status"]["phase"].as_str()? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(serde_json::json!([{ "type": "Completed", "status": "True", "reason": reason, "message": message }]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(pod: &Value) -> (String, String, String) {
        let shown = |heading: &str| cell(heading).unwrap()(pod, 1_700_000_000).as_str().unwrap().to_owned();
        (shown("Ready"), shown("Status"), shown("Restarts"))
    }

    #[test]
    fn a_pod_is_shown_as_its_containers_are() {
        let two = json!([{ "name": "a" }, { "name": "b" }]);
        let cases = [
            (
                json!({ "spec": { "containers": two }, "status": { "phase": "Pending" } }),
                ("0/2", "Pending", "0"),
            ),
            (
                json!({ "spec": { "containers": two }, "status": { "phase": "Running", "containerStatuses": [
                    { "name": "a", "ready": true, "restartCount": 0, "state": { "running": {} } },
                    { "name": "b", "ready": false, "restartCount": 3, "state": { "waiting": { "reason": "CrashLoopBackOff" } },
                      "lastState": { "terminated": { "finishedAt": "2023-11-14T22:12:20Z" } } },
                ] } }),
                ("1/2", "CrashLoopBackOff", "3 (60s ago)"),
            ),
            (
                json!({ "spec": { "containers": [{ "name": "a" }], "initContainers": [{ "name": "i" }, { "name": "j" }] },
                    "status": { "phase": "Pending", "initContainerStatuses": [
                        { "name": "i", "state": { "terminated": { "exitCode": 0 } } },
                        { "name": "j", "state": { "terminated": { "exitCode": 3 } }, "restartCount": 1 },
                    ] } }),
                ("0/1", "Init:ExitCode:3", "1"),
            ),
            (
                json!({ "spec": { "containers": [{ "name": "a" }],
                        "initContainers": [{ "name": "side", "restartPolicy": "Always" }] },
                    "status": { "phase": "Running",
                        "initContainerStatuses": [
                            { "name": "side", "started": true, "ready": true, "state": { "running": {} } }],
                        "containerStatuses": [{ "name": "a", "ready": true, "state": { "running": {} } }] } }),
                ("2/2", "Running", "0"),
            ),
            (
                json!({ "metadata": { "deletionTimestamp": "2023-11-14T22:12:20Z" },
                    "spec": { "containers": [{ "name": "a" }] }, "status": { "phase": "Running" } }),
                ("0/1", "Terminating", "0"),
            ),
        ];
        for (pod, (ready, status, restarts)) in cases {
            assert_eq!(row(&pod), (ready.to_owned(), status.to_owned(), restarts.to_owned()), "{pod}");
        }
    }
}
