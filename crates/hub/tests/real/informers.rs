//! client-go's informers take a hub for a cluster: Kubernetes' own controllers, which are made of them, do their work on it.

use std::fs::File;
use std::process::Stdio;

use mailboat_testkit::build::Programs;
use tokio::process::{Child, Command};

use crate::kubectl::Kubectl;
use crate::served::Served;

/// How long a controller may take on a busy machine.
const SOON: &str = "--timeout=120s";

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_own_controllers_follow_what_is_on_a_hub() {
    let served = Served::in_memory().await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    kubectl.well(&["create", "deployment", "early", "--image", "boat:1"]).await;
    let _controllers = controllers(&served);
    // Whatever was there before is listed,
    kubectl.well(&["wait", "deploy/early", "--for=jsonpath={.status.updatedReplicas}=1", SOON]).await;
    // and what comes afterwards is watched.
    kubectl.well(&["create", "deployment", "anna", "--image", "boat:1", "--replicas", "3"]).await;
    kubectl.well(&["wait", "deploy/anna", "--for=jsonpath={.status.replicas}=3", SOON]).await;
    let sets = ["get", "rs", "-l", "app=anna", "-o", "jsonpath={.items[*].metadata.ownerReferences[*].kind}"];
    assert_eq!(kubectl.well(&sets).await, "Deployment");
    let pods =
        ["get", "pods", "-l", "app=anna", "-o", "jsonpath={.items[*].metadata.ownerReferences[*].kind}"];
    assert_eq!(kubectl.well(&pods).await, "ReplicaSet ReplicaSet ReplicaSet");

    // A Pod that somebody deletes is made again; fewer are wanted, and fewer remain.
    kubectl.well(&["delete", "pods", "-l", "app=anna", "--wait=false"]).await;
    kubectl.well(&["scale", "deploy/anna", "--replicas", "2"]).await;
    kubectl.well(&["wait", "deploy/anna", "--for=jsonpath={.status.replicas}=2", SOON]).await;
    kubectl.well(&["set", "image", "deploy/anna", "boat=boat:2"]).await;
    kubectl.well(&["wait", "deploy/anna", "--for=jsonpath={.status.updatedReplicas}=1", SOON]).await;
}

/// Starts the controllers of deployments and replica sets. They end with what is returned.
fn controllers(served: &Served) -> Child {
    let program = Programs::locate().unwrap().kube_controller_manager().unwrap();
    let log = File::create(served.folder.path().join("controllers.log")).unwrap();
    Command::new(program)
        .arg(format!("--kubeconfig={}", served.kubeconfig.display()))
        .args([
            "--controllers=deployment-controller,replicaset-controller",
            "--leader-elect=false",
            "--secure-port=0",
        ])
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}
