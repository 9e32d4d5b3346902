//! The center as a role: inventories and placements become mailboxes, slices and copies.

mod asking;
mod belief;
mod endings;
mod events;
mod guard;
mod installing;
mod mailboxes;
mod natured;
mod newcomers;
mod passing;
mod placing;
mod preparing;
mod reading;
mod ready;
mod statuses;
mod summing;
mod taking;
mod telling;
mod unanswered;
mod unsighted;
mod views;
mod withheld;
mod workspaces;

pub use installing::Installs;
pub(crate) use mailboxes::may_be_carried;
pub(crate) use summing::reason_of;
pub(crate) use workspaces::decides;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_api::edge::UpsyncSet;
use mailboat_api::names::{export, group};
use mailboat_engine::breaker::ScopeId;
use mailboat_engine::engine::{Engine, Notice};
use mailboat_engine::mark::{Marks, OwnerId, StandardMarks};
use mailboat_engine::mutation::{Mutation, broken};
use mailboat_engine::role::{CallId, CallIds, Ground, Order, Role, Turn};
use mailboat_engine::route::{Destination, DestinationId, Sources};
use mailboat_object::catalog::Catalog;
use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid};
use mailboat_object::object::{Keep, Object};
use mailboat_object::wire::{Fault, Reply};
use mailboat_store::interest::{Filter, Interest, PlaceId};
use mailboat_store::seen::{News, Seen};
use mailboat_store::store::Store;
use mailboat_store::time::{Moment, Now};

use self::asking::Asking;
use self::belief::Belief;
use self::endings::Endings;
use self::guard::Guard;
use self::installing::Installing;
use self::mailboxes::{HERE, Mailboxes};
use self::newcomers::Newcomers;
use self::passing::Passing;
use self::preparing::Preparing;
use self::reading::Reading;
use self::statuses::Statuses;
use self::summing::Summing;
use self::taking::{Kind, is_configuration};
use self::unanswered::Unanswered;
use self::unsighted::Unsighted;
use self::views::Views;
use self::withheld::Withheld;
use self::workspaces::Workspaces;
use crate::mailbox;
use crate::schedule::Schedule;
use crate::translate::{Singletons, api_exports, api_resource_schemas, route_name};
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
    /// How it installs syncers in edges whose kubeconfig it is given; `None`: it does not.
    pub installs: Option<Arc<Installs>>,
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
    reading: Reading,
    placements: BTreeMap<Key, Placement>,
    newcomers: Newcomers,
    unanswered: Unanswered,
    /// Which placements go to a SyncTarget.
    going_to: BTreeMap<Uid, BTreeSet<Key>>,
    /// Placements whose routes are to be made anew.
    stale: BTreeSet<Key>,
    workspaces: Workspaces,
    /// What the placements of each workspace ask to have returned, as their routes were told.
    counted: BTreeMap<ClusterId, Arc<Singletons>>,
    /// Each workspace as a destination, for what is written into the sources themselves.
    homes: BTreeMap<ClusterId, DestinationId>,
    mailboxes: Mailboxes,
    preparing: Preparing,
    passing: Passing,
    guard: Guard,
    asking: Asking,
    /// Mailboxes that stand, and of whose SyncTargets it is not known which placements go there.
    orphans: BTreeSet<Uid>,
    endings: Endings,
    installing: Installing,
    /// What the breaker holds, by the placement or SyncTarget on which it can be confirmed.
    withheld: BTreeMap<Key, Withheld>,
    /// Placements of which something was held, that say so until it has gone.
    released: BTreeSet<Key>,
    /// What is said of mailboxes in which copies cannot be seen.
    unsighted: Unsighted,
    statuses: Statuses,
    summing: Summing,
    /// Slots of mailboxes that stand otherwise than before.
    noticed: BTreeSet<Key>,
    /// Workspaces in which something was seen or made anew, whose placements may have to say something else.
    fresh: BTreeSet<ClusterId>,
    retold: Moment,
    /// What was learned and asks for orders that are given later.
    waiting: Vec<Order>,
    interests: Vec<Interest>,
    /// From which revision of the workspaces these were gathered, and how many of them are of something else: the first.
    gathered: (u64, usize),
    /// Counts what was learned of the configuration, and what the engine was told of it.
    revision: u64,
    known: Option<u64>,
    calls: CallIds,
    said: Option<String>,
}

/// A placement that is believed.
struct Placement {
    object: Arc<Object>,
    /// Its specification.
    asks: Digest,
    what: Arc<What>,
    upsync: Vec<UpsyncSet>,
    /// Whether every mailbox that it goes to was told that.
    upsync_told: bool,
    wants_status: bool,
    /// The SyncTargets that it goes to.
    to: BTreeSet<Uid>,
    /// It is on its way out: what it placed stays as it is.
    keeps: bool,
}

impl CenterRole {
    /// A center that knows nothing yet.
    pub fn new(identity: Identity) -> Self {
        let marks: Arc<dyn Marks> = Arc::new(StandardMarks::new(identity.owner.clone()));
        Self {
            mailboxes: Mailboxes::new(identity.provider.clone(), &identity.provider_path, Arc::clone(&marks)),
            preparing: Preparing::new(identity.provider.clone(), identity.manager.clone()),
            passing: Passing::new(&identity.manager),
            endings: Endings::new(identity.manager.clone()),
            installing: Installing::new(identity.installs.clone(), Arc::clone(&identity.provider_path)),
            withheld: BTreeMap::new(),
            released: BTreeSet::new(),
            unsighted: Unsighted::default(),
            statuses: Statuses::new(identity.manager.clone(), identity.silence),
            summing: Summing::new(identity.manager.clone()),
            identity,
            marks,
            introduced: false,
            views: Views::default(),
            belief: Belief::default(),
            schedule: Schedule::new(),
            started: false,
            reading: Reading::default(),
            placements: BTreeMap::new(),
            newcomers: Newcomers::default(),
            unanswered: Unanswered::default(),
            going_to: BTreeMap::new(),
            stale: BTreeSet::new(),
            workspaces: Workspaces::default(),
            counted: BTreeMap::new(),
            homes: BTreeMap::new(),
            guard: Guard::default(),
            asking: Asking::default(),
            orphans: BTreeSet::new(),
            noticed: BTreeSet::new(),
            fresh: BTreeSet::new(),
            retold: Moment::default(),
            waiting: Vec::new(),
            interests: Vec::new(),
            gathered: (0, 0),
            revision: 0,
            known: None,
            calls: CallIds::default(),
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
        let route = mailbox::Mailboxes::new(sources.to_vec(), provider, HERE, Arc::clone(&self.marks));
        let id = mailboat_engine::route::Route::head(&route).id.clone();
        orders.push(Order::Configure(id, Some(Arc::new(route))));
        let route = mailbox::Reporters::new(sources.into(), HERE, Arc::clone(&self.marks));
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
            here(preparing::workspace_types(), Keep::Whole),
        ];
        interests.extend(self.views.interests());
        interests.extend(self.preparing.interests());
        let read_there: BTreeSet<&ClusterId> =
            self.endings.given_up().into_iter().chain(self.guard.read_there()).collect();
        interests.extend(read_there.into_iter().map(workspaces::of_placements));
        // All kinds of all workspaces are many: they are gathered when something about them changed.
        let gathered = (self.workspaces.revision(), interests.len());
        if gathered == self.gathered && self.interests.starts_with(&interests) {
            return;
        }
        self.gathered = gathered;
        interests.extend(self.workspaces.interests());
        if interests != self.interests {
            self.interests.clone_from(&interests);
            orders.push(Order::Follow(interests));
        }
    }

    /// What is left of placements that are gone may be others', and is held as such. Workspaces whose placements are all
    /// gone, and all that these placed before them, may go out of sight.
    fn forget_seen_out(&mut self, store: &Store, engine: &Engine, orders: &mut Vec<Order>) {
        for placement in self.endings.take_seen_out() {
            orders.push(Order::Disown(ScopeId(route_name(&placement))));
            let cluster = &placement.cluster;
            if !self.endings.are_in(cluster) && self.workspaces.placements(cluster).next().is_none() {
                let copies = engine.slots().filter_map(|slot| store.get(slot).present());
                self.guard.forget(cluster, copies, &*self.marks);
            }
        }
    }

    /// Begins to decide, once all that was there at the beginning is known.
    fn start(&mut self, now: Now, store: &Store) {
        if self.started {
            return;
        }
        // A mailbox that is seen later is a new one, whose syncer was told nothing yet.
        let here = |kind: &KindId| self.views.is_listed(&self.provider_place(), kind);
        let known = here(&mailbox::workspaces()) && here(&api_exports());
        let listed = (known && self.views.are_listed()) || broken(Mutation::StartTooEarly);
        if listed {
            tracing::info!(placements = self.placements.len(), "the center knows its placements and edges");
            self.started = true;
            self.schedule.start(now.wall_seconds);
            self.find_orphans(store);
            let clusters: Vec<ClusterId> = self.mailboxes.clusters().cloned().collect();
            for object in clusters.iter().flat_map(|cluster| store.standing_in(cluster)) {
                // Of a kind that is in doubt there, nothing is known.
                if store.get(&object.key).present().is_some() {
                    self.sees(now, object);
                }
            }
        }
    }

    /// Looks at what stands in mailboxes that were found after the start. What is seen there from now on is told.
    fn look_into_found(&mut self, now: Now, store: &Store) {
        for cluster in self.mailboxes.take_found() {
            if self.started {
                self.note_orphan(&cluster, store);
                if let Some(uid) = self.mailboxes.of(&cluster).cloned() {
                    self.begins_anew(&uid);
                }
                for object in store.standing_in(&cluster) {
                    self.noticed.insert(object.key.clone());
                    self.sees(now, object);
                }
            }
        }
    }

    /// Tells syncers what to carry once that is known, and then the engine that the configuration is known as a whole. In
    /// this order: a `the-one` that no route claims yet must not look like one that nobody wants.
    fn tell_known(&mut self, store: &Store, engine: &Engine, orders: &mut Vec<Order>) {
        let ready = self.started && self.workspaces.are_known() && self.stale.is_empty();
        let known = (ready && self.mailboxes.are_told()).then_some(self.revision);
        if known != self.known {
            self.known = known;
            orders.push(Order::ConfigurationKnown(known));
        }
        // Routes that were just made are evaluated before anything is said of them.
        if ready && orders.is_empty() && !engine.is_busy() && self.noticed.is_empty() {
            self.mailboxes.tell(store);
            self.mailboxes.release_unseen(store);
            self.mailboxes.bury(orders);
        }
    }

    /// Installs syncers where that is asked for, and says when to ask again.
    fn install(&mut self, now: Moment, orders: &mut Vec<Order>) -> Option<Moment> {
        if !self.started {
            return None;
        }
        let Self { installing, mailboxes, calls, statuses, .. } = self;
        let wake = installing.next(now, mailboxes, || calls.fresh(), orders);
        for uid in installing.take_changed() {
            statuses.touch_target(&uid);
        }
        wake
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
        if let News::Scope { cluster, kind, .. } = news {
            self.mailboxes.may_take_copies(cluster.as_ref(), kind);
        }
        if let News::Scope { cluster: Some(cluster), kind, known, .. } = news
            && Kind::of(kind) == Some(Kind::Placement)
        {
            let shown = !matches!(known, Err(doubt) if doubt.is_total());
            self.endings.in_sight(self.placements.keys(), cluster, shown);
        }
        if let News::Scope { kind, .. } = news {
            self.newcomers.learns(kind);
        }
        let News::Object(change) = news else { return };
        self.newcomers.learns(&change.key.kind);
        if change.key.kind == preparing::logical_clusters() {
            self.preparing.touch();
            return;
        }
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
            // All that it placed went before it: however it went, there is nothing left to wonder about.
            Seen::Absent(_) if self.endings.is_withdrawn(&change.key) => self.loses(&change.key),
            Seen::Absent(_) if Kind::of(&change.key.kind).is_some() => {
                if Kind::of(&change.key.kind) == Some(Kind::Target) {
                    self.schedule.misses(&change.key);
                }
                self.belief.misses(&change.key, change.before.clone());
            }
            Seen::Absent(_)
                if change.key.kind == preparing::workspace_types()
                    && change.key.cluster == self.identity.provider =>
            {
                self.preparing.sees_type(&change.key.name, None, &mut self.waiting);
            }
            Seen::Absent(_) if is_configuration(&change.key) => {
                self.mailboxes.sees_config(&change.key, None);
            }
            Seen::Absent(_)
                if change.key.kind == mailbox::workspaces()
                    && change.key.cluster == self.identity.provider =>
            {
                if let Some(uid) = self.mailboxes.workspace_gone(&change.key) {
                    self.statuses.touch_target(&uid);
                }
            }
            Seen::Absent(_) | Seen::Unknown(_) => {}
        }
    }

    fn served(&mut self, place: &PlaceId, catalog: &Arc<Catalog>) {
        self.views.served(place, catalog);
        self.mailboxes.serve_without_status(self.views.without_status());
        self.mailboxes.kinds_changed();
        if let Some(cluster) = self.workspaces.served(place, catalog) {
            self.touch_workspace(&cluster);
        }
    }

    fn refused(&mut self, place: &PlaceId) {
        self.workspaces.refused(place);
        self.preparing.refused(place);
    }

    fn noticed(&mut self, notice: &Notice) {
        // Before the start it is not known which clusters are mailboxes.
        if !self.started || self.mailboxes.of(&notice.slot.cluster).is_some() {
            tracing::debug!(slot = %notice.slot, verdict = ?notice.verdict, "stands otherwise");
            self.noticed.insert(notice.slot.clone());
        }
        self.summing.touch(&notice.slot);
    }

    fn answered(&mut self, now: Now, id: CallId, reply: Result<Reply, Fault>) {
        let Self { installing, preparing, calls, waiting, .. } = self;
        if !self.asking.answered(now.mono, id)
            && !preparing.answered(now.mono, id, &reply, || calls.fresh(), waiting)
            && !self.passing.answered(id)
            && !self.statuses.answered(now.mono, id, &reply)
            && !self.endings.answered(now.mono, id, &reply)
            && !installing.answered(now, id, &reply, || calls.fresh(), waiting)
        {
            self.summing.answered(now.mono, id, &reply);
        }
    }

    fn looked(&mut self, now: Now, id: CallId, found: Result<Ground, Fault>) {
        if !self.endings.looked(now.mono, id, &found) {
            self.belief.looked(now.mono, id, &found);
        }
    }

    fn next(&mut self, now: Now, store: &Store, engine: &Engine) -> Turn {
        let mut orders = std::mem::take(&mut self.waiting);
        self.introduce(&mut orders);
        self.views.open(&self.identity.provider, store, &mut orders);
        let prepare_at = self.preparing.next(now.mono, store, || self.calls.fresh(), &mut orders);
        for key in self.belief.take_gone(store) {
            self.loses(&key);
        }
        for placement in self.endings.take_found() {
            self.sees(now, &placement);
        }
        self.withdraw(engine);
        self.take_up(store);
        orders.append(&mut self.waiting);
        self.start(now, store);
        let answer_at = if self.started { self.workspaces.wait(now.mono) } else { None };
        self.look_into_found(now, store);
        self.decide_remembered(store);
        self.forget_vacated(store, &mut orders);
        self.reschedule(now, store, &mut orders);
        self.follow(&mut orders);
        self.forget_seen_out(store, engine, &mut orders);
        let given_up = self.endings.given_up().into_iter().cloned().collect();
        self.hear_answers(store, engine);
        let Self { guard, workspaces, newcomers, unanswered, .. } = self;
        let known = (&given_up, &*newcomers, &*unanswered);
        let unseen_at = guard.hold(now.mono, store, workspaces, known, &mut orders);
        // Before what changed is configured: of that, nothing is evaluated yet that could be told.
        let retell_at = self.retell(now.mono, engine);
        self.configure(&mut orders);
        if self.started {
            for slot in std::mem::take(&mut self.noticed) {
                self.mailboxes.stands(&slot, store, engine, &mut self.passing);
                self.touch_placements_of(&slot, engine);
                self.touch_released(&slot, store, engine);
            }
        }
        self.tell_known(store, engine, &mut orders);
        self.forget_brought();
        let unsighted_at = self.carry_on_unseen(now.mono, store, engine);
        self.note_read(store, engine, &orders);
        // Before the views were read as a whole, it is not known what stands in mailboxes: all of it would be asked for one by one.
        if self.started {
            let catalogs: Vec<&Arc<Catalog>> =
                self.views.catalogs().chain(self.workspaces.catalogs()).collect();
            self.mailboxes.configure(&catalogs, &mut orders);
        }
        let look_at = self.belief.next(now.mono, || self.calls.fresh(), &mut orders);
        let ending_at = self.end(now.mono, store, engine, &mut orders);
        self.confirm_withheld(store, engine, &mut orders);
        let ask_at = self.ask(now.mono, store, engine, &mut orders);
        let passing_at = self.passing.next(now.mono, || self.calls.fresh(), &mut orders);
        let install_at = self.install(now.mono, &mut orders);
        let status_at = self.write_statuses(now, store, engine, &mut orders);
        let summary_at = self.sum_up(now, store, engine, &mut orders);
        self.say();
        let eviction = self.schedule.next_eviction().map(|at| {
            let seconds = at.saturating_sub(now.wall_seconds).max(1);
            Moment(now.mono.0 + seconds.saturating_mul(1_000))
        });
        Turn {
            orders,
            wake: [
                prepare_at,
                look_at,
                answer_at,
                unseen_at,
                unsighted_at,
                ending_at,
                ask_at,
                passing_at,
                retell_at,
                install_at,
                status_at,
                summary_at,
                eviction,
            ]
            .into_iter()
            .flatten()
            .min(),
        }
    }
}
