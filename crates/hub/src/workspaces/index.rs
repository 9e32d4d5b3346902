//! Who is bound to what. It is kept as bindings come and go, so that nobody has to look through all workspaces.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use mailboat_machinery::Stored;
use mailboat_object::{ClusterId, Key, KindId, Name, Version};
use serde_json::Value;

/// How many bindings are remembered that are no more. Whoever watches from before that is told by other means.
const FORMER_LIMIT: usize = 10_000;

/// An export as it is referred to: the path or id of its workspace, and its name.
pub(super) type Reference = (Name, Name);

/// Who is bound to what.
#[derive(Debug, Default)]
pub(super) struct Index {
    bindings: BTreeMap<Reference, BTreeSet<Key>>,
    slices: BTreeMap<Reference, BTreeSet<Key>>,
    /// The exports whose kinds a cluster serves.
    bound: HashMap<ClusterId, Vec<Arc<Key>>>,
    /// Those whose kinds it served, each with the last version at which it did.
    former: HashMap<ClusterId, Vec<(Arc<Key>, Version)>>,
    former_order: VecDeque<ClusterId>,
    exports: HashSet<Arc<Key>>,
    /// Kinds of exports that a cluster is bound to and does not serve, because there they are another's.
    withheld: HashMap<ClusterId, Vec<(Key, Vec<KindId>)>>,
    /// Workspaces that are being emptied.
    pub(super) emptying: BTreeSet<Key>,
}

/// What a binding or a slice refers to.
pub(super) fn reference(of: &Stored) -> Reference {
    let spec = &of.body()["spec"];
    let export = if spec["reference"].is_object() { &spec["reference"]["export"] } else { &spec["export"] };
    let text = |value: &Value| Name::new(value.as_str().unwrap_or_default());
    let path = text(&export["path"]);
    (if path.is_empty() { of.key.cluster.0.clone() } else { path }, text(&export["name"]))
}

impl Index {
    /// Notes a binding; false: it is gone.
    pub(super) fn note_binding(&mut self, binding: &Stored, is_there: bool) {
        note(&mut self.bindings, binding, is_there);
    }

    /// Notes a binding that refers to this.
    pub(super) fn note_reference(&mut self, reference: Reference, binding: &Key) {
        self.bindings.entry(reference).or_default().insert(binding.clone());
    }

    /// Notes a slice; false: it is gone.
    pub(super) fn note_slice(&mut self, slice: &Stored, is_there: bool) {
        note(&mut self.slices, slice, is_there);
    }

    /// The bindings that refer to an export under any of these names.
    pub(super) fn bindings_of(&self, references: &[Reference]) -> Vec<Key> {
        keys(&self.bindings, references)
    }

    /// Whether anybody refers to an export under any of these names.
    pub(super) fn has_bindings(&self, references: &[Reference]) -> bool {
        references.iter().any(|reference| self.bindings.contains_key(reference))
    }

    /// The slices that refer to an export under any of these names.
    pub(super) fn slices_of(&self, references: &[Reference]) -> Vec<Key> {
        keys(&self.slices, references)
    }

    /// A cluster serves an export's kinds from now on.
    pub(super) fn bind(&mut self, cluster: &ClusterId, export: &Key) {
        let known = self.exports.get(export).map(Arc::clone);
        let export = known.unwrap_or_else(|| Arc::new(export.clone()));
        self.exports.insert(Arc::clone(&export));
        let bound = self.bound.entry(cluster.clone()).or_default();
        if !bound.contains(&export) {
            bound.push(export);
        }
    }

    /// A cluster serves all of an export's kinds but these.
    pub(super) fn withhold(&mut self, cluster: &ClusterId, export: &Key, kinds: Vec<KindId>) {
        if kinds.is_empty() && !self.withheld.contains_key(cluster) {
            return;
        }
        let withheld = self.withheld.entry(cluster.clone()).or_default();
        withheld.retain(|(of, _)| of != export);
        if !kinds.is_empty() {
            withheld.push((export.clone(), kinds));
        } else if withheld.is_empty() {
            self.withheld.remove(cluster);
        }
    }

    /// Whether a kind of an export is another's in a cluster.
    pub(super) fn is_withheld(&self, cluster: &ClusterId, export: &Key, kind: &KindId) -> bool {
        let withheld = self.withheld.get(cluster).into_iter().flatten();
        withheld.filter(|(of, _)| of == export).any(|(_, kinds)| kinds.contains(kind))
    }

    /// A cluster serves an export's kinds no more.
    pub(super) fn unbind(&mut self, cluster: &ClusterId, export: &Key, at: Version) {
        self.withhold(cluster, export, Vec::new());
        let Some(bound) = self.bound.get_mut(cluster) else { return };
        let Some(found) = bound.iter().position(|one| **one == *export) else { return };
        let export = bound.swap_remove(found);
        if bound.is_empty() {
            self.bound.remove(cluster);
        }
        self.former.entry(cluster.clone()).or_default().push((export, at));
        self.former_order.push_back(cluster.clone());
        if self.former_order.len() > FORMER_LIMIT
            && let Some(oldest) = self.former_order.pop_front()
            && let Some(former) = self.former.get_mut(&oldest)
        {
            former.remove(0);
            if former.is_empty() {
                self.former.remove(&oldest);
            }
        }
    }

    /// A cluster is gone, and with it all that it served.
    pub(super) fn forget(&mut self, cluster: &ClusterId, at: Version) {
        for export in self.bound.get(cluster).cloned().unwrap_or_default() {
            self.unbind(cluster, &export, at);
        }
    }

    /// Whether a cluster serves an export's kinds, or did, as far as that is remembered.
    pub(super) fn was_ever_bound(&self, cluster: &ClusterId, export: &Key) -> bool {
        self.was_bound(cluster, export, Version(0))
    }

    /// Whether a cluster served an export's kinds at a version.
    pub(super) fn was_bound(&self, cluster: &ClusterId, export: &Key, at: Version) -> bool {
        let now = self.bound.get(cluster).into_iter().flatten().any(|one| **one == *export);
        now || self
            .former
            .get(cluster)
            .into_iter()
            .flatten()
            .any(|(one, until)| **one == *export && at <= *until)
    }
}

fn note(all: &mut BTreeMap<Reference, BTreeSet<Key>>, object: &Stored, is_there: bool) {
    let reference = reference(object);
    if is_there {
        all.entry(reference).or_default().insert(object.key.clone());
    } else if let Some(keys) = all.get_mut(&reference) {
        keys.remove(&object.key);
        if keys.is_empty() {
            all.remove(&reference);
        }
    }
}

fn keys(all: &BTreeMap<Reference, BTreeSet<Key>>, references: &[Reference]) -> Vec<Key> {
    references.iter().filter_map(|reference| all.get(reference)).flatten().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(name: &str) -> Key {
        let kind = KindId::new("apis.kcp.io", "apiexports");
        Key { cluster: ClusterId::new("espw"), kind, namespace: Name::EMPTY, name: Name::new(name) }
    }

    #[test]
    fn what_was_bound_is_seen_up_to_its_end() {
        let mut index = Index::default();
        let (cluster, edge, other) = (ClusterId::new("mailbox"), export("edge"), export("other"));
        index.bind(&cluster, &edge);
        index.bind(&cluster, &other);
        assert!(index.was_bound(&cluster, &edge, Version(5)));
        index.unbind(&cluster, &edge, Version(9));
        assert!(
            index.was_bound(&cluster, &edge, Version(9)) && !index.was_bound(&cluster, &edge, Version(10))
        );
        assert!(index.was_bound(&cluster, &other, Version(10)));
        index.forget(&cluster, Version(12));
        assert!(
            !index.was_bound(&cluster, &other, Version(13)) && index.was_bound(&cluster, &other, Version(12))
        );
    }

    #[test]
    fn a_kind_is_withheld_until_it_is_free_or_nobody_is_bound() {
        let mut index = Index::default();
        let (cluster, edge, boats) =
            (ClusterId::new("mailbox"), export("edge"), KindId::new("sea.example", "boats"));
        index.bind(&cluster, &edge);
        for free in [true, false] {
            index.withhold(&cluster, &edge, vec![boats.clone()]);
            assert!(index.is_withheld(&cluster, &edge, &boats));
            assert!(!index.is_withheld(&cluster, &export("other"), &boats));
            if free {
                index.withhold(&cluster, &edge, Vec::new());
            } else {
                index.unbind(&cluster, &edge, Version(9));
            }
            assert!(!index.is_withheld(&cluster, &edge, &boats) && index.withheld.is_empty());
        }
    }

    #[test]
    fn what_is_remembered_of_the_past_is_bounded() {
        let mut index = Index::default();
        for number in 0..FORMER_LIMIT + 10 {
            let cluster = ClusterId::new(&format!("c{}", number % 100));
            index.bind(&cluster, &export("edge"));
            index.unbind(&cluster, &export("edge"), Version(number as u64));
        }
        assert_eq!(index.former.values().map(Vec::len).sum::<usize>(), FORMER_LIMIT);
    }
}
