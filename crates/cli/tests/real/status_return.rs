//! Scenario `status-return`: what the edge reports is seen in the mailbox.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harbor::{Harbor, namespace, put};

fn deployment(name: &str, replicas: u32) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": "status-return" },
        "spec": { "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "c", "image": "registry.invalid/none:1" }] } } } })
}

fn selects(options: &Value) -> Value {
    let mut entry = json!({ "group": "apps", "resource": "deployments", "apiVersion": "v1" });
    entry.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    json!({ "namespaceScope": { "namespaces": ["status-return"], "resources": [entry] } })
}

#[tokio::test]
async fn a_deployment_made_ready_at_the_edge_is_ready_in_the_mailbox() {
    let mut harbor = Harbor::new("status-return").await;
    put(&harbor.up, &namespace("status-return")).await;
    put(&harbor.up, &deployment("pos", 3)).await;
    harbor.configure(selects(&json!({}))).await;
    harbor.sail();
    let pos = ("apps/v1", "Deployment", "status-return", "pos");
    harbor.until_down(pos, "ready", |copy| copy["status"]["readyReplicas"] == 3).await;
    let ready = Instant::now();
    let source = harbor.until_up(pos, "ready", |source| source["status"]["readyReplicas"] == 3).await;
    let took = ready.elapsed();
    assert!(took < Duration::from_secs(2), "the status came {took:?} after the edge had it");
    assert_eq!(source["spec"]["replicas"], 3, "{source:#}");

    put(&harbor.up, &deployment("pos", 1)).await;
    harbor.until_up(pos, "scaled down", |source| source["status"]["readyReplicas"] == 1).await;
    harbor.moor().await;
}

#[tokio::test]
async fn a_status_that_is_not_asked_for_stays_at_the_edge() {
    let mut harbor = Harbor::new("status-off").await;
    put(&harbor.up, &namespace("status-return")).await;
    put(&harbor.up, &deployment("quiet", 1)).await;
    put(&harbor.up, &deployment("loud", 1)).await;
    // Two entries that disagree: the cautious one wins, and both are told of.
    harbor.configure(selects(&json!({ "returnStatus": false }))).await;
    let one = json!({ "namespacedObjects": [{ "group": "apps", "resource": "deployments", "apiVersion": "v1",
        "objectsByNamespace": [{ "namespace": "status-return", "names": ["quiet"] }] }] });
    harbor.configure_as("SyncerConfig", "other", one).await;
    harbor.sail();
    let quiet = ("apps/v1", "Deployment", "status-return", "quiet");
    harbor.until_down(quiet, "ready", |copy| copy["status"]["readyReplicas"] == 1).await;
    let disagrees = |status: &Value| {
        status["conditions"].as_array().is_some_and(|conditions| {
            conditions
                .iter()
                .any(|condition| condition["type"] == "OptionsAgree" && condition["status"] == "False")
        })
    };
    let status = harbor.until_status("the disagreement", disagrees).await;
    assert!(status.to_string().contains("SyncerConfig other: spec.namespacedObjects[0]"), "{status:#}");
    harbor.until_status("both delivered", |status| status["counts"]["delivered"] == 2).await;
    let source = harbor.until_up(quiet, "there", |_| true).await;
    assert!(source["status"].get("readyReplicas").is_none(), "{source:#}");
    harbor.moor().await;
}
