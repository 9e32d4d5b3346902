//! The real servers for a run of tests: built beside other work, and one kcp started for all.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use mailboat_testkit::build::{BuildError, Program, Programs, Progress as BuildProgress};
use mailboat_testkit::{TESTBED_VARIABLE, World};
use tokio::runtime::Runtime;

use crate::progress::{Progress, clock};
use crate::verdict::refusal;

/// How long nothing is said about a build that goes on.
const SILENCE: Duration = Duration::from_secs(30);

/// A build of the servers that are not in the cache yet, going on beside other work.
#[derive(Debug)]
pub(crate) struct BackgroundBuild {
    /// None if there was nothing to build.
    building: Option<JoinHandle<Result<(), BuildError>>>,
}

/// One kcp that all tests of a run share, each in workspaces of its own. It ends with this process, however
/// that ends.
pub(crate) struct SharedWorld {
    folder: PathBuf,
    /// None where the world was there before this run, and stays.
    own: Option<OwnWorld>,
}

struct OwnWorld {
    // The world goes before the runtime that its processes were started on.
    world: World,
    runtime: Runtime,
}

impl BackgroundBuild {
    /// Begins to build what is missing. Returns when the first build is under way, so that a machine that
    /// cannot build at all (no Go) is told so at once and not after everything else was tested.
    pub(crate) fn begin(progress: &Progress) -> Result<Self> {
        let programs = Programs::locate().map_err(explain_build)?;
        let missing: Vec<Program> =
            Program::ALL.into_iter().filter(|&program| !programs.is_built(program)).collect();
        if missing.is_empty() {
            return Ok(Self { building: None });
        }
        let (under_way, first_event) = mpsc::channel();
        let mut narrator = Narrator::new(progress);
        let building = thread::spawn(move || {
            missing.into_iter().try_for_each(|program| {
                programs.build_one(program, &mut |event| {
                    narrator.tell(&event);
                    // Nobody listens any more after the first one.
                    let _ = under_way.send(());
                })
            })
        });
        match first_event.recv() {
            Ok(()) => Ok(Self { building: Some(building) }),
            // It ended before anything was under way.
            Err(mpsc::RecvError) => join(building).map(|()| Self { building: None }),
        }
    }

    /// Waits until everything is built.
    pub(crate) fn finish(self) -> Result<()> {
        self.building.map_or(Ok(()), join)
    }
}

impl SharedWorld {
    /// Starts a kcp for the run, or joins the world that `MAILBOAT_TESTBED` names.
    pub(crate) fn start(progress: &Progress) -> Result<Self> {
        if let Some(folder) = std::env::var_os(TESTBED_VARIABLE).filter(|folder| !folder.is_empty()) {
            let folder = PathBuf::from(folder);
            World::join(&folder).map_err(|error| {
                refusal(format!("the world that {TESTBED_VARIABLE} names cannot be joined: {error}"))
            })?;
            progress.say(format!("joining the world in {}", folder.display()));
            return Ok(Self { folder, own: None });
        }
        progress.say("starting the kcp that the tests share …");
        let runtime = Runtime::new().context("no async runtime can be started")?;
        let world =
            runtime.block_on(World::builder().center().start()).context("the shared kcp does not start")?;
        progress.say(format!("kcp is ready after {}", clock(world.started_in())));
        Ok(Self { folder: world.folder().to_owned(), own: Some(OwnWorld { world, runtime }) })
    }

    /// The folder that tests join it by.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends it if this run started it; its logs stay if a test failed.
    pub(crate) fn end(self, all_passed: bool, progress: &Progress) {
        let Some(OwnWorld { mut world, runtime }) = self.own else { return };
        if !all_passed {
            world.keep_logs();
            progress.say(format!("the shared kcp's logs stay in {}", self.folder.display()));
        }
        let _entered = runtime.enter();
        drop(world);
    }
}

impl fmt::Debug for SharedWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedWorld").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Says what a build does, but not every second.
struct Narrator {
    progress: Progress,
    said: Instant,
    about: Option<Program>,
}

impl Narrator {
    fn new(progress: &Progress) -> Self {
        Self { progress: progress.clone(), said: Instant::now(), about: None }
    }

    fn tell(&mut self, event: &BuildProgress) {
        let line = match event {
            BuildProgress::Cached { program } => format!("{program} is in the cache"),
            BuildProgress::Waiting { program } => format!("{program}: another process builds it; waiting …"),
            BuildProgress::Building { program, elapsed, line } => {
                if self.about == Some(*program) && self.said.elapsed() < SILENCE {
                    return;
                }
                self.about = Some(*program);
                let line = if line.is_empty() { "no output yet" } else { line };
                format!("building {program} for {}: {line}", clock(*elapsed))
            }
            BuildProgress::Retrying { program, attempt, why, pause } => {
                format!("building {program}: attempt {attempt} failed ({why}); again in {}", clock(*pause))
            }
            BuildProgress::Built { program, took } => format!("{program} is built, in {}", clock(*took)),
        };
        self.said = Instant::now();
        self.progress.say(line);
    }
}

fn join(building: JoinHandle<Result<(), BuildError>>) -> Result<()> {
    building.join().map_err(|_| anyhow!("the build of the servers panicked"))?.map_err(explain_build)
}

/// What the user can mend is a refusal; a build that fails is a failure.
pub(super) fn explain_build(error: BuildError) -> anyhow::Error {
    match error {
        BuildError::NoToolchain { .. } | BuildError::OldToolchain { .. } | BuildError::NoCache => {
            refusal(error.to_string())
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Refusal;

    #[test]
    fn a_machine_without_go_is_refused_with_the_sentence_that_says_so() {
        let error = explain_build(BuildError::NoToolchain { needed: "1.26".to_owned() });
        assert!(error.is::<Refusal>(), "{error:?}");
        assert!(error.to_string().contains("install Go 1.26"), "{error}");
        let failed = explain_build(BuildError::File("a disk is full".to_owned()));
        assert!(!failed.is::<Refusal>(), "{failed:?}");
    }
}
