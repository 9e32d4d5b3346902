//! Followers between model servers and a store, driven by hand: every fetch, fault and line is a step.

use std::collections::BTreeMap;
use std::time::Duration;

use mailboat_object::key::{ClusterId, Key, Name, Version};
use mailboat_object::object::{Keep, Limits};
use mailboat_object::select::{LabelSelector, Operator, Requirement};
use mailboat_object::wire::{Fault, FaultKind};
use mailboat_store::{
    Definition, Doubt, EndpointId, Engagement, FeedId, Fetch, Filter, Follower, Gone, Input, Nature, News,
    Now, PlaceId, Seen, Settings, Store,
};

use crate::fold::Fold;
use crate::server::{Answer, Server, bookmark, configmaps};

/// How the servers are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// One cluster, whole.
    Whole,
    /// One cluster, by label.
    Labels,
    /// Many workspaces on two shards, through a view.
    View,
}

/// One follower and what the wire to its server carries.
pub struct Wire {
    pub follower: Follower,
    pub server: usize,
    /// A watch is open and has been sent everything up to this version.
    pub open: Option<u64>,
    /// Which life of the server it last heard of.
    pub life: u32,
    pub last_line: Option<Vec<u8>>,
    /// The highest version that it has been told of in this life of the server.
    pub heard: u64,
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

pub fn feed_id(server: usize) -> FeedId {
    FeedId { place: place(), endpoint: endpoint(server), kind: configmaps() }
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
        Self::with(mode, &Settings { page_limit: 2, ..Settings::default() })
    }

    pub fn with(mode: Mode, settings: &Settings) -> Self {
        let shards = if mode == Mode::View { 2 } else { 1 };
        let (nature, filter) = match mode {
            Mode::Whole => (Nature::Whole(ClusterId::new("one")), Filter::All),
            Mode::Labels => (Nature::Whole(ClusterId::new("one")), labels()),
            Mode::View => (Nature::View, Filter::All),
        };
        let mut store = Store::new();
        let mut news = Vec::new();
        store.open(&place(), nature, (0..shards).map(endpoint), &mut news);
        let wires = (0..shards)
            .map(|server| {
                let definition = definition(filter.clone());
                let seed = server as u64;
                let follower =
                    Follower::new(feed_id(server), definition, settings.clone(), seed, &mut store, &mut news);
                Wire { follower: follower.unwrap(), server, open: None, life: 0, last_line: None, heard: 0 }
            })
            .collect();
        let servers = (0..shards).map(|_| Server::new(mode == Mode::View, mode == Mode::Labels)).collect();
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
        let server = &self.servers[self.wires[wire].server];
        match self.wires[wire].follower.next(self.now) {
            Fetch::List { limit, continue_token, .. } => {
                let answer = server.list(limit as usize, continue_token.as_deref());
                if matches!(answer, Answer::Page(_)) {
                    let version = if continue_token.is_none() { server.version } else { 0 };
                    self.told(wire, version);
                }
                self.answer(wire, answer);
            }
            Fetch::Probe { .. } => {
                let answer = server.list(1, None);
                self.told(wire, 0);
                self.answer(wire, answer);
            }
            Fetch::Watch { from, .. } => match self.wires[wire].open {
                None => {
                    self.told(wire, from.0);
                    self.wires[wire].open = Some(from.0);
                    self.wires[wire].last_line = None;
                    self.feed(wire, Input::Opened { new_connection: false });
                }
                // kcp: a watch from the future is silent.
                Some(sent) if sent > server.version => return false,
                Some(sent) => {
                    let Some((line, sent)) = server.line_after(sent) else { return false };
                    self.told(wire, sent);
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
        let heard = if wire.life == life { wire.heard } else { 0 };
        (wire.life, wire.heard) = (life, heard.max(version));
    }

    fn answer(&mut self, wire: usize, answer: Answer) {
        match answer {
            Answer::Page(page) => self.feed(wire, Input::Page(&page)),
            Answer::Expired => {
                let fault = Fault::new(FaultKind::Expired, "the provided continue parameter is too old");
                self.feed(wire, Input::Fault(&fault));
            }
        }
    }

    /// The connection breaks.
    pub fn cut(&mut self, wire: usize) {
        self.wires[wire].follower.next(self.now);
        self.feed(wire, Input::Fault(&lost()));
        self.wires[wire].open = None;
    }

    pub fn bookmark(&mut self, wire: usize) {
        let version = self.servers[self.wires[wire].server].version;
        if self.wires[wire].open.is_some_and(|sent| sent <= version)
            && self.servers[self.wires[wire].server].line_after(self.wires[wire].open.unwrap()).is_none()
        {
            self.wires[wire].open = Some(version);
            self.told(wire, version);
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

    pub fn engage(&mut self, cluster: &str, since: Option<u64>) {
        let shard = usize::from(cluster == "three") % self.servers.len();
        let endpoint = Some(endpoint(shard));
        let engagement = since.map(|since| Engagement { identity: None, since: Version(since), endpoint });
        self.engage_as(cluster, engagement);
    }

    pub fn withdraw(&mut self, cluster: &str, at: u64) {
        let mut out = Vec::new();
        self.store.withdraw(&place(), &ClusterId::new(cluster), &configmaps(), Version(at), &mut out);
        self.hear(out);
    }

    pub fn engage_as(&mut self, cluster: &str, engagement: Option<Engagement>) {
        let mut out = Vec::new();
        self.store.engage(&place(), &ClusterId::new(cluster), &configmaps(), engagement, &mut out);
        self.hear(out);
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
            News::Scope { cluster, known, .. } => Some((cluster.as_ref().map(ToString::to_string), *known)),
            News::Object(_) => None,
        };
        self.news[point..].iter().filter_map(scope).collect()
    }

    /// The object changes heard since a point: name, version before, what is known now, live.
    pub fn changes_since(&self, point: usize) -> Vec<(String, Option<u64>, Known, bool)> {
        let change = |news: &News| match news {
            News::Object(change) => {
                let now = match &change.now {
                    Seen::Present(object) => Known::Present(object.version.0),
                    Seen::Absent(absence) => Known::Absent(absence.how()),
                    Seen::Unknown(doubt) => Known::Unknown(*doubt),
                };
                let before = change.before.as_ref().map(|object| object.version.0);
                Some((change.key.name.to_string(), before, now, change.live))
            }
            News::Scope { .. } => None,
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
