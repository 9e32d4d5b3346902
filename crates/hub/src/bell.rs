//! Who is woken by a change.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use mailboat_object::{ClusterId, KindId};
use tokio::sync::watch;

/// Bells of kinds: rung when an object of the kind changed, in one cluster or in any.
///
/// A watch looks into the log by itself; a bell only says that looking is worth while. So thousands of idle watches
/// cost nothing when others' objects change.
#[derive(Debug, Default)]
pub(crate) struct Bells {
    bells: Mutex<HashMap<Place, watch::Sender<()>>>,
}

/// A kind in a cluster; none: in all of them.
type Place = (Option<ClusterId>, KindId);

impl Bells {
    /// Listens to a kind in a cluster; none: in all of them.
    pub(crate) fn listen(&self, cluster: Option<&ClusterId>, kind: &KindId) -> watch::Receiver<()> {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.entry((cluster.cloned(), kind.clone())).or_default().subscribe()
    }

    /// Rings all bells: more changed than is remembered.
    pub(crate) fn ring_all(&self) {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|_, bell| bell.send(()).is_ok());
    }

    /// Rings for a change. A bell that nobody listens to any more is taken down.
    pub(crate) fn ring(&self, cluster: &ClusterId, kind: &KindId) {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        for place in [Some(cluster.clone()), None] {
            let key = (place, kind.clone());
            if let Some(bell) = bells.get(&key)
                && bell.send(()).is_err()
            {
                bells.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_are_woken_whom_it_concerns() {
        let bells = Bells::default();
        let (here, there) = (ClusterId::new("here"), ClusterId::new("there"));
        let (pods, nodes) = (KindId::new("", "pods"), KindId::new("", "nodes"));
        let mut mine = bells.listen(Some(&here), &pods);
        let mut all = bells.listen(None, &pods);
        for (cluster, kind) in [(&there, &pods), (&here, &nodes)] {
            bells.ring(cluster, kind);
            assert!(!mine.has_changed().unwrap(), "{kind} in {cluster:?}");
        }
        assert!(all.has_changed().unwrap());
        all.mark_unchanged();
        bells.ring(&here, &pods);
        assert!(mine.has_changed().unwrap() && all.has_changed().unwrap());
        mine.mark_unchanged();
        drop(mine);
        bells.ring(&here, &pods);
        assert_eq!(bells.bells.lock().unwrap().len(), 1, "the bell of the one that left is gone");
    }
}
