//! Workloads in a real cluster (controller-manager, scheduler, KWOK) and simulated: the same objects end in the same
//! states, but for times, generated names and addresses.

use std::time::Duration;

use futures::future::join_all;
use http_body_util::BodyExt as _;
use kube::client::Body;
use mailboat_hub::catalog;
use mailboat_hub::workloads::{Settings, Workloads};
use mailboat_machinery::{Machine, Moment, Patch, Seeded, Settings as MachineSettings, WriteOptions};
use mailboat_object::{ClusterId, Key, KindId, Name};
use mailboat_testkit::{ADMIN, EdgeSpec, World, wait_until};
use serde_json::{Value, json};

/// Real pods come up in a second or two each; a stateful set takes them one by one.
const LIMIT: Duration = Duration::from_mins(2);

struct Case {
    group: &'static str,
    resource: &'static str,
    body: Value,
    /// Merged into it when it stands.
    then: Option<Value>,
}

fn template(labels: &Value) -> Value {
    json!({
        "metadata": { "labels": labels },
        "spec": { "containers": [{ "name": "web", "image": "web:1", "ports": [{ "name": "http", "containerPort": 8080 }] }] },
    })
}

fn case(group: &'static str, resource: &'static str, kind: &str, name: &str, spec: &Value) -> Case {
    let labels = json!({ "app": name });
    let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let mut body =
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "spec": spec });
    body["spec"]["template"] = template(&labels);
    if group == "apps" {
        body["spec"]["selector"] = json!({ "matchLabels": labels });
    }
    if resource == "jobs" {
        body["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    }
    Case { group, resource, body, then: None }
}

fn cases() -> Vec<Case> {
    let apps = |resource, kind: &str, name: &str, spec: &Value| case("apps", resource, kind, name, spec);
    let job = |name: &str, spec: &Value| case("batch", "jobs", "Job", name, spec);
    let mut changed = apps("deployments", "Deployment", "changed", &json!({ "replicas": 3 }));
    let image = json!([{ "name": "web", "image": "web:2" }]);
    changed.then = Some(json!({ "spec": { "template": { "spec": { "containers": image } } } }));
    let mut scaled = apps("deployments", "Deployment", "scaled", &json!({ "replicas": 1 }));
    scaled.then = Some(json!({ "spec": { "replicas": 4 } }));
    let mut nowhere = apps("deployments", "Deployment", "nowhere", &json!({ "replicas": 2 }));
    nowhere.body["spec"]["template"]["spec"]["nodeSelector"] = json!({ "there": "is-none" });
    let recreate = json!({ "replicas": 2, "strategy": { "type": "Recreate" } });
    vec![
        apps("deployments", "Deployment", "plain", &json!({ "replicas": 3 })),
        apps("deployments", "Deployment", "none", &json!({ "replicas": 0 })),
        apps("deployments", "Deployment", "recreated", &recreate),
        changed,
        scaled,
        nowhere,
        apps("replicasets", "ReplicaSet", "set", &json!({ "replicas": 2 })),
        apps("statefulsets", "StatefulSet", "ordered", &json!({ "replicas": 2, "serviceName": "ordered" })),
        apps(
            "statefulsets",
            "StatefulSet",
            "parallel",
            &json!({ "replicas": 2, "serviceName": "parallel", "podManagementPolicy": "Parallel" }),
        ),
        apps("daemonsets", "DaemonSet", "everywhere", &json!({})),
        job("once", &json!({})),
        job("thrice", &json!({ "completions": 3, "parallelism": 2 })),
        job("suspended", &json!({ "suspend": true })),
    ]
}

/// The status without times and generated names.
fn normalized(status: &Value, name: &str) -> Value {
    fn walk(value: &mut Value, name: &str) {
        match value {
            Value::Object(members) => {
                members.retain(|member, _| !member.ends_with("Time"));
                for value in members.values_mut() {
                    walk(value, name);
                }
            }
            Value::Array(elements) => {
                for value in elements.iter_mut() {
                    walk(value, name);
                }
                elements.sort_by_key(ToString::to_string);
            }
            Value::String(text) => {
                let words = text.split(' ').map(|word| {
                    let hashed = word.trim_matches('"').strip_prefix(&format!("{name}-")).is_some();
                    if hashed { format!("{name}-HASH") } else { word.to_owned() }
                });
                *text = words.collect::<Vec<_>>().join(" ");
            }
            _ => {}
        }
    }
    let mut status = status.clone();
    walk(&mut status, name);
    status
}

struct Real(kube::Client);

impl Real {
    async fn send(&self, method: &str, path: &str, content: &str, body: &Value) -> Value {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("accept", "application/json").header("content-type", content);
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = self.0.send(request.body(Body::from(bytes)).unwrap()).await.unwrap();
        let good = answer.status().is_success();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        assert!(good, "{method} {path}: {answer}");
        answer
    }

    fn path(case: &Case) -> String {
        format!("/apis/{}/v1/namespaces/default/{}", case.group, case.resource)
    }

    /// Waits until a status is as expected; answers how it differs if that never happens.
    async fn comes_to(&self, case: &Case, expected: &Value) -> Result<(), String> {
        let name = case.body["metadata"]["name"].as_str().unwrap();
        let path = format!("{}/{name}", Self::path(case));
        let waited = wait_until(name, LIMIT, || async {
            let object = self.send("GET", &path, "application/json", &Value::Null).await;
            let status = normalized(&object["status"], name);
            if status == *expected { Ok(()) } else { Err(status.to_string()) }
        });
        let outcome = waited.await;
        outcome.map_err(|late| format!("{name}:\n  real      {}\n  simulated {expected}", late.last_seen))
    }
}

/// The same cases on a machine, with time of its own.
struct Simulated {
    machine: Machine,
    workloads: Workloads,
    random: Seeded,
    now_ms: u64,
}

impl Simulated {
    fn new(nodes: usize) -> Self {
        let mut machine = Machine::new(MachineSettings::default());
        machine
            .serve(&ClusterId::new("here"), catalog::kinds(mailboat_machinery::Flavor::Kubernetes).unwrap());
        machine.keep_changes();
        let settings = Settings { nodes, ..Settings::default() };
        let workloads = Workloads::new(ClusterId::new("here"), settings);
        let mut world = Self { machine, workloads, random: Seeded(1), now_ms: 1_790_000_000_000 };
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } });
        let key = Key { namespace: Name::EMPTY, ..key("", "namespaces", "default") };
        world.act(|machine, moment| machine.create(&key, body, &WriteOptions::default(), moment).unwrap());
        world.workloads.start(&mut world.machine, world.now_ms, &mut world.random);
        world
    }

    fn act<T>(&mut self, act: impl FnOnce(&mut Machine, &mut Moment<'_>) -> T) -> T {
        act(&mut self.machine, &mut Moment { now_seconds: self.now_ms / 1_000, random: &mut self.random })
    }

    fn take_in(&mut self) -> bool {
        let changes = self.machine.take_changes();
        for change in &changes {
            self.workloads.observe(change);
        }
        !changes.is_empty()
    }

    fn settle(&mut self) {
        let until = self.now_ms + 60_000;
        loop {
            let next = self.workloads.step(&mut self.machine, self.now_ms, &mut self.random);
            match next {
                _ if self.take_in() => {}
                Some(next) if next <= until => self.now_ms = next.max(self.now_ms),
                _ => break,
            }
        }
        self.now_ms = until;
    }
}

fn key(group: &str, resource: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::new("here"),
        kind: KindId::new(group, resource),
        namespace: Name::new("default"),
        name: Name::new(name),
    }
}

#[tokio::test]
async fn workloads_end_as_in_a_real_cluster() {
    let world = World::builder().edge_with(EdgeSpec::new("mill").with_nodes(2)).start().await.unwrap();
    let real = Real(world.edge("mill").client(ADMIN).await.unwrap());
    let mut simulated = Simulated::new(2);
    let cases = cases();
    for case in &cases {
        real.send("POST", &Real::path(case), "application/json", &case.body).await;
        let at = key(case.group, case.resource, "");
        let body = case.body.clone();
        simulated.act(|machine, moment| machine.create(&at, body, &WriteOptions::default(), moment).unwrap());
    }
    simulated.take_in();
    simulated.settle();
    let mut different = compare(&real, &simulated, &cases).await;
    for case in &cases {
        let Some(patch) = &case.then else { continue };
        let name = case.body["metadata"]["name"].as_str().unwrap();
        let path = format!("{}/{name}", Real::path(case));
        real.send("PATCH", &path, "application/merge-patch+json", patch).await;
        let (at, options) = (key(case.group, case.resource, name), WriteOptions::default());
        simulated.act(|machine, moment| machine.patch(&at, Patch::Merge(patch), &options, moment).unwrap());
    }
    simulated.take_in();
    simulated.settle();
    different.extend(compare(&real, &simulated, &cases).await);
    println!("{} workloads, {} end differently", cases.len(), different.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// How the real workloads end differently from the simulated ones.
async fn compare(real: &Real, simulated: &Simulated, cases: &[Case]) -> Vec<String> {
    let comparisons = cases.iter().map(|case| async move {
        let name = case.body["metadata"]["name"].as_str().unwrap();
        let object = simulated.machine.get(&key(case.group, case.resource, name)).unwrap();
        real.comes_to(case, &normalized(&object.body()["status"], name)).await
    });
    join_all(comparisons).await.into_iter().filter_map(Result::err).collect()
}
