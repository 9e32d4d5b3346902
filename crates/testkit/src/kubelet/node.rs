//! The node that the kubelet stands for, kept alive by its Lease. The scheduler leaves it alone.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::environment::POD_ADDRESS;
use super::image::Images;
use crate::error::{Asking, Result};

const FIELD_MANAGER: &str = "mailboat-testkit-kubelet";
const LEASE_NAMESPACE: &str = "kube-node-lease";
const LEASE_SECONDS: i32 = 40;
/// Keeps off what the kubelet has no programs for; what it can run comes by admission, past the scheduler.
const TAINT: &str = "mailboat.dev/kubelet";
const RENEWAL_PERIOD: Duration = Duration::from_secs(10);

/// Makes the node, or takes it over as it stands, and says that it is ready.
pub(super) async fn register(client: &Client, name: &str, images: &Images) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let applied = nodes.patch(name, &params, &Patch::Apply(node(name, images))).await;
    applied.asking(|| format!("creating node {name}"))?;
    renew(client, name).await.asking(|| format!("writing the lease of node {name}"))?;
    let applied = nodes.patch_status(name, &params, &Patch::Apply(node_status(name))).await;
    applied.asking(|| format!("saying that node {name} is ready"))?;
    Ok(())
}

/// Keeps the node alive for as long as this is polled.
pub(super) async fn keep_alive(client: Client, name: String) {
    loop {
        tokio::time::sleep(RENEWAL_PERIOD).await;
        // A server that is away now is there at one of the next beats, or the node is lost, as any would be.
        let _ = renew(&client, &name).await;
    }
}

async fn renew(client: &Client, name: &str) -> kube::Result<Lease> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": name, "namespace": LEASE_NAMESPACE },
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": MicroTime(Timestamp::now()),
        },
    });
    leases.patch(name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(lease)).await
}

fn node(name: &str, images: &Images) -> Value {
    let repositories: Value = images.named.keys().cloned().collect();
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            // A hub reads this in place of the policy, which it does not ask.
            "annotations": { "mailboat.dev/runs-images": repositories.to_string() },
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture(),
            },
        },
        "spec": { "taints": [{ "key": TAINT, "effect": "NoSchedule" }] },
    })
}

fn node_status(name: &str) -> Value {
    let resources = json!({ "cpu": "16", "memory": "64Gi", "pods": "110" });
    let now = Timestamp::now().to_string();
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name },
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "addresses": [{ "type": "InternalIP", "address": POD_ADDRESS }, { "type": "Hostname", "address": name }],
            "conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "played by the testkit",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }],
        },
    })
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
