//! What stands in every mailbox, and beside every SyncTarget.

use mailboat_api::generate::MAILBOX_CLAIMS;
use mailboat_api::names::{export, group, object as fixed};
use mailboat_object::object::Object;
use mailboat_registration::SyncerId;
use mailboat_registration::account::ACCOUNT_NAMESPACE;
use mailboat_registration::names::REGISTRATION_LABEL;
use serde_json::{Value, json};

use super::{COMPUTE_BINDING, DENATURED_BINDING, Fixture, MAILBOX_BINDING, SYNCER_ROLE, SyncedKinds, rules};

const RBAC: &str = "rbac.authorization.k8s.io";

/// All of it, in the order in which it is needed.
pub fn contents(provider: &str, syncer: &SyncerId, synced: &SyncedKinds) -> Vec<Fixture> {
    Common::of(provider).and(syncer, synced)
}

/// What is the same in every mailbox: the center's own access first, since kcp makes only the *user* who created a workspace
/// its administrator, and the bindings. With ten thousand mailboxes it is made, and kept, once.
#[derive(Clone, Debug)]
pub struct Common(Vec<Fixture>);

impl Common {
    /// What is the same in every mailbox of a provider.
    pub fn of(provider: &str) -> Self {
        Self(vec![
            Fixture::cluster_scoped(RBAC, "clusterrolebindings", &center_access()),
            binding(export::BINDING_IN_MAILBOX, provider, export::EDGE, Vec::new()),
            binding(COMPUTE_BINDING, provider, export::COMPUTE, Vec::new()),
            binding(DENATURED_BINDING, provider, export::DENATURED, Vec::new()),
            binding(MAILBOX_BINDING, provider, export::MAILBOX, accepted_claims()),
        ])
    }

    /// The same, and what is one syncer's own.
    pub fn and(&self, syncer: &SyncerId, synced: &SyncedKinds) -> Vec<Fixture> {
        let own = [
            Fixture::namespaced("", "serviceaccounts", ACCOUNT_NAMESPACE, &account(syncer)),
            Fixture::cluster_scoped(RBAC, "clusterroles", &role(SYNCER_ROLE, &rules(syncer, synced))),
            Fixture::cluster_scoped(RBAC, "clusterrolebindings", &grant(SYNCER_ROLE, syncer)),
        ];
        self.0.iter().cloned().chain(own).collect()
    }
}

/// What lets a syncer report on its one SyncTarget where that stands. The SyncTarget owns it.
pub fn reporting(target: &Object) -> Vec<Fixture> {
    let (target_group, target_name) = (target.key.kind.group(), target.key.name.as_str());
    let syncer = &SyncerId::new(target_name, &target.uid.to_string());
    let rules = [
        json!({ "apiGroups": [target_group], "resources": ["synctargets"], "resourceNames": [target_name], "verbs": ["get", "list", "watch"] }),
        json!({ "apiGroups": [target_group], "resources": ["synctargets/status"], "resourceNames": [target_name], "verbs": ["get", "patch", "update"] }),
        access(),
    ];
    let owner = json!([{
        "apiVersion": target.api_version(), "kind": "SyncTarget", "name": target_name, "uid": target.uid.to_string(),
    }]);
    let owned = |mut object: Value| {
        object["metadata"]["ownerReferences"] = owner.clone();
        object
    };
    vec![
        Fixture::namespaced("", "serviceaccounts", ACCOUNT_NAMESPACE, &owned(account(syncer))),
        Fixture::cluster_scoped(RBAC, "clusterroles", &owned(role(syncer.as_str(), &rules))),
        Fixture::cluster_scoped(RBAC, "clusterrolebindings", &owned(grant(syncer.as_str(), syncer))),
    ]
}

/// kcp's own right to enter a workspace at all.
pub(super) fn access() -> Value {
    json!({ "nonResourceURLs": ["/"], "verbs": ["access"] })
}

fn center_access() -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "name": fixed::CENTER_GROUP },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": RBAC, "kind": "Group", "name": fixed::CENTER_GROUP }],
    })
}

fn binding(name: &str, provider: &str, export_name: &str, claims: Vec<Value>) -> Fixture {
    let mut object = json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": { "name": name },
        "spec": { "reference": { "export": { "path": provider, "name": export_name } } },
    });
    if !claims.is_empty() {
        object["spec"]["permissionClaims"] = Value::from(claims);
    }
    Fixture::cluster_scoped("apis.kcp.io", "apibindings", &object)
}

fn accepted_claims() -> Vec<Value> {
    let accepted = MAILBOX_CLAIMS.iter().map(|claim| {
        let mut accepted = json!({
            "resource": claim.resource,
            "verbs": claim.verbs,
            "state": "Accepted",
            "selector": { "matchAll": true },
        });
        if !claim.group.is_empty() {
            accepted["group"] = json!(claim.group);
        }
        accepted
    });
    accepted.collect()
}

/// The account of a syncer: the one that `syncer-gen` gives out tokens of.
fn account(syncer: &SyncerId) -> Value {
    let labels = json!({ REGISTRATION_LABEL: syncer.as_str() });
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "namespace": ACCOUNT_NAMESPACE, "name": syncer.as_str(), "labels": labels },
    })
}

fn role(name: &str, rules: &[Value]) -> Value {
    json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": name }, "rules": rules })
}

fn grant(role: &str, syncer: &SyncerId) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": { "name": role },
        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "namespace": ACCOUNT_NAMESPACE, "name": syncer.as_str() }],
    })
}

/// The configurations whose status a syncer writes its beats and counts into.
pub(super) const CONFIGURATION: (&str, [&str; 2]) =
    (group::EDGE, ["edgesyncconfigs/status", "syncerconfigs/status"]);
