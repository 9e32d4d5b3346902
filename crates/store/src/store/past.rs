//! Servers that go back in time, as after a restored backup.
//!
//! Versions are all that tells it: a feed notices when its server shows a lower one than before. One that looks late,
//! after the server has come as far again, notices nothing, and would take what the backup lost for deleted. So when one
//! feed notices, all feeds of the same server list anew, and conclude nothing from what those lists lack.

use std::collections::BTreeSet;

use mailboat_object::key::{Name, Version};

use super::Store;
use super::track::Former;
use crate::interest::{FeedId, PlaceId};
use crate::mutation::{Mutation, broken};
use crate::seen::{Doubt, News};

impl Store {
    /// Says that a place is read from this server, as other places may be: workspaces and views of one kcp. Of a place
    /// of which nobody said so, each endpoint is a server of its own.
    pub fn served_by(&mut self, place: &PlaceId, server: &Name) {
        if let Some(place) = self.places.get_mut(place) {
            place.server = Some(server.clone());
        }
    }

    /// The version of the list that is being read, as its first page says. It may be older than what was seen
    /// before; then the list will conclude nothing.
    pub(crate) fn list_version(&mut self, id: &FeedId, version: Version, out: &mut Vec<News>) {
        let Some(feed) = self.feed_mut(id) else { return };
        let before = if feed.version == Version::default() { feed.highest } else { feed.version };
        feed.version = version;
        feed.highest = feed.highest.max(version);
        if feed.in_the_past() && version < before {
            self.went_back(id, out);
        } else if feed.in_the_past() {
            self.is_in_the_past(id, out);
        }
    }

    /// The server was seen to have gone back in time.
    pub(crate) fn went_back(&mut self, id: &FeedId, out: &mut Vec<News>) {
        let first = self.feed(id).is_some_and(|feed| !feed.went_back);
        self.is_in_the_past(id, out);
        // Whoever was told by another feed need not tell the others.
        if first && !broken(Mutation::PastIsPresent) {
            for other in self.neighbours(id) {
                if let Some(feed) = self.feed_mut(&other) {
                    feed.relist = true;
                }
                self.restless = true;
                self.is_in_the_past(&other, out);
            }
            self.former_neighbours(id);
        }
    }

    /// The next list of a feed may be that of a server that went back in time.
    fn is_in_the_past(&mut self, id: &FeedId, out: &mut Vec<News>) {
        let Some(feed) = self.feed_mut(id) else { return };
        feed.went_back = true;
        // Deletions of a time that this server has lost prove nothing in the one it lives in now.
        let clusters: BTreeSet<_> = self.clusters_of(id).into_iter().collect();
        self.deletions.forget_all(|key| key.kind == id.kind && clusters.contains(&key.cluster));
        self.lose(id, Doubt::WentBack, out);
    }

    /// The other feeds of the same server.
    fn neighbours(&self, id: &FeedId) -> Vec<FeedId> {
        let tracks = self.tracks.iter().flat_map(|(kind, tracks)| {
            tracks.iter().map(move |(place, track)| (kind, place, track.feeds.keys()))
        });
        let feeds = tracks.flat_map(|(kind, place, endpoints)| {
            endpoints.map(move |endpoint| FeedId {
                place: place.clone(),
                endpoint: endpoint.clone(),
                kind: kind.clone(),
            })
        });
        feeds.filter(|feed| feed != id && self.same_server(id, feed)).collect()
    }

    /// The same for endpoints that are not there now, and may come back.
    fn former_neighbours(&mut self, id: &FeedId) {
        let server = self.places.get(&id.place).and_then(|place| place.server.clone());
        let places = &self.places;
        let concerned = |place: &PlaceId| match &server {
            Some(server) => places.get(place).is_some_and(|place| place.server.as_ref() == Some(server)),
            None => false,
        };
        for tracks in self.tracks.values_mut() {
            for (_, track) in tracks.iter_mut().filter(|(place, _)| concerned(place)) {
                track.former.values_mut().for_each(Former::went_back);
            }
        }
    }

    fn same_server(&self, one: &FeedId, other: &FeedId) -> bool {
        let server = |id: &FeedId| self.places.get(&id.place).and_then(|place| place.server.as_ref());
        match (server(one), server(other)) {
            (Some(one), Some(other)) => one == other,
            _ => one.place == other.place && one.endpoint == other.endpoint,
        }
    }
}
