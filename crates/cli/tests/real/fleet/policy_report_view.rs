//! Scenario `policy-report-view`: reports that edges make are read in the center, from all mailboxes at once: by the command,
//! and by plain kubectl through an export of the workload workspace.

use mailboat_testkit::wait_until;
use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, Place, SOON};
use crate::chart::policy_report_definitions;
use crate::harbor::{create, namespace, put};
use crate::program::mailboat;

const VERSION: &str = "wgpolicyk8s.io/v1alpha2";
const GROUP: &str = "wgpolicyk8s.io";
const NAMESPACED: Named<'_> = (VERSION, "PolicyReport", "policy", "sample");
const CLUSTER_WIDE: Named<'_> = (VERSION, "ClusterPolicyReport", "", "sample");

/// Who counts reports.
const EDGES: [(&str, u64); 2] = [("florin", 3), ("guilder", 5)];

#[tokio::test]
async fn policy_report_view() {
    let fleet = Fleet::board().await;
    let workload = fleet.workload("reports").await;
    let definition = |resource: &str| {
        let all = policy_report_definitions().into_iter();
        let mut named = all.filter(|crd| crd["spec"]["names"]["plural"] == resource);
        named.next().expect("a definition")
    };
    // One kind by a CRD of the workspace; the other by an export of it, with the CRD stored for the edges alone.
    put(&workload.client, &definition("policyreports")).await;
    export(&workload, "policy-report", &definition("clusterpolicyreports")).await;
    put(&workload.client, &placement("reports", &["policyreports", "clusterpolicyreports"])).await;
    for (name, passes) in EDGES {
        let edge = fleet.edge(name).await;
        put(&edge.client, &namespace("policy")).await;
        for report in [NAMESPACED, CLUSTER_WIDE] {
            let (version, kind, namespace, name) = report;
            let plural = format!("{}s.{GROUP}", kind.to_lowercase());
            let served = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural.as_str());
            edge.until(served, "served", |crd| {
                crd["status"]["conditions"].to_string().contains("Established")
            })
            .await;
            let mut report = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name },
                                     "summary": { "pass": passes } });
            if !namespace.is_empty() {
                report["metadata"]["namespace"] = namespace.into();
            }
            create(&edge.client, &report).await;
        }
    }

    // By the command, whoever may read the mailboxes.
    let words =
        ["get", "objects", "--kind", "policyreports.wgpolicyk8s.io", "-o", "json", "--espw", &fleet.provider];
    // Refused while no mailbox serves the kind yet.
    both(|| async { mailboat(&fleet.admin("root"), &words).await.out }).await;
    let older =
        ["kubestellar", "list-syncing-objects", "--api-kind", "PolicyReport", "--api-group", GROUP, "--json"];
    let words = [&older[..], &["--espw", &fleet.provider]].concat();
    let listed = mailboat(&fleet.admin("root"), &words).await.well().out;
    let listed = serde_json::Deserializer::from_str(&listed).into_iter::<Value>();
    let kinds: Vec<Value> = listed.map(|one| one.unwrap()["kind"].clone()).collect();
    assert_eq!(kinds, ["PolicyReport", "PolicyReport"], "one document for each");
    // By plain kubectl, whoever owns the export.
    let slice = ("apis.kcp.io/v1alpha1", "APIExportEndpointSlice", "", "policy-report");
    let has_url = |slice: &Value| slice["status"]["endpoints"][0]["url"].is_string();
    let slice = workload.until(slice, "with a URL", has_url).await;
    let url = slice["status"]["endpoints"][0]["url"].as_str().unwrap();
    let server = format!("{url}/clusters/*");
    let words = ["--server", &server, "get", "clusterpolicyreports", "-o", "json"];
    both(|| async { workload.kubectl(&words).await.out }).await;

    // Another export of the same kind is not bound there, and those who wait for it are told.
    let late = fleet.workload("late-reports").await;
    export(&late, "late-report", &definition("clusterpolicyreports")).await;
    put(&late.client, &placement("late", &["clusterpolicyreports"])).await;
    let told = (EDGE, "EdgePlacement", "", "late");
    let both_held = |found: &Value| {
        let held = found["status"]["held"].as_array().cloned().unwrap_or_default();
        let second = held.iter().filter(|one| one["message"].to_string().contains("another APIExport"));
        let edges: Vec<&Value> = second.map(|one| &one["edge"]).collect();
        edges == ["florin", "guilder"]
    };
    late.until(told, "told that it is the second", both_held).await;
    let florin = fleet.mailbox("florin").await;
    assert!(florin.get(("apis.kcp.io/v1alpha2", "APIBinding", "", "late-report")).await.is_none());
    late.kubectl(&["delete", "edgeplacement", "late"]).await.well();

    for (name, _) in EDGES {
        let (edge, mailbox) = (fleet.edge(name).await, fleet.mailbox(name).await);
        edge.kubectl(&["delete", "policyreport", "-n", "policy", "sample"]).await.well();
        mailbox.until_gone(NAMESPACED).await;
    }
    workload.kubectl(&["delete", "edgeplacement", "reports"]).await.well();
}

/// Asks for reports from both edges.
fn placement(name: &str, resources: &[&str]) -> Value {
    json!({
        "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": name },
        "spec": {
            "locationSelectors": [{ "matchLabels": { "env": "prod" } }],
            "upsync": [{ "apiGroup": GROUP, "resources": resources, "namespaces": ["policy"], "names": ["*"] }],
        },
    })
}

/// Waits until the reports of both edges are shown.
async fn both<Shown: Future<Output = String>>(show: impl Fn() -> Shown) {
    let wanted: Vec<u64> = EDGES.iter().map(|(_, passes)| *passes).collect();
    let waited = wait_until("the reports of both edges", SOON, || async {
        let shown = show().await;
        let list: Value = serde_json::from_str(&shown).map_err(|error| format!("{error}: {shown}"))?;
        let items = list["items"].as_array().into_iter().flatten();
        let mut passes: Vec<u64> = items.filter_map(|report| report["summary"]["pass"].as_u64()).collect();
        passes.sort_unstable();
        if passes == wanted { Ok(()) } else { Err(shown) }
    });
    waited.await.unwrap_or_else(|late| panic!("{late}"));
}

/// Offers a kind by an export of the workspace, binds it there, and stores its CRD denatured.
async fn export(workload: &Place, export_name: &str, definition: &Value) {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().unwrap();
    let version = versions.iter().find(|version| version["name"] == "v1alpha2").unwrap();
    let plural = spec["names"]["plural"].as_str().unwrap();
    let name = format!("v1.{plural}.{GROUP}");
    put(&workload.client, &json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": { "name": name },
        "spec": {
            "group": GROUP, "scope": spec["scope"],
            "names": { "plural": plural, "singular": spec["names"]["singular"], "kind": spec["names"]["kind"],
                       "listKind": spec["names"]["listKind"] },
            "versions": [{ "name": "v1alpha2", "served": true, "storage": true, "subresources": {},
                           "schema": version["schema"]["openAPIV3Schema"] }],
        },
    }))
    .await;
    put(&workload.client, &json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": export_name },
        "spec": { "resources": [{ "group": GROUP, "name": plural, "schema": name, "storage": { "crd": {} } }] },
    }))
    .await;
    let binding = ("apis.kcp.io/v1alpha2", "APIBinding", "", export_name);
    put(
        &workload.client,
        &json!({
            "apiVersion": binding.0, "kind": binding.1, "metadata": { "name": binding.3 },
            "spec": { "reference": { "export": { "path": workload.path, "name": export_name } } },
        }),
    )
    .await;
    workload.until(binding, "bound", |binding| binding["status"]["phase"] == "Bound").await;
    let mut denatured = definition.clone();
    denatured["apiVersion"] = json!("apiextensions.k8s.io.denatured/v1");
    put(&workload.client, &denatured).await;
}
