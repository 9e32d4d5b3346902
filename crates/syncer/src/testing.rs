//! Objects, catalogs and configuration for the tests beside the code.

use mailboat_object::catalog::{Catalog, Served, Verbs};
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::{ClusterOf, Keep, Limits, Object, Place};

use crate::config::{Config, ConfigKind};

/// An object of a cluster, from its JSON.
pub(crate) fn object(cluster: &str, group: &str, resource: &str, json: &str) -> Object {
    let place = Place {
        cluster: ClusterOf::One(&ClusterId::new(cluster)),
        kind: &KindId::new(group, resource),
        api_version: &if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") },
        kind_name: "",
        manager: "mailboat-syncer",
        keep: Keep::Whole,
        limits: Limits::default(),
    };
    Object::decode(json.as_bytes(), &place).unwrap()
}

/// A configuration object with this spec.
pub(crate) fn config(kind: ConfigKind, name: &str, spec: &str) -> Config {
    let json = format!(r#"{{"metadata":{{"name":"{name}","generation":1}},"spec":{spec}}}"#);
    let id = kind.kind();
    Config::read(kind, &object("mb", id.group(), id.resource(), &json))
}

/// A catalog of kinds, each as `resource.group Kind`, with `!` before those without namespaces and `+` behind those with a
/// status subresource.
pub(crate) fn catalog(kinds: &[&str]) -> Catalog {
    let mut catalog = Catalog::default();
    for line in kinds {
        let (kind, name) = line.split_once(' ').unwrap();
        let (kind, namespaced) = kind.strip_prefix('!').map_or((kind, true), |kind| (kind, false));
        let (name, status) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
        catalog.add(Served {
            kind: KindId::new(group, resource),
            version: Name::new("v1"),
            kind_name: Name::new(name),
            singular: Name::EMPTY,
            namespaced,
            status,
            scale: false,
            verbs: Verbs::of(["get", "list", "watch"]),
            short_names: Box::new([]),
        });
    }
    catalog
}
