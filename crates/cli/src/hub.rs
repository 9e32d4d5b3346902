//! `mailboat hub`: the embedded server, until it is told to end.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use mailboat_hub::access::{TokenFile, kubeconfig, write_private};
use mailboat_hub::storage::{self, Disk, Memory, Storage};
use mailboat_hub::workloads::Settings;
use mailboat_hub::{OpenError, Opened, Options, Recorder, Server, control};
use mailboat_runner::StopSignal;
use tokio::net::TcpListener;

use crate::failure::refusal;
use crate::flags::{HubArguments, HubCommand, HubMode, Simulation};
use crate::log;

/// Who has all rights from the beginning.
const ADMINISTRATOR: &str = "admin";
/// Names a folder in which every hub writes down how it is asked, for the comparison with real servers.
const RECORD_VARIABLE: &str = "MAILBOAT_HUB_RECORD";
/// The group of those who may do everything.
const MASTERS: &str = "system:masters";

/// Serves, or does what else was asked for.
pub async fn run(arguments: &HubArguments) -> Result<()> {
    match &arguments.command {
        None => serve(arguments).await,
        Some(HubCommand::Backup { data, file }) => {
            control::backup(data, file).await.map_err(|error| refusal(error.to_string()))
        }
        Some(HubCommand::Restore { backup, data }) => {
            storage::restore(backup, data).map_err(|error| refusal(error.to_string()))
        }
    }
}

async fn serve(arguments: &HubArguments) -> Result<()> {
    if arguments.simulate_workloads && arguments.mode != HubMode::Cluster {
        return Err(refusal("--simulate-workloads needs --mode cluster: workspaces have no pods or nodes"));
    }
    log::begin(arguments.log_format, "info")?;
    let begun = Instant::now();
    let listener = TcpListener::bind(arguments.listen)
        .await
        .map_err(|error| refusal(format!("{} cannot be listened at: {error}", arguments.listen)))?;
    let url = format!("https://{}", reached(listener.local_addr()?));
    let options = Options { tokens: tokens(arguments.token_auth_file.as_deref())?, url: url.clone() };
    let opened = match &arguments.data {
        Some(folder) => {
            let disk = Disk::open(folder).map_err(|error| refusal(error.to_string()))?;
            open(arguments.mode, disk, options).await
        }
        None => open(arguments.mode, Memory::default(), options).await,
    };
    let Opened { hub, authority } = opened.map_err(|error| match error {
        OpenError::Storage(_) | OpenError::Authority(_) => refusal(error.to_string()),
        error => error.into(),
    })?;
    let hub = match std::env::var_os(RECORD_VARIABLE).filter(|folder| !folder.is_empty()) {
        Some(folder) => hub.with_recorder(recorder(Path::new(&folder))?),
        None => hub,
    };
    let tls = match (&arguments.tls_cert_file, &arguments.tls_private_key_file) {
        (Some(certificate), Some(key)) => {
            let clients = arguments.client_ca_file.as_deref().map(bytes).transpose()?.unwrap_or_default();
            authority.server_config_given(&bytes(certificate)?, &bytes(key)?, &clients)
        }
        _ => authority.server_config(&names(arguments)),
    };
    let tls = tls.map_err(|error| refusal(error.to_string()))?;
    let stop = StopSignal::new().context("signals cannot be heard")?;
    let file = match (&arguments.kubeconfig, &arguments.data) {
        (Some(file), _) => file.clone(),
        (None, Some(folder)) => folder.join("admin.kubeconfig"),
        (None, None) => {
            return Err(refusal("--memory needs --kubeconfig: say where the administrator's goes"));
        }
    };
    let address = match arguments.mode {
        HubMode::Cluster => url.clone(),
        HubMode::Workspaces => format!("{url}/clusters/root"),
    };
    let certified = authority.certify(ADMINISTRATOR, Some(MASTERS))?;
    let content = kubeconfig("hub", &address, authority.certificate_pem(), ADMINISTRATOR, &certified);
    write_private(&file, &content)
        .map_err(|error| refusal(format!("{} cannot be written: {error}", file.display())))?;
    let took = begun.elapsed();
    tracing::info!(%url, kubeconfig = %file.display(), milliseconds = took.as_millis(), "the hub is ready");
    let mut server = Server::new(hub, tls, listener);
    if let Some(folder) = &arguments.data {
        server = server.with_control(folder.clone());
    }
    if arguments.simulate_workloads {
        let root_ca = match &arguments.root_ca_file {
            Some(file) => String::from_utf8(bytes(file)?)
                .map_err(|_| refusal(format!("{} holds no certificate as PEM", file.display())))?,
            None => authority.certificate_pem().to_owned(),
        };
        let played = &arguments.simulation;
        server = server.with_workloads(settings(played, root_ca), played.simulated_seed);
    }
    server.serve(stop.received()).await;
    Ok(())
}

fn settings(played: &Simulation, root_ca: String) -> Settings {
    Settings {
        nodes: played.simulated_nodes.into(),
        start: played.simulated_start,
        ready: played.simulated_ready,
        stop: played.simulated_stop,
        run: played.simulated_run,
        failures_per_mille: played.simulated_failures,
        root_ca,
    }
}

/// Each process has a file of its own, whatever runs beside it.
fn recorder(folder: &Path) -> Result<Recorder> {
    let file = folder.join(format!("requests-{}.txt", std::process::id()));
    Recorder::to(&file).map_err(|error| refusal(format!("{} cannot be written: {error}", file.display())))
}

fn bytes(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).map_err(|error| refusal(format!("{} cannot be read: {error}", file.display())))
}

/// Opens a hub over what a storage keeps.
pub(crate) async fn open(
    mode: HubMode,
    storage: impl Storage,
    options: Options,
) -> Result<Opened, OpenError> {
    match mode {
        HubMode::Cluster => mailboat_hub::cluster(storage, options).await,
        HubMode::Workspaces => mailboat_hub::workspaces(storage, options).await,
    }
}

/// The address under which clients on this machine find it.
fn reached(listening: SocketAddr) -> SocketAddr {
    if !listening.ip().is_unspecified() {
        return listening;
    }
    let loopback =
        if listening.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
    SocketAddr::new(loopback, listening.port())
}

fn names(arguments: &HubArguments) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend([arguments.listen.ip().to_string()]);
    names.extend(arguments.names.iter().cloned());
    names.dedup();
    names
}

fn tokens(file: Option<&Path>) -> Result<TokenFile> {
    let Some(file) = file else { return Ok(TokenFile::default()) };
    let text = std::fs::read_to_string(file)
        .map_err(|error| refusal(format!("{} cannot be read: {error}", file.display())))?;
    TokenFile::parse(&text).map_err(|error| refusal(format!("{}: {error}", file.display())))
}
