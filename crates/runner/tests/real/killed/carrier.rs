//! The process that is killed: the real engine between two clusters, with one small route.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mailboat_cluster::{Connection, Settings, Source, Transport};
use mailboat_engine::engine::{Engine, Options};
use mailboat_engine::mark::{OwnerId, StandardMarks};
use mailboat_engine::plan::Verdict;
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Body, Hold, Origin, Policy, Want};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::{Keep, Limits, Object};
use mailboat_runner::{Carrier, Followers, Follows};
use mailboat_store::{EndpointId, FeedId, Filter, Nature, PlaceId, Store};

use crate::rig::patient;
use crate::waters::config_maps;

/// Where it reads from and where it writes to, as kubeconfig files.
pub(super) const FROM_VARIABLE: &str = "MAILBOAT_TRIAL_FROM";
pub(super) const TO_VARIABLE: &str = "MAILBOAT_TRIAL_TO";
/// What it carries.
pub(crate) const NAMESPACE: &str = "trial";
pub(crate) const LABEL: &str = "sails";
/// What it says once everything stands as wanted, or is refused.
pub(super) const SETTLED: &str = "settled";

pub(crate) const MANAGER: &str = "mailboat-trial";
/// How often it looks whether all is settled.
const GLANCE: Duration = Duration::from_millis(20);

/// Not a test of its own: [`super`] starts this program anew with the variables set, and kills it.
#[tokio::test]
async fn carries_when_asked_to() {
    let (Some(from), Some(to)) = (std::env::var_os(FROM_VARIABLE), std::env::var_os(TO_VARIABLE)) else {
        return;
    };
    carry(PathBuf::from(from), PathBuf::from(to)).await;
}

async fn carry(from: PathBuf, to: PathBuf) {
    let engine = Engine::new(
        owner(),
        Name::new(MANAGER),
        vec![Arc::new(StandardMarks::new(owner()))],
        Options::default(),
    );
    let mut followers = Followers::new(Store::new(), patient(), u64::from(std::process::id()));
    let mut carrier = Carrier::new(engine);
    let from = reach(&mut carrier, &mut followers, "source", from).await;
    let to = reach(&mut carrier, &mut followers, "target", to).await;
    let id = DestinationId(0);
    carrier.engine_mut().destination(Destination { id, cluster: to.clone() });
    let route = TrialRoute::new(&from, id);
    let route_id = route.head().id.clone();
    carrier.engine_mut().configure(followers.store(), &route_id, Some(Arc::new(route)));
    carrier.engine_mut().configuration_known(Some(1));
    let mut said = false;
    loop {
        carrier.run(&mut followers, tokio::time::sleep(GLANCE)).await;
        if !said && is_settled(carrier.engine(), followers.store(), &from, &to) {
            said = true;
            println!("{SETTLED}");
        }
    }
}

async fn reach(
    carrier: &mut Carrier,
    followers: &mut Followers,
    name: &str,
    kubeconfig: PathBuf,
) -> ClusterId {
    let cluster = ClusterId::new(name);
    let source = Source::Kubeconfig { path: Some(kubeconfig), context: None };
    let way: Arc<dyn Transport> =
        Arc::new(Connection::open(source, Settings::default()).await.unwrap().cluster());
    let (place, endpoint) = (PlaceId(cluster.0.clone()), EndpointId::new("server"));
    let mut news = Vec::new();
    followers.store_mut().open(&place, Nature::Whole(cluster.clone()), [endpoint.clone()], &mut news);
    for kind in [config_maps(), KindId::new("", "namespaces")] {
        let follows = Follows {
            id: FeedId { place: place.clone(), endpoint: endpoint.clone(), kind },
            filter: Filter::All,
            keep: Keep::Whole,
            manager: Name::new(MANAGER),
            limits: Limits::default(),
        };
        followers.follow(follows, Arc::clone(&way), &mut news).unwrap();
    }
    carrier.learn(&mut news, followers);
    carrier.reach(&cluster, way);
    cluster
}

/// Whether every object at either side was looked at and needs nothing.
fn is_settled(engine: &Engine, store: &Store, from: &ClusterId, to: &ClusterId) -> bool {
    let namespace = Name::new(NAMESPACE);
    let (Ok(sources), Ok(targets)) = (
        store.range(from, &config_maps(), Some(&namespace)),
        store.range(to, &config_maps(), Some(&namespace)),
    ) else {
        return false;
    };
    let rests = |key: &Key| matches!(engine.verdict(key), Some(Verdict::Settled | Verdict::Refused(_)));
    let wanted = sources.filter(|source| source.label(LABEL).is_some());
    let wanted_rest =
        wanted.map(|source| Key { cluster: to.clone(), ..source.key.clone() }).all(|slot| rests(&slot));
    let ours = |target: &&Arc<Object>| target.label(mailboat_engine::mark::OWNER_LABEL).is_some();
    wanted_rest && targets.filter(ours).all(|target| rests(&target.key))
}

pub(crate) fn owner() -> OwnerId {
    OwnerId(Name::new("trial"))
}

/// Labelled ConfigMaps of one namespace to one destination.
pub(crate) struct TrialRoute {
    head: RouteHead,
    to: Arc<[DestinationId]>,
    policy: Arc<Policy>,
}

impl TrialRoute {
    pub(crate) fn new(from: &ClusterId, to: DestinationId) -> Self {
        let policy = Policy::plain(Arc::new(StandardMarks::new(owner())));
        let sources =
            Sources { place: PlaceId(from.0.clone()), cluster: Some(from.clone()), kind: config_maps() };
        Self {
            head: RouteHead::new(Name::new("trial")).reading([sources]),
            to: Arc::new([to]),
            policy: Arc::new(policy),
        }
    }
}

impl Route for TrialRoute {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, source: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        if source.key.namespace != Name::new(NAMESPACE) || source.label(LABEL).is_none() {
            return Ok(Selected::nowhere());
        }
        Ok(Selected { to: Arc::clone(&self.to), by: Name::new("its label") })
    }

    fn project(&self, source: &Object, to: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        let hold = |reason: String| Hold { reason, on: Some(source.key.clone()) };
        let mut edit = source.edit().map_err(|error| hold(error.to_string()))?;
        edit.strip();
        let edited = edit.finish().map_err(|error| hold(error.to_string()))?;
        Ok(vec![Want {
            slot: Key { cluster: to.cluster.clone(), ..source.key.clone() },
            origin: Origin::of(source),
            body: Body { json: edited.json, digest: edited.content },
            policy: Arc::clone(&self.policy),
        }])
    }

    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}
