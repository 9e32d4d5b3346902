//! One of those who carry, as a process of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::process::{Child, Command};

use crate::{cpu, memory};

/// The program of the engine and the bare loop.
const PROGRAM: &str = "carrier";

/// How one of those who carry is started.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// Its name, as measurements say it.
    pub name: &'static str,
    /// The program and its arguments.
    pub program: PathBuf,
    /// What it is told.
    pub arguments: Vec<String>,
    /// Where it says what is worth saying.
    pub log: Option<PathBuf>,
}

/// A process that carries; it ends with this value, and with the benchmark however that ends.
pub struct Running {
    child: Child,
    /// When it was started.
    pub begun: Instant,
    pid: u32,
}

impl Carrier {
    /// The engine or the bare loop: a program beside this one, called with a role and two kubeconfigs.
    pub fn of(name: &'static str, role: &str, from: &Path, to: &Path) -> Result<Self> {
        let here = std::env::current_exe().context("this program does not know where it is")?;
        let program = here.with_file_name("examples").join(PROGRAM);
        ensure!(program.exists(), "{} is not there: `cargo xtask bench` builds it", program.display());
        let arguments = [Path::new(role), from, to].map(|word| word.display().to_string()).to_vec();
        Ok(Self { name, program, arguments, log: None })
    }

    /// Starts it.
    pub fn start(&self) -> Result<Running> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&self.program).args(&self.arguments);
        let log = match &self.log {
            Some(path) => Stdio::from(std::fs::OpenOptions::new().create(true).append(true).open(path)?),
            None => Stdio::inherit(),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        let begun = Instant::now();
        let child = command.spawn().with_context(|| format!("{} cannot be started", self.name))?;
        let pid = child.id().context("it ended at once")?;
        Ok(Running { child, begun, pid })
    }
}

impl Running {
    /// What it has resident.
    pub fn resident(&self) -> Result<memory::Resident> {
        Ok(memory::resident_of(self.pid)?)
    }

    /// How long its threads have run on a processor so far.
    pub fn processor_time(&self) -> Result<Duration> {
        Ok(cpu::spent_by(self.pid)?)
    }

    /// Kills it.
    pub async fn end(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }
}
