//! Label and field selectors, as objects state them and as queries write them.

mod field;
mod label;
mod parse;

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::json::Raw;
use crate::object::Object;

pub use field::{FieldSelector, FieldTerm};
pub use label::{LabelSelector, Operator, Requirement};

/// A selector that cannot be understood: where in it, and why, in one sentence.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{path}: {what}")]
pub struct BadSelector {
    /// The member in question, such as `matchExpressions[1].values`, or the place in a query.
    pub path: String,
    /// What is wrong with it.
    pub what: String,
}

impl BadSelector {
    fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }

    fn within(mut self, parent: &str) -> Self {
        self.path = if self.path.is_empty() { parent.to_owned() } else { format!("{parent}.{}", self.path) };
        self
    }
}

/// Something with labels.
pub trait Labels {
    /// The value of one label.
    fn label_value(&self, key: &str) -> Option<Cow<'_, str>>;
}

impl Labels for Object {
    fn label_value(&self, key: &str) -> Option<Cow<'_, str>> {
        self.label(key)
    }
}

impl Labels for Raw<'_> {
    fn label_value(&self, key: &str) -> Option<Cow<'_, str>> {
        self.member(key)?.as_str()
    }
}

impl Labels for BTreeMap<String, String> {
    fn label_value(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key).map(|value| Cow::Borrowed(value.as_str()))
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Labels for [(K, V)] {
    fn label_value(&self, key: &str) -> Option<Cow<'_, str>> {
        self.iter().find(|(k, _)| k.as_ref() == key).map(|(_, value)| Cow::Borrowed(value.as_ref()))
    }
}

#[cfg(test)]
mod tests;
