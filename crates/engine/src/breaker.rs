//! The breaker: a mass withdrawal is held until somebody confirms it.
//!
//! Withdrawals of one scope (a placement, a mailbox) are collected until the whole scope was evaluated anew,
//! and then released or held together. Users of comparable systems lost everything to one wrong edit, one
//! empty answer, one renamed cluster (H1, H5, H8); with the breaker they are asked first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use mailboat_object::digest::{Digest, digest_of_value};
use mailboat_object::key::{Key, Name, Uid};
use serde_json::Value;

use crate::mutation::{Mutation, broken};
use crate::plan::{ChangeId, Permit};
use crate::warrant::Evidence;

/// What the breaker counts together: role and configuration object, or a cluster for what nobody claims.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScopeId(pub Name);

/// When a withdrawal is too large to go unasked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threshold {
    /// Fewer than this many at once always go.
    pub at_least: usize,
    /// More than this share of what the scope has delivered is held, in percent.
    pub over_percent: usize,
}

impl Default for Threshold {
    fn default() -> Self {
        Self { at_least: 10, over_percent: 50 }
    }
}

impl Threshold {
    /// Whether to lose so many of all that were delivered is too much to go unasked.
    pub fn is_much(self, losses: usize, delivered: usize) -> bool {
        losses >= self.at_least && losses * 100 > delivered * self.over_percent
    }
}

/// Collects withdrawals by scope and says which may go.
#[derive(Default)]
pub struct Breaker {
    threshold: Threshold,
    scopes: BTreeMap<ScopeId, Scope>,
    /// Scopes that asked, and in which something happened since.
    stirred: BTreeSet<ScopeId>,
    /// What was asked about and is not any more.
    unasked: Vec<Key>,
}

#[derive(Default)]
struct Scope {
    /// What stands at its places and is ours.
    delivered: usize,
    /// What would be withdrawn and counts, by its slot: which object it is.
    proposed: BTreeMap<Key, Uid>,
    /// How the configuration stood when the proposals were made.
    configuration: Option<Digest>,
    /// Whether everything in it was evaluated since the last change.
    evaluated: bool,
    /// What somebody confirmed and is not gone yet. One by one, because the change's own name is made from all of
    /// its losers and these become fewer while it is carried out. A word is on these very objects, and on none that
    /// stands in their place later.
    released: BTreeMap<Key, Uid>,
    /// The name of what is proposed, once somebody asked: each of thousands of losers asks.
    change: OnceLock<ChangeId>,
    /// The change that it was last found to wait for.
    asked: Option<ChangeId>,
}

impl Breaker {
    /// A breaker with its own threshold.
    pub fn new(threshold: Threshold) -> Self {
        Self { threshold, ..Self::default() }
    }

    /// A scope's configuration changed, or a list of its sources is being taken: nothing in it goes before it
    /// was evaluated as a whole.
    pub fn reopen(&mut self, scope: &ScopeId, configuration: Digest) {
        let state = self.scopes.entry(scope.clone()).or_default();
        state.evaluated = false;
        state.configuration = Some(configuration);
        let before = std::mem::take(&mut state.proposed);
        state.change.take();
        if state.asked.take().is_some() {
            self.unasked.extend(before.into_keys());
        }
    }

    /// The whole scope was evaluated: what was proposed is all that would go.
    pub fn evaluated(&mut self, scope: &ScopeId) {
        self.scopes.entry(scope.clone()).or_default().evaluated = true;
        self.stirred.insert(scope.clone());
    }

    /// One more object of a scope stands at its place.
    pub fn delivered(&mut self, scope: &ScopeId) {
        let state = self.scopes.entry(scope.clone()).or_default();
        state.delivered += 1;
        if state.asked.is_some() {
            self.stirred.insert(scope.clone());
        }
    }

    /// One object fewer of a scope stands at its place.
    pub fn departed(&mut self, scope: &ScopeId) {
        if let Some(state) = self.scopes.get_mut(scope) {
            state.delivered = state.delivered.saturating_sub(1);
        }
    }

    /// Notes that an object would be withdrawn from a slot, and whether that counts: what was seen to be deleted one by one,
    /// while we watched, does not.
    pub fn propose(&mut self, scope: &ScopeId, slot: &Key, object: &Uid, why: &Evidence) {
        if counts(why) {
            self.expect(scope, slot, object);
        }
    }

    /// Notes that an object would be withdrawn from a slot if what stands there, which nobody is shown, is still that one.
    pub fn expect(&mut self, scope: &ScopeId, slot: &Key, object: &Uid) {
        let state = self.scopes.entry(scope.clone()).or_default();
        if state.released.get(slot) == Some(object) {
            return;
        }
        state.released.remove(slot);
        if state.proposed.insert(slot.clone(), object.clone()).as_ref() != Some(object) {
            state.change.take();
        }
    }

    /// A slot is wanted again, or gone.
    pub fn recall(&mut self, scope: &ScopeId, slot: &Key) {
        let Some(state) = self.scopes.get_mut(scope) else { return };
        state.released.remove(slot);
        if state.proposed.remove(slot).is_some() {
            state.change.take();
            if state.asked.is_some() {
                self.stirred.insert(scope.clone());
            }
        }
    }

    /// Somebody confirmed a change. It lets exactly that change go: if what would go is another by now, this
    /// says no and changes nothing.
    #[must_use]
    pub fn confirm(&mut self, scope: &ScopeId, change: ChangeId) -> bool {
        let Some(state) = self.scopes.get_mut(scope) else { return false };
        let fits = state.evaluated && state.change() == change;
        if fits {
            state.released.append(&mut state.proposed);
            state.change.take();
            state.asked = None;
        }
        fits
    }

    /// Whether a withdrawal counts and was not proposed: it was settled for another reason, which does not hold any more, or
    /// another object stood there.
    pub fn misses(&self, scope: &ScopeId, slot: &Key, object: &Uid, why: &Evidence) -> bool {
        let known =
            |state: &Scope| state.proposed.get(slot).or_else(|| state.released.get(slot)) == Some(object);
        counts(why) && !self.scopes.get(scope).is_some_and(known)
    }

    /// Whether it is to be found out if some wait for another word than they were told to.
    pub fn is_stirred(&self) -> bool {
        !self.stirred.is_empty() || !self.unasked.is_empty()
    }

    /// The slots that wait for another word than they were told to: what is asked in their scope became another question, or
    /// none.
    pub fn take_misinformed(&mut self) -> Vec<Key> {
        let mut slots = std::mem::take(&mut self.unasked);
        for scope in std::mem::take(&mut self.stirred) {
            let Some(state) = self.scopes.get_mut(&scope) else { continue };
            let held = state.evaluated && self.threshold.is_much(state.proposed.len(), state.delivered);
            let asks = held.then(|| state.change());
            if state.asked != asks && state.asked.is_some() {
                slots.extend(state.proposed.keys().cloned());
            }
            state.asked = asks;
        }
        slots
    }

    /// The slots whose objects would go from a scope, and wait for each other or for a word.
    pub fn losers(&self, scope: &ScopeId) -> impl Iterator<Item = (&Key, &Uid)> {
        self.scopes.get(scope).into_iter().flat_map(|state| &state.proposed)
    }

    /// What is held: in which scopes, which change, and how much it would withdraw.
    pub fn held(&self) -> impl Iterator<Item = (&ScopeId, ChangeId, usize)> {
        let holding = self.scopes.iter().filter(|(_, state)| state.evaluated && self.is_much(state));
        holding.map(|(scope, state)| (scope, state.change(), state.proposed.len()))
    }

    fn is_much(&self, state: &Scope) -> bool {
        self.threshold.is_much(state.proposed.len(), state.delivered)
    }

    /// The word on one withdrawal in a scope.
    pub fn permit(&self, scope: &ScopeId, slot: &Key) -> Permit {
        let Some(state) = self.scopes.get(scope) else { return Permit::Pending };
        if !state.proposed.contains_key(slot) || broken(Mutation::LetAllGo) {
            // Confirmed, or a single live delete, whose own confirmation is the fresh look at its source.
            return Permit::Open;
        }
        if !state.evaluated {
            return Permit::Pending;
        }
        if self.is_much(state) { Permit::Held(state.change()) } else { Permit::Open }
    }
}

/// Whether a withdrawal for this reason counts: one that was seen to be deleted while we watched does not.
fn counts(why: &Evidence) -> bool {
    match why {
        Evidence::SourceGone(gone) => !gone.seen_live(),
        Evidence::SourceDeleting(_) => false,
        Evidence::Deselected(_) => true,
    }
}

impl Scope {
    fn change(&self) -> ChangeId {
        *self.change.get_or_init(|| {
            let configuration = self.configuration.unwrap_or(Digest::NONE).to_string();
            // Which objects, and not only where: a word on some that are gone is none on others that came after them.
            let objects = self.proposed.iter().filter(|_| !broken(Mutation::AnyCopy));
            let losers = self.proposed.keys().map(ToString::to_string);
            let losers = losers.chain(objects.map(|(_, object)| object.to_string()));
            let change = std::iter::once(configuration).chain(losers).map(Value::from).collect();
            ChangeId(digest_of_value(&change).bits())
        })
    }
}
