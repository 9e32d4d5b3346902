//! Workspaces, exports, bindings and views, by kubectl.

use crate::kubectl::Kubectl;
use crate::served::Served;

const EXPORT: &str = "
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: { name: v1.boats.sea.example }
spec:
  group: sea.example
  names: { plural: boats, singular: boat, kind: Boat, listKind: BoatList }
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: { status: {} }
    schema:
      type: object
      properties: { spec: { type: object, properties: { length: { type: integer } } } }
---
apiVersion: apis.kcp.io/v1alpha2
kind: APIExport
metadata: { name: sea.example }
spec:
  resources: [{ group: sea.example, name: boats, schema: v1.boats.sea.example, storage: { crd: {} } }]
  permissionClaims: [{ group: '', resource: configmaps, verbs: ['*'] }]
";

const BINDING: &str = "
apiVersion: apis.kcp.io/v1alpha2
kind: APIBinding
metadata: { name: sea }
spec:
  reference: { export: { path: 'root:provider', name: sea.example } }
  permissionClaims:
  - { group: '', resource: configmaps, verbs: ['*'], state: Accepted, selector: { matchAll: true } }
";

const BOAT: &str = "{apiVersion: sea.example/v1, kind: Boat, metadata: {name: anna}, spec: {length: 7}}";

fn workspace(name: &str) -> String {
    format!("{{apiVersion: tenancy.kcp.io/v1alpha1, kind: Workspace, metadata: {{name: {name}}}}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_kind_is_seen_through_its_exports_view() {
    let served = Served::workspaces().await;
    let root = Kubectl::at(&served, "/clusters/root");
    for name in ["provider", "orders", "stranger"] {
        root.apply(&workspace(name)).await;
        root.well(&["wait", "--for", "jsonpath={.status.phase}=Ready", "workspace", name, "--timeout", "5s"])
            .await;
    }
    let provider = Kubectl::at(&served, "/clusters/root:provider");
    provider.apply(EXPORT).await;
    let endpoints =
        ["get", "apiexportendpointslices", "sea.example", "-o", "jsonpath={.status.endpoints[*].url}"];
    assert_eq!(provider.well(&endpoints).await, "", "nobody is bound yet");

    let orders = Kubectl::at(&served, "/clusters/root:orders");
    let stranger = Kubectl::at(&served, "/clusters/root:stranger");
    assert!(
        !orders.run_with(&["apply", "-f", "-"], BOAT).await.well,
        "boats are not served before they are bound"
    );
    orders.apply(BINDING).await;
    orders.well(&["wait", "--for", "condition=Ready", "apibinding/sea", "--timeout", "5s"]).await;
    orders.apply(BOAT).await;
    orders.well(&["create", "configmap", "tide", "--from-literal", "a=b"]).await;
    stranger.well(&["create", "configmap", "secret-tide", "--from-literal", "a=b"]).await;
    let cluster = root.well(&["get", "workspace", "orders", "-o", "jsonpath={.spec.cluster}"]).await;
    let shown = orders
        .well(&["get", "boat", "anna", "-o", "jsonpath={.metadata.annotations.kcp\\.io/cluster}"])
        .await;
    assert_eq!(shown, cluster);
    let by_id = Kubectl::at(&served, &format!("/clusters/{cluster}"));
    by_id.well(&["get", "boats", "anna"]).await;

    let url = provider.well(&endpoints).await;
    let path = url.strip_prefix(&served.url).unwrap_or_else(|| panic!("{url} is not at {}", served.url));
    let view = Kubectl::at(&served, &format!("{path}/clusters/*"));
    // kubectl puts the server's own path in front.
    let boats = view.well(&["get", "--raw", "/apis/sea.example/v1/boats"]).await;
    assert!(boats.contains("\"anna\"") && boats.contains(&cluster), "{boats}");
    let maps = view.well(&["get", "configmaps", "-A"]).await;
    assert!(maps.contains("tide") && !maps.contains("secret-tide"), "a view shows what was granted: {maps}");

    orders.well(&["delete", "apibinding", "sea", "--timeout", "20s"]).await;
    assert!(!orders.run(&["get", "--raw", "/apis/sea.example/v1/boats"]).await.well);
    assert_eq!(provider.well(&endpoints).await, "", "nobody is bound any more");

    root.well(&["delete", "workspace", "orders", "--timeout", "20s"]).await;
    let gone = orders.run(&["get", "configmaps"]).await;
    assert!(gone.err.contains("Forbidden") || gone.err.contains("forbidden"), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_is_at_home_in_its_workspace_alone() {
    let served = Served::workspaces().await;
    let root = Kubectl::at(&served, "/clusters/root");
    for name in ["a", "b"] {
        root.apply(&workspace(name)).await;
    }
    let a = Kubectl::at(&served, "/clusters/root:a");
    a.well(&["create", "serviceaccount", "robot"]).await;
    let role = [
        "create",
        "clusterrolebinding",
        "robot",
        "--clusterrole",
        "cluster-admin",
        "--serviceaccount",
        "default:robot",
    ];
    a.well(&role).await;
    let token = a.well(&["create", "token", "robot"]).await;
    let robot = Kubectl::with_token(&served, token.trim());
    robot.well(&["create", "configmap", "here", "--from-literal", "a=b"]).await;
    a.well(&["get", "configmap", "here"]).await;
    let elsewhere = robot.run(&["get", "--raw", "/clusters/root:b/api/v1/namespaces"]).await;
    assert!(!elsewhere.well && elsewhere.err.to_lowercase().contains("forbidden"), "{elsewhere:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workspaces_and_what_is_bound_in_them_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = Served::workspaces_on_disk(folder.path()).await;
    let root = Kubectl::at(&first, "/clusters/root");
    for name in ["provider", "orders"] {
        root.apply(&workspace(name)).await;
    }
    Kubectl::at(&first, "/clusters/root:provider").apply(EXPORT).await;
    let orders = Kubectl::at(&first, "/clusters/root:orders");
    orders.apply(BINDING).await;
    orders.apply(BOAT).await;
    first.stop().await;
    let again = Served::workspaces_on_disk(folder.path()).await;
    let orders = Kubectl::at(&again, "/clusters/root:orders");
    assert_eq!(orders.well(&["get", "boat", "anna", "-o", "jsonpath={.spec.length}"]).await, "7");
    let root = Kubectl::at(&again, "/clusters/root");
    let url = root.well(&["get", "workspace", "orders", "-o", "jsonpath={.spec.URL}"]).await;
    assert_eq!(url, format!("{}/clusters/root:orders", again.url), "it is reached at another port now");
}
