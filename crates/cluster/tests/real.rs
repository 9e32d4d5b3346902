//! What is promised of connecting, on a real API server: every kind of credential works, and what is wrong with
//! one is said in one sentence that names the cause and what to do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use mailboat_cluster::{Connection, Found, Read, ReadMode, Settings, Source, Transport};
use mailboat_object::key::{KindId, Name};
use mailboat_object::wire::FaultKind;
use mailboat_testkit::kubelet::{Image, Kubelet};
use mailboat_testkit::proxy::{ForwardProxy, Speaks};
use mailboat_testkit::{ADMIN, Access, Credential, EdgeSpec, Validity, World, apply, wait_until};
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

const IN_CLUSTER_VARIABLE: &str = "MAILBOAT_TRIAL_IN_CLUSTER";

#[tokio::test]
async fn a_pod_connects_with_its_service_account_and_what_that_may_not_is_told() {
    let world = World::builder().edge_with(EdgeSpec::new("florin").with_nodes(0)).start().await.unwrap();
    let edge = world.edge("florin");
    let image = Image::new().program("/boat", std::env::current_exe().unwrap()).user(65532, 65532);
    let kubelet = Kubelet::builder(edge).image("example.org/boat", image).start().await.unwrap();
    let client = edge.client(ADMIN).await.unwrap();
    apply(&client, IN_CLUSTER).await.unwrap();
    let pods: kube::Api<Pod> = kube::Api::namespaced(client, "sea");
    let said = wait_until("the pod says how it went", Duration::from_mins(1), || async {
        let pods = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let name = pods.items.first().and_then(|pod| pod.metadata.name.clone()).ok_or("no pod")?;
        let log = kubelet.log("sea", &name, "boat").map_err(|error| error.to_string())?;
        if log.contains("secrets:") { Ok(log) } else { Err(log) }
    })
    .await
    .unwrap();
    assert!(said.contains(CONNECTED) && said.contains("configmaps: true"), "{said}");
    assert!(said.contains("secrets: Forbidden"), "{said}");
}

/// Not a test of its own: it is what the pod runs.
#[tokio::test]
async fn connects_in_its_cluster_when_asked_to() {
    if std::env::var_os(IN_CLUSTER_VARIABLE).is_none() {
        return;
    }
    let connection = Connection::open(Source::InCluster, Settings::default()).await.unwrap();
    let cluster = connection.cluster();
    let page = |resource: &str| {
        let mode = ReadMode::Page { limit: 1, continue_token: None };
        let mut read = Read::all(KindId::new("", resource), mode);
        read.namespace = Name::new("sea");
        cluster.fetch(read)
    };
    cluster.catalog().await.unwrap();
    println!("{CONNECTED}");
    println!("configmaps: {}", page("configmaps").await.is_ok());
    println!("secrets: {:?}", page("secrets").await.err().map(|fault| fault.kind).unwrap());
}

const IN_CLUSTER: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: sea}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: boat, namespace: sea}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: boat, namespace: sea}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: boat, namespace: sea}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: boat}
subjects: [{kind: ServiceAccount, name: boat, namespace: sea}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: boat, namespace: sea}
spec:
  selector: {matchLabels: {app: boat}}
  template:
    metadata: {labels: {app: boat}}
    spec:
      serviceAccountName: boat
      containers:
      - name: boat
        image: example.org/boat
        command: [/boat, --exact, connects_in_its_cluster_when_asked_to, --nocapture]
        env: [{name: MAILBOAT_TRIAL_IN_CLUSTER, value: "1"}]
"#;

/// The name by which only a proxy knows the server.
const FAR: &str = "https://edge.far.example.com:6443";
const KUBECONFIG_VARIABLE: &str = "MAILBOAT_TRIAL_KUBECONFIG";

#[tokio::test]
async fn a_server_behind_a_proxy_is_reached_by_the_kubeconfigs_word_or_the_environments() {
    let world = World::builder().edge_with(EdgeSpec::bare("guilder")).start().await.unwrap();
    let access = world.edge("guilder").access(ADMIN).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let far = |proxy: Option<String>| {
        let mut document = access.kubeconfig("k");
        let cluster = &mut document["clusters"][0]["cluster"];
        cluster["server"] = FAR.into();
        cluster["tls-server-name"] = "localhost".into();
        if let Some(proxy) = proxy {
            cluster["proxy-url"] = proxy.into();
        }
        kubeconfig(folder.path(), "far", &document)
    };
    let user = Some(("captain", "ahoy"));
    for (speaks, user, shown) in [
        (Speaks::Http, None, ""),
        (Speaks::Http, user, "captain:ahoy"),
        (Speaks::Socks5, None, ""),
        (Speaks::Socks5, user, "captain:ahoy"),
    ] {
        let proxy = ForwardProxy::start(speaks, &access, user).await.unwrap();
        let told = connects(&far(Some(proxy.url_for(shown)))).await;
        told.unwrap_or_else(|told| panic!("{speaks:?} as {shown:?}: {told}"));
        let asked = proxy.asked();
        assert!(
            !asked.is_empty() && asked.iter().all(|host| host == "edge.far.example.com:6443"),
            "{asked:?}"
        );
    }
    // Who is not let through is told so, without the password.
    for speaks in [Speaks::Http, Speaks::Socks5] {
        let proxy = ForwardProxy::start(speaks, &access, user).await.unwrap();
        let fault =
            connects(&far(Some(proxy.url_for("captain:mutiny")))).await.expect_err("a wrong password");
        println!("{speaks:?}: {fault}");
        assert_eq!(fault.kind, FaultKind::Away);
        assert!(fault.text.contains("the proxy does not let us through"), "{fault}");
        assert!(!fault.text.contains("mutiny") && proxy.asked().is_empty(), "{fault}");
    }

    // Variables belong to a whole process, so each is tried in one of its own.
    let path = far(None);
    for (speaks, variable) in [
        (Speaks::Http, "HTTPS_PROXY"),
        (Speaks::Http, "https_proxy"),
        (Speaks::Socks5, "ALL_PROXY"),
        (Speaks::Https, "https_proxy"),
    ] {
        let proxy = ForwardProxy::start(speaks, &access, None).await.unwrap();
        let authority = folder.path().join("proxy.pem");
        std::fs::write(&authority, proxy.ca_pem()).unwrap();
        let url = proxy.url();
        let surroundings = [(variable, url.as_str()), ("SSL_CERT_FILE", authority.to_str().unwrap())];
        let told = elsewhere(&path, &surroundings).await;
        assert!(told.contains(CONNECTED), "{speaks:?} by {variable}: {told}");
        assert!(!proxy.asked().is_empty(), "{variable} was passed over");
        let told = elsewhere(&path, &[(variable, &url), ("no_proxy", ".far.example.com")]).await;
        assert!(told.contains("host name is not known"), "no_proxy was passed over: {told}");
    }
}

/// What [`connects_when_asked_to`] says when all is well.
const CONNECTED: &str = "is connected";

/// Tries a kubeconfig in a process with these variables, and gives what it said.
async fn elsewhere(kubeconfig: &Path, variables: &[(&str, &str)]) -> String {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "connects_when_asked_to", "--nocapture"]).env(KUBECONFIG_VARIABLE, kubeconfig);
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    let output = command.envs(variables.iter().copied()).output().await.unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Not a test of its own: [`elsewhere`] starts this program anew with the variables set.
#[tokio::test]
async fn connects_when_asked_to() {
    if let Some(kubeconfig) = std::env::var_os(KUBECONFIG_VARIABLE) {
        match connects(Path::new(&kubeconfig)).await {
            Ok(()) => println!("{CONNECTED}"),
            Err(fault) => println!("{fault}"),
        }
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
