//! What can go wrong when a world is started, steered or asked.

use std::io;
use std::path::{Path, PathBuf};

use crate::build::BuildError;
use crate::wait::NotInTime;

/// Why a world, or a part of it, did not do what a test asked of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program of the testbed is not there.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A file or a process could not be handled.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done, with the path or program.
        doing: String,
        /// What the operating system answered.
        source: io::Error,
    },
    /// A server answered with an error.
    #[error("{doing}: {source}")]
    Api {
        /// What was asked of which server.
        doing: String,
        /// Its answer.
        source: Box<kube::Error>,
    },
    /// A kubeconfig of this crate's own making was refused by the client.
    #[error("connecting to {url}: {source}")]
    Connect {
        /// The server.
        url: String,
        /// Why the client refused.
        source: Box<kube::config::KubeconfigError>,
    },
    /// A part ended by itself.
    #[error("{part} ended by itself ({status}); its log is {log}, and ends with:\n{tail}", log = .log.display())]
    Ended {
        /// The part.
        part: String,
        /// How it ended.
        status: String,
        /// Where its log is.
        log: PathBuf,
        /// The last lines of its log.
        tail: String,
    },
    /// A world could not be started. What was started of it has been ended again.
    #[error("the world could not be started, and its logs are in {logs}: {source}", logs = .logs.display())]
    Start {
        /// The world's folder.
        logs: PathBuf,
        /// Why not.
        source: Box<Error>,
    },
    /// Something did not come true within its limit.
    #[error(transparent)]
    NotInTime(#[from] NotInTime),
    /// A part was asked for something that only makes sense while it runs.
    #[error("{part} is not running")]
    NotRunning {
        /// The part.
        part: String,
    },
    /// A part was asked for something that only makes sense while it is stopped.
    #[error("{part} is running: stop it first")]
    Running {
        /// The part.
        part: String,
    },
    /// A part of a joined world was to be steered.
    #[error(
        "{part} belongs to a world that others use as well: start a world of your own to stop or pause parts"
    )]
    NotOurs {
        /// The part.
        part: String,
    },
    /// A part that keeps no data was asked for it.
    #[error("{part} keeps no data that could be saved or restored")]
    NoData {
        /// The part.
        part: String,
    },
    /// A user that the place was not started with.
    #[error("{place} has no user {user:?}; it has {known}")]
    NoSuchUser {
        /// The place.
        place: String,
        /// The user that was asked for.
        user: String,
        /// The users there are.
        known: String,
    },
    /// The world has no such place.
    #[error("this world has no {what}")]
    NoSuchPlace {
        /// The center, or an edge by name.
        what: String,
    },
    /// No port could be reserved.
    #[error("no free port was found on 127.0.0.1 between {first} and {last}")]
    NoFreePort {
        /// The first port tried.
        first: u16,
        /// The last port tried.
        last: u16,
    },
    /// A certificate could not be made.
    #[error("making a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A document is not what it should be.
    #[error("{what}: {why}")]
    Malformed {
        /// The document.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Two places would bear the same name, or a name is not fit for a folder.
    #[error("an edge cannot be named {name:?}: {why}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The testbed's folder is in the way of what was asked.
    #[error("{0}")]
    Bed(String),
}

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

pub(crate) trait Doing<T> {
    /// Names what was being done, with the path that it was done to.
    fn doing(self, what: &str, path: &Path) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { doing: format!("{what} {}", path.display()), source })
    }
}

pub(crate) trait Asking<T> {
    /// Names what was asked of which server.
    fn asking(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> Asking<T> for kube::Result<T> {
    fn asking(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Api { doing: what(), source: Box::new(source) })
    }
}
