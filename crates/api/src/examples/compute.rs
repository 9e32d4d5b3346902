//! A minimal valid object of each compute kind.

use serde_json::{Value, json};

pub(super) fn valid() -> Vec<Value> {
    [core(), apps(), platform(), storage()].concat()
}

fn core() -> Vec<Value> {
    vec![
        namespaced(
            "v1",
            "Endpoints",
            json!({
                "subsets": [{ "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "port": 80 }] }],
            }),
        ),
        namespaced(
            "v1",
            "LimitRange",
            json!({
                "spec": { "limits": [{ "type": "Container", "max": { "cpu": 0.5, "memory": "1Gi" } }] },
            }),
        ),
        cluster(
            "v1",
            "PersistentVolume",
            json!({
                "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
                          "hostPath": { "path": "/data" } },
            }),
        ),
        namespaced(
            "v1",
            "PersistentVolumeClaim",
            json!({
                "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
            }),
        ),
        namespaced("v1", "Pod", json!({ "spec": pod() })),
        namespaced("v1", "PodTemplate", json!({ "template": { "metadata": labels(), "spec": pod() } })),
        namespaced(
            "v1",
            "ReplicationController",
            json!({
                "spec": { "replicas": 1, "selector": { "app": "example" }, "template": template() },
            }),
        ),
        namespaced(
            "v1",
            "Service",
            json!({
                "spec": { "selector": { "app": "example" }, "ports": [{ "port": 80, "targetPort": "http" }] },
            }),
        ),
    ]
}

fn apps() -> Vec<Value> {
    let selector = json!({ "matchLabels": { "app": "example" } });
    let workload = json!({ "spec": { "selector": selector, "template": template() } });
    let mut stateful = workload.clone();
    stateful["spec"]["serviceName"] = json!("example");
    stateful["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }]);
    vec![
        namespaced("apps/v1", "DaemonSet", workload.clone()),
        namespaced("apps/v1", "Deployment", workload.clone()),
        namespaced("apps/v1", "ReplicaSet", workload),
        namespaced("apps/v1", "StatefulSet", stateful),
        namespaced(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({
                "spec": { "maxReplicas": 3, "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment",
                                                                "name": "example" } },
            }),
        ),
        namespaced(
            "batch/v1",
            "CronJob",
            json!({
                "spec": { "schedule": "*/5 * * * *", "jobTemplate": { "spec": { "template": job_template() } } },
            }),
        ),
        namespaced("batch/v1", "Job", json!({ "spec": { "template": job_template() } })),
    ]
}

fn platform() -> Vec<Value> {
    vec![
        cluster_named(
            "apiregistration.k8s.io/v1",
            "APIService",
            "v1.example.com",
            json!({
                "spec": { "group": "example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                          "service": { "namespace": "default", "name": "example" } },
            }),
        ),
        namespaced(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!({
                "addressType": "IPv4", "endpoints": [{ "addresses": ["10.0.0.1"] }], "ports": [{ "port": 80 }],
            }),
        ),
        cluster(
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            json!({
                "spec": { "priorityLevelConfiguration": { "name": "global-default" }, "matchingPrecedence": 1000 },
            }),
        ),
        cluster(
            "flowcontrol.apiserver.k8s.io/v1",
            "PriorityLevelConfiguration",
            json!({
                "spec": { "type": "Limited", "limited": { "nominalConcurrencyShares": 1,
                                                          "limitResponse": { "type": "Reject" } } },
            }),
        ),
        namespaced(
            "networking.k8s.io/v1",
            "Ingress",
            json!({
                "spec": { "rules": [{ "host": "example.com", "http": { "paths": [{
                    "path": "/", "pathType": "Prefix",
                    "backend": { "service": { "name": "example", "port": { "number": 80 } } } }] } }] },
            }),
        ),
        cluster(
            "networking.k8s.io/v1",
            "IngressClass",
            json!({ "spec": { "controller": "example.com/ingress" } }),
        ),
        namespaced(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({
                "spec": { "podSelector": {}, "policyTypes": ["Ingress"] },
            }),
        ),
        cluster("node.k8s.io/v1", "RuntimeClass", json!({ "handler": "runc" })),
        namespaced(
            "policy/v1",
            "PodDisruptionBudget",
            json!({
                "spec": { "minAvailable": "50%", "selector": { "matchLabels": { "app": "example" } } },
            }),
        ),
        cluster("scheduling.k8s.io/v1", "PriorityClass", json!({ "value": 1000 })),
    ]
}

fn storage() -> Vec<Value> {
    let group = "storage.k8s.io/v1";
    vec![
        cluster(group, "CSIDriver", json!({ "spec": { "attachRequired": false } })),
        cluster(
            group,
            "CSINode",
            json!({ "spec": { "drivers": [{ "name": "example.com", "nodeID": "n1" }] } }),
        ),
        namespaced(group, "CSIStorageCapacity", json!({ "storageClassName": "fast", "capacity": "10Gi" })),
        cluster(group, "StorageClass", json!({ "provisioner": "example.com/disk" })),
        cluster(
            group,
            "VolumeAttachment",
            json!({
                "spec": { "attacher": "example.com", "nodeName": "n1", "source": { "persistentVolumeName": "example" } },
            }),
        ),
    ]
}

fn labels() -> Value {
    // As programs write it: a creation time that is nothing.
    json!({ "labels": { "app": "example" }, "creationTimestamp": null })
}

fn pod() -> Value {
    json!({ "containers": [{
        "name": "web", "image": "example.com/web:1",
        "ports": [{ "name": "http", "containerPort": 80 }],
        "env": [{ "name": "A", "value": "b" }],
        "resources": { "requests": { "cpu": 0.25, "memory": "64Mi" }, "limits": { "cpu": 1 } },
        "livenessProbe": { "httpGet": { "port": 80 } },
    }] })
}

fn template() -> Value {
    json!({ "metadata": labels(), "spec": pod() })
}

fn job_template() -> Value {
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Never");
    template
}

fn namespaced(api_version: &str, kind: &str, content: Value) -> Value {
    let mut object = cluster(api_version, kind, content);
    object["metadata"]["namespace"] = json!("default");
    object
}

fn cluster(api_version: &str, kind: &str, content: Value) -> Value {
    cluster_named(api_version, kind, "example", content)
}

fn cluster_named(api_version: &str, kind: &str, name: &str, content: Value) -> Value {
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
    if let (Some(object), Value::Object(content)) = (object.as_object_mut(), content) {
        object.extend(content);
    }
    object
}
