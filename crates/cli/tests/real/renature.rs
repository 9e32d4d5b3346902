//! Scenario `renature`: what is stored denatured in the mailbox stands with its real kind and name at the edge.

use serde_json::json;

use crate::harbor::{Harbor, delete, namespace, put};

#[tokio::test]
async fn denatured_roles_and_accounts_arrive_natured_also_by_wildcards() {
    let mut harbor = Harbor::new("renature").await;
    put(&harbor.up, &namespace("renature")).await;
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io.denatured/v1", "kind": "ClusterRole",
        "metadata": { "name": "renature:admin" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] }] });
    put(&harbor.up, &role).await;
    // The core group has another name when it is denatured.
    let account = json!({ "apiVersion": "core.denatured/v1", "kind": "ServiceAccount",
        "metadata": { "name": "kyverno", "namespace": "renature" } });
    put(&harbor.up, &account).await;
    let own = json!({ "apiVersion": "core.denatured/v1", "kind": "ServiceAccount",
        "metadata": { "name": "default", "namespace": "renature", "labels": { "from": "mailbox" } } });
    put(&harbor.up, &own).await;
    harbor
        .configure_as("EdgeSyncConfig", "florin", json!({ "downSyncedResources": [
            { "group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "renature:admin" },
            { "version": "v1", "kind": "ServiceAccount", "namespace": "renature", "name": "*" },
        ] }))
        .await;
    harbor.configure(json!({})).await;
    harbor.sail();
    let role = ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "renature:admin");
    let copy = harbor.until_down(role, "natured", |copy| copy["rules"][0]["verbs"] == json!(["get"])).await;
    assert_eq!(
        copy["metadata"]["annotations"]["edge.kubestellar.io/downsynced"],
        "ClusterRole//renature:admin"
    );
    harbor.until_down(("v1", "ServiceAccount", "renature", "kyverno"), "natured", |_| true).await;
    let default = ("v1", "ServiceAccount", "renature", "default");
    let default = harbor.until_down(default, "made by the edge", |_| true).await;
    assert!(default["metadata"]["labels"].get("from").is_none(), "every place has its own: {default:#}");

    delete(&harbor.up, ("rbac.authorization.k8s.io.denatured/v1", "ClusterRole", "", "renature:admin")).await;
    harbor.until_gone(&harbor.down, role).await;
    harbor.moor().await;
}

#[tokio::test]
async fn a_conversion_gives_a_denatured_crd_its_real_name_and_group() {
    let mut harbor = Harbor::new("conversion").await;
    let crd = |suffix: &str| {
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("reports.conversion.mailboat.example{suffix}") },
        "spec": { "group": format!("conversion.mailboat.example{suffix}"), "scope": "Namespaced",
            "names": { "plural": "reports", "singular": "report", "kind": "Report", "listKind": "ReportList" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }] } })
    };
    put(&harbor.up, &crd(".denatured")).await;
    let definition = |name: &str| {
        json!({ "group": "apiextensions.k8s.io", "version": "v1",
        "kind": "CustomResourceDefinition", "name": name })
    };
    harbor
        .configure_as(
            "EdgeSyncConfig",
            "florin",
            json!({
                "downSyncedResources": [definition("reports.conversion.mailboat.example")],
                "conversions": [{ "upstream": definition("reports.conversion.mailboat.example.denatured"),
                                  "downstream": definition("reports.conversion.mailboat.example") }],
            }),
        )
        .await;
    harbor.configure(json!({})).await;
    harbor.sail();
    let name =
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "reports.conversion.mailboat.example");
    let copy = harbor.until_down(name, "natured", |_| true).await;
    assert_eq!(copy["spec"]["group"], "conversion.mailboat.example", "{copy:#}");
    harbor.moor().await;
}
