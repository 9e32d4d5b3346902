//! The smallest process that carries: labelled ConfigMaps of one namespace, from one edge to another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ListParams, PostParams};
use mailboat_cluster::{Catalog, Lines, Read, Transport};
use mailboat_engine::engine::{Engine, Notice, Options};
use mailboat_engine::mark::StandardMarks;
use mailboat_engine::role::{CallId, Ground, Order, Role, Turn};
use mailboat_engine::route::{Destination, DestinationId, Route as _};
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::wire::{Abilities, Call, Fault, Reply, Verb};
use mailboat_runner::Process;
use mailboat_store::{Filter, Interest, Keep, News, Now, PlaceId, Store};
use mailboat_testkit::{ADMIN, EdgeSpec, World, wait_until};
use serde_json::json;

use crate::killed::carrier::{LABEL, MANAGER, NAMESPACE, TrialRoute, owner};
use crate::rig::{SOON, patient};
use crate::waters::config_maps;

pub(crate) const SOURCE: &str = "source";
pub(crate) const TARGET: &str = "target";

/// Two edges, and the namespace on both.
pub(crate) struct Waters {
    pub(crate) world: World,
    source: Api<ConfigMap>,
    target: Api<ConfigMap>,
}

impl Waters {
    pub(crate) async fn fill() -> Self {
        let world = World::builder().edge_with(EdgeSpec::bare(SOURCE)).edge_with(EdgeSpec::bare(TARGET));
        let world = world.start().await.unwrap_or_else(|error| panic!("{error}"));
        let mut sides = Vec::new();
        for name in [SOURCE, TARGET] {
            let client = world.edge(name).client(ADMIN).await.unwrap();
            let wanted: Namespace =
                serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } })).unwrap();
            Api::all(client.clone()).create(&PostParams::default(), &wanted).await.unwrap();
            sides.push(Api::namespaced(client, NAMESPACE));
        }
        let [source, target] = sides.try_into().unwrap_or_else(|_| panic!("two sides"));
        Self { world, source, target }
    }

    /// Puts so many more ConfigMaps in at the source.
    pub(crate) async fn put(&self, group: &str, count: usize) {
        for number in 0..count {
            let wanted = json!({ "metadata": { "name": format!("{group}-{number}"), "labels": { LABEL: "yes" } }, "data": { "cargo": "rope" } });
            let wanted: ConfigMap = serde_json::from_value(wanted).unwrap();
            self.source.create(&PostParams::default(), &wanted).await.unwrap();
        }
    }

    /// Puts a ConfigMap of somebody else where one of a group would go.
    pub(crate) async fn occupy(&self, name: &str) {
        let theirs: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        self.target.create(&PostParams::default(), &theirs).await.unwrap();
    }

    /// What stands at the target, and which object it is.
    pub(crate) async fn uids(&self) -> BTreeMap<String, String> {
        let listed = self.target.list(&ListParams::default()).await.unwrap();
        let uid = |map: ConfigMap| Some((map.metadata.name?, map.metadata.uid?));
        listed.items.into_iter().filter_map(uid).collect()
    }

    /// Waits until all of a group stand at the target.
    pub(crate) async fn until_carried(&self, group: &str, count: usize) {
        let prefix = format!("{group}-");
        wait_until(format!("{count} of {group} at the target"), SOON, || async {
            let listed = self.target.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let names = listed.items.iter().filter_map(|map| map.metadata.name.as_deref());
            let carried = names.filter(|name| name.starts_with(&prefix)).count();
            if carried == count { Ok(()) } else { Err(format!("{carried}")) }
        })
        .await
        .unwrap();
    }
}

/// A process between two places.
pub(crate) fn process(source: Arc<dyn Transport>, target: Arc<dyn Transport>) -> Process<Ferry> {
    let marks = StandardMarks::new(owner());
    let engine = Engine::new(owner(), Name::new(MANAGER), vec![Arc::new(marks)], Options::default());
    let mut process = Process::new(Ferry { introduced: false }, engine, Name::new(MANAGER), patient(), 7);
    process.place(&PlaceId::new(SOURCE), &ClusterId::new(SOURCE), source);
    process.place(&PlaceId::new(TARGET), &ClusterId::new(TARGET), target);
    process
}

pub(crate) struct Ferry {
    introduced: bool,
}

impl Role for Ferry {
    fn observe(&mut self, _: Now, _: &Store, _: &News) {}

    fn served(&mut self, _: &PlaceId, _: &Arc<Catalog>) {}

    fn noticed(&mut self, _: &Notice) {}

    fn answered(&mut self, _: Now, _: CallId, _: Result<Reply, Fault>) {}

    fn looked(&mut self, _: Now, _: CallId, _: Result<Ground, Fault>) {}

    fn next(&mut self, _: Now, _: &Store, _: &Engine) -> Turn {
        if std::mem::replace(&mut self.introduced, true) {
            return Turn::default();
        }
        let mut interests = Vec::new();
        for place in [SOURCE, TARGET] {
            for kind in [config_maps(), KindId::new("", "namespaces")] {
                let place = PlaceId::new(place);
                interests.push(Interest { place, kind, filter: Filter::All, keep: Keep::Whole });
            }
        }
        let to = DestinationId(0);
        let route = TrialRoute::new(&ClusterId::new(SOURCE), to);
        let orders = vec![
            Order::Follow(interests),
            Order::Destination(Destination { id: to, cluster: ClusterId::new(TARGET) }),
            Order::Configure(route.head().id.clone(), Some(Arc::new(route))),
            Order::ConfigurationKnown(Some(1)),
        ];
        Turn { orders, wake: None }
    }
}

/// Who wrote when, in order.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<Vec<(Instant, &'static str)>>>);

impl Ledger {
    pub(crate) fn writers(&self) -> Vec<(Instant, &'static str)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A way whose writes are noted under this name at the moment that they are sent.
    pub(crate) fn noting(&self, who: &'static str, way: Arc<dyn Transport>) -> Arc<dyn Transport> {
        Arc::new(Noting { way, who, ledger: self.clone() })
    }
}

struct Noting {
    way: Arc<dyn Transport>,
    who: &'static str,
    ledger: Ledger,
}

impl Transport for Noting {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
        let writes = !matches!(call.verb, Verb::Get | Verb::GetAt(_)) && !call.dry_run;
        let (ledger, who) = (Arc::clone(&self.ledger.0), self.who);
        let sent = self.way.call(call);
        async move {
            if writes {
                ledger.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), who));
            }
            sent.await
        }
        .boxed()
    }

    fn fetch(&self, read: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
        self.way.fetch(read)
    }

    fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>> {
        self.way.catalog()
    }

    fn stale(&self) {
        self.way.stale();
    }

    fn abilities(&self) -> Abilities {
        self.way.abilities()
    }
}
