//! What the store tells: whom a change concerns, and no one else.

use std::collections::BTreeSet;
use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key, KindId, Version};
use mailboat_object::object::Object;
use mailboat_store::interest::PlaceId;
use mailboat_store::seen::{Change, News, Seen};
use mailboat_store::store::Store;

use super::configure::keys;
use super::{Engine, of_kind, urgency};
use crate::fans::FanId;
use crate::mark::Mark;
use crate::plan::Proof;
use crate::queue::Urgency;
use crate::slots::Written;

impl Engine {
    /// Something was learned. If a copy of ours is shown: what it remembers of its source.
    pub fn observe(&mut self, store: &Store, news: &News) -> Option<(Key, Version)> {
        match news {
            News::Object(change) => return self.observe_object(store, change),
            News::Scope { place, cluster, kind, .. } => {
                self.observe_scope(store, place, cluster.as_ref(), kind);
            }
            News::CaughtUp { kind, .. } => self.settle_all_waiting(store, None, kind),
            // Whoever waits for that list is asked about what is to go meanwhile.
            News::Stalled { kind, .. } => {
                self.settle_all_waiting(store, None, kind);
                self.settle_listed(store, None);
            }
        }
        None
    }

    fn observe_object(&mut self, store: &Store, change: &Change) -> Option<(Key, Version)> {
        let urgency = urgency(&change.key, change.live);
        for reader in self.fans.woken_by(&change.key) {
            self.wake(reader, urgency);
        }
        for route in self.routes_of(&change.key) {
            let known = self.fans.find(route, &change.key);
            match (&change.now, known) {
                (Seen::Present(_) | Seen::Unknown(_), None) => {
                    let fan = self.fans.of(route, &change.key);
                    self.evaluate_later(fan, urgency);
                }
                (Seen::Absent(absence), Some(fan)) => {
                    if let Some(fan) = self.fans.get_mut(fan) {
                        fan.gone = Some(Box::new(*absence));
                    }
                    self.evaluate_later(fan, urgency);
                }
                (_, Some(fan)) => {
                    self.watch_end(fan, change);
                    self.evaluate_later(fan, urgency);
                }
                (Seen::Absent(_), None) => {}
            }
        }
        self.observe_copy(change, urgency);
        let mark = self.observe_target(change, urgency);
        self.house(&change.key, urgency);
        self.settle_waiting(store, &change.key);
        self.report_is_shown(change);
        mark.map(|mark| (mark.origin.key, mark.origin.version))
    }

    /// Notes whether a source was seen to begin to be deleted. One that a list shows so may be one of thousands.
    fn watch_end(&mut self, fan: FanId, change: &Change) {
        let Seen::Present(now) = &change.now else { return };
        let began = change.before.as_ref().is_none_or(|before| !before.deleting || before.uid != now.uid);
        if let Some(fan) = self.fans.get_mut(fan)
            && (began || !now.deleting)
        {
            fan.watched_end = now.deleting && change.watched && change.before.is_some();
        }
    }

    /// A copy that is sought came, went, or is one of another object now: who asked for it is told.
    fn observe_copy(&mut self, change: &Change, urgency: Urgency) {
        if !self.copies.is_sought(&change.key.kind) {
            return;
        }
        let origin = |engine: &Self, object: &Object| engine.mark_on(object).map(|mark| mark.origin.key);
        let before = change.before.as_ref().and_then(|object| origin(self, object));
        let now = match &change.now {
            Seen::Present(object) => origin(self, object),
            // What is in doubt may be there still.
            Seen::Unknown(_) => before.clone(),
            Seen::Absent(_) => None,
        };
        if before == now && change.before.is_some() {
            return;
        }
        if let Some(before) = &before {
            self.copies.remove(&change.key, before);
        }
        if let Some(now) = &now {
            self.copies.add(&change.key, now);
        }
        for origin in before.iter().chain(&now) {
            for reader in self.fans.woken_by_copy(&change.key, origin) {
                self.wake(reader, urgency);
            }
        }
    }

    /// Something may stand otherwise in a slot. The mark on it, if it is a copy of ours: read here once for all who ask for it.
    fn observe_target(&mut self, change: &Change, urgency: Urgency) -> Option<Mark> {
        let target = match &change.now {
            Seen::Present(target) => Some(target),
            Seen::Absent(_) | Seen::Unknown(_) => None,
        };
        let mark = target.and_then(|target| self.mark_on(target));
        let slot = match (self.slots.find(&change.key), target) {
            (Some(slot), _) => slot,
            // A copy of ours that nobody claims: configuration that shrank while we were away.
            (None, Some(_)) if mark.is_some() => self.slots.at(&change.key),
            // A source that waits for us, though no route reads it: the same.
            (None, Some(target))
                if self.bears_finalizer(target) && self.routes_of(&change.key).is_empty() =>
            {
                self.slots.at(&change.key)
            }
            (None, _) => return None,
        };
        let mut ours = None;
        // Counted before anything is planned: a share of what is not counted yet looks like all of it, and a share of what
        // went smaller than it is.
        match &change.now {
            Seen::Present(target) => {
                ours = mark.filter(|mark| self.proof(target, mark) == Proof::Ours);
                let state = self.slots.get_mut(slot)?;
                // The body is at hand now, and may not be kept.
                if target.is_whole() && state.record.result.is_none() {
                    self.bodies.keep(slot, target);
                }
                if ours.is_some() {
                    state.record.uid = Some(target.uid.clone());
                    self.count(slot);
                }
            }
            Seen::Absent(absence) => {
                let state = self.slots.get_mut(slot)?;
                let made_since = |written: &Written| matches!(written, Written::At(version) if absence.version() < *version);
                if !state.passing.written.as_ref().is_some_and(made_since) {
                    state.notes_gone();
                    self.count(slot);
                }
            }
            Seen::Unknown(_) => {}
        }
        self.plan_later(slot, urgency);
        ours
    }

    /// A whole kind became known or doubtful at a place: every source that is read there, every slot of it, and whoever
    /// read anything of it is looked at again.
    fn observe_scope(&mut self, store: &Store, place: &PlaceId, cluster: Option<&ClusterId>, kind: &KindId) {
        let mut stale: BTreeSet<_> = self.fans.concerning(cluster, kind).into_iter().collect();
        for route in self.routes_reading(cluster, kind) {
            let Some(entry) = self.routes.get(route.0 as usize) else { continue };
            let reads = entry.route.iter().flat_map(|route| &route.head().sources);
            for sources in reads.filter(|sources| sources.kind == *kind && sources.place == *place) {
                let narrowed = match (&sources.cluster, cluster) {
                    (Some(one), Some(other)) if one != other => continue,
                    (one, other) => one.as_ref().or(other),
                };
                let listed = keys(store, place, narrowed, kind);
                stale.extend(listed.into_iter().map(|source| (route, Arc::new(source))));
            }
        }
        for (route, source) in stale {
            let fan = self.fans.of(route, &source);
            // What is shown again just as it was is decided already.
            let decided = match (store.get(&source), self.fans.get(fan)) {
                (Seen::Present(object), Some(fan)) => {
                    let identified = store.identity(&source.cluster, &source.kind).is_some();
                    fan.is_decided_for(object, identified)
                }
                _ => false,
            };
            if !decided {
                self.evaluate_later(fan, Urgency::Listed);
            }
        }
        for reader in self.fans.woken_by_scope(kind, cluster) {
            self.wake(reader, Urgency::Listed);
        }
        for slot in self.slots.of_kind(cluster, kind) {
            self.plan_again(slot, Urgency::Listed);
        }
        for namespace in of_kind(&self.homeless, cluster, kind) {
            self.house(&namespace, Urgency::Listed);
        }
        self.settle_all_waiting(store, cluster, kind);
        self.settle_listed(store, cluster);
        self.report_again(cluster, kind);
        // Few are away, and of each mailbox each of some ninety kinds becomes known.
        if !self.away.is_empty() && cluster.is_some_and(|cluster| store.range(cluster, kind, None).is_ok()) {
            self.try_soon(cluster);
        }
    }
}
