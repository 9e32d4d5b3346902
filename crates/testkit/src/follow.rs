//! What the players see of a cluster: all objects of one kind, kept current by a watch.
//!
//! Small on purpose, and the players' own: what Mailboat itself uses for this is what tests are about.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::{Asking, Result};

/// A server that was killed or paused is asked again after this long.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(250);

/// Namespace (empty where there is none) and name.
pub(crate) type Key = (String, String);

/// Every object of a kind at one moment.
pub(crate) type Snapshot<K> = Arc<BTreeMap<Key, Arc<K>>>;

/// A kind that is followed until this is dropped.
#[derive(Debug)]
pub(crate) struct Followed<K> {
    snapshots: watch::Receiver<Snapshot<K>>,
    follower: JoinHandle<()>,
}

impl<K> Followed<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Follows what `fields`, a field selector, leaves of a kind. Returns when the first list has arrived.
    pub(crate) async fn start(api: Api<K>, fields: Option<&str>) -> Result<Self> {
        // The follower itself would ask a server for ever that refuses, and nobody would know why.
        let allowed = api.list(&ListParams::default().limit(1)).await;
        allowed.asking(|| format!("listing {}", api.resource_url()))?;
        let (sender, mut snapshots) = watch::channel(Snapshot::default());
        let follower = tokio::spawn(follow(api, fields.map(str::to_owned), sender));
        // It cannot end before this does, and if it did, there would be nothing to see.
        let _ = snapshots.changed().await;
        Ok(Self { snapshots, follower })
    }

    /// Snapshots as they change. The one that stands now does not count as a change.
    pub(crate) fn snapshots(&self) -> watch::Receiver<Snapshot<K>> {
        self.snapshots.clone()
    }
}

impl<K> Drop for Followed<K> {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

async fn follow<K>(api: Api<K>, fields: Option<String>, sender: watch::Sender<Snapshot<K>>)
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    while !sender.is_closed() {
        // Whatever went wrong, a new list puts it right.
        let _ = list_and_watch(&api, fields.as_deref(), &sender).await;
        tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
    }
}

async fn list_and_watch<K>(
    api: &Api<K>,
    fields: Option<&str>,
    sender: &watch::Sender<Snapshot<K>>,
) -> kube::Result<()>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let mut list_params = ListParams::default();
    let mut watch_params = WatchParams::default();
    if let Some(fields) = fields {
        list_params = list_params.fields(fields);
        watch_params = watch_params.fields(fields);
    }
    let listed = api.list(&list_params).await?;
    let version = listed.metadata.resource_version.unwrap_or_default();
    let mut objects: BTreeMap<Key, Arc<K>> =
        listed.items.into_iter().map(|object| (key(&object), Arc::new(object))).collect();
    sender.send_replace(Arc::new(objects.clone()));
    let mut events = std::pin::pin!(api.watch(&watch_params, &version).await?);
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                objects.insert(key(&object), Arc::new(object));
            }
            WatchEvent::Deleted(object) => {
                objects.remove(&key(&object));
            }
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(_) => break,
        }
        sender.send_replace(Arc::new(objects.clone()));
    }
    Ok(())
}

fn key<K: Resource>(object: &K) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}
