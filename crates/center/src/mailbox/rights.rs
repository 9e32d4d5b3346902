//! What a syncer may do in its mailbox: read it, report status, bring up what it is told to, renew its token.
//!
//! A mailbox serves Workspaces, APIBindings and RBAC like any workspace of kcp. A right over `*` would be the right
//! to make workspaces and to give out rights, so what may be written is named kind by kind.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_api::edge::UpsyncSet;
use mailboat_object::key::KindId;
use mailboat_registration::SyncerId;
use mailboat_registration::rights::may_be_upsynced;
use serde_json::{Value, json};

use super::contents::{CONFIGURATION, access};
use crate::denature;

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
    /// Those of them whose status is a part of the object like any other: whoever writes that writes the object.
    pub without_status: BTreeSet<KindId>,
    /// Brought up.
    pub upsync: BTreeSet<UpsyncSet>,
}

/// The rules of the syncer's role in its mailbox, sorted.
pub fn rules(syncer: &SyncerId, synced: &SyncedKinds) -> Vec<Value> {
    let mut status: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    status.entry(CONFIGURATION.0).or_default().extend(CONFIGURATION.1.map(str::to_owned));
    for kind in synced.carried.iter().filter(|kind| may_write(kind)) {
        let resources = status.entry(kind.group()).or_default();
        resources.insert(format!("{}/status", kind.resource()));
        if synced.without_status.contains(kind) {
            resources.insert(kind.resource().to_owned());
        }
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

/// The kinds that an upsync set names, as the mailbox stores them, without those that are refused. All kinds of a group are
/// a right over that group, which is data; in the core group they are those that are.
fn named_kinds(set: &UpsyncSet) -> Vec<KindId> {
    let group = set.api_group.as_str();
    let stored = |resource: &str| denature::in_mailbox(&KindId::new(group, resource)).into_owned();
    let named = |resource: &&str| refusal(group, resource).is_none();
    if !set.resources.iter().any(|resource| resource == "*") {
        return set.resources.iter().map(String::as_str).filter(named).map(stored).collect();
    }
    let all = if group.is_empty() { &CORE[..] } else { &["*"] };
    all.iter().copied().filter(named).map(stored).collect()
}

/// Why nothing of a group is brought up, if so. What an upsync set says becomes rules of RBAC, where `*` and `/` are more
/// than letters of a name.
pub(crate) fn group_refusal(group: &str) -> Option<&'static str> {
    group.contains(['*', '/']).then_some(
        "what comes up is named group by group: * is no wildcard here, and a version is not part of it",
    )
}

/// Why what an upsync set names in a group is not brought up, if so.
pub(crate) fn refusal(group: &str, resource: &str) -> Option<&'static str> {
    let stored = KindId::new(group, resource);
    if let Some(why) = group_refusal(group) {
        Some(why)
    } else if resource != "*" && resource.contains(['*', '/']) {
        Some("it is no kind: write lowercase plurals, or a lone * for all kinds of the group")
    } else if may_be_upsynced(&denature::in_mailbox(&stored)) {
        None
    } else {
        Some("it may decide who may do what in a mailbox, or what is served there, and never comes up")
    }
}

/// Whether a kind is data in a mailbox, which may be written without a right over the mailbox itself. A namespace takes along
/// all that is in it.
fn may_write(kind: &KindId) -> bool {
    may_be_upsynced(kind)
        && denature::denatured(kind).is_none()
        && !(kind.group().is_empty() && kind.resource() == "namespaces")
}
