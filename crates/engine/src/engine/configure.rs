//! What an engine is told of its world: clusters, destinations, routes, and that all of them are known.

use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_object::wire::Abilities;
use mailboat_store::interest::PlaceId;
use mailboat_store::store::Store;

use super::{Engine, RouteEntry};
use crate::fans::RouteIndex;
use crate::queue::Urgency;
use crate::route::{Destination, Route, RouteId};
use crate::shared::Shared;
use crate::warrant::WholeConfiguration;

impl Engine {
    /// Names a cluster that may be written, and how.
    pub fn cluster(&mut self, cluster: ClusterId, abilities: Abilities) {
        self.away.remove(&cluster);
        self.gone.remove(&cluster);
        self.try_again(&cluster);
        self.clusters.insert(cluster, abilities);
    }

    /// Names a destination. Routes refer to it by its id.
    pub fn destination(&mut self, destination: Destination) {
        let (id, cluster) = (destination.id, destination.cluster.clone());
        if let Some(before) = self.destinations.insert(id, destination)
            && before.cluster != cluster
            && let Some(ids) = self.destinations_at.get_mut(&before.cluster)
        {
            ids.retain(|one| *one != id);
            if ids.is_empty() {
                self.destinations_at.remove(&before.cluster);
            }
            self.shared = Shared::default();
        }
        let there = self.destinations_at.entry(cluster).or_default();
        if !there.contains(&id) {
            there.push(id);
        }
    }

    /// A route was made, changed or, with `None`, taken away with the configuration that it came from.
    pub fn configure(&mut self, store: &Store, id: &RouteId, route: Option<Arc<dyn Route>>) {
        let index = match (self.route_ids.get(id).copied(), &route) {
            (Some(index), _) => index,
            (None, None) => return,
            (None, Some(route)) => {
                let entry = RouteEntry {
                    id: id.clone(),
                    scope: route.head().scope.clone(),
                    rank: Arc::clone(&route.head().rank),
                    route: None,
                };
                let index = RouteIndex(u32::try_from(self.routes.insert(entry)).unwrap_or(u32::MAX));
                self.route_ids.insert(id.clone(), index);
                index
            }
        };
        self.read_no_more(index);
        for kind in route.iter().flat_map(|route| route.seeks()) {
            self.seek(store, kind);
        }
        for kind in route.iter().flat_map(|route| route.relates()) {
            self.by_related.entry(kind.clone()).or_default().insert(index);
        }
        let digest = route.as_ref().map_or(Digest::NONE, |route| route.head().configuration);
        let before = self.routes.get(index.0 as usize).and_then(|entry| entry.route.clone());
        let alike = match (&route, &before) {
            (Some(route), Some(before)) => route.head().selects_like(before.head()),
            _ => false,
        };
        let changed = match (&route, &before) {
            (Some(route), Some(before)) if alike && is_placed_like(&**route, &**before) => {
                route.changes_at(&**before).map(|mut changed| {
                    changed.sort_unstable();
                    Arc::new(changed)
                })
            }
            _ => None,
        };
        let leads_anywhere = route.as_ref().is_some_and(|route| route.destinations().is_none());
        let mut sources = Vec::new();
        if let Some(route) = &route {
            for wanted in &route.head().sources {
                let slot = self.by_kind.entry((wanted.cluster.clone(), wanted.kind.clone())).or_default();
                slot.insert(index);
                if !alike {
                    sources.extend(keys(store, &wanted.place, wanted.cluster.as_ref(), &wanted.kind));
                }
            }
        }
        self.read_alone(index, route.as_ref().and_then(|route| route.head().source.as_ref()));
        sources.extend(route.as_ref().and_then(|route| route.head().source.clone()));
        let Some(entry) = self.routes.get_mut(index.0 as usize) else { return };
        if let Some(route) = &route {
            entry.scope = route.head().scope.clone();
            entry.rank = Arc::clone(&route.head().rank);
        }
        entry.route = route;
        // All that its scope would withdraw is settled together once more: one by one, each would be the only one.
        let reopened = self.breaker.reopen(&entry.scope.clone(), digest);
        let reopened = reopened.iter().filter_map(|slot| self.slots.find(slot));
        self.unsettled.extend(reopened);
        let known = if alike { self.fans.selected_by(index) } else { self.fans.of_route(index) };
        if let Some(changed) = changed {
            for id in known {
                self.evaluate_there_later(id, &changed, Urgency::Live);
            }
            for source in sources {
                let id = self.fans.of(index, &source);
                self.evaluate_later(id, Urgency::Live);
            }
            return;
        }
        let listed: Vec<_> = sources.iter().map(|source| self.fans.of(index, source)).collect();
        // What a new route brings is listed for the first time, though others may have read it before.
        let urgency = if before.is_some() { Urgency::Live } else { Urgency::Listed };
        // It may go elsewhere and does not say where.
        let elsewhere = before.is_some() && (!alike || leads_anywhere);
        for id in known.into_iter().chain(listed) {
            if let Some(fan) = self.fans.get_mut(id) {
                fan.reselected |= elsewhere;
            }
            self.evaluate_later(id, urgency);
        }
        self.bury(index);
    }

    /// Forgets a route that was taken away, once all that it made of its sources was let go.
    pub(crate) fn bury(&mut self, index: RouteIndex) {
        let ended = self.routes.get(index.0 as usize).is_some_and(|entry| entry.route.is_none());
        if ended && !self.fans.has(index) {
            let entry = self.routes.remove(index.0 as usize);
            self.route_ids.remove(&entry.id);
        }
    }

    /// A route reads this object alone from now on, or none that way.
    fn read_alone(&mut self, index: RouteIndex, source: Option<&Key>) {
        let before = self.routes.get(index.0 as usize).and_then(|entry| entry.route.clone());
        if let Some(before) = before.as_ref().and_then(|route| route.head().source.as_ref())
            && let Some(routes) = self.by_object.get_mut(before)
        {
            routes.remove(&index);
            if routes.is_empty() {
                self.by_object.remove(before);
            }
        }
        if let Some(source) = source {
            self.by_object.entry(source.clone()).or_default().insert(index);
        }
    }

    /// Copies of a kind are found by their marks from now on. Whatever bears a mark of ours has a slot already.
    fn seek(&mut self, store: &Store, kind: &KindId) {
        if !self.copies.seek(kind) {
            return;
        }
        for slot in self.slots.of_kind(None, kind) {
            let key = self.slots.get(slot).map(|state| state.key.clone());
            if let Some(target) = key.and_then(|key| store.get(&key).present())
                && let Some(mark) = self.mark_on(target)
            {
                self.copies.add(&target.key, &mark.origin.key);
            }
        }
    }

    fn read_no_more(&mut self, index: RouteIndex) {
        let route = self.routes.get(index.0 as usize).and_then(|entry| entry.route.clone());
        for kind in route.iter().flat_map(|route| route.seeks()) {
            self.copies.seek_no_more(kind);
        }
        for kind in route.iter().flat_map(|route| route.relates()) {
            if let Some(routes) = self.by_related.get_mut(kind) {
                routes.remove(&index);
                if routes.is_empty() {
                    self.by_related.remove(kind);
                }
            }
        }
        for sources in route.iter().flat_map(|route| &route.head().sources) {
            let of = (sources.cluster.clone(), sources.kind.clone());
            if let Some(routes) = self.by_kind.get_mut(&of) {
                routes.remove(&index);
                if routes.is_empty() {
                    self.by_kind.remove(&of);
                }
            }
        }
    }

    /// Every list that the configuration is made of is complete: from now on, what no route selects is known
    /// not to be selected. `None`: it is not so any more.
    pub fn configuration_known(&mut self, version: Option<u64>) {
        self.configuration = version.map(WholeConfiguration::known);
        if self.configuration.is_some() {
            self.was_known = true;
            let unclaimed = self.slots.unclaimed();
            self.unsettled.extend(unclaimed);
        }
    }
}

/// Whether what two routes make of the same counts alike, and is told from other things in the same way.
fn is_placed_like(route: &dyn Route, before: &dyn Route) -> bool {
    let (head, known) = (route.head(), before.head());
    (&head.rank, &head.scope) == (&known.rank, &known.scope)
        && route.seeks() == before.seeks()
        && route.relates() == before.relates()
}

/// The sources of a kind that are known to be there: in one cluster, or in all that a place shows.
pub(super) fn keys(store: &Store, place: &PlaceId, cluster: Option<&ClusterId>, kind: &KindId) -> Vec<Key> {
    match cluster {
        Some(cluster) => {
            if let Ok(range) = store.range(cluster, kind, None) {
                return range.map(|object| object.key.clone()).collect();
            }
            // A list that is not complete shows something already: what is present must be evaluated, or it
            // would be taken for something that no route selects.
            let shown = store.across(place, kind).filter(|object| object.key.cluster == *cluster);
            shown.map(|object| object.key.clone()).collect()
        }
        None => store.across(place, kind).map(|object| object.key.clone()).collect(),
    }
}
