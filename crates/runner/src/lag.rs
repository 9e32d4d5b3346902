//! How long changes wait until they are carried on.

use std::collections::HashMap;
use std::time::Duration;

use mailboat_object::key::Key;
use mailboat_store::{Moment, News};

/// Changes that are timed at once; of more, only these are.
const CHANGES: usize = 4_096;

/// When changes that may have to be carried on were read.
#[derive(Default)]
pub(crate) struct Lags(HashMap<Key, Moment>);

impl Lags {
    /// Something was read. What a first list shows was not changed now, so it is not timed.
    pub(crate) fn heed(&mut self, now: Moment, news: &News) {
        if let News::Object(change) = news
            && change.live
            && (self.0.len() < CHANGES || self.0.contains_key(&change.key))
        {
            self.0.insert(change.key.clone(), now);
        }
    }

    /// How long ago the change of an object was read, if it is timed.
    pub(crate) fn since(&self, object: &Key, now: Moment) -> Option<Duration> {
        self.0.get(object).map(|read| now - *read)
    }

    /// Everything was carried on.
    pub(crate) fn clear(&mut self) {
        if !self.0.is_empty() {
            self.0 = HashMap::new();
        }
    }
}
