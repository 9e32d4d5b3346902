//! A center that runs in the background, looked after in a folder.
//!
//! The folder holds its log and a file with its process number. That file is locked as long as the center runs: the lock is
//! on what the process has in place of standard input, so it ends with the process, however that ends. So no process is ever
//! taken for a center that merely has its number.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process};

use crate::failure::refusal;

/// A center has read all that it needs within this.
const READY_WITHIN: Duration = Duration::from_mins(3);
/// A center that is told to end takes this long at most.
const ENDS_WITHIN: Duration = Duration::from_secs(30);
/// Its own machine answers within this.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(100);
/// How the log line ends that says where the center can be asked how it is.
const SERVED: &str = "health and metrics are served address=";

/// The folder of a center in the background.
pub(super) struct Background {
    folder: PathBuf,
}

impl Background {
    /// In this folder, which is made.
    pub(super) fn new(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Starts a center with these flags, and waits until it is ready.
    pub(super) fn start(&self, words: &[OsString]) -> Result<()> {
        let log_file = self.folder.join("center-log.txt");
        let unwritten = |file: &Path| format!("{} cannot be written", file.display());
        let log = File::create(&log_file).with_context(|| unwritten(&log_file))?;
        let errors = log.try_clone().with_context(|| unwritten(&log_file))?;
        let number = self.number_file();
        let mut lock = File::create(&number).with_context(|| unwritten(&number))?;
        lock.try_lock()
            .map_err(|_| refusal(format!("another center was started in {}", self.folder.display())))?;
        let kept = lock.try_clone().with_context(|| unwritten(&number))?;
        let program = std::env::current_exe().context("this program cannot find its own file")?;
        let mut center = Command::new(program);
        center.args(["center", "--listen", "127.0.0.1:0"]).args(words);
        // In a group of its own, so that whoever interrupts the shell does not end it.
        center.stdin(kept).stdout(log).stderr(errors).process_group(0);
        let mut running = center.spawn().context("the center cannot be started")?;
        write!(lock, "{}", running.id()).with_context(|| unwritten(&number))?;
        drop(lock);
        self.until_ready(&mut running, &log_file)?;
        say!("the center runs as process {}; it writes {}", running.id(), log_file.display());
        Ok(())
    }

    fn until_ready(&self, running: &mut Child, log_file: &Path) -> Result<()> {
        let end = Instant::now() + READY_WITHIN;
        loop {
            let log = fs::read_to_string(log_file).unwrap_or_default();
            if running.try_wait().context("the center cannot be waited for")?.is_some() {
                let _ = fs::remove_file(self.number_file());
                return Err(anyhow!("the center did not begin: {}", log.lines().last().unwrap_or_default()));
            }
            let said = address_in(&log).map_or_else(|| Err("it is starting".to_owned()), ready);
            let Err(why) = said else { return Ok(()) };
            if Instant::now() >= end {
                return Err(anyhow!(
                    "the center runs as process {}, and is not ready after {} seconds: {why}; see {}",
                    running.id(),
                    READY_WITHIN.as_secs(),
                    log_file.display()
                ));
            }
            sleep(GLANCE);
        }
    }

    /// Ends the center that was started here, if it runs.
    pub(super) fn stop(&self) -> Result<()> {
        let file = self.number_file();
        let Ok(mut opened) = OpenOptions::new().read(true).write(true).open(&file) else { return Ok(()) };
        let mut number = String::new();
        opened.read_to_string(&mut number).with_context(|| format!("{} cannot be read", file.display()))?;
        if !is_free(&opened)? {
            let meant = number.trim().parse().ok().and_then(Pid::from_raw);
            let center =
                meant.ok_or_else(|| refusal(format!("{} holds no number of a process", file.display())))?;
            kill_process(center, Signal::TERM)
                .with_context(|| format!("process {number} cannot be told to end"))?;
            let end = Instant::now() + ENDS_WITHIN;
            while !is_free(&opened)? {
                if Instant::now() >= end {
                    return Err(anyhow!("the center, process {number}, does not end"));
                }
                sleep(GLANCE);
            }
            say!("the center, process {number}, has ended");
        }
        fs::remove_file(&file).with_context(|| format!("{} cannot be removed", file.display()))
    }

    fn number_file(&self) -> PathBuf {
        self.folder.join("center.pid")
    }
}

/// Whether nobody holds the lock; it is ours then, until the file is closed.
fn is_free(file: &File) -> Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error).context("it cannot be learned whether a center runs"),
    }
}

/// Where a center says in its log that it can be asked how it is.
fn address_in(log: &str) -> Option<SocketAddr> {
    log.lines().find_map(|line| line.split_once(SERVED)?.1.split_whitespace().next()?.parse().ok())
}

/// Whether a center is ready; if not, why.
fn ready(address: SocketAddr) -> Result<(), String> {
    let asked = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWERS_WITHIN)?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
        write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = asked().map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(body.trim().to_owned()) }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn only_the_center_that_was_started_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let background = Background::new(folder.path()).unwrap();
        background.stop().unwrap();
        // The number may have been given to another process since, as to this one.
        let file = background.number_file();
        fs::write(&file, std::process::id().to_string()).unwrap();
        background.stop().unwrap();
        assert!(!file.exists(), "it is of no use any more");
        fs::write(&file, "many").unwrap();
        background.stop().unwrap();
    }

    #[test]
    fn a_center_is_told_to_end_by_the_lock_that_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let background = Background::new(folder.path()).unwrap();
        let file = background.number_file();
        let mut lock = File::create(&file).unwrap();
        lock.try_lock().unwrap();
        let kept = lock.try_clone().unwrap();
        // Any process will do that keeps what it was given as standard input.
        let mut running = Command::new("sleep").arg("600").stdin(kept).stdout(Stdio::null()).spawn().unwrap();
        write!(lock, "{}", running.id()).unwrap();
        drop(lock);
        let ended = std::thread::scope(|scope| {
            let ended = scope.spawn(|| running.wait());
            background.stop().unwrap();
            ended.join().unwrap().unwrap()
        });
        assert!(!ended.success() && !file.exists());
    }

    #[test]
    fn where_a_center_can_be_asked_is_read_from_its_log() {
        let log = "2026-11-18T08:00:00Z  INFO mailboat_cli::center: health and metrics are served address=127.0.0.1:4711\nmore\n";
        assert_eq!(address_in(log), Some(SocketAddr::from(([127, 0, 0, 1], 4711))));
        assert_eq!(address_in("the center begins\n"), None);
    }
}
