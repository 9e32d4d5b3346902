//! Helm takes a hub for a cluster.

use std::fs;
use std::path::Path;
use std::process::Command;

use mailboat_testkit::build::Programs;

use crate::kubectl::Kubectl;
use crate::served::Served;

const CHART: [(&str, &str); 4] = [
    ("Chart.yaml", "apiVersion: v2\nname: boat\nversion: 0.1.0\n"),
    ("values.yaml", "replicas: 1\n"),
    (
        "templates/deployment.yaml",
        "apiVersion: apps/v1
kind: Deployment
metadata: { name: '{{ .Release.Name }}' }
spec:
  replicas: {{ .Values.replicas }}
  selector: { matchLabels: { app: '{{ .Release.Name }}' } }
  template:
    metadata: { labels: { app: '{{ .Release.Name }}' } }
    spec: { containers: [{ name: main, image: 'boat:1' }] }
",
    ),
    (
        "templates/service.yaml",
        "apiVersion: v1
kind: Service
metadata: { name: '{{ .Release.Name }}' }
spec: { clusterIP: None, selector: { app: '{{ .Release.Name }}' }, ports: [{ port: 80 }] }
",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn helm_installs_upgrades_rolls_back_and_uninstalls_a_chart() {
    let served = Served::in_memory().await;
    let kubectl = Kubectl::new(&served.kubeconfig);
    let chart = served.folder.path().join("boat");
    fs::create_dir_all(chart.join("templates")).unwrap();
    for (file, content) in CHART {
        fs::write(chart.join(file), content).unwrap();
    }
    let chart = chart.to_str().unwrap().to_owned();
    let replicas = ["get", "deploy", "anna", "-n", "till", "-o", "jsonpath={.spec.replicas}"];

    helm(&served, &["install", "anna", &chart, "-n", "till", "--create-namespace"]).await;
    assert_eq!(kubectl.well(&replicas).await, "1");
    helm(&served, &["upgrade", "anna", &chart, "-n", "till", "--set", "replicas=3"]).await;
    assert_eq!(kubectl.well(&replicas).await, "3");
    helm(&served, &["rollback", "anna", "1", "-n", "till"]).await;
    assert_eq!(kubectl.well(&replicas).await, "1");
    let listed = helm(&served, &["list", "-n", "till"]).await;
    assert!(listed.contains("anna") && listed.contains("deployed"), "{listed}");
    for words in [
        &["status", "anna", "-n", "till"][..],
        &["history", "anna", "-n", "till"],
        &["get", "all", "anna", "-n", "till"],
        &["list", "-A"],
        &["upgrade", "--install", "anna", &chart, "-n", "till", "--atomic", "--dry-run=server"],
        &["template", "anna", &chart, "--validate"],
    ] {
        helm(&served, words).await;
    }
    helm(&served, &["uninstall", "anna", "-n", "till"]).await;
    let gone = kubectl.run(&["get", "deploy,svc", "anna", "-n", "till"]).await;
    assert!(gone.err.contains("not found"), "{gone:?}");
    served.check_record();
}

async fn helm(served: &Served, words: &[&str]) -> String {
    let program = Programs::locate().unwrap().helm().unwrap();
    let home = served.folder.path().to_owned();
    let mut command = command(&program, &served.kubeconfig, &home, words);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "helm {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn command(program: &Path, kubeconfig: &Path, home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).arg("--kubeconfig").arg(kubeconfig).env("HOME", home);
    command
}
