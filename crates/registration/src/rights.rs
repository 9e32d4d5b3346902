//! What a syncer may: in its mailbox, and at its edge.
//!
//! A mailbox is a workspace, and serves Workspaces, APIBindings and RBAC beside what it is for; so no verb and, where
//! something is written, no group and no resource is a wildcard there: the status of an APIBinding or a LogicalCluster says
//! what is served, and by whom. What the edge allows is its operator's choice, made with `--edge-access` and said aloud.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

use mailboat_api::edge::{EdgeSyncConfigSpec, SyncerConfigSpec};
use mailboat_api::names::group;
use mailboat_api::places::{is_group_of_places, is_kind_of_places};
use mailboat_object::key::KindId;
use serde::{Deserialize, Serialize};

use crate::names::{BadName, check_namespace};

/// A rule of RBAC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// The API groups; the empty one is the core group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// The resources, or `resource/subresource`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Only objects of these names; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// What may be done.
    #[serde(default)]
    pub verbs: Vec<String>,
    /// Paths that are no resources.
    #[serde(default, rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

const RBAC: &str = "rbac.authorization.k8s.io";
const READ: [&str; 3] = ["get", "list", "watch"];
const WRITE: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// Groups whose objects decide who may do what in a workspace, or what it serves. Nothing is brought up into them, nor into
/// those that are about the place where they stand, whatever a configuration says.
const NEVER_UPSYNCED: [&str; 10] = [
    RBAC,
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apis.kcp.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "cache.kcp.io",
    "certificates.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];
/// The same, of the core group: accounts are what rights are bound to.
const NEVER_UPSYNCED_CORE: [&str; 1] = ["serviceaccounts"];

impl Rule {
    /// A rule for these verbs on these resources.
    pub fn new(groups: &[&str], resources: &[&str], verbs: &[&str]) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            api_groups: owned(groups),
            resources: owned(resources),
            verbs: owned(verbs),
            ..Self::default()
        }
    }

    /// The rule for one object alone.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.resource_names = vec![name.to_owned()];
        self
    }
}

/// What every syncer may in its mailbox: read it, report into it, return the status of these kinds, and renew its own token.
pub fn in_mailbox(account: &str, returned: &BTreeSet<KindId>) -> Vec<Rule> {
    let configurations =
        ["syncerconfigs", "edgesyncconfigs"].map(|resource| KindId::new(group::EDGE, resource));
    let status = |kind: &KindId| KindId::new(kind.group(), &format!("{}/status", kind.resource()));
    let written: BTreeSet<KindId> = configurations.iter().chain(returned).map(status).collect();
    let mut rules = vec![Rule::new(&["*"], &["*"], &READ)];
    rules.extend(by_group(&written, &["patch"]));
    rules.push(Rule::new(&[""], &["serviceaccounts/token"], &["create"]).named(account));
    rules
}

/// What it may besides, to bring these kinds up; nothing, if there are none.
pub fn for_upsync(kinds: &BTreeSet<KindId>) -> Vec<Rule> {
    let mut rules = by_group(kinds, &["create", "update", "patch", "delete"]);
    if !rules.is_empty() {
        // What comes up needs its namespace there. It is only ever made; who deletes one deletes what is in it.
        rules.push(Rule::new(&[""], &["namespaces"], &["create"]));
    }
    rules
}

/// A rule for each group of these kinds.
fn by_group(kinds: &BTreeSet<KindId>, verbs: &[&str]) -> Vec<Rule> {
    let groups: BTreeSet<&str> = kinds.iter().map(KindId::group).collect();
    let rule = |group: &str| {
        let of_group = kinds.iter().filter(|kind| kind.group() == group);
        Rule::new(&[group], &of_group.map(KindId::resource).collect::<Vec<_>>(), verbs)
    };
    groups.into_iter().map(rule).collect()
}

/// A kind that a mailbox serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// Group and plural.
    pub kind: KindId,
    /// Its name in CamelCase.
    pub kind_name: String,
    /// Its status is written apart from the rest.
    pub status: bool,
}

/// The kinds whose status comes back from the edge, as far as the mailbox serves them and as far as that is data there. What
/// a center carries later, it allows by itself.
pub fn returned_kinds(served: &[ServedKind]) -> BTreeSet<KindId> {
    let with_status = served.iter().filter(|one| one.status).map(|one| &one.kind);
    with_status.filter(|kind| may_be_returned(kind)).cloned().collect()
}

/// The kinds that configurations bring up, as far as the mailbox serves them and as far as they may be brought up.
pub fn upsynced_kinds<'a>(
    syncer_configs: impl IntoIterator<Item = &'a SyncerConfigSpec>,
    edge_sync_configs: impl IntoIterator<Item = &'a EdgeSyncConfigSpec>,
    served: &[ServedKind],
) -> BTreeSet<KindId> {
    let mut kinds = BTreeSet::new();
    for set in syncer_configs.into_iter().flat_map(|spec| &spec.upsync).map(|entry| &entry.set) {
        let named = |kind: &KindId| set.resources.iter().any(|word| word == "*" || word == kind.resource());
        let of_group = |kind: &KindId| set.api_group == "*" || set.api_group == kind.group();
        kinds
            .extend(served.iter().map(|one| &one.kind).filter(|kind| of_group(kind) && named(kind)).cloned());
    }
    for entry in edge_sync_configs.into_iter().flat_map(|spec| &spec.up_synced_resources) {
        let object = &entry.object;
        let meant = |one: &&ServedKind| {
            (object.kind == "*" || object.kind == one.kind_name)
                && (object.group == "*" || object.group == one.kind.group())
        };
        kinds.extend(served.iter().filter(meant).map(|one| one.kind.clone()));
    }
    kinds.retain(may_be_upsynced);
    kinds
}

/// Whether a kind, as a mailbox stores it, is data there: who may write it has no right over the mailbox itself.
pub fn may_be_upsynced(kind: &KindId) -> bool {
    let core = kind.group().is_empty() && NEVER_UPSYNCED_CORE.contains(&kind.resource());
    !(core || NEVER_UPSYNCED.contains(&kind.group()) || is_group_of_places(kind.group()))
}

/// Whether the status of a kind may come back into a mailbox. That of a namespace is the server's own.
fn may_be_returned(kind: &KindId) -> bool {
    let namespace = kind.group().is_empty() && kind.resource() == "namespaces";
    may_be_upsynced(kind) && !namespace && !is_kind_of_places(kind.group(), kind.resource())
}

/// What the edge's operator lets the syncer touch, as given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeAccessArgument {
    /// Everything.
    All,
    /// Everything in these namespaces.
    Namespaces(BTreeSet<String>),
    /// What the rules in this file say.
    RulesFile(PathBuf),
}

/// Why a text is no [`EdgeAccessArgument`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEdgeAccess {
    /// It is not of the right form.
    #[error("{0:?} is no access: write all, namespaces=a,b or rules=FILE")]
    Form(String),
    /// A namespace's name is wrong.
    #[error(transparent)]
    Namespace(#[from] BadName),
}

impl FromStr for EdgeAccessArgument {
    type Err = BadEdgeAccess;

    fn from_str(text: &str) -> Result<Self, BadEdgeAccess> {
        let form = || BadEdgeAccess::Form(text.to_owned());
        match text.split_once('=') {
            None if text == "all" => Ok(Self::All),
            Some(("namespaces", list)) if !list.is_empty() => {
                let names: BTreeSet<String> = list.split(',').map(str::to_owned).collect();
                names.iter().try_for_each(|name| check_namespace(name))?;
                Ok(Self::Namespaces(names))
            }
            Some(("rules", file)) if !file.is_empty() => Ok(Self::RulesFile(file.into())),
            _ => Err(form()),
        }
    }
}

/// What the edge's operator lets the syncer touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeAccess {
    /// Everything.
    All,
    /// Everything in these namespaces.
    Namespaces(BTreeSet<String>),
    /// What these rules say.
    Rules(Vec<Rule>),
}

impl EdgeAccess {
    /// Rules that hold in the whole cluster.
    pub fn everywhere(&self) -> Vec<Rule> {
        // Whatever may be written: where it goes, and what is served there, must be seen.
        let orientation = [
            Rule::new(&[""], &["namespaces"], &READ),
            Rule::new(&["apiextensions.k8s.io"], &["customresourcedefinitions"], &READ),
        ];
        match self {
            Self::All => whole(),
            Self::Namespaces(_) => orientation.into(),
            Self::Rules(rules) => orientation.into_iter().chain(rules.iter().cloned()).collect(),
        }
    }

    /// Rules that hold in each of these namespaces.
    pub fn in_namespaces(&self) -> Option<(&BTreeSet<String>, Vec<Rule>)> {
        match self {
            Self::Namespaces(names) => Some((names, whole())),
            Self::All | Self::Rules(_) => None,
        }
    }

    /// One sentence for whoever gives it.
    pub fn sentence(&self) -> String {
        match self {
            Self::All => {
                "the syncer may read and write everything at the edge (--edge-access all); narrow it with \
                          --edge-access namespaces=… or rules=FILE"
                    .to_owned()
            }
            Self::Namespaces(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!(
                    "the syncer may read and write at the edge in {} alone; make these namespaces there first",
                    names.join(", ")
                )
            }
            Self::Rules(rules) => {
                format!("the syncer may do at the edge what the {} given rules say", rules.len())
            }
        }
    }
}

/// Every object, each verb named. Roles hold rights that the syncer need not have itself: delivering them takes
/// `escalate` and `bind`.
fn whole() -> Vec<Rule> {
    vec![
        Rule::new(&["*"], &["*"], &WRITE),
        Rule::new(&[RBAC], &["clusterroles", "roles"], &["bind", "escalate"]),
    ]
}

/// Why a file has no rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRules {
    /// It is not YAML of the right form.
    #[error("it is neither a list of rules nor a Role or ClusterRole{0}")]
    Form(String),
    /// There is none.
    #[error("it holds no rule")]
    Empty,
    /// A rule allows nothing.
    #[error("its rule {0} names no verbs, or neither resources with their groups nor nonResourceURLs")]
    Vain(usize),
}

/// Rules from a file: a list of them, or documents that hold `rules` (Role, ClusterRole).
pub fn read_rules(text: &str) -> Result<Vec<Rule>, BadRules> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Document {
        List(Vec<Rule>),
        Role { rules: Vec<Rule> },
    }
    let place = |error: serde_saphyr::Error| {
        let line = error.location().map(|location| format!(" (line {})", location.line()));
        BadRules::Form(line.unwrap_or_default())
    };
    let documents: Vec<Document> = serde_saphyr::from_multiple(text).map_err(place)?;
    let rules: Vec<Rule> = documents
        .into_iter()
        .flat_map(|document| match document {
            Document::List(rules) | Document::Role { rules } => rules,
        })
        .collect();
    if rules.is_empty() {
        return Err(BadRules::Empty);
    }
    let vain = |rule: &Rule| {
        let resources = !rule.api_groups.is_empty() && !rule.resources.is_empty();
        rule.verbs.is_empty() || (!resources && rule.non_resource_urls.is_empty())
    };
    match rules.iter().position(vain) {
        Some(index) => Err(BadRules::Vain(index + 1)),
        None => Ok(rules),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn h44_in_a_mailbox_no_verb_is_a_wildcard_and_only_status_and_the_own_token_are_written() {
        let rules = in_mailbox("me", &returned_kinds(&served()));
        let writes: Vec<&Rule> = rules
            .iter()
            .filter(|rule| rule.verbs.iter().any(|verb| !READ.contains(&verb.as_str())))
            .collect();
        let written: Vec<String> = writes
            .iter()
            .map(|rule| format!("{:?} {:?} {:?}", rule.verbs, rule.api_groups, rule.resources))
            .collect();
        assert_eq!(
            written,
            [
                r#"["patch"] ["edge.kubestellar.io"] ["edgesyncconfigs/status", "syncerconfigs/status"]"#,
                r#"["patch"] ["wgpolicyk8s.io"] ["clusterpolicyreports/status", "policyreports/status"]"#,
                r#"["create"] [""] ["serviceaccounts/token"]"#,
            ]
        );
        assert_eq!(writes[2].resource_names, ["me"]);
        let every = rules.iter().cloned().chain(whole()).flat_map(|rule| rule.verbs);
        assert!(every.into_iter().all(|verb| verb != "*"));
    }

    #[test]
    fn h44_no_status_that_rules_a_workspace_is_written_there() {
        let ruling = [
            ("apis.kcp.io", "apibindings"),
            ("apis.kcp.io", "apiexports"),
            ("tenancy.kcp.io", "workspaces"),
            ("core.kcp.io", "logicalclusters"),
            ("topology.kcp.io", "partitions"),
            ("edge.kubestellar.io", "edgeplacements"),
            ("edge.kubestellar.io", "synctargets"),
            ("apiextensions.k8s.io", "customresourcedefinitions"),
            ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
            ("certificates.k8s.io", "certificatesigningrequests"),
            ("", "namespaces"),
            ("", "nodes"),
        ];
        let served = ruling.map(|(group, resource)| ServedKind {
            kind: KindId::new(group, resource),
            kind_name: "Thing".to_owned(),
            status: true,
        });
        assert_eq!(returned_kinds(&served), BTreeSet::new());
    }

    fn served() -> Vec<ServedKind> {
        [
            ("wgpolicyk8s.io", "policyreports", "PolicyReport"),
            ("wgpolicyk8s.io", "clusterpolicyreports", "ClusterPolicyReport"),
            ("", "configmaps", "ConfigMap"),
            ("", "serviceaccounts", "ServiceAccount"),
            (RBAC, "clusterroles", "ClusterRole"),
            ("apis.kcp.io", "apibindings", "APIBinding"),
            ("tenancy.kcp.io", "workspaces", "Workspace"),
            ("edge.kubestellar.io", "syncerconfigs", "SyncerConfig"),
            ("apiregistration.k8s.io", "apiservices", "APIService"),
        ]
        .map(|(group, resource, kind_name)| ServedKind {
            kind: KindId::new(group, resource),
            kind_name: kind_name.to_owned(),
            status: kind_name != "ConfigMap",
        })
        .into()
    }

    fn upsynced(syncer_config: serde_json::Value, edge_sync_config: serde_json::Value) -> Vec<String> {
        let syncer_config = serde_json::from_value(syncer_config).unwrap();
        let edge_sync_config = serde_json::from_value(edge_sync_config).unwrap();
        let kinds = upsynced_kinds([&syncer_config], [&edge_sync_config], &served());
        kinds.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_comes_up_may_be_written_and_what_rules_a_workspace_never_comes_up() {
        let upsync = |group: &str, resources: &[&str]| json!({ "upsync": [{ "apiGroup": group, "resources": resources, "namespaces": ["*"], "names": ["*"] }] });
        let none = json!({});
        assert_eq!(
            upsynced(upsync("wgpolicyk8s.io", &["policyreports"]), none.clone()),
            ["policyreports.wgpolicyk8s.io"]
        );
        assert_eq!(
            upsynced(upsync("wgpolicyk8s.io", &["*"]), none.clone()),
            ["clusterpolicyreports.wgpolicyk8s.io", "policyreports.wgpolicyk8s.io"]
        );
        assert_eq!(upsynced(upsync("not.served", &["things"]), none.clone()), Vec::<String>::new());
        for group in [RBAC, "apis.kcp.io", "tenancy.kcp.io", "edge.kubestellar.io", "apiregistration.k8s.io"]
        {
            assert_eq!(upsynced(upsync(group, &["*"]), none.clone()), Vec::<String>::new(), "{group}");
        }
        let everything = upsynced(upsync("*", &["*"]), none);
        assert_eq!(
            everything,
            ["clusterpolicyreports.wgpolicyk8s.io", "configmaps", "policyreports.wgpolicyk8s.io"]
        );
        let by_kind = json!({ "upSyncedResources": [
            { "group": "", "version": "v1", "kind": "ConfigMap", "name": "*", "namespace": "till" },
            { "group": RBAC, "version": "v1", "kind": "ClusterRole", "name": "admin" } ] });
        assert_eq!(upsynced(json!({}), by_kind), ["configmaps"]);
    }

    #[test]
    fn rules_for_what_comes_up_name_each_kind_and_let_namespaces_be_made() {
        assert_eq!(for_upsync(&BTreeSet::new()), []);
        let kinds = BTreeSet::from([KindId::new("", "configmaps"), KindId::new("x.io", "things")]);
        let rules = for_upsync(&kinds);
        let shown: Vec<String> = rules
            .iter()
            .map(|rule| format!("{:?} {:?} {:?}", rule.api_groups, rule.resources, rule.verbs))
            .collect();
        assert_eq!(
            shown,
            [
                r#"[""] ["configmaps"] ["create", "update", "patch", "delete"]"#,
                r#"["x.io"] ["things"] ["create", "update", "patch", "delete"]"#,
                r#"[""] ["namespaces"] ["create"]"#,
            ]
        );
    }

    #[test]
    fn an_access_is_read_or_refused_in_one_sentence() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        for (text, access) in [
            ("all", EdgeAccessArgument::All),
            ("namespaces=till,bar", EdgeAccessArgument::Namespaces(names(&["bar", "till"]))),
            ("rules=a=b.yaml", EdgeAccessArgument::RulesFile("a=b.yaml".into())),
        ] {
            assert_eq!(text.parse(), Ok(access), "{text}");
        }
        for text in ["", "none", "all=", "namespaces=", "namespaces=a,,b", "namespaces=A", "rules="] {
            assert!(text.parse::<EdgeAccessArgument>().is_err(), "{text}");
        }
    }

    #[test]
    fn rules_come_from_a_list_or_from_roles() {
        let rule = "{apiGroups: [''], resources: [configmaps], verbs: [get]}";
        let role = format!("kind: ClusterRole\nmetadata: {{name: x}}\nrules: [{rule}, {rule}]");
        for (text, count) in
            [(format!("- {rule}"), 1), (role.clone(), 2), (format!("{role}\n---\n- {rule}"), 3)]
        {
            let rules = read_rules(&text).unwrap_or_else(|bad| panic!("{text}: {bad}"));
            assert_eq!(rules.len(), count, "{text}");
            assert_eq!(rules[0], Rule::new(&[""], &["configmaps"], &["get"]));
        }
        for (text, words) in [
            ("", "no rule"),
            ("[]", "no rule"),
            ("just words", "neither"),
            ("- {apiGroup: [''], resources: [configmaps], verbs: [get]}", "neither"),
            ("- {apiGroups: [''], resources: [configmaps]}", "rule 1 names no verbs"),
            ("- {resources: [configmaps], verbs: [get]}", "rule 1 names no verbs"),
            ("a: [", "neither"),
        ] {
            let told = read_rules(text).expect_err(text).to_string();
            assert!(told.contains(words), "{text}: {told}");
        }
    }

    #[test]
    fn a_narrow_access_leaves_the_rest_of_the_cluster_alone() {
        let access = EdgeAccess::Namespaces(BTreeSet::from(["till".to_owned()]));
        assert!(
            access
                .everywhere()
                .iter()
                .all(|rule| rule.verbs.iter().all(|verb| READ.contains(&verb.as_str())))
        );
        assert!(!access.everywhere().iter().any(|rule| rule.resources.contains(&"*".to_owned())));
        assert!(access.in_namespaces().is_some());
        assert!(EdgeAccess::All.in_namespaces().is_none());
    }
}
