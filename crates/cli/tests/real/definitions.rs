//! CRDs and their instances go in one go.

use serde_json::{Value, json};

use crate::harbor::{Harbor, put};

fn crd(group: &str) -> Value {
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("boats.{group}") },
        "spec": { "group": group, "scope": "Namespaced",
            "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }] } })
}

#[tokio::test]
async fn a_crd_and_its_instances_arrive_together() {
    let mut harbor = Harbor::new("definitions").await;
    let group = "definitions.mailboat.example";
    harbor
        .configure(json!({
            "clusterScope": [{ "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
                "apiVersion": "v1", "objects": [format!("boats.{group}")] }],
            "namespacedObjects": [{ "group": group, "resource": "boats", "apiVersion": "v1",
                "objectsByNamespace": [{ "namespace": "default", "names": ["*"] }] }],
        }))
        .await;
    harbor.sail();
    let unserved =
        |status: &Value| status.to_string().contains("the mailbox does not serve boats.definitions");
    harbor.until_status("the kind reported as not served", unserved).await;

    put(&harbor.up, &crd(group)).await;
    let boat = json!({ "apiVersion": format!("{group}/v1"), "kind": "Boat",
        "metadata": { "name": "mary", "namespace": "default" }, "spec": { "sails": 2 } });
    put(&harbor.up, &boat).await;
    let version = format!("{group}/v1");
    let mary = (version.as_str(), "Boat", "default", "mary");
    harbor.until_down(mary, "delivered", |copy| copy["spec"]["sails"] == 2).await;
    let ready = |status: &Value| {
        status["conditions"].as_array().is_some_and(|conditions| {
            conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        })
    };
    harbor.until_status("every entry works", ready).await;
    harbor.moor().await;
}
