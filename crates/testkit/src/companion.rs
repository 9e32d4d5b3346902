//! A program of ours beside a world: it ends with this process at the latest, however that ends.

use std::fs;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;

use crate::error::{Doing as _, Result};
use crate::process::{Invocation, Lifetime, ProcessIdentity};
use crate::wait::wait_until;

/// A running program, whose output goes to a file. Dropping it kills it.
///
/// It belongs to no runtime, so tests may share one.
#[derive(Debug)]
pub struct Companion {
    child: Child,
    program: PathBuf,
    log: PathBuf,
}

impl Companion {
    /// Starts a program; what it says is appended to the log.
    pub fn start(program: &Path, arguments: &[&str], log: &Path) -> Result<Self> {
        let invocation = Invocation {
            program: program.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: Vec::new(),
            log: log.to_owned(),
            lifetime: Lifetime::Ours,
        };
        Ok(Self { child: invocation.spawn()?, program: program.to_owned(), log: log.to_owned() })
    }

    /// What it has said so far, and those before it with the same log.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills it (SIGKILL): whatever it was about is left as it is.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().doing("killing", &self.program)?;
        self.child.wait().doing("waiting for", &self.program)?;
        Ok(())
    }

    /// Tells it to end (SIGTERM), and gives back how it did; `None` if a signal ended it.
    pub async fn end(mut self, limit: Duration) -> Result<Option<i32>> {
        ProcessIdentity::of(self.child.id())?.signal(Signal::TERM)?;
        let what = format!("{} ended", self.program.display());
        let ended = wait_until(what, limit, || {
            ready(match self.child.try_wait() {
                Ok(Some(status)) => Ok(status.code()),
                Ok(None) => Err("it still runs".to_owned()),
                Err(error) => Err(error.to_string()),
            })
        });
        Ok(ended.await?)
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        // One that has ended cannot be killed, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_companion_says_how_it_ended() {
        let folder = std::env::temp_dir().join(format!("mailboat-companion-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let log = folder.join("log");
        let script = "trap 'echo ending; exit 3' TERM; echo begun; while true; do sleep 0.05; done";
        let companion = Companion::start(Path::new("sh"), &["-c", script], &log).unwrap();
        let limit = Duration::from_secs(20);
        wait_until("it has begun", limit, async || match companion.log() {
            log if log.contains("begun") => Ok(()),
            log => Err(log),
        })
        .await
        .unwrap();
        assert_eq!(companion.end(limit).await.unwrap(), Some(3));
        assert!(fs::read_to_string(&log).unwrap().contains("ending"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
