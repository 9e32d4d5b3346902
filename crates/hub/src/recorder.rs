//! Writes down the shapes of the requests that come in, each once.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// More shapes than this are no longer worth anything to anybody.
const SHAPES_LIMIT: usize = 10_000;

/// A file of shapes.
#[derive(Debug)]
pub struct Recorder(Mutex<Recorded>);

#[derive(Debug)]
struct Recorded {
    file: File,
    seen: BTreeSet<String>,
}

impl Recorder {
    /// Writes to the end of a file, which is made if it is not there.
    pub fn to(file: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(file)?;
        Ok(Self(Mutex::new(Recorded { file, seen: BTreeSet::new() })))
    }

    /// Writes a shape down that is new.
    pub(crate) fn note(&self, shape: String) {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.seen.len() >= SHAPES_LIMIT || recorded.seen.contains(&shape) {
            return;
        }
        if let Err(error) = writeln!(recorded.file, "{shape}") {
            tracing::warn!(%error, "the shape of a request cannot be written down");
        }
        recorded.seen.insert(shape);
    }
}
