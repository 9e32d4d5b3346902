//! kubectl's own verbs must take a hub for a cluster.

use std::fs;

use crate::kubectl::Kubectl;
use crate::served::Served;

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, labels: { tier: front } }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
      - { name: main, image: 'web:1', ports: [{ containerPort: 80 }] }
      - { name: side, image: 'side:1' }
";

const BOATS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: boats.sea.example }
spec:
  group: sea.example
  names: { plural: boats, kind: Boat, shortNames: [bt] }
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: { status: {} }
    additionalPrinterColumns: [{ name: Length, type: integer, jsonPath: .spec.length }]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            description: What the boat is.
            properties: { length: { type: integer, minimum: 1, description: How long it is. } }
          status: { type: object, x-kubernetes-preserve-unknown-fields: true }
";

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_applies_changes_and_deletes() {
    let served = Served::in_memory().await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    let file = served.folder.path().join("web.yaml");
    fs::write(&file, DEPLOYMENT).unwrap();
    let path = file.to_str().unwrap();

    kubectl.well(&["apply", "-f", path]).await;
    assert_eq!(kubectl.well(&["apply", "-f", path]).await.trim(), "deployment.apps/web unchanged");
    fs::write(&file, DEPLOYMENT.replace("web:1", "web:2")).unwrap();
    let diff = kubectl.run(&["diff", "-f", path]).await;
    assert!(
        diff.out.contains("-      - image: web:1") && diff.out.contains("+      - image: web:2"),
        "{diff:?}"
    );
    kubectl.well(&["apply", "-f", path]).await;
    let image = ["get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}"];
    assert_eq!(kubectl.well(&image).await, "web:2 side:1", "the other container stays");

    fs::write(&file, DEPLOYMENT.replace("web:1", "web:3")).unwrap();
    let conflict = kubectl.run(&["apply", "--server-side", "-f", path]).await;
    assert!(
        !conflict.well && conflict.err.contains("conflict with \"kubectl-client-side-apply\""),
        "{conflict:?}"
    );
    kubectl.well(&["apply", "--server-side", "--force-conflicts", "-f", path]).await;
    assert_eq!(kubectl.well(&image).await, "web:3 side:1");

    kubectl.well(&["set", "image", "deploy/web", "side=side:2"]).await;
    kubectl.well(&["label", "deploy", "web", "a=b"]).await;
    kubectl.well(&["annotate", "deploy", "web", "c=d"]).await;
    kubectl.well(&["scale", "deploy", "web", "--replicas", "5"]).await;
    let shown = kubectl.well(&["get", "deploy", "web", "-o", "wide", "--show-labels"]).await;
    for wanted in ["0/5", "web:3,side:2", "app=web", "a=b,tier=front"] {
        assert!(shown.contains(wanted), "{wanted} in {shown}");
    }
    let editor = served.folder.path().join("editor.sh");
    fs::write(&editor, "#!/bin/sh\nsed -i 's/side:2/side:3/' \"$1\"\n").unwrap();
    kubectl.well_with(&["edit", "deploy", "web"], &[("EDITOR", &format!("sh {}", editor.display()))]).await;
    assert_eq!(kubectl.well(&image).await, "web:3 side:3");
    let strict = kubectl.run(&["patch", "deploy", "web", "-p", r#"{"spec":{"sail":1}}"#]).await;
    assert!(strict.err.contains("unknown field \"spec.sail\""), "{strict:?}");
    kubectl.well(&["delete", "-f", path]).await;
    let gone = kubectl.run(&["get", "deploy", "web"]).await;
    assert!(gone.err.contains("deployments.apps \"web\" not found"), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_creates_kinds_that_it_has_types_for() {
    let served = Served::in_memory().await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    for words in [
        &["create", "namespace", "till"][..],
        &["create", "configmap", "c", "-n", "till", "--from-literal", "a=b"],
        &["create", "secret", "generic", "s", "-n", "till", "--from-literal", "a=b"],
        &["create", "deployment", "d", "-n", "till", "--image", "i", "--replicas", "0"],
        &["create", "job", "j", "-n", "till", "--image", "i"],
        &["create", "service", "clusterip", "v", "-n", "till", "--tcp", "80:8080"],
        &["create", "role", "r", "-n", "till", "--verb", "get", "--resource", "pods"],
        &["create", "quota", "q", "-n", "till", "--hard", "pods=3"],
    ] {
        kubectl.well(words).await;
    }
    let read = async |words: &[&str]| kubectl.well(words).await;
    assert_eq!(read(&["get", "cm", "c", "-n", "till", "-o", "jsonpath={.data.a}"]).await, "b");
    assert_eq!(read(&["get", "secret", "s", "-n", "till", "-o", "jsonpath={.data.a}"]).await, "Yg==");
    assert_eq!(read(&["get", "deploy", "d", "-n", "till", "-o", "jsonpath={.spec.replicas}"]).await, "0");
    assert_eq!(
        read(&["get", "svc", "v", "-n", "till", "-o", "jsonpath={.spec.ports[0].targetPort}"]).await,
        "8080"
    );
    assert_eq!(read(&["get", "quota", "q", "-n", "till", "-o", "jsonpath={.spec.hard.pods}"]).await, "3");
    // Waits until everything in it is gone.
    kubectl.well(&["delete", "namespace", "till"]).await;
    let gone = kubectl.run(&["get", "namespace", "till"]).await;
    assert!(gone.err.contains("not found"), "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_kind_is_served_at_once_and_explained() {
    let served = Served::in_memory().await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    kubectl.apply(BOATS).await;
    kubectl
        .well(&["wait", "--for", "condition=Established", "crd/boats.sea.example", "--timeout", "5s"])
        .await;
    kubectl
        .apply("{apiVersion: sea.example/v1, kind: Boat, metadata: {name: anna}, spec: {length: 7}}")
        .await;
    let shown = kubectl.well(&["get", "bt"]).await;
    assert!(shown.contains("LENGTH") && shown.contains("anna   7"), "{shown}");
    let explained = kubectl.well(&["explain", "boats.spec"]).await;
    assert!(explained.contains("What the boat is.") && explained.contains("How long it is."), "{explained}");
    let explained = kubectl.well(&["explain", "deployment.spec.replicas"]).await;
    assert!(explained.contains("Number of desired pods"), "{explained}");
    // So it reads version 2 of the schemas, as client-go's `OpenAPISchema` gives it.
    for (asked, told) in [
        ("boats.spec", &["What the boat is.", "length\t<integer>"][..]),
        ("deployment.spec.template.spec.containers", &["name <string>"][..]),
        ("services.spec.ports", &["targetPort\t<string>", "nodePort\t<integer>"][..]),
    ] {
        let explained = kubectl.well(&["explain", asked, "--output", "plaintext-openapiv2"]).await;
        for told in told {
            let spaced: Vec<&str> = told.split_whitespace().collect();
            let said: Vec<&str> = explained.split_whitespace().collect();
            assert!(said.windows(spaced.len()).any(|words| words == spaced), "{told} in {explained}");
        }
    }
    let kinds = kubectl.well(&["api-resources"]).await;
    for wanted in ["boats", "deployments", "customresourcedefinitions", "selfsubjectaccessreviews"] {
        assert!(kinds.contains(wanted), "{wanted} in {kinds}");
    }
    let bad = kubectl.run_with(
        &["apply", "-f", "-"],
        "{apiVersion: sea.example/v1, kind: Boat, metadata: {name: bad}, spec: {length: 0}}",
    );
    let bad = bad.await;
    assert!(bad.err.contains("spec.length: Invalid value: 0"), "{bad:?}");
    kubectl.well(&["delete", "crd", "boats.sea.example"]).await;
    let gone = kubectl.run(&["get", "--raw", "/apis/sea.example/v1/boats"]).await;
    assert!(!gone.well, "{gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_may_do_what_rbac_lets_them() {
    let served = Served::in_memory().await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    kubectl.well(&["create", "serviceaccount", "robot"]).await;
    let token = kubectl.well(&["create", "token", "robot"]).await;
    let robot = Kubectl::with_token(&served, token.trim());
    assert!(robot.well(&["auth", "whoami"]).await.contains("system:serviceaccount:default:robot"));
    let refused = robot.run(&["get", "configmaps"]).await;
    assert!(
        refused
            .err
            .contains("configmaps is forbidden: User \"system:serviceaccount:default:robot\" cannot list"),
        "{refused:?}"
    );
    assert_eq!(robot.run(&["auth", "can-i", "list", "configmaps"]).await.out.trim(), "no");
    kubectl.well(&["create", "role", "reader", "--verb", "list", "--resource", "configmaps"]).await;
    let binding = ["create", "rolebinding", "reads", "--role", "reader", "--serviceaccount", "default:robot"];
    kubectl.well(&binding).await;
    assert_eq!(robot.well(&["auth", "can-i", "list", "configmaps"]).await.trim(), "yes");
    robot.well(&["get", "configmaps"]).await;
    let as_robot = ["auth", "can-i", "delete", "pods", "--as", "system:serviceaccount:default:robot"];
    assert_eq!(kubectl.run(&as_robot).await.out.trim(), "no");
    let nobody = Kubectl::with_token(&served, "wrong");
    let refused = nobody.run(&["get", "configmaps"]).await;
    assert!(
        refused.err.contains("Unauthorized") || refused.err.contains("provide credentials"),
        "{refused:?}"
    );
    kubectl.well(&["delete", "serviceaccount", "robot"]).await;
    let gone = robot.run(&["get", "configmaps"]).await;
    let refused = gone.err.contains("Unauthorized") || gone.err.contains("provide credentials");
    assert!(refused, "its token went with it: {gone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let first = Served::on_disk(folder.path()).await;
    let kubectl = Kubectl::new(&first.kubeconfig);
    kubectl.apply(BOATS).await;
    kubectl
        .apply("{apiVersion: sea.example/v1, kind: Boat, metadata: {name: anna}, spec: {length: 7}}")
        .await;
    first.stop().await;
    let again = Served::on_disk(folder.path()).await;
    let kubectl = Kubectl::new(&again.kubeconfig);
    assert_eq!(kubectl.well(&["get", "boat", "anna", "-o", "jsonpath={.spec.length}"]).await, "7");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_followed_to_its_end() {
    let served = Served::playing().await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    kubectl.apply(DEPLOYMENT).await;
    let status = ["rollout", "status", "deploy/web", "--timeout", "60s"];
    assert!(kubectl.well(&status).await.contains("deployment \"web\" successfully rolled out"));
    kubectl.well(&["set", "image", "deploy/web", "main=web:2"]).await;
    assert!(kubectl.well(&status).await.contains("successfully rolled out"));
    let history = kubectl.well(&["rollout", "history", "deploy/web"]).await;
    assert!(history.lines().any(|line| line.starts_with('2')), "{history}");
    kubectl.well(&["rollout", "undo", "deploy/web"]).await;
    kubectl.well(&status).await;
    let image = ["get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[0].image}"];
    assert_eq!(kubectl.well(&image).await, "web:1");
    kubectl.well(&["wait", "deploy/web", "--for", "condition=Available", "--timeout", "60s"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_both_groups_are_one_list_and_autoscalers_are_made() {
    let served = Served::in_memory().await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    kubectl.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}").await;
    let uid = kubectl.well(&["get", "configmap", "one", "-o", "jsonpath={.metadata.uid}"]).await;
    let about = format!("{{apiVersion: v1, kind: ConfigMap, name: one, namespace: default, uid: {uid}}}");
    let old = "{apiVersion: v1, kind: Event, metadata: {name: old}, reason: Sailed, message: in the old way, \
               type: Normal, involvedObject: ABOUT}";
    let new = "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: new}, reason: Seen, \
               note: in the new way, type: Warning, action: Look, reportingController: a.example/b, \
               reportingInstance: b-1, eventTime: '2026-01-01T00:00:00.000000Z', regarding: ABOUT}";
    for event in [old, new] {
        kubectl.apply(&event.replace("ABOUT", &about)).await;
    }
    for words in [
        &["get", "events"][..],
        &["get", "events.events.k8s.io"],
        &["events"],
        &["events", "--for", "configmap/one"],
        &["describe", "configmap", "one"],
    ] {
        let shown = kubectl.well(words).await;
        assert!(shown.contains("in the old way") && shown.contains("in the new way"), "{words:?}: {shown}");
    }
    kubectl.apply(DEPLOYMENT).await;
    kubectl.well(&["autoscale", "deploy", "web", "--max", "5", "--cpu", "60%"]).await;
    let path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/web";
    let first = kubectl.well(&["get", "--raw", path]).await;
    assert!(first.contains(r#""targetCPUUtilizationPercentage":60"#), "{first}");
    assert!(kubectl.well(&["get", "hpa"]).await.contains("cpu: <unknown>/60%"));
}
