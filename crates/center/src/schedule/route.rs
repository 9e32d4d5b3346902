//! A placement's slices as a route: it wants them in its own workspace.

use std::sync::Arc;

use mailboat_api::names::group;
use mailboat_engine::mark::Marks;
use mailboat_engine::route::{Destination, DestinationId, Route, RouteHead, RouteId, Selected, View};
use mailboat_engine::want::{Body, Hold, Origin, Policy, Want};
use mailboat_object::key::{Key, KindId, Name};
use mailboat_object::object::Object;

use super::Slice;

/// The slices of one placement.
pub struct Sliced {
    head: RouteHead,
    slices: Vec<Slice>,
    to: Arc<[DestinationId]>,
    policy: Arc<Policy>,
}

impl Sliced {
    /// The route of a placement; `here` stands for wherever its workspace is.
    pub fn new(placement: Key, slices: Vec<Slice>, here: DestinationId, marks: Arc<dyn Marks>) -> Self {
        let id = Self::id_of(&placement);
        let policy = Policy::plain(marks);
        Self {
            head: RouteHead::new(id.0).of(placement),
            slices,
            to: Arc::from([here]),
            policy: Arc::new(policy),
        }
    }

    /// The name of a placement's route, the same over restarts.
    pub fn id_of(placement: &Key) -> RouteId {
        RouteId(Name::new(&format!("slices/{}/{}", placement.cluster, placement.name)))
    }
}

impl Route for Sliced {
    fn head(&self) -> &RouteHead {
        &self.head
    }

    fn select(&self, _: &Object, _: &View<'_>) -> Result<Selected, Hold> {
        Ok(Selected { to: Arc::clone(&self.to), by: Name::new("spec.locationSelectors") })
    }

    fn project(&self, source: &Object, _: &Destination, _: &View<'_>) -> Result<Vec<Want>, Hold> {
        let slot = |slice: &Slice| Key {
            cluster: source.key.cluster.clone(),
            kind: KindId::new(group::EDGE, "singleplacementslices"),
            namespace: Name::EMPTY,
            name: slice.name.clone(),
        };
        let origin = Origin::of(source);
        let wants = self.slices.iter().map(|slice| Want {
            slot: slot(slice),
            origin: origin.clone(),
            body: slice.body.clone(),
            policy: Arc::clone(&self.policy),
        });
        Ok(wants.collect())
    }

    fn report(&self, _: &Object, _: &Object, _: &View<'_>) -> Result<Option<Body>, Hold> {
        Ok(None)
    }
}
