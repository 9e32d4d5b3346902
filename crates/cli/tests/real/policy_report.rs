//! Scenario `policy-report`: reports that the edge makes come up into the mailbox, change and vanish with their originals.

use serde_json::{Value, json};

use crate::chart::policy_report_definitions;
use crate::harbor::{Harbor, create, delete, get, namespace, patch, put};

const VERSION: &str = "wgpolicyk8s.io/v1alpha2";
const REPORT: (&str, &str, &str, &str) = (VERSION, "PolicyReport", "policy-report", "sample-policy-report");
const CLUSTER_REPORT: (&str, &str, &str, &str) =
    (VERSION, "ClusterPolicyReport", "", "sample-cluster-policy-report");

fn report((version, kind, namespace, name): (&str, &str, &str, &str)) -> Value {
    let mut report = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name },
        "summary": { "pass": 1, "fail": 0 },
        "results": [{ "policy": "sample-policy", "rule": "check-label", "result": "pass", "source": "kyverno" }] });
    if !namespace.is_empty() {
        report["metadata"]["namespace"] = namespace.into();
    }
    report
}

#[tokio::test]
async fn reports_come_up_change_and_vanish_with_their_originals() {
    let mut harbor = Harbor::new("policy-report").await;
    let definitions = policy_report_definitions();
    let names: Vec<&Value> = definitions.iter().map(|definition| &definition["metadata"]["name"]).collect();
    for definition in &definitions {
        put(&harbor.up, definition).await;
    }
    harbor
        .configure(json!({
            "clusterScope": [{ "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
                "apiVersion": "v1", "objects": names }],
            "upsync": [{ "apiGroup": "wgpolicyk8s.io", "resources": ["policyreports", "clusterpolicyreports"],
                "namespaces": ["policy-report"], "names": ["*"] }],
        }))
        .await;
    harbor.sail();
    for name in names {
        let name = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name.as_str().unwrap());
        harbor
            .until_down(name, "served", |copy| {
                copy["status"]["conditions"].to_string().contains("Established")
            })
            .await;
    }
    put(&harbor.down, &namespace("policy-report")).await;
    put(&harbor.down, &namespace("elsewhere")).await;
    let elsewhere = (VERSION, "PolicyReport", "elsewhere", "not-asked-for");
    for original in [REPORT, CLUSTER_REPORT, elsewhere] {
        create(&harbor.down, &report(original)).await;
    }
    for original in [REPORT, CLUSTER_REPORT] {
        let copy = harbor.until_up(original, "brought up", |copy| copy["summary"]["pass"] == 1).await;
        let told = copy["metadata"]["annotations"]["edge.kubestellar.io/upsynced"].as_str().unwrap();
        assert_eq!(told, format!("{}/{}/{}", original.1, original.2, original.3));
        patch(&harbor.down, original, json!({ "summary": { "pass": 0, "fail": 1 } })).await;
        harbor.until_up(original, "changed", |copy| copy["summary"]["fail"] == 1).await;
    }
    assert!(get(&harbor.up, elsewhere.0, elsewhere.1, elsewhere.2, elsewhere.3).await.is_none());
    for original in [REPORT, CLUSTER_REPORT] {
        delete(&harbor.down, original).await;
        harbor.until_gone(&harbor.up, original).await;
    }
    harbor.moor().await;
}
