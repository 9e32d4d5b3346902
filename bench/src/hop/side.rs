//! One of the two servers, with the namespace that is carried: written, emptied, and watched with a clock.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use mailboat_cluster::{Cluster, Connection, Settings, Source, Transport as _};
use mailboat_object::wire::{Call, Part, Verb};
use mailboat_object::{ClusterId, Key, Name};
use serde_json::json;

use super::NAMESPACE;
use super::watch::{self, Watch, config_maps, text_after};

const VALUE_BYTES: usize = 512;
const FILLERS: usize = 32;
/// Every namespace has this ConfigMap of its own where controllers run, and gets it again at once.
const ITS_OWN: &str = "kube-root-ca.crt";
/// All others, as a field selector.
const NOT_ITS_OWN: &str = "metadata.name!=kube-root-ca.crt";
/// So many looks until a namespace that is being emptied is empty.
const EMPTYING: usize = 60;

/// One server.
pub struct Side {
    /// How whoever carries reaches it.
    pub kubeconfig: PathBuf,
    client: Client,
    cluster: Cluster,
}

impl Side {
    /// The server that a kubeconfig leads to, where the namespace is made.
    pub async fn open(kubeconfig: PathBuf, client: Client) -> Result<Self> {
        let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } }))?;
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        let cluster = reach(&kubeconfig).await?;
        Ok(Self { kubeconfig, client, cluster })
    }

    /// Creates one ConfigMap of 512 bytes.
    pub async fn create(&self, name: &str) -> Result<()> {
        let mut value = String::with_capacity(VALUE_BYTES + name.len() + 1);
        while value.len() < VALUE_BYTES {
            write!(value, "{name} ")?;
        }
        value.truncate(VALUE_BYTES);
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": NAMESPACE }, "data": { "value": value } });
        let key = Key {
            cluster: ClusterId::new("side"),
            kind: config_maps(),
            namespace: Name::new(NAMESPACE),
            name: Name::new(name),
        };
        let verb = Verb::Create { body: Arc::from(serde_json::to_vec(&map)?), manager: Name::new("bench") };
        self.cluster.call(Call { key, verb, part: Part::Whole, dry_run: false }).await?;
        Ok(())
    }

    /// Creates many, quickly.
    pub async fn fill(&self, names: impl Iterator<Item = String>) -> Result<()> {
        let names: Vec<String> = names.collect();
        let made = stream::iter(&names).map(|name| self.create(name)).buffer_unordered(FILLERS);
        made.try_collect::<Vec<()>>().await?;
        Ok(())
    }

    /// Deletes every ConfigMap of the namespace.
    pub async fn empty(&self) -> Result<()> {
        let (maps, ours) = (self.maps(), ListParams::default().fields(NOT_ITS_OWN));
        for _ in 0..EMPTYING {
            // Large collections take a server longer than a request may last; what is left is deleted in the next one.
            drop(maps.delete_collection(&DeleteParams::default(), &ours).await);
            let left = maps.list_metadata(&ours).await?;
            if left.items.is_empty() {
                return Ok(());
            }
        }
        anyhow::bail!("the namespace {NAMESPACE} cannot be emptied")
    }

    /// Names and versions of all that is there.
    pub async fn versions(&self) -> Result<Vec<(Option<String>, Option<String>)>> {
        let listed = self.maps().list_metadata(&ListParams::default()).await?;
        Ok(listed.items.into_iter().map(|map| (map.metadata.name, map.metadata.resource_version)).collect())
    }

    /// How many requests to write ConfigMaps or namespaces the server has answered so far, by its own count.
    pub async fn writes(&self) -> Result<f64> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        let text = self.client.request_text(request).await?;
        let of_ours = |line: &&str| {
            line.starts_with("apiserver_request_total{")
                && ["configmaps", "namespaces"]
                    .iter()
                    .any(|one| line.contains(&format!("resource=\"{one}\"")))
                && !["GET", "LIST", "WATCH"].iter().any(|verb| line.contains(&format!("verb=\"{verb}\"")))
        };
        let numbers =
            text.lines().filter(of_ours).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(numbers.sum())
    }

    /// Watches from now on what comes to be here.
    pub async fn arrivals(&self) -> Result<Arrivals> {
        let version =
            self.maps().list_metadata(&ListParams::default().limit(1)).await?.metadata.resource_version;
        let version = watch::version(&version.context("a list without a version")?)?;
        let mut watch = Watch::from(self.cluster.clone(), version);
        watch.open().await?;
        Ok(Arrivals { watch, seen: HashMap::new() })
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }
}

/// What came to be at a side, and when that was seen.
pub struct Arrivals {
    watch: Watch,
    seen: HashMap<String, Instant>,
}

impl Arrivals {
    /// Waits until so many have come in all.
    pub async fn until(&mut self, number: usize, limit: Duration) -> Result<()> {
        let waiting = async {
            while self.seen.len() < number {
                let line = self.watch.next().await?;
                let now = Instant::now();
                if line.starts_with(br#"{"type":"ADDED""#) {
                    let name = text_after(&line, r#""name":""#).context("a line without a name")?;
                    if name != ITS_OWN {
                        self.seen.entry(name.to_owned()).or_insert(now);
                    }
                }
            }
            anyhow::Ok(())
        };
        let waited = tokio::time::timeout(limit, waiting).await;
        let came = self.seen.len();
        waited.with_context(|| format!("{came} of {number} came within {limit:?}"))?
    }

    /// When one came.
    pub fn at(&self, name: &str) -> Option<Instant> {
        self.seen.get(name).copied()
    }

    /// When the last one came.
    pub fn last(&self) -> Option<Instant> {
        self.seen.values().max().copied()
    }
}

/// A cluster, as whoever carries reaches it.
pub async fn reach(kubeconfig: &Path) -> Result<Cluster> {
    let source = Source::Kubeconfig { path: Some(kubeconfig.to_owned()), context: None };
    Ok(Connection::open(source, Settings::default()).await?.cluster())
}
