//! The engine: what changed goes in, what is to be called comes out.
//!
//! Two stages, in this order. **Evaluate**: for every (route, source) that may have changed, ask the route where
//! it goes and what it is there; the answer is kept as claims on slots. **Plan**: for every slot that may have
//! changed, ask [`plan`](crate::plan::plan) and turn its actions into calls. All that waits for evaluation is
//! evaluated before any slot is planned, so that a withdrawal is never planned from half an evaluation.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid, Version};
use mailboat_object::object::Object;
use mailboat_object::wire::{Abilities, Call};
use mailboat_store::store::Unlisted;
use slab::Slab;
use smallvec::SmallVec;

use crate::bodies::Bodies;
use crate::breaker::{Breaker, ScopeId, Threshold};
use crate::contests::Contests;
use crate::copies::Copies;
use crate::fans::{Fans, RouteIndex};
use crate::mark::{Mark, Marked, Marks, OwnerId};
use crate::plan::{ChangeId, Proof, Verdict, Wait};
use crate::queue::{Queue, Urgency};
use crate::record::Record;
use crate::route::{Destination, DestinationId, Rank, Route, RouteId};
use crate::shared::Shared;
use crate::slots::{SlotId, SlotState, Slots};
use crate::standing::Standings;
use crate::warrant::WholeConfiguration;

mod answers;
mod carry;
mod configure;
mod definitions;
mod emptying;
mod evaluate;
mod evidence;
mod explain;
mod faults;
mod flights;
mod gone;
mod housing;
mod looks;
mod observe;
mod report;
mod settle;
mod sight;
mod tell;

pub use carry::{Ticket, Work};
pub use explain::{Claimed, Explanation};
pub use tell::{Contested, NotCurrent};

/// How the engine behaves; each limit has its reason at its default.
#[derive(Clone, Debug)]
pub struct Options {
    /// Calls under way at once, apart from those that wait for their answers for seconds. A single connection carries 64 as fast as
    /// any number.
    pub in_flight: usize,
    /// The first delay after a failed call, in milliseconds; doubled each time.
    pub back_off_first: u64,
    /// The longest delay after a failed call, in milliseconds.
    pub back_off_most: u64,
    /// How often in a row another hand may rewrite what we own before we slow down.
    pub fights: u8,
    /// When a withdrawal is too large to go unasked.
    pub threshold: Threshold,
    /// Clusters whose objects are no part of what is counted over all of them, as where each stands for many others.
    pub counted_apart: Vec<ClusterId>,
    /// Evaluations in one go before others get their turn.
    pub evaluations: usize,
    /// The finalizer of ours on sources, if a policy asks for one. It is one for all routes, so that it is known again where
    /// nobody asks for it any more.
    pub finalizer: Option<Name>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            in_flight: 64,
            back_off_first: 200,
            back_off_most: 60_000,
            fights: 5,
            threshold: Threshold::default(),
            counted_apart: Vec::new(),
            evaluations: 1_000,
            finalizer: None,
        }
    }
}

/// What the engine wants done.
#[derive(Debug)]
pub enum Next {
    /// Send this, and say how it went by [`Engine::done`].
    Call(Ticket, Call),
    /// Look afresh at this source and what it depends on, and say what was found by [`Engine::looked`].
    Look(Ticket, Key),
    /// There is more to evaluate; let others have their turn first.
    Again,
    /// Nothing before this time, in milliseconds.
    WaitUntil(u64),
    /// Nothing until something changes.
    Idle,
}

/// Something stands otherwise: a slot has another verdict, or others want it; or a source is decided about that was not,
/// or is not any more.
#[derive(Clone, PartialEq, Debug)]
pub struct Notice {
    /// The slot; or the source, where it cannot be said yet what it is to be and so where it would stand.
    pub slot: Key,
    /// How it stands now.
    pub verdict: Verdict,
    /// The last fault, if the verdict has to do with one.
    pub fault: Option<Box<str>>,
}

/// The engine.
pub struct Engine {
    pub(crate) owner: OwnerId,
    pub(crate) manager: Name,
    pub(crate) options: Options,
    pub(crate) marks: Vec<Arc<dyn Marks>>,
    pub(crate) routes: Slab<RouteEntry>,
    pub(crate) route_ids: BTreeMap<RouteId, RouteIndex>,
    pub(crate) by_kind:
        HashMap<(Option<ClusterId>, KindId), BTreeSet<RouteIndex>, foldhash::fast::FixedState>,
    pub(crate) by_object: HashMap<Key, BTreeSet<RouteIndex>, foldhash::fast::FixedState>,
    /// The routes that make copies of other objects of a kind than their sources.
    pub(crate) by_related: BTreeMap<KindId, BTreeSet<RouteIndex>>,
    pub(crate) destinations: HashMap<DestinationId, Destination, foldhash::fast::FixedState>,
    /// The destinations in each cluster.
    pub(crate) destinations_at: HashMap<ClusterId, SmallVec<[DestinationId; 2]>, foldhash::fast::FixedState>,
    pub(crate) clusters: HashMap<ClusterId, Abilities, foldhash::fast::FixedState>,
    /// The clusters that cannot be reached.
    pub(crate) away: BTreeMap<ClusterId, Away>,
    pub(crate) fans: Fans,
    pub(crate) slots: Slots,
    pub(crate) contests: Contests,
    pub(crate) evaluations: Queue<evaluate::Evaluation, RouteIndex>,
    pub(crate) plans: Queue<SlotId, RouteIndex>,
    pub(crate) unsettled: BTreeSet<SlotId>,
    /// What nobody claims and cannot be settled, by the source of which too little is known.
    pub(crate) waiting: BTreeMap<Key, BTreeSet<SlotId>>,
    /// What nobody claims, by the cluster in which something was never listed, and how that stood.
    pub(crate) unlisted: HashMap<ClusterId, (Unlisted, BTreeSet<SlotId>), foldhash::fast::FixedState>,
    /// Slots that wait for their namespace to come or to be gone, by the namespace.
    pub(crate) homeless: BTreeMap<Key, BTreeSet<SlotId>>,
    /// Namespaces that are being made, or were made and are not shown yet.
    pub(crate) housing: BTreeMap<Key, housing::Housing>,
    /// No write may leave: another process is at it. What would be written then is planned again.
    shut: bool,
    held_back: BTreeSet<SlotId>,
    /// Clusters that are gone, to which calls are still under way.
    gone: BTreeSet<ClusterId>,
    /// Slots whose source could not be told something, or looked at, by the cluster that is away.
    pub(crate) untold: BTreeMap<ClusterId, BTreeSet<SlotId>>,
    /// Reports that were answered and are not shown at their source yet: the version they made, and the slot.
    pub(crate) unshown: BTreeMap<Key, (Version, SlotId)>,
    pub(crate) breaker: Breaker,
    pub(crate) configuration: Option<WholeConfiguration>,
    /// The configuration was known as a whole before.
    was_known: bool,
    /// The cluster whose first list is waited for by what nobody claims in others.
    awaited: Option<ClusterId>,
    /// Slots that lost a claim and have another: whose they are is known when all is evaluated.
    pub(crate) handed_on: BTreeSet<SlotId>,
    /// What stays with whoever let go of it, as long as it is in question whether those who claim it want it still.
    pub(crate) lingering: BTreeSet<SlotId>,
    pub(crate) flights: flights::Flights,
    pub(crate) notices: Vec<Notice>,
    pub(crate) standings: Standings,
    pub(crate) shared: Shared,
    pub(crate) copies: Copies,
    pub(crate) bodies: Bodies,
}

/// A route in the engine. It outlives its removal until all that it placed was let go.
pub(crate) struct RouteEntry {
    pub(crate) id: RouteId,
    pub(crate) scope: ScopeId,
    /// Shared by all its claims.
    pub(crate) rank: Arc<Rank>,
    pub(crate) route: Option<Arc<dyn Route>>,
}

/// A cluster that cannot be reached: until when no call is tried, and how often in a row that was so.
#[derive(Clone, Debug)]
pub(crate) struct Away {
    pub(crate) until: u64,
    pub(crate) attempts: u8,
    /// The slot that tries first when the time has come, and whether it does.
    pub(crate) first: SlotId,
    pub(crate) trying: bool,
}

impl Engine {
    /// An engine for one owner, writing under one field manager, that knows its copies by these marks.
    pub fn new(owner: OwnerId, manager: Name, marks: Vec<Arc<dyn Marks>>, options: Options) -> Self {
        let breaker = Breaker::new(options.threshold).apart_from(&options.counted_apart);
        Self {
            owner,
            manager,
            options,
            marks,
            routes: Slab::new(),
            route_ids: BTreeMap::new(),
            by_kind: HashMap::default(),
            by_object: HashMap::default(),
            by_related: BTreeMap::new(),
            destinations: HashMap::default(),
            destinations_at: HashMap::default(),
            clusters: HashMap::default(),
            away: BTreeMap::new(),
            fans: Fans::default(),
            slots: Slots::default(),
            contests: Contests::default(),
            evaluations: Queue::default(),
            plans: Queue::default(),
            unsettled: BTreeSet::new(),
            waiting: BTreeMap::new(),
            unlisted: HashMap::default(),
            homeless: BTreeMap::new(),
            housing: BTreeMap::new(),
            shut: false,
            held_back: BTreeSet::new(),
            gone: BTreeSet::new(),
            untold: BTreeMap::new(),
            unshown: BTreeMap::new(),
            breaker,
            configuration: None,
            was_known: false,
            awaited: None,
            handed_on: BTreeSet::new(),
            lingering: BTreeSet::new(),
            flights: flights::Flights::default(),
            notices: Vec::new(),
            standings: Standings::default(),
            shared: Shared::default(),
            copies: Copies::default(),
            bodies: Bodies::default(),
        }
    }

    /// The source of the best claim on a slot; `None` if nobody wants it.
    pub fn claimant(&self, slot: &Key) -> Option<&Key> {
        let claim = self.slots.get(self.slots.find(slot)?)?.claims.first()?;
        self.fans.get(claim.fan).map(|fan| &*fan.source)
    }

    /// All who want a slot, the best claim first: the route, and the source of it.
    pub fn claims(&self, slot: &Key) -> impl Iterator<Item = (&RouteId, &Key)> {
        let state = self.slots.find(slot).and_then(|id| self.slots.get(id));
        let claims = state.into_iter().flat_map(|state| &state.claims);
        claims.filter_map(|claim| {
            let fan = self.fans.get(claim.fan)?;
            Some((&self.routes.get(fan.route.0 as usize)?.id, &*fan.source))
        })
    }

    /// Somebody confirmed a held change. False if what would be withdrawn is another change by now.
    #[must_use]
    pub fn confirm(&mut self, scope: &ScopeId, change: ChangeId) -> bool {
        let fits = self.breaker.confirm(scope, change);
        if fits {
            let anywhere = *scope == ScopeId::unclaimed_anywhere();
            let of_it = |slot: &SlotState| match &slot.scope {
                None => anywhere || settle::scope_of(slot) == *scope,
                Some(known) => known == scope,
            };
            for slot in self.slots.matching(of_it) {
                let state = self.slots.get_mut(slot).filter(|state| state.claims.is_empty());
                if let Some(passing) = state.and_then(|state| state.passing.said()) {
                    // Somebody has just said that it goes: whatever failed before is tried at once.
                    passing.rest_until = 0;
                    passing.attempts = 0;
                }
                self.plan_later(slot, Urgency::Live);
            }
        }
        fits
    }

    /// Verdicts that changed since this was last asked.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// How a slot stands, if there is one.
    pub fn verdict(&self, key: &Key) -> Option<&Verdict> {
        self.slots.get(self.slots.find(key)?)?.verdict.as_ref()
    }

    /// How many calls were wanted so far; it stands still while there is nothing to do.
    pub fn calls(&self) -> u64 {
        self.flights.begun()
    }

    /// How many slots there are.
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// The mark of ours that an object of ours bears.
    pub(crate) fn our_mark_on(&self, target: &Object) -> Option<Mark> {
        self.mark_on(target).filter(|mark| self.proof(target, mark) == Proof::Ours)
    }

    /// Whether an object with our mark is ours.
    pub(crate) fn proof(&self, target: &Object, mark: &Mark) -> Proof {
        let state = self.slots.find(&target.key).and_then(|slot| self.slots.get(slot));
        let known = |uid: fn(&Record) -> &Option<Uid>| {
            state.is_some_and(|state| uid(&state.record).as_ref() == Some(&target.uid))
        };
        // What was found by asking counts more than what an object shows: within one second, what a delivery made and
        // what it met show the same.
        if known(|record| &record.odd.foreign) {
            Proof::NotOurs
        } else if mark.confirmed || shows_our_making(target) || known(|record| &record.uid) {
            Proof::Ours
        } else {
            Proof::Open
        }
    }

    /// The mark of ours that an object bears, whoever made the object.
    pub(crate) fn mark_on(&self, target: &Object) -> Option<Mark> {
        self.read_mark(target).map(|(mark, _)| mark)
    }

    /// The same, and by which marks it was read.
    pub(crate) fn read_mark(&self, target: &Object) -> Option<(Mark, &Arc<dyn Marks>)> {
        self.marks.iter().find_map(|marks| match marks.read(target) {
            Marked::Ours(mark) if mark.owner == self.owner => Some((mark, marks)),
            _ => None,
        })
    }

    pub(crate) fn routes_of(&self, source: &Key) -> Vec<RouteIndex> {
        let here = self.by_kind.get(&(Some(source.cluster.clone()), source.kind.clone()));
        let anywhere = self.by_kind.get(&(None, source.kind.clone()));
        let alone = self.by_object.get(source);
        here.into_iter().chain(anywhere).chain(alone).flatten().copied().collect()
    }

    /// The routes that may bring a source to a cluster. One that says where it goes brings nothing to other destinations.
    pub(crate) fn routes_between(&self, source: &Key, cluster: &ClusterId) -> Vec<RouteIndex> {
        let mut routes = self.routes_of(source);
        routes.retain(|route| self.leads_to(*route, cluster));
        routes
    }

    /// The routes that may bring a copy of an object to a cluster with another source of theirs.
    pub(crate) fn routes_relating(
        &self,
        origin: &Key,
        cluster: &ClusterId,
    ) -> impl Iterator<Item = RouteIndex> {
        let routes = self.by_related.get(&origin.kind).into_iter().flatten().copied();
        routes.filter(|route| self.leads_to(*route, cluster))
    }

    fn leads_to(&self, route: RouteIndex, cluster: &ClusterId) -> bool {
        let Some(there) = self.destinations_at.get(cluster) else { return true };
        let route = self.routes.get(route.0 as usize).and_then(|entry| entry.route.as_ref());
        let to = route.and_then(|route| route.destinations());
        to.is_none_or(|to| there.iter().any(|id| to.binary_search(id).is_ok()))
    }

    /// The routes that read a kind in a cluster, or anywhere.
    fn routes_reading(&self, cluster: Option<&ClusterId>, kind: &KindId) -> BTreeSet<RouteIndex> {
        let fits = |of: &(Option<ClusterId>, KindId)| of.1 == *kind;
        match cluster {
            Some(cluster) => {
                let here = self.by_kind.get(&(Some(cluster.clone()), kind.clone()));
                let anywhere = self.by_kind.get(&(None, kind.clone()));
                here.into_iter().chain(anywhere).flatten().copied().collect()
            }
            None => self.by_kind.iter().filter(|(of, _)| fits(of)).flat_map(|(_, r)| r).copied().collect(),
        }
    }

    /// Wants a slot planned. One that nobody claims is settled with its whole scope first.
    pub(crate) fn plan_later(&mut self, slot: SlotId, urgency: Urgency) {
        let Some(state) = self.slots.get_mut(slot) else { return };
        if state.claims.is_empty() {
            // Counted with the rest of its scope, also while a call about it is under way.
            self.unsettled.insert(slot);
        }
        if state.under_way {
            state.again = true;
            return;
        }
        let lane = state
            .claims
            .first()
            .and_then(|claim| self.fans.get(claim.fan))
            .map_or(RouteIndex(u32::MAX), |f| f.route);
        self.plans.push(slot, lane, urgency);
    }

    /// Something is known of a slot's kind. Of what nobody claims little can be said before the configuration was known as a
    /// whole for the first time, and then all of it is looked at: a start hears of every kind in every cluster, and would
    /// decide the same about every copy each time. Only what waits for its own place is looked at before.
    pub(crate) fn plan_again(&mut self, slot: SlotId, urgency: Urgency) {
        let undecided = |state: &SlotState| match &state.verdict {
            Some(Verdict::Waiting(Wait::Undecided(hold))) => {
                state.claims.is_empty() && hold.on.as_ref() != Some(&state.key)
            }
            _ => false,
        };
        if self.was_known || !self.slots.get(slot).is_some_and(undecided) {
            self.plan_later(slot, urgency);
        }
    }
}

/// Namespaces and CRDs go first: others wait for them.
pub(crate) fn urgency(key: &Key, live: bool) -> Urgency {
    let first = (key.kind.group().is_empty() && key.kind.resource() == "namespaces")
        || (key.kind.group() == "apiextensions.k8s.io" && key.kind.resource() == "customresourcedefinitions");
    match (live, first) {
        (true, true) => Urgency::LiveFirst,
        (true, false) => Urgency::Live,
        (false, true) => Urgency::ListedFirst,
        (false, false) => Urgency::Listed,
    }
}

/// Whether an object with a mark that is not confirmed shows by itself that we made it.
fn shows_our_making(target: &Object) -> bool {
    made_by_our_write(target)
        // Nobody else ever wrote it.
        || target.hands.other.is_none()
        // Our manager never wrote it: the mark came by another way, as with a restored backup, and not by a delivery
        // that met something.
        || target.hands.ours_at_seconds == 0
}

/// Whether our last write made an object. What it made was created by the same request, a moment later (admission
/// lies between); what it met was created before. Within one second the two cannot be told apart.
///
/// Both times are of the servers of one cluster, which may be several, each with a clock of its own. One that made an object may
/// be ahead of the one that took our apply: what we met then looks as if we had made it, if our write came no later after its
/// making than the clocks differ. This is asked only where memory fails: as long as the process runs, a delivery's own answer
/// (200, not 201) is what counts, and a mark says whether it was confirmed. So the limit is an object of another hand, made
/// within the difference of two servers' clocks before our first delivery to its name, and a process that ended before the
/// answer came. Clocks of one control plane that are kept in time differ by less than the second that is allowed for anyway.
pub(crate) fn made_by_our_write(target: &Object) -> bool {
    target.created_seconds().is_some_and(|created| target.hands.ours_at_seconds <= created + 1)
}

/// The keys of a kind in a table, in one cluster or in any. Whole kinds become known mailbox by mailbox: of one cluster,
/// nothing else is passed over.
fn of_kind<T>(table: &BTreeMap<Key, T>, cluster: Option<&ClusterId>, kind: &KindId) -> Vec<Key> {
    let Some(cluster) = cluster else {
        return table.keys().filter(|key| key.kind == *kind).cloned().collect();
    };
    let first =
        Key { cluster: cluster.clone(), kind: kind.clone(), namespace: Name::EMPTY, name: Name::EMPTY };
    let here = |key: &&Key| key.cluster == *cluster && key.kind == *kind;
    table.range(first..).map(|(key, _)| key).take_while(here).cloned().collect()
}
