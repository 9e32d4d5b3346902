//! The kinds that Kubernetes knows by itself, as a real server describes them.
//!
//! `data/kubernetes.json` holds what kube-apiserver 1.36 answers to discovery and under `/openapi/v3`, cut down to the kinds
//! that are served here and to the first sentence of each description; `data/columns.json` the columns of their tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use mailboat_machinery::schema::BadSchema;
use mailboat_machinery::{Column, Flavor, Generation, Kind, Naming, builtin};
use mailboat_object::{KindId, Name};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

const KUBERNETES: &str = include_str!("../data/kubernetes.json");
const COLUMNS: &str = include_str!("../data/columns.json");

/// Why the kinds of Kubernetes cannot be served: the program was put together wrongly.
#[derive(Debug, thiserror::Error)]
pub enum BadCatalog {
    /// It is not JSON of the expected form.
    #[error("the built-in kinds cannot be read: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A schema cannot be compiled.
    #[error("the built-in kind {kind} has a bad schema: {error}")]
    Schema {
        /// The kind.
        kind: String,
        /// What is wrong with its schema.
        error: BadSchema,
    },
}

#[derive(Deserialize)]
struct Catalog {
    groups: Vec<Group>,
    schemas: Value,
}

#[derive(Deserialize)]
struct Group {
    group: String,
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    #[serde(rename = "resource")]
    plural: String,
    kind: String,
    scope: String,
    singular: String,
    schema: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    subresources: Vec<Subresource>,
}

#[derive(Deserialize)]
struct Subresource {
    subresource: String,
}

/// What tables of each kind show (`RESOURCE` or `RESOURCE.GROUP`).
type Tables = BTreeMap<String, Vec<RecordedColumn>>;

/// What the servers' tables show; of kcp's, those that differ.
#[derive(Deserialize)]
struct RecordedTables {
    kubernetes: Tables,
    kcp: Tables,
}

#[derive(Deserialize)]
struct RecordedColumn {
    name: String,
    #[serde(rename = "type")]
    value_type: String,
    format: String,
    description: String,
    priority: i64,
}

impl RecordedTables {
    /// The columns of a kind's tables as a server shows them.
    fn columns(&mut self, flavor: Flavor, kind: &KindId) -> Arc<[Column]> {
        let name = match kind.group() {
            "" => kind.resource().to_owned(),
            group => format!("{}.{group}", kind.resource()),
        };
        let own = if flavor == Flavor::Kcp { self.kcp.remove(&name) } else { None };
        let found = own.or_else(|| self.kubernetes.remove(&name)).unwrap_or_default();
        let column = |column: RecordedColumn| Column {
            name: column.name,
            value_type: column.value_type,
            format: column.format,
            description: column.description,
            priority: column.priority,
            path: String::new(),
        };
        found.into_iter().map(column).collect()
    }
}

/// All kinds of Kubernetes, with their schemas, as a server shows them.
pub fn kinds(flavor: Flavor) -> Result<Vec<Arc<Kind>>, BadCatalog> {
    let catalog: Catalog = serde_json::from_str(KUBERNETES)?;
    let mut kinds: Vec<Kind> = Vec::new();
    for group in &catalog.groups {
        for version in &group.versions {
            for resource in &version.resources {
                let kind = kind(group, version, resource, &catalog.schemas)?;
                match kinds.iter_mut().find(|known| known.id == kind.id) {
                    // The first is the one in which objects are kept.
                    Some(known) => known.versions.extend(kind.versions),
                    None => kinds.push(kind),
                }
            }
        }
    }
    let mut tables: RecordedTables = serde_json::from_str(COLUMNS)?;
    for kind in &mut kinds {
        let columns = tables.columns(flavor, &kind.id);
        for version in &mut kind.versions {
            version.columns = Arc::clone(&columns);
        }
    }
    join(&mut kinds);
    Ok(kinds.into_iter().map(Arc::new).collect())
}

/// Joins kinds that are only other names for the objects of others with these.
fn join(kinds: &mut [Kind]) {
    for at in 0..kinds.len() {
        let Some(kept) = builtin::kept_as(&kinds[at].id) else { continue };
        let Some(home) = kinds.iter().position(|kind| kind.id == kept) else { continue };
        let forms = kinds[at].versions.clone();
        kinds[home].forms.extend(forms);
        kinds[at].rules = kinds[home].rules.clone();
        kinds[at].kept_as = Some(kept);
    }
}

fn kind(
    group: &Group,
    version: &GroupVersion,
    resource: &Resource,
    schemas: &Value,
) -> Result<Kind, BadCatalog> {
    let id = KindId::new(&group.group, &resource.plural);
    let namespaced = resource.scope == "Namespaced";
    let (version, name) = (&version.version, &resource.kind);
    let mut kind = builtin::kind_from_openapi(id, version, name, namespaced, &resource.schema, schemas)
        .map_err(|error| BadCatalog::Schema { kind: resource.kind.clone(), error })?;
    for served in &mut kind.versions {
        served.conversion = builtin::conversion(&kind.id, &served.name);
    }
    let names = |texts: &[String]| texts.iter().map(|text| Name::new(text)).collect();
    kind.naming = Naming {
        singular: Name::new(&resource.singular),
        short: names(&resource.short_names),
        categories: names(&resource.categories),
        ..kind.naming
    };
    if !resource.subresources.iter().any(|part| part.subresource == "status") {
        kind.rules.status = None;
    }
    let no_spec = schemas[&resource.schema]["properties"].get("spec").is_none();
    if no_spec && kind.rules.generation != Generation::Content {
        kind.rules.generation = Generation::None;
    }
    Ok(kind)
}

/// The schemas, as text, that a kind's own refers to, itself included.
pub(crate) fn components(
    wanted: impl IntoIterator<Item = String>,
) -> BTreeMap<&'static str, &'static RawValue> {
    #[derive(Deserialize)]
    struct Schemas {
        #[serde(borrow)]
        schemas: BTreeMap<&'static str, &'static RawValue>,
    }
    let schemas = serde_json::from_str::<Schemas>(KUBERNETES).map(|read| read.schemas).unwrap_or_default();
    let mut found = BTreeMap::new();
    let mut open: Vec<String> = wanted.into_iter().collect();
    while let Some(name) = open.pop() {
        let Some((name, schema)) = schemas.get_key_value(name.as_str()) else { continue };
        if found.insert(*name, *schema).is_none() {
            open.extend(references(schema.get()).map(str::to_owned));
        }
    }
    found
}

/// The name of a built-in kind's schema.
pub(crate) fn component(kind: &KindId, version: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Groups {
        groups: Vec<Group>,
    }
    /// By group, resource and version. Whoever asks for all schemas asks for each name.
    static NAMES: LazyLock<HashMap<(String, String, String), String>> = LazyLock::new(|| {
        let groups = serde_json::from_str::<Groups>(KUBERNETES).map(|read| read.groups).unwrap_or_default();
        let mut names = HashMap::new();
        for group in groups {
            for version in group.versions {
                for resource in version.resources {
                    let key = (group.group.clone(), resource.plural, version.version.clone());
                    names.insert(key, resource.schema);
                }
            }
        }
        names
    });
    NAMES.get(&(kind.group().to_owned(), kind.resource().to_owned(), version.to_owned())).cloned()
}

fn references(schema: &str) -> impl Iterator<Item = &str> {
    const MARK: &str = "\"#/components/schemas/";
    schema.match_indices(MARK).filter_map(|(at, _)| schema[at + MARK.len()..].split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_compile() {
        let kinds = kinds(Flavor::Kubernetes).unwrap();
        assert!(kinds.len() > 50, "{}", kinds.len());
        let deployments = kinds.iter().find(|kind| kind.id == KindId::new("apps", "deployments")).unwrap();
        assert!(
            deployments.namespaced && deployments.rules.status.is_some() && deployments.rules.scale.is_some()
        );
        assert_eq!(deployments.naming.short, [Name::new("deploy")]);
        let config_maps = kinds.iter().find(|kind| kind.id == KindId::new("", "configmaps")).unwrap();
        assert!(config_maps.rules.status.is_none());
        assert_eq!(config_maps.rules.generation, Generation::None);
        let webhooks = KindId::new("admissionregistration.k8s.io", "mutatingwebhookconfigurations");
        let webhooks = kinds.iter().find(|kind| kind.id == webhooks).unwrap();
        assert_eq!(webhooks.rules.generation, Generation::Content);
    }

    #[test]
    fn a_kinds_schema_brings_all_that_it_refers_to() {
        let name = component(&KindId::new("apps", "deployments"), "v1").unwrap();
        let components = components([name]);
        for wanted in ["io.k8s.api.apps.v1.Deployment", "io.k8s.api.core.v1.Container"] {
            assert!(components.contains_key(wanted), "{wanted}");
        }
        for schema in components.values() {
            for reference in references(schema.get()) {
                assert!(components.contains_key(reference), "{reference}");
            }
        }
    }
}
