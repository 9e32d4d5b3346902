//! The cells of Services and of what leads to them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Cell;
use super::text::{either, first_three, list, or_none, or_unset, pairs, selector, text, texts};

pub(super) fn cell(resource: &str, heading: &str) -> Option<Cell> {
    Some(match (resource, heading) {
        ("services", "Type") => |service, _| text(&service["spec"]["type"]),
        ("services", "Cluster-IP") => |service, _| or_none(&service["spec"]["clusterIPs"][0]),
        ("services", "External-IP") => |service, _| external_address(service).into(),
        ("services", "Port(s)") => |service, _| {
            let ports: Vec<String> = list(&service["spec"]["ports"]).iter().map(service_port).collect();
            or_none(&ports.join(",").into())
        },
        ("services", "Selector") => |service, _| pairs(&service["spec"]["selector"]).into(),
        ("endpoints", "Endpoints") => |endpoints, _| of_endpoints(endpoints),
        ("ingresses", "Class") => |ingress, _| or_none(&ingress["spec"]["ingressClassName"]),
        ("ingresses", "Hosts") => |ingress, _| hosts(ingress).into(),
        ("ingresses", "Address") => |ingress, _| balanced(ingress).into(),
        ("ingresses", "Ports") => {
            |ingress, _| if list(&ingress["spec"]["tls"]).is_empty() { "80" } else { "80, 443" }.into()
        }
        ("ingressclasses", "Name") => |class, _| {
            let default = &class["metadata"]["annotations"]["ingressclass.kubernetes.io/is-default-class"];
            super::storage::named(class, default == "true")
        },
        ("ingressclasses", "Controller") => |class, _| text(&class["spec"]["controller"]),
        ("ingressclasses", "Parameters") => |class, _| match &class["spec"]["parameters"] {
            Value::Object(given) => {
                let told = |member: &str| given.get(member).and_then(Value::as_str).unwrap_or_default();
                let group = given.get("apiGroup").and_then(Value::as_str).map(|group| format!(".{group}"));
                format!("{}{}/{}", told("kind"), group.unwrap_or_default(), told("name")).into()
            }
            _ => "<none>".into(),
        },
        ("networkpolicies", "Pod-Selector") => |policy, _| selector(&policy["spec"]["podSelector"]).into(),
        ("ipaddresses", "ParentRef") => |address, _| parent(&address["spec"]["parentRef"]),
        ("servicecidrs", "CIDRs") => |range, _| texts(&range["spec"]["cidrs"]).into(),
        ("endpointslices", "AddressType") => |slice, _| text(&slice["addressType"]),
        ("endpointslices", "Ports") => |slice, _| {
            let told = |port: &Value| {
                either(&port["port"]).or_else(|| either(&port["name"])).unwrap_or_else(|| "*".to_owned())
            };
            let ports: Vec<String> = list(&slice["ports"]).iter().map(told).collect();
            or_unset(&first_three(&ports).into())
        },
        ("endpointslices", "Endpoints") => |slice, _| {
            let endpoints =
                list(&slice["endpoints"]).iter().flat_map(|endpoint| list(&endpoint["addresses"]));
            let addresses: Vec<String> = endpoints.filter_map(Value::as_str).map(str::to_owned).collect();
            or_unset(&first_three(&addresses).into())
        },
        _ => return None,
    })
}

fn service_port(port: &Value) -> String {
    let protocol = port["protocol"].as_str().unwrap_or_default();
    match port["nodePort"].as_u64().filter(|port| *port > 0) {
        Some(node_port) => format!("{}:{node_port}/{protocol}", port["port"]),
        None => format!("{}/{protocol}", port["port"]),
    }
}

/// The addresses that a load balancer has.
fn balanced(object: &Value) -> String {
    let found = list(&object["status"]["loadBalancer"]["ingress"]).iter();
    let told = |address: &'_ Value, member: &str| {
        address[member].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let found = found.filter_map(|address| told(address, "ip").or_else(|| told(address, "hostname")));
    let found: BTreeSet<String> = found.collect();
    found.into_iter().collect::<Vec<_>>().join(",")
}

fn external_address(service: &Value) -> String {
    let spec = &service["spec"];
    let given = texts(&spec["externalIPs"]);
    let all = match spec["type"].as_str().unwrap_or_default() {
        "ClusterIP" | "NodePort" => given,
        "LoadBalancer" => {
            let both: Vec<String> =
                [balanced(service), given].into_iter().filter(|part| !part.is_empty()).collect();
            if both.is_empty() { "<pending>".to_owned() } else { both.join(",") }
        }
        "ExternalName" => return spec["externalName"].as_str().unwrap_or_default().to_owned(),
        _ => "<unknown>".to_owned(),
    };
    if all.is_empty() { "<none>".to_owned() } else { all }
}

fn of_endpoints(endpoints: &Value) -> Value {
    let subsets = list(&endpoints["subsets"]);
    if subsets.is_empty() {
        return "<none>".into();
    }
    let mut all = Vec::new();
    for subset in subsets {
        let ips = || list(&subset["addresses"]).iter().filter_map(|address| address["ip"].as_str());
        let ports = list(&subset["ports"]);
        if ports.is_empty() {
            all.extend(ips().map(str::to_owned));
        }
        for port in ports {
            let joined = |ip: &str| {
                if ip.contains(':') {
                    format!("[{ip}]:{}", port["port"])
                } else {
                    format!("{ip}:{}", port["port"])
                }
            };
            all.extend(ips().map(joined));
        }
    }
    first_three(&all).into()
}

/// The hosts among the first three rules, as kube-apiserver shows them.
fn hosts(ingress: &Value) -> String {
    const SHOWN: usize = 3;
    let rules = list(&ingress["spec"]["rules"]);
    let (mut shown, mut more) = (Vec::new(), false);
    for rule in rules {
        more |= shown.len() == SHOWN;
        if let Some(host) = rule["host"].as_str().filter(|host| !host.is_empty() && !more) {
            shown.push(host);
        }
    }
    let hosts = shown.join(",");
    match (shown.is_empty(), more) {
        (true, _) => "*".to_owned(),
        (_, true) => format!("{hosts} + {} more...", rules.len() - SHOWN),
        (_, false) => hosts,
    }
}

fn parent(of: &Value) -> Value {
    let told = |member: &str| of[member].as_str().unwrap_or_default();
    if !of.is_object() {
        return "<none>".into();
    }
    let group = if told("group").is_empty() { String::new() } else { format!(".{}", told("group")) };
    let namespace =
        if told("namespace").is_empty() { String::new() } else { format!("/{}", told("namespace")) };
    format!("{}{namespace}/{}", format!("{}{group}", told("resource")).to_lowercase(), told("name")).into()
}
