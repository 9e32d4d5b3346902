//! Any number of followers, driven in one task that owns the store.
//!
//! ```text
//!   follower.next ──> fetch over its transport ──> event ──> follower.feed ──> store, news
//!        ^                                                        │
//!        └──────────────── whenever its turn has changed ─────────┘
//! ```

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::future::{AbortHandle, Abortable, Aborted, BoxFuture};
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use mailboat_cluster::{Catalog, Found, Lines, Transport};
use mailboat_object::key::{KindId, Name};
use mailboat_object::object::Limits;
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{
    Definition, FeedId, Filter, Follower, Input, Keep, News, Now, PlaceId, Random, Seen, Settings, Store,
    Turn, Unopened,
};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::definition::{Definitions, defines_kinds};
use crate::fetch::{Event, Names, carry_out, next_line};

/// Lines taken from one watch before others have their turn.
const LINES_AT_ONCE: usize = 256;
/// After a kind was redefined it is listed once more when nothing has redefined it for this long: while many
/// bindings flip one after the other, a list in between may have met the old schema.
const REDEFINED_AGAIN: Duration = Duration::from_secs(2);
/// When discovery is asked after an object that defines kinds has changed. Servers take a moment until they
/// serve what they were told to (kcp: 5 s), and say nothing when they do.
const ASKED_AFTER: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(6)];

/// What was made so long ago was served when discovery was first asked, also if the server's clock is behind ours.
const YOUNG: Duration = Duration::from_mins(5);

/// What is to be followed.
#[derive(Clone, Debug)]
pub struct Follows {
    /// Where and which kind.
    pub id: FeedId,
    /// Which objects.
    pub filter: Filter,
    /// How much of each is kept.
    pub keep: Keep,
    /// Our field manager there; empty if we own nothing.
    pub manager: Name,
    /// How large an object may be.
    pub limits: Limits,
}

/// Says the time by the calendar, in seconds since 1970.
pub type Calendar = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The followers and the store that they fill.
pub struct Followers {
    store: Store,
    settings: Settings,
    feeds: BTreeMap<FeedId, Feed>,
    places: BTreeMap<PlaceId, Served>,
    running: FuturesUnordered<Abortable<BoxFuture<'static, Done>>>,
    /// What ended while the request for the next page went out.
    held: Option<Done>,
    clock: Clock,
    calendar: Calendar,
    random: Random,
}

struct Feed {
    follower: Follower,
    definition: Definition,
    transport: Arc<dyn Transport>,
    /// The turn that is being carried out, and how to drop it.
    current: Option<(Turn, AbortHandle)>,
    /// The next page, asked for before the present one was read.
    ahead: Option<Ahead>,
    /// When a page or probe was last asked for.
    read_at: Instant,
    /// Lists once more when due.
    again: Option<AbortHandle>,
    /// The last answer was that the kind is not served.
    unserved: bool,
    /// What its objects define, where they define kinds.
    definitions: Definitions,
}

/// A request for the page that a token continues with.
struct Ahead {
    token: String,
    fetch: BoxFuture<'static, Event>,
}

/// What a place serves, as last heard.
#[derive(Default)]
struct Served {
    catalog: Option<Arc<Catalog>>,
    asking: Option<AbortHandle>,
}

/// What one of the running futures ended with.
enum Done {
    Fetched { id: FeedId, turn: Turn, event: Event },
    Again { id: FeedId },
    Asked { id: FeedId, round: usize, catalog: Result<Arc<Catalog>, Fault> },
}

impl Followers {
    /// Followers of this store. The seed spreads their waits.
    pub fn new(store: Store, settings: Settings, seed: u64) -> Self {
        Self {
            store,
            settings,
            feeds: BTreeMap::new(),
            places: BTreeMap::new(),
            running: FuturesUnordered::new(),
            held: None,
            clock: Clock::new(),
            calendar: Arc::new(seconds_since_1970),
            random: Random::new(seed),
        }
    }

    /// What is known.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What is known, to tell it what is known from elsewhere (places, bindings, confirmations).
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The time, as followers are told it.
    pub fn now(&self) -> Now {
        Now { mono: self.clock.now(), wall_seconds: (self.calendar)() }
    }

    /// The calendar is another than this machine's.
    pub fn calendar(&mut self, calendar: Calendar) {
        self.calendar = calendar;
    }

    /// Begins to follow. The place must be open in the store. What is followed already is followed anew.
    pub fn follow(
        &mut self,
        follows: Follows,
        transport: Arc<dyn Transport>,
        news: &mut Vec<News>,
    ) -> Result<(), Unopened> {
        let Follows { id, filter, keep, manager, limits } = follows;
        // What its objects call themselves is learned from discovery before the first page is read.
        let definition =
            Definition { api_version: Name::EMPTY, kind_name: Name::EMPTY, manager, filter, keep, limits };
        let seed = self.random.draw();
        let follower = Follower::new(
            id.clone(),
            definition.clone(),
            self.settings.clone(),
            seed,
            &mut self.store,
            news,
        )?;
        self.unfollow(&id);
        let feed = Feed {
            follower,
            definition,
            transport,
            current: None,
            ahead: None,
            read_at: self.clock.begun(),
            again: None,
            unserved: false,
            definitions: Definitions::default(),
        };
        self.feeds.insert(id.clone(), feed);
        self.pursue(&id);
        Ok(())
    }

    /// Ends one feed and drops its request. What the store knows of it is another matter: see
    /// [`Store::unfollow`].
    pub fn unfollow(&mut self, id: &FeedId) {
        if let Some(feed) = self.feeds.remove(id) {
            feed.current.iter().for_each(|(_, handle)| handle.abort());
            feed.again.iter().for_each(AbortHandle::abort);
        }
    }

    /// What defines a kind at a place has changed: its watch is closed and all is listed anew, now and once
    /// more when the changes have come to an end.
    pub fn redefine(&mut self, place: &PlaceId, kind: &KindId, news: &mut Vec<News>) {
        let ids: Vec<FeedId> =
            self.feeds.keys().filter(|id| id.place == *place && id.kind == *kind).cloned().collect();
        for id in ids {
            let Some(feed) = self.feeds.get_mut(&id) else { continue };
            // Within a run of changes only the last one lists again.
            let first = feed.again.as_ref().is_none_or(AbortHandle::is_aborted);
            if let Some(again) = feed.again.take() {
                again.abort();
            }
            let again = id.clone();
            let later = tokio::time::sleep(REDEFINED_AGAIN).map(move |()| Done::Again { id: again }).boxed();
            let handle = self.spawn(later);
            if let Some(feed) = self.feeds.get_mut(&id) {
                feed.again = Some(handle);
            }
            if first {
                self.list_anew(&id, news);
            }
        }
    }

    /// Waits until something has come of some fetch, and adds what is new. Nothing is lost if the future is
    /// dropped before it is done. Never done while nothing is followed.
    pub async fn step(&mut self, news: &mut Vec<News>) {
        self.nudge(news);
        loop {
            if let Some(done) = self.held.take() {
                return self.done(done, news);
            }
            match self.running.next().await {
                Some(Ok(done)) => {
                    let next_page = self.page_ahead(&done);
                    self.held = Some(done);
                    if let Some((id, mut ahead)) = next_page {
                        // Asked for now, the server prepares it while this one is read.
                        if let Some(event) = (&mut ahead.fetch).now_or_never() {
                            ahead.fetch = std::future::ready(event).boxed();
                        }
                        if let Some(feed) = self.feeds.get_mut(&id) {
                            feed.ahead = Some(ahead);
                        }
                        tokio::task::yield_now().await;
                    }
                }
                Some(Err(Aborted)) => {}
                None => pending().await,
            }
        }
    }

    /// Tells the followers of feeds that the store wants listed anew for reasons of its own.
    fn nudge(&mut self, news: &mut Vec<News>) {
        let now = self.now();
        for id in self.store.take_relists() {
            if let Some(feed) = self.feeds.get_mut(&id) {
                let turn = feed.follower.turn();
                feed.follower.feed(now, turn, Input::Tick, &mut self.store, news);
                self.pursue(&id);
            }
        }
    }

    /// The request for the page after the one that just came, if there is one.
    fn page_ahead(&self, done: &Done) -> Option<(FeedId, Ahead)> {
        let Done::Fetched { id, turn, event: Event::Page(body) } = done else { return None };
        let instant = self.clock.instants();
        let feed = self.feeds.get(id)?;
        if feed.follower.turn() != *turn {
            return None;
        }
        let fetch = feed.follower.after(body)?;
        let mailboat_store::Fetch::List { continue_token: Some(token), .. } = &fetch else { return None };
        let token = token.clone();
        let deadline = feed.follower.deadline().map(instant);
        let names = Names::of(&feed.definition);
        let transport = feed.transport.clone();
        let fetch = carry_out(transport, id.kind.clone(), names, fetch, deadline, instant)?;
        Some((id.clone(), Ahead { token, fetch }))
    }

    fn done(&mut self, done: Done, news: &mut Vec<News>) {
        match done {
            Done::Fetched { id, turn, event } => {
                let first = news.len();
                self.take(&id, turn, event, news);
                self.pursue(&id);
                if defines_kinds(&id.kind) {
                    self.heed(&id, first, news);
                }
            }
            Done::Again { id } => {
                if let Some(feed) = self.feeds.get_mut(&id) {
                    feed.again = None;
                }
                self.list_anew(&id, news);
            }
            Done::Asked { id, round, catalog } => {
                match catalog {
                    Ok(catalog) => self.serves(&id.place, &catalog, news),
                    Err(fault) => tracing::debug!(place = %id.place, %fault, "discovery"),
                }
                self.ask(&id, round + 1);
            }
        }
    }

    /// Tells a follower what came of its fetch.
    fn take(&mut self, id: &FeedId, turn: Turn, event: Event, news: &mut Vec<News>) {
        let now = self.now();
        let Some(feed) = self.feeds.get_mut(id) else { return };
        let store = &mut self.store;
        // What follows begins anew, unless a watch is read on below.
        if feed.current.as_ref().is_some_and(|(current, _)| *current == turn) {
            feed.current = None;
        }
        match event {
            Event::Page(body) => {
                feed.unserved = false;
                feed.follower.feed(now, turn, Input::Page(&body), store, news);
            }
            Event::Fault(fault) => {
                tracing::debug!(place = %id.place, kind = %id.kind, %fault, "read failed");
                feed.unserved = fault.kind == FaultKind::Unserved;
                feed.follower.feed(now, turn, Input::Fault(&fault), store, news);
            }
            Event::Late => feed.follower.feed(now, turn, Input::Tick, store, news),
            Event::Woken => {}
            Event::Renamed(names) => {
                feed.definition.api_version = names.api_version;
                feed.definition.kind_name = names.kind_name;
                self.list_anew(id, news);
            }
            Event::Opened(lines) => {
                let new_connection = lines.connected_at() > feed.read_at;
                feed.follower.feed(now, turn, Input::Opened { new_connection }, store, news);
                self.read_on(id, turn, lines, news);
            }
            Event::Line(lines, line) => {
                if feed.take_line(now, turn, line.as_ref(), store, news) {
                    self.read_on(id, turn, lines, news);
                }
            }
        }
    }

    /// Takes what has arrived of a watch, and waits for more.
    fn read_on(&mut self, id: &FeedId, turn: Turn, mut lines: Lines, news: &mut Vec<News>) {
        let now = self.now();
        let Some(feed) = self.feeds.get_mut(id) else { return };
        for _ in 0..LINES_AT_ONCE {
            if feed.follower.turn() != turn {
                return;
            }
            // Not counted against the task's budget: used up by one busy watch, it would starve the others.
            let Some(line) = tokio::task::unconstrained(lines.next()).now_or_never() else { break };
            if !feed.take_line(now, turn, line.as_ref(), &mut self.store, news) {
                return;
            }
        }
        let deadline = feed.follower.deadline().map(self.clock.instants());
        let on = id.clone();
        let next = next_line(lines, deadline).map(move |event| Done::Fetched { id: on, turn, event });
        let handle = self.spawn(next.boxed());
        if let Some(feed) = self.feeds.get_mut(id) {
            feed.current = Some((turn, handle));
        }
    }

    /// Begins what a follower wants next, if that is not what is being done.
    fn pursue(&mut self, id: &FeedId) {
        let now = self.now();
        let Some(feed) = self.feeds.get_mut(id) else { return };
        if feed.current.as_ref().is_some_and(|(turn, _)| *turn == feed.follower.turn()) {
            return;
        }
        if let Some((_, handle)) = feed.current.take() {
            handle.abort();
        }
        let fetch = feed.follower.next(now);
        let turn = feed.follower.turn();
        if matches!(fetch, mailboat_store::Fetch::List { .. } | mailboat_store::Fetch::Probe { .. }) {
            feed.read_at = Instant::now();
        }
        let instant = self.clock.instants();
        let deadline = feed.follower.deadline().map(instant);
        let names = Names::of(&feed.definition);
        let transport = feed.transport.clone();
        let fetch = match (feed.ahead.take(), &fetch) {
            (Some(ahead), mailboat_store::Fetch::List { continue_token: Some(token), .. })
                if *token == ahead.token =>
            {
                Some(ahead.fetch)
            }
            _ => carry_out(transport, id.kind.clone(), names, fetch, deadline, instant),
        };
        let Some(fetch) = fetch else {
            self.unfollow(id);
            return;
        };
        let on = id.clone();
        let handle = self.spawn(fetch.map(move |event| Done::Fetched { id: on, turn, event }).boxed());
        if let Some(feed) = self.feeds.get_mut(id) {
            feed.current = Some((turn, handle));
        }
    }

    fn list_anew(&mut self, id: &FeedId, news: &mut Vec<News>) {
        let Some(feed) = self.feeds.get_mut(id) else { return };
        let definition = feed.definition.clone();
        if let Err(unopened) = feed.follower.redefine(definition, &mut self.store, news) {
            tracing::debug!(%unopened, "no longer followed");
            feed.follower.stop();
        }
        self.pursue(id);
    }

    /// Objects that define kinds have changed: list those kinds anew, and ask what is served.
    fn heed(&mut self, id: &FeedId, first: usize, news: &mut Vec<News>) {
        let view = self.store.is_view(&id.place);
        let Some(feed) = self.feeds.get_mut(id) else { return };
        let mut kinds: Vec<KindId> = Vec::new();
        let mut changed = false;
        let young = (self.calendar)().saturating_sub(YOUNG.as_secs());
        for piece in news.iter().skip(first) {
            let News::Object(change) = piece else { continue };
            if change.key.kind != id.kind {
                continue;
            }
            let redefined = feed.definitions.learn(change, view);
            if change.live {
                // What a view serves does not change with every workspace that comes.
                changed |= !view || !redefined.is_empty();
                kinds.extend(redefined);
            } else if let Seen::Present(object) = &change.now {
                // Discovery has what a first list shows, unless it was asked just before that was made.
                changed |= !view && object.created_seconds().is_none_or(|made| made > young);
            }
        }
        if changed {
            kinds.sort();
            kinds.dedup();
            for kind in &kinds {
                self.redefine(&id.place, kind, news);
            }
            self.ask(id, 0);
        }
    }

    /// Asks what is served, in a while. A new reason to ask begins the rounds anew.
    fn ask(&mut self, id: &FeedId, round: usize) {
        let (Some(pause), Some(feed)) = (ASKED_AFTER.get(round).copied(), self.feeds.get(id)) else { return };
        let transport = feed.transport.clone();
        let asked = id.clone();
        let asking = async move {
            tokio::time::sleep(pause).await;
            transport.stale();
            Done::Asked { id: asked, round, catalog: transport.catalog().await }
        };
        let handle = self.spawn(asking.boxed());
        let place = self.places.entry(id.place.clone()).or_default();
        if let Some(before) = place.asking.replace(handle) {
            before.abort();
        }
    }

    /// A place is closed: what it served is of no interest any more.
    pub fn close(&mut self, place: &PlaceId) {
        if let Some(asking) = self.places.remove(place).and_then(|place| place.asking) {
            asking.abort();
        }
    }

    /// What a place serves, as last heard.
    pub fn catalog(&self, place: &PlaceId) -> Option<&Arc<Catalog>> {
        self.places.get(place)?.catalog.as_ref()
    }

    /// A place serves this now: kinds that came are listed at once, kinds that went are unknown.
    pub fn serves(&mut self, place: &PlaceId, catalog: &Arc<Catalog>, news: &mut Vec<News>) {
        let before = self.places.entry(place.clone()).or_default().catalog.replace(catalog.clone());
        let ids: Vec<FeedId> = self.feeds.keys().filter(|id| id.place == *place).cloned().collect();
        for id in ids {
            let was = before.as_ref().map(|before| before.find(&id.kind));
            let waiting = self.feeds.get(&id).is_some_and(|feed| feed.unserved);
            match (was, catalog.find(&id.kind)) {
                (None | Some(Found::Served(_)), Found::NotServed) => {
                    self.store.unserved(place, &id.kind, news);
                }
                (Some(Found::Served(was)), Found::Served(is)) if was == is && !waiting => {}
                (None, Found::Served(_)) if !waiting => {}
                (_, Found::Served(_)) => {
                    self.store.served(place, &id.kind, news);
                    self.list_anew(&id, news);
                }
                _ => {}
            }
        }
    }

    fn spawn(&mut self, future: BoxFuture<'static, Done>) -> AbortHandle {
        let (handle, registration) = AbortHandle::new_pair();
        self.running.push(Abortable::new(future, registration));
        handle
    }
}

impl Feed {
    /// Tells the follower of a line or the end of a watch; false once there will be no more.
    fn take_line(
        &mut self,
        now: Now,
        turn: Turn,
        line: Option<&Result<Bytes, Fault>>,
        store: &mut Store,
        news: &mut Vec<News>,
    ) -> bool {
        let (input, more) = match line {
            Some(Ok(line)) => (Input::Line(line), true),
            Some(Err(fault)) => (Input::Fault(fault), false),
            None => (Input::Ended, false),
        };
        self.follower.feed(now, turn, input, store, news);
        more && self.follower.turn() == turn
    }
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
