//! `mailboat center init`: a provider workspace is set up by an ordinary user, once and again.

use mailboat_api::names::export;
use mailboat_center::init::{InitError, init};
use serde_json::json;

use crate::harbor::{Harbor, offer};

#[tokio::test]
async fn a_second_init_finds_nothing_to_do_and_an_older_setup_is_upgraded() {
    let harbor = Harbor::new("init").await;
    let provider = harbor.provider().await;
    let [made, changed, kept] = harbor.init().await;
    assert_eq!((made, changed), (0, 0), "{kept} were kept");

    // An older version offered less, and its rights were others.
    let edge = ("apis.kcp.io/v1alpha2", "APIExport", "", export::EDGE);
    let before = provider.get(edge).await.unwrap();
    assert!(before["status"]["identityHash"].as_str().is_some_and(|hash| hash.len() == 64), "{before}");
    let fewer: Vec<_> = before["spec"]["resources"].as_array().unwrap().iter().skip(1).cloned().collect();
    provider.patch(edge, json!({ "spec": { "resources": fewer } })).await;
    let users = ("rbac.authorization.k8s.io/v1", "ClusterRole", "", "mailboat:users");
    provider.delete(users).await;
    let [made, changed, _] = harbor.init().await;
    assert_eq!((made, changed), (1, 1));
    let after = provider.get(edge).await.unwrap();
    assert_eq!(after["spec"]["resources"], before["spec"]["resources"]);
    assert_eq!(
        after["status"]["identityHash"], before["status"]["identityHash"],
        "its objects would be lost"
    );
}

#[tokio::test]
async fn a_lost_identity_is_refused_and_nothing_is_made_in_its_place() {
    let harbor = Harbor::new("lost").await;
    let provider = harbor.provider().await;
    let secret = ("v1", "Secret", "mailboat-identities", export::EDGE);
    provider.delete(secret).await;
    let refused = init(&harbor.connection().await, &harbor.provider, &offer(), |_, _| {}).await;
    assert!(
        matches!(&refused, Err(InitError::IdentityLost { export, .. }) if export == "edge.kubestellar.io"),
        "{refused:?}"
    );
    assert!(provider.get(secret).await.is_none());
}
