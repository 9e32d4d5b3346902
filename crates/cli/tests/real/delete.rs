//! Scenario `delete`: what is no longer asked for goes, and nothing goes for any other reason.

use std::time::Duration;

use mailboat_testkit::{ADMIN, World, wait_until};
use serde_json::{Value, json};

use crate::harbor::{EDGE, Harbor, SOON, all_config_maps_of, config_map, delete, get, namespace, patch, put};

async fn delivered(name: &str, count: usize) -> Harbor {
    let mut harbor = Harbor::new(name).await;
    put(&harbor.up, &namespace(name)).await;
    for number in 0..count {
        put(&harbor.up, &config_map(name, &format!("map-{number}"), "x")).await;
    }
    harbor.configure(all_config_maps_of(name)).await;
    harbor.sail();
    harbor.until_status("all delivered", |status| status["counts"]["delivered"] == count).await;
    harbor
}

async fn count(harbor: &Harbor, namespace: &str) -> usize {
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(harbor.down.clone(), namespace);
    let label = kube::api::ListParams::default().labels("mailboat.dev/owner");
    maps.list(&label).await.unwrap().items.len()
}

#[tokio::test]
async fn an_entry_that_is_taken_out_withdraws_what_it_selected() {
    let mut harbor = delivered("delete-entry", 3).await;
    let some = json!({ "namespacedObjects": [{ "group": "", "resource": "configmaps", "apiVersion": "v1",
        "objectsByNamespace": [{ "namespace": "delete-entry", "names": ["map-0"] }] }] });
    harbor.configure_as("SyncerConfig", "other", some).await;
    patch(
        &harbor.up,
        ("edge.kubestellar.io/v2alpha1", "SyncerConfig", "", "the-one"),
        json!({ "spec": { "namespaceScope": null } }),
    )
    .await;
    harbor.until_gone(&harbor.down, ("v1", "ConfigMap", "delete-entry", "map-1")).await;
    harbor.until_gone(&harbor.down, ("v1", "ConfigMap", "delete-entry", "map-2")).await;
    assert_eq!(count(&harbor, "delete-entry").await, 1, "what another config still selects stays");
    // The last entry of a kind: with it the syncer has no reason to read the kind any more, but for what it delivered.
    patch(
        &harbor.up,
        ("edge.kubestellar.io/v2alpha1", "SyncerConfig", "", "other"),
        json!({ "spec": { "namespacedObjects": null } }),
    )
    .await;
    harbor.until_gone(&harbor.down, ("v1", "ConfigMap", "delete-entry", "map-0")).await;
    harbor.moor().await;
}

#[tokio::test]
async fn a_config_deleted_while_nobody_ran_withdraws_all_of_it_once_confirmed() {
    let mut harbor = delivered("delete-config", 12).await;
    harbor.sink().await;
    delete(&harbor.up, ("edge.kubestellar.io/v2alpha1", "SyncerConfig", "", "the-one")).await;
    harbor.configure(json!({})).await;
    harbor.sail();
    // Twelve of twelve at once: somebody has to confirm exactly that.
    let held = |status: &Value| status["awaitingConfirmation"]["withdrawals"] == 12;
    let status = harbor.until_status("held", held).await;
    assert_eq!(count(&harbor, "delete-config").await, 12);
    let id = status["awaitingConfirmation"]["changeId"].as_str().unwrap().to_owned();
    patch(
        &harbor.up,
        ("edge.kubestellar.io/v2alpha1", "SyncerConfig", "", "the-one"),
        json!({ "metadata": { "annotations": { "mailboat.dev/confirm-withdrawal": id } } }),
    )
    .await;
    harbor.until_gone(&harbor.down, ("v1", "ConfigMap", "delete-config", "map-11")).await;
    harbor.until_status("nothing is held", |status| status.get("awaitingConfirmation").is_none()).await;
    assert_eq!(count(&harbor, "delete-config").await, 0);
    harbor.moor().await;
}

#[tokio::test]
async fn a_binding_that_goes_takes_nothing_along_and_the_syncer_says_why() {
    let mut harbor = Harbor::new("delete-binding").await;
    put(&harbor.up, &namespace("delete-binding")).await;
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "pos", "namespace": "delete-binding" },
        "spec": { "replicas": 0, "selector": { "matchLabels": { "app": "pos" } },
            "template": { "metadata": { "labels": { "app": "pos" } },
                "spec": { "containers": [{ "name": "c", "image": "registry.invalid/none:1" }] } } } });
    put(&harbor.up, &deployment).await;
    harbor
        .configure(json!({ "namespaceScope": { "namespaces": ["delete-binding"],
            "resources": [{ "group": "apps", "resource": "deployments", "apiVersion": "v1" }] } }))
        .await;
    harbor.sail();
    let pos = ("apps/v1", "Deployment", "delete-binding", "pos");
    let before = harbor.until_down(pos, "delivered", |_| true).await;
    // kcp deletes every Deployment of the mailbox with the binding, and sends ordinary events for them.
    delete(&harbor.up, ("apis.kcp.io/v1alpha2", "APIBinding", "", "kubernetes")).await;
    let unserved =
        |status: &Value| status.to_string().contains("the mailbox does not serve deployments.apps");
    harbor.until_status("the syncer says why", unserved).await;
    let after = get(&harbor.down, pos.0, pos.1, pos.2, pos.3).await.expect("the copy stays");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    // Also after a restart, with no memory of the kind ever having been served.
    harbor.sink().await;
    harbor.sail();
    let beaten = harbor.status().await["lastSyncerHeartbeatTime"].clone();
    harbor.until_status("a beat of the new one", |status| status["lastSyncerHeartbeatTime"] != beaten).await;
    let last = harbor.status().await["lastSyncerHeartbeatTime"].clone();
    harbor.until_status("another beat", |status| status["lastSyncerHeartbeatTime"] != last).await;
    let after = get(&harbor.down, pos.0, pos.1, pos.2, pos.3).await.expect("the copy stays");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    harbor.moor().await;
}

#[tokio::test]
async fn a_mailbox_that_is_deleted_leaves_the_edge_as_it_is() {
    let mut harbor = delivered("delete-mailbox", 3).await;
    // One that is its place's own once it was created: it bears our mark still, or would be a foreign object if the mailbox
    // came back.
    let mut own = config_map("delete-mailbox", "own", "x");
    own["metadata"]["annotations"] = json!({ "edge.kubestellar.io/downsync-overwrite": "false" });
    put(&harbor.up, &own).await;
    harbor.until_status("all delivered", |status| status["counts"]["delivered"] == 4).await;
    let center = World::shared().await.unwrap().center();
    let root = center.client(ADMIN, "root").await.unwrap();
    delete(&root, ("tenancy.kcp.io/v1alpha1", "Workspace", "", &harbor.mailbox.name)).await;
    harbor.until_gone(&root, ("tenancy.kcp.io/v1alpha1", "Workspace", "", &harbor.mailbox.name)).await;
    // Lists stay empty and watches stay open for a while; the syncer must not believe them.
    let edge = harbor.down.clone();
    let watched = tokio::time::timeout(Duration::from_secs(15), async {
        loop {
            let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
                kube::Api::namespaced(edge.clone(), "delete-mailbox");
            let label = kube::api::ListParams::default().labels("mailboat.dev/owner");
            let left = maps.list(&label).await.unwrap().items.len();
            if left != 4 {
                return left;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    });
    if let Ok(left) = watched.await {
        panic!("{left} of 4 are left at {EDGE}");
    }
    // There is no status left to say it in.
    let told = wait_until("the syncer says why", SOON, async || {
        let log = harbor.log();
        if log.contains("nothing is withdrawn by it") { Ok(()) } else { Err(log) }
    });
    told.await.unwrap_or_else(|late| panic!("{late}"));
    harbor.sink().await;
}

#[tokio::test]
async fn a_crd_that_goes_takes_nothing_along() {
    let mut harbor = Harbor::new("delete-crd").await;
    let group = "delete.mailboat.example";
    let crd = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "boats.delete.mailboat.example");
    put(&harbor.up, &json!({ "apiVersion": crd.0, "kind": crd.1, "metadata": { "name": crd.3 },
        "spec": { "group": group, "scope": "Namespaced",
            "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }] } }))
    .await;
    let version = format!("{group}/v1");
    let mary = (version.as_str(), "Boat", "default", "mary");
    put(
        &harbor.up,
        &json!({ "apiVersion": version, "kind": mary.1, "spec": { "sails": 2 },
        "metadata": { "name": mary.3, "namespace": mary.2 } }),
    )
    .await;
    let definition = json!([{ "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
        "apiVersion": "v1", "objects": [crd.3] }]);
    let boats = json!([{ "group": group, "resource": "boats", "apiVersion": "v1",
        "objectsByNamespace": [{ "namespace": "default", "names": ["*"] }] }]);
    harbor.configure(json!({ "clusterScope": definition, "namespacedObjects": boats })).await;
    harbor.sail();
    let before = harbor.until_down(mary, "delivered", |_| true).await;
    // kcp deletes every boat of the mailbox with the definition.
    delete(&harbor.up, crd).await;
    let unserved = |status: &Value| {
        status.to_string().contains("the mailbox does not serve boats.delete.mailboat.example")
    };
    harbor.until_status("the syncer says why", unserved).await;
    let beaten = harbor.status().await["lastSyncerHeartbeatTime"].clone();
    harbor.until_status("another beat", |status| status["lastSyncerHeartbeatTime"] != beaten).await;
    let after = get(&harbor.down, mary.0, mary.1, mary.2, mary.3).await.expect("the boat stays");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    harbor.moor().await;
}
