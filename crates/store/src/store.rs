//! What is known: the objects, and for each place and kind how much was read of it.
//!
//! A key is covered by one place: the cluster's own if that follows the kind, otherwise a view. What the
//! covering place shows is on one *shelf* per (cluster, kind); how far it was read is on one *track* per
//! (place, kind), with one *feed* per endpoint. An answer is made from both.

mod bindings;
mod by_cluster;
mod deletions;
mod engage;
mod entries;
mod entry;
mod intake;
mod past;
mod places;
mod range;
mod track;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use mailboat_object::digest::Digest;
use mailboat_object::key::{ClusterId, Key, KindId, Name, Version};
use mailboat_object::object::Object;
use xxhash_rust::xxh3::Xxh3;

use self::bindings::{Bindings, is_bindings};
use self::by_cluster::ByCluster;
use self::deletions::Deletions;
use self::entries::Entries;
use self::entry::{Address, Entry, State};
use self::track::{Bond, Feed, Member, Past, Track};
use crate::interest::{EndpointId, FeedId, PlaceId};
use crate::seen::{Absence, Change, Doubt, Gone, News, Seen};

pub(crate) use self::intake::By;
pub use self::places::{Nature, Unopened};
pub use self::range::Range;

/// How a kind stands that was never listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Unlisted {
    /// Its first list is being read, or about to be.
    Yet,
    /// That failed so far, and may for good.
    Stalled,
}

/// All that is known. It belongs to one thread, and a `&Store` is the snapshot.
#[derive(Default)]
pub struct Store {
    places: BTreeMap<PlaceId, Place>,
    /// The places that show one cluster whole.
    whole: BTreeMap<ClusterId, BTreeSet<PlaceId>>,
    views: BTreeSet<PlaceId>,
    tracks: BTreeMap<KindId, BTreeMap<PlaceId, Track>>,
    shelves: BTreeMap<KindId, ByCluster<Shelf>>,
    deletions: Deletions,
    /// What other memories said of objects that nobody follows yet.
    remembered: BTreeMap<KindId, BTreeMap<Key, Version>>,
    /// Some feed was asked to list anew, and its follower may not know it yet.
    restless: bool,
    /// Numbers the lists of all feeds, so that no entry is taken for listed by a list of another feed.
    lists: u32,
}

struct Place {
    nature: Nature,
    /// The server that it is read from, where several places may be.
    server: Option<Name>,
    endpoints: BTreeSet<EndpointId>,
    /// Which endpoint of a view shows which cluster; kept when the endpoint goes.
    homes: ByCluster<EndpointId>,
    /// The clusters that lost their last binding, the first of them first; some have one again.
    left: VecDeque<ClusterId>,
    bindings: Bindings,
}

/// The objects of one kind in one cluster.
struct Shelf {
    place: PlaceId,
    entries: Entries,
}

impl Store {
    /// An empty store, which knows nothing of anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is known of one object.
    pub fn get(&self, key: &Key) -> Seen<&Arc<Object>> {
        let shelf = self.shelf(&key.cluster, &key.kind);
        let Some((place, track)) = self.covering_beside(shelf, &key.cluster, &key.kind) else {
            return Seen::Unknown(Doubt::NotFollowed);
        };
        let home = self.home(place, &key.cluster);
        if let Some(doubt) = track.total_doubt(&key.cluster, home) {
            return Seen::Unknown(doubt);
        }
        match shelf.and_then(|shelf| shelf.entries.get(&Address::of(key))).map(|entry| &entry.state) {
            Some(State::Present(object)) => Seen::Present(object),
            Some(State::Doubted(doubted)) if !doubted.confirmed => Seen::Unknown(doubted.doubt),
            Some(State::Doubted(_)) => self.missing(track, home, key, Past::Confirmed),
            None => self.missing(track, home, key, Past::Doubted),
        }
    }

    /// The objects of a kind in one cluster (and one namespace), sorted by namespace and name.
    ///
    /// An error says that nothing can be said: never listed, or in total doubt. A range that was complete once
    /// is given even while the link is lost, as last seen; [`Range::missing`] says whether an object that is
    /// not in it is absent, and [`Range::doubtful`] which keys are in doubt by themselves.
    pub fn range<'a>(
        &'a self,
        cluster: &ClusterId,
        kind: &KindId,
        namespace: Option<&Name>,
    ) -> Result<Range<'a>, Doubt> {
        let (place, track) = self.covering(cluster, kind).ok_or(Doubt::NotFollowed)?;
        let home = self.home(place, cluster);
        if let Some(doubt) = track.total_doubt(cluster, home) {
            return Err(doubt);
        }
        let standing = track.standing(Past::Doubted).and_then(|()| track.standing_of(cluster, home));
        if standing == Err(Doubt::NotListed) || !track.feeds.values().all(Feed::is_complete) {
            return Err(Doubt::NotListed);
        }
        let shown = match namespace {
            Some(namespace) => track.filter.shows_all_of(namespace),
            None => track.filter == crate::interest::Filter::All,
        };
        let missing = if shown { standing } else { Err(Doubt::Filtered) };
        let entries = self.shelf(cluster, kind).map(|shelf| &shelf.entries);
        Ok(Range::new(entries, namespace, missing.map(|()| track.version_of(home))))
    }

    /// Why objects of a kind may have changed since they were last shown, if they may: their link is lost, or is back
    /// and what happened meanwhile was not read yet. When that ends, news say so.
    pub fn behind(&self, cluster: &ClusterId, kind: &KindId) -> Option<Doubt> {
        let Some((place, track)) = self.covering(cluster, kind) else { return Some(Doubt::NotFollowed) };
        let home = self.home(place, cluster);
        let of_home = |endpoint: &EndpointId| home.is_none_or(|home| home == endpoint);
        let mut feeds = track.feeds.iter().filter(|(endpoint, _)| of_home(endpoint)).map(|(_, feed)| feed);
        match track.standing(Past::Confirmed) {
            Err(doubt) if doubt.is_behind() => Some(doubt),
            _ => feeds.any(Feed::is_catching_up).then_some(Doubt::CatchingUp),
        }
    }

    /// Whether some kind that is followed in a cluster was never listed there, so that nobody knows how much of it there is.
    /// A list that is under way is told before one that cannot be read. A kind that is not served or may not be read is
    /// neither, nor one whose view has no endpoint: there is nothing to wait for.
    pub fn unlisted(&self, cluster: &ClusterId) -> Option<Unlisted> {
        // It is asked for each of ten thousand mailboxes whenever one of some ninety kinds becomes known there: what was
        // listed by all who read it is passed over without a look at the cluster.
        let first = |tracks: &BTreeMap<PlaceId, Track>| tracks.values().any(Track::awaits_first_list);
        let kinds = self.tracks.iter().filter(|(_, tracks)| first(tracks)).map(|(kind, _)| kind);
        let mut stalled = None;
        for kind in kinds {
            match self.unlisted_kind(cluster, kind) {
                Some(Unlisted::Yet) => return Some(Unlisted::Yet),
                other => stalled = stalled.or(other),
            }
        }
        stalled
    }

    /// The same of one kind.
    pub fn unlisted_kind(&self, cluster: &ClusterId, kind: &KindId) -> Option<Unlisted> {
        let (place, track) = self.covering(cluster, kind)?;
        let home = self.home(place, cluster);
        if track.total_doubt(cluster, home).is_some() {
            return None;
        }
        let of_home = |endpoint: &EndpointId| home.is_none_or(|home| home == endpoint);
        let feeds = track.feeds.iter().filter(|(endpoint, _)| of_home(endpoint)).map(|(_, feed)| feed);
        feeds.filter(|feed| !feed.is_live()).filter_map(Feed::unlisted).min()
    }

    /// The `identityHash` under which a kind of a cluster is bound and believed, where bindings tell it. A binding that is
    /// newer than what was read of the kind tells nothing of that: it may have been rewritten in between.
    pub fn identity(&self, cluster: &ClusterId, kind: &KindId) -> Option<&Name> {
        let (_, track) = self.covering(cluster, kind)?;
        let member = track.members.get(cluster)?;
        member.identity().filter(|_| member.confirmed || track.whole.is_some())
    }

    /// Whether a cluster is seen through a view, and the binding that shows what was read of this kind is not known yet.
    pub fn is_unbound(&self, cluster: &ClusterId, kind: &KindId) -> bool {
        self.covering(cluster, kind).is_some_and(|(_, track)| {
            let unconfirmed = |member: &Member| match member.bond {
                Bond::Never => true,
                Bond::Engaged(_) => !member.confirmed,
                Bond::Withdrawn | Bond::Strange => false,
            };
            track.whole.is_none() && track.members.get(cluster).is_none_or(unconfirmed)
        })
    }

    /// All objects of a kind that a place shows and that are known to be present, sorted by cluster,
    /// namespace and name.
    pub fn across<'a>(
        &'a self,
        place: &'a PlaceId,
        kind: &'a KindId,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        let track = self.track(place, kind);
        let shows = move |cluster: &ClusterId, shelf: &Shelf| {
            let known = |track: &Track| track.total_doubt(cluster, self.home(place, cluster)).is_none();
            shelf.place == *place && track.is_some_and(known)
        };
        let shelves = self.shelves.get(kind).map(|shelves| shelves.in_order(shows)).unwrap_or_default();
        shelves.into_iter().flat_map(|(_, shelf)| shelf.entries.values()).filter_map(|entry| {
            match &entry.state {
                State::Present(object) => Some(object),
                State::Doubted(_) => None,
            }
        })
    }

    /// All objects in a cluster that were shown and are not in doubt by themselves, kind by kind. For those who learn late
    /// that a cluster concerns them; what is known of a whole kind there is to be asked with [`Store::get`].
    pub fn standing_in(&self, cluster: &ClusterId) -> impl Iterator<Item = &Arc<Object>> {
        let shelves = self.shelves.values().filter_map(move |clusters| clusters.get(cluster));
        shelves.flat_map(|shelf| shelf.entries.values()).filter_map(|entry| match &entry.state {
            State::Present(object) => Some(object),
            State::Doubted(_) => None,
        })
    }

    /// A digest over all objects of a kind that a place shows: names, uids, versions, contents. Two stores that
    /// have read the same place up to the same version give the same.
    pub fn checksum(&self, place: &PlaceId, kind: &KindId) -> Digest {
        let mut hash = Xxh3::new();
        let mut text = |text: &str| {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        let mut any = false;
        for object in self.across(place, kind) {
            any = true;
            text(object.key.cluster.0.as_str());
            text(&object.key.namespace);
            text(&object.key.name);
            text(&object.uid.to_string());
            for number in [object.version.0, object.content.bits(), object.status.bits()] {
                text(&number.to_string());
            }
        }
        if any { Digest::from_bits(hash.digest()) } else { Digest::NONE }
    }

    /// How many objects are held, in doubt or not.
    pub fn len(&self) -> usize {
        self.shelves.values().flat_map(ByCluster::values).map(|shelf| shelf.entries.len()).sum()
    }

    /// Whether no object is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Roughly how many bytes the objects and what is known of them take.
    pub fn footprint_bytes(&self) -> usize {
        // Lists and nodes of trees are between half full and full; an Arc has two counts before its value.
        let slot_bytes = (size_of::<Address>() + size_of::<Entry>()) * 5 / 4;
        let arc_bytes = 2 * size_of::<usize>();
        let objects =
            self.shelves.values().flat_map(ByCluster::values).flat_map(|shelf| shelf.entries.values());
        let shelves: usize = self.shelves.values().map(ByCluster::len).sum();
        objects
            .map(|entry| slot_bytes + entry.known().map_or(0, |o| arc_bytes + o.footprint_bytes()))
            .sum::<usize>()
            + shelves * (size_of::<Shelf>() + size_of::<track::Member>()) * 3 / 2
    }

    /// What is known of an object that no entry stands for, in a cluster without total doubt.
    fn missing<'a>(
        &self,
        track: &Track,
        home: Option<&EndpointId>,
        key: &Key,
        past: Past,
    ) -> Seen<&'a Arc<Object>> {
        if !track.filter.shows_all_of(&key.namespace) {
            return Seen::Unknown(Doubt::Filtered);
        }
        let standing = track.standing(past).and_then(|()| track.standing_of(&key.cluster, home));
        if let Some(version) = self.deletions.get(key)
            && deletion_holds(track, home, key, version)
        {
            return Seen::Absent(Absence::new(Gone::Deleted, version));
        }
        match standing {
            Ok(()) => Seen::Absent(Absence::new(Gone::NotInList, track.version_of(home))),
            Err(doubt) => Seen::Unknown(doubt),
        }
    }

    /// The feeds that are to be listed anew for a reason of the store's own, each named once. Their followers do so
    /// at their next input; a [`Tick`](crate::Input::Tick) is enough.
    pub fn take_relists(&mut self) -> Vec<FeedId> {
        if !std::mem::take(&mut self.restless) {
            return Vec::new();
        }
        let tracks = self
            .tracks
            .iter()
            .flat_map(|(kind, tracks)| tracks.iter().map(move |(place, track)| (kind, place, track)));
        let feeds = tracks.flat_map(|(kind, place, track)| {
            track.feeds.iter().filter(|(_, feed)| feed.relist).map(move |(endpoint, _)| FeedId {
                place: place.clone(),
                endpoint: endpoint.clone(),
                kind: kind.clone(),
            })
        });
        feeds.collect()
    }

    /// Tells that an object changed, or holds that back while all of its kind is in doubt.
    fn announce(
        &mut self,
        place: &PlaceId,
        key: &Key,
        before: Option<Arc<Object>>,
        live: bool,
        out: &mut Vec<News>,
    ) {
        self.announce_shown(place, key, None, before, live, out);
    }

    /// The same of an object that was just shown, with all of it at hand.
    fn announce_shown(
        &mut self,
        place: &PlaceId,
        key: &Key,
        shown: Option<(Arc<Object>, By)>,
        before: Option<Arc<Object>>,
        live: bool,
        out: &mut Vec<News>,
    ) {
        let held = self.track_mut(place, &key.kind).and_then(|track| track.members.get_mut(&key.cluster));
        if let Some(member) = held
            && member.total
        {
            member.odd_mut().held.entry(Address::of(key)).or_insert((before, live));
            return;
        }
        let watched = matches!(shown, Some((_, By::Event)));
        let now = match (self.get(key), shown) {
            (Seen::Present(kept), Some((whole, _))) if kept.version == whole.version => Seen::Present(whole),
            (now, _) => now.cloned(),
        };
        out.push(News::Object(Change { key: key.clone(), before, now, live, watched }));
    }

    /// Tells what became known or doubtful of the place, and of those of its clusters that it may concern.
    fn settle(&mut self, place: &PlaceId, kind: &KindId, whom: Whom<'_>, out: &mut Vec<News>) {
        let unvouched = self.unvouched(place, kind);
        if let Some(track) = self.track_mut(place, kind) {
            track.unvouched = unvouched;
        }
        self.settle_vouched(place, kind, whom, out);
        if is_bindings(kind) {
            self.settle_vouching(place, out);
        }
    }

    /// The bindings of a place became known, or doubtful, or were read further.
    fn settle_vouching(&mut self, place: &PlaceId, out: &mut Vec<News>) {
        for kind in self.kinds_at(place) {
            let unvouched = self.unvouched(place, &kind);
            if let Some(track) = self.track_mut(place, &kind)
                && track.unvouched != unvouched
            {
                track.unvouched = unvouched;
                self.settle_vouched(place, &kind, Whom::Nobody, out);
            }
        }
    }

    fn settle_vouched(&mut self, place: &PlaceId, kind: &KindId, whom: Whom<'_>, out: &mut Vec<News>) {
        let Some(track) = self.track_mut(place, kind) else { return };
        if !track.followed && track.announced.is_none() {
            return;
        }
        let standing = track.standing(Past::Doubted);
        let total = |standing: Result<(), Doubt>| standing.err().is_some_and(Doubt::is_total);
        let before = track.announced.replace(standing);
        if before != Some(standing) {
            out.push(News::Scope {
                place: place.clone(),
                cluster: None,
                kind: kind.clone(),
                known: standing,
            });
        }
        let whom = if before.is_some_and(total) == total(standing) { whom } else { Whom::All };
        let clusters: Vec<ClusterId> = match whom {
            Whom::Nobody => Vec::new(),
            Whom::One(cluster) => vec![cluster.clone()],
            Whom::Awaiting => track.awaiting.clusters(|_, ()| true),
            Whom::All => track.members.clusters(|_, _| true),
        };
        for cluster in clusters {
            self.settle_cluster(place, kind, &cluster, total(standing), out);
        }
    }

    fn settle_cluster(
        &mut self,
        place: &PlaceId,
        kind: &KindId,
        cluster: &ClusterId,
        place_total: bool,
        out: &mut Vec<News>,
    ) {
        if self.covering(cluster, kind).is_none_or(|(covering, _)| covering != place) {
            return;
        }
        let home = self.home(place, cluster).cloned();
        let Some(track) = self.track_mut(place, kind) else { return };
        let standing = track.standing_of(cluster, home.as_ref());
        if standing == Err(Doubt::CatchingUp) {
            track.awaiting.insert(cluster.clone(), ());
        } else {
            track.awaiting.remove(cluster);
        }
        let Some(member) = track.members.get_mut(cluster) else { return };
        member.confirmed |= matches!(standing, Ok(()) | Err(Doubt::Claimed));
        // While the place is in total doubt, one line has said so for all of its clusters.
        if !place_total && member.announced != standing {
            member.announced = standing;
            let (place, cluster, kind) = (place.clone(), Some(cluster.clone()), kind.clone());
            out.push(News::Scope { place, cluster, kind, known: standing });
        }
        let total = place_total || standing.err().is_some_and(Doubt::is_total);
        if std::mem::replace(&mut member.total, total) && !total {
            let held = member.take_held();
            self.release(cluster, kind, held, out);
        }
    }

    /// Tells what changed during a total doubt, now that it is over.
    fn release(
        &mut self,
        cluster: &ClusterId,
        kind: &KindId,
        held: BTreeMap<Address, (Option<Arc<Object>>, bool)>,
        out: &mut Vec<News>,
    ) {
        for (address, (before, live)) in held {
            let shelf = self.shelves.get_mut(kind).and_then(|shelves| shelves.get_mut(cluster));
            if let Some(entry) = shelf.and_then(|shelf| shelf.entries.get_mut(&address))
                && let State::Doubted(doubted) = &mut entry.state
            {
                // What came and went during the doubt was never known to anybody.
                doubted.known.clone_from(&before);
            }
            let Address { namespace, name } = address;
            let key = Key { cluster: cluster.clone(), kind: kind.clone(), namespace, name };
            let now = self.get(&key).cloned();
            out.push(News::Object(Change { key, before, now, live, watched: false }));
        }
    }

    /// The place that answers for a kind in a cluster, and its track.
    fn covering(&self, cluster: &ClusterId, kind: &KindId) -> Option<(&PlaceId, &Track)> {
        self.covering_beside(self.shelf(cluster, kind), cluster, kind)
    }

    /// The same, where the shelf was looked up already.
    fn covering_beside(
        &self,
        shelf: Option<&Shelf>,
        cluster: &ClusterId,
        kind: &KindId,
    ) -> Option<(&PlaceId, &Track)> {
        let tracks = self.tracks.get(kind)?;
        if let Some(shelf) = shelf {
            return tracks.get_key_value(&shelf.place);
        }
        let followed = |place| tracks.get_key_value(place).filter(|(_, track)| track.followed);
        let whole = self.whole.get(cluster).into_iter().flatten().find_map(followed);
        // Of several views the first with the best tie.
        let rank = |track: &Track| std::cmp::Reverse(track.strength(cluster));
        whole.or_else(|| self.views.iter().filter_map(followed).min_by_key(|(_, track)| rank(track)))
    }

    fn shelf(&self, cluster: &ClusterId, kind: &KindId) -> Option<&Shelf> {
        self.shelves.get(kind)?.get(cluster)
    }

    fn track(&self, place: &PlaceId, kind: &KindId) -> Option<&Track> {
        self.tracks.get(kind)?.get(place)
    }

    fn track_mut(&mut self, place: &PlaceId, kind: &KindId) -> Option<&mut Track> {
        self.tracks.get_mut(kind)?.get_mut(place)
    }

    fn home(&self, place: &PlaceId, cluster: &ClusterId) -> Option<&EndpointId> {
        self.places.get(place)?.homes.get(cluster)
    }
}

/// Which clusters of a place a change may concern.
#[derive(Clone, Copy)]
enum Whom<'a> {
    Nobody,
    One(&'a ClusterId),
    Awaiting,
    All,
}

/// Whether a deletion that was seen is still known to be the last word: the endpoint that showed it is
/// live and has not gone back before it. Other endpoints of a view do not matter.
fn deletion_holds(track: &Track, home: Option<&EndpointId>, key: &Key, version: Version) -> bool {
    let only = || if track.feeds.len() == 1 { track.feeds.values().next() } else { None };
    let feed = home.map_or_else(only, |endpoint| track.feeds.get(endpoint));
    let live = feed.is_some_and(|feed| feed.doubt.is_none() && !feed.unnamed && version <= feed.version);
    let vouched = home.is_none_or(|endpoint| !track.unvouched.contains_key(endpoint));
    live && vouched && !track.unserved && track.proves_deletion(key, version)
}
