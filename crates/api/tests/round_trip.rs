//! What users and other systems write is read into types and written again without loss.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use mailboat_api::{edge, examples, kcp, scheduling, syncagent, workload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("the fixture is YAML")
}

fn round_trip<T: DeserializeOwned + Serialize>(object: &Value) -> Value {
    let typed: T =
        serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error} in {object:#}"));
    serde_json::to_value(typed).expect("types are JSON")
}

fn through_its_type(object: &Value) -> Value {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    match (api_version.split('/').next().unwrap_or_default(), kind) {
        ("edge.kubestellar.io", "EdgePlacement") => round_trip::<edge::EdgePlacement>(object),
        ("edge.kubestellar.io", "SinglePlacementSlice") => round_trip::<edge::SinglePlacementSlice>(object),
        ("edge.kubestellar.io", "Customizer") => round_trip::<edge::Customizer>(object),
        ("edge.kubestellar.io", "SyncerConfig") => round_trip::<edge::SyncerConfig>(object),
        ("edge.kubestellar.io", "EdgeSyncConfig") => round_trip::<edge::EdgeSyncConfig>(object),
        ("edge.kubestellar.io", "SyncTarget") => round_trip::<edge::SyncTarget>(object),
        ("edge.kubestellar.io", "Location") => round_trip::<edge::Location>(object),
        ("edge.kubestellar.io", "Summarizer") => round_trip::<edge::Summarizer>(object),
        ("edge.kubestellar.io", "StatusSummary") => round_trip::<edge::StatusSummary>(object),
        ("workload.kcp.io", "SyncTarget") => round_trip::<workload::SyncTarget>(object),
        ("scheduling.kcp.io", "Location") => round_trip::<scheduling::Location>(object),
        ("syncagent.kcp.io", "PublishedResource") => round_trip::<syncagent::PublishedResource>(object),
        other => panic!("no type for {other:?}"),
    }
}

/// What a server adds to an object before anybody reads it.
fn with_server_defaults(object: &Value) -> Value {
    let mut object = object.clone();
    if object["kind"] == "SyncTarget" {
        for (field, default) in [
            ("unschedulable", Value::from(false)),
            ("supportedAPIExports", serde_json::json!([{ "export": "kubernetes" }])),
        ] {
            if object["spec"].get(field).is_none() {
                object["spec"][field] = default;
            }
        }
    }
    object
}

#[test]
fn objects_of_users_and_tools_are_kept_whole() {
    let texts = [include_str!("fixtures/kubestellar.yaml"), include_str!("fixtures/workload.yaml")];
    let objects: Vec<_> = texts.into_iter().flat_map(documents).chain(examples::valid()).collect();
    assert!(objects.len() > 20, "only {} objects", objects.len());
    for object in &objects {
        let wanted = with_server_defaults(object);
        assert_eq!(through_its_type(&wanted), wanted, "{object:#}");
    }
}

#[test]
fn the_fields_read_from_kcp_are_found_and_others_ignored() {
    let objects = documents(include_str!("fixtures/kcp.yaml"));
    let binding: kcp::ApiBinding = serde_json::from_value(objects[0].clone()).expect("a v1alpha2 binding");
    let bound = &binding.status.bound_resources[0];
    assert_eq!((bound.resource.as_str(), bound.schema.uid.as_str()), ("syncerconfigs", "6f6e3a9f"));
    assert_eq!(bound.schema.identity_hash, "abc");
    assert_eq!(binding.status.applied_permission_claims[0].resource, "configmaps");
    assert_eq!(binding.spec.permission_claims[0].selector.as_ref().and_then(|s| s.match_all), Some(true));

    let old: kcp::ApiBinding = serde_json::from_value(objects[1].clone()).expect("a v1alpha1 binding");
    assert_eq!(old.spec.permission_claims[0].all, Some(true));
    assert_eq!(old.spec.permission_claims[0].state, "Rejected");

    let slice: kcp::ApiExportEndpointSlice = serde_json::from_value(objects[2].clone()).expect("a slice");
    assert!(slice.status.endpoints[0].url.ends_with("/edge.kubestellar.io"), "{slice:?}");
    let workspace: kcp::Workspace = serde_json::from_value(objects[3].clone()).expect("a workspace");
    assert_eq!(
        (workspace.spec.cluster.as_str(), workspace.status.phase.as_str()),
        ("sujxx7bkio7qdcbp", "Ready")
    );
}
