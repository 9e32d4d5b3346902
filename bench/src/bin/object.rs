//! Benchmark `object`: what decoding and keeping real objects costs, beside kube's `DynamicObject`.
//!
//! A bare API server is filled with ten thousand objects of many kinds, written as users and controllers write
//! them: created or applied, status set by a second hand. The items of its list pages are then read, as the
//! server sent them, by `mailboat_object::Object` and by `serde_json` into `kube::core::DynamicObject`, in
//! turns, in one process. Live heap is that of all objects held at once.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use http::Request;
use kube::Client;
use kube::core::DynamicObject;
use mailboat_bench::Measurement;
use mailboat_bench::memory::LiveHeap;
use mailboat_object::{ClusterId, ClusterOf, Keep, KindId, Limits, Object, Page, Place};
use mailboat_testkit::{ADMIN, EdgeSpec, World};
use serde_json::{Value, json};

#[global_allocator]
static HEAP: LiveHeap = LiveHeap::new(std::alloc::System, usize::MAX);

const LEAST_OBJECTS: usize = 10_000;
const LEAST_KINDS: usize = 10;
const MOST_HEAP: f64 = 1.3;
const LEAST_SPEED: f64 = 3.0;

/// Each reader reads everything this often, in turns. Its best round counts: whatever disturbs a round only
/// makes it slower.
const ROUNDS: usize = 7;

/// A kind with fewer objects is read too quickly to be timed by itself.
const FEWEST_TIMED: usize = 300;

/// Our field manager. Half of the objects are applied by it, so that there is a hand of ours to be found.
const MANAGER: &str = "mailboat-syncer";
const CLUSTER: &str = "north";
const NAMESPACES: usize = 20;
const WRITES_IN_FLIGHT: usize = 32;
const PAGE_ITEMS: usize = 500;
/// The largest page; no object of this benchmark is near its own limit.
const PAGE_LIMITS: Limits = Limits { bytes: 256 << 20, depth: 100 };

/// One kind as it is served, and how many objects of it are written; 0 where the server has its own.
struct Kind {
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    name: &'static str,
    count: usize,
    body: fn() -> Value,
    /// Set through the subresource by another hand; null where none is.
    status: fn() -> Value,
}

/// A kind and the bytes of all its objects.
struct Listed {
    kind: &'static Kind,
    id: KindId,
    api_version: String,
    items: Vec<Vec<u8>>,
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listed = runtime.block_on(collect())?;
    drop(runtime);
    let objects: usize = listed.iter().map(|listed| listed.items.len()).sum();
    ensure!(
        objects >= LEAST_OBJECTS && listed.len() >= LEAST_KINDS,
        "only {objects} objects of {} kinds were there",
        listed.len()
    );
    let all = format!("all {objects} objects, {} kinds", listed.len());
    // First of all, while no name is known yet: an object's share of what is interned counts as well.
    measure_heap(&all, &listed)?;
    measure_speed(&listed, &all)?.at_least(LEAST_SPEED).print()?;
    for one in listed.iter().filter(|one| one.items.len() >= FEWEST_TIMED) {
        let case = format!("{} {}", one.items.len(), one.kind.resource);
        measure_speed(std::slice::from_ref(one), &case)?.print()?;
    }
    Ok(())
}

/// Fills a bare API server and takes what it lists.
async fn collect() -> Result<Vec<Listed>> {
    let world = World::builder()
        .edge_with(EdgeSpec::bare("objects"))
        .start()
        .await
        .context("starting the testbed")?;
    let edge = world.edge("objects");
    let client = edge.client(ADMIN).await?;
    let begun = Instant::now();
    let writes = fill(&client).await?;
    eprintln!("{writes} writes took {:.1} s", begun.elapsed().as_secs_f64());
    let mut listed = Vec::new();
    for kind in KINDS {
        listed.push(list(&client, kind).await?);
    }
    Ok(listed)
}

async fn fill(client: &Client) -> Result<usize> {
    mailboat_testkit::apply(client, &crd().to_string()).await?;
    for index in 0..NAMESPACES {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace(index)}});
        mailboat_testkit::apply(client, &namespace.to_string()).await?;
    }
    let boat = kube::core::GroupVersionKind::gvk("sea.example", "v1", "Boat");
    mailboat_testkit::served(client, &boat).await?;
    let objects = KINDS.iter().flat_map(|kind| (0..kind.count).map(move |index| (kind, index)));
    let writes = stream::iter(objects)
        .map(|(kind, index)| write(client, kind, index))
        .buffer_unordered(WRITES_IN_FLIGHT)
        .try_fold(0, async |sum, writes| Ok(sum + writes));
    writes.await
}

/// Creates or applies one object, then sets its status if it has one; how many writes that took.
async fn write(client: &Client, kind: &Kind, index: usize) -> Result<usize> {
    let name = format!("{}-{index:05}", kind.name.to_lowercase());
    let mut body = (kind.body)();
    body["apiVersion"] = api_version(kind).into();
    body["kind"] = kind.name.into();
    body["metadata"]["name"] = name.as_str().into();
    body["metadata"]["labels"] =
        json!({"app.kubernetes.io/name": "till", "app.kubernetes.io/instance": name});
    body["metadata"]["annotations"] = json!({"example.com/team": "shops", "example.com/owner": "north"});
    let collection = format!("{}/namespaces/{}/{}", root(kind), namespace(index % NAMESPACES), kind.resource);
    let request = if index.is_multiple_of(2) {
        Request::post(format!("{collection}?fieldManager=kubectl-create"))
            .header("content-type", "application/json")
    } else {
        Request::patch(format!("{collection}/{name}?fieldManager={MANAGER}&force=true"))
            .header("content-type", "application/apply-patch+yaml")
    };
    send(client, request, &body).await.with_context(|| format!("writing {} {name}", kind.name))?;
    let status = (kind.status)();
    if status.is_null() {
        return Ok(1);
    }
    let request = Request::patch(format!("{collection}/{name}/status?fieldManager=kube-controller-manager"))
        .header("content-type", "application/merge-patch+json");
    let patch = json!({"status": status});
    send(client, request, &patch)
        .await
        .with_context(|| format!("setting the status of {} {name}", kind.name))?;
    Ok(2)
}

async fn send(client: &Client, request: http::request::Builder, body: &Value) -> Result<()> {
    client.request_text(request.body(serde_json::to_vec(body)?)?).await?;
    Ok(())
}

/// All objects of a kind, page by page, each in the bytes that the server sent.
async fn list(client: &Client, kind: &'static Kind) -> Result<Listed> {
    let mut items = Vec::new();
    let mut query = String::new();
    loop {
        let path = format!("{}/{}?limit={PAGE_ITEMS}{query}", root(kind), kind.resource);
        let text = client.request_text(Request::get(&path).body(Vec::new())?).await.context(path)?;
        let page = Page::parse(text.as_bytes(), PAGE_LIMITS)?;
        items.extend(page.items().map(<[u8]>::to_vec));
        match &page.continue_token {
            Some(token) => query = format!("&continue={token}"),
            None => break,
        }
    }
    Ok(Listed { kind, id: KindId::new(kind.group, kind.resource), api_version: api_version(kind), items })
}

/// How fast both read the same bytes.
fn measure_speed(listed: &[Listed], case: &str) -> Result<Measurement> {
    let cluster = ClusterId::new(CLUSTER);
    let bytes: usize = listed.iter().flat_map(|listed| &listed.items).map(Vec::len).sum();
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        ours = ours.min(timed(listed, |item, listed| Object::decode(item, &place(&cluster, listed)))?);
        theirs = theirs.min(timed(listed, |item, _| serde_json::from_slice::<DynamicObject>(item))?);
    }
    let speed = |time: Duration| number(bytes) / 1e6 / time.as_secs_f64();
    let measured = Measurement::new("object", case, "decoding").value(speed(ours), "MB/s");
    Ok(measured.beside("kube DynamicObject", speed(theirs)))
}

/// What all objects take while they are held, beside the JSON that is kept of them and beside the same objects
/// as trees.
fn measure_heap(case: &str, listed: &[Listed]) -> Result<()> {
    let cluster = ClusterId::new(CLUSTER);
    let (ours, objects) = held(listed, |item, listed| {
        Object::decode(item, &place(&cluster, listed)).map(Arc::new).map_err(Into::into)
    })?;
    let kept: usize = objects.iter().map(|object| object.json().len()).sum();
    drop(objects);
    let (theirs, _) = held(listed, |item, _| {
        serde_json::from_slice::<DynamicObject>(item).map(Arc::new).map_err(Into::into)
    })?;
    let measured = Measurement::new("object", case, "live heap").value(number(ours), "bytes");
    measured.clone().beside("JSON bytes kept", number(kept)).at_most(MOST_HEAP).print()?;
    measured.beside("kube DynamicObject", number(theirs)).print()?;
    Ok(())
}

fn place<'a>(cluster: &'a ClusterId, listed: &'a Listed) -> Place<'a> {
    Place {
        cluster: ClusterOf::One(cluster),
        kind: &listed.id,
        api_version: &listed.api_version,
        kind_name: listed.kind.name,
        manager: MANAGER,
        keep: Keep::Whole,
        limits: Limits::default(),
    }
}

/// How long it takes to read everything once, each object dropped again.
fn timed<T, E>(listed: &[Listed], read: impl Fn(&[u8], &Listed) -> Result<T, E>) -> Result<Duration>
where
    anyhow::Error: From<E>,
{
    let begun = Instant::now();
    for kind in listed {
        for item in &kind.items {
            black_box(read(black_box(item), kind)?);
        }
    }
    Ok(begun.elapsed())
}

/// The live heap of everything held at once, and what is held.
fn held<T>(
    listed: &[Listed],
    read: impl Fn(&[u8], &Listed) -> Result<Arc<T>>,
) -> Result<(usize, Vec<Arc<T>>)> {
    let before = HEAP.allocated();
    let mut held = Vec::with_capacity(listed.iter().map(|listed| listed.items.len()).sum());
    for kind in listed {
        for item in &kind.items {
            held.push(read(item, kind)?);
        }
    }
    Ok((HEAP.allocated().saturating_sub(before), held))
}

#[expect(clippy::cast_precision_loss, reason = "sizes far below 2^52")]
fn number(count: usize) -> f64 {
    count as f64
}

fn namespace(index: usize) -> String {
    format!("shop-{index:02}")
}

fn api_version(kind: &Kind) -> String {
    if kind.group.is_empty() { kind.version.to_owned() } else { format!("{}/{}", kind.group, kind.version) }
}

fn root(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    }
}

/// What is written by us, and below it what every server has by itself.
static KINDS: &[Kind] = &[
    Kind { count: 2000, body: pod, status: pod_status, ..kind("", "v1", "pods", "Pod") },
    Kind {
        count: 1500,
        body: deployment,
        status: deployment_status,
        ..kind("apps", "v1", "deployments", "Deployment")
    },
    Kind { count: 300, body: stateful_set, ..kind("apps", "v1", "statefulsets", "StatefulSet") },
    Kind { count: 500, body: job, ..kind("batch", "v1", "jobs", "Job") },
    Kind { count: 2500, body: config_map, ..kind("", "v1", "configmaps", "ConfigMap") },
    Kind { count: 800, body: secret, ..kind("", "v1", "secrets", "Secret") },
    Kind { count: 1000, body: service, ..kind("", "v1", "services", "Service") },
    Kind {
        count: 300,
        body: network_policy,
        ..kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
    },
    Kind { count: 300, body: role, ..kind("rbac.authorization.k8s.io", "v1", "roles", "Role") },
    Kind { count: 800, body: boat, status: boat_status, ..kind("sea.example", "v1", "boats", "Boat") },
    kind("", "v1", "namespaces", "Namespace"),
    kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"),
    kind("apiregistration.k8s.io", "v1", "apiservices", "APIService"),
    kind("coordination.k8s.io", "v1", "leases", "Lease"),
    kind("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema"),
    kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole"),
    kind("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"),
    kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass"),
];

const fn kind(
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    kind: &'static str,
) -> Kind {
    Kind { group, version, resource, name: kind, count: 0, body: none, status: none }
}

fn none() -> Value {
    Value::Null
}

fn pod_spec() -> Value {
    json!({
        "containers": [
            {
                "name": "till", "image": "registry.example/shops/till:1.4.2", "args": ["--listen=:8080", "--region=north"],
                "ports": [{"containerPort": 8080, "name": "http"}, {"containerPort": 9090, "name": "metrics"}],
                "env": [
                    {"name": "REGION", "value": "north"},
                    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "till", "key": "password"}}}
                ],
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
                "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}, "periodSeconds": 20},
                "volumeMounts": [{"name": "prices", "mountPath": "/etc/till"}]
            },
            {"name": "log", "image": "registry.example/log:2", "args": ["--to=center"]}
        ],
        "volumes": [{"name": "prices", "configMap": {"name": "prices"}}],
        "tolerations": [{"key": "edge", "operator": "Exists", "effect": "NoSchedule"}]
    })
}

fn pod_template() -> Value {
    json!({"metadata": {"labels": {"app": "till"}}, "spec": pod_spec()})
}

fn pod() -> Value {
    json!({"spec": pod_spec()})
}

fn pod_status() -> Value {
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"]
        .map(|kind| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}));
    json!({
        "phase": "Running", "hostIP": "10.1.2.3", "podIP": "10.2.3.4", "podIPs": [{"ip": "10.2.3.4"}],
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": conditions,
        "containerStatuses": [{
            "name": "till", "ready": true, "restartCount": 0, "image": "registry.example/shops/till:1.4.2",
            "imageID": "registry.example/shops/till@sha256:0a1b", "containerID": "containerd://0123456789abcdef",
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        }]
    })
}

fn deployment() -> Value {
    json!({"spec": {"replicas": 3, "selector": {"matchLabels": {"app": "till"}}, "template": pod_template()}})
}

fn deployment_status() -> Value {
    json!({
        "observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": 3,
        "conditions": [{
            "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
            "message": "Deployment has minimum availability.", "lastUpdateTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z"
        }]
    })
}

fn stateful_set() -> Value {
    json!({"spec": {
        "serviceName": "till", "replicas": 1, "selector": {"matchLabels": {"app": "till"}}, "template": pod_template()
    }})
}

fn job() -> Value {
    let mut template = pod_template();
    template["spec"]["restartPolicy"] = "Never".into();
    json!({"spec": {"template": template, "backoffLimit": 2}})
}

fn config_map() -> Value {
    let prices: Vec<_> = (0..24)
        .map(|item| format!("item-{item}: {{ price: {item}.50, name: \"thing <{item}>\" }}\n"))
        .collect();
    json!({"data": {"prices.yaml": prices.concat(), "region": "north", "currency": "EUR"}})
}

fn secret() -> Value {
    json!({"type": "Opaque", "data": {"password": "bm90LWEtcmVhbC1vbmU=", "certificate": "MIIB".repeat(300)}})
}

fn service() -> Value {
    json!({"spec": {
        "clusterIP": "None", "selector": {"app": "till"},
        "ports": [{"name": "http", "port": 80, "targetPort": "http"}, {"name": "metrics", "port": 9090}]
    }})
}

fn network_policy() -> Value {
    json!({"spec": {
        "podSelector": {"matchLabels": {"app": "till"}}, "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"namespaceSelector": {}}], "ports": [{"port": 8080, "protocol": "TCP"}]}]
    }})
}

fn role() -> Value {
    json!({"rules": [
        {"apiGroups": [""], "resources": ["pods", "configmaps", "secrets"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch", "patch"]}
    ]})
}

fn boat() -> Value {
    json!({"spec": {
        "length": 12.5, "tonnage": 1.0, "name": "Mary", "notes": "carries the post",
        "crew": [{"name": "Anna", "age": 40}, {"name": "Ben", "age": 33}], "route": {"from": "north", "to": ["a", "b"]}
    }})
}

fn boat_status() -> Value {
    json!({"phase": "Sailing", "knots": 7.5, "position": {"latitude": 54.1, "longitude": 7.9}})
}

fn crd() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": open, "status": open}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.sea.example"},
        "spec": {
            "group": "sea.example", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}
            }]
        }
    })
}
