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
    /// What a cluster serves of others.
    bound: HashMap<ClusterId, Vec<Served>>,
    /// What it served, each with the last version at which it did.
    former: HashMap<ClusterId, Vec<(Served, Version)>>,
    former_order: VecDeque<ClusterId>,
    exports: HashSet<Arc<Key>>,
    /// Lists of kinds: a thousand workspaces share one.
    kinds: HashSet<Arc<Vec<KindId>>>,
    /// Workspaces that are being emptied.
    emptying: BTreeSet<Key>,
    /// What was otherwise before the write that is made now,
    changing: Vec<Former>,
    /// and before those that are not stored yet, each with its first version.
    unstored: VecDeque<(Version, Former)>,
}

/// Kinds of an export that a cluster serves by one of its bindings. Two bindings to one export are told apart: only one of
/// them has a kind, and the other takes nothing away when it goes.
#[derive(Clone, Debug)]
struct Served {
    binding: Name,
    export: Arc<Key>,
    /// None of them, if all are another's.
    kinds: Arc<Vec<KindId>>,
    /// From which version on. What stood there under the same name before was another's.
    since: Version,
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
    bound: Option<Vec<Served>>,
    former: Option<Vec<(Served, Version)>>,
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
        let was =
            OfCluster { bound: self.bound.get(cluster).cloned(), former: self.former.get(cluster).cloned() };
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

    /// A cluster serves these kinds of an export by a binding, from now on and until it is unbound or another has them; and
    /// does not serve those that are withheld, because there they are another's.
    pub(super) fn bind(
        &mut self,
        binding: &Key,
        export: &Key,
        kinds: &[KindId],
        withheld: &[KindId],
        at: Version,
    ) {
        let cluster = &binding.cluster;
        let known = self.bound.get(cluster).map_or(&[][..], Vec::as_slice);
        let by_it = |served: &&Served| served.binding == binding.name && *served.export == *export;
        let is_known = known.iter().any(|served| by_it(&served));
        let has = |kind: &KindId| known.iter().filter(by_it).any(|served| served.kinds.contains(kind));
        let fresh: Vec<KindId> = kinds.iter().filter(|kind| !has(kind)).cloned().collect();
        let lost: Vec<KindId> = withheld.iter().filter(|kind| has(kind)).cloned().collect();
        if is_known && fresh.is_empty() && lost.is_empty() {
            return;
        }
        self.note_cluster(cluster);
        // Whatever has a kind now, nobody else has it.
        self.end(cluster, at, |served, kind| {
            fresh.contains(kind)
                || (lost.contains(kind) && served.binding == binding.name && *served.export == *export)
        });
        if !is_known || !fresh.is_empty() {
            let export = share(&mut self.exports, export.clone());
            let kinds = share(&mut self.kinds, fresh);
            let served = Served { binding: binding.name.clone(), export, kinds, since: at };
            self.bound.entry(cluster.clone()).or_default().push(served);
        }
    }

    /// A cluster serves nothing more by a binding.
    pub(super) fn unbind(&mut self, binding: &Key, at: Version) {
        self.end_all(&binding.cluster, at, |served| served.binding == binding.name);
    }

    /// A cluster is gone, and with it all that it served.
    pub(super) fn forget(&mut self, cluster: &ClusterId, at: Version) {
        self.end_all(cluster, at, |_| true);
    }

    /// What is bound now was bound before anything that is remembered: nobody can ask for what was before the server began.
    pub(super) fn was_always_so(&mut self) {
        for served in self.bound.values_mut().flatten() {
            served.since = Version(0);
        }
    }

    /// Some kinds are served no more.
    fn end(&mut self, cluster: &ClusterId, at: Version, ends: impl Fn(&Served, &KindId) -> bool) {
        let mut ended = Vec::new();
        for served in self.bound.get_mut(cluster).into_iter().flatten() {
            let (gone, left): (Vec<KindId>, Vec<KindId>) =
                served.kinds.iter().cloned().partition(|kind| ends(served, kind));
            if !gone.is_empty() {
                ended.push(Served { kinds: Arc::new(gone), ..served.clone() });
                served.kinds = Arc::new(left);
            }
        }
        self.remember(cluster, ended, at);
    }

    /// All that some bindings serve is served no more.
    fn end_all(&mut self, cluster: &ClusterId, at: Version, ends: impl Fn(&Served) -> bool) {
        if !self.bound.get(cluster).is_some_and(|bound| bound.iter().any(&ends)) {
            return;
        }
        self.note_cluster(cluster);
        let Some(bound) = self.bound.get_mut(cluster) else { return };
        let ended = bound.extract_if(.., |served| ends(served)).collect();
        if bound.is_empty() {
            self.bound.remove(cluster);
        }
        self.remember(cluster, ended, at);
    }

    fn remember(&mut self, cluster: &ClusterId, ended: Vec<Served>, at: Version) {
        for served in ended {
            self.former.entry(cluster.clone()).or_default().push((served, at));
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
    }

    /// Whether a cluster is bound to an export, or was, as far as that is remembered.
    pub(super) fn was_ever_bound(&self, cluster: &ClusterId, export: &Key) -> bool {
        let former = || self.former.get(cluster).into_iter().flatten();
        self.is_bound(cluster, export) || former().any(|(served, _)| *served.export == *export)
    }

    /// Whether a cluster is bound to an export.
    pub(super) fn is_bound(&self, cluster: &ClusterId, export: &Key) -> bool {
        self.bound.get(cluster).into_iter().flatten().any(|served| *served.export == *export)
    }

    /// Whether what stood in a cluster at a version under the name of an export's kind was of that export.
    pub(super) fn was_served(&self, cluster: &ClusterId, export: &Key, kind: &KindId, at: Version) -> bool {
        let is =
            |served: &Served| *served.export == *export && served.since <= at && served.kinds.contains(kind);
        let former = || self.former.get(cluster).into_iter().flatten();
        self.bound.get(cluster).into_iter().flatten().any(is)
            || former().any(|(served, until)| at <= *until && is(served))
    }
}

/// The same value as others have, if others have it. What nobody has any more is forgotten as it grows.
fn share<T: Eq + std::hash::Hash>(all: &mut HashSet<Arc<T>>, value: T) -> Arc<T> {
    if let Some(known) = all.get(&value) {
        return Arc::clone(known);
    }
    if all.len() >= 64 && all.len().is_power_of_two() {
        all.retain(|known| Arc::strong_count(known) > 1);
    }
    let value = Arc::new(value);
    all.insert(Arc::clone(&value));
    value
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

    fn boats() -> KindId {
        KindId::new("sea.example", "boats")
    }

    fn binding(name: &str) -> Key {
        Key {
            cluster: ClusterId::new("mailbox"),
            kind: super::super::binding::kind(),
            namespace: Name::EMPTY,
            name: Name::new(name),
        }
    }

    #[test]
    fn what_was_bound_is_seen_from_its_beginning_to_its_end() {
        let mut index = Index::default();
        let (one, two) = (binding("one"), binding("two"));
        let (cluster, edge, other) = (one.cluster.clone(), export("edge"), export("other"));
        let ships = KindId::new("sea.example", "ships");
        index.bind(&one, &edge, &[boats()], &[], Version(3));
        index.bind(&two, &other, std::slice::from_ref(&ships), &[], Version(4));
        assert!(index.was_served(&cluster, &edge, &boats(), Version(3)));
        assert!(!index.was_served(&cluster, &edge, &boats(), Version(2)), "those were another's");
        assert!(!index.was_served(&cluster, &edge, &ships, Version(5)));
        index.unbind(&one, Version(9));
        for (at, seen) in [(2, false), (3, true), (9, true), (10, false)] {
            assert_eq!(index.was_served(&cluster, &edge, &boats(), Version(at)), seen, "{at}");
        }
        assert!(index.was_ever_bound(&cluster, &edge) && !index.is_bound(&cluster, &edge));
        assert!(index.was_served(&cluster, &other, &ships, Version(10)));
        index.forget(&cluster, Version(12));
        for (at, seen) in [(12, true), (13, false)] {
            assert_eq!(index.was_served(&cluster, &other, &ships, Version(at)), seen, "{at}");
        }
    }

    #[test]
    fn of_two_bindings_to_one_export_the_second_takes_nothing_away() {
        let mut index = Index::default();
        let (one, two) = (binding("one"), binding("two"));
        let (cluster, edge) = (one.cluster.clone(), export("edge"));
        index.bind(&one, &edge, &[boats()], &[], Version(3));
        index.bind(&two, &edge, &[], &[boats()], Version(5));
        let seen = |index: &Index, at| index.was_served(&cluster, &edge, &boats(), Version(at));
        assert!(seen(&index, 6));
        index.unbind(&two, Version(7));
        assert!(seen(&index, 8) && index.is_bound(&cluster, &edge));
        index.bind(&two, &edge, &[], &[boats()], Version(9));
        index.unbind(&one, Version(10));
        assert!(!seen(&index, 11), "nobody serves them");
        index.bind(&two, &edge, &[boats()], &[], Version(12));
        assert!(seen(&index, 10) && !seen(&index, 11) && seen(&index, 12));
    }

    #[test]
    fn what_comes_to_an_export_later_is_seen_from_then_on_and_the_rest_as_before() {
        let mut index = Index::default();
        let one = binding("one");
        let (cluster, edge, ships) =
            (one.cluster.clone(), export("edge"), KindId::new("sea.example", "ships"));
        index.bind(&one, &edge, &[boats()], &[], Version(3));
        index.bind(&one, &edge, &[boats(), ships.clone()], &[], Version(7));
        assert!(index.was_served(&cluster, &edge, &boats(), Version(4)));
        assert!(!index.was_served(&cluster, &edge, &ships, Version(6)));
        assert!(index.was_served(&cluster, &edge, &ships, Version(7)));
        // Offered no more, and then again: it was served all the time.
        index.bind(&one, &edge, std::slice::from_ref(&ships), &[], Version(8));
        index.bind(&one, &edge, &[boats(), ships], &[], Version(9));
        assert!((3..12).all(|at| index.was_served(&cluster, &edge, &boats(), Version(at))));
        assert!(index.former.is_empty() && index.bound[&cluster].len() == 2, "{index:?}");
        index.was_always_so();
        assert!(index.was_served(&cluster, &edge, &boats(), Version(0)));
    }

    #[test]
    fn what_could_not_be_stored_never_was() {
        let mut index = Index::default();
        let (one, two) = (binding("one"), binding("two"));
        let (cluster, edge, other) = (one.cluster.clone(), export("edge"), export("other"));
        index.bind(&one, &edge, &[boats()], &[], Version(2));
        index.note_emptying(&edge, true);
        index.written(Some(Version(2)), Version(1));
        let before = format!("{:?}", (&index.bound, &index.former, &index.emptying));
        index.unbind(&one, Version(4));
        index.bind(&two, &other, &[boats()], &[], Version(4));
        index.note_emptying(&edge, false);
        index.note_reference((Name::new("root"), Name::new("edge")), &other);
        index.written(Some(Version(3)), Version(2));
        index.unbind(&two, Version(6));
        index.written(Some(Version(5)), Version(2));
        index.take_back(Version(3));
        assert_eq!(format!("{:?}", (&index.bound, &index.former, &index.emptying)), before);
        assert!(index.former_order.is_empty() && index.bindings.is_empty() && index.unstored.is_empty());
        index.unbind(&one, Version(8));
        index.written(Some(Version(7)), Version(8));
        index.take_back(Version(9));
        assert!(!index.was_served(&cluster, &edge, &boats(), Version(9)), "what is stored stays");
    }

    #[test]
    fn what_is_remembered_of_the_past_is_bounded() {
        let mut index = Index::default();
        for number in 0..FORMER_LIMIT + 10 {
            let of = Key { cluster: ClusterId::new(&format!("c{}", number % 100)), ..binding("one") };
            let at = Version(number as u64);
            index.bind(&of, &export(&format!("edge{number}")), &[boats()], &[], at);
            index.unbind(&of, at);
        }
        assert_eq!(index.former.values().map(Vec::len).sum::<usize>(), FORMER_LIMIT);
        assert!(index.exports.len() <= 2 * FORMER_LIMIT && index.kinds.len() == 1);
    }
}
