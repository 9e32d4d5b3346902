//! Scenario `restart`: whoever is killed, syncer, center or edge, all goes on where it was, and nothing is written if
//! there is nothing to do.

use std::time::Duration;

use mailboat_testkit::wait_until;
use serde_json::{Value, json};

use crate::harbor::{EDGE, Harbor, all_config_maps_of, config_map, delete, get, namespace, put};

/// kcp takes half a minute to start, on a machine with nothing else to do.
const AFTER_A_START: Duration = Duration::from_mins(3);

#[tokio::test]
async fn whoever_is_killed_all_arrives_and_nothing_is_written_twice() {
    let mut harbor = Harbor::alone("killed").await;
    let world = std::sync::Arc::clone(&harbor.world);
    put(&harbor.up, &namespace("killed")).await;
    for name in ["stays", "changes", "goes-1", "goes-2", "goes-3"] {
        put(&harbor.up, &config_map("killed", name, "0")).await;
    }
    harbor.configure(all_config_maps_of("killed")).await;
    harbor.sail();
    harbor.until_status("all delivered", |status| status["counts"]["delivered"] == 5).await;
    let stays = ("v1", "ConfigMap", "killed", "stays");
    let first = harbor.until_down(stays, "there", |_| true).await;

    for (round, victim) in (1..).zip(["syncer", "center", "edge"]) {
        // What changes right before the end of whoever dies may or may not have been carried.
        put(&harbor.up, &config_map("killed", "changes", &round.to_string())).await;
        put(&harbor.up, &config_map("killed", &format!("comes-{round}"), "new")).await;
        delete(&harbor.up, ("v1", "ConfigMap", "killed", &format!("goes-{round}"))).await;
        match victim {
            "syncer" => {
                harbor.sink().await;
                harbor.sail();
            }
            "center" => {
                world.center().kcp().kill().await.unwrap();
                world.center().kcp().start().await.unwrap();
            }
            _ => {
                world.edge(EDGE).apiserver().kill().await.unwrap();
                world.edge(EDGE).apiserver().start().await.unwrap();
            }
        }
        let arrived = wait_until(format!("round {round}, {victim} killed"), AFTER_A_START, async || {
            let text = |name: String| {
                let client = harbor.down.clone();
                async move {
                    let found = get(&client, "v1", "ConfigMap", "killed", &name).await;
                    found.map(|map| map["data"]["text"].as_str().unwrap_or_default().to_owned())
                }
            };
            let seen = (
                text("changes".to_owned()).await,
                text(format!("comes-{round}")).await,
                text(format!("goes-{round}")).await,
            );
            let right = seen == (Some(round.to_string()), Some("new".to_owned()), None);
            if right { Ok(()) } else { Err(format!("{seen:?}")) }
        });
        arrived.await.unwrap_or_else(|late| panic!("{late}"));
    }
    harbor.until_status("settled", |status| status["counts"]["delivered"] == 5).await;
    let last = get(&harbor.down, stays.0, stays.1, stays.2, stays.3).await.unwrap();
    assert_eq!(last["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"], "written again");
    harbor.moor().await;
}

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
