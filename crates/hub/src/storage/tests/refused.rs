//! A hub of workspaces whose disk is full: what it refuses never was, in all that it serves.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::asking::asked_of;
use super::backend::{Device, Full};
use crate::{Hub, Options, workspaces};

const APIS: &str = "/clusters/root:mine/apis/apis.kcp.io/v1alpha2/apibindings";
const BOATS: &str = "/apis/sea.example/v1/namespaces/default/boats";
const VIEW: &str = "/services/apiexport/root:provider/boats/clusters/*/apis/sea.example/v1/boats";

async fn asked(hub: &Arc<Hub>, method: Method, path: &str, body: Value) -> (u16, Value) {
    let (code, said) = asked_of(hub, method, path, body).await;
    (code, serde_json::from_slice(&said).unwrap_or_default())
}

async fn make(hub: &Arc<Hub>, path: &str, body: Value) {
    let (code, said) = asked(hub, Method::POST, path, body).await;
    assert_eq!(code, 201, "{path}: {said}");
}

/// How many boats the export's view shows, and what the workspace itself answers.
async fn seen(hub: &Arc<Hub>) -> (Option<usize>, u16) {
    let (_, list) = asked(hub, Method::GET, VIEW, Value::Null).await;
    let (code, _) = asked(hub, Method::GET, &format!("/clusters/root:mine{BOATS}/one"), Value::Null).await;
    (list["items"].as_array().map(Vec::len), code)
}

#[tokio::test]
async fn a_binding_whose_end_could_not_be_stored_is_served_and_seen_as_before() {
    let device = Device::new(1);
    let options = Options { url: "https://127.0.0.1:6443".to_owned(), ..Options::default() };
    let hub = Arc::new(workspaces(device.open().unwrap(), options).await.unwrap().hub);
    for name in ["provider", "mine"] {
        let workspace = json!({ "apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": { "name": name } });
        make(&hub, "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces", workspace).await;
    }
    let schema = json!({
        "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": { "name": "v1.boats.sea.example" },
        "spec": { "group": "sea.example", "scope": "Namespaced",
            "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } }] },
    });
    make(&hub, "/clusters/root:provider/apis/apis.kcp.io/v1alpha1/apiresourceschemas", schema).await;
    let export = json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": "boats" },
        "spec": { "resources": [{ "group": "sea.example", "name": "boats", "schema": "v1.boats.sea.example", "storage": { "crd": {} } }] },
    });
    make(&hub, "/clusters/root:provider/apis/apis.kcp.io/v1alpha2/apiexports", export).await;
    let binding = |name: &str| {
        json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": name },
            "spec": { "reference": { "export": { "path": "root:provider", "name": "boats" } } } })
    };
    // One that cannot be stored serves nothing.
    device.fill(Full::Writing);
    assert_eq!(asked(&hub, Method::POST, APIS, binding("boats")).await.0, 500);
    assert_eq!(asked(&hub, Method::GET, &format!("/clusters/root:mine{BOATS}"), Value::Null).await.0, 404);
    device.make_room();
    make(&hub, APIS, binding("boats")).await;
    let boat = json!({ "apiVersion": "sea.example/v1", "kind": "Boat", "metadata": { "name": "one" } });
    make(&hub, &format!("/clusters/root:mine{BOATS}"), boat.clone()).await;
    assert_eq!(seen(&hub).await, (Some(1), 200));
    // Nor does one end that cannot be stored, whichever boats there are.
    let path = format!("{APIS}/boats");
    for code_of_one in [200, 404] {
        if code_of_one == 404 {
            let path = format!("/clusters/root:mine{BOATS}/one");
            assert_eq!(asked(&hub, Method::DELETE, &path, Value::Null).await.0, 200);
        }
        device.fill(Full::Writing);
        let (code, said) = asked(&hub, Method::DELETE, &path, Value::Null).await;
        assert_eq!(code, 500, "{said}");
        assert_eq!(seen(&hub).await, (Some(1), code_of_one));
        device.make_room();
        let mut later = boat.clone();
        later["metadata"]["name"] = format!("after-{code_of_one}").into();
        make(&hub, &format!("/clusters/root:mine{BOATS}"), later).await;
        assert_eq!(seen(&hub).await, (Some(2), code_of_one));
    }
}
