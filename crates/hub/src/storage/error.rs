//! Why nothing is stored, or nothing is served: one sentence each, with what to do.

use std::io;
use std::path::{Path, PathBuf};

use mailboat_machinery::machine::BadObject;

/// Why storage refuses. No variant holds an object's content.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Another process has it open.
    #[error("{} is in use by another hub: stop that one first, or choose another data folder", .0.display())]
    InUse(PathBuf),
    /// What is read is not what was written.
    #[error("{} is damaged ({what}): restore a backup with `mailboat hub restore`; nothing is served from it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The folder says that there was data, and there is none.
    #[error("{} is missing although {} belongs to a hub: put it back or restore a backup into an empty folder", path.display(), folder.display())]
    Missing {
        /// The file that should be there.
        path: PathBuf,
        /// The data folder.
        folder: PathBuf,
    },
    /// The storage has objects, and lacks what every storage gets before its first one.
    #[error(
        "the hub's own {0} is missing from its data: restore a backup with `mailboat hub restore`; nothing is served from it"
    )]
    Lost(String),
    /// It was written by another version.
    #[error("{} has format {found} and this version reads format {known}: use the version that wrote it", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The format that is read here.
        known: u64,
    },
    /// There is no room left.
    #[error("the disk of {} is full: nothing was stored; free some space and try again", .0.display())]
    Full(PathBuf),
    /// The file cannot be read or written.
    #[error("{} cannot be {doing}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried, such as `opened`.
        doing: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// It already holds something that would be lost.
    #[error("{} exists already and is not overwritten: choose another place", .0.display())]
    Exists(PathBuf),
    /// An earlier failure leaves open what is on the disk.
    #[error("nothing is stored in {} any more since a write failed ({why}): restart the hub", path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
        /// The first failure.
        why: String,
    },
    /// An object that was stored makes no sense.
    #[error(transparent)]
    Object(#[from] BadObject),
}

impl StorageError {
    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn file(path: &Path, doing: &'static str, source: io::Error) -> Self {
        // A quota and a limit on file sizes leave no more room than a full disk.
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::Full(path.to_owned())
            }
            _ => Self::File { path: path.to_owned(), doing, source },
        }
    }

    /// What redb says, in our words.
    pub(super) fn of(path: &Path, doing: &'static str, error: impl Into<redb::Error>) -> Self {
        match error.into() {
            redb::Error::DatabaseAlreadyOpen => Self::InUse(path.to_owned()),
            redb::Error::Io(source) if source.kind() == io::ErrorKind::InvalidData => {
                Self::damaged(path, source.to_string())
            }
            redb::Error::Io(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
                Self::damaged(path, "it is cut short")
            }
            redb::Error::Io(source) => Self::file(path, doing, source),
            redb::Error::UpgradeRequired(found) => {
                Self::damaged(path, format!("it is in the store's old format {found}"))
            }
            other => Self::damaged(path, other.to_string()),
        }
    }
}
