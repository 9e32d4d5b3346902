//! Files that are there as a whole or not at all.

use std::fs::{self, File};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use super::StorageError;
use crate::private;

/// Makes a complete file: it gets its name only when everything is in it and on the disk. What is made waits for the disk
/// once, at the end: until then nobody would miss it.
pub(super) fn create(
    path: &Path,
    make: impl FnOnce(&Path, Unsynced) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let fail = |error| StorageError::file(path, "made", error);
    if exists(&partial)? {
        fs::remove_file(&partial).map_err(fail)?;
    }
    let made = fill(&partial, make).and_then(|()| {
        fs::rename(&partial, path).map_err(fail)?;
        sync_folder(path)
    });
    if made.is_err() {
        // What is left of it is of no use to anybody, and may be what fills the disk.
        let _ = fs::remove_file(&partial);
    }
    made
}

fn fill(
    path: &Path,
    make: impl FnOnce(&Path, Unsynced) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    let fail = |error| StorageError::file(path, "made", error);
    // It holds secrets of all users.
    let file = private::file(path).map_err(fail)?;
    let written = file.try_clone().map_err(fail)?;
    let backend = FileBackend::new(written).map_err(|error| StorageError::of(path, "made", error))?;
    make(path, Unsynced(backend))?;
    file.sync_all().map_err(fail)
}

/// A file's name is durable when its folder is.
pub(super) fn sync_folder(path: &Path) -> Result<(), StorageError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| StorageError::file(folder, "synced", error))
}

pub(super) fn exists(path: &Path) -> Result<bool, StorageError> {
    path.try_exists().map_err(|error| StorageError::file(path, "looked at", error))
}

/// A file of a database that is not waited for, as long as it has no name of its own.
#[derive(Debug)]
pub(super) struct Unsynced(FileBackend);

impl StorageBackend for Unsynced {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.0.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.0.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.0.unlock_range(start, end)
    }
}
