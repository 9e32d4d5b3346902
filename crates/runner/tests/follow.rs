//! Followers over a server in memory: what is fetched, what is dropped, what comes out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use mailboat_cluster::lines::Limits as LineLimits;
use mailboat_cluster::{Catalog, Lines, Read, ReadMode, Transport};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::object::Limits;
use mailboat_object::wire::{Abilities, Call, Fault, FaultKind, Reply};
use mailboat_runner::{Followers, Follows};
use mailboat_store::{EndpointId, FeedId, Filter, Keep, Nature, News, PlaceId, Seen, Settings, Store};
use tokio::sync::mpsc;

/// A server whose lists are what it is told to hold, and whose watches say what the test sends.
#[derive(Default)]
struct Server {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Name and version of each object, by kind.
    objects: BTreeMap<KindId, BTreeMap<String, u64>>,
    version: u64,
    catalog: Arc<Catalog>,
    /// What goes into the open watch of each kind.
    watches: BTreeMap<KindId, mpsc::UnboundedSender<Result<Bytes, Fault>>>,
    /// Everything that was asked for.
    log: Vec<String>,
    failing: Option<Fault>,
    stale: usize,
}

impl Server {
    fn serving(kinds: &[&KindId]) -> Arc<Self> {
        let server = Arc::new(Self::default());
        server.state.lock().unwrap().catalog = catalog(kinds);
        server
    }

    fn put(&self, kind: &KindId, name: &str) {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        let version = state.version;
        let known = state.objects.entry(kind.clone()).or_default().insert(name.into(), version).is_some();
        let event = if known { "MODIFIED" } else { "ADDED" };
        let line = format!("{{\"type\":\"{event}\",\"object\":{}}}\n", object(name, version));
        if let Some(watch) = state.watches.get(kind) {
            watch.send(Ok(line.into())).ok();
        }
    }

    fn cut(&self, kind: &KindId) {
        let broken = Fault::new(FaultKind::Retry(None), "the connection broke");
        let watch = self.state.lock().unwrap().watches.remove(kind);
        watch.expect("an open watch").send(Err(broken)).ok();
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().log)
    }

    fn is_watched(&self, kind: &KindId) -> bool {
        self.state.lock().unwrap().watches.get(kind).is_some_and(|watch| !watch.is_closed())
    }
}

fn catalog(kinds: &[&KindId]) -> Arc<Catalog> {
    let kinds = kinds.iter().map(|kind| {
        format!(
            r#"{{"metadata":{{"name":"{}"}},"versions":[{{"version":"v1","resources":[{{"resource":"{}",
                "responseKind":{{"kind":"Thing"}},"scope":"Namespaced","verbs":["list","watch"]}}]}}]}}"#,
            kind.group(),
            kind.resource()
        )
    });
    let list =
        format!(r#"{{"kind":"APIGroupDiscoveryList","items":[{}]}}"#, kinds.collect::<Vec<_>>().join(","));
    Arc::new(mailboat_cluster::catalog::from_aggregated(list.as_bytes()).expect("an aggregated answer"))
}

fn object(name: &str, version: u64) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"till","uid":"{name}","resourceVersion":"{version}","generation":{version}}}}}"#
    )
}

/// The transport is the server itself.
struct Link(Arc<Server>);

impl Transport for Link {
    fn call(&self, _: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
        unreachable!("followers make no calls")
    }

    fn fetch(&self, read: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
        let mut state = self.0.state.lock().unwrap();
        let limits = LineLimits { line_bytes: 1 << 20, whole_bytes: 1 << 20, pause: Duration::from_secs(5) };
        let what = match &read.mode {
            ReadMode::Page { limit, .. } => format!("list {limit}"),
            ReadMode::Watch { from, .. } => format!("watch {from}"),
        };
        state.log.push(format!("{} {what}", read.kind));
        let answer =
            if let Some(fault) = state.failing.clone() {
                Err(fault)
            } else if state.catalog.versions(&read.kind).is_empty() {
                Err(Fault::new(FaultKind::Unserved, "not served"))
            } else if read.is_watch() {
                let (sender, receiver) = mpsc::unbounded_channel();
                state.watches.insert(read.kind.clone(), sender);
                let pieces = stream::unfold(receiver, |mut receiver| async move {
                    Some((receiver.recv().await?, receiver))
                });
                Ok(Lines::new(pieces.boxed(), limits))
            } else {
                let items = state.objects.get(&read.kind).into_iter().flatten();
                let items: Vec<String> = items.map(|(name, version)| object(name, *version)).collect();
                let body = format!(
                    r#"{{"kind":"List","metadata":{{"resourceVersion":"{}"}},"items":[{}]}}"#,
                    state.version,
                    items.join(",")
                );
                Ok(Lines::new(stream::iter([Ok(Bytes::from(body))]).boxed(), limits))
            };
        std::future::ready(answer).boxed()
    }

    fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>> {
        let catalog = self.0.state.lock().unwrap().catalog.clone();
        std::future::ready(Ok(catalog)).boxed()
    }

    fn stale(&self) {
        self.0.state.lock().unwrap().stale += 1;
    }

    fn abilities(&self) -> Abilities {
        Abilities { apply: true, whole: true }
    }
}

struct World {
    followers: Followers,
    link: Arc<dyn Transport>,
    news: Vec<News>,
}

fn things() -> KindId {
    KindId::new("sea.example.com", "boats")
}

fn crds() -> KindId {
    KindId::new("apiextensions.k8s.io", "customresourcedefinitions")
}

fn id(kind: &KindId) -> FeedId {
    FeedId { place: PlaceId::new("here"), endpoint: EndpointId::new("one"), kind: kind.clone() }
}

impl World {
    fn new(server: &Arc<Server>) -> Self {
        let mut store = Store::new();
        let mut news = Vec::new();
        let cluster = ClusterId::new("here");
        store.open(&PlaceId::new("here"), Nature::Whole(cluster), [EndpointId::new("one")], &mut news);
        Self {
            followers: Followers::new(store, Settings::default(), 7),
            link: Arc::new(Link(server.clone())),
            news,
        }
    }

    fn follow(&mut self, kind: &KindId) {
        let follows = Follows {
            id: id(kind),
            filter: Filter::All,
            keep: Keep::Whole,
            manager: Name::EMPTY,
            limits: Limits::default(),
        };
        self.followers.follow(follows, self.link.clone(), &mut self.news).expect("an open place");
    }

    /// Steps until nothing more comes within a moment (of virtual time).
    async fn settle(&mut self) {
        while tokio::time::timeout(Duration::from_millis(1), self.followers.step(&mut self.news))
            .await
            .is_ok()
        {}
    }

    /// Steps for so long (of virtual time).
    async fn run(&mut self, span: Duration) {
        let end = tokio::time::Instant::now() + span;
        while tokio::time::timeout_at(end, self.followers.step(&mut self.news)).await.is_ok() {}
    }

    fn seen(&self, kind: &KindId, name: &str) -> &'static str {
        let key = Key {
            cluster: ClusterId::new("here"),
            kind: kind.clone(),
            namespace: Name::new("till"),
            name: Name::new(name),
        };
        match self.followers.store().get(&key) {
            Seen::Present(_) => "present",
            Seen::Absent(_) => "absent",
            Seen::Unknown(_) => "unknown",
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_listed_once_and_then_watched() {
    let (server, boats) = (Server::serving(&[&things()]), things());
    server.put(&boats, "ferry");
    let mut world = World::new(&server);
    assert_eq!(world.seen(&boats, "ferry"), "unknown", "before anything was read");
    world.follow(&boats);
    world.settle().await;
    assert_eq!((world.seen(&boats, "ferry"), world.seen(&boats, "kayak")), ("present", "absent"));
    assert_eq!(server.log(), ["boats.sea.example.com list 500", "boats.sea.example.com watch 1"]);
    server.put(&boats, "kayak");
    world.settle().await;
    assert_eq!(world.seen(&boats, "kayak"), "present");
    assert_eq!(server.log(), [""; 0], "a live watch asks for nothing");
}

#[tokio::test(start_paused = true)]
async fn the_objects_bear_the_names_that_discovery_gives_their_kind() {
    let (server, boats) = (Server::serving(&[&things()]), things());
    server.put(&boats, "ferry");
    let mut world = World::new(&server);
    world.follow(&boats);
    world.settle().await;
    let all: Vec<String> = world
        .followers
        .store()
        .across(&PlaceId::new("here"), &boats)
        .map(|object| String::from_utf8_lossy(object.json()).into_owned())
        .collect();
    assert!(
        all.len() == 1
            && all[0].contains(r#""apiVersion":"sea.example.com/v1""#)
            && all[0].contains(r#""kind":"Thing""#),
        "{all:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_is_resumed_and_nothing_is_lost_or_absent_meanwhile() {
    let (server, boats) = (Server::serving(&[&things()]), things());
    server.put(&boats, "ferry");
    let mut world = World::new(&server);
    world.follow(&boats);
    world.settle().await;
    server.log();
    server.state.lock().unwrap().failing = Some(Fault::new(FaultKind::Away, "refused"));
    server.cut(&boats);
    world.run(Duration::from_mins(1)).await;
    server.put(&boats, "kayak");
    assert_eq!((world.seen(&boats, "ferry"), world.seen(&boats, "kayak")), ("present", "unknown"));
    let tries = server.log().len();
    assert!((2..=10).contains(&tries), "{tries} tries in a minute of outage");

    server.state.lock().unwrap().failing = None;
    world.run(Duration::from_mins(1)).await;
    let log = server.log();
    assert_eq!(
        log.first().map(String::as_str),
        Some("boats.sea.example.com list 1"),
        "first a probe: {log:?}"
    );
    // The server in memory keeps no history, so what happened meanwhile is shown by a change.
    server.put(&boats, "kayak");
    world.settle().await;
    assert_eq!(world.seen(&boats, "kayak"), "present");
}

#[tokio::test(start_paused = true)]
async fn a_redefined_kind_drops_its_watch_and_is_listed_twice() {
    let (server, boats) = (Server::serving(&[&things()]), things());
    let mut world = World::new(&server);
    world.follow(&boats);
    world.settle().await;
    server.log();
    let before = server.state.lock().unwrap().watches[&boats].clone();
    for _ in 0..5 {
        world.followers.redefine(&PlaceId::new("here"), &boats, &mut world.news);
        world.settle().await;
    }
    assert!(before.is_closed(), "the old watch is dropped");
    assert_eq!(server.log().iter().filter(|line| line.contains("list")).count(), 1, "at once, and once");
    world.run(Duration::from_secs(10)).await;
    assert_eq!(server.log().iter().filter(|line| line.contains("list")).count(), 1, "once more in the end");
    assert!(server.is_watched(&boats));
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_listed_as_soon_as_its_crd_makes_it_served() {
    let (boats, crds) = (things(), crds());
    let server = Server::serving(&[&crds]);
    let mut world = World::new(&server);
    world.follow(&crds);
    world.follow(&boats);
    world.run(Duration::from_mins(5)).await;
    assert_eq!(
        world.seen(&boats, "ferry"),
        "unknown",
        "a kind that is not served says nothing of its objects"
    );

    server.put(&crds, "boats.sea.example.com");
    server.state.lock().unwrap().catalog = catalog(&[&crds, &boats]);
    server.put(&boats, "ferry");
    let begun = tokio::time::Instant::now();
    while world.seen(&boats, "ferry") != "present" {
        world.followers.step(&mut world.news).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "after {:?}", begun.elapsed());
    assert!(server.state.lock().unwrap().stale > 0, "discovery was asked anew");
    world.run(Duration::from_secs(30)).await;
    server.log();
    world.run(Duration::from_secs(200)).await;
    assert_eq!(server.log(), [""; 0], "and then there is quiet: no timer asks");

    // Removed again: unknown, not absent.
    server.state.lock().unwrap().catalog = catalog(&[&crds]);
    server.put(&crds, "boats.sea.example.com");
    world.run(Duration::from_secs(20)).await;
    assert_eq!(world.seen(&boats, "ferry"), "unknown");
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_let_go_of_ends_its_request() {
    let (server, boats) = (Server::serving(&[&things()]), things());
    let mut world = World::new(&server);
    world.follow(&boats);
    world.settle().await;
    assert!(server.is_watched(&boats));
    world.followers.unfollow(&id(&boats));
    world.settle().await;
    assert!(!server.is_watched(&boats));
}

#[tokio::test(start_paused = true)]
async fn one_busy_watch_does_not_starve_another() {
    let (boats, crds) = (things(), crds());
    let server = Server::serving(&[&boats, &crds]);
    let mut world = World::new(&server);
    world.follow(&boats);
    world.follow(&crds);
    world.settle().await;
    for _ in 0..5000 {
        server.put(&boats, "ferry");
    }
    server.put(&crds, "kites.sky.example.com");
    let mut steps = 0;
    while world.seen(&crds, "kites.sky.example.com") != "present" {
        world.followers.step(&mut world.news).await;
        steps += 1;
    }
    assert!(steps <= 6, "{steps} steps until the other was heard");
}
