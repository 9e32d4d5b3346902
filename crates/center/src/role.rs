//! The center as a role: inventories and placements become mailboxes, slices and copies.

mod belief;
mod guard;
mod mailboxes;
mod statuses;
mod summing;
mod views;
mod workspaces;

pub(crate) use mailboxes::may_be_carried;
pub(crate) use summing::reason_of;
pub(crate) use workspaces::decides;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::edge::{
    EdgePlacementSpec, HeldCopy, ObjectReference, PlacementConflict, SinglePlacement, UpsyncSet,
};
use mailboat_api::names::{export, group};
use mailboat_engine::breaker::ScopeId;
use mailboat_engine::engine::{Contested, Engine, NotCurrent, Notice};
use mailboat_engine::mark::{Marks, OwnerId, StandardMarks};
use mailboat_engine::plan::{Verdict, Wait};
use mailboat_engine::role::{CallId, Ground, Order, Role, Turn};
use mailboat_engine::route::{Destination, DestinationId, RouteId, Sources};
use mailboat_engine::standing::Part;
use mailboat_object::catalog::Catalog;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid};
use mailboat_object::object::{Keep, Object};
use mailboat_object::wire::{Fault, Reply};
use mailboat_store::interest::{Filter, Interest, PlaceId};
use mailboat_store::seen::{News, Seen};
use mailboat_store::store::Store;
use mailboat_store::time::{Moment, Now};

use serde_json::{Value, json};

use self::belief::Belief;
use self::guard::Guard;
use self::mailboxes::{HERE, Mailboxes};
use self::statuses::{Sight, Statuses};
use self::summing::{Scene, Summing};
use self::views::Views;
use self::workspaces::Workspaces;
use crate::mailbox;
use crate::schedule::{LocationFacts, PlacementFacts, Schedule, Sliced, TargetFacts};
use crate::translate::{
    Edge, Placed, SingletonRoute, Singletons, Translator, api_exports, api_resource_schemas, route_name,
};
use crate::what::What;

/// Who a center is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Whose its copies are.
    pub owner: OwnerId,
    /// Its field manager.
    pub manager: Name,
    /// The provider workspace, by the id of its cluster.
    pub provider: ClusterId,
    /// The provider workspace, by its path.
    pub provider_path: Arc<str>,
    /// How long a syncer may be silent, and how often its heartbeat is written down.
    pub silence: mailbox::Limits,
}

/// The center as a role.
pub struct CenterRole {
    identity: Identity,
    marks: Arc<dyn Marks>,
    introduced: bool,
    views: Views,
    belief: Belief,
    schedule: Schedule,
    started: bool,
    placements: BTreeMap<Key, Placement>,
    /// Which placements go to a SyncTarget.
    going_to: BTreeMap<Uid, BTreeSet<Key>>,
    /// Placements whose routes are to be made anew.
    stale: BTreeSet<Key>,
    workspaces: Workspaces,
    /// Each workspace as a destination, for what is written into the sources themselves.
    homes: BTreeMap<ClusterId, DestinationId>,
    mailboxes: Mailboxes,
    guard: Guard,
    statuses: Statuses,
    summing: Summing,
    /// Slots of mailboxes that stand otherwise than before.
    noticed: BTreeSet<Key>,
    /// Workspaces in which something was seen or made anew, whose placements may have to say something else.
    fresh: BTreeSet<ClusterId>,
    /// Placements that want what others have. Whether that is still so shows in no change of their own.
    contested: BTreeSet<Key>,
    retold: Moment,
    /// What was learned and asks for orders that are given later.
    waiting: Vec<Order>,
    interests: Vec<Interest>,
    /// Counts what was learned of the configuration, and what the engine was told of it.
    revision: u64,
    known: Option<u64>,
    calls: u64,
    said: Option<String>,
}

/// A placement that is believed.
struct Placement {
    object: Arc<Object>,
    what: Arc<What>,
    upsync: Vec<UpsyncSet>,
    wants_status: bool,
    /// The SyncTargets that it goes to.
    to: BTreeSet<Uid>,
}

/// The most copies that a status lists.
const MOST_LISTED: usize = 20;
/// What placements select is counted anew at most this often, whatever changes.
const RETELL_EVERY: Duration = Duration::from_secs(1);
/// Destinations of workspaces are numbered from here down, those of mailboxes from 1 up.
const HOMES_FROM: u32 = u32::MAX;

impl CenterRole {
    /// A center that knows nothing yet.
    pub fn new(identity: Identity) -> Self {
        let marks: Arc<dyn Marks> = Arc::new(StandardMarks::new(identity.owner.clone()));
        Self {
            mailboxes: Mailboxes::new(
                identity.provider.clone(),
                Arc::clone(&identity.provider_path),
                Arc::clone(&marks),
            ),
            statuses: Statuses::new(identity.manager.clone(), identity.silence),
            summing: Summing::new(identity.manager.clone()),
            identity,
            marks,
            introduced: false,
            views: Views::default(),
            belief: Belief::default(),
            schedule: Schedule::new(),
            started: false,
            placements: BTreeMap::new(),
            going_to: BTreeMap::new(),
            stale: BTreeSet::new(),
            workspaces: Workspaces::default(),
            homes: BTreeMap::new(),
            guard: Guard::default(),
            noticed: BTreeSet::new(),
            fresh: BTreeSet::new(),
            contested: BTreeSet::new(),
            retold: Moment::default(),
            waiting: Vec::new(),
            interests: Vec::new(),
            revision: 0,
            known: None,
            calls: 0,
            said: None,
        }
    }

    /// The place of the provider workspace.
    pub fn provider_place(&self) -> PlaceId {
        PlaceId(self.identity.provider.0.clone())
    }

    /// What it still waits for before it decides anything, for people; `None` once it does.
    pub fn waits_for(&self) -> Option<String> {
        if self.started { None } else { self.views.waits_for() }
    }

    fn introduce(&mut self, orders: &mut Vec<Order>) {
        if std::mem::replace(&mut self.introduced, true) {
            return;
        }
        let provider = self.identity.provider.clone();
        orders.push(Order::Destination(Destination { id: HERE, cluster: provider.clone() }));
        let targets = [(export::EDGE, group::EDGE), (export::WORKLOAD, group::WORKLOAD)];
        let sources = targets.map(|(export_name, group)| Sources {
            place: views::place(export_name),
            cluster: None,
            kind: KindId::new(group, "synctargets"),
        });
        let route = mailbox::Mailboxes::new(sources.into(), provider, HERE, Arc::clone(&self.marks));
        let id = mailboat_engine::route::Route::head(&route).id.clone();
        orders.push(Order::Configure(id, Some(Arc::new(route))));
    }

    fn follow(&mut self, orders: &mut Vec<Order>) {
        let here = |kind: KindId, keep: Keep| Interest {
            place: self.provider_place(),
            kind,
            filter: Filter::All,
            keep,
        };
        let mut interests = vec![
            here(mailbox::workspaces(), Keep::Whole),
            here(views::endpoint_slices(), Keep::Whole),
            here(api_exports(), Keep::HeadAndStatus),
            here(api_resource_schemas(), Keep::HeadAndStatus),
        ];
        interests.extend(self.views.interests());
        interests.extend(self.workspaces.interests());
        if interests != self.interests {
            self.interests.clone_from(&interests);
            orders.push(Order::Follow(interests));
        }
    }

    fn sees(&mut self, now: Now, object: &Arc<Object>) {
        let key = &object.key;
        match Kind::of(&key.kind) {
            Some(Kind::Target) => {
                self.waiting.push(Order::Reach(key.cluster.clone()));
                self.touch_locations(key);
                self.schedule.target(key, Some(TargetFacts::of(object)));
                self.touch_locations(key);
                self.statuses.sees_target(object);
                self.summing.target(object);
            }
            Some(Kind::Location) => {
                self.touch_edges(key);
                self.schedule.location(key, Some(LocationFacts::of(object)));
                self.touch_edges(key);
                self.statuses.touch(key);
            }
            Some(Kind::Placement) => {
                self.statuses.touch(key);
                self.summing.placement(object);
                self.sees_placement(object);
            }
            Some(Kind::Summarizer) => self.summing.summarizer(object),
            Some(Kind::Summary) => self.summing.summary(key),
            Some(Kind::Slice) if !self.started => self.remember(object),
            Some(Kind::Slice) => {}
            None if key.kind == mailbox::workspaces() && key.cluster == self.identity.provider => {
                self.mailboxes.observe(object, &mut self.waiting);
            }
            None if key.kind == api_exports() && key.cluster == self.identity.provider => {
                self.views.sees_export(object);
            }
            None => {
                if let Some(uid) = self.mailboxes.of(&key.cluster) {
                    if is_the_one(key) {
                        self.statuses.hears(uid, object, now);
                        self.summing.reported(uid, object, self.statuses.heard(uid));
                    }
                    self.summing.touch(key);
                    self.guard.observe(object, &self.identity.provider, &*self.marks);
                }
            }
        }
    }

    fn sees_placement(&mut self, object: &Arc<Object>) {
        let key = &object.key;
        if let Some(known) = self.placements.get_mut(key)
            && (known.object.content, &known.object.uid) == (object.content, &object.uid)
        {
            known.object = Arc::clone(object);
            return;
        }
        let spec = object.get(&["spec"]).map(|spec| spec.json().to_owned());
        let spec: EdgePlacementSpec =
            spec.and_then(|spec| serde_json::from_str(&spec).ok()).unwrap_or_default();
        let what = Arc::new(What::of(&spec));
        self.schedule.placement(key, Some(PlacementFacts::of(object)));
        self.workspaces.placement(&key.cluster, &key.name, Some(Arc::clone(&what)), &mut self.waiting);
        let to = self.placements.get(key).map(|before| before.to.clone()).unwrap_or_default();
        let placement = Placement {
            object: Arc::clone(object),
            what,
            upsync: spec.upsync,
            wants_status: spec.want_singleton_reported_state.unwrap_or_default(),
            to,
        };
        self.placements.insert(key.clone(), placement);
        self.touch_workspace(&key.cluster.clone());
    }

    /// Where slices say that placements go, from before we started.
    fn remember(&mut self, slice: &Object) {
        let Some(owner) = slice.owner_references().find(|owner| owner.kind == "EdgePlacement") else {
            return;
        };
        let placement = Key {
            cluster: slice.key.cluster.clone(),
            kind: KindId::new(group::EDGE, "edgeplacements"),
            namespace: Name::EMPTY,
            name: Name::new(&owner.name),
        };
        let destinations: Option<Vec<SinglePlacement>> =
            slice.get(&["destinations"]).and_then(|listed| serde_json::from_str(listed.json()).ok());
        self.schedule.remember(&placement, &destinations.unwrap_or_default());
    }

    /// Something is believed to be gone.
    fn loses(&mut self, key: &Key) {
        match Kind::of(&key.kind) {
            Some(Kind::Target) => {
                self.touch_locations(key);
                self.schedule.target(key, None);
                self.summing.target_gone(key);
            }
            Some(Kind::Location) => {
                self.touch_edges(key);
                self.schedule.location(key, None);
            }
            Some(Kind::Placement) => {
                self.schedule.placement(key, None);
                self.workspaces.placement(&key.cluster, &key.name, None, &mut self.waiting);
                self.stale.insert(key.clone());
                self.touch_workspace(&key.cluster.clone());
                self.summing.gone(key);
            }
            Some(Kind::Summarizer) => self.summing.gone(key),
            Some(Kind::Slice | Kind::Summary) | None => {}
        }
    }

    /// The Locations that lead to a SyncTarget count it.
    fn touch_locations(&mut self, target: &Key) {
        for location in self.schedule.locations_of(target) {
            self.statuses.touch(location);
        }
    }

    /// Summaries show the edges that a Location leads to by its name and labels.
    fn touch_edges(&mut self, location: &Key) {
        for target in self.schedule.targets_of(location) {
            self.summing.touch_edge(target);
        }
    }

    /// All placements of a workspace are to be made anew: singletons are counted over all of them.
    fn touch_workspace(&mut self, cluster: &ClusterId) {
        self.revision += 1;
        let first = Key {
            cluster: cluster.clone(),
            kind: KindId::new(group::EDGE, "edgeplacements"),
            namespace: Name::EMPTY,
            name: Name::EMPTY,
        };
        let of_it = self.placements.range(first..).take_while(|(key, _)| key.cluster == *cluster);
        self.stale.extend(of_it.map(|(key, _)| key.clone()));
    }

    /// Begins to decide, once all that was there at the beginning is known.
    fn start(&mut self, now: Now) {
        // A mailbox that is seen later is a new one, whose syncer was told nothing yet.
        let here = |kind: &KindId| self.views.is_listed(&self.provider_place(), kind);
        let known = here(&mailbox::workspaces()) && here(&api_exports());
        if !self.started && known && self.views.are_listed() {
            tracing::info!(placements = self.placements.len(), "the center knows its placements and edges");
            self.started = true;
            self.schedule.start(now.wall_seconds);
        }
    }

    /// Takes in where placements go by now.
    fn reschedule(&mut self, now: Now, store: &Store, orders: &mut Vec<Order>) {
        self.schedule.advance(now.wall_seconds);
        let ready = self.mailboxes.newly_furnished(store, orders);
        for uid in &ready {
            self.stale.extend(self.going_to.get(uid).into_iter().flatten().cloned());
            self.set_upsync(uid);
            self.statuses.touch_target(uid);
        }
        for key in self.schedule.take_changed() {
            self.stale.insert(key.clone());
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
            for uid in before.union(&to) {
                self.set_upsync(uid);
            }
            self.touch_workspace(&key.cluster);
        }
    }

    fn set_upsync(&mut self, uid: &Uid) {
        let going = self.going_to.get(uid).into_iter().flatten();
        let sets =
            going.filter_map(|key| self.placements.get(key)).flat_map(|one| one.upsync.iter().cloned());
        let sets = sets.collect();
        self.mailboxes.set_upsync(uid, sets);
    }

    /// Routes for the placements that changed.
    fn configure(&mut self, orders: &mut Vec<Order>) {
        if !self.started {
            return;
        }
        let mut workspaces = BTreeSet::new();
        for key in std::mem::take(&mut self.stale) {
            workspaces.insert(key.cluster.clone());
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
            let sliced = Sliced::new(key.clone(), slices, HERE, Arc::clone(&self.marks));
            orders.push(Order::Configure(Sliced::id_of(&key), Some(Arc::new(sliced))));
            if let Some(route) = self.translator(&key) {
                orders.push(Order::Configure(translator, Some(Arc::new(route))));
            }
        }
        for cluster in workspaces {
            self.count_singletons(&cluster, orders);
        }
        if self.views.offers_summaries() {
            self.summing.configure(&self.marks, orders);
        }
    }

    fn translator(&self, key: &Key) -> Option<Translator> {
        let placement = self.placements.get(key)?;
        let edge = |(uid, leads): (&Uid, &crate::schedule::Leads), departed: bool| {
            let to = self.mailboxes.destination(uid)?;
            Some((to, Edge { location: leads.location.clone(), departed }))
        };
        let going = self.schedule.destinations(key).filter_map(|one| edge(one, false));
        let departed = self.schedule.departed(key).filter_map(|one| edge(one, true));
        Some(Translator::new(Placed {
            placement: &placement.object,
            what: Arc::clone(&placement.what),
            sources: self.workspaces.sources(&key.cluster),
            edges: departed.chain(going).collect(),
            singletons: self.singletons(&key.cluster),
            provider: Arc::clone(&self.identity.provider_path),
            provider_cluster: self.identity.provider.clone(),
            marks: Arc::clone(&self.marks),
        }))
    }

    fn singletons(&self, cluster: &ClusterId) -> Arc<Singletons> {
        let mut singletons = Singletons::default();
        for (name, what) in self.workspaces.placements(cluster) {
            let key = Key {
                cluster: cluster.clone(),
                kind: KindId::new(group::EDGE, "edgeplacements"),
                namespace: Name::EMPTY,
                name: name.clone(),
            };
            let wanted = self.placements.get(&key).is_some_and(|placement| placement.wants_status);
            let to = self.schedule.destinations(&key).filter_map(|(uid, _)| self.mailboxes.destination(uid));
            singletons.add(Arc::clone(what), to.collect::<BTreeSet<_>>().into_iter().collect(), wanted);
        }
        Arc::new(singletons)
    }

    /// The route that says on objects to how many edges they go.
    fn count_singletons(&mut self, cluster: &ClusterId, orders: &mut Vec<Order>) {
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
            self.singletons(cluster),
            self.workspaces.sources(cluster),
            configuration,
            Arc::clone(&self.marks),
        );
        let id = mailboat_engine::route::Route::head(&route).id.clone();
        orders.push(Order::Configure(id, Some(Arc::new(route))));
    }

    /// Tells syncers what to carry once that is known, and then the engine that the configuration is known as a whole. In
    /// this order: a `the-one` that no route claims yet must not look like one that nobody wants.
    fn tell_known(&mut self, engine: &Engine, orders: &mut Vec<Order>) {
        let ready = self.started && self.workspaces.are_known() && self.stale.is_empty();
        let known = (ready && self.mailboxes.are_told()).then_some(self.revision);
        if known != self.known {
            self.known = known;
            orders.push(Order::ConfigurationKnown(known));
        }
        // Routes that were just made are evaluated before anything is said of them.
        if ready && orders.is_empty() && !engine.is_busy() && self.noticed.is_empty() {
            self.mailboxes.tell();
        }
    }

    /// What a placement's status should say.
    fn placement_status(&self, store: &Store, engine: &Engine, placement: &Object) -> Option<Value> {
        let known = self.placements.get(&placement.key)?;
        let part = Part::Scope(ScopeId(route_name(&placement.key)));
        let mut errors = PlacementFacts::of(placement).errors;
        errors.extend(known.what.validation_errors().iter().cloned());
        let not_current = engine.not_current(store, &part, MOST_LISTED);
        let undecided = engine.undecided(store, &RouteId(route_name(&placement.key)), MOST_LISTED);
        let held = not_current.iter().chain(&undecided).filter_map(held).take(MOST_LISTED);
        let held: Vec<HeldCopy> = held.collect();
        let route = RouteId(route_name(&placement.key));
        let contested = engine.contested(&route, MOST_LISTED);
        let conflicts: Vec<PlacementConflict> =
            contested.iter().filter_map(|one| self.conflict(&placement.key, one)).collect();
        Some(json!({
            "specGeneration": placement.generation,
            "matchingLocationCount": self.schedule.matching_locations(&placement.key),
            "destinationCount": self.schedule.destinations(&placement.key).count(),
            "matchedObjectCount": engine.selected_count(&route),
            "conflicts": if conflicts.is_empty() { Value::Null } else { json!(conflicts) },
            "validationErrors": if errors.is_empty() { Value::Null } else { json!(errors) },
            "held": if held.is_empty() { Value::Null } else { json!(held) },
        }))
    }

    /// Has the statuses of placements looked at whose workspace saw changes, once all of those are evaluated. Gives back
    /// when to ask again.
    fn retell(&mut self, now: Moment, engine: &Engine) -> Option<Moment> {
        if (self.fresh.is_empty() && self.contested.is_empty()) || !self.started {
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
        let all = self.placements.keys().filter(|key| fresh.contains(&key.cluster));
        let looked_at: BTreeSet<Key> = all.cloned().chain(std::mem::take(&mut self.contested)).collect();
        for key in looked_at {
            self.statuses.touch(&key);
            if !engine.contested(&RouteId(route_name(&key)), 1).is_empty() {
                self.contested.insert(key);
            }
        }
        (!self.contested.is_empty()).then_some(now + RETELL_EVERY)
    }

    /// Something that a placement wants in an edge's mailbox, and an older placement has.
    fn conflict(&self, placement: &Key, contested: &Contested) -> Option<PlacementConflict> {
        let with = contested.by.0.as_str().strip_prefix("placement/")?.replacen('/', ":", 1);
        let uid = self.mailboxes.of(&contested.slot.cluster)?;
        let leads = self.schedule.destinations(placement).find(|(to, _)| *to == uid)?.1;
        Some(PlacementConflict {
            object: Some(reference(&contested.source)),
            edge: leads.target.name.to_string(),
            message: format!("{with} places an object of the same name there, and is older"),
            with,
        })
    }

    /// A copy stands otherwise: the placements of its workspace that go there may have something to say.
    fn touch_placements_of(&mut self, slot: &Key, engine: &Engine) {
        let Some(source) = engine.claimant(slot) else { return };
        let Some(uid) = self.mailboxes.of(&slot.cluster) else { return };
        let going = self.going_to.get(uid).into_iter().flatten();
        for placement in going.filter(|placement| placement.cluster == source.cluster) {
            self.statuses.touch(placement);
        }
    }

    fn write_statuses(
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
        let mut calls = self.calls;
        let sight = Sight {
            store,
            schedule: &self.schedule,
            mailboxes: &self.mailboxes,
            placement: &|placement| self.placement_status(store, engine, placement),
        };
        let next = || {
            calls += 1;
            CallId(calls)
        };
        let wake = statuses.next(now, &sight, next, orders);
        self.calls = calls;
        self.statuses = statuses;
        wake
    }

    fn sum_up(
        &mut self,
        now: Now,
        store: &Store,
        engine: &Engine,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        if !self.views.offers_summaries() {
            return None;
        }
        let calls = &mut self.calls;
        let id = || {
            *calls += 1;
            CallId(*calls)
        };
        let scene = Scene { store, engine, schedule: &self.schedule, mailboxes: &self.mailboxes };
        self.summing.next(now, &scene, self.known.is_some(), id, orders)
    }

    fn say(&mut self) {
        let waits = self.waits_for();
        if waits != self.said {
            if let Some(waits) = &waits {
                tracing::info!(waits, "nothing is decided yet");
            }
            self.said = waits;
        }
    }
}

impl Role for CenterRole {
    fn observe(&mut self, now: Now, _: &Store, news: &News) {
        self.views.observe(news);
        let News::Object(change) = news else { return };
        if self.workspaces.follows(&change.key.cluster, &change.key.kind) {
            self.fresh.insert(change.key.cluster.clone());
        }
        match &change.now {
            Seen::Present(object) => {
                if Kind::of(&change.key.kind).is_some() {
                    self.belief.sees(&change.key);
                }
                self.sees(now, object);
            }
            Seen::Absent(_) if Kind::of(&change.key.kind).is_some() => {
                self.belief.misses(&change.key, change.before.clone());
            }
            Seen::Absent(_) | Seen::Unknown(_) => {}
        }
    }

    fn served(&mut self, place: &PlaceId, catalog: &Arc<Catalog>) {
        self.views.served(place, catalog);
        if let Some(cluster) = self.workspaces.served(place, catalog) {
            self.touch_workspace(&cluster);
        }
    }

    fn noticed(&mut self, notice: &Notice) {
        if self.mailboxes.of(&notice.slot.cluster).is_some() {
            tracing::debug!(slot = %notice.slot, verdict = ?notice.verdict, "stands otherwise");
            self.noticed.insert(notice.slot.clone());
        }
        self.summing.touch(&notice.slot);
    }

    fn answered(&mut self, now: Now, id: CallId, reply: Result<Reply, Fault>) {
        if !self.statuses.answered(now.mono, id, &reply) {
            self.summing.answered(now.mono, id, &reply);
        }
    }

    fn looked(&mut self, now: Now, id: CallId, found: Result<Ground, Fault>) {
        self.belief.looked(now.mono, id, &found);
    }

    fn next(&mut self, now: Now, store: &Store, engine: &Engine) -> Turn {
        let mut orders = std::mem::take(&mut self.waiting);
        self.introduce(&mut orders);
        self.views.open(&self.identity.provider, store, &mut orders);
        for key in self.belief.take_gone(store) {
            self.loses(&key);
        }
        orders.append(&mut self.waiting);
        self.start(now);
        self.reschedule(now, store, &mut orders);
        self.follow(&mut orders);
        self.guard.hold(store, &self.workspaces, &mut orders);
        self.configure(&mut orders);
        for slot in std::mem::take(&mut self.noticed) {
            self.mailboxes.stands(&slot, store, engine);
            self.touch_placements_of(&slot, engine);
        }
        self.tell_known(engine, &mut orders);
        self.mailboxes.configure(&mut orders);
        let mut calls = self.calls;
        let look_at = self.belief.next(
            now.mono,
            || {
                calls += 1;
                CallId(calls)
            },
            &mut orders,
        );
        self.calls = calls;
        let retell_at = self.retell(now.mono, engine);
        let status_at = self.write_statuses(now, store, engine, &mut orders);
        let summary_at = self.sum_up(now, store, engine, &mut orders);
        self.say();
        let eviction = self.schedule.next_eviction().map(|at| {
            let seconds = at.saturating_sub(now.wall_seconds).max(1);
            Moment(now.mono.0 + seconds.saturating_mul(1_000))
        });
        Turn {
            orders,
            wake: [look_at, retell_at, status_at, summary_at, eviction].into_iter().flatten().min(),
        }
    }
}

fn is_the_one(key: &Key) -> bool {
    key.kind.group() == group::EDGE
        && key.kind.resource() == "syncerconfigs"
        && key.name.as_str() == mailboat_api::names::object::THE_ONE
}

/// A copy that is not as it should be, and why.
fn held(copy: &NotCurrent) -> Option<HeldCopy> {
    let (reason, message) = match &copy.verdict {
        Verdict::Waiting(Wait::Undecided(hold)) => ("Undecided", hold.reason.clone()),
        Verdict::Refused(refusal) => (
            summing::reason_of(refusal),
            copy.fault.as_deref().unwrap_or("an object that is not ours stands there").to_owned(),
        ),
        _ => return None,
    };
    let key = copy.source.as_ref().or(copy.slot.as_ref())?;
    Some(HeldCopy { object: Some(reference(key)), edge: String::new(), reason: reason.to_owned(), message })
}

fn reference(key: &Key) -> ObjectReference {
    ObjectReference {
        group: key.kind.group().to_owned(),
        resource: key.kind.resource().to_owned(),
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
    }
}

/// The kinds that say what goes where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Target,
    Location,
    Placement,
    Slice,
    Summarizer,
    Summary,
}

impl Kind {
    fn of(kind: &KindId) -> Option<Self> {
        match (kind.group(), kind.resource()) {
            (group::EDGE | group::WORKLOAD, "synctargets") => Some(Self::Target),
            (group::EDGE | group::SCHEDULING, "locations") => Some(Self::Location),
            (group::EDGE, "edgeplacements") => Some(Self::Placement),
            (group::EDGE, "singleplacementslices") => Some(Self::Slice),
            (group::EDGE, "summarizers") => Some(Self::Summarizer),
            (group::EDGE, "statussummaries") => Some(Self::Summary),
            _ => None,
        }
    }
}
