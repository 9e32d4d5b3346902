//! An edge in an inventory workspace: a SyncTarget, and the Location that leads to it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mailboat_api::names::{annotation, export, group, label};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use serde_json::{Value, json};

use crate::manifest::KUBECONFIG_KEY;
use crate::names::{BadName, check_label, check_object_name};

const RBAC: &str = "rbac.authorization.k8s.io";
/// The namespace of Secrets that hold edges' kubeconfigs.
const KEPT_IN: &str = "default";

/// An edge as somebody wants it described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    name: String,
    labels: BTreeMap<String, String>,
}

/// Why an edge cannot be described so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDescription {
    /// A name or label that no server takes.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A name that older tools give to a Location of their own.
    #[error(
        "an edge cannot be called \"default\": older tools give this name to a Location that leads to every edge"
    )]
    Default,
    /// The label by which a Location finds its SyncTarget.
    #[error(
        "the label {0:?} is set to the edge's own name, by which its Location finds it; choose another key"
    )]
    Id(&'static str),
    /// Nothing to choose it by.
    #[error("give the edge a label at least, as key=value: placements choose edges by labels")]
    NoLabels,
}

impl Described {
    /// Checks a name and labels.
    pub fn new(name: &str, labels: BTreeMap<String, String>) -> Result<Self, BadDescription> {
        check_object_name(name, "an edge")?;
        if name == "default" {
            return Err(BadDescription::Default);
        }
        // The name is a label's value as well.
        check_label(label::SYNC_TARGET_ID, name)?;
        if labels.contains_key(label::SYNC_TARGET_ID) {
            return Err(BadDescription::Id(label::SYNC_TARGET_ID));
        }
        if labels.is_empty() {
            return Err(BadDescription::NoLabels);
        }
        for (key, value) in &labels {
            check_label(key, value)?;
        }
        Ok(Self { name: name.to_owned(), labels })
    }

    /// The SyncTarget.
    pub fn sync_target(&self) -> Value {
        let mut labels = self.labels.clone();
        labels.insert(label::SYNC_TARGET_ID.to_owned(), self.name.clone());
        json!({
            "apiVersion": api_version(),
            "kind": "SyncTarget",
            "metadata": { "name": self.name, "labels": labels },
            "spec": {},
        })
    }

    /// The Location.
    pub fn location(&self) -> Value {
        json!({
            "apiVersion": api_version(),
            "kind": "Location",
            "metadata": { "name": self.name, "labels": self.labels },
            "spec": {
                "resource": { "group": group::EDGE, "version": group::EDGE_VERSION, "resource": "synctargets" },
                "instanceSelector": { "matchLabels": { label::SYNC_TARGET_ID: self.name } },
            },
        })
    }

    /// The merge patch that gives an object that is there the labels of this one, and leaves it its others; `None` if
    /// it has them.
    pub fn labels_missing_from(&self, found: &Value, wanted: &Value) -> Option<Value> {
        let wanted = wanted["metadata"]["labels"].as_object()?;
        let missing: serde_json::Map<String, Value> = wanted
            .iter()
            .filter(|(key, value)| found["metadata"]["labels"].get(*key) != Some(value))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        (!missing.is_empty()).then(|| json!({ "metadata": { "labels": missing } }))
    }
}

/// The APIBinding that an inventory or workload workspace needs, under the name that it has there.
pub fn binding(name: &str, provider: &str, export_name: &str) -> Value {
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2",
        "kind": "APIBinding",
        "metadata": { "name": name },
        "spec": { "reference": { "export": { "path": provider, "name": export_name } } },
    })
}

/// The bindings of a workload workspace, with the kinds of Kubernetes or without.
pub fn workload_bindings(with_kube: bool) -> Vec<(&'static str, &'static str)> {
    let mut bindings = vec![(export::BINDING_IN_WORKLOAD_WORKSPACE, export::EDGE)];
    if with_kube {
        bindings.extend([(COMPUTE_BINDING, export::COMPUTE), (DENATURED_BINDING, export::DENATURED)]);
    }
    bindings
}

/// The binding of Kubernetes' own kinds.
pub const COMPUTE_BINDING: &str = "bind-kubernetes";
/// The binding of those that must not take effect in the center.
pub const DENATURED_BINDING: &str = "bind-denatured";

/// What lets the center say in an inventory workspace how its edges are: their SyncTargets and Locations it reads through
/// its own exports, wherever they are.
pub fn center_rights_in_inventory() -> [Value; 2] {
    use mailboat_api::names::object::CENTER_GROUP;
    let groups = [group::EDGE, group::WORKLOAD, group::SCHEDULING];
    let rules = json!([
        { "nonResourceURLs": ["/"], "verbs": ["access"] },
        { "apiGroups": groups, "resources": ["locations", "synctargets"], "verbs": ["get", "list", "watch"] },
        { "apiGroups": groups, "resources": ["locations/status", "synctargets/status"], "verbs": ["get", "patch", "update"] },
        // Beside each SyncTarget stands the account by which a syncer may report on it.
        { "apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["get", "list", "watch", "create", "patch"] },
        { "apiGroups": [RBAC], "resources": ["clusterroles", "clusterrolebindings"],
          "verbs": ["get", "list", "watch", "create", "patch"] },
        { "apiGroups": [""], "resources": ["events"], "verbs": ["create"] },
        // Whether a workspace, or what serves a kind in it, is there at all is asked before anything is believed gone.
        { "apiGroups": ["apis.kcp.io", "core.kcp.io", "apiextensions.k8s.io"],
          "resources": ["apibindings", "logicalclusters", "customresourcedefinitions"], "verbs": ["get", "list", "watch"] },
    ]);
    role_and_binding(&format!("{CENTER_GROUP}:inventory"), &rules)
}

/// An edge's kubeconfig, kept beside its SyncTarget for the center to install the syncer with: the Secret, and what lets the
/// center read this one Secret and no other.
pub struct KeptKubeconfig {
    name: String,
}

impl KeptKubeconfig {
    /// The one of the edge with this name.
    pub fn of(edge: &str) -> Self {
        Self { name: format!("{edge}-kubeconfig") }
    }

    /// What the SyncTarget says of it, as an annotation.
    pub fn annotation(&self) -> (&'static str, String) {
        (annotation::KUBECONFIG_SECRET, format!("{KEPT_IN}/{}", self.name))
    }

    /// Where its objects stand: the Secret, the Role and the RoleBinding.
    pub fn keys(&self) -> [Key; 3] {
        [("", "secrets"), (RBAC, "roles"), (RBAC, "rolebindings")].map(|(group, resource)| Key {
            cluster: ClusterId::default(),
            kind: KindId::new(group, resource),
            namespace: Name::new(KEPT_IN),
            name: Name::new(&self.name),
        })
    }

    /// The objects, in the order of their keys.
    pub fn objects(&self, kubeconfig: &str) -> [Value; 3] {
        use mailboat_api::names::object::CENTER_GROUP;
        let metadata =
            json!({ "namespace": KEPT_IN, "name": self.name, "labels": { label::SYSTEM: "true" } });
        let rule = json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": [self.name], "verbs": ["get"] });
        [
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque",
                    "data": { KUBECONFIG_KEY: STANDARD.encode(kubeconfig) } }),
            json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata, "rules": [rule] }),
            json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata,
                    "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": self.name },
                    "subjects": [{ "apiGroup": RBAC, "kind": "Group", "name": CENTER_GROUP }] }),
        ]
    }

    /// Whether an object with one of its names is one of it.
    pub fn is_of_it(found: &Value) -> bool {
        found["metadata"]["labels"][label::SYSTEM] == "true"
    }
}

/// What lets the center read a workload workspace, return status and counts to what it reads, and keep there what it says of
/// placements.
///
/// What is selected may be of any kind, the workspace's own among them, so that what is written on it cannot be named; RBAC
/// knows no exceptions either. Whatever the center makes, and takes away, is named.
pub fn center_rights() -> [Value; 2] {
    use mailboat_api::names::object::CENTER_GROUP;
    let rules = json!([
        { "nonResourceURLs": ["/"], "verbs": ["access"] },
        { "apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch", "patch"] },
        { "apiGroups": [group::EDGE], "resources": ["singleplacementslices", "statussummaries"], "verbs": ["create", "delete"] },
        { "apiGroups": [""], "resources": ["events"], "verbs": ["create"] },
        // What the workspace is bound to of its own exports, the mailboxes are bound to as well.
        { "apiGroups": ["apis.kcp.io"], "resources": ["apiexports"], "verbs": ["bind"] },
    ]);
    role_and_binding(CENTER_GROUP, &rules)
}

/// What is to be written so that one of the center's rights is as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutRight {
    /// It is not there: make it.
    Make,
    /// It says something else: lay this merge patch over it. A newer center may need more, and somebody may have changed to
    /// whom it is given.
    Patch(Value),
}

/// A ClusterRoleBinding that has the name of the center's, and gives another role. No server lets that be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it gives another role than the center's, and cannot be changed: delete it")]
pub struct OtherRole;

/// What is to be written of one of the center's rights, given what is there; `None`: nothing.
pub fn put_right(found: Option<&Value>, wanted: &Value) -> Result<Option<PutRight>, OtherRole> {
    let Some(found) = found else { return Ok(Some(PutRight::Make)) };
    if found["roleRef"] != wanted["roleRef"] {
        return Err(OtherRole);
    }
    let differs = |part: &&str| found[*part] != wanted[*part];
    let part = ["rules", "subjects"].into_iter().find(differs);
    Ok(part.map(|part| PutRight::Patch(json!({ part: wanted[part] }))))
}

/// A ClusterRole, and what gives it to the center.
fn role_and_binding(name: &str, rules: &Value) -> [Value; 2] {
    use mailboat_api::names::object::CENTER_GROUP;
    let api_version = format!("{RBAC}/v1");
    [
        json!({ "apiVersion": api_version, "kind": "ClusterRole", "metadata": { "name": name }, "rules": rules }),
        json!({
            "apiVersion": api_version,
            "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": RBAC, "kind": "Group", "name": CENTER_GROUP }],
        }),
    ]
}

fn api_version() -> String {
    format!("{}/{}", group::EDGE, group::EDGE_VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_edge_is_a_sync_target_and_the_location_that_finds_it() {
        let edge = Described::new("guilder", labels(&[("env", "prod")])).unwrap();
        let (target, location) = (edge.sync_target(), edge.location());
        assert_eq!(target["metadata"]["labels"], json!({ "id": "guilder", "env": "prod" }));
        assert_eq!(location["metadata"]["labels"], json!({ "env": "prod" }));
        assert_eq!(location["spec"]["instanceSelector"], json!({ "matchLabels": { "id": "guilder" } }));
    }

    #[test]
    fn labels_are_added_and_overwritten_and_never_taken_away() {
        let edge = Described::new("guilder", labels(&[("env", "prod"), ("rack", "7")])).unwrap();
        let found = json!({ "metadata": { "labels": { "env": "dev", "rack": "7", "mine": "x" } } });
        let patch = edge.labels_missing_from(&found, &edge.location()).unwrap();
        assert_eq!(patch, json!({ "metadata": { "labels": { "env": "prod" } } }));
        assert_eq!(edge.labels_missing_from(&edge.location(), &edge.location()), None);
    }

    #[test]
    fn the_center_may_read_the_one_secret_that_the_sync_target_names() {
        let kept = KeptKubeconfig::of("guilder");
        let [secret, role, binding] = kept.objects("text");
        let (_, named) = kept.annotation();
        assert_eq!(named, "default/guilder-kubeconfig");
        assert_eq!(secret["data"]["kubeconfig"], STANDARD.encode("text"));
        let rule = json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["guilder-kubeconfig"], "verbs": ["get"] });
        assert_eq!(role["rules"], json!([rule]));
        assert_eq!(binding["subjects"][0]["name"], "mailboat:center");
        for (key, object) in kept.keys().iter().zip([&secret, &role, &binding]) {
            assert_eq!(object["metadata"]["name"], key.name.as_str());
            assert!(KeptKubeconfig::is_of_it(object));
        }
    }

    #[test]
    fn rights_are_made_where_they_are_missing_and_put_right_where_they_differ() {
        let [role, binding] = center_rights();
        assert_eq!(put_right(None, &role), Ok(Some(PutRight::Make)));
        for wanted in [&role, &binding] {
            let mut found = wanted.clone();
            found["metadata"]["resourceVersion"] = "7".into();
            assert_eq!(put_right(Some(&found), wanted), Ok(None));
        }
        let (mut older, mut given) = (role.clone(), binding.clone());
        older["rules"].as_array_mut().unwrap().pop();
        assert_eq!(
            put_right(Some(&older), &role),
            Ok(Some(PutRight::Patch(json!({ "rules": role["rules"] }))))
        );
        given["subjects"][0]["name"] = "somebody".into();
        let subjects = json!({ "subjects": binding["subjects"] });
        assert_eq!(put_right(Some(&given), &binding), Ok(Some(PutRight::Patch(subjects))));
        let mut other = binding.clone();
        other["roleRef"]["name"] = "cluster-admin".into();
        assert_eq!(put_right(Some(&other), &binding), Err(OtherRole));
    }

    #[test]
    fn the_center_makes_and_deletes_in_a_workload_workspace_what_is_its_own_and_nothing_else() {
        let [role, _] = center_rights();
        let rules = role["rules"].as_array().unwrap().clone();
        let writes = |rule: &Value| {
            let verbs = rule["verbs"].as_array().unwrap();
            let made = |verb: &&Value| {
                ["create", "update", "delete", "deletecollection", "*"].contains(&verb.as_str().unwrap())
            };
            verbs.iter().any(|verb| made(&verb))
        };
        let made: Vec<&Value> =
            rules.iter().filter(|rule| writes(rule)).map(|rule| &rule["resources"]).collect();
        assert_eq!(made, [&json!(["singleplacementslices", "statussummaries"]), &json!(["events"])]);
        // Where an older `ensure` gave more, the next takes it back.
        let mut older = role.clone();
        older["rules"][2]["resources"] = json!(["*"]);
        older["rules"][2]["verbs"] = json!(["create", "update", "delete"]);
        let taken_back = PutRight::Patch(json!({ "rules": role["rules"] }));
        assert_eq!(put_right(Some(&older), &role), Ok(Some(taken_back)));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let long = "a".repeat(64);
        for (name, pairs) in [
            ("Guilder", &[("env", "prod")][..]),
            ("default", &[("env", "prod")]),
            ("guilder", &[]),
            ("guilder", &[("id", "x")]),
            ("guilder", &[("env", "not a value")]),
            ("guilder", &[("env", &long)]),
            (&long, &[("env", "prod")]),
        ] {
            let told = Described::new(name, labels(pairs)).expect_err(name).to_string();
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }
}
