//! The real servers, built from the Go modules in `testbed/` into a cache outside the checkout.
//!
//! A program lies in `<cache>/testbed/<program>-<hash of its sources>-<Go version>/`, so that it is built once per
//! machine, again when its module changes, and found without Go. Building is blocking and slow; finding is not.
//!
//! Reading order: this file, `program.rs` (what there is), `toolchain.rs` (Go), `go_build.rs` (one build).

mod extras;
mod go_build;
mod program;
#[cfg(test)]
mod tests;
mod toolchain;

use std::fs::{self, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Doing, Error};
use go_build::GoBuild;
pub use program::Program;
use toolchain::Toolchain;

/// Why the programs of the testbed are not there.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no Go.
    #[error(
        "no Go toolchain was found on the PATH, and building the real servers of the testbed needs one: install Go \
         {needed} or newer (https://go.dev/dl) and run the command again"
    )]
    NoToolchain {
        /// The version that is needed.
        needed: String,
    },
    /// There is a Go, but not one that can build the module.
    #[error(
        "the Go toolchain on the PATH ({found}) cannot build {program}, which needs Go {needed} or newer: install \
         that (https://go.dev/dl) and run the command again"
    )]
    OldToolchain {
        /// The program.
        program: Program,
        /// The version that is needed.
        needed: String,
        /// What the toolchain said of itself.
        found: String,
    },
    /// A program was to be run that was never built.
    #[error("{program} of the testbed is not built yet: run `cargo xtask testbed build` once")]
    NotBuilt {
        /// The program.
        program: Program,
    },
    /// Neither `MAILBOAT_CACHE` nor `XDG_CACHE_HOME` nor `HOME` is set.
    #[error("there is no folder to keep the built servers in: set MAILBOAT_CACHE to one")]
    NoCache,
    /// The Go compiler or its downloads failed for good.
    #[error("building {program} failed ({status}, attempt {attempt}); the whole output is in {log}, and ends with:\n{tail}", log = .log.display())]
    Failed {
        /// The program.
        program: Program,
        /// How the compiler ended.
        status: String,
        /// How many times it was tried.
        attempt: u32,
        /// Where its output is.
        log: PathBuf,
        /// The last lines of its output.
        tail: String,
    },
    /// What belongs beside a program is not in its module.
    #[error("what belongs beside {program} is missing: {why}")]
    Extras {
        /// The program.
        program: Program,
        /// What is missing.
        why: String,
    },
    /// A file could not be handled.
    #[error("{0}")]
    File(String),
}

/// What a build is doing, for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The program was built before.
    Cached {
        /// The program.
        program: Program,
    },
    /// Another process builds the program now; we wait for it.
    Waiting {
        /// The program.
        program: Program,
    },
    /// The build runs. Sent about once a second.
    Building {
        /// The program.
        program: Program,
        /// For how long already.
        elapsed: Duration,
        /// The last line that the compiler printed.
        line: String,
    },
    /// A download failed in a way that passes; it is tried again after a pause.
    Retrying {
        /// The program.
        program: Program,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The line that told so.
        why: String,
        /// How long until the next attempt.
        pause: Duration,
    },
    /// The program is there now.
    Built {
        /// The program.
        program: Program,
        /// How long it took.
        took: Duration,
    },
}

/// The built programs, found in the cache.
#[derive(Debug, Clone)]
pub struct Programs {
    sources: PathBuf,
    cache: PathBuf,
    go: PathBuf,
    pause: Duration,
}

impl Programs {
    /// The programs of this checkout's `testbed/`, in the user's cache. They need not be built yet.
    pub fn locate() -> Result<Self, BuildError> {
        Ok(Self {
            sources: sources_folder(),
            cache: cache_folder()?.join("testbed"),
            go: PathBuf::from("go"),
            pause: go_build::PAUSE,
        })
    }

    /// Builds every program that is not in the cache yet, one after the other.
    pub fn build(&self, progress: &mut dyn FnMut(Progress)) -> Result<(), BuildError> {
        Program::ALL.into_iter().try_for_each(|program| self.build_one(program, progress))
    }

    /// Builds one program if it is not in the cache yet.
    pub fn build_one(&self, program: Program, progress: &mut dyn FnMut(Progress)) -> Result<(), BuildError> {
        let module = self.sources.join(program.module());
        let toolchain = Toolchain::for_module(&self.go, program, &module)?;
        let name = format!("{}{}", self.prefix(program)?, toolchain.version());
        let folder = self.cache.join(&name);
        fs::create_dir_all(&self.cache).doing("creating", &self.cache).map_err(file)?;
        let _lock = self.lock(program, &name, progress)?;
        if folder.is_dir() {
            progress(Progress::Cached { program });
            return Ok(());
        }
        let begun = Instant::now();
        let draft = self.cache.join(format!("{name}.draft"));
        crate::files::remove_folder(&draft).map_err(file)?;
        fs::create_dir_all(&draft).doing("creating", &draft).map_err(file)?;
        GoBuild { program, module: &module, toolchain: &toolchain, folder: &draft, pause: self.pause }
            .run(progress)?;
        extras::gather(program, &module, &toolchain, &draft)?;
        fs::rename(&draft, &folder).doing("renaming to", &folder).map_err(file)?;
        progress(Progress::Built { program, took: begun.elapsed() });
        Ok(())
    }

    /// Whether a program is in the cache.
    pub fn is_built(&self, program: Program) -> bool {
        self.folder(program).is_ok()
    }

    /// etcd.
    pub fn etcd(&self) -> Result<PathBuf, BuildError> {
        self.kubebox_as("etcd")
    }

    /// kube-apiserver.
    pub fn kube_apiserver(&self) -> Result<PathBuf, BuildError> {
        self.kubebox_as("kube-apiserver")
    }

    /// kube-controller-manager.
    pub fn kube_controller_manager(&self) -> Result<PathBuf, BuildError> {
        self.kubebox_as("kube-controller-manager")
    }

    /// kube-scheduler.
    pub fn kube_scheduler(&self) -> Result<PathBuf, BuildError> {
        self.kubebox_as("kube-scheduler")
    }

    /// kubectl.
    pub fn kubectl(&self) -> Result<PathBuf, BuildError> {
        self.kubebox_as("kubectl")
    }

    /// kcp.
    pub fn kcp(&self) -> Result<PathBuf, BuildError> {
        Ok(self.folder(Program::Kcp)?.join("kcp"))
    }

    /// KWOK.
    pub fn kwok(&self) -> Result<PathBuf, BuildError> {
        Ok(self.folder(Program::Kwok)?.join("kwok"))
    }

    /// The stages, in one file, by which KWOK makes nodes and pods ready.
    pub fn kwok_stages(&self) -> Result<PathBuf, BuildError> {
        Ok(self.folder(Program::Kwok)?.join(extras::STAGES_FILE))
    }

    /// Helm.
    pub fn helm(&self) -> Result<PathBuf, BuildError> {
        Ok(self.folder(Program::Helm)?.join("helm"))
    }

    /// Kyverno's reports controller.
    pub fn reports_controller(&self) -> Result<PathBuf, BuildError> {
        Ok(self.folder(Program::ReportsController)?.join("reports-controller"))
    }

    /// The folder of Kyverno's CRDs.
    pub fn kyverno_crds(&self) -> Result<PathBuf, BuildError> {
        Ok(self.folder(Program::ReportsController)?.join(extras::CRDS_FOLDER))
    }

    /// The folder of Kyverno's Helm charts.
    pub fn kyverno_charts(&self) -> Result<PathBuf, BuildError> {
        Ok(self.folder(Program::ReportsController)?.join(extras::CHARTS_FOLDER))
    }

    /// The folder that holds etcd, kubectl and the other names of one program: fit for the PATH.
    pub fn kubernetes_folder(&self) -> Result<PathBuf, BuildError> {
        self.folder(Program::Kubebox)
    }

    fn kubebox_as(&self, name: &str) -> Result<PathBuf, BuildError> {
        Ok(self.folder(Program::Kubebox)?.join(name))
    }

    // Built by whichever Go: a machine that runs the servers need not have the one that built them, or any.
    fn folder(&self, program: Program) -> Result<PathBuf, BuildError> {
        let prefix = self.prefix(program)?;
        let is_it = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.is_dir() && name.starts_with(&prefix) && !name.ends_with(".draft")
        };
        let entries = fs::read_dir(&self.cache).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_it).collect();
        found.sort();
        found.pop().ok_or(BuildError::NotBuilt { program })
    }

    fn prefix(&self, program: Program) -> Result<String, BuildError> {
        let hash = program::hash_sources(program, &self.sources.join(program.module()))?;
        Ok(format!("{program}-{hash}-"))
    }

    fn lock(
        &self,
        program: Program,
        name: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<fs::File, BuildError> {
        let path = self.cache.join(format!("{name}.lock"));
        let lock =
            OpenOptions::new().create(true).append(true).open(&path).doing("opening", &path).map_err(file)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                progress(Progress::Waiting { program });
                lock.lock().doing("locking", &path).map_err(file)?;
            }
            Err(TryLockError::Error(error)) => Err(error).doing("locking", &path).map_err(file)?,
        }
        Ok(lock)
    }
}

/// The folder for what is kept between runs: `MAILBOAT_CACHE`, or `mailboat` in the user's cache folder.
pub fn cache_folder() -> Result<PathBuf, BuildError> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("MAILBOAT_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("mailboat")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache/mailboat")))
        .ok_or(BuildError::NoCache)
}

fn sources_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testbed")
}

// Files fail in the words of `Error::Io`; a build adds nothing to them.
#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn file(error: Error) -> BuildError {
    BuildError::File(error.to_string())
}
