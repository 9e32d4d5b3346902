//! Workloads come to the states that users wait for. `tests/real` compares end states with real controllers.

use std::sync::Arc;

use mailboat_machinery::{
    DeleteOptions, Kind, Moment, Origin, Patch, Rules, Schema, Seeded, Settings as MachineSettings, Stored,
    WriteOptions, builtin,
};
use mailboat_object::KindId;
use serde_json::json;

use super::*;

/// A cluster with time of its own.
struct World {
    machine: Machine,
    workloads: Workloads,
    random: Seeded,
    now_ms: u64,
}

const KINDS_SERVED: [(&str, &str, &str, &str); 12] = [
    ("", "v1", "namespaces", "Namespace"),
    ("", "v1", "configmaps", "ConfigMap"),
    ("", "v1", "serviceaccounts", "ServiceAccount"),
    ("", "v1", "nodes", "Node"),
    ("", "v1", "pods", "Pod"),
    ("", "v1", "services", "Service"),
    ("apps", "v1", "deployments", "Deployment"),
    ("apps", "v1", "replicasets", "ReplicaSet"),
    ("apps", "v1", "statefulsets", "StatefulSet"),
    ("apps", "v1", "daemonsets", "DaemonSet"),
    ("batch", "v1", "jobs", "Job"),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
];

fn is_namespaced(resource: &str) -> bool {
    !matches!(resource, "nodes" | "namespaces")
}

fn here() -> ClusterId {
    ClusterId::new("here")
}

fn key(group: &str, resource: &str, name: &str) -> Key {
    let namespace = if is_namespaced(resource) { "default" } else { "" };
    Key {
        cluster: here(),
        kind: KindId::new(group, resource),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }
}

impl World {
    fn new(settings: Settings) -> Self {
        let mut machine = Machine::new(MachineSettings::default());
        for (group, version, resource, name) in KINDS_SERVED {
            let id = KindId::new(group, resource);
            let rules = Rules { defaults: None, check: None, prepare: None, ..builtin::rules(&id) };
            let namespaced = is_namespaced(resource);
            let versions = [(version, Schema::permissive())];
            let kind = Kind::new(id, name, namespaced, versions, Origin::Custom, rules);
            machine.serve(&here(), [Arc::new(kind)]);
        }
        machine.keep_changes();
        let mut random = Seeded(1);
        let default = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } });
        let mut moment = Moment { now_seconds: 1_790_000_000, random: &mut random };
        machine.create(&key("", "namespaces", ""), default, &WriteOptions::default(), &mut moment).unwrap();
        let mut world =
            Self { machine, workloads: Workloads::new(here(), settings), random, now_ms: 1_790_000_000_000 };
        world.workloads.start(&mut world.machine, world.now_ms, &mut world.random);
        world.take_in();
        world
    }

    fn take_in(&mut self) -> usize {
        let changes = self.machine.take_changes();
        for change in &changes {
            self.workloads.observe(change);
        }
        changes.len()
    }

    /// Lets time pass until nothing is due any more, or until the limit.
    fn run(&mut self, limit: Duration) {
        let until = self.now_ms + u64::try_from(limit.as_millis()).unwrap();
        loop {
            let next = self.workloads.step(&mut self.machine, self.now_ms, &mut self.random);
            let changed = self.take_in() + self.collect();
            match next {
                _ if changed > 0 => {}
                Some(next) if next <= until => self.now_ms = next.max(self.now_ms),
                _ => break,
            }
        }
        self.now_ms = until;
    }

    /// What the server does by itself: dependents follow their owners.
    fn collect(&mut self) -> usize {
        let mut moment = Moment { now_seconds: self.now_ms / 1_000, random: &mut self.random };
        self.machine.collect_garbage(&here(), &mut moment);
        self.take_in()
    }

    fn settle(&mut self) {
        self.run(Duration::from_mins(1));
    }

    fn create(&mut self, group: &str, resource: &str, body: Value) {
        let mut moment = Moment { now_seconds: self.now_ms / 1_000, random: &mut self.random };
        let key = key(group, resource, "");
        self.machine.create(&key, body, &WriteOptions::default(), &mut moment).unwrap();
        self.take_in();
    }

    fn merge(&mut self, key: &Key, patch: &Value) {
        let mut moment = Moment { now_seconds: self.now_ms / 1_000, random: &mut self.random };
        self.machine.patch(key, Patch::Merge(patch), &WriteOptions::default(), &mut moment).unwrap();
        self.take_in();
    }

    fn delete(&mut self, key: &Key) {
        let mut moment = Moment { now_seconds: self.now_ms / 1_000, random: &mut self.random };
        self.machine.delete(key, &DeleteOptions::default(), &mut moment).unwrap();
        self.take_in();
    }

    fn status(&self, key: &Key) -> Value {
        self.machine.get(key).unwrap().body()["status"].clone()
    }

    fn list(&self, group: &str, resource: &str) -> Vec<Arc<Stored>> {
        let Key { cluster, kind, .. } = key(group, resource, "");
        let request = mailboat_machinery::ListRequest { cluster: Some(cluster), kind, ..Default::default() };
        self.machine.list(&request).unwrap().items
    }
}

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": image, "ports": [{ "name": "http", "containerPort": 8080 }] }] },
    })
}

fn workload(api_version: &str, kind: &str, spec: &Value) -> Value {
    let mut body =
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "web" }, "spec": spec });
    body["spec"]["selector"] = json!({ "matchLabels": { "app": "web" } });
    body
}

fn deployment(replicas: i64) -> Value {
    let spec = json!({ "replicas": replicas, "template": template("web:1") });
    workload("apps/v1", "Deployment", &spec)
}

/// What `kubectl rollout status` waits for.
fn rolled_out(object: &Stored) -> bool {
    let (spec, status) = (&object.body()["spec"], &object.body()["status"]);
    let wanted = number(&spec["replicas"], 1);
    status["observedGeneration"] == object.generation()
        && number(&status["updatedReplicas"], 0) == wanted
        && number(&status["replicas"], 0) == wanted
        && number(&status["availableReplicas"], 0) == wanted
}

#[test]
fn every_namespace_has_the_certificate_that_its_pods_trust() {
    let at = key("", "configmaps", "kube-root-ca.crt");
    let mut world = World::new(Settings { root_ca: "PEM".to_owned(), ..Settings::default() });
    world.settle();
    let data = |world: &World| world.machine.get(&at).map(|found| found.body()["data"].clone()).ok();
    assert_eq!(data(&world), Some(json!({ "ca.crt": "PEM" })));
    world.merge(&at, &json!({ "data": { "ca.crt": "another" } }));
    world.settle();
    assert_eq!(data(&world), Some(json!({ "ca.crt": "PEM" })));
    world.delete(&at);
    world.settle();
    assert_eq!(data(&world), Some(json!({ "ca.crt": "PEM" })));
    let mut without = World::new(Settings::default());
    without.settle();
    assert_eq!(data(&without), None);
}

#[test]
fn pods_come_when_their_account_does() {
    let mut world = World::new(Settings::default());
    world.machine.give_tokens();
    let mut late = deployment(2);
    late["spec"]["template"]["spec"]["serviceAccountName"] = "robot".into();
    world.create("apps", "deployments", late);
    world.settle();
    assert_eq!(world.list("", "pods").len(), 0, "they have no account yet");
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "robot" } });
    world.create("", "serviceaccounts", account);
    world.settle();
    assert!(rolled_out(&world.machine.get(&key("apps", "deployments", "web")).unwrap()));
}

#[test]
fn a_deployment_comes_up() {
    let mut world = World::new(Settings::default());
    world.create("apps", "deployments", deployment(3));
    world.settle();
    let at = key("apps", "deployments", "web");
    let status = world.status(&at);
    assert!(rolled_out(&world.machine.get(&at).unwrap()), "{status}");
    for pod in world.list("", "pods") {
        let node =
            world.machine.get(&key("", "nodes", pod.body()["spec"]["nodeName"].as_str().unwrap())).unwrap();
        assert_eq!(pod.body()["status"]["hostIP"], node.body()["status"]["addresses"][0]["address"]);
    }
    assert_eq!(status["readyReplicas"], 3);
    assert!(status.get("unavailableReplicas").is_none(), "{status}");
    let reasons: Vec<&str> = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|condition| condition["reason"].as_str())
        .collect();
    assert_eq!(reasons, ["MinimumReplicasAvailable", "NewReplicaSetAvailable"]);
    let pods = world.list("", "pods");
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| pod.body()["status"]["phase"] == "Running"));
    let version = world.machine.version();
    world.settle();
    assert_eq!(world.machine.version(), version, "at rest nothing is written");
}

#[test]
fn a_rollout_never_has_too_few_or_too_many() {
    let mut world = World::new(Settings::default());
    world.create("apps", "deployments", deployment(4));
    world.settle();
    let at = key("apps", "deployments", "web");
    world.merge(&at, &json!({ "spec": { "template": template("web:2") } }));
    for _ in 0..400 {
        world.run(Duration::from_millis(50));
        let pods = world.list("", "pods");
        let active: Vec<_> = pods.iter().filter(|pod| super::template::is_active(pod)).collect();
        let ready = active.iter().filter(|pod| super::template::is_ready(pod)).count();
        assert!(active.len() <= 5, "a quarter more than 4 at most, not {}", active.len());
        assert!(ready >= 3, "a quarter less than 4 at most, not {ready}");
    }
    assert!(rolled_out(&world.machine.get(&at).unwrap()), "{}", world.status(&at));
    let images: Vec<Value> = world
        .list("", "pods")
        .iter()
        .map(|pod| pod.body()["spec"]["containers"][0]["image"].clone())
        .collect();
    assert_eq!(images, ["web:2", "web:2", "web:2", "web:2"]);
    let object = world.machine.get(&at).unwrap();
    assert_eq!(object.metadata()["annotations"]["deployment.kubernetes.io/revision"], "2");
    world.merge(&at, &json!({ "spec": { "template": template("web:1") } }));
    world.settle();
    let object = world.machine.get(&at).unwrap();
    assert_eq!(object.metadata()["annotations"]["deployment.kubernetes.io/revision"], "3", "back is forward");
    assert_eq!(world.list("apps", "replicasets").len(), 2);
}

#[test]
fn scaling_and_deleting_take_pods_along() {
    let mut world = World::new(Settings::default());
    world.create("apps", "deployments", deployment(1));
    world.settle();
    let at = key("apps", "deployments", "web");
    world.merge(&at, &json!({ "spec": { "replicas": 5 } }));
    world.settle();
    assert_eq!(world.list("", "pods").len(), 5);
    world.merge(&at, &json!({ "spec": { "replicas": 2 } }));
    world.settle();
    assert_eq!(world.list("", "pods").len(), 2);
    world.delete(&at);
    world.settle();
    assert_eq!(world.list("apps", "replicasets").len() + world.list("", "pods").len(), 0);
}

#[test]
fn recreate_waits_for_the_last_of_the_old() {
    let mut world = World::new(Settings::default());
    let mut body = deployment(2);
    body["spec"]["strategy"] = json!({ "type": "Recreate" });
    world.create("apps", "deployments", body);
    world.settle();
    world.merge(&key("apps", "deployments", "web"), &json!({ "spec": { "template": template("web:2") } }));
    for _ in 0..200 {
        world.run(Duration::from_millis(20));
        let mut images: Vec<String> = world
            .list("", "pods")
            .iter()
            .map(|pod| pod.body()["spec"]["containers"][0]["image"].to_string())
            .collect();
        images.dedup();
        assert!(images.len() <= 1, "old and new at once: {images:?}");
    }
    assert!(rolled_out(&world.machine.get(&key("apps", "deployments", "web")).unwrap()));
}

#[test]
fn what_cannot_be_placed_says_so_and_times_out() {
    let mut world = World::new(Settings { nodes: 0, ..Settings::default() });
    let mut body = deployment(1);
    body["spec"]["progressDeadlineSeconds"] = json!(30);
    world.create("apps", "deployments", body);
    world.run(Duration::from_secs(5));
    let pod = world.list("", "pods").remove(0);
    let placed = condition::find(pod.body(), "PodScheduled").unwrap();
    assert_eq!(
        (placed["status"].as_str(), placed["reason"].as_str()),
        (Some("False"), Some("Unschedulable"))
    );
    world.run(Duration::from_mins(1));
    let object = world.machine.get(&key("apps", "deployments", "web")).unwrap();
    let progress = condition::find(object.body(), "Progressing").unwrap();
    assert_eq!(progress["reason"], "ProgressDeadlineExceeded", "{progress}");
}

#[test]
fn a_stateful_set_counts_up_one_by_one_and_replaces_from_above() {
    let mut world = World::new(Settings::default());
    let spec = json!({ "replicas": 3, "serviceName": "web", "template": template("web:1") });
    world.create("apps", "statefulsets", workload("apps/v1", "StatefulSet", &spec));
    world.run(Duration::from_millis(300));
    let names = |world: &World| -> Vec<String> {
        world.list("", "pods").iter().map(|pod| pod.key.name.to_string()).collect()
    };
    assert_eq!(names(&world), ["web-0"], "the second waits for the first");
    world.settle();
    assert_eq!(names(&world), ["web-0", "web-1", "web-2"]);
    let at = key("apps", "statefulsets", "web");
    let before = world.status(&at);
    assert_eq!((&before["readyReplicas"], &before["currentReplicas"]), (&json!(3), &json!(3)), "{before}");
    world.merge(&at, &json!({ "spec": { "template": template("web:2") } }));
    for _ in 0..300 {
        world.run(Duration::from_millis(50));
        let ready = world.list("", "pods").iter().filter(|pod| super::template::is_ready(pod)).count();
        assert!(ready >= 2, "one at a time");
    }
    let after = world.status(&at);
    assert_eq!(after["updatedReplicas"], 3, "{after}");
    assert_eq!(after["currentRevision"], after["updateRevision"]);
    assert_ne!(before["currentRevision"], after["currentRevision"]);
    world.merge(&at, &json!({ "spec": { "replicas": 1 } }));
    world.settle();
    assert_eq!(names(&world), ["web-0"]);
}

#[test]
fn a_daemon_set_is_on_every_node() {
    let mut world = World::new(Settings { nodes: 3, ..Settings::default() });
    let spec = json!({ "template": template("web:1") });
    world.create("apps", "daemonsets", workload("apps/v1", "DaemonSet", &spec));
    world.settle();
    let at = key("apps", "daemonsets", "web");
    let status = world.status(&at);
    assert_eq!(
        status,
        json!({
            "observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberMisscheduled": 0,
            "numberReady": 3, "updatedNumberScheduled": 3, "numberAvailable": 3,
        })
    );
    world.merge(&at, &json!({ "spec": { "template": template("web:2") } }));
    world.settle();
    assert_eq!(world.status(&at)["updatedNumberScheduled"], 3);
    assert_eq!(world.status(&at)["observedGeneration"], 2);
}

#[test]
fn a_job_completes_or_gives_up() {
    let job = |spec: Value| {
        let mut body =
            json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "web" }, "spec": spec });
        body["spec"]["template"] = template("web:1");
        body["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
        body
    };
    let at = key("batch", "jobs", "web");
    let mut world = World::new(Settings::default());
    world.create("batch", "jobs", job(json!({ "completions": 3, "parallelism": 2 })));
    world.settle();
    let status = world.status(&at);
    assert_eq!((&status["succeeded"], status.get("active")), (&json!(3), None), "{status}");
    assert!(status["completionTime"].is_string() && status["startTime"].is_string());
    let object = world.machine.get(&at).unwrap();
    assert!(
        condition::holds(object.body(), "Complete") && condition::holds(object.body(), "SuccessCriteriaMet")
    );

    let mut world = World::new(Settings { failures_per_mille: 1000, ..Settings::default() });
    world.create("batch", "jobs", job(json!({ "completions": 1, "parallelism": 1, "backoffLimit": 2 })));
    world.settle();
    let object = world.machine.get(&at).unwrap();
    assert!(condition::holds(object.body(), "Failed"), "{}", object.body()["status"]);
    assert_eq!(object.body()["status"]["failed"], 3);
}

#[test]
fn a_service_knows_who_serves() {
    let mut world = World::new(Settings::default());
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "type": "LoadBalancer", "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": "http" }] },
    });
    world.create("", "services", service);
    world.create("apps", "deployments", deployment(2));
    world.settle();
    let address = &world.status(&key("", "services", "web"))["loadBalancer"]["ingress"][0]["ip"];
    assert!(address.as_str().is_some_and(|address| address.starts_with("172.30.")), "{address}");
    let slices = world.list("discovery.k8s.io", "endpointslices");
    let slice = slices.first().unwrap().body();
    let endpoints = slice["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 2);
    assert!(endpoints.iter().all(|endpoint| endpoint["conditions"]["ready"] == true), "{slice}");
    assert_eq!(slice["ports"][0]["port"], 8080, "{slice}");
    world.merge(&key("apps", "deployments", "web"), &json!({ "spec": { "replicas": 0 } }));
    world.settle();
    let slices = world.list("discovery.k8s.io", "endpointslices");
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0].body()["endpoints"], json!([]));
}

#[test]
fn failures_restart_and_the_same_seed_tells_the_same_story() {
    let story = || {
        let mut world = World::new(Settings { failures_per_mille: 500, ..Settings::default() });
        world.create("apps", "deployments", deployment(6));
        world.run(Duration::from_mins(10));
        let restarts =
            |pod: &Arc<Stored>| number(&pod.body()["status"]["containerStatuses"][0]["restartCount"], 0);
        let pods = world.list("", "pods");
        let told: Vec<(String, i64)> =
            pods.iter().map(|pod| (pod.key.name.to_string(), restarts(pod))).collect();
        (told, rolled_out(&world.machine.get(&key("apps", "deployments", "web")).unwrap()))
    };
    let (told, rolled_out) = story();
    assert!(told.iter().any(|(_, restarts)| *restarts > 0), "{told:?}");
    assert!(rolled_out, "in the end each start succeeds: {told:?}");
    assert_eq!(story().0, told);
}

#[test]
fn pods_of_a_node_that_somebody_else_keeps_go_there_and_are_left_alone() {
    let mut world = World::new(Settings::default());
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": {
        "name": "real", "annotations": { "mailboat.dev/runs-images": "[\"example.org/app\"]" } } });
    world.create("", "nodes", node);
    for (name, image) in [("theirs", "example.org/app:v1"), ("ours", "example.org/apple:v1")] {
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
            "spec": { "containers": [{ "name": "main", "image": image }] } });
        world.create("", "pods", pod);
    }
    world.settle();
    let seen = |world: &World, name: &str| {
        let pod = world.machine.get(&key("", "pods", name)).unwrap();
        (pod.body()["spec"]["nodeName"] == "real", pod.body()["status"]["phase"].clone())
    };
    assert_eq!(seen(&world, "theirs"), (true, json!("Pending")));
    assert_eq!(seen(&world, "ours"), (false, json!("Running")));
}
