//! The life of one container: started, asked, restarted with growing pauses, and ended when its Pod goes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod, VolumeMount};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::environment::{Environment, environment, expand};
use super::image::Image;
use super::probe::{Probes, Verdict};
use super::run::{Run, UNKNOWN_EXIT_CODE, exit_code, fresh_folder};
use super::sandbox::{Identity, Mount, Sandbox};
use super::status::{Board, End, Standing, State};
use super::{Blocked, Shared};
use crate::error::{Doing, Error, Result};
use crate::files::last_lines;

/// What cannot start is tried again when an object changes, and at the latest after this long.
const RETRY_PERIOD: Duration = Duration::from_secs(1);
/// A container that ran this long is no longer taken to be crashing.
const SOUND_AFTER: Duration = Duration::from_mins(10);
const DEFAULT_GRACE: Duration = Duration::from_secs(30);
const TERMINATION_LOG: &str = "/dev/termination-log";
/// How much a container may say about its end.
const TERMINATION_MESSAGE_LIMIT: usize = 4096;
const TERMINATION_MESSAGE_LINES: usize = 80;

/// Whether a Pod is to end, and how long its containers may take for it.
pub(super) type Stop = Option<Duration>;

/// How the life of a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Succeeded,
    Failed,
    Stopped,
}

/// When a container that ended is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

/// A container and everything that its life depends on.
pub(super) struct Life<'a> {
    pub(super) shared: &'a Shared,
    pub(super) pod: &'a Arc<Pod>,
    pub(super) container: &'a Container,
    pub(super) restart_policy: RestartPolicy,
    /// The container's own folder.
    pub(super) folder: PathBuf,
    /// Where the Pod's volumes are, each under its name.
    pub(super) volumes: PathBuf,
    pub(super) board: &'a watch::Sender<Board>,
    pub(super) stop: watch::Receiver<Stop>,
}

impl Life<'_> {
    /// Lives until the container is done or its Pod is stopped.
    pub(super) async fn live(self) -> Outcome {
        let (mut runs, mut crashes) = (0, 0);
        loop {
            let Some((run, probes)) = self.start(runs).await else { return self.stopped(None) };
            let started_at = Instant::now();
            let (end, was_stopped) = self.watch_over(run, &probes, runs).await;
            if was_stopped {
                return self.stopped(Some(&end));
            }
            let succeeded = end.exit_code == 0;
            let again = match self.restart_policy {
                RestartPolicy::Always => true,
                RestartPolicy::OnFailure => !succeeded,
                RestartPolicy::Never => false,
            };
            if !again {
                self.update(|standing| {
                    standing.state = State::Ended(end.clone());
                    (standing.ready, standing.started, standing.process) = (false, false, None);
                    standing.finished = true;
                });
                return if succeeded { Outcome::Succeeded } else { Outcome::Failed };
            }
            crashes = if started_at.elapsed() >= SOUND_AFTER { 0 } else { crashes + 1 };
            runs += 1;
            if !self.pause_before_restart(end, crashes).await {
                return self.stopped(None);
            }
        }
    }

    /// Starts the container as soon as it can be; `None` if the Pod is stopped before.
    async fn start(&self, run: u32) -> Option<(Run, Probes)> {
        let mut stop = self.stop.clone();
        loop {
            let mut known = self.shared.changes();
            let started = tokio::select! {
                started = self.try_start(run) => started,
                () = stopped(&mut stop) => return None,
            };
            match started {
                Ok(started) => return Some(started),
                Err(blocked) => self.update(|standing| standing.state = State::Waiting(blocked.clone())),
            }
            tokio::select! {
                _ = timeout(RETRY_PERIOD, known.changed()) => {}
                () = stopped(&mut stop) => return None,
            }
        }
    }

    async fn try_start(&self, run: u32) -> Result<(Run, Probes), Blocked> {
        let unplayed = [
            (self.container.lifecycle.is_some(), "lifecycle hooks"),
            (self.container.restart_policy.is_some(), "restart policies of single containers"),
            (
                self.container.volume_devices.as_ref().is_some_and(|devices| !devices.is_empty()),
                "block devices",
            ),
        ];
        if let Some((_, what)) = unplayed.into_iter().find(|(asked, _)| *asked) {
            return Err(Blocked::config(format!("{what} are not played by this kubelet")));
        }
        let probes = Probes::of(self.container)?;
        let folder = self.folder.join("run");
        let cannot = |error: Error| Blocked { reason: "CreateContainerError", message: error.to_string() };
        fresh_folder(&folder).map_err(cannot)?;
        let sandbox = self.sandbox()?;
        let started = Run::start(&sandbox, &folder, self.log(run)).await.map_err(cannot)?;
        self.shared.keepers.add(started.keeper().clone());
        self.update(|standing| {
            standing.state = State::Running { since: Timestamp::now() };
            standing.restarts = run;
            standing.process = started.program().cloned();
            // Its probes say when it has started and is ready; without any it is at once.
            (standing.started, standing.ready) = (false, false);
        });
        Ok((started, probes))
    }

    /// Waits for the container's end, whoever brings it about; says whether it was the Pod's.
    async fn watch_over(&self, mut run: Run, probes: &Probes, number: u32) -> (End, bool) {
        let started = Timestamp::now();
        let grace = self.grace();
        let report = |verdict| {
            self.update(|standing| match verdict {
                Verdict::Started => standing.started = true,
                Verdict::Ready(ready) => standing.ready = ready,
            });
        };
        let mut stop = self.stop.clone();
        let (status, note, was_stopped) = tokio::select! {
            ended = run.ended() => (ended, None, false),
            failure = probes.ask(report) => (run.end(grace).await, Some(failure), false),
            () = stopped(&mut stop) => (self.end_with_pod(&mut run, &mut stop).await, None, true),
        };
        self.shared.keepers.remove(run.keeper());
        let exit_code = status.map_or(UNKNOWN_EXIT_CODE, exit_code);
        let message = note.unwrap_or_else(|| self.last_words(number, exit_code));
        (End { exit_code, message, started, finished: Timestamp::now() }, was_stopped)
    }

    /// Ends the container with its Pod; a grace that is shortened meanwhile holds from then on.
    async fn end_with_pod(
        &self,
        run: &mut Run,
        stop: &mut watch::Receiver<Stop>,
    ) -> Result<std::process::ExitStatus> {
        self.update(|standing| standing.ready = false);
        loop {
            let grace = stop.borrow_and_update().unwrap_or(DEFAULT_GRACE);
            tokio::select! {
                ended = run.end(grace) => return ended,
                Ok(()) = stop.changed() => {}
            }
        }
    }

    async fn pause_before_restart(&self, end: End, crashes: u32) -> bool {
        // The first restart is immediate; only a container that keeps ending is made to wait.
        let pause = match crashes {
            0 | 1 => Duration::ZERO,
            more => self.shared.pauses.after(more - 1),
        };
        self.update(|standing| {
            standing.last_end = Some(end.clone());
            standing.state = if pause.is_zero() {
                State::Ended(end.clone())
            } else {
                let message =
                    format!("back-off {pause:?} restarting failed container={}", self.container.name);
                State::Waiting(Blocked { reason: "CrashLoopBackOff", message })
            };
            (standing.ready, standing.started, standing.process) = (false, false, None);
        });
        let mut stop = self.stop.clone();
        tokio::select! {
            () = sleep(pause) => true,
            () = stopped(&mut stop) => false,
        }
    }

    fn stopped(&self, end: Option<&End>) -> Outcome {
        self.update(|standing| {
            if let Some(end) = end.cloned().or_else(|| standing.last_end.clone()) {
                standing.state = State::Ended(end);
            }
            (standing.ready, standing.started, standing.process) = (false, false, None);
            standing.finished = true;
        });
        Outcome::Stopped
    }

    fn sandbox(&self) -> Result<Sandbox, Blocked> {
        let known = self.shared.known();
        let variables = environment(self.pod, self.container, &known)?;
        let image = self.shared.images.of(self.container)?;
        let command = command(self.container, image, &variables)?;
        let host_name = self.pod.name_any();
        let identity = Identity::of(self.pod, self.container, image.user)?;
        let home = if identity.user == 0 { "/root" } else { "/" };
        // What runtimes set by themselves, which the container's own settings override.
        let mut environment = Environment::from(
            [
                ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
                ("HOSTNAME", &host_name),
                ("HOME", home),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let mut mounts = self.mounts(&variables)?;
        mounts.extend(image.mounts());
        mounts.push(self.termination_log().map_err(|error| Blocked::creating(error.to_string()))?);
        environment.extend(variables);
        let own = self.container.security_context.as_ref();
        Ok(Sandbox {
            root: self.folder.join("run").join("root"),
            host_name,
            mounts,
            read_only_root: own.and_then(|own| own.read_only_root_filesystem) == Some(true),
            identity,
            working_directory: self.container.working_dir.clone().unwrap_or_else(|| "/".to_owned()),
            environment,
            command,
        })
    }

    fn mounts(&self, variables: &Environment) -> Result<Vec<Mount>, Blocked> {
        let spec = self.pod.spec.as_ref();
        let mount = |mount: &VolumeMount| {
            let mut volumes = spec.into_iter().flat_map(|spec| spec.volumes.iter().flatten());
            let volume = volumes.find(|volume| volume.name == mount.name);
            let volume =
                volume.ok_or_else(|| Blocked::config(format!("there is no volume {}", mount.name)))?;
            let expanded = mount.sub_path_expr.as_ref().map(|path| expand(path, value_in(variables)));
            let sub_path = expanded.or_else(|| mount.sub_path.clone()).filter(|path| !path.is_empty());
            let mut source = self.volumes.join(&mount.name);
            if let Some(sub_path) = sub_path {
                source.push(sub_path);
                if volume.empty_dir.is_some() && !source.exists() {
                    fs::create_dir_all(&source)
                        .doing("creating", &source)
                        .map_err(|error| Blocked::creating(error.to_string()))?;
                }
            }
            let read_only = volume.empty_dir.is_none() || mount.read_only == Some(true);
            Ok(Mount { target: mount.mount_path.clone(), source, read_only })
        };
        self.container.volume_mounts.iter().flatten().map(mount).collect()
    }

    fn termination_log(&self) -> Result<Mount> {
        use std::os::unix::fs::PermissionsExt as _;
        let source = self.termination_log_file();
        fs::write(&source, "").doing("writing", &source)?;
        fs::set_permissions(&source, fs::Permissions::from_mode(0o666))
            .doing("setting the mode of", &source)?;
        let path = self.container.termination_message_path.clone();
        let target = path.filter(|path| !path.is_empty()).unwrap_or_else(|| TERMINATION_LOG.to_owned());
        Ok(Mount { target, source, read_only: false })
    }

    fn termination_log_file(&self) -> PathBuf {
        self.folder.join("run").join("termination-log")
    }

    /// What the container left as its message, or the end of its log if that is how the manifest wants it.
    fn last_words(&self, run: u32, exit_code: i32) -> String {
        let bytes = fs::read(self.termination_log_file()).unwrap_or_default();
        let mut message =
            String::from_utf8_lossy(&bytes[..bytes.len().min(TERMINATION_MESSAGE_LIMIT)]).into_owned();
        let policy = self.container.termination_message_policy.as_deref();
        if message.is_empty() && exit_code != 0 && policy == Some("FallbackToLogsOnError") {
            message = last_lines(&self.log(run), TERMINATION_MESSAGE_LINES);
        }
        message
    }

    fn log(&self, run: u32) -> PathBuf {
        self.folder.join(format!("{run:04}.log"))
    }

    fn grace(&self) -> Duration {
        let seconds = self.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(DEFAULT_GRACE, Duration::from_secs)
    }

    fn update(&self, change: impl FnOnce(&mut Standing)) {
        self.board.send_modify(|board| change(board.entry(self.container.name.clone()).or_default()));
    }
}

/// The command of a container: its own, or what its image says, with references to variables replaced.
fn command(container: &Container, image: &Image, variables: &Environment) -> Result<Vec<String>, Blocked> {
    let given = container.command.as_deref().unwrap_or_default();
    let arguments = container.args.as_deref().unwrap_or_default();
    let words = |list: &[String]| -> Vec<String> {
        list.iter().map(|word| expand(word, value_in(variables))).collect()
    };
    let mut command = words(given);
    if command.is_empty() {
        command.clone_from(&image.entrypoint);
    }
    command.extend(words(arguments));
    match command.first() {
        Some(program) if !program.is_empty() => Ok(command),
        _ => Err(Blocked::config("no command is given, neither by the container nor by its image")),
    }
}

fn value_in<'a>(variables: &'a Environment) -> impl Fn(&str) -> Option<&'a str> {
    move |name| variables.get(name).map(String::as_str)
}

async fn stopped(stop: &mut watch::Receiver<Stop>) {
    // If nobody can stop the Pod any more, it is being dropped, and this with it.
    if stop.wait_for(Option::is_some).await.is_err() {
        std::future::pending::<()>().await;
    }
}
