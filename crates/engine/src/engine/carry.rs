//! Carrying out: slots are planned, and plans become calls.

use std::collections::{btree_map, hash_map};

use mailboat_object::digest::Digest;
use mailboat_object::key::Key;
use mailboat_object::wire::{Call, Fault, FaultKind, Reply};
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;

use super::faults::Hand;
use super::flights::{Aims, Flight};
use super::housing::Housing;
use super::settle::scope_of;
use super::sight::{Sight, WantedHere, namespace_of};
use super::{Engine, Next, Notice};
use crate::compose::{Composed, compose};
use crate::mark::Marked;
use crate::mutation::{Mutation, broken};
use crate::plan::{Action, Likeness, Permit, Plan, Proof, Slot, Telling, Verdict, Wanted, plan};
use crate::queue::Urgency;
use crate::record::Record;
use crate::route::View;
use crate::slots::{Reading, Settled, SlotId, SlotState, Told, Written};
use crate::want::{Delivery, StatusReturn};
use crate::warrant::{Evidence, LOOK_AGAIN_AFTER};

/// So many sources may be waited for by slots that are gone before they are looked for.
const AWAITED_IN_VAIN: usize = 64;

/// Names a call under way. A later one is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Ticket(pub u64);

/// What a call under way does for its slot.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// Carries out an action.
    Act(Action),
    /// Reads what a first delivery met, as it was before.
    LookBefore,
    /// Lets go of what a first delivery met.
    LetGo,
    /// Reads what stands in a slot after a write that came too late.
    ReadAgain,
    /// Reads the source of a slot after a write to it that came too late.
    ReadSource,
    /// Reads a copy that its server did not let us apply, for what would be left empty in it.
    LookWithin,
    /// Takes that out of it.
    TakeOut,
}

impl Engine {
    /// What to do next.
    pub fn next(&mut self, now: u64, store: &Store) -> Next {
        if !broken(Mutation::PartByPart) {
            self.evaluate_some(now, store);
            if !self.evaluations.is_empty() {
                return Next::Again;
            }
        }
        self.hand_on();
        if !self.unsettled.is_empty() {
            self.settle(store);
        }
        self.inform_anew();
        self.try_those_away(now);
        while self.flights.places_taken(now) < self.options.in_flight {
            let Some((slot, _)) = self.plans.pop(now) else {
                let evaluated = broken(Mutation::PartByPart) && self.evaluate_some(now, store);
                if evaluated || !self.unsettled.is_empty() || self.breaker.is_stirred() {
                    return Next::Again;
                }
                let away = self.away.values().filter(|away| !away.trying).map(|away| away.until).min();
                return match [self.plans.due(), away].into_iter().flatten().min() {
                    Some(at) => Next::WaitUntil(at),
                    None => Next::Idle,
                };
            };
            if let Some(next) = self.plan_slot(now, store, slot) {
                return next;
            }
            self.nothing_to_try(slot);
        }
        match self.flights.place_free_at() {
            Some(at) => Next::WaitUntil(at),
            None => Next::Idle,
        }
    }

    /// Evaluates as much as is done in one turn. False if there was nothing.
    fn evaluate_some(&mut self, now: u64, store: &Store) -> bool {
        let any = !self.evaluations.is_empty();
        for _ in 0..self.options.evaluations {
            match self.evaluations.pop(now) {
                Some((evaluation, urgency)) => self.evaluate(store, evaluation, urgency),
                None => break,
            }
        }
        any
    }

    /// How a call went.
    pub fn done(
        &mut self,
        now: u64,
        store: &Store,
        ticket: Ticket,
        reply: Result<Reply, Fault>,
    ) -> Option<Next> {
        let flight = self.flights.end(ticket)?;
        let id = flight.slot;
        if flight.work == Work::Act(Action::EnsureNamespace) {
            let exists = |fault: &Fault| fault.kind == FaultKind::Exists;
            self.housed(&flight.at, reply.as_ref().map_or_else(exists, |_| true));
        }
        if let Some(state) = self.slots.get_mut(id) {
            state.under_way = false;
            state.again = false;
        }
        if self.went_with_its_cluster(id) {
            return None;
        }
        let follow_up = match reply {
            Ok(reply) => {
                self.cluster_answers(&flight.at.cluster);
                self.succeeded(now, store, id, flight, &reply)
            }
            Err(fault) => self.failed(now, ticket, &flight, &fault),
        };
        if let Some((work, call)) = follow_up {
            return Some(self.launch(now, id, work, call, Aims::default()));
        }
        self.plan_later(id, Urgency::Live);
        None
    }

    fn plan_slot(&mut self, now: u64, store: &Store, id: SlotId) -> Option<Next> {
        if let Some(met) = self.slots.get(id)?.passing.met.clone() {
            return self.look_before(now, id, &met);
        }
        if self.is_settled(store, id) {
            self.paid(id);
            return None;
        }
        let gone = self.slots.get_mut(id)?.passing.said().and_then(|passing| passing.gone.as_mut());
        if let Some(gone) = gone.filter(|gone| gone.is_stale(now)) {
            gone.unconfirmed();
        }
        self.project_once(store, id);
        let sight = self.look_at(store, id)?;
        self.await_source(id, &sight);
        if self.resettle(store, id, &sight) {
            return None;
        }
        let state = self.slots.get_mut(id)?;
        // While nothing is to come back, the source's status is somebody else's: what was reported need not stand there.
        if matches!(&sight.wanted, WantedHere::By(want) if want.policy.status == StatusReturn::Off) {
            state.record.reported = Digest::NONE;
        }
        // What a view hides is still to be shown as we wrote it, if ever.
        let hides = state.record.odd.hidden.is_some() && matches!(sight.target, Seen::Absent(_));
        if state.passing.reading == Reading::Missing {
            state.notes_gone();
        }
        let taken = state.record.odd.said().is_some_and(|odd| std::mem::take(&mut odd.taken));
        if let Some(passing) = state.passing.said() {
            if !hides && store.get(&state.key).doubt().is_none() {
                passing.written = None;
            }
            passing.source_at = None;
            let ends = matches!(sight.wanted, WantedHere::No(Evidence::SourceDeleting(_)));
            let stands = matches!(sight.target, Seen::Present(_));
            passing.clear = ends && !stands && (passing.clear || passing.reading == Reading::Missing);
            // Whatever we wrote there went since.
            if passing.reading == Reading::Missing && matches!(passing.written, Some(Written::At(_))) {
                passing.written = None;
            }
            if matches!(sight.wanted, WantedHere::By(_)) {
                passing.ending = None;
            }
        }
        if let Seen::Present(target) = &sight.target {
            if let Some(passing) = state.passing.said() {
                // It stands in its namespace.
                passing.namespace = Told::Nothing;
            }
            let hidden = state.record.odd.said().and_then(|odd| odd.hidden.take());
            if let Some(passing) = state.passing.said().filter(|_| hidden.is_some()) {
                // It rested because nothing was to be seen of it.
                (passing.rest_until, passing.rests, passing.fault) = (0, None, None);
            }
            if matches!(sight.marked, Marked::Ours(_)) && sight.proof == Proof::Ours {
                state.record.uid = Some(target.uid.clone());
            } else {
                state.record.uid = None;
            }
            // Only what was compared with a want is as that want left it: a copy that another hand rewrites while
            // its source is in doubt must not be taken for our own last word.
            if sight.likeness == Likeness::Same && matches!(sight.wanted, WantedHere::By(_)) {
                state.record.result = target.content;
                if !target.hands.ours.is_none() {
                    state.record.ours = target.hands.ours;
                }
                if let Some(passing) = state.passing.said() {
                    passing.fresh = None;
                }
                self.bodies.let_go(id);
            }
        }
        if let WantedHere::By(want) = &sight.wanted
            && taken
            && !matches!(want.policy.delivery, Delivery::Overlay | Delivery::Keep)
        {
            self.fought(now, id, Some(want.body.digest), Hand::Deletes);
        }
        self.count(id);
        if let Some(cluster) = sight.told_to().filter(|cluster| self.is_away(cluster, id)) {
            self.untold.entry(cluster.clone()).or_default().insert(id);
        }
        let decided = self.decide(now, store, id, &sight);
        let decided = self.one_makes_the_namespace(id, decided);
        self.notice(id, &decided.verdict);
        if decided.verdict != Verdict::Acting
            && let Some(source) = sight.source.as_deref().filter(|source| self.waits_for_us(source))
        {
            // It may have waited for this slot alone.
            self.look_for_stray(store, &source.key);
        }
        self.await_namespace(id, &decided.verdict);
        if let Some(state) = self.slots.get_mut(id) {
            state.settled = match (&decided.verdict, &sight.wanted, &sight.target) {
                // What depends on a finalizer of its source depends on more than is remembered here.
                (Verdict::Settled, WantedHere::By(want), Seen::Present(target))
                    if !want.policy.finalizer && state.passing.met.is_none() =>
                {
                    state.identified = want.origin.is_identified();
                    if let Some(fan) = state.claims.first().map(|claim| claim.fan)
                        && self.fans.get(fan).is_some_and(|fan| fan.legs.len() == 1)
                    {
                        self.shared.forget(fan);
                    }
                    Some(Settled::as_wanted(want, target.version))
                }
                _ => None,
            };
        }
        let gone = decided.verdict == Verdict::Settled && matches!(sight.wanted, WantedHere::No(_));
        let action = decided.actions.into_iter().next();
        if let Some(state) = self.slots.get_mut(id) {
            if let Some(passing) = state.passing.said()
                && std::mem::take(&mut passing.reading) == Reading::Found
            {
                passing.fresh = None;
            }
            state.tidy();
        }
        match action {
            None if gone => self.forget(id),
            // What rests is looked at again when its rest is over, whoever asked for this look.
            None => self.wake_after_rest(now, id),
            Some(Action::ConfirmGone(source)) => return self.begin_to_look(now, id, sight, source),
            Some(Action::Delete(_)) if self.takes_others_along(store, id) => {
                let why = "it defines a kind of which objects of ours stand there, and they would go with it";
                self.rest_for(now, id, LOOK_AGAIN_AFTER, why);
                self.plan_later(id, Urgency::Listed);
            }
            Some(action) if self.shut && action.writes() => drop(self.held_back.insert(id)),
            Some(action) => return self.carry_out(now, store, id, &sight, action),
        }
        None
    }

    /// Whether writes may leave from now on. A process that may not write plans like one that may, keeps no more of it than which
    /// slots are concerned, and plans these again when it may: by then they may be as wanted.
    pub fn writes_may_leave(&mut self, may: bool) {
        self.shut = !may;
        if may {
            for slot in std::mem::take(&mut self.held_back) {
                self.plan_later(slot, Urgency::Live);
            }
        }
    }

    /// Whether a slot was as wanted when it was last looked at, and nothing about it has changed since.
    fn is_settled(&self, store: &Store, id: SlotId) -> bool {
        let Some(state) = self.slots.get(id) else { return false };
        state.settled.as_ref().is_some_and(|settled| {
            state.verdict == Some(Verdict::Settled)
                && state.passing.written.is_none()
                && store.get(&state.key).present().is_some_and(|target| target.version == settled.version)
        })
    }

    pub(super) fn decide(&self, now: u64, store: &Store, id: SlotId, sight: &Sight) -> Plan {
        let Some(state) = self.slots.get(id) else {
            return Plan { verdict: Verdict::Settled, actions: smallvec::smallvec![] };
        };
        plan(&Slot {
            key: &state.key,
            owner: &self.owner,
            wanted: match &sight.wanted {
                WantedHere::By(want) => Wanted::By(want),
                WantedHere::No(evidence) => Wanted::No(evidence),
                WantedHere::Undecided(hold) => Wanted::Undecided(hold),
            },
            source: sight.source.as_deref(),
            target: match &sight.target {
                Seen::Present(target) => Seen::Present(&**target),
                Seen::Absent(absence) => Seen::Absent(*absence),
                Seen::Unknown(doubt) => Seen::Unknown(*doubt),
            },
            marked: &sight.marked,
            proof: sight.proof,
            likeness: sight.likeness,
            record: &state.record,
            ready: self.ready(now, store, id, state, &sight.wanted),
            telling: match sight.told_to() {
                Some(cluster) if self.is_away(cluster, id) => Telling::Away,
                _ if state.passing.silent_until > now => Telling::Later,
                _ => Telling::Now,
            },
            apply: self.clusters.get(&state.key.cluster).is_some_and(|abilities| abilities.apply),
            missing: state.passing.reading == Reading::Missing || state.passing.clear,
            permit: self.permit(state),
            last: self.is_last(store, id, &sight.wanted),
            finalizer: self.options.finalizer.as_ref(),
            stray: self.options.finalizer.as_ref().filter(|_| self.is_stray(state, sight)),
        })
    }

    /// Whether what stands in a slot may be withdrawn. What goes alone counts on neither side: if it is all that is left of its
    /// scope, that is over, and there is nobody to ask.
    fn permit(&self, state: &SlotState) -> Permit {
        let scope = scope_of(state);
        if state.passing.goes_alone && !self.breaker.knows(&scope) {
            return Permit::Open;
        }
        self.breaker.permit(&scope, &state.key)
    }

    fn carry_out(
        &mut self,
        now: u64,
        store: &Store,
        id: SlotId,
        sight: &Sight,
        action: Action,
    ) -> Option<Next> {
        let state = self.slots.get(id)?;
        let want = match &sight.wanted {
            WantedHere::By(want) => Some(&**want),
            _ => None,
        };
        let target = match &sight.target {
            Seen::Present(target) => Some(&**target),
            _ => None,
        };
        let report = match (&action, want, &sight.source, target) {
            (Action::Report(_), Some(_), Some(source), Some(target)) => {
                let claim = state.claims.first()?;
                let route = self.routes.get(self.lane(claim.fan).0 as usize)?.route.clone()?;
                route.report(source, target, &View::finding(store, &self.copies)).ok().flatten()
            }
            _ => None,
        };
        let composed = compose(&crate::compose::Parts {
            key: &state.key,
            manager: &self.manager,
            marks: want.map_or_else(|| self.marks.first(), |want| Some(&want.policy.marks)),
            want,
            source: sight.source.as_deref(),
            target,
            report: report.as_ref(),
            action: &action,
        });
        match composed {
            Composed::Call(call) => {
                let intent = want.map(|want| want.body.digest);
                let status = target
                    .filter(|_| matches!(action, Action::Report(_)))
                    .and_then(|target| Some(Record::report(sight.source.as_deref()?, target)));
                let carries = match &action {
                    Action::Report(_) => target.map(|target| target.version),
                    _ => want.filter(|_| carries_a_change(state, sight)).map(|want| want.origin.version),
                };
                if let (Action::Deliver { .. }, Some(want)) = (&action, want) {
                    self.remember_alone(id, want);
                }
                Some(self.launch(
                    now,
                    id,
                    Work::Act(action),
                    call,
                    Aims { intent, status, carries, sought: None },
                ))
            }
            // There is nothing to write after all: what would be said is said already.
            Composed::Nothing => {
                let reported = match (sight.source.as_deref(), target) {
                    (Some(source), Some(target)) => Record::report(source, target),
                    _ => Digest::NONE,
                };
                if let Some(state) = self.slots.get_mut(id) {
                    state.record.reported = reported;
                }
                self.plan_later(id, Urgency::Live);
                None
            }
            Composed::Refused(sentence) => {
                self.rest(now, id, &sentence);
                self.wake_after_rest(now, id);
                None
            }
        }
    }

    pub(super) fn launch(&mut self, now: u64, slot: SlotId, work: Work, call: Call, aims: Aims) -> Next {
        if let Some(state) = self.slots.get_mut(slot) {
            state.under_way = true;
        }
        let at = call.key.clone();
        if work == Work::Act(Action::EnsureNamespace) {
            self.housing.insert(at.clone(), Housing::UnderWay);
        }
        Next::Call(self.flights.begin(Flight { slot, work, at, aims, since: now }), call)
    }

    pub(super) fn forget(&mut self, id: SlotId) {
        let Some(state) = self.slots.get_mut(id) else { return };
        if state.claims.is_empty() && !state.under_way {
            let (scope, key) = (scope_of(state), state.key.clone());
            // Counted on, what went before would make each later withdrawal a smaller share than it is.
            state.record.uid = None;
            self.count(id);
            self.breaker.recall(&scope, &key);
            self.step_down(id);
            self.paid(id);
            // One that was as wanted before is as wanted again, and still another: nothing stands there now.
            if self.slots.get(id).is_some_and(|state| state.verdict == Some(Verdict::Settled)) {
                let slot = key.clone();
                self.notices.push(Notice { slot, verdict: Verdict::Settled, fault: None });
            }
            self.slots.remove(id);
            self.bodies.let_go(id);
            self.held_back.remove(&id);
            self.housing.remove(&namespace_of(&key));
            self.await_nothing(id, &key);
        }
    }

    /// A slot is no more: nothing that it waited for need wake it.
    fn await_nothing(&mut self, id: SlotId, slot: &Key) {
        if let btree_map::Entry::Occupied(mut waiting) = self.homeless.entry(namespace_of(slot)) {
            waiting.get_mut().remove(&id);
            if waiting.get().is_empty() {
                waiting.remove();
            }
        }
        if let hash_map::Entry::Occupied(mut waiting) = self.unlisted.entry(slot.cluster.clone()) {
            waiting.get_mut().1.remove(&id);
            if waiting.get().1.is_empty() {
                waiting.remove();
            }
        }
        // Each waits for two sources at most: what is more is of slots that are gone.
        if self.waiting.len() > 2 * self.slots.len() + AWAITED_IN_VAIN {
            let slots = &self.slots;
            self.waiting.retain(|_, waiting| {
                waiting.retain(|id| slots.get(*id).is_some_and(|state| state.claims.is_empty()));
                !waiting.is_empty()
            });
        }
    }
}

/// Whether what is delivered to a slot is a source that changed since it was last delivered there. What is made anew, or put
/// right, is what was delivered before.
fn carries_a_change(state: &SlotState, sight: &Sight) -> bool {
    match (&sight.wanted, &sight.marked) {
        (WantedHere::By(want), Marked::Ours(mark)) => mark.origin.version < want.origin.version,
        _ => state.record.result.is_none(),
    }
}
