//! What the APIBindings of kcp say of the kinds that a place shows. The store reads them itself, from the feeds of
//! bindings at the same place, so that nobody can forget to tell it, or tell it too late.
//!
//! A view shows a workspace's objects of a kind because a binding there brings the kind, or accepts a claim on it.
//! So what a view does not show is known to be absent only where a binding says that it would be shown, and only
//! while that word holds: the bindings of the endpoint must be known, and read at least as far as the list that
//! lacked the object. A list can be answered before the binding that explains it has been heard.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use mailboat_object::json::Raw;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Version};
use mailboat_object::object::Object;

use super::by_cluster::ByCluster;
use super::engage::UNKNOWN;
use super::track::{Strength, Track};
use super::{By, Nature, Store};
use crate::interest::{EndpointId, FeedId, PlaceId};
use crate::seen::{Doubt, News};

/// What a binding does for a kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Tie {
    /// It brings the kind, under this `identityHash` if it names one.
    Bound(Option<Name>),
    /// It lets the view see objects of a kind that comes from elsewhere.
    Claimed,
}

/// What a binding does for each kind that it speaks of.
type Ties = BTreeMap<KindId, Tie>;

/// One binding, as last read.
pub(super) struct Said {
    version: Version,
    /// The list that showed it last, of the feed at this endpoint.
    list: u32,
    endpoint: EndpointId,
    ties: Arc<Ties>,
    /// The binding itself, while another view answers for it that is not tied to it: this one may turn out to be, and then
    /// need not be listed for what it has shown already.
    aside: Option<Aside>,
}

/// A binding that is not on the shelf yet. All of it: whoever hears of it first compares it with what is wanted there, and
/// would have to ask the server for what was cut off.
#[derive(Clone)]
pub(super) struct Aside {
    pub(super) whole: Arc<Object>,
    /// As much of it as is kept on the shelf.
    pub(super) kept: Arc<Object>,
}

/// All bindings that a place shows.
#[derive(Default)]
pub(super) struct Bindings {
    said: ByCluster<BTreeMap<Name, Said>>,
    /// Bindings of many workspaces mostly say the same, which is kept once.
    shapes: BTreeSet<Arc<Ties>>,
    /// What was read last, in the words in which it was said: bindings of many kinds are long, and mostly say what one of the
    /// last few said.
    recent: VecDeque<(String, Arc<Ties>)>,
    /// Some binding lets this place see all others of its workspace, or is about to. Places where none does set nothing aside
    /// but of the cluster that they showed last, whose next binding may be the first that does.
    claimed: bool,
    shown_last: Option<ClusterId>,
}

/// kcp's kind of bindings.
pub(super) fn is_bindings(kind: &KindId) -> bool {
    kind.group() == "apis.kcp.io" && kind.resource() == "apibindings"
}

pub(super) fn kind_of_bindings() -> KindId {
    KindId::new("apis.kcp.io", "apibindings")
}

/// So many different bindings a mailbox may have, and some more.
const RECENT: usize = 16;

impl Bindings {
    /// What a binding does for each kind, as far as it counts for a place of this nature.
    fn read(&mut self, binding: &Object, nature: &Nature) -> Arc<Ties> {
        let said = words(binding);
        if let Some((_, known)) = self.recent.iter().find(|(known, _)| *known == said) {
            return Arc::clone(known);
        }
        let mut ties = ties(binding);
        // A claim lets a view see what a workspace has; the workspace itself has it without, before and after.
        if *nature != Nature::View {
            ties.retain(|_, tie| matches!(tie, Tie::Bound(_)));
        }
        let ties = self.shape(ties);
        self.recent.truncate(RECENT - 1);
        self.recent.push_front((said, Arc::clone(&ties)));
        ties
    }

    fn shape(&mut self, ties: Ties) -> Arc<Ties> {
        if let Some(known) = self.shapes.get(&ties) {
            return Arc::clone(known);
        }
        self.shapes.retain(|shape| Arc::strong_count(shape) > 1);
        let ties = Arc::new(ties);
        self.shapes.insert(Arc::clone(&ties));
        ties
    }

    /// What ties a kind of a cluster, and at which version of its binding. A binding that brings the kind says
    /// more than one that only claims it.
    fn tie(&self, cluster: &ClusterId, kind: &KindId) -> Option<(Tie, Version)> {
        let said = self.said.get(cluster)?.values();
        let ties = said.filter_map(|said| Some((said.ties.get(kind)?.clone(), said.version)));
        ties.min_by(|(one, _), (other, _)| one.cmp(other))
    }

    pub(super) fn forget(&mut self, cluster: &ClusterId) {
        self.said.remove(cluster);
    }

    /// Whether a cluster has any.
    pub(super) fn any_of(&self, cluster: &ClusterId) -> bool {
        self.said.contains(cluster)
    }

    /// How much is kept of them.
    pub(super) fn len(&self) -> usize {
        self.said.len() + self.shapes.len()
    }

    /// Takes the bindings of a cluster that were kept aside, each with the list that showed it last; none if that is not all
    /// that was shown of them.
    pub(super) fn take_aside(&mut self, cluster: &ClusterId) -> Option<Vec<(Aside, u32)>> {
        let said = self.said.get_mut(cluster)?.values_mut();
        // Each is taken, also where one before it is missing.
        let aside: Vec<_> = said.map(|said| Some((said.aside.take()?, said.list))).collect();
        aside.into_iter().collect()
    }
}

impl Store {
    /// A binding as a list or an event shows it, whole, and as much of it as is kept.
    pub(super) fn heed(&mut self, id: &FeedId, shown: &Aside, by: By, out: &mut Vec<News>) {
        let binding = &shown.whole;
        let list = self.feed(id).map_or(0, |feed| feed.list);
        let Some(place) = self.places.get_mut(&id.place) else { return };
        let Key { cluster, name, .. } = &binding.key;
        let before = place.bindings.said.get(cluster).and_then(|bindings| bindings.get(name));
        let (known, late) = (before.map(|said| Arc::clone(&said.ties)), before.map(|said| said.version));
        if by == By::Event && late.is_some_and(|known| binding.version < known) {
            return;
        }
        let ties = place.bindings.read(binding, &place.nature);
        place.bindings.claimed = place.bindings.claimed || claims_bindings(binding);
        let said = Said {
            version: binding.version,
            list,
            endpoint: id.endpoint.clone(),
            ties: Arc::clone(&ties),
            aside: Some(shown.clone()),
        };
        place.bindings.said.of(cluster, BTreeMap::new).insert(name.clone(), said);
        self.settle_down(&id.place, cluster, &id.endpoint, out);
        let went_back = late.is_some_and(|known| binding.version < known);
        if known.as_ref() != Some(&ties) || went_back {
            let kinds: BTreeSet<&KindId> =
                known.iter().flat_map(|known| known.keys()).chain(ties.keys()).collect();
            for kind in kinds {
                self.bind_as_said(&id.place, cluster, kind, binding.version, out);
            }
        }
    }

    /// A binding is on the shelf, or another view is: it stays aside only where that one is not tied to its cluster.
    pub(super) fn put_away(&mut self, id: &FeedId, key: &Key, shelved: bool) {
        let covering = self.covering(&key.cluster, &key.kind);
        let tied = |track: &Track| track.whole.is_some() || track.strength(&key.cluster) > Strength::Unbound;
        let aside = !shelved && covering.is_some_and(|(_, track)| !tied(track));
        let Some(bindings) = self.places.get_mut(&id.place).map(|place| &mut place.bindings) else { return };
        if !bindings.claimed && bindings.shown_last.as_ref() != Some(&key.cluster) {
            let before = bindings.shown_last.replace(key.cluster.clone());
            before.and_then(|before| bindings.take_aside(&before));
        }
        let said = bindings.said.get_mut(&key.cluster).and_then(|said| said.get_mut(&key.name));
        if let Some(said) = said.filter(|_| !aside) {
            said.aside = None;
        }
    }

    /// A binding is gone, as of this version, or nothing is known of it any more ([`UNKNOWN`]).
    pub(super) fn unheed(&mut self, place: &PlaceId, key: &Key, at: Version, out: &mut Vec<News>) {
        let Some(bindings) = self.places.get_mut(place).map(|place| &mut place.bindings) else { return };
        let Some(of_cluster) = bindings.said.get_mut(&key.cluster) else { return };
        if of_cluster.get(&key.name).is_none_or(|said| at < said.version) {
            return;
        }
        let Some(said) = of_cluster.remove(&key.name) else { return };
        let last = of_cluster.is_empty();
        if last {
            bindings.said.remove(&key.cluster);
        }
        for kind in said.ties.keys() {
            self.bind_as_said(place, &key.cluster, kind, at, out);
        }
        if last {
            self.leaves(place, &key.cluster, out);
        }
    }

    /// A list of bindings was read to its end: those that it did not show are gone.
    pub(super) fn heed_end_of_list(&mut self, id: &FeedId, out: &mut Vec<News>) {
        let Some((list, version)) = self.feed(id).map(|feed| (feed.list, feed.version)) else { return };
        let Some(place) = self.places.get(&id.place) else { return };
        let missed = |said: &Said| said.endpoint == id.endpoint && said.list != list;
        let any_missed = |_: &ClusterId, said: &BTreeMap<Name, Said>| said.values().any(missed);
        let gone: Vec<Key> = place
            .bindings
            .said
            .in_order(any_missed)
            .into_iter()
            .flat_map(|(cluster, said)| said.iter().map(move |(name, said)| (cluster, name, said)))
            .filter(|(_, _, said)| missed(said))
            .map(|(cluster, name, _)| Key {
                cluster: cluster.clone(),
                kind: id.kind.clone(),
                namespace: Name::EMPTY,
                name: name.clone(),
            })
            .collect();
        for key in gone {
            let known = self.places.get(&id.place).and_then(|place| place.bindings.said.get(&key.cluster));
            // A server that went back in time does not say when.
            let lost = known.and_then(|said| said.get(&key.name)).is_some_and(|said| version < said.version);
            self.unheed(&id.place, &key, if lost { UNKNOWN } else { version }, out);
        }
    }

    /// A kind begins to be followed: what bindings said of it before counts.
    pub(super) fn heed_all(&mut self, place: &PlaceId, kind: &KindId, out: &mut Vec<News>) {
        let Some(bindings) = self.places.get(place).map(|place| &place.bindings) else { return };
        let tied: Vec<ClusterId> = bindings.said.clusters(|cluster, _| bindings.tie(cluster, kind).is_some());
        for cluster in tied {
            self.bind_as_said(place, &cluster, kind, UNKNOWN, out);
        }
    }

    /// What ties a kind of a cluster to a place, as its bindings say.
    pub(super) fn tie(&self, place: &PlaceId, cluster: &ClusterId, kind: &KindId) -> Option<(Tie, Version)> {
        self.places.get(place)?.bindings.tie(cluster, kind)
    }

    fn bind_as_said(
        &mut self,
        place: &PlaceId,
        cluster: &ClusterId,
        kind: &KindId,
        at: Version,
        out: &mut Vec<News>,
    ) {
        if self.track(place, kind).is_some_and(|track| track.followed) {
            let tie = self.tie(place, cluster, kind);
            self.bind(place, cluster, kind, tie, at, out);
        }
    }

    /// At which endpoints of a view the bindings do not vouch for what is shown of a kind, and why.
    pub(super) fn unvouched(&self, place: &PlaceId, kind: &KindId) -> BTreeMap<EndpointId, Doubt> {
        let Some(track) = self.track(place, kind).filter(|track| track.whole.is_none()) else {
            return BTreeMap::new();
        };
        if is_bindings(kind) {
            return BTreeMap::new();
        }
        let bindings = self.track(place, &kind_of_bindings()).filter(|bindings| bindings.followed);
        let why = |(endpoint, feed): (&EndpointId, &super::Feed)| {
            let doubt = match bindings.map(|bindings| bindings.feeds.get(endpoint)) {
                None => Doubt::NotEngaged,
                Some(Some(bindings)) if bindings.vouches_for(feed.listed_at) => return None,
                Some(_) => Doubt::BindingsBehind,
            };
            Some((endpoint.clone(), doubt))
        };
        track.feeds.iter().filter_map(why).collect()
    }

    /// Has the bindings of an endpoint listed anew if the list of some kind there is newer than they are.
    pub(super) fn catch_up_bindings(&mut self, place: &PlaceId, endpoint: &EndpointId) {
        let Some(bindings) =
            self.track(place, &kind_of_bindings()).and_then(|track| track.feeds.get(endpoint))
        else {
            return;
        };
        let (version, before) = (bindings.version, bindings.list_before);
        let feeds = self.tracks.iter().filter(|(kind, _)| !is_bindings(kind));
        let mut feeds = feeds
            .filter_map(|(_, tracks)| tracks.get(place).filter(|track| track.whole.is_none()))
            .filter_map(|track| track.feeds.get(endpoint));
        // A list that was read before the bindings' own was asked for and is still newer is of a time that the server lost.
        // Answers overtake each other: of the first list since, that cannot be said.
        let behind = feeds.any(|feed| version < feed.listed_at && before <= feed.listed_after);
        let bindings =
            self.track_mut(place, &kind_of_bindings()).and_then(|track| track.feeds.get_mut(endpoint));
        if let Some(bindings) = bindings.filter(|bindings| behind && bindings.is_complete()) {
            bindings.relist = true;
            self.restless = true;
        }
    }
}

/// Whether a binding claims bindings, in force or not: then its view may come to show all of them.
fn claims_bindings(binding: &Object) -> bool {
    let mut claims = binding.get(&CLAIMS).into_iter().flat_map(Raw::elements);
    claims.any(|claim| is_bindings(&kind_of(claim)))
}

/// All in a binding that says what it does for each kind, in its own words.
fn words(binding: &Object) -> String {
    let said = |path: &[&str]| binding.get(path).map_or("", Raw::json);
    let parts = SAYING.map(|path| said(&path));
    format!("{}\n{}", binding.deleting, parts.join("\n"))
}

const CLAIMS: [&str; 2] = ["spec", "permissionClaims"];
const APPLIED: [&str; 2] = ["status", "appliedPermissionClaims"];
const BOUND: [&str; 2] = ["status", "boundResources"];
/// Where a binding says what it does.
const SAYING: [[&str; 2]; 3] = [CLAIMS, APPLIED, BOUND];

/// What a binding does for each kind. One that is being deleted does nothing any more.
fn ties(binding: &Object) -> Ties {
    let mut ties = Ties::new();
    if binding.deleting {
        return ties;
    }
    let entries = |path: &[&str]| binding.get(path).into_iter().flat_map(Raw::elements);
    let refused: Vec<KindId> =
        entries(&CLAIMS).filter(|claim| text(*claim, "state").as_str() != "Accepted").map(kind_of).collect();
    // A rejection is written to `spec` before kcp acts on it and says so in `status`.
    let claims = entries(&APPLIED).map(kind_of);
    ties.extend(claims.filter(|kind| !refused.contains(kind)).map(|kind| (kind, Tie::Claimed)));
    for bound in entries(&BOUND) {
        let identity = bound.get(&["schema", "identityHash"]).and_then(Raw::as_str);
        let identity = identity.filter(|hash| !hash.is_empty()).map(|hash| Name::new(&hash));
        ties.insert(kind_of(bound), Tie::Bound(identity));
    }
    ties
}

/// The kind that a claim or a bound resource is about.
fn kind_of(raw: Raw<'_>) -> KindId {
    KindId::new(&text(raw, "group"), &text(raw, "resource"))
}

fn text(raw: Raw<'_>, member: &str) -> Name {
    raw.member(member).and_then(Raw::as_str).map(|text| Name::new(&text)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use mailboat_object::object::{Keep, Place};
    use serde_json::json;

    use super::*;

    /// A binding to an export with this identity, in a cluster.
    fn binding(cluster: &str, identity: &str, state: &str, deleting: bool) -> Object {
        let mut body = json!({
            "apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIBinding",
            "metadata": { "name": "bind", "uid": cluster, "resourceVersion": "7",
                "annotations": { "kcp.io/cluster": cluster } },
            "spec": { "permissionClaims": [{ "resource": "configmaps", "state": state }] },
            "status": {
                "appliedPermissionClaims": [{ "resource": "configmaps" }],
                "boundResources": [{ "group": "edge", "resource": "things", "schema": { "identityHash": identity } }],
            },
        });
        if deleting {
            body["metadata"]["deletionTimestamp"] = json!("2026-11-18T00:00:00Z");
        }
        let place = (ClusterId::new(cluster), kind_of_bindings());
        Object::decode(body.to_string().as_bytes(), &Place::in_cluster(&place.0, &place.1, "", Keep::Whole))
            .unwrap()
    }

    #[test]
    fn bindings_that_say_the_same_are_read_once_and_none_is_taken_for_another() {
        let mut bindings = Bindings::default();
        let mut read = |binding: &Object| bindings.read(binding, &Nature::View);
        let one = read(&binding("a", "id", "Accepted", false));
        assert_eq!(one.len(), 2, "{one:?}");
        assert!(Arc::ptr_eq(&one, &read(&binding("b", "id", "Accepted", false))));
        assert_eq!(read(&binding("a", "id", "Accepted", true)).len(), 0, "it goes");
        assert_eq!(read(&binding("a", "id", "Rejected", false)).len(), 1, "it lets nobody see");
        for number in 0..2 * RECENT {
            assert_ne!(*read(&binding("a", &number.to_string(), "Accepted", false)), *one);
        }
        assert!(Arc::ptr_eq(&one, &read(&binding("c", "id", "Accepted", false))), "kept once all the same");
        assert!(bindings.recent.len() <= RECENT);
    }
}
