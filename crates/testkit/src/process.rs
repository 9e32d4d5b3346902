//! Processes that never outlive what they were started for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::error::{Doing, Error, Result};

/// How long a process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// As long as this process at most: the kernel kills it when this process ends, even by SIGKILL.
    Ours,
    /// Until it is ended: for a testbed that outlives the command that started it.
    ItsOwn,
}

/// A process as the kernel knows it. A process id alone is used again by others; with the time of its start, in
/// one boot of the machine, it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: u32,
    /// Clock ticks between the machine's boot and the process's start.
    pub start_ticks: u64,
    /// The boot of the machine in which this holds.
    pub boot_id: String,
}

impl ProcessIdentity {
    /// What runs under `pid` now.
    pub fn of(pid: u32) -> Result<Self> {
        let boot_file = Path::new("/proc/sys/kernel/random/boot_id");
        let boot_id = fs::read_to_string(boot_file).doing("reading", boot_file)?.trim().to_owned();
        let (start_ticks, _state) = stat(pid)?;
        Ok(Self { pid, start_ticks, boot_id })
    }

    /// Whether this very process still runs. A zombie, which only waits for its parent to look, does not.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == *self)
            && stat(self.pid).is_ok_and(|(_, state)| state != 'Z')
    }

    /// Sends a signal, if this very process still runs.
    pub fn signal(&self, signal: Signal) -> Result<bool> {
        if !self.is_alive() {
            return Ok(false);
        }
        send(self.pid, signal)?;
        Ok(true)
    }

    /// Resident memory in bytes, while it runs.
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kibibytes * 1024)
    }
}

/// What to run, and where its output goes.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) log: PathBuf,
    pub(crate) lifetime: Lifetime,
}

impl Invocation {
    /// Starts the process. Its output is appended to the log.
    pub(crate) fn spawn(&self) -> Result<Child> {
        use std::os::unix::process::CommandExt as _;
        use std::process::Stdio;

        let log =
            fs::OpenOptions::new().create(true).append(true).open(&self.log).doing("opening", &self.log)?;
        let log_too = log.try_clone().doing("opening", &self.log)?;
        let mut command = match self.lifetime {
            Lifetime::Ours => {
                let mut command = Command::new("setpriv");
                command.args(["--pdeathsig", "KILL"]).arg(&self.program);
                command
            }
            Lifetime::ItsOwn => Command::new(&self.program),
        };
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(log_too)
            // A Ctrl-C at the terminal is for us; we end our processes ourselves.
            .process_group(0);
        let doing = match self.lifetime {
            Lifetime::Ours => "starting (with setpriv of util-linux, which must be on the PATH)",
            Lifetime::ItsOwn => "starting",
        };
        spawn_from_lasting_thread(command).doing(doing, &self.program)
    }
}

/// Sends a signal to a process that the caller knows to be the right one.
pub(crate) fn send(pid: u32, signal: Signal) -> Result<()> {
    let doing = || format!("sending signal {signal:?} to process {pid}");
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(target) = raw else {
        return Err(Error::Io { doing: doing(), source: io::Error::from(io::ErrorKind::InvalidInput) });
    };
    rustix::process::kill_process(target, signal)
        .map_err(|errno| Error::Io { doing: doing(), source: errno.into() })
}

struct Order {
    command: Command,
    answer: mpsc::SyncSender<io::Result<Child>>,
}

/// The kernel sends the death signal when the *thread* that started a process ends, and tests run in threads that
/// come and go. So one thread, which lasts as long as this process, starts them all.
fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    static ORDERS: LazyLock<Mutex<mpsc::Sender<Order>>> = LazyLock::new(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            while let Ok(Order { mut command, answer }) = orders.recv() {
                // Nobody listening any more means that nobody would ever end the process.
                if let Err(mpsc::SendError(Ok(mut orphan))) = answer.send(command.spawn()) {
                    let _ = orphan.kill();
                    let _ = orphan.wait();
                }
            }
        });
        Mutex::new(sender)
    });
    let gone = || io::Error::other("the thread that starts processes is gone");
    let (answer, child) = mpsc::sync_channel(1);
    let order = Order { command, answer };
    ORDERS.lock().unwrap_or_else(PoisonError::into_inner).send(order).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

/// Start time in clock ticks since boot, and state.
fn stat(pid: u32) -> Result<(u64, char)> {
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    let text = fs::read_to_string(&path).doing("reading", &path)?;
    parse_stat(&text).ok_or_else(|| Error::Malformed {
        what: path.display().to_string(),
        why: format!("not a process's status line: {text:?}"),
    })
}

// The second field is the program's name in parentheses, and may itself hold spaces and parentheses; after its
// last ")" come the state and then numbers, the start time being the twenty-second field of the whole line.
fn parse_stat(text: &str) -> Option<(u64, char)> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some((start_ticks, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_line_is_read_even_if_the_program_has_an_odd_name() {
        let line = "42 (a) b (c)) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 987654 11 12";
        assert_eq!(parse_stat(line), Some((987_654, 'S')));
        assert_eq!(parse_stat("42 (cut off) S 1 42"), None);
    }

    #[test]
    fn an_identity_holds_for_this_process_and_not_for_another_start() {
        let own = ProcessIdentity::of(std::process::id()).unwrap();
        assert!(own.is_alive(), "{own:?}");
        let earlier = ProcessIdentity { start_ticks: own.start_ticks - 1, ..own.clone() };
        assert!(!earlier.is_alive(), "{earlier:?}");
        assert!(!earlier.signal(Signal::KILL).unwrap(), "a signal went to the wrong process");
        assert!(own.resident_bytes().unwrap() > 0);
    }
}
