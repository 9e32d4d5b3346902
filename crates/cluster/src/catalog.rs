//! What a server serves, read from discovery answers.
//!
//! Everything here is a function of bytes. `discovery` asks for them; what comes of them is a plain value of
//! `mailboat_object::catalog`.

pub use mailboat_object::catalog::{Catalog, Found, Served, Verbs};
use mailboat_object::key::{KindId, Name};
use serde::Deserialize;

use crate::nullable::null_is_empty;

/// The catalog in one aggregated answer; `None` if it is not of that form. For servers in memory.
pub fn from_aggregated(body: &[u8]) -> Option<Catalog> {
    let mut catalog = Catalog::default();
    add_aggregated(&mut catalog, body).map(|()| catalog)
}

/// Adds what an aggregated answer (`/api` or `/apis`) says. `None`: the answer is not of that form.
pub(crate) fn add_aggregated(catalog: &mut Catalog, body: &[u8]) -> Option<()> {
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
                catalog.doubt(&name, "its API server does not answer (see the APIServices of that group)");
            }
            for resource in version.resources {
                catalog.add(resource.served(&name, &version.version));
            }
        }
    }
    Some(())
}

/// Adds one `APIResourceList` (`/api/v1`, `/apis/apps/v1`). `None`: the answer is not of that form.
pub(crate) fn add_group_version(
    catalog: &mut Catalog,
    group: &str,
    version: &str,
    body: &[u8],
) -> Option<()> {
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
        catalog.add(Served {
            kind: KindId::new(group, &resource.name),
            version: Name::new(version),
            kind_name: Name::new(&resource.kind),
            singular: Name::new(&resource.singular_name),
            namespaced: resource.namespaced,
            status: subresource(&resource.name, "status"),
            scale: subresource(&resource.name, "scale"),
            verbs: Verbs::of(resource.verbs.iter().map(String::as_str)),
            short_names: resource.short_names.iter().map(|short| Name::new(short)).collect(),
        });
    }
    Some(())
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
            verbs: Verbs::of(self.verbs.iter().map(String::as_str)),
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
