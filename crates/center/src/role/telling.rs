//! What the center says on placements, and of all edges together.

use std::time::Duration;

use mailboat_api::condition::{Condition, ConditionStatus, find, types};
use mailboat_api::edge::{HeldCopy, ObjectReference, PlacementConflict, ValidationError};
use mailboat_engine::breaker::ScopeId;
use mailboat_engine::engine::{Contested, Engine, NotCurrent};
use mailboat_engine::plan::{Verdict, Wait};
use mailboat_engine::role::Order;
use mailboat_engine::route::{DestinationId, RouteId};
use mailboat_engine::standing::Part;
use mailboat_object::key::{ClusterId, Key, Uid};
use mailboat_object::object::Object;
use mailboat_store::store::Store;
use mailboat_store::time::{Moment, Now};
use serde_json::{Value, json};

use super::natured::Natured;
use super::ready::Standing;
use super::statuses::{Sight, Statuses};
use super::summing::Scene;
use super::withheld::{Conditions, Withheld};
use super::{CenterRole, ready, summing, withheld};
use crate::schedule::PlacementFacts;
use crate::translate::route_name;

/// The most copies that a status lists.
pub(super) const MOST_LISTED: usize = 20;

/// What placements select is counted anew at most this often, whatever changes.
const RETELL_EVERY: Duration = Duration::from_secs(1);

/// How that stands what a placement selects.
struct Selected {
    matched: usize,
    conflicts: Vec<PlacementConflict>,
    held: Vec<HeldCopy>,
    not_current: Vec<NotCurrent>,
}

impl Selected {
    fn into_status(self) -> Value {
        let Self { matched, conflicts, held, .. } = self;
        json!({
            "matchedObjectCount": matched,
            "conflicts": if conflicts.is_empty() { Value::Null } else { json!(conflicts) },
            "held": if held.is_empty() { Value::Null } else { json!(held) },
        })
    }
}

impl CenterRole {
    /// What a placement's status should say.
    pub(super) fn placement_status(
        &self,
        now: Now,
        store: &Store,
        engine: &Engine,
        placement: &Object,
    ) -> Option<Value> {
        let withheld = self.withheld.get(&placement.key);
        let (unpatchable, known_all) =
            (self.endings.is_unpatchable(&placement.key), self.reading.knows_all());
        let mut conditions = Conditions::of(placement, now.wall_seconds);
        conditions.tell_held(withheld, unpatchable, known_all);
        let mut held_back = json!({});
        if withheld.is_some() || known_all {
            held_back["awaitingConfirmation"] = json!(withheld.map(Withheld::awaited));
        }
        let Some(known) = self.placements.get(&placement.key) else {
            // All that is left to be said of one that is on its way out.
            held_back["conditions"] = conditions.listed();
            return self.endings.is_withdrawn(&placement.key).then_some(held_back);
        };
        let mut errors = PlacementFacts::of(placement).errors;
        errors.extend(known.what.validation_errors().iter().cloned());
        let unread = self.workspaces.unread_kinds(&placement.key.cluster, &known.what);
        if unread > 0 {
            let message = format!(
                "{unread} kinds that it may select are not read, because its workspace has too many; name the kinds that are meant"
            );
            errors.push(ValidationError { path: "spec.downsync".to_owned(), message });
        }
        let edges = self.schedule.destinations(&placement.key).count();
        let mut status = json!({
            "specGeneration": placement.generation,
            "matchingLocationCount": self.schedule.matching_locations(&placement.key),
            "destinationCount": edges,
            "validationErrors": if errors.is_empty() { Value::Null } else { json!(errors) },
        });
        let knows = self.reading.knows(&placement.key.cluster);
        let natured = knows.then(|| Natured::of(&known.what, &placement.key.cluster, store));
        let selected = knows.then(|| {
            let mut selected = self.selected(store, engine, placement);
            selected.conflicts.extend(natured.iter().flat_map(Natured::conflicts));
            selected.conflicts.truncate(MOST_LISTED);
            selected
        });
        conditions.tell(natured.and_then(|natured| natured.condition(placement)));
        if let Some(Selected { conflicts, held, not_current, .. }) = &selected {
            let targets = self.schedule.destinations(&placement.key);
            let without_mailbox =
                targets.filter(|(uid, _)| self.mailboxes.destination(uid).is_none()).count();
            let standing = Standing { errors: &errors, edges, without_mailbox, conflicts, held, not_current };
            conditions.tell(ready::condition(&standing, conditions.of_this_generation(types::READY)));
        }
        held_back["conditions"] = conditions.listed();
        for part in [Some(held_back), selected.map(Selected::into_status)].into_iter().flatten() {
            if let (Some(status), Value::Object(part)) = (status.as_object_mut(), part) {
                status.extend(part);
            }
        }
        Some(status)
    }

    /// How that stands what a placement selects.
    fn selected(&self, store: &Store, engine: &Engine, placement: &Object) -> Selected {
        let part = Part::Scope(ScopeId(route_name(&placement.key)));
        let route = RouteId(route_name(&placement.key));
        // What stands where its SyncTarget is gone goes with the mailbox, and nobody is to do anything about it.
        let goes_to = |uid: &Uid| self.schedule.leads(&placement.key, uid).is_some();
        let in_going = |cluster: &ClusterId| self.mailboxes.of(cluster).is_none_or(goes_to);
        let to_going = |to: DestinationId| self.mailboxes.at(to).is_some_and(goes_to);
        let not_current = engine.not_current_in(store, &part, in_going, MOST_LISTED);
        let undecided = engine.undecided_for(store, &route, to_going, MOST_LISTED);
        let standing = not_current.iter().filter_map(|copy| {
            let edge = copy
                .slot
                .as_ref()
                .and_then(|slot| self.edge_of(&placement.key, self.mailboxes.of(&slot.cluster)?));
            held(copy, edge.unwrap_or_default())
        });
        // What was never delivered has no copy to tell it by: it is told for each edge that it cannot be made for.
        let bare = undecided.iter().flat_map(|copy| {
            let legs = copy.source.iter().flat_map(|source| engine.held_bare(&route, source));
            let mut edges: Vec<(String, &str)> = legs
                .filter_map(|(to, hold)| {
                    Some((self.edge_of(&placement.key, self.mailboxes.at(to)?)?, &*hold.reason))
                })
                .collect();
            edges.sort_unstable();
            let told = edges.into_iter().filter_map(|(edge, why)| {
                held(copy, edge).map(|held| HeldCopy { message: why.to_owned(), ..held })
            });
            let told: Vec<HeldCopy> = told.collect();
            if told.is_empty() { held(copy, String::new()).into_iter().collect() } else { told }
        });
        let held: Vec<HeldCopy> = standing.chain(bare).take(MOST_LISTED).collect();
        let contested = engine.contested(&route, MOST_LISTED);
        let conflicts: Vec<PlacementConflict> =
            contested.iter().filter_map(|one| self.conflict(&placement.key, one)).collect();
        Selected { matched: engine.selected_count(&route), conflicts, held, not_current }
    }

    /// Has the statuses of placements looked at whose workspace saw changes, once all of those are evaluated. Gives back
    /// when to ask again.
    pub(super) fn retell(&mut self, now: Moment, engine: &Engine) -> Option<Moment> {
        if self.fresh.is_empty() || !self.started {
            return None;
        }
        let due = self.retold + RETELL_EVERY;
        if now < due {
            return Some(due);
        }
        if engine.is_busy() {
            return None;
        }
        self.retold = now;
        let fresh = std::mem::take(&mut self.fresh);
        for key in self.placements.keys().filter(|key| fresh.contains(&key.cluster)) {
            self.statuses.touch(key);
        }
        None
    }

    /// The name of an edge that a placement goes to, by the uid of its SyncTarget.
    fn edge_of(&self, placement: &Key, uid: &Uid) -> Option<String> {
        self.schedule.leads(placement, uid).map(|leads| leads.target.name.to_string())
    }

    /// Something that a placement wants in an edge's mailbox, and an older placement has.
    pub(super) fn conflict(&self, placement: &Key, contested: &Contested) -> Option<PlacementConflict> {
        let with = contested.by.0.as_str().strip_prefix("placement/")?.replacen('/', ":", 1);
        let uid = self.mailboxes.of(&contested.slot.cluster)?;
        Some(PlacementConflict {
            object: Some(reference(&contested.source)),
            edge: self.edge_of(placement, uid)?,
            message: format!(
                "{with} places an object of the same name there, and the older of two goes first"
            ),
            with,
        })
    }

    /// A copy stands otherwise, or others want to have it: the placements that go there from the workspaces of all who
    /// want it may have something to say, also of what an older one has.
    pub(super) fn touch_placements_of(&mut self, slot: &Key, engine: &Engine) {
        let Some(uid) = self.mailboxes.of(&slot.cluster) else { return };
        let Some(going) = self.going_to.get(uid) else { return };
        for (_, source) in engine.claims(slot) {
            for placement in going.iter().filter(|placement| placement.cluster == source.cluster) {
                self.statuses.touch(placement);
            }
        }
    }

    /// A copy is gone that nobody wants: placements that were said to wait for that may be ready by now. None of them claims
    /// it any more.
    pub(super) fn touch_released(&mut self, slot: &Key, store: &Store, engine: &Engine) {
        if self.released.is_empty() || engine.claims(slot).next().is_some() {
            return;
        }
        self.released.retain(|key| {
            let said =
                store.get(key).present().and_then(|placement| placement.get(&["status", "conditions"]));
            let said: Option<Vec<Condition>> = said.and_then(|said| serde_json::from_str(said.json()).ok());
            let ready = said.as_deref().and_then(|said| find(said, types::READY));
            ready.is_some_and(|ready| ready.status != ConditionStatus::True)
        });
        for key in &self.released {
            self.statuses.touch(key);
        }
    }

    pub(super) fn write_statuses(
        &mut self,
        now: Now,
        store: &Store,
        engine: &Engine,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        // Before all is known, everything would be said to be less than it is.
        if !self.started {
            return None;
        }
        let mut statuses = std::mem::replace(
            &mut self.statuses,
            Statuses::new(self.identity.manager.clone(), self.identity.silence),
        );
        let mut calls = std::mem::take(&mut self.calls);
        let sight = Sight {
            store,
            schedule: &self.schedule,
            mailboxes: &self.mailboxes,
            held: &|key| {
                let withheld = self.withheld.get(key);
                // One word is given at a time. What is out of sight waits on.
                if withheld.is_none() && self.unsighted.concerns(key) {
                    return self.unsighted.condition(key);
                }
                (withheld.is_some() || self.reading.knows_all()).then(|| withheld::condition(withheld))
            },
            installed: &|uid| self.installing.said(uid),
            last_seen: &|key| self.endings.last_seen(key),
            placement: &|placement| self.placement_status(now, store, engine, placement),
        };
        let wake = statuses.next(now, &sight, || calls.fresh(), orders);
        self.calls = calls;
        self.statuses = statuses;
        wake
    }

    pub(super) fn sum_up(
        &mut self,
        now: Now,
        store: &Store,
        engine: &Engine,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        if !self.views.offers_summaries() {
            return None;
        }
        let scene = Scene { store, engine, schedule: &self.schedule, mailboxes: &self.mailboxes };
        self.summing.next(now, &scene, self.reading.knows_all(), || self.calls.fresh(), orders)
    }
}

/// A copy that is not as it should be at an edge, and why.
fn held(copy: &NotCurrent, edge: String) -> Option<HeldCopy> {
    let (reason, message) = match &copy.verdict {
        Verdict::Waiting(Wait::Undecided(hold)) => ("Undecided", hold.reason.clone()),
        Verdict::Refused(refusal) => (
            summing::reason_of(refusal),
            copy.fault.as_deref().unwrap_or("an object that is not ours stands there").to_owned(),
        ),
        _ => return None,
    };
    let key = copy.source.as_ref().or(copy.slot.as_ref())?;
    Some(HeldCopy { object: Some(reference(key)), edge, reason: reason.to_owned(), message })
}

pub(super) fn reference(key: &Key) -> ObjectReference {
    ObjectReference {
        group: key.kind.group().to_owned(),
        resource: key.kind.resource().to_owned(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
    }
}
