//! A hub in this process.

use anyhow::Result;
use mailboat_hub::access::Authority;
use mailboat_hub::storage::{Disk, Memory};
use mailboat_hub::workloads::Settings;
use mailboat_hub::{OpenError, Opened, Options, Server};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::folder::Folder;
use super::kubeconfig::Entry;
use crate::failure::refusal;
use crate::flags::HubMode;
use crate::hub;

/// A hub that serves.
pub(super) struct Embedded {
    url: String,
    authority: Authority,
    /// Done when it has stopped.
    pub(super) serving: JoinHandle<()>,
}

impl Embedded {
    /// Starts a hub, which serves until it is told to stop.
    pub(super) async fn start(
        folder: &Folder,
        name: &str,
        mode: HubMode,
        stop: watch::Receiver<bool>,
    ) -> Result<Self> {
        let listener = folder.listen(name).await?;
        let url = format!("https://{}", listener.local_addr()?);
        let options = Options { url: url.clone(), ..Options::default() };
        let opened = match folder.data_of(name) {
            Some(data) => {
                let disk = Disk::open(&data).map_err(|error| refusal(error.to_string()))?;
                hub::open(mode, disk, options).await
            }
            None => hub::open(mode, Memory::default(), options).await,
        };
        let Opened { hub, authority } = opened.map_err(|error| match error {
            OpenError::Storage(_) | OpenError::Authority(_) => refusal(error.to_string()),
            error => error.into(),
        })?;
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let tls = authority.server_config(&names).map_err(|error| refusal(error.to_string()))?;
        let mut server = Server::new(hub, tls, listener);
        if mode == HubMode::Cluster {
            let root_ca = authority.certificate_pem().to_owned();
            server = server.with_workloads(Settings { root_ca, ..Settings::default() }, 0);
        }
        Ok(Self { url, authority, serving: tokio::spawn(server.serve(super::told(stop))) })
    }

    /// How a user in a group reaches it.
    pub(super) fn entry(&self, user: &str, group: &str) -> Result<Entry> {
        let certified = self.authority.certify(user, Some(group))?;
        Ok(Entry::certified(&self.url, self.authority.certificate_pem(), &certified))
    }
}
