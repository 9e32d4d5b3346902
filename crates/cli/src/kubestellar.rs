//! KubeStellar's own commands, by their own names: each does what the command of ours does that took its place.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};

use crate::asynchronously;
use crate::documents::{Format, write_out};
use crate::failure::refusal;
use crate::flags::{
    CustomizeArguments, GetArguments, ImwArguments, InitArguments, KcpFlags, Kubestellar, KubestellarInit,
    ListSyncingObjects, Listing, ServerFlags, Shown, VersionPart, WmwArguments,
};
use crate::{center, customize, ensure, get};

/// A center that cannot begin says so within this.
const BEGINS_WITHIN: Duration = Duration::from_secs(2);
/// A center that is told to end takes this long at most.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(100);

/// Does what is asked for.
pub fn run(command: &Kubestellar) -> Result<()> {
    match command {
        Kubestellar::Init(arguments) => asynchronously(init(arguments)),
        Kubestellar::Start(arguments) => start(arguments),
        Kubestellar::Stop(arguments) => stop(&arguments.log_folder),
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
    let folder = &arguments.folder.log_folder;
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    asynchronously(init(arguments))?;
    stop(folder)?;
    let log_file = folder.join("center-log.txt");
    let log = File::create(&log_file).with_context(|| format!("{} cannot be made", log_file.display()))?;
    let program = std::env::current_exe().context("this program cannot find its own file")?;
    let mut center = Command::new(program);
    center.args(["center", "--listen", "127.0.0.1:0", "--provider-workspace", &arguments.provider_workspace]);
    if let Some(kubeconfig) = &arguments.folder.server.kubeconfig {
        center.arg("--kubeconfig").arg(kubeconfig);
    }
    if let Some(context) = &arguments.folder.server.context {
        center.args(["--context", context]);
    }
    let errors = log.try_clone().context("its log cannot be written")?;
    // In a group of its own, so that whoever interrupts the shell does not end it.
    center.stdin(Stdio::null()).stdout(log).stderr(errors).process_group(0);
    let mut running = center.spawn().context("the center cannot be started")?;
    let begun = Instant::now();
    while begun.elapsed() < BEGINS_WITHIN {
        if running.try_wait().context("the center cannot be waited for")?.is_some() {
            let said = fs::read_to_string(&log_file).unwrap_or_default();
            return Err(anyhow!("the center did not begin: {}", said.lines().last().unwrap_or_default()));
        }
        sleep(GLANCE);
    }
    let number = number_file(folder);
    fs::write(&number, running.id().to_string())
        .with_context(|| format!("{} cannot be written", number.display()))?;
    say!("the center runs as process {}; it writes {}", running.id(), log_file.display());
    Ok(())
}

fn number_file(folder: &Path) -> PathBuf {
    folder.join("center.pid")
}

/// Ends the center that `start` left behind, if there is one.
fn stop(folder: &Path) -> Result<()> {
    let file = number_file(folder);
    let Ok(number) = fs::read_to_string(&file) else { return Ok(()) };
    let number: u32 = number
        .trim()
        .parse()
        .map_err(|_| refusal(format!("{} holds no number of a process; remove it", file.display())))?;
    if is_center(number) {
        let told = Command::new("kill").arg(number.to_string()).status().context("kill cannot be run")?;
        let begun = Instant::now();
        while told.success() && is_center(number) && begun.elapsed() < ENDS_WITHIN {
            sleep(GLANCE);
        }
        if is_center(number) {
            return Err(anyhow!("the center, process {number}, does not end"));
        }
        say!("the center, process {number}, has ended");
    }
    fs::remove_file(&file).with_context(|| format!("{} cannot be removed", file.display()))
}

/// Whether a process is a center still. Its number may be another's by now.
fn is_center(number: u32) -> bool {
    let asked = Command::new("ps").args(["-o", "stat=,args=", "-p", &number.to_string()]).output();
    asked.is_ok_and(|answer| {
        let line = String::from_utf8_lossy(&answer.stdout).into_owned();
        line.contains(" center --listen ") && !line.trim_start().starts_with('Z')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_center_that_was_started_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        stop(folder.path()).unwrap();
        // The number may have been given to another process since, as to this one.
        let file = number_file(folder.path());
        fs::write(&file, std::process::id().to_string()).unwrap();
        stop(folder.path()).unwrap();
        assert!(!file.exists(), "it is of no use any more");
        fs::write(&file, "many").unwrap();
        assert!(stop(folder.path()).unwrap_err().to_string().contains("holds no number"));
    }
}
