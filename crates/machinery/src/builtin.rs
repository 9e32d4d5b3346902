//! Kinds that a Kubernetes server knows by itself, beyond what their OpenAPI says.
//!
//! A server holds these in types of its own, with defaults, checks and an idea of emptiness that no schema tells.
//! What is here covers the kinds that the tests compare with a real server; a kind without an entry gets the
//! rules that most have.

use mailboat_object::KindId;
use serde_json::{Value, json};

use crate::kind::{Generation, Kind, NameRule, Rules, ScalePaths, StatusRules};
use crate::schema::{BadSchema, Origin, Schema};
use crate::status::FieldError;

/// A kind with the schema that a server's OpenAPI v3 has for it: `component` among `components`.
pub fn kind_from_openapi(
    id: KindId,
    version: &str,
    name: &str,
    namespaced: bool,
    component: &str,
    components: &Value,
) -> Result<Kind, BadSchema> {
    let schema = Schema::from_openapi(&json!({ "$ref": component }), components, Origin::Native)?;
    let rules = rules(&id);
    Ok(Kind::new(id, name, namespaced, [(version, schema)], Origin::Native, rules))
}

/// A kind that the server knows by itself, without a schema.
pub fn kind_without_schema(id: KindId, version: &str, name: &str, namespaced: bool) -> Kind {
    let rules = rules(&id);
    Kind::new(id, name, namespaced, [(version, Schema::permissive())], Origin::Native, rules)
}

/// The rules of a kind.
pub fn rules(kind: &KindId) -> Rules {
    let common = Rules { unconditional_update: true, ..Rules::custom() };
    match (kind.group(), kind.resource()) {
        ("", "secrets") => Rules { generation: Generation::None, defaults: Some(default_secret), ..common },
        ("", "configmaps" | "serviceaccounts" | "events" | "endpoints")
        | ("coordination.k8s.io", "leases") => Rules { generation: Generation::None, ..common },
        ("rbac.authorization.k8s.io", _) => {
            Rules { generation: Generation::None, names: NameRule::PathSegment, ..common }
        }
        ("", "namespaces") => Rules {
            generation: Generation::None,
            names: NameRule::Label,
            status: Some(status_resetting(&[&["spec"]])),
            returns_deleted: true,
            selectable: vec!["status.phase".to_owned()],
            prepare: Some(prepare_namespace),
            empty: json!({ "metadata": {}, "spec": {}, "status": {} }),
            ..common
        },
        ("", "pods") => Rules {
            generation: Generation::Spec,
            grace_seconds: Some(30),
            status: Some(status_resetting(&[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ])),
            returns_deleted: true,
            selectable: ["spec.nodeName", "status.phase"].map(str::to_owned).into(),
            ..common
        },
        ("", "services") => Rules {
            generation: Generation::None,
            names: NameRule::LetterLabel,
            status: Some(status_resetting(&[&["spec"]])),
            create_on_update: true,
            returns_deleted: true,
            defaults: Some(default_service),
            prepare: Some(prepare_service),
            check: Some(check_service),
            empty: json!({ "metadata": {}, "spec": {}, "status": { "loadBalancer": {} } }),
            ..common
        },
        ("apps", "deployments") => Rules {
            generation: Generation::SpecAndAnnotations,
            status: Some(status_resetting(&[&["spec"], &["metadata", "labels"]])),
            scale: Some(ScalePaths {
                spec_replicas: ".spec.replicas".to_owned(),
                status_replicas: ".status.replicas".to_owned(),
                selector: Some(".spec.selector".to_owned()),
            }),
            defaults: Some(default_deployment),
            check: Some(check_deployment),
            empty: json!({
                "metadata": {},
                "spec": { "selector": null, "strategy": {}, "template": { "metadata": {}, "spec": { "containers": null } } },
                "status": {},
            }),
            ..common
        },
        ("apiextensions.k8s.io", "customresourcedefinitions") => Rules {
            generation: Generation::Spec,
            status: Some(status_resetting(&[&["metadata"], &["spec"]])),
            ..common
        },
        _ => Rules { generation: Generation::Spec, status: Some(status_resetting(&[&["spec"]])), ..common },
    }
}

fn status_resetting(paths: &[&[&str]]) -> StatusRules {
    StatusRules::resetting(paths.iter().copied())
}

fn prepare_namespace(new: &mut Value, old: Option<&Value>) {
    match old {
        None => {
            new["spec"]["finalizers"] = json!(["kubernetes"]);
            new["status"]["phase"] = "Active".into();
            let name = new["metadata"]["name"].clone();
            new["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        // Only the namespace controller lets a namespace's own finalizers go.
        Some(old) => new["spec"] = old["spec"].clone(),
    }
}

fn default(object: &mut Value, member: &str, value: impl Into<Value>) {
    if let Value::Object(members) = object {
        members.entry(member).or_insert_with(|| value.into());
    }
}

/// A secret's texts become data, and what has no type is opaque.
fn default_secret(secret: &mut Value) {
    use base64::Engine as _;
    default(secret, "type", "Opaque");
    let Some(texts) = secret.as_object_mut().and_then(|secret| secret.remove("stringData")) else { return };
    for (name, text) in texts.as_object().into_iter().flatten() {
        let text = text.as_str().unwrap_or_default();
        secret["data"][name] = base64::prelude::BASE64_STANDARD.encode(text).into();
    }
}

fn default_service(service: &mut Value) {
    default(service, "spec", json!({}));
    default(service, "status", json!({ "loadBalancer": {} }));
    let spec = &mut service["spec"];
    default(spec, "sessionAffinity", "None");
    default(spec, "type", "ClusterIP");
    if spec["type"] != "ExternalName" {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        default(port, "protocol", "TCP");
        let number = port["port"].clone();
        default(port, "targetPort", number);
    }
}

/// What the allocator of addresses fills in for a service without an address of its own. It never changes.
fn prepare_service(service: &mut Value, old: Option<&Value>) {
    let spec = &mut service["spec"];
    if let Some(old) = old {
        for member in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = old["spec"].get(member) {
                default(spec, member, value.clone());
            }
        }
        return;
    }
    if spec.get("clusterIP").is_none_or(|address| *address != "None") {
        return;
    }
    default(spec, "clusterIPs", json!(["None"]));
    // Without a selector somebody else says which addresses there are, so they may be of any family.
    let (families, policy) = match spec.get("selector") {
        None => (json!(["IPv4", "IPv6"]), "RequireDualStack"),
        Some(_) => (json!(["IPv4"]), "SingleStack"),
    };
    default(spec, "ipFamilies", families);
    default(spec, "ipFamilyPolicy", policy);
}

fn check_service(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let spec = &new["spec"];
    let mut errors = Vec::new();
    let headless = spec["clusterIPs"] == json!(["None"]);
    if spec["ports"].is_null() && !headless && spec["type"] != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, port) in ports.iter().enumerate().filter(|_| ports.len() > 1) {
        if port["name"].is_null() {
            errors.push(FieldError::required(&format!("spec.ports[{index}].name"), ""));
        }
    }
    if spec["clusterIPs"].is_null() && !spec["clusterIP"].is_null() {
        errors.push(FieldError::required("spec.clusterIPs", ""));
    }
    errors
}

fn default_deployment(deployment: &mut Value) {
    default(deployment, "spec", json!({}));
    default(deployment, "status", json!({}));
    let spec = &mut deployment["spec"];
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
    default(spec, "template", json!({}));
    default(&mut spec["template"], "metadata", json!({}));
    default(&mut spec["template"], "spec", json!({}));
    default_pod_spec(&mut spec["template"]["spec"]);
}

fn default_pod_spec(pod: &mut Value) {
    for (member, value) in
        [("dnsPolicy", "ClusterFirst"), ("restartPolicy", "Always"), ("schedulerName", "default-scheduler")]
    {
        default(pod, member, value);
    }
    default(pod, "securityContext", json!({}));
    default(pod, "terminationGracePeriodSeconds", 30);
    for container in pod.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten() {
        let image = container["image"].as_str().unwrap_or_default();
        let name = image.rsplit('/').next().unwrap_or_default();
        let latest = !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest");
        default(container, "imagePullPolicy", if latest { "Always" } else { "IfNotPresent" });
        default(container, "resources", json!({}));
        default(container, "terminationMessagePath", "/dev/termination-log");
        default(container, "terminationMessagePolicy", "File");
        for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            default(port, "protocol", "TCP");
        }
    }
}

fn check_deployment(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
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
    let wanted = selector["matchLabels"].as_object();
    let matches =
        wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    if selector.is_object() && wanted.is_none_or(serde_json::Map::is_empty) {
        errors.push(FieldError::invalid(
            "spec.selector",
            selector,
            "empty selector is invalid for deployment",
        ));
    } else if !matches {
        let what = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, what));
    }
    let containers = spec["template"]["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, container) in containers.iter().enumerate() {
        if container["image"].as_str().unwrap_or_default().is_empty() {
            let field = format!("spec.template.spec.containers[{index}].image");
            errors.push(FieldError::required(&field, ""));
        }
    }
    if let Some(old) = old
        && spec["selector"] != old["spec"]["selector"]
    {
        errors.push(FieldError::invalid("spec.selector", &spec["selector"], "field is immutable"));
    }
    errors
}
