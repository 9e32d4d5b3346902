//! Where `mailboat up` keeps things: a folder that somebody named, or one that goes away with it.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;

use crate::failure::refusal;

/// A folder for credentials and, if it is kept, for everything.
pub(super) struct Folder {
    path: PathBuf,
    kept: bool,
    /// Held as long as we use a folder that is kept: two of us would write each other's notes over.
    _lock: Option<File>,
}

impl Folder {
    /// The folder that was named, made if it is not there; or a fresh one.
    pub(super) fn open(named: Option<&Path>) -> Result<Self> {
        let fresh = || std::env::temp_dir().join(format!("mailboat-up-{}", std::process::id()));
        let path = named.map_or_else(fresh, Path::to_owned);
        let made = DirBuilder::new().recursive(named.is_some()).mode(0o700).create(&path);
        made.map_err(|error| refusal(format!("the folder {} cannot be made: {error}", path.display())))?;
        let path = std::path::absolute(&path).context("there is no current folder")?;
        let lock = named.map(|_| lock(&path)).transpose()?;
        Ok(Self { path, kept: named.is_some(), _lock: lock })
    }

    /// A file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where a server keeps its data; none: nowhere.
    pub(super) fn data_of(&self, server: &str) -> Option<PathBuf> {
        self.kept.then(|| self.path.join(server))
    }

    /// Whether everything is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.kept
    }

    /// The folder itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Listens where a server listened before, so that kubeconfigs of last time still lead to it; or, if somebody else is
    /// there by now, anywhere.
    pub(super) async fn listen(&self, server: &str) -> Result<TcpListener> {
        let note = self.file(&format!("{server}.address"));
        let before: Option<SocketAddr> =
            fs::read_to_string(&note).ok().and_then(|text| text.trim().parse().ok());
        let there = match before.filter(|address| address.ip().is_loopback()) {
            Some(address) => TcpListener::bind(address).await.ok(),
            None => None,
        };
        let listener = match there {
            Some(listener) => listener,
            None => {
                TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port can be listened at")?
            }
        };
        if self.kept {
            // Next time it is another port, which harms little.
            let _ = fs::write(note, format!("{}\n", listener.local_addr()?));
        }
        Ok(listener)
    }
}

/// Keeps others out of a folder, until it is dropped or this process ends in whatever way.
fn lock(folder: &Path) -> Result<File> {
    let file = folder.join("lock");
    let opened = File::options().create(true).truncate(false).write(true).open(&file);
    let lock =
        opened.map_err(|error| refusal(format!("the file {} cannot be written: {error}", file.display())))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(refusal(format!(
            "the folder {} is in use by another `mailboat up`: stop that one first, or name another folder with --data",
            folder.display()
        ))),
        Err(TryLockError::Error(error)) => {
            Err(refusal(format!("the folder {} cannot be locked: {error}", folder.display())))
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_in_use_is_refused_and_is_free_again_afterwards() {
        let home = tempfile::tempdir().unwrap();
        let first = Folder::open(Some(home.path())).unwrap();
        let Err(refused) = Folder::open(Some(home.path())) else {
            panic!("two use {}", home.path().display())
        };
        assert!(refused.to_string().contains("is in use by another `mailboat up`"), "{refused}");
        drop(first);
        assert!(Folder::open(Some(home.path())).is_ok());
    }
}
