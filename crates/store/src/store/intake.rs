//! What followers put in: pages, events, progress, and faults.

use std::sync::Arc;

use mailboat_object::key::{ClusterId, Key, Version};
use mailboat_object::object::{Keep, Object};

use super::bindings::{Aside, is_bindings};
use super::engage::{NO_LIST, UNKNOWN};
use super::entry::{Address, Entry, Outcome};
use super::track::{Feed, Listed};
use super::{Store, Whom};
use crate::interest::FeedId;
use crate::mutation::{Mutation, broken};
use crate::seen::{Doubt, News};

/// By what an object was shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    List,
    Event,
}

impl Store {
    /// Whether the follower of this feed is still wanted.
    pub(crate) fn has_feed(&self, id: &FeedId) -> bool {
        self.feed(id).is_some()
    }

    /// Whether the feed must be listed anew for a reason of the store's own; asked once.
    pub(crate) fn take_relist(&mut self, id: &FeedId) -> bool {
        self.feed_mut(id).is_some_and(|feed| std::mem::replace(&mut feed.relist, false))
    }

    /// A list begins. What was known stays known until its end.
    pub(crate) fn begin_list(&mut self, id: &FeedId, out: &mut Vec<News>) {
        self.lists = self.lists.wrapping_add(1);
        let list = self.lists;
        let Some(feed) = self.feed_mut(id) else { return };
        feed.list_before = std::mem::replace(&mut feed.list, list);
        feed.relist = false;
        let (doubt, unnamed) = (feed.doubt, std::mem::take(&mut feed.unnamed));
        if feed.is_complete() && !feed.doubt.is_some_and(Doubt::is_total) {
            feed.doubt = Some(Doubt::Relisting);
        }
        if (feed.doubt, false) == (doubt, unnamed) {
            // As much is known as before: a first list concerns whoever waits for a newer one, and no other of ten thousand.
            self.settle(&id.place, &id.kind, Whom::Awaiting, out);
        } else {
            self.settle_feed(id, out);
        }
    }

    /// An object as a list or an event shows it: all of it, of which so much is kept.
    pub(crate) fn show(&mut self, id: &FeedId, whole: Object, keep: Keep, by: By, out: &mut Vec<News>) {
        let whole = Arc::new(whole);
        let object = if keep == Keep::Whole { Arc::clone(&whole) } else { Arc::new(whole.kept(keep)) };
        if is_bindings(&id.kind) {
            let shown = Aside { whole: Arc::clone(&whole), kept: Arc::clone(&object) };
            self.heed(id, &shown, by, out);
        }
        let Some(feed) = self.feed(id) else { return };
        let (list, read, live) = (feed.list, feed.version, feed.is_live());
        let key = whole.key.clone();
        let version = whole.version;
        let shelved = self.take_in(id, &key.cluster, out);
        if is_bindings(&id.kind) {
            self.put_away(id, &key, shelved);
        }
        if shelved {
            let Some(shelf) = self.shelves.get_mut(&key.kind).and_then(|s| s.get_mut(&key.cluster)) else {
                return;
            };
            let outcome = match shelf.entries.get_mut(&Address::of(&key)) {
                Some(entry) => {
                    entry.list = list;
                    entry.show(object, by == By::List)
                }
                // Everything up to `read` was seen: an object of before that is not there is gone again.
                None if by == By::Event && version < read => Outcome::Same,
                None => {
                    shelf.entries.insert(Address::of(&key), Entry::present(object, list));
                    Outcome::Changed(None)
                }
            };
            if let Outcome::Changed(before) = outcome {
                self.deletions.forget(&key);
                self.announce_shown(&id.place, &key, Some((whole, by)), before, live, out);
            }
        }
        if by == By::Event {
            self.progress(id, version, out);
        }
    }

    /// Something that cannot be read, but says which object it is about: only that one is in doubt.
    pub(crate) fn garbled(&mut self, id: &FeedId, key: &Key, out: &mut Vec<News>) {
        if is_bindings(&id.kind) {
            self.unheed(&id.place, key, UNKNOWN, out);
        }
        let Some(feed) = self.feed(id) else { return };
        let (list, live) = (feed.list, feed.is_live());
        if !self.take_in(id, &key.cluster, out) {
            return;
        }
        let Some(shelf) = self.shelves.get_mut(&key.kind).and_then(|s| s.get_mut(&key.cluster)) else {
            return;
        };
        let outcome = if let Some(entry) = shelf.entries.get_mut(&Address::of(key)) {
            entry.list = list;
            entry.garble()
        } else {
            shelf.entries.insert(Address::of(key), Entry::doubted(Doubt::Malformed, Version(0), list));
            Outcome::Changed(None)
        };
        if let Outcome::Changed(before) = outcome {
            self.deletions.forget(key);
            self.announce(&id.place, key, before, live, out);
        }
    }

    /// Something in a list that does not even say which object it is about: whatever is missing may be it.
    pub(crate) fn unnamed(&mut self, id: &FeedId) {
        if let Some(feed) = self.feed_mut(id) {
            feed.unnamed = true;
        }
    }

    /// A delete event.
    pub(crate) fn deleted(&mut self, id: &FeedId, key: &Key, version: Version, out: &mut Vec<News>) {
        let Some(live) = self.feed(id).map(Feed::is_live) else { return };
        // Counts before anything is concluded, so that the proof is not younger than the feed.
        if is_bindings(&id.kind) {
            self.unheed(&id.place, key, version, out);
        }
        self.progress(id, version, out);
        if !self.admit(&id.place, &key.cluster, &key.kind) {
            return;
        }
        let Some(shelf) = self.shelves.get_mut(&key.kind).and_then(|s| s.get_mut(&key.cluster)) else {
            return;
        };
        let address = Address::of(key);
        let Some(entry) = shelf.entries.get_mut(&address) else { return };
        let Outcome::Remove(before) = entry.delete(version) else { return };
        shelf.entries.remove(&address);
        let track = self.track(&id.place, &id.kind);
        if track.is_some_and(|track| track.proves_deletion(key, version)) {
            self.deletions.note(key, version);
        }
        self.announce(&id.place, key, before, live, out);
    }

    /// Everything up to this version was read.
    pub(crate) fn progress(&mut self, id: &FeedId, version: Version, out: &mut Vec<News>) {
        let Some(track) = self.track_mut(&id.place, &id.kind) else { return };
        let waiting = !track.awaiting.is_empty();
        let Some(feed) = track.feeds.get_mut(&id.endpoint) else { return };
        let (past, behind) = (feed.in_the_past(), feed.is_catching_up());
        feed.advance(version);
        if behind && !feed.is_catching_up() {
            out.push(News::CaughtUp { place: id.place.clone(), kind: id.kind.clone() });
        }
        let Some(feed) = track.feeds.get(&id.endpoint) else { return };
        if waiting || past != feed.in_the_past() {
            self.settle(&id.place, &id.kind, Whom::Awaiting, out);
        } else if is_bindings(&id.kind) {
            self.settle_vouching(&id.place, out);
        }
    }

    /// The list was read to its end: only now is anything concluded from what it did not show.
    pub(crate) fn end_list(&mut self, id: &FeedId, out: &mut Vec<News>) {
        let lists = self.lists;
        let Some(feed) = self.feed_mut(id) else { return };
        let (list, version, live) = (feed.list, feed.version, feed.is_live());
        let past = std::mem::replace(&mut feed.went_back, false) && !broken(Mutation::PastIsPresent);
        feed.listed = Listed::Now;
        feed.stalls = false;
        (feed.listed_at, feed.listed_after) = (version, lists);
        feed.doubt = None;
        for cluster in self.clusters_of(id) {
            self.conclude(id, &cluster, |shown| shown != list, (version, past, live), out);
        }
        if is_bindings(&id.kind) {
            self.heed_end_of_list(id, out);
        }
        self.catch_up_bindings(&id.place, &id.endpoint);
        self.settle(&id.place, &id.kind, Whom::All, out);
    }

    /// A cluster turns out to be shown by an endpoint whose list is complete already: what was remembered of it and never
    /// shown was missing there, and no further list will say so.
    pub(super) fn conclude_at_home(&mut self, id: &FeedId, cluster: &ClusterId, out: &mut Vec<News>) {
        let Some(feed) = self.feed(id).filter(|feed| feed.is_complete()) else { return };
        let listed = (feed.listed_at, feed.in_the_past(), feed.is_live());
        self.conclude(id, cluster, |shown| shown == NO_LIST, listed, out);
    }

    /// Concludes from a complete list what it did not show of a cluster: `missed` tells it by the list that showed an
    /// entry last, and the list by its version, whether it shows the past, and whether it is news.
    pub(super) fn conclude(
        &mut self,
        id: &FeedId,
        cluster: &ClusterId,
        missed: impl Fn(u32) -> bool,
        (version, past, live): (Version, bool, bool),
        out: &mut Vec<News>,
    ) {
        let shelf = self.shelves.get_mut(&id.kind).and_then(|shelves| shelves.get_mut(cluster));
        let Some(shelf) = shelf.filter(|shelf| shelf.place == id.place) else { return };
        let mut changes: Vec<(Key, Option<Arc<Object>>)> = Vec::new();
        shelf.entries.retain(|address, entry| {
            if !missed(entry.list) {
                return true;
            }
            let (before, stays) = match entry.miss(version, past) {
                Outcome::Same => return true,
                Outcome::Changed(before) => (before, true),
                Outcome::Remove(before) => (before, false),
            };
            let Address { namespace, name } = address.clone();
            let key = Key { cluster: cluster.clone(), kind: id.kind.clone(), namespace, name };
            changes.push((key, before));
            stays
        });
        for (key, before) in changes {
            self.announce(&id.place, &key, before, live, out);
        }
    }

    /// The feed no longer tells what happens. What was shown stays, unless the doubt is total.
    pub(crate) fn lose(&mut self, id: &FeedId, doubt: Doubt, out: &mut Vec<News>) {
        let Some(feed) = self.feed_mut(id) else { return };
        // Only a complete list ends a total doubt: a failing link does not make an unserved kind served.
        let total = feed.doubt.is_some_and(Doubt::is_total) && !doubt.is_total();
        // Nor does it tell more of a first list that is not complete than that.
        let link = matches!(doubt, Doubt::Lost | Doubt::Unreadable | Doubt::WentBack | Doubt::Relisting);
        if total || (link && !feed.is_complete()) {
            let failed = !total && doubt != Doubt::Relisting;
            if failed && !std::mem::replace(&mut feed.stalls, true) && !feed.is_live() {
                out.push(News::Stalled { place: id.place.clone(), kind: id.kind.clone() });
            }
            return;
        }
        feed.doubt = Some(doubt);
        self.settle_feed(id, out);
    }

    /// The server was seen to be at this version, before the watch is opened again.
    pub(crate) fn reached(&mut self, id: &FeedId, version: Version) {
        if let Some(feed) = self.feed_mut(id).filter(|feed| feed.doubt.is_some()) {
            feed.reached = version;
        }
    }

    /// The watch is open again from where it stopped.
    pub(crate) fn resume(&mut self, id: &FeedId, out: &mut Vec<News>) {
        let Some(feed) = self.feed_mut(id) else { return };
        if feed.is_complete() && !feed.relist && feed.doubt.is_some_and(|doubt| !doubt.is_total()) {
            feed.doubt = None;
            self.settle_feed(id, out);
        }
    }

    fn settle_feed(&mut self, id: &FeedId, out: &mut Vec<News>) {
        let view = self.track(&id.place, &id.kind).is_some_and(|track| track.whole.is_none());
        // A feed's total doubt is told per cluster in a view, and in one line for a whole place.
        self.settle(&id.place, &id.kind, if view { Whom::All } else { Whom::Nobody }, out);
    }

    /// Notes which endpoint shows a cluster, and whether this place answers for it.
    fn take_in(&mut self, id: &FeedId, cluster: &ClusterId, out: &mut Vec<News>) -> bool {
        let Some(track) = self.track_mut(&id.place, &id.kind) else { return false };
        let view = track.whole.is_none();
        if !self.admit(&id.place, cluster, &id.kind) {
            return false;
        }
        let new = self.track_mut(&id.place, &id.kind).filter(|track| !track.members.contains(cluster));
        let new = new.map(|track| track.member(cluster)).is_some();
        if view {
            self.settle_down(&id.place, cluster, &id.endpoint, out);
            if new {
                // Its endpoint may be in total doubt, as no other part of the place is.
                self.settle(&id.place, &id.kind, Whom::One(cluster), out);
            }
        }
        true
    }

    /// The clusters that this feed's endpoint shows.
    pub(super) fn clusters_of(&self, id: &FeedId) -> Vec<ClusterId> {
        let Some(track) = self.track(&id.place, &id.kind) else { return Vec::new() };
        track.members.clusters(|cluster, _| {
            track.whole.is_some() || self.home(&id.place, cluster) == Some(&id.endpoint)
        })
    }

    pub(super) fn feed(&self, id: &FeedId) -> Option<&Feed> {
        self.track(&id.place, &id.kind)?.feeds.get(&id.endpoint)
    }

    pub(super) fn feed_mut(&mut self, id: &FeedId) -> Option<&mut Feed> {
        self.track_mut(&id.place, &id.kind)?.feeds.get_mut(&id.endpoint)
    }
}
