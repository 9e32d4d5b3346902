//! Workspaces of our types: whoever makes one needs no other command. Its owner is an ordinary user, and so is the center.

use mailboat_cluster::{Connection, Read, ReadMode, Source, Transport as _};
use mailboat_object::key::KindId;
use mailboat_object::wire::FaultKind;
use mailboat_testkit::{CENTER_USER, Workspace};
use serde_json::{Value, json};

use crate::harbor::{BOUND, Harbor, Named, Place};

const TENANCY: &str = "tenancy.kcp.io/v1alpha1";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const EDGE: &str = "edge.kubestellar.io/v2alpha1";
const OWNER: &str = "alice";

#[tokio::test]
async fn a_workspace_of_our_types_lets_the_center_in_by_itself() {
    let mut harbor = Harbor::new("types").await;
    harbor.sail();
    let above = harbor.center.workspace("team").await.unwrap();
    harbor.center.make_administrator(OWNER, &above.path).await.unwrap();
    let team = place(&harbor, &above.path).await;

    let inventory = made(&harbor, &team, "edges", "mailboat-inventory").await;
    let shop = made(&harbor, &team, "shop", "mailboat-workload").await;
    for (workspace, role) in [(&inventory, "mailboat:center:inventory"), (&shop, "mailboat:center")] {
        let binding =
            workspace.get((RBAC, "ClusterRoleBinding", "", role)).await.expect("the center's rights");
        assert_eq!(binding["subjects"][0]["name"], "mailboat:center", "{binding}");
    }
    let bound = shop.list("apis.kcp.io/v1alpha2", "APIBinding", "").await;
    for export in ["edge.kubestellar.io", "kubernetes", "denatured.mailboat.dev"] {
        let here = |binding: &&Value| binding["spec"]["reference"]["export"]["name"] == export;
        let binding = bound.iter().find(here).unwrap_or_else(|| panic!("{export} is not bound: {bound:?}"));
        assert_eq!(binding["spec"]["permissionClaims"], Value::Null, "{export} was granted something");
    }

    // So all of it works, from the edge's description to the copy in its mailbox.
    let target = inventory.edge("florin", json!({ "env": "prod" })).await;
    shop.put(&json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "bread": "3" },
        "metadata": { "namespace": "default", "name": "prices", "labels": { "app": "shop" } } }))
        .await;
    shop.put(&json!({ "apiVersion": EDGE, "kind": "EdgePlacement", "metadata": { "name": "shops" },
        "spec": { "locationSelectors": [{ "matchLabels": { "env": "prod" } }],
            "downsync": [{ "apiGroup": "", "resources": ["configmaps"], "namespaces": ["default"],
                           "labelSelectors": [{ "matchLabels": { "app": "shop" } }] }] } }))
        .await;
    let copy = ("v1", "ConfigMap", "default", "prices");
    let ready = |placement: &Value| {
        let conditions = placement["status"]["conditions"].as_array();
        let ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        conditions.is_some_and(|conditions| conditions.iter().any(ready))
    };
    shop.until_within(BOUND, (EDGE, "EdgePlacement", "", "shops"), "delivered", ready).await;
    // It says so no sooner than it is so, though the mailbox was only just asked for.
    let mailbox = harbor.mailbox(&target).await;
    assert_eq!(mailbox.get(copy).await.expect("the copy is there")["data"]["bread"], "3");

    // What users wrote there the center neither makes nor deletes: it says so of placements that are its own to tell of.
    for (method, path, may) in [
        ("DELETE", "edgeplacements/shops", false),
        ("PUT", "edgeplacements/shops", false),
        ("POST", "edgeplacements", false),
        ("POST", "customizers", false),
        ("DELETE", "customizers", false),
        ("POST", "singleplacementslices", true),
        ("DELETE", "singleplacementslices/shops", true),
    ] {
        assert_eq!(center_may(&harbor, &shop, method, path).await, may, "the center: {method} {path}");
    }

    // Without a center a new workspace waits, and says for whom; those that are there go on.
    harbor.moor().await;
    ask_for(&harbor, &team, "later", "mailboat-workload").await;
    let waits = |workspace: &Value| {
        let waits_for: Vec<&str> = workspace["status"]["initializers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        workspace["status"]["phase"] == "Initializing"
            && waits_for.len() == 1
            && waits_for[0].ends_with(":mailboat-workload")
    };
    team.until_within(BOUND, workspace("later"), "waiting for the center alone", waits).await;
    assert!(mailbox.get(copy).await.is_some() && shop.get(copy).await.is_some());
    let itself = team.get(workspace("later")).await.unwrap();
    let cluster = itself["spec"]["cluster"].as_str().unwrap();
    for (user, may) in [(CENTER_USER, true), ("bob", false), (OWNER, false)] {
        assert_eq!(sees(&harbor, user, cluster).await, may, "{user} sees what waits to be prepared");
    }
    harbor.sail();
    let later = until_ready(&harbor, &team, "later").await;
    assert!(later.get((RBAC, "ClusterRole", "", "mailboat:center")).await.is_some());

    // What is prepared stays as its owner leaves it.
    assert!(!sees(&harbor, CENTER_USER, cluster).await, "it waits no more");
    team.delete(workspace("later")).await;
    team.until_gone(workspace("later")).await;
    harbor.moor().await;
}

/// Whether the center's user may try this on our kinds in a workspace.
async fn center_may(harbor: &Harbor, place: &Place, method: &str, path: &str) -> bool {
    let client = harbor.center.client(CENTER_USER, &place.workspace.path).await.unwrap();
    let resource = path.rsplit_once('/').map_or(path, |(resource, _)| resource);
    let kind = if resource == "customizers" { "Customizer" } else { "SinglePlacementSlice" };
    let object = json!({ "apiVersion": EDGE, "kind": kind, "metadata": { "name": "tried" } });
    let request = http::Request::builder()
        .method(method)
        .uri(format!("/apis/{EDGE}/{path}?dryRun=All"))
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())
        .unwrap();
    let answer = client.send(request.map(kube::client::Body::from)).await.unwrap();
    answer.status() != http::StatusCode::FORBIDDEN
}

fn workspace(name: &str) -> Named<'_> {
    (TENANCY, "Workspace", "", name)
}

async fn place(harbor: &Harbor, path: &str) -> Place {
    let client = harbor.center.client(OWNER, path).await.unwrap();
    let workspace = Workspace { path: path.to_owned(), name: String::new(), cluster: String::new() };
    Place { client, workspace }
}

async fn ask_for(harbor: &Harbor, team: &Place, name: &str, of: &str) {
    team.put(&json!({ "apiVersion": TENANCY, "kind": "Workspace", "metadata": { "name": name },
        "spec": { "type": { "name": of, "path": harbor.provider } } }))
        .await;
}

async fn until_ready(harbor: &Harbor, team: &Place, name: &str) -> Place {
    let ready = |found: &Value| found["status"]["phase"] == "Ready";
    team.until_within(BOUND, workspace(name), "ready", ready).await;
    place(harbor, &format!("{}:{name}", team.workspace.path)).await
}

async fn made(harbor: &Harbor, team: &Place, name: &str, of: &str) -> Place {
    ask_for(harbor, team, name, of).await;
    until_ready(harbor, team, name).await
}

/// Whether a user is shown a workspace that waits for the center; the view is refused to those who may not prepare workspaces.
async fn sees(harbor: &Harbor, user: &str, cluster: &str) -> bool {
    let of = harbor.provider().await.get((TENANCY, "WorkspaceType", "", "mailboat-workload")).await.unwrap();
    let url = of["status"]["virtualWorkspaces"][0]["url"].as_str().unwrap();
    let path = harbor.center.kubeconfig(user, "root").unwrap();
    let source = Source::Kubeconfig { path: Some(path), context: None };
    let connection = Connection::open(source, mailboat_cluster::Settings::default()).await.unwrap();
    let page = ReadMode::Page { limit: 500, continue_token: None };
    let kind = KindId::new("core.kcp.io", "logicalclusters");
    match connection.view(url).unwrap().all().fetch(Read::all(kind, page)).await {
        Ok(list) => {
            let list: Value = serde_json::from_slice(&list.whole().await.unwrap()).unwrap();
            let mut items = list["items"].as_array().into_iter().flatten();
            items.any(|item| item["metadata"]["annotations"]["kcp.io/cluster"] == cluster)
        }
        Err(fault) => {
            assert_eq!(fault.kind, FaultKind::Forbidden, "{fault}");
            false
        }
    }
}
