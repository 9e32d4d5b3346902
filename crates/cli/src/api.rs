//! `mailboat api import`: kinds of Kubernetes clusters, offered in a workspace of kcp.

use std::collections::BTreeMap;

use anyhow::Result;
use mailboat_api::generate::{export_with, schema_of_crd};
use mailboat_cluster::{Cluster, Connection, Settings, Source};
use mailboat_object::key::Key;
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_registration::names::check_object_name;
use mailboat_registration::workspace::WorkspacePath;
use serde_json::{Value, json};

use crate::documents::{self, Format, write_out};
use crate::failure::{bad_configuration, before_writing, refusal};
use crate::flags::{ApiArguments, ApiCommand, ImportArguments};
use crate::place::{get, key};
use crate::site::{Made, Site, bind, create, patch, patiently};

/// Does what is asked about APIs.
pub async fn run(arguments: &ApiArguments) -> Result<()> {
    match &arguments.command {
        ApiCommand::Import(arguments) => import(arguments).await,
    }
}

async fn import(arguments: &ImportArguments) -> Result<()> {
    if let Some(export) = &arguments.export {
        check_object_name(export, "an APIExport").map_err(|bad| refusal(bad.to_string()))?;
    }
    let definitions = match &arguments.filename {
        Some(file) => documents::read(file)?,
        None => of_cluster(arguments).await?,
    };
    // All of them are understood before anything is made.
    let mut by_export: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for definition in &definitions {
        let schema = schema_of_crd(definition).map_err(|bad| refusal(bad.to_string()))?;
        let group = schema["spec"]["group"].as_str().unwrap_or_default();
        let export = arguments.export.clone().unwrap_or_else(|| group.to_owned());
        by_export.entry(export).or_default().push(schema);
    }
    if arguments.dry_run {
        let exports = by_export.iter().filter_map(|(name, schemas)| export_with(None, name, schemas));
        let all: Vec<Value> = by_export.values().flatten().cloned().chain(exports).collect();
        return documents::print(&all, Format::Yaml);
    }
    let site = Site::reach(&arguments.server).await?;
    let (path, cluster) = site.named(arguments.workspace.as_deref()).await?;
    for (name, schemas) in &by_export {
        for schema in schemas {
            let name = schema["metadata"]["name"].as_str().unwrap_or_default();
            let made = make_schema(&cluster, &path, name, schema).await?;
            tell("apiresourceschema.apis.kcp.io", name, made)?;
        }
        let made = offer(&cluster, &path, name, schemas).await?;
        write_out(&format!("apiexport.apis.kcp.io/{name} {made}\n"))?;
        if arguments.bind {
            let binding = json!({ "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding", "metadata": { "name": name },
                "spec": { "reference": { "export": { "path": path.to_string(), "name": name } } } });
            let made = bind(&cluster, &path, &binding).await?;
            tell("apibinding.apis.kcp.io", name, made)?;
        }
    }
    Ok(())
}

fn tell(what: &str, name: &str, made: Made) -> Result<()> {
    let made = if made == Made::Now { "created" } else { "unchanged" };
    write_out(&format!("{what}/{name} {made}\n"))
}

/// The definitions of kinds in a cluster.
async fn of_cluster(arguments: &ImportArguments) -> Result<Vec<Value>> {
    let (path, context) = (arguments.from_kubeconfig.clone(), arguments.from_context.clone());
    let connection = Connection::open(Source::Kubeconfig { path, context }, Settings::default()).await;
    let connection = connection.map_err(|bad| bad_configuration(&bad, "--from-kubeconfig"))?;
    let cluster = connection.cluster();
    let mut found = Vec::new();
    for kind in &arguments.kinds {
        let key = key("", "apiextensions.k8s.io", "customresourcedefinitions", "", kind);
        let definition: Option<Value> = get(&cluster, key).await.map_err(|fault| {
            before_writing(&format!("{kind} cannot be read at {}", connection.server()), &fault)
        })?;
        found.push(definition.ok_or_else(|| {
            refusal(format!(
                "{} has no CustomResourceDefinition {kind:?}; write it as plural.group, such as widgets.example.com \
                 (only kinds that a cluster has by a CustomResourceDefinition can be imported: those of aggregated API servers have \
                 none, and those of Kubernetes itself are offered by the export `kubernetes` of the provider workspace)",
                connection.server()
            ))
        })?);
    }
    Ok(found)
}

async fn make_schema(cluster: &Cluster, path: &WorkspacePath, name: &str, schema: &Value) -> Result<Made> {
    let key = key("", "apis.kcp.io", "apiresourceschemas", "", name);
    if found(cluster, path, &key).await?.is_some() {
        return Ok(Made::Before);
    }
    patiently(&format!("the APIResourceSchema {name} cannot be made in {path}"), async || {
        create(cluster, key.clone(), schema).await
    })
    .await?;
    Ok(Made::Now)
}

/// Makes the export offer the schemas.
async fn offer(
    cluster: &Cluster,
    path: &WorkspacePath,
    name: &str,
    schemas: &[Value],
) -> Result<&'static str> {
    let key = key("", "apis.kcp.io", "apiexports", "", name);
    let known = found(cluster, path, &key).await?;
    let Some(wanted) = export_with(known.as_ref(), name, schemas) else { return Ok("unchanged") };
    let failing = format!("the APIExport {name} cannot be written in {path}");
    match &known {
        None => {
            patiently(&failing, async || create(cluster, key.clone(), &wanted).await).await?;
            Ok("created")
        }
        Some(known) => {
            // Only if nobody else changed it meanwhile: the whole list is written.
            let version = &known["metadata"]["resourceVersion"];
            let change = json!({ "metadata": { "resourceVersion": version }, "spec": { "resources": wanted["spec"]["resources"] } });
            patiently(&failing, async || patch(cluster, key.clone(), &change).await).await?;
            Ok("changed")
        }
    }
}

async fn found(cluster: &Cluster, path: &WorkspacePath, key: &Key) -> Result<Option<Value>> {
    get(cluster, key.clone()).await.map_err(|fault: Fault| match fault.kind {
        FaultKind::Unserved => refusal(format!("{path} is no workspace of kcp: it serves no {}", key.kind)),
        _ => before_writing(&format!("{} in {path} cannot be read", key.kind), &fault),
    })
}
