//! The environment of a container, as its Pod and the objects that it names say.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{
    ConfigMap, Container, EnvVarSource, ObjectFieldSelector, Pod, Secret, Service, ServicePort,
};
use kube::ResourceExt as _;

use super::Blocked;
use crate::follow::{Key, Snapshot};

/// The address under which a pod answers: pods share the machine's network, so all have the same.
pub(super) const POD_ADDRESS: &str = "127.0.0.1";

/// The Service through which pods reach their API server.
const API_SERVICE: (&str, &str) = ("default", "kubernetes");

/// Names and values.
pub(super) type Environment = BTreeMap<String, String>;

/// What a Pod's configuration may name.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) secrets: Snapshot<Secret>,
    pub(super) config_maps: Snapshot<ConfigMap>,
    pub(super) services: Snapshot<Service>,
    /// Where the API server really listens: nothing answers at the cluster IP of its Service.
    pub(super) api_server: SocketAddr,
}

/// Everything that `container` finds in its environment, besides what its image and runtime set.
pub(super) fn environment(pod: &Pod, container: &Container, known: &Known) -> Result<Environment, Blocked> {
    let services = service_links(pod, known);
    let namespace = pod.namespace().unwrap_or_default();
    let mut own = Environment::new();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        let mut add = |name: &str, value: &str| own.insert(format!("{prefix}{name}"), value.to_owned());
        if let Some(reference) = &source.config_map_ref {
            let found =
                find(&known.config_maps, "configmap", &namespace, &reference.name, reference.optional)?;
            for (name, value) in found.iter().flat_map(|found| found.data.iter().flatten()) {
                add(name, value);
            }
        }
        if let Some(reference) = &source.secret_ref {
            let found = find(&known.secrets, "secret", &namespace, &reference.name, reference.optional)?;
            for (name, value) in found.iter().flat_map(|found| found.data.iter().flatten()) {
                add(name, &String::from_utf8_lossy(&value.0));
            }
        }
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(value), _) if !value.is_empty() => {
                Some(expand(value, |name| own.get(name).or_else(|| services.get(name)).map(String::as_str)))
            }
            (_, Some(source)) => value_from(pod, source, known)?,
            (_, None) => Some(String::new()),
        };
        if let Some(value) = value {
            own.insert(variable.name.clone(), value);
        }
    }
    for (name, value) in services {
        own.entry(name).or_insert(value);
    }
    Ok(own)
}

/// Replaces `$(NAME)` by the variable's value. A name that is not set stays as it is written, and `$$` is one `$`.
pub(super) fn expand<'a>(text: &str, value_of: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match value_of(name) {
                Some(value) => expanded.push_str(value),
                None => expanded.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            expanded.push('$');
        }
    }
    expanded + rest
}

/// A field of the Pod itself, as the downward API gives it.
pub(super) fn pod_field(pod: &Pod, selector: &ObjectFieldSelector) -> Result<String, Blocked> {
    let path = selector.field_path.as_str();
    let spec = pod.spec.as_ref();
    let value = match path {
        "metadata.name" => pod.metadata.name.clone(),
        "metadata.namespace" => pod.metadata.namespace.clone(),
        "metadata.uid" => pod.metadata.uid.clone(),
        "metadata.labels" => Some(lines(pod.labels())),
        "metadata.annotations" => Some(lines(pod.annotations())),
        "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.hostIP" | "status.hostIPs" | "status.podIP" | "status.podIPs" => Some(POD_ADDRESS.to_owned()),
        _ => match quoted_key(path) {
            Some(("metadata.labels", key)) => Some(pod.labels().get(key).cloned().unwrap_or_default()),
            Some(("metadata.annotations", key)) => {
                Some(pod.annotations().get(key).cloned().unwrap_or_default())
            }
            _ => return Err(Blocked::config(format!("field {path} is not played by this kubelet"))),
        },
    };
    Ok(value.unwrap_or_default())
}

/// An object that the Pod names; `None` if it is missing and may be.
pub(super) fn find<'a, K>(
    snapshot: &'a Snapshot<K>,
    kind: &str,
    namespace: &str,
    name: &str,
    optional: Option<bool>,
) -> Result<Option<&'a K>, Blocked> {
    let key: Key = (namespace.to_owned(), name.to_owned());
    match snapshot.get(&key) {
        Some(found) => Ok(Some(found)),
        None if optional == Some(true) => Ok(None),
        None => Err(Blocked::config(format!("{kind} \"{name}\" not found"))),
    }
}

fn value_from(pod: &Pod, source: &EnvVarSource, known: &Known) -> Result<Option<String>, Blocked> {
    let namespace = pod.namespace().unwrap_or_default();
    let missing = |kind: &str, name: &str, key: &str, optional: Option<bool>| {
        if optional == Some(true) {
            return Ok(None);
        }
        Err(Blocked::config(format!("couldn't find key {key} in {kind} {namespace}/{name}")))
    };
    if let Some(selector) = &source.field_ref {
        return pod_field(pod, selector).map(Some);
    }
    if let Some(reference) = &source.config_map_key_ref {
        let found = find(&known.config_maps, "configmap", &namespace, &reference.name, reference.optional)?;
        let Some(found) = found else { return Ok(None) };
        let value = found.data.as_ref().and_then(|data| data.get(&reference.key));
        return match value {
            Some(value) => Ok(Some(value.clone())),
            None => missing("ConfigMap", &reference.name, &reference.key, reference.optional),
        };
    }
    if let Some(reference) = &source.secret_key_ref {
        let found = find(&known.secrets, "secret", &namespace, &reference.name, reference.optional)?;
        let Some(found) = found else { return Ok(None) };
        let value = found.data.as_ref().and_then(|data| data.get(&reference.key));
        return match value {
            Some(value) => Ok(Some(String::from_utf8_lossy(&value.0).into_owned())),
            None => missing("Secret", &reference.name, &reference.key, reference.optional),
        };
    }
    Err(Blocked::config(
        "a variable's source is not played by this kubelet: only fields, Secrets and ConfigMaps are",
    ))
}

/// The variables by which a Pod is told of Services: the API server's always, those of its namespace unless it
/// declines. They are a known source of surprises: a Service `mailboat` sets `MAILBOAT_PORT` to a URL.
fn service_links(pod: &Pod, known: &Known) -> Environment {
    let wants_links = pod.spec.as_ref().is_none_or(|spec| spec.enable_service_links != Some(false));
    let namespace = pod.namespace().unwrap_or_default();
    let mut variables = Environment::new();
    for ((service_namespace, name), service) in known.services.iter() {
        let is_api_server = (service_namespace.as_str(), name.as_str()) == API_SERVICE;
        let Some(spec) = &service.spec else { continue };
        let cluster_ip =
            spec.cluster_ip.as_deref().filter(|address| !address.is_empty() && *address != "None");
        let Some(cluster_ip) = cluster_ip else { continue };
        let ports = spec.ports.as_deref().unwrap_or_default();
        if is_api_server {
            let real =
                |port: &ServicePort| ServicePort { port: known.api_server.port().into(), ..port.clone() };
            let ports: Vec<ServicePort> = ports.iter().map(real).collect();
            link(&mut variables, name, &known.api_server.ip().to_string(), &ports);
        } else if wants_links && *service_namespace == namespace {
            link(&mut variables, name, cluster_ip, ports);
        }
    }
    variables
}

fn link(variables: &mut Environment, service: &str, host: &str, ports: &[ServicePort]) {
    let Some(first) = ports.first() else { return };
    let url = |port: &ServicePort| {
        let protocol = port.protocol.as_deref().unwrap_or("TCP").to_lowercase();
        format!("{protocol}://{host}:{}", port.port)
    };
    let prefix = variable_name(service);
    variables.insert(format!("{prefix}_SERVICE_HOST"), host.to_owned());
    variables.insert(format!("{prefix}_SERVICE_PORT"), first.port.to_string());
    variables.insert(format!("{prefix}_PORT"), url(first));
    for port in ports {
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            variables.insert(format!("{prefix}_SERVICE_PORT_{}", variable_name(name)), port.port.to_string());
        }
        let protocol = port.protocol.as_deref().unwrap_or("TCP");
        let port_prefix = format!("{prefix}_PORT_{}_{}", port.port, protocol.to_uppercase());
        variables.insert(format!("{port_prefix}_PROTO"), protocol.to_lowercase());
        variables.insert(format!("{port_prefix}_PORT"), port.port.to_string());
        variables.insert(format!("{port_prefix}_ADDR"), host.to_owned());
        variables.insert(port_prefix, url(port));
    }
}

fn variable_name(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

/// The parts of `metadata.labels['key']`.
fn quoted_key(path: &str) -> Option<(&str, &str)> {
    let (field, rest) = path.split_once("['")?;
    Some((field, rest.strip_suffix("']")?))
}

fn lines(map: &BTreeMap<String, String>) -> String {
    let lines: Vec<String> = map.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn snapshot<K: DeserializeOwned>(objects: &[(&str, &str, Value)]) -> Snapshot<K> {
        let entry = |(namespace, name, object): &(&str, &str, Value)| {
            let key = ((*namespace).to_owned(), (*name).to_owned());
            (key, Arc::new(serde_json::from_value(object.clone()).unwrap()))
        };
        Arc::new(objects.iter().map(entry).collect())
    }

    fn known() -> Known {
        let port = |name: &str, port: u16| json!({ "name": name, "port": port, "protocol": "TCP" });
        Known {
            secrets: snapshot(&[("sea", "keys", json!({ "data": { "token": "c2VjcmV0" } }))]),
            config_maps: snapshot(&[(
                "sea",
                "settings",
                json!({ "data": { "level": "high", "mode": "calm" } }),
            )]),
            services: snapshot(&[
                (
                    "default",
                    "kubernetes",
                    json!({ "spec": { "clusterIP": "10.0.0.1", "ports": [port("https", 443)] } }),
                ),
                (
                    "sea",
                    "post-office",
                    json!({ "spec": { "clusterIP": "10.0.0.9", "ports": [port("", 80)] } }),
                ),
                ("sea", "headless", json!({ "spec": { "clusterIP": "None", "ports": [port("", 81)] } })),
                (
                    "land",
                    "elsewhere",
                    json!({ "spec": { "clusterIP": "10.0.0.8", "ports": [port("", 82)] } }),
                ),
            ]),
            api_server: "127.0.0.1:23456".parse().unwrap(),
        }
    }

    fn resolve(spec: &Value, container: Value) -> Result<Environment, Blocked> {
        let metadata = json!({
            "name": "boat-1", "namespace": "sea", "uid": "u-1", "labels": { "app": "boat" },
        });
        let pod: Pod = serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap();
        let container: Container = serde_json::from_value(container).unwrap();
        environment(&pod, &container, &known())
    }

    #[test]
    fn references_expand_as_kubernetes_documents() {
        let value_of = |name: &str| match name {
            "A" => Some("1"),
            "EMPTY" => Some(""),
            _ => None,
        };
        let cases = [
            ("plain", "plain"),
            ("$(A)-$(A)", "1-1"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$(EMPTY)x", "x"),
            ("$(UNSET)", "$(UNSET)"),
            ("$(A", "$(A"),
            ("$A $", "$A $"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(expand(text, value_of), expected, "{text}");
        }
    }

    #[test]
    fn variables_come_from_every_source_and_later_ones_win() {
        let container = json!({
            "name": "c",
            "envFrom": [
                { "configMapRef": { "name": "settings" }, "prefix": "SET_" },
                { "secretRef": { "name": "absent", "optional": true } },
            ],
            "env": [
                { "name": "TOKEN", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "token" } } },
                { "name": "SET_mode", "value": "rough" },
                { "name": "LINE", "value": "$(SET_mode)/$(SET_level)/$(KUBERNETES_SERVICE_PORT)/$(LATER)" },
                { "name": "LATER", "value": "x" },
                { "name": "NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                { "name": "APP", "valueFrom": { "fieldRef": { "fieldPath": "metadata.labels['app']" } } },
                { "name": "MAYBE", "valueFrom": { "configMapKeyRef": { "name": "settings", "key": "no", "optional": true } } },
            ],
        });
        let seen = resolve(&json!({ "enableServiceLinks": false, "containers": [] }), container).unwrap();
        let expected = [
            ("TOKEN", Some("secret")),
            ("SET_mode", Some("rough")),
            ("SET_level", Some("high")),
            ("LINE", Some("rough/high/23456/$(LATER)")),
            ("NAME", Some("boat-1")),
            ("APP", Some("boat")),
            ("MAYBE", None),
            ("KUBERNETES_SERVICE_HOST", Some("127.0.0.1")),
            ("KUBERNETES_SERVICE_PORT_HTTPS", Some("23456")),
            ("KUBERNETES_PORT_23456_TCP_ADDR", Some("127.0.0.1")),
            ("POST_OFFICE_SERVICE_HOST", None),
        ];
        for (name, value) in expected {
            assert_eq!(seen.get(name).map(String::as_str), value, "{name} in {seen:#?}");
        }
    }

    #[test]
    fn services_of_the_namespace_are_linked_unless_declined() {
        let seen = resolve(&json!({ "containers": [] }), json!({ "name": "c" })).unwrap();
        assert_eq!(seen["POST_OFFICE_PORT"], "tcp://10.0.0.9:80", "{seen:#?}");
        let strangers =
            seen.keys().filter(|name| name.starts_with("HEADLESS") || name.starts_with("ELSEWHERE"));
        assert_eq!(strangers.count(), 0, "{seen:#?}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let cases = [
            (json!({ "secretKeyRef": { "name": "lost", "key": "k" } }), "secret \"lost\" not found"),
            (
                json!({ "secretKeyRef": { "name": "keys", "key": "k" } }),
                "couldn't find key k in Secret sea/keys",
            ),
            (json!({ "fieldRef": { "fieldPath": "spec.secrets" } }), "field spec.secrets is not played"),
        ];
        for (source, message) in cases {
            let container = json!({ "name": "c", "env": [{ "name": "V", "valueFrom": source }] });
            let blocked = resolve(&json!({ "containers": [] }), container).unwrap_err();
            assert!(blocked.message.contains(message), "{blocked:?}");
        }
    }
}
