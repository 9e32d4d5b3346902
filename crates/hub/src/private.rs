//! Files and folders that nobody but their owner gets into, from the moment on in which they are there: whoever opened one before
//! its mode is changed keeps it open.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;
/// What anybody else may do.
const OTHERS: u32 = 0o077;

/// Makes a folder, and those above it that are missing. One that is there is left as it is.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Makes a file that is not there yet, to be read and written.
pub(crate) fn file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(FILE).open(path)
}

/// Shuts others out of what is ours and was left open by somebody.
pub(crate) fn shut(path: &Path) -> io::Result<()> {
    let found = fs::metadata(path)?;
    let others = found.permissions().mode() & OTHERS;
    if others == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(if found.is_dir() { FOLDER } else { FILE }))
}
