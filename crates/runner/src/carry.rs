//! The engine's wishes as requests: what it wants called is sent, and what came of it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use mailboat_cluster::Transport;
use mailboat_engine::engine::{Engine, Next, Ticket};
use mailboat_engine::glance::Depth;
use mailboat_engine::look::Look;
use mailboat_object::key::{ClusterId, Key};
use mailboat_object::wire::{Call, Fault, FaultKind, Reply};
use mailboat_store::{Moment, News};
use tokio::time::{Duration, Instant};

use crate::follow::Followers;
use crate::lag::Lags;
use crate::lease::{Gate, pass, writes};
use crate::listen::Instruments;
use crate::look::{Grounds, look_from};
use crate::metrics::{Metrics, Write};

/// Which calls are another process's to make.
pub type Theirs = Arc<dyn Fn(&Call) -> bool + Send + Sync>;

/// What another process should have written by then is wanted again. That it is written is seen at once; this is for what
/// was not.
const THEIRS_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// The engine and the clusters that it writes to.
pub struct Carrier {
    engine: Engine,
    transports: BTreeMap<ClusterId, Arc<dyn Transport>>,
    under_way: FuturesUnordered<UnderWay>,
    grounds: Grounds,
    gate: Option<Arc<Gate>>,
    /// Something waits for the gate to open.
    waits: bool,
    theirs: Option<Theirs>,
    instruments: Option<Arc<Instruments>>,
    lags: Lags,
}

/// Something that the engine wanted, until its answer comes.
enum UnderWay {
    Calling(Ticket, Option<Sent>, BoxFuture<'static, Result<Reply, Fault>>),
    Looking(Ticket, BoxFuture<'static, Result<Look, Fault>>),
    /// Nothing was sent: the gate is to open first.
    Waiting(BoxFuture<'static, ()>),
}

impl Future for UnderWay {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        let (ticket, done) = match self.get_mut() {
            Self::Calling(ticket, sent, calling) => {
                let reply = ready!(calling.poll_unpin(context));
                (*ticket, Done::Called(reply, sent.take()))
            }
            Self::Looking(ticket, looking) => (*ticket, Done::Looked(ready!(looking.poll_unpin(context)))),
            Self::Waiting(opening) => {
                ready!(opening.poll_unpin(context));
                (Ticket::default(), Done::Opened)
            }
        };
        Poll::Ready(Answer { ticket, done })
    }
}

/// What came of something that the engine wanted.
pub(crate) struct Answer {
    ticket: Ticket,
    done: Done,
}

enum Done {
    Called(Result<Reply, Fault>, Option<Sent>),
    Looked(Result<Look, Fault>),
    /// The gate opened, or never will.
    Opened,
}

/// A write that is measured.
struct Sent {
    write: Write,
    at: Instant,
    /// When the change was read that it carries on, if it does and that is timed.
    read: Option<Moment>,
}

impl Carrier {
    /// Carries for this engine.
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            transports: BTreeMap::new(),
            under_way: FuturesUnordered::new(),
            grounds: Grounds::default(),
            gate: None,
            waits: false,
            theirs: None,
            instruments: None,
            lags: Lags::default(),
        }
    }

    /// Writes pass this gate from now on: none leaves while it is shut.
    pub fn gate(&mut self, gate: Arc<Gate>) {
        self.gate = Some(gate);
    }

    /// Writes that are another process's never leave from now on.
    pub fn leave_to_others(&mut self, theirs: Theirs) {
        self.theirs = Some(theirs);
    }

    /// What is carried is measured from now on.
    pub fn instruments(&mut self, instruments: Arc<Instruments>) {
        self.instruments = Some(instruments);
    }

    /// The engine, to ask it.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine, to configure it.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// A cluster is reached in this way from now on.
    pub fn reach(&mut self, cluster: &ClusterId, transport: Arc<dyn Transport>) {
        self.engine.cluster(cluster.clone(), transport.abilities());
        self.transports.insert(cluster.clone(), transport);
    }

    /// Clusters are gone with all that stood in them.
    pub fn forget(&mut self, gone: &BTreeSet<ClusterId>) {
        self.engine.forget_clusters(gone);
        self.transports.retain(|cluster, _| !gone.contains(cluster));
    }

    /// A cluster serves other kinds than before: what it serves is asked anew when something is sent there next.
    pub fn is_redefined(&self, cluster: &ClusterId) {
        if let Some(transport) = self.transports.get(cluster) {
            transport.stale();
        }
    }

    /// Runs until `stop` is done: news become changes, wishes become requests, answers are told. What is under
    /// way then stays so, and its answers are told when it runs again.
    pub async fn run<T>(&mut self, followers: &mut Followers, stop: impl Future<Output = T>) -> T {
        let mut stop = pin!(stop);
        let mut news: Vec<News> = Vec::new();
        loop {
            let alarm = self.send_what_is_wanted(followers).await;
            tokio::select! {
                // In this order: to stop is never starved, and an answer frees a place before news fill the queue.
                biased;
                result = &mut stop => return result,
                answer = self.answer() => self.tell_all(answer, followers),
                () = followers.step(&mut news) => self.learn(&mut news, followers),
                () = sleep_until(alarm), if alarm.is_some() => {}
            }
        }
    }

    /// Tells the engine news: of what was fetched, of places that were opened, of bindings, of confirmations. What
    /// our copies remember of their sources is told to the store, which makes news in turn.
    pub fn learn(&mut self, news: &mut Vec<News>, followers: &mut Followers) {
        self.learn_with(news, followers, |_, _| {});
    }

    /// The same, and each piece is told to somebody else after the engine.
    pub(crate) fn learn_with(
        &mut self,
        news: &mut Vec<News>,
        followers: &mut Followers,
        mut also: impl FnMut(&Followers, &News),
    ) {
        while !news.is_empty() {
            let now = followers.now().mono;
            for piece in std::mem::take(news) {
                if self.instruments.is_some() {
                    self.lags.heed(now, &piece);
                }
                let remembered = self.engine.observe(followers.store(), &piece);
                also(followers, &piece);
                if let Some((source, version)) = remembered {
                    followers.store_mut().remember(&source, version, news);
                }
            }
        }
    }

    /// Waits for the next answer; for ever while nothing is under way. Nothing is lost if it is dropped.
    pub(crate) async fn answer(&mut self) -> Answer {
        match self.under_way.next().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    /// Whether a call or a look is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way.len() > usize::from(self.waits)
    }

    /// Lets the engine want writes only while they may leave. Each that waited at the gate would be held with its body, and its
    /// slot with it, though another process has written it long ago.
    fn heed_the_gate(&mut self) {
        let Some(gate) = &self.gate else { return };
        self.engine.writes_may_leave(gate.is_open());
        if !self.waits && !gate.is_open() && !gate.is_closed() {
            self.waits = true;
            let gate = Arc::clone(gate);
            self.under_way.push(UnderWay::Waiting(async move { gate.opens().await }.boxed()));
        }
    }

    /// A call, sent if it may be.
    pub(crate) fn call(&self, call: Call) -> BoxFuture<'static, Result<Reply, Fault>> {
        if self.is_theirs(&call) {
            let kind = FaultKind::Retry(Some(THEIRS_AGAIN_AFTER));
            let fault = Fault::new(kind, "another process writes this, and has not yet");
            return futures::future::ready(Err(fault)).boxed();
        }
        match self.transports.get(&call.key.cluster) {
            Some(transport) if self.gate.is_none() => transport.call(call),
            Some(transport) => pass(self.gate.clone(), Arc::clone(transport), call).boxed(),
            None => futures::future::ready(Err(unreached(&call.key.cluster))).boxed(),
        }
    }

    /// Whether a call is left to another process.
    pub(crate) fn is_theirs(&self, call: &Call) -> bool {
        writes(call) && self.theirs.as_ref().is_some_and(|theirs| theirs(call))
    }

    /// How a cluster is reached.
    pub(crate) fn transport(&self, cluster: &ClusterId) -> Option<&Arc<dyn Transport>> {
        self.transports.get(cluster)
    }

    /// Sends whatever the engine wants sent, and says when it wants to be asked again. The followers are borrowed
    /// alone, because a future that shares them could not move between threads.
    pub(crate) async fn send_what_is_wanted(&mut self, followers: &mut Followers) -> Option<Instant> {
        loop {
            self.heed_the_gate();
            let now = followers.now().mono;
            match self.engine.next(now.0, followers.store()) {
                Next::Call(ticket, call) => self.send(ticket, call),
                Next::Look(ticket, source) => self.look(ticket, source),
                Next::Again => tokio::task::yield_now().await,
                Next::WaitUntil(at) => return Some(in_so_long(now, Moment(at))),
                Next::Idle => return None,
            }
        }
    }

    fn send(&mut self, ticket: Ticket, call: Call) {
        let measured = self.instruments.is_some() && !self.is_theirs(&call);
        let write = measured.then(|| Metrics::write(&call)).flatten();
        let sent = write.map(|write| {
            let cause = self.engine.cause_of(ticket);
            let read = cause.and_then(|cause| self.lags.read_at(cause.object, cause.version));
            Sent { write, at: Instant::now(), read }
        });
        let calling = self.call(call);
        self.under_way.push(UnderWay::Calling(ticket, sent, calling));
    }

    fn look(&mut self, ticket: Ticket, source: Key) {
        let looking = match self.transports.get(&source.cluster) {
            Some(transport) => {
                let ground = self.grounds.ask(transport, &source.cluster, &source.kind);
                look_from(Arc::clone(transport), source, ground).boxed()
            }
            None => futures::future::ready(Err(unreached(&source.cluster))).boxed(),
        };
        self.under_way.push(UnderWay::Looking(ticket, looking));
    }

    /// Tells the engine an answer, and with it all that have come by now: they came together, and what is wanted after them is
    /// asked once.
    pub(crate) fn tell_all(&mut self, first: Answer, followers: &Followers) {
        self.tell(first, followers);
        for _ in 0..self.under_way.len() {
            let Some(Some(answer)) = self.under_way.next().now_or_never() else { return };
            self.tell(answer, followers);
        }
    }

    /// Tells the engine an answer.
    fn tell(&mut self, Answer { ticket, done }: Answer, followers: &Followers) {
        let now = followers.now().mono.0;
        match done {
            Done::Called(reply, sent) => {
                if let Err(fault) = &reply {
                    tracing::debug!(%fault, "call failed");
                }
                if let Some(sent) = sent {
                    self.measure(ticket, &sent, reply.as_ref().err(), Moment(now));
                }
                if let Some(Next::Call(ticket, call)) =
                    self.engine.done(now, followers.store(), ticket, reply)
                {
                    self.send(ticket, call);
                }
            }
            Done::Looked(found) => self.engine.looked(now, ticket, found),
            Done::Opened => self.waits = false,
        }
        if self.engine.depth() == Depth::default() {
            self.lags.clear();
        }
    }

    fn measure(&mut self, ticket: Ticket, sent: &Sent, fault: Option<&Fault>, now: Moment) {
        let Some(instruments) = &self.instruments else { return };
        instruments.metrics.written(&sent.write, sent.at.elapsed(), fault);
        if let Some(read) = sent.read.filter(|_| fault.is_none()) {
            instruments.metrics.delivered_after(now - read);
            // Told once more, as after a lost link, it is no change.
            if let Some(cause) = self.engine.cause_of(ticket).filter(|cause| cause.alone) {
                self.lags.carried(cause.object, read);
            }
        }
    }
}

pub(crate) fn unreached(cluster: &ClusterId) -> Fault {
    Fault::new(FaultKind::Away, format!("nobody said how cluster {cluster} is reached"))
}

pub(crate) fn in_so_long(now: Moment, at: Moment) -> Instant {
    // A millisecond later, so that the time has come when we wake.
    Instant::now() + (at - now) + Duration::from_millis(1)
}

pub(crate) async fn sleep_until(alarm: Option<Instant>) {
    match alarm {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use mailboat_engine::engine::Options;
    use mailboat_engine::mark::OwnerId;
    use mailboat_object::key::{KindId, Name};
    use mailboat_object::wire::{Part, Verb};

    use super::*;

    #[tokio::test]
    async fn who_may_not_write_waits_for_that_once_and_is_woken_when_he_may() {
        let engine =
            Engine::new(OwnerId(Name::new("test")), Name::new("test"), Vec::new(), Options::default());
        let (mut carrier, gate) = (Carrier::new(engine), Arc::new(Gate::new()));
        carrier.gate(Arc::clone(&gate));
        for _ in 0..1_000 {
            carrier.heed_the_gate();
        }
        assert_eq!(
            (carrier.under_way.len(), carrier.is_under_way()),
            (1, false),
            "nothing that a stop waits for"
        );
        assert!(carrier.answer().now_or_never().is_none());
        gate.open_for(Duration::from_mins(1));
        let answer = carrier.answer().await;
        let store = mailboat_store::store::Store::new();
        carrier.tell_all(answer, &Followers::new(store, mailboat_store::Settings::default(), 1));
        carrier.heed_the_gate();
        assert_eq!(carrier.under_way.len(), 0);
        gate.close();
        for _ in 0..3 {
            carrier.heed_the_gate();
        }
        assert_eq!(carrier.under_way.len(), 0, "it never opens again");
    }

    #[tokio::test]
    async fn what_is_anothers_to_write_is_never_sent_and_may_be_read() {
        let engine =
            Engine::new(OwnerId(Name::new("test")), Name::new("test"), Vec::new(), Options::default());
        let mut carrier = Carrier::new(engine);
        carrier.leave_to_others(Arc::new(|call| call.key.name.as_str() == "theirs"));
        let call = |name: &str, verb: Verb, dry_run: bool| Call {
            key: Key {
                cluster: ClusterId::new("unreached"),
                kind: KindId::new("", "configmaps"),
                namespace: Name::EMPTY,
                name: Name::new(name),
            },
            verb,
            part: Part::Whole,
            dry_run,
        };
        let write = || Verb::Merge { body: Arc::from(&b"{}"[..]), manager: Name::new("test") };
        // A cluster that nobody reaches answers what is sent there with `Away`.
        for (name, verb, dry_run, kind) in [
            ("theirs", write(), false, FaultKind::Retry(Some(THEIRS_AGAIN_AFTER))),
            ("theirs", write(), true, FaultKind::Away),
            ("theirs", Verb::Get, false, FaultKind::Away),
            ("ours", write(), false, FaultKind::Away),
        ] {
            let fault = carrier.call(call(name, verb, dry_run)).await.err().map(|fault| fault.kind);
            assert_eq!(fault, Some(kind), "{name}, dry run: {dry_run}");
        }
    }
}
