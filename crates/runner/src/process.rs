//! One role, its engine and its followers, run together: the body of every program that carries objects.
//!
//! ```text
//!   news ──> engine, role        what the engine wants ──> calls and looks ──> answers ──> engine
//!                    └── role.next ──> orders ──> what is followed, routes, calls of its own ──> role
//! ```

mod show;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use mailboat_cluster::{Catalog, Transport};
use mailboat_engine::engine::Engine;
use mailboat_engine::plan::{Verdict, Wait};
use mailboat_engine::role::{CallId, Ground, Order, Role, Turn, Where};
use mailboat_engine::standing::Counts;
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Limits;
use mailboat_object::wire::{Call, Fault, FaultKind, Reply};
use mailboat_store::{
    EndpointId, FeedId, Filter, Interest, Keep, Nature, News, PlaceId, Settings, Store, merge,
};
use tokio::time::Instant;

use crate::carry::{Carrier, Theirs, in_so_long, sleep_until, unreached};
use crate::definition::defines_kinds;
use crate::follow::{Calendar, Followers, Follows};
use crate::lease::Lease;
use crate::listen::Instruments;
use crate::look::ground;
use crate::standing::Standings;
use crate::voice::Voice;
use crate::ways::Ways;

/// How long answers to what is under way are waited for after the stop.
const FINISHING: Duration = Duration::from_secs(10);
/// What a place serves is asked for this often although no object said that it changed: whoever serves it may take
/// longer than anybody asks after a change.
const SERVED_ASKED_EVERY: Duration = Duration::from_mins(5);
/// The first and the longest pause before a place that did not say what it serves is asked again.
const SERVED_AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));

/// A role and all that it needs to run.
pub struct Process<R> {
    role: R,
    followers: Followers,
    carrier: Carrier,
    manager: Name,
    ways: Option<Arc<dyn Ways>>,
    places: BTreeMap<PlaceId, Place>,
    interests: Vec<Interest>,
    followed: BTreeMap<FeedId, Interest>,
    asked: FuturesUnordered<BoxFuture<'static, Answer>>,
    news: Vec<News>,
    standings: Standings,
    /// Calls of the role's own that are under way.
    calls: usize,
    lease: Option<Lease>,
    instruments: Option<Arc<Instruments>>,
    /// When what is costly to count is counted again, and what it came to.
    count_at: Option<Instant>,
    counted: Counts,
    voice: Voice,
}

/// A place that is read.
struct Place {
    nature: Nature,
    endpoints: BTreeMap<EndpointId, Arc<dyn Transport>>,
    /// Bindings vouch for what it shows.
    vouched: bool,
    /// What the role was last told about what is served here.
    told: Option<Arc<Catalog>>,
    /// Ends the question what is served.
    asking: Option<AbortHandle>,
}

/// What came of something that the role, or the process for it, asked for.
enum Answer {
    Called(CallId, Result<Reply, Fault>),
    Looked(CallId, Result<Ground, Fault>),
    Outside(CallId, ClusterId, Result<Arc<dyn Transport>, Fault>),
    Serves(PlaceId, Arc<Catalog>),
    /// It does not let us know, after a pause of so long.
    Refuses(PlaceId, Duration),
    /// Nobody wants to know any more.
    Dropped,
}

impl<R: Role> Process<R> {
    /// A process for this role and engine. `manager` is the field manager under which the engine writes; the seed
    /// spreads waits.
    pub fn new(role: R, engine: Engine, manager: Name, settings: Settings, seed: u64) -> Self {
        Self {
            role,
            followers: Followers::new(Store::new(), settings, seed),
            carrier: Carrier::new(engine),
            manager,
            ways: None,
            places: BTreeMap::new(),
            interests: Vec::new(),
            followed: BTreeMap::new(),
            asked: FuturesUnordered::new(),
            news: Vec::new(),
            standings: Standings::default(),
            calls: 0,
            lease: None,
            instruments: None,
            count_at: None,
            counted: Counts::default(),
            voice: Voice::default(),
        }
    }

    /// Only while this lease is held does a write leave. Until then all is read and planned, so that a takeover costs no
    /// time. It is given up when the process has stopped, and a process that has stopped writes no more.
    pub fn lease(&mut self, lease: Lease) {
        self.carrier.gate(lease.gate());
        self.lease = Some(lease);
    }

    /// What another process of the same role writes: it is read and planned here as well, and never sent.
    pub fn leave_to_others(&mut self, theirs: Theirs) {
        self.carrier.leave_to_others(theirs);
    }

    /// What the process says of itself and counts goes here.
    pub fn instruments(&mut self, instruments: Arc<Instruments>) {
        self.carrier.instruments(Arc::clone(&instruments));
        self.instruments = Some(instruments);
    }

    /// The calendar is another than this machine's: a simulated one.
    pub fn calendar(&mut self, calendar: Calendar) {
        self.followers.calendar(calendar);
    }

    /// How the workspaces and views are reached that the role will name.
    pub fn ways(&mut self, ways: Arc<dyn Ways>) {
        self.ways = Some(ways);
    }

    /// A cluster or workspace that is read and written as a whole.
    pub fn place(&mut self, place: &PlaceId, cluster: &ClusterId, transport: Arc<dyn Transport>) {
        self.carrier.reach(cluster, Arc::clone(&transport));
        self.open(place, Nature::Whole(cluster.clone()), true, BTreeMap::from([(endpoint(), transport)]));
    }

    /// The role, to ask it.
    pub fn role(&self) -> &R {
        &self.role
    }

    /// The engine, to ask it.
    pub fn engine(&self) -> &Engine {
        self.carrier.engine()
    }

    /// What is known.
    pub fn store(&self) -> &Store {
        self.followers.store()
    }

    /// Runs until `stop` is done. Then nothing new is begun, and what is under way is finished.
    pub async fn run<T>(&mut self, stop: impl Future<Output = T>) -> T {
        let mut stop = pin!(stop);
        loop {
            let alarm = self.turn().await;
            let alarm = self.show(alarm);
            tokio::select! {
                // In this order: to stop is never starved, and answers free places before news fill the queues.
                biased;
                result = &mut stop => {
                    self.instruments.iter().for_each(|instruments| instruments.health.stopping());
                    self.finish().await;
                    return result;
                }
                answer = self.carrier.answer() => self.carrier.tell_all(answer, &self.followers),
                Some(answer) = self.asked.next(), if !self.asked.is_empty() => self.answered(answer),
                () = self.followers.step(&mut self.news) => {}
                () = sleep_until(alarm), if alarm.is_some() => {}
            }
        }
    }

    /// Tells what is new, sends what is wanted, and asks the role, until nobody wants anything more; and says when
    /// one of them wants to be asked again.
    async fn turn(&mut self) -> Option<Instant> {
        loop {
            self.tell_news();
            let engines = self.carrier.send_what_is_wanted(&mut self.followers).await;
            for notice in self.carrier.engine_mut().notices() {
                if notice.verdict == Verdict::Waiting(Wait::Contention)
                    && let Some(instruments) = &self.instruments
                {
                    instruments.metrics.contended();
                }
                self.voice.tell(self.followers.now().mono, &notice);
                self.role.noticed(&notice);
            }
            let now = self.followers.now();
            let Turn { orders, wake } = self.role.next(now, self.followers.store(), self.carrier.engine());
            if orders.is_empty() && self.news.is_empty() {
                let roles = wake.map(|moment| in_so_long(now.mono, moment));
                return [engines, roles].into_iter().flatten().min();
            }
            for order in orders {
                self.carry_out(order);
            }
        }
    }

    fn tell_news(&mut self) {
        let Self { role, followers, carrier, places, news, standings, instruments, .. } = self;
        for piece in &*news {
            if let News::Object(change) = piece
                && defines_kinds(&change.key.kind)
            {
                carrier.is_redefined(&change.key.cluster);
            }
        }
        carrier.learn_with(news, followers, |followers, piece| {
            standings.heed(piece);
            role.observe(followers.now(), followers.store(), piece);
        });
        for (id, place) in places {
            let Some(catalog) = followers.catalog(id) else { continue };
            if place.told.as_ref().is_none_or(|told| !Arc::ptr_eq(told, catalog)) {
                let same = place.told.as_ref().is_some_and(|told| told == catalog);
                place.told = Some(Arc::clone(catalog));
                if !same {
                    if let Some(instruments) = instruments {
                        instruments.metrics.place_serves(id, catalog);
                    }
                    role.served(id, catalog);
                }
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Open(place, at) => self.open_at(&place, at),
            Order::Close(place) => self.close(&place),
            Order::Reach(cluster) => {
                // What is known of a way, such as what is served at its end, is kept however often it is asked for.
                if let Some(ways) = &self.ways
                    && self.carrier.transport(&cluster).is_none()
                {
                    self.carrier.reach(&cluster, ways.workspace(&cluster));
                }
            }
            Order::ReachWaiting { cluster, view, workspace } => {
                match self.ways.as_ref().map(|ways| ways.waiting(&view, &workspace)) {
                    Some(Ok(transport)) => self.carrier.reach(&cluster, transport),
                    Some(Err(fault)) => tracing::error!(%workspace, %fault, "its view cannot be used"),
                    None => {}
                }
            }
            Order::Leave(place, cluster) => {
                self.followers.store_mut().forget(&place, &cluster, &mut self.news);
            }
            Order::ReachBy(id, cluster, kubeconfig) => {
                let Some(ways) = &self.ways else { return };
                let opening = ways.outside(&kubeconfig);
                self.asked.push(opening.map(move |way| Answer::Outside(id, cluster, way)).boxed());
            }
            Order::Follow(interests) => {
                self.interests = interests;
                self.follow();
            }
            Order::Destination(destination) => self.carrier.engine_mut().destination(destination),
            Order::Configure(id, route) => {
                self.carrier.engine_mut().configure(self.followers.store(), &id, route);
            }
            Order::ConfigurationKnown(version) => self.carrier.engine_mut().configuration_known(version),
            Order::Confirm(scope, change) => {
                if self.carrier.engine_mut().confirm(&scope, change) {
                    tracing::info!(scope = %scope.0, %change, "withdrawal confirmed");
                }
            }
            Order::Disown(scope) => self.carrier.engine_mut().disown(&scope),
            Order::Forget(clusters) => {
                self.carrier.forget(&clusters);
                for cluster in &clusters {
                    self.followers.store_mut().forget_cluster(cluster, &mut self.news);
                }
            }
            Order::Look(id, cluster, kind) => self.look(id, cluster, kind),
            Order::Call(id, call) => self.call(id, call),
        }
    }

    fn look(&mut self, id: CallId, cluster: ClusterId, kind: KindId) {
        let looking = match self.carrier.transport(&cluster) {
            Some(transport) => ground(Arc::clone(transport), cluster, kind).boxed(),
            None => futures::future::ready(Err(unreached(&cluster))).boxed(),
        };
        self.asked.push(looking.map(move |found| Answer::Looked(id, found)).boxed());
    }

    fn call(&mut self, id: CallId, call: Call) {
        let (kind, part) = (call.key.kind.clone(), call.part);
        let instruments = self.instruments.clone().filter(|_| !self.carrier.is_theirs(&call));
        let calling = self.carrier.call(call);
        self.calls += 1;
        let called = calling.map(move |reply| {
            if let Some(instruments) = instruments {
                instruments.metrics.called(&kind, part, reply.as_ref().err());
            }
            Answer::Called(id, reply)
        });
        self.asked.push(called.boxed());
    }

    fn open_at(&mut self, place: &PlaceId, at: Where) {
        let Some(ways) = &self.ways else { return };
        let vouched = !matches!(at, Where::Waiting(_));
        let (nature, endpoints) = match at {
            Where::Workspace(cluster) => {
                let transport = ways.workspace(&cluster);
                (Nature::Whole(cluster), BTreeMap::from([(endpoint(), transport)]))
            }
            Where::View(urls) => (Nature::View, endpoints(&**ways, place, urls)),
            Where::Waiting(url) => (Nature::View, endpoints(&**ways, place, [url])),
        };
        self.open(place, nature, vouched, endpoints);
        // If it has shards, a backup may be restored to one of them alone; doubting the others, too, costs no more than a
        // list of each.
        self.followers.store_mut().served_by(place, &Name::new(CENTER));
    }

    fn open(
        &mut self,
        id: &PlaceId,
        nature: Nature,
        vouched: bool,
        endpoints: BTreeMap<EndpointId, Arc<dyn Transport>>,
    ) {
        let names = endpoints.keys().cloned();
        self.followers.store_mut().open(id, nature.clone(), names, &mut self.news);
        let (told, asking) = self.places.remove(id).map_or((None, None), |place| (place.told, place.asking));
        self.places.insert(id.clone(), Place { nature, endpoints, vouched, told, asking });
        self.ask_what_is_served(id, Duration::ZERO);
        self.follow();
    }

    /// Asks a place what it serves, after a pause, in place of any such question before. One endpoint speaks for all.
    fn ask_what_is_served(&mut self, id: &PlaceId, after: Duration) {
        let Some(place) = self.places.get_mut(id) else { return };
        place.asking.take().iter().for_each(AbortHandle::abort);
        let Some(transport) = place.endpoints.values().next() else { return };
        let (handle, registration) = AbortHandle::new_pair();
        place.asking = Some(handle);
        let asking = what_is_served(id.clone(), Arc::clone(transport), after);
        let asking = Abortable::new(asking, registration).map(|answer| answer.unwrap_or(Answer::Dropped));
        self.asked.push(asking.boxed());
    }

    fn close(&mut self, place: &PlaceId) {
        let closed = self.places.remove(place);
        closed.and_then(|place| place.asking).iter().for_each(AbortHandle::abort);
        self.instruments.iter().for_each(|instruments| instruments.metrics.place_closed(place));
        self.follow();
        self.followers.close(place);
        self.followers.store_mut().close(place, &mut self.news);
    }

    /// Begins and ends feeds, so that exactly what is wanted is followed, at every endpoint of its place.
    fn follow(&mut self) {
        let wanted = self.wanted_feeds();
        self.standings.follow(wanted.keys().map(|id| (id.place.clone(), id.kind.clone())));
        let ended: Vec<FeedId> =
            self.followed.keys().filter(|id| !wanted.contains_key(*id)).cloned().collect();
        for id in ended {
            self.followed.remove(&id);
            self.followers.unfollow(&id);
            let still = |other: &FeedId| other.place == id.place && other.kind == id.kind;
            if !wanted.keys().any(still) && self.places.contains_key(&id.place) {
                self.followers.store_mut().unfollow(&id.place, &id.kind, &mut self.news);
            }
        }
        for (id, interest) in wanted {
            if self.followed.get(&id) == Some(&interest) {
                continue;
            }
            let place = self.places.get(&id.place);
            let Some(transport) = place.and_then(|place| place.endpoints.get(&id.endpoint)) else { continue };
            let follows = Follows {
                id: id.clone(),
                filter: interest.filter.clone(),
                keep: interest.keep,
                manager: self.manager.clone(),
                limits: Limits::default(),
            };
            match self.followers.follow(follows, Arc::clone(transport), &mut self.news) {
                Ok(()) => drop(self.followed.insert(id, interest)),
                Err(unopened) => tracing::error!(%unopened, "cannot be followed"),
            }
        }
    }

    fn wanted_feeds(&self) -> BTreeMap<FeedId, Interest> {
        // What a view shows is believed only as far as its bindings vouch for it.
        let views = self.places.iter().filter(|(_, place)| place.nature == Nature::View && place.vouched);
        let bindings: Vec<Interest> = views.map(|(id, _)| bindings_of(id)).collect();
        let mut wanted = BTreeMap::new();
        for interest in merge(self.interests.iter().chain(&bindings)) {
            let Some(place) = self.places.get(&interest.place) else { continue };
            for endpoint in place.endpoints.keys() {
                let (place, kind) = (interest.place.clone(), interest.kind.clone());
                wanted.insert(FeedId { place, endpoint: endpoint.clone(), kind }, interest.clone());
            }
        }
        wanted
    }

    fn answered(&mut self, answer: Answer) {
        let now = self.followers.now();
        match answer {
            Answer::Called(id, reply) => {
                self.calls -= 1;
                self.role.answered(now, id, reply);
            }
            Answer::Looked(id, found) => self.role.looked(now, id, found),
            Answer::Outside(id, cluster, way) => {
                let reached = way.map(|way| {
                    self.carrier.reach(&cluster, way);
                    Reply { body: Box::default(), created: false, warnings: Vec::new() }
                });
                self.role.answered(now, id, reached);
            }
            Answer::Serves(place, catalog) => {
                self.followers.serves(&place, &catalog, &mut self.news);
                self.ask_what_is_served(&place, SERVED_ASKED_EVERY);
            }
            Answer::Refuses(place, after) => {
                self.role.refused(&place);
                let (first, longest) = SERVED_AGAIN;
                self.ask_what_is_served(&place, (after * 2).clamp(first, longest));
            }
            Answer::Dropped => {}
        }
    }

    /// Waits for what is under way, for a while, begins nothing new, and gives the lease up.
    async fn finish(&mut self) {
        self.lease.iter().for_each(Lease::stand_back);
        let end = Instant::now() + FINISHING;
        while self.carrier.is_under_way() || self.calls > 0 {
            tokio::select! {
                // In one order, so that a simulation ends alike each time.
                biased;
                answer = self.carrier.answer() => self.carrier.tell_all(answer, &self.followers),
                Some(answer) = self.asked.next() => self.answered(answer),
                () = tokio::time::sleep_until(end) => {
                    tracing::warn!("stopped before all that was under way was answered");
                    break;
                }
            }
        }
        if let Some(lease) = self.lease.take() {
            lease.release().await;
        }
    }
}

/// Asks a place what it serves, after a pause, until it says so or refuses to.
fn what_is_served(
    place: PlaceId,
    transport: Arc<dyn Transport>,
    after: Duration,
) -> BoxFuture<'static, Answer> {
    async move {
        tokio::time::sleep(after).await;
        let (mut pause, longest) = SERVED_AGAIN;
        loop {
            transport.stale();
            match transport.catalog().await {
                Ok(catalog) => return Answer::Serves(place, catalog),
                Err(fault) if fault.kind == FaultKind::Forbidden => return Answer::Refuses(place, after),
                Err(fault) => tracing::debug!(%place, %fault, "what is served is not known"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
    .boxed()
}

/// The endpoints of a view that can be used. The clusters of others stay unknown: an endpoint that is not read shows nothing
/// to be absent.
fn endpoints(
    ways: &dyn Ways,
    place: &PlaceId,
    urls: impl IntoIterator<Item = Name>,
) -> BTreeMap<EndpointId, Arc<dyn Transport>> {
    let mut endpoints = BTreeMap::new();
    for url in urls {
        match ways.view(&url) {
            Ok(transport) => drop(endpoints.insert(EndpointId(url), transport)),
            Err(fault) => tracing::error!(%place, %fault, "an endpoint of the view cannot be used"),
        }
    }
    endpoints
}

fn bindings_of(view: &PlaceId) -> Interest {
    Interest {
        place: view.clone(),
        kind: KindId::new("apis.kcp.io", "apibindings"),
        filter: Filter::All,
        keep: Keep::Head,
    }
}

/// What all workspaces and views that a role opens are read from.
const CENTER: &str = "center";

/// A whole cluster has one endpoint.
fn endpoint() -> EndpointId {
    EndpointId::new("server")
}
