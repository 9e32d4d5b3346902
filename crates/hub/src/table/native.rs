//! The cells of kinds that a server knows by itself, where it computes what a path cannot say.
//!
//! Which columns there are, and what they tell, is recorded from the real servers (`data/columns.json`); what stands in
//! them is computed here as there, by the heading.

mod network;
mod node;
mod pod;
mod policy;
mod storage;
mod text;
mod workload;

use mailboat_object::KindId;
use serde_json::Value;

use super::age;
pub(super) use pod::conditions as end_of_pod;
use text::{list, since, text};

/// How a cell is made from an object, now.
pub(super) type Cell = fn(&Value, u64) -> Value;

/// The cell under a heading of a kind's tables.
pub(super) fn cell(kind: &KindId, heading: &str) -> Option<Cell> {
    let own = match (kind.group(), kind.resource()) {
        ("", "pods") => pod::cell(heading),
        ("", "events") => event(heading),
        ("", "nodes") => node::cell(heading),
        ("", "services" | "endpoints")
        | (
            "networking.k8s.io",
            "ingresses" | "ingressclasses" | "networkpolicies" | "ipaddresses" | "servicecidrs",
        )
        | ("discovery.k8s.io", "endpointslices") => network::cell(kind.resource(), heading),
        ("", "persistentvolumes" | "persistentvolumeclaims") | ("storage.k8s.io", _) => {
            storage::cell(kind.resource(), heading)
        }
        ("", "replicationcontrollers" | "podtemplates") | ("apps" | "batch" | "autoscaling", _) => {
            workload::cell(kind.resource(), heading)
        }
        ("", resource @ ("configmaps" | "secrets" | "serviceaccounts" | "namespaces" | "resourcequotas")) => {
            core(resource, heading)
        }
        (_, resource) => policy::cell(resource, heading),
    };
    own.or_else(|| anywhere(heading))
}

fn anywhere(heading: &str) -> Option<Cell> {
    Some(match heading {
        "Name" => |object, _| text(&object["metadata"]["name"]),
        "Age" => |object, now| since(&object["metadata"]["creationTimestamp"], now),
        "Created At" => |object, _| object["metadata"]["creationTimestamp"].clone(),
        _ => return None,
    })
}

fn core(resource: &str, heading: &str) -> Option<Cell> {
    Some(match (resource, heading) {
        ("configmaps", "Data") => |map, _| (text::size(&map["data"]) + text::size(&map["binaryData"])).into(),
        ("secrets", "Type") => |secret, _| text(&secret["type"]),
        ("secrets", "Data") => |secret, _| text::size(&secret["data"]).into(),
        ("serviceaccounts", "Secrets") => |account, _| list(&account["secrets"]).len().into(),
        ("namespaces", "Status") => |namespace, _| text(&namespace["status"]["phase"]),
        ("resourcequotas", "Request") => |quota, _| quotas(quota, false),
        ("resourcequotas", "Limit") => |quota, _| quotas(quota, true),
        _ => return None,
    })
}

/// What of a quota's limits, or of all else that it bounds, is used.
fn quotas(quota: &Value, limits: bool) -> Value {
    let status = &quota["status"];
    let hard = status["hard"].as_object().into_iter().flatten();
    let these = hard.filter(|(name, _)| name.starts_with("limits.") == limits);
    let told = these.map(|(name, hard)| {
        let used = status["used"][name].as_str().unwrap_or("0");
        format!("{name}: {used}/{}", hard.as_str().unwrap_or("0"))
    });
    told.collect::<Vec<_>>().join(", ").into()
}

fn event(heading: &str) -> Option<Cell> {
    Some(match heading {
        "Last Seen" => |event, now| {
            let times = [&event["series"]["lastObservedTime"], &event["lastTimestamp"]];
            let last = times.into_iter().find(|time| time.is_string());
            last.map_or_else(|| first_seen(event, now), |time| since(time, now))
        },
        "Type" => |event, _| text(&event["type"]),
        "Reason" => |event, _| text(&event["reason"]),
        "Object" => |event, _| {
            let object = &event["involvedObject"];
            let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
            match object["name"].as_str().filter(|name| !name.is_empty()) {
                Some(name) => format!("{kind}/{name}").into(),
                None => kind.into(),
            }
        },
        "Subobject" => |event, _| text(&event["involvedObject"]["fieldPath"]),
        "Source" => |event, _| {
            let first = |here: &Value, there: &Value| {
                let texts = [here, there].into_iter().filter_map(Value::as_str);
                texts.filter(|text| !text.is_empty()).map(str::to_owned).next()
            };
            let component = first(&event["source"]["component"], &event["reportingComponent"]);
            let component = component.unwrap_or_default();
            match first(&event["source"]["host"], &event["reportingInstance"]) {
                Some(instance) => format!("{component}, {instance}").into(),
                None => component.into(),
            }
        },
        "Message" => |event, _| event["message"].as_str().unwrap_or_default().trim().into(),
        "First Seen" => first_seen,
        "Count" => |event, _| match event["series"]["count"].as_i64() {
            Some(count) => count.into(),
            // What happened once is not counted in the newer way.
            None => event["count"].as_i64().unwrap_or(0).max(1).into(),
        },
        _ => return None,
    })
}

fn first_seen(event: &Value, now: u64) -> Value {
    let times = [&event["firstTimestamp"], &event["eventTime"]];
    since(times.into_iter().find(|time| time.is_string()).unwrap_or(&Value::Null), now)
}

#[cfg(test)]
mod tests {
    use mailboat_machinery::Flavor;

    use super::*;

    #[test]
    fn every_column_of_the_real_servers_has_its_cells() {
        for flavor in [Flavor::Kubernetes, Flavor::Kcp] {
            for kind in crate::catalog::kinds(flavor).unwrap() {
                let kept = kind.kept_as.as_ref().unwrap_or(&kind.id);
                let columns = &kind.versions[0].columns;
                assert!(!columns.is_empty(), "{} has no columns", kind.id);
                for column in columns.iter() {
                    assert!(cell(kept, &column.name).is_some(), "{}: {}", kind.id, column.name);
                    assert!(!column.name.is_empty() && !column.value_type.is_empty(), "{}", kind.id);
                }
            }
        }
    }

    #[test]
    fn cells_of_an_object_with_nothing_in_it_are_there() {
        let empty = serde_json::json!({ "metadata": { "name": "x" } });
        for kind in crate::catalog::kinds(Flavor::Kubernetes).unwrap() {
            let kept = kind.kept_as.as_ref().unwrap_or(&kind.id);
            for column in kind.versions[0].columns.iter().filter(|column| column.name != "Created At") {
                let shown = cell(kept, &column.name).unwrap()(&empty, 0);
                assert!(!shown.is_null() && !shown.is_object(), "{}: {} is {shown}", kind.id, column.name);
            }
        }
    }
}
