//! The checkout this command works on: its packages, its folders, and how cargo is called in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// How many runs keep their logs.
const RUNS_KEPT: usize = 10;

/// The cargo workspace that holds the current folder.
#[derive(Debug, Deserialize)]
pub(crate) struct Repository {
    /// Its top folder.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// Where cargo builds.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
    /// Its own packages.
    pub(crate) packages: Vec<Package>,
}

/// A package of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    /// Its name, such as `mailboat-object`.
    pub(crate) name: String,
    /// The path of its `Cargo.toml`.
    pub(crate) manifest_path: PathBuf,
    /// What cargo builds from it.
    pub(crate) targets: Vec<Target>,
}

/// A library, program or test program of a package.
#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    /// Its name.
    pub(crate) name: String,
    /// What it is: `lib`, `bin`, `test`, …
    pub(crate) kind: Vec<String>,
}

impl Repository {
    /// Asks cargo about the workspace around the current folder.
    pub(crate) fn open() -> Result<Self> {
        let output = cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .context("cargo cannot be started")?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        serde_json::from_slice(&output.stdout).context("cargo metadata is not understood")
    }

    /// A cargo command that runs in the top folder.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        command
    }

    /// The package of that name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The packages that have a test program of this name.
    pub(crate) fn packages_with_test(&self, test: &str) -> Vec<&Package> {
        let has = |package: &&Package| {
            package.targets.iter().any(|target| target.is("test") && target.name == test)
        };
        self.packages.iter().filter(has).collect()
    }

    /// Makes a fresh folder for the logs of one run of a command, and removes those of long past runs.
    pub(crate) fn log_folder(&self, command: &str) -> Result<PathBuf> {
        let logs = self.target.join("xtask-logs");
        fs::create_dir_all(&logs).with_context(|| format!("{} cannot be made", logs.display()))?;
        remove_all_but_newest(&logs, RUNS_KEPT - 1)?;
        let folder = logs.join(format!("{command}-{}", std::process::id()));
        // A process id may come again: what an earlier run left there is not this run's.
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
        }
        fs::create_dir(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(folder)
    }
}

impl Package {
    /// The folder of its `Cargo.toml`.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }
}

impl Target {
    /// Whether it is of this kind.
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|own| own == kind)
    }
}

/// The cargo that started this program, or the one on the path, as if called from a bare shell.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // `cargo run` describes xtask's own package to xtask. Build scripts that watch those variables (ring's
    // does) would be run again, and all that stands on them built again, at every change between
    // `cargo xtask` and a cargo called by hand.
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str() else { continue };
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

fn remove_all_but_newest(logs: &Path, kept: usize) -> Result<()> {
    let mut folders: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(logs).with_context(|| format!("{} cannot be read", logs.display()))? {
        let entry = entry?;
        folders.push((entry.metadata()?.modified()?, entry.path()));
    }
    folders.sort();
    let surplus = folders.len().saturating_sub(kept);
    for (_, folder) in &folders[..surplus] {
        fs::remove_dir_all(folder).with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_workspace_is_understood() {
        let repository = Repository::open().unwrap();
        let xtask = repository.package("xtask").unwrap();
        assert_eq!(xtask.folder(), repository.root.join("xtask"));
        assert!(xtask.targets.iter().any(|target| target.is("bin") && target.name == "xtask"), "{xtask:?}");
    }

    #[test]
    fn only_the_newest_logs_are_kept() {
        let logs = tempfile::tempdir().unwrap();
        for age in 0..5_u64 {
            let folder = logs.path().join(format!("test-{age}"));
            fs::create_dir(&folder).unwrap();
            let then = SystemTime::now() - std::time::Duration::from_secs(age * 60);
            fs::File::open(&folder).unwrap().set_modified(then).unwrap();
        }
        remove_all_but_newest(logs.path(), 2).unwrap();
        let mut left: Vec<_> =
            fs::read_dir(logs.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["test-0", "test-1"]);
    }
}
