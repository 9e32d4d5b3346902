//! One role, its engine and its followers, run together: the body of every program that carries objects.
//!
//! ```text
//!   news ──> engine, role        what the engine wants ──> calls and looks ──> answers ──> engine
//!                    └── role.next ──> orders ──> what is followed, routes, calls of its own ──> role
//! ```

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use mailboat_cluster::{Catalog, Transport};
use mailboat_engine::engine::Engine;
use mailboat_engine::role::{CallId, Ground, Order, Role, Turn};
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Limits;
use mailboat_object::wire::{Call, Fault, Reply};
use mailboat_store::{EndpointId, FeedId, Interest, Nature, News, PlaceId, Settings, Store, merge};
use tokio::time::Instant;

use crate::carry::{Carrier, in_so_long, sleep_until, unreached};
use crate::follow::{Followers, Follows};
use crate::look::ground;

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
    places: BTreeMap<PlaceId, Way>,
    followed: BTreeMap<(PlaceId, KindId), Interest>,
    asked: FuturesUnordered<BoxFuture<'static, Answer>>,
    news: Vec<News>,
}

/// A place of one whole cluster.
struct Way {
    transport: Arc<dyn Transport>,
    /// What the role was last told about what is served here.
    told: Option<Arc<Catalog>>,
}

/// What came of something that the role, or the process for it, asked for.
enum Answer {
    Called(CallId, Result<Reply, Fault>),
    Looked(CallId, Result<Ground, Fault>),
    Serves(PlaceId, Arc<Catalog>),
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
            places: BTreeMap::new(),
            followed: BTreeMap::new(),
            asked: FuturesUnordered::new(),
            news: Vec::new(),
        }
    }

    /// A cluster or workspace that is read and written as a whole.
    pub fn place(&mut self, place: PlaceId, cluster: &ClusterId, transport: Arc<dyn Transport>) {
        let nature = Nature::Whole(cluster.clone());
        self.followers.store_mut().open(&place, nature, [endpoint()], &mut self.news);
        self.carrier.reach(cluster, Arc::clone(&transport));
        self.asked.push(what_is_served(place.clone(), Arc::clone(&transport), Duration::ZERO));
        self.places.insert(place, Way { transport, told: None });
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
            tokio::select! {
                // In this order: to stop is never starved, and answers free places before news fill the queues.
                biased;
                result = &mut stop => {
                    self.finish().await;
                    return result;
                }
                answer = self.carrier.answer() => self.carrier.tell(answer, &self.followers),
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
        let Self { role, followers, carrier, places, news, .. } = self;
        carrier.learn_with(news, followers, |followers, piece| {
            role.observe(followers.now(), followers.store(), piece);
        });
        for (place, way) in places {
            let Some(catalog) = followers.catalog(place) else { continue };
            if way.told.as_ref().is_none_or(|told| !Arc::ptr_eq(told, catalog)) {
                let same = way.told.as_ref().is_some_and(|told| told == catalog);
                way.told = Some(Arc::clone(catalog));
                if !same {
                    role.served(place, catalog);
                }
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Follow(interests) => self.follow(&interests),
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
        let calling = match self.carrier.transport(&call.key.cluster) {
            Some(transport) => transport.call(call),
            None => futures::future::ready(Err(unreached(&call.key.cluster))).boxed(),
        };
        self.asked.push(calling.map(move |reply| Answer::Called(id, reply)).boxed());
    }

    /// Begins and ends feeds, so that exactly this is followed.
    fn follow(&mut self, interests: &[Interest]) {
        let wanted: BTreeMap<_, _> = merge(interests)
            .into_iter()
            .map(|interest| ((interest.place.clone(), interest.kind.clone()), interest))
            .collect();
        let ended: Vec<_> = self.followed.keys().filter(|key| !wanted.contains_key(*key)).cloned().collect();
        for (place, kind) in ended {
            self.followed.remove(&(place.clone(), kind.clone()));
            self.followers.store_mut().unfollow(&place, &kind, &mut self.news);
            self.followers.unfollow(&FeedId { place, endpoint: endpoint(), kind });
        }
        for (key, interest) in wanted {
            if self.followed.get(&key) == Some(&interest) {
                continue;
            }
            let Some(way) = self.places.get(&interest.place) else { continue };
            let follows = Follows {
                id: FeedId { place: key.0.clone(), endpoint: endpoint(), kind: key.1.clone() },
                filter: interest.filter.clone(),
                keep: interest.keep,
                manager: self.manager.clone(),
                limits: Limits::default(),
            };
            match self.followers.follow(follows, Arc::clone(&way.transport), &mut self.news) {
                Ok(()) => drop(self.followed.insert(key, interest)),
                Err(unopened) => tracing::error!(%unopened, "cannot be followed"),
            }
        }
    }

    fn answered(&mut self, answer: Answer) {
        let now = self.followers.now();
        match answer {
            Answer::Called(id, reply) => self.role.answered(now, id, reply),
            Answer::Looked(id, found) => self.role.looked(now, id, found),
            Answer::Serves(place, catalog) => {
                self.followers.serves(&place, &catalog, &mut self.news);
                if let Some(way) = self.places.get(&place) {
                    let transport = Arc::clone(&way.transport);
                    self.asked.push(what_is_served(place, transport, SERVED_ASKED_EVERY));
                }
            }
        }
    }

    /// Waits for what is under way, for a while, and begins nothing new.
    async fn finish(&mut self) {
        let end = Instant::now() + FINISHING;
        while self.carrier.is_under_way() {
            tokio::select! {
                answer = self.carrier.answer() => self.carrier.tell(answer, &self.followers),
                () = tokio::time::sleep_until(end) => {
                    tracing::warn!("stopped before all that was under way was answered");
                    return;
                }
            }
        }
    }
}

/// Asks a place what it serves, after a pause, until it says so.
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
                Err(fault) => tracing::debug!(%place, %fault, "what is served is not known"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }
    .boxed()
}

/// A whole cluster has one endpoint.
fn endpoint() -> EndpointId {
    EndpointId::new("server")
}
