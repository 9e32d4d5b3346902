//! `mailboat ensure`: edges in inventory workspaces, these workspaces, and workload management workspaces.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use mailboat_api::names::{export, group};
use mailboat_cluster::{Cluster, Connection, Settings, Source};
use mailboat_object::key::KindId;
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_registration::inventory::{self, Described, KeptKubeconfig, PutRight, put_right};
use mailboat_registration::workspace::{ROOT, WorkspacePath};
use serde_json::{Value, json};

use crate::failure::{before_writing, refusal};
use crate::flags::{EnsureArguments, Ensured, ImwArguments, InventoryFlags, LocationArguments, WmwArguments};
use crate::place::{get, key};
use crate::site::{Made, Site, bind, create, patch};

/// Makes what is described.
pub async fn run(arguments: &EnsureArguments) -> Result<()> {
    match &arguments.what {
        Ensured::Location(location) => ensure_location(location).await,
        Ensured::Imw(workspace) => ensure_imw(workspace).await,
        Ensured::Wmw(workspace) => ensure_wmw(workspace).await,
    }
}

/// Makes a SyncTarget and its Location, and gives both the labels.
pub(crate) async fn ensure_location(arguments: &LocationArguments) -> Result<()> {
    let labels: BTreeMap<String, String> = arguments.labels.iter().cloned().collect();
    let edge = Described::new(&arguments.name, labels).map_err(|bad| refusal(bad.to_string()))?;
    let kubeconfig = match &arguments.edge_kubeconfig {
        Some(file) => Some(edge_kubeconfig(file).await?),
        None => None,
    };
    let (path, cluster) = inventory_workspace(&arguments.inventory).await?;
    prepare_inventory(&cluster, &path, &arguments.inventory.provider_workspace).await?;
    let kept = KeptKubeconfig::of(&arguments.name);
    if let Some(text) = &kubeconfig {
        keep_kubeconfig(&cluster, &path, &kept, text).await?;
    }
    for (resource, wanted) in [("synctargets", edge.sync_target()), ("locations", edge.location())] {
        let key = key("", group::EDGE, resource, "", &arguments.name);
        let what = format!("{} {}", wanted["kind"].as_str().unwrap_or_default(), arguments.name);
        let failed = |fault: Fault| before_writing(&format!("{what} in {path} cannot be ensured"), &fault);
        let found: Option<Value> = get(&cluster, key.clone()).await.map_err(failed)?;
        let done = match found {
            None => {
                create(&cluster, key, &wanted).await.map_err(failed)?;
                "made"
            }
            Some(found) => match edge.labels_missing_from(&found, &wanted) {
                None => "unchanged",
                Some(labels) => {
                    patch(&cluster, key, &labels).await.map_err(failed)?;
                    "labelled"
                }
            },
        };
        say!("{what}: {done}");
    }
    if kubeconfig.is_some() {
        // Only now: the center acts on it at once.
        let (name, secret) = kept.annotation();
        let key = key("", group::EDGE, "synctargets", "", &arguments.name);
        let named = json!({ "metadata": { "annotations": { name: secret } } });
        patch(&cluster, key, &named)
            .await
            .map_err(|fault| anyhow!("SyncTarget {} cannot be annotated: {fault}", arguments.name))?;
        say!("a center that runs with --syncer-image installs the syncer; the SyncTarget says how it went");
    }
    Ok(())
}

/// An edge's kubeconfig, if the center can use it.
async fn edge_kubeconfig(file: &Path) -> Result<String> {
    let unusable = |why: String| refusal(format!("{} cannot be used: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    let source = Source::Foreign(Arc::from(text.as_str()));
    Connection::open(source, Settings::default()).await.map_err(|bad| unusable(bad.to_string()))?;
    Ok(text)
}

async fn keep_kubeconfig(
    cluster: &Cluster,
    path: &WorkspacePath,
    kept: &KeptKubeconfig,
    text: &str,
) -> Result<()> {
    for (key, wanted) in kept.keys().into_iter().zip(kept.objects(text)) {
        let what = format!("{} {}/{}", wanted["kind"].as_str().unwrap_or_default(), key.namespace, key.name);
        let failed = |fault: Fault| before_writing(&format!("{what} in {path} cannot be made"), &fault);
        let found: Option<Value> = get(cluster, key.clone()).await.map_err(failed)?;
        match found {
            None => create(cluster, key, &wanted).await.map_err(failed)?,
            Some(found) if !KeptKubeconfig::is_of_it(&found) => {
                return Err(refusal(format!("{what} is in {path} already and was not made by this command")));
            }
            Some(_) => patch(cluster, key, &wanted).await.map_err(failed)?,
        }
        say!("{what}: in place");
    }
    Ok(())
}

pub(crate) async fn inventory_workspace(flags: &InventoryFlags) -> Result<(WorkspacePath, Cluster)> {
    let site = Site::reach(&flags.server).await?;
    site.named(flags.imw.as_deref()).await
}

/// Whether edges can be described in a workspace already, by whatever binding.
async fn serves_edges(cluster: &Cluster, path: &WorkspacePath) -> Result<bool> {
    match cluster.served(&KindId::new(group::EDGE, "synctargets")).await {
        Ok(_) => Ok(true),
        Err(fault) if fault.kind == FaultKind::Unserved => Ok(false),
        Err(fault) => {
            Err(before_writing(&format!("the workspace {path} cannot be asked what it serves"), &fault))
        }
    }
}

/// Makes an inventory workspace: one in which edges can be described, and that the center may read.
pub(crate) async fn ensure_imw(arguments: &ImwArguments) -> Result<()> {
    let path = below_root(&arguments.name)?;
    let site = Site::reach(&arguments.server).await?;
    let cluster = site.at(&path);
    if site.make_workspace(&path, None).await? == Made::Now {
        say!("workspace {path}: made");
    }
    prepare_inventory(&cluster, &path, &arguments.provider_workspace).await?;
    for export_name in [export::WORKLOAD, export::SCHEDULING].into_iter().filter(|_| arguments.kcp_kinds) {
        let binding = inventory::binding(export_name, &arguments.provider_workspace, export_name);
        let made = bind(&cluster, &path, &binding).await? == Made::Now;
        say!("APIBinding {export_name}: {}", if made { "made" } else { "unchanged" });
    }
    Ok(())
}

/// Binds an inventory workspace to our APIs, if it is not, and lets the center in.
async fn prepare_inventory(cluster: &Cluster, path: &WorkspacePath, provider: &str) -> Result<()> {
    let binding = inventory::binding(export::BINDING_IN_INVENTORY_WORKSPACE, provider, export::EDGE);
    if !serves_edges(cluster, path).await? && bind(cluster, path, &binding).await? == Made::Now {
        say!("APIBinding {}: made", export::BINDING_IN_INVENTORY_WORKSPACE);
    }
    give_rights(cluster, path, inventory::center_rights_in_inventory()).await
}

pub(crate) async fn ensure_wmw(arguments: &WmwArguments) -> Result<()> {
    let path = below_root(&arguments.name)?;
    let site = Site::reach(&arguments.server).await?;
    let cluster = site.at(&path);
    if site.make_workspace(&path, None).await? == Made::Now {
        say!("workspace {path}: made");
    }
    if !arguments.with_kube {
        refuse_to_unbind(&cluster, &path).await?;
    }
    for (name, export_name) in inventory::workload_bindings(arguments.with_kube) {
        let binding = inventory::binding(name, &arguments.provider_workspace, export_name);
        let made = bind(&cluster, &path, &binding).await? == Made::Now;
        say!("APIBinding {name}: {}", if made { "made" } else { "unchanged" });
    }
    give_rights(&cluster, &path, inventory::center_rights()).await
}

/// Gives the center its rights in a workspace, where they are missing.
async fn give_rights(cluster: &Cluster, path: &WorkspacePath, rights: [Value; 2]) -> Result<()> {
    let kinds = [("ClusterRole", "clusterroles"), ("ClusterRoleBinding", "clusterrolebindings")];
    for ((kind, resource), wanted) in kinds.into_iter().zip(rights) {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        let key = key("", "rbac.authorization.k8s.io", resource, "", name);
        let failed =
            |fault: Fault| before_writing(&format!("{kind} {name} in {path} cannot be made"), &fault);
        let found: Option<Value> = get(cluster, key.clone()).await.map_err(failed)?;
        let missing = put_right(found.as_ref(), &wanted);
        match missing.map_err(|other| refusal(format!("{kind} {name} in {path}: {other}")))? {
            None => {}
            Some(PutRight::Make) => {
                create(cluster, key, &wanted).await.map_err(failed)?;
                say!("{kind} {name}: made");
            }
            Some(PutRight::Patch(difference)) => {
                patch(cluster, key, &difference).await.map_err(failed)?;
                say!("{kind} {name}: put right");
            }
        }
    }
    Ok(())
}

/// A binding that goes takes every object of its kinds along: that is not done in passing.
async fn refuse_to_unbind(cluster: &Cluster, path: &WorkspacePath) -> Result<()> {
    for name in [inventory::COMPUTE_BINDING, inventory::DENATURED_BINDING] {
        let found: Result<Option<Value>, _> =
            get(cluster, key("", "apis.kcp.io", "apibindings", "", name)).await;
        let found = found
            .map_err(|fault| before_writing(&format!("the APIBindings of {path} cannot be read"), &fault))?;
        if found.is_some() {
            return Err(refusal(format!(
                "{path} has the APIBinding {name}, and without it every object of its kinds is deleted; if that is meant, \
                 run `kubectl delete apibinding {name}` there"
            )));
        }
    }
    Ok(())
}

/// A workspace by its name below the root, or by its whole path.
pub(crate) fn below_root(name: &str) -> Result<WorkspacePath> {
    let path = if name.contains(':') || name == ROOT { name.to_owned() } else { format!("{ROOT}:{name}") };
    let path = WorkspacePath::parse(&path).map_err(|bad| refusal(bad.to_string()))?;
    path.parent().map_err(|bad| refusal(bad.to_string()))?;
    Ok(path)
}
