//! What happens in all workspaces of a center, as its views tell it.

use anyhow::{Context, Result, bail};
use mailboat_api::names::{export, group};
use mailboat_cluster::{Cluster, Read, ReadMode, Transport as _};
use mailboat_object::{KindId, Version};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::LIMIT;
use super::users::Users;

/// Copies, slices and SyncerConfigs, watched from some moment on.
pub struct Watching {
    heard: mpsc::UnboundedReceiver<Event>,
    _watches: JoinSet<()>,
}

/// Something that happened to an object.
pub struct Event {
    /// Its resource.
    pub resource: &'static str,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub how: String,
    /// The object.
    pub object: Value,
}

impl Event {
    /// The cluster that the object is in.
    pub fn cluster(&self) -> &str {
        self.object["metadata"]["annotations"]["kcp.io/cluster"].as_str().unwrap_or_default()
    }

    /// A member of its metadata.
    pub fn metadata(&self, member: &str) -> &str {
        self.object["metadata"][member].as_str().unwrap_or_default()
    }
}

impl Watching {
    /// Watches from now on.
    pub async fn begin(users: &Users) -> Result<Self> {
        let (tell, heard) = mpsc::unbounded_channel();
        let mut watches = JoinSet::new();
        for (view, group, resource) in [
            (export::MAILBOX, "", "configmaps"),
            (export::EDGE, group::EDGE, "singleplacementslices"),
            (export::EDGE, group::EDGE, "syncerconfigs"),
        ] {
            let (view, kind) = (users.view(view).await?, KindId::new(group, resource));
            let from = version_of(&view, &kind).await?;
            let mode = ReadMode::Watch { from, timeout_seconds: 3_000 };
            let mut lines = view.fetch(Read::all(kind, mode)).await?;
            let tell = tell.clone();
            watches.spawn(async move {
                while let Some(Ok(line)) = lines.next().await {
                    let Ok(mut event) = serde_json::from_slice::<Value>(&line) else { return };
                    let how = event["type"].as_str().unwrap_or_default().to_owned();
                    let object = event["object"].take();
                    if how != "BOOKMARK" && tell.send(Event { resource, how, object }).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self { heard, _watches: watches })
    }

    /// Waits until what happens has completed something.
    pub async fn until(&mut self, what: &str, mut completes: impl FnMut(&Event) -> bool) -> Result<()> {
        let all = async {
            while let Some(event) = self.heard.recv().await {
                if completes(&event) {
                    return Ok(());
                }
            }
            bail!("a watch ended")
        };
        timeout(LIMIT, all).await.with_context(|| format!("{what} does not come about"))?
    }

    /// Forgets what happened so far.
    pub fn forget(&mut self) {
        while self.heard.try_recv().is_ok() {}
    }
}

/// The version of a server, which counts its writes.
pub async fn version_of(at: &Cluster, kind: &KindId) -> Result<Version> {
    let mode = ReadMode::Page { limit: 1, continue_token: None };
    let page = at.fetch(Read::all(kind.clone(), mode)).await?.whole().await?;
    let page: Value = serde_json::from_slice(&page)?;
    let version = page["metadata"]["resourceVersion"].as_str().and_then(Version::parse);
    version.context("the list has no version")
}
