//! Followers between model servers and a store, driven by hand: every fetch, fault and line is a step.

use std::collections::BTreeMap;
use std::time::Duration;

use mailboat_object::key::{ClusterId, Key, Name};
use mailboat_object::object::{Keep, Limits};
use mailboat_object::select::{LabelSelector, Operator, Requirement};
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{
    Definition, Doubt, EndpointId, FeedId, Fetch, Filter, Follower, Gone, Input, Nature, News, Now, PlaceId,
    Seen, Settings, Store,
};

use crate::fold::Fold;
use crate::server::{Answer, Asked, Server, View, bindings, bookmark, configmaps};

/// How the servers are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// One cluster, whole.
    Whole,
    /// One cluster, by label.
    Labels,
    /// One workspace of kcp, whole, with its bindings.
    Workspace,
    /// Many workspaces on two shards, through the view of an export that brings the kind.
    View,
    /// The same, through the view of an export that claims it.
    Claims,
}

impl Mode {
    pub fn is_view(self) -> bool {
        matches!(self, Self::View | Self::Claims)
    }

    fn sort(self) -> Option<View> {
        match self {
            Self::View => Some(View::Bound),
            Self::Claims => Some(View::Claimed),
            Self::Whole | Self::Labels | Self::Workspace => None,
        }
    }
}

/// One follower and what the wire to its server carries.
pub struct Wire {
    pub follower: Follower,
    pub asked: Asked,
    pub server: usize,
    /// A watch is open and has been sent everything up to this version.
    pub open: Option<u64>,
    /// Which life of the server it last heard of.
    pub life: u32,
    pub last_line: Option<Vec<u8>>,
    /// The highest version that it has been told of in this life of the server.
    pub heard: u64,
    /// The version up to which it has read everything, in this life of the server.
    pub read: u64,
}

pub struct Rig {
    pub mode: Mode,
    pub store: Store,
    pub servers: Vec<Server>,
    pub wires: Vec<Wire>,
    pub now: Now,
    pub fold: Fold,
    /// News of all time, for tests that look at them.
    pub news: Vec<News>,
}

pub fn place() -> PlaceId {
    PlaceId::new("harbor")
}

pub fn endpoint(server: usize) -> EndpointId {
    EndpointId::new(&format!("shard-{server}"))
}

pub fn feed_id(asked: Asked, server: usize) -> FeedId {
    let kind = match asked {
        Asked::Maps => configmaps(),
        Asked::Bindings => bindings(),
    };
    FeedId { place: place(), endpoint: endpoint(server), kind }
}

pub fn labels() -> Filter {
    let tier = Requirement::new("tier", Operator::In, ["edge".to_owned()]);
    Filter::Labels(LabelSelector::new([tier.unwrap()]))
}

pub fn definition(filter: Filter) -> Definition {
    Definition {
        api_version: Name::new("v1"),
        kind_name: Name::new("ConfigMap"),
        manager: Name::EMPTY,
        filter,
        keep: Keep::Whole,
        limits: Limits::default(),
    }
}

pub fn lost() -> Fault {
    Fault::new(FaultKind::Away, "connection refused")
}

impl Rig {
    pub fn new(mode: Mode) -> Self {
        Self::with(mode, &Settings { page_limit: (2, 2), ..Settings::default() })
    }

    pub fn with(mode: Mode, settings: &Settings) -> Self {
        let shards = if mode.is_view() { 2 } else { 1 };
        let (nature, filter) = match mode {
            Mode::Whole | Mode::Workspace => (Nature::Whole(ClusterId::new("one")), Filter::All),
            Mode::Labels => (Nature::Whole(ClusterId::new("one")), labels()),
            Mode::View | Mode::Claims => (Nature::View, Filter::All),
        };
        let mut store = Store::new();
        let mut news = Vec::new();
        store.open(&place(), nature, (0..shards).map(endpoint), &mut news);
        let kinds: &[Asked] = match mode {
            Mode::Whole | Mode::Labels => &[Asked::Maps],
            Mode::Workspace | Mode::View | Mode::Claims => &[Asked::Maps, Asked::Bindings],
        };
        let mut wires = Vec::new();
        for asked in kinds {
            for server in 0..shards {
                let mut definition = definition(filter.clone());
                if *asked == Asked::Bindings {
                    // What they say is taken in when they are shown, however little is kept.
                    definition.keep = Keep::Head;
                }
                let (id, seed) = (feed_id(*asked, server), server as u64);
                let follower =
                    Follower::new(id, definition, settings.clone(), seed, &mut store, &mut news).unwrap();
                let (open, last_line) = (None, None);
                wires.push(Wire {
                    follower,
                    asked: *asked,
                    server,
                    open,
                    life: 0,
                    last_line,
                    heard: 0,
                    read: 0,
                });
            }
        }
        let servers = (0..shards).map(|_| Server::new(mode.sort(), mode == Mode::Labels)).collect();
        let fold = Fold::new(mode);
        let mut rig = Self { mode, store, servers, wires, now: Now::default(), fold, news: Vec::new() };
        rig.hear(news);
        rig
    }

    /// Takes in news: the replica that knows nothing else must follow.
    pub fn hear(&mut self, news: Vec<News>) {
        for line in &news {
            self.fold.take(line);
        }
        self.news.extend(news);
    }

    pub fn feed(&mut self, wire: usize, input: Input<'_>) {
        let mut out = Vec::new();
        let follower = &mut self.wires[wire].follower;
        let turn = follower.turn();
        follower.feed(self.now, turn, input, &mut self.store, &mut out);
        if self.wires[wire].follower.turn() != turn {
            self.wires[wire].open = None;
        }
        self.hear(out);
    }

    /// One step of I/O: a page, the opening of a watch, or one of its lines. False if there is nothing to do but
    /// wait for the server or the clock.
    pub fn step(&mut self, wire: usize) -> bool {
        self.nudge();
        let asked = self.wires[wire].asked;
        let server = &self.servers[self.wires[wire].server];
        match self.wires[wire].follower.next(self.now) {
            Fetch::List { limit, continue_token, .. } => {
                let answer = server.list(asked, limit as usize, continue_token.as_deref());
                if matches!(answer, Answer::Page(_)) {
                    let version = if continue_token.is_none() { server.version } else { 0 };
                    self.told(wire, version);
                }
                self.answer(wire, answer);
            }
            Fetch::Probe { .. } => {
                let answer = server.list(asked, 1, None);
                self.told(wire, 0);
                self.answer(wire, answer);
            }
            Fetch::Watch { .. } if asked == Asked::Maps && server.unserved => {
                self.answer(wire, Answer::Unserved);
            }
            Fetch::Watch { from, .. } => match self.wires[wire].open {
                None => {
                    self.told_all(wire, from.0);
                    self.wires[wire].open = Some(from.0);
                    self.wires[wire].last_line = None;
                    self.feed(wire, Input::Opened { new_connection: false });
                }
                // kcp: a watch from the future is silent.
                Some(sent) if sent > server.version => return false,
                Some(sent) => {
                    let Some((line, sent)) = server.line_after(asked, sent) else { return false };
                    self.told_all(wire, sent);
                    self.wires[wire].open = Some(sent);
                    self.wires[wire].last_line = Some(line.clone());
                    self.feed(wire, Input::Line(&line));
                }
            },
            Fetch::WaitUntil(_) | Fetch::Stopped => return false,
        }
        true
    }

    /// The follower hears from its server as it is now.
    fn told(&mut self, wire: usize, version: u64) {
        let wire = &mut self.wires[wire];
        let life = self.servers[wire.server].restored;
        if wire.life != life {
            (wire.life, wire.heard, wire.read) = (life, 0, 0);
        }
        wire.heard = wire.heard.max(version);
    }

    /// The same, and nothing up to this version is left to be heard.
    fn told_all(&mut self, wire: usize, version: u64) {
        self.told(wire, version);
        self.wires[wire].read = version;
    }

    fn answer(&mut self, wire: usize, answer: Answer) {
        match answer {
            Answer::Page(page) => self.feed(wire, Input::Page(&page)),
            Answer::Expired => {
                let fault = Fault::new(FaultKind::Expired, "the provided continue parameter is too old");
                self.feed(wire, Input::Fault(&fault));
            }
            Answer::Unserved => {
                let fault = Fault::new(FaultKind::Unserved, "404 page not found");
                self.feed(wire, Input::Fault(&fault));
            }
        }
    }

    /// Tells the followers that the store wants listed anew.
    pub fn nudge(&mut self) {
        for id in self.store.take_relists() {
            if let Some(wire) = self.wires.iter().position(|wire| *wire.follower.id() == id) {
                self.feed(wire, Input::Tick);
            }
        }
    }

    /// The wire that reads the bindings of a shard.
    pub fn bindings_wire(&self, server: usize) -> usize {
        self.servers.len() + server
    }

    /// Reads what a shard has to say of its bindings.
    pub fn read_bindings(&mut self, server: usize) {
        self.read(self.bindings_wire(server));
    }

    /// Reads what there is to read now.
    pub fn read(&mut self, wire: usize) {
        while self.step(wire) {}
    }

    /// The connection breaks.
    pub fn cut(&mut self, wire: usize) {
        self.wires[wire].follower.next(self.now);
        self.feed(wire, Input::Fault(&lost()));
        self.wires[wire].open = None;
    }

    pub fn bookmark(&mut self, wire: usize) {
        let (server, asked) = (&self.servers[self.wires[wire].server], self.wires[wire].asked);
        let version = server.version;
        let read = |sent: u64| sent <= version && server.line_after(asked, sent).is_none();
        if self.wires[wire].open.is_some_and(read) {
            self.wires[wire].open = Some(version);
            self.told_all(wire, version);
            self.feed(wire, Input::Line(&bookmark(version)));
        }
    }

    pub fn wait(&mut self, duration: Duration) {
        self.now.mono = self.now.mono + duration;
    }

    /// Runs everything until no server has anything left to say.
    pub fn quiet(&mut self) {
        for _ in 0..2_000 {
            let mut busy = false;
            for wire in 0..self.wires.len() {
                while self.step(wire) {
                    busy = true;
                }
                if let Fetch::WaitUntil(until) = self.wires[wire].follower.next(self.now) {
                    self.now.mono = self.now.mono.max(until);
                    busy = true;
                }
            }
            if !busy {
                for wire in 0..self.wires.len() {
                    self.bookmark(wire);
                }
                return;
            }
        }
        panic!("never quiet: {:?}", self.wires.iter().map(|wire| &wire.follower).collect::<Vec<_>>());
    }

    pub fn confirm_all(&mut self) {
        let mut out = Vec::new();
        self.store.confirm_all(&place(), &configmaps(), &mut out);
        self.hear(out);
    }

    /// What is known of an object, in a word.
    pub fn seen(&self, key: &Key) -> Known {
        match self.store.get(key) {
            Seen::Present(object) => Known::Present(object.version.0),
            Seen::Absent(absence) => Known::Absent(absence.how()),
            Seen::Unknown(doubt) => Known::Unknown(doubt),
        }
    }

    /// The scope lines heard since a point, without their places.
    pub fn scopes_since(&self, point: usize) -> Vec<(Option<String>, Result<(), Doubt>)> {
        let scope = |news: &News| match news {
            News::Scope { cluster, known, kind, .. } if *kind == configmaps() => {
                Some((cluster.as_ref().map(ToString::to_string), *known))
            }
            News::Scope { .. } | News::Object(_) | News::CaughtUp { .. } | News::Stalled { .. } => None,
        };
        self.news[point..].iter().filter_map(scope).collect()
    }

    /// The object changes heard since a point: name, version before, what is known now, live.
    pub fn changes_since(&self, point: usize) -> Vec<(String, Option<u64>, Known, bool)> {
        let change = |news: &News| match news {
            News::Object(change) if change.key.kind == configmaps() => {
                let now = match &change.now {
                    Seen::Present(object) => Known::Present(object.version.0),
                    Seen::Absent(absence) => Known::Absent(absence.how()),
                    Seen::Unknown(doubt) => Known::Unknown(*doubt),
                };
                let before = change.before.as_ref().map(|object| object.version.0);
                Some((change.key.name.to_string(), before, now, change.live))
            }
            News::Scope { .. } | News::Object(_) | News::CaughtUp { .. } | News::Stalled { .. } => None,
        };
        self.news[point..].iter().filter_map(change).collect()
    }

    /// The versions of all objects that the store holds to be present.
    pub fn present(&self) -> BTreeMap<Key, u64> {
        self.store
            .across(&place(), &configmaps())
            .map(|object| (object.key.clone(), object.version.0))
            .collect()
    }
}

/// What is known, for assertions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    Present(u64),
    Absent(Gone),
    Unknown(Doubt),
}
