//! What becomes of a slot whose call failed, of one that another hand keeps undoing, and of a cluster that is
//! away.

use std::fmt;
use std::hash::BuildHasher;
use std::time::Duration;

use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key};
use mailboat_object::wire::{Call, Fault, FaultKind};

use super::carry::{Ticket, Work};
use super::flights::Flight;
use super::{Away, Engine};
use crate::fans::RouteIndex;
use crate::plan::{Action, Verdict, Wait};
use crate::queue::Urgency;
use crate::slots::{Reading, SlotId, Told};
use crate::standing::Part;

/// What was put right and stays so for so many milliseconds is not fought over any more.
const FIGHTS_FORGOTTEN_AFTER: u64 = 600_000;
/// What was made anew and stands for so many milliseconds is not deleted by whoever deletes what he sees.
const DELETIONS_FORGOTTEN_AFTER: u64 = 60_000;

/// Another hand, and what it does to what we deliver.
#[derive(Clone, Copy)]
pub(super) enum Hand<'a> {
    /// It writes over what we own, under this name.
    Rewrites(Option<&'a str>),
    /// It deletes the whole copy.
    Deletes,
}

impl Hand<'_> {
    fn forgotten_after(self) -> u64 {
        match self {
            Self::Rewrites(_) => FIGHTS_FORGOTTEN_AFTER,
            Self::Deletes => DELETIONS_FORGOTTEN_AFTER,
        }
    }
}

impl fmt::Display for Hand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rewrites(by) => write!(f, "{} rewrote", by.unwrap_or("another hand")),
            Self::Deletes => f.write_str("another hand deleted"),
        }
    }
}

impl Engine {
    /// What becomes of a call that failed; what is called next about its slot, if something is.
    pub(super) fn failed(
        &mut self,
        now: u64,
        ticket: Ticket,
        flight: &Flight,
        fault: &Fault,
    ) -> Option<(Work, Call)> {
        let (id, work, intent) = (flight.slot, &flight.work, flight.aims.intent);
        if matches!(fault.kind, FaultKind::Conflict | FaultKind::NotFound)
            && let Some(state) = self.slots.get_mut(id)
        {
            // Whatever stood there unseen is not there any more.
            let hidden = state.record.odd.said().and_then(|odd| odd.hidden.take());
            if let Some(passing) = state.passing.said().filter(|_| hidden.is_some()) {
                passing.written = None;
            }
        }
        match fault.kind {
            _ if self.slots.get(id).is_some_and(|state| flight.tells_source(&state.key)) => {
                if matches!(work, Work::Act(Action::Report(_))) {
                    self.report_is_lost(&flight.at, id);
                }
                return self.not_heard(now, flight, fault);
            }
            // It went meanwhile, and its event is on its way: until then it would be written to in vain.
            FaultKind::NotFound if *work == Work::ReadAgain => self.rest(now, id, &fault.text),
            // It stays refused, for the reason that was given.
            _ if matches!(work, Work::LookWithin | Work::TakeOut) && fault.kind != FaultKind::Away => {}
            // That it is not there is an answer.
            FaultKind::NotFound if *work == Work::Act(Action::Read) => {
                if let Some(state) = self.slots.get_mut(id) {
                    state.passing.reading = Reading::Missing;
                }
            }
            // The server does not remember so far back, and never will again.
            FaultKind::Expired if self.cannot_look_before(now, id, work) => {}
            // It is made first, unless that was tried already.
            FaultKind::NoNamespace
                if self.lacks_namespace(id, ticket) && self.first_attempt(id, &fault.text) => {}
            // Somebody else made it.
            FaultKind::Exists if *work == Work::Act(Action::EnsureNamespace) => {
                if let Some(passing) = self.slots.get_mut(id).and_then(|state| state.passing.said()) {
                    passing.namespace = Told::Nothing;
                }
            }
            FaultKind::Away if self.cluster_away(now, id, &flight.at.cluster, &fault.text) => {}
            // Nobody said how it is reached: the slot waits for that.
            FaultKind::Away => {}
            // Somebody was faster: decide anew at once from what stands there now, and only if that goes on, later.
            FaultKind::Conflict | FaultKind::Exists if self.first_attempt(id, &fault.text) => {
                return flight.read_again(Work::ReadAgain);
            }
            // At once, by whoever let nothing pass a moment ago: no server asks for that.
            FaultKind::Retry(Some(Duration::ZERO)) => self.rest_for(now, id, 0, &fault.text),
            FaultKind::Retry(Some(after)) => self.rest_at_least(now, id, after, &fault.text),
            // H43: what the server refuses is said once and tried rarely, until somebody changes it.
            FaultKind::Invalid | FaultKind::TooLarge | FaultKind::Forbidden | FaultKind::Bug => {
                self.rest(now, id, &fault.text);
                if let Some(state) = self.slots.get_mut(id) {
                    state.passing.rejected = true;
                    state.passing.rests = intent;
                }
                if fault.kind == FaultKind::Invalid {
                    return flight.look_within();
                }
            }
            // Among them that what was to go is gone already: that is shown in a moment, and asked again only if it is not.
            _ => self.rest(now, id, &fault.text),
        }
        None
    }

    /// Another hand undid what we deliver: it is put right, but ever more slowly (H24). Only this intent: what a user changes
    /// meanwhile does not wait behind somebody else's fight.
    pub(super) fn fought(&mut self, now: u64, id: SlotId, intent: Option<Digest>, hand: Hand<'_>) {
        let Some(state) = self.slots.get_mut(id) else { return };
        let odd = &mut *state.record.odd;
        if now.saturating_sub(odd.fought_at) > self.options.pause(odd.fights) + hand.forgotten_after() {
            odd.fights = 0;
        }
        (odd.fought_at, odd.undone) = (now, true);
        odd.fights = odd.fights.saturating_add(1);
        let (fights, pause) = (odd.fights, self.options.pause(odd.fights));
        if pause > 0 {
            self.rest_for(now, id, pause, &format!("{hand} what we deliver {fights} times in a row"));
            if let Some(state) = self.slots.get_mut(id) {
                state.passing.rests = intent;
            }
        }
    }

    /// A slot's source did not take what it was told. It is told again later, and nothing else waits for that: what stands
    /// in the slot has nothing to do with it.
    fn not_heard(&mut self, now: u64, flight: &Flight, fault: &Fault) -> Option<(Work, Call)> {
        let id = flight.slot;
        if fault.kind == FaultKind::Away && self.cluster_away(now, id, &flight.at.cluster, &fault.text) {
            return None;
        }
        let state = self.slots.get_mut(id)?;
        let passing = &mut *state.passing;
        let attempt = passing.unheard;
        passing.unheard = attempt.saturating_add(1);
        passing.fault = Some(fault.text.as_str().into());
        let delay = match fault.kind {
            // Somebody was faster: it is decided anew at once, from what stands there now.
            FaultKind::Conflict if attempt == 0 => return flight.read_again(Work::ReadSource),
            FaultKind::Retry(Some(Duration::ZERO)) => 0,
            FaultKind::Retry(Some(after)) => self.options.pause_of(&state.key, attempt, after),
            _ => self.options.pause_of(&state.key, attempt, Duration::ZERO),
        };
        self.slots.get_mut(id)?.passing.silent_until = now + delay;
        None
    }

    /// Puts a slot off, longer each time.
    pub(super) fn rest(&mut self, now: u64, id: SlotId, why: &str) {
        self.rest_at_least(now, id, Duration::ZERO, why);
    }

    /// The same, and no shorter than its server asks for: a server that asks everybody to come back after a second, whatever
    /// it is that it cannot do, would be asked every second, by all of them at once.
    fn rest_at_least(&mut self, now: u64, id: SlotId, after: Duration, why: &str) {
        let Some(state) = self.slots.get_mut(id) else { return };
        let delay = self.options.pause_of(&state.key, state.passing.attempts, after);
        state.passing.attempts = state.passing.attempts.saturating_add(1);
        self.rest_for(now, id, delay, why);
    }

    pub(super) fn rest_for(&mut self, now: u64, id: SlotId, delay: u64, why: &str) {
        let Some(state) = self.slots.get_mut(id) else { return };
        state.passing.rest_until = now + delay;
        state.passing.rests = None;
        state.passing.rejected = false;
        state.passing.fault = Some(why.into());
    }

    /// Sees to it that a slot is looked at when its rest is over.
    pub(super) fn wake_after_rest(&mut self, now: u64, id: SlotId) {
        let Some(state) = self.slots.get(id) else { return };
        if let Some(until) = state.passing.next_try(now) {
            let fan = state.claims.first().map(|claim| claim.fan);
            let lane = fan.map_or(RouteIndex(u32::MAX), |fan| self.lane(fan));
            self.plans.push_later(id, lane, until);
        }
    }

    fn first_attempt(&mut self, id: SlotId, why: &str) -> bool {
        let Some(state) = self.slots.get_mut(id) else { return false };
        let first = state.passing.attempts == 0;
        if first {
            state.passing.attempts = 1;
            state.passing.fault = Some(why.into());
        }
        first
    }

    /// The cluster cannot be reached, that of a slot or of its source: nothing is tried there for a while, and then this
    /// slot first. False if nobody said how it is reached.
    pub(super) fn cluster_away(&mut self, now: u64, id: SlotId, cluster: &ClusterId, why: &str) -> bool {
        let Some(state) = self.slots.get_mut(id) else { return true };
        state.passing.fault = Some(why.into());
        if !self.clusters.contains_key(cluster) {
            return false;
        }
        let attempts = match self.away.get(cluster) {
            // What left before it was known to be away is no attempt: dozens at once would make the first pause the longest.
            Some(away) if !away.trying || away.first != id => return true,
            away => away.map_or(0, |away| away.attempts),
        };
        let delay = self.options.back_off(attempts);
        let until = now + delay / 2 + jitter(&state.key, attempts, delay);
        let away = Away { until, attempts: attempts.saturating_add(1), first: id, trying: false };
        self.away.insert(cluster.clone(), away);
        true
    }

    /// Whether a cluster is away and another slot than this one tries it first.
    pub(super) fn is_away(&self, cluster: &ClusterId, id: SlotId) -> bool {
        self.away.get(cluster).is_some_and(|away| !away.trying || away.first != id)
    }

    /// A cluster showed something: it is tried at once, and pauses no shorter if that fails.
    pub(super) fn try_soon(&mut self, cluster: Option<&ClusterId>) {
        let concerned = |other: &ClusterId| cluster.is_none_or(|cluster| cluster == other);
        for (_, away) in self.away.iter_mut().filter(|(cluster, _)| concerned(cluster)) {
            away.until = 0;
        }
    }

    /// A call to the cluster was answered: everything that waited for it goes on.
    pub(super) fn cluster_answers(&mut self, cluster: &ClusterId) {
        if self.away.remove(cluster).is_some() {
            self.try_again(cluster);
        }
    }

    /// Whatever waits for a cluster goes on.
    pub(super) fn try_again(&mut self, cluster: &ClusterId) {
        let waits = Verdict::Waiting(Wait::Cluster);
        let there: Vec<SlotId> = self.standings.not_current(&Part::Cluster(cluster.clone())).collect();
        for slot in there {
            if self.slots.get(slot).is_some_and(|state| state.verdict.as_ref() == Some(&waits)) {
                self.plan_later(slot, Urgency::Live);
            }
        }
        for slot in self.untold.remove(cluster).into_iter().flatten() {
            self.plan_later(slot, Urgency::Live);
        }
    }

    /// Lets one slot try a cluster whose time has come.
    pub(super) fn try_those_away(&mut self, now: u64) {
        let due: Vec<SlotId> = self
            .away
            .values_mut()
            .filter(|away| !away.trying && away.until <= now)
            .map(|away| {
                away.trying = true;
                away.first
            })
            .collect();
        for slot in due {
            if self.slots.get(slot).is_none() {
                self.nothing_to_try(slot);
            }
            self.plan_later(slot, Urgency::Live);
        }
    }

    /// The slot that was to try a cluster has nothing to say there any more: let the others try.
    pub(super) fn nothing_to_try(&mut self, slot: SlotId) {
        let tried = self.away.iter().filter(|(_, away)| away.trying && away.first == slot);
        let tried: Vec<ClusterId> = tried.map(|(cluster, _)| cluster.clone()).collect();
        for cluster in tried {
            self.cluster_answers(&cluster);
        }
    }
}

impl super::Options {
    fn back_off(&self, attempts: u8) -> u64 {
        self.back_off_first.saturating_mul(1 << attempts.min(20)).min(self.back_off_most)
    }

    /// How long to wait after so many failures, if its server asks for so long at least. Never all at the same moment.
    fn pause_of(&self, key: &Key, attempts: u8, after: Duration) -> u64 {
        let delay = self.back_off(attempts);
        let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).min(self.back_off_most);
        (delay / 2 + jitter(key, attempts, delay)).max(after + jitter(key, attempts, after))
    }

    /// How long what another hand undid so often is left as it is.
    fn pause(&self, fights: u8) -> u64 {
        let over = fights.checked_sub(self.fights);
        over.map_or(0, |over| (1_000_u64 << over.min(20)).min(self.back_off_most * 10))
    }
}

/// A share of a delay that differs from slot to slot and from attempt to attempt, and is the same in a replay.
fn jitter(key: &Key, attempt: u8, delay: u64) -> u64 {
    foldhash::fast::FixedState::with_seed(u64::from(attempt)).hash_one(key) % (delay / 2 + 1)
}
