//! The texts of objects. Copies of one source differ in what their heads hold as fields and in nothing else, so that one
//! text does for all of them: with ten thousand edges, that is most of what a center would hold.

use std::cell::RefCell;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::Spans;

/// What is kept of a body as JSON, and where in it the parts stand.
pub(super) struct Text {
    pub(super) json: Box<str>,
    pub(super) spans: Spans,
}

/// Texts that are longer are rarely those of many, and would make what is remembered large.
const SHARED_UP_TO_BYTES: usize = 1024;
/// How many texts are remembered: half a megabyte if all were as long as may be, and room for the copies of a few hundred
/// sources that come in any order.
const REMEMBERED: usize = 512;
/// Texts that fall on one place in the table.
const WAYS: usize = 2;

thread_local! {
    /// The texts that were seen last, by their hash. A table of all that are in use would have to be swept; this one
    /// forgets by itself, and what is forgotten is merely kept twice.
    static RECENT: RefCell<Vec<[Option<Arc<Text>>; WAYS]>> = const { RefCell::new(Vec::new()) };
}

/// A text, or the same one if it was seen lately.
pub(super) fn shared(text: Text) -> Arc<Text> {
    if text.json.len() > SHARED_UP_TO_BYTES {
        return Arc::new(text);
    }
    RECENT.with_borrow_mut(|recent| {
        recent.resize_with(REMEMBERED / WAYS, Default::default);
        let places = recent.len() as u64;
        let at = usize::try_from(xxh3_64(text.json.as_bytes()) % places).unwrap_or_default();
        let ways = &mut recent[at];
        let same = |known: &Option<Arc<Text>>| known.as_ref().is_some_and(|known| known.json == text.json);
        let found = ways.iter().position(same);
        // The one that was seen last comes first, and goes last.
        ways[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        match &mut ways[0] {
            Some(known) if found.is_some() => Arc::clone(known),
            first => Arc::clone(first.insert(Arc::new(text))),
        }
    })
}
