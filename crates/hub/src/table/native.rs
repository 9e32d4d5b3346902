//! The columns of kinds that a server knows by itself, where it computes what a path cannot say.

use mailboat_object::KindId;
use serde_json::{Value, json};

use super::{age, path};

/// A heading, its type, its priority, and how a cell is made from an object.
pub(super) type NativeColumn = (&'static str, &'static str, i64, fn(&Value, u64) -> Value);

const AGE: NativeColumn =
    ("Age", "string", 0, |object, now| since(&object["metadata"]["creationTimestamp"], now));
const CREATED_AT: NativeColumn =
    ("Created At", "date", 0, |object, _| object["metadata"]["creationTimestamp"].clone());

/// The columns of a kind besides the name.
pub(super) fn columns(kind: &KindId) -> &'static [NativeColumn] {
    match (kind.group(), kind.resource()) {
        ("", "pods") => PODS,
        ("", "services") => SERVICES,
        ("", "configmaps") => CONFIG_MAPS,
        ("", "secrets") => SECRETS,
        ("", "serviceaccounts") => SERVICE_ACCOUNTS,
        ("", "namespaces") => NAMESPACES,
        ("", "nodes") => NODES,
        ("", "events") => EVENTS,
        ("autoscaling", "horizontalpodautoscalers") => AUTOSCALERS,
        ("", "persistentvolumeclaims") => CLAIMS,
        ("", "endpoints") => ENDPOINTS,
        ("apps", "deployments") => DEPLOYMENTS,
        ("apps", "replicasets") | ("", "replicationcontrollers") => REPLICA_SETS,
        ("apps", "statefulsets") => STATEFUL_SETS,
        ("apps", "daemonsets") => DAEMON_SETS,
        ("batch", "jobs") => JOBS,
        ("batch", "cronjobs") => CRON_JOBS,
        ("networking.k8s.io", "ingresses") => INGRESSES,
        ("coordination.k8s.io", "leases") => LEASES,
        ("rbac.authorization.k8s.io", "clusterrolebindings" | "rolebindings") => BINDINGS,
        ("rbac.authorization.k8s.io", _) | ("apiextensions.k8s.io", "customresourcedefinitions") => {
            &[CREATED_AT]
        }
        ("discovery.k8s.io", "endpointslices") => SLICES,
        _ => &[AGE],
    }
}

/// Whether the name comes last, and only where much is asked for.
pub(super) fn are_named_last(kind: &KindId) -> bool {
    kind.group().is_empty() && kind.resource() == "events"
}

const PODS: &[NativeColumn] = &[
    ("Ready", "string", 0, |pod, _| {
        let ready =
            list(&pod["status"]["containerStatuses"]).iter().filter(|status| status["ready"] == true).count();
        format!("{ready}/{}", list(&pod["spec"]["containers"]).len()).into()
    }),
    ("Status", "string", 0, |pod, _| pod_state(pod).into()),
    ("Restarts", "string", 0, |pod, _| {
        let restarts = list(&pod["status"]["containerStatuses"])
            .iter()
            .filter_map(|status| status["restartCount"].as_u64());
        restarts.sum::<u64>().to_string().into()
    }),
    AGE,
    ("IP", "string", 1, |pod, _| or_none(&pod["status"]["podIP"])),
    ("Node", "string", 1, |pod, _| or_none(&pod["spec"]["nodeName"])),
    ("Nominated Node", "string", 1, |pod, _| or_none(&pod["status"]["nominatedNodeName"])),
    ("Readiness Gates", "string", 1, |_, _| "<none>".into()),
];

fn pod_state(pod: &Value) -> String {
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        return "Terminating".to_owned();
    }
    for status in list(&pod["status"]["containerStatuses"]) {
        for state in ["waiting", "terminated"] {
            if let Some(reason) = status["state"][state]["reason"].as_str() {
                return reason.to_owned();
            }
        }
    }
    let reason = pod["status"]["reason"].as_str();
    reason.or(pod["status"]["phase"].as_str()).unwrap_or_default().to_owned()
}

const SERVICES: &[NativeColumn] = &[
    ("Type", "string", 0, |service, _| service["spec"]["type"].clone()),
    ("Cluster-IP", "string", 0, |service, _| or_none(&service["spec"]["clusterIP"])),
    ("External-IP", "string", 0, |service, _| external_address(service).into()),
    ("Port(s)", "string", 0, |service, _| {
        let ports: Vec<String> = list(&service["spec"]["ports"]).iter().map(service_port).collect();
        if ports.is_empty() { "<none>".into() } else { ports.join(",").into() }
    }),
    AGE,
    ("Selector", "string", 1, |service, _| pairs(&service["spec"]["selector"]).into()),
];

fn service_port(port: &Value) -> String {
    let protocol = port["protocol"].as_str().unwrap_or("TCP");
    match port["nodePort"].as_u64() {
        Some(node_port) => format!("{}:{node_port}/{protocol}", port["port"]),
        None => format!("{}/{protocol}", port["port"]),
    }
}

fn external_address(service: &Value) -> String {
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" {
        return spec["externalName"].as_str().unwrap_or_default().to_owned();
    }
    let mut addresses: Vec<String> = list(&service["status"]["loadBalancer"]["ingress"])
        .iter()
        .filter_map(|ingress| ingress["ip"].as_str().or(ingress["hostname"].as_str()))
        .chain(list(&spec["externalIPs"]).iter().filter_map(Value::as_str))
        .map(str::to_owned)
        .collect();
    addresses.dedup();
    match (addresses.is_empty(), spec["type"] == "LoadBalancer") {
        (false, _) => addresses.join(","),
        (true, true) => "<pending>".to_owned(),
        (true, false) => "<none>".to_owned(),
    }
}

const CONFIG_MAPS: &[NativeColumn] =
    &[("Data", "string", 0, |map, _| (size(&map["data"]) + size(&map["binaryData"])).into()), AGE];
const SECRETS: &[NativeColumn] = &[
    ("Type", "string", 0, |secret, _| secret["type"].clone()),
    ("Data", "string", 0, |secret, _| size(&secret["data"]).into()),
    AGE,
];
const SERVICE_ACCOUNTS: &[NativeColumn] =
    &[("Secrets", "integer", 0, |account, _| list(&account["secrets"]).len().into()), AGE];
const NAMESPACES: &[NativeColumn] =
    &[("Status", "string", 0, |namespace, _| namespace["status"]["phase"].clone()), AGE];
const NODES: &[NativeColumn] = &[
    ("Status", "string", 0, |node, _| {
        let ready = list(&node["status"]["conditions"])
            .iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let state = if ready { "Ready" } else { "NotReady" };
        if node["spec"]["unschedulable"] == true {
            format!("{state},SchedulingDisabled").into()
        } else {
            state.into()
        }
    }),
    ("Roles", "string", 0, |node, _| {
        let labels = node["metadata"]["labels"].as_object();
        let roles: Vec<&str> = labels
            .into_iter()
            .flatten()
            .filter_map(|(label, _)| label.strip_prefix("node-role.kubernetes.io/"))
            .collect();
        if roles.is_empty() { "<none>".into() } else { roles.join(",").into() }
    }),
    AGE,
    ("Version", "string", 0, |node, _| {
        node["status"]["nodeInfo"]["kubeletVersion"].as_str().unwrap_or_default().into()
    }),
];
const EVENTS: &[NativeColumn] = &[
    ("Last Seen", "string", 0, |event, now| {
        let times = [&event["series"]["lastObservedTime"], &event["lastTimestamp"]];
        times
            .into_iter()
            .find(|time| time.is_string())
            .map_or_else(|| first_seen(event, now), |time| since(time, now))
    }),
    ("Type", "string", 0, |event, _| text(&event["type"])),
    ("Reason", "string", 0, |event, _| text(&event["reason"])),
    ("Object", "string", 0, |event, _| {
        let object = &event["involvedObject"];
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        match object["name"].as_str() {
            Some(name) => format!("{kind}/{name}").into(),
            None => kind.into(),
        }
    }),
    ("Subobject", "string", 1, |event, _| text(&event["involvedObject"]["fieldPath"])),
    ("Source", "string", 1, |event, _| {
        let first = |here: &Value, there: &Value| {
            let texts = [here, there].into_iter().filter_map(Value::as_str);
            texts.filter(|text| !text.is_empty()).map(str::to_owned).next()
        };
        let component = first(&event["source"]["component"], &event["reportingComponent"]);
        let instance = first(&event["source"]["host"], &event["reportingInstance"]);
        let told: Vec<String> = component.into_iter().chain(instance).collect();
        told.join(", ").into()
    }),
    ("Message", "string", 0, |event, _| event["message"].as_str().unwrap_or_default().trim().into()),
    ("First Seen", "string", 1, first_seen),
    ("Count", "string", 1, |event, _| {
        let count = event["series"]["count"].as_i64().or(event["count"].as_i64()).unwrap_or(0);
        // What happened once is not counted in the newer way.
        count.max(1).into()
    }),
];

fn first_seen(event: &Value, now: u64) -> Value {
    let times = [&event["firstTimestamp"], &event["eventTime"]];
    times
        .into_iter()
        .find(|time| time.is_string())
        .map_or_else(|| "<unknown>".into(), |time| since(time, now))
}

const AUTOSCALERS: &[NativeColumn] = &[
    ("Reference", "string", 0, |scaler, _| {
        let target = &scaler["spec"]["scaleTargetRef"];
        format!(
            "{}/{}",
            target["kind"].as_str().unwrap_or_default(),
            target["name"].as_str().unwrap_or_default()
        )
        .into()
    }),
    ("Targets", "string", 0, |scaler, _| targets(scaler).into()),
    ("MinPods", "string", 0, |scaler, _| {
        scaler["spec"]["minReplicas"]
            .as_i64()
            .map_or_else(|| "<unset>".into(), |least| least.to_string().into())
    }),
    ("MaxPods", "string", 0, |scaler, _| scaler["spec"]["maxReplicas"].clone()),
    ("Replicas", "string", 0, |scaler, _| number(&scaler["status"]["currentReplicas"]).into()),
    AGE,
];

/// What an autoscaler aims at, and how far it is.
fn targets(scaler: &Value) -> String {
    let all = list(&scaler["spec"]["metrics"]);
    if all.is_empty() {
        return "<none>".to_owned();
    }
    let told = |(index, metric): (usize, &Value)| {
        let member = match metric["type"].as_str().unwrap_or_default() {
            "Resource" => "resource",
            "ContainerResource" => "containerResource",
            "Pods" => "pods",
            "Object" => "object",
            "External" => "external",
            _ => return "<unknown type>".to_owned(),
        };
        let (wanted, found) =
            (&metric[member]["target"], &scaler["status"]["currentMetrics"][index][member]["current"]);
        let value = |of: &Value| match (&of["averageUtilization"], &of["averageValue"], &of["value"]) {
            (Value::Number(share), _, _) => Some(format!("{share}%")),
            (_, Value::String(average), _) => Some(average.clone()),
            (_, _, Value::String(value)) => Some(value.clone()),
            _ => None,
        };
        let (found, wanted) = (value(found).unwrap_or_else(|| "<unknown>".to_owned()), value(wanted));
        let name = metric[member]["name"].as_str().map(|name| format!("{name}: ")).unwrap_or_default();
        let average = if matches!(member, "object" | "external")
            && metric[member]["target"]["averageValue"].is_string()
        {
            " (avg)"
        } else {
            ""
        };
        format!("{name}{found}/{}{average}", wanted.unwrap_or_else(|| "<auto>".to_owned()))
    };
    let first: Vec<String> = all.iter().enumerate().take(2).map(told).collect();
    match all.len() {
        0..=2 => first.join(", "),
        more => format!("{} + {} more...", first.join(", "), more - 2),
    }
}
const CLAIMS: &[NativeColumn] = &[
    ("Status", "string", 0, |claim, _| claim["status"]["phase"].clone()),
    ("Volume", "string", 0, |claim, _| claim["spec"]["volumeName"].as_str().unwrap_or_default().into()),
    ("Capacity", "string", 0, |claim, _| {
        claim["status"]["capacity"]["storage"].as_str().unwrap_or_default().into()
    }),
    ("Access Modes", "string", 0, |claim, _| {
        let modes: Vec<&str> =
            list(&claim["status"]["accessModes"]).iter().filter_map(Value::as_str).collect();
        modes.join(",").into()
    }),
    ("StorageClass", "string", 0, |claim, _| {
        claim["spec"]["storageClassName"].as_str().unwrap_or_default().into()
    }),
    AGE,
];
const ENDPOINTS: &[NativeColumn] = &[
    ("Endpoints", "string", 0, |endpoints, _| {
        let addresses: Vec<String> =
            path::values(endpoints, ".subsets[*].addresses[*].ip").into_iter().map(path::text).collect();
        if addresses.is_empty() { "<none>".into() } else { addresses.join(",").into() }
    }),
    AGE,
];
const DEPLOYMENTS: &[NativeColumn] = &[
    ("Ready", "string", 0, |deployment, _| {
        format!(
            "{}/{}",
            number(&deployment["status"]["readyReplicas"]),
            number(&deployment["spec"]["replicas"])
        )
        .into()
    }),
    ("Up-to-date", "string", 0, |deployment, _| number(&deployment["status"]["updatedReplicas"]).into()),
    ("Available", "string", 0, |deployment, _| number(&deployment["status"]["availableReplicas"]).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const REPLICA_SETS: &[NativeColumn] = &[
    ("Desired", "integer", 0, |set, _| number(&set["spec"]["replicas"]).into()),
    ("Current", "integer", 0, |set, _| number(&set["status"]["replicas"]).into()),
    ("Ready", "integer", 0, |set, _| number(&set["status"]["readyReplicas"]).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const STATEFUL_SETS: &[NativeColumn] = &[
    ("Ready", "string", 0, |set, _| {
        format!("{}/{}", number(&set["status"]["readyReplicas"]), number(&set["spec"]["replicas"])).into()
    }),
    AGE,
    CONTAINERS,
    IMAGES,
];
const DAEMON_SETS: &[NativeColumn] = &[
    ("Desired", "integer", 0, |set, _| number(&set["status"]["desiredNumberScheduled"]).into()),
    ("Current", "integer", 0, |set, _| number(&set["status"]["currentNumberScheduled"]).into()),
    ("Ready", "integer", 0, |set, _| number(&set["status"]["numberReady"]).into()),
    ("Up-to-date", "integer", 0, |set, _| number(&set["status"]["updatedNumberScheduled"]).into()),
    ("Available", "integer", 0, |set, _| number(&set["status"]["numberAvailable"]).into()),
    ("Node Selector", "string", 0, |set, _| pairs(&set["spec"]["template"]["spec"]["nodeSelector"]).into()),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const JOBS: &[NativeColumn] = &[
    ("Status", "string", 0, |job, _| {
        let is = |what: &str| {
            list(&job["status"]["conditions"])
                .iter()
                .any(|condition| condition["type"] == what && condition["status"] == "True")
        };
        if is("Complete") {
            "Complete"
        } else if is("Failed") {
            "Failed"
        } else if is("Suspended") {
            "Suspended"
        } else {
            "Running"
        }
        .into()
    }),
    ("Completions", "string", 0, |job, _| {
        let wanted = job["spec"]["completions"].as_u64().unwrap_or(1);
        format!("{}/{wanted}", number(&job["status"]["succeeded"])).into()
    }),
    ("Duration", "string", 0, |job, now| {
        match (&job["status"]["startTime"], &job["status"]["completionTime"]) {
            (Value::Null, _) => "".into(),
            (start, Value::String(end)) => {
                since(start, mailboat_object::timestamp::unix_seconds(end).unwrap_or(now))
            }
            (start, _) => since(start, now),
        }
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];
const CRON_JOBS: &[NativeColumn] = &[
    ("Schedule", "string", 0, |job, _| job["spec"]["schedule"].clone()),
    ("Timezone", "string", 0, |job, _| or_none(&job["spec"]["timeZone"])),
    ("Suspend", "boolean", 0, |job, _| if job["spec"]["suspend"] == true { "True" } else { "False" }.into()),
    ("Active", "integer", 0, |job, _| list(&job["status"]["active"]).len().into()),
    ("Last Schedule", "string", 0, |job, now| match &job["status"]["lastScheduleTime"] {
        Value::Null => "<none>".into(),
        time => since(time, now),
    }),
    AGE,
    ("Containers", "string", 1, |job, _| template(&job["spec"]["jobTemplate"], "name")),
    ("Images", "string", 1, |job, _| template(&job["spec"]["jobTemplate"], "image")),
    ("Selector", "string", 1, |job, _| or_none(&job["spec"]["jobTemplate"]["spec"]["selector"])),
];
const INGRESSES: &[NativeColumn] = &[
    ("Class", "string", 0, |ingress, _| or_none(&ingress["spec"]["ingressClassName"])),
    ("Hosts", "string", 0, |ingress, _| {
        let hosts: Vec<&str> =
            list(&ingress["spec"]["rules"]).iter().map(|rule| rule["host"].as_str().unwrap_or("*")).collect();
        if hosts.is_empty() { "*".into() } else { hosts.join(",").into() }
    }),
    ("Address", "string", 0, |ingress, _| {
        let addresses = list(&ingress["status"]["loadBalancer"]["ingress"]).iter();
        let addresses: Vec<&str> =
            addresses.filter_map(|address| address["ip"].as_str().or(address["hostname"].as_str())).collect();
        addresses.join(",").into()
    }),
    ("Ports", "string", 0, |ingress, _| {
        if list(&ingress["spec"]["tls"]).is_empty() { "80" } else { "80, 443" }.into()
    }),
    AGE,
];
const LEASES: &[NativeColumn] = &[
    ("Holder", "string", 0, |lease, _| lease["spec"]["holderIdentity"].as_str().unwrap_or_default().into()),
    AGE,
];
const BINDINGS: &[NativeColumn] = &[
    ("Role", "string", 0, |binding, _| {
        let role = &binding["roleRef"];
        format!("{}/{}", role["kind"].as_str().unwrap_or_default(), role["name"].as_str().unwrap_or_default())
            .into()
    }),
    AGE,
    ("Users", "string", 1, |binding, _| subjects(binding, "User")),
    ("Groups", "string", 1, |binding, _| subjects(binding, "Group")),
    ("ServiceAccounts", "string", 1, |binding, _| subjects(binding, "ServiceAccount")),
];

/// Those of one kind whom a binding names.
fn subjects(binding: &Value, kind: &str) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let these = list(&binding["subjects"]).iter().filter(|subject| subject["kind"] == kind);
    let names = these.map(|subject| match subject["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{}", text(&subject["name"])),
        None => text(&subject["name"]),
    });
    names.collect::<Vec<_>>().join(", ").into()
}

const SLICES: &[NativeColumn] = &[
    ("AddressType", "string", 0, |slice, _| slice["addressType"].clone()),
    ("Ports", "string", 0, |slice, _| {
        let ports: Vec<String> = list(&slice["ports"]).iter().map(|port| port["port"].to_string()).collect();
        if ports.is_empty() { "<unset>".into() } else { ports.join(",").into() }
    }),
    ("Endpoints", "string", 0, |slice, _| {
        let addresses: Vec<String> =
            path::values(slice, ".endpoints[*].addresses[*]").into_iter().map(path::text).collect();
        if addresses.is_empty() { "<unset>".into() } else { addresses.join(",").into() }
    }),
    AGE,
];

const CONTAINERS: NativeColumn = ("Containers", "string", 1, |object, _| template(object, "name"));
const IMAGES: NativeColumn = ("Images", "string", 1, |object, _| template(object, "image"));
const SELECTOR: NativeColumn = ("Selector", "string", 1, |object, _| {
    let selector = &object["spec"]["selector"];
    // One kind of old selects by labels alone, and has them where others have what holds them.
    let is_plain = selector.get("matchLabels").or(selector.get("matchExpressions")).is_none();
    pairs(if is_plain { selector } else { &selector["matchLabels"] }).into()
});

fn template(object: &Value, member: &str) -> Value {
    let containers = list(&object["spec"]["template"]["spec"]["containers"]).iter();
    let texts: Vec<&str> = containers.filter_map(|container| container[member].as_str()).collect();
    texts.join(",").into()
}

fn since(time: &Value, now_seconds: u64) -> Value {
    time.as_str().map_or_else(|| json!("<unknown>"), |time| age::since(time, now_seconds).into())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn size(value: &Value) -> usize {
    value.as_object().map_or(0, serde_json::Map::len)
}

fn text(value: &Value) -> Value {
    value.as_str().unwrap_or_default().into()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

fn or_none(value: &Value) -> Value {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or("<none>").into()
}

fn pairs(labels: &Value) -> String {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}
