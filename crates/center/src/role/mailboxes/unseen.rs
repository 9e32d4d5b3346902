//! What a syncer was told to carry before this center started, and this center cannot see.
//!
//! A center that starts knows what a syncer is to carry by the copies in its mailbox. Where those of a kind are not shown, because
//! the binding by which they are seen is lost or is of another identity, and what they were made from is gone as well, nothing
//! but `the-one` itself still names them. Written anew without them, it would have the edge take them away.

use std::collections::BTreeSet;

use mailboat_api::edge::SyncerConfigSpec;
use mailboat_object::key::{ClusterId, KindId, Name};
use mailboat_object::object::Object;
use mailboat_store::seen::Doubt;
use mailboat_store::store::Store;

use crate::denature;
use crate::the_one::{Carried, TheOne};

/// What is named and not seen.
#[derive(Default)]
pub(super) struct Unseen {
    /// All that was named when this center started, until it is known what of it can be seen.
    named: BTreeSet<Carried>,
    kept: BTreeSet<Carried>,
}

impl Unseen {
    /// A configuration of ours, as another center left it.
    pub(super) fn reads(&mut self, config: &Object) {
        let spec = config.get(&["spec"]).and_then(|spec| serde_json::from_str(spec.json()).ok());
        self.named.extend(spec.iter().flat_map(carried_by));
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
        let count = self.kept.len();
        if count > 0 {
            tracing::warn!(%cluster, count, "copies that cannot be seen in a mailbox are carried on from there");
        }
        count > 0
    }

    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// A copy is seen: from now on it is carried because it stands there.
    pub(super) fn sees(&mut self, carried: &Carried) {
        self.kept.remove(carried);
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
        self.kept.len() != before
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
