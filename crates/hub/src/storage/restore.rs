//! The way back from a backup.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::disk::FILE;
use super::{Disk, Storage, StorageError};
use crate::private;

/// How far versions jump when a backup is restored: more than any hub writes between a backup and its loss, so that
/// a client that saw versions after the backup is told that they are gone, instead of missing what happens now.
const VERSIONS_SKIPPED: u64 = 1 << 30;

/// Makes a data folder from a backup. The folder must not hold a hub's data; the backup is read to its end and
/// checked before anything is there under its final name.
pub fn restore(backup: &Path, folder: &Path) -> Result<(), StorageError> {
    let path = folder.join(FILE);
    if path.try_exists().map_err(|error| StorageError::file(&path, "looked at", error))? {
        return Err(StorageError::Exists(path));
    }
    let fail = |error| StorageError::file(folder, "written", error);
    let trial = folder.join("restoring");
    private::folder(folder).map_err(fail)?;
    if trial.exists() {
        fs::remove_dir_all(&trial).map_err(fail)?;
    }
    private::folder(&trial).map_err(fail)?;
    let restored = restore_in(backup, &trial).and_then(|()| {
        fs::rename(trial.join(FILE), &path).map_err(fail)?;
        Disk::open(folder).map(drop)
    });
    let _ = fs::remove_dir_all(&trial);
    restored
}

fn restore_in(backup: &Path, trial: &Path) -> Result<(), StorageError> {
    let copy = trial.join(FILE);
    // Whoever may read the backup, only the owner reads what is made of it.
    let copied = private::file(&copy).and_then(|mut made| io::copy(&mut File::open(backup)?, &mut made));
    copied.map_err(|error| StorageError::file(backup, "copied", error))?;
    let said_of_backup = |error| match error {
        StorageError::Damaged { what, .. } => StorageError::damaged(backup, what),
        other => other,
    };
    let mut disk = Disk::open(trial).map_err(said_of_backup)?;
    disk.load(&mut |_, _| Ok(())).map_err(said_of_backup)?;
    disk.skip_versions(VERSIONS_SKIPPED)
}
