use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key, Uid};

use super::*;
use crate::catalog::{Catalog, add_group_version};

fn served(resource: &str) -> Served {
    let mut catalog = Catalog::default();
    add_group_version(
            &mut catalog,
            "apps",
            "v1",
            br#"{"kind":"APIResourceList","resources":[{"name":"deployments","kind":"Deployment","namespaced":true},
                {"name":"deployments/status","kind":"Deployment","namespaced":true},{"name":"deployments/scale","kind":"Scale","namespaced":true}]}"#,
        )
        .unwrap();
    add_group_version(
            &mut catalog,
            "",
            "v1",
            br#"{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true},
                {"name":"serviceaccounts","kind":"ServiceAccount","namespaced":true},
                {"name":"namespaces","kind":"Namespace","namespaced":false}]}"#,
        )
        .unwrap();
    catalog.iter().find(|served| served.resource() == resource).unwrap().clone()
}

fn call(resource: &str, namespace: &str, name: &str, verb: Verb) -> (Call, Served) {
    let served = served(resource);
    let key = Key {
        cluster: ClusterId::new("guilder"),
        kind: served.kind.clone(),
        namespace: Name::new(namespace),
        name: Name::new(name),
    };
    (Call { key, verb, part: Part::Whole, dry_run: false }, served)
}

fn body() -> Arc<[u8]> {
    Arc::from(&b"{}"[..])
}

fn manager() -> Name {
    Name::new("mailboat-syncer")
}

fn line(call: &Call, served: &Served) -> String {
    let plain = of_call(call, served).unwrap_or_else(|fault| panic!("{fault}"));
    format!("{} {} {}", plain.method, plain.target, plain.content_type.unwrap_or("-"))
}

#[test]
fn every_verb_becomes_the_request_that_api_servers_expect() {
    let verbs = [
        (Verb::Get, "GET /apis/apps/v1/namespaces/till/deployments/pos -"),
        (
            Verb::Create { body: body(), manager: manager() },
            "POST /apis/apps/v1/namespaces/till/deployments?fieldManager=mailboat-syncer application/json",
        ),
        (
            Verb::Replace { body: body(), manager: manager() },
            "PUT /apis/apps/v1/namespaces/till/deployments/pos?fieldManager=mailboat-syncer application/json",
        ),
        (
            Verb::Apply { body: body(), manager: manager(), force: true },
            "PATCH /apis/apps/v1/namespaces/till/deployments/pos?fieldManager=mailboat-syncer&force=true&fieldValidation=Ignore application/apply-patch+yaml",
        ),
        (
            Verb::Apply { body: body(), manager: manager(), force: false },
            "PATCH /apis/apps/v1/namespaces/till/deployments/pos?fieldManager=mailboat-syncer&force=false&fieldValidation=Ignore application/apply-patch+yaml",
        ),
        (
            Verb::Merge { body: body(), manager: manager() },
            "PATCH /apis/apps/v1/namespaces/till/deployments/pos?fieldManager=mailboat-syncer application/merge-patch+json",
        ),
        (
            Verb::Json { body: body(), manager: manager() },
            "PATCH /apis/apps/v1/namespaces/till/deployments/pos?fieldManager=mailboat-syncer application/json-patch+json",
        ),
    ];
    for (verb, expected) in verbs {
        let (call, served) = call("deployments", "till", "pos", verb);
        assert_eq!(line(&call, &served), expected);
    }
}

#[test]
fn a_delete_carries_what_was_seen_as_preconditions() {
    let uid = Uid::parse("f99e773f-3db2-439e-8054-827c4ac55368");
    let verb = Verb::Delete { uid, version: Some(Version(12)), propagation: Propagation::Foreground };
    let (mut call, served) = call("configmaps", "till", "menu", verb);
    call.dry_run = true;
    let plain = of_call(&call, &served).unwrap();
    assert_eq!(
        plain.target, "/api/v1/namespaces/till/configmaps/menu",
        "a dry run is asked for in the body alone"
    );
    let options: serde_json::Value = serde_json::from_slice(&plain.body).unwrap();
    assert_eq!(
        options,
        serde_json::json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground", "dryRun": ["All"],
            "preconditions": {"uid": "f99e773f-3db2-439e-8054-827c4ac55368", "resourceVersion": "12"}})
    );
}

#[test]
fn subresources_dry_runs_and_odd_names_go_into_the_target() {
    let (mut status, deployments) =
        call("deployments", "till", "pos", Verb::Merge { body: body(), manager: Name::EMPTY });
    status.part = Part::Status;
    assert_eq!(
        line(&status, &deployments),
        "PATCH /apis/apps/v1/namespaces/till/deployments/pos/status application/merge-patch+json"
    );
    status.part = Part::Scale;
    status.dry_run = true;
    assert_eq!(
        line(&status, &deployments),
        "PATCH /apis/apps/v1/namespaces/till/deployments/pos/scale?dryRun=All application/merge-patch+json"
    );
    let (odd, namespaces) = call("namespaces", "", "kyverno:admin/%2e é", Verb::Get);
    assert_eq!(line(&odd, &namespaces), "GET /api/v1/namespaces/kyverno:admin%2F%252e%20%C3%A9 -");
}

#[test]
fn a_token_is_created_below_its_service_account() {
    let create = Verb::Create { body: body(), manager: Name::EMPTY };
    let (mut token, accounts) = call("serviceaccounts", "default", "syncer", create);
    token.part = Part::Token;
    assert_eq!(
        line(&token, &accounts),
        "POST /api/v1/namespaces/default/serviceaccounts/syncer/token application/json"
    );
}

#[test]
fn a_body_is_shared_and_not_copied() {
    let bytes = body();
    let (call, served) =
        call("deployments", "till", "pos", Verb::Create { body: bytes.clone(), manager: manager() });
    let plain = of_call(&call, &served).unwrap();
    assert_eq!(plain.body.as_ptr(), bytes.as_ptr());
}

#[test]
fn a_request_that_must_never_be_made_is_refused_before_it_is_sent() {
    let part = |mut call: Call, part| {
        call.part = part;
        call
    };
    let (no_namespace, deployments) = call("deployments", "", "pos", Verb::Get);
    let (with_namespace, namespaces) = call("namespaces", "till", "till", Verb::Get);
    let (no_name, _) = call("deployments", "till", "", Verb::Get);
    let (create, _) = call("deployments", "till", "pos", Verb::Create { body: body(), manager: manager() });
    let (apply, _) =
        call("deployments", "till", "pos", Verb::Apply { body: body(), manager: Name::EMPTY, force: true });
    let (get, configmaps) = call("configmaps", "till", "menu", Verb::Get);
    let (read_token, accounts) = call("serviceaccounts", "till", "syncer", Verb::Get);
    let cases = [
        (part(read_token, Part::Token), &accounts, FaultKind::Bug),
        (part(get.clone(), Part::Token), &configmaps, FaultKind::Bug),
        (part(create.clone(), Part::Token), &deployments, FaultKind::Bug),
        (no_namespace, &deployments, FaultKind::Bug),
        (with_namespace, &namespaces, FaultKind::Bug),
        (no_name, &deployments, FaultKind::Bug),
        (part(create, Part::Status), &deployments, FaultKind::Bug),
        (apply, &deployments, FaultKind::Bug),
        (get.clone(), &deployments, FaultKind::Bug),
        (part(get, Part::Status), &configmaps, FaultKind::Invalid),
    ];
    for (call, served, expected) in cases {
        let kind = of_call(&call, served).map_err(|fault| fault.kind);
        assert_eq!(kind, Err(expected), "{call:?}");
    }
}

#[test]
fn pages_and_watches_ask_for_fresh_data_with_bookmarks() {
    let configmaps = served("configmaps");
    let mut read = Read::all(configmaps.kind.clone(), ReadMode::Page { limit: 500, continue_token: None });
    assert_eq!(of_read(&read, &configmaps).unwrap().target, "/api/v1/configmaps?limit=500");
    read.mode = ReadMode::Page { limit: 500, continue_token: Some("ab+/=".into()) };
    read.namespace = Name::new("till");
    read.labels = "app in (pos,bar),!gone".into();
    assert_eq!(
        of_read(&read, &configmaps).unwrap().target,
        "/api/v1/namespaces/till/configmaps?limit=500&continue=ab%2B%2F%3D&labelSelector=app%20in%20%28pos%2Cbar%29%2C%21gone"
    );
    read.mode = ReadMode::Watch { from: Version(7), timeout_seconds: 270 };
    read.labels = String::new();
    read.namespace = Name::EMPTY;
    read.fields = "metadata.name=a".into();
    assert_eq!(
        of_read(&read, &configmaps).unwrap().target,
        "/api/v1/configmaps?watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=270&fieldSelector=metadata.name%3Da"
    );
    read.namespace = Name::new("till");
    assert_eq!(of_read(&read, &served("namespaces")).map_err(|f| f.kind), Err(FaultKind::Bug));
}
