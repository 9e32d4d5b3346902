//! What has been quiet for a while comes to rest: it takes a tenth of the memory, and is looked at all the same.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use mailboat_object::{Key, Version};

use super::table::{Log, Spot};
use super::{Kinds, Machine};
use crate::packed::Texts;

/// The changes that are still awake, and what is shared by what rests.
#[derive(Clone, Debug, Default)]
pub(super) struct Resting {
    awake: VecDeque<(Version, Key, usize)>,
    /// About how many bytes of JSON they are.
    awake_bytes: usize,
    pub(super) texts: Texts,
    kinds: Vec<Weak<Kinds>>,
}

impl Resting {
    /// Lets clusters that serve the same kinds share one map of them.
    pub(super) fn share_kinds(&mut self, kinds: &mut Arc<Kinds>) {
        if self.kinds.iter().any(|known| known.as_ptr() == Arc::as_ptr(kinds)) {
            return;
        }
        let same = |other: &Kinds| {
            other.len() == kinds.len()
                && other.values().zip(kinds.values()).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        if let Some(shared) = self.kinds.iter().filter_map(Weak::upgrade).find(|other| same(other)) {
            *kinds = shared;
            return;
        }
        self.kinds.retain(|kinds| kinds.strong_count() > 0);
        self.kinds.push(Arc::downgrade(kinds));
    }
}

impl Machine {
    /// Notes that an object changed just now, and puts to rest what changed long ago, or is too much.
    pub(super) fn rest_after(&mut self, key: &Key, json_bytes: usize) {
        let Some(limit) = self.settings.awake else { return };
        self.resting.awake.push_back((self.version, key.clone(), json_bytes));
        self.resting.awake_bytes += json_bytes;
        while self.resting.awake.len() > limit
            || (self.resting.awake_bytes > self.settings.awake_bytes && self.resting.awake.len() > 1)
        {
            let Some((version, key, json_bytes)) = self.resting.awake.pop_front() else { return };
            self.resting.awake_bytes -= json_bytes;
            self.rest(version, &key);
        }
        self.forget_beyond_limit();
    }

    /// Forgets the oldest changes while what is remembered takes too much. What is still awake stays.
    fn forget_beyond_limit(&mut self) {
        let mut bytes: usize = self.logs.values().map(Log::bytes).sum();
        while bytes > self.settings.log_bytes {
            let shown = self.shown();
            let oldest = self.logs.values_mut().filter_map(|log| Some((log.oldest_at_rest()?, log)));
            let Some((version, log)) = oldest.min_by_key(|(version, _)| *version) else { return };
            if version > shown {
                return;
            }
            bytes -= log.bytes();
            log.forget_first();
            bytes += log.bytes();
        }
    }

    fn rest(&mut self, version: Version, key: &Key) {
        let texts = &mut self.resting.texts;
        let rested = self.logs.get_mut(&key.kind).and_then(|log| log.rest(version, texts));
        let table = self.clusters.get_mut(&key.cluster).and_then(|cluster| cluster.tables.get_mut(&key.kind));
        let Some(table) = table else { return };
        let spot = Spot::of(key);
        // It may have changed since; then it is that change which puts it to rest.
        let Some(held) = table.get(&spot).filter(|held| held.version() == version) else { return };
        let rested = rested.unwrap_or_else(|| held.rested(texts));
        Arc::make_mut(table).insert(spot, rested);
    }
}
