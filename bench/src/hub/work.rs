//! The same work on any server: create, get, list, and watch by many.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use mailboat_cluster::{Cluster, Read, ReadMode, Transport as _};
use mailboat_object::wire::{Call, Part, Verb};
use mailboat_object::{ClusterId, Key, KindId, Name, Version};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

const VALUE_BYTES: usize = 512;
const FILLERS: usize = 32;
/// Everything that is listed is here,
const MANY: &str = "many";
/// and everything that is created one by one, read and watched here.
const FEW: &str = "few";
/// How long a watcher may need to hear of a change.
const HEARD_LIMIT: Duration = Duration::from_mins(1);

/// One server, and what was done to it so far.
pub struct Worked {
    cluster: Cluster,
    made: usize,
}

impl Worked {
    /// Makes the namespaces, and fills the one that is listed.
    pub async fn begin(cluster: Cluster, listed: usize) -> Result<Self> {
        let worked = Self { cluster, made: 0 };
        for name in [MANY, FEW] {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            worked.create(&key("namespaces", "", name), &namespace).await?;
        }
        worked.fill(MANY, (0..listed).map(|number| format!("listed-{number:05}"))).await?;
        Ok(worked)
    }

    /// Creates so many objects one after the other; how long each took.
    pub async fn create_each(&mut self, count: usize) -> Result<Vec<Duration>> {
        let mut took = Vec::with_capacity(count);
        for _ in 0..count {
            let name = self.fresh();
            let begun = Instant::now();
            self.create_map(FEW, &name).await?;
            took.push(begun.elapsed());
        }
        Ok(took)
    }

    /// Creates so many objects, many at once; how long it took for all of them.
    pub async fn create_together(&mut self, count: usize) -> Result<Duration> {
        let names: Vec<String> = (0..count).map(|_| self.fresh()).collect();
        let begun = Instant::now();
        self.fill(FEW, names.into_iter()).await?;
        Ok(begun.elapsed())
    }

    /// Reads an object so many times; how long each took.
    pub async fn get_each(&self, count: usize) -> Result<Vec<Duration>> {
        let mut took = Vec::with_capacity(count);
        for number in 0..count {
            let key = key("configmaps", MANY, &format!("listed-{:05}", number % 100));
            let begun = Instant::now();
            self.cluster.call(Call { key, verb: Verb::Get, part: Part::Whole, dry_run: false }).await?;
            took.push(begun.elapsed());
        }
        Ok(took)
    }

    /// Lists everything in one page; how long it took, and how many bytes it was.
    pub async fn list(&self) -> Result<(Duration, usize)> {
        let mode = ReadMode::Page { limit: 20_000, continue_token: None };
        let read = Read { namespace: Name::new(MANY), ..Read::all(config_maps(), mode) };
        let begun = Instant::now();
        let page = self.cluster.fetch(read).await?.whole().await?;
        Ok((begun.elapsed(), page.len()))
    }

    /// Lets many watch, and makes changes one by one; how long it took until the last of them had heard of each.
    pub async fn fan_out(&mut self, watchers: usize, changes: usize) -> Result<Vec<Duration>> {
        let mode = ReadMode::Page { limit: 1, continue_token: None };
        let page = self.cluster.fetch(Read::all(config_maps(), mode)).await?.whole().await?;
        let page: serde_json::Value = serde_json::from_slice(&page)?;
        let version = page["metadata"]["resourceVersion"].as_str().and_then(Version::parse);
        let from = version.context("the list has no version")?;
        let (heard, mut hear) = mpsc::unbounded_channel();
        let mut watching = JoinSet::new();
        for _ in 0..watchers {
            let mode = ReadMode::Watch { from, timeout_seconds: 600 };
            let read = Read { namespace: Name::new(FEW), ..Read::all(config_maps(), mode) };
            let mut lines = self.cluster.fetch(read).await?;
            let heard = heard.clone();
            watching.spawn(async move {
                while let Some(Ok(line)) = lines.next().await {
                    if !line.starts_with(br#"{"type":"BOOKMARK""#) && heard.send(()).is_err() {
                        return;
                    }
                }
            });
        }
        let mut took = Vec::new();
        for _ in 0..changes {
            let name = self.fresh();
            let begun = Instant::now();
            self.create_map(FEW, &name).await?;
            for _ in 0..watchers {
                let told = timeout(HEARD_LIMIT, hear.recv()).await;
                ensure!(matches!(told, Ok(Some(()))), "a watcher was not told of {name}");
            }
            took.push(begun.elapsed());
        }
        watching.shutdown().await;
        Ok(took)
    }

    async fn fill(&self, namespace: &str, names: impl Iterator<Item = String>) -> Result<()> {
        stream::iter(names)
            .map(|name| async move { self.create_map(namespace, &name).await })
            .buffer_unordered(FILLERS)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }

    async fn create_map(&self, namespace: &str, name: &str) -> Result<()> {
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": namespace }, "data": { "value": "x".repeat(VALUE_BYTES) } });
        self.create(&key("configmaps", namespace, name), &map).await
    }

    async fn create(&self, key: &Key, object: &serde_json::Value) -> Result<()> {
        let body: Arc<[u8]> = Arc::from(object.to_string().into_bytes());
        let verb = Verb::Create { body, manager: Name::new("bench") };
        self.cluster.call(Call { key: key.clone(), verb, part: Part::Whole, dry_run: false }).await?;
        Ok(())
    }

    fn fresh(&mut self) -> String {
        self.made += 1;
        format!("made-{:06}", self.made)
    }
}

fn config_maps() -> KindId {
    KindId::new("", "configmaps")
}

fn key(resource: &str, namespace: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::new("server"),
        kind: KindId::new("", resource),
        namespace: Name::new(namespace),
        name: Name::new(name),
    }
}
