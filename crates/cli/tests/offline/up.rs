//! What `mailboat up` refuses.

use crate::mailboat;

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
