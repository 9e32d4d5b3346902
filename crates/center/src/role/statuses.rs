//! What the center says on the objects that it was told by: Locations, SyncTargets and EdgePlacements.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::condition::{Condition, types};
use mailboat_engine::role::{CallId, Order};
use mailboat_object::json::Raw;
use mailboat_object::key::{Key, Name, Uid};
use mailboat_object::object::Object;
use mailboat_object::timestamp::unix_seconds;
use mailboat_object::wire::{Call, Fault, Part, Verb};
use mailboat_store::store::Store;
use mailboat_store::time::{Moment, Now};
use serde_json::{Value, json};

use super::Kind;
use super::events::{self, Event, Events};
use super::mailboxes::Mailboxes;
use crate::mailbox::{Installed, Limits, Pulse, Standing, judge};
use crate::schedule::Schedule;

/// What could not be written is tried again after this.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// What was written is shown by then; compared with what stood there before, it would be written once more.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
/// What a placement's status should say is computed at most this often: it depends on all that the placement selects, and each copy
/// that stands otherwise gives rise to it.
const COMPUTED_EVERY: Duration = Duration::from_secs(1);
/// Statuses that are written at once; more wait for an answer.
const MOST_UNDER_WAY: usize = 16;

/// Whose status may have to be written, and what is known of syncers.
pub(super) struct Statuses {
    manager: Name,
    limits: Limits,
    due: BTreeSet<Key>,
    later: BTreeSet<(Moment, Key)>,
    /// Placements whose status was computed a moment ago, in that order, and when.
    computed: VecDeque<(Moment, Key)>,
    computed_at: BTreeMap<Key, Moment>,
    /// What is being written, and what is to be told of that by Events when it is.
    under_way: BTreeMap<CallId, (Key, Vec<Event>)>,
    events: Events,
    /// Those of them that may have to be another once more.
    again: BTreeSet<Key>,
    targets: BTreeMap<Uid, Key>,
    uids: BTreeMap<Key, Uid>,
    pulses: BTreeMap<Uid, Pulse>,
    /// Syncers whose mailboxes were seen and bore no beat.
    unheard: BTreeSet<Uid>,
    /// SyncTargets of which it was last said that their beats come in time.
    in_time: BTreeSet<Uid>,
    /// When each syncer will have been silent for too long, in Unix seconds.
    silences: BTreeSet<(u64, Uid)>,
}

impl Statuses {
    pub(super) fn new(manager: Name, limits: Limits) -> Self {
        Self {
            manager,
            limits,
            due: BTreeSet::new(),
            later: BTreeSet::new(),
            computed: VecDeque::new(),
            computed_at: BTreeMap::new(),
            under_way: BTreeMap::new(),
            events: Events::default(),
            again: BTreeSet::new(),
            targets: BTreeMap::new(),
            uids: BTreeMap::new(),
            pulses: BTreeMap::new(),
            unheard: BTreeSet::new(),
            in_time: BTreeSet::new(),
            silences: BTreeSet::new(),
        }
    }

    /// The status of an object may have to be another.
    pub(super) fn touch(&mut self, key: &Key) {
        self.due.insert(key.clone());
    }

    /// A SyncTarget was seen.
    pub(super) fn sees_target(&mut self, target: &Object) {
        if self.uids.get(&target.key).is_some_and(|known| *known != target.uid) {
            self.target_gone(&target.key);
        }
        self.uids.insert(target.key.clone(), target.uid.clone());
        self.targets.insert(target.uid.clone(), target.key.clone());
        if is_in_time(target) {
            self.in_time.insert(target.uid.clone());
        } else {
            self.in_time.remove(&target.uid);
        }
        self.touch(&target.key);
    }

    /// A SyncTarget is gone.
    pub(super) fn target_gone(&mut self, key: &Key) {
        if let Some(uid) = self.uids.remove(key) {
            self.targets.remove(&uid);
            self.in_time.remove(&uid);
            self.forget_pulse(&uid);
        }
    }

    /// The SyncTarget with a uid.
    pub(super) fn target_of(&self, uid: &Uid) -> Option<&Key> {
        self.targets.get(uid)
    }

    /// A SyncTarget's mailbox changed.
    pub(super) fn touch_target(&mut self, uid: &Uid) {
        if let Some(key) = self.targets.get(uid) {
            self.due.insert(key.clone());
        }
    }

    /// The status of every SyncTarget may have to be another.
    pub(super) fn touch_targets(&mut self) {
        self.due.extend(self.targets.values().cloned());
    }

    /// What a syncer last wrote into the status of its configuration.
    pub(super) fn hears(&mut self, uid: &Uid, config: &Object, now: Now) {
        let written = config.get(&["status", "lastSyncerHeartbeatTime"]).and_then(Raw::as_str);
        let Some(beat) = written.and_then(|text| unix_seconds(&text)) else {
            self.unheard.insert(uid.clone());
            return;
        };
        let began_here = self.unheard.remove(uid);
        let before = self.pulses.get(uid).copied();
        let pulse = match before {
            Some(before) => before.seen(beat, now.wall_seconds),
            None if began_here => Pulse::first(beat, now.wall_seconds),
            None => Pulse::found(beat, now.wall_seconds),
        };
        if before == Some(pulse) {
            return;
        }
        if let Some(before) = before {
            self.silences.remove(&(before.silent_from(self.limits), uid.clone()));
        }
        self.silences.insert((pulse.silent_from(self.limits), uid.clone()));
        self.pulses.insert(uid.clone(), pulse);
        self.touch_target(uid);
    }

    /// Nothing is known of a syncer any more.
    pub(super) fn forget_pulse(&mut self, uid: &Uid) {
        self.unheard.remove(uid);
        if let Some(pulse) = self.pulses.remove(uid) {
            self.silences.remove(&(pulse.silent_from(self.limits), uid.clone()));
        }
    }

    /// When a syncer was last heard of, in Unix seconds.
    pub(super) fn heard(&self, uid: &Uid) -> Option<u64> {
        let in_time = self.in_time.contains(uid);
        self.pulses.get(uid).map(|pulse| if in_time { pulse.heard_in_time() } else { pulse.heard() })
    }

    /// What came of a write. False if it was none of these.
    pub(super) fn answered<T>(&mut self, now: Moment, id: CallId, reply: &Result<T, Fault>) -> bool {
        let Some((key, events)) = self.under_way.remove(&id) else {
            return self.events.answered(now, id, reply);
        };
        let again = self.again.remove(&key) | self.due.remove(&key);
        if let Err(fault) = reply {
            tracing::debug!(%key, %fault, "a status could not be written");
            self.later.insert((now + AGAIN_AFTER, key));
            return true;
        }
        self.events.tell(events);
        if again {
            self.later.insert((now + SHOWN_AFTER, key));
        }
        true
    }

    /// Writes what is due, and says when to ask again.
    pub(super) fn next(
        &mut self,
        now: Now,
        seen: &Sight<'_>,
        mut id: impl FnMut() -> CallId,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        while let Some((at, uid)) = self.silences.first().cloned() {
            if at > now.wall_seconds {
                break;
            }
            self.silences.remove(&(at, uid.clone()));
            self.touch_target(&uid);
        }
        while let Some((at, key)) = self.later.first().cloned() {
            if at > now.mono {
                break;
            }
            self.later.remove(&(at, key.clone()));
            self.due.insert(key);
        }
        while self.computed.front().is_some_and(|(at, _)| *at + COMPUTED_EVERY <= now.mono) {
            if let Some((_, key)) = self.computed.pop_front() {
                self.computed_at.remove(&key);
            }
        }
        while self.under_way.len() < MOST_UNDER_WAY
            && let Some(key) = self.due.pop_first()
        {
            if self.under_way.values().any(|(busy, _)| *busy == key) {
                self.again.insert(key);
                continue;
            }
            if let Some(at) = self.computed_at.get(&key) {
                self.later.insert((*at + COMPUTED_EVERY, key));
                continue;
            }
            let Some(object) = seen.store.get(&key).present().or_else(|| (seen.last_seen)(&key)) else {
                continue;
            };
            if Kind::of(&key.kind) == Some(Kind::Placement) {
                self.computed.push_back((now.mono, key.clone()));
                self.computed_at.insert(key.clone(), now.mono);
            }
            if let Some(patch) = self.patch(now, seen, object) {
                let events = events::news(object, &patch);
                let body = Arc::from(json!({ "status": patch }).to_string().into_bytes());
                let verb = Verb::Merge { body, manager: self.manager.clone() };
                let id = id();
                orders.push(Order::Reach(key.cluster.clone()));
                orders.push(Order::Call(
                    id,
                    Call { key: key.clone(), verb, part: Part::Status, dry_run: false },
                ));
                self.under_way.insert(id, (key, events));
            }
        }
        let silent = self.silences.first().map(|(at, _)| {
            let seconds = at.saturating_sub(now.wall_seconds).max(1);
            now.mono + Duration::from_secs(seconds)
        });
        let tell_at = self.events.next(now, &self.manager, id, orders);
        [silent, self.later.first().map(|(at, _)| *at), tell_at].into_iter().flatten().min()
    }

    /// What an object's status should say otherwise; `None` if it says it already.
    fn patch(&self, now: Now, seen: &Sight<'_>, object: &Object) -> Option<Value> {
        let wanted = match Kind::of(&object.key.kind)? {
            Kind::Target => return self.target(now, seen, object),
            Kind::Location => {
                let (instances, available) = seen.schedule.instances(&object.key)?;
                json!({ "instances": instances, "availableInstances": available })
            }
            Kind::Placement => (seen.placement)(object)?,
            Kind::Slice | Kind::Summarizer | Kind::Summary => return None,
        };
        let status = object.get(&["status"]).map_or(Value::Null, Raw::to_value);
        let differs =
            |(member, value): (&String, &Value)| status.get(member).unwrap_or(&Value::Null) != value;
        wanted.as_object()?.iter().any(differs).then_some(wanted)
    }

    fn target(&self, now: Now, seen: &Sight<'_>, target: &Object) -> Option<Value> {
        let conditions: Vec<Condition> = target
            .get(&["status", "conditions"])
            .and_then(|conditions| serde_json::from_str(conditions.json()).ok())
            .unwrap_or_default();
        let written = target.get(&["status", "lastSyncerHeartbeatTime"]).and_then(Raw::as_str);
        let written = written.and_then(|text| unix_seconds(&text));
        let mailbox_missing = match seen.mailboxes.destination(&target.uid) {
            Some(_) if seen.mailboxes.is_vacated(&target.uid) => {
                Some("its mailbox is being made again".to_owned())
            }
            Some(_) => None,
            // It is looked at again when that is known.
            None if seen.mailboxes.is_in_doubt(&target.uid, seen.store) => return None,
            None => Some("its mailbox is being made".to_owned()),
        };
        let unschedulable = target.get(&["spec", "unschedulable"]).and_then(Raw::as_bool).unwrap_or_default();
        let generation = i64::try_from(target.generation).unwrap_or_default();
        let held = (seen.held)(&target.key);
        let installed = (seen.installed)(&target.uid);
        let name = target.key.name.to_string();
        let standing = Standing { name, mailbox_missing, unschedulable, generation, held, installed };
        let pulse = self.pulses.get(&target.uid).copied();
        let judged = judge(&conditions, written, pulse, &standing, now.wall_seconds, self.limits)?;
        let mut patch = json!({ "conditions": judged.conditions });
        if let Some(beat) = judged.heartbeat.and_then(|at| i64::try_from(at).ok())
            && let Ok(beat) = jiff::Timestamp::from_second(beat)
        {
            patch["lastSyncerHeartbeatTime"] = json!(mailboat_api::Time(beat));
        }
        Some(patch)
    }
}

/// Whether a SyncTarget says that its syncer's beats come in time.
fn is_in_time(target: &Object) -> bool {
    let mut conditions = target.get(&["status", "conditions"]).into_iter().flat_map(Raw::elements);
    let says = |condition: &Raw<'_>, member: &str, what: &str| {
        condition.member(member).and_then(Raw::as_str).is_some_and(|said| said == what)
    };
    conditions.any(|one| says(&one, "type", types::HEARTBEAT_HEALTHY) && says(&one, "status", "True"))
}

/// What statuses are made from.
pub(super) struct Sight<'a> {
    pub(super) store: &'a Store,
    pub(super) schedule: &'a Schedule,
    pub(super) mailboxes: &'a Mailboxes,
    /// Whether something is held that can be confirmed on an object, once that is known.
    pub(super) held: &'a dyn Fn(&Key) -> Option<Condition>,
    /// Whether the center installed a SyncTarget's syncer, where that is asked of it.
    pub(super) installed: &'a dyn Fn(&Uid) -> Installed,
    /// A placement that is out of sight, as it was last read.
    pub(super) last_seen: &'a dyn Fn(&Key) -> Option<&'a Arc<Object>>,
    /// What an EdgePlacement's status should say.
    pub(super) placement: &'a dyn Fn(&Object) -> Option<Value>,
}

#[cfg(test)]
mod tests;
