//! What a server serves: kinds, their versions and what can be done with them, read from discovery answers.
//!
//! Everything here is a function of bytes. `discovery` asks for them.

use std::collections::BTreeMap;
use std::fmt;

use mailboat_object::key::{KindId, Name};
use serde::Deserialize;

use crate::nullable::null_is_empty;

/// One kind at one version, as a server serves it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Served {
    /// Group and resource.
    pub kind: KindId,
    /// The version, for example `v1`.
    pub version: Name,
    /// The name of the kind, for example `Deployment`.
    pub kind_name: Name,
    /// The singular resource name, for example `deployment`; some servers leave it empty.
    pub singular: Name,
    /// Objects of this kind live in namespaces.
    pub namespaced: bool,
    /// It has a `status` subresource.
    pub status: bool,
    /// It has a `scale` subresource.
    pub scale: bool,
    /// What can be done with it.
    pub verbs: Verbs,
    /// Short names, for example `deploy`.
    pub short_names: Box<[Name]>,
}

impl Served {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        self.kind.group()
    }

    /// The plural resource name.
    pub fn resource(&self) -> &str {
        self.kind.resource()
    }

    /// `apiVersion` as objects of this kind and version bear it.
    pub fn api_version(&self) -> String {
        match self.group() {
            "" => self.version.to_string(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// A set of the verbs that discovery speaks of.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Verbs(u8);

const VERBS: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

impl Verbs {
    /// Whether `verb`, in discovery's own word, is among them.
    pub fn has(self, verb: &str) -> bool {
        VERBS.iter().position(|known| *known == verb).is_some_and(|bit| self.0 & (1 << bit) != 0)
    }

    /// Whether objects can be listed and watched, so that they can be followed.
    pub fn can_follow(self) -> bool {
        self.has("list") && self.has("watch")
    }

    fn of(words: &[String]) -> Self {
        let bit = |word: &String| VERBS.iter().position(|known| known == word).map_or(0, |bit| 1_u8 << bit);
        Self(words.iter().map(bit).fold(0, |set, bit| set | bit))
    }
}

impl fmt::Debug for Verbs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(VERBS.iter().filter(|verb| self.has(verb))).finish()
    }
}

/// All that one server or workspace serves, as far as it could be learned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Catalog {
    /// Each kind's versions, the server's preferred one first; never empty.
    kinds: BTreeMap<KindId, Vec<Served>>,
    /// Groups of which the server could not say everything, and why.
    unknown: BTreeMap<Name, String>,
}

/// The answer to "is this kind served?".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found<'a> {
    /// Yes, and this is its preferred version.
    Served(&'a Served),
    /// No: the server listed its group in full (or named no such group), and the kind was not there.
    NotServed,
    /// Nobody knows: the group's own server did not answer. Never to be read as "not served".
    Unknown(&'a str),
}

impl Catalog {
    /// Whether a kind is served, and how.
    pub fn find(&self, kind: &KindId) -> Found<'_> {
        if let Some(served) = self.versions(kind).first() {
            return Found::Served(served);
        }
        match self.unknown.get(kind.group()) {
            Some(why) => Found::Unknown(why),
            None => Found::NotServed,
        }
    }

    /// All served versions of a kind, preferred first; empty if there is none.
    pub fn versions(&self, kind: &KindId) -> &[Served] {
        self.kinds.get(kind).map_or(&[], Vec::as_slice)
    }

    /// The kind that objects with this group and `kind` belong to.
    pub fn find_named(&self, group: &str, kind_name: &str) -> Option<&Served> {
        self.iter().find(|served| served.group() == group && &*served.kind_name == kind_name)
    }

    /// What a person means by a word: `deployments.apps`, `deployments`, `deployment` or `deploy`. The core
    /// group wins over others, then the first group by name.
    pub fn find_word(&self, word: &str) -> Option<&Served> {
        let (word, group) = word.split_once('.').map_or((word, None), |(word, group)| (word, Some(group)));
        let means = |served: &&Served| {
            group.is_none_or(|group| group == served.group())
                && (served.resource() == word
                    || &*served.singular == word
                    || served.short_names.iter().any(|short| &**short == word)
                    || served.kind_name.eq_ignore_ascii_case(word))
        };
        self.iter().filter(means).min_by_key(|served| served.group().to_owned())
    }

    /// Every kind at its preferred version, by kind.
    pub fn iter(&self) -> impl Iterator<Item = &Served> {
        self.kinds.values().filter_map(|versions| versions.first())
    }

    /// Groups of which the server could not say everything, and why.
    pub fn unknown_groups(&self) -> impl Iterator<Item = (&str, &str)> {
        self.unknown.iter().map(|(group, why)| (&**group, why.as_str()))
    }

    /// The catalog in one aggregated answer; `None` if it is not of that form. For servers in memory.
    pub fn from_aggregated(body: &[u8]) -> Option<Self> {
        let mut catalog = Self::default();
        catalog.add_aggregated(body).map(|()| catalog)
    }

    pub(crate) fn add(&mut self, served: Served) {
        self.kinds.entry(served.kind.clone()).or_default().push(served);
    }

    pub(crate) fn doubt(&mut self, group: &str, why: impl Into<String>) {
        self.unknown.insert(Name::new(group), why.into());
    }

    /// Adds what an aggregated answer (`/api` or `/apis`) says. `None`: the answer is not of that form.
    pub(crate) fn add_aggregated(&mut self, body: &[u8]) -> Option<()> {
        let list: AggregatedList = serde_json::from_slice(body).ok()?;
        if list.kind != "APIGroupDiscoveryList" {
            return None;
        }
        for group in list.items {
            let name = group.metadata.name;
            for version in group.versions {
                if version.freshness == "Stale" {
                    // What a stale entry lists is what that server said before it went away: those kinds
                    // are still looked up, and asking for them says what is wrong. Others are unknown.
                    self.doubt(&name, "its API server does not answer (see the APIServices of that group)");
                }
                for resource in version.resources {
                    self.add(resource.served(&name, &version.version));
                }
            }
        }
        Some(())
    }

    /// Adds one `APIResourceList` (`/api/v1`, `/apis/apps/v1`). `None`: the answer is not of that form.
    pub(crate) fn add_group_version(&mut self, group: &str, version: &str, body: &[u8]) -> Option<()> {
        let list: ResourceList = serde_json::from_slice(body).ok()?;
        if list.kind != "APIResourceList" {
            return None;
        }
        let subresource = |resource: &str, sub: &str| {
            list.resources.iter().any(|r| r.name.split_once('/') == Some((resource, sub)))
        };
        for resource in &list.resources {
            if resource.name.contains('/') {
                continue;
            }
            self.add(Served {
                kind: KindId::new(group, &resource.name),
                version: Name::new(version),
                kind_name: Name::new(&resource.kind),
                singular: Name::new(&resource.singular_name),
                namespaced: resource.namespaced,
                status: subresource(&resource.name, "status"),
                scale: subresource(&resource.name, "scale"),
                verbs: Verbs::of(&resource.verbs),
                short_names: resource.short_names.iter().map(|short| Name::new(short)).collect(),
            });
        }
        Some(())
    }
}

/// The group-versions that `/api` and `/apis` name in their plain form, preferred versions first.
pub(crate) fn plain_group_versions(api: &[u8], apis: &[u8]) -> Option<Vec<(String, String)>> {
    let core: CoreVersions = serde_json::from_slice(api).ok()?;
    let groups: GroupList = serde_json::from_slice(apis).ok()?;
    if core.kind != "APIVersions" || groups.kind != "APIGroupList" {
        return None;
    }
    let mut all: Vec<(String, String)> = core.versions.into_iter().map(|v| (String::new(), v)).collect();
    for group in groups.groups {
        let preferred = group.preferred_version.version;
        let mut versions: Vec<String> = group.versions.into_iter().map(|v| v.version).collect();
        versions.sort_by_key(|version| *version != preferred);
        all.extend(versions.into_iter().map(|version| (group.name.clone(), version)));
    }
    Some(all)
}

/// Whether an answer is of the aggregated form.
pub(crate) fn is_aggregated(body: &[u8]) -> bool {
    serde_json::from_slice::<Kinded>(body).is_ok_and(|answer| answer.kind == "APIGroupDiscoveryList")
}

#[derive(Deserialize)]
struct Kinded {
    #[serde(default, deserialize_with = "null_is_empty")]
    kind: String,
}

#[derive(Deserialize)]
struct AggregatedList {
    kind: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    items: Vec<AggregatedGroup>,
}

#[derive(Deserialize)]
struct AggregatedGroup {
    #[serde(default, deserialize_with = "null_is_empty")]
    metadata: GroupMetadata,
    #[serde(default, deserialize_with = "null_is_empty")]
    versions: Vec<AggregatedVersion>,
}

#[derive(Deserialize, Default)]
struct GroupMetadata {
    #[serde(default, deserialize_with = "null_is_empty")]
    name: String,
}

#[derive(Deserialize)]
struct AggregatedVersion {
    version: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    resources: Vec<AggregatedResource>,
    #[serde(default, deserialize_with = "null_is_empty")]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    response_kind: Option<Kinded>,
    #[serde(default, deserialize_with = "null_is_empty")]
    scope: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    singular_resource: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    short_names: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    subresources: Vec<AggregatedSubresource>,
}

#[derive(Deserialize)]
struct AggregatedSubresource {
    subresource: String,
}

impl AggregatedResource {
    fn served(self, group: &str, version: &str) -> Served {
        let has = |name: &str| self.subresources.iter().any(|sub| sub.subresource == name);
        Served {
            kind: KindId::new(group, &self.resource),
            version: Name::new(version),
            kind_name: Name::new(self.response_kind.as_ref().map_or("", |kind| &kind.kind)),
            singular: Name::new(&self.singular_resource),
            namespaced: self.scope == "Namespaced",
            status: has("status"),
            scale: has("scale"),
            verbs: Verbs::of(&self.verbs),
            short_names: self.short_names.iter().map(|short| Name::new(short)).collect(),
        }
    }
}

#[derive(Deserialize)]
struct CoreVersions {
    kind: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    versions: Vec<String>,
}

#[derive(Deserialize)]
struct GroupList {
    kind: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    groups: Vec<PlainGroup>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainGroup {
    name: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    versions: Vec<PlainVersion>,
    #[serde(default, deserialize_with = "null_is_empty")]
    preferred_version: PlainVersion,
}

#[derive(Deserialize, Default)]
struct PlainVersion {
    #[serde(default, deserialize_with = "null_is_empty")]
    version: String,
}

#[derive(Deserialize)]
struct ResourceList {
    kind: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    resources: Vec<PlainResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlainResource {
    name: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    singular_name: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    namespaced: bool,
    #[serde(default, deserialize_with = "null_is_empty")]
    kind: String,
    #[serde(default, deserialize_with = "null_is_empty")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    short_names: Vec<String>,
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
