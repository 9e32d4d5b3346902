//! Chance, the same for the same seed.

use mailboat_machinery::{Random as _, Seeded};
use serde_json::{Map, Value, json};

pub(crate) struct Draw(Seeded);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        let mut seeded = Seeded(seed.wrapping_mul(0x0123_4567_89ab_cdef));
        let _ = seeded.next();
        Self(seeded)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.next() % bound as u64).unwrap()
    }

    /// True in so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn one<'o, T: ?Sized>(&mut self, of: &[&'o T]) -> &'o T {
        of[self.below(of.len())]
    }

    /// A map of some of these keys to some of these values.
    pub(crate) fn texts(&mut self, keys: &[&str], values: &[&str]) -> Value {
        let mut map = Map::new();
        for key in keys {
            if self.chance(50) {
                map.insert((*key).to_owned(), self.one(values).into());
            }
        }
        Value::Object(map)
    }

    /// Some of these values, in any order.
    pub(crate) fn some(&mut self, of: &[&str]) -> Vec<Value> {
        let mut some: Vec<Value> = of.iter().filter(|_| self.chance(50)).map(|text| json!(text)).collect();
        if some.len() > 1 && self.chance(30) {
            some.reverse();
        }
        some
    }

    /// Metadata that a user may set, without a name.
    pub(crate) fn metadata(&mut self) -> Map<String, Value> {
        let mut metadata = Map::new();
        for member in ["labels", "annotations"] {
            if self.chance(30) {
                // Not empty: a real server stores an empty map of a custom resource, and drops it at the next
                // write, which then counts as a change.
                let mut texts = self.texts(&["crew", "port", "mailboat.dev/x"], &["a", "b"]);
                texts["always"] = "here".into();
                metadata.insert(member.to_owned(), texts);
            }
        }
        if self.chance(15) {
            let mut finalizers = self.some(&["mailboat.dev/f", "mailboat.dev/g"]);
            if finalizers.is_empty() {
                finalizers.push(json!("mailboat.dev/h"));
            }
            metadata.insert("finalizers".to_owned(), finalizers.into());
        }
        metadata
    }
}
