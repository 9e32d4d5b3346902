//! KWOK and the kubelet on one edge: each plays the Pods that are its own.

use k8s_openapi::api::admissionregistration::v1::{MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use mailboat_testkit::kubelet::{Image, Kubelet, NODE};
use mailboat_testkit::{ADMIN, EdgeSpec, World, apply, wait_until};
use serde_json::{Value, json};

use super::SOON;

const SCRIPT: &str = "echo afloat; while :; do sleep 1; done";

#[tokio::test]
async fn kwok_and_the_kubelet_share_an_edge() {
    let world = World::builder().edge_with(EdgeSpec::new("florin").with_nodes(2)).start().await.unwrap();
    let edge = world.edge("florin");
    let client = edge.client(ADMIN).await.unwrap();
    let image = Image::new().program("/bin/sh", "/bin/sh");
    let kubelet =
        Kubelet::builder(edge).image("example.org/boat", image.clone()).program("/bin/row", "/bin/sh");
    let kubelet = kubelet.start().await.unwrap();
    only_what_the_kubelet_can_run_is_put_on_its_node(&client).await;
    deployments_are_played_by_both_at_once(&client, &kubelet).await;

    let second = Kubelet::builder(edge).image("example.org/ferry", image).start().await.unwrap();
    // The first one's policy is removed only now, when the second one's bears its name.
    drop(kubelet);
    a_pod_is_run(&client, &second, "example.org/ferry:v1").await;
    placed_soon(&client, "example.org/boat:v1", None).await;
    assert_eq!(policies(&client).await, [NODE, NODE]);
    drop(second);
    wait_until("the policy removed", SOON, || async {
        let left = policies(&client).await;
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await
    .unwrap();
    placed_soon(&client, "example.org/ferry:v1", None).await;
}

async fn only_what_the_kubelet_can_run_is_put_on_its_node(client: &Client) {
    let container =
        |image: &str, command: &[&str]| json!({ "name": "c", "image": image, "command": command });
    let pod = |image, command| json!({ "spec": { "containers": [container(image, command)] } });
    let digest = format!("example.org/boat@sha256:{}", "0".repeat(64));
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "boats", "uid": "boats", "controller": true }]);
    let mut on_a_node = pod("example.org/boat", &[]);
    on_a_node["spec"]["nodeName"] = json!("florin-1");
    let mut of_a_daemon_set = pod("example.org/boat", &[]);
    of_a_daemon_set["metadata"] = json!({ "ownerReferences": owner });
    let mut second = container("example.org/boat", &[]);
    second["name"] = json!("second");
    let beside_another = json!({ "spec": { "containers": [container("example.org/any", &[]), second] } });
    let cases = [
        (pod("example.org/boat", &[]), Some(NODE)),
        (pod("example.org/boat:v1", &["/bin/sail"]), Some(NODE)),
        (pod(&digest, &[]), Some(NODE)),
        (pod("example.org/any", &["/bin/row", "fast"]), Some(NODE)),
        (pod("example.org/boathouse:v1", &[]), None),
        (pod("example.org/boat/oar:v1", &[]), None),
        (pod("boat:v1", &[]), None),
        (pod("example.org/any", &["/bin/rower"]), None),
        (pod("example.org/any", &["/bin/sail", "/bin/row"]), None),
        (beside_another, None),
        (of_a_daemon_set, None),
        (on_a_node, Some("florin-1")),
    ];
    for (pod, node) in cases {
        assert_eq!(placed(client, &pod).await.unwrap().as_deref(), node, "{pod}");
    }
    let refused = placed(client, &json!({ "spec": { "containers": [] } })).await.unwrap_err();
    assert!(refused.contains("spec.containers: Required value"), "{refused}");
}

async fn deployments_are_played_by_both_at_once(client: &Client, kubelet: &Kubelet) {
    let boat = json!({ "name": "c", "image": "example.org/boat:v1", "command": ["/bin/sh", "-c", SCRIPT] });
    // Its image begins like the boats', which must not matter.
    let buoy = json!({ "name": "c", "image": "example.org/boat-pause:3.10" });
    let documents = [deployment("boats", 2, &boat), deployment("buoys", 3, &buoy)];
    apply(client, &documents.map(|document| document.to_string()).join("\n---\n")).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    wait_until("both deployments ready", SOON, || async {
        let list = deployments.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let ready = |seen: &Deployment| seen.status.as_ref().and_then(|status| status.ready_replicas);
        let seen: Vec<_> = list.iter().map(|seen| (seen.name_any(), ready(seen))).collect();
        let wanted = [("boats".to_owned(), Some(2)), ("buoys".to_owned(), Some(3))];
        if seen == wanted { Ok(()) } else { Err(format!("{seen:?}")) }
    })
    .await
    .unwrap();

    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let of = async |name: &str| {
        pods.list(&ListParams::default().labels(&format!("app={name}"))).await.unwrap().items
    };
    for pod in of("boats").await {
        assert_eq!(node_of(&pod), Some(NODE), "{:?}", pod.spec);
        is_afloat(kubelet, &pod.name_any()).await;
        let status = serde_json::to_string(&pod.status).unwrap();
        assert!(status.contains(r#""containerID":"testkit://"#), "not the kubelet's: {status}");
    }
    for pod in of("buoys").await {
        assert!(node_of(&pod).is_some_and(|node| node.starts_with("florin-")), "{:?}", pod.spec);
    }
    let template = deployments.get("boats").await.unwrap().spec.unwrap().template.spec.unwrap();
    assert_eq!((template.node_name, template.tolerations), (None, None), "the deployment was changed");
}

async fn a_pod_is_run(client: &Client, kubelet: &Kubelet, image: &str) {
    let container = json!({ "name": "c", "image": image, "command": ["/bin/sh", "-c", SCRIPT] });
    let pod = json!({ "metadata": { "name": "single" }, "spec": { "containers": [container] } });
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    is_afloat(kubelet, "single").await;
}

async fn is_afloat(kubelet: &Kubelet, pod: &str) {
    wait_until(format!("{pod} afloat"), SOON, async || {
        let log = kubelet.log("default", pod, "c").map_err(|error| error.to_string())?;
        if log == "afloat\n" { Ok(()) } else { Err(format!("{log:?}")) }
    })
    .await
    .unwrap();
    assert!(kubelet.process("default", pod, "c").unwrap().is_alive());
}

fn deployment(name: &str, replicas: u32, container: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": { "containers": [container] } },
        },
    })
}

/// The node that a Pod would be on from the moment of its creation.
async fn placed(client: &Client, pod: &Value) -> Result<Option<String>, String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let mut pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    pod.metadata.name = Some("asked".to_owned());
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let created = pods.create(&dry_run, &pod).await.map_err(|error| error.to_string())?;
    Ok(node_of(&created).map(str::to_owned))
}

async fn placed_soon(client: &Client, image: &str, node: Option<&str>) {
    let pod = json!({ "spec": { "containers": [{ "name": "c", "image": image }] } });
    wait_until(format!("{image} put on {node:?}"), SOON, || async {
        let seen = placed(client, &pod).await?;
        if seen.as_deref() == node { Ok(()) } else { Err(format!("{seen:?}")) }
    })
    .await
    .unwrap();
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

async fn policies(client: &Client) -> Vec<String> {
    let policies: Api<MutatingAdmissionPolicy> = Api::all(client.clone());
    let bindings: Api<MutatingAdmissionPolicyBinding> = Api::all(client.clone());
    let policies = policies.list(&ListParams::default()).await.unwrap();
    let bindings = bindings.list(&ListParams::default()).await.unwrap();
    let names = policies.iter().map(ResourceExt::name_any);
    names.chain(bindings.iter().map(ResourceExt::name_any)).collect()
}
