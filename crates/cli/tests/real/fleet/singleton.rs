//! Scenario `singleton`: an object that is meant for one edge has its status from there, and says to how many it goes.

use serde_json::{Value, json};

use super::{EDGE, Fleet, Named};
use crate::harbor::{namespace, patch, put};

const KIOSK: Named<'_> = ("apps/v1", "Deployment", "market", "kiosk");
const PLACEMENT: Named<'_> = (EDGE, "EdgePlacement", "", "kiosk");

fn count(object: &Value) -> &Value {
    &object["metadata"]["annotations"]["kubestellar.io/executing-count"]
}

fn to(labels: &Value) -> Value {
    json!({ "spec": { "locationSelectors": [{ "matchLabels": labels }] } })
}

#[tokio::test]
async fn singleton() {
    let fleet = Fleet::board().await;
    let workload = fleet.workload("market").await;
    let (florin, guilder) = (fleet.edge("florin").await, fleet.edge("guilder").await);
    put(&workload.client, &namespace("market")).await;
    let (version, kind, namespace, name) = KIOSK;
    let kiosk = json!({
        "apiVersion": version, "kind": kind, "metadata": { "namespace": namespace, "name": name },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "kiosk" } },
            "template": { "metadata": { "labels": { "app": "kiosk" } },
                          "spec": { "containers": [{ "name": "kiosk", "image": "example.org/kiosk:1" }] } },
        },
    });
    put(&workload.client, &kiosk).await;
    let placement = json!({
        "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": "kiosk" },
        "spec": {
            "locationSelectors": [{ "matchLabels": { "extended": "yes" } }],
            "downsync": [{ "apiGroup": "apps", "resources": ["deployments"], "namespaces": ["market"] }],
            "wantSingletonReportedState": true,
        },
    });
    put(&workload.client, &placement).await;
    let ready = |replicas: u64| {
        move |found: &Value| count(found) == "1" && found["status"]["readyReplicas"] == replicas
    };
    workload.until(KIOSK, "counted, with status", ready(2)).await;
    patch(&workload.client, KIOSK, json!({ "spec": { "replicas": 3 } })).await;
    workload.until(KIOSK, "with the new status", ready(3)).await;
    let copy = guilder.get(KIOSK).await.unwrap();
    assert!(count(&copy).is_null(), "the count is the center's own: {copy:#}");

    // At two edges, at none, and no more asked for.
    patch(&workload.client, PLACEMENT, to(&json!({ "env": "prod" }))).await;
    florin.until(KIOSK, "there", |_| true).await;
    let bare = |number: &'static str| {
        move |found: &Value| count(found) == number && found["status"].get("readyReplicas").is_none()
    };
    workload.until(KIOSK, "at two edges, without the status of one", bare("2")).await;
    patch(&workload.client, PLACEMENT, to(&json!({ "extended": "yes" }))).await;
    workload.until(KIOSK, "at one again, with its status", ready(3)).await;
    patch(&workload.client, PLACEMENT, to(&json!({ "env": "nowhere" }))).await;
    workload.until(KIOSK, "at none", bare("0")).await;
    for edge in [&florin, &guilder] {
        edge.until_gone(KIOSK).await;
    }
    patch(&workload.client, PLACEMENT, json!({ "spec": { "wantSingletonReportedState": false } })).await;
    workload.until(KIOSK, "no more counted", |found| count(found).is_null()).await;
    // With the last placement goes what it brought back.
    let asked = json!({ "spec": { "wantSingletonReportedState": true, "locationSelectors": [{ "matchLabels": { "extended": "yes" } }] } });
    patch(&workload.client, PLACEMENT, asked).await;
    workload.until(KIOSK, "asked for again, with its status", ready(3)).await;
    workload.kubectl(&["delete", "edgeplacement", "kiosk"]).await.well();
    workload.until_gone(PLACEMENT).await;
    let as_before = |found: &Value| count(found).is_null() && found["status"].get("readyReplicas").is_none();
    workload.until(KIOSK, "neither counted nor with a status", as_before).await;
}
