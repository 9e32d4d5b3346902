//! Scenario `kyverno`: a whole policy engine goes to the edge, by every form of configuration, and its real reports
//! controller works there with what came.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::{DynamicObject, ListParams};
use mailboat_testkit::build::Programs;
use mailboat_testkit::kubelet::{Image, Kubelet};
use mailboat_testkit::{EdgeSpec, World, served, wait_until};
use serde_json::{Value, json};

use crate::chart::{in_mailbox, kyverno};
use crate::harbor::{EDGE, Harbor, config_map, namespace, put};

/// Kyverno's definitions are large, and every server takes its time with them.
const ARRIVAL: Duration = Duration::from_mins(4);
/// The controller looks for work every so often.
const REPORT: Duration = Duration::from_mins(3);
const CONTROLLER: &str = "reg.kyverno.io/kyverno/reports-controller";

const IN_NAMESPACES: [(&str, &str, &str, &str); 7] = [
    ("", "v1", "serviceaccounts", "ServiceAccount"),
    ("", "v1", "configmaps", "ConfigMap"),
    ("", "v1", "services", "Service"),
    ("apps", "v1", "deployments", "Deployment"),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
    ("kyverno.io", "v1", "policies", "Policy"),
];
const CLUSTER_WIDE: [(&str, &str, &str, &str); 4] = [
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"),
    ("", "v1", "namespaces", "Namespace"),
];

#[tokio::test]
async fn kyverno_arrives_by_every_form_of_configuration_and_its_controller_works() {
    let world = Arc::new(World::builder().edge_with(EdgeSpec::new(EDGE)).start().await.unwrap());
    let program = Programs::locate().unwrap().reports_controller().unwrap();
    let image = Image::new().program("/ko-app/reports-controller", program);
    let image = image.entrypoint(["/ko-app/reports-controller"]);
    let kubelet = Kubelet::builder(world.edge(EDGE)).image(CONTROLLER, image).start().await.unwrap();
    let mut harbor = Harbor::beside("kyverno", world).await;

    let objects = workload();
    for object in &objects {
        put(&harbor.up, &in_mailbox(object)).await;
    }
    harbor.configure(by_namespaces(&objects)).await;
    harbor.sail();
    let first = arrived(&harbor, &objects).await;

    // The other forms say the same, so nothing at the edge may change, nor be made anew.
    harbor.configure(by_objects(&objects)).await;
    assert_eq!(arrived(&harbor, &objects).await, first, "namespacedObjects");
    harbor.configure(by_both(&objects)).await;
    assert_eq!(arrived(&harbor, &objects).await, first, "a mixture");
    harbor.configure_as("EdgeSyncConfig", EDGE, by_edge_sync_config(&objects)).await;
    harbor.configure(json!({ "upsync": upsync() })).await;
    assert_eq!(arrived(&harbor, &objects).await, first, "EdgeSyncConfig");

    the_controller_reports(&harbor, &kubelet).await;
    harbor.moor().await;
}

/// Kyverno, and a policy of ours.
fn workload() -> Vec<Value> {
    let mut own = namespace("policy");
    own["metadata"]["labels"] = json!({ "app": "kyverno" });
    let policy = json!({ "apiVersion": "kyverno.io/v1", "kind": "Policy",
        "metadata": { "name": "sample-policy", "namespace": "policy" },
        "spec": { "background": true, "admission": true, "rules": [{ "name": "check-label",
            "match": { "any": [{ "resources": { "kinds": ["ConfigMap"] } }] },
            "validate": { "failureAction": "Enforce", "message": "every ConfigMap says what it belongs to",
                "pattern": { "metadata": { "labels": { "app.kubernetes.io/name": "?*" } } } } }] } });
    let mut objects = vec![namespace("kyverno"), own];
    objects.extend(kyverno());
    objects.push(policy);
    objects
}

fn names_of(objects: &[Value], kind: &str, namespace: &str) -> Vec<String> {
    let wanted = |object: &&Value| {
        object["kind"] == kind && object["metadata"]["namespace"].as_str().unwrap_or_default() == namespace
    };
    let names =
        objects.iter().filter(wanted).map(|object| object["metadata"]["name"].as_str().unwrap().to_owned());
    names.collect()
}

fn upsync() -> Value {
    json!([{ "apiGroup": "wgpolicyk8s.io", "resources": ["policyreports", "clusterpolicyreports"],
        "namespaces": ["policy"], "names": ["*"] }])
}

fn cluster_scope(objects: &[Value]) -> Value {
    let by_name = CLUSTER_WIDE.iter().map(|(group, version, resource, kind)| {
        json!({ "group": group, "apiVersion": version, "resource": resource, "objects": names_of(objects, kind, "") })
    });
    let policies =
        json!({ "group": "kyverno.io", "apiVersion": "v1", "resource": "clusterpolicies", "objects": ["*"] });
    by_name.chain([policies]).collect()
}

fn by_namespaces(objects: &[Value]) -> Value {
    let resources: Value = IN_NAMESPACES
        .iter()
        .map(|(group, version, resource, _)| json!({ "group": group, "apiVersion": version, "resource": resource }))
        .collect();
    json!({ "namespaceScope": { "namespaces": ["kyverno", "policy"], "resources": resources },
        "clusterScope": cluster_scope(objects), "upsync": upsync() })
}

fn all_named((group, version, resource, _): &(&str, &str, &str, &str)) -> Value {
    json!({ "group": group, "apiVersion": version, "resource": resource, "objectsByNamespace": [
        { "namespace": "kyverno", "names": ["*"] }, { "namespace": "policy", "names": ["*"] }] })
}

fn by_objects(objects: &[Value]) -> Value {
    json!({ "namespacedObjects": IN_NAMESPACES.iter().map(all_named).collect::<Value>(),
        "clusterScope": cluster_scope(objects), "upsync": upsync() })
}

fn by_both(objects: &[Value]) -> Value {
    let (scoped, named) = IN_NAMESPACES.split_at(3);
    let resources: Value = scoped
        .iter()
        .map(|(group, version, resource, _)| json!({ "group": group, "apiVersion": version, "resource": resource }))
        .collect();
    json!({ "namespaceScope": { "namespaces": ["kyverno", "policy"], "resources": resources },
        "namespacedObjects": named.iter().map(all_named).collect::<Value>(),
        "clusterScope": cluster_scope(objects), "upsync": upsync() })
}

fn by_edge_sync_config(objects: &[Value]) -> Value {
    let entry = |object: &Value| {
        let version = object["apiVersion"].as_str().unwrap();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let mut entry = json!({ "group": group, "version": version, "kind": object["kind"],
            "name": object["metadata"]["name"] });
        if let Some(namespace) = object["metadata"]["namespace"].as_str() {
            entry["namespace"] = namespace.into();
        }
        entry
    };
    json!({ "downSyncedResources": objects.iter().map(entry).collect::<Value>() })
}

/// Waits until all is at the edge, and gives back each object's uid and version of what we wrote.
async fn arrived(harbor: &Harbor, objects: &[Value]) -> BTreeMap<String, (String, i64)> {
    let waited = wait_until("all of Kyverno is at the edge", ARRIVAL, async || {
        let status = harbor.status().await;
        let generation = harbor.generation().await;
        let counts = &status["counts"];
        let all = counts["delivered"].as_u64().unwrap_or_default() >= objects.len() as u64;
        if all && counts["waiting"] == 0 && status["observedGeneration"] == generation {
            return Ok(());
        }
        Err(format!("{} objects wanted; {counts}; {}", objects.len(), status["notCurrent"]))
    });
    waited.await.unwrap_or_else(|late| panic!("{late}"));
    let mut found = BTreeMap::new();
    for object in objects {
        let copy =
            harbor.copy_of(object).await.unwrap_or_else(|| panic!("{} is missing", object["metadata"]));
        let metadata = &copy["metadata"];
        let uid = metadata["uid"].as_str().unwrap().to_owned();
        let name = format!("{} {}/{}", object["kind"], object["metadata"]["namespace"], metadata["name"]);
        found.insert(name, (uid, metadata["generation"].as_i64().unwrap_or_default()));
    }
    found
}

/// The real controller, run from the Deployment that came, finds a ConfigMap that breaks the policy that came, and its
/// report comes up into the mailbox.
async fn the_controller_reports(harbor: &Harbor, kubelet: &Kubelet) {
    put(&harbor.down, &config_map("policy", "unlabelled", "x")).await;
    let ready = ("apps/v1", "Deployment", "kyverno", "kyverno-reports-controller");
    let kind = kube::core::GroupVersionKind::gvk("wgpolicyk8s.io", "v1alpha2", "PolicyReport");
    let (resource, _) = served(&harbor.up, &kind).await.unwrap();
    let reports: Api<DynamicObject> = Api::namespaced_with(harbor.up.clone(), "policy", &resource);
    harbor.until_up(ready, "ready", |source| source["status"]["readyReplicas"] == 1).await;
    let waited = wait_until("a report in the mailbox", REPORT, async || {
        let found = reports.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let of_ours = |report: &DynamicObject| {
            report.data["scope"]["name"] == "unlabelled" && report.data["summary"]["fail"] == 1
        };
        let seen: Vec<String> = found.iter().map(|report| report.data["summary"].to_string()).collect();
        if found.iter().any(of_ours) { Ok(()) } else { Err(format!("{seen:?}")) }
    });
    if let Err(late) = waited.await {
        let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(harbor.down.clone(), "kyverno");
        let pods = pods.list(&ListParams::default()).await.unwrap().items;
        let named = |pod: &k8s_openapi::api::core::v1::Pod| pod.metadata.name.clone().unwrap_or_default();
        let pod = pods.iter().map(named).find(|name| name.contains("reports")).unwrap_or_default();
        panic!("{late}\n{}", kubelet.log("kyverno", &pod, "controller").unwrap_or_default());
    }
}
