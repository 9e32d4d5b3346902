//! Kinds of Kubernetes itself that are offered in kcp: as they are (compute), or denatured.
//!
//! Scope, subresources and schemas come from a real API server's OpenAPI documents; what those do not say,
//! short names, categories and printed columns, stands in the tables here.

/// A kind of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltinKind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The lowercase plural.
    pub plural: &'static str,
    /// Short names.
    pub short_names: &'static [&'static str],
    /// Whether `kubectl get all` shows it.
    pub in_all: bool,
    /// Printed columns besides the age: name, type, JSON path, priority.
    pub columns: &'static [(&'static str, &'static str, &'static str, i32)],
}

const KIND: BuiltinKind = BuiltinKind {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    short_names: &[],
    in_all: false,
    columns: &[],
};

const TEMPLATE_NAMES: (&str, &str, &str, i32) =
    ("Containers", "string", ".spec.template.spec.containers[*].name", 1);
const TEMPLATE_IMAGES: (&str, &str, &str, i32) =
    ("Images", "string", ".spec.template.spec.containers[*].image", 1);

/// Kinds that kcp does not serve and that workloads consist of.
pub const COMPUTE: &[BuiltinKind] = &[
    BuiltinKind {
        kind: "Endpoints",
        plural: "endpoints",
        short_names: &["ep"],
        columns: &[("Endpoints", "string", ".subsets[*].addresses[*].ip", 0)],
        ..KIND
    },
    BuiltinKind { kind: "LimitRange", plural: "limitranges", short_names: &["limits"], ..KIND },
    BuiltinKind {
        kind: "PersistentVolume",
        plural: "persistentvolumes",
        short_names: &["pv"],
        columns: &[
            ("Capacity", "string", ".spec.capacity.storage", 0),
            ("Access Modes", "string", ".spec.accessModes", 0),
            ("Reclaim Policy", "string", ".spec.persistentVolumeReclaimPolicy", 0),
            ("Status", "string", ".status.phase", 0),
            ("Claim", "string", ".spec.claimRef.name", 0),
            ("StorageClass", "string", ".spec.storageClassName", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        kind: "PersistentVolumeClaim",
        plural: "persistentvolumeclaims",
        short_names: &["pvc"],
        columns: &[
            ("Status", "string", ".status.phase", 0),
            ("Volume", "string", ".spec.volumeName", 0),
            ("Capacity", "string", ".status.capacity.storage", 0),
            ("Access Modes", "string", ".status.accessModes", 0),
            ("StorageClass", "string", ".spec.storageClassName", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        kind: "Pod",
        plural: "pods",
        short_names: &["po"],
        in_all: true,
        columns: &[
            ("Status", "string", ".status.phase", 0),
            ("IP", "string", ".status.podIP", 1),
            ("Node", "string", ".spec.nodeName", 1),
        ],
        ..KIND
    },
    BuiltinKind {
        kind: "PodTemplate",
        plural: "podtemplates",
        columns: &[
            ("Containers", "string", ".template.spec.containers[*].name", 0),
            ("Images", "string", ".template.spec.containers[*].image", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        kind: "ReplicationController",
        plural: "replicationcontrollers",
        short_names: &["rc"],
        in_all: true,
        columns: &[
            ("Desired", "integer", ".spec.replicas", 0),
            ("Current", "integer", ".status.replicas", 0),
            ("Ready", "integer", ".status.readyReplicas", 0),
            TEMPLATE_NAMES,
            TEMPLATE_IMAGES,
        ],
        ..KIND
    },
    BuiltinKind {
        kind: "Service",
        plural: "services",
        short_names: &["svc"],
        in_all: true,
        columns: &[
            ("Type", "string", ".spec.type", 0),
            ("Cluster-IP", "string", ".spec.clusterIP", 0),
            ("External-IP", "string", ".status.loadBalancer.ingress[*].ip", 0),
            ("Ports", "string", ".spec.ports[*].port", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        group: "apiregistration.k8s.io",
        kind: "APIService",
        plural: "apiservices",
        columns: &[
            ("Service", "string", ".spec.service.name", 0),
            ("Available", "string", ".status.conditions[?(@.type==\"Available\")].status", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        group: "apps",
        kind: "DaemonSet",
        plural: "daemonsets",
        short_names: &["ds"],
        in_all: true,
        columns: &[
            ("Desired", "integer", ".status.desiredNumberScheduled", 0),
            ("Current", "integer", ".status.currentNumberScheduled", 0),
            ("Ready", "integer", ".status.numberReady", 0),
            ("Up-to-date", "integer", ".status.updatedNumberScheduled", 0),
            ("Available", "integer", ".status.numberAvailable", 0),
            TEMPLATE_NAMES,
            TEMPLATE_IMAGES,
        ],
        ..KIND
    },
    BuiltinKind {
        group: "apps",
        kind: "Deployment",
        plural: "deployments",
        short_names: &["deploy"],
        in_all: true,
        columns: &[
            ("Desired", "integer", ".spec.replicas", 0),
            ("Ready", "integer", ".status.readyReplicas", 0),
            ("Up-to-date", "integer", ".status.updatedReplicas", 0),
            ("Available", "integer", ".status.availableReplicas", 0),
            TEMPLATE_NAMES,
            TEMPLATE_IMAGES,
        ],
        ..KIND
    },
    BuiltinKind {
        group: "apps",
        kind: "ReplicaSet",
        plural: "replicasets",
        short_names: &["rs"],
        in_all: true,
        columns: &[
            ("Desired", "integer", ".spec.replicas", 0),
            ("Current", "integer", ".status.replicas", 0),
            ("Ready", "integer", ".status.readyReplicas", 0),
            TEMPLATE_NAMES,
            TEMPLATE_IMAGES,
        ],
        ..KIND
    },
    BuiltinKind {
        group: "apps",
        kind: "StatefulSet",
        plural: "statefulsets",
        short_names: &["sts"],
        in_all: true,
        columns: &[
            ("Desired", "integer", ".spec.replicas", 0),
            ("Ready", "integer", ".status.readyReplicas", 0),
            TEMPLATE_NAMES,
            TEMPLATE_IMAGES,
        ],
        ..KIND
    },
    // v1 differs in shape, and without a conversion only one version can be right: the preferred one.
    BuiltinKind {
        group: "autoscaling",
        version: "v2",
        kind: "HorizontalPodAutoscaler",
        plural: "horizontalpodautoscalers",
        short_names: &["hpa"],
        in_all: true,
        columns: &[
            ("Reference", "string", ".spec.scaleTargetRef.name", 0),
            ("MinPods", "integer", ".spec.minReplicas", 0),
            ("MaxPods", "integer", ".spec.maxReplicas", 0),
            ("Replicas", "integer", ".status.currentReplicas", 0),
        ],
    },
    BuiltinKind {
        group: "batch",
        kind: "CronJob",
        plural: "cronjobs",
        short_names: &["cj"],
        in_all: true,
        columns: &[
            ("Schedule", "string", ".spec.schedule", 0),
            ("Timezone", "string", ".spec.timeZone", 0),
            ("Suspend", "boolean", ".spec.suspend", 0),
            ("Last Schedule", "date", ".status.lastScheduleTime", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        group: "batch",
        kind: "Job",
        plural: "jobs",
        in_all: true,
        columns: &[
            ("Completions", "integer", ".spec.completions", 0),
            ("Succeeded", "integer", ".status.succeeded", 0),
            ("Failed", "integer", ".status.failed", 0),
            TEMPLATE_NAMES,
            TEMPLATE_IMAGES,
        ],
        ..KIND
    },
    BuiltinKind {
        group: "discovery.k8s.io",
        kind: "EndpointSlice",
        plural: "endpointslices",
        columns: &[
            ("AddressType", "string", ".addressType", 0),
            ("Ports", "string", ".ports[*].port", 0),
            ("Endpoints", "string", ".endpoints[*].addresses[*]", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        group: "flowcontrol.apiserver.k8s.io",
        kind: "FlowSchema",
        plural: "flowschemas",
        columns: &[
            ("PriorityLevel", "string", ".spec.priorityLevelConfiguration.name", 0),
            ("MatchingPrecedence", "integer", ".spec.matchingPrecedence", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        group: "flowcontrol.apiserver.k8s.io",
        kind: "PriorityLevelConfiguration",
        plural: "prioritylevelconfigurations",
        columns: &[("Type", "string", ".spec.type", 0)],
        ..KIND
    },
    BuiltinKind {
        group: "networking.k8s.io",
        kind: "Ingress",
        plural: "ingresses",
        short_names: &["ing"],
        columns: &[
            ("Class", "string", ".spec.ingressClassName", 0),
            ("Hosts", "string", ".spec.rules[*].host", 0),
            ("Address", "string", ".status.loadBalancer.ingress[*].ip", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        group: "networking.k8s.io",
        kind: "IngressClass",
        plural: "ingressclasses",
        columns: &[("Controller", "string", ".spec.controller", 0)],
        ..KIND
    },
    BuiltinKind {
        group: "networking.k8s.io",
        kind: "NetworkPolicy",
        plural: "networkpolicies",
        short_names: &["netpol"],
        ..KIND
    },
    BuiltinKind {
        group: "node.k8s.io",
        kind: "RuntimeClass",
        plural: "runtimeclasses",
        columns: &[("Handler", "string", ".handler", 0)],
        ..KIND
    },
    BuiltinKind {
        group: "policy",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
        short_names: &["pdb"],
        columns: &[
            ("Min Available", "string", ".spec.minAvailable", 0),
            ("Max Unavailable", "string", ".spec.maxUnavailable", 0),
            ("Allowed Disruptions", "integer", ".status.disruptionsAllowed", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        plural: "priorityclasses",
        short_names: &["pc"],
        columns: &[("Value", "integer", ".value", 0), ("Global-Default", "boolean", ".globalDefault", 0)],
        ..KIND
    },
    BuiltinKind { group: "storage.k8s.io", kind: "CSIDriver", plural: "csidrivers", ..KIND },
    BuiltinKind { group: "storage.k8s.io", kind: "CSINode", plural: "csinodes", ..KIND },
    BuiltinKind {
        group: "storage.k8s.io",
        kind: "CSIStorageCapacity",
        plural: "csistoragecapacities",
        columns: &[
            ("StorageClass", "string", ".storageClassName", 0),
            ("Capacity", "string", ".capacity", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        group: "storage.k8s.io",
        kind: "StorageClass",
        plural: "storageclasses",
        short_names: &["sc"],
        columns: &[
            ("Provisioner", "string", ".provisioner", 0),
            ("ReclaimPolicy", "string", ".reclaimPolicy", 0),
            ("VolumeBindingMode", "string", ".volumeBindingMode", 0),
        ],
        ..KIND
    },
    BuiltinKind {
        group: "storage.k8s.io",
        kind: "VolumeAttachment",
        plural: "volumeattachments",
        columns: &[
            ("Attacher", "string", ".spec.attacher", 0),
            ("Node", "string", ".spec.nodeName", 0),
            ("Attached", "boolean", ".status.attached", 0),
        ],
        ..KIND
    },
];

const ADMISSION: BuiltinKind = BuiltinKind { group: "admissionregistration.k8s.io", ..KIND };
pub(super) const RBAC: BuiltinKind = BuiltinKind { group: "rbac.authorization.k8s.io", ..KIND };

/// Kinds that would take effect in the center, and so are stored under a group of their own.
pub const DENATURED: &[BuiltinKind] = &[
    BuiltinKind { kind: "LimitRange", plural: "limitranges", ..KIND },
    BuiltinKind { kind: "ResourceQuota", plural: "resourcequotas", ..KIND },
    BuiltinKind { kind: "ServiceAccount", plural: "serviceaccounts", ..KIND },
    BuiltinKind { kind: "MutatingAdmissionPolicy", plural: "mutatingadmissionpolicies", ..ADMISSION },
    BuiltinKind {
        kind: "MutatingAdmissionPolicyBinding",
        plural: "mutatingadmissionpolicybindings",
        ..ADMISSION
    },
    BuiltinKind {
        kind: "MutatingWebhookConfiguration",
        plural: "mutatingwebhookconfigurations",
        ..ADMISSION
    },
    BuiltinKind { kind: "ValidatingAdmissionPolicy", plural: "validatingadmissionpolicies", ..ADMISSION },
    BuiltinKind {
        kind: "ValidatingAdmissionPolicyBinding",
        plural: "validatingadmissionpolicybindings",
        ..ADMISSION
    },
    BuiltinKind {
        kind: "ValidatingWebhookConfiguration",
        plural: "validatingwebhookconfigurations",
        ..ADMISSION
    },
    BuiltinKind {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        ..KIND
    },
    BuiltinKind { group: "apiregistration.k8s.io", kind: "APIService", plural: "apiservices", ..KIND },
    BuiltinKind { group: "flowcontrol.apiserver.k8s.io", kind: "FlowSchema", plural: "flowschemas", ..KIND },
    BuiltinKind {
        group: "flowcontrol.apiserver.k8s.io",
        kind: "PriorityLevelConfiguration",
        plural: "prioritylevelconfigurations",
        ..KIND
    },
    BuiltinKind { kind: "ClusterRole", plural: "clusterroles", ..RBAC },
    BuiltinKind { kind: "ClusterRoleBinding", plural: "clusterrolebindings", ..RBAC },
    BuiltinKind { kind: "Role", plural: "roles", ..RBAC },
    BuiltinKind { kind: "RoleBinding", plural: "rolebindings", ..RBAC },
];

impl BuiltinKind {
    /// `/api/v1` or `/apis/<group>/<version>`.
    pub fn api_prefix(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        }
    }

    pub(super) fn namespaced_path(&self) -> String {
        format!("{}/namespaces/{{namespace}}/{}/{{name}}", self.api_prefix(), self.plural)
    }

    pub(super) fn cluster_path(&self) -> String {
        format!("{}/{}/{{name}}", self.api_prefix(), self.plural)
    }
}
