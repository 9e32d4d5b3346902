//! Reports on their way to being shown: a report that was answered is done only when its source shows it. A link that is
//! lost in between may lead to a server that was restored from before, and what nobody read nobody misses.

use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key, KindId, Version};
use mailboat_object::object::Keep;
use mailboat_store::seen::{Change, Seen};
use mailboat_store::store::Store;

use super::answers::decode;
use super::{Engine, of_kind};
use crate::queue::Urgency;
use crate::slots::SlotId;

impl Engine {
    /// A report was taken. It is remembered until the source is seen to bear it, unless it was seen first.
    pub(super) fn report_is_answered(&mut self, store: &Store, id: SlotId, body: &[u8]) {
        let claim = self.slots.get(id).and_then(|state| state.claims.first());
        let Some(source) = claim.and_then(|claim| self.fans.get(claim.fan)).map(|fan| fan.source.clone())
        else {
            return;
        };
        let Some(made) = decode(&source, &self.manager, body, Keep::Head) else { return };
        let shown = store.get(&source).present().is_some_and(|seen| seen.version >= made.version);
        if shown {
            self.unshown.remove(&source);
        } else {
            self.unshown.insert((*source).clone(), (made.version, id));
        }
    }

    /// A report was not taken: it is made once more at the latest when the link to its source comes back.
    pub(super) fn report_is_lost(&mut self, source: &Key, id: SlotId) {
        self.unshown.insert(source.clone(), (Version(u64::MAX), id));
    }

    /// A source is shown as it was after a report to it, or later, or is gone.
    pub(super) fn report_is_shown(&mut self, change: &Change) {
        let Some((version, _)) = self.unshown.get(&change.key) else { return };
        let older = matches!(&change.now, Seen::Present(source) if source.version < *version);
        if !older && !matches!(change.now, Seen::Unknown(_)) {
            self.unshown.remove(&change.key);
        }
    }

    /// A link came back, or was lost: reports that it never showed are made once more. One that is there already changes
    /// nothing.
    pub(super) fn report_again(&mut self, cluster: Option<&ClusterId>, kind: &KindId) {
        for source in of_kind(&self.unshown, cluster, kind) {
            let Some((_, id)) = self.unshown.remove(&source) else { continue };
            if let Some(state) = self.slots.get_mut(id) {
                state.record.reported = Digest::NONE;
                state.settled = None;
                if let Some(passing) = state.passing.said() {
                    passing.silent_until = 0;
                }
                self.plan_later(id, Urgency::Listed);
            }
        }
    }
}
