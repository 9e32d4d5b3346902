//! Services: an address from outside, and the list of those who serve.

use std::sync::Arc;

use mailboat_machinery::Stored;
use mailboat_object::Key;
use serde_json::{Value, json};

use super::hand::{Hand, reference};
use super::template;

const SERVICE: &str = "kubernetes.io/service-name";

/// Gives a service of type LoadBalancer an address, and takes it from one that no longer is.
pub(super) fn look(hand: &mut Hand<'_>, key: &Key, addresses: &mut u32) {
    let Some(service) = hand.get(key) else { return };
    let has = !service.body()["status"]["loadBalancer"]["ingress"].is_null();
    let wants = service.body()["spec"]["type"] == "LoadBalancer" && !service.is_deleting();
    if wants && !has {
        *addresses += 1;
        let [.., middle, low] = addresses.to_be_bytes();
        let address = format!("172.30.{middle}.{low}");
        let ingress = json!([{ "ip": address, "ipMode": "VIP" }]);
        hand.set_status(&service, json!({ "loadBalancer": { "ingress": ingress } }));
    } else if has && !wants {
        hand.set_status(&service, json!({ "loadBalancer": {} }));
    }
}

/// Brings the endpoint slices of a namespace's services up to date.
pub(super) fn slices(hand: &mut Hand<'_>, namespace: &str) {
    let present = hand.list("discovery.k8s.io", "endpointslices", namespace);
    let pods = hand.list("", "pods", namespace);
    for service in hand.list("", "services", namespace) {
        let selector = &service.body()["spec"]["selector"];
        let Some(selector) = selector.as_object().filter(|selector| !selector.is_empty()) else { continue };
        if service.is_deleting() {
            continue;
        }
        let selects = |pod: &&Arc<Stored>| {
            let labels = &pod.metadata()["labels"];
            selector.iter().all(|(label, value)| labels.get(label) == Some(value))
                && pod.body()["status"]["podIP"].is_string()
                && !template::has_ended(pod)
        };
        let selected: Vec<&Arc<Stored>> = pods.iter().filter(selects).collect();
        let endpoints: Vec<Value> = selected.iter().map(|pod| endpoint(pod)).collect();
        let ports = ports(&service, selected.first().map(|pod| pod.body()));
        let slice =
            present.iter().find(|slice| slice.metadata()["labels"][SERVICE] == service.key.name.as_str());
        let Some(slice) = slice else {
            let body = slice_of(&service, &endpoints, &ports);
            hand.create("discovery.k8s.io", "endpointslices", namespace, body);
            continue;
        };
        if slice.body()["endpoints"] != json!(endpoints) || slice.body()["ports"] != ports {
            hand.merge(&slice.key, &json!({ "endpoints": endpoints, "ports": ports }));
        }
    }
}

fn slice_of(service: &Stored, endpoints: &[Value], ports: &Value) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "generateName": format!("{}-", service.key.name),
            "labels": {
                SERVICE: service.key.name.as_str(),
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
            "ownerReferences": reference(service),
        },
        "endpoints": endpoints, "ports": ports,
    })
}

fn endpoint(pod: &Stored) -> Value {
    let ready = template::is_ready(pod) && !pod.is_deleting();
    json!({
        "addresses": [pod.body()["status"]["podIP"]],
        "conditions": { "ready": ready, "serving": template::is_ready(pod), "terminating": pod.is_deleting() },
        "nodeName": pod.body()["spec"]["nodeName"],
        "targetRef": {
            "kind": "Pod", "name": pod.key.name.as_str(), "namespace": pod.key.namespace.as_str(),
            "uid": pod.uid.to_string(),
        },
    })
}

/// The ports at which the pods serve: a name of a port is looked up in a pod.
fn ports(service: &Stored, pod: Option<&Value>) -> Value {
    let ports = service.body()["spec"]["ports"].as_array().into_iter().flatten();
    ports
        .map(|port| {
            let target = &port["targetPort"];
            let number = match target.as_str() {
                Some(name) => named_port(pod, name),
                None if target.is_null() => port["port"].clone(),
                None => target.clone(),
            };
            json!({
                "name": port["name"].as_str().unwrap_or_default(), "port": number,
                "protocol": port["protocol"].as_str().unwrap_or("TCP"),
            })
        })
        .collect()
}

fn named_port(pod: Option<&Value>, name: &str) -> Value {
    let containers = pod.and_then(|pod| pod["spec"]["containers"].as_array()).into_iter().flatten();
    let mut ports = containers.flat_map(|container| container["ports"].as_array().into_iter().flatten());
    ports.find(|port| port["name"] == name).map_or(Value::Null, |port| port["containerPort"].clone())
}
