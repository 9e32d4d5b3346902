//! The engine at a glance, for whoever watches over it: how much waits, how all slots stand, and what a call
//! answers.

use mailboat_object::key::Key;

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

impl Engine {
    /// How much is to be done. Costs nothing.
    pub fn depth(&self) -> Depth {
        Depth { evaluate: self.evaluations.len(), plan: self.plans.len(), in_flight: self.flights.len() }
    }

    /// How all slots stand, wherever they are. Costs a little for each cluster.
    pub fn counts_of_all(&self) -> Counts {
        self.standings.total()
    }

    /// The object whose change a call under way answers: the source of what is delivered, the copy whose status is
    /// brought back. Nothing for any other call.
    pub fn cause_of(&self, ticket: Ticket) -> Option<&Key> {
        let flight = self.flights.get(ticket)?;
        let state = self.slots.get(flight.slot)?;
        match &flight.work {
            Work::Act(Action::Deliver { .. }) => Some(&*self.fans.get(state.claims.first()?.fan)?.source),
            Work::Act(Action::Report(_)) => Some(&state.key),
            _ => None,
        }
    }
}
