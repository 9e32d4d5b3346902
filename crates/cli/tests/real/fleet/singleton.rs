//! Scenario `singleton`: an object that is meant for one edge has its status from there, and says to how many it goes.

use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, Place};
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
    without_a_subresource(&workload, &florin, &guilder).await;
}

const DRAWER: Named<'_> = ("kiosk.mailboat.example/v1", "Drawer", "market", "drawer");
const DRAWERS: Named<'_> = (EDGE, "EdgePlacement", "", "drawers");

/// The same of a kind whose status is a part of the object like any other.
async fn without_a_subresource(workload: &Place, florin: &Place, guilder: &Place) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "drawers.kiosk.mailboat.example" },
        "spec": {
            "group": "kiosk.mailboat.example", "scope": "Namespaced",
            "names": { "plural": "drawers", "singular": "drawer", "kind": "Drawer", "listKind": "DrawerList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    put(&workload.client, &definition).await;
    let (version, kind, namespace, name) = DRAWER;
    let drawer = json!({
        "apiVersion": version, "kind": kind, "metadata": { "namespace": namespace, "name": name },
        "spec": { "coins": 3 },
    });
    put(&workload.client, &drawer).await;
    let placement = json!({
        "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": "drawers" },
        "spec": {
            "locationSelectors": [{ "matchLabels": { "extended": "yes" } }],
            "downsync": [{ "apiGroup": "kiosk.mailboat.example", "namespaces": ["market"] }],
            "wantSingletonReportedState": true,
        },
    });
    put(&workload.client, &placement).await;
    guilder.until(DRAWER, "delivered", |copy| copy["spec"]["coins"] == 3).await;
    patch(&guilder.client, DRAWER, json!({ "status": { "open": true } })).await;
    let open = |found: &Value| count(found) == "1" && found["status"]["open"] == true;
    let back = workload.until(DRAWER, "counted, with status", open).await;
    assert_eq!(back["spec"], json!({ "coins": 3 }));
    patch(&workload.client, DRAWERS, to(&json!({ "env": "prod" }))).await;
    florin.until(DRAWER, "there", |_| true).await;
    let bare = |found: &Value| count(found) == "2" && found["status"].get("open").is_none();
    workload.until(DRAWER, "at two edges, without the status of one", bare).await;
    workload.kubectl(&["delete", "edgeplacement", "drawers"]).await.well();
    // The definition is the last of it to go.
    let definition =
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "drawers.kiosk.mailboat.example");
    for edge in [florin, guilder] {
        edge.until_gone(definition).await;
    }
}
