use serde_json::{Value, json};

use super::*;
use crate::fixtures::{kind, object};

/// How an object with this spec and status is: `well`, or the reason behind `underway` or `broken`.
fn health(kind_text: &str, spec: &Value, status: &Value) -> String {
    let copy = json!({ "metadata": { "name": "x", "generation": 9 }, "spec": spec, "status": status });
    let copy = object("mailbox", kind_text, &copy);
    said(&of(&kind(kind_text), &copy, &copy))
}

fn said(health: &Health) -> String {
    match health {
        Health::Well => "well".to_owned(),
        Health::Underway(cause) => format!("underway: {}", cause.reason),
        Health::Broken(cause) => format!("broken: {}", cause.reason),
    }
}

fn conditions(listed: &[(&str, &str, &str)]) -> Value {
    let each = |(type_, status, reason): &(&str, &str, &str)| json!({ "type": type_, "status": status, "reason": reason });
    listed.iter().map(each).collect()
}

fn check(kind_text: &str, cases: &[(Value, Value, &str)]) {
    for (spec, status, expected) in cases {
        assert_eq!(health(kind_text, spec, status), *expected, "{kind_text}: {spec} {status}");
    }
}

#[test]
fn deployments() {
    let full = |more: Value| {
        let mut status = json!({ "observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2,
            "availableReplicas": 2, "conditions": conditions(&[("Available", "True", ""), ("Progressing", "True", "NewReplicaSetAvailable")]) });
        for (key, value) in more.as_object().unwrap() {
            status[key] = value.clone();
        }
        status
    };
    let two = json!({ "replicas": 2 });
    check(
        "deployments.apps",
        &[
            (two.clone(), full(json!({})), "well"),
            (
                json!({ "replicas": 0 }),
                json!({ "conditions": conditions(&[("Available", "True", "")]) }),
                "well",
            ),
            (two.clone(), Value::Null, "underway: LessReplicas"),
            (json!({}), json!({}), "underway: LessReplicas"),
            (two.clone(), full(json!({ "replicas": 1 })), "underway: LessReplicas"),
            (two.clone(), full(json!({ "updatedReplicas": 1 })), "underway: LessUpdated"),
            (two.clone(), full(json!({ "replicas": 3 })), "underway: ExtraPods"),
            (two.clone(), full(json!({ "availableReplicas": 1 })), "underway: LessAvailable"),
            (two.clone(), full(json!({ "readyReplicas": 1 })), "underway: LessReady"),
            (two.clone(), full(json!({ "conditions": [] })), "underway: NotAvailable"),
            (
                two.clone(),
                full(
                    json!({ "conditions": conditions(&[("Available", "False", "MinimumReplicasUnavailable")]) }),
                ),
                "underway: MinimumReplicasUnavailable",
            ),
            (
                two,
                full(
                    json!({ "readyReplicas": 0, "conditions": conditions(&[("Progressing", "False", "ProgressDeadlineExceeded")]) }),
                ),
                "broken: ProgressDeadlineExceeded",
            ),
        ],
    );
}

#[test]
fn stateful_sets() {
    let status = |replicas: i64, ready: i64, current: i64, updated: i64, revisions: [&str; 2]| {
        json!({ "replicas": replicas, "readyReplicas": ready, "currentReplicas": current, "updatedReplicas": updated,
            "currentRevision": revisions[0], "updateRevision": revisions[1] })
    };
    let three = json!({ "replicas": 3 });
    let partitioned = json!({ "replicas": 3, "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 2 } } });
    check(
        "statefulsets.apps",
        &[
            (three.clone(), status(3, 3, 3, 3, ["a", "a"]), "well"),
            (json!({ "replicas": 3, "updateStrategy": { "type": "OnDelete" } }), Value::Null, "well"),
            (three.clone(), Value::Null, "underway: LessReplicas"),
            (three.clone(), status(2, 2, 2, 2, ["a", "a"]), "underway: LessReplicas"),
            (three.clone(), status(3, 2, 3, 3, ["a", "a"]), "underway: LessReady"),
            (three.clone(), status(4, 4, 3, 3, ["a", "a"]), "underway: ExtraPods"),
            (three.clone(), status(3, 3, 1, 2, ["a", "b"]), "underway: RollingUpdate"),
            (three, status(3, 3, 2, 3, ["a", "a"]), "underway: LessCurrent"),
            (partitioned.clone(), status(3, 3, 2, 0, ["a", "b"]), "underway: PartitionRollout"),
            (partitioned, status(3, 3, 2, 1, ["a", "b"]), "well"),
        ],
    );
}

#[test]
fn daemon_sets_and_replica_sets() {
    let daemons = |scheduled: i64, updated: i64, available: i64, ready: i64| {
        json!({ "desiredNumberScheduled": 4, "currentNumberScheduled": scheduled, "updatedNumberScheduled": updated,
            "numberAvailable": available, "numberReady": ready })
    };
    check(
        "daemonsets.apps",
        &[
            (json!({}), daemons(4, 4, 4, 4), "well"),
            (json!({}), json!({ "desiredNumberScheduled": 0 }), "well"),
            (json!({}), Value::Null, "underway: NoDesiredNumber"),
            (json!({}), daemons(3, 4, 4, 4), "underway: LessScheduled"),
            (json!({}), daemons(4, 3, 4, 4), "underway: LessUpdated"),
            (json!({}), daemons(4, 4, 3, 4), "underway: LessAvailable"),
            (json!({}), daemons(4, 4, 4, 3), "underway: LessReady"),
        ],
    );
    let set = |labelled: i64, available: i64, ready: i64, all: i64| json!({ "replicas": all, "fullyLabeledReplicas": labelled, "availableReplicas": available, "readyReplicas": ready });
    let two = json!({ "replicas": 2 });
    check(
        "replicasets.apps",
        &[
            (two.clone(), set(2, 2, 2, 2), "well"),
            (two.clone(), set(1, 2, 2, 2), "underway: LessLabelled"),
            (two.clone(), set(2, 1, 2, 2), "underway: LessAvailable"),
            (two.clone(), set(2, 2, 1, 2), "underway: LessReady"),
            (two.clone(), set(2, 2, 2, 3), "underway: ExtraPods"),
            (
                two,
                json!({ "conditions": conditions(&[("ReplicaFailure", "True", "FailedCreate")]) }),
                "underway: FailedCreate",
            ),
        ],
    );
}

#[test]
fn jobs_and_pods() {
    check(
        "jobs.batch",
        &[
            (json!({}), Value::Null, "underway: JobNotStarted"),
            (json!({}), json!({ "startTime": "2026-01-01T00:00:00Z", "active": 1 }), "well"),
            (json!({}), json!({ "conditions": conditions(&[("Complete", "True", "")]) }), "well"),
            (
                json!({}),
                json!({ "conditions": conditions(&[("Failed", "True", "BackoffLimitExceeded")]) }),
                "broken: BackoffLimitExceeded",
            ),
            (
                json!({}),
                json!({ "conditions": conditions(&[("Failed", "False", "")]) }),
                "underway: JobNotStarted",
            ),
        ],
    );
    let waiting = |reason: &str| json!([{ "name": "c", "state": { "waiting": { "reason": reason } } }]);
    check(
        "pods",
        &[
            (json!({}), Value::Null, "underway: PodNotObserved"),
            (json!({}), json!({ "phase": "Succeeded" }), "well"),
            (json!({}), json!({ "phase": "Failed" }), "broken: PodFailed"),
            (json!({}), json!({ "phase": "Failed", "reason": "Evicted" }), "broken: Evicted"),
            (
                json!({}),
                json!({ "phase": "Running", "conditions": conditions(&[("Ready", "True", "")]) }),
                "well",
            ),
            (json!({}), json!({ "phase": "Running" }), "underway: PodNotReady"),
            (
                json!({}),
                json!({ "phase": "Running", "containerStatuses": waiting("CrashLoopBackOff") }),
                "broken: ContainerCrashLooping",
            ),
            (
                json!({}),
                json!({ "phase": "Pending", "initContainerStatuses": waiting("CrashLoopBackOff") }),
                "broken: ContainerCrashLooping",
            ),
            (
                json!({}),
                json!({ "phase": "Pending", "containerStatuses": waiting("ContainerCreating") }),
                "underway: PodNotReady",
            ),
            (
                json!({}),
                json!({ "phase": "Pending", "conditions": conditions(&[("PodScheduled", "False", "Unschedulable")]) }),
                "broken: Unschedulable",
            ),
        ],
    );
}

#[test]
fn services_and_volume_claims() {
    let balanced = json!({ "type": "LoadBalancer" });
    check(
        "services",
        &[
            (json!({}), Value::Null, "well"),
            (json!({ "type": "NodePort" }), json!({ "loadBalancer": {} }), "well"),
            (balanced.clone(), json!({ "loadBalancer": {} }), "underway: NoAddress"),
            (balanced, json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } }), "well"),
        ],
    );
    check(
        "persistentvolumeclaims",
        &[
            (json!({}), Value::Null, "underway: NotBound"),
            (json!({}), json!({ "phase": "Pending" }), "underway: NotBound"),
            (json!({}), json!({ "phase": "Bound" }), "well"),
            (json!({}), json!({ "phase": "Lost" }), "broken: VolumeLost"),
        ],
    );
    check(
        "poddisruptionbudgets.policy",
        &[
            (json!({}), json!({ "currentHealthy": 1, "desiredHealthy": 2 }), "underway: BudgetNotMet"),
            (json!({}), json!({ "currentHealthy": 2, "desiredHealthy": 2 }), "well"),
        ],
    );
}

#[test]
fn definitions_of_kinds() {
    check(
        "customresourcedefinitions.apiextensions.k8s.io",
        &[
            (json!({}), Value::Null, "underway: Installing"),
            (
                json!({}),
                json!({ "conditions": conditions(&[("NamesAccepted", "True", ""), ("Established", "True", "")]) }),
                "well",
            ),
            (
                json!({}),
                json!({ "conditions": conditions(&[("NamesAccepted", "False", "PluralConflict")]) }),
                "broken: PluralConflict",
            ),
            (
                json!({}),
                json!({ "conditions": conditions(&[("Established", "False", "Installing")]) }),
                "underway: Installing",
            ),
            (
                json!({}),
                json!({ "conditions": conditions(&[("Established", "False", "NotAccepted")]) }),
                "broken: NotAccepted",
            ),
        ],
    );
}

#[test]
fn any_other_kind() {
    check(
        "crontabs.stable.example.com",
        &[
            (json!({}), Value::Null, "well"),
            (json!({}), json!({ "conditions": conditions(&[("Ready", "True", "")]) }), "well"),
            (
                json!({}),
                json!({ "conditions": conditions(&[("Ready", "False", "Sleeping")]) }),
                "underway: Sleeping",
            ),
            (
                json!({}),
                json!({ "conditions": conditions(&[("Ready", "Unknown", "")]) }),
                "underway: NotReady",
            ),
            (
                json!({}),
                json!({ "conditions": conditions(&[("Stalled", "True", "NoDisk"), ("Ready", "False", "")]) }),
                "broken: NoDisk",
            ),
            (
                json!({}),
                json!({ "conditions": conditions(&[("Stalled", "False", ""), ("Reconciling", "True", "")]) }),
                "underway: Reconciling",
            ),
            // Observed before the rest of the status: it says nothing any more.
            (
                json!({}),
                json!({ "observedGeneration": 3, "conditions": [
                    { "type": "Ready", "status": "False", "reason": "Old", "observedGeneration": 2 } ] }),
                "well",
            ),
            // The copy's generation is 9, and another server's: it is not compared.
            (json!({}), json!({ "observedGeneration": 3 }), "well"),
            (json!({}), json!("no map"), "well"),
            (json!({}), json!({ "conditions": "no list" }), "well"),
        ],
    );
    check("configmaps", &[(Value::Null, Value::Null, "well")]);
}

#[test]
fn what_is_being_deleted_is_not_well() {
    let leaving = json!({ "metadata": { "name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let leaving = object("mailbox", "configmaps", &leaving);
    assert_eq!(said(&of(&kind("configmaps"), &leaving, &leaving)), "underway: Terminating");
}
