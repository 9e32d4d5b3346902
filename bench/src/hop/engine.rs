//! The engine between two clusters, with the smallest route there is.

use std::sync::Arc;

use anyhow::Result;
use mailboat_cluster::{Cluster, Transport};
use mailboat_engine::engine::{Engine, Options};
use mailboat_engine::mark::{Marks, OwnerId, StandardMarks};
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, Selected, Sources, View};
use mailboat_engine::want::{Body, Hold, Origin, Policy, Want};
use mailboat_object::{ClusterId, Keep, Key, KindId, Limits, Name, Object};
use mailboat_runner::{Carrier, Followers, Follows};
use mailboat_store::{EndpointId, FeedId, Filter, Nature, PlaceId, Settings, Store};

use super::watch::config_maps;
use super::{IN_FLIGHT, NAMESPACE};

const MANAGER: &str = "mailboat-hop";
const TO: DestinationId = DestinationId(0);

/// Carries until it is killed.
pub async fn carry(from: &Cluster, to: &Cluster) -> Result<()> {
    let options = Options { in_flight: IN_FLIGHT, ..Options::default() };
    let marks: Arc<dyn Marks> = Arc::new(StandardMarks::new(owner()));
    let engine = Engine::new(owner(), Name::new(MANAGER), vec![Arc::clone(&marks)], options);
    let mut carrier = Carrier::new(engine);
    let mut followers = Followers::new(Store::new(), Settings::default(), 1);
    // Sources whole, copies as heads.
    let from = reach(&mut carrier, &mut followers, "source", from, Keep::Whole)?;
    let to = reach(&mut carrier, &mut followers, "target", to, Keep::Head)?;
    carrier.engine_mut().destination(Destination { id: TO, cluster: to });
    let route = Hop::new(&from, marks);
    let id = route.head.id.clone();
    carrier.engine_mut().configure(followers.store(), &id, Some(Arc::new(route)));
    carrier.engine_mut().configuration_known(Some(1));
    carrier.run(&mut followers, std::future::pending()).await
}

fn reach(
    carrier: &mut Carrier,
    followers: &mut Followers,
    name: &str,
    way: &Cluster,
    keep: Keep,
) -> Result<ClusterId> {
    let cluster = ClusterId::new(name);
    let way: Arc<dyn Transport> = Arc::new(way.clone());
    let (place, endpoint) = (PlaceId(cluster.0.clone()), EndpointId::new("server"));
    let mut news = Vec::new();
    followers.store_mut().open(&place, Nature::Whole(cluster.clone()), [endpoint.clone()], &mut news);
    for (kind, keep) in [(config_maps(), keep), (KindId::new("", "namespaces"), Keep::Head)] {
        let follows = Follows {
            id: FeedId { place: place.clone(), endpoint: endpoint.clone(), kind },
            filter: Filter::All,
            keep,
            manager: Name::new(MANAGER),
            limits: Limits::default(),
        };
        followers.follow(follows, Arc::clone(&way), &mut news)?;
    }
    carrier.learn(&mut news, followers);
    carrier.reach(&cluster, way);
    Ok(cluster)
}

fn owner() -> OwnerId {
    OwnerId(Name::new("hop"))
}

/// Every ConfigMap of one namespace to one destination.
struct Hop {
    head: RouteHead,
    to: Arc<[DestinationId]>,
    namespace: Name,
    entry: Name,
    policy: Arc<Policy>,
}

impl Hop {
    fn new(from: &ClusterId, marks: Arc<dyn Marks>) -> Self {
        let policy = Policy::plain(marks);
        Self {
            head: RouteHead::new(Name::new("hop")).reading([Sources {
                place: PlaceId(from.0.clone()),
                cluster: Some(from.clone()),
                kind: config_maps(),
            }]),
            to: Arc::new([TO]),
            namespace: Name::new(NAMESPACE),
            entry: Name::new("its namespace"),
            policy: Arc::new(policy),
        }
    }
}

impl Route for Hop {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, source: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        if source.key.namespace != self.namespace {
            return Ok(Selected::nowhere());
        }
        Ok(Selected { to: Arc::clone(&self.to), by: self.entry.clone() })
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
