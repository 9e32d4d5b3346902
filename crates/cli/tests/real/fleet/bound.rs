//! A kind that a workload workspace has from somebody else's export: its objects travel, what they report comes back, and
//! nothing of them goes with the binding.

use mailboat_testkit::wait_until;
use serde_json::{Value, json};

use super::{EDGE, Fleet, Named, Place, SOON};
use crate::harbor::{create, delete, namespace, patch, put};

const GROUP: &str = "sea.example.dev";
const VERSION: &str = "sea.example.dev/v1";
const BOATS: &str = "boats.sea.example.dev";
const FIRST: Named<'_> = (VERSION, "Boat", "harbor", "first");
const SECOND: Named<'_> = (VERSION, "Boat", "harbor", "second");
const DEFINITION: Named<'_> = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", BOATS);
const BINDING: Named<'_> = ("apis.kcp.io/v1alpha2", "APIBinding", "", "boats");
const PLACEMENT: Named<'_> = (EDGE, "EdgePlacement", "", "boats");

#[tokio::test]
async fn bound_kinds() {
    let fleet = Fleet::board().await;
    let shipyard = fleet.center.workspace_in(&fleet.above, "shipyard").await.unwrap().path;
    offer(&fleet.at(&shipyard).await).await;
    let workload = fleet.workload("boating").await;
    bind(&workload, &shipyard).await;
    // The definition is for the edges alone.
    let mut definition = definition();
    definition["apiVersion"] = json!("apiextensions.k8s.io.denatured/v1");
    put(&workload.client, &definition).await;
    put(&workload.client, &namespace("harbor")).await;
    for boat in [FIRST, SECOND] {
        create(&workload.client, &boat_of(boat, 1)).await;
    }
    let placement = json!({
        "apiVersion": PLACEMENT.0, "kind": PLACEMENT.1, "metadata": { "name": PLACEMENT.3 },
        "spec": {
            "locationSelectors": [{ "matchLabels": { "env": "prod" } }],
            "downsync": [{ "apiGroup": GROUP, "resources": ["boats"], "namespaces": ["harbor"] }],
        },
    });
    put(&workload.client, &placement).await;
    let (florin, guilder) = (fleet.edge("florin").await, fleet.edge("guilder").await);
    let sails = |sails: u64| move |boat: &Value| boat["spec"]["sails"] == sails;
    for edge in [&florin, &guilder] {
        edge.until(FIRST, "at the edge", sails(1)).await;
        edge.until(SECOND, "at the edge", sails(1)).await;
    }
    patch(&workload.client, FIRST, json!({ "spec": { "sails": 2 } })).await;
    for edge in [&florin, &guilder] {
        edge.until(FIRST, "changed", sails(2)).await;
    }
    let delivered = |summary: &Value| summary.to_string().contains(r#""delivered":4"#);
    workload.until((EDGE, "StatusSummary", "", "boats"), "with four copies", delivered).await;

    // Its binding takes all boats of the workspace along, and none from the edges.
    let before = copies(&florin).await;
    delete(&workload.client, BINDING).await;
    workload.until_gone(BINDING).await;
    bind(&workload, &shipyard).await;
    create(&workload.client, &boat_of(FIRST, 3)).await;
    florin.until(FIRST, "changed by what was made anew", sails(3)).await;
    let after = copies(&florin).await;
    assert_eq!(before, after, "each is the object that it was");

    // Made anew and deleted by its name, it goes; and so does the rest with the placement.
    create(&workload.client, &boat_of(SECOND, 3)).await;
    florin.until(SECOND, "changed by what was made anew", sails(3)).await;
    delete(&workload.client, SECOND).await;
    for edge in [&florin, &guilder] {
        edge.until_gone(SECOND).await;
    }
    workload.kubectl(&["delete", "edgeplacement", "boats"]).await.well();
    // The definition leaves after the last of them, never before.
    for edge in [&florin, &guilder] {
        edge.until_gone(DEFINITION).await;
    }
}

/// The boats at an edge by name and uid.
async fn copies(edge: &Place) -> Vec<(Value, Value)> {
    let mut copies = Vec::new();
    let both = wait_until("two boats at the edge", SOON, || async {
        let found = [edge.get(FIRST).await, edge.get(SECOND).await];
        let found: Vec<Value> = found.into_iter().flatten().collect();
        if found.len() == 2 { Ok(found) } else { Err(format!("{found:?}")) }
    });
    for boat in both.await.unwrap_or_else(|late| panic!("{late}")) {
        copies.push((boat["metadata"]["name"].clone(), boat["metadata"]["uid"].clone()));
    }
    copies
}

fn boat_of((version, kind, namespace, name): Named<'_>, sails: u64) -> Value {
    json!({
        "apiVersion": version, "kind": kind, "metadata": { "namespace": namespace, "name": name },
        "spec": { "sails": sails },
    })
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": BOATS },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": { "sails": { "type": "integer" } } },
                    "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                } } },
            }],
        },
    })
}

/// Somebody offers boats, and lets the center bind them in mailboxes.
async fn offer(shipyard: &Place) {
    let mut spec = definition()["spec"].take();
    spec["versions"][0]["schema"] = spec["versions"][0]["schema"]["openAPIV3Schema"].take();
    let schema = format!("v1.{BOATS}");
    let rbac = "rbac.authorization.k8s.io";
    for object in [
        json!({
            "apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "metadata": { "name": schema },
            "spec": spec,
        }),
        json!({
            "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": { "name": "boats" },
            "spec": { "resources": [{ "group": GROUP, "name": "boats", "schema": schema, "storage": { "crd": {} } }] },
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": { "name": "bind-boats" },
            "rules": [{ "apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "resourceNames": ["boats"], "verbs": ["bind"] }],
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": "bind-boats" },
            "roleRef": { "apiGroup": rbac, "kind": "ClusterRole", "name": "bind-boats" },
            "subjects": [{ "apiGroup": rbac, "kind": "Group", "name": "mailboat:center" }],
        }),
    ] {
        put(&shipyard.client, &object).await;
    }
}

async fn bind(workload: &Place, shipyard: &str) {
    let (version, kind, _, name) = BINDING;
    let binding = json!({
        "apiVersion": version, "kind": kind, "metadata": { "name": name },
        "spec": { "reference": { "export": { "path": shipyard, "name": "boats" } } },
    });
    put(&workload.client, &binding).await;
    workload.until(BINDING, "bound", |binding| binding["status"]["phase"] == "Bound").await;
}
