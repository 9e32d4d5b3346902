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
    emptying: BTreeSet<Key>,
    /// What was otherwise before the write that is made now,
    changing: Vec<Former>,
    /// and before those that are not stored yet, each with its first version.
    unstored: VecDeque<(Version, Former)>,
}

/// What was otherwise before a write, which may still be refused.
#[derive(Debug)]
enum Former {
    Binding(Reference, Key, bool),
    Slice(Reference, Key, bool),
    Emptying(Key, bool),
    Cluster(ClusterId, Box<OfCluster>),
}

/// What a cluster serves of others, and served.
#[derive(Debug, Default)]
struct OfCluster {
    bound: Option<Vec<Arc<Key>>>,
    former: Option<Vec<(Arc<Key>, Version)>>,
    withheld: Option<Vec<(Key, Vec<KindId>)>>,
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
        let reference = reference(binding);
        if note(&mut self.bindings, &reference, &binding.key, is_there) {
            self.changing.push(Former::Binding(reference, binding.key.clone(), !is_there));
        }
    }

    /// Notes a binding that refers to this.
    pub(super) fn note_reference(&mut self, reference: Reference, binding: &Key) {
        if note(&mut self.bindings, &reference, binding, true) {
            self.changing.push(Former::Binding(reference, binding.clone(), false));
        }
    }

    /// Notes a slice; false: it is gone.
    pub(super) fn note_slice(&mut self, slice: &Stored, is_there: bool) {
        let reference = reference(slice);
        if note(&mut self.slices, &reference, &slice.key, is_there) {
            self.changing.push(Former::Slice(reference, slice.key.clone(), !is_there));
        }
    }

    /// A workspace is being emptied from now on; false: it no longer is.
    pub(super) fn note_emptying(&mut self, workspace: &Key, is_emptied: bool) {
        let changed = if is_emptied {
            self.emptying.insert(workspace.clone())
        } else {
            self.emptying.remove(workspace)
        };
        if changed {
            self.changing.push(Former::Emptying(workspace.clone(), !is_emptied));
        }
    }

    /// The workspaces that are being emptied.
    pub(super) fn emptying(&self) -> Vec<Key> {
        self.emptying.iter().cloned().collect()
    }

    fn note_cluster(&mut self, cluster: &ClusterId) {
        let was = OfCluster {
            bound: self.bound.get(cluster).cloned(),
            former: self.former.get(cluster).cloned(),
            withheld: self.withheld.get(cluster).cloned(),
        };
        self.changing.push(Former::Cluster(cluster.clone(), Box::new(was)));
    }

    /// A write is made, of which this is the first version; none: nothing was written. All up to the other is stored.
    pub(super) fn written(&mut self, first: Option<Version>, stored: Version) {
        let changing = std::mem::take(&mut self.changing);
        if let Some(first) = first {
            self.unstored.extend(changing.into_iter().map(|one| (first, one)));
        }
        while self.unstored.front().is_some_and(|(first, _)| *first <= stored) {
            self.unstored.pop_front();
        }
    }

    /// What was written from this version on could not be stored, and never was.
    pub(super) fn take_back(&mut self, from: Version) {
        while let Some((_, former)) = self.unstored.pop_back_if(|(first, _)| *first >= from) {
            match former {
                Former::Binding(reference, key, was) => drop(note(&mut self.bindings, &reference, &key, was)),
                Former::Slice(reference, key, was) => drop(note(&mut self.slices, &reference, &key, was)),
                Former::Emptying(key, true) => drop(self.emptying.insert(key)),
                Former::Emptying(key, false) => drop(self.emptying.remove(&key)),
                Former::Cluster(cluster, was) => self.put_back(&cluster, *was),
            }
        }
    }

    fn put_back(&mut self, cluster: &ClusterId, was: OfCluster) {
        let remembered = was.former.as_ref().map_or(0, Vec::len);
        put(&mut self.bound, cluster, was.bound);
        put(&mut self.former, cluster, was.former);
        put(&mut self.withheld, cluster, was.withheld);
        // What is forgotten first is that of the front.
        let mut noted = self.former_order.iter().filter(|one| *one == cluster).count();
        while noted > remembered
            && let Some(last) = self.former_order.iter().rposition(|one| one == cluster)
        {
            self.former_order.remove(last);
            noted -= 1;
        }
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
        if !self.bound.get(cluster).is_some_and(|bound| bound.contains(&export)) {
            self.note_cluster(cluster);
            self.bound.entry(cluster.clone()).or_default().push(export);
        }
    }

    /// A cluster serves all of an export's kinds but these.
    pub(super) fn withhold(&mut self, cluster: &ClusterId, export: &Key, kinds: Vec<KindId>) {
        let known = self.withheld.get(cluster).into_iter().flatten().find(|(of, _)| of == export);
        if known.map_or(&[][..], |(_, known)| known) == kinds {
            return;
        }
        self.note_cluster(cluster);
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
        let Some(found) =
            self.bound.get(cluster).and_then(|bound| bound.iter().position(|one| **one == *export))
        else {
            return;
        };
        self.note_cluster(cluster);
        let Some(bound) = self.bound.get_mut(cluster) else { return };
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

/// Whether that changed anything.
fn note(
    all: &mut BTreeMap<Reference, BTreeSet<Key>>,
    reference: &Reference,
    key: &Key,
    is_there: bool,
) -> bool {
    if is_there {
        return all.entry(reference.clone()).or_default().insert(key.clone());
    }
    let Some(keys) = all.get_mut(reference) else { return false };
    let was_there = keys.remove(key);
    if keys.is_empty() {
        all.remove(reference);
    }
    was_there
}

fn put<T>(all: &mut HashMap<ClusterId, T>, cluster: &ClusterId, was: Option<T>) {
    match was {
        Some(was) => all.insert(cluster.clone(), was),
        None => all.remove(cluster),
    };
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
    fn what_could_not_be_stored_never_was() {
        let mut index = Index::default();
        let (cluster, edge, other) = (ClusterId::new("mailbox"), export("edge"), export("other"));
        let boats = KindId::new("sea.example", "boats");
        index.bind(&cluster, &edge);
        index.withhold(&cluster, &edge, vec![boats.clone()]);
        index.note_emptying(&edge, true);
        index.written(Some(Version(2)), Version(1));
        let before = format!("{:?}", (&index.bound, &index.former, &index.withheld, &index.emptying));
        index.unbind(&cluster, &edge, Version(4));
        index.bind(&cluster, &other);
        index.note_emptying(&edge, false);
        index.note_reference((Name::new("root"), Name::new("edge")), &other);
        index.written(Some(Version(3)), Version(2));
        index.unbind(&cluster, &other, Version(6));
        index.written(Some(Version(5)), Version(2));
        index.take_back(Version(3));
        assert_eq!(format!("{:?}", (&index.bound, &index.former, &index.withheld, &index.emptying)), before);
        assert!(index.former_order.is_empty() && index.bindings.is_empty() && index.unstored.is_empty());
        index.unbind(&cluster, &edge, Version(8));
        index.written(Some(Version(7)), Version(8));
        index.take_back(Version(9));
        assert!(!index.was_bound(&cluster, &edge, Version(9)), "what is stored stays");
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
