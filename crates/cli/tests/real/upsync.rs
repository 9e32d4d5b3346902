//! Objects that the edge creates come up into the mailbox, change and vanish with their originals.

use serde_json::{Value, json};

use crate::harbor::{Harbor, config_map, create, delete, get, namespace, patch, put};

fn selects() -> Value {
    json!({ "upsync": [{ "apiGroup": "", "resources": ["configmaps"], "namespaces": ["upsync-a", "upsync-b"],
                         "names": ["*"], "labelSelector": { "matchLabels": { "report": "yes" } } }] })
}

fn report(namespace: &str, name: &str, text: &str) -> Value {
    let mut report = config_map(namespace, name, text);
    report["metadata"]["labels"] = json!({ "report": "yes" });
    report
}

#[tokio::test]
async fn what_the_edge_creates_comes_up_changes_and_vanishes() {
    let mut harbor = Harbor::new("upsync").await;
    for name in ["upsync-a", "upsync-b"] {
        put(&harbor.down, &namespace(name)).await;
    }
    harbor.configure(selects()).await;
    harbor.sail();
    create(&harbor.down, &report("upsync-a", "one", "first")).await;
    create(&harbor.down, &report("upsync-b", "two", "second")).await;
    create(&harbor.down, &config_map("upsync-a", "unlabelled", "no")).await;
    let one = ("v1", "ConfigMap", "upsync-a", "one");
    let copy = harbor.until_up(one, "brought up", |copy| copy["data"]["text"] == "first").await;
    assert_eq!(
        copy["metadata"]["annotations"]["edge.kubestellar.io/upsynced"], "ConfigMap/upsync-a/one",
        "{copy:#}"
    );
    harbor.until_up(("v1", "ConfigMap", "upsync-b", "two"), "brought up", |_| true).await;
    assert!(get(&harbor.up, "v1", "ConfigMap", "upsync-a", "unlabelled").await.is_none());

    patch(&harbor.down, one, json!({ "data": { "text": "changed" } })).await;
    harbor.until_up(one, "changed", |copy| copy["data"]["text"] == "changed").await;
    delete(&harbor.down, one).await;
    harbor.until_gone(&harbor.up, one).await;
    assert!(get(&harbor.up, "v1", "ConfigMap", "upsync-b", "two").await.is_some(), "only that one");
    harbor.moor().await;
}

#[tokio::test]
async fn what_matches_both_ways_is_only_brought_up_and_what_stands_in_the_mailbox_is_not_touched() {
    let mut harbor = Harbor::new("both-ways").await;
    put(&harbor.down, &namespace("both-ways")).await;
    put(&harbor.up, &namespace("both-ways")).await;
    put(&harbor.up, &config_map("both-ways", "theirs", "of the mailbox")).await;
    put(&harbor.up, &config_map("both-ways", "down", "of the mailbox")).await;
    harbor
        .configure(json!({
            "namespaceScope": { "namespaces": ["both-ways"],
                "resources": [{ "group": "", "resource": "configmaps", "apiVersion": "v1" }] },
            "upsync": [{ "apiGroup": "", "resources": ["configmaps"], "namespaces": ["both-ways"],
                         "names": ["theirs", "up"] }],
        }))
        .await;
    create(&harbor.down, &config_map("both-ways", "theirs", "of the edge")).await;
    create(&harbor.down, &config_map("both-ways", "up", "of the edge")).await;
    harbor.sail();
    harbor.until_up(("v1", "ConfigMap", "both-ways", "up"), "brought up", |_| true).await;
    harbor.until_down(("v1", "ConfigMap", "both-ways", "down"), "delivered", |_| true).await;
    let refused = |status: &Value| status["notCurrent"][0]["reason"] == "ForeignObject";
    let status = harbor.until_status("the conflict is told", refused).await;
    assert_eq!(status["notCurrent"][0]["name"], "theirs", "{status:#}");
    let theirs = |client: &kube::Client| {
        let client = client.clone();
        async move {
            get(&client, "v1", "ConfigMap", "both-ways", "theirs").await.unwrap()["data"]["text"].clone()
        }
    };
    assert_eq!(theirs(&harbor.up).await, "of the mailbox");
    assert_eq!(theirs(&harbor.down).await, "of the edge");
    let up = get(&harbor.down, "v1", "ConfigMap", "both-ways", "up").await.unwrap();
    assert!(up["metadata"]["labels"].get("mailboat.dev/owner").is_none(), "it did not go down again: {up:#}");
    harbor.moor().await;
}
