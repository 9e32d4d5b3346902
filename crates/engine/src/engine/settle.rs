//! Settling what nobody claims: why it is unwanted, and whether the breaker lets it go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key, KindId, Uid, Version};
use mailboat_object::object::Object;
use mailboat_store::seen::Seen;
use mailboat_store::store::{Store, Unlisted};

use super::evidence::{Unclear, expected};
use super::sight::{Sight, WantedHere};
use super::{Engine, of_kind};
use crate::breaker::{Expected, ScopeId};
use crate::fans::RouteIndex;
use crate::mark::{Mark, Marked};
use crate::mutation::{Mutation, broken};
use crate::plan::told_by_reading;
use crate::queue::Urgency;
use crate::slots::{Reading, SlotId, SlotState, Written};
use crate::warrant::Evidence;

impl Engine {
    /// Proposes every withdrawal of what is unclaimed to the breaker, all of them before any is permitted.
    /// Called when nothing waits for evaluation.
    pub(crate) fn settle(&mut self, store: &Store) {
        let unsettled = std::mem::take(&mut self.unsettled);
        let mut scopes = BTreeMap::new();
        let mut undecided = Vec::new();
        for id in &unsettled {
            let Some(state) = self.slots.get(*id) else { continue };
            let scope = scope_of(state);
            let settling = scopes.entry(scope.clone()).or_insert_with(|| Settling {
                was_asking: self.breaker.is_asking(&scope),
                unlisted: store.unlisted(&state.key.cluster).filter(|_| state.scope.is_none()),
            });
            if let Some(unlisted) = settling.unlisted {
                self.await_lists(*id, unlisted);
            }
            let Some(state) = self.slots.get(*id) else { continue };
            let unwanted = self.unwanted(store, state);
            let alone = unwanted.as_ref().is_some_and(|(_, why)| goes_alone(state, why));
            match unwanted {
                Some((object, Ok(evidence))) => {
                    self.breaker.propose(&scope, &state.key, object, &evidence);
                }
                Some((object, Err(unclear))) => {
                    undecided.push((*id, object.clone(), unclear));
                    self.breaker.doubt(&scope, &state.key);
                }
                None => {}
            }
            if let Some(state) = self.slots.get_mut(*id).filter(|state| state.passing.goes_alone != alone) {
                state.passing.goes_alone = alone;
            }
            self.count(*id);
        }
        self.expect(store, &scopes, undecided);
        self.await_clusters(store);
        for (scope, Settling { unlisted, .. }) in scopes {
            self.breaker.evaluated(&scope, unlisted == Some(Unlisted::Stalled));
        }
        for id in unsettled {
            match self.slots.get_mut(id) {
                // It is planned when its call is done.
                Some(state) if state.under_way => state.again = true,
                _ => self.plans.push(id, RouteIndex(u32::MAX), Urgency::Live),
            }
        }
    }

    /// Which object stands in a slot, and why it is unwanted, or why that cannot be said; nothing if nothing of ours is
    /// known to stand there, or to have stood.
    fn unwanted<'s>(
        &self,
        store: &'s Store,
        state: &'s SlotState,
    ) -> Option<(&'s Uid, Result<Evidence, Unclear>)> {
        if let Some(fan) = self.in_question(state) {
            let unclear = Unclear::in_question(store, fan)?;
            return match known_target(store, state) {
                Some(target) => self.our_mark_on(target).map(|_| (&target.uid, Err(unclear))),
                None => may_go_unseen(store, state).map(|(object, _)| (object, Err(unclear))),
            };
        }
        if !state.claims.is_empty() {
            // Claimed, and to go all the same: its source is being deleted and waits for that.
            let target = known_target(store, state)?;
            let mark = self.our_mark_on(target)?;
            return match self.wanted_of(store, state, Some(&mark)) {
                (WantedHere::No(evidence), _) => Some((&target.uid, Ok(evidence))),
                (WantedHere::By(_) | WantedHere::Undecided(_), _) => None,
            };
        }
        if let Some(target) = known_target(store, state) {
            let mark = self.our_mark_on(target)?;
            return Some((&target.uid, self.evidence(store, state, &mark)));
        }
        may_go_unseen(store, state).map(|(object, unclear)| (object, Err(unclear)))
    }

    /// Lets what is undecided wait for its source, and counts it with what is to go from its scope. Where nothing was to go
    /// before, nobody has counted what was undecided until now.
    fn expect(
        &mut self,
        store: &Store,
        scopes: &BTreeMap<ScopeId, Settling>,
        undecided: Vec<(SlotId, Uid, Unclear)>,
    ) {
        let begins =
            |scope: &ScopeId, settling: &Settling| !settling.was_asking && self.breaker.is_asking(scope);
        let fresh: BTreeSet<&ScopeId> =
            scopes.iter().filter(|(scope, one)| begins(scope, one)).map(|(scope, _)| scope).collect();
        let mut expected = undecided;
        if !fresh.is_empty() {
            let anywhere = fresh.iter().any(|scope| scope.is_unclaimed());
            let known: BTreeSet<SlotId> = expected.iter().map(|(id, ..)| *id).collect();
            let of_fresh = |scope: &ScopeId| fresh.contains(scope) || (anywhere && scope.is_unclaimed());
            let in_question = self.all_in_question(of_fresh);
            let all = self.slots.unclaimed().into_iter().chain(in_question);
            for id in all.filter(|id| !known.contains(id)) {
                let Some(state) = self.slots.get(id) else { continue };
                let of_it = state.scope.as_ref().map_or(anywhere, |scope| fresh.contains(scope));
                if of_it && let Some((object, Err(unclear))) = self.unwanted(store, state) {
                    expected.push((id, object.clone(), unclear));
                }
            }
        }
        for (id, object, unclear) in expected {
            let Some(state) = self.slots.get(id) else { continue };
            // What was seen to be deleted while we watched counts no more when it is undecided than when it is decided.
            let alone = state.passing.gone.as_ref().is_some_and(|gone| gone.stands());
            if let Some(when) = unclear.expected.filter(|_| !alone) {
                self.breaker.expect(&scope_of(state), &state.key, &object, when);
            }
            let mark = known_target(store, state).and_then(|target| self.our_mark_on(target));
            let source = mark.map(|mark| source_of(state, &mark).clone());
            let besides = unclear.hold.on.as_ref().filter(|on| source.is_some() && **on != state.key);
            for awaited in source.iter().chain(besides) {
                self.waiting.entry(awaited.clone()).or_default().insert(id);
            }
        }
    }

    /// As long as something that is delivered to is being listed for the first time, nobody knows how much nobody claims
    /// anywhere. A list that cannot be read is not waited for: an edge that is away holds up no other.
    fn await_clusters(&mut self, store: &Store) {
        let apart = &self.options.counted_apart;
        let awaited =
            |cluster: &&ClusterId| !apart.contains(cluster) && store.unlisted(cluster) == Some(Unlisted::Yet);
        let proposes = self.breaker.proposes_anywhere();
        self.awaited = proposes.then(|| self.destinations_at.keys().find(awaited).cloned()).flatten();
        self.breaker.await_others(self.awaited.is_some());
    }

    /// Lets what nobody claims hear when more is known of what was never listed in its cluster.
    fn await_lists(&mut self, id: SlotId, unlisted: Unlisted) {
        let Some(cluster) = self.slots.get(id).map(|state| state.key.cluster.clone()) else { return };
        let waiting = self.unlisted.entry(cluster).or_insert((unlisted, BTreeSet::new()));
        waiting.0 = unlisted;
        waiting.1.insert(id);
    }

    /// More may be known of what was never listed, in one cluster or in any.
    pub(crate) fn settle_listed(&mut self, store: &Store, cluster: Option<&ClusterId>) {
        if self.awaited.as_ref().is_some_and(|awaited| store.unlisted(awaited) != Some(Unlisted::Yet)) {
            self.await_clusters(store);
        }
        // Kinds become known mailbox by mailbox: of one cluster, nothing else is passed over.
        let one = cluster.and_then(|cluster| self.unlisted.get_key_value(cluster));
        let all = cluster.is_none().then(|| self.unlisted.iter()).into_iter().flatten();
        let changed = one
            .into_iter()
            .chain(all)
            .filter(|(cluster, (unlisted, _))| store.unlisted(cluster) != Some(*unlisted));
        let mut changed: Vec<ClusterId> = changed.map(|(cluster, _)| cluster.clone()).collect();
        changed.sort_unstable();
        for cluster in changed {
            let Some((_, slots)) = self.unlisted.remove(&cluster) else { continue };
            for slot in slots {
                self.plan_later(slot, Urgency::Listed);
            }
        }
    }

    /// Looks again at what waits for an answer to another question than is asked by now, or to none.
    pub(super) fn inform_anew(&mut self) {
        for slot in self.breaker.take_misinformed() {
            let Some(id) = self.slots.find(&slot) else { continue };
            if self.slots.get(id).is_some_and(|state| !state.under_way) {
                self.plans.push(id, RouteIndex(u32::MAX), Urgency::Live);
            }
        }
    }

    /// Lets what nobody claims, and of which nothing can be said now, hear when more is known of its source. What was
    /// clear when it was settled may not be any more when it is planned.
    pub(super) fn await_source(&mut self, id: SlotId, sight: &Sight) {
        let (WantedHere::Undecided(hold), Marked::Ours(mark)) = (&sight.wanted, &sight.marked) else {
            return;
        };
        let Some(state) = self.slots.get(id).filter(|state| state.claims.is_empty()) else { return };
        let source = source_of(state, mark).clone();
        let besides = hold.on.clone().filter(|on| *on != state.key);
        for awaited in std::iter::once(source).chain(besides) {
            self.waiting.entry(awaited).or_default().insert(id);
        }
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
        let Some(state) = self.slots.get(id).filter(|state| self.is_left(id, state)) else { return false };
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

    /// Whether nobody claims a slot, or nobody of whom it is known that they still want it.
    fn is_left(&self, id: SlotId, state: &SlotState) -> bool {
        state.claims.is_empty() || self.lingering.contains(&id)
    }

    /// A scope is no more, and nobody can be asked about it: what still stands of it and nobody claims is settled like all
    /// else that nobody claims in its cluster.
    pub fn disown(&mut self, scope: &ScopeId) {
        let of_it = |slot: &SlotState| slot.scope.as_ref() == Some(scope);
        let mut left = self.slots.matching(|slot| of_it(slot) && slot.claims.is_empty());
        let lingering = self.lingering.iter().copied();
        left.extend(lingering.filter(|id| self.slots.get(*id).is_some_and(of_it)));
        for id in left {
            let Some(state) = self.slots.get_mut(id) else { continue };
            state.scope = None;
            let key = state.key.clone();
            self.breaker.recall(scope, &key);
            self.count(id);
            self.stand_anew(id);
            self.put_in_question(id);
            self.plan_later(id, Urgency::Listed);
        }
    }

    /// Counts a slot's object with the scope that it belongs to by now.
    pub(crate) fn count(&mut self, id: SlotId) {
        let Some(state) = self.slots.get_mut(id) else { return };
        let belongs = (state.record.uid.is_some() && !state.passing.goes_alone).then(|| scope_of(state));
        let ended = belongs.is_some() && state.has_ended();
        if (&state.counted, state.counted_ended) == (&belongs, ended)
            || (belongs.is_none() && broken(Mutation::CountTheGone))
        {
            return;
        }
        let everything = ScopeId::unclaimed(&state.key.cluster);
        let before = state.counted_ended;
        for scope in state.counted.iter().flat_map(|scope| counting(scope, &everything, before)) {
            self.breaker.departed(scope);
        }
        for scope in belongs.iter().flat_map(|scope| counting(scope, &everything, ended)) {
            self.breaker.delivered(scope);
        }
        (state.counted, state.counted_ended) = (belongs, ended);
    }
}

/// A scope while it is settled.
struct Settling {
    /// Something of it was to go before.
    was_asking: bool,
    /// It is that of what nobody claims, and something in its cluster was never listed.
    unlisted: Option<Unlisted>,
}

/// The copy of ours that stood there and is out of sight: it goes if it still stands when it is read, or when it is shown
/// again. A claim that is rejected, a binding or a kind that is gone for a while hides all of a place, and what stands
/// elsewhere would go unasked, as would then what comes back.
fn may_go_unseen<'s>(store: &Store, state: &'s SlotState) -> Option<(&'s Uid, Unclear)> {
    let object = state.record.uid.as_ref().filter(|_| state.passing.reading == Reading::None)?;
    let (reason, when) = match store.get(&state.key) {
        // Counted before it is read: one after the other, each would be the only one.
        Seen::Unknown(doubt) if told_by_reading(doubt) => {
            ("it is not shown and was not read yet".to_owned(), Expected::Whenever)
        }
        Seen::Unknown(doubt) => {
            (format!("what is known of its place: {doubt}"), expected(store, &state.key, doubt))
        }
        // The link by which it is shown may be dead, and nobody has noticed.
        Seen::Absent(absence) if is_written_since(state, absence.version()) => {
            ("it was written and is not shown yet".to_owned(), Expected::Whenever)
        }
        Seen::Absent(_) | Seen::Present(_) => return None,
    };
    Some((object, Unclear::at(&state.key, &reason, Some(when))))
}

/// Whether something was written to a slot after the moment at which nothing was shown there.
fn is_written_since(state: &SlotState, shown: Version) -> bool {
    matches!(state.passing.written, Some(Written::At(version)) if shown < version)
}

/// Whether what stands in a slot goes because somebody was seen to delete its source, and no look has said anything else. It
/// is no loss that anybody is asked about; and counted as standing until it is gone, it would let go with it unasked what is all
/// that is left beside it.
fn goes_alone(state: &SlotState, why: &Result<Evidence, Unclear>) -> bool {
    match why {
        Ok(Evidence::SourceGone(gone)) => gone.stands(),
        Ok(Evidence::SourceDeleting(deleting)) => deleting.seen_live(),
        Ok(Evidence::Deselected(_)) => false,
        Err(_) => state.passing.gone.as_ref().is_some_and(|gone| gone.stands()),
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
pub(super) fn source_of<'a>(state: &'a SlotState, mark: &'a Mark) -> &'a Key {
    state.passing.gone.as_ref().map_or(&mark.origin.key, |gone| gone.source())
}

/// What the breaker counts a slot with: the scope that last claimed it, or its cluster.
pub(crate) fn scope_of(state: &SlotState) -> ScopeId {
    state.scope.clone().unwrap_or_else(|| ScopeId::unclaimed(&state.key.cluster))
}

/// The scopes that an object of one of them counts in. What nobody claims after a restart is a share of all that is
/// ours in its cluster: which part of the configuration it once belonged to is not known any more. What has ended counts on in the
/// scope that let it go until that is shown, or the rest of that would be held half way; to all others it stands there no more.
fn counting<'a>(
    scope: &'a ScopeId,
    everything: &'a ScopeId,
    ended: bool,
) -> impl Iterator<Item = &'a ScopeId> {
    std::iter::once(scope).chain((scope != everything && !ended).then_some(everything))
}
