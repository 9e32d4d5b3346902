//! Places and their endpoints: opening, following, taking over, letting go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mailboat_object::key::{ClusterId, Key, KindId};

use super::bindings::{Aside, Bindings, is_bindings, kind_of_bindings};
use super::by_cluster::ByCluster;
use super::entries::Entries;
use super::entry::{Address, Entry, Outcome};
use super::track::{Feed, Former, Member, Strength, Track};
use super::{By, Place, Shelf, Store, Whom};
use crate::interest::{EndpointId, FeedId, Filter, PlaceId};
use crate::seen::{Change, Doubt, News, Seen};

/// So many clusters that have no binding any more are remembered in each view.
pub(super) const LEFT_AT_MOST: usize = 256;

/// What a place shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Nature {
    /// One plain cluster or one workspace, whole. What is not there is not there.
    Whole(ClusterId),
    /// A view over many clusters. What it does not show may be there all the same.
    View,
}

/// A place or endpoint that the store was not told of.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("endpoint {endpoint} of place {place} is not open in the store")]
pub struct Unopened {
    /// The place.
    pub place: PlaceId,
    /// Its endpoint.
    pub endpoint: EndpointId,
}

impl Store {
    /// Opens a place with its endpoints, or gives an open one other endpoints, as an endpoint slice does when a
    /// shard comes or goes. What an endpoint showed is unknown once it is taken out, and while a view has no
    /// endpoint at all nothing is known through it. The nature of an open place does not change.
    pub fn open(
        &mut self,
        place: &PlaceId,
        nature: Nature,
        endpoints: impl IntoIterator<Item = EndpointId>,
        out: &mut Vec<News>,
    ) {
        match &nature {
            Nature::Whole(cluster) => {
                self.whole.entry(cluster.clone()).or_default().insert(place.clone());
            }
            Nature::View => {
                self.views.insert(place.clone());
            }
        }
        let endpoints: BTreeSet<EndpointId> = endpoints.into_iter().collect();
        let entry = self.places.entry(place.clone()).or_insert_with(|| Place {
            nature,
            server: None,
            endpoints: BTreeSet::new(),
            homes: ByCluster::default(),
            left: VecDeque::new(),
            bindings: Bindings::default(),
        });
        if entry.endpoints == endpoints {
            return;
        }
        let removed: Vec<EndpointId> = entry.endpoints.difference(&endpoints).cloned().collect();
        entry.endpoints.clone_from(&endpoints);
        for track in self.tracks.values_mut().filter_map(|tracks| tracks.get_mut(place)) {
            for endpoint in &removed {
                if let Some(feed) = track.feeds.remove(endpoint) {
                    track.former.insert(endpoint.clone(), Former::of(&feed));
                }
            }
            if track.followed {
                track.add_feeds(&endpoints);
            }
        }
        self.settle_everywhere(place, Whom::All, out);
    }

    /// Whether a place is a view over many clusters.
    pub fn is_view(&self, place: &PlaceId) -> bool {
        self.views.contains(place)
    }

    /// Closes a place: nothing is known through it any more.
    pub fn close(&mut self, place: &PlaceId, out: &mut Vec<News>) {
        for kind in self.kinds_at(place) {
            self.unfollow(place, &kind, out);
            if let Some(tracks) = self.tracks.get_mut(&kind) {
                tracks.remove(place);
                if tracks.is_empty() {
                    self.tracks.remove(&kind);
                }
            }
        }
        self.views.remove(place);
        if let Some(Place { nature: Nature::Whole(cluster), .. }) = self.places.remove(place)
            && let Some(places) = self.whole.get_mut(&cluster)
        {
            places.remove(place);
            if places.is_empty() {
                self.whole.remove(&cluster);
            }
        }
    }

    /// Begins to follow a kind at a place, or changes the filter. A cluster's own place takes over from a view.
    pub(crate) fn follow(
        &mut self,
        feed: &FeedId,
        filter: &Filter,
        out: &mut Vec<News>,
    ) -> Result<Option<ClusterId>, Unopened> {
        let unopened = || Unopened { place: feed.place.clone(), endpoint: feed.endpoint.clone() };
        let place = self.places.get(&feed.place).ok_or_else(unopened)?;
        if !place.endpoints.contains(&feed.endpoint) {
            return Err(unopened());
        }
        let endpoints = place.endpoints.clone();
        let whole = match &place.nature {
            Nature::Whole(cluster) => Some(cluster.clone()),
            Nature::View => None,
        };
        let track = self.tracks.entry(feed.kind.clone()).or_default();
        let track = track.entry(feed.place.clone()).or_insert_with(|| Track::new(whole.clone()));
        let begins = !track.followed;
        if begins || track.filter != *filter {
            track.followed = true;
            track.filter = filter.clone();
            track.feeds.values_mut().for_each(Feed::restart);
            track.add_feeds(&endpoints);
            self.restless = true;
        }
        if let Some(cluster) = &whole {
            track.member(cluster);
            self.hand_over(cluster, &feed.kind, &feed.place, out);
        }
        if begins {
            self.heed_all(&feed.place, &feed.kind, out);
        }
        self.settle(&feed.place, &feed.kind, Whom::All, out);
        self.recall(&feed.kind, out);
        Ok(whole)
    }

    /// Stops following a kind at a place: what only this place showed is let go of and unknown. Where a view
    /// takes over, its followers list anew; see [`Store::take_relists`].
    pub fn unfollow(&mut self, place: &PlaceId, kind: &KindId, out: &mut Vec<News>) {
        let Some(track) = self.track_mut(place, kind) else { return };
        if !std::mem::replace(&mut track.followed, false) {
            return;
        }
        for (endpoint, feed) in std::mem::take(&mut track.feeds) {
            track.former.insert(endpoint, Former::of(&feed));
        }
        self.settle(place, kind, Whom::Nobody, out);
        let here = |shelves: &ByCluster<Shelf>| shelves.clusters(|_, shelf| shelf.place == *place);
        let clusters = self.shelves.get(kind).map(here).unwrap_or_default();
        for cluster in clusters {
            let Some(shelf) = self.shelves.get_mut(kind).and_then(|shelves| shelves.remove(&cluster)) else {
                continue;
            };
            // Without its shelf the cluster is covered by whatever else follows the kind.
            let Some(heir) = self.covering(&cluster, kind).map(|(place, _)| place.clone()) else { continue };
            self.shelves.entry(kind.clone()).or_default().insert(cluster.clone(), shelf);
            self.hand_over(&cluster, kind, &heir, out);
        }
        if let Some(track) = self.track_mut(place, kind) {
            track.members.values_mut().for_each(|member| drop(member.take_held()));
        }
        if self.shelves.get(kind).is_some_and(ByCluster::is_empty) {
            self.shelves.remove(kind);
        }
    }

    /// Forgets a cluster that a view showed, when it is known to be gone for good.
    pub fn forget(&mut self, place: &PlaceId, cluster: &ClusterId, out: &mut Vec<News>) {
        if self.places.get(place).is_some_and(|place| place.nature == Nature::View) {
            self.deletions.forget_all(|key| key.cluster == *cluster);
        }
        for (kind, tracks) in &mut self.tracks {
            let Some(track) = tracks.get_mut(place).filter(|track| track.whole.is_none()) else { continue };
            if !track.members.contains(cluster) {
                continue;
            }
            let Some(mut member) = track.forget(cluster) else { continue };
            let shelves = self.shelves.get_mut(kind);
            let shelf = match shelves {
                Some(shelves) if shelves.get(cluster).is_some_and(|shelf| shelf.place == *place) => {
                    shelves.remove(cluster)
                }
                _ => None,
            };
            // From here on it is as a cluster that nothing was ever told about.
            let doubt = if track.followed { Doubt::NotEngaged } else { Doubt::NotFollowed };
            if member.announced != Err(doubt) {
                let (place, cluster, kind) = (place.clone(), Some(cluster.clone()), kind.clone());
                out.push(News::Scope { place, cluster, kind, known: Err(doubt) });
            }
            let held = member.take_held();
            let standing = shelf.iter().flat_map(|shelf| shelf.entries.iter(None));
            let told = standing.filter(|(address, _)| !held.contains_key(*address));
            let told = told.map(|(address, entry)| (address.clone(), entry.known().cloned()));
            let told: Vec<_> =
                told.chain(held.iter().map(|(at, (before, _))| (at.clone(), before.clone()))).collect();
            for (address, before) in told.into_iter().filter(|(_, before)| before.is_some()) {
                let super::entry::Address { namespace, name } = address;
                let key = Key { cluster: cluster.clone(), kind: kind.clone(), namespace, name };
                let now = Seen::Unknown(doubt);
                out.push(News::Object(Change { key, before, now, live: false, watched: false }));
            }
        }
        if let Some(place) = self.places.get_mut(place) {
            place.homes.remove(cluster);
            place.bindings.forget(cluster);
        }
        self.shelves.retain(|_, clusters| !clusters.is_empty());
    }

    /// The same in every view: it is known to be gone with all that stood in it.
    pub fn forget_cluster(&mut self, cluster: &ClusterId, out: &mut Vec<News>) {
        let views: Vec<PlaceId> = self.views.iter().cloned().collect();
        for place in views {
            self.forget(&place, cluster, out);
        }
        for remembered in self.remembered.values_mut() {
            remembered.retain(|key, _| key.cluster != *cluster);
        }
        self.remembered.retain(|_, remembered| !remembered.is_empty());
    }

    /// A cluster has no binding any more that a view shows. It may have been deleted, which no view says, or be bound again:
    /// so it is remembered for a while. One that is forgotten is as unknown as one that was never shown.
    pub(super) fn leaves(&mut self, place: &PlaceId, cluster: &ClusterId, out: &mut Vec<News>) {
        let Some(Place { nature: Nature::View, left, .. }) = self.places.get_mut(place) else { return };
        left.push_back(cluster.clone());
        if left.len() <= LEFT_AT_MOST {
            return;
        }
        if let Some(oldest) = left.pop_front()
            && self.places.get(place).is_some_and(|place| !place.bindings.any_of(&oldest))
        {
            self.forget(place, &oldest, out);
        }
    }

    /// How much is held in each table that tenants fill, by its name. For whoever wants to see that what went leaves nothing
    /// behind.
    pub fn tables(&self) -> [(&'static str, usize); 9] {
        let tracks = || self.tracks.values().flat_map(BTreeMap::values);
        let of_places = |count: fn(&Place) -> usize| self.places.values().map(count).sum::<usize>();
        [
            ("places", self.places.len() + self.views.len() + self.whole.len()),
            ("kinds", self.tracks.len()),
            ("tracks", tracks().count()),
            ("members", tracks().map(|track| track.members.len() + track.awaiting.len()).sum()),
            ("shelves", self.shelves.len() + self.shelves.values().map(ByCluster::len).sum::<usize>()),
            ("entries", self.len()),
            ("remembered", self.remembered.values().map(BTreeMap::len).sum()),
            ("homes", of_places(|place| place.homes.len())),
            ("bindings", of_places(|place| place.bindings.len())),
        ]
    }

    /// Notes which endpoint of a view shows a cluster.
    pub(super) fn settle_down(
        &mut self,
        place: &PlaceId,
        cluster: &ClusterId,
        endpoint: &EndpointId,
        out: &mut Vec<News>,
    ) {
        if let Some(Place { nature: Nature::View, homes, .. }) = self.places.get_mut(place)
            && homes.get(cluster) != Some(endpoint)
        {
            homes.insert(cluster.clone(), endpoint.clone());
            for kind in self.kinds_at(place) {
                let id = FeedId { place: place.clone(), endpoint: endpoint.clone(), kind };
                self.conclude_at_home(&id, cluster, out);
            }
            self.settle_everywhere(place, Whom::One(cluster), out);
        }
    }

    /// Settles every kind of a place.
    pub(super) fn settle_everywhere(&mut self, place: &PlaceId, whom: Whom<'_>, out: &mut Vec<News>) {
        for kind in self.kinds_at(place) {
            self.settle(place, &kind, whom, out);
        }
    }

    pub(super) fn kinds_at(&self, place: &PlaceId) -> Vec<KindId> {
        let tracks = self.tracks.iter().filter(|(_, tracks)| tracks.contains_key(place));
        tracks.map(|(kind, _)| kind.clone()).collect()
    }

    /// Lets another place answer for a kind in a cluster. What is on the shelf stays, as last seen, until that
    /// place has been listed; a view that was listed before, when its word did not count, is listed again, unless
    /// what it has shown was kept aside.
    pub(super) fn hand_over(
        &mut self,
        cluster: &ClusterId,
        kind: &KindId,
        to: &PlaceId,
        out: &mut Vec<News>,
    ) {
        let Some(shelf) = self.shelves.get_mut(kind).and_then(|shelves| shelves.get_mut(cluster)) else {
            return;
        };
        if shelf.place == *to {
            return;
        }
        let from = std::mem::replace(&mut shelf.place, to.clone());
        let left = self.track_mut(&from, kind).and_then(|track| track.members.get_mut(cluster));
        let mut held = left.map(Member::take_held).unwrap_or_default();
        let aside = if is_bindings(kind) { self.take_aside(to, cluster) } else { None };
        let mut listed_again = false;
        if let Some(track) = self.track_mut(to, kind) {
            let known = |feed: &Feed| aside.is_some() && !feed.doubt.is_some_and(Doubt::is_total);
            for feed in track.feeds.values_mut().filter(|feed| feed.is_complete() && !known(feed)) {
                feed.restart();
                listed_again = true;
            }
            let member = track.member(cluster);
            member.total = true;
            if !held.is_empty() {
                member.odd_mut().held.append(&mut held);
            }
        }
        self.restless = true;
        // What is listed again is in doubt everywhere. Where it is being listed anyway, as while a start reads the bindings of
        // ten thousand mailboxes one after the other, nothing is different but this cluster.
        self.settle(to, kind, if listed_again { Whom::All } else { Whom::One(cluster) }, out);
        self.adopt(cluster, kind, to, aside.unwrap_or_default(), out);
    }

    /// Takes what a view has shown of a cluster's bindings while another answered for them, if it was kept and the claim by
    /// which it answers from now on lets nobody conclude anything from what it does not show.
    fn take_aside(&mut self, to: &PlaceId, cluster: &ClusterId) -> Option<Vec<(Aside, u32)>> {
        let track = self.track(to, &kind_of_bindings())?;
        if track.whole.is_some() || track.strength(cluster) != Strength::Claimed {
            return None;
        }
        let aside = self.places.get_mut(to)?.bindings.take_aside(cluster);
        // Nobody else has to keep them from now on.
        for (_, place) in self.places.iter_mut().filter(|(place, _)| *place != to) {
            place.bindings.take_aside(cluster);
        }
        aside
    }

    /// Puts on the shelf what a view has shown while another answered, and concludes what it does not show, as the end of a list
    /// would. One that is being listed is concluded from at its end.
    fn adopt(
        &mut self,
        cluster: &ClusterId,
        kind: &KindId,
        to: &PlaceId,
        aside: Vec<(Aside, u32)>,
        out: &mut Vec<News>,
    ) {
        let Some(endpoint) = self.home(to, cluster).cloned().filter(|_| !aside.is_empty()) else { return };
        let id = FeedId { place: to.clone(), endpoint, kind: kind.clone() };
        let Some(feed) = self.feed(&id) else { return };
        let (now, past, live) = (feed.version, feed.in_the_past(), feed.is_live());
        let watched = (feed.is_complete() && feed.doubt.is_none()).then_some(feed.list);
        for (Aside { whole, kept }, list) in aside {
            let key = whole.key.clone();
            let list = watched.unwrap_or(list);
            let shelf = self.shelves.get_mut(kind).and_then(|shelves| shelves.get_mut(cluster));
            let Some(shelf) = shelf else { return };
            let outcome = if let Some(entry) = shelf.entries.get_mut(&Address::of(&key)) {
                entry.list = list;
                entry.show(kept, false)
            } else {
                shelf.entries.insert(Address::of(&key), Entry::present(kept, list));
                Outcome::Changed(None)
            };
            if let Outcome::Changed(before) = outcome {
                self.deletions.forget(&key);
                self.announce_shown(to, &key, Some((whole, By::List)), before, live, out);
            }
        }
        if let Some(list) = watched {
            self.conclude(&id, cluster, |shown| shown != list, (now, past, live), out);
        }
    }

    /// Makes room for an object that a place shows; false if another place answers for it.
    pub(super) fn admit(&mut self, place: &PlaceId, cluster: &ClusterId, kind: &KindId) -> bool {
        if let Some(shelf) = self.shelf(cluster, kind) {
            return shelf.place == *place;
        }
        let admitted = self.covering(cluster, kind).is_some_and(|(covering, track)| {
            // An unbound view says nothing that another view could not say.
            covering == place || (track.whole.is_none() && track.strength(cluster) <= Strength::Unbound)
        });
        if admitted {
            let shelf = Shelf { place: place.clone(), entries: Entries::new() };
            self.shelves.entry(kind.clone()).or_default().insert(cluster.clone(), shelf);
        }
        admitted
    }
}

impl Track {
    fn add_feeds(&mut self, endpoints: &BTreeSet<EndpointId>) {
        for endpoint in endpoints {
            let former = self.former.remove(endpoint).unwrap_or_default();
            self.feeds.entry(endpoint.clone()).or_insert_with(|| former.begin());
        }
    }
}
