//! Confirmations that are passed on: what the center took out of a mailbox was asked about at the center, if anywhere, and an
//! edge does not ask again.
//!
//! A syncer that was away finds many copies gone at once, and holds what that would withdraw. It says in the status of
//! `the-one` which objects these are. If each of them was taken out of `the-one` by this center, and not put back since, and
//! nothing else is among them, the center confirms exactly that change. What it cannot tell, as after a restart or where
//! more is held than a status lists, is left to people.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::edge::SyncerConfigStatus;
use mailboat_api::names::annotation;
use mailboat_engine::role::{CallId, Order};
use mailboat_object::key::{Key, KindId, Name, Uid};
use mailboat_object::object::Object;
use mailboat_object::wire::{Call, Part, Verb};
use mailboat_store::time::Moment;
use serde_json::json;

use crate::denature;
use crate::the_one::Carried;

/// More than a status lists: beyond, nothing is passed on until the syncer has caught up.
const REMEMBERED: usize = 1_000;
/// What was written is shown by then, and what could not be written is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// The reason that a syncer gives for what it holds.
const HELD: &str = "ConfirmationAwaited";

/// What was taken out of mailboxes, as long as their syncers may not have heard of it.
pub(super) struct Passing {
    manager: Name,
    ledgers: BTreeMap<Uid, Ledger>,
    /// What is to be confirmed on which `the-one`.
    due: BTreeMap<Key, String>,
    under_way: BTreeMap<CallId, Key>,
    not_before: BTreeMap<Key, Moment>,
}

#[derive(Default)]
struct Ledger {
    taken_out: BTreeSet<At>,
    /// More was taken out than is remembered.
    overflowed: bool,
    /// The heartbeat with which the syncer said that it has taken in `the-one` as it stands, and holds nothing.
    caught_up: Option<String>,
}

/// An object as it is called at the edge: its kind, namespace and name.
type At = (KindId, Name, Name);

impl Passing {
    /// Nothing was taken out yet. It is confirmed by another hand than that which writes `the-one`.
    pub(super) fn new(manager: &Name) -> Self {
        Self {
            manager: Name::new(&format!("{manager}-confirms")),
            ledgers: BTreeMap::new(),
            due: BTreeMap::new(),
            under_way: BTreeMap::new(),
            not_before: BTreeMap::new(),
        }
    }

    /// A mailbox is gone.
    pub(super) fn forget(&mut self, uid: &Uid) {
        self.ledgers.remove(uid);
    }

    /// An object is among what a syncer is to carry.
    pub(super) fn puts_in(&mut self, uid: &Uid, object: &Carried) {
        if let Some(ledger) = self.ledgers.get_mut(uid) {
            ledger.taken_out.remove(&at(object));
        }
    }

    /// An object is no more among what a syncer is to carry, since its copy was withdrawn.
    pub(super) fn takes_out(&mut self, uid: &Uid, object: &Carried) {
        let ledger = self.ledgers.entry(uid.clone()).or_default();
        ledger.caught_up = None;
        if ledger.taken_out.len() < REMEMBERED {
            ledger.taken_out.insert(at(object));
        } else {
            ledger.overflowed = true;
        }
    }

    /// What a syncer says of `the-one`; `current` if that is as the center wants it.
    pub(super) fn hears(&mut self, uid: &Uid, the_one: &Object, current: bool) {
        let Some(ledger) = self.ledgers.get_mut(uid) else { return };
        let status = the_one.get(&["status"]).and_then(|status| serde_json::from_str(status.json()).ok());
        let Some(status): Option<SyncerConfigStatus> = status else { return };
        let observed = status.observed_generation == i64::try_from(the_one.generation).ok();
        if !(current && observed) {
            return;
        }
        if let Some(change) = ledger.covers(&status) {
            let said = the_one.annotation(annotation::CONFIRM_WITHDRAWAL);
            if said.as_deref() != Some(change) {
                tracing::info!(mailbox = %the_one.key.cluster, change, "an edge asks about what was decided at the center");
                self.due.insert(the_one.key.clone(), change.to_owned());
            }
        } else if status.awaiting_confirmation.is_none() {
            // What is said with the next beat as well, nothing is on its way any more.
            let beat = status.last_syncer_heartbeat_time.map(|time| time.0.to_string());
            match &ledger.caught_up {
                Some(before) if beat.as_ref() != Some(before) => drop(self.ledgers.remove(uid)),
                Some(_) => {}
                None => ledger.caught_up = beat,
            }
        }
    }

    /// Confirms what is due. Says when to ask again.
    pub(super) fn next(
        &mut self,
        now: Moment,
        mut id: impl FnMut() -> CallId,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        self.not_before.retain(|_, at| *at > now);
        let waits = |key: &Key| self.not_before.contains_key(key);
        let ready: Vec<Key> = self.due.keys().filter(|key| !waits(key)).cloned().collect();
        for key in ready {
            let Some(change) = self.due.remove(&key) else { continue };
            let patch = json!({ "metadata": { "annotations": { annotation::CONFIRM_WITHDRAWAL: change } } });
            let body = Arc::from(patch.to_string().into_bytes());
            let verb = Verb::Merge { body, manager: self.manager.clone() };
            let id = id();
            self.under_way.insert(id, key.clone());
            self.not_before.insert(key.clone(), now + AGAIN_AFTER);
            orders.push(Order::Reach(key.cluster.clone()));
            orders.push(Order::Call(id, Call { key, verb, part: Part::Whole, dry_run: false }));
        }
        self.due.keys().filter_map(|key| self.not_before.get(key)).min().copied()
    }

    /// What came of a call. False if it was another's. Where it failed, the syncer says again what it holds.
    pub(super) fn answered(&mut self, id: CallId) -> bool {
        self.under_way.remove(&id).is_some()
    }
}

impl Ledger {
    /// The change that a syncer holds, if all of it was taken out here.
    fn covers<'s>(&self, status: &'s SyncerConfigStatus) -> Option<&'s str> {
        let awaited = status.awaiting_confirmation.as_ref().filter(|_| !self.overflowed)?;
        let held: Vec<At> = status
            .not_current
            .iter()
            .filter(|one| one.reason == HELD)
            .map(|one| {
                let kind = KindId::new(&one.object.group, &one.object.resource);
                let (namespace, name) = (Name::new(&one.object.namespace), Name::new(&one.object.name));
                (denature::at_edge(&kind).into_owned(), namespace, name)
            })
            .collect();
        let all = usize::try_from(awaited.withdrawals?).ok()? == held.len() && !held.is_empty();
        (all && held.iter().all(|one| self.taken_out.contains(one))).then_some(awaited.change_id.as_str())
    }
}

fn at(object: &Carried) -> At {
    (object.kind.clone(), object.namespace.clone(), object.name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::fixtures::object;

    fn carried(name: &str) -> Carried {
        Carried {
            kind: KindId::new("", "configmaps"),
            version: Name::new("v1"),
            namespace: Name::new("till"),
            name: Name::new(name),
        }
    }

    /// `the-one`, whose syncer holds these, and says that it holds so many.
    fn holding(names: &[&str], withdrawals: usize, beat: u32) -> Value {
        let held = names.iter().map(|name| {
            json!({
                "resource": "configmaps", "namespace": "till", "name": name, "state": "Held", "reason": HELD,
            })
        });
        let mut status = json!({
            "observedGeneration": 3, "lastSyncerHeartbeatTime": format!("2026-11-16T00:00:{beat:02}Z"),
            "notCurrent": held.collect::<Vec<_>>(),
        });
        if withdrawals > 0 {
            status["awaitingConfirmation"] = json!({ "changeId": "00c0ffee", "withdrawals": withdrawals });
        }
        json!({ "metadata": { "name": "the-one", "generation": 3 }, "status": status })
    }

    /// What is confirmed after this was heard.
    fn confirmed(passing: &mut Passing, the_one: &Value, current: bool) -> Option<String> {
        let the_one = object("mailbox", "syncerconfigs.edge.kubestellar.io", the_one);
        passing.hears(&Uid::parse("florin"), &the_one, current);
        let mut orders = Vec::new();
        let mut ids = mailboat_engine::role::CallIds::default();
        passing.next(Moment(passing.under_way.len() as u64 * 60_000), || ids.fresh(), &mut orders);
        orders.into_iter().find_map(|order| match order {
            Order::Call(_, Call { verb: Verb::Merge { body, .. }, .. }) => {
                let body: Value = serde_json::from_slice(&body).ok()?;
                Some(body["metadata"]["annotations"][annotation::CONFIRM_WITHDRAWAL].as_str()?.to_owned())
            }
            _ => None,
        })
    }

    fn taken_out(names: &[&str]) -> Passing {
        let mut passing = Passing::new(&Name::new("center"));
        for name in names {
            passing.takes_out(&Uid::parse("florin"), &carried(name));
        }
        passing
    }

    #[test]
    fn what_the_center_took_out_and_nothing_else_is_confirmed() {
        let held = holding(&["a", "b"], 2, 1);
        assert_eq!(confirmed(&mut taken_out(&["a", "b", "c"]), &held, true).as_deref(), Some("00c0ffee"));
        // Something else is among it; more is held than is listed; it speaks of another configuration.
        assert_eq!(confirmed(&mut taken_out(&["a"]), &held, true), None);
        assert_eq!(confirmed(&mut taken_out(&["a", "b"]), &holding(&["a", "b"], 3, 1), true), None);
        assert_eq!(confirmed(&mut taken_out(&["a", "b"]), &held, false), None);
        let mut earlier = held.clone();
        earlier["metadata"]["generation"] = json!(4);
        assert_eq!(confirmed(&mut taken_out(&["a", "b"]), &earlier, true), None);
        // It was put back, so that whoever lost it did not lose it by us.
        let mut back = taken_out(&["a", "b"]);
        back.puts_in(&Uid::parse("florin"), &carried("b"));
        assert_eq!(confirmed(&mut back, &held, true), None);
        // Nobody knows what was before a restart.
        assert_eq!(confirmed(&mut taken_out(&[]), &held, true), None);
    }

    #[test]
    fn what_a_syncer_has_caught_up_with_is_forgotten() {
        let mut passing = taken_out(&["a", "b"]);
        assert_eq!(confirmed(&mut passing, &holding(&[], 0, 1), true), None);
        assert_eq!(confirmed(&mut passing, &holding(&[], 0, 1), true), None);
        assert!(!passing.ledgers.is_empty(), "it was said once");
        assert_eq!(confirmed(&mut passing, &holding(&[], 0, 31), true), None);
        assert!(passing.ledgers.is_empty());
        assert_eq!(confirmed(&mut passing, &holding(&["a", "b"], 2, 61), true), None);
    }

    #[test]
    fn too_much_to_remember_is_left_to_people() {
        let mut passing = taken_out(&["a"]);
        for number in 0..REMEMBERED {
            passing.takes_out(&Uid::parse("florin"), &carried(&format!("n{number}")));
        }
        assert_eq!(confirmed(&mut passing, &holding(&["a"], 1, 1), true), None);
    }
}
