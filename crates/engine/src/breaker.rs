//! The breaker: a mass withdrawal is held until somebody confirms it.
//!
//! Withdrawals of one scope (a placement, a mailbox) are collected until the whole scope was evaluated anew,
//! and then released or held together. Users of comparable systems lost everything to one wrong edit, one
//! empty answer, one renamed cluster (H1, H5, H8); with the breaker they are asked first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use mailboat_object::digest::{Digest, digest_of_value};
use mailboat_object::key::{Key, Name};
use serde_json::Value;

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
}

#[derive(Default)]
struct Scope {
    /// What stands at its places and is ours.
    delivered: usize,
    /// What would be withdrawn and counts.
    proposed: BTreeSet<Key>,
    /// How the configuration stood when the proposals were made.
    configuration: Option<Digest>,
    /// Whether everything in it was evaluated since the last change.
    evaluated: bool,
    /// What somebody confirmed and is not gone yet. By slot, because the change's own name is made from all of
    /// its losers and these become fewer while it is carried out.
    released: BTreeSet<Key>,
    /// The name of what is proposed, once somebody asked: each of thousands of losers asks.
    change: OnceLock<ChangeId>,
}

impl Breaker {
    /// A breaker with its own threshold.
    pub fn new(threshold: Threshold) -> Self {
        Self { threshold, scopes: BTreeMap::new() }
    }

    /// A scope's configuration changed, or a list of its sources is being taken: nothing in it goes before it
    /// was evaluated as a whole.
    pub fn reopen(&mut self, scope: &ScopeId, configuration: Digest) {
        let state = self.scopes.entry(scope.clone()).or_default();
        state.evaluated = false;
        state.configuration = Some(configuration);
        state.proposed.clear();
        state.change.take();
    }

    /// The whole scope was evaluated: what was proposed is all that would go.
    pub fn evaluated(&mut self, scope: &ScopeId) {
        self.scopes.entry(scope.clone()).or_default().evaluated = true;
    }

    /// One more object of a scope stands at its place.
    pub fn delivered(&mut self, scope: &ScopeId) {
        self.scopes.entry(scope.clone()).or_default().delivered += 1;
    }

    /// One object fewer of a scope stands at its place.
    pub fn departed(&mut self, scope: &ScopeId) {
        if let Some(state) = self.scopes.get_mut(scope) {
            state.delivered = state.delivered.saturating_sub(1);
        }
    }

    /// Notes that a slot would be withdrawn, and whether that counts: what was seen to be deleted one by one,
    /// while we watched, does not.
    pub fn propose(&mut self, scope: &ScopeId, slot: &Key, why: &Evidence) {
        if counts(why) {
            self.add(scope, slot);
        }
    }

    /// Notes that a slot would be withdrawn if what stands there, which nobody is shown, is still ours.
    pub fn expect(&mut self, scope: &ScopeId, slot: &Key) {
        self.add(scope, slot);
    }

    fn add(&mut self, scope: &ScopeId, slot: &Key) {
        let state = self.scopes.entry(scope.clone()).or_default();
        if !state.released.contains(slot) && state.proposed.insert(slot.clone()) {
            state.change.take();
        }
    }

    /// A slot is wanted again, or gone.
    pub fn recall(&mut self, scope: &ScopeId, slot: &Key) {
        if let Some(state) = self.scopes.get_mut(scope) {
            if state.proposed.remove(slot) {
                state.change.take();
            }
            state.released.remove(slot);
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
        }
        fits
    }

    /// Whether a withdrawal counts and was not proposed: it was settled for another reason, which does not hold any more.
    pub fn misses(&self, scope: &ScopeId, slot: &Key, why: &Evidence) -> bool {
        let known = |state: &Scope| state.proposed.contains(slot) || state.released.contains(slot);
        counts(why) && !self.scopes.get(scope).is_some_and(known)
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
        if !state.proposed.contains(slot) {
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
            let losers = self.proposed.iter().map(ToString::to_string);
            let change = std::iter::once(configuration).chain(losers).map(Value::from).collect();
            ChangeId(digest_of_value(&change).bits())
        })
    }
}
