//! The latest deletions, so that an absence known by event stays told apart from one known by list.

use std::collections::{BTreeMap, VecDeque};

use mailboat_object::key::{Key, Version};

/// A forgotten deletion reads as "not in the list", which is the more cautious of the two.
const KEPT_AT_MOST: usize = 4096;

#[derive(Default)]
pub(super) struct Deletions {
    versions: BTreeMap<Key, Version>,
    order: VecDeque<(Key, Version)>,
}

impl Deletions {
    pub(super) fn note(&mut self, key: &Key, version: Version) {
        if self.order.len() >= KEPT_AT_MOST
            && let Some((oldest, at)) = self.order.pop_front()
            && self.versions.get(&oldest) == Some(&at)
        {
            self.versions.remove(&oldest);
        }
        self.versions.insert(key.clone(), version);
        self.order.push_back((key.clone(), version));
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.versions.remove(key);
    }

    pub(super) fn forget_all(&mut self, which: impl Fn(&Key) -> bool) {
        self.versions.retain(|key, _| !which(key));
    }

    pub(super) fn get(&self, key: &Key) -> Option<Version> {
        self.versions.get(key).copied()
    }
}

#[cfg(test)]
mod tests {
    use mailboat_object::key::{ClusterId, KindId, Name};

    use super::*;

    #[test]
    fn only_the_latest_deletions_are_remembered() {
        let key = |n: usize| Key {
            cluster: ClusterId::new("edge"),
            kind: KindId::new("", "configmaps"),
            namespace: Name::new("till"),
            name: Name::new(&n.to_string()),
        };
        let mut deletions = Deletions::default();
        for n in 0..KEPT_AT_MOST + 10 {
            deletions.note(&key(n), Version(n as u64));
        }
        assert_eq!((deletions.versions.len(), deletions.order.len()), (KEPT_AT_MOST, KEPT_AT_MOST));
        assert_eq!(deletions.get(&key(9)), None);
        assert_eq!(deletions.get(&key(10)), Some(Version(10)));
        deletions.forget(&key(10));
        assert_eq!(deletions.get(&key(10)), None);
    }
}
