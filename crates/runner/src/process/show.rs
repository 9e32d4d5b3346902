//! What a process shows of itself, after each of its turns.

use std::collections::BTreeSet;

use mailboat_engine::role::Role;
use mailboat_engine::standing::Counts;
use mailboat_object::key::KindId;
use mailboat_store::Nature;
use tokio::time::Instant;

use super::Process;
use crate::health::{Finding, TURNS_EVERY};
use crate::lease::Lease;
use crate::listen::Instruments;

impl<R: Role> Process<R> {
    /// Shows how everything stands, if somebody may look, and says when to turn again at the latest.
    pub(super) fn show(&mut self, alarm: Option<Instant>) -> Option<Instant> {
        let Some(instruments) = &self.instruments else { return alarm };
        let now = Instant::now();
        instruments.health.turned();
        let gate = self.lease.as_ref().map(Lease::gate);
        instruments.metrics.leads(gate.as_ref().is_none_or(|gate| gate.is_open()));
        if let Some(gate) = gate {
            instruments.health.leads(gate.is_open(), gate.word());
        }
        let (ready, degraded) = instruments.health.summary();
        instruments.metrics.ready(ready, degraded);
        instruments.metrics.depth(self.carrier.engine().depth());
        let due = self.count_at.is_none_or(|at| at <= now);
        if due {
            self.count_at = Some(now + TURNS_EVERY);
            self.counted = self.count(instruments);
        }
        // While thousands of workspaces are read, this changes with each of them.
        if self.standings.take_changed() || due {
            self.find(instruments);
        }
        let latest = now + TURNS_EVERY;
        Some(alarm.map_or(latest, |alarm| alarm.min(latest)))
    }

    /// Counts what is costly to count, since all that is known is passed over for it.
    fn count(&self, instruments: &Instruments) -> Counts {
        let (store, counts) = (self.followers.store(), self.carrier.engine().counts_of_all());
        instruments.metrics.known(store.len(), store.footprint_bytes());
        instruments.metrics.counts(counts);
        let kinds: BTreeSet<&KindId> = self.followed.keys().map(|feed| &feed.kind).collect();
        instruments.metrics.backlog(|| self.carrier.engine().backlog(), kinds.len());
        counts
    }

    /// Says what was found of places and lists, and when it was last counted.
    fn find(&self, instruments: &Instruments) {
        let (metrics, counts) = (&instruments.metrics, self.counted);
        let (complete, incomplete) = self.standings.count();
        metrics.lists(complete, incomplete);
        for (id, place) in &self.places {
            if let Nature::Whole(cluster) = &place.nature {
                metrics.reached(cluster, place.told.is_some() && self.standings.reaches(id));
            }
        }
        let mut unready = self.standings.unready();
        let silent =
            self.places.iter().filter(|(_, place)| place.told.is_none() && !place.endpoints.is_empty());
        unready
            .extend(silent.map(|(id, _)| Finding::new(id.to_string(), "it has not said yet what it serves")));
        let mut degraded = self.standings.odd();
        if counts.held > 0 {
            let held = format!("{} held, until somebody confirms them", counts.held);
            degraded.push(Finding::new("withdrawals", held));
        }
        if counts.refused > 0 {
            let refused = format!("{} refused, until somebody changes something", counts.refused);
            degraded.push(Finding::new("deliveries", refused));
        }
        instruments.health.found(unready, degraded);
    }
}
