//! What the center would do, worked out from what was read, and not done.
//!
//! `mailboat why` and `mailboat plan` ask the same routes, the same schedule and the same engine that a running center
//! asks; what they read is all that differs. The engine is given no leave to call anybody: it evaluates, and then says of
//! every slot how it stands and what it would do next.

mod changes;
mod known;
mod why;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_api::edge::{EdgePlacementSpec, SinglePlacement, ValidationError};
use mailboat_api::names::group;
use mailboat_engine::breaker::Threshold;
use mailboat_engine::engine::{Engine, Next, Options};
use mailboat_engine::mark::{Marks, OwnerId, StandardMarks};
use mailboat_engine::route::{Destination, DestinationId, RouteId, Sources};
use mailboat_object::catalog::Catalog;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid};
use mailboat_object::object::Object;
use mailboat_object::wire::Abilities;
use mailboat_store::interest::PlaceId;
use mailboat_store::seen::Seen;
use mailboat_store::store::Store;
use serde_json::Value;

use crate::assemble::FIELD_MANAGER;
use crate::denature;
use crate::role::decides;
use crate::schedule::{Leads, LocationFacts, PlacementFacts, Schedule, TargetFacts};
use crate::translate::{Edge, Placed, Singletons, Translator, route_name};
use crate::what::What;

pub use changes::{Change, Step, changes};
pub use known::Listed;
pub use why::{AtEdge, ByPlacement, Customized, Hop, Why};

/// Where all this is.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// The provider workspace, by the id of its cluster; `None` if it may not be entered.
    pub provider: Option<ClusterId>,
    /// The provider workspace, by its path.
    pub provider_path: String,
    /// The workload workspaces whose placements are looked at. All that they may select was read.
    pub workspaces: BTreeSet<ClusterId>,
    /// The mailboxes, by the uids of their SyncTargets.
    pub mailboxes: BTreeMap<Uid, ClusterId>,
    /// Now, in Unix seconds.
    pub now: u64,
    /// When the center asks before it withdraws.
    pub caution: Threshold,
}

impl Setting {
    /// The provider workspace; where it may not be entered, its path stands for its cluster.
    fn provider_cluster(&self) -> ClusterId {
        self.provider.clone().unwrap_or_else(|| ClusterId::new(&self.provider_path))
    }
}

/// A center that only thinks.
pub struct Rehearsal {
    setting: Setting,
    store: Store,
    /// What was read.
    read: BTreeSet<(ClusterId, KindId)>,
    /// When the statuses of objects were last written, in Unix seconds.
    reported: BTreeMap<Key, u64>,
    engine: Engine,
    marks: Arc<dyn Marks>,
    placements: BTreeMap<Key, Placement>,
    destinations: BTreeMap<Uid, DestinationId>,
}

struct Placement {
    translator: Arc<Translator>,
    to: BTreeMap<Uid, Leads>,
}

impl Rehearsal {
    /// Works everything out from what was read.
    pub fn new(setting: Setting, listed: &[Listed]) -> Self {
        let provider = setting.provider.clone().unwrap_or_default();
        let owner = OwnerId(Name::new(&format!("center-{provider}")));
        let marks: Arc<dyn Marks> = Arc::new(StandardMarks::new(owner.clone()));
        let known::Known { store, news, read, reported } = known::learn(listed);
        // No call is ever under way, so none is ever made. And nothing is too much: like a process that starts, a rehearsal does not
        // know to which placement a copy that nobody claims belonged, and what it does not look after at all, such as a mailbox's
        // rights, would count as lost.
        let threshold = Threshold { at_least: usize::MAX, ..Threshold::default() };
        let options = Options { in_flight: 0, threshold, ..Options::default() };
        let mut engine = Engine::new(owner, Name::new(FIELD_MANAGER), vec![Arc::clone(&marks)], options);
        let mut destinations = BTreeMap::new();
        for (number, (uid, cluster)) in (1..).zip(&setting.mailboxes) {
            let id = DestinationId(number);
            engine.cluster(cluster.clone(), Abilities { apply: true, whole: true });
            engine.destination(Destination { id, cluster: cluster.clone() });
            destinations.insert(uid.clone(), id);
        }
        for news in &news {
            engine.observe(&store, news);
        }
        let mut rehearsal =
            Self { setting, store, read, reported, engine, marks, placements: BTreeMap::new(), destinations };
        rehearsal.place();
        rehearsal.engine.configuration_known(Some(1));
        while matches!(rehearsal.engine.next(0, &rehearsal.store), Next::Again) {}
        rehearsal
    }

    /// An object as it was read.
    pub fn object(&self, key: &Key) -> Option<&Arc<Object>> {
        match self.store.get(key) {
            Seen::Present(object) => Some(object),
            Seen::Absent(_) | Seen::Unknown(_) => None,
        }
    }

    /// The SyncTargets that any of the placements goes to.
    pub fn targets(&self) -> BTreeMap<Uid, Leads> {
        self.placements.values().flat_map(|placement| placement.to.clone()).collect()
    }

    /// What cannot work as written in a placement, each with the path where it stands.
    pub fn validation_errors(&self, placement: &Key) -> Vec<ValidationError> {
        let Some(object) = self.object(placement) else { return Vec::new() };
        let mut errors = PlacementFacts::of(object).errors;
        errors.extend(What::of(&spec(object)).validation_errors().iter().cloned());
        errors
    }

    /// The placements that were read.
    pub fn placements(&self) -> impl Iterator<Item = &Key> {
        self.placements.keys()
    }

    /// The placement that a route belongs to, as users know it.
    fn named(&self, route: &RouteId) -> String {
        let placement = self.placements.keys().find(|placement| route_name(placement) == route.0);
        placement.map_or_else(|| route.0.to_string(), |placement| format!("EdgePlacement {}", placement.name))
    }

    /// Makes the routes of all placements.
    fn place(&mut self) {
        let found: Vec<Arc<Object>> =
            self.setting.workspaces.iter().flat_map(|cluster| self.all(cluster, "edgeplacements")).collect();
        let going = self.going(&found);
        let whats: Vec<(Key, Arc<What>, bool)> = found
            .iter()
            .map(|placement| {
                let spec = spec(placement);
                let returns = spec.want_singleton_reported_state.unwrap_or_default();
                (placement.key.clone(), Arc::new(What::of(&spec)), returns)
            })
            .collect();
        for (placement, (key, what, _)) in found.iter().zip(&whats) {
            let to = going.get(key).cloned().unwrap_or_default();
            let mut singletons = Singletons::default();
            for (other, what, returns) in whats.iter().filter(|(other, ..)| other.cluster == key.cluster) {
                let to = going.get(other).into_iter().flat_map(BTreeMap::keys);
                let to: BTreeSet<DestinationId> =
                    to.filter_map(|uid| self.destinations.get(uid).copied()).collect();
                singletons.add(Arc::clone(what), to.into_iter().collect(), *returns);
            }
            let edges = to.iter().filter_map(|(uid, leads)| {
                let edge = Edge { location: leads.location.clone(), departed: false };
                Some((*self.destinations.get(uid)?, edge))
            });
            let translator = Arc::new(Translator::new(Placed {
                placement,
                what: Arc::clone(what),
                sources: self.sources(&key.cluster),
                edges: edges.collect(),
                singletons: Arc::new(singletons),
                keeps: placement.deleting,
                provider: Arc::from(self.setting.provider_path.as_str()),
                provider_cluster: self.setting.provider_cluster(),
                marks: Arc::clone(&self.marks),
            }));
            let route = RouteId(route_name(key));
            self.engine.configure(&self.store, &route, Some(Arc::clone(&translator) as _));
            self.placements.insert(key.clone(), Placement { translator, to });
        }
    }

    /// Where placements go: by the schedule, or by their slices where no inventory may be read.
    fn going(&self, placements: &[Arc<Object>]) -> BTreeMap<Key, BTreeMap<Uid, Leads>> {
        let mut schedule = Schedule::new();
        let mut slices: BTreeMap<Key, BTreeMap<Uid, Leads>> = BTreeMap::new();
        for placement in placements {
            let all = self.all(&placement.key.cluster, "singleplacementslices");
            let of_it = all.iter().filter(|slice| {
                slice.owner_references().any(|owner| owner.name == placement.key.name.as_str())
            });
            let entries: Vec<SinglePlacement> = of_it
                .filter_map(|slice| serde_json::from_str::<Vec<_>>(slice.get(&["destinations"])?.json()).ok())
                .flatten()
                .collect();
            let leads = entries.iter().map(|entry| (Uid::parse(&entry.sync_target_uid), leads_of(entry)));
            slices.insert(placement.key.clone(), leads.collect());
            schedule.remember(&placement.key, entries);
            schedule.placement(&placement.key, Some(PlacementFacts::of(placement)));
        }
        let mut inventory = false;
        for object in self.everywhere([group::EDGE, group::SCHEDULING], "locations") {
            schedule.location(&object.key, Some(LocationFacts::of(object)));
        }
        for object in self.everywhere([group::EDGE, group::WORKLOAD], "synctargets") {
            inventory = true;
            schedule.target(&object.key, Some(TargetFacts::of(object)));
        }
        if !inventory {
            return slices;
        }
        schedule.start(self.setting.now);
        let going = placements.iter().map(|placement| {
            let to = schedule.destinations(&placement.key);
            (placement.key.clone(), to.map(|(uid, leads)| (uid.clone(), leads.clone())).collect())
        });
        going.collect()
    }

    fn all(&self, cluster: &ClusterId, resource: &str) -> Vec<Arc<Object>> {
        let range = self.store.range(cluster, &KindId::new(group::EDGE, resource), None);
        range.into_iter().flatten().cloned().collect()
    }

    /// All objects of some kinds, in whatever workspace they were read.
    fn everywhere(&self, groups: [&str; 2], resource: &str) -> Vec<&Arc<Object>> {
        let fits = |kind: &KindId| groups.contains(&kind.group()) && kind.resource() == resource;
        let read = self.read.iter().filter(|(_, kind)| fits(kind));
        read.flat_map(|(cluster, kind)| self.store.range(cluster, kind, None).into_iter().flatten()).collect()
    }

    fn sources(&self, cluster: &ClusterId) -> Vec<Sources> {
        let read = self.read.iter().filter(|(of, _)| of == cluster);
        let sources = read.map(|(cluster, kind)| Sources {
            place: PlaceId(cluster.0.clone()),
            cluster: Some(cluster.clone()),
            kind: kind.clone(),
        });
        sources.collect()
    }
}

/// The kinds of a workload workspace that have to be read for its placements: what they may select, and what decides
/// about it; as the center reads them.
pub fn kinds_to_read(catalog: &Catalog, placements: &[Value]) -> Vec<KindId> {
    let spec = |placement: &Value| serde_json::from_value(placement["spec"].clone()).unwrap_or_default();
    let whats: Vec<What> = placements.iter().map(|placement| What::of(&spec(placement))).collect();
    let served = catalog.iter().filter(|served| served.verbs.can_follow());
    let wanted = served
        .filter(|served| decides(&served.kind) || whats.iter().any(|what| what.may_select(&served.kind)));
    wanted.map(|served| served.kind.clone()).collect()
}

/// The kind that copies of a kind have in a mailbox.
pub fn kind_in_mailbox(kind: &KindId) -> KindId {
    denature::in_mailbox(kind).into_owned()
}

fn spec(placement: &Object) -> EdgePlacementSpec {
    let spec = placement.get(&["spec"]).map(|spec| spec.json().to_owned());
    spec.and_then(|spec| serde_json::from_str(&spec).ok()).unwrap_or_default()
}

fn leads_of(entry: &SinglePlacement) -> Leads {
    let key = |resource: &str, name: &str| Key {
        cluster: ClusterId::new(&entry.cluster),
        kind: KindId::new(group::EDGE, resource),
        namespace: Name::EMPTY,
        name: Name::new(name),
    };
    Leads {
        target: key("synctargets", &entry.sync_target_name),
        location: key("locations", &entry.location_name),
    }
}

#[cfg(test)]
mod tests;
