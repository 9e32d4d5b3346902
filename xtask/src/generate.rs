//! `cargo xtask generate`: the files that are made from code, written or compared.

mod columns;
mod openapi;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::progress::Progress;
use crate::reference;
use crate::repository::Repository;
use crate::verdict::Verdict;

/// The command that mends stale files, for messages.
pub(crate) const COMMAND: &str = "cargo xtask generate";

/// Folders that hold nothing but generated files: what is no longer generated is removed from them.
const OWNED_FOLDERS: &[&str] = &["deploy/crds", "deploy/kcp"];

/// Shown at the end of the help.
const EXAMPLES: &str = "\
Examples:
  cargo xtask generate             write them
  cargo xtask generate --check     exit with 1 if a file is stale, and name it
  cargo xtask generate --openapi   fetch what the testbed's servers say of their kinds anew";

/// Write the generated files, or check that they are current.
///
/// Makes deploy/ (CRDs for plain clusters, schemas and exports for kcp) and the references docs/xtask.md and
/// docs/cli.md from the code, and removes generated files whose origin is gone. Takes seconds.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Write nothing; exit with 1 if a file is not current, and name it
    #[arg(long, conflicts_with = "openapi")]
    check: bool,
    /// Fetch the OpenAPI documents that the compute schemas are made from, out of a real kube-apiserver, and the columns of
    /// its tables and of kcp's, and write nothing else: run the command once more without this to make the schemas from
    /// them
    #[arg(long)]
    openapi: bool,
}

/// Writes or checks the generated files.
pub(crate) fn run(arguments: &Arguments, repository: &Repository) -> Result<Verdict> {
    let progress = Progress::begin();
    if arguments.openapi {
        let stale = compare(&repository.root, openapi::fetch(&repository.root, &progress)?, &[])?;
        mend(&stale, &repository.root, &progress)?;
        // The documents are compiled into this program: only its next build knows the new ones.
        progress.say(format!("`{COMMAND}` makes the schemas from them"));
        return Ok(Verdict::Passed);
    }
    let stale = stale(repository)?;
    if arguments.check {
        for finding in &stale {
            println!("{finding}");
        }
        if !stale.is_empty() {
            println!("{} stale; `{COMMAND}` mends it", count(stale.len()));
        }
        return Ok(Verdict::of_failures(stale.len()));
    }
    mend(&stale, &repository.root, &progress)?;
    Ok(Verdict::Passed)
}

/// Every generated file that is not as it should be.
pub(crate) fn stale(repository: &Repository) -> Result<Vec<Stale>> {
    compare(&repository.root, files()?, OWNED_FOLDERS)
}

/// A file that is made from code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GeneratedFile {
    /// Where it stands, from the repository's top folder.
    pub(crate) path: PathBuf,
    /// What it should hold.
    pub(crate) contents: String,
}

/// A file in the checkout that differs from what is generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stale {
    /// It should be there and is not.
    Missing(GeneratedFile),
    /// It is there with other contents.
    Differs(GeneratedFile),
    /// It is there, and nothing generates it any more.
    Surplus(PathBuf),
}

fn files() -> Result<Vec<GeneratedFile>> {
    let deploy = mailboat_api::generate::files()?
        .into_iter()
        .map(|file| GeneratedFile { path: file.path.into(), contents: file.contents });
    Ok(deploy.chain(reference::files()).collect())
}

fn mend(stale: &[Stale], root: &Path, progress: &Progress) -> Result<()> {
    for finding in stale {
        finding.mend(root)?;
        progress.say(finding.to_string());
    }
    progress.say(format!("{} written or removed, all are current now", count(stale.len())));
    Ok(())
}

/// What differs between the files that should be and the checkout, where nothing else may lie in the owned folders.
fn compare(root: &Path, files: Vec<GeneratedFile>, owned: &[&str]) -> Result<Vec<Stale>> {
    let mut expected = BTreeSet::new();
    for file in &files {
        let plain = file.path.components().all(|component| matches!(component, Component::Normal(_)));
        if !plain || !expected.insert(file.path.clone()) {
            bail!("a generator names {} twice or outside the repository", file.path.display());
        }
    }
    let mut stale = Vec::new();
    for file in files {
        match fs::read(root.join(&file.path)) {
            Ok(found) if found == file.contents.as_bytes() => {}
            Ok(_) => stale.push(Stale::Differs(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => stale.push(Stale::Missing(file)),
            Err(error) => {
                return Err(error).with_context(|| format!("{} cannot be read", file.path.display()));
            }
        }
    }
    for folder in owned {
        let found = files_under(root, Path::new(folder))?;
        stale.extend(found.into_iter().filter(|path| !expected.contains(path)).map(Stale::Surplus));
    }
    Ok(stale)
}

fn files_under(root: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(root.join(folder)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", folder.display())),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            found.extend(files_under(root, &path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

impl Stale {
    fn mend(&self, root: &Path) -> Result<()> {
        match self {
            Self::Missing(file) | Self::Differs(file) => {
                let path = root.join(&file.path);
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)
                        .with_context(|| format!("{} cannot be made", folder.display()))?;
                }
                fs::write(&path, &file.contents)
                    .with_context(|| format!("{} cannot be written", path.display()))
            }
            Self::Surplus(path) => fs::remove_file(root.join(path))
                .with_context(|| format!("{} cannot be removed", path.display())),
        }
    }
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(file) => write!(f, "{}: missing", file.path.display()),
            Self::Differs(file) => write!(f, "{}: differs from what the code gives", file.path.display()),
            Self::Surplus(path) => write!(f, "{}: nothing generates it any more", path.display()),
        }
    }
}

fn count(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, contents: &str) -> GeneratedFile {
        GeneratedFile { path: path.into(), contents: contents.to_owned() }
    }

    #[test]
    fn stale_files_are_named_mended_and_then_current() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for (path, contents) in
            [("deploy/crds/a.yaml", "old"), ("deploy/crds/gone.yaml", "x"), ("deploy/own.md", "y")]
        {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), contents).unwrap();
        }
        let files = || vec![file("deploy/crds/a.yaml", "new"), file("deploy/kcp/deep/b.yaml", "b")];
        let stale = compare(root, files(), OWNED_FOLDERS).unwrap();
        let said: Vec<String> = stale.iter().map(Stale::to_string).collect();
        assert_eq!(
            said,
            [
                "deploy/crds/a.yaml: differs from what the code gives",
                "deploy/kcp/deep/b.yaml: missing",
                "deploy/crds/gone.yaml: nothing generates it any more",
            ]
        );
        for finding in &stale {
            finding.mend(root).unwrap();
        }
        assert_eq!(compare(root, files(), OWNED_FOLDERS).unwrap(), []);
        assert!(root.join("deploy/own.md").exists(), "a file that is not generated was removed");
    }

    #[test]
    fn a_generator_may_not_leave_the_repository_or_write_a_file_twice() {
        let root = tempfile::tempdir().unwrap();
        for files in [
            vec![file("../outside", "")],
            vec![file("/absolute", "")],
            vec![file("docs/a", ""), file("docs/a", "")],
        ] {
            assert!(compare(root.path(), files.clone(), OWNED_FOLDERS).is_err(), "{files:?}");
        }
    }
}
