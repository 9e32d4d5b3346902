//! The players on real servers: links that fail, a kubelet, a cloud.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use http::{Method, StatusCode};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt as _};
use mailboat_testkit::build::Programs;
use mailboat_testkit::cloud::Cloud;
use mailboat_testkit::kubelet::{Image, Kubelet};
use mailboat_testkit::proxy::{Delay, FaultyServer, Proxy, Rule, Scope, kubeconfig_via};
use mailboat_testkit::{ADMIN, Edge, EdgeSpec, World, apply, wait_until};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;

mod neighbors;

const SOON: Duration = Duration::from_secs(30);
const A_WHILE: Duration = Duration::from_secs(1);

#[tokio::test]
async fn links_and_load_balancers_behave_as_told() {
    let world = World::builder().edge_with(EdgeSpec::bare("guilder")).start().await.unwrap();
    let edge = world.edge("guilder");
    a_cut_link_hangs_and_works_again_when_it_heals(edge).await;
    a_watch_through_a_held_link_loses_nothing(edge).await;
    a_slow_link_is_slow(edge).await;
    kubectl_goes_through_a_proxy(edge).await;
    faults_are_answered_as_often_as_they_should_be(edge).await;
    a_revoked_token_is_refused_and_others_are_not(edge).await;
    watches_pass_through_a_faulty_server(edge).await;
    a_load_balancer_gets_an_address_until_it_is_none(edge).await;
}

async fn a_cut_link_hangs_and_works_again_when_it_heals(edge: &Edge) {
    let access = edge.access(ADMIN).unwrap();
    let proxy = Proxy::in_front_of(&access).await.unwrap();
    let config_maps = config_maps(&proxy.access(&access).unwrap().client().await.unwrap());
    config_maps.list(&ListParams::default()).await.unwrap();
    let before = proxy.traffic();
    assert!(before.bytes_to_server > 0 && before.bytes_to_client > 0, "{before:?}");

    proxy.cut();
    let hung = timeout(A_WHILE, config_maps.list(&ListParams::default())).await;
    assert!(hung.is_err(), "a request passed a cut link: {hung:?}");
    assert!(proxy.traffic().bytes_lost > 0, "{:?}", proxy.traffic());

    proxy.heal(Scope::All).await.unwrap();
    let params = ListParams::default();
    wait_until("the link healed", SOON, || config_maps.list(&params)).await.unwrap();

    proxy.refuse().await.unwrap();
    proxy.reset();
    let refused = timeout(SOON, config_maps.list(&ListParams::default())).await.unwrap();
    assert!(refused.is_err(), "{refused:?}");
    proxy.heal(Scope::All).await.unwrap();
    wait_until("listening again", SOON, || config_maps.list(&params)).await.unwrap();
}

async fn a_watch_through_a_held_link_loses_nothing(edge: &Edge) {
    let access = edge.access(ADMIN).unwrap();
    let proxy = Proxy::in_front_of(&access).await.unwrap();
    let direct = config_maps(&edge.client(ADMIN).await.unwrap());
    let mut events = watch(&config_maps(&proxy.access(&access).unwrap().client().await.unwrap())).await;
    create(&direct, "seen").await;
    assert_eq!(next_name(&mut events).await, "seen");
    proxy.hold(Scope::All);
    create(&direct, "held").await;
    let early = timeout(A_WHILE, events.next()).await;
    assert!(early.is_err(), "through a held link came {early:?}");
    proxy.heal(Scope::All).await.unwrap();
    assert_eq!(next_name(&mut events).await, "held");
}

async fn a_slow_link_is_slow(edge: &Edge) {
    let access = edge.access(ADMIN).unwrap();
    let proxy = Proxy::in_front_of(&access).await.unwrap();
    let config_maps = config_maps(&proxy.access(&access).unwrap().client().await.unwrap());
    config_maps.list(&ListParams::default()).await.unwrap();
    let list = async || {
        let start = Instant::now();
        config_maps.list(&ListParams::default()).await.unwrap();
        start.elapsed()
    };
    proxy.delay(Scope::All, Delay { latency: Duration::from_millis(150), jitter: Duration::ZERO });
    let delayed = list().await;
    assert!(delayed >= Duration::from_millis(300), "{delayed:?}");
    proxy.heal(Scope::All).await.unwrap();
    proxy.throttle(Scope::All, NonZeroU64::new(2_000).unwrap());
    let before = proxy.traffic();
    let throttled = list().await;
    let bytes = proxy.traffic().bytes_to_client - before.bytes_to_client;
    let least = Duration::from_millis(bytes.saturating_sub(200) / 2);
    assert!(throttled >= least, "{bytes} bytes in {throttled:?}, at 2,000 a second");
}

async fn kubectl_goes_through_a_proxy(edge: &Edge) {
    let proxy = Proxy::in_front_of(&edge.access(ADMIN).unwrap()).await.unwrap();
    let kubeconfig = kubeconfig_via(&edge.kubeconfig(ADMIN).unwrap(), proxy.address()).unwrap();
    let names = kubectl(&kubeconfig, &["get", "namespaces", "-o", "name"]).await;
    assert!(names.contains("namespace/default"), "{names}");
    assert!(proxy.traffic().connections > 0, "{:?}", proxy.traffic());
}

async fn faults_are_answered_as_often_as_they_should_be(edge: &Edge) {
    let access = edge.access(ADMIN).unwrap();
    let faulty = FaultyServer::in_front_of(&access).await.unwrap();
    let client = faulty.access(&access).unwrap().client().await.unwrap();
    let config_maps = config_maps(&client);
    let rule =
        Rule::answer(StatusCode::SERVICE_UNAVAILABLE).method(Method::GET).path_prefix("/api/v1/").times(2);
    let rule = faulty.add(rule.retry_after(Duration::from_secs(1)));
    for attempt in 0..2 {
        let refused = config_maps.list(&ListParams::default()).await.unwrap_err();
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 503), "{attempt}: {refused}");
    }
    config_maps.list(&ListParams::default()).await.unwrap();
    create(&config_maps, "through-a-faulty-server").await;
    assert_eq!(faulty.applied(rule), 2);
    let statuses: Vec<(u16, bool)> =
        faulty.seen().iter().map(|seen| (seen.status.as_u16(), seen.by_rule)).collect();
    assert_eq!(statuses, [(503, true), (503, true), (200, false), (201, false)], "{:?}", faulty.seen());

    // Go's client speaks HTTP/2 where it can, and waits as it is told before it asks again.
    faulty.add(Rule::answer(StatusCode::TOO_MANY_REQUESTS).times(1).retry_after(Duration::from_secs(1)));
    let kubeconfig = faulty.kubeconfig_via(&edge.kubeconfig(ADMIN).unwrap()).unwrap();
    let names = kubectl(&kubeconfig, &["get", "namespaces", "-o", "name"]).await;
    assert!(names.contains("namespace/default"), "{names}");
    let versions: BTreeSet<String> = faulty.seen().iter().map(|seen| format!("{:?}", seen.version)).collect();
    assert_eq!(versions, ["HTTP/1.1", "HTTP/2.0"].map(str::to_owned).into());
}

async fn a_revoked_token_is_refused_and_others_are_not(edge: &Edge) {
    let access = edge.access(ADMIN).unwrap();
    let faulty = FaultyServer::in_front_of(&access).await.unwrap();
    let rule = faulty.add(Rule::revoked(edge.token(ADMIN).unwrap()));
    let answer = async |user: &str| {
        let client = faulty.access(&edge.access(user).unwrap()).unwrap().client().await.unwrap();
        match config_maps(&client).list(&ListParams::default()).await {
            Ok(_) => 200,
            Err(kube::Error::Api(status)) => status.code,
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!((answer(ADMIN).await, answer("alice").await), (401, 403));
    faulty.remove(rule);
    assert_eq!(answer(ADMIN).await, 200);
}

async fn watches_pass_through_a_faulty_server(edge: &Edge) {
    let access = edge.access(ADMIN).unwrap();
    let faulty = FaultyServer::in_front_of(&access).await.unwrap();
    let direct = config_maps(&edge.client(ADMIN).await.unwrap());
    let through = config_maps(&faulty.access(&access).unwrap().client().await.unwrap());
    let mut events = watch(&through).await;
    for name in ["first", "second"] {
        create(&direct, name).await;
        assert_eq!(next_name(&mut events).await, name);
    }
    let gone = json!({ "type": "ERROR", "object": { "kind": "Status", "code": 410, "reason": "Expired" } });
    let rule = Rule::answer(StatusCode::OK).query("watch", "true").times(1);
    faulty.add(rule.body("application/json", gone.to_string() + "\n"));
    let event = through.watch(&WatchParams::default(), "0").await.unwrap().boxed().try_next().await.unwrap();
    assert!(matches!(&event, Some(WatchEvent::Error(status)) if status.code == 410), "{event:?}");
}

async fn a_load_balancer_gets_an_address_until_it_is_none(edge: &Edge) {
    let access = edge.access(ADMIN).unwrap();
    let _cloud = Cloud::start(&access).await.unwrap();
    let services: Api<Service> = Api::namespaced(edge.client(ADMIN).await.unwrap(), "default");
    let service = json!({
        "metadata": { "name": "harbor" },
        "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }], "selector": { "app": "harbor" } },
    });
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    let address = async || {
        let service = services.get("harbor").await.unwrap();
        let ingress = service.status.and_then(|status| status.load_balancer?.ingress).unwrap_or_default();
        ingress.first().and_then(|entry| entry.ip.clone())
    };
    wait_until("an address", SOON, async || {
        let seen = address().await;
        let is_given = seen.as_ref().is_some_and(|address| address.starts_with("192.0.2."));
        if is_given { Ok(()) } else { Err(format!("{seen:?}")) }
    })
    .await
    .unwrap();
    let patch = Patch::Merge(json!({ "spec": { "type": "ClusterIP" } }));
    services.patch("harbor", &PatchParams::default(), &patch).await.unwrap();
    wait_until("no address", SOON, async || match address().await {
        None => Ok(()),
        Some(address) => Err(address),
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_deployment_is_run_as_it_is_written() {
    let world = World::builder().edge_with(EdgeSpec::new("florin").with_nodes(0)).start().await.unwrap();
    let edge = world.edge("florin");
    let kubectl = Programs::locate().unwrap().kubectl().unwrap();
    let image =
        Image::new().program("/bin/sh", "/bin/sh").program("/tools/kubectl", kubectl).user(65532, 65532);
    let kubelet = Kubelet::builder(edge)
        .image("example.org/boat", image)
        .program("/bin/sh", "/bin/sh")
        .restart_pauses(Duration::from_millis(300), SOON)
        .start()
        .await
        .unwrap();
    let health = Arc::new(AtomicU16::new(503));
    let port = answer_with(Arc::clone(&health)).await;
    let client = edge.client(ADMIN).await.unwrap();
    apply(&client, &manifests(port)).await.unwrap();
    let boat = Boat { kubelet: &kubelet, client: client.clone() };

    let name = boat.waits_for_its_secret().await;
    apply(&client, &secret("first")).await.unwrap();
    boat.gets_what_its_manifest_promises(&name).await;
    boat.becomes_ready_when_its_probe_says_so(&name, &health).await;
    boat.sees_a_changed_secret_and_a_new_token(&name).await;
    boat.is_restarted_after_a_crash(&name).await;
    boat.ends_in_order(&name).await;
    boat.runs_init_containers_first_and_ends_with_success().await;
    boat.waits_longer_between_crashes().await;

    boat.start("rower", &json!({ "containers": [sh("rower", "echo rowing; while :; do sleep 1; done")] }))
        .await;
    boat.log_with("rower", "rower", "rowing").await;
    let rower = kubelet.process("sea", "rower", "rower").unwrap();
    drop(kubelet);
    wait_until("what the kubelet ran ended with it", SOON, async || {
        if rower.is_alive() { Err(format!("{rower:?} lives")) } else { Ok(()) }
    })
    .await
    .unwrap();
}

fn sh(name: &str, script: &str) -> Value {
    json!({ "name": name, "image": "example.org/any", "command": ["/bin/sh", "-c", script] })
}

struct Boat<'a> {
    kubelet: &'a Kubelet,
    client: Client,
}

impl Boat<'_> {
    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "sea")
    }

    async fn waits_for_its_secret(&self) -> String {
        let pods = self.pods();
        wait_until("a pod that says what it waits for", SOON, || async {
            let list = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let text =
                serde_json::to_string(&list.items.iter().map(|pod| &pod.status).collect::<Vec<_>>()).unwrap();
            match list.items.first() {
                Some(pod) if text.contains(r#"secret \"keys\" not found"#) => Ok(pod.name_any()),
                _ => Err(text),
            }
        })
        .await
        .unwrap()
    }

    async fn gets_what_its_manifest_promises(&self, name: &str) {
        let log = self.log_with(name, "boat", "settled").await;
        let expected = [
            "arguments: fair winds $(UNSET)",
            "greeting: ahoy from sea",
            "level: high",
            "user: 65532:7 groups 7 9",
            "token: first",
            "root: Read-only file system",
            "volume: written",
            "odd-name: kept",
            "api: configmap/settings",
            "api: forbidden",
            "capabilities: 0000000000000000",
            "process: 1",
        ];
        for line in expected {
            assert!(log.lines().any(|seen| seen == line), "no {line:?} in:\n{log}");
        }
        assert!(log.contains(&format!("host: {name}\n")), "{log}");
        let out = self.kubelet.volume("sea", name, "scratch").unwrap().join("out");
        assert_eq!(std::fs::read_to_string(out).unwrap(), "written\n");
        assert!(!Path::new("/tools/kubectl").exists(), "the container's mounts are the machine's");
    }

    async fn becomes_ready_when_its_probe_says_so(&self, name: &str, health: &AtomicU16) {
        let pod = self.pods().get(name).await.unwrap();
        let is_true = |pod: &Pod, kind: &str| {
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|all| all.iter().any(|one| one.type_ == kind && one.status == "True"))
        };
        assert!(!is_true(&pod, "Ready") && is_true(&pod, "PodScheduled"), "{:?}", pod.status);
        health.store(200, Ordering::Relaxed);
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), "sea");
        wait_until("the deployment available", SOON, || async {
            let status = deployments.get("boat").await.map_err(|error| error.to_string())?.status;
            let available = status.as_ref().and_then(|status| status.available_replicas);
            if available == Some(1) { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await
        .unwrap();
    }

    async fn sees_a_changed_secret_and_a_new_token(&self, name: &str) {
        let volume = self.kubelet.volume("sea", name, "scratch").unwrap();
        let seen = |file: &'static str| std::fs::read_to_string(volume.join(file)).unwrap_or_default();
        let token = seen("own-token-sum");
        apply(&self.client, &secret("second")).await.unwrap();
        self.kubelet.rotate_tokens();
        wait_until("the new secret in the container", SOON, async || {
            let now = (seen("token"), seen("own-token-sum"));
            if now.0 == "second" && now.1 != token && !now.1.is_empty() { Ok(()) } else { Err(now.0) }
        })
        .await
        .unwrap();
    }

    async fn is_restarted_after_a_crash(&self, name: &str) {
        let pods = self.pods();
        let before = self.kubelet.process("sea", name, "boat").unwrap();
        self.kubelet.kill("sea", name, "boat").unwrap();
        let crashed = wait_until("one restart", SOON, || async {
            let pod = pods.get(name).await.map_err(|error| error.to_string())?;
            let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
            let status = statuses.first().cloned().ok_or("no container status")?;
            let runs = status.state.as_ref().is_some_and(|state| state.running.is_some());
            if status.restart_count == 1 && runs { Ok(status) } else { Err(format!("{status:?}")) }
        })
        .await
        .unwrap();
        let end = crashed.last_state.and_then(|state| state.terminated).unwrap();
        assert_eq!((end.exit_code, end.reason.as_deref()), (137, Some("Error")), "{end:?}");
        let after = self.kubelet.process("sea", name, "boat").unwrap();
        assert_ne!(before, after);
        assert!(!before.is_alive(), "{before:?}");
    }

    async fn ends_in_order(&self, name: &str) {
        let process = self.kubelet.process("sea", name, "boat").unwrap();
        self.log_with(name, "boat", "token: second").await;
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), "sea");
        deployments.delete("boat", &DeleteParams::default()).await.unwrap();
        let pods = self.pods();
        wait_until("the pod gone", SOON, || async {
            let list = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            if list.items.is_empty() { Ok(()) } else { Err(format!("{:?}", list.items[0].status)) }
        })
        .await
        .unwrap();
        assert!(!process.is_alive(), "{process:?} outlived its pod");
        let log = self.kubelet.log("sea", name, "boat").unwrap();
        assert!(log.ends_with("going home\n"), "{log}");
    }

    async fn runs_init_containers_first_and_ends_with_success(&self) {
        let mounted = |mut container: Value| {
            container["volumeMounts"] = json!([{ "name": "hold", "mountPath": "/hold" }]);
            container
        };
        let unload = "echo unloaded $(cat /hold/cargo) as $(id -u); ls /run/secrets 2>&1; echo told > /dev/termination-log";
        let spec = json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "initContainers": [mounted(sh("load", "echo fish > /hold/cargo"))],
            "containers": [mounted(sh("unload", unload))],
            "volumes": [{ "name": "hold", "emptyDir": {} }],
        });
        self.start("voyage", &spec).await;
        let pods = self.pods();
        let status = wait_until("the voyage over", SOON, || async {
            let status =
                pods.get("voyage").await.map_err(|error| error.to_string())?.status.unwrap_or_default();
            if status.phase.as_deref() == Some("Succeeded") { Ok(status) } else { Err(format!("{status:?}")) }
        })
        .await
        .unwrap();
        let log = self.kubelet.log("sea", "voyage", "unload").unwrap();
        assert!(log.contains("unloaded fish as 0\n") && log.contains("No such file or directory"), "{log}");
        let container = status.container_statuses.unwrap().remove(0);
        assert!(!container.ready, "{container:?}");
        let end = container.state.unwrap().terminated.unwrap();
        assert_eq!(end.message.as_deref(), Some("told\n"), "{end:?}");
    }

    async fn waits_longer_between_crashes(&self) {
        self.start("wreck", &json!({ "containers": [sh("wreck", "exit 3")] })).await;
        let pods = self.pods();
        wait_until("a second restart and a pause", SOON, || async {
            let pod = pods.get("wreck").await.map_err(|error| error.to_string())?;
            let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
            let status = statuses.first().cloned().ok_or("no container status")?;
            let reason = status.state.as_ref().and_then(|state| state.waiting.as_ref()?.reason.clone());
            let code = status
                .last_state
                .as_ref()
                .and_then(|state| state.terminated.as_ref())
                .map(|end| end.exit_code);
            let crashed = status.restart_count >= 2 && code == Some(3);
            let pauses = reason.as_deref() == Some("CrashLoopBackOff");
            if crashed && pauses { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await
        .unwrap();
    }

    async fn start(&self, name: &str, spec: &Value) {
        let pod = json!({ "metadata": { "name": name }, "spec": spec });
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }

    async fn log_with(&self, name: &str, container: &str, line: &str) -> String {
        wait_until(format!("{line:?} in the log"), SOON, || async {
            let log = self.kubelet.log("sea", name, container).map_err(|error| error.to_string())?;
            if log.lines().any(|seen| seen == line) { Ok(log) } else { Err(log) }
        })
        .await
        .unwrap()
    }
}

fn secret(token: &str) -> String {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "keys", "namespace": "sea" },
        "stringData": { "token": token },
    });
    serde_json::from_value::<Secret>(secret.clone()).unwrap();
    secret.to_string()
}

/// A Deployment that uses about all that ours do. Its script tells what it sees, then watches its files. Kubernetes
/// takes `$$` in a command for an escaped `$`, so the shell's own number is written with four.
fn manifests(health_port: u16) -> String {
    let script = r#"
account=/var/run/secrets/kubernetes.io/serviceaccount
ask() {
  /tools/kubectl --server "https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT" \
    --certificate-authority $account/ca.crt --token "$(cat $account/token)" \
    --namespace "$(cat $account/namespace)" --cache-dir /scratch/cache "$@" 2>&1
}
trap 'echo going home; exit 0' TERM
echo "arguments: $*"
echo "greeting: $GREETING"
echo "level: $SETTING_level"
echo "user: $(id -u):$(id -g) groups $(id -G)"
echo "token: $(cat /etc/keys/token)"
echo "root: $(touch /here 2>&1 | sed 's/.*: //')"
echo written > /scratch/out
echo "volume: $(cat /scratch/out)"
echo "odd-name: $(tr '\0' '\n' < /proc/1/environ | sed -n 's/^odd.name-1=//p')"
echo "api: $(ask get configmap settings -o name)"
case "$(ask get secrets)" in *forbidden*) echo "api: forbidden";; *) echo "api: too much";; esac
echo "capabilities: $(sed -n 's/^CapBnd:\t//p' /proc/self/status)"
echo "process: $$$$"
echo "host: $(cat /proc/sys/kernel/hostname)"
echo settled
while :; do
  printf %s "$(cat /etc/keys/token)" > /scratch/token.new
  mv /scratch/token.new /scratch/token
  printf %s "$(md5sum < $account/token)" > /scratch/sum.new
  mv /scratch/sum.new /scratch/own-token-sum
  sleep 0.2
done
"#;
    let role = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] });
    let container = json!({
        "name": "boat",
        "image": "example.org/boat:v1",
        "command": ["/bin/sh", "-c", script, "boat"],
        "args": ["fair", "$(WEATHER)", "$(UNSET)"],
        "env": [
            { "name": "WEATHER", "value": "winds" },
            { "name": "NAMESPACE", "valueFrom": { "fieldRef": { "fieldPath": "metadata.namespace" } } },
            { "name": "GREETING", "value": "ahoy from $(NAMESPACE)" },
            { "name": "odd.name-1", "value": "kept" },
        ],
        "envFrom": [{ "configMapRef": { "name": "settings" }, "prefix": "SETTING_" }],
        "volumeMounts": [
            { "name": "keys", "mountPath": "/etc/keys", "readOnly": true },
            { "name": "scratch", "mountPath": "/scratch" },
        ],
        "readinessProbe": { "httpGet": { "port": health_port, "path": "/readyz" }, "periodSeconds": 1 },
        "securityContext": {
            "readOnlyRootFilesystem": true,
            "allowPrivilegeEscalation": false,
            "runAsNonRoot": true,
            "runAsGroup": 7,
            "runAsUser": 65532,
            "capabilities": { "drop": ["ALL"] },
        },
    });
    let objects = [
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "sea" } }),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "boat", "namespace": "sea" },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": { "name": "boat", "namespace": "sea" }, "rules": [role],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": { "name": "boat", "namespace": "sea" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "boat" },
            "subjects": [{ "kind": "ServiceAccount", "name": "boat", "namespace": "sea" }],
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "settings", "namespace": "sea" },
            "data": { "level": "high" },
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "boat", "namespace": "sea" },
            "spec": {
                "replicas": 1,
                "selector": { "matchLabels": { "app": "boat" } },
                "template": {
                    "metadata": { "labels": { "app": "boat" } },
                    "spec": {
                        "serviceAccountName": "boat",
                        "securityContext": { "fsGroup": 9 },
                        "containers": [container],
                        "volumes": [
                            { "name": "keys", "secret": { "secretName": "keys", "defaultMode": 0o400 } },
                            { "name": "scratch", "emptyDir": {} },
                        ],
                    },
                },
            },
        }),
    ];
    objects.map(|object| object.to_string()).join("\n---\n")
}

/// A server that answers every request with the status that `status` holds.
async fn answer_with(status: Arc<AtomicU16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let answer =
                format!("HTTP/1.1 {} X\r\ncontent-length: 0\r\n\r\n", status.load(Ordering::Relaxed));
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    port
}

async fn kubectl(kubeconfig: &Path, arguments: &[&str]) -> String {
    let program = Programs::locate().unwrap().kubectl().unwrap();
    let mut command = tokio::process::Command::new(program);
    let output = command.arg("--kubeconfig").arg(kubeconfig).args(arguments).output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn config_maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), "default")
}

async fn create(config_maps: &Api<ConfigMap>, name: &str) {
    let config_map = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    config_maps.create(&PostParams::default(), &config_map).await.unwrap();
}

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Send>>;

async fn watch(config_maps: &Api<ConfigMap>) -> Events {
    let version = config_maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    config_maps.watch(&WatchParams::default(), &version).await.unwrap().boxed()
}

async fn next_name(events: &mut Events) -> String {
    match timeout(SOON, events.try_next()).await.unwrap().unwrap() {
        Some(WatchEvent::Added(config_map)) => config_map.name_any(),
        other => panic!("{other:?}"),
    }
}
