//! One run of a container: a real process in its sandbox.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::sandbox::Sandbox;
use crate::error::{Doing, Error, Result};
use crate::files::write_private;
use crate::process::{Invocation, Lifetime, ProcessIdentity};
use crate::wait::wait_until;

/// What is said of an end that could not be seen.
pub(super) const UNKNOWN_EXIT_CODE: i32 = 255;
/// The namespaces of a container stand milliseconds after their process does.
const ENTRY_LIMIT: Duration = Duration::from_secs(10);

/// Waits for the program and ends as it did. `unshare --fork` would do, but takes a killed program for a failure of
/// its own. The shell's remark that the program was killed does not belong into the container's log.
const KEEPER: &str = r#"exec 3>&2 2>/dev/null; setpriv --pdeathsig=KILL sh "$1" 2>&3 3>&-; exit "$?""#;

/// A process that runs in its namespaces. Dropping it kills it, and everything that it started there.
#[derive(Debug)]
pub(super) struct Run {
    /// Waits for the program, and ends as it did.
    keeper: Child,
    keeper_identity: ProcessIdentity,
    /// Process 1 of the namespaces; unknown if it ended before it could be seen.
    program: Option<ProcessIdentity>,
}

impl Run {
    /// Starts what `sandbox` describes; its output goes to `log`, and `folder` holds what is needed meanwhile.
    pub(super) async fn start(sandbox: &Sandbox, folder: &Path, log: PathBuf) -> Result<Self> {
        let script = folder.join("sandbox.sh");
        write_private(&script, &sandbox.script())?;
        let words = ["--mount", "--propagation=private", "--uts", "--pid", "sh", "-c", KEEPER, "keeper"];
        let invocation = Invocation {
            program: PathBuf::from("unshare"),
            arguments: words.into_iter().map(str::to_owned).chain([script.display().to_string()]).collect(),
            environment: Vec::new(),
            log,
            lifetime: Lifetime::Ours,
        };
        let mut keeper = Keeper(Some(invocation.spawn()?));
        let pid = keeper.id();
        let keeper_identity = ProcessIdentity::of(pid)?;
        let program = wait_until(format!("the container in {}", folder.display()), ENTRY_LIMIT, async || {
            match only_child(pid) {
                Some(program) => Ok(Some(program)),
                None if keeper_identity.is_alive() => Err(format!("process {pid} has not forked yet")),
                None => Ok(None),
            }
        })
        .await?;
        let Some(keeper) = keeper.0.take() else {
            return Err(Error::NotRunning { part: folder.display().to_string() });
        };
        Ok(Self { keeper, keeper_identity, program })
    }

    /// The program itself.
    pub(super) fn program(&self) -> Option<&ProcessIdentity> {
        self.program.as_ref()
    }

    /// The process that ends when the program has, and takes the program with it when it is killed.
    pub(super) fn keeper(&self) -> &ProcessIdentity {
        &self.keeper_identity
    }

    /// Waits until it has ended.
    pub(super) async fn ended(&mut self) -> Result<ExitStatus> {
        let pid = self.keeper_identity.pid;
        let io_error = |source| Error::Io { doing: format!("waiting for process {pid}"), source };
        // Listening begins before the first look, so that no end falls between the two.
        let mut children = signal(SignalKind::child()).map_err(io_error)?;
        loop {
            if let Some(status) = self.keeper.try_wait().map_err(io_error)? {
                return Ok(status);
            }
            children.recv().await;
        }
    }

    /// Asks it to end, and kills it after `grace`. A program without a handler for SIGTERM does not hear it, since
    /// it is process 1 of its namespace: that is so in every container.
    pub(super) async fn end(&mut self, grace: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        match tokio::time::timeout(grace, self.ended()).await {
            Ok(ended) => ended,
            Err(_elapsed) => {
                self.signal(Signal::KILL)?;
                self.ended().await
            }
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        self.program.iter().try_for_each(|program| program.signal(signal).map(drop))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Either may be gone already, which is what is wanted.
        let _ = self.signal(Signal::KILL);
        let _ = self.keeper_identity.signal(Signal::KILL);
        // It is killed, or has ended before: this does not take long, and leaves no zombie.
        let _ = self.keeper.wait();
    }
}

/// The code that a container's end is reported with: 128 and the signal's number, if a signal brought it about.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(UNKNOWN_EXIT_CODE)
}

/// Kills a child whose start was not completed.
struct Keeper(Option<Child>);

impl Keeper {
    fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn only_child(pid: u32) -> Option<ProcessIdentity> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    ProcessIdentity::of(children.split_ascii_whitespace().next()?.parse().ok()?).ok()
}

/// Makes room for a run, in place of the one before.
pub(super) fn fresh_folder(folder: &Path) -> Result<()> {
    crate::files::remove_folder(folder)?;
    fs::create_dir_all(folder).doing("creating", folder)
}
