//! One server process of a world: stopped, killed, paused, restarted and set back in time by itself.

use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::access::{Access, Credential};
use crate::error::{Doing, Error, Result};
use crate::files::{copy_folder, last_lines, remove_folder, write_private};
use crate::place::{ADMIN, Place};
use crate::ports::Port;
use crate::process::{Invocation, Lifetime, ProcessIdentity, send};
use crate::wait::wait_until;

/// Servers flush and close their connections after SIGTERM; the slowest seen took 12 s on a busy machine.
const STOP_LIMIT: Duration = Duration::from_secs(40);
/// A killed process is gone as soon as the kernel has taken back its memory.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// kcp takes half a minute on two idle cores, and tests do not run on idle ones.
const READY_LIMIT: Duration = Duration::from_mins(3);

const LOG_FILE: &str = "log";
const PROCESS_FILE: &str = "process.json";

/// One server process: etcd, kube-apiserver, kcp and so on.
#[derive(Debug)]
pub struct Part {
    kind: PartKind,
    name: String,
    folder: PathBuf,
    port: u16,
    probe: Probe,
    hold: Hold,
}

/// Which server a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// etcd, behind one or more edges' API servers.
    Etcd,
    /// kcp, with its own etcd inside.
    Kcp,
    /// kube-apiserver.
    KubeApiserver,
    /// kube-controller-manager.
    KubeControllerManager,
    /// kube-scheduler.
    KubeScheduler,
    /// KWOK.
    Kwok,
    /// The embedded hub, in place of all others.
    Hub,
}

/// Where a part answers whether it is ready.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    access: Access,
    path: &'static str,
}

impl Probe {
    /// The probe of a part that listens on `port`, with the access that its place gives.
    pub(crate) fn new(kind: PartKind, port: u16, place: Option<&Place>) -> Result<Self> {
        let plain = Access {
            url: format!("http://127.0.0.1:{port}"),
            ca_pem: None,
            credential: Credential::Anonymous,
        };
        let tls = |place: &Place| Access {
            url: format!("https://127.0.0.1:{port}"),
            ca_pem: Some(place.ca_pem().to_owned()),
            credential: Credential::Anonymous,
        };
        let (access, path) = match (kind, place) {
            (PartKind::Kcp | PartKind::KubeApiserver | PartKind::Hub, Some(place)) => {
                (place.access(ADMIN, "")?, "/readyz")
            }
            (PartKind::KubeControllerManager | PartKind::KubeScheduler, Some(place)) => {
                (tls(place), "/healthz")
            }
            (PartKind::Kwok, _) => (plain, "/healthz"),
            (_, _) => (plain, "/health"),
        };
        Ok(Self { access, path })
    }
}

/// How to start a part.
#[derive(Debug)]
pub(crate) struct PartSpec {
    pub(crate) kind: PartKind,
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) lifetime: Lifetime,
    pub(crate) port: Port,
    /// Ports that the part needs besides the one that it is asked on.
    pub(crate) more_ports: Vec<Port>,
    pub(crate) probe: Probe,
}

#[derive(Debug)]
enum Hold {
    Started(Box<Started>),
    Joined,
}

#[derive(Debug)]
struct Started {
    invocation: Invocation,
    data: Option<PathBuf>,
    // While the child is not waited for, its process id belongs to it; every signal is sent under this lock.
    child: Mutex<Option<Child>>,
    released: Mutex<bool>,
    _ports: Vec<Port>,
}

/// Servers of tests live for minutes and share few cores: they may take more memory before they spend time on freeing it.
const GO_MEMORY: (&str, &str) = ("GOGC", "400");

impl Part {
    /// Starts a part; it is not ready yet.
    pub(crate) fn launch(spec: PartSpec) -> Result<Self> {
        std::fs::create_dir_all(&spec.folder).doing("creating", &spec.folder)?;
        let mut environment = vec![(GO_MEMORY.0.to_owned(), GO_MEMORY.1.to_owned())];
        environment.extend(spec.environment);
        let invocation = Invocation {
            program: spec.program,
            arguments: spec.arguments,
            environment,
            log: spec.folder.join(LOG_FILE),
            lifetime: spec.lifetime,
        };
        let port = spec.port.number();
        let started = Started {
            invocation,
            data: spec.data,
            child: Mutex::new(None),
            released: Mutex::new(false),
            _ports: std::iter::once(spec.port).chain(spec.more_ports).collect(),
        };
        let part = Self {
            kind: spec.kind,
            name: spec.name,
            folder: spec.folder,
            port,
            probe: spec.probe,
            hold: Hold::Started(Box::new(started)),
        };
        part.spawn()?;
        Ok(part)
    }

    /// A part that another process started and steers.
    pub(crate) fn joined(kind: PartKind, name: String, folder: PathBuf, port: u16, probe: Probe) -> Self {
        Self { kind, name, folder, port, probe, hold: Hold::Joined }
    }

    /// Which server it is.
    pub fn kind(&self) -> PartKind {
        self.kind
    }

    /// The part's name, such as `guilder/kube-apiserver`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port that it listens on, which a restart keeps.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The part's own folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that holds everything it printed, over restarts.
    pub fn log(&self) -> PathBuf {
        self.folder.join(LOG_FILE)
    }

    /// The process that runs, if one does.
    pub fn process(&self) -> Option<ProcessIdentity> {
        let identity = match &self.hold {
            Hold::Started(started) => {
                let mut child = started.child();
                let child = child.as_mut()?;
                if !matches!(child.try_wait(), Ok(None)) {
                    return None;
                }
                ProcessIdentity::of(child.id()).ok()
            }
            Hold::Joined => recorded_process(&self.folder),
        };
        identity.filter(ProcessIdentity::is_alive)
    }

    /// Asks it to end (SIGTERM) and waits until it has. A paused part is resumed, or it could not hear.
    pub async fn stop(&self) -> Result<()> {
        self.signal(Signal::TERM)?;
        self.signal(Signal::CONT)?;
        self.ended(STOP_LIMIT).await.map(drop)
    }

    /// Ends it at once (SIGKILL), as a crash or a power cut would, and waits until it is gone.
    pub async fn kill(&self) -> Result<()> {
        self.signal(Signal::KILL)?;
        self.ended(KILL_LIMIT).await.map(drop)
    }

    /// Stops it from running while its connections stay open (SIGSTOP), until [`Part::resume`].
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets a paused part run on (SIGCONT).
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Starts a stopped or killed part again, with the same port, data and flags, and waits until it is ready.
    pub async fn start(&self) -> Result<()> {
        if self.process().is_some() {
            return Err(Error::Running { part: self.name.clone() });
        }
        self.spawn()?;
        self.ready().await
    }

    /// Stops it, if it runs, and starts it again.
    pub async fn restart(&self) -> Result<()> {
        if self.process().is_some() {
            self.stop().await?;
        }
        self.start().await
    }

    /// Waits until it says that it is ready.
    pub async fn ready(&self) -> Result<()> {
        let client = self.probe.access.client().await?;
        let description = format!("{} ready", self.name);
        let look = || async {
            let request =
                http::Request::get(self.probe.path).body(Vec::new()).map_err(|error| error.to_string())?;
            client.request_text(request).await.map(drop).map_err(|error| error.to_string())
        };
        tokio::select! {
            waited = wait_until(description, READY_LIMIT, look) => Ok(waited?),
            ended = self.ended_by_itself() => Err(Error::Ended {
                part: self.name.clone(),
                status: ended,
                log: self.log(),
                tail: last_lines(&self.log(), 15),
            }),
        }
    }

    /// Whether it says, within `limit`, that it is ready.
    pub async fn is_ready(&self, limit: Duration) -> bool {
        self.process().is_some() && matches!(tokio::time::timeout(limit, self.ready()).await, Ok(Ok(())))
    }

    /// Keeps a copy of its data under `name`. It must be stopped, or the copy would be torn.
    pub fn save_data(&self, name: &str) -> Result<()> {
        let (data, saved) = self.data_folders(name)?;
        remove_folder(&saved)?;
        copy_folder(&data, &saved)
    }

    /// Puts back the data that was saved under `name`, as someone does who restores a backup.
    pub fn restore_data(&self, name: &str) -> Result<()> {
        let (data, saved) = self.data_folders(name)?;
        if !saved.is_dir() {
            return Err(Error::Malformed {
                what: format!("data of {}", self.name),
                why: format!("nothing was saved under {name:?}"),
            });
        }
        remove_folder(&data)?;
        copy_folder(&saved, &data)
    }

    /// From now on it lives on when this value is dropped.
    pub(crate) fn release(&self) {
        if let Hold::Started(started) = &self.hold {
            *started.released.lock().unwrap_or_else(PoisonError::into_inner) = true;
        }
    }

    fn spawn(&self) -> Result<()> {
        let started = self.started()?;
        let child = started.invocation.spawn()?;
        let pid = child.id();
        *started.child() = Some(child);
        let identity = ProcessIdentity::of(pid)?;
        let record = serde_json::to_string(&identity)
            .map_err(|error| Error::Malformed { what: PROCESS_FILE.to_owned(), why: error.to_string() })?;
        write_private(&self.folder.join(PROCESS_FILE), &record)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let not_running = || Error::NotRunning { part: self.name.clone() };
        let mut child = self.started()?.child();
        let child = child.as_mut().ok_or_else(not_running)?;
        match child.try_wait() {
            Ok(None) => send(child.id(), signal),
            Ok(Some(_)) | Err(_) => Err(not_running()),
        }
    }

    async fn ended(&self, limit: Duration) -> Result<ExitStatus> {
        let started = self.started()?;
        let status = wait_until(format!("{} ended", self.name), limit, async || {
            let mut child = started.child();
            match child.as_mut().map(Child::try_wait) {
                Some(Ok(Some(status))) => Ok(status),
                Some(Ok(None)) => Err("it still runs".to_owned()),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("it was never started".to_owned()),
            }
        })
        .await?;
        Ok(status)
    }

    // A part of a joined world is nobody's child here: only its parent can see how it ends.
    async fn ended_by_itself(&self) -> String {
        match self.hold {
            Hold::Started(_) => match self.ended(READY_LIMIT).await {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            },
            Hold::Joined => std::future::pending().await,
        }
    }

    fn data_folders(&self, name: &str) -> Result<(PathBuf, PathBuf)> {
        let started = self.started()?;
        let data = started.data.clone().ok_or_else(|| Error::NoData { part: self.name.clone() })?;
        if self.process().is_some() {
            return Err(Error::Running { part: self.name.clone() });
        }
        Ok((data, self.folder.join("saved").join(name)))
    }

    fn started(&self) -> Result<&Started> {
        match &self.hold {
            Hold::Started(started) => Ok(started),
            Hold::Joined => Err(Error::NotOurs { part: self.name.clone() }),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if *self.released.lock().unwrap_or_else(PoisonError::into_inner) {
            return;
        }
        if let Some(child) = self.child().as_mut() {
            // It may have ended already, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Started {
    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process that a part's folder speaks of, whether or not it still runs.
pub(crate) fn recorded_process(folder: &Path) -> Option<ProcessIdentity> {
    let text = std::fs::read_to_string(folder.join(PROCESS_FILE)).ok()?;
    serde_json::from_str(&text).ok()
}
