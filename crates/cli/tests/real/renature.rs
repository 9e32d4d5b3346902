//! Scenario `renature`: what is stored denatured in the mailbox stands with its real kind and name at the edge.

use serde_json::{Value, json};

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

#[tokio::test]
async fn what_is_stored_both_ways_is_carried_from_the_denatured_one_and_the_other_is_told() {
    let mut harbor = Harbor::new("renature-twice").await;
    let role = |group: &str, verb: &str| {
        json!({ "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": { "name": "renature:twice" },
            "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": [verb] }] })
    };
    let (natured, denatured) = ("rbac.authorization.k8s.io", "rbac.authorization.k8s.io.denatured");
    put(&harbor.up, &role(natured, "list")).await;
    harbor
        .configure(json!({ "clusterScope": [
            { "group": natured, "resource": "clusterroles", "apiVersion": "v1", "objects": ["renature:twice"] },
        ] }))
        .await;
    harbor.sail();
    let copy = ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "renature:twice");
    let allows = |verb: &'static str| move |copy: &Value| copy["rules"][0]["verbs"] == json!([verb]);
    let first = harbor.until_down(copy, "from the natured one", allows("list")).await;
    put(&harbor.up, &role(denatured, "get")).await;
    let second = harbor.until_down(copy, "from the denatured one", allows("get")).await;
    assert_eq!(first["metadata"]["uid"], second["metadata"]["uid"], "it is the object that it was");
    let told = |status: &Value| {
        let listed = status["notCurrent"].as_array().into_iter().flatten();
        listed.filter(|one| one["reason"] == "StoredTwice").cloned().collect::<Vec<_>>()
    };
    let status = harbor.until_status("telling of the natured one", |status| told(status).len() == 1).await;
    assert_eq!(told(&status)[0]["group"], natured, "{status:#}");
    // Without the one, the other is carried, and there is nothing more to tell.
    delete(&harbor.up, ("rbac.authorization.k8s.io.denatured/v1", "ClusterRole", "", "renature:twice")).await;
    harbor.until_down(copy, "from the natured one again", allows("list")).await;
    harbor.until_status("telling of nothing", |status| told(status).is_empty()).await;
    delete(&harbor.up, ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "renature:twice")).await;
    harbor.until_gone(&harbor.down, copy).await;
    harbor.moor().await;
}

#[tokio::test]
async fn a_natured_object_is_carried_where_no_entry_asks_for_its_denatured_twin() {
    let mut harbor = Harbor::new("renature-alone").await;
    let (natured, denatured) = ("rbac.authorization.k8s.io", "rbac.authorization.k8s.io.denatured");
    let role = |group: &str, verb: &str, app: &str| {
        json!({ "apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
            "metadata": { "name": "renature:alone", "labels": { "app": app } },
            "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": [verb] }] })
    };
    put(&harbor.up, &role(natured, "list", "shop")).await;
    put(&harbor.up, &role(denatured, "get", "other")).await;
    harbor
        .configure(json!({ "clusterScope": [
            { "group": natured, "resource": "clusterroles", "apiVersion": "v1", "objects": ["renature:alone"],
              "labelSelector": { "matchLabels": { "app": "shop" } } },
        ] }))
        .await;
    harbor.sail();
    let copy = ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "renature:alone");
    let allows = |verb: &'static str| move |copy: &Value| copy["rules"][0]["verbs"] == json!([verb]);
    harbor.until_down(copy, "from the natured one", allows("list")).await;
    let twice = |status: &Value| {
        let mut listed = status["notCurrent"].as_array().into_iter().flatten();
        listed.any(|one| one["reason"] == "StoredTwice")
    };
    let status = harbor.until_status("read", |status| status["observedGeneration"].is_number()).await;
    assert!(!twice(&status), "its twin is nobody's concern: {status:#}");
    // Once it is asked for, it goes first.
    put(&harbor.up, &role(denatured, "get", "shop")).await;
    harbor.until_down(copy, "from the denatured one", allows("get")).await;
    harbor.until_status("telling of the natured one", twice).await;
    harbor.moor().await;
}
