//! Lines of watches, written once for all who watch the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use mailboat_object::{Name, Version};

/// How many lines are remembered: those who watch the same read them at about the same time.
const REMEMBERED: usize = 64;
/// Longer ones are remembered only as long as somebody has them to send.
const LONGEST_BYTES: usize = 256 * 1024;

/// The last lines.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<VecDeque<(Line, Written)>>);

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

#[derive(Debug)]
enum Written {
    Short(Bytes),
    Long(Weak<Vec<u8>>),
}

/// A long line, as somebody has it to send.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Written {
    fn bytes(&self) -> Option<Bytes> {
        match self {
            Self::Short(bytes) => Some(bytes.clone()),
            Self::Long(line) => line.upgrade().map(|line| Bytes::from_owner(Shared(line))),
        }
    }
}

impl Lines {
    /// The line, written now if nobody wrote it lately.
    pub(crate) fn get(&self, line: &Line, write: impl FnOnce() -> Vec<u8>) -> Bytes {
        let known = |lines: &VecDeque<(Line, Written)>| {
            lines.iter().rev().find(|(known, _)| known == line).and_then(|(_, written)| written.bytes())
        };
        if let Some(bytes) = known(&self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            return bytes;
        }
        let written = write();
        let (written, bytes) = if written.len() <= LONGEST_BYTES {
            let bytes = Bytes::from(written);
            (Written::Short(bytes.clone()), bytes)
        } else {
            let long = Arc::new(written);
            (Written::Long(Arc::downgrade(&long)), Bytes::from_owner(Shared(long)))
        };
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= REMEMBERED {
            lines.pop_front();
        }
        lines.push_back((line.clone(), written));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_once_and_a_long_one_as_long_as_somebody_has_it() {
        let lines = Lines::default();
        let line = |version: u64| Line {
            version: Version(version),
            what: "ADDED",
            api_version: Name::new("v1"),
            metadata_only: false,
        };
        let never = || -> Vec<u8> { panic!("it was written already") };
        for (version, bytes) in [(1, 10), (2, LONGEST_BYTES + 1)] {
            let first = lines.get(&line(version), || vec![b'x'; bytes]);
            let second = lines.get(&line(version), never);
            assert_eq!((first.len(), first.as_ptr()), (bytes, second.as_ptr()), "it is the same memory");
        }
        assert_eq!(lines.get(&line(1), never).len(), 10);
        let again = lines.get(&line(2), || vec![b'y'; LONGEST_BYTES + 1]);
        assert_eq!(again[0], b'y', "nobody had it any more: it takes no memory");
    }
}
