//! The objects of one kind in one cluster, in order.

use std::sync::Arc;

use mailboat_object::key::{Name, Version};
use mailboat_object::object::Object;

use super::entries::{Entries, Iter};
use super::entry::{Address, Entry, State};
use crate::seen::Doubt;

/// The objects known to be present, sorted by namespace and name; and what is known of all others.
#[derive(Clone)]
pub struct Range<'a> {
    entries: Option<Iter<'a>>,
    namespace: Option<Name>,
    missing: Result<Version, Doubt>,
}

impl<'a> Range<'a> {
    pub(super) fn new(
        entries: Option<&'a Entries>,
        namespace: Option<&Name>,
        missing: Result<Version, Doubt>,
    ) -> Self {
        let entries = entries.map(|entries| match namespace {
            Some(namespace) => {
                entries.iter(Some(&Address { namespace: namespace.clone(), name: Name::EMPTY }))
            }
            None => entries.iter(None),
        });
        Self { entries, namespace: namespace.cloned(), missing }
    }

    /// Whether an object that is neither in this range nor doubtful is known to be absent, and at which version.
    pub fn missing(&self) -> Result<Version, Doubt> {
        self.missing
    }

    /// What is in doubt by itself: whoever concludes anything from the range as a whole must wait for these.
    pub fn doubtful(&self) -> impl Iterator<Item = (&'a Name, &'a Name, Doubt)> + use<'a> {
        self.clone().entries().filter_map(|(address, entry)| match &entry.state {
            State::Doubted(doubted) if !doubted.confirmed => {
                Some((&address.namespace, &address.name, doubted.doubt))
            }
            State::Doubted(_) | State::Present(_) => None,
        })
    }

    fn entries(self) -> impl Iterator<Item = (&'a Address, &'a Entry)> {
        let Self { entries, namespace, .. } = self;
        let within =
            move |address: &Address| namespace.as_ref().is_none_or(|only| *only == address.namespace);
        entries.into_iter().flatten().take_while(move |(address, _)| within(address))
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = &'a Arc<Object>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (address, entry) = self.entries.as_mut()?.next()?;
            if self.namespace.as_ref().is_some_and(|only| *only != address.namespace) {
                self.entries = None;
                return None;
            }
            if let State::Present(object) = &entry.state {
                return Some(object);
            }
        }
    }
}
