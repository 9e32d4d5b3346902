//! Withdrawals that are held because they are many, and whose word lets them go.
//!
//! What a placement would withdraw because it was changed is confirmed on that placement. What no placement claims since the
//! center started is a share of one mailbox, and is confirmed on the SyncTarget; where it is much of all that stands in
//! mailboxes, each SyncTarget asks for its part, however small, and all can be confirmed at once on the provider's export.
//! Mailboxes whose SyncTargets are gone are confirmed there as well. A placement that was deleted by itself was confirmed by that.

use std::collections::{BTreeMap, BTreeSet};

use mailboat_api::Time;
use mailboat_api::condition::{Condition, ConditionStatus, find, set, types};
use mailboat_api::edge::AwaitedConfirmation;
use mailboat_api::names::{annotation, export, group};
use mailboat_engine::breaker::ScopeId;
use mailboat_engine::engine::Engine;
use mailboat_engine::plan::ChangeId;
use mailboat_engine::role::Order;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;
use mailboat_store::time::Moment;
use serde_json::{Value, json};

use super::CenterRole;
use super::endings::{bears_ours, confirms};
use super::guard::{came_from, shows_placements, strays};
use crate::mailbox;
use crate::translate::{api_exports, route_name};

/// What is held, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Withheld {
    pub(super) change: ChangeId,
    /// How many copies would go.
    pub(super) count: usize,
    pub(super) because: Because,
}

/// Why so much would go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Because {
    /// The placement selects less than before, or goes to fewer edges.
    Less,
    /// The placement is deleted with its workspace, or with the binding of its kind.
    Deleted,
    /// It stands in an edge's mailbox, and no placement selects it.
    Unclaimed,
    /// It stands in mailboxes, no placement selects it, and it is much of all that stands there.
    Anywhere,
    /// They are mailboxes, and their SyncTargets are gone.
    Targets,
}

impl Withheld {
    /// What is to be done, in the words of the API.
    pub(super) fn awaited(&self) -> AwaitedConfirmation {
        AwaitedConfirmation {
            change_id: self.change.to_string(),
            withdrawals: i64::try_from(self.count).ok(),
            since: None,
            message: self.message(),
        }
    }

    fn message(&self) -> String {
        let Self { change, count, because } = self;
        let (why, on) = match because {
            Because::Less => ("this placement would withdraw {} copies at once", "this EdgePlacement"),
            Because::Deleted => {
                ("this placement is deleted with its workspace or its APIBinding; its {} copies stay", "it")
            }
            Because::Unclaimed => {
                ("no placement selects {} copies in this edge's mailbox", "this SyncTarget")
            }
            Because::Anywhere => {
                ("no placement selects {} copies in the mailboxes of this provider", "this APIExport")
            }
            Because::Targets => {
                ("the SyncTargets of {} mailboxes are gone, and all in these would go", "this APIExport")
            }
        };
        let why = why.replace("{}", &count.to_string());
        format!("{why}; the annotation {}={change} on {on} lets them go", annotation::CONFIRM_WITHDRAWAL)
    }
}

/// The condition that says whether something is held.
pub(super) fn condition(withheld: Option<&Withheld>) -> Condition {
    let (status, reason, message) = match withheld {
        Some(withheld) => (ConditionStatus::True, "ConfirmationAwaited", withheld.message()),
        None => (ConditionStatus::False, "NothingHeld", String::new()),
    };
    let (type_, reason) = (types::WITHDRAWAL_HELD.to_owned(), reason.to_owned());
    Condition { type_, status, reason, message, ..Condition::default() }
}

/// Whether a placement's deletion waits until what it placed has gone, as it should.
fn keeping(unpatchable: bool) -> Condition {
    let (status, reason, message) = if unpatchable {
        let message = "the center may not patch this EdgePlacement, so that its deletion cannot wait for what it placed; \
                       `mailboat ensure wmw` gives it the right";
        (ConditionStatus::False, "Forbidden", message)
    } else {
        (ConditionStatus::True, "Finalized", "")
    };
    let (type_, reason, message) = (types::DELETION_WAITS.to_owned(), reason.to_owned(), message.to_owned());
    Condition { type_, status, reason, message, ..Condition::default() }
}

/// The conditions of a placement, as they were and as they are to be.
pub(super) struct Conditions {
    listed: Vec<Condition>,
    /// What is said of each that is told now.
    now: Condition,
    bears_ours: bool,
}

impl Conditions {
    pub(super) fn of(placement: &Object, now_seconds: u64) -> Self {
        let before = placement.get(&["status", "conditions"]);
        let at = i64::try_from(now_seconds).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
        Self {
            listed: before.and_then(|listed| serde_json::from_str(listed.json()).ok()).unwrap_or_default(),
            now: Condition {
                observed_generation: i64::try_from(placement.generation).ok(),
                last_transition_time: at.map(Time),
                ..Condition::default()
            },
            bears_ours: bears_ours(placement),
        }
    }

    /// Whether something is held, and that its deletion would not wait, is told from the first time on that it is so; that
    /// it is so no more, when that is `known`.
    pub(super) fn tell_held(&mut self, withheld: Option<&Withheld>, unpatchable: bool, known: bool) {
        let mended = [known, self.bears_ours];
        let said = [(withheld.is_some(), condition(withheld)), (unpatchable, keeping(unpatchable))];
        for ((told, said), mended) in said.into_iter().zip(mended) {
            if told || (mended && find(&self.listed, &said.type_).is_some()) {
                self.tell(Some(said));
            }
        }
    }

    pub(super) fn tell(&mut self, said: Option<Condition>) {
        if let Some(Condition { type_, status, reason, message, .. }) = said {
            set(&mut self.listed, Condition { type_, status, reason, message, ..self.now.clone() });
        }
    }

    /// One of them, if it was said of the placement as it is specified now.
    pub(super) fn of_this_generation(&self, type_: &str) -> Option<&Condition> {
        find(&self.listed, type_).filter(|said| said.observed_generation == self.now.observed_generation)
    }

    /// All of them, in the words of the API.
    pub(super) fn listed(&self) -> Value {
        if self.listed.is_empty() { Value::Null } else { json!(self.listed) }
    }
}

impl CenterRole {
    /// Placements that were deleted place nothing any more, once it is known what each of them placed.
    pub(super) fn withdraw(&mut self, engine: &Engine) {
        if self.known.is_none() || !self.stale.is_empty() || engine.is_busy() {
            return;
        }
        let Self { reading, workspaces, newcomers, .. } = self;
        let read = |cluster: &ClusterId| reading.knows(cluster) || workspaces.refuses(cluster);
        let is_read = |cluster: &ClusterId| read(cluster) && !newcomers.are_in(cluster);
        for key in self.endings.take_withdrawn(is_read) {
            self.places_no_more(&key);
            self.statuses.touch(&key);
        }
    }

    /// Goes on with what is on its way out, and says when to ask again.
    pub(super) fn end(
        &mut self,
        now: Moment,
        store: &Store,
        engine: &Engine,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        if !self.started {
            return None;
        }
        for key in self.endings.take_retell() {
            self.statuses.touch(&key);
        }
        let settled = self.known.is_some() && self.stale.is_empty() && orders.is_empty() && !engine.is_busy();
        let given_up: BTreeSet<ClusterId> = self.endings.given_up().into_iter().cloned().collect();
        // Copies that may be another placement's are not waited for: nobody may ever know whether they are.
        let nothing_left = |placement: &Key| {
            let scope = ScopeId(route_name(placement));
            let all_are_shown = shows_placements(store, &placement.cluster);
            let anothers = |slot: &Key| all_are_shown && engine.may_be_anothers(store, slot);
            let standing = |slot: &&Key| self.mailboxes.is_standing(&slot.cluster, store);
            let own_gone = || engine.placed_by(&scope).filter(standing).all(anothers);
            let strays = || strays(&placement.cluster, store, engine, &*self.marks);
            let none_stray = || {
                !given_up.contains(&placement.cluster) || strays().into_iter().filter(standing).all(anothers)
            };
            settled && own_gone() && none_stray()
        };
        self.endings.next(now, nothing_left, || self.calls.fresh(), orders)
    }

    /// Lets go what somebody confirmed, and notes what still waits for that.
    pub(super) fn confirm_withheld(&mut self, store: &Store, engine: &Engine, orders: &mut Vec<Order>) {
        let mut withheld = BTreeMap::new();
        if engine.held().next().is_some() {
            for (scope, change, count) in engine.held_by_scope() {
                let Some((key, because)) = self.subject_of(scope) else { continue };
                let said = matches!(store.get(&key), Seen::Present(object) if confirms(object, change));
                let given_up = because == Because::Unclaimed && self.are_given_up(scope, store, engine);
                let unclaimed = matches!(because, Because::Unclaimed | Because::Anywhere);
                let answered = unclaimed && self.was_answered(scope, store, engine);
                if said || given_up || answered || self.endings.is_withdrawn(&key) {
                    tracing::info!(%key, %change, count, "a large withdrawal is confirmed");
                    orders.push(Order::Confirm(scope.clone(), change));
                } else {
                    let asks = Withheld { change, count, because };
                    if because == Because::Anywhere {
                        // Mailboxes are asked about first: all that is in them goes with them.
                        withheld.entry(key).or_insert(asks);
                    } else {
                        withheld.insert(key, asks);
                    }
                }
            }
        }
        for (key, asks) in self.unanswered.asked() {
            withheld.entry(key.clone()).or_insert(*asks);
        }
        for (key, change) in self.endings.awaiting() {
            let scope = ScopeId(route_name(key));
            let strays = strays(&key.cluster, store, engine, &*self.marks);
            let count = engine.placed_by(&scope).chain(strays).collect::<BTreeSet<_>>().len();
            withheld.insert(key.clone(), Withheld { change, count, because: Because::Deleted });
        }
        if withheld == self.withheld {
            return;
        }
        let changed = |key: &&Key| withheld.get(*key) != self.withheld.get(*key);
        for key in self.withheld.keys().chain(withheld.keys()).filter(changed) {
            self.statuses.touch(key);
        }
        self.released.extend(self.withheld.keys().filter(|key| !withheld.contains_key(*key)).cloned());
        self.withheld = withheld;
    }

    /// Whether all that would go from a scope, or may, came from workspaces whose placements somebody let go of, each by its
    /// name.
    fn are_given_up(&self, scope: &ScopeId, store: &Store, engine: &Engine) -> bool {
        let given_up = self.endings.given_up();
        let from_there = |slot: &Key| {
            let origin = store.get(slot).present().and_then(|copy| came_from(copy, &*self.marks));
            origin.is_some_and(|origin| {
                let others = self.workspaces.placements(&origin).next().is_some();
                given_up.contains(&origin) && self.guard.read_there().contains(&origin) && !others
            })
        };
        !given_up.is_empty() && engine.losers(scope).all(|(slot, _)| from_there(slot))
    }

    /// Says on the provider's export what can be confirmed there, once it is known. Says when to ask again.
    pub(super) fn ask(
        &mut self,
        now: Moment,
        store: &Store,
        engine: &Engine,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        let settled = self.known.is_some() && orders.is_empty() && !engine.is_busy();
        let key = self.export();
        let held = self.withheld.get(&key).map(Withheld::message);
        let export = store.get(&key).present().filter(|_| settled)?;
        let Self { asking, calls, identity, .. } = self;
        asking.next(now, export, held.as_deref(), &identity.manager, || calls.fresh(), orders)
    }

    /// The provider's export, on which is confirmed what no SyncTarget is left to confirm it on.
    pub(super) fn export(&self) -> Key {
        let (cluster, namespace) = (self.identity.provider.clone(), Name::EMPTY);
        Key { cluster, kind: api_exports(), namespace, name: Name::new(export::EDGE) }
    }

    /// The object on which what a scope holds can be confirmed.
    fn subject_of(&self, scope: &ScopeId) -> Option<(Key, Because)> {
        match scope.0.as_str().split_once('/') {
            None if scope.0.as_str() == mailbox::MAILBOXES => Some((self.export(), Because::Targets)),
            None if *scope == ScopeId::unclaimed_anywhere() => Some((self.export(), Because::Anywhere)),
            Some(("placement" | "slices", rest)) => {
                let (cluster, name) = rest.split_once('/')?;
                let kind = KindId::new(group::EDGE, "edgeplacements");
                let (cluster, namespace, name) = (ClusterId::new(cluster), Name::EMPTY, Name::new(name));
                Some((Key { cluster, kind, namespace, name }, Because::Less))
            }
            Some(("unclaimed", rest)) if rest == self.identity.provider.0.as_str() => {
                Some((self.export(), Because::Targets))
            }
            Some(("unclaimed", rest)) => {
                let uid = self.mailboxes.of(&ClusterId::new(rest))?;
                Some((self.statuses.target_of(uid)?.clone(), Because::Unclaimed))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
