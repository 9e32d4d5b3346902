//! What is promised of connecting, on a real API server: every kind of credential works, and what is wrong with
//! one is said in one sentence that names the cause and what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use mailboat_cluster::{Connection, Found, Settings, Source, Transport};
use mailboat_object::key::KindId;
use mailboat_object::wire::FaultKind;
use mailboat_testkit::{ADMIN, Access, Credential, EdgeSpec, Validity, World};
use serde_json::{Value, json};

const GROUP: &str = "system:masters";

#[tokio::test]
async fn every_credential_connects_and_a_bad_one_is_told_in_one_sentence() {
    let world = World::builder().edge_with(EdgeSpec::bare("guilder")).start().await.unwrap();
    let edge = world.edge("guilder");
    let folder = tempfile::tempdir().unwrap();
    let token = edge.access(ADMIN).unwrap();
    let certificate = |validity| {
        let user = edge.certificate("captain", Some(GROUP), validity).unwrap();
        edge.access_with(Credential::Certificate(user))
    };

    // A token, a client certificate, and a plugin that prints a token.
    for (what, document) in [
        ("a token", token.kubeconfig("k")),
        ("a client certificate", certificate(Validity::Current).kubeconfig("k")),
        ("an exec plugin", with_plugin(&token, folder.path())),
    ] {
        connects(&kubeconfig(folder.path(), what, &document))
            .await
            .unwrap_or_else(|told| panic!("{what}: {told}"));
    }

    // What is wrong, and what is said of it.
    let mut nobody = token.clone();
    nobody.credential = Credential::Token("unknown".to_owned());
    let stranger = World::builder().edge_with(EdgeSpec::bare("florin")).start().await.unwrap();
    let mut wrong_authority = token.clone();
    wrong_authority.ca_pem = Some(stranger.edge("florin").ca_pem().to_owned());
    let mut closed = token.clone();
    closed.url = "https://127.0.0.1:1".to_owned();
    let mut no_api = token.clone();
    no_api.url = format!("http://127.0.0.1:{}", edge.etcd().port());
    no_api.ca_pem = None;
    for (what, access, kinds, words) in [
        ("an unknown token", nobody, &[FaultKind::Unauthorized][..], &["credential", "renew"][..]),
        (
            "an expired certificate",
            certificate(Validity::Expired),
            &[FaultKind::Unauthorized, FaultKind::Away],
            &["certificate"],
        ),
        ("another authority", wrong_authority, &[FaultKind::Away], &["certificate", "authority"]),
        ("a closed port", closed, &[FaultKind::Away], &["nothing listens", "check"]),
        (
            "a server that is no API server",
            no_api,
            &[FaultKind::Away, FaultKind::Unserved],
            &["no Kubernetes API server", "check"],
        ),
    ] {
        let path = kubeconfig(folder.path(), what, &access.kubeconfig("k"));
        let fault = connects(&path).await.expect_err(what);
        println!("{what}: {fault}");
        assert!(kinds.contains(&fault.kind), "{what}: {:?}: {fault}", fault.kind);
        for word in words {
            assert!(fault.text.contains(word), "{what}: {word:?} is not said: {fault}");
        }
        assert!(!fault.text.contains('\n') && !fault.text.contains("unknown token"), "{what}: {fault}");
    }
}

async fn connects(kubeconfig: &Path) -> Result<(), mailboat_object::wire::Fault> {
    let source = Source::Kubeconfig { path: Some(kubeconfig.to_owned()), context: None };
    let connection = Connection::open(source, Settings::default()).await.expect("a readable kubeconfig");
    let catalog = connection.cluster().catalog().await?;
    assert!(matches!(catalog.find(&KindId::new("apps", "deployments")), Found::Served(_)));
    Ok(())
}

fn kubeconfig(folder: &Path, name: &str, document: &Value) -> PathBuf {
    let path = folder.join(name.replace(' ', "-"));
    std::fs::write(&path, document.to_string()).unwrap();
    path
}

/// A kubeconfig whose user is named by a plugin, as cloud providers have it.
fn with_plugin(access: &Access, folder: &Path) -> Value {
    let Credential::Token(token) = &access.credential else { panic!("testkit's administrator has a token") };
    let answer = json!({
        "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": { "token": token },
    });
    let file = folder.join("answer.json");
    std::fs::write(&file, answer.to_string()).unwrap();
    let mut document = access.kubeconfig("k");
    document["users"][0]["user"] = json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [file],
        "interactiveMode": "Never",
    }});
    document
}
