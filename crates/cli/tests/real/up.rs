//! `mailboat up`: from nothing to the example at both edges, Ctrl-C, and again from what was kept.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use mailboat_testkit::{ADMIN, EdgeSpec, World};
use serde_json::Value;

use crate::process::Up;

/// Runs `mailboat` in a folder.
fn mailboat(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mailboat"));
    command.args(words).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn well(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The names of a list's objects.
fn named(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_example_travels_to_both_edges_and_is_there_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let words: Vec<&str> = words.iter().copied().chain(["--kubeconfig", "kept/kubeconfig"]).collect();
        mailboat(folder.path(), &words)
    };
    let mut up = Up::start(folder.path(), &["--data", "kept"]);
    up.until_in_place();
    for word in [
        "guilder",
        "florin",
        "export KUBECONFIG=",
        "root:wmw-c",
        "Deployment specialstuff/speciald",
        "CustomResourceDefinition crontabs.stable.example.com",
        "CronTab specialstuff/my-new-cron-object",
        "APIService v1090.example.my",
        "mailboat get edges",
        "mailboat get summary",
        "mailboat why",
    ] {
        assert!(up.said().contains(word), "{word}:\n{}", up.said());
    }
    let edges = well(&run(&["get", "edges", "--context", "imw1", "-o", "json"]));
    assert_eq!(named(&edges), ["florin", "guilder"]);
    let why = ["why", "replicaset/commond", "-n", "commonstuff", "--context", "wmw-c", "-o", "json"];
    assert!(run(&why).status.success(), "what it says to type can be typed");
    let summaries = well(&run(&["get", "summary", "--context", "wmw-c", "-o", "json"]));
    assert_eq!(named(&summaries).len(), 1, "{summaries}");
    let uids = |list: &Value| -> Vec<Value> {
        list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["uid"].clone()).collect()
    };
    let copies = ["get", "objects", "--kind", "replicasets", "--context", "root", "-o", "json"];
    let before = well(&run(&copies));
    assert_eq!(named(&before), ["commond", "commond"]);
    let mode = {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(folder.path().join("kept/kubeconfig")).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode, 0o600, "{mode:o}");
    up.interrupt();
    assert!(!run(&copies).status.success(), "somebody serves still");

    let mut again = Up::start(folder.path(), &["--data", "kept"]);
    again.until_in_place();
    let after = well(&run(&copies));
    assert_eq!(uids(&after), uids(&before), "they are the same objects");

    // What somebody does to the example stays so, and a later start does not wait for what was there before.
    let moved = run(&["ensure", "location", "florin", "env=test", "--imw", "root:imw1", "--context", "root"]);
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    again.until(|| named(&well(&run(&copies))) == ["commond"], "it leaves florin");
    again.interrupt();
    let mut later = Up::start(folder.path(), &["--data", "kept"]);
    later.until_in_place();
    assert!(later.said().contains("everything runs again"), "{}", later.said());
    assert_eq!(named(&well(&run(&copies))), ["commond"]);

    // Nor does a later start describe again what somebody removed, or make a workspace again that somebody deleted.
    let removed = run(&["remove", "location", "florin", "--imw", "root:imw1", "--context", "root"]);
    assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    let deleted = run(&["remove", "wmw", "root:wmw-s", "--context", "root"]);
    assert!(deleted.status.success(), "{}", String::from_utf8_lossy(&deleted.stderr));
    let edges = ["get", "edges", "--context", "imw1", "-o", "json"];
    assert_eq!(named(&well(&run(&edges))), ["guilder"]);
    later.interrupt();
    let mut without = Up::start(folder.path(), &["--data", "kept"]);
    without.until_in_place();
    assert!(without.said().contains("florin is described no more"), "{}", without.said());
    assert_eq!(named(&well(&run(&edges))), ["guilder"]);
    let gone = run(&["get", "placements", "--context", "wmw-s", "-o", "json"]);
    assert!(!gone.status.success(), "{}", String::from_utf8_lossy(&gone.stdout));
    without.interrupt();
    let refused = mailboat(folder.path(), &["up", "--data", "kept", "--edge", "florin=f"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("is an embedded one"), "{said}");
}

/// On a machine with nothing else, and without a trace in its user's home.
#[test]
fn there_are_as_many_edges_as_one_asks_for() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut up = Up::start_bare(folder.path(), home.path(), &["--data", "kept", "--edges", "3"]);
    up.until_in_place();
    let copies = ["get", "objects", "--kind", "replicasets", "--context", "root", "-o", "json"];
    let words: Vec<&str> = copies.into_iter().chain(["--kubeconfig", "kept/kubeconfig"]).collect();
    assert_eq!(named(&well(&mailboat(folder.path(), &words))), ["commond"; 3]);
    up.interrupt();
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "it wrote into the home");
}

/// A kcp and a cluster of one's own; the other edge is embedded.
#[tokio::test(flavor = "multi_thread")]
async fn servers_of_ones_own_take_the_place_of_embedded_ones() {
    let center = World::shared().await.unwrap().center();
    let world = World::builder().edge_with(EdgeSpec::new("florin")).start().await.unwrap();
    let of_center = center.kubeconfig(ADMIN, "root").unwrap();
    let of_edge = world.edge("florin").kubeconfig(ADMIN).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let edge = format!("florin={}", of_edge.display());
    let words = ["--data", "kept", "--center-kubeconfig", of_center.to_str().unwrap(), "--edge", &edge];
    let mut up = Up::start(folder.path(), &words);
    up.until_in_place();
    let copy = crate::program::kubectl(
        &of_edge,
        &["-n", "commonstuff", "get", "configmap", "httpd-htdocs", "-o", "jsonpath={.data}"],
    );
    let copy = copy.await.well().out;
    assert!(copy.contains("florin"), "it is customized for this edge: {copy}");
    up.interrupt();

    // It remembers them.
    let mut again = Up::start(folder.path(), &["--data", "kept"]);
    again.until_in_place();
    again.interrupt();
}
