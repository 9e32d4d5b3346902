//! Where `mailboat up` keeps things: a folder that somebody named, or one that goes away with it.

use std::fs::{self, DirBuilder};
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
}

impl Folder {
    /// The folder that was named, made if it is not there; or a fresh one.
    pub(super) fn open(named: Option<&Path>) -> Result<Self> {
        let fresh = || std::env::temp_dir().join(format!("mailboat-up-{}", std::process::id()));
        let path = named.map_or_else(fresh, Path::to_owned);
        let made = DirBuilder::new().recursive(named.is_some()).mode(0o700).create(&path);
        made.map_err(|error| refusal(format!("the folder {} cannot be made: {error}", path.display())))?;
        let path = std::path::absolute(&path).context("there is no current folder")?;
        Ok(Self { path, kept: named.is_some() })
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

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
