//! What is known of a Pod's containers, and how the Pod's status says it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::Blocked;
use super::environment::POD_ADDRESS;
use crate::process::ProcessIdentity;

/// How every container of a Pod stands, by name.
pub(super) type Board = BTreeMap<String, Standing>;

/// How one container stands.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) state: State,
    pub(super) last_end: Option<End>,
    pub(super) restarts: u32,
    pub(super) started: bool,
    pub(super) ready: bool,
    /// It has ended and will not be run again.
    pub(super) finished: bool,
    /// The program itself, which is process 1 of its namespace.
    pub(super) process: Option<ProcessIdentity>,
}

#[derive(Debug, Clone)]
pub(super) enum State {
    Waiting(Blocked),
    Running { since: Timestamp },
    Ended(End),
}

/// How a run of a container ended.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) exit_code: i32,
    pub(super) message: String,
    pub(super) started: Timestamp,
    pub(super) finished: Timestamp,
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            state: State::Waiting(Blocked::creating("")),
            last_end: None,
            restarts: 0,
            started: false,
            ready: false,
            finished: false,
            process: None,
        }
    }
}

/// Since when each condition is as it is.
pub(super) type Transitions = BTreeMap<&'static str, (bool, Timestamp)>;

/// The Pod's status as a strategic merge patch, in which conditions of others' stay.
pub(super) fn patch(pod: &Pod, board: &Board, start_time: Timestamp, transitions: &mut Transitions) -> Value {
    let Some(spec) = &pod.spec else { return json!({}) };
    let init_containers = spec.init_containers.as_deref().unwrap_or_default();
    let initialized = init_containers.iter().all(|container| standing(board, container).succeeded());
    let ready = spec.containers.iter().all(|container| standing(board, container).ready);
    let conditions = [
        (
            "PodReadyToStartContainers",
            board.values().any(|standing| !matches!(standing.state, State::Waiting(_))),
        ),
        ("Initialized", initialized),
        ("ContainersReady", ready),
        ("Ready", ready),
        // The scheduler says so only of Pods that it has seen.
        ("PodScheduled", true),
    ];
    let conditions: Vec<Value> =
        conditions.into_iter().map(|(kind, holds)| condition(transitions, kind, holds)).collect();
    json!({
        "status": {
            "phase": phase(pod, board, initialized),
            "conditions": conditions,
            "hostIP": POD_ADDRESS,
            "hostIPs": [{ "ip": POD_ADDRESS }],
            "podIP": POD_ADDRESS,
            "podIPs": [{ "ip": POD_ADDRESS }],
            "startTime": time(start_time),
            "initContainerStatuses": container_statuses(pod, init_containers, board),
            "containerStatuses": container_statuses(pod, &spec.containers, board),
        },
    })
}

impl Standing {
    pub(super) fn succeeded(&self) -> bool {
        self.finished && matches!(&self.state, State::Ended(end) if end.exit_code == 0)
    }
}

fn standing(board: &Board, container: &Container) -> Standing {
    board.get(&container.name).cloned().unwrap_or_default()
}

fn phase(pod: &Pod, board: &Board, initialized: bool) -> &'static str {
    let Some(spec) = &pod.spec else { return "Pending" };
    let standings: Vec<Standing> =
        spec.containers.iter().map(|container| standing(board, container)).collect();
    let gave_up = board.values().any(|standing| standing.finished && !standing.succeeded());
    if standings.iter().all(|standing| standing.finished) || (!initialized && gave_up) {
        return if gave_up { "Failed" } else { "Succeeded" };
    }
    let has_run =
        |standing: &Standing| standing.last_end.is_some() || !matches!(standing.state, State::Waiting(_));
    if initialized && standings.iter().any(has_run) { "Running" } else { "Pending" }
}

fn condition(transitions: &mut Transitions, kind: &'static str, holds: bool) -> Value {
    let entry = transitions.entry(kind).or_insert((holds, Timestamp::now()));
    if entry.0 != holds {
        *entry = (holds, Timestamp::now());
    }
    let status = if holds { "True" } else { "False" };
    json!({ "type": kind, "status": status, "lastTransitionTime": time(entry.1) })
}

fn container_statuses(pod: &Pod, containers: &[Container], board: &Board) -> Vec<Value> {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let status = |container: &Container| {
        let standing = standing(board, container);
        let id = format!("testkit://{uid}/{}/{}", container.name, standing.restarts);
        let has_run = !matches!(standing.state, State::Waiting(_)) || standing.last_end.is_some();
        json!({
            "name": container.name,
            "image": container.image,
            "imageID": "",
            "containerID": has_run.then_some(id),
            "restartCount": standing.restarts,
            "started": standing.started,
            "ready": standing.ready,
            "state": state(&standing.state),
            "lastState": standing.last_end.as_ref().map_or_else(|| json!({}), |end| json!({ "terminated": ended(end) })),
        })
    };
    containers.iter().map(status).collect()
}

fn state(state: &State) -> Value {
    match state {
        State::Waiting(blocked) => {
            json!({ "waiting": { "reason": blocked.reason, "message": blocked.message } })
        }
        State::Running { since } => json!({ "running": { "startedAt": time(*since) } }),
        State::Ended(end) => json!({ "terminated": ended(end) }),
    }
}

fn ended(end: &End) -> Value {
    json!({
        "exitCode": end.exit_code,
        "reason": if end.exit_code == 0 { "Completed" } else { "Error" },
        "message": end.message,
        "startedAt": time(end.started),
        "finishedAt": time(end.finished),
    })
}

/// Whole seconds, which is all that the API keeps: a status must not differ from itself.
fn time(moment: Timestamp) -> String {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Pod {
        let spec = json!({ "initContainers": [{ "name": "first" }], "containers": [{ "name": "main" }] });
        serde_json::from_value(json!({ "metadata": { "uid": "u" }, "spec": spec })).unwrap()
    }

    fn end(exit_code: i32) -> End {
        let moment = Timestamp::UNIX_EPOCH;
        End { exit_code, message: String::new(), started: moment, finished: moment }
    }

    fn seen(first: Standing, main: Standing) -> (String, String) {
        let board = Board::from([("first".to_owned(), first), ("main".to_owned(), main)]);
        let patch = patch(&pod(), &board, Timestamp::UNIX_EPOCH, &mut Transitions::new());
        let ready = &patch["status"]["conditions"][3];
        assert_eq!(ready["type"], "Ready");
        (patch["status"]["phase"].as_str().unwrap().to_owned(), ready["status"].as_str().unwrap().to_owned())
    }

    #[test]
    fn the_phase_follows_the_containers() {
        let waiting = Standing::default;
        let done = |code| Standing { state: State::Ended(end(code)), finished: true, ..waiting() };
        let running =
            Standing { state: State::Running { since: Timestamp::UNIX_EPOCH }, ready: true, ..waiting() };
        let crashed = Standing { last_end: Some(end(1)), restarts: 1, ..waiting() };
        let cases = [
            (waiting(), waiting(), "Pending", "False"),
            (done(0), waiting(), "Pending", "False"),
            (done(0), running, "Running", "True"),
            (done(0), crashed, "Running", "False"),
            (done(0), done(0), "Succeeded", "False"),
            (done(0), done(3), "Failed", "False"),
            (done(1), waiting(), "Failed", "False"),
        ];
        for (first, main, phase, ready) in cases {
            let what = format!("{first:?} {main:?}");
            assert_eq!(seen(first, main), (phase.to_owned(), ready.to_owned()), "{what}");
        }
    }

    #[test]
    fn a_condition_keeps_its_time_until_it_changes() {
        let mut transitions = Transitions::from([("Ready", (false, Timestamp::UNIX_EPOCH))]);
        let same = condition(&mut transitions, "Ready", false);
        assert_eq!(same["lastTransitionTime"], "1970-01-01T00:00:00Z");
        let other = condition(&mut transitions, "Ready", true);
        assert_ne!(other["lastTransitionTime"], "1970-01-01T00:00:00Z");
    }
}
