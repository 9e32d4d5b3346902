//! Scenario `offline`: cut off from the center, the edge keeps what it has; reconnected, both sides catch up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::ListParams;
use mailboat_testkit::proxy::{Proxy, Scope, kubeconfig_via};
use mailboat_testkit::{ADMIN, EdgeSpec, World};
use serde_json::{Value, json};

use crate::harbor::{EDGE, Harbor, SOON, config_map, create, delete, get, namespace, patch, put};

/// Both sides have caught up this long after the link is back.
const CATCH_UP: Duration = Duration::from_secs(30);

/// Ten minutes at full length.
fn cut_off_for() -> Duration {
    let soak = std::env::var_os("MAILBOAT_SOAK").is_some_and(|value| value == "1");
    if soak { Duration::from_mins(10) } else { Duration::from_secs(30) }
}

fn down_and_up() -> Value {
    json!({
        "namespaceScope": { "namespaces": ["offline"],
            "resources": [{ "group": "", "resource": "configmaps", "apiVersion": "v1" }] },
        "upsync": [{ "apiGroup": "", "resources": ["configmaps"], "namespaces": ["reports"], "names": ["*"],
            "labelSelector": { "matchLabels": { "report": "yes" } } }],
    })
}

fn report(name: &str, text: &str) -> Value {
    let mut report = config_map("reports", name, text);
    report["metadata"]["labels"] = json!({ "report": "yes" });
    report
}

/// Every delivered ConfigMap at the edge, with its uid and version.
async fn copies(harbor: &Harbor) -> BTreeMap<String, (String, String)> {
    let maps: Api<ConfigMap> = Api::namespaced(harbor.down.clone(), "offline");
    let ours = ListParams::default().labels("mailboat.dev/owner");
    let identity = |map: ConfigMap| {
        let of = map.metadata;
        Some((of.name?, (of.uid?, of.resource_version?)))
    };
    maps.list(&ours).await.unwrap().items.into_iter().filter_map(identity).collect()
}

#[tokio::test]
async fn an_edge_that_is_cut_off_keeps_what_it_has_and_both_sides_catch_up() {
    let mut harbor = Harbor::new("offline").await;
    let center = World::shared().await.unwrap().center();
    let proxy = Proxy::in_front_of(&center.access(ADMIN, &harbor.mailbox.path).unwrap()).await.unwrap();
    harbor.from = kubeconfig_via(&harbor.from, proxy.address()).unwrap();
    put(&harbor.up, &namespace("offline")).await;
    put(&harbor.down, &namespace("reports")).await;
    for name in ["stays", "changes", "goes"] {
        put(&harbor.up, &config_map("offline", name, "before")).await;
    }
    put(&harbor.down, &report("report-goes", "before")).await;
    harbor.configure(down_and_up()).await;
    harbor.sail();
    harbor.until_status("all is there", |status| status["counts"]["delivered"] == 3).await;
    harbor.until_up(("v1", "ConfigMap", "reports", "report-goes"), "brought up", |_| true).await;
    let before = copies(&harbor).await;
    assert_eq!(before.len(), 3, "{before:?}");

    proxy.cut();
    let end = Instant::now() + cut_off_for();
    put(&harbor.up, &config_map("offline", "changes", "after")).await;
    put(&harbor.up, &config_map("offline", "comes", "after")).await;
    delete(&harbor.up, ("v1", "ConfigMap", "offline", "goes")).await;
    create(&harbor.down, &report("report-comes", "after")).await;
    delete(&harbor.down, ("v1", "ConfigMap", "reports", "report-goes")).await;
    // A syncer that starts while the center is away touches nothing either.
    harbor.sink().await;
    harbor.sail();
    while Instant::now() < end {
        assert_eq!(copies(&harbor).await, before, "the edge was touched while it was cut off");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(get(&harbor.up, "v1", "ConfigMap", "reports", "report-goes").await.is_some());

    proxy.heal(Scope::All).await.unwrap();
    let healed = Instant::now();
    let after = |object: &Value| object["data"]["text"] == "after";
    harbor.until_down(("v1", "ConfigMap", "offline", "changes"), "caught up", after).await;
    harbor.until_down(("v1", "ConfigMap", "offline", "comes"), "caught up", after).await;
    harbor.until_gone(&harbor.down, ("v1", "ConfigMap", "offline", "goes")).await;
    harbor.until_up(("v1", "ConfigMap", "reports", "report-comes"), "caught up", after).await;
    harbor.until_gone(&harbor.up, ("v1", "ConfigMap", "reports", "report-goes")).await;
    let took = healed.elapsed();
    eprintln!("caught up {took:?} after the link was back");
    assert!(took < CATCH_UP, "both sides had caught up only {took:?} after the link was back");
    assert_eq!(copies(&harbor).await["stays"], before["stays"], "what did not change was written again");
    harbor.moor().await;
}

#[tokio::test]
async fn a_syncer_whose_edge_is_away_waits_for_it_and_catches_up() {
    let world = World::builder().edge_with(EdgeSpec::bare(EDGE)).start().await.unwrap();
    let mut harbor = Harbor::beside("edge-away", Arc::new(world)).await;
    put(&harbor.up, &namespace("offline")).await;
    put(&harbor.up, &config_map("offline", "changes", "before")).await;
    harbor.configure(down_and_up()).await;
    harbor.sail();
    let changes = ("v1", "ConfigMap", "offline", "changes");
    harbor.until_down(changes, "delivered", |_| true).await;

    let world = Arc::clone(&harbor.world);
    let edge = world.edge(EDGE);
    edge.apiserver().kill().await.unwrap();
    patch(&harbor.up, changes, json!({ "data": { "text": "after" } })).await;
    // The syncer goes on to say that it is alive, and one that starts now waits.
    let beaten = harbor.status().await["lastSyncerHeartbeatTime"].clone();
    harbor.until_status("another beat", |status| status["lastSyncerHeartbeatTime"] != beaten).await;
    harbor.sink().await;
    harbor.sail();
    edge.apiserver().start().await.unwrap();
    let back = Instant::now();
    harbor.until_down(changes, "caught up", |copy| copy["data"]["text"] == "after").await;
    assert!(back.elapsed() < SOON, "caught up only {:?} after the edge was back", back.elapsed());
    harbor.moor().await;
}
