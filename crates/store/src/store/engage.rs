//! What is known from elsewhere and bears on what lists and watches prove: bindings, discovery, other memories,
//! and people's confirmations.

use std::collections::BTreeMap;

use mailboat_object::key::{ClusterId, Key, KindId, Version};

use super::bindings::Tie;
use super::by_cluster::ByCluster;
use super::entry::{Address, Entry, Outcome};
use super::track::{Bond, Feed};
use super::{Shelf, Store, Whom};
use crate::interest::{EndpointId, PlaceId};
use crate::seen::{Doubt, News};

/// Nobody said at which version an engagement ended: beyond every other.
pub(super) const UNKNOWN: Version = Version(u64::MAX);

/// The number of no list: they are counted from one.
pub(super) const NO_LIST: u32 = 0;

impl Store {
    /// Takes in what ties a kind of a cluster to a place now; `None`: nothing any more, as of `withdrawn_at`.
    ///
    /// A view proves absence only where a cluster is engaged. When that ends, everything of the kind in that
    /// cluster is unknown, and so it is when the kind comes back under another identity. A place that shows its
    /// cluster whole needs no engagement; once one is withdrawn it counts there, too.
    pub(super) fn bind(
        &mut self,
        place: &PlaceId,
        cluster: &ClusterId,
        kind: &KindId,
        tie: Option<(Tie, Version)>,
        withdrawn_at: Version,
        out: &mut Vec<News>,
    ) {
        let Some(track) = self.track_mut(place, kind) else { return };
        let read: Vec<(EndpointId, (Version, u32))> = track
            .feeds
            .iter()
            .map(|(endpoint, feed)| (endpoint.clone(), (feed.version, feed.list)))
            .collect();
        let identity = match &tie {
            Some((Tie::Bound(identity), _)) => identity.clone(),
            Some((Tie::Claimed, _)) | None => None,
        };
        track.shown_under(cluster, identity.clone());
        let member = track.member(cluster);
        member.bond = match tie {
            // Told again by somebody who knows less, it stays as it was known; told again at a lower version, the
            // server went back, and only what is beyond the higher one is after it.
            None => {
                let before = member.withdrawn_at();
                member.odd_mut().withdrawn_at = match (member.bond, withdrawn_at) {
                    (Bond::Withdrawn, UNKNOWN) => before,
                    (Bond::Withdrawn, at) => before.max(at),
                    (_, at) => at,
                };
                Bond::Withdrawn
            }
            Some(_)
                if identity.is_some()
                    && member.identity().is_some_and(|one| Some(one) != identity.as_ref()) =>
            {
                Bond::Strange
            }
            Some((tie, since)) => {
                if member.identity().is_none() {
                    member.believe(identity);
                }
                member.claimed = tie == Tie::Claimed;
                match member.bond {
                    // Engaged all along; below what was told before only if the server went back.
                    Bond::Engaged(before) => Bond::Engaged(before.min(since)),
                    Bond::Withdrawn => {
                        let went_back = since <= member.withdrawn_at();
                        let beyond =
                            read.into_iter().filter(|(_, (version, _))| went_back && *version > since);
                        let beyond: BTreeMap<_, _> = beyond.collect();
                        member.odd_mut().read_withdrawn = beyond;
                        Bond::Engaged(since)
                    }
                    Bond::Never | Bond::Strange => Bond::Engaged(since),
                }
            }
        };
        if member.bond == Bond::Withdrawn {
            // What was deleted around then went with the binding, and is no single deletion.
            self.deletions.forget_all(|key| key.kind == *kind && key.cluster == *cluster);
        }
        self.rebind(place, cluster, kind, out);
    }

    /// Accepts that a kind is bound under another identity now: what it shows from here on is believed. False if its
    /// binding does not say so. The place's followers list anew; see [`Store::take_relists`].
    pub fn accept_identity(
        &mut self,
        place: &PlaceId,
        cluster: &ClusterId,
        kind: &KindId,
        out: &mut Vec<News>,
    ) -> bool {
        let Some((Tie::Bound(identity), since)) = self.tie(place, cluster, kind) else { return false };
        let Some(track) = self.track_mut(place, kind) else { return false };
        let member = track.member(cluster);
        member.believe(identity);
        member.confirmed = false;
        member.bond = Bond::Engaged(since);
        // What was listed under the old identity says nothing about the new one.
        track.feeds.values_mut().filter(|feed| feed.is_complete()).for_each(Feed::restart);
        self.restless = true;
        self.rebind(place, cluster, kind, out);
        true
    }

    /// Discovery lacks the kind: nothing is known of it, whatever was shown.
    pub fn unserved(&mut self, place: &PlaceId, kind: &KindId, out: &mut Vec<News>) {
        if let Some(track) = self.track_mut(place, kind) {
            track.unserved = true;
            self.settle(place, kind, Whom::All, out);
        }
    }

    /// Discovery has the kind (again). If it lacked it before, everything is listed anew, since it may be
    /// another kind of the same name; see [`Store::take_relists`].
    pub fn served(&mut self, place: &PlaceId, kind: &KindId, out: &mut Vec<News>) {
        let Some(track) = self.track_mut(place, kind) else { return };
        if std::mem::replace(&mut track.unserved, false) {
            for feed in track.feeds.values_mut() {
                // In total doubt until the list is complete: what was shown before must not flash up again.
                feed.restart();
                feed.doubt = Some(Doubt::Unserved);
            }
            let whole = track.whole.clone();
            self.restless = true;
            if let Some(cluster) = whole {
                // Served without a binding: by a CRD, as another kind of the same name.
                let unbound = self.tie(place, &cluster, kind).is_none();
                let member = self.track_mut(place, kind).map(|track| track.member(&cluster));
                if let Some(member) = member.filter(|member| unbound && member.bond == Bond::Withdrawn) {
                    member.bond = Bond::Never;
                }
            }
            self.settle(place, kind, Whom::All, out);
        }
    }

    /// Says that an object was seen at this version before, by a memory that outlived a restart. A server that
    /// shows less than that went back in time, and what it shows of this object is not believed.
    pub fn remember(&mut self, key: &Key, version: Version, out: &mut Vec<News>) {
        let Some((place, track)) = self.covering(&key.cluster, &key.kind) else {
            // Nobody follows it yet: it is remembered until somebody does.
            let known = self.remembered.entry(key.kind.clone()).or_default().entry(key.clone()).or_default();
            *known = version.max(*known);
            return;
        };
        let home = self.home(place, &key.cluster);
        // A view without an endpoint was not listed: "all of them" must not hold of none.
        let listed = !track.feeds.is_empty() && track.feeds.values().all(Feed::is_complete);
        // It was there at that very version: only a later state can be one without it.
        let reached = listed && track.version_of(home) > version;
        let place = place.clone();
        if !self.admit(&place, &key.cluster, &key.kind) {
            return;
        }
        if let Some(track) = self.track_mut(&place, &key.kind) {
            track.member(&key.cluster);
        }
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
            // No list has shown it, and one that is being read must not be taken for one that did.
            shelf.entries.insert(address, Entry::doubted(doubt, version, NO_LIST));
            if listed {
                self.announce(&place, key, None, true, out);
            }
        }
    }

    /// A kind begins to be followed somewhere: what was remembered of it before counts.
    pub(super) fn recall(&mut self, kind: &KindId, out: &mut Vec<News>) {
        for (key, version) in self.remembered.remove(kind).unwrap_or_default() {
            self.remember(&key, version, out);
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
        let here = |shelves: &ByCluster<Shelf>| shelves.clusters(|_, shelf| shelf.place == *place);
        let clusters = self.shelves.get(kind).map(here).unwrap_or_default();
        let keys: Vec<Key> = clusters
            .iter()
            .filter_map(|cluster| Some((cluster, self.shelf(cluster, kind)?)))
            .flat_map(|(cluster, shelf)| {
                shelf.entries.iter(None).map(|(address, _)| Key {
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

    fn rebind(&mut self, place: &PlaceId, cluster: &ClusterId, kind: &KindId, out: &mut Vec<News>) {
        let Some(track) = self.track(place, kind).filter(|track| track.followed) else { return };
        // Between two views the one with the better tie answers.
        let tie = track.strength(cluster);
        let covering = self.covering(cluster, kind);
        if track.whole.is_none()
            && let Some((covering, other)) = covering
            && covering != place
            && other.whole.is_none()
            && tie > other.strength(cluster)
        {
            self.hand_over(cluster, kind, place, out);
        }
        self.settle(place, kind, Whom::One(cluster), out);
    }
}
