//! Clusters that are gone with all that stood in them. What is under way there ends later, and is nobody's business then.

use std::collections::BTreeSet;

use mailboat_object::key::ClusterId;

use super::Engine;
use crate::slots::SlotId;

impl Engine {
    /// Clusters are gone with all that stood in them. What nobody claims there is forgotten, and nothing is written.
    pub fn forget_clusters(&mut self, gone: &BTreeSet<ClusterId>) {
        for id in self.slots.matching(|slot| slot.claims.is_empty() && gone.contains(&slot.key.cluster)) {
            self.give_up_on(id);
        }
        for cluster in gone {
            for id in self.destinations_at.remove(cluster).into_iter().flatten() {
                self.destinations.remove(&id);
            }
            self.clusters.remove(cluster);
            self.away.remove(cluster);
            self.untold.remove(cluster);
            self.unlisted.remove(cluster);
        }
        self.waiting.retain(|source, _| !gone.contains(&source.cluster));
        self.homeless.retain(|namespace, _| !gone.contains(&namespace.cluster));
        self.housing.retain(|namespace, _| !gone.contains(&namespace.cluster));
        self.unshown.retain(|source, _| !gone.contains(&source.cluster));
        self.fans.forget_reads(|read| gone.contains(read.scope().0));
        let awaited = |cluster: &&ClusterId| self.flies_to(cluster);
        let awaited: Vec<ClusterId> = gone.iter().filter(awaited).cloned().collect();
        self.gone.extend(awaited);
    }

    /// A call or a look is over: whether its slot is given up, because its cluster went meanwhile and nobody claims it.
    pub(super) fn went_with_its_cluster(&mut self, id: SlotId) -> bool {
        if self.gone.is_empty() {
            return false;
        }
        let gone = self
            .slots
            .get(id)
            .is_some_and(|state| state.claims.is_empty() && self.gone.contains(&state.key.cluster));
        if gone {
            self.give_up_on(id);
        }
        let over = self.gone.iter().filter(|cluster| !self.flies_to(cluster));
        for cluster in over.cloned().collect::<Vec<_>>() {
            self.gone.remove(&cluster);
        }
        gone
    }

    fn give_up_on(&mut self, id: SlotId) {
        self.unsettled.remove(&id);
        self.forget(id);
    }

    /// Whether something is under way for a slot of a cluster.
    fn flies_to(&self, cluster: &ClusterId) -> bool {
        let mut slots = self.flights.slots().filter_map(|slot| self.slots.get(slot));
        slots.any(|state| state.key.cluster == *cluster)
    }
}
