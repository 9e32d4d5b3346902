//! Tokens that are revoked and replaced.

use std::path::Path;
use std::time::Instant;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use mailboat_cluster::{Connection, Source};
use mailboat_store::{Doubt, Settings};
use mailboat_testkit::{ADMIN, Edge, apply};
use serde_json::json;

use crate::rig::{Rig, SOON, patient};
use crate::waters::{EDGE, Fleet, config_maps, shared_edge};

#[tokio::test]
async fn a_token_revoked_and_replaced_in_its_file_is_taken_up_without_a_restart() {
    let world = shared_edge().await;
    let edge = world.edge(EDGE);
    let fleet = Fleet::launch(edge, "tokens", 20).await;
    let folder = tempfile::tempdir().unwrap();
    let token_file = folder.path().join("token");
    put(&token_file, &token_of(edge, "first").await);
    let kubeconfig = folder.path().join("kubeconfig.json");
    let access = edge.access(ADMIN).unwrap();
    let mut document = access.kubeconfig("here");
    document["users"][0]["user"] = json!({ "tokenFile": token_file });
    put(&kubeconfig, &document.to_string());

    let source = Source::Kubeconfig { path: Some(kubeconfig), context: None };
    let connection = Connection::open(source, mailboat_cluster::Settings::default()).await.unwrap();
    // A server checks a token when a request begins, so a watch that is open outlives its token.
    let rig = Rig::with(Settings { watch_seconds: (2, 3), ..patient() });
    rig.follow_whole(EDGE, connection.cluster(), &[config_maps()]).await;
    fleet.is_faithful(&rig).await;
    rig.exists(&fleet.keys(0..20));

    let revoked = Instant::now();
    let accounts: Api<ServiceAccount> = Api::namespaced(edge.client(ADMIN).await.unwrap(), "tokens");
    accounts.delete("first", &DeleteParams::default()).await.unwrap();
    rig.until_standing(&config_maps(), revoked, SOON, Err(Doubt::Unauthorized)).await;
    println!("the revoked token was refused after {:.1?}", revoked.elapsed());
    fleet.goes_on(&rig).await;

    let replaced = Instant::now();
    put(&token_file, &token_of(edge, "second").await);
    rig.until_standing(&config_maps(), replaced, SOON, Ok(())).await;
    println!("the new token was in use after {:.1?}", replaced.elapsed());
    fleet.is_seen(&rig).await;
}

/// Makes an account that may read everything, and a token for it.
async fn token_of(edge: &Edge, name: &str) -> String {
    let client = edge.client(ADMIN).await.unwrap();
    let documents = format!(
        "
apiVersion: v1
kind: ServiceAccount
metadata: {{name: {name}, namespace: tokens}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: tokens-{name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}
subjects: [{{kind: ServiceAccount, namespace: tokens, name: {name}}}]
"
    );
    apply(&client, &documents).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client, "tokens");
    let request: TokenRequest = serde_json::from_value(json!({ "spec": { "audiences": [] } })).unwrap();
    let answered = accounts.create_token_request(name, &PostParams::default(), &request).await.unwrap();
    answered.status.and_then(|status| status.token).expect("a token")
}

/// Replaces a file at once, as the kubelet does with a projected token.
fn put(path: &Path, text: &str) {
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, path).unwrap();
}
