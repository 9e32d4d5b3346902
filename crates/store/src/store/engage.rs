//! What is known from elsewhere and bears on what lists and watches prove: bindings, discovery, other memories,
//! and people's confirmations.

use mailboat_object::key::{ClusterId, Key, KindId, Name, Version};

use super::entry::{Address, Entry, Outcome};
use super::track::{Bond, Feed, Track};
use super::{Nature, Store, Whom};
use crate::interest::{EndpointId, PlaceId};
use crate::seen::{Doubt, News};

/// What binds a cluster to the view that shows it, taken from the cluster's own APIBinding: the kind stands in
/// `boundResources`, or the claim in `appliedPermissionClaims`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Engagement {
    /// The `identityHash` under which the kind is bound, if it has one.
    pub identity: Option<Name>,
    /// The version of the APIBinding that shows it. Before the view has been read up to there, it may lack
    /// objects that are about to appear in it, so nothing in this cluster is known to be absent.
    pub since: Version,
    /// The endpoint of the view that shows this cluster, if the binding was seen through one. Versions of
    /// different endpoints cannot be compared, so without it, and until an object of the cluster is shown, every
    /// endpoint must have come as far as `since`.
    pub endpoint: Option<EndpointId>,
}

/// Nobody said at which version an engagement ended: beyond every other.
const UNKNOWN: Version = Version(u64::MAX);

impl Store {
    /// Says that a cluster is bound to a view for a kind, or no longer is.
    ///
    /// A view proves absence only where a cluster is engaged. When that ends, everything of the kind in that
    /// cluster is unknown, and so it is when the kind comes back under another identity. Bindings and objects
    /// reach us by separate watches: a claim's objects may seem deleted a moment before the binding says why.
    /// That is why nothing is withdrawn before its source was read afresh.
    ///
    /// For a place that shows its cluster whole this is optional; once withdrawn it counts there, too.
    ///
    /// Where it is known at which version an engagement ended, [`Store::withdraw`] says so, and what comes after it
    /// is believed at once.
    pub fn engage(
        &mut self,
        place: &PlaceId,
        cluster: &ClusterId,
        kind: &KindId,
        engagement: Option<Engagement>,
        out: &mut Vec<News>,
    ) {
        self.bind(place, cluster, kind, engagement, UNKNOWN, out);
    }

    /// Says that a cluster is no longer bound to a view for a kind, as its APIBinding showed at this version.
    pub fn withdraw(
        &mut self,
        place: &PlaceId,
        cluster: &ClusterId,
        kind: &KindId,
        at: Version,
        out: &mut Vec<News>,
    ) {
        self.bind(place, cluster, kind, None, at, out);
    }

    fn bind(
        &mut self,
        place: &PlaceId,
        cluster: &ClusterId,
        kind: &KindId,
        engagement: Option<Engagement>,
        withdrawn_at: Version,
        out: &mut Vec<News>,
    ) {
        if let Some(endpoint) = engagement.as_ref().and_then(|engagement| engagement.endpoint.as_ref()) {
            self.settle_down(place, cluster, endpoint, out);
        }
        let Some(track) = self.track_to_engage(place, kind) else { return };
        let whole = track.whole.is_some();
        let read: Vec<(EndpointId, (Version, u32))> = track
            .feeds
            .iter()
            .map(|(endpoint, feed)| (endpoint.clone(), (feed.version, feed.list)))
            .collect();
        let member = track.member(cluster);
        member.bond = match engagement {
            None if member.bond == Bond::Never && !whole => Bond::Never,
            None => {
                // Told again by somebody who knows less, it stays as it was known; told again at a lower version, the
                // server went back, and only what is beyond the higher one is after it.
                member.withdrawn_at = match (member.bond, withdrawn_at) {
                    (Bond::Withdrawn, UNKNOWN) => member.withdrawn_at,
                    (Bond::Withdrawn, at) => member.withdrawn_at.max(at),
                    (_, at) => at,
                };
                Bond::Withdrawn
            }
            Some(Engagement { identity, since, .. }) => {
                if member.identity.is_some() && identity.is_some() && member.identity != identity {
                    Bond::Strange
                } else {
                    member.identity = member.identity.take().or(identity);
                    match member.bond {
                        // Engaged all along; below what was told before only if the server went back.
                        Bond::Engaged(before) => Bond::Engaged(before.min(since)),
                        Bond::Withdrawn => {
                            let went_back = since <= member.withdrawn_at;
                            let beyond =
                                read.into_iter().filter(|(_, (version, _))| went_back && *version > since);
                            member.read_withdrawn = beyond.collect();
                            Bond::Engaged(since)
                        }
                        Bond::Never | Bond::Strange => Bond::Engaged(since),
                    }
                }
            }
        };
        self.rebind(place, cluster, kind, out);
    }

    /// Accepts that a kind is bound under another identity now: what it shows from here on is believed. The
    /// place's followers list anew at their next input; a [`Tick`](crate::Input::Tick) is enough.
    pub fn accept_identity(
        &mut self,
        place: &PlaceId,
        cluster: &ClusterId,
        kind: &KindId,
        engagement: Engagement,
        out: &mut Vec<News>,
    ) {
        let Some(track) = self.track_to_engage(place, kind) else { return };
        let member = track.member(cluster);
        member.identity = engagement.identity;
        member.bond = Bond::Engaged(engagement.since);
        // What was listed under the old identity says nothing about the new one.
        track.feeds.values_mut().filter(|feed| feed.is_complete()).for_each(Feed::restart);
        self.rebind(place, cluster, kind, out);
    }

    /// Discovery lacks the kind: nothing is known of it, whatever was shown.
    pub fn unserved(&mut self, place: &PlaceId, kind: &KindId, out: &mut Vec<News>) {
        if let Some(track) = self.track_mut(place, kind) {
            track.unserved = true;
            self.settle(place, kind, Whom::All, out);
        }
    }

    /// Discovery has the kind (again). If it lacked it before, everything is listed anew, since it may be
    /// another kind of the same name: at the followers' next input; a [`Tick`](crate::Input::Tick) is enough.
    pub fn served(&mut self, place: &PlaceId, kind: &KindId, out: &mut Vec<News>) {
        let Some(track) = self.track_mut(place, kind) else { return };
        if std::mem::replace(&mut track.unserved, false) {
            for feed in track.feeds.values_mut() {
                // In total doubt until the list is complete: what was shown before must not flash up again.
                feed.restart();
                feed.doubt = Some(Doubt::Unserved);
            }
            self.settle(place, kind, Whom::All, out);
        }
    }

    /// Says that an object was seen at this version before, by a memory that outlived a restart. A server that
    /// shows less than that went back in time, and what it shows of this object is not believed.
    pub fn remember(&mut self, key: &Key, version: Version, out: &mut Vec<News>) {
        let Some((place, track)) = self.covering(&key.cluster, &key.kind) else { return };
        let home = self.home(place, &key.cluster);
        let listed = track.feeds.values().all(Feed::is_complete);
        // It was there at that very version: only a later state can be one without it.
        let reached = listed && track.version_of(home) > version;
        let place = place.clone();
        if !self.admit(&place, &key.cluster, &key.kind) {
            return;
        }
        if let Some(track) = self.track_mut(&place, &key.kind) {
            track.member(&key.cluster);
        }
        let list = self.lists;
        let Some(shelf) = self.shelves.get_mut(&key.kind).and_then(|s| s.get_mut(&key.cluster)) else {
            return;
        };
        let address = Address::of(key);
        if let Some(entry) = shelf.entries.get_mut(&address) {
            if let Outcome::Changed(before) = entry.remember(version) {
                self.announce(&place, key, before, true, out);
            }
        } else if !reached {
            let doubt = if listed { Doubt::OlderThanKnown } else { Doubt::NotListed };
            shelf.entries.insert(address, Entry::doubted(doubt, version, list));
            if listed {
                self.announce(&place, key, None, true, out);
            }
        }
    }

    /// Confirms one object that is in doubt because its server went back in time: what the server shows of it
    /// now, be it nothing, is believed. False if there was nothing to confirm.
    pub fn confirm(&mut self, key: &Key, out: &mut Vec<News>) -> bool {
        let Some((place, _)) = self.covering(&key.cluster, &key.kind) else { return false };
        let place = place.clone();
        let shelf = self.shelves.get_mut(&key.kind).and_then(|shelves| shelves.get_mut(&key.cluster));
        let Some(entry) = shelf.and_then(|shelf| shelf.entries.get_mut(&Address::of(key))) else {
            return false;
        };
        let Outcome::Changed(before) = entry.confirm() else { return false };
        self.announce(&place, key, before, true, out);
        true
    }

    /// Confirms everything of a kind at a place: its server did go back in time, and what it shows is believed.
    pub fn confirm_all(&mut self, place: &PlaceId, kind: &KindId, out: &mut Vec<News>) {
        let Some(track) = self.track_mut(place, kind) else { return };
        for feed in track.feeds.values_mut() {
            feed.highest = feed.version;
        }
        let shelves = self.shelves.get(kind).into_iter().flatten().filter(|(_, shelf)| shelf.place == *place);
        let keys: Vec<Key> = shelves
            .flat_map(|(cluster, shelf)| {
                shelf.entries.keys().map(|address| Key {
                    cluster: cluster.clone(),
                    kind: kind.clone(),
                    namespace: address.namespace.clone(),
                    name: address.name.clone(),
                })
            })
            .collect();
        for key in keys {
            self.confirm(&key, out);
        }
        self.settle(place, kind, Whom::All, out);
    }

    /// The track to write an engagement on; a binding may well be seen before anybody follows the kind.
    fn track_to_engage(&mut self, place: &PlaceId, kind: &KindId) -> Option<&mut Track> {
        let whole = match &self.places.get(place)?.nature {
            Nature::Whole(cluster) => Some(cluster.clone()),
            Nature::View => None,
        };
        let tracks = self.tracks.entry(kind.clone()).or_default();
        Some(tracks.entry(place.clone()).or_insert_with(|| Track::new(whole)))
    }

    fn rebind(&mut self, place: &PlaceId, cluster: &ClusterId, kind: &KindId, out: &mut Vec<News>) {
        let Some(track) = self.track(place, kind).filter(|track| track.followed) else { return };
        // Between two views the one that is bound answers.
        let bound = track.whole.is_none() && track.is_engaged(cluster);
        let covering = self.covering(cluster, kind);
        if bound
            && let Some((covering, other)) = covering
            && covering != place
            && other.whole.is_none()
            && !other.is_engaged(cluster)
        {
            self.hand_over(cluster, kind, place, out);
        }
        self.settle(place, kind, Whom::One(cluster), out);
    }
}
