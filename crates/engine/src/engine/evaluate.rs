//! Evaluation: where each source goes, and which slots that makes wanted.

use std::collections::BTreeSet;
use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::key::Key;
use mailboat_object::object::Object;
use mailboat_store::seen::Seen;
use mailboat_store::store::{Store, Unlisted};
use smallvec::SmallVec;

use super::settle::scope_of;
use super::{Engine, urgency};
use crate::breaker::ScopeId;
use crate::fans::{Changed, Fan, FanId, Leg, Reader, RouteIndex};
use crate::queue::Urgency;
use crate::route::{DestinationId, Rank, Route, View};
use crate::shared::in_cluster;
use crate::slots::{Claim, SlotId, SlotState};
use crate::want::{Hold, Want};
use crate::warrant::SourceGone;

/// Something that waits to be evaluated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Evaluation {
    /// All that a route makes of a source.
    Fan(FanId),
    /// What it makes of it at one destination.
    Leg(FanId, DestinationId),
}

impl Engine {
    pub(crate) fn evaluate_later(&mut self, id: FanId, urgency: Urgency) {
        if let Some(changed) = self.fans.changed.get_mut(&id) {
            changed.alone = false;
        }
        if let Some(fan) = self.fans.get_mut(id) {
            fan.stale = true;
            self.evaluations.push(Evaluation::Fan(id), fan.route, urgency);
        }
    }

    /// The same, where nothing but these destinations of its route changed. If anything else does before it is evaluated, all of
    /// it is.
    pub(crate) fn evaluate_there_later(
        &mut self,
        id: FanId,
        changed: &Arc<Vec<DestinationId>>,
        urgency: Urgency,
    ) {
        let before = self.fans.changed.remove(&id);
        let Some(fan) = self.fans.get_mut(id) else { return };
        let was_stale = std::mem::replace(&mut fan.stale, true);
        self.evaluations.push(Evaluation::Fan(id), fan.route, urgency);
        let changed = match before {
            None => Changed { at: Arc::clone(changed), alone: !was_stale },
            Some(Changed { at, alone }) => {
                let all: BTreeSet<DestinationId> = at.iter().chain(changed.iter()).copied().collect();
                Changed { at: Arc::new(all.into_iter().collect()), alone }
            }
        };
        self.fans.changed.insert(id, changed);
    }

    pub(crate) fn wake(&mut self, reader: Reader, urgency: Urgency) {
        match reader {
            Reader::Fan(fan) => self.evaluate_later(fan, urgency),
            Reader::Leg(id, to) => {
                if let Some(fan) = self.fans.get(id) {
                    self.evaluations.push(Evaluation::Leg(id, to), fan.route, urgency);
                }
            }
        }
    }

    pub(crate) fn evaluate(&mut self, store: &Store, evaluation: Evaluation, urgency: Urgency) {
        let (Evaluation::Fan(id) | Evaluation::Leg(id, _)) = evaluation;
        if let Some(fan) = self.fans.get_mut(id) {
            fan.urgency = urgency;
        }
        match evaluation {
            Evaluation::Fan(fan) => {
                let source = self.fans.get(fan).map(|fan| Arc::clone(&fan.source));
                self.evaluate_fan(store, fan);
                if let Some(source) = source {
                    self.settle_waiting(store, &source);
                }
            }
            Evaluation::Leg(fan, to) => {
                self.shared.forget(fan);
                if let Some((route, source)) = self.route_and_source(store, fan) {
                    self.evaluate_leg(store, fan, to, route.as_ref(), &source);
                    self.note_undecided(fan);
                }
            }
        }
    }

    fn route_and_source(&self, store: &Store, fan: FanId) -> Option<(Arc<dyn Route>, Arc<Object>)> {
        let fan = self.fans.get(fan)?;
        let route = self.routes.get(fan.route.0 as usize)?.route.clone()?;
        match store.get(&fan.source) {
            Seen::Present(source) => Some((route, Arc::clone(source))),
            Seen::Absent(_) | Seen::Unknown(_) => None,
        }
    }

    fn evaluate_fan(&mut self, store: &Store, id: FanId) {
        self.shared.forget(id);
        let only = self.evaluated_only(store, id);
        if only.is_none() {
            self.fans.begin(id);
        }
        let Some(fan) = self.fans.get_mut(id) else { return };
        fan.stale = false;
        let held = fan.finalizes;
        let source_key = Arc::clone(&fan.source);
        let Some(entry) = self.routes.get(fan.route.0 as usize) else { return };
        let Some(route) = entry.route.clone() else {
            // Its configuration is gone: nothing of it is wanted any more.
            let index = fan.route;
            self.forget_fan(id, None);
            self.bury(index);
            if held {
                // Nobody may read it any more. If nothing is known of it now, it is looked at when something is.
                let slot = self.slots.at(&source_key);
                self.plan_later(slot, Urgency::Live);
            }
            return;
        };
        match store.get(&source_key) {
            Seen::Unknown(_) if !route.asks_for(&source_key.kind) => {
                // What it is does not matter: nothing of its kind is asked for any more.
                self.keep_legs(id, &[], None);
                self.fans.remove(id);
            }
            Seen::Unknown(doubt) => {
                let reason = format!("what is known of its source: {doubt}");
                self.hold_fan(id, Hold { reason, on: Some((*source_key).clone()) });
            }
            Seen::Absent(absence) => {
                let seen = self.fans.get_mut(id).and_then(|fan| fan.gone.take());
                let absence = seen.map_or(absence, |seen| *seen);
                let gone = SourceGone::new((*source_key).clone(), absence);
                self.forget_fan(id, Some(&gone));
            }
            // One page after the other, each would be few.
            Seen::Present(source)
                if !fan.watched_end
                    && self.waits_for_us(source)
                    && store.unlisted_kind(&source_key.cluster, &source_key.kind) == Some(Unlisted::Yet) =>
            {
                let reason = "it is being deleted, and what else is is still being listed".to_owned();
                self.hold_fan(id, Hold { reason, on: Some((*source_key).clone()) });
            }
            Seen::Present(source) => {
                let source = Arc::clone(source);
                let Some(fan) = self.fans.get_mut(id) else { return };
                // What asked for our finalizer may be what it does not go to any more.
                let goes_on =
                    |leg: &Leg| only.as_ref().is_some_and(|only| only.binary_search(&leg.to).is_err());
                fan.finalizes &= fan.legs.iter().any(|leg| goes_on(leg) && leg.slots().next().is_some());
                fan.identified = store.identity(&source.key.cluster, &source.key.kind).is_some();
                let view = View::finding(store, &self.copies);
                let selected = route.select(&source, &view);
                self.fans.note(view.take_reads(), Reader::Fan(id));
                match selected {
                    Err(hold) => self.hold_fan(id, hold),
                    Ok(selected) => {
                        if let Some(fan) = self.fans.get_mut(id) {
                            fan.hold = None;
                            fan.reselected = false;
                            fan.gone = None;
                        }
                        self.fans.changed.remove(&id);
                        self.fans.selects(id, selected.by.clone());
                        self.keep_legs(id, &selected.to, None);
                        let changed = |to: &&DestinationId| {
                            only.as_ref().is_none_or(|only| only.binary_search(to).is_ok())
                        };
                        if selected.to.len() > 1 && !route.varies(&source) {
                            let to: Vec<DestinationId> =
                                selected.to.iter().filter(changed).copied().collect();
                            self.evaluate_alike(store, id, &to, route.as_ref(), &source);
                        } else {
                            for to in selected.to.iter().filter(changed) {
                                self.evaluate_leg(store, id, *to, route.as_ref(), &source);
                            }
                        }
                        self.note_undecided(id);
                        if let Some(fan) = self.fans.get_mut(id) {
                            fan.evaluated = Some((source.version, source.content));
                        }
                        self.look_for_stray(store, &source_key);
                    }
                }
            }
        }
    }

    /// Where alone a fan is to be evaluated, if all else of it was decided from what is known now. What was read for that goes on
    /// to wake it.
    fn evaluated_only(&self, store: &Store, id: FanId) -> Option<Arc<Vec<DestinationId>>> {
        let only = self.fans.changed.get(&id).filter(|changed| changed.alone)?;
        let fan = self.fans.get(id)?;
        let source = store.get(&fan.source).present()?;
        let identified = store.identity(&source.key.cluster, &source.key.kind).is_some();
        let decided = fan.is_decided_for(source, identified) && fan.identified == identified;
        (decided && !fan.by.is_empty()).then(|| Arc::clone(&only.at))
    }

    /// A source that bears our finalizer, though nothing is made of it that asks for that, is a slot itself until it is taken
    /// off.
    pub(super) fn look_for_stray(&mut self, store: &Store, source: &Key) {
        // Asked with every evaluation, so what is rare is asked first.
        if !store.get(source).present().is_some_and(|source| self.bears_finalizer(source)) {
            return;
        }
        let fans = self.routes_of(source).into_iter().filter_map(|route| self.fans.find(route, source));
        let asked = fans.filter_map(|fan| self.fans.get(fan)).any(|fan| fan.finalizes);
        if !asked {
            let slot = self.slots.at(source);
            self.plan_later(slot, Urgency::Live);
        }
    }

    /// Undecided: the slots stay as they are, and are told to wait.
    fn hold_fan(&mut self, id: FanId, hold: Hold) {
        let Some(fan) = self.fans.get_mut(id) else { return };
        fan.hold = Some(Box::new(hold));
        self.note_undecided(id);
        let Some(fan) = self.fans.get(id) else { return };
        let slots: Vec<SlotId> = fan.legs.iter().flat_map(Leg::slots).collect();
        for slot in slots {
            self.unsettle(slot);
            self.put_in_question(slot);
            self.plan_later(slot, Urgency::Listed);
        }
    }

    /// Claimed still, and perhaps to go: counted with all that goes from its scope.
    pub(super) fn put_in_question(&mut self, slot: SlotId) {
        if self.slots.get(slot).is_some_and(|state| self.in_question(state).is_some()) {
            self.unsettled.insert(slot);
        } else if self.lingering.contains(&slot) {
            self.handed_on.insert(slot);
        }
    }

    /// Whose legs alone still want a slot, if nobody can say whether they do: nothing is known of their sources now, and their
    /// routes came to select otherwise or go there no more. It stays as it is; but it is not wanted as far as anybody knows.
    pub(super) fn in_question(&self, state: &SlotState) -> Option<&Fan> {
        let questioned = |claim: &Claim| {
            let fan = self.fans.get(claim.fan).filter(|fan| fan.hold.is_some())?;
            let route = self.routes.get(fan.route.0 as usize)?.route.as_ref()?;
            let leaves = route.destinations().is_some_and(|to| to.binary_search(&claim.to).is_err());
            let changed = self.fans.changed.get(&claim.fan);
            let changed = changed.is_some_and(|changed| changed.at.binary_search(&claim.to).is_ok());
            (fan.reselected || leaves || changed).then_some(fan)
        };
        let first = questioned(state.claims.first()?)?;
        state.claims.iter().all(|claim| questioned(claim).is_some()).then_some(first)
    }

    /// All slots of a scope that are in question.
    pub(super) fn all_in_question(&self, of: impl Fn(&ScopeId) -> bool) -> BTreeSet<SlotId> {
        let routes = self.routes.iter().filter(|(_, entry)| of(&entry.scope));
        let routes = routes.map(|(index, _)| RouteIndex(u32::try_from(index).unwrap_or(u32::MAX)));
        let slots =
            routes.flat_map(|route| self.fans.held(route)).flat_map(|fan| &fan.legs).flat_map(Leg::slots);
        let questioned = |state: &SlotState| of(&scope_of(state)) && self.in_question(state).is_some();
        slots
            .chain(self.lingering.iter().copied())
            .filter(|id| self.slots.get(*id).is_some_and(questioned))
            .collect()
    }

    /// What comes after a doubt may be another past, in which nothing was reported.
    fn unsettle(&mut self, slot: SlotId) {
        if let Some(state) = self.slots.get_mut(slot) {
            state.settled = None;
            state.record.reported = Digest::NONE;
            if let Some(passing) = state.passing.said() {
                passing.source_at = None;
            }
        }
    }

    /// Nothing of a source is wanted by a route any more.
    fn forget_fan(&mut self, id: FanId, gone: Option<&SourceGone>) {
        self.keep_legs(id, &[], gone);
        if let Some(fan) = self.fans.get_mut(id) {
            fan.hold = None;
        }
        self.note_undecided(id);
        self.fans.remove(id);
    }

    /// Drops the legs to destinations that are not among those to keep.
    fn keep_legs(&mut self, id: FanId, keep: &[DestinationId], gone: Option<&SourceGone>) {
        let Some(fan) = self.fans.get_mut(id) else { return };
        for leg in fan.keep_legs(keep) {
            self.disclaim(id, &leg, gone);
        }
    }

    fn disclaim(&mut self, fan: FanId, leg: &Leg, gone: Option<&SourceGone>) {
        for slot in leg.slots() {
            self.slots.disclaim(slot, fan, leg.to);
            self.contest(slot);
            if let Some(state) = self.slots.get_mut(slot) {
                state.record.reported = Digest::NONE;
                if state.claims.is_empty() {
                    state.passing.gone = gone.cloned().map(Box::new);
                    self.lingering.remove(&slot);
                }
            }
            if self.slots.get(slot).is_some_and(|state| !state.claims.is_empty()) {
                self.handed_on.insert(slot);
            }
            if let Some(gone) = gone {
                self.owe(slot, &gone.source().cluster, gone.version());
            }
            self.stand_anew(slot);
            if self.slots.get(slot).is_some_and(|state| !state.claims.is_empty()) {
                self.notice_claims(slot);
            }
            self.plan_later(slot, Urgency::Live);
        }
    }

    /// What is the same at all destinations is projected once, for the first of them that is known.
    fn evaluate_alike(
        &mut self,
        store: &Store,
        id: FanId,
        all: &[DestinationId],
        route: &dyn Route,
        source: &Object,
    ) {
        let Some(first) = all.iter().find_map(|to| self.destinations.get(to)) else { return };
        let view = View::finding(store, &self.copies);
        let wants = route.project(source, first, &view);
        self.fans.note(view.take_reads(), Reader::Fan(id));
        let wants: Arc<[Want]> = match wants {
            Ok(wants) if let Some(hold) = made_of_others(route, source, &wants) => {
                return self.hold_fan(id, hold);
            }
            Ok(wants) => wants.into(),
            Err(hold) => return self.hold_fan(id, hold),
        };
        for to in all {
            let Some(destination) = self.destinations.get(to) else { continue };
            let there: Vec<Want> = wants.iter().map(|want| in_cluster(want, &destination.cluster)).collect();
            self.claim_leg(store, id, *to, &there, route, source);
        }
        self.shared.remember(id, wants);
    }

    fn evaluate_leg(
        &mut self,
        store: &Store,
        id: FanId,
        to: DestinationId,
        route: &dyn Route,
        source: &Object,
    ) {
        let Some(destination) = self.destinations.get(&to) else { return };
        let view = View::finding(store, &self.copies);
        let wants = route.project(source, destination, &view);
        self.fans.note(view.take_reads(), Reader::Leg(id, to));
        let wants = wants.and_then(|wants| made_of_others(route, source, &wants).map_or(Ok(wants), Err));
        match wants {
            Err(hold) => {
                let Some(fan) = self.fans.get_mut(id) else { return };
                let slots: SmallVec<[SlotId; 2]> = fan.change_leg(to, |leg| {
                    leg.hold_back(hold);
                    leg.slots().collect()
                });
                for slot in slots {
                    self.unsettle(slot);
                    self.plan_later(slot, Urgency::Live);
                }
            }
            Ok(wants) => self.claim_leg(store, id, to, &wants, route, source),
        }
    }

    fn claim_leg(
        &mut self,
        store: &Store,
        id: FanId,
        to: DestinationId,
        wants: &[Want],
        route: &dyn Route,
        source: &Object,
    ) {
        let Some(rank) = self.rank_of(id) else { return };
        let slots: SmallVec<[SlotId; 2]> = wants.iter().map(|want| self.slots.at(&want.slot)).collect();
        let Some(fan) = self.fans.get_mut(id) else { return };
        fan.finalizes |= wants.iter().any(|want| want.policy.finalizer);
        let (identified, live, watched) = (fan.identified, fan.urgency.is_live(), fan.watched_end);
        let mut dropped = fan.change_leg(to, |leg| leg.replace(&slots));
        dropped.retain(|slot| !slots.contains(slot));
        if !dropped.is_empty() {
            self.disclaim(id, &Leg::new(to, &dropped), None);
        }
        for (slot, want) in slots.into_iter().zip(wants) {
            let claim = Claim { rank: Arc::clone(&rank), fan: id, to };
            let ends = want.policy.finalizer && !watched && self.waits_for_us(source);
            let Key { cluster, kind, .. } = &want.origin.key;
            let identified = if want.origin.key == source.key {
                identified
            } else {
                store.identity(cluster, kind).is_some()
            };
            if self.is_settled_as(store, slot, want, &claim, route, identified) {
                continue;
            }
            let joins = self.slots.claim(slot, claim);
            self.contest(slot);
            if let Some(passing) = self.slots.get_mut(slot).and_then(|state| state.passing.said()) {
                (passing.gone, passing.goes_alone) = (None, false);
            }
            self.belong(slot);
            if ends {
                // Claimed still, and about to go: settled with all that goes from its scope.
                self.unsettled.insert(slot);
            } else {
                if let Some(state) = self.slots.get(slot) {
                    self.breaker.recall(&scope_of(state), &state.key);
                }
                self.unsettled.remove(&slot);
            }
            self.owe(slot, &source.key.cluster, source.version);
            self.stand_anew(slot);
            if joins {
                self.notice_claims(slot);
            }
            // Nobody's edit waits until all that a first listing showed was delivered.
            self.plan_later(slot, urgency(&want.slot, live));
        }
    }

    /// What lost a claim and has another is the other's, now that all is evaluated. What several let go of together stays with
    /// the one that it was: handed on from one to the next, it would count with whoever happened to be evaluated last. Where it
    /// is in question whether the other wants it still, these two may have let go of it together.
    pub(super) fn hand_on(&mut self) {
        for slot in std::mem::take(&mut self.handed_on) {
            if self.slots.get(slot).is_some_and(|state| self.in_question(state).is_some()) {
                self.lingering.insert(slot);
                self.unsettled.insert(slot);
            } else {
                self.belong(slot);
            }
            self.stand_anew(slot);
        }
    }

    /// A slot belongs to the scope of its best claim; without any, to the scope that it last belonged to.
    fn belong(&mut self, slot: SlotId) {
        self.lingering.remove(&slot);
        let best = self.slots.get(slot).and_then(|state| self.fans.get(state.claims.first()?.fan));
        let entry = best.and_then(|fan| self.routes.get(fan.route.0 as usize));
        let Some(scope) = entry.map(|entry| entry.scope.clone()) else { return };
        let Some(state) = self.slots.get_mut(slot).filter(|state| state.scope.as_ref() != Some(&scope))
        else {
            return;
        };
        // Whatever was asked or said about it there is over: it is another's now, and nobody's any more to the one before.
        self.breaker.recall(&scope_of(state), &state.key);
        state.scope = Some(scope);
    }

    /// Whether a slot is as wanted already, by the same claim, so that there is nothing to decide about it. What was
    /// settled before the identity of its source's kind was known is looked at once more when that is.
    fn is_settled_as(
        &self,
        store: &Store,
        slot: SlotId,
        want: &Want,
        claim: &Claim,
        route: &dyn Route,
        identified: bool,
    ) -> bool {
        let Some(state) = self.slots.get(slot) else { return false };
        state.settled.as_ref().is_some_and(|settled| {
            settled.is_by(want)
                && (state.identified || !identified)
                && state.claims.first() == Some(claim)
                && state.scope.as_ref() == Some(&route.head().scope)
                && store.get(&state.key).present().is_some_and(|target| target.version == settled.version)
        })
    }

    fn rank_of(&self, fan: FanId) -> Option<Arc<Rank>> {
        Some(Arc::clone(&self.routes.get(self.fans.get(fan)?.route.0 as usize)?.rank))
    }

    /// The lane of a route in the queues.
    pub(crate) fn lane(&self, fan: FanId) -> RouteIndex {
        self.fans.get(fan).map_or(RouteIndex(u32::MAX), |fan| fan.route)
    }
}

/// Why wants are not delivered that are copies of other objects than their route names: after a restart nobody would know who
/// may claim them.
fn made_of_others(route: &dyn Route, source: &Object, wants: &[Want]) -> Option<Hold> {
    let known = |origin: &Key| *origin == source.key || route.relates().contains(&origin.kind);
    let other = wants.iter().map(|want| &want.origin.key).find(|origin| !known(origin))?;
    let reason =
        format!("it is a copy of {other}, and its route does not say that it makes any of that kind");
    Some(Hold { reason, on: Some(other.clone()) })
}
