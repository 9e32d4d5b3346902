//! The processes under test: as they ship, on simulated ways.

use std::sync::Arc;
use std::time::Duration;

use mailboat_center::assemble as center;
use mailboat_engine::breaker::Threshold;
use mailboat_engine::engine::Engine;
use mailboat_engine::plan::{Verdict, Wait};
use mailboat_engine::role::Role;
use mailboat_object::key::{ClusterId, Key, Name};
use mailboat_runner::{Calendar, Process};
use mailboat_syncer::assemble as syncer;
use mailboat_syncer::marks::owner;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::link::{Chart, Link};
use crate::pause::Pause;
use crate::sea::{Shared, Who, lock};

/// A process that runs.
pub(crate) struct Running {
    pub(crate) pause: Pause,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Box<dyn Aboard>>,
}

/// A process that has ended, to ask it.
pub(crate) trait Aboard: Send {
    fn engine(&self) -> &Engine;
}

impl<R: Role + Send> Aboard for Process<R> {
    fn engine(&self) -> &Engine {
        Process::engine(self)
    }
}

impl Running {
    /// Starts the syncer of an edge, if it has a mailbox.
    pub(crate) fn syncer(sea: &Shared, number: u8) -> Option<Self> {
        let who = Who::Syncer(number);
        let edge = lock(sea).truth.edges.get(usize::from(number))?.clone();
        let mailbox = edge.mailbox?;
        let uid = edge.cluster.0.strip_prefix("edge-")?.to_owned();
        let identity = mailboat_syncer::Identity {
            owner: owner(&uid),
            manager: Name::new(syncer::FIELD_MANAGER),
            mailbox: mailbox.clone(),
            edge: edge.cluster.clone(),
            namespace: Name::new("default"),
            heartbeat_period: Duration::from_secs(30),
        };
        lock(sea).starts(who, identity.owner.0.to_string(), syncer::FIELD_MANAGER);
        let ways = [&mailbox, &edge.cluster].map(|cluster| Arc::new(Link::new(sea, who, cluster)));
        let [mailbox, edge] = ways;
        Some(Self::run(sea, syncer::process(identity, Threshold::default(), mailbox, edge)))
    }

    /// Starts the center.
    pub(crate) fn center(sea: &Shared, provider: &ClusterId, path: &str) -> Self {
        let who = Who::Center;
        lock(sea).starts(who, format!("center-{provider}"), center::FIELD_MANAGER);
        let chart = Arc::new(Chart { sea: Arc::clone(sea), who });
        let way = Arc::new(Link::new(sea, who, provider));
        Self::run(sea, center::process(chart, way, provider, path, center::Rules::default(), None))
    }

    fn run<R: Role + Send + 'static>(sea: &Shared, mut process: Process<R>) -> Self {
        let clock = Arc::clone(sea);
        let calendar: Calendar = Arc::new(move || lock(&clock).calendar());
        process.calendar(calendar);
        let (stop, stopped) = oneshot::channel();
        let pause = Pause::default();
        let task = tokio::spawn(pause.over(async move {
            process.run(stopped).await.ok();
            Box::new(process) as Box<dyn Aboard>
        }));
        Self { pause, stop, task }
    }

    /// Ends the process in the midst of whatever it does. What it has sent may still arrive.
    pub(crate) async fn crash(self) {
        self.task.abort();
        // That it was ended is no news.
        let _ = self.task.await;
    }

    /// Ends the process as it is meant to end.
    pub(crate) async fn stop(self) -> Option<Box<dyn Aboard>> {
        self.stop.send(()).ok();
        self.task.await.ok()
    }
}

/// Why a slot is as it is, for people, and whether that is a reason for something to be left as it is.
pub(crate) fn why(process: &dyn Aboard, slot: &Key) -> (String, bool) {
    let verdict = process.engine().verdict(slot);
    let held = matches!(
        verdict,
        Some(
            Verdict::Held(_)
                | Verdict::Waiting(
                    Wait::Undecided(_) | Wait::Rest | Wait::Unheard | Wait::SourceCluster | Wait::Contention
                )
        )
    );
    let text = verdict.map_or_else(|| "no verdict".to_owned(), |verdict| format!("{verdict:?}"));
    (text, held)
}
