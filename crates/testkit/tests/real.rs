//! The testkit itself, on the real servers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use mailboat_testkit::bed::{self, BedSpec, Up};
use mailboat_testkit::build::{Program, Programs};
use mailboat_testkit::{
    ADMIN, Credential, Edge, EdgeSpec, Error, ProcessIdentity, TESTBED_VARIABLE, Validity, World, apply,
    wait_until,
};
use serde_json::{Value, json};

#[path = "real/players.rs"]
mod players;

/// Tells a child test, which is this program again, where to write what it started.
const CHILD_VARIABLE: &str = "MAILBOAT_TESTKIT_CHILD";
const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_center_and_two_edges_are_ready_in_time_and_do_their_work() {
    let world = World::builder().center().edge("guilder").edge("florin").start().await.unwrap();
    println!("a center and two edges were ready in {:.1?}", world.started_in());
    assert!(world.started_in() < Duration::from_secs(90), "ready only after {:?}", world.started_in());
    for part in world.parts() {
        assert!(part.is_ready(SOON).await, "{} is not ready", part.name());
    }
    futures::join!(
        a_deployment_becomes_ready(world.edge("guilder")),
        edges_do_not_see_each_other(&world),
        users_have_the_rights_that_they_were_given(&world),
        certificates_are_accepted_where_they_belong(&world),
        a_joined_world_can_be_used_and_not_steered(&world),
        another_process_shares_the_world(&world),
    );
    a_center_keeps_its_data_and_can_be_set_back(&world).await;
}

async fn a_deployment_becomes_ready(edge: &Edge) {
    let client = edge.client(ADMIN).await.unwrap();
    let deployment = "
apiVersion: v1
kind: Namespace
metadata: {name: orders}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: harbor, namespace: orders}
spec:
  replicas: 3
  selector: {matchLabels: {app: harbor}}
  template:
    metadata: {labels: {app: harbor}}
    spec: {containers: [{name: harbor, image: harbor}]}
";
    let applied = apply(&client, deployment).await.unwrap();
    assert_eq!(applied.len(), 2, "{applied:?}");
    let deployments: Api<Deployment> = Api::namespaced(client, "orders");
    wait_until("three replicas ready", SOON, || async {
        let seen = deployments.get("harbor").await.map_err(|error| error.to_string())?;
        let status = seen.status.unwrap_or_default();
        if status.ready_replicas == Some(3) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await
    .unwrap();
}

// They share one etcd.
async fn edges_do_not_see_each_other(world: &World) {
    create_config_map(world.edge("guilder"), "only-at-guilder").await;
    assert_eq!(config_maps(world.edge("florin"), "only-at-guilder").await, Vec::<String>::new());
    let version = world.edge("florin").client(ADMIN).await.unwrap().apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.36.3");
}

async fn users_have_the_rights_that_they_were_given(world: &World) {
    let center = world.center();
    let workspace = center.workspace("rights").await.unwrap();
    let list = async |user: &str, workspace: &str| {
        let namespaces: Api<Namespace> = Api::all(center.client(user, workspace).await.unwrap());
        namespaces.list(&ListParams::default()).await.map(|list| list.items.len())
    };
    for user in ["alice", "center"] {
        let refused = list(user, &workspace.path).await.unwrap_err();
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{user}: {refused}");
    }
    center.make_administrator("alice", &workspace.path).await.unwrap();
    assert!(list("alice", &workspace.path).await.unwrap() > 0);
    assert!(list("alice", &workspace.cluster).await.unwrap() > 0, "not by the logical cluster's name");
    let below = center.workspace_by("alice", &workspace.path, "below").await.unwrap();
    assert!(below.path.starts_with(&format!("{}:below-", workspace.path)), "{below:?}");
    let unknown = center.token("mallory").unwrap_err();
    assert!(matches!(unknown, Error::NoSuchUser { .. }), "{unknown}");

    let edge = world.edge("guilder");
    let refused =
        Api::<Namespace>::all(edge.client("alice").await.unwrap()).list(&ListParams::default()).await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 403), "{refused:?}");
}

async fn certificates_are_accepted_where_they_belong(world: &World) {
    let (guilder, florin, center) = (world.edge("guilder"), world.edge("florin"), world.center());
    let current = guilder.certificate("carol", Some("system:masters"), Validity::Current).unwrap();
    let expired = guilder.certificate("carol", Some("system:masters"), Validity::Expired).unwrap();
    let outcome = async |access: mailboat_testkit::Access| {
        let namespaces: Api<Namespace> = Api::all(access.client().await.unwrap());
        namespaces.list(&ListParams::default()).await.is_ok()
    };
    assert!(outcome(guilder.access_with(Credential::Certificate(current.clone()))).await);
    assert!(!outcome(guilder.access_with(Credential::Certificate(expired))).await, "expired, yet accepted");
    assert!(
        !outcome(florin.access_with(Credential::Certificate(current))).await,
        "accepted by another's authority"
    );
    let center_user = center.certificate("carol", Some("system:kcp:admin"), Validity::Current).unwrap();
    assert!(outcome(center.access_with(Credential::Certificate(center_user), "root")).await);
}

async fn a_joined_world_can_be_used_and_not_steered(world: &World) {
    let joined = World::join(world.folder()).unwrap();
    let workspace = joined.center().workspace("joined").await.unwrap();
    assert!(world.center().client(ADMIN, &workspace.path).await.is_ok());
    create_config_map(joined.edge("florin"), "joined").await;
    assert_eq!(joined.parts().len(), world.parts().len());
    let refused = joined.edge("florin").apiserver().kill().await.unwrap_err();
    assert!(matches!(refused, Error::NotOurs { .. }), "{refused}");
    drop(joined);
    assert!(world.folder().exists(), "leaving a world removed it");
}

async fn another_process_shares_the_world(world: &World) {
    let mut child = Report::new("share").child("child_that_shares_a_world");
    child.env(TESTBED_VARIABLE, world.folder());
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    let said = text(&output);
    let path = said.lines().find_map(|line| line.strip_prefix("made ")).unwrap_or_else(|| panic!("{said}"));
    let client = world.center().client(ADMIN, path).await.unwrap();
    Api::<Namespace>::all(client).list(&ListParams::default()).await.unwrap();
}

async fn a_center_keeps_its_data_and_can_be_set_back(world: &World) {
    let center = world.center();
    let before = center.workspace("before").await.unwrap();
    let begun = Instant::now();
    center.kcp().stop().await.unwrap();
    println!("kcp stopped in {:.1?}", begun.elapsed());
    center.kcp().save_data("backup").unwrap();
    let begun = Instant::now();
    center.kcp().start().await.unwrap();
    center.ready().await.unwrap();
    println!("kcp was back after {:.1?}", begun.elapsed());
    let after = center.workspace("after").await.unwrap();

    center.kcp().kill().await.unwrap();
    center.kcp().restore_data("backup").unwrap();
    center.kcp().start().await.unwrap();
    center.ready().await.unwrap();
    let client = center.client(ADMIN, &before.path).await.unwrap();
    wait_until("the workspace of the backup answers", SOON, || async {
        Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await
    })
    .await
    .unwrap();
    let client = center.client(ADMIN, &after.path).await.unwrap();
    let gone = Api::<Namespace>::all(client).list(&ListParams::default()).await;
    assert!(matches!(&gone, Err(kube::Error::Api(status)) if status.code == 403), "{gone:?}");
}

#[tokio::test]
async fn each_part_can_be_stopped_killed_paused_restarted_and_set_back_by_itself() {
    let world = World::builder().edge_with(EdgeSpec::bare("pier")).start().await.unwrap();
    println!("a bare edge was ready in {:.1?}", world.started_in());
    let edge = world.edge("pier");

    // Killed: what was written stays.
    create_config_map(edge, "before-the-kill").await;
    edge.apiserver().kill().await.unwrap();
    assert!(edge.apiserver().process().is_none());
    let refused = edge.apiserver().kill().await.unwrap_err();
    assert!(matches!(refused, Error::NotRunning { .. }), "{refused}");
    edge.apiserver().start().await.unwrap();
    assert_eq!(config_maps(edge, "").await, ["before-the-kill"]);

    // Paused: connections stand, nothing answers; resumed: as if nothing had been.
    edge.apiserver().pause().unwrap();
    assert!(!edge.apiserver().is_ready(Duration::from_millis(500)).await, "it answers while paused");
    assert!(edge.apiserver().process().is_some());
    edge.apiserver().resume().unwrap();
    assert!(edge.apiserver().is_ready(SOON).await);

    // Stopped and restarted, on the same port.
    let (port, before) = (edge.apiserver().port(), edge.apiserver().process());
    let begun = Instant::now();
    edge.apiserver().restart().await.unwrap();
    println!("kube-apiserver restarted in {:.1?}", begun.elapsed());
    assert_eq!(edge.apiserver().port(), port);
    assert_ne!(edge.apiserver().process(), before);

    an_older_etcd_is_restored(edge).await;
}

async fn an_older_etcd_is_restored(edge: &Edge) {
    let torn = edge.etcd().save_data("old").unwrap_err();
    assert!(matches!(torn, Error::Running { .. }), "{torn}");
    let nothing = edge.apiserver().save_data("old").unwrap_err();
    assert!(matches!(nothing, Error::NoData { .. }), "{nothing}");
    edge.apiserver().stop().await.unwrap();
    edge.etcd().stop().await.unwrap();
    edge.etcd().save_data("old").unwrap();
    edge.etcd().start().await.unwrap();
    edge.apiserver().start().await.unwrap();
    create_config_map(edge, "after-the-backup").await;
    assert_eq!(config_maps(edge, "").await, ["after-the-backup", "before-the-kill"]);
    edge.apiserver().kill().await.unwrap();
    edge.etcd().kill().await.unwrap();
    edge.etcd().restore_data("old").unwrap();
    edge.etcd().start().await.unwrap();
    edge.apiserver().start().await.unwrap();
    assert_eq!(config_maps(edge, "").await, ["before-the-kill"]);
}

#[tokio::test]
async fn old_versions_are_compacted_away_as_often_as_asked() {
    let spec = EdgeSpec::bare("shoal").with_compaction_every(Duration::from_secs(1)).without_watch_cache();
    let world = World::builder().edge_with(spec).start().await.unwrap();
    let edge = world.edge("shoal");
    create_config_map(edge, "first").await;
    let config_maps: Api<ConfigMap> = Api::default_namespaced(edge.client(ADMIN).await.unwrap());
    let old = config_maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    create_config_map(edge, "second").await;
    wait_until("a watch from the old version answers 410", SOON, || async {
        let watch = config_maps.watch(&WatchParams::default().timeout(1), &old).await;
        let mut watch = Box::pin(watch.map_err(|error| error.to_string())?);
        match watch.next().await {
            Some(Ok(WatchEvent::Error(status))) if status.code == 410 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_server_that_cannot_start_is_named_with_its_log() {
    let spec = EdgeSpec::bare("wreck").with_apiserver_flag("--no-such-flag");
    let Err(error) = World::builder().edge_with(spec).start().await else { panic!("it started") };
    let Error::Start { logs, source } = &error else { panic!("{error}") };
    assert!(matches!(&**source, Error::Ended { part, .. } if part == "wreck/kube-apiserver"), "{error}");
    assert!(error.to_string().contains("unknown flag: --no-such-flag"), "{error}");
    assert!(logs.join("wreck/kube-apiserver/log").exists(), "{error}");
    std::fs::remove_dir_all(logs).unwrap();
}

#[test]
fn a_panicking_test_leaves_its_logs_and_no_process() {
    let report = Report::new("panic");
    let output = report.child("child_that_panics_beside_a_running_edge").output().unwrap();
    assert!(!output.status.success(), "the child did not panic: {}", text(&output));
    let folder = report.assert_that_nothing_runs(&output);
    let said = text(&output);
    assert!(said.contains(&format!("logs are kept in {}", folder.display())), "{said}");
    assert!(folder.join("pier/kube-apiserver/log").exists(), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_killed_test_leaves_no_process() {
    let report = Report::new("kill");
    let mut child =
        report.child("child_that_waits_beside_a_running_edge").stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !report.path.exists() && begun.elapsed() < Duration::from_mins(1) {
        assert!(child.try_wait().unwrap().is_none(), "the child ended before it was killed");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let folder = report.assert_that_nothing_runs(&output);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_program_of_the_testbed_runs_and_has_beside_it_what_it_needs() {
    let programs = Programs::locate().unwrap();
    let versions = [
        (programs.kubectl().unwrap(), &["version", "--client"][..], "v1.36.3"),
        (programs.kube_apiserver().unwrap(), &["--version"], "v1.36.3"),
        (programs.etcd().unwrap(), &["--version"], "3.6."),
        (programs.kcp().unwrap(), &["--version"], "kcp-v0.28.1"),
        (programs.kwok().unwrap(), &["--version"], "kwok"),
        (programs.helm().unwrap(), &["version"], "v3."),
        (programs.reports_controller().unwrap(), &["--help"], "backgroundScanInterval"),
    ];
    for (program, arguments, wanted) in versions {
        let output = Command::new(&program).args(arguments).output().unwrap();
        assert!(text(&output).contains(wanted), "{}: {}", program.display(), text(&output));
    }
    let stages = std::fs::read_to_string(programs.kwok_stages().unwrap()).unwrap();
    assert_eq!(stages.matches("kind: Stage").count(), 6, "{stages}");
    for folder in [programs.kyverno_crds().unwrap(), programs.kyverno_charts().unwrap().join("kyverno")] {
        assert!(folder.read_dir().unwrap().next().is_some(), "{}", folder.display());
    }
}

#[test]
fn without_go_a_build_ends_with_one_sentence_that_says_what_to_do() {
    let output = Report::new("go").child("child_that_builds").env("PATH", "/nowhere").output().unwrap();
    let said = text(&output);
    let sentence = said.lines().find(|line| line.contains("no Go toolchain")).unwrap_or_default();
    assert!(sentence.contains("install Go 1.26"), "{said}");
}

#[tokio::test]
async fn a_testbed_outlives_its_command_and_goes_down_whole() {
    let folder = std::env::temp_dir().join(format!("mailboat-bed-{}", std::process::id()));
    let _guard = DownAtTheEnd(folder.clone());
    assert_eq!(bed::status(&folder).await.unwrap(), []);
    let spec = BedSpec { center: false, edges: vec!["quay".to_owned()], nodes: 1 };
    let Up::Started(first) = bed::up(&folder, &spec).await.unwrap() else { panic!("it was up before") };
    println!("{first}");
    assert_eq!(bed::up(&folder, &spec).await.unwrap(), Up::Already(first.clone()));

    let kubectl = Programs::locate().unwrap().kubectl().unwrap();
    let nodes = Command::new(kubectl)
        .args(["--context", "quay", "get", "nodes", "--output=name", "--cache-dir"])
        .arg(folder.join("cache"))
        .env("KUBECONFIG", &first.kubeconfig)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&nodes.stdout), "node/quay-0\n", "{}", text(&nodes));

    let statuses = bed::status(&folder).await.unwrap();
    println!("{}", bed::table(&statuses));
    assert_eq!(statuses.len(), 5, "{statuses:?}");
    assert!(statuses.iter().all(|status| status.ready && status.resident_bytes.is_some()), "{statuses:?}");

    let identities: Vec<_> =
        statuses.iter().map(|status| ProcessIdentity::of(status.pid.unwrap()).unwrap()).collect();
    let ended = bed::down(&folder).await.unwrap();
    assert_eq!(ended.len(), 5, "{ended:?}");
    assert!(!identities.iter().any(ProcessIdentity::is_alive), "{identities:?}");
    assert!(!folder.exists());
    assert_eq!(bed::down(&folder).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_testbed_whose_command_was_killed_half_way_goes_down_whole() {
    let folder = std::env::temp_dir().join(format!("mailboat-half-bed-{}", std::process::id()));
    let _guard = DownAtTheEnd(folder.clone());
    let report = Report { path: folder.clone() };
    let mut child = report.child("child_that_brings_up_a_testbed").stdout(Stdio::null()).spawn().unwrap();
    let record = folder.join("etcd/process.json");
    let process = wait_until("the testbed's etcd runs", SOON, async || {
        let text = std::fs::read_to_string(&record).map_err(|error| error.to_string())?;
        serde_json::from_str::<ProcessIdentity>(&text).map_err(|error| error.to_string())
    })
    .await;
    child.kill().unwrap();
    child.wait().unwrap();
    let process = process.unwrap();
    assert!(process.is_alive(), "etcd went with its command: {process:?}");
    let ended = bed::down(&folder).await.unwrap();
    assert!(ended.contains(&"etcd".to_owned()), "{ended:?}");
    assert!(!process.is_alive(), "{process:?}");
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_folder_that_holds_something_else_is_left_alone() {
    let folder = std::env::temp_dir().join(format!("mailboat-no-bed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("letters"), "precious").unwrap();
    let up = bed::up(&folder, &BedSpec::default()).await.unwrap_err();
    let down = bed::down(&folder).await.unwrap_err();
    assert!(folder.join("letters").exists());
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::remove_file(folder.with_extension("lock")).unwrap();
    for error in [up, down] {
        assert!(error.to_string().contains("left alone"), "{error}");
    }
}

#[tokio::test]
#[ignore = "the child of a_panicking_test_leaves_its_logs_and_no_process"]
async fn child_that_panics_beside_a_running_edge() {
    let world = start_edge_and_report().await;
    panic!("as expected, with {} parts running", world.parts().len());
}

#[tokio::test]
#[ignore = "the child of a_killed_test_leaves_no_process"]
async fn child_that_waits_beside_a_running_edge() {
    let _world = start_edge_and_report().await;
    std::future::pending::<()>().await;
}

#[tokio::test]
#[ignore = "the child of a_center_and_two_edges_are_ready_in_time_and_do_their_work"]
async fn child_that_shares_a_world() {
    let workspace = World::shared().await.unwrap().center().workspace("shared").await.unwrap();
    println!("\nmade {}", workspace.path);
}

#[tokio::test]
#[ignore = "the child of a_testbed_whose_command_was_killed_half_way_goes_down_whole"]
async fn child_that_brings_up_a_testbed() {
    let folder = PathBuf::from(std::env::var_os(CHILD_VARIABLE).unwrap());
    let spec = BedSpec { center: false, edges: vec!["quay".to_owned()], nodes: 1 };
    bed::up(&folder, &spec).await.unwrap();
}

#[test]
#[ignore = "the child of without_go_a_build_ends_with_one_sentence_that_says_what_to_do"]
fn child_that_builds() {
    let error = Programs::locate().unwrap().build_one(Program::Kwok, &mut |_| {}).unwrap_err();
    println!("{error}");
}

async fn start_edge_and_report() -> World {
    let world = World::builder().edge_with(EdgeSpec::bare("pier")).start().await.unwrap();
    let processes: Vec<ProcessIdentity> = world.parts().iter().filter_map(|part| part.process()).collect();
    let said = json!({ "processes": processes, "folder": world.folder() });
    let path = PathBuf::from(std::env::var_os(CHILD_VARIABLE).unwrap());
    let draft = path.with_extension("draft");
    std::fs::write(&draft, said.to_string()).unwrap();
    std::fs::rename(draft, path).unwrap();
    world
}

/// What a child test says about the processes that it started.
struct Report {
    path: PathBuf,
}

impl Report {
    fn new(name: &str) -> Self {
        Self { path: std::env::temp_dir().join(format!("mailboat-report-{name}-{}", std::process::id())) }
    }

    fn child(&self, test: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--ignored", "--nocapture"]).env(CHILD_VARIABLE, &self.path);
        command
    }

    /// Gives the folder of the child's world.
    fn assert_that_nothing_runs(&self, output: &Output) -> PathBuf {
        let said = std::fs::read_to_string(&self.path).unwrap_or_else(|_| panic!("{}", text(output)));
        let said: Value = serde_json::from_str(&said).unwrap();
        let processes: Vec<ProcessIdentity> = serde_json::from_value(said["processes"].clone()).unwrap();
        assert_eq!(processes.len(), 2, "etcd and kube-apiserver: {processes:?}");
        let begun = Instant::now();
        while processes.iter().any(ProcessIdentity::is_alive) {
            assert!(begun.elapsed() < SOON, "they still run: {processes:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        PathBuf::from(said["folder"].as_str().unwrap_or_default())
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Ends the testbed when a test fails before it does so itself.
struct DownAtTheEnd(PathBuf);

impl Drop for DownAtTheEnd {
    fn drop(&mut self) {
        let folder = self.0.clone();
        let down = std::thread::spawn(move || {
            tokio::runtime::Runtime::new().unwrap().block_on(bed::down(&folder)).unwrap();
            let _ = std::fs::remove_file(folder.with_extension("lock"));
        });
        assert!(down.join().is_ok(), "the testbed could not be ended");
    }
}

async fn create_config_map(edge: &Edge, name: &str) {
    let config_maps: Api<ConfigMap> = Api::default_namespaced(edge.client(ADMIN).await.unwrap());
    let config_map = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    config_maps.create(&PostParams::default(), &config_map).await.unwrap();
}

/// The names of the config maps that tests made in `default`, all or those called `name`.
async fn config_maps(edge: &Edge, name: &str) -> Vec<String> {
    let config_maps: Api<ConfigMap> = Api::default_namespaced(edge.client(ADMIN).await.unwrap());
    let list = config_maps.list(&ListParams::default()).await.unwrap();
    let names = list.items.into_iter().filter_map(|config_map| config_map.metadata.name);
    names.filter(|found| found != "kube-root-ca.crt" && (name.is_empty() || found == name)).collect()
}

fn text(output: &Output) -> String {
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{said}\n{complained}")
}
