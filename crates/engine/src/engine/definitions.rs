//! What defines a kind: it goes from a cluster after the objects of that kind, never before.

use mailboat_object::key::{ClusterId, Key, KindId};
use mailboat_store::seen::Doubt;
use mailboat_store::store::Store;

use super::Engine;
use crate::slots::SlotId;

impl Engine {
    /// Whether a slot defines a kind of which objects of ours stand in the same cluster, or may stand there.
    pub(super) fn takes_others_along(&self, store: &Store, id: SlotId) -> bool {
        let Some(key) = self.slots.get(id).map(|state| &state.key) else { return false };
        let Some(kind) = defined_by(key) else { return false };
        let hidden = |doubt: Doubt| self.hides_ours(doubt, &key.cluster, &kind);
        let mut objects = match store.range(&key.cluster, &kind, None) {
            Ok(objects) => objects,
            Err(doubt) => return hidden(doubt),
        };
        let all = objects.missing();
        objects.any(|object| self.mark_on(object).is_some()) || all.is_err_and(hidden)
    }

    /// Whether objects of ours may stand where there is this doubt.
    fn hides_ours(&self, doubt: Doubt, cluster: &ClusterId, kind: &KindId) -> bool {
        match doubt {
            // Nothing of a kind that is not followed was ever delivered there, what is not served went with its kind, and a
            // filter shows what is ours.
            Doubt::NotFollowed | Doubt::Unserved | Doubt::Filtered => false,
            // What such a view does not show may be there, and this doubt never ends. What we put there is remembered until
            // it was read one by one that it is gone.
            Doubt::Claimed | Doubt::NotEngaged => self.may_have_put(cluster, kind),
            _ => true,
        }
    }

    /// Whether something of a kind is wanted in a cluster, on its way there, or was there when it was last heard of.
    fn may_have_put(&self, cluster: &ClusterId, kind: &KindId) -> bool {
        let slots = self.slots.of_kind(Some(cluster), kind).into_iter();
        let mut slots = slots.filter_map(|slot| self.slots.get(slot));
        slots.any(|slot| !slot.claims.is_empty() || slot.under_way || slot.record.uid.is_some())
    }
}

/// The kind that a CustomResourceDefinition defines, whose name says it, also where it is kept under another group.
fn defined_by(key: &Key) -> Option<KindId> {
    let defines = key.kind.resource() == "customresourcedefinitions"
        && key.kind.group().starts_with("apiextensions.k8s.io");
    let (resource, group) = key.name.as_str().split_once('.').filter(|_| defines)?;
    Some(KindId::new(group, resource))
}
