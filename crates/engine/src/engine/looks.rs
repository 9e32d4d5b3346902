//! Fresh looks: at a source that seems to be gone, or that is being deleted and waits for its copies.

use mailboat_object::key::Key;
use mailboat_object::wire::{Fault, FaultKind};

use super::carry::{Ticket, Work};
use super::flights::{Aims, Flight};
use super::sight::{Sight, WantedHere};
use super::{Engine, Next};
use crate::look::Look;
use crate::mark::Marked;
use crate::plan::Action;
use crate::queue::Urgency;
use crate::slots::SlotId;
use crate::warrant::{Evidence, SourceDeleting, SourceGone};

impl Engine {
    /// Asks for a look at a slot's source, and keeps what the look is to confirm.
    pub(super) fn begin_to_look(&mut self, now: u64, id: SlotId, sight: Sight, source: Key) -> Option<Next> {
        let state = self.slots.get_mut(id)?;
        let sought = match sight.wanted {
            WantedHere::No(Evidence::SourceGone(gone)) => {
                let gone = match &sight.marked {
                    Marked::Ours(mark) => gone.remembered_by(&mark.origin),
                    Marked::Others(_) | Marked::Nobodys => gone,
                };
                (state.passing.gone, state.passing.ending) = (Some(Box::new(gone.clone())), None);
                Evidence::SourceGone(gone)
            }
            WantedHere::No(Evidence::SourceDeleting(ending)) => {
                (state.passing.gone, state.passing.ending) = (None, Some(Box::new(ending.clone())));
                Evidence::SourceDeleting(ending)
            }
            WantedHere::No(Evidence::Deselected(_)) | WantedHere::By(_) | WantedHere::Undecided(_) => {
                return None;
            }
        };
        state.under_way = true;
        let work = Work::Act(Action::ConfirmGone(source.clone()));
        let (at, aims) = (source.clone(), Aims { sought: Some(sought), ..Aims::default() });
        let ticket = self.flights.begin(Flight { slot: id, work, at, aims, since: now });
        Some(Next::Look(ticket, source))
    }

    /// What a fresh look at a source found. It was asked about what was known then: of what came after that, it says nothing.
    pub fn looked(&mut self, now: u64, ticket: Ticket, found: Result<Look, Fault>) {
        let Some(flight) = self.flights.end(ticket) else { return };
        let id = flight.slot;
        let Some(state) = self.slots.get_mut(id) else { return };
        state.under_way = false;
        if self.went_with_its_cluster(id) {
            return;
        }
        if found.is_ok() {
            self.cluster_answers(&flight.at.cluster);
        }
        let sought = flight.aims.sought.and_then(|sought| self.as_it_stands(id, sought));
        match (found, sought) {
            (Ok(look), Some(Evidence::SourceGone(gone))) => {
                self.looked_for(flight.since, now, id, gone, &look);
            }
            (Ok(look), Some(Evidence::SourceDeleting(ending))) => {
                self.looked_at_ending(now, id, ending, &look);
            }
            (Err(fault), _)
                if fault.kind == FaultKind::Away
                    && self.cluster_away(now, id, &flight.at.cluster, &fault.text) => {}
            (Err(fault), Some(_)) => {
                if !fault.passes() {
                    self.dispute(id);
                }
                self.rest(now, id, &fault.text);
            }
            (_, Some(Evidence::Deselected(_)) | None) => {}
        }
        self.plan_later(id, Urgency::Live);
    }

    /// What a look was to confirm, as it is known by now; nothing if it is not that any more which is to be confirmed.
    fn as_it_stands(&self, id: SlotId, sought: Evidence) -> Option<Evidence> {
        let passing = &self.slots.get(id)?.passing;
        match sought {
            Evidence::SourceGone(sought) => {
                let known = passing.gone.as_deref().filter(|known| known.is_that(&sought))?;
                Some(Evidence::SourceGone(known.clone()))
            }
            Evidence::SourceDeleting(sought) => {
                let known = passing.ending.as_deref().filter(|known| known.is_that(&sought))?;
                Some(Evidence::SourceDeleting(known.clone()))
            }
            Evidence::Deselected(_) => None,
        }
    }

    fn looked_for(&mut self, asked: u64, now: u64, id: SlotId, gone: SourceGone, look: &Look) {
        match gone.looked(asked, now, look) {
            Ok(gone) => {
                let Some(state) = self.slots.get_mut(id) else { return };
                let again = gone.look_again_at();
                state.passing.gone = Some(Box::new(gone));
                if let Some(at) = again {
                    let why = "its source is missing, and is looked for again";
                    self.rest_for(now, id, at.saturating_sub(now), why);
                }
            }
            Err(otherwise) => {
                self.dispute(id);
                self.rest(now, id, &otherwise.to_string());
            }
        }
    }

    fn looked_at_ending(&mut self, now: u64, id: SlotId, ending: SourceDeleting, look: &Look) {
        match ending.looked(look) {
            Ok(ending) => {
                let Some(state) = self.slots.get_mut(id) else { return };
                state.passing.ending = Some(Box::new(ending));
            }
            Err(otherwise) => self.rest(now, id, &otherwise.to_string()),
        }
    }

    /// A look did not find that a slot's source alone is gone.
    fn dispute(&mut self, id: SlotId) {
        let passing = self.slots.get_mut(id).and_then(|state| state.passing.said());
        if let Some(gone) = passing.and_then(|passing| passing.gone.as_mut()) {
            gone.dispute();
        }
    }
}
