//! Where each source goes: for every (route, source) its legs, one per destination, and the slots of each.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Version};
use mailboat_object::object::Object;
use mailboat_store::seen::Absence;
use slab::Slab;
use smallvec::SmallVec;

use crate::queue::Urgency;
use crate::route::{DestinationId, Read};
use crate::slots::{GROWS_BY, SlotId};
use crate::want::Hold;
use crate::whereabouts::Whereabouts;

/// A route, by its place in the engine's table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RouteIndex(pub u32);

/// A fan, by its place in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FanId(pub u32);

/// Everything that one route makes of one source. There is one for everything that a route might select, of which it mostly
/// selects little: so what few of them have is boxed.
#[allow(
    clippy::struct_excessive_bools,
    reason = "one bit each, of which there are as many as sources and routes"
)]
#[derive(Debug)]
pub struct Fan {
    /// The route.
    pub route: RouteIndex,
    /// The source, which many routes may read: it is kept once for all of them.
    pub source: Arc<Key>,
    /// By which entry of the configuration it was selected; empty if it was not.
    pub by: Name,
    /// One for each destination, sorted.
    pub legs: Vec<Leg>,
    /// Why it cannot be said where the source goes.
    pub hold: Option<Box<Hold>>,
    /// Whether its route came to select otherwise since that was last decided, or may go elsewhere and does not say where: what its
    /// legs say may not hold any more.
    pub reselected: bool,
    /// How the source was last seen to be gone.
    pub gone: Option<Box<Absence>>,
    /// Whether it waits to be evaluated.
    pub stale: bool,
    /// Whether anything that is made of the source asks for our finalizer on it.
    pub finalizes: bool,
    /// Whether its source, which is being deleted, was seen to begin to be while we watched.
    pub watched_end: bool,
    /// How urgent it was when it was last evaluated.
    pub urgency: Urgency,
    /// The source as it was when it was last evaluated: its version and its content.
    pub evaluated: Option<(Version, Digest)>,
    /// Whether the identity of its kind was known then.
    pub identified: bool,
    /// How many legs are held and have no slot yet by which that could be told.
    bare: u32,
    /// Another one for each evaluation, and for each fan that ever was.
    stamp: u32,
}

/// One source at one destination, in sixteen bytes: there is one for each of ten thousand edges.
#[derive(Clone, PartialEq, Debug)]
pub struct Leg {
    /// The destination.
    pub to: DestinationId,
    /// The first slot that is wanted there, or none.
    first: SlotId,
    more: Option<Box<More>>,
}

/// What few legs have.
#[derive(Clone, PartialEq, Default, Debug)]
struct More {
    /// The slots after the first.
    slots: Vec<SlotId>,
    hold: Option<Hold>,
}

/// Where a route may make something else of a source than what its fan was last decided by.
pub struct Changed {
    /// These destinations, in order.
    pub at: Arc<Vec<DestinationId>>,
    /// Whether nothing else changed, so that it is evaluated there alone.
    pub alone: bool,
}

/// Who is woken when something that was read changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reader {
    /// All of a fan: its selection read it.
    Fan(FanId),
    /// One leg: its projection read it.
    Leg(FanId, DestinationId),
}

/// All fans, and who reads what.
#[derive(Default)]
pub struct Fans {
    all: Slab<Fan>,
    /// By source first, so that all that concerns a kind in a cluster stands together; those of one source sorted by route.
    ids: BTreeMap<Arc<Key>, Vec<(RouteIndex, FanId)>>,
    by_route: BTreeMap<RouteIndex, BTreeSet<FanId>>,
    /// Each with the stamp that its fan had then: what was read for an evaluation before the last is read no more.
    readers: BTreeMap<Read, SmallVec<[(Reader, u32); 2]>>,
    /// Where there are sources.
    sources_at: Whereabouts,
    /// Where something was read.
    reads_at: Whereabouts,
    /// Where their routes changed, of fans that were not decided since.
    pub changed: BTreeMap<FanId, Changed>,
    /// The fans about which something is undecided that no slot tells.
    undecided: BTreeMap<RouteIndex, BTreeSet<FanId>>,
    /// The fans whose sources each route selects.
    selected: BTreeMap<RouteIndex, BTreeSet<FanId>>,
    /// When there are so many reads, those that are over are looked for.
    tidy_at: usize,
    /// The last stamp of any fan.
    stamps: u32,
}

/// So many reads are kept before those that nobody needs any more are looked for.
const FEWEST: usize = 1_024;

impl Fans {
    /// The fan of a route's source, made if there is none.
    pub fn of(&mut self, route: RouteIndex, source: &Key) -> FanId {
        if let Some(id) = self.find(route, source) {
            return id;
        }
        if self.all.len() == self.all.capacity() {
            // Doubled, a large table would be half empty.
            self.all.reserve_exact((self.all.len() / GROWS_BY).max(GROWS_BY));
        }
        let known = self.ids.get_key_value(source).map(|(known, _)| Arc::clone(known));
        let shared = known.unwrap_or_else(|| Arc::new(source.clone()));
        self.stamps = self.stamps.wrapping_add(1);
        let id = FanId(index(self.all.insert(Fan {
            route,
            source: Arc::clone(&shared),
            by: Name::EMPTY,
            legs: Vec::new(),
            hold: None,
            reselected: false,
            gone: None,
            stale: false,
            finalizes: false,
            watched_end: false,
            urgency: Urgency::Listed,
            evaluated: None,
            identified: false,
            bare: 0,
            stamp: self.stamps,
        })));
        let routes = self.ids.entry(shared).or_default();
        let at = routes.partition_point(|(known, _)| *known < route);
        routes.insert(at, (route, id));
        self.sources_at.add(&source.cluster, &source.kind);
        self.by_route.entry(route).or_default().insert(id);
        id
    }

    /// The fan of a route's source, if there is one.
    pub fn find(&self, route: RouteIndex, source: &Key) -> Option<FanId> {
        let routes = self.ids.get(source)?;
        let at = routes.binary_search_by_key(&route, |(known, _)| *known).ok()?;
        routes.get(at).map(|(_, id)| *id)
    }

    /// A fan.
    pub fn get(&self, id: FanId) -> Option<&Fan> {
        self.all.get(id.0 as usize)
    }

    /// A fan, to be changed.
    pub fn get_mut(&mut self, id: FanId) -> Option<&mut Fan> {
        self.all.get_mut(id.0 as usize)
    }

    /// Forgets a fan that has no legs any more.
    pub fn remove(&mut self, id: FanId) {
        self.changed.remove(&id);
        if let Some(fan) = self.all.try_remove(id.0 as usize) {
            self.sources_at.remove(&fan.source.cluster, &fan.source.kind);
            if let Some(routes) = self.ids.get_mut(&*fan.source) {
                routes.retain(|(_, known)| *known != id);
                if routes.is_empty() {
                    self.ids.remove(&*fan.source);
                }
            }
            if let Some(fans) = self.by_route.get_mut(&fan.route) {
                fans.remove(&id);
                if fans.is_empty() {
                    self.by_route.remove(&fan.route);
                }
            }
            enlist(&mut self.undecided, fan.route, id, false);
            enlist(&mut self.selected, fan.route, id, false);
        }
    }

    /// A source was selected by this, or by nothing.
    pub fn selects(&mut self, id: FanId, by: Name) {
        let Some(fan) = self.get_mut(id) else { return };
        let (route, selected) = (fan.route, !by.is_empty());
        fan.by = by;
        enlist(&mut self.selected, route, id, selected);
    }

    /// How many sources a route selects.
    pub fn selected(&self, route: RouteIndex) -> usize {
        self.selected.get(&route).map_or(0, BTreeSet::len)
    }

    /// The fans of what a route selects, or may select for all that is known, in the order of their sources.
    pub fn selected_by(&self, route: RouteIndex) -> Vec<FanId> {
        let selected = self.selected.get(&route).into_iter().flatten().copied();
        self.in_order(selected.chain(self.undecided(route)))
    }

    /// Notes whether something about a fan is undecided that no slot tells; after its hold or its legs changed. True
    /// if so, or if it was so until now.
    pub fn note_undecided(&mut self, id: FanId) -> bool {
        let Some(fan) = self.get(id) else { return false };
        let nowhere = fan.hold.is_some() && fan.legs.iter().all(|leg| leg.first().is_none());
        let (route, undecided) = (fan.route, nowhere || fan.bare > 0);
        let before = self.undecided.get(&route).is_some_and(|fans| fans.contains(&id));
        enlist(&mut self.undecided, route, id, undecided);
        before || undecided
    }

    /// The fans of a route about which something is undecided that no slot tells.
    pub fn undecided(&self, route: RouteIndex) -> impl ExactSizeIterator<Item = FanId> {
        static NONE: BTreeSet<FanId> = BTreeSet::new();
        self.undecided.get(&route).unwrap_or(&NONE).iter().copied()
    }

    /// Whether a route makes anything of any source, or may.
    pub fn has(&self, route: RouteIndex) -> bool {
        self.by_route.contains_key(&route)
    }

    /// The fans of a route of which nobody can say where their sources go.
    pub fn held(&self, route: RouteIndex) -> impl Iterator<Item = &Fan> {
        let fans = self.by_route.get(&route).into_iter().flatten();
        fans.filter_map(|id| self.get(*id)).filter(|fan| fan.hold.is_some())
    }

    /// All fans of a route, in the order of their sources.
    pub fn of_route(&self, route: RouteIndex) -> Vec<FanId> {
        self.in_order(self.by_route.get(&route).into_iter().flatten().copied())
    }

    /// Fans in the order of their sources, each once.
    fn in_order(&self, fans: impl Iterator<Item = FanId>) -> Vec<FanId> {
        let mut found: Vec<_> = fans.filter_map(|id| Some((&self.get(id)?.source, id))).collect();
        found.sort();
        found.dedup();
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// All fans whose source is of a kind, in one cluster or in any, with the route and the source of each.
    pub fn concerning(&self, cluster: Option<&ClusterId>, kind: &KindId) -> Vec<(RouteIndex, Arc<Key>)> {
        let mut found = Vec::new();
        for at in self.sources_at.of(kind, cluster) {
            let (namespace, name) = (Name::EMPTY, Name::EMPTY);
            let first = Key { cluster: at.clone(), kind: kind.clone(), namespace, name };
            let from = self.ids.range::<Key, _>(&first..);
            let here = from.take_while(|(source, _)| source.cluster == at && source.kind == *kind);
            for (source, routes) in here {
                found.extend(routes.iter().map(|(route, _)| (*route, Arc::clone(source))));
            }
        }
        found
    }

    /// A fan is evaluated anew: what was read for it before is over, and is noted once more if it is read again.
    pub(crate) fn begin(&mut self, id: FanId) {
        self.stamps = self.stamps.wrapping_add(1);
        let stamp = self.stamps;
        if let Some(fan) = self.get_mut(id) {
            fan.stamp = stamp;
        }
    }

    /// Notes what was read, so that a change of it wakes the reader.
    pub fn note(&mut self, reads: Vec<Read>, reader: Reader) {
        if self.readers.len() >= self.tidy_at.max(FEWEST) {
            self.forget_reads(|_| false);
            self.tidy_at = self.readers.len() * 2;
        }
        let (Reader::Fan(fan) | Reader::Leg(fan, _)) = reader;
        let Some(stamp) = self.get(fan).map(|fan| fan.stamp) else { return };
        for read in reads {
            match self.readers.entry(read) {
                Entry::Vacant(place) => {
                    let (cluster, kind) = place.key().scope();
                    self.reads_at.add(cluster, kind);
                    place.insert(SmallVec::from_slice(&[(reader, stamp)]));
                }
                // Sorted: ten thousand objects may read the one namespace that they stand in.
                Entry::Occupied(mut readers) => {
                    let readers = readers.get_mut();
                    match readers.binary_search_by_key(&reader, |(known, _)| *known) {
                        Ok(at) => readers[at].1 = stamp,
                        Err(at) => readers.insert(at, (reader, stamp)),
                    }
                }
            }
        }
    }

    /// Those who read something that changed. They are forgotten here: whoever is woken reads again, and what
    /// is not read any more wakes nobody.
    pub fn woken_by(&mut self, key: &Key) -> SmallVec<[Reader; 2]> {
        let mut woken = SmallVec::new();
        for read in Read::touched_by(key) {
            woken.extend(self.forget(&read));
        }
        woken.sort_unstable();
        woken.dedup();
        woken
    }

    /// Those who asked where the copies of an object stand, of the kind and in the cluster of one that came or went.
    pub fn woken_by_copy(&mut self, copy: &Key, origin: &Key) -> SmallVec<[Reader; 2]> {
        self.forget(&Read::Copies(copy.cluster.clone(), copy.kind.clone(), origin.clone()))
    }

    /// Those who read something of a kind, in one cluster or in all: it became known or doubtful as a whole. What was
    /// not known and turns out not to be there has no event of its own.
    pub fn woken_by_scope(&mut self, kind: &KindId, cluster: Option<&ClusterId>) -> Vec<Reader> {
        let mut reads = Vec::new();
        for at in self.reads_at.of(kind, cluster) {
            for first in Read::first_of(&at, kind) {
                let from = self.readers.range(first..).map(|(read, _)| read);
                reads.extend(from.take_while(|read| read.scope() == (&at, kind)).cloned());
            }
        }
        // Those of one sort may end where another begins.
        reads.dedup();
        let mut woken: Vec<Reader> = reads.iter().flat_map(|read| self.forget(read)).collect();
        woken.sort_unstable();
        woken.dedup();
        woken
    }

    /// Forgets what nobody reads any more, and what nobody needs to.
    pub(crate) fn forget_reads(&mut self, over: impl Fn(&Read) -> bool) {
        let Self { all, readers, reads_at, .. } = self;
        readers.retain(|read, readers| {
            readers.retain(|reader| still_reads(all, *reader));
            let stays = !readers.is_empty() && !over(read);
            if !stays {
                let (cluster, kind) = read.scope();
                reads_at.remove(cluster, kind);
            }
            stays
        });
    }

    /// How many things somebody reads.
    pub(crate) fn reads(&self) -> usize {
        self.readers.len()
    }

    /// How many fans there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Forgets who read something, and gives them.
    fn forget(&mut self, read: &Read) -> SmallVec<[Reader; 2]> {
        let Some(readers) = self.readers.remove(read) else { return SmallVec::new() };
        let (cluster, kind) = read.scope();
        self.reads_at.remove(cluster, kind);
        readers.into_iter().filter(|one| still_reads(&self.all, *one)).map(|(reader, _)| reader).collect()
    }
}

/// Whether what was read at this stamp is what its reader goes by.
fn still_reads(all: &Slab<Fan>, (reader, stamp): (Reader, u32)) -> bool {
    let (Reader::Fan(fan) | Reader::Leg(fan, _)) = reader;
    all.get(fan.0 as usize).is_some_and(|fan| fan.stamp == stamp)
}

impl Fan {
    /// Why it is not decided where the source goes, or what it is at some destination.
    pub fn undecided(&self) -> Option<&Hold> {
        self.hold.as_deref().or_else(|| self.legs.iter().find_map(Leg::hold))
    }

    /// Whether all about it was decided from the source as it is now. What it was decided from besides wakes it when
    /// it changes.
    pub fn is_decided_for(&self, source: &Object, identified: bool) -> bool {
        self.evaluated == Some((source.version, source.content))
            && self.undecided().is_none()
            && (self.identified || !identified)
    }

    /// The leg to a destination.
    pub fn leg(&self, to: DestinationId) -> Option<&Leg> {
        self.legs.binary_search_by_key(&to, |leg| leg.to).ok().and_then(|at| self.legs.get(at))
    }

    /// Changes the leg to a destination, which is made if there is none.
    pub fn change_leg<T>(&mut self, to: DestinationId, change: impl FnOnce(&mut Leg) -> T) -> T {
        let leg = self.leg_mut(to);
        let before = leg.is_bare();
        let result = change(leg);
        let after = leg.is_bare();
        self.bare = self.bare + u32::from(after) - u32::from(before);
        result
    }

    /// Drops the legs to destinations that are not among those to keep.
    pub fn keep_legs(&mut self, keep: &[DestinationId]) -> Vec<Leg> {
        let (mut kept, dropped): (Vec<Leg>, Vec<Leg>) =
            std::mem::take(&mut self.legs).into_iter().partition(|leg| keep.binary_search(&leg.to).is_ok());
        // Those that are still to come find their place, and no more room is taken than they need.
        kept.reserve_exact(keep.len() - kept.len());
        kept.shrink_to(keep.len());
        self.legs = kept;
        self.bare = index(self.legs.iter().filter(|leg| leg.is_bare()).count());
        dropped
    }

    fn leg_mut(&mut self, to: DestinationId) -> &mut Leg {
        let at = match self.legs.binary_search_by_key(&to, |leg| leg.to) {
            Ok(at) => at,
            Err(at) => {
                self.legs.insert(at, Leg::new(to, &[]));
                at
            }
        };
        &mut self.legs[at]
    }
}

impl Leg {
    /// The leg to a destination where these are wanted.
    pub fn new(to: DestinationId, slots: &[SlotId]) -> Self {
        let mut leg = Self { to, first: SlotId::NONE, more: None };
        leg.replace(slots);
        leg
    }

    /// The slots that are wanted there.
    pub fn slots(&self) -> impl Iterator<Item = SlotId> {
        let more = self.more.iter().flat_map(|more| &more.slots);
        self.first().into_iter().chain(more.copied())
    }

    /// Why it cannot be said what is wanted there; the slots are those from before.
    pub fn hold(&self) -> Option<&Hold> {
        self.more.as_ref()?.hold.as_ref()
    }

    /// It cannot be said what is wanted there.
    pub fn hold_back(&mut self, hold: Hold) {
        self.more.get_or_insert_default().hold = Some(hold);
    }

    /// These are wanted there. Gives those that were before.
    pub fn replace(&mut self, slots: &[SlotId]) -> SmallVec<[SlotId; 2]> {
        let before = self.slots().collect();
        self.first = slots.first().copied().unwrap_or(SlotId::NONE);
        let rest = slots.get(1..).filter(|rest| !rest.is_empty());
        self.more = rest.map(|rest| Box::new(More { slots: rest.to_vec(), hold: None }));
        before
    }

    fn first(&self) -> Option<SlotId> {
        Some(self.first).filter(|slot| *slot != SlotId::NONE)
    }

    /// Whether it is held and has no slot yet by which that could be told.
    pub fn is_bare(&self) -> bool {
        self.first().is_none() && self.hold().is_some()
    }
}

/// Puts a fan among those of its route, or takes it out.
fn enlist(lists: &mut BTreeMap<RouteIndex, BTreeSet<FanId>>, route: RouteIndex, id: FanId, listed: bool) {
    if listed {
        lists.entry(route).or_default().insert(id);
    } else if let Some(fans) = lists.get_mut(&route) {
        fans.remove(&id);
        if fans.is_empty() {
            lists.remove(&route);
        }
    }
}

/// A table's index as an id. More than four billion entries do not fit any memory that we run in.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
