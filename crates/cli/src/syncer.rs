//! `mailboat syncer`: a syncer that runs until it is told to end.

use std::future::Future;
use std::pin::pin;

use anyhow::{Context as _, Result};
use mailboat_object::key::ClusterId;
use mailboat_registration::Renewal;
use mailboat_registration::renewal::Health;
use mailboat_syncer::{Settings, Syncer};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{bad_configuration, refusal};
use crate::flags::SyncerArguments;
use crate::keeper::Keeper;
use crate::log;

/// Runs a syncer until SIGTERM or SIGINT; then what is under way is finished. A second signal ends it at once.
pub async fn run(arguments: &SyncerArguments) -> Result<()> {
    arguments.check().map_err(|bad| refusal(bad.to_string()))?;
    log::begin(arguments.log_format, arguments.log_filter())?;
    let mut settings = Settings::new(
        arguments.from(),
        arguments.to(),
        &arguments.sync_target_name,
        &arguments.sync_target_uid,
    );
    if let Some(namespace) = &arguments.namespace {
        settings.namespace.clone_from(namespace);
    }
    settings.rate = arguments.rate();
    let stop = stop()?;
    let syncer = Syncer::open(settings).await.map_err(|bad| refusal(bad.to_string()))?;
    let (sender, _health) = watch::channel(Health::Well);
    let kept = keep_token(arguments, &syncer, sender)?;
    let mut sailing = pin!(syncer.run(stop));
    tokio::select! {
        () = &mut sailing => {}
        () = kept => sailing.await,
    }
    Ok(())
}

/// Keeps the mailbox's token alive. Ends at once where there is none that could be kept.
fn keep_token(
    arguments: &SyncerArguments,
    syncer: &Syncer,
    health: watch::Sender<Health>,
) -> Result<impl Future<Output = ()> + use<>> {
    let token_file = arguments.from().token_file().map_err(|bad| bad_configuration(&bad))?;
    // The clusters' names are for messages: each transport knows where it goes.
    let secret = arguments.credential_key(&ClusterId::new("edge"));
    let keeper = token_file.map(|token_file| Keeper {
        token_file,
        renewal: Renewal::new(ClusterId::new("mailbox"), secret),
        mailbox: syncer.mailbox(),
        edge: syncer.edge(),
    });
    Ok(async move {
        if let Some(keeper) = keeper {
            keeper.keep(health).await;
        }
    })
}

/// Done when the program is told to end; told so once more, it ends at once.
fn stop() -> Result<impl Future<Output = ()>> {
    let heard = |kind| signal(kind).context("signals cannot be heard");
    let (mut terminate, mut interrupt) = (heard(SignalKind::terminate())?, heard(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("told to end; what is under way is finished first");
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            tracing::warn!("told to end once more; what was under way is left as it is");
            std::process::exit(1);
        });
    })
}
