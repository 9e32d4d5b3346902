//! `mailboat center` and `mailboat center init`.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use mailboat_center::assemble::{self, Settings};
use mailboat_center::init::{Done, InitError, init};
use mailboat_center::setup::Offer;
use mailboat_cluster::Connection;
use mailboat_object::wire::FaultKind;
use mailboat_registration::workspace::WorkspacePath;
use mailboat_runner::StopSignal;

use crate::failure::{CENTER_FLAG, bad_configuration, refusal};
use crate::flags::{CenterArguments, CenterCommand, InitArguments};
use crate::log;
use crate::syncer::listen;

/// Runs the center until SIGTERM or SIGINT, or does what is asked instead.
pub async fn run(arguments: &CenterArguments) -> Result<()> {
    if let Some(CenterCommand::Init(arguments)) = &arguments.command {
        return set_up(arguments).await;
    }
    WorkspacePath::parse(&arguments.kcp.provider_workspace).map_err(|bad| refusal(bad.to_string()))?;
    let stop = StopSignal::new().context("signals cannot be heard")?;
    log::begin(arguments.log_format, &arguments.log_level)?;
    let mut settings = Settings::new(arguments.kcp.source(), &arguments.kcp.provider_workspace);
    settings.rate = arguments.rate();
    settings.parts = arguments.parts.iter().map(|part| part.0).collect();
    settings.election = arguments.leader_elect.then(|| assemble::election(&settings.parts));
    settings.installs = arguments.syncer_image.clone().map(|image| {
        let server = arguments.syncer_server.clone();
        assemble::Installing { image, server }
    });
    settings.rules.threshold = arguments.caution.threshold();
    settings.rules.silence.silent_after_seconds = arguments.silent_after.as_secs();
    let listener = listen(arguments.listen, &settings.instruments).await?;
    tracing::info!(address = %listener.address(), "health and metrics are served");
    assemble::run(settings, stop.received()).await.map_err(|bad| match bad {
        assemble::Error::Source(bad) => bad_configuration(&bad, CENTER_FLAG),
        assemble::Error::Provider { path, fault } if fault.kind == FaultKind::Forbidden => refusal(format!(
            "the provider workspace {path} is not there, or the user of the kubeconfig may not enter it ({fault}); `mailboat \
             center init` makes it, and lets in the group mailboat:center"
        )),
        bad @ assemble::Error::Provider { .. } => refusal(bad.to_string()),
    })
}

/// Sets up the provider workspace.
pub(crate) async fn set_up(arguments: &InitArguments) -> Result<()> {
    let connection = Connection::open(arguments.kcp.source(), mailboat_cluster::Settings::default())
        .await
        .map_err(|bad| bad_configuration(&bad, CENTER_FLAG))?;
    let offer = Offer::all().context("the APIs to offer cannot be made")?;
    let path = &arguments.kcp.provider_workspace;
    let mut kept = 0;
    let mut standard = std::io::stdout().lock();
    let done = init(&connection, path, &offer, |piece, done| {
        if done == Done::Kept {
            kept += 1;
        } else {
            // Somebody who stopped listening is no reason to stop half-way.
            let _ = writeln!(standard, "{}/{} {done}", piece.kind, piece.name);
        }
    })
    .await;
    drop(standard);
    match done {
        Ok(()) => writeln!(std::io::stdout(), "{path} is set up ({kept} unchanged)")
            .context("nothing can be printed"),
        Err(error @ (InitError::Path { .. } | InitError::IdentityLost { .. })) => {
            Err(refusal(error.to_string()))
        }
        Err(InitError::Workspace { path, what, fault }) if fault.kind == FaultKind::Forbidden => {
            Err(refusal(format!(
                "the workspace {path} {what}: {fault}; make it as an administrator, and give the group mailboat:center \
             cluster-admin there"
            )))
        }
        Err(error) => Err(error.into()),
    }
}
