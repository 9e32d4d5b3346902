//! Where a world stands: its folder, the programs that it is made of, and how long its processes live.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::build::Programs;
use crate::error::{Doing, Result};
use crate::files::{remove_folder, write_private};
use crate::process::{Lifetime, ProcessIdentity};
use crate::random;

const OWNER_FILE: &str = "owner.json";
const SHARED_FILE: &str = "shared";
const FAILED_FILE: &str = "failed";
/// How long the logs of a failed test stay after its process has ended.
const KEEP_FAILED: Duration = Duration::from_hours(24);

/// What all parts of one world are started with.
pub(crate) struct Site {
    pub(crate) programs: Programs,
    pub(crate) folder: PathBuf,
    pub(crate) lifetime: Lifetime,
}

/// The folder of one world: removed with it, unless someone may still want to read the logs.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Removed, unless the test panics.
    Removed,
    /// Kept, and where it is is printed.
    Kept,
    /// Somebody else's affair.
    LeftAlone,
}

impl RunFolder {
    /// A fresh folder for a world that lives as long as this process at most.
    pub(crate) fn temporary() -> Result<Self> {
        let uid = rustix::process::getuid().as_raw();
        let base = std::env::temp_dir().join(format!("mailboat-worlds-{uid}"));
        fs::create_dir_all(&base).doing("creating", &base)?;
        sweep(&base);
        let path = base.join(format!("{}-{}", std::process::id(), random::suffix()?));
        fs::create_dir(&path).doing("creating", &path)?;
        let owner = serde_json::to_string(&ProcessIdentity::of(std::process::id())?).unwrap_or_default();
        write_private(&path.join(OWNER_FILE), &owner)?;
        let keep = std::env::var_os("MAILBOAT_KEEP").is_some_and(|value| value == "1");
        Ok(Self { path, fate: if keep { Fate::Kept } else { Fate::Removed } })
    }

    /// A given folder, which is removed by whoever named it.
    pub(crate) fn given(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).doing("creating", path)?;
        let path = path.canonicalize().doing("finding", path)?;
        Ok(Self { path, fate: Fate::LeftAlone })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the folder, because what happened in it will be asked about.
    pub(crate) fn keep(&mut self) {
        self.fate = Fate::Kept;
    }

    /// A world in a static is never dropped. Its folder goes with the next world that is started after this
    /// process has ended, unless a test panicked meanwhile.
    pub(crate) fn share(&self) -> Result<()> {
        write_private(&self.path.join(SHARED_FILE), "")?;
        let failed = self.path.join(FAILED_FILE);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if fs::write(&failed, "").is_ok() {
                let folder = failed.parent().unwrap_or(&failed);
                eprintln!("logs of the shared world are kept in {}", folder.display());
            }
            before(panic);
        }));
        Ok(())
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        match self.fate {
            Fate::LeftAlone => {}
            Fate::Removed if !std::thread::panicking() => {
                // A folder that cannot be removed is swept later, and no reason to fail a test.
                let _ = remove_folder(&self.path);
            }
            Fate::Removed | Fate::Kept => eprintln!("logs are kept in {}", self.path.display()),
        }
    }
}

/// Removes what processes left behind that ended without dropping their worlds.
fn sweep(base: &Path) {
    for path in fs::read_dir(base).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if owner_is_gone(&path) && !worth_keeping(&path) {
            // Another process may be sweeping as well.
            let _ = remove_folder(&path);
        }
    }
}

fn owner_is_gone(folder: &Path) -> bool {
    let owner = fs::read_to_string(folder.join(OWNER_FILE)).ok();
    let owner = owner.and_then(|text| serde_json::from_str::<ProcessIdentity>(&text).ok());
    owner.is_some_and(|owner| !owner.is_alive())
}

fn worth_keeping(folder: &Path) -> bool {
    let passed = folder.join(SHARED_FILE).exists() && !folder.join(FAILED_FILE).exists();
    let changed = fs::metadata(folder).and_then(|metadata| metadata.modified());
    let young = changed
        .is_ok_and(|changed| SystemTime::now().duration_since(changed).is_ok_and(|age| age < KEEP_FAILED));
    young && !passed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_behind(base: &Path, name: &str, owner: &ProcessIdentity, marks: &[&str]) -> PathBuf {
        let folder = base.join(name);
        fs::create_dir_all(folder.join("center")).unwrap();
        fs::write(folder.join(OWNER_FILE), serde_json::to_string(owner).unwrap()).unwrap();
        for mark in marks {
            fs::write(folder.join(mark), "").unwrap();
        }
        folder
    }

    #[test]
    fn what_a_dead_process_left_is_swept_unless_a_test_failed_in_it() {
        let base = std::env::temp_dir().join(format!("mailboat-sweep-{}", std::process::id()));
        let alive = ProcessIdentity::of(std::process::id()).unwrap();
        let dead = ProcessIdentity { start_ticks: alive.start_ticks - 1, ..alive.clone() };
        let passed = left_behind(&base, "passed", &dead, &[SHARED_FILE]);
        let others = [
            left_behind(&base, "running", &alive, &[SHARED_FILE]),
            left_behind(&base, "failed", &dead, &[SHARED_FILE, FAILED_FILE]),
            left_behind(&base, "killed", &dead, &[]),
        ];
        sweep(&base);
        let left = others.map(|folder| folder.exists());
        let swept = !passed.exists();
        fs::remove_dir_all(&base).unwrap();
        assert!(swept, "what passed is still there");
        assert_eq!(left, [true; 3], "running, failed, killed");
    }

    #[test]
    fn a_folder_is_removed_in_the_end_and_kept_when_asked_for() {
        let removed = RunFolder::temporary().unwrap();
        let mut kept = RunFolder::temporary().unwrap();
        kept.keep();
        let paths = [removed.path().to_owned(), kept.path().to_owned()];
        drop((removed, kept));
        let exist = paths.each_ref().map(|path| path.exists());
        fs::remove_dir_all(&paths[1]).unwrap();
        assert_eq!(exist, [std::env::var_os("MAILBOAT_KEEP").is_some_and(|value| value == "1"), true]);
    }
}
