//! Scenario `two-owners`: two workspaces place an object of the same name on one edge. The older placement wins, the other is
//! told, and takes over without a gap when the first lets go.

use jiff::Timestamp;
use mailboat_testkit::wait_until;
use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, Place, SOON};
use crate::harbor::{config_map, namespace, put};

const NOTE: Named<'_> = ("v1", "ConfigMap", "pier", "note");

async fn place(fleet: &Fleet, name: &str) -> Place {
    let workload = fleet.workload(name).await;
    put(&workload.client, &namespace("pier")).await;
    put(&workload.client, &config_map("pier", "note", name)).await;
    let placement = json!({
        "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": name },
        "spec": {
            "locationSelectors": [{ "matchLabels": { "extended": "yes" } }],
            "downsync": [{ "apiGroup": "", "resources": ["configmaps"], "namespaces": ["pier"],
                           "objectNames": ["note"] }],
        },
    });
    put(&workload.client, &placement).await;
    workload
}

/// Waits until what is made from now on is younger: servers write times in whole seconds.
async fn is_elder(elder: &Place) {
    let placement = elder.get((EDGE, "EdgePlacement", "", "elder")).await.unwrap();
    let made: Timestamp = placement["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    let later = wait_until("another second", SOON, async || {
        let now = Timestamp::now().as_second();
        if now > made.as_second() { Ok(()) } else { Err(now.to_string()) }
    });
    later.await.unwrap();
}

fn says(text: &str) -> impl Fn(&Value) -> bool {
    move |note| note["data"]["text"] == text
}

#[tokio::test]
async fn two_owners() {
    let fleet = Fleet::board().await;
    let guilder = fleet.edge("guilder").await;
    let elder = place(&fleet, "elder").await;
    let first = guilder.until(NOTE, "the elder's", says("elder")).await;
    is_elder(&elder).await;
    let younger = place(&fleet, "younger").await;
    let conflict = |found: &Value| found["status"]["conflicts"][0].clone();
    let placement = (EDGE, "EdgePlacement", "", "younger");
    let told = younger.until(placement, "told", |found| conflict(found).is_object()).await;
    let conflict = conflict(&told);
    assert_eq!(conflict["object"]["name"], "note", "{conflict:#}");
    assert_eq!(conflict["edge"], "guilder", "{conflict:#}");
    assert!(conflict["with"].as_str().is_some_and(|with| with.ends_with(":elder")), "{conflict:#}");
    let elders = elder.get((EDGE, "EdgePlacement", "", "elder")).await.unwrap();
    assert!(elders["status"].get("conflicts").is_none(), "{elders:#}");
    let still = guilder.get(NOTE).await.unwrap();
    assert_eq!(still["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"], "{still:#}");

    elder.kubectl(&["delete", "edgeplacement", "elder"]).await.well();
    let taken = guilder.until(NOTE, "the younger's", says("younger")).await;
    assert_eq!(taken["metadata"]["uid"], first["metadata"]["uid"], "it was gone meanwhile");
    younger.until(placement, "told no more", |found| found["status"].get("conflicts").is_none()).await;

    // A placement that is deleted with its workspace takes nothing along until somebody says so on it.
    let above = fleet.at(&fleet.above).await;
    above.kubectl(&["delete", "workspace", "younger", "--wait=false"]).await.well();
    let asks = |found: &Value| found["status"]["awaitingConfirmation"]["changeId"].is_string();
    let asking = younger.until(placement, "asking", asks).await;
    assert!(asking["metadata"]["deletionTimestamp"].is_string(), "{asking:#}");
    let still = guilder.get(NOTE).await.expect("the note went with its workspace");
    assert_eq!(still["metadata"]["uid"], first["metadata"]["uid"], "{still:#}");
    let change = asking["status"]["awaitingConfirmation"]["changeId"].as_str().unwrap();
    let answer = format!("mailboat.dev/confirm-withdrawal={change}");
    younger.kubectl(&["annotate", "edgeplacement", "younger", &answer]).await.well();
    guilder.until_gone(NOTE).await;
    above.until_gone(("tenancy.kcp.io/v1alpha1", "Workspace", "", "younger")).await;
}
