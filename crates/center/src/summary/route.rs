//! A placement's summaries as a route: it wants them in its own workspace.

use std::sync::Arc;

use mailboat_engine::breaker::ScopeId;
use mailboat_engine::mark::Marks;
use mailboat_engine::route::{Destination, DestinationId, Rank, Route, RouteId, Selected, Sources, View};
use mailboat_engine::want::{Adopt, Body, Delivery, Hold, Origin, Policy, StatusReturn, Want, Withdrawal};
use mailboat_object::digest::Digest;
use mailboat_object::key::{Key, Name};
use mailboat_object::object::Object;

/// The StatusSummaries of one placement. What they say is written beside the engine, as statuses are.
pub struct Summarized {
    id: RouteId,
    scope: ScopeId,
    placement: Key,
    summaries: Vec<(Key, Body)>,
    to: Arc<[DestinationId]>,
    policy: Arc<Policy>,
}

impl Summarized {
    /// The route of a placement; `here` stands for wherever its workspace is.
    pub fn new(
        placement: Key,
        summaries: Vec<(Key, Body)>,
        here: DestinationId,
        marks: Arc<dyn Marks>,
    ) -> Self {
        let id = Self::id_of(&placement);
        let policy = Policy {
            delivery: Delivery::Apply,
            status: StatusReturn::Off,
            withdrawal: Withdrawal::Delete,
            finalizer: None,
            adopt: Adopt::Never,
            marks,
        };
        let (scope, to) = (ScopeId(id.0.clone()), Arc::from([here]));
        Self { id, scope, placement, summaries, to, policy: Arc::new(policy) }
    }

    /// The name of a placement's route, the same over restarts.
    pub fn id_of(placement: &Key) -> RouteId {
        RouteId(Name::new(&format!("summaries/{}/{}", placement.cluster, placement.name)))
    }
}

impl Route for Summarized {
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
        &[]
    }

    fn source(&self) -> Option<&Key> {
        Some(&self.placement)
    }

    fn select(&self, _: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        Ok(Selected { to: Arc::clone(&self.to), by: Name::new("the placement itself") })
    }

    fn project(&self, source: &Object, _: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        let origin = Origin::of(source);
        let wants = self.summaries.iter().map(|(slot, body)| Want {
            slot: slot.clone(),
            origin: origin.clone(),
            body: body.clone(),
            policy: Arc::clone(&self.policy),
        });
        Ok(wants.collect())
    }

    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}
