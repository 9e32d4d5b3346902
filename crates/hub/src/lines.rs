//! Lines of watches, written once for all who watch the same.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use mailboat_object::{Name, Version};

/// How many lines are remembered: those who watch the same read them at about the same time.
const REMEMBERED: usize = 64;
/// Longer ones are written by each.
const LONGEST_BYTES: usize = 256 * 1024;

/// The last lines.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<VecDeque<(Line, Bytes)>>);

/// What a line tells, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    /// When it happened: to one object, since a version is used once.
    pub version: Version,
    /// Such as `ADDED`.
    pub what: &'static str,
    /// The version in which the object is shown.
    pub api_version: Name,
    pub metadata_only: bool,
}

impl Lines {
    /// The line, written now if nobody wrote it lately.
    pub(crate) fn get(&self, line: &Line, write: impl FnOnce() -> Vec<u8>) -> Bytes {
        let known = |lines: &VecDeque<(Line, Bytes)>| {
            lines.iter().rev().find(|(known, _)| known == line).map(|(_, bytes)| bytes.clone())
        };
        if let Some(bytes) = known(&self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            return bytes;
        }
        let bytes = Bytes::from(write());
        if bytes.len() <= LONGEST_BYTES {
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() >= REMEMBERED {
                lines.pop_front();
            }
            lines.push_back((line.clone(), bytes.clone()));
        }
        bytes
    }
}
