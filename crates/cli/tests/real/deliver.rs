//! The smallest thing that runs: ConfigMaps go down, follow, and go.

use serde_json::json;

use crate::harbor::{Harbor, all_config_maps_of, config_map, delete, get, namespace, put};

#[tokio::test]
async fn config_maps_of_a_namespace_go_down_follow_and_go() {
    let mut harbor = Harbor::new("deliver").await;
    put(&harbor.up, &namespace("deliver")).await;
    put(&harbor.up, &config_map("deliver", "greeting", "hello")).await;
    harbor.configure(all_config_maps_of("deliver")).await;
    harbor.sail();
    let greeting = ("v1", "ConfigMap", "deliver", "greeting");
    let copy = harbor.until_down(greeting, "delivered", |copy| copy["data"]["text"] == "hello").await;
    let annotations = &copy["metadata"]["annotations"];
    assert_eq!(annotations["edge.kubestellar.io/downsynced"], "ConfigMap/deliver/greeting", "{copy:#}");
    assert!(annotations.get("kcp.io/cluster").is_none(), "{copy:#}");

    put(&harbor.up, &config_map("deliver", "greeting", "hello again")).await;
    harbor.until_down(greeting, "changed", |copy| copy["data"]["text"] == "hello again").await;

    let status = harbor
        .until_status("one delivered", |status| {
            status["counts"]["delivered"] == 1 && status["counts"]["waiting"] == 0
        })
        .await;
    assert!(status["lastSyncerHeartbeatTime"].is_string(), "{status:#}");
    assert_eq!(status["notCurrent"], json!(null), "{status:#}");

    delete(&harbor.up, greeting).await;
    harbor.until_gone(&harbor.down, greeting).await;
    assert!(
        get(&harbor.down, "v1", "Namespace", "", "deliver").await.is_some(),
        "a namespace is only made to exist"
    );
    harbor.moor().await;
}
