//! Which groups, versions and kinds there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use mailboat_machinery::{Kind, Origin};
use mailboat_object::KindId;
use serde_json::{Value, json};

/// What can be done to objects of nearly all kinds, in the order in which servers say it.
const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The same for custom resources, which servers say in another order.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The kinds of one place by group and version, most important first.
pub(crate) struct Discovery {
    groups: Vec<Group>,
    is_view: bool,
}

struct Group {
    name: String,
    versions: Vec<GroupVersion>,
}

struct GroupVersion {
    name: String,
    resources: Vec<Resource>,
}

/// A kind as discovery tells it. Some are never stored: they are questions.
#[derive(Clone)]
struct Resource {
    name: String,
    singular: String,
    kind: String,
    namespaced: bool,
    verbs: Vec<&'static str>,
    /// By which clients see that objects are stored in another version now.
    storage: Option<String>,
    short: Vec<String>,
    categories: Vec<String>,
    parts: Vec<Part>,
    is_custom: bool,
}

/// A subresource; its kind may be of another group.
#[derive(Clone)]
struct Part {
    name: &'static str,
    group: String,
    version: String,
    kind: String,
    verbs: &'static [&'static str],
}

/// Kubernetes' own groups, in the order in which servers name them.
const ORDER: [&str; 21] = [
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
];

/// Those of them that kcp serves by itself, in its order.
const KCP_ORDER: [&str; 9] = [
    "",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "rbac.authorization.k8s.io",
    "admissionregistration.k8s.io",
    "events.k8s.io",
    "apiextensions.k8s.io",
];

/// Questions to the server about users and rights: created, answered, never stored.
pub(crate) const REVIEWS: [(&str, &str, &str, bool); 6] = [
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview", false),
    ("authentication.k8s.io", "tokenreviews", "TokenReview", false),
    ("authorization.k8s.io", "localsubjectaccessreviews", "LocalSubjectAccessReview", true),
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", false),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", false),
    ("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", false),
];

/// What a place that has machines serves besides and does not store. By name: singular, kind, in namespaces, verbs, what users
/// may type.
type Unstored =
    (&'static str, &'static str, &'static str, bool, &'static [&'static str], &'static [&'static str]);
const UNSTORED: [Unstored; 2] = [
    ("bindings", "binding", "Binding", true, &["create"], &[]),
    ("componentstatuses", "componentstatus", "ComponentStatus", false, &["get", "list"], &["cs"]),
];

/// What is written through a subresource that is an object, or a part of one.
const WRITTEN: &[&str] = &["get", "patch", "update"];
/// What opens a stream to a machine.
const STREAMED: &[&str] = &["create", "get"];
/// What hands a request on to a machine.
const FORWARDED: &[&str] = &["create", "delete", "get", "patch", "update"];

/// The subresources of kinds that servers know by themselves, besides status and scale: group and resource, name, the kind of
/// what is sent and its group and version where these are others, and the verbs.
type NativePart = (
    (&'static str, &'static str),
    &'static str,
    (&'static str, &'static str, &'static str),
    &'static [&'static str],
);
const PARTS: &[NativePart] = &[
    (("", "namespaces"), "finalize", ("", "", "Namespace"), &["update"]),
    (("", "nodes"), "proxy", ("", "", "NodeProxyOptions"), FORWARDED),
    (("", "pods"), "attach", ("", "", "PodAttachOptions"), STREAMED),
    (("", "pods"), "binding", ("", "", "Binding"), &["create"]),
    (("", "pods"), "ephemeralcontainers", ("", "", "Pod"), WRITTEN),
    (("", "pods"), "eviction", ("policy", "v1", "Eviction"), &["create"]),
    (("", "pods"), "exec", ("", "", "PodExecOptions"), STREAMED),
    (("", "pods"), "log", ("", "", "Pod"), &["get"]),
    (("", "pods"), "portforward", ("", "", "PodPortForwardOptions"), STREAMED),
    (("", "pods"), "proxy", ("", "", "PodProxyOptions"), FORWARDED),
    (("", "pods"), "resize", ("", "", "Pod"), WRITTEN),
    (("", "serviceaccounts"), "token", ("authentication.k8s.io", "v1", "TokenRequest"), &["create"]),
    (("", "services"), "proxy", ("", "", "ServiceProxyOptions"), FORWARDED),
    (
        ("certificates.k8s.io", "certificatesigningrequests"),
        "approval",
        ("", "", "CertificateSigningRequest"),
        WRITTEN,
    ),
];

/// Who keeps the objects: kcp's servers name a kind's home as well when they say in which form.
#[derive(Clone, Copy)]
pub(crate) enum Keeper<'c> {
    /// One plain cluster.
    Cluster,
    /// A workspace, by its cluster.
    Workspace(&'c str),
    /// The view of an export, by the cluster in which this is.
    View(&'c str),
}

impl Discovery {
    /// What is served when these kinds are.
    pub(crate) fn of<'k>(kinds: impl IntoIterator<Item = &'k Arc<Kind>>, keeper: Keeper<'_>) -> Self {
        let mut groups: BTreeMap<String, BTreeMap<String, Vec<Resource>>> = BTreeMap::new();
        let mut has_machines = false;
        for kind in kinds {
            has_machines |= kind.id == KindId::new("", "nodes") && kind.origin == Origin::Native;
            let group = groups.entry(kind.id.group().to_owned()).or_default();
            for version in &kind.versions {
                group.entry(version.name.to_string()).or_default().push(Resource::stored(
                    kind,
                    &version.name,
                    keeper,
                ));
            }
        }
        for (group, resource, kind, namespaced) in REVIEWS {
            let group = groups.entry(group.to_owned()).or_default();
            group.entry("v1".to_owned()).or_default().push(Resource::review(resource, kind, namespaced));
        }
        if let Some(core) = groups.get_mut("").and_then(|group| group.get_mut("v1")).filter(|_| has_machines)
        {
            core.extend(UNSTORED.iter().map(Resource::unstored));
            core.sort_by(|one, other| one.name.cmp(&other.name));
        }
        let mut groups: Vec<Group> = groups
            .into_iter()
            .map(|(name, versions)| {
                let mut versions: Vec<GroupVersion> =
                    versions.into_iter().map(|(name, resources)| GroupVersion { name, resources }).collect();
                versions.sort_by_key(|version| std::cmp::Reverse(priority(&version.name)));
                Group { name, versions }
            })
            .collect();
        // Clients take a name that several groups have from the first: Kubernetes' own come before all others.
        let order: &[&str] = match keeper {
            Keeper::Cluster => &ORDER,
            Keeper::Workspace(_) | Keeper::View(_) => &KCP_ORDER,
        };
        groups.sort_by_key(|group| {
            let known = order.iter().position(|known| *known == group.name);
            (known.unwrap_or(order.len()), !group.name.ends_with(".k8s.io"))
        });
        Self { groups, is_view: false }
    }

    /// The same, seen through a view: nobody is asked there who others are, or what they may do.
    pub(crate) fn in_view(mut self) -> Self {
        self.groups.retain(|group| !REVIEWS.iter().any(|(of, ..)| *of == group.name));
        self.is_view = true;
        self
    }

    fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    /// `/api`.
    pub(crate) fn core_versions(&self, address: &str) -> Value {
        let versions: Vec<&str> = self
            .group("")
            .into_iter()
            .flat_map(|group| &group.versions)
            .map(|version| &*version.name)
            .collect();
        // A view says that it has the core group, whether or not there is anything in it.
        let versions = if self.is_view { vec!["v1"] } else { versions };
        json!({ "kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": reached(address) })
    }

    /// `/apis`. Where they are reached is said of a workspace's own groups; none: it is not.
    pub(crate) fn groups(&self, address: Option<&str>) -> Value {
        let shown = |group: &Group| {
            let mut shown = group.to_json();
            if let Some(address) = address.filter(|_| KCP_ORDER.contains(&group.name.as_str())) {
                shown["serverAddressByClientCIDRs"] = reached(address);
            }
            shown
        };
        let groups: Vec<Value> =
            self.groups.iter().filter(|group| !group.name.is_empty()).map(shown).collect();
        json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
    }

    /// `/apis/GROUP`.
    pub(crate) fn one_group(&self, name: &str) -> Option<Value> {
        let mut group = self.group(name)?.to_json();
        group["kind"] = "APIGroup".into();
        group["apiVersion"] = "v1".into();
        Some(group)
    }

    /// `/apis/GROUP/VERSION`.
    pub(crate) fn kinds(&self, group: &str, version: &str) -> Option<Value> {
        let resources = &self.group(group)?.versions.iter().find(|found| found.name == version)?.resources;
        let resources: Vec<Value> = resources.iter().flat_map(Resource::lines).collect();
        let mut list = json!({
            "kind": "APIResourceList", "groupVersion": joined(group, version), "resources": resources,
        });
        // Of the core group nobody says it.
        if !group.is_empty() {
            list["apiVersion"] = "v1".into();
        }
        Some(list)
    }

    /// Everything at once, of the core group or of all others.
    pub(crate) fn aggregated(&self, core: bool) -> Value {
        let items: Vec<Value> =
            self.groups.iter().filter(|group| group.name.is_empty() == core).map(Group::aggregated).collect();
        json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
        })
    }

    /// The groups and versions, each as the path below which its kinds stand.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for group in &self.groups {
            for version in &group.versions {
                paths.push(if group.name.is_empty() {
                    format!("api/{}", version.name)
                } else {
                    format!("apis/{}/{}", group.name, version.name)
                });
            }
        }
        paths
    }
}

/// Where everybody reaches the server.
fn reached(address: &str) -> Value {
    json!([{ "clientCIDR": "0.0.0.0/0", "serverAddress": address }])
}

impl Group {
    fn to_json(&self) -> Value {
        let version = |version: &GroupVersion| json!({ "groupVersion": joined(&self.name, &version.name), "version": version.name });
        let versions: Vec<Value> = self.versions.iter().map(version).collect();
        json!({ "name": self.name, "preferredVersion": versions.first(), "versions": versions })
    }

    fn aggregated(&self) -> Value {
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|version| {
                let resources: Vec<Value> = version
                    .resources
                    .iter()
                    .map(|resource| resource.aggregated(&self.name, &version.name))
                    .collect();
                json!({ "version": version.name, "resources": resources, "freshness": "Current" })
            })
            .collect();
        let metadata = if self.name.is_empty() { json!({}) } else { json!({ "name": self.name }) };
        json!({ "metadata": metadata, "versions": versions })
    }
}

impl Resource {
    fn stored(kind: &Kind, version: &str, keeper: Keeper<'_>) -> Self {
        let mut parts = Vec::new();
        let part = |name, group: &str, version: &str, kind: &str, verbs| Part {
            name,
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            verbs,
        };
        let custom = kind.origin == Origin::Custom;
        if kind.rules.scale.is_some() {
            parts.push(part("scale", "autoscaling", "v1", "Scale", &["get", "patch", "update"]));
        }
        if kind.rules.status.is_some() {
            parts.push(part("status", kind.id.group(), version, &kind.name, &["get", "patch", "update"]));
        }
        if custom {
            parts.reverse();
        }
        let (group, resource) = (kind.id.group(), kind.id.resource());
        if !custom {
            for (_, name, (group, version, kind), verbs) in
                PARTS.iter().filter(|(of, ..)| *of == (group, resource))
            {
                parts.push(part(name, group, version, kind, verbs));
            }
            parts.sort_by_key(|part| part.name);
        }
        let texts = |names: &[mailboat_object::Name]| names.iter().map(ToString::to_string).collect();
        let whole = group.is_empty() && resource == "namespaces";
        let native_verbs = VERBS.into_iter().filter(|verb| !whole || *verb != "deletecollection");
        Self {
            name: resource.to_owned(),
            singular: kind.naming.singular.to_string(),
            kind: kind.name.to_string(),
            namespaced: kind.namespaced,
            verbs: if custom { CUSTOM_VERBS.into() } else { native_verbs.collect() },
            storage: Some(storage_hash(kind, version, keeper)),
            short: texts(&kind.naming.short),
            categories: texts(&kind.naming.categories),
            parts,
            is_custom: custom,
        }
    }

    fn review(resource: &str, kind: &str, namespaced: bool) -> Self {
        Self {
            name: resource.to_owned(),
            singular: kind.to_lowercase(),
            kind: kind.to_owned(),
            namespaced,
            verbs: vec!["create"],
            storage: None,
            short: Vec::new(),
            categories: Vec::new(),
            parts: Vec::new(),
            is_custom: false,
        }
    }

    fn unstored((resource, singular, kind, namespaced, verbs, short): &Unstored) -> Self {
        Self {
            singular: (*singular).to_owned(),
            verbs: verbs.to_vec(),
            short: short.iter().map(ToString::to_string).collect(),
            ..Self::review(resource, kind, *namespaced)
        }
    }

    fn lines(&self) -> Vec<Value> {
        let mut line = json!({
            "name": self.name, "singularName": self.singular, "namespaced": self.namespaced, "kind": self.kind,
            "verbs": self.verbs,
        });
        set_texts(&mut line, "shortNames", &self.short);
        set_texts(&mut line, "categories", &self.categories);
        if let Some(hash) = &self.storage {
            line["storageVersionHash"] = hash.as_str().into();
        }
        let mut lines = vec![line];
        for part in &self.parts {
            let mut line = json!({
                "name": format!("{}/{}", self.name, part.name), "singularName": "",
                "namespaced": self.namespaced, "kind": part.kind, "verbs": part.verbs,
            });
            if part.kind != self.kind && !part.version.is_empty() {
                line["group"] = part.group.as_str().into();
                line["version"] = part.version.as_str().into();
            }
            lines.push(line);
        }
        lines
    }

    /// The kind of an answer. Servers say where it is from only if that is somewhere else, or the kind somebody's own.
    fn response(&self, group: &str, version: &str, kind: &str) -> Value {
        let (group, version) = if kind == self.kind && !self.is_custom { ("", "") } else { (group, version) };
        json!({ "group": group, "version": version, "kind": kind })
    }

    fn aggregated(&self, group: &str, version: &str) -> Value {
        let scope = if self.namespaced { "Namespaced" } else { "Cluster" };
        let mut told = json!({
            "resource": self.name,
            "responseKind": self.response(group, version, &self.kind),
            "scope": scope, "singularResource": self.singular, "verbs": self.verbs,
        });
        set_texts(&mut told, "shortNames", &self.short);
        set_texts(&mut told, "categories", &self.categories);
        if !self.parts.is_empty() {
            let part = |part: &Part| {
                json!({
                    "subresource": part.name, "verbs": part.verbs,
                    "responseKind": self.response(&part.group, &part.version, &part.kind),
                })
            };
            told["subresources"] = self.parts.iter().map(part).collect();
        }
        told
    }
}

/// By which clients see that objects are kept in another form than before.
fn storage_hash(kind: &Kind, version: &str, keeper: Keeper<'_>) -> String {
    use base64::Engine as _;
    use sha2::Digest as _;
    let group = kind.kept_as.as_ref().unwrap_or(&kind.id).group();
    let kept = match kind.versions.first() {
        // Real servers keep definitions as older ones read them.
        _ if kind.id == KindId::new("apiextensions.k8s.io", "customresourcedefinitions") => "v1beta1",
        first => first.map_or("", |version| version.name.as_str()),
    };
    let name = &kind.name;
    let text = match keeper {
        Keeper::Cluster => format!("{group}/{kept}/{name}"),
        Keeper::Workspace(_) if kind.origin == Origin::Native => format!("/{group}/{kept}/{name}"),
        Keeper::Workspace(own) => {
            let home = match group {
                _ if kind.definition.is_some() => own,
                "apis.kcp.io" | "core.kcp.io" => "system:system-crds",
                _ => "system:bound-crds",
            };
            format!("{home}/{}/{kept}/{name}", joined(group, kept))
        }
        Keeper::View(home) => format!("{home}/{group}/{version}/{name}"),
    };
    base64::prelude::BASE64_STANDARD.encode(&sha2::Sha256::digest(text)[..8])
}

fn set_texts(value: &mut Value, member: &str, texts: &[String]) {
    if !texts.is_empty() {
        value[member] = texts.iter().map(String::as_str).collect();
    }
}

fn joined(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// How versions are ordered: `v2` before `v1` before `v1beta2` before `v1alpha1` before everything else.
fn priority(version: &str) -> (u8, u64, u64) {
    let read = || -> Option<(u8, u64, u64)> {
        let rest = version.strip_prefix('v')?;
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..digits].parse().ok()?;
        let rest = &rest[digits..];
        if rest.is_empty() {
            return Some((3, major, 0));
        }
        let (stage, minor) = match rest.strip_prefix("beta") {
            Some(minor) => (2, minor),
            None => (1, rest.strip_prefix("alpha")?),
        };
        Some((stage, major, minor.parse().ok()?))
    };
    read().unwrap_or((0, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_in_the_order_of_their_promise() {
        let mut versions = ["v1alpha1", "v10", "v1beta2", "v2", "foo", "v1", "v2beta1"];
        versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]);
    }

    #[test]
    fn both_forms_tell_the_same() {
        let kinds = crate::catalog::kinds(mailboat_machinery::Flavor::Kubernetes).unwrap();
        let discovery = Discovery::of(&kinds, Keeper::Cluster);
        let aggregated = discovery.aggregated(false);
        for group in aggregated["items"].as_array().unwrap() {
            let name = group["metadata"]["name"].as_str().unwrap();
            for version in group["versions"].as_array().unwrap() {
                let version_name = version["version"].as_str().unwrap();
                let listed = discovery.kinds(name, version_name).unwrap();
                let listed: Vec<&str> = listed["resources"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|line| line["name"].as_str().unwrap())
                    .filter(|name| !name.contains('/'))
                    .collect();
                let told: Vec<&str> = version["resources"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|resource| resource["resource"].as_str().unwrap())
                    .collect();
                assert_eq!(listed, told, "{name}/{version_name}");
            }
        }
        assert_eq!(discovery.groups(None)["groups"][1]["name"], "apps");
    }
}
