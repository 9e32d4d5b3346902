//! Placements, mailboxes' configuration and summaries.

use serde_json::{Value, json};

use super::InvalidExample;

pub(super) fn valid() -> Vec<Value> {
    vec![
        placement(json!({
            "locationSelectors": [{ "matchLabels": { "env": "prod" } }],
            "downsync": [
                { "apiGroup": "apps", "resources": ["deployments"], "namespaces": ["shop"],
                  "labelSelectors": [{ "matchLabels": { "part": "till" } }] },
                { "apiGroup": "", "resources": ["namespaces"], "objectNames": ["shop"] },
                { "namespaceSelectors": [{ "matchExpressions": [{ "key": "team", "operator": "Exists" }] }] },
            ],
            "wantSingletonReportedState": false,
            "upsync": [{ "apiGroup": "wgpolicyk8s.io", "resources": ["policyreports"],
                         "namespaces": ["*"], "names": ["*"] }],
        })),
        slice(
            json!([{ "cluster": "niqdko2g2pwoadfb", "locationName": "guilder", "syncTargetName": "guilder",
                       "syncTargetUID": "f99e773f-3db2-439e-8054-827c4ac55368" }]),
        ),
        customizer(json!([{ "path": "$.spec.template.spec.containers.0.env.0.value",
                            "value": "\"env is %(env)\"" }])),
        syncer_config(json!({
            "namespaceScope": { "namespaces": ["shop"],
                                "resources": [{ "group": "", "resource": "configmaps", "apiVersion": "v1" }] },
            "namespacedObjects": [
                { "group": "apps", "resource": "deployments", "apiVersion": "v1",
                  "objectsByNamespace": [{ "namespace": "shop", "names": ["till"] }],
                  "annotationSelector": { "matchLabels": { "example.com/wave": "1" } } },
            ],
            "clusterScope": [{ "group": "", "resource": "namespaces", "apiVersion": "v1", "objects": ["shop"],
                               "deletePropagation": "Orphan", "returnStatus": false, "renature": true }],
            "upsync": [{ "apiGroup": "wgpolicyk8s.io", "resources": ["policyreports"], "namespaces": ["*"],
                         "names": ["*"], "labelSelector": { "matchLabels": { "keep": "yes" } },
                         "ownerSelector": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "till" } }],
        })),
        edge_sync_config(json!({
            "downSyncedResources": [{ "kind": "ConfigMap", "version": "v1", "namespace": "shop", "name": "*",
                                      "labelSelector": { "matchLabels": { "part": "till" } } }],
            "upSyncedResources": [{ "group": "wgpolicyk8s.io", "version": "v1alpha2", "kind": "PolicyReport",
                                    "namespace": "*", "name": "*" }],
            "conversions": [{
                "upstream": { "group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition",
                              "name": "policyreports.wgpolicyk8s.io.denatured" },
                "downstream": { "group": "apiextensions.k8s.io", "version": "v1",
                                "kind": "CustomResourceDefinition", "name": "policyreports.wgpolicyk8s.io" },
            }],
        })),
        summarizer(json!({
            "placementSelector": { "matchLabels": { "team": "shop" } },
            "subjects": [{ "apiGroup": "apps", "resources": ["deployments"] }],
            "groupers": [{
                "name": "by-country",
                "groupBy": [{ "name": "country", "def": "edge.labels['country']" }],
                "aggregators": [{ "name": "copies", "type": "COUNT" },
                                { "name": "ready", "type": "SUM", "subject": "status.readyReplicas" }],
            }],
            "stalenessThresholdSecs": 120,
            "broken": [{ "all": [{ "part": "has(status.readyReplicas)", "value": true, "negate": true },
                                 { "part": "object.metadata.labels.part", "value": "till" }] }],
            "brokenLimit": 10,
        })),
        summary(json!({ "placementName": "shop", "summarizerName": "by-country" })),
    ]
}

pub(super) fn invalid() -> Vec<InvalidExample> {
    let case = |object: Value, field: &'static str| InvalidExample { object, field };
    vec![
        case(placement(json!({ "downsync": [{}] })), "spec.downsync[0]"),
        case(
            placement(json!({ "downsync": [{ "resources": ["*"], "labelSelectors": [{}] }] })),
            "spec.downsync[0]",
        ),
        case(placement(json!({ "locationSelectors": "all" })), "spec.locationSelectors"),
        case(
            placement(json!({ "locationSelectors": [{ "matchExpressions": [{ "key": "env" }] }] })),
            "spec.locationSelectors[0].matchExpressions[0].operator",
        ),
        case(placement(json!({ "upsync": [{ "names": ["*"] }] })), "spec.upsync[0].resources"),
        case(
            slice(json!([{ "cluster": "c", "locationName": "l", "syncTargetName": "s" }])),
            "destinations[0].syncTargetUID",
        ),
        case(slice(json!(null)), "destinations"),
        case(customizer(json!([{ "path": "spec.replicas", "value": "1" }])), "replacements[0].path"),
        case(customizer(json!([{ "path": "$.spec.replicas" }])), "replacements[0].value"),
        case(
            customizer(json!([{ "path": "$.a", "value": "1" }, { "path": "$.a", "value": "2" }])),
            "replacements[1]",
        ),
        case(
            syncer_config(json!({ "clusterScope": [{ "group": "", "resource": "namespaces" }] })),
            "spec.clusterScope[0].apiVersion",
        ),
        case(
            syncer_config(
                json!({ "clusterScope": [{ "group": "", "resource": "namespaces", "apiVersion": "v1",
                                                     "deletePropagation": "Forget" }] }),
            ),
            "spec.clusterScope[0].deletePropagation",
        ),
        case(
            syncer_config(json!({ "namespacedObjects": [{ "group": "", "resource": "configmaps",
                "apiVersion": "v1", "objectsByNamespace": [{ "names": ["*"] }] }] })),
            "spec.namespacedObjects[0].objectsByNamespace[0].namespace",
        ),
        case(
            edge_sync_config(
                json!({ "downSyncedResources": [{ "kind": "ConfigMap", "returnStatus": "no" }] }),
            ),
            "spec.downSyncedResources[0].returnStatus",
        ),
        case(
            edge_sync_config(json!({ "conversions": [{ "upstream": { "kind": "Role" } }] })),
            "spec.conversions[0].downstream",
        ),
        case(
            summarizer(
                json!({ "groupers": [{ "name": "g", "aggregators": [{ "name": "a", "type": "SUM" }] }] }),
            ),
            "spec.groupers[0].aggregators[0].subject",
        ),
        case(
            summarizer(json!({ "groupers": [{ "name": "g", "aggregators": [
                { "name": "a", "type": "COUNT", "subject": "status.replicas" }] }] })),
            "spec.groupers[0].aggregators[0].subject",
        ),
        case(
            summarizer(json!({ "groupers": [{ "name": "g", "aggregators": [
                { "name": "a", "type": "MEDIAN", "subject": "status.replicas" }] }] })),
            "spec.groupers[0].aggregators[0].type",
        ),
        case(summary(json!({})), "spec.placementName"),
    ]
}

fn object(kind: &str, name: &str) -> Value {
    json!({ "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": kind, "metadata": { "name": name } })
}

fn with_spec(kind: &str, name: &str, spec: Value) -> Value {
    let mut object = object(kind, name);
    object["spec"] = spec;
    object
}

fn placement(spec: Value) -> Value {
    with_spec("EdgePlacement", "shop", spec)
}

fn slice(destinations: Value) -> Value {
    let mut object = object("SinglePlacementSlice", "shop");
    object["destinations"] = destinations;
    object
}

fn customizer(replacements: Value) -> Value {
    let mut object = object("Customizer", "env");
    object["metadata"]["namespace"] = json!("default");
    object["replacements"] = replacements;
    object
}

fn syncer_config(spec: Value) -> Value {
    with_spec("SyncerConfig", "the-one", spec)
}

fn edge_sync_config(spec: Value) -> Value {
    with_spec("EdgeSyncConfig", "guilder", spec)
}

fn summarizer(spec: Value) -> Value {
    with_spec("Summarizer", "by-country", spec)
}

fn summary(spec: Value) -> Value {
    with_spec("StatusSummary", "shop", spec)
}
