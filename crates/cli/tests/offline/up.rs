//! `mailboat up`: from nothing to the example at both edges, Ctrl-C, and again from what was kept.

use std::process::Output;

use serde_json::Value;

use crate::mailboat;
use crate::process::Up;

fn well(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_example_travels_to_both_edges_and_is_there_again_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let words: Vec<&str> = words.iter().copied().chain(["--kubeconfig", "kept/kubeconfig"]).collect();
        mailboat(folder.path(), &words, "")
    };
    let mut up = Up::start(folder.path(), &["--data", "kept"]);
    up.until_in_place();
    for word in ["guilder", "florin", "export KUBECONFIG=", "root:wmw-c", "Deployment specialstuff/speciald"]
    {
        assert!(up.said().contains(word), "{word}:\n{}", up.said());
    }
    let edges = well(&run(&["get", "edges", "--context", "imw1", "-o", "json"]));
    let named = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(named(&edges), ["florin", "guilder"]);
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
    later.interrupt();
    let refused = mailboat(folder.path(), &["up", "--data", "kept", "--edge", "florin=f"], "");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("is an embedded one"), "{said}");
}

#[test]
fn what_cannot_be_used_is_refused_before_anything_is_started() {
    let folder = tempfile::tempdir().unwrap();
    for (words, told) in [
        (&["up", "--edge", "guilder"][..], "NAME=FILE"),
        (&["up", "--edge", "Guilder=f"], "Guilder"),
        (&["up", "--edges", "0"], "0"),
        (&["up", "--center-kubeconfig", "missing"], "missing cannot be used"),
    ] {
        let refused = mailboat(folder.path(), words, "");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(told), "{words:?}: {said}");
    }
}
