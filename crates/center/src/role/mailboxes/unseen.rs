//! What a syncer was told to carry before this center started, and this center cannot see.
//!
//! A center that starts knows what a syncer is to carry by the copies in its mailbox. Where those of a kind are not shown, because
//! the binding by which they are seen is lost or is of another identity, and what they were made from is gone as well, nothing
//! but `the-one` itself still names them. Written anew without them, it would have the edge take them away.
//!
//! What will never be seen again would be carried on for ever. So the SyncTarget says what it is, and somebody may let it go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use mailboat_api::edge::SyncerConfigSpec;
use mailboat_engine::plan::ChangeId;
use mailboat_object::digest::digest_of_value;
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::seen::Doubt;
use mailboat_store::store::Store;
use serde_json::json;

use crate::denature;
use crate::the_one::{Carried, TheOne};

/// What is named and not seen.
#[derive(Default)]
pub(super) struct Unseen {
    /// All that was named when this center started, until it is known what of it can be seen.
    named: BTreeSet<Carried>,
    kept: BTreeSet<Carried>,
    /// The configurations that named it, each by its name, and as it was when this center started.
    told_by: BTreeMap<Name, (String, u64)>,
    /// Names what is kept, once somebody asked for it.
    change: OnceLock<ChangeId>,
}

impl Unseen {
    /// A configuration of ours, as another center left it.
    pub(super) fn reads(&mut self, config: &Object) {
        let spec = config.get(&["spec"]).and_then(|spec| serde_json::from_str(spec.json()).ok());
        self.named.extend(spec.iter().flat_map(carried_by));
        self.told_by.insert(config.key.name.clone(), (config.uid.to_string(), config.generation));
    }

    /// All that stands in the mailbox was looked at: what is named, and may stand there beside that, is carried on. True if
    /// there is any.
    pub(super) fn keep(
        &mut self,
        store: &Store,
        cluster: &ClusterId,
        carried: &BTreeSet<Carried>,
        the_one: &mut TheOne,
    ) -> bool {
        for named in std::mem::take(&mut self.named) {
            if !carried.contains(&named) && is_hidden(store, cluster, &named.kind) {
                the_one.carry(named.clone());
                self.kept.insert(named);
            }
        }
        !self.kept.is_empty()
    }

    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// What is kept, by its kinds at the edge.
    pub(super) fn count_by_kind(&self) -> BTreeMap<&KindId, usize> {
        let mut counts = BTreeMap::new();
        for kept in &self.kept {
            *counts.entry(&kept.kind).or_default() += 1;
        }
        counts
    }

    /// Names that all of it is let go: just these objects, and just this time. Once they have gone, `the-one` is another; so a word
    /// that is left standing lets nothing go when the same happens again.
    pub(super) fn change(&self) -> ChangeId {
        *self.change.get_or_init(|| self.name_change())
    }

    fn name_change(&self) -> ChangeId {
        let named = |kept: &Carried| {
            let Carried { kind, version, namespace, name } = kept;
            json!([kind.to_string(), version.as_str(), namespace.as_str(), name.as_str()])
        };
        let told_by: Vec<_> =
            self.told_by.iter().map(|(name, as_of)| json!([name.as_str(), as_of])).collect();
        let kept: Vec<_> = self.kept.iter().map(named).collect();
        ChangeId(digest_of_value(&json!(["unseen", told_by, kept])).bits())
    }

    /// Nothing of it is carried any more: what that was.
    pub(super) fn let_go(&mut self, the_one: &mut TheOne) -> BTreeSet<Carried> {
        self.kept.iter().for_each(|kept| the_one.drop(kept));
        self.change.take();
        std::mem::take(&mut self.kept)
    }

    /// A copy is seen: from now on it is carried because it stands there.
    pub(super) fn sees(&mut self, carried: &Carried) {
        if self.kept.remove(carried) {
            self.change.take();
        }
    }

    /// What could be seen by now, and is not there, is carried no more. True if there was any.
    pub(super) fn release(&mut self, store: &Store, cluster: &ClusterId, the_one: &mut TheOne) -> bool {
        let before = self.kept.len();
        self.kept.retain(|kept| {
            let hidden = is_hidden(store, cluster, &kept.kind);
            if !hidden {
                the_one.drop(kept);
            }
            hidden
        });
        let released = self.kept.len() != before;
        if released {
            self.change.take();
        }
        released
    }

    /// The kinds of what is kept, as the mailbox stores them.
    pub(super) fn kinds(&self) -> impl Iterator<Item = KindId> {
        self.kept.iter().map(|kept| denature::in_mailbox(&kept.kind).into_owned())
    }
}

/// Whether copies of a kind may stand in a mailbox and not be shown. A claim that is in force shows what is ours.
fn is_hidden(store: &Store, cluster: &ClusterId, kind: &KindId) -> bool {
    match store.range(cluster, &denature::in_mailbox(kind), None) {
        Ok(range) => !matches!(range.missing(), Ok(_) | Err(Doubt::Claimed)),
        Err(_) => true,
    }
}

/// What a SyncerConfig of ours names: each object by itself.
fn carried_by(spec: &SyncerConfigSpec) -> Vec<Carried> {
    let carried = |group: &str, resource: &str, version: &str, namespace: &str, name: &str| Carried {
        kind: KindId::new(group, resource),
        version: Name::new(version),
        namespace: Name::new(namespace),
        name: Name::new(name),
    };
    let cluster_scoped = spec.cluster_scope.iter().flat_map(|entry| {
        entry.objects.iter().map(|name| carried(&entry.group, &entry.resource, &entry.api_version, "", name))
    });
    let namespaced = spec.namespaced_objects.iter().flat_map(|entry| {
        entry.objects_by_namespace.iter().flat_map(|place| {
            let (group, resource, version) = (&entry.group, &entry.resource, &entry.api_version);
            place.names.iter().map(|name| carried(group, resource, version, &place.namespace, name))
        })
    });
    cluster_scoped.chain(namespaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::object;

    /// What is kept of two objects of a kind that nobody can see, as `the-one` of this generation names them.
    fn kept(generation: u64) -> (Unseen, TheOne) {
        let named = json!([{ "group": "example.dev", "resource": "boats", "apiVersion": "v1",
            "objectsByNamespace": [{ "namespace": "pier", "names": ["a", "b"] }] }]);
        let config = json!({ "metadata": { "name": "the-one", "uid": "u", "generation": generation },
            "spec": { "namespacedObjects": named } });
        let (mut unseen, mut the_one) = (Unseen::default(), TheOne::default());
        unseen.reads(&object("mailbox", "syncerconfigs.edge.kubestellar.io", &config));
        assert!(unseen.keep(&Store::new(), &ClusterId::new("mailbox"), &BTreeSet::new(), &mut the_one));
        (unseen, the_one)
    }

    #[test]
    fn a_word_is_for_just_these_objects_and_just_this_once() {
        let (mut unseen, mut the_one) = kept(3);
        let change = unseen.change();
        assert_eq!(kept(3).0.change(), change, "a center that starts again asks for the same");
        // Once it was let go, `the-one` is another: the same word lets nothing go when all this happens again.
        assert_ne!(kept(4).0.change(), change);
        let first = unseen.kept.first().cloned().unwrap();
        unseen.sees(&first);
        assert_ne!(unseen.change(), change, "one of them is seen by now");
        assert_eq!(unseen.let_go(&mut the_one).len(), 1);
        assert!(unseen.is_empty() && unseen.count_by_kind().is_empty());
    }
}
