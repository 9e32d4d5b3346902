//! Where a manifest goes: a file that only its owner may read, or standard output.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::failure::refusal;

/// Where the output goes, ready to be written: what cannot be written is found out before anything else is done.
#[derive(Debug)]
pub(crate) enum Output {
    Standard,
    /// Written beside its place, and moved there as a whole.
    File {
        path: PathBuf,
        draft: Draft,
        file: File,
    },
}

/// A file that goes away unless it was moved to its place.
#[derive(Debug)]
pub(crate) struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Output {
    /// Prepares the output that was asked for; `-` is standard output.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Standard);
        }
        let name = path.file_name().filter(|_| !path.is_dir());
        let Some(name) = name else {
            return Err(refusal(format!("{} is no file that can be written", path.display())));
        };
        let draft = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft);
        let file =
            opened.map_err(|error| refusal(format!("{} cannot be written: {error}", path.display())))?;
        Ok(Self::File { path: path.to_owned(), draft: Draft(draft), file })
    }

    /// Writes it all. A file that holds the same already is left as it is, but for who may read it.
    pub(crate) fn write(self, text: &str) -> Result<()> {
        match self {
            Self::Standard => {
                let mut standard = std::io::stdout().lock();
                standard
                    .write_all(text.as_bytes())
                    .and_then(|()| standard.flush())
                    .context("the manifest cannot be written to standard output")
            }
            Self::File { path, draft, mut file } => {
                let unwritten = || format!("{} cannot be written", path.display());
                if fs::read(&path).is_ok_and(|found| found == text.as_bytes()) {
                    return fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
                        .with_context(unwritten);
                }
                file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).with_context(unwritten)?;
                fs::rename(&draft.0, &path).with_context(unwritten)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Refusal;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_private_whole_and_left_alone_when_nothing_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("syncer.yaml");
        Output::open(&path).unwrap().write("first").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("first", 0o600));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        Output::open(&path).unwrap().write("first").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
        assert_eq!(mode(&path), 0o600);
        Output::open(&path).unwrap().write("second").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a draft was left behind");
    }

    #[test]
    fn what_cannot_be_written_is_refused_at_once_and_a_draft_never_stays() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().to_owned(), folder.path().join("missing/syncer.yaml")] {
            let error = Output::open(&path).expect_err("an output");
            assert!(error.is::<Refusal>(), "{error}");
        }
        drop(Output::open(&folder.path().join("syncer.yaml")).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
