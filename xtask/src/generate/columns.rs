//! The columns of tables, as real servers show the kinds that the hub serves by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::GeneratedFile;

/// What the hub serves by itself, and what its tables show, from the repository's top folder.
const KINDS: &str = "crates/hub/data/kubernetes.json";
const COLUMNS: &str = "crates/hub/data/columns.json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

#[derive(Deserialize)]
struct Catalog {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    group: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    resource: String,
}

/// The columns of each kind, by `RESOURCE` or `RESOURCE.GROUP`.
type Tables = BTreeMap<String, Vec<Value>>;

/// Asks both servers for a table of each kind. Of kcp's, those are kept that differ.
pub(super) async fn record(
    root: &Path,
    kubernetes: &kube::Client,
    kcp: &kube::Client,
) -> Result<GeneratedFile> {
    let text =
        std::fs::read_to_string(root.join(KINDS)).with_context(|| format!("{KINDS} cannot be read"))?;
    let catalog: Catalog = serde_json::from_str(&text).with_context(|| format!("{KINDS} is no catalog"))?;
    let common = tables(kubernetes, &catalog).await?;
    let mut own = tables(kcp, &catalog).await?;
    own.retain(|kind, columns| common.get(kind) != Some(columns));
    let contents = format!("{{\n{},\n{}\n}}\n", section("kubernetes", &common), section("kcp", &own));
    Ok(GeneratedFile { path: PathBuf::from(COLUMNS), contents })
}

async fn tables(client: &kube::Client, catalog: &Catalog) -> Result<Tables> {
    let mut tables = Tables::new();
    for group in &catalog.groups {
        let Some(version) = group.versions.first() else { continue };
        for Resource { resource } in &version.resources {
            let (name, place) = match group.group.as_str() {
                "" => (resource.clone(), format!("/api/{}", version.version)),
                group => (format!("{resource}.{group}"), format!("/apis/{group}/{}", version.version)),
            };
            let request = http::Request::get(format!("{place}/{resource}?limit=1"));
            let request = request.header("accept", TABLE).body(Vec::new())?;
            // Not every server has every kind.
            let table: Value = match client.request(request).await {
                Ok(table) => table,
                Err(kube::Error::Api(status)) if status.code == 404 => continue,
                Err(error) => return Err(error).with_context(|| format!("a table of {name} cannot be had")),
            };
            let columns = table["columnDefinitions"].as_array().cloned();
            tables
                .insert(name.clone(), columns.with_context(|| format!("a table of {name} has no columns"))?);
        }
    }
    Ok(tables)
}

/// A line for each column, so that differences can be read.
fn section(server: &str, tables: &Tables) -> String {
    let table = |(kind, columns): (&String, &Vec<Value>)| {
        let columns: Vec<String> = columns.iter().map(|column| format!("  {column}")).collect();
        format!("\"{kind}\": [\n{}\n]", columns.join(",\n"))
    };
    let tables: Vec<String> = tables.iter().map(table).collect();
    format!("\"{server}\": {{\n{}\n}}", tables.join(",\n"))
}
