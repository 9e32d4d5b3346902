//! An edge, as far as summaries look at it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mailboat_object::key::{Key, Name};
use mailboat_object::object::Object;

use super::delivery::Report;

/// What is known of an edge by its Location.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EdgeFacts {
    /// The name of the Location that leads to it.
    pub location: String,
    /// The Location's labels.
    pub labels: BTreeMap<String, String>,
    /// The Location's annotations.
    pub annotations: BTreeMap<String, String>,
}

impl EdgeFacts {
    /// Reads a Location.
    pub fn of(location: &Object) -> Self {
        let owned = |(key, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
            (key.into_owned(), value.into_owned())
        };
        Self {
            location: location.key.name.to_string(),
            labels: location.labels().map(owned).collect(),
            annotations: location.annotations().map(owned).collect(),
        }
    }
}

/// A label's key and value.
pub(super) type LabelPair = (Name, Name);

#[derive(Debug, Default)]
pub(super) struct Edge {
    pub(super) facts: EdgeFacts,
    /// The labels once more, shared by all that counts by them.
    pub(super) labels: Arc<[LabelPair]>,
    /// When its syncer was last heard of, in Unix seconds.
    pub(super) heard: Option<u64>,
    /// What its syncer last said of its deliveries.
    pub(super) report: Option<Report>,
    /// Copies that it was not told of yet were judged by that: the same, said once more, may say something of them.
    pub(super) unsaid: bool,
    /// The placements that go there.
    pub(super) placements: BTreeSet<Key>,
}

impl Edge {
    pub(super) fn set(&mut self, facts: EdgeFacts) {
        let pairs = facts.labels.iter().map(|(key, value)| (Name::new(key), Name::new(value)));
        self.labels = pairs.collect();
        self.facts = facts;
    }

    /// Whether it was not heard of for so long.
    pub(super) fn is_silent(&self, after_seconds: u64, now: u64) -> bool {
        self.heard.is_none_or(|heard| now >= heard.saturating_add(after_seconds))
    }
}
