//! `mailboat syncer`: a syncer that runs until it is told to end.

use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use mailboat_object::key::ClusterId;
use mailboat_registration::Renewal;
use mailboat_runner::{Instruments, Listener, StopSignal};
use mailboat_syncer::{Settings, Syncer};

use crate::failure::{bad_configuration, refusal};
use crate::flags::SyncerArguments;
use crate::keeper::Keeper;
use crate::log;

const FROM_FLAG: &str = "--from-kubeconfig";

/// Runs a syncer until SIGTERM or SIGINT; then what is under way is finished. A second signal ends it at once.
pub async fn run(arguments: &SyncerArguments) -> Result<()> {
    let stop = StopSignal::new().context("signals cannot be heard")?;
    arguments.check().map_err(|bad| refusal(bad.to_string()))?;
    log::begin(arguments.log_format, arguments.log_filter())?;
    let syncer = Syncer::open(settings(arguments)).await.map_err(|bad| unusable(&bad))?;
    let kept = keep_token(arguments, &syncer)?;
    let listener = listen(arguments.listen, syncer.instruments()).await?;
    tracing::info!(address = %listener.address(), "health and metrics are served");
    let mut sailing = pin!(syncer.run(stop.received()));
    tokio::select! {
        () = &mut sailing => {}
        () = kept => sailing.await,
    }
    Ok(())
}

fn unusable(error: &mailboat_syncer::Error) -> anyhow::Error {
    let side = |side: &str, told: anyhow::Error| refusal(format!("the {side} cannot be reached: {told}"));
    match error {
        mailboat_syncer::Error::From(bad) => side("mailbox", bad_configuration(bad, FROM_FLAG)),
        mailboat_syncer::Error::To(bad) => side("edge", bad_configuration(bad, "--to-kubeconfig")),
        mailboat_syncer::Error::NoSyncTarget => refusal(error.to_string()),
    }
}

fn settings(arguments: &SyncerArguments) -> Settings {
    let (name, uid) = (&arguments.sync_target_name, &arguments.sync_target_uid);
    let mut settings = Settings::new(arguments.from(), arguments.to(), name, uid);
    if let Some(namespace) = &arguments.namespace {
        settings.namespace.clone_from(namespace);
    }
    settings.rate = arguments.rate();
    settings.heartbeat_period = arguments.heartbeat_period;
    settings.threshold = arguments.caution.threshold();
    settings
}

/// Serves health and metrics. Every address means those of IPv4 alone where a machine knows no other.
pub(crate) async fn listen(address: SocketAddr, instruments: &Arc<Instruments>) -> Result<Listener> {
    let open =
        async |address: SocketAddr| Listener::open(&address.to_string(), Arc::clone(instruments)).await;
    let opened = match open(address).await {
        Err(_) if address.ip() == Ipv6Addr::UNSPECIFIED => {
            open((Ipv4Addr::UNSPECIFIED, address.port()).into()).await
        }
        opened => opened,
    };
    opened.map_err(|bad| refusal(bad.to_string()))
}

/// Keeps the mailbox's token alive. Ends at once where there is none that could be kept.
fn keep_token(arguments: &SyncerArguments, syncer: &Syncer) -> Result<impl Future<Output = ()> + use<>> {
    let token_file = arguments.from().token_file().map_err(|bad| bad_configuration(&bad, FROM_FLAG))?;
    // The clusters' names are for messages: each transport knows where it goes.
    let secret = arguments.credential_key(&ClusterId::new("edge"));
    let keeper = token_file.map(|token_file| Keeper {
        token_file,
        renewal: Renewal::new(ClusterId::new("mailbox"), secret),
        mailbox: syncer.mailbox(),
        edge: syncer.edge(),
        instruments: Arc::clone(syncer.instruments()),
    });
    Ok(async move {
        if let Some(keeper) = keeper {
            keeper.keep().await;
        }
    })
}
