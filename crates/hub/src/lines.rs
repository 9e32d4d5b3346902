//! Lines of watches, written once for all who watch the same.

use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use mailboat_machinery::Kind;
use mailboat_object::{Name, Version};

use crate::media::Form;
use crate::table::Include;

/// How many lines are remembered: those who watch the same read them at about the same time.
const REMEMBERED: usize = 64;
/// Longer ones are remembered only as long as somebody has them to send.
const LONGEST_BYTES: usize = 256 * 1024;
/// A line of more than this is in memory once, however many have it to send and do not read it.
pub(crate) const SHARED_BYTES: usize = 4 * 1024;
/// When there are so many of these, it is looked for the first time which of them nobody has any more.
const SWEPT_AT: usize = 256;

/// The last lines, and longer ones that somebody has.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<Remembered>);

#[derive(Debug)]
struct Remembered {
    last: VecDeque<(Line, Arc<Vec<u8>>)>,
    held: HashMap<Line, Weak<Vec<u8>>>,
    swept_at: usize,
}

impl Default for Remembered {
    fn default() -> Self {
        Self { last: VecDeque::new(), held: HashMap::new(), swept_at: SWEPT_AT }
    }
}

/// What a line tells, and how.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Line {
    /// When it happened: to one object, since a version is used once.
    pub version: Version,
    /// Such as `ADDED`.
    pub what: &'static str,
    /// The version in which the object is shown.
    pub api_version: Name,
    pub metadata_only: bool,
    /// In which form it is written.
    pub form: Form,
    /// As a row of a table.
    pub table: Option<Row>,
}

/// How a row of a table is told.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Whose columns it has. It is another kind as soon as it is defined anew.
    pub kind: Weak<Kind>,
    pub include: Include,
    pub with_columns: bool,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        // As long as one of them is there, no other kind stands in its place.
        self.kind.ptr_eq(&other.kind)
            && self.include == other.include
            && self.with_columns == other.with_columns
    }
}

impl Eq for Row {}

impl Hash for Row {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.kind.as_ptr().addr(), self.include, self.with_columns).hash(state);
    }
}

/// A line, as somebody has it to send.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Remembered {
    fn find(&self, line: &Line) -> Option<Arc<Vec<u8>>> {
        let last = self.last.iter().rev().find(|(known, _)| known == line);
        last.map(|(_, written)| Arc::clone(written)).or_else(|| self.held.get(line)?.upgrade())
    }

    fn keep(&mut self, line: &Line, written: &Arc<Vec<u8>>) {
        // A row tells how old its object is, and is written anew as long as nobody would hold it twice.
        if written.len() <= LONGEST_BYTES && line.table.is_none() {
            if self.last.len() >= REMEMBERED {
                self.last.pop_front();
            }
            self.last.push_back((line.clone(), Arc::clone(written)));
        }
        if written.len() > SHARED_BYTES {
            if self.held.len() >= self.swept_at {
                self.held.retain(|_, held| held.strong_count() > 0);
                self.swept_at = (self.held.len() * 2).max(SWEPT_AT);
            }
            self.held.insert(line.clone(), Arc::downgrade(written));
        }
    }
}

impl Lines {
    /// The line, written now if nobody wrote it lately.
    pub(crate) fn get(&self, line: &Line, write: impl FnOnce() -> Vec<u8>) -> Bytes {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).find(line);
        let written = known.unwrap_or_else(|| {
            let written = Arc::new(write());
            self.0.lock().unwrap_or_else(PoisonError::into_inner).keep(line, &written);
            written
        });
        Bytes::from_owner(Shared(written))
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
            form: Form::Json,
            table: None,
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

    #[test]
    fn what_many_hold_and_do_not_read_is_in_memory_once() {
        let lines = Lines::default();
        let line = |version: u64| Line {
            version: Version(version),
            what: "ADDED",
            api_version: Name::new("v1"),
            metadata_only: false,
            form: Form::Json,
            table: None,
        };
        let count = 3 * SWEPT_AT as u64;
        let written: Vec<Bytes> =
            (0..count).map(|version| lines.get(&line(version), || vec![b'x'; SHARED_BYTES + 1])).collect();
        for (version, first) in (0..count).zip(&written) {
            let again = lines.get(&line(version), || panic!("it was written already"));
            assert_eq!(first.as_ptr(), again.as_ptr());
        }
        drop(written);
        for version in count..2 * count {
            lines.get(&line(version), || vec![b'x'; SHARED_BYTES + 1]);
        }
        let held = lines.0.lock().unwrap().held.len();
        assert!(held <= 2 * SWEPT_AT + REMEMBERED, "what nobody has is forgotten: {held}");
    }
}
