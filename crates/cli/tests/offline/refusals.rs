//! What is wrong with a command line is said before any server is asked, and before anything is made.

use std::fs;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use crate::mailboat;

const WIDGETS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";

#[test]
fn what_cannot_be_meant_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("crd.yaml"), WIDGETS).unwrap();
    let placement = "apiVersion: edge.kubestellar.io/v2alpha1\nkind: EdgePlacement\nmetadata: {name: p}\n";
    fs::write(folder.path().join("placement.yaml"), format!("{placement}spec: {{downsync: 3}}\n")).unwrap();
    let prep = ["--imw", "root:imw1", "--syncer-image", "i", "--output-file", "nowhere/f.yaml"];
    for (words, expected) in [
        (&["center", "--provider-workspace", "a b"][..], "\"a b\" is no path of a workspace"),
        (&["api", "import", "-f", "crd.yaml", "--export", "Bad Name"], "is no name of an APIExport"),
        (&["plan", "-f", "placement.yaml"], "a EdgePlacement that has not the form of one"),
        (&[&["prep-for-syncer", "pier"], &prep[..]].concat(), "nowhere/f.yaml cannot be written"),
        (&[&["prep-for-cluster", "pier", "a=b"], &prep[..]].concat(), "nowhere/f.yaml cannot be written"),
    ] {
        let refused = mailboat(folder.path(), words, "");
        let err = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {err}");
        let one = err.lines().count() == 1 && refused.stdout.is_empty();
        assert!(one && err.contains(expected), "{words:?}: {err}");
    }
}

/// Whoever pipes to `head` closes the pipe: what is under way goes on, and ends as it would.
#[test]
fn nobody_who_listens_is_no_reason_to_stop() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let folder = tempfile::tempdir().unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_mailboat"))
        .args(["plan", "-f", "missing.yaml"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(OwnedFd::from(writer))
        .status()
        .unwrap();
    assert_eq!(ended.code(), Some(2), "it did not end by itself");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = Command::new(env!("CARGO_BIN_EXE_mailboat"))
        .args(["completion", "bash"])
        .stdout(OwnedFd::from(writer))
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn the_version_is_said_in_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&["version"][..], &["--version"], &["-V"]] {
        let said = mailboat(folder.path(), words, "");
        assert_eq!(
            String::from_utf8_lossy(&said.stdout),
            concat!("mailboat ", env!("CARGO_PKG_VERSION"), "\n")
        );
    }
}
