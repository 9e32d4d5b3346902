//! SyncTargets and Locations of both groups.

use serde_json::{Value, json};

use super::InvalidExample;

const EDGE: &str = "edge.kubestellar.io/v2alpha1";
const WORKLOAD: &str = "workload.kcp.io/v1alpha1";
const SCHEDULING: &str = "scheduling.kcp.io/v1alpha1";

pub(super) fn valid() -> Vec<Value> {
    vec![
        object(
            EDGE,
            "SyncTarget",
            "guilder",
            json!({ "unschedulable": true, "evictAfter": "2030-01-31T18:00:00Z",
                    "supportedAPIExports": [{ "path": "root:espw", "export": "kubernetes" }],
                    "cells": { "zone": "a" } }),
        ),
        without_spec(object(EDGE, "SyncTarget", "florin", json!(null))),
        object(
            EDGE,
            "Location",
            "guilder",
            json!({
                "resource": { "group": "edge.kubestellar.io", "version": "v2alpha1", "resource": "synctargets" },
                "description": "a shop",
                "availableSelectorLabels": [{ "key": "env", "values": ["prod", "test"], "description": "stage" }],
                "instanceSelector": { "matchLabels": { "id": "guilder" } },
            }),
        ),
        object(
            WORKLOAD,
            "SyncTarget",
            "my-cluster",
            json!({
                "workloadCluster": { "name": "production-us-west-2", "endpoint": "https://cluster.example.com" },
                "supportedAPIExports": [{ "export": "kubernetes", "resource": "apps/v1/deployments" },
                                        { "export": "kubernetes", "resource": "v1/services" }],
                "capabilities": [{ "type": "compute", "resource": "memory", "capacity": "4000Gi" }],
                "evictAfter": "5m",
            }),
        ),
        object(
            WORKLOAD,
            "SyncTarget",
            "us-west1",
            json!({ "unschedulable": false, "evictAfter": "2030-01-31T18:00:00Z",
                    "supportedAPIExports": [{ "export": "kubernetes" }], "cells": { "zone": "a" } }),
        ),
        object(
            SCHEDULING,
            "Location",
            "us-west1",
            json!({ "resource": { "group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets" },
                    "instanceSelector": { "matchLabels": { "region": "us-west1" } } }),
        ),
    ]
}

pub(super) fn invalid() -> Vec<InvalidExample> {
    let case = |object: Value, field: &'static str| InvalidExample { object, field };
    let long_name = "a".repeat(235);
    vec![
        case(object(EDGE, "SyncTarget", "guilder", json!({ "evictAfter": "soon" })), "spec.evictAfter"),
        case(
            object(EDGE, "SyncTarget", "guilder", json!({ "supportedAPIExports": [{ "path": "root" }] })),
            "spec.supportedAPIExports[0].export",
        ),
        case(object(EDGE, "SyncTarget", &long_name, json!({})), "metadata.name"),
        case(
            object(
                EDGE,
                "Location",
                "guilder",
                json!({ "resource": { "version": "v2alpha1", "resource": "nodes" } }),
            ),
            "spec.resource.resource",
        ),
        case(object(EDGE, "Location", "guilder", json!({ "instanceSelector": {} })), "spec.resource"),
        case(
            object(
                EDGE,
                "Location",
                "guilder",
                json!({ "resource": { "version": "v2alpha1", "resource": "synctargets" },
                        "availableSelectorLabels": [{ "key": "env", "values": [] }] }),
            ),
            "spec.availableSelectorLabels[0].values",
        ),
        case(object(WORKLOAD, "SyncTarget", "west", json!({ "evictAfter": "5 minutes" })), "spec.evictAfter"),
        case(
            object(WORKLOAD, "SyncTarget", "west", json!({ "workloadCluster": { "endpoint": "https://x" } })),
            "spec.workloadCluster.name",
        ),
        case(object(WORKLOAD, "SyncTarget", &long_name, json!({})), "metadata.name"),
        case(
            object(
                SCHEDULING,
                "Location",
                "west",
                json!({ "resource": { "group": "edge.kubestellar.io", "version": "v1alpha1",
                                      "resource": "synctargets" } }),
            ),
            "spec.resource.group",
        ),
        case(
            object(
                SCHEDULING,
                "Location",
                "two.labels",
                json!({ "resource": { "version": "v1alpha1", "resource": "synctargets" } }),
            ),
            "metadata.name",
        ),
    ]
}

fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
    object["spec"] = spec;
    object
}

fn without_spec(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.remove("spec");
    }
    object
}
