//! The slots that several routes want for different sources, by who does not have them.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use crate::fans::RouteIndex;
use crate::slots::SlotId;

/// Kept with each claim that comes or goes: most slots that several want are wanted for the same source, and looking through
/// those for the few of which something is to be told costs as much as all that is delivered.
#[derive(Default)]
pub(crate) struct Contests {
    lost: BTreeMap<RouteIndex, BTreeSet<SlotId>>,
    losers: BTreeMap<SlotId, Losers>,
}

/// The routes that want a slot in vain.
pub(crate) type Losers = SmallVec<[RouteIndex; 2]>;

impl Contests {
    /// Who wants a slot in vain, from now on.
    pub(crate) fn set(&mut self, slot: SlotId, losers: Losers) {
        for route in self.losers.remove(&slot).into_iter().flatten() {
            if let Some(slots) = self.lost.get_mut(&route) {
                slots.remove(&slot);
                if slots.is_empty() {
                    self.lost.remove(&route);
                }
            }
        }
        for route in &losers {
            self.lost.entry(*route).or_default().insert(slot);
        }
        if !losers.is_empty() {
            self.losers.insert(slot, losers);
        }
    }

    /// The slots that a route wants in vain.
    pub(crate) fn lost_by(&self, route: RouteIndex) -> impl Iterator<Item = SlotId> {
        self.lost.get(&route).into_iter().flatten().copied()
    }

    /// How many slots are wanted in vain.
    pub(crate) fn len(&self) -> usize {
        self.losers.len()
    }
}
