//! What is kept of each of many clusters, found by one look however many there are.
//!
//! There are ten thousand mailboxes, some ninety kinds in each, and every question about an object goes by its cluster, several
//! times. In a tree each of these would compare fourteen names, most of them far apart in memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use mailboat_object::key::ClusterId;

/// Something for each of some clusters.
#[derive(Debug)]
pub(super) struct ByCluster<T>(HashMap<ClusterId, T, foldhash::fast::FixedState>);

impl<T> Default for ByCluster<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T> ByCluster<T> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, cluster: &ClusterId) -> bool {
        self.0.contains_key(cluster)
    }

    pub(super) fn get(&self, cluster: &ClusterId) -> Option<&T> {
        self.0.get(cluster)
    }

    pub(super) fn get_mut(&mut self, cluster: &ClusterId) -> Option<&mut T> {
        self.0.get_mut(cluster)
    }

    /// That of a cluster, made if there is none.
    pub(super) fn of(&mut self, cluster: &ClusterId, make: impl FnOnce() -> T) -> &mut T {
        match self.0.entry(cluster.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(make()),
        }
    }

    pub(super) fn insert(&mut self, cluster: ClusterId, value: T) {
        self.0.insert(cluster, value);
    }

    /// Takes that of a cluster out. With the last of them all room is given back.
    pub(super) fn remove(&mut self, cluster: &ClusterId) -> Option<T> {
        let removed = self.0.remove(cluster);
        if self.0.is_empty() {
            self.0 = HashMap::default();
        }
        removed
    }

    /// Each of them, in no order: for what does not depend on one.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values()
    }

    /// The same, to be changed.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut()
    }

    /// Those that are meant, in the order of their clusters: what is told of them replays exactly.
    pub(super) fn in_order(&self, meant: impl Fn(&ClusterId, &T) -> bool) -> Vec<(&ClusterId, &T)> {
        let mut found: Vec<_> = self.0.iter().filter(|(cluster, value)| meant(cluster, value)).collect();
        found.sort_unstable_by_key(|(cluster, _)| *cluster);
        found
    }

    /// Their clusters, in order.
    pub(super) fn clusters(&self, meant: impl Fn(&ClusterId, &T) -> bool) -> Vec<ClusterId> {
        self.in_order(meant).into_iter().map(|(cluster, _)| cluster.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_meant_come_in_order_and_room_is_given_back_with_the_last() {
        let mut all = ByCluster::default();
        let clusters: Vec<ClusterId> =
            (0..100).map(|number| ClusterId::new(&format!("{:02}", number * 37 % 100))).collect();
        for (number, cluster) in clusters.iter().enumerate() {
            all.insert(cluster.clone(), number);
        }
        assert_eq!(*all.of(&clusters[3], || 1_000), 3, "what is there stays");
        let even = all.clusters(|_, number| number % 2 == 0);
        assert!(even.is_sorted() && even.len() == 50, "{even:?}");
        for cluster in &clusters {
            assert!(all.remove(cluster).is_some() && !all.contains(cluster));
        }
        assert!(all.is_empty() && all.0.capacity() == 0);
    }
}
