//! How a process stops: what is under way is finished, nothing new is begun, and nobody waits for ever.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use mailboat_cluster::{Catalog, Lines, Read, Transport};
use mailboat_engine::engine::{Engine, Notice, Options};
use mailboat_engine::mark::{OwnerId, StandardMarks};
use mailboat_engine::role::{CallId, Ground, Order, Role, Turn};
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Abilities, Call, Fault, Part, Reply, Verb};
use mailboat_runner::Process;
use mailboat_store::{News, Now, PlaceId, Settings, Store};
use tokio::time::Instant;

/// A server that takes its time to answer a call, and answers nothing else.
struct Slow {
    takes: Duration,
    begun: Arc<AtomicUsize>,
}

impl Transport for Slow {
    fn call(&self, _: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let takes = self.takes;
        async move {
            tokio::time::sleep(takes).await;
            Ok(Reply { body: Box::default(), created: false, warnings: Vec::new() })
        }
        .boxed()
    }

    fn fetch(&self, _: Read) -> BoxFuture<'static, Result<Lines, Fault>> {
        std::future::pending().boxed()
    }

    fn catalog(&self) -> BoxFuture<'static, Result<Arc<Catalog>, Fault>> {
        std::future::pending().boxed()
    }

    fn stale(&self) {}

    fn abilities(&self) -> Abilities {
        Abilities { apply: true, whole: true }
    }
}

/// A role that makes one call after the other.
struct Caller {
    waits: bool,
    answered: Arc<AtomicUsize>,
}

impl Role for Caller {
    fn observe(&mut self, _: Now, _: &Store, _: &News) {}

    fn served(&mut self, _: &PlaceId, _: &Arc<Catalog>) {}

    fn noticed(&mut self, _: &Notice) {}

    fn answered(&mut self, _: Now, _: CallId, reply: Result<Reply, Fault>) {
        reply.unwrap();
        self.answered.fetch_add(1, Ordering::SeqCst);
        self.waits = false;
    }

    fn looked(&mut self, _: Now, _: CallId, _: Result<Ground, Fault>) {}

    fn next(&mut self, _: Now, _: &Store, _: &Engine) -> Turn {
        if std::mem::replace(&mut self.waits, true) {
            return Turn::default();
        }
        let key = Key {
            cluster: ClusterId::new("edge"),
            kind: KindId::new("", "configmaps"),
            namespace: Name::new("sea"),
            name: Name::new("log"),
        };
        let verb = Verb::Merge { body: Arc::from(&b"{}"[..]), manager: Name::new("caller") };
        let call = Call { key, verb, part: Part::Whole, dry_run: false };
        Turn { orders: vec![Order::Call(CallId(0), call)], wake: None }
    }
}

/// Runs a process whose server takes so long, stops it after a time, and tells how long it took to end after that, how
/// many calls it made, and how many answers it was told.
async fn stopped_after(stop: Duration, takes: Duration) -> (Duration, usize, usize) {
    let (begun, answered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let owner = OwnerId(Name::new("caller"));
    let marks = StandardMarks::new(owner.clone());
    let engine = Engine::new(owner, Name::new("caller"), vec![Arc::new(marks)], Options::default());
    let role = Caller { waits: false, answered: Arc::clone(&answered) };
    let mut process = Process::new(role, engine, Name::new("caller"), Settings::default(), 1);
    let way = Slow { takes, begun: Arc::clone(&begun) };
    process.place(&PlaceId::new("edge"), &ClusterId::new("edge"), Arc::new(way));
    let asked_at = Instant::now() + stop;
    process.run(tokio::time::sleep(stop)).await;
    (asked_at.elapsed(), begun.load(Ordering::SeqCst), answered.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_finished_and_nothing_new_is_begun() {
    let (ended_after, begun, answered) =
        stopped_after(Duration::from_millis(5_100), Duration::from_secs(2)).await;
    assert_eq!((begun, answered), (3, 3), "one call in each two seconds, and none after the third");
    let left = Duration::from_millis(900)..Duration::from_secs(1);
    assert!(left.contains(&ended_after), "it ended {ended_after:?} after it was asked to");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_holds_nobody_up() {
    let (ended_after, begun, answered) = stopped_after(Duration::from_secs(1), Duration::from_hours(1)).await;
    assert_eq!((begun, answered), (1, 0));
    assert!(ended_after < Duration::from_secs(11), "it ended only {ended_after:?} after it was asked to");
}
