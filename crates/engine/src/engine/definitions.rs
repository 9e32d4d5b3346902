//! What defines a kind: it goes from a cluster after the objects of that kind, never before.

use mailboat_object::key::{Key, KindId};
use mailboat_store::seen::Doubt;
use mailboat_store::store::Store;

use super::Engine;
use crate::slots::SlotId;

impl Engine {
    /// Whether a slot defines a kind of which objects of ours stand in the same cluster, or may stand there.
    pub(super) fn takes_others_along(&self, store: &Store, id: SlotId) -> bool {
        let Some(key) = self.slots.get(id).map(|state| &state.key) else { return false };
        let Some(kind) = defined_by(key) else { return false };
        let mut objects = match store.range(&key.cluster, &kind, None) {
            Ok(objects) => objects,
            Err(doubt) => return hides_ours(doubt),
        };
        let all = objects.missing();
        objects.any(|object| self.mark_on(object).is_some()) || all.is_err_and(hides_ours)
    }
}

/// Whether objects of ours may stand where there is this doubt. Nothing of a kind that is not followed was ever delivered
/// there, what is not served went with its kind, and a filter shows what is ours.
fn hides_ours(doubt: Doubt) -> bool {
    !matches!(doubt, Doubt::NotFollowed | Doubt::Unserved | Doubt::Filtered)
}

/// The kind that a CustomResourceDefinition defines, whose name says it, also where it is kept under another group.
fn defined_by(key: &Key) -> Option<KindId> {
    let defines = key.kind.resource() == "customresourcedefinitions"
        && key.kind.group().starts_with("apiextensions.k8s.io");
    let (resource, group) = key.name.as_str().split_once('.').filter(|_| defines)?;
    Some(KindId::new(group, resource))
}
