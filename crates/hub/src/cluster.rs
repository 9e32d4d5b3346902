//! A hub as one plain cluster.

use mailboat_machinery::{Flavor, Settings, WriteOptions};
use mailboat_object::{ClusterId, Key, KindId, Name};
use serde_json::json;

use crate::catalog::{self, BadCatalog};
use crate::hub::{Hub, now_seconds};
use crate::storage::{self, Ledger, Storage, StorageError};

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// The name of the one cluster, which nobody sees.
const CLUSTER: &str = "cluster";

/// Why a hub cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The program was put together wrongly.
    #[error(transparent)]
    Catalog(#[from] BadCatalog),
    /// What it keeps cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The thread that stores cannot be started.
    #[error("the storage cannot be started: {0}")]
    Start(#[from] std::io::Error),
    /// What every server has cannot be made.
    #[error("what every cluster has cannot be made: {0}")]
    First(#[from] mailboat_machinery::Status),
}

/// Opens a server that is one cluster, with the kinds of Kubernetes.
pub async fn cluster(mut storage: impl Storage) -> Result<Hub, OpenError> {
    let id = ClusterId::new(CLUSTER);
    let settings = Settings { flavor: Flavor::Kubernetes, ..Settings::default() };
    let mut machine = storage::load(&mut storage, settings)?;
    machine.serve(&id, catalog::kinds()?);
    let hub = Hub::new(Ledger::new(machine, storage)?, id.clone());
    // Kinds are served by what is stored of their definitions.
    hub.write(|machine, moment| {
        machine.follow_definitions(&id, moment);
        Ok(())
    })
    .await?;
    for name in NAMESPACES {
        let key = Key {
            cluster: id.clone(),
            kind: KindId::new("", "namespaces"),
            namespace: Name::EMPTY,
            name: Name::new(name),
        };
        if hub.read(|machine| Ok(machine.get(&key).is_ok())).await? {
            continue;
        }
        let body = json!({ "metadata": { "name": name } });
        let options = WriteOptions { manager: Name::new("mailboat-hub"), ..WriteOptions::default() };
        hub.write(|machine, moment| machine.create(&key, body, &options, moment)).await?;
    }
    tracing::debug!(at = now_seconds(), "the cluster is ready");
    Ok(hub)
}
