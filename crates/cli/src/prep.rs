//! `mailboat prep-for-syncer` and `prep-for-cluster`: from an edge's name to the manifest for its cluster.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser as _;
use mailboat_api::names::{MailboxName, annotation, group};
use mailboat_cluster::{Cluster, Transport as _};
use mailboat_object::key::KindId;
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_registration::workspace::WorkspacePath;
use serde_json::Value;

use crate::ensure::ensure_location;
use crate::failure::{before_writing, refusal};
use crate::flags::{Command, LocationArguments, Mailboat, PrepForClusterArguments, PrepForSyncerArguments};
use crate::output::Output;
use crate::place::{get, key};
use crate::site::{Site, passing, patiently};
use crate::syncer_gen;

/// Describes an edge, and goes on to its manifest.
pub async fn for_cluster(arguments: &PrepForClusterArguments) -> Result<()> {
    let location = LocationArguments {
        name: arguments.syncer.name.clone(),
        labels: arguments.labels.clone(),
        edge_kubeconfig: None,
        inventory: arguments.syncer.inventory.clone(),
    };
    // What cannot be written is found out before anything is made.
    drop(Output::open(&file(&arguments.syncer))?);
    ensure_location(&location).await?;
    for_syncer(&arguments.syncer).await
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
    syncer_gen::run(&generate(arguments, &mailbox)?).await
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

/// The same as `syncer-gen` would be told.
fn generate(
    arguments: &PrepForSyncerArguments,
    mailbox: &MailboxName,
) -> Result<crate::flags::SyncerGenArguments> {
    let mut words = vec![
        "mailboat".into(),
        "syncer-gen".into(),
        arguments.name.clone().into(),
        "--syncer-image".into(),
        arguments.syncer_image.clone().into(),
        "--output-file".into(),
        file(arguments).into_os_string(),
        "--mailbox".into(),
        mailbox.to_string().into(),
        "--provider-workspace".into(),
        arguments.inventory.provider_workspace.clone().into(),
    ];
    let server = &arguments.inventory.server;
    if let Some(path) = &server.kubeconfig {
        words.extend(["--kubeconfig".into(), path.clone().into_os_string()]);
    }
    if let Some(context) = &server.context {
        words.extend(["--context".into(), context.clone().into()]);
    }
    match Mailboat::try_parse_from(words).map(|mailboat| mailboat.command) {
        Ok(Command::SyncerGen(arguments)) => Ok(arguments),
        Ok(_) => Err(refusal("syncer-gen is not understood")),
        Err(bad) => Err(refusal(bad.to_string())),
    }
}
