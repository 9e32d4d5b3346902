//! Answers: what a reply says becomes the record of its slot.

use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::json::Raw;
use mailboat_object::key::{Key, Uid, Version};
use mailboat_object::object::{Keep, Limits, Object, Outline, Place};
use mailboat_object::page::Page;
use mailboat_object::wire::{Call, Reply};
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;

use super::carry::Work;
use super::faults::Hand;
use super::flights::{Aims, Flight};
use super::{Engine, Next};
use crate::mutation::{Mutation, broken};
use crate::plan::{Action, Expect, How, Proof};
use crate::slots::{Reading, SlotId, Told, Written};

impl Engine {
    pub(super) fn succeeded(
        &mut self,
        now: u64,
        store: &Store,
        id: SlotId,
        flight: Flight,
        reply: &Reply,
    ) -> Option<(Work, Call)> {
        // Whatever was too late before may be so again: what was read is no attempt that succeeded.
        match flight.work {
            Work::ReadAgain => return self.has_read(store, id, &reply.body),
            Work::ReadSource => return self.has_read_source(store, id, &flight.at, &reply.body),
            Work::LookWithin => return self.looked_within(store, id, &reply.body),
            Work::TakeOut => return self.has_taken_out(id, &reply.body),
            Work::Act(_) | Work::LookBefore | Work::LetGo => {}
        }
        let state = self.slots.get_mut(id)?;
        if let Some(passing) = state.passing.said() {
            if flight.tells_source(&state.key) {
                (passing.unheard, passing.silent_until) = (0, 0);
            } else {
                (passing.attempts, passing.rest_until) = (0, 0);
                (passing.rests, passing.rejected) = (None, false);
            }
            if passing.attempts == 0 && passing.unheard == 0 {
                passing.fault = None;
            }
        }
        let action = match flight.work {
            Work::Act(action) => action,
            Work::LookBefore => return self.looked_before(now, id, &reply.body),
            Work::LetGo => {
                // Until it is shown as it was left, nothing is: our view may show nothing there for long, and another first
                // delivery would meet it again.
                let met = state.passing.met.take();
                state.record.odd.foreign = met.map(|met| met.uid.clone());
                let left = decode(&state.key, &self.manager, &reply.body, Keep::Head)?;
                state.passing.written = Some(Written::At(left.version));
                return None;
            }
            Work::ReadAgain | Work::ReadSource | Work::LookWithin | Work::TakeOut => return None,
        };
        match action {
            Action::Deliver { expect, how } => {
                let place = Place::of(&state.key, &self.manager, Keep::Head);
                if expect == Expect::New && !reply.created && !broken(Mutation::KeepWhatWasMet) {
                    state.passing.met = Some(Arc::new(Object::decode(&reply.body, &place).ok()?));
                    return None;
                }
                // That it was written, and as what, is all that is kept of most answers: the copy is shown soon.
                let written = Outline::decode(&reply.body, &place).ok()?;
                let doubted = store.get(&state.key).doubt().is_some();
                let fresh = doubted.then(|| Object::decode(&reply.body, &place).ok()).flatten();
                state.record.uid = Some(written.uid.clone());
                state.record.result = written.content;
                state.record.ours = written.hands.ours;
                if let Some(odd) = state.record.odd.said() {
                    // What was met and let go of, and is written by its uid all the same, was adopted: it is ours now.
                    (odd.differs_at, odd.foreign, odd.undone) = (None, None, false);
                }
                if let Some(passing) = state.passing.said() {
                    passing.fresh = None;
                }
                self.bodies.let_go(id);
                // Where nothing is known of its place yet, the first that is shown of it may be older than this.
                state.passing.written = Some(Written::At(written.version));
                if doubted {
                    // The answer is as good as a reading.
                    state.passing.reading = Reading::Found;
                    state.passing.fresh = fresh.map(Arc::new);
                } else if state.record.odd.hidden.is_some() {
                    // As long as our view does not show it, that it was written is all that can be known. If it is
                    // to be otherwise, it is written at once.
                    let why = "our copy stands there, but the view that we follow does not show it";
                    self.rest_for(now, id, self.options.back_off_most, why);
                    self.slots.get_mut(id)?.passing.rests = flight.aims.intent;
                }
                if how == How::Apply && expect != Expect::New {
                    return self.clean_up(id, &reply.body);
                }
            }
            Action::Read => return self.has_read(store, id, &reply.body),
            Action::LetGo { .. } | Action::Release { .. } => {
                let left = decode(&state.key, &self.manager, &reply.body, Keep::Head)?;
                state.passing.written = Some(Written::At(left.version));
            }
            Action::Compare => {
                let would = decode(&state.key, &self.manager, &reply.body, Keep::Head)?;
                if let Seen::Present(target) = store.get(&state.key) {
                    if would.content == target.content {
                        if let Some(odd) = state.record.odd.said() {
                            (odd.fights, odd.undone) = (0, false);
                        }
                        state.record.result = target.content;
                        state.record.ours = target.hands.ours;
                    } else {
                        state.record.odd.differs_at = Some(target.version);
                        if !state.record.odd.undone {
                            let hand = target.hands.other.as_ref().map(|writer| writer.manager.clone());
                            self.fought(now, id, flight.aims.intent, Hand::Rewrites(hand.as_deref()));
                        }
                    }
                }
            }
            Action::Delete(warrant) => {
                state.passing.written = Some(Written::Ended(warrant.uid().clone()));
                self.count(id);
            }
            Action::Report(_) => {
                state.record.reported = flight.aims.status.unwrap_or(Digest::NONE);
                self.report_is_answered(store, id, &reply.body);
            }
            Action::LookBefore { version } => {
                let key = state.key.clone();
                let Seen::Present(target) = store.get(&key) else { return None };
                let (whose, _) = self.whose_before(&key, &target.uid, &reply.body)?;
                let record = &mut self.slots.get_mut(id)?.record;
                match whose {
                    Proof::Ours => record.uid = Some(target.uid.clone()),
                    Proof::NotOurs => record.odd.foreign = Some(target.uid.clone()),
                    Proof::Open => record.odd.unclear_at = Some(version),
                }
            }
            Action::EnsureNamespace => state.passing.namespace = Told::Nothing,
            Action::Finalizer { .. } => {
                // Until it is shown, the source looks as if nothing had been written.
                let (_, made) = written(&reply.body)?;
                if flight.at == state.key {
                    state.passing.written = Some(Written::At(made));
                } else if !state.claims.is_empty() {
                    state.passing.source_at = Some(made);
                }
            }
            Action::ConfirmGone(_) => {}
        }
        None
    }

    /// What stands in a slot was read. It may be newer than what is shown: it is looked at together with that.
    fn has_read(&mut self, store: &Store, id: SlotId, body: &[u8]) -> Option<(Work, Call)> {
        let state = self.slots.get_mut(id)?;
        let found = decode(&state.key, &self.manager, body, Keep::Whole)?;
        let newer = match store.get(&state.key) {
            Seen::Present(shown) => shown.version < found.version,
            Seen::Absent(absence) => absence.version() < found.version,
            Seen::Unknown(_) => false,
        };
        if newer {
            state.passing.written = Some(Written::At(found.version));
        }
        state.passing.fresh = Some(Arc::new(found));
        state.passing.reading = Reading::Found;
        None
    }

    /// The source of a slot was read: if it is newer than what is shown, nothing is decided before that is shown.
    fn has_read_source(
        &mut self,
        store: &Store,
        id: SlotId,
        source: &Key,
        body: &[u8],
    ) -> Option<(Work, Call)> {
        let (_, found) = written(body)?;
        if store.get(source).present().is_some_and(|shown| shown.version < found) {
            self.slots.get_mut(id)?.passing.source_at = Some(found);
        }
        None
    }

    /// A first delivery met something. Whether that is our own copy, which our view did not show, or another's, is
    /// told by how it was right before: our mark stands on it now in either case.
    pub(super) fn look_before(&mut self, now: u64, id: SlotId, met: &Object) -> Option<Next> {
        let state = self.slots.get(id)?;
        if state.passing.rest_until > now {
            self.wake_after_rest(now, id);
            return None;
        }
        let call = crate::compose::look_before(&state.key, met.version);
        Some(self.launch(now, id, Work::LookBefore, call, Aims::default()))
    }

    fn looked_before(&mut self, now: u64, id: SlotId, body: &[u8]) -> Option<(Work, Call)> {
        let state = self.slots.get(id)?;
        let met = state.passing.met.clone()?;
        let (whose, before) = self.whose_before(&state.key, &met.uid, body)?;
        if whose == Proof::NotOurs {
            // A copy that was let go of is still as we wrote it: to take back all that is by our hand would leave it empty.
            let was_ours = before.is_some_and(|before| !before.hands.ours.is_none());
            let marks = self.read_mark(&met).filter(|_| was_ours).map(|(_, marks)| &**marks);
            let call = match marks {
                Some(marks) => {
                    crate::compose::release(&state.key, &self.manager, marks, &met.uid, met.version)
                }
                None => crate::compose::let_go(&state.key, &self.manager, &met, None),
            };
            return Some((Work::LetGo, call));
        }
        self.met(now, id, &met.uid, whose);
        None
    }

    /// How an object was before our write to it cannot be asked any more; false if that was not asked. That nobody but
    /// we ever wrote it still tells that it is ours.
    pub(super) fn cannot_look_before(&mut self, now: u64, id: SlotId, work: &Work) -> bool {
        let Some(state) = self.slots.get_mut(id) else { return false };
        match work {
            Work::Act(Action::LookBefore { version }) => state.record.odd.unclear_at = Some(*version),
            Work::LookBefore => {
                let Some(met) = state.passing.met.clone() else { return false };
                let whose = if met.hands.other.is_none() { Proof::Ours } else { Proof::Open };
                self.met(now, id, &met.uid, whose);
            }
            Work::Act(_)
            | Work::LetGo
            | Work::ReadAgain
            | Work::ReadSource
            | Work::LookWithin
            | Work::TakeOut => return false,
        }
        true
    }

    /// Notes whose it is that a first delivery met.
    fn met(&mut self, now: u64, id: SlotId, uid: &Uid, whose: Proof) {
        let Some(state) = self.slots.get_mut(id) else { return };
        state.passing.met = None;
        match whose {
            // Our own, which the followed view does not show: it is written by its uid from now on, so that its mark
            // does not look like that of a first delivery.
            Proof::Ours => state.record.odd.hidden = Some(uid.clone()),
            Proof::Open | Proof::NotOurs => {
                let why =
                    "something that the view does not show stands there, and whose it was cannot be told";
                self.rest_for(now, id, self.options.back_off_most, why);
            }
        }
    }

    /// Whose an object was before the write that is asked about, and how it was, if it was there.
    fn whose_before(&self, key: &Key, uid: &Uid, body: &[u8]) -> Option<(Proof, Option<Object>)> {
        let page = Page::parse(body, Limits::default()).ok()?;
        let before = page.items().next().and_then(|item| decode(key, &self.manager, item, Keep::Head));
        let before = before.filter(|before| before.uid == *uid);
        let whose = match &before {
            // There was no such object: that write made it.
            None => Proof::Ours,
            Some(before) => match self.mark_on(before) {
                None => Proof::NotOurs,
                Some(mark) => self.proof(before, &mark),
            },
        };
        Some((whose, before))
    }
}

pub(super) fn decode(key: &Key, manager: &str, body: &[u8], keep: Keep) -> Option<Object> {
    Object::decode(body, &Place::of(key, manager, keep)).ok()
}

/// Which object an answer shows, and at which version.
pub(super) fn written(body: &[u8]) -> Option<(Uid, Version)> {
    let metadata = Raw::parse(body).ok()?.get(&["metadata"])?;
    let text = |member| metadata.member(member).and_then(Raw::as_str);
    Some((Uid::parse(&text("uid")?), Version(text("resourceVersion")?.parse().ok()?)))
}
