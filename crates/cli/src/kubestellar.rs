//! KubeStellar's own commands, by their own names: each does what the command of ours does that took its place.

mod background;

use std::ffi::OsString;

use anyhow::Result;

use crate::asynchronously;
use crate::documents::{Format, write_out};
use crate::failure::refusal;
use crate::flags::{
    CustomizeArguments, GetArguments, ImwArguments, InitArguments, KcpFlags, Kubestellar, KubestellarInit,
    ListSyncingObjects, Listing, ServerFlags, Shown, VersionPart, WmwArguments,
};
use crate::kubestellar::background::Background;
use crate::{center, customize, ensure, get};

/// Does what is asked for.
pub fn run(command: &Kubestellar) -> Result<()> {
    match command {
        Kubestellar::Init(arguments) => asynchronously(init(arguments)),
        Kubestellar::Start(arguments) => start(arguments),
        Kubestellar::Stop(arguments) => Background::new(&arguments.log_folder)?.stop(),
        Kubestellar::ListSyncingObjects(arguments) => asynchronously(get::run(&listing(arguments))),
        Kubestellar::Version { part } => version(*part),
        Kubestellar::Release => write_out(&format!("{RELEASE}\n")),
        Kubestellar::Customize { customizer_filename, object, location } => {
            customize::run(&CustomizeArguments {
                object: object.clone(),
                customizer: customizer_filename.iter().cloned().collect(),
                location: location.clone(),
                output: Format::Yaml,
            })
        }
    }
}

const RELEASE: &str = concat!("v", env!("CARGO_PKG_VERSION"));

fn version(part: Option<VersionPart>) -> Result<()> {
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    match part {
        None => {
            write_out(&format!("{}\n", serde_json::json!({ "gitVersion": RELEASE, "platform": platform })))
        }
        Some(VersionPart::Platform) => write_out(&format!("{platform}\n")),
        Some(VersionPart::BuildDate | VersionPart::GitCommit | VersionPart::GitTreeState) => Err(refusal(
            "that is not written into this program; `kubestellar-release` prints its version".to_owned(),
        )),
    }
}

fn listing(arguments: &ListSyncingObjects) -> GetArguments {
    let kind = arguments.api_resource.as_ref().unwrap_or(&arguments.api_kind);
    let group = &arguments.api_group;
    GetArguments {
        what: Shown::Objects,
        name: None,
        workspace: None,
        kind: Some(if group.is_empty() { kind.clone() } else { format!("{kind}.{group}") }),
        provider_workspace: arguments.provider_workspace.clone(),
        output: if arguments.json { Listing::Json } else { Listing::Yaml },
        watch: arguments.watch,
        one_by_one: true,
        server: ServerFlags {
            kubeconfig: arguments.kubeconfig.clone(),
            context: arguments.context.clone(),
            ..ServerFlags::default()
        },
    }
}

async fn init(arguments: &KubestellarInit) -> Result<()> {
    let provider = &arguments.provider_workspace;
    let server = &arguments.folder.server;
    let kcp = KcpFlags {
        kubeconfig: server.kubeconfig.clone(),
        context: server.context.clone(),
        provider_workspace: provider.clone(),
    };
    center::set_up(&InitArguments { kcp }).await?;
    for path in named(&arguments.ensure_imw) {
        ensure::ensure_imw(&ImwArguments {
            name: path.to_owned(),
            kcp_kinds: false,
            provider_workspace: provider.clone(),
            server: server.clone(),
        })
        .await?;
    }
    for path in named(&arguments.ensure_wmw) {
        ensure::ensure_wmw(&WmwArguments {
            name: path.to_owned(),
            with_kube: true,
            provider_workspace: provider.clone(),
            server: server.clone(),
        })
        .await?;
    }
    Ok(())
}

/// What is named in a list that may be empty.
fn named(paths: &[String]) -> impl Iterator<Item = &str> {
    paths.iter().map(|path| path.trim()).filter(|path| !path.is_empty())
}

/// Sets everything up, and leaves a center behind that runs by itself.
fn start(arguments: &KubestellarInit) -> Result<()> {
    let background = Background::new(&arguments.folder.log_folder)?;
    asynchronously(init(arguments))?;
    background.stop()?;
    let mut words: Vec<OsString> =
        ["--provider-workspace", &arguments.provider_workspace].map(OsString::from).into();
    if let Some(kubeconfig) = &arguments.folder.server.kubeconfig {
        words.extend(["--kubeconfig".into(), kubeconfig.into()]);
    }
    if let Some(context) = &arguments.folder.server.context {
        words.extend(["--context".into(), context.into()]);
    }
    background.start(&words)
}
