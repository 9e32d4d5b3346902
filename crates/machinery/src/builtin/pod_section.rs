//! What is changed in a Pod that runs: containers that come to look into it, and how much its own may take.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::pod;
use crate::kind::Section;
use crate::status::FieldError;

/// What a Pod that runs may be given more or less of.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
/// The lists of containers whose resources change.
const RESIZED: [&str; 2] = ["containers", "initContainers"];
const EPHEMERAL: &str = "ephemeralContainers";

/// How Pods are written besides as a whole.
pub(super) const SECTIONS: &[Section] = &[
    Section {
        name: "ephemeralcontainers",
        resets: &[],
        prepared: true,
        keep: |new, old, _| {
            let containers = new["spec"].get(EPHEMERAL).cloned();
            new["spec"] = old["spec"].clone();
            put(&mut new["spec"], EPHEMERAL, containers);
            keep_rest(new, old);
        },
        check: check_ephemeral,
    },
    Section { name: "resize", resets: &[], prepared: true, keep: keep_but_resources, check: check_resize },
];

/// What neither of the two writes.
fn keep_rest(new: &mut Value, old: &Value) {
    new["status"] = old["status"].clone();
    for member in ["labels", "annotations", "ownerReferences", "finalizers"] {
        put(&mut new["metadata"], member, old["metadata"].get(member).cloned());
    }
}

fn put(holder: &mut Value, member: &str, value: Option<Value>) {
    let Value::Object(members) = holder else { return };
    match value {
        Some(value) => members.insert(member.to_owned(), value),
        None => members.remove(member),
    };
}

fn list<'v>(pod: &'v Value, member: &str) -> &'v [Value] {
    pod["spec"][member].as_array().map_or(&[], Vec::as_slice)
}

fn check_ephemeral(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let at = "spec.ephemeralContainers";
    let mut names: HashSet<&Value> =
        RESIZED.iter().flat_map(|member| list(new, member)).map(|container| &container["name"]).collect();
    for (index, container) in list(new, EPHEMERAL).iter().enumerate() {
        if !names.insert(&container["name"]) {
            errors.push(FieldError::duplicate(&format!("{at}[{index}].name"), &container["name"]));
        }
        if container["image"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(&format!("{at}[{index}].image"), ""));
        }
    }
    for before in list(old, EPHEMERAL) {
        let now = list(new, EPHEMERAL).iter().find(|container| container["name"] == before["name"]);
        let what = match now {
            None => "removed",
            Some(now) if now != before => "changed",
            Some(_) => continue,
        };
        let why = format!("existing ephemeral containers {} may not be {what}\n", before["name"]);
        errors.push(FieldError::forbidden(at, &why));
    }
    errors
}

/// Takes the resources of containers that are the same as before. Where they are not, all is taken, and refused.
fn keep_but_resources(new: &mut Value, old: &Value, _: u64) {
    if RESIZED.iter().any(|member| list(new, member).len() != list(old, member).len()) {
        return;
    }
    let sent = std::mem::replace(&mut new["spec"], old["spec"].clone());
    for member in RESIZED {
        let Some(sent) = sent[member].as_array() else { continue };
        let kept = list(old, member);
        if sent.iter().zip(kept).any(|(sent, kept)| sent["name"] != kept["name"]) {
            new["spec"][member] = sent.clone().into();
            continue;
        }
        for (index, sent) in sent.iter().enumerate() {
            for resource in ["resources", "resizePolicy"] {
                put(&mut new["spec"][member][index], resource, sent.get(resource).cloned());
            }
        }
    }
    keep_rest(new, old);
}

fn check_resize(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let class = &old["status"]["qosClass"];
    if *class != json!(pod::qos_class(&new["spec"])) {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid("spec", class, why));
    }
    let statuses = old["status"]["containerStatuses"].as_array().into_iter().flatten();
    let running = statuses.into_iter().find(|status| status["state"]["running"].is_object());
    if running.is_some_and(|status| status["resources"].is_null()) {
        errors.push(FieldError::forbidden("spec", "Pod running on node without support for resize"));
    }
    let before = errors.len();
    for member in RESIZED {
        if list(new, member).len() != list(old, member).len() {
            let why = format!("{member} may not be added or removed on resize");
            errors.push(FieldError::forbidden(&format!("spec.{member}"), &why));
            continue;
        }
        for (index, (new, old)) in list(new, member).iter().zip(list(old, member)).enumerate() {
            if new["name"] != old["name"] {
                let why = format!("{member} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(&format!("spec.{member}[{index}].name"), &why));
            }
        }
    }
    if errors.len() > before {
        return errors;
    }
    for member in RESIZED {
        for (index, (new, old)) in list(new, member).iter().zip(list(old, member)).enumerate() {
            errors.extend(check_resources(new, old, &format!("spec.{member}[{index}].resources")));
        }
    }
    let same = |member: &str| {
        let others = |pod: &Value| list(pod, member).iter().map(without_resizable).collect::<Vec<_>>();
        others(new) == others(old)
    };
    if !same("containers") {
        errors.push(FieldError::forbidden("spec", "only cpu and memory resources are mutable"));
    }
    if !same("initContainers") {
        let why = "only cpu and memory resources for init or sidecar containers are mutable";
        errors.push(FieldError::forbidden("spec.initContainers", why));
    }
    errors
}

fn check_resources(new: &Value, old: &Value, at: &str) -> Vec<FieldError> {
    let removed = |what: &&str| {
        let mut before = old["resources"][*what].as_object().into_iter().flatten();
        before.any(|(name, _)| new["resources"][*what].get(name).is_none())
    };
    let refused = |what: &str| {
        FieldError::forbidden(&format!("{at}.{what}"), &format!("resource {what} cannot be removed"))
    };
    ["requests", "limits"].into_iter().filter(removed).map(refused).collect()
}

/// A container without what may change of it.
fn without_resizable(container: &Value) -> Value {
    let mut container = container.clone();
    if let Value::Object(members) = &mut container {
        members.remove("resizePolicy");
    }
    let Some(Value::Object(resources)) = container.get_mut("resources") else { return container };
    for what in ["requests", "limits"] {
        let Some(Value::Object(amounts)) = resources.get_mut(what) else { continue };
        amounts.retain(|name, _| !RESIZABLE.contains(&name.as_str()));
        if amounts.is_empty() {
            resources.remove(what);
        }
    }
    container
}
