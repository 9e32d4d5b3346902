//! The syncer as a program: connections, the role, and the process that runs it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mailboat_cluster::{ConfigError, Connection, Rate, Source, Transport};
use mailboat_engine::breaker::Threshold;
use mailboat_engine::engine::{Engine, Options};
use mailboat_engine::mark::Marks;
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, FaultKind, Part, Verb};
use mailboat_runner::metrics::Serves;
use mailboat_runner::{Instruments, Process};

use crate::config::ConfigKind;
use crate::marks::{SyncerMarks, owner};
use crate::role::{Identity, SyncerRole};

/// The field manager of everything that the syncer writes.
pub const FIELD_MANAGER: &str = "mailboat-syncer";
/// A mailbox that does not say which it is, because it is no workspace of kcp.
const PLAIN_MAILBOX: &str = "mailbox";
/// The first and the longest pause before the mailbox is asked again which it is.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// What a syncer needs to know.
#[derive(Clone)]
pub struct Settings {
    /// How the mailbox is reached.
    pub from: Source,
    /// How the edge is reached.
    pub to: Source,
    /// The name of the SyncTarget, for people.
    pub sync_target_name: String,
    /// The uid of the SyncTarget: whose the copies are.
    pub sync_target_uid: String,
    /// The namespace at the edge that the syncer keeps its record in: its own.
    pub namespace: String,
    /// How many requests are made of each side; `None`: as many as it takes.
    pub rate: Option<Rate>,
    /// How often the syncer says that it is alive.
    pub heartbeat_period: Duration,
    /// When a withdrawal is too large to go unasked.
    pub threshold: Threshold,
}

impl Settings {
    /// A syncer between these two, for this SyncTarget, with everything else as usual.
    pub fn new(from: Source, to: Source, sync_target_name: &str, sync_target_uid: &str) -> Self {
        Self {
            from,
            to,
            sync_target_name: sync_target_name.to_owned(),
            sync_target_uid: sync_target_uid.to_owned(),
            namespace: "default".to_owned(),
            rate: None,
            heartbeat_period: Duration::from_secs(30),
            threshold: Threshold::default(),
        }
    }
}

/// Why a syncer cannot begin. Servers that are away are no reason: it waits for them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The mailbox's configuration cannot be used.
    #[error("the mailbox cannot be reached: {0}")]
    From(#[source] ConfigError),
    /// The edge's configuration cannot be used.
    #[error("the edge cannot be reached: {0}")]
    To(#[source] ConfigError),
    /// Nobody said whose the copies are.
    #[error("a syncer needs the uid of its SyncTarget: whatever it delivers is marked with it")]
    NoSyncTarget,
}

/// Runs a syncer until `stop` is done; then what is under way is finished.
pub async fn run(settings: Settings, stop: impl Future<Output = ()>) -> Result<(), Error> {
    Syncer::open(settings).await?.run(stop).await;
    Ok(())
}

/// A syncer that knows how both sides are reached, and has not begun.
pub struct Syncer {
    settings: Settings,
    from: Connection,
    to: Connection,
    instruments: Arc<Instruments>,
}

impl Syncer {
    /// Reads how both sides are reached. Nothing is sent yet.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        if settings.sync_target_uid.is_empty() {
            return Err(Error::NoSyncTarget);
        }
        let limits =
            mailboat_cluster::Settings { rate: settings.rate, ..mailboat_cluster::Settings::default() };
        let from = Connection::open(settings.from.clone(), limits.clone()).await.map_err(Error::From)?;
        let to = Connection::open(settings.to.clone(), limits).await.map_err(Error::To)?;
        Ok(Self { settings, from, to, instruments: Arc::default() })
    }

    /// How it is and what it does, for whoever listens for questions about that.
    pub fn instruments(&self) -> &Arc<Instruments> {
        &self.instruments
    }

    /// The mailbox, over the same connection as the syncer's own requests.
    pub fn mailbox(&self) -> Arc<dyn Transport> {
        Arc::new(self.from.cluster())
    }

    /// The edge, over the same connection as the syncer's own requests.
    pub fn edge(&self) -> Arc<dyn Transport> {
        Arc::new(self.to.cluster())
    }

    /// Runs until `stop` is done; then what is under way is finished.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let (mailbox_way, edge_way) = (self.mailbox(), self.edge());
        let Self { settings, from, to, instruments } = self;
        let mut stop = pin!(stop);
        let mailbox = tokio::select! {
            () = &mut stop => return,
            mailbox = which_mailbox(&*mailbox_way, &instruments) => mailbox,
        };
        tracing::info!(
            sync_target = settings.sync_target_name,
            uid = settings.sync_target_uid,
            %mailbox,
            from = from.server(),
            to = to.server(),
            "the syncer begins"
        );
        let identity = Identity {
            owner: owner(&settings.sync_target_uid),
            manager: Name::new(FIELD_MANAGER),
            mailbox,
            edge: ClusterId::new(&mailboat_api::names::edge_cluster(&settings.sync_target_uid)),
            namespace: Name::new(&settings.namespace),
            heartbeat_period: settings.heartbeat_period,
        };
        instruments.metrics.serves(Serves {
            sync_target: settings.sync_target_name,
            workspace: identity.mailbox.to_string(),
            center: identity.mailbox.clone(),
            heartbeat: ConfigKind::SyncerConfig.kind(),
        });
        let mut process = process(identity, settings.threshold, mailbox_way, edge_way);
        process.instruments(instruments);
        process.run(stop).await;
        tracing::info!("the syncer has ended");
    }
}

/// The process of a syncer between two places.
pub fn process(
    identity: Identity,
    threshold: Threshold,
    mailbox: Arc<dyn Transport>,
    edge: Arc<dyn Transport>,
) -> Process<SyncerRole> {
    let marks: Vec<Arc<dyn Marks>> = vec![
        Arc::new(SyncerMarks::downsynced(identity.owner.clone())),
        Arc::new(SyncerMarks::upsynced(identity.owner.clone())),
    ];
    let options = Options { threshold, ..Options::default() };
    let engine = Engine::new(identity.owner.clone(), identity.manager.clone(), marks, options);
    let seed = mailboat_object::digest::digest_of_value(&identity.owner.0.as_str().into()).bits();
    let role = SyncerRole::new(identity.clone());
    let (mailbox_place, edge_place) = (role.mailbox_place(), role.edge_place());
    let settings = mailboat_store::Settings::default();
    let mut process = Process::new(role, engine, identity.manager, settings, seed);
    process.place(&mailbox_place, &identity.mailbox, mailbox);
    process.place(&edge_place, &identity.edge, edge);
    process
}

/// Which workspace the mailbox is. Marks name it, so that copies of another mailbox are not taken for copies of this one;
/// so nothing begins before it is known.
async fn which_mailbox(mailbox: &dyn Transport, instruments: &Instruments) -> ClusterId {
    let key = Key {
        cluster: ClusterId::default(),
        kind: KindId::new("core.kcp.io", "logicalclusters"),
        namespace: Name::EMPTY,
        name: Name::new(mailboat_api::names::object::LOGICAL_CLUSTER),
    };
    let (mut pause, longest) = ASK_AGAIN;
    loop {
        let call = Call { key: key.clone(), verb: Verb::Get, part: Part::Whole, dry_run: false };
        match mailbox.call(call).await {
            Ok(reply) => {
                let id = Raw::parse(&reply.body).ok().and_then(|root| {
                    let annotations =
                        ["metadata", "annotations", mailboat_api::names::annotation::KCP_CLUSTER];
                    root.get(&annotations).and_then(|id| id.as_str().map(|id| ClusterId::new(&id)))
                });
                return id.unwrap_or_else(|| ClusterId::new(PLAIN_MAILBOX));
            }
            Err(fault) if matches!(fault.kind, FaultKind::Unserved | FaultKind::NotFound) => {
                return ClusterId::new(PLAIN_MAILBOX);
            }
            Err(fault) => {
                instruments.health.waits_for(format!("the mailbox does not answer: {fault}"));
                tracing::warn!(%fault, "the mailbox does not answer; the edge stays as it is");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}
