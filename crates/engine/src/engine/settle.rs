//! Settling what nobody claims: why it is unwanted, and whether the breaker lets it go.

use std::collections::BTreeSet;
use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid};
use mailboat_object::object::Object;
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;

use super::sight::{Sight, WantedHere};
use super::{Engine, of_kind};
use crate::breaker::ScopeId;
use crate::fans::RouteIndex;
use crate::mark::{Mark, Marked};
use crate::mutation::{Mutation, broken};
use crate::plan::told_by_reading;
use crate::queue::Urgency;
use crate::slots::{Reading, SlotId, SlotState};
use crate::want::Hold;
use crate::warrant::{Evidence, SourceGone, WholeConfiguration};

impl Engine {
    /// Proposes every withdrawal of what is unclaimed to the breaker, all of them before any is permitted.
    /// Called when nothing waits for evaluation.
    pub(crate) fn settle(&mut self, store: &Store) {
        let unsettled = std::mem::take(&mut self.unsettled);
        let mut scopes = BTreeSet::new();
        let mut waiting = Vec::new();
        for id in &unsettled {
            let Some(state) = self.slots.get(*id) else { continue };
            if !state.claims.is_empty() {
                continue;
            }
            let scope = scope_of(state);
            self.count(*id);
            let Some(state) = self.slots.get(*id) else { continue };
            match known_target(store, state).map(|target| (target, self.our_mark_on(target))) {
                Some((target, Some(mark))) => {
                    if let Ok(evidence) = self.evidence(store, state, &mark) {
                        self.breaker.propose(&scope, &state.key, &target.uid, &evidence);
                    } else {
                        self.breaker.recall(&scope, &state.key);
                        waiting.push((source_of(state, &mark).clone(), *id));
                    }
                }
                // Counted before it is read: one after the other, each would be the only one.
                None if let Some(object) = self.would_go_unread(store, state) => {
                    self.breaker.expect(&scope, &state.key, object);
                }
                Some((_, None)) | None => {}
            }
            scopes.insert(scope);
        }
        for (source, id) in waiting {
            self.waiting.entry(source).or_default().insert(id);
        }
        for scope in scopes {
            self.breaker.evaluated(&scope);
        }
        for id in unsettled {
            match self.slots.get_mut(id) {
                // It is planned when its call is done.
                Some(state) if state.under_way => state.again = true,
                _ => self.plans.push(id, RouteIndex(u32::MAX), Urgency::Live),
            }
        }
    }

    /// The copy of ours that stood there, if it would go when it is read and still stands: the view that we follow does not
    /// show it.
    fn would_go_unread<'s>(&self, store: &Store, state: &'s SlotState) -> Option<&'s Uid> {
        let unread = matches!(store.get(&state.key), Seen::Unknown(doubt) if told_by_reading(doubt));
        let counts = !state.passing.gone.as_ref().is_some_and(|gone| gone.stands());
        let goes = unread && counts && state.passing.reading == Reading::None && self.configuration.is_some();
        state.record.uid.as_ref().filter(|_| goes)
    }

    /// Looks again at what waits for an answer to another question than is asked by now, or to none.
    pub(super) fn inform_anew(&mut self) {
        for slot in self.breaker.take_misinformed() {
            let Some(id) = self.slots.find(&slot) else { continue };
            if self.slots.get(id).is_some_and(|state| state.claims.is_empty() && !state.under_way) {
                self.plans.push(id, RouteIndex(u32::MAX), Urgency::Live);
            }
        }
    }

    /// Lets what nobody claims, and of which nothing can be said now, hear when more is known of its source. What was
    /// clear when it was settled may not be any more when it is planned.
    pub(super) fn await_source(&mut self, id: SlotId, sight: &Sight) {
        let (WantedHere::Undecided(_), Marked::Ours(mark)) = (&sight.wanted, &sight.marked) else { return };
        let Some(state) = self.slots.get(id).filter(|state| state.claims.is_empty()) else { return };
        let source = source_of(state, mark).clone();
        self.waiting.entry(source).or_default().insert(id);
    }

    /// Settles once more what would be withdrawn for a reason that the breaker was not asked about; true if so. Since it was
    /// settled, the reason changed, or the configuration did and the breaker forgot all proposals.
    pub(super) fn resettle(&mut self, store: &Store, id: SlotId, sight: &Sight) -> bool {
        let WantedHere::No(evidence) = &sight.wanted else { return false };
        let Some(state) = self.slots.get(id) else { return false };
        let ours = known_target(store, state).filter(|target| self.our_mark_on(target).is_some());
        let missed = ours
            .is_some_and(|target| self.breaker.misses(&scope_of(state), &state.key, &target.uid, evidence));
        if missed {
            self.unsettled.insert(id);
        }
        missed
    }

    /// More is known of a source: what nobody claims and waits for that is settled again. No claim leads there. Before the
    /// configuration was known as a whole for the first time, only what has lost its source can be settled; all else goes
    /// on waiting.
    pub(crate) fn settle_waiting(&mut self, store: &Store, source: &Key) {
        if !self.was_known && store.get(source).absent().is_none() {
            return;
        }
        for slot in self.waiting.remove(source).into_iter().flatten() {
            self.plan_later(slot, Urgency::Listed);
        }
    }

    /// The same for every source of a kind, in one cluster or in any.
    pub(crate) fn settle_all_waiting(&mut self, store: &Store, cluster: Option<&ClusterId>, kind: &KindId) {
        for source in of_kind(&self.waiting, cluster, kind) {
            self.settle_waiting(store, &source);
        }
    }

    /// Whether what stands in a slot may be another's than the scope's that it last belonged to, and stays for that reason: its source
    /// did not go alone, or nothing is served of it any more, and another route may have brought it there. So does what defines
    /// the kind of something that stands there.
    pub fn may_be_anothers(&self, store: &Store, slot: &Key) -> bool {
        let Some(id) = self.slots.find(slot) else { return false };
        let Some(state) = self.slots.get(id).filter(|state| state.claims.is_empty()) else { return false };
        let Some(mark) = known_target(store, state).and_then(|target| self.our_mark_on(target)) else {
            return false;
        };
        let source = source_of(state, &mark);
        let lost = match store.get(source) {
            Seen::Absent(_) => state.passing.gone.as_ref().is_some_and(|gone| gone.is_disputed()),
            Seen::Unknown(doubt) => doubt.is_total(),
            Seen::Present(_) => false,
        };
        (lost && !self.routes_between(source, &state.key.cluster).is_empty())
            || self.takes_others_along(store, id)
    }

    /// A scope is no more, and nobody can be asked about it: what still stands of it and nobody claims is settled like all
    /// else that nobody claims in its cluster.
    pub fn disown(&mut self, scope: &ScopeId) {
        let of_it = |slot: &SlotState| slot.claims.is_empty() && slot.scope.as_ref() == Some(scope);
        for id in self.slots.matching(of_it) {
            let Some(state) = self.slots.get_mut(id) else { continue };
            state.scope = None;
            let key = state.key.clone();
            self.breaker.recall(scope, &key);
            self.count(id);
            self.stand_anew(id);
            self.plan_later(id, Urgency::Listed);
        }
    }

    /// Counts a slot's object with the scope that it belongs to by now.
    pub(crate) fn count(&mut self, id: SlotId) {
        let Some(state) = self.slots.get_mut(id) else { return };
        let belongs = state.record.uid.is_some().then(|| scope_of(state));
        if state.counted == belongs || (belongs.is_none() && broken(Mutation::CountTheGone)) {
            return;
        }
        let everything = unclaimed(&state.key.cluster);
        for scope in state.counted.iter().flat_map(|scope| counting(scope, &everything)) {
            self.breaker.departed(scope);
        }
        for scope in belongs.iter().flat_map(|scope| counting(scope, &everything)) {
            self.breaker.delivered(scope);
        }
        state.counted = belongs;
    }

    /// Why nobody wants this slot, or why that cannot be said.
    pub(crate) fn evidence(&self, store: &Store, state: &SlotState, mark: &Mark) -> Result<Evidence, Hold> {
        let hold = |reason: &str| Hold { reason: reason.to_owned(), on: Some(mark.origin.key.clone()) };
        if !self.evaluations.is_empty() && !broken(Mutation::PartByPart) {
            return Err(hold("its configuration is being evaluated"));
        }
        // A list of targets that is not complete is half a picture: what else would go with it is not known.
        if let Err(doubt) = store.range(&state.key.cluster, &state.key.kind, None) {
            let reason = format!("what is known of its place: {doubt}");
            return Err(Hold { reason, on: Some(state.key.clone()) });
        }
        let source = source_of(state, mark);
        let routes = self.routes_between(source, &state.key.cluster);
        if !routes.is_empty() {
            match store.get(source) {
                Seen::Absent(absence) => {
                    let gone = match &state.passing.gone {
                        Some(gone) => (**gone).clone(),
                        None => SourceGone::new(source.clone(), absence),
                    };
                    return Ok(Evidence::SourceGone(gone));
                }
                Seen::Unknown(_) if broken(Mutation::UnknownIsUnwanted) => {}
                Seen::Unknown(doubt) => return Err(hold(&format!("what is known of its source: {doubt}"))),
                Seen::Present(source) if went_back(source, mark) => {
                    return Err(hold("its source shows an older version than was delivered"));
                }
                Seen::Present(_) => {
                    // As it was last shown it is not selected. It may have been changed since so that it is, by whoever
                    // then changed the configuration, which is read by another link.
                    if let Some(doubt) = store.behind(&source.cluster, &source.kind)
                        && !broken(Mutation::BehindIsCurrent)
                    {
                        return Err(hold(&format!("what is known of its source: {doubt}")));
                    }
                    for route in routes {
                        let fan = self.fans.find(route, source).and_then(|fan| self.fans.get(fan));
                        let fan = fan.ok_or_else(|| hold("its source was not evaluated yet"))?;
                        // A route that cannot say what becomes of the source may mean this very slot: after a restart
                        // nobody has claimed it yet.
                        if let Some(hold) = fan.undecided() {
                            return Err(hold.clone());
                        }
                    }
                }
            }
        } else if let Some(gone) = state.passing.gone.as_ref().filter(|gone| gone.stands()) {
            // It was seen to be deleted before the configuration let go of it, as a `the-one` does when a copy has gone:
            // nobody has to confirm what they deleted one by one. If a look says otherwise, it is the configuration that
            // withdraws it, and that counts.
            return Ok(Evidence::SourceGone((**gone).clone()));
        }
        match self.configuration {
            Some(configuration) => Ok(Evidence::Deselected(configuration.does_not_select())),
            None if broken(Mutation::HalfAConfiguration) => {
                Ok(Evidence::Deselected(WholeConfiguration::known(0).does_not_select()))
            }
            None => Err(hold("the configuration is not known as a whole yet")),
        }
    }
}

/// What stands in a slot: as it is shown, or as it was read where it is not shown.
fn known_target<'a>(store: &'a Store, state: &'a SlotState) -> Option<&'a Arc<Object>> {
    match store.get(&state.key) {
        Seen::Present(target) => Some(target),
        Seen::Unknown(_) if state.passing.reading == Reading::Found => state.passing.fresh.as_ref(),
        Seen::Absent(_) | Seen::Unknown(_) => None,
    }
}

/// The source that an unclaimed slot had.
fn source_of<'a>(state: &'a SlotState, mark: &'a Mark) -> &'a Key {
    state.passing.gone.as_ref().map_or(&mark.origin.key, |gone| gone.source())
}

/// What the breaker counts a slot with: the scope that last claimed it, or its cluster.
pub(crate) fn scope_of(state: &SlotState) -> ScopeId {
    state.scope.clone().unwrap_or_else(|| unclaimed(&state.key.cluster))
}

/// The scopes that an object of one of them counts in. What nobody claims after a restart is a share of all that is
/// ours in its cluster: which part of the configuration it once belonged to is not known any more.
fn counting<'a>(scope: &'a ScopeId, everything: &'a ScopeId) -> impl Iterator<Item = &'a ScopeId> {
    std::iter::once(scope).chain((scope != everything).then_some(everything))
}

fn unclaimed(cluster: &ClusterId) -> ScopeId {
    ScopeId(Name::new(&format!("unclaimed/{cluster}")))
}

/// Whether a source shows an older version than a copy remembers of it: its server was restored from a backup.
pub(crate) fn went_back(source: &Object, mark: &Mark) -> bool {
    source.key == mark.origin.key && source.uid == mark.origin.uid && source.version < mark.origin.version
}
