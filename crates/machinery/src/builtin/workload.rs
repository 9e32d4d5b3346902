//! What runs pods: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs.

use serde_json::{Map, Value, json};

use super::{default, pod};
use crate::status::FieldError;

pub(super) fn default_priority_class(class: &mut Value) {
    default(class, "preemptionPolicy", "PreemptLowerPriority");
}

/// What it says never changes.
pub(super) fn prepare_priority_class(class: &mut Value, old: Option<&Value>) {
    if old.is_none() {
        class["metadata"]["generation"] = 1.into();
    }
}

pub(super) fn default_deployment(deployment: &mut Value) {
    let spec = spec(deployment);
    for (member, value) in [("replicas", 1), ("revisionHistoryLimit", 10), ("progressDeadlineSeconds", 600)] {
        default(spec, member, value);
    }
    default(spec, "strategy", json!({}));
    let strategy = &mut spec["strategy"];
    default(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        default(strategy, "rollingUpdate", json!({}));
        default(&mut strategy["rollingUpdate"], "maxSurge", "25%");
        default(&mut strategy["rollingUpdate"], "maxUnavailable", "25%");
    }
    template(spec);
}

pub(super) fn default_replica_set(set: &mut Value) {
    let spec = spec(set);
    default(spec, "replicas", 1);
    template(spec);
}

/// The oldest of them has the labels of its pods where it says nothing else.
pub(super) fn default_replication_controller(controller: &mut Value) {
    let labels = controller["spec"]["template"]["metadata"]["labels"].clone();
    if labels.as_object().is_some_and(|labels| !labels.is_empty()) {
        default(controller, "metadata", json!({}));
        for (holder, member) in [("spec", "selector"), ("metadata", "labels")] {
            if controller[holder][member].as_object().is_none_or(Map::is_empty) {
                controller[holder][member] = labels.clone();
            }
        }
    }
    let spec = spec(controller);
    default(spec, "replicas", 1);
    if spec["template"].is_object() {
        pod::default_template(&mut spec["template"]);
    }
}

pub(super) fn check_replication_controller(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let spec = &new["spec"];
    let mut errors = Vec::new();
    let selector = spec["selector"].as_object().filter(|selector| !selector.is_empty());
    if selector.is_none() {
        errors.push(FieldError::required("spec.selector", ""));
    }
    if spec["replicas"].as_i64().is_some_and(|replicas| replicas < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.replicas", &spec["replicas"], why));
    }
    if !spec["template"].is_object() {
        errors.push(FieldError::required("spec.template", ""));
        return errors;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let taken =
        |selector: &Map<String, Value>| selector.iter().all(|(key, value)| labels.get(key) == Some(value));
    if selector.is_some_and(|selector| !taken(selector)) {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, why));
    }
    errors.extend(pod::check_spec(&spec["template"]["spec"], "spec.template.spec"));
    errors
}

/// Where a server counts how often the template of a DaemonSet changed, since the times when its spec did.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The count is the server's own.
pub(super) fn prepare_daemon_set(set: &mut Value, old: Option<&Value>) {
    let Some(old) = old else { return };
    let count = old["metadata"]["annotations"][TEMPLATE_GENERATION].as_str().unwrap_or_default();
    let count = count.parse::<u64>().unwrap_or(1);
    let changed = set["spec"]["template"] != old["spec"]["template"];
    set["metadata"]["annotations"][TEMPLATE_GENERATION] = (count + u64::from(changed)).to_string().into();
}

pub(super) fn default_daemon_set(set: &mut Value) {
    default(set, "metadata", json!({}));
    default(&mut set["metadata"], "annotations", json!({}));
    default(&mut set["metadata"]["annotations"], TEMPLATE_GENERATION, "1");
    let spec = spec(set);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "updateStrategy", json!({}));
    let strategy = &mut spec["updateStrategy"];
    default(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        default(strategy, "rollingUpdate", json!({}));
        default(&mut strategy["rollingUpdate"], "maxSurge", 0);
        default(&mut strategy["rollingUpdate"], "maxUnavailable", 1);
    }
    template(spec);
}

pub(super) fn default_stateful_set(set: &mut Value) {
    let spec = spec(set);
    default(spec, "podManagementPolicy", "OrderedReady");
    default(spec, "replicas", 1);
    default(spec, "revisionHistoryLimit", 10);
    default(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    for when in ["whenDeleted", "whenScaled"] {
        default(&mut spec["persistentVolumeClaimRetentionPolicy"], when, "Retain");
    }
    default(spec, "updateStrategy", json!({}));
    let strategy = &mut spec["updateStrategy"];
    if strategy.get("type").is_none() {
        strategy["type"] = "RollingUpdate".into();
        default(strategy, "rollingUpdate", json!({}));
    }
    if let Some(rolling) = strategy.get_mut("rollingUpdate") {
        default(rolling, "partition", 0);
    }
    for claim in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        super::storage::default_claim(claim);
        default(claim, "apiVersion", "v1");
        default(claim, "kind", "PersistentVolumeClaim");
        default(&mut claim["status"], "phase", "Pending");
    }
    template(spec);
}

pub(super) fn default_job(job: &mut Value) {
    let labels = job["spec"]["template"]["metadata"]["labels"].clone();
    if labels.is_object() && job["metadata"].get("labels").is_none() {
        job["metadata"]["labels"] = labels;
    }
    default_job_spec(spec(job));
}

fn default_job_spec(spec: &mut Value) {
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        default(spec, "completions", 1);
    }
    default(spec, "parallelism", 1);
    let limit = if spec.get("backoffLimitPerIndex").is_some() { i32::MAX } else { 6 };
    default(spec, "backoffLimit", limit);
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    default(spec, "manualSelector", false);
    let replacement = if spec.get("podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
    default(spec, "podReplacementPolicy", replacement);
    template(spec);
}

/// A job's pods are told from others by labels that name the job's uid.
pub(super) fn prepare_job(job: &mut Value, old: Option<&Value>) {
    if old.is_some() || job["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (job["metadata"]["uid"].clone(), job["metadata"]["name"].clone());
    let labels = &mut job["spec"]["template"]["metadata"]["labels"];
    for (label, value) in [("batch.kubernetes.io/controller-uid", &uid), ("controller-uid", &uid)] {
        labels[label] = value.clone();
    }
    for label in ["batch.kubernetes.io/job-name", "job-name"] {
        labels[label] = name.clone();
    }
    // A job without labels has those of its pods.
    let of_pods = labels.clone();
    if job["metadata"]["labels"].as_object().is_none_or(Map::is_empty) {
        job["metadata"]["labels"] = of_pods;
    }
    job["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid;
}

pub(super) fn default_cron_job(job: &mut Value) {
    let spec = spec(job);
    default(spec, "concurrencyPolicy", "Allow");
    default(spec, "suspend", false);
    default(spec, "successfulJobsHistoryLimit", 3);
    default(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = spec.pointer_mut("/jobTemplate/spec/template") {
        pod::default_template(template);
    }
}

fn spec(object: &mut Value) -> &mut Value {
    default(object, "spec", json!({}));
    default(object, "status", json!({}));
    &mut object["spec"]
}

fn template(spec: &mut Value) {
    default(spec, "template", json!({}));
    pod::default_template(&mut spec["template"]);
}

pub(super) fn check_deployment(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    check_replicated(new, old, "deployment")
}

pub(super) fn check_replica_set(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    check_replicated(new, old, "deployment")
}

pub(super) fn check_daemon_set(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    check_replicated(new, old, "daemonset")
}

pub(super) fn check_revision(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let is_empty = new["data"].is_null();
    is_empty.then(|| FieldError::required("data", "data is mandatory")).into_iter().collect()
}

pub(super) fn check_stateful_set(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    const FREE: [&str; 8] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "volumeClaimTemplates",
    ];
    let mut errors = check_replicated(new, None, "statefulset");
    let members = |object: &Value| {
        let mut spec = object["spec"].clone();
        if let Value::Object(members) = &mut spec {
            members.retain(|name, _| !FREE.contains(&name.as_str()));
        }
        spec
    };
    if old.is_some_and(|old| members(old) != members(new)) {
        errors.push(FieldError::forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
             'minReadySeconds' are forbidden",
        ));
    }
    errors
}

fn check_replicated(new: &Value, old: Option<&Value>, what: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &new["spec"];
    if spec["replicas"].as_i64().is_some_and(|replicas| replicas < 0) {
        errors.push(FieldError::invalid(
            "spec.replicas",
            &spec["replicas"],
            "must be greater than or equal to 0",
        ));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let selector = &spec["selector"];
    let empty = |member: &str| selector[member].as_object().is_none_or(serde_json::Map::is_empty);
    if selector.is_object() && empty("matchLabels") && selector.get("matchExpressions").is_none() {
        errors.push(FieldError::invalid(
            "spec.selector",
            selector,
            format!("empty selector is invalid for {what}"),
        ));
    } else if !selects(selector, labels) {
        let sentence = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, sentence));
    }
    errors.extend(pod::check_spec(&spec["template"]["spec"], "spec.template.spec"));
    if let Some(old) = old
        && spec["selector"] != old["spec"]["selector"]
    {
        errors.push(FieldError::invalid("spec.selector", &spec["selector"], "field is immutable"));
    }
    errors
}

/// Whether a label selector, as objects hold it, takes these labels. None selects nothing.
fn selects(selector: &Value, labels: &Value) -> bool {
    if !selector.is_object() {
        return false;
    }
    let mut wanted = selector["matchLabels"].as_object().into_iter().flatten();
    let expressions = selector["matchExpressions"].as_array().map_or(&[][..], Vec::as_slice);
    wanted.all(|(key, value)| labels.get(key) == Some(value))
        && expressions.iter().all(|expression| {
            let found = labels.get(expression["key"].as_str().unwrap_or_default());
            let listed = || {
                let values = expression["values"].as_array().map_or(&[][..], Vec::as_slice);
                found.is_some_and(|found| values.contains(found))
            };
            match expression["operator"].as_str() {
                Some("In") => listed(),
                Some("NotIn") => !listed(),
                Some("Exists") => found.is_some(),
                Some("DoesNotExist") => found.is_none(),
                _ => false,
            }
        })
}

pub(super) fn check_job(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &new["spec"];
    let pods = &spec["template"]["spec"];
    let mut errors = pod::check_spec(pods, "spec.template.spec");
    match pods["restartPolicy"].as_str() {
        Some("Never" | "OnFailure") => {}
        // What was left open was made `Always` by the pod's own default.
        _ => errors.push(FieldError::required(
            "spec.template.spec.restartPolicy",
            "valid values: \"OnFailure\", \"Never\"",
        )),
    }
    let Some(old) = old else { return errors };
    for member in ["selector", "completions", "completionMode"] {
        if spec[member] != old["spec"][member] {
            errors.push(FieldError::invalid(&format!("spec.{member}"), &spec[member], "field is immutable"));
        }
    }
    if spec["template"] != old["spec"]["template"] {
        errors.push(FieldError::invalid("spec.template", &spec["template"], "field is immutable"));
    }
    errors
}
