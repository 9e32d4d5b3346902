//! A kubeconfig that is not there: every command says by which of its flags another is named.

use std::fs;

use crate::mailboat;

/// A center that nobody reaches: what is said before it is asked is said at once.
const CENTER: &str = "\
current-context: c
contexts: [{name: c, context: {cluster: c, user: c}}]
clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9/clusters/root'}}]
users: [{name: c, user: {}}]
";

#[test]
fn a_kubeconfig_that_is_not_there_is_asked_for_by_the_flag_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("center"), CENTER).unwrap();
    let syncer = ["syncer", "--sync-target-name", "guilder", "--sync-target-uid", "u"];
    for (words, flag) in [
        (&["ws", "root", "--kubeconfig", "missing"][..], "--kubeconfig or KUBECONFIG"),
        (&["get", "edges", "--kubeconfig", "missing"], "--kubeconfig or KUBECONFIG"),
        (&["center", "--listen", "127.0.0.1:0", "--kubeconfig", "missing"], "--kubeconfig or KUBECONFIG"),
        (&["center", "init", "--kubeconfig", "missing"], "--kubeconfig or KUBECONFIG"),
        (&["syncer-remove", "guilder", "--kubeconfig", "missing"], "--kubeconfig or KUBECONFIG"),
        (
            &["syncer-remove", "guilder", "--kubeconfig", "center", "--edge-kubeconfig", "missing"],
            "--edge-kubeconfig",
        ),
        (
            &["api", "import", "a.b", "--kubeconfig", "center", "--from-kubeconfig", "missing"],
            "--from-kubeconfig",
        ),
        (&[&syncer[..], &["--from-kubeconfig", "missing"]].concat(), "--from-kubeconfig"),
        (
            &[&syncer[..], &["--from-kubeconfig", "center", "--to-kubeconfig", "missing"]].concat(),
            "--to-kubeconfig",
        ),
        (&["up", "--center-kubeconfig", "missing"], "--center-kubeconfig FILE"),
        (&["up", "--edge", "pier=missing"], "--edge pier=FILE"),
    ] {
        let refused = mailboat(folder.path(), words, "");
        let (out, err) = (String::from_utf8_lossy(&refused.stdout), String::from_utf8_lossy(&refused.stderr));
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {err}");
        let said: Vec<&str> = err.lines().filter(|line| line.starts_with("error: ")).collect();
        assert!(out.is_empty() && said.len() == 1, "{words:?}: {out}{err}");
        assert!(
            said[0].contains("missing") && said[0].ends_with(&format!(" with {flag}")),
            "{words:?}: {err}"
        );
    }
}

#[test]
fn a_folder_that_is_kept_does_not_remember_a_kubeconfig_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["up", "--data", "kept", "--edge", "pier=missing"];
    assert_eq!(mailboat(folder.path(), &words, "").status.code(), Some(2));
    assert!(!folder.path().join("kept/servers.json").exists());
}
