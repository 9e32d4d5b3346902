//! Scenario `restart`: a syncer that crashed goes on where it was, and writes nothing if there is nothing to do.

use serde_json::{Value, json};

use crate::harbor::{Harbor, all_config_maps_of, config_map, delete, get, namespace, put};

#[tokio::test]
async fn a_crashed_syncer_catches_up_and_rewrites_nothing() {
    let mut harbor = Harbor::new("restart").await;
    put(&harbor.up, &namespace("restart")).await;
    for name in ["stays", "changes", "goes"] {
        put(&harbor.up, &config_map("restart", name, "before")).await;
    }
    harbor.configure(all_config_maps_of("restart")).await;
    harbor.sail();
    harbor.until_status("all delivered", |status| status["counts"]["delivered"] == 3).await;
    let stays = ("v1", "ConfigMap", "restart", "stays");
    let before = harbor.until_down(stays, "there", |_| true).await;
    harbor.sink().await;

    put(&harbor.up, &config_map("restart", "changes", "after")).await;
    put(&harbor.up, &config_map("restart", "comes", "after")).await;
    delete(&harbor.up, ("v1", "ConfigMap", "restart", "goes")).await;
    harbor.sail();
    harbor
        .until_down(("v1", "ConfigMap", "restart", "changes"), "changed", |copy| {
            copy["data"]["text"] == "after"
        })
        .await;
    harbor.until_down(("v1", "ConfigMap", "restart", "comes"), "delivered", |_| true).await;
    harbor.until_gone(&harbor.down, ("v1", "ConfigMap", "restart", "goes")).await;
    harbor
        .until_status("settled", |status| {
            status["counts"]["delivered"] == 3 && status["counts"]["waiting"] == 0
        })
        .await;
    let after = get(&harbor.down, stays.0, stays.1, stays.2, stays.3).await.unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"],
        "it was rewritten"
    );
    harbor.moor().await;
}

#[tokio::test]
async fn a_kind_that_nobody_asks_for_any_more_is_withdrawn_after_a_restart() {
    let mut harbor = Harbor::new("restart-kind").await;
    put(&harbor.up, &namespace("restart-kind")).await;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "key", "namespace": "restart-kind" } });
    put(&harbor.up, &secret).await;
    put(&harbor.up, &config_map("restart-kind", "map", "x")).await;
    let both = json!({ "namespaceScope": { "namespaces": ["restart-kind"], "resources": [
        { "group": "", "resource": "configmaps", "apiVersion": "v1" },
        { "group": "", "resource": "secrets", "apiVersion": "v1" }] } });
    harbor.configure(both).await;
    harbor.sail();
    harbor.until_status("both delivered", |status: &Value| status["counts"]["delivered"] == 2).await;
    harbor.sink().await;
    harbor.configure(all_config_maps_of("restart-kind")).await;
    harbor.sail();
    harbor.until_gone(&harbor.down, ("v1", "Secret", "restart-kind", "key")).await;
    assert!(get(&harbor.down, "v1", "ConfigMap", "restart-kind", "map").await.is_some());
    harbor.moor().await;
}
