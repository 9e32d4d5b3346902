//! What a cluster gives to Services and Pods: addresses that nobody else has, and an account's token.

use std::collections::BTreeSet;
use std::sync::Arc;

use mailboat_machinery::{Kind, Origin, Schema, Settings, builtin};
use mailboat_object::KindId;
use serde_json::{Value, json};

use crate::world::{World, assert_refused, cluster, key};

fn core(resource: &str) -> KindId {
    KindId::new("", resource)
}

fn world() -> World {
    let settings = Settings { addresses: true, tokens: true, awake: Some(4), ..Settings::default() };
    let mut world = World::with(settings);
    for (resource, name) in [("services", "Service"), ("pods", "Pod"), ("serviceaccounts", "ServiceAccount")]
    {
        let (id, versions) = (core(resource), [("v1", Schema::permissive())]);
        let rules = builtin::rules(&id);
        let kind = Kind::new(id, name, true, versions, Origin::Native, rules);
        world.machine.serve(&cluster(), [Arc::new(kind)]);
    }
    world
}

#[allow(clippy::needless_pass_by_value, reason = "callers write `json!` in place")]
fn service(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name }, "spec": spec })
}

fn spec_of(world: &World, name: &str) -> Value {
    world.machine.get(&key(&core("services"), name)).unwrap().body()["spec"].clone()
}

#[test]
fn every_service_has_an_address_and_a_port_that_no_other_has() {
    let mut world = world();
    let (mut addresses, mut ports) = (BTreeSet::new(), BTreeSet::new());
    for number in 0..40 {
        let kind = if number % 2 == 0 { "NodePort" } else { "LoadBalancer" };
        let body = service(&format!("s-{number}"), json!({ "type": kind, "ports": [{ "port": 80 }] }));
        world.create(&core("services"), body).unwrap();
        let spec = spec_of(&world, &format!("s-{number}"));
        assert_eq!(spec["clusterIPs"], json!([spec["clusterIP"]]));
        assert!(addresses.insert(spec["clusterIP"].as_str().unwrap().to_owned()), "{spec}");
        assert!(ports.insert(spec["ports"][0]["nodePort"].as_u64().unwrap()), "{spec}");
    }
    assert!(addresses.iter().all(|address| address.starts_with("10.")), "{addresses:?}");
}

#[test]
fn an_address_stays_and_one_that_is_taken_is_refused() {
    let mut world = world();
    let plain = |address: &str| json!({ "clusterIP": address, "ports": [{ "port": 80 }] });
    world.create(&core("services"), service("a", plain("10.96.0.10"))).unwrap();
    for (address, why) in [
        ("10.96.0.10", "provided IP is already allocated"),
        ("192.168.0.1", "does not match the current range"),
        ("nonsense", "does not match the current range"),
    ] {
        let refused = world.create(&core("services"), service("b", plain(address)));
        assert!(assert_refused(refused, 422, "Invalid").to_string().contains(why), "{address}");
    }
    let at = key(&core("services"), "a");
    let body = service("a", json!({ "ports": [{ "port": 81 }] }));
    world.update(&at, body).unwrap();
    assert_eq!(spec_of(&world, "a")["clusterIP"], "10.96.0.10", "an update need not name it");
    let other =
        world.merge(&at, &json!({ "spec": { "clusterIP": "10.96.0.11", "clusterIPs": ["10.96.0.11"] } }));
    assert!(assert_refused(other, 422, "Invalid").to_string().contains("may not change once set"));
}

#[test]
fn what_a_type_does_not_ask_for_is_given_back() {
    let mut world = world();
    let at = key(&core("services"), "a");
    world
        .create(&core("services"), service("a", json!({ "type": "NodePort", "ports": [{ "port": 80 }] })))
        .unwrap();
    let port = spec_of(&world, "a")["ports"][0]["nodePort"].clone();
    let body = service("a", json!({ "type": "NodePort", "ports": [{ "port": 80, "protocol": "TCP" }] }));
    world.update(&at, body).unwrap();
    assert_eq!(spec_of(&world, "a")["ports"][0]["nodePort"], port, "an update need not name it");
    world.merge(&at, &json!({ "spec": { "type": "ClusterIP" } })).unwrap();
    assert_eq!(spec_of(&world, "a")["ports"][0].get("nodePort"), None);
    world.merge(&at, &json!({ "spec": { "type": "ExternalName", "externalName": "example.org" } })).unwrap();
    assert_eq!(spec_of(&world, "a").get("clusterIP"), None);
    world.merge(&at, &json!({ "spec": { "type": "ClusterIP", "externalName": null } })).unwrap();
    assert!(spec_of(&world, "a")["clusterIP"].is_string());
    let none = json!({ "clusterIP": "None", "selector": { "a": "b" }, "ports": [{ "port": 80 }] });
    world.create(&core("services"), service("headless", none)).unwrap();
    assert_eq!(spec_of(&world, "headless")["clusterIP"], "None");
    for (number, why) in [(80, "not in the valid range"), (port.as_u64().unwrap(), "already allocated")] {
        let ports = json!([{ "port": 80, "nodePort": number }]);
        let taken = json!({ "type": "NodePort", "ports": [{ "port": 80, "nodePort": port }] });
        let _ = world.create(&core("services"), service("taken", taken));
        let refused =
            world.create(&core("services"), service("b", json!({ "type": "NodePort", "ports": ports })));
        assert!(assert_refused(refused, 422, "Invalid").to_string().contains(why), "{number}");
    }
}

#[test]
fn a_pod_gets_the_token_of_its_account_unless_it_wants_none() {
    let mut world = world();
    let pod = |name: &str, spec: &Value| {
        let mut spec = spec.clone();
        spec["containers"] = json!([{ "name": "a", "image": "a" }, { "name": "b", "image": "b", "volumeMounts": [
            { "name": "own", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" }] }]);
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
    };
    let made = world.create(&core("pods"), pod("plain", &json!({}))).unwrap().object;
    let spec = &made.body()["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    let volume = &spec["volumes"][0];
    assert_eq!(volume["projected"]["sources"][0]["serviceAccountToken"]["path"], "token", "{spec}");
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], volume["name"]);
    assert_eq!(spec["containers"][1]["volumeMounts"][0]["name"], "own", "{spec}");
    assert_eq!(spec["containers"][1]["volumeMounts"].as_array().unwrap().len(), 1);

    let robot = json!({ "serviceAccountName": "robot" });
    let refused = assert_refused(world.create(&core("pods"), pod("early", &robot)), 403, "Forbidden");
    assert_eq!(
        refused.to_string(),
        "403 Forbidden: pods \"early\" is forbidden: error looking up service account default/robot: serviceaccount \"robot\" not found"
    );
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "robot" },
        "automountServiceAccountToken": false, "imagePullSecrets": [{ "name": "pull" }] });
    world.create(&core("serviceaccounts"), account).unwrap();
    let made = world.create(&core("pods"), pod("robot", &robot)).unwrap().object;
    assert_eq!(made.body()["spec"].get("volumes"), None);
    assert_eq!(made.body()["spec"]["imagePullSecrets"], json!([{ "name": "pull" }]));
    let wanted = json!({ "serviceAccountName": "robot", "automountServiceAccountToken": true });
    let made = world.create(&core("pods"), pod("wanted", &wanted)).unwrap().object;
    assert_eq!(made.body()["spec"]["volumes"].as_array().unwrap().len(), 1);
}
