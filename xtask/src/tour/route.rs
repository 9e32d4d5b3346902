//! The tour's own small route: labelled ConfigMaps of one workspace to two clusters.

use std::sync::Arc;

use mailboat_engine::breaker::ScopeId;
use mailboat_engine::mark::{OwnerId, StandardMarks};
use mailboat_engine::route::{Destination, DestinationId, Rank, Route, RouteId, Selected, Sources, View};
use mailboat_engine::want::{Adopt, Body, Delivery, Hold, Origin, Policy, StatusReturn, Want, Withdrawal};
use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::PlaceId;

/// What travels is labelled with this.
pub(crate) const LABEL: &str = "tour";

/// The owner whose mark the copies bear.
pub(crate) fn owner() -> OwnerId {
    OwnerId(Name::new("tour"))
}

/// Labelled ConfigMaps of one workspace to some destinations.
pub(crate) struct TourRoute {
    id: RouteId,
    scope: ScopeId,
    sources: [Sources; 1],
    to: Arc<[DestinationId]>,
    policy: Arc<Policy>,
}

impl TourRoute {
    pub(crate) fn new(from: &ClusterId, to: Arc<[DestinationId]>) -> Self {
        let policy = Policy {
            delivery: Delivery::Apply,
            status: StatusReturn::Off,
            withdrawal: Withdrawal::Delete,
            finalizer: None,
            adopt: Adopt::Never,
            marks: Arc::new(StandardMarks::new(owner())),
        };
        Self {
            id: RouteId(Name::new("tour")),
            scope: ScopeId(Name::new("tour")),
            sources: [Sources {
                place: PlaceId(from.0.clone()),
                cluster: Some(from.clone()),
                kind: KindId::new("", "configmaps"),
            }],
            to,
            policy: Arc::new(policy),
        }
    }
}

impl Route for TourRoute {
    fn id(&self) -> &RouteId {
        &self.id
    }

    fn scope(&self) -> &ScopeId {
        &self.scope
    }

    fn rank(&self) -> Rank {
        Rank { since: 0, name: self.id.0.clone() }
    }

    fn configuration(&self) -> Digest {
        Digest::NONE
    }

    fn sources(&self) -> &[Sources] {
        &self.sources
    }

    fn select(&self, source: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        if source.label(LABEL).is_none() {
            return Ok(Selected::nowhere());
        }
        Ok(Selected { to: Arc::clone(&self.to), by: Name::new("the label `tour`") })
    }

    fn project(&self, source: &Object, to: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        let hold = |reason: String| Hold { reason, on: Some(source.key.clone()) };
        let mut edit = source.edit().map_err(|error| hold(error.to_string()))?;
        edit.strip();
        let edited = edit.finish().map_err(|error| hold(error.to_string()))?;
        Ok(vec![Want {
            slot: Key { cluster: to.cluster.clone(), ..source.key.clone() },
            origin: Origin { key: source.key.clone(), uid: source.uid.clone(), version: source.version },
            body: Body { json: edited.json, digest: edited.content },
            policy: Arc::clone(&self.policy),
        }])
    }

    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}
