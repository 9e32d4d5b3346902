//! How the parts of a control plane are, as an old kind told it that some still ask for.

use http::StatusCode;
use mailboat_machinery::Status;
use mailboat_object::KindId;
use serde_json::{Value, json};

use crate::answer::{self, Answer};
use crate::media::{Accepted, Shape};
use crate::path::ObjectPath;
use crate::table;

const NONE_BESIDE: &str = "no such program stands beside a hub: it does itself what it does of its work";
/// The parts by name, and what is wrong with each.
const COMPONENTS: [(&str, Option<&str>); 3] =
    [("controller-manager", Some(NONE_BESIDE)), ("scheduler", Some(NONE_BESIDE)), ("etcd-0", None)];
/// What a table tells of each, and what that is.
const COLUMNS: [(&str, &str); 3] = [
    ("Status", "Status of the component conditions"),
    ("Message", "Message of the component conditions"),
    ("Error", "Error of the component conditions"),
];

/// Whether a path asks for them.
pub(super) fn is_asked(path: &ObjectPath) -> bool {
    (path.group.as_str(), path.version.as_str(), path.resource.as_str()) == ("", "v1", "componentstatuses")
        && path.namespace.is_empty()
        && path.subresource.is_empty()
}

/// Tells how one is, or all.
pub(super) fn answer(path: &ObjectPath, verb: &str, accepted: Accepted) -> Result<Answer, Status> {
    if verb == "watch" {
        return Err(Status::method_not_allowed(&KindId::new("", "componentstatuses"), "watch"));
    }
    let named = |name: &str| verb == "list" || *name == *path.name;
    let found: Vec<_> = COMPONENTS.iter().filter(|(name, _)| named(name)).collect();
    if found.is_empty() {
        return Err(Status::not_found(&KindId::new("", "componentstatus"), &path.name));
    }
    let told: Value = match accepted.shape {
        Shape::Table => table(&found),
        _ if verb == "get" => {
            let mut one = component(found[0]);
            one["kind"] = "ComponentStatus".into();
            one["apiVersion"] = "v1".into();
            one
        }
        _ => {
            let items: Vec<Value> = found.into_iter().map(component).collect();
            json!({ "kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items })
        }
    };
    Ok(answer::object(StatusCode::OK, &told, accepted.form))
}

fn component((name, wrong): &(&str, Option<&str>)) -> Value {
    let status = if wrong.is_none() { "True" } else { "False" };
    json!({
        "metadata": { "name": name },
        "conditions": [{ "type": "Healthy", "status": status, "message": wrong.unwrap_or("ok") }],
    })
}

fn table(found: &[&(&str, Option<&str>)]) -> Value {
    let column = |(name, description): (&str, &str)| json!({ "name": name, "type": "string", "format": "", "description": description, "priority": 0 });
    let columns: Vec<Value> =
        std::iter::once(table::name_column()).chain(COLUMNS.into_iter().map(column)).collect();
    let row = |(name, wrong): &&(&str, Option<&str>)| {
        let status = if wrong.is_none() { "Healthy" } else { "Unhealthy" };
        json!({
            "cells": [name, status, wrong.unwrap_or("ok"), ""],
            "object": {
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": { "name": name },
            },
        })
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": columns,
        "rows": found.iter().map(row).collect::<Vec<_>>(),
    })
}
