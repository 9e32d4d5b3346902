//! What a mailbox's syncer is told to bring up.
//!
//! What nobody asks for any more is brought up no more, and what was leaves the mailbox. A center that starts may not see all who ask:
//! the inventory may not be shown, or a workspace with placements. Until it does, what `the-one` named before stands.

use std::collections::BTreeSet;

use mailboat_api::edge::{SyncerConfigSpec, UpsyncSet};
use mailboat_object::object::Object;

use crate::the_one::merge_upsync;

#[derive(Default)]
pub(super) struct Bringing {
    asked: BTreeSet<UpsyncSet>,
    /// What another center told it, and nobody was seen to ask for since.
    before: BTreeSet<UpsyncSet>,
}

impl Bringing {
    /// A configuration of ours, as another center left it.
    pub(super) fn reads(&mut self, config: &Object) {
        let spec = config.get(&["spec"]).and_then(|spec| serde_json::from_str(spec.json()).ok());
        let named = spec.into_iter().flat_map(|spec: SyncerConfigSpec| spec.upsync);
        self.before.extend(named.map(|entry| entry.set));
        self.leave_to_askers();
    }

    /// By all placements that are known to go there. True if it is otherwise than before.
    pub(super) fn ask(&mut self, sets: BTreeSet<UpsyncSet>) -> bool {
        let otherwise = self.asked != sets;
        self.asked = sets;
        self.leave_to_askers();
        otherwise
    }

    /// All are known who may ask. True if something is not asked for any more.
    pub(super) fn forget_before(&mut self) -> bool {
        !std::mem::take(&mut self.before).is_empty()
    }

    /// All that is to be brought up.
    pub(super) fn all(&self) -> impl Iterator<Item = &UpsyncSet> {
        self.asked.iter().chain(&self.before)
    }

    fn leave_to_askers(&mut self) {
        let asked = merge_upsync(&self.asked);
        self.before.retain(|set| !asked.contains(set));
    }
}
