//! The texts of objects. Copies of one source differ in what their heads hold as fields and in nothing else, so that one
//! text does for all of them: with ten thousand edges, that is most of what a center would hold.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use xxhash_rust::xxh3::xxh3_64;

use super::Spans;

/// What is kept of a body as JSON, and where in it the parts stand.
pub(super) struct Text {
    pub(super) json: Box<str>,
    pub(super) spans: Spans,
}

/// Texts that are longer are rarely those of many.
const SHARED_UP_TO_BYTES: usize = 4096;
/// So many are known before those that nobody has any more are looked for.
const FEWEST: usize = 512;

/// The texts in use, by their hash. Copies of thousands of sources come in any order, so that a memory of those seen last would
/// forget most of them before they come again. Nothing is kept alive here, and what died is swept out whenever the table has
/// doubled.
#[derive(Default)]
struct Known {
    texts: HashMap<u64, Weak<Text>, foldhash::fast::FixedState>,
    sweep_at: usize,
}

impl Known {
    fn shared(&mut self, text: Text) -> Arc<Text> {
        let hash = xxh3_64(text.json.as_bytes());
        if let Some(known) = self.texts.get(&hash).and_then(Weak::upgrade)
            && known.json == text.json
        {
            return known;
        }
        if self.texts.len() >= self.sweep_at.max(FEWEST) {
            self.texts.retain(|_, text| text.strong_count() > 0);
            self.texts.shrink_to(2 * self.texts.len());
            self.sweep_at = 2 * self.texts.len();
        }
        let text = Arc::new(text);
        // Of two with one hash the later is known: the other is merely kept twice.
        self.texts.insert(hash, Arc::downgrade(&text));
        text
    }
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// A text, or the same one if somebody has it.
pub(super) fn shared(text: Text) -> Arc<Text> {
    if text.json.len() > SHARED_UP_TO_BYTES {
        return Arc::new(text);
    }
    KNOWN.with_borrow_mut(|known| known.shared(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: usize) -> Text {
        Text { json: format!("{{\"number\":{number}}}").into(), spans: Spans::default() }
    }

    #[test]
    fn what_thousands_have_in_turns_is_kept_once() {
        let mut known = Known::default();
        let first: Vec<_> = (0..5_000).map(|number| known.shared(text(number))).collect();
        for (number, one) in first.iter().enumerate() {
            assert!(Arc::ptr_eq(one, &known.shared(text(number))), "{number}");
        }
    }

    #[test]
    fn what_nobody_has_any_more_is_forgotten() {
        let mut known = Known::default();
        for number in 0..100 * FEWEST {
            drop(known.shared(text(number)));
        }
        assert!(known.texts.len() <= 2 * FEWEST, "{} texts known", known.texts.len());
    }
}
