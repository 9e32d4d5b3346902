//! In which clusters there is something of a kind. What concerns a whole kind, in one cluster or in all of them, is then
//! found without looking at anything else.

use std::collections::{BTreeMap, HashMap};

use mailboat_object::key::{ClusterId, KindId};

/// How much there is of each kind in each cluster.
#[derive(Default)]
pub(crate) struct Whereabouts(BTreeMap<KindId, HashMap<ClusterId, usize, foldhash::fast::FixedState>>);

impl Whereabouts {
    /// There is one more.
    pub(crate) fn add(&mut self, cluster: &ClusterId, kind: &KindId) {
        let clusters = self.0.entry(kind.clone()).or_default();
        *clusters.entry(cluster.clone()).or_default() += 1;
    }

    /// There is one fewer.
    pub(crate) fn remove(&mut self, cluster: &ClusterId, kind: &KindId) {
        let Some(clusters) = self.0.get_mut(kind) else { return };
        let Some(count) = clusters.get_mut(cluster) else { return };
        *count -= 1;
        if *count == 0 {
            clusters.remove(cluster);
        }
        if clusters.is_empty() {
            self.0.remove(kind);
        }
    }

    /// The clusters that have something of a kind, in their order; only the one that is asked about, if one is.
    pub(crate) fn of(&self, kind: &KindId, only: Option<&ClusterId>) -> Vec<ClusterId> {
        let Some(clusters) = self.0.get(kind) else { return Vec::new() };
        if let Some(cluster) = only {
            return clusters.get_key_value(cluster).map(|(cluster, _)| cluster.clone()).into_iter().collect();
        }
        let mut all: Vec<ClusterId> = clusters.keys().cloned().collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_named_as_long_as_something_is_there() {
        let mut whereabouts = Whereabouts::default();
        let (north, south) = (ClusterId::new("north"), ClusterId::new("south"));
        let (pods, secrets) = (KindId::new("", "pods"), KindId::new("", "secrets"));
        for (cluster, kind) in [(&south, &pods), (&north, &pods), (&south, &pods), (&north, &secrets)] {
            whereabouts.add(cluster, kind);
        }
        assert_eq!(whereabouts.of(&pods, None), [north.clone(), south.clone()]);
        assert_eq!(whereabouts.of(&secrets, Some(&south)), []);
        whereabouts.remove(&south, &pods);
        assert_eq!(whereabouts.of(&pods, Some(&south)), std::slice::from_ref(&south));
        whereabouts.remove(&south, &pods);
        whereabouts.remove(&north, &pods);
        assert!(whereabouts.of(&pods, None).is_empty() && !whereabouts.0.contains_key(&pods));
    }
}
