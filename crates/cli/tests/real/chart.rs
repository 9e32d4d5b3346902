//! Kyverno's own objects, rendered from its chart as Helm would install it.

use std::fs;
use std::path::Path;
use std::process::Command;

use mailboat_api::names::denatured_group;
use mailboat_testkit::build::Programs;
use serde_json::Value;

/// Kinds that would take effect in a mailbox, where they are only meant to be carried.
const DENATURED: [&str; 5] = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];

/// Every object of Kyverno, as it is meant to stand at the edge.
pub(crate) fn kyverno() -> Vec<Value> {
    let programs = Programs::locate().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("kyverno");
    copy(&programs.kyverno_charts().unwrap().join("kyverno"), &chart);
    leave_out_what_is_not_here(&chart);
    let output = Command::new(programs.helm().unwrap())
        .args(["template", "kyverno", chart.to_str().unwrap(), "--namespace", "kyverno"])
        .args(["--kube-version", "1.36.0", "--no-hooks"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut objects = documents(&String::from_utf8(output.stdout).unwrap());
    // The kinds of the newer policies come from a chart of their own, which is not in the module.
    let newer = programs.kyverno_crds().unwrap().join("policies.kyverno.io");
    for entry in fs::read_dir(newer).unwrap() {
        objects.extend(documents(&fs::read_to_string(entry.unwrap().path()).unwrap()));
    }
    objects
}

/// The CRDs of policy reports.
pub(crate) fn policy_report_definitions() -> Vec<Value> {
    let folder = Programs::locate().unwrap().kyverno_crds().unwrap().join("policyreport");
    let files = fs::read_dir(folder).unwrap();
    files.flat_map(|entry| documents(&fs::read_to_string(entry.unwrap().path()).unwrap())).collect()
}

/// An object as it stands in a mailbox.
pub(crate) fn in_mailbox(object: &Value) -> Value {
    let mut object = object.clone();
    if DENATURED.iter().any(|kind| object["kind"] == **kind) {
        let natured = object["apiVersion"].as_str().unwrap();
        let (group, version) = natured.split_once('/').unwrap_or(("", natured));
        object["apiVersion"] = format!("{}/{version}", denatured_group(group)).into();
    }
    object
}

fn documents(text: &str) -> Vec<Value> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    documents.retain(Value::is_object);
    documents.iter_mut().for_each(leave_out_nulls);
    documents
}

/// A chart writes members without a value, which mean nothing.
fn leave_out_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}

/// The Go module holds the chart without the charts that Helm would download for it.
fn leave_out_what_is_not_here(chart: &Path) {
    let path = chart.join("Chart.yaml");
    let mut description: Value = serde_saphyr::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let there = |one: &Value| chart.join("charts").join(one["name"].as_str().unwrap()).is_dir();
    description["dependencies"].as_array_mut().unwrap().retain(there);
    fs::write(&path, serde_saphyr::to_string(&description).unwrap()).unwrap();
    fs::remove_file(chart.join("Chart.lock")).unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let source = entry.unwrap().path();
        let target = to.join(source.file_name().unwrap());
        if source.is_dir() {
            copy(&source, &target);
        } else {
            fs::copy(&source, &target).unwrap();
        }
    }
}
