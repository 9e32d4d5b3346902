//! Small things done to files: private ones, whole folders, and files that others read while they are written.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::error::{Doing, Result};

/// Writes a file that only its owner may read. It appears whole or not at all.
pub(crate) fn write_private(path: &Path, contents: &str) -> Result<()> {
    let mut draft_name = path.as_os_str().to_owned();
    draft_name.push(".draft");
    let draft = Path::new(&draft_name);
    OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(draft)
        .and_then(|mut file| file.write_all(contents.as_bytes()))
        .doing("writing", draft)?;
    fs::rename(draft, path).doing("renaming to", path)
}

/// Copies a folder with everything in it. Symbolic links are followed.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).doing("creating", to)?;
    for entry in fs::read_dir(from).doing("listing", from)? {
        let entry = entry.doing("listing", from)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            fs::copy(&source, &target).doing("copying", &source)?;
        }
    }
    Ok(())
}

/// Removes a folder with everything in it, if it is there.
pub(crate) fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.doing("removing", path),
    }
}

/// The last `count` lines of a file, as far as it can be read.
pub(crate) fn last_lines(path: &Path, count: usize) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
