//! The center as a program: a connection, the role, and the process that runs it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mailboat_api::names::{annotation, object as fixed};
use mailboat_cluster::{ConfigError, Connection, Rate, ServerAddress, Source, Transport};
use mailboat_engine::breaker::Threshold;
use mailboat_engine::engine::{Engine, Options};
use mailboat_engine::mark::{Marks, OwnerId, StandardMarks};
use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name};
use mailboat_object::wire::{Call, Fault, FaultKind, Part, Verb};
use mailboat_registration::manifest::{CenterAddress, EdgeOptions};
use mailboat_runner::election::Times;
use mailboat_runner::lease::Election;
use mailboat_runner::{Instruments, Lease, Process, Ways};

use crate::mailbox::Limits;
use crate::parts::Parts;
use crate::role::{CenterRole, Identity, Installs};

/// The field manager of everything that the center writes.
pub const FIELD_MANAGER: &str = "mailboat-center";
/// The first and the longest pause before the provider workspace is asked again which it is.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// What a center needs to know.
#[derive(Clone)]
pub struct Settings {
    /// How kcp is reached.
    pub source: Source,
    /// The path of the provider workspace.
    pub provider: String,
    /// How many requests are made; `None`: as many as it takes.
    pub rate: Option<Rate>,
    /// Which Lease of the provider workspace it seeks, so that one of several writes; `None`: it is the only one.
    pub election: Option<Election>,
    /// What of it this process does; the rest is left to others.
    pub parts: Parts,
    /// How it installs syncers in edges whose kubeconfig it is given; `None`: it does not.
    pub installs: Option<Installing>,
    /// What it does by rule.
    pub rules: Rules,
    /// What it says of itself and counts.
    pub instruments: Arc<Instruments>,
}

impl Settings {
    /// A center over this provider workspace, alone, with everything else as usual.
    pub fn new(source: Source, provider: &str) -> Self {
        let provider = provider.to_owned();
        let (parts, rules, instruments) = (Parts::default(), Rules::default(), Arc::default());
        Self { source, provider, rate: None, election: None, parts, installs: None, rules, instruments }
    }
}

/// Where a center draws lines.
#[derive(Clone, Copy, Default, Debug)]
pub struct Rules {
    /// When an edge is silent.
    pub silence: Limits,
    /// When a withdrawal is too large to go unasked.
    pub threshold: Threshold,
}

/// What is chosen of how syncers are installed.
#[derive(Clone, Debug)]
pub struct Installing {
    /// The syncer's image.
    pub image: String,
    /// The center's URL as edges reach it; `None`: as this process does.
    pub server: Option<String>,
}

/// The Lease that all centers of a provider workspace seek that run these parts.
pub fn election(parts: &Parts) -> Election {
    Election {
        namespace: "default".to_owned(),
        name: format!("{FIELD_MANAGER}{}", parts.suffix()),
        identity: mailboat_runner::lease::identity(),
        times: Times::default(),
    }
}

/// Why a center cannot begin. A server that is away is no reason: it waits for it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration cannot be used.
    #[error("kcp cannot be reached: {0}")]
    Source(#[from] ConfigError),
    /// The provider workspace cannot be used.
    #[error("the provider workspace {path} cannot be used: {fault}; `mailboat center init` makes it")]
    Provider {
        /// Its path.
        path: String,
        /// What its server said.
        fault: Fault,
    },
}

/// Runs a center until `stop` is done; then what is under way is finished.
pub async fn run(settings: Settings, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let limits = mailboat_cluster::Settings { rate: settings.rate, ..mailboat_cluster::Settings::default() };
    let connection = Connection::open(settings.source, limits).await?;
    let mut stop = pin!(stop);
    let provider = tokio::select! {
        () = &mut stop => return Ok(()),
        provider = which_provider(&connection, &settings.provider) => provider?,
    };
    tracing::info!(provider = settings.provider, id = %provider, server = connection.server(), "the center begins");
    let way: Arc<dyn Transport> = Arc::new(connection.at(&format!("/clusters/{provider}")));
    let installs = settings.installs.map(|chosen| Arc::new(installs(chosen, connection.address())));
    let ways: Arc<dyn Ways> = Arc::new(connection);
    let mut process =
        process(ways, Arc::clone(&way), &provider, &settings.provider, settings.rules, installs);
    process.instruments(settings.instruments);
    if !settings.parts.are_all() {
        let parts = settings.parts;
        process.leave_to_others(Arc::new(move |call| !parts.write(&call.key)));
    }
    if let Some(election) = settings.election {
        process.lease(Lease::seek(way, election));
    }
    process.run(stop).await;
    tracing::info!("the center has ended");
    Ok(())
}

/// The process of a center over a provider workspace, which is reached by this way.
pub fn process(
    ways: Arc<dyn Ways>,
    way: Arc<dyn Transport>,
    provider: &ClusterId,
    path: &str,
    rules: Rules,
    installs: Option<Arc<Installs>>,
) -> Process<CenterRole> {
    let owner = OwnerId(Name::new(&format!("center-{provider}")));
    let manager = Name::new(FIELD_MANAGER);
    let marks: Vec<Arc<dyn Marks>> = vec![Arc::new(StandardMarks::new(owner.clone()))];
    // A mailbox is one object there, and is no share of what stands in mailboxes.
    let counted_apart = vec![provider.clone()];
    let options = Options { threshold: rules.threshold, counted_apart, ..Options::default() };
    let engine = Engine::new(owner.clone(), manager.clone(), marks, options);
    let seed = mailboat_object::digest::digest_of_value(&owner.0.as_str().into()).bits();
    let identity = Identity {
        owner,
        manager: manager.clone(),
        provider: provider.clone(),
        provider_path: Arc::from(path),
        silence: rules.silence,
        installs,
    };
    let role = CenterRole::new(identity);
    let place = role.provider_place();
    let mut process = Process::new(role, engine, manager, mailboat_store::Settings::default(), seed);
    process.ways(ways);
    process.place(&place, provider, way);
    process
}

/// Syncers are installed as `syncer-gen` has them by default.
fn installs(chosen: Installing, address: ServerAddress) -> Installs {
    Installs {
        center: CenterAddress {
            url: chosen.server.unwrap_or(address.url),
            certificate_authority_pem: address.certificate_authority_pem,
            tls_server_name: address.tls_server_name,
            insecure: address.insecure,
        },
        options: EdgeOptions::of(chosen.image),
    }
}

/// Which cluster the provider workspace is. Marks name it; so nothing begins before it is known.
async fn which_provider(connection: &Connection, path: &str) -> Result<ClusterId, Error> {
    let key = Key {
        cluster: ClusterId::default(),
        kind: KindId::new("core.kcp.io", "logicalclusters"),
        namespace: Name::EMPTY,
        name: Name::new(fixed::LOGICAL_CLUSTER),
    };
    let provider = connection.at(&format!("/clusters/{path}"));
    let (mut pause, longest) = ASK_AGAIN;
    loop {
        let call = Call { key: key.clone(), verb: Verb::Get, part: Part::Whole, dry_run: false };
        match provider.call(call).await {
            Ok(reply) => {
                let id = Raw::parse(&reply.body).ok().and_then(|root| {
                    let id = root.get(&["metadata", "annotations", annotation::KCP_CLUSTER])?.as_str()?;
                    Some(ClusterId::new(&id))
                });
                let unnamed = || Fault::new(FaultKind::Invalid, "it does not say which cluster it is");
                return id.ok_or_else(|| Error::Provider { path: path.to_owned(), fault: unnamed() });
            }
            Err(fault) if !fault.passes() => return Err(Error::Provider { path: path.to_owned(), fault }),
            Err(fault) => tracing::warn!(%fault, "kcp does not answer; nothing is changed meanwhile"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(longest);
    }
}
