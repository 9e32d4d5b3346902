//! `mailboat center` as a process of its own.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::cpu;
use crate::memory::{Resident, resident_of};

const GLANCE: Duration = Duration::from_millis(100);
/// A center that takes no more of a processor from one glance to the next, for so long, has nothing to do.
const IDLE: Duration = Duration::from_millis(5);
const IDLE_FOR: Duration = Duration::from_secs(4);

/// A center that runs. It ends with this value.
pub struct CenterProcess {
    child: Child,
    address: String,
    begun: Instant,
}

impl CenterProcess {
    /// Starts a center over the server of a kubeconfig, alone and so without a lease; what it says goes to a file.
    pub fn start(program: &Path, kubeconfig: &Path, log: &Path) -> Result<Self> {
        let address = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.to_string();
        let child = Command::new(program)
            .args(["center", "--leader-elect=false", "--listen", &address, "--kubeconfig"])
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        Ok(Self { child, address, begun: Instant::now() })
    }

    /// Waits until it has read everything, so many objects are where they should be, and it has nothing left to do. How
    /// long that took from its start, without the time that it took to be sure of it.
    pub async fn until_steady(&mut self, delivered: usize, limit: Duration) -> Result<Duration> {
        let (mut spent, mut busy) = (self.spent()?, Instant::now());
        loop {
            sleep(GLANCE).await;
            ensure!(self.child.try_wait()?.is_none(), "the center ended");
            let before = std::mem::replace(&mut spent, self.spent()?);
            if spent.saturating_sub(before) > IDLE {
                busy = Instant::now();
            }
            if busy.elapsed() > IDLE_FOR && self.has_delivered(delivered).await {
                return Ok(busy.duration_since(self.begun));
            }
            ensure!(
                self.begun.elapsed() < limit,
                "the center is not steady after {limit:?}:\n{}",
                self.metrics().await.unwrap_or_default()
            );
        }
    }

    /// How long it has run on processors.
    pub fn spent(&self) -> Result<Duration> {
        Ok(cpu::spent_by_threads_of(self.pid()?)?)
    }

    /// What it takes of memory.
    pub fn resident(&self) -> Result<Resident> {
        Ok(resident_of(self.pid()?)?)
    }

    /// Its process.
    pub fn pid(&self) -> Result<u32> {
        self.child.id().context("the center has ended")
    }

    /// Kills it, as a crash would.
    pub async fn kill(mut self) -> Result<()> {
        self.child.kill().await?;
        Ok(())
    }

    async fn has_delivered(&self, delivered: usize) -> bool {
        let Ok(metrics) = self.metrics().await else { return false };
        let value = |name: &str| {
            let line = metrics.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).unwrap_or_default()
        };
        value("mailboat_ready ") == 1
            && value("mailboat_slots{state=\"delivered\"}") >= delivered
            && value("mailboat_slots{state=\"waiting\"}") == 0
    }

    async fn metrics(&self) -> Result<String> {
        let mut link = TcpStream::connect(&self.address).await?;
        link.write_all(b"GET /metrics HTTP/1.1\r\nHost: center\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        link.read_to_string(&mut text).await?;
        Ok(text)
    }
}
