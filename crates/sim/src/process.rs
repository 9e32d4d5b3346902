//! The process under test: the real store, followers and engine, and what a role does around them. It knows
//! nothing but what it is told; when it ends, all of it is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_engine::engine::{Engine, Next, Options as EngineOptions, Ticket};
use mailboat_engine::look::{Look, Serving};
use mailboat_engine::mark::{Marked, Marks, OwnerId};
use mailboat_engine::plan::ChangeId;
use mailboat_engine::route::{Destination, DestinationId, Route, RouteId};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::{Keep, Limits, Object, Place};
use mailboat_object::wire::{Abilities, Call, Fault, FaultKind, Reply, Verb};
use mailboat_store::interest::{EndpointId, FeedId, Filter, PlaceId};
use mailboat_store::seen::{Doubt, News, Seen};
use mailboat_store::store::{Nature, Store};
use mailboat_store::time::{Moment, Now};
use mailboat_store::{Definition, Fetch, Follower, Input, Settings, Turn};

use crate::Mutations;
use crate::manners::Manners;
use crate::roles::{
    FINALIZER, MANAGER, OWNER, SimRoute, bindings, boats, bound, edge, mailbox, marks, namespaces,
    placements, route_of, skiffs, view, workload,
};
use crate::script::{BOUND, Script};
use crate::servers::{Servers, kind_name};
use crate::tally::{Confirmed, Tally, asker};
use crate::truth::Read;

/// A look at the configuration that failed is tried again after so many milliseconds.
const LOOK_AGAIN_AFTER: u64 = 10_000;

/// So few sources are evaluated in one turn, so that no scope is evaluated in one.
const EVALUATIONS: usize = 3;

/// What the process asks of the world.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// A page, a probe or a watch for a follower.
    Fetch(usize, Turn, Fetch),
    /// A call of the engine, and how much of the center had been read when it was decided.
    Call(Ticket, Call, Read),
    /// A fresh look at a source.
    Look(Ticket, Key),
    /// A fresh look at the configuration's side, at this revision of it.
    LookAtConfiguration(u64),
}

/// The process.
pub(crate) struct Process {
    store: Store,
    engine: Engine,
    pub(crate) followers: Vec<FollowerState>,
    routes: BTreeMap<Name, Arc<SimRoute>>,
    configuration: Configuration,
    mutations: Mutations,
    seed: u64,
    edges: u8,
    /// Whether sources wait for their copies.
    waits: bool,
    /// Whether only heads are kept of what stands at edges.
    heads: bool,
    manners: Manners,
    /// It was noticed that the center went back in time.
    pub(crate) noticed_the_past: bool,
    tally: Tally,
    /// What is read, written or deleted at edges, until it is answered, and whether it is deleted.
    asked_of_edges: BTreeMap<Ticket, (Key, bool)>,
}

/// A follower, what was asked for it last, and which state of the center it has read.
pub(crate) struct FollowerState {
    pub(crate) follower: Follower,
    /// The cluster that it reads; none if it reads a view over many.
    pub(crate) cluster: Option<ClusterId>,
    /// The server that it reads.
    pub(crate) server: usize,
    pub(crate) kind: KindId,
    asked: Option<Turn>,
    /// When a page or a probe was last asked for, in milliseconds.
    pub(crate) asked_at: u64,
    pub(crate) lists: u32,
    /// Which state the list shows that is being read.
    pub(crate) list_shows: Option<usize>,
    pub(crate) read: usize,
}

#[derive(Default)]
struct Configuration {
    /// Counts what was learned of it.
    revision: u64,
    /// The revision that a look is under way for.
    looking: Option<u64>,
    /// When to look again, if a look failed.
    look_at: Option<u64>,
    known: bool,
    /// It was known before.
    was_known: bool,
    /// Which state of the center was read when it was last found to be whole.
    taken_of: usize,
}

impl FollowerState {
    /// Whether it follows the center, in one workspace or through the view.
    fn is_at_center(&self) -> bool {
        self.server == 0
    }
}

impl Process {
    pub(crate) fn start(now: u64, script: &Script, url: bool, seed: u64, mutations: Mutations) -> Self {
        let Script { edges, waits, claims, heads, manners, .. } = *script;
        let marks: Vec<Arc<dyn Marks>> = vec![Arc::new(marks())];
        let owner = OwnerId(Name::new(OWNER));
        let finalizer = Some(Name::new(FINALIZER));
        let options = EngineOptions { finalizer, evaluations: EVALUATIONS, ..EngineOptions::default() };
        let mut process = Self {
            store: Store::new(),
            engine: Engine::new(owner, Name::new(MANAGER), marks, options),
            followers: Vec::new(),
            routes: BTreeMap::new(),
            configuration: Configuration::default(),
            mutations,
            seed,
            edges,
            waits,
            heads,
            manners,
            noticed_the_past: false,
            tally: Tally::default(),
            asked_of_edges: BTreeMap::new(),
        };
        let mut news = Vec::new();
        process.follow(&workload(), &[placements(), boats()], &mut news);
        process.follow(&mailbox(), &[boats()], &mut news);
        process.open_view(url, &mut news);
        for number in 0..BOUND {
            process.engine.cluster(bound(number), Abilities { apply: true, whole: true });
        }
        for number in 0..edges {
            // Not everybody may read namespaces: where they are not shown, a refusal tells that one is missing.
            let kinds = [boats(), namespaces()];
            if claims && number + 1 == edges {
                process.follow_by_claim(&edge(number), &mut news);
            } else {
                process.follow(&edge(number), &kinds[..kinds.len() - usize::from(number % 2)], &mut news);
            }
            let id = DestinationId(u32::from(number));
            process.engine.destination(Destination { id, cluster: edge(number) });
        }
        if mutations.configuration_known_early {
            process.engine.configuration_known(Some(1));
        }
        process.tell(now, news);
        process
    }

    /// Whether nothing of the center was read yet.
    pub(crate) fn has_read_nothing(&self) -> bool {
        self.followers.iter().filter(|one| one.is_at_center()).all(|one| one.read == 0)
    }

    fn follow(&mut self, cluster: &ClusterId, kinds: &[KindId], news: &mut Vec<News>) {
        let place = PlaceId(cluster.0.clone());
        self.store.open(&place, Nature::Whole(cluster.clone()), [endpoint()], news);
        if Servers::of(cluster) == 0 {
            self.store.served_by(&place, &center());
        }
        self.engine.cluster(cluster.clone(), Abilities { apply: true, whole: true });
        self.follow_at(&place, Some(cluster), kinds, news);
    }

    /// What stands in a cluster is shown by a view, as long as a binding there accepts the claim on it.
    fn follow_by_claim(&mut self, cluster: &ClusterId, news: &mut Vec<News>) {
        let place = PlaceId(cluster.0.clone());
        self.store.open(&place, Nature::View, [endpoint()], news);
        self.engine.cluster(cluster.clone(), Abilities { apply: true, whole: true });
        self.follow_at(&place, None, &[bindings(), boats()], news);
    }

    /// The export's endpoint slice was read: its view is open where it says, or nowhere.
    fn open_view(&mut self, url: bool, news: &mut Vec<News>) {
        self.store.open(&view(), Nature::View, url.then(endpoint), news);
        self.store.served_by(&view(), &center());
        for one in self.followers.iter_mut().filter(|one| one.cluster.is_none() && one.server == 0) {
            one.follower.stop();
        }
        if url {
            self.follow_at(&view(), None, &[bindings(), skiffs()], news);
        }
    }

    /// The same, later.
    pub(crate) fn slice(&mut self, now: u64, url: bool) {
        let mut news = Vec::new();
        self.open_view(url, &mut news);
        self.tell(now, news);
    }

    fn follow_at(
        &mut self,
        place: &PlaceId,
        cluster: Option<&ClusterId>,
        kinds: &[KindId],
        news: &mut Vec<News>,
    ) {
        for kind in kinds {
            let feed = FeedId { place: place.clone(), endpoint: endpoint(), kind: kind.clone() };
            let definition = Definition {
                api_version: Name::new(
                    if kind.group().is_empty() { "v1".to_owned() } else { format!("{}/v1", kind.group()) }
                        .as_str(),
                ),
                kind_name: Name::new(kind_name(kind)),
                manager: Name::new(MANAGER),
                filter: Filter::All,
                keep: if self.heads && Servers::of(&ClusterId(place.0.clone())) > 0 && *kind == boats() {
                    Keep::Head
                } else {
                    Keep::Whole
                },
                limits: Limits::default(),
            };
            // Small pages, so that lists have several.
            let settings = Settings { page_limit: (3, 3), ..Settings::default() };
            let seed = self.seed ^ self.followers.len() as u64;
            if let Ok(follower) = Follower::new(feed, definition, settings, seed, &mut self.store, news) {
                self.followers.push(FollowerState {
                    follower,
                    cluster: cluster.cloned(),
                    server: Servers::of(&ClusterId(place.0.clone())),
                    kind: kind.clone(),
                    asked: None,
                    asked_at: 0,
                    lists: 0,
                    list_shows: None,
                    read: 0,
                });
            }
        }
    }

    /// What a fetch brought, and the number of the center's state that it shows.
    pub(crate) fn feed(
        &mut self,
        now: u64,
        index: usize,
        turn: Turn,
        input: Input<'_>,
        state: Option<usize>,
    ) {
        let Some(one) = self.followers.get_mut(index) else { return };
        if turn != one.follower.turn() {
            return;
        }
        let mut news = Vec::new();
        one.follower.feed(clock(now), turn, input, &mut self.store, &mut news);
        one.read = state.unwrap_or(one.read);
        self.tell(now, news);
    }

    pub(crate) fn done(&mut self, now: u64, ticket: Ticket, reply: Result<Reply, Fault>) -> Option<Request> {
        if let Some((slot, deletes)) = self.asked_of_edges.remove(&ticket) {
            match &reply {
                Ok(_) if deletes => self.tally.is_gone(&slot),
                Ok(reply) => {
                    let place = Place::of(&slot, MANAGER, Keep::Whole);
                    let _ = Object::decode(&reply.body, &place).map(|copy| self.tally.stands(&copy));
                }
                Err(fault) if fault.kind == FaultKind::NotFound => self.tally.is_gone(&slot),
                Err(_) => {}
            }
        }
        match self.engine.done(now, &self.store, ticket, reply) {
            Some(Next::Call(ticket, call)) => Some(Request::Call(ticket, call, self.built_on())),
            _ => None,
        }
    }

    pub(crate) fn looked(&mut self, now: u64, ticket: Ticket, found: Result<Look, Fault>) {
        self.engine.looked(now, ticket, found);
    }

    /// What the look at the configuration's side found. The lists that were complete when it was asked for are
    /// believed only now: a workspace that is being deleted shows complete and empty lists.
    pub(crate) fn looked_at_configuration(&mut self, now: u64, revision: u64, found: Result<Look, Fault>) {
        self.configuration.looking = None;
        let lives = found.is_ok_and(|look| look.workspace_lives && look.kind != Serving::Nothing);
        if revision != self.configuration.revision {
            self.configuration.look_at = Some(now);
        } else if lives {
            self.take_configuration(revision);
        } else {
            self.configuration.look_at = Some(now + LOOK_AGAIN_AFTER);
        }
    }

    /// All that there is to ask now, and when to ask again. `words`: what users confirmed and have not taken back.
    pub(crate) fn next(&mut self, now: u64, words: &BTreeSet<ChangeId>) -> (Vec<Request>, Option<u64>) {
        let mut requests = Vec::new();
        self.tally.assign(&self.store, self.edges, &self.routes);
        let mut wake: Option<u64> = None;
        let mut at = |time: u64| wake = Some(wake.map_or(time, |wake| wake.min(time)));
        for feed in self.store.take_relists() {
            let due = |one: &FollowerState| *one.follower.id() == feed && one.follower.is_running();
            if let Some(index) = self.followers.iter().position(due)
                && let Some(turn) = self.followers.get(index).map(|one| one.follower.turn())
            {
                self.feed(now, index, turn, Input::Tick, None);
            }
        }
        for index in 0..self.followers.len() {
            self.tick(now, index);
            let Some(one) = self.followers.get_mut(index) else { continue };
            let fetch = one.follower.next(clock(now));
            let turn = one.follower.turn();
            if let Some(Moment(deadline)) = one.follower.deadline() {
                at(deadline);
            }
            let asks = !matches!(fetch, Fetch::WaitUntil(_) | Fetch::Stopped);
            if asks && one.asked != Some(turn) {
                one.asked = Some(turn);
                if !matches!(fetch, Fetch::Watch { .. }) {
                    one.asked_at = now;
                }
                requests.push(Request::Fetch(index, turn, fetch));
            }
        }
        if self.configuration.looking.is_none()
            && let Some(time) = self.configuration.look_at
        {
            if time <= now {
                self.configuration.look_at = None;
                if self.configuration_is_complete() {
                    self.configuration.looking = Some(self.configuration.revision);
                    requests.push(Request::LookAtConfiguration(self.configuration.revision));
                }
            } else {
                at(time);
            }
        }
        loop {
            match self.engine.next(now, &self.store) {
                Next::Again => {}
                Next::Idle | Next::WaitUntil(_) if self.take_words(words) => {}
                Next::Idle => break,
                Next::WaitUntil(time) => {
                    at(time.max(now + 1));
                    break;
                }
                Next::Look(ticket, source) => requests.push(Request::Look(ticket, source)),
                Next::Call(ticket, call) => {
                    // What was there before, or would be, is not there.
                    let of_now = !call.dry_run && !matches!(call.verb, Verb::GetAt(_));
                    if of_now && call.key.kind == boats() && Servers::of(&call.key.cluster) > 0 {
                        let deletes = matches!(call.verb, Verb::Delete { .. });
                        self.asked_of_edges.insert(ticket, (call.key.clone(), deletes));
                    }
                    requests.push(Request::Call(ticket, call, self.built_on()));
                }
            }
        }
        (requests, wake)
    }

    /// Lets go what users confirmed, if it is that which is held. True if something was.
    fn take_words(&mut self, words: &BTreeSet<ChangeId>) -> bool {
        if words.is_empty() {
            return false;
        }
        let held = self.engine.held_by_scope().filter(|(_, change, _)| words.contains(change));
        let confirmed: Vec<_> = held.map(|(scope, change, _)| (scope.clone(), change)).collect();
        confirmed.into_iter().fold(false, |any, (scope, change)| self.engine.confirm(&scope, change) || any)
    }

    /// What is held: the name of each change, and what would go by it.
    pub(crate) fn held(&self) -> Vec<(ChangeId, Confirmed)> {
        let losers = |scope| self.engine.losers(scope).map(|(slot, object)| (slot.clone(), object.clone()));
        self.engine.held_by_scope().map(|(scope, change, _)| (change, losers(scope).collect())).collect()
    }

    /// Whether what it wants at once is not a mass withdrawal that nobody confirmed.
    pub(crate) fn asked_first(&mut self, requests: &[Request], confirmed: &Confirmed) -> Result<(), String> {
        let calls = requests.iter().filter_map(|request| match request {
            Request::Call(_, call, _) => Some(call),
            _ => None,
        });
        self.tally.check(&self.store, calls, self.configuration.was_known, confirmed)
    }

    /// How a slot stands, for people.
    pub(crate) fn explain(&self, slot: &Key) -> String {
        self.engine.verdict(slot).map_or("no verdict".to_owned(), |verdict| format!("{verdict:?}"))
    }

    /// What the process believes about an object, for people.
    pub(crate) fn believes(&self, key: &Key) -> String {
        match self.store.get(key) {
            Seen::Present(object) => format!("present at {}", object.version),
            Seen::Absent(absence) => format!("absent since {}: {:?}", absence.version(), absence.how()),
            Seen::Unknown(doubt) => format!("unknown: {doubt}"),
        }
    }

    /// Whether a slot's withdrawal is held by the breaker.
    pub(crate) fn holds_back(&self, slot: &Key) -> bool {
        matches!(self.engine.verdict(slot), Some(mailboat_engine::plan::Verdict::Held(_)))
    }

    /// Whether a slot is neither as wanted nor being worked on, but waits or is refused, and says why.
    pub(crate) fn says_why(&self, slot: &Key) -> bool {
        use mailboat_engine::plan::{Verdict, Wait};
        matches!(
            self.engine.verdict(slot),
            Some(
                Verdict::Held(_)
                    | Verdict::Waiting(Wait::Undecided(_) | Wait::Rest | Wait::Unheard | Wait::SourceCluster)
            )
        )
    }

    /// Whether a source goes to an edge, by all that the process was shown.
    pub(crate) fn selects(&self, source: &Key, edge: u8) -> bool {
        let source = self.store.get(source).present();
        source.is_some_and(|source| asker(&self.routes, source, edge).is_some())
    }

    /// The state of the center of which its configuration was last found to be whole, and the one up to which it was read.
    pub(crate) fn configured_since(&self) -> [usize; 2] {
        [self.configuration.taken_of, self.built_on().configuration]
    }

    /// Whether a source is in doubt because its server showed an older state than before.
    pub(crate) fn saw_the_past_of(&self, source: &Key) -> bool {
        self.store.get(source).doubt().is_some_and(is_of_the_past)
    }

    /// Whether a part of the configuration is: what it said goes on.
    pub(crate) fn saw_a_past_configuration(&self) -> bool {
        let range = self.store.range(&workload(), &placements(), None);
        range.is_ok_and(|range| range.doubtful().any(|(.., doubt)| is_of_the_past(doubt)))
    }

    fn tick(&mut self, now: u64, index: usize) {
        let Some(one) = self.followers.get(index) else { return };
        if one.follower.deadline().is_some_and(|deadline| deadline.0 <= now) {
            self.feed(now, index, one.follower.turn(), Input::Tick, None);
        }
    }

    /// What a decision made now may be built on.
    fn built_on(&self) -> Read {
        let read = |kind: &KindId| {
            let there =
                self.followers.iter().filter(|one| one.cluster == Some(workload()) && one.kind == *kind);
            there.map(|one| one.read).min().unwrap_or(0)
        };
        let up_to_date = self.store.behind(&workload(), &boats()).is_none();
        Read { configuration: read(&placements()), sources: up_to_date.then(|| read(&boats())) }
    }

    fn tell(&mut self, now: u64, news: Vec<News>) {
        let mut news = news;
        let mut configured = false;
        while !news.is_empty() {
            let mut more = Vec::new();
            for piece in &news {
                self.engine.observe(&self.store, piece);
                match piece {
                    News::Object(change) => {
                        self.tally.shown(change);
                        configured |= change.key.kind == placements();
                        if let Seen::Present(target) = &change.now
                            && let Marked::Ours(mark) = marks().read(target)
                            && !self.mutations.marks_not_remembered
                        {
                            self.store.remember(&mark.origin.key, mark.origin.version, &mut more);
                        }
                    }
                    News::CaughtUp { .. } | News::Stalled { .. } => {}
                    News::Scope { kind, place, known, .. } => {
                        self.tally.listed(&self.store);
                        configured |= *kind == placements();
                        let at_center = *place == view() || Servers::of(&ClusterId(place.0.clone())) == 0;
                        self.noticed_the_past |= at_center && *known == Err(Doubt::WentBack);
                    }
                }
            }
            news = more;
        }
        if configured {
            self.configuration_changed(now);
        }
    }

    /// Whether all of the configuration is known and none of it in doubt.
    pub(crate) fn configuration_is_complete(&self) -> bool {
        let range = self.store.range(&workload(), &placements(), None);
        range.is_ok_and(|range| range.missing().is_ok() && range.doubtful().next().is_none())
    }

    fn configuration_changed(&mut self, now: u64) {
        self.configuration.revision += 1;
        // What is new or changed is taken at once, whatever is in doubt besides; what is gone needs a look.
        self.configure_present();
        if self.configuration_is_complete() {
            self.configuration.look_at = Some(now);
        } else if self.mutations.doubt_taken_for_empty {
            self.take_configuration(self.configuration.revision);
            return;
        }
        if self.configuration.known && !self.mutations.configuration_known_early {
            self.configuration.known = false;
            self.engine.configuration_known(None);
        }
    }

    fn configure_present(&mut self) -> Vec<Name> {
        let Ok(range) = self.store.range(&workload(), &placements(), None) else { return Vec::new() };
        let routes: Vec<_> = range.map(|placement| route_of(placement, self.waits, self.manners)).collect();
        let mut present = Vec::new();
        for route in routes {
            let id = route.head().id.clone();
            present.push(id.0.clone());
            let known = self.routes.get(&id.0).map(|route| route.head().configuration);
            if known != Some(route.head().configuration) {
                let route = Arc::new(route);
                self.routes.insert(id.0.clone(), Arc::clone(&route));
                self.tally.learned();
                self.engine.configure(&self.store, &id, Some(route));
            }
        }
        present
    }

    fn take_configuration(&mut self, revision: u64) {
        let present = self.configure_present();
        let gone: Vec<Name> = self.routes.keys().filter(|name| !present.contains(name)).cloned().collect();
        for name in gone {
            self.routes.remove(&name);
            self.tally.learned();
            self.engine.configure(&self.store, &RouteId(name), None);
        }
        (self.configuration.known, self.configuration.was_known) = (true, true);
        self.configuration.taken_of = self.built_on().configuration;
        self.engine.configuration_known(Some(revision));
    }
}

fn is_of_the_past(doubt: Doubt) -> bool {
    matches!(doubt, Doubt::OlderThanKnown | Doubt::WentBack)
}

/// The one server of all workspaces.
fn center() -> Name {
    Name::new("center")
}

fn endpoint() -> EndpointId {
    EndpointId::new("one")
}

fn clock(now: u64) -> Now {
    Now { mono: Moment(now), wall_seconds: now / 1_000 }
}
