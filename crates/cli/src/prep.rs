//! `mailboat prep-for-syncer` and `prep-for-cluster`: from an edge's name to the manifest for its cluster.

use std::path::PathBuf;

use anyhow::Result;
use mailboat_api::names::{MailboxName, annotation, group};
use mailboat_cluster::{Cluster, Transport as _};
use mailboat_object::key::KindId;
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_registration::account::ACCOUNT_NAMESPACE;
use mailboat_registration::workspace::WorkspacePath;
use serde_json::Value;

use crate::ensure::{ensure_imw, ensure_location};
use crate::failure::{before_writing, refusal};
use crate::flags::{
    CenterFlags, ImwArguments, InventoryFlags, LocationArguments, PrepForClusterArguments,
    PrepForSyncerArguments, SyncerGenArguments,
};
use crate::output::Output;
use crate::place::{get, key};
use crate::site::{Site, passing, patiently, workspace_key};
use crate::syncer_gen;

/// Describes an edge, and goes on to its manifest.
pub async fn for_cluster(arguments: &PrepForClusterArguments) -> Result<()> {
    let inventory = &arguments.syncer.inventory;
    let location = LocationArguments {
        name: arguments.syncer.name.clone(),
        labels: arguments.edge_labels.clone(),
        edge_kubeconfig: None,
        inventory: inventory.clone(),
    };
    // What cannot be written is found out before anything is made.
    drop(Output::open(&file(&arguments.syncer))?);
    if let Some(name) = &inventory.imw
        && is_missing(name, inventory).await?
    {
        let workspace = ImwArguments {
            name: name.clone(),
            kcp_kinds: false,
            provider_workspace: inventory.provider_workspace.clone(),
            server: inventory.server.clone(),
        };
        ensure_imw(&workspace).await?;
    }
    ensure_location(&location).await?;
    for_syncer(&arguments.syncer).await
}

/// Whether a workspace is known not to be there. Where its parent does not say so, whoever goes there is told what is wrong.
async fn is_missing(path: &str, inventory: &InventoryFlags) -> Result<bool> {
    let path = WorkspacePath::parse(path).map_err(|bad| refusal(bad.to_string()))?;
    let Ok(parent) = path.parent() else { return Ok(false) };
    let site = Site::reach(&inventory.server).await?;
    Ok(matches!(get::<Value>(&site.at(&parent), workspace_key(path.name())).await, Ok(None)))
}

/// Waits for an edge's mailbox, and registers its syncer there.
pub async fn for_syncer(arguments: &PrepForSyncerArguments) -> Result<()> {
    drop(Output::open(&file(arguments))?);
    let inventory = &arguments.inventory;
    let site = Site::reach(&inventory.server).await?;
    let (path, cluster) = site.named(inventory.imw.as_deref()).await?;
    let name = &arguments.name;
    let target = sync_target(&cluster, name).await.map_err(|fault| {
        before_writing(&format!("the SyncTarget {name} in {path} cannot be read"), &fault)
    })?;
    let target = target.ok_or_else(|| {
        refusal(format!(
            "there is no SyncTarget {name} in {path}; `ensure location {name} key=value` makes one"
        ))
    })?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mailbox = MailboxName {
        cluster: text(&target["metadata"]["annotations"][annotation::KCP_CLUSTER]),
        sync_target_uid: text(&target["metadata"]["uid"]),
    };
    let provider =
        WorkspacePath::parse(&inventory.provider_workspace).map_err(|bad| refusal(bad.to_string()))?;
    let mailbox_path = provider.child(&mailbox.to_string()).map_err(|bad| refusal(bad.to_string()))?;
    say!("waiting for the mailbox {mailbox_path}, which the center makes");
    let place = site.at(&mailbox_path);
    let config = KindId::new(group::EDGE, "edgesyncconfigs");
    patiently(&format!("there is no mailbox for {name} yet; does the center run?"), async || {
        place.stale();
        match place.served(&config).await {
            Ok(_) => Ok(()),
            // kcp answers so for a workspace that is not there.
            Err(fault) if fault.kind == FaultKind::Forbidden => Err(passing(&fault.text)),
            Err(fault) => Err(fault),
        }
    })
    .await?;
    syncer_gen::run(&generate(arguments, &mailbox)).await
}

/// A SyncTarget of ours, or else one of kcp's own group. A workspace may serve either alone.
async fn sync_target(cluster: &Cluster, name: &str) -> Result<Option<Value>, Fault> {
    let mut unserved = None;
    for group in [group::EDGE, group::WORKLOAD] {
        match get(cluster, key("", group, "synctargets", "", name)).await {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => unserved = Some(Ok(None)),
            Err(fault) if fault.kind == FaultKind::Unserved => {
                unserved.get_or_insert(Err(fault));
            }
            Err(fault) => return Err(fault),
        }
    }
    unserved.unwrap_or(Ok(None))
}

/// Where the manifest goes.
fn file(arguments: &PrepForSyncerArguments) -> PathBuf {
    let named = arguments.output_file.clone();
    named.unwrap_or_else(|| PathBuf::from(format!("{}-syncer.yaml", arguments.name)))
}

/// What `syncer-gen` would be told.
fn generate(arguments: &PrepForSyncerArguments, mailbox: &MailboxName) -> SyncerGenArguments {
    let inventory = &arguments.inventory;
    SyncerGenArguments {
        name: arguments.name.clone(),
        syncer_image: arguments.syncer_image.clone(),
        output_file: file(arguments),
        options: arguments.options.clone(),
        center: CenterFlags {
            kubeconfig: inventory.server.kubeconfig.clone(),
            context: inventory.server.context.clone(),
            mailbox: Some(mailbox.to_string()),
            provider_workspace: inventory.provider_workspace.clone(),
            kcp_namespace: ACCOUNT_NAMESPACE.to_owned(),
        },
    }
}
