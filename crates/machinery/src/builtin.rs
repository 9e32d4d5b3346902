//! Kinds that a Kubernetes server knows by itself, beyond what their OpenAPI says.
//!
//! A server holds these in types of its own, with defaults, checks and an idea of emptiness that no schema tells.
//! What is here covers the kinds that the tests compare with a real server; a kind without an entry gets the
//! rules that most have.

mod admission;
mod autoscaler;
mod certificate;
mod data;
mod definition;
mod event;
mod network;
mod pod;
mod pod_section;
mod rights;
mod storage;
pub(crate) mod times;
mod workload;

use mailboat_object::KindId;
use serde_json::{Value, json};

use crate::convert::Conversion;
use crate::kind::{Generation, Kind, NameRule, Rules, ScalePaths, Section, StatusRules};
use crate::metadata;
use crate::schema::{BadSchema, Origin, Schema};

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
    let mut rules = rules(&id);
    // What a definition holds is a schema, whose own schema has no end.
    if rules.empty == json!({}) && id.group() != "apiextensions.k8s.io" {
        rules.empty = schema.empty();
    }
    Ok(Kind::new(id, name, namespaced, [(version, schema)], Origin::Native, rules))
}

/// A kind that the server knows by itself, without a schema.
pub fn kind_without_schema(id: KindId, version: &str, name: &str, namespaced: bool) -> Kind {
    let rules = rules(&id);
    Kind::new(id, name, namespaced, [(version, Schema::permissive())], Origin::Native, rules)
}

/// The fields by which pods can be selected.
const SELECTABLE_OF_PODS: [&str; 8] = [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];

/// The kind as which the objects of another are kept, if that is only another name for them.
pub fn kept_as(kind: &KindId) -> Option<KindId> {
    match (kind.group(), kind.resource()) {
        ("events.k8s.io", "events") => Some(KindId::new("", "events")),
        _ => None,
    }
}

/// How objects of a version are kept that are not kept as they are.
pub fn conversion(kind: &KindId, version: &str) -> Option<Conversion> {
    match (kind.group(), kind.resource(), version) {
        ("events.k8s.io", "events", "v1") => Some(event::CONVERSION),
        ("autoscaling", "horizontalpodautoscalers", "v1") => Some(autoscaler::CONVERSION),
        _ => None,
    }
}

/// The rules of a kind.
pub fn rules(kind: &KindId) -> Rules {
    let common = Rules { unconditional_update: true, ..Rules::custom() };
    let with_status = |paths: &[&[&str]]| Some(status_resetting(paths));
    match (kind.group(), kind.resource()) {
        ("", "secrets") => Rules {
            generation: Generation::None,
            selectable: vec!["type".to_owned()],
            defaults: Some(default_secret),
            check: Some(data::check_secret),
            ..common
        },
        ("", "configmaps") => {
            Rules { generation: Generation::None, check: Some(data::check_config_map), ..common }
        }
        ("", "events") => Rules {
            generation: Generation::None,
            selectable: event::SELECTABLE.map(str::to_owned).into(),
            defaults: Some(event::default_event),
            check: Some(event::check_event),
            create_on_update: true,
            empty: json!({
                "metadata": {}, "involvedObject": {}, "source": {}, "eventTime": null, "firstTimestamp": null,
                "lastTimestamp": null, "reportingComponent": "", "reportingInstance": "",
            }),
            ..common
        },
        ("", "serviceaccounts") => Rules { generation: Generation::None, returns_deleted: true, ..common },
        ("", "endpoints") => Rules { generation: Generation::None, ..common },
        ("coordination.k8s.io", "leases") => Rules {
            generation: Generation::None,
            unconditional_update: false,
            create_on_update: true,
            ..common
        },
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => Rules {
            generation: Generation::None,
            names: NameRule::PathSegment,
            prepare: Some(rights::prepare_role),
            empty: json!({ "metadata": {}, "rules": null }),
            check: Some(rights::check_role),
            ..common
        },
        ("rbac.authorization.k8s.io", _) => Rules {
            generation: Generation::None,
            names: NameRule::PathSegment,
            defaults: Some(rights::default_binding),
            check: Some(rights::check_binding),
            ..common
        },
        ("scheduling.k8s.io", "priorityclasses") => Rules {
            generation: Generation::None,
            defaults: Some(workload::default_priority_class),
            prepare: Some(workload::prepare_priority_class),
            ..common
        },
        ("", "namespaces") => Rules {
            generation: Generation::None,
            names: NameRule::Label,
            status: with_status(&[&["spec"]]),
            sections: NAMESPACE_SECTIONS,
            returns_deleted: true,
            selectable: vec!["status.phase".to_owned()],
            defaults: Some(default_namespace),
            prepare: Some(prepare_namespace),
            empty: json!({ "metadata": {}, "spec": {}, "status": {} }),
            ..common
        },
        ("", "pods") => Rules {
            generation: Generation::Spec,
            grace_seconds: Some(30),
            status: with_status(&[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ]),
            returns_deleted: true,
            selectable: SELECTABLE_OF_PODS.map(str::to_owned).into(),
            defaults: Some(pod::default_pod),
            prepare: Some(pod::prepare_pod),
            check: Some(pod::check_pod),
            sections: pod_section::SECTIONS,
            ..common
        },
        ("", "services") => Rules {
            generation: Generation::None,
            names: NameRule::Label,
            status: with_status(&[&["spec"]]),
            create_on_update: true,
            returns_deleted: true,
            defaults: Some(network::default_service),
            prepare: Some(network::prepare_service),
            check: Some(network::check_service),
            empty: json!({ "metadata": {}, "spec": {}, "status": { "loadBalancer": {} } }),
            ..common
        },
        ("", "persistentvolumeclaims") => Rules {
            generation: Generation::None,
            status: with_status(&[&["spec"]]),
            returns_deleted: true,
            defaults: Some(storage::default_claim),
            prepare: Some(storage::prepare_claim),
            ..common
        },
        ("", "persistentvolumes") => Rules {
            generation: Generation::None,
            status: with_status(&[&["spec"]]),
            returns_deleted: true,
            defaults: Some(storage::default_volume),
            prepare: Some(storage::prepare_volume),
            ..common
        },
        ("", "nodes" | "resourcequotas") => {
            Rules { generation: Generation::None, status: with_status(&[&["spec"]]), ..common }
        }
        ("networking.k8s.io", "ingresses") => Rules {
            generation: Generation::Spec,
            status: with_status(&[&["spec"]]),
            check: Some(network::check_ingress),
            ..common
        },
        ("networking.k8s.io", "networkpolicies") => {
            Rules { generation: Generation::Spec, defaults: Some(network::default_network_policy), ..common }
        }
        ("apps", "deployments") => Rules {
            generation: Generation::SpecAndAnnotations,
            status: with_status(&[&["spec"], &["metadata", "labels"]]),
            scale: Some(scale(Some(".spec.selector"))),
            defaults: Some(workload::default_deployment),
            check: Some(workload::check_deployment),
            empty: json!({
                "metadata": {},
                "spec": { "selector": null, "strategy": {}, "template": { "metadata": {}, "spec": { "containers": null } } },
                "status": {},
            }),
            ..common
        },
        ("apps", "replicasets") => Rules {
            generation: Generation::Spec,
            status: with_status(&[&["spec"]]),
            scale: Some(scale(Some(".spec.selector"))),
            defaults: Some(workload::default_replica_set),
            check: Some(workload::check_replica_set),
            ..common
        },
        ("apps", "statefulsets") => Rules {
            generation: Generation::Spec,
            status: with_status(&[&["spec"]]),
            scale: Some(scale(Some(".spec.selector"))),
            defaults: Some(workload::default_stateful_set),
            check: Some(workload::check_stateful_set),
            ..common
        },
        ("apps", "daemonsets") => Rules {
            generation: Generation::Spec,
            status: with_status(&[&["spec"]]),
            defaults: Some(workload::default_daemon_set),
            prepare: Some(workload::prepare_daemon_set),
            check: Some(workload::check_daemon_set),
            ..common
        },
        ("autoscaling", "horizontalpodautoscalers") => Rules {
            generation: Generation::None,
            status: with_status(&[&["spec"]]),
            defaults: Some(autoscaler::default_autoscaler),
            check: Some(autoscaler::check_autoscaler),
            empty: json!({
                "metadata": {}, "spec": { "scaleTargetRef": { "kind": "", "name": "" }, "maxReplicas": 0 },
                "status": { "desiredReplicas": 0, "currentMetrics": null },
            }),
            ..common
        },
        ("apps", "controllerrevisions") => {
            Rules { generation: Generation::None, check: Some(workload::check_revision), ..common }
        }
        ("batch", "jobs") => Rules {
            generation: Generation::Spec,
            status: with_status(&[&["spec"]]),
            defaults: Some(workload::default_job),
            prepare: Some(workload::prepare_job),
            check: Some(workload::check_job),
            ..common
        },
        ("", "replicationcontrollers") => Rules {
            generation: Generation::Spec,
            status: with_status(&[&["spec"]]),
            scale: Some(scale(Some(".spec.selector"))),
            defaults: Some(workload::default_replication_controller),
            check: Some(workload::check_replication_controller),
            empty: json!({ "metadata": {}, "spec": {}, "status": { "replicas": 0 } }),
            ..common
        },
        ("certificates.k8s.io", "certificatesigningrequests") => Rules {
            generation: Generation::None,
            status: with_status(&[&["spec"], &["status", "conditions"]]),
            sections: certificate::SECTIONS,
            selectable: vec!["spec.signerName".to_owned()],
            check: Some(certificate::check_request),
            ..common
        },
        ("batch", "cronjobs") => Rules {
            generation: Generation::Spec,
            status: with_status(&[&["spec"]]),
            defaults: Some(workload::default_cron_job),
            ..common
        },
        ("apiextensions.k8s.io", "customresourcedefinitions") => Rules {
            generation: Generation::Spec,
            status: with_status(&[&["metadata"], &["spec"]]),
            defaults: Some(definition::default_definition),
            prepare: Some(definition::prepare_definition),
            empty: json!({
                "metadata": {}, "spec": { "names": {} },
                "status": { "acceptedNames": { "kind": "", "plural": "" }, "conditions": null, "storedVersions": null },
            }),
            check: Some(definition::check_definition),
            ..common
        },
        ("apiregistration.k8s.io", "apiservices") => Rules {
            generation: Generation::None,
            status: with_status(&[&["metadata"], &["spec"]]),
            defaults: Some(network::default_api_service),
            ..common
        },
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations") => {
            Rules { defaults: Some(admission::default_mutating_webhooks), ..common }
        }
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations") => {
            Rules { defaults: Some(admission::default_webhooks), ..common }
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicies" | "mutatingadmissionpolicies") => {
            Rules {
                generation: Generation::Spec,
                status: with_status(&[&["spec"]]),
                defaults: Some(admission::default_policy),
                ..common
            }
        }
        (
            "admissionregistration.k8s.io",
            "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings",
        ) => Rules {
            generation: Generation::Spec,
            defaults: Some(admission::default_policy_binding),
            // Required, and left out where they are empty all the same.
            empty: json!({ "metadata": {}, "spec": {} }),
            ..common
        },
        _ => Rules { generation: Generation::Spec, status: with_status(&[&["spec"]]), ..common },
    }
}

fn scale(selector: Option<&str>) -> ScalePaths {
    ScalePaths {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        selector: selector.map(str::to_owned),
    }
}

fn status_resetting(paths: &[&[&str]]) -> StatusRules {
    StatusRules::resetting(paths.iter().copied())
}

/// Everybody can select a namespace by its name, as a label.
fn default_namespace(namespace: &mut Value) {
    if let Some(name) = namespace["metadata"]["name"].as_str().map(str::to_owned) {
        namespace["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
    }
}

/// What holds a namespace until it is empty.
pub(crate) const NAMESPACE_FINALIZER: &str = "kubernetes";

/// Whoever empties a namespace says through this that it may go.
const NAMESPACE_SECTIONS: &[Section] = &[Section {
    name: "finalize",
    resets: &[&["status"]],
    prepared: false,
    keep: |new, old, _| new["status"] = old["status"].clone(),
    check: |new, _| metadata::validate_finalizer_names(&new["spec"]["finalizers"], "spec.finalizers"),
}];

fn prepare_namespace(new: &mut Value, old: Option<&Value>) {
    match old {
        None => {
            let own = Value::from(NAMESPACE_FINALIZER);
            match new["spec"]["finalizers"].as_array_mut() {
                Some(others) if others.contains(&own) => {}
                Some(others) => others.push(own),
                None => new["spec"]["finalizers"] = json!([own]),
            }
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
