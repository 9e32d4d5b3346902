//! Clusters, followers, a store and the engine, joined by a loop without a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_engine::engine::{Engine, Next, Options, Ticket};
use mailboat_engine::look::{Look, Serving, Sighted};
use mailboat_engine::mark::{Marks, OwnerId};
use mailboat_engine::route::{Destination, DestinationId};
use mailboat_object::key::{ClusterId, Key, KindId, Name, Uid, Version};
use mailboat_object::object::{Keep, Limits};
use mailboat_object::wire::{Abilities, Call, Fault, FaultKind, Verb};
use mailboat_store::interest::{EndpointId, FeedId, Filter, PlaceId};
use mailboat_store::seen::News;
use mailboat_store::store::{Nature, Store};
use mailboat_store::time::{Moment, Now};
use mailboat_store::{Definition, Fetch, Follower, Input, Settings};
use serde_json::{Value, json};

use crate::roles::marks;
use crate::server::{Link, Server, key};

pub(crate) struct World {
    pub(crate) servers: BTreeMap<ClusterId, Server>,
    pub(crate) store: Store,
    followers: BTreeMap<(ClusterId, KindId), Follower>,
    pub(crate) engine: Engine,
    pub(crate) now: u64,
    /// Every call that was not a dry run and that a server accepted.
    pub(crate) writes: Vec<Call>,
    /// What a fresh look finds besides the object itself.
    pub(crate) workspace_lives: bool,
    pub(crate) kind: Serving,
    /// What is followed by our own label only.
    labelled: BTreeSet<(ClusterId, KindId)>,
    /// How much is kept of what is followed from now on.
    pub(crate) keep: Keep,
    /// Calls that no server answered.
    pub(crate) unanswered: Vec<Ticket>,
    /// The changes that calls carried on: of what, and at which version.
    pub(crate) carried: Vec<(Key, Version)>,
}

impl World {
    pub(crate) fn new(clusters: &[&str]) -> Self {
        let mut world = Self {
            servers: BTreeMap::new(),
            store: Store::new(),
            followers: BTreeMap::new(),
            engine: new_engine(),
            now: 1_000,
            writes: Vec::new(),
            workspace_lives: true,
            kind: Serving::Itself,
            labelled: BTreeSet::new(),
            keep: Keep::Whole,
            unanswered: Vec::new(),
            carried: Vec::new(),
        };
        for (number, cluster) in clusters.iter().enumerate() {
            world.servers.insert(ClusterId::new(cluster), Server::default());
            world.introduce(number, cluster);
        }
        world
    }

    /// Another cluster is there from now on, as a destination of this number.
    pub(crate) fn join(&mut self, number: u32, cluster: &str) {
        self.servers.insert(ClusterId::new(cluster), Server::default());
        self.introduce(number as usize, cluster);
    }

    fn introduce(&mut self, number: usize, cluster: &str) {
        let id = ClusterId::new(cluster);
        self.store.open(
            &PlaceId::new(cluster),
            Nature::Whole(id.clone()),
            [EndpointId::new("one")],
            &mut Vec::new(),
        );
        self.engine.cluster(id.clone(), Abilities { apply: true, whole: true });
        let number = DestinationId(u32::try_from(number).unwrap());
        self.engine.destination(Destination { id: number, cluster: id });
    }

    /// The process ends and starts again: nothing is left but what stands on the servers.
    pub(crate) fn restart(&mut self, kinds: &[&str]) {
        self.restart_following(|_| kinds.to_vec());
    }

    /// The same, following other kinds in each cluster.
    pub(crate) fn restart_following<'k>(&mut self, kinds: impl Fn(&str) -> Vec<&'k str>) {
        self.store = Store::new();
        self.engine = new_engine();
        self.followers.clear();
        self.labelled.clear();
        self.writes.clear();
        let clusters: Vec<ClusterId> = self.servers.keys().cloned().collect();
        for (number, cluster) in clusters.iter().enumerate() {
            self.introduce(number, cluster.0.as_str());
        }
        for server in self.servers.values_mut() {
            server.events.clear();
        }
        for cluster in clusters {
            for kind in kinds(cluster.0.as_str()) {
                self.follow(cluster.0.as_str(), kind);
            }
        }
    }

    /// The process starts again, and what it lists comes in another order: cluster by cluster, kind by kind, and object by object.
    pub(crate) fn restart_in(&mut self, order: &mut Order, kinds: &[&str]) {
        self.restart(&[]);
        let clusters: Vec<ClusterId> = self.servers.keys().cloned().collect();
        let mut feeds: Vec<_> =
            clusters.iter().flat_map(|at| kinds.iter().map(move |kind| (at, *kind))).collect();
        order.shuffle(&mut feeds);
        for (cluster, kind) in feeds {
            let cluster = cluster.0.as_str();
            self.begin_to_follow(cluster, kind, Filter::All);
            let id = key(cluster, kind, "", "");
            let mut page = self.servers[&id.cluster].list(&id.kind);
            order.shuffle(page["items"].as_array_mut().unwrap());
            self.feed(cluster, kind, Input::Page(page.to_string().as_bytes()));
            self.watch(cluster, kind);
        }
    }

    /// Follows a kind in a cluster from now on, and lists it.
    pub(crate) fn follow(&mut self, cluster: &str, kind: &str) {
        self.begin_to_follow(cluster, kind, Filter::All);
        let page = self.servers[&ClusterId::new(cluster)].list(&key(cluster, kind, "", "").kind).to_string();
        self.feed(cluster, kind, Input::Page(page.as_bytes()));
        self.watch(cluster, kind);
    }

    /// Follows what bears our own label, and nothing else of a kind.
    pub(crate) fn follow_labelled(&mut self, cluster: &str, kind: &str) {
        let ours = Filter::Labels("mailboat.dev/owner=test".parse().unwrap());
        self.begin_to_follow(cluster, kind, ours);
        let id = key(cluster, kind, "", "");
        let mut page = self.servers[&id.cluster].list(&id.kind);
        page["items"].as_array_mut().unwrap().retain(bears_our_label);
        self.feed(cluster, kind, Input::Page(page.to_string().as_bytes()));
        self.watch(cluster, kind);
        self.labelled.insert((id.cluster, id.kind));
    }

    /// Follows a kind in a cluster from now on; its first list is asked for and not answered yet.
    pub(crate) fn begin_to_follow(&mut self, cluster: &str, kind: &str, filter: Filter) {
        let id = key(cluster, kind, "", "");
        let endpoint = EndpointId::new("one");
        let feed = FeedId { place: PlaceId::new(cluster), endpoint, kind: id.kind.clone() };
        let definition = Definition {
            api_version: Name::new("v1"),
            kind_name: Name::new("Thing"),
            manager: Name::new("mailboat-test"),
            filter,
            keep: self.keep,
            limits: Limits::default(),
        };
        let mut news = Vec::new();
        let mut follower =
            Follower::new(feed, definition, Settings::default(), 1, &mut self.store, &mut news).unwrap();
        assert!(matches!(follower.next(self.clock()), Fetch::List { .. }));
        self.followers.insert((id.cluster, id.kind), follower);
        self.tell(&news);
    }

    /// The first page of a list, with so many objects; more follow.
    pub(crate) fn first_page(&mut self, cluster: &str, kind: &str, objects: usize) {
        let id = key(cluster, kind, "", "");
        let mut page = self.servers[&id.cluster].list(&id.kind);
        page["items"].as_array_mut().unwrap().truncate(objects);
        page["metadata"]["continue"] = json!("more");
        self.feed(cluster, kind, Input::Page(page.to_string().as_bytes()));
        let now = self.clock();
        let follower = self.followers.get_mut(&(id.cluster, id.kind)).unwrap();
        assert!(matches!(follower.next(now), Fetch::List { .. }), "more pages are asked for");
    }

    /// The last page of a list that left so many objects to it; then its watch begins.
    pub(crate) fn last_page(&mut self, cluster: &str, kind: &str, shown: usize) {
        let id = key(cluster, kind, "", "");
        let mut page = self.servers[&id.cluster].list(&id.kind);
        page["items"].as_array_mut().unwrap().drain(..shown);
        self.feed(cluster, kind, Input::Page(page.to_string().as_bytes()));
        self.watch(cluster, kind);
    }

    fn watch(&mut self, cluster: &str, kind: &str) {
        let id = key(cluster, kind, "", "");
        let now = self.clock();
        let follower = self.followers.get_mut(&(id.cluster.clone(), id.kind.clone())).unwrap();
        assert!(matches!(follower.next(now), Fetch::Watch { .. }));
        self.feed(cluster, kind, Input::Opened { new_connection: false });
        self.servers.get_mut(&id.cluster).unwrap().events.retain(|(key, ..)| key.kind != id.kind);
    }

    /// The link to a cluster is lost: its watch breaks off.
    pub(crate) fn lose(&mut self, cluster: &str, kind: &str) {
        let fault = Fault::new(FaultKind::Away, "connection reset");
        self.feed(cluster, kind, Input::Fault(&fault));
    }

    /// A kind is not served any more: all that is known of it is in doubt.
    pub(crate) fn unserve(&mut self, cluster: &str, kind: &str) {
        let fault = Fault::new(FaultKind::Unserved, "404 page not found");
        self.feed(cluster, kind, Input::Fault(&fault));
    }

    /// A watch cannot go on: the server has forgotten what it would have to tell.
    pub(crate) fn expire(&mut self, cluster: &str, kind: &str) {
        let fault = Fault::new(FaultKind::Expired, "too old resource version");
        self.feed(cluster, kind, Input::Fault(&fault));
    }

    /// The link is back: the follower probes, and resumes or lists.
    pub(crate) fn find_again(&mut self, cluster: &str, kind: &str) {
        let id = key(cluster, kind, "", "");
        self.now += 60_000;
        for _ in 0..3 {
            let now = self.clock();
            let page = self.servers[&id.cluster].list(&id.kind).to_string();
            let follower = self.followers.get_mut(&(id.cluster.clone(), id.kind.clone())).unwrap();
            match follower.next(now) {
                Fetch::List { .. } | Fetch::Probe { .. } => {
                    self.feed(cluster, kind, Input::Page(page.as_bytes()));
                }
                _ => self.feed(cluster, kind, Input::Opened { new_connection: false }),
            }
        }
    }

    fn feed(&mut self, cluster: &str, kind: &str, input: Input<'_>) {
        let id = key(cluster, kind, "", "");
        let now = self.clock();
        let mut news = Vec::new();
        let follower = self.followers.get_mut(&(id.cluster, id.kind)).unwrap();
        let turn = follower.turn();
        follower.feed(now, turn, input, &mut self.store, &mut news);
        self.tell(&news);
    }

    fn clock(&self) -> Now {
        Now { mono: Moment(self.now), wall_seconds: self.now / 1000 }
    }

    fn tell(&mut self, news: &[News]) {
        for piece in news {
            self.engine.observe(&self.store, piece);
        }
    }

    /// Watch events reach the store.
    fn deliver_events(&mut self) {
        let mut news = Vec::new();
        for (cluster, server) in self.servers.iter_mut().filter(|(_, server)| !server.silent) {
            for (key, kind, object) in std::mem::take(&mut server.events) {
                if self.labelled.contains(&(cluster.clone(), key.kind.clone())) && !bears_our_label(&object) {
                    continue;
                }
                if let Some(follower) = self.followers.get_mut(&(cluster.clone(), key.kind)) {
                    let line = json!({ "type": kind, "object": object }).to_string();
                    let now = Now { mono: Moment(self.now), wall_seconds: 0 };
                    let turn = follower.turn();
                    follower.feed(now, turn, Input::Line(line.as_bytes()), &mut self.store, &mut news);
                }
            }
        }
        self.tell(&news);
    }

    /// Runs until nothing is left to do; time goes on only while everything waits.
    pub(crate) fn run(&mut self) {
        for _ in 0..200_000 {
            self.deliver_events();
            match self.engine.next(self.now, &self.store) {
                Next::Again => {}
                Next::Idle => return,
                Next::WaitUntil(at) if at > self.now + 600_000 => return,
                Next::WaitUntil(at) => self.now = at.max(self.now + 1),
                Next::Look(ticket, source) => self.look(ticket, &source),
                Next::Call(ticket, call) => self.answer(ticket, call),
            }
        }
        panic!(
            "the engine does not come to rest; its last calls: {:?}",
            self.writes.iter().rev().take(5).collect::<Vec<_>>()
        );
    }

    /// Runs until nothing is left to do. Calls are under way together, and reach their servers in an order of their own.
    pub(crate) fn run_in(&mut self, order: &mut Order) {
        let mut under_way = Vec::new();
        for _ in 0..200_000 {
            self.deliver_events();
            let next = self.engine.next(self.now, &self.store);
            let waits = matches!(next, Next::Idle | Next::WaitUntil(_));
            match next {
                Next::Look(..) | Next::Call(..) => under_way.push(next),
                Next::Idle if under_way.is_empty() => return,
                Next::WaitUntil(at) if under_way.is_empty() && at > self.now + 600_000 => return,
                Next::WaitUntil(at) if under_way.is_empty() => self.now = at.max(self.now + 1),
                Next::Again | Next::Idle | Next::WaitUntil(_) => {}
            }
            if !under_way.is_empty() && (waits || order.below(3) == 0) {
                match under_way.swap_remove(order.below(under_way.len())) {
                    Next::Look(ticket, source) => self.look(ticket, &source),
                    Next::Call(ticket, call) => self.answer(ticket, call),
                    other => panic!("{other:?} is not under way"),
                }
            }
        }
        panic!("the engine does not come to rest");
    }

    /// Runs for so long at most, for what never comes to rest by itself.
    pub(crate) fn run_for(&mut self, milliseconds: u64) {
        let end = self.now + milliseconds;
        while self.now < end {
            self.deliver_events();
            match self.engine.next(self.now, &self.store) {
                Next::Again => {}
                Next::Idle => return,
                Next::WaitUntil(at) => self.now = at.max(self.now + 1).min(end),
                Next::Look(ticket, source) => self.look(ticket, &source),
                Next::Call(ticket, call) => self.answer(ticket, call),
            }
        }
    }

    /// Runs until something is called for the first time, and lets something happen while that is under way.
    pub(crate) fn run_until_call(&mut self, meanwhile: impl FnOnce(&mut Self)) {
        loop {
            self.deliver_events();
            match self.engine.next(self.now, &self.store) {
                Next::Again => {}
                Next::Call(ticket, call) => {
                    let reply = self.servers.get_mut(&call.key.cluster).unwrap().call(&call);
                    meanwhile(self);
                    self.deliver_events();
                    drop(self.engine.done(self.now, &self.store, ticket, reply));
                    return;
                }
                other => panic!("nothing is called: {other:?}"),
            }
        }
    }

    /// Runs until a source is looked at for the first time, and lets something happen while that is under way.
    pub(crate) fn run_until_look(&mut self, meanwhile: impl FnOnce(&mut Self)) {
        loop {
            self.deliver_events();
            match self.engine.next(self.now, &self.store) {
                Next::Again => {}
                Next::Look(ticket, source) => {
                    meanwhile(self);
                    return self.look(ticket, &source);
                }
                other => panic!("nothing is looked at: {other:?}"),
            }
        }
    }

    /// Runs until a source is looked at for the first time, and lets something happen between what is found and its answer.
    pub(crate) fn run_until_found(&mut self, meanwhile: impl FnOnce(&mut Self)) {
        loop {
            self.deliver_events();
            match self.engine.next(self.now, &self.store) {
                Next::Again => {}
                Next::Look(ticket, source) => {
                    let found = self.find(&source);
                    meanwhile(self);
                    return self.engine.looked(self.now, ticket, found);
                }
                other => panic!("nothing is looked at: {other:?}"),
            }
        }
    }

    fn look(&mut self, ticket: Ticket, source: &Key) {
        let found = self.find(source);
        self.engine.looked(self.now, ticket, found);
    }

    fn find(&mut self, source: &Key) -> Result<Look, Fault> {
        let server = self.servers.get_mut(&source.cluster).unwrap();
        if server.link == Link::Away {
            server.refusals += 1;
            return Err(Fault::new(FaultKind::Away, "connection refused"));
        }
        Ok(Look {
            object: match self.object(source) {
                None => Sighted::Missing,
                Some(object) if object["metadata"]["deletionTimestamp"].is_null() => Sighted::There,
                Some(object) => {
                    Sighted::Ending(Uid::parse(object["metadata"]["uid"].as_str().unwrap_or_default()))
                }
            },
            workspace_lives: self.workspace_lives,
            kind: self.kind.clone(),
        })
    }

    fn answer(&mut self, ticket: Ticket, call: Call) {
        let mut next = Some((ticket, call));
        while let Some((ticket, call)) = next.take() {
            let cause = self.engine.cause_of(ticket);
            self.carried.extend(cause.map(|cause| (cause.object.clone(), cause.version)));
            let server = self.servers.get_mut(&call.key.cluster).unwrap();
            server.seconds = self.now / 1_000;
            if server.link == Link::Hangs {
                self.unanswered.push(ticket);
                return;
            }
            let reply = server.call(&call);
            let reads = matches!(call.verb, Verb::Get | Verb::GetAt(_));
            if reply.is_ok() && !call.dry_run && !reads {
                self.writes.push(call);
            }
            if let Some(Next::Call(ticket, call)) = self.engine.done(self.now, &self.store, ticket, reply) {
                next = Some((ticket, call));
            }
        }
    }

    /// Calls that no server answered are given up.
    pub(crate) fn give_up(&mut self) {
        self.give_up_as(FaultKind::Retry(None));
    }

    /// The same, with this for an answer.
    pub(crate) fn give_up_as(&mut self, kind: FaultKind) {
        for ticket in std::mem::take(&mut self.unanswered) {
            let fault = Fault::new(kind, "no answer");
            drop(self.engine.done(self.now, &self.store, ticket, Err(fault)));
        }
    }

    pub(crate) fn put(&mut self, key: &Key, object: Value) {
        let server = self.servers.get_mut(&key.cluster).unwrap();
        server.seconds = self.now / 1_000;
        server.put(key, object);
    }

    pub(crate) fn remove(&mut self, key: &Key) {
        self.servers.get_mut(&key.cluster).unwrap().remove(key);
    }

    pub(crate) fn object(&self, key: &Key) -> Option<&Value> {
        self.servers[&key.cluster].objects.get(key)
    }
}

/// An order of things that is drawn from a number.
pub(crate) struct Order(pub(crate) u64);

impl Order {
    /// The next draw: a number below another.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        // Sebastiano Vigna's SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut drawn = self.0;
        drawn = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ (drawn >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((drawn ^ (drawn >> 31)) % below as u64).unwrap()
    }

    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

fn bears_our_label(object: &Value) -> bool {
    object["metadata"]["labels"]["mailboat.dev/owner"] == "test"
}

fn new_engine() -> Engine {
    let marks: Vec<Arc<dyn Marks>> = vec![Arc::new(marks())];
    let options = Options { finalizer: Some(Name::new("mailboat.dev/test")), ..Options::default() };
    Engine::new(OwnerId(Name::new("test")), Name::new("mailboat-test"), marks, options)
}
