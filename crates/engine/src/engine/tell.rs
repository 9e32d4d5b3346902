//! What the engine tells a role of all slots at once, at a price that does not depend on how many there are; of one
//! route, at a price of what that route reads.

use std::collections::BTreeSet;

use mailboat_object::key::{ClusterId, Key, Uid, Version};
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;

use super::settle::scope_of;
use super::{Engine, Notice};
use crate::breaker::ScopeId;
use crate::fans::{Fan, FanId, Leg, RouteIndex};
use crate::plan::{ChangeId, Verdict, Wait};
use crate::route::{DestinationId, RouteId};
use crate::slots::{SlotId, SlotState};
use crate::standing::{Counts, Part, Stance};
use crate::want::Hold;

/// Something that is not as it is wanted.
#[derive(Clone, PartialEq, Debug)]
pub struct NotCurrent {
    /// The slot; none if it cannot even be said where its source goes.
    pub slot: Option<Key>,
    /// The source that is wanted there.
    pub source: Option<Key>,
    /// The generation of the source that should be there, if its kind counts generations.
    pub generation: Option<u64>,
    /// The generation of the source that a copy of ours there was made from, if that is known.
    pub delivered_generation: Option<u64>,
    /// How it stands.
    pub verdict: Verdict,
    /// The last fault, in the server's words.
    pub fault: Option<Box<str>>,
}

/// A slot that a route wants and another has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contested {
    /// The slot.
    pub slot: Key,
    /// The source that is wanted there in vain.
    pub source: Key,
    /// The route that has it, since it is older.
    pub by: RouteId,
}

impl Engine {
    /// How many slots of a cluster or of a scope stand how.
    pub fn counts(&self, part: &Part) -> Counts {
        self.standings.counts(part)
    }

    /// What is not as wanted in a cluster or in a scope: at most so many, in the order of their keys.
    pub fn not_current(&self, store: &Store, part: &Part, limit: usize) -> Vec<NotCurrent> {
        self.not_current_in(store, part, |_| true, limit)
    }

    /// The same in those clusters alone that matter to whoever asks, at the price of all that is not as wanted.
    pub fn not_current_in(
        &self,
        store: &Store,
        part: &Part,
        matters: impl Fn(&ClusterId) -> bool,
        limit: usize,
    ) -> Vec<NotCurrent> {
        let there = |id: &SlotId| self.slots.get(*id).is_some_and(|slot| matters(&slot.key.cluster));
        let slots = self.standings.not_current(part).filter(there).take(limit);
        let mut listed: Vec<_> = slots.filter_map(|slot| self.why_not_current(store, slot)).collect();
        listed.sort_by(|one, other| one.slot.cmp(&other.slot));
        listed
    }

    /// How many sources of a route it cannot say anything about yet, so that there is no slot to ask about.
    pub fn undecided_count(&self, route: &RouteId) -> usize {
        self.route_ids.get(route).map_or(0, |index| self.fans.undecided(*index).len())
    }

    /// These sources, at most so many, and why.
    pub fn undecided(&self, store: &Store, route: &RouteId, limit: usize) -> Vec<NotCurrent> {
        self.undecided_for(store, route, |_| true, limit)
    }

    /// The same where it is one of those destinations that matter to whoever asks of which nothing can be said, or all.
    pub fn undecided_for(
        &self,
        store: &Store,
        route: &RouteId,
        matters: impl Fn(DestinationId) -> bool,
        limit: usize,
    ) -> Vec<NotCurrent> {
        let Some(index) = self.route_ids.get(route) else { return Vec::new() };
        let there = |id: &FanId| {
            self.fans.get(*id).is_some_and(|fan| {
                fan.hold.is_some() || fan.legs.iter().any(|leg| leg.hold().is_some() && matters(leg.to))
            })
        };
        let fans = self.fans.undecided(*index).filter(there).take(limit);
        let mut listed: Vec<_> = fans.filter_map(|fan| self.why_undecided(store, fan)).collect();
        listed.sort_by(|one, other| one.source.cmp(&other.source));
        listed
    }

    /// The destinations for which a route cannot say what a source is to be, where nothing stands yet by which that could
    /// be told; and why.
    pub fn held_bare(&self, route: &RouteId, source: &Key) -> impl Iterator<Item = (DestinationId, &Hold)> {
        let fan = self.route_ids.get(route).and_then(|index| self.fans.find(*index, source));
        let legs = fan.and_then(|fan| self.fans.get(fan)).into_iter().flat_map(|fan| &fan.legs);
        legs.filter(|leg| leg.is_bare()).filter_map(|leg| Some((leg.to, leg.hold()?)))
    }

    /// How many sources of a route are selected.
    pub fn selected_count(&self, route: &RouteId) -> usize {
        self.route_ids.get(route).map_or(0, |index| self.fans.selected(*index))
    }

    /// The slots that a route wants for one source and that an older route has for another: at most so many, at the price of
    /// these.
    pub fn contested(&self, route: &RouteId, limit: usize) -> Vec<Contested> {
        let Some(index) = self.route_ids.get(route) else { return Vec::new() };
        let slots = self.contests.lost_by(*index).filter_map(|id| self.slots.get(id));
        let lost = slots.flat_map(|state| {
            let winner = state.claims.first().and_then(|claim| self.fans.get(claim.fan));
            let in_vain = self.in_vain(state).filter(|fan| fan.route == *index);
            in_vain.filter_map(move |fan| {
                let by = self.routes.get(winner?.route.0 as usize)?.route.as_ref()?.head().id.clone();
                Some(Contested { slot: state.key.clone(), source: (*fan.source).clone(), by })
            })
        });
        let mut listed: Vec<Contested> = lost.take(limit).collect();
        listed.sort_by(|one, other| one.slot.cmp(&other.slot));
        listed
    }

    /// Notes who wants a slot in vain, now that somebody wants it otherwise than before.
    pub(super) fn contest(&mut self, id: SlotId) {
        let Some(state) = self.slots.get(id) else { return };
        let losers = self.in_vain(state).map(|fan| fan.route).collect();
        self.contests.set(id, losers);
    }

    /// Who wants a slot for another source than the one that has it. The same source wanted by two routes is wanted alike.
    fn in_vain<'a>(&'a self, state: &'a SlotState) -> impl Iterator<Item = &'a Fan> {
        let mut fans = state.claims.iter().filter_map(|claim| self.fans.get(claim.fan));
        let winner = fans.next();
        fans.filter(move |fan| winner.is_some_and(|winner| winner.source != fan.source))
    }

    /// The changes whose withdrawals are held, and how much each would withdraw.
    pub fn held(&self) -> impl Iterator<Item = (ChangeId, usize)> {
        self.standings.held()
    }

    /// The same by scope, at the price of how many scopes there are.
    pub fn held_by_scope(&self) -> impl Iterator<Item = (&ScopeId, ChangeId, usize)> {
        self.breaker.held()
    }

    /// What would go from a scope, or may, and waits for a word on all of it: where, and which object.
    pub fn losers(&self, scope: &ScopeId) -> impl Iterator<Item = (&Key, &Uid)> {
        self.breaker.losers(scope)
    }

    /// Where something of ours stands that belongs to a scope, or did before nobody wanted it, at the price of what its routes
    /// want and of what nobody does.
    pub fn placed_by(&self, scope: &ScopeId) -> impl Iterator<Item = &Key> {
        let routes = self.routes.iter().filter(|(_, entry)| entry.scope == *scope);
        let indexes = routes.filter_map(|(index, _)| u32::try_from(index).ok());
        let fans = indexes.flat_map(|index| self.fans.of_route(RouteIndex(index)));
        let legs = fans.filter_map(|fan| self.fans.get(fan)).flat_map(|fan| &fan.legs);
        let left = self.slots.nobodys().map(|(id, _)| id).chain(self.lingering.iter().copied());
        let slots: BTreeSet<SlotId> = legs.flat_map(Leg::slots).chain(left).collect();
        let of_it = |state: &&SlotState| state.record.uid.is_some() && scope_of(state) == *scope;
        slots.into_iter().filter_map(|id| self.slots.get(id)).filter(of_it).map(|state| &state.key)
    }

    /// The slots that nobody claims, at the price of how many these are.
    pub fn unclaimed(&self) -> impl Iterator<Item = &Key> {
        self.slots.nobodys().map(|(_, state)| &state.key)
    }

    /// Up to which version everything that a cluster showed is delivered, apart from what is told to be not current,
    /// if it was read up to the version given. `None` while that is being evaluated.
    pub fn delivered_up_to(&self, source: &ClusterId, read: Version) -> Option<Version> {
        if !self.evaluations.is_empty() {
            return None;
        }
        let owed = self.standings.first_owed(source);
        Some(owed.map_or(read, |version| read.min(Version(version.0.saturating_sub(1)))))
    }

    /// Gives a slot a verdict and tells it, if it is another.
    pub(super) fn notice(&mut self, id: SlotId, verdict: &Verdict) {
        if *verdict == Verdict::Acting {
            // On the way from one verdict to the next: what is refused again after another try is not news.
            return;
        }
        self.paid(id);
        let Some(state) = self.slots.get_mut(id) else { return };
        if state.verdict.as_ref() == Some(verdict) {
            return;
        }
        let notice =
            Notice { slot: state.key.clone(), verdict: verdict.clone(), fault: state.passing.fault.clone() };
        state.verdict = Some(verdict.clone());
        self.notices.push(notice);
        self.stand_anew(id);
    }

    /// Tells that others want a slot than before, also where that gives it no other verdict.
    pub(super) fn notice_claims(&mut self, id: SlotId) {
        let Some(state) = self.slots.get(id) else { return };
        let Some(verdict) = state.verdict.clone() else { return };
        let notice = Notice { slot: state.key.clone(), verdict, fault: state.passing.fault.clone() };
        self.notices.push(notice);
    }

    /// Notes whether something about a source is undecided that no slot tells, and tells it if it is or was so.
    pub(super) fn note_undecided(&mut self, id: FanId) {
        if self.fans.note_undecided(id) {
            self.notice_source(id);
        }
    }

    pub(super) fn notice_source(&mut self, id: FanId) {
        let Some(fan) = self.fans.get(id) else { return };
        let hold = fan.undecided().cloned();
        let verdict = hold.map_or(Verdict::Settled, |hold| Verdict::Waiting(Wait::Undecided(Box::new(hold))));
        self.notices.push(Notice { slot: (*fan.source).clone(), verdict, fault: None });
    }

    /// Counts a slot by its claims, its scope and its verdict as they are now.
    pub(super) fn stand_anew(&mut self, id: SlotId) {
        let Some(state) = self.slots.get(id) else { return };
        let stance = Stance::of(state.verdict.as_ref(), !state.claims.is_empty());
        let stands = stance.map(|stance| (scope_of(state), stance));
        if state.stands == stands {
            return;
        }
        self.step_down(id);
        let Some(state) = self.slots.get_mut(id) else { return };
        if let Some((scope, stance)) = &stands {
            self.standings.enter(id, &state.key.cluster, scope, *stance);
        }
        state.stands = stands;
    }

    /// Counts a slot no more.
    pub(super) fn step_down(&mut self, id: SlotId) {
        let Some(state) = self.slots.get_mut(id) else { return };
        if let Some((scope, stance)) = state.stands.take() {
            self.standings.leave(id, &state.key.cluster, &scope, stance);
        }
    }

    /// Something is to be done in a slot about this version of its source.
    pub(super) fn owe(&mut self, id: SlotId, source: &ClusterId, version: Version) {
        let Some(state) = self.slots.get_mut(id) else { return };
        if state.owed.is_none() {
            state.owed = Some(Box::new((source.clone(), version)));
            self.standings.owe(source, version);
        }
    }

    pub(super) fn paid(&mut self, id: SlotId) {
        if let Some((source, version)) = self.slots.get_mut(id).and_then(|state| state.owed.take()).as_deref()
        {
            self.standings.pay(source, *version);
        }
    }

    fn why_not_current(&self, store: &Store, id: SlotId) -> Option<NotCurrent> {
        let state = self.slots.get(id)?;
        let fan = state.claims.first().and_then(|claim| self.fans.get(claim.fan));
        let source = fan.map(|fan| (*fan.source).clone());
        let mark = store.get(&state.key).present().and_then(|target| self.our_mark_on(target));
        let delivered = mark.map(|mark| mark.origin.generation);
        Some(NotCurrent {
            slot: Some(state.key.clone()),
            generation: source.as_ref().and_then(|source| generation(store, source)),
            delivered_generation: delivered.filter(|generation| *generation > 0),
            source,
            verdict: state.verdict.clone().unwrap_or(Verdict::Acting),
            fault: state.passing.fault.clone(),
        })
    }

    fn why_undecided(&self, store: &Store, id: FanId) -> Option<NotCurrent> {
        let fan = self.fans.get(id)?;
        let hold = fan.undecided()?.clone();
        Some(NotCurrent {
            slot: None,
            source: Some((*fan.source).clone()),
            generation: generation(store, &fan.source),
            delivered_generation: None,
            verdict: Verdict::Waiting(Wait::Undecided(Box::new(hold))),
            fault: None,
        })
    }
}

fn generation(store: &Store, source: &Key) -> Option<u64> {
    match store.get(source) {
        Seen::Present(source) => Some(source.generation).filter(|generation| *generation > 0),
        Seen::Absent(_) | Seen::Unknown(_) => None,
    }
}
