//! Scenario `summary`: what edges report is summed up, as they break, heal and fall silent.

use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, Place};
use crate::harbor::{create, delete, patch, put};

const SUMMARY: Named<'_> = (EDGE, "StatusSummary", "", "market");
const STALLS: Named<'_> = ("v1", "ConfigMap", "market", "stalls");

/// The counts of a summary: wanted, delivered, current, healthy, broken.
fn totals(summary: &Value) -> [i64; 5] {
    ["wanted", "delivered", "current", "healthy", "broken"]
        .map(|member| summary["status"]["totals"][member].as_i64().unwrap_or(-1))
}

async fn until_totals(workload: &Place, expected: [i64; 5]) -> Value {
    workload.until(SUMMARY, &format!("{expected:?}"), |summary| totals(summary) == expected).await
}

fn broken_at(summary: &Value, edge: &str) -> Value {
    let mut broken = summary["status"]["broken"].as_array().into_iter().flatten();
    broken.find(|one| one["edge"] == edge).cloned().unwrap_or_default()
}

/// Gives every machine of an edge a label, or takes it away.
async fn label_nodes(edge: &Place, label: &str) {
    edge.kubectl(&["label", "nodes", "--all", "--overwrite", label]).await.well();
}

#[tokio::test]
async fn summary_of_edges() {
    let fleet = Fleet::board().await;
    let (workload, inventory) = (fleet.workload("market-day").await, fleet.inventory().await);
    let (florin, guilder) = (fleet.edge("florin").await, fleet.edge("guilder").await);
    label_nodes(&guilder, "market=open").await;
    // A stranger's object stands in the way at guilder.
    put(&guilder.client, &crate::harbor::namespace("market")).await;
    create(&guilder.client, &crate::harbor::config_map("market", "stalls", "a stranger's")).await;
    for name in ["florin", "guilder"] {
        let location = (EDGE, "Location", "", name);
        patch(&inventory.client, location, json!({ "metadata": { "labels": { "stalls": "12" } } })).await;
    }
    workload.apply("summary/workload.yaml").await;
    let refused = until_totals(&workload, [4, 3, 3, 3, 1]).await;
    let broken = broken_at(&refused, "guilder");
    assert_eq!(
        (&broken["name"], &broken["reason"]),
        (&json!("stalls"), &json!("ForeignObject")),
        "{broken:#}"
    );
    delete(&guilder.client, STALLS).await;
    until_totals(&workload, [4, 4, 4, 4, 0]).await;

    // The kiosk is to stand at a market, and there is none at florin: its rollout does not get on.
    let kiosk = ("apps/v1", "Deployment", "market", "kiosk");
    let only_at = |market: Value| {
        json!({ "spec": { "progressDeadlineSeconds": 5,
                          "template": { "spec": { "nodeSelector": { "market": market } } } } })
    };
    patch(&workload.client, kiosk, only_at(json!("open"))).await;
    let late = until_totals(&workload, [4, 4, 4, 3, 1]).await;
    let broken = broken_at(&late, "florin");
    assert_eq!(
        (&broken["name"], &broken["reason"]),
        (&json!("kiosk"), &json!("ProgressDeadlineExceeded")),
        "{broken:#}"
    );
    patch(&workload.client, kiosk, only_at(Value::Null)).await;
    until_totals(&workload, [4, 4, 4, 4, 0]).await;

    // Florin falls silent by a Summarizer's own measure; its copies count as they last reported.
    put(&workload.client, &json!({
        "apiVersion": EDGE, "kind": "Summarizer", "metadata": { "name": "pulse" },
        "spec": {
            "placementSelector": { "matchLabels": { "team": "market" } },
            "stalenessThresholdSecs": 15,
            "groupers": [{ "name": "by-place", "groupBy": [{ "name": "place", "def": "edge.labels['loc-name']" }],
                           "aggregators": [{ "name": "copies", "type": "COUNT" }] }],
        },
    }))
    .await;
    let name = by_pulse(&workload).await;
    let pulse = (EDGE, "StatusSummary", "", name.as_str());
    let stale = |count: u64| move |summary: &Value| summary["status"]["totals"]["stale"] == count;
    workload.until(pulse, "of edges that are heard of", stale(0)).await;
    fleet.stop_syncer("florin");
    let silent = workload.until(pulse, "of a silent edge", stale(2)).await;
    assert_eq!(silent["status"]["totals"]["healthy"], 4, "as they last reported: {silent:#}");
    assert!(florin.get(kiosk).await.is_some(), "nothing is withdrawn from it");
    fleet.start_syncer("florin");
    workload.until(pulse, "of an edge that is back", stale(0)).await;

    workload.kubectl(&["delete", "summarizer", "pulse"]).await.well();
    workload.until_gone(pulse).await;
    workload.kubectl(&["delete", "edgeplacement", "market"]).await.well();
    workload.until_gone(SUMMARY).await;
    for edge in [&florin, &guilder] {
        edge.until_gone(kiosk).await;
    }
    label_nodes(&guilder, "market-").await;
    for name in ["florin", "guilder"] {
        let location = (EDGE, "Location", "", name);
        patch(&inventory.client, location, json!({ "metadata": { "labels": { "stalls": null } } })).await;
    }
}

/// The name of the Summarizer's own summary, which is made of others.
async fn by_pulse(workload: &Place) -> String {
    let named = mailboat_testkit::wait_until("the Summarizer's summary", super::SOON, || async {
        let listed = workload.kubectl(&["get", "statussummaries", "-o", "json"]).await.well().out;
        let listed: Value = serde_json::from_str(&listed).map_err(|error| error.to_string())?;
        let mut all = listed["items"].as_array().into_iter().flatten();
        let found = all.find(|one| one["spec"]["summarizerName"] == "pulse");
        found.and_then(|one| one["metadata"]["name"].as_str().map(str::to_owned)).ok_or(listed.to_string())
    });
    named.await.unwrap_or_else(|late| panic!("{late}"))
}
