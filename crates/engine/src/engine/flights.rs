//! What is under way, and how much of it holds up the rest.
//!
//! Only so many calls are under way at once. One that a server leaves unanswered would keep its place until it times out, and a
//! single cluster that answers nothing would take every place there is: the others would wait with it. So a call has its place
//! for a while only. After that it is still waited for, and something else is sent in its place.

use std::collections::BTreeMap;
use std::ops::Bound;

use mailboat_object::digest::Digest;
use mailboat_object::key::{Key, Version};
use mailboat_object::wire::{Call, Part, Verb};

use super::carry::{Ticket, Work};
use crate::plan::{Action, Expect, How};
use crate::slots::SlotId;
use crate::warrant::Evidence;

/// So many milliseconds a call has its place. A transport gives one up after some thirty seconds, so that what is under way in all
/// is a small multiple of the places.
const PATIENCE: u64 = 5_000;

/// A call or a look under way: for which slot, and what it does.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) slot: SlotId,
    pub(crate) work: Work,
    /// What is written or read: a report and a look are about the slot's source, not about what stands in it.
    pub(super) at: Key,
    pub(crate) aims: Aims,
    /// When it left.
    pub(super) since: u64,
}

/// What a call is to bring about, as it was when it left.
#[derive(Default, Debug)]
pub(crate) struct Aims {
    /// What was intended, if something was delivered: a failure of it does not hold up another intent.
    pub(super) intent: Option<Digest>,
    /// The status that is brought back, and to which source, if one is: by the time of the answer the copy may have
    /// another, and the source may be another.
    pub(super) status: Option<Digest>,
    /// The version of what is carried on, the source or the copy whose status it is, if that changed since this was last
    /// done: what puts another hand's write right carries on no change.
    pub(crate) carries: Option<Version>,
    /// What a look is to confirm. By the time of the answer the source may have come back, and gone with something larger.
    pub(super) sought: Option<Evidence>,
}

impl Flight {
    /// Whether it writes to the source of what stands in a slot, and not to that itself.
    pub(super) fn tells_source(&self, slot: &Key) -> bool {
        matches!(self.work, Work::Act(Action::Report(_) | Action::Finalizer { .. }) | Work::ReadSource)
            && self.at != *slot
    }

    /// The reading of a copy that was applied to and not taken, if it was.
    pub(super) fn look_within(&self) -> Option<(Work, Call)> {
        let Work::Act(Action::Deliver { expect: Expect::Uid(_), how: How::Apply }) = &self.work else {
            return None;
        };
        let call = Call { key: self.at.clone(), verb: Verb::Get, part: Part::Whole, dry_run: false };
        Some((Work::LookWithin, call))
    }

    /// The reading, by this work, of what it was to write and which is not as it was thought to be.
    pub(super) fn read_again(&self, work: Work) -> Option<(Work, Call)> {
        let Work::Act(action) = &self.work else { return None };
        let writes = !matches!(action, Action::EnsureNamespace | Action::Read | Action::ConfirmGone(_));
        let call = Call { key: self.at.clone(), verb: Verb::Get, part: Part::Whole, dry_run: false };
        writes.then_some((work, call))
    }
}

/// All that is under way, in the order in which it left.
#[derive(Default)]
pub(crate) struct Flights {
    under_way: BTreeMap<Ticket, Flight>,
    last: Ticket,
    /// Those up to this one have lost their places.
    overdue: Ticket,
    overdue_count: usize,
}

impl Flights {
    pub(super) fn begin(&mut self, flight: Flight) -> Ticket {
        self.last = Ticket(self.last.0 + 1);
        self.under_way.insert(self.last, flight);
        self.last
    }

    pub(super) fn end(&mut self, ticket: Ticket) -> Option<Flight> {
        let flight = self.under_way.remove(&ticket)?;
        if ticket <= self.overdue {
            self.overdue_count -= 1;
        }
        Some(flight)
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Flight> {
        self.under_way.get(&ticket)
    }

    /// The slots for which something is under way.
    pub(super) fn slots(&self) -> impl Iterator<Item = SlotId> {
        self.under_way.values().map(|flight| flight.slot)
    }

    /// How many ever left.
    pub(crate) fn begun(&self) -> u64 {
        self.last.0
    }

    pub(crate) fn len(&self) -> usize {
        self.under_way.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// How many places are taken at this time.
    pub(super) fn places_taken(&mut self, now: u64) -> usize {
        while let Some((ticket, flight)) = self.next_overdue()
            && flight.since + PATIENCE <= now
        {
            self.overdue = ticket;
            self.overdue_count += 1;
        }
        self.under_way.len() - self.overdue_count
    }

    /// When the next place becomes free, whatever is answered until then.
    pub(super) fn place_free_at(&self) -> Option<u64> {
        self.next_overdue().map(|(_, flight)| flight.since + PATIENCE)
    }

    fn next_overdue(&self) -> Option<(Ticket, &Flight)> {
        let later = (Bound::Excluded(self.overdue), Bound::Unbounded);
        self.under_way.range(later).next().map(|(ticket, flight)| (*ticket, flight))
    }
}

#[cfg(test)]
mod tests {
    use mailboat_object::key::{ClusterId, KindId, Name};

    use super::*;

    fn flight(since: u64) -> Flight {
        let at = Key {
            cluster: ClusterId::new("florin"),
            kind: KindId::new("", "configmaps"),
            namespace: Name::EMPTY,
            name: Name::EMPTY,
        };
        let slot = SlotId(0);
        Flight { slot, work: Work::LookBefore, at, aims: Aims::default(), since }
    }

    #[test]
    fn what_is_not_answered_in_time_gives_up_its_place_once() {
        let mut flights = Flights::default();
        let first = flights.begin(flight(0));
        let second = flights.begin(flight(1_000));
        assert_eq!(flights.places_taken(PATIENCE - 1), 2);
        assert_eq!(flights.place_free_at(), Some(PATIENCE));
        assert_eq!(flights.places_taken(PATIENCE), 1);
        assert_eq!(flights.place_free_at(), Some(PATIENCE + 1_000));
        assert!(flights.end(first).is_some(), "it is still waited for");
        assert_eq!((flights.places_taken(PATIENCE), flights.len()), (1, 1));
        assert!(flights.end(second).is_some());
        assert_eq!(flights.places_taken(10 * PATIENCE), 0);
        let third = flights.begin(flight(10 * PATIENCE));
        assert_eq!(flights.places_taken(11 * PATIENCE), 0);
        assert!(flights.end(third).is_some());
        assert!(flights.end(third).is_none());
        assert!(flights.is_empty());
    }
}
