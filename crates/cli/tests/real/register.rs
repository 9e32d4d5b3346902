//! An edge is registered with one command, may do what it must and nothing else, and is removed again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use mailboat_cli::keeper::Keeper;
use mailboat_cluster::{Connection, Settings, Source};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_registration::{Renewal, Token};
use mailboat_runner::Instruments;
use mailboat_testkit::kubelet::{Image, Kubelet};
use mailboat_testkit::{ADMIN, Center, Credential, Edge, Port, World, apply, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mailbox::{Mailbox, Provider};
use crate::manifest::{Answers, Manifest};
use crate::program::{Said, ask, kubectl, mailboat};

const SOON: Duration = Duration::from_mins(1);
const IMAGE: &str = "example.org/mailboat-syncer:test";
const REPOSITORY: &str = "example.org/mailboat-syncer";

#[tokio::test]
async fn register() {
    let shared = World::shared().await.unwrap();
    let center = shared.center();
    let provider = Provider::make(center).await;
    let port = Port::reserve().unwrap();
    let scene = Scene {
        center,
        port: port.number().to_string(),
        guilder: provider.mailbox("guilder").await,
        florin: provider.mailbox("florin").await,
        provider,
        folder: tempfile::tempdir().unwrap(),
    };
    scene.refuses_what_it_should_and_makes_nothing().await;
    let manifest = scene.is_the_same_when_it_is_done_again().await;
    scene.the_account_may_what_it_must_and_nothing_else(&manifest).await;
    scene.what_comes_up_may_be_written().await;
    let manifest = scene.a_new_token_is_made_only_when_asked_for(&manifest).await;

    let world = World::builder().edge("guilder").start().await.unwrap();
    let edge = world.edge("guilder");
    let image = Image::new().program("/mailboat-syncer", env!("CARGO_BIN_EXE_mailboat-syncer"));
    let image = image.entrypoint(["/mailboat-syncer"]);
    let kubelet = Kubelet::builder(edge).image(REPOSITORY, image).start().await.unwrap();
    scene.the_cluster_takes_the_manifest(edge, &manifest).await;
    scene.the_syncer_runs_and_carries(edge, &kubelet, &manifest).await;
    scene.a_renewed_token_gets_into_the_clusters_secret(edge, &manifest).await;
    scene.is_removed_with_what_it_delivered(edge, &manifest).await;
}

struct Scene<'a> {
    center: &'a Center,
    /// Every Pod of the kubelet shares the machine's ports.
    port: String,
    provider: Provider<'a>,
    guilder: Mailbox,
    florin: Mailbox,
    folder: TempDir,
}

impl Scene<'_> {
    fn admin(&self, workspace: &str) -> PathBuf {
        self.center.kubeconfig(ADMIN, workspace).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn generate(&self, file: &Path, more: &[&str]) -> Said {
        let mut words = vec!["syncer-gen", "guilder", "--syncer-image", IMAGE, "-o", file.to_str().unwrap()];
        words.extend(["--port", &self.port]);
        words.extend(more);
        mailboat(&self.admin(&self.guilder.path), &words).await
    }

    /// Everything in guilder's mailbox that registration may have made, with its version.
    async fn made(&self) -> BTreeMap<String, String> {
        let kinds = "serviceaccounts,secrets,clusterroles,clusterrolebindings,edgesyncconfigs";
        let columns = "custom-columns=KIND:.kind,NAME:.metadata.name,VERSION:.metadata.resourceVersion";
        let selector = "-l=mailboat.dev/registration";
        let words = ["get", kinds, "-A", selector, "-o", columns, "--no-headers"];
        let said = kubectl(&self.admin(&self.guilder.path), &words).await.well();
        let line = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (format!("{} {}", words[0], words[1]), words[2].to_owned())
        };
        said.out.lines().filter(|line| !line.is_empty()).map(line).collect()
    }

    async fn refuses_what_it_should_and_makes_nothing(&self) {
        let file = self.file("refused.yaml");
        let output = file.to_str().unwrap();
        let generate = |name: &'static str| ["syncer-gen", name, "--syncer-image", IMAGE, "-o", output];
        let provider = &self.provider.workspace.path;

        let outside = mailboat(&self.admin(provider), &generate("guilder")).await;
        outside.refused_with(&[provider, "is not a mailbox", "--mailbox"]);
        let bare = self.center.kubeconfig(ADMIN, "").unwrap();
        mailboat(&bare, &generate("guilder")).await.refused_with(&["not to a workspace", "--mailbox"]);
        let here = self.admin(&self.guilder.path);
        mailboat(&here, &generate("Guilder")).await.refused_with(&["\"Guilder\" is no name of a SyncTarget"]);
        mailboat(&here, &generate("florin")).await.refused_with(&["belongs to the SyncTarget \"guilder\""]);
        let nowhere = format!("{provider}:a-mb-b");
        let mut words = generate("guilder").to_vec();
        words.extend(["--mailbox", &nowhere]);
        mailboat(&here, &words).await.refused_with(&[&nowhere, "is not there, or you may not enter it"]);
        let alice = self.center.kubeconfig("alice", &self.guilder.path).unwrap();
        mailboat(&alice, &generate("guilder")).await.refused_with(&["you may not enter it"]);
        self.let_read("bob").await;
        let bob = self.center.kubeconfig("bob", &self.guilder.path).unwrap();
        mailboat(&bob, &generate("guilder")).await.refused_with(&[
            "you may not create serviceaccounts in namespace default",
            "create serviceaccounts/token",
            "ask its administrator",
        ]);
        let missing = self.file("missing/f.yaml");
        let words = ["syncer-gen", "guilder", "--syncer-image", IMAGE, "-o", missing.to_str().unwrap()];
        mailboat(&here, &words).await.refused_with(&["cannot be written"]);

        assert_eq!(self.made().await, BTreeMap::new(), "a refused command made something");
        assert!(!file.exists());
    }

    /// Lets a user enter guilder's mailbox and read it, and nothing more.
    async fn let_read(&self, user: &str) {
        let client = self.center.client(ADMIN, &self.guilder.path).await.unwrap();
        let documents = format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: reader}}\nrules:\n\
             - {{nonResourceURLs: ['/'], verbs: [access]}}\n\
             - {{apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch]}}\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: reader}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}}\n\
             subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {user}}}]\n"
        );
        apply(&client, &documents).await.unwrap();
        let kubeconfig = self.center.kubeconfig(user, &self.guilder.path).unwrap();
        wait_until(format!("{user} may read the mailbox"), SOON, async || {
            let said = kubectl(&kubeconfig, &["get", "logicalclusters", "cluster"]).await;
            if said.code == Some(0) { Ok(()) } else { Err(said.err) }
        })
        .await
        .unwrap();
    }

    async fn is_the_same_when_it_is_done_again(&self) -> Manifest {
        let file = self.file("guilder.yaml");
        let first = self.generate(&file, &[]).await.well();
        assert!(first.out.is_empty() && first.err.contains("kubectl apply -f"), "{first:#?}");
        assert!(
            first.err.contains("may read and write everything at the edge"),
            "not said aloud: {}",
            first.err
        );
        let manifest = Manifest::read(&file);
        let before = self.made().await;
        let kinds: Vec<&str> = before.keys().map(String::as_str).collect();
        let id = manifest.id();
        assert_eq!(
            kinds,
            [
                format!("ClusterRole {id}"),
                format!("ClusterRole {id}-upsync"),
                format!("ClusterRoleBinding {id}"),
                format!("ClusterRoleBinding {id}-upsync"),
                "EdgeSyncConfig guilder".to_owned(),
                format!("Secret {id}-token"),
                format!("ServiceAccount {id}"),
            ]
        );

        self.generate(&file, &[]).await.well();
        assert_eq!(Manifest::read(&file).text, manifest.text, "the manifest is not the same");
        // By its older names, by name from elsewhere, and to standard output.
        let links = self.file("bin");
        fs::create_dir(&links).unwrap();
        mailboat(&file, &["link", links.to_str().unwrap()]).await.well();
        let elsewhere = self.admin(&self.provider.workspace.path);
        let provider = ["--provider-workspace", &self.provider.workspace.path];
        let by_name = ["--mailbox", &self.guilder.name, provider[0], provider[1], "--port", &self.port];
        for (program, image) in [
            ("kubectl-mailboat syncer-gen", "--syncer-image"),
            ("kubectl-kubestellar syncer-gen", "--syncer-image"),
            ("kubectl-kubestellar-syncer_gen", "--syncer-image"),
            ("kubectl-kcp-workload-edge_sync", "--image"),
        ] {
            let mut words = program.split(' ');
            let mut command = tokio::process::Command::new(links.join(words.next().unwrap()));
            command.args(words).args(["guilder", image, IMAGE, "-o", "-"]).args(by_name);
            let output = command.env("KUBECONFIG", &elsewhere).output().await.unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), manifest.text, "{program}: {said}");
        }
        assert_eq!(self.made().await, before, "doing it again wrote something");
        manifest
    }

    async fn the_account_may_what_it_must_and_nothing_else(&self, manifest: &Manifest) {
        let kubeconfig = manifest.kubeconfig(&self.file("account"));
        let (id, here) = (manifest.id(), &self.guilder.cluster);
        let who = kubectl(&kubeconfig, &["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"])
            .await
            .well();
        assert_eq!(who.out, format!("system:serviceaccount:default:{id}"));
        let answers = Answers { center: self.center, token: manifest.secret("token") };
        let token = |name: &str| format!("/api/v1/namespaces/default/serviceaccounts/{name}/token");
        let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
        let status = json!({ "status": { "lastSyncerHeartbeatTime": "2026-01-01T00:00:00Z" } });
        let edge = "/apis/edge.kubestellar.io/v2alpha1/edgesyncconfigs";
        let config_map = json!({ "metadata": { "name": "x" } });
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let role = json!({ "metadata": { "name": "x" }, "rules": [] });
        let binding = json!({ "metadata": { "name": "x" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "namespace": "default", "name": id }] });
        let more = json!({ "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }] });
        let none = Value::Null;
        for (allowed, method, path, body) in [
            (true, "GET", "/api/v1/configmaps".to_owned(), &none),
            (
                true,
                "GET",
                "/api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1".to_owned(),
                &none,
            ),
            (true, "GET", "/apis".to_owned(), &none),
            (true, "GET", "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster".to_owned(), &none),
            (true, "GET", "/apis/apis.kcp.io/v1alpha2/apibindings".to_owned(), &none),
            (true, "GET", edge.to_owned(), &none),
            (true, "PATCH", format!("{edge}/guilder/status"), &status),
            (true, "POST", token(id), &request),
            (false, "POST", token("default"), &request),
            (false, "PATCH", format!("{edge}/guilder"), &json!({ "spec": {} })),
            (false, "DELETE", format!("{edge}/guilder"), &none),
            (false, "POST", "/api/v1/namespaces/default/configmaps".to_owned(), &config_map),
            (false, "DELETE", "/api/v1/namespaces/default/configmaps/kube-root-ca.crt".to_owned(), &none),
            (false, "DELETE", "/api/v1/namespaces/default/configmaps".to_owned(), &none),
            (false, "POST", "/api/v1/namespaces".to_owned(), &config_map),
            (false, "POST", "/api/v1/namespaces/default/secrets".to_owned(), &config_map),
            (
                false,
                "PATCH",
                format!("/api/v1/namespaces/default/secrets/{id}-token"),
                &json!({ "data": {} }),
            ),
            (false, "POST", "/api/v1/namespaces/default/serviceaccounts".to_owned(), &config_map),
            (false, "POST", format!("{rbac}/clusterroles"), &role),
            (false, "PATCH", format!("{rbac}/clusterroles/{id}"), &more),
            (false, "POST", format!("{rbac}/clusterrolebindings"), &binding),
            (false, "DELETE", "/apis/apis.kcp.io/v1alpha2/apibindings/bind-edge".to_owned(), &none),
            (false, "POST", "/apis/tenancy.kcp.io/v1alpha1/workspaces".to_owned(), &config_map),
            (false, "DELETE", "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster".to_owned(), &none),
        ] {
            let code = answers.code(here, method, &path, body).await;
            let good = if allowed { (200..300).contains(&code) } else { code == 403 };
            assert!(good, "{method} {path} in its own mailbox was answered {code}");
        }
        let provider = &self.provider;
        let stranger = Answers { center: self.center, token: self.center.token("alice").unwrap().to_owned() };
        for other in [
            "root",
            &provider.workspace.path,
            &provider.inventory.path,
            &self.florin.path,
            &self.florin.cluster,
        ] {
            for path in [
                "/api/v1/configmaps",
                "/apis/core.kcp.io/v1alpha1/logicalclusters/cluster",
                "/api/v1/secrets",
            ] {
                let code = answers.code(other, "GET", path, &none).await;
                // kcp lets everybody who is somebody look at the root's LogicalCluster.
                let allowed = code == 403 || stranger.code(other, "GET", path, &none).await == code;
                assert!(allowed, "GET {path} in {other} was answered {code}");
            }
        }
    }

    async fn what_comes_up_may_be_written(&self) {
        let client = self.center.client(ADMIN, &self.guilder.path).await.unwrap();
        let config = |resources: &str| {
            format!(
                "apiVersion: edge.kubestellar.io/v2alpha1\nkind: SyncerConfig\nmetadata: {{name: the-one}}\nspec:\n  \
                 upsync:\n  - {{apiGroup: '', resources: [{resources}], namespaces: ['*'], names: ['*']}}\n  \
                 - {{apiGroup: rbac.authorization.k8s.io, resources: ['*'], names: ['*']}}\n"
            )
        };
        apply(&client, &config("configmaps")).await.unwrap();
        let file = self.file("upsync.yaml");
        self.generate(&file, &[]).await.well();
        let manifest = Manifest::read(&file);
        let answers = Answers { center: self.center, token: manifest.secret("token") };
        let here = &self.guilder.cluster;
        let named = |name: &str| json!({ "metadata": { "name": name } });
        let (maps, secrets) =
            ("/api/v1/namespaces/brought-up/configmaps", "/api/v1/namespaces/brought-up/secrets");
        wait_until("what comes up may be written", SOON, async || {
            let code = answers.code(here, "POST", "/api/v1/namespaces", &named("brought-up")).await;
            if code == 201 || code == 409 { Ok(()) } else { Err(code) }
        })
        .await
        .unwrap();
        let clusterroles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        let mut codes = Vec::new();
        for (method, path, body) in [
            ("POST", maps.to_owned(), named("x")),
            ("PATCH", format!("{maps}/x"), json!({ "data": { "a": "b" } })),
            ("DELETE", format!("{maps}/x"), Value::Null),
            ("POST", secrets.to_owned(), named("x")),
            ("POST", clusterroles.to_owned(), named("x")),
            ("DELETE", "/api/v1/namespaces/brought-up".to_owned(), Value::Null),
        ] {
            codes.push(answers.code(here, method, &path, &body).await);
        }
        assert_eq!(codes, [201, 200, 200, 403, 403, 403]);
        // Taken out of the configuration, it is taken out of the rights.
        apply(&client, &config("")).await.unwrap();
        self.generate(&file, &[]).await.well();
        wait_until("nothing may be brought up any more", SOON, async || {
            let code = answers.code(here, "POST", maps, &named("y")).await;
            if code == 403 { Ok(()) } else { Err(code) }
        })
        .await
        .unwrap();
    }

    async fn a_new_token_is_made_only_when_asked_for(&self, before: &Manifest) -> Manifest {
        let file = self.file("rotated.yaml");
        let said = self.generate(&file, &["--rotate", "--lifetime", "2h"]).await.well();
        assert!(!said.err.contains(&before.secret("token")), "a token was shown");
        let rotated = Manifest::read(&file);
        let token = Token::read(&rotated.secret("token")).unwrap();
        assert_eq!(token.lifetime().to_string(), "2h");
        assert_ne!(rotated.secret("token"), before.secret("token"));
        let others = |manifest: &Manifest| -> Vec<Value> {
            manifest.documents.iter().filter(|document| document["kind"] != "Secret").cloned().collect()
        };
        assert_eq!(others(&rotated), others(before), "more than the token changed");
        for manifest in [before, &rotated] {
            let answers = Answers { center: self.center, token: manifest.secret("token") };
            let code = answers.code(&self.guilder.cluster, "GET", "/api/v1/configmaps", &Value::Null).await;
            assert_eq!(code, 200, "rotating cut off a syncer that has not the new token yet");
        }
        self.generate(&file, &[]).await.well();
        assert_eq!(Manifest::read(&file).text, rotated.text);
        rotated
    }

    async fn the_cluster_takes_the_manifest(&self, edge: &Edge, manifest: &Manifest) {
        let admin = edge.kubeconfig(ADMIN).unwrap();
        let file = self.file("rotated.yaml");
        let id = manifest.id();
        let said = kubectl(&admin, &["apply", "-f", file.to_str().unwrap()]).await.well();
        assert!(!said.err.contains("Warning"), "{said:#?}");
        let again = kubectl(&admin, &["apply", "-f", file.to_str().unwrap()]).await.well();
        assert!(again.out.lines().all(|line| line.ends_with(" unchanged")), "{again:#?}");
        wait_until("the syncer's Pod is made", SOON, async || {
            let said =
                kubectl(&admin, &["get", "pods", "-n", id, "-l", &format!("app={id}"), "-o", "name"]).await;
            if said.out.contains("pod/") { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await
        .unwrap();
        let account = format!("--as=system:serviceaccount:{id}:{id}");
        for (words, allowed) in [
            (&["create", "deployments.apps", "-n", "default"][..], "yes"),
            (&["escalate", "clusterroles.rbac.authorization.k8s.io"], "yes"),
            (&["patch", &format!("secrets/{id}"), "-n", id], "yes"),
            (&["impersonate", "users"], "no"),
            (&["deletecollection", "configmaps"], "no"),
        ] {
            let mut all = vec!["auth", "can-i", &account];
            all.extend(words);
            let said = kubectl(&admin, &all).await;
            assert_eq!(said.out.trim(), allowed, "{words:?}: {said:?}");
        }
        self.a_narrow_access_is_narrow(edge).await;
    }

    /// The Deployment as it was written, run with its own account, rights, volumes, user and probes.
    async fn the_syncer_runs_and_carries(&self, edge: &Edge, kubelet: &Kubelet, manifest: &Manifest) {
        let (admin, id) = (edge.kubeconfig(ADMIN).unwrap(), manifest.id());
        let pod =
            kubectl(&admin, &["get", "pods", "-n", id, "-o", "jsonpath={.items[0].metadata.name}"]).await;
        let pod = pod.well().out;
        let log = || kubelet.log(id, &pod, "syncer").unwrap_or_default();
        let mailbox = self.center.client(ADMIN, &self.guilder.path).await.unwrap();
        let documents = "apiVersion: v1\nkind: Namespace\nmetadata: {name: post}\n---\n\
             apiVersion: v1\nkind: ConfigMap\nmetadata: {name: letter, namespace: post}\ndata: {text: hello}\n---\n\
             apiVersion: edge.kubestellar.io/v2alpha1\nkind: SyncerConfig\nmetadata: {name: the-one}\nspec:\n  \
             namespaceScope:\n    namespaces: [post]\n    \
             resources: [{group: '', resource: configmaps, apiVersion: v1}]\n";
        apply(&mailbox, documents).await.unwrap();
        let letter = ["get", "configmap", "letter", "-n", "post", "-o", "jsonpath={.data.text}"];
        wait_until("the letter at the edge", SOON, async || {
            let said = kubectl(&admin, &letter).await;
            if said.out == "hello" { Ok(()) } else { Err(format!("{said:?}\n{}", log())) }
        })
        .await
        .unwrap_or_else(|late| panic!("{late}"));
        let ready = ["get", "deployment", id, "-n", id, "-o", "jsonpath={.status.readyReplicas}"];
        wait_until("the syncer ready, by its own probe", SOON, async || {
            let said = kubectl(&admin, &ready).await;
            if said.out == "1" { Ok(()) } else { Err(format!("{said:?}\n{}", log())) }
        })
        .await
        .unwrap_or_else(|late| panic!("{late}"));
        let metrics = ask(&format!("127.0.0.1:{}", self.port), "/metrics").await;
        let counted = "gvk=\"/v1, Kind=ConfigMap\",direction=\"kcp-to-cluster\"} 1";
        assert!(metrics.contains(counted), "{counted} is not in\n{metrics}");
        assert!(!log().contains(&manifest.secret("token")), "a token was logged");

        // Told to end, it ends in order, and no other comes while nobody wants one.
        kubectl(&admin, &["scale", "deployment", id, "-n", id, "--replicas=0"]).await.well();
        let gone = ["wait", "--for=delete", &format!("pod/{pod}"), "-n", id, "--timeout=60s"];
        kubectl(&admin, &gone).await.well();
    }

    async fn a_narrow_access_is_narrow(&self, edge: &Edge) {
        let admin = edge.kubeconfig(ADMIN).unwrap();
        let file = self.file("narrow.yaml");
        let words = [
            "syncer-gen",
            "florin",
            "--syncer-image",
            IMAGE,
            "-o",
            file.to_str().unwrap(),
            "--replicas",
            "0",
        ];
        let words =
            [&words[..], &["--edge-access", "namespaces=till", "--namespace", "florin", "--labels", "a=b"]]
                .concat();
        mailboat(&self.admin(&self.florin.path), &words).await.well();
        kubectl(&admin, &["create", "namespace", "till"]).await.well();
        kubectl(&admin, &["apply", "-f", file.to_str().unwrap()]).await.well();
        let manifest = Manifest::read(&file);
        let account = format!("--as=system:serviceaccount:florin:{}", manifest.id());
        for (words, allowed) in [
            (&["create", "deployments.apps", "-n", "till"][..], "yes"),
            (&["create", "deployments.apps", "-n", "default"], "no"),
            (&["get", "secrets", "-n", "default"], "no"),
            (&["create", "clusterroles.rbac.authorization.k8s.io"], "no"),
            (&["list", "namespaces"], "yes"),
        ] {
            let mut all = vec!["auth", "can-i", &account];
            all.extend(words);
            let said = kubectl(&admin, &all).await;
            assert_eq!(said.out.trim(), allowed, "{words:?}: {said:?}");
        }
        // Removed with printed commands: they do what they say, and the namespace that was chosen by hand stays.
        let said = mailboat(&self.admin(&self.florin.path), &["syncer-remove", "florin"]).await.well();
        assert_eq!(said.out.lines().count(), 3, "{said:#?}");
        for line in said.out.lines() {
            let words: Vec<&str> = line.split(' ').skip(1).collect();
            kubectl(&admin, &words).await.well();
        }
        let kinds = "deployments,secrets,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings";
        let selector = format!("-l=mailboat.dev/registration={}", manifest.id());
        let left = kubectl(&admin, &["get", kinds, "-A", &selector, "-o", "name"]).await.well();
        assert_eq!(left.out, "");
        kubectl(&admin, &["get", "namespace", "florin"]).await.well();
    }

    async fn a_renewed_token_gets_into_the_clusters_secret(&self, edge: &Edge, manifest: &Manifest) {
        let id = manifest.id();
        let mailbox = connect(&manifest.kubeconfig(&self.file("renewal"))).await;
        let admin = edge.kubeconfig(ADMIN).unwrap();
        let token = kubectl(&admin, &["create", "token", id, "-n", id]).await.well().out;
        let access = edge.access_with(Credential::Token(token.trim().to_owned()));
        let account = self.file("edge-account.yaml");
        access.write_kubeconfig("edge", &account).unwrap();
        let at_edge = connect(&account).await;
        let mailbox_id = ClusterId::new(&self.guilder.cluster);
        let secret = Key {
            cluster: ClusterId::new("guilder"),
            kind: KindId::new("", "secrets"),
            namespace: Name::new(id),
            name: Name::new(id),
        };
        let renewal = Renewal::new(mailbox_id, Some(secret));
        // A file whose token says that half of its life is over: ten minutes must not be waited for.
        let now = Timestamp::now().as_second();
        let subject = format!("system:serviceaccount:default:{id}");
        let claims = json!({ "iat": now - 3_000, "exp": now + 600, "sub": subject });
        let file = self.file("token");
        fs::write(&file, format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()))).unwrap();
        let instruments = Arc::new(Instruments::default());
        let keeper = Keeper {
            token_file: file.clone(),
            renewal,
            mailbox: Arc::new(mailbox.cluster()),
            edge: Arc::new(at_edge.cluster()),
            instruments: Arc::clone(&instruments),
        };
        let kept = tokio::spawn(keeper.keep());
        let path = "jsonpath={.data.token}";
        let stored = wait_until("a renewed token in the Secret", SOON, async || {
            let said = kubectl(&admin, &["get", "secret", id, "-n", id, "-o", path]).await;
            let text =
                String::from_utf8(STANDARD.decode(said.out.trim()).unwrap_or_default()).unwrap_or_default();
            if text == manifest.secret("token") || text.is_empty() {
                Err(format!("the old one; {}", instruments.health.ready(true).text))
            } else {
                Ok(text)
            }
        })
        .await
        .unwrap();
        kept.abort();
        let renewed = Token::read(&stored).unwrap();
        assert_eq!(renewed.lifetime().seconds(), 3_600, "the lifetime stays what it was");
        let answers = Answers { center: self.center, token: stored };
        let code = answers.code(&self.guilder.cluster, "GET", "/api/v1/configmaps", &Value::Null).await;
        assert_eq!(code, 200);
        let whole = kubectl(&admin, &["get", "secret", id, "-n", id, "-o", "jsonpath={.data.kubeconfig}"])
            .await
            .well();
        assert_eq!(whole.out, manifest.kind("Secret")["data"]["kubeconfig"], "only the token is replaced");
    }

    async fn is_removed_with_what_it_delivered(&self, edge: &Edge, manifest: &Manifest) {
        let admin = edge.kubeconfig(ADMIN).unwrap();
        let client = edge.client(ADMIN).await.unwrap();
        let id = manifest.id();
        apply(&client, &self.delivered("delivered", "delivered", false)).await.unwrap();
        apply(&client, &self.delivered("to-stay", "to-stay", true)).await.unwrap();
        apply(&client, &self.delivered("inherited", "another", false)).await.unwrap();
        let answers = Answers { center: self.center, token: manifest.secret("token") };

        let edge_kubeconfig = admin.to_str().unwrap();
        let mut words = vec!["syncer-remove", "guilder", "--edge-kubeconfig", edge_kubeconfig];
        let said = mailboat(&self.admin(&self.guilder.path), &words).await.well();
        assert!(said.err.contains("2 delivered objects deleted"), "{said:#?}");
        let left = kubectl(&admin, &["get", "configmaps", "-n", "default", "-o", "name"]).await.well();
        let left: Vec<&str> = left.out.lines().filter(|line| !line.contains("kube-root-ca")).collect();
        assert_eq!(left, ["configmap/inherited", "configmap/to-stay"]);
        assert_eq!(self.made().await, BTreeMap::new(), "{said:#?}");
        let namespace =
            kubectl(&admin, &["wait", "--for=delete", &format!("namespace/{id}"), "--timeout=60s"]).await;
        assert_eq!(namespace.code, Some(0), "{namespace:#?}");
        wait_until("its tokens are refused", SOON, async || {
            let code = answers.code(&self.guilder.cluster, "GET", "/api/v1/configmaps", &Value::Null).await;
            if code == 401 { Ok(()) } else { Err(code) }
        })
        .await
        .unwrap();
        // Nothing is there to remove any more, and that is no failure.
        words.push("--keep-objects");
        let again = mailboat(&self.admin(&self.guilder.path), &words).await.well();
        assert!(again.err.contains("no syncer was registered"), "{again:#?}");
    }

    /// A ConfigMap as the syncer delivers it, whose mark says on which object it was put.
    fn delivered(&self, name: &str, on: &str, leave: bool) -> String {
        let uid = &self.guilder.sync_target_uid;
        let intent = mailboat_object::digest::Digest::NONE.to_string();
        let mark = json!({ "on": format!("configmaps/default/{on}"), "cluster": self.guilder.cluster, "kind": "configmaps",
            "namespace": "default", "name": on, "uid": "u", "version": 1, "intent": intent, "leave": leave });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "default",
            "labels": { "mailboat.dev/owner": format!("syncer.{uid}") },
            "annotations": { "mailboat.dev/mark": mark.to_string() } } })
        .to_string()
    }
}

async fn connect(kubeconfig: &Path) -> Connection {
    let source = Source::Kubeconfig { path: Some(kubeconfig.to_owned()), context: None };
    Connection::open(source, Settings::default()).await.unwrap()
}
