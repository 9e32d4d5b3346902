//! `mailboat hub` with workspaces, killed while others write: what it acknowledged is there, and its views show it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use http::Request;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::hub::{Process, started};

const LIVES: usize = 6;
const TENANTS: usize = 4;
const BINDINGS: &str = "/apis/apis.kcp.io/v1alpha2/apibindings";
const BOATS: &str = "/apis/sea.example/v1/namespaces/default/boats";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WORKSPACES: &str = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces";
const VIEW: &str = "/services/apiexport/root:provider/boats/clusters/*";

/// A hub that runs. It is killed with this value.
struct Hub {
    _process: Process,
    client: Client,
}

/// What is acknowledged of an object, or was tried: whether it is there.
type Known = BTreeMap<String, bool>;

impl Hub {
    async fn start(folder: &Path) -> Self {
        let process = started(folder, &["hub", "--data", "data", "--listen", "127.0.0.1:0"], None).await;
        let admin = Kubeconfig::read_from(folder.join("data/admin.kubeconfig")).unwrap();
        let mut config =
            kube::Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await.unwrap();
        let address = config.cluster_url.authority().unwrap();
        config.cluster_url = format!("https://{address}").parse().unwrap();
        Self { _process: process, client: Client::try_from(config).unwrap() }
    }

    /// What stands under a path, each by its cluster and name.
    async fn names(&self, path: &str) -> BTreeSet<(String, String)> {
        let list = ask(&self.client, "GET", path, &Value::Null).await.unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let named = list["items"].as_array().unwrap().iter().map(|item| {
            let metadata = &item["metadata"];
            (text(&metadata["annotations"]["kcp.io/cluster"]), text(&metadata["name"]))
        });
        named.filter(|(_, name)| name.starts_with("a-")).collect()
    }
}

async fn ask(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let content = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", media);
    client.request(request.body(content).unwrap()).await
}

fn binding(state: &str) -> Value {
    json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": "boats" }, "spec": {
        "reference": { "export": { "path": "root:provider", "name": "boats" } },
        "permissionClaims": [{ "resource": "configmaps", "verbs": ["*"], "state": state, "selector": { "matchAll": true } }],
    } })
}

fn boat(name: &str) -> Value {
    json!({ "apiVersion": "sea.example/v1", "kind": "Boat", "metadata": { "name": name } })
}

fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "filling": "x".repeat(600) } })
}

/// Makes a workspace that is bound to the export.
async fn settle(client: &Client, name: &str) -> Result<(), kube::Error> {
    let workspace =
        json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name } });
    ask(client, "POST", WORKSPACES, &workspace).await?;
    ask(client, "POST", &format!("/clusters/root:{name}{BINDINGS}"), &binding("Accepted")).await.map(drop)
}

async fn offer(client: &Client) {
    let workspace = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": "provider" } });
    ask(client, "POST", WORKSPACES, &workspace).await.unwrap();
    let schema = json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": { "name": "v1.boats.sea.example" },
        "spec": { "group": "sea.example", "scope": "Namespaced",
            "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } }] },
    });
    let export = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": "boats" },
        "spec": { "resources": [{ "group": "sea.example", "name": "boats", "schema": "v1.boats.sea.example", "storage": { "crd": {} } }],
            "permissionClaims": [{ "resource": "configmaps", "verbs": ["*"] }] },
    });
    let at = "/clusters/root:provider/apis/apis.kcp.io";
    ask(client, "POST", &format!("{at}/v1alpha1/apiresourceschemas"), &schema).await.unwrap();
    ask(client, "POST", &format!("{at}/v1alpha2/apiexports"), &export).await.unwrap();
}

/// Writes until the hub is gone. What is tried is told before, and what was acknowledged after it: where, and whether it is there.
async fn write(client: Client, tenant: usize, life: usize, told: UnboundedSender<(String, bool, bool)>) {
    let home = format!("/clusters/root:t{tenant}");
    for number in 0.. {
        let name = format!("a-{life}-{number}");
        let (path, there, asked) = match number % 9 {
            // A workspace of its own, with a binding and a boat, one after the other.
            4 => {
                let new = format!("t{tenant}-{life}-{number}");
                if settle(&client, &new).await.is_err() {
                    return;
                }
                let boats = format!("/clusters/root:{new}{BOATS}");
                (format!("{boats}/{name}"), true, ("POST", boats, boat(&name)))
            }
            6 => {
                let state = if number % 2 == 0 { "Rejected" } else { "Accepted" };
                let path = format!("{home}{BINDINGS}/boats");
                if ask(&client, "PATCH", &path, &json!({ "spec": binding(state)["spec"] })).await.is_err() {
                    return;
                }
                continue;
            }
            8 => {
                let path = format!("{home}{BOATS}/a-{life}-{}", number - 8);
                (path.clone(), false, ("DELETE", path, Value::Null))
            }
            kind => {
                let (of, object) = if kind % 2 == 0 { (BOATS, boat(&name)) } else { (MAPS, map(&name)) };
                (format!("{home}{of}/{name}"), true, ("POST", format!("{home}{of}"), object))
            }
        };
        let _ = told.send((path.clone(), there, false));
        let (method, at, body) = asked;
        if ask(&client, method, &at, &body).await.is_err() {
            return;
        }
        let _ = told.send((path, there, true));
    }
}

/// Every acknowledged write is there, and nothing else but what was under way; views show what the workspaces have.
async fn check(hub: &Hub, acknowledged: &mut Known, tried: &Known, life: usize) {
    for (path, there) in acknowledged.iter_mut() {
        let found = match ask(&hub.client, "GET", path, &Value::Null).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 404 => false,
            Err(error) => panic!("life {life}: {path}: {error}"),
        };
        assert!(
            found == *there || tried.get(path) == Some(&found),
            "life {life}: {path}: {found}, not {there}"
        );
        *there = found;
    }
    let (mut boats, mut maps) = (BTreeSet::new(), BTreeSet::new());
    let workspaces = ask(&hub.client, "GET", WORKSPACES, &Value::Null).await.unwrap();
    let mut bound = 0;
    for workspace in workspaces["items"].as_array().unwrap() {
        let name = workspace["metadata"]["name"].as_str().unwrap();
        assert_eq!(workspace["status"]["phase"], "Ready", "life {life}: {workspace}");
        let at = format!("/clusters/root:{name}");
        let Ok(binding) = ask(&hub.client, "GET", &format!("{at}{BINDINGS}/boats"), &Value::Null).await
        else {
            continue;
        };
        assert_eq!(binding["status"]["phase"], "Bound", "life {life}: {binding}");
        bound += 1;
        boats.extend(hub.names(&format!("{at}{BOATS}")).await);
        if binding["spec"]["permissionClaims"][0]["state"] == "Accepted" {
            maps.extend(hub.names(&format!("{at}{MAPS}")).await);
        }
    }
    assert!(bound >= TENANTS, "life {life}: {bound} are bound");
    assert_eq!(hub.names(&format!("{VIEW}/apis/sea.example/v1/boats")).await, boats, "life {life}");
    assert_eq!(hub.names(&format!("{VIEW}/api/v1/configmaps")).await, maps, "life {life}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_hub_of_workspaces_loses_nothing_and_its_views_agree() {
    let folder = tempfile::tempdir().unwrap();
    let (mut acknowledged, mut tried) = (Known::new(), Known::new());
    let mut writes = 0;
    for life in 0..LIVES {
        let hub = Hub::start(folder.path()).await;
        if life == 0 {
            offer(&hub.client).await;
            for tenant in 0..TENANTS {
                settle(&hub.client, &format!("t{tenant}")).await.unwrap();
            }
        }
        check(&hub, &mut acknowledged, &tried, life).await;
        tried.clear();
        let (told, mut heard) = unbounded_channel();
        let writers: Vec<_> = (0..TENANTS)
            .map(|tenant| tokio::spawn(write(hub.client.clone(), tenant, life, told.clone())))
            .collect();
        drop(told);
        // It dies in the middle of whatever it does.
        let mut left = 60 + 17 * life;
        let mut hub = Some(hub);
        while let Some((path, there, is_done)) = heard.recv().await {
            if is_done {
                tried.remove(&path);
                acknowledged.insert(path, there);
                writes += 1;
            } else {
                tried.insert(path, there);
            }
            left = left.saturating_sub(1);
            if left == 0 {
                drop(hub.take());
            }
        }
        for writer in writers {
            writer.await.unwrap();
        }
    }
    let hub = Hub::start(folder.path()).await;
    check(&hub, &mut acknowledged, &tried, LIVES).await;
    assert!(writes > 20 * LIVES, "only {writes} writes were acknowledged");
}
