//! Configuration that is wrong is told by its path and held; the rest goes on. Namespaces that travel, and strangers.

use serde_json::{Value, json};

use crate::harbor::{Harbor, config_map, create, get, namespace, patch, put};

fn ready(status: &Value) -> Option<&Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")
}

#[tokio::test]
async fn a_wrong_entry_is_told_by_its_path_and_the_rest_goes_on() {
    let mut harbor = Harbor::new("wrong-entry").await;
    put(&harbor.up, &namespace("wrong-entry")).await;
    put(&harbor.up, &config_map("wrong-entry", "good", "x")).await;
    harbor
        .configure(json!({
            "namespacedObjects": [{ "group": "", "resource": "configmaps", "apiVersion": "v1",
                "objectsByNamespace": [{ "namespace": "wrong-entry", "names": ["good"] }] }],
            "clusterScope": [
                { "group": "nowhere.example", "resource": "boats", "apiVersion": "v1", "objects": ["*"] },
                { "group": "", "resource": "configmaps", "apiVersion": "v1", "objects": ["*"] }],
        }))
        .await;
    harbor.sail();
    harbor.until_down(("v1", "ConfigMap", "wrong-entry", "good"), "delivered", |_| true).await;
    let told = |status: &Value| ready(status).is_some_and(|ready| ready["status"] == "False");
    let status = harbor.until_status("told", told).await;
    let message = ready(&status).unwrap()["message"].as_str().unwrap();
    assert!(
        message.contains("spec.clusterScope[0]: the mailbox does not serve boats.nowhere.example"),
        "{message}"
    );
    assert!(message.contains("spec.clusterScope[1]: configmaps lives in namespaces"), "{message}");
    harbor.moor().await;
}

#[tokio::test]
async fn a_namespace_travels_with_its_labels_only_if_it_is_selected_itself() {
    let mut harbor = Harbor::new("namespaces").await;
    for name in ["ns-whole", "ns-bare", "ns-empty"] {
        let mut wanted = namespace(name);
        wanted["metadata"]["labels"] = json!({ "color": "blue" });
        put(&harbor.up, &wanted).await;
    }
    for name in ["ns-whole", "ns-bare"] {
        put(&harbor.up, &config_map(name, "map", "x")).await;
    }
    harbor
        .configure(json!({
            "namespaceScope": { "namespaces": ["ns-whole", "ns-bare", "ns-empty"],
                "resources": [{ "group": "", "resource": "configmaps", "apiVersion": "v1" }] },
            "clusterScope": [{ "group": "", "resource": "namespaces", "apiVersion": "v1", "objects": ["ns-whole"] }],
        }))
        .await;
    harbor.sail();
    for name in ["ns-whole", "ns-bare"] {
        harbor.until_down(("v1", "ConfigMap", name, "map"), "delivered", |_| true).await;
    }
    let color = |namespace: &Value| namespace["metadata"]["labels"]["color"].clone();
    let whole = ("v1", "Namespace", "", "ns-whole");
    let copy = harbor.until_down(whole, "with its labels", |copy| color(copy) == "blue").await;
    assert!(copy["metadata"]["labels"]["mailboat.dev/owner"].is_string(), "{copy:#}");
    for name in ["ns-bare", "ns-empty"] {
        let made = harbor.until_down(("v1", "Namespace", "", name), "there", |_| true).await;
        assert_eq!(color(&made), Value::Null, "{made:#}");
        assert!(made["metadata"]["labels"].get("mailboat.dev/owner").is_none(), "{made:#}");
    }

    // One that was only made to exist is ours to take when it is selected later.
    patch(
        &harbor.up,
        ("edge.kubestellar.io/v2alpha1", "SyncerConfig", "", "the-one"),
        json!({ "spec": { "clusterScope": [{ "group": "", "resource": "namespaces", "apiVersion": "v1",
            "objects": ["ns-whole", "ns-bare"] }] } }),
    )
    .await;
    harbor
        .until_down(("v1", "Namespace", "", "ns-bare"), "with its labels", |copy| color(copy) == "blue")
        .await;

    // One that is not selected itself any more stays with all that stands in it, also what others put there.
    let kept = get(&harbor.down, whole.0, whole.1, whole.2, whole.3).await.unwrap();
    create(&harbor.down, &config_map("ns-whole", "theirs", "x")).await;
    patch(
        &harbor.up,
        ("edge.kubestellar.io/v2alpha1", "SyncerConfig", "", "the-one"),
        json!({ "spec": { "clusterScope": null } }),
    )
    .await;
    let bare = |copy: &Value| copy["metadata"]["labels"].get("mailboat.dev/owner").is_none();
    for name in ["ns-whole", "ns-bare"] {
        let left = harbor.until_down(("v1", "Namespace", "", name), "let go of", bare).await;
        assert_eq!(left["metadata"].get("deletionTimestamp"), None, "{left:#}");
    }
    let left = get(&harbor.down, whole.0, whole.1, whole.2, whole.3).await.unwrap();
    assert_eq!(left["metadata"]["uid"], kept["metadata"]["uid"], "{left:#}");
    for name in ["map", "theirs"] {
        let there = get(&harbor.down, "v1", "ConfigMap", "ns-whole", name).await;
        assert!(there.is_some(), "{name} went with its namespace");
    }

    // Selected again, it is ours to take: nobody else has written it since.
    patch(
        &harbor.up,
        ("edge.kubestellar.io/v2alpha1", "SyncerConfig", "", "the-one"),
        json!({ "spec": { "clusterScope": [{ "group": "", "resource": "namespaces", "apiVersion": "v1",
            "objects": ["ns-whole"] }] } }),
    )
    .await;
    harbor.until_down(whole, "ours again", |copy| !bare(copy)).await;
    harbor.moor().await;
}

#[tokio::test]
async fn a_stranger_is_left_alone_until_its_adoption_is_asked_for() {
    let mut harbor = Harbor::new("stranger").await;
    put(&harbor.up, &namespace("stranger")).await;
    put(&harbor.down, &namespace("stranger")).await;
    put(&harbor.up, &config_map("stranger", "map", "ours")).await;
    create(&harbor.down, &config_map("stranger", "map", "theirs")).await;
    harbor.configure(crate::harbor::all_config_maps_of("stranger")).await;
    harbor.sail();
    let refused = |status: &Value| status["counts"]["refused"] == 1;
    let status = harbor.until_status("refused", refused).await;
    let listed = &status["notCurrent"][0];
    assert_eq!((&listed["name"], &listed["reason"]), (&json!("map"), &json!("ForeignObject")), "{status:#}");
    let map = ("v1", "ConfigMap", "stranger", "map");
    let theirs = get(&harbor.down, map.0, map.1, map.2, map.3).await.unwrap();
    assert_eq!(theirs["data"]["text"], "theirs", "{theirs:#}");

    patch(&harbor.up, map, json!({ "metadata": { "annotations": { "mailboat.dev/on-conflict": "adopt" } } }))
        .await;
    let copy = harbor.until_down(map, "adopted", |copy| copy["data"]["text"] == "ours").await;
    assert!(copy["metadata"]["annotations"].get("mailboat.dev/on-conflict").is_none(), "{copy:#}");
    harbor.until_status("none refused", |status| status["counts"]["refused"] == 0).await;
    harbor.moor().await;
}
