//! How the copies of a placement are, all edges together: they arrive, break and heal, and edges fall silent.

use std::time::Duration;

use mailboat_api::names::export;
use serde_json::{Value, json};

use crate::harbor::{Harbor, Place};
use crate::placement::{EDGE, page};

const WEB: (&str, &str, &str, &str) = ("apps/v1", "Deployment", "shop", "web");
const THE_ONE: (&str, &str, &str, &str) = (EDGE, "SyncerConfig", "", "the-one");
const SUMMARY: (&str, &str, &str, &str) = (EDGE, "StatusSummary", "", "shops");

/// The counts of a summary: wanted, delivered, current, healthy, broken.
fn totals(summary: &Value) -> [i64; 5] {
    ["wanted", "delivered", "current", "healthy", "broken"]
        .map(|member| summary["status"]["totals"][member].as_i64().unwrap_or(-1))
}

async fn until_totals(workload: &Place, expected: [i64; 5]) -> Value {
    workload.until(SUMMARY, &format!("{expected:?}"), |summary| totals(summary) == expected).await
}

/// Says what a syncer says once it carried all that stands in its mailbox.
async fn deliver_all(mailbox: &Place) {
    let copies =
        [mailbox.list("apps/v1", "Deployment", "shop").await, mailbox.list("v1", "ConfigMap", "shop").await];
    let version =
        |copy: &Value| copy["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap();
    let newest = copies.iter().flatten().map(version).max().unwrap();
    let now = jiff::Timestamp::now().to_string();
    let status = json!({ "lastSyncerHeartbeatTime": now, "deliveredResourceVersion": newest.to_string() });
    mailbox.report(THE_ONE, status).await;
}

/// Goes on saying so.
async fn beat(mailbox: &Place) {
    loop {
        deliver_all(mailbox).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What a Deployment of one replica reports.
fn running(ready: u32, progress: &str) -> Value {
    json!({ "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": ready, "conditions": [
        { "type": "Available", "status": if ready == 1 { "True" } else { "False" } },
        { "type": "Progressing", "status": "True", "reason": progress } ] })
}

/// Waits until the summary by environments fits; its name is made of others.
async fn by_env(workload: &Place, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let about = |summary: &Value| summary["spec"]["summarizerName"] == "by-env";
    workload.until_one((EDGE, "StatusSummary", "", ""), what, |summary| about(summary) && fits(summary)).await
}

#[tokio::test]
async fn summary() {
    let mut harbor = Harbor::new("summary").await;
    let inventory = harbor.inventory().await;
    let workload = harbor.workspace("wmw", &[export::EDGE, export::COMPUTE]).await;
    harbor.sail();
    let florin = inventory.edge("florin", json!({ "env": "prod", "loc-name": "florin" })).await;
    let guilder = inventory.edge("guilder", json!({ "env": "test" })).await;
    workload.put(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } })).await;
    workload.put(&page("page")).await;
    workload
        .put(&json!({ "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "namespace": "shop", "name": "web", "labels": { "app": "shop" } },
            "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "web" } }, "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] } } } }))
        .await;
    workload
        .put(&json!({ "apiVersion": EDGE, "kind": "EdgePlacement",
            "metadata": { "name": "shops", "labels": { "team": "shop" } },
            "spec": { "locationSelectors": [{}],
                      "downsync": [{ "resources": ["configmaps", "deployments"], "namespaces": ["shop"],
                                     "labelSelectors": [{ "matchLabels": { "app": "shop" } }] }] } }))
        .await;
    let (at_florin, at_guilder) = (harbor.mailbox(&florin).await, harbor.mailbox(&guilder).await);

    // Guilder's Location lacks a parameter: its page is held, and all else is on its way.
    let held = until_totals(&workload, [4, 0, 0, 0, 1]).await;
    let broken = &held["status"]["broken"][0];
    assert_eq!((&broken["edge"], &broken["name"]), (&json!("guilder"), &json!("page")), "{broken}");
    assert!(broken["message"].as_str().unwrap().contains("loc-name"), "{broken}");

    // It arrives at florin, runs, breaks and heals.
    at_florin.until(WEB, "copied", |_| true).await;
    deliver_all(&at_florin).await;
    until_totals(&workload, [4, 2, 2, 1, 1]).await;
    at_florin.report(WEB, running(1, "NewReplicaSetAvailable")).await;
    until_totals(&workload, [4, 2, 2, 2, 1]).await;
    at_florin.report(WEB, running(0, "ProgressDeadlineExceeded")).await;
    let broken = until_totals(&workload, [4, 2, 2, 1, 2]).await;
    let entries = broken["status"]["broken"].as_array().unwrap();
    let web = entries.iter().find(|entry| entry["edge"] == "florin").expect("what broke");
    assert_eq!((&web["name"], &web["reason"]), (&json!("web"), &json!("ProgressDeadlineExceeded")));
    let label = |summary: &Value, value: &str, member: &str| {
        let labels = summary["status"]["labels"].as_array().cloned().unwrap_or_default();
        labels.iter().find(|label| label["value"] == value).and_then(|label| label[member].as_i64())
    };
    assert_eq!(label(&broken, "prod", "broken"), Some(1));
    assert_eq!(label(&broken, "test", "wanted"), Some(2));

    // A center that is killed and starts again finds what it wrote, and remembers since when.
    deliver_all(&at_florin).await;
    harbor.sink().await;
    workload.put(&page("while-away")).await;
    harbor.sail();
    let after = until_totals(&workload, [6, 2, 2, 1, 3]).await;
    let web_after =
        after["status"]["broken"].as_array().unwrap().iter().find(|entry| entry["edge"] == "florin");
    assert_eq!(web_after.map(|entry| &entry["since"]), Some(&web["since"]));
    at_florin.until(("v1", "ConfigMap", "shop", "while-away"), "copied", |_| true).await;
    at_florin.report(WEB, running(1, "NewReplicaSetAvailable")).await;
    deliver_all(&at_florin).await;
    until_totals(&workload, [6, 3, 3, 3, 2]).await;

    // The parameter comes, and what was held goes.
    let location = (EDGE, "Location", "", "guilder");
    inventory.patch(location, json!({ "metadata": { "labels": { "loc-name": "guilder" } } })).await;
    at_guilder.until(("v1", "ConfigMap", "shop", "page"), "copied", |_| true).await;
    until_totals(&workload, [6, 3, 3, 3, 0]).await;

    // Groups of one's own; a mistake in one expression is told and harms nothing else.
    workload
        .put(&json!({ "apiVersion": EDGE, "kind": "Summarizer", "metadata": { "name": "by-env" }, "spec": {
            "placementSelector": { "matchLabels": { "team": "shop" } },
            "subjects": [{ "apiGroup": "apps", "resources": ["deployments"] }],
            "groupers": [{ "name": "env", "groupBy": [{ "name": "env", "def": "edge.labels['env']" }], "aggregators": [
                { "name": "wanted", "type": "SUM", "subject": "object.spec.replicas" },
                { "name": "ready", "type": "SUM", "subject": "status.readyReplicas" },
                { "name": "bad", "type": "SUM", "subject": "status.readyReplicas +" }] }],
            "stalenessThresholdSecs": 5 } }))
        .await;
    let grouped = by_env(&workload, "grouped", |summary| {
        summary["status"]["groupings"][0]["groups"].as_array().is_some_and(|groups| groups.len() == 2)
    })
    .await;
    let prod = &grouped["status"]["groupings"][0]["groups"][0];
    assert_eq!(prod["groupedBy"][0]["value"], "prod");
    assert_eq!(
        (&prod["aggregates"][0]["value"], &prod["aggregates"][1]["value"]),
        (&json!("1"), &json!("1")),
        "{prod}"
    );
    let summarizer = workload
        .until((EDGE, "Summarizer", "", "by-env"), "faulted", |one| {
            one["status"]["validationErrors"][0].is_object()
        })
        .await;
    assert_eq!(
        summarizer["status"]["validationErrors"][0]["path"],
        "spec.groupers[0].aggregators[2].subject"
    );

    // Florin falls silent by that Summarizer's own measure, and its copies count as they last reported.
    let silent = by_env(&workload, "stale", |summary| summary["status"]["totals"]["stale"] == 2).await;
    assert_eq!(silent["status"]["totals"]["healthy"], 1, "{silent}");
    tokio::select! {
        () = beat(&at_florin) => {}
        _ = by_env(&workload, "heard again", |summary| summary["status"]["totals"]["stale"] == 1) => {}
    }

    // They go with what they are about.
    let name = silent["metadata"]["name"].as_str().unwrap().to_owned();
    workload.delete((EDGE, "Summarizer", "", "by-env")).await;
    workload.until_gone((EDGE, "StatusSummary", "", &name)).await;
    workload.delete((EDGE, "EdgePlacement", "", "shops")).await;
    workload.until_gone(SUMMARY).await;
}
