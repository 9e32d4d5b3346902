//! Pods, and the templates of pods that workloads hold.

use serde_json::{Map, Value, json};

use super::default;
use crate::status::FieldError;

/// The bits of a file's mode that volumes of the server's own have: 0644.
const FILE_MODE: u32 = 0o644;

/// What a server fills in where a template of pods leaves something open.
pub(super) fn default_template(template: &mut Value) {
    default(template, "metadata", json!({}));
    default(template, "spec", json!({}));
    default_spec(&mut template["spec"]);
}

/// What a server fills in for a pod.
pub(super) fn default_pod(pod: &mut Value) {
    default(pod, "spec", json!({}));
    let spec = &mut pod["spec"];
    for container in containers(spec) {
        let Some(limits) = container["resources"]["limits"].as_object().cloned() else { continue };
        for (name, limit) in limits {
            default(&mut container["resources"], "requests", json!({}));
            default(&mut container["resources"]["requests"], &name, limit);
        }
    }
    default(spec, "enableServiceLinks", true);
    if spec["hostNetwork"] == true {
        for port in containers(spec).flat_map(|container| elements(container, "ports")) {
            let number = port["containerPort"].clone();
            default(port, "hostPort", number);
        }
    }
    default_spec(spec);
}

fn default_spec(spec: &mut Value) {
    for (member, value) in
        [("dnsPolicy", "ClusterFirst"), ("restartPolicy", "Always"), ("schedulerName", "default-scheduler")]
    {
        default(spec, member, value);
    }
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", 30);
    // The account has two names, of which one is old.
    if let Some(account) = spec.get("serviceAccountName").or(spec.get("serviceAccount")).cloned() {
        default(spec, "serviceAccountName", account.clone());
        default(spec, "serviceAccount", account);
    }
    for container in containers(spec) {
        default_container(container);
    }
    for volume in elements(spec, "volumes") {
        default_volume(volume);
    }
}

fn default_container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    let latest = !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest");
    default(container, "imagePullPolicy", if latest { "Always" } else { "IfNotPresent" });
    default(container, "resources", json!({}));
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    for port in elements(container, "ports") {
        default(port, "protocol", "TCP");
    }
    for variable in elements(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            default(field, "apiVersion", "v1");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            default_probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(action) = container.pointer_mut(&format!("/lifecycle/{hook}/httpGet")) {
            default_http(action);
        }
    }
}

fn default_probe(probe: &mut Value) {
    for (member, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        default(probe, member, value);
    }
    if let Some(action) = probe.get_mut("httpGet") {
        default_http(action);
    }
    if let Some(action) = probe.get_mut("grpc") {
        default(action, "service", "");
    }
}

fn default_http(action: &mut Value) {
    default(action, "path", "/");
    default(action, "scheme", "HTTP");
}

fn default_volume(volume: &mut Value) {
    if volume.as_object().is_some_and(|members| members.keys().all(|name| name == "name")) {
        volume["emptyDir"] = json!({});
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source) {
            default(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(host) = volume.get_mut("hostPath") {
        default(host, "type", "");
    }
    if let Some(source) = volume.get_mut("downwardAPI") {
        default_field_items(source);
    }
    let projected = volume.get_mut("projected").into_iter();
    for source in projected.flat_map(|projected| elements(projected, "sources")) {
        if let Some(token) = source.get_mut("serviceAccountToken") {
            default(token, "expirationSeconds", 3600);
        }
        if let Some(source) = source.get_mut("downwardAPI") {
            default_field_items(source);
        }
    }
}

fn default_field_items(source: &mut Value) {
    for item in elements(source, "items") {
        if let Some(field) = item.get_mut("fieldRef") {
            default(field, "apiVersion", "v1");
        }
    }
}

/// What admission adds to a new pod: how long it stays on a node that is in trouble, and how important it is.
pub(super) fn prepare_pod(pod: &mut Value, old: Option<&Value>) {
    if old.is_some() {
        return;
    }
    let qos = qos_class(&pod["spec"]);
    pod["status"] = json!({ "phase": "Pending", "qosClass": qos });
    if pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty()) {
        pod["status"]["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    let spec = &mut pod["spec"];
    default(spec, "priority", 0);
    default(spec, "preemptionPolicy", "PreemptLowerPriority");
    default(spec, "tolerations", json!([]));
    for trouble in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let Some(tolerations) = spec["tolerations"].as_array_mut() else { return };
        let tolerated = tolerations.iter().any(|toleration| {
            let key = toleration["key"].as_str().unwrap_or_default();
            let effect = toleration["effect"].as_str().unwrap_or_default();
            (key == trouble || key.is_empty()) && (effect == "NoExecute" || effect.is_empty())
        });
        if !tolerated {
            tolerations.push(json!({
                "key": trouble, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
}

/// How well a pod's resources are known: all of them, some, or none.
pub(super) fn qos_class(spec: &Value) -> &'static str {
    const COUNTED: [&str; 2] = ["cpu", "memory"];
    let mut all = Vec::new();
    for list in ["containers", "initContainers"] {
        all.extend(spec[list].as_array().into_iter().flatten());
    }
    let said = |container: &Value, what: &str| {
        COUNTED.iter().any(|name| container["resources"][what].get(name).is_some())
    };
    if !all.iter().any(|container| said(container, "requests") || said(container, "limits")) {
        return "BestEffort";
    }
    let guaranteed = all.iter().all(|container| {
        COUNTED.iter().all(|name| {
            let limit = container["resources"]["limits"].get(name);
            let request = container["resources"]["requests"].get(name).or(limit);
            limit.is_some() && request == limit
        })
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

/// What is wrong with the pods that a spec describes; `at` is where it stands.
pub(super) fn check_spec(spec: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let list = spec["containers"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, container) in list.iter().enumerate() {
        if container["image"].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(&format!("{at}.containers[{index}].image"), ""));
        }
    }
    errors
}

/// A pod's own rules.
pub(super) fn check_pod(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if old.is_some() {
        return Vec::new();
    }
    let mut errors = check_spec(&new["spec"], "spec");
    if new["spec"]["ephemeralContainers"].as_array().is_some_and(|list| !list.is_empty()) {
        errors.push(FieldError::forbidden("spec.ephemeralContainers", "cannot be set on create"));
    }
    errors
}

fn containers(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    let lists = spec.as_object_mut().into_iter().flat_map(Map::iter_mut);
    lists
        .filter(|(name, _)| matches!(name.as_str(), "containers" | "initContainers" | "ephemeralContainers"))
        .flat_map(|(_, list)| list.as_array_mut().into_iter().flatten())
}

fn elements<'v>(value: &'v mut Value, member: &str) -> impl Iterator<Item = &'v mut Value> {
    value.get_mut(member).and_then(Value::as_array_mut).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_as_guaranteed_as_its_resources_say() {
        let spec = |resources: Value| json!({ "containers": [{ "resources": resources }] });
        let all = json!({ "cpu": "1", "memory": "1Gi" });
        assert_eq!(qos_class(&spec(json!({}))), "BestEffort");
        assert_eq!(qos_class(&spec(json!({ "requests": { "cpu": "1" } }))), "Burstable");
        assert_eq!(qos_class(&spec(json!({ "limits": all }))), "Guaranteed");
        assert_eq!(qos_class(&spec(json!({ "limits": all, "requests": { "cpu": "2" } }))), "Burstable");
    }

    #[test]
    fn volumes_and_probes_are_completed() {
        let mut template = json!({ "spec": {
            "serviceAccountName": "robot",
            "containers": [{ "name": "a", "image": "x/web", "livenessProbe": { "httpGet": { "port": 80 } } }],
            "volumes": [{ "name": "a" }, { "name": "b", "secret": { "secretName": "s" } }],
        } });
        default_template(&mut template);
        let spec = &template["spec"];
        assert_eq!(spec["serviceAccount"], "robot");
        assert_eq!(spec["containers"][0]["imagePullPolicy"], "Always");
        assert_eq!(spec["containers"][0]["livenessProbe"]["httpGet"]["scheme"], "HTTP");
        assert_eq!(spec["volumes"][0]["emptyDir"], json!({}));
        assert_eq!(spec["volumes"][1]["secret"]["defaultMode"], 420);
    }
}
