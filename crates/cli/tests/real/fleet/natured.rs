//! What is meant for edges and stands natured in its workload workspace: it travels, that it acts on the workspace itself is
//! told, and what is kept for the edges alone goes before it.

use serde_json::{Value, json};

use super::{EDGE, Fleet, Named};
use crate::harbor::{delete, namespace, put};

const QUOTA: Named<'_> = ("v1", "ResourceQuota", "till", "limits");
const ROLE: Named<'_> = ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "till:reader");
const PLACEMENT: Named<'_> = (EDGE, "EdgePlacement", "", "till");

fn quota(version: &str, maps: u64) -> Value {
    json!({ "apiVersion": version, "kind": QUOTA.1, "metadata": { "namespace": QUOTA.2, "name": QUOTA.3 },
            "spec": { "hard": { "configmaps": maps.to_string() } } })
}

fn role(version: &str, verb: &str) -> Value {
    json!({ "apiVersion": version, "kind": ROLE.1, "metadata": { "name": ROLE.3 },
            "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": [verb] }] })
}

fn takes_effect(placement: &Value) -> Value {
    let mut conditions = placement["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|one| one["type"] == "TakesEffectHere").cloned().unwrap_or_default()
}

#[tokio::test]
async fn natured_in_its_workspace() {
    let fleet = Fleet::board().await;
    let workload = fleet.workload("till").await;
    let guilder = fleet.edge("guilder").await;
    put(&workload.client, &namespace("till")).await;
    put(&workload.client, &quota(QUOTA.0, 50)).await;
    put(&workload.client, &role(ROLE.0, "list")).await;
    let placement = json!({
        "apiVersion": PLACEMENT.0, "kind": PLACEMENT.1, "metadata": { "name": PLACEMENT.3 },
        "spec": {
            "locationSelectors": [{ "matchLabels": { "extended": "yes" } }],
            "downsync": [
                { "apiGroup": "", "resources": ["resourcequotas"], "namespaces": ["till"] },
                { "apiGroup": "rbac.authorization.k8s.io", "resources": ["clusterroles"], "objectNames": [ROLE.3] },
            ],
        },
    });
    put(&workload.client, &placement).await;
    let copy = guilder.until(QUOTA, "at the edge", |_| true).await;
    let first = guilder.until(ROLE, "at the edge", |_| true).await;
    let told = |found: &Value| takes_effect(found)["status"] == "True";
    let told = takes_effect(&workload.until(PLACEMENT, "telling of the quota", told).await);
    let message = told["message"].as_str().unwrap();
    assert!(message.starts_with("resourcequotas limits takes effect in this workspace"), "{message}");
    assert!(!message.contains("more"), "a role is meant to take effect where it stands: {message}");

    // Stored both ways, the one for the edges goes there, into the very object that the other made.
    put(&workload.client, &role("rbac.authorization.k8s.io.denatured/v1", "get")).await;
    let second =
        guilder.until(ROLE, "the denatured one", |role| role["rules"][0]["verbs"] == json!(["get"])).await;
    assert_eq!(first["metadata"]["uid"], second["metadata"]["uid"], "it was gone meanwhile");
    let twice = |found: &Value| found["status"]["conflicts"][0]["with"].is_string();
    let told = workload.until(PLACEMENT, "telling of two roles", twice).await;
    let conflict = &told["status"]["conflicts"][0];
    assert_eq!(
        conflict["with"], "clusterroles.rbac.authorization.k8s.io.denatured till:reader",
        "{conflict:#}"
    );

    // Kept for the edges alone, nothing acts on the workspace any more, and nothing left the edge.
    delete(&workload.client, ROLE).await;
    put(&workload.client, &quota("core.denatured/v1", 60)).await;
    guilder.until(QUOTA, "the denatured one", |quota| quota["spec"]["hard"]["configmaps"] == "60").await;
    delete(&workload.client, QUOTA).await;
    let quiet = |found: &Value| {
        takes_effect(found)["status"] == "False" && found["status"].get("conflicts").is_none()
    };
    workload.until(PLACEMENT, "telling of neither", quiet).await;
    let kept = guilder.get(QUOTA).await.unwrap();
    assert_eq!(copy["metadata"]["uid"], kept["metadata"]["uid"], "it was gone meanwhile");
    workload.kubectl(&["delete", "edgeplacement", PLACEMENT.3]).await.well();
    guilder.until_gone(QUOTA).await;
}
