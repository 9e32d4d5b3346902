//! The engine at a glance, for whoever watches over it: how much waits, how all slots stand, and what a call
//! answers.

use std::collections::BTreeMap;

use mailboat_object::key::{Key, KindId, Version};

use crate::engine::{Engine, Ticket, Work};
use crate::plan::Action;
use crate::standing::Counts;

/// How much is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Depth {
    /// Sources to be evaluated.
    pub evaluate: usize,
    /// Slots to be planned, those among them that rest.
    pub plan: usize,
    /// Calls and looks under way.
    pub in_flight: usize,
}

/// A change that a call carries on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause<'a> {
    /// What changed.
    pub object: &'a Key,
    /// Its version since then.
    pub version: Version,
    /// No other call carries on the same change.
    pub alone: bool,
}

impl Engine {
    /// How much is to be done. Costs nothing.
    pub fn depth(&self) -> Depth {
        Depth { evaluate: self.evaluations.len(), plan: self.plans.len(), in_flight: self.flights.len() }
    }

    /// How all slots stand, wherever they are. Costs a little for each cluster.
    pub fn counts_of_all(&self) -> Counts {
        self.standings.total()
    }

    /// The object whose change a call under way carries on, and its version: the source of what is delivered, the copy whose
    /// status is brought back. Nothing for any other call, nor for one that carries on what was carried on before.
    pub fn cause_of(&self, ticket: Ticket) -> Option<Cause<'_>> {
        let flight = self.flights.get(ticket)?;
        let state = self.slots.get(flight.slot)?;
        let (object, alone) = match &flight.work {
            Work::Act(Action::Deliver { .. }) => (&*self.fans.get(state.claims.first()?.fan)?.source, false),
            Work::Act(Action::Report(_)) => (&state.key, true),
            _ => return None,
        };
        Some(Cause { object, version: flight.aims.carries?, alone })
    }

    /// How much is held in each table that tenants fill, by its name. For whoever wants to see that what went leaves nothing
    /// behind.
    pub fn tables(&self) -> [(&'static str, usize); 19] {
        [
            ("routes", self.routes.len()),
            ("route ids", self.route_ids.len()),
            ("kinds that are read", self.by_kind.len()),
            ("objects that are read", self.by_object.len()),
            ("kinds that are related", self.by_related.len()),
            ("destinations", self.destinations.len()),
            ("clusters with destinations", self.destinations_at.len()),
            ("clusters", self.clusters.len()),
            ("clusters away", self.away.len()),
            ("sources", self.fans.len()),
            ("reads", self.fans.reads()),
            ("slots", self.slots.len()),
            ("slots wanted in vain", self.contests.len()),
            ("awaited", self.waiting.len() + self.unlisted.len() + self.homeless.len() + self.untold.len()),
            ("namespaces on their way", self.housing.len()),
            ("unshown reports", self.unshown.len()),
            ("scopes", self.breaker.len()),
            ("standings", self.standings.len()),
            ("queued", self.evaluations.len() + self.plans.len() + self.unsettled.len()),
        ]
    }

    /// How many slots of each kind are not as wanted: waiting, refused or held. Costs a little for each of them.
    pub fn backlog(&self) -> BTreeMap<KindId, usize> {
        let mut backlog = BTreeMap::new();
        for slot in self.standings.all_not_current() {
            if let Some(state) = self.slots.get(slot) {
                *backlog.entry(state.key.kind.clone()).or_default() += 1;
            }
        }
        backlog
    }
}
