//! The cells of Nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Cell;
use super::text::{list, or, or_none, text};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

pub(super) fn cell(heading: &str) -> Option<Cell> {
    Some(match heading {
        "Status" => |node, _| {
            let ready =
                list(&node["status"]["conditions"]).iter().rfind(|condition| condition["type"] == "Ready");
            let state = match ready {
                Some(ready) if ready["status"] == "True" => "Ready",
                Some(_) => "NotReady",
                None => "Unknown",
            };
            let held = if node["spec"]["unschedulable"] == true { ",SchedulingDisabled" } else { "" };
            format!("{state}{held}").into()
        },
        "Roles" => |node, _| {
            let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
            let roles = labels.filter_map(|(label, value)| match label.strip_prefix(ROLE_PREFIX) {
                None if label == ROLE => value.as_str(),
                role => role,
            });
            let roles: BTreeSet<&str> = roles.filter(|role| !role.is_empty()).collect();
            or_none(&roles.into_iter().collect::<Vec<_>>().join(",").into())
        },
        "Version" => |node, _| text(&node["status"]["nodeInfo"]["kubeletVersion"]),
        "Internal-IP" => |node, _| address(node, "InternalIP"),
        "External-IP" => |node, _| address(node, "ExternalIP"),
        "OS-Image" => |node, _| or(&node["status"]["nodeInfo"]["osImage"], "<unknown>"),
        "Kernel-Version" => |node, _| {
            let info = &node["status"]["nodeInfo"];
            let version = or(&info["kernelVersion"], "<unknown>");
            match info["architecture"].as_str().filter(|architecture| !architecture.is_empty()) {
                Some(made_for) => format!("{} ({made_for})", version.as_str().unwrap_or_default()).into(),
                None => version,
            }
        },
        "Container-Runtime" => {
            |node, _| or(&node["status"]["nodeInfo"]["containerRuntimeVersion"], "<unknown>")
        }
        _ => return None,
    })
}

fn address(node: &Value, kind: &str) -> Value {
    let found = list(&node["status"]["addresses"]).iter().find(|address| address["type"] == kind);
    or_none(found.map_or(&Value::Null, |found| &found["address"]))
}
