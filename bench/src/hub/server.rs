//! A `mailboat hub` as a process of its own, with its data on disk.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use mailboat_cluster::{Connection, Settings, Source, Transport as _};
use mailboat_object::wire::{Call, FaultKind, Part, Verb};
use mailboat_object::{ClusterId, Key, KindId, Name};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::memory::{Resident, resident_of};

const READY_LIMIT: Duration = Duration::from_mins(5);
const GLANCE: Duration = Duration::from_millis(2);

/// A hub that serves. It ends with this value.
pub struct HubServer {
    child: Child,
    /// How it is reached, by its administrator.
    pub connection: Connection,
    /// How long it took from the start of the process to its first answer.
    pub ready_after: Duration,
}

impl HubServer {
    /// Starts a hub over the data of a folder, with these further flags, and waits for its first answer.
    pub async fn start(program: &Path, folder: &Path, flags: &[&str]) -> Result<Self> {
        let mut arguments = vec![OsStr::new("--data"), folder.as_os_str()];
        arguments.extend(flags.iter().map(OsStr::new));
        Self::begin(program, folder, &arguments).await
    }

    /// Starts a hub that keeps everything in memory, and waits for its first answer; what is written down of it is in a
    /// folder.
    pub async fn start_in_memory(program: &Path, folder: &Path) -> Result<Self> {
        let kubeconfig = Self::kubeconfig(folder);
        let arguments = ["--memory".as_ref(), "--kubeconfig".as_ref(), kubeconfig.as_os_str()];
        Self::begin(program, folder, &arguments).await
    }

    /// Where the kubeconfig of a hub's administrator is.
    pub fn kubeconfig(folder: &Path) -> PathBuf {
        folder.join("admin.kubeconfig")
    }

    async fn begin(program: &Path, folder: &Path, arguments: &[&OsStr]) -> Result<Self> {
        let kubeconfig = Self::kubeconfig(folder);
        // The next one is written when the hub is ready.
        let _ = std::fs::remove_file(&kubeconfig);
        std::fs::create_dir_all(folder)?;
        let log = File::create(folder.with_extension("log"))?;
        let address = address_of(folder)?;
        let begun = Instant::now();
        let mut child = Command::new(program)
            .args(["hub", "--listen", &address])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        while !kubeconfig.exists() {
            ensure!(
                child.try_wait()?.is_none(),
                "the hub ended: see {}",
                folder.with_extension("log").display()
            );
            ensure!(begun.elapsed() < READY_LIMIT, "the hub does not become ready");
            sleep(GLANCE).await;
        }
        let source = Source::Kubeconfig { path: Some(kubeconfig), context: None };
        let connection = Connection::open(source, Settings::default()).await?;
        let key = Key {
            cluster: ClusterId::new("hub"),
            kind: KindId::new("", "namespaces"),
            namespace: Name::EMPTY,
            name: Name::new("default"),
        };
        let call = Call { key, verb: Verb::Get, part: Part::Whole, dry_run: false };
        while let Err(fault) = connection.cluster().call(call.clone()).await {
            let comes = fault.passes() || fault.kind == FaultKind::NotFound;
            ensure!(comes && begun.elapsed() < READY_LIMIT, "the hub does not answer: {fault}");
            sleep(GLANCE).await;
        }
        Ok(Self { child, connection, ready_after: begun.elapsed() })
    }

    /// What it takes of memory now.
    pub fn resident(&self) -> Result<Resident> {
        Ok(resident_of(self.child.id().context("the hub has ended")?)?)
    }

    /// Its process.
    pub fn pid(&self) -> Result<u32> {
        self.child.id().context("the hub has ended")
    }

    /// Kills it, as a crash would.
    pub async fn kill(mut self) -> Result<()> {
        self.child.kill().await?;
        Ok(())
    }
}

/// Where the hub of a folder listens: at the same place whenever it is started, as users have it.
fn address_of(folder: &Path) -> Result<String> {
    let note = folder.with_extension("address");
    if let Ok(address) = std::fs::read_to_string(&note) {
        return Ok(address);
    }
    let address = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.to_string();
    std::fs::write(note, &address)?;
    Ok(address)
}
