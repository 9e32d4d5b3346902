//! A placement's summaries as a route: it wants them in its own workspace.

use std::sync::Arc;

use mailboat_engine::mark::Marks;
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, RouteId, Selected, View};
use mailboat_engine::want::{Body, Hold, Origin, Policy, Want};
use mailboat_object::key::{Key, Name};
use mailboat_object::object::Object;

/// The StatusSummaries of one placement. What they say is written beside the engine, as statuses are.
pub struct Summarized {
    head: RouteHead,
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
        let policy = Policy::plain(marks);
        let head = RouteHead::new(id.0).of(placement);
        Self { head, summaries, to: Arc::from([here]), policy: Arc::new(policy) }
    }

    /// The name of a placement's route, the same over restarts.
    pub fn id_of(placement: &Key) -> RouteId {
        RouteId(Name::new(&format!("summaries/{}/{}", placement.cluster, placement.name)))
    }
}

impl Route for Summarized {
    fn head(&self) -> &RouteHead {
        &self.head
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
