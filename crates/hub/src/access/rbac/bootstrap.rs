//! The roles and bindings that a server brings along: those that users, kubectl and charts rely on.

use serde_json::{Value, json};

use super::GROUP;

/// Cluster roles and cluster role bindings of every Kubernetes server: who may do everything, what everybody may see,
/// and the roles that users bind by name (`cluster-admin`, `admin`, `edit`, `view`).
pub fn objects() -> Vec<Value> {
    let mut objects = vec![
        role(
            "cluster-admin",
            &json!([
                { "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] },
                { "nonResourceURLs": ["*"], "verbs": ["*"] },
            ]),
        ),
        role(
            "system:basic-user",
            &json!([
                rule(
                    &["authorization.k8s.io"],
                    &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                    &["create"]
                ),
                rule(&["authentication.k8s.io"], &["selfsubjectreviews"], &["create"]),
            ]),
        ),
        role(
            "system:discovery",
            &json!([{
                "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version", "/version/"],
                "verbs": ["get"],
            }]),
        ),
        role(
            "system:public-info-viewer",
            &json!([{
                "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"], "verbs": ["get"],
            }]),
        ),
        role(
            "system:auth-delegator",
            &json!([
                rule(&["authentication.k8s.io"], &["tokenreviews"], &["create"]),
                rule(&["authorization.k8s.io"], &["subjectaccessreviews"], &["create"]),
            ]),
        ),
        binding("cluster-admin", "cluster-admin", &["system:masters"]),
        binding("system:basic-user", "system:basic-user", &["system:authenticated"]),
        binding("system:discovery", "system:discovery", &["system:authenticated"]),
        binding(
            "system:public-info-viewer",
            "system:public-info-viewer",
            &["system:authenticated", "system:unauthenticated"],
        ),
    ];
    objects.extend(user_roles());
    objects
}

/// `admin`, `edit` and `view`, each made of what bears its label; each wider one bears those of the narrower.
fn user_roles() -> Vec<Value> {
    const READ: &[&str] = &["get", "list", "watch"];
    const WRITE: &[&str] = &["create", "delete", "deletecollection", "patch", "update"];
    const CORE: &[&str] = &[
        "configmaps",
        "endpoints",
        "events",
        "persistentvolumeclaims",
        "pods",
        "pods/log",
        "pods/status",
        "replicationcontrollers",
        "resourcequotas",
        "limitranges",
        "serviceaccounts",
        "services",
        "services/status",
        "namespaces",
    ];
    const CORE_WRITTEN: &[&str] = &[
        "configmaps",
        "endpoints",
        "events",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "secrets",
        "serviceaccounts",
        "services",
    ];
    const APPS: &[&str] = &[
        "daemonsets",
        "deployments",
        "deployments/scale",
        "deployments/rollback",
        "replicasets",
        "replicasets/scale",
        "statefulsets",
        "statefulsets/scale",
        "controllerrevisions",
    ];
    let workloads = |verbs| {
        [
            rule(&["apps"], APPS, verbs),
            rule(&["batch"], &["cronjobs", "jobs"], verbs),
            rule(&["autoscaling"], &["horizontalpodautoscalers"], verbs),
            rule(&["policy"], &["poddisruptionbudgets"], verbs),
            rule(&["networking.k8s.io"], &["ingresses", "networkpolicies"], verbs),
        ]
    };
    let mut view = vec![rule(&[""], CORE, READ), rule(&["discovery.k8s.io"], &["endpointslices"], READ)];
    view.extend(workloads(READ));
    let mut edit = vec![
        rule(&[""], CORE_WRITTEN, WRITE),
        rule(&[""], &["secrets"], READ),
        rule(&[""], &["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"], READ),
        rule(&[""], &["pods/eviction", "serviceaccounts/token"], &["create"]),
        rule(&[""], &["serviceaccounts"], &["impersonate"]),
        rule(
            &["coordination.k8s.io"],
            &["leases"],
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        ),
    ];
    edit.extend(workloads(WRITE));
    let admin = [
        rule(&["authorization.k8s.io"], &["localsubjectaccessreviews"], &["create"]),
        rule(
            &[GROUP],
            &["rolebindings", "roles"],
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        ),
    ];
    let everything = |parts: &[&[Value]]| Value::Array(parts.concat());
    vec![
        part("system:aggregate-to-view", "view", &Value::Array(view.clone())),
        part("system:aggregate-to-edit", "edit", &Value::Array(edit.clone())),
        part("system:aggregate-to-admin", "admin", &Value::Array(admin.to_vec())),
        made_of("view", "view", Some("edit"), &everything(&[&view])),
        made_of("edit", "edit", Some("admin"), &everything(&[&edit, &view])),
        made_of("admin", "admin", None, &everything(&[&admin, &edit, &view])),
    ]
}

/// What holds in every workspace of kcp besides: its administrators may do everything there.
pub fn of_workspaces() -> Vec<Value> {
    let mut all = objects();
    all.push(binding("system:kcp:admin", "cluster-admin", &["system:kcp:admin"]));
    all
}

fn label(of: &str) -> String {
    format!("rbac.authorization.k8s.io/aggregate-to-{of}")
}

fn part(name: &str, of: &str, rules: &Value) -> Value {
    let mut role = role(name, rules);
    role["metadata"]["labels"][label(of)] = "true".into();
    role
}

fn made_of(name: &str, of: &str, part_of: Option<&str>, rules: &Value) -> Value {
    let mut role = role(name, rules);
    role["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { label(of): "true" } }] });
    if let Some(wider) = part_of {
        role["metadata"]["labels"][label(wider)] = "true".into();
    }
    role
}

fn rule(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": groups, "resources": resources, "verbs": verbs })
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name, "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
        "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
    })
}

fn role(name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole",
        "metadata": metadata(name),
        "rules": rules,
    })
}

fn binding(name: &str, role: &str, groups: &[&str]) -> Value {
    let subjects: Vec<Value> =
        groups.iter().map(|group| json!({ "apiGroup": GROUP, "kind": "Group", "name": group })).collect();
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
        "metadata": metadata(name),
        "roleRef": { "apiGroup": GROUP, "kind": "ClusterRole", "name": role },
        "subjects": subjects,
    })
}
