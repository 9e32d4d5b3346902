//! Projections that are remembered while they are being delivered: those that are the same at every destination, made once
//! for all of them, and those of one slot, which is looked at again when it shows what was delivered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key};

use crate::fans::FanId;
use crate::want::Want;

/// So many are remembered. Destinations of one source are delivered to one after the other, so that few sources are in
/// the making at any time; what is forgotten is projected again.
const REMEMBERED: usize = 256;

/// What goes to one slot alone is remembered only if it is no larger than this: it is looked at once more, if all goes well, and
/// to project it again costs little beside having sent it.
pub(crate) const ALONE_UP_TO_BYTES: usize = 16 << 10;

/// The projections that are remembered, the oldest first. Each is good until its fan is evaluated anew: whatever it was
/// made from wakes the fan when it changes, and nothing is planned while something waits for evaluation.
#[derive(Default)]
pub(crate) struct Shared {
    wants: BTreeMap<FanId, Arc<[Want]>>,
    oldest: VecDeque<FanId>,
}

impl Shared {
    /// What was projected for all slots of a fan.
    pub(crate) fn get(&self, fan: FanId) -> Option<&Arc<[Want]>> {
        self.wants.get(&fan)
    }

    pub(crate) fn remember(&mut self, fan: FanId, wants: Arc<[Want]>) {
        if self.wants.insert(fan, wants).is_none() {
            self.oldest.push_back(fan);
        }
        while self.oldest.len() > REMEMBERED {
            if let Some(fan) = self.oldest.pop_front() {
                self.wants.remove(&fan);
            }
        }
    }

    pub(crate) fn forget(&mut self, fan: FanId) {
        if self.wants.remove(&fan).is_some() {
            self.oldest.retain(|other| *other != fan);
        }
    }
}

/// A want as it is in another cluster.
pub(crate) fn in_cluster(want: &Want, cluster: &ClusterId) -> Want {
    Want { slot: Key { cluster: cluster.clone(), ..want.slot.clone() }, ..want.clone() }
}
