//! The example of the documentation, customized for two edges.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mailboat;

const PAGE: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata:
  namespace: commonstuff
  name: httpd-htdocs
  annotations: {edge.kubestellar.io/expand-parameters: "true"}
data:
  index.html: "Running in %(loc-name). 100%% at the edge."
"#;

const DEPLOYMENT: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: commonstuff
  name: commond
  annotations: {edge.kubestellar.io/customizer: example-customizer}
spec:
  replicas: 1
  template: {spec: {containers: [{name: httpd, env: [{name: EXAMPLE_VAR, value: none}]}]}}
";

const CUSTOMIZER: &str = r#"
apiVersion: edge.kubestellar.io/v2alpha1
kind: Customizer
metadata:
  namespace: commonstuff
  name: example-customizer
  annotations: {edge.kubestellar.io/expand-parameters: "true"}
replacements:
- {path: "$.spec.template.spec.containers.0.env.0.value", value: '"env is %(env)"'}
- {path: "$.spec.replicas", value: "%(replicas)"}
"#;

fn location(name: &str, replicas: u32) -> String {
    format!(
        "apiVersion: edge.kubestellar.io/v2alpha1\nkind: Location\nmetadata:\n  name: {name}\n  labels: {{env: prod, \
         loc-name: {name}, replicas: '{replicas}'}}\n"
    )
}

fn files() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("page.yaml", PAGE.to_owned()),
        ("all.yaml", format!("{PAGE}---{DEPLOYMENT}")),
        ("customizer.yaml", CUSTOMIZER.to_owned()),
        ("florin.yaml", location("florin", 3)),
        ("bare.yaml", location("bare", 1).replace("env: prod, ", "")),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn texts(output: &Output) -> (&str, &str) {
    (std::str::from_utf8(&output.stdout).unwrap(), std::str::from_utf8(&output.stderr).unwrap())
}

#[test]
fn an_object_is_shown_as_an_edge_would_get_it() {
    let folder = files();
    let shown = mailboat(folder.path(), &["customize", "page.yaml", "--location", "florin.yaml"], "");
    let (out, err) = texts(&shown);
    assert!(shown.status.success() && err.is_empty(), "{out}{err}");
    assert!(out.contains("Running in florin. 100% at the edge."), "{out}");

    let words = ["customize", "all.yaml", "--customizer", "customizer.yaml", "--location", "-", "-o", "json"];
    let shown = mailboat(folder.path(), &words, &location("guilder", 2));
    let (out, err) = texts(&shown);
    assert!(shown.status.success(), "{out}{err}");
    let note = "note: ConfigMap commonstuff/httpd-htdocs does not ask for a Customizer";
    assert!(err.starts_with(note) && err.lines().count() == 1, "{err}");
    let list: Value = serde_json::from_str(out).unwrap();
    assert_eq!(list["items"][0]["data"]["index.html"], "Running in guilder. 100% at the edge.");
    let spec = &list["items"][1]["spec"];
    assert_eq!(spec["replicas"], 2);
    assert_eq!(
        spec["template"]["spec"]["containers"][0]["env"],
        json!([{ "name": "EXAMPLE_VAR", "value": "env is prod" }])
    );
}

#[test]
fn what_the_center_would_hold_is_refused_with_its_reason_and_nothing_is_printed() {
    let folder = files();
    for (words, expected) in [
        (&["page.yaml"][..], "asks for the parameter \"loc-name\", and no Location was given"),
        (
            &["all.yaml", "--location", "florin.yaml"],
            "its Customizer commonstuff/example-customizer is not among those given",
        ),
        (
            &["all.yaml", "--customizer", "customizer.yaml", "--location", "bare.yaml"],
            "asks for the parameter \"env\", which is neither a label nor an annotation of the Location",
        ),
        (&["page.yaml", "--location", "customizer.yaml"], "is no Location"),
        (&["page.yaml", "--location", "missing.yaml"], "missing.yaml cannot be used"),
        (&["page.yaml", "--location", "all.yaml"], "give a file with one Location"),
    ] {
        let words: Vec<&str> = std::iter::once("customize").chain(words.iter().copied()).collect();
        let refused = mailboat(folder.path(), &words, "");
        let (out, err) = texts(&refused);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {err}");
        assert!(out.is_empty() && err.lines().count() == 1 && err.contains(expected), "{words:?}: {err}");
    }
}
