//! Summaries, fed from what the center sees anyway, and kept in the workspaces of their placements.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mailboat_engine::engine::Engine;
use mailboat_engine::mark::Marks;
use mailboat_engine::plan::{Refusal, Verdict, Wait};
use mailboat_engine::role::{CallId, Order};
use mailboat_engine::route::{Route, RouteId, View};
use mailboat_object::key::{Key, Name, Uid};
use mailboat_object::object::Object;
use mailboat_object::wire::{Fault, Reply};
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;
use mailboat_store::time::{Moment, Now};

use super::mailboxes::{HERE, Mailboxes, may_be_carried};
use crate::denature;
use crate::schedule::Schedule;
use crate::summary::health::Cause;
use crate::summary::{
    CopyId, Delivery, EdgeFacts, Named, ObjectId, Report, StatusWrite, Summaries, Summarized, Told,
};
use crate::translate::{Edge, form_at, route_name};

/// What could not be written is tried again after this.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// Statuses that are written at once; more wait for an answer.
const MOST_UNDER_WAY: usize = 16;

/// All summaries, and what of them is to be looked at.
pub(super) struct Summing {
    manager: Name,
    summaries: Summaries,
    started: bool,
    /// The placements by the routes that carry their objects.
    routes: BTreeMap<RouteId, Key>,
    targets: BTreeMap<Key, Uid>,
    /// SyncTargets whose Locations may be others.
    edges: BTreeSet<Key>,
    /// StatusSummaries that were seen.
    found: BTreeSet<Key>,
    /// Slots of mailboxes, and sources, that may stand otherwise.
    touched: BTreeSet<Key>,
    /// Where a placement's object is held without anything standing there.
    bare: BTreeMap<(Key, Key), BTreeSet<Uid>>,
    /// What is to be written, the newest of each.
    due: BTreeMap<Key, StatusWrite>,
    under_way: BTreeMap<CallId, Key>,
}

/// What the summaries are made from.
pub(super) struct Scene<'s> {
    pub(super) store: &'s Store,
    pub(super) engine: &'s Engine,
    pub(super) schedule: &'s Schedule,
    pub(super) mailboxes: &'s Mailboxes,
}

impl Summing {
    pub(super) fn new(manager: Name) -> Self {
        Self {
            manager,
            summaries: Summaries::default(),
            started: false,
            routes: BTreeMap::new(),
            targets: BTreeMap::new(),
            edges: BTreeSet::new(),
            found: BTreeSet::new(),
            touched: BTreeSet::new(),
            bare: BTreeMap::new(),
            due: BTreeMap::new(),
            under_way: BTreeMap::new(),
        }
    }

    /// An EdgePlacement was seen.
    pub(super) fn placement(&mut self, placement: &Object) {
        self.routes.insert(RouteId(route_name(&placement.key)), placement.key.clone());
        self.summaries.placement(&placement.key, Some(placement));
    }

    /// An EdgePlacement or a Summarizer is gone.
    pub(super) fn gone(&mut self, key: &Key) {
        self.routes.remove(&RouteId(route_name(key)));
        self.summaries.placement(key, None);
        self.summaries.summarizer(key, None);
        self.bare.retain(|(placement, _), _| placement != key);
    }

    /// A Summarizer was seen.
    pub(super) fn summarizer(&mut self, summarizer: &Object) {
        if !self.under_way.values().any(|busy| *busy == summarizer.key) {
            self.summaries.summarizer(&summarizer.key, Some(summarizer));
        }
    }

    /// A StatusSummary was seen.
    pub(super) fn summary(&mut self, summary: &Key) {
        self.found.insert(summary.clone());
    }

    /// A SyncTarget was seen.
    pub(super) fn target(&mut self, target: &Object) {
        self.targets.insert(target.key.clone(), target.uid.clone());
        self.edges.insert(target.key.clone());
    }

    /// A SyncTarget is gone.
    pub(super) fn target_gone(&mut self, target: &Key) {
        if let Some(uid) = self.targets.remove(target) {
            self.summaries.edge(&uid, None);
        }
    }

    /// Another Location may lead to a SyncTarget, or the same one looks otherwise.
    pub(super) fn touch_edge(&mut self, target: &Key) {
        self.edges.insert(target.clone());
    }

    /// What a syncer says of its deliveries, and when it was last heard of.
    pub(super) fn reported(
        &mut self,
        uid: &Uid,
        the_one: &Object,
        heard: Option<u64>,
        named: &dyn Fn(&Key) -> Named,
    ) {
        if let Some(at) = heard {
            self.summaries.heard(uid, at);
        }
        if let Some(report) = Report::of(the_one) {
            self.summaries.reported(uid, &report, named);
        }
    }

    /// A copy in a mailbox may stand otherwise, or a source that has none there yet.
    pub(super) fn touch(&mut self, slot: &Key) {
        self.touched.insert(slot.clone());
    }

    /// What came of a write. False if it was none of these.
    pub(super) fn answered(&mut self, now: Moment, id: CallId, reply: &Result<Reply, Fault>) -> bool {
        let Some(key) = self.under_way.remove(&id) else { return false };
        if let Err(fault) = reply {
            tracing::debug!(%key, %fault, "a summary could not be written");
            self.summaries.unwritten(&key, now + AGAIN_AFTER);
        }
        true
    }

    /// Routes for the StatusSummaries that there should be. Asked before the configuration is said to be known: what stands
    /// from before a restart must not look like something that nobody wants.
    pub(super) fn configure(&mut self, marks: &Arc<dyn Marks>, orders: &mut Vec<Order>) {
        for placement in self.summaries.take_chosen() {
            let wanted = self.summaries.wanted(&placement);
            let route = (!wanted.is_empty()).then(|| {
                let route = Summarized::new(placement.clone(), wanted, HERE, Arc::clone(marks));
                Arc::new(route) as Arc<dyn Route>
            });
            orders.push(Order::Configure(Summarized::id_of(&placement), route));
        }
    }

    /// Takes in what changed, once all is `known`, and writes what there is to say. Says when to ask again.
    pub(super) fn next(
        &mut self,
        now: Now,
        scene: &Scene<'_>,
        known: bool,
        mut id: impl FnMut() -> CallId,
        orders: &mut Vec<Order>,
    ) -> Option<Moment> {
        // Before all is known, everything would be said to be less than it is.
        if !self.started && (!known || scene.engine.is_busy()) {
            return None;
        }
        self.summaries.advance(now);
        self.find(scene.store);
        self.look_at_edges(scene);
        for key in std::mem::take(&mut self.touched) {
            match scene.mailboxes.of(&key.cluster) {
                Some(uid) => self.look_at_slot(scene, uid, &key),
                None => self.look_at_source(scene, &key),
            }
        }
        if !std::mem::replace(&mut self.started, true) {
            self.summaries.start(now);
        }
        let (writes, wake) = self.summaries.next(now);
        self.due.extend(writes.into_iter().map(|write| (write.key.clone(), write)));
        while self.under_way.len() < MOST_UNDER_WAY
            && let Some((key, write)) = self.due.pop_first()
        {
            let id = id();
            orders.push(Order::Reach(key.cluster.clone()));
            orders.push(Order::Call(id, write.call(self.manager.clone())));
            self.under_way.insert(id, key);
        }
        wake
    }

    /// What stands there. While one is being written, what is seen of it may be older than that.
    fn find(&mut self, store: &Store) {
        let busy: BTreeSet<&Key> = self.under_way.values().collect();
        let (later, found) = std::mem::take(&mut self.found).into_iter().partition(|key| busy.contains(key));
        self.found = later;
        let found: BTreeSet<Key> = found;
        for key in found {
            if let Seen::Present(summary) = store.get(&key) {
                self.summaries.found(summary);
            }
        }
    }

    fn look_at_edges(&mut self, scene: &Scene<'_>) {
        for target in std::mem::take(&mut self.edges) {
            let Some(uid) = self.targets.get(&target) else { continue };
            let location = scene.schedule.locations_of(&target).min_by(|a, b| a.name.cmp(&b.name));
            let facts = match location.map(|location| scene.store.get(location)) {
                Some(Seen::Present(location)) => EdgeFacts::of(location),
                Some(Seen::Absent(_) | Seen::Unknown(_)) => continue,
                None => EdgeFacts { location: target.name.to_string(), ..EdgeFacts::default() },
            };
            self.summaries.edge(uid, Some(facts));
        }
    }

    /// Counts a copy for every placement that wants it, and for no other.
    fn look_at_slot(&mut self, scene: &Scene<'_>, uid: &Uid, slot: &Key) {
        if !may_be_carried(&slot.kind) {
            return;
        }
        let id = CopyId { edge: uid.clone(), object: object_id(slot) };
        let mut wanting = BTreeSet::new();
        let mut first: Option<&Key> = None;
        for (route, source) in scene.engine.claims(slot) {
            let Some(placement) = self.routes.get(route).cloned() else { continue };
            let beaten = first.is_some_and(|first| first != source);
            first = first.or(Some(source));
            let told = if beaten {
                let message = "an older placement wants another object of that name there".to_owned();
                let cause = Cause::new("Conflict", message);
                Told { delivery: Delivery::held(cause), ..Told::default() }
            } else {
                self.told(scene, &placement, &id, slot, source)
            };
            self.summaries.copy(&placement, &id, Some(told));
            if scene.mailboxes.tells_of(slot) == Named::NotYet {
                self.summaries.leaves_unsaid(uid);
            }
            if let Some(bare) = self.bare.get_mut(&(placement.clone(), source.clone())) {
                bare.remove(uid);
            }
            wanting.insert(placement);
        }
        let others = self.summaries.placements_at(uid).filter(|placement| !wanting.contains(*placement));
        for placement in others.cloned().collect::<Vec<_>>() {
            self.summaries.copy(&placement, &id, None);
        }
    }

    fn told(&self, scene: &Scene<'_>, placement: &Key, id: &CopyId, slot: &Key, source: &Key) -> Told {
        let copy = match scene.store.get(slot) {
            Seen::Present(copy) => Some(Arc::clone(copy)),
            Seen::Absent(_) | Seen::Unknown(_) => None,
        };
        let before = self.summaries.delivery(placement, id).cloned().unwrap_or_default();
        let judged = match &copy {
            Some(copy) => {
                let (named, report) = (scene.mailboxes.tells_of(slot), self.summaries.report(&id.edge));
                let named = if self.started { named } else { named.at_a_start(report) };
                before.judged(&id.object, copy, report, named)
            }
            None => before,
        };
        let delivery = match scene.engine.verdict(slot).and_then(held_by) {
            Some(cause) => judged.but_held(cause),
            None => judged,
        };
        let whole = copy.as_deref().is_some_and(Object::is_whole);
        let form = if whole { None } else { form(scene, placement, &id.edge, source) };
        Told { copy, form, delivery }
    }

    /// Counts what is held before anything of it stands in a mailbox.
    fn look_at_source(&mut self, scene: &Scene<'_>, source: &Key) {
        let first = Key { kind: source.kind.clone(), name: Name::EMPTY, ..source.clone() };
        let here = self.routes.range(RouteId(route_name(&first))..);
        let placements = here.take_while(|(_, placement)| placement.cluster == source.cluster);
        let placements: Vec<(RouteId, Key)> =
            placements.map(|(route, placement)| (route.clone(), placement.clone())).collect();
        for (route, placement) in placements {
            let of = (placement, source.clone());
            let held: BTreeMap<Uid, Cause> = scene
                .engine
                .held_bare(&route, source)
                .filter_map(|(to, hold)| {
                    let cause = Cause::new("Undecided", &*hold.reason);
                    Some((scene.mailboxes.at(to)?.clone(), cause))
                })
                .collect();
            let before = self.bare.remove(&of).unwrap_or_default();
            let id = |uid: &Uid| CopyId { edge: uid.clone(), object: object_id(source) };
            for uid in before.iter().filter(|uid| !held.contains_key(*uid)) {
                self.summaries.copy(&of.0, &id(uid), None);
            }
            if !held.is_empty() {
                self.bare.insert(of.clone(), held.keys().cloned().collect());
            }
            for (uid, cause) in held {
                let told = Told { delivery: Delivery::held(cause), ..Told::default() };
                self.summaries.copy(&of.0, &id(&uid), Some(told));
            }
        }
    }
}

/// What a copy should be at an edge.
fn form(scene: &Scene<'_>, placement: &Key, uid: &Uid, source: &Key) -> Option<Arc<Object>> {
    let Seen::Present(source) = scene.store.get(source) else { return None };
    let leads = scene.schedule.leads(placement, uid)?;
    let edge = Edge { location: leads.location.clone(), departed: false };
    form_at(source, &edge, &View::new(scene.store))
}

/// Why the center does not send a copy as it should be now, if so.
pub(super) fn held_by(verdict: &Verdict) -> Option<Cause> {
    let (reason, message) = match verdict {
        Verdict::Waiting(Wait::Undecided(hold)) => ("Undecided", hold.reason.clone()),
        Verdict::Refused(refusal) => (reason_of(refusal), refusal.to_string()),
        _ => return None,
    };
    Some(Cause::new(reason, message))
}

/// Why something is refused, in one word.
pub(crate) fn reason_of(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Foreign | Refusal::OthersOwn(_) => "Conflict",
        Refusal::MarkRemoved => "MarkRemoved",
        Refusal::Unclear => "Unclear",
        Refusal::Rejected => "Rejected",
    }
}

fn object_id(key: &Key) -> ObjectId {
    ObjectId {
        kind: denature::at_edge(&key.kind).into_owned(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
    }
}
