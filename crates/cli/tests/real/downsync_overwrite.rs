//! Scenario `downsync-overwrite`: an object that is created once and then left to the edge.

use serde_json::{Value, json};

use crate::harbor::{Harbor, all_config_maps_of, config_map, delete, get, namespace, patch, put};

const OVERWRITE: &str = "edge.kubestellar.io/downsync-overwrite";

fn with_overwrite(name: &str, text: &str, value: &str) -> Value {
    let mut map = config_map("overwrite", name, text);
    map["metadata"]["annotations"] = json!({ OVERWRITE: value });
    map
}

#[tokio::test]
async fn what_is_created_once_keeps_local_edits_until_it_is_told_otherwise() {
    let mut harbor = Harbor::new("overwrite").await;
    put(&harbor.up, &namespace("overwrite")).await;
    put(&harbor.up, &with_overwrite("once", "from the center", "false")).await;
    harbor.configure(all_config_maps_of("overwrite")).await;
    harbor.sail();
    let once = ("v1", "ConfigMap", "overwrite", "once");
    harbor.until_down(once, "created", |copy| copy["data"]["text"] == "from the center").await;

    patch(&harbor.down, once, json!({ "data": { "text": "edited at the edge" } })).await;
    put(&harbor.up, &with_overwrite("once", "changed at the center", "false")).await;
    // Something that is delivered later shows that the change above was seen.
    put(&harbor.up, &config_map("overwrite", "later", "x")).await;
    harbor.until_down(("v1", "ConfigMap", "overwrite", "later"), "delivered", |_| true).await;
    let copy = get(&harbor.down, once.0, once.1, once.2, once.3).await.unwrap();
    assert_eq!(copy["data"]["text"], "edited at the edge", "{copy:#}");

    put(&harbor.up, &with_overwrite("once", "changed at the center", "true")).await;
    harbor.until_down(once, "overwritten", |copy| copy["data"]["text"] == "changed at the center").await;

    // Back again: the annotation changes, and nothing else.
    patch(&harbor.down, once, json!({ "data": { "local": "added at the edge" } })).await;
    put(&harbor.up, &with_overwrite("once", "changed once more", "false")).await;
    let copy = harbor
        .until_down(once, "left to the edge", |copy| copy["metadata"]["annotations"][OVERWRITE] == "false")
        .await;
    assert_eq!(
        copy["data"],
        json!({ "text": "changed at the center", "local": "added at the edge" }),
        "{copy:#}"
    );

    delete(&harbor.up, once).await;
    let released = |copy: &Value| copy["metadata"]["labels"].get("mailboat.dev/owner").is_none();
    let copy = harbor.until_down(once, "kept, and nobody's", released).await;
    assert_eq!(copy["data"]["text"], "changed at the center", "{copy:#}");
    harbor.moor().await;
}
