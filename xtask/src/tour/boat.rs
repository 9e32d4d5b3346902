//! Connections, followers and the engine for the tour, and what it wants to know of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mailboat_cluster::{Connection, Settings, Source, Transport};
use mailboat_engine::engine::{Engine, Options};
use mailboat_engine::plan::Verdict;
use mailboat_engine::route::{Destination, DestinationId, Route};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::{Keep, Limits, Object};
use mailboat_object::wire::{Call, Part, Propagation, Verb};
use mailboat_runner::{Carrier, Followers, Follows};
use mailboat_store::store::Nature;
use mailboat_store::{EndpointId, FeedId, Filter, PlaceId, Seen, Store};
use serde_json::json;

use super::route::{LABEL, TourRoute, owner};

const MANAGER: &str = "mailboat-tour";
/// Longer than anything on the tour takes on a busy machine.
const LIMIT: Duration = Duration::from_mins(1);
/// How often a condition is looked at; what it waits for arrives by watch meanwhile.
const GLANCE: Duration = Duration::from_millis(2);

/// Everything that carries the tour's objects.
pub(crate) struct Boat {
    followers: Followers,
    carrier: Carrier,
    ways: Vec<(ClusterId, Arc<dyn Transport>)>,
    edges: Vec<ClusterId>,
}

impl Boat {
    /// Connects to a workspace and to edges, and begins to carry.
    pub(crate) async fn launch(center: (&str, &Path), edges: &[(&str, PathBuf)]) -> Result<Self> {
        let engine = Engine::new(
            owner(),
            Name::new(MANAGER),
            vec![Arc::new(mailboat_engine::mark::StandardMarks::new(owner()))],
            Options::default(),
        );
        let followers = Followers::new(Store::new(), mailboat_store::Settings::default(), 1);
        let mut boat = Self { followers, carrier: Carrier::new(engine), ways: Vec::new(), edges: Vec::new() };
        let from = boat.reach(center.0, center.1).await?;
        let mut destinations = Vec::new();
        for (number, (name, kubeconfig)) in (0..).zip(edges) {
            let cluster = boat.reach(name, kubeconfig).await?;
            let id = DestinationId(number);
            boat.carrier.engine_mut().destination(Destination { id, cluster: cluster.clone() });
            boat.edges.push(cluster);
            destinations.push(id);
        }
        let route = TourRoute::new(&from, destinations.into());
        let id = route.id().clone();
        boat.carrier.engine_mut().configure(boat.followers.store(), &id, Some(Arc::new(route)));
        boat.carrier.engine_mut().configuration_known(Some(1));
        Ok(boat)
    }

    async fn reach(&mut self, name: &str, kubeconfig: &Path) -> Result<ClusterId> {
        let cluster = ClusterId::new(name);
        let source = Source::Kubeconfig { path: Some(kubeconfig.to_owned()), context: None };
        let way: Arc<dyn Transport> =
            Arc::new(Connection::open(source, Settings::default()).await?.cluster());
        let (place, endpoint) = (PlaceId(cluster.0.clone()), EndpointId::new("server"));
        let mut news = Vec::new();
        let store = self.followers.store_mut();
        store.open(&place, Nature::Whole(cluster.clone()), [endpoint.clone()], &mut news);
        for resource in ["configmaps", "namespaces"] {
            let follows = Follows {
                id: FeedId {
                    place: place.clone(),
                    endpoint: endpoint.clone(),
                    kind: KindId::new("", resource),
                },
                filter: Filter::All,
                keep: Keep::Whole,
                manager: Name::new(MANAGER),
                limits: Limits::default(),
            };
            self.followers.follow(follows, Arc::clone(&way), &mut news)?;
        }
        self.carrier.learn(&mut news, &mut self.followers);
        self.carrier.reach(&cluster, Arc::clone(&way));
        self.ways.push((cluster.clone(), way));
        Ok(cluster)
    }

    /// Writes a labelled ConfigMap somewhere, as a user would; `None` deletes it.
    pub(crate) async fn write(&mut self, cluster: &str, name: &str, text: Option<&str>) -> Result<()> {
        let key = key(cluster, name);
        let verb = match text {
            Some(text) => {
                let body = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": { "name": name, "namespace": "default", "labels": { LABEL: "yes" } },
                    "data": { "text": text },
                });
                Verb::Apply { body: bytes(&body), manager: Name::new("visitor"), force: true }
            }
            None => match self.followers.store().get(&key) {
                Seen::Present(object) => Verb::Delete {
                    uid: object.uid.clone(),
                    version: None,
                    propagation: Propagation::Background,
                },
                Seen::Absent(_) | Seen::Unknown(_) => bail!("{key} is not there to be deleted"),
            },
        };
        self.call(key, verb).await
    }

    /// Puts an object somewhere that has nothing to do with us.
    pub(crate) async fn plant(&mut self, cluster: &str, name: &str, text: &str) -> Result<()> {
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "default" }, "data": { "text": text },
        });
        self.call(key(cluster, name), Verb::Create { body: bytes(&body), manager: Name::new("somebody") })
            .await
    }

    async fn call(&mut self, key: Key, verb: Verb) -> Result<()> {
        let way =
            self.ways.iter().find(|(cluster, _)| *cluster == key.cluster).map(|(_, way)| Arc::clone(way));
        let way = way.context("the cluster is not part of the tour")?;
        way.call(Call { key, verb, part: Part::Whole, dry_run: false }).await?;
        Ok(())
    }

    /// Waits until every edge has this text, or with `None` nothing, and says how long that took.
    pub(crate) async fn until_both_have(&mut self, name: &str, text: Option<&str>) -> Result<Duration> {
        let keys: Vec<Key> =
            self.edges.iter().map(|edge| Key { cluster: edge.clone(), ..key("", name) }).collect();
        self.until(&format!("{name} at both edges"), |boat| keys.iter().all(|key| boat.has(key, text))).await
    }

    /// Lets somebody meddle with a copy, and waits until it is right again: how long that took.
    pub(crate) async fn until_put_right(&mut self, edge: &str, name: &str, text: &str) -> Result<Duration> {
        let key = key(edge, name);
        let version = |boat: &Self| boat.followers.store().get(&key).present().map(|object| object.version);
        let before = version(self);
        self.write(edge, name, Some("meddled with")).await?;
        let begun = Instant::now();
        // The store shows the copy as it was until the change arrives, so wait for two changes: theirs and ours.
        self.until(&format!("the meddling with {key} to be seen"), |boat| version(boat) > before).await?;
        self.until(&format!("{key} to be put right"), |boat| boat.has(&key, Some(text))).await?;
        Ok(begun.elapsed())
    }

    /// Waits until one edge has this text.
    pub(crate) async fn until_has(&mut self, edge: &str, name: &str, text: Option<&str>) -> Result<Duration> {
        let key = key(edge, name);
        self.until(&format!("{name} at {edge}"), |boat| boat.has(&key, text)).await
    }

    /// Waits until a copy is refused, and explains it.
    pub(crate) async fn until_refused(&mut self, edge: &str, name: &str) -> Result<String> {
        self.until_verdict(edge, name, |verdict| matches!(verdict, Verdict::Refused(_))).await
    }

    /// Waits until a copy waits for something, and explains it.
    pub(crate) async fn until_waiting(&mut self, edge: &str, name: &str) -> Result<String> {
        self.until_verdict(edge, name, |verdict| matches!(verdict, Verdict::Waiting(_))).await
    }

    async fn until_verdict(&mut self, edge: &str, name: &str, fits: fn(&Verdict) -> bool) -> Result<String> {
        let key = key(edge, name);
        self.until(&format!("a verdict on {key}"), |boat| {
            boat.carrier.engine().verdict(&key).is_some_and(fits)
        })
        .await?;
        let now = self.followers.now().mono.0;
        let told = self.carrier.engine().explain(now, self.followers.store(), &key);
        Ok(told.map(|told| told.to_string()).unwrap_or_default())
    }

    fn has(&self, key: &Key, text: Option<&str>) -> bool {
        match (self.followers.store().get(key), text) {
            (Seen::Present(object), Some(text)) => text_of(object).as_deref() == Some(text),
            (Seen::Absent(_), None) => true,
            _ => false,
        }
    }

    async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) -> Result<Duration> {
        let begun = Instant::now();
        while !holds(self) {
            if begun.elapsed() > LIMIT {
                bail!("waited {LIMIT:?} in vain for {what}");
            }
            self.run_for(GLANCE).await;
        }
        Ok(begun.elapsed())
    }

    /// Carries on for so long.
    pub(crate) async fn run_for(&mut self, time: Duration) {
        self.carrier.run(&mut self.followers, tokio::time::sleep(time)).await;
    }

    /// How often anything that we carry is written in so long.
    pub(crate) async fn writes_in(&mut self, time: Duration) -> u64 {
        let before = self.carrier.engine().calls();
        self.run_for(time).await;
        self.carrier.engine().calls() - before
    }
}

fn key(cluster: &str, name: &str) -> Key {
    Key {
        cluster: ClusterId::new(cluster),
        kind: KindId::new("", "configmaps"),
        namespace: Name::new("default"),
        name: Name::new(name),
    }
}

fn text_of(object: &Object) -> Option<String> {
    Some(object.get(&["data", "text"])?.as_str()?.into_owned())
}

fn bytes(value: &serde_json::Value) -> Arc<[u8]> {
    Arc::from(value.to_string().into_bytes())
}
