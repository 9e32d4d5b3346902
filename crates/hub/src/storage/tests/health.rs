//! What a hub says of how it is, whatever its disk does.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::asking::asked_of;
use super::backend::{Device, Full};
use crate::{Hub, Options, cluster};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn asked(hub: &Arc<Hub>, method: Method, path: &str, body: Value) -> (u16, String) {
    let (code, said) = asked_of(hub, method, path, body).await;
    (code, String::from_utf8_lossy(&said).into_owned())
}

async fn begun(device: &Device) -> Arc<Hub> {
    let options = Options { url: "https://127.0.0.1:6443".to_owned(), ..Options::default() };
    Arc::new(cluster(device.open().unwrap(), options).await.unwrap().hub)
}

#[tokio::test]
async fn a_hub_that_stores_nothing_any_more_says_so_and_one_with_a_full_disk_goes_on() {
    let device = Device::new(1);
    let hub = begun(&device).await;
    let map = || json!({ "metadata": { "generateName": "map-" } });
    device.fill(Full::Writing);
    assert_eq!(asked(&hub, Method::POST, MAPS, map()).await.0, 500);
    let ok = (200, "ok".to_owned());
    assert_eq!(asked(&hub, Method::GET, "/livez", Value::Null).await, ok, "what is there is served");
    device.make_room();
    assert_eq!(asked(&hub, Method::POST, MAPS, map()).await.0, 201);
    assert_eq!(asked(&hub, Method::GET, "/readyz", Value::Null).await, ok);
    device.cut_after_writes(0);
    assert_eq!(asked(&hub, Method::POST, MAPS, map()).await.0, 500);
    for path in ["livez", "readyz", "healthz"] {
        let (code, said) = asked(&hub, Method::GET, &format!("/{path}"), Value::Null).await;
        assert_eq!(code, 500, "{path}: {said}");
        assert!(
            said.contains("[+]ping ok\n") && said.contains("[-]etcd failed: reason withheld\n"),
            "{said}"
        );
        assert!(said.ends_with(&format!("\n{path} check failed\n")), "{said}");
    }
    assert_eq!(asked(&hub, Method::GET, "/livez?exclude=etcd", Value::Null).await, ok);
    assert_eq!(asked(&hub, Method::GET, "/livez/etcd", Value::Null).await.0, 500);
    assert_eq!(asked(&hub, Method::GET, "/livez/ping", Value::Null).await, ok);
    drop(hub);
    device.power_on();
    let again = begun(&device).await;
    assert_eq!(asked(&again, Method::GET, "/livez", Value::Null).await, ok, "it is well when it began anew");
}

/// Connections are taken when everything was read: nobody who asks whether it is ready is told so too early, since nobody is
/// told anything before.
#[tokio::test]
async fn kinds_that_were_defined_are_served_before_anybody_is_answered() {
    let device = Device::new(2);
    let hub = begun(&device).await;
    let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "boats.sea.example" },
        "spec": { "group": "sea.example", "scope": "Cluster", "names": { "plural": "boats", "kind": "Boat" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }] } });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(asked(&hub, Method::POST, path, definition).await.0, 201);
    drop(hub);
    let again = begun(&device).await;
    assert_eq!(asked(&again, Method::GET, "/apis/sea.example/v1/boats", Value::Null).await.0, 200);
    assert_eq!(asked(&again, Method::GET, "/readyz", Value::Null).await.0, 200);
}
