//! The engine at a glance, for whoever watches over it: how much waits, how slots stand, and what a call answers.

use mailboat_object::key::Key;

use crate::engine::{Engine, Ticket, Work};
use crate::plan::{Action, Verdict};

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

/// How many slots stand in which way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// As wanted.
    pub settled: usize,
    /// Being worked on, or not looked at yet.
    pub acting: usize,
    /// Waiting for something that will wake them.
    pub waiting: usize,
    /// Refused, until somebody changes something.
    pub refused: usize,
    /// To be withdrawn, once somebody confirms it.
    pub held: usize,
}

impl Engine {
    /// How much is to be done. Costs nothing.
    pub fn depth(&self) -> Depth {
        Depth { evaluate: self.evaluations.len(), plan: self.plans.len(), in_flight: self.flights.len() }
    }

    /// How slots stand. Looks at every one.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for slot in self.slots.iter() {
            let count = match &slot.verdict {
                Some(Verdict::Settled) => &mut tally.settled,
                Some(Verdict::Acting) | None => &mut tally.acting,
                Some(Verdict::Waiting(_)) => &mut tally.waiting,
                Some(Verdict::Refused(_)) => &mut tally.refused,
                Some(Verdict::Held(_)) => &mut tally.held,
            };
            *count += 1;
        }
        tally
    }

    /// The object whose change a call under way answers: the source of what is delivered, the copy whose status is
    /// brought back. Nothing for any other call.
    pub fn cause_of(&self, ticket: Ticket) -> Option<&Key> {
        let flight = self.flights.get(&ticket)?;
        let state = self.slots.get(flight.slot)?;
        match &flight.work {
            Work::Act(Action::Deliver { .. }) => Some(&self.fans.get(state.claims.first()?.fan)?.source),
            Work::Act(Action::Report(_)) => Some(&state.key),
            _ => None,
        }
    }
}
