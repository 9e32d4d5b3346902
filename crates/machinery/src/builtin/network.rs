//! Services, APIServices, Ingresses and NetworkPolicies.

use serde_json::{Value, json};

use super::default;
use crate::status::FieldError;

/// Where the service behind an APIService is reached.
pub(super) fn default_api_service(service: &mut Value) {
    if service["spec"]["service"].is_object() {
        default(&mut service["spec"]["service"], "port", 443);
    }
}

pub(super) fn default_service(service: &mut Value) {
    default(service, "spec", json!({}));
    default(service, "status", json!({ "loadBalancer": {} }));
    let spec = &mut service["spec"];
    default(spec, "sessionAffinity", "None");
    if spec["sessionAffinity"] == "ClientIP" {
        default(spec, "sessionAffinityConfig", json!({ "clientIP": { "timeoutSeconds": 10800 } }));
    }
    default(spec, "type", "ClusterIP");
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind != "ExternalName" {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default(port, "protocol", "TCP");
        let number = port["port"].clone();
        default(port, "targetPort", number);
    }
}

/// What the allocator of addresses says of families. It never changes.
pub(super) fn prepare_service(service: &mut Value, old: Option<&Value>) {
    let spec = &mut service["spec"];
    if let Some(old) = old {
        drop_of_other_types(spec, &old["spec"]);
        for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = old["spec"].get(member) {
                default(spec, member, value.clone());
            }
        }
        return;
    }
    if spec["type"] == "ExternalName" {
        return;
    }
    let headless = spec.get("clusterIP").is_some_and(|address| *address == "None");
    if headless {
        default(spec, "clusterIPs", json!(["None"]));
    }
    // Without a selector somebody else says which addresses there are, so they may be of any family.
    let (families, policy) = match spec.get("selector") {
        None if headless => (json!(["IPv4", "IPv6"]), "RequireDualStack"),
        _ => (json!(["IPv4"]), "SingleStack"),
    };
    default(spec, "ipFamilies", families);
    default(spec, "ipFamilyPolicy", policy);
}

/// What only some types have goes with the type, unless somebody asks for it anew.
fn drop_of_other_types(spec: &mut Value, old: &Value) {
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    let gone = [
        ("internalTrafficPolicy", kind == "ExternalName"),
        ("externalTrafficPolicy", !matches!(kind.as_str(), "NodePort" | "LoadBalancer")),
        ("allocateLoadBalancerNodePorts", kind != "LoadBalancer"),
    ];
    let Some(spec) = spec.as_object_mut() else { return };
    for (member, gone) in gone {
        if gone && spec.get(member).is_some_and(|value| *value == old[member]) {
            spec.remove(member);
        }
    }
}

pub(super) fn check_service(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    const PORTS: std::ops::RangeInclusive<i64> = 1..=65535;
    let spec = &new["spec"];
    let mut errors = Vec::new();
    let headless = spec["clusterIPs"] == json!(["None"]);
    if spec["ports"].is_null() && !headless && spec["type"] != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, port) in ports.iter().enumerate() {
        if port["name"].is_null() && ports.len() > 1 {
            errors.push(FieldError::required(&format!("spec.ports[{index}].name"), ""));
        }
        for member in ["port", "targetPort"] {
            if port[member].as_i64().is_some_and(|number| !PORTS.contains(&number)) {
                let field = format!("spec.ports[{index}].{member}");
                let what = "must be between 1 and 65535, inclusive";
                errors.push(FieldError::invalid(&field, &port[member], what));
            }
        }
    }
    if spec["clusterIPs"].is_null() && !spec["clusterIP"].is_null() {
        errors.push(FieldError::required("spec.clusterIPs", ""));
    }
    errors
}

/// How a path is compared has to be said.
pub(super) fn check_ingress(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let elements = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut errors = Vec::new();
    for (rule, value) in elements(&new["spec"]["rules"]).iter().enumerate() {
        for (path, value) in elements(&value["http"]["paths"]).iter().enumerate() {
            if value["pathType"].is_null() {
                let field = format!("spec.rules[{rule}].http.paths[{path}].pathType");
                errors.push(FieldError::required(&field, "pathType must be specified"));
            }
        }
    }
    errors
}

pub(super) fn default_network_policy(policy: &mut Value) {
    default(policy, "spec", json!({}));
    let spec = &mut policy["spec"];
    for list in ["ingress", "egress"] {
        for rule in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            for port in rule.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                default(port, "protocol", "TCP");
            }
        }
    }
    let kinds = if spec.get("egress").is_some() { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    default(spec, "policyTypes", kinds);
}
