//! Placements and where they go become routes.

use std::collections::BTreeSet;
use std::sync::Arc;

use mailboat_api::edge::EdgePlacementSpec;
use mailboat_api::names::group;
use mailboat_engine::role::Order;
use mailboat_engine::route::{Destination, DestinationId, RouteId};
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid};
use mailboat_object::object::Object;
use mailboat_store::store::Store;
use mailboat_store::time::Now;

use super::mailboxes::HERE;
use super::{CenterRole, Placement};
use crate::schedule::{PlacementFacts, Sliced};
use crate::translate::{Edge, Placed, SingletonRoute, Singletons, Translator, route_name, specification};
use crate::what::What;

/// Destinations of workspaces are numbered from here down, those of mailboxes from 1 up.
const HOMES_FROM: u32 = u32::MAX;

impl CenterRole {
    pub(super) fn sees_placement(&mut self, object: &Arc<Object>, keeps: bool) {
        let key = &object.key;
        if let Some(known) = self.placements.get_mut(key)
            && (&known.object.uid, known.asks, known.keeps) == (&object.uid, specification(object), keeps)
        {
            known.object = Arc::clone(object);
            return;
        }
        let spec = object.get(&["spec"]).map(|spec| spec.json().to_owned());
        let spec: EdgePlacementSpec =
            spec.and_then(|spec| serde_json::from_str(&spec).ok()).unwrap_or_default();
        let what = Arc::new(What::of(&spec));
        self.schedule.placement(key, Some(PlacementFacts::of(object)));
        let what_of_it = Some(Arc::clone(&what));
        let reads_more = self.workspaces.placement(&key.cluster, &key.name, what_of_it, &mut self.waiting);
        let to = self.placements.get(key).map(|before| before.to.clone()).unwrap_or_default();
        let placement = Placement {
            object: Arc::clone(object),
            asks: specification(object),
            what,
            upsync: spec.upsync,
            upsync_told: false,
            wants_status: spec.want_singleton_reported_state.unwrap_or_default(),
            to,
            keeps,
        };
        self.placements.insert(key.clone(), placement);
        if reads_more {
            self.touch_workspace(&key.cluster);
        }
        self.touch_placement(key);
    }

    /// A placement is gone, or on its way out and nothing of it is to stay.
    pub(super) fn places_no_more(&mut self, key: &Key) {
        self.newcomers.gone(key);
        self.unanswered.gone(key);
        self.schedule.placement(key, None);
        self.workspaces.placement(&key.cluster, &key.name, None, &mut self.waiting);
        self.touch_placement(key);
        self.summing.gone(key);
    }

    /// A placement is to be made anew.
    pub(super) fn touch_placement(&mut self, key: &Key) {
        self.revision += 1;
        self.stale.insert(key.clone());
    }

    /// All placements of a workspace are to be made anew: other kinds can be selected there.
    pub(super) fn touch_workspace(&mut self, cluster: &ClusterId) {
        self.revision += 1;
        self.counted.remove(cluster);
        let first = Key {
            cluster: cluster.clone(),
            kind: KindId::new(group::EDGE, "edgeplacements"),
            namespace: Name::EMPTY,
            name: Name::EMPTY,
        };
        let of_it = self.placements.range(first..).take_while(|(key, _)| key.cluster == *cluster);
        self.stale.extend(of_it.map(|(key, _)| key.clone()));
    }

    /// Takes in where placements go by now.
    pub(super) fn reschedule(&mut self, now: Now, store: &Store, orders: &mut Vec<Order>) {
        self.schedule.advance(now.wall_seconds);
        let ready = self.mailboxes.newly_furnished(store, orders);
        for uid in &ready {
            for key in self.going_to.get(uid).cloned().unwrap_or_default() {
                self.touch_placement(&key);
            }
            self.set_upsync(uid);
            self.statuses.touch_target(uid);
            if self.orphans.contains(uid) {
                self.stale.extend(self.placements.keys().cloned());
            }
        }
        for key in self.schedule.take_changed() {
            self.touch_placement(&key);
            self.statuses.touch(&key);
            let to: BTreeSet<Uid> = self.schedule.destinations(&key).map(|(uid, _)| uid.clone()).collect();
            let Some(placement) = self.placements.get_mut(&key) else { continue };
            let before = std::mem::replace(&mut placement.to, to.clone());
            for left in before.difference(&to) {
                if let Some(going) = self.going_to.get_mut(left) {
                    going.remove(&key);
                }
            }
            for uid in &to {
                self.going_to.entry(uid.clone()).or_default().insert(key.clone());
            }
            // With ten thousand edges, one that comes or goes is told alone, unless what comes up is another at all of them.
            let all_alike = std::mem::replace(&mut placement.upsync_told, true);
            let told: Vec<&Uid> = if all_alike {
                before.symmetric_difference(&to).collect()
            } else {
                before.union(&to).collect()
            };
            for uid in told {
                self.set_upsync(uid);
            }
        }
    }

    pub(super) fn set_upsync(&mut self, uid: &Uid) {
        let going = self.going_to.get(uid).into_iter().flatten();
        let sets =
            going.filter_map(|key| self.placements.get(key)).flat_map(|one| one.upsync.iter().cloned());
        let sets = sets.collect();
        self.mailboxes.set_upsync(uid, sets);
    }

    /// Routes for the placements that changed.
    pub(super) fn configure(&mut self, orders: &mut Vec<Order>) {
        if !self.started {
            return;
        }
        let workspaces: BTreeSet<ClusterId> = self.stale.iter().map(|key| key.cluster.clone()).collect();
        for cluster in workspaces {
            self.count_singletons(&cluster, orders);
        }
        for key in std::mem::take(&mut self.stale) {
            self.fresh.insert(key.cluster.clone());
            let translator = RouteId(route_name(&key));
            let still = self.schedule.slices(&key).next().is_some();
            if !still {
                orders.push(Order::Configure(Sliced::id_of(&key), None));
                orders.push(Order::Configure(translator, None));
                if let Some(gone) = self.placements.remove(&key) {
                    for uid in gone.to {
                        if let Some(going) = self.going_to.get_mut(&uid) {
                            going.remove(&key);
                        }
                        self.set_upsync(&uid);
                    }
                }
                continue;
            }
            let slices = self.schedule.slices(&key).cloned().collect();
            // Before it was seen what they say, they are left alone.
            if !self.newcomers.is_unrecalled(&key) {
                let sliced = Sliced::new(key.clone(), slices, HERE, Arc::clone(&self.marks));
                orders.push(Order::Configure(Sliced::id_of(&key), Some(Arc::new(sliced))));
            }
            if let Some(route) = self.translator(&key) {
                orders.push(Order::Configure(translator, Some(Arc::new(route))));
            }
        }
        if self.views.offers_summaries() {
            self.summing.configure(&self.marks, orders);
        }
    }

    /// A mailbox was found. Where it was made again, it is another workspace: no placement goes to the old one any more, and
    /// whatever was heard there says nothing of this one.
    pub(super) fn begins_anew(&mut self, uid: &Uid) {
        self.statuses.forget_pulse(uid);
        self.statuses.touch_target(uid);
        for key in self.going_to.get(uid).cloned().unwrap_or_default() {
            self.touch_placement(&key);
        }
    }

    /// Forgets edges whose SyncTargets are gone and whose mailboxes went as well: there is nothing left that could be
    /// withdrawn by that.
    pub(super) fn forget_vacated(&mut self, store: &Store, orders: &mut Vec<Order>) {
        let Self { mailboxes, statuses, .. } = self;
        for uid in mailboxes.take_vacated(store, |uid| statuses.target_of(uid).is_none(), orders) {
            tracing::info!(%uid, "a mailbox went with its SyncTarget");
            self.schedule.forget(&uid);
            self.passing.forget(&uid);
            self.statuses.forget_pulse(&uid);
            self.going_to.remove(&uid);
            if self.orphans.remove(&uid) {
                self.stale.extend(self.placements.keys().cloned());
            }
        }
    }

    pub(super) fn translator(&self, key: &Key) -> Option<Translator> {
        let placement = self.placements.get(key)?;
        let edge = |(uid, leads): (&Uid, &crate::schedule::Leads), departed: bool| {
            let to = self.mailboxes.destination(uid)?;
            Some((to, Edge { location: leads.location.clone(), departed }))
        };
        let going = self.schedule.destinations(key).filter_map(|one| edge(one, false));
        let departed = self.schedule.departed(key).filter_map(|one| edge(one, true));
        // Whatever of it stands there stays: nobody knows why its SyncTarget is missing.
        let orphaned = self.orphans.iter().filter_map(|uid| {
            Some((self.mailboxes.destination(uid)?, Edge { location: key.clone(), departed: true }))
        });
        Some(Translator::new(Placed {
            placement: &placement.object,
            what: Arc::clone(&placement.what),
            sources: self.workspaces.sources(&key.cluster),
            edges: orphaned.chain(departed).chain(going).collect(),
            singletons: self.counted.get(&key.cluster).cloned().unwrap_or_default(),
            keeps: placement.keeps,
            provider: Arc::clone(&self.identity.provider_path),
            provider_cluster: self.identity.provider.clone(),
            marks: Arc::clone(&self.marks),
        }))
    }

    fn singletons(&self, cluster: &ClusterId) -> Arc<Singletons> {
        let mut singletons = Singletons::without_subresource(self.workspaces.without_status(cluster));
        let of = |name: &Name| Key {
            cluster: cluster.clone(),
            kind: KindId::new(group::EDGE, "edgeplacements"),
            namespace: Name::EMPTY,
            name: name.clone(),
        };
        let wants = |key: &Key| self.placements.get(key).is_some_and(|placement| placement.wants_status);
        // Nothing is counted where nobody asks, however many edges there are.
        if !self.workspaces.placements(cluster).any(|(name, _)| wants(&of(name))) {
            return Arc::default();
        }
        for (name, what) in self.workspaces.placements(cluster) {
            let key = of(name);
            let to = self.schedule.destinations(&key).filter_map(|(uid, _)| self.mailboxes.destination(uid));
            singletons.add(Arc::clone(what), to.collect::<BTreeSet<_>>().into_iter().collect(), wants(&key));
        }
        Arc::new(singletons)
    }

    /// Whether a placement goes to one mailbox and no other.
    fn goes_to_one(&self, key: &Key) -> bool {
        let all = self.schedule.destinations(key);
        all.filter(|(uid, _)| self.mailboxes.destination(uid).is_some()).take(2).count() == 1
    }

    /// The route that says on objects to how many edges they go; none where nothing was ever placed.
    fn count_singletons(&mut self, cluster: &ClusterId, orders: &mut Vec<Order>) {
        // Where something was placed before, what that left behind is still to be put right; but not in a workspace that
        // is given up. What cannot be read there must not keep its copies from being withdrawn.
        let was_placed = self.homes.contains_key(cluster) && !self.endings.given_up().contains(cluster);
        if self.workspaces.placements(cluster).next().is_none() && !was_placed {
            self.counted.remove(cluster);
            orders.push(Order::Configure(SingletonRoute::id_of(cluster), None));
            return;
        }
        let singletons = self.singletons(cluster);
        if self.counted.get(cluster).is_some_and(|before| before.counts_like(&singletons)) {
            return;
        }
        // Whether the status of what goes to one edge returns depends on where other placements send it.
        let alone = |key: &&Key| key.cluster == *cluster && self.goes_to_one(key);
        let alone: Vec<Key> = self.placements.keys().filter(alone).cloned().collect();
        self.stale.extend(alone);
        self.counted.insert(cluster.clone(), Arc::clone(&singletons));
        let next = HOMES_FROM - u32::try_from(self.homes.len()).unwrap_or_default();
        let here = *self.homes.entry(cluster.clone()).or_insert_with(|| {
            let id = DestinationId(next);
            orders.push(Order::Destination(Destination { id, cluster: cluster.clone() }));
            id
        });
        let configuration = mailboat_object::digest::digest_of_value(&self.revision.into());
        let route = SingletonRoute::new(
            cluster,
            here,
            singletons,
            self.workspaces.sources(cluster),
            configuration,
            Arc::clone(&self.marks),
        );
        let id = mailboat_engine::route::Route::head(&route).id.clone();
        orders.push(Order::Configure(id, Some(Arc::new(route))));
    }
}
