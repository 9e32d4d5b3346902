//! What a syncer may do in its mailbox: read it, report status, bring up what it is told to, renew its token.
//!
//! A mailbox serves Workspaces, APIBindings and RBAC like any workspace of kcp. A right over `*` would be the right
//! to make workspaces and to give out rights, so what may be written is named kind by kind.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_api::edge::UpsyncSet;
use mailboat_object::key::KindId;
use mailboat_registration::SyncerId;
use serde_json::{Value, json};

use super::contents::{CONFIGURATION, access};
use crate::denature;

/// Groups that are about the workspace itself. Nothing there is ever written by a syncer, whatever it is told.
const WORKSPACES_OWN: [&str; 8] = [
    "apis.kcp.io",
    "core.kcp.io",
    "tenancy.kcp.io",
    "topology.kcp.io",
    "cache.kcp.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
];

/// What `*` means in the core group, which also holds what acts on a workspace.
const CORE: [&str; 9] = [
    "configmaps",
    "endpoints",
    "events",
    "persistentvolumeclaims",
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "secrets",
    "services",
];

/// The kinds that come through a mailbox.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SyncedKinds {
    /// Carried to the edge, as the mailbox stores them.
    pub carried: BTreeSet<KindId>,
    /// Brought up.
    pub upsync: BTreeSet<UpsyncSet>,
}

/// The rules of the syncer's role in its mailbox, sorted.
pub fn rules(syncer: &SyncerId, synced: &SyncedKinds) -> Vec<Value> {
    let mut status: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    status.entry(CONFIGURATION.0).or_default().extend(CONFIGURATION.1.map(str::to_owned));
    for kind in synced.carried.iter().filter(|kind| may_write(kind)) {
        status.entry(kind.group()).or_default().insert(format!("{}/status", kind.resource()));
    }
    let mut written: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for kind in synced.upsync.iter().flat_map(named_kinds).filter(may_write) {
        let resources = written.entry(kind.group().to_owned()).or_default();
        resources.extend([kind.resource().to_owned(), format!("{}/status", kind.resource())]);
    }
    let mut rules = vec![
        access(),
        json!({ "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/openapi/*", "/version"], "verbs": ["get"] }),
        json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"] }),
        json!({ "apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [syncer.as_str()], "verbs": ["create"] }),
    ];
    for (group, resources) in status {
        rules.push(json!({ "apiGroups": [group], "resources": resources, "verbs": ["patch"] }));
    }
    if !written.is_empty() {
        // What is brought up needs its namespace.
        rules.push(json!({ "apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"] }));
    }
    for (group, resources) in written {
        rules.push(json!({
            "apiGroups": [group], "resources": resources, "verbs": ["create", "delete", "patch", "update"],
        }));
    }
    rules
}

/// The kinds that an upsync set names, as the mailbox stores them. All kinds of a group are a right over that
/// group, which is data; in the core group they are those that are.
fn named_kinds(set: &UpsyncSet) -> Vec<KindId> {
    let group = set.api_group.as_str();
    let all = set.resources.iter().any(|resource| resource == "*");
    let stored = |resource: &str| denature::in_mailbox(&KindId::new(group, resource)).into_owned();
    if !all {
        return set.resources.iter().map(|resource| stored(resource)).collect();
    }
    if group.is_empty() {
        return CORE.iter().map(|resource| stored(resource)).collect();
    }
    vec![KindId::new(group, "*")]
}

/// Whether a kind is data in a mailbox, which may be written without a right over the mailbox itself.
fn may_write(kind: &KindId) -> bool {
    let all_of_denatured = kind.resource() == "*" && DENATURED_GROUPS.contains(&kind.group());
    !(WORKSPACES_OWN.contains(&kind.group())
        || all_of_denatured
        || denature::denatured(kind).is_some()
        || (kind.group().is_empty() && kind.resource() == "namespaces"))
}

/// Groups of which some kinds take effect in a mailbox, so that there is no right over all of them.
const DENATURED_GROUPS: [&str; 5] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "rbac.authorization.k8s.io",
];
