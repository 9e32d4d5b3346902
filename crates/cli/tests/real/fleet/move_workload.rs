//! Scenario `move-workload`: by its placement alone a workload leaves one edge and comes to another, also while the first one is
//! away.

use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, Place};
use crate::harbor::{delete, patch, put};

const SIGN: Named<'_> = ("v1", "ConfigMap", "shops", "sign");
const PRICES: Named<'_> = ("v1", "ConfigMap", "shops", "prices");
const SHOPS: Named<'_> = (EDGE, "EdgePlacement", "", "shops");
const THE_ONE: Named<'_> = (EDGE, "SyncerConfig", "", "the-one");
const USAGE: Named<'_> = ("apps/v1", "Deployment", "optimized", "cpu-usage");

fn says(text: &'static str) -> impl Fn(&Value) -> bool {
    move |sign| sign["data"]["text"] == text
}

async fn send(workload: &Place, placement: Named<'_>, to: &str) {
    let to = json!({ "spec": { "locationSelectors": [{ "matchLabels": { "loc-name": to } }] } });
    patch(&workload.client, placement, to).await;
}

#[tokio::test]
async fn move_workload_between_edges() {
    let fleet = Fleet::board().await;
    let workload = fleet.workload("moving-shops").await;
    let (florin, guilder) = (fleet.edge("florin").await, fleet.edge("guilder").await);
    workload.apply("move-workload/workload.yaml").await;
    florin.until(SIGN, "there", says("Welcome to florin")).await;
    florin.until(PRICES, "there", |_| true).await;
    assert!(guilder.get(SIGN).await.is_none());
    delete(&workload.client, PRICES).await;
    florin.until_gone(PRICES).await;

    send(&workload, SHOPS, "guilder").await;
    guilder.until(SIGN, "in guilder's form", says("Welcome to guilder")).await;
    florin.until_gone(SIGN).await;
    assert!(florin.get(("v1", "Namespace", "", "shops")).await.is_some(), "namespaces stay");
    let forgotten = |the_one: &Value| !the_one["spec"].to_string().contains("\"shops\"");
    fleet.mailbox("florin").await.until(THE_ONE, "without the sign", forgotten).await;

    // A Deployment moves back while florin is away: it comes there, and leaves guilder, when florin is heard of again.
    fleet.stop_syncer("florin");
    send(&workload, SHOPS, "florin").await;
    guilder.until_gone(SIGN).await;
    optimize(&workload, "guilder").await;
    let runs = |found: &Value| found["status"]["readyReplicas"] == 1;
    guilder.until(USAGE, "running", runs).await;
    send(&workload, (EDGE, "EdgePlacement", "", "optimized"), "florin").await;
    guilder.until_gone(USAGE).await;
    assert!(florin.get(SIGN).await.is_none() && florin.get(USAGE).await.is_none(), "nobody carries it");
    fleet.start_syncer("florin");
    florin.until(USAGE, "running", runs).await;
    florin.until(SIGN, "back", says("Welcome to florin")).await;

    // Away once more, it keeps what it has while that goes elsewhere, and lets it go when it is back.
    fleet.stop_syncer("florin");
    send(&workload, (EDGE, "EdgePlacement", "", "optimized"), "guilder").await;
    guilder.until(USAGE, "running", runs).await;
    assert!(florin.get(USAGE).await.is_some(), "an edge that is away is left as it is");
    fleet.start_syncer("florin");
    florin.until_gone(USAGE).await;
    for placement in ["optimized", "shops"] {
        workload.kubectl(&["delete", "edgeplacement", placement]).await.well();
    }
    guilder.until_gone(USAGE).await;
    florin.until_gone(SIGN).await;
}

/// Places a Deployment.
async fn optimize(workload: &Place, to: &str) {
    let (version, kind, namespace, name) = USAGE;
    put(&workload.client, &crate::harbor::namespace(namespace)).await;
    put(
        &workload.client,
        &json!({
            "apiVersion": version, "kind": kind, "metadata": { "namespace": namespace, "name": name },
            "spec": {
                "replicas": 1,
                "selector": { "matchLabels": { "app": name } },
                "template": { "metadata": { "labels": { "app": name } },
                              "spec": { "containers": [{ "name": name, "image": "example.org/usage:1" }] } },
            },
        }),
    )
    .await;
    put(
        &workload.client,
        &json!({
            "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": "optimized" },
            "spec": {
                "locationSelectors": [{ "matchLabels": { "loc-name": to } }],
                "downsync": [{ "apiGroup": "apps", "resources": ["deployments"], "namespaces": [namespace] }],
            },
        }),
    )
    .await;
}
