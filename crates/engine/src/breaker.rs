//! The breaker: a mass withdrawal is held until somebody confirms it.
//!
//! Withdrawals of one scope (a placement, a mailbox) are collected until the whole scope was evaluated anew,
//! and then released or held together. Users of comparable systems lost everything to one wrong edit, one
//! empty answer, one renamed cluster (H1, H5, H8); with the breaker they are asked first.
//!
//! What cannot be decided yet is *expected* to go as long as anything else of its scope is to go: kind by kind, as links come
//! back or lists end, each part would be too small to ask about. And what nobody claims since the start is a share of its
//! cluster and of all clusters together: a few in each of a thousand mailboxes are many.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use mailboat_object::digest::{Digest, digest_of_value};
use mailboat_object::key::{ClusterId, Key, Name, Uid};
use serde_json::Value;

use crate::mutation::{Mutation, broken};
use crate::plan::{ChangeId, Permit};
use crate::warrant::Evidence;

/// What the breaker counts together: role and configuration object, or a cluster for what nobody claims.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScopeId(pub Name);

impl ScopeId {
    /// What nobody claimed in a cluster since the start: which part of the configuration it once belonged to is not known
    /// any more.
    pub fn unclaimed(cluster: &ClusterId) -> Self {
        Self(Name::new(&format!("{UNCLAIMED}/{cluster}")))
    }

    /// The same in all clusters together. Nothing is proposed in it; it is for a word on all of that at once.
    pub fn unclaimed_anywhere() -> Self {
        Self(Name::new(UNCLAIMED))
    }

    /// Whether it is that of what nobody claims in one cluster.
    pub(crate) fn is_unclaimed(&self) -> bool {
        self.0.strip_prefix(UNCLAIMED).is_some_and(|rest| rest.starts_with('/'))
    }
}

const UNCLAIMED: &str = "unclaimed";

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
pub struct Breaker {
    threshold: Threshold,
    /// One for each mailbox and one for what nobody claims there: each plan of a slot asks several times.
    scopes: HashMap<ScopeId, Scope, foldhash::fast::FixedState>,
    anywhere: Anywhere,
    /// Clusters that are no part of that.
    apart: BTreeSet<ScopeId>,
    /// Scopes whose slots were told to wait, and in which something happened since.
    stirred: BTreeSet<ScopeId>,
}

#[derive(Default)]
struct Scope {
    /// What stands at its places and is ours.
    delivered: usize,
    /// What would be withdrawn and counts, by its slot: which object it is.
    proposed: BTreeMap<Key, Uid>,
    /// What may be withdrawn as well and is not decided, and whether it is about to be. Known as long as something is proposed.
    expected: BTreeMap<Key, (Uid, Expected)>,
    /// How many of these are about to be decided.
    soon: usize,
    /// It is not known how much would go besides: something was never listed, and cannot be now.
    unsure: bool,
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
    /// What its slots were last told, if that was to wait.
    told: Option<Told>,
}

/// Why slots wait for the breaker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// For a moment.
    Wait,
    /// For a word on this change.
    Ask(ChangeId),
}

/// When it will be known whether something goes that may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// In a moment: what it depends on is being read. Nobody is asked about that.
    Soon,
    /// Perhaps never.
    Whenever,
}

/// All that nobody claims, in whichever cluster, and all that is ours there.
struct Anywhere {
    scope: ScopeId,
    tally: Tally,
    /// Some of it was much, and somebody said a word on a part: the rest is asked about however little it is by now.
    asked: bool,
    /// More of it is about to be known: some cluster is being listed for the first time.
    waits: bool,
    /// Something of it changed since its slots were told to wait.
    stirred: bool,
    /// Its clusters whose slots were told to wait: among ten thousand mailboxes these are few, and every delivery asks.
    told: BTreeSet<ScopeId>,
}

/// How much would go, and of how much.
#[derive(Clone, Copy, Default)]
struct Tally {
    delivered: usize,
    proposed: usize,
    expected: usize,
    soon: usize,
}

/// What is to become of all that a scope would withdraw.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Goes,
    /// It may be much: that is known in a moment.
    Waits,
    Asks,
}

impl Default for Breaker {
    fn default() -> Self {
        Self::new(Threshold::default())
    }
}

impl Breaker {
    /// A breaker with its own threshold.
    pub fn new(threshold: Threshold) -> Self {
        let scope = ScopeId::unclaimed_anywhere();
        let tally = Tally::default();
        let anywhere =
            Anywhere { scope, tally, asked: false, waits: false, stirred: false, told: BTreeSet::new() };
        Self {
            threshold,
            scopes: HashMap::default(),
            anywhere,
            stirred: BTreeSet::new(),
            apart: BTreeSet::new(),
        }
    }

    /// What nobody claims in these clusters is no part of what is counted over all of them.
    #[must_use]
    pub fn apart_from(self, clusters: &[ClusterId]) -> Self {
        Self { apart: clusters.iter().map(ScopeId::unclaimed).collect(), ..self }
    }

    /// Whether a scope is a part of what is counted over all clusters.
    fn joins(&self, scope: &ScopeId) -> bool {
        scope.is_unclaimed() && !self.apart.contains(scope) && !broken(Mutation::ClusterByCluster)
    }

    /// A scope's configuration changed, or a list of its sources is being taken: nothing in it goes before it
    /// was evaluated as a whole. Returns what is to be settled anew, all of it together.
    #[must_use]
    pub fn reopen(&mut self, scope: &ScopeId, configuration: Digest) -> Vec<Key> {
        self.alter(scope, |state| {
            state.evaluated = false;
            state.configuration = Some(configuration);
            state.change.take();
            state.told = None;
            state.soon = 0;
            let expected = std::mem::take(&mut state.expected).into_keys();
            std::mem::take(&mut state.proposed).into_keys().chain(expected).collect()
        })
    }

    /// The whole scope was evaluated: what was proposed is all that would go, and what is expected all that may. `unsure`: as
    /// far as could be read; how much else is there is not known.
    pub fn evaluated(&mut self, scope: &ScopeId, unsure: bool) {
        let state = self.scopes.entry(scope.clone()).or_default();
        (state.evaluated, state.unsure) = (true, unsure);
        self.stirred.insert(scope.clone());
    }

    /// One more object of a scope stands at its place.
    pub fn delivered(&mut self, scope: &ScopeId) {
        self.alter(scope, |state| state.delivered += 1);
    }

    /// One object fewer of a scope stands at its place.
    pub fn departed(&mut self, scope: &ScopeId) {
        self.alter(scope, |state| state.delivered = state.delivered.saturating_sub(1));
    }

    /// Notes that an object would be withdrawn from a slot, and whether that counts: what was seen to be deleted one by one,
    /// while we watched, does not.
    pub fn propose(&mut self, scope: &ScopeId, slot: &Key, object: &Uid, why: &Evidence) {
        self.alter(scope, |state| {
            state.meet(slot, object);
            state.expect_no_more(slot);
            if !counts(why) {
                state.proposed.remove(slot);
            } else if !state.released.contains_key(slot) {
                state.proposed.insert(slot.clone(), object.clone());
            }
        });
    }

    /// Whether something of a scope stands or is said about it.
    pub(crate) fn knows(&self, scope: &ScopeId) -> bool {
        self.scopes.contains_key(scope)
    }

    /// How many scopes something is known of.
    pub(crate) fn len(&self) -> usize {
        self.scopes.len()
    }

    /// Whether something of a scope is to go, so that it matters what else may.
    pub fn is_asking(&self, scope: &ScopeId) -> bool {
        let proposes = self.scopes.get(scope).is_some_and(|state| !state.proposed.is_empty());
        proposes || (self.joins(scope) && self.anywhere.tally.proposed > 0)
    }

    /// Whether something that nobody claims is to go, in whichever cluster.
    pub(crate) fn proposes_anywhere(&self) -> bool {
        self.anywhere.tally.proposed > 0
    }

    /// More of what nobody claims is about to be known, or is not any more.
    pub(crate) fn await_others(&mut self, waits: bool) {
        self.anywhere.stirred |= std::mem::replace(&mut self.anywhere.waits, waits) != waits;
    }

    /// Notes that an object may be withdrawn from a slot, if something of its scope is to go and it is not settled that this
    /// goes too.
    pub fn expect(&mut self, scope: &ScopeId, slot: &Key, object: &Uid, when: Expected) {
        if !self.is_asking(scope) || broken(Mutation::DecidedAlone) {
            return;
        }
        self.alter(scope, |state| {
            state.meet(slot, object);
            if !state.proposed.contains_key(slot) && !state.released.contains_key(slot) {
                state.expect_no_more(slot);
                state.soon += usize::from(when == Expected::Soon);
                state.expected.insert(slot.clone(), (object.clone(), when));
            }
        });
    }

    /// Whether a slot goes is not settled any more. A word on it stays.
    pub fn doubt(&mut self, scope: &ScopeId, slot: &Key) {
        if self.scopes.contains_key(scope) {
            self.alter(scope, |state| {
                state.proposed.remove(slot);
                state.expect_no_more(slot);
            });
        }
    }

    /// A slot is wanted again, or gone.
    pub fn recall(&mut self, scope: &ScopeId, slot: &Key) {
        if self.scopes.contains_key(scope) {
            let proposed = self.alter(scope, |state| {
                state.released.remove(slot);
                state.expect_no_more(slot);
                state.proposed.remove(slot).is_some()
            });
            self.anywhere.asked &= !(proposed && self.joins(scope));
        }
    }

    /// Changes a scope, and what is made from all of them.
    fn alter<T>(&mut self, scope: &ScopeId, alter: impl FnOnce(&mut Scope) -> T) -> T {
        let joins = self.joins(scope);
        let state = self.scopes.entry(scope.clone()).or_default();
        let before = state.tally();
        let result = alter(state);
        // What may go besides matters only beside what is to go.
        let alone = state.proposed.is_empty();
        if alone && !joins {
            state.expect_nothing();
        }
        let after = state.tally();
        if before.losses() != after.losses() {
            state.change.take();
        }
        if state.told.is_some() {
            self.stirred.insert(scope.clone());
        }
        if joins {
            self.anywhere.tally.replace(before, after);
            self.anywhere.stirred = true;
            if before.proposed > 0 && self.anywhere.tally.proposed == 0 {
                self.expect_nothing_anywhere();
            }
        }
        if self.scopes.get(scope).is_some_and(Scope::is_over) {
            self.scopes.remove(scope);
        }
        result
    }

    fn expect_nothing_anywhere(&mut self) {
        let Self { scopes, apart, .. } = self;
        let joins = |scope: &ScopeId| scope.is_unclaimed() && !apart.contains(scope);
        for (_, state) in scopes.iter_mut().filter(|(scope, _)| joins(scope)) {
            let before = state.tally();
            state.expect_nothing();
            self.anywhere.tally.replace(before, state.tally());
        }
        self.anywhere.asked = false;
    }

    /// Somebody confirmed a change. It lets exactly that change go: if what would go is another by now, this
    /// says no and changes nothing.
    #[must_use]
    pub fn confirm(&mut self, scope: &ScopeId, change: ChangeId) -> bool {
        if *scope == self.anywhere.scope {
            return self.confirm_anywhere(change);
        }
        let fits = |state: &Scope| state.evaluated && state.change() == change;
        let fits = self.scopes.get(scope).is_some_and(fits);
        if fits {
            let asked = self.joins(scope) && self.anywhere.tally.word(self.threshold) != Word::Goes;
            self.alter(scope, Scope::release);
            self.anywhere.asked = (self.anywhere.asked || asked) && self.anywhere.tally.proposed > 0;
        }
        fits
    }

    fn confirm_anywhere(&mut self, change: ChangeId) -> bool {
        let fits = self.change_anywhere() == Some(change);
        if fits {
            let losing = self.losing_anywhere().map(|(scope, _)| scope.clone()).collect::<Vec<_>>();
            for scope in losing {
                self.alter(&scope, Scope::release);
            }
        }
        fits
    }

    /// The clusters in which something that nobody claims would go, or may, in their order.
    fn losing_anywhere(&self) -> impl Iterator<Item = (&ScopeId, &Scope)> {
        self.in_order(|scope, state| state.tally().losses() > 0 && self.joins(scope))
    }

    /// The scopes that are meant, in their order.
    fn in_order(&self, meant: impl Fn(&ScopeId, &Scope) -> bool) -> impl Iterator<Item = (&ScopeId, &Scope)> {
        let mut found: Vec<_> = self.scopes.iter().filter(|(scope, state)| meant(scope, state)).collect();
        found.sort_unstable_by_key(|(scope, _)| *scope);
        found.into_iter()
    }

    /// The name of all that nobody claims and would go, once all of it was evaluated.
    fn change_anywhere(&self) -> Option<ChangeId> {
        let changes = self.losing_anywhere().map(|(_, state)| state.evaluated.then(|| state.change()));
        let changes: Option<Vec<Value>> =
            changes.map(|change| change.map(|change| Value::from(change.to_string()))).collect();
        changes.map(|changes| ChangeId(digest_of_value(&Value::from(changes)).bits()))
    }

    /// Whether it is to be found out if some wait for another word than they were told to.
    pub fn is_stirred(&self) -> bool {
        self.anywhere.stirred || !self.stirred.is_empty()
    }

    /// The slots that wait for another word than they were told to: what is asked in their scope became another question, or
    /// none.
    pub fn take_misinformed(&mut self) -> Vec<Key> {
        let mut stirred = std::mem::take(&mut self.stirred);
        if std::mem::take(&mut self.anywhere.stirred) {
            let Self { scopes, anywhere, .. } = self;
            anywhere.told.retain(|scope| scopes.get(scope).is_some_and(|state| state.told.is_some()));
            stirred.extend(anywhere.told.iter().cloned());
        }
        let mut slots = Vec::new();
        for scope in stirred {
            let Some(state) = self.scopes.get(&scope).filter(|state| state.evaluated) else { continue };
            let now = match self.word(&scope, state) {
                Word::Goes => None,
                Word::Waits => Some(Told::Wait),
                Word::Asks => Some(Told::Ask(state.change())),
            };
            let joins = self.joins(&scope);
            let Some(state) = self.scopes.get_mut(&scope) else { continue };
            let before = std::mem::replace(&mut state.told, now);
            if before != now && before.is_some() {
                slots.extend(state.proposed.keys().cloned());
            }
            if joins && now.is_some() {
                self.anywhere.told.insert(scope);
            }
        }
        slots
    }

    /// Whether a withdrawal counts and was not proposed: it was settled for another reason, which does not hold any more, or
    /// another object stood there.
    pub fn misses(&self, scope: &ScopeId, slot: &Key, object: &Uid, why: &Evidence) -> bool {
        let known =
            |state: &Scope| state.proposed.get(slot).or_else(|| state.released.get(slot)) == Some(object);
        counts(why) && !self.scopes.get(scope).is_some_and(known)
    }

    /// What is held: in which scopes, which change, and how much it would withdraw. What nobody claims is held cluster by
    /// cluster; and, where it is much of all that is ours, all of it together as well.
    pub fn held(&self) -> impl Iterator<Item = (&ScopeId, ChangeId, usize)> {
        let holding = self.in_order(|scope, state| state.evaluated && self.word(scope, state) == Word::Asks);
        let holding = holding.map(|(scope, state)| (scope, state.change(), state.tally().losses()));
        let Anywhere { scope, tally, .. } = &self.anywhere;
        let asks = self.word_anywhere() == Word::Asks;
        let anywhere = asks.then(|| self.change_anywhere()).flatten();
        holding.chain(anywhere.map(|change| (scope, change, tally.losses())))
    }

    /// What would go from a scope, or may: where, and which object.
    pub fn losers(&self, scope: &ScopeId) -> impl Iterator<Item = (&Key, &Uid)> {
        let anywhere = (*scope == self.anywhere.scope).then(|| self.losing_anywhere());
        let all = anywhere.into_iter().flatten().map(|(_, state)| state);
        self.scopes.get(scope).into_iter().chain(all).flat_map(Scope::losers)
    }

    fn word(&self, scope: &ScopeId, state: &Scope) -> Word {
        let tally = state.tally();
        if tally.proposed == 0 {
            return Word::Goes;
        }
        if state.unsure {
            return Word::Asks;
        }
        let alone = tally.word(self.threshold);
        if self.joins(scope) { alone.or(self.word_anywhere()) } else { alone }
    }

    fn word_anywhere(&self) -> Word {
        let Anywhere { tally, asked, waits, .. } = &self.anywhere;
        match (asked, waits) {
            (true, _) => Word::Asks,
            (false, true) => Word::Waits,
            (false, false) => tally.word(self.threshold),
        }
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
        match self.word(scope, state) {
            Word::Goes => Permit::Open,
            Word::Waits => Permit::Pending,
            Word::Asks => Permit::Held(state.change()),
        }
    }
}

/// Whether a withdrawal for this reason counts: one that was seen to be deleted while we watched does not.
fn counts(why: &Evidence) -> bool {
    match why {
        Evidence::SourceGone(gone) => !gone.seen_live(),
        Evidence::SourceDeleting(deleting) => !deleting.seen_live(),
        Evidence::Deselected(_) => true,
    }
}

impl Scope {
    fn tally(&self) -> Tally {
        let Self { delivered, proposed, expected, soon, .. } = self;
        Tally { delivered: *delivered, proposed: proposed.len(), expected: expected.len(), soon: *soon }
    }

    fn expect_no_more(&mut self, slot: &Key) {
        let when = self.expected.remove(slot);
        self.soon -= usize::from(matches!(when, Some((_, Expected::Soon))));
    }

    fn expect_nothing(&mut self) {
        self.expected.clear();
        self.soon = 0;
    }

    /// Whether nothing of it stands, nothing is said about it, and no configuration makes it: it is made anew if it comes back.
    fn is_over(&self) -> bool {
        self.delivered == 0
            && self.proposed.is_empty()
            && self.expected.is_empty()
            && self.released.is_empty()
            && self.configuration.is_none_or(Digest::is_none)
    }

    /// All that would go or may is let go.
    fn release(&mut self) {
        self.released.append(&mut self.proposed);
        let expected = std::mem::take(&mut self.expected);
        self.released.extend(expected.into_iter().map(|(slot, (object, _))| (slot, object)));
        self.soon = 0;
    }

    /// What would go or may, and which object it is.
    fn losers(&self) -> impl Iterator<Item = (&Key, &Uid)> {
        let expected = self.expected.iter().map(|(slot, (object, _))| (slot, object));
        self.proposed.iter().chain(expected)
    }

    /// This object stands in a slot. What was said of another one that stood there before is said of that one alone.
    fn meet(&mut self, slot: &Key, object: &Uid) {
        let is_another = |known: Option<&Uid>| known.is_some_and(|known| known != object);
        if is_another(self.released.get(slot)) {
            self.released.remove(slot);
        }
        if is_another(self.proposed.get(slot)) || is_another(self.expected.get(slot).map(|(known, _)| known))
        {
            self.proposed.remove(slot);
            self.expect_no_more(slot);
            self.change.take();
        }
    }

    fn change(&self) -> ChangeId {
        *self.change.get_or_init(|| {
            let configuration = self.configuration.unwrap_or(Digest::NONE).to_string();
            let losers: BTreeMap<&Key, &Uid> = self.losers().collect();
            let slots = losers.keys().map(ToString::to_string);
            // Which objects, and not only where: a word on some that are gone is none on others that came after them.
            let objects = losers.values().filter(|_| !broken(Mutation::AnyCopy)).map(ToString::to_string);
            let change = std::iter::once(configuration).chain(slots).chain(objects);
            let change = change.map(Value::from).collect();
            ChangeId(digest_of_value(&change).bits())
        })
    }
}

impl Tally {
    /// All that would go, or may.
    fn losses(&self) -> usize {
        self.proposed + self.expected
    }

    fn word(&self, threshold: Threshold) -> Word {
        if self.proposed == 0 {
            Word::Goes
        } else if threshold.is_much(self.losses() - self.soon, self.delivered) {
            Word::Asks
        } else if threshold.is_much(self.losses(), self.delivered) {
            Word::Waits
        } else {
            Word::Goes
        }
    }

    fn replace(&mut self, before: Self, after: Self) {
        let replace = |sum: &mut usize, before, after| *sum = *sum - before + after;
        replace(&mut self.delivered, before.delivered, after.delivered);
        replace(&mut self.proposed, before.proposed, after.proposed);
        replace(&mut self.expected, before.expected, after.expected);
        replace(&mut self.soon, before.soon, after.soon);
    }
}

impl Word {
    /// The more cautious of two.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Asks, _) | (_, Self::Asks) => Self::Asks,
            (Self::Waits, _) | (_, Self::Waits) => Self::Waits,
            (Self::Goes, Self::Goes) => Self::Goes,
        }
    }
}

#[cfg(test)]
mod tests;
