//! How a kind at one endpoint comes to be known: list, pages, watch, bookmarks, expiry, relist.
//!
//! A follower is a state machine. Whoever does the I/O asks [`Follower::next`] what to fetch, feeds what comes
//! back, and starts over whenever [`Follower::turn`] has changed. It never does more than one thing at a time.
//!
//! ```text
//!            +--------- expired, unreadable, redefined ---------+
//!            v                                                  |
//!   list -> page -> … -> last page ------> watch <--> lines, bookmarks
//!     ^                                     ^   \
//!     |                                     |    end, fault, silence (after a fault: wait)
//!     +---- older than what was seen --- probe <-+
//! ```

mod backoff;
mod fetch;

use std::time::Duration;

use mailboat_object::key::{ClusterId, Version};
use mailboat_object::malformed::Malformed;
use mailboat_object::object::{ClusterOf, Keep, Limits, Object, Place};
use mailboat_object::page::{Event, Page};
use mailboat_object::wire::{Fault, FaultKind};

use self::backoff::Backoff;
pub use self::fetch::{Definition, Fetch, Input, ProbeWhen, Selection, Settings, Turn};
use crate::interest::FeedId;
use crate::mutation::{Mutation, broken};
use crate::seen::{Doubt, News};
use crate::store::{By, Store, Unopened};
use crate::time::{Moment, Now, Random};

/// A watch that ends sooner than this without a word is a failure, however politely it ended: without a wait
/// it would be opened again at once, for ever.
const SHORTEST_WATCH: Duration = Duration::from_secs(5);

/// What servers say when asked for a version that they have not reached.
const TOO_LARGE_VERSION: &str = "too large resource version";

/// Follows one kind at one endpoint.
#[derive(Debug)]
pub struct Follower {
    id: FeedId,
    /// The cluster, where the place shows one whole.
    cluster: Option<ClusterId>,
    definition: Definition,
    selection: Selection,
    settings: Settings,
    random: Random,
    state: State,
    turn: Turn,
    /// When the current fetch was first asked for.
    asked: Option<Moment>,
    backoff: Backoff,
    /// Objects to ask for on the next page,
    page_limit: u32,
    /// and at most on any: fewer than the settings say once a page was too large.
    page_most: u32,
    /// Up to where everything was read.
    version: Version,
    /// How often it was listed anew since a watch last said anything.
    relists: u32,
}

#[derive(Clone, Debug)]
enum State {
    List(Listing),
    Probe,
    Watch { timeout_seconds: u32, opened: bool, heard: bool },
    Wait { until: Moment, then: Then },
    Stopped,
}

/// How far a list was read.
#[derive(Clone, Debug, Default)]
struct Listing {
    continue_token: Option<String>,
    /// The version of all of its pages, once the first was read.
    version: Option<Version>,
}

#[derive(Clone, Debug)]
enum Then {
    List(Listing),
    Probe,
    Watch,
}

impl Follower {
    /// A follower that begins with a list. The seed spreads its waits and time-outs.
    pub fn new(
        id: FeedId,
        definition: Definition,
        settings: Settings,
        seed: u64,
        store: &mut Store,
        out: &mut Vec<News>,
    ) -> Result<Self, Unopened> {
        let cluster = store.follow(&id, &definition.filter, out)?;
        let selection = Selection::of(&definition.filter);
        Ok(Self {
            id,
            cluster,
            definition,
            selection,
            random: Random::new(seed),
            state: State::List(Listing::default()),
            turn: Turn(0),
            asked: None,
            backoff: Backoff::default(),
            page_limit: settings.page_limit.0.max(1),
            page_most: settings.page_limit.1.max(1),
            settings,
            version: Version(0),
            relists: 0,
        })
    }

    /// What it follows.
    pub fn id(&self) -> &FeedId {
        &self.id
    }

    /// The present turn. When it is no longer the one at which a fetch was asked for, that fetch is to be
    /// dropped and [`Follower::next`] asked again.
    pub fn turn(&self) -> Turn {
        self.turn
    }

    /// Whether it was not stopped.
    pub fn is_running(&self) -> bool {
        !matches!(self.state, State::Stopped)
    }

    /// What to fetch now. The same answer until the turn changes.
    pub fn next(&mut self, now: Now) -> Fetch {
        self.wake(now.mono);
        self.asked.get_or_insert(now.mono);
        let selection = self.selection.clone();
        match &self.state {
            State::List(Listing { continue_token, .. }) => {
                Fetch::List { limit: self.page_limit, continue_token: continue_token.clone(), selection }
            }
            State::Probe => Fetch::Probe { selection },
            State::Watch { timeout_seconds, .. } => {
                Fetch::Watch { from: self.version, timeout_seconds: *timeout_seconds, selection }
            }
            State::Wait { until, .. } => Fetch::WaitUntil(*until),
            State::Stopped => Fetch::Stopped,
        }
    }

    /// What will be fetched once this page is fed, if it is not the list's last: for who asks for the next page
    /// before reading this one.
    pub fn after(&self, page: &[u8]) -> Option<Fetch> {
        let State::List(_) = &self.state else { return None };
        let continue_token = Some(Page::peek_continue(page)?.into_owned());
        let selection = self.selection.clone();
        Some(Fetch::List { limit: self.fitting(page), continue_token, selection })
    }

    /// How many objects the page after this one is asked for with, so that it is about as large as it should be.
    fn fitting(&self, page: &[u8]) -> u32 {
        let bytes = u64::try_from(self.settings.page_bytes).unwrap_or(u64::MAX);
        let had = u64::try_from(page.len()).unwrap_or(u64::MAX).max(1);
        let fits = u64::from(self.page_limit).saturating_mul(bytes) / had;
        u32::try_from(fits).unwrap_or(u32::MAX).clamp(1, self.page_most)
    }

    /// When to feed [`Input::Tick`], unless the fetch came to its end before.
    pub fn deadline(&self) -> Option<Moment> {
        let asked = self.asked?;
        match &self.state {
            State::List(_) | State::Probe => Some(asked + self.settings.page_timeout),
            State::Watch { timeout_seconds, .. } => {
                Some(asked + Duration::from_secs(u64::from(*timeout_seconds)) + self.settings.watch_margin)
            }
            State::Wait { until, .. } => Some(*until),
            State::Stopped => None,
        }
    }

    /// Takes what a fetch brought. What belongs to an earlier turn is ignored, so that the late end of an old
    /// watch cannot be taken for the end of the present one (H36).
    pub fn feed(&mut self, now: Now, turn: Turn, input: Input<'_>, store: &mut Store, out: &mut Vec<News>) {
        if turn != self.turn {
            return;
        }
        if !store.has_feed(&self.id) {
            self.enter(State::Stopped);
            return;
        }
        if store.take_relist(&self.id) && !matches!(self.state, State::List(Listing { version: None, .. })) {
            self.enter(State::List(Listing::default()));
            return;
        }
        let now = now.mono;
        match (&self.state, input) {
            (State::List(listing), Input::Page(body)) => {
                self.page(now, listing.version, body, store, out);
            }
            (State::Probe, Input::Page(body)) => self.probed(now, body, store, out),
            (State::Watch { .. }, Input::Opened { new_connection: true }) => self.enter(State::Probe),
            (State::Watch { .. }, Input::Opened { new_connection: false }) => self.opened(now, store, out),
            (State::Watch { .. }, Input::Line(line)) => self.line(now, line, store, out),
            (State::Watch { .. }, Input::Ended) => self.ended(now),
            (State::List(_) | State::Probe | State::Watch { .. }, Input::Fault(fault)) => {
                self.fault(now, fault, store, out);
            }
            (State::List(_) | State::Probe, Input::Ended) => {
                let fault = Fault::new(FaultKind::Retry(None), "the answer ended before it began");
                self.fault(now, &fault, store, out);
            }
            (State::List(_) | State::Probe | State::Watch { .. }, Input::Tick)
                if self.deadline().is_some_and(|deadline| now >= deadline) =>
            {
                let fault = Fault::new(FaultKind::Retry(None), "the server fell silent");
                self.fault(now, &fault, store, out);
            }
            (State::Wait { .. }, Input::Tick) => self.wake(now),
            // Pages and lines that were not asked for say nothing.
            _ => {}
        }
    }

    /// What defines the kind has changed: its schema, its version, the filter, how much is kept. The watch is
    /// closed and all is listed anew, because an open watch goes on with the old schema. To be called again
    /// once everything that is to change has changed, since a list in between may have met the old one.
    pub fn redefine(
        &mut self,
        definition: Definition,
        store: &mut Store,
        out: &mut Vec<News>,
    ) -> Result<(), Unopened> {
        if matches!(self.state, State::Stopped) {
            return Ok(());
        }
        store.follow(&self.id, &definition.filter, out)?;
        self.selection = Selection::of(&definition.filter);
        self.definition = definition;
        store.lose(&self.id, Doubt::Relisting, out);
        self.enter(State::List(Listing::default()));
        Ok(())
    }

    /// Ends it. What the store knows is another matter: see [`Store::unfollow`].
    pub fn stop(&mut self) {
        self.enter(State::Stopped);
    }

    /// Ends a wait whose time has come.
    fn wake(&mut self, now: Moment) {
        if let State::Wait { until, then } = &self.state
            && now >= *until
        {
            let state = match then.clone() {
                Then::List(listing) => State::List(listing),
                Then::Probe => State::Probe,
                Then::Watch => self.watching(),
            };
            self.enter(state);
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.turn = Turn(self.turn.0 + 1);
        self.asked = None;
    }

    fn watching(&mut self) -> State {
        let (low, high) = self.settings.watch_seconds;
        let seconds = self.random.between(u64::from(low), u64::from(high));
        State::Watch { timeout_seconds: u32::try_from(seconds).unwrap_or(high), opened: false, heard: false }
    }

    /// One page of the list. `first`: the version that its earlier pages had.
    fn page(
        &mut self,
        now: Moment,
        first: Option<Version>,
        body: &[u8],
        store: &mut Store,
        out: &mut Vec<News>,
    ) {
        // H5: only a list that was read to its end says anything; what is no list at all says nothing.
        let page = Page::parse(body, page_limits(self.definition.limits)).ok();
        let Some((page, version)) = page.and_then(|page| page.version.map(|version| (page, version))) else {
            self.fail(now, Doubt::Unreadable, Then::List(Listing::default()), None, store, out);
            return;
        };
        match first {
            None => {
                store.begin_list(&self.id, out);
                store.list_version(&self.id, version, out);
            }
            Some(first) if first == version => {}
            // Pages of two versions together are no consistent list.
            Some(_) => return self.relist(now, Doubt::Relisting, store, out),
        }
        for item in page.items() {
            match self.decode(item, Keep::Whole) {
                Ok(object) => store.show(&self.id, object, self.definition.keep, By::List, out),
                Err(Malformed { key: Some(key), .. }) => store.garbled(&self.id, &key, out),
                Err(Malformed { key: None, .. }) => store.unnamed(&self.id),
            }
        }
        if let Some(token) = page.continue_token.filter(|_| !broken(Mutation::HalfAList)) {
            let continue_token = Some(token.into_owned());
            self.page_limit = self.fitting(body);
            self.enter(State::List(Listing { continue_token, version: Some(version) }));
            return;
        }
        store.end_list(&self.id, out);
        self.version = version;
        self.backoff.success(now);
        let watching = self.watching();
        self.enter(watching);
    }

    fn probed(&mut self, now: Moment, body: &[u8], store: &mut Store, out: &mut Vec<News>) {
        let page = Page::parse(body, page_limits(self.definition.limits)).ok();
        match page.and_then(|page| page.version) {
            Some(version) if version >= self.version => {
                store.reached(&self.id, version);
                let watching = self.watching();
                self.enter(watching);
            }
            // The server went back in time. A list shows what it has now, and concludes nothing.
            Some(_) => {
                store.went_back(&self.id, out);
                self.enter(State::List(Listing::default()));
            }
            None => self.fail(now, Doubt::Unreadable, Then::Probe, None, store, out),
        }
    }

    fn opened(&mut self, now: Moment, store: &mut Store, out: &mut Vec<News>) {
        if let State::Watch { opened, .. } = &mut self.state
            && !std::mem::replace(opened, true)
        {
            self.backoff.success(now);
            store.resume(&self.id, out);
        }
    }

    fn line(&mut self, now: Moment, line: &[u8], store: &mut Store, out: &mut Vec<News>) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let event = Event::parse(line);
        if !matches!(event, Ok(Event::Error { .. })) {
            self.opened(now, store, out);
        }
        let read = match event {
            Ok(Event::Added(json) | Event::Modified(json)) => self
                .decode(json, Keep::Whole)
                .map(|object| {
                    self.version = self.version.max(object.version);
                    store.show(&self.id, object, self.definition.keep, By::Event, out);
                })
                .or_else(|malformed| match malformed.key {
                    Some(key) => {
                        store.garbled(&self.id, &key, out);
                        Ok(())
                    }
                    None => Err(()),
                }),
            Ok(Event::Deleted(json)) => self
                .decode(json, Keep::Head)
                .map(|object| {
                    self.version = self.version.max(object.version);
                    store.deleted(&self.id, &object.key, object.version, out);
                })
                // That it is gone was perhaps said, but not at which version: only a list can tell.
                .map_err(|malformed| {
                    if let Some(key) = malformed.key {
                        store.garbled(&self.id, &key, out);
                    }
                }),
            Ok(Event::Bookmark { version, .. }) => {
                self.version = self.version.max(version);
                store.progress(&self.id, version, out);
                Ok(())
            }
            Ok(Event::Error { code, reason, message }) => {
                self.error(now, code, &reason, &message, store, out);
                return;
            }
            Err(_) => Err(()),
        };
        match read {
            Ok(()) => {
                self.relists = 0;
                if let State::Watch { heard, .. } = &mut self.state {
                    *heard = true;
                }
            }
            // Never silent: something happened, and a list will show what it was.
            Err(()) => self.relist(now, Doubt::Unreadable, store, out),
        }
    }

    /// The watch ended with an error event.
    fn error(
        &mut self,
        now: Moment,
        code: u16,
        reason: &str,
        message: &str,
        store: &mut Store,
        out: &mut Vec<News>,
    ) {
        let expired = code == 410 || matches!(reason, "Expired" | "Gone");
        if expired || code == 504 || is_too_large_version(message) {
            self.relist(now, Doubt::Relisting, store, out);
        } else {
            self.fail(now, Doubt::Lost, Then::Probe, None, store, out);
        }
    }

    /// The watch came to its regular end, which says nothing about any object.
    fn ended(&mut self, now: Moment) {
        let State::Watch { heard, .. } = self.state else { return };
        let lasted = self.asked.map_or(Duration::ZERO, |asked| now - asked);
        let then = match self.settings.probe {
            ProbeWhen::Always => Then::Probe,
            ProbeWhen::NewConnection => Then::Watch,
        };
        if heard || lasted >= SHORTEST_WATCH {
            let state = match then {
                Then::Watch => self.watching(),
                Then::Probe | Then::List(_) => State::Probe,
            };
            self.enter(state);
        } else {
            let until = self.backoff.failure(now, None, &self.settings, &mut self.random);
            self.enter(State::Wait { until, then });
        }
    }

    fn fault(&mut self, now: Moment, fault: &Fault, store: &mut Store, out: &mut Vec<News>) {
        // A page that failed is asked for again; so is a watch, once a probe has shown that it may go on.
        let again = match &self.state {
            State::List(listing) => Then::List(listing.clone()),
            _ => Then::Probe,
        };
        let anew = || Then::List(Listing::default());
        let watching = matches!(self.state, State::Watch { .. });
        match fault.kind {
            FaultKind::Retry(_) if watching && is_too_large_version(&fault.text) => {
                self.relist(now, Doubt::Relisting, store, out);
            }
            FaultKind::Retry(after) => self.fail(now, Doubt::Lost, again, after, store, out),
            FaultKind::Away => self.fail(now, Doubt::Lost, again, None, store, out),
            FaultKind::Unauthorized => self.fail(now, Doubt::Unauthorized, again, None, store, out),
            FaultKind::Expired => self.relist(now, Doubt::Relisting, store, out),
            // Whatever is served or allowed again later may be other objects: from the start.
            FaultKind::Unserved | FaultKind::NotFound | FaultKind::NoNamespace => {
                self.fail(now, Doubt::Unserved, anew(), None, store, out);
            }
            FaultKind::Forbidden => self.fail(now, Doubt::Forbidden, anew(), None, store, out),
            // One large object among many small ones: smaller pages pass where large ones do not.
            FaultKind::TooLarge if self.page_limit > 1 && matches!(self.state, State::List(_)) => {
                self.page_limit = (self.page_limit / 2).max(1);
                self.page_most = self.page_limit;
                let state = self.state.clone();
                self.enter(state);
            }
            FaultKind::TooLarge
            | FaultKind::Conflict
            | FaultKind::Exists
            | FaultKind::Invalid
            | FaultKind::Bug => {
                self.fail(now, Doubt::Refused, anew(), None, store, out);
            }
        }
    }

    /// Waits and then tries again.
    fn fail(
        &mut self,
        now: Moment,
        doubt: Doubt,
        then: Then,
        after: Option<Duration>,
        store: &mut Store,
        out: &mut Vec<News>,
    ) {
        store.lose(&self.id, doubt, out);
        let until = self.backoff.failure(now, after, &self.settings, &mut self.random);
        self.enter(State::Wait { until, then });
    }

    /// Lists from the start: at once, but not for ever at once.
    fn relist(&mut self, now: Moment, doubt: Doubt, store: &mut Store, out: &mut Vec<News>) {
        self.relists += 1;
        if self.relists > 1 {
            return self.fail(now, doubt, Then::List(Listing::default()), None, store, out);
        }
        store.lose(&self.id, doubt, out);
        self.enter(State::List(Listing::default()));
    }

    fn decode(&self, json: &[u8], keep: Keep) -> Result<Object, Malformed> {
        let place = Place {
            cluster: self.cluster.as_ref().map_or(ClusterOf::Annotated, ClusterOf::One),
            kind: &self.id.kind,
            api_version: &self.definition.api_version,
            kind_name: &self.definition.kind_name,
            manager: &self.definition.manager,
            keep,
            limits: self.definition.limits,
        };
        Object::decode(json, &place)
    }
}

/// A page is as large as its transport lets it be; each of its items has its own limit.
fn page_limits(object: Limits) -> Limits {
    Limits { bytes: usize::MAX, ..object }
}

fn is_too_large_version(text: &str) -> bool {
    text.to_ascii_lowercase().contains(TOO_LARGE_VERSION)
}
