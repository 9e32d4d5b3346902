//! A center in memory: one workspace of sources, ten thousand mailboxes seen through one view, and an engine between
//! them. The servers answer at once, so that all time and memory is ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use mailboat_engine::engine::{Engine, Next, Options};
use mailboat_engine::mark::{Marks, OwnerId, StandardMarks};
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Body, Hold, Origin, Policy, Want};
use mailboat_object::wire::{Abilities, Call, Reply, Verb};
use mailboat_object::{ClusterId, Keep, Key, KindId, Limits, Name, Object};
use mailboat_store::{
    Definition, EndpointId, FeedId, Filter, Follower, Input, Moment, Nature, News, Now, PlaceId, Settings,
    Store,
};
use serde_json::{Value, json};

const MANAGER: &str = "mailboat-center";
const NAMESPACE: &str = "till";
/// The workspace of the sources.
const WORKLOAD: &str = "1workloadworkspc";

/// How a source becomes a want at one destination.
pub type Change = fn(&Object, &Destination) -> Result<Body, String>;

/// What a fleet is made of.
#[derive(Clone, Copy)]
pub struct Plan {
    /// How many mailboxes.
    pub edges: usize,
    /// How many sources, each of which goes to every mailbox.
    pub sources: usize,
    /// The kind of the sources: group, resource, version and name.
    pub kind: (&'static str, &'static str, &'static str, &'static str),
    /// One source; its metadata is filled in.
    pub source: fn(usize) -> Value,
    /// What becomes of it on the way.
    pub change: Change,
    /// Whether that depends on where it goes.
    pub varies: bool,
}

/// The fleet.
pub struct Fleet {
    plan: Plan,
    store: Store,
    engine: Engine,
    sources: Follower,
    copies: Follower,
    version: u64,
    route: Arc<Translation>,
    projections: Arc<AtomicU64>,
    calls: u64,
}

impl Fleet {
    /// Everything is listed and the route configured; nothing is delivered yet.
    pub fn new(plan: Plan) -> Result<Self> {
        let owner = OwnerId(Name::new("center"));
        let marks: Arc<dyn Marks> = Arc::new(StandardMarks::new(owner.clone()));
        let mut engine = Engine::new(owner, Name::new(MANAGER), vec![Arc::clone(&marks)], Options::default());
        let mut store = Store::new();
        let mut news = Vec::new();
        let (workload, mailboxes) = (PlaceId::new("workload"), PlaceId::new("mailboxes"));
        let endpoint = EndpointId::new("shard");
        store.open(&workload, Nature::Whole(ClusterId::new(WORKLOAD)), [endpoint.clone()], &mut news);
        store.open(&mailboxes, Nature::View, [endpoint.clone()], &mut news);
        let kind = KindId::new(plan.kind.0, plan.kind.1);
        let follow =
            |store: &mut Store, news: &mut Vec<News>, place: &PlaceId, kind: &KindId, keep, page: &Value| {
                let definition = Definition {
                    api_version: Name::new(plan.kind.2),
                    kind_name: Name::new(plan.kind.3),
                    manager: Name::new(MANAGER),
                    filter: Filter::All,
                    keep,
                    limits: Limits::default(),
                };
                let feed = FeedId { place: place.clone(), endpoint: endpoint.clone(), kind: kind.clone() };
                let mut follower = Follower::new(feed, definition, Settings::default(), 1, store, news)
                    .map_err(|unopened| anyhow::anyhow!("{unopened}"))?;
                drop(follower.next(now()));
                follower.feed(now(), follower.turn(), Input::Page(page.to_string().as_bytes()), store, news);
                drop(follower.next(now()));
                let opened = Input::Opened { new_connection: false };
                follower.feed(now(), follower.turn(), opened, store, news);
                anyhow::Ok(follower)
            };
        let bindings = KindId::new("apis.kcp.io", "apibindings");
        let page = list((0..plan.edges).map(|edge| binding(edge, &plan)));
        follow(&mut store, &mut news, &mailboxes, &bindings, Keep::Head, &page)?;
        let namespaces = KindId::new("", "namespaces");
        let page = list((0..plan.edges).map(namespace));
        follow(&mut store, &mut news, &mailboxes, &namespaces, Keep::Head, &page)?;
        // Sources before targets: what is wanted is known before what is there.
        let page = list((0..plan.sources).map(|number| source(&plan, number, 1)));
        let sources = follow(&mut store, &mut news, &workload, &kind, Keep::Whole, &page)?;
        let copies = follow(&mut store, &mut news, &mailboxes, &kind, Keep::Head, &list(std::iter::empty()))?;
        for edge in 0..plan.edges {
            let cluster = ClusterId::new(&mailbox(edge));
            engine.cluster(cluster.clone(), Abilities { apply: true, whole: true });
            engine.destination(Destination { id: DestinationId(u32::try_from(edge)?), cluster });
        }
        let projections = Arc::default();
        let route = Translation {
            head: RouteHead::new(Name::new("placement")).reading([Sources {
                place: workload,
                cluster: Some(ClusterId::new(WORKLOAD)),
                kind,
            }]),
            to: (0..plan.edges).filter_map(|edge| u32::try_from(edge).ok()).map(DestinationId).collect(),
            policy: Arc::new(Policy::plain(marks)),
            change: plan.change,
            varies: plan.varies,
            projections: Arc::clone(&projections),
        };
        for piece in &news {
            engine.observe(&store, piece);
        }
        let route = Arc::new(route);
        engine.configure(&store, &route.head.id.clone(), Some(route.clone()));
        engine.configuration_known(Some(1));
        Ok(Self { plan, store, engine, sources, copies, version: 10, route, projections, calls: 0 })
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What is known.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// How often something was projected since this was last asked.
    pub fn projections(&self) -> u64 {
        self.projections.swap(0, Ordering::Relaxed)
    }

    /// How many calls were answered since this was last asked.
    pub fn calls(&mut self) -> u64 {
        std::mem::take(&mut self.calls)
    }

    /// Runs until there is nothing left to do.
    pub fn settle(&mut self) -> Result<()> {
        loop {
            match self.engine.next(1_000, &self.store) {
                Next::Again => {}
                Next::Idle => break,
                Next::Call(ticket, call) => {
                    let object = self.written(&call)?;
                    let body = object.to_string().into_bytes();
                    let reply = Reply { body: body.into(), created: true, warnings: Vec::new() };
                    drop(self.engine.done(1_000, &self.store, ticket, Ok(reply)));
                    self.copies_line("ADDED", &object);
                }
                other => bail!("the engine wants {other:?}"),
            }
        }
        drop(self.engine.notices());
        Ok(())
    }

    /// Decides about everything that waits for it, and says how many calls were wanted. What is wanted is not done.
    pub fn decide(&mut self) -> Result<usize> {
        let mut calls = 0;
        loop {
            match self.engine.next(1_000, &self.store) {
                Next::Again => {}
                Next::Idle => return Ok(calls),
                Next::Call(..) => calls += 1,
                other => bail!("the engine wants {other:?}"),
            }
        }
    }

    /// The route is configured anew, as it was: everything that it selects is evaluated.
    pub fn reconfigure(&mut self) {
        self.engine.configure(&self.store, &self.route.head.id.clone(), Some(self.route.clone()));
    }

    /// One source changes.
    pub fn change(&mut self, number: usize, value: u64) {
        self.version += 1;
        let mut object = source(&self.plan, number, self.version);
        object["metadata"]["annotations"]["edition"] = json!(value.to_string());
        let line = json!({ "type": "MODIFIED", "object": object }).to_string();
        let mut news = Vec::new();
        let turn = self.sources.turn();
        self.sources.feed(now(), turn, Input::Line(line.as_bytes()), &mut self.store, &mut news);
        self.tell(&news);
    }

    /// Everything is to be looked at again, as after a link was lost and found.
    pub fn look_again(&mut self) {
        let kind = KindId::new(self.plan.kind.0, self.plan.kind.1);
        for place in [PlaceId::new("workload"), PlaceId::new("mailboxes")] {
            let news = News::Scope { place, cluster: None, kind: kind.clone(), known: Ok(()) };
            self.engine.observe(&self.store, &news);
        }
    }

    fn copies_line(&mut self, event: &str, object: &Value) {
        let line = json!({ "type": event, "object": object }).to_string();
        let mut news = Vec::new();
        let turn = self.copies.turn();
        self.copies.feed(now(), turn, Input::Line(line.as_bytes()), &mut self.store, &mut news);
        self.tell(&news);
    }

    fn tell(&mut self, news: &[News]) {
        for piece in news {
            self.engine.observe(&self.store, piece);
        }
    }

    /// What a server makes of a write.
    fn written(&mut self, call: &Call) -> Result<Value> {
        let Verb::Apply { body, .. } = &call.verb else { bail!("the engine wants {:?}", call.verb) };
        self.version += 1;
        self.calls += 1;
        let mut object: Value = serde_json::from_slice(body)?;
        let metadata = object["metadata"].as_object_mut().context("an object without metadata")?;
        let uid = uid("c", self.calls_uid(&call.key));
        metadata.insert("uid".to_owned(), json!(uid));
        metadata.insert("resourceVersion".to_owned(), json!(self.version.to_string()));
        metadata.insert("creationTimestamp".to_owned(), json!("2026-11-15T00:00:00Z"));
        object["metadata"]["annotations"]["kcp.io/cluster"] = json!(call.key.cluster.to_string());
        object["metadata"]["managedFields"] = json!([{
            "manager": MANAGER, "operation": "Apply", "apiVersion": self.plan.kind.2, "time": "2026-11-15T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": { "f:edition": { (self.version % 97).to_string(): {} } },
        }]);
        Ok(object)
    }

    fn calls_uid(&self, key: &Key) -> u64 {
        match self.store.get(key).present() {
            Some(object) => object.uid.to_string().bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte)),
            None => self.version,
        }
    }
}

/// A copy at every mailbox.
struct Translation {
    head: RouteHead,
    to: Arc<[DestinationId]>,
    policy: Arc<Policy>,
    change: Change,
    varies: bool,
    projections: Arc<AtomicU64>,
}

impl Route for Translation {
    fn head(&self) -> &RouteHead {
        &self.head
    }
    fn select(&self, _: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        Ok(Selected { to: Arc::clone(&self.to), by: Name::new("spec.downsync[0]") })
    }
    fn project(&self, source: &Object, to: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        self.projections.fetch_add(1, Ordering::Relaxed);
        let body = (self.change)(source, to).map_err(|reason| Hold { reason, on: None })?;
        Ok(vec![Want {
            slot: Key { cluster: to.cluster.clone(), ..source.key.clone() },
            origin: Origin::of(source),
            body,
            policy: Arc::clone(&self.policy),
        }])
    }
    fn varies(&self, _: &Object) -> bool {
        self.varies
    }
    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}

/// A source without what does not travel, with a label that says that it was placed.
pub fn copied(source: &Object) -> Result<Body, String> {
    let mut edit = source.edit().map_err(|head_only| head_only.to_string())?;
    edit.strip().remove_status().set_label("edge.kubestellar.io/projected", "yes");
    let edited = edit.finish().map_err(|bad| bad.to_string())?;
    Ok(Body { json: edited.json, digest: edited.content })
}

fn list(items: impl Iterator<Item = Value>) -> Value {
    json!({ "metadata": { "resourceVersion": "9" }, "items": items.collect::<Vec<_>>() })
}

fn source(plan: &Plan, number: usize, version: u64) -> Value {
    let mut object = (plan.source)(number);
    object["metadata"] = json!({
        "name": format!("config-{number:05}"), "namespace": NAMESPACE, "uid": uid("a", number as u64),
        "resourceVersion": version.to_string(), "creationTimestamp": "2026-11-15T00:00:00Z", "generation": 1,
        "labels": { "app": "till" }, "annotations": { "team": "harbor" },
    });
    object
}

fn binding(edge: usize, plan: &Plan) -> Value {
    let bound = |group: &str, resource: &str| json!({ "group": group, "resource": resource, "schema": { "identityHash": "one" } });
    json!({
        "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
        "metadata": {
            "name": "bind-edge", "uid": uid("b", edge as u64), "resourceVersion": "5",
            "annotations": { "kcp.io/cluster": mailbox(edge) },
        },
        "status": { "boundResources": [bound(plan.kind.0, plan.kind.1), bound("", "namespaces")] },
    })
}

fn namespace(edge: usize) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": NAMESPACE, "uid": uid("d", edge as u64), "resourceVersion": "6",
        "annotations": { "kcp.io/cluster": mailbox(edge) },
    } })
}

/// Sixteen characters, as kcp names logical clusters.
fn mailbox(edge: usize) -> String {
    format!("2mailbox{edge:08}")
}

fn uid(series: &str, number: u64) -> String {
    format!("{series}0000000-0000-4000-8000-{:012x}", number & 0xffff_ffff_ffff)
}

fn now() -> Now {
    Now { mono: Moment(1_000), wall_seconds: 1 }
}
