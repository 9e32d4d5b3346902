//! An inventory that is described by kcp's own kinds: SyncTarget of `workload.kcp.io` and Location of `scheduling.kcp.io` lead
//! to a mailbox, a copy at the edge, and conditions on that SyncTarget.

use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, text};
use crate::harbor::{config_map, delete, namespace, put};
use crate::program::mailboat;

const TARGET: Named<'_> = ("workload.kcp.io/v1alpha1", "SyncTarget", "", "ducat");
const LOCATION: Named<'_> = ("scheduling.kcp.io/v1alpha1", "Location", "", "ducat");
const COIN: Named<'_> = ("v1", "ConfigMap", "mint", "coin");
const PLACEMENT: Named<'_> = (EDGE, "EdgePlacement", "", "coins");

fn condition(object: &Value, type_: &str) -> Value {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|one| one["type"] == type_).cloned().unwrap_or_default()
}

#[tokio::test]
async fn kcp_inventory() {
    let fleet = Fleet::board().await;
    let path = format!("{}:kcp-imw", fleet.above);
    let words = ["ensure", "imw", &path, "--kcp-kinds", "--espw", &fleet.provider];
    mailboat(&fleet.admin("root"), &words).await.well();
    let again = mailboat(&fleet.admin("root"), &words).await.well();
    assert!(!again.err.contains("made"), "it was done before: {again:#?}");
    let inventory = fleet.at(&path).await;
    let target = json!({ "apiVersion": TARGET.0, "kind": TARGET.1,
                         "metadata": { "name": TARGET.3, "labels": { "id": TARGET.3 } }, "spec": {} });
    let uid = put(&inventory.client, &target).await["metadata"]["uid"].as_str().unwrap().to_owned();
    let location = json!({
        "apiVersion": LOCATION.0, "kind": LOCATION.1,
        "metadata": { "name": LOCATION.3, "labels": { "mint": "kcp", "loc-name": "ducat" } },
        "spec": {
            "resource": { "group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets" },
            "instanceSelector": { "matchLabels": { "id": TARGET.3 } },
        },
    });
    put(&inventory.client, &location).await;

    let workload = fleet.workload("mint").await;
    put(&workload.client, &namespace("mint")).await;
    let mut coin = config_map(COIN.2, COIN.3, "minted in %(loc-name)");
    coin["metadata"]["annotations"] = json!({ "edge.kubestellar.io/expand-parameters": "true" });
    put(&workload.client, &coin).await;
    let placement = json!({
        "apiVersion": PLACEMENT.0, "kind": PLACEMENT.1, "metadata": { "name": PLACEMENT.3 },
        "spec": {
            "locationSelectors": [{ "matchLabels": { "mint": "kcp" } }],
            "downsync": [{ "apiGroup": "", "resources": ["configmaps"], "namespaces": ["mint"] }],
        },
    });
    put(&workload.client, &placement).await;
    let silent = |found: &Value| condition(found, "Ready")["reason"] == "NeverHeard";
    inventory.until(TARGET, "with a mailbox and no syncer", silent).await;

    // Its cluster is the one that florin has too: two edges may share one, each with objects of its own.
    fleet.register_in(&path, TARGET.3).await;
    let syncer = fleet.launch_syncer(TARGET.3, "florin", &uid);
    let cluster = fleet.edge("florin").await;
    let minted = |coin: &Value| coin["data"]["text"] == "minted in ducat";
    cluster.until(COIN, "at the edge", minted).await;
    let ready = |found: &Value| condition(found, "Ready")["status"] == "True";
    let told = inventory.until(TARGET, "ready", ready).await;
    assert_eq!(condition(&told, "HeartbeatHealthy")["status"], "True", "{told:#}");
    assert!(told["status"]["lastSyncerHeartbeatTime"].is_string(), "{told:#}");
    let counted =
        |found: &Value| found["status"]["instances"] == 1 && found["status"]["availableInstances"] == 1;
    inventory.until(LOCATION, "counting its edge", counted).await;
    let shown = mailboat(&fleet.admin(&path), &["get", "edges"]).await.well();
    assert!(shown.out.contains("ducat"), "{shown:#?}");

    // What another Location would do is told before, as cautiously as that center is.
    let mut elsewhere = location.clone();
    elsewhere["metadata"]["labels"] = json!({ "mint": "elsewhere" });
    let file = fleet.file("elsewhere.json");
    std::fs::write(&file, elsewhere.to_string()).unwrap();
    let plan = ["plan", "-f", text(&file), "--espw", &fleet.provider];
    let planned = mailboat(&fleet.admin(&path), &plan).await.well();
    assert!(planned.out.contains("delete") && planned.out.contains("mint/coin"), "{planned:#?}");
    let careful = [&plan[..], &["--confirm-from", "1", "--confirm-over", "0"]].concat();
    let planned = mailboat(&fleet.admin(&path), &careful).await.well();
    assert!(planned.out.contains("await confirmation"), "{planned:#?}");

    delete(&workload.client, COIN).await;
    cluster.until_gone(COIN).await;
    workload.kubectl(&["delete", "edgeplacement", PLACEMENT.3]).await.well();
    syncer.kill().unwrap();
    let remove = ["remove", "location", TARGET.3, "--imw", &path, "--espw", &fleet.provider];
    let removed = mailboat(&fleet.admin("root"), &remove).await.well();
    assert!(
        removed.err.contains("SyncTarget ducat: removed") && removed.err.contains("Location ducat: removed"),
        "{removed:#?}"
    );
    let provider = fleet.at(&fleet.provider).await;
    let cluster = told["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap();
    let mailbox = format!("{cluster}-mb-{uid}");
    provider.until_gone(("tenancy.kcp.io/v1alpha1", "Workspace", "", &mailbox)).await;
    for gone in [TARGET, LOCATION] {
        inventory.until_gone(gone).await;
    }
}
